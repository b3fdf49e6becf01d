package linear_test

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

func linUCB(t testing.TB, dim, horizon int, b privacy.Budget, o linear.LinUCBOptions) *linear.LinUCB {
	t.Helper()
	p, err := linear.NewLinUCB(dim, horizon, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func curate(t testing.TB, p linear.Contextual, dim int, seed uint64,
	options ...privacy.Option) release.FeatureCurator {
	t.Helper()
	s := noise.NewFast(9, seed)
	c, err := release.SimulatedFeatures(release.FeatureConfig{Dim: dim, Slots: p.Slots(),
		Mechanism: p.Mechanism(), Ledger: privacy.NewLedger(options...)}, &s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// learn lets everything out that is due.
func learn(t testing.TB, p linear.Contextual, c release.FeatureCurator, see func(privacy.ReleasedVector)) {
	t.Helper()
	for slot := p.Due(); slot >= 0; slot = p.Due() {
		r, err := c.Release(slot)
		if err != nil {
			t.Fatal(err)
		}
		if see != nil {
			see(r)
		}
		p.Learn(r)
	}
}

// paperLinUCB is LinUCB by dense matrices, inverses and the printed formulas, with bands
// worked out anew.
type paperLinUCB struct {
	d, horizon int
	o          linear.LinUCBOptions
	m          privacy.Mechanism
	low, last  float64
	v          *mat.SymDense
	theta      *mat.VecDense
	radius     float64
	updates    int
}

func (r *paperLinUCB) band(n int) (lo, hi, cross float64) {
	leaf := max(1, r.o.Leaf)
	x := math.Log(8 * math.Floor(float64(r.horizon)/float64(leaf)) / r.o.Risk)
	d := math.Sqrt(float64(r.d))
	normal := func(sigma float64) (float64, float64, float64) {
		return -2*sigma*d - 2*sigma*math.Sqrt(x), 2*sigma*d + 2*sigma*math.Sqrt(x), sigma * (d + math.Sqrt(2*x))
	}
	nodes := float64(strings.Count(fmt.Sprintf("%b", n/leaf), "1"))
	if nodes == 0 {
		return 0, 0, 0
	}
	switch m := r.m.(type) {
	case privacy.GramTree:
		if m.Sigma == 0 {
			return 0, 0, 0
		}
		return normal(m.Sigma * math.Sqrt(nodes))
	case privacy.GramBLT:
		return normal(math.Sqrt(m.Counter.MaxVariance()))
	case privacy.GramWishart:
		n, u := math.Sqrt(nodes*float64(m.Degrees)), math.Sqrt(2*x)
		low := math.Max(0, n-d-u)
		return m.Scale * low * low, m.Scale * (n + d + u) * (n + d + u), m.Scale * (n + u) * (d + u)
	}
	panic("no such mechanism")
}

func newPaperLinUCB(d, horizon int, m privacy.Mechanism, o linear.LinUCBOptions) *paperLinUCB {
	r := &paperLinUCB{d: d, horizon: horizon, o: o, m: m, low: o.Lambda, v: mat.NewSymDense(d, nil),
		theta: mat.NewVecDense(d, nil)}
	leaf := max(1, o.Leaf)
	for k := range bits.Len(uint(horizon / leaf)) {
		lo, hi, _ := r.band((1<<(k+1) - 1) * leaf)
		r.low = math.Max(r.low, (hi-lo)/2)
	}
	for i := range d {
		r.v.SetSym(i, i, r.low)
	}
	r.last = logDetOf(r.v)
	r.radius = math.Sqrt(2*math.Log(2/o.Risk)) + math.Sqrt(r.low)
	return r
}

func (r *paperLinUCB) learn(y privacy.ReleasedVector) {
	n, lo, hi, cross := y.N(), 0.0, 0.0, 0.0
	lo, hi, cross = r.band(n)
	full := mat.NewSymDense(r.d+1, nil)
	at := 0
	for i := range r.d + 1 {
		for j := i; j <= r.d; j++ {
			full.SetSym(i, j, y.At(at))
			at++
		}
	}
	v, u := mat.NewSymDense(r.d, nil), mat.NewVecDense(r.d, nil)
	for i := range r.d {
		for j := i; j < r.d; j++ {
			v.SetSym(i, j, full.At(i, j))
		}
		v.SetSym(i, i, v.At(i, i)+r.low-lo)
		u.SetVec(i, full.At(i, r.d))
	}
	var e mat.EigenSym
	e.Factorize(v, true)
	if e.Values(nil)[0] <= 0 {
		var q mat.Dense
		e.VectorsTo(&q)
		for i := range r.d {
			for j := i; j < r.d; j++ {
				x := 0.0
				for k, y := range e.Values(nil) {
					x += math.Max(y, r.low) * q.At(i, k) * q.At(j, k)
				}
				v.SetSym(i, j, x)
			}
		}
	}
	logDet := logDetOf(v)
	if r.o.C > 0 && logDet-r.last <= math.Log(1+r.o.C) {
		return
	}
	r.updates++
	r.last, r.v = logDet, v
	if err := r.theta.SolveVec(v, u); err != nil {
		panic(err)
	}
	d := float64(r.d)
	growth := math.Min(math.Max(0, logDet-d*math.Log(r.low)), d*math.Log(1+float64(n)/(d*r.low)))
	r.radius = math.Sqrt(2*math.Log(2/r.o.Risk)+growth) + math.Sqrt(r.low+hi-lo) + cross/math.Sqrt(r.low)
}

func (r *paperLinUCB) choose(actions []float64) int {
	best, top := 0, math.Inf(-1)
	for i := 0; i*r.d < len(actions); i++ {
		a := mat.NewVecDense(r.d, actions[i*r.d:][:r.d])
		var x mat.VecDense
		if err := x.SolveVec(r.v, a); err != nil {
			panic(err)
		}
		if s := mat.Dot(r.theta, a) + (1-r.o.Greed)*r.radius*math.Sqrt(mat.Dot(a, &x)); s > top {
			best, top = i, s
		}
	}
	return best
}

// Round by round against the reference, on the same noise.
func TestLinUCBIsThePaper(t *testing.T) {
	const horizon, k = 400, 6
	for _, c := range []struct {
		name string
		d    int
		b    privacy.Budget
		o    linear.LinUCBOptions
	}{
		{"blt", 3, privacy.ZCDP{Rho: 1}, linear.LinUCBOptions{Risk: 0.01, Lambda: 1}},
		{"tree", 3, privacy.ZCDP{Rho: 1}, linear.LinUCBOptions{Risk: 0.01, Lambda: 1, Noise: linear.GramTree}},
		{"tree,approx", 2, privacy.Approx{Epsilon: 1, Delta: 1e-5},
			linear.LinUCBOptions{Risk: 0.1, Lambda: 1, Noise: linear.GramTree}},
		{"wishart", 3, privacy.Approx{Epsilon: 2, Delta: 1e-5},
			linear.LinUCBOptions{Risk: 0.01, Lambda: 1, Noise: linear.GramWishart}},
		{"little noise", 4, privacy.ZCDP{Rho: 1e5}, linear.LinUCBOptions{Risk: 0.01, Lambda: 2}},
		{"d=1", 1, privacy.ZCDP{Rho: 10}, linear.LinUCBOptions{Risk: 0.01, Lambda: 1}},
		{"rarely", 3, privacy.ZCDP{Rho: 100}, linear.LinUCBOptions{Risk: 0.01, Lambda: 0.1, C: 0.2}},
		{"leaves", 3, privacy.ZCDP{Rho: 1}, linear.LinUCBOptions{Risk: 0.01, Lambda: 1,
			Noise: linear.GramTree, Leaf: 7}},
		{"greed", 3, privacy.ZCDP{Rho: 100}, linear.LinUCBOptions{Risk: 0.01, Lambda: 1, Greed: 0.9}},
		{"one leaf", 2, privacy.ZCDP{Rho: 1}, linear.LinUCBOptions{Risk: 0.01, Lambda: 1,
			Noise: linear.GramTree, Leaf: 201}},
		{"none", 3, privacy.None{}, linear.LinUCBOptions{Risk: 0.01, Lambda: 0.5}},
		{"none, leaves", 3, privacy.None{}, linear.LinUCBOptions{Risk: 0.01, Lambda: 0.5,
			Noise: linear.GramTree, Leaf: 10}},
		{"none, rarely", 2, privacy.None{}, linear.LinUCBOptions{Risk: 0.01, Lambda: 0.5, C: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, uint64(c.d)))
			p := linUCB(t, c.d, horizon, c.b, c.o)
			ref := newPaperLinUCB(c.d, horizon, p.Mechanism(), c.o)
			cur := curate(t, p, c.d, 4)
			theta, actions := make([]float64, c.d), make([]float64, k*c.d)
			sphere(theta, c.d, 1, rng)
			leaf := max(1, c.o.Leaf)
			for n := range horizon {
				if (p.Due() == 0) != (n > 0 && n%leaf == 0) {
					t.Fatalf("round %d: due is %d", n+1, p.Due())
				}
				learn(t, p, cur, func(r privacy.ReleasedVector) { ref.learn(r) })
				got, radius := p.Estimate()
				near(t, "radius", radius, ref.radius, 1e-9*ref.radius)
				for i := range got {
					near(t, "estimate", got[i], ref.theta.AtVec(i), 1e-8*(1+math.Abs(got[i])))
				}
				sphere(actions, c.d, 1, rng)
				for i := range k {
					l := math.Sqrt(rng.Float64())
					for j := range c.d {
						actions[i*c.d+j] *= l
					}
				}
				choice, want := p.Choose(actions), ref.choose(actions)
				if choice != (linear.Choice{Action: want}) {
					t.Fatalf("round %d: chose %+v, the reference %d", n+1, choice, want)
				}
				a := actions[want*c.d:][:c.d]
				if err := cur.Add(choice.Slot, a, sign(rng, dot(theta, a))); err != nil {
					t.Fatal(err)
				}
			}
			if p.Updates() != ref.updates || c.o.C == 0 && p.Updates() != (horizon-1)/leaf || c.o.C > 0 &&
				(p.Updates() > horizon/4 || p.Updates() < 2) {
				t.Errorf("%d updates, %d in the reference", p.Updates(), ref.updates)
			}
			if !p.Covers(theta) || p.Clips() > 0 {
				t.Errorf("θ* is not covered, or V was clipped %d times", p.Clips())
			}
			if _, none := c.b.(privacy.None); !none && !cur.Ledger().Total().Within(c.b) {
				t.Errorf("the ledger has %v", cur.Ledger().Total())
			}
		})
	}
}

// At budget None it is OFUL, which gets its V from what was played and not from a release.
func TestLinUCBWithoutPrivacyIsOFUL(t *testing.T) {
	p := linUCB(t, 3, 1000, privacy.None{}, linear.LinUCBOptions{Risk: 0.02, Lambda: 0.3})
	q := oful(t, 3, 1000, privacy.None{}, linear.OFULOptions{Risk: 0.01, Lambda: 0.3, EveryRound: true})
	rng := rand.New(rand.NewPCG(8, 8))
	cur, other := curate(t, p, 3, 1), curate(t, q, 3, 2)
	theta, a := make([]float64, 3), make([]float64, 30)
	sphere(theta, 3, 1, rng)
	for n := range 1000 {
		learn(t, p, cur, nil)
		for slot := q.Due(); slot >= 0; slot = q.Due() { // a VectorGaussian is emptied
			r, err := other.Release(slot)
			if err != nil {
				t.Fatal(err)
			}
			q.Learn(r)
		}
		x, r := p.Estimate()
		y, s := q.Estimate()
		near(t, "radius", r, s, 1e-9)
		for i := range x {
			near(t, "estimate", x[i], y[i], 1e-9)
		}
		sphere(a, 3, 1, rng)
		c := p.Choose(a)
		if d := q.Choose(a); d != c {
			t.Fatalf("round %d: chose %+v, OFUL %+v", n+1, c, d)
		}
		reward := sign(rng, dot(theta, a[3*c.Action:][:3]))
		for _, cur := range []release.FeatureCurator{cur, other} {
			if err := cur.Add(0, a[3*c.Action:][:3], reward); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !cur.Ledger().Total().Infinite() {
		t.Errorf("without noise it costs %v", cur.Ledger().Total())
	}
}

// By hand: d = 1, one level, ρ = 2, so σ = 2·√1·½ = 1. α = 8e⁻⁴, so x = 4: Hi = −Lo = 2(1+2) = 6,
// Cross = 1+√8, ρ_min = 6, and the shift is 12.
func TestLinUCBByHand(t *testing.T) {
	p := linUCB(t, 1, 1, privacy.ZCDP{Rho: 2},
		linear.LinUCBOptions{Risk: 8 * math.Exp(-4), Lambda: 1, Noise: linear.GramTree})
	if m := p.Mechanism(); m != (privacy.GramTree{Sigma: 1, Horizon: 1}) {
		t.Fatalf("mechanism is %v", m)
	}
	rewards := 8 - 4*math.Ln2 // 2 log(2/α)
	check := func(theta, radius float64) {
		t.Helper()
		got, r := p.Estimate()
		near(t, "θ̃", got[0], theta, 1e-15)
		near(t, "β", r, radius, 1e-12)
	}
	var ledger *privacy.Ledger
	give := func(gram, sum float64) {
		t.Helper()
		ledger = privacy.NewLedger() // which would not seal three sums of one reward
		r, err := ledger.ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: 1, Value: []float64{gram, sum, 99}})
		if err != nil {
			t.Fatal(err)
		}
		p.Learn(r)
	}
	check(0, math.Sqrt(rewards)+math.Sqrt(6))
	if c := p.Choose([]float64{0.5, -1, 1}); c != (linear.Choice{Action: 1}) || p.Due() != 0 {
		t.Errorf("chose %+v, due is %d", c, p.Due())
	}
	give(2.5, -3) // V = 14.5; log(14.5/6) > log(1+1/6)
	cross := (1 + math.Sqrt(8)) / math.Sqrt(6)
	beta := math.Sqrt(rewards+math.Log(7./6)) + math.Sqrt(18) + cross
	check(-3/14.5, beta)
	if p.Due() != -1 {
		t.Errorf("due is %d", p.Due())
	}
	// −x scores 0.2069x + (β/√14.5)x and 1 scores −0.2069 + β/√14.5 = −0.2069 + 2.1338:
	// equal at x = 0.8232.
	near(t, "β/√V", beta/math.Sqrt(14.5), 2.1338, 5e-5)
	if c := p.Choose([]float64{1, -0.82}); c.Action != 0 {
		t.Errorf("chose %+v", c)
	}
	if c := p.Choose([]float64{1, -0.83}); c.Action != 1 {
		t.Errorf("chose %+v", c)
	}
	give(-5.7, 1.2) // V = 6.3: log(6.3/6) < log(7/6)
	check(1.2/6.3, math.Sqrt(rewards+math.Log(1.05))+math.Sqrt(18)+cross)
	p.Choose([]float64{1})
	give(-20, 3) // V = −8 becomes 6
	check(0.5, math.Sqrt(rewards)+math.Sqrt(18)+cross)
	if p.Clips() != 1 || ledger.Total().ZCDP() != 2 {
		t.Errorf("clipped %d times, the ledger has %v", p.Clips(), ledger.Total())
	}
	p.Choose([]float64{1})
	p.Learn(privacy.ReleasedVector{}) // changes nothing, and is not asked for again
	check(0.5, math.Sqrt(rewards)+math.Sqrt(18)+cross)
	if p.Due() != -1 {
		t.Errorf("due is %d", p.Due())
	}
}

// What other rounds' contexts were reaches a choice through releases only: with the same releases,
// a policy that saw other contexts is the same policy.
func TestLinUCBKeepsNoContext(t *testing.T) {
	for _, o := range []linear.LinUCBOptions{{Risk: 0.1, Lambda: 1},
		{Risk: 0.1, Lambda: 0.1, C: 0.3, Noise: linear.GramTree}} {
		p, q := linUCB(t, 3, 200, privacy.ZCDP{Rho: 50}, o), linUCB(t, 3, 200, privacy.ZCDP{Rho: 50}, o)
		rng, secret := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
		cur := curate(t, p, 3, 5)
		a, b := make([]float64, 30), make([]float64, 30)
		for n := range 200 {
			learn(t, p, cur, func(r privacy.ReleasedVector) {
				if q.Due() != 0 {
					t.Fatal("when there are releases depends on contexts")
				}
				q.Learn(r)
			})
			sphere(a, 3, 1, rng)
			sphere(b, 3, 1, secret)
			if n%10 == 9 {
				copy(b, a)
			}
			c, d := p.Choose(a), q.Choose(b)
			if n%10 == 9 && c != d {
				t.Fatalf("round %d: chose %+v and %+v after the same releases", n+1, c, d)
			}
			if err := cur.Add(0, a[3*c.Action:][:3], 1); err != nil {
				t.Fatal(err)
			}
		}
		if fmt.Sprint(p.Estimate()) != fmt.Sprint(q.Estimate()) {
			t.Error("estimates differ")
		}
	}
}

// A policy is a function of its releases.
func TestLinUCBReplay(t *testing.T) {
	o := linear.LinUCBOptions{Risk: 0.1, Lambda: 1}
	b := privacy.ZCDP{Rho: 5}
	var transcript bytes.Buffer
	p, rng := linUCB(t, 3, 300, b, o), rand.New(rand.NewPCG(4, 4))
	cur := curate(t, p, 3, 6, privacy.WithTranscript(&transcript))
	var contexts [][]float64
	var choices []linear.Choice
	for range 300 {
		learn(t, p, cur, nil)
		a := make([]float64, 30)
		sphere(a, 3, 1, rng)
		c := p.Choose(a)
		if err := cur.Add(0, a[3*c.Action:][:3], sign(rng, a[3*c.Action])); err != nil {
			t.Fatal(err)
		}
		contexts, choices = append(contexts, a), append(choices, c)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(transcript.String(), "\n"), "\n")
	q, ledger := linUCB(t, 3, 300, b, o), privacy.NewLedger()
	for n, a := range contexts {
		if q.Due() >= 0 {
			r, err := ledger.RestoreVector([]byte(lines[0]))
			if err != nil {
				t.Fatal(err)
			}
			q.Learn(r)
			lines = lines[1:]
		}
		if c := q.Choose(a); c != choices[n] {
			t.Fatalf("round %d: chose %+v again, it was %+v", n+1, c, choices[n])
		}
	}
	if len(lines) != 0 || fmt.Sprint(p.Estimate()) != fmt.Sprint(q.Estimate()) ||
		ledger.Total().ZCDP() != cur.Ledger().Total().ZCDP() ||
		!ledger.Total().Within(b) {
		t.Errorf("%d releases left over, the ledger has %v", len(lines), ledger.Total())
	}
}

// θ* leaves the sets of a run with probability at most α = 0.1: by the Clopper–Pearson interval at
// 1−2·10⁻⁶. The radius without what privacy adds, and a share of it otherwise, must be found out.
func TestLinUCBCovers(t *testing.T) {
	const risk, d, k, horizon = 0.1, 2, 4, 150
	runs := 500
	if testing.Short() {
		runs = 200
	}
	above := func(out, runs int) bool {
		lo, _, err := stats.ClopperPearson(out, runs, 1-2e-6)
		if err != nil {
			t.Fatal(err)
		}
		return lo > risk
	}
	for _, c := range []struct {
		name   string
		b      privacy.Budget
		noise  linear.GramNoise
		shrunk float64 // the twin's radius
	}{
		{"none", privacy.None{}, linear.GramBLT, 0.45},
		{"blt", privacy.ZCDP{Rho: 0.5}, linear.GramBLT, 0.08},
		{"tree", privacy.ZCDP{Rho: 0.5}, linear.GramTree, 0.08},
		{"wishart", privacy.Approx{Epsilon: 1, Delta: 1e-5}, linear.GramWishart, 0.08},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(20, 26))
			theta, a := make([]float64, d), make([]float64, k*d)
			out, twin, runs := 0, 0, runs
			if c.noise == linear.GramWishart {
				runs /= 3 // its calibration takes a while
			}
			for run := range runs {
				p := linUCB(t, d, horizon, c.b, linear.LinUCBOptions{Risk: risk, Lambda: 0.5, Noise: c.noise})
				cur := curate(t, p, d, uint64(run))
				sphere(theta, d, 1, rng)
				left, twinLeft := false, false
				for range horizon {
					learn(t, p, cur, nil)
					left = left || !p.Covers(theta)
					// Covers at a smaller radius: θ moved away from the centre by as much.
					centre, _ := p.Estimate()
					far := []float64{centre[0] + (theta[0]-centre[0])/c.shrunk,
						centre[1] + (theta[1]-centre[1])/c.shrunk}
					twinLeft = twinLeft || !p.Covers(far)
					sphere(a, d, 1, rng)
					i := p.Choose(a).Action
					if err := cur.Add(0, a[i*d:][:d], sign(rng, dot(theta, a[i*d:][:d]))); err != nil {
						t.Fatal(err)
					}
				}
				if left {
					out++
				}
				if twinLeft {
					twin++
				}
				if p.Clips() > 0 {
					t.Errorf("V was clipped %d times", p.Clips())
				}
			}
			t.Logf("θ* left %d of %d runs, the twin's sets %d", out, runs, twin)
			if above(out, runs) {
				t.Errorf("θ* left %d of %d runs, which α = %v does not allow", out, runs, risk)
			}
			if !testing.Short() && !above(twin, runs) {
				t.Errorf("θ* left the twin's sets in %d of %d runs only: it was not found out", twin, runs)
			}
		})
	}
}

