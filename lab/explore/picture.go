package explore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/choose"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/internal/problem"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A Picture is what is to be drawn after some runs of each cell.
type Picture struct {
	Runs int `json:"runs"`
	// how many there are to be before the next picture, 0: this is the last
	Next    int     `json:"next"`
	Most    int     `json:"most"` // how many there can be
	Budget  string  `json:"budget"`
	Horizon int     `json:"horizon"`
	At      []int   `json:"at"` // checkpoints
	Lines   []Line  `json:"lines"`
	Bounds  []Bound `json:"bounds"`
	Free    []Free  `json:"free"`
	// not in the first of several pictures, for its sake
	Against *Against `json:"against,omitempty"`
	// Order are the lines that were asked for, the least regret first, and Verdicts[k] what is
	// known of Order[k] and Order[k+1]; none below 16 runs. Settled: all of that is known.
	Order    []int            `json:"order"`
	Verdicts []choose.Verdict `json:"verdicts"`
	Settled  bool             `json:"settled"`
	Unranked bool             `json:"unranked"` // clipping turns the arms: regret ranks no policy
	Level    float64          `json:"level"`
	Left     []Left           `json:"left"`
	Notes    []string         `json:"notes"`
	Link     string           `json:"link"`
	YAML     string           `json:"yaml"`    // an experiment with the numbers of this picture
	Command  string           `json:"command"` // the same as a command; empty where there is none
}

// A Line is a cell: its mean pseudo-regret at the checkpoints, Lo and Hi the 95 % interval of the
// mean by Student, Q05 and Q95 what 90 % of the runs are between.
type Line struct {
	Policy  string `json:"policy"` // its name in the catalog
	Label   string `json:"label"`  // that, with the parameters that are given
	Title   string `json:"title"`
	Budget  string `json:"budget"`
	Private bool   `json:"private"` // it adds noise
	Asked   bool   `json:"asked"`   // it is not only there as a twin
	Twin    int    `json:"twin"`    // the line without privacy, −1 if there is none
	Hue     int    `json:"hue"`     // from 1; that of the twin too
	Source  string `json:"source"`

	Mean []float64 `json:"mean"`
	Lo   []float64 `json:"lo"`
	Hi   []float64 `json:"hi"`
	Q05  []float64 `json:"q05"`
	Q95  []float64 `json:"q95"`
	// Price is by how much the regret at the horizon is above the twin's, run by run on the same
	// rewards, as a mean; ±Half is its 95 % interval, and Times how many times the twin's the
	// regret is, 0 where the twin has none.
	Price *Price `json:"price,omitempty"`
}

// A Price is that of privacy.
type Price struct {
	Mean  float64 `json:"mean"`
	Half  float64 `json:"half"`
	Times float64 `json:"times"`
}

// A Bound is a lower bound on the regret at the checkpoints, for every policy at the budget.
type Bound struct {
	Name       string    `json:"name"`
	Where      string    `json:"where"`
	Form       string    `json:"form"`
	Kind       string    `json:"kind"`
	Asymptotic bool      `json:"asymptotic"`
	WorstCase  bool      `json:"worstCase"` // of some instance, not of this one
	Budget     string    `json:"budget"`
	Value      []float64 `json:"value"`
}

// A Free is a budget from which on a lower bound is that without privacy.
type Free struct {
	Name      string  `json:"name"`
	Where     string  `json:"where"`
	Symbol    string  `json:"symbol"`
	Budget    float64 `json:"budget"`
	WorstCase bool    `json:"worstCase"`
	Note      string  `json:"note"`
}

// Against is the lower bound on the instance's regret at the horizon, against the budget.
type Against struct {
	Symbol string    `json:"symbol"`
	Budget []float64 `json:"budget"`
	Value  []float64 `json:"value"`
}

// level95 is that of the intervals of a picture.
const level95 = 0.95

