package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// heard are experiments whose numbers are of events, by what is special of each.
var heard = map[string]string{
	"one event": strings.NewReplacer("default: 0}", "default: 0.25, event: checkout}", "assignments: 1",
		"assignments: 2").Replace(shop) + "sticky: false\n" +
		"metrics: [{name: basket, range: [0, 4], default: 1, event: checkout, field: total, budget: {epsilon: 0.25}}]\n",
	"two events": strings.Replace(shop, "default: 0}", "default: 0.25, event: signup}", 1) +
		"metrics: [{name: basket, range: [0, 4], default: 1, event: checkout, field: total, budget: {epsilon: 0.25}}]\n",
	"all events": strings.Replace(shop, "default: 0}", "default: 0.25, aggregate: sum, event: checkout}", 1) +
		"metrics: [{name: basket, range: [0, 4], default: 1, aggregate: sum, event: checkout, field: total, budget: {epsilon: 0.25}}]\n",
	"activated": strings.Replace(shop, "default: 0}", "default: 0.25, event: checkout}", 1) + "exposure: activate\n" +
		"metrics: [{name: basket, range: [0, 4], default: 1, event: checkout, field: total, budget: {epsilon: 0.25}}]\n",
}

// A bought is a decision as an independent reading of the rules has it: what counts of its two numbers so far.
type bought struct {
	unit           string
	arm            int
	made, deadline time.Time
	reward, basket float64
	has            [2]bool
	ids            map[string]bool
}

// take is what an event does to it.
func (d *bought) take(kind string, v Event, now time.Time) {
	if !now.Before(d.deadline) || !v.At.IsZero() && v.At.Before(d.made) {
		return
	}
	value, ok := v.Fields["value"]
	if !ok {
		value = 1
	}
	total, totalled := v.Fields["total"]
	if kind == "all events" {
		switch {
		case v.Name != "checkout" || d.ids[v.ID]:
			return
		case !d.has[0]:
			d.reward = 0
		}
		d.ids[v.ID], d.has[0], d.reward = true, true, d.reward+value
		if totalled && !d.has[1] {
			d.basket = 0
		}
		if totalled {
			d.has[1], d.basket = true, d.basket+total
		}
		return
	}
	of := "checkout"
	if kind == "two events" {
		of = "signup"
	}
	if v.Name == of && !d.has[0] {
		d.has[0], d.reward = true, value
	}
	if v.Name == "checkout" && !d.has[1] {
		if d.has[1] = true; totalled {
			d.basket = total
		}
	}
}

// What is released of events is what an independent reading of the rules makes of each decision: the newest
// of a unit that is open, the first event of each number or all of them, nothing that says to be of before, over
// restarts, and over kills, which lose what was decided since the last commit, and none of the events.
func TestTrack(t *testing.T) {
	for kind, text := range heard {
		for seed := range testkit.Size(uint64(1), 5) {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) {
				c, disk, rewards, baskets := newClock(), store.NewMemory(), newSums(), newSums()
				cfg := Config{Store: disk.Open, Clock: c.Now, Curator: func(rc release.Config) (release.Curator, error) {
					if rc.Hi == 4 {
						return silent(baskets.tell)(rc)
					}
					return silent(rewards.tell)(rc)
				}}
				e := open(t, cfg)
				begin(t, e, text)
				src := rand.New(rand.NewPCG(seed, 34))
				var all []*bought
				newest, offers := map[string]*bought{}, map[string]string{}
				seen := map[string]bool{}
				made := func(unit string, arm int, until time.Time) {
					d := &bought{unit: unit, arm: arm, made: c.Now(), deadline: until, reward: 0.25, basket: 1, ids: map[string]bool{}}
					all, newest[unit] = append(all, d), d
				}
				durable := 0
				for round := range 500 {
					if round%50 == 35 { // it has no time to write
						e.stop()
						<-e.done
						e, all, newest = open(t, cfg), all[:durable], map[string]*bought{}
						for _, d := range all {
							newest[d.unit] = d
						}
					}
					settle(t, e, c, time.Duration(src.IntN(12)/10)*time.Second, 1)
					if round%100 == 70 {
						if err := e.Close(); err != nil {
							t.Fatal(err)
						}
						e = open(t, cfg)
					}
					durable = len(all)
					unit := fmt.Sprint(src.IntN(60))
					switch src.IntN(7) {
					case 0, 1:
						d, err := e.Decide(t.Context(), "shop", unit)
						if err != nil {
							t.Fatal(err)
						}
						if d.Reason != Split || seen[d.Token] {
							continue
						}
						seen[d.Token] = true
						if kind == "activated" {
							offers[unit] = d.Token
							continue
						}
						made(unit, d.Arm, d.Expires)
					case 2, 3:
						if offers[unit] == "" {
							continue
						}
						k, _ := newSigner(mustFind(t, e, "shop").tokenKey).read(offers[unit])
						got, err := e.Activate(t.Context(), "shop", offers[unit], true)
						if err != nil {
							t.Fatal(err)
						}
						if got == Accepted {
							made(unit, k.arm, time.UnixMilli(k.deadline))
						}
						durable = len(all)
						delete(offers, unit)
					default:
						v := Event{Unit: unit, ID: fmt.Sprint(src.IntN(3)), Fields: map[string]float64{},
							Name: []string{"checkout", "signup", "other"}[src.IntN(3)]}
						if src.IntN(2) == 0 {
							v.Fields["total"] = float64(src.IntN(9)) / 2
						}
						if src.IntN(2) == 0 {
							v.Fields["value"] = float64(src.IntN(5)) / 4
						}
						if src.IntN(2) == 0 {
							v.At = c.Now().Add(-time.Duration(src.IntN(20)) * time.Second)
						}
						if err := e.Track(t.Context(), []Event{v, v}, nil); err != nil { // as who has had no answer
							t.Fatal(err)
						}
						if d := newest[unit]; d != nil {
							d.take(kind, v, c.Now())
						}
					}
				}
				settle(t, e, c, time.Second, 70)
				if err := e.Stop(t.Context(), "shop", ""); err != nil { // which releases the rest
					t.Fatal(err)
				}
				settle(t, e, c, time.Second, 70)
				var n [2]int
				var want [2][2]int64
				some := 0
				for _, d := range all {
					n[d.arm]++
					want[d.arm][0] += int64(math.Round(max(0, min(d.reward, 1)) * (1 << 20)))
					want[d.arm][1] += int64(math.Round(max(0, min(d.basket, 4)) * (1 << 18)))
					if d.has[0] {
						some++
					}
				}
				if some < 6 {
					t.Errorf("%d decisions had an event", some)
				}
				for a := range want {
					if rewards.n[a] != n[a] || rewards.steps[a] != want[a][0] || baskets.steps[a] != want[a][1] {
						t.Errorf("arm %d: %d decisions, %d and %d steps, must be %d, %v", a, rewards.n[a], rewards.steps[a],
							baskets.steps[a], n[a], want[a])
					}
				}
			})
		}
	}
}

