package experiment_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/privacy"
)

func budgetSearch() experiment.BudgetSearch {
	return experiment.BudgetSearch{Arms: []string{"0.7", "0.4", "0.4"},
		Policy: experiment.Policy{Policy: "adap-klucb"}, Horizon: 10_000, Runs: 200, Seed: 3,
		More: 0.5, From: 0.05, To: 50}
}

func TestBudgetSearch(t *testing.T) {
	ctx := context.Background()
	q := budgetSearch()
	told := 0
	q.Progress = func(experiment.BudgetProbe) { told++ }
	a, err := q.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !(0 < a.Low && a.Low < a.Epsilon && a.Epsilon <= a.High && a.High < 50) || !a.Falls ||
		told != len(a.Probes) || len(a.Grid) != 3*experiment.PerDecade+1 {
		t.Errorf("ε = %v in (%v, %v], %d of %d probes told", a.Epsilon, a.Low, a.High, told, len(a.Probes))
	}
	// Its runs are those of an experiment: the same means at the budgets that were probed.
	budgets := []privacy.Budget{privacy.None{}}
	for _, p := range a.Probes {
		budgets = append(budgets, privacy.Pure{Epsilon: p.Epsilon})
	}
	spec := experiment.Spec{Name: "check", Horizon: q.Horizon, Runs: q.Runs, Seed: q.Seed,
		Checkpoints: []keyed.Count{q.Horizon}, Budgets: budgets,
		Policies: []experiment.Policy{q.Policy}}
	for i := range 3 { // run i has the arms from the (i mod 3)-th on
		spec.Instances = append(spec.Instances, experiment.Instance{Name: "from " +
			string(rune('1'+i)), Laws: slices.Concat(q.Arms[i:], q.Arms[:i])})
	}
	plan, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Run(ctx, experiment.Options{Out: filepath.Join(t.TempDir(), "out")})
	if err != nil {
		t.Fatal(err)
	}
	runs := func(budget string) []float64 {
		out := make([]float64, q.Runs)
		for i := range out {
			k := slices.IndexFunc(r.Cells, func(c experiment.CellResult) bool {
				return c.Instance == spec.Instances[i%3].Name && c.Budget == budget
			})
			out[i] = r.Cells[k].FinalRegret[i]
		}
		return out
	}
	free := runs("none")
	if mean, _, _ := stats.Mean(free); mean != a.Free {
		t.Errorf("without privacy %v, an experiment has %v", a.Free, mean)
	}
	for _, p := range a.Probes {
		c := runs(privacy.Pure{Epsilon: p.Epsilon}.String())
		mean, _, _ := stats.Mean(c)
		if mean != p.Regret || math.Abs(p.Ratio-(mean/a.Free-1)) > 1e-9 {
			t.Errorf("ε = %v: %+v, an experiment has %v", p.Epsilon, p, mean)
		}
		// The verdict is a paired test against 1 + More times the regret without privacy.
		scaled := make([]float64, len(free))
		for j := range free {
			scaled[j] = (1 + q.More) * free[j]
		}
		test, err := stats.Paired(c, scaled)
		if err != nil {
			t.Fatal(err)
		}
		if told := p.Less || p.Greater; told && (test.P > 0.05/float64(len(a.Grid))*(1+1e-6) ||
			(test.Statistic < 0) != p.Less) || p.Less && p.Greater {
			t.Errorf("ε = %v: %+v, a paired test has %+v", p.Epsilon, p, test)
		}
	}
	// What the lower bounds say, by their definition.
	means := []float64{0.7, 0.4, 0.4}
	share := func(e float64) float64 {
		c, err := bound.BernoulliRegret(means, e)
		if err != nil {
			t.Fatal(err)
		}
		free, err := bound.BernoulliRegret(means, math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		return c/free - 1
	}
	if math.Abs(share(a.LowerEpsilon)-q.More) > 1e-6 ||
		math.Abs(share(a.Epsilon)-a.LowerRatio) > 1e-12 ||
		math.Abs(a.LowerFree-math.Log(0.7/0.4*0.6/0.3)) > 1e-12 {
		t.Errorf("lower bounds: %v, %v, %v", a.LowerEpsilon, a.LowerRatio, a.LowerFree)
	}
	// Answers do not depend on the workers.
	q = budgetSearch()
	q.Workers = 1
	again, err := q.Run(ctx)
	if err != nil || !reflect.DeepEqual(a, again) {
		t.Errorf("one worker: %+v, %v", again, err)
	}
}

func TestBudgetSearchAtTheEnds(t *testing.T) {
	q := budgetSearch()
	q.Runs, q.More = 50, 1e5 // any ε will do
	a, err := q.Run(context.Background())
	if err != nil || a.Epsilon != a.Grid[0] || a.Low != 0 || a.High != a.Grid[0] {
		t.Errorf("%+v, %v", a, err)
	}
	q.From, q.To, q.More = 0.01, 0.1, 0.1 // none will
	a, err = q.Run(context.Background())
	if err != nil || !math.IsInf(a.Epsilon, 1) || !math.IsInf(a.High, 1) ||
		a.Low != a.Grid[len(a.Grid)-1] || a.LowerRatio != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	if !slices.IsSorted(a.Grid) || a.Grid[0] != 0.01 || math.Abs(a.Grid[len(a.Grid)-1]-0.1) > 1e-15 {
		t.Errorf("grid %v", a.Grid)
	}
	// A policy that learns nothing is not free, also where the best arm is listed first
	// and has all ties.
	q = experiment.BudgetSearch{Arms: []string{"0.8", "0.3"}, Policy: q.Policy, Horizon: 10_000,
		Runs: 50, Seed: 1, More: 0.1, From: 0.001, To: 0.01}
	a, err = q.Run(context.Background())
	if err != nil || a.Low != a.Grid[len(a.Grid)-1] || !a.Falls {
		t.Errorf("%+v, %v", a, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := q.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestBudgetSearchErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*experiment.BudgetSearch)
		want   string
	}{
		{func(q *experiment.BudgetSearch) { q.More = 0 }, "share is 0"},
		{func(q *experiment.BudgetSearch) { q.More = math.NaN() }, "share is NaN"},
		{func(q *experiment.BudgetSearch) { q.From, q.To = 1, 0.1 }, "from 1 to 0.1"},
		{func(q *experiment.BudgetSearch) { q.Runs = 1 }, "runs is 1"},
		{func(q *experiment.BudgetSearch) { q.Workers = -1 }, "workers is -1"},
		{func(q *experiment.BudgetSearch) { q.Policy.Policy = "ucb" }, "not private"},
		{func(q *experiment.BudgetSearch) { q.Policy.Policy = "adac-ucb" }, "adac-ucb"},
		{func(q *experiment.BudgetSearch) { q.Policy.Policy = "nobody" }, "nobody"},
		{func(q *experiment.BudgetSearch) { q.Arms = []string{"0.5"} }, "arm"},
		{func(q *experiment.BudgetSearch) { q.Arms = []string{"0.5", "0.5"} }, "regret is 0"},
		{func(q *experiment.BudgetSearch) { q.Horizon = 2; q.Arms = []string{"0.5", "0.4", "0.4"} }, "horizon"},
	} {
		q := budgetSearch()
		c.change(&q)
		if _, err := q.Run(context.Background()); !errors.Is(err, experiment.ErrBudgetSearch) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
