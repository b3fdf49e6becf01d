package linear_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

func linTS(t testing.TB, d int, b privacy.Budget, o linear.LinTSOptions) *linear.LinTS {
	t.Helper()
	coins := noise.NewFast(1, 2)
	p, err := linear.NewLinTS(d, b, o, &coins)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// learnTS has a policy learn a release of these numbers.
func learnTS(t testing.TB, p *linear.LinTS, n int, value []float64) {
	t.Helper()
	r, err := privacy.NewLedger().ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: n, Value: value})
	if err != nil {
		t.Fatal(err)
	}
	p.Learn(r)
}

// A lintsReference is the posterior from all vectors and noisy sums, by the plainest algebra: stacked, the
// releases of θ = θ₀ + x are X·x + noise with a covariance of blocks, for each τ, and Bayes' rule is in the
// space of releases and not of θ.
type lintsReference struct {
	d      int
	o      linear.LinTSOptions
	sigma  float64
	g      []*mat.SymDense
	b      [][]float64
	v      []float64
	sum, n float64
	first  float64 // the intercept
}

func (r *lintsReference) release(vectors [][]float64, b []float64) {
	g := mat.NewSymDense(r.d, nil)
	for _, a := range vectors {
		g.SymRankOne(g, 1, mat.NewVecDense(r.d, a))
	}
	mean := r.o.Centre
	if r.o.Intercept {
		r.first = vectors[0][0]
		r.sum, r.n = r.sum+b[0]/r.first, r.n+float64(len(vectors))
		mean = r.sum / r.n
	}
	mean = max(-0.99, min(0.99, mean))
	r.g, r.b, r.v = append(r.g, g), append(r.b, b), append(r.v, 1-mean*mean)
}

func (r *lintsReference) mean() []float64 {
	size := len(r.g) * r.d
	x, noise, rest := mat.NewDense(size, r.d, nil), mat.NewSymDense(size, nil), mat.NewVecDense(size, nil)
	for s, g := range r.g {
		for i := range r.d {
			at := s*r.d + i
			centre := 0.0
			if r.o.Intercept {
				centre = g.At(i, 0) * r.o.Centre / r.first
			}
			rest.SetVec(at, r.b[s][i]-centre)
			for j := range r.d {
				x.Set(at, j, g.At(i, j))
				noise.SetSym(at, s*r.d+j, r.v[s]*g.At(i, j))
			}
			noise.SetSym(at, at, noise.At(at, at)+r.sigma*r.sigma)
		}
	}
	rate := 0.5
	if r.o.Intercept {
		rate = (1 - math.Abs(max(-0.99, min(0.99, r.sum/r.n)))) / 2
	}
	var means [][]float64
	var logs []float64
	for _, tau := range []float64{0.2, 0.4, 0.8} {
		prior := mat.NewDiagDense(r.d, nil)
		for i := range r.d {
			prior.SetDiag(i, math.Pow(2*r.o.Norm*rate*tau, 2))
		}
		if r.o.Intercept {
			prior.SetDiag(0, r.o.Norm*r.o.Norm)
		}
		var px, cov mat.Dense
		px.Mul(prior, x.T())
		cov.Mul(x, &px)
		cov.Add(&cov, noise)
		sym := mat.NewSymDense(size, nil)
		for i := range size {
			for j := range i + 1 {
				sym.SetSym(i, j, cov.At(i, j))
			}
		}
		var c mat.Cholesky
		if !c.Factorize(sym) {
			panic("not positive definite")
		}
		var solved, mu mat.VecDense
		if err := c.SolveVecTo(&solved, rest); err != nil {
			panic(err)
		}
		mu.MulVec(&px, &solved)
		logs = append(logs, -c.LogDet()/2-mat.Dot(rest, &solved)/2)
		means = append(means, mu.RawVector().Data)
	}
	out, sum, most := make([]float64, r.d), 0.0, slices.Max(logs)
	for k, m := range means {
		w := math.Exp(logs[k] - most)
		sum += w
		for i, x := range m {
			out[i] += w * x
		}
	}
	for i := range out {
		out[i] /= sum
	}
	if r.o.Intercept {
		out[0] += r.o.Centre / r.first
	}
	return out
}

