package linear_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// A featureSlot is the curator of these tests: Σ a·r since the last release, which comes out with
// N(0,σ²I) through a ledger.
type featureSlot struct {
	sum    []float64
	n      int
	id     int
	sigma  float64
	ledger *privacy.Ledger
	rng    *rand.Rand
	noise  [][]float64 // drawn so far
}

func newFeatureSlot(p *linear.OFUL, dim int, rng *rand.Rand, options ...privacy.Option) *featureSlot {
	return &featureSlot{sum: make([]float64, dim),
		sigma: p.Mechanism().(privacy.VectorGaussian).Sigma, ledger: privacy.NewLedger(options...), rng: rng}
}

func (s *featureSlot) add(a []float64, r float64) {
	for i, x := range a {
		s.sum[i] += x * r
	}
	s.n++
}

func (s *featureSlot) release(t testing.TB, m privacy.Mechanism) privacy.ReleasedVector {
	t.Helper()
	y := make([]float64, len(s.sum))
	v := privacy.Vector{N: s.n, Value: make([]float64, len(s.sum))}
	for i, x := range s.sum {
		if s.sigma > 0 {
			y[i] = s.sigma * s.rng.NormFloat64()
		}
		v.Value[i] = x + y[i]
	}
	s.noise = append(s.noise, y)
	out, err := s.ledger.ReleaseVector(s.id, m, &v)
	if err != nil {
		t.Fatal(err)
	}
	s.id++
	s.n = 0
	clear(s.sum)
	return out
}

