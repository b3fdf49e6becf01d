package serve

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// offers is shop with decisions that count when they are activated.
func offers(more string) string {
	return strings.Replace(shop, "window: 1m", "exposure: activate\nactivate_within: 10s\nwindow: 50s"+more, 1)
}

// Only what is activated in time counts, once, from its activation; a reward before it counts
// nowhere, and activates nothing. All of that is durable when it is answered.
func TestActivate(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			c, got := newClock(), newSums()
			cfg := Config{Store: store.NewMemory().Open, Clock: c.Now, Curator: silent(got.tell)}
			e := open(t, cfg)
			begin(t, e, offers(""))
			again := func() {
				if !restart {
					return
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = open(t, cfg)
			}
			reward := func(d Decision, want Status) {
				t.Helper()
				if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != want || err != nil {
					t.Errorf("a reward is %v, %v, want %v", s, err, want)
				}
			}
			show := func(d Decision, shown bool, want Status) {
				t.Helper()
				if s, err := e.Activate(t.Context(), "shop", d.Token, shown); s != want || err != nil {
					t.Errorf("shown %v is %v, %v, want %v", shown, s, err, want)
				}
			}
			var all []Decision
			for i := range 90 {
				d, err := e.Decide(t.Context(), "shop", fmt.Sprint(i))
				if err != nil || len(d.Token) != 90 || !d.ActivateBy.Equal(c.Now().Add(10*time.Second)) ||
					!d.Expires.Equal(c.Now().Add(time.Minute)) {
					t.Fatalf("%+v, %v", d, err)
				}
				all = append(all, d)
				if same, err := e.Decide(t.Context(), "shop", fmt.Sprint(i)); err != nil || same.Token != d.Token {
					t.Errorf("asked again: %+v, was %+v, %v", same, d, err)
				}
			}
			reward(all[0], Void)
			info, err := e.Get(t.Context(), "shop")
			if err != nil || info.Arms[0].Decisions+info.Arms[1].Decisions != 0 {
				t.Errorf("an offer counts: %+v, %v", info.Arms, err)
			}
			var came [2][]int64
			for i, d := range all {
				switch i % 3 {
				case 0:
					show(d, true, Accepted)
					show(d, true, Accepted)
					show(d, false, Accepted)
					came[d.Arm] = append(came[d.Arm], int64(i/3%2)<<20)
				case 1:
					show(d, false, Accepted)
					show(d, true, Accepted)
				}
			}
			again()
			for i, d := range all {
				switch {
				case i%3 != 0:
					reward(d, Void)
				case i/3%2 == 1:
					reward(d, Accepted)
					reward(d, Accepted)
				}
			}
			if same, err := e.Decide(t.Context(), "shop", "0"); err != nil || same.Token != all[0].Token ||
				same.Propensity != all[0].Propensity {
				t.Errorf("they met it: %+v, was %+v, %v", same, all[0], err)
			}
			if other, err := e.Decide(t.Context(), "shop", "1"); err != nil || other.Token == all[1].Token {
				t.Errorf("they do not meet it, and are answered the same: %+v, %v", other, err)
			}
			if same, err := e.Decide(t.Context(), "shop", "2"); err != nil || same.Token != all[2].Token {
				t.Errorf("they may still meet it: %+v, was %+v, %v", same, all[2], err)
			}
			settle(t, e, c, time.Second, 10)
			again()
			for _, d := range all[:3] {
				show(d, true, Late)
				show(d, false, Late)
			}
			reward(all[2], Void)
			if other, err := e.Decide(t.Context(), "shop", "2"); err != nil || other.Token == all[2].Token ||
				!other.ActivateBy.Equal(c.Now().Add(10*time.Second)) {
				t.Errorf("it was forgotten, and is answered: %+v, %v", other, err)
			}
			if same, err := e.Decide(t.Context(), "shop", "0"); err != nil || same.Token != all[0].Token {
				t.Errorf("they met it: %+v, was %+v, %v", same, all[0], err)
			}
			for range 60 { // more of those who meet it, so that both arms have what is asked
				d, err := e.Decide(t.Context(), "shop", fmt.Sprint("later ", c.Now(), len(came[0]), len(came[1])))
				if err != nil {
					t.Fatal(err)
				}
				show(d, true, Accepted)
				came[d.Arm] = append(came[d.Arm], 0)
			}
			again()
			settle(t, e, c, time.Second, 66)
			for _, d := range all[:3] {
				reward(d, Late)
			}
			info, err = e.Get(t.Context(), "shop")
			if err != nil || info.Batches == 0 {
				t.Fatalf("nothing was released: %+v, %v", info, err)
			}
			for a, arm := range info.Arms {
				if arm.Decisions != len(came[a]) || arm.Released != got.n[a] || arm.Released < 20 {
					t.Fatalf("arm %d: %+v, %d were activated, %d released", a, arm, len(came[a]), got.n[a])
				}
				want := int64(0)
				for _, steps := range came[a][:arm.Released] {
					want += steps
				}
				if got.steps[a] != want {
					t.Errorf("arm %d released %d steps, must be %d", a, got.steps[a], want)
				}
			}
		})
	}
}

// Offers that nobody activates are nothing: no slot closes, however long it waits, and none is empty.
func TestNobodyActivates(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, offers("\nsticky: false"))
	for range 100 {
		if _, err := e.Decide(t.Context(), "shop", ""); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, 10*time.Second, 1)
	}
	if info, err := e.Get(t.Context(), "shop"); err != nil || info.State != Running || info.Batches > 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// A unit has as many decisions that count as it may have assignments, whatever it is offered.
