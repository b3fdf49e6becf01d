package aggregate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
)

// Bell sums by secagg: a single server learns the sum and nothing else. It is
// release.Summer for one run.
//
// One or two messages cannot be hidden in a crowd, and no graph is good enough for them. If each
// has a whole noise of its own they are summed in the open: that is how the curator has a batch
// made to which fewer than three are invited, under privacy.TrustLocal, and what the ledger says of
// it. Shares of a noise are not: the error matches release.ErrAnswers.
type Bell struct {
	Context context.Context // of the run; nil is the background
	// told to all users, with the batch, its integers and the state of the policy
	Experiment string
	Mode       secagg.Mode // 0 is secagg.SemiHonest
	// at most this share of the invited users is corrupt: they answer, and add no noise
	Gamma float64
	Delta float64 // at most this share vanishes under way
	// every user is every other's neighbour: the draw of the graph needs no trust
	Complete bool
	By       secagg.Summer  // nil is secagg.Local{}: all in this process
	Open     release.Summer // sums one or two messages in the open; nil is release.PlainSum{}
}

// Sum implements release.Summer. Its error matches release.ErrAnswers if too few users answered,
// and else what package secagg says.
func (b Bell) Sum(s release.Sum, messages []uint64) (uint64, int, error) {
	if len(messages) < 3 {
		if m, ok := s.Mechanism.(privacy.Aggregated); !ok || m.Trust != privacy.TrustLocal {
			return 0, 0, fmt.Errorf("sum of batch %d, arm %d: %w: %d cannot be hidden among so few",
				s.Batch, s.Arm, release.ErrAnswers, len(messages))
		}
		if b.Open == nil {
			b.Open = release.PlainSum{}
		}
		return b.Open.Sum(s, messages)
	}
	session, err := b.session(s, len(messages))
	if err != nil {
		return 0, 0, err
	}
	in := make(map[uint32][]uint64, len(messages))
	for i, x := range messages {
		if x >= s.Modulus {
			return 0, 0, fmt.Errorf("sum of batch %d, arm %d: %w: message %d must be below the "+
				"modulus, %d", s.Batch, s.Arm, release.ErrMessage, i, s.Modulus)
		}
		in[uint32(i+1)] = []uint64{x}
	}
	by, ctx := b.By, b.Context
	if by == nil {
		by = secagg.Local{}
	}
	if ctx == nil {
		ctx = context.Background()
	}
	sum, survivors, err := by.Sum(ctx, session, in)
	if err != nil {
		if errors.Is(err, secagg.ErrTooFew) {
			return 0, 0, fmt.Errorf("sum of batch %d, arm %d: %w: %w", s.Batch, s.Arm, release.ErrAnswers, err)
		}
		return 0, 0, fmt.Errorf("sum of batch %d, arm %d: %w", s.Batch, s.Arm, err)
	}
	return sum[0], len(survivors), nil
}

// session is what all users of the batch are told.
func (b Bell) session(s release.Sum, n int) (secagg.Session, error) {
	id, err := secagg.NewID(nil)
	if err != nil {
		return secagg.Session{}, err
	}
	mechanism, err := json.Marshal(s.Mechanism)
	if err != nil {
		return secagg.Session{}, fmt.Errorf("sum of batch %d: mechanism: %w", s.Batch, err)
	}
	if b.Mode == 0 {
		b.Mode = secagg.SemiHonest
	}
	out := secagg.Session{ID: id, Experiment: b.Experiment, Arm: uint64(s.Arm),
		Batch: uint64(s.Batch), Grid: s.Grid, Modulus: s.Modulus, Length: 1,
		Enrolled: max(s.Invited, n), Honest: s.Users, Noise: string(mechanism), Policy: s.State,
		Mode: b.Mode, Gamma: b.Gamma, Delta: b.Delta, Complete: b.Complete}
	out.NMin = max(2, s.Users+out.Corrupt())
	honest, err := out.HonestMin(n)
	switch {
	case errors.Is(err, secagg.ErrTooFew):
		return out, fmt.Errorf("sum of batch %d, arm %d: %w: %w", s.Batch, s.Arm, release.ErrAnswers, err)
	case err != nil:
		return out, fmt.Errorf("sum of batch %d, arm %d: %w", s.Batch, s.Arm, err)
	case honest < s.Users:
		return out, fmt.Errorf("sum of batch %d, arm %d: %w: of %d users with γ = %v only %d "+
			"honest ones are promised by the protocol, and noise is calibrated to %d", s.Batch, s.Arm,
			release.ErrAnswers, n, b.Gamma, honest, s.Users)
	}
	return out, nil
}
