package linear_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// A gambler has coins.
type gambler struct{ *rand.Rand }

func (c gambler) Normal() float64               { return c.NormFloat64() }
func (c gambler) Beta(float64, float64) float64 { panic("there is no Beta") }

// crossed are the rows of a map of two words, a intercept, both words and their cross.
func crossed(a, b int) (dim int, flat []float64) {
	dim = 1 + a + b + a*b
	for i := range a {
		for j := range b {
			x := make([]float64, dim)
			for _, k := range []int{0, 1 + i, 1 + a + j, 1 + a + b + i*b + j} {
				x[k] = 0.5
			}
			flat = append(flat, x...)
		}
	}
	return dim, flat
}

func histogramTS(t *testing.T, dim int, flat []float64, b privacy.Budget, o linear.HistogramOptions,
	seed uint64) *linear.HistogramTS {
	t.Helper()
	p, err := linear.NewHistogramTS(dim, flat, b, gambler{rand.New(rand.NewPCG(seed, 1))}, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shown releases a histogram to the policy.
func shown(t *testing.T, p *linear.HistogramTS, n int, bins []float64) {
	t.Helper()
	r, err := privacy.NewLedger().ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: n, Value: bins})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		p.Play(nil)
	}
	p.Learn(r)
}

// The mean of the posterior is that of a regression with dense matrices on every segment and row apart, with the
// prior of the four that makes what was seen likeliest by the density of the observations themselves.
func TestHistogramTSReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	dim, flat := crossed(2, 3)
	const v = 4.0 // of a bin, at ρ = 1/4
	p := histogramTS(t, dim, flat, privacy.ZCDP{Rho: 0.25}, linear.HistogramOptions{First: 40, Ratio: 2, Draws: 4}, 1)
	var all [][]float64
	ends, total := []int{40, 80, 160}, 0
	for _, end := range ends {
		bins := make([]float64, 12)
		for i := range bins {
			bins[i] = float64(end-total)/6*[2]float64{0.8, 0.2}[i%2]*(1+rng.Float64()) + math.Sqrt(v)*rng.NormFloat64()
		}
		bins[4], bins[5] = -3, 1 // of which nothing is learnt
		if p.Due() >= 0 {
			t.Fatalf("a segment ends after %d", total)
		}
		shown(t, p, end-total, bins)
		all, total = append(all, bins), end
	}
	won := 0.0
	for _, bins := range all {
		for i := 1; i < 12; i += 2 {
			won += bins[i]
		}
	}
	share := won / float64(total)
	var x [][]float64
	var y, variance []float64
	for _, bins := range all {
		for c := range 6 {
			both := bins[2*c] + bins[2*c+1]
			e := bins[2*c+1] - share*both
			if n := both - e*(1-2*share)/((1-share)*(1-share)+share*share); n > 0 {
				// e/n is ⟨θ, x⟩ and noise
				x = append(x, flat[c*dim:][:dim])
				y = append(y, e/n)
				variance = append(variance, (n*share*(1-share)+v*((1-share)*(1-share)+share*share))/(n*n))
			}
		}
	}
	design := mat.NewDense(len(y), dim, nil)
	for i := range y {
		for j := range dim {
			design.Set(i, j, 2*x[i][j]) // the largest number is 1
		}
	}
	var want []float64
	best := math.Inf(-1)
	for _, k := range []float64{.1, .2, .4, .8} {
		tau := k * min(share, 1-share)
		// y ~ N(0, τ²XXᵀ + diag(variance))
		var cov mat.SymDense
		cov.SymOuterK(tau*tau, design)
		for i, q := range variance {
			cov.SetSym(i, i, cov.At(i, i)+q)
		}
		var chol mat.Cholesky
		if !chol.Factorize(&cov) {
			t.Fatal("no factor")
		}
		var s mat.VecDense
		if err := chol.SolveVecTo(&s, mat.NewVecDense(len(y), y)); err != nil {
			t.Fatal(err)
		}
		if e := -mat.Dot(&s, mat.NewVecDense(len(y), y))/2 - chol.LogDet()/2; e > best {
			best = e
			var mu mat.VecDense
			mu.MulVec(design.T(), &s)
			mu.ScaleVec(tau*tau, &mu)
			want = slices.Clone(mu.RawVector().Data)
		}
	}
	got, radius := p.Estimate()
	for j := range want {
		want[j] *= 2 * 2 // of [−1,1], over x and not 2x
	}
	want[0] += (2*share - 1) / 0.5
	for j := range want {
		if math.Abs(got[j]-want[j]) > 1e-9 {
			t.Errorf("θ[%d] is %v, want %v", j, got[j], want[j])
		}
	}
	if radius != 0 {
		t.Errorf("the radius is %v", radius)
	}
}

