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

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

func linPriv(t testing.TB, dim, arms, horizon int, b privacy.Budget, o linear.LinPrivOptions) *linear.LinPriv {
	t.Helper()
	p, err := linear.NewLinPriv(dim, arms, horizon, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A paperLinPriv keeps every context and reward, and the noise of every node of every arm's
// tree by its place.
type paperLinPriv struct {
	d, arms, horizon int
	lambda, risk     float64
	scale, sigma     float64 // of a node: Laplace or normal
	x                [][][]float64
	r                [][]float64
	nodes            []map[[2]int][]float64
	rng              *rand.Rand
}

func newPaperLinPriv(d, arms, horizon int, m privacy.Mechanism, o linear.LinPrivOptions,
	rng *rand.Rand) *paperLinPriv {
	p := &paperLinPriv{d: d, arms: arms, horizon: horizon, lambda: o.Lambda, risk: o.Risk, rng: rng,
		x: make([][][]float64, arms), r: make([][]float64, arms)}
	switch m := m.(type) {
	case privacy.VectorTree:
		p.scale = m.Scale
	case privacy.GaussianVectorTree:
		p.sigma = m.Sigma
	}
	for range arms {
		p.nodes = append(p.nodes, map[[2]int][]float64{})
	}
	return p
}

// sum is Σ x·r of an arm with the noise of the nodes that make up its count, drawn once each.
func (p *paperLinPriv) sum(arm int) []float64 {
	out := make([]float64, p.d)
	for k, x := range p.x[arm] {
		for i := range out {
			out[i] += x[i] * p.r[arm][k]
		}
	}
	start, n := 0, len(p.x[arm])
	for size := 1 << 20; size > 0; size /= 2 {
		if n-start < size {
			continue
		}
		at := [2]int{start, size}
		if p.nodes[arm][at] == nil {
			y := make([]float64, p.d)
			for i := range y {
				if p.sigma > 0 {
					y[i] = p.sigma * p.rng.NormFloat64()
				} else if p.scale > 0 {
					y[i] = p.scale * (p.rng.ExpFloat64() - p.rng.ExpFloat64())
				}
			}
			p.nodes[arm][at] = y
		}
		for i, y := range p.nodes[arm][at] {
			out[i] += y
		}
		start += size
	}
	return out
}

// arm is θ̃, V, β and B of an arm, worked out from all its rounds.
func (p *paperLinPriv) arm(i int) (theta *mat.VecDense, v *mat.SymDense, beta, b float64) {
	v = mat.NewSymDense(p.d, nil)
	for j := range p.d {
		v.SetSym(j, j, p.lambda)
	}
	for _, x := range p.x[i] {
		v.SymRankOne(v, 1, mat.NewVecDense(p.d, x))
	}
	theta = mat.NewVecDense(p.d, nil)
	n := len(p.x[i])
	if n > 0 {
		if err := theta.SolveVec(v, mat.NewVecDense(p.d, p.sum(i))); err != nil {
			panic(err)
		}
	}
	d := float64(p.d)
	beta = math.Sqrt(2*math.Log(2*float64(p.arms)/p.risk)+logDetOf(v)-d*math.Log(p.lambda)) +
		math.Sqrt(p.lambda)
	x, ones := math.Log(2*float64(p.arms)*float64(p.horizon)/p.risk),
		float64(strings.Count(fmt.Sprintf("%b", n), "1"))
	switch {
	case n == 0:
	case p.sigma > 0:
		b = p.sigma * math.Sqrt(ones) * (math.Sqrt(d) + math.Sqrt(2*x))
	default:
		y := x + math.Log(2*d)
		b = math.Sqrt(d) * p.scale * (2*math.Sqrt(ones*y) + y)
	}
	return theta, v, beta, b
}

func (p *paperLinPriv) choose(actions []float64) int {
	best, top := 0, math.Inf(-1)
	for i := range p.arms {
		if (i+1)*p.d > len(actions) {
			break
		}
		theta, v, beta, b := p.arm(i)
		a := mat.NewVecDense(p.d, actions[i*p.d:][:p.d])
		var y mat.VecDense
		if err := y.SolveVec(v, a); err != nil {
			panic(err)
		}
		if s := mat.Dot(theta, a) + beta*math.Sqrt(mat.Dot(a, &y)) + b*mat.Norm(&y, 2); s > top {
			best, top = i, s
		}
	}
	return best
}

// Round by round against the reference, whose noise is injected into the releases.
func TestLinPrivIsThePaper(t *testing.T) {
	const horizon = 250
	for _, c := range []struct {
		name    string
		d, arms int
		b       privacy.Budget
		o       linear.LinPrivOptions
	}{
		{"pure", 3, 4, privacy.Pure{Epsilon: 30}, linear.LinPrivOptions{Lambda: 1, Risk: 0.05}},
		{"pure, large", 2, 3, privacy.Pure{Epsilon: 100}, linear.LinPrivOptions{Lambda: 0.5, Risk: 0.01}},
		{"zcdp", 3, 4, privacy.ZCDP{Rho: 5}, linear.LinPrivOptions{Lambda: 1, Risk: 0.05}},
		{"approx", 1, 2, privacy.Approx{Epsilon: 2, Delta: 1e-5}, linear.LinPrivOptions{Lambda: 3, Risk: 0.05}},
		{"none", 3, 5, privacy.None{}, linear.LinPrivOptions{Lambda: 1, Risk: 0.001}},
		{"one arm", 2, 1, privacy.Pure{Epsilon: 1}, linear.LinPrivOptions{Lambda: 1, Risk: 0.05}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, uint64(c.d)))
			p := linPriv(t, c.d, c.arms, horizon, c.b, c.o)
			ref := newPaperLinPriv(c.d, c.arms, horizon, p.Mechanism(), c.o, rng)
			ledger := privacy.NewLedger()
			thetas, actions := make([]float64, c.arms*c.d), make([]float64, (c.arms+1)*c.d)
			sphere(thetas, c.d, 1, rng)
			played := map[int]bool{}
			for n := range horizon {
				if slot := p.Due(); slot >= 0 {
					r, err := ledger.ReleaseVector(slot, p.Mechanism(),
						&privacy.Vector{N: len(ref.x[slot]), Value: ref.sum(slot)})
					if err != nil {
						t.Fatal(err)
					}
					p.Learn(r)
					want, _, _, _ := ref.arm(slot)
					for i, x := range p.Estimate(slot) {
						near(t, "estimate", x, want.AtVec(i), 1e-9*(1+math.Abs(x)))
					}
				} else if n > 0 {
					t.Fatalf("round %d: nothing is due", n+1)
				}
				if p.Due() >= 0 {
					t.Fatalf("round %d: %d is still due", n+1, p.Due())
				}
				sphere(actions, c.d, 1, rng)
				set := actions[:c.arms*c.d]
				if n%7 == 3 {
					set = actions // one more than there are arms: not looked at
				} else if n%7 == 5 {
					set = actions[:c.d]
				}
				choice, want := p.Choose(set), ref.choose(set)
				if choice != (linear.Choice{Action: want, Slot: want}) {
					t.Fatalf("round %d: chose %+v, the reference %d", n+1, choice, want)
				}
				played[want] = true
				a := append([]float64(nil), set[want*c.d:][:c.d]...)
				ref.x[want] = append(ref.x[want], a)
				ref.r[want] = append(ref.r[want], sign(rng, dot(thetas[want*c.d:][:c.d], a)))
			}
			if len(played) < c.arms {
				t.Errorf("played %v only", played)
			}
			if _, none := c.b.(privacy.None); none != ledger.Total().Infinite() || !none &&
				!ledger.Total().Within(c.b) || len(ledger.Entries()) != c.arms {
				t.Errorf("the ledger has %v in %d slots", ledger.Total(), len(ledger.Entries()))
			}
		})
	}
}

