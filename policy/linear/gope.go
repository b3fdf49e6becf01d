package linear

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/internal/design"
	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// GOPE is phased elimination on G-optimal designs for a fixed, finite set A of K actions: AdaC-GOPE
// ([Azize 2024, Algorithm 8], [Azize and Basu 2024, Algorithm 2]). In phase ℓ = 1, 2, … with β_ℓ =
// 2^{−ℓ} it finds a G-optimal design π_ℓ on the surviving actions A_ℓ, plays each a of them T_ℓ(a)
// = ⌈c_ℓπ_ℓ(a)⌉ times, and keeps
//
//	A_{ℓ+1} = {a ∈ A_ℓ : max_b ⟨θ̃_ℓ, b − a⟩ ≤ 2β_ℓ},   θ̃_ℓ = V_ℓ⁺ Σ a_s r_s + V_ℓ^{−1/2}N_ℓ,   V_ℓ = Σ T_ℓ(a) a aᵀ,
//
// from the rewards of this phase alone, N_ℓ ~ N(0,σ²I), where c_ℓ is phaseLength. The last survivor
// is played for ever.
//
// Guarantee: ρ-zCDP of the rewards in the sense of Interactive DP ([Azize 2024, Theorem 5.11], [Azize
// and Basu 2024, Theorem 3]): each reward in [−1,1] is in one release, which it moves by at most 2g
// in the norm that the noise is round in, g² = max ‖a‖²_{V_ℓ⁺}, and σ² = (2/ρ)g² is calibrated to the
// g that the design really has. So a design that is only nearly optimal, and rounding, never cost
// privacy. The sources print σ² = 2d/(ρc_ℓ), which is what g² is at most for an exact design:
// Literal. Other budgets: 4b for 2/ρ, b the variance that the budget asks for at sensitivity 1 [Azize
// and Basu 2024, Appendix C-E]. At budget None it is GOPE without privacy, the same code.
//
// The maximum of g is over the actions that are played: no other reward is in the release, and the
// curator refuses what the plan does not have. The sources take it over all of A_ℓ. That is what
// the accuracy of predictions needs, not privacy, and it is what the phase's length sees to: c_ℓ is
// multiplied by G/d where that is above 1, G = max ‖a‖²_{V(π)⁺} over A_ℓ, since V_ℓ ⪰ c·V(π) then
// has ‖a‖² ≤ d/c_ℓ for every survivor. Who plays another action than the one that is recommended
// must keep its reward out of the release, or the bound 2g is not that action's.
//
// Regret: O(√(dT log(KT))) + O((d/√ρ)(log KT)^{3/2}) at δ = 1/T ([Azize 2024, Theorem 5.12], [Azize
// and Basu 2024, Theorem 4]). With the printed f, f ≥ d, that needs d = O(log(KT)); with Corrected
// it holds for every d.
//
// Where the survivors do not span ℝ^d everything happens on their span; d stays the dimension of
// the actions, as in the sources. Phases follow each other without a gap (the sources' t_{ℓ+1} is
// one too many). A phase is one policy.Batch, whose actions take turns by their shares where the
// sources play one after the other: what is released at its end is the same, and a phase that the
// horizon cuts has played all of them. Only a phase that ends is released: where the horizon cuts
// one off, that costs nothing and teaches nothing.
type GOPE struct {
	o       GOPEOptions
	actions [][]float64
	dim     int
	root4b  float64 // √(4b), √(2/ρ) of zCDP; 0 without privacy
	rank    int     // of all actions

	ell    int
	alive  []int // A_ℓ, increasing
	best   int   // of A_ℓ, as last predicted
	design design.Design
	counts []int // T_ℓ, of all actions
	noise  privacy.Mechanism
	theta  []float64
	mean   []float64
	batch  policy.Batch
}

// GOPEOptions are the parameters of GOPE.
type GOPEOptions struct {
	Risk float64 // δ from 1e-300 to below 1: the probability that the good event fails
	// Literal adds the noise that the sources print, of variance 2d/(ρc_ℓ), wherever it is more
	// than what the budget needs.
	Literal bool
	// Corrected takes 2 log(4/δ) for f(d,δ) in the phases' length: the noise in a given direction
	// has a law that is known exactly, and its tail is all that the proof needs. That is shorter,
	// and makes the theorem's private term linear in d for every d.
	Corrected bool
	// Var adds the noise to the sum of each action's rewards instead: AdaC-GOPE-Var ([Azize and
	// Basu 2024, App. E-C] (ii), Figure 5), σ² = 2/ρ for each. The noise of a prediction then
	// depends on how many actions are played.
	Var bool
	// VarPhases, with Var, is 0 for the same phases and 1 for phases of its own, in whose length
	// |S| stands for d in f and in the noise, S the actions that are played: Σ_b ⟨a, V⁺b⟩² ≤
	// |S|(d/c)² then bounds the noise of a prediction as the theorem wants it. The sources do not
	// say which; of the same phases only privacy is proved.
	VarPhases int
	Tolerance float64 // of the designs, as in design.Options; 0 for its default
}

