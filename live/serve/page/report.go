package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
)

// The report of an experiment is made of its declaration, of what operators did, and of its
// releases: nothing in it changes between public ticks, whoever decides or reports.

// mostLines is of how many arms a page has lines.
const mostLines = 8

// A Summary is the numbers of an experiment.
type Summary struct {
	Name      string      `json:"name"`
	State     serve.State `json:"state"`
	Reason    string      `json:"reason,omitempty"`
	Kept      string      `json:"kept,omitempty"`
	Policy    string      `json:"policy"`
	Guarantee string      `json:"guarantee"`
	Unit      string      `json:"unit"`
	Budget    string      `json:"budget"` // of a unit, with the metrics
	Each      string      `json:"each"`   // of a decision
	Spent     string      `json:"spent"`  // of that, at most
	// of the budget that is spent; null if it is no number
	Share      *float64   `json:"share"`
	Released   int        `json:"released"`
	Last       *time.Time `json:"last_release"`
	First      *time.Time `json:"first_release,omitempty"`
	Batches    int        `json:"batches"`
	Lines      int        `json:"lines"`
	Tip        string     `json:"tip,omitempty"`
	Confidence float64    `json:"confidence"`
	Leader     string     `json:"leader,omitempty"` // by its private mean
	// Verdict is the answer; null where there are no arms.
	Verdict     *interval.Verdict `json:"verdict,omitempty"`
	Arms        []ReportedArm     `json:"arms"`
	Differences []Difference      `json:"differences"` // of others to the leader
	// Metrics are those that were declared beside the reward; nil if none were.
	Metrics *serve.Measures `json:"metrics,omitempty"`
	Guards  *serve.Guards   `json:"guards,omitempty"` // nil if none were declared
	// Cells are what was released by the declared fact of the context; nil without.
	Cells *serve.ByCell `json:"cells,omitempty"`
	Ramp  *serve.Ramp   `json:"ramp,omitempty"` // nil if none was declared
	// Contexts is what there is in the place of arms, where there are none.
	Contexts *Contexts `json:"contexts,omitempty"`

	control string // the arm that others are held against; empty where there are no arms
	lo, hi  float64
	against []*[2]float64 // of each arm's mean less the control's, nil before compare
	answer  *Answer
	batches int // in which rewards were released, as of the courses
	lines   []report.Series
	decl    *decl.Experiment
}

type ReportedArm struct {
	Name     string      `json:"name"`
	Off      bool        `json:"off,omitempty"`
	Released int         `json:"released"`
	Releases int         `json:"releases"`
	Mean     *float64    `json:"mean"` // noisy; null before the first release
	Interval *[2]float64 `json:"interval"`
}

type Difference struct {
	Arm      string      `json:"arm"`
	Interval *[2]float64 `json:"interval"` // of its mean less the leader's
}

// reports are those that were made last. To make one takes a while, and it changes with a release.
type reports struct {
	sync.Mutex
	made map[string]madeReport
}

type madeReport struct {
	of      string // what it depends on
	numbers *Summary
	html    []byte
}

// mostReports is how many are kept.
const mostReports = 64

// Report makes a report of an experiment, or has it: its numbers, and a page of HTML.
func (p *Pages) Report(ctx context.Context, name string) (*Summary, []byte, error) {
	m, err := p.reports.get(ctx, p.cfg.Engine, name)
	return m.numbers, m.html, err
}

func (all *reports) get(ctx context.Context, e *serve.Engine, name string) (madeReport, error) {
	info, course, err := e.Course(ctx, name)
	if err != nil {
		return madeReport{}, err
	}
	if info.State == serve.Waiting && info.Wait != "start" { // which decisions tell, between ticks
		info.State = serve.Running
	}
	decl, err := info.Experiment.JSON()
	if err != nil {
		return madeReport{}, err
	}
	of := fmt.Sprint(info.State, info.Reason, info.Keep, info.Tip, string(decl))
	all.Lock()
	defer all.Unlock()
	if m, ok := all.made[name]; ok && m.of == of {
		return m, nil
	}
	out, err := reportOf(info)
	if err != nil {
		return madeReport{}, err
	}
	if out.Verdict != nil {
		out.against = serve.AgainstControl(out.decl, info.Arms, *out.Verdict)
		out.answer = answerOf(info, out)
	}
	// Of an experiment whose transcript is damaged the page says so, and has no lines.
	if out.Contexts != nil {
		if out.Contexts.Effects, err = effectsOf(ctx, e, info); err != nil {
			return madeReport{}, err
		}
		out.Last, err = lastRelease(ctx, e, info)
	} else {
		err = out.draw(course)
	}
	if err != nil && !errors.Is(err, serve.ErrTranscript) {
		return madeReport{}, err
	}
	var page bytes.Buffer
	if err := out.page(decl).WriteHTML(&page); err != nil {
		return madeReport{}, err
	}
	if len(all.made) >= mostReports || all.made == nil {
		all.made = map[string]madeReport{}
	}
	m := madeReport{of, out, page.Bytes()}
	all.made[name] = m
	return m, nil
}

