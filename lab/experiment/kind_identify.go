package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// identifyKind is KindIdentify.
type identifyKind struct{ capped }

func (identifyKind) name() string { return KindIdentify }

func (identifyKind) players() string { return "policies" }

func (identifyKind) span() (lo, hi float64) { return 0, 1 }

func (identifyKind) instances() instanceForm { return armInstances() }

func (k identifyKind) keys(known catalog.Catalog) []keyed.Key[Spec] {
	keys := []keyed.Key[Spec]{nameKey(), descriptionKey(),
		kindKey(KindIdentify, "policies that look for the best arm and stop"),
		keyed.Always("risk", keyed.Share(), func(s *Spec) *float64 { return &s.Risk },
			"delta, the probability of a wrong answer that is allowed").Must().
			Means("required; δ, the probability of a wrong answer that is allowed, above 0 and " +
				"below 1. Every policy is built for it"),
		capKey("plays after which a run is given up, without an answer", "required; plays at which "+
			"a run is given up. Such a run has no answer: it counts as so many plays in the "+
			"stopping time, as capped, and never as an error"),
		k.runsKey(), seedKey(), rangeKey(keyed.RangeDoc, "`[0, 1]`; rewards outside are clipped, and the "+
			"best arm is that of the clipped laws")}
	return slices.Concat(keys, specTrust(), []keyed.Key[Spec]{delayKey(), intervalsKey(),
		instancesKey(k.instances(), "where rewards come from", "required; as for `kind: regret`. "+
			"Where several arms are best each is a right answer, and there is a warning: no rule "+
			"can tell them apart, and runs end at the cap. With `contexts` an answer is one of each context"),
		policiesKey(known, KindIdentify, true, "required; `sotto list policies` has them, with "+
			"bandit `identify`"),
		budgetsKey(specBudgets, []keyed.BudgetShape{keyed.PureShape()}, "each private policy runs at each "+
			"budget; the others run once", "required if a policy is private: `{epsilon: 1}` or "+
			"`none`, where a private policy is played without noise. Private is the whole "+
			"transcript: plays, stopping time and answer")})
}

// runsKey is a number, or the word for as few as resolve the risk.
func (identifyKind) runsKey() keyed.Key[Spec] {
	k := runsKey().Means("required; a number, or `resolve`: as few as can show that a rule errs with " +
		"probability at most δ, the smallest number at which no error at all leaves the upper end of " +
		"the 95 % Clopper–Pearson interval at δ or below (368 for δ = 0.01, 72 for 0.05). Fewer are " +
		"warned of. `--runs resolve` does the same")
	k.Doc += "; resolve: as few as can show an error rate of at most the risk"
	k.Schema = func() keyed.Object {
		return keyed.Object{"anyOf": []any{keyed.CountSchema(runsDoc), keyed.Object{"const": resolving}}}
	}
	number, count := k.Read, k.Value
	k.Read = func(d *keyed.Decoder, n ast.Node, at string, to *Spec) error {
		text, ok := n.(*ast.StringNode)
		switch {
		case !ok || strings.ContainsAny(text.Value, "0123456789"):
			return number(d, n, at, to)
		case text.Value != resolving:
			return d.Fail(n, at, "is %s%s, must be a whole number of runs, or %s", keyed.KindOfNode(n),
				catalog.Hint(keyed.Clip(text.Value), []string{resolving}), resolving)
		}
		to.Resolving = true
		return nil
	}
	k.Value = func(s *Spec) (any, error) {
		if s.Resolving {
			return resolving, nil
		}
		return count(s)
	}
	return k
}

// resolving is the word for as few runs as resolve the risk.
const resolving = "resolve"

// The places of the metrics of KindIdentify in a unit.
const (
	atTime = iota
	atError
	atBatches
	atPlays // and those of the other arms after it
)

// playsArm is the arm, from 0, whose plays a metric counts.
func playsArm(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, metricPlays)) // one of identifyKind.metrics
	return n - 1
}

