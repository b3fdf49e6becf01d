package serve

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/serve/store"
)

const aRamp = "\nramp: [{share: 0.2, for: 5m}, {share: 0.6, for: 1m}, {share: 1}]\n"

// A ramp steps up when its time is over and each arm surely keeps each guard, over restarts, each time with a line
// of the transcript. Who was in stays in, with the same decision, and who is not gets the fallback and counts nowhere.
// A transcript in which it steps up earlier, or elsewhere, does not replay.
func TestRamp(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	g := &guardTraffic{c: c, e: open(t, cfg)}
	kind := strings.NewReplacer("below: 5", "below: 9", "{epsilon: 1}", "{epsilon: 40}")
	begin(t, g.e, kind.Replace(guardedSplit)+aRamp)
	began := c.Now()
	in := map[string]Decision{}
	shares := map[float64]time.Duration{}
	for len(shares) < 3 {
		info, err := g.e.Get(t.Context(), "shop")
		if err != nil || info.Ramp() == nil || c.Now().Sub(began) > time.Hour {
			t.Fatalf("%+v, %v, after %v", info.Ramp(), err, shares)
		}
		share := info.Ramp().Share
		if _, was := shares[share]; !was {
			shares[share] = c.Now().Sub(began)
			n := 0
			for i := range 1000 {
				unit := fmt.Sprint("unit ", i)
				d, err := g.e.Decide(t.Context(), "shop", unit)
				if err != nil || (d.Token == "") != (d.Reason == Default) || d.Token == "" && d.Name != "red" {
					t.Fatalf("%+v, %v", d, err)
				}
				if was, there := in[unit]; there && (d.Token == "" || d.Name != was.Name) {
					t.Fatalf("%s had %+v, and has %+v", unit, was, d)
				}
				if d.Token != "" {
					in[unit] = d
					n++
				}
			}
			if !near(n, 1000, share) {
				t.Errorf("of 1000 units %d are in, at %v", n, share)
			}
			if err := g.e.Close(); err != nil {
				t.Fatal(err)
			}
			g.e = open(t, cfg)
		}
		g.come(t, 10)
		settle(t, g.e, c, 10*time.Second, 1)
	}
	if shares[0.2] != 0 || shares[0.6] < 5*time.Minute || shares[1] < shares[0.6]+48*time.Second { // seen 11 s later at most
		t.Errorf("it has stepped up after %v", shares)
	}
	if n := strings.Count(audited(t, g.e), `"did":"ramp"`); n != 2 {
		t.Errorf("the journal has %d steps", n)
	}
	text := published(t, g.e)
	r, err := Replay(strings.NewReader(text), catalog.Catalog{})
	if err != nil || len(r.watch.steps) != 3 || r.watch.at != 2 || r.Experiment.Share != 0 {
		t.Fatalf("%v, %v", r, err)
	}
	lines := strings.SplitAfter(text, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"change":{"share":0.6}`) })
	if err := guardedAlone(t, text); err != nil {
		t.Error(err)
	}
	says := map[string]string{"at once": "its step lasts until", "another": "must step to 0.6", "no guard": "blue is past its guard of returns"}
	for what, forged := range map[string][]string{
		"at once":  slices.Concat(lines[:1], []string{strings.Replace(lines[at], lines[at][strings.Index(lines[at], `"at"`):][:30], lines[0][strings.Index(lines[0], `"at"`):][:30], 1)}, lines[1:at], lines[at+1:]),
		"another":  slices.Concat(lines[:at], []string{strings.Replace(lines[at], "0.6", "1", 1)}, lines[at+1:]),
		"twice":    slices.Concat(lines[:at+1], lines[at:]),
		"no guard": slices.Concat([]string{strings.Replace(lines[0], `"below":9`, `"below":1`, 1)}, lines[1:]),
	} {
		if _, err := Replay(strings.NewReader(relinked(forged)), catalog.Catalog{}); !errors.Is(err, ErrTranscript) {
			t.Errorf("%s: %v", what, err)
		}
		if err := guardedAlone(t, relinked(forged)); err == nil || !strings.Contains(err.Error(), says[what]) {
			t.Errorf("%s: guards and ramp alone: %v", what, err)
		}
	}
}

// A ramp waits for guards, says so, and does not step up while a guard has paused it.
func TestRampWaits(t *testing.T) {
	c := newClock()
	g := &guardTraffic{c: c, e: open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})}
	begin(t, g.e, guardedSplit+strings.Replace(aRamp, "5m", "2s", 1))
	settle(t, g.e, c, 10*time.Minute, 3)
	info, err := g.e.Get(t.Context(), "shop")
	if r := info.Ramp(); err != nil || r.Share != 0.2 || *r.Next != 0.6 ||
		!strings.Contains(r.Says, "red does not surely keep returns below 5 yet") {
		t.Errorf("%+v, %v", r, err)
	}
	for range 100 {
		g.come(t, 40)
		settle(t, g.e, c, time.Minute, 1)
		if info, _ = g.e.Get(t.Context(), "shop"); info.State == Paused {
			break
		}
	}
	settle(t, g.e, c, time.Hour, 3)
	if info, _ = g.e.Get(t.Context(), "shop"); info.Ramp().Share != 0.2 ||
		!strings.HasSuffix(info.Ramp().Says, ": a guard has paused it") {
		t.Errorf("%+v", info.Ramp())
	}
	share := 1.0
	if err := g.e.Change(t.Context(), "shop", Change{Share: &share}); !errors.Is(err, ErrState) {
		t.Error(err)
	}
}
