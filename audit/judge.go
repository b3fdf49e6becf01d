package audit

import (
	"errors"
	"fmt"
	"math"
)

// Judge bounds ε at δ by the best of some attacks on the same games, which must be those of one
// Play. The attack is chosen by the games with which Scores.Odds begins, and tested on others, with
// all of γ. It returns which one that is. A claim of +Inf is none. An attack whose score is constant
// is left out; if all are, the error matches ErrConstantScore.
func Judge(scores []Scores, names []string, gamma, delta, claim float64) (Finding, int, error) {
	f := Finding{Claimed: claim, Delta: delta, Gamma: gamma, High: math.Inf(1)}
	if err := errors.Join(checkGamma(gamma), checkDelta(delta)); err != nil {
		return f, 0, err
	}
	best, most := -1, math.Inf(-1)
	src := *draw(scores...) // one for all: their pilots are the same games
	var pilot, test Scores
	for i, s := range scores {
		f.Games = len(s.In) + len(s.Out)
		err := s.Validate()
		if errors.Is(err, ErrConstantScore) {
			continue // it tells nothing apart
		}
		if err != nil {
			return f, 0, fmt.Errorf("%s: %w", names[i], err)
		}
		same := src
		begin, rest := s.part(pilotShare, &same)
		if v := newSearched(begin, rest, gamma, delta).best(); best < 0 || v > most {
			best, most, pilot, test = i, v, begin, rest
		}
	}
	if best < 0 {
		return f, 0, fmt.Errorf("%w, of every attack: nothing tells the worlds apart", ErrConstantScore)
	}
	var a Answers
	f.Low, _, a = odds(pilot, test, gamma, delta)
	f.Attack = names[best]
	f.Estimate, f.High = a.between(gamma, delta)
	if f.Low == 0 { // no test stands out, and the rates of any one mean nothing
		f.Estimate, f.High = math.NaN(), math.Inf(1)
	}
	f.Refuted = f.Low > claim
	return f, best, nil
}
