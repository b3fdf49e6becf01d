package serve

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sotto-dp/sotto/interval"
	decls "github.com/sotto-dp/sotto/live/decl"
)

// Measures are what was released of an experiment's metrics, in their own units, as page, report, API,
// Prometheus and Replay show them: made here alone, and of what was released alone.
type Measures struct {
	// Control is the arm that the others are held against: the declared fallback, or the first. It
	// does not follow from what was released, nor from whether it was taken off.
	Control string `json:"control"`
	// Confidence is that of all intervals of all metrics together, at all times. The metrics have
	// equal shares of its risk, and the reward's intervals have a risk of their own beside it.
	Confidence float64   `json:"confidence"`
	Says       string    `json:"says"` // that, in words
	Each       []Measure `json:"each"`
}

// A Measure is one of them.
type Measure struct {
	Cell    string        `json:"cell,omitempty"` // where there are cells, of ByCell
	Name    string        `json:"name"`
	Range   [2]float64    `json:"range"`
	Default float64       `json:"default"`
	Budget  string        `json:"budget"` // of a unit, for it alone; empty of a ratio
	Arms    []MeasuredArm `json:"arms"`
	// Ratio is what is divided by what, of a ratio of two numbers: its means are the ratios of their sums, and its
	// sums are of the first.
	Ratio []string `json:"ratio,omitempty"`
	// Verdict is that of a cell, of its reward.
	Verdict *interval.Verdict `json:"verdict,omitempty"`
}

// Title is what a table of it is headed with: its cell, or the name of a metric, or both, and of a ratio what it is of.
func (m Measure) Title() string {
	title := m.Name
	if len(m.Ratio) == 2 {
		title = fmt.Sprintf("%s (%s per %s)", m.Name, m.Ratio[0], m.Ratio[1])
	}
	switch {
	case m.Cell == "":
		return title
	case m.Verdict != nil:
		return m.Cell
	}
	return m.Cell + ": " + title
}

// First is the cell that the others are held against, empty where there are none.
func (m Measures) First() string { return m.Each[0].Cell }

// A MeasuredArm is what was released of a metric of an arm. Means are noisy. What is not known yet, and
// a difference of the control to itself, is nil.
type MeasuredArm struct {
	Arm      string      `json:"arm"`
	Released int         `json:"released"` // decisions
	Sum      float64     `json:"sum"`      // noisy, of these
	Mean     *float64    `json:"mean"`
	Interval *[2]float64 `json:"interval"`
	// Difference is the mean less that of the control.
	Difference         *float64    `json:"difference"`
	DifferenceInterval *[2]float64 `json:"difference_interval"`
	// Apart is an interval for the difference in this cell less that in the first one; nil elsewhere.
	Apart *[2]float64 `json:"apart,omitempty"`
}

// add adds an arm, of which this was released in the measure's range, with an interval for its mean.
func (m *Measure) add(arm string, of interval.Sums, mean *[2]float64) {
	lo, width := m.Range[0], m.Range[1]-m.Range[0]
	to := MeasuredArm{Arm: arm, Released: of.N, Interval: mean,
		Sum: float64(lo*float64(of.N)) + float64(width*of.Sum)}
	if of.N > 0 {
		x := lo + float64(width*(of.Sum/float64(of.N)))
		to.Mean = &x
	}
	m.Arms = append(m.Arms, to)
}

// compare holds the arms' means against the control's, with an interval for the difference of each. Where the two
// are compared since one of them joined, the difference is that of their means since then.
func (m *Measure) compare(control int, difference func(a int) *[2]float64, since func(a int) (arm, base interval.Sums)) {
	base := m.Arms[control].Mean
	for a := range m.Arms {
		to := &m.Arms[a]
		if a == control || to.Mean == nil || base == nil {
			continue
		}
		x := *to.Mean - *base
		if since != nil {
			mine, others := since(a)
			if mine.N == 0 || others.N == 0 {
				continue
			}
			x = float64((m.Range[1] - m.Range[0]) * (mine.Sum/float64(mine.N) - others.Sum/float64(others.N)))
		}
		to.Difference, to.DifferenceInterval = &x, difference(a)
	}
}

// less is how far what is in one interval is from what is in another, where both hold.
func less(x, y *[2]float64) *[2]float64 {
	if x == nil || y == nil {
		return nil
	}
	return &[2]float64{x[0] - y[1], x[1] - y[0]}
}

// Measured are the experiment's metrics; nil if it has none. What it gives is shared: it must not be
// changed.
func (i *Info) Measured() *Measures {
	return i.measured.get(i.Arms, func() *Measures { return measured(&i.Experiment, i.Arms, i.Metrics, 1) })
}

// measuring keeps what was measured until there is another release: a difference takes milliseconds, and
// whoever asks for a page or a scrape asks for all of them.
type measuring[T any] struct {
	sync.Mutex
	releases int
	arms     int // an arm can come without one
	made     *T
}

// get is what was made of these arms, or made anew.
func (m *measuring[T]) get(arms []ArmInfo, anew func() *T) *T {
	if m == nil {
		return anew()
	}
	m.Lock()
	defer m.Unlock()
	releases := 0
	for _, a := range arms {
		if releases += a.Releases; a.Off { // which changes who leads
			releases++
		}
	}
	if m.made == nil || m.releases != releases || m.arms != len(arms) {
		m.made, m.releases, m.arms = anew(), releases, len(arms)
	}
	return m.made
}