func oful(t testing.TB, dim, horizon int, b privacy.Budget, o linear.OFULOptions) *linear.OFUL {
	t.Helper()
	p, err := linear.NewOFUL(dim, horizon, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOFULVectors(t *testing.T) {
	for _, v := range []struct {
		t            int
		beta, update float64
	}{{1000, 6.492925, 35.11}, {100_000, 7.524987, 55.04}} {
		near(t, fmt.Sprintf("β_%d", v.t), linear.EllipsoidRadius(linear.EllipsoidGrowth(3, v.t,
			0.1), 0.1, 0.001), v.beta, 5e-7)
		near(t, fmt.Sprintf("ℓ(%d)", v.t), linear.MaxUpdates(3, v.t, 0.1, 1), v.update, 5e-3)
	}
	near(t, "f", linear.NormalNorm(3, 1e-3/1e5), 54.709050, 5e-7)
	first := 0
	for n := 1; first == 0; n++ {
		if linear.EigenvalueBound(3, n, 0.1, 0.001) > 0 {
			first = n
		}
	}
	if first != 139469 {
		t.Errorf("the bound on the eigenvalue is first positive at %d, want 139469", first)
	}
	near(t, "noise radius", linear.NoiseRadius(3, 7, math.Sqrt(2/0.1), 1e-3/1e5, 4),
		math.Sqrt(2*7/0.1*54.709050/4), 1e-6)
}

// paperOFUL is [Azize and Basu 2024, Algorithm 3] as printed, with inverses and determinants by
// gonum in every round, and the radius in use.
type paperOFUL struct {
	d, horizon     int
	rho, risk      float64 // ρ = +Inf: none
	o              linear.OFULOptions
	v, vTau        *mat.SymDense
	inverse        *mat.SymDense // V_τ⁻¹
	theta          *mat.VecDense
	sum            *mat.VecDense
	radius         float64
	t, tau, update int
}

func newPaperOFUL(d, horizon int, rho float64, o linear.OFULOptions) *paperOFUL {
	r := &paperOFUL{d: d, horizon: horizon, rho: rho, risk: o.Risk, o: o}
	r.v, r.theta, r.sum = mat.NewSymDense(d, nil), mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
	if o.Split {
		r.risk = o.Risk / 3
	}
	for i := range d {
		r.v.SetSym(i, i, o.Lambda)
	}
	r.set()
	return r
}

func logDetOf(s *mat.SymDense) float64 { x, _ := mat.LogDet(s); return x }

func (r *paperOFUL) set() {
	d := float64(r.d)
	r.tau = r.t
	r.vTau = mat.NewSymDense(r.d, nil)
	r.vTau.CopySym(r.v)
	var c mat.Cholesky
	c.Factorize(r.vTau)
	r.inverse = mat.NewSymDense(r.d, nil)
	if err := c.InverseTo(r.inverse); err != nil {
		panic(err)
	}
	r.theta.MulVec(r.inverse, r.sum)
	r.radius = math.Sqrt(2*math.Log(1/r.risk) + logDetOf(r.v) - d*math.Log(r.o.Lambda))
	r.radius += cmp.Or(r.o.Norm, 1) * math.Sqrt(r.o.Lambda)
	if r.update == 0 || math.IsInf(r.rho, 1) {
		return
	}
	x := math.Log(float64(r.horizon) / r.risk)
	f := d + 2*math.Sqrt(d*x) + 2*x
	var e mat.EigenSym
	e.Factorize(r.v, false)
	den := e.Values(nil)[0]
	if r.o.Printed {
		n := float64(r.t)
		l := math.Log((n + 3) * d / r.risk)
		den = max(r.o.Lambda, r.o.Lambda+r.o.Lambda0*n/4-8*l-2*math.Sqrt(n*l))
	}
	r.radius += math.Sqrt(2 * float64(r.update) / r.rho * f / den)
}

func (r *paperOFUL) due() bool {
	if r.o.EveryRound {
		return r.t > r.tau
	}
	return logDetOf(r.v) > math.Log1p(r.o.C)+logDetOf(r.vTau)
}

func (r *paperOFUL) learn(y []float64) {
	r.sum.AddVec(r.sum, mat.NewVecDense(r.d, y))
	r.update++
	r.set()
}

func (r *paperOFUL) choose(actions []float64) int {
	best, top := 0, math.Inf(-1)
	for i := range len(actions) / r.d {
		a := mat.NewVecDense(r.d, actions[i*r.d:][:r.d])
		if s := mat.Dot(r.theta, a) + (1-r.o.Greed)*r.radius*math.Sqrt(mat.Inner(a, r.inverse, a)); s > top {
			best, top = i, s
		}
	}
	r.t++
	r.v.SymRankOne(r.v, 1, mat.NewVecDense(r.d, actions[best*r.d:][:r.d]))
	return best
}

func TestOFULIsThePaper(t *testing.T) {
	const horizon = 2000
	rare := linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.001}
	with := func(f func(*linear.OFULOptions)) linear.OFULOptions { o := rare; f(&o); return o }
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		d    int
		rho  float64
		o    linear.OFULOptions
	}{
		{"rs-oful", 3, inf, rare},
		{"oful", 2, inf, linear.OFULOptions{Lambda: 1, Risk: 0.05, EveryRound: true}},
		{"rho=1", 3, 1, rare},
		{"rho=100,split", 3, 100, with(func(o *linear.OFULOptions) { o.Split = true })},
		{"d=1", 1, 1, with(func(o *linear.OFULOptions) { o.Lambda = 2 })},
		{"d=2,C=0.1", 2, 10, with(func(o *linear.OFULOptions) { o.C = 0.1 })},
		{"d=5,C=3", 5, 0.1, with(func(o *linear.OFULOptions) { o.C = 3; o.Split = true })},
		{"printed", 3, 5, with(func(o *linear.OFULOptions) { o.Printed, o.Lambda0 = true, 0.25 })},
		{"printed,positive", 2, 50, with(func(o *linear.OFULOptions) {
			o.Printed, o.Lambda0, o.C, o.Risk = true, 0.9, 0.3, 0.5
		})},
		{"norm=3", 3, 1, with(func(o *linear.OFULOptions) { o.Norm = 3 })},
		{"norm=0.2", 4, 10, with(func(o *linear.OFULOptions) { o.Norm = 0.2 })},
		{"greed=1", 3, 1, with(func(o *linear.OFULOptions) { o.Greed = 1 })},
		{"d=4,greed=1", 4, 1, with(func(o *linear.OFULOptions) { o.Greed = 1 })},
		{"d=4,greed=0.9", 4, 1, with(func(o *linear.OFULOptions) { o.Greed = 0.9 })},
		{"greed=0.9", 3, 10, with(func(o *linear.OFULOptions) { o.Greed = 0.9 })},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, uint64(c.d)))
			var b privacy.Budget = privacy.None{}
			if !math.IsInf(c.rho, 1) {
				b = privacy.ZCDP{Rho: c.rho}
			}
			p := oful(t, c.d, horizon, b, c.o)
			ref := newPaperOFUL(c.d, horizon, c.rho, c.o)
			cur := newFeatureSlot(p, c.d, rng)
			theta, actions := make([]float64, c.d), make([]float64, 7*c.d)
			sphere(theta, c.d, 1, rng)
			for n := range horizon {
				due := p.Due()
				if (due == 0) != ref.due() {
					t.Fatalf("round %d: due is %d, and for the reference %t", n+1, due, ref.due())
				}
				if due == 0 {
					r := cur.release(t, p.Mechanism())
					y := make([]float64, c.d)
					for i := range y {
						y[i] = r.At(i)
					}
					ref.learn(y)
					p.Learn(r)
					got, radius := p.Estimate()
					near(t, "radius", radius, ref.radius, 1e-9*ref.radius)
					for i := range got {
						near(t, "estimate", got[i], ref.theta.AtVec(i), 1e-9*(1+math.Abs(got[i])))
					}
					if p.Due() >= 0 {
						t.Fatalf("round %d: still due", n+1)
					}
				}
				sphere(actions, c.d, 1, rng)
				for k := range 7 { // of all lengths
					l := math.Sqrt(rng.Float64())
					for i := range c.d {
						actions[k*c.d+i] *= l
					}
				}
				got, want := p.Choose(actions), ref.choose(actions)
				if got != (linear.Choice{Action: want}) {
					t.Fatalf("round %d: chose %+v, the reference %d", n+1, got, want)
				}
				a := actions[want*c.d:][:c.d]
				cur.add(a, sign(rng, dot(theta, a)))
			}
			if p.Updates() != ref.update || p.Updates() != len(cur.noise) || p.Updates() < 5 {
				t.Errorf("%d updates, %d in the reference, %d noises", p.Updates(), ref.update, len(cur.noise))
			}
		})
	}
}

