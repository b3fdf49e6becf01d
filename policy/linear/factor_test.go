package linear

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// worst is the largest relative difference between what f answers and what gonum computes from s:
// log det, V⁻¹b, ‖a‖_{V⁻¹} and aᵀVa.
func worst(t testing.TB, f *factor, s *mat.SymDense, a, b []float64) float64 {
	t.Helper()
	var c mat.Cholesky
	if !c.Factorize(s) {
		t.Fatal("the matrix of the test is not positive definite")
	}
	va, vb := mat.NewVecDense(f.n, a), mat.NewVecDense(f.n, b)
	var x, y mat.VecDense
	if err := c.SolveVecTo(&x, vb); err != nil {
		t.Fatal(err)
	}
	if err := c.SolveVecTo(&y, va); err != nil {
		t.Fatal(err)
	}
	got := make([]float64, f.n)
	f.solve(got, b)
	var diff, size float64
	for i := range got {
		diff = max(diff, math.Abs(got[i]-x.AtVec(i)))
		size = max(size, math.Abs(x.AtVec(i)))
	}
	w := make([]float64, len(f.v))
	f.root(w)
	want := mat.Dot(va, &y)
	out := max(diff/size, math.Abs(squaredRoot(w, a)/want-1))
	out = max(out, math.Abs(f.logDet()-c.LogDet())/max(1, math.Abs(c.LogDet())))
	out = max(out, math.Abs(quadratic(f.v, a)/mat.Inner(va, s, va)-1))
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		t.Fatal("no eigenvalues")
	}
	return max(out, math.Abs(f.smallest()/e.Values(nil)[0]-1))
}

func TestFactorIsCholesky(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "n")
		lambda := rapid.Float64Range(0.01, 10).Draw(rt, "lambda")
		m := rapid.IntRange(0, 40).Draw(rt, "m")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		f := newFactor(n, lambda)
		s := mat.NewSymDense(n, nil)
		for i := range n {
			s.SetSym(i, i, lambda)
		}
		normal := func() []float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = rng.NormFloat64()
			}
			return x
		}
		before := 0.0
		for range m {
			a := normal()
			s.SymRankOne(s, 1, mat.NewVecDense(n, a))
			before = f.logDet()
			shrunk := f.add(a)
			if d := before - f.logDet() - math.Log(shrunk); math.Abs(d) > 1e-11 {
				rt.Fatalf("add says that det shrinks by %v, log det by %v more", shrunk, d)
			}
		}
		if d := worst(t, f, s, normal(), normal()); d > 1e-9 {
			rt.Fatalf("off by %v", d)
		}
		updated := append([]float64(nil), f.l...)
		if !f.refactor() {
			rt.Fatal("V is not positive definite")
		}
		for i := range updated {
			if d := math.Abs(updated[i] - f.l[i]); d > 1e-9*max(1, math.Abs(f.l[i])) {
				rt.Fatalf("entry %d is %v after updates and %v from V", i, updated[i], f.l[i])
			}
		}
	})
}

// A million updates: V is kept beside the factor with compensated sums. The factor must stay within
// 1e-9 of it, with and without being computed anew on the way.
func TestFactorDoesNotDrift(t *testing.T) {
	for _, n := range []int{3, 8} {
		for _, never := range []bool{false, true} {
			if never && n > 3 {
				continue
			}
			rng := rand.New(rand.NewPCG(7, uint64(n)))
			f := newFactor(n, 0.1)
			m := n * (n + 1) / 2
			sum, low := append([]float64(nil), f.v...), make([]float64, m)
			a := make([]float64, n)
			steps := testkit.Size(100_000, 1_000_000)
			for range steps {
				for i := range a {
					// most of it in one direction, as an optimist's plays are
					a[i] = 0.4 + 0.2*rng.NormFloat64()
				}
				if never {
					f.updates = 0
				}
				f.add(a)
				k := 0
				for i := range n {
					for j := range i + 1 {
						y := a[i]*a[j] - low[k]
						s := sum[k] + y
						low[k], sum[k] = (s-sum[k])-y, s
						k++
					}
				}
			}
			s := mat.NewSymDense(n, nil)
			for i := range n {
				for j := range i + 1 {
					s.SetSym(i, j, sum[i*(i+1)/2+j])
				}
			}
			b := make([]float64, n)
			for i := range b {
				a[i], b[i] = rng.NormFloat64(), rng.NormFloat64()
			}
			d := worst(t, f, s, a, b)
			t.Logf("n=%d never=%t: off by %.2g", n, never, d)
			if !(d < 1e-9) {
				t.Errorf("n=%d never=%t: off by %v after %d updates", n, never, d, steps)
			}
		}
	}
}

// Where V's condition is beyond the digits, refactor must keep what there is.
func TestFactorKeepsWhatIsRight(t *testing.T) {
	f := newFactor(2, 1e-12)
	for range 100 {
		f.add([]float64{0.6, 0.8})
	}
	f.refactor()
	for i, x := range []float64{f.l[0], f.l[2]} {
		if !(x >= 1e-12/2) {
			t.Errorf("D_%d is %v, must be at least about λ", i+1, x)
		}
	}
	if x := make([]float64, 2); true {
		f.solve(x, []float64{60, 80})
		if math.Abs(0.6*x[0]+0.8*x[1]-1) > 1e-3 {
			t.Errorf("least squares in the direction that was played is %v, want 1", 0.6*x[0]+0.8*x[1])
		}
	}
}

