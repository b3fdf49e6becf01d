package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/trial"
)

type replayCommand struct {
	Source  string `arg:"" name:"FILE" help:"${replaySource}"`
	Tip     string `help:"${replayTip}" placeholder:"HASH"`
	KeyFile string `env:"SOTTO_KEY_FILE" help:"${askKeyFile}" placeholder:"FILE" type:"path"`
	Assign  string `help:"${replayAssign}" placeholder:"CELL: ARM, …"`
	Model   bool   `help:"${replayModel}" xor:"form"`
	JSON    bool   `help:"As JSON, for programs." xor:"form"`
}

// replayTexts are help texts that are too long for their flags.
var replayTexts = kong.Vars{
	"replaySource": "Transcript of a live experiment; - reads standard input. Or its address, such as " +
		"http://127.0.0.1:8080/v1/experiments/shop/transcript.",
	"replayTip": "SHA-256 of the last line, in hex, as it was noted elsewhere: a chain that was made anew " +
		"from some line on holds, but has another.",
	"replayModel": "Of an experiment with contexts, what it has learnt, with its map, as JSON: the same that its " +
		"address …/model gives.",
	"replayAssign": "Of an experiment by cells, what another assignment of arms to them would have brought, from what " +
		"was released: such as 'phone: onepage, else: classic'.",
	"replay": `The lines' chain must hold, their times must not go back, each batch must be the one that the declared
policy plays after the releases before it, each release one that the curator makes for it, what they cost within the declared budget, and
the end the policy's where it says so. Of a release its sums are believed. Nothing is written.

Examples:
  sotto replay shop.jsonl
  sotto replay shop.jsonl --assign 'phone: onepage, else: classic'
  curl -s -H "X-API-Key: $KEY" localhost:8080/v1/experiments/shop/transcript | sotto replay -
  sotto replay front-page.jsonl --model
  sotto replay http://localhost:8080/v1/experiments/shop/transcript --key-file read.key --json`,
}

// errReplay is matched where a transcript can be read, and does not hold.
var errReplay = errors.New("the transcript does not hold")

func (c *replayCommand) Run(ctx context.Context, s streams) error {
	in, err := c.open(ctx, s)
	if err != nil {
		return err
	}
	defer in.Close()
	r, err := serve.Replay(in, s.known)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.Source, err)
	case c.Tip != "" && !strings.EqualFold(c.Tip, r.Tip):
		return fmt.Errorf("%s: %w: the hash of its last line, %d, is %s and not that of --tip", c.Source,
			errReplay, r.Lines, r.Tip)
	}
	if c.Model {
		m, err := r.Model()
		if err != nil {
			return fmt.Errorf("%s: model: %w", c.Source, err)
		}
		return printJSON(s, m)
	}
	out, err := replayedOf(r)
	if err != nil {
		return err
	}
	if c.Assign != "" {
		if out.Assigned, err = assignedOf(r, c.Assign); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(s, out)
	}
	return printReplayed(s.out, out)
}

// open opens what the argument names.
func (c *replayCommand) open(ctx context.Context, s streams) (io.ReadCloser, error) {
	if strings.HasPrefix(c.Source, "http://") || strings.HasPrefix(c.Source, "https://") {
		return c.fetch(ctx)
	}
	return openInput(c.Source, s)
}

// answerWithin is how long a service may take until it begins to answer.
const answerWithin = 30 * time.Second

