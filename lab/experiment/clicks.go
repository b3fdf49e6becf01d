package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/clicks"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/sim"
)

// A Clicks is an instance of KindContextual whose rewards are clicks, 1 or −1: each round a visitor
// comes to Topics actions. Vectors are those of a declared map (package feature): an intercept, the
// visitor's device and numbers, the topic, and the products of each of these with the topic. Every run
// has a world of its own.
type Clicks struct {
	Topics, Devices keyed.Count // words; no device if there are 0
	Numbers         keyed.Count // of a visitor, uniform in [0,1]
	// what a uniform choice and the best one earn, as shares of 1
	Uniform, Best float64
	Logistic      bool        // the model is of log odds; else of means
	Turn          keyed.Count // rounds in which the model becomes another; 0: it stays
}

// Shares of clicks where a file does not say.
const (
	defaultUniform = 0.05
	defaultBest    = 0.08
	// turnSteps is how often the model moves in its Turn.
	turnSteps = 50
	// manyVisitors is how many different visitors stand for all where they have numbers.
	manyVisitors = 4096
	maxWords     = 1000 // topics, devices, numbers
)

func clicksWay() way {
	of := func(at func(*Clicks) *keyed.Count) func(*Instance) *keyed.Count {
		return func(in *Instance) *keyed.Count {
			if in.Clicks == nil {
				return nil
			}
			return at(in.Clicks)
		}
	}
	share := func(name string, at func(*Clicks) *float64, doc string, or float64) keyed.Key[Instance] {
		f := keyed.Real(keyed.Object{"exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": or})
		return keyed.Of(name, f, func(in *Instance) *float64 {
			if in.Clicks == nil {
				return nil
			}
			return at(in.Clicks)
		}, doc).Or(or)
	}
	return way{example: "topics: 4, devices: 3", ref: "visitors and clicks, another world in each run: " +
		"each round a visitor on one of so many `devices`, with so many `numbers` in [0, 1], may be " +
		"given each topic. Vectors are those of [a declared map](contextual.md#how-the-map-works) with " +
		"crosses of all of these with the topic; coefficients are normal, with a slope and an offset by " +
		"which uniform choices earn `uniform: 0.05` and the best ones `best: 0.08`. `logistic: true`: " +
		"the model is of log odds. `turn: 50_000`: in so many rounds the coefficients turn to others, " +
		"and on",
		begin: func(in *Instance) { in.Clicks = &Clicks{} }, keys: []keyed.Key[Instance]{
			keyed.Always("topics", keyed.Whole(), of(func(c *Clicks) *keyed.Count { return &c.Topics }),
				"actions of each round, at least 2").Must(),
			keyed.Of("devices", keyed.Whole(), of(func(c *Clicks) *keyed.Count { return &c.Devices }),
				"words that a visitor may come with"),
			keyed.Of("numbers", keyed.Whole(), of(func(c *Clicks) *keyed.Count { return &c.Numbers }),
				"that a visitor comes with, uniform in [0, 1]"),
			share("uniform", func(c *Clicks) *float64 { return &c.Uniform }, "clicks of uniform choices", defaultUniform),
			share("best", func(c *Clicks) *float64 { return &c.Best }, "clicks of the best choices", defaultBest),
			keyed.Of("logistic", keyed.YesNo(), func(in *Instance) *bool {
				if in.Clicks == nil {
					return nil
				}
				return &in.Clicks.Logistic
			}, "the model is of log odds"),
			keyed.Of("turn", keyed.Whole(), of(func(c *Clicks) *keyed.Count { return &c.Turn }),
				"rounds in which the coefficients turn to others"),
		}}
}

func (c *Clicks) earns() (uniform, best float64) {
	uniform, best = c.Uniform, c.Best
	if uniform == 0 {
		uniform = defaultUniform
	}
	if best == 0 {
		best = defaultBest
	}
	return uniform, best
}

// String is the key of its streams.
func (c *Clicks) String() string {
	uniform, best := c.earns()
	return fmt.Sprintf("clicks(topics=%d,devices=%d,numbers=%d,uniform=%s,best=%s,logistic=%t,turn=%d)",
		c.Topics, c.Devices, c.Numbers, keyed.Number(uniform), keyed.Number(best), c.Logistic, c.Turn)
}

func (c *Clicks) check() (field string, err error) {
	uniform, best := c.earns()
	switch {
	case c.Topics < 2 || c.Topics > maxWords:
		return "topics", fmt.Errorf("is %d, must be from 2 to %d", int(c.Topics), maxWords)
	case c.Devices < 0 || c.Devices > maxWords:
		return "devices", fmt.Errorf("is %d, must be at most %d", int(c.Devices), maxWords)
	case c.Numbers < 0 || c.Numbers > maxWords:
		return "numbers", fmt.Errorf("is %d, must be at most %d", int(c.Numbers), maxWords)
	case !(uniform > 0 && uniform < 1):
		return "uniform", fmt.Errorf("is %v, must be above 0 and below 1", uniform)
	case !(best > uniform && best < 1):
		return "best", fmt.Errorf("is %v, must be above uniform, %v, and below 1", best, uniform)
	case c.Turn != 0 && (c.Turn < turnSteps || c.Turn > keyed.MaxCount):
		return "turn", fmt.Errorf("is %d, must be a number of rounds, at least %d", int(c.Turn), turnSteps)
	}
	return "", nil
}

