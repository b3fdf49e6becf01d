package bandit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

// TestRewardNoiseLaws holds the laws of a linear mean, one reward and sums, to the exact ones.
func TestRewardNoiseLaws(t *testing.T) {
	sd := testkit.Must(GaussianNoise(0.5))
	for _, m := range []float64{-1, -0.3, 0, 0.625, 1} {
		rs := []reference{{testkit.Must(sd.Law(m)), m, 0.25, func(n int) func(float64) float64 {
			return distuv.Normal{Mu: m * float64(n), Sigma: 0.5 * math.Sqrt(float64(n))}.CDF
		}}}
		rs = append(rs, reference{testkit.Must(SignNoise().Law(m)), m, 1 - m*m, lattice(-1, 1, (1-m)/2, 0, (1+m)/2)})
		for _, r := range rs {
			t.Run(r.law.String(), func(t *testing.T) {
				t.Parallel()
				if err := check(r, 20_000); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if _, err := SignNoise().Law(1.01); err == nil ||
		!strings.Contains(err.Error(), "the mean is 1.01, must be between -1 and 1") {
		t.Errorf("a mean of 1.01: %v", err)
	}
	if l := testkit.Must(SignNoise().Law(1 + 1e-12)); l.Mean() != 1 { // a unit vector times itself
		t.Errorf("mean %v", l.Mean())
	}
}

// TestContextualRewards holds rewards of contextual instances to the same laws, and to taking the
// same from the stream whatever the mean is.
func TestContextualRewards(t *testing.T) {
	for _, n := range []RewardNoise{SignNoise(), testkit.Must(GaussianNoise(0.5))} {
		for _, m := range []float64{-1, -0.3, 0, 0.625, 1} {
			s, at := noise.NewFast(5, 6), noise.NewFast(5, 6)
			x := make([]float64, 60_000)
			for i := range x {
				x[i] = n.draw(m, &s)
				n.draw(0.9, &at)
			}
			if s.Uint64() != at.Uint64() {
				t.Errorf("%v: what is drawn depends on the mean", n)
			}
			cdf := distuv.Normal{Mu: m, Sigma: 0.5}.CDF
			if n.bounded() {
				cdf = lattice(-1, 1, (1-m)/2, 0, (1+m)/2)(1)
			}
			if err := goodness(x, cdf); err != nil {
				t.Errorf("%v of mean %v: %v", n, m, err)
			}
		}
	}
}

func TestLinearInstance(t *testing.T) {
	actions := [][]float64{{1, 0}, {0, 1}, {0.5, -0.5}}
	theta := []float64{0.75, -0.5}
	in := testkit.Must(NewLinearInstance(actions, theta, SignNoise()))
	if got := in.Means(); !slices.Equal(got, []float64{0.75, -0.5, 0.625}) {
		t.Errorf("means %v", got)
	}
	if lo, hi := in.Support(); in.Best() != 0 || in.Dim() != 2 || lo != -1 || hi != 1 {
		t.Errorf("best %d, dim %d, support [%v,%v]", in.Best(), in.Dim(), lo, hi)
	}
	actions[0][0], theta[0] = 7, 7
	if in.Actions[0][0] != 1 || in.Theta[0] != 0.75 {
		t.Error("the instance holds on to its arguments")
	}
	other := testkit.Must(NewLinearInstance([][]float64{{1, 0}, {0, 1}, {0.5, -0.5}}, []float64{0.75, -0.5},
		testkit.Must(GaussianNoise(1))))
	if in.String() == other.String() || !strings.HasPrefix(in.String(), "linear(actions=3,dim=2,sha256=") {
		t.Errorf("%v and %v", in, other)
	}
	var src LinearSource = FixedLinear(in)
	again, err := src.Linear(nil)
	if err != nil || again.String() != in.String() || src.String() != in.String() || src.Redrawn() {
		t.Errorf("%v %v", again, err)
	}
	if _, err := (FixedLinear{}).Linear(nil); err == nil {
		t.Error("an instance without actions")
	}
	in.Arms = in.Arms[:2]
	if _, err := FixedLinear(in).Linear(nil); err == nil ||
		!strings.Contains(err.Error(), "2 laws for 3 actions") {
		t.Errorf("two laws: %v", err)
	}
	// d = 1 is a line
	if in := testkit.Must(NewLinearInstance([][]float64{{1}, {-1}}, []float64{0.5},
		SignNoise())); in.Best() != 0 || in.Dim() != 1 {
		t.Errorf("%v", in)
	}
}

func TestLinearRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	e := func(x ...[]float64) [][]float64 { return x }
	instance := func(actions [][]float64, theta ...float64) error {
		return second(NewLinearInstance(actions, theta, SignNoise()))
	}
	fix := func(n RewardNoise, actions ...[]float64) error {
		return second(NewFixedContexts(actions, ContextConfig{Noise: n}))
	}
	cfg := ContextConfig{Arms: 10, Dim: 2}
	with := func(f func(*ContextConfig)) ContextConfig { c := cfg; f(&c); return c }
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no actions", instance(nil, 1), "the number of actions is 0, must be between 2 and 1048576"},
		{"one action", instance(e([]float64{1}), 1), "the number of actions is 1"},
		{"no features", instance(e([]float64{}, []float64{})), "the dimension is 0, must be " +
			"between 1 and 1024"},
		{"many features", instance(e(make([]float64, 1025), nil)), "the dimension is 1025"},
		{"ragged", instance(e([]float64{1, 0}, []float64{1}), 1, 0),
			"action 2 has 1 features and action 1 has 2"},
		{"NaN", instance(e([]float64{1, 0}, []float64{0, nan}), 1, 0),
			"action 2: feature 2 is NaN, must be a finite number"},
		{"Inf", instance(e([]float64{inf, 0}, []float64{0, 1}), 1, 0), "action 1: feature 1 is +Inf"},
		{"norm", instance(e([]float64{1, 0}, []float64{0, 1.5}), 1, 0),
			"action 2 has norm 1.5, must be at most 1 (or normalise: true)"},
		{"huge", instance(e([]float64{1, 0}, []float64{1e100, 1e100}), 1, 0),
			"action 2 has norm 1.414213562373095"},
		{"twice", instance(e([]float64{0, 1}, []float64{1, 0}, []float64{0.5, 0},
			[]float64{1, math.Copysign(0, -1)}), 1, 0),
			"actions 2 and 4 are the same, [1 0]: actions must be distinct"},
		{"theta norm", instance(e([]float64{1, 0}, []float64{0, 1}), 1, 1),
			"theta has norm 1.4142135623730951, must be at most 1"},
		{"theta NaN", instance(e([]float64{1, 0}, []float64{0, 1}), nan, 1), "theta: feature 1 is NaN"},
		{"theta dim", instance(e([]float64{1, 0}, []float64{0, 1}), 1),
			"theta has 1 features and the actions have 2"},
		{"sd 0", second(GaussianNoise(0)), "gaussian noise: sd is 0, must be positive"},
		{"sd NaN", second(GaussianNoise(nan)), "sd is NaN"},
		{"sphere K", second(NewSphereActions(1, 3, nil, SignNoise(), true)),
			"sphere actions: the number of arms is 1"},
		{"sphere d", second(NewSphereActions(10, 1, nil, SignNoise(), true)),
			"the dimension is 1, must be between 2 and 1024"},
		{"sphere theta", second(NewSphereActions(10, 2, []float64{2, 0}, SignNoise(), true)),
			"theta has norm 2"},
		{"contexts K", second(NewGaussianContexts(with(func(c *ContextConfig) {
			c.Arms = 0
		}), nil, 0.1)), "the number of actions is 0, must be between 1 and"},
		{"contexts d", second(NewSphereContexts(with(func(c *ContextConfig) {
			c.Dim = 0
		}))), "sphere contexts: the dimension is 0"},
		{"contexts theta", second(NewGaussianContexts(with(func(c *ContextConfig) {
			c.Theta = []float64{2, 0}
		}), nil, 0.1)), "theta has norm 2"},
		{"contexts theta dim", second(NewSphereContexts(with(func(c *ContextConfig) {
			c.Theta = []float64{}
		}))), "theta has 0 features and the actions have 2"},
		{"contexts mean dim", second(NewGaussianContexts(cfg, []float64{1}, 0.1)),
			"mean has 1 features, must have 2"},
		{"contexts mean", second(NewGaussianContexts(cfg, []float64{1, nan}, 0.1)), "mean: feature 2 is NaN"},
		{"contexts variance", second(NewGaussianContexts(cfg, nil, 0)), "variance is 0, must be positive"},
		{"contexts variance NaN", second(NewGaussianContexts(cfg, nil, nan)), "variance is NaN"},
		{"empty set", fix(SignNoise()), "the decision set is empty"},
		{"fixed norm", fix(SignNoise(), []float64{3, 4}), "action 1 has norm 5"},
		{"fixed NaN", fix(SignNoise(), []float64{nan}), "action 1: feature 1 is NaN"},
		{"fixed twice", fix(SignNoise(), []float64{1}, []float64{1}), "actions 1 and 2 are the same"},
		{"fixed ragged", fix(SignNoise(), []float64{1}, []float64{0, 1}), "action 2 has 2 features"},
		{"no stream", second(testkit.Must(NewSphereContexts(cfg)).Contextual(nil)), "the stream is missing"},
		{"scale", third(Normalise(e([]float64{3, 4}, []float64{0, 1}), []float64{0.5, 0})),
			"the largest action has norm 5 and theta 0.5: their product is 2.5 and must be at " +
				"most 1, or means leave [-1,1]"},
		{"scale of 0", third(Normalise(e([]float64{0, 0}), nil)), "all actions are 0"},
		{"scale of NaN", third(Normalise(e([]float64{0, nan}), nil)), "action 1: feature 2 is NaN"},
		{"scale of theta", third(Normalise(e([]float64{0, 1}), []float64{nan})), "theta: feature 1 is NaN"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || strings.Contains(c.err.Error(), "\n") {
			t.Errorf("%s: error %q, want %q", c.name, fmt.Sprint(c.err), c.want)
		}
	}
}

func third[A, B, C any](_ A, _ B, _ C, err error) error { return err }

// TestNormalise: no mean changes, the largest norm is 1, and the result is a valid instance.
func TestNormalise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, d := rapid.IntRange(2, 12).Draw(t, "K"), rapid.IntRange(1, 6).Draw(t, "d")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		scale := math.Pow(10, rapid.Float64Range(-8, 8).Draw(t, "scale"))
		actions := make([][]float64, k)
		for i := range actions {
			for range d {
				actions[i] = append(actions[i], scale*r.NormFloat64())
			}
		}
		theta := make([]float64, d)
		for j := range theta {
			theta[j] = r.NormFloat64() / scale / 10 / float64(d)
		}
		most := 0.
		for _, a := range actions {
			most = max(most, norm(a))
		}
		a, th, by, err := Normalise(actions, theta)
		if most*norm(theta) > 1 {
			if err == nil {
				t.Fatalf("a product of norms of %v", most*norm(theta))
			}
			return
		}
		if err != nil || by != most {
			t.Fatalf("scaled by %v of %v: %v", by, most, err)
		}
		in, err := NewLinearInstance(a, th, testkit.Must(GaussianNoise(1)))
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range in.Means() {
			if want := dot(actions[i], theta); math.Abs(m-want) > 1e-14 {
				t.Fatalf("action %d: mean %v, was %v", i, m, want)
			}
		}
	})
}

