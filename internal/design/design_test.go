package design_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/design"
	"github.com/sotto-dp/sotto/internal/testkit"
)

var near = testkit.Near

func gaussian(rng *rand.Rand, k, d int) [][]float64 {
	a := make([][]float64, k)
	for i := range a {
		a[i] = make([]float64, d)
		for j := range a[i] {
			a[i][j] = rng.NormFloat64()
		}
	}
	return a
}

func normalise(row []float64) {
	s := 0.0
	for _, v := range row {
		s += v * v
	}
	for j := range row {
		row[j] /= math.Sqrt(s)
	}
}

// times is every action through the linear map m.
func times(actions [][]float64, m [][]float64) [][]float64 {
	out := make([][]float64, len(actions))
	for i, a := range actions {
		out[i] = make([]float64, len(m[0]))
		for j := range out[i] {
			for l, v := range a {
				out[i][j] += v * m[l][j]
			}
		}
	}
	return out
}

// reference is ‖a‖²_{V⁺} of every action by another road: gonum's singular values of the matrix of
// rows √w·a, of which V is the Gram matrix; and the rank, and log det V on the span.
func reference(actions [][]float64, weights []float64) (norms []float64, rank int, logDet float64) {
	k, d := len(actions), len(actions[0])
	m := mat.NewDense(max(k, d), d, nil)
	for i, a := range actions {
		for j, v := range a {
			m.Set(i, j, math.Sqrt(weights[i])*v)
		}
	}
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDThin) {
		panic("no singular values")
	}
	sv := svd.Values(nil)
	var v mat.Dense
	svd.VTo(&v)
	for rank < len(sv) && sv[rank] > 1e-11*sv[0] {
		logDet += 2 * math.Log(sv[rank])
		rank++
	}
	norms = make([]float64, k)
	for i, a := range actions {
		for l := range rank {
			t := 0.0
			for j, x := range a {
				t += x * v.At(j, l)
			}
			norms[i] += t * t / (sv[l] * sv[l])
		}
	}
	return norms, rank, logDet
}

// certify checks all that a design promises, from its weights alone.
func certify(actions [][]float64, d design.Design, tol float64) error {
	if len(d.Weights) != len(actions) {
		return fmt.Errorf("%d weights", len(d.Weights))
	}
	sum := 0.0
	var support []int
	for i, p := range d.Weights {
		if !(p >= 0) {
			return fmt.Errorf("weight %v", p)
		}
		if p > 0 {
			support = append(support, i)
		}
		sum += p
	}
	if math.Abs(sum-1) > 1e-12 {
		return fmt.Errorf("weights sum to %v", sum)
	}
	if !slices.Equal(support, d.Support) {
		return fmt.Errorf("support %v, said to be %v", support, d.Support)
	}
	norms, rank, _ := reference(actions, d.Weights)
	if rank != d.Rank {
		return fmt.Errorf("rank %d, said to be %d", rank, d.Rank)
	}
	if len(support) > rank*(rank+1)/2 {
		return fmt.Errorf("support of %d at rank %d", len(support), rank)
	}
	g, r := slices.Max(norms), float64(rank)
	if math.Abs(g-d.G) > 1e-8*g {
		return fmt.Errorf("G is %v, said to be %v", g, d.G)
	}
	if d.G < r || d.G > r*(1+tol) {
		return fmt.Errorf("G = %v, not from %v to %v", d.G, r, r*(1+tol))
	}
	return nil
}

func optimal(t testing.TB, actions [][]float64, o design.Options) design.Design {
	t.Helper()
	d, err := design.Optimal(actions, o)
	if err != nil {
		t.Fatal(err)
	}
	tol := o.Tolerance
	if tol == 0 {
		tol = design.DefaultTolerance
	}
	if err := certify(actions, d, tol); err != nil {
		t.Fatal(err)
	}
	return d
}

func unit(d, i int, scale float64) []float64 {
	e := make([]float64, d)
	e[i] = scale
	return e
}

func TestStandardBasisIsUniform(t *testing.T) {
	for d := 1; d <= 8; d++ {
		var actions [][]float64
		for i := range d {
			// the lengths do not matter
			actions = append(actions, unit(d, i, math.Pow(10, float64(i))))
		}
		got := optimal(t, actions, design.Options{})
		for _, p := range got.Weights {
			near(t, "weight", p, 1/float64(d), 1e-12)
		}
		near(t, "G", got.G, float64(d), 1e-12)
	}
}

