// Package play plays a policy on a curator: in memory, batch by batch, with a Driver, and live,
// decision by decision, with a Live, on arms or, where each decision has a context, on vectors.
// Begin with New for people, and with NewDriver in memory.
//
// # What a Live promises
//
// Live is one policy on one curator as a state machine, for people whose rewards come late or
// never. It does no input or output and reads no clock: whoever runs it hands in the time, makes
// durable what it is told to, and signs the tickets.
//
//   - To the unit behind a ticket: its reward is clipped, counts once at most, and leaves in one
//     release, with the noise that the ledger was charged for. Until then nothing that a Live says
//     depends on it, nor on whether it came, when, or how often: not an answer, an arm, a count, or
//     the time of a release. A deadline that passes without a reward counts with the declared
//     default, so that a release is of decisions, never of reports; and a batch closes by counts
//     and by the clock alone.
//   - To the policy: it gets what it asked for, at least, exactly or jointly, see Take. What is played while
//     a batch waits stays in the queue of its arm and is taken first by the next batch that wants
//     the arm, so that a delay loses nothing (QPM-D of Joulani, György and Szepesvári, "Online
//     learning under delayed feedback", ICML 2013).
//   - To whoever restarts it: State and the lines of the transcript bring it back to any instant. A
//     release is handed to the policy by Commit alone, after its line is durable: a draw that is
//     lost before was seen by nobody and is drawn anew, one that was committed never is.
//
// It does not protect against whoever reads its state, which holds sums of rewards, or who can put
// an older state back: then a row of decisions may be released twice. Nor does it know persons: a
// unit with m tickets pays m times (privacy.Group). A ticket's answer depends on the ticket's own
// clock, so tickets must be hard to guess.
//
// Mechanisms that keep secret noise from release to release, trees, counters and sparse vectors,
// are refused: that noise would have to be stored. A Driver in memory plays them all, and with
// contexts that of Gram trees is stored.
//
// # Contexts
//
// With a ContextualPolicy a decision is of a vector instead of an arm, all are in one queue, and the
// records of a release are vectors and their rewards. A segment ends with the decision by which the
// policy says so, of public vectors and counts, and is released when the deadlines of all its
// decisions have passed: what has been released is a prefix of the decisions.
//
// The reward alone is protected. Vectors and weights are public, and so none of them may be made of
// a reward that was not released: the lines of the transcript have sums of them, without noise.
// Single rewards are gone at a release; vectors and weights too, but for what a policy keeps of
// vectors, sums of products.
//
// Where the policy releases running Gram matrices (linear.LinUCB in leaves), a decision's vector
// and its reward are protected together, under joint differential privacy: the lines have noisy
// matrices and nothing else, segments end by count, and no error has anything of a vector. Then
// whoever is not the unit must not see what it was given, nor vectors, nor propensities: that is
// the caller's. There are no rules, whose weights would tell. The curator is a release.KeptCurator:
// its state is in the state, and the one that goes with a line must be durable with it, or neither;
// see there for what would be lost by going back.
package play

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Errors that callers tell apart.
var (
	ErrBatch   = errors.New("the policy asks for what cannot be played")
	ErrPending = errors.New("a release waits for its commit")
	ErrStopped = errors.New("the policy has stopped")
	ErrOff     = errors.New("the arm was taken off")
	ErrTime    = errors.New("the time is out of range")
	ErrExact   = errors.New("the policy takes exactly what it asks for")
)

