package serve

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// near says whether so many of n are what a probability makes likely: within six standard
// deviations, a false alarm has a probability below 2e-9.
func near(got, n int, p float64) bool {
	return math.Abs(float64(got)-p*float64(n)) <= 6*math.Sqrt(p*(1-p)*float64(n))
}

// A share of the units is in an experiment, always the same ones, and whether a unit is tells
// nothing of whether it is in another. The others count nothing and are not remembered.
func TestShare(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	for _, name := range []string{"a", "b", "c"} {
		begin(t, e, strings.NewReplacer("shop", name, "floor: 0.1", map[string]string{"a": "share: 0.1",
			"b": "share: 0.1", "c": "share: 0.5\nsticky: false"}[name]).Replace(shop))
	}
	const n = 20_000
	in, both, drawn := 0, 0, 0
	for i := range n {
		got := map[string]bool{}
		for _, name := range []string{"a", "b"} {
			for again := range 2 {
				d, err := e.Decide(t.Context(), name, fmt.Sprint(i))
				if err != nil || (d.Token == "") != (d.Reason == Default) || d.Reason == Default &&
					d.Name != "red" {
					t.Fatalf("%+v, %v", d, err)
				}
				if was := got[name]; again == 1 && was != (d.Token != "") {
					t.Fatalf("unit %d is in %s, and is not", i, name)
				}
				got[name] = d.Token != ""
			}
		}
		if got["a"] {
			in++
			if got["b"] {
				both++
			}
		}
		if d, err := e.Decide(t.Context(), "c", ""); err != nil {
			t.Fatal(err)
		} else if d.Token != "" {
			drawn++
		}
	}
	if !near(in, n, 0.1) || !near(both, n, 0.01) || !near(drawn, n, 0.5) {
		t.Errorf("of %d, %d are in a, %d of them in b; %d of those without a name in c", n, in, both, drawn)
	}
	x, _ := e.find("a")
	if info, _ := e.Get(t.Context(), "a"); info.Arms[0].Decisions+info.Arms[1].Decisions != in ||
		len(x.units) != in {
		t.Errorf("%+v, and %d units, of %d", info.Arms, len(x.units), in)
	}
}

// No unit is in two experiments of a layer, and ranges that overlap do not run at once.
func TestLayers(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	in := func(name, layer string) string {
		return strings.NewReplacer("shop", name, "floor: 0.1", "layer: {name: "+layer+"}").Replace(shop)
	}
	begin(t, e, in("a", "checkout, from: 0, to: 0.4"))
	begin(t, e, in("b", "checkout, from: 0.4, to: 1"))
	begin(t, e, in("other", "cart, from: 0, to: 0.4"))
	const n = 5000
	count := map[string]int{}
	for i := range n {
		names := ""
		for _, name := range []string{"a", "b", "other"} {
			d, err := e.Decide(t.Context(), name, fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			if d.Token != "" {
				names += name
			}
		}
		count[names]++
	}
	if len(count) != 4 || !near(count["aother"], n, 0.16) || !near(count["bother"], n, 0.24) ||
		!near(count["a"], n, 0.24) || !near(count["b"], n, 0.36) {
		t.Errorf("%v", count)
	}
	if err := e.Create(t.Context(), parse(t, in("c", "checkout, from: 0.3, to: 0.5"))); err != nil {
		t.Fatal(err)
	}
	for _, blocker := range []string{"a", "b"} {
		if err := e.Start(t.Context(), "c"); !errors.Is(err, ErrState) ||
			!strings.Contains(err.Error(), `layer "checkout" from 0.3 to 0.5 overlaps that of experiment`) {
			t.Errorf("%v", err)
		}
		if err := e.StopNow(t.Context(), blocker, "", blocker); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Start(t.Context(), "c"); err != nil {
		t.Error(err)
	}
}

// forced asks for arms by force, and says what of it was counted.
func forced(t *testing.T, decide func(e *Engine, ask Ask) (Decision, error)) (counted []string) {
	t.Helper()
	c, mem := newClock(), store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: c.Now})
	if err := e.Create(t.Context(), parse(t, shop)); err != nil {
		t.Fatal(err)
	}
	for _, state := range []State{Draft, Running, Paused, Stopped} {
		switch state {
		case Running:
			if err := e.Start(t.Context(), "shop"); err != nil {
				t.Fatal(err)
			}
		case Paused:
			if err := e.Pause(t.Context(), "shop"); err != nil {
				t.Fatal(err)
			}
		case Stopped:
			if err := e.Stop(t.Context(), "shop", "red"); err != nil {
				t.Fatal(err)
			}
		}
		for _, arm := range []string{"red", "blue"} {
			d, err := decide(e, Ask{Unit: "ann", Force: arm})
			if err != nil {
				t.Fatal(err)
			}
			if d.Token == "" || d.Name != arm || d.Reason != Forced || !d.Expires.IsZero() {
				counted = append(counted, fmt.Sprintf("%s: %+v", state, d))
			}
			for reward, want := range map[float64]Status{0: InRange, 1: InRange, 1.5: Clipped, -1e300: Clipped,
				math.Inf(1): Clipped, math.NaN(): Clipped} {
				out, err := e.Rewards(t.Context(), "shop", []Report{{d.Token, reward}})
				if err != nil || out[0] != (Result{Status: want}) {
					counted = append(counted, fmt.Sprintf("%s: %v is %v, %v", state, reward, out, err))
				}
			}
			if s, err := e.Activate(t.Context(), "shop", d.Token, true); s != Accepted || err != nil {
				counted = append(counted, fmt.Sprintf("%s: it is activated: %v, %v", state, s, err))
			}
		}
		x, _ := e.find("shop")
		info, _ := e.Get(t.Context(), "shop")
		if n := info.Arms[0].Decisions + info.Arms[1].Decisions + len(x.units); n > 0 {
			counted = append(counted, fmt.Sprintf("%s: %d decisions or units", state, n))
		}
	}
	if _, err := e.DecideFor(t.Context(), "shop", Ask{Force: "pink"}); !errors.Is(err, ErrForce) {
		t.Error(err)
	}
	return counted
}

