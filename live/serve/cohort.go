package serve

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/transport"
)

// Cohorts: rewards of which the service learns noisy sums, by sessions of package secagg. A client
// registers a key for its decision, which is all that its report is; when the decision's slot is
// due, the service holds a session at a time that its clients know, for those who registered. Each
// brings its reward with a share of the noise.
//
// A reward may be in one sum, as a second one has other noise. So the clients of a slot are asked
// for masked messages once, whatever comes of it; that they are going to be is durable, and in the
// transcript, before the first of them is. A session that ends before it has told who was online,
// and is held again. The sum is durable before a batch closes with it.

// ErrCohort: the service holds no sessions, or the experiment needs none.
var ErrCohort = errors.New("there are no sessions")

// Cohorts is where sessions are held.
type Cohorts struct {
	Hub     *transport.Hub
	Address string        // host:port, as clients reach it
	Round   time.Duration // of a session, at most; secagg.DefaultTimeout if 0
}

// A CohortTask is what a decision's client must know of the sessions of its experiment. From it
// and from who is in a session it computes the rest itself: who is told other terms later
// shares no masks.
type CohortTask struct {
	Terms  decl.Cohort
	Server ed25519.PublicKey // of all sessions of the experiment
	Next   time.Duration     // from now, to the first session that its decision may be in
	Round  time.Duration     // of a session, at most
}

// A CohortSession is what the client of a decision is to do about its session.
type CohortSession struct {
	Status CohortStatus
	// After, unless it is over, is when to ask again, from now.
	After time.Duration
	// of one that is open
	Address, Name string // whom to connect to, and the name to ask for
	ID            [32]byte
	Arm           int
	Start, End    int // its slot: decisions Start to End−1
	// Keys are the clients, who are numbered from 1 on in this order.
	Keys []ed25519.PublicKey
}

// A CohortStatus is how far a decision's session is.
type CohortStatus string

// The states of a decision's session.
const (
	CohortWait CohortStatus = "wait" // it is not yet held
	CohortOpen CohortStatus = "open" // clients are awaited
	CohortOver CohortStatus = "over" // there will be none
)

// cohortState is what is stored of the slot of an arm that is due.
type cohortState struct {
	Arm   int   `json:"arm"`
	Start int   `json:"start"`
	End   int   `json:"end"`
	Tries int   `json:"tries,omitempty"` // sessions that nobody was asked in
	Last  int64 `json:"last,omitempty"`  // when the last of them was due
	Asked bool  `json:"asked,omitempty"`
	Done  bool  `json:"done,omitempty"` // there is nothing more to be held
	// Reports that the sum is of, those who did not answer with the default
	Reports int   `json:"reports,omitempty"`
	Sum     int64 `json:"sum,omitempty"`
}

func (s cohortState) of(t play.Taken) bool {
	return s.Arm == t.Arm && s.Start == t.Start && s.End == t.End
}

// A CohortNote is a line of the transcript about the decisions Start to End−1 of an arm.
type CohortNote struct {
	Arm   int `json:"arm"`
	Start int `json:"start"`
	End   int `json:"end"`
	// Asked is how many had registered for a session in which clients were asked for masked
	// messages. From then on a noisy sum may be known, and is charged.
	Asked int `json:"asked,omitempty"`
	// Missing says why no sum is opened, so that all these rewards count as missing.
	Missing string `json:"missing,omitempty"`
}

type cohortLine struct {
	Cohort CohortNote `json:"cohort"`
}

// cohorts is the gatherer.
type cohorts struct {
	e       *Engine
	x       *served // to be found by: its state is read and written by the writer alone
	name    string
	terms   decl.Cohort
	of      aggregate.Cohort
	standIn int64 // the default, in steps
	key     ed25519.PrivateKey

	mu   sync.Mutex
	open map[int]CohortSession // by arm, those who clients are awaited in
	in   map[int]map[int]bool  // by arm, whose decisions
}

