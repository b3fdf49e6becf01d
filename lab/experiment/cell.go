package experiment

import (
	"fmt"
	"math/bits"

	"github.com/sotto-dp/sotto/privacy"
)

// A Cell is one policy at one budget on one instance. Policy may be a stopping rule.
type Cell struct {
	Instance, Policy, Budget string // labels; Budget as in epsilon=1, rho=0.1, none
	// Hash is the SHA-256 of all that decides the cell's numbers, in hex. Labels, the number of
	// runs and the experiment's name do not.
	Hash string

	world  environment
	choice choice
	budget privacy.Budget
	trial  trial // of KindStopping
}

// Label is instance / policy / budget.
func (c *Cell) Label() string { return c.Instance + " / " + c.Policy + " / " + c.Budget }

// runOfAll is the run in the key of an instance that all runs share.
const runOfAll = -1

// blockSize is the number of runs in a unit. It is small enough that a unit of a policy that
// decides every round takes seconds, so that the work spreads evenly and little is lost on a stop;
// but every unit is a file, so it grows with the runs beyond 128 units a cell, as long as a unit
// stays below 16 MB.
func blockSize(horizon, runs, checkpoints int) int {
	b := 1
	if n := (1 << 25) / horizon; n > 1 {
		b = min(64, 1<<(bits.Len(uint(n))-1))
	}
	for b*128 < runs {
		b *= 2
	}
	for b > 1 && b*checkpoints > 1<<20 {
		b /= 2
	}
	return b
}

// unitName is the file of a block of a cell.
func unitName(hash string, block int) string { return fmt.Sprintf("%s-%d.unit", hash, block) }
