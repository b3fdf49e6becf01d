package identify

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A TopTwoOption changes a Top Two rule from its default. An option that a rule does not have is an
// error of its constructor.
type TopTwoOption struct {
	name string
	set  func(*topTwoOptions) error
}

type topTwoOptions struct {
	beta, sigma, s float64
	printed        bool
	literal        bool
	clipped        bool
	threshold      Threshold
	coin           policy.Coins
	eta            float64
	first          int
	forget         bool
	phases         int
	perArm         bool
	caution        float64
}

// WithBeta sets the target allocation, the share of its rounds that a leader is played: above 0 and
// below 1; the default is 1/2.
func WithBeta(beta float64) TopTwoOption {
	return TopTwoOption{"beta", func(o *topTwoOptions) error {
		if !(beta > 0 && beta < 1) {
			return fmt.Errorf("beta is %v, must be above 0 and below 1", beta)
		}
		o.beta = beta
		return nil
	}}
}

// WithSigma sets the σ of σ-sub-Gaussian rewards, above 0. The default is 1/2, right for rewards in
// [0,1]; [Azize et al. 2023] print 1, which costs a factor of four in the terms of the rewards.
func WithSigma(sigma float64) TopTwoOption {
	return TopTwoOption{"sigma", func(o *topTwoOptions) error {
		o.sigma = sigma
		return checkSigma(sigma)
	}}
}

// WithExponent sets the s of the thresholds' union bound Σ k^{−s} over phases, above 1;
// the default is 2.
func WithExponent(s float64) TopTwoOption {
	return TopTwoOption{"s", func(o *topTwoOptions) error {
		o.s = s
		return checkExponent(s)
	}}
}

// WithPrintedBonus takes PrintedUCBLeader, the leader of [Azize 2024, Algorithm 10] as printed,
// instead of UCBLeader. Runs may then never stop.
func WithPrintedBonus() TopTwoOption {
	return TopTwoOption{"printed bonus", func(o *topTwoOptions) error { o.printed = true; return nil }}
}

// WithUnclippedMeans leaves private means outside [0,1] as they are, as the sources do. An arm
// whose first mean is far below 0 is hardly played again.
func WithUnclippedMeans() TopTwoOption {
	return TopTwoOption{"unclipped means", func(o *topTwoOptions) error { o.literal = true; return nil }}
}

// WithClippedMeans clips the private means of PublishedAdaPTT to [0,1].
func WithClippedMeans() TopTwoOption {
	return TopTwoOption{"clipped means", func(o *topTwoOptions) error { o.clipped = true; return nil }}
}

// WithThreshold takes another threshold.
func WithThreshold(threshold Threshold) TopTwoOption {
	return TopTwoOption{"threshold", func(o *topTwoOptions) error {
		if threshold == nil {
			return errors.New("threshold is missing")
		}
		o.threshold = threshold
		return nil
	}}
}

// WithCoin tosses a coin of probability beta for the leader, as the program published with [Azize
// et al. 2023] does, instead of tracking.
func WithCoin(coin policy.Coins) TopTwoOption {
	return TopTwoOption{"coin", func(o *topTwoOptions) error {
		if coin == nil {
			return errors.New("coin is missing, must be the policy's coins")
		}
		o.coin = coin
		return nil
	}}
}

// WithEta sets the growth 1+η of the phases, η finite and above 0; the default is 1, doubling.
func WithEta(eta float64) TopTwoOption {
	return TopTwoOption{"eta", func(o *topTwoOptions) error {
		if !(eta > 0 && eta <= math.MaxFloat64) {
			return fmt.Errorf("eta is %v, must be finite and above 0", eta)
		}
		if 1+eta == 1 {
			return fmt.Errorf("eta is %v, must be large enough for 1+eta to be above 1", eta)
		}
		o.eta = eta
		return nil
	}}
}

// WithFirst sets the plays of an arm's first phase, at least 1. The default is ⌈24/ε⌉; 1 is the
// literal rule, whose stopping times have heavy tails.
func WithFirst(first int) TopTwoOption {
	return TopTwoOption{"first", func(o *topTwoOptions) error {
		if first < 1 || first >= longest {
			return fmt.Errorf("first is %d, must be at least 1 and below 2^50", first)
		}
		o.first = first
		return nil
	}}
}