// Without a horizon the ℓ-th release has 6/(π²ℓ²) of the noise's risk: the radius is that of a horizon of
// π²ℓ²/6, all shares add up to the risk, and choices that leave the radius out are those of any horizon.
func TestOFULWithoutHorizon(t *testing.T) {
	o := linear.OFULOptions{Lambda: 1, C: 1, Risk: 0.3, Split: true}
	p, all := oful(t, 1, 0, privacy.ZCDP{Rho: 2}, o), 0.0
	ledger := privacy.NewLedger()
	v := 1.0
	for l := 1; l <= 5; l++ {
		for p.Due() < 0 {
			p.Choose([]float64{1})
			v++
		}
		r, err := ledger.ReleaseVector(l, p.Mechanism(), &privacy.Vector{N: 1, Value: []float64{0}})
		if err != nil {
			t.Fatal(err)
		}
		p.Learn(r)
		share := 0.1 * 6 / (math.Pi * math.Pi * float64(l*l))
		all += share
		_, radius := p.Estimate()
		want := linear.EllipsoidRadius(math.Log(v), 1, 0.1) + linear.NoiseRadius(1, l, 1, share, v)
		near(t, "β̃", radius, want, 1e-12)
	}
	for l := 6; l < 1e6; l++ {
		all += 0.1 * 6 / (math.Pi * math.Pi * float64(l) * float64(l))
	}
	if !(all < 0.1 && all > 0.0999) {
		t.Errorf("the shares add up to %v, must be 0.1", all)
	}
}

// By hand: d = 1, λ = 1, C = 1, δ = e⁻², ρ = 2, so σ = 1.
func TestOFULByHand(t *testing.T) {
	const horizon = 50
	p := oful(t, 1, horizon, privacy.ZCDP{Rho: 2}, linear.OFULOptions{Lambda: 1, C: 1, Risk: math.Exp(-2)})
	if m := p.Mechanism(); m != (privacy.VectorGaussian{Sigma: 1}) {
		t.Fatalf("mechanism is %v", m)
	}
	ledger := privacy.NewLedger()
	learn := func(slot int, y float64) {
		r, err := ledger.ReleaseVector(slot, p.Mechanism(), &privacy.Vector{N: 1, Value: []float64{y}})
		if err != nil {
			t.Fatal(err)
		}
		p.Learn(r)
	}
	x := 2 + math.Log(horizon)
	f := 1 + 2*math.Sqrt(x) + 2*x
	check := func(theta, radius float64, due, updates int) {
		t.Helper()
		got, r := p.Estimate()
		near(t, "θ̃", got[0], theta, 1e-15)
		near(t, "β̃", r, radius, 1e-12)
		if p.Due() != due || p.Updates() != updates {
			t.Errorf("due is %d after %d updates, want %d after %d", p.Due(), p.Updates(), due, updates)
		}
	}
	choose := func(want int, actions ...float64) {
		t.Helper()
		if c := p.Choose(actions); c.Action != want || c.Slot != 0 {
			t.Errorf("chose %+v of %v, want %d", c, actions, want)
		}
	}
	check(0, 3, -1, 0) // √(2·2 + log 1) + √1
	choose(1, 0.5, -1) // the longest: V = 2, not more than 2·1
	check(0, 3, -1, 0)
	choose(1, 0.5, -1) // V = 3
	check(0, 3, 0, 0)
	learn(0, -1.5) // θ̃ = −1.5/3
	beta := math.Sqrt(4+math.Log(3)) + 1 + math.Sqrt(f/3)
	check(-0.5, beta, -1, 1)
	// An action a scores −a/2 + 3.283|a|: −1 beats 1, and −x does from x = (3.283 − 0.5)/(3.283 +
	// 0.5) = 0.7357 on.
	near(t, "β̃/√V", beta/math.Sqrt(3), 3.283, 5e-4)
	choose(1, 1, -1)   // V = 4
	choose(1, 1, -0.8) // V = 4.64
	choose(0, 1, -0.7) // V = 5.64
	choose(0, 0.6)     // V = 6, not more than 2·3
	check(-0.5, beta, -1, 1)
	choose(0, 1, 1) // V = 7; of equals the first
	check(-0.5, beta, 0, 1)
	learn(1, 2.5) // the noises of both releases are in (−1.5 + 2.5)/7
	check(1./7, math.Sqrt(4+math.Log(7))+1+math.Sqrt(2*f/7), -1, 2)
	if total := ledger.Total(); math.Abs(total.ZCDP()-2) > 1e-12 {
		t.Errorf("the ledger has %v, want ρ = 2", total)
	}
}