func TestRegularPolygonsAndSimplices(t *testing.T) {
	for n := 3; n <= 12; n++ {
		var polygon [][]float64
		for i := range n {
			a := 2 * math.Pi * float64(i) / float64(n)
			polygon = append(polygon, []float64{math.Cos(a), math.Sin(a)})
		}
		d := optimal(t, polygon, design.Options{Tolerance: 1e-6})
		_, _, logDet := reference(polygon, d.Weights)
		near(t, "log det V", logDet, -2*math.Log(2), 2e-6) // V = I/2
	}
	for d := 2; d <= 6; d++ {
		// The d+1 vertices of a simplex around 0: uniform, V = I/d after scaling, and nothing
		// else is optimal.
		var simplex [][]float64
		for i := range d + 1 {
			a := make([]float64, d+1)
			for j := range a {
				a[j] = -1 / float64(d+1)
			}
			a[i]++
			simplex = append(simplex, a)
		}
		got := optimal(t, simplex, design.Options{Tolerance: 1e-8})
		if got.Rank != d {
			t.Fatalf("rank %d of a simplex in %d dimensions", got.Rank, d)
		}
		for _, p := range got.Weights {
			near(t, "weight", p, 1/float64(d+1), 1e-4)
		}
	}
}

// Quadratic regression on [−1,1] puts 1/3 on −1, 0 and 1, and has G = 3; degree 3 puts 1/4 on ±1
// and ±1/√5 (Guest 1958; Hoel 1958).
func TestPolynomialRegression(t *testing.T) {
	grid := func(n, degree int) (actions [][]float64) {
		for i := range n {
			x, row := 2*float64(i)/float64(n-1)-1, make([]float64, degree+1)
			for j := range row {
				row[j] = math.Pow(x, float64(j))
			}
			actions = append(actions, row)
		}
		return actions
	}
	d := optimal(t, grid(201, 2), design.Options{Tolerance: 1e-7})
	near(t, "G", d.G, 3, 3e-7)
	for _, i := range []int{0, 100, 200} {
		near(t, "weight", d.Weights[i], 1./3, 1e-3)
	}
	d = optimal(t, grid(2001, 3), design.Options{Tolerance: 1e-6})
	near(t, "weight of −1", d.Weights[0], 0.25, 1e-3)
	near(t, "weight of 1", d.Weights[2000], 0.25, 1e-3)
	inner := 0.0
	for i, p := range d.Weights {
		if x := math.Abs(float64(i)/1000 - 1); math.Abs(x-1/math.Sqrt(5)) < 0.01 {
			inner += p
		}
	}
	near(t, "weight of ±1/√5", inner, 0.5, 2e-3)
}