// The policy ends segments where the rule says, and its estimate is that of the reference after each
// release, whether its rewards come at once or late.
func TestLinTSReference(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, o := range []linear.LinTSOptions{
			{Alpha: 0.5, First: 20, Norm: 2, Intercept: true, Centre: -0.9}, {Alpha: 1, First: 31, Norm: 1},
		} {
			const d = 4
			b := privacy.ZCDP{Rho: 2}
			p := linTS(t, d, b, o)
			ref := lintsReference{d: d, o: o, sigma: p.Mechanism().(privacy.VectorGaussian).Sigma}
			near(t, "sigma", ref.sigma, 1, 1e-12) // 2·√(1/(2ρ))
			rng := rand.New(rand.NewPCG(5, 6))
			var open [][]float64
			sum := make([]float64, d)
			before, end := 0, o.First
			for n := 1; len(ref.g) < 6; n++ {
				a := make([]float64, d)
				for j := range a {
					a[j] = math.Trunc((rng.Float64()-0.3)*(1<<19)) / (1 << 20)
				}
				if o.Intercept {
					a[0] = 0.5
				}
				reward := sign(rng, a[0]+a[1])
				if late {
					p.Play(a)
				} else if c := p.Choose(a); c != (linear.Choice{}) {
					t.Fatalf("the choice among one action is %v", c)
				}
				open = append(open, a)
				for j, x := range a {
					sum[j] += reward * x
				}
				if due := p.Due() >= 0; due != (n == end) {
					t.Fatalf("after %d decisions a segment ends: %v, must end after %d", n, due, end)
				}
				if n < end {
					continue
				}
				if late {
					p.Cut()
				}
				for j := range sum {
					sum[j] += ref.sigma * rng.NormFloat64()
				}
				learnTS(t, p, len(open), sum)
				ref.release(open, slices.Clone(sum))
				theta, _ := p.Estimate()
				for j, want := range ref.mean() {
					near(t, fmt.Sprintf("release %d, theta[%d]", len(ref.g), j), theta[j], want, 1e-6)
				}
				before, open = n, nil
				clear(sum)
				end = before + max(o.First, (before+1)/2)
			}
			if p.Updates() != len(ref.g) {
				t.Errorf("%d updates, must be %d", p.Updates(), len(ref.g))
			}
		}
	}
}

// By hand: of four decisions with a = 1, at σ² = 4, what was released is 2. It is worth 4²/(4 + 4) = 2, times
// 4·2/8 = 1; with the precisions 25, 6.25 and 1.5625 of the three priors the means are 1/27, 1/8.25 and 1/3.5625,
// and the evidence √(25/27)·e^{1/54}, √(6.25/8.25)·e^{1/16.5} and √(1.5625/3.5625)·e^{1/7.125}.
func TestLinTSByHand(t *testing.T) {
	p := linTS(t, 1, privacy.ZCDP{Rho: 0.5}, linear.LinTSOptions{First: 4})
	for range 4 {
		p.Choose([]float64{1})
	}
	learnTS(t, p, 4, []float64{2})
	theta, radius := p.Estimate()
	const e1, e2, e3 = 0.980236, 0.924770, 0.762055
	near(t, "theta", theta[0], (e1/27+e2/8.25+e3/3.5625)/(e1+e2+e3), 1e-5)
	near(t, "radius", radius, 1, 1e-12)
	// With a memory of 8 the segment counts e^(−1/2) of that when the next one comes, of nothing.
	p = linTS(t, 1, privacy.ZCDP{Rho: 0.5}, linear.LinTSOptions{First: 4, Memory: 8})
	for range 2 {
		for range 4 {
			p.Choose([]float64{1})
		}
		learnTS(t, p, 4, []float64{2})
	}
	keep := 1 + math.Exp(-0.5)
	var want, sum float64
	for _, d := range []float64{25, 6.25, 1.5625} {
		e := math.Sqrt(d/(d+2*keep)) * math.Exp(keep*keep/(d+2*keep)/2)
		want, sum = want+e*keep/(d+2*keep), sum+e
	}
	theta, _ = p.Estimate()
	near(t, "theta with memory", theta[0], want/sum, 1e-9)
}

