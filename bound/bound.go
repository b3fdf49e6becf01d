// Package bound has bounds on what policies must pay and on what they do pay: characteristic times
// of identification, and regret. Begin with Regret of a Problem.
//
// Regret lists all bounds that apply to a problem, each with its theorem and its kind. A bound that
// is asymptotic, or whose constants are not known, says so and has no number made up for it.
package bound

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/privacy"
)

// A Kind says how much of a bound is a number.
type Kind int

// Kinds of bounds.
const (
	Explicit Kind = iota // Value is the bound, at every T where it is not NaN
	// Value is Constant·log T, the bound's slope in the long run; at a finite T a regret may be
	// on its other side
	Asymptotic
	Implicit // constants are not known: there is a rate, Form, and no number
	// the theorem is not for the policy's parameters, or not for these rewards, as Note says:
	// there is no number
	NotProved
)

// String is explicit, asymptotic, implicit or not proved.
func (k Kind) String() string {
	switch k {
	case Explicit:
		return "explicit"
	case Asymptotic:
		return "asymptotic"
	case Implicit:
		return "implicit"
	case NotProved:
		return "not proved"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// A Bound is a bound on the expected regret of a problem.
type Bound struct {
	Name  string // such as thesis-4.15: unique, with Policy, among the bounds of a problem
	Where string // the theorem
	// the policy it bounds, by its name in the catalog where it has one or its variant's label;
	// empty: every policy of the budget
	Policy string
	Form   string // the formula, in the symbols of its source
	Lower  bool
	// WorstCase says that it does not look at the gaps. As a lower bound it says that some
	// instance of the class in Note costs so much, and nothing of this one; as an upper bound it
	// holds for this one too.
	WorstCase bool
	Kind      Kind
	// Value is the bound at horizon T, or NaN where it does not hold; nil if Kind is Implicit or
	// NotProved. A policy that is told its horizon has this bound at the end of it.
	Value    func(T float64) float64
	Constant float64 // of log T, if Kind is Asymptotic
	// Unproved says that the number is as printed while its proof gives another, or none is
	// printed: for comparison with the source, and not to be relied on.
	Unproved bool
	Note     string // the class, the assumptions and what is ours
}

// A Problem is what regret is bounded for: finite arms (Laws), linear arms (Actions and Theta), or
// linear contextual ones (Context).
type Problem struct {
	Budget privacy.Budget // nil is none

	Laws []Law // of finite arms

	Actions [][]float64 // of linear arms
	Theta   []float64   // θ*; may be nil, and then only bounds that do not need it are there
	Sigma   float64     // standard deviation of the linear rewards' Gaussian noise; 0 is 1
	// Signs says that linear rewards are −1 or 1. They tell more of their mean than Gaussian ones
	// do, so the problem-dependent lower bounds are left out.
	Signs bool

	Context *Context

	// Parameters of policies that have no variant of their own.
	Parameters
	// Variants are policies with parameters of their own. Bounds of their policies are of these,
	// and of no others.
	Variants []Variant
	// Unproved says why no upper bound is proved for these rewards, empty if some are: then upper
	// bounds have no number.
	Unproved string
}

// Parameters are those of a policy that its bounds depend on; 0 is the default.
type Parameters struct {
	Beta float64 // β of AdaC-UCB and α of AdaP-UCB, AdaP-KLUCB; 3.1
	Eta  float64 // η of batch elimination, above 1; 2
	Risk float64 // δ of AdaC-GOPE, AdaC-OFUL and the failure probability of eliminations; 1/T
	// Alpha is the ratio α > 1 of DP-KLUCB's and DP-IMED's batches; 1.5, and 2 for DP-IMED with caution
	// 1.
	Alpha float64
	// Caution is what multiplies the logarithm in the indices of DP-KLUCB and its like, at least 1; 1
	// and 1.25.
	Caution float64
	// Confidence is the exponent α > 1 of DP-UCB without a horizon; 1.5. First is its n_1, ⌈16/ε⌉.
	Confidence float64
	First      int
	Lambda     float64 // λ of OFUL; 1
	C          float64 // C of OFUL; 1
	// Whole gives all of the risk to each of AdaC-OFUL's three events, and not a third of it.
	Whole bool
}

// A Variant is a policy with parameters of its own.
type Variant struct {
	Policy string // by its name in the catalog
	Label  string // what its bounds call it; empty: Policy
	Parameters
	// Unproved says why the policy's theorems are not for its parameters, empty if they are: then
	// its bounds have no number.
	Unproved string
}

// A Context is a linear contextual problem: in each round a new set of actions in ℝ^Dim.
type Context struct {
	Dim     int
	Lambda0 float64 // λ₀ of Assumption 2 of [Azize and Basu 2024]; 0: not assumed
}

// ErrProblem is matched by every error in a problem.
var ErrProblem = errors.New("bound: bad problem")

// A problem is a Problem that was checked, with defaults filled in and gaps worked out.
type problem struct {
	Problem
	given Problem // as it was, without defaults
	// of ε-DP policies that meet the budget, √(2ρ) for ρ-zCDP; +Inf without privacy, NaN
	// if there is none
	epsilon float64
	// what N(0,b) noise the budget asks for at sensitivity 1, 1/(2ρ) for ρ-zCDP; 0 without privacy,
	// NaN if none will do
	b    float64
	pure bool // ε-DP

	means []float64
	best  float64
	gaps  []float64 // of all arms; those of the best are 0
	most  float64   // the largest gap
	k     float64   // arms
	d     float64   // dimension
	long  float64   // the largest norm of linear actions and θ*
}

// Regret lists the bounds that apply to a problem, lower ones first: all those of [Azize 2024,
// Tables 4.1 and 4.2] and of [Azize and Basu 2024], what is known of the policies' regret, and the
// bounds without privacy, which hold for private policies too. An (ε,δ) or Rényi budget has only
// those and AdaC-UCB's.
func Regret(p Problem) ([]Bound, error) {
	q, err := p.check()
	if err != nil {
		return nil, err
	}
	lower, err := q.lower()
	if err != nil {
		return nil, err
	}
	upper := q.variants(q.upper())
	for i := range upper {
		if p.Unproved != "" {
			upper[i].withhold(p.Unproved)
		}
	}
	out := slices.Concat(lower, upper)
	for i := range out {
		if b := &out[i]; q.zcdp() && !b.Lower && strings.Contains(b.Form, "ε") {
			b.Note = strings.TrimPrefix(b.Note+"; ε = √(2ρ)", "; ")
		}
		if f := out[i].Value; f != nil {
			out[i].Value = func(T float64) float64 {
				if !(T >= 1) || math.IsInf(T, 1) {
					return math.NaN()
				}
				return f(T)
			}
		}
	}
	return out, nil
}

// Strongest are of the proved lower bounds with a number that which is largest at T on the
// instance, and that on the worst one, those that there are.
func Strongest(all []Bound, T float64) []Bound {
	var out []Bound
	for _, worst := range []bool{false, true} {
		best := -1
		for i, b := range all {
			if b.WorstCase != worst || !b.Lower || b.Unproved || b.Value == nil {
				continue
			}
			if best < 0 || !(all[best].Value(T) >= b.Value(T)) {
				best = i
			}
		}
		if best >= 0 {
			out = append(out, all[best])
		}
	}
	return out
}

// variants has each variant's own bounds instead of its policy's.
func (q *problem) variants(upper []Bound) []Bound {
	var own []Bound
	of := func(b Bound) string { policy, _, _ := strings.Cut(b.Policy, ":"); return policy }
	for _, v := range q.Variants {
		p := q.given
		p.Parameters = v.Parameters
		tuned, err := p.check()
		if err != nil { // the rest of the problem was checked
			tuned, v.Unproved = q, err.Error()
		}
		for _, b := range tuned.upper() {
			if of(b) != v.Policy {
				continue
			}
			if v.Unproved != "" {
				b.withhold(v.Unproved)
			}
			if v.Label != "" {
				b.Policy = v.Label
			}
			own = append(own, b)
		}
	}
	upper = slices.DeleteFunc(upper, func(b Bound) bool {
		return slices.ContainsFunc(q.Variants, func(v Variant) bool { return v.Policy == of(b) })
	})
	return append(upper, own...)
}

// withhold takes a bound's number away.
func (b *Bound) withhold(why string) { b.Kind, b.Value, b.Constant, b.Note = NotProved, nil, 0, why }

func (q *problem) lower() ([]Bound, error) {
	switch {
	case q.Context != nil:
		return q.contextualLower(), nil
	case len(q.Actions) > 0:
		return q.linearLower()
	}
	return q.finiteLower(), nil
}

func (q *problem) upper() []Bound {
	switch {
	case q.Context != nil:
		return q.adacOFUL()
	case len(q.Actions) > 0:
		return q.adacGOPE()
	}
	if spread := q.widest(); spread > 0 { // rewards that leave [0,1] have no sensitivity
		return slices.DeleteFunc(q.ucb(), func(b Bound) bool { return b.Note != subGaussian || spread > 1 })
	}
	return slices.Concat(q.ucb(), q.successiveElimination(), q.dpUCB(), q.dpSE(), q.batchSE(),
		q.adapUCB(), q.adacUCB(), q.normal(), q.others())
}

// Check says what is wrong with a problem, if anything.
func (p Problem) Check() error {
	_, err := p.check()
	return err
}

func (p Problem) check() (*problem, error) {
	fail := func(format string, args ...any) (*problem, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrProblem}, args...)...)
	}
	if p.Budget == nil {
		p.Budget = privacy.None{}
	}
	if err := p.Budget.Validate(); err != nil {
		return fail("%w", err)
	}
	q := &problem{epsilon: math.NaN(), b: math.NaN(), given: p}
	switch b := p.Budget.(type) {
	case privacy.None:
		q.epsilon, q.b = math.Inf(1), 0
	case privacy.Pure:
		q.epsilon, q.pure = b.Epsilon, true
	default:
		if z, ok := b.(privacy.ZCDP); ok {
			q.epsilon = math.Sqrt(2 * z.Rho)
		}
		sigma, err := privacy.GaussianSigma(b)
		if err != nil {
			return fail("%w", err)
		}
		q.b = sigma * sigma
	}
	for _, f := range []struct {
		name      string
		x         *float64
		lo, hi, d float64
	}{
		{"beta", &p.Beta, 0, 1e6, 3.1}, {"eta", &p.Eta, 1, 1e6, 2}, {"sigma", &p.Sigma, 0, 1e100, 1},
		{"lambda", &p.Lambda, 0, 1e12, 1}, {"C", &p.C, 0, 1e12, 1},
	} {
		if *f.x == 0 {
			*f.x = f.d
		}
		if !(*f.x > f.lo && *f.x <= f.hi) {
			return fail("%s is %v, must be above %v and at most %v", f.name, *f.x, f.lo, f.hi)
		}
	}
	if !(p.Risk >= 0 && p.Risk < 1) {
		return fail("risk is %v, must be in (0,1), or 0 for 1/T", p.Risk)
	}
	if !(p.Alpha == 0 || p.Alpha > 1 && p.Alpha <= 1e6) {
		return fail("alpha is %v, must be above 1 and at most 1e6, or 0 for the policy's default", p.Alpha)
	}
	switch {
	case !(p.Caution == 0 || p.Caution >= 1 && p.Caution <= 1e6):
		return fail("caution is %v, must be from 1 to 1e6, or 0 for the policy's default", p.Caution)
	case !(p.Confidence == 0 || p.Confidence > 1 && p.Confidence <= 1e6):
		return fail("confidence is %v, must be above 1 and at most 1e6, or 0 for the default", p.Confidence)
	case p.First < 0:
		return fail("first is %d, must be at least 1, or 0 for the default", p.First)
	}
	kinds := 0
	for _, has := range []bool{len(p.Laws) > 0, len(p.Actions) > 0, p.Context != nil} {
		if has {
			kinds++
		}
	}
	if kinds != 1 {
		return fail("it has %d of arms, actions and a context, must have one", kinds)
	}
	switch {
	case p.Context != nil:
		c := *p.Context
		switch {
		case c.Dim < 1 || c.Dim > 1<<20:
			return fail("the dimension is %d, must be from 1 to 2^20", c.Dim)
		case !(c.Lambda0 >= 0 && c.Lambda0 <= 1):
			return fail("lambda0 is %v, must be from 0 to 1", c.Lambda0)
		}
		p.Context = &c
		q.d = float64(c.Dim)
	case len(p.Actions) > 0:
		if err := checkActions(p.Actions, p.Theta); err != nil {
			return fail("%w", err)
		}
		q.d = float64(len(p.Actions[0]))
		for _, a := range p.Actions {
			q.long = max(q.long, math.Sqrt(norm2(a)))
		}
		q.long = max(q.long, math.Sqrt(norm2(p.Theta)))
		if p.Theta != nil {
			for _, a := range p.Actions {
				q.means = append(q.means, dot(a, p.Theta))
			}
		}
		q.k = float64(len(p.Actions))
	default:
		if len(p.Laws) < 2 {
			return fail("%d arms, must be at least 2", len(p.Laws))
		}
		for i, l := range p.Laws {
			if l == nil || math.IsNaN(l.Mean()) || math.IsInf(l.Mean(), 0) {
				return fail("arm %d has no finite mean", i+1)
			}
			q.means = append(q.means, l.Mean())
		}
		q.k = float64(len(p.Laws))
	}
	if len(q.means) > 0 {
		q.best = slices.Max(q.means)
		for _, m := range q.means {
			q.gaps = append(q.gaps, q.best-m)
			q.most = max(q.most, q.best-m)
		}
	}
	q.Problem = p
	return q, nil
}

