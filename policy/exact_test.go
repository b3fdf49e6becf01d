package policy

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// A rewards table fixes the n-th reward of each arm, so that algorithms can be compared
// decision by decision.
type rewards func(arm, n int) float64

// fixed is a table of Bernoulli rewards; other laws on [0,1] if spread is set.
func fixed(seed uint64, means []float64, spread bool) rewards {
	return func(arm, n int) float64 {
		x := seed + uint64(arm)*0x9e3779b97f4a7c15 + uint64(n)*0xd1342543de82ef95
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		u := float64((x^x>>31)>>11) / (1 << 53)
		if spread && n%3 > 0 {
			return min(u, 1-u) * means[arm]
		}
		if u < means[arm] {
			return 1
		}
		return 0
	}
}

// play runs a policy on a table for horizon rounds and returns the arm of each and the number
// of calls to Next.
func play(t testing.TB, p Policy, arms, horizon int, r rewards) (chosen []uint8, calls int) {
	n, sum := make([]int, arms), make([]float64, arms)
	values := privacy.Values{N: make([]int, 0, arms), Sum: make([]float64, 0, arms)}
	ledger := privacy.NewLedger()
	var released privacy.Released
	for len(chosen) < horizon {
		b := p.Next(released)
		calls++
		longest := 0
		for _, play := range b.Plays {
			longest = max(longest, play.Rounds)
		}
		for range min(longest, horizon) {
			for _, play := range b.Plays { // equal numbers of rounds: round robin
				if play.Rounds != longest {
					t.Fatalf("plays of %d and %d rounds in a batch", play.Rounds, longest)
				}
				if len(chosen) < horizon {
					n[play.Arm]++
					sum[play.Arm] += r(play.Arm, n[play.Arm])
					chosen = append(chosen, uint8(play.Arm))
				}
			}
		}
		values.N, values.Sum = values.N[:0], values.Sum[:0]
		for _, play := range b.Plays {
			if play.Release {
				values.N, values.Sum = append(values.N, n[play.Arm]), append(values.Sum, sum[play.Arm])
			}
		}
		released = privacy.Released{}
		if len(values.N) > 0 {
			var err error
			if released, err = ledger.Release(0, p.Mechanism(), &values); err != nil {
				t.Fatal(err)
			}
		}
	}
	return chosen, calls
}

// perRound is an index policy as printed: after every reward, every index.
func perRound(arms, horizon int, r rewards, index func(mean, n, t float64) float64) []uint8 {
	n, sum := make([]float64, arms), make([]float64, arms)
	chosen := make([]uint8, 0, horizon)
	for t := 1; t <= horizon; t++ {
		best := t - 1
		if t > arms {
			best = 0
			largest := math.Inf(-1)
			for a := range arms {
				if i := index(sum[a]/n[a], n[a], float64(t)); i > largest {
					best, largest = a, i
				}
			}
		}
		n[best]++
		sum[best] += r(best, int(n[best]))
		chosen = append(chosen, uint8(best))
	}
	return chosen
}

func logF(t float64) float64 { return math.Log(1 + float64(t*float64(math.Log(t)*math.Log(t)))) }

var indices = []struct {
	name  string
	new   func(arms int, unbounded bool) (Policy, error)
	index func(mean, n, t float64) float64
	looks float64 // calls a round, at most, over long runs
}{
	{
		"ucb", func(arms int, unbounded bool) (Policy, error) {
			p, err := NewUCB(arms)
			if err == nil {
				p.Unbounded = unbounded
			}
			return p, err
		},
		func(mean, n, t float64) float64 { return mean + math.Sqrt(2*logF(t)/n) }, 0.5,
	},
	{
		"ucb-2logt", func(arms int, unbounded bool) (Policy, error) {
			p, err := NewUCBLog(arms)
			if err == nil {
				p.Unbounded = unbounded
			}
			return p, err
		},
		func(mean, n, t float64) float64 { return mean + math.Sqrt(2*math.Log(t)/n) }, 0.5,
	},
	{
		"kl-ucb", func(arms int, unbounded bool) (Policy, error) {
			p, err := NewKLUCB(arms)
			if err == nil {
				p.Unbounded = unbounded
			}
			return p, err
		},
		func(mean, n, t float64) float64 { return divergence.KLUpper(mean, logF(t)/n) }, 0.5,
	},
}

