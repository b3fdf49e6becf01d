package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// Certified batches. An index policy on exact sums decides before every reward, and nearly always
// decides the same. If rewards lie in [0,1] it can often see so beforehand: it asks for k rounds of
// the arm that leads (the incumbent) at once when no outcome of these k rewards can change its
// mind. That is so if, at the last of the k decisions,
//
//	the incumbent's index, had all its rewards been 0, at the level of the first decision
//	  >  every rival's index at the level of the last decision.
//
// Rivals are not played inside the window, so their indices only grow with the level log f(t); the
// incumbent's index falls with each reward of 0 and grows with the level. Every decision is the one
// that the per-round algorithm would have made in the same floating-point arithmetic: certificates
// keep a margin well above rounding, and where they fail the indices are compared themselves.

// An exploration is the function f in the level log f(t) to which an index explores at round t.
type exploration int

const (
	// logSquared is f(t) = 1 + t log²t, of the anytime indices in [Azize 2024, (2.12) and (2.14)].
	logSquared exploration = iota
	// plain is f(t) = t, of [Sajed 2019, Algorithm 1].
	plain
)

// String is the function as a formula.
func (f exploration) String() string {
	switch f {
	case logSquared:
		return "1+t·log²t"
	case plain:
		return "t"
	}
	return fmt.Sprintf("exploration(%d)", int(f))
}

// level is log f(t) and its derivative. Both functions are concave for t ≥ 3, so level(t) + j·slope
// bounds level(t+j) from above.
func (f exploration) level(t float64) (level, slope float64) {
	l := math.Log(t)
	if f == plain {
		return l, 1 / t
	}
	ft := 1 + float64(t*float64(l*l))
	return math.Log(ft), float64(l*(l+2)) / ft
}

// margin is what certificates keep between two indices, relative to their size. Rounding moves an
// index by some 1e-15 and divergence.KLUpper promises 1e-12.
const margin = 1e-11

// A tally is what an index policy knows: each arm's rewards, the round, and the batch that
// is being played.
type tally struct {
	n, sum, mean []float64
	t            float64 // the round about to be played, counted from 1
	played       float64 // rounds of the batch
	batch        Batch
	plays        []Play
}

func newTally(arms int) tally {
	numbers := make([]float64, 3*arms)
	return tally{n: numbers[:arms], sum: numbers[arms : 2*arms], mean: numbers[2*arms:],
		plays: make([]Play, arms)}
}

// first is every arm once.
func (s *tally) first() *Batch {
	for a := range s.plays {
		s.plays[a] = Play{Arm: a, Rounds: 1, Release: true}
	}
	s.t, s.played = 1, float64(len(s.plays))
	s.batch.Plays = s.plays
	return &s.batch
}

// next is k rounds of one arm.
func (s *tally) next(arm int, k float64) *Batch {
	s.plays[0] = Play{Arm: arm, Rounds: int(k), Release: true}
	s.played = k
	s.batch.Plays = s.plays[:1]
	return &s.batch
}

// take enters what was released. Nothing released means that no reward came.
func (s *tally) take(released privacy.Released) {
	s.t += s.played
	for i := range min(released.Len(), len(s.batch.Plays)) {
		a := s.batch.Plays[i].Arm
		n := float64(released.N(i))
		s.n[a], s.sum[a] = n, released.Sum(i)
		if n > 0 {
			s.mean[a] = s.sum[a] / n
		}
	}
}
