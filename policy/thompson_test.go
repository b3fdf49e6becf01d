package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// An arm of n rewards whose sum is s, when a test begins.
type begun struct{ n, s float64 }

// begin makes a policy that has these rewards, and never draws every θ if it can decide ahead.
func begin(t *testing.T, gaussian bool, arms []begun, coins Coins) *Thompson {
	build := NewThompson
	if gaussian {
		build = NewThompsonGaussian
	}
	p, err := build(len(arms), coins)
	check(t, err)
	for a, arm := range arms {
		p.n[a], p.sum[a] = arm.n, arm.s
		p.post.set(a, arm.n, arm.s)
	}
	p.plain = math.Inf(1)
	p.low = 2 // often enough to be seen
	return p
}

// A driven policy is played on Bernoulli arms, of which it gets sums, as a simulation does.
type driven struct {
	p      *Thompson
	n, s   []float64
	ledger *privacy.Ledger
	slot   int
	ahead  int // rounds that were not decided by drawing every θ
}

func (d *driven) play(t *testing.T, rounds int, means []float64, r *rand.Rand, visit func(arm int)) {
	var released privacy.Released
	for rounds > 0 {
		if math.IsInf(d.p.plain, 1) {
			d.p.retry = 0
		}
		b := d.p.Next(released)
		play := b.Plays[0]
		if d.p.on {
			d.ahead += min(play.Rounds, rounds)
		}
		for range min(play.Rounds, rounds) {
			visit(play.Arm)
			d.n[play.Arm]++
			if r.Float64() < means[play.Arm] {
				d.s[play.Arm]++
			}
		}
		if rounds -= play.Rounds; rounds > 0 {
			var err error
			released, err = d.ledger.ReleaseAll([]int{d.slot}, d.p.Mechanism(),
				&privacy.Values{N: []int{int(d.n[play.Arm])}, Sum: []float64{d.s[play.Arm]}})
			check(t, err)
			d.slot++
		}
	}
}

// wins are the chances of each arm to have the largest θ, by quadrature: the others' distribution
// functions, at the middle of steps, integrated by its own.
func wins(gaussian bool, n, s []float64) []float64 {
	cdf := func(a int, x float64) float64 {
		if gaussian {
			return distuv.Normal{Mu: s[a] / (n[a] + 1), Sigma: 1 / math.Sqrt(n[a]+1)}.CDF(x)
		}
		return mathext.RegIncBeta(1+s[a], 1+n[a]-s[a], min(max(x, 0), 1))
	}
	const steps = 600
	out := make([]float64, len(n))
	lo, hi := 0.0, 1.0
	if gaussian {
		lo, hi = -8, 9
	}
	last := make([]float64, len(n))
	for i := 0; i <= steps; i++ {
		x := lo + (hi-lo)*float64(i)/steps
		now := make([]float64, len(n))
		for a := range n {
			now[a] = cdf(a, x)
		}
		for a := range n {
			p := now[a] - last[a]
			for b := range n {
				if b != a {
					p *= (now[b] + last[b]) / 2
				}
			}
			out[a] += p
		}
		last = now
	}
	total := 0.0
	for _, p := range out {
		total += p
	}
	for a := range out {
		out[a] /= total
	}
	return out
}

