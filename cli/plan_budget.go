package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/experiment"
)

type planBudget struct {
	Arms  flags.Arms   `help:"${planBudgetArms}" placeholder:"ARM,…" group:"The arms, one of:"`
	Gap   flags.Number `in:"(0,1]" help:"${planBudgetGap}" placeholder:"Δ" group:"The arms, one of:"`
	Count flags.Count  `in:"[2,1e4]" help:"Number of arms, beside --gap." placeholder:"K"`
	Best  flags.Number `in:"(0,1]" help:"${planBudgetBest}" placeholder:"MEAN"`

	Horizon flags.Count   `required:"" help:"Rounds of a run; 1e6 is a number." placeholder:"T"`
	More    flags.Share   `required:"" help:"How much more regret is all right, such as 10% or 0.1." placeholder:"X%"`
	Policy  flags.Policy  `default:"adap-klucb" help:"${planBudgetPolicy}" placeholder:"NAME"`
	Range   flags.Range   `in:"(0,inf)" default:"0.001,100" help:"Where to look for ε." placeholder:"LO,HI"`
	Runs    flags.Count   `in:"[2,1e6]" default:"1000" help:"Runs at each ε." placeholder:"N"`
	Seed    flags.Seed    `default:"1" help:"Seed of all randomness." placeholder:"S"`
	Workers flags.Workers `help:"${planBudgetWorkers}" placeholder:"W"`
	JSON    bool          `help:"As JSON, for programs."`
}

// planBudgetTexts are help texts that are too long for their flags.
var planBudgetTexts = kong.Vars{
	"planBudgetArms": "The arms, by their Bernoulli means or their laws, such as 0.75,0.6 or " +
		"uniform(0.2,0.4).",
	"planBudgetGap":     "By how much the best Bernoulli arm is better than all others, which are equal.",
	"planBudgetBest":    "Mean of the best arm, beside --gap; if not given 1/2 + Δ/2.",
	"planBudgetPolicy":  "A policy with ε-DP, with parameters if need be: adap-ucb:alpha=4.",
	"planBudgetWorkers": "Runs played at a time; answers do not depend on it. 0 is one a processor.",
	"plan budget": `Examples:
  sotto plan budget --gap 0.1 --count 5 --horizon 1e6 --more 10%
  sotto plan budget --arms 0.75,0.625,0.5 --horizon 1e6 --more 25% --policy dp-klucb`,
}

func (c *planBudget) search(s streams) (experiment.BudgetSearch, error) {
	q := experiment.BudgetSearch{Arms: c.Arms.Texts, Horizon: keyed.Count(c.Horizon),
		More: c.More.X, From: c.Range.Lo, To: c.Range.Hi, Runs: keyed.Count(c.Runs),
		Seed: c.Seed.X, Workers: int(c.Workers), Catalog: s.known}
	switch {
	case c.Arms.Set() == c.Gap.Set:
		return q, errors.New("want one of --arms and --gap")
	case !c.Gap.Set && (c.Count != 0 || c.Best.Set):
		return q, errors.New("--count and --best go with --gap")
	case c.Gap.Set && c.Count == 0:
		return q, errors.New("want --count beside --gap, the number of arms")
	case c.Best.Set && c.Best.X < c.Gap.X:
		return q, flags.Bad("--best", c.Best, "from the gap, %v, to 1", c.Gap)
	}
	best := c.Best.Or(0.5 + c.Gap.X/2)
	for i := range int(c.Count) {
		mean := best
		if i > 0 {
			mean = math.Round((best-c.Gap.X)*1e15) / 1e15 // 0.75 − 0.2 is 0.55
		}
		q.Arms = append(q.Arms, strconv.FormatFloat(mean, 'g', -1, 64))
	}
	entry, params, err := c.Policy.Find(s.known, catalog.BanditArms)
	q.Policy = experiment.Policy{Policy: entry.Name, Params: params}
	return q, err
}

func (c *planBudget) Run(ctx context.Context, s streams) error {
	q, err := c.search(s)
	if err != nil {
		return usage(err)
	}
	w := waiting(s, "plan budget", 0)
	q.Progress = func(p experiment.BudgetProbe) {
		w.atMost(p.Most, 0)
		w.step(fmt.Sprintf("ε=%.4g  %+.1f ± %.1f %%", p.Epsilon, 100*p.Ratio, 100*p.Half))
	}
	a, err := q.Run(ctx)
	w.end()
	switch {
	case errors.Is(err, experiment.ErrBudgetSearch):
		return usage(err)
	case err != nil:
		return stopped(err)
	}
	if c.JSON {
		return printJSON(s, budgetJSONOf(q, a))
	}
	return printBudget(s, q, a)
}

// ordered are the probes by ε.
func ordered(a *experiment.BudgetAnswer) (out []experiment.BudgetProbe) {
	at := map[float64]experiment.BudgetProbe{}
	for _, p := range a.Probes {
		at[p.Epsilon] = p
	}
	for _, x := range a.Grid {
		if p, ok := at[x]; ok {
			out = append(out, p)
		}
	}
	return out
}

