package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// noisyWidth is w(x; n, m) by golden section in λ = ε/(1+e^{−u}).
func noisyWidth(x, n, m, eps float64) float64 {
	if math.IsInf(eps, 1) {
		return math.Sqrt(x / (2 * n))
	}
	f := func(u float64) float64 {
		l := eps / (1 + math.Exp(-u))
		return (x + n*l*l/8 - m*math.Log1p(-l*l/(eps*eps))) / (l * n)
	}
	lo, hi := -40.0, 30.0
	for range 120 {
		a, b := lo+0.381966011250105*(hi-lo), lo+0.618033988749895*(hi-lo)
		if f(a) < f(b) {
			hi = b
		} else {
			lo = a
		}
	}
	return f((lo + hi) / 2)
}

// doubling is DPUCBDoubling from its description, one reward at a time.
func doubling(tab table, horizon int, eps, alpha float64, first int, how flaw) []int {
	arms := len(tab.reward)
	var played []int
	n, m, sum := make([]int, arms), make([]int, arms), make([]float64, arms)
	play := func(a, rounds int) {
		s := 0.0
		for range rounds {
			if len(played) == horizon {
				return
			}
			played = append(played, a)
			s += tab.reward[a][n[a]]
			n[a]++
		}
		z := tab.noise[a][m[a]]
		switch how {
		case halfNoise:
			z /= 2
		case forgets:
			sum[a] = 0
		}
		sum[a] += s + z
		m[a]++
	}
	for j := range first * arms {
		if len(played) == horizon {
			return played
		}
		played = append(played, j%arms)
	}
	for a := range arms {
		for j := range first {
			sum[a] += tab.reward[a][j]
		}
		n[a], m[a] = first, 1
		z := tab.noise[a][0]
		if how == halfNoise {
			z /= 2
		}
		sum[a] += z
	}
	for len(played) < horizon {
		best, top := 0, math.Inf(-1)
		for a := range arms {
			w := noisyWidth(alpha*math.Log(float64(len(played))), float64(n[a]), float64(m[a]), eps)
			if x := sum[a]/float64(n[a]) + w; x > top+1e-9 {
				best, top = a, x
			}
		}
		play(best, n[best])
	}
	return played
}

func TestDPUCBDoublingAgainstReference(t *testing.T) {
	const horizon = 3000
	caught := map[flaw]int{}
	for seed := range uint64(32) {
		r := rand.New(rand.NewPCG(seed, 31))
		arms, eps, alpha, first := 2+r.IntN(4), math.Exp(4*r.Float64()-2), 1.05+r.Float64(), 1+r.IntN(10)
		scale := 1 / eps
		if seed%8 == 7 {
			eps, scale = math.Inf(1), 0
		}
		tab := newTable(r, arms, horizon, laplace(r, scale))
		p, err := NewDPUCBDoubling(arms, eps, alpha, first)
		check(t, err)
		got := playTable(t, p, tab, privacy.Tail{H: scale}, horizon)
		same(t, "dp-ucb-anytime", got, doubling(tab, horizon, eps, alpha, first, faithful))
		for _, how := range []flaw{forgets, halfNoise} {
			if !slices.Equal(got, doubling(tab, horizon, eps, alpha, first, how)) {
				caught[how]++
			}
		}
	}
	for _, how := range []flaw{forgets, halfNoise} {
		if caught[how] < 20 {
			t.Errorf("twin %d differs in %d of 32 runs only", how, caught[how])
		}
	}
}

