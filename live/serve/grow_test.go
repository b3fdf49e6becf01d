package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// grownShop has all that is kept by arm: cells, a metric, a guard, hours and the floor's coin.
const grownShop = shop + `
by: {device: [phone, desktop]}
traffic: 100000
metrics: [{name: basket, budget: {epsilon: 1}}]
guard: [{metric: basket, below: 0.99, risk: 0.01}]
`

// An arm that is added is given from the next tick on, with its value, whenever the service was restarted;
// who was assigned stays so; the transcript says it and replays; hours and the coin's counts stay right.
func TestAddedArm(t *testing.T) {
	for _, restart := range []string{"never", "before the tick", "after the tick", "after the line", "always"} {
		t.Run(restart, func(t *testing.T) {
			c, cfg := newClock(), Config{Store: store.NewMemory().Open}
			cfg.Clock = c.Now
			e := open(t, cfg)
			again := func(when string) {
				t.Helper()
				if when != restart && restart != "always" {
					return
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = open(t, cfg)
			}
			begin(t, e, strings.Replace(grownShop, "dp-klucb", "dp-klucb-j", 1))
			units := 0
			come := func(n int) (arms []string) {
				t.Helper()
				var out []Outcome
				for range n {
					device := []string{"phone", "desktop"}[units%2]
					d := must(e.DecideFor(t.Context(), "shop", Ask{Unit: fmt.Sprint("unit ", units),
						Context: map[string]any{"device": device}}))
					units++
					arms = append(arms, d.Name)
					if d.Name == "green" && string(d.Value) != `{"a":"café / b","hex":"#0c0"}` {
						t.Fatalf("its value is %s", d.Value)
					}
					out = append(out, Outcome{Report: Report{d.Token, 1}, Metrics: map[string]float64{"basket": 0.1}})
				}
				for _, r := range must(e.Outcomes(t.Context(), "shop", out)) {
					if r.Status != Accepted || r.Err != nil {
						t.Fatalf("%+v", r)
					}
				}
				return arms
			}
			before := come(60)
			settle(t, e, c, time.Hour, 1)
			settle(t, e, c, time.Second, 2)
			before = append(before, come(30)...)
			add := Change{Add: []Added{{Name: "green", Value: json.RawMessage(`{ "hex": "#0c0", "a":"caf\u00e9 \/ b"}`)}}}
			if err := e.Change(t.Context(), "shop", add); err != nil {
				t.Fatal(err)
			}
			if info := must(e.Get(t.Context(), "shop")); len(info.Arms) != 2 || len(info.Changes) != 1 {
				t.Errorf("before the tick: %d arms, %v", len(info.Arms), info.Changes)
			}
			again("before the tick")
			settle(t, e, c, time.Second, 1)
			again("after the tick")
			if info := must(e.Get(t.Context(), "shop")); len(info.Arms) != 3 || len(info.Changes) != 0 ||
				len(info.Cells[1].Arms) != 3 || len(info.Metrics[0]) != 3 {
				t.Fatalf("after the tick: %+v", info)
			}
			settle(t, e, c, time.Second, 1)
			again("after the line")
			if got := transcript(t, e); !slices.ContainsFunc(got, func(line string) bool {
				return strings.Contains(line, `"add":2,"change":{"add":[{"name":"green","value":{"a":"café / b","hex":"#0c0"}}]}`)
			}) {
				t.Errorf("the transcript is %q", got)
			}
			for i, want := range before { // sticky
				d := must(e.DecideFor(t.Context(), "shop", Ask{Unit: fmt.Sprint("unit ", i)}))
				if d.Name != want {
					t.Errorf("unit %d had %s and has %s", i, want, d.Name)
				}
			}
			if d := must(e.DecideFor(t.Context(), "shop", Ask{Unit: "x", Force: "green"})); d.Name != "green" {
				t.Errorf("forced: %+v", d)
			}
			if n := len(slices.DeleteFunc(come(40), func(a string) bool { return a != "green" })); n < 20 {
				t.Errorf("%d of 40 have the new arm", n)
			}
			again("")
			settle(t, e, c, time.Hour, 1)
			settle(t, e, c, time.Second, 3)
			again("")
			info := must(e.Get(t.Context(), "shop"))
			inCells := 0
			for _, cell := range info.Cells {
				inCells += cell.Arms[2].Released
			}
			if q := info.Arms[2]; q.Released < 20 || q.Decisions < 20 || inCells != q.Released || info.Metrics[0][2] == 0 {
				t.Errorf("%+v of %+v", info.Arms, info.Cells)
			}
			each := info.Guards().Each[0].Arms // the others were there to be judged as before
			if len(each) != 3 || each[2].Interval == nil {
				t.Errorf("guards %+v", each)
			}
			sum := 0
			for _, h := range must(e.Hours(t.Context(), "shop")) {
				for _, n := range h.Decisions {
					sum += n
				}
			}
			if r := info.SampleRatio(); sum != units || r.Evidence > 1e6 || len(r.Arms) != 3 {
				t.Errorf("%d decisions in hours, of %d; %+v", sum, units, r)
			}
			text := strings.Join(transcript(t, e), "\n") + "\n"
			r, err := Replay(strings.NewReader(text), catalog.Catalog{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Arms) != 3 || r.Experiment.Arms[2].Name != "green" || r.Arms[2].Released != info.Arms[2].Released ||
				r.Arms[2].Sum != info.Arms[2].Sum {
				t.Errorf("replayed %+v", r.Arms)
			}
			_, points, err := e.Course(t.Context(), "shop")
			seen := 0
			for p, err := range points {
				if err != nil {
					t.Fatal(err)
				}
				if p.Arm == 2 {
					seen++
				}
			}
			if err != nil || seen == 0 {
				t.Errorf("its course has %d points, %v", seen, err)
			}
			if err := e.TakeOff(t.Context(), "shop", "green"); err != nil {
				t.Fatal(err)
			}
			settle(t, e, c, time.Second, 3)
			again("")
			if end := stopped(t, e, c, "shop", "red"); end.State != Stopped || !end.Arms[2].Off {
				t.Errorf("%+v", end)
			}
			again("")
			if _, err := Replay(strings.NewReader(strings.Join(transcript(t, e), "\n")+"\n"), catalog.Catalog{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// What cannot be added is one clear error, and nothing changes.
func TestAddedArmRefused(t *testing.T) {
	for _, bad := range []struct {
		text, name, field, want string
	}{
		{shop, "red", "add[0].name", `is "red", must be a name that no arm has, or had`},
		{shop, "", "add[0].name", "is missing"},
		{shop, strings.Repeat("n", 300), "add[0].name", ""},
		{strings.Replace(shop, "{policy: dp-klucb, first: 20}", "dp-se\nhorizon: 10000", 1), "green", "add[0]",
			"policy dp-se cannot take it: *policy.DPSE takes no arm while it is played: it drops arms by comparing"},
		{strings.Replace(shop, "{policy: dp-klucb, first: 20}", "adap-klucb", 1), "green", "add[0]",
			"nothing is proved of it with an arm that comes later"},
		{strings.Replace(shop, "{policy: dp-klucb, first: 20}", "dp-sed\nrisk: 0.1", 1), "green", "add[0]",
			"the risk of a trial, 0.1, is of a wrong answer among the arms that it began with"},
	} {
		c, cfg := newClock(), Config{Store: store.NewMemory().Open}
		cfg.Clock = c.Now
		e := open(t, cfg)
		begin(t, e, bad.text)
		err := e.Change(t.Context(), "shop", Change{Add: []Added{{Name: bad.name}}})
		var of *keyed.Error
		if err == nil || !errors.As(err, &of) || of.Field != bad.field || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q: got %v, want %s %s", bad.name, err, bad.field, bad.want)
		}
		settle(t, e, c, time.Second, 2)
		if info := must(e.Get(t.Context(), "shop")); len(info.Arms) != 2 || info.State != Running {
			t.Errorf("%q: %+v", bad.name, info.State)
		}
	}
	// A value that would not be read again as it is played, and more arms than the policy has room for.
	for _, bad := range []struct {
		text  string
		add   []Added
		field string
	}{
		{shop, []Added{{Name: "green", Value: json.RawMessage("1e2")}}, "add[0].value"},
		{shop, []Added{{Name: "green", Value: json.RawMessage(strings.Repeat("[", 40) + strings.Repeat("]", 40))}}, "add[0].value"},
		{strings.Replace(shop, "{policy: dp-klucb, first: 20}", "{policy: dp-window-klucb, window: 51, first: 8}", 1),
			[]Added{{Name: "green"}, {Name: "white"}}, "add[0]"},
	} {
		c, cfg := newClock(), Config{Store: store.NewMemory().Open}
		cfg.Clock = c.Now
		e := open(t, cfg)
		begin(t, e, bad.text)
		var of *keyed.Error
		if err := e.Change(t.Context(), "shop", Change{Add: bad.add}); !errors.As(err, &of) || of.Field != bad.field {
			t.Errorf("%s: %v", bad.add[0].Value, err)
		}
		settle(t, e, c, time.Second, 2)
		must(0, e.Close())
		if info := must(open(t, cfg).Get(t.Context(), "shop")); info.State != Running {
			t.Errorf("%s: it is %s", bad.add[0].Value, info.State)
		}
	}
	// twice in one change, of a draft, and after the decisions have ended
	c, cfg := newClock(), Config{Store: store.NewMemory().Open}
	cfg.Clock = c.Now
	e := open(t, cfg)
	if err := e.Create(t.Context(), parse(t, shop)); err != nil {
		t.Fatal(err)
	}
	green := Change{Add: []Added{{Name: "green"}}}
	if err := e.Change(t.Context(), "shop", green); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "for a draft") {
		t.Errorf("a draft: %v", err)
	}
	if err := e.Start(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if err := e.Change(t.Context(), "shop", Change{Add: []Added{{Name: "a"}, {Name: "a"}}}); !errors.Is(err, ErrState) {
		t.Errorf("twice: %v", err)
	}
	if _, err := e.Decide(t.Context(), "shop", "unit"); err != nil {
		t.Fatal(err)
	}
	if err := e.Change(t.Context(), "shop", green); err != nil {
		t.Fatal(err)
	}
	if err := e.Change(t.Context(), "shop", green); !errors.Is(err, ErrState) { // it is on its way
		t.Errorf("again: %v", err)
	}
	if info := stopped(t, e, c, "shop", ""); len(info.Arms) != 2 || info.State != Stopped {
		t.Errorf("an arm is added after the end: %d, %v", len(info.Arms), info.State)
	}
}

// A share that grows keeps who is in and takes others in by the same hash; one that shrinks is for new units.
// Both are lines of the transcript, and hold after a restart; so are a description and who may read.
func TestShareChanges(t *testing.T) {
	c, cfg := newClock(), Config{Store: store.NewMemory().Open}
	cfg.Clock = c.Now
	e := open(t, cfg)
	begin(t, e, shop+"share: 0.3\n")
	in := func(n int) map[string]bool {
		out := map[string]bool{}
		for i := range n {
			unit := fmt.Sprint("unit ", i)
			out[unit] = must(e.Decide(t.Context(), "shop", unit)).Reason == Split
		}
		return out
	}
	change := func(to Change) {
		t.Helper()
		if err := e.Change(t.Context(), "shop", to); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Second, 2)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
		settle(t, e, c, time.Second, 1)
	}
	count := func(of map[string]bool) (n int) {
		for _, is := range of {
			if is {
				n++
			}
		}
		return n
	}
	low := in(300)
	wide, says, public := 0.8, "more of them", true
	change(Change{Share: &wide, Description: &says, Public: &public})
	high := in(300)
	for unit, was := range low {
		if was && !high[unit] {
			t.Errorf("%s was in, and is not", unit)
		}
	}
	// 300 coins of .3 and .8: outside of these bounds with probability below 1e-6
	if a, b := count(low), count(high); a < 52 || a > 132 || b < 203 || b > 274 {
		t.Errorf("%d, then %d of 300 are in", a, b)
	}
	narrow := 0.1
	change(Change{Share: &narrow})
	after := in(600)
	fresh := 0
	for unit, is := range after {
		if _, old := high[unit]; old && is != high[unit] {
			t.Errorf("%s was assigned: %v, and now %v", unit, high[unit], is)
		} else if !old && is {
			fresh++
		}
	}
	if fresh > 62 {
		t.Errorf("%d of 300 new units are in a tenth", fresh)
	}
	all := 1.0
	change(Change{Share: &all})
	info := must(e.Get(t.Context(), "shop"))
	if x := info.Experiment; x.Share != 0 || x.Description != says || !x.Public {
		t.Errorf("%+v", x)
	}
	r, err := Replay(strings.NewReader(strings.Join(transcript(t, e), "\n")+"\n"), catalog.Catalog{})
	if err != nil || r.Experiment.Share != 0 || r.Experiment.Description != says {
		t.Errorf("replayed %+v, %v", r, err)
	}
	for _, bad := range []float64{0, -1, 1.5} {
		var of *keyed.Error
		if err := e.Change(t.Context(), "shop", Change{Share: &bad}); !errors.As(err, &of) || of.Field != "share" {
			t.Errorf("share %v: %v", bad, err)
		}
	}
}