// Segments end by count: 10, half as many again, and so on, whatever is played; late releases change nothing.
func TestHistogramTSSegments(t *testing.T) {
	dim, flat := crossed(1, 2)
	o := linear.HistogramOptions{First: 10, Ratio: 1.5, Draws: 1}
	p, again := histogramTS(t, dim, flat, privacy.ZCDP{Rho: 1}, o, 1), histogramTS(t, dim, flat, privacy.ZCDP{Rho: 1}, o, 1)
	var ends []int
	for n := 1; n <= 200; n++ {
		p.Play(flat[n%2*dim:][:dim])
		if p.Due() < 0 {
			continue
		}
		if p.Cut() != nil {
			t.Fatal("what was played is told")
		}
		last := 0
		if len(ends) > 0 {
			last = ends[len(ends)-1]
		}
		ends = append(ends, n)
		if err := again.Skip(n-last, nil); err != nil || again.Due() < 0 {
			t.Fatal(n, err)
		}
		again.Cut()
	}
	if want := []int{10, 15, 23, 35, 53, 80, 120, 180}; !slices.Equal(ends, want) {
		t.Errorf("segments end at %v, want %v", ends, want)
	}
	for _, c := range []struct {
		n    int
		gram []int64
	}{{0, nil}, {91, nil}, {10, []int64{1}}} {
		if err := again.Skip(c.n, c.gram); err == nil {
			t.Errorf("%d rounds and %v are skipped", c.n, c.gram)
		}
	}
	if err := again.Skip(20, nil); err != nil || again.Due() >= 0 { // of a horizon
		t.Error(err)
	}
	if err := again.Skip(1, nil); err == nil {
		t.Error("a segment is skipped in one that is open")
	}
}

