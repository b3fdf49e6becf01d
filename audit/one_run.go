package audit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

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

// PValue is the probability, at most, of so many correct guesses if the run is (ε,δ)-DP and Guesses
// was fixed before it: with v = Correct of r = Guesses among m = Canaries, W a Binomial(r, q) for q
// = e^ε/(1+e^ε), and β = P(W ≥ v),
//
//	p = min(1, β + (1−β)·mδ·β/(v·P(W=v))).
//
// It is sharp: for each v there is a run that is (ε,δ)-DP and right so often with just this
// probability, so that nothing better can be said from Correct. The program of Steinke, Nasr and
// Jagielski (2023, Theorem 5.2) has β + 2mδ·max_i (P(W ≥ v−i) − β)/i. Where v is far out, that is
// 2(1+e^ε) times the second term. Near the centre it is below p, and no bound: with two canaries,
// both guessed, ε = 1, δ = 0.01 and v = 1 it is 0.930564, and a run that is (ε,δ)-DP is right at least
// once with probability 0.931083. We have read the program and not the print of the theorem.
//
// Proof. Let b be the bits, T the guesses, w how many of them are right, P its law and B that of W.
// For bit i and a set S of numbers, T right at i with w in S is an event whose probability given b
// is at most δ and e^ε times that given b with bit i turned, where T is wrong at i and w one less.
// The mean over b, summed over i, is
//
//	Σ_{w∈S} w·P(w) ≤ e^ε Σ_{w∈S} (r−w+1)·P(w−1) + mδ.
//
// w·B(w) = e^ε(r−w+1)·B(w−1), so with P = ρB and x_w = w·B(w)(ρ(w) − ρ(w−1)) this is Σ_{w∈S} x_w ≤
// mδ. Take S where x_w > 0: Σ x_w⁺ ≤ mδ. By summation by parts
//
//	P(w ≥ v) − β = Σ_w (1{w ≥ v} − β)B(w)ρ(w) = Σ_{j≥1} t(j)·x_j,
//
// where t(j) is β·P(W < j)/(j·B(j)) up to v and (1−β)·P(W ≥ j)/(j·B(j)) from v on. It grows up to
// v: j·B(j) = e^ε(r−j+1)·B(j−1), and P(W < j)/B(j−1) grows as B is log-concave, 1/(r−j+1) too. From
// v on P(W ≥ j)/B(j) falls, and 1/j. So the sum is at most t(v)·mδ. ∎
//
// Equality is at guesses of randomised response that are drawn again until v of them are right,
// with some probability: there ρ has one step, at v.
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
	// β/P(W=v) is 1 + k_{v+1}(1 + k_{v+2}(1 + …)) with k_j = P(W=j)/P(W=j−1): all may be below the
	// doubles, and it is not.
	sum, term := 1.0, 1.0
	for j := v + 1; j <= r && term > 1e-17*sum; j++ {
		term *= (r - j + 1) / j * math.Exp(epsilon)
		if sum += term; sum > v/(float64(o.Canaries)*delta) {
			return 1 // 1−β times more than 1, and β
		}
	}
	return min(1, beta+(1-beta)*float64(o.Canaries)*delta*sum/v)
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

// OneRun guesses "in" for the ⌈r/2⌉ canaries of highest score and "out" for the ⌊r/2⌋ of lowest,
// where In and Out are the scores of a single run's canaries: for r = m all of them. Equal scores
// are taken in no order: where not all canaries of a score fit, those with it are left out, so that
// Guesses may come out smaller.
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
	high, low := (guesses+1)/2, guesses/2
	above, below := math.Inf(-1), math.Inf(1)
	if high < m {
		above = all[m-1-high]
	}
	if low < m {
		below = all[low]
	}
	o := OneRun{Canaries: m}
	for i, side := range [][]float64{s.In, s.Out} {
		in := i == 0
		for _, v := range side {
			says := v > above || high == m
			if !says && !(v < below) {
				continue
			}
			o.Guesses++
			if says == in {
				o.Correct++
			}
		}
	}
	if o.Guesses == 0 {
		return OneRun{}, fmt.Errorf("audit: the scores about the %d-th from either end are all "+
			"equal: %w", low, ErrConstantScore)
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
