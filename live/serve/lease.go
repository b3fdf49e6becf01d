package serve

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
)

// Leased decisions. A plan is made at a public tick, of the policy's batch, counts and the clock, and is durable
// before it is shown. Whoever has it decides by a hash (lease.Plan), and says so: an exposure. From the commit that
// takes it on it is a decision as every other, with a number, a window and a durable assignment.
//
// An exposure counts if its plan allows the arm to the unit, until the plan's end and a declared delay have passed
// by the service's clock, and if the unit was not assigned before. It is looked at without a look at any reward or
// event. Exposures and events are taken in the order in which they came, whichever commits they are in, so an event
// that comes before the exposure of its unit finds no decision, whoever else reports. So with the same plans and the same exposures the decisions are the same, whatever comes of them.

// Proof of privacy. Take two worlds that differ in one unit's events, and let all released sums be the same. The
// premise is that exposures, given the plans, are the same: whether and when one comes does not depend on its outcome.
// Go from tick to tick. If plans and exposures were the same so far, so is which exposures counted, since that is looked
// up in plans, assignments, counts and the clock. So numbers, segments, deadlines and closings are the same, and so is
// when the next sums are released; the next plan follows from these sums and counts. By induction all that is seen is
// the same, but for the released sums; the unit's one decision is in one slot of them, and moves it by at most the
// range. That the worlds' sums are equally likely up to e^ε is the release's own proof, and plans are post-processing.
//
// A client that lies may name any of three hashes and any epoch whose exposures still count, and so choose among the arms
// that these give the unit. Recorded propensities are those of an honest client; privacy does not rest on it.
//
// The first exposure of a unit counts, so it is in one slot however often it is sent. One that comes after a public tick
// whose sweep is late is taken before what the sweep closes, as a decision by request is. An epoch that was made up has
// no plan, and an arm that its plan does not give is no decision.
//
// There is no count of exposures that come with their events, and no refusal of them: either would follow from when
// events arrive, without noise.

// Bounds of exposures.
const MaxExposures = 1000 // of one Expose

// plansKept is how many plans there are at a time at most whose exposures count, but for those that an operator
// has made by changes.
const plansKept = 256

// A leased is a plan as the record has it.
type leased struct {
	Epoch   uint64 `json:"epoch"`
	From    int64  `json:"from"`
	Until   int64  `json:"until"`
	Ahead   int64  `json:"ahead,omitempty"` // by so much both are, of the clock by which others tell the time
	Made    int    `json:"made"`            // decisions of all arms when it was made
	Shown   int    `json:"shown"`           // lines that it is made of
	Buckets []int  `json:"buckets"`         // by arm; gone: it was removed

	plan lease.Plan
}

// gone stands for the buckets of an arm that was removed.
const gone = -1

// An Exposure says that a unit was given an arm by a plan.
type Exposure struct {
	Experiment, Unit string
	Epoch            uint64
	Arm              string
	Hash             string // by which it was decided, of lease.Hashes; empty for SipHash
}

// ErrStrict: exposures are reported by who may report what comes of them, and an experiment of theirs is strict.
var ErrStrict = errors.New("the experiment's exposures are strict: a key that reports them must not have the scope reward")

// Check says what is wrong with the form of an exposure, which no experiment is asked for.
func (v Exposure) Check() error {
	switch {
	case v.Experiment == "" || len(v.Experiment) > maxID:
		return fieldError("experiment", "has %d bytes, must have from 1 to %d", len(v.Experiment), maxID)
	case v.Unit == "":
		return fieldError("targetingKey", "is missing, must name the unit")
	case len(v.Unit) > maxUnit:
		return fieldError("targetingKey", "has %d bytes, must have at most %d", len(v.Unit), maxUnit)
	case v.Epoch == 0:
		return fieldError("epoch", "is 0 or missing, must be that of the plan")
	case v.Arm == "" || len(v.Arm) > maxID:
		return fieldError("arm", "has %d bytes, must have from 1 to %d", len(v.Arm), maxID)
	case v.Hash != "" && !slices.Contains(lease.Hashes(), v.Hash):
		return fieldError("hash", "is %q, must be %s", clip(v.Hash), strings.Join(lease.Hashes(), " or "))
	}
	return nil
}

