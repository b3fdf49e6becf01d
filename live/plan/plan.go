// Package plan says what a live experiment will do before it starts: fill in a [Request], then call
// [Request.Run] for arms or [Request.RunContextual] for contexts.
//
// It simulates the experiment by the code that will play it, at several budgets: when its page will
// have an answer, how traffic moves until then, how many rewards are lost, and what privacy costs of that.
package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// A Request asks, before a live experiment starts, when it will have an answer and what that
// costs: it is simulated at some budgets by the code that will play it live, with its window, its
// floor and decisions that come evenly over the day. Every reward comes in its window: what does
// not counts the default, so a mean is one with that counted.
type Request struct {
	Live decl.Experiment
	// Means are those of the arms, in the range of rewards, one an arm; or nil, and then Gap says by
	// how much one arm is better than the others, whose mean is Best − Gap. Best 0 is the middle of
	// the range and half a gap. Rewards are drawn at the ends of the range, where they vary most.
	// Arms take turns in being listed first, from run to run: policies give ties to the first.
	Means     []float64
	Gap, Best float64
	Traffic   float64 // decisions a day, above 0
	// Days is how long the experiment lasts; 0: from the declared start to the declared end, or
	// DefaultDays.
	Days float64
	// Budgets are what a unit may lose by all its assignments; empty: a quarter of the declared ε
	// (or ρ), and four times that. The declared budget is always among them.
	Budgets []privacy.Budget
	Runs    keyed.Count // simulated at each budget, at least 2; 0: 20 to 200, of contexts 4 to 20, by length
	Seed    uint64
	Workers int // runs played at a time; answers do not depend on it. 0 is one a processor
	// Brief has the declared policy alone simulated, with and without privacy: no other first batch, no A/B test
	// beside it, no other floor.
	Brief bool

	Begun              func(rows int)      // of Run: how many rows there will be; nil: nobody is told
	Progress           func(Row)           // of Run; nil: nobody is told
	ContextualProgress func(ContextualRow) // of RunContextual
}

// DefaultDays is how long a live experiment is simulated that says no end.
const DefaultDays = 28

// A Row is what was found at one budget with one first batch.
type Row struct {
	Budget privacy.Budget // of a unit; None: the same policy without privacy
	First  int            // rounds of an arm's first batch, if that was varied; 0: as declared
	// FirstRelease is when the first release is made: a median over runs, −1 if it is not.
	FirstRelease time.Duration
	// Known is when the answer is known: a rule that looks for the best arm has stopped; of other
	// policies, the page's verdict is conclusive for the first time (interval.Table.Verdict). Median and
	// 90 % quantile over runs, −1 where it is not after Searched decisions; and mean with its standard error,
	// NaN unless it is known in all runs.
	KnownMedian, Known90 time.Duration
	KnownMean, KnownSE   float64 // days
	Unknown              int     // runs in which it is not known
	Wrong                int     // runs with another answer than the best arm, or of arms of which none is best
	// Searched is how many decisions were simulated for that: the period's; of an A/B test, whose batches
	// are drawn by counts, a hundred times as many.
	Searched int
	// Regret is what is lost to decisions for other arms than the best one, in rewards, until a
	// rule has stopped or the time is over.
	Regret, RegretSE float64
	// Uniform is what a uniform choice would lose with as many decisions.
	Uniform float64
	// Until is what an A/B test loses in the period if everybody is given its answer as soon as there is one.
	Until    float64
	Releases float64     // in the period, mean
	Course   []LivePoint // of policies that adapt and do not stop
	// Split is an A/B test of the same arms at the same budget, beside a policy that adapts and does not
	// stop: even shares, planned for the difference of the two best arms. nil where there is none.
	Split *Row
}

// A LivePoint is where an experiment is after some time, in the mean over runs.
type LivePoint struct {
	After  time.Duration
	Share  float64 // of the decisions since the point before that the best arm had
	Regret float64 // so far
}

