package linear_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/design"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

func gope(t testing.TB, actions [][]float64, b privacy.Budget, o linear.GOPEOptions) *linear.GOPE {
	t.Helper()
	if o.Risk == 0 {
		o.Risk = 0.001
	}
	p, err := linear.NewGOPE(actions, 1e7, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sealVector(t testing.TB, m privacy.Mechanism, n int, x []float64) privacy.ReleasedVector {
	t.Helper()
	r, err := privacy.NewLedger().ReleaseVector(0, m, &privacy.Vector{N: n, Value: x})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func onSphere(rng *rand.Rand, k, d int) [][]float64 {
	flat := make([]float64, k*d)
	sphere(flat, d, 1, rng)
	out := make([][]float64, k)
	for i := range out {
		out[i] = flat[i*d : (i+1)*d]
	}
	return out
}

// The values that another program computed: d = 3, K = 10, δ = 0.001.
func TestGOPEVectors(t *testing.T) {
	for _, c := range []struct {
		ell                int
		risk, log, f, free float64
		length             [4]float64 // at ρ = 1, 0.1, 0.01, 0.001
		variance           float64    // printed, 2d/(ρc), at ρ = 1
	}{
		{1, 5e-5, 11.289782, 35.469777, 1083.8191,
			[4]float64{1184.890, 1403.433, 2094.527, 4279.957}, 5.063762e-3},
		{2, 1.6667e-5, 12.388394, 38.237138, 4757.1434,
			[4]float64{4967.022, 5420.839, 6855.933, 11394.099}, 1.207967e-3},
		{3, 8.3333e-6, 13.081541, 39.969439, 20093.2476,
			[4]float64{20522.409, 21450.374, 24384.858, 33664.510}, 2.923634e-4},
	} {
		risk := linear.PhaseRisk(0.001, 10, c.ell)
		near(t, "δ", risk/c.risk, 1, 5e-5)
		near(t, "log(4/δ)", math.Log(4/risk), c.log, 5e-7)
		f := linear.PhaseNormal(3, risk)
		near(t, "f", f, c.f, 5e-7)
		near(t, "c without privacy", linear.PhaseLength(3, c.ell, risk, f, 0), c.free, 5e-5)
		for i, rho := range []float64{1, 0.1, 0.01, 0.001} {
			near(t, fmt.Sprint("c at ρ = ", rho), linear.PhaseLength(3, c.ell, risk, f,
				math.Sqrt(2/rho)), c.length[i], 5e-4)
		}
		near(t, "variance", 6/linear.PhaseLength(3, c.ell, risk, f, math.Sqrt2)/c.variance, 1, 2e-7)
	}
	// The policy has the printed variance, with 10 actions as long as nobody is dropped, and all of
	// the printed length.
	p := gope(t, onSphere(rand.New(rand.NewPCG(1, 2)), 10, 3), privacy.ZCDP{Rho: 1},
		linear.GOPEOptions{Literal: true})
	b := p.Next(privacy.ReleasedVector{})
	for _, c := range [3][2]float64{{1184.890, 5.063762e-3}, {4967.022, 1.207967e-3},
		{20522.409, 2.923634e-4}} {
		sigma := p.Mechanism().(privacy.Elliptic).Sigma()
		near(t, "variance", sigma*sigma/c[1], 1, 2e-7)
		if n := float64(b.Rounds()); n < c[0] || n > 1.001*c[0]+6 {
			t.Errorf("%v rounds, c is %v", n, c[0])
		}
		b = p.Next(sealVector(t, p.Mechanism(), b.Rounds(), make([]float64, 3)))
	}
}

// By hand: two unit vectors in the plane, δ = 0.001, no privacy. The design is uniform,
// log(4/δ_{2,1}) = log 16000 and c_1 = 64·log 16000 = 619.54: 310 plays of each. The next phase has
// c_2 = 256·log 48000 = 2759.4, 1380 plays.
func TestGOPEByHand(t *testing.T) {
	for _, c := range []struct {
		x    [2]float64 // the release
		kept []int
	}{
		{[2]float64{310 * 0.5, 310 * -0.4}, []int{0, 1}}, // 0.9 ≤ 2β = 1
		{[2]float64{310 * 0.5, 310 * -0.51}, []int{0}},
		{[2]float64{310 * -0.6, 310 * 0.5}, []int{1}},
		{[2]float64{310 * 0.5, 310 * -0.5}, []int{0, 1}}, // equality keeps
	} {
		p := gope(t, [][]float64{{1, 0}, {0, 1}}, privacy.None{}, linear.GOPEOptions{})
		want := []policy.Play{{Arm: 0, Rounds: 310, Release: true}, {Arm: 1, Rounds: 310, Release: true}}
		if b := p.Next(privacy.ReleasedVector{}); !slices.Equal(b.Plays, want) {
			t.Fatalf("first batch %+v", b.Plays)
		}
		b := p.Next(sealVector(t, p.Mechanism(), 620, c.x[:]))
		if !slices.Equal(p.Surviving(), c.kept) {
			t.Errorf("release %v: survivors %v, want %v", c.x, p.Surviving(), c.kept)
		}
		if len(c.kept) == 1 {
			if !slices.Equal(b.Plays, []policy.Play{{Arm: c.kept[0], Rounds: policy.Forever}}) {
				t.Errorf("last batch %+v", b.Plays)
			}
		} else if b.Plays[0].Rounds != 1380 || b.Plays[1].Rounds != 1380 {
			t.Errorf("second batch %+v", b.Plays)
		}
		if theta := p.Estimate(); math.Abs(theta[0]-c.x[0]/310) > 1e-12 ||
			math.Abs(theta[1]-c.x[1]/310) > 1e-12 {
			t.Errorf("θ̃ = %v", theta)
		}
	}
}

// paperPhase is one phase as the paper writes it, reward by reward: the survivors, from the design
// and the noise in the coordinates that V^{1/2} makes round.
func paperPhase(t testing.TB, actions [][]float64, alive []int, counts map[int]int, theta []float64,
	sd float64, beta float64, rng *rand.Rand, noise []float64) (release []float64, kept []int) {
	t.Helper()
	d := len(theta)
	v, b := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
	for _, a := range alive {
		x := mat.NewVecDense(d, actions[a])
		for range counts[a] {
			r := sign(rng, dot(actions[a], theta))
			v.SymRankOne(v, 1, x)
			b.AddScaledVec(b, r, x)
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(v, true) {
		t.Fatal("no eigenvalues")
	}
	var q mat.Dense
	eig.VectorsTo(&q)
	half, invHalf := mat.NewDense(d, d, nil), mat.NewDense(d, d, nil)
	for k, l := range eig.Values(nil) {
		for i := range d {
			for j := range d {
				half.Set(i, j, half.At(i, j)+math.Sqrt(l)*q.At(i, k)*q.At(j, k))
				invHalf.Set(i, j, invHalf.At(i, j)+q.At(i, k)*q.At(j, k)/math.Sqrt(l))
			}
		}
	}
	n := mat.NewVecDense(d, nil)
	for i := range d {
		n.SetVec(i, sd*noise[i])
	}
	var estimate, shaped, inv mat.VecDense
	if err := estimate.SolveVec(v, b); err != nil {
		t.Fatal(err)
	}
	inv.MulVec(invHalf, n)
	estimate.AddVec(&estimate, &inv)
	shaped.MulVec(half, n)
	shaped.AddVec(&shaped, b)
	release = slices.Clone(shaped.RawVector().Data)
	top := math.Inf(-1)
	for _, a := range alive {
		top = max(top, dot(actions[a], estimate.RawVector().Data))
	}
	for _, a := range alive {
		if top-dot(actions[a], estimate.RawVector().Data) <= 2*beta {
			kept = append(kept, a)
		}
	}
	return release, kept
}

// The policy against the paper: same plays, same survivors, for what the same rewards and the
// same noise release.
func TestGOPEIsThePaper(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 4))
		d := 2 + int(seed%2)
		actions := onSphere(rng, 6, d)
		theta := onSphere(rng, 1, d)[0]
		const rho = 5
		p := gope(t, actions, privacy.ZCDP{Rho: rho},
			linear.GOPEOptions{Literal: seed%3 == 1, Corrected: seed%3 == 2})
		alive := []int{0, 1, 2, 3, 4, 5}
		var released privacy.ReleasedVector
		// the inverses below need survivors that span
		for ell := 1; ell <= 3 && len(alive) >= d; ell++ {
			b := p.Next(released)
			risk := 0.001 / (6 * float64(ell) * float64(ell+1))
			f := float64(d) + 2*math.Sqrt(float64(d)*math.Log(2/risk)) + 2*math.Log(2/risk)
			if seed%3 == 2 {
				f = 2 * math.Log(4/risk)
			}
			beta := math.Pow(2, -float64(ell))
			c := 8*float64(d)/(beta*beta)*math.Log(4/risk) + 2*float64(d)/beta*math.Sqrt(2/float64(rho)*f)
			counts, total := map[int]int{}, 0
			for _, play := range b.Plays {
				if !slices.Contains(alive, play.Arm) || !play.Release {
					t.Fatalf("seed %d, phase %d: %+v is played, alive are %v", seed, ell, play, alive)
				}
				counts[play.Arm], total = play.Rounds, total+play.Rounds
			}
			// T = ⌈c·π·G/d⌉ with G/d from 1 to 1.001, and a support of at most d(d+1)/2.
			if n := len(b.Plays); n > d*(d+1)/2 || float64(total) < c || float64(total) > 1.001*c+float64(n) {
				t.Fatalf("seed %d, phase %d: %d plays of %d actions, c = %v", seed, ell, total, n, c)
			}
			// The noise is calibrated to the g of what is played, measured here by another inverse.
			v := mat.NewSymDense(d, nil)
			for a, n := range counts {
				v.SymRankOne(v, float64(n), mat.NewVecDense(d, actions[a]))
			}
			g2 := 0.0
			for a := range counts {
				var x mat.VecDense
				if err := x.SolveVec(v, mat.NewVecDense(d, actions[a])); err != nil {
					t.Fatal(err)
				}
				g2 = max(g2, dot(actions[a], x.RawVector().Data))
			}
			sigma := p.Mechanism().(privacy.Elliptic).Sigma()
			variance := 2. / rho * g2
			if seed%3 == 1 {
				variance = max(variance, 2*float64(d)/(rho*c)) // as printed
			}
			near(t, "σ²", sigma*sigma/variance, 1, 1e-9)
			noise := make([]float64, d)
			for i := range noise {
				noise[i] = rng.NormFloat64()
			}
			var x []float64
			x, alive = paperPhase(t, actions, alive, counts, theta, math.Sqrt(variance), beta, rng, noise)
			released = sealVector(t, p.Mechanism(), total, x)
			p.Next(released)
			if got := p.Surviving(); !slices.Equal(got, alive) {
				t.Fatalf("seed %d, phase %d: survivors %v, the paper has %v", seed, ell, got, alive)
			}
			released = privacy.ReleasedVector{} // it was taken; the next call repeats the batch
		}
	}
}

// calibrated says what is wrong with the noise of a phase, for ρ: by the ledger's price, and by how
// far one reward of each played action can move the release, in the norm that the noise is round
// in. Whoever adds more noise than ρ needs says so with more.
func calibrated(actions [][]float64, plays []policy.Play, m privacy.Elliptic, rho float64, more bool) error {
	counts := make([]int, len(actions))
	for _, play := range plays {
		counts[play.Arm] = play.Rounds
	}
	norms, err := design.Norms(actions, counts)
	if err != nil {
		return err
	}
	variance, worst := m.Sigma()*m.Sigma(), 0.
	for a, n := range counts {
		if n > 0 {
			worst = max(worst, 2*norms[a]/variance) // (2‖a‖)²/2σ²
		}
	}
	cost := m.Loss().ZCDP()
	switch {
	case worst > rho*(1+1e-6):
		return fmt.Errorf("one reward costs %v of ρ = %v", worst, rho)
	case cost > rho*(1+1e-9):
		return fmt.Errorf("a release is charged %v of ρ = %v", cost, rho)
	case !more && cost < rho*(1-1e-9):
		return fmt.Errorf("a release is charged %v only of ρ = %v", cost, rho)
	}
	return nil
}

// For random sets, after random eliminations, and with crude designs, no release costs more than ρ,
// and without Literal none costs less. What is calibrated to something else than g² of what was
// played is caught.
func TestGOPENeverExceedsItsBudget(t *testing.T) {
	caught := map[string]int{"exact design": 0, "g not squared": 0, "uniform weights": 0, "sensitivity 1": 0}
	property := func(t *rapid.T) {
		actions, rng := crowd(t)
		d, k := len(actions[0]), len(actions)
		rho := math.Exp(rapid.Float64Range(-9, 5).Draw(t, "log ρ"))
		o := linear.GOPEOptions{Risk: 0.01, Literal: rapid.Bool().Draw(t, "literal"),
			Corrected: rapid.Bool().Draw(t, "corrected"),
			Tolerance: rapid.SampledFrom([]float64{0, 1e-6, 0.1, 1}).Draw(t, "tolerance"),
			Var:       rapid.Bool().Draw(t, "var")}
		p, err := linear.NewGOPE(actions, 1000, privacy.ZCDP{Rho: rho}, o)
		if err != nil {
			t.Fatal(err)
		}
		b := p.Next(privacy.ReleasedVector{})
		for range 4 {
			if len(p.Surviving()) == 1 {
				return
			}
			n := k
			switch m := p.Mechanism().(type) {
			case privacy.Sums:
				if cost := m.Loss().ZCDP(); math.Abs(cost/rho-1) > 1e-9 {
					t.Fatalf("a release of sums costs %v of ρ = %v", cost, rho)
				}
			case privacy.Elliptic:
				n = d
				if err := calibrated(actions, b.Plays, m, rho, o.Literal); err != nil {
					t.Fatal(err)
				}
				uniform := make([]int, k) // the weights of some other design on the same support
				for _, play := range b.Plays {
					uniform[play.Arm] = 1 + b.Rounds()/len(b.Plays)
				}
				other, err := privacy.NewElliptic(0, actions, uniform)
				if err != nil {
					t.Fatal(err)
				}
				for name, variance := range map[string]float64{
					"exact design":    2 / rho * float64(m.Rank()) / float64(b.Rounds()),
					"g not squared":   2 / rho * math.Sqrt(m.G2()),
					"uniform weights": 2 / rho * other.G2(),
					"sensitivity 1":   0.5 / rho * m.G2(),
				} {
					twin, err := m.WithSigma(math.Sqrt(variance))
					if err != nil {
						t.Fatal(err)
					}
					if calibrated(actions, b.Plays, twin, rho, name != "g not squared") != nil {
						caught[name]++
					}
				}
			}
			x := make([]float64, n)
			for i := range x {
				x[i] = 1e3 * rng.NormFloat64()
			}
			r, err := privacy.NewLedger().ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: 1, Value: x})
			if err != nil {
				t.Fatal(err)
			}
			b = p.Next(r)
		}
	}
	rapid.Check(t, property)
	// What is caught is no matter of luck: these draws are fixed.
	for seed := range 300 {
		rapid.Custom(func(t *rapid.T) bool { property(t); return true }).Example(seed)
	}
	for name, n := range caught {
		if n == 0 {
			t.Errorf("noise of %q was never caught: the test cannot fail", name)
		}
	}
}

