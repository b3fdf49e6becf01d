package play

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// ErrState is matched when a state and a transcript do not belong together, or to the policy.
var ErrState = errors.New("the state is not that of the policy and its transcript")

// A line of the transcript is one batch: its plays, and what it released as the ledger writes it,
// if it released anything. Or it is an arm that was taken off, with as many decisions as were gone,
// or what else was changed.
type line struct {
	Plays   []play          `json:"plays,omitempty"`
	Release json.RawMessage `json:"release,omitempty"`
	// of each metric, what its own ledger writes of the same release
	Metrics []json.RawMessage `json:"metrics,omitempty"`
	Off     *int              `json:"off,omitempty"`
	Gone    int               `json:"gone,omitempty"`
	Change  json.RawMessage   `json:"change,omitempty"`
}

type play struct {
	Arm     int  `json:"arm"`
	Rounds  int  `json:"rounds"`
	Release bool `json:"release,omitempty"`
	Gone    int  `json:"gone,omitempty"` // decisions that the release does not count
}

func lineOf(plays []policy.Play) (out line) {
	for _, p := range plays {
		out.Plays = append(out.Plays, play{Arm: p.Arm, Rounds: p.Rounds, Release: p.Release})
	}
	return out
}

// plays reads a line.
func (in line) plays() []policy.Play {
	out := make([]policy.Play, len(in.Plays))
	for i, p := range in.Plays {
		out[i] = policy.Play{Arm: p.Arm, Rounds: p.Rounds, Release: p.Release}
	}
	return out
}

// Restore returns the Live that has this state, after all lines of its transcript: cfg has a new
// policy, whose coins are at their start, and a new epoch. The ledger gets every release again, and
// the policy is asked again for every batch: each must be the one that is written. Tickets of
// decisions that the state does not have are void from now on.
func Restore(cfg Config, lines iter.Seq2[[]byte, error], s State) (*Live, error) {
	l, err := build(cfg)
	if err != nil {
		return nil, err
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("play: %w: %w", ErrState, err)
	}
	if len(s.Arms) != cfg.Arms || s.Terms != l.terms() {
		return nil, fmt.Errorf("play: %w: it is of %d arms on %+v, must be of %d on %+v", ErrState,
			len(s.Arms), s.Terms, cfg.Arms, l.terms())
	}
	for a, q := range s.Arms {
		for _, g := range q.Segments {
			if g.More != nil && len(g.More) != len(l.metrics) {
				return nil, fmt.Errorf("play: %w: a segment of arm %d has %d metrics, must have %d", ErrState, a,
					len(g.More), len(l.metrics))
			}
			if end := l.end(a, g.Start); end != 0 && end != g.End {
				return nil, fmt.Errorf("play: %w: a segment of arm %d ends at %d, and the policy "+
					"says at %d", ErrState, a, g.End, end)
			}
		}
	}
	l.s = s.clone()
	for a := range l.s.Arms {
		q := &l.s.Arms[a]
		q.lost = 0
		for i := range q.Segments {
			s := &q.Segments[i]
			s.lost, s.lapsed = 0, false
			q.lose(s, s.Gone.Len())
		}
	}
	if err := l.begin(lines); err != nil {
		return nil, err
	}
	return l, nil
}

// begin brings ledger, policy and curator to where the lines end, and a batch out.
func (l *Live) begin(lines iter.Seq2[[]byte, error]) error {
	p := l.past()
	if err := follow(lines, p.add, &p.lines); err != nil {
		return fmt.Errorf("play: line %d of the transcript: %w", p.lines+1, err)
	}
	if p.lines != l.s.Lines {
		return fmt.Errorf("play: %w: it is of %d lines and there are %d", ErrState, l.s.Lines, p.lines)
	}
	for a := range l.s.Arms {
		switch q := &l.s.Arms[a]; {
		case q.Head != p.heads[a]:
			return fmt.Errorf("play: %w: %d decisions of arm %d are gone from it, and %d were "+
				"released", ErrState, q.Head, a, p.heads[a])
		case q.Off != p.off[a]:
			return fmt.Errorf("play: %w: arm %d was taken off in one of them alone", ErrState, a)
		default:
			if err := q.enter(l.cfg.Epoch); err != nil {
				return fmt.Errorf("play: %w", err)
			}
		}
	}
	if err := l.curate(p); err != nil {
		return err
	}
	l.stopped = p.batch() == nil
	if l.s.Batch != nil {
		if l.stopped || !slices.Equal(p.batch().Plays, l.s.Batch) {
			return fmt.Errorf("play: %w: the policy does not ask for the batch that is out", ErrState)
		}
		l.resume()
		return nil
	}
	err := l.canPlay(p.batch())
	if err == nil && p.batch() != nil {
		err = l.open(p.batch().Plays)
	}
	if err != nil {
		return fmt.Errorf("play: batch %d: %w", p.lines, err)
	}
	return nil
}

// replay hands a release that is durable to the policy, and returns its next batch.
func (d *Driver) replay(r privacy.Released) *policy.Batch {
	if d.batch = d.Policy.Next(r); d.batch != nil {
		d.Batches++
	}
	return d.batch
}

// enter begins an epoch: numbers from the last durable one on are its own.
func (q *Queue) enter(e Epoch) error {
	for _, r := range q.Runs {
		if r.Epoch == e {
			return errors.New("epoch was used before, must be new at each start")
		}
	}
	if n := len(q.Runs); n > 0 && q.Runs[n-1].From == q.Issued {
		q.Runs = q.Runs[:n-1]
	}
	q.Runs = append(q.Runs, Run{q.Issued, e})
	return nil
}
