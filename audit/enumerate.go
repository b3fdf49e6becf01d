package audit

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// A Step is one round of a history: what was played and which of the finitely many rewards came
// back, both counted from 0.
type Step struct{ Action, Reward int }

// A Finite is a policy in a world so small that its exact law can be enumerated. Which numbers the
// rewards stand for does not matter.
type Finite struct {
	Arms    int // K, at least 2
	Rounds  int // T, at least 1
	Rewards int // how many values a reward can take, at least 2
	// Law writes the probabilities of the next action into p, which has one place an arm. History is
	// that of the rounds before. It must be defined for every history, also for those that the policy
	// would never produce itself: under the interactive definitions others choose what is played.
	Law func(history []Step, p []float64)
}

// A Model is a way to be private in a bandit: what the input of a policy is, and who chooses
// it. In each the output is the actions of all rounds, and the inputs that must look alike
// differ in one round.
type Model int

// The models of [Azize 2024, Chapter 3]. Interactive ⇒ Table ⇒ View and Continual ⇒ Table; for pure
// DP View, Table and Continual are one [Azize 2024, Propositions 3.12, 3.13 and 3.15]. Interactive
// does not imply Continual, whatever [Azize 2024, §3.8] says: see [Separation].
const (
	View Model = iota // a list of rewards, one a round [Azize 2024, Definition 3.3]
	// a table of rewards, one a round and arm; neighbours differ in one row [Azize
	// 2024, Definition 3.2]
	Table
	// a table, and an adversary that chooses the action played in the policy's place, after each
	// recommendation [Azize 2024, Definition 3.5]
	Interactive
	// an adversary that feeds rewards after each action, and two rewards at the round of the
	// challenge [Azize 2024, Definition 3.9]
	Continual
)

func (m Model) String() string {
	switch m {
	case View:
		return "view"
	case Table:
		return "table"
	case Interactive:
		return "interactive"
	case Continual:
		return "continual"
	}
	return fmt.Sprintf("model %d", int(m))
}

// Models lists the models.
func Models() []Model { return []Model{View, Table, Interactive, Continual} }

// maxVisits bounds the size of what is enumerated.
const maxVisits = 1e9

// An Exact is a policy whose law has been enumerated.
type Exact struct {
	arms, rounds, rewards int
	// law[t] are the laws of round t+1, one for each history of t steps. A history is the number
	// whose digits are Action·Rewards + Reward, the first step highest.
	law [][]float64
}

// Enumerate writes the policy's law down. Laws must be probabilities: not negative, and with
// sum 1 up to 1e-9.
func Enumerate(f Finite) (*Exact, error) {
	switch {
	case f.Arms < 2:
		return nil, fmt.Errorf("enumerate: arms is %d, must be at least 2", f.Arms)
	case f.Rounds < 1:
		return nil, fmt.Errorf("enumerate: rounds is %d, must be at least 1", f.Rounds)
	case f.Rewards < 2:
		return nil, fmt.Errorf("enumerate: rewards is %d, must be at least 2", f.Rewards)
	case f.Law == nil:
		return nil, errors.New("enumerate: the law is missing")
	}
	e := &Exact{arms: f.Arms, rounds: f.Rounds, rewards: f.Rewards}
	base := float64(f.Arms) * float64(f.Rewards)
	if n := math.Pow(base, float64(f.Rounds-1)) * float64(f.Arms); n > 1e7 {
		return nil, fmt.Errorf("enumerate: %d rounds of %d arms and %d rewards have %.0f "+
			"probabilities, must be at most 1e7", f.Rounds, f.Arms, f.Rewards, n)
	}
	history := make([]Step, 0, f.Rounds)
	n := 1
	for t := range f.Rounds {
		law := make([]float64, n*f.Arms)
		for h := range n {
			history = history[:t]
			for i, rest := t-1, h; i >= 0; i-- {
				digit := rest % (f.Arms * f.Rewards)
				history[i] = Step{digit / f.Rewards, digit % f.Rewards}
				rest /= f.Arms * f.Rewards
			}
			p := law[h*f.Arms : (h+1)*f.Arms]
			f.Law(history, p)
			var sum float64
			for a, x := range p {
				if !(x >= 0 && x <= 1+1e-9) {
					return nil, fmt.Errorf("enumerate: probability of action %d after %v is %v, "+
						"must be from 0 to 1", a, history, x)
				}
				sum += x
			}
			if math.Abs(sum-1) > 1e-9 {
				return nil, fmt.Errorf("enumerate: probabilities after %v have sum %v, must be 1", history, sum)
			}
		}
		e.law = append(e.law, law)
		n *= f.Arms * f.Rewards
	}
	return e, nil
}

