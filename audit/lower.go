package audit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
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

// OneRun is the outcome of an audit in a single run: of Canaries records, each in or out by its own
// fair coin, an adversary that saw the run guessed Guesses, and was right about Correct. It may
// abstain from the others, and choose which by what it saw.
//
// In a bandit the canaries are entries of the reward table, each one of two values by a fair coin.
// Given the transcript and the other coins, the odds of a coin are in [e^{−ε}, e^ε] if the policy
// is ε-DP for replacing one entry, so Correct is stochastically below a Binomial(Guesses,
// e^ε/(1+e^ε)), adaptive or not. Only rewards that were played carry any signal: guess those.
type OneRun struct {
	Canaries, Guesses, Correct int
}

// Validate reports a count out of range.
func (o OneRun) Validate() error {
	switch {
	case o.Guesses < 1:
		return fmt.Errorf("audit: %w: %d guesses", ErrNoGames, o.Guesses)
	case o.Guesses > o.Canaries:
		return fmt.Errorf("audit: guesses = %d: at most the number of canaries, %d", o.Guesses, o.Canaries)
	case o.Correct < 0 || o.Correct > o.Guesses:
		return fmt.Errorf("audit: correct guesses is %d, must be in [0, %d]", o.Correct, o.Guesses)
	}
	return nil
}

// PValue is the probability, at most, of so many correct guesses if the run is (ε,δ)-DP (Steinke,
// Nasr and Jagielski 2023, Theorem 5.2): with W a Binomial(r, e^ε/(1+e^ε)) and β = P(W ≥ v),
//
//	min(1, β + 2mδ max_{1≤i≤v} (P(W ≥ v−i) − β)/i).
func (o OneRun) PValue(epsilon, delta float64) (float64, error) {
	if err := o.Validate(); err != nil {
		return 0, err
	}
	if err := checkLoss(epsilon, delta); err != nil {
		return 0, err
	}
	return o.pValue(epsilon, delta), nil
}

func (o OneRun) pValue(epsilon, delta float64) float64 {
	if o.Correct == 0 {
		return 1
	}
	q := 1 / (1 + math.Exp(-epsilon))
	r, v := float64(o.Guesses), float64(o.Correct)
	beta := 1.0
	if q < 1 {
		beta = mathext.RegIncBeta(v, r-v+1, q)
	}
	if delta == 0 || q == 1 {
		return beta
	}
	// P(W ≥ v−i) − β is a sum of i point masses: the maximum is that of their running
	// mean from v−1 down.
	var sum, most float64
	// the mass may be below the doubles here, and not further down
	logp := distuv.Binomial{N: r, P: q}.LogProb(v)
	for i := 1; i <= o.Correct; i++ {
		j := v - float64(i)
		logp += math.Log((j+1)/(r-j)) - epsilon
		p := math.Exp(logp)
		sum += p
		if p < most {
			break // below the mode: masses fall from here on, and so does their mean
		}
		most = sum / float64(i)
	}
	return min(1, beta+2*float64(o.Canaries)*delta*most)
}

// Epsilon is the largest ε that is refuted at error probability γ: where PValue reaches γ. For δ =
// 0 it is log(p/(1−p)), with p the Clopper–Pearson lower bound of Correct in Guesses.
func (o OneRun) Epsilon(gamma, delta float64) (float64, error) {
	if err := checkGamma(gamma); err != nil {
		return 0, err
	}
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	if err := o.Validate(); err != nil {
		return 0, err
	}
	// Without δ first: where that is not refuted, it is not with δ, and it costs less.
	return largest(func(e float64) bool { return o.pValue(e, 0) <= gamma && o.pValue(e, delta) <= gamma }), nil
}

