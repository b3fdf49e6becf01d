package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/serve/store"
)

// A rule whose last release is durable, and which is killed before the public tick that shows it,
// has stopped when it comes back, with the answer of the transcript.
func TestStoppedByItsLastLine(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, strings.NewReplacer("{policy: dp-klucb, first: 20}", "dp-se", "floor: 0.1", "risk: 0.05",
		"unit: {of: person, assignments: 1}", "unit: {of: visit}\nsticky: false").Replace(shop))
	var info Info
	for range 4000 {
		var reports []Report
		for range 50 {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil {
				t.Fatal(err)
			}
			if d.Arm == 1 && d.Token != "" {
				reports = append(reports, Report{d.Token, 1})
			}
		}
		if _, err := e.Rewards(t.Context(), "shop", reports); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Minute, 1)
		if err := e.Close(); err != nil { // at every tick, so also after the last release
			t.Fatal(err)
		}
		e = open(t, cfg)
		settle(t, e, c, time.Second, 1)
		if info, _ = e.Get(t.Context(), "shop"); info.State == Stopped || info.State == Failed {
			break
		}
	}
	if info.State != Stopped || info.Keep != 1 || info.Reason != "" {
		t.Fatalf("it is %s, keeps %d: %s", info.State, info.Keep, info.Reason)
	}
}
