package decl

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

// What lets a team leave an experiment alone: bounds that its arms must keep.

// A Guard is a bound that the mean of a metric must keep, of each arm.
type Guard struct {
	Metric string // the name of one, or RewardMetric
	// Side is where the mean must stay of Bound: Below or Above. Bound is in the metric's units.
	Side  string
	Bound float64
	// Risk is that of pausing an arm that keeps the bound, in (0, ½], for the share of the guard: see
	// Experiment.GuardRisk.
	Risk float64
}

// The sides of a guard, and the metric that is the reward.
const (
	Below        = "below"
	Above        = "above"
	RewardMetric = "reward"
)

const (
	// maxGuarded bounds guards times arms: each is an interval of its own.
	maxGuarded   = 1000
	maxGuardRisk = 0.5
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
			func(g *Guard) *float64 { return &g.Risk }, "of pausing an arm that keeps the bound").Must(),
	}
}

// safetyKeys are the keys of guards.
func safetyKeys() []keyed.Key[Experiment] {
	return []keyed.Key[Experiment]{
		keyed.Of("guard", keyed.Many(keyed.Mapped(guardKeys), keyed.Object{"minItems": 1}),
			func(l *Experiment) *[]Guard { return &l.Guard },
			"bounds of metrics: an arm that is surely past one is paused"),
	}
}

// Of is the metric of a guard in Metrics, −1 for the reward, and the range that its mean is in.
func (l *Experiment) Of(g Guard) (metric int, lo, hi float64) {
	metric = slices.IndexFunc(l.Metrics, func(m Metric) bool { return m.Name == g.Metric })
	if metric < 0 {
		lo, hi = l.Range()
		return metric, lo, hi
	}
	lo, hi = l.Metrics[metric].Range()
	return metric, lo, hi
}

// GuardRisk is the risk at which a guard judges one arm: its own, shared out to all guards and arms. So the
// probability that a guard ever pauses an arm that keeps its bound is its Risk over the number of
// guards, whatever the number of arms, and that any of them does is at most the largest Risk (the
// theorem of interval.Sums.Side).
func (l *Experiment) GuardRisk(g Guard) float64 {
	return g.Risk / float64(len(l.Guard)*len(l.Arms))
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
		metric, lo, hi := l.Of(g)
		switch {
		case metric >= 0 && g.Metric == RewardMetric:
			return l.fail(at+".metric", "is %s, which is the reward and the name of a metric: give that another name",
				RewardMetric)
		case metric < 0 && g.Metric != RewardMetric:
			return l.fail(at+".metric", "is %q, which has no budget, must be %s or one of the metrics: declare "+
				"metrics: [{name: %s, budget: {epsilon: 0.1}}]", keyed.Clip(g.Metric), RewardMetric, keyed.Clip(g.Metric))
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
