package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/sotto-dp/sotto/internal/gramline"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// ErrState is matched when a state and a transcript do not belong together, or to the policy.
var ErrState = errors.New("the state is not that of the policy and its transcript")

// A line of the transcript is one batch: its plays, and what it released as the ledger writes it,
// if it released anything, and with it, or alone, what was released ahead of a batch. With contexts it
// is a segment: its number of decisions, what the policy tells of its vectors, and its release. Or it is
// an arm that was taken off, in old ones with as many decisions as were destroyed, or one that was added, what else was changed,
// or the rest, after which there is none.
type line struct {
	N     int     `json:"n,omitempty"`
	Gram  []int64 `json:"gram,omitempty"`
	Plays []play  `json:"plays,omitempty"`
	// what is released ahead, after the batch, by arm; the rounds are those that it was to have
	Ahead   []play          `json:"ahead,omitempty"`
	Rest    []play          `json:"rest,omitempty"`
	Release json.RawMessage `json:"release,omitempty"`
	// of each metric, what its own ledger writes of the same release
	Metrics []json.RawMessage `json:"metrics,omitempty"`
	Rules   []ruleLine        `json:"rules,omitempty"`
	Off     *int              `json:"off,omitempty"`
	Add     *int              `json:"add,omitempty"` // of which Change may say more
	// of joint batches, after how many decisions the arm begins that is added, and its share
	From   int64           `json:"from,omitempty"`
	Share  float64         `json:"share,omitempty"`
	Gone   int             `json:"gone,omitempty"`
	Change json.RawMessage `json:"change,omitempty"`
}

type play struct {
	Arm     int  `json:"arm"`
	Rounds  int  `json:"rounds"`
	Release bool `json:"release,omitempty"`
	Held    bool `json:"held,omitempty"` // its release is the oldest of the arm that was ahead
	Gone    int  `json:"gone,omitempty"` // decisions that the release does not count
	// the cells of its row that are released, each with a sum of its own
	Cells []int `json:"cells,omitempty"`
}

// plays reads a line.
func (in line) plays() []policy.Play {
	out := make([]policy.Play, len(in.Plays))
	for i, p := range in.Plays {
		out[i] = policy.Play{Arm: p.Arm, Rounds: p.Rounds, Release: p.Release}
	}
	return out
}

// readLine is readJSON of a line. The many sums of one with contexts it reads by itself.
func readLine(text []byte) (in line, err error) {
	rest, list, cut := gramline.Cut(text)
	gram, ok := gramline.Parse(list)
	if !cut || !ok {
		err = readJSON(text, &in)
		return in, err
	}
	if err = readJSON(rest, &in); err == nil && in.Gram != nil {
		err = fmt.Errorf("%w: it is not written as a line is", ErrState)
	}
	in.Gram = gram
	return in, err
}

// readJSON reads a line, which another reader could read in no other way: no field is there twice,
// or in other letters.
func readJSON(text []byte, in any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if again, err := json.Marshal(in); err != nil || !bytes.Equal(again, bytes.TrimSpace(text)) {
		return fmt.Errorf("%w: it is not written as a line is", ErrState)
	}
	return nil
}

// Restore returns the Live that has this state, after all lines of its transcript: cfg has a new
// policy, whose coins are at their start, and a new epoch. The ledger gets every release again, and
// the policy is asked again for every batch: each must be the one that is written. With contexts the
// policy gets every release, and the vectors of all decisions since: its segments must end where the
// state's do. Tickets of decisions that the state does not have are void from now on.
func Restore(cfg Config, lines iter.Seq2[[]byte, error], s State) (*Live, error) {
	l, err := build(cfg)
	if err != nil {
		return nil, err
	}
	signed := 0
	if l.vectors != nil {
		signed = l.vectors.width
	}
	if err := s.validate(signed); err != nil {
		return nil, fmt.Errorf("play: %w: %w", ErrState, err)
	}
	if s.Terms != l.terms() {
		return nil, fmt.Errorf("play: %w: it is on %+v, must be on %+v", ErrState, s.Terms, l.terms())
	}
	l.s = s.clone()
	for a := range l.s.Arms {
		q := &l.s.Arms[a]
		q.lost = 0
		for i := range q.Segments {
			g := &q.Segments[i]
			if g.More != nil && len(g.More) != l.more() {
				return nil, fmt.Errorf("play: %w: a segment of arm %d has %d further sums, must have %d",
					ErrState, a, len(g.More), l.more())
			}
			if err := g.checkCells(l.cfg.Cells.Count, min(g.until(), q.Issued)-g.Start); err != nil {
				return nil, fmt.Errorf("play: %w: a segment of arm %d: %w", ErrState, a, err)
			}
			sums := 0
			if l.adds {
				sums = len(l.missing)
			}
			if err := g.checkTotals(min(g.until(), q.Issued)-g.Start, sums); err != nil {
				return nil, fmt.Errorf("play: %w: a segment of arm %d: %w", ErrState, a, err)
			}
			g.lost, g.lapsed = 0, false
			q.lose(g, g.Gone.Len())
		}
	}
	if err := l.begin(lines); err != nil {
		return nil, err
	}
	return l, nil
}

// begin brings ledger, policy and curators to where the lines end, and a batch out.
func (l *Live) begin(lines iter.Seq2[[]byte, error]) error {
	p := l.past()
	if err := follow(lines, p.add, &p.Lines); err != nil {
		return fmt.Errorf("play: line %d of the transcript: %w", p.Lines+1, err)
	}
	if len(l.s.Arms) != l.cfg.Arms {
		return fmt.Errorf("play: %w: it is of %d arms, and there are %d", ErrState, len(l.s.Arms), l.cfg.Arms)
	}
	if p.Lines != l.s.Lines {
		return fmt.Errorf("play: %w: it is of %d lines and there are %d", ErrState, l.s.Lines, p.Lines)
	}
	for a := range l.s.Arms {
		switch q := &l.s.Arms[a]; {
		case q.Head != p.heads[a]:
			return fmt.Errorf("play: %w: %d decisions of arm %d are gone from it, and %d were "+
				"released", ErrState, q.Head, a, p.heads[a])
		case q.Off != p.Off[a]:
			return fmt.Errorf("play: %w: arm %d was taken off in one of them alone", ErrState, a)
		}
	}
	l.hold()
	if err := l.side.curate(p); err != nil {
		return err
	}
	for i := range l.further {
		if err := l.further[i].curate(l.cfg); err != nil {
			return err
		}
	}
	l.earned = p.Rules
	if err := l.side.resume(p); err != nil {
		return err
	}
	for a := range l.s.Arms {
		if err := l.s.Arms[a].enter(l.cfg.Epoch); err != nil {
			return fmt.Errorf("play: %w", err)
		}
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
