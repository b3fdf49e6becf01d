package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/trial/stopping"
)

type stopCommand struct {
	Rule    flags.Choice `of:"nas,dp-nas,dp-exp-nas" required:"" help:"${stopRule}" placeholder:"RULE"`
	Alpha   flags.Number `in:"(0,1)" required:"" help:"${stopAlpha}" placeholder:"α"`
	Beta    flags.Number `in:"(0,1)" required:"" help:"${stopBeta}" placeholder:"β"`
	Epsilon flags.Number `in:"(0,inf)" help:"Budget of ε-DP; not for nas." placeholder:"ε"`
	Range   flags.Number `in:"(0,inf)" required:"" help:"Samples are in [−R, R]; others are clipped." placeholder:"R"`

	CSV    string `name:"csv" help:"${stopCSV}" placeholder:"FILE" group:"The samples, one of:"`
	Column string `help:"Column of --csv with the samples." placeholder:"NAME" group:"Columns of --csv:"`
	Law    string `help:"${stopLaw}" placeholder:"LAW" group:"The samples, one of:"`

	personFlags
	orderFlag

	Cap  flags.Count `help:"${stopCap}" placeholder:"N"`
	Runs flags.Count `in:"[1,1e7]" help:"${stopRuns}" placeholder:"N"`
	Seed flags.Seed  `help:"${stopSeed}" placeholder:"S"`
	Out  string      `help:"Write the runs of --law to this CSV file, a row a run." placeholder:"FILE" type:"path"`
	JSON bool        `help:"As JSON, for programs."`
}

// stopTexts are help texts that are too long for their flags.
var stopTexts = kong.Vars{
	"stopRule":  "Stopping rule: dp-exp-nas, dp-nas, or nas, which is not private.",
	"stopAlpha": "Relative error that is allowed, above 0 and below 1.",
	"stopBeta":  "Probability of a larger error, above 0 and below 1.",
	"stopCSV": "Real data: a CSV file with a header (also .gz), or Parquet; - reads standard input. Rows are taken in a " +
		"shuffled order.",
	"stopLaw": "A law to simulate, such as 0.3 (Bernoulli) or uniform(-1,0.5).",
	"stopCap": "Give up after so many samples. If the mean is 0 a rule goes on for ever; for --law " +
		"the cap is 1e9 if not given.",
	"stopRuns": "Runs of --law: more than one print the failure rate and the samples' distribution.",
	"stopSeed": "Seed of the simulation of --law, 1 if not given. For --csv, of the rows' order, " +
		"which the operating system draws if not given; never of noise.",
	"stop": `Examples:
  sotto stop --rule dp-exp-nas --alpha 0.1 --beta 0.05 --epsilon 1 --range 10 --csv times.csv --column seconds --user-column visitor
  sotto stop --rule dp-nas --alpha 0.25 --beta 0.05 --epsilon 1 --range 1 --law 0.3 --runs 1000`,
}

func (c *stopCommand) Run(ctx context.Context, s streams) error {
	rule, err := c.rule()
	if err != nil {
		return usage(err)
	}
	switch {
	case (c.CSV == "") == (c.Law == ""):
		return usagef("want one of --csv and --law")
	case c.CSV != "" && c.Column == "":
		return usagef("--csv needs --column, the name of the column that has the samples")
	case c.CSV != "" && (c.Runs > 0 || c.Out != ""):
		return usagef("--runs and --out are for --law: real data are read once, and " +
			"their noise is never repeated")
	case c.Law != "" && (c.Column != "" || c.personFlags.given() || c.InOrder):
		return usagef("--column, --user-column, --skip-missing and --in-order are for --csv, and so are " +
			"--separator and --decimal-comma")
	case c.CSV != "":
		return c.data(ctx, s, rule)
	}
	return c.simulate(ctx, s, rule)
}

func (c *stopCommand) rule() (stopping.Rule, error) {
	switch private := c.Rule != "nas"; {
	case private && !c.Epsilon.Set:
		return stopping.Rule{}, fmt.Errorf("--rule %s needs --epsilon", c.Rule)
	case !private && c.Epsilon.Set:
		return stopping.Rule{}, errors.New("--epsilon is not for nas, which is not private")
	}
	return stopping.New(string(c.Rule), c.Alpha.X, c.Beta.X, c.Epsilon.X, c.Range.X)
}

