package stopping

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// The chance of a yes is the upper tail of a Laplace variate, on both sides; without noise it
// is a comparison.
func TestExceedsIsTheTail(t *testing.T) {
	for _, scale := range []float64{0.5, 3, 40} {
		law := distuv.Laplace{Scale: scale}
		for _, x := range []float64{-200, -7, -1, -1e-9, 0, 1e-9, 0.3, 5, 100} {
			if got, want := exceeds(scale, x), law.CDF(-x); math.Abs(got-want) > 1e-14*want {
				t.Errorf("P(Lap(%v) > %v) = %v, want %v", scale, x, got, want)
			}
		}
	}
	if exceeds(0, -1e-300) != 1 || exceeds(0, 0) != 0 || exceeds(0, 1) != 0 {
		t.Error("without noise, 0 exceeds what is below it, and nothing else")
	}
}

// Samples that are all alike, without noise: the rule stops at the first t with |X̄_t| ≥ h_t(1 +
// 1/α), h_t = R√((2/t)·log(H·k²/β)), whatever R is, and its answer is the sample, clipped. The
// windows of the simulation change nothing.
func TestConstantSamplesStopAtTheFirstQuestionAboveTheLevel(t *testing.T) {
	for _, c := range []struct {
		name    string
		law     string
		r, x    float64
		clipped bool
	}{
		{"nas", "table(1:1)", 1, 1, false}, {"nas", "table(2:1)", 3, 2, false},
		{"nas", "table(-0.2:1)", 0.25, -0.2, false},
		{"nas", "table(5:1)", 2, 2, true}, {"nas", "table(-5:1)", 2, -2, true},
		{"nas", "table(2:1)", 2, 2, false}, {"nas", "table(-2:1)", 2, -2, false},
		{"dp-nas", "table(2:1)", 3, 2, false}, {"dp-nas", "table(-5:1)", 4, -4, true},
		{"dp-exp-nas", "table(2:1)", 3, 2, false}, {"dp-exp-nas", "table(-5:1)", 4, -4, true},
		{"dp-exp-nas", "table(5:1)", 4, 4, true},
	} {
		const alpha, beta = 0.4, 0.02
		first, asked := 0, 0
		for first == 0 {
			asked++
			n, hoeffding := asked, 16.0
			if c.name == "dp-exp-nas" {
				n = int(math.Pow(2, float64(asked)))
			}
			if c.name == "nas" {
				hoeffding = 4
			}
			h := c.r * math.Sqrt(2/float64(n)*math.Log(hoeffding*float64(asked)*float64(asked)/beta))
			if math.Abs(c.x) >= h*(1+1/alpha) {
				first = n
			}
		}
		rule := newRuleOf(t, c.name, alpha, beta, math.Inf(1), c.r)
		got, err := simulate(context.Background(), rule, parse(t, c.law), 0,
			ptr(noise.NewFast(1, 1)), ptr(noise.NewFast(2, 2)))
		if err != nil {
			t.Fatal(err)
		}
		clipped := 0
		if c.clipped {
			clipped = first
		}
		if got.Samples != first || math.Abs(got.Estimate-c.x) > 1e-12*c.r || got.Clipped != clipped {
			t.Errorf("%s of %s in ±%v: %v after %d samples, %d clipped; want %v after %d, %d",
				c.name, c.law, c.r, got.Estimate, got.Samples, got.Clipped,
				c.x, first, clipped)
		}
		// The cap is the last sample that it may take.
		for limit, ends := range map[int]bool{first: true, first - 1: false} {
			_, err := simulate(context.Background(), rule, parse(t, c.law), limit,
				ptr(noise.NewFast(1, 1)), ptr(noise.NewFast(2, 2)))
			var unfinished *UnfinishedError
			if ends != (err == nil) || !ends && !(errors.As(err, &unfinished) && unfinished.Capped) {
				t.Errorf("%s of %s capped at %d, where it takes %d: %v", c.name, c.law, limit, first, err)
			}
		}
	}
}

