package serve

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
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

// Earned is what a rule, by its number, would have earned a decision by what was released, brought into its
// interval; ok is false before a release. The intervals of all rules hold together, whenever they are looked
// at, with probability interval.Confidence.
func (c *ContextualInfo) Earned(rule int) (mean float64, within [2]float64, ok bool) {
	e := c.Rules[rule]
	lo, hi, err := e.Interval((1 - interval.Confidence) / float64(len(c.Rules)))
	for _, x := range []float64{e.Mean(), lo, hi} {
		if err != nil || e.N == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, within, false
		}
	}
	return min(max(e.Mean(), lo), hi), [2]float64{lo, hi}, true
}

// An eventBook is what an experiment with contexts keeps beside its assignments. Of others it is empty.
type eventBook struct {
	mapper *feature.Mapper
	of     map[tag]event
	offers []tag        // whose vectors are kept, by time
	fresh  []play.Event // decisions that have to be written
	// what was learnt when the play ended, and the intervals of its effects; nil if that is not known
	estimate []float64
	within   [][2]float64

	// of one rank
	vectors []float64
	on      []int
	counts  []int
	first   []int // counts of one draw, of the first action
}

// An event is what is kept of a decision to answer who asks again, and of an offer also what it
// becomes if it is activated.
type event struct {
	action, greedy uint64         // by their hashes: what was given, and what but for the floor
	offer          *play.Decision // nil if it is none, or none any more
}

// rankActions gives an event one of its actions, by its context.
func (x *served) rankActions(ask RankAsk, now int64) (out Ranking, _ given, err error) {
	if err := x.look(ask); err != nil {
		return out, given{}, err
	}
	if ask.NoConsent {
		return x.baseline(ask, Default), given{}, nil
	}
	t := tagOf(x.tags, ask.Event)
	u, was := x.units[t]
	running, ends := x.rec.State == Running && x.started(now), x.ends(now)
	switch s := x.rec.State; {
	case s == Stopped || s == Archived:
		return x.static(ask), given{}, nil
	case !s.plays():
		return x.baseline(ask, Disabled), given{}, nil
	case x.erased(t):
		return x.baseline(ask, Default), given{}, nil
	case was && x.holds(u, now):
		return x.again(ask, t, u)
	case ends:
		return x.static(ask), given{}, nil
	case !running:
		return x.baseline(ask, Disabled), given{}, nil
	case x.play.Stopped():
		return x.static(ask), given{}, nil
	}
	return x.choose(ask, t, now)
}

// maxExcluded is how many ids a rank may exclude: each action is looked for among them, and others
// wait.
const maxExcluded = 1000

// look maps what is asked to vectors, those of the actions that are not excluded.
func (x *served) look(ask RankAsk) error {
	if n := len(ask.Excluded); n > maxExcluded {
		return fieldError("excluded", "has %d ids, must have at most %d", n, maxExcluded)
	}
	if ask.Deferred && x.decl.Contextual.Joint() {
		return fieldError("deferred", "is true, and contexts are protected: whether a decision is met may "+
			"follow from what was given, and counts would tell")
	}
	b := &x.events
	var err error
	b.vectors, err = b.mapper.Vectors(b.vectors[:0], ask.Context, ask.Actions)
	var wrong *feature.Error
	switch {
	case errors.As(err, &wrong):
		return fieldError(wrong.Field, "%s", wrong.Reason)
	case err != nil:
		return err
	}
	b.on = b.on[:0]
	dim := b.mapper.Dim()
	for i, a := range ask.Actions {
		if slices.Contains(ask.Excluded, a.ID) {
			continue
		}
		copy(b.vectors[len(b.on)*dim:][:dim], b.vectors[i*dim:])
		b.on = append(b.on, i)
	}
	if len(b.on) == 0 {
		return fieldError("excluded", "has all %d actions, must leave one", len(ask.Actions))
	}
	b.vectors = b.vectors[:len(b.on)*dim]
	return nil
}

