package audit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/privacy"
)

// A Corner is one test that was tried, and upper bounds of its two errors. A mechanism whose
// trade-off function lies above the corner, f(TypeI) > TypeII, is refuted.
type Corner struct {
	Threshold     float64 // the test answers "in" if the score is above it
	TypeI, TypeII float64
}

// A Region is what games have shown: all its corners bound the true errors together, with
// probability at least 1 − Gamma. Everything that is read from one region therefore holds together:
// ε(δ) at any number of δ, and the Gaussian fit.
//
// At each threshold the two one-sided Clopper–Pearson bounds take half of the threshold's error
// probability each. Both directions of [Azize 2024, (2.28) and (2.29)] need upper bounds of the
// same two errors, so no more is spent on the second direction. If several thresholds are tried,
// Gamma is split over them.
type Region struct {
	Gamma   float64
	Corners []Corner
}

// A Bound is a lower bound on ε at δ, and the test that gave it.
type Bound struct {
	Epsilon, Delta float64
	Test           Corner
}

// Region tests at thresholds that were fixed before the games, or chosen on other games. γ is
// split over them.
func (s Scores) Region(gamma float64, thresholds ...float64) (Region, error) {
	if err := checkGamma(gamma); err != nil {
		return Region{}, err
	}
	if err := s.Validate(); err != nil {
		return Region{}, err
	}
	if len(thresholds) == 0 {
		return Region{}, fmt.Errorf("audit: no thresholds, must be at least 1")
	}
	r := Region{gamma, make([]Corner, 0, len(thresholds))}
	tail := gamma / float64(2*len(thresholds))
	for _, t := range thresholds {
		if math.IsNaN(t) {
			return Region{}, fmt.Errorf("audit: threshold is NaN, must be a number")
		}
		fp, fn := s.errors(t)
		r.Corners = append(r.Corners, Corner{t, upper(fp, len(s.Out), tail), upper(fn, len(s.In), tail)})
	}
	return r, nil
}

// RegionByRank tests at thresholds chosen on the same games, by rank: above the (k+1)-th largest
// score without the target, and from the (k+1)-th smallest score with it on, for k = 0, 1, 2, 4, 8,
// … up to half the games of the side. γ is split over these 2·log₂n thresholds.
//
// A rank is fixed before the games, so the bounds hold although the threshold is not: the true
// error at the (k+1)-th largest of n scores has the law Beta(k+1, n−k), or is stochastically
// smaller where there are ties, and its 1−p quantile is just the Clopper–Pearson bound of k errors
// in n; the other side's games are independent of the threshold. Where many scores are equal,
// prefer thresholds between them (Region), or Split.
func (s Scores) RegionByRank(gamma float64) (Region, error) {
	if err := checkGamma(gamma); err != nil {
		return Region{}, err
	}
	if err := s.Validate(); err != nil {
		return Region{}, err
	}
	return s.byRank(gamma, 2), nil
}

func (s Scores) byRank(gamma, ratio float64) Region {
	n, m := len(s.Out), len(s.In)
	tail := gamma / float64(2*(len(ranks(n, ratio))+len(ranks(m, ratio))))
	r := Region{Gamma: gamma}
	s.candidates(ratio, func(t float64, k, fp, fn int, ofOut bool) {
		// The rank, not the count: they differ where there are ties, and only the rank was fixed
		// before the games.
		if ofOut {
			fp = k
		} else {
			fn = k
		}
		r.Corners = append(r.Corners, Corner{t, upper(fp, n, tail), upper(fn, m, tail)})
	})
	return r
}

// candidates calls try for each threshold by rank, with the rank and the two counts of errors;
// ofOut says whose rank it is.
func (s Scores) candidates(ratio float64, try func(t float64, k, fp, fn int, ofOut bool)) {
	in, out := sorted(s.In), sorted(s.Out)
	n, m := len(out), len(in)
	notAbove := func(x []float64, t float64) int {
		i, _ := slices.BinarySearchFunc(x, t, func(v, t float64) int {
			if v > t {
				return 1
			}
			return -1
		})
		return i
	}
	for _, k := range ranks(n, ratio) {
		t := out[n-1-k]
		try(t, k, n-notAbove(out, t), notAbove(in, t), true)
	}
	for _, k := range ranks(m, ratio) {
		if math.IsInf(in[k], -1) {
			// No number is before it: "at least −Inf" always says "in". To test "above −Inf" instead
			// would count the games with the target that score −Inf, of which the rank says nothing.
			try(in[k], k, n, 0, false)
			continue
		}
		t := math.Nextafter(in[k], math.Inf(-1)) // "at least in[k]" is "above the number before it"
		try(t, k, n-notAbove(out, t), notAbove(in, t), false)
	}
}

