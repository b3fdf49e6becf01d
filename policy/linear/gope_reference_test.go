package linear_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/design"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// onAxes is [Azize and Basu 2024, Algorithm 2] written from its text for the actions e_1, …, e_K of
// ℝ^K, of which everything is known without a design: of k survivors π is uniform, V = T·I on their
// span with T = ⌈c/k⌉, and g² = 1/T. It makes the rewards one by one. A twin has one mistake.
type onAxes struct {
	rho, risk  float64 // ρ = 0 is none
	corrected  bool
	sums       bool // AdaC-GOPE-Var
	own        bool // its own phases
	literal    bool
	twin       string
	rewards    *rand.Rand
	noise      *rand.Rand
	ell, K     int
	alive      []int
	sum, plays []float64
	sd         float64 // of the noise in the coordinates where it is round
	T          int
}

func (r *onAxes) phase() []policy.Play {
	if len(r.alive) == 1 {
		return []policy.Play{{Arm: r.alive[0], Rounds: policy.Forever}}
	}
	r.ell++
	d, k, l := float64(r.K), float64(len(r.alive)), float64(r.ell)
	actions := d
	if r.twin == "K of the survivors" {
		actions = k
	}
	if r.twin == "d of the span" {
		d = k
	}
	risk := r.risk / (actions * l * (l + 1))
	if r.twin == "phases from 0" {
		risk = r.risk / (actions * l * l)
	}
	m, root := d, 1.
	if r.own {
		m, root = k, math.Sqrt(k)
	}
	inner := math.Log(2 / risk)
	if r.twin == "f of OFUL" {
		inner = math.Log(1 / risk)
	}
	f := m + 2*math.Sqrt(m*inner) + 2*inner
	if r.corrected {
		f = 2 * math.Log(4/risk)
	}
	beta := math.Exp2(-l)
	c := 8 * d / (beta * beta) * math.Log(4/risk)
	if r.rho > 0 {
		c += 2 * d / beta * root * math.Sqrt(2/r.rho*f)
	}
	r.T = int(math.Ceil(c / k))
	r.sd = 0
	if r.rho > 0 {
		g2 := 1 / float64(r.T)
		switch {
		case r.sums:
			g2 = 1
		case r.twin == "g not squared":
			g2 = math.Sqrt(g2)
		case r.twin == "weights of the first design":
			g2 = k / (c * d)
		}
		r.sd = math.Sqrt(2 / r.rho * g2)
		if r.literal {
			r.sd = math.Sqrt(max(2*d/(r.rho*c), 2/r.rho*g2))
		}
		if r.twin == "half the noise" {
			r.sd /= 2
		}
	}
	var plays []policy.Play
	for _, a := range r.alive {
		plays = append(plays, policy.Play{Arm: a, Rounds: r.T, Release: true})
	}
	return plays
}

// end plays the phase, releases it and eliminates. It returns what is released.
func (r *onAxes) end(theta []float64) []float64 {
	release := make([]float64, r.K)
	estimate := make([]float64, r.K)
	for _, a := range r.alive {
		if r.twin != "rewards of former phases" {
			r.sum[a], r.plays[a] = 0, 0
		}
		for range r.T {
			r.sum[a] += sign(r.rewards, theta[a])
			r.plays[a]++
		}
		xi := 0.
		if r.sd > 0 {
			xi = r.sd * r.noise.NormFloat64()
		}
		if !r.sums {
			xi *= math.Sqrt(float64(r.T)) // V^{1/2}N
		}
		release[a] = r.sum[a] + xi
		estimate[a] = release[a] / r.plays[a]
		if r.twin == "a reward counted twice" {
			estimate[a] *= 2
		}
	}
	top := math.Inf(-1)
	for _, a := range r.alive {
		top = max(top, estimate[a])
	}
	width := 2 * math.Exp2(-float64(r.ell))
	if r.twin == "width β" {
		width /= 2
	}
	var kept []int
	for _, a := range r.alive {
		if top-estimate[a] <= width {
			kept = append(kept, a)
		}
	}
	r.alive = kept
	return release
}

