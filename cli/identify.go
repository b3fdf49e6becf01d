package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/trial"
)

type identifyCommand struct {
	Arms   flags.Arms `help:"${identifyArms}" placeholder:"ARM,…" group:"The arms, one of:"`
	CSV    string     `name:"csv" help:"${identifyCSV}" placeholder:"FILE" group:"The arms, one of:"`
	Replay string     `help:"${identifyReplay}" placeholder:"FILE" group:"The arms, one of:"`

	columnFlags
	orderFlag

	Rule    flags.Policy `default:"dp-sed" help:"${identifyRule}" placeholder:"RULE"`
	Risk    flags.Number `in:"(0,1)" help:"${identifyRisk}" placeholder:"δ"`
	Epsilon flags.Number `in:"(0,inf)" help:"${identifyEpsilon}" placeholder:"ε"`
	Range   flags.Range  `help:"${identifyRange}" placeholder:"LO,HI"`

	Cap        flags.Count `help:"${identifyCap}" placeholder:"N"`
	Runs       flags.Count `in:"[1,1e6]" help:"${identifyRuns}" placeholder:"N"`
	Seed       flags.Seed  `help:"${identifySeed}" placeholder:"S"`
	Transcript string      `help:"${identifyTranscript}" placeholder:"FILE" type:"path"`
	JSON       bool        `help:"As JSON, for programs."`
}

// identifyTexts are help texts that are too long for their flags.
var identifyTexts = kong.Vars{
	"identifyArms": "Arms to simulate, by their Bernoulli means or their laws, such as 0.95,0.9,0.5 or " +
		"gaussian(0.5,0.1).",
	"identifyCSV": "Real data: logged rewards, a CSV with a header (also .gz), or Parquet; - reads standard input. Each play of " +
		"an arm takes its next row, after a shuffle. A second run spends the budget again.",
	"identifyReplay": "A transcript, of --transcript or of a live trial: play the trial again from its " +
		"releases, and check that its plays and its answer follow from them.",
	"identifyRule": "dp-sed, dp-tt, adap-tt, adap-tt-star, dp-se; or ttucb, se, lucb, track-and-stop, which are " +
		"not private. With parameters if need be: dp-sed:gap=0.2; sotto list policies has " +
		"them.",
	"identifyRisk": "Probability of a wrong answer that is allowed, above 0 and below 1.",
	"identifyEpsilon": "Budget of ε-DP, for the whole trial: who got which arm, when it stopped, and the " +
		"answer. Not for rules that are not private.",
	"identifyRange": "Declared range of rewards; others are clipped. 0,1 if not given. --csv needs it: it " +
		"must not be taken from the data.",
	"identifyCap": "Give up after so many plays. If two arms are best no rule ever stops; for --arms the " +
		"cap is 1e8 if not given.",
	"identifyRuns": "Runs of --arms: more than one print the error rate and the distribution of the " +
		"number of plays.",
	"identifySeed": "Seed of the simulation of --arms, 1 if not given. For --csv, of the rows' order and " +
		"of people's arms, which the operating system draws if not given; never of noise.",
	"identifyTranscript": "Write what the guarantee is about to this file, which must be new: a line of JSON " +
		"for each batch of plays and each release. If the rule is private it may be " +
		"published; --replay checks it.",
	"identify": `Examples:
  sotto identify --arms 0.95,0.9,0.5 --epsilon 1 --risk 0.05
  sotto identify --arms 0.95,0.9,0.5 --rule adap-tt --epsilon 1 --risk 0.05 --runs 1000
  sotto identify --csv doses.csv --range 0,1 --epsilon 1 --risk 0.05 --transcript trial.jsonl
  sotto identify --csv visits.csv --arm-column version --reward-column sent --user-column visitor --skip-missing --range 0,1 --epsilon 1 --risk 0.05
  sotto identify --replay trial.jsonl`,
}

func (c *identifyCommand) Run(ctx context.Context, s streams) error {
	switch {
	case given(c.Arms.Set(), c.CSV != "", c.Replay != "") != 1:
		return usagef("want one of --arms, --csv and --replay")
	case c.Replay != "":
		if c.Risk.Set || c.Epsilon.Set || c.Rule.String() != catalog.DefaultRule || c.Range.Set || c.Cap > 0 ||
			c.Runs > 0 || c.Seed.Set || c.Transcript != "" || c.columnFlags.given() || c.InOrder {
			return usagef("--replay takes no other flag: the transcript says what the " +
				"trial was")
		}
		return c.replay(s)
	case !c.Risk.Set:
		return usagef("want --risk, the probability of a wrong answer that is allowed")
	case c.CSV != "" && c.Runs > 0:
		return usagef("--runs is for --arms: real data are read once, and their noise is " +
			"never repeated")
	case c.CSV == "" && c.InOrder:
		return usagef("--in-order is for --csv")
	}
	if err := c.columnFlags.check(c.CSV); err != nil {
		return err
	}
	lo, hi, err := declared(c.Range, c.CSV != "")
	if err != nil {
		return usage(err)
	}
	if c.CSV != "" {
		return c.data(ctx, s, lo, hi)
	}
	return c.simulate(ctx, s, lo, hi)
}

