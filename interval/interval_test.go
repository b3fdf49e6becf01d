package interval

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

var update = flag.Bool("update", false, "write what is compared with")

// reference is a mixture at one mean, of the formula as it stands in the proof.
type reference struct{ weight, lambda, rewards, noise []float64 }

func referenceOf(mean float64, n privacy.Mechanism) reference {
	var r reference
	top := 1.0
	cost := func(float64) float64 { return 0 }
	switch n := n.(type) {
	case privacy.Laplace:
		b := n.Scale + 0x1p-25
		top = min(1, 0.9/b)
		cost = func(l float64) float64 { return math.Log(1 / (1 - l*l*b*b)) }
	case privacy.Gaussian:
		s := n.Sigma + 0x1p-25
		top = min(1, 2/s)
		cost = func(l float64) float64 { return l * l * s * s / 2 }
	}
	for j := range 36 {
		for _, sign := range []float64{1, -1} {
			l := sign * top / math.Sqrt(math.Pow(2, float64(j)))
			r.weight = append(r.weight, 1./72)
			r.lambda = append(r.lambda, l)
			r.rewards = append(r.rewards, math.Log(1-mean+mean*math.Exp(l)))
			r.noise = append(r.noise, cost(l))
		}
	}
	return r
}

// value is the supermartingale after m releases of n rewards.
func (r reference) value(n, m int, sum float64) (v float64) {
	for i, l := range r.lambda {
		v += r.weight[i] * math.Exp(l*sum-float64(n)*r.rewards[i]-float64(m)*r.noise[i])
	}
	return v
}

// What an interval is made of is the formula of its proof, and its ends are where that is 1/risk.
func TestIntervalIsItsFormula(t *testing.T) {
	for _, s := range []Sums{{100, 50, 1, nil, 0}, {100, 3, 4, privacy.Laplace{Scale: 1}, 0},
		{1000, 900, 10, privacy.Laplace{Scale: 10}, 0}, {5000, 1200, 12, privacy.Gaussian{Sigma: 3}, 0},
		{1000, 1004, 10, privacy.Laplace{Scale: 1}, 0}} {
		m, err := s.mixture()
		if err != nil {
			t.Fatal(err)
		}
		at := func(mean float64) float64 { return referenceOf(mean, s.Noise).value(s.N, s.Releases, s.Sum) }
		for mean := 0.0; mean <= 1; mean += 1. / 64 {
			got, slope := m.value(mean)
			if want := math.Log(at(mean)); math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
				t.Errorf("%v at %v: %v, must be %v", s, mean, got, want)
			}
			if x := mean + 1e-6; x < 1 {
				if next, _ := m.value(x); math.Abs((next-got)/1e-6-slope) > 1e-2*max(1, math.Abs(slope)) {
					t.Errorf("%v at %v: slope %v, must be %v", s, mean, slope, (next-got)/1e-6)
				}
			}
		}
		lo, hi, err := s.Interval(0.05)
		if err != nil || !(lo < hi) {
			t.Fatal(lo, hi, err)
		}
		lo, hi = lo+rounding, hi-rounding
		const h = 1e-7
		for _, end := range []struct {
			inside, outside float64
			open            bool
		}{{lo + h, lo - h, lo < 2*rounding}, {hi - h, hi + h, hi > 1-2*rounding}} {
			if !(at(end.inside) < 20) || !end.open && !(at(end.outside) > 20) {
				t.Errorf("%v: [%v, %v]: %v inside, %v outside", s, lo, hi, at(end.inside), at(end.outside))
			}
		}
	}
}

