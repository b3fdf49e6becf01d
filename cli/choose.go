package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/choose"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

type chooseCommand struct {
	Arms      flags.Arms    `help:"${chooseArms}" placeholder:"ARM,…" group:"The world, one of:"`
	Change    flags.Changes `help:"${chooseChange}" placeholder:"ROUND:ARM,…" group:"The world, one of:"`
	Standard  string        `help:"${chooseStandard}" placeholder:"C" group:"The world, one of:"`
	ArmsCount flags.Count   `help:"${chooseArmsCount}" placeholder:"K" group:"The world, one of:"`
	Prior     flags.Prior   `help:"${choosePrior}" placeholder:"K:LO:HI" group:"The world, one of:"`
	CSV       string        `name:"csv" help:"${chooseCSV}" placeholder:"FILE" type:"path" group:"The world, one of:"`

	columnFlags

	Epsilon flags.Number `in:"(0,inf)" help:"${chooseEpsilon}" placeholder:"ε" group:"The budget:"`
	Delta   flags.Number `in:"(0,1)" help:"δ, beside --epsilon." placeholder:"δ" group:"The budget:"`
	Alpha   flags.Number `in:"(1,inf)" help:"α, beside --epsilon." placeholder:"α" group:"The budget:"`
	Rho     flags.Number `in:"(0,inf)" help:"ρ-zCDP." placeholder:"ρ" group:"The budget:"`

	Delay   string       `help:"${chooseDelay}" placeholder:"LAW" group:"Late rewards:"`
	Window  flags.Count  `help:"${chooseWindow}" placeholder:"W" group:"Late rewards:"`
	Missing flags.Number `in:"[0,1)" help:"${chooseMissing}" placeholder:"SHARE" group:"Late rewards:"`
	Default flags.Number `help:"${chooseDefault}" placeholder:"X" group:"Late rewards:"`

	Range      flags.Range    `help:"${chooseRange}" placeholder:"LO,HI"`
	Horizon    flags.Count    `required:"" help:"Rounds of a run; 1e6 is a number." placeholder:"T"`
	Policies   flags.Policies `help:"${choosePolicies}" placeholder:"NAME,…"`
	Reference  bool           `help:"Show policies without privacy too. They are not ranked."`
	Level      flags.Number   `in:"(0,1)" help:"${chooseLevel}" default:"0.05" placeholder:"P"`
	Resolution flags.Number   `in:"(0,1)" help:"${chooseResolution}" default:"0.01" placeholder:"R"`
	Risk       flags.Number   `in:"[0.5,1)" help:"${chooseRisk}" placeholder:"P"`
	ByRisk     bool           `help:"${chooseByRisk}"`
	Strict     bool           `help:"Trust no central limit theorem. Needs many more runs."`
	MinRuns    flags.Count    `help:"${chooseMinRuns}" placeholder:"N"`
	MaxRuns    flags.Count    `help:"${chooseMaxRuns}" placeholder:"N"`
	Time       time.Duration  `help:"${chooseTime}" placeholder:"TIME"`
	Seed       flags.Seed     `help:"Seed of all randomness." default:"1" placeholder:"S"`
	Workers    flags.Workers  `help:"${chooseWorkers}" placeholder:"W"`
	programFlag
	JSON bool `help:"As JSON, for programs."`
}

