package experiment

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// The kinds of experiment.
const (
	// policies play instances of several arms; metrics are regret and plays of the best arms
	KindRegret = catalog.BanditArms
	// stopping rules sample one law; metrics are samples and the relative error of the estimate
	KindStopping = "stopping"
	// policies play a fixed set of actions in ℝ^d; metrics are those of KindRegret
	KindLinear = catalog.BanditLinear
	// policies play a set of actions in ℝ^d that changes in each round; metrics are
	// those of KindRegret
	KindContextual = catalog.BanditContextual
	// policies look for the best arm and stop; metrics are stopping time, error, batches and
	// plays of each arm
	KindIdentify = catalog.BanditIdentify
)

// A kind is what experiments of one kind have of their own. Each has a file, kind_NAME.go; nothing
// else in this package asks which kind an experiment is of. A kind has no state.
type kind interface {
	name() string // as files have it; of kinds whose players are policies, their kind of bandit

	fileForm
	checker
	planner
	describer
	player
	teller
}

// A fileForm says how a kind's experiments are written.
type fileForm interface {
	// keys are those of a file, with the policies that are known.
	keys(known catalog.Catalog) []keyed.Key[Spec]
	instances() instanceForm
	span() (lo, hi float64) // the range of rewards, where none is given
	players() string        // the key that says who plays
}

// A checker refuses what the keys of a file by themselves allow, and knows how long runs are.
type checker interface {
	// length is how long a run is, or may be, and its key; text says it.
	length(s *Spec) (key string, n keyed.Count)
	text(s *Spec) string
	check(s *Spec) error
}

// A planner says what the cells of an experiment are.
type planner interface {
	checkpoints(p *Resolved) error
	worlds(p *Resolved) ([]environment, error)
	choices(p *Resolved) ([]choice, error)
	// begin makes a cell ready to be played, and gives it its hash: of the i-th that plays.
	begin(p *Resolved, c *Cell, i int) error
	// columns is how many pairs of numbers a unit holds of a run.
	columns(p *Resolved, worlds []environment) (int, error)
}

// A describer says of a cell what others than this package need to know.
type describer interface {
	// tell fills in what the manifest has of a cell of this kind alone, and checkTold checks it.
	tell(s *Spec, c *Cell, to *CellInfo)
	checkTold(c *CellInfo) error
	// problem is what bounds on the regret need to know.
	problem(s *Spec, c *Cell) (bound.Problem, error)
}

// A player plays runs.
type player interface {
	// play plays one run and appends its metrics, one after the other at all checkpoints. The world
	// is the same for every cell of the instance, the noise is the cell's own. The result is room
	// that is used again.
	play(ctx context.Context, p *Resolved, c *Cell, run int, room *sim.Result, to []float64) ([]float64,
		privacy.Loss, error)
}

// A teller says what results are.
type teller interface {
	// metrics are the numbers that a unit holds of each run and checkpoint of a cell.
	metrics(c *CellInfo) []string
	// judge counts the runs that failed.
	judge(c *CellResult)
	// writeRows writes results.parquet.
	writeRows(ctx context.Context, w io.Writer, dir string, m *Manifest) error
	// report adds tables and figures to what all reports have.
	report(r *Results, to *report.Page) error
	// adjacency says in what neighbouring worlds differ.
	adjacency(r *Results) string
	// protects says whether what is protected depends on the policy, so that each has to be told.
	protects() bool
}

// kinds are all kinds, in the order of Kinds: the first is that of a file which does not say.
func kinds() []kind {
	return []kind{regretKind{}, stoppingKind{}, linearKind{}, contextualKind{}, identifyKind{}}
}

// Kinds are the names of the kinds.
func Kinds() []string {
	var out []string
	for _, k := range kinds() {
		out = append(out, k.name())
	}
	return out
}

// kindOf is the kind of this name. No name, and "arms", are old spellings of KindRegret.
func kindOf(name string) (kind, error) {
	if name == "" || name == "arms" {
		name = KindRegret
	}
	for _, k := range kinds() {
		if k.name() == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("is %q%s: known are %s", keyed.Clip(name), catalog.Hint(keyed.Clip(name), Kinds()),
		strings.Join(Kinds(), ", "))
}

// tables are the keys of each kind, without a catalog, which only the policies' values need.
var tables = sync.OnceValue(func() [][]keyed.Key[Spec] {
	var out [][]keyed.Key[Spec]
	for _, k := range kinds() {
		out = append(out, k.keys(catalog.Catalog{}))
	}
	return out
})

func keysOf(k kind) []keyed.Key[Spec] { return tables()[slices.Index(kinds(), k)] }

// with are the kinds whose files have a key.
func with(key string) string {
	var out []string
	for i, k := range kinds() {
		if keyed.Has(tables()[i], key) {
			out = append(out, k.name())
		}
	}
	return strings.Join(out, ", ")
}

// foreign refuses what a program has said that is for other kinds.
func foreign(k kind, s *Spec) error {
	own := keysOf(k)
	for _, table := range tables() {
		for _, key := range table {
			if key.Given(s) && !keyed.Has(own, key.Name) {
				return s.fail(key.Name, "is for experiments of kind %s, and this one is of kind %s",
					with(key.Name), k.name())
			}
		}
	}
	return nil
}