func compare(t testing.TB, got, want []uint8) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("round %d plays arm %d, the per-round algorithm arm %d", i+1, got[i], want[i])
		}
	}
}

// Decisions must be those of the per-round algorithm, whatever the rewards.
func TestCertifiedBatchesAreExact(t *testing.T) {
	for _, c := range indices {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				arms := rapid.IntRange(2, 10).Draw(rt, "arms")
				mean := rapid.SampledFrom([]float64{0, 1, 0.5, 0.01, 0.99})
				if rapid.Bool().Draw(rt, "any means") {
					mean = rapid.Float64Range(0, 1)
				} else if rapid.Bool().Draw(rt, "tiny gaps") {
					mean = rapid.Float64Range(0.5, 0.5005)
				}
				means := rapid.SliceOfN(mean, arms, arms).Draw(rt, "means")
				horizon := rapid.SampledFrom([]int{arms, 50, 1000, 3000}).Draw(rt, "horizon")
				unbounded := rapid.Float64Range(0, 1).Draw(rt, "unbounded") > 0.9
				r := fixed(rapid.Uint64().Draw(rt, "seed"), means, rapid.Bool().Draw(rt, "spread"))
				p, err := c.new(arms, unbounded)
				if err != nil {
					rt.Fatal(err)
				}
				got, _ := play(t, p, arms, max(horizon, arms), r)
				want := perRound(arms, max(horizon, arms), r, c.index)
				for i := range want {
					if got[i] != want[i] {
						rt.Fatalf("round %d plays arm %d, the per-round algorithm arm %d", i+1, got[i], want[i])
					}
				}
			})
		})
	}
}

func TestCertifiedBatchesAreExactInLongRuns(t *testing.T) {
	for _, c := range indices {
		for i, means := range [][]float64{
			{.75, .625, .5, .375, .25}, {.25, .375, .5, .625, .75}, {.5, .5}, {.5, .4999, .5},
			{.9, .1}, {.01, .02, .03},
			{.99, .98, .97, .5}, {.3, 1}, {0, .001}, {1, .999, .9},
		} {
			t.Run(fmt.Sprint(c.name, means), func(t *testing.T) {
				p, err := c.new(len(means), false)
				if err != nil {
					t.Fatal(err)
				}
				horizon := 20_000
				if i < 3 && testkit.Full() {
					horizon = 100_000
				}
				r := fixed(uint64(i), means, false)
				got, calls := play(t, p, len(means), horizon, r)
				compare(t, got, perRound(len(means), horizon, r, c.index))
				if means[0] == .75 && float64(calls) > c.looks*float64(horizon) {
					t.Errorf("%d calls for %d rounds", calls, horizon)
				}
				t.Logf("%d calls for %d rounds", calls, horizon)
			})
		}
	}
}

// Rewards that are chosen to spoil certificates: long runs of zeros, in which the arm that leads
// falls as fast as it may and its rivals' growth with the level counts.
func TestCertifiedBatchesAreExactAgainstAnAdversary(t *testing.T) {
	for _, c := range indices {
		for seed := range uint64(24) {
			rng := rand.New(rand.NewPCG(seed, 1))
			block, period, horizon := 1+rng.IntN(300), 2, 10_000
			if seed%2 == 1 {
				block, period, horizon = 1+rng.IntN(600), 5+rng.IntN(30), 50_000
			}
			r := func(arm, n int) float64 {
				if n < 200 && period == 2 {
					return float64((n + arm) % 2)
				}
				if (n/block+arm)%(period*(1+arm)) == 0 {
					return 1
				}
				return 0
			}
			p, err := c.new(3, false)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := play(t, p, 3, horizon, r)
			compare(t, got, perRound(3, horizon, r, c.index))
		}
	}
}