// A difference is the largest and the smallest of all pairs of means at which the product is below
// 1/risk.
func TestDifferenceIsItsFormula(t *testing.T) {
	for _, c := range [][2]Sums{
		{{400, 200, 3, privacy.Laplace{Scale: 1}, 0}, {300, 60, 2, privacy.Laplace{Scale: 1}, 0}},
		{{50, 49, 2, privacy.Gaussian{Sigma: 2}, 0}, {900, 300, 9, privacy.Gaussian{Sigma: 2}, 0}},
	} {
		lo, hi, err := Difference(c[0], c[1], 0.1)
		if err != nil {
			t.Fatal(err)
		}
		const grid = 500
		var at [2][grid + 1]float64
		for i := range at[0] {
			for a := range at {
				at[a][i] = referenceOf(float64(i)/grid, c[a].Noise).value(c[a].N, c[a].Releases, c[a].Sum)
			}
		}
		least, most := 1.0, -1.0
		for i, x := range at[0] {
			for j, y := range at[1] {
				if x*y < 10 {
					least, most = min(least, float64(i-j)/grid), max(most, float64(i-j)/grid)
				}
			}
		}
		if !(lo <= least+1e-9) || !(hi >= most-1e-9) || least-lo > 3./grid || hi-most > 3./grid {
			t.Errorf("[%v, %v], on a grid [%v, %v]", lo, hi, least, most)
		}
		back, forth, err := Difference(c[1], c[0], 0.1)
		if err != nil || math.Abs(back+hi) > 1e-7 || math.Abs(forth+lo) > 1e-7 {
			t.Errorf("the other way round [%v, %v], %v", back, forth, err)
		}
	}
}

// The expectation after one release is at most 1 by exact enumeration, with the discrete noise that
// is drawn, here on a coarse grid, where it differs most from the continuous one. Without the
// noise's part it is above 1.
func TestOneReleaseOfTheMartingale(t *testing.T) {
	const n, steps = 4, 16 // of 1/steps
	for _, law := range []struct {
		noise privacy.Mechanism
		mass  func(x float64) float64
	}{
		{privacy.Laplace{Scale: 1.5}, func(x float64) float64 { return math.Exp(-math.Abs(x) / 1.5) }},
		{privacy.Gaussian{Sigma: 1.5}, func(x float64) float64 { return math.Exp(-x * x / 4.5) }},
	} {
		total := 0.0
		const far = 200 * steps
		for z := -far; z <= far; z++ {
			total += law.mass(float64(z) / steps)
		}
		for _, mean := range []float64{0.02, 0.3, 0.5, 0.9} {
			with, without := referenceOf(mean, law.noise), referenceOf(mean, law.noise)
			clear(without.noise)
			var e, twin float64
			for x, p := 0, math.Pow(1-mean, n); x <= n; x++ {
				for z := -far; z <= far; z++ {
					at := float64(z) / steps
					q := p * law.mass(at) / total
					e += q * with.value(n, 1, float64(x)+at)
					twin += q * without.value(n, 1, float64(x)+at)
				}
				p *= mean / (1 - mean) * float64(n-x) / float64(x+1)
			}
			if !(e <= 1) || e < 0.9 {
				t.Errorf("%v, mean %v: expectation %v, must be at most 1", law.noise, mean, e)
			}
			if twin <= 1 {
				t.Errorf("%v, mean %v: without the noise's part the expectation is %v", law.noise, mean, twin)
			}
		}
	}
}