// What the proof of [Sajed 2019, Theorem 4.1.3] needs, solved for t by bisection of its inequality
// in a program of its own.
func TestStopsAfterByWorkedNumbers(t *testing.T) {
	for _, c := range []struct{ alpha, beta, epsilon, r, mu, t float64 }{
		{0.3, 0.05, 0.7, 2, 0.5, 14346.237345556028},
		{0.6, 0.01, 2.5, 0.25, 0.2, 898.31900496672},
		{0.1, 0.08, 0.05, 1, 0.03, 4327543.297446824},
	} {
		rule := newRuleOf(t, "dp-exp-nas", c.alpha, c.beta, c.epsilon, c.r)
		if !rule.stopsAfter(c.t*(1+1e-10), c.mu) || rule.stopsAfter(c.t*(1-1e-10), c.mu) {
			t.Errorf("%+v: the rule stops at another time", c)
		}
	}
	// There is no question before two samples, however sure.
	if (Rule{alpha: 0.5, beta: 0.05, epsilon: math.Inf(1), r: 1}).stopsAfter(1.999, 1e9) {
		t.Error("the rule stops before its first question")
	}
}

// On fixed-point samples with exact noise the level is that of continuous ones with wider bounds:
// the step of the grid in each sample, and tails P(|x| > H·(log(1/p) + Log)) ≤ p of the noise.
func TestExactLevelsAreWider(t *testing.T) {
	const alpha, beta, epsilon = 0.3, 0.04, 0.8
	rule := newRuleOf(t, "dp-nas", alpha, beta, epsilon, 5)
	wide, err := rule.exact()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 10, 100_000, 1 << 40 >> 12} {
		k := float64(n)
		logs := math.Log(4 / beta)
		level := (math.Sqrt(2*k*math.Log(16*k*k/beta)) + k*release.ExactStep) * (1 + 1/alpha) / 2
		for i, p := range []float64{logs, math.Log(8 * k * k / beta), logs} {
			tail, err := release.ExactTail([]float64{6 / epsilon, 6 / epsilon, 2 / epsilon}[i])
			if err != nil {
				t.Fatal(err)
			}
			level += tail.H * (p + tail.Log) / []float64{1, 1, alpha}[i]
		}
		if got := wide.above(n, n); math.Abs(got-level) > 1e-13*level || !(got > rule.above(n, n)) {
			t.Errorf("after %d samples: %v, want %v, above %v", n, got, level, rule.above(n, n))
		}
	}
}

// Edges of parameters are where the comments say.
func TestEdgesOfParameters(t *testing.T) {
	for _, r := range []float64{1e-300, 1e300} {
		if _, err := newDPNAS(0.5, 0.5, 1, r); err != nil {
			t.Error(err)
		}
	}
	for _, epsilon := range []float64{0, -1, math.NaN()} {
		if _, err := newDPNAS(0.5, 0.5, epsilon, 1); err == nil {
			t.Errorf("epsilon %v passes", epsilon)
		}
	}
	edge := newRuleOf(t, "dp-exp-nas", 0.1, 0.08, 0.5, 2)
	for _, mu := range []float64{2, -2} { // |μ| = R
		if _, err := edge.UpperBound(mu); err != nil {
			t.Error(err)
		}
		if got, want := testkit.Must(edge.LowerBound(mu)),
			math.Log(12.5)/(12*0.5*0.1); math.Abs(got-want) > 1e-12*want {
			t.Errorf("lower bound %v, want %v", got, want)
		}
	}
	for _, mu := range []float64{0, math.NaN(), 2.0001, -3} {
		if x, err := edge.LowerBound(mu); err == nil {
			t.Errorf("a lower bound for a mean of %v: %v", mu, x)
		}
	}
	if _, err := newRuleOf(t, "dp-nas", 0.1, 0.25, 1, 1).LowerBound(0.5); err == nil {
		t.Error("a lower bound at beta = ¼")
	}
	if r := newRuleOf(t, "dp-exp-nas", 0.1, 0.05, 1, 1); r.after(20) != 1<<20 || r.after(64) < 1<<28 {
		t.Errorf("questions after %d and %d samples", r.after(20), r.after(64))
	}
}

