package aggregate

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/prio"
)

// Prio sums between two servers, with proofs that no user counts for more than one reward: package
// prio, all parties in this process. It is release.NoiseAdder for privacy.TrustTwoServer: each
// server adds a whole noise. Users whose report does not pass are not in the sum.
//
// A batch of one user is summed in the same way: its reward is split between the servers, and
// nobody has it. What is opened has both noises, either of which is what the ledger has charged
// for, so no crowd is needed.
type Prio struct {
	Experiment string
	// what arrives of a user's report, for tests; nil is as it was sent
	Fault func(user int, leader, helper []byte) (l, h []byte)
}

// AddsNoise implements release.NoiseAdder.
func (Prio) AddsNoise() {}

// Sum implements release.Summer. Messages are integers from 0 to s.Grid, without noise.
func (p Prio) Sum(s release.Sum, messages []uint64) (uint64, int, error) {
	fail := func(err error) (uint64, int, error) {
		if errors.Is(err, secagg.ErrTooFew) {
			err = fmt.Errorf("%w: %w", release.ErrAnswers, err)
		}
		return 0, 0, fmt.Errorf("sum of batch %d, arm %d: %w", s.Batch, s.Arm, err)
	}
	if s.Noise == nil {
		return fail(errors.New("there is no noise for the servers: the mechanism must be of trust two-server"))
	}
	for i, x := range messages {
		if x > s.Grid {
			return fail(fmt.Errorf("%w: message %d must be at most g = %d", release.ErrMessage, i, s.Grid))
		}
	}
	var noises [2]int64
	for i := range noises {
		var err error
		if noises[i], err = s.Noise(); err != nil {
			return fail(err)
		}
	}
	session, err := p.session(s, len(messages))
	if err != nil {
		return fail(err)
	}
	total, answers, err := p.run(session, messages, noises)
	if err != nil {
		return fail(err)
	}
	return into(total, s.Modulus), answers, nil
}

func (p Prio) session(s release.Sum, n int) (secagg.Session, error) {
	id, err := secagg.NewID(nil)
	if err != nil {
		return secagg.Session{}, err
	}
	mechanism, err := json.Marshal(s.Mechanism)
	if err != nil {
		return secagg.Session{}, fmt.Errorf("mechanism: %w", err)
	}
	return secagg.Session{ID: id, Experiment: p.Experiment, Arm: uint64(s.Arm),
		Batch: uint64(s.Batch), Grid: s.Grid, Modulus: s.Modulus, Length: 1,
		Enrolled: max(1, n, s.Users), NMin: max(1, s.Users), Noise: string(mechanism),
		Policy: s.State, Mode: secagg.SemiHonest}, nil
}

func (p Prio) run(session secagg.Session, messages []uint64, noises [2]int64) (int64, int, error) {
	key, err := prio.NewVerifyKey(nil)
	if err != nil {
		return 0, 0, err
	}
	leader, err := prio.NewServer(session, prio.Leader, key)
	if err != nil {
		return 0, 0, err
	}
	helper, err := prio.NewServer(session, prio.Helper, key)
	if err != nil {
		return 0, 0, err
	}
	for user, x := range messages {
		l, h, err := prio.Report(session, x, nil)
		if err != nil {
			return 0, 0, err
		}
		if p.Fault != nil {
			l, h = p.Fault(user, l, h)
		}
		a, errA := leader.Prepare(l)
		b, errB := helper.Prepare(h)
		if errA != nil || errB != nil {
			continue // refused: it is in neither sum
		}
		errA, errB = leader.Finish(b), helper.Finish(a)
		if (errA == nil) != (errB == nil) {
			return 0, 0, fmt.Errorf("the servers disagree about a report: %w", errors.Join(errA, errB))
		}
	}
	a, err := leader.Close(noises[0])
	if err != nil {
		return 0, 0, err
	}
	b, err := helper.Close(noises[1])
	if err != nil {
		return 0, 0, err
	}
	return prio.Combine(session, a, b)
}

// into is x in the ring, m ≤ 2^63.
func into(x int64, m uint64) uint64 {
	if x >= 0 {
		return uint64(x) % m
	}
	return (m - uint64(-x)%m) % m
}
