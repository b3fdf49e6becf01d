package release

import (
	"fmt"
	"math"
	bigs "math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

func realGram(t testing.TB, dim int, m privacy.Mechanism, seed uint64) *gramFeatures[int64] {
	t.Helper()
	f, err := exactFeatures(FeatureConfig{Dim: dim, Slots: 1, Mechanism: m},
		rand.NewChaCha8([32]byte{1, byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)}))
	must(t, err)
	return f.(*gramFeatures[int64])
}

// inSteps is a release on the grid.
func inSteps(t testing.TB, r privacy.ReleasedVector) []int64 {
	t.Helper()
	out := make([]int64, r.Len())
	for i := range out {
		x := r.At(i) * gridSteps
		if x != math.Trunc(x) {
			t.Fatalf("number %d is %v steps", i, x)
		}
		out[i] = int64(x)
	}
	return out
}

// normalMass is that of a discrete normal law of scale τ, by its definition, at
// −cells…cells, and beyond.
func normalMass(tau float64, cells int) []float64 {
	p, all := make([]float64, 2*cells+2), 0.0
	for x := -40 * int(tau); x <= 40*int(tau); x++ {
		q := math.Exp(-float64(x*x) / (2 * tau * tau))
		all += q
		if x < -cells || x > cells {
			p[2*cells+1] += q
		} else {
			p[x+cells] += q
		}
	}
	for i := range p {
		p[i] /= all
	}
	return p
}

// inspectMass says whether the numbers of a node's noise have the mass of their law: Pearson's χ²
// over 82 cells, above its limit with probability 1e-7 for each of three numbers.
func inspectMass(t *testing.T, draws int, twin func(g *gramFeatures[int64])) (bad bool) {
	const cells = 40
	counts := [3][2*cells + 2]int{}
	for k := range draws {
		g := realGram(t, 1, privacy.GramTree{Sigma: 1e-9, Horizon: 7}, uint64(k))
		if twin != nil {
			twin(g)
		}
		must(t, g.Add(0, []float64{0}, 0))
		r, err := g.Release(0)
		must(t, err)
		for e, x := range inSteps(t, r) {
			if x < -cells || x > cells {
				counts[e][2*cells+1]++
			} else {
				counts[e][x+cells]++
			}
		}
	}
	// The least noise is of 16 steps and a 64th, and on the diagonal at least √2 as much, in 64ths.
	const off = 16*64 + 1
	law := [3]float64{1451.0 / 64, off / 64.0, 1451.0 / 64} // 1449.57… rounded up, and one
	limit := distuv.ChiSquared{K: 2*cells + 1}.Quantile(1 - 1e-7)
	for e, tau := range law {
		chi2 := 0.0
		for i, p := range normalMass(tau, cells) {
			want := p * float64(draws)
			chi2 += (float64(counts[e][i]) - want) * (float64(counts[e][i]) - want) / want
		}
		if chi2 > limit {
			t.Logf("number %d: χ² is %.1f, above %.1f", e, chi2, limit)
			bad = true
		}
	}
	return bad
}

func TestRealGramNoiseHasItsMass(t *testing.T) {
	testkit.OneGoroutine(t)
	if inspectMass(t, 150_000, nil) {
		t.Error("not the law")
	}
	wide, err := noise.NewDiscreteGaussian(1451, 64)
	must(t, err)
	all := exactGaussian{rand.NewPCG(1, 2), wide}
	for name, twin := range map[string]func(g *gramFeatures[int64]){
		"half the noise": eachNode(func(x []int64) {
			for i := range x {
				x[i] /= 2
			}
		}),
		"the diagonal's everywhere": func(g *gramFeatures[int64]) {
			*nodeOf(g.noise[0]) = exactNode(all, all, 2, true, false)
		},
		"no zeros": eachNode(func(x []int64) {
			for i := range x {
				if x[i] == 0 {
					x[i] = 1
				}
			}
		}),
	} {
		if !inspectMass(t, 20_000, twin) {
			t.Errorf("%s: not found out", name)
		}
	}
}

