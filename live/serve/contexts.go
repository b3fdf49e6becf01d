package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/gramline"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A ContextualInfo is what is public of an experiment with contexts.
type ContextualInfo struct {
	Decisions int // that were issued
	Released  int // of which rewards were released
	Releases  int // in which they were
	Dim       int
	Norm      float64 // what the blocks of a vector are divided by
	// Noise of each release, as it was charged; nil before the first.
	Noise privacy.Mechanism
	// Rules are what the declared rules would have earned, by what was released.
	Rules []play.Earned
}

// contexts is the game of an experiment with contexts: each event brings its actions, and vectors
// of what is known of them. All events are in one queue, number 0.
type contexts struct {
	x      *live
	mapper *feature.Mapper
	play   *play.Live // nil before it has begun
	info   ContextualInfo
	events map[tag]event // what is kept beside their assignments
	offers []tag         // whose vectors are kept, by time
	fresh  []play.Event  // decisions that have to be written

	// of one rank
	vectors []float64
	on      []int
}

// An event is what is kept of a decision to answer who asks again, and of an offer also what it
// becomes if it is activated.
type event struct {
	action, greedy uint64 // by their hashes: what was given, and what but for the floor
	offer          *offer // nil if it is none, or none any more
}

type offer struct{ vector, weights []float64 }

func newContexts(x *live) (*contexts, error) {
	g := &contexts{x: x, events: map[tag]event{}}
	var err error
	if g.mapper, err = x.decl.Mapper(); err != nil {
		return nil, err
	}
	g.info.Dim, g.info.Norm = g.mapper.Dim(), g.mapper.Norm()
	rules, err := x.decl.PlayRules()
	lo, hi := x.decl.Range()
	for _, r := range rules {
		g.info.Rules = append(g.info.Rules, play.Earned{Name: r.Name, Clip: r.Clip, Lo: lo, Hi: hi})
	}
	return g, err
}

// contextsConfig is a play of what was declared, but for its epoch.
func contextsConfig(decl *Experiment) (cfg play.Config, err error) {
	cfg = play.Config{Horizon: int(decl.Horizon), Lo: decl.Lo, Hi: decl.Hi, Default: decl.Default,
		Window: decl.Window.Milliseconds()}
	if cfg.Contexts, err = decl.NewContextual(); err != nil {
		return cfg, err
	}
	if cfg.Rules, err = decl.PlayRules(); err != nil {
		return cfg, err
	}
	cfg.Ledger, err = caps(decl)
	return cfg, err
}

func (g *contexts) config(e *Engine, epoch play.Epoch) (play.Config, error) {
	cfg, err := contextsConfig(&g.x.decl)
	cfg.Vectors, cfg.Curator, cfg.Epoch = e.cfg.VectorCurator, e.cfg.Curator, epoch
	return cfg, err
}

func (g *contexts) queues() int { return 1 }

func (g *contexts) begin(e *Engine, epoch play.Epoch) (machine, error) {
	cfg, err := g.config(e, epoch)
	if err == nil {
		g.play, err = play.New(cfg)
	}
	return g.play, err
}

func (g *contexts) resume(e *Engine, epoch play.Epoch, stored store.Stored,
	lines iter.Seq2[[]byte, error]) (machine, error) {
	cfg, err := g.config(e, epoch)
	if err != nil {
		return nil, err
	}
	state := play.State{Lines: stored.Lines}
	if state.Terms, err = play.TermsOf(cfg); err != nil {
		return nil, err
	}
	if state.Arms, err = queuesOf(stored, 1, readSigned); err != nil {
		return nil, err
	}
	for _, block := range stored.Events {
		events, err := readEvents(block.Data, block.Start, g.info.Dim, len(cfg.Rules))
		if err != nil {
			return nil, err
		}
		state.Events = append(state.Events, events...)
	}
	out, err := readPlan(stored.Plan)
	if err != nil {
		return nil, err
	}
	state.Kept = out.Kept
	g.play, err = play.Restore(cfg, lines, state)
	return g.play, err
}

func (g *contexts) read(all []store.Arm) {
	for _, a := range all {
		g.info.Decisions = a.Issued
	}
}