// Actions are played with the probabilities that Draw says, and these with Thompson's: 1e5 rounds at five standard
// deviations and more, each with probability below 1e-6 by chance.
func TestHistogramTSDraws(t *testing.T) {
	dim, flat := crossed(2, 3)
	const draws = 4096
	o := linear.HistogramOptions{First: 600, Ratio: 2, Alpha: 0.5, Draws: draws}
	p := histogramTS(t, dim, flat, privacy.Pure{Epsilon: 1}, o, 9)
	shown(t, p, 600, []float64{90, 8, 92, 10, 96, 11, 80, 20, 85, 12, 88, 9})
	actions := flat[:3*dim]
	counts := make([]int, 3)
	p.Draw(actions, counts)
	played := make([]int, 3)
	const rounds = 100_000
	for range rounds {
		played[p.Sample(actions)]++
	}
	other := histogramTS(t, dim, flat, privacy.Pure{Epsilon: 1}, o, 10)
	shown(t, other, 600, []float64{90, 8, 92, 10, 96, 11, 80, 20, 85, 12, 88, 9})
	again := make([]int, 3)
	other.Draw(actions, again)
	for i, n := range counts {
		q := float64(n) / draws
		if n < 200 || math.Abs(float64(played[i])-q*rounds) > 5.5*math.Sqrt(q*(1-q)*rounds) {
			t.Errorf("action %d is played %d times, and is best in %d draws", i, played[i], n)
		}
		if math.Abs(float64(n-again[i])) > 5.5*math.Sqrt(2*q*(1-q)*draws) {
			t.Errorf("action %d is best in %d draws, and in %d of other coins", i, n, again[i])
		}
	}
	if counts[0]+counts[1]+counts[2] != draws {
		t.Errorf("draws are %v", counts)
	}
	// What is excluded has no share, and a vector that is no row is never played.
	p.Draw(append(slices.Clone(flat[:dim]), make([]float64, dim)...), counts[:2])
	if !slices.Equal(counts[:2], []int{draws, 0}) {
		t.Errorf("a vector that is no row: %v", counts[:2])
	}
	if n := testing.AllocsPerRun(100, func() { p.Best(actions); p.Sample(actions); p.Draw(actions, counts) }); n != 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

// Without noise the best row of each context is found, and with alpha = 0 played.
func TestHistogramTSFinds(t *testing.T) {
	dim, flat := crossed(2, 3)
	p := histogramTS(t, dim, flat, privacy.None{}, linear.HistogramOptions{First: 6000, Ratio: 1.5, Draws: 1}, 1)
	shown(t, p, 6000, []float64{900, 100, 950, 50, 980, 20, 980, 20, 900, 100, 940, 60})
	if a, b := p.Best(flat[:3*dim]), p.Best(flat[3*dim:]); a != 0 || b != 1 {
		t.Errorf("%d and %d are played", a, b)
	}
	r, err := privacy.NewLedger().ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: 1, Value: []float64{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := p.Estimate()
	p.Learn(r)
	if after, _ := p.Estimate(); !slices.Equal(before, after) {
		t.Error("a release of another size is learnt from")
	}
}

func TestHistogramTSErrors(t *testing.T) {
	good := linear.HistogramOptions{First: 1, Ratio: 1.5, Alpha: 0.5, Draws: 1}
	for mention, change := range map[string]func(*linear.HistogramOptions){
		"first is 0":    func(o *linear.HistogramOptions) { o.First = 0 },
		"ratio is 1":    func(o *linear.HistogramOptions) { o.Ratio = 1 },
		"ratio is NaN":  func(o *linear.HistogramOptions) { o.Ratio = math.NaN() },
		"alpha is -1":   func(o *linear.HistogramOptions) { o.Alpha = -1 },
		"alpha is 11":   func(o *linear.HistogramOptions) { o.Alpha = 11 },
		"draws is 0":    func(o *linear.HistogramOptions) { o.Draws = 0 },
		"draws is 4097": func(o *linear.HistogramOptions) { o.Draws = 4097 },
	} {
		o := good
		change(&o)
		_, err := linear.NewHistogramTS(1, []float64{1}, privacy.None{}, gambler{}, o)
		if err == nil || !strings.HasPrefix(err.Error(), "histogram-ts: ") || !strings.Contains(err.Error(), mention) {
			t.Errorf("%s: %v", mention, err)
		}
	}
	for i, err := range []error{
		fail(linear.NewHistogramTS(0, []float64{1}, privacy.None{}, gambler{}, good)),
		fail(linear.NewHistogramTS(2, []float64{1}, privacy.None{}, gambler{}, good)),
		fail(linear.NewHistogramTS(1, nil, privacy.None{}, gambler{}, good)),
		fail(linear.NewHistogramTS(1, []float64{1, 1}, privacy.None{}, gambler{}, good)),
		fail(linear.NewHistogramTS(1, []float64{1}, nil, gambler{}, good)),
		fail(linear.NewHistogramTS(1, []float64{1}, privacy.None{}, nil, good)),
	} {
		if err == nil {
			t.Error(fmt.Sprint("error ", i, " is missing"))
		}
	}
}

func fail(_ *linear.HistogramTS, err error) error { return err }

// A row that was never played looks neither good nor bad: the noise of its count has no part in what is learnt of its
// rewards. Mean over 300 runs of a segment in which ten rows of twenty have 200 rewards of rate .2, ε = 1: of those that
// were not played the estimate is off by less than 5 standard errors. With all of the count it is off by 13.
func TestHistogramTSUnplayed(t *testing.T) {
	const k = 20
	flat := make([]float64, k*k)
	for c := range k {
		flat[c*k+c] = 1
	}
	rng := rand.New(rand.NewPCG(7, 8))
	laplace := func(b float64) float64 { return b * (rng.ExpFloat64() - rng.ExpFloat64()) }
	var sum, square float64
	const runs = 300
	for range runs {
		p := histogramTS(t, k, flat, privacy.Pure{Epsilon: 1}, linear.HistogramOptions{First: 2000, Ratio: 1.5,
			Alpha: 1, Draws: 1}, 1)
		bins := make([]float64, 2*k)
		for c := range k {
			if c < k/2 {
				bins[2*c], bins[2*c+1] = 160, 40
			}
			bins[2*c] += laplace(2)
			bins[2*c+1] += laplace(2)
		}
		for range 2000 {
			p.Play(nil)
		}
		p.Cut()
		shown(t, p, 2000, bins)
		theta, _ := p.Estimate()
		unplayed := 0.0
		for _, x := range theta[k/2:] {
			unplayed += x / (k / 2)
		}
		sum, square = sum+unplayed, square+unplayed*unplayed
	}
	mean := sum / runs
	se := math.Sqrt((square/runs - mean*mean) / runs)
	if math.Abs(mean) > 5*se {
		t.Errorf("rows that were not played look like %v ± %v", mean, se)
	}
}
