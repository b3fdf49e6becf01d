package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleNewKAry() {
	const horizon = 1_000_000
	m := privacy.NewKAry(1, privacy.BestBase(horizon, privacy.KAry.MeanVariance), horizon)
	fmt.Println(m, m.Loss())
	fmt.Printf("%.0f on average, at most %.0f\n", m.MeanVariance(), m.MaxVariance())
	// Output:
	// kary(scale=5,base=19,horizon=1000000) epsilon=1
	// 1143 on average, at most 2200
}

func ExampleNewBLT() {
	b := privacy.ZCDP{Rho: 0.5}
	m, err := privacy.NewBLT(b, 1_000_000)
	if err != nil {
		panic(err)
	}
	root, err := privacy.NewSquareRoot(b, 1_000_000)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f and %.2f\n", m.MaxVariance(), root.MaxVariance())
	fmt.Println(m.Loss().Within(b))
	// Output:
	// 30.04 and 29.85
	// true
}

// The balanced digits of t, by trying them all: there is one way to write t with h digits.
func digits(t, base, h int) []int {
	if h == 0 {
		if t == 0 {
			return []int{}
		}
		return nil
	}
	for d := -(base / 2); d <= base/2; d++ {
		if (t-d)%base == 0 {
			if rest := digits((t-d)/base, base, h-1); rest != nil {
				return append([]int{d}, rest...)
			}
		}
	}
	return nil
}

// Nodes, levels and variances against counting, for every horizon.
func TestKAryCountsItsNodes(t *testing.T) {
	for _, base := range []int{3, 5, 7, 19} {
		levels, worst, sum := 0, 0, 0
		for horizon := 1; horizon <= 1500; horizon++ {
			for digits(horizon, base, levels) == nil {
				levels++
			}
			n := 0
			for _, d := range digits(horizon, base, levels) {
				n += max(d, -d)
			}
			worst, sum = max(worst, n), sum+n
			m := privacy.KAry{Scale: 3, Base: base, Horizon: horizon}
			if m.Levels() != levels || m.Nodes(horizon) != n || m.MaxNodes() != worst {
				t.Fatalf("%v: %d levels, %d nodes at the end, at most %d; want %d, %d, %d", m,
					m.Levels(), m.Nodes(horizon), m.MaxNodes(), levels, n, worst)
			}
			near(t, m.String(), m.MeanVariance(), 18*float64(sum)/float64(horizon), 1e-12)
			near(t, m.String(), m.Loss().Pure(), float64(levels)/3, 1e-14)
		}
	}
	for _, base := range []int{3, 255, 1023} { // no overflow
		m := privacy.KAry{Scale: 1, Base: base, Horizon: math.MaxInt}
		if h := m.Levels(); h < 2 || m.MaxNodes() > h*(base/2) ||
			m.Nodes(math.MaxInt) > m.MaxNodes() || !(m.MeanVariance() <= m.MaxVariance()) {
			t.Errorf("%v: %d levels, %d nodes", m, h, m.MaxNodes())
		}
	}
}

// Published and independently computed variances.
func TestVariancesOfCounters(t *testing.T) {
	for _, c := range []struct {
		base, horizon int
		mean, most    float64
	}{{13, 1e4, 383, 0}, {19, 1e6, 1143, 2200}} {
		m := privacy.NewKAry(1, c.base, c.horizon)
		if math.Round(m.MeanVariance()) != c.mean || c.most > 0 && m.MaxVariance() != c.most {
			t.Errorf("%v: %v on average, at most %v; want %v and %v", m, m.MeanVariance(),
				m.MaxVariance(), c.mean, c.most)
		}
	}
	for horizon, want := range map[int]float64{1024: 10.71, 1e4: 15.98, 1e6: 29.85} {
		m, err := privacy.NewSquareRoot(privacy.ZCDP{Rho: 0.5}, horizon)
		if err != nil || math.Abs(m.MaxVariance()-want) > 0.005 {
			t.Errorf("square root, horizon %d: largest variance %v, %v; want %v", horizon,
				m.MaxVariance(), err, want)
		}
		if !m.Loss().Within(privacy.ZCDP{Rho: 0.5}) || m.Loss().Within(privacy.ZCDP{Rho: 0.4999}) {
			t.Errorf("%v costs %v", m, m.Loss())
		}
	}
	for _, c := range []struct {
		m    privacy.BLT
		want float64
	}{{thousands(10_000), 16.267}, {privacy.BLT{Horizon: 1e6,
		Decay:  [privacy.Buffers]float64{.999998204, .999919249, .997034834, .896715556},
		Weight: [privacy.Buffers]float64{.002029799, .010132046, .061228609, .3250409}}, 30.776}} {
		c.m.Sigma = 1
		if got := c.m.MaxVariance() * 2 * c.m.Loss().ZCDP(); math.Abs(got-c.want) > 0.0005 {
			t.Errorf("%v: largest variance %v at ρ = ½, want %v", c.m, got, c.want)
		}
	}
}

