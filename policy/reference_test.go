package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// A table fixes every reward and every noise in advance: the j-th reward of an arm and the noise of
// its j-th release. Two implementations of one policy must then play the same arms, round by round.
type table struct {
	reward [][]float64
	noise  [][]float64
}

func newTable(r *rand.Rand, arms, horizon int, noise func() float64) table {
	t := table{make([][]float64, arms), make([][]float64, arms)}
	for a := range arms {
		mean := r.Float64()
		for range horizon {
			x := 0.0
			if r.Float64() < mean {
				x = 1
			}
			t.reward[a] = append(t.reward[a], x)
			t.noise[a] = append(t.noise[a], noise())
		}
	}
	return t
}

// playTable runs p against the table one round at a time, through a curator that it writes out
// itself, and returns the arms played.
func playTable(t *testing.T, p Policy, tab table, tail privacy.Tail, horizon int) []int {
	t.Helper()
	arms := len(tab.reward)
	var (
		played   []int
		drawn    = make([]int, arms) // rewards used of each arm
		releases = make([]int, arms)
		sum      = make([]float64, arms)
		n        = make([]int, arms)
		released privacy.Released
		ledger   = privacy.NewLedger()
		slot     = make([]int, arms) // open slot of each arm
		opened   int
		open     = func(a int) { slot[a] = opened; opened++ }
	)
	for a := range arms {
		open(a)
	}
	for {
		b := p.Next(released)
		if b == nil {
			t.Fatalf("stopped after %d rounds", len(played))
		}
		if b.Fresh {
			clear(sum)
			clear(n)
			for a := range arms {
				open(a)
			}
		}
		for m, total := 0, b.Rounds(); m < total; m++ {
			before, after := make([]int, len(b.Plays)), make([]int, len(b.Plays))
			b.Counts(m, before)
			b.Counts(m+1, after)
			for i := range after {
				if after[i] > before[i] {
					a := b.Plays[i].Arm
					played = append(played, a)
					sum[a] += tab.reward[a][drawn[a]]
					drawn[a]++
					n[a]++
				}
			}
			if len(played) == horizon {
				return played
			}
		}
		v := &privacy.Values{Tail: tail}
		var slots []int
		for _, play := range b.Plays {
			if !play.Release {
				continue
			}
			a := play.Arm
			slots = append(slots, slot[a])
			v.N = append(v.N, n[a])
			v.Sum = append(v.Sum, sum[a]+tab.noise[a][releases[a]])
			releases[a]++
			if !p.Mechanism().Continual() {
				n[a], sum[a] = 0, 0
				open(a)
			}
		}
		released = privacy.Released{}
		if len(v.N) > 0 {
			var err error
			if released, err = ledger.ReleaseAll(slots, p.Mechanism(), v); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// episodic is [Azize 2024, Algorithm 7], written from its pseudo-code, one reward at a time. Where
// the indices of two arms are equal up to the arithmetic of either implementation, it follows got.
func episodic(tab table, got []int, index func(mean float64, h float64, t int) float64) []int {
	horizon := len(got)
	arms := len(tab.reward)
	var (
		played []int
		n      = make([]int, arms) // N_a
		mean   = make([]float64, arms)
		h      = make([]float64, arms)
		drawn  = make([]int, arms)
		count  = make([]int, arms)
	)
	pull := func(a int) float64 {
		played = append(played, a)
		n[a]++
		drawn[a]++
		return tab.reward[a][drawn[a]-1]
	}
	noise := func(a int) float64 { count[a]++; return tab.noise[a][count[a]-1] }
	for a := range arms {
		if len(played) == horizon {
			return played
		}
		mean[a] = pull(a) + noise(a)
		h[a] = 1
	}
	for {
		t := len(played) + 1
		best := 0
		for a := range arms {
			if index(mean[a], h[a], t) > index(mean[best], h[best], t) {
				best = a
			}
		}
		if a := got[t-1]; index(mean[a], h[a], t) > index(mean[best], h[best], t)-1e-11 {
			best = a
		}
		sum, goal, size := 0.0, 2*n[best], n[best]
		for n[best] < goal {
			if len(played) == horizon {
				return played
			}
			sum += pull(best)
		}
		mean[best] = (sum + noise(best)) / float64(size)
		h[best] = float64(size)
	}
}

func laplace(r *rand.Rand, b float64) func() float64 {
	return func() float64 { return b * (r.ExpFloat64() - r.ExpFloat64()) }
}

// klIndex is the greatest q with kl(p,q) ≤ c by bisection alone.
func klIndex(p, c float64) float64 {
	kl := func(q float64) float64 {
		x := 0.0
		if p > 0 {
			x += p * math.Log(p/q)
		}
		if p < 1 {
			x += (1 - p) * math.Log((1-p)/(1-q))
		}
		return x
	}
	lo, hi := p, 1.0
	for range 200 {
		if mid := (lo + hi) / 2; kl(mid) <= c {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func TestEpisodicPoliciesAgainstReference(t *testing.T) {
	const horizon = 3000
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		arms := 2 + r.IntN(5)
		epsilon := math.Exp(4*r.Float64() - 2)
		x := 0.5 + 3*r.Float64()
		rho := epsilon * epsilon / 2
		lap := newTable(r, arms, horizon, laplace(r, 1/epsilon))
		gauss := newTable(r, arms, horizon, func() float64 { return r.NormFloat64() / math.Sqrt(2*rho) })
		tailL, tailG := privacy.Tail{H: 1 / epsilon}, privacy.Tail{Sigma: 1 / math.Sqrt(2*rho)}

		ucb, err := NewAdaPUCB(arms, epsilon, x)
		check(t, err)
		got := playTable(t, ucb, lap, tailL, horizon)
		same(t, "adap-ucb", got, episodic(lap, got, func(mean, h float64, t int) float64 {
			l := x * math.Log(float64(t))
			return mean + math.Sqrt(l/(2*h)) + l/(epsilon*h)
		}))
		klucb, err := NewAdaPKLUCB(arms, epsilon, x)
		check(t, err)
		got = playTable(t, klucb, lap, tailL, horizon)
		same(t, "adap-klucb", got, episodic(lap, got, func(mean, h float64, t int) float64 {
			l := x * math.Log(float64(t))
			return klIndex(min(1, max(0, mean+l/(epsilon*h))), l/h)
		}))
		adac, err := NewAdaCUCB(arms, privacy.ZCDP{Rho: rho}, x)
		check(t, err)
		got = playTable(t, adac, gauss, tailG, horizon)
		same(t, "adac-ucb", got, episodic(gauss, got, func(mean, h float64, t int) float64 {
			return mean + math.Sqrt((1/(2*h)+1/(rho*h*h))*x*math.Log(float64(t)))
		}))
	}
}

// The same with tails of other laws, as other trust models have: every part of a tail counts, as
// that of the noise in a sum.
func TestEpisodicPoliciesUseTheWholeTail(t *testing.T) {
	const horizon = 3000
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		arms := 2 + r.IntN(5)
		x := 0.5 + 3*r.Float64()
		tail := privacy.Tail{Sigma: 3 * r.Float64(), H: r.Float64(), Log: 2 * r.Float64()}
		if seed%4 == 0 {
			tail.Sigma = 0
		}
		noise := func(x float64) float64 { return tail.Sigma*math.Sqrt(2*x) + tail.H*(x+tail.Log) }
		tab := newTable(r, arms, horizon, func() float64 { return 2 * r.NormFloat64() })

		ucb, err := NewAdaPUCB(arms, 1, x)
		check(t, err)
		got := playTable(t, ucb, tab, tail, horizon)
		same(t, "adap-ucb", got, episodic(tab, got, func(mean, h float64, t int) float64 {
			l := x * math.Log(float64(t))
			return mean + math.Sqrt(l/(2*h)) + noise(l)/h
		}))
		klucb, err := NewAdaPKLUCB(arms, 1, x)
		check(t, err)
		got = playTable(t, klucb, tab, tail, horizon)
		same(t, "adap-klucb", got, episodic(tab, got, func(mean, h float64, t int) float64 {
			l := x * math.Log(float64(t))
			return klIndex(min(1, max(0, mean+noise(l)/h)), l/h)
		}))
		adac, err := NewAdaCUCB(arms, privacy.ZCDP{Rho: 1}, x)
		check(t, err)
		got = playTable(t, adac, tab, tail, horizon)
		same(t, "adac-ucb", got, episodic(tab, got, func(mean, h float64, t int) float64 {
			l := x * math.Log(float64(t))
			return mean + math.Sqrt(2*l*(1/(4*h)+tail.Sigma*tail.Sigma/(h*h))) + tail.H*(l+tail.Log)/h
		}))
	}
}

// epochs is [Sajed 2019, Algorithm 9], written from its pseudo-code, one reward at a time.
func epochs(tab table, horizon int, epsilon, beta float64) []int {
	var played []int
	s := make([]int, len(tab.reward))
	for a := range s {
		s[a] = a
	}
	drawn, count := make([]int, len(s)), make([]int, len(s))
	for epoch := 1.0; len(s) > 1; epoch++ {
		k, gap := float64(len(s)), math.Pow(2, -epoch)
		re := math.Ceil(max(32*math.Log(8*k*epoch*epoch/beta)/(gap*gap),
			8*math.Log(4*k*epoch*epoch/beta)/(epsilon*gap)) + 1)
		sum := make([]float64, len(tab.reward))
		for r := 0.0; r < re; r++ {
			for _, a := range s {
				if len(played) == horizon {
					return played
				}
				played = append(played, a)
				sum[a] += tab.reward[a][drawn[a]]
				drawn[a]++
			}
		}
		h := math.Sqrt(math.Log(8*k*epoch*epoch/beta) / (2 * re))
		c := math.Log(4*k*epoch*epoch/beta) / (re * epsilon)
		top := math.Inf(-1)
		for _, a := range s {
			sum[a] = (sum[a] + tab.noise[a][count[a]]) / re
			count[a]++
			top = max(top, sum[a])
		}
		s = slices.DeleteFunc(s, func(a int) bool { return top-sum[a] > 2*h+2*c })
	}
	for len(played) < horizon {
		played = append(played, s[0])
	}
	return played
}

func TestDPSEAgainstReference(t *testing.T) {
	const horizon = 20000
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 8))
		arms := 2 + r.IntN(3)
		epsilon, beta := math.Exp(3*r.Float64()-2), 0.3*r.Float64()+1e-4
		tab := newTable(r, arms, horizon, laplace(r, 1/epsilon))
		p, err := NewDPSE(arms, epsilon, beta)
		check(t, err)
		same(t, "dp-se", playTable(t, p, tab, privacy.Tail{H: 1 / epsilon}, horizon),
			epochs(tab, horizon, epsilon, beta))
	}
}

// optimistic is UCB on noisy running sums, one reward at a time.
func optimistic(tab table, horizon int, index func(mean, n float64, t int) float64) []int {
	arms := len(tab.reward)
	var played []int
	n, sum := make([]int, arms), make([]float64, arms)
	for t := 1; t <= horizon; t++ {
		best := t - 1
		if t > arms {
			best = 0
			top := math.Inf(-1)
			for a := range arms {
				mean := (sum[a] + tab.noise[a][n[a]-1]) / float64(n[a])
				if x := index(mean, float64(n[a]), t); x > top {
					best, top = a, x
				}
			}
		}
		played = append(played, best)
		sum[best] += tab.reward[best][n[best]]
		n[best]++
	}
	return played
}

func TestDPUCBAgainstReference(t *testing.T) {
	const horizon = 2000
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 9))
		arms := 2 + r.IntN(4)
		// Γ is some thousands at ε = 1: let privacy be weak, so that the means matter.
		epsilon, beta := math.Exp(8*r.Float64()), 0.1
		tab := newTable(r, arms, horizon, laplace(r, 12/epsilon))
		logT := math.Log(horizon)

		p, err := NewDPUCB(arms, horizon, epsilon, beta)
		check(t, err)
		gamma := logT * logT * math.Log(float64(arms)*horizon*logT/beta) / epsilon
		same(t, "dp-ucb", playTable(t, p, tab, privacy.Tail{}, horizon),
			optimistic(tab, horizon, func(mean, n float64, t int) float64 {
				return mean + math.Sqrt(2*math.Log(float64(t))/n) + gamma/n
			}))
		p, err = NewDPUCBBase2(arms, horizon, epsilon, beta)
		check(t, err)
		log2 := math.Log2(horizon)
		wide := log2 * log2 * math.Log2(float64(arms)*horizon*log2/beta) / epsilon
		same(t, "dp-ucb, base 2", playTable(t, p, tab, privacy.Tail{}, horizon),
			optimistic(tab, horizon, func(mean, n float64, t int) float64 {
				return mean + math.Sqrt(2*math.Log(float64(t))/n) + wide/n
			}))
		p, err = NewDPUCBThesis(arms, horizon, epsilon)
		check(t, err)
		delta := 1 / float64(horizon*horizon)
		same(t, "dp-ucb-thesis", playTable(t, p, tab, privacy.Tail{}, horizon),
			optimistic(tab, horizon, func(mean, n float64, t int) float64 {
				return mean + math.Sqrt(2*math.Log(2/delta)/n) +
					math.Sqrt(8)*math.Pow(logT, 1.5)*math.Log(2/delta)/(epsilon*n)
			}))
		p, err = NewDPUCBAnytime(arms, epsilon, beta)
		check(t, err)
		same(t, "dp-ucb-anytime", playTable(t, p, tab, privacy.Tail{}, horizon),
			optimistic(tab, horizon, func(mean, n float64, t int) float64 {
				l := math.Log(float64(t))
				return mean + math.Sqrt(2*l/n) + l*l*math.Log(float64(arms)*float64(t)*l/beta)/(epsilon*n)
			}))
	}
}

