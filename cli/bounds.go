package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/bandit"
	limit "github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/lab/bounds"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/privacy"
)

type boundsCommand struct {
	File string `arg:"" optional:"" help:"${boundsFile}"`

	Arms      flags.Arms    `help:"${boundsArms}" placeholder:"ARM,…" group:"The problem, instead of a file, one of:"`
	Actions   flags.Vectors `help:"${boundsActions}" placeholder:"a;a;…" group:"The problem, instead of a file, one of:"`
	Dimension flags.Count   `help:"${boundsDimension}" placeholder:"d" group:"The problem, instead of a file, one of:"`

	Theta flags.Numbers `help:"${boundsTheta}" placeholder:"x,…"`
	Sigma flags.Number  `in:"(0,inf)" help:"${boundsSigma}" placeholder:"σ"`

	Epsilon flags.Numbers `help:"Budgets of ε-DP, such as 0.1,1." placeholder:"ε,…"`
	Rho     flags.Numbers `help:"Budgets of ρ-zCDP." placeholder:"ρ,…"`
	Horizon flags.Numbers `in:"[1,1e18]" help:"${boundsHorizon}" placeholder:"T,…"`
	Beta    flags.Number  `in:"(0,inf)" help:"${boundsBeta}" placeholder:"β"`
	Risk    flags.Number  `in:"(0,1)" help:"${boundsRisk}" placeholder:"δ"`

	Out  string `help:"${boundsOut}" placeholder:"FILE.svg" type:"path"`
	JSON bool   `name:"json" help:"As JSON, for programs."`
	startFlag
	drawingFlags
}

// boundsTexts are help texts that are too long for their flags.
var boundsTexts = kong.Vars{
	"boundsFile": "Experiment in YAML; - reads standard input. Its instances and budgets are bounded at " +
		"its horizon.",
	"boundsArms": "The arms, by their Bernoulli means or their laws, such as 0.75,0.6 or " +
		"uniform(0.2,0.4).",
	"boundsActions": "The actions of a linear bandit: vectors divided by semicolons, such as " +
		"1,0;0,1;0.6,0.8.",
	"boundsDimension": "The dimension of a linear contextual bandit.",
	"boundsTheta":     "θ*, beside --actions: without it there are no problem-dependent bounds.",
	"boundsSigma":     "Standard deviation of the linear rewards' Gaussian noise; 1 if not given.",
	"boundsHorizon":   "Horizons, such as 1e4,1e6. Beside a file they replace its own.",
	"boundsBeta":      "β of AdaC-UCB and α of AdaP-UCB; 3.1 if not given. A file has its own.",
	"boundsRisk": "Probability of failure of policies that have one; 1/T if not given. A file has its " +
		"own.",
	"boundsOut": "Draw the first instance's bounds into this file, .svg, .pdf or .png: against " +
		"the budget if there are " +
		"several of a kind, otherwise against T.",
	"bounds": `Examples:
  sotto bounds --arms 0.75,0.5 --epsilon 0.1,1 --horizon 1e6
  sotto bounds --arms 0.75,0.625,0.5 --epsilon 0.001,10 --horizon 1e6 --out bounds.svg
  sotto bounds --actions '1,0;0,1;0.8,0.6' --theta 0.9,0.2 --rho 0.1 --horizon 1e5
  sotto bounds examples/quickstart.yaml`,
}

// A boundedProblem is a problem under a budget and the name of its instance.
type boundedProblem = experiment.BoundProblem

func (c *boundsCommand) Run(s streams) error {
	problems, horizons, left, err := c.problems(s)
	if err != nil {
		return usage(err)
	}
	if c.Out != "" {
		f, err := bounds.Figure(problems, horizons)
		if err != nil {
			return usage(err)
		}
		if err := c.saveFigure("--out", c.Out, f); err != nil {
			return drawn(err)
		}
	}
	for _, l := range left {
		fmt.Fprintln(s.err, "no bounds:", l)
	}
	if c.JSON {
		return c.asJSON(s, problems, horizons)
	}
	for i, p := range problems {
		table, err := bounds.Table(p, horizons)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		if err := table.WriteText(s.out); err != nil {
			return err
		}
	}
	return nil
}

// problems are what the file or the flags say, and the horizons.
func (c *boundsCommand) problems(s streams) (out []boundedProblem, horizons []float64,
	left []string, err error) {
	fail := func(err error) ([]boundedProblem, []float64, []string, error) { return nil, nil, nil, err }
	switch {
	case given(c.File != "", c.Arms.Set(), c.Actions.X != nil, c.Dimension != 0) != 1:
		return fail(errors.New("want a file or one of --arms, --actions and --dimension"))
	case c.Actions.X == nil && (c.Theta.X != nil || c.Sigma.Set):
		return fail(errors.New("--theta and --sigma go with --actions"))
	}
	horizons = c.Horizon.X
	if c.File != "" {
		if c.Epsilon.X != nil || c.Rho.X != nil {
			return fail(errors.New("--epsilon and --rho are for problems given by flags: a file " +
				"has its budgets"))
		}
		if c.Beta.Set || c.Risk.Set {
			return fail(errors.New("--beta and --risk are for problems given by flags: a file " +
				"has its policies' parameters"))
		}
		spec, err := read(c.File, s)
		if err != nil {
			return fail(err)
		}
		if would := wouldRun(spec); len(would) > 0 && !c.Start {
			return fail(fmt.Errorf("%s: exec is %q, must be a program that you trust: --start starts it",
				c.File, would[0]))
		}
		plan, err := spec.Resolve()
		if err != nil {
			return fail(err)
		}
		if len(horizons) == 0 {
			horizons = []float64{float64(plan.Spec.Horizon)}
		}
		for _, w := range plan.Warnings { // a bound is computed from the exact means of a log
			fmt.Fprintln(s.err, "warning:", w)
		}
		if out, left = plan.BoundProblems(); len(out) == 0 {
			return fail(fmt.Errorf("%s: nothing to bound: %s", c.File, strings.Join(left, "; ")))
		}
		return out, horizons, left, nil
	}
	if len(horizons) == 0 {
		return fail(errors.New("want --horizon"))
	}
	budgets, err := c.budgets()
	if err != nil {
		return fail(err)
	}
	for _, b := range budgets {
		name, p, err := c.problem(b)
		if err == nil {
			p.Beta, p.Risk, p.Sigma = c.Beta.Or(p.Beta), c.Risk.Or(p.Risk), c.Sigma.Or(p.Sigma)
			err = p.Check()
		}
		if err != nil {
			return fail(err)
		}
		out = append(out, boundedProblem{Instance: name, Budget: b.String(), Problem: p})
	}
	return out, horizons, nil, nil
}

