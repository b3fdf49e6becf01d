package report_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sotto-dp/sotto/internal/report"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	draw   = flag.String("draw", "", "a directory to draw the samples into, to look at them")
)

// regret is a curve like those of the field: it grows linearly until the policy has learnt, then
// with the logarithm.
func regret(label string, final, power float64, void bool) report.Series {
	s := report.Series{Label: label, Policy: label, Budget: "ε=1", Void: void}
	for i := range 200 {
		t := math.Round(math.Pow(1e7, float64(i)/199))
		if n := len(s.X); n > 0 && t <= s.X[n-1] {
			continue
		}
		mean := min(0.25*t, final*math.Pow(math.Log(t+1)/math.Log(1e7), power))
		half := mean * (0.02 + 0.1/math.Sqrt(1+t/100))
		s.X, s.Mean = append(s.X, t), append(s.Mean, mean)
		s.Lo, s.Hi = append(s.Lo, mean-half), append(s.Hi, mean+half)
		s.Q05, s.Q50, s.Q95 = append(s.Q05, mean*.9), append(s.Q50, mean*.99), append(s.Q95, mean*1.12)
	}
	return s
}

func regrets() report.Figure {
	return report.Figure{
		ID: "regret-mu2", Title: "Regret on mu2, ε = 1", Subtitle: "Bernoulli arms 0.75, 0.625, " +
			"0.5, 0.375, 0.25",
		XLabel: "round t", YLabel: "regret", LogX: true, LogY: true,
		Series: []report.Series{
			regret("AdaP-KLUCB", 1909, 2, false), regret("AdaP-UCB", 2175, 2.1, false),
			regret("DP-SE", 4300, 1.5, false),
			regret("DP-UCB", 26340, 3, false), regret("KL-UCB", 150, 1.3, false),
		},
		Note: "Mean of 20 runs; bands are 95 % intervals of the mean.",
	}
}

func budgets() report.Figure {
	f := report.Figure{
		ID: "budget-mu2", Title: "Price of privacy on mu2", Subtitle: "regret at T = 10 000 000",
		XLabel: "ε", YLabel: "regret at T", LogX: true, LogY: true,
		Note: "Mean of 20 runs; bands are 95 % intervals of the mean.",
	}
	for i, name := range []string{"AdaP-KLUCB", "AdaP-UCB", "DP-SE"} {
		s := report.Series{Label: name, Policy: name, Void: i == 1}
		for _, e := range []float64{.05, .1, .25, .5, 1, 2, 4} {
			m := 400 + float64(i+1)*1500/e
			s.X, s.Mean, s.Lo, s.Hi = append(s.X, e), append(s.Mean, m), append(s.Lo, m*.93),
				append(s.Hi, m*1.07)
		}
		f.Series = append(f.Series, s)
	}
	return f
}

func table() report.Comparison {
	nan := math.NaN()
	return report.Comparison{
		Title: "Regret at T = 10000000", Metric: "regret at T", Test: "paired t test against the " +
			"best row of the instance", Correction: "Holm",
		Rows: []report.Row{
			{Instance: "mu2", Policy: "AdaP-KLUCB", Budget: "ε=1", Runs: 20, Mean: 1909.2,
				Half: 31.4, Ratio: 1, Best: true, P: nan, Q05: 1801, Median: 1903, Q95: 2055},
			{Instance: "mu2", Policy: "AdaP-UCB", Budget: "ε=1", Runs: 20, Mean: 1921, Half: 23,
				Ratio: 1.006, P: .314, Q05: 1840, Median: 1922, Q95: 2011},
			{Instance: "mu2", Policy: "DP-SE", Budget: "ε=1", Runs: 20, Mean: 4300, Half: 52,
				Ratio: 2.2524, P: 3e-9, Q05: 4100, Median: 4290, Q95: 4520},
			{Instance: "mu2", Policy: "DP-UCB", Budget: "ε=1", Runs: 20, Mean: 26340, Half: 42,
				Ratio: 13.797, P: 0, Void: true, Q05: 26200, Median: 26333, Q95: 26480},
			{Instance: "mu1", Policy: "KL-UCB", Budget: "none", Runs: 20, Mean: 85.26, Half: .562,
				Ratio: 1, Best: true, P: nan, Q05: nan, Median: nan, Q95: nan},
			{Instance: "mu1", Policy: "UCB", Budget: "none", Runs: 20, Mean: 452.4, Half: 1.07,
				Ratio: 5.306, P: .0123, Q05: nan, Median: nan, Q95: nan},
		},
	}
}

