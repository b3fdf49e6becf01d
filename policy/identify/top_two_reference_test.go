package identify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A table fixes every reward and every noise in advance: the j-th reward of an arm and the noise of
// its j-th release. Two implementations of one rule must then play the same.
type table struct {
	rng    *rand.Rand
	mean   []float64
	scale  float64
	reward [][]float64
	noise  [][]float64
}

func newTable(seed uint64, scale float64, mean ...float64) *table {
	return &table{rng: rand.New(rand.NewPCG(seed, 1)), mean: mean, scale: scale,
		reward: make([][]float64, len(mean)), noise: make([][]float64, len(mean))}
}

func (t *table) rewardOf(a, j int) float64 {
	for len(t.reward[a]) <= j {
		r := rand.New(rand.NewPCG(uint64(a)+77, uint64(len(t.reward[a]))^t.rng.Uint64()))
		x := 0.0
		if r.Float64() < t.mean[a] {
			x = 1
		}
		t.reward[a] = append(t.reward[a], x)
	}
	return t.reward[a][j]
}

func (t *table) noiseOf(a, j int) float64 {
	for len(t.noise[a]) <= j {
		x := t.scale * t.rng.ExpFloat64()
		if t.rng.Uint64()&1 == 0 {
			x = -x
		}
		t.noise[a] = append(t.noise[a], x)
	}
	return t.noise[a][j]
}

// fix draws the table's first rewards and noises, so that it does not matter who reads them first.
func (t *table) fix(rewards, noises int) *table {
	for a := range t.mean {
		t.rewardOf(a, rewards-1)
		t.noiseOf(a, noises-1)
	}
	return t
}

// An outcome is what a run leaves: who had how many plays whenever a phase ended, and how it stopped.
type outcome struct {
	Ends   []string // arm whose phase ended, and the plays of all arms then
	Plays  []int
	Tau    int // −1: not within the cap
	Answer int
}

// run plays p against the table through a curator that it writes out itself.
func run(t testing.TB, p Identifier, tab *table, limit int) outcome {
	t.Helper()
	arms := len(tab.mean)
	out := outcome{Plays: make([]int, arms), Answer: -1, Tau: -1}
	var (
		drawn, n, releases = make([]int, arms), make([]int, arms), make([]int, arms)
		sum                = make([]float64, arms)
		released           privacy.Released
		ledger             = privacy.NewLedger()
		total              int
	)
	for {
		b := p.Next(released)
		if b == nil {
			out.Tau, out.Answer = total, p.Answer()
			if out.Answer < 0 || p.Next(privacy.Released{}) != nil {
				t.Fatal("stopped without an answer, or not for good")
			}
			return out
		}
		if p.Answer() != -1 {
			t.Fatal("an answer before the end")
		}
		if total += b.Rounds(); total > limit {
			return out
		}
		v := &privacy.Values{Tail: privacy.Tail{H: tab.scale}}
		var ended []int
		for _, play := range b.Plays {
			a := play.Arm
			out.Plays[a] += play.Rounds
			for range play.Rounds {
				sum[a] += tab.rewardOf(a, drawn[a])
				drawn[a]++
				n[a]++
			}
			if play.Release {
				ended = append(ended, a)
				x := sum[a]
				if tab.scale > 0 {
					x += tab.noiseOf(a, releases[a])
				}
				v.N, v.Sum = append(v.N, n[a]), append(v.Sum, x)
				releases[a]++
				if !p.Mechanism().Continual() {
					n[a], sum[a] = 0, 0
				}
			}
		}
		out.Ends = append(out.Ends, fmt.Sprint(ended, out.Plays))
		released = testkit.Must(ledger.Release(0, p.Mechanism(), v))
	}
}