// On the curator of real records LinUCB has the regret that simulations have: means of 240 runs
// each with the same contexts are within 5.2 standard errors of their difference (2e-7, for
// whatever noise; the real curator's is the operating system's), and θ* is in the sets that allow
// for rounding. At a two-hundredth of the noise the same comparison tells them apart.
func TestLinUCBOnRealRecords(t *testing.T) {
	const d, k, horizon, runs = 2, 4, 400, 240
	regrets := func(rho, step float64) (mean, variance float64) {
		var sum, squares float64
		outside := 0
		for run := range runs {
			p := linUCB(t, d, horizon, privacy.ZCDP{Rho: rho}, linear.LinUCBOptions{Risk: 0.1, Lambda: 0.5,
				Noise: linear.GramTree, Step: step})
			cur := curate(t, p, d, uint64(run))
			if step > 0 {
				var err error
				if cur, err = release.RealFeatures(release.FeatureConfig{Dim: d, Slots: 1,
					Mechanism: p.Mechanism()}); err != nil {
					t.Fatal(err)
				}
			}
			rng := rand.New(rand.NewPCG(5, uint64(run)))
			theta, a := make([]float64, d), make([]float64, k*d)
			sphere(theta, d, 1, rng)
			regret := 0.0
			for range horizon {
				learn(t, p, cur, nil)
				sphere(a, d, 1, rng)
				played, best := p.Choose(a).Action, -1.0
				for i := range k {
					best = max(best, dot(theta, a[i*d:][:d]))
				}
				mean := dot(theta, a[played*d:][:d])
				regret += best - mean
				if err := cur.Add(0, a[played*d:][:d], sign(rng, mean)); err != nil {
					t.Fatal(err)
				}
			}
			learn(t, p, cur, nil)
			if !p.Covers(theta) {
				outside++
			}
			if loss := cur.Ledger().Total(); !loss.Within(privacy.ZCDP{Rho: rho}) {
				t.Fatalf("it costs %v, above ρ = %v", loss, rho)
			}
			sum += regret
			squares += regret * regret
		}
		if outside > 60 { // at 0.1 each with a probability below 1e-9
			t.Errorf("ρ = %v: θ* left %d of %d last sets", rho, outside, runs)
		}
		mean = sum / runs
		return mean, (squares/runs - mean*mean) / (runs - 1)
	}
	simulated, v := regrets(5, 0)
	real, w := regrets(5, release.ExactStep)
	clear, u := regrets(200_000, 0)
	t.Logf("regret %.1f ± %.1f simulated, %.1f ± %.1f real, %.1f ± %.1f with a two-hundredth of the noise",
		simulated, math.Sqrt(v), real, math.Sqrt(w), clear, math.Sqrt(u))
	if z := (real - simulated) / math.Sqrt(v+w); math.Abs(z) > 5.2 {
		t.Errorf("%.1f standard errors apart", z)
	}
	if z := (real - clear) / math.Sqrt(u+w); z < 5.2 {
		t.Errorf("less noise is %.1f standard errors away only", z)
	}
	// What rounding adds to a confidence set is little, and something.
	o := linear.LinUCBOptions{Risk: 0.1, Lambda: 0.5, Noise: linear.GramTree}
	fast := linUCB(t, d, horizon, privacy.ZCDP{Rho: 1}, o)
	o.Step = release.ExactStep
	exact := linUCB(t, d, horizon, privacy.ZCDP{Rho: 1}, o)
	_, r := fast.Estimate()
	if _, s := exact.Estimate(); !(s > r && s < r*1.0001) {
		t.Errorf("the radius is %v, without rounding %v", s, r)
	}
}