// largest returns where refuted turns false, or 0. It assumes that it does so once.
func largest(refuted func(float64) bool) float64 {
	if !refuted(0) {
		return 0
	}
	lo, hi := 0.0, 1.0
	for refuted(hi) {
		if lo, hi = hi, 2*hi; hi > 1024 {
			return lo
		}
	}
	for range 60 {
		if mid := lo + (hi-lo)/2; refuted(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// Mu is the largest μ for which the claim of μ-Gaussian DP is refuted at error probability γ
// (Mahloujifar, Melis and Chaudhuri 2024). It presumes nothing else, but a mechanism that is not
// Gaussian DP has no μ: see Region.GaussianEpsilon.
func (o OneRun) Mu(gamma float64) (float64, error) {
	if err := checkGamma(gamma); err != nil {
		return 0, err
	}
	if err := o.Validate(); err != nil {
		return 0, err
	}
	m, r, v := float64(o.Canaries), float64(o.Guesses), o.Correct
	return largest(func(mu float64) bool {
		a, h := gamma*float64(v)/m, gamma*(r-float64(v))/m
		for i := v - 1; i >= 0; i-- {
			next := max(h, powerOf(-mu, a))
			if next == h {
				break
			}
			a = min(1, a+float64(i)/(r-float64(i))*(next-h))
			h = next
		}
		return a+h > r/m
	}), nil
}

// GaussianEpsilon is ε(δ) of Mu on the Gaussian curve.
func (o OneRun) GaussianEpsilon(gamma, delta float64) (float64, error) {
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	mu, err := o.Mu(gamma)
	if err != nil || mu == 0 {
		return 0, err
	}
	if delta == 0 {
		return math.Inf(1), nil
	}
	return privacy.GaussianEpsilon(mu, delta), nil
}

// OneRun guesses "in" for the r canaries of highest score, where In and Out are the scores of a
// single run's canaries. Equal scores are taken in no order: all canaries with the score of the
// r-th are left out if not all of them fit, so that Guesses may come out smaller.
//
// For δ = 0 Guesses may depend on the run, since the bound on Correct holds given all that the run
// has shown. The other bounds, Epsilon at δ > 0 and Mu, have a proof for a number that is fixed
// before the run: for them put Guesses back to that number, which counts those left out as wrong,
// or break ties at random first.
func (s Scores) OneRun(guesses int) (OneRun, error) {
	if err := s.Validate(); err != nil {
		return OneRun{}, err
	}
	m := len(s.In) + len(s.Out)
	if guesses < 1 || guesses > m {
		return OneRun{}, fmt.Errorf("audit: guesses is %d, must be in [1, %d], the number of "+
			"canaries", guesses, m)
	}
	all := sorted(slices.Concat(s.In, s.Out))
	o := OneRun{Canaries: m}
	above := math.Inf(-1)
	if guesses < m {
		above = all[m-1-guesses]
	}
	for _, v := range s.In {
		if v > above || guesses == m {
			o.Correct++
		}
	}
	o.Guesses = o.Correct
	for _, v := range s.Out {
		if v > above || guesses == m {
			o.Guesses++
		}
	}
	if o.Guesses == 0 {
		return OneRun{}, fmt.Errorf("audit: the %d highest scores are all equal: %w", guesses, ErrConstantScore)
	}
	return o, nil
}

// OneRunEpsilon is the best OneRun.Epsilon over several numbers of guesses, fixed before the run,
// with γ split over them.
func (s Scores) OneRunEpsilon(gamma, delta float64, guesses ...int) (float64, OneRun, error) {
	if len(guesses) == 0 {
		return 0, OneRun{}, fmt.Errorf("audit: no numbers of guesses, must be at least 1")
	}
	best, at := -1.0, OneRun{}
	for _, r := range guesses {
		o, err := s.OneRun(r)
		if err != nil {
			return 0, OneRun{}, err
		}
		if delta > 0 {
			o.Guesses = r // those left out count as wrong: see OneRun
		}
		e, err := o.Epsilon(gamma/float64(len(guesses)), delta)
		if err != nil {
			return 0, OneRun{}, err
		}
		if e > best {
			best, at = e, o
		}
	}
	return best, at, nil
}
