package stats_test

import (
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/stats"
)

// 0 and 1 are p-values: 3·0 = 0, 2·0.25 = 0.5, 1·1 = 1.
func TestHolmTakesTheEdges(t *testing.T) {
	got, err := stats.Holm([]float64{1, 0, 0.25})
	if err != nil || !slices.Equal(got, []float64{1, 0, 0.5}) {
		t.Errorf("Holm(1, 0, ¼) = %v, %v; want 1, 0, ½", got, err)
	}
}