// agrees runs the policy on what the reference releases, and says where they part.
func agrees(t *testing.T, seed uint64, k int, o linear.GOPEOptions, rho float64, twin string) error {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 41))
	theta := onSphere(rng, 1, k)[0]
	actions := make([][]float64, k)
	ref := &onAxes{
		rho: rho, risk: o.Risk, corrected: o.Corrected, sums: o.Var, own: o.VarPhases == 1,
		literal: o.Literal, twin: twin, K: k,
		rewards: rng, noise: rand.New(rand.NewPCG(seed, 42)), sum: make([]float64, k),
		plays: make([]float64, k),
	}
	for i := range actions {
		actions[i] = make([]float64, k)
		actions[i][i] = 1
		ref.alive = append(ref.alive, i)
	}
	var b privacy.Budget = privacy.None{}
	if rho > 0 {
		b = privacy.ZCDP{Rho: rho}
	}
	p := gope(t, actions, b, o)
	var released privacy.ReleasedVector
	for played := 0; played < 100_000; {
		want, got := ref.phase(), p.Next(released)
		if !slices.Equal(got.Plays, want) {
			return fmt.Errorf("phase %d: plays %v, the reference has %v", ref.ell, got.Plays, want)
		}
		if want[0].Rounds == policy.Forever {
			return nil
		}
		var sigma float64
		switch m := p.Mechanism().(type) {
		case privacy.Elliptic:
			sigma = m.Sigma()
		case privacy.Sums:
			sigma = m.Sigma
		}
		if math.Abs(sigma-ref.sd) > 1e-12*ref.sd {
			return fmt.Errorf("phase %d: σ is %v, the reference has %v", ref.ell, sigma, ref.sd)
		}
		played += got.Rounds()
		released = sealVector(t, p.Mechanism(), got.Rounds(), ref.end(theta))
	}
	return nil
}

var axesOptions = []linear.GOPEOptions{
	{Risk: 0.001}, {Risk: 0.1, Corrected: true}, {Risk: 0.05, Literal: true},
	{Risk: 0.001, Var: true}, {Risk: 0.01, Var: true, VarPhases: 1},
	{Risk: 0.01, Var: true, Corrected: true}, {Risk: 0.01, Var: true, VarPhases: 1, Corrected: true},
}

// The same plays, lengths of phases and noise as the reference, for the same rewards and the same
// noise, also where what is left does not span. A reference with any one mistake is told apart.
func TestGOPEOnAxes(t *testing.T) {
	for seed := range uint64(6) {
		for i, o := range axesOptions {
			for _, rho := range []float64{0, 0.01, 1} {
				if err := agrees(t, seed, 2+int(seed+uint64(i))%4, o, rho, ""); err != nil {
					t.Errorf("seed %d, %+v, ρ = %v: %v", seed, o, rho, err)
				}
			}
		}
	}
	for _, twin := range []string{"K of the survivors", "d of the span", "phases from 0",
		"f of OFUL", "g not squared", "weights of the first design", "half the noise",
		"rewards of former phases", "a reward counted twice", "width β"} {
		caught := false
		for seed := uint64(0); seed < 20 && !caught; seed++ {
			caught = agrees(t, seed, 5, linear.GOPEOptions{Risk: 0.001}, 0.01, twin) != nil
		}
		if !caught {
			t.Errorf("a reference with %q is not told apart", twin)
		}
	}
}

// crowd is a random set of different actions in a subspace, of different lengths.
func crowd(t *rapid.T) ([][]float64, *rand.Rand) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
	d, k := rapid.IntRange(1, 5).Draw(t, "d"), rapid.IntRange(2, 12).Draw(t, "K")
	span := rapid.IntRange(1, d).Draw(t, "span")
	actions := make([][]float64, k)
	for i := range actions {
		x := make([]float64, d)
		for j := range span {
			x[j] = rng.NormFloat64()
		}
		norm := math.Sqrt(dot(x, x)) / (0.05 + 0.95*rng.Float64())
		for j := range x {
			x[j] /= norm
		}
		actions[i] = x
	}
	return actions, rng
}

