package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

// arms is the game of an experiment with arms.
type arms struct {
	x        *live
	play     *play.Live // nil before it has begun
	answer   func() int // of an identification rule, else nil
	fallback int
	values   []json.RawMessage // by arm, what decisions give as its value
	info     []ArmInfo
	metrics  [][]float64 // by metric and arm
}

func newArms(x *live) *arms {
	g := &arms{x: x, info: make([]ArmInfo, len(x.decl.Arms))}
	for _, a := range x.decl.Arms {
		g.values = append(g.values, valueOf(a))
	}
	g.fallback = max(0, slices.IndexFunc(x.decl.Arms, func(a decl.Arm) bool {
		return a.Name == x.decl.Fallback
	}))
	for range x.decl.Metrics {
		g.metrics = append(g.metrics, make([]float64, len(x.decl.Arms)))
	}
	return g
}

// valueOf is what who is given an arm is shown: its name, if none was declared. A visitor who was
// shown something else, such as a default of the caller's, would be counted for this arm all the same.
func valueOf(a decl.Arm) json.RawMessage {
	if len(a.Value) > 0 && string(a.Value) != "null" {
		return a.Value
	}
	name, _ := json.Marshal(a.Name) // a string always can be
	return name
}

// armsConfig is a play of what was declared, but for its epoch, and how its rule says its answer,
// nil if it gives none.
func armsConfig(x *Experiment, coins policy.Coins) (_ play.Config, answer func() int, _ error) {
	p, err := x.NewPolicy(coins)
	if err != nil {
		return play.Config{}, nil, err
	}
	if rule, ok := p.(identify.Identifier); ok {
		answer = rule.Answer
	}
	cfg := play.Config{Policy: p, Arms: len(x.Arms), Lo: x.Lo, Hi: x.Hi, Default: x.Default,
		Window: x.Window.Milliseconds(), Drop: x.Missing == decl.MissingDrop,
		Gathering: x.Gathering()}
	if cfg.Take, err = x.Take(); err != nil {
		return play.Config{}, nil, err
	}
	if cfg.Metrics, err = x.PlayMetrics(); err != nil {
		return play.Config{}, nil, err
	}
	cfg.Ledger, err = caps(x)
	return cfg, answer, err
}

// caps has a ledger refuse what a unit's one assignment may not cost.
func caps(decl *Experiment) ([]privacy.Option, error) {
	each, err := decl.EachTotal()
	if err != nil {
		return nil, err
	}
	switch each.(type) {
	case privacy.Pure, privacy.ZCDP:
		return []privacy.Option{privacy.WithCap(each)}, nil
	}
	return nil, nil
}

func (g *arms) config(e *Engine, epoch play.Epoch) (cfg play.Config, err error) {
	cfg, g.answer, err = armsConfig(&g.x.decl, coinsOf(g.x.rec.Coins))
	cfg.Curator, cfg.Epoch = e.cfg.Curator, epoch
	return cfg, err
}

func (g *arms) queues() int { return len(g.info) }

func (g *arms) begin(e *Engine, epoch play.Epoch) (machine, error) {
	cfg, err := g.config(e, epoch)
	if err == nil {
		g.play, err = play.New(cfg)
	}
	return g.play, err
}

func (g *arms) resume(e *Engine, epoch play.Epoch, stored store.Stored,
	lines iter.Seq2[[]byte, error]) (machine, error) {
	cfg, err := g.config(e, epoch)
	if err != nil {
		return nil, err
	}
	state := play.State{Lines: stored.Lines}
	if state.Terms, err = play.TermsOf(cfg); err != nil {
		return nil, err
	}
	out, err := readPlan(stored.Plan)
	if err != nil {
		return nil, err
	}
	for _, p := range out.Plays {
		state.Batch = append(state.Batch, policy.Play(p))
	}
	if state.Arms, err = queuesOf(stored, len(g.info), readSums); err != nil {
		return nil, err
	}
	g.play, err = play.Restore(cfg, lines, state)
	return g.play, err
}

func (g *arms) read(all []store.Arm) {
	for _, a := range all {
		if a.Arm < len(g.info) {
			g.info[a.Arm].Decisions, g.info[a.Arm].Off = a.Issued, a.Off
		}
	}
}

