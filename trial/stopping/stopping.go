// Package stopping holds stopping rules: how many samples does it take to know a mean up to a
// factor? Begin with New and Run.
//
// An (α,β)-rule reads a stream of independent samples of a law on [−R,R] with mean μ ≠ 0, stops by
// itself, and returns an estimate that is within α|μ| of μ with probability at least 1−β [Sajed
// 2019, §2.2]. The factor makes it hard: how many samples are enough depends on μ.
//
// A rule is a policy of one arm that asks questions: is the sum of the samples far enough from 0?
// So it is post-processing of what a curator answers, and Run needs nothing new to be private:
// package release holds the samples, and its ledger has what was spent.
//
// Run is for real data, with exact noise. Study is for laws, with fast noise.
package stopping

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Rule is a stopping rule with its parameters: made by New.
type Rule struct {
	kind
	alpha, beta, epsilon, r float64
	// of the threshold, a question and the estimate's sum, in samples mapped to [0,1]
	noise [3]privacy.Tail
	step  float64 // of fixed-point samples, as a share of the range
	loss  privacy.Loss
}

// A kind tells the rules apart: when they ask, and how wide their Hoeffding bound and their noise
// may be at question number k, after t samples.
type kind struct {
	name    string
	doubles bool // asks after 2^k samples, else after each
	// The logarithms of question number k are log(hoeffding·k²/β), of h_t, and log(query·k²/β), of
	// the question's noise.
	hoeffding, query float64
	private          bool
}

// Names are the names of the rules.
func Names() []string { return []string{"nas", "dp-nas", "dp-exp-nas"} }

// New returns the rule of this name. A rule without privacy takes no notice of epsilon.
func New(name string, alpha, beta, epsilon, r float64) (Rule, error) {
	switch name {
	case "nas":
		return newNAS(alpha, beta, r)
	case "dp-nas":
		return newDPNAS(alpha, beta, epsilon, r)
	case "dp-exp-nas":
		return newDPExponentialNAS(alpha, beta, epsilon, r)
	}
	return Rule{}, fmt.Errorf("rule %q is unknown, must be nas, dp-nas or dp-exp-nas", name)
}

func newRule(k kind, alpha, beta, epsilon, r float64) (Rule, error) {
	for _, c := range []struct {
		name string
		x    float64
	}{{"alpha", alpha}, {"beta", beta}} {
		if !(c.x > 0 && c.x < 1) {
			return Rule{}, fmt.Errorf("%s: %s is %v, must be above 0 and below 1", k.name, c.name, c.x)
		}
	}
	if !(epsilon > 0) {
		return Rule{}, fmt.Errorf("%s: epsilon is %v, must be above 0", k.name, epsilon)
	}
	// Beyond these, 2R and its inverse leave the doubles.
	if !(r >= 1e-300 && r <= 1e300) {
		return Rule{}, fmt.Errorf("%s: range is %v, must be above 0 (from 1e-300 to 1e300): "+
			"samples are in [−range, range]", k.name, r)
	}
	rule := Rule{kind: k, alpha: alpha, beta: beta, epsilon: epsilon, r: r}
	m := rule.Mechanism()
	if err := m.Validate(); err != nil {
		return Rule{}, fmt.Errorf("%s: epsilon is %v, too small: %w", k.name, epsilon, err)
	}
	for i, scale := range []float64{m.Threshold, m.Query, m.Scale} {
		rule.noise[i] = privacy.Laplace{Scale: scale}.Tail()
	}
	rule.loss = m.Loss()
	return rule, nil
}

// exact is the rule for exact noise on fixed-point samples: its widths allow for what these have
// more than continuous ones.
func (r Rule) exact() (Rule, error) {
	m := r.Mechanism()
	for i, scale := range []float64{m.Threshold, m.Query, m.Scale} {
		tail, err := release.ExactTail(scale)
		if err != nil {
			return Rule{}, fmt.Errorf("%s: epsilon is %v: %w", r.name, r.epsilon, err)
		}
		r.noise[i] = tail
	}
	r.step = release.ExactStep
	return r, nil
}

