package verdict

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

// normal are games of a Gaussian mechanism of μ = 1; rounded scores have ties.
func normal(src *noise.Fast, games int, rounded bool) audit.Scores {
	var s audit.Scores
	for range games {
		in, out := src.Normal()+1, src.Normal()
		if rounded {
			in, out = math.Round(in), math.Round(out)
		}
		s.In, s.Out = append(s.In, in), append(s.Out, out)
	}
	return s
}

// power is that of the best threshold test of a significance, of those games.
func power(alpha float64, rounded bool) float64 {
	law := distuv.UnitNormal
	if !rounded {
		return law.CDF(1 + law.Quantile(alpha))
	}
	best := 0.0
	for t := -9.5; t < 10; t++ {
		if law.Survival(t) <= alpha {
			best = max(best, law.Survival(t-1))
		}
	}
	return best
}

// cells are the ends of the cells of axes.
func cells(log bool) []float64 {
	if log {
		return audit.LogGrid(0.01, rocCells+1)
	}
	linear := make([]float64, rocCells+1)
	for i := range linear {
		linear[i] = float64(i) / rocCells
	}
	return linear
}

// missed says whether a band of a step function misses the true curve anywhere, also
// between its points.
func missed(s report.Series, rounded bool) bool {
	for i, a := range s.X {
		if truth := power(a, rounded); truth < s.Lo[i] || truth > s.Hi[i] {
			return true
		}
		if i+1 < len(s.X) && power(math.Nextafter(s.X[i+1], 0), rounded) > s.Hi[i] {
			return true
		}
	}
	return false
}

// The band has all of the true curve in it, at the level: 80 times at 80 %, with and without ties,
// on both kinds of axes. More than 35 misses have a probability below 1e-6 if each has at most one
// of 0.2. Intervals of the power alone, as the twin has, miss somewhere nearly always.
func TestROCBandCovers(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, rounded := range []bool{false, true} {
		for _, log := range []bool{false, true} {
			src, misses, twins := noise.NewFast(88, 1), 0, 0
			for range 80 {
				scores := normal(&src, 400, rounded)
				s, err := rocLine(namedScores{"a", scores}, cells(log), 0.8)
				if err != nil {
					t.Fatal(err)
				}
				if missed(s, rounded) {
					misses++
				}
				if missed(counted(t, scores, cells(log), 0.8), rounded) {
					twins++
				}
			}
			t.Logf("rounded %v, log %v: %d of 80 miss, of the twin's %d", rounded, log, misses, twins)
			if misses > 35 {
				t.Errorf("rounded %v, log %v: %d of 80 bands miss", rounded, log, misses)
			}
			if twins <= 35 {
				t.Errorf("rounded %v, log %v: only %d of 80 of the twin's bands miss: the check is too weak",
					rounded, log, twins)
			}
		}
	}
}

// counted is the twin: at each significance the interval of the power of the test that has it among
// the games, as if that were its true one, and each by itself.
func counted(t *testing.T, s audit.Scores, grid []float64, level float64) report.Series {
	t.Helper()
	points, err := s.Curve(grid, level)
	if err != nil {
		t.Fatal(err)
	}
	out := report.Series{X: grid}
	for _, p := range points {
		m, err := s.At(max(p.Threshold, -1e9), level)
		if err != nil {
			t.Fatal(err)
		}
		out.Lo, out.Hi = append(out.Lo, m.Power.Lo), append(out.Hi, m.Power.Hi)
	}
	return out
}