// literal is [Azize 2024, Algorithm 10], written from its pseudo-code one reward at a time, with
// the decisions of errors in print: clipped means, log n in the leader's bonus. The parts that
// differ between rules are functions of private means, local counts Ñ and global counts N.
type literal struct {
	beta   float64
	first  int
	growth float64
	forget bool
	bonus  func(n int, local float64, k int) float64
	// cost is of leader b and arm a, at counts; of means that carry so many noises.
	cost   func(mu []float64, b, a int, counts []float64) float64
	pick   func(mu []float64, b, a int, counts []float64) float64 // what the challenger minimises
	passes func(mu []float64, b, a int, local []float64, k []int) bool
}

func (l literal) play(tab *table, limit int) outcome {
	arms := len(tab.mean)
	out := outcome{Plays: make([]int, arms), Tau: -1, Answer: -1}
	var (
		n          = 0
		all, local = make([]float64, arms), make([]float64, arms) // N, Ñ
		mu         = make([]float64, arms)
		k          = make([]int, arms)
		start      = make([]int, arms) // N when the phase began
		batch      = make([]float64, arms)
		kept       = make([]float64, arms)
		led, own   = make([]int, arms), make([]int, arms)
	)
	pull := func(a int) {
		batch[a] += tab.rewardOf(a, out.Plays[a])
		out.Plays[a]++
		all[a]++
		n++
	}
	end := func(a int) {
		x := batch[a]
		if tab.scale > 0 {
			x += tab.noiseOf(a, k[a])
		}
		k[a]++
		if l.forget {
			kept[a], local[a] = 0, 0
		}
		kept[a] += x
		local[a] += float64(out.Plays[a] - start[a])
		batch[a], start[a] = 0, out.Plays[a]
		mu[a] = min(1, max(0, kept[a]/local[a]))
	}
	for a := range arms {
		for range l.first {
			pull(a)
		}
		end(a)
	}
	var first []int
	for a := range arms {
		first = append(first, a)
	}
	out.Ends = append(out.Ends, fmt.Sprint(first, out.Plays))
	ended := true
	for {
		if ended {
			best := 0
			for a := range arms {
				if mu[a] > mu[best] {
					best = a
				}
			}
			stop := true
			for b := range arms {
				stop = stop && (b == best || l.passes(mu, best, b, local, k))
			}
			if stop {
				out.Tau, out.Answer = n, best
				return out
			}
			ended = false
		}
		if n >= limit {
			return out
		}
		b := 0
		for a := range arms {
			if mu[a]+l.bonus(n+1, local[a], k[a]) > mu[b]+l.bonus(n+1, local[b], k[b]) {
				b = a
			}
		}
		c := -1
		for a := range arms {
			if a != b && (c < 0 || l.pick(mu, b, a, all) < l.pick(mu, b, c, all)) {
				c = a
			}
		}
		led[b]++
		played := c
		if float64(own[b]) <= l.beta*float64(led[b]) {
			own[b]++
			played = b
		}
		pull(played)
		if float64(out.Plays[played]) >= math.Ceil(l.growth*float64(start[played])) &&
			out.Plays[played] > start[played] {
			end(played)
			ended = true
			out.Ends = append(out.Ends, fmt.Sprint([]int{played}, out.Plays))
		}
	}
}

func logBonus(epsilon float64) func(int, float64, int) float64 {
	return func(n int, local float64, _ int) float64 {
		return math.Sqrt(math.Log(float64(n))/(2*local)) + math.Log(float64(n))/(epsilon*local)
	}
}

