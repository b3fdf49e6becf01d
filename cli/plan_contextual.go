package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/plan"
)

// contextual is Run for an experiment with contexts.
func (c *planLive) contextual(ctx context.Context, s streams, q plan.Request, w *wait) error {
	from := time.Now()
	q.ContextualProgress = func(r plan.ContextualRow) {
		text := budgetText(r.Budget.String())
		if r.Setting != "" {
			text += ", " + r.Setting
		}
		w.step(fmt.Sprintf("%s, d = %d  [%s]", text, r.Dim, time.Since(from).Round(100*time.Millisecond)))
	}
	f, err := q.RunContextual(ctx)
	w.end()
	switch {
	case errors.Is(err, plan.ErrPlan), errors.Is(err, keyed.ErrSpec):
		return usage(err)
	case err != nil:
		return stopped(err)
	case c.JSON:
		return printJSON(s, contextualForecastOf(q.Traffic, f))
	}
	return printContextual(s.out, q, f)
}

func printContextual(out io.Writer, q plan.Request, f *plan.ContextualForecast) error {
	fmt.Fprintf(out, "%s: %s, d = %d, %s; a uniform choice earns %.4g a decision, the best one %.4g\n",
		q.Live.Name, f.Policy, f.Dim, words.Several(f.Actions, "action"), f.Uniform, f.Best)
	fmt.Fprintf(out, "%s decisions a day for %s: %d, of which %d in a window of %s; %s a row\n\n",
		words.Short(q.Traffic), span(f.Period), f.Rounds, f.Window, span(q.Live.Window),
		words.Several(f.Runs, "run"))
	w := report.NewColumns(out)
	line := func(name string, r plan.ContextualRow) {
		enough := "–"
		if r.Enough >= 0 {
			enough = twoDigits(r.Enough)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%.4g\t%s ± %.1f\t%s\t%s\t%s\n", name, r.Dim,
			span(r.FirstRelease), r.Releases, r.Reward, share(r.Won), 100*r.WonSE, share(r.Lost),
			share(r.LostReward), enough)
	}
	const head = "d\tfirst release\treleases\treward\twon\tlost\tof reward\tenough"
	fmt.Fprintln(w, "budget\t"+head)
	for _, r := range append(append([]plan.ContextualRow{}, f.Rows...), f.Plain) {
		line(budgetText(r.Budget.String()), r)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, part := range []struct {
		title, name string
		rows        []plan.ContextualRow
	}{{"Other parameters", "policy", f.Settings}, {"Smaller maps", "features", f.Smaller}} {
		if len(part.rows) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s at %s\n", part.title, budgetText(q.Live.Budget.String()))
		fmt.Fprintln(w, part.name+"\t"+head)
		for _, r := range part.rows {
			line(r.Setting, r)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if err := printWon(out, f); err != nil {
		return err
	}
	for _, a := range f.Advice {
		fmt.Fprintln(out, "→ "+a)
	}
	_, err := fmt.Fprintf(out, "\nwon: what decisions earn above uniform ones, of what the best would; "+
		"lost: the share of it that privacy\ncosts, beside that of the whole reward; enough: decisions from "+
		"which on lost is less than %.0f %%. Worlds are\ngenerated from the map: all values as often, means "+
		"linear in the vector, all actions in every decision; yours\nwill differ.\n", 100*plan.CostShare)
	return err
}

// printWon tells what is won as time goes on.
func printWon(out io.Writer, f *plan.ContextualForecast) error {
	rows := append(append([]plan.ContextualRow{}, f.Rows...), f.Plain)
	if f.Better >= 0 {
		rows = append(rows, f.Settings[f.Better])
	}
	w := report.NewColumns(out)
	fmt.Fprint(w, "\nWon until decision\nbudget")
	n := len(f.Plain.Course)
	var at []int
	for i := (n - 1) % 5; i < n; i += 5 {
		at = append(at, i)
		fmt.Fprint(w, "\t"+words.Short(float64(f.Plain.Course[i].Decisions)))
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		name := budgetText(r.Budget.String())
		if r.Setting != "" {
			name += ", " + r.Setting
		}
		fmt.Fprint(w, name)
		for _, i := range at {
			fmt.Fprint(w, "\t"+share(r.Course[i].All))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// twoDigits is a number of decisions to two digits.
func twoDigits(n int) string {
	x, _ := strconv.ParseFloat(strconv.FormatFloat(float64(n), 'g', 2, 64), 64) // it is a number
	return words.Short(x)
}

// share is a share in percent, – if there is none.
func share(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", math.Round(100*x)+0) // not −0
}

// contextualForecastJSON is a forecast as programs read it. Times are in days, null for never.
type contextualForecastJSON struct {
	Policy         string              `json:"policy"`
	Dim            int                 `json:"dim"`
	Actions        int                 `json:"actions"`
	Best           float64             `json:"best_reward"`
	Uniform        float64             `json:"uniform_reward"`
	Traffic        float64             `json:"decisions_per_day"`
	Days           float64             `json:"days"`
	Decisions      int                 `json:"decisions"`
	Window         int                 `json:"decisions_per_window"`
	Runs           int                 `json:"runs"`
	Rows           []contextualRowJSON `json:"rows"`
	WithoutPrivacy contextualRowJSON   `json:"without_privacy"`
	Settings       []contextualRowJSON `json:"settings"`
	Better         any                 `json:"better"` // the setting, null if none is
	Smaller        []contextualRowJSON `json:"smaller"`
	Enough         any                 `json:"enough_decisions"` // null: not in searched_decisions
	Searched       int                 `json:"searched_decisions"`
	Advice         []string            `json:"advice"`
}

type contextualRowJSON struct {
	Budget       string                `json:"budget"`
	Setting      string                `json:"setting,omitempty"`
	Dim          int                   `json:"dim"`
	FirstRelease any                   `json:"first_release"`
	Releases     float64               `json:"releases"`
	Reward       float64               `json:"reward"`
	Won          float64               `json:"won"`
	WonSE        float64               `json:"won_standard_error"`
	Lost         any                   `json:"lost"`
	LostReward   any                   `json:"lost_of_reward"`
	Enough       any                   `json:"enough_decisions"` // null: not in the period
	Course       []contextualPointJSON `json:"course"`
}

type contextualPointJSON struct {
	Decisions int     `json:"decisions"`
	Won       float64 `json:"won_since_the_point_before"`
	All       float64 `json:"won"`
}

func contextualForecastOf(traffic float64, f *plan.ContextualForecast) contextualForecastJSON {
	count := func(n int) any {
		if n < 0 {
			return nil
		}
		return n
	}
	row := func(r plan.ContextualRow) contextualRowJSON {
		out := contextualRowJSON{Budget: r.Budget.String(), Setting: r.Setting, Dim: r.Dim,
			FirstRelease: dayOf(r.FirstRelease), Releases: r.Releases, Reward: r.Reward, Won: r.Won,
			WonSE: r.WonSE, Lost: numberOf(r.Lost), LostReward: numberOf(r.LostReward), Enough: count(r.Enough)}
		for _, x := range r.Course {
			out.Course = append(out.Course, contextualPointJSON(x))
		}
		return out
	}
	rows := func(of []plan.ContextualRow) []contextualRowJSON {
		out := []contextualRowJSON{}
		for _, r := range of {
			out = append(out, row(r))
		}
		return out
	}
	out := contextualForecastJSON{Policy: f.Policy, Dim: f.Dim, Actions: f.Actions, Best: f.Best,
		Uniform: f.Uniform, Traffic: traffic, Days: f.Period.Hours() / 24, Decisions: f.Rounds,
		Window: f.Window, Runs: f.Runs, Rows: rows(f.Rows), WithoutPrivacy: row(f.Plain),
		Settings: rows(f.Settings), Smaller: rows(f.Smaller), Enough: count(f.Enough), Searched: f.Searched,
		Advice: f.Advice}
	if f.Better >= 0 {
		out.Better = f.Settings[f.Better].Setting
	}
	return out
}