func (g *contexts) rank(ask RankAsk, now int64) (out Ranking, _ given, err error) {
	x := g.x
	if err := g.look(ask); err != nil {
		return out, given{}, err
	}
	t := tagOf(x.tags, ask.Event)
	u, was := x.units[t]
	running := x.rec.State == Running && x.started(now)
	ended := x.over(now)
	switch s := x.rec.State; {
	case s == Stopped || s == Archived:
		return g.baseline(ask, Static), given{}, nil
	case s != Running && s != Paused:
		return g.baseline(ask, Disabled), given{}, nil
	case x.erased(t):
		return g.baseline(ask, Default), given{}, nil
	case was && x.holds(u, now):
		return g.again(ask, t, u)
	case !running:
		return g.baseline(ask, Disabled), given{}, nil
	case ended || g.play.Stopped():
		return g.baseline(ask, Static), given{}, nil
	}
	return g.choose(ask, t, now)
}

// maxExcluded is how many ids a rank may exclude: each action is looked for among them, and others
// wait.
const maxExcluded = 1000

// look maps what is asked to vectors, those of the actions that are not excluded.
func (g *contexts) look(ask RankAsk) error {
	if n := len(ask.Excluded); n > maxExcluded {
		return fieldError("excluded", "has %d ids, must have at most %d", n, maxExcluded)
	}
	if ask.Deferred && g.x.decl.Contextual.Joint() {
		return fieldError("deferred", "is true, and contexts are protected: whether a decision is met may "+
			"follow from what was given, and counts would tell")
	}
	var err error
	g.vectors, err = g.mapper.Vectors(g.vectors[:0], ask.Context, ask.Actions)
	var wrong *feature.Error
	switch {
	case errors.As(err, &wrong):
		return fieldError(wrong.Field, "%s", wrong.Reason)
	case err != nil:
		return err
	}
	g.on = g.on[:0]
	dim := g.info.Dim
	for i, a := range ask.Actions {
		if slices.Contains(ask.Excluded, a.ID) {
			continue
		}
		copy(g.vectors[len(g.on)*dim:][:dim], g.vectors[i*dim:])
		g.on = append(g.on, i)
	}
	if len(g.on) == 0 {
		return fieldError("excluded", "has all %d actions, must leave one", len(ask.Actions))
	}
	g.vectors = g.vectors[:len(g.on)*dim]
	return nil
}

// baseline is the first action that is not excluded, and does not count.
func (g *contexts) baseline(ask RankAsk, why Reason) Ranking {
	return g.ranking(ask, 0, 1, 0, why, assignment{propensity: 1})
}

// ranking is an answer: of the actions that are not excluded each has the probability share, and
// greedy the probability most.
func (g *contexts) ranking(ask RankAsk, greedy int, most, share float64, why Reason, u assignment) Ranking {
	out := Ranking{Event: ask.Event, Action: ask.Actions[g.on[0]].ID, Propensity: u.propensity, Reason: why,
		Ranked: make([]Ranked, len(ask.Actions))}
	for i, a := range ask.Actions {
		out.Ranked[i].ID = a.ID
	}
	for j, i := range g.on {
		if out.Ranked[i].Probability = share; j == greedy {
			out.Ranked[i].Probability = most
		}
	}
	if u.deadline != 0 {
		out.Expires = time.UnixMilli(u.deadline)
	}
	if u.by != 0 {
		out.ActivateBy = time.UnixMilli(u.by)
	}
	return out
}

// again answers who asks again.
func (g *contexts) again(ask RankAsk, t tag, u assignment) (Ranking, given, error) {
	v, greedy, arm := g.events[t], -1, -1
	for j, i := range g.on {
		h := xxhash.Sum64String(ask.Actions[i].ID)
		if h == v.action {
			arm = j
		}
		if h == v.greedy {
			greedy = j
		}
	}
	if arm < 0 {
		return Ranking{}, given{}, ErrEventTaken
	}
	// With as many actions as then these are the probabilities of then, to the last digit.
	n, p := float64(len(g.on)), u.propensity
	most, share := propensities(g.x.decl.Floor, len(g.on))
	switch {
	case v.action == v.greedy && p == most:
		greedy = arm
	case v.action != v.greedy && greedy >= 0 && p == share:
	default: // what was given has its own; the rest is the greedy one's, or shared out evenly
		most, share = rounded(1-p*(n-1)), p
		if v.action == v.greedy || greedy < 0 || most < share {
			greedy, most, share = arm, p, rounded((1-p)/max(1, n-1))
		}
	}
	out := g.ranking(ask, greedy, most, share, Split, u)
	out.Action = ask.Actions[g.on[arm]].ID
	return out, given{t, u.number, g.x.epochs[u.epoch]}, nil
}