func (g *arms) decide(ask Ask, now int64) (Decision, error) {
	x, unit := g.x, ask.Unit
	if ask.Force != "" {
		arm := slices.IndexFunc(x.decl.Arms, func(a decl.Arm) bool { return a.Name == ask.Force })
		if arm < 0 {
			return Decision{}, ErrForce
		}
		return g.give(arm, Forced), nil
	}
	switch s := x.rec.State; {
	case !x.decl.For(ask.Context):
		return g.give(g.instead(), Default), nil
	case s == Stopped || s == Archived:
		return g.give(x.rec.Keep, Static), nil
	case s == Paused && !x.decl.Free && unit != "":
		t := tagOf(x.tags, unit)
		if u, was := x.units[t]; was && !g.gone(int(u.arm)) && (u.by == 0 || x.holds(u, now)) {
			return g.told(t, u, Split, now), nil
		}
		return g.give(g.instead(), Disabled), nil
	case s != Running || !x.started(now):
		return g.give(g.instead(), Disabled), nil
	case x.over(now):
		return g.give(g.instead(), Static), nil
	case unit == "" && !x.decl.Free:
		return Decision{}, fmt.Errorf("%w is missing: the experiment is sticky", ErrUnit)
	}
	if !x.in(unit) {
		return g.give(g.instead(), Default), nil
	}
	if unit == "" {
		return g.assign(tag{}, assignment{}, now)
	}
	t := tagOf(x.tags, unit)
	if x.erased(t) {
		return g.give(g.instead(), Default), nil
	}
	u, was := x.units[t]
	spent := was && int(u.used) >= x.decl.Assignments()
	switch {
	case spent && g.gone(int(u.arm)):
		return g.give(g.instead(), Limit), nil
	case was && g.gone(int(u.arm)): // and is assigned again
	case was && x.holds(u, now):
		return g.told(t, u, Split, now), nil
	case spent:
		u.number = beyond
		return g.told(t, u, Limit, now), nil
	}
	return g.assign(t, u, now)
}

// instead is the fallback, or the first arm that is on if that was taken off.
func (g *arms) instead() int {
	if on := func(a ArmInfo) bool { return !a.Off }; !on(g.info[g.fallback]) {
		return max(0, slices.IndexFunc(g.info, on))
	}
	return g.fallback
}

// give is an arm that does not count.
func (g *arms) give(arm int, why Reason) Decision {
	return Decision{Arm: arm, Name: g.x.decl.Arms[arm].Name, Value: g.values[arm], Propensity: 1, Reason: why}
}

// told is the decision of an assignment.
func (g *arms) told(t tag, u assignment, why Reason, now int64) Decision {
	d := g.give(int(u.arm), why)
	d.Propensity, d.Expires = u.propensity, time.UnixMilli(u.deadline)
	k := ticket{arm: int(u.arm), number: u.number, deadline: u.deadline, epoch: g.x.epochs[u.epoch]}
	if u.by != 0 {
		k.by, k.propensity, d.ActivateBy = u.by, u.propensity, time.UnixMilli(u.by)
	}
	d.Token = g.x.sign.sign(k, t)
	d.Report = g.x.task(k, d.Token, now)
	return d
}