// By hand: d = 1, two arms, horizon 3 (two levels), ε = 8: Lap(2·2/8 = ½). δ = 12e⁻⁵, so log(2KT/δ)
// = 5 and log(2K/δ) = 5 − log 3.
func TestLinPrivByHand(t *testing.T) {
	p := linPriv(t, 1, 2, 3, privacy.Pure{Epsilon: 8},
		linear.LinPrivOptions{Lambda: 1, Risk: 12 * math.Exp(-5)})
	if m := p.Mechanism(); m != (privacy.VectorTree{Scale: 0.5, Dim: 1, Horizon: 3}) || p.Slots() != 2 {
		t.Fatalf("mechanism is %v", m)
	}
	ledger := privacy.NewLedger()
	give := func(n int, sum float64) {
		t.Helper()
		r, err := ledger.ReleaseVector(p.Due(), p.Mechanism(), &privacy.Vector{N: n, Value: []float64{sum}})
		if err != nil {
			t.Fatal(err)
		}
		p.Learn(r)
	}
	check := func(arm int, mean, width float64) {
		t.Helper()
		m, w := p.Interval(arm, []float64{0.5})
		near(t, "mean", m, mean, 1e-15)
		near(t, "width", w, width, 1e-12)
	}
	rewards := 10 - 2*math.Log(3)
	y := 5 + math.Ln2
	beta := math.Sqrt(rewards) + 1
	check(0, 0, 0.5*beta)
	if c := p.Choose([]float64{0.5, -1}); c != (linear.Choice{Action: 1, Slot: 1}) || p.Due() != 1 {
		t.Errorf("chose %+v", c)
	}
	give(1, -1.4) // V = 2
	beta1, b1 := math.Sqrt(rewards+math.Ln2)+1, 0.5*(2*math.Sqrt(y)+y)
	check(1, -0.35, 0.5*beta1/math.Sqrt2+0.5*b1/2)
	check(0, 0, 0.5*beta)
	if w := 0.5*beta1/math.Sqrt2 + 0.5*b1/2 - 0.35; (w > 0.5*beta) != (p.Choose([]float64{0.5,
		0.5}).Action == 1) {
		t.Errorf("arm 1 scores %v, arm 0 %v, due is %d", w, 0.5*beta, p.Due())
	}
	p.Learn(privacy.ReleasedVector{}) // changes nothing
	check(1, -0.35, 0.5*beta1/math.Sqrt2+0.5*b1/2)
	if p.Due() != -1 {
		t.Errorf("due is %d", p.Due())
	}
	if m, w := p.Interval(2, []float64{1}); m != 0 || w != 0 || p.Estimate(-1) != nil {
		t.Error("there is an arm 2")
	}
	if eps := ledger.Total().Pure(); eps != 8 {
		t.Errorf("the ledger has ε = %v", eps)
	}
}

