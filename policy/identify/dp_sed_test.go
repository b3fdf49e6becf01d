package identify

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// R(v) in numbers: for normal noise alone 2σ√(2c/2), and otherwise the least of (c + A(λ))/λ on a fine grid of λ, found
// by another program.
func TestDPSEDRadius(t *testing.T) {
	for _, c := range []struct {
		look   look
		v, at  float64
		radius float64
	}{
		{look{1, 1, cumulant{v: 9}}, 0, 4, 12},
		{look{100, 1, cumulant{}}, 0.25, 5, 22.266998759046135},
		{look{1000, 1, cumulant{}}, 0.0475, 6, 33.888751001224925},
		{look{1, 1, cumulant{k: 1, b: 1}}, 0, 4, 7.5290588707604424},
	} {
		p := testkit.Must(NewDPSED(2, privacy.None{}, 0.1, SEDPlan{}))
		p.looks = append(p.looks, c.look)
		if got := p.radius(c.v, c.at); !near(got, c.radius, 1e-9) {
			t.Errorf("%+v at v = %v, c = %v: R is %v, want %v", c.look, c.v, c.at, got, c.radius)
		}
	}
}

// Three arms at ε = 1 and δ = 0.1, by hand, with batches that end at 400 and 600 plays: c₁ = log(2/0.09)
// + log m(m+1) and c₂ = log 200 + log m(m+1). After the first batch ω = 400/408. Arm 1 has 20: its interval is
// [0.01855, 0.09974], v = 0.08979 and R = 23.5932, while x_0 − x_1 = 24·400/408 = 23.5294: it stays. Arm 2 has 19.9,
// which is too little: 23.6275 against 23.5603.
func TestDPSEDByHand(t *testing.T) {
	for second, want := range map[float64]string{
		// After the second ω = 200/208 for it. With 12 more: [0.02324, 0.09802], R = 32.6427, and the
		// difference is 33.1448: arm 0 is the answer. With 13 it is 32.18, and R is larger.
		12: "[]", 13: "[{0 300 true} {1 300 true}]",
	} {
		p := testkit.Must(NewDPSED(3, privacy.Pure{Epsilon: 1}, 0.1, SEDPlan{First: 400}))
		if got := fmt.Sprint(give(t, p, 1).Plays); got != "[{0 400 true} {1 400 true} {2 400 true}]" {
			t.Fatalf("first batch: %s", got)
		}
		if got := fmt.Sprint(give(t, p, 1, 400, 44, 400, 20, 400, 19.9).Plays); got != "[{0 200 true} {1 200 true}]" {
			t.Fatalf("second batch: %s", got)
		}
		if arm := p.arms[1]; !near(arm.lo, 0.018549163214896, 1e-6) || !near(arm.hi, 0.099740331970071, 1e-6) ||
			!near(p.radius(arm.variance(), p.c1+p.union()), 23.593220794742027, 1e-6) {
			t.Errorf("interval [%v, %v], R = %v", arm.lo, arm.hi, p.radius(arm.variance(), p.c1+p.union()))
		}
		got := "[]"
		if b := give(t, p, 1, 200, 22, 200, second); b != nil {
			got = fmt.Sprint(b.Plays)
		}
		if got != want || (p.Answer() == 0) != (want == "[]") || p.Claim() != nil {
			t.Errorf("with %v: %s, answer %d, claim %v; want %s", second, got, p.Answer(), p.Claim(), want)
		}
	}
}

