package serve

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// Reports: what comes of decisions whose rewards the service does not see (decl.Experiment.Trust).
// Each decision is told when its report is due, whatever happens until then, and its first report is
// a row of the store from the commit that marks it as come to the commit that releases it. When a
// batch is due, its rows are a fixed set, and a gatherer asks for the noisy sum of each, for as
// long as it takes; decisions go on meanwhile, and the batch closes at the first public tick that
// finds all sums there.

var (
	// ErrHidden: the experiment takes no rewards in the open.
	ErrHidden = errors.New("the service does not see this experiment's rewards: its decisions are " +
		"reported on, and say how")
	// ErrOpen: the experiment takes rewards, and no reports.
	ErrOpen = errors.New("the experiment's rewards come in the open: it takes no reports")
	// ErrHelper: there is no secret that the two servers of an experiment share.
	ErrHelper = errors.New("the secret that its helper knows this service by is missing")
)

// inTheOpen is nil if an experiment takes rewards that the service sees. Where it does not, a sum has the noise of
// its reports, and of two servers the leader's: under local and secagg a reward that went into one without reports
// would be released as it is.
func (x *served) inTheOpen() error {
	if x.gatherer != nil {
		return ErrHidden
	}
	return nil
}

// unsee drops what programs of before took in the open where rewards are hidden: no noise was brought for it. Such a
// decision counts as one without a report. Nobody is told: whether there was such a reward, and how many, is theirs.
func (x *served) unsee(arms []play.Queue) {
	if x.gatherer == nil {
		return
	}
	for _, q := range arms {
		for i := range q.Segments {
			q.Segments[i].Sum = 0 // a report adds none
		}
	}
}

// A ReportTask is what a client needs to report on a decision, once, at its time.
type ReportTask struct {
	Trust  privacy.Trust
	Ticket []byte        // a dap.Ticket, to report with
	After  time.Duration // from now; whatever has happened by then, and if nothing has: Default
	// Time is what the report says of its time, as dap.Time: it is the decision's, and the same
	// for all who report.
	Time            uint64
	Lo, Hi, Default float64
	Noise           release.Noise // of trust local: what the client adds; of secagg: all of a cohort
	// of two servers alone
	Task   dap.TaskID
	Grid   int
	Helper string // its address
	// of trust secagg alone; the whole noise is Noise
	Cohort *CohortTask
}

// A Message is what a client reports on a decision.
type Message struct {
	Ticket []byte // that of its ReportTask
	// Body is, of trust local, a whole number in decimals; of two servers, a dap.Report; of secagg, an
	// Ed25519 public key.
	Body []byte
}

// A gatherer gets sums of rewards that this service does not see.
type gatherer interface {
	// tell adds what is its own.
	tell(task *ReportTask)
	// message checks the form of a report on a decision, and is what is kept of it. Its error tells
	// nothing of a value.
	message(k ticket, body []byte) (row []byte, err error)
	// gather gets the sum of a slot. It asks the same of the same slot each time, also after a
	// restart. An error that matches errNever ends the experiment; after another it is asked again.
	gather(ctx context.Context, of slot) (gathered, error)
}

// errNever is matched by what asking again does not mend.
var errNever = errors.New("its sum cannot be had")

// A slot is a row of decisions whose windows have passed, and the reports that came, by number.
type slot struct {
	play.Taken
	reports iter.Seq2[store.Hidden, error]
}

// gathered is the sum, in steps of release.ExactStep, of so many rewards, with noise, as
// release.Gathered takes it. A report that was refused is one with the default, so that it counts as
// one that did not come.
type gathered struct {
	answers int
	sum     int64
}

// newGatherer is that of an experiment, nil where its rewards come in the open.
func (x *served) newGatherer(e *Engine) (gatherer, error) {
	switch t := x.decl.TrustModel(); t {
	case privacy.TrustCentral:
		return nil, nil
	case privacy.TrustLocal:
		return newLocal(&x.decl)
	case privacy.TrustTwoServer:
		return newTwoServer(e, &x.decl)
	case privacy.TrustSecAgg:
		return newCohorts(e, x)
	default:
		return nil, fieldError("trust", "is %s, which is not served", t)
	}
}

