// Package explore turns privacy like a knob: it plays policies on arms at a budget, a few runs
// first and more until their ranking is settled, and says after each step what is to be drawn. It
// runs natively and in a browser, and its runs are those of lab/experiment: the YAML that a
// request gives, played by sotto run, has the same numbers. Begin with Parse and New.
package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// An Explorer is a request made ready: its cells are the policies of the request, and the twin of
// each private one, which is the same policy without a budget. It does not change, and may be shared.
type Explorer struct {
	request Request
	world   sim.World
	cells   []cell
	left    []Left
	notes   []string
	turns   bool    // clipping changes which arm is best, or may
	at      []int   // checkpoints
	top     float64 // no regret is above it
	known   func() (background, error)
}

// A cell is a policy at a budget.
type cell struct {
	label, title string
	text         string // as --policies reads it
	entry        catalog.Entry
	params       catalog.Params // complete
	choice       Choice
	budget       privacy.Budget
	streams      sim.Cell
	trust        *release.Trust
	asked        bool // not only as a twin
	twin         int  // −1: it has none
	hue          int  // from 1
}

// A Left is a policy that is not played, and why.
type Left struct {
	Policy string `json:"policy"`
	Why    string `json:"why"`
}

// New makes a request ready. Where it is for a log, that is read: a CSV with the columns arm and
// reward. Errors are *Error, but for those of reading.
func New(known catalog.Catalog, r Request, log io.Reader) (*Explorer, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	in, notes, err := r.instance(log)
	if err != nil {
		return nil, err
	}
	if r.CSV == "" {
		r.Arms = make([]string, len(in.Arms))
		for i, law := range in.Arms {
			r.Arms[i] = written(law)
		}
	}
	r.Policies = slices.Clone(r.Policies)
	e := &Explorer{request: r, notes: notes, at: sim.LogSpaced(r.Points, r.Horizon)}
	if e.world, err = sim.NewWorld(bandit.Fixed(in), r.Lo, r.Hi, r.Seed); err != nil {
		return nil, &Error{Field: "arms", Err: err}
	}
	if r.Horizon < len(in.Arms) {
		return nil, bad("horizon", fmt.Sprint(r.Horizon), "at least the number of arms, %d", len(in.Arms))
	}
	if r.Horizon > maxOneByOne {
		for _, law := range in.Arms {
			if !atOnce(law, r.Lo, r.Hi) {
				return nil, bad("horizon", fmt.Sprint(r.Horizon), "at most %d where each reward "+
					"is drawn by itself, "+
					"as those of %v", maxOneByOne, law)
			}
		}
	}
	e.top = float64(slices.Max(in.Gaps()) * float64(r.Horizon))
	e.look(in)
	for i := range r.Policies {
		if err := e.enter(known, i+1, &r.Policies[i]); err != nil {
			return nil, err
		}
	}
	if len(e.cells) == 0 {
		return nil, &Error{Field: "policies", Err: errors.New(e.left[0].Why)}
	}
	e.known = sync.OnceValues(e.bound)
	return e, nil
}

// instance is the arms'.
func (r *Request) instance(log io.Reader) (in bandit.Instance, notes []string, err error) {
	if r.CSV == "" {
		laws := make([]bandit.Law, len(r.Arms))
		for i, text := range r.Arms {
			if laws[i], err = bandit.ParseLaw(text); err != nil {
				return in, nil, &Error{Field: "arms", Err: err}
			}
		}
		if in, err = bandit.NewInstance(laws...); err != nil {
			return in, nil, &Error{Field: "arms", Err: err}
		}
		return in, nil, nil
	}
	if log == nil {
		return in, nil, &Error{Field: "csv", Err: fmt.Errorf("%s is not here: drop the file in again", r.CSV)}
	}
	// The columns are named, since no flag of a page names others.
	in, _, err = bandit.ReadCSV(log, logged.Format{Arm: "arm", Reward: "reward", Lo: r.Lo, Hi: r.Hi})
	if err != nil {
		return in, nil, &Error{Field: "csv", Err: err}
	}
	if len(in.Arms) > MaxArms {
		return in, nil, &Error{Field: "csv", Err: fmt.Errorf("the number of arms is %d, must be from 2 to %d",
			len(in.Arms), MaxArms)}
	}
	return in, []string{"the log is used without noise: keep what you see as private as the log"}, nil
}