// world is the generator of a run's.
func (c *Clicks) world(horizon int) clicks.World {
	var m feature.Map
	number := func(kind string, i keyed.Count) string { return kind + strconv.Itoa(int(i)) }
	add := func(name string, f feature.Feature) {
		f.Name = name
		m.Context = append(m.Context, f)
		m.Cross = append(m.Cross, feature.Cross{Of: []string{name, "topic"}})
	}
	words := func(kind string, n keyed.Count) (f feature.Feature) {
		for i := range n {
			f.Values = append(f.Values, number(kind, i+1))
		}
		return f
	}
	if c.Devices > 0 {
		add("device", words("device-", c.Devices))
	}
	for i := range c.Numbers {
		add(number("number-", i+1), feature.Feature{Hi: 1})
	}
	topic := words("topic-", c.Topics)
	topic.Name = "topic"
	m.Action = []feature.Feature{topic}
	uniform, best := c.earns()
	w := clicks.World{Map: m, Actions: int(c.Topics), Mean: uniform, Gap: best - uniform, Logistic: c.Logistic}
	if c.Numbers > 0 {
		w.Visitors = manyVisitors
	}
	if c.Turn > 0 {
		w.Every = int(c.Turn) / turnSteps
		w.Turns = (horizon - 1) / w.Every
	}
	return w
}

// environment is the instance, resolved. A world that cannot be generated is found now.
func (c *Clicks) environment(s *Spec) (w environment, field string, err error) {
	if field, err := c.check(); err != nil {
		return w, field, err
	}
	w = environment{contextualWorld: contextualWorld{clicks: c}, arms: int(c.Topics),
		content: fmt.Sprintf("%v range=[-1,1]", c)}
	first, err := c.draw(s, w.content, 0)
	switch {
	case errors.Is(err, feature.ErrMap):
		return w, "topics", err
	case err != nil:
		return w, "best", err
	}
	w.dim = first.Dim
	if p, err := feature.New(c.world(1).Map); err == nil {
		w.rows, _ = p.Rows() // none of visitors with numbers
	}
	return w, "", nil
}

// draw is the world of a run.
func (c *Clicks) draw(s *Spec, content string, run int) (*sim.Visits, error) {
	key := noise.Key{Seed: s.Seed, Experiment: content, Run: run, Role: noise.RoleInstance}
	return c.world(int(s.Horizon)).Generate(&key.Fast(1)[0])
}

// visits is a run in a world of clicks. Visitors, clicks and the floor's coins are the world's: all
// policies meet the same.
func (k contextualKind) visits(p *Resolved, c *Cell, run int) (cfg sim.VisitsConfig, err error) {
	s := &p.Spec
	if cfg.World, err = c.world.clicks.draw(s, c.world.content, run); err != nil {
		return cfg, err
	}
	key := noise.Key{Seed: s.Seed, Experiment: c.world.content, Run: run, Role: noise.RoleReward}
	privately, coins := c.streams(key)
	if cfg.Policy, err = k.late(p, c, coins); err != nil {
		return cfg, err
	}
	rewards := key.Fast(2)
	key.Role = noise.RoleFloor
	cfg.Horizon, cfg.Window, cfg.Floor = int(s.Horizon), max(1, s.Delay.Window), c.choice.floor
	cfg.Checkpoints, cfg.Noise = p.Checkpoints, privately
	cfg.Visitors, cfg.Rewards, cfg.Coins = &rewards[0], &rewards[1], &key.Fast(1)[0]
	return cfg, nil
}

// late is the cell's policy where rewards may come late.
func (k contextualKind) late(p *Resolved, c *Cell, coins *noise.Fast) (sim.LatePolicy, error) {
	pol, err := k.policy(p, c, coins)
	if err != nil {
		return nil, err
	}
	late, ok := pol.(sim.LatePolicy)
	if !ok {
		return nil, fmt.Errorf("policy %s has no form for rewards that come late, as visitors' do",
			c.choice.entry.Name)
	}
	return late, nil
}

// params are a policy's, of which those that follow live from a declaration follow from the map, where they
// are not said: what vectors are divided by, that they have an intercept, and that who does not click
// counts −1.
func (c *Clicks) params(of *choice) catalog.Params {
	out := maps.Clone(of.params)
	for name, x := range (catalog.Params{"norm": c.world(1).Map.Norm(), "intercept": 1, "centre": -1}) {
		_, said := of.said[name]
		if _, has := out[name]; has && !said {
			out[name] = x
		}
	}
	return out
}

