package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// regretKind is KindRegret.
type regretKind struct{ measured }

func (regretKind) name() string { return KindRegret }

func (regretKind) span() (lo, hi float64) { return 0, 1 }

// An armsWorld is an instance with K arms.
type armsWorld struct {
	sim.World
	best []int // of KindIdentify: its arms with the largest mean, of each context
	// the arms' vectors, nil if none are known; and the largest |⟨θ,x⟩| where means are logistic, 0 where they are
	// linear
	vectors  [][]float64
	steep    float64
	contexts []float64 // shares of those that people come with, nil if all are alike
}

func (regretKind) instances() instanceForm { return armInstances() }

func (k regretKind) keys(known catalog.Catalog) []keyed.Key[Spec] {
	return k.with(known, KindRegret, "policies that play arms", k.instances(),
		rangeKey(keyed.RangeDoc, "`[0, 1]`; the declared range of rewards. Rewards outside are clipped "+
			"before anything sees them"), append(specTrust(), delayKey(), intervalsKey()))
}

func (regretKind) check(s *Spec) error { return s.checkOnArms() }

func (k regretKind) worlds(p *Resolved) ([]environment, error) {
	out, err := p.eachInstance(func(in *Instance) (environment, string, error) {
		w, field, err := p.armWorld(in)
		if err != nil {
			return w, field, err
		}
		if field, err := in.checkKnown(&w); err != nil {
			return w, field, err
		}
		return w, "", k.settle(p, in, &w)
	})
	if p.Spec.Unclipped {
		p.warn("unclipped: rewards are not clipped to the declared range: no privacy guarantee")
	}
	return out, err
}

// armWorld makes the world of an instance of several arms. On error it says in which of the
// instance's fields.
func (p *Resolved) armWorld(in *Instance) (w environment, field string, err error) {
	s := &p.Spec
	source, field, err := in.resolve(p)
	if err != nil {
		return w, field, err
	}
	lo, hi := s.span()
	if w.World, err = sim.NewWorld(source, lo, hi, s.Seed); err != nil {
		return w, "", err
	}
	w.content, w.arms = w.Key.Experiment, len(w.Fixed.Arms)
	return w, "", nil
}

// settle tells of rewards that leave the range.
func (regretKind) settle(p *Resolved, in *Instance, w *environment) error {
	s := &p.Spec
	if int(s.Horizon) < w.arms {
		return s.fail("horizon", "is %d, below the number of arms of instance %s, %d: "+
			"each arm must be playable once", s.Horizon, in.Name, w.arms)
	}
	for _, c := range w.Fixed.Changes {
		if c.From > int(s.Horizon) {
			p.warn("instance %s: it changes from round %d on, which is beyond the horizon, %d, and never comes",
				in.Name, c.From, s.Horizon)
			break
		}
	}
	lo, hi := s.span()
	if a, b := w.Fixed.Support(); a >= lo && b <= hi {
		return nil
	}
	if s.Unclipped {
		p.warn("instance %s: rewards leave the declared range [%v, %v] and are not "+
			"clipped: no privacy guarantee", in.Name, lo, hi)
	} else {
		w.clipped = true
		p.warn("instance %s: rewards leave the declared range [%v, %v] and are clipped "+
			"to it; regret counts the means before clipping", in.Name, lo, hi)
	}
	if w.unranked = in.unranked(w.Fixed, s.Unclipped, lo, hi); w.unranked != "" {
		p.warn("instance %s: policies are not ranked: %s", in.Name, w.unranked)
	}
	return nil
}

// unranked says why the regret of policies does not rank them on an instance whose rewards leave
// the range: empty if it does.
func (in *Instance) unranked(fixed bandit.Instance, unclipped bool, lo, hi float64) string {
	if !unclipped {
		if fixed.ClippingTurns(lo, hi) {
			return fmt.Sprintf("clipping to [%v, %v] changes which arm is best, or may; they "+
				"look for the best of the clipped means, and regret is of the means before clipping", lo, hi)
		}
		return ""
	}
	var means []float64
	phases, _ := fixed.Phases()
	for _, p := range phases {
		means = append(means, p.Means()...)
	}
	if m := in.Means; m != nil { // these are one draw
		means = append(means, m.Lo, m.Hi)
	}
	if slices.Min(means) < lo || slices.Max(means) > hi {
		return fmt.Sprintf("means of arms leave [%v, %v], to which policies bring what they are "+
			"told: arms beyond it look the same, and the order in which they are listed decides", lo, hi)
	}
	return ""
}

