package train_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/train"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Who knows the data and sees full batches knows the law of each iterate: the informed attack is
// its exact log-likelihood ratio.
func TestInformedIsTheLikelihoodRatio(t *testing.T) {
	src := noise.NewFast(10, 1)
	d := train.Images(7, 2, 2, 1, 2, &src)
	m := train.Logistic{Features: 4, Labels: 2}
	r := train.Training{Model: m, Method: train.DPSGD, Steps: 3, Rate: 0.3, Sampling: 1, Clip: 0.4, Noise: 1.3}
	iterates := testkit.Must(r.Iterates(d, nil, &src))
	plan := testkit.Must((train.Attack{References: d, Informed: true, Refresh: true}).Plan(r, iterates[0],
		7, train.AddRemove))
	canary := testkit.Must(train.Mislabelled(m, iterates[0], d, 2))
	got := testkit.Must(plan.Trace(canary, iterates))
	pass, g := m.NewPass(), make([]float64, 10)
	clipped := func(theta []float64, x []float64, label int) []float64 {
		pass.Gradient(theta, x, label, g, nil)
		var n float64
		for _, v := range g {
			n += v * v
		}
		out := make([]float64, 10)
		for j, v := range g {
			out[j] = v * min(1, 0.4/math.Sqrt(n))
		}
		return out
	}
	var want float64
	for s := range 3 {
		var sum [10]float64
		for i, x := range d.X {
			for j, v := range clipped(iterates[s], x, d.Labels[i]) {
				sum[j] += v
			}
		}
		for j, v := range clipped(iterates[s], canary.X, canary.Label) {
			seen := (iterates[s][j] - iterates[s+1][j]) / 0.3 * 7
			out, in := seen-sum[j], seen-sum[j]-v
			want += (out*out - in*in) / (2 * 1.3 * 1.3 * 0.4 * 0.4)
		}
	}
	if math.Abs(got-want) > 1e-8*math.Abs(want) {
		t.Errorf("score %v, likelihood ratio %v", got, want)
	}
}

// A sound run is refuted with probability at most γ = 1e-6; each flaw is refuted, by the same
// games, at the same γ. The canary is a gradient ten times as long as the clip.
func TestFlawsAreRefuted(t *testing.T) {
	if testkit.Race {
		t.Skip("the goroutines are those of TestRepeatsAndShrinks")
	}
	const gamma, delta = 1e-6, 1e-2
	src := noise.NewFast(11, 1)
	d := train.Images(5, 2, 2, 1, 2, &src)
	m := train.Logistic{Features: 4, Labels: 2}
	dirac := testkit.Must(train.Dirac(m, 3, 5))
	for _, q := range []float64{1, 0.5} {
		for _, f := range []train.Flaw{train.Sound, train.HalfNoise, train.Unclipped, train.BatchClipped} {
			r := train.Training{Model: m, Method: train.DPSGD, Steps: 4, Rate: 0.5, Sampling: q,
				Clip: 0.5, Noise: 2, Flaw: f}
			a := train.Audit{Training: r, Data: d, Canary: dirac, Games: 30000,
				Key: noise.Key{Seed: 1}, Attacks: []train.Attack{
					{References: d, Informed: true, Mixture: q < 1},
					{Score: train.ScalarProduct},
				}}
			if q < 1 {
				a.Training.Steps, a.Training.Noise = 6, 1.5
			}
			s := testkit.Must(a.Play(context.Background()))
			v := testkit.Must(a.Judge(s, gamma, delta))
			t.Logf("q = %v, %v: claimed %.3f, audited %.3f and %.3f", q, f, v.Claim.Epsilon,
				v.Audited[0].Epsilon, v.Audited[1].Epsilon)
			if v.Refuted != (f != train.Sound) {
				t.Errorf("q = %v, %v: refuted %v, claim %v, audited %v", q, f, v.Refuted,
					v.Claim.Epsilon, v.Audited)
			}
			if q == 1 && f == train.Sound {
				// Four steps of the Gaussian mechanism at σ = 2 are 1-Gaussian DP, and this
				// canary attains it.
				region := testkit.Must(s[0].RegionByRank(gamma))
				t.Logf("μ = %.3f of 1", region.Mu())
				if region.Mu() < 0.85 || region.Mu() > 1 {
					t.Errorf("μ = %v, must be near 1 and below it", region.Mu())
				}
			}
		}
	}
}

