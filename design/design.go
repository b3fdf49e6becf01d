// Package design finds optimal experimental designs: how often to play each of a finite set of actions in ℝ^d so that least squares knows every
// direction it must.
package design

// A Design is a distribution over actions.
type Design struct {
	Weights []float64 // one an action of the set it was found for, at least 0, sum 1; those not in Support are 0
	Support []int     // indices of the actions with positive weight, increasing; at most r(r+1)/2 of them
	Rank    int       // r, the dimension of the actions' span
	// G is max_a ‖a‖²_{V(π)⁺} over all actions of the set: r for an exact design (Kiefer and Wolfowitz), at most r(1+tolerance) for this one.
	G float64
}

// Options of Optimal.
type Options struct {
	Tolerance float64   // relative, of G: 0 means 1e-3... see DefaultTolerance
	Start     []float64 // weights to start from, nil for none: a warm start
}

// Optimal returns a G- and D-optimal design on the span of these actions. (Signature is fixed; the owner may add to Design.)
func Optimal(actions [][]float64, o Options) (Design, error) { panic("to be written") }