// Sums of real records against each record's products in exact arithmetic, rounded half away from
// zero.
func TestRealGramSumsAreTheRecords(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := rapid.IntRange(1, 5).Draw(r, "dim")
		g := realGram(t, d, privacy.GramTree{Horizon: 50}, 0)
		want := make([]int64, g.width)
		for range rapid.IntRange(1, 20).Draw(r, "records") {
			a, reward := recordOf(r, d)
			must(t, g.Add(0, a, reward))
			z, at := append(append([]float64(nil), a...), min(max(reward, -1), 1)), 0
			for i := range z {
				for j := i; j <= d; j++ {
					x := new(bigs.Rat).Mul(new(bigs.Rat).SetFloat64(z[i]), new(bigs.Rat).SetFloat64(z[j]))
					x.Mul(x, new(bigs.Rat).SetInt64(1<<20))
					half := bigs.NewRat(1, 2)
					if x.Sign() < 0 {
						half.Neg(half)
					}
					x.Add(x, half)
					want[at] += new(bigs.Int).Quo(x.Num(), x.Denom()).Int64()
					at++
				}
			}
		}
		released, err := g.Release(0)
		must(t, err)
		for i, x := range inSteps(t, released) {
			if x != want[i] {
				r.Fatalf("number %d is %d steps, must be %d", i, x, want[i])
			}
		}
	})
}

// recordOf is a vector of the unit ball, with coordinates of a few binary digits, so that products
// of doubles are exact, and a reward.
func recordOf(r *rapid.T, d int) (a []float64, reward float64) {
	a = make([]float64, d)
	for i := range a {
		a[i] = float64(rapid.IntRange(-1<<22, 1<<22).Draw(r, "a")) / (1 << 22) / math.Exp2(math.Ceil(
			math.Log2(math.Sqrt(float64(d)))))
	}
	return a, float64(rapid.IntRange(-5<<20, 5<<20).Draw(r, "reward")) / (1 << 22)
}

// A node's noise is drawn once, when it is first shown, also where a draw fails between: against a
// store of all nodes of a full tree.
func TestVectorTreeMatchesAStoreOfAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const width = 3
		src := rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))
		failAt := 0
		var whole [][width]int64
		c := newVectorTree(1, width, func(dst []int64) error {
			var x [width]int64
			for i := range x {
				if failAt > 0 {
					if failAt--; failAt == 0 {
						return errDraw
					}
				}
				x[i] = int64(src.Uint64() >> 8)
				dst[i] += x[i]
			}
			whole = append(whole, x)
			return nil
		})
		c.stack = make([]int64, 48*width)
		store := map[node][width]int64{}
		n := uint64(0)
		for _, step := range rapid.SliceOfN(rapid.OneOf(rapid.Just(uint64(1)), rapid.Uint64Range(0, 3),
			rapid.Uint64Range(0, 1<<40)), 1, 30).Draw(t, "steps") {
			n += step
			failAt = rapid.IntRange(0, 9).Draw(t, "fail")
			got, err := c.at(n)
			for err != nil {
				failAt = 0
				got, err = c.at(n)
			}
			failAt = 0
			var want [width]int64
			for _, x := range treeNodes(1, n, 47) {
				if _, ok := store[x]; !ok {
					if len(store) == len(whole) {
						t.Fatalf("n = %d: node %v was not drawn", n, x)
					}
					store[x] = whole[len(store)]
				}
				for i, y := range store[x] {
					want[i] += y
				}
			}
			if [width]int64(got) != want || len(store) != len(whole) {
				t.Fatalf("n = %d: noise %v of %d nodes, must be %v of %d", n, got, len(whole), want,
					len(store))
			}
		}
	})
}