// data runs the rule on real data. It prints nothing but what the rule released: no bound that
// depends on the data's mean, and no count of what was clipped.
func (c *stopCommand) data(ctx context.Context, s streams, rule stopping.Rule) error {
	format := seeded(logged.Format{Reward: c.Column, User: c.UserColumn,
		SkipMissing: c.SkipMissing, Dialect: c.dialect(), InOrder: c.InOrder,
		Lo: -rule.Range(), Hi: rule.Range()}, c.Seed)
	var samples []float64
	var log logged.Summary
	err := readLog(c.CSV, s, format.Dialect, func(r io.Reader) (err error) {
		samples, log, err = format.Column(r)
		return err
	})
	if err != nil {
		return err
	}
	tellOf(s, c.CSV, log)
	r, err := stopping.Run(ctx, rule, samples, stopping.Options{Cap: int(c.Cap)})
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped: no estimate is released, but answers to the rule's questions "+
			"may have been spent on: %w", err)
	case errors.Is(err, stopping.ErrUnfinished):
		return fmt.Errorf("%s: %w", c.CSV, err)
	case err != nil:
		return usagef("%s: %w", c.CSV, err)
	}
	if c.JSON {
		out := stopOf(rule)
		out.Estimate, out.Samples, out.Data = &r.Estimate, r.Samples, dataOf(log, format)
		if err := printJSON(s, out); err != nil {
			return lostAnswer(err, r.Loss)
		}
		return nil
	}
	w := report.NewColumns(s.out)
	head(w, rule)
	fmt.Fprintf(w, "data\t%s\n", dataLine(log, format, "the mean of the person's clipped rows"))
	fmt.Fprintf(w, "estimate\t%.6g\n", r.Estimate)
	fmt.Fprintf(w, "samples\t%d\n", r.Samples)
	if err := w.Flush(); err != nil {
		return lostAnswer(err, r.Loss)
	}
	return nil
}

func head(w *report.Columns, rule stopping.Rule) {
	fmt.Fprintf(w, "rule\t%s, samples in [−%v, %[2]v]\n", rule.Name(), rule.Range())
	fmt.Fprintf(w, "guarantee\twithin %.6g %% of the mean with probability at least %v, for "+
		"independent samples; ", 100*rule.Alpha(), 1-rule.Beta())
	if rule.Private() {
		fmt.Fprintf(w, "%v-DP for each sample: half for the answers, half for the estimate\n", rule.Epsilon())
	} else {
		fmt.Fprintln(w, "no privacy")
	}
}

// simulate runs the rule on a law.
func (c *stopCommand) simulate(ctx context.Context, s streams, rule stopping.Rule) error {
	law, err := bandit.ParseLaw(c.Law)
	if err != nil {
		return usagef("--law: %w", err)
	}
	runs, limit := max(int(c.Runs), 1), int(c.Cap)
	if limit == 0 {
		limit = 1_000_000_000
	}
	if _, err := bandit.ClippedMean(law, -rule.Range(), rule.Range()); err != nil {
		return usage(err)
	}
	study, err := stopping.StudyConfig{Rule: rule, Law: law, Runs: runs, Seed: c.Seed.Or(1),
		Cap: limit}.Run(ctx)
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := save("--out", c.Out, publicFile, study.WriteCSV); err != nil {
			return err
		}
	}
	if c.JSON {
		err = printJSON(s, stopStudyOf(study))
	} else {
		err = printStops(s, rule, study)
	}
	if err != nil {
		return err
	}
	if study.Unfinished > 0 {
		return fmt.Errorf("%d of %d runs reached the cap of %d samples without an estimate; the "+
			"mean is too near 0 for so few samples, or it is 0, "+
			"and then the rule would go on for ever: %w", study.Unfinished, runs, limit, stopping.ErrUnfinished)
	}
	return nil
}

func bound(w *report.Columns, name string, of func(float64) (float64, error), mean float64, what string) {
	if x, err := of(mean); err != nil {
		fmt.Fprintf(w, "%s\tnone: %v\n", name, err)
	} else {
		fmt.Fprintf(w, "%s\t%.6g samples: %s\n", name, x, what)
	}
}

func printStops(s streams, rule stopping.Rule, study *stopping.Study) error {
	w := report.NewColumns(s.out)
	head(w, rule)
	fmt.Fprintf(w, "law\t%s, mean %.6g\n", study.Law, study.Mean)
	if runs := len(study.Outcomes); runs == 1 {
		if o := study.Outcomes[0]; o.Finished {
			fmt.Fprintf(w, "estimate\t%.6g, off by %.3g %%\n", o.Estimate, 100*o.Error)
			fmt.Fprintf(w, "samples\t%d\n", o.Samples)
		}
	} else {
		fmt.Fprintf(w, "failures\t%d of %d runs: %.3g, 95 %% interval [%.3g, %.3g], allowed %v\n",
			study.Failures, runs,
			float64(study.Failures)/float64(runs), study.FailureLo, study.FailureHi, rule.Beta())
		fmt.Fprintf(w, "samples\tmean %.6g ± %.2g (standard error), median %.6g, 5 %% to 95 %%: "+
			"%.6g to %.6g\n", study.SamplesMean, study.SamplesSE,
			study.Samples50, study.Samples05, study.Samples95)
		fmt.Fprintf(w, "error\tmean %.3g %%, largest %.3g %%\n", 100*study.ErrorMean, 100*study.ErrorMax)
	}
	if study.Clipped > 0 {
		fmt.Fprintf(w, "clipped\t%d samples; the mean is that of the clipped law\n", study.Clipped)
	}
	if rule.Private() {
		bound(w, "upper bound", rule.UpperBound, study.Mean, "t_U of dp-exp-nas [Sajed 2019, Theorem 4.1.3]")
		bound(w, "lower bound", rule.LowerBound, study.Mean, "of any rule, on the two-point law "+
			"of this mean [Sajed 2019, Theorem 4.2.1]")
	}
	return w.Flush()
}
