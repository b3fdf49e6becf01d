// Package experiment turns a file into results: it reads an experiment, plays each of its cells,
// and leaves files that can be trusted, plotted and published. Begin with a Reader, and Run.
//
//	YAML → Spec → Plan → units → summary.csv, results.parquet, manifest.json
//
// An experiment is of a kind: regret, policies that play arms, or stopping, rules that sample a
// law. What follows holds for both; a rule is a policy then.
//
// A Spec is the file. Plan checks all of it and resolves it into cells: instance × policy × budget.
// A cell is named by the hash of its content: labels and the experiment's name do not change it.
// The runs of a cell are played in blocks, and each block is one file, a unit, named by cell and
// block and written atomically. Workers, shards and resuming are this one mechanism: units are
// played by whoever, whenever, wherever, and every output is made from units alone, in one order.
// So outputs are equal byte for byte however the work was cut up, for the same binary.
//
// Randomness has a name too. The instance and the rewards of run i are a function of (seed,
// instance, i), and are shared by all policies and budgets: comparisons are paired. The noise of
// run i is a function of (seed, instance, policy, budget, i). Neither knows the number of runs, the
// checkpoints or any label: adding runs or renaming things changes no run.
package experiment

import (
	"errors"

	"github.com/sotto-dp/sotto/internal/keyed"
)

// FormatVersion is part of every cell's hash. It goes up when the same experiment gives other
// numbers, or a unit's layout changes.
const FormatVersion = 1

// Errors that a caller may want to tell apart.
var (
	// ErrSpec is matched by every error in the experiment itself.
	ErrSpec = keyed.ErrSpec
	// ErrOutput is matched when an output directory cannot be used: it holds another experiment, or
	// results that would be lost.
	ErrOutput = errors.New("output directory")
	// ErrUnit is matched when a unit file is not what its name says, or is damaged.
	ErrUnit = errors.New("unit file")
	// ErrShards is matched when shards do not fit together, or units are missing.
	ErrShards = errors.New("shards")
)
