package privacy

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// digits has 400 bits, far beyond what is compared.
func digits(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }

func sumOf(a, b *big.Float) *big.Float   { return digits(0).Add(a, b) }
func lessOf(a, b *big.Float) *big.Float  { return digits(0).Sub(a, b) }
func timesOf(a, b *big.Float) *big.Float { return digits(0).Mul(a, b) }
func overOf(a, b *big.Float) *big.Float  { return digits(0).Quo(a, b) }

// expOf is e^x: the series of x/2^60, squared 60 times.
func expOf(x *big.Float) *big.Float {
	small := digits(0).SetMantExp(x, -60)
	sum, term := digits(1), digits(1)
	for i := range 12 {
		term = overOf(timesOf(term, small), digits(float64(i+1)))
		sum = sumOf(sum, term)
	}
	for range 60 {
		sum = timesOf(sum, sum)
	}
	return sum
}

// logOf is log y by Halley's iteration, which triples the digits of a double's.
func logOf(y *big.Float) *big.Float {
	m := digits(0)
	e := y.MantExp(m)
	f, _ := m.Float64()
	x := digits(math.Log(f) + float64(e)*math.Ln2)
	for range 3 {
		t := expOf(x)
		x = sumOf(x, timesOf(digits(2), overOf(lessOf(y, t), sumOf(y, t))))
	}
	return x
}

func TestManyDigits(t *testing.T) {
	// e and log 10 to 50 digits.
	for want, got := range map[string]*big.Float{
		"2.71828182845904523536028747135266249775724709369996": expOf(digits(1)),
		"2.30258509299404568401799145468436420760110148862877": logOf(digits(10)),
	} {
		if got.Text('f', 50) != want {
			t.Errorf("%s, want %s", got.Text('f', 50), want)
		}
	}
}

// No conversion is below its formula in 400 bits, nor above it by more than 10⁻¹¹ and what the formula's
// largest term rounds: at orders near 1 and large ones, at δ near 0 and near 1, for a small ε
// and a large one.
func TestConversionsAreGuarded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	between := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, r.Float64()) }
	check := func(name string, got float64, want *big.Float, size float64, of ...float64) {
		t.Helper()
		w, _ := want.Float64()
		if w <= 0 {
			return
		}
		// The formula's own rounding is below 2^-250.
		if timesOf(digits(got), sumOf(digits(1), digits(0x1p-250))).Cmp(want) < 0 || got > w*(1+1e-11)+size*1e-14 {
			t.Errorf("%s%v = %v, its formula has %v (%g of it)", name, of, got, w, got/w-1)
		}
	}
	one := digits(1)
	for range 400 {
		alpha, epsilon, delta := 1+between(1e-4, 1e3), between(1e-2, 1e3), between(1e-300, 1)
		if r.IntN(3) == 0 {
			delta = 1 - between(1e-9, 0.5)
		}
		a, e, d := digits(alpha), digits(epsilon), digits(delta)
		less := lessOf(a, one)
		want := lessOf(e, overOf(sumOf(logOf(a), logOf(d)), less))
		want = sumOf(want, logOf(overOf(less, a)))
		size := epsilon + (math.Log(alpha)-math.Log(delta))/(alpha-1) + math.Log(alpha/(alpha-1))
		check("RenyiToApprox", RenyiToApprox(alpha, epsilon, delta), want, size, alpha, epsilon, delta)

		ee := expOf(e)
		if rest := lessOf(ee, timesOf(d, sumOf(one, ee))); rest.Sign() > 0 {
			check("PureToApprox", pureToApprox(epsilon, delta), logOf(rest), 10*epsilon/(1-delta), epsilon, delta)
		}

		top := sumOf(expOf(timesOf(a, e)), expOf(timesOf(lessOf(one, a), e)))
		want = overOf(logOf(overOf(top, sumOf(one, ee))), less)
		size = epsilon + 2*math.Ln2/(alpha-1)
		check("PureToRenyi", pureToRenyi(epsilon, alpha), want, size, epsilon, alpha)

		two := sumOf(a, less) // 2α−1
		top = sumOf(overOf(timesOf(a, expOf(timesOf(less, e))), two),
			overOf(timesOf(less, expOf(digits(0).Neg(timesOf(a, e)))), two))
		size = epsilon + 2/(alpha-1)
		check("LaplaceRenyi", laplaceShiftRenyi(epsilon, alpha), overOf(logOf(top), less), size, epsilon, alpha)
	}
}
