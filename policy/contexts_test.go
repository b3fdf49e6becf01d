package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// sequence has people come with these contexts, in this order.
func sequence(of []int) Arrivals {
	next := 0
	return func(n int, to []int) {
		clear(to)
		for _, c := range of[next : next+n] {
			to[c]++
		}
		next += n
	}
}

// inContext is what a table has of a context.
func (tab table) inContext(c, arms int) table {
	return table{tab.reward[c*arms : (c+1)*arms], tab.noise[c*arms : (c+1)*arms]}
}

// In each context, after any number of people, each arm has been played as often as batch SE, written from its
// pseudo-code, plays it alone for the people of that context.
func TestPerContextIsOneReferenceEach(t *testing.T) {
	testkit.OneGoroutine(t)
	const horizon, at, eta = 12000, 5000, 2
	dropped := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 51))
		contexts, arms := 1+r.IntN(4), 2+r.IntN(3)
		epsilon, p := math.Exp(3*r.Float64()-1), 0.5*r.Float64()+1e-4
		tab := newTable(r, contexts*arms, horizon, laplace(r, 1/epsilon))
		come := make([]int, horizon) // the first context is the rarer, the more of them there are
		for i := range come {
			come[i] = max(r.IntN(contexts), r.IntN(contexts))
		}
		of := make([]Policy, contexts)
		for c := range of {
			of[c] = testkit.Must(NewBatchSE(arms, privacy.Pure{Epsilon: epsilon}, p, eta))
		}
		q := testkit.Must(NewPerContext(arms, of))
		q.SetArrivals(sequence(come), []int{at, horizon})
		got := playTable(t, q, tab, privacy.Tail{H: 1 / epsilon}, horizon)
		for c := range contexts {
			alone := batchwise(tab.inContext(c, arms), horizon, eta, provedRadius(p, 0, 1/epsilon))
			for _, end := range []int{at, horizon} {
				n, plays, want := 0, make([]int, arms), make([]int, arms)
				for i, x := range come[:end] {
					if x == c {
						n++
					}
					if got[i]/arms == c {
						plays[got[i]%arms]++
					}
				}
				for _, a := range alone[:n] {
					want[a]++
				}
				if !slices.Equal(plays, want) {
					t.Errorf("seed %d, context %d of %d, %d people: %v, want %v", seed, c, contexts, end, plays, want)
				}
			}
			dropped += arms - len(of[c].(*BatchSE).alive)
		}
	}
	if dropped < 50 {
		t.Errorf("only %d arms were dropped: the comparison says little", dropped)
	}
}

// What is proved, with BatchSE: arm a of a context has at most Σ_{b ≤ b_a} l(b) plays, in all contexts at once with
// probability 1 − p. With p = 0.1 more than 35 of 100 runs are above with probability below 1e-10 if that is true. A
// broken copy that is told of less noise than there is drops best arms more often.
func TestPerContextTheorem(t *testing.T) {
	testkit.OneGoroutine(t)
	const p, eta, b, arms, horizon, runs = 0.1, 2, 10.0, 3, 6000, 100
	means := []float64{0.9, 0.5, 0.1, 0.2, 0.8, 0.1}
	most := func(gap float64) (plays int) {
		for batch := 1; ; batch++ {
			l := 1 << batch
			level := math.Log(8 * arms * float64(batch*batch) / (p / 2))
			plays += l
			if 4*(math.Sqrt(level/(2*float64(l)))+b*level/float64(l)) < gap {
				return plays
			}
		}
	}
	failed := func(told float64) (n int) {
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 52))
			of := make([]Policy, 2)
			for c := range of {
				of[c] = testkit.Must(NewBatchSE(arms, privacy.Pure{Epsilon: 1 / b}, p/2, eta))
			}
			q := testkit.Must(NewPerContext(arms, of))
			come := make([]int, horizon)
			for i := range come {
				come[i] = r.IntN(3) / 2 // two thirds of the first
			}
			q.SetArrivals(sequence(come), []int{horizon})
			tab := table{make([][]float64, 2*arms), make([][]float64, 2*arms)}
			draw := laplace(r, b)
			for a, m := range means {
				for range horizon {
					x := 0.0
					if r.Float64() < m {
						x = 1
					}
					tab.reward[a] = append(tab.reward[a], x)
				}
				for range 20 {
					tab.noise[a] = append(tab.noise[a], draw())
				}
			}
			plays := make([]int, 2*arms)
			for _, a := range playTable(t, q, tab, privacy.Tail{H: told}, horizon) {
				plays[a]++
			}
			over := false
			for a, best := range []int{0, 0, 0, 4, 4, 4} {
				if gap := means[best] - means[a]; gap > 0 {
					over = over || plays[a] > most(gap)
				}
			}
			if over || !slices.Contains(of[0].(*BatchSE).alive, 0) || !slices.Contains(of[1].(*BatchSE).alive, 1) {
				n++
			}
		}
		return n
	}
	if right, broken := failed(b), failed(0.1); right > 35 || broken <= 35 {
		t.Errorf("of %d runs %d are beyond the bound, and %d of the broken copy", runs, right, broken)
	}
}

