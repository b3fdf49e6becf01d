package play

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A fault is a way in which a Live, or what stands around it, can be wrong.
type fault int

const (
	none         fault = iota
	countsTwice        // a ticket settled twice counts twice
	countsCame         // a release is of the rewards that came
	closesEarly        // a batch closes when all its rewards are in
	handsOut           // a draw is handed to the policy before it is durable
	drawsAgain         // a release that was committed is drawn anew after a restart
	sameEpoch          // numbers that were lost are issued again as the same tickets
	countsLate         // a reward after the deadline counts
	keepsSegment       // a segment that was released stays in the state
	heedsRewards       // who has had a reward cannot be withdrawn
	countsGone         // who was withdrawn counts
	metricTwice        // a metric that is reported twice counts twice
	takesOthers        // to withdraw takes a reward out, whoever's it was
)

// A recorder is a curator that remembers what it was given and hands its sums out by batch.
type recorder struct {
	release.StepCurator
	came  map[int]int // of the twin countsCame: by arm
	given []given
}

type given struct {
	arm, n int
	sum    int64
}

func (c *recorder) AddSteps(arm, n int, steps int64) error {
	if came, ok := c.came[arm]; ok {
		n = came
	}
	c.given = append(c.given, given{arm, n, steps})
	return c.StepCurator.AddSteps(arm, n, steps)
}

// A watched policy tells what it is given.
type watched struct {
	policy.Policy
	batch int
	see   func(batch int, sums []float64)
}

func (p *watched) BearsMore() bool {
	f, ok := p.Policy.(Flexible)
	return ok && f.BearsMore()
}

func (p *watched) Next(r privacy.Released) *policy.Batch {
	if r.Len() > 0 {
		var sums []float64
		for i := range r.Len() {
			sums = append(sums, r.Sum(i), float64(r.N(i)))
		}
		p.see(p.batch-1, sums)
	}
	p.batch++
	return p.Policy.Next(r)
}

// watchedExact is one that says where its batches end.
type watchedExact struct {
	*watched
	Exact
}

func (p watchedExact) Drop(arm int)                          { p.watched.Policy.(Dropper).Drop(arm) }
func (p watchedExact) BearsMore() bool                       { return p.watched.BearsMore() }
func (p watchedExact) Next(r privacy.Released) *policy.Batch { return p.watched.Next(r) }
func (p watchedExact) Mechanism() privacy.Mechanism          { return p.watched.Policy.Mechanism() }

// metricHigh is the end of the range of a house's metric, which tells its curator from that of rewards.
const metricHigh = 3

// withMetric adds a metric from −1 to 3, whose default is 0.
func withMetric(cfg Config) Config {
	cfg.Metrics = []Metric{{Name: "basket", Lo: -1, Hi: metricHigh, Mechanism: privacy.Laplace{Scale: 4}}}
	return cfg
}

// A house is a Live with a store, a naive model of both, and a fault. Its methods fail the test
// where the machine does what the model does not.
type house struct {
	fault  fault
	policy func() policy.Policy
	cfg    Config
	noise  noise.Fast
	live   *Live
	cur    *recorder
	second *recorder // of the metric
	epochs uint64

	// The store.
	lines [][]byte
	notes int // of the lines
	state []byte

	// The model.
	now     int64
	tickets []Ticket
	rewards map[Ticket]int64 // accepted, in steps
	durable map[Ticket]int64 // and written
	gone    map[Ticket]bool  // withdrawn
	kept    map[Ticket]bool  // and written
	owner   map[Ticket]bool
	counted map[[2]int]bool   // decisions that were released
	handed  map[int][]float64 // what any policy was given of each batch
	cut     int               // releases in which withdrawn rewards did not all stay
}

func newHouse(f fault, p func() policy.Policy, cfg Config, seed uint64) (*house, error) {
	h := &house{fault: f, policy: p, cfg: cfg, noise: noise.NewFast(seed, 7), rewards: map[Ticket]int64{},
		durable: map[Ticket]int64{}, gone: map[Ticket]bool{}, kept: map[Ticket]bool{},
		owner: map[Ticket]bool{}, counted: map[[2]int]bool{},
		handed: map[int][]float64{}}
	l, err := New(h.config())
	if err != nil {
		return nil, err
	}
	h.live = l
	return h, h.write()
}

var errCaught = errors.New("caught")

func caught(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errCaught}, args...)...)
}

