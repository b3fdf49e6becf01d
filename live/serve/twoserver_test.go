package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

var shared = bytes.Repeat([]byte("secret"), 6)

// A party is a helper in memory: what live/serve/helper does, and faults of one. Its noise is known.
type party struct {
	t      testing.TB
	key    dap.Key
	config dap.Config // the public half
	server *httptest.Server
	noise  func() int64
	arms   string // of the shop; empty: red and blue

	mu    sync.Mutex
	task  dap.Task
	fault string
	asked map[string][]byte // by path, the question
	said  map[string][]byte // and the answer
	sums  map[dap.Batch]dap.Aggregate
	draws map[dap.Batch]int64
	drawn map[dap.Batch]int // how often
	calls int
}

func newParty(t testing.TB, noise func() int64) *party {
	t.Helper()
	p := &party{t: t, noise: noise, asked: map[string][]byte{}, said: map[string][]byte{},
		sums: map[dap.Batch]dap.Aggregate{}, draws: map[dap.Batch]int64{}, drawn: map[dap.Batch]int{}}
	var err error
	if p.key, err = dap.DeriveKey(bytes.Repeat([]byte("h"), 32), 7); err != nil {
		t.Fatal(err)
	}
	p.config = p.key.Config()
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

// be has the party be wrong from now on, in a way; right if it is empty.
func (p *party) be(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

func (p *party) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil { // a leader that was killed, or gave up, has sent a part of it
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.fault == "down" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if want, _ := dap.DeriveBearer(shared, p.task.ID); r.Header.Get("Authorization") != "Bearer "+want {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if before, was := p.asked[r.URL.Path]; was && p.fault != "fresh noise" {
		if !bytes.Equal(before, body) {
			p.t.Errorf("another question at %s", r.URL.Path)
		}
		_, _ = w.Write(p.said[r.URL.Path])
		return
	}
	answer, err := p.answer(r.URL.Path, body)
	if of := dap.Problem(""); errors.As(err, &of) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"type": of.Type(), "detail": err.Error()})
		return
	} else if err != nil {
		p.t.Error(err)
	}
	p.asked[r.URL.Path], p.said[r.URL.Path] = body, answer
	_, _ = w.Write(answer)
}

func (p *party) answer(path string, body []byte) ([]byte, error) {
	if strings.Contains(path, "/aggregation_jobs/") {
		job, err := dap.ParseJob(p.task, body)
		if err != nil {
			return nil, err
		}
		verify, err := dap.DeriveVerify(shared, p.task.ID)
		if err != nil {
			return nil, err
		}
		p.apart(job.Batch)
		answer, sum, err := job.Help(p.key, verify, func(dap.Metadata) error { return nil })
		if _, was := p.asked[path]; err == nil && !was {
			p.sums[job.Batch] = p.sums[job.Batch].Add(sum)
		}
		return answer, err
	}
	q, err := dap.ParseShareRequest(body)
	if err != nil {
		return nil, err
	}
	switch p.fault {
	case "overlap":
		return nil, fmt.Errorf("ticket 17 came twice: %w", dap.BatchOverlap)
	case "mute":
		return nil, dap.UnrecognizedTask
	}
	p.apart(q.Batch)
	if err := q.Check(p.task, p.sums[q.Batch]); err != nil {
		return nil, err
	}
	p.draws[q.Batch] = p.noise()
	p.drawn[q.Batch]++
	share, err := p.sums[q.Batch].Share(p.task, p.draws[q.Batch])
	return share, err
}

// apart says whether a batch has decisions of another one.
func (p *party) apart(b dap.Batch) {
	for o := range p.sums {
		if o != b && o.Arm == b.Arm && o.Start < b.End && b.Start < o.End {
			p.t.Errorf("%+v overlaps %+v", b, o)
		}
	}
	p.sums[b] = p.sums[b].Add(dap.Aggregate{})
}