// A Forecast answers a Request.
type Forecast struct {
	Arms   string // in words
	Policy string
	Stops  bool          // the policy is a rule that stops with an answer
	Period time.Duration // that is simulated
	Rounds int           // decisions in it
	Window int           // decisions in a window of the rewards
	Runs   int
	Rows   []Row // by budget, the declared one among them
	Plain  Row   // without privacy
	// Central is at the declared budget, were the service believed, of an experiment whose rewards it
	// does not see; nil of others. All other rows have the noise of the declared trust model, as if
	// every decision were reported.
	Central *Row
	// Firsts are at the declared budget with other first batches, if the policy has that parameter:
	// the declared one, and those that fill a quarter and all of a window. FirstParam is its name.
	Firsts     []Row
	FirstParam string
	// Planned is at the declared budget of an A/B test without an effect or a rate, with those of the means that
	// are asked about; nil of others.
	Planned *Row
	// Floored is at the declared budget with the least Floor of floors() with which half of the runs have
	// an answer in the period, if with the declared one fewer have; nil if none has, or none is looked for.
	Floored *Row
	Floor   float64
	Advice  []string
}

// ErrPlan is matched by every error in a Request that is not one of its experiment.
var ErrPlan = errors.New("cannot plan")

// mostLiveRounds bounds the decisions of a simulated experiment.
const mostLiveRounds = 1_000_000_000

// enoughRounds is how many decisions are simulated in all, if that is enough for 20 runs a row: for some
// ten seconds.
const enoughRounds = 40_000_000

// perWindow is how often in a window what is due is looked for at least: a release is late by less than
// half a percent of a window.
const perWindow = 200

// mostLater is how many times longer than the period an A/B test is simulated for its answer.
const mostLater = 100

// armsPlan is a Request that has been checked.
type armsPlan struct {
	Request
	out    Forecast
	worlds []bandit.Instance // the arms in another order
	winner int               // the place of the best arm in the first world; −1: there is none
	key    string            // of streams
	ends   []int             // of the slices that the course is told in
}

// Run simulates. Runs share the rewards of each arm from row to row.
func (q Request) Run(ctx context.Context) (*Forecast, error) {
	p := armsPlan{Request: q}
	if q.Live.Contextual != nil {
		return nil, fmt.Errorf("%w: experiment %s has contexts, must have arms", ErrPlan, q.Live.Name)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	entry, params, err := p.entry()
	if err != nil {
		return nil, err
	}
	asks := []liveAsk{{budget: privacy.None{}}}
	for _, b := range p.Budgets {
		asks = append(asks, liveAsk{budget: b, gathering: p.Live.Gathering()})
	}
	if p.Live.Gathering().On() && !p.Brief {
		asks = append(asks, liveAsk{budget: p.Live.Budget})
	}
	if !p.Brief && slices.ContainsFunc(entry.Params, func(q catalog.Param) bool { return q.Name == decl.FirstParam }) {
		p.out.FirstParam = decl.FirstParam
		full := max(1, p.out.Window/len(p.Live.Arms))
		for _, n := range slices.Compact([]int{max(1, full/4), full}) {
			if params[decl.FirstParam] != float64(n) {
				asks = append(asks, liveAsk{budget: p.Live.Budget, first: n, gathering: p.Live.Gathering()})
			}
		}
	}
	if p.Runs == 0 {
		p.Runs = 200
		if !p.Live.Split() {
			p.Runs = keyed.Count(min(200, max(20, enoughRounds/len(asks)/p.out.Rounds)))
		}
	}
	var split *armsPlan
	if !p.Brief {
		split = p.against()
	}
	p.out.Runs = int(p.Runs)
	declared := -1
	if p.Begun != nil {
		p.Begun(len(asks))
	}
	for i, a := range asks {
		row, err := p.row(ctx, a)
		if err == nil && split != nil && !p.Live.Split() && a.first == 0 && a.gathering == p.Live.Gathering() {
			var beside Row
			beside, err = split.row(ctx, liveAsk{budget: a.budget, gathering: split.Live.Gathering()})
			row.Split = &beside
		}
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0:
			p.out.Plain = row
		case p.Live.Gathering().On() && !a.gathering.On():
			p.out.Central = &row
		case a.first == 0:
			p.out.Rows = append(p.out.Rows, row)
			if a.budget.String() == p.Live.Budget.String() {
				declared = i - 1
			}
		default:
			if len(p.out.Firsts) == 0 {
				p.out.Firsts = append(p.out.Firsts, p.out.Rows[declared])
			}
			p.out.Firsts = append(p.out.Firsts, row)
		}
		if p.Progress != nil {
			p.Progress(row)
		}
	}
	if split != nil && p.Live.Split() {
		row, err := split.row(ctx, liveAsk{budget: p.Live.Budget, gathering: p.Live.Gathering()})
		if err != nil {
			return nil, err
		}
		p.out.Planned = &row
		if was := p.out.Rows[declared].KnownMedian; row.KnownMedian >= 0 && (was < 0 || row.KnownMedian < was) {
			p.say("with effect: %.4g and rate: %.4g in the declaration half of the runs are conclusive after %s", split.Live.Effect,
				split.Live.Rate, p.visitors(row.KnownMedian))
		}
	}
	if p.Brief {
		return &p.out, nil
	}
	return &p.out, p.floors(ctx, p.out.Rows[declared])
}

