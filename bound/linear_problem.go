package bound

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// ErrSpan is matched by the error for actions that do not span their space.
var ErrSpan = errors.New("the actions do not span their space")

// ErrLarge is matched by the error for more actions, or more bases, than LinearProblem goes through.
var ErrLarge = errors.New("too large to solve")

const (
	mostActions = 128
	mostBases   = 1 << 20
)

// A LinearConstant is c(A,θ) of [Azize 2024, Theorem 4.18]: a consistent policy has liminf
// Reg_T/log T ≥ c(A,θ).
type LinearConstant struct {
	Value float64 // what Plays attains: an upper bound on c
	Low   float64 // a lower bound on c, from the dual
	// Plays is α, plays of each action for each log T; the best action's are free, and 0 here.
	Plays []float64
}

// LinearProblem is
//
//	c(A,θ) = inf Σ α(a)Δ_a  such that  ‖a‖²_{H_α⁻¹} ≤ min(Δ_a²/(2σ²), εΔ_aρ_a(A)/(2σ)) for all a with Δ_a > 0,   H_α = Σ α(a)aaᵀ,
//
// [Azize 2024, Theorem 4.18] (σ = 1 there), for actions that span ℝ^d with one best. The second
// constraint is privacy's; at ε = +Inf it is the constant of Lattimore and Szepesvári 2017. ρ_a(A)
// is not the printed one, which rests on Lemma B.1: that lemma is false. It is the maximum of
// ‖A_B⁻¹(a−a*)‖₁ over the bases B of d actions, which is what the lemma should say: the proof needs
// Σ_j N_j|a_jᵀG⁻¹x| for G = Σ N_j a_j a_jᵀ and x = a − a*, the 1-norm of the solution u of Σ u_j
// a_j = x that is least in Σ u_j²/N_j; by Cauchy and Binet that u is a mean of the basic solutions,
// with weights det(A_B)² Π_{j∈B} N_j.
//
// The best action costs nothing, so α(a*) goes to infinity, and norms are those of the
// projections b_a along a*: on them the problem is convex. It is solved by Newton's steps along a
// barrier, −Σ_a log det[H b_a; b_aᵀ m_a] − Σ log α_a. For every λ ≥ 0 and M ≻ 0, with W = Σ λ_a
// b_a b_aᵀ, duality has
//
//	c ≥ min_a Δ_a/‖b_a‖²_{M⁻¹WM⁻¹} · tr(WM⁻¹)²/Σ λ_a m_a,
//
// which certifies Low. It takes at most 128 actions and 2^20 bases, and otherwise has ErrLarge.
func LinearProblem(actions [][]float64, theta []float64, sigma, epsilon float64) (LinearConstant, error) {
	none := LinearConstant{}
	if theta == nil {
		return none, errors.New("bound: there is no theta")
	}
	if err := checkActions(actions, theta); err != nil {
		return none, fmt.Errorf("bound: %w", err)
	}
	if !(sigma > 0 && sigma <= 1e100) {
		return none, fmt.Errorf("bound: sigma is %v, must be above 0 and finite", sigma)
	}
	if !(epsilon > 0) {
		return none, fmt.Errorf("bound: epsilon is %v, must be above 0", epsilon)
	}
	if len(actions) > mostActions {
		return none, fmt.Errorf("bound: %d actions, at most %d: %w", len(actions), mostActions, ErrLarge)
	}
	means := make([]float64, len(actions))
	for i, a := range actions {
		means[i] = dot(a, theta)
	}
	best, err := checkMeans(means, -1e200, 1e200)
	if err != nil {
		return none, err
	}
	if rankOf(actions) < len(actions[0]) {
		return none, fmt.Errorf("bound: rank %d in dimension %d: %w", rankOf(actions), len(actions[0]), ErrSpan)
	}
	var rho []float64
	if !math.IsInf(epsilon, 1) {
		if rho, err = basisNorms(actions, best); err != nil {
			return none, err
		}
	}
	out := LinearConstant{Plays: make([]float64, len(actions))}
	b := project(actions, best)
	var vs [][]float64
	var gaps, m []float64
	var at []int
	for a, v := range b {
		gap := means[best] - means[a]
		if a == best || v == nil || norm2(v) <= 1e-24*norm2(actions[a]) { // along a*: known already
			continue
		}
		limit := gap * gap / (2 * sigma * sigma)
		if rho != nil {
			limit = min(limit, epsilon*gap*rho[a]/(2*sigma))
		}
		vs, gaps, m, at = append(vs, v), append(gaps, gap), append(m, limit), append(at, a)
	}
	if len(vs) == 0 {
		return out, nil
	}
	value, low, alpha, err := minimise(vs, gaps, m)
	if err != nil {
		return none, err
	}
	out.Value, out.Low = value, low
	for i, a := range at {
		out.Plays[a] = alpha[i]
	}
	return out, nil
}

