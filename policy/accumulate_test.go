package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// dRef is d_ε by the closed form as printed, and J_r with r > 0 by golden section on its
// concave function.
func dRef(x, y, eps, r float64) float64 {
	if x > y {
		x, y = 1-x, 1-y
	}
	if x == y {
		return 0
	}
	if e := math.Exp(-eps); r == 0 || math.IsInf(eps, 1) {
		if d := 1 - y + y*e; y*e > x*d {
			return -eps*x - math.Log(d)
		}
		kl := 0.0
		if x > 0 {
			kl += x * math.Log(x/y)
		}
		if x < 1 {
			kl += (1 - x) * math.Log((1-x)/(1-y))
		}
		return kl
	}
	f := func(l float64) float64 { return -l*x - math.Log(1-y+y*math.Exp(-l)) + r*math.Log1p(-l*l/(eps*eps)) }
	return max(0, highest(f, eps))
}

// highest is the maximum of a concave function on [0,hi], by golden section.
func highest(f func(float64) float64, hi float64) float64 {
	lo := 0.0
	for range 50 {
		a, b := lo+0.381966011250105*(hi-lo), lo+0.618033988749895*(hi-lo)
		if f(a) < f(b) {
			lo = a
		} else {
			hi = b
		}
	}
	return f((lo + hi) / 2)
}

// normalRef is J_v for normal noise of variance v a sample, from its definition; kl for v = 0.
func normalRef(x, y, v float64) float64 {
	if x > y {
		x, y = 1-x, 1-y
	}
	if x == y || v == 0 {
		return dRef(x, y, math.Inf(1), 0)
	}
	return max(0, highest(func(l float64) float64 {
		return -l*x - math.Log(1-y+y*math.Exp(-l)) - v*l*l/2
	}, 1/v))
}