// Events of one request are one commit, and who has nothing to write waits for one, too: for a disk that is full
// all of them are refused.
func TestTrackIsDurable(t *testing.T) {
	c, commits, full := newClock(), 0, false
	e := open(t, Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
		s, err := store.NewMemory().Open(ctx)
		return counting{s, &commits, &full}, err
	}})
	for _, name := range []string{"one event", "two events"} {
		x := parse(t, heard[name])
		x.Name = strings.Replace(name, " ", "-", 1)
		if err := errors.Join(e.Create(t.Context(), x), e.Start(t.Context(), x.Name)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Decide(t.Context(), x.Name, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	event := func(name, unit string) []Event {
		return []Event{{Name: name, Unit: unit}, {Name: "signup", Unit: unit}}
	}
	for _, v := range [][]Event{event("checkout", "ann"), event("checkout", "ann"), event("checkout", "zoe"), event("other", "ann")} {
		before := commits
		if err := e.Track(t.Context(), v, nil); err != nil || commits != before+1 {
			t.Errorf("%v: %d commits, %v", v, commits-before, err)
		}
	}
	full = true
	for _, v := range [][]Event{event("other", "zoe"), event("checkout", "ann")} {
		if err := e.Track(t.Context(), v, nil); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// A counting store counts commits, and may be full.
type counting struct {
	store.Store
	n    *int
	full *bool
}

func (s counting) Commit(ctx context.Context, c store.Commit) error {
	if *s.n++; *s.full {
		return errors.New("the disk is full")
	}
	return s.Store.Commit(ctx, c)
}

// Two worlds: whatever a unit's events say, and whether there are any, nobody sees it before the release.
func TestTwoWorldsOfEvents(t *testing.T) {
	texts := []string{heard["two events"], strings.Replace(heard["activated"], "window: 1m",
		"activate_within: 20s\nwindow: 40s", 1), heard["all events"] + stopsThere}
	sayings := map[string][]saying{"1": {{3e9, 1}}, "at once": {{0, 1}}, "two events": {{3e9, 0}, {9e9, 1}}}
	if testkit.Full() {
		for name, hers := range map[string][]saying{"0": {{3e9, 0}}, "twice": {{3e9, 1}, {4e9, 1}}, "late": {{61e9, 1}},
			"out of range": {{1e9, 1e300}}, "before it is shown, and after": {{5e8, 1}, {5e9, 1}}} {
			sayings[name] = hers
		}
	}
	twoWorlds(t, testkit.Size(texts[:2], texts), sayings, testkit.Size([]string{"duplicates"},
		[]string{"duplicates", "counts", "sums"})...)
}

// What is wrong with an event is told of its form alone, and nothing of its request is taken.
func TestTrackRefuses(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: clock.At(time.UnixMilli(1_000_000_000_000)).Now})
	for want, v := range map[string]Event{
		"name: is missing":             {Unit: "ann"},
		"name: has 257 bytes":          {Unit: "ann", Name: strings.Repeat("x", 257)},
		"targetingKey: is missing":     {Name: "checkout"},
		"targetingKey: has 4097 bytes": {Name: "checkout", Unit: strings.Repeat("x", 4097)},
		"id: has 257 bytes":            {Name: "checkout", Unit: "ann", ID: strings.Repeat("x", 257)},
	} {
		of := &keyed.Error{}
		if err := e.Track(t.Context(), []Event{v}, nil); !errors.As(err, &of) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
