package sim

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
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
	// Floor is the probability, in [0,1), with which a round plays a uniform arm, whatever the policy
	// wants. Coins toss for it, and draw that arm.
	Floor float64
	Coins *noise.Fast
	// Tick, if above 0, has releases on public ticks, as package serve makes them: what is due is closed
	// every so many rounds, one batch at a time, and handed to the policy at the next tick.
	Tick int
	// Every, if above 1, has what is due looked for every so many rounds only, which is faster, and where a
	// release is late by less.
	Every int
	// Gathering, if it is on, has releases with the noise of rewards that nobody sees.
	Gathering release.Gathering
	// Released, if set, is told of each release: how many rounds had been played, and all that was
	// released of each arm so far, to be read only.
	Released func(rounds int, sums []interval.Sums)
	// Cells, if there are any, have releases by cell; decisions are spread evenly over them.
	Cells play.Cells
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
	if cfg.Unclipped || cfg.Trust != nil || cfg.Ledger != nil || cfg.Intervals != nil {
		return errDelay
	}
	live, tally, err := d.live(cfg.Policy, len(cfg.Instance.Arms), cfg.Lo, cfg.Hi, cfg.Noise)
	if err != nil {
		return err
	}
	r := delayedRun{Delay: d, live: live, tally: tally, laws: cfg.Instance.Arms, rewards: cfg.Rewards,
		curve:   newCurve(cfg.Instance.Arms, 1, cfg.Horizon, cfg.Checkpoints, cfg.Trace, out),
		changes: cfg.Instance.Changes}
	switch stopped, err := r.play(ctx); {
	case err != nil:
		return err
	case stopped:
		return fmt.Errorf("sim: round %d of %d: %w", r.curve.t, cfg.Horizon, ErrStopped)
	}
	out.Plays = r.curve.all(out.Plays)
	out.Releases, out.Loss = r.releases, live.Ledger().Total()
	return nil
}

// IdentifyDelayed is Identify with late rewards, as RunDelayed is Run. Tau counts all plays, also
// those whose rewards nobody waited for. What is due after the last round of the cap is released.
func IdentifyDelayed(ctx context.Context, cfg IdentifyConfig, d Delay, out *IdentifyResult) error {
	if err := cfg.check(); err != nil {
		return err
	}
	if cfg.Unclipped || cfg.Trust != nil || cfg.Ledger != nil || cfg.Intervals != nil {
		return errDelay
	}
	live, tally, err := d.live(cfg.Policy, len(cfg.Instance.Arms), cfg.Lo, cfg.Hi, cfg.Noise,
		privacy.Covering(identify.Output))
	if err != nil {
		return err
	}
	var curveOut Result
	r := delayedRun{Delay: d, live: live, tally: tally, laws: cfg.Instance.Arms, rewards: cfg.Rewards,
		curve: newCurve(cfg.Instance.Arms, 1, cfg.Cap, nil, cfg.Trace, &curveOut)}
	r.curve.last = cfg.Cap
	stopped, err := r.play(ctx)
	if err != nil {
		return err
	}
	*out = IdentifyResult{Answer: -1, Tau: r.curve.t, Plays: append(out.Plays[:0], r.curve.plays...),
		Batches: live.Batches(), Releases: r.releases, Loss: live.Ledger().Total()}
	return out.end(cfg.Policy, stopped)
}

var errDelay = errors.New("sim: late rewards are for clipped rewards, a server that is believed and " +
	"a ledger of their own, and there are no intervals")

// live is a policy's first batch, on a simulated curator, and a tally of what is released.
func (d Delay) live(p policy.Policy, arms int, lo, hi float64, s *noise.Fast,
	ledger ...privacy.Option) (*play.Live, *heard, error) {
	if d.Window < 1 {
		return nil, nil, fmt.Errorf("sim: window is %d rounds, must be at least 1", d.Window)
	}
	if !(d.Floor >= 0 && d.Floor < 1) {
		return nil, nil, fmt.Errorf("sim: floor is %v, must be at least 0 and below 1", d.Floor)
	}
	if d.Floor > 0 && d.Coins == nil {
		return nil, nil, errors.New("sim: coins are missing, and there is a floor")
	}
	tally := &heard{sums: make([]interval.Sums, arms), gathering: d.Gathering, stated: p.Mechanism(),
		cells: max(1, d.Cells.Count)}
	live, err := play.New(play.Config{
		Policy: p, Arms: arms, Lo: lo, Hi: hi, Default: d.Default, Window: int64(d.Window),
		Take: d.Take, Ledger: ledger, Epoch: play.Epoch{1}, Cells: d.Cells,
		Curator: func(c release.Config) (cur release.Curator, err error) {
			if d.Gathering.On() {
				cur, err = release.SimulatedGathered(c, d.Gathering, s)
			} else {
				cur, err = release.Simulated(c, s)
			}
			if err != nil {
				return nil, err
			}
			tally.StepCurator, _ = cur.(release.StepCurator)
			return tally, nil
		},
	})
	return live, tally, err
}

