package noise

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// inverse is the w of n·w = 1 modulo 2^64, of an odd n, by Newton's iteration.
func inverse(n uint64) uint64 {
	w := n // right in 3 bits
	for range 5 {
		w *= 2 - n*w
	}
	return w
}

// Of the words of a uniform number below n, those whose product with n has a low half below 2^64
// mod n are drawn again, and no others: else some values have a word more than the rest.
func TestUnevenWords(t *testing.T) {
	const again = allOnes // a word of n − 1 and of a failing coin
	for _, n := range []uint64{3, 7, 641, 1<<40 + 15, 1<<49 + 69} {
		uneven := new(big.Int).Lsh(big.NewInt(1), 64)
		rest := uneven.Mod(uneven, new(big.Int).SetUint64(n)).Uint64()
		geometric := testkit.Must(NewGeometric(n, 1))
		share := testkit.Must(NewNegativeBinomial(n, 1, 1))
		for _, lo := range []uint64{0, 1, rest - 1, rest, rest + 1, n - 1, n, n + 1} {
			w := lo * inverse(n)
			want, used := n-1, 2
			if hi, _ := bits.Mul64(w, n); lo >= rest {
				want, used = hi, 1
			}
			at := fmt.Sprintf("n = %d, low half %d", n, lo)

			src := &script{words: []uint64{w, again}}
			if got := uniform(src, n); got != want || src.used != used {
				t.Errorf("%s: uniform is %d of %d words, want %d of %d", at, got, src.used, want, used)
			}
			src = &script{words: []uint64{w, again}}
			// a place in a block that is not the first takes one more
			if j, _, ok := share.pick(src, 0, n-1); !ok || j != want || src.used != used+int(min(j, 1)) {
				t.Errorf("%s: block %d of %d words, want %d of %d", at, j, src.used, want, used)
			}
			// A U that is not 0 is kept where its coin fails, and 0 without a coin; V is 0.
			src = &script{words: []uint64{w, again}}
			if want != 0 {
				used++
			}
			x, err := geometric.Draw(src)
			if x != int64(want) || err != nil || src.used != used+1 {
				t.Errorf("%s: geometric %d of %d words, want %d of %d: %v", at, x, src.used, want, used+1, err)
			}
		}
	}
}

// A coin is tossed with as many words as decide it, also where its digits end.
func TestCoinWords(t *testing.T) {
	for _, c := range []struct {
		n, d  uint64
		words []uint64
		want  bool
		used  int
	}{
		{1, 2, []uint64{1<<63 - 1, 0}, true, 1}, // the difference is d
		{1, 2, []uint64{1 << 63, 0}, false, 1},  // and 0
		{3, 4, []uint64{3<<62 - 1, allOnes}, true, 1},
		{3, 4, []uint64{3 << 62, 0}, false, 1},
		{1, 3, []uint64{0x5555555555555555, 0x5555555555555555, 0}, true, 3},
		{1, 3, []uint64{0x5555555555555555, 0x5555555555555556, 0}, false, 2},
	} {
		src := &script{words: c.words}
		if got := bernoulli(src, c.n, c.d); got != c.want || src.used != c.used {
			t.Errorf("coin %d/%d: %v of %d words, want %v of %d", c.n, c.d, got, src.used, c.want, c.used)
		}
		// The same of 128 bits, with and without a high word.
		for _, shift := range []uint{0, 62} {
			wide := func(x uint64) (uint64, uint64) { return x >> (64 - shift), x << shift }
			if shift == 0 {
				wide = func(x uint64) (uint64, uint64) { return 0, x }
			}
			c1, c0 := wide(c.n)
			b1, b0 := wide(c.d)
			src := &script{words: c.words}
			if got := bernoulli128(src, c1, c0, b1, b0); got != c.want || src.used != c.used {
				t.Errorf("coin %d/%d·2^%d: %v of %d words, want %v of %d",
					c.n, c.d, shift, got, src.used, c.want, c.used)
			}
		}
	}
}

