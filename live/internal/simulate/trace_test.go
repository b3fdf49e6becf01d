package simulate

import (
	"bytes"
	"context"
	"crypto/ed25519"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/helper"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/transport"
)

// entropy is where all random bytes of a trace come from. While it is held each read is the same:
// experiments that are restored beside one another read in no order.
type entropy struct {
	mu   sync.Mutex
	seed [32]byte
	src  *rand.ChaCha8
	held bool
}

func (s *entropy) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		return rand.NewChaCha8(s.seed).Read(b)
	}
	return s.src.Read(b)
}

// hold begins, and ends, that each read is the same, but not as it was when it was held last.
func (s *entropy) hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held = on; on {
		_, _ = s.src.Read(s.seed[:])
	}
}

// An asset is what a trace got, and may come back with.
type asset struct {
	on      string // the experiment
	unit    string
	arm     int
	token   string
	event   string
	expires time.Time
	report  *serve.ReportTask
	body    []byte // that was sent before
}

// A trace is a service, or two, in a time of its own, and all that is asked of it. Out gets what it
// answers.
type trace struct {
	*rand.Rand
	t     *testing.T
	out   io.Writer
	kind  string
	slept bool         // the clock is the process's, and not set by hand
	at    atomic.Int64 // by hand, in milliseconds

	disk    *disk
	random  *entropy
	p       *process // who is asked
	other   *process // who shares the store, if anybody does
	cohorts *serve.Cohorts
	helper  *helper.Helper
	down    atomic.Bool // the helper is
	key     dap.Config

	names  []string
	arms   map[string][]string // by experiment
	seen   map[string]int      // lines of transcripts
	assets []*asset
	guests int
	crowds int
	erased int64 // how often the store had been taken over when somebody was erased first
}

var secret = bytes.Repeat([]byte("secret, "), dap.SecretSize/8)

// outside is all that is reached from here: the helper of a trace.
type outside struct{ to atomic.Pointer[trace] }

func (o *outside) RoundTrip(r *http.Request) (*http.Response, error) {
	g := o.to.Load()
	if g == nil || g.helper == nil || g.down.Load() {
		return nil, errors.New("it is down")
	}
	rec := httptest.NewRecorder()
	helper.Handler(g.helper, nil, nil).ServeHTTP(rec, r)
	return rec.Result(), nil
}

// nobody is a listener that nobody connects to.
type nobody struct {
	done chan struct{}
	once sync.Once
}

func (n *nobody) Accept() (net.Conn, error) { <-n.done; return nil, net.ErrClosed }
func (n *nobody) Close() error              { n.once.Do(func() { close(n.done) }); return nil }
func (n *nobody) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// playTrace plays the trace of a seed, and writes what is answered and stored.
func playTrace(t *testing.T, seed uint64, out io.Writer) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, seed)
	random := &entropy{src: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 7})}
	before := crand.Reader
	crand.Reader = random
	defer func() { crand.Reader = before }()
	world := &outside{}
	transportWas := http.DefaultTransport
	http.DefaultTransport = world
	defer func() { http.DefaultTransport = transportWas }()
	synctest.Test(t, func(t *testing.T) {
		g := &trace{t: t, Rand: rand.New(rand.NewPCG(seed, 30)), out: out, kind: kindOf(seed), random: random,
			arms: map[string][]string{}, seen: map[string]int{}, disk: newDisk()}
		world.to.Store(g)
		g.life()
	})
}

func kindOf(seed uint64) string { return kinds[seed%uint64(len(kinds))] }

func (g *trace) say(format string, args ...any) { fmt.Fprintf(g.out, format+"\n", args...) }

// rest lets everything come to rest, at a time at which nothing else happens.
func (g *trace) rest(d time.Duration) {
	time.Sleep(d + time.Duration(1+g.IntN(1_000_000)))
	synctest.Wait()
	g.random.hold(false) // what was restored is
}

func (g *trace) now() time.Time {
	if g.slept {
		return time.Now()
	}
	return time.UnixMilli(g.at.Load())
}

