package experiment

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/problem"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// linearKind is KindLinear.
type linearKind struct{ vectors }

func (linearKind) name() string { return KindLinear }

func (k linearKind) keys(known catalog.Catalog) []keyed.Key[Spec] {
	return k.with(known, KindLinear, "policies that play a fixed set of actions in R^d", k.instances(),
		k.unitRange(), nil)
}

// A linearWorld is an instance for linear bandits.
type linearWorld struct {
	linear      bandit.LinearSource
	fixedLinear bandit.LinearInstance // if it is not redrawn
}

func (linearKind) instances() instanceForm { return linearInstances() }

var linearInstances = sync.OnceValue(newLinearInstances)

func newLinearInstances() instanceForm {
	const example = "{name: three, actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]}"
	return instanceForm{what: "actions", example: example, ways: []way{
		{example: "actions: [[1, 0], [0, 1]], theta: [0.5, 0.1]", ref: "a list of different actions, " +
			"at least two. `normalise: true` divides all of them by the largest norm and " +
			"multiplies θ* by it, which changes no mean", begin: beginLinear, keys: []keyed.Key[Instance]{
			actionsKey(), thetaGivenKey(), rewardNoiseKey(), normaliseKey(),
		}},
		{example: "sphere: {arms: 10, dimension: 3}", ref: "actions drawn uniformly on the unit " +
			"sphere, and θ* too (`theta: sphere`, the default) unless it is a list; `redraw: true` " +
			"draws them anew for each run", begin: beginLinear, keys: []keyed.Key[Instance]{
			sphereKey(), thetaKey(), rewardNoiseKey(),
			redrawKey("draw actions and theta anew for each run"),
		}},
		{example: "csv: rewards.csv", ref: "logged rewards: a CSV with columns `x1`, …, `xd` and " +
			"`reward`; others are ignored. Each distinct row of features is an action whose " +
			"rewards are drawn from those logged for it; their means need not be linear. " +
			"`normalise: true` divides features by the largest norm", begin: beginLinear,
			keys: []keyed.Key[Instance]{csvKey("logged rewards with the header x1,…,xd,reward; relative " +
				"to this file"), sha256Key(), normaliseKey()}},
		fromProgram(func(in *Instance) *bandit.LinearSource { return &in.LinearSource },
			func(d described) bandit.LinearSource { return d }),
	}}
}

func (k linearKind) worlds(p *Resolved) ([]environment, error) { return k.each(p, p.linearWorld) }

func (p *Resolved) linearWorld(in *Instance) (w environment, field string, err error) {
	source, field, err := in.linearSource(&p.Spec)
	if err != nil {
		return w, field, err
	}
	content, stream := p.key(source)
	fixed, err := source.Linear(stream)
	if err != nil {
		return w, field, err
	}
	w = environment{linearWorld: linearWorld{source, fixed}, arms: len(fixed.Actions), dim: fixed.Dim(),
		content: content}
	if a, b := fixed.Support(); a < -1 || b > 1 {
		w.clipped = p.leaves(in.Name)
	}
	if r := rank(fixed.Actions); r < w.dim {
		p.warn("instance %s: the actions span %d of %d dimensions: policies work on their span",
			in.Name, r, w.dim)
	}
	return w, "", nil
}

// linearSource makes the source of an instance of KindLinear. On error it says in which of the
// instance's fields.
func (in *Instance) linearSource(s *Spec) (src bandit.LinearSource, field string, err error) {
	l := in.Linear
	switch {
	case in.LinearSource != nil:
		return in.LinearSource, "", nil
	case in.CSV != "":
		var inst bandit.LinearInstance
		field, err := in.read(s, func(r io.Reader) (err error) {
			inst, err = bandit.ReadLinearCSV(r, l != nil && l.Normalise)
			return err
		})
		return bandit.FixedLinear(inst), field, err
	}
	n, err := parseNoise(l.Noise)
	if err != nil {
		return nil, "noise", err
	}
	if l.Sphere {
		if field, err := l.size("sphere.", 2); err != nil {
			return nil, field, err
		}
		if field, err := l.checkTheta(int(l.Dimension)); err != nil {
			return nil, field, err
		}
		src, err := bandit.NewSphereActions(int(l.Arms), int(l.Dimension), l.Theta, n, l.Redraw)
		return src, "sphere", err
	}
	actions, theta, field, err := l.actions(true)
	if err != nil {
		return nil, field, err
	}
	inst, err := bandit.NewLinearInstance(actions, theta, n)
	return bandit.FixedLinear(inst), "actions", err
}

func (linearKind) policy(p *Resolved, c *Cell, actions [][]float64) (linear.Policy, error) {
	return c.choice.entry.NewLinear(catalog.LinearSetting{Actions: actions,
		Horizon: int(p.Spec.Horizon), Budget: c.budget}, c.choice.params)
}

func (k linearKind) begin(p *Resolved, c *Cell, _ int) error {
	c.hash(p)
	pol, err := k.policy(p, c, c.world.fixedLinear.Actions)
	if err != nil {
		return err
	}
	// What a policy plays before its first release is public and does not depend on rewards.
	if b := pol.Next(privacy.ReleasedVector{}); b != nil && b.Rounds() > int(p.Spec.Horizon) {
		p.endless = append(p.endless, fmt.Sprintf("%s (%d rounds)", c.Label(), b.Rounds()))
	}
	return nil
}

func (k linearKind) play(ctx context.Context, p *Resolved, c *Cell, run int, room *sim.Result,
	to []float64) ([]float64, privacy.Loss, error) {
	s := &p.Spec
	key := noise.Key{Seed: s.Seed, Experiment: c.world.content, Run: run, Role: noise.RoleInstance}
	instance := c.world.fixedLinear
	if c.world.linear.Redrawn() {
		var err error
		if instance, err = c.world.linear.Linear(&key.Fast(1)[0]); err != nil {
			return nil, privacy.Loss{}, err
		}
	}
	pol, err := k.policy(p, c, instance.Actions)
	if err != nil {
		return nil, privacy.Loss{}, err
	}
	privately, _ := c.streams(key)
	key.Role = noise.RoleReward
	err = sim.RunLinear(ctx, sim.LinearConfig{
		Policy: pol, Instance: instance, Horizon: int(s.Horizon), Unclipped: s.Unclipped,
		Checkpoints: p.Checkpoints, Rewards: key.Fast(len(instance.Actions)), Noise: privately,
	}, room)
	return appendRegret(to, room), room.Loss, err
}

func (linearKind) problem(s *Spec, c *Cell) (bound.Problem, error) {
	if c.world.linear.Redrawn() {
		return bound.Problem{}, fmt.Errorf("actions are redrawn for each run: there is no one instance " +
			"to bound the regret of")
	}
	in := c.world.fixedLinear
	p := bound.Problem{Actions: in.Actions, Theta: in.Theta, Budget: c.budget, Signs: true}
	if in.Theta == nil {
		p.Unproved = "it needs means that are linear in the action, and those of logged rewards need not be"
	}
	if sd, ok := problem.GaussianSD(in.Arms[0]); ok {
		p.Signs, p.Sigma = false, sd
		if !s.Unclipped {
			p.Theta = nil
			p.Unproved = "it needs means that are linear in the action, and clipping bends them"
		}
	}
	return p, p.Check()
}
