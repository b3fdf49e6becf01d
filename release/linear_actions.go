package release

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/privacy"
)

// actions is both ActionCurators: T is float64 in simulations, int64 for real rewards.
type actions[T number] struct {
	ledger *privacy.Ledger
	// prepare makes a mechanism ready.
	prepare   func(privacy.Mechanism) (recipe[T], error)
	unclipped bool
	grid      float64 // steps a unit of reward, 0 if sums are what they are
	step      float64 // 1/grid, or 1
	atOnce    int     // largest n of AddSum
	most      int     // rewards of one action

	set  [][]float64
	dim  int
	slot int // the open slot's number
	n    []int
	sum  []T // of each action
	all  int // rewards in the slot

	out privacy.Vector
	buf []float64
}

func newActions[T number](set [][]float64, unclipped bool, ledger *privacy.Ledger) (*actions[T], error) {
	if len(set) == 0 {
		return nil, errors.New("curator: there are no actions, must be at least one")
	}
	if ledger == nil {
		ledger = privacy.NewLedger()
	}
	k, d := len(set), len(set[0])
	c := &actions[T]{ledger: ledger, unclipped: unclipped, dim: d, slot: firstSlot(ledger),
		n: make([]int, k), sum: make([]T, k),
		buf: make([]float64, max(k, d))}
	for i, a := range set {
		if len(a) == 0 || len(a) != d {
			return nil, fmt.Errorf("curator: action %d has %d features, must have as many as "+
				"action 0, %d, and at least one", i, len(a), d)
		}
		for j, x := range a {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("curator: feature %d of action %d is %v, must be finite", j, i, x)
			}
		}
		c.set = append(c.set, slices.Clone(a))
	}
	return c, nil
}

// Ledger implements ActionCurator.
func (c *actions[T]) Ledger() *privacy.Ledger { return c.ledger }

// Add implements ActionCurator.
func (c *actions[T]) Add(action int, reward float64) error {
	if !(reward >= -1 && reward <= 1) {
		var err error
		if reward, err = atDoor("action", action, reward, c.unclipped, c.atOnce == 1); err != nil {
			return err
		}
	}
	return c.put(action, 1, reward)
}

// AddSum implements ActionCurator.
func (c *actions[T]) AddSum(action, n int, sum float64) error {
	k := float64(n)
	if sum >= -k && sum <= k && n <= c.atOnce {
		return c.put(action, n, sum)
	}
	// Sums of doubles may be out of range by rounding.
	slack := float64(1e-9 * k)
	switch {
	case n < 0:
		return fmt.Errorf("curator: n of action %d is %d, must not be negative", action, n)
	case n > c.atOnce:
		return fmt.Errorf("curator: n of action %d is %d, must be 1: real rewards are clipped "+
			"one by one", action, n)
	case n == 1 && c.atOnce == 1:
		return c.Add(action, sum)
	case math.IsNaN(sum) || math.IsInf(sum, 0):
		return fmt.Errorf("curator: sum of %d rewards of action %d is not finite, must be", n, action)
	case c.unclipped:
		return c.put(action, n, sum)
	case sum < -k-slack || sum > k+slack:
		return fmt.Errorf("curator: sum of %d rewards of action %d is out of range, must be from "+
			"%v to %v", n, action, -k, k)
	}
	return c.put(action, n, min(max(sum, -k), k))
}

func (c *actions[T]) put(action, n int, x float64) error {
	if uint(action) >= uint(len(c.n)) {
		return fmt.Errorf("curator: action is %d, must be from 0 to %d", action, len(c.n)-1)
	}
	if n > c.most-c.all {
		return fmt.Errorf("curator: the slot has %d rewards and gets %d, must have at most %d",
			c.all, n, c.most)
	}
	c.n[action] += n
	c.all += n
	if c.grid == 0 {
		c.sum[action] += T(x)
	} else {
		c.sum[action] += T(math.Round(x * c.grid))
	}
	return nil
}

// Release implements ActionCurator. If it fails nothing was released, and the slot is as before
// unless the ledger may have charged for it.
func (c *actions[T]) Release(m privacy.Mechanism) (privacy.ReleasedVector, error) {
	p, err := c.plan(m)
	if err != nil {
		return c.refuse(err)
	}
	if c.all == 0 {
		return c.refuse(errors.New("curator: release of the slot, which is empty"))
	}
	if err := c.fill(m, p.noise); err != nil {
		return c.refuse(err)
	}
	c.out.N = c.all
	released, err := c.ledger.ReleaseVector(c.slot, chargeOf(p.charge, c.unclipped), &c.out)
	if closed(err) {
		clear(c.n)
		clear(c.sum)
		c.all = 0
		c.slot++
	}
	if err != nil {
		return c.refuse(fmt.Errorf("curator: %w", err))
	}
	return released, nil
}

// plan makes m ready, if what is in the slot may be released through it.
func (c *actions[T]) plan(m privacy.Mechanism) (recipe[T], error) {
	// actions may be longer than its sensitivity allows
	if _, ok := m.(privacy.VectorGaussian); ok {
		return recipe[T]{}, errors.New("curator: mechanism is vector-gaussian, must be elliptic or sums")
	}
	p, err := c.prepare(m)
	if err != nil {
		return p, fmt.Errorf("curator: %w", err)
	}
	if e, ok := m.(privacy.Elliptic); ok {
		if err := e.Covers(c.set, c.n); err != nil {
			return p, fmt.Errorf("curator: %w", err)
		}
	}
	return p, nil
}

// fill writes the noisy statistic; noise is nil for none.
func (c *actions[T]) fill(m privacy.Mechanism, noise sampler[T]) error {
	if e, ok := m.(privacy.Elliptic); ok {
		return c.shaped(e, noise)
	}
	c.out.Value = c.buf[:len(c.n)]
	for i, n := range c.n {
		c.out.Value[i] = 0
		if n == 0 { // public
			continue
		}
		x := c.sum[i]
		if noise != nil {
			y, err := noise.Draw(1)
			if err != nil {
				return fmt.Errorf("curator: noise of action %d: %w", i, err)
			}
			x += y
		}
		c.out.Value[i] = float64(float64(x) * c.step)
	}
	return nil
}

// shaped writes Σ_a a·(Σ r + √n_a·σξ_a), with n_a the mechanism's: its noise covers actions that
// were not played after all, too. Directions that the mechanism takes for rounding are left out.
func (c *actions[T]) shaped(e privacy.Elliptic, noise sampler[T]) error {
	v := c.buf[:c.dim]
	clear(v)
	coordinates, basis := e.Reduced()
	sum := v
	if basis != nil {
		sum = make([]float64, len(basis))
	}
	played := 0
	for i, a := range c.set {
		n := e.Count(i)
		if n == 0 {
			continue
		}
		x := float64(c.sum[i])
		if noise != nil {
			y, err := noise.Draw(1)
			if err != nil {
				return fmt.Errorf("curator: noise of action %d: %w", i, err)
			}
			x += float64(math.Sqrt(float64(n)) * float64(y))
		}
		if basis != nil {
			a = coordinates[played]
		}
		played++
		for j, f := range a {
			sum[j] += float64(x * f)
		}
	}
	for k, x := range sum[:len(basis)] {
		for j, f := range basis[k] {
			v[j] += float64(x * f)
		}
	}
	c.out.Value = v
	return nil
}

// refuse wipes what was to be released: see curator.refuse.
func (c *actions[T]) refuse(err error) (privacy.ReleasedVector, error) {
	clear(c.buf)
	c.out.N = 0
	return privacy.ReleasedVector{}, err
}