// thousands is the BLT with three buffers for a horizon of 10⁴.
func thousands(horizon int) privacy.BLT {
	return privacy.BLT{Sigma: 2, Horizon: horizon,
		Decay:  [privacy.Buffers]float64{.999848683, .994717173, .864304618},
		Weight: [privacy.Buffers]float64{.018054434, .075540092, .332156223}}
}

// toeplitz returns Σc² and the Σb² of AC⁻¹ over n terms, by recursion from the definition of C.
func toeplitz(c []float64) (sensitivity, variance float64) {
	inverse, b := make([]float64, len(c)), 0.0
	for k := range c {
		if k == 0 {
			inverse[0] = 1
		}
		for i := range k {
			inverse[k] -= inverse[i] * c[k-i]
		}
		b += inverse[k]
		sensitivity += c[k] * c[k]
		variance += b * b
	}
	return sensitivity, variance
}

func TestClosedFormsOfToeplitzCounters(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100, 1000} {
		c := make([]float64, n)
		c[0] = 1
		for k := 1; k < n; k++ {
			c[k] = c[k-1] * float64(2*k-1) / float64(2*k)
		}
		s, v := toeplitz(c)
		m := privacy.SquareRoot{Sigma: 2, Horizon: n}
		near(t, m.String(), m.MaxVariance(), 4*v, 1e-12)
		near(t, m.String(), m.Loss().ZCDP(), s/8, 1e-12)

		listed, err := privacy.NewBLT(privacy.ZCDP{Rho: 1}, 10*n*n)
		if err != nil {
			t.Fatal(err)
		}
		listed.Horizon = n
		for _, m := range []privacy.BLT{thousands(n), listed,
			{Sigma: 1, Horizon: n, Decay: [privacy.Buffers]float64{0.1}, Weight: [privacy.Buffers]float64{1}}} {
			for k := 1; k < n; k++ {
				c[k] = 0
				for j, w := range m.Weight {
					if w > 0 {
						c[k] += w * math.Pow(m.Decay[j], float64(k-1))
					}
				}
			}
			s, v := toeplitz(c)
			near(t, m.String(), m.MaxVariance(), m.Sigma*m.Sigma*v, 1e-10)
			near(t, m.String(), m.Loss().ZCDP(), s/(2*m.Sigma*m.Sigma), 1e-10)
			if tail := m.Tail(); tail.H != 0 || math.Abs(tail.Sigma*tail.Sigma/m.MaxVariance()-1) > 1e-12 {
				t.Errorf("%v: tail %v", m, tail)
			}
		}
	}
	// Beyond 4096 terms the sum is continued by its series.
	for _, n := range []int{4097, 10_000, 1 << 20} {
		sum, c := 0.0, 1.0
		for k := range n {
			if k > 0 {
				c *= float64(2*k-1) / float64(2*k)
			}
			sum += c * c
		}
		near(t, "Σc²", privacy.SquareRoot{Sigma: 1, Horizon: n}.MaxVariance(), sum, 1e-11)
	}
}