// A figure is a number that a neighbouring pair of laws has: leaf is its share of one output with
// probabilities p and q, and shares are added up, or the largest counts.
type figure struct {
	leaf    func(p, q float64) float64
	largest bool
}

func (f *figure) none() float64 {
	if f.largest {
		return math.Inf(-1)
	}
	return 0
}

func (f *figure) with(x, y float64) float64 {
	if f.largest {
		return max(x, y)
	}
	return x + y
}

// worst is the largest figure over all neighbours, in both orders, and all adversaries of the
// model. Deterministic adversaries are enough: the figures are convex in the pair. An adversary may
// answer each output so far in its own way, and so does its best by doing its best after each: the
// maximum goes inside the sum, and no adversary need be listed.
func (e *Exact) worst(m Model, f *figure) float64 {
	top := math.Inf(-1)
	if e.rounds == 1 {
		return e.sum(f, 0, 0, 0, 1, 1, nil)
	}
	switch m {
	case Continual:
		for at := range e.rounds - 1 {
			top = max(top, e.sum(f, 0, 0, 0, 1, 1, func(t, _, _ int, next func(a, r, s int) float64,
				a int) float64 {
				best := math.Inf(-1)
				for r := range e.rewards {
					if t != at {
						best = max(best, next(a, r, r))
						continue
					}
					for s := range e.rewards {
						if r != s {
							best = max(best, next(a, r, s))
						}
					}
				}
				return best
			}))
		}
	case View:
		e.tables(1, func(x, y [][]int) {
			top = max(top, e.sum(f, 0, 0, 0, 1, 1, func(t, _, _ int, next func(a, r, s int) float64,
				a int) float64 {
				return next(a, x[t][0], y[t][0])
			}))
		})
	case Table:
		e.tables(e.arms, func(x, y [][]int) {
			top = max(top, e.sum(f, 0, 0, 0, 1, 1, func(t, _, _ int, next func(a, r, s int) float64,
				a int) float64 {
				return next(a, x[t][a], y[t][a])
			}))
		})
	case Interactive:
		e.tables(e.arms, func(x, y [][]int) {
			top = max(top, e.sum(f, 0, 0, 0, 1, 1, func(t, _, _ int, next func(a, r, s int) float64,
				_ int) float64 {
				best := math.Inf(-1)
				for q := range e.arms {
					best = max(best, next(q, x[t][q], y[t][q]))
				}
				return best
			}))
		})
	}
	return top
}

// sum adds f up over the outputs that begin like this: histories h and g of t steps, with
// probabilities p and q. Answer says what comes after output a: by next, which takes the action
// that the policy is told was played and its reward in either world.
func (e *Exact) sum(f *figure, t, h, g int, p, q float64,
	answer func(t, h, g int, next func(a, r, s int) float64, a int) float64) float64 {
	x, y := e.law[t][h*e.arms:(h+1)*e.arms], e.law[t][g*e.arms:(g+1)*e.arms]
	total := f.none()
	base := e.arms * e.rewards
	for a := range e.arms {
		pa, qa := p*x[a], q*y[a]
		switch {
		case pa == 0 && qa == 0:
		case t == e.rounds-1:
			total = f.with(total, f.leaf(pa, qa))
		default:
			total = f.with(total, answer(t, h, g, func(b, r, s int) float64 {
				return e.sum(f, t+1, h*base+b*e.rewards+r, g*base+b*e.rewards+s, pa, qa, answer)
			}, a))
		}
	}
	return total
}

// tables calls do with every pair of tables of so many columns that differ in one row. The reward
// of the last round is read by nobody.
func (e *Exact) tables(columns int, do func(x, y [][]int)) {
	rows := e.rounds - 1
	x, y := make([][]int, rows), make([][]int, rows)
	for t := range x {
		x[t] = make([]int, columns)
	}
	for {
		for at := range rows {
			copy(y, x)
			other := make([]int, columns)
			y[at] = other
			for {
				if !equal(other, x[at]) {
					do(x, y)
				}
				if !count(other, e.rewards) {
					break
				}
			}
		}
		t := rows - 1
		for t >= 0 && !count(x[t], e.rewards) {
			t--
		}
		if t < 0 {
			return
		}
	}
}

// count adds one to the number with these digits, and is false when it is back at zero.
func count(digits []int, base int) bool {
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i]++; digits[i] < base {
			return true
		}
		digits[i] = 0
	}
	return false
}