func TestMechanismsOfPrivatePolicies(t *testing.T) {
	// 10⁷ rounds: ⌈log₂T⌉ + 1 = 25 levels of [Sajed 2019, Algorithm 5], of which a reward reaches 24.
	p, err := NewDPUCB(5, 10_000_000, 0.5, 0.1)
	check(t, err)
	if got, want := p.Mechanism(), (privacy.Tree{Scale: 50, Horizon: 10_000_000}); got != want {
		t.Errorf("dp-ucb: %v, want %v", got, want)
	}
	if p, err = NewDPUCB(2, 8, 1, 0.1); err != nil || p.Mechanism() != (privacy.Tree{Scale: 4, Horizon: 8}) {
		t.Errorf("dp-ucb, T = 8: %v, %v, want 4 levels", p.Mechanism(), err)
	}
	if p, err = NewDPUCB(2, 9, 1, 0.1); err != nil || p.Mechanism() != (privacy.Tree{Scale: 5, Horizon: 9}) {
		t.Errorf("dp-ucb, T = 9: %v, %v, want 5 levels", p.Mechanism(), err)
	}
	any, err := NewDPUCBAnytime(2, 0.5, 0.1)
	check(t, err)
	if got := any.Mechanism(); got != (privacy.Hybrid{Scale: 4}) {
		t.Errorf("dp-ucb-anytime: %v", got)
	}
	a, err := NewAdaPUCB(2, math.Inf(1), 1)
	check(t, err)
	if got := a.Mechanism(); got != (privacy.Laplace{}) {
		t.Errorf("adap-ucb without privacy: %v, want no noise", got)
	}
}

