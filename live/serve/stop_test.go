package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// stops is an experiment with visitors, of whom those of blue are content more often.
type stops struct {
	*Engine
	decisions map[string]Decision
	outcomes  bool // who is not content reports that, most often
}

// visitors come, and most report at once.
func (s *stops) visitors(t *testing.T, from, n int) {
	t.Helper()
	src := rand.New(rand.NewPCG(1, uint64(from)))
	for i := from; i < from+n; i++ {
		unit := fmt.Sprint("unit ", i)
		d, err := s.Decide(t.Context(), "shop", unit)
		if err != nil || d.Reason != Split {
			t.Fatalf("%+v, %v", d, err)
		}
		s.decisions[unit] = d
		reward := 1.0
		if src.Float64() >= [3]float64{0.1, 0.9, 0.5}[d.Arm] {
			if reward = 0; !s.outcomes || i%5 == 0 {
				continue
			}
		}
		if r, err := s.Reward(t.Context(), "shop", Report{d.Token, reward}); r != Accepted || err != nil {
			t.Fatal(r, err)
		}
	}
}

// A stop, and a declared end, release all that is settled, of all arms, and then keep the arm that leads. Until then new
// units are given the fallback, or the arm that was named, and others keep theirs; rewards are taken until
// their deadlines. A process that is killed at every tick of it changes nothing.
func TestStopIsGraceful(t *testing.T) {
	testkit.RacedBefore(t)
	for name, c := range map[string]struct {
		terms, keep string
		off, end    bool
		new, kept   string
		leader      bool
	}{
		"leader":             {keep: "leader", new: "red", kept: "blue", leader: true},
		"by name":            {keep: "green", new: "green", kept: "green"},
		"the fallback":       {terms: "fallback: green\n", new: "green", kept: "green"},
		"as declared":        {terms: "stop: {keep: leader}\n", new: "red", kept: "blue", leader: true},
		"end":                {terms: "stop: {keep: leader}\n", end: true, new: "red", kept: "blue", leader: true},
		"end, by name":       {terms: "stop: {keep: green}\n", end: true, new: "green", kept: "green"},
		"end, of the past":   {end: true, new: "red", kept: "red"},
		"an arm is off":      {keep: "leader", off: true, new: "red", kept: "green", leader: true},
		"named, which is on": {terms: "stop: {keep: blue}\n", off: true, new: "red", kept: "red"},
		"metrics":            {terms: "metrics: [{name: basket, range: [0, 200], budget: {epsilon: 1}}]\n", keep: "leader", new: "red", kept: "blue", leader: true},
		"dropped":            {terms: "missing: drop\nreports: every\n", keep: "leader", new: "red", kept: "blue", leader: true},
	} {
		t.Run(name, func(t *testing.T) {
			at, mem := newClock(), store.NewMemory()
			cfg := Config{Store: mem.Open, Clock: at.Now}
			terms := c.terms
			if c.end {
				terms += "end: " + at.Now().Add(100*time.Second).UTC().Format(time.RFC3339) + "\n"
			}
			e := &stops{Engine: open(t, cfg), decisions: map[string]Decision{}, outcomes: name == "dropped"}
			begin(t, e.Engine, strings.NewReplacer("arms: [", "arms: [", "{hex: \"#00c\", n: 3}}]", "{hex: \"#00c\", n: 3}}, green]",
				"floor: 0.1", "floor: 0.6").Replace(shop)+terms)
			e.visitors(t, 0, 300)
			settle(t, e.Engine, at, 10*time.Second, 8)
			e.visitors(t, 300, 200)
			if c.off {
				if err := e.TakeOff(t.Context(), "shop", "blue"); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, e.Engine, at, 10*time.Second, 1)
			var late []Decision // which report in their last second
			for unit, d := range e.decisions {
				if strings.HasPrefix(unit, "unit 4") && d.Expires.After(at.Now()) && len(late) < 20 {
					late = append(late, d)
				}
			}
			switch c.end {
			case true:
				settle(t, e.Engine, at, 10*time.Second, 1)
			default:
				if err := e.Stop(t.Context(), "shop", c.keep); err != nil {
					t.Fatal(err)
				}
			}
			before, err := e.Get(t.Context(), "shop")
			if err != nil || before.State != Stopping || before.Left == 0 || before.Keep != -1 || before.Leader != c.leader ||
				!c.leader && before.Experiment.Arms[before.Next].Name != c.kept || before.Why == "" {
				t.Fatalf("%+v, %v", before, err)
			}
			for unit, d := range e.decisions {
				want, why := d.Name, Split
				if c.off && d.Name == "blue" {
					want, why = c.new, Static
				}
				if again, err := e.Decide(t.Context(), "shop", unit); err != nil || again.Name != want || again.Reason != why ||
					why == Split && again.Token != d.Token {
					t.Fatalf("%s had %+v, and is given %+v, %v", unit, d, again, err)
				}
			}
			if d, err := e.Decide(t.Context(), "shop", "new"); err != nil || d.Name != c.new || d.Reason != Static || d.Token != "" {
				t.Errorf("a new unit is given %+v, %v", d, err)
			}
			for what, err := range map[string]error{"stop": e.Stop(t.Context(), "shop", ""), "pause": e.Pause(t.Context(), "shop"),
				"resume": e.Resume(t.Context(), "shop"), "archive": e.Archive(t.Context(), "shop"), "start": e.Start(t.Context(), "shop"),
				"take off": e.TakeOff(t.Context(), "shop", "green")} {
				if !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "stopping") {
					t.Errorf("%s of what is stopping: %v", what, err)
				}
			}
			if err := e.Erase(t.Context(), "shop", "unit 3"); err != nil {
				t.Error(err)
			}
			var info Info
			for range 100 {
				e.Engine = open(t, cfg) // the one before is superseded, as if it were killed
				settle(t, e.Engine, at, time.Second, 1)
				if !late[0].Expires.After(at.Now().Add(time.Second)) && late[0].Expires.After(at.Now()) {
					for _, d := range late {
						if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Accepted || err != nil {
							t.Errorf("a second before its deadline: %v, %v", s, err)
						}
					}
				}
				if info, err = e.Get(t.Context(), "shop"); err != nil || info.State != Stopping {
					break
				}
			}
			if err != nil || info.State != Stopped || info.Experiment.Arms[info.Keep].Name != c.kept || info.Left != 0 || info.Leader != c.leader {
				t.Fatalf("%+v, %v", info, err)
			}
			if s, err := e.Reward(t.Context(), "shop", Report{late[0].Token, 1}); s != Late || err != nil {
				t.Errorf("after its deadline: %v, %v", s, err)
			}
			left := 0 // with missing: drop who did not report, of all arms some sixty: of blue there may be none
			for a, arm := range info.Arms {
				left += arm.Decisions - arm.Released
				if arm.Released != arm.Decisions && name != "dropped" || arm.Released == 0 {
					t.Errorf("arm %d: %d of %d are released", a, arm.Released, arm.Decisions)
				}
			}
			if (left > 0) != (name == "dropped") {
				t.Errorf("%d are not released", left)
			}
			for _, unit := range []string{"unit 1", "new"} {
				if d, err := e.Decide(t.Context(), "shop", unit); err != nil || d.Name != c.kept || d.Reason != Static {
					t.Errorf("%s is given %+v, %v", unit, d, err)
				}
			}
			total, _ := info.Experiment.EachTotal()
			r, err := Replay(strings.NewReader(published(t, e.Engine)), catalog.Catalog{})
			if err != nil || r.Keep != info.Keep || r.Leader != c.leader || r.End != info.Why || !info.Spent.Within(total) ||
				r.Spent.Pure() != info.Spent.Pure() {
				t.Fatalf("%+v, %v, must be %+v", r, err, info)
			}
			for a, arm := range info.Arms {
				if r.Arms[a].Released != arm.Released || r.Arms[a].Sum != arm.Sum {
					t.Errorf("arm %d is replayed as %+v, and is %+v", a, r.Arms[a], arm)
				}
			}
			rests := 0
			batches, err := e.Batches(t.Context(), "shop", 0)
			if err != nil {
				t.Fatal(err)
			}
			for b, err := range batches {
				if err != nil {
					t.Fatal(err)
				}
				if b.Rest {
					rests++
				}
			}
			if rests != 1 {
				t.Errorf("there are %d rests", rests)
			}
		})
	}
}