// reportOf is the numbers of a report.
func reportOf(x serve.Info) (*Summary, error) {
	decl := x.Experiment
	out := &Summary{Name: decl.Name, State: x.State, Reason: x.Reason, Policy: decl.Policy.Policy,
		Unit: decl.Unit.Of, Budget: fmt.Sprint(decl.Total()),
		Spent: fmt.Sprint(x.Spent), Batches: x.Batches, Lines: x.Lines, Tip: x.Tip,
		Confidence: interval.Confidence, Arms: []ReportedArm{}, Differences: []Difference{}, decl: &decl}
	each, err := decl.EachTotal() // with the metrics, as what is spent
	if err != nil {
		return nil, err
	}
	out.Each, out.Share = fmt.Sprint(each), share(x.Spent, each)
	if out.Guarantee, err = decl.Guarantee(); err != nil {
		return nil, err
	}
	if x.Keep >= 0 {
		out.Kept = decl.Arms[x.Keep].Name
	}
	if x.Policy && (x.State == serve.Stopped || x.State == serve.Archived) {
		out.Kept = learnt
	}
	out.lo, out.hi = decl.Range()
	out.Metrics, out.Guards, out.Ramp, out.Cells = x.Measured(), x.Guards(), x.Ramp(), x.ByCell()
	if !x.First.IsZero() {
		out.First = &x.First
	}
	if out.Contexts = contextsOf(x); out.Contexts != nil {
		out.Released = x.Contextual.Released
	}
	for i, a := range x.Arms {
		arm := ReportedArm{Name: decl.Arms[i].Name, Off: a.Off, Released: a.Released, Releases: a.Releases}
		if a.Released > 0 {
			mean := out.inUnits(a.Sum / float64(a.Released))
			arm.Mean = &mean
		}
		arm.Interval = decl.Table().Mean(a.Sums())
		out.Released += a.Released
		out.Arms = append(out.Arms, arm)
	}
	if out.Contexts != nil {
		return out, nil
	}
	v := serve.VerdictOf(out.decl, x.Arms)
	out.Verdict, out.Leader = &v, v.Leader
	out.control = decl.Arms[serve.ControlOf(out.decl)].Name
	for _, o := range v.Over {
		d := Difference{Arm: o.Arm}
		if o.Interval != nil {
			d.Interval = &[2]float64{0 - o.Interval[1], 0 - o.Interval[0]} // no −0
		}
		out.Differences = append(out.Differences, d)
	}
	return out, nil
}

func (r *Summary) inUnits(x float64) float64 { return r.lo + float64((r.hi-r.lo)*x) }

// share is how much of a decision's budget is spent.
func share(loss privacy.Loss, each privacy.Budget) *float64 {
	var spent, all float64
	switch b := each.(type) {
	case privacy.Pure:
		spent, all = loss.Pure(), b.Epsilon
	case privacy.ZCDP:
		spent, all = loss.ZCDP(), b.Rho
	default:
		return nil
	}
	if part := spent / all; !math.IsNaN(part) && !math.IsInf(part, 0) {
		return &part
	}
	return nil
}

// draw makes the lines of the arms that lead, from all releases.
func (r *Summary) draw(course func(func(serve.Point, error) bool)) error {
	best := make([]int, 0, len(r.Arms))
	for a := range r.Arms {
		if r.Arms[a].Mean != nil {
			best = append(best, a)
		}
	}
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(*r.Arms[b].Mean, *r.Arms[a].Mean) })
	best = best[:min(len(best), mostLines)]
	slices.Sort(best) // so that they have the colours of the page
	courses, total, err := r.courses(course)
	if err != nil {
		return err
	}
	for _, a := range best {
		s := report.Series{Label: r.Arms[a].Name, Step: true}
		for _, p := range courses[a].Points {
			if n := len(s.X); n > 0 && p[1] <= s.X[n-1] {
				continue
			}
			s.X, s.Mean = append(s.X, p[1]), append(s.Mean, p[3])
			s.Lo, s.Hi = append(s.Lo, p[4]), append(s.Hi, p[5])
		}
		if len(s.X) == 0 {
			continue
		}
		if end := float64(total); s.X[len(s.X)-1] < end { // it holds until now
			n := len(s.X) - 1
			s.X, s.Mean = append(s.X, end), append(s.Mean, s.Mean[n])
			s.Lo, s.Hi = append(s.Lo, s.Lo[n]), append(s.Hi, s.Hi[n])
		}
		r.lines = append(r.lines, s)
	}
	return nil
}

