package play

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A fault is a way in which what stands around a Live can be wrong. What a Live itself can do wrong is
// planted in it, by live/internal/plant.
type fault int

const (
	none       fault = iota
	handsOut         // a draw is handed to the policy before it is durable
	drawsAgain       // a release that was committed is drawn anew after a restart
	// of contexts
	unclipped  // a rule's weight is not clipped
	looksAhead // choices are made with V of decisions that were not released
	halfNoise  // a release has half the noise that is charged
	silentRule // a rule has no noise, and it is charged
	// of joint privacy
	redraws   // noise that was shown is drawn again after a restart
	keptBack  // the curator's state is put back one line
	twoLeaves // a record is in two leaves
)

// A game is what a house plays: arms, contexts, or contexts under joint privacy.
type game interface {
	// start gives the configuration of one more start a policy, which is watched, and its curators.
	start(h *house, cfg *Config)
	// decide makes a decision with the model's knowledge of it, if there is one to make.
	decide(h *house, pick choice) error
	// judge holds a release against the model, at the moment when it becomes durable.
	judge(h *house, before State, c *Commit) error
}

// A house is a Live with a store, a naive model of both that keeps every single reward, and a fault.
// Its methods fail the test where the machine does what the model does not.
type house struct {
	fault  fault
	game   game
	cfg    Config // but for policy, curators and epoch
	noise  noise.Fast
	rng    *rand.Rand // of vectors
	live   *Live
	epochs uint64

	// The store.
	lines [][]byte
	notes int // of the lines, that are no batch's
	state []byte
	ended bool  // decisions have
	grows bool  // arms are added
	joins []int // to joint batches, after so many decisions

	// The model.
	now     int64
	tickets []Ticket
	rewards map[Ticket]float64 // accepted
	durable map[Ticket]float64 // and written
	gone    map[Ticket]bool    // withdrawn
	kept    map[Ticket]bool    // and written
	owner   map[Ticket]Event
	counted map[[2]int]bool   // decisions that were released
	handed  map[int][]float64 // what any policy was given of each batch
	given   map[int][]float64 // and must be: of each of its arms a sum and a count, as the lines have them
	ahead   map[int][]shown   // by arm, what was released and the policy has not had
	early   int               // releases ahead
	cut     int               // releases in which withdrawn rewards did not all stay
	// of each release and coordinate, and of each rule: noise over what is charged
	noises, quiet []float64
}

func newHouse(f fault, c house, seed uint64) (*house, error) {
	h := &c
	h.fault, h.noise, h.rng = f, noise.NewFast(seed, 7), rand.New(rand.NewPCG(seed, 8))
	h.rewards, h.durable = map[Ticket]float64{}, map[Ticket]float64{}
	h.gone, h.kept, h.owner = map[Ticket]bool{}, map[Ticket]bool{}, map[Ticket]Event{}
	h.counted, h.handed = map[[2]int]bool{}, map[int][]float64{}
	h.given, h.ahead = map[int][]float64{}, map[int][]shown{}
	var err error
	if h.live, err = New(h.config()); err != nil {
		return nil, err
	}
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
	h.game.start(h, &cfg)
	return cfg
}

// see is told what a policy is given of a batch.
func (h *house) see(batch int, got []float64) {
	if old, ok := h.handed[batch]; ok && !slices.Equal(old, got) {
		panic(caught("batch %d was handed out as %v and as %v", batch, old, got))
	}
	if want, ok := h.given[batch]; ok && !slices.Equal(want, got) {
		panic(caught("batch %d was handed out as %v, and its lines say %v", batch, got, want))
	}
	h.handed[batch] = got
	if batch >= len(h.lines)-h.notes {
		panic(caught("batch %d was handed out before it was durable", batch))
	}
}

// seeVector is see of a vector.
func (h *house) seeVector(batch int, r privacy.ReleasedVector) {
	got := []float64{float64(r.N())}
	for i := range r.Len() {
		got = append(got, r.At(i))
	}
	h.see(batch, got)
}

