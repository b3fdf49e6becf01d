package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// tossed are coins of gonum's samplers.
type tossed struct{ r *rand.Rand }

func toss(seed uint64) tossed { return tossed{rand.New(rand.NewPCG(seed, 77))} }

func (c tossed) Float64() float64          { return c.r.Float64() }
func (c tossed) Normal() float64           { return c.r.NormFloat64() }
func (c tossed) Beta(a, b float64) float64 { return distuv.Beta{Alpha: a, Beta: b, Src: c.r}.Rand() }

// imedPerRound is IMED after every reward.
func imedPerRound(arms, horizon int, r rewards) []uint8 {
	n, sum := make([]float64, arms), make([]float64, arms)
	chosen := make([]uint8, 0, horizon)
	for t := range horizon {
		best := t
		if t >= arms {
			best = 0
			top, least := 0.0, math.Inf(1)
			for a := range arms {
				top = max(top, min(max(sum[a]/n[a], 0), 1))
			}
			for a := range arms {
				x := float64(n[a]*divergence.KL(min(max(sum[a]/n[a], 0), 1), top)) + math.Log(n[a])
				if x < least || x == least && n[a] < n[best] {
					best, least = a, x
				}
			}
		}
		n[best]++
		sum[best] += r(best, int(n[best]))
		chosen = append(chosen, uint8(best))
	}
	return chosen
}

func TestIMEDIsThePerRoundIMED(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		means := make([]float64, 2+r.IntN(4))
		for a := range means {
			means[a] = r.Float64()
		}
		switch seed % 8 {
		case 5:
			means[0] = 1
		case 6:
			clear(means)
		case 7:
			means[1] = means[0]
		}
		table := fixed(seed, means, seed%2 == 1)
		want := imedPerRound(len(means), 20_000, table)
		for _, unbounded := range []bool{false, true} {
			p, err := NewIMED(len(means))
			check(t, err)
			p.Unbounded = unbounded
			got, calls := play(t, p, len(means), 20_000, table)
			if !slices.Equal(got[:20_000], want) {
				t.Fatalf("seed %d, means %v: differs from the per-round algorithm", seed, means)
			}
			if !unbounded && seed%8 < 5 && seed%2 == 0 && calls > 10_000 {
				t.Errorf("seed %d, means %v: %d calls for 20 000 rounds", seed, means, calls)
			}
		}
	}
}

// IMED by hand: rewards 1, 0 (arms 0, 1), then arm 0 gives 1 until it does not.
//
//	means 1, 0: kl(0, 1) = ∞                    arm 0, for ever while it gives 1
//	after 1, 0 of arm 0: mean ½, N = 2          arm 1: kl(0, ½) + log 1 = log 2 = log N: a tie, fewer rewards first
func TestIMEDByHand(t *testing.T) {
	table := func(arm, n int) float64 {
		if arm == 0 && n == 1 {
			return 1
		}
		return 0
	}
	p, err := NewIMED(2)
	check(t, err)
	got, _ := play(t, p, 2, 4, table)
	if !slices.Equal(got[:4], []uint8{0, 1, 0, 1}) {
		t.Errorf("got %v", got)
	}
}

func TestThompsonAgainstReference(t *testing.T) {
	const horizon = 3000
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 6))
		arms := 2 + r.IntN(4)
		tab := newTable(r, arms, horizon, func() float64 { return 0 })
		for _, gaussian := range []bool{false, true} {
			build := NewThompson
			if gaussian {
				build = NewThompsonGaussian
			}
			p, err := build(arms, toss(seed))
			check(t, err)
			p.Unbounded = true // so that it draws every θ in every round
			got := playTable(t, p, tab, privacy.Tail{}, horizon)
			coins := toss(seed)
			n, s := make([]int, arms), make([]float64, arms)
			for i := range horizon {
				best, top := 0, math.Inf(-1)
				for a := range arms {
					k := float64(n[a])
					theta := 0.0
					if gaussian {
						theta = s[a]/(k+1) + coins.Normal()/math.Sqrt(k+1)
					} else {
						theta = coins.Beta(1+s[a], 1+k-s[a])
					}
					if theta > top {
						best, top = a, theta
					}
				}
				if got[i] != best {
					t.Fatalf("gaussian %v: round %d plays arm %d, the reference %d", gaussian, i+1,
						got[i], best)
				}
				s[best] += tab.reward[best][n[best]]
				n[best]++
			}
		}
	}
}

