package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"

	"github.com/sotto-dp/sotto/privacy"
)

// ErrKept is what a state is refused with that is not the one of the slot's last release.
var ErrKept = errors.New("the state is not that of the last release")

// A KeptCurator releases running sums of vectors whose noise is part of many releases, and can be
// made again in another process: RealFeatures returns one for a tree.
//
// A node's noise is drawn when a release first shows it, and is in all releases that show the node.
// Whoever has it can take it off, and noise that is drawn again for the same records gives their
// sum away by and by. So:
//
//   - State is a secret, as rewards are, and is to be written in the transaction of the line that
//     the release is published by: both are durable, or neither is.
//   - A draw whose transaction was lost was seen by nobody. The records come again, and what they
//     are released with is drawn anew.
//   - A draw that was committed is never drawn again: Restore takes the state of the last line
//     alone. Its sums and its noise must add up to what that line says, number by number, which the
//     state of an earlier line, or of a later one, does not.
//
// Against whoever puts back both, the state and the lines that came after it, nothing here helps: a
// copy of a store that was gone on with must not be.
type KeptCurator interface {
	StepFeatureCurator
	// State is what the slot's next releases need of those before: nil before the first. All the
	// slot's records must have been released: those that wait are their owner's to keep.
	State(slot int) ([]byte, error)
	// Restore puts a slot, which must be new, back to its State. last is the last line's release,
	// empty before the first, which the ledger has had (privacy.Ledger.RestoreVector).
	Restore(slot int, state []byte, last privacy.ReleasedVector) error
}

// A kept is a slot after a release. Noise has the partial sums of the noise of the nodes that were
// shown, longest node first: what the next release goes on with.
type kept struct {
	Mechanism json.RawMessage `json:"mechanism"`
	Slot      int             `json:"slot"`
	N         int             `json:"n"`
	Sum       []int64         `json:"sum"`
	Noise     []int64         `json:"noise"`
}

// State implements KeptCurator.
func (c *gramFeatures[T]) State(slot int) ([]byte, error) {
	g, ok := any(c).(*gramFeatures[int64])
	switch {
	case !ok:
		return nil, errors.New("curator: simulated noise has no state to keep")
	case uint(slot) >= uint(len(c.n)):
		return nil, fmt.Errorf("curator: slot is %d, must be from 0 to %d", slot, len(c.n)-1)
	case c.n[slot] == 0:
		return nil, nil
	case c.n[slot] != c.shown[slot]:
		return nil, fmt.Errorf("curator: slot %d has released %d records, must have released all %d", slot,
			c.shown[slot], c.n[slot])
	}
	m, err := json.Marshal(c.charge)
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	s := kept{Mechanism: m, Slot: c.id[slot], N: c.n[slot], Sum: g.sum[slot*c.width:][:c.width]}
	if tree, ok := g.noise[slot].(*vectorTree[int64]); ok {
		s.Noise = tree.stack[c.width:][:bits.OnesCount64(tree.t)*c.width]
	}
	return json.Marshal(s)
}

// Restore implements KeptCurator.
func (c *gramFeatures[T]) Restore(slot int, state []byte, last privacy.ReleasedVector) error {
	g, ok := any(c).(*gramFeatures[int64])
	switch {
	case !ok:
		return errors.New("curator: simulated noise has no state to keep")
	case uint(slot) >= uint(len(c.n)):
		return fmt.Errorf("curator: slot is %d, must be from 0 to %d", slot, len(c.n)-1)
	case c.n[slot] > 0:
		return fmt.Errorf("curator: slot %d has records, must be new", slot)
	case len(state) == 0 && last.Len() == 0:
		return nil
	case len(state) == 0 || last.Len() == 0:
		return fmt.Errorf("curator: slot %d: one of both is missing: %w", slot, ErrKept)
	}
	var s kept
	d := json.NewDecoder(bytes.NewReader(state))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return fmt.Errorf("curator: slot %d: it cannot be read: %w", slot, ErrKept)
	}
	m, err := json.Marshal(c.charge)
	if err != nil {
		return fmt.Errorf("curator: %w", err)
	}
	leaves := s.N / c.leaf
	depth := bits.OnesCount64(uint64(leaves))
	if c.noise[slot] == nil {
		depth = 0
	}
	switch {
	case !bytes.Equal(m, s.Mechanism):
		return fmt.Errorf("curator: slot %d: it is of another mechanism: %w", slot, ErrKept)
	case s.Slot < 0 || s.N < 1 || s.N > c.most || s.N%c.leaf != 0 || s.N != last.N():
		return fmt.Errorf("curator: slot %d: it is of other records: %w", slot, ErrKept)
	case len(s.Sum) != c.width || len(s.Noise) != depth*c.width || last.Len() != c.width:
		return fmt.Errorf("curator: slot %d: it has other numbers: %w", slot, ErrKept)
	}
	top := s.Noise[max(0, depth-1)*c.width:]
	for i, x := range s.Sum {
		if depth > 0 {
			x += top[i]
		}
		if float64(float64(x)*c.step) != last.At(i) {
			return fmt.Errorf("curator: slot %d: it does not add up to the release: %w", slot, ErrKept)
		}
	}
	if tree, ok := g.noise[slot].(*vectorTree[int64]); ok {
		tree.t = uint64(leaves)
		copy(tree.stack[c.width:], s.Noise)
	}
	copy(g.sum[slot*c.width:], s.Sum)
	c.n[slot], c.shown[slot], c.id[slot] = s.N, s.N, s.Slot
	return nil
}

var _ KeptCurator = (*gramFeatures[int64])(nil)
