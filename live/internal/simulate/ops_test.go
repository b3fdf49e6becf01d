package simulate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/play"
)

// kindsOfOps are what can happen, and how often.
var kindsOfOps = []struct {
	what  string
	often int
}{{"people ask", 40}, {"people report", 40}, {"time passes", 16}, {"ticks pass", 10}, {"at a deadline", 6},
	{"an operator", 8}, {"a crash", 7}, {"a slow commit", 4}, {"a partition", 2}, {"a clock jumps", 1},
	{"somebody looks", 4}, {"strangers", 2}, {"after a tick", 4}, {"a quiet night", 1}, {"at a sweep", 8}}

// plan draws a world and what happens in it.
func plan(seed uint64) (setting, []op) {
	r := rand.New(rand.NewPCG(seed, 34))
	s := setting{seed: seed, kind: simulated[seed%uint64(len(simulated))], slept: r.IntN(3) == 0, shared: r.IntN(4) == 0,
		wire: r.IntN(10) == 0, lies: r.IntN(4) == 0, large: r.IntN(4) == 0,
		early: r.IntN(4) == 0}
	s.slept = (s.slept || s.kind == "many" && r.IntN(2) == 0) && s.kind != "capped" // whose days are long
	s.early = s.early && !s.slept && !s.shared
	s.shared = s.shared && !s.wire // what is passed on between processes goes over sockets
	// what has a cap, a layer or hidden rewards is not in the second share
	s.parted = s.shared && s.kind != "capped" && s.kind != "many" && s.kind != "local" && seed/uint64(len(simulated))%2 == 0
	all := 0
	for _, k := range kindsOfOps {
		all += k.often
	}
	var ops []op
	for range 40 + r.IntN(160) {
		at := r.IntN(all)
		for _, k := range kindsOfOps {
			if at -= k.often; at < 0 {
				ops = append(ops, op{k.what, size(r, s), r.Uint64()})
				break
			}
		}
	}
	return s, ops
}

// simulated are the kinds of experiments, by the seed.
var simulated = []string{"arms", "arms", "metrics", "contexts", "identify", "grows", "retract", "many", "leases", "drop",
	"joint", "offers", "split", "guards", "local", "many", "persons", "capped", "sums", "cells"}

// size is how many people there are: many in one world of four.
func size(r *rand.Rand, s setting) int {
	n := pick(r, 1, 3, 8, 30, 100, 300, 400, 1000)
	switch contexts := s.kind == "contexts" || s.kind == "joint"; {
	case s.wire || contexts || s.kind == "offers":
		n = 1 + n/50
	case s.large:
		n *= 10
	default:
		n = 1 + n/10
	}
	return 1 + r.IntN(n)
}

func (w *world) do(o op) {
	name := pick(w.Rand, w.names...)
	b := w.byName[name]
	switch o.what {
	case "people ask":
		w.ask(b, o.n)
	case "people report":
		w.reports(b, o.n)
	case "time passes":
		d := time.Duration(1+w.IntN(1+pick(w.Rand, 100, 1000, 5000, 20_000, 70_000))) * time.Millisecond
		w.story("%v pass", d)
		w.pass(d)
		w.sync()
	case "ticks pass":
		w.story("some ticks pass")
		for range 1 + w.IntN(8) {
			w.pass(pick(w.Rand, 100*time.Millisecond, 625*time.Millisecond, 1500*time.Millisecond, 4*time.Second))
			w.sync()
		}
	case "at a deadline":
		w.atDeadline(b)
	case "an operator":
		if i, err := w.p.e.Get(w.t.Context(), b.x.Name); err == nil {
			b.ticked(i.Tick)
		}
		if w.kind == "capped" && w.IntN(3) > 0 {
			w.spend(b)
		} else {
			w.operate(b)
		}
	case "a crash":
		if w.kind == "identify" && w.IntN(2) == 0 {
			w.dieAtReleases(b)
		} else {
			w.crash()
		}
	case "a slow commit":
		w.slowCommit(b, o.n)
	case "a partition":
		d := time.Duration(100+w.IntN(4000)) * time.Millisecond
		w.story("%s does not reach the store for %v", w.p.name, d)
		p := w.p
		p.cut.Store(true)
		w.ask(b, 1+w.IntN(5))
		w.reports(b, 1+w.IntN(5))
		switch w.IntN(4) {
		case 0:
			w.operate(b)
		case 1:
			w.story("an operator stops %s: %v", name, w.stop(name))
		case 2:
			f := 0.3
			w.story("an operator sets a floor of %s: %v", name, w.p.e.Change(w.t.Context(), name, serve.Change{Floor: &f}))
		}
		w.rest(d)
		for _, name := range w.names {
			w.fail(w.durableOnly(w.byName[name]))
		}
		p.cut.Store(false)
		w.recover()
	case "a clock jumps":
		if w.slept {
			return
		}
		d := pick(w.Rand, -3*time.Hour, -time.Minute, -time.Second, time.Second, time.Minute, 2*time.Hour)
		w.story("the clock of %s jumps by %v", w.p.name, d)
		w.p.ahead.Add(d.Milliseconds())
		w.jumped = true
		w.sync()
	case "somebody looks":
		w.lookAll()
	case "strangers":
		w.strangers(b)
	case "after a tick":
		if i, err := w.p.e.Get(w.t.Context(), b.x.Name); w.slept && err == nil && i.Tick > 0 {
			w.ask(b, 1+w.IntN(4))
			tick := i.Tick.Milliseconds()
			for range 1 + w.IntN(4) {
				w.pass(time.Duration(tick-w.clock(w.p)%tick+1) * time.Millisecond)
				w.story("just after a tick")
				w.reports(b, 2)
			}
		}
	case "at a sweep":
		w.atSweep(b)
	case "a quiet night":
		if w.slept && !w.shared && w.IntN(3) == 0 {
			w.story("for 65 minutes nobody asks, and then %s is killed", w.p.name)
			w.disk.disarm() // it is no outage
			w.pass(65 * time.Minute)
			w.p.dead.Store(true)
			w.recover()
			if d := w.p.e.Drift(); d.Abs() > time.Minute {
				w.fail(broken(inTime, "after a quiet night the service's time is %v from the clock", d))
			}
		}
	}
	if w.disk.hasFired() || !w.p.dead.Load() && w.p.e.Ready() != nil {
		w.recover()
	}
}