// The spec's vectors (zcdp-bandits §14): h = 4, t_ℓ = 21, β = 1, ρ = 0.5 give σ = 0.25 in the mean
// and a bonus of 0.872428; 0.616900 without noise.
func TestAdaCUCBVectors(t *testing.T) {
	p, err := NewAdaCUCB(2, privacy.ZCDP{Rho: 0.5}, 1)
	check(t, err)
	sigma := p.Mechanism().(privacy.Gaussian).Sigma
	if got := sigma / 4; math.Abs(got-0.25) > 1e-15 {
		t.Errorf("σ = %v, want 0.25", got)
	}
	for _, v := range []struct{ sigma, want float64 }{{sigma / 4, 0.872428}, {0, 0.616900}} {
		e := episode{h: 4, sigma: v.sigma}
		if got := p.bonus(&e, math.Log(21)); math.Abs(got-v.want) > 5e-7 {
			t.Errorf("bonus at σ = %v: %v, want %v", v.sigma, got, v.want)
		}
	}
}

func TestPrintedHalf(t *testing.T) {
	p, err := NewAdaCUCB(2, privacy.ZCDP{Rho: 1}, 1)
	check(t, err)
	p.PrintedHalf()
	if got, want := p.Mechanism().(privacy.Gaussian).Sigma, math.Sqrt2; math.Abs(got-want) > 1e-15 {
		t.Errorf("first σ = %v, want %v: variance 2/ρ", got, want)
	}
	first := p.Next(privacy.Released{})
	if first.Fresh {
		t.Error("the first batch is fresh already")
	}
	r, err := privacy.NewLedger().Release(0, p.Mechanism(),
		&privacy.Values{N: []int{1, 1}, Sum: []float64{1, 0}, Tail: privacy.Tail{Sigma: math.Sqrt2}})
	check(t, err)
	second := p.Next(r)
	if !second.Fresh {
		t.Error("the second batch must build the curator anew, with less noise")
	}
	if got, want := p.Mechanism().(privacy.Gaussian).Sigma, math.Sqrt(0.5); math.Abs(got-want) > 1e-15 {
		t.Errorf("later σ = %v, want %v", got, want)
	}
	// h = ½: √((1/(2h) + 1/(ρh²)) log 3) = √(5 log 3)
	if got, want := p.bonus(&p.arms[0], math.Log(3)), math.Sqrt(5*math.Log(3)); math.Abs(got-want) > 1e-12 {
		t.Errorf("first bonus = %v, want %v", got, want)
	}
}

