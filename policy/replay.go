package policy

import (
	"errors"
	"io"

	"github.com/sotto-dp/sotto/privacy"
)

// ErrTranscript is matched when a transcript is not that of the policy.
var ErrTranscript = errors.New("the transcript is not this policy's")

// Replay brings a new policy to where its transcript ends, and returns the batch that was out then:
// a policy is a function of its parameters and of its releases, so that these are all the state
// there is to keep. next returns the releases in their order (privacy.Ledger.Restore reads them
// back) and io.EOF after the last.
func Replay(p Policy, next func() (privacy.Released, error)) (*Batch, error) {
	b := p.Next(privacy.Released{})
	for {
		released, err := next()
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		for b != nil && b.releases() == 0 { // a batch that released nothing left no line
			b = p.Next(privacy.Released{})
		}
		if b == nil || b.releases() != released.Len() && !(b.Ask && released.Len() == 0) {
			return nil, ErrTranscript
		}
		b = p.Next(released)
	}
}

func (b *Batch) releases() int {
	n := 0
	for i := range b.Plays {
		if b.Plays[i].Release {
			n++
		}
	}
	return n
}