// Whoever plays greedily on the released means, in batches that are chosen by them, and looks after
// each release, finds a mean outside its interval in 5 % of all runs at most, and so with a
// difference. Intervals that leave the noise's part out, or that hold at one time alone, are found
// out.
//
// Runs: 100 000 of each noise. At a probability of 0.05 more than 5340 of them have probability
// below 1e-6 (binomial).
func TestIntervalsCoverAtAllTimes(t *testing.T) {
	runs := testkit.Size(20_000, 100_000)
	most := testkit.Size(1155, 5340) // with a false alarm of 1e-6, both
	means := []float64{0.5, 0.3}
	for _, law := range []struct {
		noise    privacy.Mechanism
		draw     func(*noise.Fast) float64
		variance float64
	}{
		{privacy.Laplace{Scale: 5}, func(s *noise.Fast) float64 { return s.Laplace(5) }, 50},
		{privacy.Gaussian{Sigma: 5}, func(s *noise.Fast) float64 { return 5 * s.Normal() }, 25},
	} {
		src := noise.NewFast(7, 11)
		var with, without [2]reference
		for a, mean := range means {
			with[a], without[a] = referenceOf(mean, law.noise), referenceOf(mean, law.noise)
			clear(without[a].noise)
		}
		outside := map[string]int{}
		for range runs {
			var n, m [2]int
			var sum, value [2]float64
			found := map[string]bool{}
			arm := 0
			for range 16 {
				size := 4 + n[arm]/4 // growing, but small again where the mean looks low
				if sum[arm] < 0.25*float64(n[arm]) {
					size = 4
				}
				sum[arm] += float64(src.Binomial(size, means[arm])) + law.draw(&src)
				n[arm] += size
				m[arm]++
				value[arm] = with[arm].value(n[arm], m[arm], sum[arm])
				both := max(value[0], 1e-300) * max(value[1], 1e-300)
				if m[0] > 0 && m[1] > 0 && both > 20 {
					found["difference"] = true
				}
				if arm == 0 {
					found["interval"] = found["interval"] || value[0] > 20
					found["no noise"] = found["no noise"] || without[0].value(n[0], m[0], sum[0]) > 20
					sd := math.Sqrt(float64(n[0])*means[0]*(1-means[0]) + float64(m[0])*law.variance)
					found["fixed time"] = found["fixed time"] ||
						math.Abs(sum[0]-float64(n[0])*means[0]) > 1.96*sd
				}
				if arm = 0; n[1] == 0 || n[0] > 0 && sum[1]/float64(n[1]) > sum[0]/float64(n[0]) {
					arm = 1
				}
			}
			for name, is := range found {
				if is {
					outside[name]++
				}
			}
		}
		t.Logf("%v: %v of %d", law.noise, outside, runs)
		for _, name := range []string{"interval", "difference"} {
			if outside[name] > most || outside[name] == 0 {
				t.Errorf("%v: %s: %d of %d runs outside", law.noise, name, outside[name], runs)
			}
		}
		for _, twin := range []string{"no noise", "fixed time"} {
			if outside[twin] <= most {
				t.Errorf("%v: %s: only %d of %d runs outside: not found out", law.noise, twin,
					outside[twin], runs)
			}
		}
	}
}

// Where the mean follows what was released, the average so far is ever outside in 5 % of runs at most;
// of the mean at the time nothing is said. At a probability of 0.05 more than 153 of 2000 runs have
// probability below 1e-6 (binomial).
func TestIntervalOfAnAverage(t *testing.T) {
	const runs, most, size, scale = 2000, 153, 60, 3
	src := noise.NewFast(2, 4)
	average, last := 0, 0
	for range runs {
		s := Sums{Noise: privacy.Laplace{Scale: scale}}
		total, mean, far, lost := 0.0, 0.5, false, false
		for range 30 {
			s.N, s.Releases = s.N+size, s.Releases+1
			s.Sum += float64(src.Binomial(size, mean)) + src.Laplace(scale)
			total += mean * size
			so, err := s.Against(total / float64(s.N))
			now, _ := s.Against(mean)
			if err != nil {
				t.Fatal(err)
			}
			far, lost = far || so > math.Log(20), lost || now > math.Log(20)
			mean = 0.05
			if s.Sum < 0.3*float64(s.N) {
				mean = 0.8
			}
		}
		if far {
			average++
		}
		if lost {
			last++
		}
	}
	if average > most || last <= most {
		t.Errorf("the average is outside in %d of %d runs, the mean in %d", average, runs, last)
	}
}

func TestIntervalErrors(t *testing.T) {
	good := Sums{10, 5, 1, privacy.Laplace{Scale: 1}, 0}
	for _, s := range []Sums{{-1, 0, 0, nil, 0}, {10, math.NaN(), 1, nil, 0}, {10, math.Inf(1), 1, nil, 0},
		{1, 1, 2, nil, 0}, {N: 1, Noises: -1},
		{10, 1, -1, nil, 0}, {10, 1, 1, privacy.Laplace{Scale: -1}, 0},
		{10, 1, 1, privacy.Gaussian{Sigma: math.NaN()}, 0},
		{10, 1, 1, privacy.Tree{Horizon: 4, Scale: 1}, 0}} {
		if lo, hi, err := s.Interval(0.05); err == nil || lo != 0 || hi != 1 {
			t.Errorf("%v: [%v, %v], %v", s, lo, hi, err)
		}
		if lo, hi, err := Difference(good, s, 0.05); err == nil || lo != -1 || hi != 1 {
			t.Errorf("%v: [%v, %v], %v", s, lo, hi, err)
		}
	}
	for _, risk := range []float64{0, 1, -1, math.NaN(), math.Inf(1)} {
		if _, _, err := good.Interval(risk); err == nil || !strings.Contains(err.Error(), "risk") {
			t.Errorf("%v: %v", risk, err)
		}
	}
	// of nothing, of much, and of what no mean explains
	for _, s := range []Sums{{}, {math.MaxInt, math.MaxInt / 2, 60, privacy.Laplace{Scale: 1}, 0},
		{100, 1e6, 1, nil, 0}, {100, -1e6, 1, privacy.Laplace{Scale: 1}, 0}} {
		lo, hi, err := s.Interval(0.05)
		if err != nil || !(0 <= lo && lo <= hi && hi <= 1) || s.N == 0 && hi-lo != 1 {
			t.Errorf("%v: [%v, %v], %v", s, lo, hi, err)
		}
		if lo, hi, err := Difference(s, good, 0.05); err != nil || !(-1 <= lo && lo <= hi && hi <= 1) {
			t.Errorf("%v: difference [%v, %v], %v", s, lo, hi, err)
		}
	}
}

