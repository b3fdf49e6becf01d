package divergence_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// The tangent is J where it touches and below J elsewhere.
func TestDEpsNoisyTangent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mean := rapid.Float64Range(0, 1)
		x, y, z := mean.Draw(t, "x"), mean.Draw(t, "y"), mean.Draw(t, "z")
		if (z-x)*(y-x) < 0 {
			z = x
		}
		eps, r := math.Exp(rapid.Float64Range(-5, 4).Draw(t, "log ε")),
			math.Exp(rapid.Float64Range(-15, 2).Draw(t, "log r"))
		value, slope := divergence.DEpsNoisyTangent(x, y, eps, r)
		if want := divergence.DEpsNoisy(x, y, eps, r); value != want {
			t.Fatalf("value %v, J %v", value, want)
		}
		if j := divergence.DEpsNoisy(x, z, eps, r); value+slope*(z-y) > j+1e-12*(1+math.Abs(slope)) {
			t.Fatalf("at z the tangent is %v, J %v", value+slope*(z-y), j)
		}
	})
}

// Newton's method alone went to and fro here, and ended at 2.38160.
func TestDEpsNoisyConverges(t *testing.T) {
	const x, y, r = 1, 0.0661038203125, 0.5
	eps, want := math.Exp(3), 0.0
	for i := range 100_000 {
		l := eps * float64(i) / 100_000
		want = max(want, l*(1-y)-math.Log(y*math.Exp(l)+1-y)+l*y+r*math.Log1p(-l*l/(eps*eps)))
	}
	if got := divergence.DEpsNoisy(x, y, eps, r); math.Abs(got-want) > 1e-8 {
		t.Fatalf("J = %v, on a grid %v", got, want)
	}
}

// Eps is the same number, whatever is asked of it.
func TestEpsIsDEps(t *testing.T) {
	mean := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1, 0.5, 1e-300, 1e-9,
		1 - 1e-9, -1, 2, math.NaN()}))
	eps := rapid.OneOf(rapid.Float64Range(0, 3), rapid.Float64Range(0, 0.01), rapid.Float64Range(20, 1e3),
		rapid.SampledFrom([]float64{0, 1e-9, 2e-3, 30, 1e9, math.Inf(1), math.NaN(), -1}))
	rapid.Check(t, func(t *rapid.T) {
		x, y, e := mean.Draw(t, "x"), mean.Draw(t, "y"), eps.Draw(t, "ε")
		one := divergence.NewEps(e)
		if got, want := one.DEps(x, y), divergence.DEps(x, y,
			e); math.Float64bits(got) != math.Float64bits(want) &&
			!(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%v, DEps(%v, %v, %v) = %v", got, x, y, e, want)
		}
	})
}

func TestPrivateVectors(t *testing.T) {
	for _, v := range []struct{ x, y, eps, want float64 }{
		{.25, .75, .1, 0.0490469825}, {.25, .75, 1, 0.3926259805}, {.25, .75, 10, 0.5493061443},
		{.625, .75, .5, 0.0372021749},
		{.625, .75, 1, 0.0380984425}, {.75, .625, .5, 0.0346418987}, {0, .5, 1, 0.379885493},
		{.5, 1, .5, 0.25}, {0, 1, .3, 0.3}, {.9, .95, .7, 0.0205551593},
	} {
		if got := divergence.DEps(v.x, v.y, v.eps); math.Abs(got-v.want) > 6e-11 {
			t.Errorf("DEps(%v, %v, %v) = %.12f, want %.10f", v.x, v.y, v.eps, got, v.want)
		}
	}
	for _, v := range []struct{ x, c, eps, want float64 }{
		{.5, .01, 1, 0.5703585935}, {.5, .1, 1, 0.7128786315}, {.5, .3, .1, 1},
		{.2, .05, .1, 0.7104281819}, {0, .05, .1, 0.5124973965}, {.9, .02, .5, 0.9530545161},
	} {
		if got := divergence.DEpsUpper(v.x, v.c, v.eps); math.Abs(got-v.want) > 6e-11 {
			t.Errorf("DEpsUpper(%v, %v, %v) = %.12f, want %.10f", v.x, v.c, v.eps, got, v.want)
		}
	}
	for _, v := range []struct{ x, y, eps, r, want float64 }{
		{.25, .75, 1, .01, 0.356092454}, {.25, .75, .1, .01, 0.029205755},
		{.625, .75, .5, .001, 0.034349155}, {0, .5, 1, .1, 0.223743177}, {.5, .6, 1, 1, 0.002229471},
	} {
		if got := divergence.DEpsNoisy(v.x, v.y, v.eps, v.r); math.Abs(got-v.want) > 6e-10 {
			t.Errorf("DEpsNoisy(%v, %v, %v, %v) = %.12f, want %.9f", v.x, v.y, v.eps, v.r, got, v.want)
		}
		if got := divergence.DEpsNoisy(1-v.x, 1-v.y, v.eps, v.r); math.Abs(got-v.want) > 6e-10 {
			t.Errorf("mirrored, DEpsNoisy(%v, %v, %v, %v) = %.12f, want %.9f", 1-v.x, 1-v.y, v.eps,
				v.r, got, v.want)
		}
	}
}

