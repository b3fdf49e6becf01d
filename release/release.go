// Package release is the curator: the only package that ever holds a reward. Rewards go in, clipped
// to their declared range; noisy sums come out, each through the ledger. No method of a Curator
// returns a reward. Begin with Real for people, and with Simulated for draws.
//
// # Slots
//
// Rewards wait in slots, one open slot an arm. What happens at a release depends on the mechanism:
//
//   - Laplace and Gaussian: the slot's noisy sum is released and the slot is emptied: a reward is
//     used once, and the arm's next reward opens a new slot.
//   - Exact: the running sum is released; the slot stays.
//   - Tree and Hybrid: the running sum is released with the noise of the nodes that make it up; the
//     slot stays, and so does each node's noise.
//   - KAry, SquareRoot and BLT: the same, with nodes that are also taken away, or with noise that
//     is correlated from reward to reward.
//   - Sparse: a question is asked about a group of slots while they fill, under one noisy
//     threshold. At the first yes the slots' noisy sums are released and the slots emptied; until
//     then only the answers are.
//
// So every reward is in one slot, slots are disjoint, and the ledger composes them in parallel.
//
// Rewards of vectors, in [−1,1], have curators of their own: an ActionCurator for a fixed set of
// actions, a FeatureCurator for whatever is played. What they release is a vector, charged once for
// all its coordinates.
//
// # Two curators
//
// Simulated adds fast floating-point noise from a run's stream: for simulated rewards only. Real
// keeps fixed-point integer sums and adds discrete noise, drawn exactly from a generator keyed by
// the operating system: for rewards that belong to people. The constructor alone decides between
// them; the slots, the tree and the hybrid are the same code.
//
// # What is assumed
//
// The declared range does not depend on the rewards. A batch's end depends on counts and on earlier
// releases, never on rewards in open slots. A curator has its ledger to itself: nobody else
// releases through it after the curator was built. A curator serves one goroutine at a time.
package release

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A Curator takes rewards in and lets noisy statistics out.
type Curator interface {
	// Add puts one reward into the arm's slot. Outside the declared range it is clipped. A real
	// reward is never refused for its value: what is no number counts as Lo, since a refusal, or a
	// count without it, would tell of it. A simulated one that is NaN is an error.
	Add(arm int, reward float64) error
	// AddSum puts n rewards with this sum into the arm's slot at once: for simulations whose law
	// lies in the declared range. A sum that n rewards of the range cannot have is an error. Of a
	// real reward, n = 1, it is Add.
	AddSum(arm, n int, sum float64) error
	// Release lets the slots of these arms out as the mechanism says, through the ledger, in this
	// order. The result holds until the next release.
	Release(arms []int) (privacy.Released, error)
	// Ask releases the arms' slots under a sparse mechanism if their statistic, with its noise,
	// is above this, in sums of rewards mapped to [0,1]. If not it releases nothing, without an
	// error, and the slots go on filling. Until there has been a yes every question must be
	// about the same arms.
	Ask(arms []int, above float64) (privacy.Released, error)
	// Forget empties every slot, unreleased, and starts anew under mechanism m: a new guess of the
	// horizon, a new tree.
	Forget(m privacy.Mechanism) error
	// Ledger has what every release has cost.
	Ledger() *privacy.Ledger
}

// A Config says what a curator curates.
type Config struct {
	Arms int // at least 1
	// Lo and Hi are the declared range of rewards, finite, Lo < Hi; both 0 means [0,1]. The
	// curator maps the range to [0,1].
	Lo, Hi float64
	// privacy.Exact, Laplace, Gaussian, Tree, Hybrid, Sparse, KAry, SquareRoot or BLT
	Mechanism privacy.Mechanism
	// Unclipped turns the clipping and the check of sums off, as some papers' experiments do. Then
	// there is no sensitivity, and every release goes into the ledger as unknown, which costs
	// infinity. For simulations only.
	Unclipped bool
	// Trust, if set, has the releases made by the protocol of [Chowdhury and Zhou 2023], so that
	// less has to be believed. The mechanism must be privacy.Laplace or Gaussian.
	Trust *Trust
	// Ledger is nil for a new one. In one that has entries, slots are numbered on from its last.
	Ledger *privacy.Ledger
}

// Simulated returns a curator for simulated rewards. Its noise is floating-point, from the run's
// stream s, and protects nobody.
func Simulated(cfg Config, s *noise.Fast) (Curator, error) {
	if s == nil {
		return nil, errors.New("curator: noise stream is missing, must be a run's stream")
	}
	if cfg.Trust != nil {
		return newDistributed(cfg, s, nil)
	}
	c, err := newSimulated(cfg, s)
	if err != nil {
		return nil, err // no typed nil
	}
	return c, nil
}