// A trace by hand: d = 1, three records, nodes [1], [1,2] and [3] with noise 1, 20 and 300 steps in
// the first number, twice and three times as much in the others.
func TestRealGramByHand(t *testing.T) {
	g := realGram(t, 1, privacy.GramTree{Sigma: 1, Horizon: 3}, 0)
	draws := []int64{1, 20, 300}
	*nodeOf(g.noise[0]) = func(dst []int64) error {
		for i := range dst {
			dst[i] += draws[0] * int64(i+1)
		}
		draws = draws[1:]
		return nil
	}
	const u = gridSteps
	for i, c := range []struct {
		a, r float64
		want [3]int64 // a², a·r, r²
	}{
		{0.5, 7, [3]int64{u/4 + 1, u/2 + 2, u + 3}}, // 7 is clipped to 1
		{-1, 0.25, [3]int64{u/4 + u + 20, u/2 - u/4 + 40, u + u/16 + 60}},
		// the products of the third are 2^-22, 2^-21 and 1 of a unit: 1/4, 1/2 and 2^20 steps,
		// which round to 0, −1 and 2^20
		{0x1p-11, -0x1p-10, [3]int64{u/4 + u + 0 + 320, u/2 - u/4 - 1 + 640, u + u/16 + 1 + 960}},
	} {
		must(t, g.Add(0, []float64{c.a}, c.r))
		for range 2 {
			r, err := g.Release(0)
			must(t, err)
			if got := [3]int64(inSteps(t, r)); got != c.want {
				t.Errorf("after %d: %v, must be %v", i+1, got, c.want)
			}
		}
	}
}

// frobenius is the norm of the symmetric matrix with this upper triangle.
func frobenius(x []int64, rows int) float64 {
	sum := 0.0
	for row := rows; row > 0; row-- {
		sum += float64(x[0]) * float64(x[0])
		for _, y := range x[1:row] {
			sum += 2 * float64(y) * float64(y)
		}
		x = x[row:]
	}
	return math.Sqrt(sum)
}

// moves is by how much a record replaced by another moves a real Gram matrix, in steps. rounds
// changes what came in of a record: a broken twin.
func moves(t testing.TB, a []float64, r float64, b []float64, s float64,
	rounds func(sum []int64, a []float64, r float64)) float64 {
	t.Helper()
	d := len(a)
	x, y := realGram(t, d, privacy.GramTree{Horizon: 1}, 0), realGram(t, d, privacy.GramTree{Horizon: 1}, 0)
	must(t, x.Add(0, a, r))
	must(t, y.Add(0, b, s))
	if rounds != nil {
		rounds(x.sum, a, r)
		rounds(y.sum, b, s)
	}
	for i := range x.sum {
		x.sum[i] -= y.sum[i]
	}
	return frobenius(x.sum, d+1)
}

// outward rounds products away from zero.
func outward(sum []int64, a []float64, r float64) {
	z, at := append(append([]float64(nil), a...), r), 0
	for i := range z {
		for j := i; j < len(z); j++ {
			x := z[i] * z[j] * gridSteps
			sum[at] = int64(math.Copysign(math.Ceil(math.Abs(x)), x))
			at++
		}
	}
}

// No pair of records moves the matrix further than the price allows for, by random neighbours and
// by those that are worst for rounding; products that are rounded outwards do.
func TestRealGramSensitivity(t *testing.T) {
	limit := func(d int) float64 { return privacy.GramTree{}.GridSensitivity(d, ExactStep) * gridSteps }
	rapid.Check(t, func(r *rapid.T) {
		d := rapid.IntRange(1, 6).Draw(r, "dim")
		ball := func() []float64 {
			a, q := make([]float64, d), 0.0
			for i := range a {
				a[i] = rapid.Float64Range(-1, 1).Draw(r, "a")
				q += a[i] * a[i]
			}
			for i := range a {
				// a q that is nearly 0 has lost the digits that a sphere needs
				if q > 1e-200 && (q > 1 || rapid.Bool().Draw(r, "on the sphere")) {
					a[i] /= math.Sqrt(q)
				}
			}
			return a
		}
		a, b := ball(), ball()
		if rapid.Bool().Draw(r, "same vector") {
			b = a
		}
		x := rapid.Float64Range(-1, 1).Draw(r, "reward")
		if got := moves(t, a, x, b, -math.Copysign(1, x), nil); got > limit(d) {
			r.Fatalf("%v, %v and %v: moves by %v, above %v", a, x, b, got, limit(d))
		}
	})
	furthest := 0.0
	for d := 1; d <= 6; d++ {
		for _, part := range []float64{0, 0.001, 0.499, 0.501, 0.999} {
			// coordinates of this part of a step beyond whole ones
			a := make([]float64, d)
			for i := range a {
				a[i] = (math.Floor(gridSteps/math.Sqrt(float64(d))-1) + part) / gridSteps
			}
			got := moves(t, a, 1, a, -1, nil)
			furthest = max(furthest, got-2*math.Sqrt2*gridSteps)
			if got > limit(d) {
				t.Errorf("d = %d: moves by %v, above %v", d, got, limit(d))
			}
		}
	}
	// At the edge of the ball, one step in a hundred thousand below it: 0.0… of a step
	// beyond a whole one.
	twin := []float64{math.Floor(gridSteps/math.Sqrt2) + 0.01, math.Floor(gridSteps/math.Sqrt2) + 0.01}
	twin[0], twin[1] = twin[0]/gridSteps, twin[1]/gridSteps
	if got := moves(t, twin, 1, twin, -1, nil); got > limit(2) {
		t.Errorf("moves by %v, above %v", got, limit(2))
	}
	if got := moves(t, twin, 1, twin, -1, outward); got <= limit(2) {
		t.Errorf("rounded outwards it moves by %v, not above %v", got, limit(2))
	}
	if got := moves(t, []float64{1}, 1, []float64{1}, -1, func(sum []int64, _ []float64, _ float64) {
		for i := range sum {
			sum[i] *= 2
		}
	}); got <= limit(1) {
		t.Errorf("counted twice it moves by %v, not above %v", got, limit(1))
	}
}