// The last value that fits an int64 is drawn, and what is beyond is ErrOverflow, in one word or two.
func TestLargestValues(t *testing.T) {
	g := testkit.Must(NewGeometric(1<<50, 1))
	above := func(k int) uint64 { return (expPrefixes[k] + 1) << 1 } // V = k, and plus
	// U = 2^50 − 1, kept as its coin fails, and V = 8190 + 1: 2^50·8192 − 1.
	x, err := g.Draw(&script{words: append(append([]uint64{allOnes, allOnes}, zeros(273)...), above(1))})
	if x != math.MaxInt64 || err != nil {
		t.Errorf("the largest value is %d, %v", x, err)
	}
	// U = 0 and V = 8190 + 2, 16380 + 3 and 16380 + 4: 2^63, and just below and at 2^64.
	for _, c := range []struct{ zeros, k int }{{273, 2}, {546, 3}, {546, 4}} {
		x, err := g.Draw(&script{words: append(zeros(1+c.zeros), above(c.k))})
		if !errors.Is(err, ErrOverflow) {
			t.Errorf("V = %d: %d, %v", 30*c.zeros+c.k, x, err)
		}
	}
	// Products of dealing must stay below 2^63.
	for _, n := range []uint64{2, 3, 1 << 40} {
		b := testkit.Must(NewNegativeBinomial(n, 1, 1))
		most := (uint64(1)<<63 - 1) / n
		if b.overflows(most) || !b.overflows(most+1) || !b.overflows(allOnes) {
			t.Errorf("%d shares: %d units or one more", n, most)
		}
	}
}

// γ = A²/B of the discrete Gaussian law, against whole numbers of any length.
func TestGaussianFraction(t *testing.T) {
	check := func(name string, g DiscreteGaussian, mul, sub uint64, b *big.Int) {
		got := new(big.Int).SetUint64(g.hi)
		got.Lsh(got, 64).Add(got, new(big.Int).SetUint64(g.lo))
		if got.Cmp(b) != 0 || g.mul != mul || g.sub != sub {
			t.Errorf("%s: A = ||Y|·%d − %d|, B = %v, want ||Y|·%d − %d|, B = %v",
				name, g.mul, g.sub, got, mul, sub, b)
		}
	}
	product := func(xs ...uint64) *big.Int {
		p := big.NewInt(2)
		for _, x := range xs {
			p.Mul(p, new(big.Int).SetUint64(x))
		}
		return p
	}
	for _, c := range []struct{ num, den uint64 }{{1, 1}, {37, 10}, {5, 1 << 55}, {1<<56 - 5, 3},
		{1<<56 - 1, 1 << 55}, {1<<56 - 1, 1<<56 - 2}, {1 << 56, 1<<56 - 1}, {1 << 56, 1}} {
		name := fmt.Sprintf("%d/%d", c.num, c.den)
		if c.num/c.den < 1<<50 {
			g := testkit.Must(NewDiscreteGaussian(c.num, c.den))
			check("sigma "+name, g, c.den, c.num, product(c.num, c.num))
		}
		g := testkit.Must(NewDiscreteGaussianVariance(c.num, c.den))
		root := new(big.Int).SetUint64(c.num / c.den)
		scale := root.Sqrt(root).Uint64() + 1
		check("variance "+name, g, scale*c.den, c.num, product(c.num, c.den, scale, scale))
	}
}

