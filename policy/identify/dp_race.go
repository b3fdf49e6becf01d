package identify

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A Chooser is an Identifier whose answer may be a set of arms. Its Answer is the first of them, and 0
// where the set is empty.
type Chooser interface {
	Identifier
	// Chosen are the arms of the answer, lowest first; nil as long as Next has not returned nil.
	Chosen() []int
	// Right says whether Chosen is what was asked for, if these are the means of all arms, in [0,1]. Of
	// arms that are as good as one another, any will do.
	Right(means []float64) bool
}

// A RaceGoal is what a DPRace looks for: the Top best arms, or if Top is 0 all arms whose mean is above
// Level.
type RaceGoal struct {
	Top   int
	Level float64
}

// DPRace is successive elimination on disjoint batches with intervals that hold for any noise with a
// tail. It looks for the best arm, for the k best arms, or for all arms whose mean is above a level θ.
// It is ours; without noise its batches are those of Even-Dar, Mannor and Mansour 2002, and its two
// sides, arms that are sure to be in and arms that are sure to be out, those of Kalyanakrishnan and
// Stone 2010 and Gabillon, Ghavamzadeh and Lazaric 2012.
//
// In batch m = 1, 2, … every arm that is not decided gets n_m = 2^{m−1}n_1 plays and one release of their
// sum. With N the rewards in it (fewer if not everybody answered), μ̃_a their noisy mean, τ the tail of
// the noise in a sum on both sides (privacy.Tail.Both) and L_m = log(5Km²/δ), the arm's interval is
//
//	[μ̃_a − r_a, μ̃_a + r_a],   r_a = √(L_m/(2N)) + τ(L_m)/N,
//
// and that of an arm whose users none answered is the whole line. Let S be the arms that are not decided,
// and k' the places that are left, k less the arms that are in. Arm a of S
//
//   - is in if at least |S| − k' arms of S have intervals below its own, and out if at least k' have
//     intervals above it, where the k best are looked for. Once k' is 0 all others are out, and once
//     |S| = k' all are in;
//   - is in if its interval is above θ, and out if it is below, where arms above θ are.
//
// The answer is the arms that are in, when all are decided.
//
// # Theorem
//
// Let rewards in [0,1] be independent. Let Δ_a be by how much arm a of the k best is better than the
// best of the others, or by how much one of these is worse than the worst of the k best; for a level,
// |μ_a − θ|. Let r_m be the largest radius of batch m, and m_a the first batch with 4r_m < Δ_a, or
// 2r_m < Δ_a for a level. With probability at least 1 − δ the answer is right, and every arm a gets at
// most (2^{m_a} − 1)n_1 plays. With n plays an arm r is √(L/(2n)) + τ(L)/n, so that up to log log the
// plays of an arm are
//
//	O(log(K/δ)/Δ_a² + τ(log(K/δ))/Δ_a),
//
// where τ(x) is x/ε for the Laplace noise of one server, √(x/ρ) for normal noise, and √(nx)/ε where each
// of n users adds noise: O(log(K/δ)/(ε²Δ_a²)) plays then. RacePlays computes the bound.
//
// Proof. Fix a table of releases in advance, one for each arm and batch, whether or not it is played:
// n_m and the noise do not depend on it. The mean of N rewards is off by √(L/(2N)) on either side with
// probability at most 2e^{−L} (Hoeffding), and the noise of the sum by τ(L) with at most e^{−L}. So
// some mean is outside its interval in some batch with probability at most
//
//	K Σ_m 3e^{−L_m} = (3/5)δ Σ_m m^{−2} < 0.99δ.
//
// Otherwise, of the k best: an arm of S that is better than |S| − k' others of S is one of the k' best of
// S, and one that is worse than k' others of S is not. So in every batch the k best arms are those that
// are in and the k' best of S. A batch decides at most k' arms to be in: let a be that of them with the
// lowest lower end; the others that are in are not below it, so |S| − k' arms below leave k' at
// most, a among them. Likewise at most |S| − k' are out. If 4r_m < Δ_a and a is one of the k best, each
// of the |S| − k' arms b of S that are not has μ̃_b + r_b ≤ μ_b + 2r_m < μ_a − 2r_m ≤ μ̃_a − r_a, and a is in.
// If a is not one of them, it is below the k' of S that are, and out. For a level it is the same with θ. ∎
//
// # Linear means
//
// Where the means are ⟨θ,x_a⟩ of known vectors x_a, batch m gives arm a of S ⌈2^{m−1}n_1 r π(a)⌉ plays, π a
// G-optimal design of the vectors of S and r their rank (internal/design), and releases a sum of each arm
// that is played. Let N_a be the rewards and V = ΣN_a x_a x_aᵀ. The mean of every arm b of S is then estimated
// by Σ_a c_a S̃_a, c_a = x_bᵀV⁻¹x_a, with no bias, and its radius is
//
//	r_b = √(L_m ΣN_a c_a²/2) + τ(L_m)Σ|c_a|,
//
// which without vectors is that above (c_b = 1/N). The theorem holds with these intervals, m by m: S_m and
// what is played of it follow from earlier batches, and given them at most K estimates are off by the first term
// with probability 2e^{−L} each, and K noises by τ(L) with e^{−L}. Where everybody answers N_a ≥ nπ(a), n =
// 2^{m−1}n_1 r, so that |c_a|, and ΣN_a c_a², are at most ‖x_b‖‖x_a‖ in V⁻¹'s norm, and so at most G/n, G = max ‖x‖² in
// the norm of V(π)⁻¹. With s ≤ r(r+1)/2 arms in the design
//
//	r_m ≤ √(GL_m/(2n)) + Gsτ(L_m)/n,
//
// and an arm is decided in the first batch with 4r_m < Δ_a, or 2r_m: after O(G log(K/δ)/Δ_a² + Gsτ/Δ_a) plays of
// all arms, however many there are. G is at most 1.001r, or more if the design's steps ran out (design.ErrTolerance):
// that costs plays, and no answer, as intervals follow from what was played.
//
// # Logistic means
//
// Where the means are σ(⟨θ,x_a⟩), σ(η) = 1/(1+e^{−η}), and |⟨θ,x_a⟩| ≤ B is known, the arms that are played are
// a spanner of the vectors of S: r of them, such that x_b = Σ c_a x_a with |c_a| ≤ 2 for every b of S (Awerbuch and
// Kleinberg 2004). Each gets ⌈2^{m−1}n_1⌉ plays. The ends of its interval above, cut to [σ(−B),σ(B)],
// are ends for ⟨θ,x_a⟩ by σ⁻¹; they give ends for ⟨θ,x_b⟩, term by term of Σ c_a⟨θ,x_a⟩, and these give ends for the mean
// of b by σ. If the intervals of the arms that are played hold, so do those of all. Let κ = σ'(B), the least of σ' on
// [−B,B], which is at most 1/4. An interval of radius ρ on an arm's mean is one of length at most 2ρ/κ on ⟨θ,x_a⟩, so
// that of b has length at most rρ_m/κ, ρ_m the largest radius. The theorem holds with rρ_m/(2κ) for r_m: an arm is
// decided in the first batch with 2rρ_m < κΔ_a, or rρ_m < κΔ_a for a level, after O(r³ log(K/δ)/(κΔ_a)² +
// r²τ/(κΔ_a)) plays of all arms.
//
// # Privacy
//
// A reward is in one release, of sensitivity 1, and everything else is post-processing: it costs what one
// release costs, in every currency and under every trust model.
//
// If the k-th and the next arm are as good, or a mean is θ, it never stops.
type DPRace struct {
	goal   RaceGoal
	mech   privacy.Mechanism
	risk   float64
	first  int
	places int // that are left: k'

	fit     *fit // nil: means have no structure
	batches int
	lo, hi  []float64 // ends of the intervals of alive
	los     []float64 // the same, sorted
	his     []float64
	alive   []int
	in      []int // nil until it has stopped
	done    bool
	batch   policy.Batch
}