// pass has time go by.
func (g *trace) pass(d time.Duration) {
	if g.slept {
		g.rest(d)
		return
	}
	g.at.Add(d.Milliseconds())
	g.rest(0)
}

func (g *trace) open() *process {
	p := &process{}
	cfg := serve.Config{Store: g.disk.opener(p), Holder: "guard", Cohorts: g.cohorts,
		HelperSecret: func(string) []byte { return secret }}
	if !g.slept {
		cfg.Clock = func() time.Time { return time.UnixMilli(g.at.Load()) }
	}
	if g.disk.shared {
		cfg.Advertise = "http://guard.test"
	}
	e, err := serve.Open(g.t.Context(), cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	p.e = e
	g.rest(0)
	return p
}

// bury ends a process: one that is dead without a last word.
func (g *trace) bury(p *process) {
	if p == nil {
		return
	}
	if p.dead.Load() {
		g.disk.mu.Lock()
		if g.disk.writer == p {
			g.disk.writer = nil // whose connection has ended
		}
		g.disk.mu.Unlock()
	}
	err := p.e.Close()
	g.say("closed %v", err)
	p.dead.Store(true)
	g.disk.mu.Lock()
	if g.disk.writer == p {
		g.disk.writer = nil
	}
	g.disk.mu.Unlock()
	g.rest(0)
}

// lead waits until a process answers.
func (g *trace) lead() {
	if g.disk.shared {
		ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
		defer cancel()
		if err := g.p.e.Lead(ctx); err != nil {
			g.t.Fatal(err)
		}
		g.rest(0)
	}
}

// life is the whole of it.
func (g *trace) life() {
	g.slept = g.kind != "secagg" && g.IntN(4) == 0
	g.at.Store(1_000_000_000_000 + g.Int64N(1e9))
	g.disk.shared = g.IntN(6) == 0
	declared := g.declare()
	if len(declared) > 1 {
		g.disk.begun = func() { g.random.hold(true) }
	}
	switch g.kind {
	case "secagg":
		hub := transport.NewHub(&nobody{done: make(chan struct{})})
		defer func() { _ = hub.Close() }()
		g.cohorts = &serve.Cohorts{Hub: hub, Address: "guard.test:1", Round: time.Minute}
	case "two-server":
		defer func() { _ = g.helper.Close() }()
	}
	g.p = g.open()
	if g.disk.shared && g.IntN(2) == 0 {
		g.other = g.open()
	}
	for _, x := range declared {
		err := g.p.e.Create(g.t.Context(), *x)
		g.say("create %s %v", x.Name, err)
		g.rest(0)
		if g.IntN(10) > 0 {
			g.say("start %v", g.p.e.Start(g.t.Context(), x.Name))
			g.rest(0)
		}
	}
	steps := 60 + g.IntN(100)
	for i := range steps {
		g.step()
		g.rest(time.Duration(g.IntN(3)) * time.Millisecond)
		if g.disk.hasFired() {
			g.recover()
		}
		if i%25 == 24 {
			g.look()
		}
	}
	g.disk.disarm()
	g.recover()
	g.look()
	g.bury(g.p)
	g.bury(g.other)
	g.rows()
}

// hasFired says that the fault that was armed has come.
func (d *disk) hasFired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fired
}

func (d *disk) disarm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.fired = 0, false
}

// recover goes on after a fault of the disk, on another process where this one has died.
func (g *trace) recover() {
	g.disk.disarm()
	if g.p.dead.Load() {
		g.bury(g.p)
		if g.p = g.other; g.p == nil || g.p.dead.Load() {
			g.p = g.open()
		}
		g.other = nil
	}
	g.rest(3 * time.Second)
	g.lead()
}