func playLinPriv(t testing.TB, p *linear.LinPriv, d, arms, horizon int, seed uint64,
	options ...privacy.Option) (release.FeatureCurator, [][]float64, []linear.Choice) {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, seed))
	cur := curate(t, p, d, seed, options...)
	var contexts [][]float64
	var choices []linear.Choice
	for range horizon {
		learn(t, p, cur, nil)
		a := make([]float64, arms*d)
		sphere(a, d, 1, rng)
		c := p.Choose(a)
		if err := cur.Add(c.Slot, a[d*c.Action:][:d], sign(rng, a[d*c.Action])); err != nil {
			t.Fatal(err)
		}
		contexts, choices = append(contexts, a), append(choices, c)
	}
	return cur, contexts, choices
}

func TestLinPrivReplay(t *testing.T) {
	o, b := linear.LinPrivOptions{Lambda: 1, Risk: 0.1}, privacy.Pure{Epsilon: 20}
	var transcript bytes.Buffer
	p := linPriv(t, 3, 4, 300, b, o)
	cur, contexts, choices := playLinPriv(t, p, 3, 4, 300, 7, privacy.WithTranscript(&transcript))
	lines := strings.SplitAfter(strings.TrimSuffix(transcript.String(), "\n"), "\n")
	q, ledger := linPriv(t, 3, 4, 300, b, o), privacy.NewLedger()
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
	for i := range 4 {
		if fmt.Sprint(p.Estimate(i)) != fmt.Sprint(q.Estimate(i)) {
			t.Errorf("arm %d: %v, was %v", i, q.Estimate(i), p.Estimate(i))
		}
	}
	if len(lines) != 0 || ledger.Total().Pure() != cur.Ledger().Total().Pure() ||
		math.Abs(ledger.Total().Pure()-20) > 1e-9 {
		t.Errorf("%d releases left over, the ledger has %v", len(lines), ledger.Total())
	}
}

// Ever larger budgets come to none.
func TestLinPrivTwin(t *testing.T) {
	o := linear.LinPrivOptions{Lambda: 1, Risk: 0.1}
	_, _, none := playLinPriv(t, linPriv(t, 3, 4, 500, privacy.None{}, o), 3, 4, 500, 1)
	_, _, huge := playLinPriv(t, linPriv(t, 3, 4, 500, privacy.Pure{Epsilon: 1e14}, o), 3, 4, 500, 1)
	_, _, small := playLinPriv(t, linPriv(t, 3, 4, 500, privacy.Pure{Epsilon: 1}, o), 3, 4, 500, 1)
	if fmt.Sprint(none) != fmt.Sprint(huge) || fmt.Sprint(none) == fmt.Sprint(small) {
		t.Error("plays at ε = 1e14 must be those without a budget, and at ε = 1 others")
	}
	if m := linPriv(t, 3, 4, 500, privacy.None{},
		o).Mechanism(); m != (privacy.VectorTree{Dim: 3, Horizon: 500}) || !m.Loss().Infinite() {
		t.Errorf("without a budget the mechanism is %v", m)
	}
}