func literalAdaPTT(arms int, epsilon, risk, beta float64) literal {
	w := func(mu []float64, b, a int, counts []float64) float64 {
		gap := max(0, mu[b]-mu[a])
		return gap * gap / (2 * 0.25 * (1/counts[b] + 1/counts[a]))
	}
	zeta := math.Pi * math.Pi / 6
	return literal{beta: beta, first: 1, growth: 2, forget: true, bonus: logBonus(epsilon), cost: w, pick: w,
		passes: func(mu []float64, b, a int, local []float64, _ []int) bool {
			ka, kb := math.Log2(local[a])+2, math.Log2(local[b])+2
			c := 4*CG(math.Log(2*float64(arms-1)*zeta*zeta*ka*ka*kb*kb/risk)/2) +
				4*math.Log(4+math.Log(local[a])) + 4*math.Log(4+math.Log(local[b]))
			for _, x := range [][2]float64{{local[a], ka}, {local[b], kb}} {
				c += 4 / (epsilon * epsilon * x[0]) * math.Pow(math.Log(2*float64(arms)*zeta*x[1]*x[1]/risk), 2)
			}
			return w(mu, b, a, local) >= c
		}}
}

func literalAdaPTTStar(arms int, epsilon, risk, beta float64) literal {
	w := func(mu []float64, b, a int, counts []float64) float64 {
		gap := max(0, mu[b]-mu[a])
		return gap * min(3*epsilon, gap) / (2 * 0.25 * (1/counts[b] + 1/counts[a]))
	}
	zeta := math.Pi * math.Pi / 6
	return literal{beta: beta, first: 1, growth: 2, forget: true, bonus: logBonus(epsilon), cost: w, pick: w,
		passes: func(mu []float64, b, a int, local []float64, _ []int) bool {
			ka, kb := math.Log2(local[a])+2, math.Log2(local[b])+2
			ell := func(k float64) float64 { return math.Log(3 * float64(arms) * zeta * k * k / risk) }
			h := func(n, k float64) float64 { return WBar(2*ell(k)+4*math.Log(4+math.Log(n))+0.5) / 2 }
			var c float64
			if max(0, mu[b]-mu[a]) < 3*epsilon {
				c = 2*CG(math.Log(3*float64(arms-1)*zeta*zeta*ka*ka*kb*kb/risk)/2) +
					2*math.Log(4+math.Log(local[a])) + 2*math.Log(4+math.Log(local[b]))
				for _, x := range [][2]float64{{local[a], ka}, {local[b], kb}} {
					l := ell(x[1])
					c += 2*l*l/(epsilon*epsilon*x[0]) + 2*math.Sqrt2/epsilon*math.Sqrt(h(x[0], x[1])/x[0])*l
				}
			} else {
				c = 12*max(ell(ka), ell(kb)) + 6/math.Sqrt2*epsilon*(math.Sqrt(local[a]*h(local[a],
					ka))+math.Sqrt(local[b]*h(local[b], kb)))
			}
			return w(mu, b, a, local) >= c
		}}
}

// literalDPTT is Algorithm 1 of DP-TT's authors with the stopping rule of JointThreshold. Its
// infima are searched for, by golden sections.
func literalDPTT(arms int, epsilon, risk, beta, eta, caution float64, first int, forget bool) literal {
	search := func(f func(float64) float64, lo, hi float64) float64 {
		r := (math.Sqrt(5) - 1) / 2
		for range 60 {
			if x, y := hi-r*(hi-lo), lo+r*(hi-lo); f(x) < f(y) {
				hi = y
			} else {
				lo = x
			}
		}
		return f((lo + hi) / 2)
	}
	cost := func(mu []float64, b, a int, counts []float64) float64 {
		if mu[b] <= mu[a] {
			return 0
		}
		return search(func(u float64) float64 {
			return counts[b]*divergence.DEps(mu[b], u, epsilon) + counts[a]*divergence.DEps(mu[a], u, epsilon)
		}, mu[a], mu[b])
	}
	return literal{beta: beta, first: first, growth: 1 + eta, forget: forget,
		bonus: func(int, float64, int) float64 { return 0 },
		cost:  cost,
		pick: func(mu []float64, b, a int, counts []float64) float64 {
			return cost(mu, b, a, counts) + caution*math.Log(counts[a])
		},
		passes: func(mu []float64, b, a int, local []float64, k []int) bool {
			if mu[b] <= mu[a] {
				return false
			}
			w := cost(mu, b, a, local)
			if !forget {
				w = search(func(u float64) float64 {
					return local[b]*divergence.DEpsNoisy(mu[b], u, epsilon, float64(k[b])/local[b]) +
						local[a]*divergence.DEpsNoisy(mu[a], u, epsilon, float64(k[a])/local[a])
				}, mu[a], mu[b])
			}
			zeta := math.Pi * math.Pi / 6
			y := math.Log(float64(arms-1)*zeta*zeta/risk) + 2*math.Log(float64(k[a]*k[b]))
			return w > WBar(1+y)-1
		}}
}