// A trace by hand, without noise: ε = ∞, α = 2, n_1 = 1, so that w = √(log t/n).
//
//	t = 2: means 1, 0; w = √0.693 = 0.83 both              arm 0, 1 round
//	t = 3: 0.5 + √(1.099/2) = 1.241; 0 + √1.099 = 1.048    arm 0, 2 rounds: sum 1 + 0
//	t = 5: 1/4 + √(1.609/4) = 0.884; √1.609 = 1.269        arm 1, 1 round
//	t = 6: 0.25 + √(1.792/4) = 0.919; 1/2 + √(1.792/2) = 1.447   arm 1, 2 rounds
func TestDPUCBDoublingByHand(t *testing.T) {
	p, err := NewDPUCBDoubling(2, math.Inf(1), 2, 0)
	check(t, err)
	if b := p.Next(privacy.Released{}); !slices.Equal(b.Plays, []Play{{0, 1, true}, {1, 1, true}}) {
		t.Fatalf("first batch %v", b.Plays)
	}
	l := privacy.NewLedger()
	r, err := l.ReleaseAll([]int{0, 1}, p.Mechanism(), &privacy.Values{N: []int{1, 1}, Sum: []float64{1, 0}})
	check(t, err)
	for i, v := range []struct {
		want Play
		sum  float64
	}{{Play{0, 1, true}, 0}, {Play{0, 2, true}, 0}, {Play{1, 1, true}, 1}, {Play{1, 2, true}, 0}} {
		b := p.Next(r)
		if len(b.Plays) != 1 || b.Plays[0] != v.want {
			t.Fatalf("batch %d: %v, want %v", i, b.Plays, v.want)
		}
		r, err = l.Release(i+2, p.Mechanism(), &privacy.Values{N: []int{v.want.Rounds}, Sum: []float64{v.sum}})
		check(t, err)
	}
}

// A mean is wrong by the width with probability at most e^{−x}. 40 000 means at x = 3 are too low at
// most 1992 + 5·43.5 times but with probability below 1e-6, and those with three times the noise
// more often than that.
func TestDPUCBDoublingWidthHolds(t *testing.T) {
	const n, m, eps, x, mean, draws = 64, 7, 0.5, 3.0, 0.5, 40_000
	r := rand.New(rand.NewPCG(1, 32))
	low := func(scale float64) (count int) {
		noise := laplace(r, scale)
		w := (&otherNoise{scale: 1 / eps}).width(x, n, m)
		for range draws {
			s := 0.0
			for range n {
				if r.Float64() < mean {
					s++
				}
			}
			for range m {
				s += noise()
			}
			if s/n <= mean-w {
				count++
			}
		}
		return count
	}
	most := draws*math.Exp(-x) + 5*math.Sqrt(draws*math.Exp(-x)*(1-math.Exp(-x)))
	if got := low(1 / eps); float64(got) > most {
		t.Errorf("%d of %d means are too low, at most %.0f may be", got, draws, most)
	}
	if got := low(3 / eps); float64(got) <= most {
		t.Errorf("three times the noise: %d of %d means are too low, which is not noticed", got, draws)
	}
}

// Other noise than one Laplace's has a width of its own, in which rewards and noises share e^{−x}:
// σ = 2 and one of (h, l) = (3, 0.5) in 50 rewards, at x = 4.
func TestDPUCBDoublingOtherNoise(t *testing.T) {
	o := otherNoise{sigma: 2, h: 3, l: 1.5, scale: 3, mixed: true}
	y := 4 + math.Log(3)
	want := math.Sqrt(y/100) + (2*math.Sqrt(2*y)+3*(y+0.5))/50
	if got := o.width(4, 50, 2); math.Abs(got-want) > 1e-14 {
		t.Errorf("%v, want %v", got, want)
	}
	p, err := NewDPUCBDoubling(2, 1, 1.5, 4)
	check(t, err)
	p.Next(privacy.Released{})
	r, err := privacy.NewLedger().ReleaseAll([]int{0, 1}, privacy.Gaussian{Sigma: 2},
		&privacy.Values{N: []int{4, 4}, Sum: []float64{1, 2}, Tail: privacy.Tail{Sigma: 2}})
	check(t, err)
	if p.Next(r); !p.other[0].mixed || p.other[0].sigma != 2 {
		t.Errorf("Gaussian noise is taken for Laplace noise: %+v", p.other[0])
	}
}

func TestDPUCBDoublingBadInput(t *testing.T) {
	for _, v := range []struct {
		arms       int
		eps, alpha float64
		first      int
		want       string
	}{
		{1, 1, 2, 0, "arms is 1"}, {2, 0, 2, 0, "epsilon is 0"}, {2, math.NaN(), 2, 0, "epsilon is NaN"},
		{2, 1, 1, 0, "alpha is 1"}, {2, 1, math.Inf(1), 0, "alpha is +Inf"},
		{2, 1, math.NaN(), 0, "alpha is NaN"}, {2, 1, 2, -1, "first is -1"},
	} {
		if _, err := NewDPUCBDoubling(v.arms, v.eps, v.alpha, v.first); err == nil ||
			!strings.Contains(err.Error(), v.want) {
			t.Errorf("got %v, want %q", err, v.want)
		}
	}
}
