package identify

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// DPHalving is sequential halving (Karnin, Koren and Somekh 2013) on disjoint batches with one noisy sum
// an arm and batch: it names an arm after a number of plays that is fixed beforehand. Chen, Karthik, Chee and Tan
// (arXiv:2401.09073) ask the question under ε-DP.
//
// With K arms, n plays and R = ⌈log₂K⌉ batches, batch r = 1, …, R gives each arm of S_r, which begins
// with all of them,
//
//	t_r = ⌊n/(R|S_r|)⌋
//
// plays and one release of their sum, and S_{r+1} is the ⌈|S_r|/2⌉ arms of the highest noisy means of
// that batch, lowest arms first. The answer is the arm of S_{R+1}.
//
// # Theorem
//
// Let rewards in [0,1] be independent, one arm * the best, and Δ_(1) ≤ Δ_(2) ≤ … the gaps of the others.
// Let τ_r(x) = Sigma√(2x) + H(x+Log) be the tail of the noise of a sum of batch r, and let x_r ≥ 0
// be the largest x with √(t_r x) + 2τ_r(x) ≤ t_r Δ_(⌊h_r/2⌋+1), where h_r = ⌈|S_r|/2⌉; none if there is no
// such x. The answer is wrong with probability at most
//
//	Σ_r min(1, 3c_r e^{−x_r}),   c_r = (|S_r| − 1 − ⌊h_r/2⌋)/⌈h_r/2⌉ ≤ 3.
//
// So with N_j = n/(j log K) it falls like exp(−Ω(min_j min(Δ_(j)²N_j, εΔ_(j)N_j))) for one Laplace noise of scale 1/ε,
// and like exp(−Ω(min_j min(Δ_(j)²N_j, ρ(Δ_(j)N_j)²))) for one normal noise. HalvingError computes the bound. Where a
// sum may be misread (release.Trust), with a probability of at most P/6 in all, that is added.
//
// Proof. Batch r reads rewards and noise that are independent of S_r. Let * be in S_r, and i another arm
// of it, of gap Δ. The difference of the sums of i and *, t rewards each, is above its mean −tΔ by √(tx)
// or more with probability at most e^{−x} (Hoeffding, 2t rewards in [0,1]), and the noise of each is off
// by τ(x) on the side that hurts with at most e^{−x}. So i is at least as good as * in batch r with
// probability at most 3e^{−x} if √(tx) + 2τ(x) ≤ tΔ. If * is dropped, h = h_r others are at least
// as good. Leave the ⌊h/2⌋ others of the smallest gaps in S_r aside: at least ⌈h/2⌉ of those that remain
// are at least as good as *. There are |S_r| − 1 − ⌊h/2⌋ of these, each of a gap of at least Δ_(⌊h/2⌋+1),
// since the j-th smallest gap in S_r is no smaller than that of all. By Markov's inequality that has
// probability at most c_r·3e^{−x_r}. ∎
//
// # Linear means
//
// Where the means are ⟨θ,x_a⟩ of known vectors, batch r has ⌊n/R⌋ plays by a G-optimal design of the vectors of
// S_r, and arms are compared by least squares, as DPRace has it. For arm i and w = x_i − x_* let c_a = wᵀV⁻¹x_a, A =
// ΣN_a c_a² and B = Σ|c_a| over the s arms that are played. The error of ⟨θ,w⟩ is √(xA/2) + Bτ(x) or more
// with probability at most (1+s)e^{−x}, so that in the theorem x_r is the largest x with that sum at most
// Δ_(⌊h_r/2⌋+1) for every i, and 3 is 1+s. With n' = ⌊n/R⌋ − s > 0 and G that of the design, A is at most 4G/n'
// and B at most 2Gs/n'. Of rank q G is at most 1.001q, or more if the design's steps ran out (design.ErrTolerance).
//
// # Logistic means
//
// Where the means are σ(⟨θ,x_a⟩) and |⟨θ,x_a⟩| ≤ B is known, batch r has ⌊n/(Rq)⌋ = t plays of each arm of a spanner of
// q arms, as DPRace has it, and arms are compared by Σ c_a σ⁻¹(m_a), m_a the noisy mean of arm a cut to [σ(−B),σ(B)].
// σ⁻¹ has slope at most 1/κ there, and cutting brings a mean no farther from the true one, so that with probability
// at least 1 − 3qe^{−x} every arm's comparison is off by at most 2qρ(x)/κ, ρ(x) = √(x/(2t)) + Both(x)/t. An arm of gap Δ is
// 4Δ behind the best in ⟨θ,x⟩ at least, as σ' ≤ 1/4. So if qρ(x_r) < κΔ_(h_r), only h_r − 1 arms can be ahead of the
// best, and the answer is wrong with probability at most Σ_r 3q e^{−x_r}.
//
// # Privacy
//
// A reward is in one release, of sensitivity 1, and when it stops is fixed: it costs what one release
// costs, in every currency and under every trust model.
type DPHalving struct {
	mech   privacy.Mechanism
	plays  int
	rounds int // R
	alive  []int
	means  []float64 // of alive
	fit    *fit      // nil: means have no structure
	answer int
	batch  policy.Batch
}

