package privacy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleGramTree() {
	m, err := privacy.NewGramTree(privacy.ZCDP{Rho: 0.5}, 1000) // ten levels
	fmt.Printf("σ = %.3f, %v, %v\n", m.Sigma, m.Loss(), err)
	l := privacy.NewLedger()
	// running matrices of [a;r], d = 1: Σ a², Σ a·r, Σ r², with their noise
	for t := 1; t <= 3; t++ {
		if _, err := l.ReleaseVector(0, m, &privacy.Vector{N: t, Value: []float64{1.5, -2, 0.25}}); err != nil {
			fmt.Println(err)
		}
	}
	e := l.Entries()[0]
	fmt.Printf("%d releases, sensitivity %.3f (%s), %v\n%s\n", e.Releases, e.Sensitivity, e.Norm,
		l.Total(), e.Protects)
	// Output:
	// σ = 6.325, rho=0.5, <nil>
	// 3 releases, sensitivity 2.828 (Frobenius), rho=0.5
	// joint DP: a record is the vector that was played and its reward, replaced by another. The actions of other rounds reveal neither; the round's own action does
}

// record draws [a;r] with ‖a‖ ≤ 1, |r| ≤ 1, often at the edge.
func record(rng *rand.Rand, d int) []float64 {
	z := make([]float64, d+1)
	q := 0.0
	for i := range d {
		z[i] = rng.NormFloat64()
		if rng.IntN(3) == 0 {
			z[i] = 0
		}
		q += z[i] * z[i]
	}
	length := 1.0
	if rng.IntN(3) == 0 {
		length = rng.Float64()
	}
	for i := range d {
		if q > 0 {
			z[i] *= length / math.Sqrt(q)
		}
	}
	z[d] = []float64{-1, 1, 0, 2*rng.Float64() - 1}[rng.IntN(4)]
	return z
}

// moved is ‖zzᵀ − yyᵀ‖_F², and the μ² of (σ/√2)(X+Xᵀ) by its entries: variance 2σ² on the diagonal
// and σ² above it.
func moved(z, y []float64, sigma float64) (frobenius2, mu2 float64) {
	for i := range z {
		for j := range z {
			d := z[i]*z[j] - y[i]*y[j]
			frobenius2 += d * d
			switch {
			case i == j:
				mu2 += d * d / (2 * sigma * sigma)
			case i < j:
				mu2 += d * d / (sigma * sigma)
			}
		}
	}
	return frobenius2, mu2
}

// The algebra of the prices: the worst pair of records, and what it costs in a node by the
// laws of the entries.
func TestGramSensitivity(t *testing.T) {
	const sigma = 1.7
	rng := rand.New(rand.NewPCG(1, 2))
	node := privacy.GramTree{Sigma: sigma, Horizon: 1}.Loss().ZCDP()
	near(t, "ρ of a node", node, 8/(4*sigma*sigma), 1e-12)
	for _, d := range []int{1, 2, 5} {
		worst, cost := 0.0, 0.0
		for range 50_000 {
			z := record(rng, d)
			y := record(rng, d)
			if rng.IntN(2) == 0 { // the same vector with another reward
				copy(y, z[:d])
			}
			f, mu2 := moved(z, y, sigma)
			worst, cost = max(worst, f), max(cost, mu2/2)
		}
		if worst > 8*(1+1e-12) || worst < 8*(1-1e-12) {
			t.Errorf("d = %d: the largest ‖·‖² found is %v, must be 8", d, worst)
		}
		if math.Abs(cost/node-1) > 1e-12 {
			t.Errorf("d = %d: the largest ρ found is %v, a node costs %v", d, cost, node)
		}
		if twin := 4 / (4 * sigma * sigma); cost <= twin { // sensitivity 2
			t.Errorf("a price at sensitivity 2 was not found out")
		}
		a := make([]float64, d)
		l1 := 0.0
		for i := range a {
			a[i] = 1 / math.Sqrt(float64(d))
			l1 += 2 * a[i]
		}
		near(t, "ε of a node of vectors", privacy.VectorTree{Scale: 3, Dim: d,
			Horizon: 1}.Loss().Pure(), l1/3, 1e-12)
	}
	near(t, "ρ of a node of vectors", privacy.GaussianVectorTree{Sigma: 3,
		Horizon: 1}.Loss().ZCDP(), 4./18, 1e-12)
}