func norm2(v []float64) float64 { return dot(v, v) }

func rankOf(actions [][]float64) int {
	a := mat.NewDense(len(actions), len(actions[0]), nil)
	for i, v := range actions {
		a.SetRow(i, v)
	}
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDNone) {
		return 0
	}
	s := svd.Values(nil)
	r := 0
	for _, x := range s {
		if x > 1e-10*s[0] {
			r++
		}
	}
	return r
}

// project has the coordinates of all actions on an orthonormal basis of what is orthogonal to the
// best; nil where that is nothing.
func project(actions [][]float64, best int) [][]float64 {
	d := len(actions[0])
	var basis [][]float64
	length := math.Sqrt(norm2(actions[best]))
	var unit []float64
	if length > 0 {
		for _, x := range actions[best] {
			unit = append(unit, x/length)
		}
		basis = append(basis, unit)
	}
	for j := 0; j < d && len(basis) < d; j++ { // Gram and Schmidt on the axes, twice each
		e := make([]float64, d)
		e[j] = 1
		for range 2 {
			for _, u := range basis {
				c := dot(e, u)
				for i := range e {
					e[i] -= float64(c * u[i])
				}
			}
		}
		if l := math.Sqrt(norm2(e)); l > 1e-8 {
			for i := range e {
				e[i] /= l
			}
			basis = append(basis, e)
		}
	}
	if unit != nil {
		basis = basis[1:]
	}
	out := make([][]float64, len(actions))
	if len(basis) == 0 {
		return out
	}
	for i, a := range actions {
		out[i] = make([]float64, len(basis))
		for j, u := range basis {
			out[i][j] = dot(a, u)
		}
	}
	return out
}

// basisNorms is ρ_a(A) = max_B ‖A_B⁻¹(a − a*)‖₁ for each a, or above it, and never below: a ρ that
// is too small would make the lower bound too high. Rounding is on top, by what the condition of
// the basis allows; where that is too bad to say, ρ is +Inf, which leaves the bound without
// privacy. A basis is left out only if its determinant is 0 in exact arithmetic.
func basisNorms(actions [][]float64, best int) ([]float64, error) {
	k, d := len(actions), len(actions[0])
	bases := 1.0
	for i := range d {
		bases = bases * float64(k-i) / float64(i+1)
	}
	if bases > mostBases {
		return nil, fmt.Errorf("bound: %.3g bases of %d actions, at most %d: %w", bases, d, mostBases, ErrLarge)
	}
	x := mat.NewDense(d, k, nil)
	for a, v := range actions {
		for i := range d {
			x.Set(i, a, v[i]-actions[best][i])
		}
	}
	out := make([]float64, k)
	pick := make([]int, d)
	for i := range pick {
		pick[i] = i
	}
	m := mat.NewDense(d, d, nil)
	var lu mat.LU
	var u mat.Dense
	for {
		for j, a := range pick {
			m.SetCol(j, actions[a])
		}
		lu.Factorize(m)
		solved := false
		if cond := lu.Cond(); cond < worstCondition {
			u.Reset()
			if solved = lu.SolveTo(&u, false, x) == nil; solved {
				// The error of a solution is cond·2⁻⁵³ times a small multiple of d, and the
				// condition is an estimate.
				slack := 1 + 16*float64(d*d)*cond*0x1p-52
				for a := range k {
					s := 0.0
					for i := range d {
						s += math.Abs(u.At(i, a))
					}
					out[a] = max(out[a], s*slack)
				}
			}
		}
		if !solved && !singular(actions, pick) {
			for a := range out {
				if a != best {
					out[a] = math.Inf(1)
				}
			}
			return out, nil
		}
		i := d - 1
		for i >= 0 && pick[i] == k-d+i {
			i--
		}
		if i < 0 {
			return out, nil
		}
		pick[i]++
		for j := i + 1; j < d; j++ {
			pick[j] = pick[j-1] + 1
		}
	}
}