func newCohorts(e *Engine, x *served) (*cohorts, error) {
	of, err := x.decl.Sessions()
	if err != nil {
		return nil, err
	}
	lo, hi := x.decl.Range()
	clip, err := release.NewClip(lo, hi)
	if err != nil {
		return nil, err
	}
	return &cohorts{e: e, x: x, name: x.decl.Name, terms: x.decl.Terms(), of: of,
		standIn: clip.Steps(x.decl.Default),
		key:     ed25519.NewKeyFromSeed(keyFor(e.secret[:], x.rec.Key[:], "cohort")),
		open:    map[int]CohortSession{}, in: map[int]map[int]bool{}}, nil
}

// held says whether sessions can be held.
func (g *cohorts) held() error {
	if g.e.cfg.Cohorts == nil {
		return fmt.Errorf("%w: this service does not listen for them", ErrCohort)
	}
	return nil
}

func (g *cohorts) tell(task *ReportTask) {
	task.Noise = g.of.Noise
	now := g.e.now()
	closes := now + (task.After + g.x.decl.Window - g.x.decl.ReportDelay()).Milliseconds()
	round := secagg.DefaultTimeout
	if c := g.e.cfg.Cohorts; c != nil && c.Round > 0 {
		round = c.Round
	}
	task.Cohort = &CohortTask{Round: round, Terms: g.terms, Server: g.key.Public().(ed25519.PublicKey),
		Next: time.Duration(g.next(closes)-now) * time.Millisecond}
}

// next is the first scheduled time after now.
func (g *cohorts) next(now int64) int64 {
	every := g.terms.Every.Milliseconds()
	return (now/every + 1) * every
}

// message takes a public key.
func (g *cohorts) message(_ ticket, body []byte) ([]byte, error) {
	if len(body) != ed25519.PublicKeySize {
		return nil, fieldError("key", "must be an Ed25519 public key, %d bytes", ed25519.PublicKeySize)
	}
	return body, nil
}

// write has the writer change what is stored of a slot, and returns when it is durable. What f
// returns besides is a line of the transcript.
func (g *cohorts) write(ctx context.Context, of play.Taken, f func(s *cohortState) *CohortNote) error {
	return g.e.do(ctx, &job{on: g.x, act: func(x *served, _ *store.Commit, now int64) error {
		if x.play == nil {
			return fmt.Errorf("it is %s: %w", x.rec.State, ErrState)
		}
		all := x.rec.Cohorts
		i := slices.IndexFunc(all, func(s cohortState) bool { return s.of(of) })
		if i < 0 { // what was of the arm before is released
			all = slices.DeleteFunc(slices.Clone(all), func(s cohortState) bool { return s.Arm == of.Arm })
			i, all = len(all), append(all, cohortState{Arm: of.Arm, Start: of.Start, End: of.End})
		} else {
			all = slices.Clone(all)
		}
		if note := f(&all[i]); note != nil {
			if err := x.say(now, cohortLine{*note}); err != nil {
				return err
			}
			if err := x.charge(*note); err != nil {
				return err
			}
		}
		x.rec.Cohorts = all
		x.todo |= theRecord
		return nil
	}})
}

// charge books a sum that may be known.
func (x *served) charge(n CohortNote) error {
	if n.Asked == 0 {
		return nil
	}
	x.asked = append(x.asked, n)
	return chargeCohorts(x.ledger, &x.decl, x.asked[len(x.asked)-1:], len(x.asked)-1)
}

// chargeCohorts books sums that may be known: their releases are booked when they close, at the same
// price, but may never. A reward is in one of them, so that no total is more than that of a release.
func chargeCohorts(to *privacy.Ledger, decl *Experiment, notes []CohortNote, from int) error {
	if len(notes) == 0 {
		return nil
	}
	p, err := decl.NewPolicy(noCoins{})
	if err != nil {
		return err
	}
	for i, n := range notes {
		m, err := release.GatheredMechanism(p.Mechanism(), decl.Gathering(), n.End-n.Start)
		if err != nil {
			return err
		}
		if err := to.Note(math.MaxInt-from-i, m); err != nil { // far from the slots of releases
			return err
		}
	}
	return nil
}

