package release

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// TooFewError is the error of a release to which fewer users answered than were promised: errors.As
// finds it, and errors.Is finds ErrAnswers. What these arms' users had is gone, unreleased and
// unseen; play these arms as many rounds again and release again.
type TooFewError struct {
	Arms     []int
	Answers  int // of the first arm that had too few
	Promised int
	Err      error // what the secure computation said, if it was that which found out
}

func (e *TooFewError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("arm %d: %v: %d, must be at least %d", e.Arms[0], ErrAnswers, e.Answers, e.Promised)
}

// Is says that it is ErrAnswers.
func (e *TooFewError) Is(target error) bool { return target == ErrAnswers }

// distributed is the curator that makes each release by the protocol of [Chowdhury and Zhou 2023,
// Algorithm 1]. In a simulation it plays all parties. Rewards wait as they came, since g depends on
// how many there will be.
type distributed struct {
	ledger   *privacy.Ledger
	trust    Trust
	fast     *noise.Fast // of a simulation; else nil
	src      rand.Source
	summer   Summer
	perUser  bool
	calibr   *calibration
	releases int
	state    [32]byte // a hash chain over the releases
	next     int

	lo, hi, perWidth, tolerance float64
	slots                       []waiting
	messages                    []uint64
	sum                         []float64
	n, ids                      []int
	out                         privacy.Values
	marked                      []bool
}

// waiting is an open slot: rewards in [0,1] as they came, and how many of 0 and of 1 came at once.
type waiting struct {
	id       int
	invited  int
	answered bool // who does not answer is gone already
	bits     [2]int
	y        []float64
}

func (w *waiting) answers() int { return w.bits[0] + w.bits[1] + len(w.y) }

func newDistributed(cfg Config, fast *noise.Fast, src rand.Source) (Curator, error) {
	t := *cfg.Trust
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	if cfg.Unclipped {
		return nil, fmt.Errorf("curator: unclipped is true, must be false for trust %s: rewards "+
			"are encoded as integers from 0 to g", t.Model)
	}
	if fast == nil && t.Dropout != 0 {
		return nil, fmt.Errorf("curator: dropout is %v, must be 0 for real rewards: it is for "+
			"simulations", t.Dropout)
	}
	// Rewards come in as with the other curators.
	base, err := newCurator(cfg, func(privacy.Mechanism) (recipe[float64], error) {
		return recipe[float64]{tails: []privacy.Tail{{}}}, nil
	})
	if err != nil {
		return nil, err
	}
	k := cfg.Arms
	c := &distributed{ledger: base.ledger, trust: t, fast: fast, src: src, summer: t.Summer,
		perUser: t.PerUser || fast == nil || t.Summer != nil,
		next:    firstSlot(base.ledger), lo: base.lo, hi: base.hi, perWidth: base.perWidth,
		tolerance: base.tolerance,
		slots:     make([]waiting, k), sum: make([]float64, k), n: make([]int, k), ids: make([]int, k),
		marked: make([]bool, k)}
	if c.summer == nil {
		c.summer = PlainSum{}
	}
	if fast != nil {
		c.src = fast
	}
	return c, c.Forget(cfg.Mechanism)
}

// Forget implements Curator.
func (c *distributed) Forget(m privacy.Mechanism) error {
	calibr, err := newCalibration(c.trust, m)
	if err != nil {
		return fmt.Errorf("curator: %w", err)
	}
	c.calibr = calibr
	for a := range c.slots {
		c.empty(a)
	}
	return nil
}

// empty opens a new slot for the arm.
func (c *distributed) empty(arm int) {
	c.slots[arm] = waiting{id: c.next, y: c.slots[arm].y[:0]}
	c.next++
}

// Ledger implements Curator.
func (c *distributed) Ledger() *privacy.Ledger { return c.ledger }

// Add implements Curator.
func (c *distributed) Add(arm int, reward float64) error {
	if math.IsNaN(reward) {
		if c.fast != nil {
			return fmt.Errorf("curator: reward of arm %d is NaN, must be a number", arm)
		}
		reward = c.lo
	}
	if err := c.room(arm, 1); err != nil {
		return err
	}
	w := &c.slots[arm]
	switch y := min(max(float64((reward-c.lo)*c.perWidth), 0), 1); y {
	case 0:
		w.bits[0]++
	case 1:
		w.bits[1]++
	default:
		w.y = append(w.y, y)
	}
	w.invited++
	return nil
}

