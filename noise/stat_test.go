package noise

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// falseAlarm is the probability with which a right sampler fails one statistical test. Seeds are
// fixed, so a test that passed passes for ever.
const falseAlarm = 1e-6

// chiSquareP draws n values, counts them in the cells (−∞,c₀], (c₀,c₁], …, (c_last,∞) and returns
// the p-value of Pearson's χ² against cdf, P(X ≤ c). Neighbouring cells are joined until 30 values
// are expected in each, where the law of χ² is near its limit far into its tail.
func chiSquareP(n int, draw func() float64, cuts []float64, cdf func(float64) float64) float64 {
	counts := make([]int, len(cuts)+1)
	for range n {
		counts[cell(cuts, draw())]++
	}
	var chi2, expected, below float64
	var cells, seen int
	done, doneSeen := 0.0, 0 // of the cells already in chi2
	for i := range counts {
		above := 1.0
		if i < len(cuts) {
			above = cdf(cuts[i])
		}
		seen += counts[i]
		expected = float64(n) * (above - below)
		if expected >= 30 && (i == len(counts)-1 || float64(n)*(1-above) >= 30) {
			chi2 += (float64(seen) - expected) * (float64(seen) - expected) / expected
			cells++
			below, done, doneSeen, seen = above, done+expected, doneSeen+seen, 0
		}
	}
	if math.Abs(done-float64(n)) > 1e-6*float64(n) || doneSeen != n {
		// the last cell closes the sum by construction; if not, cdf is not a distribution function
		return math.NaN()
	}
	if cells < 2 {
		return math.NaN()
	}
	return distuv.ChiSquared{K: float64(cells - 1)}.Survival(chi2)
}

// cell is the first i with x ≤ cuts[i], or len(cuts). Cuts are about evenly spaced, so it guesses
// and steps: a search would take longer than a draw.
func cell(cuts []float64, x float64) int {
	last := len(cuts) - 1
	i := int(min(max((x-cuts[0])/(cuts[last]-cuts[0]), 0), 1) * float64(last))
	for i > 0 && x <= cuts[i-1] {
		i--
	}
	for i <= last && x > cuts[i] {
		i++
	}
	return i
}

// integers are all cuts from lo to hi.
func integers(lo, hi int) []float64 {
	var c []float64
	for i := lo; i <= hi; i++ {
		c = append(c, float64(i))
	}
	return c
}

// grid is n+1 cuts from lo to hi.
func grid(lo, hi float64, n int) []float64 {
	c := make([]float64, n+1)
	for i := range c {
		c[i] = lo + (hi-lo)*float64(i)/float64(n)
	}
	return c
}

// floors rounds cuts down and drops repetitions.
func floors(cuts []float64) []float64 {
	out := cuts[:0]
	for _, c := range cuts {
		if c = math.Floor(c); len(out) == 0 || c > out[len(out)-1] {
			out = append(out, c)
		}
	}
	return out
}

// checkMean fails if the mean of n draws is further from want than a normal variate gets with
// probability falseAlarm.
func checkMean(t *testing.T, what string, n int, draw func() float64, want, sd float64) {
	t.Helper()
	s := 0.0
	for range n {
		s += draw()
	}
	z := distuv.UnitNormal.Quantile(1 - falseAlarm/2)
	if d := math.Abs(s/float64(n) - want); !(d <= z*sd/math.Sqrt(float64(n))) {
		t.Errorf("%s: mean %v, want %v ± %v", what, s/float64(n), want, z*sd/math.Sqrt(float64(n)))
	}
}

func checkP(t *testing.T, what string, p float64) {
	t.Helper()
	if !(p > falseAlarm) {
		t.Errorf("%s: χ² p-value %v", what, p)
	}
}

func checkCaught(t *testing.T, what string, p float64) {
	t.Helper()
	if !(p < falseAlarm) {
		t.Errorf("%s: a broken twin passes, p-value %v", what, p)
	}
}

// testStream is the stream of one test.
func testStream(name string) *Fast {
	return &Key{Seed: 7, Experiment: name, Role: RoleNoise}.Fast(1)[0]
}