// Randomly drawn parameters and contexts in the unit ball.
func TestOFULProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.IntRange(1, 6).Draw(rt, "d")
		k := rapid.IntRange(1, 5).Draw(rt, "k")
		o := linear.OFULOptions{Risk: 0.1, Split: rapid.Bool().Draw(rt, "split"),
			Printed: rapid.Bool().Draw(rt, "printed"), Lambda0: 0.1}
		o.Lambda = math.Exp(rapid.Float64Range(-7, 3).Draw(rt, "log lambda"))
		o.C = math.Exp(rapid.Float64Range(-4, 4).Draw(rt, "log c"))
		rho := math.Exp(rapid.Float64Range(-9, 9).Draw(rt, "log rho"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		p := oful(t, d, 500, privacy.ZCDP{Rho: rho}, o)
		cur := newFeatureSlot(p, d, rng, privacy.WithCap(privacy.ZCDP{Rho: rho * (1 + 1e-9)}))
		actions, theta := make([]float64, k*d), make([]float64, d)
		total := make([]float64, d) // Σ a·r + Y_1 + … + Y_ℓ
		v := mat.NewSymDense(d, nil)
		for i := range d {
			v.SetSym(i, i, o.Lambda)
		}
		sphere(theta, d, rng.Float64(), rng)
		for n := range 500 {
			if p.Due() >= 0 {
				r := cur.release(t, p.Mechanism())
				for i := range total {
					total[i] += r.At(i)
				}
				p.Learn(r)
				if p.Updates() != len(cur.noise) {
					rt.Fatalf("%d updates and %d noises", p.Updates(), len(cur.noise))
				}
				if most := linear.MaxUpdates(d, n, o.Lambda, o.C); float64(p.Updates()) > most+1e-9 {
					rt.Fatalf("%d updates in %d rounds, must be at most %v", p.Updates(), n, most)
				}
				// V_τθ̃ is what was released so far, all of it.
				got, radius := p.Estimate()
				var back mat.VecDense
				back.MulVec(v, mat.NewVecDense(d, got))
				for i := range total {
					if math.Abs(back.AtVec(i)-total[i]) > 1e-9*(1+mat.Norm(v, 2)*math.Sqrt(dot(got, got))) {
						rt.Fatalf("coordinate %d of V·θ̃ is %v, the releases are %v", i,
							back.AtVec(i), total[i])
					}
				}
				if !(radius >= linear.EllipsoidRadius(0, o.Lambda, o.Risk)) {
					rt.Fatalf("radius is %v", radius)
				}
			}
			sphere(actions, d, 1, rng)
			for i := range actions {
				actions[i] *= 0.999
			}
			c := p.Choose(actions)
			if c.Slot != 0 || c.Action < 0 || c.Action >= k {
				rt.Fatalf("chose %+v of %d", c, k)
			}
			a := actions[c.Action*d:][:d]
			v.SymRankOne(v, 1, mat.NewVecDense(d, a))
			cur.add(a, sign(rng, dot(theta, a)))
		}
		if got := cur.ledger.Total(); len(cur.noise) > 0 && math.Abs(got.ZCDP()/rho-1) > 1e-9 {
			rt.Fatalf("the ledger has %v, want ρ = %v", got, rho)
		}
	})
}

// When a release is due is a matter of the plays alone: with one action to choose from, releases as
// wild as you like do not move it.
func TestOFULDueIsPublic(t *testing.T) {
	dues := func(seed uint64) (out []int) {
		p := oful(t, 3, 1000, privacy.ZCDP{Rho: 1}, linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.1})
		contexts, rng := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(2, seed))
		cur, a := newFeatureSlot(p, 3, rng), make([]float64, 3)
		for n := range 1000 {
			if p.Due() >= 0 {
				out = append(out, n)
				p.Learn(cur.release(t, p.Mechanism()))
			}
			sphere(a, 3, 1, contexts)
			p.Choose(a)
			cur.add(a, 1e6*rng.NormFloat64())
		}
		return out
	}
	if a, b := dues(1), dues(2); len(a) < 10 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("updates after rounds %v, and with other rewards %v", a, b)
	}
}