// SetVectors tells it the vectors of all arms, and how means follow from them. Call it before the first Next.
func (p *DPRace) SetVectors(x [][]float64, link Link) error {
	f, err := newFit(x, len(p.alive), link)
	if err != nil {
		return fmt.Errorf("dp-race: %w", err)
	}
	p.fit = f
	return nil
}

// NewDPRace returns the rule for a number of arms ≥ 2, a budget, a risk δ in (0,1) and a goal. First is
// the plays of an arm's first batch; 0 is ⌈8/ε⌉, at least 16, where for other noise than Laplace's 1/ε is
// its standard deviation over √2. Noise is Laplace's for privacy.Pure, normal for others, and none for
// privacy.None.
func NewDPRace(arms int, budget privacy.Budget, risk float64, goal RaceGoal, first int) (*DPRace, error) {
	fail := func(err error) (*DPRace, error) { return nil, fmt.Errorf("dp-race: %w", err) }
	if err := checkTask(arms, risk); err != nil {
		return fail(err)
	}
	switch {
	case goal.Top < 0 || goal.Top >= arms:
		return fail(fmt.Errorf("k is %d, must be at least 1 and below the number of arms, %d", goal.Top, arms))
	case goal.Top == 0 && !(goal.Level > 0 && goal.Level < 1):
		return fail(fmt.Errorf("level is %v, must be above 0 and below 1", goal.Level))
	case first < 0 || first >= longest:
		return fail(fmt.Errorf("first is %d, must be at least 1 and below 2^50, or 0 for the default", first))
	}
	mech, unit, err := oneNoise(budget)
	if err != nil {
		return fail(err)
	}
	if first == 0 {
		if x := math.Ceil(max(leastFirst, 8*unit)); x < longest {
			first = int(x)
		} else {
			return fail(fmt.Errorf("budget is %v, must be so large that 8/ε is below 2^50", budget))
		}
	}
	p := &DPRace{goal: goal, mech: mech, risk: risk, first: first, places: goal.Top, alive: make([]int, arms)}
	for a := range p.alive {
		p.alive[a] = a
	}
	p.batch.Plays = make([]policy.Play, 0, arms)
	return p, nil
}