func (c *replayCommand) fetch(ctx context.Context) (io.ReadCloser, error) {
	at, err := url.Parse(c.Source)
	if err != nil || at.Host == "" {
		return nil, usagef("%q is no address, such as http://127.0.0.1:8080/v1/experiments/shop/transcript",
			c.Source)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, usage(err)
	}
	key, err := keyFrom(c.KeyFile)
	if err != nil {
		return nil, err
	}
	if key != "" { // a public experiment needs none
		r.Header.Set("X-API-Key", key)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerWithin
	answer, err := (&http.Client{Transport: transport}).Do(r)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusOK:
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var problem struct{ Detail string }
	b, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	_ = json.Unmarshal(b, &problem) // or nothing is told
	err = fmt.Errorf("%s: %s: %s", c.Source, answer.Status, problem.Detail)
	if answer.StatusCode < http.StatusInternalServerError {
		return nil, usage(err)
	}
	return nil, err
}

// replayedJSON is a live experiment as its transcript has it.
type replayedJSON struct {
	Experiment string     `json:"experiment"`
	Policy     string     `json:"policy"`
	Guarantee  string     `json:"guarantee"`
	Range      [2]float64 `json:"range"`
	Started    time.Time  `json:"started"`
	// answer, policy, date or operator; null: it goes on
	End       *string    `json:"end"`
	Ended     *time.Time `json:"ended"`
	Kept      *string    `json:"kept"`
	Leader    bool       `json:"leader,omitempty"` // it is kept for its private mean, and is no answer
	Answer    *string    `json:"answer"`           // of an identification rule
	Lines     int        `json:"lines"`
	Tip       string     `json:"tip"`
	Rounds    int        `json:"batches"`
	Budget    string     `json:"budget"` // of a decision, with the metrics
	Spent     spentJSON  `json:"spent"`
	Condition string     `json:"interval_condition,omitempty"` // on which intervals hold
	// null where there are contexts
	Verdict *interval.Verdict `json:"verdict,omitempty"`
	Arms    []keptJSON        `json:"arms"`
	// Metrics are those that were declared beside the reward, as the page has them.
	Metrics *serve.Measures `json:"metrics,omitempty"`
	Guards  *serve.Guards   `json:"guards,omitempty"`
	// Cells are what was released by cell, likewise.
	Cells *serve.ByCell `json:"cells,omitempty"`
	// Assigned is what another assignment of arms to cells would have brought, if it was asked for.
	Assigned *assignedJSON `json:"assigned,omitempty"`
	// Contexts is null where there are arms.
	Contexts *replayedContexts `json:"contexts,omitempty"`
}

// replayedContexts is what was released where decisions bring their actions.
type replayedContexts struct {
	Dim      int          `json:"dim"`
	Norm     float64      `json:"norm"`
	Released int          `json:"released"` // decisions
	Releases int          `json:"releases"`
	Rules    []earnedJSON `json:"rules"`
}

// earnedJSON is what a rule would have earned.
type earnedJSON struct {
	Name     string      `json:"name"`
	Mean     *float64    `json:"mean"`     // private; null: nothing was released
	Interval *[2]float64 `json:"interval"` // at 95 % for all rules together and at all times
}

type spentJSON struct {
	Text    string   `json:"text"`
	Epsilon *float64 `json:"epsilon"` // null: there is no bound that is pure
}

type keptJSON struct {
	Name     string   `json:"name"`
	Off      bool     `json:"off,omitempty"`
	Released int      `json:"released"` // decisions
	Releases int      `json:"releases"`
	Mean     *float64 `json:"mean"` // private; null: nothing was released
	Noise    float64  `json:"noise_deviation"`
	// of the mean, as the page has it: interval.Table; null: there is none
	Interval *[2]float64 `json:"interval"`
}

func replayedOf(r *serve.Replayed) (replayedJSON, error) {
	x := &r.Experiment
	lo, hi := x.Range()
	out := replayedJSON{Experiment: x.Name, Policy: x.Policy.Policy, Range: [2]float64{lo, hi},
		Started: r.Started, Lines: r.Lines, Tip: r.Tip, Rounds: r.Rounds,
		Condition: x.IntervalCondition(), Arms: []keptJSON{}, Metrics: r.Measured(), Guards: r.Guards(), Cells: r.ByCell(),
		Spent: spentJSON{lossText(r.Spent), finiteOrNil(r.Spent.Pure())}}
	each, err := x.EachTotal()
	if err != nil {
		return out, err
	}
	out.Budget = fmt.Sprint(each)
	if out.Guarantee, err = x.Guarantee(); err != nil {
		return out, err
	}
	if r.End != "" {
		out.End, out.Ended = &r.End, &r.Ended
	}
	if kept := decl.KeepPolicy; r.Policy {
		out.Kept = &kept
	} else if r.Keep >= 0 {
		out.Kept, out.Leader = &x.Arms[r.Keep].Name, r.Leader
	}
	if r.Answer >= 0 {
		out.Answer = &x.Arms[r.Answer].Name
	}
	table := x.Table()
	for i, a := range r.Arms {
		arm := keptJSON{Name: x.Arms[i].Name, Off: a.Off, Released: a.Released, Releases: a.Releases}
		if m := meanOf(a, lo, hi); m.N > 0 {
			arm.Mean, arm.Noise = &m.Value, m.Noise
		}
		arm.Interval = table.Mean(a.Sums())
		out.Arms = append(out.Arms, arm)
	}
	if r.Contextual != nil {
		out.Contexts = contextsOf(*r.Contextual)
	} else {
		v := serve.VerdictOf(x, r.Arms)
		out.Verdict = &v
	}
	return out, nil
}

func contextsOf(c serve.ContextualInfo) *replayedContexts {
	out := &replayedContexts{c.Dim, c.Norm, c.Released, c.Releases, []earnedJSON{}}
	for i, e := range c.Rules {
		rule := earnedJSON{Name: e.Name}
		if mean, interval, ok := c.Earned(i); ok {
			rule.Mean, rule.Interval = &mean, &interval
		}
		out.Rules = append(out.Rules, rule)
	}
	return out
}

// meanOf is the private mean of an arm, in units of rewards.
func meanOf(a serve.ArmInfo, lo, hi float64) trial.Mean {
	return trial.MeanOf(a.Sums(), lo, hi)
}

func printReplayed(out io.Writer, r replayedJSON) error {
	w := report.NewColumns(out)
	fmt.Fprintf(w, "experiment\t%s\n", r.Experiment)
	of := fmt.Sprintf("%d arms", len(r.Arms))
	if r.Contexts != nil {
		of = fmt.Sprintf("vectors of %d components", r.Contexts.Dim)
	}
	fmt.Fprintf(w, "policy\t%s, %s, rewards in [%v, %v]\n", r.Policy, of, r.Range[0], r.Range[1])
	fmt.Fprintf(w, "guarantee\t%s\n", r.Guarantee)
	fmt.Fprintf(w, "started\t%s\n", r.Started.Format(time.RFC3339))
	if r.End != nil {
		kept := "the first action is given from then on"
		if r.Contexts != nil && r.Kept != nil {
			kept = "the best action by what was learnt is given from then on"
		} else if r.Kept != nil {
			kept = *r.Kept + " is kept"
		}
		if r.Leader {
			kept += ", which leads"
		}
		fmt.Fprintf(w, "stopped\t%s: %s, and %s\n", r.Ended.Format(time.RFC3339), endText(*r.End), kept)
	} else {
		fmt.Fprintln(w, "stopped\tnot yet, as far as this goes")
	}
	if r.Answer != nil {
		fmt.Fprintf(w, "answer\t%s\n", *r.Answer)
	}
	if r.Verdict != nil {
		fmt.Fprintf(w, "verdict\t%s\n", r.Verdict.Text)
		if e := r.Verdict.Earned; e.Told() {
			fmt.Fprintf(w, "earned\t%s\n", e.Text())
		}
	}
	fmt.Fprintf(w, "adaptivity\t%s of decisions\n", words.Counted(r.Rounds, "batch", "batches"))
	fmt.Fprintf(w, "spent\t%s of %s a decision\n", r.Spent.Text, r.Budget)
	if c := r.Contexts; c != nil {
		fmt.Fprintf(w, "released\tthe rewards of %s\n", words.Counted(c.Released, "decision", "decisions"))
	}
	fmt.Fprintf(w, "lines\t%d, the last with the SHA-256 %s\n", r.Lines, r.Tip)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if r.Contexts != nil {
		return printEarned(out, r.Contexts.Rules)
	}
	fmt.Fprintf(w, "arm\tdecisions\treleases\tprivate mean\t95 %% interval\n")
	for _, a := range r.Arms {
		mean, name := "–", a.Name
		if a.Mean != nil {
			mean = fmt.Sprintf("%.4g ± %.2g", *a.Mean, a.Noise)
		}
		if a.Off {
			name += " (off)"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", name, a.Released, a.Releases, mean, intervalText(a.Interval))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	note := intervalNote
	if r.Verdict != nil && r.Verdict.ConstantRates {
		note += "\n" + r.Verdict.Assumes()
	}
	if r.Condition != "" {
		note += "\n" + r.Condition
	}
	fmt.Fprintln(out, "\n±: standard deviation of the noise that was added.\n"+note+"\n")
	if r.Cells != nil {
		if err := printMeasures(out, r.Cells.By, &r.Cells.Measures); err != nil {
			return err
		}
	}
	if err := printAssigned(out, r.Assigned, r.Verdict != nil && r.Verdict.ConstantRates); err != nil {
		return err
	}
	if err := printMeasures(out, "metric", r.Metrics); err != nil {
		return err
	}
	if err := printGuards(out, r.Guards); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, replayHolds)
	return err
}

// printGuards prints the guards that were declared.
func printGuards(out io.Writer, of *serve.Guards) error {
	if of == nil {
		return nil
	}
	w := report.NewColumns(out)
	fmt.Fprintf(w, "guard\tarm\tinterval\tthe arm\n")
	for _, g := range of.Each {
		for _, a := range g.Arms {
			fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", g.Metric, g.Bound, a.Arm, intervalText(a.Interval), a.State)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\n"+of.Says+"\n")
	return err
}

// printMeasures prints the metrics that were declared beside the reward, or cells, with what heads their titles.
func printMeasures(out io.Writer, what string, of *serve.Measures) error {
	if of == nil {
		return nil
	}
	number := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return fmt.Sprintf("%.4g", *x)
	}
	w := report.NewColumns(out)
	fmt.Fprintf(w, "%s\tarm\tdecisions\tprivate mean\t95 %% interval\tdifference to %s\t95 %% interval", what, of.Control)
	if of.First() != "" {
		fmt.Fprintf(w, "\tagainst %s", of.First())
	}
	fmt.Fprintln(w)
	for _, m := range of.Each {
		for _, a := range m.Arms {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s", m.Title(), a.Arm, a.Released, number(a.Mean),
				intervalText(a.Interval), number(a.Difference), intervalText(a.DifferenceInterval))
			if m.Cell != "" {
				fmt.Fprint(w, "\t"+intervalText(a.Apart))
			}
			fmt.Fprintln(w)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, m := range of.Each {
		if m.Verdict != nil {
			fmt.Fprintf(out, "%s: %s.\n", m.Cell, m.Verdict.Text)
		}
	}
	_, err := fmt.Fprintf(out, "%s\n\n", of.Says)
	return err
}

const replayHolds = "The lines are chained, the plays follow from the releases, and these cost what is said."

// printEarned ends what is said of an experiment with contexts.
func printEarned(out io.Writer, rules []earnedJSON) error {
	if len(rules) > 0 {
		w := report.NewColumns(out)
		fmt.Fprintf(w, "rule\tearns a decision\t95 %% interval\n")
		for _, e := range rules {
			mean := "–"
			if e.Mean != nil {
				mean = fmt.Sprintf("%.4g", *e.Mean)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, mean, intervalText(e.Interval))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(out, "\n95 %% interval: those of all rules hold together, at all times, with probability 95 %%.\n"+
			"Where weights were clipped, it is of what the rule earns with clipped weights.\n\n")
	}
	_, err := fmt.Fprintln(out, replayHolds)
	return err
}

func endText(end string) string {
	switch end {
	case "answer":
		return "the rule has its answer"
	case "policy":
		return "the policy wants nothing more"
	case "date":
		return "its end has come"
	}
	return "by the operator"
}

// liveFirst says whether a transcript is a live experiment's, by its first line, and gives it back
// whole.
func liveFirst(in io.Reader) (live bool, whole io.Reader, err error) {
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, nil, err
	}
	var kind struct{ Live *int }
	live = json.Unmarshal(first, &kind) == nil && kind.Live != nil
	return live, io.MultiReader(bytes.NewReader(first), lines), nil
}

// liveTrial is a live experiment's transcript as that of a trial. An error is about what is in it.
// The text is on what the intervals of its means hold.
func liveTrial(in io.Reader, s streams) (_ *trial.Replayed, between [2]float64, condition string, _ error) {
	r, err := serve.Replay(in, s.known)
	if err != nil {
		return nil, between, "", err
	}
	x := &r.Experiment
	if x.Risk == 0 {
		return nil, between, "", fmt.Errorf("%s looks for no best arm: sotto replay plays it again", x.Name)
	}
	rule, err := trial.NewRule(x.Policy.Policy, len(x.Arms), x.Risk, r.Budget, x.Policy.Params)
	if err != nil {
		return nil, between, "", err
	}
	out := &trial.Replayed{Rule: rule, End: r.End}
	out.Answer, out.Batches, out.Loss = r.Answer, r.Rounds, r.Spent
	between[0], between[1] = x.Range()
	for i, a := range r.Arms {
		out.Names = append(out.Names, x.Arms[i].Name)
		out.Plays = append(out.Plays, a.Released)
		out.Tau += a.Released
		out.Releases += a.Releases
		out.Means = append(out.Means, meanOf(a, between[0], between[1]))
	}
	return out, between, x.IntervalCondition(), nil
}
