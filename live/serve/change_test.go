package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// transcript is all lines that everybody may see.
func transcript(t testing.TB, e *Engine) (out []string) {
	t.Helper()
	lines, err := e.Transcript(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for line, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(string(line)))
	}
	return out
}

// What is changed holds from the next public tick on, with a line of the transcript, for what is
// decided from then on, also after a restart before the tick or after it. Windows that were promised
// stay as they are.
func TestChange(t *testing.T) {
	for _, restart := range []string{"never", "before the tick", "after the tick", "after the line"} {
		t.Run(restart, func(t *testing.T) {
			c, cfg := newClock(), Config{Store: store.NewMemory().Open}
			cfg.Clock = c.Now
			e := open(t, cfg)
			again := func(when string) {
				if when != restart {
					return
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = open(t, cfg)
			}
			begin(t, e, strings.Replace(shop, "floor: 0.1", "floor: 0.1\nsticky: false", 1))
			before, err := e.Decide(t.Context(), "shop", "")
			if err != nil {
				t.Fatal(err)
			}
			window, floor, end := 10*time.Second, 1.0/2, c.Now().Add(time.Hour)
			if err := e.Change(t.Context(), "shop", Change{Window: &window, Floor: &floor, End: &end}); err != nil {
				t.Fatal(err)
			}
			info, err := e.Get(t.Context(), "shop")
			if err != nil || info.Experiment.Window != time.Minute || len(info.Changes) != 1 {
				t.Errorf("before the tick: %v, %v, %v", info.Experiment.Window, info.Changes, err)
			}
			again("before the tick")
			settle(t, e, c, time.Second, 1)
			again("after the tick")
			// The line is shown at the tick after; an engine that was opened again may have had one more.
			if info, err = e.Get(t.Context(), "shop"); err != nil || info.Experiment.Window != window ||
				info.Experiment.Floor != floor || !info.Experiment.End.Equal(end) || len(info.Changes) > 0 ||
				info.Tick != 625*time.Millisecond || info.Batches != 0 && !strings.HasSuffix(restart, "the tick") {
				t.Errorf("%+v, %v", info, err)
			}
			settle(t, e, c, time.Second, 1)
			again("after the line")
			want := fmt.Sprintf(`{"change":{"end":%q,"window":"10s","floor":0.5}}`, end.Format(time.RFC3339))
			if got := transcript(t, e); len(got) != 2 || !strings.Contains(got[1], want[1:len(want)-1]) {
				t.Errorf("the transcript is %q, want %s", got, want)
			}
			for range 50 {
				d, err := e.Decide(t.Context(), "shop", "")
				if err != nil || !d.Expires.Equal(c.Now().Add(window)) || d.Propensity != 0.25 && d.Propensity != 0.75 {
					t.Fatalf("%+v, %v", d, err)
				}
			}
			settle(t, e, c, time.Second, 57)
			if s, err := e.Reward(t.Context(), "shop", Report{before.Token, 1}); s != Accepted || err != nil {
				t.Errorf("a window was cut short: %v, %v", s, err)
			}
			if n := len(transcript(t, e)); n != 2 && n != 3 {
				t.Errorf("%d lines", n)
			}
			settle(t, e, c, time.Second, 2)
			if s, err := e.Reward(t.Context(), "shop", Report{before.Token, 1}); s != Late || err != nil {
				t.Errorf("a window was made longer: %v, %v", s, err)
			}
			settle(t, e, c, time.Second, 3)
			if info, err = e.Get(t.Context(), "shop"); err != nil || info.Batches < 2 {
				t.Errorf("nothing was released: %+v, %v", info, err)
			}
			settle(t, e, c, time.Hour, 3) // at its end, of the rest, and of its line
			if info, err = e.Get(t.Context(), "shop"); err != nil || info.State != Stopped {
				t.Errorf("after its end: %s, %v", info.State, err)
			}
		})
	}
}

// An experiment whose end has passed is not started: it would stop at once, and its name would be taken.
func TestStartAfterTheEnd(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	text := shop + "end: " + c.Now().Add(time.Hour).UTC().Format(time.RFC3339) + "\n"
	if err := e.Create(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Hour)
	var in *keyed.Error
	if err := e.Start(t.Context(), "shop"); !errors.As(err, &in) || in.Field != "end" {
		t.Errorf("started after its end: %v", err)
	}
	if info, err := e.Get(t.Context(), "shop"); err != nil || info.State != Draft {
		t.Errorf("%v, %v", info.State, err)
	}
	end := c.Now().Add(time.Hour)
	if err := e.Change(t.Context(), "shop", Change{End: &end}); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
}

// A change that cannot be is refused whole, with its field; one of a draft is made at once.
func TestChangeErrors(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	if err := e.Create(t.Context(), parse(t, shop)); err != nil {
		t.Fatal(err)
	}
	past, never, good := c.Now(), time.Time{}, 0.3
	if err := e.Change(t.Context(), "shop", Change{Floor: &good, End: &never}); err != nil {
		t.Fatal(err)
	}
	if info, err := e.Get(t.Context(), "shop"); err != nil || info.Experiment.Floor != good || len(info.Changes) > 0 {
		t.Errorf("a draft: %+v, %v", info, err)
	}
	short, nan, one := time.Microsecond, math.NaN(), 1.0
	check := func(state string, bad Change, field string) {
		t.Helper()
		bad2 := bad
		if bad2.Floor == nil {
			bad2.Floor = &good // which does not change either
		}
		var of *keyed.Error
		err := e.Change(t.Context(), "shop", bad2)
		if !errors.As(err, &of) || of.Field != field {
			t.Errorf("%s: %v, want an error of %s", state, err, field)
		}
		if info, err := e.Get(t.Context(), "shop"); err != nil || len(info.Changes) > 0 {
			t.Errorf("%s: half of it is done: %+v, %v", state, info.Changes, err)
		}
	}
	check("draft", Change{Off: []string{"red"}}, "off[0]")
	if err := e.Start(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	check("", Change{Window: &short}, "window")
	check("", Change{End: &past}, "end")
	check("", Change{Floor: &nan}, "floor")
	check("", Change{Floor: &one}, "floor")
	check("", Change{Off: []string{"red", "pink"}}, "off[1]")
	check("", Change{Off: []string{"red", "red"}}, "off[1]")
	check("", Change{Off: []string{"red", "blue"}}, "off[1]")
	if err := e.Stop(t.Context(), "shop", ""); err != nil {
		t.Fatal(err)
	}
	if err := e.Change(t.Context(), "shop", Change{Floor: &good}); !errors.Is(err, ErrState) {
		t.Errorf("it has stopped: %v", err)
	}
}

// The JSON of a change is read back.
func TestChangeJSON(t *testing.T) {
	end, never, w, floor := time.UnixMilli(1_000_000_000_123).UTC(), time.Time{}, time.Hour, 0.0
	for _, c := range []Change{{}, {End: &end}, {End: &never, Window: &w}, {Floor: &floor, Off: []string{"a", "b"}}} {
		text, err := json.Marshal(c)
		var back Change
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || (c.End == nil) != (back.End == nil) || c.End != nil && !back.End.Equal(*c.End) ||
			!slices.Equal(c.Off, back.Off) || (c.Window == nil) != (back.Window == nil) ||
			(c.Floor == nil) != (back.Floor == nil) {
			t.Errorf("%s is %+v, was %+v: %v", text, back, c, err)
		}
	}
}