// resolve makes the source of an instance. On error it says in which of the instance's fields.
func (in *Instance) resolve(p *Resolved) (src bandit.Source, field string, err error) {
	s := &p.Spec
	if in.Linear != nil || in.LinearSource != nil || in.ContextualSource != nil {
		return nil, "", fmt.Errorf("has actions in ℝ^d: they are for experiments of kind %s and %s",
			KindLinear, KindContextual)
	}
	ways := 0
	for _, given := range []bool{in.Bernoulli != nil, in.Laws != nil, in.Standard != "",
		in.Means != nil, in.CSV != "", in.Exec != nil, in.Source != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return nil, "", fmt.Errorf("says what its arms are in %d ways, must say exactly one of "+
			"bernoulli, laws, standard, means, csv, exec", ways)
	}
	if in.CSV == "" && in.Columns != (Columns{}) {
		return nil, "", errors.New("says what columns mean, but has no csv")
	}
	if in.Changes != nil && in.Bernoulli == nil && in.Laws == nil {
		return nil, "changes", errors.New("is given, but the arms are said neither by bernoulli nor by laws")
	}
	fixed := func(i bandit.Instance, err error) (bandit.Source, error) {
		if err != nil {
			return nil, err
		}
		return bandit.Fixed(i), nil
	}
	switch {
	case in.Bernoulli != nil:
		if err := twoArms(len(in.Bernoulli)); err != nil {
			return nil, "bernoulli", err
		}
		for i, m := range in.Bernoulli {
			if !(m >= 0 && m <= 1) {
				return nil, fmt.Sprintf("bernoulli[%d]", i), fmt.Errorf("is %v, must be a mean from 0 to 1", m)
			}
		}
		arms, err := bandit.BernoulliInstance(in.Bernoulli...)
		if err != nil {
			return nil, "bernoulli", err
		}
		return in.changing(arms)
	case in.Laws != nil:
		if err := twoArms(len(in.Laws)); err != nil {
			return nil, "laws", err
		}
		arms, i, err := parseLaws(in.Laws)
		if err != nil {
			return nil, fmt.Sprintf("laws[%d]", i), err
		}
		first, err := bandit.NewInstance(arms...)
		if err != nil {
			return nil, "laws", err
		}
		return in.changing(first)
	case in.Standard != "":
		c := slices.Index([]string{"C1", "C2", "C3", "C4"}, strings.ToUpper(in.Standard))
		if c < 0 {
			return nil, "standard", fmt.Errorf("is %q, must be C1, C2, C3 or C4", keyed.Clip(in.Standard))
		}
		if err := armCount(in.Arms); err != nil {
			return nil, "arms", err
		}
		src, err = fixed(bandit.Standard(c+1, int(in.Arms)))
		return src, "standard", err
	case in.Means != nil:
		return in.resolveMeans(s)
	case in.CSV != "":
		var inst bandit.Instance
		var log logged.Summary
		field, err := in.read(s, func(r io.Reader) (err error) {
			inst, log, err = bandit.ReadCSV(r, in.format(s))
			return err
		})
		if err != nil {
			return nil, field, err
		}
		if log.Skipped > 0 {
			p.warn("instance %s: %d of %d rows have no reward and are left out: this number is "+
				"not private, nor is whose reward is missing",
				in.Name, log.Skipped, log.Rows)
		}
		if log.Alike != [2]int{} {
			p.warn("instance %s: the arms of lines %d and %d differ in capitals alone, and are two arms: "+
				"if they are one, write it in one way", in.Name, log.Alike[0], log.Alike[1])
		}
		if log.Clipped {
			lo, hi := s.span()
			p.warn("instance %s: rewards leave the declared range [%v, %v] and are clipped to it "+
				"before a person's mean is taken", in.Name, lo, hi)
		}
		return bandit.Fixed(inst), field, nil
	case in.Exec != nil:
		src, err := fixed(s.paid(in.Exec))
		return src, "exec", err
	default:
		return in.Source, "source", nil
	}
}

