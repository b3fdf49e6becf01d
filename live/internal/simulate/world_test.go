package simulate

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// An op is one thing that somebody does, or that happens. What it is in detail follows from its seed, so that
// the others stay what they are when one is left out.
type op struct {
	what string
	n    int
	seed uint64
}

// A setting is what a world is before anything happens in it.
type setting struct {
	seed   uint64
	kind   string
	slept  bool // the clock is the process's own, and not set by hand
	shared bool // processes watch each other
	parted bool // and share out two shares, of which the second has all experiments
	wire   bool // people ask over HTTP, through a client and a network that lies
	blind  bool // nothing that is released has anything of a reward
	others bool // all rewards are other ones
	alone  bool // no process takes over from one that lives
	lies   bool // the disk goes back in the end
	early  bool // the first clock was ahead
	large  bool // many people
}

// A world is a service, its people, its operators and its faults, in a time of its own.
type world struct {
	setting
	*rand.Rand // of the operation that is on
	t          *testing.T
	random     *entropy
	disk       *disk
	office     *disk // of the first share, in a world that is parted
	draws      *draws
	books      map[int64]*book
	byName     map[string]*book
	names      []string
	drafts     []*book // that a cap has refused
	arms       map[string][]string
	p          *process // who is asked
	peers      []*process
	net        *network
	base       atomic.Int64 // the clock that is set by hand, in milliseconds

	open   []*given // what is not reported yet
	old    []*given // what was
	guests int
	index  int32

	since            time.Time // who writes has begun
	jumped, wentBack bool
	resting          bool // it is at its end
	syncing, slowed  bool // a sweep is asked for; a commit was slow, and sweeps are late
	broken           *violation
	story            func(format string, args ...any)
	mu               sync.Mutex // see apart
	digest           hash.Hash64
	began            time.Time
	count            counters
	erased           map[string]bool // units
}

// counters are what a world has had.
type counters struct {
	decisions, rewards, accepted, commits, releases, crashes, requests int
	simulated                                                          time.Duration
}

func (c *counters) add(d counters) {
	c.decisions += d.decisions
	c.rewards += d.rewards
	c.accepted += d.accepted
	c.commits += d.commits
	c.releases += d.releases
	c.crashes += d.crashes
	c.requests += d.requests
	c.simulated += d.simulated
}

// given is what somebody was given.
type given struct {
	on       *book
	token    string
	event    string
	met      bool // an offer, and it was
	k        key
	h        *held
	deadline int64
	unit     string
	ticket   []byte // where its reward is hidden
}

// A result is how a world has ended.
type result struct {
	counters
	broken *violation
	digest uint64
}

// live has a world happen.
func live(t *testing.T, s setting, ops []op, story func(string, ...any)) (out result) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, s.seed)
	random := &entropy{src: rand.NewChaCha8([32]byte{byte(s.seed), byte(s.seed >> 8), byte(s.seed >> 16), 9})}
	before, transport := crand.Reader, http.DefaultTransport
	crand.Reader = random
	reached := &outside{}
	http.DefaultTransport = reached
	defer func() { crand.Reader, http.DefaultTransport = before, transport }()
	synctest.Test(t, func(t *testing.T) {
		w := &world{setting: s, t: t, random: random, books: map[int64]*book{}, byName: map[string]*book{},
			arms: map[string][]string{}, erased: map[string]bool{}, digest: xxhash.New(), began: time.Now(), story: story,
			Rand: rand.New(rand.NewPCG(s.seed, 31))}
		if story == nil {
			w.story = func(string, ...any) {}
		}
		w.draws = &draws{of: map[float64][]*draw{}, blind: s.blind}
		w.begin()
		for _, o := range ops {
			if w.broken != nil {
				break
			}
			w.Rand = rand.New(rand.NewPCG(s.seed, o.seed))
			w.do(o)
			w.rest(0)
		}
		w.end()
		w.count.simulated = time.Since(w.began)
		if !w.slept {
			w.count.simulated = time.Duration(w.base.Load()-handBase) * time.Millisecond
		}
		out = result{w.count, w.broken, w.digest.Sum64()}
	})
	return out
}

const handBase = 1_000_000_000_000

// fail notes the first violation.
func (w *world) fail(err error) {
	var v *violation
	switch {
	case err == nil || w.broken != nil:
	case errors.As(err, &v):
		w.broken = v
		w.story("=> %v", v)
	default:
		w.broken = broken(goesOn, "%v", err)
		w.story("=> %v", err)
	}
}

// tell adds to what is seen from outside.
func (w *world) tell(b []byte) { _, _ = w.digest.Write(b) }

// apart has what this goroutine knows of the model be before what the next commit does to it, and what the last one
// did be before what this goroutine does next: a commit is made while it waits for one, or sleeps.
func (w *world) apart() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