// A coordinate of a uniform point of the sphere of ℝ³ is uniform in [−1,1] (Archimedes).
func archimedes(x float64) float64 { return min(max((1+x)/2, 0), 1) }

func TestSphereActions(t *testing.T) {
	g := testkit.Must(NewSphereActions(10, 3, nil, testkit.Must(GaussianNoise(1)), true))
	if g.String() != "sphere-actions(arms=10,dim=3,theta=sphere,noise=gaussian(sd=1),redrawn=true)" ||
		!g.Redrawn() {
		t.Error(g)
	}
	given := testkit.Must(NewSphereActions(10, 3, []float64{0, 0.5, 0}, SignNoise(), false))
	if given.String() != "sphere-actions(arms=10,dim=3,theta=[0 0.5 0],noise=sign,redrawn=false)" {
		t.Error(given)
	}
	s, same := noise.NewFast(1, 2), noise.NewFast(1, 2)
	coordinates := make([][]float64, 5) // of actions, of θ*, and of ⟨θ*,a⟩
	for range 3000 {
		in := testkit.Must(g.Linear(&s))
		if again := testkit.Must(g.Linear(&same)); again.String() != in.String() {
			t.Fatal("the same stream, another instance")
		}
		for i, a := range in.Actions {
			if math.Abs(norm(a)-1) > 1e-12 {
				t.Fatalf("norm %v", norm(a))
			}
			for j, x := range a {
				coordinates[j] = append(coordinates[j], x)
			}
			if i == 0 {
				coordinates[4] = append(coordinates[4], in.Means()[i])
			}
		}
		coordinates[3] = append(coordinates[3], in.Theta[1])
	}
	for i, x := range coordinates {
		if err := goodness(x, archimedes); err != nil {
			t.Errorf("coordinate %d: %v", i, err)
		}
	}
	if in := testkit.Must(given.Linear(&s)); !slices.Equal(in.Theta, []float64{0, 0.5, 0}) {
		t.Errorf("theta %v", in.Theta)
	}
}

