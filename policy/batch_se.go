package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// BatchSE is the batch-based successive elimination of [Chowdhury and Zhou 2023, Algorithm 1].
// Batch b = 1, 2, … plays each of the |Φ| active arms l(b) = η^b times, afresh, releases their
// sums, and drops every arm whose upper confidence bound is below the highest lower one. A reward
// is used once. The last arm cannot be dropped: the upper bound of the arm with the highest lower
// one is no lower. Plays take turns where [Chowdhury and Zhou 2023] play arm after arm, so that the
// last batch, which the horizon cuts and nobody releases, costs less. An arm of whose users none
// answered stays until it is known better.
//
// It states Laplace noise of scale 1/ε for a pure budget, and Gaussian noise for the others; how a
// release is really made, it does not know. With n answers in a sum, the radius is
//
//	√(L/(2n)) + ν/n,   L = log(8|Φ|b²/p),
//
// where ν bounds the noise in the sum, on either side, with probability e^{−L}: from the release's
// own tail. So all true means stay within their radii in all batches with probability 1 − π²p/12 at
// least: two sides of the rewards' Hoeffding bound and the noise have 4e^{−L} = p/(2|Φ|b²) at most,
// for each arm and batch. The rest of p is for sums that are misread (release.Trust). [Chowdhury
// and Zhou 2023, Lemma 2] holds with 1 − 3p, and its τ is not covered by its radius.
//
// # Theorem
//
// Let rewards in [0,1] be independent, everybody answer, and Δ_a be how much worse arm a is than the best. Let l(b) =
// ⌈η^b⌉, τ_n the tail of the noise in a sum of n rewards on either side, L_b = log(8Kb²/p), and b_a the first batch
// with
//
//	4r_b < Δ_a,   r_b = √(L_b/(2l(b))) + τ_{l(b)}(L_b)/l(b).
//
// With probability at least 1 − p every arm a with Δ_a > 0 is played at most Σ_{b ≤ b_a} l(b) times, so that the
// regret is at most Σ_a Δ_a Σ_{b ≤ b_a} l(b) + pT. With p = 1/T and a fixed η it is
//
//	O(Σ_{Δ_a>0} (log(KT)/Δ_a + τ(log(KT)))),
//
// τ the tail in the last batch before b_a that the horizon does not cut: for any noise whose tail is known, in every
// currency and under every trust model.
//
// Proof. While the radii hold, the best arm's upper bound is no lower than its mean, and no lower bound is above that:
// it stays. In batch b_a, if a was not dropped before, all radii are at most r_b, as |Φ| ≤ K, so that μ̃_a + r ≤ μ_a + 2r_b
// < μ* − 2r_b ≤ μ̃_* − r, and a is dropped. A batch that the horizon cuts gives an arm at most l(b) plays. Where the radii
// do not hold the regret is T at most. That is the first part. For the second, let b be the last batch before b_a that
// the horizon does not cut. As 4r_b ≥ Δ_a, one of the two terms of r_b is at least Δ_a/8: l(b) ≤
// max(32L_b/Δ_a², 8τ(L_b)/Δ_a). Arm a is in no batch after b + 1, so that its plays are at most l(b) times a constant,
// which depends on η, or l(1) if there is no such b. And η^b ≤ T, so that L_b ≤ c log(KT) for a constant c ≥ 1, while τ(cx) ≤ cτ(x), as τ(x) = Sigma√(2x) + H(x+Log), Log ≥ 0. ∎
//
// One Laplace noise of scale 1/ε has τ = O(log(KT)/ε), and normal noise O(√(log(KT)/ρ)); a noise of each of n users
// has √n times as much, which where l(b) ≤ 8τ(L_b)/Δ_a is O(log(KT)/(ε²Δ_a)), ε ≤ 1, or O(log(KT)/(ρΔ_a)). [Chowdhury
// and Zhou 2023] have O(Σ log T/Δ_a + K log T/ε) for central and distributed trust (Theorems 1, 2, 4 and 5), and O(Σ log T/(ε²Δ_a))
// under local trust (Theorem 6). There are O(log T) batches.
type BatchSE struct {
	eta, p    float64
	mechanism privacy.Mechanism
	printed   *PrintedRadius // nil: the radius above

	elimination
	b      int
	rounds int // l(b)
}

// A PrintedRadius is a radius of the shape that [Chowdhury and Zhou 2023] print, for its figures:
// √(log(4|Φ|b²/p)/(2l)) + σ√log(2|Φ|b²/p)/l + h·log(2|Φ|b²/p)/l for l rounds, whatever noise
// there really is and however many answered.
type PrintedRadius struct {
	Sigma, H float64
	Local    float64 // σ is Sigma + Local·√l
}

