package noise

import (
	"errors"
	"math"
	"testing"
)

// massL2 is the distribution function of f under the l2-Laplace law of scale t on ℤ², summed up.
func massL2(t float64, far int, f func(x, y int) float64) func(float64) float64 {
	at, all := map[float64]float64{}, 0.0
	for x := -far; x <= far; x++ {
		for y := -far; y <= far; y++ {
			p := math.Exp(-math.Hypot(float64(x), float64(y)) / t)
			at[f(x, y)] += p
			all += p
		}
	}
	return func(c float64) (p float64) {
		for x, q := range at {
			if x <= c {
				p += q
			}
		}
		return p / all
	}
}

// In two dimensions draws have the law's exact masses: by a coordinate, by the sum of both and by the distance
// from 0. The proposal, if nothing of it were rejected, is caught by each, and so is a scale that is a sixth larger.
func TestL2LaplaceMass(t *testing.T) {
	const scale, far, n = 1.5, 40, 8000
	law, err := NewL2Laplace(2, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	near, err := NewL2Laplace(2, 7, 4)
	if err != nil {
		t.Fatal(err)
	}
	src := testStream("l2-laplace")
	draws := func(draw func(v []int64) error) (all [n][2]int64) {
		for i := range all {
			if err := draw(all[i][:]); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	fair := draws(func(v []int64) error { return law.Draw(src, v) })
	wide := draws(func(v []int64) error { return near.Draw(src, v) })
	kept := draws(func(v []int64) (err error) {
		for i := range v {
			if v[i], err = law.proposal.draw(src); err != nil {
				return err
			}
		}
		return nil
	})
	for name, f := range map[string]func(x, y int) float64{
		"coordinate": func(x, _ int) float64 { return float64(x) },
		"sum":        func(x, y int) float64 { return float64(x + y) },
		"distance":   func(x, y int) float64 { return float64(x*x + y*y) },
	} {
		cuts := integers(-12, 12)
		if name == "distance" {
			cuts = integers(0, 60)
		}
		of := func(all [n][2]int64) float64 {
			at := -1
			return chiSquareP(n, func() float64 {
				at++
				return f(int(all[at][0]), int(all[at][1]))
			}, cuts, massL2(scale, far, f))
		}
		checkP(t, name, of(fair))
		checkCaught(t, name+", scale a sixth larger", of(wide))
		checkCaught(t, name+", nothing rejected", of(kept))
	}
}

// The exponent's digits are those of ‖v‖₂/t − ‖v‖₁/s, and where v is 0 there are none.
func TestL2LaplaceExponent(t *testing.T) {
	for _, c := range []struct {
		v        []int64
		num, den uint64
	}{{[]int64{3, -4, 12}, 7, 3}, {[]int64{1, 1, 1}, 7, 3}, {[]int64{0, 0, -5}, 1, 10}, {[]int64{0, 0, 0}, 1, 1},
		{[]int64{1 << 40, 3, -(1 << 39)}, 1 << 40, 3}} {
		l, err := NewL2Laplace(3, c.num, c.den)
		if err != nil {
			t.Fatal(err)
		}
		var q, a float64
		for _, y := range c.v {
			q += float64(y) * float64(y)
			a += math.Abs(float64(y))
		}
		want := (math.Sqrt(q)/float64(c.num) - a/float64(l.m)) * float64(c.den)
		got, _ := l.exponent(c.v, 64).Float64()
		if got /= math.Exp2(64); math.Abs(got-want) > 1e-9*(1+want) || got < 0 {
			t.Errorf("%v at %d/%d: x is %v, want %v", c.v, c.num, c.den, got, want)
		}
	}
}

// A uniform number that begins as f does is compared by more of f's digits.
func TestL2LaplaceDigits(t *testing.T) {
	l, err := NewL2Laplace(3, 7, 3)
	if err != nil {
		t.Fatal(err)
	}
	v := []int64{1, 2, 3}
	d := l.exponent(v, 128)
	first, second := l.exponent(v, 64), d.Uint64()
	n := first.Uint64() >> 32
	for _, c := range []struct {
		next uint64
		want bool
	}{{second - 1, true}, {second + 1, false}} {
		src := &script{words: []uint64{first.Uint64() & (1<<32 - 1), c.next}}
		if got := l.belowRest(src, v, n, first); got != c.want || src.used != 2 {
			t.Errorf("then %x: %v after %d words, want %v after 2", c.next, got, src.used, c.want)
		}
	}
}

// Far from the integers a coordinate has variance (d+1)t², and the length is Gamma(d): mean d·t. The fast law, of
// floating-point numbers, has the same.
func TestL2LaplaceMoments(t *testing.T) {
	const d, scale, n = 5, 1000.0, 1000
	law, err := NewL2Laplace(d, scale, 1)
	if err != nil {
		t.Fatal(err)
	}
	src := testStream("l2-laplace moments")
	var v [d]int64
	var w [d]float64
	for name, draw := range map[string]func() (length, square float64){
		"exact": func() (float64, float64) {
			if err := law.Draw(src, v[:]); err != nil {
				t.Fatal(err)
			}
			q := 0.0
			for _, x := range v {
				q += float64(x) * float64(x)
			}
			return math.Sqrt(q) / scale, float64(v[2]) * float64(v[2]) / scale / scale
		},
		"fast": func() (float64, float64) {
			clear(w[:])
			src.AddL2Laplace(w[:], scale)
			q := 0.0
			for _, x := range w {
				q += x * x
			}
			return math.Sqrt(q) / scale, w[2] * w[2] / scale / scale
		},
	} {
		checkMean(t, name+" length", n, func() float64 { l, _ := draw(); return l }, d, math.Sqrt(d))
		// E v₂⁴ = E r⁴·3/(d(d+2)) = d(d+1)(d+2)(d+3)·3/(d(d+2)) = 144
		checkMean(t, name+" square", n, func() float64 { _, q := draw(); return q }, d+1, math.Sqrt(144-36))
	}
}

func TestL2LaplaceErrors(t *testing.T) {
	for _, c := range []struct {
		dim      int
		num, den uint64
	}{{0, 1, 1}, {33, 1, 1}, {2, 0, 1}, {2, 1, 0}, {2, 1 << 45, 1}, {2, 1<<57 + 1, 1<<50 + 3}} {
		if _, err := NewL2Laplace(c.dim, c.num, c.den); err == nil {
			t.Errorf("dim %d, scale %d/%d: no error", c.dim, c.num, c.den)
		}
	}
	if err := (L2Laplace{}).Draw(testStream("none"), make([]int64, 2)); err == nil || errors.Is(err, ErrOverflow) {
		t.Errorf("the zero law: %v", err)
	}
}
