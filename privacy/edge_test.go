package privacy

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// Of four rewards with sum 2: ½ + Root/2 + Inv/4.
func TestIndexByHand(t *testing.T) {
	for _, c := range []struct {
		x    Index
		want bool
	}{
		{Index{Root: 1, Inv: 2, Above: 1.5}, false}, {Index{Root: 1, Inv: 2, Above: 1.4999}, true},
		{Index{Root: -1, Inv: 2, Above: 0.5}, false}, {Index{Root: -1, Inv: 2, Above: 0.4999}, true},
		{Index{Root: 3, Inv: -4, Above: 1}, false}, {Index{Root: 3, Inv: -4, Above: 0.9999}, true},
	} {
		if got := c.x.Holds(4, 2); got != c.want {
			t.Errorf("%+v: %v", c.x, got)
		}
	}
	if got := (Released{&Values{N: []int{9, 4}, Sum: []float64{9, 2}}}).Mean(1); got != 0.5 {
		t.Errorf("mean %v", got)
	}
}

// Rounding up leaves what is exact as it is, down to where residuals leave the doubles, and moves
// what is below.
func TestOutwardAtTheSmallest(t *testing.T) {
	const edge, below = 0x1p-960, 0x1p-962
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mul", mulUp(0x1p-480, 0x1p-480), edge},
		{"mul below", mulUp(0x1p-481, 0x1p-481), math.Nextafter(below, 1)},
		{"square", squareDown(0x1p-480), edge}, {"square below", squareDown(0x1p-481),
			math.Nextafter(below, 0)},
		{"quotient", divUp(0x1p-900, 0x1p60), edge}, {"numerator", divUp(edge, 0.5), 2 * edge},
		{"denominator", divUp(0x1p-900, edge), 0x1p60},
		{"quotient below", divUp(0x1p-902, 0x1p60), math.Nextafter(below, 1)},
		{"numerator below", divUp(below, 0x1p-60), math.Nextafter(0x1p-902, 1)},
		{"denominator below", divUp(0x1p-900, below), math.Nextafter(0x1p62, math.Inf(1))},
		{"root", sqrtUp(edge), 0x1p-480}, {"root below", sqrtUp(below), math.Nextafter(0x1p-481, 1)},
		{"root of 4", sqrtUp(4), 2}, {"root of 2.25", sqrtUp(2.25), 1.5},
	} {
		if c.got != c.want {
			t.Errorf("%s: %x, want %x", c.name, c.got, c.want)
		}
	}
	// √2 is 1.4142135623730950488…: the double below is 1.41421356237309492.
	if got := sqrtUp(2); got != math.Nextafter(math.Sqrt2, 2) && got*got < 2 {
		t.Errorf("√2 is rounded to %v", got)
	}
	for x, want := range map[float64]string{-1.25: "-1.25", 0: "0", math.Inf(1): "+Inf"} {
		if got := Up(x, 1); got != want {
			t.Errorf("Up(%v) = %s, want %s", x, got, want)
		}
	}
}

// What is promised is kept with 10⁻⁹ to spare, and no more.
func TestWithinTakesItsSlack(t *testing.T) {
	edge := 1 * (1 + slack)
	more := math.Nextafter(edge, 2)
	for _, c := range []struct {
		name  string
		loss  func(x float64) Loss
		limit Budget
	}{
		{"pure", func(x float64) Loss { return Loss{&tally{pure: x}} }, Pure{1}},
		{"zcdp", func(x float64) Loss {
			return Loss{&tally{pure: math.Inf(1), rho: x, mu2: math.Inf(1)}}
		}, ZCDP{1}},
		{"approx", func(x float64) Loss { return Loss{&tally{epsilon: x}} }, Approx{1, 1e-6}},
	} {
		if !c.loss(edge).Within(c.limit) || c.loss(more).Within(c.limit) {
			t.Errorf("%s: %v and %v", c.name, c.loss(edge).Within(c.limit), c.loss(more).Within(c.limit))
		}
	}
	if !(price{x: edge}).within(price{x: 1}) || (price{x: more}).within(price{x: 1}) {
		t.Error("a price's slack")
	}
	if !(Loss{&tally{delta: 1}}).Infinite() || (Loss{&tally{delta: 0.5}}).Infinite() {
		t.Error("δ = 1 is no bound, and δ = ½ is one")
	}
}

