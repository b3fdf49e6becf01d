// Package rows finds a vector among a few that are known, such as those that a map of words makes.
package rows

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A Table has vectors, all different, by their numbers in the order in which they were given. The zero value
// has none.
type Table struct {
	dim    int
	flat   []float64
	sorted []int
}

// New returns the table of these vectors of dim finite numbers each, one after the other in flat, which is
// the table's from then on.
func New(dim int, flat []float64) (Table, error) {
	if dim < 1 || len(flat) == 0 || len(flat)%dim != 0 {
		return Table{}, fmt.Errorf("rows is of %d numbers, must be at least one vector of %d", len(flat), dim)
	}
	for i, x := range flat {
		if !(math.Abs(x) <= math.MaxFloat64) {
			return Table{}, fmt.Errorf("rows[%d] is %v, must be finite", i, x)
		}
	}
	t := Table{dim, flat, make([]int, len(flat)/dim)}
	for i := range t.sorted {
		t.sorted[i] = i
	}
	slices.SortFunc(t.sorted, func(a, b int) int {
		return cmp.Or(slices.Compare(t.Row(a), t.Row(b)), cmp.Compare(a, b))
	})
	for i := 1; i < len(t.sorted); i++ {
		if a, b := t.sorted[i-1], t.sorted[i]; slices.Equal(t.Row(a), t.Row(b)) {
			return Table{}, fmt.Errorf("rows has vector %d again as %d, must have each once", a, b)
		}
	}
	return t, nil
}

// Len is how many vectors there are.
func (t Table) Len() int { return len(t.sorted) }

// Row is a vector by its number, to be read only.
func (t Table) Row(i int) []float64 { return t.flat[i*t.dim:][:t.dim] }

// Flat has all vectors, one after the other, to be read only.
func (t Table) Flat() []float64 { return t.flat }

// Find is the number of the vector that equals v, −1 if none does. It allocates nothing.
func (t Table) Find(v []float64) int {
	at, ok := slices.BinarySearchFunc(t.sorted, v, func(i int, v []float64) int {
		return slices.Compare(t.Row(i), v)
	})
	if !ok {
		return -1
	}
	return t.sorted[at]
}
