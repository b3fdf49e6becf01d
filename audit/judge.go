package audit

import (
	"errors"
	"fmt"
	"math"
)

// Judge bounds ε at δ by the best of some attacks on the same games, with γ split over them. It
// returns which one that is. A claim of +Inf is none. An attack whose score is constant is left
// out; if all are, the error matches ErrConstantScore.
func Judge(scores []Scores, names []string, gamma, delta, claim float64) (Finding, int, error) {
	f, best := Finding{Claimed: claim, Delta: delta, Gamma: gamma, High: math.Inf(1)}, 0
	f.Low = -1
	for i, s := range scores {
		f.Games = len(s.In) + len(s.Out)
		r, err := s.Split(gamma/float64(len(scores)), delta)
		if errors.Is(err, ErrConstantScore) {
			continue // it tells nothing apart
		}
		if err != nil {
			return f, 0, fmt.Errorf("%s: %w", names[i], err)
		}
		b, err := r.Epsilon(delta)
		if err != nil {
			return f, 0, fmt.Errorf("%s: %w", names[i], err)
		}
		if b.Epsilon <= f.Low {
			continue
		}
		m, err := s.At(b.Test.Threshold, 1-gamma)
		if err != nil {
			return f, 0, fmt.Errorf("%s: %w", names[i], err)
		}
		best, f.Low, f.Attack = i, b.Epsilon, names[i]
		f.Estimate = EpsilonOf(m.TypeI.Value, m.TypeII.Value, delta)
		f.High = EpsilonOf(m.TypeI.Lo, m.TypeII.Lo, delta)
	}
	if f.Low < 0 {
		return f, 0, fmt.Errorf("%w, of every attack: nothing tells the worlds apart", ErrConstantScore)
	}
	if f.Low == 0 { // no test stands out, and the rates of any one mean nothing
		f.Estimate, f.High = math.NaN(), math.Inf(1)
	}
	f.Refuted = f.Low > claim
	return f, best, nil
}