// WithCaution sets the caution γ of DP-TT's challenger, finite and at least 1; the default is 3, and 1
// is what its authors print, with which a run in some hundred may take as good as for ever.
func WithCaution(caution float64) TopTwoOption {
	return TopTwoOption{"caution", func(o *topTwoOptions) error {
		if !(caution >= 1 && caution <= math.MaxFloat64) {
			return fmt.Errorf("caution is %v, must be finite and at least 1", caution)
		}
		o.caution = caution
		return nil
	}}
}

// WithForgetting lets a mean rest on the last phase only.
func WithForgetting() TopTwoOption {
	return TopTwoOption{"forgetting", func(o *topTwoOptions) error { o.forget = true; return nil }}
}

// WithPhaseCap takes NewCappedJointThreshold with at most this many phases an arm. A rule whose
// arms have used them up never stops: take more than it will need, as ⌈log T/log(1+η)⌉ for at most
// T plays of an arm.
func WithPhaseCap(phases int) TopTwoOption {
	return TopTwoOption{"phase cap", func(o *topTwoOptions) error {
		o.phases = phases
		return checkPhases(phases)
	}}
}

// WithPerArmThreshold takes PerArmThreshold, with DEpsCost.
func WithPerArmThreshold() TopTwoOption {
	return TopTwoOption{"per-arm threshold", func(o *topTwoOptions) error { o.perArm = true; return nil }}
}

// apply takes the options that a rule has.
func applyTopTwo(options []TopTwoOption, has ...string) (topTwoOptions, error) {
	o := topTwoOptions{beta: 0.5, sigma: 0.5, s: 2, eta: 1, caution: 3}
next:
	for _, option := range options {
		for _, name := range has {
			if option.name == name {
				if err := option.set(&o); err != nil {
					return o, err
				}
				continue next
			}
		}
		return o, fmt.Errorf("it has no option %q", option.name)
	}
	return o, nil
}

// epsilonOf is a budget's ε, +Inf for none.
func epsilonOf(budget privacy.Budget) (float64, error) {
	switch b := budget.(type) {
	case privacy.None:
		return math.Inf(1), nil
	case privacy.Pure:
		if err := b.Validate(); err != nil {
			return 0, fmt.Errorf("budget: %w", err)
		}
		if math.IsInf(1/b.Epsilon, 1) {
			return 0, fmt.Errorf("budget: epsilon is %v, must be large enough for 1/epsilon "+
				"to be finite", b.Epsilon)
		}
		return b.Epsilon, nil
	case nil:
		return 0, errors.New("budget is missing, must be epsilon or none")
	default:
		return 0, fmt.Errorf("budget is %v, must be epsilon (pure differential privacy) or none", budget)
	}
}

func checkArmsOf(arms int) error {
	if arms < 2 {
		return fmt.Errorf("arms is %d, must be at least 2: one arm alone is the best without a play", arms)
	}
	return nil
}

func checkRiskIn(risk float64) error {
	if !(risk > 0 && risk < 1) {
		return fmt.Errorf("risk is %v, must be above 0 and below 1", risk)
	}
	return nil
}

func checkTask(arms int, risk float64) error {
	if err := checkArmsOf(arms); err != nil {
		return err
	}
	return checkRiskIn(risk)
}

func checkExponent(s float64) error {
	if !(s > 1 && s <= math.MaxFloat64) {
		return fmt.Errorf("s is %v, must be finite and above 1", s)
	}
	return nil
}

func checkSigma(sigma float64) error {
	if !(sigma > 0 && sigma <= math.MaxFloat64) {
		return fmt.Errorf("sigma is %v, must be finite and above 0", sigma)
	}
	return nil
}

func checkThreshold(arms int, risk, s, sigma float64) error {
	if err := checkTask(arms, risk); err != nil {
		return err
	}
	if err := checkExponent(s); err != nil {
		return err
	}
	return checkSigma(sigma)
}

func checkEpsilon(epsilon float64) error {
	if !(epsilon > 0) {
		return fmt.Errorf("epsilon is %v, must be above 0", epsilon)
	}
	return nil
}

func checkPhases(phases int) error {
	if phases < 1 {
		return fmt.Errorf("phases is %d, must be at least 1", phases)
	}
	return nil
}