// NewDPHalving returns the rule for a number of arms ≥ 2, a budget and a number of plays, at least
// K⌈log₂K⌉. Noise is Laplace's for privacy.Pure, normal for others, and none for privacy.None.
func NewDPHalving(arms int, budget privacy.Budget, plays int) (*DPHalving, error) {
	fail := func(err error) (*DPHalving, error) { return nil, fmt.Errorf("dp-halving: %w", err) }
	if err := checkArmsOf(arms); err != nil {
		return fail(err)
	}
	mech, _, err := oneNoise(budget)
	if err != nil {
		return fail(err)
	}
	rounds := halvings(arms)
	if plays/rounds < arms || plays >= longest {
		return fail(fmt.Errorf("plays is %d, must be at least %d for %d arms, and below 2^50", plays,
			arms*rounds, arms))
	}
	p := &DPHalving{mech: mech, plays: plays, rounds: rounds, alive: make([]int, arms),
		means: make([]float64, arms), answer: -1}
	for a := range p.alive {
		p.alive[a] = a
	}
	p.batch.Plays = make([]policy.Play, 0, arms)
	return p, nil
}

// SetVectors tells it the vectors of all arms, and how means follow from them. Call it before the first Next.
func (p *DPHalving) SetVectors(x [][]float64, link Link) error {
	f, err := newFit(x, len(p.alive), link)
	if err != nil {
		return fmt.Errorf("dp-halving: %w", err)
	}
	p.fit = f
	return nil
}

// halvings is ⌈log₂K⌉.
func halvings(arms int) int { return bits.Len(uint(arms - 1)) }

// Mechanism implements policy.Policy.
func (p *DPHalving) Mechanism() privacy.Mechanism { return p.mech }

// Answer implements Identifier.
func (p *DPHalving) Answer() int { return p.answer }

// Next implements policy.Policy.
func (p *DPHalving) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	if n := released.Len(); n > 0 && n == len(p.batch.Plays) {
		p.halve(released)
	}
	if len(p.alive) == 1 {
		p.answer = p.alive[0]
		return nil
	}
	p.batch.Plays = p.batch.Plays[:0]
	if p.fit != nil {
		p.batch.Plays = p.fit.within(p.batch.Plays, p.alive, p.plays/p.rounds)
		return &p.batch
	}
	for _, a := range p.alive {
		p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: p.plays / p.rounds / len(p.alive),
			Release: true})
	}
	return &p.batch
}

// halve keeps the better half.
func (p *DPHalving) halve(released privacy.Released) {
	order := make([]int, len(p.alive))
	for i := range order {
		order[i], p.means[i] = i, math.Inf(-1)
		if p.fit == nil && released.N(i) > 0 { // or nobody answered
			p.means[i] = released.Mean(i)
		}
	}
	if p.fit != nil {
		p.fit.means(released, p.batch.Plays, p.alive, func(i int, mean float64) { p.means[i] = mean })
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case p.means[i] > p.means[j]:
			return -1
		case p.means[i] < p.means[j]:
			return 1
		}
		return 0
	})
	order = order[:(len(order)+1)/2]
	slices.Sort(order)
	for i, j := range order {
		p.alive[i] = p.alive[j]
	}
	p.alive = p.alive[:len(order)]
}

// HalvingError is the bound of DPHalving's theorem: of the probability of a wrong answer on arms of these
// means, of which one is the best, after so many plays, if everybody answers and a release of n rewards
// has noise of this tail, and no sum is misread.
func HalvingError(means []float64, plays int, tail func(n int) privacy.Tail) (float64, error) {
	if err := checkArmsOf(len(means)); err != nil {
		return 0, err
	}
	rounds := halvings(len(means))
	if plays/rounds < len(means) || tail == nil {
		return 0, fmt.Errorf("plays is %d, must be at least %d for %d arms, with a tail", plays,
			len(means)*rounds, len(means))
	}
	gaps := slices.Clone(means)
	slices.Sort(gaps)
	slices.Reverse(gaps)
	for i := 1; i < len(gaps); i++ {
		gaps[i] = gaps[0] - gaps[i] // Δ_(i)
	}
	total := 0.0
	for s := len(means); s > 1; s = (s + 1) / 2 {
		h := (s + 1) / 2
		t := plays / rounds / s
		c := float64(s-1-h/2) / float64((h+1)/2)
		x := deviation(float64(t), gaps[h/2+1], tail(t))
		total += min(1, 3*c*math.Exp(-x))
	}
	return min(1, total), nil
}

// deviation is the largest x with √(tx) + 2τ(x) ≤ tΔ, from below; −Inf if there is none.
func deviation(t, gap float64, tail privacy.Tail) float64 {
	fits := func(x float64) bool {
		noise := float64(tail.Sigma*math.Sqrt(2*x)) + float64(tail.H*(x+tail.Log))
		return math.Sqrt(t*x)+2*noise <= t*gap
	}
	if !(gap > 0) || !fits(0) {
		return math.Inf(-1)
	}
	lo, hi := 0.0, t*gap*gap // without noise
	for range 100 {
		if mid := lo + (hi-lo)/2; fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