// shop is an experiment with this helper.
func (p *party) shop() string {
	return strings.NewReplacer("trust: local\n", p.terms(), "[red, blue]", cmp.Or(p.arms, "[red, blue]")).
		Replace(localShop)
}

// terms are those of an experiment with this helper.
func (p *party) terms() string {
	return fmt.Sprintf("trust: two-server\ngrid: 1024\nhelper: {url: %q, key: %s}\n", p.server.URL, p.config)
}

// open is a leader with this helper.
func (p *party) open(t testing.TB, cfg Config) *Engine {
	t.Helper()
	x := parse(t, p.shop())
	task, err := x.Task()
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.task = task
	p.mu.Unlock()
	cfg.HelperSecret = func(string) []byte { return shared }
	cfg.gatherPause = time.Millisecond
	return open(t, cfg)
}

// report is that of a decision, of a value from 0 to 1024.
func (p *party) report(t testing.TB, e *Engine, d Decision, value uint64) Message {
	t.Helper()
	leader, err := e.ReportConfig()
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := dap.ParseTicket(d.Report.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	r, err := dap.NewReport(dap.Task{ID: d.Report.Task, Grid: uint64(d.Report.Grid)}, leader, p.config,
		d.Report.Time, ticket, value, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Message{Ticket: d.Report.Ticket, Body: r.Marshal()}
}

// noisySums is a curator whose own noise is known, in steps, and which takes sums that were gathered.
type noisySums struct {
	*known
	noise func() int64
}

func (c noisySums) Release(arms []int) (privacy.Released, error) {
	for _, a := range arms {
		c.steps[a] += c.noise()
	}
	return c.known.Release(arms)
}

func withNoise(draw func() int64) func(release.Config) (release.Curator, error) {
	return func(cfg release.Config) (release.Curator, error) {
		c, err := knownNoise(func() int { return 0 })(cfg)
		if err != nil {
			return nil, err
		}
		return noisySums{c.(*known), draw}, nil
	}
}

// drawn are numbers from a seed, as noise.
func drawn(seed uint64) func() int64 {
	s := mathrand.New(mathrand.NewPCG(seed, 1))
	return func() int64 { return s.Int64N(1<<24) - 1<<23 }
}

// rewardOf is the reward of the k-th decision of a test, in 1024ths.
func rewardOf(arm, k int) uint64 { return uint64((k*37 + arm*500) % 1025) }

// course plays so many rounds of 60 decisions, a third of whose clients do not report, and says what was
// decided and released.
func course(t testing.TB, e *Engine, c *clock.Manual, rounds int, say func(d Decision, value uint64)) string {
	t.Helper()
	var out strings.Builder
	k := 0
	for range rounds {
		for range 60 {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil || d.Token == "" {
				t.Fatal(d, err)
			}
			fmt.Fprint(&out, d.Arm)
			if k++; k%3 > 0 {
				say(d, rewardOf(d.Arm, k))
			}
		}
		c.Add(2 * time.Minute)
		info := until(t, e, c, func(i Info) bool { return i.State == Running }) // and waits for nothing
		fmt.Fprintf(&out, " %v %v %d\n", info.Arms[0].Sum, info.Arms[1].Sum, info.Batches)
	}
	return out.String()
}

// nothingAhead has an experiment that has just begun release nothing ahead, as one between two servers.
func nothingAhead(t *testing.T, e *Engine) {
	t.Helper()
	x := mustFind(t, e, "shop")
	x.mu.Lock()
	defer x.mu.Unlock()
	epoch, err := e.newEpoch()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := x.config(e, epoch)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Gathering.Trust = privacy.TrustTwoServer
	p, err := play.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x.run(p, epoch)
}

// An experiment with two servers decides and releases what a central one does whose curator adds the
// noise of both, and which releases nothing ahead; twins whose leader adds none, or whose helper does not, differ.
func TestTwoServerIsCentral(t *testing.T) {
	c := newClock()
	own, helpers := drawn(1), drawn(2)
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now,
		Curator: withNoise(func() int64 { return own() + helpers() })})
	begin(t, e, strings.Replace(localShop, "trust: local\nreport_after: 20s", "", 1))
	nothingAhead(t, e)
	want := course(t, e, c, 6, func(d Decision, value uint64) {
		if s, err := e.Reward(t.Context(), "shop", Report{d.Token, float64(value) / 1024}); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
	})
	none := func() int64 { return 0 }
	for _, twin := range []struct {
		name         string
		own, helpers func() int64
	}{{"", drawn(1), drawn(2)}, {"no noise of the leader", none, drawn(2)}, {"no noise of the helper", drawn(1), none}} {
		c, p := newClock(), newParty(t, twin.helpers)
		e := p.open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, Curator: withNoise(twin.own)})
		begin(t, e, p.shop())
		got := course(t, e, c, 6, func(d Decision, value uint64) {
			if s := reportOne(t, e, p.report(t, e, d, value)); s != Accepted {
				t.Fatal(s)
			}
		})
		if (got == want) != (twin.name == "") {
			t.Errorf("%s: decided and released\n%s, central\n%s", twin.name, got, want)
		}
		info, err := e.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if n := kept(t, e); n > 360-info.Arms[0].Released-info.Arms[1].Released {
			t.Errorf("%d reports are kept after %+v", n, info.Arms)
		}
	}
}

