package choose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A runner plays runs. Its streams are those of lab/experiment: run i of a policy is the
// same run as there.
type runner struct {
	sim.World
	horizon  int
	lo, hi   float64
	delay    sim.DelayLaw
	top      float64   // no regret is above it
	entrants []entrant // those that are ranked first
	ranked   int
	left     []Left
	warnings []string
	clips    atomic.Bool // rewards of some run leave [lo, hi]
	turned   atomic.Bool // in the instance of some run clipping changes which arm is best
}

// An entrant is a policy in the contest.
type entrant struct {
	label     string
	entry     catalog.Entry
	params    catalog.Params // complete
	budget    privacy.Budget
	content   string // key of its noise
	candidate Candidate
}

func newWorld(q *Question, declared bool) (*runner, error) {
	w := &runner{horizon: q.Horizon, lo: q.Lo, hi: q.Hi, delay: q.Delay}
	var err error
	if w.World, err = sim.NewWorld(q.Source, q.Lo, q.Hi, q.Seed); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuestion, err)
	}
	arms := len(w.Fixed.Arms)
	if q.Horizon < arms {
		return nil, fmt.Errorf("%w: horizon is %d, below the number of arms, %d: each arm must "+
			"be playable once", ErrQuestion, q.Horizon, arms)
	}
	if n := len(w.Fixed.Changes); n > 0 && w.Fixed.Changes[n-1].From > q.Horizon {
		return nil, fmt.Errorf("%w: the arms change from round %d on, must be at most the horizon, %d",
			ErrQuestion, w.Fixed.Changes[n-1].From, q.Horizon)
	}
	if w.top = float64((q.Hi - q.Lo) * float64(q.Horizon)); !q.Source.Redrawn() {
		w.top = w.over(w.Fixed, slices.Max[[]float64])
	}
	if w.look(w.Fixed); w.clips.Load() && !declared && slices.ContainsFunc(w.Fixed.Arms, logged) {
		return nil, fmt.Errorf("%w: logged rewards leave [0, 1] and no range is declared: "+
			"declare the lowest and the highest reward that there can be, "+
			"from what is known without the log", ErrQuestion)
	}
	return w, w.enter(q)
}

func logged(l bandit.Law) bool { _, ok := l.(*bandit.Empirical); return ok }

// look notes what clipping does to an instance.
func (w *runner) look(in bandit.Instance) {
	if lo, hi := in.Support(); lo >= w.lo && hi <= w.hi {
		return
	}
	w.clips.Store(true)
	if !w.turned.Load() && in.ClippingTurns(w.lo, w.hi) {
		w.turned.Store(true)
	}
}

// enter makes the list of entrants.
func (w *runner) enter(q *Question) error {
	named := q.Policies
	if len(named) == 0 {
		for _, e := range q.Catalog.For(catalog.BanditArms) {
			switch {
			case e.Name == catalog.AutoPolicy:
				named = append(named, w.auto(q)...)
			case e.Private && !e.Plain(): // on plain arms it is what another policy is
				w.left = append(w.left, Left{Policy: e.Name, Why: "it is for arms with vectors, or people with contexts"})
			case e.Private:
				named = append(named, Candidate{Policy: e.Name})
			}
		}
	}
	if q.Reference {
		for _, e := range q.Catalog.For(catalog.BanditArms) {
			if !e.Private && !slices.ContainsFunc(named, func(c Candidate) bool { return c.Policy == e.Name }) {
				named = append(slices.Clone(named), Candidate{Policy: e.Name})
			}
		}
	}
	var ranked, references []entrant
	seen := map[string]bool{}
	for _, c := range named {
		e, err := newEntrant(q.Catalog, c, q.Budget)
		if err == nil {
			err = w.try(&e)
		}
		switch {
		case err != nil && len(q.Policies) > 0:
			return fmt.Errorf("%w: %w", ErrQuestion, err)
		case err != nil:
			w.left = append(w.left, Left{Policy: c.Policy, Why: err.Error()})
			continue
		case seen[e.content]:
			return fmt.Errorf("%w: policy %s is given twice", ErrQuestion, e.label)
		}
		seen[e.content] = true
		w.warnings = append(w.warnings, e.entry.Warnings(e.params)...)
		if e.entry.Private {
			ranked = append(ranked, e)
		} else {
			references = append(references, e)
		}
	}
	if len(ranked) == 0 {
		return fmt.Errorf("%w: no policy meets %s", ErrQuestion, q.Budget)
	}
	w.entrants, w.ranked = append(ranked, references...), len(ranked)
	return nil
}

