package liveaudit

import (
	"crypto/rand"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/prio"
)

// one is a reward of 1, in steps.
const one = 1 << 20

// stated is the mechanism of what is gathered.
var stated = privacy.Laplace{Scale: 1}

// Faults of what is gathered.
const (
	again   fault = ", drawn again"
	clipped fault = ", clipped before the noise"
	twice   fault = ", two for one reward"
)

// hidden are audits of rewards that the service does not see, as whoever gathers them attacks them:
// package live/serve/helper's tests have all that two servers see, these the numbers.
func hidden() (all []audit.Outside) {
	for _, x := range []struct {
		name, attack, model string
		adversaries         []string
		faults              []fault
		play                func(f fault, adversary int) (func(in bool) (float64, error), error)
		cost                int
	}{
		{"two servers, live", "likelihood ratio", "one slot, from inside",
			[]string{"the leader", "the helper", "a helper that moves the sum to the field's edge"},
			[]fault{sound, half, again, clipped}, twoServers, 4},
		{"local reports, live", "likelihood ratio", "one report", []string{"everybody"},
			[]fault{sound, half, twice}, localReports, 1},
	} {
		for _, f := range x.faults {
			all = append(all, audit.Outside{Name: x.name + string(f), Twin: f != sound, Claim: stated.Loss(),
				Attack: x.attack, Model: x.model, Adversaries: x.adversaries, Cost: x.cost,
				Worlds: func(adversary int) func() func(bool, *noise.Fast, []float64) error {
					return func() func(bool, *noise.Fast, []float64) error {
						var game func(in bool) (float64, error)
						return func(in bool, _ *noise.Fast, scores []float64) (err error) {
							if game == nil {
								if game, err = x.play(f, adversary); err != nil {
									return err
								}
							}
							scores[0], err = game(in)
							return err
						}
					}
				}})
		}
	}
	return all
}

// ratio orders sums by their likelihood ratio, of a reward of 1 against 0, in rewards. It saturates:
// what is beyond either is one score.
func ratio(steps float64) float64 {
	return math.Round((math.Abs(steps)-math.Abs(steps-one))/one*16) / 16
}

// whole is the noise of stated, or of its twin that has half.
func whole(f fault) (release.Noise, error) {
	n, err := release.NoiseOf(stated)
	if f == half {
		n.Den *= 2
	}
	return n, err
}

// A meeting is what two servers have of a slot of two visitors in each world, before their noise.
type meeting struct {
	task      dap.Task
	own, kept [2]dap.Aggregate
}

func newMeeting() (m meeting, err error) {
	m.task = dap.Task{Grid: 1}
	verify := dap.VerifyKey{1}
	leader, err := dap.DeriveKey(make([]byte, dap.SecretSize), 1)
	if err != nil {
		return m, err
	}
	helper, err := dap.DeriveKey(make([]byte, dap.SecretSize), 2)
	if err != nil {
		return m, err
	}
	for in := range m.own {
		var reports []dap.Report
		for i, value := range []int{0, in} {
			r, err := dap.NewReport(m.task, leader.Config(), helper.Config(), 0, dap.Ticket{Number: uint64(i)},
				uint64(value), rand.Reader)
			if err != nil {
				return m, err
			}
			reports = append(reports, r)
		}
		job, err := dap.NewLeaderJob(m.task, leader, verify, dap.Batch{End: 2}, reports)
		if err != nil {
			return m, err
		}
		asked, err := dap.ParseJob(m.task, job.Request())
		if err != nil {
			return m, err
		}
		answer, kept, err := asked.Help(helper, verify, func(dap.Metadata) error { return nil })
		if err != nil {
			return m, err
		}
		own, _, err := job.Finish(answer)
		if err != nil {
			return m, err
		}
		if m.own[in], m.kept[in] = own, kept; own.Count != 2 || kept.Count != 2 {
			return m, fmt.Errorf("%d and %d reports passed, must be 2", own.Count, kept.Count)
		}
	}
	return m, nil
}