// [Azize and Basu 2024, Theorem 13 and Corollary 1], without chance: every survivor has ‖a‖² ≤
// d/c_ℓ, and the two halves of its deviation, with the noise that the phase has, are at most β_ℓ
// together. With c_ℓ as printed, not lengthened by G/d, a crude design breaks it.
func TestGOPEPredictsWellEnough(t *testing.T) {
	short := 0
	property := func(t *rapid.T) {
		actions, rng := crowd(t)
		d, k := len(actions[0]), len(actions)
		rho := math.Exp(rapid.Float64Range(-9, 5).Draw(t, "log ρ"))
		o := linear.GOPEOptions{Risk: 0.01, Tolerance: rapid.SampledFrom([]float64{0, 1e-6, 0.1,
			1}).Draw(t, "tolerance"),
			Literal: rapid.Bool().Draw(t, "literal"), Corrected: rapid.Bool().Draw(t, "corrected")}
		if rapid.Bool().Draw(t, "var") {
			o.Var, o.VarPhases, o.Literal = true, 1, false
		}
		p, err := linear.NewGOPE(actions, 1000, privacy.ZCDP{Rho: rho}, o)
		if err != nil {
			t.Fatal(err)
		}
		b := p.Next(privacy.ReleasedVector{})
		for ell := 1; ell < 5 && len(p.Surviving()) > 1; ell++ {
			counts := make([]int, k)
			total := 0
			for _, play := range b.Plays {
				counts[play.Arm] = play.Rounds
				total += play.Rounds
			}
			norms, err := design.Norms(actions, counts)
			if err != nil {
				t.Fatal(err)
			}
			risk := linear.PhaseRisk(o.Risk, k, ell)
			m := d
			if o.Var {
				m = len(b.Plays)
			}
			f := linear.PhaseNormal(m, risk)
			if o.Corrected {
				f = 2 * math.Log(4/risk)
			}
			root := math.Sqrt(2 / rho)
			if o.Var {
				root *= math.Sqrt(float64(m))
			}
			c, beta := linear.PhaseLength(d, ell, risk, f, root), math.Exp2(-float64(ell))
			worst := 0.
			for _, a := range p.Surviving() {
				sd := 0. // of the noise in this prediction
				switch m := p.Mechanism().(type) {
				case privacy.Elliptic:
					sd = m.Sigma() * math.Sqrt(norms[a])
				case privacy.Sums:
					sd = m.Sigma * math.Sqrt(alongSums(t, actions, counts, actions[a]))
				}
				dev := math.Sqrt(2*math.Log(4/risk)*norms[a]) + sd*math.Sqrt(f)
				if dev > beta*(1+1e-7) {
					t.Fatalf("phase %d: action %d is predicted to %v, must be to %v", ell, a, dev, beta)
				}
				worst = max(worst, norms[a])
			}
			if worst > float64(d)/c*(1+1e-7) {
				t.Fatalf("phase %d: the largest norm is %v, must be at most %v", ell, worst, float64(d)/c)
			}
			// The broken twin plays c rounds in the same proportions.
			if worst*float64(total)/c > 1.1*float64(d)/c {
				short++
			}
			n := d
			if o.Var {
				n = k
			}
			x := make([]float64, n)
			for i := range x {
				x[i] = float64(total) * (rng.Float64() - 0.5)
			}
			r, err := privacy.NewLedger().ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: total, Value: x})
			if err != nil {
				t.Fatal(err)
			}
			b = p.Next(r)
		}
	}
	rapid.Check(t, property)
	// What is caught is no matter of luck: these draws are fixed.
	for seed := range 2000 {
		rapid.Custom(func(t *rapid.T) bool { property(t); return true }).Example(seed)
	}
	if short == 0 {
		t.Error("no design was so crude that c_ℓ alone is too short: the test cannot fail")
	}
}

// alongSums is Σ_b ⟨a, V⁺b⟩² over the actions that are played, by the eigenvectors of V.
func alongSums(t *rapid.T, actions [][]float64, counts []int, a []float64) (s float64) {
	d := len(a)
	v := mat.NewSymDense(d, nil)
	for i, n := range counts {
		v.SymRankOne(v, float64(n), mat.NewVecDense(d, actions[i]))
	}
	var eig mat.EigenSym
	if !eig.Factorize(v, true) {
		t.Fatal("no eigenvalues")
	}
	var q mat.Dense
	eig.VectorsTo(&q)
	values := eig.Values(nil)
	for i, n := range counts {
		x := 0.
		for k, l := range values {
			if n > 0 && l > 1e-10*values[d-1] {
				x += mat.Dot(q.ColView(k), mat.NewVecDense(d, a)) * mat.Dot(q.ColView(k),
					mat.NewVecDense(d, actions[i])) / l
			}
		}
		s += x * x
	}
	return s
}

