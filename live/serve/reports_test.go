package serve

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/transport"
)

const localShop = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb-j, first: 20}
budget: {epsilon: 1}
unit: {of: visit}
reward: {range: [0, 1], default: 0.25}
window: 1m
sticky: false
trust: local
report_after: 20s
`

// decided decides until there are n, and says them.
func decided(t testing.TB, e *Engine, n int) []Decision {
	t.Helper()
	out := make([]Decision, n)
	for i := range out {
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil || d.Report == nil {
			t.Fatalf("%+v, %v", d, err)
		}
		out[i] = d
	}
	return out
}

// steps is a report under trust local whose noise is 0.
func steps(d Decision, n int64) Message {
	return Message{Ticket: d.Report.Ticket, Body: strconv.AppendInt(nil, n, 10)}
}

func reportOne(t testing.TB, e *Engine, m Message) Status {
	t.Helper()
	out, err := e.Reports(t.Context(), "shop", []Message{m})
	if err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
	return out[0].Status
}

// until goes from tick to tick until something is so: a sum is gathered beside the writer.
func until(t testing.TB, e *Engine, c *clock.Manual, is func(Info) bool) Info {
	t.Helper()
	for {
		info, err := e.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if is(info) {
			return info
		}
		if info.State == Failed {
			t.Fatal(info.Reason)
		}
		settle(t, e, c, info.Tick, 1)
		time.Sleep(100 * time.Microsecond)
	}
}

func released(n int) func(Info) bool {
	return func(i Info) bool { return i.Arms[0].Released+i.Arms[1].Released >= n }
}

func replayed(t testing.TB, e *Engine) *Replayed {
	t.Helper()
	lines, err := e.Transcript(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for line, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		all.Write(line)
	}
	r, err := Replay(&all, catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Under trust local a release is the sum of what was reported and of the defaults; a report counts
// once, and what is kept of it is gone with the release.
func TestLocal(t *testing.T) {
	c, disk := newClock(), store.NewMemory()
	e := open(t, Config{Store: disk.Open, Clock: c.Now})
	begin(t, e, localShop)
	var want [2]int64
	all := decided(t, e, 40)
	for i, d := range all {
		r := d.Report
		if r.Trust != privacy.TrustLocal || r.After != 20*time.Second || r.Default != 0.25 || r.Hi != 1 ||
			r.Noise.Name != privacy.NoiseLaplace || r.Time != dap.Time(d.Expires) {
			t.Fatalf("%+v", r)
		}
		if i%4 == 3 { // does not report
			want[d.Arm] += 1 << 18
			continue
		}
		n := int64(i) << 10
		for _, n := range []int64{n, n + 1, 1 << 60} { // the first counts
			if s := reportOne(t, e, steps(d, n)); s != Accepted {
				t.Fatal(s)
			}
		}
		want[d.Arm] += n
	}
	if kept(t, e) != 30 {
		t.Errorf("%d reports are kept, must be 30", kept(t, e))
	}
	c.Add(time.Minute)
	for _, d := range all {
		if s := reportOne(t, e, steps(d, 1)); s != Late {
			t.Errorf("after its window a report is %s", s)
		}
	}
	info := until(t, e, c, released(40))
	for a, got := range info.Arms {
		if got.Sum != float64(want[a])*release.ExactStep {
			t.Errorf("arm %d: the sum is %v, must be %v", a, got.Sum, float64(want[a])*release.ExactStep)
		}
		if m, ok := got.Noise.(privacy.Aggregated); !ok || m.Trust != privacy.TrustLocal {
			t.Errorf("the noise is %v", got.Noise)
		}
	}
	if kept(t, e) != 0 {
		t.Error("reports are kept after their release")
	}
	if r := replayed(t, e); r.Arms[0].Sum != info.Arms[0].Sum || r.Batches != info.Batches {
		t.Errorf("replayed to %+v, was %+v", r.Arms[0], info.Arms[0])
	}
}

// kept is how many reports the store has.
func kept(t testing.TB, e *Engine) (n int) {
	t.Helper()
	x := mustFind(t, e, "shop")
	for arm := range x.decl.Arms {
		for _, err := range e.reading.Reports(t.Context(), x.id, arm, 0, 1<<30) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	return n
}

// What is no report on a decision, or not of the trust model's, is refused, and tells no value.
func TestReportsAreChecked(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, localShop)
	begin(t, e, strings.NewReplacer("name: shop", "name: open", "trust: local\nreport_after: 20s", "").
		Replace(localShop))
	d := decided(t, e, 1)[0]
	other, err := e.Decide(t.Context(), "open", "")
	if err != nil || other.Report != nil {
		t.Fatalf("%+v, %v", other, err)
	}
	if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); !errors.Is(err, ErrHidden) {
		t.Errorf("a reward in the open: %v", err)
	}
	if _, err := e.Reports(t.Context(), "open", []Message{steps(d, 1)}); !errors.Is(err, ErrOpen) {
		t.Errorf("a report where rewards are in the open: %v", err)
	}
	k, err := dap.ParseTicket(d.Report.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	moved, armed, forged := k, k, k
	moved.Number++
	armed.Arm ^= 1
	forged.Token = bytes.Clone(k.Token)
	forged.Token[20] ^= 1
	foreign, _ := base64.RawURLEncoding.DecodeString(other.Token)
	for what, ticket := range map[string][]byte{"nothing": nil, "a number": moved.Marshal(),
		"an arm": armed.Marshal(), "a forged token": forged.Marshal(),
		"another's": dap.Ticket{Arm: k.Arm, Number: k.Number, Token: foreign}.Marshal()} {
		out, err := e.Reports(t.Context(), "shop", []Message{{ticket, []byte("1")}})
		if err != nil || !errors.Is(out[0].Err, ErrToken) {
			t.Errorf("%s: %v, %v", what, out, err)
		}
	}
	for _, body := range []string{"", "1.5", "x", "9223372036854775808", "NaN", "+Inf"} {
		out, err := e.Reports(t.Context(), "shop", []Message{{d.Report.Ticket, []byte(body)}})
		if err != nil || out[0].Err == nil || body != "" && strings.Contains(out[0].Err.Error(), body) {
			t.Errorf("%q: %v, %v", body, out, err)
		}
	}
	// who lies adds no more than noise can
	for i, d := range decided(t, e, 40) {
		if s := reportOne(t, e, steps(d, []int64{-1 << 62, 1 << 62, 1<<63 - 1, -1 << 63}[i%4])); s != Accepted {
			t.Fatal(s)
		}
	}
	reach := float64(d.Report.Noise.Reach()) * release.ExactStep
	for _, a := range until(t, e, c, released(20)).Arms {
		if most := float64(a.Released) * (1 + reach); a.Sum > most || a.Sum < -most {
			t.Errorf("the sum is %v, must be at most %v", a.Sum, most)
		}
	}
}

// A batch to which nobody has reported closes, with the defaults.
func TestNobodyReports(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, localShop)
	decided(t, e, 40)
	info := until(t, e, c, released(40))
	if got := fmt.Sprint(info.Arms[0].Sum, info.Arms[1].Sum); got != "5 5" {
		t.Errorf("the sums are %s, must be 5 5", got)
	}
}

// What is shown of hidden rewards has an interval that reckons with all the noise that is in it: local
// noise is one of each decision.
func TestHiddenIntervals(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, localShop)
	decided(t, e, 40)
	arm := until(t, e, c, released(40)).Arms[0]
	law, _ := mustFind(t, e, "shop").decl.Noise()
	two := ArmInfo{Released: 20, Releases: 1, Sum: 5, Noise: privacy.Aggregated{Trust: privacy.TrustTwoServer,
		Noise: privacy.NoiseGaussian, G: 1 << 20, Users: 1, Num: 1 << 44, Den: 1}}
	for _, x := range []struct {
		arm    ArmInfo
		noise  privacy.Mechanism
		noises int
	}{
		{arm, privacy.Laplace{Scale: float64(law.Num) / float64(law.Den) * release.ExactStep}, 20},
		{two, privacy.Gaussian{Sigma: 4}, 2},
	} {
		s := x.arm.Sums()
		lo, hi, err := s.Interval(0.05)
		if err != nil || lo > 0.25 || hi < 0.25 {
			t.Errorf("the interval is %v to %v, %v", lo, hi, err)
		}
		variance := s.Variance()
		s.Noise, s.Noises = x.noise, x.noises
		if v := s.Variance(); v != variance || !(v > 0) {
			t.Errorf("%+v: the noise has variance %v, must have %v", x.arm, variance, v)
		}
		if l, h, err := s.Interval(0.05); err != nil || l != lo || h != hi {
			t.Errorf("%+v: %v to %v, must be %v to %v of %d noises, %v", x.arm, lo, hi, l, h, x.noises, err)
		}
	}
}

// followShops have no report_after, under each trust.
var followShops = map[string]string{
	"local":  strings.Replace(localShop, "report_after: 20s\n", "", 1),
	"secagg": smallShop,
	"two-server": strings.Replace(localShop, "trust: local\nreport_after: 20s",
		`trust: two-server