// With the real curator the ledger is charged for two-server, and the transcript is replayed. More reports
// than one job has are one sum, and a batch without any has noise.
func TestTwoServer(t *testing.T) {
	c, p := newClock(), newParty(t, func() int64 { return 0 })
	e := p.open(t, Config{Store: store.SQLite(t.TempDir()), Clock: c.Now})
	begin(t, e, strings.Replace(p.shop(), "first: 20", "first: 300", 1))
	all := decided(t, e, 600)
	messages := make([]Message, 0, len(all))
	for _, d := range all {
		messages = append(messages, p.report(t, e, d, 512))
	}
	for _, again := range []bool{false, true} { // and what comes again changes nothing
		out, err := e.Reports(t.Context(), "shop", messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out {
			if r.Status != Accepted || r.Err != nil {
				t.Fatal(again, r)
			}
		}
	}
	c.Add(time.Minute)
	info := until(t, e, c, released(600))
	law, err := mustFind(t, e, "shop").decl.Noise()
	if err != nil {
		t.Fatal(err)
	}
	reach := float64(law.Reach()) * release.ExactStep
	for _, a := range info.Arms {
		if a.Sum < 150-reach || a.Sum > 150+reach || a.Sum == 150 {
			t.Errorf("the sum is %v, must be 150 with noise", a.Sum)
		}
		if m, ok := a.Noise.(privacy.Aggregated); !ok || m.Trust != privacy.TrustTwoServer {
			t.Errorf("the noise is %v", a.Noise)
		}
	}
	if len(p.draws) != 2 || p.calls != 2*(2+1) {
		t.Errorf("the helper has given %d shares, and was asked %d times", len(p.draws), p.calls)
	}
	for before := info.Batches; info.Batches == before; { // nobody reports
		decided(t, e, 200)
		settle(t, e, c, time.Minute, 1)
		info = until(t, e, c, func(i Info) bool { return i.State == Running })
	}
	if len(p.draws) < 3 {
		t.Errorf("the helper has given %d shares", len(p.draws))
	}
	if r := replayed(t, e); r.Arms[0].Sum != info.Arms[0].Sum || r.Arms[1].Released != info.Arms[1].Released {
		t.Errorf("replayed to %+v, was %+v", r.Arms[0], info.Arms[0])
	}
}

// Who has the wrong keys, lies about the range, or reports for another counts as one who did not
// report: as the default, and is answered as all are.
func TestRefusedReports(t *testing.T) {
	c, p := newClock(), newParty(t, func() int64 { return 0 })
	e := p.open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, Curator: withNoise(func() int64 { return 0 })})
	begin(t, e, p.shop())
	leader, err := e.ReportConfig()
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := dap.DeriveKey(bytes.Repeat([]byte("w"), 32), 7)
	if err != nil {
		t.Fatal(err)
	}
	var twin dap.ReportID
	var want [2]int64
	for i, d := range decided(t, e, 40) {
		k, _ := dap.ParseTicket(d.Report.Ticket)
		task := dap.Task{ID: d.Report.Task, Grid: 1024}
		l, h, value, counts := leader, p.key.Config(), uint64(1024), false
		switch i % 8 {
		case 0:
			l = wrong.Config()
		case 1:
			h = wrong.Config()
		case 2:
			task.Grid = 1 // another proof
			value = 1
		case 3:
			task.ID[0]++
		case 4:
			k.Token = bytes.Clone(k.Token)
			k.Token[3]++ // sealed for another ticket
		default:
			counts = true
		}
		r, err := dap.NewReport(task, l, h, d.Report.Time, k, value, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		r.Ticket, _ = dap.ParseTicket(d.Report.Ticket)
		switch i % 8 {
		case 5:
			r.Helper.Payload[9] ^= 1
			counts = false
		case 6:
			if i < 8 {
				twin = r.ID
			} else {
				r.ID, counts = twin, false // another's, under which nothing opens
			}
		}
		if s := reportOne(t, e, Message{Ticket: d.Report.Ticket, Body: r.Marshal()}); s != Accepted {
			t.Fatal(s)
		}
		if want[d.Arm] += 1 << 18; counts {
			want[d.Arm] += 3 << 18
		}
	}
	info := until(t, e, c, released(40))
	for a, got := range info.Arms {
		if got.Sum != float64(want[a])*release.ExactStep {
			t.Errorf("arm %d: the sum is %v, must be %v", a, got.Sum, float64(want[a])*release.ExactStep)
		}
	}
	text, _ := json.Marshal(info)
	if strings.Contains(strings.ToLower(string(text)), "refused") {
		t.Errorf("%s says what was refused", text)
	}
}

