package design

import (
	"math"
	"slices"
)

// A solver looks for the design in coordinates of the span. In its comments ω_i =
// ‖x_i‖²_{V⁻¹} and H = V(π)⁻¹.
type solver struct {
	k, r   int
	x      []float64 // k×r
	pivots []int
	p      []float64 // π
	w      []float64 // ω, of the live actions
	live   []int     // the actions that steps look at, see screen; increasing
	h      []float64 // r×r, H
	// r×r, lower triangular: inverse of the Cholesky factor of V as of the last factor
	li    []float64
	v     []float64 // r×r scratch
	hx, t []float64 // H·x_j and x_iᵀHx_j of the step's action j
	steps int
}

func newSolver(c coords, k int) *solver {
	r := c.rank
	s := &solver{k: k, r: r, x: c.x, pivots: c.pivots, live: make([]int, k)}
	f := make([]float64, 3*k+3*r*r+r)
	cut := func(n int) []float64 {
		part := f[:n:n]
		f = f[n:]
		return part
	}
	s.p, s.w, s.h, s.li, s.v, s.hx, s.t = cut(k), cut(k), cut(r*r), cut(r*r), cut(r*r), cut(r), cut(k)
	return s
}

// start sets the first weights: uniform on the pivots, or those given.
func (s *solver) start(weights []float64) {
	if weights == nil {
		for _, p := range s.pivots {
			s.p[p] = 1 / float64(s.r)
		}
		return
	}
	sum := 0.0
	for i, v := range weights {
		if row := s.row(i); dot(row, row) > 0 { // a zero action would waste its weight
			s.p[i] = v
			sum += v
		}
	}
	if sum > 0 {
		for i := range s.p {
			s.p[i] /= sum
		}
	}
	// Where V has no pivot to speak of, it lacks the direction of a basis vector, and
	// that is an action.
	var missing []int
	s.factor(func(l int) bool { missing = append(missing, l); return true })
	for _, l := range missing {
		s.p[s.pivots[l]] += 1 / float64(s.r)
	}
	s.normalise()
}

func (s *solver) normalise() {
	sum := 0.0
	for _, v := range s.p {
		sum += v
	}
	for i := range s.p {
		s.p[i] /= sum
	}
}

func (s *solver) row(i int) []float64 { return s.x[i*s.r : (i+1)*s.r] }

// variance is ω_i as of the last factor.
func (s *solver) variance(i int) float64 {
	x, sum := s.row(i), 0.0
	for l := range s.r {
		v := dot(s.li[l*s.r:l*s.r+l+1], x[:l+1])
		sum += float64(v * v)
	}
	return sum
}

// factor computes V from the weights, its Cholesky factor and H, from scratch. If weak is not nil
// it is told of each basis vector whose direction is nearly missing, and 1/r of it is added to V
// when it answers true. It returns false if V is not positive definite.
func (s *solver) factor(weak func(int) bool) bool {
	r, v := s.r, s.v
	clear(v)
	for i, p := range s.p {
		if p == 0 {
			continue
		}
		x := s.row(i)
		for a := range r {
			if px := p * x[a]; px != 0 {
				subtract(v[a*r:a*r+a+1], x[:a+1], -px)
			}
		}
	}
	// V = LLᵀ in place.
	for a := range r {
		for b := range a + 1 {
			t := v[a*r+b] - dot(v[a*r:a*r+b], v[b*r:b*r+b])
			if a != b {
				v[a*r+b] = t / v[b*r+b]
				continue
			}
			if weak != nil && !(t > 1e-3/float64(r)) && weak(a) {
				t = max(t, 0) + 1/float64(r)
			}
			if !(t > 0) || math.IsInf(t, 1) {
				return false
			}
			v[a*r+a] = math.Sqrt(t)
		}
	}
	li := s.li
	for a := range r {
		li[a*r+a] = 1 / v[a*r+a]
		for b := range a {
			t := 0.0
			for m := b; m < a; m++ {
				t += float64(v[a*r+m] * li[m*r+b])
			}
			li[a*r+b] = -t / v[a*r+a]
		}
	}
	clear(s.h)
	for m := range r {
		for a := range m + 1 {
			subtract(s.h[a*r:a*r+m+1], li[m*r:m*r+m+1], -li[m*r+a])
		}
	}
	return true
}

// fresh factors and computes ω of all actions. It returns their largest.
func (s *solver) fresh() (g float64, ok bool) {
	if !s.factor(nil) {
		return math.Inf(1), false
	}
	for i := range s.w {
		s.w[i] = s.variance(i)
		g = max(g, s.w[i])
	}
	return g, true
}

