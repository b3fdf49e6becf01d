package release

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// ErrMessage is matched by the error for a message that is no element of the ring.
var ErrMessage = errors.New("message out of range")

// ErrAnswers is matched by the error for a batch that fewer users answered than were promised.
// Their noise would be too small, so nothing is released.
var ErrAnswers = errors.New("too few users answered")

// A Sum is one secure computation: of one arm's batch, or of one user's group.
type Sum struct {
	// number of the release of this curator, from 0; one that failed has a number too, so that no
	// two computations of an arm share one
	Batch     int
	Arm       int
	Mechanism privacy.Mechanism // with its integers: what every user must have been told
	Modulus   uint64            // m: messages are from 0 to m−1
	Grid      uint64            // g: a message counts in units of 1/g
	Users     int               // how many honest messages must be in the sum for it to be opened
	// how many users were asked, of whom some may not have answered; 0 is as many as
	// there are messages
	Invited int
	// Noise draws one whole noise of the mechanism, for servers that add their own: see NoiseAdder.
	Noise func() (int64, error)
	// State is a hash of all that this curator has released before, and so of the state of its
	// policy.
	State [32]byte
}

// A Summer is S of [Chowdhury and Zhou 2023, Algorithm 1], the secure computation: it finds the sum
// of messages modulo m and shows nothing else. How many of them are in it may be fewer than there
// are, where users vanish on the way. One that talks to a network is made with the run's context.
type Summer interface {
	Sum(s Sum, messages []uint64) (total uint64, answers int, err error)
}

// A NoiseAdder is a Summer of two servers that each add a whole noise, Sum.Noise, to their share of
// the sum (privacy.TrustTwoServer). Under another Summer the curator adds both.
type NoiseAdder interface {
	Summer
	AddsNoise()
}

// PlainSum is the Summer that whoever runs it must be believed: it adds up what it sees, exactly.
type PlainSum struct{}

// Sum adds messages up modulo s.Modulus. A message outside is an error that matches ErrMessage,
// fewer than s.Users one that matches ErrAnswers.
func (PlainSum) Sum(s Sum, messages []uint64) (uint64, int, error) {
	if len(messages) < s.Users || len(messages) == 0 {
		return 0, 0, fmt.Errorf("sum of batch %d, arm %d: %w: %d, must be at least %d", s.Batch,
			s.Arm, ErrAnswers, len(messages), max(1, s.Users))
	}
	var total uint64
	for i, x := range messages {
		if x >= s.Modulus {
			return 0, 0, fmt.Errorf("sum of batch %d, arm %d: %w: message %d must be below the "+
				"modulus, %d", s.Batch, s.Arm, ErrMessage, i, s.Modulus)
		}
		total = addMod(total, x, s.Modulus)
	}
	return total, len(messages), nil
}

// addMod is a + b modulo m, for a, b < m.
func addMod(a, b, m uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	_, less := bits.Sub64(sum, m, 0)
	return sum - m&(less&^carry-1)
}

// intoRing is x modulo m, m ≤ 2^63. It has no branch by what x is, and no division: a client's noise would show in
// its time.
func intoRing(x int64, m uint64) uint64 {
	negative := uint64(x >> 63) // all ones, or 0
	r := (uint64(x) ^ negative) - negative
	if r >= m { // of noise with probability 2^-64
		r %= m
	}
	return addMod(r^(r^(m-r))&negative, 0, m)
}

// round is [Chowdhury and Zhou 2023, Algorithm 1]'s encoder: y·g rounded up with the probability of
// its fraction, else down. So its mean is y·g, and no two rewards differ by more than g. y in [0,1]
// is taken as a multiple of 2^-53; all after that is in integers.
func round(y float64, g int64, src rand.Source) int64 {
	const unit = 1 << 53
	hi, lo := bits.Mul64(uint64(math.RoundToEven(y*unit)), uint64(g))
	whole, rest := int64(hi<<11|lo>>53), lo&(unit-1)
	if rest != 0 && src.Uint64()>>11 < rest {
		whole++
	}
	return whole
}

// countRing is the ring of shuffled counts, so large that nothing wraps around: "+1" is 1 and
// "−1" is countRing−1.
const countRing = 1 << 63

