package noise

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// script is a source of given words, then of the last one for ever.
type script struct {
	words []uint64
	used  int
}

func (s *script) Uint64() uint64 {
	w := s.words[min(s.used, len(s.words)-1)]
	s.used++
	return w
}

const allOnes = ^uint64(0)

// scales are the discrete Laplace and geometric laws under test, num/den.
var scales = []struct{ num, den uint64 }{
	{1, 10}, {1, 1}, {37, 10}, {100, 1}, {1 << 20, 1}, {1 << 50, 1}, // as they come
	// 3.7 again before it is reduced; products of 128 bits
	{37 << 54, 10 << 54}, {1<<61 - 1, 1<<60 + 1},
}

// cells cuts the law of scale t where all integers can be cells, and else in 400 cells of 12
// scales either side.
func cells(t float64) []float64 {
	if t <= 200 {
		return integers(-int(13*t)-3, int(13*t)+3)
	}
	return floors(grid(-12*t, 12*t, 400))
}

func geometricLaw(t float64) func(float64) float64 {
	return func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return -math.Expm1(-(x + 1) / t)
	}
}

func discreteLaplaceLaw(t float64) func(float64) float64 {
	b := math.Exp(-1 / t)
	return func(x float64) float64 {
		if x < 0 {
			return math.Exp(x/t) / (1 + b)
		}
		return 1 - math.Exp(-(x+1)/t)/(1+b)
	}
}

// discreteGaussianLaw sums the mass; for σ > 1000 it is the normal law with continuity correction,
// as the sums over integers and the integrals then agree to 1/(24σ²).
func discreteGaussianLaw(sigma float64) func(float64) float64 {
	if sigma > 1000 {
		return func(x float64) float64 { return normalCDF((x + 0.5) / sigma) }
	}
	end := int(40*sigma) + 3
	sum, cum := 0.0, map[float64]float64{}
	for x := -end; x <= end; x++ {
		sum += math.Exp(-float64(x) * float64(x) / (2 * sigma * sigma))
		cum[float64(x)] = sum
	}
	return func(x float64) float64 { return cum[x] / sum }
}

// exactP is the χ² p-value of n draws.
func exactP(t *testing.T, n int, d drawer, src rand.Source, cuts []float64, cdf func(float64) float64) float64 {
	t.Helper()
	return chiSquareP(n, drawFloat(t, d, src), cuts, cdf)
}

func drawFloat(t *testing.T, d drawer, src rand.Source) func() float64 {
	return func() float64 {
		x, err := d.Draw(src)
		if err != nil {
			t.Fatal(err)
		}
		return float64(x)
	}
}

func TestGeometricLaw(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, c := range scales {
		g, err := NewGeometric(c.num, c.den)
		if err != nil {
			t.Fatal(err)
		}
		scale := float64(c.num) / float64(c.den)
		name := fmt.Sprintf("scale %d/%d", c.num, c.den)
		src := Key{Experiment: "geometric " + name}.ChaCha8()
		checkP(t, name, exactP(t, drawsAt(scale), g, src, cells(scale), geometricLaw(scale)))
		b := math.Exp(-1 / scale)
		checkMean(t, name, draws/4, drawFloat(t, g, src), 1/math.Expm1(1/scale),
			math.Sqrt(b)/-math.Expm1(-1/scale))
	}
}

func TestDiscreteLaplaceLaw(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, c := range scales {
		l, err := NewDiscreteLaplace(c.num, c.den)
		if err != nil {
			t.Fatal(err)
		}
		scale := float64(c.num) / float64(c.den)
		name := fmt.Sprintf("scale %d/%d", c.num, c.den)
		src := Key{Experiment: "laplace " + name}.ChaCha8()
		checkP(t, name, exactP(t, drawsAt(scale), l, src, cells(scale), discreteLaplaceLaw(scale)))

		b, q := math.Exp(-1/scale), -math.Expm1(-1/scale)
		v := 2 * b / (q * q)
		fourth := 2 * b * (1 + 10*b + b*b) / (q * q * q * q) // E x⁴
		draw := drawFloat(t, l, src)
		checkMean(t, name, draws/10, draw, 0, math.Sqrt(v))
		checkMean(t, name+" variance", draws/10, func() float64 {
			x := draw()
			return x * x
		}, v, math.Sqrt(fourth-v*v))
		y := int64(2*scale) + 1
		p := DiscreteLaplaceTail(scale, y)
		checkMean(t, name+" tail", draws/4, func() float64 {
			if math.Abs(draw()) >= float64(y) {
				return 1
			}
			return 0
		}, p, math.Sqrt(p*(1-p)))
	}
}

