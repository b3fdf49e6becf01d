package privacy_test

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// outward says that a price is no less than the true one, and at most a few units in the
// last place more.
func outward(t *rapid.T, what string, got float64, want *big.Rat) {
	t.Helper()
	if math.IsInf(got, 0) || rat(got).Cmp(want) < 0 {
		t.Fatalf("%s is %v, below the true price", what, got)
	}
	if most := new(big.Rat).Mul(want, big.NewRat(1_000_000_000_000_001+4,
		1_000_000_000_000_000)); rat(got).Cmp(most) > 0 {
		t.Fatalf("%s is %v, more than 5e-15 above the true price", what, got)
	}
}

// What is rational has its true price in fractions: no price is below, also in the last digit.
func TestPricesAreRoundedOutward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := math.Exp(rapid.Float64Range(-8, 12).Draw(t, "log scale"))
		horizon, n := rapid.IntRange(1, min(1<<40, math.MaxInt/4)).Draw(t, "horizon"),
			rapid.IntRange(1, 1000).Draw(t, "charges")
		inverse := new(big.Rat).Inv(rat(scale))
		times := func(x *big.Rat, k int) *big.Rat { return new(big.Rat).Mul(x, big.NewRat(int64(k), 1)) }
		square := new(big.Rat).Mul(inverse, inverse)
		half := big.NewRat(1, 2)
		tree, kary := privacy.Tree{Scale: scale, Horizon: horizon},
			privacy.KAry{Scale: scale, Base: 5, Horizon: horizon}
		outward(t, "laplace", privacy.Laplace{Scale: scale}.Loss().Pure(), inverse)
		outward(t, "tree", tree.Loss().Pure(), times(inverse, tree.Levels()))
		outward(t, "kary", kary.Loss().Pure(), times(inverse, kary.Levels()))
		outward(t, "hybrid", privacy.Hybrid{Scale: scale}.Loss().Pure(), times(inverse, 2))
		outward(t, "gaussian", privacy.Gaussian{Sigma: scale}.Loss().ZCDP(), new(big.Rat).Mul(square, half))
		outward(t, "sums", privacy.Sums{Sigma: scale}.Loss().ZCDP(), times(square, 2))
		outward(t, "vector gaussian", privacy.VectorGaussian{Sigma: scale}.Loss().ZCDP(), times(square, 2))
		outward(t, "renyi of a gaussian", privacy.Gaussian{Sigma: scale}.Loss().Renyi(3),
			new(big.Rat).Mul(square, big.NewRat(3, 2)))
		q := privacy.Questions{Threshold: scale, Query: 3 * scale, Statistic: privacy.Range}
		answers := new(big.Rat).Add(inverse, new(big.Rat).Quo(big.NewRat(2, 1), rat(q.Query)))
		// Sums of different quotients are rounded up but for 10⁻³⁰ of them.
		share, _ := new(big.Rat).SetString("1e-30")
		answers.Sub(answers, share.Mul(share, answers))
		outward(t, "questions", q.Loss().Pure(), answers)
		whole := new(big.Rat).Add(answers, inverse)
		share, _ = new(big.Rat).SetString("1e-30")
		outward(t, "sparse", privacy.Sparse{Questions: q, Scale: scale}.Loss().Pure(),
			whole.Sub(whole, share.Mul(share, whole)))
		l := privacy.NewLedger()
		sum, rho := new(big.Rat), new(big.Rat)
		other := scale * 1.7
		for range 3 {
			release(failing(t), l, 0, privacy.Laplace{Scale: scale})
			release(failing(t), l, 0, privacy.Laplace{Scale: other})
			sum.Add(sum, inverse).Add(sum, new(big.Rat).Inv(rat(other)))
			release(failing(t), l, 1, privacy.Gaussian{Sigma: scale})
			rho.Add(rho, new(big.Rat).Mul(square, half))
		}
		outward(t, "a slot", l.Slot(0).Pure(), sum)
		outward(t, "another slot", l.Slot(1).ZCDP(), rho)
		outward(t, "many", privacy.Laplace{Scale: scale}.Loss().Times(n).Pure(), times(inverse, n))
	})
}

