package linear

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/rows"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// HistogramTS is Thompson sampling under joint differential privacy where the vectors of actions are few, C
// rows that are known beforehand, as maps of words make them: contexts and rewards are both private, and
// what is released is a histogram of (row that was played, reward), not a matrix of d² products.
//
// Rounds are cut into segments by their count alone: the first has First rounds, and each other Ratio − 1
// times all before it. Of segment s one histogram is released, privacy.NewHistogram: for each row x_c the
// noisy number a of rewards that were lost and b of those that were won (of a reward r in [−1,1] it is y =
// (r+1)/2 that is won and 1 − y that is lost). With p̂ the share won of all, V the variance of a
// bin's noise, e = b − p̂(a+b) has about the variance, given the rewards' means,
//
//	w⁻¹ = n·p̂(1−p̂) + V((1−p̂)² + p̂²),   n = max(0, a + b − e·(1−2p̂)/((1−p̂)² + p̂²)),
//
// n the part of the count whose noise has nothing to do with that of e. (With a+b in its place a row that was never
// played would look good: its noise would be in both factors.) h_c = Σ_s w·n·e and P_c = Σ_s w·n² are what all segments say of the row: early ones, in which
// noise is most, weigh least. Model: y has mean p̂ + ⟨θ,x⟩, θ ~ N(0, τ²I) for x scaled so that its largest
// number is 1; τ is that of {.1, .2, .4, .8}·min(p̂, 1−p̂) which explains what was released best. The posterior
// N(μ, Σ), Σ⁻¹ = Σ_c P_c x_c x_cᵀ + I/τ², has M draws μ + Alpha·Σ^{½}z made of it after each release; a round
// plays the best action of one of them, chosen uniformly. So the probability of an action is exactly the
// share of the draws in which it is best (Draw).
//
// Guarantee: joint DP at the budget, for replacing a round's context and reward by others. Proof. Let two
// worlds differ in round t alone. Coins and noise are the same, and so are all other contexts. Rounds are
// in segments by number, t in one segment, s. What is played in a round is a function of its own context, of
// coins and of the histograms before it (the billboard lemma, Hsu, Huang, Roth, Roughgarden and Wu 2014).
//  1. Given the histograms of segments before s, and coins, what is played in rounds before t is the same in
//     both worlds, and so is what is played in other rounds of segment s: no histogram of s or later is known
//     there. So the exact histograms of s are of the same records but for one, whose row and reward are others,
//     and differ by at most 2 in ℓ1 and √2 in ℓ2 (privacy.LaplaceHistogram). Its release costs the budget.
//  2. Given the histograms up to s, everything after is the same function of the same contexts, coins and noise.
//
// So the law of all histograms together, and with it that of what is played in all rounds but t, is as the
// mechanism promises for one release: no more is paid for more segments, rows or rounds, or for no horizon. What
// is played in round t is chosen by its own context, and hides nothing from whoever sees it (as for LinUCB).
// When segments end, and which rows have bins, is the same in both worlds. ∎
//
// Regret: none proved. Alpha < 1 has less regret on average in all that was measured, and heavier tails.
// Frequentist regret of the kind Õ(√(CT)) would take Alpha = 1, wider draws and rows that are played alone.
// Nothing in the posterior counts that n is noisy, too.
//
// At budget None there is no noise: Thompson sampling in batches.
type HistogramTS struct {
	o         HistogramOptions
	coins     policy.Coins
	rows      rows.Table
	mechanism privacy.Histogram
	dim       int
	scale     float64 // what rows are divided by, so that the largest number is 1
	at        []int   // where row c's numbers that are not 0 are, from start[c] to start[c+1]
	start     []int

	constant int // a number of all rows that is the same, not 0; −1 if there is none

	t, cut, end int // rounds played, of segments that were cut, and when the open one ends

	seen   [][]float64 // by segment: a and b of each row
	n      int         // rounds in them
	now    *factor     // Σ⁻¹
	p, h   []float64   // P_c and h_c
	mu, u  []float64
	w      []float64 // WᵀW = Σ
	stale  bool      // there is another posterior than that of the draws
	scores []float64 // of the rows in each draw
	picks  []int     // scratch: rows of the actions
}