// auto is what the policy that picks one picks here, where it is none that is a candidate at its defaults. The
// rate that it goes by is that of the arms.
func (w *runner) auto(q *Question) []Candidate {
	plan := catalog.Plan{Arms: len(w.Fixed.Arms), Budget: q.Budget, Horizon: q.Horizon}
	for _, law := range w.Fixed.Arms {
		plan.Rate += (law.Mean() - w.lo) / (w.hi - w.lo) / float64(plan.Arms)
	}
	plan.Rate = min(max(plan.Rate, 0.001), 0.999)
	pick, err := catalog.Auto(plan)
	left := Left{Policy: catalog.AutoPolicy, Why: pick.Why}
	if err != nil {
		left.Why = err.Error()
	}
	w.left = append(w.left, left)
	if len(pick.Params) == 0 {
		return nil
	}
	return []Candidate{{pick.Policy, pick.Params}}
}

func newEntrant(known catalog.Catalog, c Candidate, b privacy.Budget) (entrant, error) {
	entry, err := known.Find(catalog.BanditArms, c.Policy)
	if err != nil {
		return entrant{}, err
	}
	params, err := entry.Complete(c.Params)
	if err != nil {
		return entrant{}, err
	}
	entry = entry.With(params) // a parameter may decide which budgets the policy meets
	e := entrant{label: entry.Name, entry: entry, params: params, budget: b, candidate: c,
		content: entry.Content(params)}
	if !entry.Private {
		e.budget = privacy.None{}
	} else if err := entry.Meets(b); err != nil {
		return entrant{}, err
	}
	var given []string
	for _, p := range entry.Params {
		if x, ok := c.Params[p.Name]; ok {
			given = append(given, p.Name+"="+p.Text(x))
		}
	}
	if given != nil {
		e.label += " (" + strings.Join(given, ", ") + ")"
	}
	return e, nil
}

// try finds out before a run whether the entrant can be played.
func (w *runner) try(e *entrant) error {
	p, err := w.build(e, len(w.Fixed.Arms), &noise.Fast{})
	if err != nil || !w.delay.On() {
		return err
	}
	if _, err := play.Admit(p); err != nil {
		return fmt.Errorf("policy %s where rewards come late: %w", e.label, err)
	}
	return nil
}

// build makes the entrant's policy afresh: it holds a run's state.
func (w *runner) build(e *entrant, arms int, coins *noise.Fast) (policy.Policy, error) {
	return e.entry.New(catalog.Setting{Arms: arms, Horizon: w.horizon, Budget: e.budget,
		Coins: sim.NewCoins(coins)}, e.params)
}

// play plays the runs first, first+1, … of an entrant, and says how much work the
// longest of them was.
func (w *runner) play(ctx context.Context, i, first int, out []float64) (work int, err error) {
	e := &w.entrants[i]
	var r sim.Result
	for j := range out {
		run := first + j
		n, err := w.one(ctx, e, run, &r)
		if err != nil {
			return 0, fmt.Errorf("policy %s, run %d: %w", e.label, run, err)
		}
		out[j], work = r.Regret[0], max(work, n)
	}
	return work, nil
}

// split is the mean regret of playing all arms equally often, in the worlds of the first runs.
func (w *runner) split(runs int) (float64, error) {
	if !w.Source.Redrawn() {
		runs = 1
	}
	sum := 0.0
	for run := range runs {
		in, err := w.Instance(run)
		if err != nil {
			return 0, err
		}
		sum += w.over(in, func(gaps []float64) float64 {
			mean, _, _ := stats.Mean(gaps)
			return mean
		})
	}
	return sum / float64(runs), nil
}

