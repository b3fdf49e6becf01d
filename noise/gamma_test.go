package noise

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// Gamma and Beta draws in some hundred cells, in every regime of the samplers, with moments; a
// shape 3 % off is seen.
func TestGammaAndBeta(t *testing.T) {
	testkit.OneGoroutine(t)
	f := testStream("gamma")
	const n = allDraws / 4
	for _, a := range []float64{0.2, 1, 1.5, 3, 40} {
		sd := math.Sqrt(a)
		law := func(x float64) float64 { return mathext.GammaIncReg(a, max(x, 0)) }
		checkP(t, fmt.Sprintf("gamma(%v)", a), chiSquareP(n, func() float64 {
			return math.Exp(f.LogGamma(a))
		}, grid(max(0, a-5*sd), a+6*sd, 150), law))
	}
	for _, v := range [][2]float64{{0.3, 0.5}, {0.5, 4}, {1, 1}, {1, 3}, {2, 1}, {5, 2.5},
		{300, 700}, {1e5, 20}} {
		a, b := v[0], v[1]
		mean := a / (a + b)
		sd := math.Sqrt(mean * (1 - mean) / (a + b + 1))
		law := func(x float64) float64 { return mathext.RegIncBeta(a, b, min(max(x, 0), 1)) }
		cuts := grid(max(1e-3*mean, mean-5*sd), min(1-1e-3*(1-mean), mean+5*sd), 150)
		checkP(t, fmt.Sprintf("beta(%v, %v)", a, b), chiSquareP(n, func() float64 {
			return f.Beta(a, b)
		}, cuts, law))
		checkMean(t, fmt.Sprintf("beta(%v, %v)", a, b), n, func() float64 { return f.Beta(a, b) }, mean, sd)
		checkCaught(t, fmt.Sprintf("beta(%v, %v) for beta(%v, %v)", 1.05*a, b, a, b),
			chiSquareP(n, func() float64 {
				return f.Beta(1.05*a, b)
			}, cuts, law))
	}
}