// The means of all arms are within their widths in all rounds but with probability δ = 0.1: by the
// Clopper–Pearson interval at 1−2·10⁻⁶. A share of the width, and one without the term for noise,
// must be found out.
func TestLinPrivCovers(t *testing.T) {
	const risk, d, arms, horizon = 0.1, 2, 3, 200
	runs := 500
	if testing.Short() {
		runs = 200
	}
	above := func(out int) bool {
		lo, _, err := stats.ClopperPearson(out, runs, 1-2e-6)
		if err != nil {
			t.Fatal(err)
		}
		return lo > risk
	}
	for _, c := range []struct {
		name   string
		b      privacy.Budget
		shrunk float64
	}{{"none", privacy.None{}, 0.4}, {"pure", privacy.Pure{Epsilon: 1}, 0.2},
		{"zcdp", privacy.ZCDP{Rho: 0.1}, 0.35}} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 26))
			thetas, a := make([]float64, arms*d), make([]float64, arms*d)
			out, twin := 0, 0
			for run := range runs {
				p := linPriv(t, d, arms, horizon, c.b, linear.LinPrivOptions{Lambda: 1, Risk: risk})
				cur := curate(t, p, d, uint64(run))
				sphere(thetas, d, 1, rng)
				left, twinLeft := false, false
				for range horizon {
					learn(t, p, cur, nil)
					sphere(a, d, 1, rng)
					for i := range arms {
						mean, width := p.Interval(i, a[i*d:][:d])
						off := math.Abs(mean - dot(thetas[i*d:][:d], a[i*d:][:d]))
						left, twinLeft = left || off > width, twinLeft || off > c.shrunk*width
					}
					k := p.Choose(a)
					if err := cur.Add(k.Slot, a[k.Action*d:][:d],
						sign(rng, dot(thetas[k.Action*d:][:d], a[k.Action*d:][:d]))); err != nil {
						t.Fatal(err)
					}
				}
				if left {
					out++
				}
				if twinLeft {
					twin++
				}
			}
			t.Logf("a mean left in %d of %d runs, the twin's widths in %d", out, runs, twin)
			if above(out) {
				t.Errorf("a mean left in %d of %d runs, which δ = %v does not allow", out, runs, risk)
			}
			if !testing.Short() && !above(twin) {
				t.Errorf("a mean left the twin's widths in %d of %d runs only: it was not found out",
					twin, runs)
			}
		})
	}
}

func TestLinPrivBudgets(t *testing.T) {
	for _, b := range []privacy.Budget{privacy.Pure{Epsilon: 0.5}, privacy.ZCDP{Rho: 0.3},
		privacy.Approx{Epsilon: 2, Delta: 1e-6}, privacy.Renyi{Alpha: 4, Epsilon: 1}} {
		p := linPriv(t, 3, 4, 1000, b, linear.LinPrivOptions{Lambda: 1, Risk: 0.1})
		cur, _, _ := playLinPriv(t, p, 3, 4, 200, 2)
		if total := cur.Ledger().Total(); !total.Within(b) || fmt.Sprint(total.In(b)) == "none" {
			t.Errorf("at %v it costs %v", b, total)
		}
		for _, e := range cur.Ledger().Entries() {
			if !strings.Contains(e.Protects, "one reward") || e.Releases < 1 {
				t.Errorf("%+v", e)
			}
		}
	}
	if levels := bits.Len(1000); linPriv(t, 4, 2, 1000, privacy.Pure{Epsilon: 2},
		linear.LinPrivOptions{Lambda: 1,
			Risk: 0.1}).Mechanism().(privacy.VectorTree).Scale != float64(levels)*4/2 {
		t.Error("scale is not 2√d·levels/ε")
	}
}