// To stop now destroys what waits, at once, of what runs and of what is stopping. Without the name of the
// experiment an error says how many rewards that are, and nothing is done.
func TestStopNow(t *testing.T) {
	for _, before := range []State{Running, Paused, Stopping} {
		c := newClock()
		e := &stops{Engine: open(t, Config{Store: store.NewMemory().Open, Clock: c.Now}), decisions: map[string]Decision{}}
		begin(t, e.Engine, shop)
		e.visitors(t, 0, 100)
		settle(t, e.Engine, c, 10*time.Second, 12)
		e.visitors(t, 100, 70)
		switch before {
		case Paused:
			if err := e.Pause(t.Context(), "shop"); err != nil {
				t.Fatal(err)
			}
		case Stopping:
			if err := e.Stop(t.Context(), "shop", "leader"); err != nil {
				t.Fatal(err)
			}
		}
		info, err := e.Get(t.Context(), "shop")
		if err != nil || info.Left < 70 {
			t.Fatal(info, err)
		}
		for _, confirm := range []string{"", "Shop"} {
			var of *keyed.Error
			err := e.StopNow(t.Context(), "shop", "", confirm)
			if !errors.As(err, &of) || of.Field != "confirm" || !strings.Contains(err.Error(), fmt.Sprint("unreleased: ", info.Left)) ||
				!strings.Contains(err.Error(), fmt.Sprintf("is %q, must be the name of the experiment, shop", confirm)) {
				t.Errorf("%v", err)
			}
		}
		if is, err := e.Get(t.Context(), "shop"); err != nil || is.Left != info.Left || is.State != info.State {
			t.Errorf("%+v, %v", is, err)
		}
		if err := e.StopNow(t.Context(), "shop", "green", "shop"); err == nil || !strings.Contains(err.Error(), "leader") {
			t.Errorf("an arm that is none: %v", err)
		}
		if err := e.StopNow(t.Context(), "shop", "leader", "shop"); err != nil {
			t.Fatal(err)
		}
		is, err := e.Get(t.Context(), "shop")
		if err != nil || is.State != Stopped || is.Keep != 1 || is.Left != 0 || fmt.Sprint(is.Arms) != fmt.Sprint(info.Arms) {
			t.Errorf("it is %s, keeps %d, %d are left, %v, were %v, %v", is.State, is.Keep, is.Left, is.Arms, info.Arms, err)
		}
		text := published(t, e.Engine)
		if !strings.Contains(text, fmt.Sprintf(`"end":"operator","keep":1,"leader":true,"gone":%d,`, info.Left)) {
			t.Errorf("the last line does not say what was destroyed: %s", text[len(text)-300:])
		}
		for _, err := range []error{e.StopNow(t.Context(), "shop", "", "shop"), e.Stop(t.Context(), "shop", "")} {
			if !errors.Is(err, ErrState) {
				t.Error(err)
			}
		}
		if s, err := e.Reward(t.Context(), "shop", Report{e.decisions["unit 160"].Token, 1}); s != Void || err != nil {
			t.Errorf("after it a reward is %v, %v", s, err)
		}
	}
}