// ringOf are the modulus of a mechanism's messages, and how many users must answer.
func ringOf(m privacy.Mechanism) (modulus uint64, users, invited int, err error) {
	switch m := m.(type) {
	case privacy.Aggregated:
		return uint64(m.Modulus), m.Users, m.Invited, m.Validate()
	case privacy.SplitMix:
		return uint64(m.Inner.Modulus), m.Inner.Users, m.Inner.Invited, m.Validate()
	case privacy.Clones:
		return uint64(m.Inner.Modulus), m.Inner.Users, m.Inner.Invited, m.Validate()
	case privacy.ShuffledCount:
		return countRing, m.Users, m.Invited, m.Validate()
	case nil:
		return 0, 0, 0, errors.New("protocol: mechanism is missing, must be aggregated, " +
			"split-mix, clones or shuffled-count")
	}
	return 0, 0, 0, fmt.Errorf("protocol: mechanism is %q (%T), must be aggregated, split-mix, "+
		"clones or shuffled-count", m.Kind(), m)
}

// innerOf is the Aggregated that a mechanism is made of; a shuffled count has none.
func innerOf(m privacy.Mechanism) (privacy.Aggregated, bool) {
	switch m := m.(type) {
	case privacy.Aggregated:
		return m, true
	case privacy.SplitMix:
		return m.Inner, true
	case privacy.Clones:
		return m.Inner, true
	}
	return privacy.Aggregated{}, false
}

// A partyNoise draws one party's noise.
type partyNoise func() (int64, error)

// Draw implements sampler.
func (n partyNoise) Draw(int) (int64, error) { return n() }

// fastShare draws a party's noise with a stream's fast samplers.
func fastShare(m privacy.Aggregated, s *noise.Fast) partyNoise {
	x := float64(m.Num) / float64(m.Den)
	switch {
	case m.Num == 0:
		return func() (int64, error) { return 0, nil }
	case m.Noise == privacy.NoiseLaplace:
		return func() (int64, error) { return s.DiscreteLaplace(x), nil }
	case m.Noise == privacy.NoisePolya:
		r := 1 / float64(m.Users)
		return func() (int64, error) { return s.PolyaDifference(r, x), nil }
	case m.Noise == privacy.NoiseSkellam:
		return func() (int64, error) { return s.Skellam(x), nil }
	}
	sigma := math.Sqrt(x)
	return func() (int64, error) { return s.DiscreteGaussian(sigma), nil }
}

// exactShare draws a party's noise exactly, from src's bits.
func exactShare(m privacy.Aggregated, src rand.Source) (partyNoise, error) {
	type law interface {
		Draw(rand.Source) (int64, error)
	}
	var l law
	var err error
	switch {
	case m.Num == 0:
		return func() (int64, error) { return 0, nil }, nil
	case m.Noise == privacy.NoiseLaplace:
		l, err = noise.NewDiscreteLaplace(m.Num, m.Den)
	case m.Noise == privacy.NoisePolya:
		l, err = noise.NewPolyaDifference(uint64(m.Users), m.Num, m.Den)
	case m.Noise == privacy.NoiseSkellam:
		l, err = noise.NewSkellam(m.Num, m.Den)
	default:
		l, err = noise.NewDiscreteGaussianVariance(m.Num, m.Den)
	}
	if err != nil {
		return nil, err
	}
	return func() (int64, error) { return l.Draw(src) }, nil
}

// A Randomizer is R of [Chowdhury and Zhou 2023, Algorithm 1], the user's side: what turns one
// reward into messages that may leave the user's device. It is for one batch, and for any number of
// its users, who may be goroutines: no two of them draw the same noise.
type Randomizer struct {
	mu        sync.Mutex // on all that draws: two at a time would get the same bits
	mechanism privacy.Mechanism
	modulus   uint64
	src       rand.Source
	inner     privacy.Aggregated
	noise     partyNoise // nil: the analyser adds it
	shares    int        // of split and mix; else 1
	count     *shuffledShare
}

// shuffledShare is what a user of a shuffled count draws from.
type shuffledShare struct {
	noise partyNoise
	blank uint64
	pairs []uint64 // cumulative
}

// NewRandomizer is the user's side of m: privacy.Aggregated, SplitMix, Clones or ShuffledCount.
// Noise is exact, from a ChaCha8 generator keyed by the operating system.
func NewRandomizer(m privacy.Mechanism) (*Randomizer, error) {
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("randomizer: %w", err)
	}
	return newRandomizer(m, src, nil)
}