// ask has people ask, and most of them report at once.
func (w *world) ask(b *book, n int) {
	if w.askOnly(b, n); w.broken == nil && w.IntN(3) > 0 {
		w.reports(b, n)
	}
}

// askOnly has people ask, most of whom are new.
func (w *world) askOnly(b *book, n int) {
	before := w.count.decisions
	for range n {
		unit := w.guests
		if w.guests++; w.IntN(6) == 0 {
			unit = w.IntN(pick(w.Rand, w.guests, min(w.guests, 6))) // some come again and again
		}
		if b.x.Contextual != nil {
			w.rank(b, fmt.Sprint("event ", unit))
		} else {
			w.decide(b, unit)
		}
		if b.asked = w.clock(w.p); w.broken != nil {
			return
		}
	}
	w.story("%d people ask %s: %d decisions count", n, b.x.Name, w.count.decisions-before)
}

func (w *world) decide(b *book, unit int) {
	name, person := fmt.Sprint("unit ", unit), ""
	if b.x.Unit.PerPerson > 0 {
		person = fmt.Sprint("person ", unit/4)
	}
	about := w.about(b)
	exposed := w.leases(b, name)
	token, arm, why, ticket, err := w.asks(b, name, person, about)
	if w.refused(b, err); err != nil || exposed >= 0 && token == "" {
		b.unheard[name] = true
		return
	}
	if exposed >= 0 && arm != exposed && why == serve.Split && b.last[name] == nil && !b.unheard[name] && !b.off[exposed] {
		w.fail(broken(sticky, "%s: %s was exposed to arm %d, and has arm %d", b.x.Name, name, exposed, arm))
	}
	w.tell([]byte(token))
	w.tellInt(uint64(arm))
	if g := b.last[name]; why == serve.Limit && g != nil && g.met && b.most == 1 && !b.x.Free && w.lasts(b, int(g.k.arm)) {
		w.fail(broken(sticky, "%s: %s has met a decision, and is told that it has had all", b.x.Name, name))
	}
	if n := b.given[int32(unit/4)]; why == serve.Limit && person != "" && b.last[name] == nil && n < int(b.x.Unit.PerPerson) &&
		w.net == nil && len(b.unheard) == 0 {
		w.fail(broken(counts, "%s: %s was given %d decisions, and is told that these are all", b.x.Name, person, n))
	}
	if token == "" || why != serve.Split {
		return
	}
	late := time.Since(w.since)
	switch {
	case b.off[arm] && w.net == nil && !w.shared && w.p == w.disk.latest.Load():
		w.fail(broken(announced, "%s: %s is given arm %d, which was taken off", b.x.Name, name, arm))
	case w.p != w.disk.latest.Load() && (w.shared || late > 2*time.Second):
		w.fail(broken(superseded, "%s gives a decision that cannot count, %v after another has begun", w.p.name, late))
	}
	k, deadline, offer := read(token)
	w.fail(w.same(b, name, token))
	g := &given{on: b, token: token, k: k, deadline: deadline, unit: name, ticket: ticket}
	if g.h = b.of[k]; offer { // it may be told again
		if g.h = nil; b.last[name] != nil && b.last[name].token == token {
			g = b.last[name]
		}
	}
	if g.h == nil {
		g.h = &held{index: w.index, deadline: deadline, by: w.p != w.disk.latest.Load()}
		if !b.x.Free {
			g.h.unit = int32(unit) + 1
		}
		g.h.person = int32(unit / 4)
		b.given[g.h.person]++
		if g.h.arm = k.arm; !b.unheard[name] { // else it may be what was not heard, with another context
			g.h.cell = b.cell(about)
		}
		w.index++
		w.count.decisions++
		if b.last[name] = g; !offer {
			b.of[k] = g.h
		}
		w.open = append(w.open, g)
	}
	if offer && w.IntN(4) > 0 {
		shown := w.IntN(5) > 0
		s, err := w.p.e.Activate(w.t.Context(), b.x.Name, token, shown)
		w.still()
		w.tell([]byte(s))
		g.met = g.met || shown && err == nil && s == serve.Accepted
		if err != nil {
			w.tell([]byte("not met"))
		}
	}
}