func dRefUpper(x, c, eps, r float64) float64 {
	if dRef(x, 1, eps, r) <= c {
		return 1
	}
	lo, hi := x, 1.0
	for range 45 {
		if mid := (lo + hi) / 2; dRef(x, mid, eps, r) <= c {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// A flaw makes the reference a broken twin.
type flaw int

const (
	faithful  flaw = iota
	forgets        // the last batch only
	halfNoise      // each release has half the noise
	// the noise of a release is replaced by the next one's, as if there were one a look
	redraws
	earlyClip // each batch's sum is clipped
)

// accumulating is DP-KLUCB, DP-IMED or, if sigma is given, zCDP-IMED written from its description,
// one reward at a time. Where indices are equal up to the arithmetic of either it follows got.
func accumulating(tab table, got []int, eps, sigma, alpha, caution float64, first int, imed, noisy bool,
	how flaw) []int {
	return accumulatingSince(make([]int, len(tab.reward)), tab, got, eps, sigma, alpha, caution, first, imed, noisy, how)
}

// accumulatingSince has arms that come before that batch, in their order, 0 for those that are there.
func accumulatingSince(since []int, tab table, got []int, eps, sigma, alpha, caution float64, first int, imed,
	noisy bool, how flaw) []int {
	arms := len(tab.reward)
	there := 0
	for _, s := range since {
		if s == 0 {
			there++
		}
	}
	var played []int
	n, m, sum, noise, last, mean := make([]int, arms), make([]int, arms), make([]float64, arms),
		make([]float64, arms), make([]int, arms), make([]float64, arms)
	finish := func(a int, batch float64, size int) {
		z := tab.noise[a][m[a]]
		m[a]++
		if how == halfNoise {
			z /= 2
		}
		if how == earlyClip {
			batch, z = min(float64(size), max(0, batch+z)), 0
		}
		if how == forgets {
			sum[a], noise[a], last[a] = 0, 0, 0
		}
		if how == redraws {
			noise[a] = 0
		}
		sum[a] += batch
		noise[a] += z
		last[a] += size
		mean[a] = min(1, max(0, (sum[a]+noise[a])/float64(last[a])))
	}
	for j := range first * there { // the first batches take turns
		if len(played) == len(got) {
			return played
		}
		played = append(played, j%there)
	}
	for a := range there {
		s := 0.0
		for j := range first {
			s += tab.reward[a][j]
		}
		n[a] = first
		finish(a, s, first)
	}
	for batch := 1; len(played) < len(got); batch++ {
		t := float64(len(played) + 1)
		top := slices.Max(mean)
		index := func(a int) float64 { // the lowest is played
			if since[a] > batch {
				return math.Inf(1)
			}
			if n[a] == 0 {
				return math.Inf(-1)
			}
			w, r := float64(n[a]), 0.0
			if noisy {
				r = float64(m[a]) / w
			}
			if sigma >= 0 {
				return w*normalRef(mean[a], top, float64(m[a])*sigma*sigma/w) + caution*math.Log(w)
			}
			if imed {
				return w*dRef(mean[a], top, eps, r) + caution*math.Log(w)
			}
			return -dRefUpper(mean[a], caution*math.Log(t)/w, eps, r)
		}
		best, least := 0, math.Inf(1)
		for a := range arms {
			if x := index(a); x < least || x == least && n[a] < n[best] {
				best, least = a, x
			}
		}
		if a := got[len(played)]; a != best {
			if x := index(a); x < least+1e-7 && x != least {
				best = a
			}
		}
		goal := max(n[best]+1, int(math.Ceil(alpha*float64(n[best])-1e-9)))
		if n[best] == 0 {
			goal = first
		}
		size, s := goal-n[best], 0.0
		for n[best] < goal {
			if len(played) == len(got) {
				return played
			}
			played = append(played, best)
			s += tab.reward[best][n[best]]
			n[best]++
		}
		finish(best, s, size)
	}
	return played
}

type cautious interface {
	Policy
	SetCaution(float64) error
}

func TestAccumulatingPoliciesAgainstReference(t *testing.T) {
	const horizon = 1500
	caught := map[flaw]int{}
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 21))
		arms := 2 + r.IntN(4)
		eps := math.Exp(4*r.Float64() - 2)
		alpha := 1.05 + 1.5*r.Float64()
		first, caution := 1+r.IntN(10), max(1, 0.5+1.5*r.Float64())
		scale := 1 / eps
		if seed%8 == 7 {
			eps, scale = math.Inf(1), 0
		}
		tab := newTable(r, arms, horizon, laplace(r, scale))
		for _, v := range []struct {
			name        string
			new         func(int, float64, float64, int) (cautious, error)
			imed, noisy bool
		}{
			{"dp-klucb", func(k int, e, a float64, f int) (cautious, error) {
				return NewDPKLUCB(k, e, a, f)
			}, false, false},
			{"dp-imed", func(k int, e, a float64, f int) (cautious, error) {
				return NewDPIMED(k, e, a, f)
			}, true, false},
			{"dp-klucb-j", func(k int, e, a float64, f int) (cautious, error) {
				return NewDPKLUCBJ(k, e, a, f)
			}, false, true},
			{"dp-imed-j", func(k int, e, a float64, f int) (cautious, error) {
				return NewDPIMEDJ(k, e, a, f)
			}, true, true},
		} {
			p, err := v.new(arms, eps, alpha, first)
			check(t, err)
			check(t, p.SetCaution(caution))
			got := playTable(t, p, tab, privacy.Tail{H: scale}, horizon)
			same(t, v.name, got, accumulating(tab, got, eps, -1, alpha, caution, first, v.imed,
				v.noisy, faithful))
			for _, how := range []flaw{forgets, halfNoise, redraws, earlyClip} {
				if !v.noisy && !slices.Equal(got, accumulating(tab, got, eps, -1, alpha, caution, first,
					v.imed, v.noisy, how)) {
					caught[how]++
				}
			}
		}
	}
	for _, how := range []flaw{forgets, halfNoise, redraws, earlyClip} {
		if caught[how] < 16 {
			t.Errorf("twin %d differs in %d of 48 runs only", how, caught[how])
		}
	}
}

