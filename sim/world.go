package sim

import (
	"fmt"
	"strconv"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A World is a source of instances under a seed. What is random in a run follows from the content
// of its world and cell: whoever plays run i of a policy at a budget in a World plays the same run.
type World struct {
	Source bandit.Source
	Key    noise.Key // of its streams: the seed and the content
	// Fixed is the instance of every run, or of none where each has its own.
	Fixed bandit.Instance
}

// shared is the run in the key of an instance that all runs have.
const shared = -1

// NewWorld is the world of a source whose declared range of rewards is [lo, hi].
func NewWorld(source bandit.Source, lo, hi float64, seed uint64) (World, error) {
	w := World{Source: source, Key: noise.Key{Seed: seed,
		Experiment: fmt.Sprintf("%v range=[%s,%s]", source, shortest(lo), shortest(hi))}}
	var err error
	w.Fixed, err = w.draw(shared)
	return w, err
}

// shortest writes x with the fewest digits that read back as x, and no negative zero.
func shortest(x float64) string {
	if x == 0 {
		x = 0
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func (w *World) draw(run int) (bandit.Instance, error) {
	return w.Source.Instance(&w.streams(run, noise.RoleInstance, 1)[0])
}

// Run is the key of a run.
func (w *World) Run(run int) noise.Key {
	k := w.Key
	k.Run = run
	return k
}

func (w *World) streams(run int, role noise.Role, n int) []noise.Fast {
	k := w.Run(run)
	k.Role = role
	return k.Fast(n)
}

// Instance is that of a run.
func (w *World) Instance(run int) (bandit.Instance, error) {
	if !w.Source.Redrawn() {
		return w.Fixed, nil
	}
	return w.draw(run)
}

// Rewards are the streams of a run's rewards, one an arm: the same whatever plays.
func (w *World) Rewards(run, arms int) []noise.Fast { return w.streams(run, noise.RoleReward, arms) }

// Delays is the stream of how late a run's rewards are: the same whatever plays.
func (w *World) Delays(run int) *noise.Fast { return &w.streams(run, noise.RoleDelay, 1)[0] }

// Contexts is the stream of the contexts that a run's people come with: the same whatever plays.
func (w *World) Contexts(run int) *noise.Fast { return &w.streams(run, noise.RoleContext, 1)[0] }

// A Cell is what plays in a world: the content of a policy with its parameters, catalog's
// Entry.Content, with that of how it is trusted, and its budget. Nothing else of it changes a run.
type Cell struct{ Policy, Budget string }

// CellOf is the cell of a policy's content at a budget.
func CellOf(policy string, b privacy.Budget) Cell { return Cell{policy, b.String()} }

// Streams are those of a run, given by its world's key, that are the cell's own: its noise, and its
// policy's coins.
func (c Cell) Streams(run noise.Key) (private, coins *noise.Fast) {
	run.Cell, run.Role = c.Policy+" at "+c.Budget, noise.RoleNoise
	private = &run.Fast(1)[0]
	run.Role = noise.RolePolicy
	return private, &run.Fast(1)[0]
}

// TrustContent is what a cell's content has of how its releases are made, behind that of its policy.
func TrustContent(t release.Trust) string {
	return " trust=" + string(t.Model) + " noise=" + string(t.NoiseOf())
}
