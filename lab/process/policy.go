package process

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

// entry is what the catalog knows of the program.
func (p *program) entry() catalog.Entry {
	e := catalog.Entry{Name: p.said.Name, Title: p.said.Name, Private: p.said.Mechanism != none,
		Budgets: p.said.budgets(), Anytime: true, Guarantee: "none", Program: p.of,
		Regret:    "none: nothing is proved of a program of somebody else",
		Source:    p.name(),
		Simulated: "it is a program of somebody else, of whose decisions nothing is proved"}
	if e.Private {
		e.Guarantee = "that of its noise, which Sotto draws (Interactive, Table and View), rewards in range"
	}
	if p.said.Identify {
		e.Bandit = catalog.BanditIdentify
		e.NewIdentify = func(s catalog.IdentifySetting, _ catalog.Params) (identify.Identifier, error) {
			return p.player(begin{Arms: s.Arms, Risk: s.Risk}, s.Budget, s.Coins)
		}
		return e
	}
	e.Bandit = catalog.BanditArms
	e.New = func(s catalog.Setting, _ catalog.Params) (policy.Policy, error) {
		q, err := p.player(begin{Arms: s.Arms, Horizon: s.Horizon}, s.Budget, s.Coins)
		if err != nil {
			return nil, err
		}
		return q, nil
	}
	return e
}

// player is the program's policy for one run. It holds no process before it is asked for plays.
func (p *program) player(b begin, budget privacy.Budget, coins policy.Coins) (*player, error) {
	if b.Arms < 2 {
		return nil, fmt.Errorf("arms is %d, must be at least 2: with one arm there is nothing to learn", b.Arms)
	}
	if budget == nil {
		budget = privacy.None{}
	}
	m, scale, err := p.said.mechanism(budget)
	if err != nil {
		return nil, p.fail(err)
	}
	if math.IsInf(scale, 0) || math.IsNaN(scale) {
		return nil, p.fail(fmt.Errorf("scale is %v, must be of finite noise: at %v it is of scale %v",
			p.said.Scale, budget, scale))
	}
	if p.said.Scale < 1 && !p.of.Any {
		if _, free := budget.(privacy.None); !free {
			return nil, p.fail(fmt.Errorf("scale is %v, must be at least 1: noise of scale %.4g costs more than "+
				"the budget, %v", p.said.Scale, scale, budget))
		}
	}
	if b.Budget, err = json.Marshal(budget); err != nil {
		return nil, p.fail(err)
	}
	b.Scale = scale
	return &player{of: p, mechanism: m, run: b, coins: coins, most: most(b.Horizon)}, nil
}

// most is how many rounds a play can have.
func most(horizon int) int {
	if horizon > 0 {
		return horizon
	}
	return math.MaxInt32
}

// A player is a run of a program's policy: policy.Outsider, and identify.Identifier.
type player struct {
	of        *program
	mechanism privacy.Mechanism
	run       begin
	coins     policy.Coins
	most      int

	child  *child // nil before the first play, and at the end
	batch  policy.Batch
	answer answer
	ended  bool
	err    error
	line   []byte
}

// Mechanism implements policy.Policy.
func (p *player) Mechanism() privacy.Mechanism { return p.mechanism }

// Err implements policy.Outsider.
func (p *player) Err() error { return p.err }

// Answer implements identify.Identifier.
func (p *player) Answer() int {
	if p.answer.stops {
		return p.answer.answer
	}
	return -1
}

// Next implements policy.Policy: it asks the program.
func (p *player) Next(released privacy.Released) *policy.Batch {
	switch {
	case p.ended:
		return nil
	case p.child != nil && !p.batch.Plays[0].Release:
		return &p.batch // at rest there is nothing to ask
	}
	if err := p.ask(released); err != nil {
		p.err, p.ended, p.child = err, true, nil
		return nil
	}
	if p.answer.stops {
		p.End()
		return nil
	}
	p.batch.Plays = p.answer.plays
	return &p.batch
}

func (p *player) ask(released privacy.Released) (err error) {
	if p.child == nil {
		if p.child, err = p.of.lease(); err != nil {
			return err
		}
		if p.coins != nil {
			p.run.Seed = seed(p.coins.Float64())
		}
		p.line, err = writeBegin(p.line[:0], p.run)
	} else {
		p.line = writeRelease(p.line[:0], p.batch.Plays, released)
	}
	if err != nil {
		return err
	}
	line, err := p.child.ask(p.line)
	if err != nil {
		return err
	}
	if err := p.answer.read(line, p.child.turn, p.run.Arms, p.most, p.of.said.Identify); err != nil {
		p.child.end()
		return p.of.fail(err)
	}
	return nil
}

// End implements policy.Outsider: the process can play the next run.
func (p *player) End() {
	if p.child != nil && p.err == nil {
		p.of.free(p.child)
	}
	p.child, p.ended = nil, true
}