// An arm that is about to be taken off is not kept as the leader, and the last line says why.
func TestLeaderIsNotLeaving(t *testing.T) {
	c := newClock()
	e := &stops{Engine: open(t, Config{Store: store.NewMemory().Open, Clock: c.Now}), decisions: map[string]Decision{}}
	begin(t, e.Engine, shop)
	e.visitors(t, 0, 100)
	settle(t, e.Engine, c, 10*time.Second, 12)
	if err := e.TakeOff(t.Context(), "shop", "blue"); err != nil {
		t.Fatal(err)
	}
	if err := e.StopNow(t.Context(), "shop", "leader", "shop"); err != nil {
		t.Fatal(err)
	}
	text := published(t, e.Engine)
	if r, err := Replay(strings.NewReader(text), catalog.Catalog{}); err != nil || r.Keep != 0 || !r.Leader {
		t.Errorf("%+v, %v", r, err)
	}
	lines := strings.SplitAfter(strings.Replace(text, `"without":[1],`, "", 1), "\n")
	if _, err := Replay(strings.NewReader(relinked(lines)), catalog.Catalog{}); !errors.Is(err, ErrTranscript) {
		t.Errorf("another leads: %v", err)
	}
}

// What has nothing to release stops at once: a draft, what nobody came to, and what all was released of.
func TestStopOfNothing(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	if err := e.Create(t.Context(), parse(t, strings.Replace(shop, "name: shop", "name: draft", 1))); err != nil {
		t.Fatal(err)
	}
	begin(t, e, shop)
	begin(t, e, strings.Replace(news, "name: news", "name: read", 1))
	for _, name := range []string{"draft", "shop", "read"} {
		if err := e.Stop(t.Context(), name, ""); err != nil {
			t.Fatal(err)
		}
		if info, err := e.Get(t.Context(), name); err != nil || info.State != Stopped || info.Batches != 0 || info.Leader {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
}

// A rule that has its answer gives it to everybody at once, and what is left is released. One that an operator
// stops has a leader, and no answer, unless its last batch brings it.
func TestTrialStops(t *testing.T) {
	c := newClock()
	h := newHook(t)
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	text := strings.NewReplacer("dp-klucb", "dp-se", "floor: 0.1", "risk: 0.05").Replace(declare("dp-klucb")) + "webhook: " +
		h.URL + "/stopped\n"
	begin(t, e, strings.Replace(text, "floor: 0.1", "", 1))
	src := rand.New(rand.NewPCG(1, 2))
	round := func() Info {
		var reports []Report
		for range 50 {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil {
				t.Fatal(err)
			}
			if d.Token != "" && src.Float64() < [3]float64{0.1, 0.9, 0.1}[d.Arm] {
				reports = append(reports, Report{d.Token, 1})
			}
		}
		if _, err := e.Rewards(t.Context(), "shop", reports); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, 20*time.Second, 1)
		info, err := e.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	info := round()
	for n := 0; n < 2000 && info.State != Stopping; n++ {
		info = round()
	}
	if info.Why != "answer" || info.Next != 1 || info.Leader || info.Left == 0 {
		t.Fatalf("%+v", info)
	}
	if d, err := e.Decide(t.Context(), "shop", ""); err != nil || d.Name != "one" || d.Reason != Static {
		t.Errorf("%+v, %v", d, err)
	}
	settle(t, e, c, 20*time.Second, 6)
	if info, _ = e.Get(t.Context(), "shop"); info.State != Stopped || info.Why != "answer" || info.Keep != 1 || info.Left > 0 {
		t.Errorf("%+v", info)
	}
	h.wait(t, 1)
	if !strings.Contains(h.bodies[0], `"answer":"one"`) {
		t.Errorf("its webhook is told %s", h.bodies[0])
	}
	if r, err := Replay(strings.NewReader(published(t, e)), catalog.Catalog{}); err != nil || r.Answer != 1 || r.End != "answer" {
		t.Errorf("%+v, %v", r, err)
	}

	e = open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, text)
	for range 4 {
		round()
	}
	info = stopped(t, e, c, "shop", "leader")
	if info.Why != "operator" || info.Keep != 1 || !info.Leader {
		t.Errorf("%+v", info)
	}
	h.wait(t, 1)
	if strings.Contains(h.bodies[1], `"answer"`) || !strings.Contains(h.bodies[1], `"leader":"one"`) {
		t.Errorf("its webhook is told %s", h.bodies[1])
	}
	if r, err := Replay(strings.NewReader(published(t, e)), catalog.Catalog{}); err != nil || r.Answer != -1 || !r.Leader {
		t.Errorf("%+v, %v", r, err)
	}
}

// With contexts segments that are whole are released, and what follows them is destroyed, which the last line says.
func TestContextsStop(t *testing.T) {
	for name, text := range map[string]string{"news": news, "clinic": clinic} {
		c, mem := newClock(), store.NewMemory()
		cfg := Config{Store: mem.Open, Clock: c.Now}
		e := open(t, cfg)
		in := begin(t, e, text)
		for i := range 50 {
			if _, err := e.Rank(t.Context(), in, newsAsk(i)); err != nil && name == "news" {
				t.Fatal(err)
			} else if err != nil {
				break
			}
		}
		if err := e.Stop(t.Context(), in, ""); err != nil {
			t.Fatal(err)
		}
		var info Info
		for range 200 {
			e = open(t, cfg)
			settle(t, e, c, time.Second, 1)
			if info, _ = e.Get(t.Context(), in); info.State != Stopping {
				break
			}
			if r, err := e.Rank(t.Context(), in, newsAsk(1000)); err == nil && (r.Reason != Static || !r.Expires.IsZero()) {
				t.Errorf("%s: while it stops: %+v", name, r)
			}
		}
		// coins say where the last segment ends
		q, says := info.Contextual, ""
		lines, err := e.Transcript(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for line := range lines {
			says += string(line)
		}
		if info.State != Stopped || name == "news" && q.Released == 0 || q.Released < q.Decisions &&
			!strings.Contains(says, fmt.Sprintf(`"gone":%d,`, q.Decisions-q.Released)) {
			t.Errorf("%s: %s, %+v", name, info.State, q)
		}
	}
}

// Sums that the service does not see are gathered for the rest as they are for a batch, once, a restart later too.
func TestLocalStop(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now, gatherPause: time.Millisecond}
	e := open(t, cfg)
	begin(t, e, localShop)
	want := [2]int64{}
	for i, d := range decided(t, e, 47) {
		v := int64(i) << 14
		if i%3 == 0 {
			want[d.Arm] += 1 << 18
			continue
		}
		if s := reportOne(t, e, Message{d.Report.Ticket, fmt.Append(nil, v)}); s != Accepted {
			t.Fatal(s)
		}
		want[d.Arm] += v
	}
	if err := e.Stop(t.Context(), "shop", "leader"); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Minute)
	var info Info
	within(t, 20*time.Second, "the rest", func() bool {
		for range 3 {
			settle(t, e, c, time.Second, 1)
			time.Sleep(time.Millisecond)
		}
		info, _ = e.Get(t.Context(), "shop")
		if info.State == Stopping {
			e = open(t, cfg)
		}
		return info.State != Stopping
	})
	if info.State != Stopped || info.Left != 0 {
		t.Fatalf("%+v", info)
	}
	for a, arm := range info.Arms {
		if arm.Released != arm.Decisions || arm.Sum != float64(want[a])/(1<<20) {
			t.Errorf("arm %d: %+v, must have the sum of %d steps", a, arm, want[a])
		}
	}
	replayed(t, e)
}