// oneNoise is Laplace noise for a pure budget and normal noise for others, and its standard deviation
// over √2.
func oneNoise(budget privacy.Budget) (privacy.Mechanism, float64, error) {
	switch budget.(type) {
	case nil, privacy.Pure, privacy.None:
		epsilon, err := epsilonOf(budget)
		return privacy.Laplace{Scale: 1 / epsilon}, 1 / epsilon, err
	}
	sigma, err := privacy.GaussianSigma(budget)
	return privacy.Gaussian{Sigma: sigma}, sigma / math.Sqrt2, err
}

// Mechanism implements policy.Policy.
func (p *DPRace) Mechanism() privacy.Mechanism { return p.mech }

// Answer implements Identifier: see Chooser.
func (p *DPRace) Answer() int {
	switch {
	case !p.done:
		return -1
	case len(p.in) == 0:
		return 0
	}
	return p.in[0]
}

// Chosen implements Chooser.
func (p *DPRace) Chosen() []int {
	if !p.done {
		return nil
	}
	return slices.Clone(p.in)
}

// Right implements Chooser.
func (p *DPRace) Right(means []float64) bool {
	if !p.done || p.goal.Top > 0 && len(p.in) != p.goal.Top {
		return false
	}
	worst, best := math.Inf(1), math.Inf(-1) // of those that are in, and of the others
	for a, m := range means {
		if _, in := slices.BinarySearch(p.in, a); in {
			worst = min(worst, m)
		} else {
			best = max(best, m)
		}
	}
	if p.goal.Top > 0 {
		return worst >= best
	}
	return worst >= p.goal.Level && best <= p.goal.Level
}

// Next implements policy.Policy.
func (p *DPRace) Next(released privacy.Released) *policy.Batch {
	if p.done {
		return nil
	}
	if n := released.Len(); n > 0 && n == len(p.batch.Plays) { // one sum for each, or nothing
		p.look(released)
		p.decide()
	}
	if len(p.alive) == 0 {
		p.done = true
		slices.Sort(p.in)
		return nil
	}
	n := math.Ldexp(float64(p.first), p.batches)
	p.batches++
	p.batch.Plays = p.batch.Plays[:0]
	if n >= longest { // no horizon reaches the end of this
		p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: p.alive[0], Rounds: policy.Forever})
		return &p.batch
	}
	if p.fit != nil {
		p.batch.Plays = p.fit.plays(p.batch.Plays, p.alive, func(rank int) float64 { return n * float64(rank) })
		return &p.batch
	}
	for _, a := range p.alive {
		p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: int(n), Release: true})
	}
	return &p.batch
}

