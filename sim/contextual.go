package sim

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A ContextualConfig is one run of a linear contextual bandit. Rewards are declared to be in [−1,1].
type ContextualConfig struct {
	Policy   linear.Contextual
	Instance bandit.ContextualInstance
	Horizon  int // T, rounds, at least 1
	// Unclipped feeds rewards and vectors as they are. The run has no privacy guarantee then, and
	// its ledger says ∞. Without it rewards are clipped, and a vector of norm above 1 is an error.
	Unclipped   bool
	Checkpoints []int // as in Config
	// Contexts draws the decision sets and Rewards the rewards' noise. What is drawn does not
	// depend on what is played: every policy meets the same contexts and the same noise.
	Contexts, Rewards *noise.Fast
	Noise             *noise.Fast     // privacy noise
	Ledger            *privacy.Ledger // as in Config
}

func (c *ContextualConfig) check() error {
	switch {
	case c.Policy == nil:
		return errors.New("sim: policy is missing")
	case c.Instance == nil:
		return errors.New("sim: instance is missing")
	case c.Horizon < 1:
		return fmt.Errorf("sim: horizon is %d, must be at least 1", c.Horizon)
	case c.Contexts == nil:
		return errors.New("sim: contexts stream is missing")
	case c.Rewards == nil:
		return errors.New("sim: rewards stream is missing")
	case c.Noise == nil:
		return errors.New("sim: noise stream is missing")
	}
	return checkCheckpoints(c.Checkpoints, c.Horizon)
}

// RunContextual plays one run of a linear contextual bandit to its horizon. Regret is the sum over
// rounds of the best mean of the round's decision set less that of the action chosen; PlaysBest
// counts the rounds in which a best action was chosen. A round allocates nothing.
func RunContextual(ctx context.Context, cfg ContextualConfig, out *Result) error {
	if err := cfg.check(); err != nil {
		return err
	}
	cur, err := cfg.curator(cfg.Ledger)
	if err != nil {
		return err
	}
	out.room(len(cfg.Checkpoints))
	out.Plays, out.Releases = out.Plays[:0], 0
	if err := playContextual(ctx, cfg, cur, out); err != nil {
		return err
	}
	out.Loss = cur.Ledger().Total()
	return nil
}

// curator is of the policy's mechanism as it is now.
func (c *ContextualConfig) curator(ledger *privacy.Ledger) (release.FeatureCurator, error) {
	return release.SimulatedFeatures(release.FeatureConfig{
		Dim: c.Instance.Dim(), Slots: c.Policy.Slots(), Mechanism: c.Policy.Mechanism(),
		Rows: linear.RowsOf(c.Policy), Unclipped: c.Unclipped, Ledger: ledger,
	}, c.Noise)
}

func playContextual(ctx context.Context, cfg ContextualConfig, cur release.FeatureCurator, out *Result) error {
	p, in := cfg.Policy, cfg.Instance
	kind := p.Mechanism().Kind()
	instruments, _ := p.(linear.Instrumental)
	z := make([]float64, in.Dim())
	d, most := in.Dim(), p.Slots()
	look := !cfg.Unclipped && !in.Bounded()
	plays := append(out.Plays[:0], make([]int, in.MaxActions())...)
	actions, means := make([]float64, 0, in.MaxActions()*d), make([]float64, 0, in.MaxActions())
	var regret, hits float64
	next := 0
	for t := 1; t <= cfg.Horizon; t++ {
		if t&0xfff == 1 && ctx.Err() != nil {
			return ctx.Err()
		}
		// What is due after the last round is never released: nothing would read it.
		for n, slot := 0, p.Due(); slot >= 0; n, slot = n+1, p.Due() {
			if n == most {
				return fmt.Errorf("sim: round %d of %d: more than %d releases are due: %w", t,
					cfg.Horizon, most, ErrStopped)
			}
			released, err := cur.Release(slot)
			if err != nil {
				return fmt.Errorf("sim: round %d of %d: %w", t, cfg.Horizon, err)
			}
			out.Releases++
			p.Learn(released)
			if next := p.Mechanism().Kind(); next != kind {
				kind = next
				if cur, err = cfg.curator(cur.Ledger()); err != nil {
					return err
				}
			}
		}
		actions, means = in.Round(actions, means, cfg.Contexts)
		if len(means) == 0 || len(actions) != len(means)*d {
			return fmt.Errorf("sim: round %d of %d: a decision set of %d actions with %d "+
				"features in all, must have at least one action and %d features each",
				t, cfg.Horizon, len(means), len(actions), d)
		}
		if look {
			if err := checkNorms(actions, d); err != nil {
				return fmt.Errorf("sim: round %d of %d: %w: normalise the contexts, or run unclipped and "+
					"without a guarantee", t, cfg.Horizon, err)
			}
		}
		c := p.Choose(actions)
		if uint(c.Action) >= uint(len(means)) {
			return fmt.Errorf("sim: round %d of %d: action %d of %d was chosen: %w", t, cfg.Horizon,
				c.Action, len(means), ErrStopped)
		}
		mean := means[c.Action]
		top := means[0]
		for _, m := range means[1:] {
			top = max(top, m)
		}
		if gap := top - mean; gap > 0 {
			regret += gap
		} else {
			hits++
		}
		if c.Action >= len(plays) {
			plays = append(plays, make([]int, c.Action+1-len(plays))...)
		}
		plays[c.Action]++
		a, reward := actions[c.Action*d:c.Action*d+d], in.Reward(mean, cfg.Rewards)
		if instruments != nil {
			var p, w float64
			p, w = instruments.Instrument(z, a)
			a, reward = z, (reward-p)/w
		}
		if err := cur.Add(c.Slot, a, reward); err != nil {
			return fmt.Errorf("sim: round %d of %d: %w", t, cfg.Horizon, err)
		}
		if next < len(cfg.Checkpoints) && cfg.Checkpoints[next] == t {
			out.Regret[next], out.PlaysBest[next] = regret, hits
			next++
		}
	}
	out.Plays = plays
	return nil
}

// checkNorms refuses a vector that the sensitivity of a release does not allow for. All of a
// decision set are looked at, so that an error does not depend on the policy.
func checkNorms(actions []float64, d int) error {
	for i := 0; i < len(actions); i += d {
		var q float64
		for _, x := range actions[i : i+d] {
			q += float64(x * x)
		}
		if !(q <= 1+2e-9) {
			return fmt.Errorf("action %d has norm %v, must be at most 1", i/d+1, math.Sqrt(q))
		}
	}
	return nil
}