// Forgetting the releases before the last, or drawing noise anew for the running sum, gives another
// estimate than the sum of all releases.
func TestOFULKeepsOldNoise(t *testing.T) {
	p := oful(t, 1, 100, privacy.ZCDP{Rho: 1}, linear.OFULOptions{Lambda: 1, C: 0.5, Risk: 0.1})
	ledger := privacy.NewLedger()
	v, sum := 1.0, 0.0
	for j, y := range []float64{5, -1, 0.25, 0.125} {
		for p.Due() < 0 {
			p.Choose([]float64{1})
			v++
		}
		r, err := ledger.ReleaseVector(j, p.Mechanism(), &privacy.Vector{N: 1, Value: []float64{y}})
		if err != nil {
			t.Fatal(err)
		}
		p.Learn(r)
		sum += y
		got, _ := p.Estimate()
		near(t, "θ̃", got[0], sum/v, 1e-15)
		if j > 0 && math.Abs(got[0]-y/v) < 1e-3 {
			t.Errorf("θ̃ = %v rests on the last release only", got[0])
		}
	}
}

// A running sum with noise of its own at each update reads the first rewards at every update.
// The ledger knows.
func TestOFULNoiseDrawnAgainIsPaidAgain(t *testing.T) {
	budget := privacy.ZCDP{Rho: 0.5}
	o := linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.1}
	play := func(again bool, options ...privacy.Option) (*privacy.Ledger, int, error) {
		p := oful(t, 2, 500, budget, o)
		l, rng := privacy.NewLedger(options...), rand.New(rand.NewPCG(1, 9))
		actions := make([]float64, 10)
		for range 500 {
			if p.Due() >= 0 {
				if again {
					for slot := range p.Updates() {
						if err := l.Record(slot, p.Mechanism()); err != nil {
							return l, p.Updates(), err
						}
					}
				}
				r, err := l.ReleaseVector(p.Updates(), p.Mechanism(),
					&privacy.Vector{N: 1, Value: make([]float64, 2)})
				if err != nil {
					return l, p.Updates(), err
				}
				p.Learn(r)
			}
			sphere(actions, 2, 1, rng)
			p.Choose(actions)
		}
		return l, p.Updates(), nil
	}
	capped := privacy.WithCap(privacy.ZCDP{Rho: 0.5 * (1 + 1e-9)})
	l, n, err := play(false, capped)
	if err != nil || n < 5 || math.Abs(l.Total().ZCDP()-0.5) > 1e-9 {
		t.Fatalf("%d updates cost %v: %v", n, l.Total(), err)
	}
	l, n, _ = play(true)
	if got := l.Total(); math.Abs(got.ZCDP()-0.5*float64(n)) > 1e-9 || got.Within(budget) {
		t.Errorf("%d updates of the running sum cost %v, want ρ = %v", n, got, 0.5*float64(n))
	}
	if _, n, err := play(true, capped); !errors.Is(err, privacy.ErrBudget) || n != 1 {
		t.Errorf("the cap let %d updates of the running sum through: %v", n, err)
	}
}

// Two thousand sets of contexts and the transcript of releases restore a policy.
func TestOFULReplay(t *testing.T) {
	o := linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.01, Split: true}
	var transcript bytes.Buffer
	rng := rand.New(rand.NewPCG(4, 4))
	p := oful(t, 3, 2000, privacy.ZCDP{Rho: 1}, o)
	cur := newFeatureSlot(p, 3, rng, privacy.WithTranscript(&transcript))
	var contexts [][]float64
	var choices []linear.Choice
	for range 2000 {
		if p.Due() >= 0 {
			p.Learn(cur.release(t, p.Mechanism()))
		}
		a := make([]float64, 30)
		sphere(a, 3, 1, rng)
		c := p.Choose(a)
		cur.add(a[3*c.Action:][:3], sign(rng, a[3*c.Action]))
		contexts, choices = append(contexts, a), append(choices, c)
	}
	q := oful(t, 3, 2000, privacy.ZCDP{Rho: 1}, o)
	ledger := privacy.NewLedger()
	lines := strings.SplitAfter(strings.TrimSuffix(transcript.String(), "\n"), "\n")
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
	a, r := p.Estimate()
	b, s := q.Estimate()
	if len(lines) != 0 || fmt.Sprint(a, r) != fmt.Sprint(b, s) || p.Updates() != q.Updates() ||
		p.Due() != q.Due() || len(choices) == 0 {
		t.Errorf("restored to %v ± %v, was %v ± %v; %d releases left over", b, s, a, r, len(lines))
	}
	if got, want := ledger.Total().ZCDP(), cur.ledger.Total().ZCDP(); got != want {
		t.Errorf("restored ledger has ρ = %v, want %v", got, want)
	}
}