func compare(t *testing.T, name string, got, want outcome) {
	t.Helper()
	if got.Tau != want.Tau || got.Answer != want.Answer {
		t.Errorf("%s: stopped at %d with %d, the reference at %d with %d", name, got.Tau,
			got.Answer, want.Tau, want.Answer)
	}
	for i := range min(len(got.Ends), len(want.Ends)) {
		if got.Ends[i] != want.Ends[i] {
			t.Errorf("%s: phase end %d: %s, the reference %s", name, i, got.Ends[i], want.Ends[i])
			return
		}
	}
	if want.Tau >= 0 && !slices.Equal(got.Plays, want.Plays) {
		t.Errorf("%s: plays %v, the reference %v", name, got.Plays, want.Plays)
	}
}

var worlds = []struct {
	means         []float64
	epsilon, beta float64
}{
	{[]float64{0.9, 0.2}, 1, 0.5},
	{[]float64{0.9, 0.5, 0.1}, 0.3, 0.5},
	{[]float64{0.2, 0.3, 0.9, 0.1, 0.4}, 1, 0.7},
	{[]float64{0.2, 0.3, 0.9, 0.1, 0.4}, 0.05, 0.5},
	{[]float64{0.75, 0.625, 0.5, 0.375, 0.25}, 3, 0.3},
	{[]float64{1, 0, 0, 0}, 0.5, 0.5},
	{[]float64{0.5, 0.5, 0.5}, 0.2, 0.5}, // no best arm: runs to the cap
}

func TestAgainstPlayByPlay(t *testing.T) {
	const limit = 20000
	stopped := map[string]int{}
	for i, w := range worlds {
		for seed := range uint64(4) {
			tab := newTable(seed, 1/w.epsilon, w.means...).fix(2*limit, 60)
			arms, budget := len(w.means), privacy.Pure{Epsilon: w.epsilon}
			for name, pair := range map[string]struct {
				p   Identifier
				ref literal
			}{
				"adap-tt": {testkit.Must(NewAdaPTT(arms, budget, 0.1, WithBeta(w.beta))),
					literalAdaPTT(arms, w.epsilon, 0.1, w.beta)},
				"adap-tt-star": {testkit.Must(NewAdaPTTStar(arms, budget, 0.1, WithBeta(w.beta))),
					literalAdaPTTStar(arms, w.epsilon, 0.1, w.beta)},
			} {
				got, want := run(t, pair.p, tab, limit), pair.ref.play(tab, limit)
				compare(t, fmt.Sprintf("%s, world %d, seed %d", name, i, seed), got, want)
				if want.Tau >= 0 {
					stopped[name]++
				}
			}
		}
	}
	if stopped["adap-tt"] < 10 || stopped["adap-tt-star"] < 10 {
		t.Errorf("only %v runs stopped", stopped)
	}
}

