package release

import (
	"math"
	"math/bits"

	"github.com/sotto-dp/sotto/noise"
)

// dips says of the next 2^j − 1 releases of a binary tree whether the noise of any of them falls by more
// than y scales, and draws them only if it does. Its law is exact.
//
// Let 2^j divide t. The nodes of t stay those of t+1, …, t+2^j−1, and what these have besides is a tree of
// its own, of j levels, that no other release shows: with X_i the new node of release t+i, Laplace of scale 1,
//
//	W_i = W_{i with its lowest digit cleared} + X_i,   W_0 = 0,
//
// is a sum of k(i) nodes, k(i) the number of i's digits. Let A_i be the event W_i < −y, y > 0, and C the number of
// these events that come true.
//
// (1) P(A_i) = Q_k, k = k(i), by a race. A sum of k Laplace variates is Γ − Γ′, each the k-th arrival of a
// Poisson process of rate 1, and Γ′ > y + Γ says that the second, which runs y before the first one starts, has
// its k-th arrival after the first one has its own. In that lead it has a arrivals, a Poisson number, at uniform
// times; from then on the next arrival is of either process with probability ½. So with N the number of tails
// before the k-th head of a fair coin
//
//	Q_k = e^{−y} Σ_{a<k} y^a/a! · P(N < k−a),
//
// and P(N < k−a) is that of at least k heads in the first 2k−1−a tosses.
//
// (2) Let p = Σ_i P(A_i) = Σ_k C(j,k)·Q_k, at most 1. Do nothing with probability 1−p. Else choose i with probability
// P(A_i)/p, draw the nodes of W_i given A_i, and all others as they are; and of that keep 1/C, else do nothing. Whatever
// a set B of paths in which some A_i comes true, this draws one of B with probability Σ_i E[1_B·1_{A_i}/C] =
// P(B). So a path comes out as often as it has to, if there is an event in it, and it is known that there is
// none in all other cases: then no node need be drawn, since no later release shows one.
//
// A player stops at an event, or at the path's end. The nodes that come after an event do not depend on those before,
// nor does whether there was one on them: who stops there goes on with nodes that are drawn anew.
type dips struct {
	weight      [dipLevels + 1][dipLevels]float64
	sum         [dipLevels + 1][dipLevels]float64 // Σ_k C(j,k)·weight[k][a]
	least, rare [dipLevels + 1]float64            // y from where on p is at most dipMost, and dipRare

	size, at int                     // the path that was drawn, and where it is; size 0: none
	low      float64                 // −y
	node     [1 << dipLevels]float64 // X
	path     [1 << dipLevels]float64 // W
}

const (
	dipLevels = 10       // the largest j
	dipMost   = 1. / 12  // the largest p
	dipRare   = 1. / 256 // p is not worth computing if it is less than that, and than the coin
	dipEnd    = 700      // the largest y: e^{-y} is not 0
)

func newDips() *dips {
	d := &dips{}
	for k := 1; k <= dipLevels; k++ {
		var below [dipLevels]float64 // P(N ≤ h)
		p, sum := math.Ldexp(1, -k), 0.
		for h := range k {
			sum += p
			below[h] = sum
			p *= float64(k+h) / float64(2*(h+1))
		}
		factorial := 1.
		for a := range k {
			d.weight[k][a] = below[k-1-a] / factorial
			factorial *= float64(a + 1)
		}
	}
	for j := 1; j <= dipLevels; j++ {
		choose := 1.
		for k := 1; k <= j; k++ {
			choose *= float64(j-k+1) / float64(k)
			for a := range k {
				d.sum[j][a] += float64(choose * d.weight[k][a])
			}
		}
		d.least[j], d.rare[j] = d.where(j, dipMost), d.where(j, dipRare)
	}
	return d
}

// chance is p at level j.
func (d *dips) chance(j int, y float64) float64 {
	c, p := &d.sum[j], 0.
	for a := j - 1; a >= 0; a-- {
		p = float64(p*y) + c[a]
	}
	return p * math.Exp(-y)
}

// where is a y beyond which p at level j is at most this: p falls as y grows.
func (d *dips) where(j int, p float64) float64 {
	lo, hi := 0., float64(dipEnd)
	for range 30 {
		if y := (lo + hi) / 2; d.chance(j, y) > p {
			lo = y
		} else {
			hi = y
		}
	}
	return hi
}

