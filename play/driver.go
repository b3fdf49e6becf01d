package play

import (
	"fmt"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Driver plays a policy on a curator, one batch after the other: Next says what to play, the
// caller plays it and gives its rewards to the curator, and Close lets out what the batch asked
// for. Any policy and any curator will do.
type Driver struct {
	Policy  policy.Policy
	Curator release.Curator
	// Released is what the last batch that was closed has released: Next hands it to the policy.
	Released privacy.Released
	Batches  int // that the policy has asked for: rounds of adaptivity
	Releases int // times that something was let out, answers to questions included

	batch *policy.Batch
	ready []int
}

// NewDriver returns a driver of a policy that has not been asked for anything, and its curator.
func NewDriver(p policy.Policy, c release.Curator) *Driver { return &Driver{Policy: p, Curator: c} }

// Next is the policy's next batch, nil when it has stopped or, with the error, when it has failed. A
// batch that is to begin afresh has the curator forget what it holds. The batch is the policy's, and good until the next call.
func (d *Driver) Next() (*policy.Batch, error) {
	b := d.Policy.Next(d.Released)
	if b != d.batch { // it is mostly the same one, and pointers cost more to write than to compare
		if d.batch = b; b != nil && cap(d.ready) < len(b.Plays) {
			// At once: Releasing, which is inlined, lets it grow.
			d.ready = make([]int, 0, len(b.Plays))
		}
	}
	if b == nil {
		return nil, policy.Err(d.Policy)
	}
	d.Batches++
	if b.Fresh {
		if err := d.Curator.Forget(d.Policy.Mechanism()); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Close lets out what the batch asked for, or has its question answered. A batch that asked for
// nothing releases nothing. After an error it may be called again, if the curator's slots allow it:
// when too few users answered, say.
func (d *Driver) Close() (err error) {
	var released privacy.Released
	if ready := d.Releasing(); len(ready) > 0 {
		if d.batch.Ask {
			released, err = d.Curator.Ask(ready, d.batch.Above)
		} else {
			released, err = d.Curator.Release(ready)
		}
		if err == nil {
			d.Releases++
		}
	}
	if released != d.Released {
		d.Released = released
	}
	return err
}

// Releasing are the arms whose slots the batch releases, in the order of its plays. The slice
// is the driver's.
func (d *Driver) Releasing() []int {
	plays := d.batch.Plays
	d.ready = d.ready[:0]
	for i := range plays {
		if plays[i].Release {
			d.ready = append(d.ready, plays[i].Arm)
		}
	}
	return d.ready
}

// A VectorPolicy is a policy whose releases are vectors: linear.Policy is one.
type VectorPolicy interface {
	Mechanism() privacy.Mechanism
	Next(privacy.ReleasedVector) *policy.Batch
}

// A VectorDriver is a Driver for a fixed set of actions: they share one slot, which is
// released as one vector.
type VectorDriver struct {
	Policy   VectorPolicy
	Curator  release.ActionCurator
	Released privacy.ReleasedVector
	Releases int

	asked bool
}

// Next is Driver.Next. A batch that asks a question or begins afresh is an error:
// vectors know neither.
func (d *VectorDriver) Next() (*policy.Batch, error) {
	b := d.Policy.Next(d.Released)
	d.Released, d.asked = privacy.ReleasedVector{}, false
	if b == nil {
		return nil, nil
	}
	if b.Ask || b.Fresh {
		return nil, fmt.Errorf("a linear policy asks a question or starts afresh: %w", ErrBatch)
	}
	for i := range b.Plays {
		d.asked = d.asked || b.Plays[i].Release
	}
	return b, nil
}

// Releasing says whether the batch releases the slot.
func (d *VectorDriver) Releasing() bool { return d.asked }

// Close is Driver.Close.
func (d *VectorDriver) Close() (err error) {
	if !d.asked {
		return nil
	}
	if d.Released, err = d.Curator.Release(d.Policy.Mechanism()); err == nil {
		d.Releases++
	}
	return err
}