func TestOneDimension(t *testing.T) {
	for _, c := range []struct {
		name    string
		actions [][]float64
		want    int
	}{
		{"one action", [][]float64{{0.3, 0.1}}, 0},
		{"d = 1", [][]float64{{0.5}, {-0.9}, {0.9}, {0}}, 1},
		{"collinear", [][]float64{{1, 2, 3}, {0, 0, 0}, {-2, -4, -6}, {0.5, 1, 1.5}}, 2},
		{"0 and π", [][]float64{{0.9, 0}, {math.Cos(math.Pi), math.Sin(math.Pi)}}, 1},
		{"duplicates", [][]float64{{0.1, 0.2}, {0.1, 0.2}, {0.1, 0.2}}, 0},
		{"huge", [][]float64{{1e300, 1e300}, {math.MaxFloat64, math.MaxFloat64}}, 1},
		{"tiny", [][]float64{{5e-324, 5e-324}, {5e-320, 5e-320}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := design.Optimal(c.actions, design.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d.Rank != 1 || d.G != 1 || !slices.Equal(d.Support, []int{c.want}) || d.Weights[c.want] != 1 {
				t.Errorf("got %+v, want action %d alone", d, c.want)
			}
		})
	}
}

// cases draws action sets of every kind: any rank, duplicates, near-duplicates, zeros, collinear
// ones, and sizes over five decades.
func cases(t *rapid.T) [][]float64 {
	seed := rapid.Uint64().Draw(t, "seed")
	d := rapid.IntRange(1, 7).Draw(t, "d")
	r := rapid.IntRange(1, d).Draw(t, "r")
	k := rapid.IntRange(r, 60).Draw(t, "k")
	rng := rand.New(rand.NewPCG(seed, 1))
	actions := gaussian(rng, k, r)
	if d > r {
		actions = times(actions, gaussian(rng, r, d))
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 1: // on the sphere
		for _, a := range actions {
			normalise(a)
		}
	case 2: // duplicates, opposites and zeros after the first r
		for i := r; i < k; i++ {
			c := []float64{1, -1, 0, 0.5}[rng.IntN(4)]
			for j, v := range actions[rng.IntN(r)] {
				actions[i][j] = c * v
			}
		}
	case 3: // near-duplicates
		for i := r; i < k; i++ {
			for j, v := range actions[rng.IntN(r)] {
				actions[i][j] = v + 1e-7*actions[i][j]
			}
		}
	case 4: // sizes
		for i := r; i < k; i++ {
			// the singular values of the reference do not bear more
			c := math.Pow(10, -5*rng.Float64())
			for j := range actions[i] {
				actions[i][j] *= c
			}
		}
	}
	return actions
}

func TestEquivalenceTheorem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actions := cases(t)
		tol := rapid.SampledFrom([]float64{0.1, 1e-3, 1e-5}).Draw(t, "tolerance")
		d, err := design.Optimal(actions, design.Options{Tolerance: tol})
		if err != nil {
			t.Fatal(err)
		}
		if err := certify(actions, d, tol); err != nil {
			t.Fatal(err)
		}
		// The gap of the dual: no distribution has a log det above by more than r·log(G/r).
		_, _, logDet := reference(actions, d.Weights)
		// Any design bounds the best from below: some take more steps than there are.
		best, err := design.Optimal(actions, design.Options{Tolerance: 1e-7})
		if err != nil && !errors.Is(err, design.ErrTolerance) {
			t.Fatal(err)
		}
		_, _, top := reference(actions, best.Weights)
		r := float64(d.Rank)
		if gap := r * math.Log(d.G/r); top-logDet > gap+1e-7 {
			t.Fatalf("log det %v, the best is at least %v: the gap should be at most %v", logDet, top, gap)
		}
		again, _ := design.Optimal(actions, design.Options{Tolerance: tol})
		if !slices.Equal(again.Weights, d.Weights) {
			t.Fatal("not the same twice")
		}
	})
}

func TestSpanAndLinearMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		r := rapid.IntRange(1, 5).Draw(t, "r")
		d := rapid.IntRange(r, 9).Draw(t, "d")
		low := gaussian(rng, rapid.IntRange(r, 40).Draw(t, "k"), r)
		high := times(low, gaussian(rng, r, d))
		scale := rapid.Bool().Draw(t, "scale")
		for _, a := range high {
			for j := range a {
				if scale && d == r { // coordinates in units of their own
					a[j] *= math.Pow(10, float64(2*j))
				}
			}
		}
		o := design.Options{Tolerance: 1e-6}
		a, err := design.Optimal(low, o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := design.Optimal(high, o)
		if err != nil {
			t.Fatal(err)
		}
		if b.Rank != r || a.Rank != r {
			t.Fatalf("ranks %d and %d, want %d", a.Rank, b.Rank, r)
		}
		// The moment matrix of the optimum is unique: each design must be optimal for the other's
		// vectors, to what the two tolerances allow.
		norms, _, one := reference(low, a.Weights)
		_, _, two := reference(low, b.Weights)
		if gap := float64(r) * 2e-6; math.Abs(one-two) > gap {
			t.Fatalf("log det %v and %v", one, two)
		}
		b.G = slices.Max(norms)
		norms, _, _ = reference(low, b.Weights)
		if g := slices.Max(norms); g > float64(r)*(1+1e-6)+1e-6 {
			t.Fatalf("G = %v of the coordinates", g)
		}
	})
}

