package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// answers fixes the noise of the sparse vector technique: of the threshold of each epoch, of each
// question, and of each sum in its order.
type answers struct{ threshold, query, sum []float64 }

func newAnswers(r *rand.Rand, epsilon float64) answers {
	var a answers
	for range 2000 {
		a.threshold = append(a.threshold, laplace(r, 6/epsilon)())
		a.query = append(a.query, laplace(r, 6/epsilon)())
		a.sum = append(a.sum, laplace(r, 2/epsilon)())
	}
	return a
}

// playQuestions runs p against the table through a curator that it writes out itself, and returns
// the arms played and the levels asked for.
func playQuestions(t *testing.T, p Policy, tab table, a answers, tail privacy.Tail,
	horizon int) (played []int, levels []float64) {
	t.Helper()
	drawn := make([]int, len(tab.reward))
	sum := make([]float64, len(tab.reward))
	n := make([]int, len(tab.reward))
	var released privacy.Released
	ledger := privacy.NewLedger()
	epochs, questions, sums := 0, 0, 0
	for {
		b := p.Next(released)
		before, after := make([]int, len(b.Plays)), make([]int, len(b.Plays))
		for m, total := 0, b.Rounds(); m < total; m++ {
			b.Counts(m, before)
			b.Counts(m+1, after)
			for i := range after {
				if after[i] > before[i] {
					arm := b.Plays[i].Arm
					played = append(played, arm)
					sum[arm] += tab.reward[arm][drawn[arm]]
					drawn[arm]++
					n[arm]++
				}
			}
			if len(played) == horizon {
				return played, levels
			}
		}
		if !b.Ask {
			t.Fatalf("a batch of %d rounds that asks nothing", b.Rounds())
		}
		levels = append(levels, b.Above)
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, play := range b.Plays {
			lo, hi = min(lo, sum[play.Arm]), max(hi, sum[play.Arm])
		}
		released = privacy.Released{}
		if questions++; hi-lo+a.query[questions-1] <= b.Above+a.threshold[epochs] {
			continue
		}
		v := &privacy.Values{Tail: tail}
		for _, play := range b.Plays {
			v.N = append(v.N, n[play.Arm])
			v.Sum = append(v.Sum, sum[play.Arm]+a.sum[sums])
			n[play.Arm], sum[play.Arm] = 0, 0
			sums++
		}
		var err error
		if released, err = ledger.Release(epochs, p.Mechanism(), v); err != nil {
			t.Fatal(err)
		}
		epochs++
	}
}

// questioned is [Sajed 2019, Algorithm 10], written from its pseudo-code, one reward at a time; x
// and y are 10 and 16, or 2 and 4.
func questioned(tab table, a answers, horizon int, epsilon, beta, x, y float64) (played []int) {
	k := float64(len(tab.reward))
	s := make([]int, len(tab.reward))
	for i := range s {
		s[i] = i
	}
	drawn := make([]int, len(s))
	epoch, question, sums := 0, 0, 0
	for len(s) > 1 {
		mean := make([]float64, len(tab.reward)) // sums, until they are divided
		r, ell, size := 0.0, 0.0, float64(len(s))
		b := a.threshold[epoch]
		epoch++
		var h float64
		for {
			ell++
			for {
				r++
				for _, i := range s {
					if len(played) == horizon {
						return played
					}
					played = append(played, i)
					mean[i] += tab.reward[i][drawn[i]]
					drawn[i]++
				}
				if r > math.Pow(2, ell) {
					break
				}
			}
			h = math.Sqrt(math.Log(16*k*size*ell*ell/beta) / (2 * r))
			c := 6*math.Log(4*k/beta)/epsilon + 6*math.Log(8*k*ell*ell/beta)/epsilon +
				y*math.Log(4*k*size/beta)/epsilon
			gap := 0.0
			for _, i := range s {
				for _, j := range s {
					gap = max(gap, (mean[i]-mean[j])/r)
				}
			}
			// The query's noise is on the query in Algorithm 4 and on the threshold in Algorithm
			// 10: the same law, the other sign.
			noise := -a.query[question]
			question++
			if gap > x*h+(noise+b+c)/r {
				break
			}
		}
		top := math.Inf(-1)
		for _, i := range s {
			mean[i] = (mean[i] + a.sum[sums]) / r
			sums++
			top = max(top, mean[i])
		}
		s = slices.DeleteFunc(s, func(j int) bool {
			return top-mean[j] > 2*h+4*math.Log(4*k*size/beta)/(epsilon*r)
		})
	}
	for len(played) < horizon {
		played = append(played, s[0])
	}
	return played
}