// cohortNoise holds a sum of gathered rewards, of these decisions of an arm, against the notes before it: in the
// session for them enough were asked for shares of its noise; or none was held, and all of them have the default.
// Fewer shares are less noise than the mechanism says, and cost more than it does.
func cohortNoise(of *Experiment, notes []CohortNote, sum amount, decisions [2]int) error {
	m, ok := sum.Mechanism.(privacy.Aggregated)
	if !ok || m.Trust != privacy.TrustSecAgg {
		return nil
	}
	terms, err := of.Sessions()
	if err != nil {
		return err
	}
	lo, hi := of.Range()
	clip, err := release.NewClip(lo, hi)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(notes, func(n CohortNote) bool {
		return n.Arm == sum.Arm && [2]int{n.Start, n.End} == decisions
	})
	switch {
	case i < 0 && sum.value != float64(int64(sum.N)*clip.Steps(of.Default))*release.ExactStep:
		return fmt.Errorf("a sum of decisions %d to %d of arm %d is told without a session for its noise",
			decisions[0], decisions[1]-1, sum.Arm)
	case i >= 0 && (notes[i].Asked < max(m.Users, terms.Least(notes[i].Asked)) || notes[i].Asked > min(m.Invited, sum.N)):
		return fmt.Errorf("%d were asked for the noise of decisions %d to %d of arm %d, must be from %d to %d", notes[i].Asked,
			decisions[0], decisions[1]-1, sum.Arm, max(m.Users, terms.Least(notes[i].Asked)), min(m.Invited, sum.N))
	}
	return nil
}

// gatheredAs has cohortNoise look at all sums of a transcript, of which it says the line that is wrong.
func gatheredAs(x *Experiment, all []entry) (line int, err error) {
	if x.TrustModel() != privacy.TrustSecAgg {
		return 0, nil
	}
	b, err := newBoard(x)
	if err != nil {
		return 1, err
	}
	var notes []CohortNote
	heads := make([]int, len(b.queues))
	for i, e := range all {
		if e.cohort != nil && e.cohort.Asked > 0 {
			notes = append(notes, *e.cohort)
		}
		if !e.plays() {
			continue
		}
		var sums []amount
		var spans [][2]int
		if e.line, err = readLine(e.text); err == nil {
			if sums, err = b.released(&e.line); err == nil {
				spans, err = b.spans(&e.line, sums, heads)
			}
		}
		for k := 0; k < len(spans) && err == nil; k++ {
			err = cohortNoise(x, notes, sums[k], spans[k])
		}
		if err != nil {
			return i + 1, err
		}
	}
	return 0, nil
}

// noCoins is for a policy that is asked for its mechanism alone.
type noCoins struct{}

func (noCoins) Float64() float64          { return 0 }
func (noCoins) Normal() float64           { return 0 }
func (noCoins) Beta(_, _ float64) float64 { return 0 }