// assign makes a new assignment; before is the unit's last.
func (g *arms) assign(t tag, before assignment, now int64) (Decision, error) {
	x, next := g.x, g.play.Arm
	within := x.decl.Activation().Milliseconds()
	if within > 0 {
		next = g.play.Offer
	}
	greedy := next()
	if greedy < 0 {
		return g.give(g.instead(), Disabled), nil // it has stopped, and that is being written
	}
	arm, on := greedy, 0
	for _, a := range g.info {
		if !a.Off {
			on++
		}
	}
	most, share := propensities(x.decl.Floor, on)
	if x.decl.Floor > 0 && x.coins.Float64() < x.decl.Floor {
		for arm = x.coins.IntN(len(g.info)); g.gone(arm); {
			arm = x.coins.IntN(len(g.info))
		}
	}
	u := assignment{propensity: share, epoch: x.at, used: before.used, arm: uint16(arm)}
	if arm == greedy {
		u.propensity = most
	}
	if within > 0 {
		x.offer(&u, now, within)
	} else {
		k, err := g.play.Decide(play.Decision{Arm: arm}, now)
		if err != nil {
			return Decision{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		u.number, u.deadline = int64(k.Number), k.Deadline
		u.used++
		g.count(arm, now)
	}
	if t != (tag{}) {
		x.keep(t, u)
	}
	return g.told(t, u, Split, now), nil
}

// count counts a decision.
func (g *arms) count(arm int, now int64) {
	g.x.issued = true
	g.info[arm].Decisions++
	g.x.hours.count(arm, now)
}

func (g *arms) activate(r reported, now int64) (play.Ticket, bool, error) {
	k, err := g.play.DecideUntil(play.Decision{Arm: r.arm}, now, r.deadline)
	if err == nil {
		g.count(r.arm, now)
	}
	return k, err == nil, err
}

func (g *arms) reward(k play.Ticket, r reported, now int64) (play.Status, error) {
	return g.play.SettleAll(k, r.reward, r.metrics, now)
}

func (g *arms) withdraw(k play.Ticket, now int64) (play.Status, error) {
	return g.play.Withdraw(k, now)
}

func (g *arms) gone(arm int) bool { return g.info[arm].Off }

// change takes the next arm off that is to be. Not while a batch is asked for: who was asked has
// given noise for its rows, and would be asked for others of the same decisions.
func (g *arms) change(now int64) (c *play.Commit, err error) {
	x := g.x
	if len(x.rec.Off) == 0 || x.gathers(now) {
		return nil, nil
	}
	arm := x.rec.Off[0]
	x.rec.Off, x.changed = x.rec.Off[1:], true
	if c, err = g.play.TakeOff(arm); err == nil {
		g.info[arm].Off = true
	}
	return c, err
}

func (g *arms) over() (keep int, why endReason, ok bool) {
	switch {
	case !g.play.Stopped(): // by its last release, or by the last line that was there at a restart
		return 0, "", false
	case g.answer != nil && g.answer() >= 0:
		return g.answer(), endAnswer, true
	}
	return g.instead(), endPolicy, true
}

func (g *arms) waits(now int64) (wait string, until int64) {
	if g.x.pending != nil {
		return "release", (now/g.x.tick + 1) * g.x.tick
	}
	if at, ok := g.play.Due(now); ok {
		return "rewards", at
	}
	return "", 0
}

// kept is the arm of a name that can be kept, the fallback if it is empty.
func (g *arms) kept(name string) (int, error) {
	if name == "" {
		return g.instead(), nil
	}
	keep := slices.IndexFunc(g.x.decl.Arms, func(a decl.Arm) bool { return a.Name == name })
	switch {
	case keep < 0:
		return 0, fieldError("arm", "is %q, must be one of the experiment's arms", clip(name))
	case g.gone(keep) || slices.Contains(g.x.rec.Off, keep):
		return 0, fieldError("arm", "is %q, which is off for good, must be an arm that is not", name)
	}
	return keep, nil
}

func (g *arms) show(line []byte) error {
	var in struct {
		Plays []struct {
			Arm     int
			Release bool
		}
		Release struct {
			N         []int
			Sum       []float64
			Mechanism json.RawMessage
		}
		Metrics []struct{ Sum []float64 }
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return err
	}
	var noise privacy.Mechanism
	if in.Release.Mechanism != nil {
		var err error
		if noise, err = privacy.UnmarshalMechanism(in.Release.Mechanism); err != nil {
			return err
		}
	}
	i := 0
	for _, p := range in.Plays {
		if !p.Release {
			continue
		}
		if i >= len(in.Release.N) || i >= len(in.Release.Sum) || p.Arm < 0 || p.Arm >= len(g.info) {
			return errors.New("a line of the transcript does not release what it says")
		}
		a := &g.info[p.Arm]
		a.Released += in.Release.N[i]
		a.Sum += in.Release.Sum[i]
		a.Releases++
		a.Noise = noise
		for j, m := range in.Metrics {
			if i >= len(m.Sum) || j >= len(g.metrics) {
				return errors.New("a line of the transcript does not release the metrics that it says")
			}
			g.metrics[j][p.Arm] += m.Sum[i]
		}
		i++
	}
	return nil
}

func (g *arms) book(ledger *privacy.Ledger, line []byte) error {
	var in struct {
		Release json.RawMessage
		Metrics []json.RawMessage
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return err
	}
	if len(in.Release) > 0 {
		for _, release := range append([]json.RawMessage{in.Release}, in.Metrics...) {
			if _, err := ledger.Restore(release); err != nil {
				return err
			}
		}
	}
	return g.show(line)
}

func (g *arms) tell(out *Info) {
	out.Arms = slices.Clone(g.info)
	for _, sums := range g.metrics {
		out.Metrics = append(out.Metrics, slices.Clone(sums))
	}
	for _, a := range g.x.rec.Off {
		out.Changes = append(out.Changes, Change{Off: []string{g.x.decl.Arms[a].Name}})
	}
}

func (g *arms) write(*store.Write) {}

func (g *arms) plan(to *plan) {
	for _, p := range g.play.Out() {
		to.Plays = append(to.Plays, planned(p))
	}
}

func (g *arms) more(sums []int64) string { return sumsText(sums) }

func (g *arms) extra(b []byte, _ tag) []byte { return b }

func (g *arms) readExtra(b []byte, _ tag) ([]byte, error) { return b, nil }

func (g *arms) forget(tag) {}

func (g *arms) forgetAll() {}

func (g *arms) end() { g.play = nil }