// A Config is what a Live is made of. All of it is public, and fixed before the first decision but
// for Window, Cut and Epoch.
type Config struct {
	// Policy has not been asked for anything yet; its coins, if it tosses any, are at their start.
	// Or Contexts is given, which was not played yet, and then no Arms, Metrics, Drop or Gathering.
	Policy   policy.Policy
	Contexts ContextualPolicy
	Arms     int // at least 1
	// Horizon is how many decisions with contexts there are: after the last one the segment is cut.
	// 0 is no end.
	Horizon int
	// Lo and Hi are the declared range of rewards; both 0 means [0,1]. Default, in it, is what a
	// decision counts whose reward does not come. With contexts rewards are then mapped to [−1,1].
	Lo, Hi, Default float64
	// Aggregate says what several reports of a decision make of its reward. With contexts the first counts.
	Aggregate Aggregate
	// Apart says that the numbers of a decision are reported apart from each other: then the first report that
	// has a number counts of it, where otherwise the first report of a decision counts with all that is in it.
	Apart bool
	// Window is how long a reward may take, at least 1, in the unit of the times that are handed
	// in. It may change: what has been decided keeps its deadline.
	Window int64
	// Metrics are further numbers of each decision, which are released with the rewards, and Rules,
	// with contexts, others whose earnings are estimated. The cap of Ledger, if there is one, must be
	// for all of them together.
	Metrics []Metric
	Rules   []Rule
	Ratios  []Ratio // of the reward and of metrics, each to another
	// Drop: a decision whose reward does not come counts nowhere, instead of as Default. Then the
	// counts of releases tell whether rewards came, and when a batch closes depends on it too: only
	// for reporters who promise to report every outcome. The policy must take at least, not exactly.
	Drop bool
	// Cut is how long the clock leaves a segment open, 0 for a sixteenth of the window. With contexts,
	// and in joint batches, the clock ends none.
	Cut  int64
	Take Take // 0: as the policy is admitted, see Admit; with contexts it is Exactly
	// Cells, if there are any, partition the decisions of arms: see there.
	Cells Cells
	// Ledger are the options of the ledger that New or Restore makes: a cap, and what it covers.
	Ledger []privacy.Option
	// Curator builds the curator of rewards, and those of metrics and rules; nil is release.Real, or
	// release.RealGathered. It must return a release.StepCurator.
	Curator func(release.Config) (release.Curator, error)
	// Vectors builds the curator with contexts; nil is release.RealFeatures. It must return a
	// release.StepFeatureCurator.
	Vectors func(release.FeatureConfig) (release.FeatureCurator, error)
	// Gathering says how sums of rewards are gathered that nobody sees, if they are: then there are
	// no metrics, and nothing is dropped.
	Gathering release.Gathering
	Epoch     Epoch
}

// A Decision is what a unit is given: an arm, or with contexts a vector, whose numbers are multiples
// of 2^-20 and whose norm is at most 1. The weights are by rule: the probability that the rule plays
// the vector over the probability with which it was played here, 0 if the rule would play another.
type Decision struct {
	Arm             int
	Cell            int // of Config.Cells, 0 without
	Vector, Weights []float64
}

// A Live plays a policy on units who come one by one and whose rewards come when they will:
//
//   - Decide gives a unit a ticket, and an arm: that of Arm, or a uniform one where a floor of
//     traffic says so, or one that was drawn by Shares. With contexts it is a vector, that of Best
//     or another one. Not to call it is to pause; windows go on.
//     Where a decision only counts once somebody meets it, Offer gives the arm, and DecideUntil counts.
//   - Settle takes a ticket's reward, once. A deadline that passes without one is the default.
//   - Withdraw takes a ticket out whose unit never met its decision.
//   - Close releases the batch that is out, when it is due. Its Commit is to be made durable.
//   - Finish ends the decisions; when nothing waits for its window any more Close releases the rest.
//   - Commit hands the release to the policy, and has its next batch.
//   - TakeOff, SetWindow are what an operator may do meanwhile, Note has it in the transcript, and
//     State is all that there is.
//
// It serves one goroutine at a time. After an error of Close, TakeOff or Commit all further calls
// fail with it: restore what is durable. (That a batch is not due, an arm that cannot be taken off
// or a commit of something else is not such an error.)
type Live struct {
	cfg     Config
	side    side
	vectors *vectors // that is the side, or nil
	policy  interface{ Mechanism() privacy.Mechanism }
	clip    release.Clip
	adds    bool         // several reports of a decision can count, see Add
	further []further    // sums of a decision beside its reward
	missing []int64      // what is counted where nothing came, of all the sums of a decision, in steps
	counts  []int64      // of one report, see first
	line    bytes.Buffer // what the ledger writes
	ledger  *privacy.Ledger

	s       State
	pending *Commit
	stopped bool
	ending  bool // see Finish
	rested  bool // the rest was released
	failed  error
	earned  []Earned // by rule

	// of arms
	driver  Driver
	curator release.StepCurator
	end     func(arm, start int) int
	// by arm: what was released ahead, the oldest first, and how many the policy has asked for, or is to
	// ask for, of what was released
	ahead [][]privacy.Released
	ends  []int
	rows  *rows // of a Joint policy, or nil
	// what is played: the batch, also once it has closed, until there is another
	plan     []policy.Play
	before   []int  // of each play, what was asked of its arm before
	offers   []int  // of each play, the offers since it is played
	releases []bool // whether the batch that is played releases the arm
}