// [Azize 2024, Example 5.1], with all rewards 1 on arm 0 and 0 on arm 1 and no noise: episodes of
// 1, 2, 4, … rounds of the better arm, and only the last one counts.
func TestEpisodesDoubleAndForget(t *testing.T) {
	p, err := NewAdaPUCB(2, math.Inf(1), 0.01)
	check(t, err)
	l := privacy.NewLedger()
	b := p.Next(privacy.Released{})
	if len(b.Plays) != 2 || b.Plays[0] != (Play{0, 1, true}) || b.Plays[1] != (Play{1, 1, true}) {
		t.Fatalf("first batch %v", b.Plays)
	}
	r, err := l.Release(0, p.Mechanism(), &privacy.Values{N: []int{1, 1}, Sum: []float64{1, 0}})
	check(t, err)
	for i, want := range []int{1, 2, 4, 8} {
		b = p.Next(r)
		if len(b.Plays) != 1 || b.Plays[0] != (Play{0, want, true}) {
			t.Fatalf("batch %d: %v, want %d rounds of arm 0", i, b.Plays, want)
		}
		r, err = l.Release(i+1, p.Mechanism(), &privacy.Values{N: []int{want}, Sum: []float64{float64(want)}})
		check(t, err)
	}
	// A bad last episode is all that is remembered of arm 0: mean −2.
	p.Next(r)
	r, err = l.Release(9, p.Mechanism(), &privacy.Values{N: []int{16}, Sum: []float64{-32}})
	check(t, err)
	if b = p.Next(r); b.Plays[0] != (Play{1, 1, true}) {
		t.Errorf("after a bad episode of arm 0: %v, want one round of arm 1", b.Plays)
	}
}