// worstCondition is that of a basis from which on rounding is not bounded.
const worstCondition = 1e8

// belowPowers are n and k such that 2ⁿ − k is prime: the largest one below 2ⁿ.
var belowPowers = [...][2]uint64{{63, 25}, {62, 57}, {61, 1}, {60, 93}, {59, 55}, {58, 27},
	{57, 13}, {56, 5}, {55, 55}, {54, 33}, {53, 111}}

// singular says whether the picked actions are linearly dependent, exactly. Floating-point numbers
// are integers times powers of two, which a determinant does not mind. It is 0 if it is 0 modulo
// primes of which the product is above Hadamard's bound on it, and is not 0 if one of them says so.
// Where the primes do not suffice the answer is no.
func singular(actions [][]float64, pick []int) bool {
	d := len(pick)
	// each row's smallest exponent, and the bits of the determinant
	least, need := make([]int, d), 0.0
	for i, a := range pick {
		lo, hi := math.MaxInt, math.MinInt
		for _, x := range actions[a] {
			if _, e := math.Frexp(x); x != 0 {
				lo, hi = min(lo, e), max(hi, e)
			}
		}
		if lo > hi {
			return true // the action is 0
		}
		least[i] = lo
		need += float64(53+hi-lo) + math.Log2(float64(d))/2
	}
	for _, n := range belowPowers {
		p := 1<<n[0] - n[1]
		m := make([][]uint64, d)
		for i, a := range pick {
			for _, x := range actions[a] {
				mantissa, e := math.Frexp(math.Abs(x))
				y := uint64(math.Ldexp(mantissa, 53)) % p
				for ; x != 0 && e > least[i]; e-- {
					y = times(2, y, p)
				}
				if x < 0 && y > 0 {
					y = p - y
				}
				m[i] = append(m[i], y)
			}
		}
		if !singularModulo(m, p) {
			return false
		}
		if need -= float64(n[0] - 1); need < 0 {
			return true
		}
	}
	return false
}

// singularModulo says whether a square matrix is singular modulo a prime. It is overwritten.
func singularModulo(m [][]uint64, p uint64) bool {
	for k := range m {
		at := slices.IndexFunc(m[k:], func(row []uint64) bool { return row[k] != 0 })
		if at < 0 {
			return true
		}
		m[k], m[k+at] = m[k+at], m[k]
		for i := k + 1; i < len(m); i++ {
			f := m[i][k]
			for j := k; j < len(m); j++ {
				m[i][j] = (times(m[i][j], m[k][k], p) + p - times(f, m[k][j], p)) % p
			}
		}
	}
	return false
}

// times is x·y modulo p, for x, y < p < 2⁶³.
func times(x, y, p uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return bits.Rem64(hi, lo, p)
}