// config is that of one more start.
func (h *house) config() Config {
	h.epochs++
	cfg := h.cfg
	binary.BigEndian.PutUint64(cfg.Epoch[:], h.epochs)
	w := &watched{Policy: h.policy(), see: func(batch int, sums []float64) {
		if old, ok := h.handed[batch]; ok && !slices.Equal(old, sums) {
			panic(caught("batch %d was handed out as %v and as %v", batch, old, sums))
		}
		h.handed[batch] = sums
		if batch >= len(h.lines)-h.notes {
			panic(caught("batch %d was handed out before it was durable", batch))
		}
	}}
	cfg.Policy = w
	if x, ok := w.Policy.(Exact); ok {
		cfg.Policy = watchedExact{w, x}
	}
	cfg.Curator = func(rc release.Config) (release.Curator, error) {
		c, err := release.Simulated(rc, &h.noise)
		if err != nil {
			return nil, err
		}
		r := &recorder{StepCurator: c.(release.StepCurator), came: map[int]int{}}
		if rc.Hi == metricHigh {
			h.second = r
		} else {
			h.cur = r
		}
		return r, nil
	}
	return cfg
}

// write makes the state durable.
func (h *house) write() (err error) {
	h.state, err = h.live.State().MarshalBinary()
	h.durable, h.kept = maps.Clone(h.rewards), maps.Clone(h.gone)
	return err
}

func (h *house) decide(arm int) error {
	t, err := h.live.Decide(arm, h.now)
	if err != nil {
		return err
	}
	if t.Arm != arm || t.Deadline != h.now+h.cfg.Window {
		return caught("the ticket %+v of arm %d at %d", t, arm, h.now)
	}
	if slices.Contains(h.tickets, t) {
		return caught("two units have the ticket %+v", t)
	}
	h.owner[t] = true
	h.tickets = append(h.tickets, t)
	return nil
}

// settle reports on a ticket, known or not, and compares the answer with the model's.
func (h *house) settle(t Ticket, reward float64) error {
	l := h.live
	steps := int64(math.Round(min(max(reward, 0), 1) * (1 << 20)))
	if reward != reward {
		steps = 0
	}
	deadline := t
	if h.fault == countsLate {
		deadline.Deadline = math.MaxInt64
	}
	metric, extra := h.metric(t)
	if h.fault == metricTwice && t.Number < l.s.Arms[t.Arm].Issued {
		if s := l.s.Arms[t.Arm].find(t.Number); s != nil && s.Came.Has(t.Number-s.Start) && h.now < t.Deadline {
			s.More[0] += extra
		}
	}
	if h.fault == countsTwice && t.Number < l.s.Arms[t.Arm].Issued {
		if s := l.s.Arms[t.Arm].find(t.Number); s != nil && s.Came.Has(t.Number-s.Start) && h.now < t.Deadline {
			s.Sum += steps
		}
	}
	got, err := l.SettleAll(deadline, reward, metric, h.now)
	if err != nil {
		return err
	}
	if want := h.answer(t); got != want {
		return caught("the answer for %+v at %d is %v, must be %v", t, h.now, got, want)
	}
	if got == Accepted && !h.gone[t] {
		if _, again := h.rewards[t]; !again {
			h.rewards[t] = steps
		}
	}
	return nil
}

// metric is what is reported of a ticket beside its reward, and how many steps that is.
func (h *house) metric(t Ticket) (values []float64, steps int64) {
	switch {
	case len(h.cfg.Metrics) == 0:
		return nil, 0
	case t.Number%5 == 4: // nothing
		return [][]float64{nil, {math.NaN()}}[t.Number/5%2], 1 << 18
	}
	return []float64{float64(t.Number%5)*2 - 2}, []int64{0, 1 << 18, 3 << 18, 1 << 20}[t.Number%5]
}

// answer is what must be answered to whoever reports on a ticket.
func (h *house) answer(t Ticket) Status {
	switch {
	case h.counted[[2]int{t.Arm, t.Number}]: // also where the clock went back since
		return Late
	case !h.owner[t]:
		return Void
	case h.now >= t.Deadline:
		return Late
	}
	return Accepted
}

// withdraw takes a ticket out.
func (h *house) withdraw(t Ticket) error {
	if _, had := h.rewards[t]; had && h.fault == heedsRewards {
		h.gone[t] = true
		return nil
	}
	if h.fault == countsGone {
		h.gone[t] = h.answer(t) == Accepted
		return nil
	}
	switch got, err := h.live.Withdraw(t, h.now); {
	case h.live.cfg.Take == Exactly:
		if !errors.Is(err, ErrExact) {
			return caught("the error is %v", err)
		}
	case err != nil:
		return err
	case got != h.answer(t):
		return caught("withdrawing %+v at %d is answered %v, must be %v", t, h.now, got, h.answer(t))
	case got == Accepted:
		if s := h.live.s.Arms[t.Arm].find(t.Number); h.fault == takesOthers && !h.gone[t] {
			s.Sum = max(0, s.Sum-oneStep)
		}
		h.gone[t] = true
	}
	return nil
}