// newRandomizer draws fast noise if there is a stream, else exact noise from src.
func newRandomizer(m privacy.Mechanism, src rand.Source, fast *noise.Fast) (*Randomizer, error) {
	modulus, users, _, err := ringOf(m)
	if err != nil {
		return nil, fmt.Errorf("randomizer: %w", err)
	}
	r := &Randomizer{mechanism: m, modulus: modulus, src: src, shares: 1}
	if fast != nil {
		r.src = fast
	}
	if c, ok := m.(privacy.ShuffledCount); ok {
		cover, err := c.Cover()
		if err != nil {
			return nil, fmt.Errorf("randomizer: %w", err)
		}
		r.count = &shuffledShare{blank: cover.Blank}
		sum := uint64(0)
		for _, w := range cover.Pairs {
			sum += w
			r.count.pairs = append(r.count.pairs, sum)
		}
		if fast != nil {
			part, scale := 1/float64(users), float64(c.Num)/float64(c.Den)
			r.count.noise = func() (int64, error) { return fast.NegativeBinomial(part, scale), nil }
			return r, nil
		}
		law, err := noise.NewNegativeBinomial(uint64(users), c.Num, c.Den)
		if err != nil {
			return nil, fmt.Errorf("randomizer: %w", err)
		}
		r.count.noise = func() (int64, error) { return law.Draw(src) }
		return r, nil
	}
	r.inner, _ = innerOf(m)
	if s, ok := m.(privacy.SplitMix); ok {
		r.shares = s.Shares
	}
	if r.inner.Trust == privacy.TrustCentral || r.inner.Trust == privacy.TrustTwoServer {
		return r, nil
	}
	if fast != nil {
		r.noise = fastShare(r.inner, fast)
		return r, nil
	}
	if r.noise, err = exactShare(r.inner, src); err != nil {
		return nil, fmt.Errorf("randomizer: %w", err)
	}
	return r, nil
}

// Messages appends to dst what one user sends for a reward in [0,1]; one outside is clipped, and
// what is no number counts as 0: who sends nothing tells something. It is one element of the ring
// for Aggregated and Clones, several that add up to it for SplitMix, and for ShuffledCount any
// number of 1 and of Modulus−1, for "+1" and "−1". A user must not send for one reward twice.
func (r *Randomizer) Messages(dst []uint64, reward float64) ([]uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages(dst, reward)
}

// messages is Messages for a curator, which has the Randomizer to itself.
func (r *Randomizer) messages(dst []uint64, reward float64) ([]uint64, error) {
	y := 0.0
	if reward > 0 {
		y = min(reward, 1)
	}
	if r.count != nil {
		return r.countMessages(dst, y)
	}
	v := uint64(round(y, r.inner.G, r.src)) // at most g, which is below m
	if r.noise != nil {
		z, err := r.noise()
		if err != nil {
			return dst, fmt.Errorf("randomizer: %w", err)
		}
		v = addMod(v, intoRing(z, r.modulus), r.modulus)
	}
	for range r.shares - 1 {
		u := uniformBelow(r.src, r.modulus)
		dst = append(dst, u)
		v = addMod(v, (r.modulus-u)%r.modulus, r.modulus)
	}
	return append(dst, v), nil
}

// uniformBelow is uniform below m, by rejection.
func uniformBelow(src rand.Source, m uint64) uint64 {
	uneven := -m % m
	for {
		if hi, lo := bits.Mul64(src.Uint64(), m); lo >= uneven {
			return hi
		}
	}
}

// countMessages is the user of a privacy.ShuffledCount.
func (r *Randomizer) countMessages(dst []uint64, y float64) ([]uint64, error) {
	bit := round(y, 1, r.src)
	plus, err := r.count.noise()
	if err != nil {
		return dst, fmt.Errorf("randomizer: %w", err)
	}
	minus, err := r.count.noise()
	if err != nil {
		return dst, fmt.Errorf("randomizer: %w", err)
	}
	if r.src.Uint64()>>2 >= r.count.blank {
		u, c := r.src.Uint64()>>2, 0
		for c < len(r.count.pairs)-1 && u >= r.count.pairs[c] {
			c++
		}
		plus, minus = plus+int64(c)+bit, minus+int64(c)
	}
	for range plus {
		dst = append(dst, 1)
	}
	for range minus {
		dst = append(dst, countRing-1)
	}
	return dst, nil
}

// Modulus is m: messages are from 0 to m−1.
func (r *Randomizer) Modulus() uint64 { return r.modulus }

// An Analyser is A of [Chowdhury and Zhou 2023, Algorithm 1]: it reads what S shows. Under central
// trust it adds the noise. Goroutines may share it, if nobody else uses its ledger: no two of them
// draw the same noise.
type Analyser struct {
	mu        sync.Mutex // on the source of noise, and on the ledger
	mechanism privacy.Mechanism
	modulus   uint64
	users     int
	invited   int
	g, tau    int64
	noise     partyNoise // central trust only
	ledger    *privacy.Ledger
}

