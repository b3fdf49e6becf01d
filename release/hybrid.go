package release

import "math/bits"

// The hybrid mechanism (Chan, Shi and Song 2010, §4) releases the running sum of a slot of unknown
// length. Segment k holds rewards 2^k to 2^(k+1)−1. A finished segment has one Lap(Scale); in the
// current one, k, the sum of its first p < 2^k rewards comes from a tree whose nodes have
// Lap(Scale·(k+1)). A reward is in one segment, which costs 1/Scale, and in at most k of its tree's
// nodes, which cost at most k/(Scale·(k+1)): together it is 2/Scale-DP.
//
// A segment is finished when its last reward is in: at t = 2^(k+1)−1 the sum has the noise
// of segments only.

// finished is how many segments are finished after n rewards.
func finished(n int) int { return bits.Len64(uint64(n)+1) - 1 }

// hybrid is the noise in the sum of the first n rewards. n never decreases. c.t counts rewards + 1,
// so that its highest digit is the current segment and the others are the position in it; stack[0]
// is the noise of finished segments.
func (c *counter[T]) hybrid(n uint64, noise sampler[T]) (T, error) {
	u := n + 1
	k := bits.Len64(u) - 1
	c.t = max(c.t, 1)
	for j := bits.Len64(c.t) - 1; j < k; j++ {
		x, err := noise.Draw(1)
		if err != nil {
			return 0, err
		}
		// The next segment begins: its tree has no nodes yet.
		c.stack[0] += x
		c.t = 2 << j
	}
	return c.to(u, 1, noise, k+1)
}