// A heard adds up all that its curator releases: of the batch that is out, and ahead of it.
type heard struct {
	release.StepCurator
	sums      []interval.Sums
	stated    privacy.Mechanism
	gathering release.Gathering
	cells     int // slots of an arm
}

// Release implements release.Curator.
func (h *heard) Release(slots []int) (privacy.Released, error) {
	out, err := h.StepCurator.Release(slots)
	for i := range out.Len() {
		s, m := &h.sums[slots[i]/h.cells], h.stated
		if h.gathering.On() {
			if m, err = release.GatheredMechanism(h.stated, h.gathering, out.N(i)); err != nil {
				return out, err
			}
		}
		s.N, s.Sum, s.Releases, s.Noise = s.N+out.N(i), s.Sum+out.Sum(i), s.Releases+1, m
	}
	return out, err
}

type delayedRun struct {
	Delay
	live     *play.Live
	tally    *heard
	laws     []bandit.Law
	rewards  []noise.Fast
	curve    curve
	releases int
	pending  *play.Commit    // that waits for its tick
	changes  []bandit.Change // of laws, that are to come
}

// play plays to the horizon, or until the policy stops.
func (r *delayedRun) play(ctx context.Context) (stopped bool, err error) {
	one := policy.Batch{Plays: make([]policy.Play, 1)}
	for now := range r.curve.horizon {
		if now&0xfff == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if len(r.changes) > 0 && now+1 == r.changes[0].From {
			r.laws = r.changes[0].Arms
			r.curve.turn(&one, 0, r.laws)
			r.changes = r.changes[1:]
		}
		if err := r.step(now); err != nil || r.live.Stopped() {
			return err == nil, err
		}
		arm := r.live.Arm()
		if r.Floor > 0 && r.Coins.Float64() < r.Floor {
			arm = int(r.Coins.Float64() * float64(len(r.laws)))
		}
		ticket, err := r.live.Decide(play.Decision{Arm: arm, Cell: r.cell(now)}, int64(now))
		if err != nil {
			return false, err
		}
		reward := r.laws[arm].Draw(&r.rewards[arm])
		if r.After == nil || r.After() < r.Window {
			if _, err := r.live.Settle(ticket, reward, int64(now)); err != nil {
				return false, err
			}
		}
		one.Plays[0] = policy.Play{Arm: arm, Rounds: 1}
		r.curve.batch(&one, 1)
	}
	if r.curve.last < r.curve.horizon { // nothing reads what would be released
		return false, nil
	}
	err = r.step(r.curve.horizon)
	return err == nil && r.live.Stopped(), err
}

// cell is that of a decision: by the golden ratio, as even as can be over any run of them and of an arm's.
func (d Delay) cell(now int) int {
	_, part := math.Modf(float64(now) * (math.Sqrt(5) - 1) / 2)
	return int(part * float64(d.Cells.Count))
}

// step hands over what was released, and closes what is due.
func (r *delayedRun) step(now int) error {
	if r.Tick > 0 {
		if now%r.Tick != 0 {
			return nil
		}
		return r.close(now)
	}
	for !r.live.Stopped() && (r.Every <= 1 || now%r.Every == 0) {
		if err := r.close(now); err != nil || r.pending == nil {
			return err
		}
	}
	return nil
}

// close hands over the release that waits, and closes the batch that is due then.
func (r *delayedRun) close(now int) (err error) {
	if c := r.pending; c != nil {
		if r.pending, err = nil, r.live.Commit(c); err != nil {
			return err
		}
	}
	if r.live.Stopped() {
		return nil
	}
	if r.pending, err = r.live.Close(int64(now)); r.pending == nil || err != nil {
		return err
	}
	if len(r.pending.Taken) > 0 {
		r.releases++
		if r.Released != nil {
			r.Released(now, r.tally.sums)
		}
	}
	return nil
}