// AddSum implements Curator. Each reward is rounded at random, so their sum is enough only if they
// all are at an end of the range: of more than one reward the sum must be that of k of them at Hi
// and n − k at Lo.
func (c *distributed) AddSum(arm, n int, sum float64) error {
	if n == 1 {
		if y := float64((sum - c.lo) * c.perWidth); c.fast != nil &&
			!(y >= -c.tolerance && y <= 1+c.tolerance) {
			return fmt.Errorf("curator: sum of 1 reward of arm %d is out of range, must be from "+
				"%v to %v", arm, c.lo, c.hi)
		}
		return c.Add(arm, sum)
	}
	k := float64(n)
	y := float64((sum - float64(k*c.lo)) * c.perWidth)
	ones := math.Round(y)
	slack := float64(k * c.tolerance)
	switch {
	case n < 0:
		return fmt.Errorf("curator: n of arm %d is %d, must not be negative", arm, n)
	case c.fast == nil:
		return fmt.Errorf("curator: n of arm %d is %d, must be 1: real rewards are clipped one by one", arm, n)
	case math.IsNaN(y) || y < -slack || y > k+slack:
		return fmt.Errorf("curator: sum of %d rewards of arm %d is out of range, must be from %v "+
			"to %v", n, arm, k*c.lo, k*c.hi)
	case math.Abs(y-ones) > slack:
		return fmt.Errorf("curator: sum of %d rewards of arm %d must be that of rewards %v and "+
			"%v: add others one by one, as each is rounded", n, arm, c.lo, c.hi)
	}
	if err := c.room(arm, n); err != nil {
		return err
	}
	w := &c.slots[arm]
	w.bits[1] += int(ones)
	w.bits[0] += n - int(ones)
	w.invited += n
	return nil
}

func (c *distributed) room(arm, n int) error {
	if uint(arm) >= uint(len(c.slots)) {
		return fmt.Errorf("curator: arm is %d, must be from 0 to %d", arm, len(c.slots)-1)
	}
	w := &c.slots[arm]
	if w.answered {
		return fmt.Errorf("curator: slot of arm %d is closed: its users have answered, and it "+
			"waits for the other arms' release", arm)
	}
	if n > maxRewards-w.invited {
		return fmt.Errorf("curator: slot of arm %d has %d rewards and gets %d, must have at most %d",
			arm, w.invited, n, maxRewards)
	}
	return nil
}

// Ask implements Curator: it is an error.
func (c *distributed) Ask([]int, float64) (privacy.Released, error) {
	return privacy.Released{}, errAsk
}

// Release implements Curator. The mechanism is made for the largest of the batches, and its noise
// for the smallest promise. Where too few answered the error is an *TooFewError. A budget that does
// not allow the release is an error before any user sends anything.
func (c *distributed) Release(arms []int) (privacy.Released, error) {
	if err := c.check(arms); err != nil {
		return privacy.Released{}, err
	}
	invited, fewest := 0, math.MaxInt
	for i, a := range arms {
		invited, fewest = max(invited, c.slots[a].invited), min(fewest, c.slots[a].invited)
		c.ids[i] = c.slots[a].id
	}
	ids, call := c.ids[:len(arms)], float64(c.releases+1)
	m, err := c.calibr.mechanism(invited, c.trust.users(fewest), fewest,
		c.trust.P/(10*call*call*float64(len(arms))))
	if err != nil {
		return privacy.Released{}, fmt.Errorf("curator: %w", err)
	}
	if err := c.ledger.Allow(ids, m); err != nil {
		return privacy.Released{}, fmt.Errorf("curator: %w", err)
	}
	if c.trust.Dropout > 0 {
		if err := c.lose(arms, m); err != nil {
			return privacy.Released{}, err
		}
	}
	// from here on messages are on their way: another try is another computation, of its own number
	c.releases++
	c.out = privacy.Values{N: c.n[:len(arms)], Sum: c.sum[:len(arms)]}
	if at, shown, err := c.sums(arms, m); err != nil {
		clear(c.n)
		clear(c.sum)
		return privacy.Released{}, fmt.Errorf("curator: %w", c.abandon(arms, at, shown, m, err))
	}
	released, err := c.ledger.ReleaseAll(ids, m, &c.out)
	if c.trust.Summer != nil {
		c.remember(m, ids)
	}
	for _, a := range arms {
		c.empty(a)
	}
	if err != nil {
		clear(c.n)
		clear(c.sum)
		return privacy.Released{}, fmt.Errorf("curator: %w", err)
	}
	return released, nil
}

// remember adds what was released to the state.
func (c *distributed) remember(m privacy.Mechanism, ids []int) {
	h := sha256.New()
	h.Write(c.state[:])
	fmt.Fprintf(h, "%v\n", m)
	for i, n := range c.out.N {
		fmt.Fprintf(h, "%d %d %016x\n", ids[i], n, math.Float64bits(c.out.Sum[i]))
	}
	h.Sum(c.state[:0])
}