// The estimate solves Vθ̃ = x on the span, for vectors of x there and for sums, against Gaussian
// elimination in coordinates of the span.
func TestGOPEEstimate(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	for _, o := range []linear.GOPEOptions{{}, {Var: true}} {
		flat := onSphere(rng, 7, 2)
		into := [2][]float64{{0.6, 0, 0.8}, {0, 1, 0}} // orthonormal
		actions := make([][]float64, len(flat))
		for i, y := range flat {
			actions[i] = make([]float64, 3)
			for j := range 3 {
				actions[i][j] = y[0]*into[0][j] + y[1]*into[1][j]
			}
		}
		p := gope(t, actions, privacy.ZCDP{Rho: 1}, o)
		if p.Rank() != 2 {
			t.Fatalf("rank %d", p.Rank())
		}
		b := p.Next(privacy.ReleasedVector{})
		var v [2][2]float64
		var x [2]float64
		sums, vector := make([]float64, 7), make([]float64, 3)
		for _, play := range b.Plays {
			a, n := flat[play.Arm], float64(play.Rounds)
			s := 100 * rng.NormFloat64()
			sums[play.Arm] = s
			for i := range 2 {
				x[i] += s * a[i]
				for j := range 2 {
					v[i][j] += n * a[i] * a[j]
				}
			}
			for j, f := range actions[play.Arm] {
				vector[j] += s * f
			}
		}
		for i := range sums { // what was not played is not looked at
			if sums[i] == 0 {
				sums[i] = 1e9
			}
		}
		if o.Var {
			vector = sums
		}
		p.Next(sealVector(t, p.Mechanism(), b.Rounds(), vector))
		det := v[0][0]*v[1][1] - v[0][1]*v[1][0]
		c := [2]float64{(v[1][1]*x[0] - v[0][1]*x[1]) / det, (v[0][0]*x[1] - v[1][0]*x[0]) / det}
		for j, got := range p.Estimate() {
			near(t, "θ̃", got, c[0]*into[0][j]+c[1]*into[1][j], 1e-12)
		}
	}
}

// What other budgets ask for: 4b stands for 2/ρ in the noise and in the length of the phase.
func TestGOPEBudgets(t *testing.T) {
	actions := [][]float64{{1, 0}, {0, 1}}
	risk := 0.001 / 4
	f := 2 + 2*math.Sqrt(2*math.Log(2/risk)) + 2*math.Log(2/risk)
	for _, c := range []struct {
		b    privacy.Budget
		four float64 // 4b
		cost func(privacy.Loss) float64
		most float64
	}{
		{privacy.ZCDP{Rho: 0.5}, 2 / 0.5, privacy.Loss.ZCDP, 0.5},
		{privacy.Renyi{Alpha: 3, Epsilon: 0.7}, 4 * 3 / 1.4, func(l privacy.Loss) float64 {
			return l.Renyi(3)
		}, 0.7},
		{privacy.Approx{Epsilon: 0.5, Delta: 1e-6}, 4 * 2 / 0.25 * math.Log(1.25e6),
			func(l privacy.Loss) float64 {
				return l.Approx(1e-6)
			}, 0.5},
	} {
		for _, sums := range []bool{false, true} {
			p := gope(t, actions, c.b, linear.GOPEOptions{Var: sums})
			b := p.Next(privacy.ReleasedVector{})
			// d = 2, β = 1/2
			rounds := int(math.Ceil((64*2/4*2*math.Log(4/risk) + 8*math.Sqrt(c.four*f)) / 2))
			if b.Plays[0].Rounds != rounds {
				t.Errorf("%v: %d rounds, want %d", c.b, b.Plays[0].Rounds, rounds)
			}
			sigma := 0.
			switch m := p.Mechanism().(type) {
			case privacy.Elliptic:
				sigma = m.Sigma() * math.Sqrt(float64(rounds))
			case privacy.Sums:
				sigma = m.Sigma
			}
			near(t, fmt.Sprint(c.b, " σ²/4b"), sigma*sigma/c.four, 1, 1e-12)
			if got := c.cost(p.Mechanism().Loss()); !(got <= c.most*(1+1e-9)) {
				t.Errorf("%v costs %v", c.b, got)
			}
		}
	}
}