// golden minimises a convex function on [a,b].
func golden(a, b float64, f func(float64) float64) float64 {
	const g = 0.6180339887498949
	c, d := b-g*(b-a), a+g*(b-a)
	fc, fd := f(c), f(d)
	least := min(f(a), f(b))
	for range 120 {
		if fc < fd || math.IsNaN(fd) {
			b, d, fd = d, c, fc
			c = b - g*(b-a)
			fc = f(c)
		} else {
			a, c, fc = c, d, fd
			d = a + g*(b-a)
			fd = f(d)
		}
		least = min(least, fc, fd)
	}
	return least
}

// printedKL is the definition, without this package's care.
func printedKL(p, q float64) float64 {
	x := 0.0
	if p > 0 {
		x += p * math.Log(p/q)
	}
	if p < 1 {
		x += (1 - p) * math.Log((1-p)/(1-q))
	}
	return x
}

var (
	gridMeans = []float64{0, 1e-12, 1e-6, 1e-3, 0.05, 0.25, 0.3, 0.5, 0.5 + 1e-9, 0.51, 0.625, 0.75,
		0.95, 0.999, 1 - 1e-6, 1 - 1e-12, 1}
	gridEps = []float64{0, 1e-300, 1e-12, 1e-6, 1e-3, 2e-3 - 1e-12, 2e-3, 0.01, 0.1, 0.5, 1, 3,
		10, 40, 700, 1000, math.Inf(1)}
)

// bruteD is the infimum of the definition: over z between x and y it is convex.
func bruteD(x, y, eps float64) float64 {
	if math.IsInf(eps, 1) {
		return printedKL(x, y)
	}
	return golden(min(x, y), max(x, y), func(z float64) float64 {
		if z == y {
			return eps * math.Abs(z-x)
		}
		return eps*math.Abs(z-x) + printedKL(z, y)
	})
}

func TestDEpsAgainstBruteForce(t *testing.T) {
	for _, eps := range gridEps {
		for _, x := range gridMeans {
			for _, y := range gridMeans {
				got, want := divergence.DEps(x, y, eps), bruteD(x, y, eps)
				if x == y {
					want = 0
				}
				if got != want && !(math.Abs(got-want) <= 1e-9*max(1, want)) {
					t.Errorf("DEps(%v, %v, %v) = %v, brute force %v", x, y, eps, got, want)
				}
				if got > min(eps*math.Abs(x-y), divergence.KL(x, y))*(1+1e-12) {
					t.Errorf("DEps(%v, %v, %v) = %v is above ε|x−y| or kl", x, y, eps, got)
				}
			}
		}
	}
	for _, v := range [][3]float64{{math.NaN(), .5, 1}, {.5, math.NaN(), 1}, {.5, .5, math.NaN()},
		{-.1, .5, 1}, {.5, 1.1, 1}, {.5, .6, -1}} {
		if got := divergence.DEps(v[0], v[1], v[2]); !math.IsNaN(got) {
			t.Errorf("DEps(%v) = %v, want NaN", v, got)
		}
	}
}

