package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/plan"
	"github.com/sotto-dp/sotto/privacy"
)

type planLive struct {
	File    string        `arg:"" help:"Live experiment in YAML; - reads standard input."`
	Traffic flags.Rate    `required:"" help:"${planLiveTraffic}" placeholder:"N/day"`
	Arms    flags.Numbers `in:"(-inf,inf)" help:"${planLiveArms}" placeholder:"MEAN,…" group:"The arms, one of:"`
	Gap     flags.Number  `in:"(0,inf)" help:"${planLiveGap}" placeholder:"Δ" group:"The arms, one of:"`
	Best    flags.Number  `help:"${planLiveBest}" placeholder:"MEAN"`
	Epsilon flags.Numbers `in:"(0,inf)" help:"${planLiveEpsilon}" placeholder:"ε,…"`
	Rho     flags.Numbers `in:"(0,inf)" help:"${planLiveRho}" placeholder:"ρ,…"`
	Days    flags.Number  `in:"(0,36600]" help:"${planLiveDays}" placeholder:"D"`
	Runs    flags.Count   `in:"[2,1e6]" help:"${planLiveRuns}" placeholder:"N"`
	Seed    flags.Seed    `default:"1" help:"Seed of all randomness." placeholder:"S"`
	Workers flags.Workers `help:"${planLiveWorkers}" placeholder:"W"`
	JSON    bool          `help:"As JSON, for programs."`
}

// planLiveTexts are help texts that are too long for their flags.
var planLiveTexts = kong.Vars{
	"planLiveTraffic": "How many decisions there will be that count: 10000/day, 400/hour, 7/minute or " +
		"2/second, evenly over " +
		"the day. A number alone is a day's.",
	"planLiveArms": "Means of the arms' rewards, in the order of the file. A reward that does " +
		"not come counts the " +
		"default: its share is in the mean.",
	"planLiveGap": "By how much the best arm is better than the others, which are equal; with " +
		"contexts, the best choices than uniform ones.",
	"planLiveBest": "Mean of the best arm, or of the best choices, beside --gap; if not given half a " +
		"gap above the middle of the range.",
	"planLiveEpsilon": "Budgets of a unit to compare, in ε; a quarter of the declared one, it, " +
		"and four times it.",
	"planLiveRho":  "The same in ρ, for experiments whose budget is.",
	"planLiveDays": "How long it lasts; if not given from the declared start to the end, or 28 days.",
	"planLiveRuns": "Simulated experiments at each budget; if not given 20 to 200, with contexts 4 to 20, by " +
		"how long they are. Of 200 the median is within the 43 % and the 57 % quantile.",
	"planLiveWorkers": "Runs played at a time; answers do not depend on it. 0 is one a processor.",
	"plan live": `Examples:
  sotto plan live shop.yaml --traffic 10000/day --gap 0.05
  sotto plan live shop.yaml --traffic 400/hour --arms 0.11,0.1 --epsilon 0.3,1,3 --days 14
  sotto plan live front.yaml --traffic 10000/day --gap 0.03 --best 0.08 --rho 0.1,1,10

The answer is the page's verdict: when it says "conclusive" for the first time, in half
and in 90 % of the runs. A policy that adapts is held against an A/B test of the same
arms: what it saves in lost rewards, and how much later it knows.

An experiment with contexts is simulated in generated worlds of its map, with its
window and floor, and the answer says whether there is traffic enough for so many
components, what privacy costs, and what to do if it is too much. One whose rewards
the service does not see (trust) has the noise that goes with it, and beside it what
would be lost if the service were believed.`,
}

