package paper

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// A Preset is a scale.
type Preset string

// The presets.
const (
	Quick Preset = "quick" // decides the robust claims in minutes
	Full  Preset = "paper" // the scale of the sources
)

// size is a number of games, runs or cases at the preset.
func (p Preset) size(full, quick int) int {
	if p == Quick {
		return quick
	}
	return full
}

// A Figure is one figure, table or theorem of a source that can be played, and what the
// source claims of it.
type Figure struct {
	ID     string // such as thesis-5.2; the file name of its page
	Source string // 000 to 004, as docs/sources.md numbers them
	Where  string // such as "Figure 5.2, §5.5.1"
	Title  string
	// About says what is shown, and Chosen what the source leaves open and we chose. Voids says
	// which of its settings void a guarantee; empty if none does.
	About, Chosen, Voids string
	Experiments          []Experiment
	// Compute makes what is not an experiment: audits, bounds, exact laws. Nil if there is nothing.
	Compute Computation
	// Real is this figure on the real data in a directory, where Compute plays some; nil if the
	// directory has none of its files. An error is of the files. CSV files beside the settings are
	// no part of this.
	Real func(dir string) (*Figure, error)
	Data string // a fingerprint of the real data that Compute plays; empty: it plays none
	// Show picks, of what package report draws of an experiment, the figures that belong on the
	// page, by their IDs (regret-…, difference-…, price-…). Nil shows all. The others are on the
	// experiment's own page.
	Show func(experiment, figure string) bool
	// Draw chooses the figures and tables of the page; nil shows what package report makes of
	// each experiment.
	Draw   func(e *Evidence) ([]report.Figure, []report.Table)
	Claims []Claim
}

// An Experiment is one of the experiments behind a figure: a file of settings/, at the scale of Full.
type Experiment struct {
	Name string // unique in the figure: letters, digits, '-'
	File string // such as thesis-5.2.yaml
	// Quick makes it small for that preset: fewer runs, fewer cells, a shorter horizon. Nil: it is
	// not played then, and what rests on it is undecided.
	Quick func(s *experiment.Spec)
}

// A Computation puts what it finds into n. It takes what can fail by need and try, as a Check does.
type Computation func(ctx context.Context, p Preset, n *Numbers)

// Of is what the computation finds, or why it ended, or broke.
func (c Computation) Of(ctx context.Context, p Preset) (n *Numbers, err error) {
	return c.of(ctx, p, 0)
}

// of is Of with the seeds of a replay.
func (c Computation) of(ctx context.Context, p Preset, replay int) (n *Numbers, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case ended:
			n, err = nil, x.error
		default:
			n, err = nil, fmt.Errorf("it broke: %v", x)
		}
	}()
	n = &Numbers{Values: map[string][]float64{}, replay: replay}
	c(ctx, p, n)
	return n, nil
}

// seed is one of the computation's seeds: as it is printed, or a fresh one of replays.
func (n *Numbers) seed(printed uint64) uint64 {
	n.Random = true
	return freshSeed(printed, n.replay)
}

// Numbers are what a computation found. They are kept on disk by encoding/gob, so that a stopped
// reproduction goes on.
type Numbers struct {
	Values  map[string][]float64 // for Decide
	Tables  []report.Table
	Figures []report.Figure
	Notes   []string // such as: no real data set was given, and the sample was used
	Runs    int      // runs, games or draws behind the values, if they are random
	Random  bool     // a seed was asked for: another one may give other values

	replay int // whose seeds are drawn by; 0: those that are printed
}

// A Claim is one claim of a source, or a finding of our own.
type Claim struct {
	ID   string // unique in its figure: letters, digits, '-'
	Text string // in our words, and in the source's own scope
	// Where it stands, by section and page, if not at the figure itself.
	Where string
	// Statistic says what decides: which number, and when the check holds. A threshold that the
	// source does not give is named as ours.
	Statistic string
	Decide    Check
	// IfHolds and IfFails say what these answers mean for the claim; empty: Reproduces, and
	// NotReproduced. An undecided check leaves the claim NotTested. Refuted needs a Proof.
	IfHolds, IfFails Verdict
	// Weaker checks what is left of a claim whose check failed: the direction without the number,
	// or part of the scope. If it holds, the claim is Overstated.
	Weaker Check
	// Stronger checks what is more than a claim says whose check failed. If it holds, the claim is
	// Understated.
	Stronger Check
	// Proof is a proof against the claim, or a counter-example, short enough to be followed on the
	// page. Empty: there is none, and no number of runs makes the claim Refuted.
	Proof string
	// Own says that no source claims it: a control, or an observation. It has no verdict, and a
	// table of its own.
	Own bool
	// Why says why the finding is as it is where the source and it differ, and is shown with
	// verdicts that are not good. Reader says what a reader of the source should do about it.
	Why, Reader string
}