// declared is the range of --range; for simulations [0,1] if none is given. Real data want one:
// rewards that a default clips would be a wrong answer that nobody may be warned of, since the
// warning would tell of the data.
func declared(r flags.Range, data bool) (lo, hi float64, err error) {
	switch {
	case r.Set:
		return r.Lo, r.Hi, nil
	case data:
		return 0, 0, errors.New("want --range LO,HI with --csv: the lowest and the highest " +
			"reward that there can be. Rewards outside are clipped. Take it from what " +
			"is known without the data, such as 0,1 for clicks, 1,5 for stars, 0,5000 for " +
			"baskets of at most 50 euros in cents: what is read off the data tells of them")
	}
	return 0, 1, nil
}

func (c *identifyCommand) rule(arms int) (trial.Rule, error) {
	e, params, err := c.Rule.Find(catalog.Catalog{}, catalog.BanditIdentify)
	if err != nil {
		return trial.Rule{}, err
	}
	var budget privacy.Budget = privacy.None{}
	switch {
	case e.Private && !c.Epsilon.Set:
		return trial.Rule{}, fmt.Errorf("--rule %s needs --epsilon", e.Name)
	case !e.Private && c.Epsilon.Set:
		return trial.Rule{}, fmt.Errorf("--epsilon is not for %s, which is not private", e.Name)
	case e.Private:
		budget = privacy.Pure{Epsilon: c.Epsilon.X}
	}
	return trial.NewRule(e.Name, arms, c.Risk.X, budget, params)
}

// data runs a trial on real data. It prints nothing but what follows from releases, and the lower
// bound from private means.
func (c *identifyCommand) data(ctx context.Context, s streams, lo, hi float64) error {
	format := seeded(c.format(lo, hi), c.Seed)
	format.InOrder = c.InOrder
	var log logged.Log
	err := readLog(c.CSV, s, format.Dialect, func(r io.Reader) (err error) {
		log, err = format.Read(r)
		return err
	})
	if err != nil {
		return err
	}
	tellOf(s, c.CSV, log.Summary)
	rule, err := c.rule(len(log.Names))
	if err != nil {
		return usage(err)
	}
	cfg := trial.Config{Rule: rule, Log: log, Lo: lo, Hi: hi, Cap: int(c.Cap)}
	mode := os.FileMode(publicFile)
	if !rule.Private() {
		mode = privateFile // it holds exact sums
		fmt.Fprintf(s.err, "warning: %s is not private: keep its answer, its means and its "+
			"transcript as private as the data\n", rule.Name())
	}
	var r trial.Result
	err = c.transcribe(true, mode, func(w io.Writer) (privacy.Loss, error) {
		cfg.Transcript = w
		var err error
		r, err = trial.Run(ctx, cfg)
		return r.Loss, err
	})
	switch {
	case isUsage(err):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped: %w", err)
	case errors.Is(err, trial.ErrUnfinished):
		return fmt.Errorf("%s: %w", c.CSV, err)
	case err != nil && r.Loss != (privacy.Loss{}): // not for another try with other flags
		return fmt.Errorf("%s: %w", c.CSV, err)
	case err != nil:
		return usagef("%s: %w", c.CSV, err)
	}
	if c.JSON {
		out := trialOf(rule, log.Names, nil, r, lo, hi)
		out.Data = dataOf(log.Summary, format)
		if err := printJSON(s, out); err != nil {
			return lostAnswer(err, r.Loss)
		}
		return nil
	}
	data := dataLine(log.Summary, format, "the mean of the clipped rows of one arm, drawn among "+
		"the person's arms")
	if err := printTrial(s.out, rule, log.Names, "data\t"+data, nil, r, lo, hi); err != nil {
		return lostAnswer(err, r.Loss)
	}
	return nil
}

// lostAnswer is the error of a release that was made, and of which nobody has the answer.
func lostAnswer(err error, l privacy.Loss) error {
	return fmt.Errorf("%w: there is no answer, and it has been spent: %s; another try spends it "+
		"again", err, lossText(l))
}