// A policy is what its transcript makes it: from the text of the releases a new one comes to the
// same survivors, estimate and phase.
func TestGOPEFromTranscript(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	actions := onSphere(rng, 10, 3)
	theta := onSphere(rng, 1, 3)[0]
	for _, o := range axesOptions {
		const rho = 0.1
		var text bytes.Buffer
		ledger := privacy.NewLedger(privacy.WithTranscript(&text))
		p := gope(t, actions, privacy.ZCDP{Rho: rho}, o)
		b := p.Next(privacy.ReleasedVector{})
		for ell := range 5 {
			if b.Plays[0].Rounds == policy.Forever {
				break
			}
			v := make([]float64, 3)
			if o.Var {
				v = make([]float64, 10)
			}
			for _, play := range b.Plays {
				s := float64(play.Rounds)*dot(actions[play.Arm], theta) + 10*rng.NormFloat64()
				if o.Var {
					v[play.Arm] = s
					continue
				}
				for i, f := range actions[play.Arm] {
					v[i] += s * f
				}
			}
			r, err := ledger.ReleaseVector(ell, p.Mechanism(), &privacy.Vector{N: b.Rounds(), Value: v})
			if err != nil {
				t.Fatal(err)
			}
			b = p.Next(r)
		}
		again, restored := gope(t, actions, privacy.ZCDP{Rho: rho}, o), privacy.NewLedger()
		copied := again.Next(privacy.ReleasedVector{})
		for lines := bytes.NewBuffer(text.Bytes()); ; {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				break
			}
			r, err := restored.RestoreVector(line)
			if err != nil {
				t.Fatal(err)
			}
			copied = again.Next(r)
		}
		if !slices.Equal(copied.Plays, b.Plays) ||
			!slices.Equal(again.Surviving(), p.Surviving()) || !slices.Equal(again.Estimate(), p.Estimate()) ||
			again.Phase() != p.Phase() || again.Phase() == 1 {
			t.Errorf("%+v: %v in phase %d, was %v in phase %d", o, copied.Plays, again.Phase(),
				b.Plays, p.Phase())
		}
		if got, want := restored.Total().ZCDP(), ledger.Total().ZCDP(); got != want || got > rho*(1+1e-9) {
			t.Errorf("%+v: costs %v, was %v", o, got, want)
		}
	}
}

// Whatever is released, someone is left.
func TestGOPETakesAnyRelease(t *testing.T) {
	for _, x := range []float64{math.MaxFloat64, -math.MaxFloat64, 1e300, 5e-324} {
		for _, sums := range []bool{false, true} {
			p := gope(t, [][]float64{{-1, 0}, {0.8, 0.6}, {0.6, 0.8}}, privacy.ZCDP{Rho: 1},
				linear.GOPEOptions{Var: sums})
			p.Next(privacy.ReleasedVector{})
			v := []float64{x, x}
			if sums {
				v = []float64{-x, x, x}
			}
			p.Next(sealVector(t, p.Mechanism(), 1, v))
			if len(p.Surviving()) == 0 {
				t.Errorf("nobody is left after %v", v)
			}
		}
	}
	for _, sums := range []bool{false, true} { // θ̃ is beyond what a float64 holds
		p := gope(t, [][]float64{{1e-10, 0}, {0, 1e-10}}, privacy.ZCDP{Rho: 1}, linear.GOPEOptions{Var: sums})
		p.Next(privacy.ReleasedVector{})
		if b := p.Next(sealVector(t, p.Mechanism(), 1,
			[]float64{-1e308, 1e308})); len(p.Surviving()) != 1 || b.Plays[0].Rounds != policy.Forever {
			t.Errorf("left are %v", p.Surviving())
		}
	}
	// What is not this phase's release changes nothing.
	p := gope(t, [][]float64{{1, 0}, {0, 1}}, privacy.ZCDP{Rho: 1}, linear.GOPEOptions{})
	before := slices.Clone(p.Next(privacy.ReleasedVector{}).Plays)
	if after := p.Next(sealVector(t, p.Mechanism(), 1, []float64{1, 2, 3})).Plays; p.Phase() != 1 ||
		!slices.Equal(before, after) {
		t.Errorf("a release of three numbers leads to %v in phase %d", after, p.Phase())
	}
}