// With exact predictions the best action stays, and after phase ℓ nobody's gap is above 4β_ℓ.
func TestGOPEGoodEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		actions := onSphere(rng, 8, 3)
		theta := onSphere(rng, 1, 3)[0]
		best := math.Inf(-1)
		for _, a := range actions {
			best = max(best, dot(a, theta))
		}
		p, err := linear.NewGOPE(actions, 1e6, privacy.None{}, linear.GOPEOptions{Risk: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		b := p.Next(privacy.ReleasedVector{})
		for ell := 1; ell < 6 && len(p.Surviving()) > 1; ell++ {
			x := make([]float64, 3)
			for _, play := range b.Plays {
				for i, f := range actions[play.Arm] {
					x[i] += float64(play.Rounds) * dot(actions[play.Arm], theta) * f
				}
			}
			r, err := privacy.NewLedger().ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: 1, Value: x})
			if err != nil {
				t.Fatal(err)
			}
			b = p.Next(r)
			left := math.Inf(-1)
			for _, a := range p.Surviving() {
				m := dot(actions[a], theta)
				left = max(left, m)
				if best-m > 2*math.Pow(2, -float64(ell))+1e-9 {
					t.Fatalf("phase %d: an action with gap %v survived", ell, best-m)
				}
			}
			if left != best {
				t.Fatalf("phase %d: the best action is gone", ell)
			}
		}
	})
}