// chooseTexts are help texts that are too long for their flags.
var chooseTexts = kong.Vars{
	"chooseArms": "The arms, by their Bernoulli means or their laws, such as 0.75,0.6 or " +
		"gaussian(0.5,0.1).",
	"chooseChange": "Beside --arms: from this round on the arms are these, as in 50001:0.6,0.75. Regret is " +
		"against the best arm of each round. Can be given several times.",
	"chooseStandard":  "A standard instance of [Sajed 2019]: C1, C2, C3 or C4, for --arms-count arms.",
	"chooseArmsCount": "Number of arms of --standard; 5 if not given.",
	"choosePrior": "Bernoulli arms whose means are drawn uniformly from [LO,HI] for each run: how many, " +
		"and from where.",
	"chooseCSV": "Logged rewards, a CSV with a header (also .gz), or Parquet. Rows are drawn with replacement: their order " +
		"does not matter.",
	"chooseEpsilon": "ε-DP; with --delta (ε,δ)-DP, with --alpha (α,ε)-RDP.",
	"chooseDelay": "How late rewards are, in rounds: constant:D, geometric:MEAN or uniform:MEAN. A number " +
		"alone, such as 1000, is a window in which all come.",
	"chooseWindow":  "Rounds that a reward may take before it counts the default. Nothing is released before.",
	"chooseMissing": "Share of the rewards that never come.",
	"chooseDefault": "What a reward counts that does not come in its window; 0 if not given.",
	"chooseRange": "Declared range of rewards; others are clipped. 0,1 if not given. --csv needs it: it " +
		"must not be taken from the data.",
	"choosePolicies": "Only these policies, each with parameters if need be: adap-klucb,adap-ucb:alpha=4. " +
		"Else all that meet the budget.",
	"chooseLevel":      "Probability that anything in the answer is wrong.",
	"chooseResolution": "Means within this fraction of each other are a tie.",
	"chooseRisk": "Show what bad runs lose, too: the mean regret of the worst 1 − P of the runs, " +
		"such as 0.99 for the worst hundredth (the conditional value at risk).",
	"chooseByRisk": "Rank by what bad runs lose, --risk, and not by the mean.",
	"chooseMinRuns": "Runs of a policy before it may be settled; 1024 if not given, fewer where runs are " +
		"long.",
	"chooseMaxRuns": "Most runs of a policy; 65536 if not given, fewer where runs are long.",
	"chooseTime":    "Begin no run after this time, such as 2m, and answer with what is known.",
	"chooseWorkers": "Runs played at a time; answers do not depend on it. 0 is one a processor.",
	"choose": `Examples:
  sotto choose --arms 0.75,0.6 --epsilon 0.1 --horizon 1e6
  sotto choose --prior 5:0.25:0.75 --rho 0.1 --horizon 1e5 --reference
  sotto choose --arms 0.55,0.5 --epsilon 1 --horizon 1e5 --delay geometric:1000 --window 5000
  sotto choose --arms 0.5,0.6 --change 50001:0.7,0.6 --epsilon 1 --horizon 1e5
  sotto choose --csv examples/rewards.csv --range 0,1 --epsilon 1 --horizon 1e5 --time 1m`,
}

func (c *chooseCommand) Run(ctx context.Context, s streams) error {
	var err error
	if s.known, err = c.known(s, catalog.BanditArms, false); err != nil {
		return err
	}
	q, err := c.question(s)
	if err != nil {
		return err
	}
	w := waiting(s, "choose", 0)
	w.atMost(0, c.Time)
	q.Progress = func(p choose.Progress) {
		line := fmt.Sprintf("look %d: %d policies, %d runs; %d of %d neighbours are not settled",
			p.Look, p.Policies, p.Runs, p.Unsettled, max(p.Policies-1, 0))
		if p.Next > 0 {
			line += fmt.Sprintf("; %d policies go on", p.Next)
		}
		w.step(line)
	}
	a, err := choose.Rank(ctx, q)
	w.end()
	if err != nil {
		return err
	}
	if c.CSV != "" {
		// The source's own text has a hash of the rewards: of few values it can be
		// guessed and confirmed.
		a.World = fmt.Sprintf("%s, %d arms", c.CSV, len(q.Source.(bandit.Fixed).Arms))
		a.Warnings = append(a.Warnings, "the log is used without noise: keep this answer as private as the log")
	}
	use, repeat := a.Use().Policy, c.repeat(s.program, &q, &a)
	if a.Refused != "" {
		use, repeat = "", ""
	}
	if c.JSON {
		return printJSON(s, struct {
			Use     string `json:"use"`
			Command string `json:"command"`
			choose.Answer
		}{use, repeat, a})
	}
	if err := printAnswer(s.out, &a); err != nil {
		return err
	}
	if repeat == "" {
		return nil
	}
	_, err = fmt.Fprintf(s.out, "\nTo repeat its runs:\n  %s\n", repeat)
	return err
}