// written is a law as it is written in short.
func written(l bandit.Law) string {
	if b, ok := l.(bandit.Bernoulli); ok {
		return number(b.Mean())
	}
	return l.String()
}

// atOnce says whether the sum of many rewards is drawn at once: that has a closed law, and none of
// them is to be clipped.
func atOnce(l bandit.Law, lo, hi float64) bool {
	switch l.(type) {
	case bandit.Bernoulli, bandit.Gaussian, *bandit.Table, *bandit.Empirical:
		a, b := l.Support()
		return a >= lo && b <= hi
	}
	return false
}

// look tells of rewards that leave the range.
func (e *Explorer) look(in bandit.Instance) {
	r := &e.request
	lo, hi := in.Support()
	if lo >= r.Lo && hi <= r.Hi {
		return
	}
	e.notes = append(e.notes, fmt.Sprintf("rewards leave the declared range [%v, %v] and are clipped to it; "+
		"regret counts the means before clipping", r.Lo, r.Hi))
	if e.turns = in.ClippingTurns(r.Lo, r.Hi); e.turns {
		e.notes = append(e.notes, "clipping changes which arm is best, or may: policies look for the best of "+
			"the clipped means, and this regret does not rank them")
	}
}

// enter adds the cells of a choice, and has its parameters written in one way.
func (e *Explorer) enter(known catalog.Catalog, hue int, choice *Choice) error {
	c := cell{hue: hue, asked: true, twin: -1, budget: privacy.None{}}
	var err error
	if c.entry, err = known.Find(catalog.BanditArms, choice.Policy); err != nil {
		return &Error{Field: "policies", Err: err}
	}
	given := catalog.Params{}
	settings := slices.Clone(choice.Settings)
	for i, s := range settings {
		p, _ := c.entry.Param(s.Name) // Complete tells of an unknown one
		p.Name = s.Name
		if _, twice := given[s.Name]; twice {
			return bad("policies", choice.String(), "of parameters that differ: %s is given twice", s.Name)
		}
		if given[s.Name], err = p.Parse(s.Value); err != nil {
			return &Error{Field: "policies", Err: err}
		}
		settings[i].Value = p.Text(given[s.Name])
	}
	choice.Settings = settings
	c.choice, c.text = *choice, choice.String()
	if c.params, err = c.entry.Complete(given); err != nil {
		return &Error{Field: "policies", Err: err}
	}
	c.entry = c.entry.With(c.params)
	c.label, c.title = c.entry.Name, c.entry.Title
	if _, rest, ok := strings.Cut(c.text, ":"); ok {
		in := " (" + strings.ReplaceAll(rest, ":", ", ") + ")"
		c.label, c.title = c.label+in, c.title+in
	}
	for _, w := range c.entry.Warnings(c.params) {
		e.note(w)
	}
	if _, ties := c.entry.Param("ties_fewest"); ties && c.params["ties_fewest"] == 0 &&
		e.world.Fixed.Best() == 0 {
		e.note(fmt.Sprintf("policy %s gives ties to the arm that is listed first, which here is "+
			"the best: where "+
			"noise hides the rewards it looks better than it is", c.entry.Name))
	}
	content := c.entry.Content(c.params)
	if c.entry.Private {
		c.budget = e.request.Budget
		if e.request.Trust != continuous {
			c.trust = &release.Trust{Model: privacy.Trust(e.request.Trust), Like: c.budget,
				P: c.params.Misread(e.request.Horizon)}
			content += sim.TrustContent(*c.trust)
		}
	}
	c.streams = sim.CellOf(content, c.budget)
	if slices.ContainsFunc(e.cells, func(o cell) bool { return o.streams == c.streams }) {
		return bad("policies", c.text, "there once")
	}
	twin := c
	if err := e.try(&c); err != nil {
		e.left = append(e.left, Left{c.text, err.Error()})
		return nil
	}
	if c.trust != nil && c.entry.Continuous && !(c.entry.Discrete && c.trust.Model == privacy.TrustCentral) {
		e.note(fmt.Sprintf("policy %s under trust %s: privacy holds, but its bound is proved for continuous "+
			"noise", c.entry.Name, c.trust.Model))
	}
	e.cells = append(e.cells, c)
	if !c.entry.Private {
		return nil
	}
	twin.asked, twin.budget, twin.trust = false, privacy.None{}, nil
	twin.streams = sim.CellOf(content, twin.budget)
	twin.label, twin.title = c.label+", no privacy", c.title+", no privacy"
	if e.try(&twin) == nil {
		e.cells[len(e.cells)-1].twin = len(e.cells)
		e.cells = append(e.cells, twin)
	}
	return nil
}