// lazy is Lazy-DP-TS from its description: every θ in every round, with the optimism
// constant·log t/(εO).
func lazy(tab table, horizon int, eps, constant float64, coins Coins) []int {
	arms := len(tab.reward)
	mean, o, buffered, drawn, releases := make([]float64, arms), make([]float64, arms),
		make([]int, arms), make([]int, arms), make([]int, arms)
	var played []int
	for t := 1; t <= horizon; t++ {
		best := t - 1
		if t > arms {
			best = 0
			top := math.Inf(-1)
			for a := range arms {
				mu := min(1, max(0, mean[a]+constant*math.Log(float64(t))/(eps*o[a])))
				if theta := coins.Beta(mu*o[a]+1, (1-mu)*o[a]+1); theta > top {
					best, top = a, theta
				}
			}
		}
		played = append(played, best)
		drawn[best]++
		buffered[best]++
		if size := 1 << releases[best]; buffered[best] == size { // 1, 2, 4, …
			sum := 0.0
			for _, x := range tab.reward[best][drawn[best]-size : drawn[best]] {
				sum += x
			}
			o[best] = float64(size)
			mean[best] = (sum + tab.noise[best][releases[best]]) / o[best]
			releases[best]++
			buffered[best] = 0
		}
	}
	return played
}

// The counts of plays have the same law as with a draw of every θ in every round: Welch's test at
// |z| < 5 on the plays of each arm and on their squares, at two rounds, each a false alarm of
// 6·10⁻⁷. The broken twin, an optimism of 2 instead of 3, is caught.
func TestLazyDPTSAgainstReference(t *testing.T) {
	testkit.OneGoroutine(t)
	const horizon, runs = 1500, 400
	worst, twin := 0.0, 0.0
	for i, v := range []struct {
		eps   float64
		means []float64
	}{{1, []float64{0.7, 0.5, 0.3}}, {0.05, []float64{0.9, 0.8}},
		{0.3, []float64{0.6, 0.6, 0.1, 0.5}}, {math.Inf(1), []float64{0.6, 0.5}},
		{8, []float64{0.95, 0.9, 0.2}}} {
		arms := len(v.means)
		stats := func(runner func(run uint64, tab table) []int) [][2]float64 {
			out := make([][2]float64, 4*arms)
			for run := range uint64(runs) {
				r := rand.New(rand.NewPCG(run, uint64(i)))
				tab := table{make([][]float64, arms), make([][]float64, arms)}
				for a := range arms {
					for range horizon {
						x := 0.0
						if r.Float64() < v.means[a] {
							x = 1
						}
						tab.reward[a] = append(tab.reward[a], x)
					}
					for range 16 {
						tab.noise[a] = append(tab.noise[a], laplace(r, 1/v.eps)())
					}
				}
				played := runner(run, tab)
				for h, until := range []int{horizon / 6, horizon} {
					for a := range arms {
						n := 0.0
						for _, b := range played[:until] {
							if a == b {
								n++
							}
						}
						for j, x := range []float64{n, n * n} {
							out[4*a+2*h+j][0] += x / runs
							out[4*a+2*h+j][1] += x * x / runs
						}
					}
				}
			}
			return out
		}
		z := func(x, y [][2]float64) (top float64) {
			for i := range x {
				v := (x[i][1] - x[i][0]*x[i][0] + y[i][1] - y[i][0]*y[i][0]) / runs
				if v > 0 {
					top = max(top, math.Abs(x[i][0]-y[i][0])/math.Sqrt(v))
				}
			}
			return top
		}
		want := stats(func(run uint64, tab table) []int { return lazy(tab, horizon, v.eps, 3, toss(1000+run)) })
		got := stats(func(run uint64, tab table) []int {
			p, err := NewLazyDPTS(arms, v.eps, toss(2000+run))
			check(t, err)
			return playTable(t, p, tab, privacy.Tail{}, horizon)
		})
		if x := z(got, want); x > 5 {
			t.Errorf("ε = %v: z = %.1f against the reference", v.eps, x)
		} else {
			worst = max(worst, x)
		}
		if !math.IsInf(v.eps, 1) && i == 0 {
			twin = z(got, stats(func(run uint64, tab table) []int {
				return lazy(tab, horizon, v.eps, 2, toss(1000+run))
			}))
		}
	}
	t.Logf("largest z %.2f, of the twin %.2f", worst, twin)
	if twin < 5 {
		t.Errorf("a smaller optimism passes: z = %.1f", twin)
	}
}

