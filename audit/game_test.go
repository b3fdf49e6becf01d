package audit_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

func key(cell string) noise.Key {
	return noise.Key{Seed: 8, Experiment: "audit", Cell: cell, Role: noise.RoleNoise}
}

func play(t *testing.T, g audit.Game) []audit.Scores {
	t.Helper()
	s, err := g.Play(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// z of Φ(−z) = 5e-8: two-sided, ten such comparisons have a false-alarm probability of 1e-6.
const sure = 1 - 1e-7

func covers(t *testing.T, what string, e audit.Estimate, want float64) {
	t.Helper()
	if !(e.Lo <= want && want <= e.Hi) {
		t.Errorf("%s: %.5f in [%.5f, %.5f], theory %.5f", what, e.Value, e.Lo, e.Hi, want)
	}
}

// figure62 is a small version of Figure 6.2: means drawn uniformly in [0.25, 0.75], and the three
// targets. Columns are d/n = 5 times as many as points.
func figure62(n int, seed uint64) (p []float64, targets map[string][]float64) {
	src := noise.NewFast(seed, 1)
	p = make([]float64, 5*n)
	easy, hard, medium := make([]float64, len(p)), make([]float64, len(p)), make([]float64, len(p))
	for j := range p {
		p[j] = 0.25 + src.Float64()/2
		if p[j] <= 0.5 {
			easy[j] = 1
		} else {
			hard[j] = 1
		}
		if src.Bernoulli(p[j]) {
			medium[j] = 1
		}
	}
	return p, map[string][]float64{"easy": easy, "medium": medium, "hard": hard}
}

// Empirical power against theory for the three mechanisms and targets, within the interval and an
// allowance of 0.02 for n = 100 not being infinite. The sub-sampled mean follows the corrected
// limit, and Theorem 6.6's is refuted.
func TestTheoryOfTheMean(t *testing.T) {
	testkit.OneGoroutine(t)
	const n, games = 100, 3000
	p, targets := figure62(n, 7)
	data := audit.Bernoulli{P: p}
	v := data.Variance()
	gamma := make([]float64, len(p))
	for j := range gamma {
		gamma[j] = 0.5
	}
	for name, z := range targets {
		for _, mech := range []string{"mean", "noisy", "sampled"} {
			m := audit.Mean{N: n}
			a := audit.Asymptotic{Mu: p, Var: v, Rows: n}
			var noisy []float64
			switch mech {
			case "noisy":
				m.Noise, a.Noise, noisy = gamma, gamma, gamma
			case "sampled":
				m.Sample, a.Rows = n/2, n/2
			}
			score, err := audit.Leakage(n, z, p, v, noisy)
			if err != nil {
				t.Fatal(err)
			}
			limit := audit.Optimal(score)
			if mech == "sampled" {
				limit = audit.Subsampled(score, 0.5)
			}
			played := games
			if mech == "sampled" && name == "medium" {
				played = 16_000 // to tell the two limits apart
			}
			s := play(t, audit.Game{Data: data, Mean: m, Target: z, Attacks: []audit.Attack{a},
				Games: played, Key: key(name + mech)})[0]
			for _, alpha := range []float64{0.01, 0.1, 0.3} {
				got, err := s.PowerAt(alpha, sure)
				if err != nil {
					t.Fatal(err)
				}
				want := limit.Power(alpha)
				if !(got.Power.Lo-0.02 <= want && want <= got.Power.Hi+0.02) {
					t.Errorf("%s %s α=%v: power %.4f in [%.4f, %.4f], theory %.4f", name, mech,
						alpha, got.Power.Value, got.Power.Lo, got.Power.Hi, want)
				}
				t.Logf("%s %s α=%v: power %.4f in [%.4f, %.4f], theory %.4f", name, mech, alpha,
					got.Power.Value, got.Power.Lo, got.Power.Hi, want)
				if mech == "sampled" && name == "medium" && alpha < 0.1 {
					if print := audit.SubsampledPrint(score, 0.5).Power(alpha); print > got.Power.Lo {
						t.Errorf("Theorem 6.6 as printed is not refuted: %.4f, games %.4f in "+
							"[%.4f, %.4f]", print, got.Power.Value, got.Power.Lo, got.Power.Hi)
					}
				}
			}
		}
	}
}

// The worked numbers of the correction: ρ = 0.5, α = 0.01, printed 0.233 against 0.409, which fixes
// m*.
func TestSubsamplingNumbers(t *testing.T) {
	// 0.233 = Φ(Φ⁻¹(0.01) + √(m*/2)).
	m := 2 * math.Pow(-0.7290+2.32635, 2)
	near(t, "printed", audit.SubsampledPrint(m, 0.5).Power(0.01), 0.233, 5e-4)
	near(t, "corrected", audit.Subsampled(m, 0.5).Power(0.01), 0.409, 1.5e-3)
}

// The exact likelihood ratio of Bernoulli data is the ratio of the two binomial laws, and its mean
// of e^ℓ without the target is 1.
func TestBernoulliExact(t *testing.T) {
	const n, p = 7, 0.3
	choose := func(n, k int) float64 {
		if k < 0 || k > n {
			return 0
		}
		return math.Round(math.Exp(lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1)))
	}
	for z := range 2 {
		s, err := audit.BernoulliLR{P: []float64{p}}.Aim([]float64{float64(z)})
		if err != nil {
			t.Fatal(err)
		}
		for x := 0; x <= n; x++ {
			out := choose(n, x) * math.Pow(p, float64(x)) * math.Pow(1-p, float64(n-x))
			in := choose(n-1, x-z) * math.Pow(p, float64(x-z)) * math.Pow(1-p, float64(n-1-x+z))
			got := s.Score([]float64{float64(x) / n})
			if in == 0 {
				if !math.IsInf(got, -1) {
					t.Errorf("z=%d x=%d: %v", z, x, got)
				}
				continue
			}
			near(t, "ℓ", got, math.Log(in/out), 1e-12)
		}
	}
}

func lgamma(n int) float64 { l, _ := math.Lgamma(float64(n)); return l }

// The likelihood ratio of Gaussian data against the densities, and its errors against (6.3) at
// finite n, where the two laws have different variances.
func TestNormalExact(t *testing.T) {
	a := audit.NormalLR{Mu: []float64{0.2}, Var: []float64{2}, Noise: []float64{0.7}, Rows: 5}
	s, err := a.Aim([]float64{3})
	if err != nil {
		t.Fatal(err)
	}
	logDensity := func(x, m, v float64) float64 { return -(x-m)*(x-m)/(2*v) - math.Log(v)/2 }
	for _, x := range []float64{-1, 0.2, 0.9, 4} {
		want := logDensity(x, (4*0.2+3)/5, (4*2.0/5+0.49)/5) - logDensity(x, 0.2, (2+0.49)/5)
		near(t, "ℓ", s.Score([]float64{x}), want, 1e-12)
	}
	// Under no target, E e^ℓ = 1 for every likelihood ratio, and it has mean 1 in games: 4e4 games,
	// six standard errors.
	g := audit.Game{Data: audit.Normal{Mu: a.Mu, Var: a.Var},
		Mean: audit.Mean{N: 5, Noise: a.Noise}, Target: []float64{1}, Attacks: []audit.Attack{a},
		Games: 40_000, Key: key("normal")}
	var sum, sq float64
	sc := play(t, g)[0]
	for _, l := range sc.Out {
		e := math.Exp(l)
		sum, sq = sum+e, sq+e*e
	}
	n := float64(len(sc.Out))
	near(t, "E e^ℓ", sum/n, 1, 6*math.Sqrt((sq/n-1)/n))
}

// Sums drawn at once have the law of sums drawn point by point: scores of a game whose clipping
// never bites against those of the fast way, by the two-sample Kolmogorov–Smirnov test at 1e-6.
func TestClippingPathHasTheSameLaw(t *testing.T) {
	cov := mat.NewSymDense(2, []float64{1, 0.6, 0.6, 2})
	corr, err := audit.NewCorrelated([]float64{0.5, -1}, cov)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []audit.Data{audit.Bernoulli{P: []float64{0.3, 0.6}},
		audit.Normal{Mu: []float64{0.3, 1}, Var: []float64{1, 2}}, corr} {
		var scores [2]audit.Scores
		for i, clip := range []float64{0, 1e9} {
			g := audit.Game{Data: data, Mean: audit.Mean{N: 20, Sample: 10, Clip: clip},
				Target:  []float64{1, 0},
				Attacks: []audit.Attack{audit.ScalarProduct{Reference: []float64{0, 0.3}}},
				Games:   20_000, Key: key("clip" + string(rune('a'+i)))}
			scores[i] = play(t, g)[0]
		}
		for _, pair := range [][2][]float64{{scores[0].In, scores[1].In}, {scores[0].Out, scores[1].Out}} {
			roc, err := audit.Scores{In: pair[0], Out: pair[1]}.ROC()
			if err != nil {
				t.Fatal(err)
			}
			var ks float64
			for _, p := range roc {
				ks = max(ks, math.Abs(p.Power-p.TypeI))
			}
			n, m := float64(len(pair[0])), float64(len(pair[1]))
			if limit := math.Sqrt(math.Log(2e6)/2) * math.Sqrt((n+m)/(n*m)); ks > limit {
				t.Errorf("%T: distance %v > %v", data, ks, limit)
			}
		}
	}
}

// Clipping bounds what a target far away can do.
func TestClippingProtects(t *testing.T) {
	g := audit.Game{Data: audit.Normal{Mu: []float64{0}, Var: []float64{1}},
		Mean: audit.Mean{N: 50}, Target: []float64{30},
		Attacks: []audit.Attack{audit.ScalarProduct{Reference: []float64{0}}}, Games: 4000,
		Key: key("clipping")}
	open, err := play(t, g)[0].AUC(sure)
	if err != nil {
		t.Fatal(err)
	}
	g.Mean.Clip = 1
	clipped, err := play(t, g)[0].AUC(sure)
	if err != nil {
		t.Fatal(err)
	}
	if open.Lo < 0.99 || clipped.Hi > 0.7 {
		t.Errorf("AUC %v without clipping, %v with", open, clipped)
	}
}

// bursty data looks like gradients: correlated columns, most points near 0 and few large (one in
// ten, of a kurtosis of ten).
type bursty struct{ audit.Correlated }

func (b bursty) Draw(dst []float64, src *noise.Fast) {
	b.Correlated.Draw(dst, src)
	scale := 0.1
	if src.Bernoulli(0.1) {
		scale = 3.1464
	}
	for j := range dst {
		dst[j] *= scale
	}
}

func (b bursty) Sum(dst []float64, k int, src *noise.Fast) {
	clear(dst)
	point := make([]float64, len(dst))
	for range k {
		b.Draw(point, src)
		for j, v := range point {
			dst[j] += v
		}
	}
}

// Correlated data at low significance. The covariance attack beats the scalar product by more than
// both intervals everywhere. GLiR adds ‖μ̂−μ‖² to it: that costs power under Gaussian noise with
// many columns, where it is noise alone. Without noise it is evidence, as the target takes the
// place of a random point, and GLiR is level or a little ahead.
func TestCovarianceAgainstTheOthers(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, c := range []struct {
		name   string
		d, k   int
		noise  float64 // γ, the same for each column
		bursty bool
		beats  bool // whether the covariance attack beats GLiR
	}{{"Gaussian", 60, 10, 0, false, false}, {"Gaussian with noise", 240, 4, 4, false, true},
		{"heavy tails", 60, 10, 0, true, false}} {
		cov := mat.NewSymDense(c.d, nil)
		for i := range c.d {
			for j := i; j < c.d; j++ {
				cov.SetSym(i, j, math.Pow(0.9, float64(j-i)))
			}
		}
		gaussian, err := audit.NewCorrelated(make([]float64, c.d), cov)
		if err != nil {
			t.Fatal(err)
		}
		var data audit.Data = gaussian
		if c.bursty {
			data = bursty{gaussian}
		}
		src := noise.NewFast(3, 4)
		refs := make([][]float64, 2000)
		for i := range refs {
			refs[i] = make([]float64, c.d)
			data.Draw(refs[i], &src)
			for j := range refs[i] {
				refs[i][j] += c.noise * src.Normal() // the adversary knows how much noise there is
			}
		}
		attack, err := audit.NewCovariance(refs, c.k, false)
		if err != nil {
			t.Fatal(err)
		}
		z := make([]float64, c.d)
		gaussian.Draw(z, &src)
		gamma := make([]float64, c.d)
		for j := range gamma {
			gamma[j] = c.noise
		}
		s := play(t, audit.Game{Data: data, Mean: audit.Mean{N: c.k, Noise: gamma}, Target: z,
			Attacks: []audit.Attack{attack, audit.ScalarProduct{Reference: refs[0]},
				audit.GLiR{Covariance: attack}}, Games: 8_000, Key: key("covariance")})
		var power [3]audit.PowerAt
		for i := range s {
			if power[i], err = s[i].PowerAt(0.03, 0.9999); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s, power at 3%%: covariance %.3f, scalar product %.3f, GLiR %.3f", c.name,
			power[0].Power, power[1].Power, power[2].Power)
		if power[0].Power.Lo <= power[1].Power.Hi {
			t.Errorf("%s: covariance %v, scalar product %v", c.name, power[0].Power, power[1].Power)
		}
		if (power[0].Power.Lo > power[2].Power.Hi) != c.beats {
			t.Errorf("%s: covariance %v, GLiR %v", c.name, power[0].Power, power[2].Power)
		}
	}
}

// The misspecified target loses what Theorem 6.7 says, at the threshold (m_scal − m_targ)/2; turned
// around where m_scal < 0.
func TestMisspecifiedTarget(t *testing.T) {
	const d, n = 200, 100
	mu, v := make([]float64, d), make([]float64, d)
	z, other := make([]float64, d), make([]float64, d)
	src := noise.NewFast(5, 6)
	for j := range mu {
		mu[j], v[j] = src.Float64(), 0.5+src.Float64()
		z[j] = mu[j] + src.Normal()
		other[j] = z[j] + src.Normal()
	}
	data := audit.Normal{Mu: mu, Var: v}
	a := audit.Misspecified{Attack: audit.Asymptotic{Mu: mu, Var: v, Rows: n}, Target: other}
	scal, err := audit.LeakageBetween(n, z, other, mu, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	targ, _ := audit.Leakage(n, other, mu, v, nil)
	s := play(t, audit.Game{Data: data, Mean: audit.Mean{N: n}, Target: z,
		Attacks: []audit.Attack{a}, Games: 40_000, Key: key("missing")})[0]
	best, err := s.At(audit.BestMissing(scal, targ), sure)
	if err != nil {
		t.Fatal(err)
	}
	covers(t, "advantage", best.Advantage, audit.Missing(scal, targ).Advantage())
	zero, err := s.At(0, sure)
	if err != nil {
		t.Fatal(err)
	}
	// At the threshold 0: Φ((scal−targ/2)/√targ) − Φ(−targ/2/√targ), smaller.
	root := math.Sqrt(targ)
	at0 := (math.Erf((scal-targ/2)/root/math.Sqrt2) + math.Erf(root/2/math.Sqrt2)) / 2
	covers(t, "advantage at 0", zero.Advantage, at0)
	if at0 >= audit.Missing(scal, targ).Advantage() {
		t.Error("the threshold 0 is no worse")
	}
}

// The average-target game: power as with an optimal score of τ = d/n [Azize 2024, §2.3.4], with
// references λ/(1+λ) of it.
func TestAverageTarget(t *testing.T) {
	testkit.RacedBefore(t)
	const d, n, lambda = 400, 200, 1
	src := noise.NewFast(9, 9)
	p := make([]float64, d)
	for j := range p {
		p[j] = 0.3 + 0.4*src.Float64()
	}
	data := audit.Bernoulli{P: p}
	refs := make([][]float64, lambda*n)
	for i := range refs {
		refs[i] = make([]float64, d)
		data.Draw(refs[i], &src)
	}
	ref, err := audit.NewBernoulliReference(refs)
	if err != nil {
		t.Fatal(err)
	}
	s := play(t, audit.Game{Data: data, Mean: audit.Mean{N: n},
		Attacks: []audit.Attack{audit.BernoulliLR{P: p}, ref}, Games: 10_000, Key: key("average")})
	tau := float64(d) / n
	for i, limit := range []audit.Limit{audit.Optimal(tau), audit.WithReferences(tau, lambda)} {
		for _, alpha := range []float64{0.01, 0.1} {
			got, err := s[i].PowerAt(alpha, sure)
			if err != nil {
				t.Fatal(err)
			}
			want := limit.Power(alpha)
			t.Logf("attack %d, α=%v: %.4f in [%.4f, %.4f], theory %.4f", i, alpha, got.Power.Value,
				got.Power.Lo, got.Power.Hi, want)
			if !(got.Power.Lo-0.02 <= want && want <= got.Power.Hi+0.02) {
				t.Errorf("attack %d, α=%v: %v, theory %v", i, alpha, got.Power, want)
			}
		}
	}
}

// Sampled scores are log(1−ρ+ρe^ℓ), without overflow.
func TestSampledScore(t *testing.T) {
	inner := audit.NormalLR{Mu: []float64{0}, Var: []float64{1}, Rows: 2}
	a, _ := inner.Aim([]float64{1})
	b, err := audit.Sampled{Attack: inner, Rate: 0.25}.Aim([]float64{1})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{-3, 0, 2} {
		near(t, "score", b.Score([]float64{x}), math.Log(0.75+0.25*math.Exp(a.Score([]float64{x}))), 1e-12)
	}
	far := audit.Asymptotic{Mu: []float64{0}, Var: []float64{1e-3}, Rows: 2}
	c, _ := audit.Sampled{Attack: far, Rate: 0.25}.Aim([]float64{1})
	if v := c.Score([]float64{3}); math.IsInf(v, 0) || math.IsNaN(v) {
		t.Errorf("score %v", v)
	}
}

func TestGameBadInput(t *testing.T) {
	data := audit.Bernoulli{P: []float64{0.5}}
	good := audit.Game{Data: data, Mean: audit.Mean{N: 5}, Target: []float64{1},
		Attacks: []audit.Attack{audit.BernoulliLR(data)}, Games: 10, Key: key("bad")}
	for _, c := range []struct {
		say    string
		change func(*audit.Game)
	}{
		{"no games", func(g *audit.Game) { g.Games = 0 }},
		{"Data is nil", func(g *audit.Game) { g.Data = nil }},
		{"no attacks", func(g *audit.Game) { g.Attacks = nil }},
		{"do not match", func(g *audit.Game) { g.Target = []float64{1, 0} }},
		{"must be 0 or 1", func(g *audit.Game) { g.Target = []float64{0.5} }},
		{"N is 1", func(g *audit.Game) { g.Mean.N = 1 }},
		{"Sample is 6", func(g *audit.Game) { g.Mean.Sample = 6 }},
		{"Clip is NaN", func(g *audit.Game) { g.Mean.Clip = math.NaN() }},
		{"Noise[0] is -1", func(g *audit.Game) { g.Mean.Noise = []float64{-1} }},
	} {
		g := good
		c.change(&g)
		if _, err := g.Play(context.Background()); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", c.say, err)
		}
	}
	refs := [][]float64{{1, 2}, {2, 1}}
	if _, err := audit.NewCovariance(refs, 5, false); !errors.Is(err, audit.ErrFewReferences) {
		t.Error(err)
	}
	c, err := audit.NewCovariance(refs, 5, true)
	if err != nil || c.Shrinkage() == 0 || c.Note() == "" {
		t.Error(c.Shrinkage(), err)
	}
	if _, err := audit.NewCovariance([][]float64{{1, 1}, {2, 2}, {3, 3}}, 5, false); !errors.Is(err,
		audit.ErrSingular) {
		t.Error(err)
	}
	if c, err := audit.NewCovariance([][]float64{{1, 1}, {2, 2}, {3, 3}}, 5, true); err != nil ||
		c.Shrinkage() == 0 {
		t.Error(c.Shrinkage(), err)
	}
	if _, err := audit.NewCovariance([][]float64{{1, 1}, {1, 1}}, 5, true); !errors.Is(err, audit.ErrSingular) {
		t.Error(err)
	}
	if _, err := audit.NewCovariance([][]float64{{1}, {math.NaN()}}, 5, true); err == nil {
		t.Error("NaN reference")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := good.Play(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Scores do not depend on the number of workers.
func TestWorkersAgree(t *testing.T) {
	g := audit.Game{Data: audit.Bernoulli{P: []float64{0.5, 0.2}}, Mean: audit.Mean{N: 50},
		Attacks: []audit.Attack{audit.BernoulliLR{P: []float64{0.5, 0.2}}}, Games: 5000, Key: key("workers")}
	g.Workers = 1
	one := play(t, g)[0]
	g.Workers = 4
	four := play(t, g)[0]
	if len(one.In) != len(four.In) {
		t.Fatal("bits differ")
	}
	for i := range one.In {
		if one.In[i] != four.In[i] {
			t.Fatal("scores differ")
		}
	}
}

// Randomised response at ε among k values attains the limit of reconstruction.
func TestReconstruction(t *testing.T) {
	const eps, k = 1.0, 4
	limit, err := audit.ReconstructionLimit(eps, 0, k)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "limit", limit, math.E/(math.E+3), 1e-15)
	g, err := audit.Reconstruction{Values: k, Games: 50_000, Key: key("response"),
		Guess: func(v int, src *noise.Fast) (int, error) {
			if src.Bernoulli(limit) {
				return v, nil
			}
			return (v + 1 + int(src.Float64()*(k-1))) % k, nil
		}}.Play(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s, err := g.Success(sure)
	if err != nil {
		t.Fatal(err)
	}
	covers(t, "success", s, limit)
	low, err := g.Epsilon(1e-6, 0)
	if err != nil || low > eps || low < 0.9*eps {
		t.Errorf("audited ε = %v, %v", low, err)
	}
	d, _ := audit.ReconstructionLimit(1, 0.1, 2)
	a, _ := audit.AdvantageLimit(1, 0.1)
	near(t, "two values", d, (1+a)/2, 1e-15)
}

func BenchmarkGame(b *testing.B) {
	data := audit.Bernoulli{P: []float64{0.3}}
	g := audit.Game{Data: data, Mean: audit.Mean{N: 1000}, Target: []float64{1},
		Attacks: []audit.Attack{audit.BernoulliLR(data)}, Games: b.N, Key: key("bench"), Workers: 1}
	b.ReportAllocs()
	if _, err := g.Play(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkGameFigure62(b *testing.B) {
	p, targets := figure62(1000, 1)
	data := audit.Bernoulli{P: p}
	g := audit.Game{Data: data, Mean: audit.Mean{N: 1000}, Target: targets["medium"],
		Attacks: []audit.Attack{audit.Asymptotic{Mu: p, Var: data.Variance(), Rows: 1000}},
		Games:   b.N, Key: key("bench"), Workers: 1}
	b.ReportAllocs()
	if _, err := g.Play(context.Background()); err != nil {
		b.Fatal(err)
	}
}