// The same releases make the same plays.
func TestGOPEReplay(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	actions := onSphere(rng, 10, 3)
	for _, o := range []linear.GOPEOptions{{}, {Var: true}, {Var: true, VarPhases: 1}} {
		a, b := gope(t, actions, privacy.ZCDP{Rho: 1}, o), gope(t, actions, privacy.ZCDP{Rho: 1}, o)
		n := 3
		if o.Var {
			n = 10
		}
		var last privacy.ReleasedVector
		for range 5 {
			x, y := a.Next(last), b.Next(last)
			if !slices.Equal(x.Plays, y.Plays) {
				t.Fatal("two policies with the same transcript differ")
			}
			v := make([]float64, n)
			for i := range v {
				v[i] = 100 * rng.NormFloat64()
			}
			last = sealVector(t, privacy.Sums{Sigma: 1}, 1, v)
		}
	}
}

// Phases of their own are longer for noise on sums when more than d actions are played, and the
// printed ones are the same as AdaC-GOPE's.
func TestGOPEVarPhases(t *testing.T) {
	actions := onSphere(rand.New(rand.NewPCG(8, 8)), 30, 3)
	length := func(o linear.GOPEOptions) (n int) {
		b := gope(t, actions, privacy.ZCDP{Rho: 0.01}, o).Next(privacy.ReleasedVector{})
		for _, p := range b.Plays {
			n += p.Rounds
		}
		return n
	}
	plain, same, own := length(linear.GOPEOptions{}), length(linear.GOPEOptions{Var: true}),
		length(linear.GOPEOptions{Var: true, VarPhases: 1})
	if plain != same || own <= same {
		t.Errorf("first phases of %d, %d and %d plays", plain, same, own)
	}
}