// declare draws the experiments.
func (g *trace) declare() (out []*serve.Experiment) {
	d := declarer{Rand: g.Rand, kind: g.kind, now: g.now()}
	if g.kind == "two-server" {
		disk := newDisk()
		h, err := helper.Open(g.t.Context(), helper.Config{Store: disk.mem.Open})
		if err != nil {
			g.t.Fatal(err)
		}
		d.helper = h.Key().String()
		g.key = h.Key()
		_ = h.Close()
		x, text := d.declare("shop", 1, "")
		g.say("%s", text)
		if g.helper, err = helper.Open(g.t.Context(), helper.Config{Store: disk.mem.Open,
			Tasks: []helper.Task{{Declared: x, Secret: secret}}}); err != nil {
			g.t.Fatal(err)
		}
		return g.named(out, x)
	}
	for x, text := range d.several(true) {
		g.say("%s", text)
		out = g.named(out, x)
	}
	return out
}

func (g *trace) named(out []*serve.Experiment, x *serve.Experiment) []*serve.Experiment {
	g.names = append(g.names, x.Name)
	for _, a := range x.Arms {
		g.arms[x.Name] = append(g.arms[x.Name], a.Name)
	}
	return append(out, x)
}

// step is one thing that somebody does.
func (g *trace) step() {
	name := pick(g.Rand, g.names...)
	if i, err := g.p.e.Get(g.t.Context(), name); err == nil && g.IntN(4) == 0 { // what stands, stands for long
		switch i.State {
		case serve.Draft:
			g.say("start %v", g.p.e.Start(g.t.Context(), name))
			return
		case serve.Paused:
			g.say("resume %v", g.p.e.Resume(g.t.Context(), name))
			return
		}
	}
	switch g.IntN(44) {
	default:
		for range 1 + g.IntN(8) {
			g.decide(name)
			g.rest(0)
		}
	case 0, 1, 2, 3, 4, 5, 6, 7, 8:
		for range 1 + g.IntN(6) {
			g.report()
			g.rest(0)
		}
	case 9, 10, 11, 12, 13:
		g.pass(time.Duration(1+g.IntN(1+pick(g.Rand, 100, 1000, 5000, 20_000, 70_000))) * time.Millisecond)
		g.sync()
	case 14, 15, 16:
		for range 1 + g.IntN(8) {
			g.pass(pick(g.Rand, 100*time.Millisecond, 625*time.Millisecond, 1500*time.Millisecond, 4*time.Second))
			g.sync()
		}
	case 17, 18:
		g.atDeadline()
	case 19:
		g.sync()
		g.rest(130 * time.Millisecond)
	case 20, 21, 26, 27:
		g.operate(name)
	case 22, 23:
		g.crash()
	case 24:
		g.hour(name)
	case 25:
		g.rest(130 * time.Millisecond)
	case 28:
		g.crowd(name)
	}
}

// hour has a long time pass, as sessions of clients need it and a retention ends.
func (g *trace) hour(name string) {
	if g.kind != "secagg" && g.IntN(3) > 0 || g.slept {
		g.say("state %v", g.info(name))
		return
	}
	g.pass(pick(g.Rand, 10*time.Minute, 15*time.Minute, time.Hour))
	g.sync()
	g.rest(300 * time.Millisecond)
	g.pass(10 * time.Minute)
	g.rest(300 * time.Millisecond)
	g.sync()
}

func (g *trace) sync() {
	if err := g.p.e.Sync(g.t.Context()); err != nil {
		g.say("sync %v", err)
	}
	g.rest(0)
}

func (g *trace) context() map[string]any {
	return pick(g.Rand, nil, map[string]any{"country": "ch"}, map[string]any{"country": "fr"})
}