// Budget None draws no noise and has no term for it: ever larger budgets come to it.
func TestOFULTwin(t *testing.T) {
	o := linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.001, Split: true}
	play := func(b privacy.Budget) (out []int, radius float64) {
		p := oful(t, 3, 3000, b, o)
		contexts, rng := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 2))
		rewards := rand.New(rand.NewPCG(1, 3))
		cur, a := newFeatureSlot(p, 3, rng), make([]float64, 30)
		for range 3000 {
			if p.Due() >= 0 {
				p.Learn(cur.release(t, p.Mechanism()))
			}
			sphere(a, 3, 1, contexts)
			c := p.Choose(a)
			cur.add(a[3*c.Action:][:3], sign(rewards, a[3*c.Action]))
			out = append(out, c.Action)
		}
		_, radius = p.Estimate()
		return out, radius
	}
	none, r := play(privacy.None{})
	if m := oful(t, 3, 1, privacy.None{}, o).Mechanism(); m != (privacy.VectorGaussian{}) ||
		!m.Loss().Infinite() {
		t.Errorf("without a budget the mechanism is %v at %v", m, m.Loss())
	}
	huge, s := play(privacy.ZCDP{Rho: 1e24})
	if fmt.Sprint(none) != fmt.Sprint(huge) || math.Abs(r-s) > 1e-9 {
		t.Errorf("ρ = 1e24 ends with radius %v, no budget with %v, or plays differ", s, r)
	}
	if _, s := play(privacy.ZCDP{Rho: 1}); s < r+0.1 {
		t.Errorf("radius is %v at ρ = 1 and %v without a budget", s, r)
	}
}

func TestOFULBudgets(t *testing.T) {
	o := linear.OFULOptions{Lambda: 1, C: 1, Risk: 0.1}
	for _, b := range []privacy.Budget{privacy.ZCDP{Rho: 0.3},
		privacy.Approx{Epsilon: 0.5, Delta: 1e-5}, privacy.Renyi{Alpha: 8, Epsilon: 0.7}} {
		m := oful(t, 2, 10, b, o).Mechanism()
		s, err := privacy.GaussianSigma(b)
		if err != nil {
			t.Fatal(err)
		}
		if m != (privacy.VectorGaussian{Sigma: 2 * s}) {
			t.Errorf("%v: mechanism is %v", b, m)
		}
		if loss := m.Loss(); !loss.Within(b) && !loss.Within(privacy.ZCDP{Rho: 0.3 * (1 + 1e-12)}) {
			t.Errorf("%v: a release costs %v", b, loss)
		}
	}
	near(t, "σ²", math.Pow(oful(t, 2, 10, privacy.ZCDP{Rho: 0.5},
		o).Mechanism().(privacy.VectorGaussian).Sigma, 2), 4, 1e-12)
}

// coverOFUL plays 10⁴ runs of T = 300 in d = 2 against rewards of ±1 with mean ⟨θ*,a⟩, and counts
// those in which θ* is out at some update: of the policy's set, and of the set with this radius in
// place of its own.
func coverOFUL(t *testing.T, b privacy.Budget, o linear.OFULOptions,
	twin func(p *linear.OFUL, growth float64) float64) (out, twinOut, n int) {
	n = 10_000
	if testing.Short() {
		n = 1000
	}
	const d, k, horizon = 2, 3, 300
	rng := rand.New(rand.NewPCG(20, 26))
	theta, actions := make([]float64, d), make([]float64, k*d)
	var energy, degrees float64
	for range n {
		p := oful(t, d, horizon, b, o)
		cur := newFeatureSlot(p, d, rng)
		sphere(theta, d, 1, rng)
		left, twinLeft := !p.Covers(theta), false
		v := [3]float64{o.Lambda, 0, o.Lambda}
		for range horizon {
			if p.Due() >= 0 {
				p.Learn(cur.release(t, p.Mechanism()))
				c, _ := p.Estimate()
				x, y := c[0]-theta[0], c[1]-theta[1]
				off := math.Sqrt(v[0]*x*x + 2*v[1]*x*y + v[2]*y*y)
				_, radius := p.Estimate()
				if (off <= radius) != p.Covers(theta) && math.Abs(off-radius) > 1e-9 {
					t.Fatalf("θ* is %v off and the radius %v, but Covers says %t", off, radius, p.Covers(theta))
				}
				left = left || !p.Covers(theta)
				twinLeft = twinLeft || off > twin(p, math.Log((v[0]*v[2]-v[1]*v[1])/(o.Lambda*o.Lambda)))
			}
			for i := 0; i < len(actions); i += d {
				actions[i+1], actions[i] = math.Sincos(2 * math.Pi * rng.Float64())
			}
			a := actions[d*p.Choose(actions).Action:][:d]
			cur.add(a, sign(rng, dot(theta, a)))
			v[0] += a[0] * a[0]
			v[1] += a[0] * a[1]
			v[2] += a[1] * a[1]
		}
		if left {
			out++
		}
		if twinLeft {
			twinOut++
		}
		if cur.sigma > 0 {
			var sum [d]float64
			for _, y := range cur.noise {
				sum[0] += y[0]
				sum[1] += y[1]
			}
			if p.Updates() != len(cur.noise) {
				t.Fatalf("%d updates and %d noises", p.Updates(), len(cur.noise))
			}
			energy += (sum[0]*sum[0] + sum[1]*sum[1]) / (float64(p.Updates()) * cur.sigma * cur.sigma)
			degrees += d
		}
	}
	// χ² with 2n degrees is within 6 standard deviations of its mean but with probability 2e-9.
	if degrees > 0 && math.Abs(energy-degrees) > 6*math.Sqrt(2*degrees) {
		t.Errorf("the noises' χ² is %v with %v degrees", energy, degrees)
	}
	return out, twinOut, n
}

