package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// Over HTTP, a stop and a declared end release every decision, and then give everybody the arm that leads:
// the other half of the visitors would be destroyed now, and everybody be given the fallback.
func TestStopOverHTTP(t *testing.T) {
	const x = "/v1/experiments/shop"
	for _, how := range []string{"stop", "end"} {
		w := newWorld(t)
		terms := "floor: 0.1\n"
		if how == "end" {
			terms += "stop: {keep: leader}\nend: " + w.clock.Now().Add(200*time.Second).UTC().Format(time.RFC3339) + "\n"
		}
		w.want(201, "POST", "/v1/experiments", shop+terms)
		w.want(200, "POST", x+"/start", "")
		src, had := rand.New(rand.NewPCG(1, 2)), map[string]string{}
		get := func() (info infoJSON) {
			t.Helper()
			if err := json.Unmarshal([]byte(w.want(200, "GET", x, "")), &info); err != nil {
				t.Fatal(err)
			}
			return info
		}
		given := func(unit string) (arm, reason string) {
			t.Helper()
			var d struct{ Arm, Reason string }
			if err := json.Unmarshal([]byte(w.want(200, "POST", x+"/decisions", fmt.Sprintf(`{"unit": %q}`, unit))), &d); err != nil {
				t.Fatal(err)
			}
			return d.Arm, d.Reason
		}
		for n := 0; get().State != serve.Stopping && n < 200; n++ {
			for i := range 15 {
				unit := fmt.Sprint(n, " ", i)
				d := w.decide(unit)
				if had[unit] = d.Arm; d.Decision != nil && src.Float64() < map[string]float64{"red": .08, "blue": .3}[d.Arm] {
					w.want(200, "POST", x+"/rewards", reward(*d.Decision, "1"))
				}
			}
			if w.pass(time.Second); how == "stop" && n == 199 {
				w.want(200, "POST", x+"/stop", `{"keep": "leader"}`)
			}
		}
		was := get()
		decided, before := 0, 0
		for _, a := range was.Arms {
			decided, before = decided+a.Decisions, before+a.Released
		}
		if was.State != serve.Stopping || was.Keep != "leader" || was.Kept != "" || was.Wait != "rewards" ||
			was.Left != decided-before || was.Left < 500 || was.Until.Before(w.clock.Now().Add(58*time.Second)) ||
			was.Why != map[string]string{"stop": "operator", "end": "date"}[how] {
			t.Fatalf("%s: %+v", how, was)
		}
		for _, c := range []struct {
			status int
			body   string
			says   string
		}{{409, ``, "it is stopping already, until 20"}, {400, `{"now": true}`, fmt.Sprint("unreleased: ", was.Left)},
			{400, `{"now": true, "confirm": "shops"}`, fmt.Sprint("unreleased: ", was.Left)},
			{400, `{"keep": "leader", "confirm": "shop"}`, "without now"}, {400, `{"keep": "red", "arm": "blue"}`, "say keep"},
			{400, `{"keep": "pink"}`, "or leader"}} {
			if got := w.want(c.status, "POST", x+"/stop", c.body); !strings.Contains(got, c.says) {
				t.Errorf("%s: %s says %s, must say %s", how, c.body, got, c.says)
			}
		}
		w.want(409, "PATCH", x, `{"floor": 0.2}`)
		if arm, why := given("new"); arm != "red" || why != "static" {
			t.Errorf("%s: a new unit is given %s, %s", how, arm, why)
		}
		for unit, had := range had {
			if arm, why := given(unit); arm != had || why != "split" {
				t.Errorf("%s: %s had %s, and is given %s, %s", how, unit, had, arm, why)
			}
		}
		for range 70 {
			w.pass(time.Second)
		}
		is, after := get(), 0
		for _, a := range is.Arms {
			after += a.Released
		}
		if is.State != serve.Stopped || is.Kept != "blue" || is.Keep != "leader" || after != decided || is.Left != 0 {
			t.Errorf("%s: %+v", how, is)
		}
		for _, unit := range []string{"new", "0 1"} {
			if arm, why := given(unit); arm != "blue" || why != "static" {
				t.Errorf("%s: %s is given %s, %s", how, unit, arm, why)
			}
		}
		got := w.want(200, "GET", x+"/transcript", "")
		if !strings.Contains(got, `"rest":[{"arm":0,"rounds":`) || !strings.Contains(got, `"keep":1,"leader":true,"coins"`) {
			t.Errorf("%s: %s", how, got[len(got)-1000:])
		}
		t.Logf("%s: %d decisions, %d released before (%.0f %%), %d after; a stop now would destroy %d", how, decided, before,
			100*float64(before)/float64(decided), after, was.Left)
	}
}