// widest is the largest standard deviation of Gaussian arms, 0 if there are none.
func (p *problem) widest() (sigma float64) {
	for _, l := range p.Laws {
		if g, ok := l.(Gaussian); ok {
			sigma = max(sigma, g.Sigma)
		}
	}
	return sigma
}

// over is Σ f(Δ_a) over the suboptimal arms.
func (p *problem) over(f func(gap float64) float64) float64 {
	sum := 0.0
	for _, gap := range p.gaps {
		if gap > 0 {
			sum += f(gap)
		}
	}
	return sum
}

func (p *problem) sumGaps() float64 { return p.over(func(gap float64) float64 { return gap }) }

// risk is δ at horizon T.
func (p *problem) risk(T float64) float64 {
	if p.Risk > 0 {
		return p.Risk
	}
	return min(1/T, 0.5)
}

// logarithmic fills in an asymptotic bound.
func logarithmic(b Bound, constant float64) Bound {
	b.Kind, b.Constant = Asymptotic, constant
	b.Value = func(T float64) float64 { return float64(constant * math.Log(T)) }
	return b
}

func checkActions(actions [][]float64, theta []float64) error {
	if len(actions) < 2 {
		return fmt.Errorf("%d actions, must be at least 2", len(actions))
	}
	d := len(actions[0])
	if d < 1 {
		return errors.New("action 1 has no features")
	}
	for i, a := range actions {
		if len(a) != d {
			return fmt.Errorf("action %d has %d features and action 1 has %d, must be as many", i+1, len(a), d)
		}
		for j, x := range a {
			if !(math.Abs(x) <= 1e100) {
				return fmt.Errorf("feature %d of action %d is %v, must be finite", j+1, i+1, x)
			}
		}
	}
	if theta == nil {
		return nil
	}
	if len(theta) != d {
		return fmt.Errorf("theta has %d features and the actions have %d, must be as many", len(theta), d)
	}
	for j, x := range theta {
		if !(math.Abs(x) <= 1e100) {
			return fmt.Errorf("feature %d of theta is %v, must be finite", j+1, x)
		}
	}
	return nil
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += float64(x * b[i])
	}
	return s
}