// A side is where arms and contexts differ: who says what a batch is, and what a release is of. All
// else is the same of both.
type side interface {
	// admit says whether the policy can be played, and completes what is made of the configuration.
	admit() error
	// curate builds the curator of the rewards on what was released.
	curate(p *past) error
	// resume goes on from the state, which is that of the lines.
	resume(p *past) error

	// out are the plays that are to be closed next, nil for none.
	out() []policy.Play
	// head is the beginning of the line of what is closed, put gives the curator the sums of decisions,
	// and release lets them out, row by row, as the line says.
	head() line
	put(arm, n int, sums []int64) error
	release(rows []row, as line) error
	// learn gives the policy what was released.
	learn(c *Commit) error

	// outline says what releases a curator of people's rewards makes. add plays a line again.
	outline(p *past) error
	add(p *past, in line) error
}

// New returns a Live at its beginning, with the policy's first batch.
func New(cfg Config) (*Live, error) {
	l, err := build(cfg)
	if err != nil {
		return nil, err
	}
	l.s = State{Terms: l.terms(), Arms: make([]Queue, l.cfg.Arms)}
	if err := l.begin(func(func([]byte, error) bool) {}); err != nil {
		return nil, err
	}
	return l, nil
}

// maxArms is far beyond what a policy can tell apart.
const maxArms = 1 << 20

// maxIssued bounds the decisions of an arm, so that sums of steps stay far inside 63 bits.
const maxIssued = min(1<<40, math.MaxInt/4)

// maxTime bounds times and windows, so that their sums do not overflow.
const maxTime = 1 << 61

// build makes all of a Live that is not its state, but for the curators, which need the restored
// ledger.
func build(cfg Config) (*Live, error) {
	if cfg.Lo == 0 && cfg.Hi == 0 {
		cfg.Hi = 1
	}
	if cfg.Curator == nil {
		cfg.Curator = cfg.real
	}
	if cfg.Vectors == nil {
		cfg.Vectors = release.RealFeatures
	}
	switch {
	case cfg.Policy == nil && cfg.Contexts == nil:
		return nil, errors.New("play: policy is missing")
	case cfg.Policy != nil && cfg.Contexts != nil:
		return nil, errors.New("play: contexts are given, must not be beside a policy of arms")
	case cfg.Epoch == Epoch{}:
		return nil, errors.New("play: epoch is missing, must be 128 new random bits")
	case cfg.Contexts != nil && cfg.Aggregate != First:
		return nil, fmt.Errorf("play: aggregate is %s, must be none with contexts", cfg.Aggregate)
	case cfg.Contexts != nil && cfg.Apart:
		return nil, errors.New("play: apart is true, must be false with contexts")
	case !(cfg.Default >= cfg.Lo && cfg.Default <= cfg.Hi):
		return nil, fmt.Errorf("play: default is %v, must be in the range, from %v to %v",
			cfg.Default, cfg.Lo, cfg.Hi)
	}
	if err := checkWindow(cfg.Window, cfg.Cut); err != nil {
		return nil, err
	}
	clip, err := release.NewClip(cfg.Lo, cfg.Hi)
	if err == nil {
		err = checkAggregate(cfg.Aggregate)
	}
	if err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	l := &Live{cfg: cfg, clip: clip, missing: []int64{clip.Steps(cfg.Default)}}
	l.side, l.policy = arms{l}, cfg.Policy
	if cfg.Contexts != nil {
		l.vectors = &vectors{Live: l}
		l.side, l.policy = l.vectors, cfg.Contexts
	}
	if err := l.side.admit(); err != nil {
		return nil, err
	}
	l.adds = l.cfg.Aggregate != First || l.cfg.Apart
	for _, f := range l.further {
		l.missing, l.adds = append(l.missing, f.missing), l.adds || f.Aggregate != First
	}
	if err := checkRatios(cfg.Ratios, 1+len(cfg.Metrics)); err != nil {
		return nil, err
	}
	for i, r := range cfg.Ratios {
		if l.missing[r.Of] > l.missing[r.Per] {
			return nil, fmt.Errorf("play: ratios[%d] is of a default above its share of the other's, must be at most that", i)
		}
	}
	l.cfg.Ledger = append(slices.Clip(cfg.Ledger), privacy.WithTranscript(&l.line))
	return l, nil
}