// What Cut has returned restores a policy: the same segments end, and the estimate is the same to the last bit.
func TestLinTSSkip(t *testing.T) {
	const d = 6
	o := linear.LinTSOptions{Alpha: 0.5, First: 10, Norm: 2, Intercept: true}
	p, q := linTS(t, d, privacy.ZCDP{Rho: 1}, o), linTS(t, d, privacy.ZCDP{Rho: 1}, o)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		n := 0
		for p.Due() < 0 {
			a := []float64{0.5, 0, 0, 0, 0, 0.25}
			a[1+rng.IntN(4)] = 0.5
			p.Play(a)
			n++
		}
		gram := p.Cut()
		if err := q.Skip(n, gram); err != nil {
			t.Fatal(err)
		}
		if q.Due() < 0 || !slices.Equal(q.Cut(), gram) {
			t.Fatal("a segment does not end where it did")
		}
		r := make([]float64, d)
		for i := range r {
			r[i] = rng.NormFloat64()
		}
		learnTS(t, p, n, r)
		learnTS(t, q, n, r)
		a, _ := p.Estimate()
		if b, _ := q.Estimate(); !slices.Equal(a, b) {
			t.Fatalf("the estimate is %v, was %v", b, a)
		}
	}
	if err := q.Skip(1, make([]int64, 3)); err == nil {
		t.Error("sums of another dimension are taken")
	}
	q.Play(make([]float64, d))
	if err := q.Skip(1, make([]int64, d*(d+1)/2)); err == nil {
		t.Error("a segment is skipped within one")
	}
}

// With unit vectors the posterior is one of independent components, and the probability that one of two is best is
// known. Counts and choices have it: three standard errors would be passed by chance once in 400, six once in 5e8. Vectors
// stay for 64 rounds, so that rounds/64 are independent at least.
func TestLinTSDraws(t *testing.T) {
	rounds := testkit.Size(200_000, 10_000_000)
	// of 40 decisions that are released, of two components, α_n is 1.05·(40 + 40/3)/(40 + 40) = 0.7
	for _, o := range []linear.LinTSOptions{{Alpha: 0.7, First: 40}, {Alpha: 1.05, Cautious: 20, First: 40}} {
		drawsOf(t, rounds, o)
	}
}

func drawsOf(t *testing.T, rounds int, o linear.LinTSOptions) {
	t.Helper()
	p := linTS(t, 2, privacy.ZCDP{Rho: 0.5}, o)
	for range 20 {
		p.Play([]float64{1, 0})
		p.Play([]float64{0, 1})
	}
	p.Cut()
	learnTS(t, p, 40, []float64{9, 5})
	// each component: 20²/(20+4) = 50/3 of precision, and 20/24 of the sum
	best := func(alpha float64) (out float64) {
		var shares float64
		for _, d := range []float64{25, 6.25, 1.5625} {
			a := d + 50.0/3
			h := []float64{9 * 20. / 24, 5 * 20. / 24}
			e := d / a * math.Exp((h[0]*h[0]+h[1]*h[1])/a/2)
			out += e * (1 - math.Erfc((h[0]-h[1])/a/(alpha*math.Sqrt(2/a))/math.Sqrt2)/2)
			shares += e
		}
		return out / shares
	}
	want := best(0.7)
	actions, counts := []float64{1, 0, 0, 1}, make([]int, 2)
	var drawn, chosen float64
	q := linTS(t, 2, privacy.ZCDP{Rho: 0.5}, linear.LinTSOptions{Alpha: o.Alpha,
		Cautious: o.Cautious, First: 1 << 22})
	if err := q.Skip(40, []int64{20 << 40, 0, 20 << 40}); err != nil {
		t.Fatal(err)
	}
	learnTS(t, q, 40, []float64{9, 5})
	for range rounds {
		p.Draw(actions, counts)
		if counts[0]+counts[1] != linear.Draws {
			t.Fatalf("counts are %v", counts)
		}
		drawn += float64(counts[0]) / linear.Draws
		if q.Choose(actions).Action == 0 {
			chosen++
		}
		if q.Due() >= 0 { // of it nothing is learnt
			q.Cut()
		}
	}
	n := float64(rounds)
	tolerance := 6 * math.Sqrt(want*(1-want)*64/linear.Draws/n)
	near(t, "counts", drawn/n, want, tolerance)
	near(t, "choices", chosen/n, want, 6*math.Sqrt(want*(1-want)*64/n))
	if off := math.Abs(best(1) - want); off < 2*tolerance {
		t.Errorf("draws that forget alpha would be off by %v, and this looks at %v", off, tolerance)
	}
}