// HistogramOptions are the parameters of HistogramTS.
type HistogramOptions struct {
	First int     // rounds of the first segment, at least 1
	Ratio float64 // of all rounds at the end of a segment to those at its start, from 1.01 to 10
	Alpha float64 // of a draw's deviation from the mean, from 0 (greedy) to 10
	Draws int     // M, from 1 to 4096
}

// maxRows is the largest number of rows, which each have two numbers in a release.
const maxRows = 1 << 16

// NewHistogramTS returns HistogramTS for actions that are rows, all different, dim numbers each, one after the
// other: other vectors are never played. It keeps them. The budget is Pure, ZCDP, Approx, Renyi or None. Coins
// are for draws, and for which of them is played.
func NewHistogramTS(dim int, flat []float64, b privacy.Budget, coins policy.Coins,
	o HistogramOptions) (*HistogramTS, error) {
	if err := o.check(dim); err != nil {
		return nil, fmt.Errorf("histogram-ts: %w", err)
	}
	if coins == nil {
		return nil, errors.New("histogram-ts: there are no coins")
	}
	if len(flat) == 0 {
		return nil, errors.New("histogram-ts: rows has none, must have all vectors that can be played, few " +
			"and known beforehand, as those of words are")
	}
	table, err := rows.New(dim, flat)
	if err == nil && table.Len() > maxRows {
		err = fmt.Errorf("rows has %d vectors, must have at most %d", table.Len(), maxRows)
	}
	if err != nil {
		return nil, fmt.Errorf("histogram-ts: %w", err)
	}
	m, err := privacy.NewHistogram(b)
	if err != nil {
		return nil, fmt.Errorf("histogram-ts: %w", err)
	}
	n := table.Len()
	p := &HistogramTS{o: o, coins: coins, rows: table, mechanism: m, dim: dim, end: o.First, start: make([]int, 1, n+1),
		now: newFactor(dim, 1), p: make([]float64, n), h: make([]float64, n), mu: make([]float64, dim),
		u: make([]float64, dim), scores: make([]float64, n*o.Draws)}
	p.w = make([]float64, len(p.now.v))
	for _, x := range flat {
		p.scale = max(p.scale, math.Abs(x))
	}
	if p.scale == 0 {
		p.scale = 1
	}
	for c := range n {
		for j, x := range table.Row(c) {
			if x != 0 {
				p.at = append(p.at, j)
			}
		}
		p.start = append(p.start, len(p.at))
	}
	p.constant = constantOf(table)
	p.estimate()
	return p, nil
}

// constantOf is a number that is the same in all rows, and not 0: an intercept.
func constantOf(table rows.Table) int {
	for j, x := range table.Row(0) {
		same := x != 0
		for c := 1; c < table.Len() && same; c++ {
			same = table.Row(c)[j] == x
		}
		if same {
			return j
		}
	}
	return -1
}

func (o HistogramOptions) check(dim int) error {
	switch {
	case dim < 1 || dim > maxDim:
		return fmt.Errorf("dim is %d, must be between 1 and %d", dim, maxDim)
	case o.First < 1:
		return fmt.Errorf("first is %d, must be at least 1", o.First)
	case !(o.Ratio >= 1.01 && o.Ratio <= 10):
		return fmt.Errorf("ratio is %v, must be between 1.01 and 10", o.Ratio)
	case !(o.Alpha >= 0 && o.Alpha <= 10):
		return fmt.Errorf("alpha is %v, must be between 0 and 10", o.Alpha)
	case o.Draws < 1 || o.Draws > 1<<12:
		return fmt.Errorf("draws is %d, must be between 1 and %d", o.Draws, 1<<12)
	}
	return nil
}

// Mechanism is that of each segment's histogram.
func (p *HistogramTS) Mechanism() privacy.Mechanism { return p.mechanism }

// Rows are the vectors that can be played, one after the other: the cells of the histogram.
func (p *HistogramTS) Rows() []float64 { return p.rows.Flat() }

// Outweighs is from how many rounds on, spread over all rows, chance does as much to a row's mean as noise: the
// variance of n rewards is n/4 at most.
func (p *HistogramTS) Outweighs() float64 {
	return float64(4*p.mechanism.BinVariance()) * float64(p.rows.Len())
}