// choose decides a new event.
func (g *contexts) choose(ask RankAsk, t tag, now int64) (Ranking, given, error) {
	x, n := g.x, len(g.on)
	best := g.play.Best(g.vectors)
	greedy := best
	if x.decl.Contextual.Mode == decl.ModeApprentice {
		greedy = 0
	}
	arm := greedy
	if x.decl.Floor > 0 && x.coins.Float64() < x.decl.Floor {
		arm = x.coins.IntN(n)
	}
	most, share := propensities(x.decl.Floor, n)
	u := assignment{propensity: share, epoch: x.at}
	if arm == greedy {
		u.propensity = most
	}
	id := func(j int) string { return ask.Actions[g.on[j]].ID }
	v := event{action: xxhash.Sum64String(id(arm)), greedy: xxhash.Sum64String(id(greedy))}
	vector := slices.Clone(g.vectors[arm*g.info.Dim:][:g.info.Dim])
	weights := make([]float64, len(x.decl.Contextual.Rules))
	for i, r := range x.decl.Contextual.Rules {
		rule := 0 // what it plays
		switch r.Play {
		case decl.PlayUniform:
			weights[i] = 1 / float64(n) / u.propensity
			continue
		case decl.PlayPolicy:
			rule = best
		case "":
			rule = max(0, slices.IndexFunc(g.on, func(i int) bool { return ask.Actions[i].ID == r.ID }))
		}
		if rule == arm {
			weights[i] = 1 / u.propensity
		}
	}
	within := x.decl.Activation().Milliseconds()
	if ask.Deferred && within == 0 {
		within = min(x.window, time.Hour.Milliseconds())
	}
	if within > 0 {
		x.offer(&u, now, within)
		v.offer = &offer{vector, weights}
		g.offers = append(g.offers, t)
	} else {
		k, err := g.play.Decide(play.Decision{Vector: vector, Weights: weights}, now)
		if err != nil {
			return Ranking{}, given{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		u.number, u.deadline = int64(k.Number), k.Deadline
		u.used++
		g.count(play.Event{Number: k.Number, Vector: vector, Weights: weights}, now)
	}
	g.events[t] = v
	x.keep(t, u)
	out := g.ranking(ask, greedy, most, share, Split, u)
	out.Action = id(arm)
	return out, given{t, u.number, x.epochs[u.epoch]}, nil
}

// count counts a decision, which is written with the next commit.
func (g *contexts) count(v play.Event, now int64) {
	g.x.issued = true
	g.info.Decisions++
	g.x.hours.count(0, now)
	g.fresh = append(g.fresh, v)
}

// forgetOffers forgets what offers would have become that can be activated no more.
func (g *contexts) forgetOffers(now int64) {
	for len(g.offers) > 0 {
		t := g.offers[0]
		if u, ok := g.x.units[t]; ok && now < u.by && g.events[t].offer != nil {
			return
		}
		if v, ok := g.events[t]; ok {
			v.offer = nil
			g.events[t] = v
		}
		g.offers = g.offers[1:]
	}
}

func (g *contexts) activate(r reported, now int64) (play.Ticket, bool, error) {
	u, v := g.x.units[r.unit], g.events[r.unit]
	// the event is another offer's by now
	if u.number != r.number || u.by != r.by || v.offer == nil {
		return play.Ticket{}, false, nil
	}
	k, err := g.play.DecideUntil(play.Decision{Vector: v.offer.vector, Weights: v.offer.weights}, now, r.deadline)
	if err != nil {
		return k, false, err
	}
	g.count(play.Event{Number: k.Number, Vector: v.offer.vector, Weights: v.offer.weights}, now)
	v.offer = nil
	g.events[r.unit] = v
	return k, true, nil
}

func (g *contexts) reward(k play.Ticket, r reported, now int64) (play.Status, error) {
	return g.play.Settle(k, r.reward, now)
}

// withdraw is never asked for: an experiment with contexts retracts nothing.
func (g *contexts) withdraw(play.Ticket, int64) (play.Status, error) { return play.Void, nil }

func (g *contexts) gone(int) bool { return false }

func (g *contexts) off(names []string) ([]int, error) {
	if len(names) > 0 {
		return nil, fieldError("off[0]", "is given, and the experiment has no arms: exclude actions from "+
			"their ranks: %w", ErrState)
	}
	return nil, nil
}

func (g *contexts) change(now int64) (*play.Commit, error) {
	g.forgetOffers(now)
	return nil, nil
}

// over: when there were as many decisions as there are to be, and all of them are released.
func (g *contexts) over() (keep int, why endReason, ok bool) {
	return -1, endPolicy, g.play.Stopped() && g.info.Released == g.info.Decisions
}

func (g *contexts) kept(name string) (int, error) {
	if name != "" {
		return 0, fieldError("arm", "is given, and the experiment has no arms: the first action is given "+
			"when it has stopped")
	}
	return -1, nil
}

// waits: decisions wait for nothing, until there are as many as there are to be.
func (g *contexts) waits(now int64) (wait string, until int64) {
	if !g.play.Stopped() {
		return "", 0
	}
	at, ok := g.play.Due(now)
	if !ok { // what is left was closed, and the next tick shows it
		at = now
	}
	return "rewards", at
}

// A contextsLine is what is read of a line that is play's.
type contextsLine struct {
	N       int
	Release json.RawMessage
	Rules   []struct {
		Weights, Squares int64
		Release          json.RawMessage
	}
}

func readContextsLine(line []byte) (in contextsLine, err error) {
	rest, _, _ := gramline.Cut(line)
	err = json.Unmarshal(rest, &in)
	return in, err
}

func (g *contexts) show(line []byte) error {
	in, err := readContextsLine(line)
	if err != nil {
		return err
	}
	return g.add(in)
}

func (g *contexts) add(in contextsLine) error {
	if in.N == 0 {
		return nil
	}
	var of struct{ Mechanism json.RawMessage }
	err := json.Unmarshal(in.Release, &of)
	if err == nil {
		g.info.Noise, err = privacy.UnmarshalMechanism(of.Mechanism)
	}
	switch {
	case err != nil:
		return err
	case len(in.Rules) != len(g.info.Rules):
		return errors.New("a line of the transcript does not release the rules that it says")
	}
	g.info.Released += in.N
	g.info.Releases++
	for i, r := range in.Rules {
		var of struct {
			Sum       []float64
			Mechanism json.RawMessage
		}
		if err := json.Unmarshal(r.Release, &of); err != nil || len(of.Sum) != 1 {
			return errors.Join(err, errors.New("a line of the transcript has no rule's sum"))
		}
		to := &g.info.Rules[i]
		if to.Noise, err = privacy.UnmarshalMechanism(of.Mechanism); err != nil {
			return err
		}
		to.N, to.Releases = to.N+in.N, to.Releases+1
		to.Sum += of.Sum[0]
		to.Weights += float64(r.Weights) * release.ExactStep
		to.Squares += float64(r.Squares) * (release.ExactStep * release.ExactStep)
	}
	return nil
}

func (g *contexts) book(ledger *privacy.Ledger, line []byte) error {
	in, err := readContextsLine(line)
	if err != nil {
		return err
	}
	if in.N > 0 {
		if _, err := ledger.RestoreVector(in.Release); err != nil {
			return err
		}
	}
	for _, r := range in.Rules {
		if _, err := ledger.Restore(r.Release); err != nil {
			return err
		}
	}
	return g.add(in)
}

func (g *contexts) tell(out *Info) {
	info := g.info
	info.Rules = slices.Clone(info.Rules)
	out.Contextual = &info
}

// write adds what was decided since it was called last, a block a segment.
func (g *contexts) write(w *store.Write) {
	fresh := g.fresh
	if g.fresh = nil; len(fresh) == 0 {
		return
	}
	q := g.play.Queue(0, fresh[0].Number)
	if n := max(q.Head-fresh[0].Number, 0); n > 0 { // they have just been released
		fresh = fresh[min(n, len(fresh)):]
	}
	for _, s := range q.Segments {
		n := 0
		for n < len(fresh) && (s.End == 0 || fresh[n].Number < s.End) {
			n++
		}
		if n > 0 {
			w.Events = append(w.Events, store.Events{Start: fresh[0].Number, Data: eventsText(fresh[:n])})
		}
		fresh = fresh[n:]
	}
}

func (g *contexts) plan(to *plan) { to.Kept = g.play.Kept() }

func (g *contexts) more(sums []int64) string { return signedText(sums) }

func (g *contexts) extra(b []byte, t tag) []byte {
	v, ok := g.events[t]
	return appendEvent(b, v, ok)
}

func (g *contexts) readExtra(b []byte, t tag) (rest []byte, err error) {
	v, ok, rest, err := readEvent(b, g.info.Dim, len(g.x.decl.Contextual.Rules))
	if !ok || err != nil {
		return rest, err
	}
	if g.events[t] = v; v.offer != nil {
		g.offers = append(g.offers, t)
	}
	return rest, nil
}

func (g *contexts) forget(t tag) { delete(g.events, t) }

func (g *contexts) forgetAll() { g.events, g.offers, g.fresh = map[tag]event{}, nil, nil }

func (g *contexts) end() { g.play, g.fresh = nil, nil }