// abandon is what is left to do if the sum of arm number at could not be had. Sums before it are
// known to whoever runs S, and its own messages may be if shown: they are charged for, and neither
// released nor sent again with other noise. If users were missing, the batch is to be played again
// with new users for all arms.
func (c *distributed) abandon(arms []int, at int, shown bool, m privacy.Mechanism, err error) error {
	few := errors.Is(err, ErrAnswers)
	if w := &c.slots[arms[at]]; few {
		err = &TooFewError{Arms: slices.Clone(arms), Answers: w.answers(),
			Promised: c.trust.least(w.invited), Err: err}
	}
	for i, a := range arms {
		known := i < at || i == at && shown
		if known {
			// Release has asked for leave: an error of the ledger's own
			if e := c.ledger.Note(c.slots[a].id, m); e != nil {
				err = errors.Join(err, e)
			}
		}
		if known || few {
			c.empty(a)
		}
	}
	return err
}

// open says that a user's messages are seen by all, whatever S does.
func open(m privacy.Mechanism) bool {
	a, ok := m.(privacy.Aggregated)
	return ok && a.Trust == privacy.TrustLocal
}

func (c *distributed) check(arms []int) error {
	if len(arms) == 0 {
		return errors.New("curator: release of no arms, must be at least one")
	}
	defer clear(c.marked)
	for _, a := range arms {
		switch {
		case uint(a) >= uint(len(c.slots)):
			return fmt.Errorf("curator: release of arm %d, must be from 0 to %d", a, len(c.slots)-1)
		case c.slots[a].invited == 0:
			return fmt.Errorf("curator: release of arm %d, whose slot is empty", a)
		case c.marked[a]:
			return fmt.Errorf("curator: release of arm %d twice at once", a)
		}
		c.marked[a] = true
	}
	return nil
}

// lose takes away the rewards of users who do not answer: each with the same probability,
// whatever they have. Where too few are left nothing is opened; under local trust their messages
// have been seen all the same.
func (c *distributed) lose(arms []int, m privacy.Mechanism) error {
	var few *TooFewError
	for _, a := range arms {
		w := &c.slots[a]
		if !w.answered {
			w.answered = true
			for b, n := range w.bits {
				w.bits[b] -= c.fast.Binomial(n, c.trust.Dropout)
			}
			kept := w.y[:0]
			for _, y := range w.y {
				if !c.fast.Bernoulli(c.trust.Dropout) {
					kept = append(kept, y)
				}
			}
			w.y = kept
		}
		if promised := c.trust.least(w.invited); w.answers() < promised {
			if few == nil {
				few = &TooFewError{Answers: w.answers(), Promised: promised}
			}
			few.Arms = append(few.Arms, a)
		}
	}
	if few == nil {
		return nil
	}
	for _, a := range few.Arms {
		if open(m) && c.slots[a].answers() > 0 {
			if err := c.ledger.Note(c.slots[a].id, m); err != nil {
				return fmt.Errorf("curator: %w", err)
			}
		}
		c.empty(a)
	}
	return fmt.Errorf("curator: %w", few)
}

// sums fills in what is released: the noisy sums, how many are in them, and the largest tail. With
// an error it says at which arm, and whether that one's messages may have been shown: S shows none
// of too few, and what it shows when it fails in another way is not known.
func (c *distributed) sums(arms []int, m privacy.Mechanism) (at int, shown bool, err error) {
	modulus, users, _, err := ringOf(m)
	if err != nil {
		return 0, false, err
	}
	var r *Randomizer
	if c.perUser {
		if r, err = newRandomizer(m, c.src, c.fast); err != nil {
			return 0, false, err
		}
	}
	analyser, err := newAnalyser(m, c.src, c.fast)
	if err != nil {
		return 0, false, err
	}
	tails := m.(interface{ TailOf(int) privacy.Tail })
	for i, a := range arms {
		w := &c.slots[a]
		answers := w.answers()
		var total uint64
		if c.perUser {
			if err := c.encode(r, w); err != nil {
				return i, false, err
			}
			total, answers, err = c.protocol(r, w, Sum{Batch: c.releases - 1, Arm: a, Mechanism: m,
				Modulus: modulus, Grid: uint64(analyser.g), Users: users, Invited: w.invited, State: c.state})
			if err != nil {
				return i, !errors.Is(err, ErrAnswers) || open(m), err
			}
		} else {
			total = c.total(m, w, modulus)
		}
		if c.n[i], c.sum[i] = answers, 0; answers > 0 {
			if c.sum[i], err = analyser.read(total, answers); err != nil {
				return i, true, err
			}
		}
		t := tails.TailOf(answers)
		c.out.Tail = privacy.Tail{Sigma: max(c.out.Tail.Sigma, t.Sigma), H: max(c.out.Tail.H, t.H),
			Log: max(c.out.Tail.Log, t.Log)}
	}
	return 0, false, nil
}