// NewGOPE returns GOPE for at least two different actions of the same dimension with ‖a‖ ≤ 1, a
// horizon of at least one round and a budget: ZCDP, Approx or Renyi, or None. The phases do not
// depend on the horizon; the first may be longer.
func NewGOPE(actions [][]float64, horizon int, b privacy.Budget, o GOPEOptions) (*GOPE, error) {
	p, err := newGOPE(actions, horizon, b, o)
	if err != nil {
		return nil, fmt.Errorf("gope: %w", err)
	}
	return p, nil
}

func newGOPE(actions [][]float64, horizon int, b privacy.Budget, o GOPEOptions) (*GOPE, error) {
	if err := checkActions(actions); err != nil {
		return nil, err
	}
	switch {
	case horizon < 1:
		return nil, fmt.Errorf("horizon is %d, must be at least 1", horizon)
	case !(o.Risk >= minRisk && o.Risk < 1):
		return nil, fmt.Errorf("risk is %v, must be at least %v and below 1", o.Risk, minRisk)
	case o.VarPhases != 0 && (o.VarPhases != 1 || !o.Var):
		return nil, fmt.Errorf("phases of the noise on sums is %d, must be 0 or, with noise on "+
			"sums, 1", o.VarPhases)
	case o.Tolerance != 0 && !(o.Tolerance >= design.MinTolerance && o.Tolerance <= 1):
		return nil, fmt.Errorf("tolerance is %v, must be 0 for the default, or from %v to 1",
			o.Tolerance, design.MinTolerance)
	}
	sigma, err := privacy.GaussianSigma(b)
	if err != nil {
		return nil, err
	}
	p := &GOPE{
		o: o, dim: len(actions[0]), root4b: 2 * sigma, counts: make([]int, len(actions)),
		theta: make([]float64, len(actions[0])),
		mean:  make([]float64, len(actions)),
	}
	for a := range actions {
		p.actions = append(p.actions, append([]float64(nil), actions[a]...))
		p.alive = append(p.alive, a)
	}
	p.batch.Plays = make([]policy.Play, 0, len(actions))
	if err := p.begin(); err != nil {
		return nil, err
	}
	if err := p.noise.Validate(); err != nil {
		return nil, fmt.Errorf("budget %v: %w", b, err)
	}
	p.rank = p.design.Rank
	return p, nil
}

func checkActions(actions [][]float64) error {
	if len(actions) < 2 {
		return fmt.Errorf("the number of actions is %d, must be at least 2: with one there is "+
			"nothing to learn", len(actions))
	}
	seen := make(map[string]int, len(actions))
	for i, a := range actions {
		if len(a) == 0 || len(a) > maxDim || len(a) != len(actions[0]) {
			return fmt.Errorf("action %d has %d features, must have as many as action 1, from 1 "+
				"to %d", i+1, len(a), maxDim)
		}
		square := 0.0
		key := make([]byte, 0, 8*len(a))
		for j, x := range a {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("feature %d of action %d is %v, must be finite", j+1, i+1, x)
			}
			square += float64(x * x)
			bits := math.Float64bits(x + 0) // −0 is 0
			for range 8 {
				key, bits = append(key, byte(bits)), bits>>8
			}
		}
		if norm := math.Sqrt(square); norm > 1+unitball.Slack {
			return fmt.Errorf("action %d has norm %v, must be at most 1: scale the actions, or "+
				"let normalise do it", i+1, norm)
		}
		if j, twice := seen[string(key)]; twice {
			return fmt.Errorf("actions %d and %d are the same: give each once", j+1, i+1)
		}
		seen[string(key)] = i
	}
	return nil
}

// Rank is the dimension of the actions' span: less than that of the actions if they do not span ℝ^d.
func (p *GOPE) Rank() int { return p.rank }