// Picture is what is to be drawn when each cell has had so many runs: samples[i] has Points regrets
// of each run of cell i.
func (e *Explorer) Picture(samples [][]float64, runs int) (Picture, error) {
	points := len(e.at)
	if len(samples) != len(e.cells) || runs < 1 || slices.ContainsFunc(samples, func(x []float64) bool {
		return len(x) < runs*points
	}) {
		return Picture{}, fmt.Errorf("explore: there are not %d runs of %d cells", runs, len(e.cells))
	}
	r := &e.request
	p := Picture{Runs: runs, Next: e.After(runs), Most: r.Runs, Budget: r.Budget.String(),
		Horizon: r.Horizon, At: e.at, Level: r.Level, Unranked: e.turns,
		Left: append([]Left{}, e.left...), Notes: append([]string{}, e.notes...), Link: r.Link(),
		Order: []int{}, Verdicts: []choose.Verdict{}, YAML: e.YAML(runs), Command: e.Command(runs)}
	final := make([][]float64, len(e.cells))
	column := make([]float64, runs)
	times := stats.T(max(runs, 2), level95)
	for i := range e.cells {
		c := &e.cells[i]
		l := Line{Policy: c.entry.Name, Label: c.label, Title: c.title, Budget: c.budget.String(),
			Private: c.entry.Private && c.asked, Asked: c.asked, Twin: c.twin, Hue: c.hue,
			Source: c.entry.Source}
		for k := range points {
			for run := range runs {
				column[run] = samples[i][run*points+k]
			}
			mean, _, se := stats.Mean(column)
			if k == points-1 {
				final[i] = slices.Clone(column)
			}
			half := float64(times * se)
			if runs == 1 {
				half = 0
			}
			slices.Sort(column)
			l.Mean, l.Lo, l.Hi = append(l.Mean, mean), append(l.Lo, mean-half), append(l.Hi, mean+half)
			l.Q05 = append(l.Q05, stats.Quantile(column, 0.05))
			l.Q95 = append(l.Q95, stats.Quantile(column, 0.95))
		}
		p.Lines = append(p.Lines, l)
	}
	for i := range p.Lines {
		if t := p.Lines[i].Twin; t >= 0 {
			p.Lines[i].Price = price(final[i], final[t], times)
		}
	}
	if err := e.judge(&p, final); err != nil {
		return p, err
	}
	known, err := e.known()
	if err != nil {
		return p, err
	}
	p.Bounds, p.Free, p.Notes = known.Bounds, known.Free, append(p.Notes, known.Notes...)
	if runs > first || p.Next == 0 {
		p.Against = known.against()
	}
	return p, nil
}

// price is that of privacy, of the regrets of two cells by run.
func price(own, twin []float64, times float64) *Price {
	difference := make([]float64, len(own))
	for i := range own {
		difference[i] = own[i] - twin[i]
	}
	mean, _, se := stats.Mean(difference)
	base, _, _ := stats.Mean(twin)
	p := &Price{Mean: mean}
	if len(own) > 1 {
		p.Half = float64(times * se)
	}
	if base > 0 {
		p.Times = (mean + base) / base
	}
	return p
}

// resolution is within which share of each other means are a tie.
const resolution = 0.01

// judge ranks what was asked for.
func (e *Explorer) judge(p *Picture, final [][]float64) error {
	var asked []int
	var samples [][]float64
	for i := range e.cells {
		if e.cells[i].asked {
			asked, samples = append(asked, i), append(samples, final[i])
		}
	}
	if p.Runs < 16 {
		return nil
	}
	order, verdicts, err := choose.Judge(samples, e.top, e.request.Level, resolution)
	if err != nil {
		return err
	}
	for _, k := range order {
		p.Order = append(p.Order, asked[k])
	}
	p.Verdicts = append(p.Verdicts, verdicts...)
	p.Settled = !slices.Contains(verdicts, choose.Unsettled)
	if p.Settled && p.Runs >= least {
		p.Next = 0
	}
	return nil
}