// symmetricTwin is the discrete Laplace sampler without "draw again": zero has double mass.
type symmetricTwin struct{ half Geometric }

func (s symmetricTwin) Draw(src rand.Source) (int64, error) {
	x, minus, err := s.half.draw(src)
	if minus == 1 {
		x = -x
	}
	return x, err
}

// leakyTwin takes the sign from the last bit of the value, so signs and values are not independent.
type leakyTwin struct{ half Geometric }

func (s leakyTwin) Draw(src rand.Source) (int64, error) {
	x, err := s.half.Draw(src)
	if x&1 == 1 {
		x = -x
	}
	return x, err
}

func TestDiscreteLaplaceBrokenTwins(t *testing.T) {
	for _, scale := range []uint64{1, 100} {
		right, err := NewDiscreteLaplace(scale, 1)
		if err != nil {
			t.Fatal(err)
		}
		half, err := NewDiscreteLaplace(scale, 2)
		if err != nil {
			t.Fatal(err)
		}
		for name, d := range map[string]drawer{
			"half the scale":       half,
			"double mass at zero":  symmetricTwin(right),
			"one-sided":            right.half,
			"sign bit used before": leakyTwin(right),
		} {
			src := Key{Experiment: name}.ChaCha8()
			checkCaught(t, name, exactP(t, draws/4, d, src, cells(float64(scale)),
				discreteLaplaceLaw(float64(scale))))
		}
	}
}

func TestDiscreteGaussianLaw(t *testing.T) {
	testkit.OneGoroutine(t)
	check := func(n int, name string, g DiscreteGaussian, err error, sigma float64) {
		if err != nil {
			t.Fatal(err)
		}
		src := Key{Experiment: "gaussian " + name}.ChaCha8()
		cdf := discreteGaussianLaw(sigma)
		cuts := floors(grid(-4.5*sigma, 4.5*sigma, 400))
		if sigma <= 100 {
			cuts = integers(-int(5*sigma)-2, int(5*sigma)+2)
		}
		checkP(t, name, exactP(t, n, g, src, cuts, cdf))
		v, fourth := 0.0, 0.0
		if sigma > 1000 {
			v, fourth = sigma*sigma, 3*math.Pow(sigma, 4)
		} else {
			for x := 1.0; x <= 40*sigma; x++ {
				m := 2 * (cdf(x) - cdf(x-1))
				v, fourth = v+m*x*x, fourth+m*x*x*x*x
			}
		}
		draw := drawFloat(t, g, src)
		checkMean(t, name, draws/10, draw, 0, math.Sqrt(v))
		checkMean(t, name+" variance", draws/10, func() float64 {
			x := draw()
			return x * x
		}, v, math.Sqrt(fourth-v*v))
	}
	for _, c := range []struct {
		num, den uint64
	}{{1, 4}, {1, 1}, {37, 10}, {100, 1}, {1 << 20, 1}, {1 << 50, 1}, {1<<56 - 1, 1 << 55},
		{1 << 56, 1<<56 - 1}} {
		g, err := NewDiscreteGaussian(c.num, c.den)
		check(draws, fmt.Sprintf("sigma %d/%d", c.num, c.den), g, err, float64(c.num)/float64(c.den))
	}
	for _, c := range []struct {
		num, den uint64
	}{{1, 16}, {1, 1}, {5, 1}, {137, 10}, {10_000, 3}, {5 << 40, 1}, {1 << 56, 1},
		{1<<56 - 1, 1 << 55}, {1 << 55, 1<<56 - 1}} {
		g, err := NewDiscreteGaussianVariance(c.num, c.den)
		check(allDraws/4, fmt.Sprintf("variance %d/%d", c.num, c.den), g, err,
			math.Sqrt(float64(c.num)/float64(c.den)))
	}
}