// A forced arm is given in every state, and counts nowhere; who reports on it is told whether that is in range.
func TestForced(t *testing.T) {
	if got := forced(t, func(e *Engine, ask Ask) (Decision, error) {
		return e.DecideFor(t.Context(), "shop", ask)
	}); len(got) > 0 {
		t.Errorf("it is counted: %v", got)
	}
	// a service that counts it, behind the same answer, is found out
	if got := forced(t, func(e *Engine, ask Ask) (Decision, error) {
		if _, err := e.Decide(t.Context(), "shop", ask.Unit); err != nil {
			return Decision{}, err
		}
		return e.DecideFor(t.Context(), "shop", ask)
	}); len(got) == 0 {
		t.Error("a service that counts it is not found out")
	}
}

// Who asks with another context is given the fallback, also where they were assigned before, and also
// when the experiment has stopped.
func TestOnly(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	begin(t, e, shop+"only: {country: [NL, BE]}\nfallback: blue\n")
	ask := func(country any, want Reason) (d Decision) {
		t.Helper()
		d, err := e.DecideFor(t.Context(), "shop",
			Ask{Unit: "ann", Context: map[string]any{"country": country}})
		if err != nil || d.Reason != want || (d.Token != "") != (want == Split) ||
			want == Default && d.Name != "blue" {
			t.Errorf("%v: %+v, %v", country, d, err)
		}
		return d
	}
	ask("FR", Default)
	ask(nil, Default)
	first := ask("NL", Split)
	ask("FR", Default)
	if again := ask("BE", Split); again.Token != first.Token {
		t.Errorf("%+v, was %+v", again, first)
	}
	if err := e.StopNow(t.Context(), "shop", "red", "shop"); err != nil {
		t.Fatal(err)
	}
	ask("FR", Default)
	if d := ask("NL", Static); d.Name != "red" {
		t.Errorf("%+v", d)
	}
}

// Of several experiments of a layer that are in the way the error names the one that was created first.
func TestOverlapNamesTheFirst(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	in := func(name, layer string) string {
		return strings.NewReplacer("shop", name, "floor: 0.1", "layer: {name: page, "+layer+"}").Replace(shop)
	}
	for i, name := range []string{"third", "second", "first", "last", "other"} {
		begin(t, e, in(name, fmt.Sprintf("from: 0.%d, to: 0.%d", i, i+1)))
	}
	if err := e.Create(t.Context(), parse(t, in("wide", "from: 0, to: 1"))); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := e.Start(t.Context(), "wide"); err == nil || !strings.Contains(err.Error(), `experiment "third"`) {
			t.Fatal(err)
		}
	}
}