// still waits until nobody does anything: what was answered may be followed by a sweep at once.
func (w *world) still() {
	synctest.Wait()
	w.apart()
}

func (w *world) rest(d time.Duration) {
	w.apart()
	defer w.apart()
	time.Sleep(d + time.Duration(1+w.IntN(1000)))
	synctest.Wait()
	w.random.hold(false)
}

// clock is what a process's clock says.
func (w *world) clock(p *process) int64 {
	if w.slept {
		return time.Now().UnixMilli()
	}
	return w.base.Load() + p.ahead.Load()
}

func (w *world) pass(d time.Duration) {
	if w.slept {
		w.rest(d)
		return
	}
	w.base.Add(d.Milliseconds())
	w.rest(time.Duration(w.IntN(3)) * time.Millisecond)
}

// begin has the first process, and the experiments.
func (w *world) begin() {
	w.base.Store(handBase)
	w.disk = newDisk()
	w.disk.mem = newMemory()
	w.disk.shared, w.disk.logs = w.shared, w.lies
	if w.disk.parted = w.parted; w.parted {
		w.office = newDisk()
		w.office.shared, w.office.parted, w.office.mem = true, true, newMemory()
	}
	w.disk.started = w.takenOver
	w.disk.watch = w.written
	if w.kind == "many" || w.kind == "capped" {
		w.disk.begun = func() { w.random.hold(true) }
	}
	w.p = w.start()
	if w.early {
		w.story("the clock of %s is two days ahead, until another process begins", w.p.name)
		w.p.ahead.Store(2 * 24 * time.Hour.Milliseconds())
		w.fail(w.p.e.Sync(w.t.Context()))
		w.bury(w.p, true)
		w.p, w.jumped = w.start(), true
	}
	for len(w.names) == 0 && w.kind == "capped" && w.broken == nil {
		w.another()
	}
	d := declarer{Rand: w.Rand, kind: w.kind, now: time.UnixMilli(w.clock(w.p)), since: true}
	for x, text := range d.several(false) {
		if w.kind == "capped" {
			break
		}
		w.names = append(w.names, x.Name)
		w.declared(x, text)
		w.fail(w.p.e.Create(w.t.Context(), *x))
		w.rest(0)
	}
	for _, name := range w.names {
		if w.byName[name].state == serve.Draft {
			w.fail(w.p.e.Start(w.t.Context(), name))
		}
		w.rest(0)
	}
	if w.wire {
		w.fail(w.dial())
	}
}

// declared notes what is declared.
func (w *world) declared(x *serve.Experiment, text string) *book {
	w.story("declares\n%s", text)
	b, err := newBook(x)
	w.fail(err)
	if w.byName[x.Name] = b; err == nil {
		for _, a := range x.Arms {
			w.arms[x.Name] = append(w.arms[x.Name], a.Name)
		}
	}
	return b
}

// start has a process begin.
func (w *world) start() *process {
	p := &process{name: fmt.Sprint("process ", len(w.peers)+1)}
	w.peers = append(w.peers, p)
	cfg := serve.Config{Store: w.disk.opener(p), Holder: p.name, VectorCurator: w.draws.vectors}
	if w.kind != "local" { // whose noise is the people's own
		cfg.Curator = w.draws.curator
	}
	if w.kind == "capped" && (len(w.names) == 0 || w.IntN(3) > 0) { // else it goes by the cap of the last start
		cfg.PersonCap = &aDay
	}
	if !w.slept {
		cfg.Clock = func() time.Time { return time.UnixMilli(w.base.Load() + p.ahead.Load()) }
	}
	if w.shared {
		cfg.Advertise = "http://" + fmt.Sprint(len(w.peers)) + ".test"
	}
	for {
		e, err := w.engine(p, cfg)
		if p.e = e; err == nil {
			p.up.Store(e)
			break
		}
		if !errors.Is(err, errDisk) {
			w.fail(broken(goesOn, "%s does not begin: %v", p.name, err))
			break
		}
		w.story("%s does not begin: %v", p.name, err)
	}
	w.rest(0)
	return p
}

// engine opens an engine, or the shares of which the second is it.
func (w *world) engine(p *process, cfg serve.Config) (*serve.Engine, error) {
	if !w.parted {
		return serve.Open(w.t.Context(), cfg)
	}
	all, err := serve.OpenShares(w.t.Context(), cfg, 2, func(i int) func(context.Context) (store.Store, error) {
		if i == 1 {
			return w.disk.opener(p)
		}
		return func(ctx context.Context) (store.Store, error) {
			s, err := w.office.opener(p)(ctx)
			if err != nil {
				return nil, err
			}
			return &office{s.(*sharing), w}, nil
		}
	})
	if p.all = all; err != nil {
		return nil, err
	}
	return all.Engines()[1], nil
}