// encode has every user's messages drawn.
func (c *distributed) encode(r *Randomizer, w *waiting) error {
	var err error
	c.messages = c.messages[:0]
	add := func(y float64) {
		if err == nil {
			c.messages, err = r.messages(c.messages, y)
		}
	}
	for b, n := range w.bits {
		for range n {
			add(float64(b))
		}
	}
	for _, y := range w.y {
		add(y)
	}
	return err
}

// protocol has S add the messages up.
func (c *distributed) protocol(r *Randomizer, w *waiting, s Sum) (uint64, int, error) {
	if r.inner.Trust == privacy.TrustTwoServer {
		return c.twoServers(r, s)
	}
	if r.count == nil && r.shares == 1 {
		return c.summer.Sum(s, c.messages)
	}
	// A shuffler shows messages, not users, and its users are counted apart.
	users := w.answers()
	s.Users = min(s.Users, 1)
	if len(c.messages) == 0 {
		return 0, users, nil
	}
	total, _, err := c.summer.Sum(s, c.messages)
	return total, users, err
}

// twoServers is the sum with both servers' noises, whoever adds them.
func (c *distributed) twoServers(r *Randomizer, s Sum) (uint64, int, error) {
	var err error
	if c.fast != nil {
		s.Noise = fastShare(r.inner, c.fast)
	} else if s.Noise, err = exactShare(r.inner, c.src); err != nil {
		return 0, 0, err
	}
	total, answers, err := c.summer.Sum(s, c.messages)
	if _, adds := c.summer.(NoiseAdder); adds || err != nil {
		return total, answers, err
	}
	for range 2 {
		z, err := s.Noise()
		if err != nil {
			return 0, 0, err
		}
		total = addMod(total, intoRing(z, s.Modulus), s.Modulus)
	}
	return total, answers, nil
}

// total is the sum of all messages in the ring, in law, with the noise drawn at once: per-user
// draws add up to it.
func (c *distributed) total(m privacy.Mechanism, w *waiting, modulus uint64) uint64 {
	inner, aggregated := innerOf(m)
	if !aggregated {
		return c.totalCount(m.(privacy.ShuffledCount), w)
	}
	x := int64(w.bits[1]) * inner.G
	for _, y := range w.y {
		x += round(y, inner.G, c.src)
	}
	switch inner.Trust {
	case privacy.TrustCentral: // the analyser adds it
	case privacy.TrustTwoServer:
		x += c.totalNoise(inner, 2)
	default:
		x += c.totalNoise(inner, w.answers())
	}
	return intoRing(x, modulus)
}

// sameLaw is the ξ below which a sum of discrete Gaussians is drawn as one: no probability is off
// by a larger factor than e^ξ.
const sameLaw = 1e-9

// totalNoise is the sum of so many users' noises. Discrete Laplaces and Pólya differences are
// differences of negative binomial variates, whose shapes add up; Skellam variances add up.
// Discrete Gaussians do not quite: they are drawn one by one unless nobody could tell.
func (c *distributed) totalNoise(m privacy.Aggregated, answers int) int64 {
	x, n := float64(m.Num)/float64(m.Den), float64(answers)
	switch m.Noise {
	case privacy.NoisePolya:
		n /= float64(m.Users)
		fallthrough
	case privacy.NoiseLaplace:
		if n == 1 {
			return c.fast.DiscreteLaplace(x)
		}
		z := c.fast.NegativeBinomial(n, x)
		return z - c.fast.NegativeBinomial(n, x)
	case privacy.NoiseSkellam:
		return c.fast.Skellam(float64(n * x))
	}
	if answers == 1 || x >= 0.25 && privacy.GaussianSumXi(x, answers) <= sameLaw {
		return c.fast.DiscreteGaussian(math.Sqrt(float64(n * x)))
	}
	z, sigma := int64(0), math.Sqrt(x)
	for range answers {
		z += c.fast.DiscreteGaussian(sigma)
	}
	return z
}

// totalCount is the difference of "+1" and "−1" messages: the pairs cancel, blank users' bits are
// missing, and the shares add up to negative binomial variates.
func (c *distributed) totalCount(m privacy.ShuffledCount, w *waiting) uint64 {
	ones := w.bits[1]
	for _, y := range w.y {
		ones += int(round(y, 1, c.src))
	}
	ones -= c.fast.Binomial(ones, m.Blank())
	r, scale := float64(w.answers())/float64(m.Users), float64(m.Num)/float64(m.Den)
	var z int64
	if r == 1 {
		z = c.fast.DiscreteLaplace(scale)
	} else {
		z = c.fast.NegativeBinomial(r, scale)
		z -= c.fast.NegativeBinomial(r, scale)
	}
	return intoRing(int64(ones)+z, countRing)
}