// Phase is ℓ, the number of the phase that is being played, from 1.
func (p *GOPE) Phase() int { return p.ell }

// Surviving are the actions of A_ℓ, increasing.
func (p *GOPE) Surviving() []int { return append([]int(nil), p.alive...) }

// Estimate is θ̃ of the last phase that has ended, 0 before.
func (p *GOPE) Estimate() []float64 { return append([]float64(nil), p.theta...) }

// Mechanism implements Policy: what releases the phase that the last batch is.
func (p *GOPE) Mechanism() privacy.Mechanism { return p.noise }

// Next implements Policy. What is not a release of this phase, d numbers (K with Var), changes
// nothing, and the phase is played again.
func (p *GOPE) Next(released privacy.ReleasedVector) *policy.Batch {
	want := p.dim
	if p.o.Var {
		want = len(p.actions)
	}
	if len(p.alive) > 1 && released.Len() == want {
		p.estimate(released)
		p.eliminate()
		if err := p.begin(); err != nil {
			p.alive = append(p.alive[:0], p.best) // no error is known to get here
		}
	}
	if len(p.alive) == 1 {
		p.batch.Plays = append(p.batch.Plays[:0], policy.Play{Arm: p.alive[0], Rounds: policy.Forever})
		return &p.batch
	}
	p.batch.Plays = p.batch.Plays[:0]
	for a, n := range p.counts {
		if n > 0 {
			p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: n, Release: true})
		}
	}
	return &p.batch
}

// begin plans the next phase.
func (p *GOPE) begin() error {
	p.ell++
	if len(p.alive) == 1 {
		return nil
	}
	rows := make([][]float64, len(p.alive))
	for i, a := range p.alive {
		rows[i] = p.actions[a]
	}
	o := design.Options{Tolerance: p.o.Tolerance}
	if p.ell > 1 {
		o.Start = p.start()
	}
	d, err := design.Optimal(rows, o)
	if err != nil && !errors.Is(err, design.ErrTolerance) {
		return err
	}
	p.design = d
	clear(p.counts)
	c := p.phaseLength(len(d.Support))
	// more plays than there will be
	t, err := d.Counts(min(c*max(1, d.G/float64(p.dim)), min(1<<50, math.MaxInt/4)))
	if err != nil {
		return err
	}
	for i, a := range p.alive {
		p.counts[a] = t[i]
	}
	return p.calibrate(c)
}

// start is the last design without the actions that have been dropped, nil if nothing of it is left.
func (p *GOPE) start() []float64 {
	w := make([]float64, len(p.alive))
	left := false
	for i, a := range p.alive {
		w[i] = float64(p.counts[a])
		left = left || w[i] > 0
	}
	if !left {
		return nil
	}
	return w
}

func (p *GOPE) phaseLength(support int) float64 {
	risk := phaseRisk(p.o.Risk, len(p.actions), p.ell)
	f := phaseNormal(p.dim, risk)
	root := p.root4b
	switch {
	case p.o.Corrected:
		f = 2 * math.Log(4/risk)
	case p.o.VarPhases == 1:
		// √((2|S|/ρ)f(|S|,δ)) in place of √((2/ρ)f(d,δ)).
		f = phaseNormal(support, risk)
	}
	if p.o.VarPhases == 1 {
		root *= math.Sqrt(float64(support))
	}
	return phaseLength(p.dim, p.ell, risk, f, root)
}

// calibrate makes the mechanism of this phase, c is the printed c_ℓ.
func (p *GOPE) calibrate(c float64) error {
	if p.o.Var {
		p.noise = privacy.Sums{Sigma: p.root4b}
		return nil
	}
	m, err := privacy.NewElliptic(0, p.actions, p.counts)
	if err != nil {
		return err
	}
	g2 := m.G2()
	if p.o.Literal {
		g2 = max(g2, float64(p.dim)/c)
	}
	m, err = m.WithSigma(float64(p.root4b * math.Sqrt(g2)))
	p.noise = m
	return err
}