// leases has a unit decided by the plan, where there is one, and exposed, now and then twice; it is asked for its token after
// that. It gives the arm, −1 if it may not count.
func (w *world) leases(b *book, unit string) (arm int) {
	if !b.x.Leases.On() || w.net != nil || w.IntN(3) == 0 {
		return -1
	}
	p, _, err := w.p.e.Plan(w.t.Context(), b.x.Name)
	if w.refused(b, err); err != nil || p.Reason != "" {
		return -1
	}
	name := p.Arms[p.Decide(unit)].Arm
	v := serve.Exposure{Experiment: b.x.Name, Unit: unit, Epoch: p.Epoch, Arm: name}
	err = w.p.e.Expose(w.t.Context(), []serve.Exposure{v, v}[:1+w.IntN(2)], nil)
	w.still()
	if w.refused(b, err); err != nil {
		b.unheard[unit] = true
		return -1
	}
	return slices.IndexFunc(b.x.Arms, func(a decl.Arm) bool { return a.Name == name })
}

// refused holds that an error says that nothing can be written now.
func (w *world) refused(b *book, err error) {
	var api *client.Error
	if errors.As(err, &api) && api.Status != 503 {
		w.fail(broken(goesOn, "%s: the client is refused: %v", b.x.Name, err))
	}
	if err != nil && w.net == nil && !errors.Is(err, serve.ErrUnavailable) {
		w.fail(broken(goesOn, "%s: it is refused: %v", b.x.Name, err))
	}
}

// rank has an event decided.
func (w *world) rank(b *book, event string) {
	ask := serve.RankAsk{Event: event, Deferred: b.x.Exposure != "" && w.IntN(6) == 0,
		Context: map[string]any{"device": pick(w.Rand, "phone", "desktop")}}
	for a := range 2 + w.IntN(4) {
		ask.Actions = append(ask.Actions, serve.Action{ID: fmt.Sprint("a", a), Features: map[string]any{
			"topic": pick(w.Rand, "war", "sport"), "length": float64(w.IntN(9))}})
	}
	next := b.next
	r, err := w.p.e.Rank(w.t.Context(), b.x.Name, ask)
	w.still()
	if err != nil {
		if !errors.Is(err, serve.ErrEventTaken) {
			w.refused(b, err)
		}
		return
	}
	w.tell([]byte(r.Action))
	if r.Reason != serve.Split || b.issued[0] != next+1 || !r.ActivateBy.IsZero() {
		return // it was asked before, or does not count yet
	}
	b.next = next + 1
	e, _ := epoch(b.runs[0], next)
	g := &given{on: b, event: event, k: key{0, int32(next), e}, deadline: r.Expires.UnixMilli(), unit: event,
		h: &held{index: w.index}}
	if all, err := b.mapper.Vectors(nil, ask.Context, ask.Actions); err == nil {
		i := slices.IndexFunc(ask.Actions, func(a serve.Action) bool { return a.ID == r.Action })
		g.h.vector = all[i*b.mapper.Dim():][:b.mapper.Dim()]
	}
	b.of[g.k] = g.h
	w.index++
	w.count.decisions++
	w.open = append(w.open, g)
}

