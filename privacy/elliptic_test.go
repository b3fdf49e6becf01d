package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

// A phase of AdaC-GOPE: what was played shapes the noise, and σ is calibrated to the g
// that was achieved.
func ExampleNewElliptic() {
	actions := [][]float64{{1, 0}, {0, 1}, {0.6, 0.8}}
	m, err := privacy.NewElliptic(1, actions, []int{50, 40, 0})
	if err != nil {
		fmt.Println(err)
		return
	}
	const rho = 0.1
	m, err = m.WithSigma(math.Sqrt(2 / rho * m.G2()))
	fmt.Printf("g² %.4f, σ %.4f, rho %.4f, %v\n", m.G2(), m.Sigma(), m.Loss().ZCDP(), err)
	m, _ = m.WithSigma(0.5)
	data, err := json.Marshal(m)
	fmt.Println(string(data), err)
	// Output:
	// g² 0.0250, σ 0.7071, rho 0.1000, <nil>
	// {"mechanism":"elliptic","sigma":0.5,"of":3,"played":[0,1],"counts":[50,40],"actions":[[1,0],[0,1]]} <nil>
}

func elliptic(t testing.TB, sigma float64, actions [][]float64, counts []int) privacy.Elliptic {
	t.Helper()
	m, err := privacy.NewElliptic(sigma, actions, counts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestG2ByHand(t *testing.T) {
	third := math.Sqrt(1.0 / 3)
	for _, c := range []struct {
		name    string
		actions [][]float64
		counts  []int
		g2      float64
		rank    int
	}{
		{"one action", [][]float64{{0.3}}, []int{7}, 1.0 / 7, 1},
		{"orthogonal", [][]float64{{1, 0}, {0, 0.01}}, []int{4, 9}, 1.0 / 4, 2},
		// V = 4 + 8/4 on the line
		{"parallel", [][]float64{{1, 0}, {0.5, 0}}, []int{4, 8}, 1.0 / 6, 1},
		// and so g is the short one's
		{"parallel, the long one not played", [][]float64{{1, 0}, {0.5, 0}}, []int{0, 8}, 1.0 / 8, 1},
		// V is singular
		{"a plane in space", [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, []int{2, 3, 0}, 1.0 / 2, 2},
		// V = [[1.36, .48], [.48, 1.64]], determinant 2: V⁻¹ = [[.82, −.24], [−.24, .68]]; the
		// norms are .82, .68 and .36·.82 − 2·.48·.24 + .64·.68 = .5.
		{"more actions than dimensions", [][]float64{{1, 0}, {0, 1}, {0.6, 0.8}}, []int{1, 1, 1}, 0.82, 2},
		// a V⁺ cut at 1e-10 says 1e-6
		{"alone in its direction, thin", [][]float64{{1, 0}, {1, 1e-6}}, []int{1_000_000, 1}, 1, 2},
		{"nothing but 0", [][]float64{{0, 0}, {third, third}}, []int{5, 0}, 0, 0},
		{"0 beside another", [][]float64{{0, 0}, {third, third}}, []int{5, 2}, 1.0 / 2, 1},
		{"tiny features", [][]float64{{1e-90, 0}, {0, 1e-95}}, []int{3, 2}, 1.0 / 2, 2},
	} {
		m := elliptic(t, 1, c.actions, c.counts)
		near(t, c.name, m.G2(), c.g2, 1e-9)
		if m.G2() < c.g2 {
			t.Errorf("%s: g² is %v, below %v", c.name, m.G2(), c.g2)
		}
		if m.Rank() != c.rank {
			t.Errorf("%s: rank %d, want %d", c.name, m.Rank(), c.rank)
		}
	}
}

// Kiefer and Wolfowitz: an exact design of n plays has g² = d/n, here the corners of a square.
func TestG2OfAnExactDesign(t *testing.T) {
	var actions [][]float64
	for i := range 4 {
		a := 2 * math.Pi * float64(i) / 4
		actions = append(actions, []float64{math.Cos(a), math.Sin(a)})
	}
	m := elliptic(t, 3, actions, []int{25, 25, 25, 25})
	near(t, "g²", m.G2(), 2.0/100, 1e-12)
	near(t, "rho", m.Loss().ZCDP(), 2*m.G2()/9, 1e-12)
	near(t, "sensitivity", m.Sensitivity(), 2*math.Sqrt(0.02), 1e-12)
	near(t, "delta", m.Loss().Approx(1e-6), privacy.GaussianEpsilon(2*math.Sqrt(0.02)/3, 1e-6), 1e-9)
}

// A played set as policies leave them: random actions of norm at most 1, perhaps in a subspace,
// some eliminated, others cut short.
type playedSet struct {
	actions [][]float64
	counts  []int
}

func anyPlayedSet() *rapid.Generator[playedSet] {
	return rapid.Custom(func(t *rapid.T) playedSet {
		d := rapid.IntRange(1, 6).Draw(t, "d")
		k := rapid.IntRange(1, 14).Draw(t, "k")
		rank := rapid.IntRange(1, d).Draw(t, "rank")
		// sums of products are exact
		unit := rapid.Map(rapid.IntRange(-16, 16), func(n int) float64 { return float64(n) / 16 })
		basis := make([][]float64, rank)
		for i := range basis {
			basis[i] = rapid.SliceOfN(unit, d, d).Draw(t, "basis")
		}
		p := playedSet{counts: make([]int, k)}
		for range k {
			a := make([]float64, d)
			for _, b := range basis {
				w := unit.Draw(t, "weight")
				for j := range a {
					a[j] += w * b[j]
				}
			}
			for j := range a { // now ‖a‖ ≤ 6√6/16
				a[j] /= 16
			}
			p.actions = append(p.actions, a)
		}
		for i := range p.counts {
			switch rapid.IntRange(0, 3).Draw(t, "fate") {
			case 0: // eliminated, or not in the design's support
			case 1: // cut short
				p.counts[i] = rapid.IntRange(0, 3).Draw(t, "few")
			default:
				p.counts[i] = rapid.IntRange(1, 5000).Draw(t, "count")
			}
		}
		if slices.Max(p.counts) == 0 {
			p.counts[0] = 1
		}
		return p
	})
}

// squaredLength is bᵀV⁺b in exact arithmetic: bᵀx for any x with Vx = b, which there is, as b is
// one of the actions that make up V.
func squaredLength(p playedSet, b []float64) float64 {
	d := len(b)
	rows := make([][]*big.Rat, d) // of [V | b]
	for i := range rows {
		for range d + 1 {
			rows[i] = append(rows[i], new(big.Rat))
		}
		rows[i][d].SetFloat64(b[i])
	}
	for k, a := range p.actions {
		for i := range d {
			for j := range d {
				x, y := new(big.Rat).SetFloat64(a[i]), new(big.Rat).SetFloat64(a[j])
				x.Mul(x, y).Mul(x, big.NewRat(int64(p.counts[k]), 1))
				rows[i][j].Add(rows[i][j], x)
			}
		}
	}
	var pivots []int // column of each row
	for column := range d {
		r := len(pivots)
		at := slices.IndexFunc(rows[r:], func(row []*big.Rat) bool { return row[column].Sign() != 0 })
		if at < 0 {
			continue
		}
		rows[r], rows[r+at] = rows[r+at], rows[r]
		for i := range rows {
			if i == r || rows[i][column].Sign() == 0 {
				continue
			}
			f := new(big.Rat).Quo(rows[i][column], rows[r][column])
			for j := range rows[i] {
				rows[i][j].Sub(rows[i][j], new(big.Rat).Mul(f, rows[r][j]))
			}
		}
		pivots = append(pivots, column)
	}
	q := new(big.Rat)
	for r, column := range pivots {
		x := new(big.Rat).Quo(rows[r][d], rows[r][column])
		q.Add(q, x.Mul(x, new(big.Rat).SetFloat64(b[column])))
	}
	f, _ := q.Float64()
	return f
}

// furthest is the most that a sum Σ a·r moves in the norm of V⁺ over all tables of rewards in
// [−1,1] that differ in one: brute force over which reward, and over its old and new value. The
// other rewards cancel.
func furthest(p playedSet) (distance float64) {
	for i, a := range p.actions {
		if p.counts[i] == 0 {
			continue
		}
		length := math.Sqrt(squaredLength(p, a))
		for _, before := range []float64{-1, -0.3, 0, 1} {
			for _, after := range []float64{-1, 0.7, 1} {
				distance = max(distance, math.Abs(after-before)*length)
			}
		}
	}
	return distance
}

// Claims of a sensitivity in the norm of V⁺. Only the mechanism's holds.
var claims = map[string]func(t testing.TB, p playedSet) float64{
	"achieved": func(t testing.TB, p playedSet) float64 {
		return elliptic(t, 1, p.actions, p.counts).Sensitivity()
	},
	"of an exact design": func(t testing.TB, p playedSet) float64 {
		n := 0
		for _, k := range p.counts {
			n += k
		}
		return 2 * math.Sqrt(float64(len(p.actions[0]))/float64(n))
	},
	"1 instead of 2": func(t testing.TB, p playedSet) float64 {
		return elliptic(t, 1, p.actions, p.counts).Sensitivity() / 2
	},
	"of the norm alone": func(t testing.TB, p playedSet) float64 {
		n := 0
		for _, k := range p.counts {
			n += k
		}
		return 2 / math.Sqrt(float64(n))
	},
}

func TestSensitivityIsNeverExceededAndIsAttained(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := anyPlayedSet().Draw(r, "played")
		got, claimed := furthest(p), claims["achieved"](t, p)
		if got > claimed {
			r.Fatalf("the sum moves by %v, the mechanism says %v at most", got, claimed)
		}
		if got < claimed*(1-1e-9) {
			r.Fatalf("the sum moves by %v only, the mechanism says %v", got, claimed)
		}
	})
}

func TestWrongClaimsOfSensitivityAreCaught(t *testing.T) {
	for name, claim := range claims {
		caught := 0
		for seed := range 100 {
			p := anyPlayedSet().Example(seed)
			if furthest(p) > claim(t, p) {
				caught++
			}
		}
		if (caught > 0) != (name != "achieved") {
			t.Errorf("%s: exceeded by %d of 100 sets", name, caught)
		}
	}
}

// AdaC-GOPE's calibration: σ² = (2/ρ)g² costs ρ, whatever was played.
func TestCalibratedToTheAchievedG(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := anyPlayedSet().Draw(r, "played")
		rho := math.Exp(rapid.Float64Range(-7, 7).Draw(r, "log rho"))
		m := elliptic(t, 1, p.actions, p.counts)
		if m.G2() == 0 {
			return
		}
		m, err := m.WithSigma(math.Sqrt(2 / rho * m.G2()))
		if err != nil {
			r.Fatal(err)
		}
		if got := m.Loss().ZCDP(); math.Abs(got-rho) > 1e-12*rho || !m.Loss().Within(privacy.ZCDP{Rho: rho}) {
			r.Fatalf("rho is %v, want %v", got, rho)
		}
	})
}

func TestEllipticReadsBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := anyPlayedSet().Draw(r, "played")
		m := elliptic(t, rapid.Float64Range(0, 1e3).Draw(r, "sigma"), p.actions, p.counts)
		data, err := json.Marshal(m)
		if err != nil {
			r.Fatal(err)
		}
		got, err := privacy.UnmarshalMechanism(data)
		if err != nil {
			r.Fatal(err)
		}
		back := got.(privacy.Elliptic)
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(data) {
			r.Fatalf("%s became %s, %v", data, again, err)
		}
		if back.G2() != m.G2() || back.Rank() != m.Rank() || back.Actions() != len(p.counts) ||
			back.Dim() != len(p.actions[0]) ||
			back.Sigma() != m.Sigma() || back.Covers(p.actions, p.counts) != nil {
			r.Fatalf("%v became %v", m, back)
		}
	})
}

func TestEllipticDoesNotChange(t *testing.T) {
	actions, counts := [][]float64{{1, 0}, {0, 1}}, []int{4, 9}
	m := elliptic(t, 1, actions, counts)
	loss := m.Loss().ZCDP()
	actions[0][0], counts[0] = 100, 1_000_000
	if m.Loss().ZCDP() != loss || m.Count(0) != 4 || m.V()[0][0] != 4 {
		t.Errorf("who made %v has changed it", m)
	}
	v := m.V()
	v[0][0] = 7
	if m.V()[0][0] != 4 {
		t.Error("V gave its own matrix away")
	}
	if m.Count(-1) != 0 || m.Count(2) != 0 {
		t.Error("actions that there are not have counts")
	}
}

