package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/choose"
	"github.com/sotto-dp/sotto/experiment"
	"github.com/sotto-dp/sotto/internal/front/report"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/secagg/transport"
	"github.com/sotto-dp/sotto/stopping"
	"github.com/sotto-dp/sotto/trial"
)

func exitCode(err error) int {
	switch {
	case errors.Is(err, transport.ErrPossiblyReleased):
		return exitReleased
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errUsage), errors.Is(err, choose.ErrQuestion),
		errors.Is(err, experiment.ErrSpec), errors.Is(err, experiment.ErrOutput),
		errors.Is(err, experiment.ErrShards),
		errors.Is(err, experiment.ErrUnit):
		return exitUsage
	case errors.Is(err, stopping.ErrUnfinished), errors.Is(err, trial.ErrUnfinished):
		return exitUnfinished
	}
	return exitFailed
}

// interrupted says what is left of a command that was stopped.
type interrupted string

func (e interrupted) Error() string        { return string(e) }
func (e interrupted) Is(target error) bool { return target == context.Canceled }

type runCommand struct {
	File string `arg:"" optional:"" help:"Experiment in YAML; - reads standard input."`

	Out     string `help:"Directory of the results. Without it they go to results/NAME; with neither --out nor a file, only the table is printed." placeholder:"DIR" type:"path"`
	Runs    string `help:"Runs of each cell, instead of the file's." placeholder:"N"`
	Horizon string `help:"Rounds of a run, instead of the file's; 1e6 is a number." placeholder:"T"`
	Seed    string `help:"Seed of all randomness, instead of the file's." placeholder:"S"`
	Workers int    `help:"Runs played at a time; results do not depend on it. 0 is one a processor." placeholder:"W"`
	Shard   string `help:"Play part I of N, I from 0 to N-1; join the parts with merge." placeholder:"I/N"`
	Resume  bool   `help:"Go on in a directory that has part of this experiment."`

	Arms     string `help:"Instead of a file: the arms, by their Bernoulli means or their laws, such as 0.75,0.6 or gaussian(0.5,0.1)." placeholder:"ARM,…" group:"Without a file:"`
	CSV      string `name:"csv" help:"Instead of --arms: logged rewards, a CSV with a header. Rows are drawn with replacement: their order does not matter." placeholder:"FILE" group:"Without a file:"`
	Range    string `help:"Declared range of rewards, others are clipped; 0,1 if not given. It must not be taken from the data." placeholder:"LO,HI" group:"Without a file:"`
	Policies string `help:"Policies, each with parameters if need be: adap-klucb,adap-ucb:alpha=4. See list policies." placeholder:"NAME,…" group:"Without a file:"`
	Epsilon  string `help:"Budgets of ε-DP; with --delta, of (ε,δ)-DP." placeholder:"ε,…" group:"Without a file:"`
	Delta    string `help:"δ of the budgets of --epsilon." placeholder:"δ" group:"Without a file:"`
	Rho      string `help:"Budgets of ρ-zCDP." placeholder:"ρ,…" group:"Without a file:"`
	NoBudget bool   `help:"Run private policies without noise too." group:"Without a file:"`
	Trust    string `help:"Who has to be believed: continuous, central, local, two-server, shuffle or secagg. See list mechanisms." placeholder:"MODEL" group:"Without a file:"`
	Noise    string `help:"Noise under --trust: laplace, polya, skellam, gaussian or count." placeholder:"NOISE" group:"Without a file:"`
	Promised string `help:"Share of the users who are promised to answer and be honest, under --trust." placeholder:"SHARE" group:"Without a file:"`
	Dropout  string `help:"Probability that a user does not answer, under --trust." placeholder:"P" group:"Without a file:"`

	columnFlags
}

// Help is shown by --help.
func (c *runCommand) Help() string {
	return `Examples:
  sotto run examples/quickstart.yaml
  sotto run --arms 0.75,0.6 --policies adap-klucb,dp-se --epsilon 0.1,1 --horizon 1e6 --runs 20
  sotto run --csv examples/abtest.csv --range 0,1 --policies dp-imed,dp-se --epsilon 1 --horizon 2e4
  sotto run examples/sajed-arms.yaml --shard 0/4 --out part0`
}