// NewBLT stays as near to the square root as it says, and on its budget.
func TestBLTIsNearTheSquareRoot(t *testing.T) {
	budget := privacy.ZCDP{Rho: 0.5}
	for e := 0.0; e <= 12; e += 0.125 {
		n := int(math.Pow(10, e))
		m, err := privacy.NewBLT(budget, n)
		if err != nil || m.Validate() != nil {
			t.Fatal(m, err, m.Validate())
		}
		root := privacy.SquareRoot{Sigma: 1, Horizon: 1 << 20}.MaxVariance() +
			math.Log(float64(n)/(1<<20))/math.Pi
		if n <= privacy.MaxSquareRoot {
			root = privacy.SquareRoot{Sigma: 1, Horizon: n}.MaxVariance()
		}
		limit := 1.007
		if float64(n) > 1e10 {
			limit = 1.06
		} else if n > 1e7 {
			limit = 1.023
		}
		if ratio := m.MaxVariance() / (root * root); ratio > limit || ratio < 1-1e-6 {
			t.Errorf("horizon %d: variance is %v of the square root's", n, ratio)
		}
		near(t, m.String(), m.Loss().ZCDP(), 0.5, 1e-12)
	}
}

func TestCountersOfBudgets(t *testing.T) {
	approx, renyi := privacy.Approx{Epsilon: 2, Delta: 1e-6}, privacy.Renyi{Alpha: 8, Epsilon: 0.5}
	for _, b := range []privacy.Budget{privacy.ZCDP{Rho: 0.1}, approx, renyi,
		privacy.Approx{Epsilon: 0.5, Delta: 1e-6}} {
		m, err := privacy.NewBLT(b, 1000)
		if err != nil || !m.Loss().Within(b) {
			t.Errorf("%v: %v costs %v, %v", b, m, m.Loss(), err)
		}
		r, err := privacy.NewSquareRoot(b, 1000)
		if err != nil || !r.Loss().Within(b) {
			t.Errorf("%v: %v costs %v, %v", b, r, r.Loss(), err)
		}
	}
	for _, err := range []error{
		second(privacy.NewBLT(privacy.Pure{Epsilon: 1}, 10)), second(privacy.NewBLT(privacy.ZCDP{Rho: 1}, 0)),
		second(privacy.NewSquareRoot(privacy.Pure{Epsilon: 1}, 10)),
		second(privacy.NewSquareRoot(privacy.ZCDP{Rho: 1}, privacy.MaxSquareRoot+1)),
	} {
		if err == nil {
			t.Error("no error")
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestBadCounters(t *testing.T) {
	blt := func(edit func(*privacy.BLT)) privacy.BLT {
		m := thousands(100)
		edit(&m)
		return m
	}
	nan := math.NaN()
	for _, c := range []struct {
		m       privacy.Mechanism
		mention string
	}{
		{privacy.KAry{Scale: -1, Base: 3, Horizon: 1}, "scale is -1"},
		{privacy.KAry{Scale: 1, Base: 4, Horizon: 1}, "base is 4"},
		{privacy.KAry{Scale: 1, Base: 1, Horizon: 1}, "base is 1"},
		{privacy.KAry{Scale: 1, Base: 1025, Horizon: 1}, "base is 1025"},
		{privacy.KAry{Scale: 1, Base: 3}, "horizon is 0"},
		{privacy.SquareRoot{Sigma: nan, Horizon: 1}, "sigma is NaN"},
		{privacy.SquareRoot{Sigma: 1, Horizon: privacy.MaxSquareRoot + 1}, "horizon is 1048577"},
		{privacy.BLT{Sigma: 1, Horizon: 1}, "no buffers"},
		{blt(func(m *privacy.BLT) { m.Horizon = -1 }), "horizon is -1"},
		{blt(func(m *privacy.BLT) { m.Decay[0] = 1 }), "decay 0 is 1"},
		{blt(func(m *privacy.BLT) { m.Decay[1] = nan }), "decay 1 is NaN"},
		{blt(func(m *privacy.BLT) { m.Decay[1] = m.Decay[0] }), "decay 1 is"},
		{blt(func(m *privacy.BLT) { m.Weight[2] = -1 }), "weight 2 is -1"},
		{blt(func(m *privacy.BLT) { m.Weight[2] = 2 }), "w/(1+d)"},
		{blt(func(m *privacy.BLT) { m.Weight[4] = 2 }), "after an empty one"},
	} {
		if err := c.m.Validate(); err == nil || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%v: %v", c.m, err)
		}
		l := privacy.NewLedger()
		for slot := range 3 {
			if err := l.Record(slot, c.m); err != nil {
				t.Error(err)
			}
		}
		if !c.m.Loss().Infinite() || !l.Total().Infinite() {
			t.Errorf("%v has a finite loss", c.m)
		}
	}
	for _, m := range []privacy.Mechanism{privacy.KAry{Base: 3, Horizon: 8},
		privacy.SquareRoot{Horizon: 8}, blt(func(m *privacy.BLT) {
			m.Sigma = 0
		})} {
		if !m.Loss().Infinite() || m.Validate() != nil {
			t.Errorf("%v: loss %v, %v", m, m.Loss(), m.Validate())
		}
	}
	for _, s := range []string{`{"mechanism":"kary","scale":1,"horizon":8}`,
		`{"mechanism":"kary","scale":1,"base":4,"horizon":8}`,
		`{"mechanism":"tree","scale":1,"base":3,"horizon":8}`,
		`{"mechanism":"sqrt","scale":1,"horizon":8}`, `{"mechanism":"blt","sigma":1,"horizon":8}`,
		`{"mechanism":"blt","sigma":1,"horizon":8,"decay":[0.5]}`,
		`{"mechanism":"blt","sigma":1,"horizon":8,"decay":[0.5,0],"weight":[0.1,0]}`,
		`{"mechanism":"laplace","scale":1,"weight":[0.1]}`,
		`{"mechanism":"blt","sigma":1,"horizon":8,"decay":[9,8,7,6,5,4,3,2,1],"weight":[9,8,7,6,5,4,3,2,1]}`} {
		if m, err := privacy.UnmarshalMechanism([]byte(s)); err == nil {
			t.Errorf("UnmarshalMechanism(%s) = %v", s, m)
		}
	}
}

func anyCounter() *rapid.Generator[privacy.Mechanism] {
	return rapid.Custom(func(t *rapid.T) privacy.Mechanism {
		scale := math.Exp(rapid.Float64Range(-8, 12).Draw(t, "log scale"))
		horizon := rapid.IntRange(1, privacy.MaxSquareRoot).Draw(t, "horizon")
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return privacy.KAry{Scale: scale, Base: 1 + 2*rapid.IntRange(1,
				privacy.MaxBase/2).Draw(t, "half"), Horizon: horizon << 20}
		case 1:
			return privacy.SquareRoot{Sigma: scale, Horizon: horizon}
		}
		decay := rapid.SliceOfNDistinct(rapid.Float64Range(1e-3, 0.999999), 1, privacy.Buffers,
			rapid.ID[float64]).Draw(t, "decay")
		slices.Sort(decay)
		slices.Reverse(decay)
		m := privacy.BLT{Sigma: scale, Horizon: horizon}
		for j, d := range decay {
			m.Decay[j], m.Weight[j] = d, rapid.Float64Range(1e-6, 0.12).Draw(t, "weight")
		}
		return m
	})
}

// Counters read back as they were, and the ledger tells them apart: what was charged twice for one
// slot is one charge, another mechanism is another.
func TestCountersReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, other := anyCounter().Draw(t, "mechanism"), anyCounter().Draw(t, "other")
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := privacy.UnmarshalMechanism(data); got != m || err != nil {
			t.Fatalf("%s reads back as %v, %v", data, got, err)
		}
		l := privacy.NewLedger()
		for _, m := range []privacy.Mechanism{m, other, m} {
			if err := l.Record(3, m); err != nil {
				t.Fatal(err)
			}
		}
		want := m.Loss().Add(other.Loss())
		if m == other {
			want = m.Loss()
		}
		if got := l.Total(); got.ZCDP() != want.ZCDP() || got.Pure() != want.Pure() {
			t.Fatalf("%v and %v: the total is %v, want %v", m, other, got, want)
		}
		for _, e := range l.Entries() {
			if e.Sensitivity != 1 || !(e.Scale > 0) {
				t.Fatalf("entry %+v", e)
			}
		}
		if data, err = json.Marshal(l); err != nil {
			t.Fatal(err)
		}
		var again privacy.Ledger
		if err := json.Unmarshal(data, &again); err != nil || again.Total().ZCDP() != l.Total().ZCDP() {
			t.Fatalf("%s: %v, total %v", data, err, again.Total())
		}
	})
}