// some are up to n of what was given lately and is not reported, which then is.
func (w *world) some(b *book, n int) (out []*given) {
	keep := w.open[:0:0]
	for i, g := range w.open {
		if g.on == b && len(out) < n && (len(w.open)-i <= n || w.IntN(3) > 0) {
			out = append(out, g)
			continue
		}
		keep = append(keep, g)
	}
	w.open = keep
	if len(w.open) > 20_000 {
		w.open = slices.Clone(w.open[10_000:])
	}
	return out
}

// reports has people report, some of them again, and some to say that they saw nothing.
func (w *world) reports(b *book, n int) {
	batch := w.some(b, n)
	fresh := len(batch)
	for range 1 + n/10 {
		if len(w.old) > 0 && w.IntN(2) == 0 {
			if g := w.old[len(w.old)-1-w.IntN(min(len(w.old), 500))]; g.on == b {
				batch = append(batch, g)
			}
		}
	}
	if len(w.old) > 5000 {
		w.old = slices.Clone(w.old[2500:])
	}
	w.old = append(w.old, batch[:fresh]...)
	accepted := w.count.accepted
	for part := range slices.Chunk(batch, 500) {
		if w.broken == nil {
			w.send(b, part)
		}
	}
	w.story("%d people report to %s: %d rewards are accepted", len(batch), b.x.Name, w.count.accepted-accepted)
}

// send reports one batch in one request, and is told what came of each.
func (w *world) send(b *book, batch []*given) {
	if b.x.Contextual != nil || b.x.Trust != "" {
		for _, g := range batch {
			w.sendOne(b, g)
		}
		return
	}
	if b.x.Exposure == "retract" && w.IntN(3) == 0 {
		n := len(batch)
		if w.seed%3 > 0 { // else all do, so that nothing counts of an arm in a joint batch
			n = min(n, 5)
		}
		for _, g := range batch[:n] {
			w.retract(b, g)
		}
		batch = batch[n:]
	}
	if w.net != nil && len(b.x.Metrics) == 0 && !b.x.Aggregates() && w.IntN(2) == 0 {
		w.queue(b, batch)
		return
	}
	if b.x.Event != "" && w.net == nil && w.IntN(2) == 0 {
		w.track(b, batch)
		return
	}
	w.deliver(b, batch, func(outcomes []serve.Outcome) ([]serve.Result, error) {
		return w.rewards(b, outcomes)
	})
}

// track reports by units: what one did counts for its newest decision, but not if it says that it was done before that.
func (w *world) track(b *book, batch []*given) {
	var events []serve.Event
	was := map[*given]known{}
	by, over := w.p, b.over
	for _, g := range batch {
		last := b.last[g.unit]
		if last == nil || b.unheard[g.unit] || w.erased[g.unit] { // its newest is not known
			continue
		}
		reward, _ := w.report(b, last.h.index, last.h.arm)
		if math.IsNaN(reward) { // as which it counts
			reward = b.x.Lo
		}
		v := serve.Event{Name: b.x.Event, Unit: g.unit, Fields: map[string]float64{decl.ValueField: reward}}
		if w.IntN(4) == 0 {
			v.At = time.UnixMilli(1)
		} else if was[last] = last.h.reward; last.h.reward == unsent {
			last.h.reward = unsure
		}
		events = append(events, v)
	}
	err := w.p.e.Track(w.t.Context(), events, nil)
	w.still()
	w.count.rewards += len(events)
	w.open = append(w.open, batch...) // nobody was told what came of it, and it is sent again
	if w.refused(b, err); err != nil {
		w.tell([]byte("not taken"))
		return
	}
	for g := range was {
		if !over && !b.over && !w.jumped && !w.wentBack && by == w.p && by == w.disk.latest.Load() && !g.h.by && !g.h.late &&
			b.durable(g.k) && b.last[g.unit] == g && w.clock(by) < g.deadline {
			g.h.reward = acked
		}
	}
}