// paid are the arms of a program that pays rewards: the empirical laws of what it has paid at first.
func (s *Spec) paid(args []string) (bandit.Instance, error) {
	rewards, err := s.Catalog.Rewards(catalog.Program{Args: args, Dir: s.dir})
	if err != nil {
		return bandit.Instance{}, err
	}
	laws := make([]bandit.Law, len(rewards))
	for a := range rewards {
		counts := map[float64]int{}
		for _, x := range rewards[a] {
			counts[x]++
		}
		if laws[a], err = bandit.NewEmpirical(counts); err != nil {
			return bandit.Instance{}, fmt.Errorf("arm %d: %w", a, err)
		}
	}
	return bandit.NewInstance(laws...)
}

// parseLaws reads laws; on error it says which.
func parseLaws(texts []string) (laws []bandit.Law, at int, err error) {
	laws = make([]bandit.Law, len(texts))
	for i, text := range texts {
		if laws[i], err = bandit.ParseLaw(text); err != nil {
			return nil, i, err
		}
	}
	return laws, 0, nil
}

// changing is the source of an instance with these laws at first.
func (in *Instance) changing(first bandit.Instance) (src bandit.Source, field string, err error) {
	last := keyed.Count(1)
	for i, c := range in.Changes {
		at := fmt.Sprintf("changes[%d]", i)
		if c.From <= last || c.From > keyed.MaxCount {
			return nil, at + ".from", fmt.Errorf("is %d, must be a round after %d", int(c.From), int(last))
		}
		last = c.From
		if len(c.Laws) != len(first.Arms) {
			return nil, at + ".laws", fmt.Errorf("says %d, must have one for each of the %d arms", len(c.Laws),
				len(first.Arms))
		}
		laws, j, err := parseLaws(c.Laws)
		if err != nil {
			return nil, fmt.Sprintf("%s.laws[%d]", at, j), err
		}
		first.Changes = append(first.Changes, bandit.Change{From: int(c.From), Arms: laws})
	}
	return bandit.Fixed(first), "", first.Validate()
}

// format is how the instance's CSV is read: the rows of a person are clipped to the declared range,
// if rewards are clipped at all.
func (in *Instance) format(s *Spec) logged.Format {
	c := in.Columns
	f := logged.Format{Arm: c.Arm, Reward: c.Reward, User: c.User, SkipMissing: c.SkipMissing,
		Dialect: c.Dialect}
	if f.Lo, f.Hi = s.span(); s.Unclipped {
		f.Lo, f.Hi = math.Inf(-1), math.Inf(1)
	}
	return f
}

func (in *Instance) resolveMeans(s *Spec) (bandit.Source, string, error) {
	m := in.Means
	if err := armCount(in.Arms); err != nil {
		return nil, "arms", err
	}
	family := bandit.BernoulliFamily()
	var err error
	lo, hi := s.span()
	switch m.Law {
	case "", "bernoulli":
		if m.SD != 0 {
			return nil, "sd", errors.New("is given, but a Bernoulli law has none")
		}
	case "gaussian", "clipped-gaussian":
		if !(m.SD > 0) || math.IsInf(m.SD, 0) {
			return nil, "sd", fmt.Errorf("is %v: law %s wants a standard deviation, finite and "+
				"above 0", m.SD, m.Law)
		}
		if m.Law == "gaussian" {
			family, err = bandit.GaussianFamily(m.SD)
		} else {
			family, err = bandit.ClippedGaussianFamily(m.SD, lo, hi)
		}
		if err != nil {
			return nil, "sd", err
		}
	default:
		known := []string{"bernoulli", "gaussian", "clipped-gaussian"}
		return nil, "law", fmt.Errorf("is %q%s, must be %s", keyed.Clip(m.Law),
			catalog.Hint(keyed.Clip(m.Law), known), strings.Join(known, ", "))
	}
	src, err := bandit.NewUniformMeans(int(in.Arms), m.Lo, m.Hi, family, m.Redraw)
	if err != nil {
		return nil, "means", err
	}
	return src, "", nil
}

func twoArms(n int) error {
	switch {
	case n == 1:
		return errors.New("has 1 arm, must be at least 2, or there is nothing to learn")
	case n < 1:
		return errors.New("has no arms, must be at least 2")
	}
	return nil
}

