package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A gramCase says what the noise of a counter of matrices or vectors must be.
type gramCase struct {
	name   string
	m      privacy.Mechanism
	square bool
	// kappa is the covariance of an entry's noise after s and after t records, over that of
	// one node or step.
	kappa func(s, t int) float64
	// The noise of one node: variance on the diagonal and off it (of vectors: of each coordinate),
	// mean on the diagonal.
	diagonal, off, mean float64
	sensitivity         float64 // in the Frobenius norm, ℓ2 or, for Laplace, ℓ1
	// of a record replaced in all releases together; 0 where noise is not normal
	mu2 float64
	// real says that the curator is that of real records, whose numbers are whole steps.
	real bool
}

// near is how far what is worked out may be from what a curator does.
func (c gramCase) near() float64 {
	if c.real {
		return 4.0 / gridSteps
	}
	return 1e-9
}

const (
	gramDim     = 2
	gramHorizon = 7
)

// sharedNodes is how many nodes of the binary tree the sums of the first s and of the
// first t have in common.
func sharedNodes(s, t int) float64 {
	nodes := func(t int) (out [][2]int) {
		start := 0
		for size := 1 << 20; size > 0; size /= 2 {
			if t-start >= size {
				out = append(out, [2]int{start, size})
				start += size
			}
		}
		return out
	}
	n := 0
	for _, a := range nodes(s) {
		if slices.Contains(nodes(t), a) {
			n++
		}
	}
	return float64(n)
}

// bltCovariance is AC⁻¹(AC⁻¹)ᵀ, by matrices.
func bltCovariance(m privacy.BLT) func(s, t int) float64 {
	n := m.Horizon
	c, a := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
	for i := range n {
		for j := range i + 1 {
			a.Set(i, j, 1)
			if i == j {
				c.Set(i, j, 1)
				continue
			}
			x := 0.0
			for k, w := range m.Weight {
				x += w * math.Pow(m.Decay[k], float64(i-j-1))
			}
			c.Set(i, j, x)
		}
	}
	var inverse, b, k mat.Dense
	if err := inverse.Inverse(c); err != nil {
		panic(err)
	}
	b.Mul(a, &inverse)
	k.Mul(&b, b.T())
	return func(s, t int) float64 { return k.At(s-1, t-1) }
}

func gramCases(t testing.TB) []gramCase {
	t.Helper()
	blt, err := privacy.NewGramBLT(privacy.ZCDP{Rho: 0.8}, gramHorizon)
	must(t, err)
	const s = 1.5
	v := blt.Counter.Sigma * blt.Counter.Sigma
	const k = 40.0
	return []gramCase{
		{"gram-tree", privacy.GramTree{Sigma: s, Horizon: gramHorizon}, true, sharedNodes,
			2 * s * s, s * s, 0, 2 * math.Sqrt2, 3 * 8 / (2 * s * s), false},
		{"gram-blt", blt, true, bltCovariance(blt.Counter), 2 * v, v, 0, 2 * math.Sqrt2, 2 * 0.8, false},
		{"gram-wishart", privacy.GramWishart{Scale: 2, Degrees: k, Dim: gramDim,
			Horizon: gramHorizon, Delta: 1e-3}, true, sharedNodes, 4 * 2 * k, 4 * k, 2 * k,
			2 * math.Sqrt2, 0, false},
		{"vector-tree", privacy.VectorTree{Scale: s, Dim: gramDim, Horizon: gramHorizon}, false,
			sharedNodes, 2 * s * s, 2 * s * s, 0, 2 * math.Sqrt(gramDim), 0, false},
		{"gaussian-vector-tree", privacy.GaussianVectorTree{Sigma: s, Horizon: gramHorizon}, false,
			sharedNodes, s * s, s * s, 0, 2, 3 * 4 / (s * s), false},
	}
}

// realGramCases are those that real records can have.
func realGramCases(t testing.TB) (out []gramCase) {
	for _, c := range gramCases(t) {
		switch c.m.(type) {
		case privacy.GramTree, privacy.VectorTree, privacy.GaussianVectorTree:
			c.name, c.real = "real "+c.name, true
			out = append(out, c)
		}
	}
	return out
}