func TestDoublingStartsAfresh(t *testing.T) {
	var guesses []int
	p, err := NewDoubling(2, func(T int) (Policy, error) {
		guesses = append(guesses, T)
		return built(NewDPSE(2, 1, 1/float64(T)))
	})
	check(t, err)
	at := 0
	for range 4 { // every epoch is longer than a small guess: it is cut, and nothing is released
		b := p.Next(privacy.Released{})
		if b.Fresh != (at > 0) {
			t.Errorf("round %d: fresh is %v", at, b.Fresh)
		}
		for _, play := range b.Plays {
			if play.Release {
				t.Errorf("round %d: releases a batch that was cut", at)
			}
		}
		at += b.Rounds()
		if at != guesses[len(guesses)-1]/2 {
			t.Errorf("guess %d ends in round %d, want half", guesses[len(guesses)-1], at)
		}
	}
	if !slices.Equal(guesses, []int{8, 16, 32, 64}) {
		t.Errorf("guesses %v", guesses)
	}
}

// Only the first batch of a guess is fresh: a running sum or a tree must go on after it.
func TestDoublingIsFreshOnceAGuess(t *testing.T) {
	for name, build := range map[string]func(int) (Policy, error){
		"dp-ucb":                 func(T int) (Policy, error) { return built(NewDPUCB(2, T, 1, 0.1)) },
		"successive-elimination": func(T int) (Policy, error) { return built(NewSuccessiveElimination(2, T)) },
	} {
		p, err := NewDoubling(2, build)
		check(t, err)
		l := privacy.NewLedger()
		var r privacy.Released
		var fresh []int
		n := []int{0, 0}
		for at := 0; at < 100; {
			b := p.Next(r)
			if b.Fresh {
				fresh = append(fresh, at)
				clear(n)
			}
			v := &privacy.Values{}
			for _, play := range b.Plays {
				n[play.Arm] += play.Rounds
				at += play.Rounds
				if play.Release {
					v.N, v.Sum = append(v.N, n[play.Arm]), append(v.Sum, 0.5*float64(n[play.Arm]))
				}
			}
			if r = (privacy.Released{}); len(v.N) > 0 {
				r, err = l.Release(0, p.Mechanism(), v)
				check(t, err)
			}
		}
		if want := []int{4, 8, 16, 32, 64}; !slices.Equal(fresh, want) {
			t.Errorf("%s: fresh in rounds %v, want %v", name, fresh, want)
		}
	}
}