// A ROC curve is the step function of the threshold tests, its band is around it, and
// neither ever falls.
func TestROCIsSteps(t *testing.T) {
	for _, rounded := range []bool{false, true} {
		src := noise.NewFast(88, 2)
		scores := normal(&src, 3000, rounded)
		points, err := scores.ROC()
		if err != nil {
			t.Fatal(err)
		}
		for _, log := range []bool{false, true} {
			s, err := rocLine(namedScores{"a", scores}, cells(log), 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if !s.Step || len(s.X) < rocCells || len(s.X) > 3*rocSteps {
				t.Errorf("%d points, step %v", len(s.X), s.Step)
			}
			for i, a := range s.X {
				best := 0.0
				for _, p := range points {
					if p.TypeI <= a {
						best = p.Power
					}
				}
				if s.Mean[i] != best {
					t.Fatalf("power %v at %v, the tests have %v", s.Mean[i], a, best)
				}
				if !(s.Lo[i] <= best && best <= s.Hi[i]) {
					t.Errorf("at %v the band [%v, %v] is not around %v", a, s.Lo[i], s.Hi[i], best)
				}
			}
			for _, v := range [][]float64{s.X, s.Mean, s.Lo, s.Hi} {
				if !slices.IsSorted(v) {
					t.Errorf("falls: %v", v)
				}
			}
		}
	}
}

// The axes are those on which the test that bounds ε is seen: linear where it has many false
// alarms, logarithmic where it has few, and for the power too where that is small. A tied score's
// band is no wider than its tests.
func TestROCAxes(t *testing.T) {
	src := noise.NewFast(88, 3)
	toss := func(p float64) float64 {
		if src.Bernoulli(p) {
			return 1
		}
		return 0
	}
	coin := func(in, out float64) (s audit.Scores) {
		for range 20_000 {
			s.In, s.Out = append(s.In, toss(in)), append(s.Out, toss(out))
		}
		return s
	}
	for _, c := range []struct {
		in, out    float64
		logX, logY bool
	}{{0.6, 0.2, false, false}, {0.6, 0.001, true, false}, {0.03, 0.001, true, true}} {
		s := coin(c.in, c.out)
		f, err := rocPlot{id: "roc", all: []namedScores{{"coin", s}}, claim: 1, low: 0.9, gamma: 0.05,
			curve: func(float64) (float64, error) { return 1, nil }}.figure()
		if err != nil {
			t.Fatal(err)
		}
		if f.LogX != c.logX || f.LogY != c.logY {
			t.Errorf("coins %v and %v: axes are logarithmic: %v, %v", c.in, c.out, f.LogX, f.LogY)
		}
		var labels []string
		for _, s := range f.Series {
			labels = append(labels, s.Label)
		}
		want := []string{"coin", "limit of the claim", "limit of ε = 0.9, audited", "chance"}
		if !slices.Equal(labels, want) {
			t.Errorf("lines %v, want %v", labels, want)
		}
		line := f.Series[0]
		for i, next := range line.X[1:] {
			if next < c.out/2 && line.Hi[i] > 0.01 {
				t.Errorf("coins %v and %v: band up to %v at %v", c.in, c.out, line.Hi[i], line.X[i])
			}
		}
	}
}

// The curve of an audit's page is the band of its scores, drawn where it is finite, and written whole.
func TestCurve(t *testing.T) {
	src := noise.NewFast(7, 1)
	s := normal(&src, 5000, false)
	claim := func(float64) (float64, error) { return math.Inf(1), nil }
	var p Page
	if err := p.draw(report.Figure{ID: "roc"}, s, 2, 0.1, claim); err != nil {
		t.Fatal(err)
	}
	band, err := s.Band(0.05) // one of two attacks
	if err != nil {
		t.Fatal(err)
	}
	low, high := band.Mu()
	if p.Curve.Mu != [2]float64{low, high} || !(low < 1 && 1 < high) {
		t.Errorf("μ from %v to %v, want %v to %v", p.Curve.Mu[0], p.Curve.Mu[1], low, high)
	}
	finite := 0
	for _, r := range p.Curve.Rows {
		low, high, err := band.Epsilon(r.Delta)
		if err != nil || r.Low != low || r.High != high || !math.IsInf(r.Claimed, 1) {
			t.Errorf("%+v, want %v to %v and no claim: %v", r, low, high, err)
		}
		if !math.IsInf(high, 1) {
			finite++
		}
	}
	f := p.Figures[1]
	if len(p.Figures) != 2 || len(f.Series) != 2 || len(f.Series[0].X) != 24 || len(f.Series[1].X) != finite ||
		finite == 0 || finite == 24 {
		t.Errorf("%d figures, series %+v, %d are finite", len(p.Figures), f.Series, finite)
	}
	if lines := bytes.Count(p.Curve.csv(), []byte("\n")); lines != 25 {
		t.Errorf("%d lines", lines)
	}
	for want, c := range map[string]Curve{"if the errors": {Mu: [2]float64{1, 2}},
		"too few games":    {Mu: [2]float64{0, math.Inf(1)}},
		"no Gaussian pair": {Mu: [2]float64{2, 1}}} {
		if got := c.gaussian(); !strings.Contains(got, want) {
			t.Errorf("%v: %q has no %q", c.Mu, got, want)
		}
	}
}

// Each finding that claims something has a row, in figures that fit a page of paper: its interval is over
// its claim, and a verdict that must not be is marked.
func TestForests(t *testing.T) {
	var rows []Row
	for i := range 45 {
		rows = append(rows, Row{Finding: audit.Finding{Name: fmt.Sprint("own ", i), Claimed: 2, Low: 1,
			Estimate: 1.5, High: math.Inf(1)}})
	}
	rows = append(rows, Row{Finding: audit.Finding{Name: "false", Claimed: 2, Low: 3, High: 4, Refuted: true}},
		Row{Finding: audit.Finding{Name: "copy", Claimed: 1, Low: 1.1, High: 2, Refuted: true}, Twin: true},
		Row{Finding: audit.Finding{Name: "missed", Claimed: 1, Low: 0.1, High: 2}, Twin: true},
		Row{Finding: audit.Finding{Name: "none", Claimed: math.Inf(1), Low: 9, High: 10}})
	var got []string
	all := 0
	for _, f := range forests(rows) {
		got = append(got, f.ID)
		for _, r := range f.Forest.Rows {
			all++
			if wrong := r.Name == "false" || r.Name == "missed"; r.Wrong != wrong || r.Name == "none" {
				t.Errorf("%s: wrong is %v", r.Name, r.Wrong)
			}
			if r.Name == "own 44" && (r.Lo != 0.5 || r.Mid != 0.75 || r.Text != "1.000 of 2.000") {
				t.Errorf("%+v", r)
			}
		}
		if err := f.WriteSVG(io.Discard); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"claims", "claims-2", "broken-copies"}; !slices.Equal(got, want) || all != len(rows)-1 {
		t.Errorf("figures %v of %d rows, want %v of %d", got, all, want, len(rows)-1)
	}
}