// stoppingMass is the law of the stopping time of a rule that asks after every sample, on samples
// that are all x: given the threshold's noise b the questions are independent, and question t is a
// yes with probability P(A > level_t + b − t|x|/2R). It is averaged over b by the midpoint rule.
func stoppingMass(rule Rule, x float64, most int) []float64 {
	m := rule.Mechanism()
	law, query := distuv.Laplace{Scale: m.Threshold}, distuv.Laplace{Scale: m.Query}
	mass := make([]float64, most+1)
	const cells = 4000
	for i := range cells {
		const width = 60.0 / cells
		b := m.Threshold * (width*(float64(i)+0.5) - 30)
		left := law.CDF(b+m.Threshold*width/2) - law.CDF(b-m.Threshold*width/2)
		for t := 1; t <= most; t++ {
			gap := rule.above(t, t) + b - float64(t)*math.Abs(x)/(2*rule.r)
			p := query.CDF(-gap)
			mass[t] += left * p
			left *= 1 - p
		}
	}
	return mass
}

// Skipping over questions gives the stopping time its exact law: χ² over 40 cells at 10⁻⁶. A twin
// whose steps are two samples short is caught.
func TestSkippingHasTheExactLaw(t *testing.T) {
	for i, c := range []struct{ epsilon, r, x float64 }{{1, 1, 1}, {3, 2, -1.5}} {
		rule := newRuleOf(t, "dp-nas", 0.9, 0.2, c.epsilon, c.r)
		law := parse(t, fmt.Sprintf("table(%v:1)", c.x))
		const most, draws = 3000, 20_000
		mass := stoppingMass(rule, c.x, most)
		var ends []int // cells of a fortieth each
		var want []float64
		sum, last := 0.0, 0.0
		for n, p := range mass {
			if sum += p; sum-last >= 1.0/40 && 1-sum > 1.0/40 {
				ends, want, last = append(ends, n), append(want, (sum-last)*draws), sum
			}
		}
		want = append(want, (1-last)*draws)
		if 1-sum > 1e-6 || len(ends) < 20 {
			t.Fatalf("%d: mass %v, %d cells", i, sum, len(ends))
		}
		seen, short := make([]float64, len(want)), make([]float64, len(want))
		above, below := 0.0, 0.0 // samples, by the sign of the threshold's noise
		for run := range draws {
			s, own := noise.NewFast(uint64(run), 7), noise.NewFast(uint64(run), 8)
			threshold := own
			positive := threshold.Laplace(rule.Mechanism().Threshold) > 0
			n := testkit.Must(simulate(context.Background(), rule, law, 0, &s, &own)).Samples
			seen[sort.SearchInts(ends, n)]++
			short[sort.SearchInts(ends, n-2)]++
			if positive {
				above += float64(n) / draws
			} else {
				below += float64(n) / draws
			}
		}
		if p := chiSquare(seen, want); p < 1e-6 {
			t.Errorf("%d: χ² p-value %v", i, p)
		}
		if p := chiSquare(short, want); p > 1e-6 {
			t.Errorf("%d: steps that are two short pass: %v", i, p)
		}
		if !(above > below) {
			t.Errorf("%d: a higher threshold stops sooner: %v, %v", i, above, below)
		}
	}
}

func chiSquare(seen, want []float64) float64 {
	x := 0.0
	for i := range seen {
		x += (seen[i] - want[i]) * (seen[i] - want[i]) / want[i]
	}
	return distuv.ChiSquared{K: float64(len(seen) - 1)}.Survival(x)
}