func (c *planLive) question(s streams) (plan.Request, error) {
	q := plan.Request{Means: c.Arms.X, Gap: c.Gap.X, Best: c.Best.X, Traffic: c.Traffic.Day,
		Days: c.Days.X, Runs: keyed.Count(c.Runs), Seed: c.Seed.X, Workers: int(c.Workers)}
	switch {
	case (c.Arms.X != nil) == c.Gap.Set:
		return q, errors.New("want one of --arms and --gap")
	case c.Best.Set && !c.Gap.Set:
		return q, errors.New("--best goes with --gap")
	}
	for _, x := range c.Epsilon.X {
		q.Budgets = append(q.Budgets, privacy.Pure{Epsilon: x})
	}
	for _, x := range c.Rho.X {
		q.Budgets = append(q.Budgets, privacy.ZCDP{Rho: x})
	}
	spec, live, file, err := readAny(c.File, s)
	switch {
	case err != nil:
		return q, err
	case spec != nil:
		return q, fmt.Errorf("%s is an experiment for sotto run, must be a live one: sotto schema live has "+
			"its keys", file)
	}
	q.Live = *live
	if _, pure := live.Budget.(privacy.Pure); c.Epsilon.X != nil && !pure {
		return q, fmt.Errorf("--epsilon is for experiments with a budget in ε alone, and %s has %v", file,
			live.Budget)
	}
	if _, rho := live.Budget.(privacy.ZCDP); c.Rho.X != nil && !rho {
		return q, fmt.Errorf("--rho is for experiments with a budget in ρ, and %s has %v", file, live.Budget)
	}
	if live.Contextual != nil && c.Arms.X != nil {
		return q, fmt.Errorf("--arms is for experiments with arms, and %s has contexts: give --gap", file)
	}
	return q, nil
}

func (c *planLive) Run(ctx context.Context, s streams) error {
	q, err := c.question(s)
	if err != nil {
		return usage(err)
	}
	from := time.Now()
	w := waiting(s, "plan live", 0)
	q.Begun = w.of
	q.Progress = func(r plan.Row) {
		w.step(fmt.Sprintf("%s  [%s]", liveRowText(r), time.Since(from).Round(100*time.Millisecond)))
	}
	if q.Live.Contextual != nil {
		return c.contextual(ctx, s, q, w)
	}
	f, err := q.Run(ctx)
	w.end()
	switch {
	case errors.Is(err, plan.ErrPlan), errors.Is(err, decl.ErrSpec):
		return usage(err)
	case err != nil:
		return stopped(err)
	case c.JSON:
		return printJSON(s, forecastOf(q, f))
	}
	return printForecast(s.out, q, f)
}

func liveRowText(r plan.Row) string {
	text := budgetText(r.Budget.String())
	if r.First > 0 {
		text += fmt.Sprintf(", first: %d", r.First)
	}
	return text
}