// baseline is the first action that is not excluded, and does not count.
func (x *served) baseline(ask RankAsk, why Reason) Ranking {
	return x.ranking(ask, 0, 1, 0, why, assignment{propensity: 1})
}

// static is what is given when decisions have ended: the best action by what was learnt, if that is kept, else
// the first. It does not count, and there are no coins.
func (x *served) static(ask RankAsk) Ranking {
	best, s := 0, x.rec.Stop
	if s == nil {
		of, _ := x.stopping("", endDate) // which is none of a name that could be wrong
		s = &of
	}
	if s.Policy {
		best = feature.Best(x.estimate(), x.events.vectors)
	}
	out := x.ranking(ask, best, 1, 0, Static, assignment{propensity: 1})
	out.Action = ask.Actions[x.events.on[best]].ID
	return out
}

// estimate is what was learnt by what was released; nil if that is not known.
func (x *served) estimate() []float64 {
	if x.play != nil {
		return x.play.Estimate()
	}
	return x.events.estimate
}

// intervals are those of effects by what was released, one for each contrast of the map; nil where there are none.
func (x *served) intervals() [][2]float64 {
	if x.play != nil {
		return intervalsOf(x.events.mapper, x.play.Within)
	}
	return x.events.within
}

// ranking is an answer: of the actions that are not excluded each has the probability share, and
// greedy the probability most.
func (x *served) ranking(ask RankAsk, greedy int, most, share float64, why Reason, u assignment) Ranking {
	out := Ranking{Event: ask.Event, Action: ask.Actions[x.events.on[0]].ID, Propensity: u.propensity,
		Reason: why, Ranked: make([]Ranked, len(ask.Actions))}
	for i, a := range ask.Actions {
		out.Ranked[i].ID = a.ID
	}
	for j, i := range x.events.on {
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
func (x *served) again(ask RankAsk, t tag, u assignment) (Ranking, given, error) {
	v, greedy, arm := x.events.of[t], -1, -1
	for j, i := range x.events.on {
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
	n, p := float64(len(x.events.on)), u.propensity
	most, share := propensities(x.decl.Floor, len(x.events.on))
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
	out := x.ranking(ask, greedy, most, share, Split, u)
	out.Action = ask.Actions[x.events.on[arm]].ID
	return out, given{t, u.number, x.epochs[u.epoch]}, nil
}

// choose decides a new event.
func (x *served) choose(ask RankAsk, t tag, now int64) (Ranking, given, error) {
	if err := x.checkPerson(ask.Person); err != nil {
		return Ranking{}, given{}, err
	}
	if x.full(ask.Person) {
		return x.baseline(ask, Limit), given{}, nil
	}
	n := len(x.events.on)
	by := x.drawn(n)
	plays := by
	if x.decl.Contextual.Mode == decl.ModeApprentice {
		plays = drawing{counts: x.events.first[:n], of: 1}
	}
	greedy := plays.one(x.coins)
	arm, _ := x.floored(greedy, n, n, func(int) bool { return false })
	if plays.of > 1 { // who asks again is told what was given, and its probability
		greedy = arm
	}
	u := assignment{propensity: plays.chance(x.decl.Floor, arm), epoch: x.at}
	id := func(j int) string { return ask.Actions[x.events.on[j]].ID }
	v := event{action: xxhash.Sum64String(id(arm)), greedy: xxhash.Sum64String(id(greedy))}
	dim := x.events.mapper.Dim()
	d := play.Decision{Vector: slices.Clone(x.events.vectors[arm*dim:][:dim]),
		Weights: make([]float64, len(x.decl.Contextual.Rules))}
	for i, r := range x.decl.Contextual.Rules {
		rule := 0 // what it plays
		switch r.Play {
		case decl.PlayUniform:
			d.Weights[i] = 1 / float64(n) / u.propensity
			continue
		case decl.PlayPolicy:
			d.Weights[i] = float64(by.counts[arm]) / float64(by.of) / u.propensity
			continue
		case "":
			rule = max(0, slices.IndexFunc(x.events.on, func(i int) bool { return ask.Actions[i].ID == r.ID }))
		}
		if rule == arm {
			d.Weights[i] = 1 / u.propensity
		}
	}
	within := x.decl.Activation().Milliseconds()
	if ask.Deferred && within == 0 {
		within = min(x.window, time.Hour.Milliseconds())
	}
	if err := x.issue(&u, &d, now, within); err != nil {
		return Ranking{}, given{}, err
	}
	if within > 0 {
		offered := d // where most are none
		v.offer = &offered
		x.events.offers = append(x.events.offers, t)
	}
	x.events.of[t] = v
	x.keep(t, u)
	x.countPerson(ask.Person)
	out := x.ranking(ask, arm, 0, 0, Split, u)
	for j, i := range x.events.on {
		out.Ranked[i].Probability = plays.chance(x.decl.Floor, j)
	}
	out.Action = id(arm)
	return out, given{t, u.number, x.epochs[u.epoch]}, nil
}

// A drawing is how many of so many draws each action is played by.
type drawing struct {
	counts []int
	of     int
}

// drawn is the policy's for a decision among n actions, in the book's own memory.
func (x *served) drawn(n int) drawing {
	b := &x.events
	for len(b.counts) < n {
		b.counts, b.first = append(b.counts, 0), append(b.first, 0)
		b.first[0] = 1
	}
	counts := b.counts[:n]
	return drawing{counts, x.play.Draw(b.vectors, counts)}
}

// one is the action that is played by one of the draws: each as likely, and without a coin if there is one.
func (d drawing) one(coins *rand.Rand) int {
	at := 0
	if d.of > 1 {
		at = coins.IntN(d.of)
	}
	return linear.Drawn(d.counts, at)
}

// chance is the probability of an action given the draws: a share of the floor, and of the rest that of its draws.
func (d drawing) chance(floor float64, action int) float64 {
	most, share := propensities(floor, len(d.counts))
	switch d.counts[action] {
	case 0:
		return share
	case d.of:
		return most
	}
	return rounded(share + float64((1-floor)*float64(d.counts[action]))/float64(d.of))
}

// forgetOffers forgets what offers would have become that can be activated no more.
func (x *served) forgetOffers(now int64) {
	for b := &x.events; len(b.offers) > 0; b.offers = b.offers[1:] {
		t := b.offers[0]
		if u, ok := x.units[t]; ok && now < u.by && b.of[t].offer != nil {
			return
		}
		if v, ok := b.of[t]; ok {
			v.offer = nil
			b.of[t] = v
		}
	}
}

// offered is the decision that an offer becomes; ok is false if it is none any more: its event is another
// offer's by now.
func (x *served) offered(r reported) (d play.Decision, ok bool) {
	if x.decl.Contextual == nil {
		return play.Decision{Arm: r.arm}, true
	}
	u, v := x.units[r.unit], x.events.of[r.unit]
	if u.number != r.number || u.by != r.by || v.offer == nil {
		return d, false
	}
	d, v.offer = *v.offer, nil
	x.events.of[r.unit] = v
	return d, true
}

// write adds the decisions since it was called last, a block a segment of their queue.
func (b *eventBook) write(w *store.Write, from *play.Live) {
	fresh := b.fresh
	if b.fresh = nil; len(fresh) == 0 {
		return
	}
	q := from.Queue(0, fresh[0].Number)
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

// restored are the decisions that were written.
func (b *eventBook) restored(blocks []store.Events, rules int) (all []play.Event, err error) {
	if b.mapper == nil {
		return nil, nil
	}
	for _, block := range blocks {
		events, err := readEvents(block.Data, block.Start, b.mapper.Dim(), rules)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	return all, nil
}

// forget forgets all of them.
func (b *eventBook) forget() { b.of, b.offers, b.fresh = nil, nil, nil }

// put is what was stored of an event.
func (b *eventBook) put(t tag, v event) {
	if b.of[t] = v; v.offer != nil {
		b.offers = append(b.offers, t)
	}
}
