package identify

import (
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

func TestDPTTBudgets(t *testing.T) {
	for _, epsilon := range []float64{1e-10, 1, maxEpsilon} {
		if _, err := NewDPTT(2, privacy.Pure{Epsilon: epsilon}, 0.1); err != nil {
			t.Errorf("ε = %v: %v", epsilon, err)
		}
	}
	for epsilon, want := range map[float64]string{2 * maxEpsilon: "must be at most 1e+09",
		1e18: "must be at most 1e+09", 1e-18: "must be so large", 0: "epsilon", math.NaN(): "epsilon"} {
		if _, err := NewDPTT(2, privacy.Pure{Epsilon: epsilon}, 0.1); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("ε = %v: error is %v, want %q", epsilon, err, want)
		}
	}
	if _, err := NewDPTT(2, privacy.None{}, 0.1); err != nil {
		t.Errorf("no privacy: %v", err)
	}
}