// TermsOf are the terms of a play with this Config.
func TermsOf(cfg Config) (Terms, error) {
	l, err := build(cfg)
	if err != nil {
		return Terms{}, err
	}
	return l.terms(), nil
}

// terms are what must not change while decisions are out.
func (l *Live) terms() Terms {
	t := Terms{Lo: l.cfg.Lo, Hi: l.cfg.Hi, Default: l.cfg.Default, Take: l.cfg.Take, Drop: l.cfg.Drop,
		Horizon: l.cfg.Horizon, Sums: describe(l.further) + ratiosText(l.cfg.Ratios), Aggregate: l.cfg.Aggregate,
		Apart: l.cfg.Apart, Cells: l.cfg.Cells.String()}
	if l.cfg.Contexts != nil {
		t.Dim = l.cfg.Contexts.Dim()
	}
	if l.rows != nil {
		t.Joint = l.rows.terms()
	}
	return t
}

// Ledger has what the releases have cost.
func (l *Live) Ledger() *privacy.Ledger { return l.ledger }

// Batches is how many batches the policy has asked for, or with contexts how many releases it has
// had: rounds of adaptivity.
func (l *Live) Batches() int { return l.driver.Batches }

// Stopped says that the policy wants nothing more. An identification rule has its answer then. With
// contexts it says that there are as many decisions as there are to be, and releases go on.
func (l *Live) Stopped() bool { return l.stopped }

// Decide gives a unit an arm, that of Arm or any other: a uniform one that a floor of traffic has
// drawn joins the queue of its arm. With contexts it is the vector that is played. The ticket is good
// until its deadline, a window from now, however clocks jump.
func (l *Live) Decide(d Decision, now int64) (Ticket, error) {
	return l.DecideUntil(d, now, now+l.cfg.Window)
}

// DecideUntil is Decide with a deadline of the ticket's own, after now: that of an offer, which was
// fixed when it was made.
func (l *Live) DecideUntil(d Decision, now, deadline int64) (Ticket, error) {
	switch {
	case l.failed != nil:
		return Ticket{}, l.failed
	case l.stopped || l.ending:
		return Ticket{}, ErrStopped
	case d.Arm < 0 || d.Arm >= len(l.s.Arms):
		return Ticket{}, fmt.Errorf("play: arm is %d, must be from 0 to %d", d.Arm, len(l.s.Arms)-1)
	case l.s.Arms[d.Arm].Off:
		return Ticket{}, fmt.Errorf("play: arm %d: %w", d.Arm, ErrOff)
	case now < -maxTime || now > maxTime:
		return Ticket{}, fmt.Errorf("play: the time is %d, must be within 2^61 of 0: %w", now, ErrTime)
	case deadline <= now || deadline >= 2*maxTime:
		return Ticket{}, fmt.Errorf("play: the deadline is %d, must be after %d, and below 2^62: %w", deadline,
			now, ErrTime)
	case len(d.Vector)+len(d.Weights) > 0 && l.vectors == nil:
		return Ticket{}, errors.New("play: there is a vector, must be none without contexts")
	case d.Cell < 0 || d.Cell >= l.cfg.Cells.each():
		return Ticket{}, fmt.Errorf("play: cell is %d, must be from 0 to %d", d.Cell, l.cfg.Cells.each()-1)
	case l.s.Arms[d.Arm].Issued >= maxIssued:
		return Ticket{}, fmt.Errorf("play: arm %d has %d decisions, must have at most %d", d.Arm,
			l.s.Arms[d.Arm].Issued, maxIssued)
	}
	arm := d.Arm
	q := &l.s.Arms[arm]
	if l.vectors != nil {
		return l.vectors.decide(q, d, deadline)
	}
	if l.rows != nil {
		n := l.rows.decide(l.s.Arms, arm, deadline)
		l.enterCell(q, n, d.Cell)
		return Ticket{arm, n, deadline, l.cfg.Epoch}, nil
	}
	target := 0
	if l.releases[arm] {
		target = q.target()
	}
	q.tick(now)
	n := q.decide(deadline, now+l.cfg.Cut, func(start int) int { return l.end(arm, start) }, target)
	l.enterCell(q, n, d.Cell)
	return Ticket{arm, n, deadline, l.cfg.Epoch}, nil
}

