package release

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/rows"
	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/privacy"
)

// normLimit is the largest ‖a‖₂² of a vector on entry: 1, and rounding, which makes ρ of
// simulated rewards a share of 2e-9 larger than it says. Real ones have noise for it.
const normLimit = (1 + unitball.Slack) * (1 + unitball.Slack)

// features is a FeatureCurator whose slots are emptied at a release: T is float64 in simulations,
// int64 for real rewards.
type features[T number] struct {
	ledger    *privacy.Ledger
	plan      recipe[T]
	account   privacy.Account
	unclipped bool
	grid      float64 // steps a unit of a·r, 0 if sums are what they are
	step      float64 // 1/grid, or 1
	dim       int
	cells     rows.Table // of a histogram, else empty
	width     int        // numbers of a release
	n         []int
	sum       []T // of the slots, width numbers each
	id        []int
	next      int // number of the slot that opens next
	noise     []T // of a release
	out       privacy.Vector
}

func newFeatures[T number](cfg FeatureConfig, p recipe[T], step, grid float64) *features[T] {
	width := cfg.Dim
	if n := cfg.cells.Len(); n > 0 {
		width = 2 * n
	}
	p.charge = chargeOf(p.charge, cfg.Unclipped)
	if p.most == 0 {
		p.most = math.MaxInt
	}
	c := &features[T]{ledger: cfg.Ledger, plan: p, account: cfg.Ledger.Account(p.charge),
		unclipped: cfg.Unclipped, grid: grid, step: step, dim: cfg.Dim, cells: cfg.cells,
		width: width, n: make([]int, cfg.Slots), sum: make([]T, cfg.Slots*width), id: make([]int, cfg.Slots),
		next: firstSlot(cfg.Ledger), out: privacy.Vector{Value: make([]float64, width)}}
	if p.vector != nil {
		c.noise = make([]T, width)
	}
	for i := range c.id {
		c.id[i] = c.open()
	}
	return c
}

// open numbers a slot.
func (c *features[T]) open() int {
	c.next++
	return c.next - 1
}

// Ledger implements FeatureCurator.
func (c *features[T]) Ledger() *privacy.Ledger { return c.ledger }

// Add implements FeatureCurator.
func (c *features[T]) Add(slot int, a []float64, reward float64) error {
	if uint(slot) >= uint(len(c.n)) || len(a) != c.dim || c.n[slot] >= c.plan.most {
		return c.noRoom(slot, a)
	}
	if !(reward >= -1 && reward <= 1) {
		var err error
		if reward, err = atDoor("slot", slot, reward, c.unclipped, c.grid != 0); err != nil {
			return err
		}
	}
	if c.cells.Len() > 0 {
		return c.tally(slot, a, reward)
	}
	q := 0.0
	for _, x := range a {
		q += float64(x * x)
	}
	if !(q <= normLimit) {
		if _, private := c.plan.charge.(privacy.VectorLaplace); private && c.grid != 0 {
			return errPrivateVector
		}
		if err := checkNorm(a, q, c.unclipped); err != nil {
			return err
		}
	}
	s := c.sum[slot*c.dim:][:len(a)]
	if c.grid == 0 {
		for i, x := range a {
			s[i] += T(float64(x * reward))
		}
	} else {
		for i, x := range a {
			s[i] += T(math.Round(float64(x*reward) * c.grid))
		}
	}
	c.n[slot]++
	return nil
}

// tally adds a record to the bins of its cell.
func (c *features[T]) tally(slot int, a []float64, reward float64) error {
	at := c.cells.Find(a)
	if at < 0 {
		return errNoCell
	}
	bins := c.sum[slot*c.width+2*at:][:2]
	one, y := 1.0, float64((reward+1)/2)
	if c.grid != 0 {
		one, y = c.grid, math.Round(float64(y*c.grid))
	}
	bins[0] += T(one - y)
	bins[1] += T(y)
	c.n[slot]++
	return nil
}

// errNoCell has nothing of the vector, which is as private as the reward.
var errNoCell = errors.New("curator: a vector is none of the histogram's rows")

// checkNorm refuses a vector whose squared norm q is above normLimit, or NaN.
func checkNorm(a []float64, q float64, unclipped bool) error {
	for i, x := range a {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("curator: feature %d is %v, must be finite", i, x)
		}
	}
	if !unclipped {
		return fmt.Errorf("curator: a vector has norm %v, must be at most 1: the sensitivity "+
			"rests on it", math.Sqrt(q))
	}
	return nil
}

func (c *features[T]) noRoom(slot int, a []float64) error {
	switch {
	case uint(slot) >= uint(len(c.n)):
		return fmt.Errorf("curator: slot is %d, must be from 0 to %d", slot, len(c.n)-1)
	case len(a) != c.dim:
		return fmt.Errorf("curator: a vector has %d features, must have %d", len(a), c.dim)
	}
	return fmt.Errorf("curator: slot %d has %d rewards, must have at most %d", slot, c.n[slot], c.plan.most)
}

// Release implements FeatureCurator. If it fails nothing was released, and the slot is as before
// unless the ledger may have charged for it.
func (c *features[T]) Release(slot int) (privacy.ReleasedVector, error) {
	if uint(slot) >= uint(len(c.n)) {
		return c.refuse(fmt.Errorf("curator: release of slot %d, must be from 0 to %d", slot, len(c.n)-1))
	}
	if c.n[slot] == 0 {
		return c.refuse(fmt.Errorf("curator: release of slot %d, which is empty", slot))
	}
	s := c.sum[slot*c.width:][:c.width]
	if c.plan.vector != nil {
		clear(c.noise)
		if err := c.plan.vector(c.noise); err != nil {
			return c.refuse(fmt.Errorf("curator: noise of slot %d: %w", slot, err))
		}
	}
	for i, x := range s {
		if c.plan.vector != nil {
			x += c.noise[i]
		} else if c.plan.noise != nil {
			y, err := c.plan.noise.Draw(1)
			if err != nil {
				return c.refuse(fmt.Errorf("curator: noise of slot %d: %w", slot, err))
			}
			x += y
		}
		c.out.Value[i] = float64(float64(x) * c.step)
	}
	c.out.N = c.n[slot]
	released, err := c.account.ReleaseVector(c.id[slot], &c.out)
	if closed(err) {
		clear(s)
		c.n[slot], c.id[slot] = 0, c.open()
	}
	if err != nil {
		return c.refuse(fmt.Errorf("curator: %w", err))
	}
	return released, nil
}

// refuse wipes what was to be released: see curator.refuse.
func (c *features[T]) refuse(err error) (privacy.ReleasedVector, error) {
	clear(c.out.Value)
	c.out.N = 0
	return privacy.ReleasedVector{}, err
}
