package design

import (
	"cmp"
	"math"
)

const (
	// rankTolerance is how far an action's direction must be from the span of others to be a
	// dimension of its own. Actions computed as products of matrices miss their subspace by some
	// 1e-15; this leaves room for a few digits more.
	rankTolerance = 1e-10
	// noiseColumn is what a coordinate must exceed, relative to the largest one of its action, in
	// some action, to be more than the rounding of the others: sin π = 1.2e-16 is not a direction.
	noiseColumn = 1e-13
)

// coords are actions in coordinates of their span: the basis is r of the actions themselves, so
// that those are unit vectors and all others are of order 1, whatever the scale of the input was.
type coords struct {
	rank    int
	x       []float64 // K×rank, row-major; a row of zeros for an action that is zero or outside
	pivots  []int     // the actions of the basis, in its order
	outside []bool    // actions that are not in the span; only if that is a span of some of them
}

// coordinates finds the span of the actions that are in (all of them if it is nil), and
// everyone's coordinates.
//
// There are two passes. The first looks for the rank among directions: with all actions of length
// 1, the largest residual is the next dimension and none that follows is larger, so rounding is
// never blown up. The second chooses the basis, by the largest residual of the actions as they are:
// with uniform weights on this basis log det V is already within O(r log r) of the best (Kumar and
// Yıldırım, JOTA 126, 2005, choose theirs in the same spirit). Sizes are kept as fraction and
// exponent, since squares of the input may overflow.
func coordinates(actions [][]float64, in func(int) bool) coords {
	k, d := len(actions), len(actions[0])
	exp := make([]int, k)
	column := make([]float64, d)
	for i, a := range actions {
		m := 0.0
		for _, v := range a {
			m = max(m, math.Abs(v))
		}
		if m == 0 {
			continue
		}
		_, exp[i] = math.Frexp(m)
		for j, v := range a {
			column[j] = max(column[j], math.Abs(math.Ldexp(v, -exp[i])))
		}
	}
	u := make([]float64, k*d) // directions
	norm := make([]float64, k)
	for i, a := range actions {
		row := u[i*d : (i+1)*d]
		for j, v := range a {
			if column[j] > noiseColumn {
				_, e := math.Frexp(column[j])
				row[j] = math.Ldexp(v, -exp[i]-e)
			}
		}
		norm[i] = math.Sqrt(dot(row, row))
		if norm[i] > 0 {
			for j := range row {
				row[j] /= norm[i]
			}
		}
	}
	c := coords{outside: make([]bool, k)}
	ones, zeros := make([]float64, k), make([]int, k)
	for i := range ones {
		ones[i] = 1
	}
	y, first, least := gramSchmidt(u, k, d, d, ones, zeros, in, rankTolerance)
	r := len(first)
	if in != nil {
		// A dimension that is known from near-duplicates alone is known only to their rounding
		// over their distance.
		allowed := rankTolerance
		if r > 0 {
			allowed = max(allowed, 0x1p-50/least)
		}
		for i := range c.outside {
			row := u[i*d : (i+1)*d] // what is left of it
			c.outside[i] = math.Sqrt(dot(row, row)) > allowed
		}
	}
	if r == 0 {
		return c
	}
	kept := make([]float64, len(y))
	copy(kept, y)
	z, pivots, _ := gramSchmidt(kept, k, r, r, norm, exp, in, 0)
	r2 := len(pivots)
	c.rank, c.pivots, c.x = r2, pivots, make([]float64, k*r2)
	for i := range k {
		if norm[i] == 0 || c.outside[i] {
			continue
		}
		row, zi := c.x[i*r2:(i+1)*r2], z[i*r:]
		// Row i of z is Σ_k row_k·(row p_k of z), and those are lower triangular.
		for l := r2 - 1; l >= 0; l-- {
			v := zi[l]
			for m := l + 1; m < r2; m++ {
				v -= float64(row[m] * z[pivots[m]*r+l])
			}
			row[l] = v / z[pivots[l]*r+l]
		}
		for l, p := range pivots {
			row[l] = math.Ldexp(row[l]*(norm[i]/norm[p]), exp[i]-exp[p])
		}
	}
	for l, p := range pivots {
		row := c.x[p*r2 : (p+1)*r2]
		clear(row)
		row[l] = 1
	}
	return c
}

// gramSchmidt is the modified Gram–Schmidt process with pivoting on the k rows of w, which it
// replaces by their residuals. It returns the coordinates in the orthonormal basis found (k rows of
// most numbers each), which rows were the pivots, and the smallest residual of a pivot. The next
// pivot is the row, among those in, of the largest residual times norm·2^exp; it stops at a
// residual of at most tol.
func gramSchmidt(w []float64, k, d, most int, norm []float64, exp []int, in func(int) bool,
	tol float64) (y []float64, pivots []int, least float64) {
	y = make([]float64, k*most)
	basis := make([]float64, 0, most*d)
	q := make([]float64, d)
	res := make([]float64, k)
	for i := range res {
		row := w[i*d : (i+1)*d]
		res[i] = math.Sqrt(dot(row, row))
	}
	least = math.Inf(1)
	for n := range most {
		p, bestE, bestF := -1, 0, 0.0
		for i, v := range res {
			if !(v > tol) || norm[i] == 0 || in != nil && !in(i) {
				continue
			}
			f, e := math.Frexp(v * norm[i])
			e += exp[i]
			if p < 0 || cmp.Or(cmp.Compare(e, bestE), cmp.Compare(f, bestF)) > 0 {
				p, bestE, bestF = i, e, f
			}
		}
		if p < 0 {
			break
		}
		least = min(least, res[p])
		for j, v := range w[p*d : (p+1)*d] {
			q[j] = v / res[p]
		}
		for range 2 { // once more makes q orthogonal to rounding even after cancellation
			for b := 0; b < len(basis); b += d {
				subtract(q, basis[b:b+d], dot(q, basis[b:b+d]))
			}
			s := math.Sqrt(dot(q, q))
			for j := range q {
				q[j] /= s
			}
		}
		basis = append(basis, q...)
		pivots = append(pivots, p)
		for i := range k {
			row := w[i*d : (i+1)*d]
			c := dot(row, q)
			y[i*most+n] = c
			subtract(row, q, c)
			res[i] = math.Sqrt(dot(row, row))
		}
		clear(w[p*d : (p+1)*d])
		res[p] = 0
	}
	if r := len(pivots); r < most { // rows of r numbers
		for i := range k {
			copy(y[i*r:(i+1)*r], y[i*most:i*most+r])
		}
		y = y[:k*r]
	}
	return y, pivots, least
}

// subtract takes c·q off x.
func subtract(x, q []float64, c float64) {
	q = q[:len(x)]
	for j, v := range q {
		x[j] -= float64(c * v)
	}
}

// dot is ⟨x, y⟩ in four sums, so that one addition need not wait for the last; products are
// rounded, so that it is the same everywhere.
func dot(x, y []float64) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		x4, y4 := x[:4:4], y[:4:4]
		s0 += float64(x4[0] * y4[0])
		s1 += float64(x4[1] * y4[1])
		s2 += float64(x4[2] * y4[2])
		s3 += float64(x4[3] * y4[3])
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += float64(v * y[i])
	}
	return (s0 + s1) + (s2 + s3)
}