// estimate is θ̃ = V⁺x, where x is the release, or Σ a·s̃_a of the sums released. With W of rows
// √T(a)·a, V = WᵀW: from the singular values and right vectors of W, whose condition number is
// the root of V's.
func (p *GOPE) estimate(released privacy.ReleasedVector) {
	x := make([]float64, p.dim)
	if p.o.Var {
		for a, n := range p.counts {
			if n > 0 {
				for i, y := range p.actions[a] {
					x[i] += float64(y * released.At(a))
				}
			}
		}
	} else {
		for i := range x {
			x[i] = released.At(i)
		}
	}
	exponent := p.scale()
	for j, e := range exponent {
		x[j] = math.Ldexp(x[j], -e)
	}
	w := mat.NewDense(len(p.design.Support), p.dim, nil)
	for i, s := range p.design.Support {
		a := p.alive[s]
		root := math.Sqrt(float64(p.counts[a]))
		for j, y := range p.actions[a] {
			w.Set(i, j, float64(root*math.Ldexp(y, -exponent[j])))
		}
	}
	var f mat.SVD
	if !f.Factorize(w, mat.SVDThinV) {
		return // of finite numbers it always has one
	}
	values := f.Values(nil)
	var v mat.Dense
	f.VTo(&v)
	clear(p.theta)
	for k, s := range values[:min(p.design.Rank, len(values))] {
		var along float64
		for i := range x {
			along += float64(v.At(i, k) * x[i])
		}
		along /= float64(s * s)
		for i := range p.theta {
			p.theta[i] += float64(along * v.At(i, k))
		}
	}
	for j := range p.theta {
		p.theta[j] = math.Ldexp(p.theta[j], -exponent[j])
	}
}

// scale is by which powers of two estimate divides coordinates: those in which all actions are
// small are brought to the scale of the others. As they are, they drown in the rounding of W's
// singular vectors, and what is made of them is divided by the square of their size.
func (p *GOPE) scale() []int {
	exponent, share, largest := make([]int, p.dim), make([]float64, p.dim), make([]float64, p.dim)
	for _, a := range p.alive {
		size := 0.0
		for _, y := range p.actions[a] {
			size = max(size, math.Abs(y))
		}
		_, e := math.Frexp(size)
		for j, y := range p.actions[a] {
			y = math.Abs(y)
			share[j], largest[j] = max(share[j], math.Ldexp(y, -e)), max(largest[j], y)
		}
	}
	for j := range exponent {
		// Less is the rounding of the others, as to package design, and shall not become a direction.
		if share[j] > 1e-13 && share[j] < 1e-3 {
			_, exponent[j] = math.Frexp(largest[j])
		}
	}
	return exponent
}

// eliminate makes A_{ℓ+1}. Whoever is predicted best stays, also where a prediction overflows.
func (p *GOPE) eliminate() {
	top := math.Inf(-1)
	p.best = p.alive[0]
	for _, a := range p.alive {
		m := 0.0
		for i, x := range p.actions[a] {
			m += float64(x * p.theta[i])
		}
		p.mean[a] = m
		if m > top {
			top, p.best = m, a
		}
	}
	width := 2 * math.Ldexp(1, -p.ell)
	kept := p.alive[:0]
	for _, a := range p.alive {
		if a == p.best || top-p.mean[a] <= width {
			kept = append(kept, a)
		}
	}
	p.alive = kept
}

// phaseRisk is δ_{K,ℓ} = δ/(Kℓ(ℓ+1)), the risk of one action in phase ℓ ≥ 1, K the number of
// actions at the start [Azize and Basu 2024, Algorithm 2].
func phaseRisk(risk float64, actions, ell int) float64 {
	return risk / float64(float64(actions)*float64(float64(ell)*float64(ell+1)))
}

// phaseNormal is f(d,δ) = d + 2√(d log(2/δ)) + 2 log(2/δ) of GOPE, which ‖X‖² of X ~ N(0,I_d)
// exceeds with probability at most δ/2 [Azize and Basu 2024, Lemma 10 and Theorem 13]. The f of
// OFUL, normalNorm, is another.
func phaseNormal(dim int, risk float64) float64 { return normalNorm(dim, risk/2) }

// phaseLength is c_ℓ of phase ℓ ≥ 1 [Azize and Basu 2024, (4) and Corollary 1]:
//
//	(8d/β_ℓ²) log(4/δ) + (2d/β_ℓ)·noise·√f,   β_ℓ = 2^{−ℓ},
//
// where δ is phaseRisk, f is phaseNormal, and noise is √(2/ρ), 0 without privacy. The second term
// is what privacy costs.
func phaseLength(dim, ell int, risk, f, noise float64) float64 {
	beta, d := math.Ldexp(1, -ell), float64(dim)
	return float64(8*d/float64(beta*beta)*math.Log(4/risk)) + float64(2*d/beta*float64(noise*math.Sqrt(f)))
}
