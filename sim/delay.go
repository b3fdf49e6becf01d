package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/release"
)

// A Delay says how late rewards are. Time is counted in rounds.
type Delay struct {
	// Window is how many rounds a reward may take, at least 1: what has not come by then counts
	// Default. No release is made before the windows of its rewards have passed.
	Window  int
	Default float64
	// After, if set, draws how many rounds late the next reward is; without it all come in time.
	After func() int
	// Take says how a batch takes what was played while it waited; 0 is as the policy is admitted.
	Take play.Take
}

// RunDelayed plays one run with late rewards, by the code that plays live (play.Live): so only
// policies that play.Admit admits, and round by round. The policy goes on with its last batch while
// it waits, and what is played then is in the queues of its arms. When a reward comes within its
// window makes no difference to anything; a window of 1 without missing rewards is Run, with
// rewards that are drawn one by one.
func RunDelayed(ctx context.Context, cfg Config, d Delay, out *Result) error {
	if err := cfg.check(); err != nil {
		return err
	}
	switch {
	case cfg.Unclipped || cfg.Trust != nil || cfg.Ledger != nil:
		return errors.New("sim: late rewards are for clipped rewards, a server that is believed and a ledger " +
			"of their own")
	case d.Window < 1:
		return fmt.Errorf("sim: window is %d rounds, must be at least 1", d.Window)
	}
	live, err := play.New(play.Config{
		Policy: cfg.Policy, Arms: len(cfg.Instance.Arms), Lo: cfg.Lo, Hi: cfg.Hi, Default: d.Default,
		Window: int64(d.Window), Take: d.Take, Epoch: play.Epoch{1},
		Curator: func(c release.Config) (release.Curator, error) { return release.Simulated(c, cfg.Noise) },
	})
	if err != nil {
		return err
	}
	c := newCurve(cfg.Instance.Arms, cfg.Horizon, cfg.Checkpoints, cfg.Trace, out)
	one := policy.Batch{Plays: make([]policy.Play, 1)}
	releases := 0
	for now := range cfg.Horizon {
		if now&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for {
			batch, err := live.Close(int64(now))
			if err != nil {
				return err
			}
			if batch == nil {
				break
			}
			if len(batch.Taken) > 0 {
				releases++
			}
			if err := live.Commit(batch); err != nil {
				return err
			}
			if live.Stopped() {
				return fmt.Errorf("sim: round %d of %d: %w", now, cfg.Horizon, ErrStopped)
			}
		}
		arm := live.Arm()
		ticket, err := live.Decide(arm, int64(now))
		if err != nil {
			return err
		}
		reward := cfg.Instance.Arms[arm].Draw(&cfg.Rewards[arm])
		if d.After == nil || d.After() < d.Window {
			if _, err := live.Settle(ticket, reward, int64(now)); err != nil {
				return err
			}
		}
		one.Plays[0] = policy.Play{Arm: arm, Rounds: 1}
		c.batch(&one, 1)
	}
	out.Plays = append(out.Plays[:0], c.plays...)
	out.Releases, out.Loss = releases, live.Ledger().Total()
	return nil
}
