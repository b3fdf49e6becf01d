package privacy

import (
	"errors"
	"fmt"
	"math"
)

// KAry releases every running sum of a slot of at most Horizon rewards through the k-ary tree
// with negative digits (Andersson, Pagh, Steiner and Torkamani 2025), k = Base odd, with
// Lap(Scale) on each node.
//
// A node of level j holds k^j rewards, those of (m·k^j, (m+1)·k^j]. The sum of the first t is
// written with the balanced digits of t, −(k−1)/2 to (k−1)/2: a positive digit adds as many nodes
// of its level, a negative one takes as many away again. A reward is in one node of each of the h
// levels, h the smallest with (k^h−1)/2 ≥ Horizon, so that its loss is h Laplace releases:
// h/Scale-DP. It may be that the rewards are chosen after the releases before them. A release
// before a reward has as many of the reward's nodes with a plus as with a minus (t = 2 in base 3 is
// (0,3] less (2,3], both with reward 3), a release after it one more with a plus. So moving the
// noise of all its nodes by the change of the reward leaves every release as it was, earlier ones
// too, with a density that is at most e^{h/Scale} apart.
//
// At Horizon 10⁶ and ε = 1 the binary tree has mean variance 7908; the 19-ary one has 1143.
type KAry struct {
	Scale   float64
	Base    int
	Horizon int
}

// maxBase is the largest base of KAry.
const maxBase = 1023

func (KAry) Kind() string    { return "kary" }
func (KAry) Continual() bool { return true }

// Validate accepts 0 ≤ Scale < ∞, an odd Base from 3 to maxBase and Horizon ≥ 1.
func (m KAry) Validate() error {
	var base error
	if m.Base < 3 || m.Base > maxBase || m.Base%2 == 0 {
		base = fmt.Errorf("mechanism kary: base is %d, must be odd, from 3 to %d", m.Base, maxBase)
	}
	return errors.Join(scale("kary", "scale", m.Scale), base, checkHorizon("kary", m.Horizon, math.MaxInt))
}

// Loss is that of one Laplace release a level.
func (m KAry) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return laplaceLevels(m.Scale, m.Levels())
}

// Levels is the number of nodes that a reward is in: the smallest h with (Base^h−1)/2 ≥ Horizon.
func (m KAry) Levels() int {
	k, half := uint64(m.Base), uint64(m.Base/2)
	h := 0
	for reach := uint64(0); reach < uint64(m.Horizon); h++ { // reach is (k^h−1)/2
		if reach > (math.MaxUint64-half)/k {
			return h + 1
		}
		reach = reach*k + half
	}
	return h
}

// Nodes is how many nodes the sum of the first t rewards is made of: the sum of the absolute values
// of t's balanced digits.
func (m KAry) Nodes(t int) int {
	k, half := uint64(m.Base), uint64(m.Base/2)
	sum := 0
	for u := uint64(t); u > 0; {
		d := int((u+half)%k) - int(half)
		u = (u + half) / k
		sum += max(d, -d)
	}
	return sum
}

// MaxNodes is the most nodes that any of the first Horizon sums is made of.
func (m KAry) MaxNodes() int {
	k, half, h := m.Base, m.Base/2, m.Levels()
	digits := make([]int, h)
	for j, u := 0, uint64(m.Horizon); j < h; j++ {
		digits[j] = int((u+uint64(half))%uint64(k)) - half
		u = (u + uint64(half)) / uint64(k)
	}
	// Balanced numbers are ordered as their digits are, the highest first. So a t below Horizon has
	// a highest digit in which it differs, and is smaller there; the digits below are free.
	best, above, leading := 0, 0, true
	for j := h - 1; j >= 0; j-- {
		d := digits[j]
		free := j * half
		if leading {
			if d > 0 {
				best = max(best, d-1+free)
			}
		} else if d > -half {
			best = max(best, above+max(half, d-1)+free)
		}
		above += max(d, -d)
		leading = leading && d == 0
	}
	return max(best, above)
}

