package linear

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// A factor is a positive definite matrix V that grows by rank-one terms, and its root-free Cholesky
// factor V = LDLᵀ. Everything asked of it is answered by substitution; V⁻¹ is never formed. All
// slices are flat, and products are rounded before they are added, so that results do not depend on
// the architecture (smallest excepted).
type factor struct {
	n int
	v []float64 // lower triangle of V, row by row
	// column by column, from the diagonal down: D_j, then column j of L below its 1
	l       []float64
	x       []float64 // scratch of n
	spare   []float64 // scratch as l
	updates int       // since l was last computed from v
	least   float64   // that a pivot can be, where that is known
}

// refactorEvery is after how many updates L and D are computed anew from V. An update's rounding
// error is relative to the factor (the terms are added, so D only grows), so even 10⁶ updates lose
// few digits; this keeps it so for runs of any length, at no cost that can be measured.
const refactorEvery = 1 << 14

// newFactor returns the factor of λI.
func newFactor(n int, lambda float64) *factor {
	m := n * (n + 1) / 2
	numbers := make([]float64, 3*m+n)
	f := &factor{n: n, v: numbers[:m:m], l: numbers[m : 2*m : 2*m], spare: numbers[2*m : 3*m : 3*m],
		x: numbers[3*m:]}
	row, column := 0, 0
	for i := range n {
		f.v[row+i], f.l[column] = lambda, lambda
		row += i + 1
		column += n - i
	}
	return f
}

// add makes V into V + aaᵀ and returns det V/det(V + aaᵀ), which is in (0,1] (Gill, Golub, Murray
// and Saunders 1974, method C1).
func (f *factor) add(a []float64) float64 {
	v := f.v
	for i, y := range a {
		if y != 0 {
			for j, z := range a[:i+1] {
				v[j] += float64(y * z)
			}
		}
		v = v[i+1:]
	}
	x := f.x[:len(a)]
	copy(x, a)
	l, alpha := f.l, 1.0
	for len(x) > 0 {
		p, d := x[0], l[0]
		q := float64(alpha * p)
		grown := d + float64(q*p)
		inverse := 1 / grown
		beta := float64(q * inverse)
		alpha *= float64(d * inverse)
		l[0] = grown
		below := l[1:len(x)]
		for r, y := range x[1:] {
			y -= float64(p * below[r])
			below[r] += float64(beta * y)
			x[r+1] = y
		}
		l, x = l[len(x):], x[1:]
	}
	if f.updates++; f.updates >= refactorEvery {
		f.refactor()
	}
	return alpha
}

// refactor computes L and D from V. It returns false, and leaves them as they were, if V is not
// positive definite in these numbers: where V's condition is beyond their digits the updated factor
// is still right, for its D cannot fall.
func (f *factor) refactor() bool {
	f.updates = 0
	n, l := f.n, f.spare
	at := func(j int) int { return j*n - j*(j-1)/2 } // of D_j; L_ij is i−j after it
	for j := range n {
		column := l[at(j):][:n-j]
		for i := j; i < n; i++ {
			column[i-j] = f.v[i*(i+1)/2+j]
		}
		// the columns before, from row j on, and what each is taken off by
		from := func(k int) (below []float64, by float64) {
			left := l[at(k):][:n-k]
			return left[j-k:][:len(column)], float64(left[j-k] * left[0])
		}
		k := 0
		for ; k+4 <= j; k += 4 { // four columns at a time, in their order: a quarter of the stores
			a, w := from(k)
			b, x := from(k + 1)
			c, y := from(k + 2)
			d, z := from(k + 3)
			for i := range column {
				column[i] = column[i] - float64(a[i]*w) - float64(b[i]*x) - float64(c[i]*y) - float64(d[i]*z)
			}
		}
		for ; k < j; k++ {
			below, by := from(k)
			for i, z := range below {
				column[i] -= float64(z * by)
			}
		}
		d := max(column[0], f.least)
		column[0] = d
		if !(d > 0 && d <= math.MaxFloat64) {
			return false
		}
		for i := range column[1:] {
			column[i+1] /= d
		}
	}
	f.l, f.spare = l, f.l
	return true
}

// logDet is log det V.
func (f *factor) logDet() float64 {
	var x float64
	for j, at := 0, 0; j < f.n; j++ {
		x += math.Log(f.l[at])
		at += f.n - j
	}
	return x
}

// solve makes x = V⁻¹b. They may be the same slice.
func (f *factor) solve(x, b []float64) {
	copy(x, b)
	at := 0
	for j := range f.n {
		column := f.l[at:][:f.n-j]
		for i, y := range column[1:] {
			x[j+1+i] -= float64(y * x[j])
		}
		at += f.n - j
	}
	for j := f.n - 1; j >= 0; j-- {
		at -= f.n - j
		column := f.l[at:][:f.n-j]
		y := x[j] / column[0]
		for i, z := range column[1:] {
			y -= float64(z * x[j+1+i])
		}
		x[j] = y
	}
}