// takenOver is told of who begins.
func (w *world) takenOver(p *process, o store.Opened) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Now()
	for _, r := range o.Experiments {
		if b := w.books[r.ID]; b != nil && b.x.Contextual != nil {
			b.next = b.issued[0]
		}
	}
}

// written is told of what is durable.
func (w *world) written(p *process, c store.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.commits++
	for _, r := range c.Writes {
		b := w.books[r.ID]
		if b == nil && r.Record != nil {
			b = w.byName[r.Record.Name]
			b.id, w.books[r.ID] = r.ID, b
		}
		if b == nil {
			continue
		}
		if taken(r) {
			w.count.releases++
		}
		if p != w.disk.latest.Load() {
			w.fail(broken(superseded, "%s writes", p.name))
		}
		w.fail(w.write(b, r, c.Now))
	}
}

// report is what somebody reports of a decision.
func (w *world) report(b *book, index, arm int32) (reward float64, metrics map[string]float64) {
	x := uint64(index)*0x9e3779b97f4a7c15 ^ w.seed*0xbf58476d1ce4e5b9
	x ^= x >> 29
	x *= 0x94d049bb133111eb
	x ^= x >> 32
	if w.others {
		x ^= 0x55
	}
	lo, hi := b.x.Range()
	if b.x.Risk > 0 && x&7 > 0 { // one arm is the best, and a rule finds it
		return map[bool]float64{true: hi, false: lo}[arm == 0], nil
	}
	reward = [...]float64{lo, hi, hi, lo, lo + (hi-lo)/2, lo + (hi-lo)/4, 2*hi + 1, math.NaN()}[x&7]
	if b.x.Aggregates() && math.IsNaN(reward) { // which is none there
		reward = lo
	}
	if len(b.x.Metrics) > 0 {
		metrics = map[string]float64{}
		for i, m := range b.x.Metrics {
			if y := x >> (8 + 4*i) & 7; y < 6 {
				metrics[m.Name] = [...]float64{0, 1, 0.5, 60, 250, -1}[y]
			}
		}
	}
	return reward, metrics
}

// ends brings the world to rest, and looks at all of it.
func (w *world) end() {
	w.Rand = rand.New(rand.NewPCG(w.seed, 33))
	if w.broken == nil && !w.lies && w.IntN(2) == 0 { // who reports after the end is told that it does not count
		for _, name := range w.names {
			b := w.byName[name]
			w.story("an operator stops %s: %v", name, w.stop(name))
			w.reports(b, 20)
		}
	}
	if w.broken == nil {
		w.calm()
		w.resting = true
		w.lookAll()
		for range 3 {
			w.pass(2 * time.Minute)
			w.sync()
		}
		w.served()
		w.lookAll()
		if w.lies && w.broken == nil {
			w.goBack()
		}
	}
	for _, p := range w.peers {
		p.cut.Store(false)
		w.bury(p, w.broken == nil && p == w.p)
	}
}

// calm ends all faults, and waits until somebody answers.
func (w *world) calm() {
	w.disk.disarm()
	w.disk.unread.Store(0)
	for _, p := range w.peers {
		p.cut.Store(false)
	}
	w.recover()
}

// served holds that the service goes on: every experiment that runs decides.
func (w *world) served() {
	for _, name := range w.names {
		b := w.byName[name]
		for n := 0; b.state == serve.Stopping && n < 500 && w.broken == nil; n++ { // a line at each tick
			w.pass(time.Second)
			w.sync()
		}
		if b.state == serve.Stopping && !w.jumped && !w.wentBack {
			w.fail(broken(goesOn, "%s is stopping, and all windows have passed", name))
		}
		if b.over || w.wentBack {
			continue
		}
		w.heir()
		if err := w.p.e.Sync(w.t.Context()); err != nil {
			w.fail(broken(goesOn, "nothing can be written: %v", err))
		}
		for _, arm := range b.joining {
			if b.state == serve.Running && !slices.Contains(w.arms[name], arm) {
				w.fail(broken(goesOn, "%s runs without %s, which was to be added", name, arm))
			}
		}
		if b.state == serve.Running && b.x.Contextual != nil && w.broken == nil {
			_, err := w.p.e.Rank(w.t.Context(), name, serve.RankAsk{Event: "the last",
				Context: map[string]any{"device": "phone"},
				Actions: []serve.Action{{ID: "a", Features: map[string]any{"topic": "war", "length": 1.0}}}})
			if err != nil {
				w.fail(broken(goesOn, "%s runs, and ranks nothing: %v", name, err))
			}
		}
		if b.state != serve.Running || b.x.Contextual != nil || !b.x.Start.IsZero() || w.broken != nil {
			continue
		}
		ask := serve.Ask{Unit: "the last", Person: "the last", Context: map[string]any{"country": "ch"}}
		d, err := w.p.e.DecideFor(w.t.Context(), name, ask)
		if err != nil || d.Reason == serve.Disabled {
			w.fail(broken(goesOn, "%s runs, and answers %s: %v", name, d.Reason, err))
		}
	}
}