// failing is a testing.TB for helpers that take one.
func failing(t *rapid.T) testing.TB { return rapidTB{t: t} }

type rapidTB struct {
	testing.TB
	t *rapid.T
}

func (r rapidTB) Helper()                   {}
func (r rapidTB) Fatal(args ...any)         { r.t.Fatal(args...) }
func (r rapidTB) Fatalf(f string, a ...any) { r.t.Fatalf(f, a...) }

// Conversions against many digits, and against fractions.
func TestConversionsAreRoundedOutward(t *testing.T) {
	for _, c := range tightConversions { // rho, delta, epsilon in many digits
		if got := privacy.ZCDPToApproxTight(c[0], c[1]); got < c[2] {
			t.Errorf("ZCDPToApproxTight(%v, %v) = %v, below %v", c[0], c[1], got, c[2])
		}
	}
	for _, c := range gaussianDeltas { // epsilon, mu, delta in many digits
		if c[2] > 1e-300 && c[2] < 1 {
			if got := privacy.GaussianEpsilon(c[1], c[2]); got < c[0] {
				t.Errorf("GaussianEpsilon(%v, %v) = %v, below %v", c[1], c[2], got, c[0])
			}
		}
	}
	// Orders near 1, δ near 1 and large μ, where a formula as it is written loses digits: true
	// values in 25 of them.
	for _, c := range []struct {
		what string
		got  float64
		want string
	}{
		{"LaplaceRenyi", privacy.LaplaceRenyi(0.023626434304203484, 1.0015196724044872),
			"0.0002773398294283629153859677"},
		{"RenyiToApprox", privacy.RenyiToApprox(1.000000009462576, 20.895709455255787,
			0.9999999999520327), "1.424857428326689143758681"},
		{"ZCDPToApproxTight", privacy.ZCDPToApproxTight(53.91270314888824, 0.9999997080472584),
			"38.86604499728624650187132"},
		{"GaussianEpsilon", privacy.GaussianEpsilon(1064.3680159394003, 0.6478498406268338),
			"566034.685490413004014635"},
	} {
		want, _ := new(big.Rat).SetString(c.want)
		most := new(big.Rat).Mul(want, big.NewRat(1_000_000_000_001, 1_000_000_000_000))
		if got := rat(c.got); got.Cmp(want) < 0 || got.Cmp(most) > 0 {
			t.Errorf("%s = %v, true value %s", c.what, c.got, c.want)
		}
	}
	// Randomised response at ε = log of a ratio of small integers: its moments are fractions.
	for _, r := range [][2]float64{{2, 1}, {3, 2}, {11, 10}, {101, 100}, {1001, 1000}, {10, 1}, {1000, 1}} {
		e := math.Log(r[0] / r[1])
		for _, alpha := range []int{2, 3, 5, 8, 16} {
			// Σ p^α q^{1−α}
			a, b := big.NewRat(int64(r[0]), int64(r[0]+r[1])), big.NewRat(int64(r[1]), int64(r[0]+r[1]))
			ratio := new(big.Rat).Quo(a, b)
			power := func(x *big.Rat, n int) *big.Rat {
				out := big.NewRat(1, 1)
				for range n {
					out.Mul(out, x)
				}
				return out
			}
			moment := new(big.Rat).Mul(a, power(ratio, alpha-1))
			moment.Add(moment, new(big.Rat).Mul(b, power(new(big.Rat).Inv(ratio), alpha-1)))
			excess, _ := new(big.Rat).Sub(moment, big.NewRat(1, 1)).Float64()
			want := math.Log1p(excess) / float64(alpha-1)
			// near 0 it is αε²/2
			if got := privacy.PureToRenyi(math.Nextafter(e, 9),
				float64(alpha)); got < want*(1-1e-15) || got > want*1.01 {
				t.Errorf("PureToRenyi(log %v/%v, %d) = %v, true %v", r[0], r[1], alpha, got, want)
			}
		}
	}
}