// Buffers of 1, 2, 4, … rewards, each released once, whole, at the round that fills it.
func TestLazyDPTSReleasesFullBuffers(t *testing.T) {
	p, err := NewLazyDPTS(3, 0.5, toss(1))
	check(t, err)
	l := privacy.NewLedger()
	released := privacy.Released{}
	waiting, size := [3]int{}, [3]int{1, 1, 1}
	for slot, rounds := 0, 0; rounds < 100_000; slot++ {
		b := p.Next(released)
		released = privacy.Released{}
		v := &privacy.Values{}
		for _, play := range b.Plays {
			waiting[play.Arm] += play.Rounds
			rounds += play.Rounds
			if play.Release != (waiting[play.Arm] == size[play.Arm]) || waiting[play.Arm] > size[play.Arm] {
				t.Fatalf("%v with %d of %d waiting", play, waiting[play.Arm], size[play.Arm])
			}
			if play.Release {
				v.N, v.Sum = append(v.N, size[play.Arm]),
					append(v.Sum, float64(size[play.Arm])*0.3*float64(play.Arm))
				waiting[play.Arm] = 0
				size[play.Arm] *= 2
			}
		}
		if len(v.N) > 0 {
			ids := []int{1000 * slot, 1000*slot + 1, 1000*slot + 2}
			released, err = l.ReleaseAll(ids[:len(v.N)], p.Mechanism(), v)
			check(t, err)
		}
	}
	if size[2] < 1<<16 {
		t.Errorf("the best arm's buffer is %d", size[2])
	}
}

// Many rounds at a time have the law of one at a time: counts of each arm's wins in four stretches,
// in every regime, by a χ² test of two samples with a false alarm of 10⁻⁶ each. Twins: the bounds
// kept without their ratio, and a law that does not grow.
func TestDrawsHaveTheLaw(t *testing.T) {
	type arm struct{ o, sum, slope float64 }
	test := func(arms []arm, start int, spoil func(d *draws), frozen bool) float64 {
		const rounds, repeats = 2000, 12
		law := func(a int, logT float64) (float64, float64) {
			x := min(arms[a].o, max(0, arms[a].sum+float64(arms[a].slope*logT)))
			return x + 1, arms[a].o - x + 1
		}
		k := len(arms)
		plain, fast := make([]float64, 4*k), make([]float64, 4*k)
		for rep := range uint64(repeats) {
			coins := toss(rep + 31)
			for i := range rounds {
				best, top := 0, math.Inf(-1)
				logT := math.Log(float64(start + i))
				if frozen {
					logT = math.Log(float64(start))
				}
				for a := range k {
					x, y := law(a, logT)
					if theta := coins.Beta(x, y); theta > top {
						best, top = a, theta
					}
				}
				plain[4*best+4*i/rounds]++
			}
			d := draws{coins: toss(rep + 9000), posterior: law, arms: k, round: start}
			for i := 0; i < rounds; {
				if spoil != nil && d.round >= d.until && d.more == 0 {
					d.prepare()
					spoil(&d)
				}
				a, n := d.next()
				for ; n > 0 && i < rounds; n, i = n-1, i+1 {
					fast[4*a+4*i/rounds]++
				}
			}
		}
		x, dof := 0.0, 0.0
		for i := range plain {
			if n := plain[i] + fast[i]; n >= 10 {
				x += (plain[i] - fast[i]) * (plain[i] - fast[i]) / n
				dof++
			}
		}
		return distuv.ChiSquared{K: max(1, dof-4)}.Survival(x)
	}
	settings := map[string][]arm{
		"clear":          {{1000, 700, 0}, {300, 150, 3}, {50, 10, 1}},
		"close":          {{256, 150, 2}, {256, 145, 2}, {128, 70, 2}},
		"capped":         {{64, 60, 5}, {16, 16, 5}, {4, 4, 5}, {128, 20, 5}},
		"nearly capped":  {{64, 30, 5.2}, {32, 1.5, 5}, {128, 20, 5}},
		"one capped":     {{64, 10, 20}, {2000, 1600, 20}, {2000, 1500, 20}},
		"group trails":   {{2000, 1990, 0.9}, {2, 2, 1}, {3, 3, 1}},
		"at the bottom":  {{100, -50, 1}, {100, -20, 1}, {1, 0, 0.2}},
		"uncertain lead": {{8, 7, 0.1}, {1000, 600, 1}, {900, 500, 3}},
	}
	for name, arms := range settings {
		for _, start := range []int{4, 300, 1_000_000} {
			if p := test(arms, start, nil, false); p < 1e-6 {
				t.Errorf("%s from round %d: p = %.2g", name, start, p)
			}
		}
	}
	if p := test([]arm{{800, -415, 150}, {800, -455, 150}}, 300, func(d *draws) {
		for i := range d.units {
			d.units[i].least = d.units[i].most
		}
	}, false); p > 1e-6 {
		t.Errorf("bounds without their ratio pass: p = %.2g", p)
	}
	if p := test([]arm{{400, -122, 60}, {400, -100, 50}}, 300, nil, true); p > 1e-6 {
		t.Errorf("a law that does not grow passes: p = %.2g", p)
	}
}