// A clock that jumps ahead ends windows, and one that goes back none: what stops goes on from the latest.
func TestClockJumpsWhileStopping(t *testing.T) {
	c := newClock()
	e := &stops{Engine: open(t, Config{Store: store.NewMemory().Open, Clock: c.Now}), decisions: map[string]Decision{}}
	begin(t, e.Engine, shop)
	e.visitors(t, 0, 30)
	if err := e.Stop(t.Context(), "shop", ""); err != nil {
		t.Fatal(err)
	}
	for _, jump := range []time.Duration{-time.Hour, time.Hour, time.Hour, time.Second} {
		settle(t, e.Engine, c, jump, 1)
	}
	var info Info
	for range 10 {
		settle(t, e.Engine, c, time.Second, 1)
		info, _ = e.Get(context.Background(), "shop")
	}
	if info.State != Stopped || slices.ContainsFunc(info.Arms, func(a ArmInfo) bool { return a.Released != a.Decisions }) {
		t.Errorf("%+v", info)
	}
}

// So they are by two servers, of as many as there are, and where a session of clients has too few to be opened, as
// where one of a batch has.
func TestTwoServerStop(t *testing.T) {
	c, p := newClock(), newParty(t, func() int64 { return 0 })
	e := p.open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, gatherPause: time.Millisecond})
	begin(t, e, p.shop())
	x := parse(t, p.shop())
	law, err := x.Noise()
	if err != nil {
		t.Fatal(err)
	}
	reach := 2 * float64(law.Reach()) / (1 << 20) // of two releases, each with probability 2^-64
	want := [2]float64{}
	for i, d := range decided(t, e, 51) { // 20 of each arm are a batch
		if i%3 == 0 {
			want[d.Arm] += 0.25
			continue
		}
		if s := reportOne(t, e, p.report(t, e, d, uint64(i))); s != Accepted {
			t.Fatal(s)
		}
		want[d.Arm] += float64(i) / 1024
	}
	if err := e.Stop(t.Context(), "shop", "leader"); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Minute)
	info := until(t, e, c, func(i Info) bool { return i.State == Stopped })
	for a, arm := range info.Arms {
		if arm.Released != arm.Decisions || arm.Releases != 2 || math.Abs(arm.Sum-want[a]) > reach {
			t.Errorf("arm %d: %+v, must have the sum %v", a, arm, want[a])
		}
	}
	replayed(t, e)
}