func TestZCDPIMEDAgainstReference(t *testing.T) {
	const horizon = 1500
	caught := map[flaw]int{}
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 22))
		arms, sigma := 2+r.IntN(4), math.Exp(4*r.Float64()-2)
		alpha, first := 1.05+1.5*r.Float64(), 1+r.IntN(10)
		caution := max(1, 0.5+1.5*r.Float64())
		var budget privacy.Budget = privacy.ZCDP{Rho: 1 / (2 * sigma * sigma)}
		if seed%8 == 7 {
			budget, sigma = privacy.None{}, 0
		}
		p, err := NewZCDPIMED(arms, budget, alpha, first)
		check(t, err)
		check(t, p.SetCaution(caution))
		tab := newTable(r, arms, horizon, func() float64 { return sigma * r.NormFloat64() })
		got := playTable(t, p, tab, privacy.Tail{Sigma: sigma}, horizon)
		same(t, "zcdp-imed", got, accumulating(tab, got, 0, sigma, alpha, caution, first, true, true, faithful))
		for _, how := range []flaw{forgets, halfNoise, redraws, earlyClip} {
			if !slices.Equal(got, accumulating(tab, got, 0, sigma, alpha, caution, first, true, true, how)) {
				caught[how]++
			}
		}
	}
	for _, how := range []flaw{forgets, halfNoise, redraws, earlyClip} {
		if caught[how] < 8 {
			t.Errorf("twin %d differs in %d of 24 runs only", how, caught[how])
		}
	}
}

// A trace by hand, ε = 1, α = 2, first batch 1. With e⁻¹ = 0.3679:
//
//	sums 0.9, 0.2      means 0.9, 0.2; log 1 = 0 < d(0.2, 0.9)                          arm 0, 1 round
//	arm 0: +1.4        mean 2.3/2, clipped to 1; log 2 = 0.693 < d(0.2, 1) = 1·0.8      arm 0, 2 rounds
//	arm 0: +1.1        mean 3.4/4 = 0.85; log 4 = 1.386 > d(0.2, 0.85) = 0.571          arm 1, 1 round
//	arm 1: +1.5        mean 1.7/2 = 0.85: equal means; log 2 < log 4                     arm 1, 2 rounds
func TestDPIMEDByHand(t *testing.T) {
	p, err := NewDPIMED(2, 1, 2, 1)
	check(t, err)
	b := p.Next(privacy.Released{})
	if !slices.Equal(b.Plays, []Play{{0, 1, true}, {1, 1, true}}) {
		t.Fatalf("first batch %v", b.Plays)
	}
	l := privacy.NewLedger()
	r, err := l.ReleaseAll([]int{0, 1}, p.Mechanism(),
		&privacy.Values{N: []int{1, 1}, Sum: []float64{0.9, 0.2}})
	check(t, err)
	for i, v := range []struct {
		want Play
		sum  float64
	}{{Play{0, 1, true}, 1.4}, {Play{0, 2, true}, 1.1}, {Play{1, 1, true}, 1.5}, {Play{1, 2, true}, 0}} {
		b = p.Next(r)
		if len(b.Plays) != 1 || b.Plays[0] != v.want {
			t.Fatalf("batch %d: %v, want %v", i, b.Plays, v.want)
		}
		r, err = l.Release(i+2, p.Mechanism(), &privacy.Values{N: []int{v.want.Rounds}, Sum: []float64{v.sum}})
		check(t, err)
	}
}

// A trace by hand, σ = 1 (ρ = ½), α = 2, first batch 1. J_v(x,y) by the definition; u is 0.2's.
//
//	sums 0.9, 0.2      means 0.9, 0.2: index 0 of arm 0 is the lower                     arm 0, 1 round
//	arm 0: +1.4        mean 2.3/2, clipped to 1; J_1(0.2, 1) = 0.8²/2 = 0.32 < log 2     arm 1, 1 round
//	arm 1: +1.5        mean 1.7/2; 2 J_1(0.85, 1) = 0.15² < log 2: log 2 is the higher   arm 0, 2 rounds
//
// With γ = 1. For the last: arm 1's index is 0.0225 + log 2, arm 0's is log 2, and arm 0 goes.
func TestZCDPIMEDByHand(t *testing.T) {
	p, err := NewZCDPIMED(2, privacy.ZCDP{Rho: 0.5}, 2, 1)
	check(t, err)
	if p.Mechanism() != (privacy.Gaussian{Sigma: 1}) {
		t.Fatalf("mechanism %v", p.Mechanism())
	}
	p.Next(privacy.Released{})
	l := privacy.NewLedger()
	values := func(n []int, sum ...float64) *privacy.Values {
		return &privacy.Values{N: n, Sum: sum, Tail: privacy.Tail{Sigma: 1}}
	}
	r, err := l.ReleaseAll([]int{0, 1}, p.Mechanism(), values([]int{1, 1}, 0.9, 0.2))
	check(t, err)
	for i, v := range []struct {
		want Play
		sum  float64
	}{{Play{0, 1, true}, 1.4}, {Play{1, 1, true}, 1.5}, {Play{0, 2, true}, 0}} {
		b := p.Next(r)
		if len(b.Plays) != 1 || b.Plays[0] != v.want {
			t.Fatalf("batch %d: %v, want %v", i, b.Plays, v.want)
		}
		r, err = l.Release(i+2, p.Mechanism(), values([]int{v.want.Rounds}, v.sum))
		check(t, err)
	}
}