// sedReference is the rule as its theorem says it: every sum from the table anew at each look, intervals by
// bisection in μ, suprema and minima on a grid of λ.
func sedReference(tab *table, epsilon, risk float64, first, limit int) outcome {
	k := len(tab.mean)
	out := outcome{Plays: make([]int, k), Answer: -1, Tau: -1}
	lo, hi := make([]float64, k), make([]float64, k)
	alive := make([]int, k)
	for a := range alive {
		alive[a], hi[a] = a, 1
	}
	psi := func(l float64) float64 { return -math.Log(1 - l*l/epsilon/epsilon) }
	phi := func(mu, l float64) float64 { return math.Log(1 + mu*(math.Exp(l)-1)) }
	ends := []int{0, first}
	for m := 1; ; m++ {
		n := ends[m]
		x, y := make([]float64, k), make([]float64, k)
		for _, a := range alive {
			out.Plays[a] = n
			for j := 1; j <= m; j++ {
				s := tab.noiseOf(a, j-1)
				for i := ends[j-1]; i < ends[j]; i++ {
					s += tab.rewardOf(a, i)
				}
				size := float64(ends[j] - ends[j-1])
				x[a], y[a] = x[a]+s*size/(size+8/epsilon/epsilon), y[a]+s
			}
		}
		u := 1 / float64(m) / float64(m+1)
		c1, c2 := math.Log(float64(k-1)/(0.9*risk*u)), math.Log(2/(0.1*risk*u))
		grid := []float64{}
		for l := 1e-4; l < min(20, epsilon); l *= 1.02 {
			grid = append(grid, l)
		}
		top := 0
		for i, a := range alive {
			if x[a] > x[alive[top]] {
				top = i
			}
		}
		best := x[alive[top]]
		kept := []int{}
		for _, a := range alive {
			rejected := func(mu, sign float64) bool {
				for _, l := range grid {
					if sign*l*y[a]-float64(n)*phi(mu, sign*l)-float64(m)*psi(l) >= c2 {
						return true
					}
				}
				return false
			}
			low, high := lo[a], hi[a]
			if rejected(low, 1) {
				for from, to := low, 1.0; to-from > 1e-9; {
					if mid := (from + to) / 2; rejected(mid, 1) {
						from, low = mid, mid
					} else {
						to = mid
					}
				}
			}
			if rejected(high, -1) {
				for from, to := 0.0, high; to-from > 1e-9; {
					if mid := (from + to) / 2; rejected(mid, -1) {
						to, high = mid, mid
					} else {
						from = mid
					}
				}
			}
			lo[a], hi[a] = low, high
			v := 0.25
			if lo[a] <= hi[a] && (lo[a] > 0.5 || hi[a] < 0.5) {
				v = max(lo[a]*(1-lo[a]), hi[a]*(1-hi[a]))
			}
			r := math.Inf(1)
			largest := 0.0
			for j := 1; j <= m; j++ {
				size := float64(ends[j] - ends[j-1])
				largest = max(largest, size/(size+8/epsilon/epsilon))
			}
			for _, l := range grid {
				l /= largest // no weight takes it beyond ε
				sum := c1
				for j := 1; j <= m; j++ {
					size := float64(ends[j] - ends[j-1])
					w := size / (size + 8/epsilon/epsilon)
					sum += size*math.Log(1+4*v*math.Pow(math.Sinh(l*w/2), 2)) + 2*psi(l*w)
				}
				r = min(r, sum/l)
			}
			if best-x[a] < r {
				kept = append(kept, a)
			}
		}
		alive = kept
		if len(alive) == 1 {
			out.Answer, out.Tau = alive[0], sumOf(out.Plays)
			return out
		}
		ends = append(ends, int(math.Ceil(1.5*float64(n))))
		if ends[m+1]*k > limit {
			return out
		}
	}
}

func sumOf(n []int) (sum int) {
	for _, x := range n {
		sum += x
	}
	return sum
}

func TestDPSEDReference(t *testing.T) {
	for seed := range uint64(testkit.Size(6, 40)) {
		r := rand.New(rand.NewPCG(seed, 5))
		means := make([]float64, 2+r.IntN(3))
		for a := range means {
			means[a] = r.Float64()
		}
		epsilon, first := 0.3+r.Float64(), 20+r.IntN(80)
		const limit = 20_000
		tab := newTable(seed, 1/epsilon, means...).fix(limit, 40)
		p := testkit.Must(NewDPSED(len(means), privacy.Pure{Epsilon: epsilon}, 0.1, SEDPlan{First: first}))
		got := run(t, p, tab, limit)
		want := sedReference(tab, epsilon, 0.1, first, limit)
		if got.Answer != want.Answer || got.Tau != want.Tau || want.Answer >= 0 && !slices.Equal(got.Plays, want.Plays) {
			t.Errorf("means %v, ε = %v: %v, answer %d after %d; the reference has %v, answer %d after %d",
				means, epsilon, got.Plays, got.Answer, got.Tau, want.Plays, want.Answer, want.Tau)
		}
	}
}