// next is how many rounds, of at most so many, can be played in one go after t releases: the player does not stop
// at those in between as long as the noise has not fallen by more than slack, less what a reward of 0 takes off that
// with each round.
func (d *dips) next(t uint64, rounds int, slack, each, scale float64, s *noise.Fast) int {
	if d.size > 0 {
		return d.event() - d.at
	}
	for j := min(dipLevels, bits.TrailingZeros64(t), bits.Len(uint(rounds))-1); j > 0; j-- {
		left := slack - float64(each*float64(int(1)<<j-1))
		if !(left > float64(d.least[j]*scale)) {
			continue
		}
		if u := s.Float64(); u < dipRare || u < dipMost && left < float64(d.rare[j]*scale) {
			if y := min(left/scale, dipEnd); u < d.chance(j, y) && d.draw(j, y, s) {
				return d.event()
			}
		}
		return 1 << j
	}
	return 1
}

// event is the next event of the path, or its end.
func (d *dips) event() int {
	i := d.at + 1
	for i < d.size && d.path[i] >= d.low {
		i++
	}
	return i
}

// noise is that of the sum after m more rounds, as next says.
func (d *dips) noise(c *counter[float64], m int, of fastLaplace) float64 {
	if d.size > 0 {
		base := c.t - uint64(d.at)
		if d.at += m; d.at < d.size {
			return c.inner(base, d.at, d.node[:], of.scale)
		}
		c.t, m, d.size = base, d.size, 0
	}
	c.t += uint64(m - 1) // of 2^j rewards after a multiple of that the sum has one node that is not drawn yet
	return c.next(of.s.Laplace(of.scale))
}

// draw has a path drawn of 2^j−1 releases in which one of the events comes true, or nothing (2).
func (d *dips) draw(j int, y float64, s *noise.Fast) bool {
	k, lead := d.choose(j, y, s)
	node, path := d.node[:1<<j], d.path[:1<<j]
	for i := range node[1:] {
		node[1+i] = s.Laplace(1)
	}
	var low [dipLevels]float64
	d.race(low[:k], lead, y, s)
	for i, digit, of := 0, j-1, 0; of < k; digit-- { // k of j digits, each set as probable as another
		if s.Float64()*float64(digit+1) < float64(k-of) {
			i |= 1 << digit
			node[i] = low[of]
			of++
		}
	}
	events := 0
	for i := 1; i < len(node); i++ {
		path[i] = path[i&(i-1)] + node[i]
		if path[i] < -y {
			events++
		}
	}
	if s.Float64()*float64(events) >= 1 {
		return false
	}
	d.size, d.at, d.low = len(node), 0, -y
	return true
}

// choose chooses how many nodes the release has, and how many arrivals are in the lead.
func (d *dips) choose(j int, y float64, s *noise.Fast) (k, lead int) {
	for {
		u := s.Float64() * d.chance(j, y) * math.Exp(y)
		choose := 1.
		for k := 1; k <= j; k++ {
			choose *= float64(j-k+1) / float64(k)
			x := choose
			for a := range k {
				if u -= float64(x * d.weight[k][a]); u < 0 {
					return k, a
				}
				x *= y
			}
		}
	}
}

// race makes x the nodes of a sum of so many that is below −y, with a arrivals in the lead (1).
func (d *dips) race(x []float64, a int, y float64, s *noise.Fast) {
	k := len(x)
	tosses := s.Uint64() // 1 is a head, an arrival of the first process
	for bits.OnesCount64(tosses&(1<<(2*k-1-a)-1)) < k {
		tosses = s.Uint64()
	}
	clear(x)
	var gap [dipLevels]float64 // of a uniform points in [0, y], as exponential variates have them
	total := 0.
	for i := range a + 1 {
		gap[i] = s.Exponential()
		total += gap[i]
	}
	for i := range a {
		x[i] = -float64(y * (gap[i] / total))
	}
	second := float64(y * (gap[a] / total)) // since its last arrival
	for head := 0; head < k; tosses >>= 1 {
		between := s.Exponential() / 2
		x[head] += between
		second += between
		if tosses&1 == 1 {
			head++
		} else {
			x[a] -= second
			second = 0
			a++
		}
	}
	for ; a < k; a++ {
		x[a] -= second + s.Exponential()
		second = 0
	}
}
