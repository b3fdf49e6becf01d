package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/base/interval"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// resolving is the word for as few runs as resolve the risk.
const resolving = "resolve"

// The places of the metrics of KindIdentify in a unit.
const (
	atTime = iota
	atError
	atBatches
	atPlays // and those of the other arms after it
)

func identifyMetrics(arms int) []string {
	out := []string{MetricStoppingTime, MetricError, MetricBatches}
	for a := range arms {
		out = append(out, metricPlays+strconv.Itoa(a+1))
	}
	return out
}

// playsArm is the arm, from 0, whose plays a metric counts.
func playsArm(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, metricPlays)) // one of identifyMetrics
	return n - 1
}

// An IdentifyCell is what is known of a policy that looks for the best arm before it plays.
type IdentifyCell struct {
	Risk float64 `json:"risk"` // δ
	// Best are the arms with the largest mean, from 1: each is a right answer. It is empty where
	// means are redrawn for each run.
	Best []int `json:"best,omitempty"`
	// Correct says who proves that the policy is δ-correct; empty: nobody does, or rewards
	// do not allow it.
	Correct string `json:"correct,omitempty"`

	// For Bernoulli arms of which one is best, else 0. Time is T*(ν;ε) of [Azize 2024, Theorem
	// 4.24], at budget none T*_KL, and LowerBound Time·log(1/(3δ)): no δ-correct policy with this
	// budget takes fewer plays in the mean. Boundary is the ε at which T*_TV/ε = T*_KL: privacy
	// costs plays below it.
	Time       float64 `json:"time,omitempty"`
	KLTime     float64 `json:"kl_time,omitempty"`
	TVTime     float64 `json:"tv_time,omitempty"`
	LowerBound float64 `json:"lower_bound,omitempty"`
	Boundary   float64 `json:"boundary,omitempty"`
	// AsymptoticUpper is the upper bound of [Azize 2024, Theorem 5.20] (AdaP-TT) or 5.23 (AdaP-TT*)
	// times log(1/δ): of the mean stopping time as δ goes to 0. At a given δ it bounds nothing. It is
	// 0 where the theorem does not hold: two means are equal, other parameters than the theorem's.
	AsymptoticUpper float64 `json:"asymptotic_upper,omitempty"`
}

// capped says whether runs end at a cap and not at a horizon.
func (s *Spec) capped() bool { return s.Kind == KindStopping || s.Kind == KindIdentify }

// ResolvingRuns is the smallest number of runs at which no error at all leaves an upper limit of at
// most risk: the upper end of the 95 % Clopper–Pearson interval. From fewer runs nobody can tell
// that a rule errs so seldom.
func ResolvingRuns(risk float64) (int, error) {
	if !(risk > 0 && risk < 1) {
		return 0, fmt.Errorf("risk is %v, must be above 0 and below 1", risk)
	}
	n := math.Log((1-Level)/2) / math.Log1p(-risk) // (1−risk)^n = 0.025
	if !(n <= MaxRuns) {
		return 0, fmt.Errorf("to resolve a risk of %v takes %.3g runs, more than %d", risk, n, MaxRuns)
	}
	out := max(1, int(n)-1)
	for ; out <= MaxRuns; out++ {
		if limit, err := noErrorLimit(out); err != nil || limit <= risk {
			return out, err
		}
	}
	return 0, fmt.Errorf("to resolve a risk of %v takes more than %d runs", risk, MaxRuns)
}

// noErrorLimit is the upper limit of an error rate of which n runs have shown nothing.
func noErrorLimit(n int) (float64, error) {
	_, hi, err := interval.ClopperPearson(0, n, Level)
	return hi, err
}