// Replacing an example by one with the opposite gradient moves the sum by 2C: the claim for one
// added is refuted, that for one replaced is not, both at γ = 1e-6.
func TestReplaceOneCostsTwice(t *testing.T) {
	const gamma, delta = 1e-6, 1e-2
	m := train.Logistic{Features: 1, Labels: 2}
	x := train.Dataset{Height: 1, Width: 1, Channels: 1, Classes: 2, X: [][]float64{{1}, {1}},
		Labels: []int{1, 0}}
	r := train.Training{Model: m, Method: train.DPSGD, Steps: 1, Rate: 1, Sampling: 1, Clip: 0.1, Noise: 2}
	a := train.Audit{Training: r, Data: x, Canary: train.Canary{Name: "opposite", X: []float64{1},
		Label: 1}, Neighbour: train.ReplaceOne, Games: 60000, Key: noise.Key{Seed: 2},
		Attacks: []train.Attack{{Score: train.ScalarProduct}}}
	s := testkit.Must(a.Play(context.Background()))
	v := testkit.Must(a.Judge(s, gamma, delta))
	add := testkit.Must(r.Claim(delta, train.AddRemove))
	t.Logf("audited %.3f; claimed %.3f for one replaced, %.3f for one added", v.Audited[0].Epsilon,
		v.Claim.Epsilon, add.Epsilon)
	if v.Refuted || v.Audited[0].Epsilon < add.Epsilon {
		t.Errorf("audited %v; claims %v and %v", v.Audited[0].Epsilon, v.Claim.Epsilon, add.Epsilon)
	}
	if want := privacy.GaussianEpsilon(1, delta); v.Claim.Epsilon != want {
		t.Errorf("claim %v, want %v", v.Claim.Epsilon, want)
	}
}

func trained(t *testing.T, m train.Model, side int, src *noise.Fast) (pool,
	references train.Dataset, start []float64) {
	t.Helper()
	all := train.Images(1600, side, side, 1, 3, src)
	pool, references = all.Slice(0, 800), all.Slice(800, 1600)
	it := testkit.Must(train.Training{Model: m, Method: train.MiniBatch, Size: 20, Steps: 200,
		Rate: 0.1}.Iterates(references, nil, src))
	return pool, references, it[len(it)-1]
}

// On a trained model's gradients, which are correlated, with noise: at low significance the
// covariance attack is ahead of the scalar product and of GLiR. Intervals at 1−1e-6 do not meet.
func TestCovarianceBeatsOthers(t *testing.T) {
	src := noise.NewFast(8, 8)
	m := train.Logistic{Features: 25, Labels: 3}
	pool, refs, start := trained(t, m, 5, &src)
	a := train.Audit{
		Training: train.Training{Model: m, Method: train.DPSGD, Steps: 1, Rate: 0.1, Sampling: 1,
			Clip: 1, Noise: 0.3},
		Data: pool, Size: 3, Start: start, Neighbour: train.ReplaceOne, Games: 16000,
		Key:    noise.Key{Seed: 1},
		Canary: testkit.Must(train.Mislabelled(m, start, pool, 0)),
		Attacks: []train.Attack{{References: refs}, {Score: train.ScalarProduct},
			{Score: train.GLiR, References: refs}},
	}
	s := testkit.Must(a.Play(context.Background()))
	var power [3]audit.Estimate
	for i := range s {
		power[i] = testkit.Must(s[i].PowerAt(0.03, 1-1e-6)).Power
		t.Logf("%v: power at 3 %% %+v", a.Attacks[i], power[i])
	}
	for i := 1; i < 3; i++ {
		if power[0].Lo <= power[i].Hi {
			t.Errorf("covariance %+v, %v %+v", power[0], a.Attacks[i], power[i])
		}
	}
}