// What is released follows from counts: whatever was released, segments end where they did. And a release without
// privacy noise gives the estimate of least squares.
func TestLinTSWithoutPrivacy(t *testing.T) {
	p := linTS(t, 3, privacy.None{}, linear.LinTSOptions{First: 3000, Norm: 1, Intercept: true})
	rng := rand.New(rand.NewPCG(7, 8))
	sum := make([]float64, 3)
	for range 3000 {
		a := []float64{0.5, 0, 0}
		i := 1 + rng.IntN(2)
		a[i] = 0.5
		p.Choose(a)
		for j, x := range a {
			sum[j] += x * []float64{0, 0.2, -0.4}[i]
		}
	}
	learnTS(t, p, 3000, sum)
	theta, _ := p.Estimate()
	near(t, "the first", theta[0]/2+theta[1]/2, 0.2, 0.01)
	near(t, "the second", theta[0]/2+theta[2]/2, -0.4, 0.01)
	if got := p.Best([]float64{0.5, 0, 0.5, 0.5, 0.5, 0}); got != 1 {
		t.Errorf("the best is %d", got)
	}
}

func TestLinTSErrors(t *testing.T) {
	coins := noise.NewFast(1, 2)
	ok := linear.LinTSOptions{Alpha: 0.5, First: 200}
	for _, c := range []struct {
		dim    int
		change func(*linear.LinTSOptions)
		want   string
	}{
		{0, func(*linear.LinTSOptions) {}, "dim is 0, must be between 1 and 1024"},
		{1025, func(*linear.LinTSOptions) {}, "dim is 1025, must be between 1 and 1024"},
		{2, func(o *linear.LinTSOptions) { o.Alpha = math.NaN() }, "alpha is NaN, must be from 0 to 10"},
		{2, func(o *linear.LinTSOptions) { o.Alpha = -1 }, "alpha is -1, must be from 0 to 10"},
		{2, func(o *linear.LinTSOptions) { o.Cautious = -1 }, "cautious is -1, must be from 0 to 4194304"},
		{2, func(o *linear.LinTSOptions) { o.First = 0 }, "first is 0, must be from 1 to 4194304"},
		{2, func(o *linear.LinTSOptions) { o.Norm = math.Inf(1) }, "norm is +Inf, must be from 1e-06 to 1e+06"},
		{2, func(o *linear.LinTSOptions) { o.Centre = 0.5 }, "centre is 0.5, must be from -1 to 1, and 0 without an intercept"},
		{2, func(o *linear.LinTSOptions) { o.Intercept, o.Centre = true, 2 }, "centre is 2, must be from -1 to 1"},
		{2, func(o *linear.LinTSOptions) { o.Memory = 1 }, "memory is 1, must be at least 2, or 0 for no end"},
	} {
		o := ok
		c.change(&o)
		if _, err := linear.NewLinTS(c.dim, privacy.ZCDP{Rho: 1}, o, &coins); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, must say %q", err, c.want)
		}
	}
	if _, err := linear.NewLinTS(2, privacy.ZCDP{Rho: 1}, ok, nil); err == nil {
		t.Error("coins that are missing are taken")
	}
	if _, err := linear.NewLinTS(2, privacy.Pure{Epsilon: 1}, ok, &coins); err == nil {
		t.Error("a budget of pure DP is taken")
	}
}

func TestLinTSAllocations(t *testing.T) {
	p := linTS(t, 20, privacy.ZCDP{Rho: 1}, linear.LinTSOptions{Alpha: 0.5, First: 1 << 22})
	actions, counts := make([]float64, 50*20), make([]int, 50)
	sphere(actions, 20, 1, rand.New(rand.NewPCG(1, 2)))
	p.Choose(actions)
	if n := testing.AllocsPerRun(1000, func() { p.Choose(actions); p.Draw(actions, counts) }); n > 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

// BenchmarkLinTS is a round: of choose, and of draw, which has all counts; one-hot vectors have 4 components that
// are not 0.
func BenchmarkLinTS(b *testing.B) {
	for _, size := range []struct{ d, k int }{{20, 4}, {20, 50}, {50, 50}} {
		dense, sparse := make([]float64, size.k*size.d), make([]float64, size.k*size.d)
		rng := rand.New(rand.NewPCG(1, 2))
		sphere(dense, size.d, 1, rng)
		for i := range size.k {
			for range 4 {
				sparse[i*size.d+rng.IntN(size.d)] = 0.5
			}
		}
		counts := make([]int, size.k)
		for name, actions := range map[string][]float64{"dense": dense, "one-hot": sparse} {
			at := fmt.Sprintf("/%s/d=%d/k=%d", name, size.d, size.k)
			p := linTS(b, size.d, privacy.ZCDP{Rho: 1}, linear.LinTSOptions{Alpha: 0.5, First: 1 << 22})
			b.Run("choose"+at, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p.Choose(actions); p.Due() >= 0 {
						p.Cut()
					}
				}
			})
			b.Run("draw"+at, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					p.Draw(actions, counts)
				}
			})
		}
	}
}