// The law of which arms are played, in their order, and of the sums of their rewards is the exact
// one, computed over all histories, when decisions are made ahead from the first round on: two χ² tests
// with a false alarm of 10⁻⁶ each, on all and on the plays of each arm. Broken twins are caught: one that takes the posterior of now for
// the worst, one that plays the rival wherever it may win, one that draws a rival's θ at its mark as
// if there were no mark, one that keeps the surplus of its bound, and one whose leader is never low.
func TestThompsonExactLaw(t *testing.T) {
	testkit.OneGoroutine(t)
	type world struct {
		name     string
		gaussian bool
		begin    []begun
		means    []float64
		rounds   int
		ahead    float64 // share of the rounds that is decided ahead, at least
	}
	runs := testkit.Size(25_000, 100_000)
	law := func(v world) map[string]float64 {
		out, seen := map[string]float64{}, map[string][]float64{}
		n, s := make([]float64, len(v.begin)), make([]float64, len(v.begin))
		for a, arm := range v.begin {
			n[a], s[a] = arm.n, arm.s
		}
		var walk func(p float64, path string, left int)
		walk = func(p float64, path string, left int) {
			if left == 0 {
				out[path+fmt.Sprint(s)] += p
				return
			}
			key := fmt.Sprint(n, s)
			w, ok := seen[key]
			if !ok {
				w = wins(v.gaussian, n, s)
				seen[key] = w
			}
			for a := range n {
				n[a]++
				walk(p*w[a]*(1-v.means[a]), path+fmt.Sprint(a), left-1)
				s[a]++
				walk(p*w[a]*v.means[a], path+fmt.Sprint(a), left-1)
				s[a]--
				n[a]--
			}
		}
		walk(1, "", v.rounds)
		return out
	}
	test := func(v world, want map[string]float64, twin func(posterior, *Thompson) posterior) (p, ahead float64) {
		coins := noise.NewFast(3, uint64(len(v.name)))
		r := rand.New(rand.NewPCG(5, 8))
		got := map[string]float64{}
		for range runs {
			d := driven{p: begin(t, v.gaussian, v.begin, &coins), ledger: privacy.NewLedger()}
			for _, arm := range v.begin {
				d.n, d.s = append(d.n, arm.n), append(d.s, arm.s)
			}
			if twin != nil {
				d.p.post = twin(d.p.post, d.p)
			}
			path := make([]byte, 0, 8)
			d.play(t, v.rounds, v.means, r, func(a int) { path = append(path, '0'+byte(a)) })
			got[string(path)+fmt.Sprint(d.s)]++
			ahead += float64(d.ahead)
		}
		return min(fit(want, got, runs), fit(counts(want), counts(got), runs)), ahead / float64(runs*v.rounds)
	}
	twins := map[string]func(posterior, *Thompson) posterior{
		"worst is now":   func(p posterior, t *Thompson) posterior { return nowTwin{p, t} },
		"accepts always": func(p posterior, _ *Thompson) posterior { return acceptTwin{p} },
		"redraws":        func(p posterior, _ *Thompson) posterior { return redrawTwin{p} },
		"never low":      func(p posterior, _ *Thompson) posterior { return highTwin{p} },
		"keeps surplus":  func(p posterior, _ *Thompson) posterior { return surplusTwin{p} },
	}
	caught := map[string]bool{}
	for _, v := range []world{
		{"fresh", false, make([]begun, 2), []float64{0.7, 0.4}, 6, 0.7},
		{"three", false, make([]begun, 3), []float64{0.7, 0.4, 0.5}, 5, 0.7},
		{"leader", false, []begun{{40, 30}, {8, 4}}, []float64{0.3, 0.4}, 7, 0.9},
		{"leader of three", false, []begun{{6, 3}, {60, 42}, {9, 3}}, []float64{0.6, 0.5, 0.1}, 5, 0.8},
		{"fresh, gaussian", true, make([]begun, 2), []float64{0.7, 0.4}, 6, 0.1},
		{"leader, gaussian", true, []begun{{40, 32}, {8, 4}}, []float64{0.3, 0.4}, 7, 0.9},
		{"leader of three, gaussian", true, []begun{{6, 3}, {60, 42}, {9, 3}}, []float64{0.6, 0.5, 0.1}, 5, 0.9},
	} {
		want := law(v)
		p, ahead := test(v, want, nil)
		t.Logf("%s: p = %.3g, %.0f%% of rounds decided ahead", v.name, p, 100*ahead)
		if p < 1e-6 {
			t.Errorf("%s: p = %.2g", v.name, p)
		}
		if ahead < v.ahead {
			t.Errorf("%s: only %.0f%% of rounds are decided ahead", v.name, 100*ahead)
		}
		for name, twin := range twins {
			if len(v.begin) > 2 || caught[name] {
				continue
			}
			if p, _ := test(v, want, twin); p < 1e-6 {
				caught[name] = true
			}
		}
	}
	for name := range twins {
		if !caught[name] {
			t.Errorf("the twin that %s passes everywhere", name)
		}
	}
}