// θ* leaves the sets of a run with probability at most δ = 0.1. The test says no if the
// Clopper–Pearson interval at 1−2·10⁻⁶ is above δ, which happens to a policy that is right with
// probability at most 10⁻⁶; the twins must be found out by it.
func TestOFULCovers(t *testing.T) {
	const risk = 0.1
	above := func(out, n int) bool {
		lo, _, err := stats.ClopperPearson(out, n, 1-2e-6)
		if err != nil {
			t.Fatal(err)
		}
		return lo > risk
	}
	o := linear.OFULOptions{Lambda: 0.1, C: 1, Risk: risk, Split: true}
	whole := o
	whole.Split = false
	shrunk := func(by float64) func(*linear.OFUL, float64) float64 {
		return func(p *linear.OFUL, _ float64) float64 { _, r := p.Estimate(); return r * by }
	}
	nonPrivate := func(_ *linear.OFUL, growth float64) float64 {
		return linear.EllipsoidRadius(growth, o.Lambda, risk/3)
	}
	for _, c := range []struct {
		name string
		b    privacy.Budget
		o    linear.OFULOptions
		twin func(*linear.OFUL, float64) float64
	}{
		{"RS-OFUL; half the radius", privacy.None{}, whole, shrunk(0.5)},
		{"AdaC-OFUL at 1; a third of the radius", privacy.ZCDP{Rho: 1}, o, shrunk(1. / 3)},
		{"AdaC-OFUL at 0.01; no term for privacy", privacy.ZCDP{Rho: 0.01}, o, nonPrivate},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, twin, n := coverOFUL(t, c.b, c.o, c.twin)
			t.Logf("θ* left %d of %d runs, the twin's sets %d", out, n, twin)
			if above(out, n) {
				t.Errorf("θ* left %d of %d runs, which δ = %v does not allow", out, n, risk)
			}
			if !testing.Short() && !above(twin, n) {
				t.Errorf("θ* left the twin's sets in %d of %d runs only: it was not found out", twin, n)
			}
		})
	}
}