// wilson is Wilson's upper bound of a proportion, z standard errors above.
func wilson(k, n int, z float64) float64 {
	p, c := float64(k)/float64(n), z*z/float64(n)
	return (p + c/2 + math.Sqrt(c*(p*(1-p)+c/4))) / (1 + c)
}

// ranks are 0, 1, … up to n/2, by a factor of ratio.
func ranks(n int, ratio float64) []int {
	k := []int{0}
	for x := 1.0; int(x) <= n/2 && int(x) < n; x = max(math.Floor(x)+1, x*ratio) {
		k = append(k, int(x))
	}
	return k
}

// Split chooses one threshold on every other game, the one with the largest ε(δ) there, and tests
// it on the remaining games with all of γ. Where scores have many ties or the best threshold is at
// an odd place, it beats RegionByRank; otherwise the two are close. There must be two games a side.
func (s Scores) Split(gamma, delta float64) (Region, error) {
	if err := checkGamma(gamma); err != nil {
		return Region{}, err
	}
	if err := checkDelta(delta); err != nil {
		return Region{}, err
	}
	if err := s.Validate(); err != nil {
		return Region{}, err
	}
	var half [2]Scores
	for i, v := range s.In {
		half[i%2].In = append(half[i%2].In, v)
	}
	for i, v := range s.Out {
		half[i%2].Out = append(half[i%2].Out, v)
	}
	if len(half[1].In) == 0 || len(half[1].Out) == 0 {
		return Region{}, fmt.Errorf("audit: %w to split: %d with the target and %d without it, 2 "+
			"of each are needed", ErrNoGames, len(s.In), len(s.Out))
	}
	// Wilson's bounds choose: they cost less than exact ones, and only the choice depends on
	// them. They are twice as wide as the test's, so that no threshold with few errors is
	// chosen for its luck.
	z := -2 * quantile(gamma/2)
	in, out := len(half[0].In), len(half[0].Out)
	best, at := math.Inf(-1), 0.0
	half[0].candidates(1.1, func(t float64, _, fp, fn int, _ bool) {
		if e := rawEpsilon(wilson(fp, out, z), wilson(fn, in, z), delta); e > best {
			best, at = e, t
		}
	})
	fp, fn := half[1].errors(at)
	return Region{gamma, []Corner{{at, upper(fp, len(half[1].Out), gamma/2),
		upper(fn, len(half[1].In), gamma/2)}}}, nil
}

// rawEpsilon is EpsilonOf without the 0: below it, it says how far a test is from showing anything.
func rawEpsilon(alpha, beta, delta float64) float64 {
	e := math.Inf(-1)
	if x := 1 - delta - beta; x > 0 {
		e = max(e, math.Log(x/alpha))
	}
	if x := 1 - delta - alpha; x > 0 {
		e = max(e, math.Log(x/beta))
	}
	return e
}

// Epsilon is the lower bound on ε at δ [Azize 2024, Definition 2.35]: the mechanism is not
// (ε′,δ)-DP for any ε′ below it, except with probability Gamma.
func (r Region) Epsilon(delta float64) (Bound, error) {
	if err := checkDelta(delta); err != nil {
		return Bound{}, err
	}
	b := Bound{Delta: delta}
	best := math.Inf(-1)
	for _, c := range r.Corners {
		if e := rawEpsilon(c.TypeI, c.TypeII, delta); e > best || len(r.Corners) == 1 {
			best, b.Test = e, c
		}
	}
	b.Epsilon = max(0, best)
	return b, nil
}

// Curve is Epsilon at each δ. All hold together.
func (r Region) Curve(deltas []float64) ([]Bound, error) {
	curve := make([]Bound, len(deltas))
	for i, d := range deltas {
		var err error
		if curve[i], err = r.Epsilon(d); err != nil {
			return nil, err
		}
	}
	return curve, nil
}

// Mu is the lower bound on μ for a mechanism that claims μ-Gaussian DP: max Φ^{-1}(1−α) − Φ^{-1}(β)
// over the corners, and 0.
func (r Region) Mu() float64 {
	mu := 0.0
	for _, c := range r.Corners {
		if c.TypeI < 1 && c.TypeII < 1 {
			mu = max(mu, -distuv.UnitNormal.Quantile(c.TypeI)-distuv.UnitNormal.Quantile(c.TypeII))
		}
	}
	return mu
}

// GaussianEpsilon is ε(δ) of Mu, on the Gaussian curve. It refutes claims of Gaussian DP only:
// for another mechanism that is (ε,δ)-DP at one δ it may exceed ε, because it reads the tail
// from the middle.
func (r Region) GaussianEpsilon(delta float64) (float64, error) {
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	mu := r.Mu()
	if mu == 0 {
		return 0, nil
	}
	if delta == 0 {
		return math.Inf(1), nil
	}
	return privacy.GaussianEpsilon(mu, delta), nil
}