func (c *chooseCommand) question(s streams) (choose.Question, error) {
	if c.ByRisk && c.Risk.X == 0 {
		return choose.Question{}, usagef("--by-risk: --risk is missing, the share of the runs that are not bad, " +
			"such as --risk 0.99")
	}
	q := choose.Question{Catalog: s.known, Horizon: int(c.Horizon), Reference: c.Reference,
		Strict: c.Strict, Risk: c.Risk.X, ByRisk: c.ByRisk, MinRuns: int(c.MinRuns), MaxRuns: int(c.MaxRuns), Level: c.Level.X,
		Resolution: c.Resolution.X, Time: c.Time, Seed: c.Seed.X, Workers: int(c.Workers)}
	var err error
	if q.Lo, q.Hi, err = c.ends(); err != nil {
		return q, usage(err)
	}
	if q.Source, err = c.source(s, q.Lo, q.Hi); err != nil {
		return q, usage(err)
	}
	if q.Budget, err = c.budget(); err != nil {
		return q, usage(err)
	}
	if q.Delay, err = c.late(q.Lo, q.Hi); err != nil {
		return q, usage(err)
	}
	for _, p := range c.Policies.List {
		entry, params, err := p.Find(s.known, catalog.BanditArms)
		if err != nil {
			return q, err
		}
		q.Policies = append(q.Policies, choose.Candidate{Policy: entry.Name, Params: params})
	}
	if c.Time < 0 {
		return q, flags.Bad("--time", c.Time, "positive")
	}
	return q, nil
}

// late says how late rewards are, from rewards in [lo, hi], both 0 for [0,1].
func (c *chooseCommand) late(lo, hi float64) (sim.DelayLaw, error) {
	d := sim.DelayLaw{Window: int(c.Window), Missing: c.Missing.X, Default: c.Default.X}
	if c.Delay == "" && d.Window == 0 {
		if c.Missing.Set || c.Default.Set {
			return d, errors.New("--missing and --default go with --window or --delay")
		}
		return d, nil
	}
	law, mean, hasMean := strings.Cut(c.Delay, ":")
	switch {
	case hasMean:
		x, err := strconv.ParseFloat(mean, 64)
		if err != nil || law == sim.DelayEmpirical {
			return d, flags.Bad("--delay", c.Delay, "a number of rounds, or constant:D, geometric:MEAN or "+
				"uniform:MEAN")
		}
		if d.Law, d.Mean = law, x; d.Window == 0 {
			return d, errors.New("--delay with a law wants --window, the rounds that a reward may take")
		}
	case c.Delay != "" && d.Window != 0:
		return d, errors.New("want one of --window and --delay with a number, which is the window")
	case c.Delay != "":
		n, err := keyed.ParseCount(c.Delay)
		if err != nil {
			return d, fmt.Errorf("--delay: %w", err)
		}
		d.Window = int(n)
	}
	if field, err := d.Check(release.Range(lo, hi)); err != nil {
		if field == "law" || field == "mean" {
			return d, fmt.Errorf("--delay: %s %w", field, err)
		}
		return d, fmt.Errorf("--%s %w", field, err)
	}
	return d, nil
}

// ends are those of the declared range, both 0 if none is.
func (c *chooseCommand) ends() (lo, hi float64, err error) {
	if !c.Range.Set && c.CSV == "" {
		return 0, 0, nil
	}
	return declared(c.Range, true)
}