func buildGram(c gramCase, seed uint64) (*gramFeatures[float64], error) {
	s := noise.NewFast(17, seed)
	f, err := SimulatedFeatures(FeatureConfig{Dim: gramDim, Slots: 2, Mechanism: c.m}, &s)
	if err != nil {
		return nil, err
	}
	g, ok := f.(*gramFeatures[float64])
	if !ok {
		return nil, fmt.Errorf("a curator of type %T", f)
	}
	return g, nil
}

func buildRealGram(c gramCase, seed uint64) (*gramFeatures[int64], error) {
	key := [32]byte{17, byte(seed), byte(seed >> 8), byte(seed >> 16)}
	f, err := exactFeatures(FeatureConfig{Dim: gramDim, Slots: 2, Mechanism: c.m}, rand.NewChaCha8(key))
	if err != nil {
		return nil, err
	}
	g, ok := f.(*gramFeatures[int64])
	if !ok {
		return nil, fmt.Errorf("a curator of type %T", f)
	}
	return g, nil
}

// variance of entry e of a release.
func (c gramCase) variance(e int) float64 {
	if c.onDiagonal(e) {
		return c.diagonal
	}
	return c.off
}

func (c gramCase) onDiagonal(e int) bool {
	if !c.square {
		return true
	}
	for row := gramDim + 1; row > 0; row-- {
		if e == 0 {
			return true
		}
		if e < row {
			return false
		}
		e -= row
	}
	return false
}

var (
	gramVectors = [][]float64{{1, 0}, {0.6, 0.8}, {1 / math.Sqrt2, 1 / math.Sqrt2}, {-0.3, 0.1}, {0, 0}}
	gramRewards = []float64{1, 0.5, 1e6}
)

// width of a release.
func (c gramCase) width() int {
	if c.square {
		return (gramDim + 1) * (gramDim + 2) / 2
	}
	return gramDim
}

// truth is what a record adds.
func (c gramCase) truth(a []float64, r float64) []float64 {
	r = min(max(r, -1), 1)
	z := append(slices.Clone(a), r)
	var out []float64
	if !c.square {
		for _, x := range a {
			out = append(out, x*r)
		}
		return out
	}
	for i := range z {
		for j := i; j < len(z); j++ {
			out = append(out, z[i]*z[j])
		}
	}
	return out
}