// Prices against those of the counters of single sums, whose sensitivity is 1.
func TestGramPrices(t *testing.T) {
	for _, h := range []int{1, 2, 3, 1000, 1023, 1024, 1_000_000} {
		levels := privacy.Tree{Horizon: h}.Levels()
		g := privacy.GramTree{Sigma: 4, Horizon: h}
		near(t, "tree", g.Loss().ZCDP(), float64(levels)*8/(4*16), 1e-12)
		near(t, "vector tree", privacy.GaussianVectorTree{Sigma: 4, Horizon: h}.Loss().ZCDP(),
			float64(levels)*4/(2*16), 1e-12)
		near(t, "Laplace", privacy.VectorTree{Scale: 4, Dim: 9, Horizon: h}.Loss().Pure(),
			float64(levels)*6/4, 1e-12)
		blt, err := privacy.NewBLT(privacy.ZCDP{Rho: 1}, h)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "BLT", privacy.GramBLT{Counter: blt}.Loss().ZCDP(), 8./2, 1e-9)
		if g.Levels() != levels {
			t.Errorf("%d levels, must be %d", g.Levels(), levels)
		}
	}
	// 12 times less variance than the tree at horizon 10⁶.
	b, _ := privacy.NewGramBLT(privacy.ZCDP{Rho: 1}, 1_000_000)
	g, _ := privacy.NewGramTree(privacy.ZCDP{Rho: 1}, 1_000_000)
	worst := 19.0 // 2^19−1 < 10⁶ < 2^20−1: 19 ones at 524287 and 983039
	near(t, "tree over BLT", worst*g.Sigma*g.Sigma/b.Counter.MaxVariance(), 12.66, 0.02)
}

func gramMechanisms(t testing.TB) []privacy.Mechanism {
	t.Helper()
	blt, err := privacy.NewGramBLT(privacy.ZCDP{Rho: 0.3}, 500)
	if err != nil {
		t.Fatal(err)
	}
	return []privacy.Mechanism{privacy.GramTree{Sigma: 2.5, Horizon: 500}, blt,
		privacy.GramWishart{Scale: 2, Degrees: 300, Dim: 3, Horizon: 500, Delta: 1e-5},
		privacy.VectorTree{Scale: 2.5, Dim: 3, Horizon: 500},
		privacy.GaussianVectorTree{Sigma: 2.5, Horizon: 500}}
}

