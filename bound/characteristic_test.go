package bound

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/divergence"
)

var (
	spreadOut = []float64{0.75, 0.625, 0.5, 0.375, 0.25}
	figure57a = []float64{0.95, 0.9, 0.9, 0.9, 0.5}
	figure57b = []float64{0.75, 0.7, 0.7, 0.7, 0.7}
)

func close(t *testing.T, what string, got, want, rel float64) {
	t.Helper()
	if !(math.Abs(got-want) <= rel*math.Abs(want)) {
		t.Errorf("%s: got %.12g, want %.12g", what, got, want)
	}
}

// Values that were computed by other programs.
func TestBernoulliTimeValues(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		means          []float64
		epsilon, value float64
	}{
		{spreadOut, 0.01, 2466.667}, {spreadOut, 0.05, 493.333}, {spreadOut, 0.2, 152.739},
		{spreadOut, 0.5, 126.852}, {spreadOut, 1, 122.949},
		{spreadOut, 5, 122.843}, {spreadOut, inf, 122.843}, {figure57a, inf, 395.54}, {figure57b, inf, 1424.75},
		{[]float64{0, 1}, inf, 1 / math.Ln2}, // C(½,½) = log 2 by symmetry
		{[]float64{0, 1}, 0.1, 20},
	} {
		got, err := BernoulliTime(c.means, c.epsilon)
		if err != nil {
			t.Fatal(err)
		}
		close(t, fmt.Sprint(c), got.Time, c.value, 1e-5)
		if gap := got.Time - got.Low; !(gap >= 0 && gap <= 1e-6*got.Low) {
			t.Errorf("%v: gap %v", c, gap)
		}
	}
	// Arms in another order.
	got, err := BernoulliTime([]float64{0.25, 0.5, 0.75, 0.375, 0.625}, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "time", got.Time, 152.739, 1e-5)
	close(t, "share of the best", got.Allocation[2], 0.364744, 1e-5)
}

// Means at the edges of [0,1], where weights soon leave the range of numbers: against the game of
// equal rivals in one variable, computed with 25 digits.
func TestBernoulliTimeAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		means []float64
		value float64
	}{
		{[]float64{0.001, 0}, 2717.4225435601}, {[]float64{0, 0.5, 0}, 6.9521189935644},
		{[]float64{1, 0, 0}, 2.078086921235},
		{[]float64{0, 0, 1e-9}, 4311070405.4965}, {[]float64{0.0005, 0, 0, 0, 0}, 14287.474145457},
		{[]float64{0.999, 1, 0.999, 0.999}, 4318.0020499295},
	} {
		for _, epsilon := range []float64{1e10, math.Inf(1)} {
			got, err := BernoulliTime(c.means, epsilon)
			if err != nil {
				t.Fatal(err)
			}
			close(t, fmt.Sprint(c.means, epsilon), got.Time, c.value, 2e-9)
		}
	}
	// Anything else, however far out, is a time with its certificate or an error, and soon.
	edges := []float64{0, 1, 0.5, 0.3, 5e-324, 1e-300, 1e-17, 1e-9, 1 - 0x1p-53, 1 - 1e-9, 0.5 + 0x1p-53}
	for _, a := range edges {
		for _, b := range edges {
			for _, epsilon := range []float64{1e-300, 1e-10, 1, 50, 1e300, math.Inf(1)} {
				means := []float64{a, b, 0}
				got, err := BernoulliTime(means, epsilon)
				if err != nil {
					if !errors.Is(err, ErrTie) {
						t.Errorf("%v at %v: %v", means, epsilon, err)
					}
					continue
				}
				sum := got.Allocation[0] + got.Allocation[1] + got.Allocation[2]
				if !(got.Low > 0 && got.Low <= got.Time && got.Time-got.Low <= 1e-6*got.Low &&
					got.Time <= math.MaxFloat64 && math.Abs(sum-1) < 1e-9) {
					t.Errorf("%v at %v: %+v", means, epsilon, got)
				}
			}
			beta, err := bernoulliBetaTime([]float64{a, b, 0}, 0.3)
			if err == nil && !(beta.Low > 0 && beta.Time <= math.MaxFloat64) || err != nil &&
				!errors.Is(err, ErrTie) {
				t.Errorf("%v, β = 0.3: %+v, %v", []float64{a, b, 0}, beta, err)
			}
		}
	}
}

func TestTVTime(t *testing.T) {
	for _, c := range []struct {
		means []float64
		want  float64
	}{{spreadOut, 2*8 + 4 + 8./3 + 2}, {figure57b, 100}, {[]float64{0.2, 0.7}, 4}} {
		got, err := TVTime(c.means)
		if err != nil {
			t.Fatal(err)
		}
		close(t, fmt.Sprint(c.means), got, c.want, 1e-12)
		// As ε → 0 it is the whole of T*(ν;ε).
		small, err := BernoulliTime(c.means, 1e-4)
		if err != nil {
			t.Fatal(err)
		}
		close(t, "1e-4·T*(ν;1e-4)", 1e-4*small.Time, c.want, 1e-9)
	}
	b, err := RegimeBoundary(spreadOut)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "regime boundary", b, 24.6666666667/122.843149, 1e-6)
}