func (e *Explorer) note(text string) {
	if !slices.Contains(e.notes, text) {
		e.notes = append(e.notes, text)
	}
}

// try finds out before a run whether a cell can be played.
func (e *Explorer) try(c *cell) error {
	if err := c.entry.Meets(c.budget); err != nil {
		return fmt.Errorf("takes %s, and the budget is %s", strings.Join(c.entry.Budgets, " | "), c.budget)
	}
	if c.trust != nil {
		if err := c.trust.Validate(); err != nil {
			return fmt.Errorf("under trust %s: %w", c.trust.Model, err)
		}
	}
	p, err := e.policy(c, &noise.Fast{})
	if err != nil || c.trust == nil {
		return err
	}
	_, err = release.Simulated(release.Config{Arms: len(e.world.Fixed.Arms),
		Mechanism: p.Mechanism(), Trust: c.trust}, &noise.Fast{})
	if err != nil {
		return fmt.Errorf("under trust %s: %w", c.trust.Model, err)
	}
	return nil
}

// policy builds the cell's policy afresh: it holds a run's state.
func (e *Explorer) policy(c *cell, coins *noise.Fast) (policy.Policy, error) {
	return c.entry.New(catalog.Setting{Arms: len(e.world.Fixed.Arms), Horizon: e.request.Horizon,
		Budget: c.budget, Coins: sim.NewCoins(coins)}, c.params)
}

// Cells is how many cells there are.
func (e *Explorer) Cells() int { return len(e.cells) }

// Points is how many checkpoints there are: no more than were asked for, as each is another round.
func (e *Explorer) Points() int { return len(e.at) }

// Play plays runs of a cell, from the first on: as many as to has room for, Points regrets each. It
// may be called side by side, each caller with a room of its own.
func (e *Explorer) Play(ctx context.Context, i, first int, room *sim.Result, to []float64) error {
	c := &e.cells[i]
	r := &e.request
	points := len(e.at)
	for run := first; len(to) >= points; run++ {
		private, coins := c.streams.Streams(e.world.Run(run))
		p, err := e.policy(c, coins)
		if err != nil {
			return err
		}
		err = sim.Run(ctx, sim.Config{Policy: p, Instance: e.world.Fixed, Horizon: r.Horizon,
			Lo: r.Lo, Hi: r.Hi,
			Checkpoints: e.at, Rewards: e.world.Rewards(run, len(e.world.Fixed.Arms)), Noise: private,
			Trust: c.trust}, room)
		if err != nil {
			return fmt.Errorf("%s, run %d: %w", c.label, run, err)
		}
		if c.entry.Private && !room.Loss.Within(c.budget) {
			return fmt.Errorf("%s, run %d: its ledger says %v, above the budget, %v", c.label, run, room.Loss,
				c.budget)
		}
		copy(to, room.Regret)
		to = to[points:]
	}
	return nil
}

// first is how many runs the first picture has, and least how many there are before a ranking that
// is settled ends the play.
const (
	first = 4
	least = 128
)

// After is how many runs of each cell come after so many, 0 if those are the most that are asked for.
func (e *Explorer) After(runs int) int {
	switch next := max(first, 4*runs); {
	case runs >= e.request.Runs:
		return 0
	case runs >= 64:
		return min(2*runs, e.request.Runs)
	default:
		return min(next, e.request.Runs)
	}
}
