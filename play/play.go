// Package play plays a policy on a curator: in memory, batch by batch, with a Driver, and live,
// decision by decision, with a Live; or, where each decision has a context, with a Contextual, whose
// own comment says where it differs from what follows.
//
// # What a Live promises
//
// Live is one policy on one curator as a state machine, for people whose rewards come late or
// never. It does no input or output and reads no clock: whoever runs it hands in the time, makes
// durable what it is told to, and signs the tickets.
//
//   - To the unit behind a ticket: her reward is clipped, counts once at most, and leaves in one
//     release, with the noise that the ledger was charged for. Until then nothing that a Live says
//     depends on it, nor on whether it came, when, or how often: not an answer, an arm, a count, or
//     the time of a release. A deadline that passes without a reward counts with the declared
//     default, so that a release is of decisions, never of reports; and a batch closes by counts
//     and by the clock alone.
//   - To the policy: it gets what it asked for, at least or exactly, see Take. What is played while
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
// are refused: that noise would have to be stored. A Driver in memory plays them all, and a
// Contextual stores that of Gram trees.
package play

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
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
	Policy policy.Policy
	Arms   int // at least 1
	// Lo and Hi are the declared range of rewards; both 0 means [0,1]. Default, in it, is what a
	// decision counts whose reward does not come.
	Lo, Hi, Default float64
	// Window is how long a reward may take, at least 1, in the unit of the times that are handed
	// in. It may change: what has been decided keeps its deadline.
	Window int64
	// Metrics are further numbers of each decision, which are released with the rewards. The cap of
	// Ledger, if there is one, must be for all of them together.
	Metrics []Metric
	// Drop: a decision whose reward does not come counts nowhere, instead of as Default. Then the
	// counts of releases tell whether rewards came, and when a batch closes depends on it too: only
	// for reporters who promise to report every outcome. The policy must take at least, not exactly.
	Drop bool
	// Cut is how long the clock leaves a segment open, 0 for a sixteenth of the window.
	Cut  int64
	Take Take // 0: as the policy is admitted, see Admit
	// Ledger are the options of the ledger that New or Restore makes: a cap, and what it covers.
	Ledger []privacy.Option
	// Curator builds the curator; nil is release.Real, or release.RealGathered. It must return a
	// release.StepCurator.
	Curator func(release.Config) (release.Curator, error)
	// Gathering says how sums of rewards are gathered that nobody sees, if they are: then there are
	// no metrics, and nothing is dropped.
	Gathering release.Gathering
	Epoch     Epoch
}

// A Live plays a policy on units who come one by one and whose rewards come when they will:
//
//   - Decide gives a unit a ticket, and an arm: that of Arm, or a uniform one where a floor of
//     traffic says so. Not to call it is to pause; windows go on.
//     Where a decision only counts once somebody meets it, Offer gives the arm, and DecideUntil counts.
//   - Settle takes a ticket's reward, once. A deadline that passes without one is the default.
//   - Withdraw takes a ticket out whose unit never met its decision.
//   - Close releases the batch that is out, when it is due. Its Commit is to be made durable.
//   - Commit hands the release to the policy, and has its next batch.
//   - TakeOff, SetWindow are what an operator may do meanwhile, Note has it in the transcript, and
//     State is all that there is.
//
// It serves one goroutine at a time. After an error of Close, TakeOff or Commit all further calls
// fail with it: restore what is durable. (That a batch is not due, an arm that cannot be taken off
// or a commit of something else is not such an error.)
type Live struct {
	cfg     Config
	clip    release.Clip
	metrics []metric
	missing []int64 // the defaults of the rewards and of the metrics, in steps
	driver  Driver
	curator release.StepCurator
	line    bytes.Buffer // what the ledger writes
	end     func(arm, start int) int

	s State
	// what is played: the batch, also once it has closed, until there is another
	plan     []policy.Play
	before   []int  // of each play, what was asked of its arm before
	offers   []int  // of each play, the offers since it is played
	releases []bool // whether the batch that is played releases the arm
	pending  *Commit
	stopped  bool
	failed   error
}