func TestUp(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   string
	}{
		{1, 4, "1"}, {1.0000000000000002, 4, "1"}, {0.12344, 4, "0.1235"}, {0.1234, 4, "0.1234"},
		{0.12340001, 4, "0.1235"}, {9.9991, 4, "10"}, {9.999, 4, "9.999"},
		{1.0 / 3, 4, "0.3334"}, {2.0 / 3, 4, "0.6667"}, {1234567, 4, "1.235e+06"},
		{1.2345e-7, 4, "1.235e-07"}, {1.23400001e-110, 4, "1.235e-110"}, {0, 4, "0"},
		{math.Inf(1), 4, "+Inf"}, {0.1, 3, "0.1"}, {999.95, 4, "1000"}, {1e22, 2, "1e+22"},
		{1.1e300, 1, "2e+300"},
	} {
		if got := privacy.Up(c.x, c.digits); got != c.want {
			t.Errorf("Up(%v, %d) = %s, want %s", c.x, c.digits, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x, digits := math.Exp(rapid.Float64Range(-600, 600).Draw(t, "log x")),
			rapid.IntRange(1, 12).Draw(t, "digits")
		text := privacy.Up(x, digits)
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || got < x*(1-1.000001e-9) || got > x*(1+10*math.Pow(10, -float64(digits))) {
			t.Fatalf("Up(%v, %d) = %s: %v", x, digits, text, err)
		}
		if fmt.Sprintf("%.*g", digits, got) != text {
			t.Fatalf("Up(%v, %d) = %s has another number of digits", x, digits, text)
		}
	})
}

// Composition by hand rounds outward too.
func TestCompositionIsRoundedOutward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, k := rapid.Float64Range(0.001, 3).Draw(t, "x"),
			rapid.Float64Range(0.001, 3).Draw(t, "y"), rapid.IntRange(2, 99).Draw(t, "k")
		n := new(big.Rat).SetInt64(int64(k))
		sum, err := privacy.Sequential(privacy.Pure{Epsilon: x}, privacy.Pure{Epsilon: y})
		if err != nil {
			t.Fatal(err)
		}
		outward(t, "sum", sum.(privacy.Pure).Epsilon, new(big.Rat).Add(rat(x), rat(y)))
		mu, err := privacy.Sequential(privacy.GDP{Mu: x}, privacy.GDP{Mu: y})
		if err != nil {
			t.Fatal(err)
		}
		square := func(x float64) *big.Rat { return new(big.Rat).Mul(rat(x), rat(x)) }
		if got := mu.(privacy.GDP).Mu; square(got).Cmp(new(big.Rat).Add(square(x), square(y))) < 0 {
			t.Fatalf("√(%v² + %v²) is %v, below the true price", x, y, got)
		}
		group, err := privacy.Group(privacy.ZCDP{Rho: x}, k)
		if err != nil {
			t.Fatal(err)
		}
		outward(t, "group", group.(privacy.ZCDP).Rho, new(big.Rat).Mul(rat(x), new(big.Rat).Mul(n, n)))
	})
}

// Half of the users of Pólya noise, on the grid of real rewards, where millions of steps round: the
// true price is by hypergeometric functions, in 18 digits.
func TestMissingUsersArePricedOutward(t *testing.T) {
	m := privacy.Aggregated{Trust: privacy.TrustSecAgg, Noise: privacy.NoisePolya, G: 1 << 20,
		Users: 2, Invited: 2, Modulus: math.MaxInt64, Num: 1_000_000, Den: 1}
	want, _ := new(big.Rat).SetString("3.70006945350437943")
	got := m.LossWith(1).Pure()
	if rat(got).Cmp(want) < 0 || got > 3.7000696 {
		t.Errorf("the price is %.17g, the true one 3.70006945350437943", got)
	}
}

// Noise beyond all measure has a price that is found at once, and is above 0.
func TestPricesOfHugeNoise(t *testing.T) {
	for _, sigma := range []float64{1e150, 1e160, 1e200, math.MaxFloat64} {
		l := privacy.Gaussian{Sigma: sigma}.Loss()
		if got := l.ZCDP(); !(got > 0 && got <= 1e-299) || l.Approx(1e-6) != 0 {
			t.Errorf("sigma %v costs ρ = %v, ε = %v", sigma, got, l.Approx(1e-6))
		}
	}
}