func equal(x, y []int) bool {
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// visits is about how many outputs the enumeration of a model looks at.
func (e *Exact) visits(m Model) float64 {
	k, r, t := float64(e.arms), float64(e.rewards), float64(e.rounds)
	outputs := math.Pow(k, t)
	switch m {
	case View:
		return math.Pow(r, t-1) * (t - 1) * r * outputs
	case Table:
		return math.Pow(r, k*(t-1)) * (t - 1) * math.Pow(r, k) * outputs
	case Interactive:
		return math.Pow(r, k*(t-1)) * (t - 1) * math.Pow(r, k) * outputs * math.Pow(k, t-1)
	}
	return (t - 1) * math.Pow(r, t) * outputs
}

func (e *Exact) check(m Model) error {
	if m < View || m > Continual {
		return fmt.Errorf("enumerate: %v is unknown, must be view, table, interactive or continual", m)
	}
	if n := e.visits(m); n > maxVisits {
		return fmt.Errorf("enumerate: the %v model of %d rounds, %d arms and %d rewards has %.1g "+
			"outputs to look at, must be at most %g", m, e.rounds, e.arms,
			e.rewards, n, maxVisits)
	}
	return nil
}

// Delta is the smallest δ with which the policy is (epsilon, δ)-DP under the model: the largest Σ_o
// (P(o) − e^ε Q(o))₊ of two neighbours. Epsilon is at least 0.
func (e *Exact) Delta(m Model, epsilon float64) (float64, error) {
	if err := e.check(m); err != nil {
		return 0, err
	}
	if !(epsilon >= 0) || math.IsInf(epsilon, 1) {
		return 0, fmt.Errorf("enumerate: epsilon is %v, must be finite and at least 0", epsilon)
	}
	return e.delta(m, epsilon), nil
}

func (e *Exact) delta(m Model, epsilon float64) float64 {
	c := math.Exp(epsilon)
	return e.worst(m, &figure{leaf: func(p, q float64) float64 { return max(0, p-float64(c*q)) }})
}

// Epsilon is the smallest ε with which the policy is (ε, delta)-DP under the model, +Inf if there
// is none; delta is in [0,1). At delta = 0 it is exact, else it is above the smallest by less than
// 1e-12 + 1e-12·ε, and Delta there is at most delta.
func (e *Exact) Epsilon(m Model, delta float64) (float64, error) {
	if err := e.check(m); err != nil {
		return 0, err
	}
	if !(delta >= 0 && delta < 1) {
		return 0, fmt.Errorf("enumerate: delta is %v, must be from 0 to below 1", delta)
	}
	if delta == 0 {
		return e.pure(m), nil
	}
	if e.delta(m, 0) <= delta {
		return 0, nil
	}
	// What no e^ε takes away: outputs that one neighbour never gives.
	if e.worst(m, &figure{leaf: func(p, q float64) float64 {
		if q == 0 {
			return p
		}
		return 0
	}}) > delta {
		return math.Inf(1), nil
	}
	lo, hi := 0.0, 1.0
	for e.delta(m, hi) > delta {
		if lo, hi = hi, 2*hi; hi > 512 {
			return math.Inf(1), nil
		}
	}
	for hi-lo > 1e-12+1e-12*lo {
		mid := lo + (hi-lo)/2
		if e.delta(m, mid) > delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi, nil
}

// pure is the largest log P(o)/Q(o).
func (e *Exact) pure(m Model) float64 {
	return max(0, e.worst(m, &figure{largest: true, leaf: func(p, q float64) float64 {
		if p == 0 {
			return math.Inf(-1)
		}
		return math.Log(p / q)
	}}))
}

// Rho is the smallest ρ with which the policy is ρ-zCDP under the model: the largest D_α(P‖Q)/α
// over neighbours, adversaries and α > 1, +Inf if there is an output that one neighbour never
// gives. The maximum over α is searched on a fine grid and refined, to a relative 1e-9.
func (e *Exact) Rho(m Model) (float64, error) {
	if err := e.check(m); err != nil {
		return 0, err
	}
	epsilon := e.pure(m)
	if math.IsInf(epsilon, 1) || epsilon == 0 {
		return epsilon, nil
	}
	// At α → 1 it is KL, and beyond α = ε/KL it is smaller than that, since D_α ≤ ε.
	kl := e.worst(m, &figure{leaf: func(p, q float64) float64 {
		if p == 0 {
			return 0
		}
		// Σ P log(P/Q) with Σ (Q−P) = 0 added: no term is negative, so nothing cancels.
		return float64(p*math.Log(p/q)) + (q - p)
	}})
	last := math.Log(max(epsilon/kl, 1) * 1.01)
	at := func(x float64) float64 { return e.renyi(m, math.Exp(x), epsilon) }
	const n = 64
	best, where := kl, 0
	for i := 1; i <= n; i++ {
		if v := at(last * float64(i) / n); v > best {
			best, where = v, i
		}
	}
	// Around the best point of the grid the maximum over pairs may have several: what is kept is the
	// best value seen.
	lo, hi := last*float64(max(where-1, 0))/n, last*float64(min(where+1, n))/n
	less := func(x float64) float64 { return -at(x) }
	return max(best, -divergence.Golden(less, lo, hi, float64(1e-8*(hi-lo)))), nil
}

// renyi is the largest D_α/α; no log-ratio exceeds epsilon.
func (e *Exact) renyi(m Model, alpha, epsilon float64) float64 {
	order := alpha - 1
	if order*epsilon > 1 {
		// Scaled by the largest ratio, so that nothing overflows.
		s := e.worst(m, &figure{leaf: func(p, q float64) float64 {
			if p == 0 {
				return 0
			}
			return p * math.Exp(order*(math.Log(p/q)-epsilon))
		}})
		return (epsilon + math.Log(s)/order) / alpha
	}
	if order < 1e-9 {
		order = 1e-9
	}
	s := e.worst(m, &figure{leaf: func(p, q float64) float64 {
		if p == 0 {
			return 0
		}
		return p * math.Expm1(order*math.Log(p/q))
	}})
	return math.Log1p(s) / order / alpha
}

// TableFromView is the (ε,δ) that Table DP is sure to have if View DP has (epsilon, delta): the
// same ε, and Kᵀ⁻¹·δ. [Azize 2024, Proposition 3.12(d)] prints Kᵀδ; the reward of the last round is
// read by nobody, so outputs can be taken together by their first T−1 actions. The answer may be
// above 1, and then says nothing.
func TableFromView(epsilon, delta float64, arms, rounds int) (float64, float64, error) {
	switch {
	case !(epsilon >= 0):
		return 0, 0, fmt.Errorf("conversion: epsilon is %v, must be at least 0", epsilon)
	case !(delta >= 0 && delta < 1):
		return 0, 0, fmt.Errorf("conversion: delta is %v, must be from 0 to below 1", delta)
	case arms < 2:
		return 0, 0, fmt.Errorf("conversion: arms is %d, must be at least 2", arms)
	case rounds < 1:
		return 0, 0, fmt.Errorf("conversion: rounds is %d, must be at least 1", rounds)
	}
	return epsilon, delta * math.Pow(float64(arms), float64(rounds-1)), nil
}

// Strictness is the policy of [Azize and Basu 2024, Proposition 1(e)] ([Azize 2024, Appendix A]): T
// = 3, two arms, rewards 0 and 1. It is (0.95, 0.17)-DP under View and not under Table, where the
// smallest ε at δ = 0.17 is 0.98398 (the sources print 0.98, which is not enough).
func Strictness() Finite {
	second := []float64{1. / 2, 1. / 3, 1. / 4, 1. / 3}
	third := []float64{1. / 2, 1. / 3, 1. / 4, 1. / 5, 1. / 2, 2. / 3, 1. / 4, 0, 1. / 3, 1. / 7,
		3. / 4, 2. / 5, 1. / 2, 1, 1. / 4, 2. / 3}
	return Finite{Arms: 2, Rounds: 3, Rewards: 2, Law: func(history []Step, p []float64) {
		row := 0
		for _, s := range history {
			row = 4*row + 2*s.Action + s.Reward
		}
		switch len(history) {
		case 0:
			p[0] = 2. / 3
		case 1:
			p[0] = second[row]
		default:
			p[0] = third[row]
		}
		p[1] = 1 - p[0]
	}}
}

// Separation is a policy that is more private against who chooses its plays than against who feeds
// its rewards: at ε = 0.5 its δ is 0.45 under Interactive and 0.55939 under Continual. So Interactive
// DP does not imply DP under adaptive continual release, as [Azize 2024, §3.8] says it does.
func Separation() Finite {
	return Finite{Arms: 2, Rounds: 4, Rewards: 2, Law: func(h []Step, p []float64) {
		switch len(h) {
		case 0:
			p[1] = 0.5
		case 1:
			p[1] = 0.3 + 0.4*float64(h[0].Reward)
		case 2:
			p[1] = 0.01
		default:
			switch {
			case h[2].Action == 1:
				p[1] = 0.5
			case h[2].Reward == h[0].Reward:
				p[1] = 0.45
			default:
				p[1] = 0
			}
		}
		p[0] = 1 - p[1]
	}}
}