// A Check finds whether the statement of a claim holds. It reads its evidence by need, and so ends
// where something is missing.
type Check func(e *Evidence) Finding

// Of is what the check finds, or why it ended without a finding.
func (c Check) Of(e *Evidence) (f Finding, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case ended:
			f, err = Finding{}, x.error
		default:
			panic(x)
		}
	}()
	return c(e), nil
}

// ended is what ends a check; it leaves this package as an error only.
type ended struct{ error }

// try ends the check, the computation or the drawing on an error.
func try(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// need is x, and ends as try does.
func need[T any](x T, err error) T {
	try(err)
	return x
}

// both are x and y, and end as try does.
func both[X, Y any](x X, y Y, err error) (X, Y) {
	try(err)
	return x, y
}

// An Answer is what a check found of the statement that it tests.
type Answer string

// The answers.
const (
	Holds Answer = "holds"
	Fails Answer = "fails"
	// the interval has the threshold in it, or what decides was not played at this preset
	Undecided Answer = "undecided"
)

// A Finding is an answer with the numbers it rests on: the statistic and its interval. NaN
// where there is none.
type Finding struct {
	Answer           Answer
	Value, Low, High float64
	Runs             int    // runs behind the statistic
	Detail           string // which cell is the worst, what was counted; one line
}

// Evidence is what claims of one figure are decided from.
type Evidence struct {
	Preset      Preset
	Experiments map[string]*experiment.Results // by name; without those that the preset leaves out
	// experiments that played a sample instead of the source's data
	Sampled map[string]bool
	Numbers *Numbers // nil without Compute
}

// A NotPlayedError says that an experiment is not part of the preset. The claim is then undecided.
type NotPlayedError struct {
	Name   string
	Preset Preset
}

func (e *NotPlayedError) Error() string {
	return fmt.Sprintf("experiment %s is not played at preset %s", e.Name, e.Preset)
}

// Results are those of an experiment. The error is a *NotPlayedError where the preset leaves it out.
func (e *Evidence) Results(name string) (*experiment.Results, error) {
	r, ok := e.Experiments[name]
	if !ok {
		return nil, &NotPlayedError{Name: name, Preset: e.Preset}
	}
	return r, nil
}

// Cell is a cell of an experiment, by the labels of instance, policy and budget ("epsilon=1",
// "none"). Where the preset leaves the cell out, though the experiment is played, the error is a
// *NotPlayedError too.
func (e *Evidence) Cell(name, instance, policy, budget string) (*experiment.CellResult, error) {
	r, err := e.Results(name)
	if err != nil {
		return nil, err
	}
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Instance == instance && c.Policy == policy && c.Budget == budget {
			return c, nil
		}
	}
	return nil, &NotPlayedError{Name: fmt.Sprintf("%s: %s / %s / %s", name, instance, policy,
		budget), Preset: e.Preset}
}

// Values are numbers of the computation.
func (e *Evidence) Values(name string) ([]float64, error) {
	if e.Numbers == nil {
		return nil, &NotPlayedError{Name: name, Preset: e.Preset}
	}
	v, ok := e.Numbers.Values[name]
	if !ok {
		return nil, &NotPlayedError{Name: name, Preset: e.Preset}
	}
	return v, nil
}

// All are the figures of all sources, in their order.
func All() []Figure {
	var all []Figure
	for _, part := range [][]Figure{
		thesisBandits(),  // [Azize 2024, chapter 5]
		thesisAudits(),   // [Azize 2024, chapters 2, 6, 7] and appendix C
		thesisTheorems(), // [Azize 2024], what it states beside its figures
		zcdp(),           // [Azize and Basu 2024]
		elimination(),    // [Sajed 2019]
		distributed(),    // [Chowdhury and Zhou 2023]
		identification(), // [Azize et al. 2023] and [Azize 2024, §5.5.3]
		faults(),         // what the published programs do wrong
		theorems(),       // what [Azize and Basu 2024] to [Azize et al. 2023] prove and do not play
	} {
		all = append(all, part...)
	}
	return all
}

// theoremWhy is the Why of claims with a proof that we have checked.
const theoremWhy = "It is a theorem, and these settings are within it: if its check fails here, " +
	"then our program is wrong, or the interval is one of the few that miss."