// source is the world; lo and hi are the range that a log's persons are clipped to.
func (c *chooseCommand) source(s streams, lo, hi float64) (bandit.Source, error) {
	fixed := func(in bandit.Instance, err error) (bandit.Source, error) {
		if err != nil {
			return nil, err
		}
		return bandit.Fixed(in), nil
	}
	switch {
	case given(c.Arms.Set(), c.Standard != "", c.Prior.Arms > 0, c.CSV != "") != 1:
		return nil, errors.New("want exactly one of --arms, --standard, --prior and --csv")
	case c.ArmsCount != 0 && c.Standard == "":
		return nil, errors.New("--arms-count goes with --standard")
	case c.CSV == "-":
		return nil, errors.New("--csv is -, must be a file: the experiment that choose prints reads it again")
	case c.CSV == "" && c.columnFlags.given():
		return nil, c.check(c.CSV)
	case len(c.Change) > 0 && !c.Arms.Set():
		return nil, errors.New("--change goes with --arms")
	case c.Arms.Set():
		in, err := bandit.NewInstance(c.Arms.Laws...)
		if err != nil {
			return nil, fmt.Errorf("--arms: %w", err)
		}
		in.Changes = c.Change.Laws()
		if err := in.Validate(); err != nil {
			return nil, fmt.Errorf("--change: %w", err)
		}
		return bandit.Fixed(in), nil
	case c.Standard != "":
		n := map[string]int{"C1": 1, "C2": 2, "C3": 3, "C4": 4}[strings.ToUpper(c.Standard)]
		if n == 0 {
			return nil, fmt.Errorf("--standard is %q, must be C1, C2, C3 or C4", c.Standard)
		}
		arms := int(c.ArmsCount)
		if arms == 0 {
			arms = 5
		}
		return fixed(bandit.Standard(n, arms))
	case c.Prior.Arms > 0:
		src, err := bandit.NewUniformMeans(c.Prior.Arms, c.Prior.Lo, c.Prior.Hi,
			bandit.BernoulliFamily(), true)
		if err != nil {
			return nil, fmt.Errorf("--prior: %w", err)
		}
		return src, nil
	default:
		var in bandit.Instance
		var log logged.Summary
		err := readLog(c.CSV, s, c.dialect(), func(r io.Reader) (err error) {
			in, log, err = bandit.ReadCSV(r, c.format(lo, hi))
			return err
		})
		if err != nil {
			return nil, err
		}
		tellOf(s, c.CSV, log)
		if log.Clipped {
			fmt.Fprintf(s.err, "warning: %s: rewards leave the declared range [%v, %v] and are "+
				"clipped to it before a person's mean is taken\n", c.CSV, lo, hi)
		}
		return bandit.Fixed(in), nil
	}
}

func (c *chooseCommand) budget() (privacy.Budget, error) {
	fields := map[string]float64{}
	for name, x := range map[string]flags.Number{"epsilon": c.Epsilon, "delta": c.Delta,
		"alpha": c.Alpha, "rho": c.Rho} {
		if x.Set {
			fields[name] = x.X
		}
	}
	if len(fields) == 0 {
		return nil, errors.New("want a budget: --epsilon, --rho, --epsilon with --delta, or " +
			"--epsilon with --alpha")
	}
	return privacy.NewBudget(fields)
}