// minimise solves min Δ·α such that v_aᵀ(Σ α v vᵀ)⁻¹v_a ≤ m_a, α ≥ 0, with a certified gap
// of at most 1e-6.
func minimise(vs [][]float64, gaps, m []float64) (value, low float64, alpha []float64, err error) {
	n, d := len(vs), len(vs[0])
	// In units of their costs: w_a = Δ_aα_a and v_a/√m_a ≤ 1.
	v := mat.NewDense(n, d, nil)
	for a := range vs {
		for i, x := range vs[a] {
			v.Set(a, i, x/math.Sqrt(m[a]))
		}
	}
	weight := make([]float64, n) // aaᵀ enters H with α = w/Δ, and rows are v/√m: factor m/Δ
	for a := range weight {
		weight[a] = m[a] / gaps[a]
	}
	gram := func(w []float64) (*mat.Cholesky, *mat.SymDense, bool) { // H and V H⁻¹Vᵀ
		h := mat.NewSymDense(d, nil)
		row := mat.NewVecDense(d, nil)
		for a := range n {
			row.CopyVec(v.RowView(a))
			h.SymRankOne(h, w[a]*weight[a], row)
		}
		var c mat.Cholesky
		if !c.Factorize(h) {
			return nil, nil, false
		}
		var s mat.Dense // H⁻¹Vᵀ
		if err := c.SolveTo(&s, v.T()); err != nil {
			return nil, nil, false
		}
		g := mat.NewSymDense(n, nil) // V H⁻¹ Vᵀ
		var full mat.Dense
		full.Mul(v, &s)
		for a := range n {
			for b := a; b < n; b++ {
				g.SetSym(a, b, (full.At(a, b)+full.At(b, a))/2)
			}
		}
		return &c, g, true
	}
	w := make([]float64, n)
	for a := range w {
		w[a] = 1
	}
	_, g, ok := gram(w)
	if !ok {
		return 0, 0, nil, fmt.Errorf("bound: the actions are too near a smaller space: %w", ErrSpan)
	}
	scale := func() float64 {
		top := 0.0
		for a := range n {
			top = max(top, g.At(a, a))
		}
		return top
	}
	top := scale()
	for a := range w {
		w[a] *= 2 * top // then all norms are at most ½
	}
	_, g, _ = gram(w)
	sum := func(w []float64) (s float64) {
		for _, x := range w {
			s += x
		}
		return s
	}
	barrier := func(t float64, w []float64, c *mat.Cholesky, g *mat.SymDense) float64 {
		f := t*sum(w) - float64(n)*c.LogDet()
		for a := range n {
			s := 1 - g.At(a, a)
			if !(s > 0 && w[a] > 0) {
				return math.Inf(1)
			}
			f -= math.Log(s) + math.Log(w[a])
		}
		return f
	}
	low = 0
	best := math.Inf(1)
	alpha = make([]float64, n)
	t := float64(n*(d+2)) / sum(w)
	for range 60 {
		for range 60 {
			c, gg, ok := gram(w)
			if !ok {
				return 0, 0, nil, fmt.Errorf("bound: the constant could not be solved for: %w", ErrLarge)
			}
			g = gg
			// Gradient and Hessian of the barrier in w; weight[c] is dH/dw_c.
			s := make([]float64, n)
			for a := range n {
				s[a] = 1 - g.At(a, a)
			}
			grad := mat.NewVecDense(n, nil)
			gdg := mat.NewDense(n, n, nil)
			scaled := mat.NewDense(n, n, nil)
			jac := mat.NewDense(n, n, nil) // ∂q_a/∂w_c · 1/s_a
			for a := range n {
				for e := range n {
					scaled.Set(a, e, g.At(a, e)/s[a])
					jac.Set(a, e, -weight[e]*g.At(a, e)*g.At(a, e)/s[a])
				}
			}
			gdg.Mul(g, scaled)
			hess := mat.NewSymDense(n, nil)
			var jj mat.Dense
			jj.Mul(jac.T(), jac)
			for e := range n {
				x := t - float64(n)*weight[e]*g.At(e, e) - 1/w[e]
				for a := range n {
					x += jac.At(a, e)
				}
				grad.SetVec(e, x)
				for f := e; f < n; f++ {
					y := weight[e]*weight[f]*g.At(e, f)*(2*gdg.At(e, f)+float64(n)*g.At(e, f)) + jj.At(e, f)
					if e == f {
						y += 1 / (w[e] * w[e])
					}
					hess.SetSym(e, f, y)
				}
			}
			// Steps in the units of w, or small weights spoil the factors.
			unit := mat.NewSymDense(n, nil)
			right := mat.NewVecDense(n, nil)
			for e := range n {
				right.SetVec(e, -grad.AtVec(e)*w[e])
				for f := e; f < n; f++ {
					unit.SetSym(e, f, hess.At(e, f)*w[e]*w[f])
				}
			}
			var hc mat.Cholesky
			if !hc.Factorize(unit) {
				break
			}
			var step mat.VecDense
			if err := hc.SolveVecTo(&step, right); err != nil {
				if !hasSolution(err) {
					break
				}
			}
			decrement := mat.Dot(&step, right)
			if !(decrement > 1e-10) {
				break
			}
			now, size := barrier(t, w, c, g), 1.0
			moved := false
			for range 60 {
				next := make([]float64, n)
				fine := true
				for e := range n {
					next[e] = w[e] * (1 + size*step.AtVec(e))
					fine = fine && next[e] > 0
				}
				if fine {
					if nc, ng, ok := gram(next); ok && barrier(t, next, nc, ng) <= now-0.25*size*decrement {
						w, moved = next, true
						break
					}
				}
				size /= 2
			}
			if !moved {
				break
			}
		}
		c, gg, ok := gram(w)
		if !ok {
			break
		}
		g = gg
		top := scale()
		if v := top * sum(w); v < best {
			best = v
			for a := range w {
				alpha[a] = top * w[a] / gaps[a]
			}
		}
		low = max(low, dual(v, weight, c, g))
		if best-low <= 1e-6*best {
			break
		}
		t *= 8
	}
	if !(low > 0) || !(best-low <= 1e-3*best) {
		return 0, 0, nil, fmt.Errorf("bound: the constant could not be solved for: it is from %v "+
			"to %v: %w", low, best, ErrLarge)
	}
	return best, low, alpha, nil
}