func TestGaussianContexts(t *testing.T) {
	const d, k, rounds = 3, 10, 4000
	theta := []float64{0.6, 0, 0.8}
	cfg := ContextConfig{Arms: k, Dim: d, Theta: theta, Noise: testkit.Must(GaussianNoise(1))}
	plain := testkit.Must(NewGaussianContexts(cfg, nil, 0.1))
	if s := plain.String(); s != "gaussian-contexts(arms=10,dim=3,mean=[0.5773502691896258 "+
		"0.5773502691896258 0.5773502691896258],variance=0.1,theta=[0.6 0 "+
		"0.8],noise=gaussian(sd=1),normalise=false,redrawn=false)" {
		t.Error(s)
	}
	cfg.Normalise = true
	ball := testkit.Must(NewGaussianContexts(cfg, nil, 0.1))
	open, inside := testkit.Must(plain.Contextual(nil)), testkit.Must(ball.Contextual(nil))
	s, same := noise.NewFast(1, 2), noise.NewFast(1, 2)
	var a, m, b, mb []float64
	coordinates := make([][]float64, d+1)
	var cross []float64
	for range rounds {
		a, m = open.Round(a, m, &s)
		b, mb = inside.Round(b, mb, &same)
		if len(a) != k*d || len(m) != k || len(b) != k*d || len(mb) != k {
			t.Fatalf("%d numbers, %d means", len(a), len(m))
		}
		for i := range k {
			x, y := a[i*d:i*d+d], b[i*d:i*d+d]
			if want := 0.6*x[0] + 0.8*x[2]; math.Abs(m[i]-want) > 1e-14 {
				t.Fatalf("mean %v, want %v", m[i], want)
			}
			if want := 0.6*y[0] + 0.8*y[2]; math.Abs(mb[i]-want) > 1e-14 {
				t.Fatalf("mean %v, want %v", mb[i], want)
			}
			r := math.Sqrt(x[0]*x[0] + x[1]*x[1] + x[2]*x[2])
			for j := range x {
				if want := x[j] / max(r, 1); math.Abs(y[j]-want) > 1e-15 {
					t.Fatalf("%v becomes %v", x, y)
				}
				coordinates[j] = append(coordinates[j], x[j])
			}
			coordinates[d] = append(coordinates[d], m[i])
			cross = append(cross, (x[0]-1/math.Sqrt(3))*(x[1]-1/math.Sqrt(3)))
		}
	}
	mu, sd := 1/math.Sqrt(3), math.Sqrt(0.1)
	for j, x := range coordinates {
		law := distuv.Normal{Mu: mu, Sigma: sd}
		if j == d {
			law.Mu = 1.4 * mu // ‖θ*‖ = 1, so the variance is the same
		}
		if err := goodness(x, law.CDF); err != nil {
			t.Errorf("coordinate %d: %v", j, err)
		}
	}
	if err := moments(cross, 0, 0.01); err != nil { // E xy = 0, Var xy = v²
		t.Errorf("coordinates are not independent: %v", err)
	}
	if open.Bounded() || inside.Bounded() {
		t.Error("normal noise is not bounded")
	}
	cfg.Noise = SignNoise()
	if !testkit.Must(testkit.Must(NewGaussianContexts(cfg, nil, 0.1)).Contextual(nil)).Bounded() {
		t.Error("signs on the ball are bounded")
	}
	// Signs cannot have a mean beyond 1: then the mean is 1.
	cfg.Normalise = false
	far := testkit.Must(testkit.Must(NewGaussianContexts(cfg, []float64{9, 0, 9}, 0.1)).Contextual(nil))
	if _, m := far.Round(nil, nil, &s); far.Bounded() || m[0] != 1 {
		t.Errorf("bounded %v, mean %v", far.Bounded(), m)
	}
}

