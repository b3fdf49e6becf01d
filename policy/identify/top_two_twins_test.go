package identify

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// Broken twins: rules that look like the real ones and are not private. The ledger or the law of
// what they publish must show it.

// booked plays a rule whose curator keeps or forgets what was released, and books every release on
// the slots of the rewards it read: slot k of an arm is its phase k.
func booked(t *testing.T, p Identifier, epsilon float64, keeps bool) privacy.Loss {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	ledger := privacy.NewLedger()
	n, ends := make([]int, 3), make([]int, 3)
	var released privacy.Released
	for range 40 {
		b := p.Next(released)
		v := &privacy.Values{Tail: privacy.Tail{H: 1 / epsilon}}
		for _, play := range b.Plays {
			a := play.Arm
			n[a] += play.Rounds
			if !play.Release {
				continue
			}
			v.N, v.Sum = append(v.N, n[a]), append(v.Sum,
				0.5*float64(n[a])+r.NormFloat64()+r.ExpFloat64()/epsilon)
			from := ends[a]
			if keeps {
				from = 0
			}
			for slot := from; slot <= ends[a]; slot++ {
				_ = testkit.Must(ledger.Release(1000*a+slot, p.Mechanism(),
					&privacy.Values{N: []int{1}, Sum: []float64{0}}))
			}
			ends[a]++
			if !keeps {
				n[a] = 0
			}
		}
		released = testkit.Must(privacy.NewLedger().Release(0, p.Mechanism(), v))
	}
	return ledger.Total()
}

// A mean over all phases with one phase's noise: an early reward is in every later release, and the
// ledger says what they cost together.
func TestTwinMeanOverAllPhases(t *testing.T) {
	build := func() Identifier {
		p := testkit.Must(NewAdaPTT(3, privacy.Pure{Epsilon: 0.5}, 0.01))
		p.parts.Threshold = never{}
		return p
	}
	if got := booked(t, build(), 0.5, false).Pure(); !near(got, 0.5, 1e-12) {
		t.Errorf("AdaP-TT costs ε = %v, want 0.5", got)
	}
	if got := booked(t, build(), 0.5, true).Pure(); got < 3 {
		t.Errorf("the twin costs ε = %v, which is no more than a few phases", got)
	}
	// And its law: the first of 32 rewards is 0 or 1, and every release is above the middle. One
	// release can tell e^ε, six tell far more.
	r := rand.New(rand.NewPCG(8, 8))
	const runs, epsilon = 100_000, 1.0
	above := func(keeps bool, reward float64) float64 {
		hits := 0
		for range runs {
			all := true
			for k := range 6 {
				x := r.ExpFloat64() / epsilon
				if r.Uint64()&1 == 0 {
					x = -x
				}
				if k == 0 || keeps {
					x += reward
				}
				all = all && x > 0.5
			}
			if all {
				hits++
			}
		}
		return float64(hits) / runs
	}
	// The twin's odds are 0.115 against 0.00077. Estimates are within 5.5 standard deviations of at
	// most √(p/runs): a false alarm of 4e-8 each.
	high, low := above(true, 1), above(true, 0)
	if high-5.5*math.Sqrt(high/runs) <= math.Exp(epsilon)*(low+5.5*math.Sqrt(low/runs)) {
		t.Errorf("the twin was not caught: %v against %v", high, low)
	}
	high, low = above(false, 1), above(false, 0)
	if high-5.5*math.Sqrt(high/runs) > math.Exp(epsilon)*(low+5.5*math.Sqrt(low/runs)) {
		t.Errorf("the honest curator was caught: %v against %v", high, low)
	}
}

// constant is a threshold that is soon reached.
type constant float64

func (c constant) At(a, b Sample) float64 { return float64(c) }

// leaky is a rule that peeks at what only the curator should see.
type leaky struct {
	Identifier
	raw    []float64 // raw sums of all rewards so far, by arm
	plays  []int
	stops  bool // on the raw sums
	answer int
}