// span is a time in two units at most; – for what never is.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "–"
	case d >= 100*day:
		return fmt.Sprintf("%.0f d", d.Hours()/24)
	case d >= 2*day:
		return fmt.Sprintf("%.3g d", d.Hours()/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.3g h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.3g min", d.Minutes())
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

func printForecast(out io.Writer, q plan.Request, f *plan.Forecast) error {
	rows := append(append([]plan.Row{}, f.Rows...), f.Plain)
	fmt.Fprintf(out, "%s: %s, %s\n", q.Live.Name, cmp.Or(q.Live.Picked, f.Policy), f.Arms)
	fmt.Fprintf(out, "%s decisions a day for %s: %d, of which %d in a window of %s; %s a row\n\n",
		words.Short(q.Traffic), span(f.Period), f.Rounds, f.Window, span(q.Live.Window),
		words.Several(f.Runs, "run"))
	w := report.NewColumns(out)
	known := "conclusive\t90 %\tnot yet"
	if f.Stops {
		known = "answer\tmean\t90 %\tno answer\twrong"
	}
	fmt.Fprintf(w, "budget\tfirst release\t%s\tlost rewards\tuniform\t× none\n", known)
	line := func(name string, r plan.Row) {
		times := "–"
		if f.Plain.Regret > 0 {
			times = fmt.Sprintf("%.2f", r.Regret/f.Plain.Regret)
		}
		fmt.Fprintf(w, "%s\t%s\t", name, span(r.FirstRelease))
		if f.Stops {
			mean := "–"
			if r.Unknown == 0 {
				mean = fmt.Sprintf("%.3g ± %.2g d", r.KnownMean, r.KnownSE)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t", span(r.KnownMedian), mean, span(r.Known90),
				percent(r.Unknown, f.Runs), percent(r.Wrong, f.Runs))
		} else {
			fmt.Fprintf(w, "%s\t%s\t%s\t", after(q, r.KnownMedian), after(q, r.Known90), percent(r.Unknown, f.Runs))
		}
		fmt.Fprintf(w, "%s\t%.4g\t%s\n", lost(r), r.Uniform, times)
	}
	for i, r := range rows {
		if i == len(f.Rows) && f.Central != nil {
			line(budgetText(f.Central.Budget.String())+", trust central", *f.Central)
		}
		line(budgetText(r.Budget.String()), r)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if f.Central != nil {
		fmt.Fprintf(out, "\nThe noise is that of trust %s, as if every decision were reported; trust central: "+
			"were the service believed with rewards.\n", q.Live.TrustModel())
	}
	if err := printCells(out, q.Live); err != nil {
		return err
	}
	if !q.Live.Start.IsZero() {
		printDates(out, q.Live, f)
	}
	if !f.Stops && !q.Live.Split() {
		if err := errors.Join(printAgainst(out, q, f), printCourse(out, rows)); err != nil {
			return err
		}
	}
	if len(f.Firsts) > 0 {
		fmt.Fprintf(out, "\nFirst batch of an arm at %s, %d arms in a window of %d decisions\n",
			budgetText(q.Live.Budget.String()), len(q.Live.Arms), f.Window)
		fmt.Fprintf(w, "%s\tfirst release\t%s\tlost rewards\tuniform\t× none\n", f.FirstParam, known)
		best := f.Firsts[0]
		for _, r := range f.Firsts {
			name := "declared"
			if r.First > 0 {
				name = fmt.Sprint(r.First)
			}
			line(name, r)
			if r.Regret < best.Regret {
				best = r
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		switch name := fmt.Sprintf("%s: %d", f.FirstParam, best.First); {
		case best.First == 0:
			fmt.Fprintln(out, "The declared first batch loses least of these.")
		case f.Firsts[0].Regret-best.Regret < 2*math.Hypot(f.Firsts[0].RegretSE, best.RegretSE):
			fmt.Fprintf(out, "%s loses least of these, and these runs do not tell it from the "+
				"declared one.\n", name)
		default:
			fmt.Fprintf(out, "%s loses least of these: every batch waits for a window, and small "+
				"ones are many.\n",
				name)
		}
	}
	if err := printSafety(out, q); err != nil {
		return err
	}
	return notesOfForecast(out, q, f)
}

// printCells says what cells cost: in noise, and in decisions of a joint batch.
func printCells(out io.Writer, l decl.Experiment) error {
	of, err := l.PlayCells()
	if err != nil || of.Count == 0 {
		return err
	}
	times, batches := words.Number(math.Sqrt(float64(of.Count))), ""
	if l.Split() {
		batches = ", and a batch has " + times + " times as many decisions"
	}
	_, err = fmt.Fprintf(out, "\nBy %s: a total is the sum of up to %d cells, with up to %s times the noise of one release%s. "+
		"A cell is released for itself with %d decisions or more.\n", l.By.Key, of.Count, times, batches, of.Least)
	return err
}

// printSafety says how many decisions guards need, and what a ramp waits for. It simulates nothing: sums are as they
// are expected.
func printSafety(out io.Writer, q plan.Request) error {
	l := &q.Live
	if len(l.Guard) == 0 && len(l.Ramp) == 0 {
		return nil
	}
	share, most := 1/float64(len(l.Arms)), 0
	for _, s := range l.Shares {
		share = min(share, s)
	}
	never := false
	w := report.NewColumns(out)
	if len(l.Guard) > 0 {
		fmt.Fprintf(w, "\nguard\tmean\treleased decisions of an arm\tthen it\n")
	}
	for _, g := range l.Guard {
		m, lo, hi := l.Of(g)
		keeps := (lo + g.Bound) / 2
		if g.Side == decl.Above {
			keeps = (hi + g.Bound) / 2
		}
		means := []float64{keeps}
		if m < 0 && q.Means != nil {
			means = slices.Compact(slices.Sorted(slices.Values(q.Means)))
		}
		for _, mean := range means {
			n, err := l.GuardNeeds(g, mean, share)
			if err != nil {
				return err
			}
			then, needs := "keeps the bound", words.Whole(n)
			if (mean < g.Bound) != (g.Side == decl.Below) {
				then = "is paused"
			} else if most = max(most, n); n == 0 {
				never = true
			}
			if n == 0 {
				needs = "–"
			}
			fmt.Fprintf(w, "%s %s %v\t%.4g\t%s\t%s\n", g.Metric, g.Side, g.Bound, mean, needs, then)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(l.Ramp) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	had, spent, late := 0.0, time.Duration(0), 0.0 // decisions of an arm
	full := l.Ramp[len(l.Ramp)-1].Share
	for i, s := range l.Ramp[:len(l.Ramp)-1] {
		rate := q.Traffic * s.Share / full * share
		last, needs := s.For, time.Duration(0)
		if left := float64(most) - had; left > 0 {
			needs = time.Duration(left/rate*float64(24*time.Hour)) + l.Window
		}
		last = max(last, needs)
		had, spent, late = had+rate*last.Hours()/24, spent+last, late+float64(float64(last)*(1-s.Share/full))
		if never {
			_, err := fmt.Fprintf(out, "The ramp stays at %v: an arm of these means is never surely within a guard.\n", s.Share)
			return err
		}
		fmt.Fprintf(out, "ramp: %v of units for %s, at least %s, then %v\n", s.Share, span(last), span(s.For), l.Ramp[i+1].Share)
	}
	_, err := fmt.Fprintf(out, "ramp: %v of units after %s. A step waits until each arm surely keeps each guard; arms that get "+
		"less than %.3g of the decisions take longer. Days above are at the last share: this ramp makes them %s later.\n",
		full, span(spent), share, span(time.Duration(late)))
	return err
}

// printDates tells of the declared budget when things will be, from the declared start on.
func printDates(out io.Writer, l decl.Experiment, f *plan.Forecast) {
	date := func(d time.Duration) string {
		if d < 0 {
			return "not by " + l.Start.Add(f.Period).UTC().Format(time.DateOnly)
		}
		return l.Start.Add(d).UTC().Format("2006-01-02 15:04")
	}
	what := "conclusive"
	if f.Stops {
		what = "answer"
	}
	for _, r := range f.Rows {
		if r.Budget.String() != l.Budget.String() {
			continue
		}
		fmt.Fprintf(out, "\nAt %s from the start on %s: first release %s, %s in half of the runs %s, in 90 %% %s (UTC).\n",
			budgetText(r.Budget.String()), date(0), date(r.FirstRelease), what, date(r.KnownMedian), date(r.Known90))
	}
}

// visitors are the decisions that there are in a time.
func visitors(q plan.Request, d time.Duration) float64 { return math.Round(q.Traffic * d.Hours() / 24) }

// after is a time in decisions and days.
func after(q plan.Request, d time.Duration) string {
	if d < 0 {
		return "–"
	}
	n, _ := strconv.ParseFloat(fmt.Sprintf("%.3g", visitors(q, d)), 64) // it is a number
	return fmt.Sprintf("%s (%s)", words.Short(n), span(d))
}

func lost(r plan.Row) string {
	if r.RegretSE == 0 {
		return fmt.Sprintf("%.4g", r.Regret)
	}
	return fmt.Sprintf("%.4g ± %.2g", r.Regret, r.RegretSE)
}

// printAgainst holds a policy that adapts against an A/B test: what that costs in time to know, and saves.
func printAgainst(out io.Writer, q plan.Request, f *plan.Forecast) error {
	if f.Plain.Split == nil {
		return nil
	}
	fmt.Fprintln(out, "\nAgainst an A/B test of the same arms: policy split, even shares, planned for this difference")
	w := report.NewColumns(out)
	fmt.Fprintf(w, "budget\tconclusive\tA/B test\t90 %%\tA/B test\tlost rewards\tA/B test\tuntil it knows\n")
	said := ""
	for _, r := range append(append([]plan.Row{}, f.Rows...), f.Plain) {
		test := r.Split
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.4g\n", budgetText(r.Budget.String()), after(q, r.KnownMedian),
			after(q, test.KnownMedian), after(q, r.Known90), after(q, test.Known90), lost(r), lost(*test), test.Until)
		if r.Budget.String() != q.Live.Budget.String() {
			continue
		}
		knows := fmt.Sprintf("Half of its runs are not conclusive by then, and half of the A/B test's are after %s",
			span(test.KnownMedian))
		if r.KnownMedian >= 0 && test.KnownMedian > 0 {
			knows = fmt.Sprintf("Half of its runs are conclusive after %s, %.2g times as long as the A/B test's",
				span(r.KnownMedian), float64(r.KnownMedian)/float64(test.KnownMedian))
		}
		said = fmt.Sprintf("At %s %s loses %.4g rewards in %s. %s.\nThe A/B test loses %.4g, or %.4g if everybody is given its "+
			"answer as soon as it is conclusive.\n", budgetText(r.Budget.String()), f.Policy, r.Regret, span(f.Period), knows,
			test.Regret, test.Until)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, said)
	return err
}

func percent(n, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(of)) }

// printCourse tells which share the best arm has as time goes on.
func printCourse(out io.Writer, rows []plan.Row) error {
	w := report.NewColumns(out)
	fmt.Fprintln(out, "\nDecisions for the best arm, just before")
	var at []int
	n := len(rows[0].Course)
	for part := 32; part >= 1; part /= 2 {
		if i := n/part - 1; i >= 0 && (len(at) == 0 || i > at[len(at)-1]) {
			at = append(at, i)
		}
	}
	fmt.Fprint(w, "budget")
	for _, i := range at {
		fmt.Fprint(w, "\t"+span(rows[0].Course[i].After))
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprint(w, budgetText(r.Budget.String()))
		for _, i := range at {
			fmt.Fprintf(w, "\t%.0f %%", 100*r.Course[i].Share)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func notesOfForecast(out io.Writer, q plan.Request, f *plan.Forecast) error {
	what := fmt.Sprintf("conclusive: decisions, and time, until the page's verdict says so for the first time, in half and "+
		"in 90 %% of the runs; not yet, –: not in %s decisions", words.Short(float64(f.Plain.Searched)))
	wrong := f.Plain.Wrong
	for _, r := range f.Rows {
		wrong = max(wrong, r.Wrong)
	}
	if f.Stops {
		what = "answer: when the rule has stopped; median, mean ± standard error and 90 % of the runs; –: not in " +
			span(f.Period)
	} else if wrong > 0 {
		what += fmt.Sprintf(". Of the wrong arm in %d of %d runs of a row at most", wrong, f.Runs)
	}
	for _, text := range f.Advice {
		if _, err := fmt.Fprintf(out, "\nNote: %s.\n", text); err != nil {
			return err
		}
	}
	if len(q.Live.Metrics) > 0 {
		what += ". All is of the reward, whose budget is its own: metrics have theirs beside it"
	}
	_, err := fmt.Fprintf(out, "\n%s.\nlost rewards: mean ± standard error of what decisions for other arms than the best "+
		"one lose in %s, beside that of as many uniform decisions; none: the same policy without noise.\n"+
		"Simulated by the code that plays live, with its window and floor; every reward comes in "+
		"its window, and varies as much as its range allows.\n", what, span(f.Period))
	return err
}

// forecastJSON is a forecast as programs read it. Times are in days, null for never.
type forecastJSON struct {
	Arms           string        `json:"arms"`
	Policy         string        `json:"policy"`
	Stops          bool          `json:"stops"`
	Traffic        float64       `json:"decisions_per_day"`
	Days           float64       `json:"days"`
	Decisions      int           `json:"decisions"`
	Window         int           `json:"decisions_per_window"`
	Runs           int           `json:"runs"`
	Rows           []liveRowJSON `json:"rows"`
	WithoutPrivacy liveRowJSON   `json:"without_privacy"`
	Central        *liveRowJSON  `json:"trust_central,omitempty"` // where rewards are not seen
	FirstParam     string        `json:"first_batch_parameter,omitempty"`
	Firsts         []liveRowJSON `json:"first_batches,omitempty"`
	Planned        *liveRowJSON  `json:"with_effect_and_rate,omitempty"`
	Floor          float64       `json:"floor_that_would_do,omitempty"` // with which the row is
	Floored        *liveRowJSON  `json:"with_that_floor,omitempty"`
	Advice         []string      `json:"advice,omitempty"`
}

type liveRowJSON struct {
	Budget       string          `json:"budget"`
	First        int             `json:"first_batch,omitempty"` // not there: as declared
	FirstRelease any             `json:"first_release"`
	KnownMedian  any             `json:"known_median"` // when the verdict is conclusive, or a rule has stopped
	Known90      any             `json:"known_q90"`
	KnownMean    any             `json:"known_mean"`
	KnownSE      any             `json:"known_standard_error"`
	Decisions    any             `json:"known_median_decisions"`
	Decisions90  any             `json:"known_q90_decisions"`
	Searched     int             `json:"decisions_searched"`
	Unknown      int             `json:"not_known"`
	Wrong        int             `json:"wrong"`
	Regret       float64         `json:"lost_rewards"`
	RegretSE     float64         `json:"lost_rewards_standard_error"`
	Uniform      float64         `json:"lost_by_uniform"`
	Releases     float64         `json:"releases"`
	Course       []livePointJSON `json:"course,omitempty"`
	Until        float64         `json:"lost_rewards_until_known,omitempty"` // of an A/B test
	Split        *liveRowJSON    `json:"ab_test,omitempty"`                  // of the same arms, beside a policy that adapts
}

type livePointJSON struct {
	Day    float64 `json:"day"`
	Share  float64 `json:"share_of_best"`
	Regret float64 `json:"lost_rewards"`
}

// dayOf is a time in days, nil for never.
func dayOf(d time.Duration) any {
	if d < 0 {
		return nil
	}
	return d.Hours() / 24
}

// numberOf is a number, nil if it is none.
func numberOf(x float64) any {
	if math.IsNaN(x) {
		return nil
	}
	return x
}

func forecastOf(q plan.Request, f *plan.Forecast) forecastJSON {
	decisions := func(d time.Duration) any {
		if d < 0 {
			return nil
		}
		return visitors(q, d)
	}
	var row func(r plan.Row) liveRowJSON
	maybe := func(r *plan.Row) *liveRowJSON {
		if r == nil {
			return nil
		}
		out := row(*r)
		return &out
	}
	row = func(r plan.Row) liveRowJSON {
		out := liveRowJSON{r.Budget.String(), r.First, dayOf(r.FirstRelease), dayOf(r.KnownMedian),
			dayOf(r.Known90), numberOf(r.KnownMean), numberOf(r.KnownSE), decisions(r.KnownMedian),
			decisions(r.Known90), r.Searched, r.Unknown, r.Wrong, r.Regret, r.RegretSE, r.Uniform, r.Releases, nil,
			r.Until, maybe(r.Split)}
		for _, p := range r.Course {
			out.Course = append(out.Course, livePointJSON{p.After.Hours() / 24, p.Share, p.Regret})
		}
		return out
	}
	out := forecastJSON{Arms: f.Arms, Policy: f.Policy, Stops: f.Stops, Traffic: q.Traffic,
		Days: f.Period.Hours() / 24, Decisions: f.Rounds, Window: f.Window, Runs: f.Runs,
		WithoutPrivacy: row(f.Plain), FirstParam: f.FirstParam, Central: maybe(f.Central),
		Planned: maybe(f.Planned), Floored: maybe(f.Floored), Advice: f.Advice}
	if f.Floored != nil {
		out.Floor = f.Floor
	}
	for _, r := range f.Rows {
		out.Rows = append(out.Rows, row(r))
	}
	for _, r := range f.Firsts {
		out.Firsts = append(out.Firsts, row(r))
	}
	return out
}