func (regretKind) begin(p *Resolved, c *Cell, _ int) error {
	if err := c.hash(p); err != nil {
		return err
	}
	// A policy that cannot be built is found now, not after an hour.
	pol, err := c.policy(int(p.Spec.Horizon), p.Spec.Unclipped, c.world.arms, &noise.Fast{})
	if err != nil {
		return err
	}
	if err := c.admitKnown(&p.Spec, pol); err != nil {
		return err
	}
	if err := c.admit(&p.Spec, pol); err != nil {
		return err
	}
	return c.tryTrust(pol.Mechanism())
}

// policy builds the cell's policy afresh: it holds a run's state.
func (c *Cell) policy(horizon int, unclipped bool, arms int, coins *noise.Fast) (policy.Policy, error) {
	s := catalog.Setting{Arms: arms, Horizon: horizon, Budget: c.budget, Unclipped: unclipped,
		Coins: sim.NewCoins(coins), Vectors: c.world.vectors, Logistic: c.world.steep > 0,
		Contexts: c.world.of()}
	return c.choice.entry.New(s, c.choice.params)
}

func (regretKind) play(ctx context.Context, p *Resolved, c *Cell, run int, room *sim.Result,
	to []float64) ([]float64, privacy.Loss, error) {
	s := &p.Spec
	instance, err := c.world.Instance(run)
	if err != nil {
		return nil, privacy.Loss{}, err
	}
	arms := len(instance.Arms)
	streams, coins := c.streams(c.world.Run(run))
	pol, err := c.policy(int(s.Horizon), s.Unclipped, arms, coins)
	if err != nil {
		return nil, privacy.Loss{}, err
	}
	lo, hi := s.span()
	cfg := sim.Config{
		Policy: pol, Instance: instance, Horizon: int(s.Horizon), Lo: lo, Hi: hi, Unclipped: s.Unclipped,
		Checkpoints: p.Checkpoints, Rewards: c.world.Rewards(run, arms), Noise: streams,
		Trust: c.trustIn(ctx, s, c.misread(s)), Contexts: c.world.drawn(run),
	}
	if cfg.Intervals, err = s.intervals(c, instance); err != nil {
		return nil, privacy.Loss{}, err
	}
	if s.Delay.On() {
		err = sim.RunDelayed(ctx, cfg, s.Delay.Delay(c.world.Delays(run)), room)
	} else {
		err = sim.Run(ctx, cfg, room)
	}
	return appendIntervals(appendRegret(to, room), cfg.Intervals), room.Loss, err
}

func (regretKind) tell(s *Spec, c *Cell, to *CellInfo) { to.LowerBound = c.lowerBound(s) }

// lowerBound is 0 where none is known: other laws, other budgets, means that are redrawn, and
// rewards that are logged people's.
func (c *Cell) lowerBound(s *Spec) float64 {
	epsilon := math.Inf(1)
	switch b := c.budget.(type) {
	case privacy.Pure:
		epsilon = b.Epsilon
	case privacy.None:
	default:
		return 0
	}
	if lo, hi := s.span(); lo != 0 || hi != 1 || s.Unclipped || c.world.Source.Redrawn() ||
		c.world.Fixed.Drifts() || c.world.vectors != nil || c.world.contexts != nil {
		return 0
	}
	var means []float64
	for _, law := range c.world.Fixed.Arms {
		if _, ok := law.(bandit.Bernoulli); !ok {
			return 0
		}
		means = append(means, law.Mean())
	}
	constant, err := bound.BernoulliRegret(means, epsilon)
	if err != nil {
		return 0
	}
	return math.Log(float64(s.Horizon)) * constant
}

func (regretKind) problem(s *Spec, c *Cell) (bound.Problem, error) {
	none := bound.Problem{}
	if c.world.Source.Redrawn() {
		return none, fmt.Errorf("means are redrawn for each run: there is no one instance to " +
			"bound the regret of")
	}
	if c.world.Fixed.Drifts() {
		return none, fmt.Errorf("the arms' laws change during a run: bounds are for those that do not")
	}
	if c.world.vectors != nil || c.world.contexts != nil {
		return none, fmt.Errorf("bounds are for arms without vectors or contexts")
	}
	if lo, hi := s.span(); lo != 0 || hi != 1 {
		return none, fmt.Errorf("bounds are for rewards in [0,1], and the range is [%v, %v]", lo, hi)
	}
	p, err := BoundArms(c.world.Fixed.Arms, s.Unclipped, c.budget)
	return p, err
}