func (c *runCommand) Run(ctx context.Context, s streams) error {
	spec, err := c.spec(s)
	if err != nil {
		return err
	}
	options := experiment.Options{Out: c.Out, Workers: c.Workers, Resume: c.Resume}
	if options.ShardI, options.ShardN, err = parseShard(c.Shard); err != nil {
		return err
	}
	if c.Workers < 0 {
		return fmt.Errorf("%w: --workers is %d, must be at least 1, or 0 for one a processor",
			errUsage, c.Workers)
	}
	plan, err := spec.Resolve()
	if err != nil {
		return err
	}
	for _, w := range plan.Warnings {
		fmt.Fprintln(s.err, "warning:", w)
	}
	switch {
	case options.Out != "":
	case c.File != "":
		options.Out = filepath.Join("results", plan.Spec.Name)
		if options.ShardN > 1 {
			options.Out += fmt.Sprintf("-shard-%d-of-%d", options.ShardI, options.ShardN)
		}
	case c.Resume || c.Shard != "":
		return fmt.Errorf("%w: --resume and --shard need --out or a file", errUsage)
	default:
		// A look, not an experiment: its files go with it.
		if options.Out, err = os.MkdirTemp("", "sotto-"); err != nil {
			return fmt.Errorf("no room for a temporary directory (--out chooses one): %w", err)
		}
		defer os.RemoveAll(options.Out)
	}
	keep := c.Out != "" || c.File != ""

	// A finished directory of the same experiment has its answer.
	if m, err := experiment.ReadManifest(options.Out); err == nil && keep && !c.Resume && complete(m, plan) {
		r, err := experiment.Load(options.Out)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.err, "%s has this experiment, finished: nothing to play\n", options.Out)
		return show(s, options.Out, r)
	}

	p := newProgress(s.err, plan)
	options.Progress = p.step
	r, err := plan.Run(ctx, options)
	p.end()
	switch {
	case errors.Is(err, context.Canceled) && keep:
		return interrupted("stopped; what is finished is in " + options.Out + ", and --resume goes on")
	case errors.Is(err, context.Canceled):
		return interrupted("stopped")
	case err != nil:
		return err
	case r == nil: // a shard
		fmt.Fprintf(s.err, "shard %d of %d is in %s; join all of them with: sotto merge DIR… "+
			"--out DIR\n", options.ShardI, options.ShardN, options.Out)
		return nil
	}
	if !keep {
		return printTables(s, r)
	}
	return show(s, options.Out, r)
}

// complete says whether a directory holds all that the plan would play, by this program.
func complete(m *experiment.Manifest, plan *experiment.Plan) bool {
	return !m.Finished.IsZero() && m.Shard == nil && m.Plays(plan) && m.Build == experiment.ThisBuild()
}

// show writes the figures and the page, prints the table, and says where everything is.
func show(s streams, dir string, r *experiment.Results) error {
	r.Catalog = s.known
	page, err := report.Write(dir, r)
	if err != nil {
		return err
	}
	if err := page.WriteText(s.out); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "\nResults are in %s: report.html is the page, summary.csv and "+
		"results.parquet the numbers.\n", dir)
	return nil
}

func printTables(s streams, r *experiment.Results) error {
	r.Catalog = s.known
	page, err := report.Of(r)
	if err != nil {
		return err
	}
	return page.WriteText(s.out)
}