// level is the value of the game at an allocation, from its definition: nature moves the best arm
// and one other to a common mean.
func level(means, w []float64, best int, epsilon float64) float64 {
	v := math.Inf(1)
	for a, m := range means {
		if a == best {
			continue
		}
		kl := golden(func(u float64) float64 {
			return float64(w[best]*divergence.KL(means[best], u)) + float64(w[a]*divergence.KL(m, u))
		}, m, means[best])
		tv := epsilon * min(w[best], w[a]) * (means[best] - m)
		v = min(v, kl, tv)
	}
	return v
}

func golden(f func(float64) float64, lo, hi float64) float64 {
	const g = 0.6180339887498949
	for range 90 {
		x, y := hi-g*(hi-lo), lo+g*(hi-lo)
		if f(x) < f(y) {
			hi = y
		} else {
			lo = x
		}
	}
	return f((lo + hi) / 2)
}

func drawMeans(t *rapid.T) []float64 {
	means := rapid.SliceOfN(rapid.Float64Range(0.01, 0.9), 2, 7).Draw(t, "means")
	best := rapid.IntRange(0, len(means)-1).Draw(t, "best")
	top := 0.0
	for _, m := range means {
		top = max(top, m)
	}
	means[best] = top + rapid.Float64Range(0.005, 0.09).Draw(t, "gap")
	return means
}

func argmax(x []float64) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}

// The allocation attains the time, no other allocation beats the certificate, and
// privacy never helps.
func TestBernoulliTimeIsTheGame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		means := drawMeans(t)
		epsilon := math.Exp(rapid.Float64Range(-6, 3).Draw(t, "log epsilon"))
		best := argmax(means)
		c, err := BernoulliTime(means, epsilon)
		if err != nil {
			t.Fatal(err)
		}
		if v := level(means, c.Allocation, best, epsilon); !(math.Abs(v*c.Time-1) < 1e-7) {
			t.Fatalf("the allocation attains 1/%v, not 1/%v", 1/v, c.Time)
		}
		if !(c.Low <= c.Time && c.Time-c.Low <= 1e-6*c.Low) {
			t.Fatalf("gap from %v to %v", c.Low, c.Time)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range 30 {
			w, sum := make([]float64, len(means)), 0.0
			for i := range w {
				w[i] = c.Allocation[i] * math.Exp(0.5*r.NormFloat64())
				sum += w[i]
			}
			for i := range w {
				w[i] /= sum
			}
			if v := level(means, w, best, epsilon); v > (1+1e-8)/c.Low {
				t.Fatalf("allocation %v has the level 1/%v, above 1/%v", w, 1/v, c.Low)
			}
		}
		free, err := BernoulliTime(means, math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		tv, err := TVTime(means)
		if err != nil {
			t.Fatal(err)
		}
		if c.Time < (1-1e-8)*max(free.Time, tv/epsilon) {
			t.Fatalf("T* = %v, T*_KL = %v, T*_TV/ε = %v", c.Time, free.Time, tv/epsilon)
		}
		beta := rapid.Float64Range(0.05, 0.95).Draw(t, "beta")
		b, err := bernoulliBetaTime(means, beta)
		if err != nil {
			t.Fatal(err)
		}
		if v := level(means, b.Allocation, best, math.Inf(1)); b.Allocation[best] != beta ||
			!(math.Abs(v*b.Time-1) < 1e-7) {
			t.Fatalf("β = %v: the allocation attains 1/%v, not 1/%v", beta, 1/v, b.Time)
		}
		if b.Time < (1-1e-8)*free.Low {
			t.Fatalf("T*_β = %v below T* = %v", b.Time, free.Low)
		}
		half, err := bernoulliBetaTime(means, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		if half.Time > 2*free.Time*(1+1e-8) {
			t.Fatalf("T*_½ = %v above 2T* = %v", half.Time, 2*free.Time)
		}
	})
}

// Two Gaussian arms get half of the plays each, and the time is 8σ²/Δ². Equal rivals: T* =
// (1+√(K−1))²·2σ²/Δ².
func TestGaussianTime(t *testing.T) {
	two, err := GaussianTime([]float64{1, 3}, 0.7)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "two arms", two.Time, 8*0.49/4, 1e-8)
	close(t, "share", two.Allocation[0], 0.5, 1e-4)
	five, err := GaussianTime([]float64{0.7, 0.7, 0.75, 0.7, 0.7}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "five arms", five.Time, 9*0.5/0.0025, 1e-8)
	beta, err := GaussianBetaTime([]float64{0.7, 0.7, 0.75, 0.7, 0.7}, 0.5, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "β = ½", beta.Time, 0.5/0.0025*(2+8), 1e-12)
	// Where every gap is above 3ε it is linear in the gap; where none is, it is the time
	// without privacy.
	private, err := PrivateBetaTime([]float64{0.7, 0.7, 0.75, 0.7, 0.7}, 0.5, 0.5, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "private, strong", private.Time, 0.5/(0.05*0.03)*(2+8), 1e-12)
	weak, err := PrivateBetaTime([]float64{0.7, 0.7, 0.75, 0.7, 0.7}, 0.5, 0.5, 1)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "private, weak", weak.Time, beta.Time, 1e-12)
}