func built[P Policy](p P, err error) (Policy, error) { return p, err }

func TestBadParameters(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	fails := func(name string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, arms := range []int{-1, 0, 1} {
		_, err := NewAdaPUCB(arms, 1, 3.1)
		fails("arms", err)
		_, err = NewDPSE(arms, 1, 0.1)
		fails("arms", err)
		_, err = NewDPUCB(arms, 100, 1, 0.1)
		fails("arms", err)
		_, err = NewDoubling(arms, nil)
		fails("arms", err)
	}
	for _, x := range []float64{nan, 0, -1, -inf} {
		_, err := NewAdaPUCB(2, x, 3.1)
		fails("epsilon", err)
		_, err = NewAdaPKLUCB(2, x, 3.1)
		fails("epsilon", err)
		_, err = NewDPSE(2, x, 0.1)
		fails("epsilon", err)
		_, err = NewDPUCB(2, 100, x, 0.1)
		fails("epsilon", err)
		_, err = NewAdaPUCB(2, 1, x)
		fails("alpha", err)
		_, err = NewAdaCUCB(2, privacy.ZCDP{Rho: 1}, x)
		fails("beta", err)
		_, err = NewAdaCUCB(2, privacy.ZCDP{Rho: x}, 1)
		fails("rho", err)
	}
	_, err := NewAdaPUCB(2, 1, inf)
	fails("alpha", err)
	for _, x := range []float64{nan, 0, 1, 2, -1} {
		_, err := NewDPSE(2, 1, x)
		fails("beta", err)
		_, err = NewDPUCB(2, 100, 1, x)
		fails("beta", err)
	}
	_, err = NewDPUCB(5, 4, 1, 0.1)
	fails("horizon", err)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, name string, got, want []int) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: round %d plays arm %d, the reference %d", name, i+1, got[i], want[i])
		}
	}
}

// Both arms stand at the cap, 1, while α log t_ℓ/ε is large beside the episodes: the source's
// argmax keeps to arm 0, the other rule takes turns.
func TestTiesAtTheCap(t *testing.T) {
	const horizon = 64
	tab := table{make([][]float64, 2), make([][]float64, 2)}
	for a := range 2 {
		tab.reward[a], tab.noise[a] = make([]float64, horizon), make([]float64, horizon)
	}
	for _, fewest := range []bool{false, true} {
		p, err := NewAdaPKLUCB(2, 0.01, 3.1)
		check(t, err)
		if fewest {
			p.TiesToFewest()
		}
		var n [2]int
		for _, a := range playTable(t, p, tab, privacy.Tail{H: 100}, horizon) {
			n[a]++
		}
		if want := map[bool][2]int{false: {63, 1}, true: {32, 32}}[fewest]; n != want {
			t.Errorf("ties to the fewest: %v: plays %v, want %v", fewest, n, want)
		}
	}
}
