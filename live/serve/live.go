package serve

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A State is where an experiment is in its life.
type State string

// The states of an experiment.
const (
	Draft   State = "draft"   // it was created, and not started
	Running State = "running" // it decides
	// for its start, or it decides and waits for rewards' windows to pass
	Waiting  State = "waiting"
	Paused   State = "paused"   // nobody new is assigned; windows go on
	Stopped  State = "stopped"  // for good; one arm is kept
	Archived State = "archived" // and nothing of its units is left
	Failed   State = "failed"   // it cannot go on, and can be read and stopped
)

// An Info says how an experiment is, by what everybody may see.
type Info struct {
	Experiment Experiment
	State      State
	// Wait says what a waiting experiment waits for: start, rewards, sums or release, and Until until when at least.
	Wait  string
	Until time.Time
	// Since is when it began to wait for sums of rewards that it does not see, and Trouble why they
	// could not be had the last time, if they could not.
	Since   time.Time
	Trouble string
	// Reason says why it has failed.
	Reason string
	// Why says why it has stopped: answer (its rule has one, the arm that is kept), policy (it wants
	// nothing more), date (its declared end) or operator.
	Why  string
	Keep int // the arm that is kept when it has stopped, else −1
	Arms []ArmInfo
	// Contextual is nil where there are arms.
	Contextual *ContextualInfo
	// Metrics are the noisy sums of each metric, by arm, of what was released, mapped to [0,1].
	Metrics [][]float64
	Batches int           // that were released or played, and changes
	Lines   int           // of the transcript
	Tip     string        // the SHA-256 of the last of them, in hex; empty before the first
	Tick    time.Duration // releases are closed and shown at multiples of it
	Changes []Change      // that come with the next ticks
	// Spent is what a reward has lost at most, and Cap what it may lose.
	Spent, Cap privacy.Loss
	Budget     privacy.Budget // of a reward, see Experiment.EachAssignment
}

// An ArmInfo is what is public of an arm.
type ArmInfo struct {
	Decisions int // that were issued
	Released  int // of which rewards were released
	Releases  int // in which they were
	// Sum is the noisy sum of these, mapped to [0,1].
	Sum   float64
	Noise privacy.Mechanism // of each release, as it was charged; nil before the first
	Off   bool              // it was taken off
}

// Sums is what was released of the arm, for an interval of its mean. Where decisions can be
// retracted, or are dropped without a report, it is an interval only if that does not go by the
// reward: the sum has a reward that came before its decision was retracted, up to N in all, and N
// has not.
//
// Of rewards that the service does not see it has all the noise that there can be: of two servers two
// whole noises a release, of local trust one of each decision. What is beyond the reach of noise is
// clipped, with probability 2^-64 for each whole noise.
func (a ArmInfo) Sums() interval.Sums {
	out := interval.Sums{N: a.Released, Sum: a.Sum, Releases: a.Releases, Noise: a.Noise}
	m, ok := a.Noise.(privacy.Aggregated)
	if !ok {
		return out
	}
	switch m.Trust {
	case privacy.TrustTwoServer:
		out.Noises = 2 * a.Releases
	case privacy.TrustLocal:
		out.Noises = a.Released
	default: // Users shares are a whole one
		out.Noises = (a.Released + m.Users - 1) / m.Users
	}
	scale := float64(m.Num) / float64(m.Den)
	out.Noise = privacy.Laplace{Scale: scale / float64(m.G)}
	if m.Noise == privacy.NoiseGaussian { // a variance, of a share
		out.Noise = privacy.Gaussian{Sigma: math.Sqrt(scale*float64(m.Users)) / float64(m.G)}
	}
	return out
}