func TestEllipticCovers(t *testing.T) {
	actions := [][]float64{{1, 0}, {0, 1}, {0.5, 0.5}}
	m := elliptic(t, 1, actions, []int{4, 9, 0})
	if err := m.Covers(actions, []int{4, 2, 0}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		actions [][]float64
		n       []int
		says    string
	}{
		{actions, []int{5, 0, 0}, "action 0 has 5 rewards, must have at most 4"},
		{actions, []int{0, 0, 1}, "action 2 has 1 rewards, must have at most 0"},
		{actions[:2], []int{1, 1}, "it is for 3 actions, and there are 2"},
		{[][]float64{{1, 0}, {0, 0.5}, {0.5, 0.5}}, []int{1, 1, 0}, "action 1 is [0 0.5], must be [0 1]"},
		{[][]float64{{1, 0}, {0}, {0.5, 0.5}}, []int{1, 1, 0}, "action 1 is [0]"},
	} {
		if err := m.Covers(c.actions, c.n); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

func TestBadElliptic(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one := [][]float64{{1, 0}, {0, 1}}
	for _, c := range []struct {
		sigma   float64
		actions [][]float64
		counts  []int
		says    string
	}{
		{nan, one, []int{1, 1}, "sigma is NaN"},
		{inf, one, []int{1, 1}, "sigma is +Inf"},
		{-1, one, []int{1, 1}, "sigma is -1"},
		{1, one, []int{1}, "1 counts for 2 actions"},
		{1, one, []int{0, 0}, "all counts are 0"},
		{1, nil, nil, "all counts are 0"},
		{1, one, []int{1, -2}, "count of action 1 is -2"},
		{1, one, []int{math.MaxInt, 1}, "count of action 0"},
		{1, [][]float64{{}, {}}, []int{1, 1}, "action 0 has no features"},
		{1, [][]float64{{1}, {1, 2}}, []int{1, 1}, "action 1 has 2 features and action 0 has 1"},
		{1, [][]float64{{1, nan}}, []int{1}, "feature 1 of action 0 is NaN"},
		{1, [][]float64{{-inf, 1}}, []int{1}, "feature 0 of action 0 is -Inf"},
		{1, [][]float64{{1e101, 1}}, []int{1}, "1e+101"},
		{1, make([][]float64, privacy.MaxActions+1), append(make([]int, privacy.MaxActions), 1),
			"number of actions is"},
	} {
		if m, err := privacy.NewElliptic(c.sigma, c.actions, c.counts); err == nil ||
			!strings.Contains(err.Error(), c.says) || !m.Loss().Infinite() {
			t.Errorf("%v, %v, want %q", m, err, c.says)
		}
	}
	var zero privacy.Elliptic
	if zero.Validate() == nil || !zero.Loss().Infinite() || zero.Rank() != 0 ||
		len(zero.V()) != 0 || zero.Covers(nil, nil) == nil || zero.Count(0) != 0 ||
		zero.String() == "" || zero.Sigma() != 0 {
		t.Error("the zero value is something")
	}
	if _, err := zero.WithSigma(1); err == nil {
		t.Error("the zero value has a shape")
	}
	if _, err := json.Marshal(zero); err == nil {
		t.Error("the zero value was written")
	}
	if !elliptic(t, 0, one, []int{1, 1}).Loss().Infinite() {
		t.Error("no noise has a finite loss")
	}
	good := `{"mechanism":"elliptic","sigma":1,"of":3,"played":[0,2],"counts":[5,7],"actions":[[1,0],[0,1]]}`
	if _, err := privacy.UnmarshalMechanism([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"sigma":1,`, ``}, {`"of":3,`, ``}, {`"of":3`, `"of":2`}, {`"of":3`, `"of":-1`},
		{`"of":3`, `"of":1000000000000`}, {`[0,2]`, `[2,0]`},
		{`[0,2]`, `[0,0]`}, {`[0,2]`, `[-1,2]`}, {`[0,2]`, `[0]`}, {`[5,7]`, `[5,0]`},
		{`[5,7]`, `[5]`}, {`[[1,0],[0,1]]`, `[[1,0],[0]]`},
		{`[[1,0],[0,1]]`, `[[1,0]]`}, {`"sigma":1`, `"sigma":-1`},
		{`"sigma":1`, `"sigma":1,"g2":0`}, {`"sigma":1`, `"sigma":1,"loss":0`},
		{`[0,2],"counts":[5,7],"actions":[[1,0],[0,1]]`, `[],"counts":[],"actions":[]`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if m, err := privacy.UnmarshalMechanism([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, m)
		}
	}
}

func BenchmarkNewElliptic(b *testing.B) {
	for _, size := range [][2]int{{3, 6}, {20, 210}} {
		b.Run(fmt.Sprintf("d=%d", size[0]), func(b *testing.B) {
			actions, counts := make([][]float64, size[1]), make([]int, size[1])
			for i := range actions {
				actions[i] = make([]float64, size[0])
				for j := range actions[i] {
					actions[i][j] = math.Sin(float64(1+i*31+j*17)) / 5
				}
				counts[i] = 100 + i
			}
			b.ReportAllocs()
			for b.Loop() {
				elliptic(b, 1, actions, counts)
			}
		})
	}
}

// What is small in every action is released as precisely as what is large, so it is a
// direction like any other.
func TestEllipticSmallCoordinates(t *testing.T) {
	for _, x := range []float64{1, 1e-10, 1e-14, 1e-17, 1e-90} {
		for _, other := range []float64{0, 1} {
			m, err := privacy.NewElliptic(1, [][]float64{{1, 0}, {other, x}}, []int{100, 1})
			if err != nil {
				t.Fatal(err)
			}
			if g2 := m.G2(); m.Rank() != 2 || !(g2 >= 1 && g2 <= 1+1e-12) {
				t.Errorf("x = %v, %v: rank %d, g² = %v, want 2 and 1", x, other, m.Rank(), g2)
			}
		}
	}
}