func TestLinPrivErrors(t *testing.T) {
	good := linear.LinPrivOptions{Lambda: 1, Risk: 0.1}
	for _, c := range []struct {
		want               string
		dim, arms, horizon int
		b                  privacy.Budget
		o                  linear.LinPrivOptions
	}{
		{"dim is 0", 0, 2, 10, privacy.None{}, good},
		{"dim is 1025", 1025, 2, 10, privacy.None{}, good},
		{"arms is 0", 3, 0, 10, privacy.None{}, good},
		{"arms is 65537", 3, 65537, 10, privacy.None{}, good},
		{"horizon is -1", 3, 2, -1, privacy.None{}, good},
		{"there is no budget", 3, 2, 10, nil, good},
		{"epsilon is 0", 3, 2, 10, privacy.Pure{}, good},
		{"rho is NaN", 3, 2, 10, privacy.ZCDP{Rho: math.NaN()}, good},
		{"lambda is -1", 3, 2, 10, privacy.None{}, linear.LinPrivOptions{Lambda: -1, Risk: 0.1}},
		{"lambda is NaN", 3, 2, 10, privacy.None{}, linear.LinPrivOptions{Lambda: math.NaN(), Risk: 0.1}},
		{"risk is 1", 3, 2, 10, privacy.None{}, linear.LinPrivOptions{Lambda: 1, Risk: 1}},
	} {
		if p, err := linear.NewLinPriv(c.dim, c.arms, c.horizon, c.b, c.o); err == nil ||
			p != nil || !strings.HasPrefix(err.Error(), "lin-priv: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	// Sets that mean nothing do not break it.
	p := linPriv(t, 2, 2, 10, privacy.None{}, good)
	for _, set := range [][]float64{nil, {1}, {math.NaN(), 1, math.NaN(), 1}, {math.Inf(1), 0, 0, 1}} {
		if c := p.Choose(set); c.Action < 0 || c.Action > 1 {
			t.Errorf("%v: %+v", set, c)
		}
	}
	if c := p.Choose([]float64{0.1, 0, 0.9, 0}); c.Action != 1 {
		t.Errorf("%+v", c)
	}
}

func TestLinPrivAllocatesNothing(t *testing.T) {
	p := linPriv(t, 3, 10, 100_000, privacy.Pure{Epsilon: 1}, linear.LinPrivOptions{Lambda: 1, Risk: 0.1})
	round := linPrivRound(t, p)
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

func linPrivRound(t testing.TB, p *linear.LinPriv) func() {
	cur := curate(t, p, 3, 1)
	rng := rand.New(rand.NewPCG(1, 1))
	sets, n := make([]float64, 64*30), 0
	sphere(sets, 3, 1, rng)
	for slot := range p.Slots() { // the ledger opens an entry for each
		if err := cur.Add(slot, sets[:3], 0); err != nil {
			t.Fatal(err)
		}
		if _, err := cur.Release(slot); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if slot := p.Due(); slot >= 0 {
			r, err := cur.Release(slot)
			if err != nil {
				t.Fatal(err)
			}
			p.Learn(r)
		}
		a := sets[n*30:][:30]
		n = (n + 1) % 64
		c := p.Choose(a)
		if err := cur.Add(c.Slot, a[3*c.Action:][:3], 1); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkLinPriv is a round with d = 3, K = 10: the choice, the reward, the release
// and the estimate.
func BenchmarkLinPriv(b *testing.B) {
	for name, budget := range map[string]privacy.Budget{"pure": privacy.Pure{Epsilon: 1},
		"zcdp": privacy.ZCDP{Rho: 1}, "none": privacy.None{}} {
		b.Run(name, func(b *testing.B) {
			round := linPrivRound(b, linPriv(b, 3, 10, min(1<<40, math.MaxInt/4), budget,
				linear.LinPrivOptions{Lambda: 1, Risk: 0.1}))
			b.ReportAllocs()
			for b.Loop() {
				round()
			}
		})
	}
}

// Each action is an arm of its own, with rewards that are private and contexts that are not.
func ExampleLinPriv() {
	const dim, arms, horizon = 2, 3, 5000
	p, err := linear.NewLinPriv(dim, arms, horizon, privacy.Pure{Epsilon: 2},
		linear.LinPrivOptions{Lambda: 1, Risk: 0.05})
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
	thetas := [arms][dim]float64{{0.9, 0}, {0, 0.9}, {-0.6, -0.6}}
	for range horizon {
		for slot := p.Due(); slot >= 0; slot = p.Due() {
			released, err := curator.Release(slot)
			if err != nil {
				fmt.Println(err)
				return
			}
			p.Learn(released)
		}
		contexts := make([]float64, arms*dim) // one an arm
		for i := range contexts {
			contexts[i] = 1.4*world.Float64() - 0.7
		}
		c := p.Choose(contexts)
		x, theta := contexts[c.Action*dim:][:dim], thetas[c.Action]
		reward := -1.0
		if world.Float64() < (1+theta[0]*x[0]+theta[1]*x[1])/2 {
			reward = 1
		}
		if err := curator.Add(c.Slot, x, reward); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("%d arms, each with a tree of its own: ε = %.3g\n", len(curator.Ledger().Entries()),
		curator.Ledger().Total().Pure())
	mean, width := p.Interval(0, []float64{1, 0})
	fmt.Printf("arm 0 at (1,0): 0.9 is within %.2f of the estimate: %t\n", width, math.Abs(mean-0.9) <= width)
	// Output:
	// 3 arms, each with a tree of its own: ε = 2
	// arm 0 at (1,0): 0.9 is within 2.65 of the estimate: true
}