func TestActivateLimits(t *testing.T) {
	for _, sticky := range []string{"true", "false"} {
		c := newClock()
		e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
		begin(t, e, strings.Replace(offers("\nsticky: "+sticky), "assignments: 1", "assignments: 2", 1))
		counted := 0
		for range 30 {
			d, err := e.Decide(t.Context(), "shop", "ann")
			if err != nil {
				t.Fatal(err)
			}
			if again, err := e.Decide(t.Context(), "shop", "ann"); err != nil || again.Token != d.Token {
				t.Errorf("before it is activated: %+v, was %+v, %v", again, d, err)
			}
			switch s, err := e.Activate(t.Context(), "shop", d.Token, true); {
			case err != nil:
				t.Fatal(err)
			case s == Accepted && d.Reason == Split:
				counted++
			case s != OverLimit && s != Late:
				t.Errorf("%v of %+v", s, d)
			}
			settle(t, e, c, 25*time.Second, 1)
		}
		info, err := e.Get(t.Context(), "shop")
		if n := info.Arms[0].Decisions + info.Arms[1].Decisions; err != nil || n != 2 {
			t.Errorf("sticky %s: %d decisions count, %v", sticky, n, err)
		}
		if counted < 2 {
			t.Errorf("sticky %s: %d were accepted", sticky, counted)
		}
	}
}

// What cannot be activated says so.
func TestActivateErrors(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, shop)
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Activate(t.Context(), "shop", d.Token, true); !errors.Is(err, ErrState) {
		t.Errorf("it counts already: %v", err)
	}
	if _, err := e.Activate(t.Context(), "shop", "forged", true); !errors.Is(err, ErrToken) {
		t.Error(err)
	}
	if _, err := e.Activate(t.Context(), "none", d.Token, true); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	begin(t, e, strings.Replace(offers(""), "name: shop", "name: other", 1))
	if d, err = e.Decide(t.Context(), "other", "ann"); err != nil {
		t.Fatal(err)
	}
	if err := e.TakeOff(t.Context(), "other", d.Name); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 1)
	if s, err := e.Activate(t.Context(), "other", d.Token, true); s != Late || err != nil {
		t.Errorf("of an arm that is off: %v, %v", s, err)
	}
	if d, err = e.Decide(t.Context(), "other", "ann"); err != nil || d.Token == "" {
		t.Fatal(d, err)
	}
	if err := e.Pause(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if s, err := e.Activate(t.Context(), "other", d.Token, true); s != Accepted || err != nil {
		t.Errorf("paused: %v, %v", s, err)
	}
	if err := e.Stop(t.Context(), "other", ""); err != nil {
		t.Fatal(err)
	}
	if s, err := e.Activate(t.Context(), "other", d.Token, true); s != Accepted || err != nil {
		t.Errorf("stopping: %v, %v", s, err)
	}
	if err := e.StopNow(t.Context(), "other", "", "other"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []Status{Void, Late} {
		if s, err := e.Activate(t.Context(), "other", d.Token, true); s != want || err != nil {
			t.Errorf("stopped: %v, %v", s, err)
		}
		c.Add(10 * time.Second)
	}
}

// A rule that is found to have stopped when the store is opened again has not been ended yet: who
// activates then is answered as after the end, and the experiment does not fail.
func TestActivateStopped(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, strings.NewReplacer("{policy: dp-klucb, first: 20}", "dp-se", "floor: 0.1", "risk: 0.05",
		"unit: {of: person, assignments: 1}", "unit: {of: visit}\nsticky: false").Replace(offers("")))
	decide := func() Decision {
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for range 400 {
		var reports []Report
		for range 100 {
			d := decide()
			if _, err := e.Activate(t.Context(), "shop", d.Token, true); err != nil {
				t.Fatal(err)
			}
			if d.Arm == 1 {
				reports = append(reports, Report{d.Token, 1})
			}
		}
		if _, err := e.Rewards(t.Context(), "shop", reports); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Minute, 1)
		last := decide()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		st, err := mem.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		opened, err := st.Begin(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		x, err := e.restore(t.Context(), st, opened.Experiments[0], false)
		if err != nil {
			t.Fatal(err)
		}
		if x.play != nil && x.play.Stopped() {
			k, _ := x.sign.read(last.Token)
			for _, what := range []reporting{activated, notShown} {
				if s, err := x.activate(reported{ticket: k, what: what}, e.now()); s != Void || err != nil {
					t.Errorf("%d is %q, %v", what, s, err)
				}
			}
			return
		}
		e = open(t, cfg)
		settle(t, e, c, time.Second, 1)
	}
	t.Fatal("the rule does not stop")
}

// What came of an offer is forgotten over a restart when its window has passed. Who was assigned is
// answered the same nevertheless, also in a pause.
func TestActivatedLongAgo(t *testing.T) {
	c := newClock()
	cfg := Config{Store: store.NewMemory().Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, offers(""))
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Activate(t.Context(), "shop", d.Token, true); s != Accepted || err != nil {
		t.Fatal(s, err)
	}
	c.Add(2 * time.Minute)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	for range 2 {
		if again, err := e.Decide(t.Context(), "shop", "ann"); err != nil || again.Token != d.Token ||
			again.Reason != Split {
			t.Errorf("%+v, was %+v, %v", again, d, err)
		}
		if err := e.Pause(t.Context(), "shop"); err != nil {
			break
		}
	}
}
