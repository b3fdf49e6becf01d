// Package design finds optimal experimental designs: how often to play each of a finite set of
// actions in ℝ^d so that least squares knows every direction it must.
//
// For a distribution π over actions, V(π) = Σ_a π(a) a aᵀ. A G-optimal design minimises G(π) =
// max_a ‖a‖²_{V(π)⁺}, the largest variance of a prediction; a D-optimal one maximises log det V(π).
// Kiefer and Wolfowitz (The equivalence of two extremum problems, 1960; [Azize and Basu 2024,
// Theorem 2]) say that the two are one, and that the optimum has G = d if the actions span ℝ^d. The
// norm is squared there; the statement of [Azize and Basu 2024] leaves the square out. If the
// actions do not span ℝ^d, as after an elimination, everything holds on their span, with its
// dimension r in place of d.
//
// Nothing here depends on the basis: a design is the same after any invertible linear
// map of the actions.
package design

import (
	"errors"
	"fmt"
	"math"
)

// DefaultTolerance is the relative accuracy of G that Options.Tolerance = 0 asks for.
const DefaultTolerance = 1e-3

// MinTolerance is the smallest tolerance that Optimal takes: below it, rounding decides
// and not the design.
const MinTolerance = 1e-9

// ErrTolerance says that the steps ran out before the tolerance was met. The design that comes with
// it is one all the same, with its true G: who uses the achieved G, as noise must, loses accuracy
// and nothing else.
var ErrTolerance = errors.New("design: tolerance not met")

// A Design is a distribution over actions.
type Design struct {
	// one an action of the set it was found for, at least 0, sum 1; those not in Support are 0
	Weights []float64
	// indices of the actions with positive weight, increasing; at most r(r+1)/2 of them
	Support []int
	Rank    int // r, the dimension of the actions' span
	// G is max_a ‖a‖²_{V(π)⁺} over all actions of the set, the norm squared, computed from these
	// very Weights: r for an exact design (Kiefer and Wolfowitz), never less, and at most
	// r(1+tolerance) for this one.
	G     float64
	Steps int // how many steps it took from the start
}

// Options of Optimal. The zero value is ready to use.
type Options struct {
	// Tolerance is the relative accuracy of G: Optimal stops when G ≤ r(1+Tolerance). From
	// MinTolerance to 1; 0 means DefaultTolerance.
	Tolerance float64
	// Start holds weights to start from, one an action, at least 0; they need not sum to 1. A
	// design of a slightly larger set, without the actions that left, saves most of the steps. If
	// the positive ones do not span what the actions span, the missing directions are added. Nil
	// starts from r actions that span, chosen greedily.
	Start []float64
}

// Optimal returns a G- and D-optimal design, to relative accuracy o.Tolerance of G, on the span
// of these actions.
//
// It is the Frank–Wolfe method with exact line search on log det V(π): towards the action of the
// largest ‖a‖², Wynn's step; away from the support's smallest (Todd and Yıldırım, On Khachiyan's
// algorithm for the computation of minimum-volume enclosing ellipsoids, Discrete Applied
// Mathematics 155, 2007); or from one to the other (Böhning, A vertex-exchange-method in D-optimal
// design theory, Metrika 33, 1986); whichever gains most. Wynn's alone would need O(r(log r +
// 1/tolerance)) steps from the greedy start, and no step gains less than it would. Then
// Carathéodory's theorem on the matrices a aᵀ of the support, and G once more from scratch. A step
// costs O(Kr) for K actions, less when most have no claim to weight. By concavity of log det, log
// det V(π) is within r·log(G/r) of the best.
//
// The result is a function of the arguments alone; of equal actions the first is taken. Duplicates,
// collinear actions, and zero actions (weight 0) are allowed. Errors are for no actions, rows of
// different lengths, numbers that are not finite, actions that are all zero (rank 0), and options
// out of range; and ErrTolerance, with a design.
//
// What is the span in floating point: an action counts as outside that of others if its direction
// is off by more than 1e-10, after coordinates have been brought to one scale.
func Optimal(actions [][]float64, o Options) (Design, error) {
	tol := o.Tolerance
	if tol == 0 {
		tol = DefaultTolerance
	}
	if !(tol >= MinTolerance && tol <= 1) {
		return Design{}, fmt.Errorf("design: tolerance is %v, must be from %v to 1, or 0 for %v",
			o.Tolerance, MinTolerance, DefaultTolerance)
	}
	if err := check(actions); err != nil {
		return Design{}, err
	}
	if err := checkStart(o.Start, len(actions)); err != nil {
		return Design{}, err
	}
	c := coordinates(actions, nil)
	if c.rank == 0 {
		return Design{}, fmt.Errorf("design: all %d actions are zero: they span nothing (rank 0)", len(actions))
	}
	if c.rank == 1 {
		// On a line the longest action is best, and it is the pivot.
		d := Design{Weights: make([]float64, len(actions)), Support: []int{c.pivots[0]}, Rank: 1, G: 1}
		d.Weights[c.pivots[0]] = 1
		return d, nil
	}
	s := newSolver(c, len(actions))
	s.start(o.Start)
	g, ok := s.solve(tol)
	d := Design{Weights: s.p, Rank: c.rank, G: g, Steps: s.steps}
	for i, p := range s.p {
		if p > 0 {
			d.Support = append(d.Support, i)
		}
	}
	if !ok {
		return d, fmt.Errorf("%w: G is %v after %d steps; %v was asked for", ErrTolerance, g,
			s.steps, float64(c.rank)*(1+tol))
	}
	return d, nil
}