// By hand: after one round each with rewards 1 and 0 the two arms of UCB have the same bonus, so
// arm 0 is played at t = 3. Its reward is 0: at t = 4, with f(4) = 1 + 4·1.386² = 8.687 and log f =
// 2.162, the indices are 0.5 + √(2·2.162/2) = 1.970 and 0 + √(2·2.162/1) = 2.079. Arm 1 is played,
// and gets 1: at t = 5 both have mean ½ of two rewards, and the lowest arm wins; it gets 0. At t =
// 6, with f(6) = 1 + 6·1.792² = 20.263 and log f = 3.009: 1/3 + √(2·3.009/3) = 1.750 against 1/2 +
// √(2·3.009/2) = 2.235.
func TestUCBByHand(t *testing.T) {
	table := [][]float64{{1, 0, 0}, {0, 1, 1}}
	p, err := NewUCB(2)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := play(t, p, 2, 6, func(arm, n int) float64 { return table[arm][n-1] })
	if want := []uint8{0, 1, 0, 1, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("plays %v, want %v", got, want)
	}
}

// By hand: with rewards 1 and 0 arm 0 has index 1 and arm 1 has 1 − 1/f(t). With one reward lost in
// two, at t = 4 the level of arm 0 is 2.162/2 = 1.081, and kl(½,q) = 1.081 at q = 0.970; arm 1 has
// 1 − 1/8.687 = 0.885. So arm 0 again; it gets 0: mean 1/3, level log f(5)/3 = log(1+5·1.609²)/3 =
// 0.878, q = 0.888, against 1 − 1/13.95 = 0.928: arm 1.
func TestKLUCBByHand(t *testing.T) {
	table := [][]float64{{1, 0, 0}, {0, 0, 0}}
	p, err := NewKLUCB(2)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := play(t, p, 2, 5, func(arm, n int) float64 { return table[arm][n-1] })
	if want := []uint8{0, 1, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("plays %v, want %v", got, want)
	}
}

// The slopes must be those of the levels, and the levels concave where they are used.
func TestLevels(t *testing.T) {
	for _, f := range []exploration{logSquared, plain} {
		for t0 := 3.0; t0 < 1e12; t0 *= 1.07 {
			level, slope := f.level(t0)
			for _, j := range []float64{1e-3 * t0, 0.1 * t0, t0, 10 * t0} {
				if up, _ := f.level(t0 + j); !(level < up && up <= level+j*slope*(1+1e-9)) {
					t.Errorf("log f for f = %v grows from %g at %g to %g at %g: the tangent says %g",
						f, level, t0, up, t0+j, level+j*slope)
				}
			}
		}
	}
}

// Rewards that get lost leave an arm without a mean, or with fewer rewards than rounds.
func TestLostRewards(t *testing.T) {
	for _, c := range indices {
		p, err := c.new(3, false)
		if err != nil {
			t.Fatal(err)
		}
		ledger := privacy.NewLedger()
		rng := rand.New(rand.NewPCG(7, 7))
		n, sum, rounds := make([]int, 3), make([]float64, 3), make([]int, 3)
		var released privacy.Released
		for range 2000 {
			b := p.Next(released)
			values := privacy.Values{}
			for _, play := range b.Plays {
				if play.Rounds < 1 {
					t.Fatalf("%s: a play of %d rounds", c.name, play.Rounds)
				}
				rounds[play.Arm] += play.Rounds
				for range min(play.Rounds, 1000) {
					if rng.IntN(3) == 0 {
						n[play.Arm]++
						sum[play.Arm] += float64(play.Arm) / 2
					}
				}
				values.N, values.Sum = append(values.N, n[play.Arm]), append(values.Sum, sum[play.Arm])
			}
			if released, err = ledger.Release(0, p.Mechanism(), &values); err != nil {
				t.Fatal(err)
			}
		}
		if rounds[2] < rounds[0]+rounds[1] {
			t.Errorf("%s: rounds %v, the last arm is the best", c.name, rounds)
		}
	}
}

