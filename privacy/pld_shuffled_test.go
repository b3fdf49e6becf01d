package privacy

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A randomizer has the law of a report for each reward.
type randomizer [][]float64

// epsilon0 is what a report loses alone.
func (r randomizer) epsilon0() float64 {
	worst := 0.0
	for _, a := range r {
		for _, b := range r {
			for y := range a {
				worst = max(worst, math.Log(a[y]/b[y]))
			}
		}
	}
	return worst
}

// shuffled is the law of how many reports there are of each kind, in a fixed order.
func (r randomizer) shuffled(rewards []int) []float64 {
	law := map[string]float64{fmt.Sprint(make([]int, len(r[0]))): 1}
	for _, x := range rewards {
		next := map[string]float64{}
		for key, p := range law {
			counts := make([]int, len(r[0]))
			s := key[1 : len(key)-1]
			for y := range counts {
				fmt.Sscan(s, &counts[y])
				s = s[min(len(s), len(fmt.Sprint(counts[y]))+1):]
			}
			for y, q := range r[x] {
				counts[y]++
				next[fmt.Sprint(counts)] += p * q
				counts[y]--
			}
		}
		law = next
	}
	keys := make([]string, 0, len(law))
	for k := range law {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make([]float64, len(keys))
	for i, k := range keys {
		out[i] = law[k]
	}
	return out
}

func stick(p, q []float64, epsilon float64) float64 {
	d := 0.0
	for i := range p {
		d += max(0, p[i]-float64(math.Exp(epsilon)*q[i]))
	}
	return d
}

func product(p, q []float64) (out []float64) {
	for _, a := range p {
		for _, b := range q {
			out = append(out, a*b)
		}
	}
	return out
}

// worst calls do with the laws of n shuffled reports for all neighbours.
func (r randomizer) worst(n int, do func(p, q []float64)) {
	rewards := make([]int, n)
	var all func(i int)
	all = func(i int) {
		if i < n {
			for x := range r {
				rewards[i] = x
				if i < 2 || x >= rewards[i-1] { // the others are shuffled
					all(i + 1)
				}
			}
			return
		}
		p := r.shuffled(rewards)
		first := rewards[0]
		for x := range r {
			if rewards[0] = x; x != first {
				do(p, r.shuffled(rewards))
			}
		}
		rewards[0] = first
	}
	all(0)
}

// The theorem of ClonesDelta against every neighbour of few users, for randomisers of any kind, and
// for two batches, where curves at negative ε count as well.
func TestShuffledNeverBelowTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inputs, kinds := rapid.IntRange(2, 3).Draw(t, "rewards"), rapid.IntRange(2, 3).Draw(t, "kinds")
		n := rapid.IntRange(2, 3).Draw(t, "users")
		r := make(randomizer, inputs)
		for x := range r {
			sum := 0.0
			r[x] = make([]float64, kinds)
			for y := range r[x] {
				// corners are the worst there are
				r[x][y] = math.Exp(rapid.SampledFrom([]float64{-3, -2, -1, 0, 0.5}).Draw(t, "log"))
				sum += r[x][y]
			}
			for y := range r[x] {
				r[x][y] /= sum
			}
		}
		e0 := r.epsilon0()
		p, err := shuffledPLD(n, e0, 1e-2)
		if err != nil {
			t.Fatal(err)
		}
		two, err := p.Times(2)
		if err != nil {
			t.Fatal(err)
		}
		r.worst(n, func(a, b []float64) {
			aa, bb := product(a, a), product(b, b)
			for _, share := range []float64{0, 0.1, 0.3, 0.6, 0.9} {
				e := share * e0
				truth := stick(a, b, e)
				if d := ClonesDelta(n, e0, e); d < truth*(1-1e-9)-1e-14 {
					t.Fatalf("%v: δ(%v) = %v, truly %v", r, e, d, truth)
				}
				if d := p.Delta(e); d < truth*(1-1e-12)-1e-15 {
					t.Fatalf("%v: δ(%v) of the PLD = %v, truly %v", r, e, d, truth)
				}
				if d, truth := two.Delta(2*e), stick(aa, bb, 2*e); d < truth*(1-1e-12)-1e-15 {
					t.Fatalf("%v, twice: δ(%v) = %v, truly %v", r, 2*e, d, truth)
				}
			}
		})
	})
}

// Randomised response with others who are known reaches the bound, and is above one with half
// as many clones again: so many there are not.
func TestShuffledIsTight(t *testing.T) {
	for _, e0 := range []float64{1, 2, 4} {
		a := 1 / (1 + math.Exp(-e0))
		r := randomizer{{a, 1 - a}, {1 - a, a}}
		const n = 8
		reach, below := 0.0, false
		for _, e := range []float64{0, 0.05 * e0, 0.2 * e0, 0.5 * e0, 0.9 * e0} {
			truth := 0.0
			r.worst(n, func(p, q []float64) { truth = max(truth, stick(p, q, e)) })
			bound := ClonesDelta(n, e0, e)
			if bound < truth*(1-1e-12) {
				t.Errorf("ε0 = %v: δ(%v) = %v, truly %v", e0, e, bound, truth)
			}
			reach = max(reach, truth/bound)
			// the same pair with more clones
			more, share := 0.0, 1.5*cloneShare(e0)
			for c := range n {
				w := binomial(float64(c), n-1, share)
				for x := range c + 2 {
					f, g := binomial(float64(x-1), float64(c), 0.5), binomial(float64(x), float64(c), 0.5)
					more += w * max(0, a*f+(1-a)*g-math.Exp(e)*((1-a)*f+a*g))
				}
			}
			below = below || share < 1 && more < truth
		}
		t.Logf("ε0 = %v: up to %.3f of the bound", e0, reach)
		if reach < 0.999 || e0 > 1 && !below {
			t.Errorf("ε0 = %v: only %v of the bound is reached; too many clones found out: %v", e0,
				reach, below)
		}
	}
}