// The largest and smallest parameters are taken, and the next ones are not.
func TestLimits(t *testing.T) {
	gaussian := func(n, d uint64) error { _, err := NewDiscreteGaussian(n, d); return err }
	variance := func(n, d uint64) error { _, err := NewDiscreteGaussianVariance(n, d); return err }
	poisson := func(n, d uint64) error { _, err := NewPoisson(n, d); return err }
	skellam := func(n, d uint64) error { _, err := NewSkellam(n, d); return err }
	pair := func(den uint64) func(n, num uint64) error {
		return func(n, num uint64) error { _, err := NewPolyaDifference(n, num, den); return err }
	}
	for _, c := range []struct {
		name string
		make func(n, d uint64) error
		n, d uint64
		ok   bool
	}{
		{"sigma", gaussian, 1 << 56, 65, true}, {"sigma", gaussian, 1<<56 + 1, 65, false},
		{"sigma", gaussian, 1, 1 << 56, true}, {"sigma", gaussian, 1, 1<<56 + 1, false},
		{"variance", variance, 1, 1 << 56, true}, {"variance", variance, 1, 1<<56 + 1, false},
		{"Poisson", poisson, 1 << 56, 65, true}, {"Poisson", poisson, 1<<56 + 1, 66, false},
		{"Poisson", poisson, 1, 1 << 56, true}, {"Poisson", poisson, 1, 1<<56 + 1, false},
		{"Poisson", poisson, 1 << 50, 1, true}, {"Poisson", poisson, 3<<50 + 1, 3, false},
		{"Skellam", skellam, 1 << 55, 33, true}, {"Skellam", skellam, 1<<55 + 1, 34, false},
		{"Skellam", skellam, 1, 1 << 55, true}, {"Skellam", skellam, 1, 1<<55 + 1, false},
		{"shares, den 2^43", pair(1 << 43), 2, 1 << 63, true}, // scale/n = 2^19, n·den = 2^44
		{"shares, den 2^43", pair(1 << 43), 2, 1, true},
		{"shares, den 2^42", pair(1 << 42), 2, 1 << 63, true}, // scale/n = 2^20
		{"shares, den 2^42", pair(1 << 42), 2, 1<<63 + 1, false},
	} {
		if err := c.make(c.n, c.d); (err == nil) != c.ok {
			t.Errorf("%s %d/%d: %v", c.name, c.n, c.d, err)
		}
	}
}

// Parameters that are not in lowest terms name the same law.
func TestLowestTerms(t *testing.T) {
	if a, b := testkit.Must(NewPoisson(12, 4)), testkit.Must(NewPoisson(3, 1)); a != b {
		t.Errorf("Poisson laws %+v and %+v", a, b)
	}
	if a, b := testkit.Must(NewSkellam(10, 4)), testkit.Must(NewSkellam(5, 2)); a != b {
		t.Errorf("Skellam laws %+v and %+v", a, b)
	}
	if a, b := testkit.Must(NewGeometric(74, 20)), testkit.Must(NewGeometric(37, 10)); a != b {
		t.Errorf("geometric laws %+v and %+v", a, b)
	}
	if a, b := testkit.Must(NewDiscreteGaussian(74, 20)), testkit.Must(NewDiscreteGaussian(37, 10)); a != b {
		t.Errorf("Gaussian laws %+v and %+v", a, b)
	}
}

// δ(k) − δ(k+1) = (k+½)·log(1+1/k) − 1 = Σ 1/((2i+1)·(2k+1)^{2i}): no term of it cancels. What the
// series leaves out is 691/360360·k^-11 at most, 1.1e-16 at 16.
func TestStirlingError(t *testing.T) {
	for k := 1.0; k < 200; k++ {
		want, power := 0.0, 1.0
		for i := 3.0; power > 1e-20; i += 2 {
			power /= (2*k + 1) * (2*k + 1)
			want += power / i
		}
		if got := stirlingError(k) - stirlingError(k+1); math.Abs(got-want) > 1.2e-16 {
			t.Errorf("δ(%g) − δ(%g) is %v, want %v", k, k+1, got, want)
		}
	}
}

// A coin that ties with its word is as its further digits say, and costs one word where it has none.
func TestFastTies(t *testing.T) {
	for _, f := range (Key{Seed: 2}).Fast(1000) {
		after := f
		j := float64(after.Uint64() >> 11)
		for p, want := range map[float64]bool{j * 0x1p-53: false, (j + 1) * 0x1p-53: true} {
			g := f
			if got := g.Bernoulli(p); got != want || g != after {
				t.Errorf("word %g·2^-53, p = %v: %v, or not one word", j, p, got)
			}
		}
	}
	// One lane's digits are the last bits of the words. Where they begin with 13 zeros, p can tie
	// with 64 of them and go on: with 01, so that the next two bits decide.
	tied := 0
	for _, f := range (Key{Seed: 3}).Fast(1 << 20) {
		peek, digits := f, uint64(0)
		for i := 0; i < 64 && (i > 13 || digits == 0); i++ {
			digits = digits<<1 | peek.Uint64()&1
		}
		if digits>>51 != 0 || digits < 1<<32 {
			continue
		}
		tied++
		want := 0
		if first, second := peek.Uint64()&1, peek.Uint64()&1; first == 0 && second == 0 {
			want = 1
		}
		if got := f.binomialLanes(1, (float64(digits)+0.25)*0x1p-64); got != want {
			t.Errorf("digits %#x: %d successes, want %d", digits, got, want)
		}
	}
	if tied < 50 { // of 128 expected
		t.Errorf("%d lanes tie", tied)
	}
}

