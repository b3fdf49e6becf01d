package verdict

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/base/report"
)

// A named law of scores is a line of a figure.
type namedScores struct {
	name   string
	scores audit.Scores
}

// rocFigure is the power of attacks against the significance, on log axes, beside what the claim
// allows. theory may be nil.
func rocFigure(id, title string, all []namedScores, claim, delta, level float64,
	theory func(alpha float64) float64, theoryName string) (report.Figure, error) {
	f := report.Figure{ID: id, Title: title, Subtitle: "Power against significance, and the " +
		"largest that the claim allows", XLabel: "significance (false positive rate)",
		YLabel: "power (true positive rate)", LogX: true, LogY: true,
		Note: fmt.Sprintf("Bands: intervals at level %.10g, each by itself. A line above that of "+
			"the claim is what a refutation looks like.", level)}
	least := 1.0
	for _, n := range all {
		if n.scores.Validate() != nil {
			continue
		}
		least = min(least, 10/float64(len(n.scores.Out)))
	}
	if least >= 1 {
		return f, audit.ErrConstantScore
	}
	grid := audit.LogGrid(max(least, 1e-6), 40)
	for _, n := range all {
		if n.scores.Validate() != nil {
			continue
		}
		points, err := n.scores.Curve(grid, level)
		if err != nil {
			return f, err
		}
		s := report.Series{Label: n.name, X: grid}
		for _, p := range points {
			s.Mean, s.Lo, s.Hi = append(s.Mean, p.Power.Value), append(s.Lo, p.Power.Lo),
				append(s.Hi, p.Power.Hi)
		}
		f.Series = append(f.Series, s)
	}
	if theory != nil {
		s := report.Series{Label: theoryName, X: grid}
		for _, a := range grid {
			s.Mean = append(s.Mean, theory(a))
		}
		f.Series = append(f.Series, s)
	}
	if !math.IsInf(claim, 1) {
		s := report.Series{Label: "limit of the claim", X: grid}
		for _, a := range grid {
			p, err := audit.PowerLimit(claim, delta, a)
			if err != nil {
				return f, err
			}
			s.Mean = append(s.Mean, p)
		}
		f.Series = append(f.Series, s)
	}
	f.Series = append(f.Series, report.Series{Label: "chance", X: grid, Mean: grid})
	return f, nil
}

// curveFigure is the audited ε against δ, beside the claimed one. The scores are those of the
// attack that did best of so many on these very games: the confidence is split over all of them.
func curveFigure(id string, s audit.Scores, attacks int, gamma float64,
	claim func(delta float64) (float64, error)) (report.Figure, error) {
	level := Level(gamma)
	f := report.Figure{ID: id, Title: "Audited ε against δ", Subtitle: "The lower bound holds at " +
		"all δ together", XLabel: "δ", YLabel: "ε", LogX: true,
		Note: "Lower bound at confidence " + level + " for this curve alone, over all attacks " +
			"and thresholds; the table's, which the verdict rests on, has a confidence of its " +
			"own and is of one threshold, chosen on other games."}
	r, err := s.RegionByRank(gamma / float64(attacks))
	if err != nil {
		return f, err
	}
	grid := audit.LogGrid(1e-6, 25)
	grid = grid[:len(grid)-1] // δ = 1 is no claim
	bounds, err := r.Curve(grid)
	if err != nil {
		return f, err
	}
	low, says := report.Series{Label: "audited, at least", X: grid}, report.Series{Label: "claimed", X: grid}
	any := false
	for i, b := range bounds {
		low.Mean = append(low.Mean, b.Epsilon)
		c, err := claim(grid[i])
		if err != nil {
			return f, err
		}
		any = any || !math.IsInf(c, 1)
		says.Mean = append(says.Mean, c)
	}
	f.Series = []report.Series{low}
	if any {
		f.Series = append(f.Series, says)
	}
	return f, nil
}

// tightness is audited over claimed ε of all audits, sorted.
func tightness(all []Row) (report.Figure, bool) {
	f := report.Figure{ID: "tightness", Title: "How much of each claim was found",
		Subtitle: "Audited over claimed ε, sorted", XLabel: "audits, in the order of the ratio",
		YLabel: "audited/claimed",
		Note:   "Lower bounds. Own claims must stay at or below 1, broken twins must be above it."}
	most := 0
	for _, twin := range []bool{false, true} {
		var x []float64
		for _, r := range all {
			if t := r.Tightness(); r.Twin == twin && !math.IsNaN(t) && !math.IsInf(t, 0) {
				x = append(x, t)
			}
		}
		if len(x) == 0 {
			continue
		}
		slices.Sort(x)
		s := report.Series{Label: "own claims", Mean: x}
		if twin {
			s.Label = "broken twins"
		}
		for i := range x {
			s.X = append(s.X, float64(i+1))
		}
		most = max(most, len(x))
		f.Series = append(f.Series, s)
	}
	if most < 2 {
		return f, false
	}
	f.Series = append(f.Series, report.Series{Label: "refuted above",
		X: []float64{1, float64(most)}, Mean: []float64{1, 1}})
	return f, true
}