// resolveRuns is the experiment with its number of runs.
func (s *Spec) resolveRuns() (*Spec, error) {
	if s.Kind != KindIdentify {
		return nil, s.fail("runs", "is %s: that is for experiments of kind %s", resolving, KindIdentify)
	}
	if s.Runs != 0 {
		return nil, s.fail("runs", "is both %d and %s: want one", int(s.Runs), resolving)
	}
	if err := s.checkRisk(); err != nil {
		return nil, err
	}
	n, err := ResolvingRuns(s.Risk)
	if err != nil {
		return nil, s.src.wrap("runs", err)
	}
	out := *s
	out.Runs, out.Resolving = Count(n), false
	return &out, nil
}

func (s *Spec) checkRisk() error {
	if !(s.Risk > 0 && s.Risk < 1) {
		return s.fail("risk", "is %v, must be given, above 0 and below 1: the probability of a "+
			"wrong answer that is allowed", s.Risk)
	}
	return nil
}

func (s *Spec) checkIdentify() error {
	if s.Horizon != 0 || s.Points != 0 || s.Checkpoints != nil || s.Unclipped || s.Bounds || len(s.Rules) > 0 {
		return s.fail("kind", "is %s, but there are rules, a horizon, checkpoints, bounds or "+
			"unclipped: they are for other kinds", KindIdentify)
	}
	return s.checkRisk()
}

// maxNumbers bounds the numbers that are kept of a cell, all arms' plays in all runs: 2 GB of them.
const maxNumbers = 1 << 28

// identifyColumns is how long a run is in a unit, in pairs of numbers, and tells of what the number
// of runs cannot show.
func (p *Plan) identifyColumns(worlds []world) (int, error) {
	s := &p.Spec
	arms := 0
	for i := range worlds {
		arms = max(arms, worlds[i].arms)
	}
	if n := len(identifyMetrics(0)) + arms; n > maxNumbers/int(s.Runs) {
		return 0, s.fail("runs", "is %d, with %d numbers kept of each: want at most %d numbers "+
			"of a cell", int(s.Runs), n, maxNumbers)
	}
	if limit, err := noErrorLimit(int(s.Runs)); err != nil {
		return 0, err
	} else if limit > s.Risk {
		least := "more than can be played"
		if n, err := ResolvingRuns(s.Risk); err == nil {
			least = strconv.Itoa(n)
		}
		p.warn("with %d runs even no error leaves the upper limit at %.3g, above the risk, %v: "+
			"it takes %s (runs: %s)", int(s.Runs), limit, s.Risk, least, resolving)
	}
	return (atPlays + arms + 1) / 2, nil
}

// checkWorld tells of what makes an instance hard or its means others than they seem.
func (p *Plan) checkWorld(w *world, at string) error {
	s := &p.Spec
	if int(s.Cap) < w.arms {
		return s.fail("cap", "is %d, below the number of arms of instance %s, %d: each arm must "+
			"be playable once", s.Cap, w.label, w.arms)
	}
	lo, hi := s.span()
	if a, b := w.fixed.Support(); a < lo || b > hi {
		p.warn("instance %s: rewards leave the declared range [%v, %v] and are clipped to it; "+
			"the best arm is that of the clipped laws", w.label, lo, hi)
	}
	if w.source.Redrawn() {
		return nil
	}
	var err error
	if w.best, err = bestArms(w.fixed, lo, hi); err != nil {
		return s.src.wrap(at, err)
	}
	if len(w.best) > 1 {
		p.warn("instance %s: arms %s have the same largest mean: each is a right answer, but a "+
			"rule may never find one, and runs end at the cap, %d", w.label,
			arms(w.best), s.Cap)
	}
	return nil
}

// arms writes arms as people number them.
func arms(of []int) string {
	text := make([]string, len(of))
	for i, a := range of {
		text[i] = strconv.Itoa(a + 1)
	}
	return strings.Join(text[:len(text)-1], ", ") + " and " + text[len(text)-1]
}