// Whoever knows all decision sets, and tells of many decisions at once, has the same choices, segments and sums, bit by
// bit: in dense and in sparse sets, of which two actions are the same.
func TestLinTSOfSets(t *testing.T) {
	const d, k, contexts = 9, 4, 5
	rng := rand.New(rand.NewPCG(3, 4))
	sets := make([][]float64, contexts)
	for i := range sets {
		sets[i] = make([]float64, k*d)
		for j := range sets[i] {
			if j%d == 0 {
				sets[i][j] = 0.5
			} else if i == 0 || rng.IntN(3) == 0 {
				sets[i][j] = float64(rng.IntN(1<<20)-1<<19) / (1 << 21)
			}
		}
		copy(sets[i][d:2*d], sets[i][:d])
	}
	known := linear.NewSets(d, sets)
	if n := known.Len(); n != contexts*k {
		t.Fatalf("there are %d vectors", n)
	}
	for _, o := range []linear.LinTSOptions{
		{Alpha: 0.5, First: 200, Intercept: true}, {Alpha: 0.5, First: 1}, {Alpha: 0.5, First: 30, Memory: 300, Norm: 2},
	} {
		p, q := linTS(t, d, privacy.ZCDP{Rho: 1}, o), linTS(t, d, privacy.ZCDP{Rho: 1}, o)
		counts, free, since, grams, equal := make([]int, known.Len()), 0, 0, 0, 0
		for n := range 5000 {
			i, from := rng.IntN(contexts), rng.IntN(k)
			set := sets[i]
			a := (p.Sample(slices.Concat(set[from*d:], set[:from*d])) + from) % k
			if b := q.SampleOf(known, i, from); b != a {
				t.Fatalf("%+v: decision %d is for %d, and of sets for %d", o, n, a, b)
			}
			if a == 1 {
				equal++
			}
			p.Play(set[a*d:][:d])
			since++
			counts[known.First(i)+a]++
			if free--; free <= 0 {
				q.PlayOf(known, counts)
				clear(counts)
				free = q.Free()
			} else if p.Due() >= 0 {
				t.Fatalf("%+v: a segment ends with decision %d, and %d more were free", o, n, free)
			}
			if p.Due() < 0 {
				continue
			}
			if q.Due() < 0 || !slices.Equal(p.Cut(), q.Cut()) {
				t.Fatalf("%+v: segments that end with decision %d are not the same", o, n)
			}
			grams++
			value := make([]float64, d)
			for j := range value {
				value[j] = rng.NormFloat64()
			}
			learnTS(t, p, since, value)
			learnTS(t, q, since, value)
			since = 0
		}
		if grams < 8 || equal == 0 {
			t.Errorf("%+v: %d segments, and %d decisions for an action like another", o, grams, equal)
		}
	}
}

// BenchmarkLinTSRun is 10⁵ decisions of one policy with all its releases, of 64 sets of 4 actions in 20 dimensions that are
// there already, as a simulation has them: what a decision costs on average, without contexts, rewards and noise.
func BenchmarkLinTSRun(b *testing.B) {
	const dim, actions, horizon = 20, 4, 100_000
	sets := make([][]float64, 64)
	for i, rng := 0, rand.New(rand.NewPCG(1, 2)); i < len(sets); i++ {
		sets[i] = make([]float64, actions*dim)
		for a := range actions {
			row := sets[i][a*dim:][:dim]
			row[0] = 0.5
			for range 3 {
				row[1+rng.IntN(dim-1)] = 0.5
			}
		}
	}
	known := linear.NewSets(dim, sets)
	counts := make([]int, known.Len())
	b.ReportAllocs()
	for b.Loop() {
		p := linTS(b, dim, privacy.ZCDP{Rho: 1}, linear.LinTSOptions{Alpha: 0.5, First: 200, Intercept: true})
		sum, since, free := make([]float64, dim), 0, 0
		for t := range horizon {
			counts[known.First(t%64)+p.SampleOf(known, t%64, 0)]++
			since++
			if free--; free > 0 {
				continue
			}
			p.PlayOf(known, counts)
			for v, n := range counts {
				row := sets[v/actions][v%actions*dim:][:dim]
				for j, x := range row { // the reward is what component 1 says
					sum[j] += float64(n) * x * row[1]
				}
			}
			clear(counts)
			if free = p.Free(); p.Due() >= 0 {
				learnTS(b, p, since, sum)
				clear(sum)
				since = 0
			}
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/horizon, "ns/decision")
}