// counts adds up what has the same plays of each arm.
func counts(of map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for key, x := range of {
		path, _, _ := strings.Cut(key, "[")
		out[fmt.Sprint(strings.Count(path, "0"), strings.Count(path, "1"))] += x
	}
	return out
}

// fit is the p-value of Pearson's χ² test, with cells of less than 10 put together.
func fit(want, got map[string]float64, runs int) float64 {
	x, cells := 0.0, 0.0
	rest, restWant := float64(runs), float64(runs)
	for key, q := range want {
		if e := q * float64(runs); e >= 10 {
			x += (got[key] - e) * (got[key] - e) / e
			rest, restWant = rest-got[key], restWant-e
			cells++
		}
	}
	if restWant >= 10 {
		x += (rest - restWant) * (rest - restWant) / restWant
		cells++
	} else if rest > 60 {
		return 0
	}
	return distuv.ChiSquared{K: cells - 1}.Survival(x)
}

// nowTwin takes the leader's posterior of now for the worst that it may come to.
type nowTwin struct {
	posterior
	p *Thompson
}

func (w nowTwin) set(a int, n, s float64) {
	if a == w.p.worst && w.p.on {
		n = w.p.n[w.p.leader]
	}
	w.posterior.set(a, n, s)
}

type acceptTwin struct{ posterior }

func (acceptTwin) raise(_, _ int, theta float64) float64 { return theta }

type redrawTwin struct{ posterior }

func (w redrawTwin) above(a int, _ float64) (float64, bool) { return w.draw(a), true }

type highTwin struct{ posterior }

func (highTwin) under(int, float64) float64 { return 0 }

type surplusTwin struct{ posterior }

func (w surplusTwin) above(a int, c float64) (float64, bool) {
	for {
		if x, ok := w.posterior.above(a, c); ok {
			return x, true
		}
	}
}

// Over 10⁴ rounds the plays of each arm and the regret have the law that drawing every θ in every
// round gives them: Kolmogorov and Smirnov's two samples, √(n/2)·D above 2.75 with a probability
// below 10⁻⁶ each. A policy that takes a rival's θ for larger by 0.05 is caught.
func TestThompsonAgainstPerRound(t *testing.T) {
	testkit.OneGoroutine(t)
	const horizon = 10_000
	runs := testkit.Size(150, 400)
	for _, gaussian := range []bool{false, true} {
		for _, means := range [][]float64{{0.75, 0.7, 0.7, 0.7, 0.7}, {0.75, 0.625, 0.5, 0.375, 0.25}} {
			regret := func(n []float64) (x float64) {
				for a := range n {
					x += n[a] * (means[0] - means[a])
				}
				return x
			}
			var plain, ahead, twin [3][]float64
			decided := 0
			add := func(to *[3][]float64, n []float64) {
				to[0], to[1], to[2] = append(to[0], n[0]), append(to[1], n[1]), append(to[2], regret(n))
			}
			for run := range uint64(runs) {
				r := rand.New(rand.NewPCG(run, 4))
				coins := noise.NewFast(run, 1)
				n, s := make([]float64, len(means)), make([]float64, len(means))
				for range horizon {
					best, top := 0, math.Inf(-1)
					for a := range means {
						theta := 0.0
						if gaussian {
							theta = s[a]/(n[a]+1) + coins.Normal()/math.Sqrt(n[a]+1)
						} else {
							theta = coins.Beta(1+s[a], 1+n[a]-s[a])
						}
						if theta > top {
							best, top = a, theta
						}
					}
					n[best]++
					if r.Float64() < means[best] {
						s[best]++
					}
				}
				add(&plain, n)
				for i, to := range []*[3][]float64{&ahead, &twin} {
					if i == 1 && means[1] == 0.7 {
						continue
					}
					own := noise.NewFast(run, 2+uint64(i))
					d := driven{p: begin(t, gaussian, make([]begun, len(means)), &own), ledger: privacy.NewLedger(),
						n: make([]float64, len(means)), s: make([]float64, len(means))}
					d.p.plain, d.p.low = 1000, 0.125 // early, so that much is decided ahead
					if i == 1 {
						d.p.post = boldTwin{d.p.post}
					}
					d.play(t, horizon, means, r, func(int) {})
					add(to, d.n)
					if i == 0 {
						decided += d.ahead
					}
				}
			}
			if decided < runs*horizon/4 {
				t.Errorf("only %d of %d rounds are decided ahead", decided, runs*horizon)
			}
			worst, off := 0.0, 0.0
			for i := range plain {
				worst = max(worst, smirnov(plain[i], ahead[i]))
				if twin[i] != nil {
					off = max(off, smirnov(plain[i], twin[i]))
				}
			}
			t.Logf("gaussian %v, means %v: largest statistic %.2f, of the twin %.2f", gaussian, means, worst, off)
			if worst > 2.75 {
				t.Errorf("gaussian %v, means %v: Smirnov's statistic is %.2f", gaussian, means, worst)
			}
			if off < 2.75 && twin[0] != nil {
				t.Errorf("gaussian %v, means %v: a bolder twin passes: %.2f", gaussian, means, off)
			}
		}
	}
}