// The price allows for the norms that the door lets in.
func TestGridSensitivityIsTheDoors(t *testing.T) {
	if got, want := (privacy.GramTree{}).GridSensitivity(7, 0), 2*math.Sqrt2*(1+2*unitball.Slack); got != want {
		t.Errorf("%v, the door lets in %v", got, want)
	}
}

// The ledger's σ is at least what was asked for and no more than was drawn, of whatever a record
// can do on the grid; all by whole 64ths of a step.
func TestRealGramIsChargedForTheNoiseItUses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sigma := math.Exp(rapid.Float64Range(-20, 12).Draw(r, "log sigma"))
		dim := rapid.IntRange(1, 1000).Draw(r, "dim")
		for _, m := range []privacy.Mechanism{privacy.GramTree{Sigma: sigma, Horizon: 100},
			privacy.GaussianVectorTree{Sigma: sigma, Horizon: 100},
			privacy.VectorTree{Scale: sigma, Dim: dim, Horizon: 100}} {
			g, err := exactGrowth(m, dim, rand.NewPCG(1, 2))
			must(t, err)
			var charged, more float64
			switch m := g.charge.(type) {
			case privacy.GramTree:
				charged, more = m.Sigma, m.GridSensitivity(dim, ExactStep)/(2*math.Sqrt2)
			case privacy.GaussianVectorTree:
				charged, more = m.Sigma, roundedSensitivity(dim)/2
			case privacy.VectorTree:
				// ℓ1: d coordinates move by a step more each
				charged = m.Scale
				more = (2*math.Sqrt(float64(dim))*(1+2e-9) + float64(dim)/gridSteps) /
					(2 * math.Sqrt(float64(dim)))
			}
			num, err := parts(m.Kind(), sigma*more)
			must(t, err)
			drawn := float64(num) / 64 / gridSteps / more
			if charged < sigma*(1-1e-12) || charged >= drawn*(1-1e-15) ||
				g.charge.Loss().ZCDP() > m.Loss().ZCDP()*(1+1e-9) {
				r.Fatalf("%v: charged %v, drawn %v", m, g.charge, drawn)
			}
			// On the diagonal at least √2, and at most what GridBand allows for.
			on := uint64(math.Ceil(float64(num)*math.Sqrt2)) + 1
			hi, lo := bits.Mul64(on, on)
			hi2, lo2 := bits.Mul64(num, 2*num)
			if hi < hi2 || hi == hi2 && lo < lo2 {
				r.Fatalf("%d of √2·%d on the diagonal", on, num)
			}
			s := max(sigma*more*gridSteps, 16) + 1.0/16
			if float64(num)/64 > s || float64(on)/64/math.Sqrt2 > s {
				r.Fatalf("%d and %d 64ths of a step, above %v steps", num, on, s)
			}
		}
	})
}