// Expose takes exposures, and returns when what they did is durable, whatever that is: an error is for all of
// them, which can then be sent again. Where an experiment's are strict, none is taken of a key (As) with the scope
// reward: the error matches ErrStrict, and goes by what was declared and by the key alone. Each counts if counts gives leave for it, by its place; nil is leave for all.
func (e *Engine) Expose(ctx context.Context, all []Exposure, counts func(i int) bool) error {
	if !e.here() {
		return errElsewhere
	}
	if e.cfg.ReadOnly {
		return ErrReadOnly
	}
	for i, v := range all {
		if err := v.Check(); err != nil {
			return fmt.Errorf("exposure %d: %w", i, err)
		}
	}
	// Who has nothing to write waits for a commit, too.
	jobs := []*job{{durable: true, act: func(*served, *store.Commit, int64) error { return nil }}}
	now, of := e.now(), map[string]*job{}
	k, _ := By(ctx)
	for i, v := range all {
		if counts != nil && !counts(i) {
			continue
		}
		j := of[v.Experiment]
		if j == nil {
			x, err := e.lookup(v.Experiment)
			if err != nil || !x.decl.Leases.On() {
				continue
			}
			if x.decl.Leases.Exposures == decl.ExposuresStrict && k.Scopes&ScopeReward != 0 {
				return fmt.Errorf("exposure %d: %w", i, ErrStrict)
			}
			j = &job{on: x, at: now}
			of[v.Experiment], jobs = j, append(jobs, j)
		}
		j.exposures = append(j.exposures, v)
	}
	return e.do(ctx, jobs...)
}

// expose takes an exposure that came at now.
func (x *served) expose(v Exposure, now int64) {
	if x.play == nil || x.play.Stopped() || x.ends(now) {
		return
	}
	l := x.leaseOf(v.Epoch)
	if l == nil || now >= l.Until+x.decl.Leases.Delay.Milliseconds() {
		return
	}
	if !x.isLaw(l) { // of the row that the decision would be in: that follows from counts, whatever the arm
		return
	}
	at := l.plan.DecideBy(v.Hash, v.Unit)
	if at < 0 || l.plan.Arms[at].Arm != v.Arm {
		return
	}
	arm := x.armOf(v.Arm)
	t := tagOf(x.tags, v.Unit)
	if _, was := x.units[t]; was || x.erased(t) || x.gone(arm) {
		return
	}
	u := assignment{propensity: l.plan.Arms[at].Propensity(), epoch: x.at, arm: uint16(arm)}
	if x.issue(&u, &play.Decision{Arm: arm}, now, 0) == nil {
		x.keep(t, u)
	}
}

// leaseOf is the plan of an epoch, nil if there is none whose exposures count.
func (x *served) leaseOf(epoch uint64) *leased {
	i := slices.IndexFunc(x.rec.Leases, func(l leased) bool { return l.Epoch == epoch })
	if i < 0 {
		return nil
	}
	return &x.rec.Leases[i]
}

// leaseOnTick makes another plan at a public tick, where one is due: where arms were added or removed; where lines
// were shown since the last, which the policy may have learnt from; and when half of the time has passed for which
// it may be used.
func (x *served) leaseOnTick(at int64) {
	how := x.decl.Leases
	if !how.On() || x.play == nil || x.rec.State != Running || x.board.watch.held || !x.started(at) || x.over(at) {
		return
	}
	lasts := how.For.Milliseconds()
	made, expected := 0, x.decl.Traffic*how.For.Hours()/24
	for _, q := range x.board.queues {
		made += q.Decisions
	}
	if n := len(x.rec.Leases); n > 0 {
		last := x.rec.Leases[n-1]
		old, least := at-last.From, max(lasts/16, (lasts+how.Delay.Milliseconds())/plansKept)
		learnt := last.Shown != x.shown && old >= least
		if x.hasArmsOf(last) && x.isLaw(&last) && old < lasts/2 && !learnt {
			return
		}
		expected = float64(made-last.Made) * float64(lasts) / float64(max(old, 1))
	}
	buckets := x.buckets(expected)
	if buckets == nil {
		return
	}
	x.rec.Leases = slices.DeleteFunc(slices.Clone(x.rec.Leases), func(l leased) bool {
		return at >= l.Until+how.Delay.Milliseconds()
	})
	x.rec.Epoch++
	until, ahead := at+lasts, at-x.date(at)
	if !x.decl.End.IsZero() {
		until = min(until, x.decl.End.UnixMilli()+ahead)
	}
	l := leased{Epoch: x.rec.Epoch, From: at, Until: until, Ahead: ahead, Made: made, Shown: x.shown, Buckets: buckets}
	x.rec.Leases = append(x.rec.Leases, x.planned(l))
	x.todo |= theRecord
}

