package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// UCB plays the arm with the largest index
//
//	μ̂_a + √(2 log f(t) / N_a)
//
// at round t (counted from 1), every arm once first; ties go to the lowest arm. It is not private.
//
// With f(t) = 1 + t log²t the index is [Azize 2024, (2.12)], and for 1-sub-Gaussian rewards lim
// Reg_T / log T ≤ Σ 2/Δ_a [Azize 2024, Theorem 2.24]. With f(t) = t it is [Sajed 2019, Algorithm
// 1], and for rewards in [0,1] Reg_T ≤ Σ (8 log T/Δ_a + 1.42 Δ_a) [Sajed 2019, (2.22)]. Sums are
// over the suboptimal arms.
//
// It decides as if after every reward, but asks for certified batches (see window.go), so a run of
// T rounds takes far fewer than T calls.
type UCB struct {
	// Unbounded says that rewards may leave [0,1] (a simulation without clipping): no certificate
	// holds, and batches are of one round.
	Unbounded bool

	f exploration
	tally
	rs []float64 // 1/√N_a
}

// NewUCB returns UCB with f(t) = 1 + t log²t for at least two arms.
func NewUCB(arms int) (*UCB, error) { return newUCB("ucb", arms, logSquared) }

// NewUCBLog returns UCB with f(t) = t, the "2 log t" index of [Sajed 2019, Algorithm 1], for
// at least two arms.
func NewUCBLog(arms int) (*UCB, error) { return newUCB("ucb-2logt", arms, plain) }

func newUCB(name string, arms int, f exploration) (*UCB, error) {
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &UCB{f: f, tally: newTally(arms), rs: make([]float64, arms)}, nil
}

// Mechanism implements Policy: UCB reads exact sums.
func (p *UCB) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Next implements Policy: every arm once, then certified batches of one arm.
func (p *UCB) Next(released privacy.Released) *Batch {
	if p.batch.Plays == nil {
		return p.first()
	}
	p.take(released)
	for _, play := range p.batch.Plays {
		p.rs[play.Arm] = 1 / math.Sqrt(p.n[play.Arm])
	}
	level, slope := p.f.level(p.t)
	s := math.Sqrt(2 * level)

	mean, rs := p.mean, p.rs[:len(p.mean)]
	best, first, second := 0, math.Inf(-1), math.Inf(-1)
	for a, m := range mean {
		index := m + float64(s*rs[a]) // as in index, up to rounding
		if index > first {
			best, first, second = a, index, first
		} else if index > second {
			second = index
		}
	}
	tol := float64(margin * (1 + math.Abs(first)))
	if !(first-second > tol) {
		return p.next(p.leader(level), 1)
	}
	if p.Unbounded {
		return p.next(best, 1)
	}

	// After j rewards of 0 the index is sum/(n+j) + √(2·level/(n+j)), convex in j: it stays above
	// its tangent, first − j·fall.
	last := float64((first - second) * (p.n[best] / (mean[best] + float64(0.5*float64(s*rs[best])))))
	if last < 1 {
		return p.next(best, 1)
	}
	// Rivals reach their indices at the level of the window's end; √(2(level+x)) ≤ s + x/s.
	end := s + float64(min(last, p.t)*slope)/s
	rival := math.Inf(-1)
	for a, m := range mean {
		if index := m + float64(end*rs[a]); index > rival && a != best {
			rival = index
		}
	}
	j := float64(last * ((first - rival - tol) / (first - second)))
	if !(j >= 1) {
		return p.next(best, 1)
	}
	return p.next(best, math.Floor(min(j, p.t))+1)
}

// leader is the arm with the largest index, the lowest of equals.
func (p *UCB) leader(level float64) int {
	best, largest := 0, math.Inf(-1)
	for a := range p.mean {
		if index := p.index(a, level); index > largest {
			best, largest = a, index
		}
	}
	return best
}

// index is the index itself, +Inf for an arm without rewards.
func (p *UCB) index(a int, level float64) float64 {
	if p.n[a] == 0 {
		return math.Inf(1)
	}
	return p.mean[a] + math.Sqrt(float64(2*level)/p.n[a])
}