// The rejections for large means reach 0 as often as they should.
func TestRejectionReachesZero(t *testing.T) {
	f := testStream("zero")
	n := 2 * draws
	for name, c := range map[string]struct {
		p    float64
		draw func() int64
	}{
		"Poisson(10)":        {math.Exp(-10), func() int64 { return f.Poisson(10) }},
		"binomial(200, .05)": {math.Pow(0.95, 200), func() int64 { return int64(f.Binomial(200, 0.05)) }},
	} {
		checkMean(t, name, n, func() float64 {
			if c.draw() == 0 {
				return 1
			}
			return 0
		}, c.p, math.Sqrt(c.p))
	}
}

// Both ways to a fast Pólya difference: the rest of them are held to in TestPolyaTotal.
func TestFastPolyaDifferenceLaw(t *testing.T) {
	f := testStream("fast difference")
	for _, c := range []struct{ r, scale float64 }{{0.5, 50}, {0.5, 60}, {2, 20}} {
		half := negativeBinomialTable(c.r, c.scale)
		law := half.plus(half.minus())
		draw := ints(func() int64 { return f.PolyaDifference(c.r, c.scale) })
		checkP(t, fmt.Sprintf("difference(%v, %v)", c.r, c.scale),
			chiSquareP(draws/10, draw, law.cuts(), law.cdf()))
	}
}

// checkMasses compares how often each of the first values is drawn, of n draws, with its mass.
func checkMasses(t *testing.T, what string, n int, draw func() (uint64, bool), mass []float64) {
	t.Helper()
	counts := make([]int, len(mass))
	for range n {
		if x, ok := draw(); ok && x < uint64(len(mass)) {
			counts[x]++
		}
	}
	for x, p := range mass {
		got := float64(counts[x])
		checkMean(t, fmt.Sprintf("%s at %d", what, x), 1, func() float64 { return got }, float64(n)*p,
			math.Sqrt(float64(n)*p*(1-p)))
	}
}

// The first masses of every way to draw, in few draws.
func TestFirstMasses(t *testing.T) {
	const n = 40_000
	for _, c := range []struct{ num, den uint64 }{{2, 5}, {1, 1}, {6, 5}, {7, 4}, {2, 1}, {14, 5}, {5, 1}} {
		mean := float64(c.num) / float64(c.den)
		mass, p := make([]float64, 6), math.Exp(-mean)
		for x := range mass {
			mass[x] = p
			p *= mean / float64(x+1)
		}
		law := testkit.Must(NewPoisson(c.num, c.den))
		name := fmt.Sprintf("Poisson(%v)", mean)
		src := Key{Experiment: name}.ChaCha8()
		checkMasses(t, name, n, func() (uint64, bool) {
			x, err := law.Draw(src)
			return uint64(x), err == nil
		}, mass)
	}
	for _, c := range []struct {
		n, num, den uint64
	}{{1, 2, 1}, {2, 3, 1}, {5, 7, 2}, {63, 40, 1}, {64, 40, 1}} {
		r, q := 1/float64(c.n), -math.Expm1(-float64(c.den)/float64(c.num))
		mass, p := make([]float64, 4), math.Pow(q, r)
		for x := range mass {
			mass[x] = p
			p *= (1 - q) * (float64(x) + r) / float64(x+1)
		}
		law := testkit.Must(NewNegativeBinomial(c.n, c.num, c.den))
		name := fmt.Sprintf("share of %d", c.n)
		src := Key{Experiment: name}.ChaCha8()
		checkMasses(t, name, n, func() (uint64, bool) {
			x, err := law.Draw(src)
			return uint64(x), err == nil
		}, mass)
	}
	// −2, …, 2 of the laws on all integers
	for _, c := range []struct{ num, den uint64 }{{1, 1}, {6, 4}, {7, 2}} {
		t0 := float64(c.num) / float64(c.den)
		gaussian := gaussianTable(t0)
		for name, l := range map[string]struct {
			law  drawer
			mass func(x float64) float64
		}{
			"Laplace": {testkit.Must(NewDiscreteLaplace(c.num, c.den)), func(x float64) float64 {
				return math.Tanh(1/(2*t0)) * math.Exp(-math.Abs(x)/t0)
			}},
			"difference of one": {testkit.Must(NewPolyaDifference(1, c.num, c.den)),
				func(x float64) float64 { return math.Tanh(1/(2*t0)) * math.Exp(-math.Abs(x)/t0) }},
			"Gaussian": {testkit.Must(NewDiscreteGaussianVariance(c.num, c.den)),
				func(x float64) float64 { return gaussian.p[int(x)-gaussian.lo] }},
			"Gaussian of sigma": {testkit.Must(NewDiscreteGaussian(c.num, c.den)),
				func(x float64) float64 {
					wide := gaussianTable(t0 * t0)
					return wide.p[int(x)-wide.lo]
				}},
		} {
			var mass []float64
			for x := -2.0; x <= 2; x++ {
				mass = append(mass, l.mass(x))
			}
			name = fmt.Sprintf("%s(%v)", name, t0)
			src := Key{Experiment: name}.ChaCha8()
			checkMasses(t, name, n, func() (uint64, bool) {
				x, err := l.law.Draw(src)
				return uint64(x + 2), err == nil
			}, mass)
		}
	}
	// P(0) of a Skellam law is e^{-v}·I₀(v), here Σ (v/2)^{2k}/k!² of the halves.
	for _, c := range []struct{ num, den uint64 }{{3, 1}, {4, 1}, {6, 5}} {
		half := float64(c.num) / float64(c.den) / 2
		zero, term := 0.0, math.Exp(-2*half)
		for k := 1.0; k < 60; k++ {
			zero += term
			term *= half * half / (k * k)
		}
		law := testkit.Must(NewSkellam(c.num, c.den))
		src := Key{Experiment: "first Skellam"}.ChaCha8()
		checkMasses(t, fmt.Sprintf("Skellam(%v)", 2*half), n, func() (uint64, bool) {
			x, err := law.Draw(src)
			return uint64(x), err == nil
		}, []float64{zero})
	}
}