// Batches that are released late, in order, while others are played: the confidence sets are those of
// the rounds that were released, and θ* is in all of them in at least 1−α of the runs. The twin has a
// 12th of the radius. The test says no if the Clopper–Pearson interval at 1−2·10⁻⁷ is above α.
func TestLinUCBLateBatches(t *testing.T) {
	const d, k, horizon, leaf, risk, runs = 2, 5, 160, 8, 0.1, 150
	o := linear.LinUCBOptions{Risk: risk, Lambda: 0.5, Noise: linear.GramTree, Leaf: leaf,
		Step: release.ExactStep}
	rng := rand.New(rand.NewPCG(20, 27))
	out, twin := 0, 0
	for run := range runs {
		p := linUCB(t, d, horizon, privacy.ZCDP{Rho: 50}, o)
		once := linUCB(t, d, horizon, privacy.ZCDP{Rho: 50}, o) // is given the same, round by round
		cur, err := release.RealFeatures(release.FeatureConfig{Dim: d, Slots: 1, Mechanism: p.Mechanism()})
		if err != nil {
			t.Fatal(err)
		}
		theta, a := make([]float64, d), make([]float64, k*d)
		sphere(theta, d, 1, rng)
		type record struct {
			a [d]float64
			r float64
		}
		var waiting []record
		full, late := 0, 0 // batches that wait, rounds that the oldest has waited
		left, twinLeft := false, false
		for round := range horizon {
			sphere(a, d, 1, rng)
			i := p.Best(a)
			if again := p.Best(a); again != i {
				t.Fatal("to look changes what is best")
			}
			v := a[i*d:][:d]
			p.Play(v)
			waiting = append(waiting, record{[d]float64(v), sign(rng, dot(theta, v))})
			if p.Due() == 0 {
				if gram := p.Cut(); gram != nil {
					t.Fatalf("a cut tells %v", gram)
				}
				full++
			} else if p.Skip(leaf, nil) == nil {
				t.Fatal("a batch is skipped in the middle of another")
			}
			if p.Due() >= 0 {
				t.Fatalf("run %d, round %d: due twice", run, round)
			}
			if late++; full == 0 || late < 3+run%20 {
				continue
			}
			full, late = full-1, 0
			for _, w := range waiting[:leaf] {
				if err := cur.Add(0, w.a[:], w.r); err != nil {
					t.Fatal(err)
				}
			}
			if err := once.Skip(leaf, nil); err != nil {
				t.Fatal(err)
			}
			waiting = waiting[leaf:]
			r, err := cur.Release(0)
			if err != nil {
				t.Fatal(err)
			}
			p.Learn(r)
			once.Learn(r)
			x, radius := p.Estimate()
			y, same := once.Estimate()
			if radius != same || x[0] != y[0] || x[1] != y[1] {
				t.Fatalf("late it is %v ± %v, at once %v ± %v", x, radius, y, same)
			}
			left = left || !p.Covers(theta)
			twinLeft = twinLeft || !p.Covers([]float64{x[0] + (theta[0]-x[0])*12, x[1] + (theta[1]-x[1])*12})
		}
		if left {
			out++
		}
		if twinLeft {
			twin++
		}
		if p.Clips() > 0 {
			t.Errorf("V was clipped %d times", p.Clips())
		}
		if loss := cur.Ledger().Total(); !loss.Within(privacy.ZCDP{Rho: 50}) {
			t.Fatalf("it costs %v", loss)
		}
	}
	p := linUCB(t, d, horizon, privacy.ZCDP{Rho: 50}, o)
	for _, err := range []error{p.Skip(leaf-1, nil), p.Skip(0, nil), p.Skip(leaf, []int64{1, 2, 3})} {
		if err == nil {
			t.Error("what is no batch is skipped")
		}
	}
	above := func(k int) bool {
		lo, _, err := stats.ClopperPearson(k, runs, 1-2e-7)
		if err != nil {
			t.Fatal(err)
		}
		return lo > risk
	}
	t.Logf("θ* left %d of %d runs, the twin's sets %d", out, runs, twin)
	if above(out) || !above(twin) {
		t.Errorf("θ* left the sets in %d of %d runs, and the twin's in %d", out, runs, twin)
	}
}

