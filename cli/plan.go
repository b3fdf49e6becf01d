package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/base/atomicfile"
	"github.com/sotto-dp/sotto/internal/base/report"
	"github.com/sotto-dp/sotto/internal/front/flags"
	"github.com/sotto-dp/sotto/trial"
)

type planCommand struct {
	Trial   planTrial   `cmd:"" help:"How many participants will a trial need, at which ε, and what does privacy add?"`
	Release planRelease `cmd:"" help:"${planRelease}"`
	Live    planLive    `cmd:"" help:"${planLive}"`
	Budget  planBudget  `cmd:"" help:"Which is the smallest ε at which privacy costs less than so much more regret?"`
}

type planTrial struct {
	Arms  flags.Count  `in:"[2,1e4]" required:"" help:"Number of arms." placeholder:"K"`
	Gap   flags.Number `in:"(0,1]" help:"${planTrialGap}" placeholder:"Δ" group:"The arms, one of:"`
	Best  flags.Number `in:"(0,1]" help:"${planTrialBest}" placeholder:"MEAN" group:"The arms, one of:"`
	Prior flags.Range  `in:"[0,1]" help:"${planTrialPrior}" placeholder:"LO,HI" group:"The arms, one of:"`

	Risk    flags.Number  `in:"(0,1)" required:"" help:"${planTrialRisk}" placeholder:"δ"`
	Epsilon flags.Numbers `in:"(0,inf)" required:"" help:"${planTrialEpsilon}" placeholder:"ε,…"`
	Rule    flags.Policy  `default:"dp-tt" help:"${planTrialRule}" placeholder:"RULE"`
	Runs    flags.Count   `in:"[2,1e6]" default:"200" help:"Simulated trials at each ε." placeholder:"N"`
	Cap     flags.Count   `help:"Give a trial up after so many participants; 1e8 if not given." placeholder:"N"`
	Seed    flags.Seed    `help:"Seed of all randomness." default:"1" placeholder:"S"`
	Workers flags.Workers `help:"${planTrialWorkers}" placeholder:"W"`
	Figure  string        `help:"Draw participants against ε into this SVG file." placeholder:"FILE.svg" type:"path"`
	JSON    bool          `help:"As JSON, for programs."`
}

// planTexts are help texts that are too long for their flags.
var planTexts = kong.Vars{
	"planRelease": "What does one release of a batch's sum take under a trust model: integers, bits a " +
		"user, what is lost, and by users who return?",
	"planTrialGap": "By how much the best arm is better than all others, which are equal.",
	"planTrialBest": "Mean of the best arm, beside --gap; if not given 1/2 + Δ/2: around 1/2 rewards say " +
		"least.",
	"planTrialPrior":   "Draw all means uniformly from this interval, anew for each run.",
	"planTrialRisk":    "Probability of a wrong answer that is allowed, above 0 and below 1.",
	"planTrialEpsilon": "Budgets of ε-DP to compare, such as 0.01,0.1,1,10.",
	"planTrialRule":    "dp-tt, adap-tt, adap-tt-star or dp-se, with parameters if need be: adap-tt:sigma=1.",
	"planTrialWorkers": "Runs played at a time; answers do not depend on it. 0 is one a processor.",
}

// Help is shown by --help.
func (c *planTrial) Help() string {
	return `Examples:
  sotto plan trial --arms 5 --gap 0.2 --risk 0.05 --epsilon 0.01,0.1,1,10
  sotto plan trial --arms 3 --prior 0.2,0.8 --risk 0.1 --epsilon 0.1,1 --cap 1e6 --figure plan.svg`
}

func (c *planTrial) config(s streams) (trial.PlanConfig, error) {
	cfg := trial.PlanConfig{Arms: int(c.Arms), Gap: c.Gap.X, Best: c.Best.X, Risk: c.Risk.X,
		Epsilons: c.Epsilon.X, Runs: int(c.Runs), Cap: int(c.Cap), Seed: c.Seed.X,
		Workers: int(c.Workers)}
	switch {
	case c.Gap.Set == c.Prior.Set:
		return cfg, errors.New("want one of --gap and --prior")
	case c.Prior.Set && c.Best.Set:
		return cfg, errors.New("--best is for --gap")
	case cfg.Cap > 0 && cfg.Cap < cfg.Arms:
		return cfg, flags.Bad("--cap", c.Cap, "at least the number of arms, %d", cfg.Arms)
	case c.Prior.Set:
		cfg.Prior = &[2]float64{c.Prior.Lo, c.Prior.Hi}
	}
	e, params, err := c.Rule.Find(catalog.Catalog{}, catalog.BanditIdentify)
	if err != nil {
		return cfg, err
	}
	if !e.Private {
		return cfg, fmt.Errorf("--rule %s is not private: a plan compares budgets, and has the "+
			"rule without privacy beside them", e.Name)
	}
	cfg.Rule, cfg.Params = e.Name, params
	from := time.Now()
	cfg.Progress = func(r trial.PlanRow) {
		fmt.Fprintf(s.err, "%s  %s  [%s]\n", epsilonText(r.Epsilon), several(cfg.Runs, "run"),
			time.Since(from).Round(100*time.Millisecond))
	}
	return cfg, nil
}

