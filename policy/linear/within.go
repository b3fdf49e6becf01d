package linear

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// # What a confidence set says of one direction
//
// Claim: if rewards r_s in [−1,1] have the mean ⟨θ*,a_s⟩ given all that was known before, and ‖θ*‖ ≤ S, then
// with probability at least 1−δ, for all x and at all releases at once,
//
//	|⟨θ̃_τ − θ*, x⟩| ≤ ‖x‖_{V_τ⁻¹}·√(2 log(2/δ) + log(det V_τ/λ^d)) + ‖V_τ⁻¹x‖₂·(λS + y_ℓ + √d·τ·2^-21),
//
// with V_τ, θ̃_τ = V_τ⁻¹(Σ a_s r_s + Y) of the τ decisions that were released in ℓ releases, in order, and y_ℓ what
// the norm of the sum Y of ℓ noises exceeds with probability 3δ/(π²ℓ²).
//
// Proof. By (3) of delay.go ⟨θ̃_τ − θ*, x⟩ = xᵀV_τ⁻¹(S_τ + Y − λθ*), up to the rounding of the sum, whose norm is
// √d·τ·2^-21 at most. The first part is at most ‖x‖_{V⁻¹}‖S_τ‖_{V⁻¹}, which (2) there bounds for all τ at once with δ/2
// (Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 1): rewards of a range of 2 are 1-subgaussian. The others are at
// most ‖V⁻¹x‖₂ times the norms of Y and λθ*; those of Y add up to δ/2 over ℓ = 1, 2, …. The bounds are of S_τ and Y,
// so all x are within them together. ∎
//
// It is the theorem of OFUL's radius, without the step ‖V⁻¹x‖₂ ≤ ‖x‖_{V⁻¹}/√λ_min(V): where a direction is well
// known and another is not, the noise in the one is not paid for the other. How the actions were chosen is not in
// it, as long as that follows from contexts, coins and what was released before: so it holds of LinTS too.
// Noise of people's rewards is discrete: as subgaussian as one that is wider by a few steps of 2^-21, which y_ℓ allows for.

// A ridge is what was released, as least squares with a ridge λ has it.
type ridge struct {
	dim, decisions, releases int
	lambda, sigma            float64   // σ of a release, each coordinate
	growth                   float64   // log(det V/λ^d)
	theta                    []float64 // θ̃
	w                        []float64 // ‖Wx‖₂ = ‖x‖_{V⁻¹}
}

// within is the interval of the claim.
func (r *ridge) within(x []float64, risk, norm float64) (lo, hi float64) {
	d := r.dim
	middle := 0.0
	for i, y := range x {
		middle += float64(y * r.theta[i])
	}
	y, z := make([]float64, d), make([]float64, d) // Wx, and WᵀWx = V⁻¹x
	for i, row := 0, r.w; i < d; i, row = i+1, row[i+1:] {
		for j, q := range row[:i+1] {
			y[i] += float64(q * x[j])
		}
	}
	for i, row := 0, r.w; i < d; i, row = i+1, row[i+1:] {
		for j, q := range row[:i+1] {
			z[j] += float64(q * y[i])
		}
	}
	rest := float64(r.lambda*norm) + math.Sqrt(float64(d))*float64(r.decisions)/(2*vectorSteps)
	if r.sigma > 0 && r.releases > 0 {
		l := float64(r.releases)
		wide := float64(r.sigma*(1+math.Sqrt(float64(d))/vectorSteps)) + 1.0/(1<<24)
		rest += float64(wide * math.Sqrt(float64(l*normalNorm(d, 3*risk/float64(math.Pi*math.Pi*l*l)))))
	}
	half := float64(floats.Norm(y, 2)*math.Sqrt(r.growth-2*math.Log(risk/2))) + float64(floats.Norm(z, 2)*rest)
	return middle - half, middle + half
}

// Within is an interval of ⟨θ*, x⟩ by what was released: it holds for all x, at all releases, together with
// probability at least 1−risk, if rewards have the mean ⟨θ*, a⟩ and ‖θ*‖ ≤ norm. x has d numbers.
func (p *OFUL) Within(x []float64, risk, norm float64) (lo, hi float64) {
	p.settle()
	r := ridge{p.dim, p.tau, p.ell, p.o.Lambda, p.sigma, p.growth, p.theta, p.w}
	return r.within(x, risk, norm)
}

// Within is as OFUL's, of least squares on all that was released, with a ridge of 1: its middle is not
// the estimate, of which nothing is proved. Where old releases count less no θ* is held to be the same for
// all of them, and it has no end.
func (p *LinTS) Within(x []float64, risk, norm float64) (lo, hi float64) {
	if p.o.Memory > 0 {
		return math.Inf(-1), math.Inf(1)
	}
	if p.least == nil {
		f := newFactor(p.dim, 1)
		for i, y := range p.played {
			f.v[i] += y
		}
		f.least = 1
		f.refactor()
		p.least = &ridge{p.dim, p.decisions, p.releases, 1, p.sigma, max(0, f.logDet()), make([]float64, p.dim),
			make([]float64, len(f.v))}
		f.solve(p.least.theta, p.earned)
		f.root(p.least.w)
	}
	return p.least.within(x, risk, norm)
}

// Within is as OFUL's, by the confidence set; it has no end where risk is below that of the set.
func (p *LinUCB) Within(x []float64, risk, norm float64) (lo, hi float64) {
	if risk < p.o.Risk {
		return math.Inf(-1), math.Inf(1)
	}
	middle := 0.0
	for i, y := range x {
		middle += float64(y * p.theta[i])
	}
	half := float64(p.radius+float64(max(0, norm-1)*p.bias)) * math.Sqrt(squaredRoot(p.w, x))
	return middle - half, middle + half
}

// Within is as OFUL's, by the certificate, or by the fallback's set; it has no end where risk is below that of
// both.
func (p *JDPGreedy) Within(x []float64, risk, norm float64) (lo, hi float64) {
	switch {
	case risk < 2*p.o.Risk:
		return math.Inf(-1), math.Inf(1)
	case p.tree != nil:
		return p.tree.Within(x, risk, norm)
	}
	middle := 0.0
	for i, y := range x {
		middle += float64(y * p.theta[i])
	}
	half := float64(p.radius+float64(max(0, norm-1)*p.bias)) * floats.Norm(x, 2)
	return middle - half, middle + half
}