// unrejectedTwin gives every proposal.
type unrejectedTwin struct{ g DiscreteGaussian }

func (u unrejectedTwin) Draw(src rand.Source) (int64, error) { return u.g.proposal.Draw(src) }

func TestDiscreteGaussianBrokenTwins(t *testing.T) {
	testkit.OneGoroutine(t)
	right, err := NewDiscreteGaussian(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	half, err := NewDiscreteGaussian(10, 2)
	if err != nil {
		t.Fatal(err)
	}
	slight, err := NewDiscreteGaussian(99, 10)
	if err != nil {
		t.Fatal(err)
	}
	shifted := right // the acceptance forgets that the proposal is centred at σ²/t
	shifted.sub = 0
	for name, d := range map[string]drawer{"half sigma": half, "1 % less": slight,
		"no rejection": unrejectedTwin{right}, "shifted": shifted} {
		src := Key{Experiment: name}.ChaCha8()
		checkCaught(t, name, exactP(t, allDraws, d, src, integers(-50, 50), discreteGaussianLaw(10)))
	}
}

func TestBernoulliExpLaw(t *testing.T) {
	src := Key{Experiment: "bernoulli exp"}.ChaCha8()
	for _, c := range []struct {
		num, den uint64
	}{{0, 1}, {1, 1}, {1, 3}, {7, 3}, {1 << 63, 1<<63 + 1}, {1<<64 - 1, 1<<64 - 1}, {1<<63 + 5, 1 << 62}} {
		p := math.Exp(-float64(c.num) / float64(c.den))
		checkMean(t, fmt.Sprint(c), draws/4, func() float64 {
			ok, err := BernoulliExp(src, c.num, c.den)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				return 1
			}
			return 0
		}, p, math.Sqrt(p*(1-p)))
	}
}

// expOracle is ⌊e^{-k}·2^n⌋ by another road than expDigits: the reciprocal of the k-th power of Σ
// 1/i!, in floating point of n + 300 bits.
func expOracle(k, n uint) *big.Int {
	prec := n + 300
	num := func(x int64) *big.Float { return new(big.Float).SetPrec(prec).SetInt64(x) }
	e, term := num(0), num(1)
	for i := int64(1); term.MantExp(nil) > -int(prec); i++ {
		e.Add(e, term)
		term.Quo(term, num(i))
	}
	r := num(1)
	for range k {
		r.Quo(r, e)
	}
	r.SetMantExp(r, int(n))
	digits, _ := r.Int(nil)
	return digits
}

func TestExpDigits(t *testing.T) {
	for k := uint(1); k <= uint(len(expPrefixes)); k++ {
		if want := expOracle(k, 63); !want.IsUint64() || want.Uint64() != expPrefixes[k-1] {
			t.Errorf("first 63 digits of e^-%d are %#x, want %#x", k, expPrefixes[k-1], want)
		}
		for _, n := range []uint{1, 63, 127, 191, 255, 1023} {
			if got, want := expDigits(k, n), expOracle(k, n); got.Cmp(want) != 0 {
				t.Errorf("first %d digits of e^-%d are %#x, want %#x", n, k, got, want)
			}
		}
	}
}

// chain is the first words of a uniform number that ties with x, x·2^bits given as digits, in n
// words after the first `first` bits.
func chain(digits *big.Int, n int) []uint64 {
	words := make([]uint64, n)
	d := new(big.Int).Set(digits)
	mask := new(big.Int).SetUint64(allOnes)
	for i := n - 1; i >= 0; i-- {
		words[i] = new(big.Int).And(d, mask).Uint64()
		d.Rsh(d, 64)
	}
	return words
}