// Nothing overflows: the longest slot's sum and all of its nodes.
func TestRealGramStaysInItsNumbers(t *testing.T) {
	most := new(bigs.Int).Mul(bigs.NewInt(maxRewards), bigs.NewInt(gridSteps))
	most.Add(most, new(bigs.Int).Mul(bigs.NewInt(int64(bits.Len64(maxRewards)-1)), bigs.NewInt(maxDraw)))
	if !most.IsInt64() {
		t.Errorf("a sum may be %v", most)
	}
	g := realGram(t, 1, privacy.GramTree{Sigma: 1, Horizon: math.MaxInt}, 0)
	g.n[0], g.sum[0] = maxRewards-1, (maxRewards-1)*gridSteps
	*nodeOf(g.noise[0]) = func(dst []int64) error { dst[0] += maxDraw; return nil }
	must(t, g.Add(0, []float64{1 + 0.9e-9}, 1)) // as long as the door lets in, and one step no more
	if g.sum[0] != maxRewards*gridSteps {
		t.Errorf("the sum is %d", g.sum[0])
	}
	g.n[0]-- // all 42 nodes of 2^42 − 1
	r, err := g.Release(0)
	must(t, err)
	if want := math.Ldexp(1, 42) + 42*math.Ldexp(1, 35); bits.UintSize == 64 && r.At(0) != want {
		t.Errorf("released %v, must be %v", r.At(0), want)
	}
	g.n[0]++
	if err := g.Add(0, []float64{1}, 1); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("one more: %v", err)
	}
}

// What bounds a release of real records: noise and rounding. Each of three events in 3000 draws may
// have a probability of e^{−2}; the test says no if the Clopper–Pearson interval at 1−2·10⁻⁷ is
// above it, 9 times. The continuous band fails where the noise is the least that there is.
func TestGridBandsHold(t *testing.T) {
	const d, x, draws = 3, 2.0, 3000
	for _, c := range []struct {
		sigma float64
		n     int
	}{{2, 3}, {1e-9, 1}, {1e-4, 7}} {
		m := privacy.GramTree{Sigma: c.sigma, Horizon: 7}
		band, thin := m.GridBand(d, c.n, x, ExactStep), m.Band(d, c.n, x)
		var out [3]int
		below := 0
		for k := range draws {
			g := realGram(t, d, m, uint64(k))
			truth := mat.NewSymDense(d, nil)
			a := []float64{1.0 / 3, 1.0 / 7, -0.01} // products that are not whole steps
			for range c.n {
				must(t, g.Add(0, a, 1.0/9))
				truth.SymRankOne(truth, 1, mat.NewVecDense(d, a))
			}
			r, err := g.Release(0)
			must(t, err)
			at, column := 0, 0.0
			off := mat.NewSymDense(d, nil)
			for i := range d {
				for j := i; j < d; j++ {
					off.SetSym(i, j, r.At(at+j-i)-truth.At(i, j))
				}
				y := r.At(at+d-i) - float64(c.n)*a[i]/9
				column += y * y
				at += d + 1 - i
			}
			var e mat.EigenSym
			e.Factorize(off, false)
			v := e.Values(nil)
			for i, broken := range []bool{v[0] < band.Lo, v[d-1] > band.Hi, math.Sqrt(column) > band.Cross} {
				if broken {
					out[i]++
				}
			}
			if v[0] < thin.Lo {
				below++
			}
		}
		for i, k := range out {
			lo, _, err := stats.ClopperPearson(k, draws, 1-2e-7)
			must(t, err)
			if lo > math.Exp(-x) {
				t.Errorf("σ = %v after %d: event %d in %d of %d draws", c.sigma, c.n, i, k, draws)
			}
		}
		if c.sigma < 1e-5 && below < draws/4 {
			t.Errorf("the band of noise that is not drawn holds in all but %d of %d draws", below, draws)
		}
	}
	// Rounding alone, without noise, at most half a step a number.
	if b := (privacy.GramTree{Horizon: 8}).GridBand(4, 6, 1, 0.5); math.Abs(b.Hi-4*6*0.25) > 1e-6 ||
		b.Lo != -b.Hi || math.Abs(b.Cross-2*6*0.25) > 1e-6 {
		t.Errorf("%+v", b)
	}
	// On a fine grid it is the mechanism's own.
	m := privacy.GramTree{Sigma: 3, Horizon: 100}
	if b, fine := m.Band(4, 7, 3), m.GridBand(4, 7, 3, 1e-12); math.Abs(fine.Hi/b.Hi-1) > 1e-8 ||
		math.Abs(fine.Cross/b.Cross-1) > 1e-8 || fine.Hi < b.Hi {
		t.Errorf("%+v and %+v", b, fine)
	}
}