// A rule that stops at once is often wrong: each outcome says so by its own estimate, and
// the study counts.
func TestOutcomesJudgeTheirEstimates(t *testing.T) {
	rule := newRuleOf(t, "dp-exp-nas", 0.3, 0.2, 4, 5)
	rule.hoeffding = 0.21
	rule.noise = [3]privacy.Tail{}
	s := testkit.Must(StudyConfig{Rule: rule, Law: parse(t, "table(2:1)"), Runs: 400, Seed: 3,
		Workers: 2}.Run(context.Background()))
	failures := 0
	for i, o := range s.Outcomes {
		d := math.Abs(o.Estimate - 2)
		if !o.Finished || math.Abs(o.Error-d/2) > 1e-12 || o.Failed != (d > 0.6) {
			t.Fatalf("run %d: %+v", i, o)
		}
		if o.Failed {
			failures++
		}
	}
	if s.Failures != failures || failures < 100 || failures > 399 {
		t.Errorf("%d failures, counted %d", failures, s.Failures)
	}
}

// One run is a study, and its row has the shortest decimals that read back as the numbers.
func TestStudyOfOneRun(t *testing.T) {
	rule := newRuleOf(t, "dp-nas", 0.3, 0.04, 2.5, 1.25)
	s := testkit.Must(StudyConfig{Rule: rule, Law: parse(t, "table(1:1)"), Runs: 1,
		Seed: 3}.Run(context.Background()))
	var b strings.Builder
	if err := s.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	o := s.Outcomes[0]
	rows := strings.Split(b.String(), "\n")
	want := fmt.Sprintf("0.3,0.04,2.5,1.25,0,%d,%v,%v,true,false", o.Samples, o.Estimate, o.Error)
	if len(rows) != 3 || !strings.HasSuffix(rows[1], want) {
		t.Errorf("%q, want …%s", b.String(), want)
	}
	if _, err := (StudyConfig{Rule: rule, Law: parse(t, "table(1:1)"),
		Runs: 0}).Run(context.Background()); err == nil {
		t.Error("no run is a study")
	}
}

// A countdown is a context that is cancelled when it has been asked so often.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A rule looks for Ctrl-C before it begins, and within long batches too; it then says which sample
// it was at, and what was spent on the questions.
func TestRulesStopWhenCancelled(t *testing.T) {
	samples := make([]float64, 1<<18)
	for _, name := range Names() {
		rule := newRuleOf(t, name, 0.5, 1e-7, 1, 1)
		if _, err := Run(&countdown{context.Background(), 0}, rule, samples[:100],
			Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s began: %v", name, err)
		}
		s, own := noise.NewFast(1, 1), noise.NewFast(1, 2)
		if _, err := simulate(&countdown{context.Background(), 0}, rule, parse(t, "table(0:1)"),
			1<<20, &s, &own); !errors.Is(err, context.Canceled) {
			t.Errorf("%s simulated: %v", name, err)
		}
	}
	// Questions after 2, 4, …, 65536 samples; of the next batch, 65535 are read before it looks.
	_, err := Run(&countdown{context.Background(), 1}, newRuleOf(t, "dp-exp-nas", 0.5, 1e-7, 1, 1),
		samples, Options{})
	if want := "dp-exp-nas: sample 131072: context canceled; no estimate is released; ε = 0.5, "; !errors.Is(err,
		context.Canceled) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s…", err, want)
	}
}

func TestCancelledStudy(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := StudyConfig{Rule: newRuleOf(t, "dp-nas", 0.3, 0.04, 2.5, 1), Law: parse(t, "table(1:1)"),
		Runs: 8, Seed: 3, Workers: 2}
	if s, err := c.Run(ctx); !errors.Is(err, context.Canceled) || s != nil {
		t.Errorf("a cancelled study: %v", err)
	}
}