// The Mahalanobis score foretells how hard canaries are to hide, on a trained net: where two
// scores differ by half, the one of the higher score is found at least as easily, within
// intervals at 1−1e-6.
func TestMahalanobisCanaryOfTrainedNet(t *testing.T) {
	if testkit.Race {
		t.Skip("the goroutines are those of TestRepeatsAndShrinks")
	}
	src := noise.NewFast(12, 1)
	m := train.Conv{Height: 4, Width: 4, Channels: 1, Filters: []int{3}, Labels: 3}
	pool, refs, start := trained(t, m, 4, &src)
	wrong := testkit.Must(train.Mislabelled(m, start, pool, 0))
	crafted, first, last, err := train.CANIFE{References: refs.Slice(0, 200), Clip: 0.5, Steps: 40,
		Label: wrong.Label, Lo: 0, Hi: 1}.Craft(m, start, wrong.X, &src)
	if err != nil || !(last < first/5) {
		t.Fatalf("CANIFE: loss from %v to %v, %v", first, last, err)
	}
	for _, last := range []bool{false, true} {
		at, _ := m.Last()
		candidates := []train.Canary{
			testkit.Must(train.Example(pool, 2)), testkit.Must(train.Example(pool, 3)), train.Blank(pool, 0),
			wrong, testkit.Must(train.Dirac(m, at+1, 0.5)), crafted,
		}
		a := train.Audit{
			Training: train.Training{Model: m, Method: train.DPSGD, Steps: 2, Rate: 0.1,
				Sampling: 1, Clip: 0.5, Noise: 0.6},
			Data: pool, Size: 10, Start: start, Neighbour: train.ReplaceOne, Games: 1000,
			Key:    noise.Key{Seed: 1},
			Canary: candidates[0], Attacks: []train.Attack{{References: refs, LastLayer: last}},
		}
		plan := testkit.Must(a.Plans())[0]
		best, scores, err := train.Select(plan, candidates)
		if err != nil {
			t.Fatal(err)
		}
		auc := make([]audit.Estimate, len(candidates))
		for i := range candidates {
			a.Canary = candidates[i]
			auc[i] = testkit.Must(testkit.Must(a.Play(context.Background()))[0].AUC(1 - 1e-6))
			t.Logf("%-16s Mahalanobis %6.3f, AUC %.3f", candidates[i].Name, scores[i], auc[i].Value)
		}
		for i := range candidates {
			for j := range candidates {
				if scores[i] > 1.5*scores[j] && auc[i].Hi < auc[j].Lo {
					t.Errorf("%s scores %v and has AUC %+v, %s %v and %+v", candidates[i].Name,
						scores[i], auc[i], candidates[j].Name, scores[j], auc[j])
				}
			}
		}
		for i := range 2 {
			if auc[best].Lo <= auc[i].Hi {
				t.Errorf("%s was chosen, AUC %+v; %s has %+v", candidates[best].Name, auc[best],
					candidates[i].Name, auc[i])
			}
		}
	}
}

// On synthetic gradients, Gaussian with a covariance of decaying eigenvalues, the Mahalanobis score
// gives the power itself, √m standard deviations, and the candidate of the highest score is the
// hardest to hide though not the longest.
func TestMahalanobisCanaryOfSyntheticGradients(t *testing.T) {
	if testkit.Race {
		t.Skip("the goroutines are those of TestRepeatsAndShrinks")
	}
	const d, rows = 20, 15
	src := noise.NewFast(13, 1)
	c := mat.NewSymDense(d, nil)
	for i := range d {
		for j := i; j < d; j++ {
			c.SetSym(i, j, math.Pow(0.8, float64(j-i))/math.Sqrt(float64((i+1)*(j+1))))
		}
	}
	data := testkit.Must(audit.NewCorrelated(make([]float64, d), c))
	refs := make([][]float64, 4000)
	for i := range refs {
		refs[i] = make([]float64, d)
		data.Draw(refs[i], &src)
	}
	cov := testkit.Must(audit.NewCovariance(refs, rows, true))
	long, dirac, alternating := make([]float64, d), make([]float64, d), make([]float64, d)
	for j := range d {
		long[j] = 2 / math.Sqrt(float64(j+1)) // along the first directions of the data
		alternating[j] = 0.7 * math.Pow(-1, float64(j)) / math.Sqrt(float64(j+1))
	}
	dirac[d-1] = 0.8
	exact := testkit.Must(audit.CovarianceOf(make([]float64, d), c, rows))
	targets := [][]float64{refs[0], long, dirac, alternating}
	var m [4]float64
	var power [4]audit.Estimate
	for i, z := range targets {
		m[i] = testkit.Must(cov.Mahalanobis(z))
		s := testkit.Must(audit.Game{Data: data, Mean: audit.Mean{N: rows}, Target: z,
			Attacks: []audit.Attack{cov, exact}, Games: 100000,
			Key: noise.Key{Seed: 3}}.Play(context.Background()))
		power[i] = testkit.Must(s[0].PowerAt(0.05, 1-1e-6)).Power
		// With the true covariance the score is normal, of variance m without the target and
		// (1−1/k)m with it: Optimal, before k grows.
		shift := math.Sqrt(testkit.Must(exact.Mahalanobis(z)))
		theory := 0.5 * math.Erfc((1.6448536269514722-shift)/math.Sqrt(2*(1-1./rows)))
		if p := testkit.Must(s[1].PowerAt(0.05, 1-1e-6)).Power; theory < p.Lo || theory > p.Hi {
			t.Errorf("target %d: power %+v, theory %v", i, p, theory)
		}
		t.Logf("m = %.3f, power at 5 %%: %+v; theory %.3f", m[i], power[i], theory)
	}
	for i := range 3 {
		if m[3] <= m[i] || power[3].Lo <= power[i].Hi {
			t.Errorf("target 3: m = %v, power %+v; target %d: %v, %+v", m[3], power[3], i, m[i], power[i])
		}
	}
}