// Measured is as that of Info.
func (r *Replayed) Measured() *Measures { return measured(&r.Experiment, r.Arms, r.Metrics, 1) }

// ControlOf is the arm that the others are held against: the declared fallback, or the first.
func ControlOf(decl *Experiment) int {
	return max(0, slices.IndexFunc(decl.Arms, func(a decls.Arm) bool { return a.Name == decl.Fallback }))
}

// measured makes them of the noisy sums of each metric by arm, mapped to [0,1], of which so many share the risk.
func measured(decl *Experiment, arms []ArmInfo, sums [][]float64, parts int) *Measures {
	played, err := decl.PlayMetrics()
	if err != nil || len(played) == 0 || len(sums) != len(played) { // it was checked
		return nil
	}
	control := ControlOf(decl)
	out := &Measures{Control: decl.Arms[control].Name, Confidence: interval.Confidence}
	joint := decl.Table().Joint
	rows := len(played) + len(decl.Ratios)
	risk := (1 - interval.Confidence) / float64(rows*parts)
	out.Says = out.says(rows, len(decl.Ratios) > 0, joint != nil, decl.IntervalCondition())
	released := func(number, a int) interval.Sums { // of the reward, or of a metric
		of := arms[a].Sums()
		if number > 0 {
			of.Sum, of.Noise = sums[number-1][a], played[number-1].Mechanism
		}
		return of
	}
	// against is what an arm is compared with another by: since the later of them joined
	against := func(number, a, other int) interval.Sums {
		of := released(number, a)
		if j := arms[max(a, other)].Joined; j != nil {
			before := j.Arms[a]
			of.N, of.Releases, of.Sum = of.N-before.Released, of.Releases-before.Releases, of.Sum-j.Metrics[number-1][a]
		}
		return of
	}
	for m, of := range played {
		lo, hi := decl.Metrics[m].Range()
		row := interval.Controlled{Arms: len(arms), Lo: lo, Hi: hi, Risk: risk}
		one := Measure{Name: of.Name, Range: [2]float64{lo, hi}, Default: of.Default,
			Budget: fmt.Sprint(decl.Metrics[m].Budget)}
		for a := range arms {
			one.add(decl.Arms[a].Name, released(1+m, a), row.Mean(released(1+m, a)))
		}
		one.compare(control, func(a int) *[2]float64 {
			if joint == nil {
				return row.Difference(released(1+m, a), released(1+m, control))
			}
			share := joint.Shares[a] / (joint.Shares[a] + joint.Shares[control])
			return row.Effect(against(1+m, a, control), against(1+m, control, a), share)
		}, func(a int) (arm, base interval.Sums) { return against(1+m, a, control), against(1+m, control, a) })
		out.Each = append(out.Each, one)
	}
	for i, of := range decl.PlayRatios() {
		one := Measure{Name: decl.Ratios[i].Name, Ratio: []string{decl.Ratios[i].Of, decl.Ratios[i].Per}}
		one.Range[0], one.Range[1] = decl.RatioRange(decl.Ratios[i])
		for a := range arms {
			to := divided(one.Range[1], released(of.Of, a), released(of.Per, a), risk/float64(len(arms)))
			to.Arm, to.Sum = decl.Arms[a].Name, float64(decl.Most(of.Of)*released(of.Of, a).Sum)
			one.Arms = append(one.Arms, to)
		}
		one.compare(control, func(a int) *[2]float64 { return less(one.Arms[a].Interval, one.Arms[control].Interval) }, nil)
		out.Each = append(out.Each, one)
	}
	return out
}

// divided is the ratio of two sums, whose largest value is most.
func divided(most float64, of, per interval.Sums, risk float64) (out MeasuredArm) {
	if out.Released = of.N; of.N == 0 {
		return out
	}
	if per.Sum > 0 {
		x := min(most, max(0, float64(most*of.Sum)/per.Sum))
		out.Mean = &x
	}
	if lo, hi, err := interval.Ratio(of, per, risk); err == nil {
		out.Interval = &[2]float64{float64(most * lo), float64(most * hi)}
	}
	return out
}

// says is what intervals of so many metrics are, and on what they rest.
func (m *Measures) says(metrics int, ratios, joint bool, condition string) string {
	level := fmt.Sprint(100*interval.Confidence) + "\u202f%"
	text := "The metric's intervals include the noise and stay valid however often you look, all of them " +
		"together with probability " + level
	if metrics > 1 {
		what, each := "metrics", "each metric"
		if ratios {
			what, each = "metrics and ratios", "each"
		}
		text = fmt.Sprintf("The intervals of all %d %s include the noise and stay valid however often you "+
			"look, all of them together with probability %s: %s has 1/%d of the risk", metrics, what, level, each, metrics)
	}
	text += ". The reward's intervals have a risk of their own beside it. A difference is an arm's mean less that " +
		"of the control, " + m.Control + ". "
	if joint {
		text += "Where means change over time, they are intervals of the averages so far."
	} else {
		text += "Intervals assume that an arm's mean does not change over time."
	}
	if ratios {
		text += " A ratio divides the sums of two numbers. Its interval assumes that the arm's ratio stays the same, not " +
			"that its means do."
	}
	if condition != "" {
		text += " " + strings.Replace(condition, "its reward", "its metrics", 1)
	}
	return text
}