func TestDPSE2AgainstReference(t *testing.T) {
	const horizon = 40000
	dropped := 0
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 21))
		arms := 2 + r.IntN(3)
		epsilon, beta := math.Exp(3*r.Float64()-1), 0.3*r.Float64()+1e-4
		tab := newTable(r, arms, horizon, func() float64 { return 0 })
		a := newAnswers(r, epsilon)
		tail := privacy.Tail{H: 2 / epsilon}
		p, err := NewDPSE2(arms, epsilon, beta)
		check(t, err)
		want := questioned(tab, a, horizon, epsilon, beta, 10, 16)
		got, _ := playQuestions(t, p, tab, a, tail, horizon)
		same(t, "dp-se-2", got, want)
		p, err = NewDPSE2Modified(arms, epsilon, beta)
		check(t, err)
		want = questioned(tab, a, horizon, epsilon, beta, 2, 4)
		got, _ = playQuestions(t, p, tab, a, tail, horizon)
		same(t, "dp-se-2-modified", got, want)
		if got[horizon-1] == got[horizon-2] {
			dropped++
		}
	}
	if dropped < 5 {
		t.Errorf("%d of 16 runs have one arm left: the comparison says little", dropped)
	}
}

// By hand, without noise and privacy: K = 2, β = 0.1, rewards 1 and 0. Questions come after 3, 5,
// 9, … rounds of each arm; the range of sums is r, and r > 10√(r·log(640ℓ²)/2) first at r = 1025, ℓ
// = 10: 10√(512.5·log 64000) = 753.1, while at r = 513 it is 10√(256.5·log 51840) = 527.7. The
// modified policy has a fifth of that: r = 33, ℓ = 5, 2√(16.5·log 16000) = 25.3, while at r = 17 it
// is 2√(8.5·log 10240) = 17.7.
func TestDPSE2ByHand(t *testing.T) {
	const horizon = 5000
	tab := table{reward: [][]float64{make([]float64, horizon), make([]float64, horizon)}}
	for i := range horizon {
		tab.reward[0][i] = 1
	}
	silence := answers{make([]float64, 100), make([]float64, 100), make([]float64, 100)}
	for _, c := range []struct {
		build  func(int, float64, float64) (*DPSE2, error)
		levels []float64
		rounds int
	}{
		{NewDPSE2, []float64{31.13, 44.31, 0, 0, 0, 0, 0, 0, 527.73, 753.14}, 2050},
		{NewDPSE2Modified, []float64{6.226, 8.861, 0, 17.719, 25.28}, 66},
	} {
		p, err := c.build(2, math.Inf(1), 0.1)
		check(t, err)
		played, levels := playQuestions(t, p, tab, silence, privacy.Tail{}, horizon)
		if len(levels) != len(c.levels) {
			t.Fatalf("%d questions, want %d: %v", len(levels), len(c.levels), levels)
		}
		for i, want := range c.levels {
			if want > 0 && math.Abs(levels[i]-want) > 5e-4*want {
				t.Errorf("question %d is about %v, want %v", i, levels[i], want)
			}
		}
		for i, a := range played {
			if want := i % 2; i < c.rounds && a != want || i >= c.rounds && a != 0 {
				t.Fatalf("round %d plays arm %d", i+1, a)
			}
		}
	}
	// ε = 1 adds c_r: at ℓ = 1, 6 log 80 + 6 log 160 + 16 log 160 = 137.94 to 10√(1.5·log 640) =
	// 31.13; 4 for 16 is 77.04.
	p, err := NewDPSE2(2, 1, 0.1)
	check(t, err)
	if b := p.Next(privacy.Released{}); math.Abs(b.Above-(31.13+137.946)) > 0.01 || !b.Ask || b.Rounds() != 6 {
		t.Errorf("first question %+v", b)
	}
	if b := p.Next(privacy.Released{}); b.Rounds() != 4 || !b.Ask {
		t.Errorf("second question %+v", b)
	}
	if got, want := p.Mechanism(), (privacy.Sparse{Questions: privacy.Questions{Threshold: 6,
		Query: 6, Statistic: privacy.Range}, Scale: 2}); got != want {
		t.Errorf("mechanism %v", got)
	}
	// A policy that is never answered comes to batches that no horizon holds.
	for range 100 {
		if b := p.Next(privacy.Released{}); b.Rounds() <= 0 || b.Above-b.Above != 0 {
			t.Fatalf("batch %+v", b)
		}
	}
}

func TestDPSE2BadParameters(t *testing.T) {
	for _, c := range []struct {
		arms          int
		epsilon, beta float64
	}{{1, 1, 0.1}, {2, 0, 0.1}, {2, math.NaN(), 0.1}, {2, -1, 0.1}, {2, 1, 0}, {2, 1, 1}, {2, 1, math.NaN()}} {
		if _, err := NewDPSE2(c.arms, c.epsilon, c.beta); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// Guess-and-double passes questions on, and asks none about a batch that it cuts short.
func TestDoublingAsks(t *testing.T) {
	p, err := NewDoubling(2, func(horizon int) (Policy, error) { return NewDPSE2(2, 1, 1/float64(horizon)) })
	check(t, err)
	asked, round, guess := 0, 0, 8
	for range 40 {
		b := p.Next(privacy.Released{})
		round += b.Rounds()
		if b.Ask {
			asked++
			if b.Above < 100 || b.releases() != 2 || round > guess/2 {
				t.Fatalf("round %d of guess %d: batch %+v", round, guess, *b)
			}
		} else if b.releases() != 0 || round != guess/2 {
			t.Fatalf("round %d of guess %d: batch %+v", round, guess, *b)
		}
		if round == guess/2 {
			guess *= 2
		}
	}
	if asked < 5 {
		t.Errorf("%d questions", asked)
	}
}
