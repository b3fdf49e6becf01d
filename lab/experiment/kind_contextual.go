package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// contextualKind is KindContextual.
type contextualKind struct{ vectors }

func (contextualKind) name() string { return KindContextual }

func (k contextualKind) keys(known catalog.Catalog) []keyed.Key[Spec] {
	return k.with(known, KindContextual, "policies that play a set of actions in R^d that changes in each "+
		"round", k.instances(), k.unitRange(), []keyed.Key[Spec]{windowKey()})
}

// A contextualWorld is an instance for contextual bandits.
type contextualWorld struct {
	contextual      bandit.ContextualSource
	fixedContextual bandit.ContextualInstance // if it is not redrawn
	clicks          *Clicks                   // instead of these
	rows            []float64                 // all vectors, where they are few, one after the other
}

func (contextualKind) instances() instanceForm { return contextualInstances() }

var contextualInstances = sync.OnceValue(newContextualInstances)

func newContextualInstances() instanceForm {
	gaussian := func(in *Instance) bool { return in.Linear.Contexts == "gaussian" }
	redraw := func() keyed.Key[Instance] { return redrawKey("draw theta anew for each run") }
	const example = "{name: sphere, contexts: sphere, arms: 10, dimension: 3}"
	return instanceForm{what: "actions", example: example, ways: []way{
		{example: "contexts: gaussian, arms: 10, dimension: 3", ref: "in each round so many new " +
			"actions from N(m, v·I), with `mean: m`, a number for all coordinates or one each " +
			"(1/√d), and `variance: v` (0.1). `normalise: true` moves each vector that is longer " +
			"than 1 to the sphere, before its mean is taken. `contexts: sphere`: uniform on the " +
			"unit sphere", begin: beginLinear, keys: []keyed.Key[Instance]{
			contextsKey(),
			keyed.Always("arms", keyed.Whole(), func(in *Instance) *keyed.Count { return &in.Linear.Arms },
				"actions in each round, at least 2").Must(),
			keyed.Always("dimension", keyed.Whole(), func(in *Instance) *keyed.Count { return &in.Linear.Dimension }, "d").Must(),
			meanKey().When(gaussian), varianceKey().When(gaussian), thetaKey(), rewardNoiseKey(),
			normaliseKey().When(gaussian), redraw(),
		}},
		{example: "actions: [[1, 0], [0, 1]]", ref: "the same actions in every round; `normalise: " +
			"true` as for `kind: linear`", begin: beginLinear, keys: []keyed.Key[Instance]{
			actionsKey(), thetaKey(), rewardNoiseKey(), normaliseKey(),
			redraw().When(func(in *Instance) bool { return in.Linear.Redraw }),
		}},
		{example: "csv: rounds.csv", ref: "logged rounds: a CSV with columns `round`, `x1`, …, `xd` " +
			"and `reward` (others are ignored), and the reward of every action of the round. " +
			"Rounds are increasing whole numbers, the rows of a round are together, and rounds may " +
			"differ in how many actions they have. A run draws rounds from it, and regret is " +
			"against the best logged reward. `normalise: true` divides features by the largest " +
			"norm, if that is above 1", begin: beginLinear, keys: []keyed.Key[Instance]{
			csvKey("logged rounds with the header round,x1,…,xd,reward; relative to this file"),
			sha256Key(), normaliseKey(),
		}},
		clicksWay(),
		fromProgram(func(in *Instance) *bandit.ContextualSource { return &in.ContextualSource },
			func(d described) bandit.ContextualSource { return d }),
	}}
}

func (k contextualKind) worlds(p *Resolved) ([]environment, error) {
	return k.each(p, p.contextualWorld)
}

func (p *Resolved) contextualWorld(in *Instance) (w environment, field string, err error) {
	if in.Clicks != nil {
		return in.Clicks.environment(&p.Spec)
	}
	source, field, err := in.contextualSource(&p.Spec)
	if err != nil {
		return w, field, err
	}
	content, stream := p.key(source)
	fixed, err := source.Contextual(stream)
	if err != nil {
		return w, field, err
	}
	w = environment{contextualWorld: contextualWorld{contextual: source, fixedContextual: fixed}, arms: fixed.MaxActions(),
		dim: fixed.Dim(), content: content}
	if f, ok := fixed.(interface{ Rows() []float64 }); ok {
		w.rows = f.Rows()
	}
	if l := in.Linear; l.given() && l.Contexts == "gaussian" && !l.Normalise {
		if !p.Spec.Unclipped {
			return w, "contexts", errors.New("has vectors of norm above 1, on which sensitivity " +
				"rests, must say normalise: true, which moves them into the unit ball; " +
				"or unclipped: true, which voids the privacy guarantee")
		}
		p.warn("instance %s: contexts have norms above 1: no privacy guarantee", in.Name)
	}
	if n := parsedNoise(in.Linear); n != bandit.SignNoise() || !in.Linear.given() && !fixed.Bounded() {
		w.clipped = p.leaves(in.Name)
	}
	return w, "", nil
}