func TestZCDPIMEDBadInput(t *testing.T) {
	for _, v := range []struct {
		arms   int
		budget privacy.Budget
		alpha  float64
		first  int
		want   string
	}{
		{1, privacy.ZCDP{Rho: 1}, 2, 0, "arms is 1"}, {2, privacy.ZCDP{}, 2, 0, "rho is 0"},
		{2, privacy.ZCDP{Rho: math.NaN()}, 2, 0, "rho is NaN"}, {2, nil, 2, 0, "no budget"},
		{2, privacy.Pure{Epsilon: 1}, 2, 0, "never pure"}, {2, privacy.ZCDP{Rho: 1}, 1, 0, "alpha is 1"},
		{2, privacy.ZCDP{Rho: 1}, math.NaN(), 0, "alpha is NaN"},
		{2, privacy.ZCDP{Rho: 1}, 2, -1, "first is -1"},
	} {
		if _, err := NewZCDPIMED(v.arms, v.budget, v.alpha, v.first); err == nil ||
			!strings.HasPrefix(err.Error(), "zcdp-imed: ") || !strings.Contains(err.Error(), v.want) {
			t.Errorf("got %v, want %q", err, v.want)
		}
	}
	// ⌈14σ⌉ with σ = 10, and 1 without noise
	for _, v := range []struct {
		budget privacy.Budget
		want   int
	}{{privacy.ZCDP{Rho: 0.005}, 140}, {privacy.None{}, 1}} {
		p, err := NewZCDPIMED(2, v.budget, 2, 0)
		check(t, err)
		if p.first != v.want {
			t.Errorf("%v: first batch %d, want %d", v.budget, p.first, v.want)
		}
	}
}

func TestSchedule(t *testing.T) {
	for _, v := range []struct {
		ratio float64
		want  []int
	}{
		{2, []int{1, 2, 4, 8, 16}},
		{1.5, []int{1, 2, 3, 5, 8, 12, 18, 27}},
		{1.1, []int{10, 11, 13, 15, 17, 19}},
		{3, []int{1, 3, 9, 27}},
		{1.25, []int{8, 10, 13, 17}},
	} {
		n := v.want[0]
		for _, want := range v.want[1:] {
			if n = grown(n, v.ratio); n != want {
				t.Errorf("ratio %v: %d, want %d", v.ratio, n, want)
			}
		}
	}
	if grown(Forever/2, 2) != Forever || grown(Forever/5, 1e300) != Forever {
		t.Error("beyond all horizons is not for ever")
	}
	for _, v := range []struct {
		eps, c float64
		want   int
	}{{1, warm, 16}, {0.3, warm, 54}, {math.Inf(1), warm, 1}, {100, warm, 1}, {1, warmNoisy, 8},
		{0.01, warm, 1600}} {
		p, err := newAccumulation(2, v.eps, 2, 0, v.c)
		check(t, err)
		if p.first != v.want {
			t.Errorf("ε = %v, c = %v: first batch %d, want %d", v.eps, v.c, p.first, v.want)
		}
	}
}

