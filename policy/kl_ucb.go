package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// KLUCB plays the arm with the largest index
//
//	max{ q ∈ [μ̂_a,1] : kl(μ̂_a, q) ≤ log f(t) / N_a },   f(t) = 1 + t log²t,
//
// at round t (counted from 1), every arm once first; ties go to the lowest arm [Azize 2024,
// (2.14)]. It is not private.
//
// For Bernoulli rewards lim Reg_T / log T ≤ Σ Δ_a/kl(μ_a, μ*) over the suboptimal arms [Azize 2024,
// Theorem 2.26]. By convexity of kl the same holds for any rewards in [0,1].
//
// It decides as if after every reward, but asks for certified batches (see window.go). An index is
// computed only when the arm that leads cannot be certified: rivals are bounded by the tangent of
// their last index, which is concave in the level.
type KLUCB struct {
	// Unbounded says that rewards may leave [0,1] (a simulation without clipping): no certificate
	// holds and batches are of one round. Means are clipped to [0,1], where kl lives.
	Unbounded bool

	tally
	arms   []klArm
	leader int
}

// A klArm is an arm's last index: q at level at. fresh says that it rests on all its rewards; if so
// q + (level − at)·slope is an upper bound on its index at any level.
type klArm struct {
	q, at, slope float64
	fresh        bool
}

// NewKLUCB returns KL-UCB for at least two arms.
func NewKLUCB(arms int) (*KLUCB, error) {
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("kl-ucb: %w", err)
	}
	return &KLUCB{tally: newTally(arms), arms: make([]klArm, arms)}, nil
}

// Mechanism implements Policy: KL-UCB reads exact sums.
func (p *KLUCB) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Next implements Policy: every arm once, then certified batches of one arm.
func (p *KLUCB) Next(released privacy.Released) *Batch {
	if p.batch.Plays == nil {
		return p.first()
	}
	p.take(released)
	for _, play := range p.batch.Plays {
		p.arms[play.Arm].fresh = false
		p.mean[play.Arm] = min(max(p.mean[play.Arm], 0), 1)
	}
	level, slope := logSquared.level(p.t)
	for a := range p.arms {
		if a != p.leader && !p.arms[a].fresh {
			p.refresh(a, level)
		}
	}
	if k := p.certify(p.leader, level, slope); k >= 1 {
		return p.next(p.leader, k)
	}
	p.leader = p.decide(level)
	return p.next(p.leader, max(p.certify(p.leader, level, slope), 1))
}

// certify is a number of rounds for which arm a leads whatever its rewards, 0 if it cannot tell.
//
// After j rewards of 0 arm a has m = N+j rewards, and its index is above B > S/m if g(m) =
// m·kl(S/m, B) < level. g is convex in m (it is the perspective of a convex function) and grows
// once S/m < B, so the last decision, j = k−1, speaks for all.
func (p *KLUCB) certify(a int, level, slope float64) float64 {
	n, sum, mean := p.n[a], p.sum[a], p.mean[a]
	b := p.rivals(a, level)
	if n == 0 || b >= 1 {
		return 0
	}
	// A guess at k. kl(x,b) = ∫ (u−x)/u(1−u) du over [x,b], and the chord of the convex 1/u(1−u)
	// makes it at most (b−x)²/2v with 1/v = 1/3x(1−x) + 2/3b(1−b). Then m(b−S/m)² = 2v·level is
	// quadratic in √m.
	vx, vb := float64(mean*(1-mean)), float64(b*(1-b))
	root := math.Sqrt(float64(6*float64(float64(vx*vb)*level)) / (vb + float64(2*vx)))
	wide := math.Sqrt(float64(root*root) + float64(4*float64(b*sum)))
	z := (root + wide) / float64(2*b)
	m := float64(z * z)
	last := min(m-n, p.t)
	if !(last >= 1) || p.Unbounded {
		if p.below(n, mean, b, level) {
			return 1
		}
		return 0
	}
	// Rivals reach their bounds at the level of the window's end; dm/db = −2z³/wide.
	end := p.rivals(a, level+float64(last*slope))
	j := math.Floor(float64(0.99 * (min(m-float64((end-b)*float64(2*float64(z*m)))/wide, n+last) - n)))
	for j >= 1 {
		if m := n + j; p.below(m, sum/m, end, level) {
			return j + 1
		}
		j = math.Floor(float64(0.25 * j))
	}
	if p.below(n, mean, b, level) {
		return 1
	}
	return 0
}

// below says that an arm with mean x of m rewards has an index above b, by more than
// rounding can blur.
func (p *KLUCB) below(m, x, b, level float64) bool {
	d := b - x
	if d < 0 {
		return true
	}
	level = float64(level * (1 - margin))
	vx, vb := float64(x*(1-x)), float64(b*(1-b))
	if float64(float64(m*float64(d*d))*(vb+float64(2*vx))) < float64(6*float64(float64(vx*vb)*level)) {
		return true // by the chord, without a logarithm
	}
	return float64(m*divergence.KL(x, b)) < level
}

// rivals bounds the indices of all arms but a, at a level, from above; margin included.
func (p *KLUCB) rivals(a int, level float64) float64 {
	b := 0.0
	for r := range p.arms {
		if r == a {
			continue
		}
		if q := p.bound(r, level); q > b {
			b = q
		}
	}
	return b + margin
}

func (p *KLUCB) bound(r int, level float64) float64 {
	arm := &p.arms[r]
	return arm.q + float64((level-arm.at)*arm.slope)
}

// refresh computes arm a's index.
func (p *KLUCB) refresh(a int, level float64) {
	arm, n, x := &p.arms[a], p.n[a], p.mean[a]
	arm.at, arm.fresh = level, n > 0
	if n == 0 {
		arm.q, arm.slope = 1, 0
		return
	}
	arm.q = divergence.KLUpperFrom(x, level/n, arm.q)
	arm.slope = 0
	if arm.q > x && arm.q < 1 {
		arm.slope = float64(arm.q*(1-arm.q)) / float64(n*(arm.q-x))
	}
}

// decide is the arm with the largest index, the lowest of equals.
func (p *KLUCB) decide(level float64) int {
	p.refresh(p.leader, level)
	best := p.leader
	for a := range p.arms {
		// Only who might be at the top is computed anew.
		if a == p.leader || p.bound(a, level) < p.arms[best].q-margin {
			continue
		}
		p.refresh(a, level)
		if p.arms[a].q > p.arms[best].q {
			best = a
		}
	}
	top := p.arms[best].q - margin
	near := 0
	for a := range p.arms {
		if p.bound(a, level) >= top {
			near++
		}
	}
	if near == 1 {
		return best
	}
	// Too close for indices that remember where they started.
	largest := math.Inf(-1)
	for a := range p.arms {
		if p.bound(a, level) < top {
			continue
		}
		if index := p.index(a, level); index > largest {
			best, largest = a, index
		}
	}
	return best
}

// index is the index itself, +Inf for an arm without rewards.
func (p *KLUCB) index(a int, level float64) float64 {
	if p.n[a] == 0 {
		return math.Inf(1)
	}
	return divergence.KLUpper(p.mean[a], level/p.n[a])
}