// contextualSource makes the source of an instance of KindContextual. On error it says in which of
// the instance's fields.
func (in *Instance) contextualSource(s *Spec) (src bandit.ContextualSource, field string, err error) {
	l := in.Linear
	switch {
	case in.ContextualSource != nil:
		return in.ContextualSource, "", nil
	case in.CSV != "":
		var log *bandit.ContextLog
		field, err := in.read(s, func(r io.Reader) (err error) {
			log, err = bandit.ReadContextualCSV(r, l != nil && l.Normalise)
			return err
		})
		return log, field, err
	}
	c := bandit.ContextConfig{Arms: int(l.Arms), Dim: int(l.Dimension), Theta: l.Theta,
		Normalise: l.Normalise, Redrawn: l.Redraw}
	if c.Noise, err = parseNoise(l.Noise); err != nil {
		return nil, "noise", err
	}
	if l.Actions != nil {
		actions, theta, field, err := l.actions(false)
		if err != nil {
			return nil, field, err
		}
		c.Theta = theta
		src, err := bandit.NewFixedContexts(actions, c)
		return src, "actions", err
	}
	if field, err := l.size("", 1); err != nil {
		return nil, field, err
	}
	if field, err := l.checkTheta(c.Dim); err != nil {
		return nil, field, err
	}
	switch l.Contexts {
	case "sphere":
		if l.Mean != nil || l.Variance != 0 || l.Normalise {
			return nil, "contexts", errors.New("is sphere: mean, variance and normalise are for " +
				"gaussian contexts")
		}
		src, err := bandit.NewSphereContexts(c)
		return src, "contexts", err
	case "gaussian":
		mean := l.Mean
		switch {
		case mean == nil:
		case len(mean) == 1:
			mean = slices.Repeat(mean, c.Dim)
		case len(mean) != c.Dim:
			return nil, "mean", fmt.Errorf("has %d numbers, must be one for all coordinates, or %d, "+
				"one each", len(mean), c.Dim)
		}
		for _, x := range mean {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, "mean", fmt.Errorf("is %v, must be finite numbers", x)
			}
		}
		if v := l.variance(); !(v > 0) || math.IsInf(v, 0) {
			return nil, "variance", fmt.Errorf("is %v, must be a finite number above 0", v)
		}
		src, err := bandit.NewGaussianContexts(c, mean, l.variance())
		return src, "contexts", err
	}
	return nil, "contexts", fmt.Errorf("is %q%s, must be gaussian or sphere", keyed.Clip(l.Contexts),
		catalog.Hint(keyed.Clip(l.Contexts), []string{"gaussian", "sphere"}))
}

// policy builds the cell's policy afresh: it holds a run's state. Coins are for policies that
// randomise their choices.
func (contextualKind) policy(p *Resolved, c *Cell, coins *noise.Fast) (linear.Contextual, error) {
	params := c.choice.params
	if c.world.clicks != nil {
		params = c.world.clicks.params(&c.choice)
	}
	return c.choice.entry.NewContextual(catalog.ContextualSetting{Dim: c.world.dim, Arms: c.world.arms,
		Horizon: int(p.Spec.Horizon), Budget: c.budget, Coins: sim.NewCoins(coins), Rows: c.world.rows}, params)
}

func (k contextualKind) begin(p *Resolved, c *Cell, _ int) error {
	c.hash(p)
	var err error
	if c.world.clicks != nil {
		_, err = k.late(p, c, &noise.Fast{})
	} else {
		_, err = k.policy(p, c, &noise.Fast{})
	}
	return err
}

func (k contextualKind) play(ctx context.Context, p *Resolved, c *Cell, run int, room *sim.Result,
	to []float64) ([]float64, privacy.Loss, error) {
	if c.world.clicks != nil {
		err := k.playVisits(ctx, p, c, run, room)
		return appendRegret(to, room), room.Loss, err
	}
	s := &p.Spec
	key := noise.Key{Seed: s.Seed, Experiment: c.world.content, Run: run, Role: noise.RoleInstance}
	instance := c.world.fixedContextual
	if c.world.contextual.Redrawn() {
		var err error
		if instance, err = c.world.contextual.Contextual(&key.Fast(1)[0]); err != nil {
			return nil, privacy.Loss{}, err
		}
	}
	privately, coins := c.streams(key)
	pol, err := k.policy(p, c, coins)
	if err != nil {
		return nil, privacy.Loss{}, err
	}
	key.Role = noise.RoleReward
	world := key.Fast(2) // contexts, and rewards
	err = sim.RunContextual(ctx, sim.ContextualConfig{
		Policy: pol, Instance: instance, Horizon: int(s.Horizon), Unclipped: s.Unclipped,
		Checkpoints: p.Checkpoints, Contexts: &world[0], Rewards: &world[1], Noise: privately,
	}, room)
	return appendRegret(to, room), room.Loss, err
}

func (contextualKind) problem(_ *Spec, c *Cell) (bound.Problem, error) {
	p := bound.Problem{Context: &bound.Context{Dim: c.world.dim}, Budget: c.budget}
	switch c.world.contextual.(type) {
	case bandit.GaussianContexts, bandit.SphereContexts, bandit.FixedContexts:
		if !c.world.fixedContextual.Bounded() {
			p.Unproved = "it needs ‖a‖ ≤ 1 and rewards in [−1,1]: here they leave it, or are " +
				"clipped, which bends their means"
		}
	default:
		p.Unproved = "it needs means that are linear in the context, and these need not be"
	}
	return p, nil
}

// protects: some policies protect contexts, and some do not.
func (contextualKind) protects() bool { return true }