// bisect is the largest y in [x,1] with f(y) ≤ c, for f growing from 0 at x.
func bisect(x, c float64, f func(float64) float64) float64 {
	if f(1) <= c {
		return 1
	}
	lo, hi := x, 1.0
	for range 200 {
		if mid := lo + (hi-lo)/2; f(mid) <= c {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func TestIndicesAgainstBisection(t *testing.T) {
	levels := []float64{0, 1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.5, 1, 3, 20, math.Inf(1)}
	for _, eps := range gridEps {
		for _, x := range gridMeans {
			for _, c := range levels {
				want := bisect(x, c, func(y float64) float64 { return divergence.DEps(x, y, eps) })
				if got := divergence.DEpsUpper(x, c, eps); !(math.Abs(got-want) <= 1e-9) {
					t.Errorf("DEpsUpper(%v, %v, %v) = %v, bisection %v", x, c, eps, got, want)
				}
				if eps < 1e-12 {
					continue
				}
				for _, r := range []float64{1e-6, 1e-3, 0.1, 1} {
					want := bisect(x, c, func(y float64) float64 { return divergence.DEpsNoisy(x, y, eps, r) })
					got := divergence.DEpsNoisyUpper(x, c, eps, r)
					if !(math.Abs(got-want) <= 1e-9) && !(math.Abs(divergence.DEpsNoisy(x, got, eps,
						r)-min(c, divergence.DEpsNoisy(x, 1, eps, r))) <= 1e-15) {
						t.Errorf("DEpsNoisyUpper(%v, %v, %v, %v) = %v, bisection %v", x, c, eps, r, got, want)
					}
				}
			}
		}
	}
}

// bruteJ is the supremum of the definition, which is concave, by golden section on
// either side of λ = 0.
func bruteJ(x, y, eps, r float64) float64 {
	sign := 1.0
	if x < y {
		sign = -1
	}
	top := -golden(0, min(eps, 200)*(1-1e-15), func(l float64) float64 {
		// log(1−y+ye^λ) without overflow, for either sign
		return -(sign*l*x - math.Log(1-y+y*math.Exp(sign*l)) + r*math.Log1p(-l*l/(eps*eps)))
	})
	return max(0, top)
}

func TestDEpsNoisyAgainstBruteForce(t *testing.T) {
	for _, eps := range []float64{1e-6, 1e-3, 0.01, 0.1, 0.5, 1, 3, 10, 40} {
		for _, x := range gridMeans {
			for _, y := range gridMeans {
				for _, r := range []float64{1e-9, 1e-4, 0.01, 0.3, 1, 10} {
					got := divergence.DEpsNoisy(x, y, eps, r)
					if want := bruteJ(x, y, eps, r); !(math.Abs(got-want) <= 1e-9) {
						t.Errorf("DEpsNoisy(%v, %v, %v, %v) = %v, brute force %v", x, y, eps, r, got, want)
					}
					if d := divergence.DEps(x, y, eps); got > d*(1+1e-12) {
						t.Errorf("DEpsNoisy(%v, %v, %v, %v) = %v is above d_ε = %v", x, y, eps, r, got, d)
					}
				}
				if got, want := divergence.DEpsNoisy(x, y, eps, 0), divergence.DEps(x, y, eps); got != want {
					t.Errorf("DEpsNoisy(%v, %v, %v, 0) = %v, d_ε is %v", x, y, eps, got, want)
				}
				if got, want := divergence.DEpsNoisy(x, y, math.Inf(1), 1), divergence.KL(x, y); got != want {
					t.Errorf("DEpsNoisy(%v, %v, ∞, 1) = %v, kl is %v", x, y, got, want)
				}
			}
		}
	}
}

func TestPrivateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mean := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom(gridMeans))
		x, y := mean.Draw(t, "x"), mean.Draw(t, "y")
		eps := math.Exp(rapid.Float64Range(-14, 5).Draw(t, "log eps"))
		r := math.Exp(rapid.Float64Range(-16, 2).Draw(t, "log r"))
		const tol = 1 + 1e-12
		d := divergence.DEps(x, y, eps)
		if !(0 <= d && d <= divergence.KL(x, y)*tol && d <= eps*math.Abs(x-y)*tol) {
			t.Fatalf("d_ε = %v, kl = %v, ε|x−y| = %v", d, divergence.KL(x, y), eps*math.Abs(x-y))
		}
		if more := divergence.DEps(x, y, 2*eps); more < d/tol-1e-300 {
			t.Fatalf("d_ε falls from %v to %v as ε doubles", d, more)
		}
		// Further away is more.
		z := y + (1-y)*rapid.Float64Range(0, 1).Draw(t, "further")
		if x > y {
			z = y * rapid.Float64Range(0, 1).Draw(t, "further")
		}
		if more := divergence.DEps(x, z, eps); more < d*(1-1e-11)-1e-300 {
			t.Fatalf("d_ε(%v,·) falls from %v at %v to %v at %v", x, d, y, more, z)
		}
		j := divergence.DEpsNoisy(x, y, eps, r)
		if !(0 <= j && j <= d*tol) {
			t.Fatalf("J = %v, d_ε = %v", j, d)
		}
		if less := divergence.DEpsNoisy(x, y, eps, 2*r); less > j*(1+1e-11)+1e-16 {
			t.Fatalf("J grows from %v to %v as r doubles", j, less)
		}
		if mirror := divergence.DEpsNoisy(1-x, 1-y, eps, r); x > 1e-3 && x < 0.999 && y > 1e-3 &&
			y < 0.999 && math.Abs(mirror-j) > 1e-11*j+1e-13 {
			t.Fatalf("J = %v, mirrored %v", j, mirror)
		}
		c := math.Exp(rapid.Float64Range(-25, 4).Draw(t, "log c"))
		up, noisy := divergence.DEpsUpper(x, c, eps), divergence.DEpsNoisyUpper(x, c, eps, r)
		if !(x <= up && up <= 1 && up <= noisy+1e-11 && noisy <= 1 && divergence.KLUpper(x, c) <= up+1e-11) {
			t.Fatalf("x = %v, index %v, noise-aware %v, KL-UCB's %v", x, up, noisy, divergence.KLUpper(x, c))
		}
		if more := divergence.DEpsUpper(x, 2*c, eps); more < up-1e-12 {
			t.Fatalf("index falls from %v to %v as the level doubles", up, more)
		}
	})
}