// say adds to the advice.
func (p *armsPlan) say(format string, args ...any) {
	p.out.Advice = append(p.out.Advice, fmt.Sprintf(format, args...))
}

// against is an A/B test of the same arms, planned for the means that are asked about; nil if there is none
// to hold the policy against: of a rule that stops, of an A/B test that is planned itself, where no arm is
// best, and where the declaration has what no A/B test has.
func (p *armsPlan) against() *armsPlan {
	planned := p.Live.Split() && p.Live.Effect != 0 && p.Live.Rate != 0
	if p.out.Stops || planned || p.winner < 0 {
		return nil
	}
	lo, hi := p.Live.Range()
	next, sum := math.Inf(1), 0.0
	for a, law := range p.worlds[0].Arms {
		if sum += law.Mean(); a != p.winner {
			next = min(next, p.worlds[0].Arms[p.winner].Mean()-law.Mean())
		}
	}
	out := armsPlan{Request: p.Request, out: p.out, worlds: p.worlds[:1], winner: p.winner, key: p.key}
	l := &out.Live
	l.Policy = decl.Policy{Policy: decl.SplitPolicy}
	l.Floor, l.Horizon = 0, 0
	if l.Effect == 0 {
		l.Effect = next
	}
	if rate := sum / float64(len(l.Arms)); l.Rate == 0 && rate > lo && rate < hi {
		l.Rate = rate
	}
	if l.Check() != nil {
		return nil
	}
	return &out
}

// floors looks for a floor with which half of the runs have an answer in the period, if fewer have.
func (p *armsPlan) floors(ctx context.Context, declared Row) error {
	switch {
	case p.winner < 0:
		p.say("no arm is best, so that no answer is right: a verdict names one in 5 %% of the experiments at most")
		return nil
	case p.out.Stops || p.Live.Split() || declared.KnownMedian >= 0:
		return nil
	}
	p.out.Floor = p.Live.Floor
	q := *p
	for _, floor := range []float64{0.05, 0.1, 0.2, 0.4} {
		q.Live.Floor = floor
		if floor <= p.Live.Floor || q.Live.Check() != nil {
			continue
		}
		row, err := q.row(ctx, liveAsk{budget: p.Live.Budget, gathering: p.Live.Gathering()})
		if err != nil {
			return err
		}
		p.out.Floor = floor
		if row.KnownMedian >= 0 {
			p.out.Floored = &row
			p.say("with floor: %v instead of %v half of the runs are conclusive after %s", floor, p.Live.Floor,
				p.visitors(row.KnownMedian))
			return nil
		}
	}
	p.say("fewer than half of the runs are conclusive in %d decisions, with a floor of up to %v: plan more days, or "+
		"take an A/B test (policy: split)", p.out.Rounds, p.out.Floor)
	return nil
}