// armMeans are the means of what a policy sees, rewards clipped to [lo, hi].
func armMeans(in bandit.Instance, lo, hi float64) ([]float64, error) {
	out := make([]float64, len(in.Arms))
	for a, law := range in.Arms {
		out[a] = law.Mean()
		if from, to := law.Support(); from < lo || to > hi {
			var err error
			if out[a], err = bandit.ClippedMean(law, lo, hi); err != nil {
				return nil, fmt.Errorf("arm %d: %w", a+1, err)
			}
		}
	}
	return out, nil
}

func bestArms(in bandit.Instance, lo, hi float64) ([]int, error) {
	means, err := armMeans(in, lo, hi)
	if err != nil {
		return nil, err
	}
	var best []int
	most := slices.Max(means)
	for a, m := range means {
		if m == most {
			best = append(best, a)
		}
	}
	return best, nil
}

// identifyHash is hash for KindIdentify.
func (c *Cell) identifyHash(s *Spec) {
	h := sha256.New()
	fmt.Fprintf(h, "sotto identify cell %d\nworld %q\npolicy %q\nbudget %q\nrisk %s\ncap %d\nseed %d\n",
		FormatVersion, c.world.public, c.choice.content, c.Budget, number(s.Risk), s.Cap, s.Seed)
	if t := c.choice.trust; t.Protocol != "" {
		fmt.Fprintf(h, "protocol %q\ncorrupt %s\n", t.Protocol, number(t.Corrupt))
	}
	c.Hash = hex.EncodeToString(h.Sum(nil))
}

// identifier builds the cell's policy afresh: it holds a run's state.
func (c *Cell) identifier(s *Spec, coins *noise.Fast) (identify.Identifier, error) {
	risk, _ := c.identifyRisk(s)
	setting := catalog.IdentifySetting{Arms: c.world.arms, Risk: risk, Budget: c.budget,
		Coins: sim.NewCoins(coins)}
	return c.choice.entry.NewIdentify(setting, c.choice.params)
}

// identify plays one run and appends its metrics. Its world is the same for every cell of the
// instance, its noise is the cell's own.
func (p *Plan) identify(ctx context.Context, c *Cell, run int, to []float64) ([]float64, privacy.Loss, error) {
	s := &p.Spec
	fail := func(err error) ([]float64, privacy.Loss, error) {
		return nil, privacy.Loss{}, fmt.Errorf("%s, run %d: %w", c.Label(), run, err)
	}
	lo, hi := s.span()
	key := noise.Key{Seed: s.Seed, Experiment: c.world.content, Run: run}
	instance, best := c.world.fixed, c.world.best
	if c.world.source.Redrawn() {
		key.Role = noise.RoleInstance
		stream := key.Fast(1)
		var err error
		if instance, err = c.world.source.Instance(&stream[0]); err != nil {
			return fail(err)
		}
		if len(instance.Arms) != c.world.arms {
			return fail(fmt.Errorf("the source has drawn %d arms, and %d before: want as many in "+
				"each run", len(instance.Arms), c.world.arms))
		}
		if best, err = bestArms(instance, lo, hi); err != nil {
			return fail(err)
		}
	}
	key.Role = noise.RoleReward
	rewards := key.Fast(c.world.arms)
	key.Role, key.Cell = noise.RoleNoise, c.choice.content+" at "+c.Budget
	streams := key.Fast(1)
	key.Role = noise.RolePolicy
	coins := key.Fast(1)
	pol, err := c.identifier(s, &coins[0])
	if err != nil {
		return fail(err)
	}
	_, misread := c.identifyRisk(s)
	var out sim.IdentifyResult
	if err := sim.Identify(ctx, sim.IdentifyConfig{
		Policy: pol, Instance: instance, Cap: int(s.Cap), Lo: lo, Hi: hi, Rewards: rewards,
		Noise: &streams[0], Trust: c.trustIn(ctx, s, misread),
	}, &out); err != nil {
		return fail(err)
	}
	wrong := 0.0
	switch {
	case out.Answer < 0:
		wrong = noEstimate
	case !slices.Contains(best, out.Answer):
		wrong = 1
	}
	to = append(to, float64(out.Tau), wrong, float64(out.Batches))
	for _, n := range out.Plays {
		to = append(to, float64(n))
	}
	return to, out.Loss, nil
}

