package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/live/decl"
)

type mergeCommand struct {
	Dirs  []string `arg:"" name:"DIR" help:"Directories that the shards left." type:"path"`
	Out   string   `required:"" help:"Directory of the results." placeholder:"DIR" type:"path"`
	Mixed bool     `help:"Join shards of different builds or architectures, whose numbers may differ in the last bits."`
	JSON  bool     `help:"As JSON, for programs."`
}

// commandsTexts are help texts that are too long for their flags.
var commandsTexts = kong.Vars{
	"schemaOf": "experiment, for files of sotto run, or live, for those of sotto serve.",
	"merge": `Examples:
  sotto merge part0 part1 part2 part3 --out results/sajed-arms`,
	"report": `Examples:
  sotto report results/quickstart
  sotto report results/quickstart --format pdf --size 8.5x7cm --bare
  sotto report results/quickstart --format svg,png --dpi 300 --linear --title 'Regret of five policies'`,
	"validate": `Examples:
  sotto validate shop.yaml
  sotto validate shop.yaml --sample rewards.csv
  sotto validate examples/quickstart.yaml --json`,
	"validateSample": "Of a live experiment, values such as it will be reported: CSV with a column reward and those " +
		"of metrics, or lines of JSON. Says how many would be clipped, without noise: the output is not protected.",
	"list cube": `A cell is a goal, a currency of privacy, who is trusted, and what is played. It is proved if a policy's
privacy and utility are, the utility by a theorem that holds at the horizon or risk at hand; "proved/2" is by noise
that was made for another currency, and counts half. The answer follows from the catalog of policies.

Examples:
  sotto list cube
  sotto list cube --json`,
	"list mechanisms": `Examples:
  sotto list mechanisms
  sotto list mechanisms --json`,
	"list policies": `Examples:
  sotto list policies
  sotto list policies --json`,
	"schema": `Examples:
  sotto schema > experiment.schema.json
  sotto schema live > live.schema.json`,
	"version": `Examples:
  sotto version`,
}

func (c *mergeCommand) Run(ctx context.Context, s streams) error {
	r, err := experiment.Merge(ctx, c.Dirs, c.Out, c.Mixed)
	switch {
	case errors.Is(err, context.Canceled):
		return interrupted("stopped; the shards are as they were, merge them again")
	case err != nil:
		return err
	}
	return show(s, c.Out, r, c.JSON)
}

type reportCommand struct {
	Dir  string `arg:"" help:"A directory of results." type:"path"`
	JSON bool   `help:"As JSON, for programs."`

	Figures []string `help:"${reportFigures}" placeholder:"ID,…" group:"figures"`
	figureFlags
}

// reportTexts are help texts that are too long for their flags.
var reportTexts = kong.Vars{
	"reportFigures": "Draw these figures only, by the names of their files without the ending.",
}

func (c *reportCommand) Run(s streams) error {
	r, err := experiment.Load(c.Dir)
	if err != nil {
		return err
	}
	wanted := c.selection()
	wanted.Only = c.Figures
	return showAs(s, c.Dir, r, c.JSON, wanted)
}

type validateCommand struct {
	File   string `arg:"" help:"Experiment or live experiment in YAML; - reads standard input."`
	Sample string `help:"${validateSample}" placeholder:"FILE"`
	JSON   bool   `help:"As JSON, for programs."`
	startFlag
}

// planned is what an experiment would play.
type planned struct {
	Experiment string   `json:"experiment"`
	Kind       string   `json:"kind"`
	Runs       int      `json:"runs"`              // of each cell
	Horizon    int      `json:"horizon,omitempty"` // or a cap
	Cap        int      `json:"cap,omitempty"`
	Cells      []string `json:"cells"`
	Warnings   []string `json:"warnings"`
	WouldRun   []string `json:"would_run,omitempty"` // programs that have not been started, and say the cells
}

func (c *validateCommand) Run(s streams) error {
	spec, live, _, err := readAny(c.File, s)
	switch {
	case err != nil:
		return err
	case live != nil:
		return c.live(s, live)
	case c.Sample != "":
		return usagef("--sample is given, and %s is no live experiment", c.File)
	}
	if would := wouldRun(spec); len(would) > 0 && !c.Start {
		return c.unstarted(s, spec, would)
	}
	plan, err := spec.Resolve()
	if err != nil {
		return err
	}
	for _, w := range plan.Warnings {
		fmt.Fprintln(s.err, "warning:", w)
	}
	if c.JSON {
		out := planned{Experiment: plan.Spec.Name, Kind: cmp.Or(plan.Spec.Kind, experiment.KindRegret),
			Runs: int(plan.Spec.Runs), Horizon: int(plan.Spec.Horizon), Cap: int(plan.Spec.Cap),
			Warnings: append([]string{}, plan.Warnings...)}
		for i := range plan.Cells {
			out.Cells = append(out.Cells, plan.Cells[i].Label())
		}
		return printJSON(s, out)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s, %s\n", plan.Spec.Name, words.Several(len(plan.Cells), "cell"),
		words.Several(int(plan.Spec.Runs), "run"), plan.Length())
	for i := range plan.Cells {
		fmt.Fprintln(&b, " ", plan.Cells[i].Label())
	}
	_, err = io.WriteString(s.out, b.String())
	return err
}