// An IdentifyCell is what is known of a policy that looks for the best arm before it plays.
type IdentifyCell struct {
	Risk float64 `json:"risk"` // δ
	// Goal is what is looked for if it is not the best arm: top-k or threshold.
	Goal catalog.Goal `json:"goal,omitempty"`
	// Best are the arms with the largest mean, from 1: each is a right answer. It is empty where
	// means are redrawn for each run.
	Best []int `json:"best,omitempty"`
	// Correct says who proves that the policy is δ-correct; empty: nobody does, or rewards
	// do not allow it.
	Correct string `json:"correct,omitempty"`

	// For Bernoulli arms of which one is best, else 0. Time is T*(ν;ε) of [Azize 2024, Theorem
	// 4.24], at budget none T*_KL, and LowerBound Time·kl(δ,1−δ): no δ-correct policy with this
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
	_, hi, err := stats.ClopperPearson(0, n, Level)
	return hi, err
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

// identifyCell is what the manifest has of the cell.
func (c *Cell) identifyCell(s *Spec) *IdentifyCell {
	out := &IdentifyCell{Risk: s.Risk, Correct: c.choice.entry.Correct}
	if goal := c.choice.entry.Seeks(); goal == catalog.GoalTop || goal == catalog.GoalThreshold {
		out.Goal = goal
	}
	for _, a := range c.world.best {
		out.Best = append(out.Best, a+1)
	}
	if lo, hi := s.span(); lo != 0 || hi != 1 || len(c.world.best) != 1 || c.world.vectors != nil ||
		c.choice.entry.Seeks() != catalog.GoalConfidence { // which the bounds are of
		return out
	}
	var means []float64
	for _, law := range c.world.Fixed.Arms {
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
	if !s.Delay.On() { // the theorems are for rewards that come at once
		out.AsymptoticUpper = c.asymptoticUpper(means, epsilon, s.Risk)
	}
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
	if lo, hi, err = stats.ClopperPearson(c.Failures, len(c.FinalError), Level); err != nil {
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

// resolveRuns is the experiment with its number of runs.
func (k identifyKind) resolveRuns(s *Spec) (*Spec, error) {
	if s.Runs != 0 {
		return nil, s.fail("runs", "is both %d and %s, must be one", int(s.Runs), resolving)
	}
	if err := k.check(s); err != nil {
		return nil, err
	}
	n, err := ResolvingRuns(s.Risk)
	if err != nil {
		return nil, s.src.Wrap("runs", err)
	}
	out := *s
	out.Runs, out.Resolving = keyed.Count(n), false
	return &out, nil
}

func (identifyKind) check(s *Spec) error {
	if !(s.Risk > 0 && s.Risk < 1) {
		return s.fail("risk", "is %v, must be given, above 0 and below 1: the probability of a "+
			"wrong answer that is allowed", s.Risk)
	}
	return s.checkOnArms()
}

func (identifyKind) text(s *Spec) string {
	return fmt.Sprintf("risk %v, at most %d plays each", s.Risk, s.Cap)
}

// maxNumbers bounds the numbers that are kept of a cell, all arms' plays in all runs: 2 GB of them.
const maxNumbers = 1 << 28

// columns tells of what the number of runs cannot show, besides.
func (k identifyKind) columns(p *Resolved, worlds []environment) (int, error) {
	s := &p.Spec
	arms := 0
	for i := range worlds {
		arms = max(arms, worlds[i].arms)
	}
	if n := atPlays + arms; n > maxNumbers/int(s.Runs) {
		return 0, s.fail("runs", "is %d, with %d numbers kept of each, must be at most %d numbers "+
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

func (k identifyKind) worlds(p *Resolved) ([]environment, error) {
	return p.eachInstance(func(in *Instance) (environment, string, error) {
		w, field, err := p.armWorld(in)
		if err != nil {
			return w, field, err
		}
		if w.Fixed.Drifts() {
			return w, "changes", fmt.Errorf("is given: which arm is best must not change while it is looked for")
		}
		if field, err := in.checkKnown(&w); err != nil {
			return w, field, err
		}
		return w, "", k.settle(p, in, &w)
	})
}

// settle tells of what makes an instance hard or its means others than they seem.
func (identifyKind) settle(p *Resolved, in *Instance, w *environment) error {
	s := &p.Spec
	if int(s.Cap) < w.arms {
		return s.fail("cap", "is %d, below the number of arms of instance %s, %d: each arm must "+
			"be playable once", s.Cap, in.Name, w.arms)
	}
	lo, hi := s.span()
	if a, b := w.Fixed.Support(); a < lo || b > hi {
		p.warn("instance %s: rewards leave the declared range [%v, %v] and are clipped to it; "+
			"the best arm is that of the clipped laws", in.Name, lo, hi)
	}
	if w.Source.Redrawn() {
		return nil
	}
	each := w.arms / w.of()
	for c := range w.of() {
		best, err := bestArms(bandit.Instance{Arms: w.Fixed.Arms[c*each : (c+1)*each]}, lo, hi)
		if err != nil {
			return err
		}
		for _, a := range best {
			w.best = append(w.best, c*each+a)
		}
	}
	if len(w.best) > w.of() {
		p.warn("instance %s: arms %s have the same largest mean: each is a right answer, but a "+
			"rule may never find one, and runs end at the cap, %d", in.Name,
			arms(w.best), s.Cap)
	}
	return nil
}

func (identifyKind) choices(p *Resolved) ([]choice, error) { return p.policies() }

func (k identifyKind) begin(p *Resolved, c *Cell, _ int) error {
	s := &p.Spec
	h := sha256.New()
	fmt.Fprintf(h, "sotto identify cell %d\nworld %q\npolicy %q\nbudget %q\nrisk %s\ncap %d\nseed %d\n",
		FormatVersion, c.world.public, c.choice.content, c.Budget, keyed.Number(s.Risk), s.Cap, s.Seed)
	c.choice.trust.writeProtocol(h)
	c.world.writeKnown(h)
	if err := s.writeDelay(h); err != nil {
		return err
	}
	s.writeIntervals(h)
	c.Hash = hex.EncodeToString(h.Sum(nil))
	rule, err := k.policy(s, c, &noise.Fast{})
	if err != nil {
		return err
	}
	if err := c.admitKnown(s, rule); err != nil {
		return err
	}
	if err := c.admit(s, rule); err != nil {
		return err
	}
	return c.tryTrust(rule.Mechanism())
}

// policy builds the cell's policy afresh: it holds a run's state.
func (identifyKind) policy(s *Spec, c *Cell, coins *noise.Fast) (identify.Identifier, error) {
	risk, _ := c.identifyRisk(s)
	return c.choice.entry.NewIdentify(catalog.IdentifySetting{Arms: c.world.arms, Risk: risk,
		Budget: c.budget, Coins: sim.NewCoins(coins), Vectors: c.world.vectors,
		Logistic: c.world.steep > 0, Contexts: c.world.of()}, c.choice.params)
}

func (k identifyKind) play(ctx context.Context, p *Resolved, c *Cell, run int, _ *sim.Result,
	to []float64) ([]float64, privacy.Loss, error) {
	s := &p.Spec
	fail := func(err error) ([]float64, privacy.Loss, error) { return nil, privacy.Loss{}, err }
	lo, hi := s.span()
	instance, err := c.world.Instance(run)
	if err != nil {
		return fail(err)
	}
	best := c.world.best
	if c.world.Source.Redrawn() {
		if len(instance.Arms) != c.world.arms {
			return fail(fmt.Errorf("the source has drawn %d arms, and %d before, must be as many in "+
				"each run", len(instance.Arms), c.world.arms))
		}
		if best, err = bestArms(instance, lo, hi); err != nil {
			return fail(err)
		}
	}
	privately, coins := c.streams(c.world.Run(run))
	pol, err := k.policy(s, c, coins)
	if err != nil {
		return fail(err)
	}
	_, misread := c.identifyRisk(s)
	var out sim.IdentifyResult
	cfg := sim.IdentifyConfig{
		Policy: pol, Instance: instance, Cap: int(s.Cap), Lo: lo, Hi: hi,
		Rewards: c.world.Rewards(run, c.world.arms), Noise: privately, Trust: c.trustIn(ctx, s, misread),
		Contexts: c.world.drawn(run),
	}
	if cfg.Intervals, err = s.intervals(c, instance); err != nil {
		return fail(err)
	}
	if s.Delay.On() {
		err = sim.IdentifyDelayed(ctx, cfg, s.Delay.Delay(c.world.Delays(run)), &out)
	} else {
		err = sim.Identify(ctx, cfg, &out)
	}
	if err != nil {
		return fail(err)
	}
	wrong := 0.0
	if set, ok := pol.(identify.Chooser); ok && out.Answer >= 0 {
		means, err := armMeans(instance, lo, hi)
		if err != nil {
			return fail(err)
		}
		for a := range means {
			means[a] = (means[a] - lo) / (hi - lo)
		}
		if !set.Right(means) {
			wrong = 1
		}
	} else if out.Answer < 0 {
		wrong = noEstimate
	} else if !slices.Contains(best, out.Answer) {
		wrong = 1
	}
	to = append(to, float64(out.Tau), wrong, float64(out.Batches))
	for _, n := range out.Plays {
		to = append(to, float64(n))
	}
	return appendIntervals(to, cfg.Intervals), out.Loss, nil
}

func (identifyKind) metrics(c *CellInfo) []string {
	out := []string{MetricStoppingTime, MetricError, MetricBatches}
	for a := range c.Arms {
		out = append(out, metricPlays+strconv.Itoa(a+1))
	}
	return out
}

func (identifyKind) judge(c *CellResult) { c.judge(0) }

func (identifyKind) tell(s *Spec, c *Cell, to *CellInfo) { to.Identify = c.identifyCell(s) }

func (identifyKind) checkTold(c *CellInfo) error {
	if c.Identify == nil || c.Arms < 2 || c.Arms > bandit.MaxArms {
		return fmt.Errorf("cell %s says nothing of its risk, or has %d arms", c.Label(), c.Arms)
	}
	return nil
}

func (identifyKind) writeRows(ctx context.Context, w io.Writer, dir string, m *Manifest) error {
	return writeRows(ctx, w, dir, m, func(c *CellInfo, at RunRow, v func(int) float64) IdentifyRow {
		row := IdentifyRow{RunRow: at, StoppingTime: v(atTime), Batches: v(atBatches),
			Plays: make([]float64, c.Arms)}
		if x := fromUnit(v(atError)); !math.IsNaN(x) {
			row.Error = &x
		}
		for a := range row.Plays {
			row.Plays[a] = v(atPlays + a)
		}
		return row
	})
}