type boldTwin struct{ posterior }

func (w boldTwin) above(a int, c float64) (float64, bool) {
	x, ok := w.posterior.above(a, c)
	return x + 0.05, ok
}

// smirnov is √(n/2)·D for two samples of n.
func smirnov(x, y []float64) float64 {
	slices.Sort(x)
	slices.Sort(y)
	worst, i, j := 0, 0, 0
	for i < len(x) && j < len(y) {
		v := min(x[i], y[j])
		for i < len(x) && x[i] == v {
			i++
		}
		for j < len(y) && y[j] == v {
			j++
		}
		worst = max(worst, i-j, j-i)
	}
	return float64(worst) / float64(len(x)) * math.Sqrt(float64(len(x))/2)
}

// What the posteriors promise, each against the distribution function: raised draws have the law of
// the place that they are raised to and keep to their side of x, bounds hold, what they bound is
// drawn with the chance that is left, and patience is kept at the last reward.
func TestPosteriors(t *testing.T) {
	testkit.OneGoroutine(t)
	const draws = 20_000
	coins := noise.NewFast(9, 9)
	for _, gaussian := range []bool{false, true} {
		for _, v := range []struct{ n, s, more, zeros float64 }{ // of each place; what the leader may get
			{0, 0, 1, 2}, {10, 6, 3, 5}, {200, 150, 10, 12}, {1000, 990.5, 0.25, 30}, {1e6, 7e5, 200, 1000},
			{40, 0, 0, 3}, {30, 30, 4, 4},
		} {
			p := begin(t, gaussian, make([]begun, 2), &coins)
			post := p.post
			cdf := func(n, s, x float64) float64 {
				if gaussian {
					return distuv.Normal{Mu: s / (n + 1), Sigma: 1 / math.Sqrt(n+1)}.CDF(x)
				}
				return mathext.RegIncBeta(1+s, 1+n-s, min(max(x, 0), 1))
			}
			post.set(2, v.n+v.zeros, v.s)
			for _, got := range []begun{{v.n, v.s}, {v.n + v.zeros, v.s + v.more}, {v.n + v.more, v.s + v.more}} {
				got.n = min(got.n, v.n+v.zeros)
				post.set(0, got.n, got.s)
				us := make([]float64, draws)
				for i := range us {
					low := post.draw(2)
					x := post.raise(0, 2, low)
					if low > 0 && x < low*(1-1e-12) {
						t.Fatalf("gaussian %v, %+v: %v was raised to %v", gaussian, v, low, x)
					}
					us[i] = cdf(got.n, got.s, x)
				}
				if k := uniform(us); k > 2.7 {
					t.Errorf("gaussian %v, %+v: raised to %+v, Kolmogorov's statistic is %.2f", gaussian, v, got, k)
				}
			}
			post.set(0, v.n, v.s)
			mean, sd := post.spread(0)
			for _, z := range []float64{0.5, 1, 2, 4, 7} {
				c := mean + z*sd
				if c < 1 {
					exact := 1 - cdf(v.n, v.s, c)
					bound := post.over(0, c)
					if exact > 1e-9 && !(bound >= exact*(1-1e-9)) {
						t.Errorf("gaussian %v, %+v: P(θ > %v) is %v, bounded by %v", gaussian, v, c, exact, bound)
					}
					kept := 0.0
					var us []float64
					for range draws {
						if x, ok := post.above(0, c); ok {
							kept++
							us = append(us, (1-cdf(v.n, v.s, x))/exact)
						}
					}
					share := exact / bound
					if exact < 1e-6 {
						continue // the rest is only as exact as 1 − F
					}
					if d := math.Abs(kept-draws*share) / math.Sqrt(draws*share*(1-share)+1); d > 5 {
						t.Errorf("gaussian %v, %+v: %v of %v are above %v, want %v", gaussian, v, kept, draws, c,
							draws*share)
					}
					if k := uniform(us); k > 2.7 {
						t.Errorf("gaussian %v, %+v, above %v: Kolmogorov's statistic is %.2f", gaussian, v, c, k)
					}
				}
				if c = mean - z*sd; c <= 0 {
					continue
				}
				exact := cdf(v.n, v.s, c)
				if got := post.under(0, c); math.Abs(got-exact) > 1e-9*exact {
					t.Errorf("gaussian %v, %+v: P(θ ≤ %v) is %v, want %v", gaussian, v, c, got, exact)
				}
				us := make([]float64, 2000)
				for i := range us {
					us[i] = cdf(v.n, v.s, post.below(0, c)) / exact
				}
				if k := uniform(us); k > 2.7 {
					t.Errorf("gaussian %v, %+v, below %v: Kolmogorov's statistic is %.2f", gaussian, v, c, k)
				}
				for _, quiet := range []float64{0.2, 2, 12} {
					m := post.patience(0, c, quiet)
					if m >= 0 && !(cdf(v.n+m, v.s, c) <= math.Exp(-quiet)) {
						t.Errorf("gaussian %v, %+v: after %v zeros P(θ ≤ %v) is %v, above exp(−%v)", gaussian, v,
							m, c, cdf(v.n+m, v.s, c), quiet)
					}
					if m < 0 && z > 1 && z*z/2 > 2*quiet+2 && v.s > 0 && v.s < v.n {
						t.Errorf("gaussian %v, %+v: no patience for exp(−%v) at %v", gaussian, v, quiet, z)
					}
				}
			}
		}
	}
}