// mistaken plays trials of Bernoulli sums until arm 0 is dropped, an answer or so many batches, and counts in how many of
// them it was dropped. With deaf the radius knows of no noise.
func mistaken(t *testing.T, means []float64, budget privacy.Budget, risk float64, runs, batches int, deaf bool) int {
	t.Helper()
	r := rand.New(rand.NewPCG(9, uint64(runs)))
	dropped := 0
	for range runs {
		p := testkit.Must(NewDPSED(len(means), budget, risk, SEDPlan{First: 16}))
		account := privacy.NewLedger().Account(p.Mechanism())
		var released privacy.Released
		for range batches {
			if deaf && released.Len() > 0 {
				p.learn(released)
				for i := range p.looks {
					p.looks[i].noise = cumulant{}
				}
				p.eliminate()
				released = privacy.Released{}
			}
			b := p.Next(released)
			if b == nil || !slices.ContainsFunc(b.Plays, func(q policy.Play) bool { return q.Arm == 0 }) {
				break
			}
			v := privacy.Values{Tail: tailOf(p.Mechanism())}
			for _, q := range b.Plays {
				sum := drawn(r, p.Mechanism())
				for range q.Rounds {
					if r.Float64() < means[q.Arm] {
						sum++
					}
				}
				v.N, v.Sum = append(v.N, q.Rounds), append(v.Sum, sum)
			}
			released = testkit.Must(account.Release(0, &v))
		}
		if !slices.Contains(p.alive, 0) {
			dropped++
		}
	}
	return dropped
}

func tailOf(m privacy.Mechanism) privacy.Tail { return m.(interface{ Tail() privacy.Tail }).Tail() }

func drawn(r *rand.Rand, m privacy.Mechanism) float64 {
	switch m := m.(type) {
	case privacy.Gaussian:
		return m.Sigma * r.NormFloat64()
	case privacy.Laplace:
		return m.Scale * (r.ExpFloat64() - r.ExpFloat64())
	}
	return 0
}

// Of equal arms a given one is dropped with probability at most δ, at every budget: that a count refutes it has probability
// at most 1e-7 if it is true. With a radius that knows of no noise the count does refute it.
func TestDPSEDErrors(t *testing.T) {
	const risk, runs, batches = 0.2, 400, 10
	refuted := func(dropped int) bool {
		low, _, err := stats.ClopperPearson(dropped, runs, 1-2e-7)
		if err != nil {
			t.Fatal(err)
		}
		return low > risk
	}
	for name, c := range map[string]struct {
		budget privacy.Budget
		mean   float64
	}{
		"ε = 0.3": {privacy.Pure{Epsilon: 0.3}, 0.5}, "rates": {privacy.Pure{Epsilon: 0.1}, 0.05},
		"ρ": {privacy.ZCDP{Rho: 0.005}, 0.3}, "no noise": {privacy.None{}, 0.5},
	} {
		got := mistaken(t, []float64{c.mean, c.mean}, c.budget, risk, runs, batches, false)
		if refuted(got) {
			t.Errorf("%s: arm 0 was dropped in %d of %d runs, more than %v allows", name, got, runs, risk)
		}
		if c.budget == (privacy.None{}) {
			continue
		}
		if twin := mistaken(t, []float64{c.mean, c.mean}, c.budget, risk, runs, batches, true); !refuted(twin) {
			t.Errorf("%s: the twin without noise in its radius dropped arm 0 in %d of %d runs only", name, twin, runs)
		}
	}
}

// The claim is about what was released, and noise that is gathered counts as what it is.
func TestDPSEDClaim(t *testing.T) {
	for name, c := range map[string]struct {
		mechanism privacy.Mechanism
		n         int
		proved    bool
	}{
		"laplace": {privacy.Laplace{Scale: 1}, 24, true}, "normal": {privacy.Gaussian{Sigma: 1}, 24, true},
		"fewer rewards": {privacy.Laplace{Scale: 1}, 23, false}, "unknown": {privacy.Unknown{Name: "x"}, 24, false},
		"two servers": {privacy.Aggregated{Trust: privacy.TrustTwoServer, Noise: privacy.NoiseLaplace, G: 1, Users: 24,
			Invited: 24, Tau: 1 << 20, Modulus: 1 << 40, Num: 1, Den: 1}, 24, true},
	} {
		p := testkit.Must(NewDPSED(2, privacy.Pure{Epsilon: 1}, 0.1, SEDPlan{}))
		p.Next(privacy.Released{})
		p.Next(newSeal().release(t, c.mechanism, []int{c.n, c.n}, []float64{3, 4}))
		if err := p.Claim(); (err == nil) != c.proved || err != nil && !errors.Is(err, ErrUnproved) {
			t.Errorf("%s: claim %v", name, err)
		}
		if k := p.looks[0].noise.k; name == "two servers" && k != 2 {
			t.Errorf("%s: %v noises, want 2", name, k)
		}
	}
}