func (c *boundsCommand) budgets() (out []privacy.Budget, err error) {
	for _, x := range c.Epsilon.X {
		out = append(out, privacy.Pure{Epsilon: x})
	}
	for _, x := range c.Rho.X {
		out = append(out, privacy.ZCDP{Rho: x})
	}
	for i, b := range out {
		if err := b.Validate(); err != nil {
			return nil, err
		}
		if slices.Contains(out[:i], b) {
			return nil, fmt.Errorf("the budget %v is there twice", b)
		}
	}
	if len(out) == 0 {
		out = []privacy.Budget{privacy.None{}}
	}
	return out, nil
}

// problem is what the flags say, its parameters apart.
func (c *boundsCommand) problem(b privacy.Budget) (string, limit.Problem, error) {
	none := limit.Problem{}
	switch {
	case c.Arms.Set():
		unclipped := slices.ContainsFunc(c.Arms.Laws, func(l bandit.Law) bool {
			_, ok := l.(bandit.Gaussian)
			return ok
		})
		p, err := experiment.BoundArms(c.Arms.Laws, unclipped, b)
		if err != nil {
			return "", none, fmt.Errorf("--arms: %w", err)
		}
		return "arms " + c.Arms.String(), p, nil
	case c.Actions.X != nil:
		p := limit.Problem{Budget: b, Actions: c.Actions.X, Theta: c.Theta.X}
		return fmt.Sprintf("%d actions in dimension %d", len(p.Actions), len(p.Actions[0])), p, nil
	default:
		return fmt.Sprintf("contexts in dimension %d", c.Dimension),
			limit.Problem{Context: &limit.Context{Dim: int(c.Dimension)}, Budget: b}, nil
	}
}

func budgetText(b string) string { return bounds.Budget(b) }

type boundJSON struct {
	Name      string     `json:"name"`
	Policy    string     `json:"policy,omitempty"` // none: every policy
	Lower     bool       `json:"lower"`
	WorstCase bool       `json:"worst_case"`
	Kind      string     `json:"kind"`
	Unproved  bool       `json:"as_printed,omitempty"`
	Form      string     `json:"formula"`
	Where     string     `json:"where"`
	Note      string     `json:"note,omitempty"`
	Slope     *float64   `json:"slope,omitempty"` // of log T
	Regret    []*float64 `json:"regret"`          // at each horizon; null: none
}

type boundsJSON struct {
	Instance   string         `json:"instance"`
	Budget     string         `json:"budget"`
	Horizons   []float64      `json:"horizons"`
	Bounds     []boundJSON    `json:"bounds"`
	Boundaries []boundaryJSON `json:"boundaries"`
}

type boundaryJSON struct {
	Name   string     `json:"name"`
	Symbol string     `json:"symbol"`
	Where  string     `json:"where"`
	Note   string     `json:"note,omitempty"`
	Value  []*float64 `json:"value"`
}

func (c *boundsCommand) asJSON(s streams, problems []boundedProblem, horizons []float64) error {
	var out []boundsJSON
	for _, p := range problems {
		all, err := limit.Regret(p.Problem)
		if err != nil {
			return err
		}
		edges, err := limit.Boundaries(p.Problem)
		if err != nil {
			return err
		}
		j := boundsJSON{Instance: p.Instance, Budget: p.Budget, Horizons: horizons}
		for _, b := range all {
			x := boundJSON{b.Name, b.Policy, b.Lower, b.WorstCase, b.Kind.String(), b.Unproved,
				b.Form, b.Where, b.Note, nil, nil}
			if b.Kind == limit.Asymptotic {
				x.Slope = finiteOrNil(b.Constant)
			}
			for _, T := range horizons {
				var v *float64
				if b.Value != nil {
					v = finiteOrNil(b.Value(T))
				}
				x.Regret = append(x.Regret, v)
			}
			j.Bounds = append(j.Bounds, x)
		}
		for _, e := range edges {
			x := boundaryJSON{Name: e.Name, Symbol: e.Symbol, Where: e.Where, Note: e.Note}
			for _, T := range horizons {
				x.Value = append(x.Value, finiteOrNil(e.Value(T)))
			}
			j.Boundaries = append(j.Boundaries, x)
		}
		out = append(out, j)
	}
	return printJSON(s, out)
}