// over adds up a function of the gaps over all rounds.
func (w *runner) over(in bandit.Instance, of func(gaps []float64) float64) float64 {
	phases, from := in.Phases()
	sum := 0.0
	for i, p := range phases {
		end := w.horizon
		if i+1 < len(from) {
			end = min(end, from[i+1]-1)
		}
		sum += float64(of(p.Gaps()) * float64(max(0, end-from[i]+1)))
	}
	return sum
}

func (w *runner) one(ctx context.Context, e *entrant, run int, r *sim.Result) (work int, err error) {
	in, err := w.Instance(run)
	if err != nil {
		return 0, err
	}
	if w.Source.Redrawn() {
		if gap := slices.Max(in.Gaps()); gap > w.hi-w.lo {
			return 0, fmt.Errorf("%w: an instance of %v has a gap of %v, more than the range of "+
				"rewards, [%v, %v]", ErrQuestion, w.Source, gap, w.lo, w.hi)
		}
		w.look(in)
	}
	streams, coins := sim.CellOf(e.content, e.budget).Streams(w.Run(run))
	p, err := w.build(e, len(in.Arms), coins)
	if err != nil {
		return 0, err
	}
	cfg := sim.Config{
		Policy: p, Instance: in, Horizon: w.horizon, Lo: w.lo, Hi: w.hi,
		Checkpoints: []int{w.horizon}, Rewards: w.Rewards(run, len(in.Arms)), Noise: streams,
	}
	if w.delay.On() {
		err = sim.RunDelayed(ctx, cfg, w.delay.Delay(w.Delays(run)), r)
	} else {
		err = sim.Run(ctx, cfg, r)
	}
	if err != nil {
		return 0, err
	}
	if e.entry.Private && !r.Loss.Within(e.budget) {
		return 0, fmt.Errorf("its ledger says %v, above the budget, %v", r.Loss, e.budget)
	}
	if work = max(r.Releases, 1); w.delay.On() {
		return w.horizon, nil // it goes round by round
	}
	for _, law := range in.Arms {
		if a, b := law.Support(); a < w.lo || b > w.hi || !closed(law) {
			return w.horizon, nil // rewards are drawn one by one
		}
	}
	return work, nil
}

// closed says whether the sum of n rewards is drawn at once.
func closed(law bandit.Law) bool {
	switch law.(type) {
	case bandit.Bernoulli, bandit.Gaussian, *bandit.Table, *bandit.Empirical:
		return true
	}
	return false
}