// solve steps until G ≤ r(1+tol), brings the support to at most r(r+1)/2 actions, and returns the
// G of the result.
func (s *solver) solve(tol float64) (g float64, ok bool) {
	r := float64(s.r)
	limit := r * (1 + tol)
	// Hundreds are usual and a few thousand at MinTolerance: this is for sets that nobody has
	// thought of, so that a caller never hangs.
	most := 20000 + 20*s.k
	for s.steps <= most {
		// Aim a little lower than asked, so that rounding does not bring us back here.
		s.descend(r*(1+tol*0.999), most)
		if s.reduce(); s.size() > s.r*(s.r+1)/2 {
			break // rounding would not let it: not an outcome to pass on
		}
		s.normalise()
		if g, ok = s.fresh(); !ok {
			break
		}
		if g <= limit {
			return max(g, r), true
		}
		s.steps++
	}
	return max(g, r), false
}

func (s *solver) size() (n int) {
	for _, p := range s.p {
		if p > 0 {
			n++
		}
	}
	return n
}

// descend takes steps until ω ≤ goal for all actions.
func (s *solver) descend(goal float64, most int) {
	often := 50 + 2*s.r // steps between factorisations: rounding in H grows with them, slowly
	whole := false      // whether ω is fresh for all actions
	for left := 0; ; left-- {
		if left == 0 {
			g, ok := s.fresh()
			if !ok || g <= goal || s.steps >= most {
				return
			}
			whole, left = true, often
			s.screen()
		}
		up, down := -1, -1
		for _, i := range s.live {
			if up < 0 || s.w[i] > s.w[up] {
				up = i
			}
			if s.p[i] > 0 && (down < 0 || s.w[i] < s.w[down]) {
				down = i
			}
		}
		if !whole && s.w[up] <= goal {
			left = 1 // so it seems: see whether it is
			continue
		}
		whole = false
		s.steps++
		s.step(up, down)
	}
}

// screen sets live: the support, and what has a claim to enter it, ω ≥ r. As ω changes, others may
// get a claim; fresh looks at all of them every so often, and always before the end.
func (s *solver) screen() {
	s.live = s.live[:0]
	for i, w := range s.w {
		if s.p[i] > 0 || w >= float64(s.r) {
			s.live = append(s.live, i)
		}
	}
}

// step takes the one of three steps that gains most in log det V, each with its best length:
// towards action up (Wynn's), away from action down, or from an action of the support to up. The
// last is what makes near-duplicates of the best actions cheap: their weight moves over at once.
func (s *solver) step(up, down int) {
	r := float64(s.r)
	s.products(up, s.hx, s.t)
	// From here to there, δ of weight: log(1 + δ(ω_up−ω_i) − δ²(ω_up·ω_i − ω_{up,i}²)).
	wu := s.w[up]
	from, delta, gain := -1, 0.0, 0.0
	for _, i := range s.live {
		if s.p[i] == 0 || i == up {
			continue
		}
		d := wu - s.w[i]
		if !(d*s.p[i] > gain) {
			continue
		}
		c := float64(wu*s.w[i]) - float64(s.t[i]*s.t[i])
		m := s.p[i]
		if d < 2*c*m {
			m = d / (2 * c)
		}
		if g := float64(m*d) - float64(float64(m*m)*c); g > gain {
			from, delta, gain = i, m, g
		}
	}
	gain = math.Log1p(gain)
	toward := func(w, b float64) float64 { return (r-1)*math.Log1p(-b) + math.Log1p(b*(w-1)) }
	in := (wu/r - 1) / (wu - 1)
	// Away: to the best point of the line through π and the vertex, or until the weight is used up.
	// For ω ≤ 1 there is no best point.
	wd := s.w[down]
	drop := -s.p[down] / (1 - s.p[down])
	away := drop
	if wd > 1 {
		away = max(drop, (wd/r-1)/(wd-1))
	}
	gainIn, gainAway := toward(wu, in), toward(wd, away)
	switch {
	case gain >= gainIn && gain >= gainAway && from >= 0:
		s.update(up, delta, 1)
		s.products(from, s.hx, s.t)
		s.update(from, -delta, 1)
		s.p[up] += delta
		if delta == s.p[from] {
			s.p[from] = 0
		} else {
			s.p[from] -= delta
		}
	case gainIn >= gainAway:
		s.update(up, in/(1-in), 1-in)
		for _, i := range s.live {
			s.p[i] *= 1 - in
		}
		s.p[up] += in
	default:
		s.products(down, s.hx, s.t)
		s.update(down, away/(1-away), 1-away)
		for _, i := range s.live {
			s.p[i] *= 1 - away
		}
		s.p[down] += away
		if away == drop {
			s.p[down] = 0
		}
	}
}

// products sets h to H·x_j and t to x_iᵀHx_j for the live actions.
func (s *solver) products(j int, h, t []float64) {
	r, x := s.r, s.row(j)
	for a := range h {
		h[a] = dot(s.h[a*r:(a+1)*r], x)
	}
	for _, i := range s.live {
		t[i] = dot(s.row(i), h)
	}
}