func TestWarmStart(t *testing.T) {
	warmSteps, coldSteps := 0, 0
	for seed := range uint64(20) {
		actions := sphere(seed, 200, 6)
		cold := optimal(t, actions, design.Options{Tolerance: 1e-4})
		if again := optimal(t, actions, design.Options{Tolerance: 1e-4,
			Start: cold.Weights}); again.Steps != 0 {
			t.Errorf("%d steps from the optimum", again.Steps)
		}
		// One action of the support is eliminated, and the weights are not normalised.
		out := cold.Support[0]
		rest, start := slices.Delete(slices.Clone(actions), out, out+1),
			slices.Delete(slices.Clone(cold.Weights), out, out+1)
		warm, again := optimal(t, rest, design.Options{Tolerance: 1e-4, Start: start}),
			optimal(t, rest, design.Options{Tolerance: 1e-4})
		warmSteps, coldSteps = warmSteps+warm.Steps, coldSteps+again.Steps
	}
	t.Logf("%d steps warm, %d cold", warmSteps, coldSteps)
	if warmSteps >= coldSteps {
		t.Errorf("%d steps warm, %d cold", warmSteps, coldSteps)
	}
	t.Run("does not span", func(t *testing.T) {
		actions := sphere(1, 50, 5)
		start := make([]float64, 50)
		start[3], start[7] = 1, 2
		optimal(t, actions, design.Options{Start: start})
		clear(start)
		actions[9] = make([]float64, 5)
		start[9] = 1
		if d := optimal(t, actions, design.Options{Start: start}); d.Weights[9] != 0 {
			t.Error("weight on the zero action")
		}
	})
	t.Run("everywhere", func(t *testing.T) {
		// Uniform on far more than r(r+1)/2 optimal actions: nothing to optimise, all to prune.
		var actions [][]float64
		start := make([]float64, 100)
		for i := range start {
			a := 2 * math.Pi * float64(i) / 100
			actions = append(actions, []float64{math.Cos(a), math.Sin(a)})
			start[i] = 1
		}
		d := optimal(t, actions, design.Options{Start: start, Tolerance: 1e-9})
		if d.Steps > 0 || len(d.Support) > 3 {
			t.Errorf("%d steps, support %v", d.Steps, d.Support)
		}
	})
}

// Pruning keeps V and so G: with a support that is far too large, in many dimensions.
func TestPruningKeepsG(t *testing.T) {
	for d := 2; d <= 6; d++ {
		// All sign vectors: uniform is optimal (V = I), and 2^d > d(d+1)/2.
		var actions [][]float64
		start := make([]float64, 1<<d)
		for i := range start {
			a := make([]float64, d)
			for j := range a {
				a[j] = float64(2*(i>>j&1) - 1)
			}
			actions, start[i] = append(actions, a), 1
		}
		got := optimal(t, actions, design.Options{Start: start, Tolerance: 1e-9})
		if got.Steps > 0 {
			t.Errorf("d = %d: %d steps", d, got.Steps)
		}
		near(t, "G", got.G, float64(d), 1e-10)
	}
}

// The mistakes that are easy to make are seen by certify.
func TestBrokenTwins(t *testing.T) {
	actions := sphere(5, 300, 4)
	d := optimal(t, actions, design.Options{})
	unsquared := d
	unsquared.G = math.Sqrt(d.G)
	if certify(actions, unsquared, 1e-3) == nil {
		t.Error("the norm without its square passes")
	}

	// Drop the lightest weights, divide by the sum, and do not look again: from uniform weights on
	// the sign vectors, as above.
	var signs [][]float64
	uniform := design.Design{Rank: 4, G: 4}
	for i := range 16 {
		signs = append(signs, []float64{float64(2*(i&1) - 1), float64(i&2 - 1), float64(i&4/2 - 1),
			float64(i&8/4 - 1)})
		uniform.Weights = append(uniform.Weights, 0)
		if i < 10 {
			uniform.Weights[i], uniform.Support = 0.1, append(uniform.Support, i)
		}
	}
	if err := certify(signs, uniform, 1e-3); err == nil || !strings.Contains(err.Error(), "G is") {
		t.Errorf("pruning without looking again: %v", err)
	}

	tooMany := design.Design{Rank: 2, G: 2, Weights: []float64{.25, .25, .25, .25}, Support: []int{0, 1, 2, 3}}
	if certify([][]float64{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}, tooMany, 1e-3) == nil {
		t.Error("a support of four in the plane passes")
	}
}

func TestHardSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	near := func(eps float64) (a [][]float64) {
		base := gaussian(rng, 4, 4)
		for i := range 400 {
			row := slices.Clone(base[i%4])
			for j := range row {
				row[j] += eps * rng.NormFloat64()
			}
			a = append(a, row)
		}
		return a
	}
	for _, c := range []struct {
		name    string
		actions [][]float64
		rank    int
	}{
		{"near-duplicates, 1e-3", near(1e-3), 4},
		{"near-duplicates, 1e-6", near(1e-6), 4},
		{"near-duplicates, 1e-12", near(1e-12), 4},
		{"nearly collinear", [][]float64{{1, 0}, {1, 1e-8}, {1, -1e-8}, {1, 0.5e-8}}, 2},
		{"collinear but for rounding", [][]float64{{1, 0}, {1, 1e-14}, {1, -1e-14}}, 1},
		{"huge and tiny", [][]float64{{1e300, 1e300}, {1e-300, -1e-300}, {2e-300, 1e-300}}, 2},
		{"units of their own", [][]float64{{1e6, 0, 1e-6}, {1e6, 1, -1e-6}, {-1e6, 1, 0}, {1e5, 0.3, 1e-7}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := design.Optimal(c.actions, design.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := float64(c.rank)
			if d.Rank != c.rank || d.G < r || d.G > r*(1+design.DefaultTolerance) ||
				len(d.Support) > c.rank*(c.rank+1)/2 {
				t.Errorf("got rank %d, G %v, support %v", d.Rank, d.G, d.Support)
			}
		})
	}
}

func TestNorms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actions := cases(t)
		counts, weights := make([]int, len(actions)), make([]float64, len(actions))
		for i := range counts {
			counts[i] = max(0, rapid.IntRange(-3, 1000).Draw(t, "count"))
			weights[i] = float64(counts[i])
		}
		got, err := design.Norms(actions, counts)
		if err != nil {
			t.Fatal(err)
		}
		want, rank, _ := reference(actions, weights)
		_, all, _ := reference(actions, slices.Repeat([]float64{1}, len(actions)))
		for i, g := range got {
			if counts[i] == 0 && rank < all {
				continue // it may be outside: the next test
			}
			// The singular values of near-duplicates in the span of others are known to
			// 1e-16/1e-7 only.
			if math.Abs(g-want[i]) > 1e-6*max(want[i], 1e-12) {
				t.Fatalf("‖b‖² = %v of action %d, want %v", g, i, want[i])
			}
			if n := counts[i]; n > 0 && g > 1/float64(n) {
				t.Fatalf("‖b‖² = %v of action %d, played %d times", g, i, n)
			}
		}
	})
}

func TestNormsOutside(t *testing.T) {
	actions := [][]float64{{1, 0, 0}, {0, 2, 0}, {3, 4, 0}, {0, 0, 1}, {1, 0, 1e-3}, {0, 0, 0}}
	got, err := design.Norms(actions, []int{2, 3, 0, 0, 0, 5})
	if err != nil {
		t.Fatal(err)
	}
	inf := math.Inf(1)
	for i, want := range []float64{1. / 2, 1. / 3, 9./2 + 16./12, inf, inf, 0} {
		if got[i] != want && math.Abs(got[i]-want) > 1e-14 {
			t.Errorf("‖b‖² = %v of action %d, want %v", got[i], i, want)
		}
	}
	// Only b's part in the span of the played counts; a plane turned by a random map, and a point
	// that is off it by 1e-6 of its length.
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		d := rapid.IntRange(3, 8).Draw(t, "d")
		r := rapid.IntRange(1, d-1).Draw(t, "r")
		low := gaussian(rng, r+5, r)
		high := times(low, gaussian(rng, r, d))
		off := slices.Clone(high[0])
		size := math.Sqrt(mat.Dot(mat.NewVecDense(d, off), mat.NewVecDense(d, off)))
		for j := range off {
			off[j] += 1e-6 * size * rng.NormFloat64()
		}
		counts := make([]int, r+5)
		for i := range r + 2 {
			counts[i] = 1 + rng.IntN(9)
		}
		a, err := design.Norms(low, counts)
		if err != nil {
			t.Fatal(err)
		}
		b, err := design.Norms(append(high, off), append(counts, 0))
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range a {
			if !(math.Abs(b[i]-g) <= 1e-7*g) {
				t.Fatalf("‖b‖² = %v of action %d, in coordinates %v", b[i], i, g)
			}
		}
		if g := b[len(a)]; !math.IsInf(g, 1) {
			t.Fatalf("‖b‖² = %v of an action outside", g)
		}
	})
	got, err = design.Norms(actions, make([]int, 6))
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{inf, inf, inf, inf, inf, 0}; !slices.Equal(got, want) {
		t.Errorf("nothing played: %v", got)
	}
}