func (w *runner) answer(q *Question, c *contest) (Answer, error) {
	a := Answer{
		World: q.Source.String(), Budget: q.Budget.String(), Horizon: q.Horizon, Level: q.Level,
		Resolution: q.Resolution, Strict: q.Strict, Seed: q.Seed, Risk: q.Risk, ByRisk: q.ByRisk,
		Delay:   q.Delay.String(),
		Stopped: c.stopped, Settled: true, Rows: []Row{}, Verdicts: []Verdict{},
		References: []Row{}, Left: append([]Left{}, w.left...),
		Warnings: append([]string{}, w.warnings...), Regret: "of the means", Range: [2]float64{q.Lo, q.Hi},
	}
	if w.clips.Load() {
		a.Regret = "of the means before clipping"
		a.Warnings = slices.Insert(a.Warnings, 0,
			fmt.Sprintf("rewards leave the range [%v, %v] and are clipped to it; regret counts "+
				"the means before clipping", q.Lo, q.Hi))
	}
	worse := c.worse(c.order[0])
	tier := 1
	for k, i := range c.order {
		if k > 0 {
			v := c.verdict(c.order[k-1], i)
			a.Verdicts = append(a.Verdicts, v)
			a.Settled = a.Settled && v != Unsettled
			if v == Better {
				tier++
			}
		}
		r := w.row(c, i, tier)
		if k > 0 {
			if r.First = c.verdict(c.order[0], i); worse[i] {
				r.First = Better
			}
		}
		a.Rows = append(a.Rows, r)
	}
	for i := w.ranked; i < len(w.entrants); i++ {
		a.References = append(a.References, w.row(c, i, 0))
	}
	slices.SortStableFunc(a.References, func(x, y Row) int {
		switch {
		case x.Mean < y.Mean:
			return -1
		case x.Mean > y.Mean:
			return 1
		}
		return 0
	})
	if best := a.Rows[0].Mean; best > 0 {
		for _, rows := range [][]Row{a.Rows, a.References} {
			for i := range rows {
				rows[i].Ratio = rows[i].Mean / best
			}
		}
	}
	a.warn()
	use := a.Use()
	var err error
	if a.EqualSplit, err = w.split(use.Runs); err != nil {
		return Answer{}, err
	}
	switch {
	case w.turned.Load():
		a.Refused = fmt.Sprintf("clipping to [%v, %v] changes which arm is best, or may: "+
			"policies look for the best of the clipped means, and this regret is of the "+
			"means before clipping. Declare the range that rewards can really have", q.Lo, q.Hi)
	case use.Mean > a.EqualSplit:
		a.Refused = fmt.Sprintf("%s, the first, has a mean regret of %.6g, and playing all arms "+
			"equally often, which looks at no reward, has %.6g",
			use.Policy, use.Mean, a.EqualSplit)
	case use.Mean+use.Half >= a.EqualSplit*(1-1e-12) && a.EqualSplit > 0: // rounding apart
		a.Refused = fmt.Sprintf("%s, the first, has a mean regret of %.6g ± %.3g, and is not "+
			"shown to be better than playing all arms equally often, "+
			"which looks at no reward and has %.6g. A longer horizon or a larger budget leaves "+
			"more to learn, and more runs may show less", use.Policy, use.Mean, use.Half, a.EqualSplit)
	}
	return a, nil
}

func (w *runner) row(c *contest, i, tier int) Row {
	e := &w.entrants[i]
	r := Row{Policy: e.label, Tier: tier, Guarantee: e.entry.Guarantee, Bound: e.entry.Regret,
		Source: e.entry.Source, Anytime: e.entry.Anytime || e.params["unknown_horizon"] == 1,
		Candidate: e.candidate}
	c.describe(i, &r)
	return r
}

// warn says what a reader of the table must know.
func (a *Answer) warn() {
	say := func(format string, args ...any) { a.Warnings = append(a.Warnings, fmt.Sprintf(format, args...)) }
	for _, r := range a.Rows {
		switch {
		case r.Heavy && r.Top > 0.5:
			say("%s: the mean rests on a few runs: the worst 1%% carry %.0f%% of it (median "+
				"%.4g, worst %.4g)", r.Policy, 100*r.Top, r.Median, r.Max)
		case r.Heavy:
			say("%s: %d runs are too skewed for the ± of their mean (median %.4g, worst %.4g)",
				r.Policy, r.Runs, r.Median, r.Max)
		}
	}
	var unsettled []string
	for i, v := range a.Verdicts {
		if v == Unsettled {
			unsettled = append(unsettled, a.Rows[i].Policy+" and "+a.Rows[i+1].Policy)
		}
	}
	if unsettled != nil {
		say("%s are not settled", strings.Join(unsettled, "; "))
	}
	least := func(by func(Row) float64) Row {
		return slices.MinFunc(a.Rows, func(x, y Row) int {
			switch {
			case by(x) < by(y):
				return -1
			case by(x) > by(y):
				return 1
			}
			return 0
		})
	}
	use := a.Use()
	if r := least(func(r Row) float64 { return r.Median }); r.Median < use.Median {
		say("by the median, %s would be first: %.4g against %.4g for %s", r.Policy, r.Median,
			use.Median, use.Policy)
	}
	if r := least(func(r Row) float64 { return r.Q99 }); r.Q99 < use.Q99 {
		say("by the 99%% quantile, %s would be first: %.4g against %.4g for %s", r.Policy, r.Q99,
			use.Q99, use.Policy)
	}
}
