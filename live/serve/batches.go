package serve

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/privacy"
)

// A Batch is a line of a transcript but its first and its last: what was played and released, also
// what was released ahead of a batch, an arm that was taken off, a Change, or what became of a session.
type Batch struct {
	Number         int // of the line; the first line, which declares, is 0
	Opened, Closed time.Time
	// Plays are what the policy asked for, by its order; none where all was released ahead.
	Plays []Played
	// Released are the sums that were released, first those of the rewards, then those of each
	// metric, or rule. Sums are what they were, with their noise, mapped to [0,1]; of a vector it is NaN.
	Released []Booked
	Sums     []float64
	Cells    []string // of each of these, nil where there are none
	Rest     bool     // it is what was left when decisions had ended, which the policy did not ask for
	Off      int      // the arm that was taken off, else −1
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
			var at entry
			var b Batch
			if err == nil { // it was verified when it was read first
				if at, err = readEntry(chain.Object(line)); err != nil {
					err = fmt.Errorf("%w: %w", ErrTranscript, err)
				}
			}
			if err == nil {
				b, err = x.board.batch(&at)
			}
			if err != nil {
				yield(b, err)
				return
			}
			b.Number, b.Opened, opened = n, opened, b.Closed
			if n++; n > from && at.header == nil && at.ending == nil && !yield(b, nil) {
				return
			}
		}
	}, nil
}