// Calibrated noise costs the budget, and one slot is charged once however often it is released;
// with none there is none.
func TestGramBudgets(t *testing.T) {
	budgets := []privacy.Budget{privacy.ZCDP{Rho: 0.2}, privacy.Approx{Epsilon: 0.5, Delta: 1e-6},
		privacy.Approx{Epsilon: 3, Delta: 1e-6},
		privacy.Renyi{Alpha: 8, Epsilon: 1}, privacy.Pure{Epsilon: 0.7}, privacy.None{}}
	for _, h := range []int{1, 100, 1_000_000} {
		for _, b := range budgets {
			made := map[string]func() (privacy.Mechanism, error){
				"tree":     func() (privacy.Mechanism, error) { return privacy.NewGramTree(b, h) },
				"blt":      func() (privacy.Mechanism, error) { return privacy.NewGramBLT(b, h) },
				"wishart":  func() (privacy.Mechanism, error) { return privacy.NewGramWishart(b, 3, h) },
				"laplace":  func() (privacy.Mechanism, error) { return privacy.NewVectorTree(b, 3, h) },
				"gaussian": func() (privacy.Mechanism, error) { return privacy.NewGaussianVectorTree(b, h) },
			}
			for name, build := range made {
				m, err := build()
				_, pure := b.(privacy.Pure)
				_, approx := b.(privacy.Approx)
				_, none := b.(privacy.None)
				can := !pure && (name == "tree" || name == "blt" || name == "gaussian") || approx &&
					name == "wishart" || pure && name == "laplace" || none
				if (err == nil) != can {
					t.Errorf("%s at %v: %v, %v", name, b, m, err)
				}
				if err != nil {
					continue
				}
				l := privacy.NewLedger()
				for n := range min(5, h) {
					if _, err := l.ReleaseVector(0, m, &privacy.Vector{N: n + 1,
						Value: []float64{1}}); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := l.ReleaseVector(1, m, &privacy.Vector{N: 1, Value: []float64{1}}); err != nil {
					t.Fatal(err)
				}
				if none {
					if !l.Total().Infinite() {
						t.Errorf("%s without noise costs %v", name, l.Total())
					}
					continue
				}
				if !l.Total().Within(b) {
					t.Errorf("%s at %v, horizon %d: %v costs %v", name, b, h, m, l.Total())
				}
				// It is used up, but for what the classic calibration and the degrees
				// of freedom leave.
				spent, want := l.Total().In(b), b
				if fmt.Sprintf("%T", spent) != fmt.Sprintf("%T", want) {
					t.Errorf("%s at %v costs %v", name, b, spent)
				}
				switch want := want.(type) {
				case privacy.ZCDP:
					near(t, name, spent.(privacy.ZCDP).Rho, want.Rho, 1e-9)
				case privacy.Pure:
					near(t, name, spent.(privacy.Pure).Epsilon, want.Epsilon, 1e-9)
				case privacy.Renyi:
					near(t, name, spent.(privacy.Renyi).Epsilon, want.Epsilon, 1e-9)
				case privacy.Approx:
					if x := spent.(privacy.Approx).Epsilon; x < 0.6*want.Epsilon {
						t.Errorf("%s at %v spends %v only", name, b, x)
					}
				}
			}
		}
	}
}

func TestGramEntries(t *testing.T) {
	l := privacy.NewLedger()
	for i, m := range gramMechanisms(t) {
		releaseVector(t, l, i, m)
	}
	for i, e := range l.Entries() {
		joint := i < 3
		if strings.Contains(e.Protects, "the round's own action does") != joint ||
			strings.Contains(e.Protects, "public") == joint {
			t.Errorf("%v: %q", e.Mechanism, e.Protects)
		}
		want := [...]string{"Frobenius", "Frobenius", "Frobenius", "ℓ1", "ℓ2"}[i]
		sensitivity := [...]float64{2 * math.Sqrt2, 2 * math.Sqrt2, 2 * math.Sqrt2, 2 * math.Sqrt(3), 2}[i]
		if e.Norm != want || e.Scale == 0 || math.Abs(e.Sensitivity-sensitivity) > 1e-15 || e.Loss.Infinite() {
			t.Errorf("%+v", e)
		}
	}
	// They say nothing about a single sum.
	for _, m := range gramMechanisms(t) {
		l := privacy.NewLedger()
		if _, err := l.Release(0, m, &privacy.Values{N: []int{1}, Sum: []float64{1}}); err != nil ||
			!l.Total().Infinite() {
			t.Errorf("a sum through %v costs %v; %v", m, l.Total(), err)
		}
	}
}

func TestGramJSON(t *testing.T) {
	for _, m := range gramMechanisms(t) {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := privacy.UnmarshalMechanism(data)
		if err != nil || back != m {
			t.Errorf("%s became %v, %v", data, back, err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		for name := range fields {
			less := map[string]json.RawMessage{}
			for n, v := range fields {
				if n != name {
					less[n] = v
				}
			}
			text, _ := json.Marshal(less)
			if got, err := privacy.UnmarshalMechanism(text); err == nil {
				t.Errorf("%s: read as %v", text, got)
			}
		}
	}
	for _, bad := range []string{
		`{"mechanism":"gram-tree","sigma":-1,"horizon":5}`,
		`{"mechanism":"gram-tree","sigma":1,"horizon":0}`,
		`{"mechanism":"gram-tree","sigma":1,"horizon":5,"dim":2}`,
		`{"mechanism":"gram-blt","sigma":1,"horizon":5,"decay":[0.5],"weight":[-1]}`,
		`{"mechanism":"vector-tree","scale":1,"horizon":5,"dim":0}`,
		`{"mechanism":"gram-wishart","scale":2,"horizon":5,"dim":3,"degrees":5,"delta":0.1}`,
		`{"mechanism":"gram-wishart","scale":2,"horizon":5,"dim":3,"degrees":9,"delta":1}`,
		`{"mechanism":"gram-wishart","scale":2,"horizon":5,"dim":0,"degrees":9,"delta":0.1}`,
		`{"mechanism":"gaussian-vector-tree","sigma":1e999,"horizon":5}`,
	} {
		if m, err := privacy.UnmarshalMechanism([]byte(bad)); err == nil {
			t.Errorf("%s: read as %v", bad, m)
		}
	}
	for _, m := range []privacy.Mechanism{privacy.GramTree{Sigma: math.NaN(), Horizon: 1},
		privacy.GramBLT{}, privacy.GramWishart{}, privacy.VectorTree{Scale: 1, Horizon: 1},
		privacy.GaussianVectorTree{Sigma: 1}, privacy.GramWishart{Scale: 2, Degrees: 5, Dim: 1,
			Horizon: 1, Delta: 1e-9}} {
		if !m.Loss().Infinite() {
			t.Errorf("%v costs %v", m, m.Loss())
		}
	}
}

// wishart2 is a 2×2 Wishart matrix as (x, y, z) for [[x, y], [y, z]].
func wishart2(rng *rand.Rand, degrees int) (x, y, z float64) {
	for range degrees {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		x += a * a
		y += a * b
		z += b * b
	}
	return x, y, z
}

// The (ε,Delta) of Wishart noise against the privacy loss itself, by its density, for the worst
// records and others: δ(ε) = E(1−e^{ε−L})₊, estimated from 2·10⁴ draws, must not be above Delta
// by more than five standard errors (3e-7 each for normal errors, 16 comparisons); half the
// degrees must be.
func TestWishartPrice(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		degrees, horizon int
		delta            float64
	}{{24, 1, 0.02}, {60, 3, 0.02}} {
		m := privacy.GramWishart{Scale: 2, Degrees: c.degrees, Dim: 1, Horizon: c.horizon, Delta: c.delta}
		epsilon := m.Loss().Approx(c.delta)
		if math.IsInf(epsilon, 1) {
			t.Fatalf("%v has no ε", m)
		}
		// δ of noise with these degrees, and how sure that is. Records are over √Scale.
		estimate := func(degrees int, z, y [2]float64) (delta, se float64) {
			const draws = 20_000
			var sum, squares float64
			nu := float64(degrees - 3)
			for range draws {
				loss := 0.0
				for range m.Levels() {
					a, b, d := wishart2(rng, degrees)
					// The node shows zzᵀ + W. Seen from yyᵀ its noise is W + zzᵀ − yyᵀ.
					a2, b2, d2 := a+z[0]*z[0]-y[0]*y[0], b+z[0]*z[1]-y[0]*y[1], d+z[1]*z[1]-y[1]*y[1]
					other := a2*d2 - b2*b2
					if a2 <= 0 || other <= 0 {
						loss = math.Inf(1)
						continue
					}
					l := nu/2*(math.Log(a*d-b*b)-math.Log(other)) + (a2+d2-a-d)/2
					loss += l
					// The bound's own pieces.
					det := a*d - b*b
					quad := func(v [2]float64) float64 {
						return (d*v[0]*v[0] - 2*b*v[0]*v[1] + a*v[1]*v[1]) / det
					}
					zz, yy := z[0]*z[0]+z[1]*z[1], y[0]*y[0]+y[1]*y[1]
					bound := zz/2 - nu/2*math.Log1p(quad(z)) - yy/2 - nu/2*math.Log1p(-quad(y))
					if l > bound+1e-9 {
						t.Fatalf("a loss of %v is above A + B = %v", l, bound)
					}
				}
				x := 0.0
				if loss > epsilon {
					x = -math.Expm1(epsilon - loss)
				}
				sum += x
				squares += x * x
			}
			delta = sum / draws
			return delta, math.Sqrt((squares/draws-delta*delta)/draws) + 1e-4
		}
		h := 1 / math.Sqrt2
		found := false
		for _, pair := range [][2][2]float64{{{h, h}, {h, -h}}, {{h, h}, {0, 0}}, {{0, 0}, {h, h}},
			{{h, h}, {0, h}}, {{0, h}, {h, h}}, {{1, 0}, {0, 1}}, {{0.3, h}, {0.3, -h}}} {
			delta, se := estimate(c.degrees, pair[0], pair[1])
			if delta > c.delta+5*se {
				t.Errorf("%v: δ(%.3f) is %v ± %v for records %v", m, epsilon, delta, se, pair)
			}
			twin, se := estimate(max(5, c.degrees/5), pair[0], pair[1])
			found = found || twin > c.delta+5*se
		}
		if !found {
			t.Errorf("%v: a fifth of the degrees was not found out", m)
		}
	}
}

// How many degrees of freedom are enough, against 28·log(4/δ₀)/ε₀² for each of m levels at ε₀ =
// ε/√(8m log(2/δ)), δ₀ = δ/(2m).
func TestWishartDegrees(t *testing.T) {
	for _, c := range []struct {
		epsilon float64
		horizon int
		degrees int
		source  float64 // of the theorem, d = 3
	}{{0.1, 1000, 55831, 5.914e7}, {1, 1000, 588, 5.914e5}, {1, 1_000_000, 1148, 1.2279e6},
		{5, 1000, 46, 23656}} {
		m, err := privacy.NewGramWishart(privacy.Approx{Epsilon: c.epsilon, Delta: 1e-6}, 3, c.horizon)
		if err != nil || math.Abs(float64(m.Degrees-c.degrees)) > float64(c.degrees)/500 {
			t.Errorf("%v: %d degrees, must be %d; %v", c.epsilon, m.Degrees, c.degrees, err)
		}
		levels := float64(m.Levels())
		near(t, "the theorem's", 224*levels/(c.epsilon*c.epsilon)*math.Log(8*levels/1e-6)*math.Log(2/1e-6),
			c.source, 1e-3)
	}
}

// More noise never costs more.
func TestGramProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.IntRange(1, 40).Draw(rt, "d")
		h := rapid.IntRange(1, 1<<20).Draw(rt, "horizon")
		k := rapid.IntRange(d+20, d+5000).Draw(rt, "degrees")
		delta := math.Exp(-rapid.Float64Range(1, 25).Draw(rt, "log 1/δ"))
		a := privacy.GramWishart{Scale: 2, Degrees: k, Dim: d, Horizon: h, Delta: delta}
		b := a
		b.Degrees += 1 + k/4
		if rapid.Bool().Draw(rt, "scale") {
			b = a
			b.Scale *= 1.5
		}
		if x, y := a.Loss().Approx(delta), b.Loss().Approx(delta); y > x*(1+1e-6) {
			rt.Errorf("%v costs %v, with more noise %v", a, x, y)
		}
		n := rapid.IntRange(1, h).Draw(rt, "t")
		x := rapid.Float64Range(0, 50).Draw(rt, "x")
		for _, m := range []privacy.GramMechanism{a, privacy.GramTree{Sigma: 3, Horizon: h}} {
			band, wider := m.Band(d, n, x), m.Band(d, n, x+1)
			if !(band.Lo <= band.Hi && wider.Lo <= band.Lo && wider.Hi > band.Hi &&
				wider.Cross > band.Cross && band.Cross > 0) {
				rt.Errorf("%v after %d: %+v, at x+1 %+v", m, n, band, wider)
			}
			if zero := m.Band(d, 0, x); zero != (privacy.Band{Lo: zero.Lo, Hi: 0, Cross: 0}) || zero.Lo != 0 {
				rt.Errorf("%v: before anything %+v", m, zero)
			}
		}
	})
}

