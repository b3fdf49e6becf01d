package stopping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

func parse(t testing.TB, text string) bandit.Law { return testkit.Must(bandit.ParseLaw(text)) }

func newRuleOf(t testing.TB, name string, alpha, beta, epsilon, r float64) Rule {
	t.Helper()
	return testkit.Must(New(name, alpha, beta, epsilon, r))
}

// reference is [Sajed 2019, Algorithms 3, 7 and 8], written from their pseudo-code on samples in
// [−R,R], one sample at a time. The noise has the print's scales, from draws of Lap(1).
func reference(name string, alpha, beta, epsilon, r float64, x []float64, b float64, a []float64,
	l float64) (estimate float64, samples int) {
	s1, s2, s3 := 12*r/epsilon, 12*r/epsilon, 4*r/epsilon
	mean, t, k, asked := 0.0, 0, 0.0, 0
	for {
		var h, c float64
		switch name {
		case "nas":
			t++
			mean += (x[t-1] - mean) / float64(t)
			n := float64(t)
			if math.Abs(mean) >= r*math.Sqrt(2/n*math.Log(4*n*n/beta))*(1+1/alpha) {
				return mean, t
			}
			continue
		case "dp-nas":
			t++
			mean += (x[t-1] - mean) / float64(t)
			n := float64(t)
			h = r * math.Sqrt(2/n*math.Log(16*n*n/beta))
			c = s1*math.Log(4/beta) + s2*math.Log(8*n*n/beta) + s3/alpha*math.Log(4/beta)
		case "dp-exp-nas":
			k++
			for t != 1<<int(k) {
				t++
				mean += (x[t-1] - mean) / float64(t)
			}
			c = s1*math.Log(4/beta) + s2*math.Log(8*k*k/beta) + s3/alpha*math.Log(4/beta)
			h = r * math.Sqrt(2/float64(t)*math.Log(16*k*k/beta))
		}
		n := float64(t)
		// Algorithm 4 adds a question's noise to the query, Algorithm 7 to the threshold:
		// one law, two signs.
		if math.Abs(mean) >= h*(1+1/alpha)+(c+b*s1-a[asked]*s2)/n {
			return mean + l*s3/n, t
		}
		asked++
	}
}