// stored is what is stored of a slot.
func (g *cohorts) stored(of play.Taken) cohortState {
	x := g.e.current(&job{on: g.x})
	if x == nil {
		return cohortState{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.rec.Cohorts {
		if s.of(of) {
			return s
		}
	}
	return cohortState{Arm: of.Arm, Start: of.Start, End: of.End}
}

func (g *cohorts) gather(ctx context.Context, of slot) (gathered, error) {
	s := g.stored(of.Taken)
	if s.Done {
		return gathered{s.Reports, s.Sum}, nil
	}
	if err := g.held(); err != nil {
		return gathered{}, publicError(err.Error())
	}
	var keys []ed25519.PublicKey
	numbers, seen, reports := map[int]bool{}, map[[ed25519.PublicKeySize]byte]bool{}, 0
	for r, err := range of.reports {
		switch {
		case err != nil:
			return gathered{}, err
		case len(r.Data) != ed25519.PublicKeySize:
			return gathered{}, fmt.Errorf("%w: what is stored of decision %d is damaged", errNever, r.Number)
		}
		reports++
		// a client who registers twice is one
		if k := [ed25519.PublicKeySize]byte(r.Data); !seen[k] {
			seen[k], numbers[r.Number] = true, true
			keys = append(keys, r.Data)
		}
	}
	switch {
	case s.Asked:
		return g.give(ctx, of.Taken, reports, "its session was interrupted when messages may have left")
	case len(keys) > decl.MaxCohort:
		return g.give(ctx, of.Taken, reports, fmt.Sprintf("%d registered, at most %d can",
			len(keys), decl.MaxCohort))
	case s.Tries >= int(g.terms.Tries):
		return g.give(ctx, of.Taken, reports, fmt.Sprintf("too few came, %d times", s.Tries))
	}
	id, err := secagg.NewID(g.e.cfg.random)
	if err != nil {
		return gathered{}, err
	}
	session, mechanism, err := g.of.Session(id, of.Arm, of.Start, len(keys))
	if err != nil { // which more who come would not mend
		return g.give(ctx, of.Taken, reports, fmt.Sprintf("%d registered, of %d decisions: %v", len(keys),
			of.End-of.Start, err))
	}
	at := g.next(max(s.Last, g.e.now()-1))
	g.e.cfg.hook("scheduled")
	if err := g.until(ctx, at); err != nil {
		return gathered{}, err
	}
	total, answers, asked, err := g.hold(ctx, of.Taken, session, keys, numbers, at+g.terms.Wait.Milliseconds())
	switch {
	case ctx.Err() != nil:
		return gathered{}, ctx.Err()
	case err == nil:
		sum, err := release.CohortSum(mechanism, total, answers)
		if err != nil {
			return gathered{}, fmt.Errorf("%w: %w", errNever, err)
		}
		// who registered and did not answer has the default
		sum += int64(reports-answers) * g.standIn
		err = g.write(ctx, of.Taken, func(s *cohortState) *CohortNote {
			s.Done, s.Reports, s.Sum = true, reports, sum
			return nil
		})
		return gathered{reports, sum}, err
	case asked:
		g.e.cfg.Log.Error("serve: a session has failed", "experiment", g.name, "arm", of.Arm, "error", err)
		return g.give(ctx, of.Taken, reports, "its session failed when messages had left: "+failureOf(err))
	}
	g.e.cfg.Log.Error("serve: a session was not held", "experiment", g.name, "arm", of.Arm, "error", err)
	tries := 0
	if err := g.write(ctx, of.Taken, func(s *cohortState) *CohortNote {
		s.Tries, s.Last = s.Tries+1, at
		tries = s.Tries
		return nil
	}); err != nil {
		return gathered{}, err
	}
	if tries >= int(g.terms.Tries) {
		return g.give(ctx, of.Taken, reports, fmt.Sprintf("%s, %d times", failureOf(err), tries))
	}
	return gathered{}, publicError(fmt.Sprintf("%s to session %d of %d of arm %q, the next is at %s",
		failureOf(err),
		tries, g.terms.Tries, g.x.decl.Arms[of.Arm].Name, time.UnixMilli(g.next(at)).UTC().Format("15:04")))
}

// failureOf is what everybody is told of a session that failed.
func failureOf(err error) string {
	switch name := transport.Name(err); name {
	case "":
		return "a failure"
	case "too few":
		return "too few came"
	default:
		return name
	}
}

// give applies the rule: no sum is opened.
func (g *cohorts) give(ctx context.Context, of play.Taken, reports int, why string) (gathered, error) {
	if g.terms.Otherwise == decl.CohortStop {
		return gathered{}, fmt.Errorf("%w: %w", errNever, publicError(why))
	}
	sum := int64(reports) * g.standIn
	err := g.write(ctx, of, func(s *cohortState) *CohortNote {
		s.Done, s.Reports, s.Sum = true, reports, sum
		return &CohortNote{Arm: of.Arm, Start: of.Start, End: of.End, Missing: why}
	})
	return gathered{reports, sum}, err
}

// until waits for a time of the engine's clock.
func (g *cohorts) until(ctx context.Context, at int64) error {
	pause := min(g.e.cfg.gatherPause, 100*time.Millisecond)
	for g.e.now() < at {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return nil
}

// hold holds a session, which begins when all are there, or at a time with those who are. asked
// says that masked messages may have left.
func (g *cohorts) hold(ctx context.Context, of play.Taken, session secagg.Session, keys []ed25519.PublicKey,
	numbers map[int]bool, begin int64) (total uint64, answers int, asked bool, err error) {
	at := g.e.cfg.Cohorts
	name := hex.EncodeToString(session.ID[:16]) + ".session"
	l, err := at.Hub.Listen(name)
	if err != nil {
		return 0, 0, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := make(chan struct{})
	go func() {
		if g.until(ctx, begin) == nil {
			close(start)
		}
	}()
	clients := make(map[uint32]ed25519.PublicKey, len(keys))
	for i, k := range keys {
		clients[uint32(i+1)] = k
	}
	g.show(of.Arm, CohortSession{Status: CohortOpen, Address: at.Address, Name: name,
		ID: session.ID, Arm: of.Arm,
		Start: of.Start, End: of.End, Keys: keys}, numbers)
	defer g.hide(of.Arm)
	g.e.cfg.hook("session")
	result, err := transport.Serve(ctx, l, transport.ServerConfig{
		Protocol: secagg.ServerConfig{Session: session, Identity: g.key, Clients: clients, Timeout: at.Round},
		Wait:     30 * 24 * time.Hour, // until start
		Start:    start,
		Log: func(e transport.Event) {
			switch {
			case !e.Named && e.Err == nil:
				g.hide(of.Arm)
			case e.Round == 0 && e.Err == nil:
				g.e.cfg.hook("came")
			}
		},
		Ask: func() error {
			asked = true
			g.e.cfg.hook("ask")
			return g.write(ctx, of, func(s *cohortState) *CohortNote {
				s.Asked = true
				return &CohortNote{Arm: of.Arm, Start: of.Start, End: of.End, Asked: len(keys)}
			})
		},
		Spend: func() error { g.e.cfg.hook("open"); return nil },
	})
	if err != nil {
		return 0, 0, asked, err
	}
	g.e.cfg.hook("summed")
	return result.Sum[0], len(result.Survivors), true, nil
}

func (g *cohorts) show(arm int, s CohortSession, numbers map[int]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[arm], g.in[arm] = s, numbers
}

func (g *cohorts) hide(arm int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, arm)
	delete(g.in, arm)
}

// Cohort is what the client of a decision is to do about its session. Who has the decision's token
// may ask.
func (e *Engine) Cohort(_ context.Context, name string, raw []byte) (CohortSession, error) {
	x, err := e.find(name)
	if err != nil {
		return CohortSession{}, err
	}
	g, ok := x.gatherer.(*cohorts)
	if !ok {
		return CohortSession{}, fmt.Errorf("experiment %q: %w", name, ErrCohort)
	}
	if err := g.held(); err != nil {
		return CohortSession{}, fmt.Errorf("experiment %q: %w", name, err)
	}
	k, ok := x.ticketOf(newSigner(x.tokenKey), raw)
	if !ok {
		return CohortSession{}, fmt.Errorf("experiment %q: %w", name, ErrToken)
	}
	now := e.now()
	x.mu.Lock()
	over := k.number == beyond || x.play == nil
	if !over {
		_, queued := x.play.Segment(k.arm, int(min(k.number, math.MaxInt)))
		over = !queued || slices.ContainsFunc(x.rec.Cohorts, func(s cohortState) bool {
			return s.Arm == k.arm && k.number >= int64(s.Start) && k.number < int64(s.End) &&
				(s.Asked || s.Done)
		})
	}
	x.mu.Unlock()
	if over {
		return CohortSession{Status: CohortOver}, nil
	}
	after := time.Duration(g.next(now)-now) * time.Millisecond
	g.mu.Lock()
	defer g.mu.Unlock()
	if s, is := g.open[k.arm]; is && g.in[k.arm][int(k.number)] {
		s.After = after
		return s, nil
	}
	return CohortSession{Status: CohortWait, After: after}, nil
}

// ticketOf reads the ticket of a decision's report.
func (x *served) ticketOf(sign signer, raw []byte) (ticket, bool) {
	t, err := dap.ParseTicket(raw)
	if err != nil {
		return ticket{}, false
	}
	k, ok := sign.readRaw(t.Token)
	return k, ok && k.arm == int(t.Arm) && k.number >= 0 && uint64(k.number) == t.Number
}