// eliminate is successive elimination as printed, cycle by cycle.
func eliminate(arms, horizon int, r rewards, radius func(n float64) float64) []uint8 {
	alive := make([]int, arms)
	for a := range alive {
		alive[a] = a
	}
	sum := make([]float64, arms)
	var chosen []uint8
	for n := 1; ; n++ {
		for _, a := range alive {
			sum[a] += r(a, n)
			if chosen = append(chosen, uint8(a)); len(chosen) == horizon {
				return chosen
			}
		}
		top := math.Inf(-1)
		for _, a := range alive {
			top = max(top, sum[a]/float64(n))
		}
		alive = slices.DeleteFunc(alive, func(a int) bool {
			return top-sum[a]/float64(n) > 2*radius(float64(n))
		})
	}
}

func TestSuccessiveEliminationIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		arms := rapid.IntRange(2, 10).Draw(rt, "arms")
		mean := rapid.Float64Range(0, 1)
		if rapid.Bool().Draw(rt, "extremes") {
			mean = rapid.SampledFrom([]float64{0, 1, 0.5})
		}
		means := rapid.SliceOfN(mean, arms, arms).Draw(rt, "means")
		horizon := rapid.SampledFrom([]int{arms, 1000, 20_000}).Draw(rt, "horizon")
		r := fixed(rapid.Uint64().Draw(rt, "seed"), means, rapid.Bool().Draw(rt, "spread"))
		p, err := NewSuccessiveElimination(arms, horizon)
		if err != nil {
			rt.Fatal(err)
		}
		radius := func(n float64) float64 { return math.Sqrt(2 * math.Log(float64(horizon)) / n) }
		if rapid.Bool().Draw(rt, "anytime") {
			if p, err = NewSuccessiveEliminationAnytime(arms, 0.1); err != nil {
				rt.Fatal(err)
			}
			radius = func(n float64) float64 { return math.Sqrt(0.5 * math.Log(4*float64(arms)*(n*n)/0.1) / n) }
		}
		p.Unbounded = rapid.Float64Range(0, 1).Draw(rt, "unbounded") > 0.9
		got, calls := play(t, p, arms, horizon, r)
		want := eliminate(arms, horizon, r, radius)
		for i := range want {
			if got[i] != want[i] {
				rt.Fatalf("round %d plays arm %d, the cycle-by-cycle algorithm arm %d", i+1, got[i], want[i])
			}
		}
		if !p.Unbounded && horizon == 20_000 && calls > 1000 {
			rt.Fatalf("%d calls", calls)
		}
	})
}

// By hand: two arms, T = 100, rewards always 1 and 0. Arm 1 goes at the first n with 1 > 2√(2 log
// 100/n) = √(36.84/n): n = 37. So the rounds before are 74.
func TestSuccessiveEliminationByHand(t *testing.T) {
	p, err := NewSuccessiveElimination(2, 100)
	if err != nil {
		t.Fatal(err)
	}
	got, calls := play(t, p, 2, 100, func(arm, n int) float64 { return float64(1 - arm) })
	for i, a := range got {
		want := uint8(i % 2)
		if i >= 74 {
			want = 0
		}
		if a != want {
			t.Fatalf("round %d plays arm %d, want %d", i+1, a, want)
		}
	}
	t.Logf("%d calls", calls)
}