// A uniform number that ties with e^{-k} for 63, 127, 191 or 255 digits and then differs by one in
// the last word is above or below it, and the sampler must say so after exactly that many words.
func TestGeometricTies(t *testing.T) {
	for k := uint(1); k <= uint(len(expPrefixes)); k++ {
		for words := range 4 {
			for _, coin := range []uint64{0, 1} {
				below := append([]uint64{expPrefixes[k-1]<<1 | coin},
					chain(expOracle(k, uint(63+64*words)), words)...)
				above := append([]uint64(nil), below...)
				if words == 0 {
					below[0] -= 2
					above[0] += 2
				} else {
					below[words]--
					above[words]++
				}
				g, c, ok := standardGeometric(&script{words: append(above, 0)})
				if g != uint64(k)-1 || c != coin || !ok {
					t.Errorf("just above e^-%d: %d %d %v", k, g, c, ok)
				}
				src := &script{words: append(below, allOnes)}
				g, c, ok = standardGeometric(src)
				used := words + 1
				if k == uint(len(expPrefixes)) {
					used++ // starts again there, and all ones is above e^-1
				}
				if g != uint64(k) || c != coin || !ok || src.used != used {
					t.Errorf("just below e^-%d: %d %d %v after %d words, want %d", k, g, c, ok, src.used, used)
				}
				if k == 1 {
					if bernoulliInvE(&script{words: append(above, 0)}) ||
						!bernoulliInvE(&script{words: below}) {
						t.Errorf("bernoulliInvE at a tie of %d words", words)
					}
				}
			}
		}
	}
}

