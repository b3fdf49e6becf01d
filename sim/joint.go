package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/release"
)

// RunJoint plays an A/B test with late rewards, a policy of joint batches (play.Joint), as the service
// does: the arm of each round is drawn with the policy's shares, by d.Coins, where RunDelayed takes
// turns. A batch is released when the windows of its rounds have passed. After each release, released is
// told how many rounds had been played, and all that was released of each arm, to be read only; the run is
// over when it returns false, or before a release beyond the horizon. Every reward comes in its window.
//
// A batch is drawn by counts: how many of its rounds an arm has, and the sum of their rewards. So it has
// the law of round by round, and a run takes as long as it has batches.
func RunJoint(ctx context.Context, cfg Config, d Delay,
	released func(rounds int, sums []interval.Sums) bool) error {
	if err := cfg.check(); err != nil {
		return err
	}
	p, ok := cfg.Policy.(play.Joint)
	switch {
	case !ok:
		return fmt.Errorf("sim: policy %T has no joint batches", cfg.Policy)
	case d.Coins == nil || d.Window < 1 || d.After != nil || d.Floor != 0 || d.Tick != 0:
		return errors.New("sim: joint batches are for coins, a window of 1 at least, rewards that come in it, and " +
			"no floor and ticks")
	case cfg.Unclipped || cfg.Trust != nil || cfg.Ledger != nil || cfg.Intervals != nil || cfg.Instance.Drifts():
		return errDelay
	}
	_, tally, err := d.live(p, len(cfg.Instance.Arms), cfg.Lo, cfg.Hi, cfg.Noise)
	if err != nil {
		return err
	}
	lo, hi := release.Range(cfg.Lo, cfg.Hi)
	f := newFeed(cfg.Instance, cfg.Rewards, tally, lo, hi, false, false)
	shares := p.Shares(0)
	var slots []int
	for n := 0; ; {
		end := p.JointEnd(n)
		at := end - 1 + d.Window
		if at > cfg.Horizon {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		slots = slots[:0]
		cells := max(1, d.Cells.Count)
		first := 0 // that is released for itself: the last has what is left where they are too few
		if end-n < cells*d.Cells.Least {
			first = cells - 1
		}
		left, share := end-n, 1.0
		for a, q := range shares {
			k := left
			if a < len(shares)-1 {
				k = d.Coins.Binomial(left, min(1, q/share))
			}
			left, share = left-k, share-q
			for c := first; c < cells; c++ {
				part := k / (cells - c)
				if k -= part; part > 0 { // nothing empty is released
					slots = append(slots, a*cells+c)
					if err := f.draw(a, part, a*cells+c); err != nil {
						return err
					}
				}
			}
		}
		if _, err := tally.Release(slots); err != nil {
			return err
		}
		if n = end; !released(at, tally.sums) {
			return nil
		}
	}
}