// Slots is 1: a release is of all rounds since the last.
func (p *HistogramTS) Slots() int { return 1 }

// Dim is d.
func (p *HistogramTS) Dim() int { return p.dim }

// Due is 0 when the open segment has all its rounds. Nothing but their count goes into it.
func (p *HistogramTS) Due() int {
	if p.t >= p.end {
		return 0
	}
	return -1
}

// Cut ends the open segment. Nothing of it is known but its length, so that the result, which OFUL has here, is
// nil.
func (p *HistogramTS) Cut() []int64 {
	p.cut = p.t
	more := math.Ceil(float64((p.o.Ratio - 1) * float64(p.t)))
	p.end = p.t + int(min(max(more, 1), float64(math.MaxInt/2-p.t)))
	return nil
}

// Play counts a round in which this vector was played, whoever chose it. Nothing of the vector is kept.
func (p *HistogramTS) Play([]float64) { p.t++ }

// Skip is Play of all the rounds of a segment, for one that is brought back to where it was. gram is what Cut
// has returned, nil.
func (p *HistogramTS) Skip(n int, gram []int64) error {
	switch {
	case p.t > p.cut:
		return fmt.Errorf("histogram-ts: the segment has %d rounds, must have none", p.t-p.cut)
	case n < 1 || n > p.end-p.t || len(gram) > 0:
		return fmt.Errorf("histogram-ts: a segment has %d rounds and %d sums, must have up to %d and none", n,
			len(gram), p.end-p.t)
	}
	p.t += n
	return nil
}

// Learn takes the histogram of the oldest segment that was not released. One of another size changes nothing.
func (p *HistogramTS) Learn(released privacy.ReleasedVector) {
	if p.Due() >= 0 {
		p.Cut()
	}
	if released.Len() != 2*p.rows.Len() {
		return
	}
	bins := make([]float64, released.Len())
	for i := range bins {
		bins[i] = released.At(i)
	}
	p.seen = append(p.seen, bins)
	p.n += released.N()
	p.estimate()
}

// share is p̂, that of rewards won of all: from .005 to .995, and a half before a release.
func (p *HistogramTS) share() float64 {
	if p.n == 0 {
		return 0.5
	}
	var won float64
	for _, bins := range p.seen {
		for i := 1; i < len(bins); i += 2 {
			won += bins[i]
		}
	}
	return min(max(won/float64(p.n), 0.005), 0.995)
}

// estimate makes the posterior of what was released, and its draws.
func (p *HistogramTS) estimate() {
	share := p.share()
	clear(p.p)
	clear(p.h)
	chance := share * (1 - share)
	noise := float64(p.mechanism.BinVariance() * float64(1-2*chance)) // (1−p̂)² + p̂²
	off := (1 - 2*share) / float64(1-2*chance)
	for _, bins := range p.seen {
		for c := range p.p {
			a, b := bins[2*c], bins[2*c+1]
			e := b - float64(share*(a+b))
			n := a + b - float64(off*e)
			if !(n > 0) {
				continue
			}
			w := n / (float64(n*chance) + noise)
			p.p[c] += float64(w * n)
			p.h[c] += float64(w * e)
		}
	}
	tau, best := 0.0, math.Inf(-1)
	for _, k := range [...]float64{.1, .2, .4, .8} {
		if x := p.posterior(k * min(share, 1-share)); x > best {
			tau, best = k*min(share, 1-share), x
		}
	}
	p.posterior(tau)
	p.stale = true // whoever plays releases again tosses no coin
}

// posterior makes Σ⁻¹ and μ for a prior of this deviation, and returns the log of the evidence for it, but for
// what is the same for all. τ is of rows whose largest number is 1.
func (p *HistogramTS) posterior(tau float64) (evidence float64) {
	prior := 1 / float64(tau*tau)
	v := p.now.v
	clear(v)
	clear(p.mu)
	for j := range p.dim {
		v[j*(j+1)/2+j] = prior
	}
	for c, weight := range p.p {
		x, at := p.rows.Row(c), p.at[p.start[c]:p.start[c+1]]
		for i, j := range at {
			y := x[j] / p.scale
			p.mu[j] += float64(y * p.h[c])
			for _, k := range at[:i+1] {
				v[j*(j+1)/2+k] += float64(weight * float64(y*float64(x[k]/p.scale)))
			}
		}
	}
	copy(p.u, p.mu)
	if !p.now.refactor() {
		return math.Inf(-1)
	}
	p.now.solve(p.mu, p.mu)
	evidence = float64(float64(p.dim)*math.Log(prior)) - p.now.logDet()
	for j, x := range p.u {
		evidence += float64(x * p.mu[j])
	}
	return evidence / 2
}