// goBack has the disk lose what it had acknowledged. Nothing may go on from there: what was assigned and released
// since is not known.
func (w *world) goBack() {
	w.wentBack = true
	for _, p := range w.peers {
		if !p.dead.Load() {
			w.bury(p, false)
		}
	}
	ran := map[string]bool{}
	for _, name := range w.names {
		ran[name] = !w.byName[name].over
	}
	n := pick(w.Rand, 1+w.IntN(30), max(1, len(w.disk.log)-1-w.IntN(2*len(w.names)+2)))
	w.story("the disk loses the last %d commits", n)
	w.fail(w.disk.goBack(w.t.Context(), n))
	w.p = w.start()
	w.lead()
	w.sync()
	for _, name := range w.names {
		i, err := w.p.e.Get(w.t.Context(), name)
		switch {
		case errors.Is(err, serve.ErrNotFound):
		case err != nil:
			w.fail(err)
		case ran[name] && (i.State != serve.Failed || i.Reason == ""):
			w.fail(broken(announced, "%s is %s after its disk has lost acknowledged commits", name, i.State))
		}
	}
}

func (w *world) bury(p *process, well bool) {
	if p.e == nil {
		return
	}
	p.dead.Store(!well)
	w.disk.mu.Lock()
	if w.disk.writer == p {
		w.disk.writer = nil // whose connection has ended
	}
	w.disk.mu.Unlock()
	if w.parted {
		w.office.mu.Lock()
		if w.office.writer == p {
			w.office.writer = nil
		}
		w.office.mu.Unlock()
	}
	w.syncing = true // as the last thing it does
	if p.all != nil {
		_ = p.all.Close()
	} else {
		_ = p.e.Close()
	}
	w.syncing = false
	p.dead.Store(true)
	w.rest(0)
}

// recover goes on after a fault, on another process where this one has died.
func (w *world) recover() {
	w.disk.disarm()
	if w.p.dead.Load() {
		w.count.crashes++
		w.bury(w.p, false)
		i := slices.IndexFunc(w.peers, func(p *process) bool { return !p.dead.Load() })
		if i < 0 {
			w.p = w.start()
			w.story("%s begins", w.p.name)
		} else {
			w.p = w.peers[i]
		}
	}
	if w.broken != nil {
		return
	}
	w.rest(6 * time.Second)
	w.lead()
}

// lead finds the process that answers.
func (w *world) lead() {
	for range 40 {
		for _, p := range w.peers {
			if here, _, _ := w.where(p); here && p.e.Ready() == nil {
				w.p = p
				w.rest(0)
				return
			}
		}
		if !slices.ContainsFunc(w.peers, func(p *process) bool { return !p.dead.Load() }) {
			w.p = w.start()
		}
		w.rest(500 * time.Millisecond)
		if w.broken != nil {
			return
		}
		if !w.shared { // who was superseded does not come back
			if err := w.p.e.Ready(); err != nil && errors.Is(err, store.ErrFenced) {
				w.p.dead.Store(true)
				w.bury(w.p, false)
				w.p = w.start()
			}
		}
	}
	w.fail(broken(goesOn, "after 20 s without a fault nobody answers: %v", w.p.e.Ready()))
}

// heir goes on with whoever has been given the share meanwhile.
func (w *world) heir() {
	for _, p := range w.peers {
		if here, _, _ := w.where(p); w.parted && here && p.e.Ready() == nil {
			w.p = p
			return
		}
	}
}

func (w *world) where(p *process) (here bool, address string, until context.Context) {
	if p.dead.Load() || p.e == nil {
		return false, "", nil
	}
	return p.e.Where()
}

func (w *world) sync() {
	w.heir()
	w.syncing = true
	defer func() { w.syncing = false }()
	if err := w.p.e.Sync(w.t.Context()); err != nil {
		w.story("a sync: %v", err)
	}
	w.rest(0)
}

func (w *world) lookAll() {
	for _, name := range w.names {
		b := w.byName[name]
		w.fail(w.look(b))
		w.fail(w.rows(b))
	}
	w.rest(0)
}

func (w *world) tellInt(x uint64) { w.tell(binary.LittleEndian.AppendUint64(nil, x)) }