// decide has somebody ask, who is new as a rule.
func (g *trace) decide(name string) {
	ctx := g.t.Context()
	unit := fmt.Sprint("unit ", g.guests)
	if g.guests++; g.IntN(5) == 0 {
		unit = fmt.Sprint("unit ", g.IntN(g.guests))
	}
	if len(g.arms[name]) == 0 || g.IntN(12) == 0 {
		g.rank(name, unit)
		return
	}
	ask := serve.Ask{Unit: unit, Context: g.context()}
	if g.IntN(25) == 0 {
		ask.Unit = ""
	}
	if g.IntN(30) == 0 {
		ask.Force = pick(g.Rand, append([]string{"nothing"}, g.arms[name]...)...)
	}
	d, err := g.p.e.DecideFor(ctx, name, ask)
	g.say("decide %s %q %v %q: %s %d %s %s %v %d %d %s %v", name, ask.Unit, ask.Context, ask.Force, d.Token, d.Arm,
		d.Name, d.Value, d.Propensity, milli(d.Expires), milli(d.ActivateBy), d.Reason, err)
	if r := d.Report; r != nil {
		g.say("report by %s %x %v %d %v %v %v %+v %x %d %s", r.Trust, r.Ticket, r.After, r.Time, r.Lo, r.Hi,
			r.Default, r.Noise, r.Task, r.Grid, r.Helper)
		if c := r.Cohort; c != nil {
			g.say("in %+v %x %v %v", c.Terms, c.Server, c.Next, c.Round)
		}
	}
	if d.Token != "" {
		a := &asset{on: name, unit: unit, arm: d.Arm, token: d.Token, expires: d.Expires, report: d.Report}
		g.assets = append(g.assets, a)
		g.meet(a)
	}
}

// crowd has many come, and report one by one, so that what has come of a segment is put together anew; most of
// whom are given the first arm do not like it. A rule that looks for the best one needs many of them.
func (g *trace) crowd(name string) {
	if most := map[bool]int{true: 4, false: 1}[g.kind == "identify"]; g.crowds == most || g.cohorts != nil ||
		len(g.arms[name]) == 0 || g.kind == "two-server" {
		return
	}
	g.crowds++
	n := len(g.assets)
	for range 220 {
		g.decide(name)
		g.rest(0)
	}
	for _, a := range g.assets[n:] {
		if a.token == "" || a.report != nil {
			continue
		}
		like := 0.0
		if a.arm > 0 && g.IntN(10) > 0 {
			like = 1
		}
		s, err := g.p.e.Reward(g.t.Context(), a.on, serve.Report{Token: a.token, Reward: like})
		g.say("one of many %q %v", s, err)
		g.rest(0)
		if err != nil {
			return
		}
	}
	g.pass(time.Minute)
	g.sync()
}

