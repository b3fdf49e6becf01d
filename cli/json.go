package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/lab/paper"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/trial"
	"github.com/sotto-dp/sotto/trial/stopping"
)

// Results as programs read them. They say what the texts say: of real data nothing but what was
// released.

func printJSON(s streams, v any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// finiteOrNil is null for what is no number.
func finiteOrNil(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// resultsJSON is an experiment's summary at the end of its runs.
type resultsJSON struct {
	Experiment string           `json:"experiment"`
	Directory  string           `json:"directory,omitempty"`
	Rows       []map[string]any `json:"rows"` // of summary.csv, the last of each metric of a cell
}

// printResults prints the end of what summary.csv in a directory has.
func printResults(s streams, dir, name string, kept bool) error {
	f, err := os.Open(filepath.Join(dir, "summary.csv"))
	if err != nil {
		return err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) == 0 {
		return fmt.Errorf("%s: no summary: %w", f.Name(), err)
	}
	out, at := resultsJSON{Experiment: name, Rows: []map[string]any{}}, map[string]int{}
	if kept {
		out.Directory = dir
	}
	for _, line := range lines[1:] {
		row, key := map[string]any{}, ""
		for i, value := range line {
			column := lines[0][i]
			x, err := strconv.ParseFloat(value, 64)
			switch {
			case value == "":
				row[column] = nil
			case err == nil && finiteOrNil(x) != nil:
				row[column] = x
			default:
				row[column] = value
			}
			switch column {
			case "instance", "policy", "budget", "metric":
				row[column] = value
				key += value + "\x00"
			}
		}
		if i, ok := at[key]; ok {
			out.Rows[i] = row
			continue
		}
		at[key] = len(out.Rows)
		out.Rows = append(out.Rows, row)
	}
	return printJSON(s, out)
}

// dataJSON is what real data were: their sizes, which the guarantee takes for public.
type dataJSON struct {
	Rows    int  `json:"rows"`
	People  int  `json:"people,omitempty"`
	Skipped int  `json:"rows_without_reward,omitempty"`
	InOrder bool `json:"in_order"`
}

func dataOf(log logged.Summary, f logged.Format) *dataJSON {
	return &dataJSON{log.Rows, log.People, log.Skipped, f.InOrder}
}

// ruleJSON is a rule for the best arm.
type ruleJSON struct {
	Rule      string     `json:"rule"`
	Guarantee string     `json:"guarantee"`
	Epsilon   *float64   `json:"epsilon"` // null: not private
	Risk      float64    `json:"risk"`
	Range     [2]float64 `json:"range"`
	// null: there is none
	LowerBound *float64 `json:"lower_bound"`
}

func ruleOf(r trial.Rule, means []float64, lo, hi float64) ruleJSON {
	out := ruleJSON{r.Name(), promise(r), finiteOrNil(r.Epsilon()), r.Risk(), [2]float64{lo, hi}, nil}
	for _, m := range means {
		if math.IsNaN(m) {
			return out
		}
	}
	if least, err := r.LowerBound(means, lo, hi); err == nil {
		out.LowerBound = &least
	}
	return out
}

type trialJSON struct {
	ruleJSON
	Answer    *string    `json:"answer"` // null: none
	Plays     int        `json:"plays"`
	Batches   int        `json:"batches"`
	Arms      []armJSON  `json:"arms"`
	Data      *dataJSON  `json:"data,omitempty"`
	Simulated *worldJSON `json:"simulated,omitempty"`
	// of a transcript: its plays and its answer follow from its releases
	Replayed string `json:"replayed,omitempty"`
}

type worldJSON struct {
	Means []float64 `json:"means"`
	Right *bool     `json:"right"` // null: no answer
}

type armJSON struct {
	Name  string   `json:"name"`
	Plays int      `json:"plays"`
	Mean  *float64 `json:"mean"`            // private; null: nothing was released
	Noise float64  `json:"noise_deviation"` // of the mean
	// of the mean, at 95 % for all arms together and at all times; null: there is none
	Interval *[2]float64 `json:"interval"`
	// of the mean less that of the answer, or of the largest mean, at 95 % for all pairs of arms
	// together and at all times; null for that arm itself, and where there is none
	Difference *[2]float64 `json:"difference"`
}

// trialOf is one trial; means are those of a simulated one.
func trialOf(rule trial.Rule, names []string, means []float64, r trial.Result, lo, hi float64) trialJSON {
	out := trialJSON{Plays: r.Tau, Batches: r.Batches}
	if r.Answer >= 0 {
		out.Answer = &names[r.Answer]
	}
	of, differences := means, trialDifferences(r, lo, hi)
	table := interval.Table{Arms: len(names), Lo: lo, Hi: hi}
	for a, name := range names {
		m := r.Means[a]
		x := math.NaN()
		if m.N > 0 {
			x = m.Value
		}
		if means == nil {
			of = append(of, x)
		}
		out.Arms = append(out.Arms, armJSON{name, r.Plays[a], finiteOrNil(x), m.Noise,
			table.Mean(m.Released), differences[a]})
	}
	out.ruleJSON = ruleOf(rule, of, lo, hi)
	return out
}

type studyJSON struct {
	ruleJSON
	Means      []float64  `json:"means"`
	Runs       int        `json:"runs"`
	Wrong      int        `json:"wrong"`
	Interval   [2]float64 `json:"wrong_interval"`
	Capped     int        `json:"capped"`
	Plays      tauJSON    `json:"plays"`
	Allocation []float64  `json:"allocation"`
	Batches    float64    `json:"batches_mean"`
	BatchesMax float64    `json:"batches_max"`
}

type tauJSON struct {
	Mean   float64 `json:"mean"`
	SE     float64 `json:"standard_error"`
	Median float64 `json:"median"`
	Q90    float64 `json:"q90"`
	Max    float64 `json:"max"`
}

func studyOf(rule trial.Rule, means []float64, s *trial.Study, lo, hi float64) studyJSON {
	return studyJSON{ruleOf(rule, means, lo, hi), means, len(s.Outcomes), s.Wrong,
		[2]float64{s.WrongLo, s.WrongHi}, s.Capped,
		tauJSON{s.TauMean, s.TauSE, s.Tau50, s.Tau90, s.TauMax}, s.Share, s.BatchesMean, s.BatchesMax}
}

// stopJSON is a stopping rule's answer: on real data an estimate, on a law one run or many.
type stopJSON struct {
	Rule     string     `json:"rule"`
	Epsilon  *float64   `json:"epsilon"` // null: not private
	Alpha    float64    `json:"alpha"`
	Beta     float64    `json:"beta"`
	Range    float64    `json:"range"`
	Estimate *float64   `json:"estimate,omitempty"`
	Samples  int        `json:"samples,omitempty"`
	Data     *dataJSON  `json:"data,omitempty"`
	Study    *stopsJSON `json:"study,omitempty"`
}

type stopsJSON struct {
	Law        string     `json:"law"`
	Mean       float64    `json:"mean"`
	Runs       int        `json:"runs"`
	Failures   int        `json:"failures"`
	Interval   [2]float64 `json:"failure_interval"`
	Unfinished int        `json:"unfinished"`
	Clipped    int        `json:"clipped"`
	Samples    *float64   `json:"samples_mean"`
	SE         *float64   `json:"samples_standard_error"`
	Q05        *float64   `json:"samples_q05"`
	Median     *float64   `json:"samples_median"`
	Q95        *float64   `json:"samples_q95"`
	Error      *float64   `json:"error_mean"`
	ErrorMax   *float64   `json:"error_max"`
	Upper      *float64   `json:"upper_bound"` // null: none is known
	Lower      *float64   `json:"lower_bound"`
}

func stopOf(r stopping.Rule) stopJSON {
	out := stopJSON{Rule: r.Name(), Alpha: r.Alpha(), Beta: r.Beta(), Range: r.Range()}
	if r.Private() {
		out.Epsilon = finiteOrNil(r.Epsilon())
	}
	return out
}

func stopStudyOf(s *stopping.Study) stopJSON {
	out := stopOf(s.Rule)
	out.Study = &stopsJSON{Law: s.Law, Mean: s.Mean, Runs: len(s.Outcomes), Failures: s.Failures,
		Interval: [2]float64{s.FailureLo, s.FailureHi}, Unfinished: s.Unfinished, Clipped: s.Clipped,
		Samples: finiteOrNil(s.SamplesMean), SE: finiteOrNil(s.SamplesSE), Q05: finiteOrNil(s.Samples05),
		Median: finiteOrNil(s.Samples50), Q95: finiteOrNil(s.Samples95),
		Error: finiteOrNil(s.ErrorMean), ErrorMax: finiteOrNil(s.ErrorMax)}
	if o := s.Outcomes[0]; len(s.Outcomes) == 1 && o.Finished {
		out.Estimate, out.Samples = &o.Estimate, o.Samples
	}
	if s.Rule.Private() {
		if x, err := s.Rule.UpperBound(s.Mean); err == nil {
			out.Study.Upper = finiteOrNil(x)
		}
		if x, err := s.Rule.LowerBound(s.Mean); err == nil {
			out.Study.Lower = finiteOrNil(x)
		}
	}
	return out
}

// claimJSON is what became of a claim of a source.
type claimJSON struct {
	ID      string   `json:"claim"`
	Verdict string   `json:"verdict"`
	Value   *float64 `json:"statistic"`
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	Runs    int      `json:"runs"`
	Seconds float64  `json:"seconds"`
}

func claimsOf(r *paper.Reproduction) []claimJSON {
	out := []claimJSON{}
	for i := range r.Results {
		for _, c := range r.Results[i].Outcomes {
			out = append(out, claimJSON{c.ID, fmt.Sprint(c.Verdict), finiteOrNil(c.Value),
				finiteOrNil(c.Low), finiteOrNil(c.High), c.Runs, r.Results[i].Time.Seconds})
		}
	}
	return out
}

type figureJSON struct {
	ID     string `json:"figure"`
	Source string `json:"source"`
	Claims int    `json:"claims"`
	Title  string `json:"title"`
}

func figuresOf(figures []paper.Figure) []figureJSON {
	out := []figureJSON{}
	for i := range figures {
		f := &figures[i]
		out = append(out, figureJSON{f.ID, f.Source, len(f.Claims), f.Title})
	}
	return out
}