// Play plays all cells on as many workers, 0 for one a processor, and shows a picture after the
// first runs, and whenever there are two or four times as many, until nothing is unsettled or there
// are as many as were asked for. It ends when show does not want more.
func (e *Explorer) PlayAll(ctx context.Context, workers int, show func(Picture) error) error {
	samples := make([][]float64, len(e.cells))
	for runs, next := 0, e.After(0); next > 0; {
		for i := range samples {
			samples[i] = append(samples[i], make([]float64, (next-runs)*len(e.at))...)
		}
		const chunk = 4
		chunks := (next - runs + chunk - 1) / chunk
		err := pool.Run(ctx, workers, chunks*len(e.cells), func() func(context.Context, int) error {
			room := &sim.Result{}
			return func(ctx context.Context, task int) error {
				i, from := task%len(e.cells), runs+task/len(e.cells)*chunk
				to := min(from+chunk, next)
				return e.Play(ctx, i, from, room, samples[i][from*len(e.at):to*len(e.at)])
			}
		})
		if err != nil {
			return err
		}
		p, err := e.Picture(samples, next)
		if err != nil {
			return err
		}
		if err := show(p); err != nil {
			return err
		}
		runs, next = next, p.Next
	}
	return nil
}

// A background is what is known of a request without playing.
type background struct {
	Bounds  []Bound
	Free    []Free
	Notes   []string
	against func() *Against
}

// bound is what is known without playing: bounds are for rewards in [0,1], and there are none for
// others.
func (e *Explorer) bound() (background, error) {
	p := background{Bounds: []Bound{}, Free: []Free{}, against: func() *Against { return nil }}
	r := &e.request
	if r.Lo != 0 || r.Hi != 1 {
		return p, nil
	}
	q, err := problem.Arms(e.world.Fixed.Arms, false, r.Budget)
	if err != nil {
		p.Notes = append(p.Notes, "no lower bound: "+err.Error())
		return p, nil
	}
	private := slices.ContainsFunc(e.cells, func(c cell) bool { return c.entry.Private && c.asked })
	if !private {
		q.Budget = privacy.None{}
	}
	T := float64(r.Horizon)
	all, err := bound.Regret(q)
	if err != nil {
		return p, err
	}
	for _, b := range bound.Strongest(all, T) {
		line := Bound{Name: b.Name, Where: b.Where, Form: b.Form, Kind: b.Kind.String(),
			Asymptotic: b.Kind == bound.Asymptotic, WorstCase: b.WorstCase, Budget: q.Budget.String()}
		for _, t := range e.at {
			line.Value = append(line.Value, finite(b.Value(float64(t))))
		}
		p.Bounds = append(p.Bounds, line)
	}
	symbol := "ε"
	if _, zcdp := r.Budget.(privacy.ZCDP); zcdp {
		symbol = "ρ"
	}
	edges, err := bound.Boundaries(q)
	if err != nil {
		return p, err
	}
	for _, b := range edges {
		if x := b.Value(T); b.Symbol == symbol && x > 0 && !math.IsInf(x, 1) {
			p.Free = append(p.Free, Free{b.Name, b.Where, b.Symbol, x,
				strings.HasPrefix(b.Name, "minimax"), b.Note})
		}
	}
	if private {
		p.against = sync.OnceValue(func() *Against { return against(q, symbol, T) })
	}
	return p, nil
}

// against is nil for (ε,δ), whose bounds are those without privacy.
func against(q bound.Problem, symbol string, T float64) *Against {
	if _, approx := q.Budget.(privacy.Approx); approx {
		return nil
	}
	const points = 33
	a := &Against{Symbol: symbol}
	for i := range points {
		x := math.Pow(10, -3+5*float64(i)/(points-1))
		q.Budget = privacy.Pure{Epsilon: x}
		if symbol == "ρ" {
			q.Budget = privacy.ZCDP{Rho: x}
		}
		all, err := bound.Regret(q)
		if err != nil {
			return nil
		}
		for _, b := range bound.Strongest(all, T) {
			if !b.WorstCase {
				a.Budget, a.Value = append(a.Budget, x), append(a.Value, finite(b.Value(T)))
			}
		}
	}
	if a.Budget == nil {
		return nil
	}
	return a
}

// finite is 0 where a theorem says nothing.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