// meet has a decision be met at once, and most often rewarded, where little comes of it otherwise.
func (g *trace) meet(a *asset) {
	if g.kind != "offers" && g.kind != "drop" || g.IntN(4) == 0 {
		return
	}
	g.rest(0)
	if g.kind == "offers" {
		s, err := g.p.e.Activate(g.t.Context(), a.on, a.token, true)
		g.say("meets %q %v", s, err)
		g.rest(0)
	}
	if g.IntN(4) > 0 {
		s, err := g.p.e.Reward(g.t.Context(), a.on, serve.Report{Token: a.token, Reward: g.reward()})
		g.say("and reports %q %v", s, err)
	}
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// rank has an event decided.
func (g *trace) rank(name, unit string) {
	ask := serve.RankAsk{Event: unit, Deferred: g.IntN(6) == 0}
	if g.IntN(25) == 0 {
		ask.Event = ""
	}
	if arms := g.arms[name]; len(arms) > 0 {
		for _, a := range arms[:len(arms)-g.IntN(2)*g.IntN(2)] {
			ask.Actions = append(ask.Actions, serve.Action{ID: a})
		}
	} else {
		strange := "watch"[:4+g.IntN(2)]
		ask.Context = map[string]any{"device": pick(g.Rand, "phone", "phone", "desktop", "desktop", strange)}
		if g.IntN(4) > 0 {
			ask.Context["device"] = pick(g.Rand, "phone", "desktop")
		}
		for a := range 2 + g.IntN(4) {
			ask.Actions = append(ask.Actions, serve.Action{ID: fmt.Sprint("a", a), Features: map[string]any{
				"topic": pick(g.Rand, "war", "sport"), "length": float64(g.IntN(9))}})
		}
		if g.IntN(5) == 0 {
			ask.Excluded = []string{"a0", "nothing"}
		}
	}
	r, err := g.p.e.Rank(g.t.Context(), name, ask)
	g.say("rank %s %q %v %v: %q %q %v %v %d %d %s %v", name, ask.Event, ask.Deferred, ask.Excluded, r.Event, r.Action,
		r.Ranked, r.Propensity, milli(r.Expires), milli(r.ActivateBy), r.Reason, err)
	if err == nil {
		g.assets = append(g.assets, &asset{on: name, unit: unit, event: r.Event, expires: r.Expires})
	}
}

// one is something that was given before, most often lately.
func (g *trace) one() *asset {
	n := len(g.assets)
	if n == 0 {
		return &asset{on: g.names[0], token: "nothing", event: "nothing"}
	}
	if g.IntN(3) > 0 {
		return g.assets[n-1-g.IntN(min(n, 12))]
	}
	return g.assets[g.IntN(n)]
}

func (g *trace) reward() float64 {
	return pick(g.Rand, 0, 1, 1, 0.5, 0.25, g.Float64(), g.Float64(), 2, -1, math.NaN(), math.Inf(1))
}

// report has somebody come back.
func (g *trace) report() { g.reportOn(g.one()) }

func (g *trace) reportOn(a *asset) {
	ctx, e := g.t.Context(), g.p.e
	var s serve.Status
	var err error
	switch on := g.IntN(12); {
	case a.report != nil && on > 0:
		g.message(a)
		return
	case a.event != "" && on < 3:
		s, err = e.ActivateEvent(ctx, a.on, a.event)
	case a.event != "":
		s, err = e.RewardEvent(ctx, a.on, a.event, g.reward())
	case on < 4:
		s, err = e.Activate(ctx, a.on, a.token, g.kind != "retract" && g.IntN(4) > 0)
	case on < 5:
		all, er := e.Rewards(ctx, a.on, []serve.Report{{Token: a.token, Reward: g.reward()}, {Token: "x" + a.token},
			{Token: g.one().token, Reward: g.reward()}})
		g.say("rewards %v %v", all, er)
		return
	case on < 8:
		o := serve.Outcome{Report: serve.Report{Token: a.token, Reward: g.reward()},
			Metrics: map[string]float64{"basket": 250 * g.Float64()}}
		if g.IntN(3) == 0 {
			o.Metrics["clicks"] = g.reward()
		}
		all, er := e.Outcomes(ctx, a.on, []serve.Outcome{o})
		g.say("outcome %v %v", all, er)
		return
	case on < 9: // shown, and then rewarded
		s, err = e.Activate(ctx, a.on, a.token, true)
		g.say("shows %q %v", s, err)
		g.rest(0)
		fallthrough
	default:
		s, err = e.Reward(ctx, a.on, serve.Report{Token: a.token, Reward: g.reward()})
	}
	g.say("reports %s %q %v", a.event, s, err)
}

// message is a report whose reward is hidden.
func (g *trace) message(a *asset) {
	m := serve.Message{Ticket: a.report.Ticket, Body: a.body}
	if a.body == nil || g.IntN(6) == 0 {
		switch g.kind {
		case "local":
			m.Body = fmt.Append(nil, g.Int64N(1<<22)-1<<21)
		case "secagg":
			seed := fmt.Appendf(make([]byte, 24), "%08d", g.IntN(1e8))
			m.Body = ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		case "two-server":
			leader, err := g.p.e.ReportConfig()
			if err != nil {
				g.say("no leader: %v", err)
				return
			}
			ticket, err := dap.ParseTicket(a.report.Ticket)
			if err != nil {
				g.t.Fatal(err)
			}
			task := dap.Task{ID: a.report.Task, Grid: uint64(a.report.Grid)}
			r, err := dap.NewReport(task, leader, g.key, a.report.Time, ticket, uint64(g.IntN(17)), g.random)
			if err != nil {
				g.t.Fatal(err)
			}
			m.Body = r.Marshal()
		}
		if g.IntN(20) == 0 {
			m.Body = m.Body[1:]
		}
		a.body = m.Body
	}
	all, err := g.p.e.Reports(g.t.Context(), a.on, []serve.Message{m})
	g.say("message %v %v", all, err)
	if g.kind == "secagg" && g.IntN(3) == 0 {
		g.rest(0)
		s, err := g.p.e.Cohort(g.t.Context(), a.on, a.report.Ticket)
		g.say("cohort %s %v %s %d %d %d %d %v", s.Status, s.After, s.Address, s.Arm, s.Start, s.End, len(s.Keys), err)
	}
}

// atDeadline has somebody report in the last millisecond of a window, or in the first after it.
func (g *trace) atDeadline() {
	a := g.one()
	if d := a.expires.Sub(g.now()); !a.expires.IsZero() && d > 2*time.Millisecond && d < 10*time.Minute {
		if g.slept { // rest goes a little further
			d -= time.Millisecond
		}
		g.pass(d + time.Duration(g.IntN(3)-1)*time.Millisecond)
	}
	g.reportOn(a)
	g.rest(0)
	g.sync()
	g.reportOn(g.one())
}

// operate is what an operator does.
func (g *trace) operate(name string) {
	ctx, e := g.t.Context(), g.p.e
	arm := pick(g.Rand, append([]string{"nothing"}, g.arms[name]...)...)
	var err error
	what := g.IntN(24)
	switch what {
	case 0, 1, 2:
		err = e.Pause(ctx, name)
	case 3, 4, 5, 6, 7:
		err = e.Resume(ctx, name)
	case 8, 9, 10:
		err = e.TakeOff(ctx, name, arm)
	case 11, 12, 13:
		w := pick(g.Rand, 800*time.Millisecond, 3*time.Second, 8*time.Second, 40*time.Second)
		err = e.Change(ctx, name, serve.Change{Window: &w})
	case 14, 15:
		f := pick(g.Rand, 0, 0.1, 0.6, 2)
		err = e.Change(ctx, name, serve.Change{Floor: &f})
	case 16:
		end := g.now().Add(time.Duration(g.IntN(400)-20) * time.Second)
		err = e.Change(ctx, name, serve.Change{End: &end, Off: []string{arm}})
	case 17, 18:
		// What is left of who is erased has the epoch of the unit that is stored first, and who was erased
		// before has put them in no order.
		if n := g.disk.begins.Load(); g.erased == 0 || g.erased == n {
			g.erased = n
			err = e.Erase(ctx, name, g.one().unit)
		}
	case 19:
		g.down.Store(!g.down.Load())
	case 20:
		if g.IntN(4) == 0 {
			err = e.Stop(ctx, name, pick(g.Rand, "", arm))
		}
	case 21:
		err = e.Archive(ctx, name)
	case 22:
		err = e.Start(ctx, name)
	case 23:
		_, cookie, er := e.NewCookie()
		unit, ok := e.CookieUnit(cookie)
		g.say("cookie %s %q %v %v", cookie, unit, ok, er)
	}
	g.say("operate %d %s %s: %v", what, name, arm, err)
}

// crash ends a process in one of many ways, or has its disk fail it.
func (g *trace) crash() {
	how := g.IntN(9)
	g.say("crash %d", how)
	arm := func(how string) {
		g.disk.mu.Lock()
		g.disk.left, g.disk.how = 1+g.IntN(4), how
		g.disk.mu.Unlock()
	}
	switch how {
	case 0, 1: // between two requests, at any moment
		g.p.dead.Store(true)
		g.recover()
	case 2:
		arm("lost")
	case 3:
		arm("written")
	case 4:
		arm("refused")
	case 5:
		arm("unsure")
	case 6: // without a fault
		g.bury(g.p)
		g.recover()
	default: // another takes the store over, or shares it
		if g.disk.shared {
			if g.other == nil {
				g.other = g.open()
			}
			g.decide(g.names[0])
			return
		}
		old := g.p
		g.p = g.open()
		d, err := old.e.Decide(g.t.Context(), g.names[0], "somebody")
		g.say("the old one decides %d %s %s %v", d.Arm, d.Token, d.Reason, err)
		g.rest(0)
		s, err := old.e.Reward(g.t.Context(), g.names[0], serve.Report{Token: g.one().token, Reward: 1})
		g.say("and is told %q %v", s, err)
		synctest.Wait() // a disk that failed is opened again meanwhile, and written to
		old.dead.Store(true)
		g.rest(0)
		err = old.e.Close()
		g.say("closed %v", err)
		g.rest(0)
	}
}

func (g *trace) info(name string) string {
	i, err := g.p.e.Get(g.t.Context(), name)
	changes, _ := json.Marshal(i.Changes)
	out := fmt.Sprintf("%s %s %d %d %q %q %s %d %v %v %d %d %s %v %s %v %v %v %v", i.State, i.Wait, milli(i.Until),
		milli(i.Since), i.Trouble, i.Reason, i.Why, i.Keep, ofArms(i.Arms), i.Metrics, i.Batches, i.Lines, i.Tip, i.Tick, changes,
		i.Spent, i.Cap, i.Budget, err)
	if i.Contextual != nil {
		out += fmt.Sprintf(" %+v", *i.Contextual)
	}
	return out
}

// look writes all that is shown, and all that is stored.
func (g *trace) look() {
	ctx, e := g.t.Context(), g.p.e
	for _, name := range g.names {
		g.say("info %s: %s", name, g.info(name))
		text, err := e.Transcript(ctx, name)
		g.lines(name, text, err)
		ledger, err := e.Ledger(ctx, name)
		g.say("ledger %s %v", ledger, err)
		hours, err := e.Hours(ctx, name)
		g.say("hours %v %v", hours, err)
		batches, err := e.Batches(ctx, name, 0)
		g.say("batches %v", err)
		if err == nil {
			for b, err := range batches {
				change, _ := json.Marshal(b.Change)
				g.say("batch %d %d %d %v %v %d %s %v %v", b.Number, milli(b.Opened), milli(b.Closed), b.Plays, b.Released,
					b.Off, change, b.Cohort, err)
			}
		}
		_, course, err := e.Course(ctx, name)
		g.say("course %v", err)
		if err == nil {
			for p, err := range course {
				g.say("point %d %d %v %v", milli(p.At), p.Arm, p.Sums, err)
			}
		}
		g.rest(0)
	}
	for _, i := range e.List(ctx) {
		g.say("list %s %s", i.Experiment.Name, i.State)
	}
	g.rows()
}

// lines says those that are new, and whether all of them can be replayed.
func (g *trace) lines(name string, text iter.Seq2[[]byte, error], err error) {
	if err != nil {
		g.say("transcript %v", err)
		return
	}
	var all []string
	for line, err := range text {
		if err != nil {
			g.say("transcript %v", err)
			return
		}
		all = append(all, strings.TrimSuffix(string(line), "\n")+"\n")
	}
	for _, line := range all[min(g.seen[name], len(all)):] {
		g.say("line %s", strings.TrimSuffix(line, "\n"))
	}
	g.seen[name] = len(all)
	if len(all) > 0 && !strings.Contains(all[0], `"program":"(devel)"`) {
		g.t.Fatalf("the line that names the program is %s", all[0])
	}
	if g.IntN(3) > 0 || len(all) == 0 {
		return
	}
	r, err := serve.Replay(strings.NewReader(strings.Join(slices.Clip(all), "")), catalogOf())
	if err != nil {
		g.say("replayed %v", err)
		return
	}
	g.say("replayed %s %d %d %d %s %v %v", r.End, r.Keep, r.Batches, r.Lines, r.Tip, ofArms(r.Arms), r.Spent)
}

func (g *trace) rows() {
	if err := g.disk.dump(g.t.Context(), g.out); err != nil {
		g.t.Fatal(err)
	}
}

// ofArms are arms as they were written before one could join an A/B test, which none of a trace does.
func ofArms(arms []serve.ArmInfo) string {
	return strings.ReplaceAll(fmt.Sprint(arms), "e <nil>}", "e}")
}