// variance is that of the noise in the sum of the first t rewards.
func (m KAry) variance(t int) float64 { return 2 * float64(m.Scale*m.Scale) * float64(m.Nodes(t)) }

// MaxVariance is the largest variance of the noise in a sum.
func (m KAry) MaxVariance() float64 { return 2 * float64(m.Scale*m.Scale) * float64(m.MaxNodes()) }

// MeanVariance is the variance of the noise in a sum, on average over the first Horizon.
func (m KAry) MeanVariance() float64 {
	k, half := uint64(m.Base), uint64(m.Base/2)
	// Digits of level j go 0, 1, …, half, −half, …, −1 and again, each for k^j successive t, but
	// that 0 comes with only its last (k^j+1)/2 at first, t = 0 among them.
	below := func(q uint64) float64 { // Σ of the first q absolute digits
		r := q % k
		part := r * (r - min(r, 1)) / 2
		if r > half+1 { // r−1 > half: Σ_{i≤half} i + Σ_{half<i<r} (k−i)
			s := k - r + 1 // the last one
			part = half*(half+1)/2 + (half+s)*(half-s+1)/2
		}
		return float64(float64(q/k)*float64(half*(half+1))) + float64(part)
	}
	digit := func(q uint64) float64 {
		r := q % k
		return float64(min(r, k-r))
	}
	sum, width := 0.0, uint64(1)
	for range m.Levels() {
		u := uint64(m.Horizon) + (width-1)/2 // t+(k^j−1)/2 at the last t
		q := u / width
		sum += float64(below(q)*float64(width)) + float64(digit(q)*float64(u%width+1))
		width *= k
	}
	return 2 * float64(m.Scale*m.Scale) * sum / float64(m.Horizon)
}

// Tail of the noise in any running sum, which is at most MaxNodes Laplaces: see Tree.Tail.
func (m KAry) Tail() Tail {
	return Tail{Sigma: m.Scale * math.Sqrt(2*float64(m.MaxNodes())), H: m.Scale}
}

// BestBase is the base from 3 to 255 at which the ε-DP k-ary tree of this horizon has the least
// cost, such as KAry.MaxVariance or KAry.MeanVariance. The cost is asked about trees with ε = 1.
func BestBase(horizon int, cost func(KAry) float64) int {
	best, least := 3, math.Inf(1)
	for k := 3; k <= 255; k += 2 {
		m := NewKAry(1, k, horizon)
		if c := cost(m); c < least {
			best, least = k, c
		}
	}
	return best
}

// NewKAry is the tree of this base that is epsilon-DP: Scale is Levels/ε.
func NewKAry(epsilon float64, base, horizon int) KAry {
	m := KAry{Base: base, Horizon: horizon}
	if m.Validate() == nil {
		m.Scale = float64(m.Levels()) / epsilon
	}
	return m
}

func (m KAry) withScale(x float64) Mechanism { m.Scale = x; return m }

func (m KAry) draws() Draws {
	most := 0
	if m.Validate() == nil {
		most = m.MaxNodes()
	}
	return Draws{Law: NoiseLaplace, Scale: m.Scale, Most: most,
		Float:   func() Stream[float64] { return newKAry[float64](m) },
		Whole:   func() Stream[int64] { return newKAry[int64](m) },
		Weights: func(to []int, t int) []int { return ones(to, m.Nodes(t)) },
		// A node of k^j rewards is in sight between t−k^j and t, at whichever end its digit is.
		Shows: func(to []Shown, t int) []Shown {
			digit := func(x int) int { // the lowest balanced one
				return (x+m.Base/2)%m.Base - m.Base/2
			}
			for size := 1; size <= t && t%size == 0; size *= m.Base {
				if digit(t/size) > 0 || digit((t-size)/size) < 0 {
					to = append(to, Shown{t - size, 1})
				}
			}
			return to
		}}
}

func (m KAry) facts() facts { return facts{sum: true, longest: m.Horizon} }
func (m KAry) entry() Entry { return Entry{Sensitivity: 1, Scale: m.Scale} }
func (m KAry) String() string {
	return fmt.Sprintf("kary(scale=%s,base=%d,horizon=%d)", number(m.Scale), m.Base, m.Horizon)
}

