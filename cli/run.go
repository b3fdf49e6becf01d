package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/privacy"
)

type runCommand struct {
	File string `arg:"" optional:"" help:"Experiment in YAML; - reads standard input."`

	Out     string        `help:"${runOut}" placeholder:"DIR" type:"path"`
	Runs    string        `help:"Runs of each cell, instead of the file's." placeholder:"N"`
	Horizon string        `help:"Rounds of a run, instead of the file's; 1e6 is a number." placeholder:"T"`
	Seed    flags.Seed    `help:"Seed of all randomness, instead of the file's." placeholder:"S"`
	Workers flags.Workers `help:"${runWorkers}" placeholder:"W"`
	Shard   flags.Shard   `help:"Play part I of N, I from 0 to N-1; join the parts with merge." placeholder:"I/N"`
	Resume  bool          `help:"Go on in a directory that has part of this experiment."`

	Arms     flags.Arms     `help:"${runArms}" placeholder:"ARM,…" group:"Without a file:"`
	CSV      string         `name:"csv" help:"${runCSV}" placeholder:"FILE" group:"Without a file:"`
	Range    flags.Range    `help:"${runRange}" placeholder:"LO,HI" group:"Without a file:"`
	Policies flags.Policies `help:"${runPolicies}" placeholder:"NAME,…" group:"Without a file:"`
	Epsilon  flags.Numbers  `help:"${runEpsilon}" placeholder:"ε,…" group:"Without a file:"`
	Delta    flags.Number   `help:"δ of the budgets of --epsilon." placeholder:"δ" group:"Without a file:"`
	Rho      flags.Numbers  `help:"Budgets of ρ-zCDP." placeholder:"ρ,…" group:"Without a file:"`
	NoBudget bool           `help:"Run private policies without noise too." group:"Without a file:"`
	Trust    string         `help:"${runTrust}" placeholder:"MODEL" group:"Without a file:"`
	Noise    string         `help:"${runNoise}" placeholder:"NOISE" group:"Without a file:"`
	Promised flags.Number   `in:"(0,1]" help:"${runPromised}" placeholder:"SHARE" group:"Without a file:"`
	Dropout  flags.Number   `in:"[0,1]" help:"${runDropout}" placeholder:"P" group:"Without a file:"`

	programFlag
	columnFlags

	JSON bool `help:"As JSON, for programs."`
}

// runTexts are help texts that are too long for their flags.
var runTexts = kong.Vars{
	"runOut": "Directory of the results. Without it they go to results/NAME; with neither --out nor " +
		"a file, only the table is printed.",
	"runWorkers": "Runs played at a time; results do not depend on it. 0 is one a processor.",
	"runArms": "Instead of a file: the arms, by their Bernoulli means or their laws, such as " +
		"0.75,0.6 or gaussian(0.5,0.1).",
	"runCSV": "Instead of --arms: logged rewards, a CSV with a header (also .gz), or Parquet. Rows are drawn with " +
		"replacement: their order does not matter.",
	"runRange": "Declared range of rewards, others are clipped; 0,1 if not given. It must not be " +
		"taken from the data.",
	"runPolicies": "Policies, each with parameters if need be: adap-klucb,adap-ucb:alpha=4. See list " +
		"policies.",
	"runEpsilon": "Budgets of ε-DP; with --delta, of (ε,δ)-DP.",
	"runTrust": "Who has to be believed: continuous, central, local, two-server, shuffle or secagg. " +
		"See list mechanisms.",
	"runNoise":    "Noise under --trust: laplace, polya, skellam, gaussian or count.",
	"runPromised": "Share of the users who are promised to answer and be honest, under --trust.",
	"runDropout":  "Probability that a user does not answer, under --trust.",
	"run": `Examples:
  sotto run --arms 0.75,0.6 --policies dp-imed,kl-ucb --epsilon 0.1,1 --horizon 1e6 --runs 20
  sotto run examples/quickstart.yaml
  sotto run --csv examples/abtest.csv --range 0,1 --policies dp-imed,dp-se --epsilon 1 --horizon 2e4
  sotto run examples/sajed-arms.yaml --shard 0/4 --out part0`,
}

func (c *runCommand) Run(ctx context.Context, s streams) error {
	var err error
	if s.known, err = c.known(s, catalog.BanditArms, false); err != nil {
		return err
	}
	spec, err := c.spec(s)
	if err != nil {
		return err
	}
	options := experiment.Options{Out: c.Out, Workers: int(c.Workers), Resume: c.Resume,
		ShardI: c.Shard.I, ShardN: c.Shard.N}
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
	case c.Resume || c.Shard.N > 0:
		return usagef("--resume and --shard need --out or a file")
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
		return show(s, options.Out, r, c.JSON)
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
	switch {
	case !keep && c.JSON:
		return printResults(s, options.Out, r.Manifest.Name, false)
	case !keep:
		return printTables(s, r)
	}
	return show(s, options.Out, r, c.JSON)
}