// states say what a state means to who reads a report.
var states = map[serve.State]string{
	serve.Draft: "draft: it has not been started", serve.Waiting: "waiting for its start",
	serve.Running: "running", serve.Paused: "paused: nobody new is assigned",
	serve.Stopping: "stopping: windows pass", serve.Stopped: "stopped", serve.Archived: "archived: nothing of its units is left",
	serve.Failed: "failed: it can be read and stopped",
}

// page is the report as `sotto report` has it.
func (r *Summary) page(decl []byte) report.Page {
	out := report.Page{Name: r.Name, Version: "Sotto " + build.This().Version,
		Description: r.decl.Description, Spec: string(decl)}
	var spec bytes.Buffer
	if json.Indent(&spec, decl, "", "  ") == nil {
		out.Spec = spec.String()
	}
	if r.Reason != "" {
		out.Warnings = append(out.Warnings, r.Reason)
	}
	if g := r.Guards; g != nil && g.Paused != "" {
		out.Warnings = append(out.Warnings, "Paused by a guard: "+g.Paused+".")
	}
	state := states[r.State]
	if r.Contexts != nil && r.Kept != "" {
		state += ", and everybody gets " + keptOf(serve.Info{Policy: true})
	} else if r.Kept != "" {
		state += ", and everybody gets " + r.Kept
	}
	out.Facts = []report.Fact{{Name: "state", Value: state}, {Name: "policy", Value: r.Policy},
		{Name: "decisions released", Value: words.Whole(r.Released)}}
	if r.Verdict != nil {
		out.Facts = append([]report.Fact{{Name: "verdict", Value: r.Verdict.Text}}, out.Facts...)
		if e := r.Verdict.Earned; e.Told() {
			out.Facts = append(out.Facts, report.Fact{Name: "earned", Value: e.Text()})
		}
	}
	if a := r.answer; a != nil && a.Interval != nil {
		out.Facts = append(out.Facts, report.Fact{Name: a.Arm + " against " + a.Control, Value: spread(a.Interval)})
	}
	if r.Ramp != nil {
		out.Facts = append(out.Facts, report.Fact{Name: "ramp", Value: r.Ramp.Says})
	}
	if r.First != nil {
		out.Facts = append(out.Facts, report.Fact{Name: "first release",
			Value: r.First.Format("2006-01-02 15:04:05 UTC")})
	}
	if r.Last != nil {
		out.Facts = append(out.Facts, report.Fact{Name: "last release",
			Value: r.Last.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	if r.Share != nil {
		out.Meters = []report.Meter{{Name: "budget of each reward", Share: *r.Share,
			Text: fmt.Sprintf("%s of %s spent", r.Spent, r.Each)}}
	}
	if c := r.Contexts; c != nil {
		out.Warnings = append(out.Warnings, c.Protects)
		out.Facts = append(out.Facts, report.Fact{Name: "vectors", Value: fmt.Sprintf("%d components, blocks "+
			"divided by %.4g", c.Dim, c.Norm)}, report.Fact{Name: "releases", Value: words.Whole(c.Releases)})
		if len(c.Rules) > 0 {
			out.Tables = append(out.Tables, c.table(r.lo, r.hi))
		}
		if b := c.Best; b != nil && b.Interval != nil {
			out.Facts = append(out.Facts, report.Fact{Name: b.Of + " over the best of the other rules, " + b.Over,
				Value: b.Text() + " a decision (" + spread(b.Interval) + ")"})
		}
		if c.Effects != nil {
			out.Tables = append(out.Tables, c.effects())
		}
	} else {
		out.Tables = append(out.Tables, r.arms())
	}
	if len(r.Differences) > 0 {
		t := report.Table{Title: "Differences", Head: []string{"arm",
			"its mean less that of the leader"}, Text: 1,
			Groups: []report.Group{{Head: r.Leader + " leads"}},
			Notes:  []string{"An interval below 0 says that the arm is worse than the one that leads."}}
		if assumes := r.Verdict.Assumes(); assumes != "" {
			t.Notes = append(t.Notes, assumes)
		}
		for _, d := range r.Differences {
			t.Groups[0].Rows = append(t.Groups[0].Rows, []string{d.Arm, within(d.Interval, decimalsOf(d.Interval))})
		}
		out.Tables = append(out.Tables, t)
	}
	if r.Cells != nil {
		out.Tables = append(out.Tables, tablesOf(&r.Cells.Measures)...)
	}
	out.Tables = append(append(out.Tables, tablesOf(r.Metrics)...), guardsTable(r.Guards)...)
	out.Tables = append(out.Tables, report.Table{Title: "What is promised, and how to check it",
		Head: []string{"", ""}, Text: 2, Groups: []report.Group{{Head: "To each " + r.Unit, Rows: [][]string{
			{"guarantee", r.Guarantee + "."},
			{"transcript", fmt.Sprintf("%s lines; the last has the SHA-256 %s. sotto replay "+
				"plays it again, and "+
				"finds these releases and what they cost.", words.Whole(r.Lines),
				cmp.Or(r.Tip, "of nothing"))},
		}}}})
	if len(r.lines) > 0 {
		out.Figures = []report.Figure{{ID: "means", Title: "Private means",
			Subtitle: "with intervals that hold at all times", XLabel: "decisions released",
			YLabel: "reward", LogX: true, Series: r.lines}}
	}
	return out
}

// tablesOf are the metrics as a report has them.
func tablesOf(of *serve.Measures) (out []report.Table) {
	if of == nil {
		return nil
	}
	for _, m := range of.Each {
		t := report.Table{Title: "Metric " + m.Title(), Head: []string{"arm", "mean", "95 % interval",
			"difference to " + of.Control, "95 % interval", "decisions"}, Text: 1,
			Groups: []report.Group{{Head: "From " + words.Number(m.Range[0]) + " to " + words.Number(m.Range[1])}},
			Notes:  []string{of.Says}}
		if m.Cell != "" {
			t.Title, t.Head = m.Title(), append(t.Head, "against "+of.First())
		}
		if m.Verdict != nil {
			t.Notes = []string{m.Verdict.Text + "."}
		}
		for _, a := range m.Arms {
			mean, less := "–", "–"
			if a.Mean != nil {
				mean = words.Number(*a.Mean)
			}
			if a.Difference != nil {
				less = words.Number(*a.Difference)
			}
			row := []string{a.Arm, mean, within(a.Interval, decimalsOf(a.Interval)),
				less, within(a.DifferenceInterval, decimalsOf(a.DifferenceInterval)), words.Whole(a.Released)}
			if m.Cell != "" {
				row = append(row, within(a.Apart, decimalsOf(a.Apart)))
			}
			t.Groups[0].Rows = append(t.Groups[0].Rows, row)
		}
		if out = append(out, t); m.Cell != "" && len(out) == len(of.Each) {
			out[len(out)-1].Notes = append(out[len(out)-1].Notes, of.Says)
		}
	}
	return out
}

// guardsTable is the guards as a report has them, nothing if there are none.
func guardsTable(of *serve.Guards) []report.Table {
	if of == nil {
		return nil
	}
	t := report.Table{Title: "Guards", Head: []string{"arm", "interval", "the arm"}, Text: 1, Notes: []string{of.Says}}
	for _, g := range of.Each {
		rows := report.Group{Head: g.Metric + " must stay " + g.Bound}
		for _, a := range g.Arms {
			rows.Rows = append(rows.Rows, []string{a.Arm, within(a.Interval, decimalsOf(a.Interval)), a.State})
		}
		t.Groups = append(t.Groups, rows)
	}
	return []report.Table{t}
}

// arms is the table of the arms' means.
func (r *Summary) arms() report.Table {
	number := func(x float64) string { return words.Number(x) }
	arms := report.Table{Title: "Arms", Head: []string{"arm", "mean", "95 % interval", "decisions"},
		Text: 1, Groups: []report.Group{{Head: "Rewards from " + number(r.lo) + " to " +
			number(r.hi)}}, Notes: []string{
			"Intervals of this page hold together, at all times, with probability 95 %: whatever the policy " +
				"plays, and whoever looks when. They allow for the noise, and are from releases alone.",
			"Means are private: noise was added. Decisions are those that were released. One " +
				"whose reward did not come in its window counts the " +
				"default."}}
	if c := r.decl.IntervalCondition(); c != "" {
		arms.Notes = append(arms.Notes, c)
	}
	for _, a := range r.Arms {
		mean, name := "–", a.Name
		if a.Mean != nil {
			mean = number(*a.Mean)
		}
		if a.Off {
			name += " (off)"
		}
		arms.Groups[0].Rows = append(arms.Groups[0].Rows, []string{name, mean, within(a.Interval, decimalsOf(a.Interval)),
			words.Whole(a.Released)})
	}
	return arms
}