func TestBest3IsScore(t *testing.T) {
	p, err := NewOFUL(3, 100, privacy.ZCDP{Rho: 1}, OFULOptions{Lambda: 0.1, C: 1, Risk: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	a := make([]float64, 30)
	for range 1000 {
		for i := range a {
			a[i] = rng.NormFloat64()
		}
		for i := range p.w {
			p.w[i] = rng.NormFloat64()
		}
		for i := range p.theta {
			p.theta[i] = rng.NormFloat64()
		}
		best, top := p.best3(a)
		for i := range 10 {
			if s := p.score(a[3*i:][:3]); s > top || i == best && s != top {
				t.Fatalf("action %d scores %v; best3 says %d with %v", i, s, best, top)
			}
		}
	}
}

// TestFactorInOrder holds what takes several rows or columns at a time against the plain loops, bit
// for bit: every sum is in its order, so that results do not change with how many are taken.
func TestFactorInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 23).Draw(rt, "n")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		f, x := newFactor(n, 0.5), make([]float64, n)
		for range n {
			for i := range x {
				x[i] = math.Ldexp(rng.NormFloat64(), rng.IntN(8))
			}
			f.add(x)
		}
		if !f.refactor() {
			rt.Fatal("V is not positive definite")
		}
		l, inverse := make([][]float64, n), make([][]float64, n) // by columns and by rows
		for j := range n {
			l[j] = make([]float64, n)
			for i := j; i < n; i++ {
				l[j][i] = f.v[i*(i+1)/2+j]
				for k := range j {
					l[j][i] -= float64(l[k][i] * float64(l[k][j]*l[k][k]))
				}
			}
			for i := j + 1; i < n; i++ {
				l[j][i] /= l[j][j]
			}
		}
		w := make([]float64, len(f.v))
		f.root(w)
		at, norm := 0, 0.0
		for i := range n {
			inverse[i] = make([]float64, n)
			inverse[i][i] = 1
			for k := range i {
				for j := range k + 1 {
					inverse[i][j] -= float64(l[k][i] * inverse[k][j])
				}
			}
			var y float64
			for j := range i + 1 {
				want := inverse[i][j] / math.Sqrt(l[i][i])
				if w[at] != want {
					rt.Fatalf("W[%d][%d] = %v, in order %v", i, j, w[at], want)
				}
				y += float64(want * x[j])
				at++
			}
			norm += float64(y * y)
		}
		if got := squaredRoot(w, x); got != norm {
			rt.Fatalf("‖Wx‖² = %v, in order %v", got, norm)
		}
	})
}

// What bottom says is so, and it says so where nothing was added in some direction, which need be no
// coordinate: there eigenvalues are not computed.
func TestFactorBottom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(t, "n")
		least := math.Ldexp(1, rapid.IntRange(-4, 4).Draw(t, "least"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		f, x, missing := newFactor(n, least), make([]float64, n), rapid.Bool().Draw(t, "missing")
		for range rapid.IntRange(1, 200).Draw(t, "vectors") {
			var sum float64
			for i := range x {
				x[i] = rng.NormFloat64()
				sum += x[i] / float64(n)
			}
			for i := range x {
				if missing { // all are orthogonal to (1, 1, …)
					x[i] -= sum
				}
			}
			f.add(x)
		}
		if is := f.smallest()/least - 1; f.bottom(least) && is > 2e-9 {
			t.Errorf("says that λ is the smallest eigenvalue, which is 1+%g times it", is)
		}
	})
	for _, c := range []int{2, 5, 14} { // as features have it: one of c, one of c, and both
		if n := (c + 1) * (c + 1); !classes(c, 3000).bottom(1) {
			t.Errorf("d = %d: does not see what is missing", n)
		}
	}
}

// classes is V of vectors that say which of c something is, which of c something else, and both.
func classes(c, rounds int) *factor {
	f, rng := newFactor((c+1)*(c+1), 1), rand.New(rand.NewPCG(1, 2))
	for range rounds {
		x, i, j := make([]float64, f.n), rng.IntN(c), rng.IntN(c)
		x[0], x[1+i], x[1+c+j], x[1+2*c+i*c+j] = .5, .5, .5, .5
		f.add(x)
	}
	return f
}

// BenchmarkFactor is what a release costs at d = 225, beside its numbers.
func BenchmarkFactor(b *testing.B) {
	f := classes(14, 3000)
	b.Run("refactor", func(b *testing.B) {
		for b.Loop() {
			f.refactor()
		}
	})
	b.Run("bottom", func(b *testing.B) {
		for b.Loop() {
			f.bottom(1)
		}
	})
	b.Run("smallest", func(b *testing.B) {
		for b.Loop() {
			f.smallest()
		}
	})
}