// crash loses all that is not durable, and restores the rest.
func (h *house) crash() (err error) {
	var s State
	if err := s.UnmarshalBinary(h.state); err != nil {
		return err
	}
	h.rewards, h.gone = maps.Clone(h.durable), maps.Clone(h.kept)
	for t := range h.owner {
		// What the state does not have is void: its number may be another's.
		if q := s.Arms[t.Arm]; t.Number >= q.Issued {
			delete(h.rewards, t)
			delete(h.gone, t)
			delete(h.owner, t)
		}
	}
	h.live, err = Restore(h.config(), func(yield func([]byte, error) bool) {
		for _, line := range h.lines {
			if !yield(line, nil) {
				return
			}
		}
	}, s)
	if err == nil {
		err = h.same(s)
	}
	if err == nil && h.fault == sameEpoch {
		h.live.cfg.Epoch = Epoch{7: 1}
		for a := range h.live.s.Arms {
			h.live.s.Arms[a].Runs = []Run{{0, h.live.cfg.Epoch}}
		}
	}
	return err
}

// same holds the restored state against the stored one: but for epochs, and a batch that was not
// asked for yet, they are the same.
func (h *house) same(s State) error {
	got := h.live.State()
	if s.Batch == nil {
		s.Batch = got.Batch
		for a := range s.Arms {
			s.Arms[a].Asked = got.Arms[a].Asked
			for i := range s.Arms[a].Segments {
				if g := &s.Arms[a].Segments[i]; g.End == 0 {
					g.End = got.Arms[a].Segments[i].End
				}
			}
		}
	}
	for a := range s.Arms {
		s.Arms[a].Runs = got.Arms[a].Runs
	}
	want, _ := s.MarshalBinary()
	if is, _ := got.MarshalBinary(); !bytes.Equal(is, want) {
		return caught("restored\n%+v, stored was\n%+v", got, s)
	}
	return nil
}

// Where a crash may come in the course of a release.
const (
	nowhere = iota
	beforeWrite
	afterWrite
	afterCommit
	places
)

// close closes the batch if the machine says that it can be, in one transaction, with a crash at
// some place of it.
func (h *house) close(crash int) error {
	l, now := h.live, h.now
	if h.fault == closesEarly || h.fault == countsCame {
		early := l.s.Batch != nil
		for _, p := range l.s.Batch {
			q := &l.s.Arms[p.Arm]
			k, settles, ok := q.enough()
			came, n := 0, 0
			for _, s := range q.Segments[:k] {
				came, n = came+s.Came.Len(), n+s.End-s.Start
			}
			early = early && ok && came == n
			if h.fault == countsCame && came > 0 {
				h.cur.came[p.Arm] = came
			} else if h.fault == closesEarly {
				now = max(now, settles)
			}
		}
		if h.fault == closesEarly && !early {
			now = h.now
		}
	}
	before := l.State()
	h.cur.given = h.cur.given[:0]
	if h.second != nil {
		h.second.given = h.second.given[:0]
	}
	c, err := l.Close(now)
	if err != nil || c == nil {
		return err
	}
	if h.fault == handsOut {
		if err := l.Commit(c); err != nil {
			return err
		}
	}
	if crash == beforeWrite {
		return h.crash()
	}
	if err := h.judge(before, c); err != nil {
		return err
	}
	return h.finish(before, c, crash)
}

// takeOff takes an arm off, if that can be, with a crash at some place of it.
func (h *house) takeOff(arm, crash int) error {
	if _, ok := h.live.cfg.Policy.(watchedExact); !ok || h.fault != none {
		return nil
	}
	if _, ok := h.policy().(Dropper); !ok {
		return nil
	}
	on := 0
	for _, q := range h.live.s.Arms {
		if !q.Off {
			on++
		}
	}
	before := h.live.State()
	c, err := h.live.TakeOff(arm)
	if on == 1 || before.Arms[arm].Off {
		if err == nil {
			return caught("arm %d was taken off, of %d", arm, on)
		}
		return nil
	}
	if err != nil || crash == beforeWrite {
		return errors.Join(err, h.crash())
	}
	if a := h.live.Arm(); a == arm {
		return caught("arm %d is off and is played", arm)
	}
	for n := before.Arms[arm].Head; n < before.Arms[arm].Issued; n++ {
		h.counted[[2]int{arm, n}] = true // and in no release
	}
	return h.finish(before, c, crash)
}

// note writes a line that is no batch's, with a crash at some place of it.
func (h *house) note(crash int) error {
	if h.fault != none {
		return nil
	}
	before := h.live.State()
	c, err := h.live.Note([]byte(`{"floor":0.5}`))
	if err != nil || crash == beforeWrite {
		return errors.Join(err, h.crash())
	}
	if len(c.Taken) > 0 || !slices.Equal(h.live.Out(), before.Batch) {
		return caught("a note takes %v, and the batch is %v, was %v", c.Taken, h.live.Out(), before.Batch)
	}
	h.notes++
	return h.finish(before, c, crash)
}