// With leaves of m records the price, and the noise, are those of a tree of ⌊T/m⌋ records; what
// rounding does is of the records.
func TestGramLeaves(t *testing.T) {
	for _, c := range []struct{ horizon, leaf, leaves int }{{1000, 10, 100}, {1009, 10, 100},
		{1023, 1, 1023}, {64, 64, 1}, {7, 4, 1}} {
		m, err := privacy.NewGramLeaves(privacy.ZCDP{Rho: 0.5}, c.horizon, c.leaf)
		if err != nil {
			t.Fatal(err)
		}
		small, err := privacy.NewGramTree(privacy.ZCDP{Rho: 0.5}, c.leaves)
		if err != nil {
			t.Fatal(err)
		}
		if m.Sigma != small.Sigma || m.Loss().ZCDP() != small.Loss().ZCDP() || m.Levels() != small.Levels() ||
			privacy.Longest(m) != c.horizon {
			t.Errorf("%v costs %v and sums up to %d, and %v %v", m, m.Loss(), privacy.Longest(m), small,
				small.Loss())
		}
		// Its noise is of the nodes of so many leaves.
		n := c.leaf * min(c.leaves, 7)
		if m.Band(3, n, 2) != small.Band(3, min(c.leaves, 7), 2) {
			t.Errorf("%v: the band after %d records is %v", m, n, m.Band(3, n, 2))
		}
		// Rounding, beside that of one leaf after one record: half a step a record.
		const step = 1.0 / (1 << 20)
		bare, wide := privacy.GramTree{Horizon: c.leaves}, privacy.GramTree{Horizon: c.horizon, Leaf: c.leaf}
		if b := wide.GridBand(3, n, 2, step); b != bare.GridBand(3, n, 2, step) ||
			math.Abs(b.Hi-3*float64(n)*step/2) > 1e-8*step*float64(n) {
			t.Errorf("%v: rounding of %d records is %+v", m, n, b)
		}
		noisy := m.GridBand(3, n, 2, step).Hi - wide.GridBand(3, n, 2, step).Hi
		want := small.GridBand(3, min(c.leaves, 7), 2, step).Hi -
			bare.GridBand(3, min(c.leaves, 7), 2, step).Hi
		near(t, "noise on the grid", noisy, want, 1e-12)
	}
	// The ledger seals whole leaves alone, and each prefix once.
	l := privacy.NewLedger()
	m := privacy.GramTree{Sigma: 1, Horizon: 11, Leaf: 3}
	for _, n := range []int{1, 3, 4, 9, 6, 12, 10, 11} {
		_, err := l.ReleaseVector(0, m, &privacy.Vector{N: n, Value: []float64{1}})
		if good := n == 3 || n == 9; (err == nil) != good || !good && !errors.Is(err, privacy.ErrPrefix) {
			t.Errorf("a sum of %d records: %v", n, err)
		}
	}
	if got := l.Total().ZCDP(); math.Abs(got-4) > 1e-9 { // 3 leaves, 2 levels
		t.Errorf("it costs %v", got)
	}
	for text, want := range map[string]privacy.Mechanism{
		`{"mechanism":"gram-tree","sigma":2,"horizon":1000,"leaf":16}`: privacy.GramTree{Sigma: 2,
			Horizon: 1000, Leaf: 16},
		`{"mechanism":"gram-tree","sigma":2,"horizon":1000,"leaf":-1}`:   nil,
		`{"mechanism":"gram-tree","sigma":2,"horizon":1000,"leaf":1001}`: nil,
		`{"mechanism":"gram-tree","sigma":2,"horizon":1000,"leaf":1.5}`:  nil,
		`{"mechanism":"gram-tree","sigma":2,"horizon":1000,"leaf":null}`: nil,
	} {
		got, err := privacy.UnmarshalMechanism([]byte(text))
		if got != want || (err == nil) != (want != nil) {
			t.Errorf("%s is read as %v, %v", text, got, err)
			continue
		}
		if want == nil {
			continue
		}
		if data, err := json.Marshal(got); string(data) != text || err != nil {
			t.Errorf("%s is written as %s, %v", text, data, err)
		}
		if s := fmt.Sprint(got); s != "gram-tree(sigma=2,horizon=1000,leaf=16)" {
			t.Errorf("it is %q", s)
		}
	}
	for _, m := range []privacy.GramTree{{Sigma: 1, Horizon: 5, Leaf: 6}, {Sigma: 1, Horizon: 5, Leaf: -1}} {
		if !m.Loss().Infinite() || m.Validate() == nil {
			t.Errorf("%v costs %v", m, m.Loss())
		}
	}
	if _, err := privacy.NewGramLeaves(privacy.ZCDP{Rho: 1}, 5, 6); err == nil {
		t.Error("a leaf of more records than there are")
	}
}