// While the helper is down for an hour decisions go on, and everybody sees that a batch waits; then it
// closes, and nothing is lost.
func TestHelperIsDown(t *testing.T) {
	c, p := newClock(), newParty(t, func() int64 { return 0 })
	e := p.open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, Curator: withNoise(func() int64 { return 0 })})
	begin(t, e, p.shop())
	p.be("down")
	say := func(all []Decision) {
		for _, d := range all {
			if s := reportOne(t, e, p.report(t, e, d, 1024)); s != Accepted {
				t.Fatal(s)
			}
		}
	}
	first := decided(t, e, 40)
	say(first[:39])
	c.Add(time.Minute)
	info := until(t, e, c, func(i Info) bool { return i.Trouble != "" })
	if info.State != Waiting || info.Wait != "sums" || info.Trouble != "its helper answers 503" ||
		info.Since.Before(first[0].Expires) {
		t.Errorf("%+v", info)
	}
	if s := reportOne(t, e, p.report(t, e, first[39], 1024)); s != Late {
		t.Errorf("a report on what was asked for is %s", s)
	}
	for range 6 {
		say(decided(t, e, 10))
		settle(t, e, c, 10*time.Minute, 1)
	}
	p.be("")
	info = until(t, e, c, released(40))
	if sum := info.Arms[0].Sum + info.Arms[1].Sum; sum != 39.25 && info.Arms[0].Released+info.Arms[1].Released == 40 {
		t.Errorf("the sums are %v", sum)
	}
}