// besides is what a union of two bounds leaves: one on the noise of all releases, at all times, and
// one on the rewards, each at half of the risk, by the same mixtures.
func besides(s Sums, risk float64) (lo, hi float64) {
	r := referenceOf(0.5, s.Noise)
	clear(r.rewards)
	z, far := 0.0, 1e9
	for far-z > 1e-6 {
		if mid := (z + far) / 2; r.value(0, s.Releases, mid) < 2/risk {
			z = mid
		} else {
			far = mid
		}
	}
	low, high := s, s
	low.Sum, low.Noise, high.Sum, high.Noise = s.Sum-z, nil, s.Sum+z, nil
	lo, _, _ = low.Interval(risk / 2)
	_, hi, _ = high.Interval(risk / 2)
	return lo, hi
}

const inferencePage = "../docs/inference.md"

// The table of the page has the widths. With -update it is written anew:
//
//	go test ./interval -run InferencePage -update
func TestInferencePage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| ε | rewards | mean | without privacy | private | two bounds | " +
		"difference of two such arms |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, epsilon := range []float64{1, 0.1} {
		for _, n := range []int{100, 1000, 10_000, 100_000, 1_000_000} {
			for _, mean := range []float64{0.5, 0.1} {
				s := Sums{N: n, Sum: mean * float64(n), Releases: int(math.Log2(float64(n))),
					Noise: privacy.Laplace{Scale: 1 / epsilon}}
				bare := s
				bare.Noise = nil
				a, b, _ := bare.Interval(0.05)
				lo, hi, err := s.Interval(0.05)
				c, d := besides(s, 0.05)
				e, f, _ := Difference(s, s, 0.05)
				if err != nil || hi-lo > d-c+1e-9 {
					t.Errorf("%v: %v wide, two bounds %v, %v", s, hi-lo, d-c, err)
				}
				fmt.Fprintf(&table, "| %v | %d | %v | %.4f | %.4f | %.4f | %.4f |\n", epsilon, n,
					mean, b-a, hi-lo,
					d-c, f-e)
			}
		}
	}
	page, err := os.ReadFile(inferencePage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- widths -->\n", "<!-- end of widths -->\n"
	head, rest, _ := bytes.Cut(page, []byte(begin))
	_, tail, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		t.Fatal("the page has no place for the table")
	}
	want := string(head) + begin + table.String() + end + string(tail)
	if *update {
		if err := os.WriteFile(inferencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(page) {
		t.Errorf("docs/inference.md is not what the intervals are: go test ./interval -run InferencePage -update")
	}
}

// Noises in a release are those of as many releases.
func TestIntervalOfManyNoises(t *testing.T) {
	many := Sums{N: 100, Sum: 40, Releases: 1, Noise: privacy.Laplace{Scale: 1}, Noises: 9}
	nine := Sums{N: 100, Sum: 40, Releases: 9, Noise: privacy.Laplace{Scale: 1}}
	lo, hi, err := many.Interval(0.05)
	if l, h, e := nine.Interval(0.05); lo != l || hi != h || err != nil || e != nil {
		t.Errorf("[%v, %v] of nine noises, [%v, %v] of nine releases: %v, %v", lo, hi, l, h, err, e)
	}
	many.Noises = 0
	if l, h, _ := many.Interval(0.05); l <= lo || h >= hi {
		t.Errorf("[%v, %v] of one noise, [%v, %v] of nine", l, h, lo, hi)
	}
}
