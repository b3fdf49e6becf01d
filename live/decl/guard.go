package decl

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
)

// What lets a team leave an experiment alone: bounds that its arms must keep, and a share of traffic that
// grows while they do.

// A Guard is a bound that the mean of a metric must keep, of each arm.
type Guard struct {
	Metric string // the name of one, or RewardName
	// Side is where the mean must stay of Bound: Below or Above. Bound is in the metric's units.
	Side  string
	Bound float64
	// Risk is that of pausing an arm that keeps the bound, in (0, ½], for the share of the guard: see
	// Experiment.GuardRisk.
	Risk float64
}

// The sides of a guard.
const (
	Below = "below"
	Above = "above"
)

// A Step of a ramp: a share of units, as Experiment.Share, and how long it is kept at least. The last one has
// no end.
type Step struct {
	Share float64
	For   time.Duration
}

const (
	// maxGuarded bounds guards times arms: each is an interval of its own.
	maxGuarded   = 1000
	maxGuardRisk = 0.5
	maxSteps     = 100
)

func guardKeys() []keyed.Key[Guard] {
	side := func(name, doc string) keyed.Key[Guard] {
		k := keyed.Key[Guard]{Name: name, Doc: doc,
			Schema: func() keyed.Object { return keyed.Object{"type": "number"} },
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *Guard) error {
				if to.Side != "" {
					return d.Fail(n, at, "is given beside %s, must be one of them: another bound is a guard of its own",
						to.Side)
				}
				to.Side = name
				return d.Float(n, at, &to.Bound)
			},
			Given: func(g *Guard) bool { return g.Side == name },
			Value: func(g *Guard) (any, error) { return g.Bound, nil }}
		return k.When(k.Given)
	}
	return []keyed.Key[Guard]{
		keyed.Always("metric", keyed.Filled(""), func(g *Guard) *string { return &g.Metric },
			"one of the metrics, or reward").Must(),
		side(Below, "below which each arm's mean must stay, in the metric's units"),
		side(Above, "above which it must stay, in the place of below"),
		keyed.Always("risk", keyed.Real(keyed.Object{"exclusiveMinimum": 0, "maximum": maxGuardRisk}),
			func(g *Guard) *float64 { return &g.Risk }, "of ever pausing an arm that keeps the bound; with G guards each "+
				"has risk/G, all arms together").Must(),
	}
}

func stepKeys() []keyed.Key[Step] {
	return []keyed.Key[Step]{
		keyed.Always("share", keyed.Real(keyed.Object{"exclusiveMinimum": 0, "maximum": 1}),
			func(s *Step) *float64 { return &s.Share }, "of units that are in it").Must(),
		keyed.Of("for", lasting(), func(s *Step) *time.Duration { return &s.For },
			"how long it is kept at least, such as 24h; the last step is kept"),
	}
}

// safetyKeys are the keys of guards and of a ramp.
func safetyKeys() []keyed.Key[Experiment] {
	return []keyed.Key[Experiment]{
		keyed.Of("guard", keyed.Many(keyed.Mapped(guardKeys), keyed.Object{"minItems": 1}),
			func(l *Experiment) *[]Guard { return &l.Guard },
			"bounds of metrics: an arm that is surely past one is paused"),
		keyed.Of("ramp", keyed.Many(keyed.Mapped(stepKeys), keyed.Object{"minItems": 1, "maxItems": maxSteps}),
			func(l *Experiment) *[]Step { return &l.Ramp },
			"the shares of units that are in it, one after the other: a step follows when its time is over and each "+
				"arm surely keeps each guard; in the place of share"),
	}
}

// Of is the metric of a guard in Metrics, −1 for the reward, and the range that its mean is in.
func (l *Experiment) Of(g Guard) (metric int, lo, hi float64) {
	i, n := l.numberOf(g.Metric)
	return i - 1, n.lo, n.hi
}

// GuardRisk is the risk at which a guard judges one arm: its own, shared out to all guards and arms. So the
// probability that a guard ever pauses an arm that keeps its bound is its Risk over the number of guards, of all
// arms that were there from the start, and that any of them does is at most the mean of the
// Risks (the theorem of interval.Sums.Side). An arm that is added has the risk of one of those, beside theirs, so
// that what was judged stays judged: with K arms in the place of K₀ all of that is K/K₀ times as large.
func (l *Experiment) GuardRisk(g Guard) float64 {
	return g.Risk / float64(len(l.Guard)*l.FirstArms())
}

// Keeps says on which side of a guard's bound an arm is that surely keeps it, as interval.Sums.Side.
func (g Guard) Keeps() int {
	if g.Side == Below {
		return -1
	}
	return 1
}