func newSimulated(cfg Config, s *noise.Fast) (*curator[float64], error) {
	c, err := newCurator(cfg, func(m privacy.Mechanism) (recipe[float64], error) { return fastPlan(m, s) })
	if err != nil {
		return nil, err
	}
	c.grid, c.step = 1, 1
	return c, nil
}

// A family is what becomes of a slot at a release.
type family int

const (
	running family = iota // stays, without noise
	once                  // is emptied
	tree
	hybrid
	sparse   // stays until a question about it is answered yes
	streamed // stays, with the noise of a stream
)

type number interface{ int64 | float64 }

// A stream is the noise of a slot's running sums in a counter that is neither a tree nor a hybrid,
// and a sampler draws that of one statistic or one node.
type (
	stream[T number]  = privacy.Stream[T]
	sampler[T number] = privacy.Sampler[T]
)

// A recipe is a mechanism made ready: what to draw and what to charge.
type recipe[T number] struct {
	family family
	noise  sampler[T]
	vector vectorSampler[T]  // instead, of all numbers of a release together
	charge privacy.Mechanism // with the noise really used
	tails  []privacy.Tail    // of the noise in a sum; of a hybrid, by number of finished segments
	most   int               // rewards a slot may hold
	fresh  func() stream[T]  // of streamed: a new slot's
	// questions is set for sparse; noise is then that of the sums after the yes.
	questions *questions[T]
}

// A slot holds rewards that belong together.
type slot[T number] struct {
	id  int
	n   int
	sum T
}

// curator is both curators: T is float64 in simulations, int64 for real rewards.
type curator[T number] struct {
	ledger *privacy.Ledger
	build  func(privacy.Mechanism) (recipe[T], error)

	// How rewards come in. A mapped reward y in [0,1] enters sums as T(y·grid + half), and sums
	// leave in multiples of step = 1/grid.
	lo, hi, perWidth float64
	grid, half, step float64
	tolerance        float64 // of a sum of n rewards, per reward, in units of the range
	unclipped        bool
	atOnce           int // largest n of AddSum

	recipe[T]
	slots    []slot[T]
	counters []counter[T] // of trees and hybrids
	dips     *dips        // of Repeat
	streams  []stream[T]  // of streamed
	next     int          // number of the slot that opens next
	account  privacy.Account

	one, many privacy.Values // of a release of one arm and of several, both on n and sum
	n         []int
	sum       []float64
	ids       []int
	marked    []bool
}

func newCurator[T number](cfg Config, build func(privacy.Mechanism) (recipe[T], error)) (*curator[T], error) {
	lo, hi := Range(cfg.Lo, cfg.Hi)
	width := hi - lo
	switch {
	case cfg.Arms < 1:
		return nil, fmt.Errorf("curator: arms is %d, must be at least 1", cfg.Arms)
	case math.IsNaN(lo) || math.IsInf(lo, 0):
		return nil, fmt.Errorf("curator: lo is %v, must be finite", lo)
	case math.IsNaN(hi) || math.IsInf(hi, 0):
		return nil, fmt.Errorf("curator: hi is %v, must be finite", hi)
	case lo >= hi:
		return nil, fmt.Errorf("curator: lo is %v and hi is %v, lo must be below hi", lo, hi)
	case math.IsInf(width, 0) || math.IsInf(1/width, 0):
		return nil, fmt.Errorf("curator: lo is %v and hi is %v, their difference must be a "+
			"normal number", lo, hi)
	}
	c := &curator[T]{
		ledger: cfg.Ledger, build: build, lo: lo, hi: hi, atOnce: math.MaxInt, perWidth: 1 / width,
		unclipped: cfg.Unclipped,
		// A sum of n doubles is off by some units in the last place of n·max(|lo|,|hi|).
		tolerance: 1e-9 * max(1, math.Abs(lo)/width, math.Abs(hi)/width),
		slots:     make([]slot[T], cfg.Arms),
		n:         make([]int, cfg.Arms), sum: make([]float64, cfg.Arms),
		ids: make([]int, cfg.Arms), marked: make([]bool, cfg.Arms),
	}
	if c.ledger == nil {
		c.ledger = privacy.NewLedger()
	}
	c.next = firstSlot(c.ledger)
	if err := c.Forget(cfg.Mechanism); err != nil {
		return nil, err
	}
	return c, nil
}