// One run, many canaries: sound DP-SGD is refuted with probability at most γ = 1e-6, and
// without clipping it is.
func TestSingleRun(t *testing.T) {
	const gamma, delta = 1e-6, 1e-10
	src := noise.NewFast(14, 1)
	d := train.Images(20, 10, 10, 1, 4, &src)
	m := train.Logistic{Features: 100, Labels: 4}
	for _, f := range []train.Flaw{train.Sound, train.Unclipped} {
		a := train.SingleRun{Training: train.Training{Model: m, Method: train.DPSGD, Steps: 2,
			Rate: 0.01, Sampling: 1, Clip: 0.5, Noise: 8, Flaw: f}, Data: d,
			Attack: train.Attack{Score: train.ScalarProduct}, Key: noise.Key{Seed: 4}}
		for i := range 400 {
			a.Canaries = append(a.Canaries, testkit.Must(train.Dirac(m, i, 100)))
		}
		s := testkit.Must(a.Play())
		eps, one, err := s.OneRunEpsilon(gamma, delta, 50, 180)
		if err != nil {
			t.Fatal(err)
		}
		claim := testkit.Must(a.Training.Claim(delta, train.AddRemove))
		t.Logf("%v: %+v, audited %.3f, claimed %.3f", f, one, eps, claim.Epsilon)
		if (eps > claim.Epsilon) != (f != train.Sound) {
			t.Errorf("%v: audited %v, claimed %v", f, eps, claim.Epsilon)
		}
	}
}

// Scores depend on the key alone, not on how many workers there are; fewer references than
// dimensions are shrunk, and said.
func TestRepeatsAndShrinks(t *testing.T) {
	src := noise.NewFast(15, 1)
	all := train.Images(60, 4, 4, 1, 3, &src)
	m := train.Conv{Height: 4, Width: 4, Channels: 1, Filters: []int{2}, Labels: 3}
	a := train.Audit{Training: train.Training{Model: m, Method: train.MiniBatch, Size: 5, Steps: 4,
		Rate: 0.1}, Data: all.Slice(0, 40), Size: 20, Canary: train.Blank(all, 1),
		Neighbour: train.ReplaceOne, Games: 1100, Key: noise.Key{Seed: 5},
		Attacks: []train.Attack{{References: all.Slice(40, 60), Mixture: true, Refresh: true}}}
	if note := testkit.Must(a.Plans())[0].Note(); note == "" {
		t.Error("20 references in more dimensions, and no word of shrinkage")
	}
	a.Workers = 1
	one := testkit.Must(a.Play(context.Background()))
	a.Workers = 3
	three := testkit.Must(a.Play(context.Background()))
	for i, v := range one[0].In {
		if three[0].In[i] != v {
			t.Fatalf("game %d: %v with one worker, %v with three", i, v, three[0].In[i])
		}
	}
	if v := testkit.Must(a.Judge(one, 0.01, 1e-3)); v.Refuted || !math.IsInf(v.Claim.Epsilon, 1) {
		t.Errorf("a run that claims nothing: %+v", v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.Play(ctx); err == nil {
		t.Error("a cancelled audit returned scores")
	}
}