// level is L_m.
func (p *DPRace) level(arms int) float64 {
	m := float64(p.batches)
	return math.Log(5 * float64(arms) * m * m / p.risk)
}

// look computes the intervals of the arms that are not decided.
func (p *DPRace) look(released privacy.Released) {
	if p.lo == nil {
		p.lo, p.hi = make([]float64, len(p.alive)), make([]float64, len(p.alive))
		p.los, p.his = make([]float64, len(p.alive)), make([]float64, len(p.alive))
	}
	x := p.level(len(p.lo)) // K, not those that are left: the union is over the whole table
	noise := released.Tail().Both(x)
	if p.fit != nil {
		p.fit.intervals(released, p.batch.Plays, p.alive, x, noise, func(i int, lo, hi float64) {
			p.lo[i], p.hi[i] = lo, hi
		})
		return
	}
	for i := range p.alive {
		n := float64(released.N(i))
		if n == 0 {
			p.lo[i], p.hi[i] = math.Inf(-1), math.Inf(1)
			continue
		}
		mean, r := released.Mean(i), math.Sqrt(x/(2*n))+noise/n
		p.lo[i], p.hi[i] = mean-r, mean+r
	}
}

// decide takes the arms that are sure out of those that are alive.
func (p *DPRace) decide() {
	k, all := p.places, len(p.alive)
	los, his := p.los[:all], p.his[:all]
	copy(los, p.lo)
	copy(his, p.hi)
	slices.Sort(los)
	slices.Sort(his)
	kept := p.alive[:0]
	for i, a := range p.alive {
		var in, out bool
		if p.goal.Top > 0 {
			below, _ := slices.BinarySearch(his, p.lo[i]) // upper ends under its lower one
			above := all - upTo(los, p.hi[i])
			in, out = below >= all-k, above >= k
		} else {
			in, out = p.lo[i] > p.goal.Level, p.hi[i] < p.goal.Level
		}
		switch {
		case in:
			p.in = append(p.in, a)
			p.places--
		case !out:
			kept = append(kept, a)
		}
	}
	p.alive = kept
	if p.goal.Top > 0 && p.places == len(p.alive) {
		p.in = append(p.in, p.alive...)
		p.places, p.alive = 0, p.alive[:0]
	}
	if p.goal.Top > 0 && p.places == 0 {
		p.alive = p.alive[:0]
	}
}

// upTo is how many of the sorted numbers are at most x.
func upTo(sorted []float64, x float64) int {
	i, _ := slices.BinarySearchFunc(sorted, x, func(y, x float64) int {
		if y <= x {
			return -1
		}
		return 1
	})
	return i
}

// RacePlays is the bound of DPRace's theorem: of each arm's plays, with probability at least 1 − δ and
// all at once, if everybody answers and a release of n rewards has noise of this tail. It is
// policy.Forever for an arm that is never decided.
func RacePlays(means []float64, risk float64, goal RaceGoal, first int,
	tail func(n int) privacy.Tail) ([]int, error) {
	if err := checkTask(len(means), risk); err != nil {
		return nil, err
	}
	if goal.Top < 0 || goal.Top >= len(means) || first < 1 || tail == nil {
		return nil, fmt.Errorf("k is %d and first %d, must be below the number of arms, %d, and at least 1, "+
			"with a tail", goal.Top, first, len(means))
	}
	sorted := slices.Clone(means)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	p := &DPRace{risk: risk}
	out := make([]int, len(means))
	for a, mu := range means {
		gap := math.Abs(mu-goal.Level) / 2 // of one radius
		if goal.Top > 0 {
			if gap = (mu - sorted[goal.Top]) / 4; mu < sorted[goal.Top-1] || gap == 0 {
				gap = (sorted[goal.Top-1] - mu) / 4
			}
		}
		out[a] = policy.Forever
		for n, m := first, 1; n < longest/2; n, m = 2*n, m+1 {
			p.batches = m
			x := p.level(len(means))
			if math.Sqrt(x/(2*float64(n)))+tail(n).Both(x)/float64(n) < gap {
				out[a] = 2*n - first
				break
			}
		}
	}
	return out, nil
}