// A plan of the table's: N* by hand is the least n at which the exponent reaches log((K−1)/δ₁) + 2, on a grid of λ.
func TestDPSEDPlan(t *testing.T) {
	for _, c := range []struct {
		plan   SEDPlan
		arms   int
		budget privacy.Budget
	}{
		{SEDPlan{Gap: 0.1}, 2, privacy.Pure{Epsilon: 1}}, {SEDPlan{Gap: 0.02, Best: 0.05}, 5, privacy.Pure{Epsilon: 1}},
		{SEDPlan{Gap: 0.1}, 20, privacy.ZCDP{Rho: 0.01}}, {SEDPlan{Gap: 0.02, Best: 0.05, Centred: true}, 5, privacy.Pure{Epsilon: 1}},
		{SEDPlan{Gap: 0.6, Centred: true}, 2, privacy.Pure{Epsilon: 0.1}}, {SEDPlan{Gap: 0.1}, 2, privacy.None{}},
	} {
		best := c.plan.Best
		if best == 0 {
			best = 0.5 + c.plan.Gap/2
		}
		_, noise, err := quietest(c.budget)
		if err != nil {
			t.Fatal(err)
		}
		at := func(n float64) float64 {
			most := 0.0
			for l := 1e-4; l < noise.top(); l *= 1.001 {
				most = max(most, l*n*c.plan.Gap-n*math.Log(1+4*best*(1-best)*math.Pow(math.Sinh(l/2), 2))-2*noise.at(l))
			}
			return most
		}
		p := testkit.Must(NewDPSED(c.arms, c.budget, 0.05, c.plan))
		level := math.Log(float64(c.arms-1)/0.045) + 2
		n := testkit.Must(c.plan.enough(level, noise))
		if at(n+1) < level || at(n-2) >= level {
			t.Errorf("%+v: N* is %v: the exponent goes from %v to %v, must reach %v", c.plan, n, at(n-2), at(n+1), level)
		}
		unit := math.Sqrt(noise.variance() / 2)
		want := max(8*unit, 0.75*n)
		if c.plan.Centred {
			want = max(8*unit, min(max(leastFirst, 16*unit), 0.75*n))
		}
		if p.first != int(math.Ceil(want)) {
			t.Errorf("%+v: first batch of %d, want %v", c.plan, p.first, want)
		}
		sum := 0.0
		for range 160 { // of u_m, with what is left
			p.looks = append(p.looks, look{})
			sum += math.Exp(-p.union())
		}
		if sum > 1+1e-12 || c.plan.Centred && sum < 1-1e-9 {
			t.Errorf("%+v: the u_m add up to %v", c.plan, sum)
		}
	}
}