func printBudget(s streams, q experiment.BudgetSearch, a *experiment.BudgetAnswer) error {
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
	share := text(100*q.More) + " %"
	world := []rune(a.World)
	if len(world) > 120 {
		world = append(world[:120], '…')
	}
	fmt.Fprintf(s.out, "%s, %s, T = %d, %s at each ε\n\n", string(world), a.Policy, q.Horizon,
		words.Several(int(q.Runs), "run"))
	w := report.NewColumns(s.out)
	fmt.Fprintln(w, "budget\tregret\tmore than without privacy\tless than "+share)
	for _, p := range ordered(a) {
		verdict := "not settled"
		switch {
		case p.Less:
			verdict = "yes"
		case p.Greater:
			verdict = "no"
		}
		fmt.Fprintf(w, "ε=%.4g\t%s\t%+.1f ± %.1f %%\t%s\n", p.Epsilon, words.Short(p.Regret), 100*p.Ratio,
			100*p.Half, verdict)
	}
	fmt.Fprintf(w, "none\t%s ± %s\t\t\n", words.Short(a.Free), words.Short(2*a.FreeSE))
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	first, last := a.Grid[0], a.Grid[len(a.Grid)-1]
	switch {
	case math.IsInf(a.Epsilon, 1):
		fmt.Fprintf(s.out, "Privacy costs at least %s at every ε up to %s.", share, text(last))
	case a.Epsilon == first:
		fmt.Fprintf(s.out, "Privacy costs less than %s from ε = %s on, and perhaps below, where "+
			"nobody looked.", share, text(first))
	default:
		fmt.Fprintf(s.out, "Privacy costs less than %s from about ε = %s on.", share, text(a.Epsilon))
	}
	from, to := text(a.Low), text(a.High)
	switch {
	case a.Low == 0 && math.IsInf(a.High, 1):
		fmt.Fprintf(s.out, " These runs settle it at no ε from %s to %s: give it more --runs.\n",
			text(first), text(last))
	case a.Low == 0:
		fmt.Fprintf(s.out, " It is at most %s with 95 %% confidence.\n", to)
	case math.IsInf(a.High, 1):
		fmt.Fprintf(s.out, " It is above %s with 95 %% confidence.\n", from)
	default:
		fmt.Fprintf(s.out, " It is above %s and at most %s with 95 %% confidence.\n", from, to)
	}
	if !a.Falls {
		fmt.Fprintln(s.out, "But the cost of privacy does not fall in ε here: it was shown to be "+
			"less at one ε and not at a larger one, so that there is no one answer.")
	}
	fmt.Fprintln(s.out, "Regrets are compared run by run in the same worlds; arms take turns in "+
		"being listed first. The confidence is Student's, corrected for all ε of the grid, if "+
		"the cost of privacy falls in ε.\n± is of one ε by itself, at 95 %; yes and no hold for "+
		"all ε together, and are not said where a few runs with far more regret than others "+
		"could mislead: more --runs settle more.")
	if a.LowerEpsilon > 0 {
		fmt.Fprintf(s.out, "\nLower bounds, in the long run: a policy that meets them would pay "+
			"less than %s from ε = %s on, and nothing from ε = %s on", share, text(a.LowerEpsilon),
			text(a.LowerFree))
		if !math.IsInf(a.Epsilon, 1) {
			fmt.Fprintf(s.out, "; at ε = %s it would pay %.1f %%", text(a.Epsilon), 100*a.LowerRatio)
		}
		fmt.Fprintln(s.out, " (Σ Δ/d_ε against Σ Δ/kl, arXiv:2505.05613).")
	}
	return nil
}

type budgetJSON struct {
	Arms         string      `json:"arms"`
	Policy       string      `json:"policy"`
	Horizon      int         `json:"horizon"`
	Runs         int         `json:"runs"`
	More         float64     `json:"more"`
	Falls        bool        `json:"falls"`
	Epsilon      *float64    `json:"epsilon"` // null: nowhere on the grid
	Low          float64     `json:"low"`     // 0: shown at no ε
	High         *float64    `json:"high"`    // null: shown at no ε
	Free         float64     `json:"regret_without_privacy"`
	FreeSE       float64     `json:"standard_error"`
	Probes       []probeJSON `json:"probes"`
	LowerEpsilon float64     `json:"lower_bound_epsilon,omitempty"`
	LowerRatio   float64     `json:"lower_bound_more,omitempty"`
	LowerFree    float64     `json:"lower_bound_free_from,omitempty"`
}

type probeJSON struct {
	Epsilon float64 `json:"epsilon"`
	Regret  float64 `json:"regret"`
	More    float64 `json:"more"`
	Half    float64 `json:"half"`
	Less    bool    `json:"less"`
	Greater bool    `json:"greater"`
}

func budgetJSONOf(q experiment.BudgetSearch, a *experiment.BudgetAnswer) budgetJSON {
	out := budgetJSON{Arms: a.World, Policy: a.Policy, Horizon: int(q.Horizon), Runs: int(q.Runs),
		More: q.More, Falls: a.Falls, Epsilon: finiteOrNil(a.Epsilon), Low: a.Low, High: finiteOrNil(a.High),
		Free: a.Free, FreeSE: a.FreeSE, LowerEpsilon: a.LowerEpsilon, LowerRatio: a.LowerRatio,
		LowerFree: a.LowerFree}
	for _, p := range ordered(a) {
		out.Probes = append(out.Probes, probeJSON{p.Epsilon, p.Regret, p.Ratio, p.Half, p.Less, p.Greater})
	}
	return out
}