// A reward is in one release: of any run, an arm's releases have as many rewards as it had plays, at most.
func TestPerContextReleasesOnce(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 53))
		of := make([]Policy, 3)
		for c := range of {
			of[c] = testkit.Must(NewBatchSE(2, privacy.ZCDP{Rho: 0.5}, 0.1, 1.5))
		}
		q := testkit.Must(NewPerContext(2, of))
		q.SetArrivals(func(n int, to []int) {
			clear(to)
			for range n {
				to[r.IntN(3)]++
			}
		}, nil)
		tab := newTable(r, 6, 3000, func() float64 { return r.NormFloat64() })
		playTable(t, q, tab, privacy.Tail{Sigma: 1}, 3000) // whose ledger refuses a slot that is released again
		if q.Err() != nil {
			t.Fatal(q.Err())
		}
	}
}

// What it did on fixed draws.
func TestPerContextGolden(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 54))
	of := []Policy{testkit.Must(NewBatchSE(2, privacy.Pure{Epsilon: 1}, 0.1, 2)),
		testkit.Must(NewBatchSE(2, privacy.Pure{Epsilon: 1}, 0.1, 2))}
	q := testkit.Must(NewPerContext(2, of))
	tab := newTable(r, 4, 4000, laplace(r, 1))
	plays := make([]int, 4)
	for _, a := range playTable(t, q, tab, privacy.Tail{H: 1}, 4000) {
		plays[a]++
	}
	if got, want := fmt.Sprint(plays), perContextGolden; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

const perContextGolden = "[126 1874 1000 1000]"

// asker asks a question.
type asker struct{ Policy }

func (asker) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1} }
func (asker) Next(privacy.Released) *Batch {
	return &Batch{Ask: true, Plays: []Play{{Rounds: 1, Release: true}}}
}

func TestPerContextRefuses(t *testing.T) {
	one := testkit.Must(NewBatchSE(2, privacy.Pure{Epsilon: 1}, 0.1, 2))
	other := testkit.Must(NewBatchSE(2, privacy.Pure{Epsilon: 2}, 0.1, 2))
	for want, build := range map[string]func() error{
		"contexts are 0, must be at least 1": func() error { _, err := NewPerContext(2, nil); return err },
		"arms is 1, must be at least 2":      func() error { _, err := NewPerContext(1, []Policy{one}); return err },
		"context 2 has":                      func() error { _, err := NewPerContext(2, []Policy{one, other}); return err },
		"asks a question": func() error {
			q, err := NewPerContext(2, []Policy{asker{}})
			if err != nil {
				return err
			}
			if b := q.Next(privacy.Released{}); b != nil {
				return fmt.Errorf("it plays %v", b)
			}
			return q.Err()
		},
	} {
		if err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A policy that has stopped, beside one that wants many people, holds up nobody.
func TestPerContextGoesOnBesideWhoHasStopped(t *testing.T) {
	const all = 1_000_000_000
	for _, share := range []int{2, 1000} {
		p, err := NewPerContext(2, []Policy{&oneSum{n: 1}, &oneSum{n: 1 << 25 / share}})
		if err != nil {
			t.Fatal(err)
		}
		carry, empty := 0, 0
		p.SetArrivals(func(n int, to []int) {
			if empty++; n > 0 {
				empty = 0
			} else if empty > 1000 {
				t.Fatalf("nobody comes after round %d of shares 1/%d", p.t, share)
			}
			carry += n
			to[1] = carry / share
			carry %= share
			to[0] = n - to[1]
		}, []int{all})
		for b := p.Next(privacy.Released{}); b != nil && p.t < all; b = p.Next(privacy.Released{}) {
			if p.t > all {
				t.Fatal(p.t)
			}
		}
		if p.asked[1] != nil {
			t.Errorf("the other policy has not stopped by round %d", p.t)
		}
	}
}

// A oneSum releases one sum of n rewards, and stops.
type oneSum struct {
	n    int
	over bool
}

func (o *oneSum) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1} }

func (o *oneSum) Next(privacy.Released) *Batch {
	if o.over {
		return nil
	}
	o.over = true
	return &Batch{Plays: []Play{{Rounds: o.n, Release: true}}}
}