// Counts returns how often to play each action in a phase of length c: T(a) = ⌈c·π(a)⌉, so that Σ
// T(a) a aᵀ ⪰ c·V(π) and hence ‖a‖² ≤ G/c in its inverse [Azize and Basu 2024, Algorithm 2]. They
// sum to less than c + |Support|. The length is positive, in rounds, and need not be whole.
func (d Design) Counts(c float64) ([]int, error) {
	// Beyond 2⁵³ a float64 does not hold every whole number, and an int of 32 bits far fewer.
	const most = min(1<<53, math.MaxInt/4)
	if !(c > 0 && c <= most) {
		return nil, fmt.Errorf("design: length %v of a phase, must be positive and at most %d", c, most)
	}
	t := make([]int, len(d.Weights))
	for i, p := range d.Weights {
		t[i] = int(math.Ceil(c * p))
	}
	return t, nil
}

// Norms returns ‖b‖²_{V⁺} for each action b, where V = Σ_a counts_a·a aᵀ: the variance of the
// least-squares prediction ⟨θ̂, b⟩ in units of that of one reward, after each action a was played
// counts_a times. The norm is squared. It is +Inf for actions outside the span of the played ones,
// of which nothing is known, and 0 for a zero action. An action that was played n > 0 times has at
// most 1/n. Counts are at least 0, one an action.
func Norms(actions [][]float64, counts []int) ([]float64, error) {
	if err := check(actions); err != nil {
		return nil, err
	}
	if len(counts) != len(actions) {
		return nil, fmt.Errorf("design: %d counts for %d actions", len(counts), len(actions))
	}
	for i, n := range counts {
		if n < 0 {
			return nil, fmt.Errorf("design: count %d of action %d, must be at least 0", n, i)
		}
	}
	c := coordinates(actions, func(i int) bool { return counts[i] > 0 })
	norms := make([]float64, len(actions))
	if c.rank > 0 {
		s := newSolver(c, len(actions))
		for i, n := range counts {
			s.p[i] = float64(n)
		}
		if !s.factor(nil) {
			return nil, errors.New("design: the played actions are too close to dependent to " +
				"invert their matrix")
		}
		for i := range norms {
			norms[i] = s.variance(i)
		}
	}
	for i := range norms {
		switch {
		case c.outside[i] || math.IsNaN(norms[i]):
			norms[i] = math.Inf(1)
		case counts[i] > 0:
			// True of exact arithmetic; rounding shall not say otherwise.
			norms[i] = min(norms[i], 1/float64(counts[i]))
		}
	}
	return norms, nil
}

func check(actions [][]float64) error {
	if len(actions) == 0 {
		return errors.New("design: no actions, must be at least one")
	}
	d := len(actions[0])
	if d == 0 {
		return errors.New("design: action 0 has no coordinates, must be at least one")
	}
	for i, a := range actions {
		if len(a) != d {
			return fmt.Errorf("design: action %d has %d coordinates, action 0 has %d, all must "+
				"have the same", i, len(a), d)
		}
		for j, v := range a {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("design: coordinate %d of action %d is %v, must be finite", j, i, v)
			}
		}
	}
	return nil
}

func checkStart(start []float64, k int) error {
	if start == nil {
		return nil
	}
	if len(start) != k {
		return fmt.Errorf("design: %d weights to start from for %d actions", len(start), k)
	}
	sum := 0.0
	for i, p := range start {
		if !(p >= 0 && p <= math.MaxFloat64) {
			return fmt.Errorf("design: weight %v of action %d to start from, must be finite and "+
				"at least 0", p, i)
		}
		sum += p
	}
	if !(sum > 0 && sum <= math.MaxFloat64) {
		return fmt.Errorf("design: the weights to start from sum to %v, must be positive and finite", sum)
	}
	return nil
}