// task is what the unit of a decision needs to report; nil if there is nothing to report.
func (x *served) task(k ticket, token string, now int64) *ReportTask {
	if x.gatherer == nil || k.number == beyond {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil { // which has just been written
		return nil
	}
	due := k.deadline - (x.decl.Window - x.decl.ReportDelay()).Milliseconds()
	out := &ReportTask{Trust: x.decl.TrustModel(), Time: dap.Time(time.UnixMilli(k.deadline)),
		After:  time.Duration(max(0, due-now)) * time.Millisecond,
		Ticket: dap.Ticket{Arm: uint32(k.arm), Number: uint64(k.number), Token: raw}.Marshal(),
		Lo:     x.decl.Lo, Hi: x.decl.Hi, Default: x.decl.Default}
	if out.Lo == 0 && out.Hi == 0 {
		out.Hi = 1
	}
	x.gatherer.tell(out)
	return out
}

// Reports takes reports on decisions whose rewards nobody is to see, and returns when they are
// durable: a result for each, in their order. The first report of a decision counts. An error is for
// all of them, which can then be sent again.
func (e *Engine) Reports(ctx context.Context, name string, messages []Message) ([]Result, error) {
	x, err := e.find(name)
	if err == nil && e.cfg.ReadOnly {
		err = ErrReadOnly
	}
	if err != nil {
		return nil, err
	}
	if x.gatherer == nil {
		return nil, fmt.Errorf("experiment %q: %w", name, ErrOpen)
	}
	j := &job{on: x, at: e.now(), results: make([]Result, len(messages)),
		reports: make([]reported, 0, len(messages))}
	sign := newSigner(x.tokenKey)
	for i, m := range messages {
		k, ok := x.ticketOf(sign, m.Ticket)
		switch {
		case !ok:
			j.results[i].Err = ErrToken
		case k.number == beyond:
			j.results[i].Status = OverLimit
		default:
			row, err := x.gatherer.message(k, m.Body)
			if err != nil {
				j.results[i].Err = err
				continue
			}
			j.reports = append(j.reports, reported{ticket: k, what: hidden, reward: x.decl.Lo, row: row, result: i})
		}
	}
	if len(j.reports) > 0 {
		if err := e.do(ctx, j); err != nil {
			return nil, fmt.Errorf("experiment %q: %w", name, err)
		}
	}
	e.count(name, j.results)
	return j.results, nil
}

// A gathering is a batch whose sums are on their way.
type gathering struct {
	rows   []play.Taken
	since  int64
	cancel context.CancelFunc // nil before it has begun

	mu     sync.Mutex
	sums   []play.Sum // by row
	there  int        // how many of them are
	failed string     // why the last try did, for everybody
	never  error
}

// has says whether a decision is in a row that was asked for.
func (g *gathering) has(arm int, number int64) bool {
	if g == nil {
		return false
	}
	for _, r := range g.rows {
		if r.Arm == arm && number >= int64(r.Start) && number < int64(r.End) {
			return true
		}
	}
	return false
}

// stop gives it up.
func (g *gathering) stop() {
	if g != nil && g.cancel != nil {
		g.cancel()
	}
}

// why is why the last try has failed; empty if it has not.
func (g *gathering) why() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// done are the sums of all rows, nil if some are missing.
func (g *gathering) done() ([]play.Sum, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.never != nil || g.there < len(g.rows) {
		return nil, g.never
	}
	return g.sums, nil
}

// asks says whether a batch that is due may have been asked for: then it is the next thing
// that happens to its arms. After a restart nobody knows.
func (x *served) asks(now int64) bool {
	if x.gatherer == nil || x.gathering == nil && !x.unsure {
		return false
	}
	_, due := x.play.Slots(now)
	return due
}

// gather begins to ask for what is due, when it is durable what that is.
func (e *Engine) gather(ctx context.Context, x *served) {
	e.mu.RLock()
	from := e.reading
	e.mu.RUnlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.gathering
	if g == nil || g.cancel != nil {
		return
	}
	ctx, g.cancel = context.WithCancel(ctx)
	by, id, name := x.gatherer, x.id, x.decl.Name
	g.sums = make([]play.Sum, len(g.rows))
	one := func(i int) bool {
		row := g.rows[i]
		of := slot{row, from.Reports(ctx, id, row.Arm, row.Start, row.End)}
		sum, err := e.ask(ctx, name, g, by, of)
		if err == nil {
			e.cfg.hook("gathered")
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if err != nil {
			g.never = err
			return false
		}
		g.sums[i] = play.Sum{Taken: row, Answers: sum.answers, Steps: sum.sum}
		g.there++
		return true
	}
	if _, meets := by.(*cohorts); meets { // the clients of all rows come at the same times
		for i := range g.rows {
			e.gatherings.Go(func() { one(i) })
		}
		return
	}
	e.gatherings.Go(func() {
		for i := range g.rows {
			if !one(i) {
				return
			}
		}
	})
}

// gatherWithin bounds the pause between two tries.
const gatherWithin = time.Minute

// ask asks for a slot until it is there. How long that takes depends on who is asked, and on how many
// decisions there are.
func (e *Engine) ask(ctx context.Context, name string, g *gathering, by gatherer, of slot) (gathered, error) {
	for wait := e.cfg.gatherPause; ; wait = min(2*wait, gatherWithin) {
		sum, err := by.gather(ctx, of)
		if ctx.Err() != nil {
			return gathered{}, ctx.Err()
		}
		g.mu.Lock()
		g.failed = ""
		if err != nil {
			g.failed = publicly(err)
		}
		g.mu.Unlock()
		if err == nil {
			return sum, nil
		}
		e.cfg.Log.Error("serve: a sum could not be gathered", "experiment", name, "arm", of.Arm, "from", of.Start,
			"to", of.End, "error", err)
		if errors.Is(err, errNever) { // everybody may read why the experiment ends
			why := errNever
			if p := publicError(""); errors.As(err, &p) {
				why = fmt.Errorf("%w: %w", errNever, p)
			}
			return gathered{}, fmt.Errorf("arm %d, decisions %d to %d: %w", of.Arm, of.Start, of.End-1, why)
		}
		select {
		case <-ctx.Done():
			return gathered{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// A publicError is one that everybody may read: a sentence of ours. What somebody else says, who may
// know of reports one by one, is for the log.
type publicError string

func (p publicError) Error() string { return string(p) }

// publicly is what everybody is told of an error.
func publicly(err error) string {
	if p := publicError(""); errors.As(err, &p) {
		return string(p)
	}
	return "its sums could not be had yet"
}

// giveUp stops all that is being asked for: somebody else writes, or everything is read again.
func (e *Engine) giveUp() {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, x := range e.byName {
		x.mu.Lock()
		x.gathering.stop()
		x.mu.Unlock()
	}
}