// update brings H and ω to shrink·(V + κ·x_j x_jᵀ), by the formula of Sherman and Morrison;
// products of j must be in hx and t.
func (s *solver) update(j int, kappa, shrink float64) {
	r := s.r
	c := kappa / (1 + float64(kappa*s.t[j]))
	scale := 1 / shrink
	for a := range r {
		row, cha := s.h[a*r:(a+1)*r], c*s.hx[a]
		for m, v := range s.hx {
			row[m] = scale * (row[m] - float64(cha*v))
		}
	}
	for _, i := range s.live {
		s.w[i] = scale * (s.w[i] - float64(c*float64(s.t[i]*s.t[i])))
	}
}

// reduce brings the support to at most r(r+1)/2 actions, by Carathéodory's theorem for cones: among
// more symmetric matrices x xᵀ than their space has dimensions there is a relation, and moving the
// weights along it until one is 0 leaves V as it is. Of the two ways to move it takes the one in
// which the weights' sum does not grow; dividing by the sum then makes V larger if anything, so G
// does not grow (up to rounding: the caller looks again).
//
// It is a simplex tableau: inv is the inverse of the matrix whose columns are the lifted actions of
// the basis. Slots from filled on have no action yet and hold a unit vector, so that their columns
// of inv are those of the identity: only the first ones are ever touched, and coordinates are put
// in the order in which slots are filled.
func (s *solver) reduce() {
	r := s.r
	m := r * (r + 1) / 2
	n := s.size()
	if n <= m || !s.factor(nil) {
		return
	}
	support := make([]int, 0, n)
	for i, p := range s.p {
		if p > 0 {
			support = append(support, i)
		}
	}
	// Heavy actions first: they make the basis.
	slices.SortStableFunc(support, func(a, b int) int {
		switch {
		case s.p[a] > s.p[b]:
			return -1
		case s.p[a] < s.p[b]:
			return 1
		}
		return 0
	})
	inv, phi, y, white := make([]float64, m*m), make([]float64, m), make([]float64, m), make([]float64, r)
	slot, order, lifted, filled := make([]int, m), make([]int, m), make([]float64, m), 0
	for l := range m {
		inv[l*m+l] = 1
		order[l] = l
	}
	enter := func(l, j int) {
		row := inv[l*m : l*m+filled]
		for a := range row {
			row[a] /= y[l]
		}
		for b := range m {
			if b != l && y[b] != 0 {
				subtract(inv[b*m:b*m+filled], row, y[b])
			}
		}
		slot[l] = j
	}
	for _, j := range support {
		// In the coordinates in which V is the identity, x xᵀ has trace r, nearly.
		for a := range r {
			white[a] = dot(s.li[a*r:a*r+a+1], s.row(j)[:a+1])
		}
		at := 0
		for a := range r {
			for b := range a + 1 {
				lifted[at] = white[a] * white[b] / float64(r)
				at++
			}
		}
		for l, o := range order {
			phi[l] = lifted[o]
		}
		free, sum := -1, 0.0
		for l := range m {
			y[l] = dot(inv[l*m:l*m+filled], phi[:filled])
			if l < filled {
				sum += y[l]
				continue
			}
			y[l] += phi[l]
			if math.Abs(y[l]) > 1e-9 && (free < 0 || math.Abs(y[l]) > math.Abs(y[free])) {
				free = l
			}
		}
		if free >= 0 {
			l := filled
			order[l], order[free] = order[free], order[l]
			y[l], y[free] = y[free], y[l]
			for a := range filled {
				inv[l*m+a], inv[free*m+a] = inv[free*m+a], inv[l*m+a]
			}
			filled++
			enter(l, j)
			continue
		}
		// φ_j = Σ y_l φ_l. Weight goes to j and off the others if that lowers the sum, 1−Σ y a
		// unit, and the other way round if not.
		sign := 1.0
		if sum < 1 {
			sign = -1
		}
		out, tau := -1, math.Inf(1)
		if sign < 0 {
			tau = s.p[j]
		}
		for l, i := range slot[:filled] {
			if !(sign*y[l] > 1e-9) { // below, a pivot would be rounding
				continue
			}
			if t := s.p[i] / (sign * y[l]); t < tau {
				out, tau = l, t
			}
		}
		if math.IsInf(tau, 1) {
			// cannot be but for rounding: the weights of a relation do not all have one sign
			continue
		}
		for l, i := range slot[:filled] {
			s.p[i] = max(0, s.p[i]-float64(sign*tau*y[l]))
		}
		s.p[j] += sign * tau
		if out < 0 {
			s.p[j] = 0
			continue
		}
		s.p[slot[out]] = 0
		enter(out, j)
	}
}