func TestFieldsTakeTheirEdges(t *testing.T) {
	const big = math.MaxFloat64
	inner, err := NewAggregated(Calibration{Trust: TrustSecAgg, Noise: NoisePolya, Epsilon: 1, S: 1,
		Users: MinSplitMix, Invited: MinSplitMix, P: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	degrees := maxDegrees
	fewer := inner
	fewer.Users--
	count := ShuffledCount{Epsilon: 64, Num: 1, Den: 60, Users: 2, Invited: 2, Beta: 0.5}
	higher := count
	higher.Epsilon = math.Nextafter(64, 65)
	for _, c := range []struct {
		name string
		err  error
		ok   bool
	}{
		{"epsilon", Pure{big}.Validate(), true}, {"epsilon", Pure{math.Inf(1)}.Validate(), false},
		{"alpha", Renyi{big, 1}.Validate(), true}, {"alpha", Renyi{math.Inf(1), 1}.Validate(), false},
		{"base", KAry{1, maxBase, 10}.Validate(), true}, {"base", KAry{1, maxBase + 2,
			10}.Validate(), false},
		{"horizon", checkHorizon("x", 9, 9), true}, {"horizon", checkHorizon("x", 10, 9), false},
		{"horizon", checkHorizon("x", 1, 9), true}, {"horizon", checkHorizon("x", 0, 9), false},
		{"dim", GramWishart{Scale: 1, Dim: 1 << 20, Degrees: 1<<20 + 3, Delta: 0.1,
			Horizon: 8}.Validate(), true},
		{"dim", GramWishart{Scale: 1, Dim: 1<<20 + 1, Degrees: 1<<20 + 4, Delta: 0.1,
			Horizon: 8}.Validate(), false},
		{"degrees", GramWishart{Scale: 1, Dim: 2, Degrees: maxDegrees, Delta: 0.1,
			Horizon: 8}.Validate(), true},
		{"degrees", GramWishart{Scale: 1, Dim: 2, Degrees: degrees + 1, Delta: 0.1,
			Horizon: 8}.Validate(), false},
		{"degrees", GramWishart{Scale: 1, Dim: 2, Degrees: 5, Delta: 0.1, Horizon: 8}.Validate(), true},
		{"degrees", GramWishart{Scale: 1, Dim: 2, Degrees: 4, Delta: 0.1, Horizon: 8}.Validate(), false},
		{"users", SplitMix{Inner: inner, Shares: 3}.Validate(), true},
		{"users", SplitMix{Inner: fewer, Shares: 3}.Validate(), false},
		{"shares", SplitMix{Inner: inner, Shares: 1 << 20}.Validate(), true},
		{"shares", SplitMix{Inner: inner, Shares: 1<<20 + 1}.Validate(), false},
		{"count", count.Validate(), true}, {"count", higher.Validate(), false},
	} {
		if (c.err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
	if err := (GramWishart{Scale: 1, Dim: 2, Degrees: 4, Delta: 0.1, Horizon: 8}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "from 5, dim+3") {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		actions, played int
		feature         float64
		ok              bool
	}{
		{maxActions, maxPlayed, maxFeature, true}, {maxActions + 1, 1, 1, false}, {1,
			maxPlayed + 1, 1, false},
		{1, 1, math.Nextafter(maxFeature, math.Inf(1)), false}, {1, 1, -maxFeature, true},
	} {
		_, err := newShape(c.actions, []int{0}, [][]float64{{c.feature}}, func(int) int { return c.played })
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []struct {
		epsilon, delta float64
		ok             bool
	}{{0, 0, true}, {big, 0, true}, {0, math.Nextafter(1, 0), true}, {0, 1, false}, {math.Inf(1), 0, false},
		{-1, 0, false}, {0, -1, false}} {
		if approxLoss(c.epsilon, c.delta).Infinite() == c.ok {
			t.Errorf("%+v", c)
		}
	}
	var b orNone
	if err := b.UnmarshalJSON([]byte("0")); err != nil || b != 0 {
		t.Errorf("a loss of 0: %v", err)
	}
}

// Pure events have δ = 0, which is allowed, and what is no probability is not.
func TestCompositionTakesDeltaZero(t *testing.T) {
	got, err := Advanced(Approx{Epsilon: 0.1}, 100, 1e-6)
	// √(200·log 10⁶)·0.1 + 100·0.1·(e^0.1 − 1) = 5.2565… + 1.0517….
	want := math.Sqrt(200*math.Log(1e6))*0.1 + 10*math.Expm1(0.1)
	if err != nil || math.Abs(got.Epsilon-want) > 1e-9 || got.Delta != 1e-6 {
		t.Errorf("%v, %v; want ε = %v", got, err, want)
	}
	for _, delta := range []float64{-0.1, 1, 2, math.NaN()} {
		if _, err := Advanced(Approx{0.1, delta}, 100, 1e-6); err == nil {
			t.Errorf("δ = %v is taken", delta)
		}
	}
	if _, err := repeated(Approx{0.1, 0.25}, 3, 0.5); err == nil || !strings.Contains(err.Error(), "0.75") {
		t.Errorf("%v", err)
	}
	if _, err := Group(Renyi{4, 1}, 3); err == nil || !strings.Contains(err.Error(), "at least 8") {
		t.Errorf("%v", err)
	}
}

// Norms of noise by their formulas at t = 3 (two nodes) and other numbers that tell a product from a quotient.
func TestNoiseNormsByHand(t *testing.T) {
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	const x = 5.0
	v := x + math.Log(8)
	near("vector tree", VectorTree{Scale: 3, Dim: 4, Horizon: 8}.NoiseNorm(3, x), 3*2*(2*math.Sqrt(2*v)+v))
	near("gaussian vector tree", GaussianVectorTree{Sigma: 3, Horizon: 8}.NoiseNorm(4, 3, x),
		3*math.Sqrt2*(2+math.Sqrt(10)))
	b := GramWishart{Scale: 0.5, Dim: 4, Degrees: 50, Delta: 0.1, Horizon: 8}.Band(4, 3, x)
	n, u := 10.0, math.Sqrt(10)
	near("lo", b.Lo, 0.5*(n-2-u)*(n-2-u))
	near("hi", b.Hi, 0.5*(n+2+u)*(n+2+u))
	near("cross", b.Cross, 0.5*(n+u)*(2+u))
	m := KAry{Scale: 3, Base: 5, Horizon: 12}
	near("kary", m.variance(7), 2*9*3) // 7 = 5 + 2: three nodes
	near("kary tail", m.Tail().Sigma, 3*math.Sqrt(2*float64(m.MaxNodes())))
	near("kary tail", m.Tail().H, 3)
}

// A ledger's formulas for what the noise of users adds up to.
func TestTailsOfUsersByHand(t *testing.T) {
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-12*math.Abs(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	m := ShuffledCount{Epsilon: 2, Num: 5, Den: 4, Users: 20, Invited: 40, Beta: 0.25}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	// ε1 = 4/5, b = 5/4, γ = β/n = 1/80.
	extra := func(answers float64) float64 { return 1.0 / 80 * answers * math.Expm1(0.8) }
	one := m.TailOf(20)
	near("H", one.H, 1.25)
	near("log", one.Log, extra(20)+math.Log(2/(1+math.Exp(-0.8))))
	near("sigma", one.Sigma, 0)
	all := m.TailOf(40)
	near("H of all", all.H, 1.25)
	near("sigma of all", all.Sigma, 1.25*math.Sqrt(4))
	near("log of all", all.Log, extra(40)+2*math.Sqrt(2*extra(40)))
	near("scale", ScaleOf(m), 1.25)
	c, err := m.Cover()
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for k, w := range c.Pairs {
		mean += float64(k) * float64(w) / coverUnit
	}
	near("messages", m.Messages(), 79.0/80*(0.5+2*mean)+2/(math.Expm1(0.8)*20))

	a := Aggregated{Trust: TrustSecAgg, Noise: NoisePolya, G: 4, Num: 3, Den: 2, Users: 10, Modulus: 64}
	near("polya", a.TailOf(10).Log, math.Log(2/(1+math.Exp(-2.0/3))))
	near("polya", a.TailOf(10).H, 1.5/4)
	near("polya of 20", a.TailOf(20).Sigma, 2*1.5/4)
	if a.Bits() != 6 {
		t.Errorf("%d bits for numbers below 64", a.Bits())
	}
	a.Modulus = 65
	if a.Bits() != 7 {
		t.Errorf("%d bits for numbers below 65", a.Bits())
	}
	for noise, want := range map[NoiseName]float64{NoisePolya: 1.5, NoiseSkellam: math.Sqrt(15),
		NoiseGaussian: math.Sqrt(15)} {
		a.Noise = noise
		near(string(noise), ScaleOf(a), want)
	}
}

// A running sum through another mechanism is not paid for by the first, one beyond the horizon by none, and each
// release counts.
func TestRunningSumsPayTheirOwn(t *testing.T) {
	a, b := Tree{Scale: 1, Horizon: 4}, Tree{Scale: 2, Horizon: 4}
	values := func(n int) *Values { return &Values{N: []int{n, n}, Sum: []float64{0.5, 0.25}} }
	slots := []int{0, 1}
	l := NewLedger()
	for n := 1; n <= 4; n++ {
		if _, err := l.ReleaseAll(slots, a, values(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range l.Entries() {
		if e.Releases != 4 {
			t.Errorf("slot %d: %d releases, want 4", e.Slot, e.Releases)
		}
	}
	if _, err := l.ReleaseAll(slots, a, values(5)); !errors.Is(err, ErrPrefix) {
		t.Errorf("beyond the horizon: %v", err)
	}
	l = NewLedger()
	for i, m := range []Mechanism{a, b} {
		if _, err := l.ReleaseAll(slots, m, values(1+i)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := l.Total().Pure(), 3+1.5; got != want || len(l.Entries()) != 4 {
		t.Errorf("two trees cost %v, %d entries; want %v", got, len(l.Entries()), want)
	}
	va, vb := GaussianVectorTree{Sigma: 1, Horizon: 4}, GaussianVectorTree{Sigma: 2, Horizon: 4}
	l = NewLedger()
	for i, m := range []Mechanism{va, vb} {
		if _, err := l.ReleaseVector(0, m, &Vector{1 + i, []float64{1}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.Entries()) != 2 {
		t.Errorf("two trees of vectors: %d entries", len(l.Entries()))
	}
	l = NewLedger()
	for n, x := range []float64{1, math.NaN(), math.Inf(1)} {
		if _, err := l.ReleaseVector(0, va, &Vector{n + 1, []float64{x}}); (err == nil) != (n == 0) {
			t.Errorf("%v: %v", x, err)
		}
	}
	if _, err := l.ReleaseVector(-1, va, &Vector{1, []float64{1}}); err == nil {
		t.Error("slot −1 is taken")
	}
}

func TestTranscriptsOfTooMuch(t *testing.T) {
	for _, tail := range []string{`{"sigma":1e308,"h":1e308,"log":0}`,
		`{"sigma":1e308,"h":0,"log":1e308}`} {
		_,
			err := NewLedger().Restore([]byte(`{"slots":[0],"mechanism":{"mechanism":"laplace","scale":1},"n":[1],` +
			`"sum":[0.5],"tail":` + tail + `}`))
		if err == nil || !strings.Contains(err.Error(), "tail") {
			t.Errorf("%s: %v", tail, err)
		}
	}
	journal := func(releases string) error {
		return NewLedger().UnmarshalJSON([]byte(`{"cap":"none","entries":[{"slot":0,` +
			`"mechanism":{"mechanism":"laplace","scale":1},"releases":` + releases + `}]}`))
	}
	if err := journal("2199023255552"); err != nil {
		t.Errorf("2^41 releases: %v", err)
	}
	if err := journal("2199023255553"); err == nil {
		t.Error("more are taken")
	}
}

// Of a k-ary tree the most nodes and the mean variance are those of its sums, counted one by one.
func TestKAryAgainstItsSums(t *testing.T) {
	for _, base := range []int{3, 5, 7, 11} {
		total, most := 0.0, 0
		for horizon := 1; horizon <= 700; horizon++ {
			m := KAry{Scale: 3, Base: base, Horizon: horizon}
			most = max(most, m.Nodes(horizon))
			total += m.variance(horizon)
			if got := m.MaxNodes(); got != most {
				t.Fatalf("%v: at most %d nodes, its sums have %d", m, got, most)
			}
			if got, want := m.MeanVariance(), total/float64(horizon); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("%v: mean variance %v, want %v", m, got, want)
			}
		}
	}
}

func TestPricesAwayFromOne(t *testing.T) {
	if got := (Hybrid{Scale: 4}).Loss().Pure(); got != 0.5 {
		t.Errorf("hybrid of scale 4 costs %v", got)
	}
	if k := NewKAry(0.5, 5, 40); k.Scale != 2*float64(k.Levels()) || k.Levels() != 3 {
		t.Errorf("%v of %d levels", k, k.Levels())
	}
	for sigma, ok := range map[float64]bool{1024: true, math.Nextafter(1024, 2000): false} {
		if _, err := splitMixShares(sigma, 1000, 1000); (err == nil) != ok {
			t.Errorf("σ = %v: %v", sigma, err)
		}
	}
	// Φ(μ/2) = 1/(1+e^{−ε}), by the error function.
	for _, e := range []float64{0.01, 0.5, 1, 1.5, 5, 15, 20} {
		mu := pureToGDP(e)
		if got, want := math.Erfc(mu/2/math.Sqrt2)/2,
			1/(1+math.Exp(e)); !(math.Abs(got-want) <= 1e-9*want) {
			t.Errorf("ε = %v is μ = %v, whose error is %v, want %v", e, mu, got, want)
		}
	}
	if got := pureToGDP(20.1); !math.IsInf(got, 1) {
		t.Errorf("ε = 20.1 is μ = %v", got)
	}
	for _, c := range []struct {
		variance float64
		n        int
		want     float64
	}{{0.1, 1, 5}, {0.125, 1, 4}, {0.125, 2, math.Inf(1)}} {
		if got := gaussianSumZCDP(1, c.variance, c.n); !(got >= c.want && got <= c.want*(1+1e-12)) {
			t.Errorf("%+v: ρ = %v", c, got)
		}
	}
	if math.IsInf(gaussianSumZCDP(1, 0.25, 2), 1) {
		t.Error("the lemma holds for a variance of ¼")
	}
	for _, b := range []Approx{{1, 1e-6}, {0.1, 1e-9}, {5, 0.01}} {
		sigma, err := AnalyticSigma(b)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := GDPWithin(b); err != nil || got.Mu > 1/sigma || got.Mu < (1-1e-12)/sigma {
			t.Errorf("%v: %v, %v; σ = %v", b, got, err, sigma)
		}
	}
	// Beyond the doubles the best order is 1, and the closed form stands.
	if got, want := ZCDPToApproxTight(1e40, 1e-6), zcdpToApprox(1e40, 1e-6); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := GaussianEpsilon(1, 0); !math.IsInf(got, 1) {
		t.Errorf("δ = 0: ε = %v", got)
	}
	x := Loss{&tally{pure: math.Inf(1), rho: math.Inf(1), mu2: 2}}
	if got := x.ZCDP(); got != 1 {
		t.Errorf("μ² = 2 is ρ = %v", got)
	}
	if a, b := (Elliptic{}).Reduced(); a != nil || b != nil {
		t.Errorf("%v %v", a, b)
	}
}

func TestBLTsAtTheirEdges(t *testing.T) {
	one := func(decay, weight float64) BLT {
		m := BLT{Sigma: 1, Horizon: 8}
		m.Decay[0], m.Weight[0] = decay, weight
		return m
	}
	loose := one(0.5, 0.5)
	loose.Weight[1] = 0.25
	for _, c := range []struct {
		m  BLT
		ok bool
	}{{one(0.5, 0.5), true}, {one(0.5, math.Nextafter(1.5, 0)), true}, {one(0.5, 1.5), false},
		{loose, false},
		{one(0.5, 0), false}, {one(1, 0.5), false}} {
		if err := c.m.Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.m, err)
		}
	}
}

// An account is stale once its ledger has let its mechanisms go, the last one too.
func TestStaleAccounts(t *testing.T) {
	l := NewLedger()
	var last, vectors Account
	for i := range 300 {
		l.Account(VectorGaussian{Sigma: float64(i + 1)})
		last = l.Account(Laplace{Scale: float64(i + 1)})
	}
	one := func() *Values { return &Values{N: []int{1}, Sum: []float64{1}} }
	l.Reset()
	if _, err := last.Release(0, one()); !errors.Is(err, errStale) {
		t.Errorf("the last: %v", err)
	}
	l = NewLedger()
	last, vectors = l.Account(Laplace{Scale: 1}), l.Account(VectorGaussian{Sigma: 1})
	if err := l.UnmarshalJSON([]byte(`{"cap":"none","entries":[]}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := last.Release(0, one()); !errors.Is(err, errStale) {
		t.Errorf("before a journal: %v", err)
	}
	if _, err := vectors.ReleaseVector(0, &Vector{1, []float64{1}}); !errors.Is(err, errStale) {
		t.Errorf("before a journal, the last: %v", err)
	}
}

func TestErrorsOfValues(t *testing.T) {
	m := Laplace{Scale: 1}
	for _, c := range []struct {
		v    *Values
		want string
	}{
		{nil, "at least one sum"}, {&Values{}, "at least one sum"},
		{&Values{N: []int{1}}, "at least one sum"},
		{&Values{N: []int{1}, Sum: []float64{1, 2}}, "1 counts for 2 sums"},
		{&Values{N: []int{1, 1}, Sum: []float64{1, math.NaN()}}, "sum 1:"},
		{&Values{N: []int{1, 1}, Sum: []float64{math.Inf(1), 1}}, "sum 0:"},
	} {
		if _, err := NewLedger().Release(0, m, c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.v, err, c.want)
		}
	}
}

func TestOtherEdges(t *testing.T) {
	if got := BestBase(100, func(m KAry) float64 { return -float64(m.Base) }); got != 255 {
		t.Errorf("the largest base is %d", got)
	}
	for g, want := range map[int64]int64{1<<62 - 2: math.MaxInt64, 1<<62 - 1: 0} {
		if got, ok := modulus(g, 1, 1<<61); got != want || ok != (want > 0) {
			t.Errorf("modulus of g = %d: %d, %v", g, got, ok)
		}
	}
	for trust, want := range map[Trust]string{TrustSecAgg: string(NoisePolya), TrustLocal: string(NoiseLaplace)} {
		err := Aggregated{Trust: trust, Noise: "none"}.Validate()
		if err == nil || !strings.Contains(err.Error(), `must be "`+want+`"`) {
			t.Errorf("%s: %v", trust, err)
		}
	}
	// Beyond 256 users terms are taken in blocks, each once: within 10⁻⁴ of their sum, and above it.
	for n := 250; n < 320; n++ {
		sum := 0.0
		for k := 1; k < n; k++ {
			sum += 10 * math.Exp(-math.Pi*math.Pi/2*float64(k)/float64(k+1))
		}
		if got := GaussianSumXi(0.25, n); got < sum*(1-1e-14) || got > sum*(1+1e-4) {
			t.Errorf("ξ of %d users is %v, the sum is %v", n, got, sum)
		}
	}
	edge := 1 + slack
	curve := func(x float64) Loss {
		l := Loss{&tally{pure: math.Inf(1), rho: math.Inf(1), mu2: math.Inf(1)}}
		for i, a := range orders {
			if l.t.rdp[i] = math.Inf(1); a == 2 {
				l.t.rdp[i] = x
			}
		}
		return l
	}
	if !curve(edge).Within(Renyi{2, 1}) || curve(math.Nextafter(edge, 2)).Within(Renyi{2, 1}) {
		t.Error("the slack of a Rényi divergence")
	}
	line := `{"slot":0,"mechanism":{"mechanism":"vector-gaussian","sigma":1},"n":0,"vector":[1]}`
	if _, err := NewLedger().RestoreVector([]byte(line)); err != nil {
		t.Errorf("a vector of no rewards: %v", err)
	}
}