// identifyCell is what the manifest has of the cell.
func (c *Cell) identifyCell(s *Spec) *IdentifyCell {
	out := &IdentifyCell{Risk: s.Risk, Correct: c.choice.entry.Correct}
	for _, a := range c.world.best {
		out.Best = append(out.Best, a+1)
	}
	if lo, hi := s.span(); lo != 0 || hi != 1 || len(c.world.best) != 1 {
		return out
	}
	var means []float64
	for _, law := range c.world.fixed.Arms {
		if _, ok := law.(bandit.Bernoulli); !ok {
			return out
		}
		means = append(means, law.Mean())
	}
	epsilon := math.Inf(1)
	if b, ok := c.budget.(privacy.Pure); ok {
		epsilon = b.Epsilon
	}
	kl, err := bound.BernoulliTime(means, math.Inf(1))
	if err != nil {
		return out
	}
	private, tv := kl, 0.0
	if !math.IsInf(epsilon, 1) {
		if private, err = bound.BernoulliTime(means, epsilon); err != nil {
			return out
		}
	}
	if tv, err = bound.TVTime(means); err != nil {
		return out
	}
	for _, x := range []float64{private.Time, kl.Time, tv, private.Samples(s.Risk)} {
		if math.IsInf(x, 0) || math.IsNaN(x) { // JSON has no such numbers
			return out
		}
	}
	out.Time, out.KLTime, out.TVTime, out.LowerBound, out.Boundary = private.Time, kl.Time, tv,
		private.Samples(s.Risk), tv/kl.Time
	out.AsymptoticUpper = c.asymptoticUpper(means, epsilon, s.Risk)
	return out
}

// asymptoticUpper is 0 where no theorem holds.
func (c *Cell) asymptoticUpper(means []float64, epsilon, risk float64) float64 {
	upper := bound.AdaPTTUpper
	switch c.choice.entry.Name {
	case "adap-tt":
	case "adap-tt-star":
		upper = bound.AdaPTTStarUpper
	default:
		return 0
	}
	if c.trust(0.5) != nil { // theirs is Laplace noise of a believed server
		return 0
	}
	sorted := slices.Clone(means)
	slices.Sort(sorted)
	p := c.choice.params
	if len(slices.Compact(sorted)) != len(means) || len(c.choice.entry.Unproved(p)) > 0 {
		return 0
	}
	x, err := upper(means, epsilon, p["beta"])
	if x *= math.Log(1 / risk); err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return x
}

// A Verdict says what runs have shown of a rule's error rate.
type Verdict string

// The verdicts. The level of the interval is Level.
const (
	AtMostRisk Verdict = "at most δ" // the interval's upper end is
	AboveRisk  Verdict = "above δ"   // the interval's lower end is
	Undecided  Verdict = "undecided" // at this number of runs
	NoAnswer   Verdict = "no answer" // in any run: they all reached the cap
)

// Verdict is the 95 % Clopper–Pearson interval of the probability that a run of KindIdentify gives
// a wrong answer before the cap, and what it says. A run that reached the cap gave none: so it
// counts among the runs, and not among the errors.
func (c *CellResult) Verdict() (v Verdict, lo, hi float64, err error) {
	if c.Identify == nil {
		return "", 0, 0, fmt.Errorf("cell %s is not of kind %s", c.Label(), KindIdentify)
	}
	if lo, hi, err = interval.ClopperPearson(c.Failures, len(c.FinalError), Level); err != nil {
		return "", 0, 0, fmt.Errorf("%s: %w", c.Label(), err)
	}
	switch risk := c.Identify.Risk; {
	case c.Unfinished == len(c.FinalError):
		v = NoAnswer
	case hi <= risk:
		v = AtMostRisk
	case lo > risk:
		v = AboveRisk
	default:
		v = Undecided
	}
	return v, lo, hi, nil
}