func TestLinUCBErrors(t *testing.T) {
	good := linear.LinUCBOptions{Risk: 0.1, Lambda: 1}
	with := func(f func(*linear.LinUCBOptions)) linear.LinUCBOptions { o := good; f(&o); return o }
	for _, c := range []struct {
		want         string
		dim, horizon int
		b            privacy.Budget
		o            linear.LinUCBOptions
	}{
		{"dim is 0, must be between 1 and 1024", 0, 10, privacy.None{}, good},
		{"dim is 1025", 1025, 10, privacy.None{}, good},
		{"horizon is 0", 3, 0, privacy.None{}, good},
		{"there is no budget", 3, 10, nil, good},
		{"never pure", 3, 10, privacy.Pure{Epsilon: 1}, good},
		{"rho is -1", 3, 10, privacy.ZCDP{Rho: -1}, good},
		{"must be epsilon and delta", 3, 10, privacy.ZCDP{Rho: 1}, with(func(o *linear.LinUCBOptions) {
			o.Noise = linear.GramWishart
		})},
		{"noise is 3", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) { o.Noise = 3 })},
		{"risk is 0", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) { o.Risk = 0 })},
		{"risk is NaN", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) { o.Risk = math.NaN() })},
		{"lambda is 0", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) { o.Lambda = 0 })},
		{"lambda is +Inf", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) {
			o.Lambda = math.Inf(1)
		})},
		{"c is -1", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) { o.C = -1 })},
		{"c is NaN", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) { o.C = math.NaN() })},
		{"step is NaN", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) { o.Step = math.NaN() })},
		{"step is -1", 3, 10, privacy.None{}, with(func(o *linear.LinUCBOptions) { o.Step = -1 })},
		{"noise is not GramTree", 3, 10, privacy.ZCDP{Rho: 1}, with(func(o *linear.LinUCBOptions) {
			o.Step = release.ExactStep
		})},
		{"noise is not GramTree", 3, 10, privacy.ZCDP{Rho: 1}, with(func(o *linear.LinUCBOptions) {
			o.Leaf = 2
		})},
		{"greed is NaN", 3, 10, privacy.ZCDP{Rho: 1}, with(func(o *linear.LinUCBOptions) {
			o.Greed = math.NaN()
		})},
		{"greed is 1.5", 3, 10, privacy.ZCDP{Rho: 1}, with(func(o *linear.LinUCBOptions) { o.Greed = 1.5 })},
		{"leaf is -1", 3, 10, privacy.ZCDP{Rho: 1}, with(func(o *linear.LinUCBOptions) { o.Leaf = -1 })},
		{"leaf is 11, must be between 0 and the horizon, 10", 3, 10, privacy.ZCDP{Rho: 1},
			with(func(o *linear.LinUCBOptions) { o.Leaf, o.Noise = 11, linear.GramTree })},
		{"must be at most", 3, math.MaxInt, privacy.ZCDP{Rho: 1},
			with(func(o *linear.LinUCBOptions) { o.Leaf, o.Noise = 2, linear.GramTree })},
	} {
		if p, err := linear.NewLinUCB(c.dim, c.horizon, c.b, c.o); err == nil || p != nil ||
			!strings.HasPrefix(err.Error(), "lin-ucb: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
}

// Whatever the noise, sets are sets: V is positive definite and numbers are finite.
func TestLinUCBProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, horizon := rapid.IntRange(1, 5).Draw(rt, "d"), rapid.IntRange(1, 60).Draw(rt, "horizon")
		o := linear.LinUCBOptions{Risk: math.Exp(-rapid.Float64Range(0.1, 600).Draw(rt,
			"−log risk")), Lambda: math.Exp(rapid.Float64Range(-20, 20).Draw(rt, "log λ")),
			Noise: linear.GramNoise(rapid.IntRange(0, 1).Draw(rt, "noise"))}
		b := privacy.ZCDP{Rho: math.Exp(rapid.Float64Range(-20, 20).Draw(rt, "log ρ"))}
		p := linUCB(t, d, horizon, b, o)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		cur := curate(t, p, d, rng.Uint64())
		a := make([]float64, 3*d)
		for range horizon {
			learn(t, p, cur, nil)
			theta, radius := p.Estimate()
			if !(radius > 0 && radius < math.MaxFloat64) || !p.Covers(theta) {
				rt.Fatalf("radius %v around %v", radius, theta)
			}
			sphere(a, d, 1, rng)
			c := p.Choose(a)
			if c.Action < 0 || c.Action > 2 || c.Slot != 0 {
				rt.Fatalf("%+v", c)
			}
			if err := cur.Add(0, a[c.Action*d:][:d], 2*rng.Float64()-1); err != nil {
				rt.Fatal(err)
			}
		}
		if !cur.Ledger().Total().Within(b) {
			rt.Errorf("costs %v", cur.Ledger().Total())
		}
	})
}