func page() report.Page {
	return report.Page{
		Name: "quickstart", Version: "sotto v0.1.0", Description: "Five private and non-private " +
			"policies on the arms of the sources.",
		Facts: []report.Fact{{Name: "horizon", Value: "10 000 000"}, {Name: "runs", Value: "20"},
			{Name: "seed", Value: "1"}},
		Spec: "name: quickstart\nhorizon: 10_000_000\n",
		Warnings: []string{"adap-klucb: alpha = 3 is not above 3: its regret bound [Azize 2024, " +
			"Theorem 5.10] does not hold."},
		Tables: []report.Table{table().Table()}, Figures: []report.Figure{regrets(), budgets()},
	}
}

// extremes are figures that are hard to draw.
func extremes() []report.Figure {
	crowd := report.Figure{ID: "crowd", Title: "Twenty lines that end together, with a title so " +
		"long that it has to be broken over two lines and then ends",
		Subtitle: "linear axes", XLabel: "round t", YLabel: "regret", Note: "n"}
	for i := range 20 {
		s := regret(fmt.Sprintf("Policy number %d with a label that goes on and on", i),
			2000+5*float64(i), 2, i%5 == 0)
		crowd.Series = append(crowd.Series, s)
	}
	point := report.Figure{ID: "point", Title: "One point", XLabel: "ε", YLabel: "regret",
		LogX: true, LogY: true,
		Series: []report.Series{{Label: "alone", X: []float64{1}, Mean: []float64{250},
			Lo: []float64{200}, Hi: []float64{300}},
			{Label: "nothing", X: []float64{1}, Mean: []float64{0}}}}
	constant := report.Figure{ID: "constant", Title: "Constant", XLabel: "t", YLabel: "y",
		Series: []report.Series{{Label: "level", X: []float64{1, 2, 3}, Mean: []float64{7, 7, 7}},
			{Label: "<script>alert(1)</script>", X: []float64{1, 2, 3}, Mean: []float64{7, 7, 7}}}}
	zeros := report.Figure{ID: "zeros", Title: "Zeros at first, a gap, a band below zero",
		XLabel: "t", YLabel: "y", LogX: true, LogY: true,
		Series: []report.Series{{Label: "late", X: []float64{0, 1, 2, 5, 10, 20, 50, 100, 1000},
			Mean: []float64{0, 0, 0, 1, 3, math.NaN(), 4, 9, 12},
			Lo:   []float64{0, 0, 0, -1, 0, 1, 3, 8, 11}, Hi: []float64{0, 0, 0, 3, 5, 6, 5, 10, 13}}}}
	narrow := report.Figure{ID: "narrow", Title: "Less than a decade", XLabel: "t", YLabel: "y",
		LogX: true, LogY: true,
		Series: []report.Series{{Label: "a", X: []float64{1000, 2000, 4000},
			Mean: []float64{1.90e6, 1.95e6, 2.05e6}}}}
	return []report.Figure{crowd, point, constant, zeros, narrow}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDraw draws the samples for the eye: go test -run Draw -draw DIR.
func TestDraw(t *testing.T) {
	if *draw == "" {
		t.Skip("no -draw")
	}
	for _, f := range append(extremes(), regrets(), budgets()) {
		write(t, filepath.Join(*draw, f.ID+".svg"), svg(t, f))
	}
	write(t, filepath.Join(*draw, "report.html"), html(t, page()))
}