// Name is how files and the command line name the rule.
func (r Rule) Name() string { return r.name }

// Private says whether the rule adds noise.
func (r Rule) Private() bool { return r.private }

// Alpha is the relative error that the rule allows.
func (r Rule) Alpha() float64 { return r.alpha }

// Beta is the probability of a larger error.
func (r Rule) Beta() float64 { return r.beta }

// Epsilon is the budget, +Inf without privacy.
func (r Rule) Epsilon() float64 { return r.epsilon }

// Range is R: samples are in [−R,R].
func (r Rule) Range() float64 { return r.r }

// String is the rule with its parameters.
func (r Rule) String() string {
	if !r.private {
		return fmt.Sprintf("%s(alpha=%v,beta=%v,range=%v)", r.name, r.alpha, r.beta, r.r)
	}
	return fmt.Sprintf("%s(alpha=%v,beta=%v,epsilon=%v,range=%v)", r.name, r.alpha, r.beta, r.epsilon, r.r)
}

// Mechanism is the noise that the rule needs: σ₁ = σ₂ = 12R/ε for the questions and σ₃ = 4R/ε for
// the estimate's sum, on samples in [−R,R], are 6/ε and 2/ε on samples mapped to [0,1].
func (r Rule) Mechanism() privacy.Sparse {
	return privacy.Sparse{
		Questions: privacy.Questions{Threshold: 6 / r.epsilon, Query: 6 / r.epsilon, Statistic: privacy.Centre},
		Scale:     2 / r.epsilon,
	}
}

// after is how many samples question number k comes after.
func (r *Rule) after(k int) int {
	if !r.doubles {
		return k
	}
	if k > bits.UintSize-4 {
		return policy.Forever
	}
	return 1 << k
}

// above is the level of question number k, after t samples. On samples mapped to [0,1] the halting
// condition of [Sajed 2019, Algorithms 7 and 8],
//
//	|X̄_t| ≥ h_t(1 + 1/α) + (c_t + B + A_t)/t,
//
// times t/2R, is that |sum − t/2| is above this and the noise.
func (r *Rule) above(k, t int) float64 {
	n, x := float64(t), float64(k)
	logs := math.Log(4 / r.beta)
	h := math.Sqrt(2*n*math.Log(r.hoeffding*x*x/r.beta)) + float64(n*r.step) // t·h_t/R
	c := float64(r.noise[0].H*(logs+r.noise[0].Log)) +
		float64(r.noise[1].H*(math.Log(r.query*x*x/r.beta)+r.noise[1].Log)) +
		float64(r.noise[2].H*(logs+r.noise[2].Log))/r.alpha
	return float64(h*(1+1/r.alpha))/2 + c
}

// A sampler is a stopping rule at work: a policy of one arm, whose plays are samples, and which stops.
type sampler struct {
	rule     Rule
	k, t     int     // questions asked, samples asked for
	estimate float64 // the private mean, once Next has returned nil
	plays    [1]policy.Play
	batch    policy.Batch
}

// Mechanism implements policy.Policy.
func (p *sampler) Mechanism() privacy.Mechanism { return p.rule.Mechanism() }

// Next implements policy.Policy. It is nil once there is an estimate.
func (p *sampler) Next(released privacy.Released) *policy.Batch {
	if released.Len() > 0 {
		p.estimate = p.rule.estimate(released.Mean(0))
		return nil
	}
	p.k++
	t := p.rule.after(p.k)
	p.plays[0] = policy.Play{Rounds: t - p.t, Release: true}
	p.t = t
	p.batch = policy.Batch{Plays: p.plays[:], Ask: true, Above: p.rule.above(p.k, t)}
	return &p.batch
}

// estimate maps a mean of [0,1] back to [−R,R].
func (r *Rule) estimate(mean float64) float64 { return float64(r.r * (2*mean - 1)) }