func TestLinUCBAllocatesNothing(t *testing.T) {
	for _, g := range []linear.GramNoise{linear.GramBLT, linear.GramTree, linear.GramWishart} {
		p := linUCB(t, 3, 100_000, privacy.Approx{Epsilon: 1, Delta: 1e-6},
			linear.LinUCBOptions{Risk: 0.1, Lambda: 1, Noise: g})
		cur := curate(t, p, 3, 1)
		a := make([]float64, 30)
		sphere(a, 3, 1, rand.New(rand.NewPCG(1, 1)))
		if n := testing.AllocsPerRun(1000, func() {
			if p.Due() >= 0 {
				r, err := cur.Release(0)
				if err != nil {
					t.Fatal(err)
				}
				p.Learn(r)
			}
			c := p.Choose(a)
			if err := cur.Add(0, a[3*c.Action:][:3], 1); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("noise %d: %v allocations a round", g, n)
		}
	}
}

// Contexts and rewards that are both private: what is played tells nothing of other rounds.
func ExampleLinUCB() {
	const dim, horizon = 2, 20_000
	p, err := linear.NewLinUCB(dim, horizon, privacy.Approx{Epsilon: 2, Delta: 1e-6},
		linear.LinUCBOptions{Risk: 0.05, Lambda: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, world := noise.NewFast(1, 2), noise.NewFast(3, 4)
	curator, err := release.SimulatedFeatures(release.FeatureConfig{Dim: dim, Slots: p.Slots(),
		Mechanism: p.Mechanism()}, &s)
	if err != nil {
		fmt.Println(err)
		return
	}
	theta := []float64{0.8, -0.4}
	for range horizon {
		for slot := p.Due(); slot >= 0; slot = p.Due() {
			released, err := curator.Release(slot)
			if err != nil {
				fmt.Println(err)
				return
			}
			p.Learn(released)
		}
		actions := make([]float64, 4*dim) // the round's decision set
		for i := range actions {
			actions[i] = 1.4*world.Float64() - 0.7
		}
		c := p.Choose(actions)
		a := actions[c.Action*dim:][:dim]
		reward := -1.0
		if world.Float64() < (1+theta[0]*a[0]+theta[1]*a[1])/2 {
			reward = 1
		}
		if err := curator.Add(c.Slot, a, reward); err != nil {
			fmt.Println(err)
			return
		}
	}
	estimate, _ := p.Estimate()
	e := curator.Ledger().Entries()[0]
	fmt.Printf("%.1f, in the confidence set: %t\n", estimate, p.Covers(theta))
	fmt.Printf("one %s, released %d times: ε = %.2f at δ = 1e-6\n", e.Mechanism.Kind(), e.Releases,
		curator.Ledger().Total().Approx(1e-6))
	// Output:
	// [0.7 -0.4], in the confidence set: true
	// one gram-blt, released 19999 times: ε = 2.00 at δ = 1e-6
}

// BenchmarkLinUCB is a round with d = 3, K = 10 and an update in each: the choice, the record, the
// release and the estimate.
func BenchmarkLinUCB(b *testing.B) {
	budget := privacy.Approx{Epsilon: 1, Delta: 1e-6}
	run := func(name string, d int, budget privacy.Budget, o linear.LinUCBOptions) {
		b.Run(name, func(b *testing.B) {
			p := linUCB(b, d, min(1<<40, math.MaxInt/4), budget, o)
			cur := curate(b, p, d, 1)
			a := make([]float64, 10*d)
			sphere(a, d, 1, rand.New(rand.NewPCG(1, 1)))
			b.ReportAllocs()
			for b.Loop() {
				if p.Due() >= 0 {
					r, err := cur.Release(0)
					if err != nil {
						b.Fatal(err)
					}
					p.Learn(r)
				}
				c := p.Choose(a)
				if err := cur.Add(0, a[d*c.Action:][:d], 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	o := linear.LinUCBOptions{Risk: 0.1, Lambda: 1}
	run("blt", 3, budget, o)
	o.Noise = linear.GramTree
	run("tree", 3, budget, o)
	run("tree/d=20", 20, budget, o)
	o.C = 1
	run("tree/rarely", 3, budget, o)
	o.C, o.Noise = 0, linear.GramWishart
	run("wishart", 3, budget, o)
	run("none", 3, privacy.None{}, o)
}