helper: {url: "https://helper.invalid", key: KEY}`, 1),
}

// forShops opens engines for an experiment under any trust.
func forShops(t *testing.T, c *clock.Manual, at opener) func() *Engine {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hub := transport.NewHub(l)
	t.Cleanup(func() { _ = hub.Close() })
	return func() *Engine {
		return open(t, Config{Store: at, Clock: c.Now, HelperSecret: func(string) []byte { return shared },
			Cohorts: &Cohorts{Hub: hub, Address: hub.Addr().String()}})
	}
}

// sameTerms is the declaration, which the transcript says as well.
func sameTerms(t *testing.T, e *Engine) *Experiment {
	t.Helper()
	info, err := e.Get(t.Context(), "shop")
	if err != nil || info.State == Failed {
		t.Fatalf("%s %s, %v", info.State, info.Reason, err)
	}
	r := replayed(t, e)
	if same, err := equal(&r.Experiment, &info.Experiment); err != nil || !same {
		t.Errorf("replayed to report after %v of %v, and it is %v of %v, %v", r.Experiment.ReportDelay(),
			r.Experiment.Window, info.Experiment.ReportDelay(), info.Experiment.Window, err)
	}
	return &info.Experiment
}

// Where rewards are hidden, none is taken in the open, by whichever door: by an event's name or a unit's neither, and not
// by the writer: the noise of a sum is that of its reports.
func TestNoRewardInTheOpen(t *testing.T) {
	for trust, text := range followShops {
		t.Run(trust, func(t *testing.T) {
			e := forShops(t, newClock(), store.NewMemory().Open)()
			begin(t, e, strings.NewReplacer("KEY", newParty(t, nil).config.String(), "sticky: false", "sticky: true").Replace(text))
			ask := RankAsk{Event: "an event", Actions: []Action{{ID: "red"}, {ID: "blue"}}}
			if _, err := e.Rank(t.Context(), "shop", ask); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Decide(t.Context(), "shop", "ann"); err != nil {
				t.Fatal(err)
			}
			x := mustFind(t, e, "shop")
			for _, name := range []string{"an event", "ann", "nobody"} {
				if s, err := e.RewardEvent(t.Context(), "shop", name, 0.75); !errors.Is(err, ErrHidden) || s != "" {
					t.Errorf("of %s: %q, %v", name, s, err)
				}
				if name == "nobody" {
					continue
				}
				x.mu.Lock()
				k, err := x.event(name)
				x.mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}
				j := &job{on: x, at: e.now(), results: make([]Result, 1), reports: []reported{{ticket: k, reward: 0.75}}}
				if err := e.do(t.Context(), j); err != nil || !errors.Is(j.results[0].Err, ErrHidden) {
					t.Errorf("the writer, of %s: %+v, %v", name, j.results[0], err)
				}
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			for a := range x.board.queues {
				if s, there := x.play.Segment(a, 0); there && (s.Sum != 0 || s.Came.Has(0)) {
					t.Errorf("arm %d has %+v", a, s)
				}
			}
		})
	}
}

// What an earlier program took in the open is dropped when it is read, and no log says whether there was any.
func TestNothingInTheOpenIsKept(t *testing.T) {
	for trust, text := range followShops {
		t.Run(trust, func(t *testing.T) {
			e := forShops(t, newClock(), store.NewMemory().Open)()
			begin(t, e, strings.NewReplacer("KEY", newParty(t, nil).config.String(), "sticky: false", "sticky: true").Replace(text))
			if _, err := e.Decide(t.Context(), "shop", "ann"); err != nil {
				t.Fatal(err)
			}
			x := mustFind(t, e, "shop")
			x.mu.Lock()
			k, err := x.event("ann")
			was := x.gatherer
			x.gatherer = nil
			x.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			j := &job{on: x, at: e.now(), results: make([]Result, 1), reports: []reported{{ticket: k, reward: 0.75}}}
			if err := e.do(t.Context(), j); err != nil || j.results[0].Status != Accepted {
				t.Fatal(j.results[0], err)
			}
			x.mu.Lock()
			x.gatherer = was
			s, _ := x.play.Segment(k.arm, 0)
			x.mu.Unlock()
			if s.Sum == 0 {
				t.Fatal("nothing was taken")
			}
			var log logged
			again := openLogged(t, e, &log)
			x = mustFind(t, again, "shop")
			x.mu.Lock()
			defer x.mu.Unlock()
			if s, there := x.play.Segment(k.arm, 0); !there || s.Sum != 0 || !s.Came.Has(0) || x.rec.State != Running {
				t.Errorf("it is %s, and has %+v", x.rec.State, s)
			}
			if strings.Contains(log.String(), "reward") {
				t.Errorf("it says %s", &log)
			}
		})
	}
}

// openLogged opens another engine as one was, which it takes over, and has it say things.
func openLogged(t *testing.T, e *Engine, log io.Writer) *Engine {
	t.Helper()
	cfg := e.cfg
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	return open(t, cfg)
}

// A report_after that is not declared is half the window with which the experiment was created. A change of
// the window leaves it, now and after a restart, and one to a window that has no room for it is refused.
func TestReportDelayStays(t *testing.T) {
	for trust, text := range followShops {
		t.Run(trust, func(t *testing.T) {
			c := newClock()
			again := forShops(t, c, store.NewMemory().Open)
			e := again()
			begin(t, e, strings.Replace(text, "KEY", newParty(t, nil).config.String(), 1))
			change := func(w time.Duration) error { return e.Change(t.Context(), "shop", Change{Window: &w}) }
			var in *keyed.Error
			if err := change(30 * time.Second); !errors.As(err, &in) || in.Field != "report_after" {
				t.Errorf("there is no room for it: %v", err)
			}
			for i, w := range []time.Duration{40 * time.Second, 5 * time.Minute} {
				if err := change(w); err != nil {
					t.Fatal(err)
				}
				settle(t, e, c, time.Second, 2)
				for range 2 {
					x := sameTerms(t, e)
					if d := decided(t, e, 1)[0]; d.Report.After != 30*time.Second || x.Window != w ||
						!d.Expires.Equal(c.Now().Add(w)) {
						t.Errorf("change %d: report after %v, of %v", i, d.Report.After, x.Window)
					}
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					e = again()
				}
			}
		})
	}
}

// A program before had a report_after that was not declared follow the window. The experiment goes on, by what
// its transcript says.
func TestReportDelayHasFollowed(t *testing.T) {
	visits := followShops["local"]
	for _, was := range []struct {
		name, text string
		windows    []int // in seconds
		after      time.Duration
	}{
		{name: "running", text: visits, windows: []int{40}, after: 30 * time.Second},
		{name: "no room", text: visits, windows: []int{20}, after: 10 * time.Second},
		{name: "there and back", text: visits, windows: []int{20, 60},
			after: 10 * time.Second},
		{name: "sticky", text: strings.Replace(visits, "sticky: false", "sticky: true", 1),
			windows: []int{40}, after: 30 * time.Second},
	} {
		t.Run(was.name, func(t *testing.T) {
			c := newClock()
			again := forShops(t, c, store.NewMemory().Open)
			e := again()
			begin(t, e, was.text)
			d, err := e.Decide(t.Context(), "shop", "ann")
			if err != nil {
				t.Fatal(err)
			}
			x := mustFind(t, e, "shop")
			x.mu.Lock()
			x.decl.ReportAfter = 0 // as in a program before
			x.mu.Unlock()
			var w time.Duration
			for _, s := range was.windows {
				w = time.Duration(s) * time.Second
				if err := e.Change(t.Context(), "shop", Change{Window: &w}); err != nil {
					t.Fatal(err)
				}
				settle(t, e, c, time.Second, 2)
			}
			for range 2 {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = again()
				if x := sameTerms(t, e); x.ReportAfter != was.after || x.Window != w {
					t.Errorf("report after %v of %v", x.ReportAfter, x.Window)
				}
			}
			if s := reportOne(t, e, steps(d, 1)); s != Accepted {
				t.Errorf("a decision from before is %s", s)
			}
			for i := range 40 {
				if _, err := e.Decide(t.Context(), "shop", fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			until(t, e, c, released(40))
			sameTerms(t, e)
		})
	}
}
