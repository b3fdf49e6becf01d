package experiment

import (
	"testing"

	"pgregory.net/rapid"
)

func TestRank(t *testing.T) {
	for _, c := range []struct {
		actions [][]float64
		want    int
	}{
		{[][]float64{{1, 0}, {0, 1}}, 2},
		{[][]float64{{1, 0}, {-0.5, 0}, {0.25, 0}}, 1},
		{[][]float64{{0, 0}, {0, 0}}, 0},
		{[][]float64{{0.5}, {1}}, 1},
		{[][]float64{{1, 0, 0}, {0, 1, 0}, {0.6, 0.8, 0}}, 2},
		{[][]float64{{1e-5, 0}, {0, 1}}, 2}, // weak is not none
	} {
		if got := rank(c.actions); got != c.want {
			t.Errorf("%v: rank %d, want %d", c.actions, got, c.want)
		}
	}
	// Combinations of r vectors that are linearly independent for sure (triangular, with ones on
	// the diagonal) have rank r.
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 6).Draw(t, "d")
		r := rapid.IntRange(1, d).Draw(t, "r")
		number := rapid.Float64Range(-1, 1)
		basis := make([][]float64, r)
		for i := range basis {
			basis[i] = make([]float64, d)
			basis[i][i] = 1
			for j := i + 1; j < d; j++ {
				basis[i][j] = number.Draw(t, "basis")
			}
		}
		actions := append([][]float64{}, basis...)
		for range rapid.IntRange(0, 6).Draw(t, "more") {
			a := make([]float64, d)
			for _, b := range basis {
				x := number.Draw(t, "weight")
				for j := range a {
					a[j] += x * b[j]
				}
			}
			actions = append(actions, a)
		}
		if got := rank(actions); got != r {
			t.Fatalf("rank %d, want %d: %v", got, r, actions)
		}
	})
}