// unstarted says what a file would start, and no more: what it plays its programs say.
func (c *validateCommand) unstarted(s streams, spec *experiment.Spec, would []string) error {
	if c.JSON {
		return printJSON(s, planned{Experiment: spec.Name, Kind: cmp.Or(spec.Kind, experiment.KindRegret),
			Runs: int(spec.Runs), Horizon: int(spec.Horizon), Cap: int(spec.Cap), Cells: []string{},
			Warnings: []string{}, WouldRun: would})
	}
	fmt.Fprintf(s.out, "%s: its form is checked, and no program is started; --start starts them and checks the rest\n",
		spec.Name)
	for _, command := range would {
		fmt.Fprintln(s.out, "  would run:", command)
	}
	return nil
}

// liveJSON is what a live experiment promises.
type liveJSON struct {
	Experiment  string `json:"experiment"`
	Kind        string `json:"kind"` // live
	Arms        int    `json:"arms"`
	Policy      string `json:"policy"`
	Picked      string `json:"picked,omitempty"` // why auto has picked it
	Guarantee   string `json:"guarantee"`        // in words
	Unit        string `json:"unit"`
	Budget      string `json:"budget"` // of a unit
	Assignments int    `json:"assignments"`
	Each        string `json:"each"` // the budget of one reward
	// exactly, or at least, the rewards that the policy asks for
	Take string `json:"take,omitempty"`
	// of a contextual experiment: components of a vector, what its blocks are divided by, and what
	// had better be otherwise
	Dim      int      `json:"dim,omitempty"`
	Norm     float64  `json:"norm,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// of the declared traffic: a parameter of the policy, and a proposal for it
	First *firstJSON `json:"first_batch,omitempty"`
	// Sample is how much of a sample would be clipped.
	Sample *sampleJSON `json:"sample,omitempty"`
}

type firstJSON struct {
	Parameter string `json:"parameter"`
	Is        int    `json:"is"`
	Proposed  int    `json:"proposed"`
}

// picked is a line of the policy of an experiment that names none.
func picked(x *decl.Experiment) string {
	if x.Picked == "" {
		return ""
	}
	return "  policy: " + x.Picked + "\n"
}

// contextual says the rest of an experiment with contexts.
func (c *validateCommand) contextual(s streams, x *decl.Experiment, out liveJSON) error {
	mapper, err := x.Mapper()
	if err != nil {
		return err
	}
	out.Dim, out.Norm, out.Warnings = mapper.Dim(), mapper.Norm(), x.Warnings()
	for _, w := range out.Warnings {
		fmt.Fprintln(s.err, "warning:", w)
	}
	if c.JSON {
		return printJSON(s, out)
	}
	_, err = fmt.Fprintf(s.out, "%s: a live experiment with contexts, of %s a decision at most\n%s "+
		" guarantee: %s\n"+
		"  price: %s for learning, %v in all\n  vectors: %d components, blocks divided by %.4g\n", x.Name,
		words.Several(x.Contextual.MaxActions(), "action"), picked(x), out.Guarantee, out.Budget, x.Total(),
		out.Dim, out.Norm)
	return cmp.Or(err, out.Sample.print(s.out))
}

// live says what a live experiment promises.
func (c *validateCommand) live(s streams, x *decl.Experiment) error {
	if err := x.Check(); err != nil {
		return err
	}
	out := liveJSON{Experiment: x.Name, Kind: "live", Arms: len(x.Arms), Policy: x.Policy.Policy, Picked: x.Picked,
		Unit: x.Unit.Of, Budget: fmt.Sprint(x.Budget), Assignments: x.Assignments()}
	each, err := x.EachAssignment()
	if err != nil {
		return err
	}
	out.Each = fmt.Sprint(each)
	if out.Guarantee, err = x.Guarantee(); err != nil {
		return err
	}
	if c.Sample != "" {
		if out.Sample, err = sampleOf(x, c.Sample, s); err != nil {
			return err
		}
	}
	if x.Contextual != nil {
		return c.contextual(s, x, out)
	}
	take, err := x.Take()
	if err != nil {
		return err
	}
	queue, err := x.Queue()
	if err != nil {
		return err
	}
	first, proposed := x.FirstBatch()
	if proposed {
		out.First = &firstJSON{first.Param, first.Is, first.Proposed}
	}
	if out.Take = take.String(); c.JSON {
		return printJSON(s, out)
	}
	_, err = fmt.Fprintf(s.out, "%s: a live experiment of %d arms\n%s  guarantee: %s\n  price: %s, %s of %s "+
		"to a %s\n  queue: %s\n", x.Name, len(x.Arms), picked(x), out.Guarantee, out.Budget,
		words.Several(out.Assignments, "assignment"), out.Each, out.Unit, queue)
	if err == nil && proposed {
		_, err = fmt.Fprintf(s.out, "  first batch: %d decisions of an arm come while one waits "+
			"for its window, "+
			"and its first one has %d: try %s: %d (sotto plan live says which loses less)\n",
			first.Proposed, first.Is, first.Param, first.Proposed)
	}
	return cmp.Or(err, out.Sample.print(s.out))
}

type listCommand struct {
	Policies   listPolicies   `cmd:"" default:"withargs" help:"Policies: guarantee, source and parameters."`
	Mechanisms listMechanisms `cmd:"" help:"Mechanisms: what each promises, and who is believed."`
	Cube       listCube       `cmd:"" help:"What is proved, impossible and open, of every goal, currency, trust and kind of action."`
}

type listCube struct {
	JSON bool `help:"As JSON, for programs."`
}

func (c *listCube) Run(s streams) error {
	cells := catalog.Cube()
	count := catalog.CountCube(cells)
	if c.JSON {
		return printJSON(s, struct {
			Cells []catalog.Cell    `json:"cells"`
			Count catalog.CubeCount `json:"count"`
		}{cells, count})
	}
	w := report.NewColumns(s.out)
	width := len(catalog.Currencies())
	for i := 0; i < len(cells); i += width { // a row is the currencies of one goal, trust and kind of action
		row := cells[i : i+width]
		if i == 0 || row[0].Goal != cells[i-1].Goal {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s\t\t%s\n", row[0].Goal, strings.Join(catalog.Currencies(), "\t"))
		}
		fmt.Fprintf(w, "  %s\t%s", row[0].Actions, row[0].Trust)
		for _, cell := range row {
			text := cell.Verdict
			if cell.Converted {
				text += "/2"
			}
			if cell.Policy != "" {
				text += " " + cell.Policy
			}
			fmt.Fprintf(w, "\t%s", text)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, "\n%s.\n", count)
	return err
}

type listPolicies struct {
	JSON bool `help:"As JSON, for programs."`
}

type listMechanisms struct {
	JSON bool `help:"As JSON, for programs."`
}

// mechanismJSON is a mechanism as programs read it.
type mechanismJSON struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Trust     string   `json:"trust"`
	Noise     string   `json:"noise,omitempty"`
	Guarantee string   `json:"guarantee"`
	Assumes   string   `json:"assumes"`
	Budgets   []string `json:"budgets"`
	Continual bool     `json:"continual"`
	Real      bool     `json:"real"`
	Source    string   `json:"source"`
}

func (c *listMechanisms) Run(s streams) error {
	if c.JSON {
		out := []mechanismJSON{}
		for _, m := range catalog.Mechanisms() {
			out = append(out, mechanismJSON(m))
		}
		return printJSON(s, out)
	}
	w := report.NewColumns(s.out)
	trust := ""
	for _, m := range catalog.Mechanisms() {
		if m.Trust != trust {
			if trust != "" {
				fmt.Fprintln(w)
			}
			trust = m.Trust
			note := m.Assumes
			if trust == experiment.Continuous {
				note = "what policies state, and simulations have; " + note
			}
			fmt.Fprintf(w, "trust: %s  (%s)\n", trust, note)
		}
		what := m.Name
		if m.Noise != "" {
			what = "noise: " + m.Noise
		}
		if m.Continual {
			what += ", running sums"
		}
		if !m.Real {
			what += ", simulated only"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", what, m.Title, m.Guarantee,
			strings.Join(m.Budgets, " | "), m.Source)
	}
	return w.Flush()
}

// policyJSON is an entry as programs read it.
type policyJSON struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// regret, linear, contextual or identify; a name may be in several
	Bandit string `json:"bandit"`
	// the policy that it is without privacy, if that has a name of its own
	Twin      string   `json:"twin,omitempty"`
	Private   bool     `json:"private"`
	Budgets   []string `json:"budgets"`
	Guarantee string   `json:"guarantee"`
	Regret    string   `json:"regret"`
	Source    string   `json:"source"`
	// of identify: who proves it to be δ-correct. Regret is then its samples
	Correct string `json:"correct,omitempty"`
	// of those that can be played live: whether that is proved where nobody sees the rewards, and why
	Gathered string      `json:"gathered,omitempty"`
	Anytime  bool        `json:"anytime"`
	Params   []paramJSON `json:"params"`
}

type paramJSON struct {
	Name       string   `json:"name"`
	Doc        string   `json:"doc"`
	Type       string   `json:"type"`
	Choices    []string `json:"choices,omitempty"`
	Default    any      `json:"default,omitempty"`
	DefaultDoc string   `json:"default_doc,omitempty"`
	Allowed    string   `json:"allowed"`
	Proved     string   `json:"proved,omitempty"`
}

func (c *listPolicies) Run(s streams) error {
	if c.JSON {
		out := []policyJSON{}
		for _, e := range s.known.All() {
			j := policyJSON{Name: e.Name, Title: e.Title, Bandit: e.Bandit, Twin: e.Twin,
				Private: e.Private, Budgets: append([]string{}, e.Budgets...), Guarantee: e.Guarantee,
				Regret: e.Regret, Source: e.Source, Correct: e.Correct, Gathered: verdictText(e.Gathered), Anytime: e.Anytime,
				Params: []paramJSON{}}
			for _, p := range e.Params {
				q := paramJSON{Name: p.Name, Doc: p.Doc, Type: "number", DefaultDoc: p.DefaultDoc,
					Allowed: p.Allowed(), Proved: p.Proved()}
				switch {
				case p.Flag:
					q.Type = "boolean"
				case p.Integer:
					q.Type = "integer"
				case p.Choices != nil:
					q.Type, q.Choices = "choice", p.Choices
				}
				switch {
				case p.Choices != nil:
					q.Default = p.Text(p.Default)
				case p.Flag:
					q.Default = p.Default == 1
				case !math.IsNaN(p.Default):
					q.Default = p.Default
				}
				j.Params = append(j.Params, q)
			}
			out = append(out, j)
		}
		return printJSON(s, out)
	}
	for i, e := range s.known.All() {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		fmt.Fprintf(s.out, "%s  (%s)\n", e.Name, e.Title)
		w := report.NewColumns(s.out)
		if e.Bandit != catalog.BanditArms {
			fmt.Fprintf(w, "  bandit\t%s\n", e.Bandit)
		}
		fmt.Fprintf(w, "  privacy\t%s\n", e.Guarantee)
		if e.Private {
			fmt.Fprintf(w, "  budgets\t%s\n", strings.Join(e.Budgets, " | "))
		}
		if e.Bandit == catalog.BanditIdentify {
			fmt.Fprintf(w, "  samples\t%s\n", e.Regret)
			correct := e.Correct
			if e.Seeks() == catalog.GoalBudget {
				correct = "whatever the risk, it stops after its plays"
			}
			fmt.Fprintf(w, "  δ-correct\t%s\n", correct)
		} else {
			fmt.Fprintf(w, "  regret\t%s\n", e.Regret)
			horizon := "must be known"
			if e.Anytime {
				horizon = "need not be known"
			}
			fmt.Fprintf(w, "  horizon\t%s\n", horizon)
		}
		if text := verdictText(e.Gathered); text != "" {
			fmt.Fprintf(w, "  gathered\t%s\n", text)
		}
		fmt.Fprintf(w, "  source\t%s\n", e.Source)
		for _, p := range e.Params {
			value := p.DefaultDoc
			if !math.IsNaN(p.Default) {
				value = p.Text(p.Default)
			}
			proved := p.Proved()
			if proved != "" {
				proved = "; " + proved
			}
			fmt.Fprintf(w, "  %s\t%s; default %s; %s%s\n", p.Name, p.Doc, value, p.Allowed(), proved)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// verdictText says whether what is proved of a policy holds live where nobody sees the rewards; empty
// of those that cannot be played live.
func verdictText(v catalog.Verdict) string {
	switch {
	case v.Proved != "":
		return "proved where nobody sees the rewards, by " + v.Proved
	case v.Refused != "":
		return "refused where nobody sees the rewards: " + v.Refused
	}
	return ""
}

type schemaCommand struct {
	Of string `arg:"" optional:"" default:"experiment" enum:"experiment,live" help:"${schemaOf}"`
}

func (c *schemaCommand) Run(s streams) error {
	write := experiment.Reader{Catalog: s.known}.Schema
	if c.Of == "live" {
		write = decl.Reader{Catalog: s.known}.Schema
	}
	b, err := write()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n", strings.TrimRight(string(b), "\n"))
	return err
}

type versionCommand struct {
	JSON bool `help:"As JSON, for programs."`
}

func (c *versionCommand) Run(s streams) error {
	if c.JSON {
		return printJSON(s, build.This())
	}
	_, err := fmt.Fprintln(s.out, versionText(s))
	return err
}

// versionText is the program and the build.
func versionText(s streams) string { return s.program + " " + build.This().String() }