// Episodes that grow by 1.5, all rewards 1 on arm 0 and 0 on arm 1: N = 1, 2, 3, 5, 8, 12.
func TestEpisodesGrowByTheRatio(t *testing.T) {
	p, err := NewAdaPUCB(2, math.Inf(1), 0.01)
	check(t, err)
	check(t, p.SetRatio(1.5))
	l := privacy.NewLedger()
	p.Next(privacy.Released{})
	r, err := l.ReleaseAll([]int{0, 1}, p.Mechanism(), &privacy.Values{N: []int{1, 1}, Sum: []float64{1, 0}})
	check(t, err)
	for i, want := range []int{1, 1, 2, 3, 4} {
		if b := p.Next(r); b.Plays[0] != (Play{0, want, true}) {
			t.Fatalf("episode %d: %v, want %d rounds of arm 0", i, b.Plays, want)
		}
		r, err = l.Release(i+2, p.Mechanism(), &privacy.Values{N: []int{want}, Sum: []float64{float64(want)}})
		check(t, err)
	}
	for _, x := range []float64{1, 0.5, 0, -1, math.NaN(), math.Inf(1)} {
		if err := p.SetRatio(x); err == nil || !strings.Contains(err.Error(), "ratio is") {
			t.Errorf("ratio %v: %v", x, err)
		}
	}
}

func TestAccumulationBadInput(t *testing.T) {
	for _, v := range []struct {
		arms       int
		eps, alpha float64
		first      int
		want       string
	}{
		{1, 1, 2, 0, "arms is 1"}, {2, 0, 2, 0, "epsilon is 0"},
		{2, math.NaN(), 2, 0, "epsilon is NaN"}, {2, -1, 2, 0, "epsilon is -1"},
		{2, 1, 1, 0, "alpha is 1"}, {2, 1, math.Inf(1), 0, "alpha is +Inf"},
		{2, 1, math.NaN(), 0, "alpha is NaN"}, {2, 1, 2, -1, "first is -1"},
	} {
		if _, err := NewDPKLUCB(v.arms, v.eps, v.alpha, v.first); err == nil ||
			!strings.Contains(err.Error(), v.want) {
			t.Errorf("got %v, want %q", err, v.want)
		}
		if _, err := NewDPIMEDJ(v.arms, v.eps, v.alpha, v.first); err == nil ||
			!strings.Contains(err.Error(), v.want) {
			t.Errorf("got %v, want %q", err, v.want)
		}
	}
}

// Noise makes the best arm's first release unlucky; when is it looked at again? Arm 0 of 10 rewards
// is at 0 and arm 1's mean stays at ½. With ε = 1 d_ε(0, ½) = log 2 − log(1 + e⁻¹) = 0.37989,
// evidence 3.80, so that arm 0 is played again when γ log(n/10) is above that: n = 640 for γ = 1,
// and 80 for γ = 2, of n = 10·2^i.
func TestCautionBringsAnArmBack(t *testing.T) {
	for _, v := range []struct {
		caution float64
		want    int
	}{{1, 640}, {2, 80}, {4, 40}} {
		p, err := NewDPIMED(2, 1, 2, 10)
		check(t, err)
		check(t, p.SetCaution(v.caution))
		p.Next(privacy.Released{})
		l := privacy.NewLedger()
		r, err := l.ReleaseAll([]int{0, 1}, p.Mechanism(),
			&privacy.Values{N: []int{10, 10}, Sum: []float64{0, 5}})
		check(t, err)
		n := 10
		for slot := 2; ; slot++ {
			b := p.Next(r)
			if b.Plays[0].Arm == 0 {
				break
			}
			k := b.Plays[0].Rounds
			r, err = l.Release(slot, p.Mechanism(),
				&privacy.Values{N: []int{k}, Sum: []float64{float64(k) / 2}})
			check(t, err)
			n += k
		}
		if n != v.want {
			t.Errorf("caution %v: arm 0 is played again after %d plays of arm 1, want %d", v.caution, n, v.want)
		}
	}
	p, err := NewDPKLUCB(2, 1, 2, 10)
	check(t, err)
	for _, x := range []float64{0.99, 0, -1, math.NaN(), math.Inf(1)} {
		if err := p.SetCaution(x); err == nil || !strings.Contains(err.Error(), "caution is") {
			t.Errorf("caution %v: %v", x, err)
		}
	}
}
