package policy

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/sotto-dp/sotto/privacy"
)

// DPSE2 is DP-SE 2, [Sajed 2019, Algorithm 10]: successive elimination on the sparse vector
// technique. An epoch plays the |S| surviving arms in turn and asks, after r = 2^ℓ+1 rounds of each
// for ℓ = 1, 2, … (the print's "until r > 2^ℓ"), whether the range of their means is above
//
//	10 h_r + (A_r + B + c_r)/r,   h_r = √(log(16K|S|ℓ²/β)/(2r)),
//	c_r = (6 log(4K/β) + 6 log(8Kℓ²/β) + 16 log(4K|S|/β))/ε,
//
// with one B ~ Lap(6/ε) an epoch and a fresh A_r ~ Lap(6/ε) a question. At the first yes the arms'
// sums are released with Lap(2/ε) on each, every arm whose noisy mean is more than 2h_r + 4
// log(4K|S|/β)/(εr) below the highest is dropped, and the next epoch starts afresh.
//
// For rewards in [0,1] it is ε-DP ([Sajed 2019, Theorem A.1.1]: ε/2 for an epoch's answers and ε/2
// for its sums, on the same rewards), and with β = 1/T its regret is O(Σ_a log T/Δ_a + K log T/ε)
// [Sajed 2019, Corollary A.1.3].
//
// The modified DP-SE 2 of [Sajed 2019, §A.2] has 2h_r for 10h_r and 4 for c_r's 16: as private, and
// usually better, but it is not proved that an epoch drops every arm of a gap like the worst one's.
//
// The noise in the questions never leaves the curator, so c_r is that of the continuous law;
// discrete noise on a grid of 2^-20 needs about a part in 10⁷ more.
type DPSE2 struct {
	epsilon, beta float64
	arms          int     // K
	hoeffding     float64 // 10, or 2 if modified
	slack         float64 // 16, or 4

	elimination
	ell int // ℓ of the question that is out; 0: none is
	r   int // rounds of each arm in this epoch, that question's included
}

// NewDPSE2 returns DP-SE 2 for a number of arms ≥ 2, a budget epsilon > 0 (+Inf: no privacy) and
// the failure probability beta in (0,1), 1/T in the source.
func NewDPSE2(arms int, epsilon, beta float64) (*DPSE2, error) {
	return newDPSE2("dp-se-2", arms, epsilon, beta, 10, 16)
}

// NewDPSE2Modified returns the modified DP-SE 2; its parameters are those of NewDPSE2.
func NewDPSE2Modified(arms int, epsilon, beta float64) (*DPSE2, error) {
	return newDPSE2("dp-se-2-modified", arms, epsilon, beta, 2, 4)
}

func newDPSE2(name string, arms int, epsilon, beta, hoeffding, slack float64) (*DPSE2, error) {
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := checkPositive("epsilon", epsilon, true); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := checkRisk("beta", beta); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &DPSE2{epsilon: epsilon, beta: beta, arms: arms, hoeffding: hoeffding, slack: slack,
		elimination: newElimination(arms)}, nil
}

// Mechanism implements Policy.
func (p *DPSE2) Mechanism() privacy.Mechanism {
	return privacy.Sparse{
		Questions: privacy.Questions{Threshold: 6 / p.epsilon, Query: 6 / p.epsilon, Statistic: privacy.Range},
		Scale:     2 / p.epsilon,
	}
}

// Next implements Policy.
func (p *DPSE2) Next(released privacy.Released) *Batch {
	if n := released.Len(); n > 0 {
		p.eliminate(released, n)
		p.ell, p.r = 0, 0
	}
	p.ell++
	more := Forever
	if p.ell < bits.UintSize-4 {
		more = 1<<p.ell + 1 - p.r
		p.r += more
	}
	b := p.each(more)
	b.Ask = len(p.alive) > 1 // the last survivor needs no question
	b.Above = float64(p.hoeffding*float64(float64(p.r)*p.width())) + p.margin()
	return b
}

// eliminate drops the arms whose noisy means are too low. The highest is never dropped.
func (p *DPSE2) eliminate(released privacy.Released, n int) {
	top := math.Inf(-1)
	for i := range n {
		top = max(top, released.Mean(i))
	}
	tail := released.Tail() // H is 2/ε
	noise := tail.H * (math.Log(4*float64(p.arms*n)/p.beta) + tail.Log) / float64(p.r)
	limit := 2*p.width() + 2*noise
	kept := p.alive[:0]
	for i := range n {
		if top-released.Mean(i) <= limit {
			kept = append(kept, p.alive[i])
		}
	}
	p.alive = kept
}

// width is h_r.
func (p *DPSE2) width() float64 {
	l := float64(p.ell)
	return math.Sqrt(math.Log(16*float64(p.arms*len(p.alive))*l*l/p.beta) / (2 * float64(p.r)))
}

// margin is c_r.
func (p *DPSE2) margin() float64 {
	k, l := float64(p.arms), float64(p.ell)
	return (6*math.Log(4*k/p.beta) + 6*math.Log(8*k*l*l/p.beta) +
		p.slack*math.Log(4*k*float64(len(p.alive))/p.beta)) / p.epsilon
}
