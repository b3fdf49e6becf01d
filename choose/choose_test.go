package choose_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/choose"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

func standard(t testing.TB) bandit.Source {
	in, err := bandit.Standard(2, 5)
	if err != nil {
		t.Fatal(err)
	}
	return bandit.Fixed(in)
}

func names(list ...string) []choose.Candidate {
	var out []choose.Candidate
	for _, n := range list {
		out = append(out, choose.Candidate{Policy: n})
	}
	return out
}

// Every private policy of the catalog that meets the budget is ranked, or left out with a reason;
// those without privacy are not ranked.
func TestTheCatalogIsTheField(t *testing.T) {
	for _, b := range []privacy.Budget{privacy.Pure{Epsilon: 1}, privacy.ZCDP{Rho: 0.1},
		privacy.Approx{Epsilon: 1, Delta: 1e-6}, privacy.Renyi{Alpha: 8, Epsilon: 1}} {
		a, err := choose.Rank(t.Context(), choose.Question{Source: standard(t), Budget: b,
			Horizon: 2000, MinRuns: 4, MaxRuns: 4, Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		place := map[string]string{}
		for _, r := range a.Rows {
			place[r.Policy] = "ranked"
		}
		for _, r := range a.References {
			place[r.Policy] = "reference"
		}
		for _, l := range a.Left {
			place[l.Policy] = "left"
		}
		for _, e := range catalog.Policies() {
			want := "ranked"
			switch {
			case !e.Private:
				want = "reference"
			case e.Meets(b) != nil, !e.Plain(), e.Name == catalog.AutoPolicy: // what it picks is ranked
				want = "left"
			}
			if place[e.Name] != want {
				t.Errorf("%s at %s is %s, want %s", e.Name, b, place[e.Name], want)
			}
		}
	}
}

func TestAnswersDoNotDependOnWorkers(t *testing.T) {
	prior, err := bandit.NewUniformMeans(3, 0.25, 0.75, bandit.BernoulliFamily(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []bandit.Source{standard(t), prior} {
		q := choose.Question{Source: src, Budget: privacy.Pure{Epsilon: 1}, Horizon: 5000,
			Policies: names("adap-klucb", "adap-ucb", "dp-se", "ucb"), MinRuns: 32, MaxRuns: 256, Workers: 1}
		one, err := choose.Rank(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		q.Workers = 5
		five, err := choose.Rank(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(one, five); d != "" {
			t.Error(d)
		}
		for i, r := range one.Rows {
			if (r.First == "") != (i == 0) || i == 1 && r.First != one.Verdicts[0] {
				t.Errorf("place %d: %q against the first", i+1, r.First)
			}
		}
		if n := len(one.Against(choose.Better)) + len(one.Against(choose.Tie)) +
			len(one.Against(choose.Unsettled)); n != len(one.Rows)-1 {
			t.Errorf("%d policies are against the first of %d", n, len(one.Rows))
		}
		q.Seed = 2
		if other, err := choose.Rank(t.Context(), q); err != nil ||
			cmp.Equal(one.Rows[0].Mean, other.Rows[0].Mean) {
			t.Errorf("another seed, the same answer: %v", err)
		}
	}
}

// A run of a question is the same run of an experiment, so that the command which an answer
// names repeats it.
func TestRunsAreThoseOfAnExperiment(t *testing.T) {
	prior, err := bandit.NewUniformMeans(3, 0.25, 0.75, bandit.BernoulliFamily(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []bandit.Source{standard(t), prior} {
		params := catalog.Params{"alpha": 2}
		a, err := choose.Rank(t.Context(), choose.Question{Source: src,
			Budget: privacy.Pure{Epsilon: 1}, Horizon: 5000, Seed: 7, MinRuns: 8, MaxRuns: 8,
			Policies: []choose.Candidate{{Policy: "adap-klucb"},
				{Policy: "adap-ucb", Params: params}, {Policy: "kl-ucb"}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiment.Run(t.Context(), &experiment.Spec{Name: "same", Horizon: 5000, Runs: 8,
			Seed: 7, Points: 1,
			Instances: []experiment.Instance{{Name: "world", Source: src}},
			Budgets:   []privacy.Budget{privacy.Pure{Epsilon: 1}},
			Policies: []experiment.Policy{{Policy: "adap-klucb"},
				{Policy: "adap-ucb", Name: "adap-ucb (alpha=2)", Params: params}, {Policy: "kl-ucb"}}},
			experiment.Options{Out: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, row := range append(a.Rows, a.References...) {
			for _, cell := range r.Cells {
				if cell.Policy != row.Policy {
					continue
				}
				seen++
				// Sums in another order: the last bits may differ.
				if mean, _, _ := stats.Mean(cell.FinalRegret); math.Abs(mean-row.Mean) > 1e-9*mean {
					t.Errorf("%s: %v, and %v in an experiment", row.Policy, row.Mean, mean)
				}
			}
		}
		if seen != 3 {
			t.Errorf("%d policies compared", seen)
		}
	}
}

func TestRewardsOutOfRangeAreClipped(t *testing.T) {
	law, err := bandit.ParseLaw("gaussian(0.9,0.1)")
	if err != nil {
		t.Fatal(err)
	}
	low, err := bandit.ParseLaw("0.5")
	if err != nil {
		t.Fatal(err)
	}
	in, err := bandit.NewInstance(law, low)
	if err != nil {
		t.Fatal(err)
	}
	a, err := choose.Rank(t.Context(), choose.Question{Source: bandit.Fixed(in),
		Budget: privacy.Pure{Epsilon: 1}, Horizon: 1000, Policies: names("adap-ucb", "dp-se"),
		MinRuns: 16, MaxRuns: 16})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Warnings) == 0 || !strings.Contains(a.Warnings[0], "clipped") {
		t.Errorf("warnings %q", a.Warnings)
	}
}

// Three arms in cents of which the dearest sells least often. In [0,1] a sale is a sale, so the arm
// that sells most often looks best.
func cents(t *testing.T) bandit.Source {
	t.Helper()
	log := "arm,reward\n" + strings.Repeat("a,0\n", 70) + strings.Repeat("a,1000\n", 30) +
		strings.Repeat("b,0\n", 80) + strings.Repeat("b,4000\n", 20) + strings.Repeat("c,0\n", 65) +
		strings.Repeat("c,250\n", 35)
	in, _, err := bandit.ReadCSV(strings.NewReader(log), logged.Format{})
	if err != nil {
		t.Fatal(err)
	}
	return bandit.Fixed(in)
}

// A range that turns the arms round, or that nobody declared, recommends nothing.
func TestNothingIsRecommendedWhereClippingTurnsTheArms(t *testing.T) {
	q := choose.Question{Source: cents(t), Budget: privacy.Pure{Epsilon: 1}, Horizon: 20_000,
		Policies: names("adap-klucb", "dp-imed"), MinRuns: 16, MaxRuns: 16}
	if _, err := choose.Rank(t.Context(), q); !errors.Is(err, choose.ErrQuestion) ||
		!strings.Contains(err.Error(), "no range is declared") {
		t.Errorf("no range: %v", err)
	}
	const split = 20_000 * (500 + 712.5) / 3 // means are 300, 800 and 87.5
	for _, test := range []struct {
		hi      float64
		refused string
	}{{1, "changes which arm is best"}, {250, "changes which arm is best"}, {4000, ""}, {2000, ""}} {
		q.Hi = test.hi
		a, err := choose.Rank(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if (a.Refused == "") != (test.refused == "") || !strings.Contains(a.Refused, test.refused) {
			t.Errorf("[0, %v]: refused %q", test.hi, a.Refused)
		}
		if math.Abs(a.EqualSplit-split) > 1e-6*split {
			t.Errorf("an equal split has %v, want %v", a.EqualSplit, split)
		}
		if want := test.hi < 4000; strings.Contains(a.Regret, "before clipping") != want {
			t.Errorf("[0, %v]: regret is %s", test.hi, a.Regret)
		}
	}
}

// A prior over two instances, of which clipping to [0,1] turns one.
type sometimes struct{}

func (sometimes) Redrawn() bool  { return true }
func (sometimes) String() string { return "sometimes" }
func (sometimes) Instance(s *noise.Fast) (bandit.Instance, error) {
	texts := []string{"table(0:0.5,0.75:0.5)", "table(0:0.75,1:0.25)"} // means 0.375, 0.25
	if s.Uint64()%8 == 0 {
		texts[1] = "table(0:0.75,2:0.25)" // 0.5, clipped 0.25
	}
	var laws []bandit.Law
	for _, text := range texts {
		l, err := bandit.ParseLaw(text)
		if err != nil {
			return bandit.Instance{}, err
		}
		laws = append(laws, l)
	}
	return bandit.NewInstance(laws...)
}

// On instances that are redrawn, one in which clipping turns the arms is enough.
func TestClippingOfAPriorIsLookedAtRunByRun(t *testing.T) {
	for hi, refused := range map[float64]bool{1: true, 2: false} {
		a, err := choose.Rank(t.Context(), choose.Question{Source: sometimes{},
			Budget: privacy.Pure{Epsilon: 1}, Horizon: 500, Lo: 0, Hi: hi,
			Policies: names("dp-imed"), MinRuns: 64, MaxRuns: 64})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(a.Refused, "clipping") != refused {
			t.Errorf("[0, %v]: %q", hi, a.Refused)
		}
		if !(a.EqualSplit > 31 && a.EqualSplit < 63) { // 500 rounds, half of a gap of 0.125 in both
			t.Errorf("an equal split has %v", a.EqualSplit)
		}
	}
}

// The first of a ranking may lose more than an equal split does: at this budget every index ties,
// and the arm that is listed first is played.
func TestNothingIsRecommendedThatAnEqualSplitBeats(t *testing.T) {
	in, err := bandit.BernoulliInstance(0.2, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	q := choose.Question{Source: bandit.Fixed(in), Budget: privacy.Pure{Epsilon: 0.001},
		Horizon: 1000, Policies: names("adap-klucb"), MinRuns: 16, MaxRuns: 16}
	a, err := choose.Rank(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(a.EqualSplit-300) > 1e-9 || !(a.Use().Mean > 300) ||
		!strings.Contains(a.Refused, "equally often") {
		t.Errorf("%v against %v: %q", a.Use().Mean, a.EqualSplit, a.Refused)
	}
	// Of all pairs that are not settled one warning tells.
	many := choose.Question{Source: bandit.Fixed(in), Budget: privacy.Pure{Epsilon: 0.01},
		Horizon: 100, MinRuns: 16, MaxRuns: 16,
		Policies: names("dp-ucb", "dp-ucb-thesis", "dp-ucb-anytime", "lazy-dp-ts")}
	if a, err := choose.Rank(t.Context(), many); err != nil ||
		strings.Count(strings.Join(a.Warnings, "\n"), "are not settled") != 1 ||
		!strings.Contains(strings.Join(a.Warnings, "\n"), "; ") {
		t.Errorf("%q, %v", a.Warnings, err)
	}
	// DP-SE cannot begin: it is an equal split. Nor is a lead of chance a reason.
	for _, policy := range []string{"dp-se", "lazy-dp-ts"} {
		q := choose.Question{Source: bandit.Fixed(in), Budget: privacy.Pure{Epsilon: 0.01},
			Horizon: 100, Policies: names(policy), MinRuns: 64, MaxRuns: 64}
		if a, err := choose.Rank(t.Context(), q); err != nil ||
			!strings.Contains(a.Refused, "is not shown to be better") {
			t.Errorf("%s: %v ± %v against %v: %q, %v", policy, a.Use().Mean, a.Use().Half,
				a.EqualSplit, a.Refused, err)
		}
	}
	q.Budget = privacy.Pure{Epsilon: 1}
	if a, err = choose.Rank(t.Context(), q); err != nil || a.Refused != "" {
		t.Errorf("%v, %q", err, a.Refused)
	}
}

func TestBadQuestions(t *testing.T) {
	good := choose.Question{Source: standard(t), Budget: privacy.Pure{Epsilon: 1}, Horizon: 1000}
	for _, test := range []struct {
		want string
		mend func(*choose.Question)
	}{
		{"source is missing", func(q *choose.Question) { q.Source = nil }},
		{"number of arms is 0", func(q *choose.Question) { q.Source = bandit.Fixed{} }},
		{"budget is missing", func(q *choose.Question) { q.Budget = nil }},
		{"budget is none", func(q *choose.Question) { q.Budget = privacy.None{} }},
		{"epsilon is NaN", func(q *choose.Question) { q.Budget = privacy.Pure{Epsilon: math.NaN()} }},
		{"horizon is 0", func(q *choose.Question) { q.Horizon = 0 }},
		{"horizon is 3, below the number of arms, 5", func(q *choose.Question) { q.Horizon = 3 }},
		{"range is [1, 0]", func(q *choose.Question) { q.Lo = 1 }},
		{"level is 1,", func(q *choose.Question) { q.Level = 1 }},
		{"level is NaN", func(q *choose.Question) { q.Level = math.NaN() }},
		{"resolution is -1", func(q *choose.Question) { q.Resolution = -1 }},
		{"risk is 0.4", func(q *choose.Question) { q.Risk = 0.4 }},
		{"risk is 1", func(q *choose.Question) { q.Risk = 1 }},
		{"risk is NaN", func(q *choose.Question) { q.Risk = math.NaN() }},
		{"wants a level of risk", func(q *choose.Question) { q.ByRisk = true }},
		{"strict trusts none", func(q *choose.Question) { q.Risk, q.ByRisk, q.Strict = 0.9, true, true }},
		{"min runs is 1", func(q *choose.Question) { q.MinRuns = 1 }},
		{"max runs is -1", func(q *choose.Question) { q.MaxRuns = -1 }},
		{"max runs is 10000001", func(q *choose.Question) { q.MaxRuns = 10_000_001 }},
		{"min runs is 9, above max runs, 8", func(q *choose.Question) { q.MinRuns, q.MaxRuns = 9, 8 }},
		{"effort is -1", func(q *choose.Question) { q.Effort = -1 }},
		{"time is -1s", func(q *choose.Question) { q.Time = -time.Second }},
		{"workers is -1", func(q *choose.Question) { q.Workers = -1 }},
		{`did you mean "dp-se"`, func(q *choose.Question) { q.Policies = names("dp-sx") }},
		{"cannot meet epsilon=1", func(q *choose.Question) { q.Policies = names("adac-ucb") }},
		{"given twice", func(q *choose.Question) { q.Policies = names("dp-se", "dp-se") }},
		{"no policy meets", func(q *choose.Question) { q.Policies = names("ucb") }},
		{"alpha is -1", func(q *choose.Question) {
			q.Policies = []choose.Candidate{{Policy: "adap-ucb", Params: catalog.Params{"alpha": -1}}}
		}},
	} {
		q := good
		test.mend(&q)
		if _, err := choose.Rank(t.Context(), q); !errors.Is(err, choose.ErrQuestion) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := choose.Question{Source: standard(t), Budget: privacy.Pure{Epsilon: 1}, Horizon: 1000,
		Policies: names("adap-ucb", "dp-se"), MinRuns: 16,
		Progress: func(choose.Progress) { cancel() }}
	if _, err := choose.Rank(ctx, q); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := choose.Rank(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func ExampleRank() {
	in, err := bandit.BernoulliInstance(0.75, 0.625, 0.5, 0.375, 0.25)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := choose.Rank(context.Background(), choose.Question{
		Source: bandit.Fixed(in), Budget: privacy.Pure{Epsilon: 1}, Horizon: 100_000,
		Policies: names("adap-klucb", "adap-ucb", "dp-se"), MinRuns: 64,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, r := range a.Rows {
		if i > 0 {
			fmt.Println(" is", a.Verdicts[i-1], "than")
		}
		fmt.Print(r.Policy)
	}
	fmt.Println()
	fmt.Println(a.Settled, a.Use().Policy)
	// Output:
	// adap-klucb is better than
	// adap-ucb is better than
	// dp-se
	// true adap-klucb
}

// Where rewards come late, policies that cannot be played live are left out with the reason, and
// runs are those of an experiment with the same delay.
func TestDelay(t *testing.T) {
	law := sim.DelayLaw{Window: 500, Law: sim.DelayGeometric, Mean: 100, Missing: 0.2}
	q := choose.Question{Source: standard(t), Budget: privacy.Pure{Epsilon: 1}, Horizon: 5000, Seed: 7,
		MinRuns: 4, MaxRuns: 4, Reference: true, Delay: law}
	a, err := choose.Rank(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]string{}
	for _, l := range a.Left {
		left[l.Policy] = l.Why
	}
	for policy, why := range map[string]string{"dp-ucb": "outlives", "dp-se-2": "sparse",
		"ucb":            "without noise",
		"dp-se-doubling": "starts afresh"} {
		if !strings.Contains(left[policy], why) {
			t.Errorf("%s is left out as %q, want %q", policy, left[policy], why)
		}
	}
	if a.Delay != law.String() || len(a.References) != 0 || len(a.Rows) < 6 {
		t.Errorf("%q, %d rows, %d references", a.Delay, len(a.Rows), len(a.References))
	}
	spec := experiment.Spec{Name: "same", Horizon: 5000, Runs: 4, Seed: 7, Points: 1, Delay: law,
		Instances: []experiment.Instance{{Name: "world", Source: q.Source}},
		Budgets:   []privacy.Budget{q.Budget}}
	for _, r := range a.Rows {
		spec.Policies = append(spec.Policies, experiment.Policy{Policy: r.Candidate.Policy, Name: r.Policy, Params: r.Candidate.Params})
	}
	r, err := experiment.Run(t.Context(), &spec, experiment.Options{Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range a.Rows {
		if mean, _, _ := stats.Mean(r.Cells[i].FinalRegret); math.Abs(mean-row.Mean) > 1e-9*mean {
			t.Errorf("%s: %v, and %v in an experiment", row.Policy, row.Mean, mean)
		}
	}
	q.Policies = names("dp-klucb", "dp-ucb")
	if _, err := choose.Rank(t.Context(), q); !errors.Is(err, choose.ErrQuestion) ||
		!strings.Contains(err.Error(), "policy dp-ucb where rewards come late") {
		t.Error(err)
	}
	q.Delay.Missing = 1
	if _, err := choose.Rank(t.Context(), q); !errors.Is(err, choose.ErrQuestion) ||
		!strings.Contains(err.Error(), "missing of the delay is 1") {
		t.Error(err)
	}
}