// Rounding up keeps V above c·V(π), so no variance is above G/c [Azize and Basu 2024, Algorithm 2].
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actions := cases(t)
		d, err := design.Optimal(actions, design.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := rapid.Float64Range(0.1, 1e6).Draw(t, "c")
		counts, err := d.Counts(c)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for i, n := range counts {
			if (n > 0) != (d.Weights[i] > 0) || float64(n) < c*d.Weights[i] || float64(n-1) >= c*d.Weights[i] {
				t.Fatalf("%d for %v", n, c*d.Weights[i])
			}
			sum += n
		}
		if float64(sum) > c+float64(len(d.Support)) {
			t.Fatalf("%d rounds", sum)
		}
		norms, err := design.Norms(actions, counts)
		if err != nil {
			t.Fatal(err)
		}
		if g := slices.Max(norms); g > d.G/c*(1+1e-9) {
			t.Fatalf("g² = %v, want at most %v", g, d.G/c)
		}
	})
	for _, c := range []float64{0, -1, math.NaN(), math.Inf(1), 1e17} {
		if _, err := (design.Design{Weights: []float64{1}}).Counts(c); err == nil {
			t.Errorf("length %v passes", c)
		}
	}
}

func TestErrors(t *testing.T) {
	good := [][]float64{{1, 0}, {0, 1}}
	for _, c := range []struct {
		actions [][]float64
		o       design.Options
		want    string
	}{
		{nil, design.Options{}, "no actions"},
		{[][]float64{{}}, design.Options{}, "action 0 has no coordinates"},
		{[][]float64{{1, 2}, {1}}, design.Options{}, "action 1 has 1 coordinates, action 0 has 2"},
		{[][]float64{{1, 2}, {1, math.NaN()}}, design.Options{}, "coordinate 1 of action 1 is NaN"},
		{[][]float64{{math.Inf(-1), 2}}, design.Options{}, "coordinate 0 of action 0 is -Inf"},
		{[][]float64{{0, 0}, {0, 0}}, design.Options{}, "all 2 actions are zero"},
		{good, design.Options{Tolerance: -1}, "tolerance is -1"},
		{good, design.Options{Tolerance: 1e-12}, "tolerance is 1e-12"},
		{good, design.Options{Tolerance: 2}, "tolerance is 2"},
		{good, design.Options{Tolerance: math.NaN()}, "tolerance is NaN"},
		{good, design.Options{Start: []float64{1}}, "1 weights to start from for 2 actions"},
		{good, design.Options{Start: []float64{1, -1}}, "weight -1 of action 1"},
		{good, design.Options{Start: []float64{math.NaN(), 1}}, "weight NaN of action 0"},
		{good, design.Options{Start: []float64{0, 0}}, "sum to 0"},
	} {
		if _, err := design.Optimal(c.actions, c.o); err == nil ||
			!strings.Contains(err.Error(), c.want) || errors.Is(err, design.ErrTolerance) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := design.Norms(good, []int{1}); err == nil {
		t.Error("one count for two actions passes")
	}
	if _, err := design.Norms(good, []int{1, -1}); err == nil ||
		!strings.Contains(err.Error(), "count -1 of action 1") {
		t.Error(err)
	}
}

// The package has not changed what it was given.
func TestInputIsKept(t *testing.T) {
	actions, start := sphere(2, 30, 3), make([]float64, 30)
	for i := range start {
		start[i] = float64(i)
	}
	before, first := times(actions, [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}), slices.Clone(start)
	optimal(t, actions, design.Options{Start: start})
	for i := range actions {
		if !slices.Equal(actions[i], before[i]) {
			t.Fatalf("action %d has changed", i)
		}
	}
	if !slices.Equal(start, first) {
		t.Fatal("the start has changed")
	}
}

// Pruning alone: from the uniform weights on a crowd, of which the support of no step would
// be small enough.
func TestPruningACrowd(t *testing.T) {
	for seed := range uint64(5) {
		d := 2 + int(seed)
		actions, start := sphere(seed, 500, d), make([]float64, 500)
		for i := range start {
			start[i] = 1
		}
		norms, _, _ := reference(actions, slices.Repeat([]float64{1. / 500}, 500))
		g := slices.Max(norms)
		tol := (g/float64(d) - 1) * 1.01 // what they have, and a little
		if tol > 1 {
			t.Fatalf("G = %v of the crowd", g)
		}
		got := optimal(t, actions, design.Options{Start: start, Tolerance: tol})
		if got.Steps > 0 || got.G > g*(1+1e-9) {
			t.Errorf("d = %d: G = %v after %d steps, it was %v", d, got.G, got.Steps, g)
		}
	}
}