// visitors is how many decisions there are in a time, in words.
func (p *armsPlan) visitors(d time.Duration) string {
	return words.Short(math.Round(p.Traffic*d.Hours()/24)) + " decisions"
}

// A liveAsk is what a row is about: a budget, the first batch (0: as declared), and how sums are
// gathered.
type liveAsk struct {
	budget    privacy.Budget
	first     int
	gathering release.Gathering
}

func (p *armsPlan) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrPlan}, args...)...)
	}
	l := &p.Live
	if err := l.Check(); err != nil {
		return err
	}
	if p.Days == 0 {
		p.Days = DefaultDays
		if !l.Start.IsZero() && !l.End.IsZero() {
			p.Days = l.End.Sub(l.Start).Hours() / 24
		}
	}
	switch {
	case !(p.Traffic > 0 && p.Traffic <= 1e12):
		return fail("traffic is %v, must be decisions a day, above 0 and at most 1e12", p.Traffic)
	case !(p.Days > 0 && p.Days <= 36_600):
		return fail("days is %v, must be above 0 and at most 36600", p.Days)
	case p.Runs < 0 || p.Runs == 1 || p.Runs > 1e6:
		return fail("runs is %d, must be from 2 to 1e6", int(p.Runs))
	case p.Workers < 0:
		return fail("workers is %d, must be at least 1, or 0 for one a processor", p.Workers)
	case p.Traffic*p.Days > mostLiveRounds:
		return fail("%v decisions a day for %v days is %.3g decisions, must be at most %.0g: "+
			"simulate fewer days",
			p.Traffic, p.Days, p.Traffic*p.Days, float64(mostLiveRounds))
	}
	out := &p.out
	out.Rounds = int(math.Round(p.Traffic * p.Days))
	out.Window = max(1, int(math.Round(p.Traffic*l.Window.Hours()/24)))
	out.Period = days(p.Days)
	out.Policy, out.Stops = l.Policy.Policy, l.Risk != 0
	if l.Contextual != nil {
		if err := p.gap(fail); err != nil {
			return err
		}
		return p.budgets()
	}
	if out.Rounds < 2*len(l.Arms) {
		return fail("%v decisions a day for %v days is %d decisions, must be at least two an arm", p.Traffic,
			p.Days, out.Rounds)
	}
	slices := min(200, max(1, out.Rounds/50))
	for i := range slices {
		p.ends = append(p.ends, int(float64(out.Rounds)*float64(i+1)/float64(slices)))
	}
	if err := p.arms(fail); err != nil {
		return err
	}
	return p.budgets()
}

// days is a span of so many days.
func days(x float64) time.Duration {
	return time.Duration(min(x*24*float64(time.Hour), math.MaxInt64/2))
}

// arms makes the worlds.
func (p *armsPlan) arms(fail func(string, ...any) error) error {
	n := len(p.Live.Arms)
	lo, hi := p.Live.Range()
	means := p.Means
	switch {
	case means != nil && (p.Gap != 0 || p.Best != 0):
		return fail("gap and best go without means")
	case means != nil && len(means) != n:
		return fail("means are %d, must be one for each of the %d arms of experiment %s", len(means), n,
			p.Live.Name)
	case means == nil:
		if err := p.gap(fail); err != nil {
			return err
		}
		best := p.best()
		means = slices.Repeat([]float64{math.Round((best-p.Gap)*1e15) / 1e15}, n)
		means[0] = best
		p.out.Arms = fmt.Sprintf("%d arms, one of mean %.4g, the others of mean %.4g", n, best, means[1])
	}
	if p.out.Arms == "" {
		p.out.Arms = fmt.Sprintf("%d arms of means %v", n, means)
	}
	laws := make([]bandit.Law, n)
	for i, m := range means {
		if !(m >= lo && m <= hi) {
			return fail("mean %d is %v, must be in the range of rewards, from %v to %v", i+1, m, lo, hi)
		}
		law, err := atEnds(m, lo, hi)
		if err != nil {
			return fail("mean %d: %w", i+1, err)
		}
		laws[i] = law
	}
	orders := min(n, mostOrders)
	if p.Live.Split() { // shares are of named arms
		orders = 1
	}
	for i := range orders {
		at := i * n / orders
		world, err := bandit.NewInstance(slices.Concat(laws[at:], laws[:at])...)
		if err != nil {
			return fail("%w", err)
		}
		p.worlds = append(p.worlds, world)
	}
	p.winner = slices.Index(means, slices.Max(means))
	if slices.Contains(means[p.winner+1:], means[p.winner]) {
		p.winner = -1
	}
	p.key = fmt.Sprintf("live %v range=[%s,%s]", bandit.Fixed(p.worlds[0]), keyed.Number(lo), keyed.Number(hi))
	return nil
}