// One action alone in its span, a budget that makes phases longer than any run, and d = 1.
func TestGOPEEdges(t *testing.T) {
	p := gope(t, [][]float64{{0.6, 0}, {-0.3, 0}, {0, 0}}, privacy.ZCDP{Rho: 1}, linear.GOPEOptions{})
	if p.Rank() != 1 {
		t.Errorf("rank %d", p.Rank())
	}
	b := p.Next(privacy.ReleasedVector{})
	if len(b.Plays) != 1 || b.Plays[0].Arm != 0 {
		t.Errorf("plays %+v, want the longest action alone", b.Plays)
	}
	p.Next(sealVector(t, p.Mechanism(), 1, []float64{0.36 * 1.5 * float64(b.Plays[0].Rounds), 0}))
	// θ̃ = 1.5, predictions 0.9, −0.45 and 0, width 1
	if got := p.Surviving(); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("survivors %v", got)
	}
	p = gope(t, [][]float64{{1}, {-1}}, privacy.ZCDP{Rho: 1e-300}, linear.GOPEOptions{})
	if b := p.Next(privacy.ReleasedVector{}); b.Rounds() < min(1<<49, math.MaxInt/8) {
		t.Errorf("at ρ = 1e-300 the first phase has %d rounds", b.Rounds())
	}
}