// An arm is not taken off while its batch may have been asked for, also after a restart in between: the
// helper would be asked for other rows of the same decisions.
func TestTakeOffWaits(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		c, p := newClock(), newParty(t, func() int64 { return 0 })
		cfg := Config{Store: store.NewMemory().Open, Clock: c.Now, Curator: withNoise(func() int64 { return 0 })}
		p.arms = "[red, blue, green]"
		e := p.open(t, cfg)
		begin(t, e, p.shop())
		for _, d := range decided(t, e, 60) {
			reportOne(t, e, p.report(t, e, d, 1024))
		}
		p.be("mute") // to requests for shares
		c.Add(time.Minute)
		until(t, e, c, func(i Info) bool { return i.Trouble != "" })
		if err := e.TakeOff(t.Context(), "shop", "blue"); err != nil {
			t.Fatal(err)
		}
		if restarts {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = p.open(t, cfg)
		}
		info := until(t, e, c, func(i Info) bool { return i.Trouble != "" })
		settle(t, e, c, info.Tick, 3)
		if info, _ := e.Get(t.Context(), "shop"); info.Arms[1].Off || info.State == Failed {
			t.Errorf("restarts %v: an arm is off while its sum is on the way: %+v", restarts, info)
		}
		p.be("")
		info = until(t, e, c, func(i Info) bool { return i.Arms[1].Off })
		if info.Arms[1].Released != 20 || info.Arms[1].Sum != 20 {
			t.Errorf("restarts %v: %+v was released", restarts, info.Arms[1])
		}
		for before := info.Batches; info.Batches == before; { // and it goes on
			for _, d := range decided(t, e, 60) {
				reportOne(t, e, p.report(t, e, d, 0))
			}
			settle(t, e, c, time.Minute, 1)
			info = until(t, e, c, func(i Info) bool { return i.State == Running })
		}
	}
}