func TestOFULErrors(t *testing.T) {
	good := linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.001}
	with := func(f func(*linear.OFULOptions)) linear.OFULOptions { o := good; f(&o); return o }
	nan, inf := math.NaN(), math.Inf(1)
	type row struct {
		dim, horizon int
		b            privacy.Budget
		o            linear.OFULOptions
		want         string
	}
	rho := privacy.ZCDP{Rho: 1}
	rows := []row{
		{0, 1, rho, good, "dim is 0"}, {-1, 1, rho, good, "dim is -1"},
		{1 << 20, 1, rho, good, "dim is 1048576"},
		{1, -1, rho, good, "horizon is -1"},
		{1, 1, nil, good, "no budget"}, {1, 1, privacy.Pure{Epsilon: 1}, good, "never pure"},
		{1, 1, privacy.ZCDP{Rho: nan}, good, "rho is NaN"},
		{1, 1, rho, linear.OFULOptions{Lambda: 1, Risk: 0.1, EveryRound: true}, "no budget"},
		{1, 1, privacy.None{}, with(func(o *linear.OFULOptions) { o.EveryRound = true }), "c is 1, must be 0"},
		{1, 1, privacy.None{}, with(func(o *linear.OFULOptions) { o.EveryRound, o.C = true, nan }), "c is NaN"},
		{1, 1, rho, with(func(o *linear.OFULOptions) { o.Printed = true }), "lambda0 is 0"},
	}
	for _, x := range []float64{0, -1, nan, inf, -inf, 1e-300, 1e300} {
		rows = append(rows, row{1, 1, rho, with(func(o *linear.OFULOptions) {
			o.Lambda = x
		}), fmt.Sprintf("lambda is %v", x)})
	}
	for _, x := range []float64{0, -1, nan, inf} {
		rows = append(rows, row{1, 1, rho, with(func(o *linear.OFULOptions) {
			o.C = x
		}), fmt.Sprintf("c is %v", x)})
	}
	for _, x := range []float64{0, -1, nan, inf, 1, 2} {
		rows = append(rows, row{1, 1, rho, with(func(o *linear.OFULOptions) {
			o.Risk = x
		}), fmt.Sprintf("risk is %v", x)})
	}
	for _, x := range []float64{-1, nan, inf} {
		rows = append(rows, row{1, 1, rho, with(func(o *linear.OFULOptions) {
			o.Lambda0 = x
		}), fmt.Sprintf("lambda0 is %v", x)}, row{1, 1, rho, with(func(o *linear.OFULOptions) {
			o.Greed = x
		}), fmt.Sprintf("greed is %v, must be between 0 and 1", x)},
			row{1, 1, rho, with(func(o *linear.OFULOptions) {
				o.Norm = x
			}), fmt.Sprintf("norm is %v, must be above 0", x)})
	}
	for _, r := range rows {
		p, err := linear.NewOFUL(r.dim, r.horizon, r.b, r.o)
		if err == nil || !strings.HasPrefix(err.Error(), "oful: ") ||
			!strings.Contains(err.Error(), r.want) || strings.Contains(err.Error(), "\n") || p != nil {
			t.Errorf("dim %d, horizon %d, budget %v, %+v: %v, want an error with %q", r.dim,
				r.horizon, r.b, r.o, err, r.want)
		}
	}
}

// There is no error for decision sets that break the contract, and no panic either; V
// stays what it was.
func TestOFULBadSets(t *testing.T) {
	for _, d := range []int{2, 3} {
		p := oful(t, d, 10, privacy.ZCDP{Rho: 1}, linear.OFULOptions{Lambda: 1, C: 0.01, Risk: 0.1})
		nan := make([]float64, d)
		nan[0] = math.NaN()
		inf := make([]float64, 2*d)
		inf[0], inf[d] = math.Inf(1), math.Inf(-1)
		for _, a := range [][]float64{nil, {}, {1}, nan, inf} {
			if c := p.Choose(a); c.Action != 0 || p.Due() >= 0 {
				t.Errorf("d = %d: chose %+v of %v; due is %d", d, c, a, p.Due())
			}
		}
		if c := p.Choose(append(nan, inf[:d]...)); c.Slot != 0 {
			t.Errorf("slot is %d", c.Slot)
		}
		p.Learn(privacy.ReleasedVector{})
		theta, r := p.Estimate()
		if p.Updates() != 0 || !(r > 0) || dot(theta, theta) != 0 || p.Covers(nil) {
			t.Errorf("d = %d: %v ± %v after nothing", d, theta, r)
		}
		a := make([]float64, d+1) // one action and something left over
		a[0], a[d] = 0.5, 9
		if c := p.Choose(a); c.Action != 0 || p.Due() != 0 {
			t.Errorf("d = %d: chose %+v of one; due is %d", d, c, p.Due())
		}
	}
	// Budgets at the edge of the numbers.
	for _, rho := range []float64{1e-300, 1e300} {
		p := oful(t, 2, min(1<<62, math.MaxInt/2), privacy.ZCDP{Rho: rho},
			linear.OFULOptions{Lambda: 1e-12, C: 1, Risk: 1e-300})
		cur, rng := newFeatureSlot(p, 2, rand.New(rand.NewPCG(1, 1))), rand.New(rand.NewPCG(1, 1))
		a := make([]float64, 6)
		for range 100 {
			if p.Due() >= 0 {
				p.Learn(cur.release(t, p.Mechanism()))
			}
			sphere(a, 2, 1, rng)
			c := p.Choose(a)
			cur.add(a[2*c.Action:][:2], 1)
		}
		if theta, r := p.Estimate(); math.IsNaN(r) || math.IsInf(r, 0) ||
			math.IsNaN(dot(theta, theta)) || p.Updates() < 3 {
			t.Errorf("ρ = %v: %v ± %v after %d updates", rho, theta, r, p.Updates())
		}
	}
}

func TestOFULAllocatesNothing(t *testing.T) {
	p := oful(t, 3, 1000, privacy.ZCDP{Rho: 1}, linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.1})
	a := make([]float64, 30)
	sphere(a, 3, 1, rand.New(rand.NewPCG(1, 1)))
	if n := testing.AllocsPerRun(1000, func() { p.Due(); p.Choose(a) }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}