// finish makes a commit durable and commits it.
func (h *house) finish(before State, c *Commit, crash int) (err error) {
	l := h.live
	state, lines := h.state, h.lines
	h.lines = append(h.lines, c.Line)
	if h.fault == keepsSegment {
		h.state, err = before.MarshalBinary()
	} else {
		err = h.write()
	}
	if err != nil {
		return err
	}
	if crash == afterWrite {
		return h.crash()
	}
	if h.fault != handsOut {
		if err := l.Commit(c); err != nil {
			return err
		}
	}
	if crash == afterCommit {
		if h.fault == drawsAgain {
			h.state, h.lines = state, lines
		}
		return h.crash()
	}
	return nil
}

// judge holds a release against the model, at the moment when it becomes durable.
func (h *house) judge(before State, c *Commit) error {
	i := 0
	for _, p := range before.Batch {
		if !p.Release {
			continue
		}
		if i >= len(c.Taken) || i >= len(h.cur.given) {
			return caught("batch %d released %d arms", before.Lines, len(c.Taken))
		}
		took, got := c.Taken[i], h.cur.given[i]
		i++
		asked := before.Arms[p.Arm].Asked
		missing := int64(math.Round(h.cfg.Default * (1 << 20)))
		sum, more, stray := int64(0), int64(0), int64(0) // stray: of the sum, what was withdrawn
		found, gone, kept := map[int]int64{}, map[int]bool{}, 0
		for t, x := range h.rewards {
			if t.Arm == p.Arm {
				found[t.Number] = x
			}
		}
		for t, yes := range h.gone {
			if t.Arm == p.Arm && yes {
				gone[t.Number] = true
			}
		}
		for n := took.Start; n < took.End; n++ {
			if h.counted[[2]int{p.Arm, n}] {
				return caught("decision %d of arm %d is in two releases", n, p.Arm)
			}
			h.counted[[2]int{p.Arm, n}] = true
			x, came := found[n]
			counts := !gone[n] && (came || !h.cfg.Drop)
			if counts {
				kept++
			}
			if counts && !came {
				x, more = missing, more+1<<18
			} else if came {
				_, steps := h.metric(Ticket{Arm: p.Arm, Number: n})
				more += steps
			}
			if came && !counts {
				stray += x
			}
			sum += x
		}
		if took.Arm != p.Arm || got.arm != p.Arm || kept != got.n || kept < asked || kept == 0 ||
			h.live.cfg.Take == Exactly && kept != asked {
			return caught("batch %d took %+v and released %d, asked for %d of arm %d", before.Lines,
				took, got.n, asked, p.Arm)
		}
		if cut := max(0, sum-int64(kept)<<20); got.sum != sum-cut || cut > stray {
			return caught("batch %d released a sum that is not that of its rewards and defaults", before.Lines)
		} else if cut > 0 {
			h.cut++
		}
		if h.second != nil && (i > len(h.second.given) ||
			h.second.given[i-1] != given{p.Arm, kept, min(more, int64(kept)<<20)}) {
			return caught("batch %d released a metric that is not that of its reports and defaults", before.Lines)
		}
		for t := range h.owner {
			if t.Arm == p.Arm && t.Number >= took.Start && t.Number < took.End && h.now < t.Deadline {
				return caught("batch %d closed at %d, before the deadline of %+v", before.Lines, h.now, t)
			}
		}
	}
	return nil
}

// policies are what houses play: all ways to take a queue, batches that release nothing, coins.
func policies(t testing.TB) map[string]func() policy.Policy {
	t.Helper()
	ok := func(p policy.Policy, err error) policy.Policy {
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return map[string]func() policy.Policy{
		"dp-klucb":   func() policy.Policy { p, err := policy.NewDPKLUCB(3, 1, 1.5, 2); return ok(p, err) },
		"adap-klucb": func() policy.Policy { p, err := policy.NewAdaPKLUCB(2, 1, 3.1); return ok(p, err) },
		"batch-se": func() policy.Policy {
			p, err := policy.NewBatchSE(3, privacy.Pure{Epsilon: 1}, 0.1, 2)
			return ok(p, err)
		},
		"lazy-dp-ts": func() policy.Policy {
			s := noise.NewFast(3, 4)
			p, err := policy.NewLazyDPTS(2, 1, &s)
			return ok(p, err)
		},
	}
}

func armsOf(p policy.Policy) int { return len(p.Next(privacy.Released{}).Plays) }
