package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// An IdentifyConfig is one run of a policy that looks for the best arm.
type IdentifyConfig struct {
	Policy   identify.Identifier
	Instance bandit.Instance
	// Cap is the number of plays at which the run is given up, at least one for each arm. A rule
	// may never stop: if two arms are best, none can.
	Cap       int
	Lo, Hi    float64 // as in Config
	Unclipped bool    // as in Config
	Trust     *release.Trust
	Rewards   []noise.Fast
	Noise     *noise.Fast
	Ledger    *privacy.Ledger
	Trace     *Trace
	Intervals *Intervals // as in Config; of Identify
	Contexts  *Contexts  // as in Config; of Identify
}

// An IdentifyResult is what a run leaves. Identify reuses the slice it is given.
type IdentifyResult struct {
	Answer int   // the arm that is said to be the best; −1 if the cap was reached first
	Tau    int   // plays, or what an identify.Reporter says of them; the cap if it was reached
	Plays  []int // of each arm
	// rounds of adaptivity: how many times the policy was asked what to play [Azize
	// 2024, Remark 5.24]
	Batches  int
	Releases int // how many times the curator let something out
	Loss     privacy.Loss
	// of a policy that is an identify.Claimant: why its answer is not proved for the noise of this
	// run; nil if it is
	Claim error
}

func (c *IdentifyConfig) check() error {
	arms := len(c.Instance.Arms)
	switch {
	case c.Policy == nil:
		return errors.New("sim: policy is missing")
	case arms < 2:
		return fmt.Errorf("sim: the instance has %d arms, must have at least 2", arms)
	case c.Cap < arms:
		return fmt.Errorf("sim: cap is %d, must be at least the number of arms, %d", c.Cap, arms)
	case len(c.Rewards) != arms:
		return fmt.Errorf("sim: %d reward streams for %d arms, must be one an arm", len(c.Rewards), arms)
	case c.Noise == nil:
		return errors.New("sim: noise stream is missing")
	case c.Instance.Drifts():
		return errDrift
	}
	return nil
}

// Identify plays until the policy stops, or the cap is reached: then there is no answer, which is
// not an error. It costs as much as its releases, and ends the policy (policy.End).
func Identify(ctx context.Context, cfg IdentifyConfig, out *IdentifyResult) error {
	if err := cfg.check(); err != nil {
		return err
	}
	defer policy.End(cfg.Policy)
	lo, hi := release.Range(cfg.Lo, cfg.Hi)
	if cfg.Ledger == nil {
		cfg.Ledger = privacy.NewLedger(privacy.Covering(identify.Output))
	}
	arms := len(cfg.Instance.Arms)
	cur, err := release.Simulated(release.Config{
		Arms: arms, Lo: lo, Hi: hi, Mechanism: cfg.Policy.Mechanism(), Unclipped: cfg.Unclipped,
		Trust: cfg.Trust, Ledger: cfg.Ledger,
	}, cfg.Noise)
	if err != nil {
		return err
	}
	watch, to, err := watched(cfg.Intervals, Config{Instance: cfg.Instance, Unclipped: cfg.Unclipped,
		Trust: cfg.Trust}, cfg.Policy, cur, lo, hi)
	if err != nil {
		return err
	}
	if err := cfg.Contexts.begin(cfg.Policy, arms, []int{cfg.Cap}, &Config{Instance: cfg.Instance, Trust: cfg.Trust,
		Intervals: cfg.Intervals}); err != nil {
		return err
	}
	var curveOut Result
	r := run{
		driver: play.Driver{Policy: cfg.Policy, Curator: cur},
		curve:  newCurve(cfg.Instance.Arms, 1, cfg.Cap, nil, cfg.Trace, &curveOut),
		feed:   newFeed(cfg.Instance, cfg.Rewards, to, lo, hi, cfg.Unclipped, cfg.Trust != nil),
		watch:  watch,
	}
	r.curve.last = cfg.Cap
	stopped, err := r.play(ctx)
	if err != nil {
		return err
	}
	if watch != nil {
		if err := watch.end(&r.feed, r.curve.plays); err != nil {
			return err
		}
	}
	*out = IdentifyResult{
		Answer: -1, Tau: r.curve.t, Plays: append(out.Plays[:0], r.curve.plays...),
		Batches: r.driver.Batches, Releases: r.driver.Releases, Loss: cur.Ledger().Total(),
	}
	return out.end(cfg.Policy, stopped)
}

// end fills in what the policy says at the end of its run.
func (out *IdentifyResult) end(p identify.Identifier, stopped bool) error {
	if c, ok := p.(identify.Claimant); ok {
		out.Claim = c.Claim()
	}
	if !stopped {
		return nil
	}
	if r, ok := p.(identify.Reporter); ok {
		out.Tau = r.Reported()
	}
	if out.Answer = p.Answer(); out.Answer < 0 || out.Answer >= len(out.Plays) {
		return fmt.Errorf("sim: the policy stopped after %d plays with the answer %d: %w",
			out.Tau, out.Answer, ErrStopped)
	}
	return nil
}
