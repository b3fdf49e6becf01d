package report_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/sotto-dp/sotto/internal/report"
)

func ExampleTable_WriteText() {
	c := report.Comparison{
		Title: "Regret at T = 10000000", Metric: "regret at T", Test: "paired t test", Correction: "Holm",
		Rows: []report.Row{
			{Instance: "mu2", Policy: "adap-klucb", Budget: "ε=1", Runs: 20, Mean: 1909, Half: 31,
				Ratio: 1, Best: true, Q05: 1664, Median: 1895, Q95: 2100, Bound: 15.4},
			{Instance: "mu2", Policy: "adap-ucb", Budget: "ε=1", Runs: 20, Mean: 2175, Half: 23,
				Ratio: 1.139, P: 2e-7, Q05: 1800, Median: 2176, Q95: 2438, Bound: 17.5},
			{Instance: "mu2", Policy: "dp-se", Budget: "ε=1", Runs: 20, Mean: 4300, Half: 52,
				Ratio: 2.252, P: 1e-9, Q05: 3171, Median: 4469, Q95: 4469},
		},
	}
	if err := c.Table().WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Regret at T = 10000000
	//
	// mu2
	//   policy      budget  regret at T  median   q95   ×LB  ratio  vs best
	//   adap-klucb  ε=1       1909 ± 31    1895  2100  15.4  1.00×  best
	//   adap-ucb    ε=1       2175 ± 23    2176  2438  17.5  1.14×  worse, p<0.001
	//   dp-se       ε=1       4300 ± 52    4469  4469     –  2.25×  worse, p<0.001
	//
	// ± half width of the 95 % interval of the mean; median and q95, the 95 % quantile, over runs; n = 20 runs a row
	// vs best: paired t test, p-values corrected by Holm; tested at 5 %
	// ×LB: over log T · Σ Δ_a/d_ε(μ_a, μ*), below which no consistent ε-DP policy stays as T grows; at this T it can
}

func ExampleFigure_WriteSVG() {
	f := report.Figure{
		ID: report.Stem("regret mu2"), Title: "Regret", XLabel: "round t", YLabel: "regret",
		LogX: true, LogY: true,
		Series: []report.Series{{Label: "adap-klucb", X: []float64{1, 10, 100},
			Mean: []float64{.3, 3, 20}, Lo: []float64{.2, 2, 15}, Hi: []float64{.4, 4, 25}}},
	}
	var b strings.Builder
	if err := f.WriteSVG(&b); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.ID, strings.HasPrefix(b.String(), "<svg "))
	// Output: regret-mu2 true
}

func ExamplePage_WriteHTML() {
	var b strings.Builder
	r := report.Page{Name: "quickstart", Warnings: []string{"rewards are not clipped: no privacy guarantee"}}
	if err := r.WriteHTML(&b); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(b.String(), "<p>rewards are not clipped: no privacy guarantee</p>"))
	// Output: true
}
