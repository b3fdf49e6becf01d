package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A Cell is one policy at one budget on one instance. Policy may be a stopping rule.
type Cell struct {
	Instance, Policy, Budget string // labels; Budget as in epsilon=1, rho=0.1, none
	// Hash is the SHA-256 of all that decides the cell's numbers, in hex. Labels, the number of
	// runs and the experiment's name do not.
	Hash string

	world  world
	choice choice
	budget privacy.Budget
	trial  trial // of KindStopping
}

// Label is instance / policy / budget.
func (c *Cell) Label() string { return c.Instance + " / " + c.Policy + " / " + c.Budget }

// runOfAll is the run in the key of an instance that all runs share.
const runOfAll = -1

func (c *Cell) hash(p *Plan) {
	s := &p.Spec
	h := sha256.New()
	// One line a field, quoted: different contents are different texts.
	fmt.Fprintf(h, "sotto cell %d\nworld %q\npolicy %q\nbudget %q\nhorizon %d\nunclipped "+
		"%t\nseed %d\ncheckpoints %v\n",
		FormatVersion, c.world.public, c.choice.content, c.Budget, s.Horizon, s.Unclipped, s.Seed,
		p.Checkpoints)
	if t := c.choice.trust; t.Protocol != "" {
		fmt.Fprintf(h, "protocol %q\ncorrupt %s\n", t.Protocol, number(t.Corrupt))
	}
	c.Hash = hex.EncodeToString(h.Sum(nil))
}

// policy builds the cell's policy afresh: it holds a run's state.
func (c *Cell) policy(horizon int, unclipped bool, arms int, coins *noise.Fast) (policy.Policy, error) {
	s := catalog.Setting{Arms: arms, Horizon: horizon, Budget: c.budget, Unclipped: unclipped,
		Coins: sim.NewCoins(coins)}
	return c.choice.entry.New(s, c.choice.params)
}

// play plays one run. Its world is the same for every cell of the instance, its noise
// is the cell's own.
func (p *Plan) play(ctx context.Context, c *Cell, run int, out *sim.Result) error {
	s := &p.Spec
	if linearKind(s.Kind) {
		return p.playLinear(ctx, c, run, out)
	}
	key := noise.Key{Seed: s.Seed, Experiment: c.world.content, Run: run}
	instance := c.world.fixed
	if c.world.source.Redrawn() {
		key.Role = noise.RoleInstance
		stream := key.Fast(1)
		var err error
		if instance, err = c.world.source.Instance(&stream[0]); err != nil {
			return fmt.Errorf("%s, run %d: %w", c.Label(), run, err)
		}
	}
	arms := len(instance.Arms)
	key.Role = noise.RoleReward
	rewards := key.Fast(arms)
	key.Role, key.Cell = noise.RoleNoise, c.choice.content+" at "+c.Budget
	streams := key.Fast(1)
	key.Role = noise.RolePolicy
	coins := key.Fast(1)
	pol, err := c.policy(int(s.Horizon), s.Unclipped, arms, &coins[0])
	if err != nil {
		return fmt.Errorf("%s, run %d: %w", c.Label(), run, err)
	}
	lo, hi := s.span()
	err = sim.Run(ctx, sim.Config{
		Policy: pol, Instance: instance, Horizon: int(s.Horizon), Lo: lo, Hi: hi, Unclipped: s.Unclipped,
		Checkpoints: p.Checkpoints, Rewards: rewards, Noise: &streams[0],
		Trust: c.trustIn(ctx, s, c.misread(s)),
	}, out)
	if err != nil {
		return fmt.Errorf("%s, run %d: %w", c.Label(), run, err)
	}
	return nil
}

// blockSize is the number of runs in a unit. It is small enough that a unit of a policy that
// decides every round takes seconds, so that the work spreads evenly and little is lost on a stop;
// but every unit is a file, so it grows with the runs beyond 128 units a cell, as long as a unit
// stays below 16 MB.
func blockSize(horizon, runs, checkpoints int) int {
	b := 1
	if n := (1 << 25) / horizon; n > 1 {
		b = min(64, 1<<(bits.Len(uint(n))-1))
	}
	for b*128 < runs {
		b *= 2
	}
	for b > 1 && b*checkpoints > 1<<20 {
		b /= 2
	}
	return b
}

// unitName is the file of a block of a cell.
func unitName(hash string, block int) string { return fmt.Sprintf("%s-%d.unit", hash, block) }