// printAnswer prints the ranking, what limits it, and which policy to use.
func printAnswer(out io.Writer, a *choose.Answer) error {
	var b strings.Builder
	world := []rune(a.World)
	if len(world) > 120 {
		world = append(world[:120], '…')
	}
	fmt.Fprintf(&b, "%s, %s, T = %d\n", string(world), a.Budget, a.Horizon)
	if a.Delay != "" {
		fmt.Fprintf(&b, "rewards come late, in rounds: %s\n", a.Delay)
	}
	fmt.Fprintln(&b)
	w := report.NewColumns(&b)
	worst := ""
	if a.Risk > 0 {
		worst = fmt.Sprintf("\tworst %.4g %%", 100*(1-a.Risk))
	}
	fmt.Fprintf(w, "tier\tpolicy\tregret at T\tratio\tmedian\tq95\tq99\tmax%s\truns\thorizon\tguarantee\n", worst)
	row := func(tier string, r choose.Row) {
		ratio := "-"
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f×", r.Ratio)
		}
		heavy := ""
		if r.Heavy {
			heavy = " !"
		}
		horizon := "needed"
		if r.Anytime {
			horizon = "-"
		}
		worst := ""
		if a.Risk > 0 {
			worst = fmt.Sprintf("\t%s ± %s", words.Short(r.Worst), words.Short(r.WorstHalf))
			if r.WorstHeavy {
				worst += " !"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s ± %s%s\t%s\t%s\t%s\t%s\t%s%s\t%d\t%s\t%s\n", tier, r.Policy,
			words.Short(r.Mean), words.Short(r.Half), heavy, ratio,
			words.Short(r.Median), words.Short(r.Q95), words.Short(r.Q99), words.Short(r.Max),
			worst, r.Runs, horizon, r.Guarantee)
	}
	for i, r := range a.Rows {
		tier := strconv.Itoa(r.Tier)
		if i > 0 {
			switch a.Verdicts[i-1] {
			case choose.Tie:
				tier = "="
			case choose.Unsettled:
				tier = "?"
			}
		}
		row(tier, r)
	}
	for _, r := range a.References {
		row("", r)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(&b)
	for _, warning := range a.Warnings {
		fmt.Fprintln(&b, "warning:", warning)
	}
	explain(&b, a)
	if a.Refused != "" {
		fmt.Fprintf(&b, "\nnothing is recommended: %s\n", a.Refused)
		_, err := io.WriteString(out, b.String())
		return err
	}
	recommend(&b, a)
	_, err := io.WriteString(out, b.String())
	return err
}

// explain says what the numbers are, and why there are no more of them.
func explain(b *strings.Builder, a *choose.Answer) {
	kind := "Student's intervals, believed where the skewness of n runs is at most √(n/25); " +
		"Hoeffding's bound; betting"
	if a.Strict {
		kind = "Hoeffding's bound and betting; ± is Student's interval, and not promised"
	}
	fmt.Fprintf(b, "The verdicts and every ± without ! hold together with probability %v (%s).\n",
		1-a.Level, kind)
	if a.Risk > 0 {
		by := ""
		if a.ByRisk {
			by = " The ranking is by it, and compares these intervals and Hoeffding's bounds."
		}
		fmt.Fprintf(b, "The worst %.4g %% is the mean of these runs (conditional value at risk), ± "+
			"Student's interval of it.%s\n", 100*(1-a.Risk), by)
	}
	fmt.Fprintf(b, "A tier ends where the next policy is worse; = is a tie within %v%%, ? is "+
		"not settled, ! is a mean whose runs are too skewed for its ±. What no run has shown is "+
		"not in the means.\n",
		100*a.Resolution)
	if n := len(a.References); n > 0 {
		fmt.Fprintln(b, "Rows without a tier are not private: what privacy costs.")
	}
	switch a.Stopped {
	case "runs":
		fmt.Fprintln(b, "Stopped at the most runs: --max-runs goes on.")
	case "effort":
		fmt.Fprintln(b, "Stopped: policies that are not settled have long runs; --policies leaves them out.")
	case "time":
		fmt.Fprintln(b, "Stopped by --time.")
	}
	for _, l := range a.Left {
		if l.Policy == catalog.AutoPolicy && l.Why != "" {
			fmt.Fprintf(b, "policy: auto, which goes by what is known before the first reward: %s.\n", l.Why)
		}
	}
	fmt.Fprintf(b, "Regret is %s. Playing all arms equally often, without looking at a reward, "+
		"has %s.\n", a.Regret, words.Short(a.EqualSplit))
}

// recommend says what to use, and what is as good.
func recommend(b *strings.Builder, a *choose.Answer) {
	use := a.Use()
	fmt.Fprintf(b, "\nuse %s: mean regret %s ± %s", use.Policy, words.Short(use.Mean), words.Short(use.Half))
	if a.Risk > 0 {
		fmt.Fprintf(b, ", %s ± %s in the worst %.4g %% of runs", words.Short(use.Worst),
			words.Short(use.WorstHalf), 100*(1-a.Risk))
	}
	if worse := a.Against(choose.Better); len(worse) > 0 && a.ByRisk {
		fmt.Fprintf(b, "; %s, the best of those that are worse there, has %s", worse[0].Policy,
			words.Short(worse[0].Worst))
	} else if len(worse) > 0 && use.Mean > 0 {
		fmt.Fprintf(b, "; %s, the best of those that are worse, has %.2f times as much",
			worse[0].Policy, worse[0].Ratio)
	}
	for _, peers := range []struct {
		how  string
		rows []choose.Row
	}{{"as good: ", a.Against(choose.Tie)}, {"not shown to be worse: ", a.Against(choose.Unsettled)}} {
		for i, r := range peers.rows {
			if i == 0 {
				fmt.Fprint(b, "; ", peers.how)
			} else {
				fmt.Fprint(b, ", ")
			}
			fmt.Fprint(b, r.Policy)
		}
	}
	if r, ok := a.Anytime(); ok && !use.Anytime {
		fmt.Fprintf(b, "; where T is not known: %s", r.Policy)
	}
	fmt.Fprintln(b)
}

// repeat is the command that plays the first policy's runs again: with flags where they can say it,
// else with an experiment.
func (c *chooseCommand) repeat(program string, q *choose.Question, a *choose.Answer) string {
	use := a.Use()
	if in, ok := q.Source.(bandit.Fixed); ok && c.CSV == "" && len(c.Change) == 0 && !c.Alpha.Set && !c.Range.Set && !q.Delay.On() {
		arms := make([]string, len(in.Arms))
		plain := true
		for i, law := range in.Arms {
			arms[i] = fmt.Sprint(law)
			if b, ok := law.(bandit.Bernoulli); ok {
				arms[i] = strconv.FormatFloat(b.Mean(), 'g', -1, 64)
			} else {
				plain = false
			}
		}
		list := strings.Join(arms, ",")
		if !plain {
			list = "'" + list + "'"
		}
		command := fmt.Sprintf("%s run --arms %s%s --policies %s", program, list, c.text(),
			written(q.Catalog, use.Candidate))
		for _, f := range []struct {
			name, text string
		}{{"epsilon", c.Epsilon.String()}, {"delta", c.Delta.String()}, {"rho", c.Rho.String()}} {
			if f.text != "" {
				command += " --" + f.name + " " + f.text
			}
		}
		return command + fmt.Sprintf(" --horizon %d --runs %d --seed %d", q.Horizon, use.Runs, q.Seed)
	}
	spec := experiment.Spec{Name: "chosen", Horizon: keyed.Count(q.Horizon),
		Runs: keyed.Count(use.Runs), Seed: q.Seed, Budgets: []privacy.Budget{q.Budget},
		Catalog: q.Catalog, Delay: q.Delay,
		Lo: q.Lo, Hi: q.Hi,
		Checkpoints: []keyed.Count{keyed.Count(q.Horizon)},
		Policies:    []experiment.Policy{{Policy: use.Candidate.Policy, Params: use.Candidate.Params}}}
	if e, err := q.Catalog.Find(catalog.BanditArms, use.Candidate.Policy); err == nil && e.Program.Args != nil {
		spec.Policies[0].Program = catalog.Program{Args: e.Program.Args}
	}
	in := experiment.Instance{Name: "world"}
	switch {
	case c.CSV != "":
		in.CSV, in.Columns = c.CSV, c.columns()
	case c.Prior.Arms > 0:
		in.Arms = keyed.Count(c.Prior.Arms)
		in.Means = &experiment.Means{Lo: c.Prior.Lo, Hi: c.Prior.Hi, Redraw: true}
	default:
		for _, law := range q.Source.(bandit.Fixed).Arms {
			in.Laws = append(in.Laws, fmt.Sprint(law))
		}
		for _, x := range c.Change {
			in.Changes = append(in.Changes, experiment.Change{From: keyed.Count(x.From), Laws: x.Texts})
		}
	}
	spec.Instances = []experiment.Instance{in}
	text, err := spec.YAML()
	if err != nil {
		return err.Error()
	}
	return program + " run - <<'END'\n" + strings.TrimRight(string(text), "\n") + "\nEND"
}

// written is a policy as --policies reads it.
func written(known catalog.Catalog, c choose.Candidate) string {
	entry, err := known.Find(catalog.BanditArms, c.Policy)
	text := c.Policy
	if err != nil {
		return text
	}
	for _, p := range entry.Params {
		if x, ok := c.Params[p.Name]; ok {
			text += ":" + p.Name + "=" + p.Text(x)
		}
	}
	return text
}
