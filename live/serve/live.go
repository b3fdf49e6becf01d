package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
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
	Stopping State = "stopping" // its decisions have ended; windows go on, and releases
	Stopped  State = "stopped"  // for good; one arm is kept
	Archived State = "archived" // and nothing of its units is left
	Failed   State = "failed"   // it cannot go on, and can be read and stopped
)

// plays says whether windows go on.
func (s State) plays() bool { return s == Running || s == Paused || s == Stopping }

// An Info says how an experiment is, by what everybody may see.
type Info struct {
	Experiment Experiment
	State      State
	Created    time.Time
	Ended      time.Time // when it stopped, zero before
	// Wait says what a waiting or stopping experiment waits for: start, rewards, sums or release, and Until
	// until when at least.
	Wait  string
	Until time.Time
	// Since is when it began to wait for sums of rewards that it does not see, and Trouble why they
	// could not be had the last time, if they could not.
	Since   time.Time
	Trouble string
	// Reason says why it has failed.
	Reason string
	// Why says why it has stopped, or stops: answer (its rule has one, the arm that is kept), policy (it wants
	// nothing more), date (its declared end) or operator.
	Why    string
	Keep   int  // the arm that is kept when it has stopped, else −1
	Leader bool // that is, or will be, the one with the highest private mean
	Policy bool // there are contexts, and the best action by what was learnt is kept, or will be
	Next   int  // while it stops, the arm that will be kept, else −1
	Left   int  // decisions that wait to be released; of one that has failed at most
	Arms   []ArmInfo
	// Contextual is nil where there are arms.
	Contextual *ContextualInfo
	// Metrics are the noisy sums of each metric, by arm, of what was released, mapped to [0,1].
	Metrics [][]float64
	// Cells are what was released of each cell, if there are any; Arms and Metrics are their totals.
	Cells []CellInfo
	// First is when the first release was, zero before. Until then NotBefore is when it can be, if that is
	// known: once its decisions were made. Before, they and their windows are to come.
	First, NotBefore time.Time
	Batches          int           // that were released or played, and changes
	Lines            int           // of the transcript
	Tip              string        // the SHA-256 of the last of them, in hex; empty before the first
	Tick             time.Duration // releases are closed and shown at multiples of it
	Changes          []Change      // that come with the next ticks
	Acts             int           // how many were done since it was read from the store: another number, other Acts
	// Spent is what a reward has lost at most, and Cap what it may lose.
	Spent, Cap privacy.Loss
	Budget     privacy.Budget // of a reward, see Experiment.EachAssignment

	watch    watch
	began    int64                // when it was started
	measured *measuring[Measures] // of its metrics; nil: they are measured anew
	cells    *measuring[ByCell]   // of its cells, likewise
	coins    coins
}

// An ArmInfo is what is public of an arm.
type ArmInfo struct {
	Decisions int // that were issued
	Released  int // of which rewards were released
	Releases  int // in which they were, each with a noise; of cells, each for itself
	// Sum is the noisy sum of these, mapped to [0,1].
	Sum   float64
	Noise privacy.Mechanism // of each release, as it was charged; nil before the first
	Off   bool              // it was taken off
	// Joined is, of an arm that joined an A/B test while it ran, what there had been before its first batch: no
	// comparison with it has that in it. It is nil of the others, and until then.
	Joined *Joined
}

// A Joined is what had been released when an arm joined an A/B test: of each arm, of which Decisions are those
// that there had been, and of each metric by arm.
type Joined struct {
	Arms    []ArmInfo
	Metrics [][]float64
}

// Sums is what was released of the arm, for an interval of its mean. Where decisions can be
// retracted, or are dropped without a report, it is an interval only if that does not go by the
// reward: the sum has a reward that came before its decision was retracted, up to N in all, and N
// has not.
func (a ArmInfo) Sums() interval.Sums {
	return interval.Sums{N: a.Released, Sum: a.Sum, Releases: a.Releases, Noise: a.Noise}
}

// VerdictOf is the answer of an experiment with arms: of what was released, and so post-processing of it.
func VerdictOf(x *Experiment, arms []ArmInfo) interval.Verdict {
	return x.Table().Verdict(namedArms(x, arms))
}