// complete says whether a directory holds all that the plan would play, by this program.
func complete(m *experiment.Manifest, plan *experiment.Resolved) bool {
	return !m.Finished.IsZero() && m.Shard == nil && m.Plays(plan) && m.Build == build.This()
}

// show writes the figures and the page, prints the table, and says where everything is.
func show(s streams, dir string, r *experiment.Results, asJSON bool) error {
	return showAs(s, dir, r, asJSON, report.Selection{})
}

// showAs is show with some figures, as they are wanted.
func showAs(s streams, dir string, r *experiment.Results, asJSON bool, wanted report.Selection) error {
	r.Catalog = s.known
	if err := r.DrawAs(dir, wanted); err != nil {
		return drawn(err)
	}
	if asJSON {
		return printResults(s, dir, r.Manifest.Name, true)
	}
	if err := r.WriteText(s.out); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "\nResults are in %s: report.html is the page, summary.csv and "+
		"results.parquet the numbers.\n", dir)
	return nil
}

func printTables(s streams, r *experiment.Results) error {
	r.Catalog = s.known
	return r.WriteText(s.out)
}

// spec is the experiment of the file, or of the flags.
func (c *runCommand) spec(s streams) (*experiment.Spec, error) {
	inline := c.NoBudget || c.given() || c.Arms.Set() || c.CSV != "" || c.Range.Set ||
		c.Policies.List != nil || c.Epsilon.X != nil || c.Delta.Set || c.Rho.X != nil ||
		c.Trust != "" || c.Noise != "" || c.Promised.Set || c.Dropout.Set
	var spec *experiment.Spec
	switch {
	case c.File != "" && inline:
		return nil, usagef("give a file, or arms, policies and budgets by flags, not both")
	case c.File != "":
		var err error
		if spec, err = read(c.File, s); err != nil {
			return nil, err
		}
	case c.Arms.Set() == (c.CSV != "") || c.Policies.List == nil || c.Horizon == "":
		return nil, usagef("want a file, or all of --arms (or --csv), --policies and " +
			"--horizon")
	default:
		var err error
		if spec, err = c.inline(s); err != nil {
			return nil, err
		}
	}
	for _, o := range []struct {
		field, value string
	}{{"horizon", c.Horizon}, {"runs", c.Runs}} {
		if o.value == "" {
			continue
		}
		if err := spec.Override(o.field, "--"+o.field, o.value); err != nil {
			return nil, err
		}
	}
	spec.Seed = c.Seed.Or(spec.Seed)
	return spec, nil
}

func read(file string, s streams) (*experiment.Spec, error) {
	if file == "-" {
		return experiment.Reader{Catalog: s.known}.ReadAll(s.in, "standard input")
	}
	spec, err := experiment.Reader{Catalog: s.known}.Read(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, usage(err)
	}
	return spec, err
}

func (c *runCommand) inline(s streams) (*experiment.Spec, error) {
	spec := &experiment.Spec{Name: "command-line", Runs: 20, Seed: 1, Catalog: s.known,
		Instances: []experiment.Instance{{Name: "arms", Laws: c.Arms.Texts}}}
	if c.CSV != "" {
		spec.Instances[0] = experiment.Instance{Name: "log", CSV: c.CSV, Columns: c.columns()}
	} else if err := c.check(c.CSV); err != nil {
		return nil, err
	}
	spec.Lo, spec.Hi = c.Range.Lo, c.Range.Hi
	for _, p := range c.Policies.List {
		entry, params, err := p.Find(s.known, catalog.BanditArms)
		if err != nil {
			return nil, err
		}
		spec.Policies = append(spec.Policies, experiment.Policy{Policy: entry.Name, Params: params})
	}
	if c.Delta.Set && c.Epsilon.X == nil {
		return nil, usagef("--delta goes with --epsilon")
	}
	for _, x := range c.Epsilon.X {
		if c.Delta.Set {
			spec.Budgets = append(spec.Budgets, privacy.Approx{Epsilon: x, Delta: c.Delta.X})
		} else {
			spec.Budgets = append(spec.Budgets, privacy.Pure{Epsilon: x})
		}
	}
	for _, x := range c.Rho.X {
		spec.Budgets = append(spec.Budgets, privacy.ZCDP{Rho: x})
	}
	if c.NoBudget {
		spec.Budgets = append(spec.Budgets, privacy.None{})
	}
	spec.Trust = experiment.Trust{Model: c.Trust, Noise: c.Noise, Promised: c.Promised.X,
		Dropout: c.Dropout.X}
	return spec, nil
}
