package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/plan"
	"github.com/sotto-dp/sotto/privacy"
)

// A Forecast is what sotto plan live says of a form, in a few words. It is simulated from what was typed alone, so it
// tells nothing of anybody.
type Forecast struct {
	Why     string // there is none, or empty
	Premise string
	Facts   []Fact
	Command string // which says more
}

// A Fact is a line of a forecast.
type Fact struct{ Label, Text string }

// How much is simulated for a form: one forecast at a time, on one processor, for some seconds.
const (
	forecastWithin = 6 * time.Second
	forecastRounds = 250_000   // of a run
	forecastWork   = 1_000_000 // of all runs of a row
	forecastMost   = 1e100     // of a reward: sums and squares are numbers still
)

// ForecastNew says of a form while it is filled in what Forecast has, as a fragment in JSON.
func (p *Pages) ForecastNew(w http.ResponseWriter, r *http.Request) error {
	n, _, x, err := p.readNew(w, r)
	if err != nil {
		return err
	}
	var out struct {
		HTML string `json:"html"`
	}
	if n.Wrong == nil {
		var html bytes.Buffer
		if err := p.templates["new.html"].ExecuteTemplate(&html, "forecast", p.forecast(r.Context(), n.Fields, x)); err != nil {
			return err
		}
		out.HTML = html.String()
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(out)
}

// forecast simulates a declaration that Check lets pass: by what the form expects, or by what the text does.
func (p *Pages) forecast(ctx context.Context, f map[string]string, x *decl.Experiment) *Forecast {
	if x == nil {
		return nil
	}
	number := func(name string, otherwise float64) float64 {
		if v, err := strconv.ParseFloat(f[name], 64); err == nil {
			return v
		}
		return otherwise
	}
	q := plan.Request{Live: *x, Traffic: x.Traffic, Gap: number("effect", x.Effect), Seed: 1, Workers: 1, Brief: true,
		Budgets: []privacy.Budget{x.Budget}}
	rate := number("rate", x.Rate)
	lo, hi := x.Range()
	switch {
	case x.Contextual != nil:
		return &Forecast{Why: "An experiment with contexts is forecast by sotto plan live"}
	case max(-lo, hi) > forecastMost:
		return &Forecast{Why: "Rewards of so large a range are not simulated"}
	case q.Traffic == 0:
		return &Forecast{Why: "Say how many decisions there are a day, and which difference matters to you: the forecast goes by these"}
	case q.Gap == 0:
		return &Forecast{Why: "Say which difference matters to you: the forecast goes by it"}
	case !(q.Gap > 0 && q.Gap <= hi-lo), rate != 0 && !(rate >= lo && rate+q.Gap <= hi):
		return &Forecast{Why: "The mean reward and the difference that matters must be in the range of a reward"}
	}
	command := fmt.Sprintf("sotto plan live %s.yaml --traffic %.6g/day --gap %.6g", x.Name, q.Traffic, q.Gap)
	if rate != 0 {
		q.Best = rate + q.Gap
		command += fmt.Sprintf(" --best %.6g", q.Best)
	} else if q.Best = (lo+hi)/2 + q.Gap/2; q.Best > hi {
		q.Best = hi
	}
	q.Days = min(plan.DefaultDays, forecastRounds/q.Traffic)
	rounds := q.Traffic * q.Days
	q.Runs = keyed.Count(min(50, max(5, forecastWork/rounds)))
	switch {
	case q.Traffic*x.Window.Hours()/24 > rounds/4 && q.Days < plan.DefaultDays:
		return &Forecast{Why: "So many decisions in a window take too long to simulate here", Command: command}
	case rounds < 2*float64(len(x.Arms)):
		return &Forecast{Why: "With so few decisions a day there is nothing to forecast"}
	}
	ctx, cancel := context.WithTimeout(ctx, forecastWithin)
	defer cancel()
	select {
	case p.forecasts <- struct{}{}:
		defer func() { <-p.forecasts }()
	case <-ctx.Done():
		return &Forecast{Why: "Another forecast is being made: check again", Command: command}
	}
	out, err := q.Run(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Forecast{Why: "It takes too long to forecast it here", Command: command}
	case err != nil:
		return &Forecast{Why: "There is no forecast: " + err.Error()}
	}
	return told(q, out, command)
}

// told is a forecast in words.
func told(q plan.Request, out *plan.Forecast, command string) *Forecast {
	row, unit := out.Rows[0], q.Live.Unit.Of
	f := &Forecast{Command: command, Premise: fmt.Sprintf("If the best arm earns %s a decision and the others %s, with %s decisions a "+
		"day over %s, simulated %d times", words.Number(q.Best), words.Number(q.Best-q.Gap), words.Short(q.Traffic), daysOf(out.Period),
		out.Runs)}
	add := func(label, format string, args ...any) {
		f.Facts = append(f.Facts, Fact{label, fmt.Sprintf(format, args...)})
	}
	after := func(d time.Duration) string {
		if d < 0 {
			return "not within " + daysOf(out.Period)
		}
		return fmt.Sprintf("after %s (%s decisions)", daysOf(d), words.Short(math.Round(q.Traffic*d.Hours()/24)))
	}
	add("First leader", "%s, with the first release", after(row.FirstRelease))
	label := "Conclusive"
	if out.Stops {
		label = "Answer"
	}
	switch {
	case row.KnownMedian < 0 && q.Days < plan.DefaultDays:
		add(label, "not within the %s that can be simulated here, in more than half of the runs", daysOf(out.Period))
	case row.KnownMedian < 0:
		add(label, "%s in more than half of the runs: choose a larger ε, a larger difference or more days", after(-1))
	default:
		plain := "without privacy " + after(out.Plain.KnownMedian)
		if notLater(row, out.Plain) {
			plain = fmt.Sprintf("no later than without privacy, as far as %d runs can tell", out.Runs)
		}
		add(label, "in half of the runs %s, in nine of ten %s; %s", after(row.KnownMedian), after(row.Known90), plain)
	}
	lost := words.Short(math.Round(row.Regret))
	cost := fmt.Sprintf("about %s rewards are lost in %s to decisions for other arms than the best", lost, daysOf(out.Period))
	if !q.Live.Split() && !out.Stops {
		cost += "; even shares would lose " + words.Short(math.Round(row.Uniform))
	}
	if more := math.Round(row.Regret - out.Plain.Regret); more > 2*math.Hypot(row.RegretSE, out.Plain.RegretSE) && more > 0 {
		cost += fmt.Sprintf("; %s of these are the price of privacy", words.Short(more))
	}
	add("Cost", "%s", cost)
	add("Privacy", "at most %s per %s", greek(fmt.Sprint(q.Live.Total())), unit)
	return f
}

// notLater says that runs do not tell when a page is conclusive from when it is without privacy, which is no later:
// their medians are the other way round, or their means are within twice the standard error of the difference. That is
// NaN unless all runs are conclusive.
func notLater(row, plain plan.Row) bool {
	return plain.KnownMedian < 0 || row.KnownMedian <= plain.KnownMedian ||
		row.KnownMean-plain.KnownMean <= 2*math.Hypot(row.KnownSE, plain.KnownSE)
}

// daysOf writes a time in the unit that fits.
func daysOf(d time.Duration) string {
	unit, name := 24*time.Hour, "day"
	switch {
	case d < 2*time.Minute:
		unit, name = time.Second, "second"
	case d < 2*time.Hour:
		unit, name = time.Minute, "minute"
	case d < 2*unit:
		unit, name = time.Hour, "hour"
	}
	n, digits := float64(d)/float64(unit), 2
	if n >= 10 {
		n, digits = math.Round(n), -1
	}
	text := strconv.FormatFloat(n, 'g', digits, 64)
	if text == "1" {
		return "1 " + name
	}
	return text + " " + name + "s"
}