func TestDPTTAgainstPlayByPlay(t *testing.T) {
	stopped := 0
	for i, w := range worlds {
		limit := 1200 + len(w.means)*int(math.Ceil(24/w.epsilon))
		tab := newTable(uint64(i), 1/w.epsilon, w.means...).fix(2*limit, 60)
		arms, budget := len(w.means), privacy.Pure{Epsilon: w.epsilon}
		for _, c := range []struct {
			name string
			p    *DPTT
			ref  literal
		}{
			{"warm", testkit.Must(NewDPTT(arms, budget, 0.1, WithBeta(w.beta))),
				literalDPTT(arms, w.epsilon, 0.1, w.beta, 1, 3, int(math.Ceil(24/w.epsilon)), false)},
			{"n0 = 1, η = ½", testkit.Must(NewDPTT(arms, budget, 0.1, WithBeta(w.beta), WithFirst(1),
				WithEta(0.5), WithCaution(1))), literalDPTT(arms, w.epsilon, 0.1, w.beta, 0.5, 1, 1, false)},
			{"forgetting", testkit.Must(NewDPTT(arms, budget, 0.1, WithBeta(w.beta), WithForgetting(),
				WithFirst(4), WithCaution(1.5))), literalDPTT(arms, w.epsilon, 0.1, w.beta, 1, 1.5, 4, true)},
		} {
			got, want := run(t, c.p, tab, limit), c.ref.play(tab, limit)
			compare(t, fmt.Sprintf("dp-tt, %s, world %d", c.name, i), got, want)
			if want.Tau >= 0 {
				stopped++
			}
		}
	}
	if stopped < 8 {
		t.Errorf("only %d runs stopped", stopped)
	}
}

// TTUCB from [Azize 2024, §2.2.9], with a two-armed formula of its own for each quantity.
func TestTTUCBAgainstPlayByPlay(t *testing.T) {
	const limit = 4000
	stopped := 0
	for i, w := range worlds {
		arms := len(w.means)
		tab := newTable(uint64(i), 0, w.means...).fix(limit+1, 1)
		got := run(t, testkit.Must(NewTTUCB(arms, 0.05, WithBeta(w.beta))), tab, limit)

		n, sum := make([]float64, arms), make([]float64, arms)
		led, own := make([]int, arms), make([]int, arms)
		total := 0
		pull := func(a int) {
			sum[a] += tab.rewardOf(a, int(n[a]))
			n[a]++
			total++
		}
		mean := func(a int) float64 { return sum[a] / n[a] }
		w2 := func(b, a int) float64 {
			gap := max(0, mean(b)-mean(a))
			return 2 * gap * gap * n[a] * n[b] / (n[a] + n[b])
		}
		for a := range arms {
			pull(a)
		}
		tau, answer := -1, -1
		var played []int
		for total < limit {
			best := 0
			for a := range arms {
				if mean(a) > mean(best) {
					best = a
				}
			}
			stop := true
			for a := range arms {
				stop = stop && (a == best || w2(best, a) >= 2*CG(math.Log(float64(arms-1)/0.05)/2)+
					2*math.Log(4+math.Log(n[a]))+2*math.Log(4+math.Log(n[best])))
			}
			if stop {
				tau, answer = total, best
				break
			}
			b, c := 0, -1
			for a := range arms {
				index := func(a int) float64 { return mean(a) + math.Sqrt(math.Log(float64(total+1))/(2*n[a])) }
				if index(a) > index(b)+1e-13 {
					b = a
				}
			}
			for a := range arms {
				if a != b && (c < 0 || w2(b, a) < w2(b, c)-1e-12) {
					c = a
				}
			}
			led[b]++
			a := c
			if float64(own[b]) <= w.beta*float64(led[b]) {
				own[b]++
				a = b
			}
			pull(a)
			played = append(played, a)
		}
		if tau >= 0 {
			stopped++
		}
		if got.Tau != tau || got.Answer != answer {
			t.Errorf("world %d: stopped at %d with %d, the reference at %d with %d (%d plays)", i,
				got.Tau, got.Answer, tau, answer, len(played))
		}
		for a := range arms {
			if tau >= 0 && got.Plays[a] != int(n[a]) {
				t.Errorf("world %d: plays %v, the reference %v", i, got.Plays, n)
				break
			}
		}
	}
	if stopped < 5 {
		t.Errorf("only %d runs stopped", stopped)
	}
}

var _ policy.Policy = (*TTUCB)(nil)