// deliver makes the reports of what was given, has them sent, and holds the answers against what is known.
func (w *world) deliver(b *book, batch []*given, send func([]serve.Outcome) ([]serve.Result, error)) {
	var outcomes []serve.Outcome
	was := make([]known, len(batch))
	met := make([]bool, len(batch))
	at, by, over := w.clock(w.p), w.p, b.over
	for i, g := range batch {
		reward, metrics := w.report(b, g.h.index, g.h.arm)
		if !b.x.Aggregates() && g.h.reward == acked && w.IntN(2) == 0 { // the first one counts
			reward, metrics = b.x.Hi, nil
		}
		outcomes = append(outcomes, w.several(b, g.h.index, serve.Outcome{Report: serve.Report{Token: g.token, Reward: reward},
			Metrics: metrics})...)
		met[i] = g.met
		if was[i] = g.h.reward; was[i] == unsent {
			g.h.reward = unsure
		}
	}
	results, err := send(outcomes)
	w.still()
	w.count.rewards += len(batch)
	if err != nil {
		w.refused(b, err)
		w.tell([]byte("not taken"))
		w.open = append(w.open, batch...) // it is sent again
		return
	}
	for i, g := range batch {
		k := parts(b, g.h.index)
		for _, r := range results[:k] {
			if r != results[0] {
				w.fail(broken(counts, "%s: reports of one decision are answered %v", b.x.Name, results[:k]))
			}
		}
		w.settled(b, g, was[i], met[i], over, at, results[0], by)
		results = results[k:]
	}
}

// parts is how many reports a decision has.
func parts(b *book, index int32) int {
	if !b.x.Aggregates() {
		return 1
	}
	return 1 + int(index%3)
}