func TestDrawAbove(t *testing.T) {
	const n = 20_000
	coins := toss(3)
	for _, v := range []struct {
		a, b, c float64
	}{{3, 5, 0.9}, {300, 500, 0.45}, {1, 7, 0.8}, {40, 1.001, 0.2}, {2, 1.5, 0.999}, {50, 1, 0.99},
		{1e5, 3e5, 0.26}, {1.5, 1e4, 1e-3}} {
		p := betaAbove(v.a, v.b, v.c, 1-v.c)
		law := distuv.Beta{Alpha: v.a, Beta: v.b}
		if want := law.Survival(v.c); math.Abs(p-want) > 1e-9*want+1e-15 && math.Abs(p-want) > 1e-12 {
			t.Errorf("%v: P = %v, want %v", v, p, want)
		}
		// Kolmogorov's statistic √n·D: above 2.7 with a probability below 10⁻⁶.
		xs := make([]float64, n)
		for i := range xs {
			x, x1 := drawAbove(coins, v.a, v.b, v.c, 1-v.c, p > 0.1)
			if !(x >= v.c && x <= 1) || math.Abs(x+x1-1) > 1e-12 {
				t.Fatalf("%v: drew %v, %v", v, x, x1)
			}
			xs[i] = x
		}
		slices.Sort(xs)
		worst := 0.0
		for i, x := range xs {
			f := 1 - betaAbove(v.a, v.b, x, 1-x)/p
			worst = max(worst, math.Abs(f-float64(i)/n), math.Abs(f-float64(i+1)/n))
		}
		if x := worst * math.Sqrt(n); x > 2.7 {
			t.Errorf("%v: Kolmogorov's statistic is %.2f", v, x)
		}
	}
}

func TestSamplersBadInput(t *testing.T) {
	for _, v := range []struct {
		err  error
		want string
	}{
		{second(NewThompson(1, toss(1))), "arms is 1"},
		{second(NewThompson(2, nil)), "coins are missing"},
		{second(NewThompsonGaussian(2, nil)), "coins are missing"},
		{second(NewLazyDPTS(2, 0, toss(1))), "epsilon is 0"},
		{second(NewLazyDPTS(2, math.NaN(), toss(1))), "epsilon is NaN"},
		{second(NewLazyDPTS(2, 1, nil)), "coins are missing"},
		{second(NewLazyDPTS(0, 1, toss(1))), "arms is 0"}, {second(NewIMED(1)), "arms is 1"},
	} {
		if v.err == nil || !strings.Contains(v.err.Error(), v.want) {
			t.Errorf("got %v, want %q", v.err, v.want)
		}
	}
}

func second[P any](_ P, err error) error { return err }