// The same for rational coins of 64 and of 128 bits: their digits come from long division.
func TestBernoulliTies(t *testing.T) {
	word := new(big.Int).Lsh(big.NewInt(1), 64)
	check := func(t *rapid.T, n, d *big.Int, toss func(*script) bool) {
		var digits []uint64
		rest := new(big.Int).Set(n)
		for i := range 4 {
			rest.Mul(rest, word)
			q := new(big.Int)
			q.QuoRem(rest, d, rest)
			w := q.Uint64()
			if w > 0 {
				if src := (&script{words: append(append([]uint64(nil), digits...), w-1,
					allOnes)}); !toss(src) || src.used != i+1 {
					t.Fatalf("%v/%v: a number below it in word %d is not, or %d words", n, d, i, src.used)
				}
			}
			if w < allOnes {
				if src := (&script{words: append(append([]uint64(nil), digits...), w+1,
					0)}); toss(src) || src.used != i+1 {
					t.Fatalf("%v/%v: a number above it in word %d is not, or %d words", n, d, i, src.used)
				}
			}
			digits = append(digits, w)
			// n/d has no more digits: a number that ties so far is not below it
			if rest.Sign() == 0 {
				if src := (&script{words: append(append([]uint64(nil), digits...),
					0)}); toss(src) || src.used != i+1 {
					t.Fatalf("%v/%v: a number equal to it is below it", n, d)
				}
				return
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Uint64Min(1).Draw(t, "d")
		n := rapid.Uint64Range(0, d-1).Draw(t, "n")
		check(t, new(big.Int).SetUint64(n), new(big.Int).SetUint64(d), func(s *script) bool {
			return bernoulli(s, n, d)
		})
	})
	rapid.Check(t, func(t *rapid.T) {
		b1, b0 := rapid.Uint64Max(1<<63).Draw(t, "b1"), rapid.Uint64Min(1).Draw(t, "b0")
		b := new(big.Int).SetUint64(b1)
		b.Mul(b, word).Add(b, new(big.Int).SetUint64(b0))
		c := new(big.Int).SetUint64(rapid.Uint64().Draw(t, "c1"))
		c.Mul(c, word).Add(c, new(big.Int).SetUint64(rapid.Uint64().Draw(t, "c0"))).Mod(c, b)
		lo := new(big.Int).And(c, new(big.Int).SetUint64(allOnes)).Uint64()
		hi := new(big.Int).Rsh(c, 64).Uint64()
		check(t, c, b, func(s *script) bool { return bernoulli128(s, hi, lo, b1, b0) })
	})
}

// zeros is n words of 0.
func zeros(n int) []uint64 { return make([]uint64, n) }

// A word of 0 is U < e^{-30}; 0xff…fe is V = 0 with the sign plus.
func TestOverflow(t *testing.T) {
	const stop = allOnes - 1
	g, err := NewGeometric(1<<50, 1)
	if err != nil {
		t.Fatal(err)
	}
	// U = 0 from the first word, V = 30·273 = 8190 and then 8220.
	x, err := g.Draw(&script{words: append(zeros(1+273), stop)})
	if x != 8190<<50 || err != nil {
		t.Errorf("V = 8190: %d, %v", x, err)
	}
	if x, err = g.Draw(&script{words: append(zeros(1+274), stop)}); !errors.Is(err, ErrOverflow) {
		t.Errorf("V = 8220: %d, %v", x, err)
	}
	// A quotient of 128 bits by 64, with U = 1 from the first word (kept, as its coin fails).
	num, den := uint64(1<<62+1), uint64(1<<13)
	if g, err = NewGeometric(num, den); err != nil {
		t.Fatal(err)
	}
	want := new(big.Int).SetUint64(num)
	want.Mul(want, big.NewInt(8190)).Add(want, big.NewInt(1)).Quo(want, new(big.Int).SetUint64(den))
	if x, err = g.Draw(&script{words: append(append([]uint64{5, allOnes}, zeros(273)...),
		stop)}); err != nil || !want.IsInt64() || x != want.Int64() {
		t.Errorf("128 bits: %d, %v, want %v", x, err, want)
	}
	// A source of zeros.
	l, err := NewDiscreteLaplace(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Draw(&script{words: zeros(1)}); !errors.Is(err, ErrOverflow) {
		t.Errorf("zeros: %v", err)
	}
	// |Y|·den beyond 64 bits: thrown away by a coin of e^{-7900}, unless that comes true.
	n, err := NewDiscreteGaussian(1<<56, 65)
	if err != nil {
		t.Fatal(err)
	}
	far := append(zeros(1+9), stop)
	if _, err := n.Draw(&script{words: append(far, zeros(7900)...)}); !errors.Is(err, ErrOverflow) {
		t.Errorf("far proposal: %v", err)
	}
	// Then Y = 0 has γ = 1/2, and its first coin fails: kept.
	if x, err := n.Draw(&script{words: append(far, allOnes, 0, stop, allOnes)}); x != 0 || err != nil {
		t.Errorf("after a far proposal: %d, %v", x, err)
	}
}

func TestBadParameters(t *testing.T) {
	lap := func(n, d uint64) error { _, err := NewDiscreteLaplace(n, d); return err }
	geo := func(n, d uint64) error { _, err := NewGeometric(n, d); return err }
	gau := func(n, d uint64) error { _, err := NewDiscreteGaussian(n, d); return err }
	vari := func(n, d uint64) error { _, err := NewDiscreteGaussianVariance(n, d); return err }
	for _, c := range []struct {
		name string
		err  error
		want string // empty: no error
	}{
		{"laplace", lap(0, 1), "num of the scale num/den of a discrete Laplace law is 0, must be at least 1"},
		{"laplace", lap(1, 0), "den of the scale num/den of a discrete Laplace law is 0, must be at least 1"},
		{"laplace", lap(1<<50+1, 1), "scale num/den = 1125899906842625/1 of a discrete Laplace " +
			"law is too large, must be at most 2^50"},
		{"laplace", lap(allOnes, 1<<14-1), "too large"},
		{"laplace", lap(1<<50, 1), ""},
		{"laplace", lap(allOnes, 1<<14), ""},
		{"laplace", lap(1, allOnes), ""},
		{"geometric", geo(0, 1), "num of the scale num/den of a geometric law is 0"},
		{"geometric", geo(1, 0), "den of the scale num/den of a geometric law is 0"},
		{"gaussian", gau(0, 1), "num of the sigma num/den of a discrete Gaussian law is 0"},
		{"gaussian", gau(1, 0), "den of the sigma num/den of a discrete Gaussian law is 0"},
		{"gaussian", gau(1<<56+1, 2), "out of range"},
		{"gaussian", gau(1<<51, 1), "must be at most 2^50"},
		{"gaussian", gau(1<<62, 1<<12), ""},
		{"gaussian", gau(1<<56, 1<<6), ""},
		{"variance", vari(0, 1), "num of the variance num/den of a discrete Gaussian law is 0"},
		{"variance", vari(1, 0), "den of the variance num/den of a discrete Gaussian law is 0"},
		{"variance", vari(1<<56+1, 1), "out of range"},
		{"variance", vari(1, 1<<56+1), "out of range"},
		{"variance", vari(1<<56, 1), ""},
	} {
		switch {
		case c.want == "" && c.err != nil:
			t.Errorf("%s: %v", c.name, c.err)
		case c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.name, c.err, c.want)
		}
	}
	if _, err := BernoulliExp(&script{words: zeros(1)}, 1, 0); err == nil ||
		!strings.Contains(err.Error(), "den") {
		t.Errorf("BernoulliExp: %v", err)
	}
	for _, d := range []drawer{Geometric{}, DiscreteLaplace{}, DiscreteGaussian{}} {
		if _, err := d.Draw(&script{words: zeros(1)}); err == nil || errors.Is(err, ErrOverflow) {
			t.Errorf("%T: the zero value draws, error %v", d, err)
		}
	}
}

func TestDiscreteLaplaceTail(t *testing.T) {
	for _, scale := range []float64{0.1, 1, 3.7, 100} {
		law := discreteLaplaceLaw(scale)
		for _, y := range []int64{-1, 0, 1, 2, 10, 1000} {
			want := 1.0
			if y > 0 {
				want = 2 * law(-float64(y))
			}
			if got := DiscreteLaplaceTail(scale, y); math.Abs(got-want) > 1e-14*want {
				t.Errorf("scale %v, y %d: %v, want %v", scale, y, got, want)
			}
		}
	}
	if DiscreteLaplaceTail(0, 0) != 1 || DiscreteLaplaceTail(0, 1) != 0 {
		t.Error("scale 0 is not the constant 0")
	}
}

// Any parameters give a sampler that draws, or an error.
func TestAnyParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num, den := rapid.Uint64().Draw(t, "num"), rapid.Uint64().Draw(t, "den")
		num, den = num>>rapid.IntRange(0, 63).Draw(t, "shift num"),
			den>>rapid.IntRange(0, 63).Draw(t, "shift den")
		drawAny(t, num, den, rapid.Uint64().Draw(t, "seed"))
	})
}

