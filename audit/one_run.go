package audit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/privacy"
)

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