// Forget implements Curator.
func (c *curator[T]) Forget(m privacy.Mechanism) error {
	p, err := c.build(m)
	if err != nil {
		return fmt.Errorf("curator: %w", err)
	}
	if c.unclipped {
		p.charge = privacy.Unknown{Name: "unclipped " + m.Kind()}
	}
	c.recipe = p
	c.account = c.ledger.Account(p.charge)
	for a := range c.slots {
		c.slots[a] = slot[T]{id: c.open()}
	}
	c.one = privacy.Values{N: c.n[:1], Sum: c.sum[:1], Tail: p.tails[0]}
	c.counters = nil
	if p.family == tree || p.family == hybrid {
		c.counters = make([]counter[T], len(c.slots))
	}
	c.streams = nil
	if p.family == streamed {
		c.streams = make([]stream[T], len(c.slots))
		for a := range c.streams {
			c.streams[a] = p.fresh()
		}
	}
	return nil
}

// open numbers a slot.
func (c *curator[T]) open() int {
	c.next++
	return c.next - 1
}

// Ledger implements Curator.
func (c *curator[T]) Ledger() *privacy.Ledger { return c.ledger }

// Add implements Curator.
func (c *curator[T]) Add(arm int, reward float64) error {
	y := float64((reward - c.lo) * c.perWidth)
	if !c.unclipped {
		if math.IsNaN(reward) {
			if c.atOnce > 1 { // simulated
				return fmt.Errorf("curator: reward of arm %d is NaN, must be a number", arm)
			}
			y = 0
		}
		y = min(max(y, 0), 1)
	} else if math.IsNaN(y) || math.IsInf(y, 0) {
		return fmt.Errorf("curator: reward of arm %d is not finite, must be", arm)
	}
	return c.put(arm, 1, y)
}

// AddSum implements Curator.
func (c *curator[T]) AddSum(arm, n int, sum float64) error {
	k := float64(n)
	y := float64((sum - float64(k*c.lo)) * c.perWidth)
	if y >= 0 && y <= k && n <= c.atOnce {
		return c.put(arm, n, y)
	}
	return c.addOddSum(arm, n, sum, y)
}

// addOddSum lets sums in that are out of range by rounding only, or without clipping, and says what
// is wrong with the others.
func (c *curator[T]) addOddSum(arm, n int, sum, y float64) error {
	k := float64(n)
	slack := float64(k * c.tolerance)
	switch {
	case n < 0:
		return fmt.Errorf("curator: n of arm %d is %d, must not be negative", arm, n)
	case n > c.atOnce:
		return fmt.Errorf("curator: n of arm %d is %d, must be 1: real rewards are clipped one by one", arm, n)
	case n == 1 && c.atOnce == 1:
		return c.Add(arm, sum)
	case math.IsNaN(y) || math.IsInf(y, 0):
		return fmt.Errorf("curator: sum of %d rewards of arm %d is not finite, must be", n, arm)
	case c.unclipped:
		return c.put(arm, n, y)
	case y < -slack || y > k+slack:
		return fmt.Errorf("curator: sum of %d rewards of arm %d is out of range, must be from %v "+
			"to %v", n, arm, k*c.lo, k*c.hi)
	}
	return c.put(arm, n, min(max(y, 0), k))
}

// put lets n rewards with mapped sum y in.
func (c *curator[T]) put(arm, n int, y float64) error {
	if uint(arm) >= uint(len(c.slots)) || n > c.most-c.slots[arm].n {
		return c.noRoom(arm, n)
	}
	s := &c.slots[arm]
	s.n += n
	s.sum += T(float64(y*c.grid) + c.half)
	return nil
}

func (c *curator[T]) noRoom(arm, n int) error {
	if uint(arm) >= uint(len(c.slots)) {
		return fmt.Errorf("curator: arm is %d, must be from 0 to %d", arm, len(c.slots)-1)
	}
	return fmt.Errorf("curator: slot of arm %d has %d rewards and gets %d, must have at most %d",
		arm, c.slots[arm].n, n, c.most)
}

// Release implements Curator. If it fails nothing was released. Slots are as before, unless the
// ledger may have charged for the rewards (any error of the ledger but privacy.ErrBudget): then
// they have been used.
func (c *curator[T]) Release(arms []int) (privacy.Released, error) {
	if len(arms) != 1 {
		return c.releaseMany(arms)
	}
	// The hot path of policies that decide each round.
	arm := arms[0]
	if uint(arm) >= uint(len(c.slots)) || c.slots[arm].n == 0 {
		return privacy.Released{}, c.check(arms)
	}
	if err := c.fill(0, arm); err != nil {
		return c.refuse(err)
	}
	if c.family == hybrid {
		c.one.Tail = c.tail(c.n[0])
	}
	released, err := c.account.Release(c.slots[arm].id, &c.one)
	if c.family == once {
		c.settle(arm, err)
	}
	if err != nil {
		return c.refuse(fmt.Errorf("curator: %w", err))
	}
	return released, nil
}