func hasSolution(err error) bool {
	var c mat.Condition
	return errors.As(err, &c)
}

// dual is the certificate at λ_a ∝ 1/s_a, the multipliers of the barrier, in the scaled problem:
// all m are 1 and all costs are those of w.
func dual(v *mat.Dense, weight []float64, c *mat.Cholesky, g *mat.SymDense) float64 {
	n, d := v.Dims()
	lambda, total := make([]float64, n), 0.0
	for a := range n {
		lambda[a] = 1 / max(1e-300, 1-g.At(a, a))
		total += lambda[a]
	}
	// W = Σ λ v vᵀ, X = M⁻¹W M⁻¹; ‖v_e‖²_X·weight_e is what action e's cost must cover.
	wm := mat.NewSymDense(d, nil)
	trace := 0.0
	row := mat.NewVecDense(d, nil)
	for a := range n {
		row.CopyVec(v.RowView(a))
		wm.SymRankOne(wm, lambda[a], row)
		trace += lambda[a] * g.At(a, a)
	}
	s2 := math.Inf(1)
	for e := range n {
		var x mat.VecDense
		row.CopyVec(v.RowView(e))
		if err := c.SolveVecTo(&x, row); err != nil && !hasSolution(err) {
			return 0
		}
		s2 = min(s2, 1/(weight[e]*mat.Inner(&x, wm, &x)))
	}
	return s2 * trace * trace / total
}