func epsilonText(epsilon float64) string {
	if math.IsInf(epsilon, 1) {
		return "none"
	}
	return "ε=" + strconv.FormatFloat(epsilon, 'g', -1, 64)
}

func (c *planTrial) Run(ctx context.Context, s streams) error {
	cfg, err := c.config(s)
	if err == nil {
		err = cfg.Check()
	}
	if err != nil {
		return usage(err)
	}
	var figure *atomicfile.File
	if c.Figure != "" {
		if figure, err = pending("--figure", c.Figure, publicFile); err != nil {
			return err
		}
		defer figure.Discard()
	}
	p, err := cfg.Plan(ctx)
	if err != nil {
		return stopped(err)
	}
	if figure != nil {
		if err := planFigure(p).WriteSVG(figure); err != nil {
			return fmt.Errorf("--figure: %w", err)
		}
		if err := figure.Replace(); err != nil {
			return fmt.Errorf("--figure: %w", err)
		}
	}
	if c.JSON {
		return printJSON(s, planOf(p))
	}
	return printPlan(s, p)
}

func printPlan(s streams, p *trial.Plan) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(s.out, "%s\n%s, risk %v, %s at each ε\n\n", p.Arms, p.Rule.Entry().Title,
		p.Rule.Risk(), several(p.Runs, "run"))
	fmt.Fprintln(w, "budget\tlower bound\tparticipants\tmedian\t90 %\tmax\twrong\tbatches\t× none")
	// A mean stands if every run ended, a median if most did.
	stands := func(r trial.PlanRow) bool { return r.Capped == 0 || p.Prior && 2*r.Capped < p.Runs }
	capped, compared, below := 0, true, false
	for _, r := range append(append([]trial.PlanRow{}, p.Rows...), p.Plain) {
		mark := ""
		if r.Capped > 0 {
			mark = fmt.Sprintf(" (%d at the cap)", r.Capped)
			capped += r.Capped
		}
		times := "–"
		if stands(r) && stands(p.Plain) {
			times = fmt.Sprintf("%.2f", r.OverNonPrivate)
			below = below || r.OverNonPrivate < 0.995
		} else {
			compared = false
		}
		lower := "–"
		if !math.IsNaN(r.Lower) {
			lower = short(math.Ceil(r.Lower))
			if r.Lower >= 1e15 {
				lower = fmt.Sprintf("%.3g", r.Lower)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s ± %s%s\t%s\t%s\t%s\t%d\t%.1f\t%s\n", epsilonText(r.Epsilon),
			lower, short(math.Round(r.Mean)), short(math.Ceil(r.SE)), mark,
			short(math.Round(r.Median)), short(math.Round(r.Q90)), short(r.Max), r.Wrong, r.Batches, times)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	size := "in the mean"
	if p.Prior {
		size = "in the median"
	}
	switch {
	case p.Free > 0:
		fmt.Fprintf(s.out, "Privacy is free from ε = %v on: at most %.0f %% more participants %s "+
			"than %s without noise.\n", p.Free, 100*trial.Slack, size, p.Rule.Entry().Title)
	case !compared:
		fmt.Fprintln(s.out, "Whether privacy is free at any of these ε is not known: runs ended at the cap.")
	default:
		fmt.Fprintf(s.out, "Privacy is not free at any of these ε: that would be at most %.0f %% "+
			"more participants %s than %s without noise.\n", 100*trial.Slack, size, p.Rule.Entry().Title)
	}
	if below {
		fmt.Fprintf(s.out, "× none below 1 is no gain from noise: none is %s without it, whose "+
			"phases have other lengths.\n", p.Rule.Entry().Title)
	}
	if !math.IsNaN(p.Boundary) {
		fmt.Fprintf(s.out, "For the best rule there can be, privacy begins to cost below about ε "+
			"= %.3g, where T*_TV/ε = T*_KL.\n", p.Boundary)
	}
	fmt.Fprintln(s.out, "participants: mean ± standard error; lower bound: no rule that is ε-DP "+
		"and as often right needs fewer in the mean (000 Theorem 4.24); batches: mean rounds of "+
		"adaptivity; none: the same rule without noise.")
	fmt.Fprintln(s.out, "A rule made to go without privacy may need fewer than that: see sotto "+
		"identify --rule ttucb.")
	if p.Prior {
		fmt.Fprintln(s.out, "Of means drawn at random some are nearly equal, and such trials are "+
			"most of the mean: the lower bound, × none and that ε are medians over the runs' arms.")
	}
	if p.Rule.Correct() == "" {
		fmt.Fprintln(s.out, "No bound on the error of this rule is proved for these parameters.")
	}
	if capped > 0 {
		fmt.Fprintf(s.out, "Runs at the cap of %d participants have no answer and count with the "+
			"cap: means and quantiles are then too small.\n", p.Cap)
	}
	return nil
}

// planFigure is participants against ε.
func planFigure(p *trial.Plan) report.Figure {
	f := report.Figure{
		ID: "plan", Title: "Participants of a trial",
		Subtitle: fmt.Sprintf("%s; %s, risk %v", p.Arms, p.Rule.Entry().Title, p.Rule.Risk()),
		XLabel:   "budget ε", YLabel: "participants", LogX: true, LogY: true,
	}
	what, band := "mean", "; band: mean ± two standard errors"
	if p.Prior {
		what, band = "median", ""
	}
	f.Note = fmt.Sprintf("%s at each ε%s. The lower bound is that of every rule with this "+
		"guarantee. For the best rule privacy begins to cost below ε = %.3g.",
		several(p.Runs, "run"), band, p.Boundary)
	mean, high := report.Series{Label: what}, report.Series{Label: "90 % quantile"}
	plain, lower := report.Series{Label: what + " without noise"}, report.Series{Label: "lower bound"}
	for _, r := range p.Rows {
		for _, x := range []*report.Series{&mean, &high, &plain, &lower} {
			x.X = append(x.X, r.Epsilon)
		}
		high.Mean = append(high.Mean, r.Q90)
		if p.Prior { // a mean is that of the longest few
			mean.Mean = append(mean.Mean, r.Median)
			plain.Mean = append(plain.Mean, p.Plain.Median)
		} else {
			mean.Mean = append(mean.Mean, r.Mean)
			mean.Lo, mean.Hi = append(mean.Lo, r.Mean-2*r.SE), append(mean.Hi, r.Mean+2*r.SE)
			plain.Mean = append(plain.Mean, p.Plain.Mean)
		}
		lower.Mean = append(lower.Mean, r.Lower)
	}
	f.Series = []report.Series{mean, high, plain, lower}
	return f
}

// planJSON is a plan as programs read it.
type planJSON struct {
	Arms           string    `json:"arms"`
	Rule           string    `json:"rule"`
	Risk           float64   `json:"risk"`
	Runs           int       `json:"runs"`
	Cap            int       `json:"cap"`
	Rows           []rowJSON `json:"rows"`
	WithoutPrivacy rowJSON   `json:"without_privacy"`
	Boundary       any       `json:"regime_boundary"`
	Free           any       `json:"free_from"` // null: nowhere
}

type rowJSON struct {
	Epsilon  any        `json:"epsilon"` // "none" without privacy
	Lower    any        `json:"lower_bound"`
	Mean     float64    `json:"mean"`
	SE       float64    `json:"standard_error"`
	Median   float64    `json:"median"`
	Q90      float64    `json:"q90"`
	Max      float64    `json:"max"`
	Capped   int        `json:"capped"`
	Wrong    int        `json:"wrong"`
	Interval [2]float64 `json:"wrong_interval"`
	Batches  float64    `json:"batches"`
	Ratio    float64    `json:"over_without_privacy"`
}

func planOf(p *trial.Plan) planJSON {
	finite := func(x float64) any {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		return x
	}
	row := func(r trial.PlanRow) rowJSON {
		out := rowJSON{r.Epsilon, finite(r.Lower), r.Mean, r.SE, r.Median, r.Q90, r.Max, r.Capped,
			r.Wrong, [2]float64{r.WrongLo, r.WrongHi}, r.Batches, r.OverNonPrivate}
		if math.IsInf(r.Epsilon, 1) {
			out.Epsilon = "none"
		}
		return out
	}
	out := planJSON{Arms: p.Arms, Rule: p.Rule.Name(), Risk: p.Rule.Risk(), Runs: p.Runs,
		Cap: p.Cap, WithoutPrivacy: row(p.Plain), Boundary: finite(p.Boundary)}
	if p.Free > 0 {
		out.Free = p.Free
	}
	for _, r := range p.Rows {
		out.Rows = append(out.Rows, row(r))
	}
	return out
}