// AgainstControl are intervals for the mean of each arm less that of ControlOf, by arm: of those that a
// verdict compares, all of which hold together. One is nil where nothing is known.
func AgainstControl(x *Experiment, arms []ArmInfo, v interval.Verdict) []*[2]float64 {
	control, against := ControlOf(x), make([]*[2]float64, len(arms))
	named, table := namedArms(x, arms), x.Table()
	compared := map[string]bool{v.Leader: true}
	for _, o := range v.Over {
		compared[o.Arm] = true
	}
	for a := range arms {
		if a != control && compared[named[a].Name] {
			against[a] = table.Lead(named, a, control)
		}
	}
	return against
}

func namedArms(x *Experiment, arms []ArmInfo) []interval.NamedArm {
	named := make([]interval.NamedArm, len(arms))
	for i, a := range arms {
		named[i] = interval.NamedArm{Name: x.Arms[i].Name, Off: a.Off, Sums: a.Sums()}
		if a.Joined != nil {
			for _, before := range a.Joined.Arms {
				named[i].Before = append(named[i].Before, before.Sums())
			}
		}
	}
	return named
}

// record is what the store has of an experiment beside its play.
type record struct {
	Declaration json.RawMessage `json:"declaration"`
	State       State           `json:"state"`
	Reason      string          `json:"reason,omitempty"`
	Created     int64           `json:"created"`
	Keep        int             `json:"keep"`
	Ended       int64           `json:"ended,omitempty"` // when it stopped
	Stop        *stopping       `json:"stop,omitempty"`  // from the end of its decisions on
	Why         endReason       `json:"why,omitempty"`   // it has stopped
	Told        bool            `json:"told,omitempty"`  // its webhook knows
	Last        int64           `json:"last,omitempty"`  // when its last release was shown, if that is known
	Cap         string          `json:"cap,omitempty"`   // the PersonCap that it was started under
	Timed       bool            `json:"timed,omitempty"` // assignments say how long they were open
	// arms that are to be taken off at the next ticks, and what else is to be changed
	Off     []int    `json:"off,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	// of arms that were added, the hour of the last decision before
	Added []int64 `json:"added,omitempty"`
	// and of an A/B test their shares
	Joined []float64 `json:"joined,omitempty"`
	// what guards have done and its webhook does not know
	Harms []Guarded `json:"harms,omitempty"`
	// plans whose exposures count, the oldest first, and the epoch of the last that was made
	Leases []leased `json:"leases,omitempty"`
	Epoch  uint64   `json:"epoch,omitempty"`
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
	epoch      int32 // its place in served.epochs
	used       uint32
	arm        uint16
	// open is how long before its deadline it was decided, or activated, in seconds, rounded up; 0 of what was
	// offered, or is of an experiment of an earlier program that listens to no events
	open uint32
}

// A served is one experiment.
type served struct {
	id       int64
	decl     Experiment
	values   []json.RawMessage // by arm, what decisions give as its value
	tokenKey []byte
	readers  sync.Pool // of signers' macs, to read tokens without the lock
	hookKey  []byte    // signs what its webhook is told
	saltKey  []byte    // makes the salts of plans
	gatherer gatherer  // nil where rewards come in the open
	// several reports of a decision count
	aggregates bool
	listens    []string // names of events
	debts      *debts   // the engine's
	date       func(now int64) int64
	tick       int64
	window     int64

	mu      sync.Mutex // of what follows
	rec     record
	acts    int          // see Info.Acts
	play    *play.Live   // nil unless it is Running, Paused or Stopping
	answer  func() int   // of the play, if it is an identification rule's, else nil
	pending *play.Commit // a release that was closed, and is durable when the next step begins
	closed  int64        // and when that was
	ticked  int64        // the last tick
	began   int64        // when it was started: the time of its first line
	seen    int64        // when its last release was shown
	ledger  *privacy.Ledger
	board   board
	metrics measuring[Measures]
	byCells measuring[ByCell]
	sign    signer
	coins   *rand.Rand // of the floor
	hashes
	assignments
	events eventBook
	journal
	gathers

	durable durable
	// closed, and another put in its place, when clients may decide by another plan
	replanned chan struct{}
	hours     hours
	written   []wrote // by arm, what is on disk
	parts     map[[2]int]int
	// decisions whose totals are to be written
	reported map[numbered]struct{}
	celled   map[[2]int][]int // by segment, the cells of decisions that were not written, as said has them
	todo     todo
	owes     bool    // debts has it
	telling  bool    // the webhook is being told
	did      []Entry // by itself, for the journal
}

// A durable is what is told of an experiment and was written: while nothing can be, what an operator did is
// done in memory, may never be written, and is not told.
type durable struct {
	state  State
	keep   int
	why    endReason
	leader bool
	policy bool
	next   int
	reason string
	lines  int
	tip    string
	coming []Change
	epoch  uint64 // of the plan by which clients decide
}

// confirmed notes that all of the experiment is durable. Its lock is held.
func (x *served) confirmed() {
	before := x.durable
	x.durable = durable{epoch: x.rec.Epoch, state: x.rec.State, keep: x.rec.Keep, why: x.rec.Why, reason: x.rec.Reason, lines: x.lines,
		tip: x.tip, next: -1, coming: slices.Clone(x.rec.Changes)}
	if s := x.rec.Stop; s != nil {
		x.durable.policy = s.Policy
		if x.durable.why, x.durable.leader = s.Why, s.Leader; !s.Leader && x.rec.State == Stopping {
			x.durable.next = s.Keep
		}
	}
	for _, a := range x.rec.Off {
		x.durable.coming = append(x.durable.coming, Change{Off: []string{x.decl.Arms[a].Name}})
	}
	if is := x.durable; before.epoch != is.epoch || before.state != is.state {
		close(x.replanned)
		x.replanned = make(chan struct{})
	}
}

// A todo is what the next commit has to do.
type todo uint8

const (
	theRecord todo = 1 << iota // it has changed
	thePlan                    // the batch that is out has
	theQueues                  // decisions were issued
	theUnits                   // all are to be written anew
	dropSums                   // which are to be destroyed
	dropUnits
)

func (t todo) has(what todo) bool { return t&what != 0 }

// hashes are keyed ones of units.
type hashes struct {
	tags   hash.Hash // what they are kept under
	shares hash.Hash // where they are for the share
	ids    hash.Hash // of reports' ids
	layer  hash.Hash // and for the layer
	// where they are among the arms of a holdout
	holdouts hash.Hash
	stones   hash.Hash // of tags that were erased
	// what persons are kept under, where their decisions are counted
	persons hash.Hash
}

// assignments are those of units.
type assignments struct {
	units  map[tag]assignment
	fresh  []byte // that have to be written
	stoned bool   // somebody was erased
	offers int64  // that were made in this epoch
	day    int64  // since 1970, on which those of before were forgotten
	epochs []epochTag
	at     int32 // the place of the epoch of now
	known  map[epochTag]play.Epoch
}

// A journal is the transcript: what is said of an experiment, and what of it everybody may see.
type journal struct {
	shown int      // batches that everybody may see
	lines int      // that are written, or about to be
	tip   string   // the hash of the last of them
	out   [][]byte // that have to be written
	// of the line of a pending release: its number, and the hash of the line before
	held    int
	heldTip string
}

// gathers is what there is of rewards that are not seen.
type gathers struct {
	gathering *gathering     // the batch that is due, nil if none is
	came      []store.Hidden // since the last commit
	unsure    bool           // it was restored, and no batch has closed since
	asked     []CohortNote   // sums that may be known
}

// wrote is what was last written of an arm.
type wrote struct {
	store.Arm
	tail store.Segment
}

// newLive makes an experiment of its record, without its play.
func (e *Engine) newLive(id int64, decl Experiment, r record) (*served, error) {
	if r.Key == [16]byte{} {
		copy(r.Key[:], r.seeds[:16])
		copy(r.Coins[:], r.seeds[16:])
	}
	decl.Added, decl.Joined = len(r.Added), r.Joined
	x := &served{id: id, decl: decl, rec: r, ticked: -1, debts: &e.debts, date: e.date, aggregates: decl.Aggregates(),
		listens: decl.Events()}
	x.retime()
	x.tokenKey = keyFor(e.secret[:], r.Key[:], "token")
	x.sign = newSigner(x.tokenKey)
	x.hookKey = hex.AppendEncode(nil, keyFor(e.secret[:], r.Key[:], "webhook"))
	x.tags = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "tag"))
	x.ids = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "ids"))
	x.shares = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "share"))
	x.stones = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "erased"))
	x.persons = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "person"))
	x.saltKey, x.replanned = keyFor(e.secret[:], r.Key[:], "lease"), make(chan struct{})
	x.holdouts = hmac.New(sha256.New, keyFor(e.secret[:], r.Key[:], "holdout"))
	x.layer = hmac.New(sha256.New, keyFor(e.secret[:], []byte(decl.Layer.Name), "layer"))
	var seed [32]byte
	if _, err := io.ReadFull(e.cfg.random, seed[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	x.coins = rand.New(rand.NewChaCha8(seed))
	x.units = map[tag]assignment{}
	var err error
	if x.board, err = newBoard(&x.decl); err != nil {
		return nil, err
	}
	for _, a := range x.decl.Arms {
		x.values = append(x.values, ValueOf(a))
	}
	for i, l := range x.rec.Leases {
		if len(l.Buckets) > len(x.decl.Arms) {
			return nil, fmt.Errorf("plan %d is of %d arms", l.Epoch, len(l.Buckets))
		}
		x.rec.Leases[i] = x.planned(l)
	}
	if x.decl.Contextual != nil {
		x.events.of = map[tag]event{}
		if x.events.mapper, err = x.decl.Mapper(); err != nil {
			return nil, err
		}
	}
	x.confirmed()
	x.hours = hours{at: -1, n: make([]int, len(x.board.queues)), added: r.Added}
	x.gatherer, err = x.newGatherer(e)
	return x, err
}

// data is the record as it is stored.
func (x *served) data() ([]byte, error) {
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
func (x *served) run(p *play.Live, epoch play.Epoch) {
	x.play, x.ledger = p, p.Ledger()
	x.known = map[epochTag]play.Epoch{tagOfEpoch(epoch): epoch}
	x.at = x.place(tagOfEpoch(epoch))
	x.written = make([]wrote, len(x.board.queues))
	x.parts, x.reported, x.celled = map[[2]int]int{}, map[numbered]struct{}{}, nil
	for a := range x.written {
		for _, r := range p.Queue(a, 0).Runs {
			x.known[tagOfEpoch(r.Epoch)] = r.Epoch
		}
	}
	x.todo |= thePlan | theQueues
}

func (x *served) start(e *Engine, now int64) error {
	if x.rec.State != Draft {
		return fmt.Errorf("it is %s, must be draft: %w", x.rec.State, ErrState)
	}
	if x.over(now) {
		return fieldError("end", "is %s, which has passed: it would stop at once, for good: %w",
			x.decl.End.UTC().Format(time.RFC3339), ErrState)
	}
	if err := x.decl.CheckEnd(time.UnixMilli(now)); err != nil {
		return fmt.Errorf("%w: %w", err, ErrState)
	}
	if err := e.apart(x); err != nil {
		return err
	}
	if err := e.hasHoldout(x); err != nil {
		return err
	}
	under, err := e.withinCap(x, now)
	if err != nil {
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
	m, err := x.begin(e, epoch)
	if err != nil {
		return err
	}
	if err := x.open(now); err != nil {
		return err
	}
	x.rec.State, x.rec.Cap = Running, under
	x.todo |= theRecord
	x.run(m, epoch)
	x.ticked = now / x.tick // what is changed from now on comes with a later one
	for a := range x.written {
		x.written[a].Head = -1 // nothing is
	}
	return nil
}

func (x *served) move(to State, from State) error {
	if x.rec.State != from {
		return fmt.Errorf("it is %s, must be %s: %w", x.rec.State, from, ErrState)
	}
	x.rec.State = to
	x.todo |= theRecord
	return nil
}

// forgetPlay forgets the play, with the sums of rewards that were not released and the noise that was
// kept: none of it is asked for again.
func (x *served) forgetPlay() {
	if x.decl.Contextual != nil {
		x.events.estimate, x.events.within = x.estimate(), x.intervals()
	}
	x.play, x.answer, x.pending, x.fresh, x.events.fresh = nil, nil, nil, nil, nil
	x.gathering.stop()
	x.gathering = nil
}

func (x *served) archive() error {
	if x.rec.State != Stopped && x.rec.State != Draft {
		return fmt.Errorf("it is %s, must be stopped or draft: %w", x.rec.State, ErrState)
	}
	if x.rec.State == Draft {
		x.rec.Keep = x.instead()
	}
	x.rec.State = Archived
	x.todo |= theRecord | dropSums | dropUnits
	x.units, x.epochs, x.known, x.parts, x.written = nil, nil, nil, nil, nil
	x.events.forget()
	return nil
}

// state is what the record's state means now.
func (x *served) state(now int64) (s State, wait string, until int64) {
	if x.durable.state != x.rec.State {
		return x.durable.state, "", 0
	}
	switch s := x.rec.State; {
	case s == Stopping && x.gathering != nil:
		return s, "sums", (now/x.tick + 1) * x.tick
	case s == Stopping && x.pending != nil:
		return s, "release", (now/x.tick + 1) * x.tick
	case s == Stopping && x.play != nil:
		_, settled, _ := x.play.Left()
		return s, "rewards", settled
	case s != Running || x.play == nil: // which is not played by who only reads
		return s, "", 0
	}
	if !x.started(now) {
		return Waiting, "start", x.decl.Start.UnixMilli()
	}
	if x.gathering != nil {
		return Waiting, "sums", (now/x.tick + 1) * x.tick
	}
	if wait, until := x.waits(now); wait != "" {
		return Waiting, wait, until
	}
	return Running, "", 0
}

func (x *served) info(now int64) Info {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := Info{Experiment: x.decl, Created: time.UnixMilli(x.rec.Created), Reason: x.durable.reason, Why: string(x.durable.why), Keep: x.durable.keep,
		Leader: x.durable.leader, Policy: x.durable.policy, Next: x.durable.next, Left: x.left(), Batches: x.shown,
		Tick: time.Duration(x.tick) * time.Millisecond, measured: &x.metrics, cells: &x.byCells}
	var until int64
	if out.State, out.Wait, until = x.state(now); out.Wait != "" {
		out.Until = time.UnixMilli(until)
	}
	if out.State == Stopped || out.State == Archived {
		out.Ended = time.UnixMilli(x.rec.Ended).UTC()
	}
	if g := x.gathering; g != nil {
		out.Since, out.Trouble = time.UnixMilli(g.since), g.why()
	}
	out.Lines, out.Tip = x.visible()
	if x.ledger != nil {
		out.Spent, out.Cap = x.ledger.Total(), x.ledger.Guarantee()
	}
	out.Budget, _ = x.decl.EachAssignment() // was checked
	out.Changes, out.Acts = slices.Clone(x.durable.coming), x.acts
	out.First, out.NotBefore = x.first(now)
	x.board.tell(&out, x.events.mapper)
	out.watch, out.began = x.board.watch.clone(), x.began
	out.coins = x.hours.before.plus(x.hours.coins)
	return out
}

// first is when the first release was, or when it can be, as far as that is known. Where rewards that do not
// come are dropped, others may be wanted in their place.
func (x *served) first(now int64) (was, notBefore time.Time) {
	switch {
	case x.board.first != 0:
		return time.UnixMilli(x.board.first).UTC(), notBefore
	case x.play == nil || x.decl.Missing == decl.MissingDrop:
		return was, notBefore
	case x.pending != nil && len(x.pending.Taken) > 0:
		return was, time.UnixMilli(x.closed).UTC()
	}
	out := x.play.Out()
	for _, p := range out {
		if !p.Release {
			out = nil
		}
	}
	// an arm that the batch does not release may be released ahead of it
	if at, due := x.play.Due(now); due && (x.decl.Contextual != nil || len(out) == len(x.board.queues)) {
		return was, time.UnixMilli(at).UTC()
	}
	return was, notBefore
}

// maxUnit is the longest name of a unit.
const maxUnit = 4096

// in says whether a unit is in the experiment's share and in its range of its layer. Where units
// have no names, the share is drawn.
func (x *served) in(unit string) bool {
	if share := x.share(); share > 0 && share < 1 {
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

// apart says whether a layer's other experiments that run leave x its range, and names the first that
// does not.
func (e *Engine) apart(x *served) error {
	for _, other := range e.all() {
		if other == x || other.decl.Layer.Name != x.decl.Layer.Name || x.decl.Layer.Name == "" {
			continue
		}
		a, b := x.decl.Layer, other.decl.Layer
		other.mu.Lock() // only the writer, which this is, has two
		s := other.rec.State
		other.mu.Unlock()
		if s.plays() && a.From < b.To && b.From < a.To {
			return fmt.Errorf("layer %q from %v to %v overlaps that of experiment %q, which is %s: %w", a.Name,
				a.From, a.To, other.decl.Name, s, ErrState)
		}
	}
	return nil
}