// PrintedPure is the radius of [Chowdhury and Zhou 2023]'s Theorems 1 and 5, for its ε > 0; +Inf is
// no noise, here and below.
func PrintedPure(epsilon float64) PrintedRadius {
	return PrintedRadius{Sigma: math.Sqrt2 / epsilon, H: 1 / epsilon}
}

// PrintedRDP is Theorem 2's, for s ≥ 1 and batches of at least two.
func PrintedRDP(epsilon, s float64) PrintedRadius {
	return PrintedRadius{Sigma: 2/epsilon + math.Sqrt2/(s*epsilon), H: 1 / (s * epsilon)}
}

// PrintedCDP is Theorem 4's.
func PrintedCDP(epsilon, s float64) PrintedRadius {
	return PrintedRadius{Sigma: math.Sqrt2/epsilon + math.Sqrt2/(s*epsilon)}
}

// PrintedLocal is Theorem 6's.
func PrintedLocal(epsilon float64) PrintedRadius {
	return PrintedRadius{Sigma: math.Sqrt2 / epsilon, Local: 2 / epsilon, H: 1 / epsilon}
}

// NewBatchSE returns the policy for a number of arms ≥ 2, a budget (none: no privacy), a
// probability p in (0,1) that any mean leaves its radius, and a ratio eta > 1 of successive
// batches: 2 in [Chowdhury and Zhou 2023]'s text, 4 in its figures.
func NewBatchSE(arms int, budget privacy.Budget, p, eta float64) (*BatchSE, error) {
	fail := func(err error) (*BatchSE, error) { return nil, fmt.Errorf("batch-se: %w", err) }
	if err := checkArms(arms); err != nil {
		return fail(err)
	}
	if err := checkRisk("p", p); err != nil {
		return fail(err)
	}
	if err := checkRatio("eta", eta); err != nil {
		return fail(err)
	}
	mechanism, err := oneShot(budget)
	if err != nil {
		return fail(err)
	}
	return &BatchSE{eta: eta, p: p, mechanism: mechanism, elimination: newElimination(arms)}, nil
}

// SetPrinted has it use a radius that is printed. Call it before the first Next. Fields must be
// finite and at least 0.
func (e *BatchSE) SetPrinted(r PrintedRadius) error {
	for _, f := range []struct {
		name string
		x    float64
	}{{"sigma", r.Sigma}, {"h", r.H}, {"local", r.Local}} {
		if !(f.x >= 0 && f.x <= math.MaxFloat64) {
			return fmt.Errorf("batch-se: %s of the printed radius is %v, must be finite and at "+
				"least 0", f.name, f.x)
		}
	}
	e.printed = &r
	return nil
}

// Epsilon is [Chowdhury and Zhou 2023]'s ε of the mechanism: 1/Scale, or 1/σ = √(2ρ); +Inf
// without privacy.
func (e *BatchSE) Epsilon() float64 {
	switch m := e.mechanism.(type) {
	case privacy.Laplace:
		return 1 / m.Scale
	case privacy.Gaussian:
		return 1 / m.Sigma
	}
	return math.Inf(1)
}

// Mechanism implements Policy.
func (e *BatchSE) Mechanism() privacy.Mechanism { return e.mechanism }

// Next implements Policy.
func (e *BatchSE) Next(released privacy.Released) *Batch {
	if released.Len() == len(e.alive) { // one sum for each, or nothing
		e.eliminate(released)
	}
	e.b++
	e.rounds = roundsOf(math.Pow(e.eta, float64(e.b)) - 1e-9)
	return e.each(e.rounds)
}

func (e *BatchSE) eliminate(released privacy.Released) {
	top := math.Inf(-1)
	for i := range e.alive {
		if released.N(i) > 0 { // else 0/0, which no bound is above
			top = max(top, released.Mean(i)-e.radius(released, i))
		}
	}
	kept := e.alive[:0]
	for i, a := range e.alive {
		if released.N(i) == 0 || released.Mean(i)+e.radius(released, i) >= top {
			kept = append(kept, a)
		}
	}
	e.alive = kept
}

// radius is that of sum i.
func (e *BatchSE) radius(released privacy.Released, i int) float64 {
	b := float64(e.b)
	k := float64(len(e.alive)) * b * b / e.p
	if e.printed != nil {
		l, x := float64(e.rounds), math.Log(2*k)
		sigma := e.printed.Sigma + float64(e.printed.Local*math.Sqrt(l))
		return math.Sqrt(math.Log(4*k)/(2*l)) + float64(sigma*math.Sqrt(x))/l + float64(e.printed.H*x)/l
	}
	l, n := math.Log(8*k), float64(released.N(i))
	return math.Sqrt(l/(2*n)) + oneSided(released.Tail(), l)/n
}

// oneSided is Sigma·√(2x) + H·(x+Log): exceeded on either side with probability e^{−x} at most.
func oneSided(t privacy.Tail, x float64) float64 {
	return float64(t.Sigma*math.Sqrt(2*x)) + float64(t.H*(x+t.Log))
}
