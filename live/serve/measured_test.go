package serve

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/privacy"
)

// Metrics are measured in their own units, all at the risk of one table; the control is declared, also when
// it was taken off, and has no difference. What is measured is kept until there is another release.
func TestMeasured(t *testing.T) {
	decl := parse(t, with("metrics: [{name: basket, range: [-20, 200], budget: {epsilon: 0.25}}, "+
		"{name: pages, range: [0, 9], default: 1, budget: {epsilon: 0.5}}]\nfallback: blue\nexposure: retract"))
	info := Info{Experiment: decl, Metrics: [][]float64{{30, 90}, {20, 0}}, measured: &measuring[Measures]{},
		Arms: []ArmInfo{{Released: 100, Releases: 2, Sum: 30}, {Released: 300, Releases: 3, Sum: 90, Off: true}}}
	m := info.Measured()
	if m.Control != "blue" || m.Confidence != interval.Confidence || len(m.Each) != 2 ||
		!strings.Contains(m.Says, "of all 2 metrics") || !strings.Contains(m.Says, "probability 95\u202f%") ||
		!strings.Contains(m.Says, "retracted does not go by its metrics.") {
		t.Fatalf("%+v", m)
	}
	of := func(a int) interval.Sums {
		return interval.Sums{N: info.Arms[a].Released, Releases: info.Arms[a].Releases, Sum: info.Metrics[0][a],
			Noise: privacy.Laplace{Scale: 4}}
	}
	row := interval.Controlled{Arms: len(decl.Arms), Lo: -20, Hi: 200, Risk: 0.05 / 2}
	mean, less := -20+220*0.3, 0.0
	want := Measure{Name: "basket", Range: [2]float64{-20, 200}, Budget: "epsilon=0.25", Arms: []MeasuredArm{
		{"red", 100, -20*100 + 220*30, &mean, row.Mean(of(0)), &less, row.Difference(of(0), of(1)), nil},
		{"blue", 300, -20*300 + 220*90, &mean, row.Mean(of(1)), nil, nil, nil}}}
	got := m.Each[0]
	if got.Arms[0].Difference == nil || math.Abs(*got.Arms[0].Difference) > 1e-9 {
		t.Fatalf("%+v", got)
	}
	got.Arms[0].Difference = &less
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, must be %+v", got, want)
	}
	if info.Measured() != m {
		t.Error("it is measured again")
	}
	later := info
	later.Arms = []ArmInfo{info.Arms[0], {Released: 400, Releases: 4, Off: true}}
	if again := later.Measured(); again == m || again.Each[0].Arms[1].Released != 400 {
		t.Error("it is not measured again")
	}
	if again := info.Measured(); again.Each[0].Arms[1].Released != 300 { // by who looked before the release
		t.Errorf("%+v", again)
	}
	// nothing is known before the first release, and there is nothing without metrics
	info.Arms, info.Metrics = make([]ArmInfo, 2), [][]float64{{0, 0}, {0, 0}}
	if got := info.Measured().Each[0].Arms[0]; got != (MeasuredArm{Arm: "red"}) {
		t.Errorf("%+v", got)
	}
	if plain := (Info{Experiment: parse(t, shop), Arms: make([]ArmInfo, 2)}); plain.Measured() != nil {
		t.Error("it has metrics")
	}
}

// In joint batches a difference is Effect's, by the share of an arm beside that of the control, and all is of averages.
func TestMeasuredOfAnABTest(t *testing.T) {
	decl := parse(t, strings.Replace(named("ab", "policy: {policy: split}", "shares: {red: 0.6, blue: 0.4}",
		"metrics: [{name: basket, range: [0, 200], budget: {epsilon: 0.5}}]"), "floor: 0.1\n", "", 1))
	info := Info{Experiment: decl, Metrics: [][]float64{{180, 90}}, measured: &measuring[Measures]{}, Arms: []ArmInfo{
		{Released: 600, Releases: 2}, {Released: 400, Releases: 2}}}
	m := info.Measured()
	of := func(n int, sum float64) interval.Sums {
		return interval.Sums{N: n, Releases: 2, Sum: sum, Noise: privacy.Laplace{Scale: 2}}
	}
	row := interval.Controlled{Arms: 2, Hi: 200, Risk: 0.05}
	got, want := m.Each[0].Arms[1].DifferenceInterval, row.Effect(of(400, 90), of(600, 180), 0.4)
	if got == nil || *got != *want || *got == *row.Difference(of(400, 90), of(600, 180)) || !strings.Contains(m.Says, "averages so far") {
		t.Errorf("%v, must be %v: %s", got, want, m.Says)
	}
}