// draw makes the scores of all rows in M draws from the posterior.
func (p *HistogramTS) draw() {
	p.stale = false
	p.now.root(p.w)
	scores, n := p.scores, p.rows.Len()
	for range p.o.Draws {
		copy(p.u, p.mu)
		w := p.w
		for i := range p.dim { // μ + α·Wᵀz
			z := float64(p.o.Alpha * p.coins.Normal())
			for j, y := range w[:i+1] {
				p.u[j] += float64(z * y)
			}
			w = w[i+1:]
		}
		for c := range n {
			scores[c] = p.score(p.u, c)
		}
		scores = scores[n:]
	}
}

// score is ⟨θ,x_c⟩.
func (p *HistogramTS) score(theta []float64, c int) (s float64) {
	x := p.rows.Row(c)
	for _, j := range p.at[p.start[c]:p.start[c+1]] {
		s += float64(theta[j] * float64(x[j]/p.scale))
	}
	return s
}

// Choose plays the best action of one of the draws. It looks at the actions of this round, which are private, and
// keeps nothing of them.
func (p *HistogramTS) Choose(actions []float64) Choice {
	p.t++
	return Choice{Action: p.Sample(actions)}
}

// Sample is the best action of one of the draws, chosen uniformly: the first of equals. The caller sees to it that
// there are len(actions) = K·d numbers, K ≥ 1. Of a vector that is no row the score is −∞.
func (p *HistogramTS) Sample(actions []float64) int {
	p.look(actions)
	return p.best(int(p.coins.Float64() * float64(p.o.Draws)))
}

// Best is the action that is best by the posterior's mean, and changes nothing.
func (p *HistogramTS) Best(actions []float64) (best int) {
	p.find(actions)
	top := math.Inf(-1)
	for i, c := range p.picks {
		if c < 0 {
			continue
		}
		if score := p.score(p.mu, c); score > top {
			best, top = i, score
		}
	}
	return best
}

// Draw makes counts, one an action, of the draws in which each is best, and returns M: over M they are the
// probabilities with which actions are played. The draws stay the same until the next release.
func (p *HistogramTS) Draw(actions []float64, counts []int) (draws int) {
	p.look(actions)
	clear(counts)
	for m := range p.o.Draws {
		counts[p.best(m)]++
	}
	return p.o.Draws
}

// look finds the rows of the actions.
func (p *HistogramTS) look(actions []float64) {
	if p.stale {
		p.draw()
	}
	p.find(actions)
}

// find has the rows of the actions in picks.
func (p *HistogramTS) find(actions []float64) {
	p.picks = p.picks[:0]
	for ; len(actions) >= p.dim; actions = actions[p.dim:] {
		p.picks = append(p.picks, p.rows.Find(actions[:p.dim]))
	}
}

// best is the best of the actions that were looked at, in draw m.
func (p *HistogramTS) best(m int) (best int) {
	scores, top := p.scores[m*p.rows.Len():][:p.rows.Len()], math.Inf(-1)
	for i, c := range p.picks {
		if c >= 0 && scores[c] > top {
			best, top = i, scores[c]
		}
	}
	return best
}

// Estimate is by component of a vector: ⟨θ,x⟩ is the mean of a reward in [−1,1], where an intercept can have
// its p̂, else less what is the same for all. How far it may be off is not known, and 0.
func (p *HistogramTS) Estimate() (theta []float64, radius float64) {
	theta = slices.Clone(p.mu)
	for j := range theta {
		theta[j] *= 2 / p.scale
	}
	if p.constant >= 0 {
		theta[p.constant] += (2*p.share() - 1) / p.rows.Row(0)[p.constant]
	}
	return theta, 0
}

var _ Contextual = (*HistogramTS)(nil)