func TestOtherContexts(t *testing.T) {
	sphere := testkit.Must(NewSphereContexts(ContextConfig{Arms: 4, Dim: 3, Redrawn: true}))
	if sphere.String() != "sphere-contexts(arms=4,dim=3,theta=sphere,noise=sign,redrawn=true)" ||
		!sphere.Redrawn() {
		t.Error(sphere)
	}
	s := noise.NewFast(3, 4)
	in := testkit.Must(sphere.Contextual(&s))
	var coordinates, means []float64
	for range 8000 {
		a, m := in.Round(nil, nil, &s)
		for i := range m {
			if x := a[i*3 : i*3+3]; math.Abs(norm(x)-1) > 1e-12 {
				t.Fatalf("norm %v", norm(x))
			}
			coordinates = append(coordinates, a[i*3+1])
		}
		means = append(means, m...)
	}
	for _, x := range [][]float64{coordinates, means} {
		if err := goodness(x, archimedes); err != nil {
			t.Error(err)
		}
	}
	if !in.Bounded() || in.Dim() != 3 || in.MaxActions() != 4 {
		t.Error("bounded, dim or actions")
	}

	fixed := testkit.Must(NewFixedContexts([][]float64{{1, 0}, {0, 0.5}}, ContextConfig{Theta: []float64{0.5, 0.5}}))
	if fixed.String() != "fixed-contexts(actions=[1 0] [0 0.5],theta=[0.5 0.5],noise=sign,redrawn=false)" {
		t.Error(fixed)
	}
	in = testkit.Must(fixed.Contextual(nil))
	for range 3 {
		a, m := in.Round(nil, nil, nil)
		if !slices.Equal(a, []float64{1, 0, 0, 0.5}) || !slices.Equal(m, []float64{0.5, 0.25}) {
			t.Errorf("%v %v", a, m)
		}
		a[0] = 7 // the caller's own
	}
	if one := testkit.Must(testkit.Must(NewFixedContexts([][]float64{{1}},
		ContextConfig{Theta: []float64{1}})).Contextual(nil)); one.MaxActions() != 1 {
		t.Error("one action")
	}
}