func (l *leaky) Next(released privacy.Released) *policy.Batch {
	if l.stops && l.plays[0] > 0 && l.raw[0]/float64(l.plays[0])-l.raw[1]/float64(l.plays[1]) >= 0.6 {
		l.answer = 0
		return nil
	}
	b := l.Identifier.Next(released)
	if b == nil {
		if l.answer = l.Identifier.Answer(); !l.stops { // the answer, from raw means
			l.answer = 0
			if l.raw[1]/float64(l.plays[1]) > l.raw[0]/float64(l.plays[0]) {
				l.answer = 1
			}
		}
	}
	return b
}

func (l *leaky) Answer() int { return l.answer }

// law runs a rule many times on fixed rewards, arm 0's first one apart, and estimates the
// probability of answering 0 and of stopping within the first look.
func law(t *testing.T, first float64, runs int,
	wrap func(Identifier, []float64, []int) Identifier) (answer0, atOnce float64) {
	r := rand.New(rand.NewPCG(9, math.Float64bits(first)))
	for range runs {
		raw, plays, open, n := make([]float64, 2), make([]int, 2), make([]float64, 2), make([]int, 2)
		parts := testkit.Must(NewAdaPTT(2, privacy.Pure{Epsilon: 1}, 0.1)).parts
		parts.Threshold = constant(0.2)
		p := wrap(testkit.Must(NewTopTwo(2, privacy.Pure{Epsilon: 1}, parts)), raw, plays)
		ledger := privacy.NewLedger()
		var released privacy.Released
		looks := 0
		for ; looks < 12; looks++ { // of arms that stay equal some runs never stop
			b := p.Next(released)
			if b == nil {
				break
			}
			v := &privacy.Values{Tail: privacy.Tail{H: 1}}
			for _, play := range b.Plays {
				for range play.Rounds {
					x := 0.4
					if play.Arm == 0 && plays[0] == 0 {
						x = first
					}
					raw[play.Arm] += x
					plays[play.Arm]++
					open[play.Arm] += x
					n[play.Arm]++
				}
				if play.Release {
					noise := r.ExpFloat64()
					if r.Uint64()&1 == 0 {
						noise = -noise
					}
					v.N, v.Sum = append(v.N, n[play.Arm]), append(v.Sum, open[play.Arm]+noise)
					open[play.Arm], n[play.Arm] = 0, 0
				}
			}
			released = testkit.Must(ledger.Release(0, p.Mechanism(), v))
		}
		if p.Answer() == 0 {
			answer0++
		}
		if looks == 1 {
			atOnce++
		}
	}
	return answer0 / float64(runs), atOnce / float64(runs)
}

// Neighbours differ in arm 0's first reward, 1 or 0. No probability may differ by more than e^ε,
// ε = 1. Estimates are within 5.5 standard deviations of at most ½/√runs: a false alarm of 4e-8
// each, 8 of them.
func TestTwinsThatPeek(t *testing.T) {
	const runs = 4000
	margin := 5.5 * 0.5 / math.Sqrt(runs)
	differ := func(p, q float64) bool {
		return p-margin > math.E*(q+margin) || q-margin > math.E*(p+margin) ||
			1-p-margin > math.E*(1-q+margin) || 1-q-margin > math.E*(1-p+margin)
	}
	for _, c := range []struct {
		name   string
		wrap   func(p Identifier, raw []float64, plays []int) Identifier
		broken bool
	}{
		{"AdaP-TT", func(p Identifier, _ []float64, _ []int) Identifier { return p }, false},
		{"an answer from non-private means", func(p Identifier, raw []float64, plays []int) Identifier {
			return &leaky{Identifier: p, raw: raw, plays: plays, answer: -1}
		}, true},
		{"stopping on raw sums", func(p Identifier, raw []float64, plays []int) Identifier {
			return &leaky{Identifier: p, raw: raw, plays: plays, stops: true, answer: -1}
		}, true},
	} {
		highAnswer, highOnce := law(t, 1, runs, c.wrap)
		lowAnswer, lowOnce := law(t, 0, runs, c.wrap)
		if caught := differ(highAnswer, lowAnswer) || differ(highOnce, lowOnce); caught != c.broken {
			t.Errorf("%s: P(answer 0) %v and %v, P(stops at once) %v and %v: caught is %v", c.name,
				highAnswer, lowAnswer, highOnce, lowOnce, caught)
		}
	}
}