// spec is the experiment of the file, or of the flags.
func (c *runCommand) spec(s streams) (*experiment.Spec, error) {
	inline := c.NoBudget || c.given()
	for _, flag := range []string{c.Arms, c.CSV, c.Range, c.Policies, c.Epsilon, c.Delta, c.Rho,
		c.Trust, c.Noise, c.Promised, c.Dropout} {
		inline = inline || flag != ""
	}
	var spec *experiment.Spec
	switch {
	case c.File != "" && inline:
		return nil, fmt.Errorf("%w: give a file, or arms, policies and budgets by flags, not both", errUsage)
	case c.File != "":
		var err error
		if spec, err = read(c.File, s); err != nil {
			return nil, err
		}
	case (c.Arms == "") == (c.CSV == "") || c.Policies == "" || c.Horizon == "":
		return nil, fmt.Errorf("%w: want a file, or all of --arms (or --csv), --policies and "+
			"--horizon", errUsage)
	default:
		var err error
		if spec, err = c.inline(s); err != nil {
			return nil, err
		}
	}
	for _, o := range []struct {
		field, value string
	}{{"horizon", c.Horizon}, {"runs", c.Runs}, {"seed", c.Seed}} {
		if o.value == "" {
			continue
		}
		if err := spec.Override(o.field, "--"+o.field, o.value); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

func read(file string, s streams) (*experiment.Spec, error) {
	if file == "-" {
		return experiment.Reader{Catalog: s.known}.ReadAll(s.in, "standard input")
	}
	spec, err := experiment.Reader{Catalog: s.known}.Read(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return spec, err
}

func (c *runCommand) inline(s streams) (*experiment.Spec, error) {
	spec := &experiment.Spec{Name: "command-line", Runs: 20, Seed: 1, Catalog: s.known,
		Instances: []experiment.Instance{{Name: "arms", Laws: outside(c.Arms)}}}
	if c.CSV != "" {
		spec.Instances[0] = experiment.Instance{Name: "log", CSV: c.CSV, Columns: c.columns()}
	} else if err := c.check(c.CSV); err != nil {
		return nil, err
	}
	var err error
	if c.Range != "" {
		if spec.Lo, spec.Hi, err = parseRange(c.Range); err != nil {
			return nil, err
		}
	}
	if spec.Policies, err = parsePolicies(s.known, c.Policies); err != nil {
		return nil, err
	}
	deltas, err := numbers("--delta", c.Delta)
	if err != nil {
		return nil, err
	}
	if len(deltas) > 1 || len(deltas) == 1 && c.Epsilon == "" {
		return nil, fmt.Errorf("%w: --delta is %q: want one, beside --epsilon", errUsage, c.Delta)
	}
	epsilons, err := numbers("--epsilon", c.Epsilon)
	if err != nil {
		return nil, err
	}
	for _, x := range epsilons {
		if len(deltas) == 1 {
			spec.Budgets = append(spec.Budgets, privacy.Approx{Epsilon: x, Delta: deltas[0]})
		} else {
			spec.Budgets = append(spec.Budgets, privacy.Pure{Epsilon: x})
		}
	}
	rhos, err := numbers("--rho", c.Rho)
	if err != nil {
		return nil, err
	}
	for _, x := range rhos {
		spec.Budgets = append(spec.Budgets, privacy.ZCDP{Rho: x})
	}
	if c.NoBudget {
		spec.Budgets = append(spec.Budgets, privacy.None{})
	}
	spec.Trust.Model, spec.Trust.Noise = c.Trust, c.Noise
	if spec.Trust.Promised, err = share("--promised", c.Promised); err != nil {
		return nil, err
	}
	if c.Promised != "" && spec.Trust.Promised == 0 {
		return nil, fmt.Errorf("%w: --promised is %s, must be above 0 and at most 1", errUsage, c.Promised)
	}
	if spec.Trust.Dropout, err = share("--dropout", c.Dropout); err != nil {
		return nil, err
	}
	return spec, nil
}

// share is a flag's only number; 0 if it is not given.
func share(flag, text string) (float64, error) {
	list, err := numbers(flag, text)
	switch {
	case err != nil:
		return 0, err
	case len(list) > 1:
		return 0, fmt.Errorf("%w: %s is %q: want one number", errUsage, flag, text)
	case len(list) == 1:
		return list[0], nil
	}
	return 0, nil
}

// parsePolicies reads policies with parameters, as in adap-klucb,adap-ucb:alpha=4.
func parsePolicies(known catalog.Catalog, text string) ([]experiment.Policy, error) {
	var out []experiment.Policy
	for _, p := range outside(text) {
		policy := experiment.Policy{}
		var settings []string
		policy.Policy, settings = p, nil
		if name, rest, ok := strings.Cut(p, ":"); ok {
			policy.Policy, settings = name, strings.Split(rest, ":")
		}
		for _, setting := range settings {
			name, value, ok := strings.Cut(setting, "=")
			if !ok {
				return nil, fmt.Errorf("%w: --policies: %q: parameters are written "+
					"NAME:PARAMETER=VALUE", errUsage, p)
			}
			entry, err := known.Find(catalog.BanditArms, policy.Policy)
			if err != nil {
				return nil, fmt.Errorf("%w: --policies: %w", errUsage, err)
			}
			// an unknown one is told with all the others, when the experiment is checked
			param, _ := entry.Param(name)
			param.Name = name
			x, err := param.Parse(value)
			if err != nil {
				return nil, fmt.Errorf("%w: --policies: %w", errUsage, err)
			}
			if policy.Params == nil {
				policy.Params = catalog.Params{}
			}
			if _, twice := policy.Params[name]; twice {
				return nil, fmt.Errorf("%w: --policies: %q: %s is given twice", errUsage, p, name)
			}
			policy.Params[name] = x
		}
		out = append(out, policy)
	}
	return out, nil
}

// outside splits at commas that are not inside parentheses.
func outside(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

func numbers(flag, text string) ([]float64, error) {
	if text == "" {
		return nil, nil
	}
	var out []float64
	for _, s := range strings.Split(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %q is no number", errUsage, flag, s)
		}
		out = append(out, x)
	}
	return out, nil
}

func parseShard(text string) (i, n int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || n < 1 || i < 0 || i >= n {
		return 0, 0, fmt.Errorf("%w: --shard is %q, must be I/N with I from 0 to N-1, such as 0/3",
			errUsage, text)
	}
	return i, n, nil
}
