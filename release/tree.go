package release

import "math/bits"

// A counter keeps the noise of one slot whose running sum is released again and again: the binary
// tree mechanism, [Sajed 2019, Algorithm 5] ([Azize 2024, §2.1.5]), and the hybrid one built on it.
//
// The tree's leaves are the slot's rewards. The sum of the first t is that of popcount(t) nodes,
// one for each binary digit of t, the longest first: t = 7 is [1,4] [5,6] [7,7]. Each node has
// noise of its own, drawn once. A reward is in one node of each level that t ≤ T can show,
// ⌊log₂T⌋+1 of them, so with Lap(Scale) on each the whole sequence of releases is
// (⌊log₂T⌋+1)/Scale-DP, by sequential composition ([Sajed 2019, Theorem 3.3.1], whose ε' is
// ε/(⌈log₂T⌉+1); t = T is a release like any other, also for a power of two).
//
// The node of digit j of t ends at t with its lower digits cleared. It is part of the sum for every
// t' that has the same digits from j up, which are consecutive, and never again. So the nodes that
// t shares with a later t' are those above the highest digit in which they differ, and a stack of
// partial sums of noise, longest node first, is all the state: a release pops what t and t' do not
// share and pushes the rest. Nodes that no release shows are not drawn. One reward a release is one
// draw, and the sum of noise is the top of the stack.
type counter[T number] struct {
	t     uint64    // rewards at the last release
	stack [1 + 64]T // stack[i] is the noise in the i longest nodes of t, on top of stack[0]
}

// tree is the noise in the sum of the first t rewards. t never decreases.
func (c *counter[T]) tree(t uint64, noise sampler[T]) (T, error) {
	return c.to(t, 0, noise, 1)
}

// to goes on to t. Nodes have w times the scale; the highest digits have none, so many of
// them, and are the same as before.
func (c *counter[T]) to(t uint64, none int, noise sampler[T], w int) (T, error) {
	shared := bits.Len64(c.t ^ t) // digits below may differ
	depth := bits.OnesCount64(t>>shared) - none
	end := bits.OnesCount64(t) - none
	for ; depth < end; depth++ {
		x, err := noise.Draw(w)
		if err != nil {
			// Digits of t from the highest down, as many as were drawn, so that what
			// was drawn is kept.
			c.t = highest(t, depth+none)
			return 0, err
		}
		c.stack[depth+1] = c.stack[depth] + x
	}
	c.t = t
	return c.stack[end], nil
}

// next goes on to one reward more, whose node of the tree has noise x.
func (c *counter[T]) next(x T) T {
	c.t++
	end := bits.OnesCount64(c.t)
	c.stack[end] = c.stack[end-1] + x
	return c.stack[end]
}

// inner goes on to base+i, i > 0 below a power of two that base is a multiple of: the nodes that it does not share with
// base have noise x[j]·scale, of the one that ends at base+j.
func (c *counter[T]) inner(base uint64, i int, x []T, scale T) T {
	c.t = base + uint64(i)
	depth, j := bits.OnesCount64(base), 0
	for rest := i; rest > 0; depth++ {
		digit := 1 << (bits.Len(uint(rest)) - 1)
		j, rest = j|digit, rest^digit
		c.stack[depth+1] = c.stack[depth] + T(x[j]*scale)
	}
	return c.stack[depth]
}

// highest is t with only its k highest ones.
func highest(t uint64, k int) uint64 {
	for bits.OnesCount64(t) > k {
		t &= t - 1
	}
	return t
}
