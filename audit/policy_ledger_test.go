package audit

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// Each of the two courses that the twin of the adaptive cap admits is (chosenEpsilon, chosenDelta)-DP by itself,
// by the exact conversion; who chooses has more.
func TestTheAdaptiveCapsTwinIsWithinItInEachCourse(t *testing.T) {
	limit, err := privacy.GDPWithin(privacy.Approx{Epsilon: chosenEpsilon, Delta: chosenDelta})
	if err != nil {
		t.Fatal(err)
	}
	rest := math.Sqrt(limit.Mu*limit.Mu - chosenFirst*chosenFirst)
	var byNormal, byLaplace, chosen float64
	const n, far = 20_000, 10.0
	for i := range n {
		z := -far + (float64(i)+0.5)*2*far/n
		w := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * 2 * far / n
		left := chosenEpsilon - (chosenFirst*z + chosenFirst*chosenFirst/2)
		a, b := hockeyNormal(left, rest), hockeyLaplace(left, chosenLaplace)
		byNormal, byLaplace, chosen = byNormal+w*a, byLaplace+w*b, chosen+w*max(a, b)
	}
	if math.Abs(byNormal-chosenDelta) > 1e-6 || byLaplace > chosenDelta || byLaplace < 0.99*chosenDelta {
		t.Errorf("fixed in advance, δ at ε = %v is %v and %v, must be up to %v", chosenEpsilon, byNormal, byLaplace,
			chosenDelta)
	}
	if math.Abs(chosen-0.23097) > 1e-4 {
		t.Errorf("δ of who chooses is %v, must be 0.23097", chosen)
	}
}