func TestRulesAgainstReference(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(120) {
		rnd := rand.New(rand.NewPCG(seed, 31))
		name := Names()[seed%3]
		alpha, beta, epsilon := 0.2+0.7*rnd.Float64(), math.Exp(-5*rnd.Float64()-1), math.Exp(2*rnd.Float64())
		r := math.Exp(6*rnd.Float64() - 3)
		mu := 0.5 + 0.4*rnd.Float64()
		if seed%2 == 0 {
			mu = -mu
		}
		const most = 1 << 16
		x := make([]float64, most)
		for i := range x {
			if x[i] = -r; rnd.Float64() < (1+mu)/2 {
				x[i] = r
			}
		}
		// The curator draws the threshold's noise first, then one a question, then the sum's: the
		// test draws the same.
		s := noise.NewFast(seed, 5)
		b := s.Laplace(1)
		a := make([]float64, most)
		for i := range a {
			a[i] = s.Laplace(1)
		}
		rule := newRuleOf(t, name, alpha, beta, epsilon, r)
		cur := testkit.Must(release.Simulated(release.Config{Arms: 1, Lo: -r, Hi: r,
			Mechanism: rule.Mechanism()}, ptr(noise.NewFast(seed, 5))))
		next := 0
		got, err := run(ctx, rule, cur, 0, func(n int) (int, error) {
			for range n {
				if err := cur.Add(0, x[next]); err != nil {
					return 0, err
				}
				next++
			}
			return n, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// The sum's noise is the draw after the questions'.
		l := a[got.Questions]
		want, samples := reference(name, alpha, beta, epsilon, r, x, b, a, l)
		if got.Samples != samples || math.Abs(got.Estimate-want) > 1e-9*r {
			t.Fatalf("seed %d, %v: %v after %d samples, want %v after %d", seed, rule, got.Estimate,
				got.Samples, want, samples)
		}
		if loss := got.Loss.Pure(); rule.Private() && math.Abs(loss-epsilon) > 1e-12*epsilon ||
			!rule.Private() && !math.IsInf(loss, 1) {
			t.Errorf("%v costs %v", rule, loss)
		}
	}
}

func ptr[T any](x T) *T { return &x }

// By hand: samples all 1, R = 1, α = ½, β = 0.05. NAS stops when √t ≥ 3√(2 log(80t²)): t = 282 has
// 16.793 ≥ 16.792, and t = 281 has 16.763 < 16.789.
func TestNASByHand(t *testing.T) {
	const first = 282
	got := testkit.Must(simulate(context.Background(), newRuleOf(t, "nas", 0.5, 0.05, 0, 1),
		parse(t, "table(1:1)"), 0, ptr(noise.NewFast(1, 1)), ptr(noise.NewFast(2, 2))))
	if got.Samples != first || got.Estimate != 1 {
		t.Errorf("%v after %d samples, want 1 after %d", got.Estimate, got.Samples, first)
	}
	// Question 3 of DP exponential NAS, t = 8, ε = 2: ½·3·√(16 log(2880)) + 3 log 80 + 3 log 1440 +
	// 2 log 80, in samples mapped to [0,1].
	rule := newRuleOf(t, "dp-exp-nas", 0.5, 0.05, 2, 7)
	want := 1.5*math.Sqrt(16*math.Log(2880)) + 3*math.Log(80) + 3*math.Log(1440) + 2*math.Log(80)
	if got := rule.above(3, 8); math.Abs(got-want) > 1e-12 || math.Abs(got-60.66) > 0.01 {
		t.Errorf("level %v, want %v", got, want)
	}
	if m := rule.Mechanism(); m.Threshold != 3 || m.Query != 3 || m.Scale != 1 ||
		math.Abs(m.Loss().Pure()-2) > 1e-15 {
		t.Errorf("mechanism %v", m)
	}
}

// Skipping has the law of one question a sample: stopping times of both, Kolmogorov's two-sample
// test at 10⁻⁷ (300 × 300 runs), and their means within 5.2 standard errors.
func TestSkippingHasTheSameLaw(t *testing.T) {
	ctx := context.Background()
	for i, c := range []struct {
		law            string
		alpha, epsilon float64
	}{{"table(-1:0.05,1:0.95)", 0.9, 2}, {"uniform(-1,-0.4)", 0.9, 8}, {"bernoulli(0.9)", 0.8, 0.5}} {
		rule, law := newRuleOf(t, "dp-nas", c.alpha, 0.1, c.epsilon, 1), parse(t, c.law)
		var fast, slow []float64
		for run := range 300 {
			s, own := noise.NewFast(uint64(run), 1), noise.NewFast(uint64(run), 2)
			fast = append(fast, float64(testkit.Must(simulate(ctx, rule, law, 0, &s, &own)).Samples))
			s, own = noise.NewFast(uint64(run), 3), noise.NewFast(uint64(run), 4)
			slow = append(slow, float64(testkit.Must(plainly(ctx, rule, law, &s, &own)).Samples))
		}
		if d, limit := twoSample(fast, slow), math.Sqrt(math.Log(2/1e-7)/300); d > limit {
			t.Errorf("%d: distance %.3f, above %.3f", i, d, limit)
		}
		mf, sf := moments(fast)
		ms, ss := moments(slow)
		if z := math.Abs(mf-ms) / math.Hypot(sf, ss) * math.Sqrt(300); z > 5.2 {
			t.Errorf("%d: mean %.1f by skipping, %.1f plainly: %.1f standard errors", i, mf, ms, z)
		}
		t.Logf("%s: mean %.1f by skipping, %.1f plainly", c.law, mf, ms)
	}
}

// plainly asks the curator after every sample.
func plainly(ctx context.Context, rule Rule, law bandit.Law, s, own *noise.Fast) (Result, error) {
	cur, err := release.Simulated(release.Config{Arms: 1, Lo: -rule.r, Hi: rule.r,
		Mechanism: rule.Mechanism()}, own)
	if err != nil {
		return Result{}, err
	}
	return run(ctx, rule, cur, 0, func(n int) (int, error) {
		for range n {
			if err := cur.Add(0, law.Draw(s)); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

func moments(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, math.Sqrt(sd)
}

func twoSample(a, b []float64) float64 {
	slices.Sort(a)
	slices.Sort(b)
	d, i, j := 0.0, 0, 0
	for i < len(a) && j < len(b) {
		x := min(a[i], b[j])
		for i < len(a) && a[i] == x {
			i++
		}
		for j < len(b) && b[j] == x {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return d
}

// fiveLaws are on [−1,1].
var fiveLaws = []string{"bernoulli(0.3)", "table(-1:0.3,1:0.7)", "uniform(-0.2,0.8)", "beta(2,3)",
	"clipped-gaussian(-0.4,0.3,-1,1)"}

// The rules keep their word: at most β of the runs are wrong. With 300 runs and β = 0.05 a rule
// that failed with probability β would show 38 failures or more (z > 6) with probability below
// 10⁻⁶; the rules are careful and hardly ever fail.
func TestRulesKeepTheirWord(t *testing.T) {
	for _, name := range Names() {
		for _, law := range fiveLaws {
			rule := newRuleOf(t, name, 0.25, 0.05, 1, 1)
			s := testkit.Must(StudyConfig{Rule: rule, Law: parse(t, law), Runs: 300,
				Seed: 1}.Run(context.Background()))
			if s.Failures > 37 || s.Unfinished > 0 {
				t.Errorf("%s on %s: %d failures, %d unfinished", name, law, s.Failures, s.Unfinished)
			}
			if s.Clipped != 0 {
				t.Errorf("%s on %s: %d clipped", name, law, s.Clipped)
			}
			upper := testkit.Must(rule.UpperBound(s.Mean))
			lower := testkit.Must(rule.LowerBound(s.Mean))
			if name != "nas" && !(lower < s.Samples05 && s.Samples95 < upper) {
				t.Errorf("%s on %s: samples from %v to %v, bounds %v and %v", name, law,
					s.Samples05, s.Samples95, lower, upper)
			}
		}
	}
}

// A rule that stops too early is caught: the one for α = 0.9, taken for one for α = 0.05, is wrong
// far more often than the 37 times of 300 that TestRulesKeepTheirWord allows.
func TestHastyTwinIsCaught(t *testing.T) {
	for _, name := range Names() {
		s := testkit.Must(StudyConfig{Rule: newRuleOf(t, name, 0.9, 0.05, 1, 1),
			Law: parse(t, "table(-1:0.45,1:0.55)"), Runs: 300, Seed: 1}.Run(context.Background()))
		wrong := 0
		for _, o := range s.Outcomes {
			if o.Error > 0.05 {
				wrong++
			}
		}
		if wrong <= 37 {
			t.Errorf("%s: %d of 300 runs are wrong: the check would not see it", name, wrong)
		}
	}
}

// Worked numbers of [Sajed 2019, Theorems 4.1.3 and 4.2.1].
func TestBounds(t *testing.T) {
	// R = 1, α = 0.1, β = 0.05, ε = 0.5, μ = 0.2: log(R/αμ) = log 50 = 3.91202, ℓ = log(78.2405) =
	// 4.35979, log 20 = 2.99573; t₀ = 4.35979/4·10⁻⁴ = 10899.5, t₁ = 43.598, t₂ = 299.573.
	rule := newRuleOf(t, "dp-exp-nas", 0.1, 0.05, 0.5, 1)
	for _, mu := range []float64{0.2, -0.2} {
		if got := testkit.Must(rule.UpperBound(mu)); math.Abs(got-2000*(10899.48+43.5979+299.5732)) > 200 {
			t.Errorf("upper bound %v", got)
		}
		if got := testkit.Must(rule.LowerBound(mu)); math.Abs(got-24.96444) > 1e-4 {
			t.Errorf("lower bound %v", got)
		}
	}
	// In other units nothing changes.
	other := newRuleOf(t, "dp-exp-nas", 0.1, 0.05, 0.5, 1000)
	if a, b := testkit.Must(rule.UpperBound(0.2)),
		testkit.Must(other.UpperBound(200)); math.Abs(a-b) > 1e-6*a {
		t.Errorf("%v and %v", a, b)
	}
	free := newRuleOf(t, "dp-exp-nas", 0.1, 0.05, math.Inf(1), 1)
	if got := testkit.Must(free.UpperBound(0.2)); math.Abs(got-2000*10899.48) > 100 {
		t.Errorf("without privacy %v", got)
	}
	if got := testkit.Must(free.LowerBound(0.2)); got != 0 {
		t.Errorf("without privacy %v", got)
	}
	for _, bad := range []struct {
		r    Rule
		mean float64
	}{{rule, 0}, {rule, 2}, {rule, math.NaN()}, {newRuleOf(t, "dp-nas", 0.1, 0.3, 1, 1), 0.5},
		{newRuleOf(t, "dp-nas", 0.99, 0.05, 1, 1), 1}} {
		if x, err := bad.r.UpperBound(bad.mean); err == nil {
			t.Errorf("%v: %v", bad, x)
		}
	}
	if x, err := newRuleOf(t, "dp-nas", 0.1, 0.3, 1, 1).LowerBound(0.5); err == nil {
		t.Errorf("%v", x)
	}
}

// The theorem's event implies its time: with every noise at the edge of [Sajed 2019]'s event,
// and |X̄_t| = |μ| − h_t, the first power of two above t_U/2 has the halting condition. Over a
// grid of parameters.
func TestUpperBoundHolds(t *testing.T) {
	for _, alpha := range []float64{0.01, 0.1, 0.5, 0.9, 0.92, 0.98} {
		for _, beta := range []float64{1e-6, 0.01, 0.08} {
			for _, epsilon := range []float64{0.01, 0.3, 1, 10, 1e6} {
				for _, mu := range []float64{1e-4, 0.01, 0.3, 0.9, 1} {
					rule := newRuleOf(t, "dp-exp-nas", alpha, beta, epsilon, 1)
					upper, err := rule.UpperBound(mu)
					if err != nil {
						continue
					}
					k := int(math.Floor(math.Log2(upper)))
					n, x := math.Ldexp(1, k), float64(k)
					h := math.Sqrt(2 / n * math.Log(16*x*x/beta))
					// B + A_t
					worst := 12/epsilon*math.Log(4/beta) + 12/epsilon*math.Log(8*x*x/beta)
					if mu-h < (2*rule.above(k, 1<<k)+worst)/n {
						t.Errorf("%v at mean %v: not at 2^%d, t_U = %v", rule, mu, k, upper)
					}
				}
			}
		}
	}
}

// Real data, exact noise: the guarantee with β = 10⁻⁷ is the test's false-alarm probability.
func TestRunOnRealData(t *testing.T) {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(1, 1))
	data := make([]float64, 1<<18)
	for i := range data {
		if data[i] = -3; rnd.Float64() < 0.9 {
			data[i] = 5
		}
	}
	data[7], data[8] = 1e300, math.Inf(-1) // clipped to ±5
	for _, name := range Names() {
		ledger := privacy.NewLedger()
		rule := newRuleOf(t, name, 0.25, 1e-7, 1, 5)
		got, err := Run(ctx, rule, data, Options{Ledger: ledger})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Estimate-4.2) > 0.25*4.2+0.05 || got.Samples < 100 || got.Clipped != 0 {
			t.Errorf("%s: %+v, want about 4.2", name, got)
		}
		if loss := ledger.Total().Pure(); rule.Private() != (loss <= 1 && loss > 0.999) {
			t.Errorf("%s costs %v", name, loss)
		}
		t.Logf("%s: %.4f after %d samples", name, got.Estimate, got.Samples)
	}
	// A cap of the ledger: no answer beyond it.
	if _, err := Run(ctx, newRuleOf(t, "dp-exp-nas", 0.5, 0.1, 1, 5), data,
		Options{Ledger: privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.3}))}); !errors.Is(err,
		privacy.ErrBudget) {
		t.Errorf("under a cap: %v", err)
	}
}

func TestUnfinished(t *testing.T) {
	ctx := context.Background()
	rule := newRuleOf(t, "dp-exp-nas", 0.1, 0.05, 1, 1)
	for _, c := range []struct {
		n, limit int
		capped   bool
		spent    float64
		mention  string
	}{
		{100, 0, false, 0.5, "ended after 100 samples"}, {100, 50, true, 0.5, "cap of 50 samples"},
		{1, 0, false, 0, "nothing has been spent"},
		{0, 0, false, 0, "ended after 0 samples"}, {100, 1, true, 0, "cap of 1 samples"},
		{100, 100, true, 0.5, "cap of 100"}, {64, 100, false, 0.5, "after 64"},
	} {
		_, err := Run(ctx, rule, make([]float64, c.n), Options{Cap: c.limit})
		var u *UnfinishedError
		if !errors.As(err, &u) || !errors.Is(err, ErrUnfinished) || u.Capped != c.capped ||
			math.Abs(u.Spent.Pure()-c.spent) > 1e-6 || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%+v: %v", c, err)
		}
		if c.spent > 0 && !strings.Contains(err.Error(), "ε = 0.5, the half for the questions") ||
			!strings.Contains(err.Error(), "no estimate is released") {
			t.Errorf("%v", err)
		}
	}
	// A mean of 0: no rule stops.
	for _, name := range Names() {
		rule := newRuleOf(t, name, 0.5, 0.01, 1, 1)
		s := testkit.Must(StudyConfig{Rule: rule, Law: parse(t, "table(-1:0.5,1:0.5)"), Runs: 20,
			Cap: 1_000_000, Seed: 3}.Run(ctx))
		if s.Unfinished != 20 || s.Outcomes[0].Samples != 1_000_000 || !math.IsNaN(s.SamplesMean) {
			t.Errorf("%s: %d of 20 unfinished, %+v", name, s.Unfinished, s.Outcomes[0])
		}
	}
	// A sample that is no number counts as one at the lower end: it ends nothing.
	for _, x := range []float64{math.NaN(), math.Inf(-1)} {
		var unfinished *UnfinishedError
		if _, err := Run(ctx, rule, []float64{1, 1, x, 1}, Options{}); !errors.As(err,
			&unfinished) || unfinished.Samples != 4 {
			t.Errorf("%v: %v", x, err)
		}
	}
	if _, err := Run(ctx, rule, nil, Options{Cap: -1}); err == nil {
		t.Error("a negative cap")
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := Run(stopped, rule, make([]float64, 10), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := (StudyConfig{Rule: newRuleOf(t, "nas", 0.5, 0.1, 1, 1), Law: parse(t, "0.5"),
		Runs: 4}).Run(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestClippingIsCounted(t *testing.T) {
	// Half of the samples are at 2 and become 1; the mean of the clipped law is ¾.
	for _, name := range Names() {
		rule := newRuleOf(t, name, 0.3, 0.01, 1, 1)
		s := testkit.Must(StudyConfig{Rule: rule, Law: parse(t, "table(0.5:0.5,2:0.5)"),
			Runs: 20, Seed: 1, Workers: 2}.Run(context.Background()))
		samples := 0
		for _, o := range s.Outcomes {
			samples += o.Samples
		}
		if s.Mean != 0.75 || s.Failures > 0 ||
			math.Abs(float64(s.Clipped)-float64(samples)/2) > 6*math.Sqrt(float64(samples))/2 {
			t.Errorf("%s: mean %v, %d failures, %d of %d clipped", name, s.Mean, s.Failures, s.Clipped, samples)
		}
	}
}

func TestStudiesRepeat(t *testing.T) {
	var text [3]bytes.Buffer
	for i, workers := range []int{1, 3, 0} {
		s := testkit.Must(StudyConfig{Rule: newRuleOf(t, "dp-nas", 0.5, 0.05, 1, 1),
			Law: parse(t, "0.5"), Runs: 7, Seed: 5, Workers: workers}.Run(context.Background()))
		if err := s.WriteCSV(&text[i]); err != nil {
			t.Fatal(err)
		}
	}
	if text[0].String() != text[1].String() || text[0].String() != text[2].String() {
		t.Error("results depend on the number of workers")
	}
	lines := strings.Split(strings.TrimSpace(text[0].String()), "\n")
	if len(lines) != 8 || lines[0] != "rule,law,alpha,beta,epsilon,range,run,samples,estimate,error,finished,failed" ||
		!strings.HasPrefix(lines[1], "dp-nas,bernoulli(0.5),0.5,0.05,1,1,0,") {
		t.Errorf("%q", lines)
	}
	for _, bad := range []StudyConfig{{Rule: newRuleOf(t, "nas", 0.5, 0.1, 1, 1), Runs: 1},
		{Law: parse(t, "0.5"), Rule: newRuleOf(t, "nas", 0.5, 0.1, 1, 1)},
		{Law: parse(t, "0.5"), Rule: newRuleOf(t, "nas", 0.5, 0.1, 1, 1), Runs: 1, Workers: -1},
		{Law: parse(t, "beta(2,2)"), Rule: newRuleOf(t, "nas", 0.5, 0.1, 1, 0.5), Runs: 1}} {
		if _, err := bad.Run(context.Background()); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

func TestBadRules(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name                    string
		alpha, beta, epsilon, r float64
		mention                 string
	}{
		{"dp-nas", 0, 0.1, 1, 1, "alpha is 0"}, {"dp-nas", 1, 0.1, 1, 1, "alpha is 1"},
		{"nas", nan, 0.1, 1, 1, "alpha is NaN"}, {"dp-nas", 0.1, 0, 1, 1, "beta is 0"},
		{"dp-exp-nas", 0.1, 1, 1, 1, "beta is 1"}, {"dp-nas", 0.1, -0.5, 1, 1, "beta is -0.5"},
		{"dp-nas", 0.1, 0.1, 0, 1, "epsilon is 0"},
		{"dp-nas", 0.1, 0.1, nan, 1, "epsilon is NaN"},
		{"dp-nas", 0.1, 0.1, -1, 1, "epsilon is -1"}, {"dp-nas", 0.1, 0.1, 1e-310, 1, "too small"},
		{"dp-nas", 0.1, 0.1, 1, 0, "range is 0"}, {"nas", 0.1, 0.1, 1, -1, "range is -1"},
		{"nas", 0.1, 0.1, 1, inf, "range is +Inf"}, {"nas", 0.1, 0.1, 1, nan, "range is NaN"},
		{"nsa", 0.1, 0.1, 1, 1, `rule "nsa"`},
	} {
		if _, err := New(c.name, c.alpha, c.beta, c.epsilon, c.r); err == nil ||
			!strings.Contains(err.Error(), c.mention) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := Run(context.Background(), newRuleOf(t, "dp-nas", 0.1, 0.1, 1e-9, 1), nil,
		Options{}); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("noise beyond the grid: %v", err)
	}
}

func Example() {
	rule, err := newDPExponentialNAS(0.25, 0.05, 1, 1)
	if err != nil {
		panic(err)
	}
	law, err := bandit.ParseLaw("bernoulli(0.4)")
	if err != nil {
		panic(err)
	}
	samples, own := noise.NewFast(1, 1), noise.NewFast(1, 2)
	r, err := simulate(context.Background(), rule, law, 0, &samples, &own)
	fmt.Printf("%.2f after %d samples, %v, %v\n", r.Estimate, r.Samples, r.Loss, err)
	// Output:
	// 0.40 after 8192 samples, epsilon=1, <nil>
}

func BenchmarkSimulate(b *testing.B) {
	law := parse(b, "bernoulli(0.3)")
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			rule := newRuleOf(b, name, 0.1, 0.05, 1, 1)
			s, own := noise.NewFast(1, 1), noise.NewFast(1, 2)
			samples := 0
			for b.Loop() {
				samples += testkit.Must(simulate(context.Background(), rule, law, 0, &s, &own)).Samples
			}
			b.ReportMetric(float64(samples)/float64(b.N), "samples/run")
		})
	}
}