// The noise-aware bound is one: n rewards and m noises, against the exact tail by convolution at
// the lattice of the rewards and Monte Carlo-free bounds of the noise. m = 1 is in closed form: P(S
// + L ≥ nx) = Σ_s P(S = s) P(L ≥ nx − s).
func TestOneNoiseTail(t *testing.T) {
	for _, n := range []int{1, 5, 20, 100, 500} {
		for _, mu := range []float64{.1, .5, .9} {
			for _, eps := range []float64{.05, .5, 2} {
				for x := mu; x <= 1; x += (1 - mu) / 16 {
					p := 0.0
					for s := range n + 1 {
						l, _ := math.Lgamma(float64(n + 1))
						a, _ := math.Lgamma(float64(s + 1))
						b, _ := math.Lgamma(float64(n - s + 1))
						mass := math.Exp(l - a - b + float64(s)*math.Log(mu) + float64(n-s)*math.Log1p(-mu))
						v := float64(n)*x - float64(s)
						tail := math.Exp(-eps*v) / 2
						if v < 0 {
							tail = 1 - math.Exp(eps*v)/2
						}
						p += mass * tail
					}
					if bound := math.Exp(-float64(n) * divergence.DEps(x, mu, eps)); p > bound*(1+1e-12) {
						t.Errorf("n %d, μ %v, ε %v, x %v: P = %v is above exp(−n·d_ε) = %v", n, mu,
							eps, x, p, bound)
					}
					if j := math.Exp(-float64(n) * divergence.DEpsNoisy(x, mu, eps,
						1/float64(n))); p > j*(1+1e-12) {
						t.Errorf("n %d, μ %v, ε %v, x %v: P = %v is above exp(−n·J) = %v", n, mu, eps, x, p, j)
					}
				}
			}
		}
	}
}

func ExampleDEps() {
	// The price of privacy for telling 0.25 from 0.75: at ε = 10 there is none.
	for _, eps := range []float64{0.1, 1, 10, math.Inf(1)} {
		fmt.Printf("ε = %v: %.6f\n", eps, divergence.DEps(0.25, 0.75, eps))
	}
	// Output:
	// ε = 0.1: 0.049047
	// ε = 1: 0.392626
	// ε = 10: 0.549306
	// ε = +Inf: 0.549306
}

