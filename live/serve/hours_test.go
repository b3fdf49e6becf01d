package serve

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// Hours have each decision that counts, once, in the hour in which it was made; they are whole when
// the process was killed, and shown by who only reads.
func TestHours(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Clock: c.Now, Store: mem.Open}
	check := func(e *Engine, hours ...int) {
		t.Helper()
		got, err := e.Hours(t.Context(), "shop")
		if err != nil || len(got) != len(hours) {
			t.Fatalf("%v, %v, must be %v", got, err, hours)
		}
		info, err := e.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range got {
			sum := 0
			for a, n := range h.Decisions {
				sum += n
				info.Arms[a].Decisions -= n
			}
			if sum != hours[i] || h.From.UnixMilli()%hourMillis != 0 || i > 0 && !got[i-1].From.Before(h.From) {
				t.Errorf("%v, must be %v", got, hours)
			}
		}
		for _, a := range info.Arms {
			if a.Decisions != 0 {
				t.Errorf("%d decisions are in no hour", a.Decisions)
			}
		}
	}
	e := open(t, cfg)
	begin(t, e, with(""))
	check(e)
	decide := func(from, to int) {
		for i := from; i < to; i++ {
			for range 2 { // the second time nothing is assigned
				if _, err := e.Decide(t.Context(), "shop", fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := e.DecideFor(t.Context(), "shop", Ask{Force: "red"}); err != nil {
			t.Fatal(err)
		}
	}
	decide(0, 5)
	check(e, 5)
	c.Add(3 * time.Hour)
	decide(5, 12)
	c.Add(time.Hour)
	decide(12, 300)
	check(e, 5, 7, 288)
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	decide(300, 310) // which may be lost
	e = open(t, cfg) // another process takes over
	info, err := e.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	check(e, 5, 7, info.Arms[0].Decisions+info.Arms[1].Decisions-12)
	decide(310, 320)
	c.Add(2 * time.Hour)
	decide(320, 321)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.ReadOnly = true
	check(open(t, cfg), 5, 7, info.Arms[0].Decisions+info.Arms[1].Decisions-2, 1)
}

// The first hours come in bins that grow with the age: none is lost, each is in its bin, and of an older
// experiment, or one that another process has begun, there are none.
func TestEarly(t *testing.T) {
	h := hours{at: -1, n: make([]int, 2)}
	const began = 1_700_000_003_000 // ends within no bin
	made := map[int64]int{}
	seen := map[time.Duration]bool{}
	for now, n := int64(began), 0; now < began+30*hourMillis; now, n = now+int64(700+n*n), n+1 {
		arm := n % 3 / 2
		h.count(arm, now)
		made[now]++
		r := &h.first
		if r.over {
			if now-began < 24*hourMillis {
				t.Fatalf("there are none after %v", time.Duration(now-began)*time.Millisecond)
			}
			continue
		}
		step := recentSteps[r.step]
		seen[time.Duration(step)*time.Millisecond] = true
		if len(r.bins) > mostBins || r.step > 0 && len(r.bins)*int(step) < mostBins*int(recentSteps[r.step-1])-int(step) {
			t.Fatalf("%d bins of %d ms", len(r.bins), step)
		}
		want := make([]int, len(r.bins))
		for at, k := range made {
			want[at/step-r.began] += k
		}
		for i, bin := range r.bins {
			for _, k := range bin {
				want[i] -= k
			}
			if want[i] != 0 {
				t.Fatalf("bin %d of %d ms misses %d", i, step, want[i])
			}
		}
	}
	if len(seen) != len(recentSteps) {
		t.Errorf("bins were %v", seen)
	}
	again := hours{at: -1, n: make([]int, 2)}
	if err := again.restore(h.write()); err != nil {
		t.Fatal(err)
	}
	if again.count(0, began+31*hourMillis); again.first.bins != nil {
		t.Error("an experiment that went on has bins")
	}
}

// Where decisions count when they are activated, so do hours.
func TestHoursOfActivations(t *testing.T) {
	c := newClock()
	e := open(t, Config{Clock: c.Now, Store: store.NewMemory().Open})
	begin(t, e, with("exposure: activate"))
	var all []Decision
	for i := range 6 {
		d, err := e.Decide(t.Context(), "shop", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if h, err := e.Hours(t.Context(), "shop"); err != nil || len(h) != 0 {
		t.Errorf("%v, %v", h, err)
	}
	for i, d := range all {
		if s, err := e.Activate(t.Context(), "shop", d.Token, i%3 > 0); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
	}
	h, err := e.Hours(t.Context(), "shop")
	if err != nil || len(h) != 1 || h[0].Decisions[0]+h[0].Decisions[1] != 4 {
		t.Errorf("%v, %v", h, err)
	}
}

// Hours that are damaged fail their experiment alone.
func TestDamagedHours(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	e, err := Open(t.Context(), Config{Clock: c.Now, Store: mem.Open})
	if err != nil {
		t.Fatal(err)
	}
	begin(t, e, with(""))
	if _, err := e.Decide(t.Context(), "shop", "ann"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, rows := range [][]store.Hour{{{At: 1, Decisions: []byte{1}}}, {{At: 1, Decisions: []byte{1, 2, 3}}},
		{{At: 2, Decisions: []byte{1, 2}}, {At: 2, Decisions: []byte{1, 2}}}, {{At: -1}}} {
		x := hours{at: -1, n: make([]int, 2)}
		if err := x.restore(rows); !errors.Is(err, errHours) {
			t.Errorf("%v: %v", rows, err)
		}
	}
	e, err = Open(t.Context(), Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
		s, err := mem.Open(ctx)
		return badHours{s}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if x, err := e.Get(t.Context(), "shop"); err != nil || x.State != Failed || x.Reason != errHours.Error() {
		t.Errorf("%v %q, %v", x.State, x.Reason, err)
	}
}

type badHours struct{ store.Store }

func (s badHours) Load(ctx context.Context, id int64) (store.Stored, error) {
	out, err := s.Store.Load(ctx, id)
	out.Hours = []store.Hour{{At: 1}}
	return out, err
}