// uniform is Kolmogorov's √n·D: above 2.7 with a probability below 10⁻⁶.
func uniform(us []float64) float64 {
	slices.Sort(us)
	worst := 0.0
	for i, u := range us {
		worst = max(worst, u-float64(i)/float64(len(us)), float64(i+1)/float64(len(us))-u)
	}
	return worst * math.Sqrt(float64(len(us)))
}

// Deciding ahead allocates nothing.
func TestThompsonAllocatesNothing(t *testing.T) {
	for _, gaussian := range []bool{false, true} {
		coins := noise.NewFast(1, 1)
		p := begin(t, gaussian, []begun{{1e5, 7.5e4}, {500, 350}, {100, 60}}, &coins)
		n, s := 1e5, 7.5e4
		ledger := privacy.NewLedger()
		values := privacy.Values{N: make([]int, 1), Sum: make([]float64, 1)}
		ids := make([]int, 1)
		var released privacy.Released
		ahead := 0
		if got := testing.AllocsPerRun(2000, func() {
			b := p.Next(released)
			if b.Plays[0].Arm != 0 { // its release is lost, and it stays what it was
				released = privacy.Released{}
				return
			}
			ahead += b.Plays[0].Rounds
			n, s = n+float64(b.Plays[0].Rounds), s+math.Round(0.75*float64(b.Plays[0].Rounds))
			values.N[0], values.Sum[0] = int(n), s
			ids[0]++
			var err error
			if released, err = ledger.ReleaseAll(ids, p.Mechanism(), &values); err != nil {
				t.Fatal(err)
			}
		}); got > 0 && !testkit.Race {
			t.Errorf("gaussian %v: %v allocations a batch", gaussian, got)
		}
		if ahead < 2500 {
			t.Errorf("gaussian %v: %d rounds in 2000 batches", gaussian, ahead)
		}
	}
}