// several are the reports of a decision, in any order: rewards that add up are far apart, on both sides of the range.
func (w *world) several(b *book, index int32, one serve.Outcome) []serve.Outcome {
	out := slices.Repeat([]serve.Outcome{one}, parts(b, index))
	if !b.x.Aggregates() {
		return out
	}
	for i := range out {
		out[i].ID = fmt.Sprint("part ", i)
		if b.x.Aggregate == string(play.AddUp) {
			out[i].Reward += 3 * (float64(i) - float64(len(out)-1)/2)
		}
	}
	w.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// worth is what equal reports of a decision make of a number that is in each.
func worth(how string, n int, x float64) float64 {
	switch play.Aggregate(how) {
	case play.AddUp:
		return float64(n) * x
	case play.CountUp:
		return float64(n)
	}
	return x
}

// settled is told what came of a report.
func (w *world) settled(b *book, g *given, was known, met, over bool, at int64, r serve.Result, by *process) {
	w.tell([]byte(r.Status))
	if r.Err != nil {
		w.fail(broken(goesOn, "%s: a report is refused: %v", b.x.Name, r.Err))
		return
	}
	switch {
	case r.Status == serve.Accepted:
		w.count.accepted++
		g.h.reward = acked
	case was == unsent: // it is sure that it does not count
		g.h.reward = unsent
	}
	if r.Status == serve.Void && met && !w.wentBack && by == w.p && w.lasts(b, int(g.k.arm)) {
		w.fail(broken(counts, "%s: a decision that %s has met is void", b.x.Name, g.unit))
	}
	w.fail(w.answered(b, g.k, g.h, over, at, g.deadline, r.Status, by))
}

// sendOne reports of an event, or a message that the reward is hidden in.
func (w *world) sendOne(b *book, g *given) {
	at, by, was, over := w.clock(w.p), w.p, g.h.reward, b.over
	reward, _ := w.report(b, g.h.index, g.h.arm)
	if g.h.reward == unsent {
		g.h.reward = unsure
	}
	var s serve.Status
	var err error
	if b.x.Contextual != nil {
		s, err = w.p.e.RewardEvent(w.t.Context(), b.x.Name, g.event, reward)
		w.still()
		if errors.Is(err, serve.ErrEvent) { // it was lost, or is over
			if b.durable(g.k) && !over && !b.over && !g.h.by && by == w.disk.latest.Load() && !w.jumped && at < g.deadline && !w.erased[g.event] {
				w.fail(broken(counts, "%s: %s is durable, and there is none", b.x.Name, g.event))
			}
			s, err = serve.Void, nil
			if was == unsent {
				g.h.reward = unsent
			}
			return
		}
	} else {
		if g.ticket == nil {
			g.h.reward = was
			return
		}
		if w.IntN(8) == 0 {
			if s, err := w.p.e.RewardEvent(w.t.Context(), b.x.Name, g.unit, reward); err == nil {
				w.fail(broken(budgets, "%s: a reward in the open, where none has noise, is answered %q", b.x.Name, s))
			}
		}
		var all []serve.Result
		if all, err = w.p.e.Reports(w.t.Context(), b.x.Name, []serve.Message{{Ticket: g.ticket,
			Body: fmt.Append(nil, b.clips[0].Steps(reward))}}); err == nil {
			s, err = all[0].Status, all[0].Err
			w.still()
		}
	}
	w.count.rewards++
	if err != nil {
		w.refused(b, err)
		w.tell([]byte("not taken"))
		w.open = append(w.open, g)
		return
	}
	w.settled(b, g, was, g.met, over, at, serve.Result{Status: s}, by)
}

// retract says that somebody never met a decision.
func (w *world) retract(b *book, g *given) {
	was := g.h.gone
	if was == unsent {
		g.h.gone = unsure
	}
	at, by, over := w.clock(w.p), w.p, b.over
	s, err := w.p.e.Activate(w.t.Context(), b.x.Name, g.token, false)
	w.still()
	if err != nil {
		w.tell([]byte("not taken"))
		return
	}
	w.tell([]byte(s))
	if s == serve.Accepted {
		g.h.gone = acked
	} else if was == unsent { // else an attempt before may have been taken
		g.h.gone = unsent
	}
	w.fail(w.answered(b, g.k, g.h, over, at, g.deadline, s, by))
}

// atDeadline has somebody report in the last millisecond of a window, or in the first after it.
func (w *world) atDeadline(b *book) {
	batch := w.some(b, 1)
	if len(batch) == 0 {
		return
	}
	g := batch[0]
	if d := g.deadline - w.clock(w.p); d > 2 && d < 600_000 {
		to := d + int64(w.IntN(3)) - 1
		w.story("it is %d ms before a deadline", d-to)
		w.pass(time.Duration(to) * time.Millisecond)
	}
	w.send(b, batch)
	w.old = append(w.old, batch...)
	w.sync()
}

// atSweep has somebody report at each sweep, while a release of another experiment is due.
func (w *world) atSweep(b *book) {
	other := w.byName[pick(w.Rand, w.names...)]
	if !w.slept || w.shared || other == b {
		return
	}
	w.askOnly(b, 3)
	until, mine := w.full(other), w.some(b, 1)
	if d := until - w.clock(w.p); d > 200 && d < 600_000 {
		w.pass(time.Duration(d-200) * time.Millisecond)
	}
	w.story("somebody reports to %s at each sweep", b.x.Name)
	for range 12 * len(mine) {
		next := int64(never)
		for _, x := range []*book{b, other} {
			if i, err := w.p.e.Get(w.t.Context(), x.x.Name); err == nil && i.Tick > 0 {
				tick := i.Tick.Milliseconds()
				half := min(tick, 100) / 2
				next = min(next, (w.clock(w.p)-half)/tick*tick+tick+half)
			}
		}
		if next == never || w.broken != nil {
			return
		}
		for _, part := range []int{500, 900} { // a timer has the parts of a millisecond that its last step had
			time.Sleep(time.Until(time.UnixMilli(next).Add(time.Duration(part) * time.Microsecond)))
			w.send(b, mine)
		}
	}
	w.old = append(w.old, mine...)
}

// full has people ask until a release waits for its windows alone, and gives until when.
func (w *world) full(b *book) int64 {
	for range 40 {
		if i, err := w.p.e.Get(w.t.Context(), b.x.Name); err != nil || i.Wait == "rewards" || w.broken != nil {
			return i.Until.UnixMilli()
		}
		w.askOnly(b, 4)
	}
	return 0
}

// strangers send what nobody was given.
func (w *world) strangers(b *book) {
	if b.x.Contextual != nil || b.x.Trust != "" || len(w.old) == 0 {
		return
	}
	g := w.old[w.IntN(len(w.old))]
	all, err := w.p.e.Rewards(w.t.Context(), b.x.Name, []serve.Report{{Token: "x" + g.token, Reward: 1}, {Reward: 1}})
	if err == nil && (all[0].Err == nil || all[1].Err == nil) {
		w.fail(broken(counts, "%s: a token that nobody was given is accepted", b.x.Name))
	}
}

// operate is what an operator does.
func (w *world) operate(b *book) {
	ctx, e, name := w.t.Context(), w.p.e, b.x.Name
	var err error
	what := ""
	if w.kind == "grows" && len(b.runs) < 8 && w.IntN(3) == 0 {
		w.grow(b)
		return
	}
	switch w.IntN(20) {
	case 0, 1, 2:
		what, err = "pauses", e.Pause(ctx, name)
	case 3, 4, 5, 6, 7, 8:
		what, err = "resumes", e.Resume(ctx, name)
	case 9, 10, 18:
		if len(w.arms[name]) > 2 {
			idle := w.idle(b)
			arm := pick(w.Rand, w.arms[name]...)
			if len(idle) > 0 {
				arm = w.arms[name][idle[0]]
			}
			b.leaves[slices.Index(w.arms[name], arm)] = true // if that is durable
			if what, err = "takes off "+arm+" of", e.TakeOff(ctx, name, arm); err == nil && w.IntN(2) == 0 {
				defer w.restart()
			}
		}
	case 11, 12, 13:
		d := pick(w.Rand, 800*time.Millisecond, 3*time.Second, 8*time.Second, 40*time.Second)
		what, err = fmt.Sprintf("sets the window of %v for", d), w.shorten(b, d)
	case 14, 15:
		f := pick(w.Rand, 0.05, 0.1, 0.6)
		what, err = "changes the floor of", e.Change(ctx, name, serve.Change{Floor: &f})
	case 16, 17:
		if len(w.old) > 0 {
			g := w.old[w.IntN(len(w.old))]
			what, err = "erases a unit of", e.Erase(ctx, g.on.x.Name, g.unit)
			delete(g.on.last, g.unit)
			w.erased[g.unit] = true
			for _, other := range slices.Concat(w.open, w.old) {
				if other.on == g.on && other.unit == g.unit && other.h.reward != acked {
					other.h.sealed = b.x.Aggregates()
				}
			}
		}
	case 19:
		if what, err = "archives", e.Archive(ctx, name); w.IntN(6) == 0 {
			what, err = "stops", w.stop(name)
		}
	}
	w.story("an operator %s %s: %v", what, name, err)
}

// grow adds an arm, which comes with a line, and then perhaps a restart.
func (w *world) grow(b *book) {
	b.adds++
	a := serve.Added{Name: fmt.Sprint("more ", b.adds)}
	if b.x.Split() {
		a.Share = pick(w.Rand, 0, 0.1, 0.5)
	}
	err := w.p.e.Change(w.t.Context(), b.x.Name, serve.Change{Add: []serve.Added{a}})
	w.story("an operator adds %s to %s: %v", a.Name, b.x.Name, err)
	if err == nil {
		b.joining = append(b.joining, a.Name)
		if w.IntN(2) == 0 {
			w.restart()
		}
	}
}

// stop has an experiment stop, most often when its windows have passed.
func (w *world) stop(name string) error {
	keep := pick(w.Rand, append(w.arms[name], "", "", "leader")...)
	if w.byName[name].x.Contextual != nil {
		keep = pick(w.Rand, "", "policy")
	}
	if w.IntN(4) == 0 {
		return w.p.e.StopNow(w.t.Context(), name, keep, name)
	}
	return w.p.e.Stop(w.t.Context(), name, keep)
}

// idle are arms that nobody waits on, nor the policy: they come where people wait for a release.
func (w *world) idle(b *book) (out []int) {
	for range 30 {
		s, err := w.disk.mem.Open(w.t.Context())
		if err != nil {
			return nil
		}
		in, err := s.Load(w.t.Context(), b.id)
		if err != nil {
			return nil
		}
		for _, a := range in.Arms {
			if a.Issued > 0 && a.Head == a.Issued && a.Asked == 0 && !a.Off {
				out = append(out, a.Arm)
			}
		}
		i, err := w.p.e.Get(w.t.Context(), b.x.Name)
		if err != nil || len(out) > 0 || w.broken != nil {
			return out
		}
		if i.State == serve.Running {
			w.askOnly(b, 1)
			w.rest(100 * time.Millisecond)
		} else {
			w.pass(time.Second)
			w.sync()
		}
	}
	return nil
}

// restart kills a process when what was asked of it has been done, at its next ticks.
func (w *world) restart() {
	for range 3 {
		w.pass(time.Second)
		w.sync()
	}
	w.story("%s is killed", w.p.name)
	w.p.dead.Store(true)
	w.recover()
	w.lookAll()
}

// shorten sets a window while people have longer ones.
func (w *world) shorten(b *book, d time.Duration) error {
	w.askOnly(b, 1+w.IntN(4))
	err := w.p.e.Change(w.t.Context(), b.x.Name, serve.Change{Window: &d})
	for range 5 {
		w.pass(time.Second)
		w.sync()
		w.askOnly(b, 1+w.IntN(8))
	}
	return err
}

// crash ends a process in one of many ways, or has its disk fail it.
func (w *world) crash() {
	arm := func(how string) {
		n, rows := 1+w.IntN(4), w.IntN(2) == 0
		what := map[bool]string{true: "release", false: "commit"}[rows]
		w.story("%s %d from now is %s", what, n, how)
		w.disk.mu.Lock()
		w.disk.left, w.disk.how, w.disk.rows = n, how, rows
		w.disk.mu.Unlock()
	}
	switch w.IntN(12) {
	case 10:
		w.story("a line cannot be read")
		w.disk.unread.Store(1 + w.Int64N(12))
		fallthrough
	case 0, 1:
		w.story("%s is killed", w.p.name)
		w.p.dead.Store(true)
		w.recover()
	case 2, 3:
		arm("lost")
	case 4, 5:
		arm("written")
	case 6:
		arm("refused")
	case 7:
		arm("unsure")
	case 8:
		w.story("%s ends", w.p.name)
		w.bury(w.p, true)
		w.recover()
	case 11:
		w.hang()
	default:
		w.takeover()
	}
}

// dieAtReleases has each process end when its first release is durable, and is not shown yet.
func (w *world) dieAtReleases(b *book) {
	for range 6 {
		if b.over || w.broken != nil {
			return
		}
		w.story("%s dies at its next release", w.p.name)
		w.disk.mu.Lock()
		w.disk.left, w.disk.how, w.disk.rows = 1, "written", true
		w.disk.mu.Unlock()
		w.ask(b, 40)
		w.pass(time.Minute)
		w.sync()
		w.recover()
	}
}

// hang has a commit not come back for long, while another process watches, and asks who hangs.
func (w *world) hang() {
	if !w.shared {
		return
	}
	if len(w.alive()) < 2 {
		w.start()
		w.given()
	}
	w.story("a commit of %s hangs", w.p.name)
	w.disk.slow.Store(int64(5 * time.Second))
	was := w.p
	for range 8 {
		w.p = was
		w.askOnly(w.byName[pick(w.Rand, w.names...)], 3) // whoever reports waits for the commit
		w.rest(500 * time.Millisecond)
	}
	w.disk.slow.Store(0)
	w.rest(2 * time.Second)
	w.lead()
}

// given waits until who has begun has its part of the shares, which may be the one with the experiments.
func (w *world) given() {
	if !w.parted {
		return
	}
	was := w.p
	w.rest(3 * time.Second)
	w.lead()
	if w.p != was {
		w.count.crashes++
		w.story("%s has given its share to %s", was.name, w.p.name)
	}
}

func (w *world) alive() (out []*process) {
	for _, p := range w.peers {
		if !p.dead.Load() {
			out = append(out, p)
		}
	}
	return out
}

// takeover has another process take the store over, or share it.
func (w *world) takeover() {
	if w.alone {
		return
	}
	if w.shared {
		if len(w.alive()) < 3 {
			w.story("%s begins beside %s", w.start().name, w.p.name)
			w.given()
		}
		return
	}
	was := w.p
	w.p = w.start()
	w.story("%s takes over from %s, which lives on", w.p.name, was.name)
	w.count.crashes++
	// The one that was superseded is asked, and reported to.
	is := w.p
	w.p = was
	for range 1 + w.IntN(4) {
		b := w.byName[pick(w.Rand, w.names...)]
		if w.ask(b, 1+w.IntN(3)); w.IntN(2) == 0 {
			w.reports(b, 1+w.IntN(3))
		}
		w.rest(time.Duration(w.IntN(1500)) * time.Millisecond)
	}
	w.rest(3 * time.Second)
	w.ask(w.byName[w.names[0]], 2)
	w.p = is
	synctest.Wait()
	w.bury(was, false)
	w.recover()
}

// slowCommit has people ask and report while a commit is on its way, and perhaps the process die.
func (w *world) slowCommit(b *book, n int) {
	d := time.Duration(1+w.IntN(900)) * time.Millisecond
	w.story("a commit takes %v, while %d people ask", d, n)
	batch := w.some(b, 1+w.IntN(20))
	if b.x.Contextual != nil || b.x.Trust != "" || len(batch) == 0 || w.wire {
		w.open = append(w.open, batch...)
		return
	}
	w.disk.slow.Store(int64(d))
	w.slowed = true
	defer func() { w.rest(time.Second); w.slowed = false }()
	type answer struct {
		results []serve.Result
		err     error
	}
	got := make(chan answer, 1)
	e := w.p.e
	w.deliver(b, batch, func(outcomes []serve.Outcome) ([]serve.Result, error) {
		go func() {
			results, err := e.Outcomes(w.t.Context(), b.x.Name, outcomes)
			got <- answer{results, err}
		}()
		synctest.Wait()
		w.ask(b, n)
		if w.IntN(4) == 0 {
			w.story("and %s is killed", w.p.name)
			w.p.dead.Store(true)
		}
		w.apart()
		a := <-got
		return a.results, a.err
	})
	w.disk.slow.Store(0)
	w.old = append(w.old, batch...)
	if w.p.dead.Load() {
		w.recover()
	}
}
