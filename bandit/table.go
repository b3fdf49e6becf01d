package bandit

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/noise"
)

// Table is a law on finitely many values.
type Table struct {
	finite
	text string
}

// NewTable returns the law that gives values[i] with probability p[i]. The values are finite and
// distinct; the probabilities are in (0,1] and sum to 1 within 1e-9 (they are then divided by their
// sum). The order does not matter.
func NewTable(values, p []float64) (*Table, error) {
	if len(values) != len(p) {
		return nil, fmt.Errorf("table: %d values and %d probabilities, must be as many",
			len(values), len(p))
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("table: no values, must have at least one")
	}
	type entry struct{ v, p float64 }
	entries := make([]entry, len(values))
	var sum float64
	for i, v := range values {
		if err := checkNumber("table", "value", v); err != nil {
			return nil, err
		}
		if !(p[i] > 0 && p[i] <= 1) {
			return nil, fmt.Errorf("table: the probability of %v is %v, must be above 0 and "+
				"at most 1", v, p[i])
		}
		entries[i] = entry{unsigned(v), p[i]}
		sum += p[i]
	}
	if !(math.Abs(sum-1) <= 1e-9) {
		return nil, fmt.Errorf("table: the probabilities sum to %v: the sum must be 1 within 1e-9", sum)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.v, b.v) })
	vs, ps := make([]float64, len(entries)), make([]float64, len(entries))
	var text strings.Builder
	for i, e := range entries {
		if i > 0 && e.v == vs[i-1] {
			return nil, fmt.Errorf("table: the value %v comes twice: values must be distinct", e.v)
		}
		vs[i], ps[i] = e.v, e.p
		text.WriteByte("(,"[min(i, 1)])
		text.WriteString(number(e.v) + ":" + number(e.p))
	}
	return &Table{newFinite(vs, ps), "table" + text.String() + ")"}, nil
}

// String is table(v1:p1,v2:p2,…) with the values in increasing order and the probabilities as
// they were given.
func (t *Table) String() string { return t.text }

// finite is a law on finitely many values, ready to draw from.
type finite struct {
	mean, lo, hi float64
	cells        []cell  // Walker's alias method: one draw of a cell, one coin
	steps        []share // the multinomial, as a chain of binomials
}

// A cell is one column of the alias table: low with probability cut, else high.
type cell struct{ cut, low, high float64 }

// A share is a value and its probability given that none of the values before it came.
type share struct{ value, p float64 }

// newFinite builds the law that gives values[i] with probability weight[i] over their sum. The
// values increase, the weights are positive.
func newFinite(values, weight []float64) finite {
	n := len(values)
	f := finite{lo: values[0], hi: values[n-1], cells: make([]cell, n), steps: make([]share, n)}
	var total float64
	for _, w := range weight {
		total += w
	}
	for i, v := range values {
		f.mean += float64(v * (weight[i] / total))
	}
	f.mean = min(max(f.mean, f.lo), f.hi)

	// Vose's construction: columns of equal height 1, each filled by one value and topped up by one
	// that has too much.
	height := make([]float64, n)
	var small, large []int
	for i, w := range weight {
		height[i] = w / total * float64(n)
		if height[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		f.cells[s] = cell{height[s], values[s], values[l]}
		height[l] = height[l] + height[s] - 1
		if height[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) { // full up to rounding
		f.cells[i] = cell{1, values[i], values[i]}
	}

	// The likeliest value first: the chain ends as soon as all n rewards have their value.
	for i, v := range values {
		f.steps[i] = share{v, weight[i]}
	}
	slices.SortStableFunc(f.steps, func(a, b share) int { return cmp.Compare(b.p, a.p) })
	var rest float64
	for i := n - 1; i >= 0; i-- { // from the small end, so that nothing cancels
		rest += f.steps[i].p
		f.steps[i].p = min(f.steps[i].p/rest, 1)
	}
	return f
}

// Mean is the sum of the values, each times its probability.
func (f *finite) Mean() float64 { return f.mean }

// Support is from the smallest value to the largest.
func (f *finite) Support() (lo, hi float64) { return f.lo, f.hi }

// Draw is one value, in O(1) by the alias method.
func (f *finite) Draw(s *noise.Fast) float64 {
	i, _ := bits.Mul64(s.Uint64(), uint64(len(f.cells)))
	c := &f.cells[i]
	if s.Float64() < c.cut {
		return c.low
	}
	return c.high
}

// Sum draws how often each value comes: a multinomial, as binomials one after another. It costs at
// most one binomial draw a value, and not more than a few draws a reward.
func (f *finite) Sum(n int, s *noise.Fast) float64 {
	var x float64
	if n < binomialCost*len(f.steps) {
		for range n {
			x += f.Draw(s)
		}
		return x
	}
	for _, step := range f.steps {
		k := s.Binomial(n, step.p)
		x += float64(float64(k) * step.value)
		if n -= k; n == 0 {
			break
		}
	}
	return x
}

// binomialCost is about how many draws cost as much as one binomial draw.
const binomialCost = 2