func FuzzExact(f *testing.F) {
	f.Add(uint64(1), uint64(1), uint64(1))
	f.Add(uint64(1<<50), uint64(1), uint64(2))
	f.Add(allOnes, uint64(1<<14), uint64(3))
	f.Add(uint64(1), allOnes, uint64(4))
	f.Add(uint64(0), uint64(0), uint64(5))
	f.Fuzz(func(t *testing.T, num, den, seed uint64) { drawAny(t, num, den, seed) })
}

func drawAny(t interface {
	Fatalf(string, ...any)
}, num, den, seed uint64) {
	src := rand.NewPCG(seed, 0)
	inRange := false
	if den > 0 && num > 0 {
		bound := new(big.Int).SetUint64(den)
		inRange = bound.Lsh(bound, maxScaleLog).Cmp(new(big.Int).SetUint64(num)) >= 0
	}
	draw := func(d drawer, err error, must bool) {
		if must && err != nil {
			t.Fatalf("%d/%d: %v", num, den, err)
		}
		for range 5 {
			if err == nil {
				_, err = d.Draw(src)
				if err != nil {
					t.Fatalf("%d/%d: %v", num, den, err)
				}
			}
		}
	}
	g, err := NewGeometric(num, den)
	draw(g, err, inRange)
	l, err := NewDiscreteLaplace(num, den)
	draw(l, err, inRange)
	if (err == nil) != inRange {
		t.Fatalf("%d/%d: error %v", num, den, err)
	}
	small := num <= maxGaussianTerm && den <= maxGaussianTerm
	n, err := NewDiscreteGaussian(num, den)
	draw(n, err, inRange && small)
	v, err := NewDiscreteGaussianVariance(num, den)
	draw(v, err, num > 0 && den > 0 && small)
	if _, err := BernoulliExp(src, num, den); (err == nil) != (den > 0) {
		t.Fatalf("%d/%d: %v", num, den, err)
	}
}

func TestIsqrt(t *testing.T) {
	for _, n := range []uint64{0, 1, 2, 3, 4, 8, 9, 15, 16, 1<<56 - 1, 1 << 56, 1<<62 - 1} {
		if r := isqrt(n); r*r > n || (r+1)*(r+1) <= n {
			t.Errorf("isqrt(%d) = %d", n, r)
		}
	}
}