// root makes w the lower triangle, row by row, of W = D^{-1/2}L⁻¹: WᵀW = V⁻¹, so that ‖Wa‖₂ is ‖a‖
// in the norm of V⁻¹.
func (f *factor) root(w []float64) {
	n := f.n
	clear(w)
	for i := range n { // row i of L⁻¹, by substitution: the unit vector less the rows above it
		row := w[i*(i+1)/2:][:i+1]
		row[i] = 1
		k, at := 0, 0
		for ; k+2 <= i; k += 2 { // two rows at a time, in their order
			z, x := f.l[at+i-k], f.l[at+n-k+i-k-1] // L_ik and the next
			upper, lower := w[k*(k+1)/2:][:k+1], w[(k+1)*(k+2)/2:][:k+2]
			both := lower[:len(upper)]
			for j, y := range upper {
				row[j] = row[j] - float64(z*y) - float64(x*both[j])
			}
			row[k+1] -= float64(x * lower[k+1])
			at += 2*(n-k) - 1
		}
		for ; k < i; k++ {
			z := f.l[at+i-k]
			for j, y := range w[k*(k+1)/2:][:k+1] {
				row[j] -= float64(z * y)
			}
			at += n - k
		}
	}
	at := 0
	for i := range n {
		s := math.Sqrt(f.l[at])
		at += n - i
		for j := range w[:i+1] {
			w[j] /= s
		}
		w = w[i+1:]
	}
}

// smallest is the smallest eigenvalue of V, NaN if it was not found.
func (f *factor) smallest() float64 {
	s := mat.NewSymDense(f.n, nil)
	for i, at := 0, 0; i < f.n; i++ {
		for j := range i + 1 {
			s.SetSym(i, j, f.v[at])
			at++
		}
	}
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		return math.NaN()
	}
	return e.Values(nil)[0] // they increase
}

// bottom says whether the smallest eigenvalue, which is at least least, is no more than that to nine digits:
// as long as there is a direction that nothing was added in. It may say no where it is so. It takes n²
// operations, n at most a few dozen times, where smallest takes n³: a power iteration, in which for unit x
// 1/xᵀV⁻¹x is never below that eigenvalue, and comes close to it.
func (f *factor) bottom(least float64) bool {
	x, y := f.x, f.spare[:f.n]
	clear(x)
	start, pivot := 0, math.Inf(1)
	for j, at := 0, 0; j < f.n; j++ {
		if f.l[at] < pivot {
			start, pivot = j, f.l[at]
		}
		at += f.n - j
	}
	x[start] = 1
	last := math.Inf(1)
	for range 8 + f.n/4 {
		f.solve(y, x)
		var inner, norm float64
		for i, z := range y {
			inner += float64(x[i] * z)
			norm += float64(z * z)
		}
		above := 1/float64(inner*least) - 1
		if above <= 1e-9 {
			return true
		}
		if !(above < 0.95*last) { // it comes to another
			return false
		}
		last, norm = above, math.Sqrt(norm)
		for i, z := range y {
			x[i] = z / norm
		}
	}
	return false
}

// squaredRoot is ‖Wx‖² for a lower triangle W, row by row. Four rows at a time do not wait for each
// other's sums, which alone is three times as fast; each sum is in the order of its row.
func squaredRoot(w, x []float64) float64 {
	var q float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		n, head := i, x[:i]
		w0, w1, w2, w3 := w[:n+1], w[n+1:][:n+2], w[2*n+3:][:n+3], w[3*n+6:][:n+4]
		w = w[4*n+10:]
		var y0, y1, y2, y3 float64
		r0, r1, r2, r3 := w0[:len(head)], w1[:len(head)], w2[:len(head)], w3[:len(head)]
		for j, z := range head {
			y0 += float64(r0[j] * z)
			y1 += float64(r1[j] * z)
			y2 += float64(r2[j] * z)
			y3 += float64(r3[j] * z)
		}
		x0, x1, x2, x3 := x[n], x[n+1], x[n+2], x[n+3]
		y0 += float64(w0[n] * x0)
		y1 = y1 + float64(w1[n]*x0) + float64(w1[n+1]*x1)
		y2 = y2 + float64(w2[n]*x0) + float64(w2[n+1]*x1) + float64(w2[n+2]*x2)
		y3 = y3 + float64(w3[n]*x0) + float64(w3[n+1]*x1) + float64(w3[n+2]*x2) + float64(w3[n+3]*x3)
		q = q + float64(y0*y0) + float64(y1*y1) + float64(y2*y2) + float64(y3*y3)
	}
	for ; i < len(x); i++ {
		var y float64
		row := w[:i+1]
		for j, z := range x[:i+1] {
			y += float64(row[j] * z)
		}
		w = w[i+1:]
		q += float64(y * y)
	}
	return q
}

// quadratic is xᵀVx for the lower triangle of a symmetric V, row by row.
func quadratic(v, x []float64) float64 {
	var q float64
	for i, y := range x {
		var z float64
		for j := range i {
			z += float64(v[j] * x[j])
		}
		q += float64(y * (2*z + float64(v[i]*y)))
		v = v[i+1:]
	}
	return q
}