// inspectGram returns the names of the checks that fail. Comparisons have |z| ≤ 6.5 (8e-11 each for
// normal errors, about 1000 of them).
func inspectGram[T number](t testing.TB, c gramCase, draws int,
	maker func(c gramCase, seed uint64) (*gramFeatures[T], error), breaks func(g *gramFeatures[T])) []string {
	t.Helper()
	var bad []string
	fail := func(name, format string, args ...any) {
		if !slices.Contains(bad, name) {
			bad = append(bad, name)
			t.Logf("%s: %s", name, fmt.Sprintf(format, args...))
		}
	}
	build := func(seed uint64) *gramFeatures[T] {
		g, err := maker(c, seed)
		must(t, err)
		if breaks != nil {
			breaks(g)
		}
		return g
	}
	w := c.width()
	play := func(g *gramFeatures[T], slot, odd int, a []float64, r float64) (out []float64) {
		for i := range gramHorizon {
			x, y := gramVectors[i%len(gramVectors)], 0.25
			if i == odd {
				x, y = a, r
			}
			if err := g.Add(slot, x, y); err != nil {
				t.Fatal(err)
			}
			released, err := g.Release(slot)
			must(t, err)
			if released.N() != i+1 || released.Len() != w {
				fail("form", "%d records and %d numbers after %d, must have %d", released.N(),
					released.Len(), i+1, w)
			}
			for e := range released.Len() {
				out = append(out, released.At(e))
			}
			again, err := g.Release(slot)
			if errors.Is(err, privacy.ErrPrefix) {
				fail("redraw", "the ledger refuses another statistic of the same records: %v", err)
				continue
			}
			must(t, err)
			for e := range w {
				if again.At(e) != out[i*w+e] {
					fail("redraw", "a release differs from the one before it, of the same records")
				}
			}
		}
		return out
	}
	size := gramHorizon * w
	mean := make([]float64, size)
	for i := range gramHorizon {
		x := c.truth(gramVectors[i%len(gramVectors)], 0.25)
		for e := range w {
			if i > 0 {
				mean[i*w+e] = mean[(i-1)*w+e]
			}
			mean[i*w+e] += x[e]
		}
	}
	// law: the joint covariance of all releases of a slot, and that of the last release of two slots.
	sum, squares := make([]float64, size*size), make([]float64, size*size)
	first := make([]float64, size)
	var crossed, crossed2 float64
	var sample []float64
	for k := range draws {
		g := build(uint64(k))
		x := play(g, 0, -1, nil, 0)
		for i := range x {
			x[i] -= mean[i]
			if c.mean > 0 && c.onDiagonal(i%w) {
				x[i] -= c.mean * c.kappa(i/w+1, i/w+1)
			}
			first[i] += x[i]
		}
		for i, p := range x {
			for j, q := range x[:i+1] {
				sum[i*size+j] += p * q
				squares[i*size+j] += p * q * p * q
			}
		}
		sample = append(sample, x[size-w])
		y := play(g, 1, -1, nil, 0)
		p := x[size-w] * (y[size-w] - mean[size-w] - c.mean*c.kappa(gramHorizon, gramHorizon))
		crossed += p
		crossed2 += p * p
		if k == 0 {
			want, err := json.Marshal(c.m.Loss())
			must(t, err)
			got, err := json.Marshal(g.ledger.Total())
			must(t, err)
			exact := bytes.Equal(got, want)
			if promised, is := priceOf(c.m.Loss()), priceOf(g.ledger.Total()); c.real {
				exact = is <= promised*(1+1e-12) && is > promised*(1-1e-6)
			}
			if !exact || len(g.ledger.Entries()) != 2 {
				fail("price", "the ledger has %s in %d entries, the mechanism is %s", got,
					len(g.ledger.Entries()), want)
			}
		}
	}
	n := float64(draws)
	for i := range size {
		v := c.variance(i%w) * c.kappa(i/w+1, i/w+1)
		if z := first[i] / n / math.Sqrt(v/n); math.Abs(z) > 6.5 {
			fail("law", "the mean of entry %d after %d is %v, %.1f standard errors off", i%w, i/w+1,
				first[i]/n, z)
		}
		for j := range i + 1 {
			want := 0.0
			if i%w == j%w {
				want = c.variance(i%w) * c.kappa(i/w+1, j/w+1)
			}
			got := sum[i*size+j] / n
			se := math.Sqrt((squares[i*size+j]/n - got*got) / n)
			if math.Abs(got-want) > 6.5*se+1e-9 {
				fail("law", "covariance of entry %d after %d and %d after %d is %v ± %v, must be %v",
					i%w, i/w+1, j%w, j/w+1, got, se, want)
			}
		}
	}
	if se := math.Sqrt(crossed2 / n / n); math.Abs(crossed/n) > 6.5*se {
		fail("slots", "covariance of two slots is %v ± %v", crossed/n, se)
	}
	// The law of one entry. The limit of the Kolmogorov distance is exceeded with probability 2e-7.
	last := c.variance(0) * c.kappa(gramHorizon, gramHorizon)
	var cdf func(float64) float64
	switch m := c.m.(type) {
	case privacy.GramWishart:
		k := float64(m.Degrees * bits.OnesCount(gramHorizon))
		cdf = func(x float64) float64 { return distuv.ChiSquared{K: k}.CDF(x/m.Scale + k) }
	case privacy.VectorTree:
	default:
		cdf = distuv.Normal{Sigma: math.Sqrt(last)}.CDF
	}
	if cdf != nil {
		if d, limit := kolmogorov(sample, cdf), math.Sqrt(math.Log(2/2e-7)/(2*n)); d > limit {
			fail("law", "Kolmogorov distance %.4f, above %.4f", d, limit)
		}
	}

	// sensitivity: the same noise, records that differ in one place; how far the releases are apart.
	covariance := mat.NewSymDense(gramHorizon, nil)
	for s := range gramHorizon {
		for u := range s + 1 {
			covariance.SetSym(s, u, c.kappa(s+1, u+1))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(covariance) {
		t.Fatal("no Cholesky factor")
	}
	furthest, cost := 0.0, 0.0
	for _, odd := range []int{0, 3, gramHorizon - 1} {
		for _, a := range gramVectors {
			for _, r := range gramRewards {
				for _, b := range gramVectors {
					x := play(build(3), 0, odd, a, r)
					y := play(build(3), 0, odd, b, -r)
					mu2, step := 0.0, 0.0
					for e := range w {
						shift, solved := mat.NewVecDense(gramHorizon, nil), mat.NewVecDense(gramHorizon, nil)
						for s := range gramHorizon {
							shift.SetVec(s, x[s*w+e]-y[s*w+e])
						}
						must(t, chol.SolveVecTo(solved, shift))
						mu2 += mat.Dot(shift, solved) / c.variance(e)
						d := math.Abs(shift.AtVec(gramHorizon - 1))
						switch {
						case !c.square && c.mu2 == 0:
							step += d
						case !c.square || c.onDiagonal(e):
							step += d * d
						default:
							step += 2 * d * d
						}
						for s := range gramHorizon {
							if got := math.Abs(shift.AtVec(s)); s < odd && got > 1e-9 || s >= odd &&
								math.Abs(got-d) > 1e-9 {
								fail("sensitivity", "record %d moves release %d by %v and the "+
									"last by %v", odd+1, s+1, got, d)
							}
						}
					}
					if c.square || c.mu2 > 0 {
						step = math.Sqrt(step)
					}
					furthest, cost = max(furthest, step), max(cost, mu2)
				}
			}
		}
	}
	if math.Abs(furthest-c.sensitivity) > c.near() {
		fail("sensitivity", "a record moves the sum by %v, must be at most %v, and so much",
			furthest, c.sensitivity)
	}
	if c.mu2 > 0 && math.Abs(cost/c.mu2-1) > c.near() {
		fail("sensitivity", "a record moves all releases by μ² = %v, must be %v", cost, c.mu2)
	}
	if rho := c.m.Loss().ZCDP(); c.mu2 > 0 && math.Abs(2*rho/c.mu2-1) > 1e-9 {
		fail("price", "ρ is %v, must be %v", rho, c.mu2/2)
	}
	return bad
}

func TestGramCuratorsPassInspection(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, c := range gramCases(t) {
		t.Run(c.name, func(t *testing.T) {
			if bad := inspectGram(t, c, 10_000, buildGram, nil); len(bad) > 0 {
				t.Errorf("fails %q", bad)
			}
		})
	}
	for _, c := range realGramCases(t) {
		t.Run(c.name, func(t *testing.T) {
			if bad := inspectGram(t, c, 4000, buildRealGram, nil); len(bad) > 0 {
				t.Errorf("fails %q", bad)
			}
		})
	}
}

// priceOf is ρ, or ε where that is all there is.
func priceOf(l privacy.Loss) float64 {
	if e := l.Pure(); !math.IsInf(e, 1) {
		return e
	}
	return l.ZCDP()
}

// nodeOf is where a stream gets its noise.
func nodeOf[T number](s vectorStream[T]) *vectorSampler[T] {
	switch s := any(s).(type) {
	case *vectorTree[T]:
		return &s.node
	case *vectorBLT:
		return any(&s.node).(*vectorSampler[T])
	}
	return nil
}

// eachNode changes the noise of all nodes or steps.
func eachNode[T number](f func(fresh []T)) func(*gramFeatures[T]) {
	return func(g *gramFeatures[T]) {
		for _, s := range g.noise {
			node := nodeOf(s)
			draw := *node
			fresh := make([]T, g.width)
			*node = func(dst []T) error {
				clear(fresh)
				err := draw(fresh)
				f(fresh)
				for i, x := range fresh {
					dst[i] += x
				}
				return err
			}
		}
	}
}

// drawnAgain begins anew at each release.
type drawnAgain[T number] struct{ fresh func() vectorStream[T] }

func (r drawnAgain[T]) at(t uint64) ([]T, error) { return r.fresh().at(t) }

func TestBrokenGramTwinsAreCaught(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, c := range gramCases(t) {
		catchGramTwins(t, c, buildGram)
	}
	for _, c := range realGramCases(t) {
		catchGramTwins(t, c, buildRealGram)
	}
}

// root2 is x/√2.
func root2[T number](x T) T { return T(float64(x) / math.Sqrt2) }

func catchGramTwins[T number](t *testing.T, c gramCase,
	maker func(c gramCase, seed uint64) (*gramFeatures[T], error)) {
	twins := []struct {
		name, check string
		breaks      func(g *gramFeatures[T])
	}{
		{"half the noise", "law", eachNode(func(x []T) {
			for i := range x {
				x[i] /= 2
			}
		})},
		{"one draw for all entries", "law", eachNode(func(x []T) {
			for i := range x {
				x[i] = x[len(x)-1]
			}
		})},
		{"noise drawn again at each release", "redraw", func(g *gramFeatures[T]) {
			for i := range g.noise {
				g.noise[i] = drawnAgain[T]{g.fresh}
			}
		}},
		{"one noise for all slots", "slots", func(g *gramFeatures[T]) {
			var kept [][]T
			for i, s := range g.noise {
				node := nodeOf(s)
				draw, k := *node, 0
				*node = func(dst []T) error {
					if i == 0 {
						fresh := make([]T, g.width)
						must(t, draw(fresh))
						kept = append(kept, fresh)
					}
					for i, x := range kept[k] {
						dst[i] += x
					}
					k++
					return nil
				}
			}
		}},
		{"a record counted twice", "sensitivity", func(g *gramFeatures[T]) {
			g.noise[0] = counting[T]{g, g.noise[0]}
		}},
		{"rewards that are not clipped", "sensitivity", func(g *gramFeatures[T]) { g.unclipped = true }},
		{"charged for half the sensitivity", "price", func(g *gramFeatures[T]) {
			switch m := c.m.(type) {
			case privacy.GramTree:
				// 2 for 2√2
				g.account = g.ledger.Account(privacy.GramTree{Sigma: m.Sigma * math.Sqrt2,
					Horizon: m.Horizon})
			case privacy.GramBLT:
				m.Counter.Sigma *= math.Sqrt2
				g.account = g.ledger.Account(m)
			case privacy.GramWishart:
				m.Scale *= 2
				g.account = g.ledger.Account(m)
			case privacy.VectorTree:
				m.Scale *= 2
				g.account = g.ledger.Account(m)
			case privacy.GaussianVectorTree:
				m.Sigma *= 2
				g.account = g.ledger.Account(m)
			}
		}},
	}
	if c.square {
		twins = append(twins, struct {
			name, check string
			breaks      func(g *gramFeatures[T])
		}{"σ on the diagonal too, not σ√2", "law", eachNode(func(x []T) {
			for e := range x {
				if c.onDiagonal(e) {
					x[e] = root2(x[e])
				}
			}
		})}, struct {
			name, check string
			breaks      func(g *gramFeatures[T])
		}{"noise of both triangles on one: σ/√2", "law", eachNode(func(x []T) {
			for e := range x {
				if !c.onDiagonal(e) {
					x[e] = root2(x[e])
				}
			}
		})})
	}
	for _, twin := range twins {
		t.Run(c.name+"/"+twin.name, func(t *testing.T) {
			if bad := inspectGram(t, c, 800, maker, twin.breaks); !slices.Contains(bad, twin.check) {
				t.Errorf("the check %q did not catch it; %q did", twin.check, bad)
			}
		})
	}
}

// counting counts the last record twice, by the sums of what came in.
type counting[T number] struct {
	g *gramFeatures[T]
	vectorStream[T]
}

func (c counting[T]) at(t uint64) ([]T, error) {
	x, err := c.vectorStream.at(t)
	x = slices.Clone(x)
	for i := range x {
		x[i] += c.g.sum[i]
	}
	return x, err
}

// Bands hold: each event at most with probability e^{−x}. 10⁴ draws of the noise after t records;
// the test says no if the Clopper–Pearson interval at 1−2·10⁻⁷ is above e^{−x}, 36 times. Bands
// that are too narrow must be found out.
func TestBandsHold(t *testing.T) {
	const x, draws = 2.0, 10_000
	blt, err := privacy.NewGramBLT(privacy.ZCDP{Rho: 0.5}, 20)
	must(t, err)
	for _, c := range []struct {
		m  privacy.GramMechanism
		ts []int
	}{
		{privacy.GramTree{Sigma: 2, Horizon: 100}, []int{1, 7}},
		{blt, []int{20}},
		{privacy.GramWishart{Scale: 2, Degrees: 60, Dim: 4, Horizon: 100, Delta: 0.1}, []int{1, 7}},
	} {
		const d = 4
		for _, n := range c.ts {
			s := noise.NewFast(5, uint64(n))
			band, narrow := c.m.Band(d, n, x), c.m.Band(d, n, x)
			mid := (band.Lo + band.Hi) / 2
			narrow.Lo, narrow.Hi, narrow.Cross = mid+(band.Lo-mid)/5, mid+(band.Hi-mid)/5, band.Cross/5
			var out, twin [4]int
			a := mat.NewSymDense(d, nil)
			for range draws {
				f, err := SimulatedFeatures(FeatureConfig{Dim: d, Slots: 1, Mechanism: c.m}, &s)
				must(t, err)
				for range n {
					must(t, f.Add(0, make([]float64, d), 0))
				}
				r, err := f.Release(0)
				must(t, err)
				at, column := 0, 0.0
				for i := range d {
					for j := i; j < d; j++ {
						a.SetSym(i, j, r.At(at+j-i))
					}
					column += r.At(at+d-i) * r.At(at+d-i)
					at += d + 1 - i
				}
				var e mat.EigenSym
				e.Factorize(a, false)
				v := e.Values(nil)
				for k, b := range []privacy.Band{band, narrow} {
					count := &out
					if k == 1 {
						count = &twin
					}
					for i, broken := range []bool{v[0] < b.Lo, v[d-1] > b.Hi, math.Sqrt(column) > b.Cross} {
						if broken {
							count[i]++
						}
					}
				}
			}
			t.Logf("%v after %d: %d below, %d above, %d too long; a fifth of the band: %v", c.m, n,
				out[0], out[1], out[2], twin[:3])
			above := func(k int, p float64) bool {
				lo, _, err := stats.ClopperPearson(k, draws, 1-2e-7)
				must(t, err)
				return lo > p
			}
			for i, p := range []float64{math.Exp(-x), math.Exp(-x), 2 * math.Exp(-x)} {
				if above(out[i], p) {
					t.Errorf("%v after %d: event %d in %d of %d draws, above %v", c.m, n, i, out[i], draws, p)
				}
				if !above(twin[i], p) {
					t.Errorf("%v after %d: event %d in %d of %d draws only with a fifth of the "+
						"band: it was not found out", c.m, n, i, twin[i], draws)
				}
			}
		}
	}
}

// The bounds on noise in vectors likewise.
func TestNoiseNormsHold(t *testing.T) {
	const x, draws, d = 1.5, 10_000, 3
	laplace, normal := privacy.VectorTree{Scale: 2, Dim: d, Horizon: 100},
		privacy.GaussianVectorTree{Sigma: 2, Horizon: 100}
	for _, n := range []int{1, 7} {
		for m, bound := range map[privacy.Mechanism]float64{laplace: laplace.NoiseNorm(n, x),
			normal: normal.NoiseNorm(d, n, x)} {
			s := noise.NewFast(6, uint64(n))
			out, twin := 0, 0
			for range draws {
				f, err := SimulatedFeatures(FeatureConfig{Dim: d, Slots: 1, Mechanism: m}, &s)
				must(t, err)
				for range n {
					must(t, f.Add(0, make([]float64, d), 0))
				}
				r, err := f.Release(0)
				must(t, err)
				l := math.Sqrt(r.At(0)*r.At(0) + r.At(1)*r.At(1) + r.At(2)*r.At(2))
				if l > bound {
					out++
				}
				if l > bound/8 {
					twin++
				}
			}
			lo, _, err := stats.ClopperPearson(out, draws, 1-2e-7)
			must(t, err)
			twinLo, _, err := stats.ClopperPearson(twin, draws, 1-2e-7)
			must(t, err)
			if lo > math.Exp(-x) || twinLo < math.Exp(-x) {
				t.Errorf("%v after %d: too long in %d of %d draws, for an eighth of the bound in %d",
					m, n, out, draws, twin)
			}
		}
	}
}

func TestGramErrors(t *testing.T) {
	s := noise.NewFast(1, 1)
	for _, bad := range []FeatureConfig{
		{Dim: 2, Slots: 1, Mechanism: privacy.GramTree{Sigma: -1, Horizon: 5}},
		{Dim: 2, Slots: 1, Mechanism: privacy.GramTree{Sigma: 1}},
		{Dim: 2, Slots: 1, Mechanism: privacy.GramWishart{Scale: 2, Degrees: 40, Dim: 3, Horizon: 5,
			Delta: 0.1}},
		{Dim: 2, Slots: 1, Mechanism: privacy.VectorTree{Scale: 2, Dim: 3, Horizon: 5}},
		{Dim: 2, Slots: 1, Mechanism: privacy.GramBLT{}},
		{Dim: 0, Slots: 1, Mechanism: privacy.GramTree{Sigma: 1, Horizon: 5}},
		{Dim: 2, Slots: 0, Mechanism: privacy.GramTree{Sigma: 1, Horizon: 5}},
		{Dim: 2, Slots: 1, Mechanism: privacy.Tree{Scale: 1, Horizon: 5}}, {Dim: 2, Slots: 1},
	} {
		if c, err := SimulatedFeatures(bad, &s); err == nil || c != nil {
			t.Errorf("%+v: %v, %v", bad, c, err)
		}
	}
	for _, c := range gramCases(t) {
		g, err := buildGram(c, 1)
		must(t, err)
		for what, err := range map[string]error{
			"slot": g.Add(2, []float64{1, 0}, 0), "features": g.Add(0, []float64{1}, 0),
			"norm":                  g.Add(0, []float64{1, 0.1}, 0),
			"NaN, must be a number": g.Add(0, []float64{1, 0}, math.NaN()),
			"finite":                g.Add(0, []float64{math.NaN(), 0}, 0),
		} {
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %s: %v", c.name, what, err)
			}
		}
		if _, err := g.Release(0); err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := g.Release(-1); err == nil {
			t.Errorf("%s: slot −1 was released", c.name)
		}
		for range gramHorizon {
			must(t, g.Add(0, []float64{1, 0}, 1))
		}
		if err := g.Add(0, []float64{1, 0}, 1); err == nil || !strings.Contains(err.Error(), "at most 7") {
			t.Errorf("%s: beyond the horizon: %v", c.name, err)
		}
		// Over the cap nothing comes out, and what was released is wiped.
		s := noise.NewFast(1, 1)
		f, err := SimulatedFeatures(FeatureConfig{Dim: gramDim, Slots: 1, Mechanism: c.m,
			Ledger: privacy.NewLedger(privacy.WithCap(privacy.ZCDP{Rho: 1e-9}))}, &s)
		must(t, err)
		must(t, f.Add(0, []float64{1, 0}, 1))
		if r, err := f.Release(0); !errors.Is(err, privacy.ErrBudget) || r.Len() != 0 ||
			len(f.Ledger().Entries()) != 0 {
			t.Errorf("%s: over the cap: %v, %v", c.name, r, err)
		}
		// Unclipped there is no guarantee.
		f, err = SimulatedFeatures(FeatureConfig{Dim: gramDim, Slots: 1, Mechanism: c.m, Unclipped: true}, &s)
		must(t, err)
		must(t, f.Add(0, []float64{3, 0}, 7))
		if _, err := f.Release(0); err != nil || !f.Ledger().Total().Infinite() {
			t.Errorf("%s: unclipped it costs %v; %v", c.name, f.Ledger().Total(), err)
		}
	}
}

// Without noise nothing is drawn, and the sums are exact.
func TestGramWithoutNoise(t *testing.T) {
	for _, m := range []privacy.Mechanism{privacy.GramTree{Horizon: 5},
		privacy.GramWishart{Degrees: 9, Dim: 2, Horizon: 5, Delta: 0.1}, privacy.VectorTree{Dim: 2, Horizon: 5},
		privacy.GaussianVectorTree{Horizon: 5}} {
		s, fresh := noise.NewFast(1, 1), noise.NewFast(1, 1)
		f, err := SimulatedFeatures(FeatureConfig{Dim: 2, Slots: 1, Mechanism: m}, &s)
		must(t, err)
		must(t, f.Add(0, []float64{0.5, -0.25}, 0.5))
		must(t, f.Add(0, []float64{0, 1}, -1))
		r, err := f.Release(0)
		must(t, err)
		want := []float64{0.25, -0.125, 0.25, 1.0625, -1.125, 1.25}
		if r.Len() == 2 {
			want = []float64{0.25, -1.125}
		}
		for i, x := range want {
			if r.At(i) != x {
				t.Errorf("%v: number %d is %v, must be %v", m, i, r.At(i), x)
			}
		}
		if s.Uint64() != fresh.Uint64() || !f.Ledger().Total().Infinite() {
			t.Errorf("%v drew noise, or costs %v", m, f.Ledger().Total())
		}
	}
}

func TestGramAllocatesNothing(t *testing.T) {
	for _, c := range gramCases(t) {
		switch m := c.m.(type) {
		case privacy.GramTree:
			m.Horizon = 1 << 20
			c.m = m
		case privacy.GramBLT:
			m.Counter.Horizon = 1 << 20
			c.m = m
		case privacy.GramWishart:
			m.Horizon = 1 << 20
			c.m = m
		case privacy.VectorTree:
			m.Horizon = 1 << 20
			c.m = m
		case privacy.GaussianVectorTree:
			m.Horizon = 1 << 20
			c.m = m
		}
		g, err := buildGram(c, 1)
		must(t, err)
		a := []float64{0.6, 0.8}
		if n := testing.AllocsPerRun(2000, func() {
			if g.Add(0, a, 1) != nil {
				t.Fatal("not added")
			}
			if _, err := g.Release(0); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a round", c.name, n)
		}
	}
}

// BenchmarkGram is the curator's part of a round: d = 3, a record and a release.
func BenchmarkGram(b *testing.B) {
	blt, err := privacy.NewGramBLT(privacy.ZCDP{Rho: 1}, longest)
	must(b, err)
	for _, m := range []privacy.Mechanism{privacy.GramTree{Sigma: 1, Horizon: longest}, blt,
		privacy.GramWishart{Scale: 2, Degrees: 900, Dim: 3, Horizon: longest, Delta: 1e-6},
		privacy.VectorTree{Scale: 1, Dim: 3, Horizon: longest}, privacy.GramTree{Horizon: longest}} {
		name := m.Kind()
		if m.Loss().Infinite() {
			name += "/exact"
		}
		b.Run(name, func(b *testing.B) {
			s := noise.NewFast(1, 1)
			f, err := SimulatedFeatures(FeatureConfig{Dim: 3, Slots: 1, Mechanism: m}, &s)
			must(b, err)
			a := []float64{0.6, 0.7, 0.1}
			b.ReportAllocs()
			for b.Loop() {
				if f.Add(0, a, 1) != nil {
					b.Fatal("not added")
				}
				if _, err := f.Release(0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