// hasArmsOf says that the arms that are on are those of a plan.
func (x *served) hasArmsOf(l leased) bool {
	for a := range x.board.queues {
		if a >= len(l.Buckets) || x.gone(a) != (l.Buckets[a] == gone) {
			return false
		}
	}
	return true
}

// isLaw says that a plan has the shares in which the next decision is drawn, where the policy has shares: they change
// where an arm joins, and a decision by an older plan would not be tossed as the test of two arms has it.
func (x *served) isLaw(l *leased) bool {
	shares := x.play.Shares()
	if shares == nil {
		return true
	}
	for a, n := range lease.Apportion(shares) {
		if has := a < len(l.Buckets) && l.Buckets[a] != gone; has && l.Buckets[a] != n || !has && n != 0 {
			return false
		}
	}
	return true
}

// buckets are the arms' by what the policy wants played, if so many decisions are expected; nil if it wants
// nothing.
func (x *served) buckets(expected float64) []int {
	weights := x.play.Weights(expected)
	if weights == nil {
		return nil
	}
	sum, on := 0., 0
	for a := range weights {
		if x.gone(a) {
			weights[a] = 0
			continue
		}
		sum, on = sum+weights[a], on+1
	}
	for a := range weights {
		if sum > 0 {
			weights[a] /= sum
		}
		if !x.gone(a) && x.play.Shares() == nil {
			weights[a] = float64((1-x.decl.Floor)*weights[a]) + x.decl.Floor/float64(on)
		}
	}
	out := lease.Apportion(weights)
	for a := range out {
		if x.gone(a) {
			out[a] = gone
		}
	}
	return out
}

// planned is a plan of the record, with what clients have of it.
func (x *served) planned(l leased) leased {
	mac := hmac.New(sha256.New, x.saltKey)
	mac.Write(binary.BigEndian.AppendUint64(nil, l.Epoch))
	l.plan = lease.Plan{Experiment: x.decl.Name, Epoch: l.Epoch, Fallback: x.decl.Fallback, From: time.UnixMilli(l.From - l.Ahead).UTC(),
		Until: time.UnixMilli(l.Until - l.Ahead).UTC()}
	copy(l.plan.Salt[:], mac.Sum(nil))
	for a, n := range l.Buckets {
		if n != gone {
			l.plan.Arms = append(l.plan.Arms, lease.Share{Arm: x.decl.Arms[a].Name, Value: x.values[a], Buckets: n})
		}
	}
	return l
}

// Plan is how clients decide now, and a channel that is closed when that may be another one. While nobody is
// assigned it says so (lease.Plan.Reason), and has the arm that everybody is given.
func (e *Engine) Plan(ctx context.Context, name string) (lease.Plan, <-chan struct{}, error) {
	x, err := e.writable(ctx, name)
	if err != nil {
		return lease.Plan{}, nil, err
	}
	if !x.decl.Leases.On() {
		return lease.Plan{}, nil, fmt.Errorf("experiment %q: its clients ask for decisions, since it declares no leases: %w",
			name, ErrState)
	}
	now := e.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.planFor(now), x.replanned, nil
}

func (x *served) planFor(now int64) lease.Plan {
	ends := x.ends(now)
	if x.durable.state == Running && x.rec.State == Running && !ends {
		if l := x.leaseOf(x.durable.epoch); l != nil && now < l.Until {
			return l.plan
		}
	}
	arm, why := x.instead(), Disabled
	switch s := x.durable.state; {
	case s == Stopped || s == Archived:
		arm, why = x.durable.keep, Static
	case ends:
		arm, why = x.meanwhile(), Static
	}
	lasts := x.decl.Leases.For.Milliseconds()
	from := x.date(now) / lasts * lasts
	return lease.Plan{Experiment: x.decl.Name, Epoch: x.durable.epoch, Reason: string(why), From: time.UnixMilli(from).UTC(),
		Until: time.UnixMilli(from + 2*lasts).UTC(),
		Arms:  []lease.Share{{Arm: x.decl.Arms[arm].Name, Value: x.values[arm], Buckets: lease.Buckets}}}
}