func TestUpperBounds(t *testing.T) {
	// Δ_max = 0.05, T*_{KL,½} = 2000: by hand.
	a, err := AdaPTTUpper(figure57b, 0.1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "AdaP-TT", a, 4*2000*(1+math.Sqrt(1+0.0025/(2*0.0625*0.01))), 1e-9)
	s, err := AdaPTTStarUpper(figure57b, 0.1, 0.5) // 0.05 < 0.3
	if err != nil {
		t.Fatal(err)
	}
	x, y := s/8000, 0.05/(0.25*0.1)
	close(t, "g₁ solves its equation", x*x, x+y*math.Sqrt(2*x)+y*y/4, 1e-9)
	s, err = AdaPTTStarUpper(figure57b, 0.01, 0.5) // 0.05 ≥ 0.03
	if err != nil {
		t.Fatal(err)
	}
	time := 0.5 / (0.05 * 0.03) * 10
	close(t, "AdaP-TT*", s, 48*time*(1+2/(math.Sqrt(1+1/(3*1e-4*time*0.25))-1)), 1e-9)
	if g := g1(0); math.Abs(g-1) > 1e-12 {
		t.Errorf("g₁(0) = %v", g)
	}
	if g := g1(12); g > 10 || g < 9.9 {
		t.Errorf("g₁(12) = %v, the source has at most 10", g)
	}
}

func TestCharacteristicErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		call func() error
		want string
	}{
		{func() error { _, err := BernoulliTime([]float64{0.5}, 1); return err }, "at least 2"},
		{func() error { _, err := BernoulliTime([]float64{0.5, 1.5}, 1); return err }, "mean 2 is 1.5"},
		{func() error { _, err := BernoulliTime([]float64{nan, 0.5}, 1); return err }, "mean 1 is NaN"},
		{func() error { _, err := BernoulliTime([]float64{0.4, 0.5}, 0); return err }, "epsilon is 0"},
		{func() error { _, err := BernoulliTime([]float64{0.4, 0.5}, nan); return err }, "epsilon is NaN"},
		{func() error { _, err := GaussianTime([]float64{1, inf}, 1); return err }, "mean 2 is +Inf"},
		{func() error { _, err := GaussianTime([]float64{1, 2}, 0); return err }, "sigma is 0"},
		{func() error { _, err := GaussianBetaTime([]float64{1, 2}, 1, 1); return err }, "beta is 1"},
		{func() error { _, err := PrivateBetaTime([]float64{1, 2}, 1, 0.5, -1); return err }, "epsilon is -1"},
		{func() error { _, err := AdaPTTUpper([]float64{0.1, 0.2}, 0, 0.5); return err }, "epsilon is 0"},
	} {
		if err := c.call(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	for _, f := range []func([]float64) error{
		func(m []float64) error { _, err := BernoulliTime(m, 1); return err },
		func(m []float64) error { _, err := TVTime(m); return err },
		func(m []float64) error { _, err := GaussianTime(m, 1); return err },
	} {
		if err := f([]float64{0.5, 0.2, 0.5}); !errors.Is(err, ErrTie) {
			t.Errorf("a tie: %v", err)
		}
	}
}

func ExampleBernoulliTime() {
	c, err := BernoulliTime([]float64{0.75, 0.625, 0.5, 0.375, 0.25}, 0.2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("T* = %.2f, at risk 0.01 at least %.0f samples\n", c.Time, c.Samples(0.01))
	// Output: T* = 152.74, at risk 0.01 at least 688 samples
}

func BenchmarkBernoulliTime(b *testing.B) {
	means := make([]float64, 100)
	for i := range means {
		means[i] = 0.1 + 0.8*float64(i)/99
	}
	for _, epsilon := range []float64{0.01, 0.1, math.Inf(1)} {
		b.Run(fmt.Sprintf("K=100/epsilon=%v", epsilon), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c, err := BernoulliTime(means, epsilon); err != nil || c.Time-c.Low > 1e-6*c.Low {
					b.Fatal(c.Time-c.Low, err)
				}
			}
		})
	}
}

// bernoulliBetaTime is T*_{KL,β} for Bernoulli arms.
func bernoulliBetaTime(means []float64, beta float64) (Characteristic, error) {
	best, err := checkMeans(means, 0, 1)
	if err != nil {
		return Characteristic{}, err
	}
	pairs := make([]rival, 0, len(means)-1)
	for a, mean := range means {
		if a != best {
			pairs = append(pairs, bernoulli{means[best], mean, math.Inf(1)})
		}
	}
	return solveBeta(pairs, best, beta)
}