// Errors of real running sums say what is wrong, and nothing of a record.
func TestRealGramErrors(t *testing.T) {
	const canary = 1.7312894561
	cfg := FeatureConfig{Dim: 2, Slots: 1, Mechanism: privacy.GramTree{Sigma: 1, Horizon: 2}}
	with := func(dim int, m privacy.Mechanism) error {
		c := cfg
		c.Dim, c.Mechanism = dim, m
		f, err := RealFeatures(c)
		if err != nil && f != nil {
			t.Errorf("%v, and a curator of type %T", err, f)
		}
		return err
	}
	f, err := RealFeatures(cfg)
	must(t, err)
	_, empty := f.Release(0)
	outside := []error{f.Add(0, []float64{canary, 0}, 1), f.Add(0, []float64{0, math.NaN()}, 1),
		f.Add(0, []float64{math.Inf(-1), 0}, 1), f.Add(0, []float64{1e300, 1e300}, math.NaN())}
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		must(t, f.Add(0, []float64{1, 0}, x)) // −1 and 1
	}
	for i, c := range []struct {
		err  error
		says string
	}{
		{with(2, privacy.GramBLT{}), "gram-blt is for simulated rewards only"},
		{with(2, privacy.GramWishart{Dim: 2}), "gram-wishart is for simulated rewards only"},
		{with(2, privacy.GramBLT{}), "take gram-tree"},
		{with(2, nil), "mechanism is missing"},
		{with(2, privacy.Gaussian{Sigma: 1}), "gram-tree for real rewards"},
		{with(2, privacy.GramTree{Sigma: math.NaN(), Horizon: 2}), "sigma is NaN"},
		{with(2, privacy.GramTree{Sigma: 1}), "horizon is 0"},
		{with(2, privacy.GramTree{Sigma: 2 << 20, Horizon: 2}), "at most 1048576"},
		{with(2, privacy.VectorTree{Scale: 1, Dim: 3, Horizon: 2}), "dim of mechanism vector-tree is 3"},
		{with(2, privacy.VectorTree{Scale: -1, Dim: 2, Horizon: 2}), "scale is -1"},
		{with(2, privacy.GaussianVectorTree{Sigma: 1, Horizon: -1}), "horizon is -1"},
		{with(maxGramDim+1, privacy.GramTree{Sigma: 1, Horizon: 2}), "at most 4096"},
		{outside[0], "norm at most 1"}, {outside[1], "finite"}, {outside[2], "finite"}, {outside[3], "finite"},
		{f.Add(0, []float64{1}, 1), "1 features"},
		{f.Add(1, []float64{1, 0}, 1), "slot is 1"},
		{f.Add(0, []float64{1, 0}, 1), "has 2 rewards, must have at most 2"},
		{empty, "empty"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%d: %v does not say %q", i, c.err, c.says)
		}
	}
	for _, err := range outside {
		if text := fmt.Sprint(err); text != outside[0].Error() {
			t.Errorf("%q tells what is wrong with the vector", text)
		}
	}
	// A draw that fails releases nothing, and the next one goes on.
	g := realGram(t, 2, cfg.Mechanism, 0)
	must(t, g.Add(0, []float64{1, 0}, 1))
	node := nodeOf(g.noise[0])
	draw := *node
	*node = func([]int64) error { return noise.ErrOverflow }
	if r, err := g.Release(0); err == nil || r.Len() != 0 || len(g.ledger.Entries()) != 0 {
		t.Errorf("without a draw: %v, %v", r, err)
	}
	*node = draw
	if r, err := g.Release(0); err != nil || r.N() != 1 || len(g.ledger.Entries()) != 1 {
		t.Errorf("after it: %v, %v", r, err)
	}
}
