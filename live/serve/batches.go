package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/sotto-dp/sotto/internal/gramline"
	"github.com/sotto-dp/sotto/privacy"
)

// A Batch is a line of a transcript but its first and its last: what was played and released, an
// arm that was taken off, a Change, or what became of a session.
type Batch struct {
	Number         int // of the line; the first line, which declares, is 0
	Opened, Closed time.Time
	// Plays are what the policy asked for, by its order.
	Plays []Played
	// Released are the sums that were released, first those of the rewards, then those of each
	// metric. What they were, the transcript says.
	Released []Booked
	Off      int // the arm that was taken off, else −1
	Change   *Change
	Cohort   *CohortNote
}

// Played is some decisions of an arm.
type Played struct {
	Arm      int
	Rounds   int
	Released bool
}

// Booked is a release of one sum as it stands on the ledger.
type Booked struct {
	Metric    string // empty: of the rewards
	Arm       int
	Slot      int
	N         int // decisions that are in it
	Mechanism privacy.Mechanism
}

// Batches are the batches of an experiment that everybody may see, from line from of
// its transcript on.
func (e *Engine) Batches(ctx context.Context, name string, from int) (iter.Seq2[Batch, error], error) {
	if from < 0 {
		return nil, fmt.Errorf("from is %d, must be at least 0", from)
	}
	x, err := e.find(name)
	if err != nil {
		return nil, err
	}
	from = max(from, 1)
	lines := e.lines(ctx, x, from-1) // the line before says when the first was opened
	return func(yield func(Batch, error) bool) {
		n, opened := from-1, time.Time{}
		for line, err := range lines {
			var b Batch
			var played bool
			if err == nil {
				b, played, err = x.batch(line)
			}
			if err != nil {
				yield(b, err)
				return
			}
			b.Number, b.Opened, opened = n, opened, b.Closed
			if n++; played && n > from && !yield(b, nil) {
				return
			}
		}
	}, nil
}

// batch reads a line of the transcript, which was verified when it was read first.
func (x *live) batch(line []byte) (b Batch, played bool, err error) {
	var in struct {
		At     time.Time
		Change *Change
		Cohort *CohortNote
	}
	b.Off = -1
	if err := json.Unmarshal(line, &in); err != nil {
		return b, false, fmt.Errorf("%w: %w", ErrTranscript, err)
	}
	b.Closed, b.Change, b.Cohort = in.At, in.Change, in.Cohort
	played, err = x.game.batch(line, &b)
	return b, played || b.Change != nil || b.Cohort != nil, err
}

func (g *arms) batch(line []byte, b *Batch) (played bool, err error) {
	var in struct {
		Plays []struct {
			Arm, Rounds int
			Release     bool
		}
		Release *releaseLine
		Metrics []releaseLine
		Off     *int
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return false, fmt.Errorf("%w: %w", ErrTranscript, err)
	}
	if in.Off != nil {
		b.Off = *in.Off
	}
	var arms []int
	for _, p := range in.Plays {
		b.Plays = append(b.Plays, Played{p.Arm, p.Rounds, p.Release})
		if p.Release {
			arms = append(arms, p.Arm)
		}
	}
	if in.Release != nil {
		for i, r := range append([]releaseLine{*in.Release}, in.Metrics...) {
			metric := ""
			if i > 0 && i <= len(g.x.decl.Metrics) {
				metric = g.x.decl.Metrics[i-1].Name
			}
			booked, err := r.booked(metric, arms)
			if err != nil {
				return false, err
			}
			b.Released = append(b.Released, booked...)
		}
	}
	return in.Plays != nil || in.Off != nil, nil
}

// batch is a segment: plays of no arm, released at once, and its rules as metrics.
func (g *contexts) batch(line []byte, b *Batch) (played bool, err error) {
	var in struct {
		N       int
		Release struct {
			Slot      int
			Mechanism json.RawMessage
		}
		Rules []struct{ Release releaseLine }
	}
	rest, _, _ := gramline.Cut(line)
	if err := json.Unmarshal(rest, &in); err != nil || in.N == 0 {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrTranscript, err)
		}
		return false, err
	}
	b.Plays = []Played{{Rounds: in.N, Released: true}}
	m, err := privacy.UnmarshalMechanism(in.Release.Mechanism)
	if err == nil && len(in.Rules) != len(g.info.Rules) {
		err = errors.New("a line does not release what it says")
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrTranscript, err)
	}
	b.Released = []Booked{{Slot: in.Release.Slot, N: in.N, Mechanism: m}}
	for i, r := range in.Rules {
		booked, err := r.Release.booked(g.info.Rules[i].Name, []int{0})
		if err != nil {
			return false, err
		}
		b.Released = append(b.Released, booked...)
	}
	return true, nil
}

type releaseLine struct {
	Slots     []int
	N         []int
	Mechanism json.RawMessage
}

func (r releaseLine) booked(metric string, arms []int) (out []Booked, err error) {
	if len(r.Slots) != len(arms) || len(r.N) != len(arms) {
		return nil, fmt.Errorf("%w: %w", ErrTranscript, errors.New("a line does not release what it says"))
	}
	m, err := privacy.UnmarshalMechanism(r.Mechanism)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTranscript, err)
	}
	for i, arm := range arms {
		out = append(out, Booked{metric, arm, r.Slots[i], r.N[i], m})
	}
	return out, nil
}