// edge is the helper's share that puts the sum half a reward below the end of the field if both
// rewards are 0.
func (m meeting) edge(world int) ([]byte, error) {
	const part, order = 1 << 60, 1<<64 - 1<<32 + 1
	raw, err := m.kept[world].Share(m.task, order/2-one/2-7*part)
	if err != nil {
		return nil, err
	}
	s, err := prio.ParseShare(raw)
	if err != nil {
		return nil, err
	}
	for range 7 {
		by, err := prio.Noise(part)
		if err != nil {
			return nil, err
		}
		s = s.Plus(by)
	}
	return s.Bytes()
}

// askedAgain is how often a leader asks for one share.
const askedAgain = 16

// twoServers are a leader and a helper, against either.
func twoServers(f fault, adversary int) (func(in bool) (float64, error), error) {
	m, err := newMeeting()
	if err != nil {
		return nil, err
	}
	helpers, err := whole(f)
	if err != nil {
		return nil, err
	}
	released, err := leader(f)
	if err != nil {
		return nil, err
	}
	meet := func(world int) (sum, z int64, err error) {
		if z, err = helpers.Draw(); err != nil {
			return 0, 0, err
		}
		share, err := m.kept[world].Share(m.task, z)
		if adversary == 2 && err == nil {
			share, err = m.edge(world)
		}
		if err == nil {
			sum, err = dap.Meet(m.task, m.own[world], share, 0)
		}
		return sum, z, err
	}
	return func(in bool) (float64, error) {
		world := 0
		if in {
			world = 1
		}
		sum, z, err := meet(world)
		if err != nil {
			return 0, err
		}
		switch adversary {
		case 0:
			total := sum
			for range askedAgain - 1 {
				if f == again {
					if sum, _, err = meet(world); err != nil {
						return 0, err
					}
				}
				total += sum
			}
			return ratio(float64(total) / askedAgain), nil
		case 1:
			x, err := released(sum)
			return ratio(float64(x - z)), err
		}
		x, err := released(sum)
		if x < 0 { // it is beyond the edge
			return 1, err
		}
		return -1, err
	}, nil
}

// leader is what the leader releases of a gathered sum, with its own noise, in steps.
func leader(f fault) (func(sum int64) (int64, error), error) {
	n, err := whole(f)
	if err != nil {
		return nil, err
	}
	if f == half || f == clipped {
		return func(sum int64) (int64, error) {
			if f == clipped {
				sum = min(max(sum, -2*n.Reach()), 2*one+2*n.Reach())
			}
			z, err := n.Draw()
			return sum + z, err
		}, nil
	}
	ledger := privacy.NewLedger()
	cur, err := release.RealGathered(release.Config{Arms: 1, Mechanism: stated, Ledger: ledger},
		release.Gathering{Trust: privacy.TrustTwoServer})
	return func(sum int64) (int64, error) {
		if err := cur.AddSteps(0, 2, 0); err != nil {
			return 0, err
		}
		if err := cur.AddNoisy(0, 2, sum); err != nil {
			return 0, err
		}
		r, err := cur.Release([]int{0})
		return int64(math.Round(r.Sum(0) * one)), err
	}, err
}

// localReports is one report of a reward, or two.
func localReports(f fault, _ int) (func(in bool) (float64, error), error) {
	n, err := whole(f)
	if err != nil {
		return nil, err
	}
	clip, err := release.NewClip(0, 1)
	if err != nil {
		return nil, err
	}
	return func(in bool) (float64, error) {
		reward, times := 0.0, 1
		if in {
			reward = 1
		}
		if f == twice {
			times = 2
		}
		score := 0.0
		for range times {
			x, err := release.LocalReport(n, clip, reward)
			if err != nil {
				return 0, err
			}
			score += ratio(float64(x))
		}
		return score, nil
	}, nil
}