func TestExploreThenCommit(t *testing.T) {
	p, err := NewExploreThenCommit(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	table := [][]float64{{1, 0}, {0.5, 1}, {1, 0.5}}
	got, calls := play(t, p, 3, 9, func(arm, n int) float64 {
		if n > 2 {
			return 0
		}
		return table[arm][n-1]
	})
	// means .5, .75, .75: the lower of the best
	if want := []uint8{0, 1, 2, 0, 1, 2, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("plays %v, want %v", got, want)
	}
	if calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
}

func TestExploreRounds(t *testing.T) {
	for _, c := range []struct{ arms, horizon, want int }{
		{2, 2000, 197},       // 1000^{2/3} = 100, (log 2000)^{1/3} = 1.9661
		{5, 1_000_000, 8207}, // 200000^{2/3} = 3419.95, (log 1e6)^{1/3} = 2.3995
		{2, 2, 1}, {10, 15, 1},
	} {
		if got, err := ExploreRounds(c.arms, c.horizon); err != nil || got != c.want {
			t.Errorf("ExploreRounds(%d, %d) = %d, %v, want %d", c.arms, c.horizon, got, err, c.want)
		}
	}
}

func TestExactConstructors(t *testing.T) {
	fails := func(_ any, err error) {
		t.Helper()
		if err == nil {
			t.Error("no error")
		} else {
			t.Log(err)
		}
	}
	fails(NewUCB(1))
	fails(NewUCBLog(-1))
	fails(NewKLUCB(0))
	fails(NewSuccessiveElimination(1, 10))
	fails(NewSuccessiveElimination(5, 4))
	fails(NewSuccessiveEliminationAnytime(2, 0))
	fails(NewSuccessiveEliminationAnytime(2, 1))
	fails(NewSuccessiveEliminationAnytime(2, math.NaN()))
	fails(NewExploreThenCommit(1, 10))
	fails(NewExploreThenCommit(2, 0))
	fails(NewExploreThenCommit(3, Forever))
	fails(ExploreRounds(3, 2))
	fails(ExploreRounds(1, 2))
}

// eighths draws sums of Bernoulli rewards with means in eighths, 64 rewards to three words: quick
// enough not to hide what policies cost.
type eighths struct {
	rng  *rand.PCG
	mean []uint // times 8
}

func (e eighths) sum(arm, n int) float64 {
	total := 0
	m := e.mean[arm]
	for ; n > 0; n -= 64 {
		var w uint64 // from the last binary digit of the mean to the first: or for a 1, and for a 0
		for digit := bits.TrailingZeros(m); digit < 3; digit++ {
			if u := e.rng.Uint64(); m>>digit&1 == 1 {
				w |= u
			} else {
				w &= u
			}
		}
		if n < 64 {
			w &= 1<<n - 1
		}
		total += bits.OnesCount64(w)
	}
	return float64(total)
}

// run plays a policy for horizon rounds of summed rewards.
func (e eighths) run(p Policy, horizon int) (looks int, counts []int, err error) {
	arms := len(e.mean)
	n, sum := make([]int, arms), make([]float64, arms)
	values := privacy.Values{N: make([]int, 0, arms), Sum: make([]float64, 0, arms)}
	ledger := privacy.NewLedger()
	m := p.Mechanism()
	var released privacy.Released
	for t := 0; t < horizon; looks++ {
		b := p.Next(released)
		values.N, values.Sum = values.N[:0], values.Sum[:0]
		for _, play := range b.Plays {
			k := min(play.Rounds, horizon-t)
			t += k
			n[play.Arm] += k
			sum[play.Arm] += e.sum(play.Arm, k)
			values.N, values.Sum = append(values.N, n[play.Arm]), append(values.Sum, sum[play.Arm])
		}
		if released, err = ledger.Release(0, m, &values); err != nil {
			return 0, nil, err
		}
	}
	return looks, n, nil
}

// Regret must be that of independent simulations reward by reward: 452.42 ± 1.07 for UCB at T = 1e5
// and 85.38 ± 0.57 for KL-UCB at T = 2e4, on means .75, .625, .5, .375 and .25. The bound of 5.5
// standard errors is passed by chance with probability 4e-8.
func TestIndexRegret(t *testing.T) {
	testkit.OneGoroutine(t)
	const runs = 300
	for _, c := range []struct {
		index, horizon int
		want, se       float64
	}{{0, 100_000, 452.42, 1.07}, {2, 20_000, 85.38, 0.57}} {
		var sum, squares float64
		for seed := range uint64(runs) {
			p, err := indices[c.index].new(5, false)
			if err != nil {
				t.Fatal(err)
			}
			_, n, err := eighths{rand.NewPCG(seed, 99), []uint{6, 5, 4, 3, 2}}.run(p, c.horizon)
			if err != nil {
				t.Fatal(err)
			}
			regret := 0.0
			for a, k := range n {
				regret += float64(a) / 8 * float64(k)
			}
			sum += regret
			squares += regret * regret
		}
		mean := sum / runs
		se := math.Hypot(c.se, math.Sqrt((squares/runs-mean*mean)/runs))
		t.Logf("%s: %.2f, want %.2f ± %.2f", indices[c.index].name, mean, c.want, se)
		if math.Abs(mean-c.want) > 5.5*se {
			t.Errorf("%s: regret %.2f at T = %d, want %.2f ± %.2f", indices[c.index].name, mean,
				c.horizon, c.want, se)
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	se, err := NewSuccessiveElimination(3, 1_000_000_000)
	if err != nil {
		t.Fatal(err)
	}
	policies := []Policy{se}
	for _, c := range indices {
		p, err := c.new(3, false)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	for _, p := range policies {
		ledger := privacy.NewLedger()
		values := &privacy.Values{N: []int{1, 1, 1}, Sum: []float64{1, 0, 1}}
		p.Next(privacy.Released{})
		released, err := ledger.Release(0, p.Mechanism(), values)
		if err != nil {
			t.Fatal(err)
		}
		if allocs := testing.AllocsPerRun(1000, func() {
			b := p.Next(released)
			for i, play := range b.Plays {
				values.N[i] += play.Rounds
			}
			if len(b.Plays) == 1 {
				values.N, values.Sum = values.N[:1], values.Sum[:1]
			}
		}); allocs != 0 {
			t.Errorf("%T: %v allocations", p, allocs)
		}
	}
}

func BenchmarkExact(b *testing.B) {
	for _, horizon := range []int{1_000_000, 10_000_000} {
		for _, c := range indices {
			b.Run(fmt.Sprintf("%s/T=%.0e", c.name, float64(horizon)), func(b *testing.B) {
				benchmark(b, horizon, func() (Policy, error) { return c.new(5, false) })
			})
		}
		b.Run(fmt.Sprintf("successive-elimination/T=%.0e", float64(horizon)), func(b *testing.B) {
			benchmark(b, horizon, func() (Policy, error) { return NewSuccessiveElimination(5, horizon) })
		})
	}
}

func benchmark(b *testing.B, horizon int, policy func() (Policy, error)) {
	b.ReportAllocs()
	looks := 0
	for i := range b.N {
		p, err := policy()
		if err != nil {
			b.Fatal(err)
		}
		e := eighths{rand.NewPCG(uint64(i), 1), []uint{6, 5, 4, 3, 2}}
		l, _, err := e.run(p, horizon)
		if err != nil {
			b.Fatal(err)
		}
		looks += l
	}
	b.ReportMetric(float64(horizon)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrounds/s")
	b.ReportMetric(float64(looks)/float64(b.N), "looks")
}

func ExampleNewUCB() {
	p, err := NewUCB(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Next(privacy.Released{}).Plays)

	// The curator releases the running sum of each arm, here after 500 and 10 rewards.
	released, err := privacy.NewLedger().Release(0, p.Mechanism(),
		&privacy.Values{N: []int{500, 10}, Sum: []float64{300, 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Next(released).Plays) // four rounds of arm 1, whatever its rewards
	// Output:
	// [{0 1 true} {1 1 true}]
	// [{1 4 true}]
}