// A helper that does not take back what it says ends the experiment with the reason, in words of ours:
// what it says beside that is for the log.
func TestHelperRefuses(t *testing.T) {
	for fault, want := range map[string]string{"overlap": "batchOverlap"} {
		c, p := newClock(), newParty(t, func() int64 { return 0 })
		var log bytes.Buffer
		e := p.open(t, Config{Store: store.NewMemory().Open, Clock: c.Now,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		begin(t, e, p.shop())
		p.be(fault)
		for i, d := range decided(t, e, 40) {
			reportOne(t, e, p.report(t, e, d, uint64(i)))
		}
		c.Add(time.Minute)
		for {
			settle(t, e, c, time.Second, 1)
			info, err := e.Get(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			if info.State == Failed {
				if !strings.HasSuffix(info.Reason, ": its sum cannot be had: its helper answers dap: "+want) {
					t.Errorf("%s: the reason is %s", fault, info.Reason)
				}
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := e.Stop(t.Context(), "shop", "red"); err != nil {
			t.Error(err)
		}
		if kept(t, e) != 0 {
			t.Errorf("%s: reports are kept after the stop", fault)
		}
		if err := e.Close(); err != nil || !strings.Contains(log.String(), "ticket 17") {
			t.Errorf("%s: the log is %s, %v", fault, &log, err)
		}
	}
}

// Without the secret that the servers share nothing is started, and with another one nothing is told.
func TestHelperSecret(t *testing.T) {
	c, p := newClock(), newParty(t, func() int64 { return 0 })
	x := parse(t, p.shop())
	p.task, _ = x.Task()
	var secret []byte
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, gatherPause: time.Millisecond,
		HelperSecret: func(string) []byte { return secret }})
	if err := e.Create(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "shop"); !errors.Is(err, ErrHelper) || !errors.Is(err, ErrState) {
		t.Errorf("it starts without a secret: %v", err)
	}
	secret = bytes.Repeat([]byte("other!"), 6)
	if err := e.Start(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	decided(t, e, 40)
	c.Add(time.Minute)
	info := until(t, e, c, func(i Info) bool { return i.Trouble != "" })
	if info.Trouble != "its helper does not know this service: the secret, or the declaration, is another" {
		t.Error(info.Trouble)
	}
}

// crashing does something at a point.
type crashing struct {
	mu    sync.Mutex
	point string
	left  int
	then  func()
}

func (k *crashing) hook(at string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at == k.point && k.then != nil {
		if k.left--; k.left < 0 {
			k.then()
			k.then = nil
		}
	}
}

// A leader that is taken over anywhere asks the same, is answered the same, and releases the same. A
// helper that draws anew where it is asked again is found.
func TestTwoServerCrash(t *testing.T) {
	for _, point := range []string{"before a commit", "after a commit", "gathered", "before a release",
		"after a release", "twin"} {
		for _, left := range []int{0, 1} {
			c, p := newClock(), newParty(t, drawn(3))
			var cfg Config
			disk, crash := store.NewMemory(), &crashing{point: point, left: left}
			cfg = Config{Store: disk.Open, Clock: c.Now, Curator: withNoise(func() int64 { return 0 }), hook: crash.hook}
			if point == "twin" {
				crash.point = "gathered"
			}
			e := p.open(t, cfg)
			begin(t, e, p.shop())
			all := decided(t, e, 40)
			var want int64
			for i, d := range all {
				if i%3 == 0 {
					want += 1 << 18
					continue
				}
				reportOne(t, e, p.report(t, e, d, uint64(i)))
				want += int64(i) << 10
			}
			if err := e.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			fenced := make(chan struct{})
			crash.mu.Lock()
			crash.then = func() { // somebody else begins, and what is on its way is refused
				s, _ := disk.Open(context.Background())
				if _, err := s.Begin(context.Background(), "crash"); err != nil {
					t.Error(err)
				}
				close(fenced)
			}
			crash.mu.Unlock()
			c.Add(time.Minute)
			for done := false; !done; {
				c.Add(time.Second)
				_ = e.Sync(t.Context())
				select {
				case <-fenced:
					done = true
				case <-time.After(100 * time.Microsecond):
				}
				if info, err := e.Get(t.Context(), "shop"); err == nil && released(40)(info) {
					done = true // the point does not come so often
				}
			}
			_ = e.Close()
			if point == "twin" {
				p.be("fresh noise")
			}
			cfg.hook = nil
			e = p.open(t, cfg)
			info := until(t, e, c, released(40))
			again := false // two draws for one sum: their difference tells it
			p.mu.Lock()
			for b, z := range p.draws {
				want += z
				again = again || p.drawn[b] > 1
			}
			p.mu.Unlock()
			if again != (point == "twin") {
				t.Errorf("%s, %d: a share was drawn again: %v", point, left, again)
			}
			got := info.Arms[0].Sum + info.Arms[1].Sum
			if got != float64(want)*release.ExactStep {
				t.Errorf("%s, %d: the sums are %v, must be %v", point, left, got, float64(want)*release.ExactStep)
			}
			if kept(t, e) != 0 {
				t.Errorf("%s, %d: %d reports are kept", point, left, kept(t, e))
			}
		}
	}
}

// twice is a store that gives a report twice.
type twice struct{ store.Store }

func (s twice) Reports(ctx context.Context, id int64, arm, start, end int) iter.Seq2[store.Hidden, error] {
	return func(yield func(store.Hidden, error) bool) {
		for r, err := range s.Store.Reports(ctx, id, arm, start, end) {
			for range 2 {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// A report that would count twice is found.
func TestReportTwice(t *testing.T) {
	c, p := newClock(), newParty(t, func() int64 { return 0 })
	disk := store.NewMemory()
	e := p.open(t, Config{Store: func(ctx context.Context) (store.Store, error) {
		s, err := disk.Open(ctx)
		return twice{s}, err
	}, Clock: c.Now, Curator: withNoise(func() int64 { return 0 })})
	begin(t, e, p.shop())
	for _, d := range decided(t, e, 40) {
		reportOne(t, e, p.report(t, e, d, 1024))
	}
	c.Add(time.Minute)
	if info := until(t, e, c, released(40)); info.Arms[0].Sum+info.Arms[1].Sum == 80 {
		t.Error("every report counts twice")
	}
}