// record is what the store has of an experiment beside its play.
type record struct {
	Declaration json.RawMessage `json:"declaration"`
	State       State           `json:"state"`
	Reason      string          `json:"reason,omitempty"`
	Created     int64           `json:"created"`
	Keep        int             `json:"keep"`
	Ended       int64           `json:"ended,omitempty"` // when it stopped
	Why         endReason       `json:"why,omitempty"`   // it has stopped
	Told        bool            `json:"told,omitempty"`  // its webhook knows
	// arms that are to be taken off at the next ticks, and what else is to be changed
	Off     []int    `json:"off,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	// slots that are due, under trust secagg
	Cohorts []cohortState `json:"cohorts,omitempty"`
	// keys are derived from it, so that no two experiments share one
	Key   [16]byte `json:"key"`
	Coins [16]byte `json:"coins"` // the seed of the policy's coins
	seeds [32]byte
}

// random is what has to be filled with random bytes.
func (r *record) random() []byte { return r.seeds[:] }

// An assignment is what a unit was given last, or, under the key of an offer, what came of it: then
// there is no propensity, and the number is beyond if the unit did not meet it.
type assignment struct {
	number     int64
	deadline   int64
	by         int64 // when an offer can be activated no more; 0: it is none
	propensity float64
	epoch      int32 // its place in live.epochs
	used       uint32
	arm        uint16
}

// A live is one experiment.
type live struct {
	id       int64
	decl     Experiment
	tokenKey []byte
	hookKey  []byte   // signs what its webhook is told
	gatherer gatherer // nil where rewards come in the open
	debts    *debts   // the engine's
	date     func(now int64) int64
	tick     int64
	window   int64

	mu     sync.Mutex // of what follows
	rec    record
	game   game
	play   machine // nil unless it is Running or Paused
	ledger *privacy.Ledger
	sign   signer
	tags   hash.Hash
	shares hash.Hash  // where units are for the share
	layer  hash.Hash  // and for the layer
	stones hash.Hash  // of tags that were erased
	coins  *rand.Rand // of the floor
	units  map[tag]assignment
	offers int64  // that were made in this epoch
	fresh  []byte // units that have to be written
	epochs []epochTag
	at     int32 // the place of the epoch of now
	epoch  play.Epoch
	known  map[epochTag]play.Epoch
	shown  int // batches that everybody may see
	// of the transcript: lines that are written or about to be, the hash of the last, and what
	// is to be written
	lines int
	tip   string
	out   [][]byte
	// of the line of pending: its number, and the hash of the line before
	held    int
	heldTip string
	ticked  int64 // the last tick

	// the batch that is due and being gathered, and the reports that came since the last commit
	gathering *gathering
	came      []store.Report
	unsure    bool         // it was restored, and no batch has closed since
	asked     []CohortNote // sums that may be known

	pending *play.Commit // a release that was closed, and is durable when the next step begins
	changed bool         // the record has to be written
	begun   bool         // the plan has to be written
	drop    bool         // sums are to be destroyed
	purge   bool         // units are to be destroyed
	anew    bool         // units are to be written anew
	gone    bool         // somebody was erased
	telling bool         // the webhook is being told
	issued  bool         // decisions were issued since the last write
	owes    bool         // debts has it
	hours   hours
	written []wrote // by arm, what is on disk
	parts   map[[2]int]int
}

// wrote is what was last written of an arm.
type wrote struct {
	store.Arm
	tail store.Segment
}

// newLive makes an experiment of its record, without its play.
func (e *Engine) newLive(id int64, decl Experiment, r record) (*live, error) {
	if r.Key == [16]byte{} {
		copy(r.Key[:], r.seeds[:16])
		copy(r.Coins[:], r.seeds[16:])
	}
	x := &live{id: id, decl: decl, rec: r, ticked: -1, debts: &e.debts, date: e.date}
	x.retime()
	x.tokenKey = keyFor(e.secret[:], r.Key[:], "token")
	x.sign = newSigner(x.tokenKey)
	x.hookKey = hex.AppendEncode(nil, keyFor(e.secret[:], r.Key[:], "webhook"))
	x.tags = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "tag"))
	x.shares = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "share"))
	x.stones = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "erased"))
	x.layer = hmac.New(sha256.New, keyFor(e.secret[:], []byte(decl.Layer.Name), "layer"))
	var seed [32]byte
	if _, err := io.ReadFull(e.cfg.random, seed[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	x.coins = rand.New(rand.NewChaCha8(seed))
	x.units = map[tag]assignment{}
	var err error
	if x.game, err = newGame(x); err != nil {
		return nil, err
	}
	x.hours = hours{at: -1, n: make([]int, x.game.queues())}
	x.gatherer, err = x.newGatherer(e)
	return x, err
}

// data is the record as it is stored.
func (x *live) data() ([]byte, error) {
	r := x.rec
	var err error
	if r.Declaration, err = x.decl.JSON(); err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// coinsOf are the policy's coins.
func coinsOf(seed [16]byte) policy.Coins {
	coins := noise.NewFast(binary.BigEndian.Uint64(seed[:]), binary.BigEndian.Uint64(seed[8:]))
	return &coins
}

// newEpoch draws what a play that begins, or goes on, is told apart by.
func (e *Engine) newEpoch() (out play.Epoch, err error) {
	if _, err := io.ReadFull(e.cfg.random, out[:]); err != nil {
		return out, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return out, nil
}

// run goes on with a play.
func (x *live) run(m machine, epoch play.Epoch) {
	x.play, x.ledger, x.epoch = m, m.Ledger(), epoch
	x.known = map[epochTag]play.Epoch{tagOfEpoch(epoch): epoch}
	x.at = x.place(tagOfEpoch(epoch))
	x.written = make([]wrote, x.game.queues())
	x.parts = map[[2]int]int{}
	for a := range x.written {
		for _, r := range m.Queue(a, 0).Runs {
			x.known[tagOfEpoch(r.Epoch)] = r.Epoch
		}
	}
	x.begun, x.issued = true, true
}

func (x *live) start(e *Engine, now int64) error {
	if x.rec.State != Draft {
		return fmt.Errorf("it is %s, must be draft: %w", x.rec.State, ErrState)
	}
	if x.over(now) {
		return fieldError("end", "is %s, which has passed: it would stop at once, for good: %w",
			x.decl.End.UTC().Format(time.RFC3339), ErrState)
	}
	if err := e.apart(x); err != nil {
		return err
	}
	if g, ok := x.gatherer.(*twoServer); ok && g.secret() == nil {
		return fmt.Errorf("%w: %w", ErrHelper, ErrState)
	}
	if g, ok := x.gatherer.(*cohorts); ok && g.held() != nil {
		return fmt.Errorf("%w: %w", g.held(), ErrState)
	}
	epoch, err := e.newEpoch()
	if err != nil {
		return err
	}
	m, err := x.game.begin(e, epoch)
	if err != nil {
		return err
	}
	if err := x.open(now); err != nil {
		return err
	}
	x.rec.State, x.changed = Running, true
	x.run(m, epoch)
	x.ticked = now / x.tick // what is changed from now on comes with a later one
	for a := range x.written {
		x.written[a].Head = -1 // nothing is
	}
	return nil
}

func (x *live) move(to State, from State) error {
	if x.rec.State != from {
		return fmt.Errorf("it is %s, must be %s: %w", x.rec.State, from, ErrState)
	}
	x.rec.State, x.changed = to, true
	return nil
}

// end stops the experiment and keeps an arm.
func (x *live) end(keep int, why endReason, now int64) error {
	switch x.rec.State {
	case Stopped, Archived:
		return fmt.Errorf("it is %s already: %w", x.rec.State, ErrState)
	}
	if x.tip != "" || len(x.out) > 0 { // there is a transcript, which holds
		coins := hex.EncodeToString(x.rec.Coins[:])
		if err := x.say(now, ending{End: why, Keep: keep, Coins: coins}); err != nil {
			return err
		}
	}
	x.rec.State, x.rec.Keep, x.rec.Why, x.rec.Ended, x.changed = Stopped, keep, why, now, true
	if x.pending != nil {
		if err := x.show(x.pending.Line); err != nil { // it is durable
			return err
		}
	}
	x.play, x.pending, x.issued, x.fresh = nil, nil, false, nil
	x.gathering.stop()
	x.gathering = nil
	x.game.end()
	x.rec.Off, x.rec.Changes = nil, nil
	x.drop = true
	return nil
}

func (x *live) archive() error {
	if x.rec.State != Stopped && x.rec.State != Draft {
		return fmt.Errorf("it is %s, must be stopped or draft: %w", x.rec.State, ErrState)
	}
	if x.rec.State == Draft {
		x.rec.Keep, _ = x.game.kept("")
	}
	x.rec.State, x.changed, x.drop, x.purge = Archived, true, true, true
	x.units, x.epochs, x.known, x.parts, x.written = nil, nil, nil, nil, nil
	x.game.forgetAll()
	return nil
}

// state is what the record's state means now.
func (x *live) state(now int64) (s State, wait string, until int64) {
	if x.rec.State != Running || x.play == nil { // which is not played by who only reads
		return x.rec.State, "", 0
	}
	if !x.started(now) {
		return Waiting, "start", x.decl.Start.UnixMilli()
	}
	if x.gathering != nil {
		return Waiting, "sums", (now/x.tick + 1) * x.tick
	}
	if wait, until := x.game.waits(now); wait != "" {
		return Waiting, wait, until
	}
	return Running, "", 0
}

func (x *live) info(now int64) Info {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := Info{Experiment: x.decl, Reason: x.rec.Reason, Why: string(x.rec.Why), Keep: x.rec.Keep,
		Batches: x.shown, Tick: time.Duration(x.tick) * time.Millisecond}
	var until int64
	if out.State, out.Wait, until = x.state(now); out.Wait != "" {
		out.Until = time.UnixMilli(until)
	}
	if g := x.gathering; g != nil {
		out.Since, out.Trouble = time.UnixMilli(g.since), g.why()
	}
	out.Lines, out.Tip = x.visible()
	if x.ledger != nil {
		out.Spent, out.Cap = x.ledger.Total(), x.ledger.Guarantee()
	}
	out.Budget, _ = x.decl.EachAssignment() // was checked
	out.Changes = slices.Clone(x.rec.Changes)
	x.game.tell(&out)
	return out
}

// maxUnit is the longest name of a unit.
const maxUnit = 4096

func (x *live) decide(ask Ask, now int64) (Decision, error) {
	g, ok := x.game.(*arms)
	switch {
	case !ok:
		return Decision{}, ErrContextual
	case len(ask.Unit) > maxUnit:
		return Decision{}, fmt.Errorf("%w has %d bytes, must have at most %d", ErrUnit, len(ask.Unit), maxUnit)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.debts.owe(x)
	return g.decide(ask, now)
}

// in says whether a unit is in the experiment's share and in its range of its layer. Where units
// have no names, the share is drawn.
func (x *live) in(unit string) bool {
	if share := x.decl.Share; share > 0 && share < 1 {
		at := x.coins.Float64
		if unit != "" {
			at = func() float64 { return point(x.shares, unit) }
		}
		if at() >= share {
			return false
		}
	}
	if y := x.decl.Layer; y.Name != "" {
		at := point(x.layer, unit)
		return at >= y.From && at < y.To
	}
	return true
}

// point is where a keyed hash puts a unit in [0,1).
func point(mac hash.Hash, unit string) float64 {
	t := tagOf(mac, unit)
	return float64(binary.BigEndian.Uint64(t[:])>>11) / (1 << 53)
}

// apart says whether a layer's other experiments that run leave x its range.
func (e *Engine) apart(x *live) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, other := range e.byName {
		if other == x || other.decl.Layer.Name != x.decl.Layer.Name || x.decl.Layer.Name == "" {
			continue
		}
		a, b := x.decl.Layer, other.decl.Layer
		other.mu.Lock() // only the writer, which this is, has two
		s := other.rec.State
		other.mu.Unlock()
		if (s == Running || s == Paused) && a.From < b.To && b.From < a.To {
			return fmt.Errorf("layer %q from %v to %v overlaps that of experiment %q, which is %s: %w", a.Name,
				a.From, a.To, other.decl.Name, s, ErrState)
		}
	}
	return nil
}

// keep keeps an assignment, which is written with the next commit.
func (x *live) keep(t tag, u assignment) {
	x.units[t] = u
	x.fresh = x.appendUnit(x.fresh, t, u)
}

func (x *live) appendUnit(b []byte, t tag, u assignment) []byte {
	return x.game.extra(appendUnit(b, t, u, x.epochs[u.epoch]), t)
}

// settle takes the rewards of a job, and notes in touched which segments they are in.
func (x *live) settle(j *job, touched map[[2]int][]int) error {
	for _, r := range j.reports {
		out := &j.results[r.result]
		if x.play == nil {
			out.Status = Void
			if j.at >= r.deadline || r.what != rewarded && j.at >= r.by {
				out.Status = Late
			}
			continue
		}
		if r.what != rewarded && r.by != 0 {
			var err error
			if out.Status, err = x.activate(r, j.at); err != nil {
				return err
			}
			continue
		}
		if r.by != 0 {
			if out.Status = x.activated(&r.ticket, j.at); out.Status != Accepted {
				continue
			}
		}
		if x.gathering.has(r.arm, r.number) { // what is asked for does not change any more
			out.Status = Late
			continue
		}
		number := int(min(r.number, math.MaxInt)) // no decision has a number that an int has not
		s, _ := x.play.Segment(r.arm, number)
		had := s.Came.Has(number-s.Start) || s.Gone.Has(number-s.Start)
		code := 2 * (number - s.Start)
		k := play.Ticket{Arm: r.arm, Number: number, Deadline: r.deadline, Epoch: x.known[r.epoch]}
		var got play.Status
		var err error
		if r.what == notShown {
			code, had = code+1, s.Gone.Has(number-s.Start)
			got, err = x.game.withdraw(k, j.at)
		} else {
			got, err = x.game.reward(k, r, j.at)
		}
		if err != nil {
			return err
		}
		out.Status = status(got)
		if got == play.Accepted { // the same work whether it came before or not
			at := [2]int{r.arm, s.Start}
			touched[at] = append(touched[at], code)
			if had {
				touched[at] = touched[at][:len(touched[at])-1]
			} else if r.what == hidden {
				x.came = append(x.came, store.Report{Arm: r.arm, Number: number, Data: r.row})
			}
		}
	}
	return nil
}

// maxParts is how many parts of redeemed decisions a segment has before they are made one.
const maxParts = 64

// collect is all that has to be written of the experiment, after it has taken rewards and, in a
// sweep, handed out what was released and closed what is due. A release that came with whatever is
// written first would be earlier where a reward came. ok is false if there is nothing.
func (x *live) collect(jobs []*job, now int64, sweep bool) (w store.Write, ok bool, err error) {
	w.ID = x.id
	touched := map[[2]int][]int{}
	for _, j := range jobs {
		if err := x.settle(j, touched); err != nil {
			return w, false, err
		}
	}
	if sweep && (x.rec.State == Running || x.rec.State == Paused) {
		if err := x.onTick(&w, now); err != nil {
			return w, false, err
		}
	}
	if x.issued && x.play != nil {
		x.mark(&w)
		x.game.write(&w)
	}
	marked := w.Segments
	for at, numbers := range touched {
		if x.play == nil {
			break
		}
		s, there := x.play.Segment(at[0], at[1])
		if !there || s.Start != at[1] { // it has just been released
			continue
		}
		if row := x.segmentOf(at[0], s); !slices.Contains(marked, row) {
			w.Segments = append(w.Segments, row)
		}
		w.Parts = append(w.Parts, x.part(at, numbers))
	}
	if x.changed {
		data, err := x.data()
		if err != nil {
			return w, false, err
		}
		w.Record = &store.Record{ID: x.id, Name: x.decl.Name, Data: data}
	}
	if x.anew {
		x.rewrite()
	}
	if len(x.fresh) > 0 {
		w.Units, x.fresh = x.fresh, nil
	}
	w.Number = x.lines
	if w.Lines = x.link(); len(w.Lines) > 0 || x.begun && x.play != nil {
		w.Plan = x.plan()
	}
	if x.play != nil && !x.drop {
		w.Reports = x.came
	}
	x.came = nil
	w.DropSums, w.DropUnits = x.drop, x.purge
	ok = w.Record != nil || w.Plan != nil || len(w.Arms)+len(w.Segments)+len(w.Units)+len(w.Lines) > 0 ||
		w.DropSums || w.DropUnits || len(touched) > 0
	x.changed, x.begun, x.issued, x.drop, x.purge = false, false, false, false, false
	return w, ok, nil
}

// part is the decisions that a segment's rewards came for in this commit.
func (x *live) part(at [2]int, numbers []int) store.Part {
	x.parts[at]++
	p := store.Part{Arm: at[0], Start: at[1], Number: x.parts[at]}
	if p.Number > maxParts {
		s, _ := x.play.Segment(at[0], at[1])
		p.Number, p.Redeemed = 0, words(said(s))
		x.parts[at] = 0
		return p
	}
	slices.Sort(numbers)
	p.Redeemed = gaps(numbers)
	return p
}

// mark adds the arms and segments that decisions have changed.
func (x *live) mark(w *store.Write) {
	w.Hours = x.hours.write()
	for a := range x.written {
		was := &x.written[a]
		q := x.play.Queue(a, max(was.Issued-1, 0))
		arm := store.Arm{Arm: a, Head: q.Head, Issued: q.Issued, Asked: q.Asked, Off: q.Off, Runs: q.Runs}
		if arm.Head != was.Head || arm.Issued != was.Issued || arm.Asked != was.Asked ||
			arm.Off != was.Off || len(arm.Runs) != len(was.Runs) {
			w.Arms = append(w.Arms, arm)
			was.Arm = arm
		}
		for _, s := range q.Segments {
			row := x.segmentOf(a, s)
			bare := row
			bare.Sum, bare.More = 0, "" // which is written with its rewards
			if bare != was.tail {
				w.Segments = append(w.Segments, row)
			}
		}
		if n := len(q.Segments); n > 0 {
			was.tail = x.segmentOf(a, q.Segments[n-1])
			was.tail.Sum, was.tail.More = 0, ""
		}
	}
}

func (x *live) segmentOf(arm int, s play.Segment) store.Segment {
	return store.Segment{Arm: arm, Start: s.Start, End: s.End, Cut: s.Cut, Settles: s.Settles, Sum: s.Sum,
		More: x.game.more(s.More)}
}

// onTick does what is done at public ticks alone: the release that was closed before is handed to
// the policy and shown, and what is due is closed.
func (x *live) onTick(w *store.Write, now int64) error {
	tick := now / x.tick
	if tick == x.ticked {
		return nil
	}
	at := tick * x.tick
	x.ticked = tick
	if c := x.pending; c != nil {
		x.pending = nil
		if err := x.play.Commit(c); err != nil {
			return err
		}
		if err := x.show(c.Line); err != nil {
			return err
		}
		x.begun, x.issued = true, true
	}
	if keep, why, ok := x.game.over(); ok {
		return x.end(keep, why, at)
	}
	if x.over(at) {
		keep, err := x.game.kept("")
		return errors.Join(err, x.end(keep, endDate, at))
	}
	c, err := x.changing(now)
	if c == nil && err == nil {
		c, err = x.closeBatch(at)
	}
	if err != nil || c == nil {
		return err
	}
	x.pending, x.begun, x.issued = c, true, true
	w.Taken = c.Taken
	x.held = x.lines + len(x.out)
	x.sayText(at, bytes.TrimSuffix(c.Line, []byte("\n")))
	for _, t := range c.Taken {
		for at := range x.parts {
			if at[0] == t.Arm && at[1] >= t.Start && at[1] < t.End {
				delete(x.parts, at)
			}
		}
	}
	return nil
}

// show lets everybody see a line.
func (x *live) show(line []byte) error {
	x.shown++
	return x.game.show(line)
}

type planned struct {
	Arm     int  `json:"arm"`
	Rounds  int  `json:"rounds"`
	Release bool `json:"release,omitempty"`
}

// A plan is the batch that is out, without plays if there is none, and the hash of the last line of
// the transcript: one that was cut off, or added, is missed when it is read again. Kept is the
// curator's state after that line, where its noise outlives a release: it is secret, is written with
// the line that shows it first, and gone when the play has ended.
type plan struct {
	Plays []planned `json:"plays,omitempty"`
	Tip   string    `json:"tip"`
	Kept  []byte    `json:"kept,omitempty"`
}

func (x *live) plan() []byte {
	out := plan{Tip: x.tip}
	if x.play != nil {
		x.game.plan(&out)
	}
	b, _ := json.Marshal(out) // of numbers and text
	return b
}

func readPlan(data []byte) (in plan, err error) {
	if len(data) == 0 {
		return in, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, fmt.Errorf("the batch that is out: %w", err)
	}
	return in, nil
}