// gap checks Gap and Best.
func (p *armsPlan) gap(fail func(string, ...any) error) error {
	lo, hi := p.Live.Range()
	if !(p.Gap > 0 && p.Gap <= hi-lo) {
		return fail("gap is %v, must be above 0 and at most the range of rewards, %v", p.Gap, hi-lo)
	}
	if best := p.best(); !(best-p.Gap >= lo && best <= hi) {
		return fail("best is %v, must be from %v to %v: the others' mean is less by the gap", best,
			lo+p.Gap, hi)
	}
	return nil
}

// best is the best mean.
func (p *armsPlan) best() float64 {
	if p.Best != 0 {
		return p.Best
	}
	lo, hi := p.Live.Range()
	return (lo+hi)/2 + p.Gap/2
}

// atEnds is the law on {lo, hi} of this mean.
func atEnds(mean, lo, hi float64) (bandit.Law, error) {
	x := (mean - lo) / (hi - lo)
	if lo == 0 && hi == 1 || x <= 0 || x >= 1 {
		if lo == 0 && hi == 1 {
			return bandit.NewBernoulli(mean)
		}
		return bandit.NewTable([]float64{mean}, []float64{1})
	}
	return bandit.NewTable([]float64{lo, hi}, []float64{1 - x, x})
}