// Each place of the proposal for a large mean is kept with its mass over the mode's, and the tails'
// places with 1/A of it: with that, the law is right.
func TestPoissonProposals(t *testing.T) {
	const n = 20_000
	for _, c := range []struct{ num, den uint64 }{{2, 1}, {14, 5}, {5, 1}, {97, 10}} {
		p := testkit.Must(NewPoisson(c.num, c.den))
		mean, mode := float64(c.num)/float64(c.den), float64(p.mode)
		if w := math.Ceil(math.Sqrt(mode)); float64(p.flat) != w {
			t.Errorf("mean %v: flat for %d, want %v", mean, p.flat, w)
		}
		least := max(1/(1-mean/(mode+float64(p.flat))), 1/(1-(mode-float64(p.flat))/mean))
		if a := float64(p.tail); a < least-1e-9 || a > least+1+1e-9 {
			t.Errorf("mean %v: A is %v, want the integer above %v", mean, a, least)
		}
		right, left := []float64{1}, []float64{} // P(m+i)/P(m), P(m−1−i)/P(m)
		for i := 1.0; i < 12; i++ {
			right = append(right, right[len(right)-1]*mean/(mode+i))
		}
		for i, r := 0.0, 1.0; i < 12; i++ {
			r *= max(0, mode-i) / mean
			left = append(left, r)
		}
		src := Key{Experiment: "proposals"}.ChaCha8()
		for place := range p.flat + 1 {
			// where a tail begins it stands for all further places
			end, share := place+1, 1.0
			if place == p.flat {
				end, share = place+4, float64(p.tail)
			}
			for side, c := range map[string]struct {
				ratios []float64
				draw   func() (uint64, bool)
			}{
				"right": {right, func() (uint64, bool) {
					x, ok := p.drawRight(src, place)
					return x - p.mode - place, ok
				}},
				"left": {left, func() (uint64, bool) {
					x, ok := p.drawLeft(src, place)
					return p.mode - 1 - place - x, ok
				}},
			} {
				var mass []float64
				for _, r := range c.ratios[place:end] {
					mass = append(mass, r/share)
				}
				checkMasses(t, fmt.Sprintf("mean %v, %s %d", mean, side, place), n, c.draw, mass)
			}
		}
	}
}
