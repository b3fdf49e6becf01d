package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/trial"
)

type planCommand struct {
	Trial   planTrial   `cmd:"" help:"Participants that a trial needs, at each ε."`
	Release planRelease `cmd:"" help:"What one release costs under a trust model."`
	Live    planLive    `cmd:"" help:"When a live experiment will know, and what it costs."`
	Budget  planBudget  `cmd:"" help:"The smallest ε at which privacy costs little."`
}

type planTrial struct {
	Arms  flags.Count  `in:"[2,1e4]" required:"" help:"Number of arms." placeholder:"K"`
	Gap   flags.Number `in:"(0,1]" help:"${planTrialGap}" placeholder:"Δ" group:"The arms, one of:"`
	Best  flags.Number `in:"(0,1]" help:"${planTrialBest}" placeholder:"MEAN" group:"The arms, one of:"`
	Prior flags.Range  `in:"[0,1]" help:"${planTrialPrior}" placeholder:"LO,HI" group:"The arms, one of:"`

	Risk    flags.Number  `in:"(0,1)" required:"" help:"${planTrialRisk}" placeholder:"δ"`
	Epsilon flags.Numbers `in:"(0,inf)" required:"" help:"${planTrialEpsilon}" placeholder:"ε,…"`
	Rule    flags.Policy  `default:"dp-sed" help:"${planTrialRule}" placeholder:"RULE"`
	Runs    flags.Count   `in:"[2,1e6]" default:"200" help:"Simulated trials at each ε." placeholder:"N"`
	Cap     flags.Count   `help:"Give a trial up after so many participants; 1e8 if not given." placeholder:"N"`
	Seed    flags.Seed    `help:"Seed of all randomness." default:"1" placeholder:"S"`
	Workers flags.Workers `help:"${planTrialWorkers}" placeholder:"W"`
	Figure  string        `help:"Draw participants against ε into this file: .svg, .pdf or .png." placeholder:"FILE.svg" type:"path"`
	drawingFlags
	JSON bool `help:"As JSON, for programs."`
}

// planTexts are help texts that are too long for their flags.
var planTexts = kong.Vars{
	"planTrialGap": "By how much the best arm is better than all others, which are equal.",
	"planTrialBest": "Mean of the best arm, beside --gap; if not given 1/2 + Δ/2: around 1/2 rewards say " +
		"least.",
	"planTrialPrior":   "Draw all means uniformly from this interval, anew for each run.",
	"planTrialRisk":    "Probability of a wrong answer that is allowed, above 0 and below 1.",
	"planTrialEpsilon": "Budgets of ε-DP to compare, such as 0.01,0.1,1,10.",
	"planTrialRule": "dp-sed, dp-tt, adap-tt, adap-tt-star or dp-se, with parameters if need be: dp-sed:gap=0.2 plans " +
		"for that gap.",
	"planTrialWorkers": "Runs played at a time; answers do not depend on it. 0 is one a processor.",
	"plan trial": `Examples:
  sotto plan trial --arms 5 --gap 0.2 --risk 0.05 --epsilon 0.01,0.1,1,10
  sotto plan trial --arms 3 --prior 0.2,0.8 --risk 0.1 --epsilon 0.1,1 --cap 1e6 --figure plan.svg`,
}

func (c *planTrial) config() (trial.PlanConfig, error) {
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
	return cfg, nil
}

func (c *planTrial) Run(ctx context.Context, s streams) error {
	cfg, err := c.config()
	if err == nil {
		err = cfg.Check()
	}
	if err != nil {
		return usage(err)
	}
	var figure *atomicfile.File
	var as report.Format
	if c.Figure != "" {
		if as, err = format("--figure", c.Figure); err != nil {
			return err
		}
		if figure, err = pending("--figure", c.Figure, publicFile); err != nil {
			return err
		}
		defer figure.Discard()
	}
	from, w := time.Now(), waiting(s, "plan trial", len(cfg.Epsilons)+1)
	cfg.Progress = func(r trial.PlanRow) {
		w.step(fmt.Sprintf("%s  %s  [%s]", r.Budget(), words.Several(cfg.Runs, "run"),
			time.Since(from).Round(100*time.Millisecond)))
	}
	p, err := cfg.Plan(ctx)
	w.end()
	if err != nil {
		return stopped(err)
	}
	if figure != nil {
		if err := planFigure(p).Write(figure, as, c.drawing()); err != nil {
			return drawn(fmt.Errorf("--figure: %w", err))
		}
		if err := figure.Replace(); err != nil {
			return fmt.Errorf("--figure: %w", err)
		}
	}
	if c.JSON {
		return printJSON(s, p)
	}
	return writePlan(s.out, p)
}