func BenchmarkDEps(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		sink += divergence.DEps(0.05+float64(i&255)/300, 0.93, 1)
	}
}

func BenchmarkDEpsUpper(b *testing.B) {
	for _, v := range []struct {
		c, eps float64
	}{{1e-4, 0.1}, {1e-2, 0.1}, {0.1, 0.1}, {1e-4, 1}, {1e-2, 1}, {0.1, 1}} {
		b.Run(fmt.Sprintf("c=%v,eps=%v", v.c, v.eps), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				sink += divergence.DEpsUpper(0.05+float64(i&255)/300, v.c, v.eps)
			}
		})
	}
}

func BenchmarkDEpsNoisyUpper(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		sink += divergence.DEpsNoisyUpper(0.05+float64(i&255)/300, 0.01, 1, 0.001)
	}
}

// Where ε is small, sums cancel: from 50 digits elsewhere, at numbers whose doubles are exact there
// too. Four of the rows are just beyond kl's reign, where the result is what two terms leave of
// each other, the third cumulant and the fourth included.
func TestDEpsOfSmallEpsilon(t *testing.T) {
	for _, v := range []struct{ x, y, eps, want float64 }{
		{0.25, 0.25034, 0.0017, 3.06893755941102807e-7}, {0.8125, 0.8128, 0.0018, 2.93414491413336923e-7},
		{0.5, 0.5005, 0.0019, 4.98750233333850664e-7}, {0.1, 0.10018, 0.0019, 1.79372518572057668e-7},
		{0.9, 0.9002, 0.0019, 2.17756646994975309e-7}, {0.8128, 0.8125, 0.0018, 2.93295668089196434e-7},
		{0.25, 0.75, 0.0015, 0.00074978900977057628}, {0.3, 0.45, 0.3, 0.034013178535606889},
	} {
		// The fifth cumulant is left out: below λ⁵/120.
		if got := divergence.DEps(v.x, v.y, v.eps); math.Abs(got-v.want) > math.Pow(min(v.eps,
			2e-3), 5)/120+4e-15*v.want {
			t.Errorf("DEps(%v, %v, %v) = %.17g, want %.17g", v.x, v.y, v.eps, got, v.want)
		}
	}
}

// The radius against golden section on its quasi-convex function, and Hoeffding's without noise.
func TestNoisyRadius(t *testing.T) {
	for _, c := range []float64{1e-9, 1e-4, 0.003, 0.1, 1, 40} {
		for _, eps := range []float64{1e-3, 0.05, 1, 8, 1e4} {
			for _, r := range []float64{1e-9, 1e-3, 0.1, 1, 20} {
				f := func(u float64) float64 { // λ = ε/(1+e^{−u})
					l := eps / (1 + math.Exp(-u))
					return (c + l*l/8 - r*math.Log1p(-l*l/(eps*eps))) / l
				}
				lo, hi := -60.0, 30.0
				for range 200 {
					a, b := lo+0.381966011250105*(hi-lo), lo+0.618033988749895*(hi-lo)
					if f(a) < f(b) {
						hi = b
					} else {
						lo = a
					}
				}
				want := f((lo + hi) / 2)
				if got := divergence.NoisyRadius(c, eps, r); !(math.Abs(got-want) <= 1e-9*want) {
					t.Errorf("c = %v, ε = %v, r = %v: %v, want %v", c, eps, r, got, want)
				}
			}
		}
		if got, want := divergence.NoisyRadius(c, math.Inf(1), 0.1), math.Sqrt(c/2); got != want {
			t.Errorf("c = %v without noise: %v, want %v", c, got, want)
		}
	}
	for _, v := range [][3]float64{{-1, 1, 1}, {1, 0, 1}, {1, 1, -1}, {math.NaN(), 1, 1},
		{math.Inf(1), 1, 1}, {1, math.NaN(), 1}, {1, 1, math.Inf(1)}} {
		if got := divergence.NoisyRadius(v[0], v[1], v[2]); got == got {
			t.Errorf("%v: %v, want NaN", v, got)
		}
	}
}