func TestGOPEErrors(t *testing.T) {
	good := [][]float64{{1, 0}, {0, 1}}
	for _, c := range []struct {
		actions [][]float64
		horizon int
		b       privacy.Budget
		o       linear.GOPEOptions
		want    string
	}{
		{nil, 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1}, "number of actions is 0"},
		{good[:1], 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1}, "number of actions is 1"},
		{[][]float64{{1, 0}, {1}}, 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1}, "action 2 has 1 features"},
		{[][]float64{{}, {}}, 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1}, "action 1 has 0 features"},
		{[][]float64{{1, 0}, {0, math.NaN()}}, 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1},
			"feature 2 of action 2 is NaN"},
		{[][]float64{{1, 0}, {0, math.Inf(-1)}}, 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1},
			"feature 2 of action 2 is -Inf"},
		{[][]float64{{1, 0}, {1, 1}}, 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1},
			"action 2 has norm 1.414"},
		{[][]float64{{1, 0}, {0, 1}, {1, math.Copysign(0, -1)}}, 1, privacy.None{},
			linear.GOPEOptions{Risk: 0.1}, "actions 1 and 3 are the same"},
		{good, 0, privacy.None{}, linear.GOPEOptions{Risk: 0.1}, "horizon is 0"},
		{good, 1, privacy.None{}, linear.GOPEOptions{}, "risk is 0"},
		{good, 1, privacy.None{}, linear.GOPEOptions{Risk: 1}, "risk is 1"},
		{good, 1, privacy.None{}, linear.GOPEOptions{Risk: math.NaN()}, "risk is NaN"},
		{good, 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1, VarPhases: 1}, "phases"},
		{good, 1, privacy.None{}, linear.GOPEOptions{Risk: 0.1, Tolerance: 2}, "tolerance is 2"},
		{good, 1, privacy.Pure{Epsilon: 1}, linear.GOPEOptions{Risk: 0.1}, "epsilon"},
		{good, 1, privacy.ZCDP{Rho: -1}, linear.GOPEOptions{Risk: 0.1}, "rho is -1"},
		{good, 1, privacy.Renyi{Alpha: 1e300, Epsilon: 1e-300}, linear.GOPEOptions{Risk: 0.1}, "sigma is +Inf"},
		{good, 1, privacy.Renyi{Alpha: 1e300, Epsilon: 1e-300},
			linear.GOPEOptions{Risk: 0.1, Var: true}, "sigma is +Inf"},
		{[][]float64{{0, 0}, {0, math.Copysign(0, -1)}}, 1, privacy.None{},
			linear.GOPEOptions{Risk: 0.1}, "actions 1 and 2 are the same"},
	} {
		if _, err := linear.NewGOPE(c.actions, c.horizon, c.b, c.o); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func ExampleNewGOPE() {
	p, err := linear.NewGOPE([][]float64{{1, 0}, {0, 1}, {0.8, 0.6}}, 100_000, privacy.ZCDP{Rho: 1},
		linear.GOPEOptions{Risk: 0.001})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := p.Next(privacy.ReleasedVector{})
	for _, play := range b.Plays {
		fmt.Println("action", play.Arm, "rounds", play.Rounds)
	}
	fmt.Printf("a release costs rho=%.6g\n", p.Mechanism().Loss().ZCDP())
	// Output:
	// action 0 rounds 354
	// action 1 rounds 354
	// a release costs rho=1
}

// Six phases in which nobody is dropped: the policy alone, without rewards.
func BenchmarkGOPE(b *testing.B) {
	for _, c := range []struct{ k, d int }{{10, 3}, {1000, 20}} {
		b.Run(fmt.Sprintf("K=%d,d=%d", c.k, c.d), func(b *testing.B) {
			actions := onSphere(rand.New(rand.NewPCG(1, 1)), c.k, c.d)
			v := make([]float64, c.d)
			b.ReportAllocs()
			for b.Loop() {
				p := gope(b, actions, privacy.ZCDP{Rho: 1}, linear.GOPEOptions{})
				var r privacy.ReleasedVector
				for range 6 {
					p.Next(r)
					r = sealVector(b, p.Mechanism(), 1, v)
				}
			}
		})
	}
}