// New returns a Live at its beginning, with the policy's first batch.
func New(cfg Config) (*Live, error) {
	l, err := build(cfg)
	if err != nil {
		return nil, err
	}
	l.s = State{Terms: l.terms(), Arms: make([]Queue, cfg.Arms)}
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

// build makes all of a Live that is not its state, but for the curator, which needs the
// restored ledger.
func build(cfg Config) (*Live, error) {
	if cfg.Lo == 0 && cfg.Hi == 0 {
		cfg.Hi = 1
	}
	if cfg.Curator == nil {
		cfg.Curator = cfg.real
	}
	switch {
	case cfg.Policy == nil:
		return nil, errors.New("play: policy is missing")
	case cfg.Arms < 1 || cfg.Arms > maxArms:
		return nil, fmt.Errorf("play: arms is %d, must be from 1 to %d", cfg.Arms, maxArms)
	case cfg.Epoch == Epoch{}:
		return nil, errors.New("play: epoch is missing, must be 128 new random bits")
	case !(cfg.Default >= cfg.Lo && cfg.Default <= cfg.Hi):
		return nil, fmt.Errorf("play: default is %v, must be in the range, from %v to %v",
			cfg.Default, cfg.Lo, cfg.Hi)
	}
	if err := cfg.checkGathering(); err != nil {
		return nil, err
	}
	if err := checkWindow(cfg.Window, cfg.Cut); err != nil {
		return nil, err
	}
	cfg.Cut = orSixteenth(cfg.Cut, cfg.Window)
	clip, err := release.NewClip(cfg.Lo, cfg.Hi)
	if err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	l := &Live{cfg: cfg, clip: clip, missing: []int64{clip.Steps(cfg.Default)}, releases: make([]bool, cfg.Arms)}
	if l.metrics, err = buildMetrics("metrics", cfg.Metrics); err != nil {
		return nil, err
	}
	for _, m := range l.metrics {
		l.missing = append(l.missing, m.missing)
	}
	admitted, err := Admit(cfg.Policy)
	if err != nil {
		return nil, err
	}
	if l.cfg.Take == 0 {
		l.cfg.Take = admitted
	}
	if cfg.Drop && l.cfg.Take == Exactly {
		return nil, fmt.Errorf("play: rewards that do not come cannot be dropped: %T takes exactly what it "+
			"asks for", cfg.Policy)
	}
	l.end = func(int, int) int { return 0 } // known of no segment
	switch l.cfg.Take {
	case admitted:
	case AtLeast:
		if !bearsMore(cfg.Policy) {
			return nil, fmt.Errorf("play: take is at least, must be exactly for %T", cfg.Policy)
		}
	default:
		return nil, fmt.Errorf("play: take is %v, must be at least for %T, which does not say "+
			"where its batches end", l.cfg.Take, cfg.Policy)
	}
	if l.cfg.Take == Exactly {
		l.end = cfg.Policy.(Exact).End
	}
	l.driver.Policy = cfg.Policy
	l.cfg.Ledger = append(slices.Clip(cfg.Ledger), privacy.WithTranscript(&l.line))
	return l, nil
}

// real is the curator of people's rewards.
func (cfg Config) real(c release.Config) (release.Curator, error) {
	if !cfg.Gathering.On() {
		return release.Real(c)
	}
	g, err := release.RealGathered(c, cfg.Gathering)
	if err != nil {
		return nil, err // no typed nil
	}
	return g, nil
}

// outline is that of the curator of people's rewards.
func (cfg Config) outline(c release.Config) (*release.Outline, error) {
	if cfg.Gathering.On() {
		return release.NewGatheredOutline(c, cfg.Gathering)
	}
	return release.NewOutline(c, true)
}

func (cfg Config) checkGathering() error {
	g := cfg.Gathering
	if !g.On() {
		return nil
	}
	if err := g.Validate(); err != nil {
		return fmt.Errorf("play: %w", err)
	}
	switch {
	case len(cfg.Metrics) > 0:
		return fmt.Errorf("play: there are metrics, must be none under trust %s: rewards alone are gathered",
			g.Trust)
	case cfg.Drop:
		return fmt.Errorf("play: drop is true, must be false under trust %s: who did not report would be seen",
			g.Trust)
	}
	return nil
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
	return Terms{Lo: l.cfg.Lo, Hi: l.cfg.Hi, Default: l.cfg.Default, Take: l.cfg.Take, Drop: l.cfg.Drop,
		Metrics: describe(l.metrics)}
}

// curate builds the curators on what was released.
func (l *Live) curate(p *past) error {
	c, err := l.cfg.Curator(release.Config{
		Arms: l.cfg.Arms, Lo: l.cfg.Lo, Hi: l.cfg.Hi, Mechanism: l.cfg.Policy.Mechanism(), Ledger: p.ledger,
	})
	if err != nil {
		return fmt.Errorf("play: %w", err)
	}
	var ok bool
	if l.curator, ok = c.(release.StepCurator); !ok {
		return fmt.Errorf("play: the curator is a %T, must be one that takes sums of steps", c)
	}
	l.driver.Curator = l.curator
	for i := range l.metrics {
		if err := l.metrics[i].curate(l.cfg, p.metrics[i]); err != nil {
			return err
		}
	}
	return nil
}

// Ledger has what the releases have cost.
func (l *Live) Ledger() *privacy.Ledger { return l.curator.Ledger() }

// Batches is how many batches the policy has asked for: rounds of adaptivity.
func (l *Live) Batches() int { return l.driver.Batches }

// Stopped says that the policy wants nothing more. An identification rule has its answer then.
func (l *Live) Stopped() bool { return l.stopped }

// Arm is the arm that the policy wants played next, −1 if it has stopped: the play of its batch
// that is furthest behind its share, in the public order of policy.Batch. Once a batch has all its
// decisions, and waits, they go on in its shares.
func (l *Live) Arm() int {
	if l.stopped || len(l.plan) == 0 {
		return -1
	}
	return l.plan[l.behind(l.have)].Arm
}

// Offer is the arm of an offer: of what becomes a decision later, or never. As Arm, but what is
// shared out are the offers, so that many that come before the first of them is a decision are not
// all of one arm. Who does not want the arm need not take it.
func (l *Live) Offer() int {
	if l.stopped || len(l.plan) == 0 {
		return -1
	}
	i := l.behind(func(i int) int { return l.offers[i] })
	l.offers[i]++
	return l.plan[i].Arm
}

// behind is the play that is furthest behind its share of what they have.
func (l *Live) behind(has func(i int) int) int {
	best, have := 0, has(0)
	for i := 1; i < len(l.plan); i++ {
		if k := has(i); earlier(k, l.plan[i].Rounds, have, l.plan[best].Rounds) {
			best, have = i, k
		}
	}
	return best
}

// have is how many decisions play i has.
func (l *Live) have(i int) int {
	q := &l.s.Arms[l.plan[i].Arm]
	return max(0, q.Issued-q.Head-q.lost-l.before[i])
}

// earlier says whether decision i+1 of n is due before decision j+1 of m: (2i+1)/n <
// (2j+1)/m, in integers.
func earlier(i, n, j, m int) bool {
	ahi, alo := bits.Mul64(2*uint64(i)+1, uint64(m))
	bhi, blo := bits.Mul64(2*uint64(j)+1, uint64(n))
	return ahi < bhi || ahi == bhi && alo < blo
}

// Decide gives a unit an arm, that of Arm or any other: a uniform one that a floor of traffic has
// drawn joins the queue of its arm. The ticket is good until its deadline, a window from now,
// however clocks jump.
func (l *Live) Decide(arm int, now int64) (Ticket, error) {
	return l.DecideUntil(arm, now, now+l.cfg.Window)
}

// DecideUntil is Decide with a deadline of the ticket's own, after now: that of an offer, which was
// fixed when it was made.
func (l *Live) DecideUntil(arm int, now, deadline int64) (Ticket, error) {
	switch {
	case l.failed != nil:
		return Ticket{}, l.failed
	case l.stopped:
		return Ticket{}, ErrStopped
	case arm < 0 || arm >= len(l.s.Arms):
		return Ticket{}, fmt.Errorf("play: arm is %d, must be from 0 to %d", arm, len(l.s.Arms)-1)
	case l.s.Arms[arm].Off:
		return Ticket{}, fmt.Errorf("play: arm %d: %w", arm, ErrOff)
	case now < -maxTime || now > maxTime:
		return Ticket{}, fmt.Errorf("play: the time is %d, must be within 2^61 of 0: %w", now, ErrTime)
	case deadline <= now || deadline >= 2*maxTime:
		return Ticket{}, fmt.Errorf("play: the deadline is %d, must be after %d, and below 2^62: %w", deadline,
			now, ErrTime)
	case l.s.Arms[arm].Issued >= maxIssued:
		return Ticket{}, fmt.Errorf("play: arm %d has %d decisions, must have at most %d", arm,
			l.s.Arms[arm].Issued, maxIssued)
	}
	q, target := &l.s.Arms[arm], 0
	if l.releases[arm] {
		target = q.target()
	}
	n := q.decide(now, deadline, now+l.cfg.Cut, func(start int) int { return l.end(arm, start) }, target)
	return Ticket{arm, n, deadline, l.cfg.Epoch}, nil
}

// Settle takes the reward of a ticket, once, clipped to the declared range; what is no number
// counts as the lowest. A second one of the same ticket has the same answer and changes nothing.
func (l *Live) Settle(t Ticket, reward float64, now int64) (Status, error) {
	return l.SettleAll(t, reward, nil, now)
}

// SettleAll is Settle with the decision's metrics, in the order of Config.Metrics: each is clipped to
// its range, and NaN, or one beyond the end of the list, is its default. The decision's first report
// counts, with all that is in it.
func (l *Live) SettleAll(t Ticket, reward float64, metrics []float64, now int64) (Status, error) {
	s, status, err := l.held(t, now)
	if s == nil {
		return status, err
	}
	if i := t.Number - s.Start; !s.Came.Has(i) && !s.Gone.Has(i) {
		s.Came.add(i)
		s.Sum += l.clip.Steps(reward)
		if s.More == nil && len(l.metrics) > 0 {
			s.More = make([]int64, len(l.metrics))
		}
		for i := range s.More {
			if i < len(metrics) && metrics[i] == metrics[i] {
				s.More[i] += l.metrics[i].clip.Steps(metrics[i])
			} else {
				s.More[i] += l.metrics[i].missing
			}
		}
	}
	return Accepted, nil
}

// Withdraw takes a ticket out: its unit never met the decision, which counts nowhere. The answer,
// and what then counts, are the same whether a reward came before, which is to come after what was
// met can be known. One that came nevertheless stays in the sum, which is cut to the number of those
// that count: what is cut is of withdrawn tickets alone. Tickets of a policy that takes exactly what
// it asks for cannot be withdrawn: the error matches ErrExact.
func (l *Live) Withdraw(t Ticket, now int64) (Status, error) {
	if l.cfg.Take == Exactly {
		return Void, fmt.Errorf("play: %T: %w", l.cfg.Policy, ErrExact)
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
// Its sets are the machine's own, to be read only, and good until the next call. ok is false if the
// decision is in no queue.
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

// Out is the batch that is out, nil between a Close and its Commit and when the policy has stopped.
func (l *Live) Out() []policy.Play { return slices.Clone(l.s.Batch) }