// releaseMany is Release of several arms, or of none.
func (c *curator[T]) releaseMany(arms []int) (privacy.Released, error) {
	if err := c.check(arms); err != nil {
		return privacy.Released{}, err
	}
	c.many.N, c.many.Sum = c.n[:len(arms)], c.sum[:len(arms)]
	ids, longest := c.ids[:len(arms)], 0
	for i, a := range arms {
		if err := c.fill(i, a); err != nil {
			return c.refuse(err)
		}
		ids[i] = c.slots[a].id
		longest = max(longest, c.n[i])
	}
	c.many.Tail = c.tail(longest)
	released, err := c.ledger.ReleaseAll(ids, c.charge, &c.many)
	for _, a := range arms {
		c.settle(a, err)
	}
	if err != nil {
		return c.refuse(fmt.Errorf("curator: %w", err))
	}
	return released, nil
}

// refuse wipes what was to be released: whoever still holds an earlier Released looks at the same
// memory, and these values are not paid for.
func (c *curator[T]) refuse(err error) (privacy.Released, error) {
	clear(c.n)
	clear(c.sum)
	return privacy.Released{}, err
}

// fill writes the arm's count and noisy sum into entry i.
func (c *curator[T]) fill(i, arm int) error {
	s := &c.slots[arm]
	var x T
	var err error
	switch c.family {
	case tree:
		x, err = c.counters[arm].tree(uint64(s.n), c.noise)
	case hybrid:
		x, err = c.counters[arm].hybrid(uint64(s.n), c.noise)
	case streamed:
		x, err = c.streams[arm].At(uint64(s.n), c.noise)
	case once:
		x, err = c.noise.Draw(1)
	case sparse:
		return errAsk
	}
	if err != nil {
		return fmt.Errorf("curator: noise of arm %d: %w", arm, err)
	}
	c.n[i] = s.n
	c.sum[i] = float64(float64(s.sum+x) * c.step)
	return nil
}

// tail bounds the noise in sums of at most n rewards.
func (c *curator[T]) tail(n int) privacy.Tail {
	if c.family == hybrid {
		return c.tails[finished(n)]
	}
	return c.tails[0]
}

// settle empties the arm's slot if its rewards have been used: whenever the ledger may have charged
// for them, also where it then refused the values or failed to write them down.
func (c *curator[T]) settle(arm int, err error) {
	if c.family == once && !errors.Is(err, privacy.ErrBudget) {
		c.slots[arm] = slot[T]{id: c.open()}
	}
}

// check says whether these arms can be released together.
func (c *curator[T]) check(arms []int) error {
	if len(arms) == 0 {
		return errors.New("curator: release of no arms, must be at least one")
	}
	for i, a := range arms {
		switch {
		case uint(a) >= uint(len(c.slots)):
			return c.unmark(arms[:i], fmt.Errorf("curator: release of arm %d, must be from 0 to %d",
				a, len(c.slots)-1))
		case c.slots[a].n == 0:
			return c.unmark(arms[:i], fmt.Errorf("curator: release of arm %d, whose slot is empty", a))
		case c.marked[a]:
			return c.unmark(arms[:i], fmt.Errorf("curator: release of arm %d twice at once", a))
		}
		c.marked[a] = true
	}
	return c.unmark(arms, nil)
}

func (c *curator[T]) unmark(arms []int, err error) error {
	for _, a := range arms {
		c.marked[a] = false
	}
	return err
}

// read takes a mechanism apart: how its noise is drawn, what becomes of a slot, and how many rewards
// that may hold.
func read(m privacy.Mechanism) (d privacy.Draws, f family, most int, err error) {
	kinds := func() string {
		k := privacy.KindsOfSums()
		return strings.Join(k[:len(k)-1], ", ") + " or " + k[len(k)-1]
	}
	if m == nil {
		return d, 0, 0, errors.New("mechanism is missing, must be " + kinds())
	}
	d, ok := privacy.DrawsOf(m)
	if !ok || !d.Sum {
		return d, 0, 0, fmt.Errorf("mechanism is %q (%T), must be %s", m.Kind(), m, kinds())
	}
	most = math.MaxInt - 1
	if n := privacy.Longest(m); n > 0 {
		most = min(most, n)
	}
	return d, familyOf(m, d), most, m.Validate()
}

func familyOf(m privacy.Mechanism, d privacy.Draws) family {
	switch {
	case d.Once:
		return once
	case !m.Continual():
		return sparse
	case d.Law == "":
		return running
	case d.Float != nil:
		return streamed
	case d.Segments:
		return hybrid
	}
	return tree
}

// tailsOf are a plan's tails.
func tailsOf(m privacy.Mechanism) []privacy.Tail {
	switch m := m.(type) {
	case interface{ Tails() []privacy.Tail }:
		return m.Tails()
	case interface{ Tail() privacy.Tail }:
		return []privacy.Tail{m.Tail()}
	}
	return []privacy.Tail{{}}
}