// transcribe gives a trial where to write its transcript. It appears whole, and also if the trial
// has spent something without an answer: then it says so. Of a trial that is simulated and was
// stopped there is nothing to say.
//
// play says what was spent, if not by simulated people.
func (c *identifyCommand) transcribe(real bool, mode os.FileMode,
	play func(io.Writer) (privacy.Loss, error)) error {
	if c.Transcript == "" {
		_, err := play(nil)
		return err
	}
	// The transcript of an earlier trial is the record of what that has spent.
	if _, err := os.Lstat(c.Transcript); err == nil {
		return usagef("--transcript: %s is there already, and may be the record of what "+
			"was spent: name a new file", c.Transcript)
	}
	f, err := pending("--transcript", c.Transcript, mode)
	if err != nil {
		return err
	}
	defer f.Discard()
	lost, err := play(f)
	var unfinished *trial.UnfinishedError
	if errors.As(err, &unfinished) && unfinished.Spent.Pure() == 0 || err != nil &&
		unfinished == nil && (!real || lost == privacy.Loss{}) {
		return err // nothing was spent, and there is nothing to record
	}
	if failed := f.Replace(); failed != nil {
		failed = fmt.Errorf("--transcript: %w", failed)
		if real {
			failed = lostAnswer(failed, lost)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// stopped says what is left of simulated trials that were stopped.
func stopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return interrupted("stopped: nothing is left of it")
	}
	return err
}

func (c *identifyCommand) replay(s streams) error {
	f, err := os.Open(c.Replay)
	if err != nil {
		return usage(err)
	}
	defer f.Close()
	live, in, err := liveFirst(f)
	if err != nil {
		return usagef("%s: %w", c.Replay, err)
	}
	var r *trial.Replayed
	var lo, hi float64
	var condition string
	if live {
		var between [2]float64
		r, between, condition, err = liveTrial(in, s)
		lo, hi = between[0], between[1]
	} else if r, err = trial.Replay(in); err == nil {
		lo, hi = r.Range()
	}
	if err != nil {
		return usagef("%s: %w", c.Replay, err)
	}
	if c.JSON {
		out := trialOf(r.Rule, r.Names, nil, r.Result, lo, hi)
		out.Replayed = r.End
		return printJSON(s, out)
	}
	if err := printTrial(s.out, r.Rule, r.Names, "", nil, r.Result, lo, hi); err != nil {
		return err
	}
	if condition != "" {
		fmt.Fprintln(s.out, condition)
	}
	what := "The plays and the answer follow from the releases."
	if r.End != "answer" {
		what = "The plays follow from the releases. The trial ended without an answer: " +
			map[string]string{"cap": "at its cap", "data": "its data ran out",
				"interrupted": "it was stopped", "operator": "it was stopped", "date": "its end came",
				"policy": "the rule wants nothing more", "": "it goes on"}[r.End] + "."
	}
	if r.Simulated {
		what += " It was simulated: nobody's data are in it."
	}
	_, err = fmt.Fprintf(s.out, "\n%s\n", what)
	return err
}

// promise is what the rule guarantees.
func promise(r trial.Rule) string {
	text := "no privacy"
	if r.Private() {
		if text = fmt.Sprintf("%v-DP", r.Epsilon()); math.IsInf(r.Epsilon(), 1) {
			text = fmt.Sprint(r.Budget())
		}
		text += " of " + identify.Output
	}
	if r.Correct() == "" {
		return text + "; no bound on the error is proved for these parameters"
	}
	return text + fmt.Sprintf("; wrong with probability at most %v, if one arm alone is best (%s)",
		r.Risk(), r.Correct())
}

// printTrial prints one trial. The world is a line about its arms or its data; means are those of
// a simulated one.
func printTrial(out io.Writer, rule trial.Rule, names []string, world string, means []float64,
	r trial.Result, lo, hi float64) error {
	w := report.NewColumns(out)
	fmt.Fprintf(w, "rule\t%s, %d arms, rewards in [%v, %v]\n", rule.Entry().Title, len(names), lo, hi)
	fmt.Fprintf(w, "guarantee\t%s\n", promise(rule))
	if world != "" {
		fmt.Fprintln(w, world)
	}
	if r.Answer >= 0 {
		fmt.Fprintf(w, "answer\t%s\n", names[r.Answer])
	} else {
		fmt.Fprintln(w, "answer\tnone")
	}
	fmt.Fprintf(w, "plays\t%d\n", r.Tau)
	fmt.Fprintf(w, "adaptivity\t%s of plays\n", words.Counted(r.Batches, "batch", "batches"))
	what := "of these means"
	if means == nil {
		for _, m := range r.Means {
			means = append(means, m.Value)
		}
		what = "of the private means: a guess, as the true ones are not looked at"
		if !rule.Private() {
			what = "of the means below: a guess"
		}
	}
	lower(w, rule, means, lo, hi, what)
	if err := w.Flush(); err != nil {
		return err
	}
	head := "private mean"
	if !rule.Private() {
		head = "mean"
	}
	fmt.Fprintln(out)
	fmt.Fprintf(w, "arm\tplays\tshare\t%s\t95 %% interval\t95 %% difference\n", head)
	table, differences := interval.Table{Arms: len(names), Lo: lo, Hi: hi}, trialDifferences(r, lo, hi)
	for a, name := range names {
		mean := "–"
		if m := r.Means[a]; m.N > 0 {
			mean = fmt.Sprintf("%.4g", m.Value)
			if m.Noise > 0 {
				mean += fmt.Sprintf(" ± %.2g", m.Noise)
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%.3g\t%s\t%s\t%s\n", name, r.Plays[a],
			float64(r.Plays[a])/max(1, float64(r.Tau)), mean,
			intervalText(table.Mean(r.Means[a].Released)), intervalText(differences[a]))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	note := intervalNote + "\n" + differenceNote
	if rule.Private() {
		note = "±: standard deviation of the noise that was added. The mean is not clipped to " +
			"the range.\n" + note
	}
	_, err := fmt.Fprintln(out, "\n"+note)
	return err
}

// lower prints the lower bound for arms of these means.
func lower(w io.Writer, rule trial.Rule, means []float64, lo, hi float64, what string) {
	for _, m := range means {
		if math.IsNaN(m) {
			fmt.Fprintln(w, "lower bound\tnone: not every arm has a mean")
			return
		}
	}
	least, err := rule.LowerBound(means, lo, hi)
	same := "this guarantee"
	if rule.Correct() == "" {
		same = fmt.Sprintf("this privacy that errs with probability at most %v, which this one "+
			"does not promise", rule.Risk())
		if !rule.Private() {
			same = strings.Replace(same, "this privacy that", "no privacy that", 1)
		}
	}
	switch {
	case errors.Is(err, trial.ErrTie):
		fmt.Fprintln(w, "lower bound\tnone: several arms have the largest mean")
	case err != nil:
		fmt.Fprintf(w, "lower bound\tnone: %v\n", err)
	default:
		fmt.Fprintf(w, "lower bound\t%.6g plays in the mean, for any rule with %s [Azize 2024, Theorem "+
			"4.24], on two-point arms %s\n", math.Ceil(least), same, what)
	}
}

// simulate runs trials on laws.
func (c *identifyCommand) simulate(ctx context.Context, s streams, lo, hi float64) error {
	fail := usage
	laws := c.Arms.Laws
	in, err := bandit.NewInstance(laws...)
	if err != nil {
		return fail(fmt.Errorf("--arms: %w", err))
	}
	rule, err := c.rule(len(laws))
	if err != nil {
		return fail(err)
	}
	runs := max(int(c.Runs), 1)
	switch {
	case runs > 1 && c.Transcript != "":
		return fail(errors.New("--transcript is of one run: leave --runs out"))
	case c.Cap > 0 && int(c.Cap) < len(laws):
		return flags.Bad("--cap", c.Cap, "at least the number of arms, %d", len(laws))
	}
	means := make([]float64, len(laws))
	for a, law := range laws {
		if means[a], err = bandit.ClippedMean(law, lo, hi); err != nil {
			return fail(err)
		}
	}
	sm := trial.Simulation{Rule: rule, Source: bandit.Fixed(in), Runs: runs, Seed: c.Seed.Or(1),
		Cap: int(c.Cap), Lo: lo, Hi: hi}
	if sm.Cap == 0 {
		sm.Cap = trial.DefaultCap
	}
	if a, b := in.Support(); a < lo || b > hi {
		fmt.Fprintf(s.err, "warning: rewards leave [%v, %v] and are clipped to it: means are "+
			"those of the clipped laws\n", lo, hi)
	}
	if tied := best(means); len(tied) > 1 {
		fmt.Fprintf(s.err, "warning: arms %s have the largest mean, %.6g: no rule that is right "+
			"can stop, and the cap of %d plays ends a run\n",
			strings.Join(tied, " and "), slices.Max(means), sm.Cap)
	}
	truth := make([]string, len(means))
	names := make([]string, len(means))
	for a, m := range means {
		truth[a], names[a] = fmt.Sprintf("%.6g", m), strconv.Itoa(a+1)
	}
	text := "means " + strings.Join(truth, ", ")
	for _, law := range laws {
		if _, ok := law.(bandit.Bernoulli); !ok {
			text = fmt.Sprintf("%v, %s", in, text)
			break
		}
	}
	capped := 0
	if runs == 1 {
		if capped, err = c.once(ctx, s, sm, text, means, names); err != nil {
			return err
		}
	} else {
		w := waiting(s, "identify", 0)
		study, err := sm.Run(ctx)
		w.end()
		if err != nil {
			return stopped(err)
		}
		capped = study.Capped
		if c.JSON {
			err = printJSON(s, studyOf(rule, means, study, lo, hi))
		} else {
			err = printStudy(s.out, rule, text, means, study, lo, hi)
		}
		if err != nil {
			return err
		}
	}
	if capped > 0 {
		what := fmt.Sprintf("%d of %d runs", capped, runs)
		if runs == 1 {
			what = "the run"
		}
		return fmt.Errorf("%s reached the cap of %d plays without an answer; it takes more "+
			"plays, or several arms are best, and then a rule would go on for ever: %w",
			what, sm.Cap, trial.ErrUnfinished)
	}
	return nil
}

// once plays one run, and says what came of it and whether it reached the cap.
func (c *identifyCommand) once(ctx context.Context, s streams, sm trial.Simulation, text string,
	means []float64, names []string) (capped int, err error) {
	rule, lo, hi := sm.Rule, sm.Lo, sm.Hi
	var o trial.Outcome
	err = c.transcribe(false, publicFile, func(w io.Writer) (privacy.Loss, error) {
		var err error
		o, err = sm.Play(ctx, 0, w)
		return privacy.Loss{}, err
	})
	if err != nil {
		return 0, stopped(err)
	}
	if o.Answer >= 0 {
		text += "; the answer is right"
		if o.Wrong {
			text = strings.TrimSuffix(text, "right") + "wrong"
		}
	} else {
		capped = 1
	}
	r := trial.Result{Answer: o.Answer, Tau: o.Tau, Plays: o.Plays, Batches: o.Batches,
		Releases: o.Releases, Means: o.Means, Loss: o.Loss}
	if c.JSON {
		out := trialOf(rule, names, means, r, lo, hi)
		out.Simulated = &worldJSON{Means: means}
		if right := !o.Wrong; o.Answer >= 0 {
			out.Simulated.Right = &right
		}
		err = printJSON(s, out)
	} else {
		err = printTrial(s.out, rule, names, "arms\t"+text, means, r, lo, hi)
	}
	return capped, err
}

// best are the numbers of the arms with the largest mean.
func best(means []float64) []string {
	var out []string
	for a, m := range means {
		if m == slices.Max(means) {
			out = append(out, strconv.Itoa(a+1))
		}
	}
	return out
}

func printStudy(out io.Writer, rule trial.Rule, truth string, means []float64, study *trial.Study,
	lo, hi float64) error {
	runs := len(study.Outcomes)
	w := report.NewColumns(out)
	fmt.Fprintf(w, "rule\t%s, %d arms, rewards in [%v, %v]\n", rule.Entry().Title, rule.Arms(), lo, hi)
	fmt.Fprintf(w, "guarantee\t%s\n", promise(rule))
	fmt.Fprintf(w, "arms\t%s\n", truth)
	fmt.Fprintf(w, "wrong\t%d of %d runs: %.3g, 95 %% interval [%.3g, %.3g], allowed %v\n",
		study.Wrong, runs, float64(study.Wrong)/float64(runs), study.WrongLo, study.WrongHi, rule.Risk())
	at := ""
	if study.Capped > 0 {
		at = fmt.Sprintf("; %d runs at the cap, so that it is more", study.Capped)
	}
	fmt.Fprintf(w, "plays\tmean %.6g ± %.2g (standard error), median %.6g, 90 %% quantile %.6g, "+
		"largest %.6g%s\n", study.TauMean, study.TauSE, study.Tau50, study.Tau90, study.TauMax, at)
	share := make([]string, len(study.Share))
	for a, x := range study.Share {
		share[a] = fmt.Sprintf("%.3g", x)
	}
	fmt.Fprintf(w, "allocation\t%s\n", strings.Join(share, ", "))
	fmt.Fprintf(w, "adaptivity\tmean %.4g, largest %.4g batches of plays\n", study.BatchesMean,
		study.BatchesMax)
	lower(w, rule, means, lo, hi, "of these means")
	return w.Flush()
}
