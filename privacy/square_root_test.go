package privacy

import (
	"math"
	bignum "math/big"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// A rootCoefficient is c_k = C(2k,k)/4^k in 128 bits.
type rootCoefficient struct {
	k int
	c *bignum.Float
}

func wide(x float64) *bignum.Float { return new(bignum.Float).SetPrec(128).SetFloat64(x) }

// rootCoefficients has every k up to 256, then those further apart by k/step, and the last.
func rootCoefficients(step int) []rootCoefficient {
	out, c, next := []rootCoefficient(nil), wide(1), 0
	for k := range MaxSquareRoot {
		if k > 0 {
			c.Quo(c.Mul(c, wide(float64(2*k-1))), wide(float64(2*k)))
		}
		if k >= next || k == MaxSquareRoot-1 {
			out = append(out, rootCoefficient{k, new(bignum.Float).Copy(c)})
			next = k + 1
			if k >= 256 {
				next += k / step
			}
		}
	}
	return out
}

// rootError is the greatest relative deviation of Σ w_j x_j^k from these c_k.
func rootError(decay, weight []float64, want []rootCoefficient) float64 {
	power := make([][]*bignum.Float, len(decay)) // x_j^(2^i)
	for j, x := range decay {
		p := wide(x)
		for i := 1; i < MaxSquareRoot; i *= 2 {
			power[j] = append(power[j], p)
			p = new(bignum.Float).Mul(p, p)
		}
	}
	worst := 0.0
	for _, v := range want {
		sum := wide(0)
		for j, w := range weight {
			term := wide(w)
			for i, p := range power[j] {
				if v.k>>i&1 > 0 {
					term.Mul(term, p)
				}
			}
			sum.Add(sum, term)
		}
		off, _ := new(bignum.Float).Quo(sum.Sub(sum, v.c), v.c).Float64()
		worst = max(worst, math.Abs(off))
	}
	return worst
}

// The terms are the square root's coefficients, not those of a matrix near it: to 3·10⁻¹⁶ for every
// sum that the mechanism may have. With one moved in its 13th digit they are not.
func TestRootTermsAreTheCoefficients(t *testing.T) {
	want := rootCoefficients(testkit.Size(50, 1000))
	if off := rootError(rootDecay[:], rootWeight[:], want); off > 3e-16 {
		t.Errorf("a coefficient is off by %.2g of itself", off)
	}
	twin := rootWeight
	twin[40] *= 1 + 1e-13
	if off := rootError(rootDecay[:], twin[:], want[:400]); off < 3e-16 {
		t.Errorf("a term moved by 10⁻¹³ of itself: coefficients are off by %.2g only", off)
	}
}

// All of a BLT's buffers may be used.
func TestFullBLT(t *testing.T) {
	m := BLT{}
	for j := range m.Decay {
		m.Decay[j] = 0.9
	}
	if got := newBLT(m).(*blt).buffers; got != Buffers {
		t.Errorf("%d buffers, want %d", got, Buffers)
	}
}