func TestCohortStop(t *testing.T) {
	for _, otherwise := range []string{"default", "stop"} {
		m := newMeeting(t, strings.Replace(smallShop, "tries: 2", "tries: 1, otherwise: "+otherwise, 1))
		guests := m.invite(7, func(int) bool { return true })
		few := [2]int{}
		if err := m.e.Stop(t.Context(), "shop", "leader"); err != nil {
			t.Fatal(err)
		}
		m.c.Add(time.Minute)
		m.due(2, 2)
		var all sync.WaitGroup
		for _, g := range guests {
			if few[g.Arm]++; g.Arm == 1 { // nobody of whom comes
				continue
			}
			all.Go(func() { _ = m.join(g, 1<<20, stays) })
		}
		all.Wait()
		m.c.Add(20 * time.Minute) // those who are awaited do not come
		info := until(t, m.e, m.c, func(i Info) bool { return i.State == Stopped })
		switch arms := info.Arms; otherwise {
		case "stop":
			if info.Keep != 0 || arms[0].Released+arms[1].Released > 0 {
				t.Errorf("%+v", info)
			}
			if text := published(t, m.e); !strings.Contains(text, `"end":"operator","keep":0,"gone":7,`) {
				t.Errorf("%s", text)
			}
		default:
			if arms[0].Sum != float64(few[0]) || arms[1].Sum != float64(few[1])/4 || arms[1].Released != few[1] {
				t.Errorf("%+v", info.Arms)
			}
		}
		m.checked()
	}
}