// checkGuard says what is wrong with the guards.
func (l *Experiment) checkGuard() error {
	switch n := len(l.Guard); {
	case n == 0:
		return nil
	case l.TrustModel() != privacy.TrustCentral:
		return l.fail("guard", "is given, and trust is %s, under which there are no metrics: it needs trust %s", l.Trust,
			privacy.TrustCentral)
	case n*len(l.Arms) > maxGuarded:
		return l.fail("guard", "has %d for %d arms, must be at most %d", n, len(l.Arms), maxGuarded/len(l.Arms))
	}
	for i, g := range l.Guard {
		at := fmt.Sprintf("guard[%d]", i)
		known, of := l.numberOf(g.Metric)
		lo, hi := of.lo, of.hi
		switch {
		case l.twoRewards(g.Metric):
			return l.fail(at+".metric", twoRewards, RewardName)
		case slices.ContainsFunc(l.Ratios, func(r Ratio) bool { return r.Name == g.Metric }):
			return l.fail(at+".metric", "is %q, which is a ratio, must be %s or one of the metrics", g.Metric, RewardName)
		case known < 0:
			return l.fail(at+".metric", "is %q, which has no budget, must be %s or one of the metrics: declare "+
				"metrics: [{name: %s, budget: {epsilon: 0.1}}]", keyed.Clip(g.Metric), RewardName, keyed.Clip(g.Metric))
		case g.Side != Below && g.Side != Above:
			return l.fail(at, "has no bound, must have %s or %s", Below, Above)
		case !(g.Bound > lo && g.Bound < hi):
			return l.fail(at+"."+g.Side, "is %v, must be inside of the range of %s, above %v and below %v", g.Bound,
				g.Metric, lo, hi)
		case !(g.Risk > 0 && g.Risk <= maxGuardRisk):
			return l.fail(at+".risk", "is %v, must be above 0 and at most %v: 0.01 is usual", g.Risk, maxGuardRisk)
		}
		for j, before := range l.Guard[:i] {
			if before.Metric == g.Metric && before.Side == g.Side {
				return l.fail(at, "bounds %s from the same side as guard[%d], must be one of them", g.Metric, j)
			}
		}
	}
	return nil
}

// checkRamp says what is wrong with the ramp.
func (l *Experiment) checkRamp() error {
	for i, s := range l.Ramp {
		at := fmt.Sprintf("ramp[%d]", i)
		last := i == len(l.Ramp)-1
		switch {
		case !(s.Share > 0 && s.Share <= 1):
			return l.fail(at+".share", "is %v, must be above 0 and at most 1", s.Share)
		case i > 0 && s.Share <= l.Ramp[i-1].Share:
			return l.fail(at+".share", "is %v, must be above that of the step before, %v: who is in stays in",
				s.Share, l.Ramp[i-1].Share)
		case last && s.For != 0:
			return l.fail(at+".for", "is given, must be left out of the last step, which is kept: add a step, such as "+
				"{share: 1}")
		case !last && !(s.For >= MinWindow && s.For <= MaxWindow):
			return l.fail(at+".for", "is %v, must be from %v to %v: 24h is usual", s.For, MinWindow, MaxWindow)
		}
	}
	if len(l.Ramp) > 0 && l.Share != 0 {
		return l.fail("share", "is %v, must be left out beside a ramp, which begins with %v", l.Share, l.Ramp[0].Share)
	}
	return nil
}

// mostNeeded is more decisions than anybody waits for.
const mostNeeded = 1_000_000_000

// GuardNeeds is about how many decisions of an arm, whose share of all is given, must be released until a guard is
// sure of it, where the metric's mean is this one: on which side of the bound does not matter. It takes sums as they are
// expected, and releases as the policy makes them, or that grow twofold. 0: more than anybody waits for, as at the bound.
func (l *Experiment) GuardNeeds(g Guard, mean, share float64) (int, error) {
	p, err := l.NewPolicy(ZeroCoins{})
	if err != nil {
		return 0, err
	}
	m, lo, hi := l.Of(g)
	s := interval.Sums{Noise: p.Mechanism()}
	if m >= 0 {
		metrics, err := l.PlayMetrics()
		if err != nil {
			return 0, err
		}
		s.Noise = metrics[m].Mechanism
	}
	joint, _ := p.(play.Joint)
	next := 1
	if b := p.Next(privacy.Released{}); joint == nil && b != nil && len(b.Plays) > 0 {
		next = b.Plays[0].Rounds
	}
	looked, made := 0, 0
	each := max(1, len(l.Cells())) // noises in a release, at most
	for s.N = next; max(s.N, made) <= mostNeeded; s.Releases += each {
		if joint != nil {
			made = joint.JointEnd(made)
			s.N = max(1, int(float64(made)*share))
		} else if s.Releases > 0 {
			s.N *= 2
		}
		if s.N < looked+looked/20 { // a look takes a while, and rows are many
			continue
		}
		looked = s.N
		at := s
		at.Releases += each
		at.Sum = float64(s.N) * (mean - lo) / (hi - lo)
		switch side, err := at.Side((g.Bound-lo)/(hi-lo), l.GuardRisk(g)); {
		case err != nil:
			return 0, err
		case side != 0:
			return s.N, nil
		}
	}
	return 0, nil
}