// Settle takes the reward of a ticket, once, clipped to the declared range; what is no number
// counts as the lowest. A second one of the same ticket has the same answer and changes nothing.
func (l *Live) Settle(t Ticket, reward float64, now int64) (Status, error) {
	return l.SettleAll(t, reward, nil, now)
}

// SettleAll is Settle with the decision's metrics, in the order of Config.Metrics: each is clipped to
// its range, and NaN, or one beyond the end of the list, is its default. The decision's first report
// counts, with all that is in it, but see Add.
func (l *Live) SettleAll(t Ticket, reward float64, metrics []float64, now int64) (Status, error) {
	return l.Add(t, 0, reward, metrics, now)
}

// Withdraw takes a ticket out: its unit never met the decision, which counts nowhere. The answer,
// and what then counts, are the same whether a reward came before, which is to come after what was
// met can be known. One that came nevertheless stays in the sum, which is cut to the number of those
// that count: what is cut is of withdrawn tickets alone. Tickets of a policy that takes exactly what
// it asks for, and those with contexts, cannot be withdrawn: the error matches ErrExact.
func (l *Live) Withdraw(t Ticket, now int64) (Status, error) {
	if l.cfg.Take == Exactly {
		return Void, fmt.Errorf("play: %T: %w", l.policy, ErrExact)
	}
	s, status, err := l.held(t, now)
	if s == nil {
		return status, err
	}
	if i := t.Number - s.Start; !s.Gone.Has(i) {
		s.Gone.add(i)
		l.s.Arms[t.Arm].lose(s, s.lost+1)
	}
	return Accepted, nil
}

// held is the segment of a ticket whose window is open, or nil and the answer to who has it.
func (l *Live) held(t Ticket, now int64) (*Segment, Status, error) {
	if l.failed != nil {
		return nil, Void, l.failed
	}
	if t.Arm < 0 || t.Arm >= len(l.s.Arms) {
		return nil, Void, nil
	}
	s, status := l.s.Arms[t.Arm].held(t, now)
	return s, status, nil
}

// Segment is the segment that holds a decision: what has to be written again when its reward came.
// With cells its Sum is 0, and More has by cell the sums of rewards and metrics.
// With contexts its Sum is 0, and More has the sums of the vectors times their rewards, then those of
// the rules; it is nil if no reward came. Sets and More are the machine's own, to be read only, and
// good until the next call. ok is false if the decision is in no queue.
func (l *Live) Segment(arm, number int) (_ Segment, ok bool) {
	if arm < 0 || arm >= len(l.s.Arms) {
		return Segment{}, false
	}
	s := l.s.Arms[arm].find(number)
	if s == nil {
		return Segment{}, false
	}
	return *s, true
}

// Queue is a copy of an arm's queue without the sets, of its segments those from that of a decision on:
// what has to be written again when decisions were made from there.
func (l *Live) Queue(arm, from int) Queue {
	return l.s.Arms[arm].since(from)
}

// Out is the batch that is out, nil between a Close and its Commit and when the policy has stopped,
// and with contexts, whose oldest segment is always to be released.
func (l *Live) Out() []policy.Play { return slices.Clone(l.s.Batch) }
