package release

import "github.com/sotto-dp/sotto/privacy"

// kary keeps the noise of one slot under privacy.KAry, the k-ary tree with negative digits.
//
// Write t with balanced digits, −half to half. On level j the digits above say where the sum has
// got to, a multiple of k^{j+1} called the centre, and the digit says how many nodes of k^j rewards
// to add after the centre, or to take away before it. A node before the centre has rewards that are
// still to come: its noise is drawn when the sum first shows it, kept, and shown with a minus, and
// the node's own sum is never needed. Each node belongs to one centre: of the k nodes between two
// centres, the first (k−1)/2 to the left one and the last to the right one; the one in the middle
// is never shown. So when the centre of a level moves, all its noise is let go. Memory is (k−1)/2
// numbers a level. One reward a release is at most k/(k−1) draws, on average.
type kary[T number] struct {
	base, half uint64
	t          uint64
	sum        T // noise at t
	above      T // of it, that of all levels but the lowest
	levels     []karyLevel[T]
}

type karyLevel[T number] struct {
	centre uint64 // in units of k^{j+1}
	right  T      // noise in the first rights nodes after it
	rights int
	left   []T // left[i] is the noise in the i nodes before it, i ≤ lefts
	lefts  int
	digit  int
}

func newKAry[T number](m privacy.KAry) stream[T] {
	h, half := m.Levels(), m.Base/2
	c := &kary[T]{base: uint64(m.Base), half: uint64(half), levels: make([]karyLevel[T], h)}
	memory := make([]T, h*(half+1))
	for j := range c.levels {
		c.levels[j].left = memory[j*(half+1) : (j+1)*(half+1)]
	}
	return c
}

// at implements stream. If a draw fails, what was drawn is kept and t has not moved.
func (c *kary[T]) at(t uint64, noise sampler[T]) (T, error) {
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

func (c *kary[T]) jump(t uint64, noise sampler[T]) (T, error) {
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
func (l *karyLevel[T]) to(centre uint64, digit int, noise sampler[T]) (T, error) {
	if centre != l.centre {
		l.centre, l.right, l.rights, l.lefts = centre, 0, 0, 0
	}
	if digit < 0 {
		for l.lefts < -digit {
			x, err := noise.draw(1)
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
		x, err := noise.draw(1)
		if err != nil {
			return 0, err
		}
		l.right += x
		l.rights++
	}
	l.digit = digit
	return l.right, nil
}