func contexts(noise RewardNoise, normalise bool) ContextualInstance {
	return testkit.Must(testkit.Must(NewGaussianContexts(ContextConfig{Arms: 10, Dim: 3, Theta: []float64{0, 0, 1},
		Noise: noise, Normalise: normalise}, nil, 0.1)).Contextual(nil))
}

func TestRoundsDoNotAllocate(t *testing.T) {
	log := testkit.Must(ReadContextualCSV(strings.NewReader("round,x1,reward\n1,0,0\n1,1,0\n2,0,1\n"), false))
	fixed := testkit.Must(testkit.Must(NewFixedContexts([][]float64{{1}, {0.5}},
		ContextConfig{Theta: []float64{1}})).Contextual(nil))
	for _, in := range []ContextualInstance{contexts(SignNoise(), true),
		contexts(testkit.Must(GaussianNoise(1)), false), fixed, log} {
		s := noise.NewFast(1, 2)
		a, m := make([]float64, 0, in.MaxActions()*in.Dim()), make([]float64, 0, in.MaxActions())
		if n := testing.AllocsPerRun(100, func() { a, m = in.Round(a, m, &s); in.Reward(m[0], &s) }); n != 0 {
			t.Errorf("%T: %v allocations", in, n)
		}
	}
}

func BenchmarkRound(b *testing.B) {
	for _, v := range []struct {
		name string
		in   ContextualInstance
	}{{"gaussian", contexts(testkit.Must(GaussianNoise(1)), false)}, {"normalised", contexts(SignNoise(), true)}} {
		b.Run(v.name, func(b *testing.B) {
			s := noise.NewFast(1, 2)
			var a, m []float64
			b.ReportAllocs()
			for b.Loop() {
				a, m = v.in.Round(a, m, &s)
				m[0] += v.in.Reward(m[0], &s)
			}
		})
	}
}