// simulated is a curator with simulated noise.
func (h *house) simulated(c release.Config) (release.StepCurator, error) {
	s, err := release.Simulated(c, &h.noise)
	if err != nil {
		return nil, err
	}
	return s.(release.StepCurator), nil
}

// write makes the state durable, and put a state that is another.
func (h *house) write() error { return h.put(h.live.State()) }

func (h *house) put(s State) (err error) {
	h.state, err = json.Marshal(s)
	h.durable, h.kept = maps.Clone(h.rewards), maps.Clone(h.gone)
	return err
}

// read is the state that is durable.
func (h *house) read() (s State, err error) { return s, json.Unmarshal(h.state, &s) }

// written are the lines of the store.
func (h *house) written() func(func([]byte, error) bool) { return listed(h.lines) }

// decided is told of a decision with its ticket.
func (h *house) decided(t Ticket, e Event, deadline int64) error {
	if t.Number != e.Number || t.Deadline != deadline {
		return caught("the ticket %+v of decision %d at %d", t, e.Number, h.now)
	}
	if slices.Contains(h.tickets, t) {
		return caught("two units have the ticket %+v", t)
	}
	h.owner[t] = e
	h.tickets = append(h.tickets, t)
	return nil
}

// settle reports on a ticket, known or not, and compares the answer with the model's.
func (h *house) settle(t Ticket, reward float64) error {
	l := h.live
	metric, _ := h.metric(t)
	got, err := l.SettleAll(t, reward, metric, h.now)
	if err != nil {
		return err
	}
	if want := h.answer(t); got != want {
		return caught("the answer for %+v at %d is %v, must be %v", t, h.now, got, want)
	}
	if _, again := h.rewards[t]; got == Accepted && !h.gone[t] && !again {
		h.rewards[t] = reward
		if v, ok := l.side.(*vectors); ok && h.fault == unclipped {
			v.unclip(t, reward)
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
	_, known := h.owner[t]
	switch {
	case h.counted[[2]int{t.Arm, t.Number}]: // also where the clock went back since
		return Late
	case !known:
		return Void
	case h.now >= t.Deadline:
		return Late
	}
	return Accepted
}

// withdraw takes a ticket out.
func (h *house) withdraw(t Ticket) error {
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
		h.gone[t] = true
	}
	return nil
}

// crash loses all that is not durable, and restores the rest.
func (h *house) crash() error {
	s, err := h.read()
	if err != nil {
		return err
	}
	h.rewards, h.gone = maps.Clone(h.durable), maps.Clone(h.kept)
	for t := range h.owner {
		// What the state does not have is void: its number may be another's.
		if t.Arm >= len(s.Arms) || t.Number >= s.Arms[t.Arm].Issued {
			delete(h.rewards, t)
			delete(h.gone, t)
			delete(h.owner, t)
		}
	}
	if h.live, err = Restore(h.config(), h.written(), s); err != nil {
		return err
	}
	if err = h.same(s); h.ended {
		h.live.Finish()
	}
	return err
}

// stop ends the decisions, and goes on until nothing is left, with crashes where pick says.
func (h *house) stop(pick choice) (err error) {
	defer told(&err)
	h.live.Finish()
	h.ended = true
	if h.live.Arm() >= 0 {
		return caught("a decision follows the end")
	}
	for {
		_, settled, ok := h.live.Left()
		if !ok || h.live.rested {
			break
		}
		if h.now++; h.now > settled+1000 {
			return caught("what is settled at %d is not released at %d", settled, h.now)
		}
		if n := len(h.tickets); n > 0 && pick(3, "reward") > 0 {
			if err := h.settle(h.tickets[n-1-pick(min(n, 40), "back")], float64(pick(3, "what"))/2); err != nil {
				return err
			}
		}
		if err := h.close(pick(places, "place")); err != nil && !errors.Is(err, ErrStopped) {
			return err
		}
	}
	for t := range h.owner {
		if _, of := h.live.side.(arms); of && !h.counted[[2]int{t.Arm, t.Number}] {
			return caught("%+v is in no release", t)
		}
	}
	return nil
}

// same holds the restored state against the stored one: but for epochs, and a batch that was not
// asked for yet, they are the same.
func (h *house) same(s State) error {
	got := h.live.State()
	if s.Batch == nil && got.Batch != nil {
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
	want, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if is, err := json.Marshal(got); err != nil || string(is) != string(want) {
		return caught("restored\n%s, stored was\n%s; %v", is, want, err)
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
	l := h.live
	before, earned := l.State(), l.Rules()
	c, err := l.Close(h.now)
	if err != nil || c == nil {
		return err
	}
	if !slices.Equal(earned, l.Rules()) {
		return caught("what is earned is told before it is durable")
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
	if c.note {
		h.notes++
	}
	return h.finish(before, c, crash)
}

// judge holds a release against the model, at the moment when it becomes durable.
func (h *house) judge(before State, c *Commit) error {
	for _, took := range c.Taken {
		for n := took.Start; n < took.End; n++ {
			if h.counted[[2]int{took.Arm, n}] {
				return caught("decision %d of arm %d is in two releases", n, took.Arm)
			}
			h.counted[[2]int{took.Arm, n}] = true
		}
		for t := range h.owner {
			if t.Arm == took.Arm && t.Number >= took.Start && t.Number < took.End && h.now < t.Deadline {
				return caught("line %d closed at %d, before the deadline of %+v", before.Lines, h.now, t)
			}
		}
	}
	return h.game.judge(h, before, c)
}

// takenBy are the tickets of the decisions that were taken, by number.
func (h *house) takenBy(took Taken) map[int]Ticket {
	out := map[int]Ticket{}
	for t := range h.owner {
		if t.Arm == took.Arm && t.Number >= took.Start && t.Number < took.End {
			out[t.Number] = t
		}
	}
	return out
}

// share is the reward of a ticket, or the default, mapped to [0,1] and the grid.
func (h *house) share(t Ticket) (share float64, came bool) {
	lo, hi := h.live.cfg.Lo, h.live.cfg.Hi
	r, came := h.rewards[t]
	if !came {
		r = h.cfg.Default
	}
	if r != r {
		r = lo
	}
	return math.Round((min(max(r, lo), hi)-lo)/(hi-lo)*(1<<20)) / (1 << 20), came
}

// takeOff takes an arm off, if that can be, with a crash at some place of it.
func (h *house) takeOff(arm, crash int) error {
	if _, ok := h.live.cfg.Policy.(watchedExact); !ok || h.fault != none {
		return nil
	}
	if _, ok := h.game.(*armsGame).policy().(Dropper); !ok {
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
	delete(h.ahead, arm)
	return h.finish(before, c, crash)
}

// addArm adds an arm, with a crash at some place of it.
func (h *house) addArm(crash int) error {
	before := h.live.State()
	c, err := h.live.AddArm(0, []byte(`{"arm":"another"}`))
	if err != nil || crash == beforeWrite {
		return errors.Join(err, h.crash())
	}
	if n := len(h.live.s.Arms); len(c.Taken) > 0 || n != len(before.Arms)+1 || h.live.s.Arms[n-1].Issued > 0 {
		return caught("an arm that is added takes %v, and makes %d arms of %d", c.Taken, n, len(before.Arms))
	}
	if c.note {
		var in struct{ From int }
		if err := json.Unmarshal(c.Line, &in); err != nil {
			return err
		}
		h.notes++
		h.joins = append(h.joins, in.From)
		if !slices.Equal(h.live.Out(), before.Batch) {
			return caught("an arm joins, and the batch is %v, was %v", h.live.Out(), before.Batch)
		}
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
func (h *house) finish(before State, c *Commit, crash int) error {
	l := h.live
	state, lines, now := h.state, h.lines, l.State()
	h.lines = append(slices.Clone(h.lines), c.Line)
	if h.fault == keptBack {
		now.Kept = before.Kept
	}
	if err := h.put(now); err != nil {
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

// choice draws a number from 0 to n−1.
type choice func(n int, what string) int

// seeded draws by a seed.
func seeded(seed, stream uint64) choice {
	src := rand.New(rand.NewPCG(seed, stream))
	return func(n int, _ string) int { return src.IntN(n) }
}

// step does one random thing to a house.
func (h *house) step(pick choice) error {
	switch what := pick(12, "what"); what {
	case 0, 1, 2, 3:
		return h.game.decide(h, pick)
	case 4, 5, 6:
		if len(h.tickets) == 0 {
			return nil
		}
		back := pick(min(len(h.tickets), 40), "back")
		t := h.tickets[len(h.tickets)-1-back]
		if pick(10, "withdraw") == 9 {
			return h.withdraw(t)
		}
		lo, hi := h.live.cfg.Lo, h.live.cfg.Hi
		return h.settle(t, []float64{lo, hi, 0.25, -3, 7, math.NaN(), math.Inf(1)}[pick(7, "reward")])
	case 7:
		if err := h.write(); err != nil {
			return err
		}
		if pick(4, "crash") == 0 {
			return h.crash()
		}
	case 8:
		if pick(6, "crash") == 0 {
			return h.crash()
		}
		if pick(60, "off") == 59 {
			return h.takeOff(pick(max(1, h.cfg.Arms), "arm"), pick(places, "place"))
		}
		switch what := pick(60, "note"); {
		case what == 59:
			return h.note(pick(places, "place"))
		case what > 50 && h.grows && len(h.live.s.Arms) < h.cfg.Arms+3:
			return h.addArm(pick(places, "place"))
		}
	case 9, 10:
		h.now += int64(pick(6, "time"))
		if far := int64(pick(400, "far") - 200); pick(60, "jump") == 59 && (far > 0 || !h.cfg.Drop) {
			h.now += far // clocks go back, too
		}
		return h.close(pick(places, "place"))
	case 11:
		h.now++
		for i := range 20 { // whatever is due: a row of each arm at a time, of phases that grow by half
			lines := len(h.lines)
			if err := h.close(nowhere); err != nil {
				return err
			}
			if i > 6 && len(h.lines) == lines {
				break
			}
		}
		if g, ok := h.game.(*armsGame); ok {
			return g.late(h)
		}
	}
	return nil
}

// told makes a panic of the watched policy an error.
func told(err *error) {
	if r := recover(); r != nil {
		e, ok := r.(error)
		if !ok || !errors.Is(e, errCaught) {
			panic(r)
		}
		*err = e
	}
}

// play does so many random things.
func (h *house) play(steps int, pick choice) (err error) {
	defer told(&err)
	if h.grows && h.live.rows != nil && pick(2, "first") == 0 { // when the batch that is out has no decision yet
		if err := h.addArm(pick(places, "place")); err != nil {
			return err
		}
	}
	for i := range steps {
		if err := h.step(pick); err != nil && !errors.Is(err, ErrStopped) {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// run plays one long run by a seed.
func run(f fault, c house, seed uint64, steps int) (*house, error) {
	h, err := newHouse(f, c, seed)
	if err != nil {
		return nil, err
	}
	return h, h.play(steps, seeded(seed, 2))
}

// loud says whether noise over its scale may be standard normal: the sum of squares of n is within
// 7 standard deviations, which normal noise leaves with probability below 1e-6 for n ≥ 200.
func loud(noises []float64) bool {
	var q float64
	for _, x := range noises {
		q += x * x
	}
	n := float64(len(noises))
	return math.Abs(q-n) < 7*math.Sqrt(2*n)
}