// A batch's PLD has the ε of clonesEpsilon, from above, also where numbers of clones are rounded.
func TestShuffledPLDAgainstClones(t *testing.T) {
	for _, c := range []struct {
		n           int
		epsilon0, d float64
		step, over  float64
		batches     int
	}{{100_000, 4, 1e-6, 1e-4, 1e-3, 100}, {1000, 2, 1e-6, 5e-4, 2e-3, 10},
		{50_000, 1, 1e-8, 2e-4, 2e-2, 300}, {1, 1, 1e-6, 1e-3, 1e-8, 1},
		{10, 800, 1e-6, 1, 1e-8, 1}} {
		p, err := shuffledPLD(c.n, c.epsilon0, c.step)
		if err != nil {
			t.Fatal(err)
		}
		truth := clonesEpsilon(c.n, c.epsilon0, c.d)
		tight(t, fmt.Sprintf("%d, ε0 = %v", c.n, c.epsilon0), p.Epsilon(c.d), truth*(1-2e-9),
			c.over*truth)
		total := p.there.inf
		for _, v := range p.there.mass {
			total += v
		}
		if !(math.Abs(total-1) < 1e-10) {
			t.Errorf("P has a mass of 1 + %v", total-1)
		}
		if c.batches > 1 {
			e := times(t, p, c.batches).Epsilon(c.d)
			t.Logf("%d batches: %.4f, added up %.4f", c.batches, e,
				float64(c.batches)*clonesEpsilon(c.n, c.epsilon0, c.d/float64(c.batches)))
			if !(e > truth && e < 1.3*math.Sqrt(float64(c.batches))*truth) {
				t.Errorf("%d batches: ε = %v, of one %v", c.batches, e, truth)
			}
		}
	}
	for _, bad := range []struct {
		n       int
		e, step float64
	}{{0, 1, 1e-3}, {5, -1, 1e-3}, {5, math.NaN(), 1e-3}, {5, math.Inf(1), 1e-3}, {5, 1, 0}} {
		if _, err := shuffledPLD(bad.n, bad.e, bad.step); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// The counts of messages of ShuffledCount, added up from who draws what: P = x + C + A and M = C + B,
// or A and B if blank.
func TestPLDShuffledCount(t *testing.T) {
	for _, c := range []struct{ epsilon, epsilon1, beta float64 }{{1, 0.5, 0.1}, {2, 1.8, 0.01}, {3, 0.7, 0.5}} {
		m, err := NewShuffledCount(c.epsilon, c.epsilon1, 5, 5, c.beta)
		if err != nil {
			t.Fatal(err)
		}
		cover, err := m.Cover()
		if err != nil {
			t.Fatal(err)
		}
		const most = 130
		q, gamma := math.Exp(-m.Epsilon1()), float64(cover.Blank)/coverUnit
		geometric := func(k int) float64 {
			if k < 0 {
				return 0
			}
			return (1 - q) * math.Pow(q, float64(k))
		}
		law := func(bit int) (out []float64) {
			for plus := range most {
				for minus := range most {
					p := gamma * geometric(plus) * geometric(minus)
					for k, w := range cover.Pairs {
						p += (1 - gamma) * float64(w) / coverUnit * geometric(plus-bit-k) * geometric(minus-k)
					}
					out = append(out, p)
				}
			}
			return out
		}
		one, zero := law(1), law(0)
		p := pldOf(t, m, 1e-4)
		for _, e := range []float64{-0.5, 0, 0.2 * c.epsilon, 0.5 * c.epsilon, 0.95 * c.epsilon} {
			truth := stick(one, zero, e)
			tight(t, "bit 1", p.there.delta(e, p.step), truth-1e-13, 1e-4)
			truth = stick(zero, one, e)
			tight(t, "bit 0", p.back.delta(e, p.step), truth-1e-13, 1e-4)
		}
		if e := p.Epsilon(0); !(e >= m.Loss().Pure()*(1-1e-9) && e < m.Epsilon+2e-4) {
			t.Errorf("ε(0) = %v of %v", e, m.Epsilon)
		}
		// forty of it lose less than randomised response forty times
		rr, err := approxPLD(m.Epsilon, 0, 1e-3)
		if err != nil {
			t.Fatal(err)
		}
		many, other := times(t, pldOf(t, m, 1e-3), 40).Epsilon(1e-6), times(t, rr, 40).Epsilon(1e-6)
		t.Logf("forty: %.4f, of randomised response %.4f", many, other)
		if !(many < other) {
			t.Errorf("forty: %v, of randomised response %v", many, other)
		}
	}
}