func TestDPSEDRefuses(t *testing.T) {
	one := privacy.Pure{Epsilon: 1}
	for want, err := range map[string]error{
		"arms is 1": second(NewDPSED(1, one, 0.1, SEDPlan{})), "risk is 1": second(NewDPSED(2, one, 1, SEDPlan{})),
		"budget is missing": second(NewDPSED(2, nil, 0.1, SEDPlan{})),
		"epsilon is 0":      second(NewDPSED(2, privacy.Pure{}, 0.1, SEDPlan{})),
		"gap is NaN":        second(NewDPSED(2, one, 0.1, SEDPlan{Gap: math.NaN()})),
		"gap is 1.5":        second(NewDPSED(2, one, 0.1, SEDPlan{Gap: 1.5})),
		"best is 0.1":       second(NewDPSED(2, one, 0.1, SEDPlan{Gap: 0.2, Best: 0.1})),
		"gap is missing":    second(NewDPSED(2, one, 0.1, SEDPlan{Centred: true})),
		"first is -1":       second(NewDPSED(2, one, 0.1, SEDPlan{First: -1})),
		"gap is 1e-09":      second(NewDPSED(2, one, 0.1, SEDPlan{Gap: 1e-9})),
		"a first batch of":  second(NewDPSED(2, privacy.Pure{Epsilon: 1e-17}, 0.1, SEDPlan{})),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "dp-sed: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Of two mechanisms that keep a budget the rule takes the one of less variance.
func TestDPSEDMechanism(t *testing.T) {
	for _, c := range []struct {
		budget privacy.Budget
		want   privacy.Mechanism
	}{
		{privacy.Pure{Epsilon: 0.5}, privacy.Laplace{Scale: 2}}, {privacy.ZCDP{Rho: 0.5}, privacy.Gaussian{Sigma: 1}},
		{privacy.Approx{Epsilon: 1, Delta: 1e-6}, privacy.Laplace{Scale: 1}}, {privacy.GDP{Mu: 2}, privacy.Gaussian{Sigma: 0.5}},
		{privacy.Renyi{Alpha: 8, Epsilon: 1}, privacy.Gaussian{Sigma: 2}}, {privacy.None{}, privacy.Laplace{}},
	} {
		if got := testkit.Must(NewDPSED(2, c.budget, 0.1, SEDPlan{})).Mechanism(); got != c.want {
			t.Errorf("%v: %v, want %v", c.budget, got, c.want)
		}
	}
	if m, ok := testkit.Must(NewDPSED(2, privacy.Approx{Epsilon: 20, Delta: 0.4}, 0.1, SEDPlan{})).Mechanism().(privacy.Laplace); !ok {
		t.Errorf("%v", m)
	}
}

// A look allocates nothing.
func TestDPSEDAllocates(t *testing.T) {
	p := testkit.Must(NewDPSED(2, privacy.Pure{Epsilon: 1}, 0.1, SEDPlan{}))
	seal := newSeal()
	var released []privacy.Released
	n := p.first
	for range 21 {
		released = append(released, seal.release(t, p.Mechanism(), []int{n, n}, []float64{float64(n) / 2, float64(n) / 2}))
	}
	p.Next(privacy.Released{})
	i := 0
	if got := testing.AllocsPerRun(20, func() { p.Next(released[i]); i++ }); got != 0 {
		t.Errorf("%v allocations a look", got)
	}
}

func BenchmarkDPSED(b *testing.B) {
	for _, c := range []struct {
		name    string
		means   []float64
		epsilon float64
	}{{"first/0.1", figureFirst, 0.1}, {"second/1", figureSecond, 1}, {"spread/1", spread, 1}} {
		b.Run(c.name, func(b *testing.B) {
			whole(b, c.means, c.epsilon, func() (Identifier, error) {
				return NewDPSED(5, privacy.Pure{Epsilon: c.epsilon}, 0.01, SEDPlan{})
			})
		})
	}
}

// What is proved of plays: of 200 runs, each of which takes more than SEDPlays says with probability at most 0.2, no
// more than 100 do: that many have probability below 1e-20 if the theorem is true. The bound is of use: it is at
// most 12 times what is taken.
func TestSEDPlays(t *testing.T) {
	const b, risk, slip = 5.0, 0.1, 0.1
	means := []float64{0.8, 0.5, 0.65, 0.1}
	bound := testkit.Must(SEDPlays(means, risk, slip, 64, func(int) (float64, float64, float64) { return 1, b, 0 }))
	over, taken := 0, make([]float64, len(means))
	for seed := range uint64(200) {
		p := testkit.Must(NewDPSED(4, privacy.Pure{Epsilon: 1 / b}, risk, SEDPlan{First: 64}))
		plays, more := raced(t, p, rand.New(rand.NewPCG(seed, 48)), means, b, b, nil), false
		for a, n := range plays {
			more = more || n > bound[a]
			taken[a] += float64(n) / 200
		}
		if more {
			over++
		}
	}
	for a := range means {
		if !(float64(bound[a]) < 12*taken[a]) {
			t.Errorf("arm %d: bound %d, taken %.4g", a, bound[a], taken[a])
		}
	}
	if over > 100 {
		t.Errorf("%d of 200 take more than %v", over, bound)
	}
}

// By hand: one batch of 1000 with normal noise of variance 250: ω = ½, W = 500. At K = 2 and δ = δ' = 0.1, c₁ =
// log(2/0.09) = 3.1011 and the other log 10 = 2.3026: ρ are 39.377 and 33.931, so that a gap of 0.146616 is found, and
// one of 0.1466 later.
func TestSEDPlaysByHand(t *testing.T) {
	for gap, want := range map[float64]int{0.14662: 1000, 0.1466: 1500} {
		got := testkit.Must(SEDPlays([]float64{0.5 + gap, 0.5}, 0.1, 0.1, 1000,
			func(int) (float64, float64, float64) { return 0, 0, 250 }))
		if got[1] != want || got[0] != want {
			t.Errorf("gap %v: %v, want %d", gap, got, want)
		}
	}
	// of two that are the best neither is dropped for the other, and it does not stop
	got := testkit.Must(SEDPlays([]float64{0.9, 0.1, 0.9}, 0.1, 0.1, 1000,
		func(int) (float64, float64, float64) { return 0, 0, 250 }))
	if got[0] != policy.Forever || got[1] >= policy.Forever || got[2] != policy.Forever {
		t.Errorf("of two that are the best: %v", got)
	}
}
