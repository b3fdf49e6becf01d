package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// A line of a transcript: one release as its policy was given it, and what it was released through.
// A question answered no is a release of no sums.
type line struct {
	Slots     []int           `json:"slots"` // of each sum
	Mechanism json.RawMessage `json:"mechanism"`
	N         []int           `json:"n"`
	Sum       []float64       `json:"sum"`
	Tail      *Tail           `json:"tail"`
}

// WithTranscript writes every release to w, a line of JSON each, before it is handed out. A policy
// is a function of its parameters and its releases, so the transcript is all its state: see
// Restore. Transcripts hold released values only, and are as public as what the policy plays. A
// release that cannot be written is refused and stays charged.
func WithTranscript(w io.Writer) Option { return func(l *Ledger) { l.transcript = w } }

func (l *Ledger) write(slots []int, at int32, v *Values) (Released, error) {
	m, err := json.Marshal(l.get(at).mechanism)
	if err != nil {
		return Released{}, fmt.Errorf("ledger: transcript: %w", err)
	}
	b, err := json.Marshal(line{slots, m, v.N, v.Sum, &v.Tail})
	if err != nil {
		return Released{}, fmt.Errorf("ledger: transcript: %w", err)
	}
	if _, err := l.transcript.Write(append(b, '\n')); err != nil {
		return Released{}, fmt.Errorf("ledger: transcript: %w", err)
	}
	return Released{v}, nil
}

// Restore reads a line of a transcript back: the release is charged, as it was then, and handed out
// again, for a policy that is being brought back to where it was. Restoring every line of a
// transcript, in order, restores the ledger's total too. Nothing is written. A release beyond the
// ledger's cap is refused with ErrBudget. For vectors there is RestoreVector.
func (l *Ledger) Restore(text []byte) (Released, error) {
	var in line
	if err := strict(text, &in); err != nil {
		return Released{}, fmt.Errorf("ledger: transcript: %w", err)
	}
	switch {
	case in.Tail == nil:
		return Released{}, errors.New("ledger: transcript: the field \"tail\" is missing")
	case !(in.Tail.Sigma >= 0 && in.Tail.H >= 0 && in.Tail.Log >= 0) ||
		math.IsInf(in.Tail.Sigma+in.Tail.H+in.Tail.Log, 0):
		return Released{}, fmt.Errorf("ledger: transcript: tail is %+v: its numbers must be "+
			"finite and at least 0", *in.Tail)
	}
	for _, n := range in.N {
		if n < 1 {
			return Released{}, fmt.Errorf("ledger: transcript: n is %d, must be at least 1", n)
		}
	}
	m, err := UnmarshalMechanism(in.Mechanism)
	if err != nil {
		return Released{}, fmt.Errorf("ledger: transcript: %w", err)
	}
	if len(in.Sum) == 0 {
		return Released{}, l.restoreNo(in.Slots, m, in.N)
	}
	if _, ok := m.(Sparse); ok { // the yes answers a question
		if err := l.Question(in.Slots, m); err != nil {
			return Released{}, err
		}
	}
	return l.releaseAll(in.Slots, m, &Values{N: in.N, Sum: in.Sum, Tail: *in.Tail}, false)
}
