package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A LinearConfig is one run of a linear bandit with a fixed set of actions. Rewards are declared
// to be in [−1,1].
type LinearConfig struct {
	Policy   linear.Policy
	Instance bandit.LinearInstance
	Horizon  int // T, rounds, at least 1
	// Unclipped feeds rewards as they are. The run has no privacy guarantee then, and its ledger
	// says ∞. Without it, rewards of a law that leaves [−1,1] are drawn one by one and clipped;
	// regret is still that of the means before clipping.
	Unclipped   bool
	Checkpoints []int // as in Config
	// Rewards has one stream an action: as long as an action's rewards are drawn in the same
	// portions they are the same, whatever was played in between.
	Rewards []noise.Fast
	Noise   *noise.Fast     // privacy noise
	Ledger  *privacy.Ledger // as in Config
	Trace   *Trace          // as in Config; its arms are actions
}

func (c *LinearConfig) check() error {
	switch {
	case c.Policy == nil:
		return errors.New("sim: policy is missing")
	case c.Horizon < 1:
		return fmt.Errorf("sim: horizon is %d, must be at least 1", c.Horizon)
	case c.Noise == nil:
		return errors.New("sim: noise stream is missing")
	}
	if err := c.Instance.Validate(); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	if n := len(c.Instance.Actions); len(c.Rewards) != n {
		return fmt.Errorf("sim: %d reward streams for %d actions, must be one an action", len(c.Rewards), n)
	}
	return checkCheckpoints(c.Checkpoints, c.Horizon)
}

// RunLinear plays one run of a linear bandit to its horizon. It costs as much as its releases, and
// as its rewards only where they must be clipped.
func RunLinear(ctx context.Context, cfg LinearConfig, out *Result) error {
	if err := cfg.check(); err != nil {
		return err
	}
	cur, err := release.SimulatedActions(cfg.Instance.Actions, cfg.Unclipped, cfg.Ledger, cfg.Noise)
	if err != nil {
		return err
	}
	r := linearRun{
		driver: play.VectorDriver{Policy: cfg.Policy, Curator: cur},
		curve:  newCurve(cfg.Instance.Arms, 1, cfg.Horizon, cfg.Checkpoints, cfg.Trace, out),
		feed:   newFeed(bandit.Instance{Arms: cfg.Instance.Arms}, cfg.Rewards, cur, -1, 1, cfg.Unclipped, false),
	}
	if err := r.play(ctx); err != nil {
		return err
	}
	out.Plays = append(out.Plays[:0], r.curve.plays...)
	out.Releases = r.driver.Releases
	out.Loss = cur.Ledger().Total()
	return nil
}

type linearRun struct {
	driver play.VectorDriver
	curve  curve
	feed   feed
}

func (r *linearRun) play(ctx context.Context) error {
	for looks := 0; ; looks++ {
		if looks&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		b, err := r.driver.Next()
		if err == nil {
			err = r.canPlay(b)
		}
		if err != nil {
			return fmt.Errorf("sim: round %d of %d: %w: %w", r.curve.t, r.curve.horizon, ErrStopped, err)
		}
		if fits, err := r.curve.take(b); !fits || err != nil {
			return err
		}
		for i := range b.Plays {
			r.feed.waiting[b.Plays[i].Arm] += b.Plays[i].Rounds
		}
		if !r.driver.Releasing() {
			continue
		}
		// All actions share the slot, so all that was played and not yet drawn is in it.
		for a, n := range r.feed.waiting {
			if n > 0 {
				if err := r.feed.fill(a); err != nil {
					return err
				}
			}
		}
		if err := r.driver.Close(); err != nil {
			return err
		}
	}
}

// canPlay refuses batches that mean nothing here.
func (r *linearRun) canPlay(b *policy.Batch) error {
	if b == nil {
		return errors.New("it wants nothing more")
	}
	for i := range b.Plays {
		if a := b.Plays[i].Arm; uint(a) >= uint(len(r.feed.waiting)) {
			return fmt.Errorf("action %d, must be from 0 to %d", a, len(r.feed.waiting)-1)
		}
	}
	return nil
}