// NewAnalyser reads the sums of m, as NewRandomizer has it, and charges the ledger for them; noise,
// under central trust, is exact and from the operating system's bits.
func NewAnalyser(m privacy.Mechanism, ledger *privacy.Ledger) (*Analyser, error) {
	if ledger == nil {
		return nil, errors.New("analyser: ledger is missing: what a sum tells is to be charged")
	}
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("analyser: %w", err)
	}
	a, err := newAnalyser(m, src, nil)
	if err == nil {
		a.ledger = ledger
	}
	return a, err
}

func newAnalyser(m privacy.Mechanism, src rand.Source, fast *noise.Fast) (*Analyser, error) {
	modulus, users, invited, err := ringOf(m)
	if err != nil {
		return nil, fmt.Errorf("analyser: %w", err)
	}
	a := &Analyser{mechanism: m, modulus: modulus, users: users, invited: invited, g: 1, tau: countRing / 4}
	inner, ok := innerOf(m)
	if !ok {
		return a, nil
	}
	a.g, a.tau = inner.G, inner.Tau
	if inner.Trust == privacy.TrustCentral {
		if fast != nil {
			a.noise = fastShare(inner, fast)
		} else if a.noise, err = exactShare(inner, src); err != nil {
			return nil, fmt.Errorf("analyser: %w", err)
		}
	}
	return a, nil
}

// Read releases the noisy sum of the rewards of so many answers, in rewards: the total over g,
// where a total beyond n·g + τ stands for a negative number ([Chowdhury and Zhou 2023, Algorithm
// 1]'s correction of underflow). The slot is charged, each time: a slot is one batch, whose rewards
// are in no other. A release that the ledger's cap does not allow matches privacy.ErrBudget, and is
// not charged: before users send anything, whoever counts on the cap asks the ledger
// (privacy.Ledger.Allow), since what they send is seen.
//
// A total that is no element of the ring is an error that matches ErrMessage, and a number of
// answers that was not promised one that matches ErrAnswers: nothing is released. But whoever has
// the total has seen it, unless trust is central, so it is charged whatever the cap
// (privacy.Ledger.Note), with less noise than was promised as what has no bound.
func (a *Analyser) Read(slot int, total uint64, answers int) (privacy.Released, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.ledger.Allow([]int{slot}, a.mechanism); err != nil {
		return privacy.Released{}, fmt.Errorf("analyser: %w", err)
	}
	sum, err := a.read(total, answers)
	if err != nil {
		return privacy.Released{}, a.seen(slot, answers, err)
	}
	tail := a.mechanism.(interface{ TailOf(int) privacy.Tail }).TailOf(answers)
	r, err := a.ledger.ReleaseAll([]int{slot}, a.mechanism,
		&privacy.Values{N: []int{answers}, Sum: []float64{sum}, Tail: tail})
	if err != nil {
		return r, fmt.Errorf("analyser: %w", err)
	}
	return r, nil
}

// seen charges for a total that is not released, and has been seen.
func (a *Analyser) seen(slot, answers int, err error) error {
	if inner, ok := innerOf(a.mechanism); ok && inner.Trust == privacy.TrustCentral {
		return err
	}
	m := a.mechanism
	if answers < a.users {
		m = nil
	}
	if e := a.ledger.Note(slot, m); e != nil && !errors.Is(err, privacy.ErrBudget) {
		err = errors.Join(err, e)
	}
	return err
}

func (a *Analyser) read(total uint64, answers int) (float64, error) {
	if total >= a.modulus {
		return 0, fmt.Errorf("analyser: %w: total must be below the modulus, %d", ErrMessage, a.modulus)
	}
	if answers < a.users {
		return 0, fmt.Errorf("analyser: %w: %d, must be at least %d", ErrAnswers, answers, a.users)
	}
	if answers > a.invited {
		return 0, fmt.Errorf("analyser: %d users answered, must be at most the %d that were invited",
			answers, a.invited)
	}
	if a.noise != nil {
		z, err := a.noise()
		if err != nil {
			return 0, fmt.Errorf("analyser: %w", err)
		}
		total = addMod(total, intoRing(z, a.modulus), a.modulus)
	}
	return float64(a.decode(total, answers)) / float64(a.g), nil
}

// decode is the number that stands for itself up to n·g + τ, and for itself minus m above.
func (a *Analyser) decode(total uint64, answers int) int64 {
	if total > uint64(int64(answers)*a.g+a.tau) { // at most invited·g + τ < 2^63
		return -int64(a.modulus - total)
	}
	return int64(total)
}