// budgets fills in those that are not given, and finds out whether the policy meets all.
func (p *armsPlan) budgets() error {
	if len(p.Budgets) == 0 {
		for _, times := range []float64{0.25, 1, 4} {
			switch b := p.Live.Budget.(type) {
			case privacy.Pure:
				b.Epsilon *= times
				p.Budgets = append(p.Budgets, b)
			case privacy.ZCDP:
				b.Rho *= times
				p.Budgets = append(p.Budgets, b)
			case privacy.Approx:
				b.Epsilon *= times
				p.Budgets = append(p.Budgets, b)
			case privacy.Renyi:
				b.Epsilon *= times
				p.Budgets = append(p.Budgets, b)
			default:
				p.Budgets = append(p.Budgets, b)
				return nil
			}
		}
	}
	declared := p.Live.Budget.String()
	if !slices.ContainsFunc(p.Budgets, func(b privacy.Budget) bool { return b.String() == declared }) {
		p.Budgets = slices.Insert(slices.Clone(p.Budgets), 0, p.Live.Budget)
	}
	for _, b := range p.Budgets {
		l := p.Live
		l.Budget, l.Traffic = b, 0 // which is that of the declared budget's cells
		if err := l.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *armsPlan) entry() (catalog.Entry, catalog.Params, error) {
	e, err := p.Live.Catalog.Find(p.Live.Bandit(), p.Live.Policy.Policy)
	if err != nil {
		return e, nil, p.Live.Wrap("policy", err)
	}
	params, err := e.Complete(p.Live.Policy.Params)
	return e, params, err
}

// policy builds the policy at a budget of a unit.
func (p *armsPlan) policy(b privacy.Budget, first int, coins policy.Coins) (policy.Policy, error) {
	l := p.Live
	if first > 0 {
		l.Policy.Params = catalog.Params{}
		for name, x := range p.Live.Policy.Params {
			l.Policy.Params[name] = x
		}
		l.Policy.Params[decl.FirstParam] = float64(first)
	}
	each := b
	if (b != privacy.Budget(privacy.None{})) {
		l.Budget = b
		var err error
		if each, err = l.EachAssignment(); err != nil {
			return nil, err
		}
	}
	return l.PolicyAt(each, coins)
}

// A liveRun is what one run leaves.
type liveRun struct {
	first, known  int // decisions before; −1: never
	decisions     int
	wrong         bool
	regret, until float64
	releases      int
	best, regrets []float64 // at the ends of slices
}

// row simulates all runs at a budget.
func (p *armsPlan) row(ctx context.Context, a liveAsk) (Row, error) {
	runs := make([]liveRun, p.Runs)
	err := pool.Run(ctx, p.Workers, int(p.Runs), func() func(context.Context, int) error {
		return func(ctx context.Context, run int) (err error) {
			runs[run], err = p.one(ctx, a, run)
			return err
		}
	})
	if err != nil {
		return Row{}, err
	}
	row := Row{Budget: a.budget, First: a.first, Searched: p.searched()}
	var firsts, knowns, all, regrets, untils, decisions, releases []float64
	for _, r := range runs {
		never := func(n int) float64 {
			if n < 0 {
				return math.Inf(1)
			}
			return float64(n)
		}
		firsts, knowns = append(firsts, never(r.first)), append(knowns, never(r.known))
		all, releases = append(all, float64(r.known)/p.Traffic), append(releases, float64(r.releases))
		regrets, untils = append(regrets, r.regret), append(untils, r.until)
		decisions = append(decisions, float64(r.decisions))
		if r.known < 0 {
			row.Unknown++
		}
		if r.wrong {
			row.Wrong++
		}
	}
	row.FirstRelease = p.after(stats.Quantiles(firsts, 0.5)[0])
	known := stats.Quantiles(knowns, 0.5, 0.9)
	row.KnownMedian, row.Known90 = p.after(known[0]), p.after(known[1])
	row.KnownMean, row.KnownSE = math.NaN(), math.NaN()
	if row.Unknown == 0 {
		row.KnownMean, _, row.KnownSE = stats.Mean(all)
	}
	row.Regret, _, row.RegretSE = stats.Mean(regrets)
	if p.Live.Split() {
		row.Until, _, _ = stats.Mean(untils)
	}
	gap, _, _ := stats.Mean(p.worlds[0].Gaps())
	most, _, _ := stats.Mean(decisions)
	row.Uniform = gap * most
	row.Releases, _, _ = stats.Mean(releases)
	if !p.out.Stops && !p.Live.Split() {
		row.Course = p.course(runs)
	}
	return row, nil
}

// after is the time that so many decisions take, −1 for what never is.
func (p *armsPlan) after(decisions float64) time.Duration {
	if math.IsInf(decisions, 1) || math.IsNaN(decisions) {
		return -1
	}
	return days(decisions / p.Traffic)
}

func (p *armsPlan) course(runs []liveRun) []LivePoint {
	out := make([]LivePoint, len(p.ends))
	before := 0
	for i, end := range p.ends {
		at := LivePoint{After: p.after(float64(end))}
		for _, r := range runs {
			best := r.best[i]
			if i > 0 {
				best -= r.best[i-1]
			}
			at.Share += best / float64(end-before) / float64(len(runs))
			at.Regret += r.regrets[i] / float64(len(runs))
		}
		out[i], before = at, end
	}
	return out
}

// one simulates a run.
func (p *armsPlan) one(ctx context.Context, a liveAsk, run int) (liveRun, error) {
	world := p.worlds[run%len(p.worlds)]
	key := noise.Key{Seed: p.Seed, Experiment: p.key, Run: run, Role: noise.RoleReward}
	rewards := key.Fast(len(world.Arms))
	key.Role = noise.RoleFloor
	floor := key.Fast(1)
	var cells play.Cells // without noise there is nothing that they cost
	if l := p.Live; a.budget != privacy.Budget(privacy.None{}) {
		l.Budget = a.budget
		var err error
		if cells, err = l.PlayCells(); err != nil {
			return liveRun{}, err
		}
	}
	key.Role, key.Cell = noise.RoleNoise, a.budget.String()
	streams := key.Fast(1)
	key.Role = noise.RolePolicy
	coins := key.Fast(1)
	pol, err := p.policy(a.budget, a.first, sim.NewCoins(&coins[0]))
	if err != nil {
		return liveRun{}, err
	}
	out := liveRun{first: -1, known: -1}
	lo, hi := p.Live.Range()
	gaps := world.Gaps()
	table, arms := p.Live.Table(), make([]interval.NamedArm, len(gaps))
	look := func(rounds int, sums []interval.Sums) {
		if out.first < 0 {
			out.first = rounds
		}
		if rounds <= p.out.Rounds {
			out.releases++
		}
		if p.out.Stops || out.known >= 0 {
			return
		}
		for i := range arms {
			arms[i].Sums = sums[i]
		}
		if leader := table.Conclusive(arms); leader >= 0 {
			out.known, out.wrong = rounds, gaps[leader] > 0 || p.winner < 0
			out.until = gaps[leader] * float64(max(0, p.out.Rounds-rounds))
		}
	}
	delay := sim.Delay{Window: p.out.Window, Default: p.Live.Default, Floor: p.Live.Floor, Coins: &floor[0],
		Gathering: a.gathering, Every: p.out.Window / perWindow, Cells: cells, Released: look}
	if p.out.Stops { // each round counts
		delay.Every = 0
	}
	if joint, ok := pol.(play.Joint); ok {
		delay.Released = nil
		err := sim.RunJoint(ctx, sim.Config{Policy: pol, Instance: world, Horizon: p.searched(), Lo: lo, Hi: hi,
			Rewards: rewards, Noise: &streams[0]}, delay, func(rounds int, sums []interval.Sums) bool {
			look(rounds, sums)
			return rounds < p.out.Rounds || out.known < 0
		})
		out.decisions = p.out.Rounds
		asks := out.decisions
		if out.known >= 0 {
			asks = min(asks, out.known)
		}
		for a, q := range joint.Shares(0) {
			out.regret += float64(q * gaps[a] * float64(out.decisions))
			out.until += float64(q * gaps[a] * float64(asks))
		}
		return out, err
	}
	if rule, ok := pol.(identify.Identifier); ok && p.out.Stops {
		var r sim.IdentifyResult
		if err := sim.IdentifyDelayed(ctx, sim.IdentifyConfig{Policy: rule, Instance: world, Cap: p.out.Rounds,
			Lo: lo, Hi: hi, Rewards: rewards, Noise: &streams[0]}, delay, &r); err != nil {
			return out, err
		}
		if out.decisions = r.Tau; r.Answer >= 0 {
			out.known, out.wrong = r.Tau, gaps[r.Answer] > 0
		}
		for a, n := range r.Plays {
			out.regret += gaps[a] * float64(n)
		}
		return out, nil
	}
	var r sim.Result
	if err := sim.RunDelayed(ctx, sim.Config{Policy: pol, Instance: world, Horizon: p.out.Rounds,
		Lo: lo, Hi: hi,
		Checkpoints: p.ends, Rewards: rewards, Noise: &streams[0]}, delay, &r); err != nil {
		return out, err
	}
	out.best, out.regrets = r.PlaysBest, r.Regret
	out.decisions, out.regret = p.out.Rounds, r.Regret[len(r.Regret)-1]
	return out, nil
}

// searched is Row.Searched.
func (p *armsPlan) searched() int {
	if !p.Live.Split() {
		return p.out.Rounds
	}
	return min(mostLiveRounds, mostLater*p.out.Rounds)
}

// mostOrders bounds the orders of arms that runs go through.
const mostOrders = 16