func (m *KAry) fields() []field {
	return []field{{"scale", &m.Scale}, {"base", &m.Base}, {"horizon", &m.Horizon}}
}

// MarshalJSON writes {"mechanism":"kary","scale":5,"base":19,"horizon":1000000}.
func (m KAry) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m KAry) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}

// kary keeps the noise of one slot under KAry.
//
// Write t with balanced digits, −half to half. On level j the digits above say where the sum has
// got to, a multiple of k^{j+1} called the centre, and the digit says how many nodes of k^j rewards
// to add after the centre, or to take away before it. A node before the centre has rewards that are
// still to come: its noise is drawn when the sum first shows it, kept, and shown with a minus, and
// the node's own sum is never needed. Each node belongs to one centre: of the k nodes between two
// centres, the first (k−1)/2 to the left one and the last to the right one; the one in the middle
// is never shown. So when the centre of a level moves, all its noise is let go. Memory is (k−1)/2
// numbers a level. One reward a release is at most k/(k−1) draws, on average.
type kary[T int64 | float64] struct {
	base, half uint64
	t          uint64
	sum        T // noise at t
	above      T // of it, that of all levels but the lowest
	levels     []karyLevel[T]
}

type karyLevel[T int64 | float64] struct {
	centre uint64 // in units of k^{j+1}
	right  T      // noise in the first rights nodes after it
	rights int
	left   []T // left[i] is the noise in the i nodes before it, i ≤ lefts
	lefts  int
	digit  int
}

func newKAry[T int64 | float64](m KAry) Stream[T] {
	h, half := m.Levels(), m.Base/2
	c := &kary[T]{base: uint64(m.Base), half: uint64(half), levels: make([]karyLevel[T], h)}
	memory := make([]T, h*(half+1))
	for j := range c.levels {
		c.levels[j].left = memory[j*(half+1) : (j+1)*(half+1)]
	}
	return c
}

// At implements Stream. If a draw fails, what was drawn is kept and t has not moved.
func (c *kary[T]) At(t uint64, noise Sampler[T]) (T, error) {
	if low := &c.levels[0]; t == c.t+1 && low.digit < int(c.half) { // nearly always
		x, err := low.to(low.centre, low.digit+1, noise)
		if err != nil {
			return 0, err
		}
		c.t, c.sum = t, c.above+x
		return c.sum, nil
	}
	if t == c.t {
		return c.sum, nil
	}
	return c.jump(t, noise)
}

func (c *kary[T]) jump(t uint64, noise Sampler[T]) (T, error) {
	var digits [64]int16
	var centres [64]uint64
	u := t
	for j := range c.levels {
		digits[j] = int16((u+c.half)%c.base) - int16(c.half)
		u = (u + c.half) / c.base
		centres[j] = u
	}
	var sum, above T
	for j := len(c.levels) - 1; j >= 0; j-- {
		x, err := c.levels[j].to(centres[j], int(digits[j]), noise)
		if err != nil {
			return 0, err
		}
		above = sum
		sum += x
	}
	c.t, c.sum, c.above = t, sum, above
	return sum, nil
}

// to moves the level to a centre and digit and returns its noise. Nodes are drawn from the
// centre outwards.
func (l *karyLevel[T]) to(centre uint64, digit int, noise Sampler[T]) (T, error) {
	if centre != l.centre {
		l.centre, l.right, l.rights, l.lefts = centre, 0, 0, 0
	}
	if digit < 0 {
		for l.lefts < -digit {
			x, err := noise.Draw(1)
			if err != nil {
				return 0, err
			}
			l.left[l.lefts+1] = l.left[l.lefts] + x
			l.lefts++
		}
		l.digit = digit
		return -l.left[-digit], nil
	}
	for l.rights < digit {
		x, err := noise.Draw(1)
		if err != nil {
			return 0, err
		}
		l.right += x
		l.rights++
	}
	l.digit = digit
	return l.right, nil
}
