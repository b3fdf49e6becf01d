package play

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/sotto-dp/sotto/policy"
)

// A State is all of a Live that is not in the lines of its transcript. It holds sums of
// rewards: whoever reads it is the curator. A store keeps it field by field, or as one value, such
// as JSON.
type State struct {
	Terms
	Lines int // of the transcript
	// the batch that is out, nil after a line and before the policy was asked again, and with contexts
	Batch  []policy.Play
	Arms   []Queue // with contexts there is one
	Events []Event // the decisions with contexts of the queue, in their order
	// Kept is the curator's under joint privacy, of the last line that is a release: it changes with
	// that line and never without it. nil before, and elsewhere.
	Kept []byte
}

// Terms are what must be the same whenever a state is restored.
type Terms struct {
	Lo, Hi, Default float64
	Take            Take
	Drop            bool
	Dim, Horizon    int       // with contexts
	Sums            string    // what the metrics or rules are, a line each
	Joint           string    `json:",omitempty"` // shares of arms, and where the first joint batches end
	Aggregate       Aggregate `json:",omitempty"` // of rewards
	Apart           bool      `json:",omitempty"`
	Cells           string    `json:",omitempty"` // how many, and the least of one
}

// State is a copy of the state as it is now: decisions that were made since it was last
// written are in it. The events' vectors and weights are the machine's own, to be read only.
func (l *Live) State() State { return l.s.clone() }

func (s State) clone() State {
	s.Batch, s.Arms = slices.Clone(s.Batch), slices.Clone(s.Arms)
	s.Events, s.Kept = slices.Clone(s.Events), bytes.Clone(s.Kept)
	for a := range s.Arms {
		s.Arms[a] = s.Arms[a].clone()
	}
	return s
}

func (q Queue) clone() Queue {
	q.Runs, q.Segments = slices.Clone(q.Runs), slices.Clone(q.Segments)
	for i := range q.Segments {
		q.Segments[i] = q.Segments[i].clone()
	}
	return q
}

func (s *Segment) clone() Segment {
	out := *s
	out.Came, out.Gone, out.More = slices.Clone(s.Came), slices.Clone(s.Gone), slices.Clone(s.More)
	out.Totals = maps.Clone(s.Totals)
	for i, t := range out.Totals {
		out.Totals[i] = Total{slices.Clone(t.Sums), slices.Clone(t.Names)}
	}
	out.Cells = slices.Clone(s.Cells)
	for i := range out.Cells {
		out.Cells[i] = slices.Clone(s.Cells[i])
	}
	return out
}

// validate says what no state of a Live has, in whose segments so many of the further sums may be
// negative. It tells no sum.
func (s *State) validate(signed int) error {
	if s.Drop && s.Take == Exactly {
		return errors.New("what does not come is dropped, and it takes exactly what is asked for")
	}
	if s.Lines < 0 || len(s.Arms) < 1 || len(s.Arms) > maxArms || s.Take < AtLeast || s.Take > Jointly {
		return fmt.Errorf("%d lines, %d arms or take %d", s.Lines, len(s.Arms), int(s.Take))
	}
	for a := range s.Arms {
		if err := s.Arms[a].validate(signed); err != nil {
			return fmt.Errorf("arm %d: %w", a, err)
		}
		if s.Take == Exactly && slices.ContainsFunc(s.Arms[a].Segments, func(g Segment) bool {
			return len(g.Gone) > 0
		}) {
			return fmt.Errorf("arm %d: decisions were withdrawn, and it takes exactly what is asked for", a)
		}
	}
	seen := make([]bool, len(s.Arms))
	for _, p := range s.Batch {
		if p.Arm < 0 || p.Arm >= len(seen) || seen[p.Arm] || s.Arms[p.Arm].Off || p.Rounds < 1 ||
			p.Rounds > s.Arms[p.Arm].Asked {
			return fmt.Errorf("the batch has %d rounds of arm %d", p.Rounds, p.Arm)
		}
		seen[p.Arm] = true
	}
	return nil
}

// validate says what no queue has, in whose segments so many of the further sums may be negative.
func (q *Queue) validate(signed int) error {
	if q.Head < 0 || q.Issued < q.Head || q.Issued > maxIssued || q.Asked < 0 {
		return fmt.Errorf("head %d, issued %d, asked %d", q.Head, q.Issued, q.Asked)
	}
	if q.Off && q.Asked > 0 {
		return errors.New("it is off, and is asked for")
	}
	for i, r := range q.Runs {
		if i == 0 && r.From > q.Head || i > 0 && r.From <= q.Runs[i-1].From || r.From < 0 || r.From > q.Issued {
			return fmt.Errorf("run %d from %d", i, r.From)
		}
	}
	if len(q.Runs) == 0 && q.Issued > 0 {
		return errors.New("decisions of no epoch")
	}
	next := q.Head
	for i := range q.Segments {
		s := &q.Segments[i]
		last := i == len(q.Segments)-1
		end := s.End // of those that were made
		if last && (end == 0 || end > q.Issued) {
			end = q.Issued
		}
		if s.Start != next || end <= s.Start || end > q.Issued || s.End < 0 {
			return fmt.Errorf("segment %d from %d to %d", i, s.Start, s.End)
		}
		if !s.Came.fits(end-s.Start) || !s.Gone.fits(end-s.Start) {
			return fmt.Errorf("segment %d knows of decisions that are not in it", i)
		}
		if absurd(s.Cut) || absurd(s.Settles) {
			return fmt.Errorf("segment %d: its times are out of range", i)
		}
		most := int64(s.Came.Len()) * oneStep
		for j, sum := range append([]int64{s.Sum}, s.More...) {
			if sum > most || sum < -most || sum < 0 && (j == 0 || j > signed) {
				return fmt.Errorf("segment %d: a sum is out of range", i)
			}
		}
		next = end
	}
	if next != q.Issued {
		return fmt.Errorf("decisions from %d to %d in no segment", next, q.Issued)
	}
	return nil
}

// fits says whether a set is one of numbers below n, without an empty end.
func (s Set) fits(n int) bool {
	k := len(s)
	return k == 0 || s[k-1] != 0 && k <= (n+63)/64 && bits.Len64(s[k-1])+64*(k-1) <= n
}

// absurd says that no sum of a time and a window is this.
func absurd(t int64) bool { return t < -maxTime || t > 2*maxTime-1 }