// gap is what is to be won of a round: the best choice's reward less that of a uniform one.
func (c *Clicks) gap() float64 {
	uniform, best := c.earns()
	return 2 * (best - uniform)
}

// Shown are the places of the checkpoints that tables of what was won have.
func (r *Results) Shown() []int { return nearest(r.Manifest.Checkpoints, 1, 2, 5) }

// Won is the share, in per cent, that a cell with a Gap has won of what is to be won in all rounds until
// its j-th checkpoint, and the half width of its 95 % interval.
func (r *Results) Won(c *CellResult, j int) (won, half float64) {
	most := c.Gap * float64(r.Manifest.Checkpoints[j])
	return 100 * (1 - c.Regret.Mean[j]/most), 100 * width(stats.T(r.Manifest.Runs, Level), c.Regret.SE[j]) / most
}

// wonTable is what was won of what is to be won, of the cells that know it.
func wonTable(r *Results) (t report.Table, ok bool) {
	t = report.Table{Title: "Won", Text: 2, Head: []string{"policy", "budget"},
		Notes: []string{"of what the best choices earn above uniform ones, the share in per cent that was won " +
			"in all rounds until t", "± half width of the 95 % interval; " + rowNote(r.Manifest.Runs)}}
	for _, j := range r.Shown() {
		t.Head = append(t.Head, "t = "+words.Whole(r.Manifest.Checkpoints[j]))
	}
	for _, instance := range distinct(r, func(c *CellResult) (string, bool) { return c.Instance, c.Gap > 0 }) {
		group := report.Group{Head: instance}
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Instance != instance {
				continue
			}
			row := []string{playerText(c), symbols(c.Budget)}
			for _, j := range r.Shown() {
				won, off := words.Measured(r.Won(c, j))
				row = append(row, won+" ± "+off)
			}
			group.Rows = append(group.Rows, row)
		}
		t.Groups = append(t.Groups, group)
	}
	return t, len(t.Groups) > 0
}

// report has the share of what is to be won too, where that is known.
func (k contextualKind) report(r *Results, to *report.Page) error {
	if err := k.vectors.report(r, to); err != nil {
		return err
	}
	if t, ok := wonTable(r); ok {
		to.Tables = append(to.Tables, t)
	}
	return nil
}

// checkTold refuses a gap that cannot be.
func (contextualKind) checkTold(c *CellInfo) error {
	if !(c.Gap >= 0 && c.Gap <= 2) {
		return fmt.Errorf("cell %s has the gap %v", c.Label(), c.Gap)
	}
	return nil
}

func (contextualKind) tell(_ *Spec, c *Cell, to *CellInfo) {
	if c.world.clicks != nil {
		to.Gap, to.Params = c.world.clicks.gap(), c.world.clicks.params(&c.choice)
	}
}

// windowKey is the window alone: whether a reward comes early in it makes no difference.
func windowKey() keyed.Key[Spec] {
	return keyed.Of("delay", keyed.Whole(), func(s *Spec) *keyed.Count { return (*keyed.Count)(&s.Delay.Window) },
		"of instances with topics: rounds that a click may take, which is live what comes in a window").
		Means("of instances with `topics`: how many rounds a click may take; nothing is released before " +
			"that has passed")
}

func floorKey() keyed.Key[Policy] {
	return keyed.Of("floor", keyed.Real(keyed.Object{"minimum": 0, "exclusiveMaximum": 1, "default": 0}),
		func(p *Policy) *float64 { return &p.Floor },
		"of instances with topics: share of the rounds that play a uniform action")
}

// check has what clicks alone have.
func (k contextualKind) check(s *Spec) error {
	if err := k.vectors.check(s); err != nil {
		return err
	}
	var other string // an instance without clicks
	for _, in := range s.Instances {
		if in.Clicks == nil {
			other = in.Name
		}
	}
	if d := s.Delay; d.On() {
		at, err := d.Check(s.span())
		switch {
		case err != nil:
			return s.src.Wrap("delay."+at, err)
		case d.Law != "" || d.Default != 0 || d.Missing != 0:
			return s.fail("delay", "is %v, must be a window alone in an experiment of kind %s", d, s.Kind)
		case other != "":
			return s.fail("delay", "is for instances with topics, and %s is none", other)
		}
	}
	for i, q := range s.Policies {
		at := fmt.Sprintf("policies[%d].floor", i)
		switch {
		case !(q.Floor >= 0 && q.Floor < 1) || math.IsNaN(q.Floor):
			return s.fail(at, "is %v, must be at least 0 and below 1", q.Floor)
		case q.Floor > 0 && other != "":
			return s.fail(at, "is for instances with topics, and %s is none", other)
		}
	}
	return nil
}

// playVisits plays a run in a world of clicks.
func (k contextualKind) playVisits(ctx context.Context, p *Resolved, c *Cell, run int, room *sim.Result) error {
	cfg, err := k.visits(p, c, run)
	if err != nil {
		return err
	}
	return sim.RunVisits(ctx, cfg, room)
}
