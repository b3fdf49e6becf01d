package leased_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/client/leased"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/servetest"
)

const shop = `
name: shop
arms: [{name: red, value: "#c00"}, blue]
policy: split
shares: {red: 0.7, blue: 0.3}
budget: {epsilon: 1}
unit: {of: person}
reward: {default: 0, event: checkout}
window: 1s
leases: {for: 2s, delay: 20s}
`

// follow has a service with a running experiment, and a follower of its plan.
func follow(t *testing.T, cfg leased.Config) (*servetest.Service, *client.Client, *leased.Follower) {
	t.Helper()
	s := servetest.New(t, serve.Config{})
	x, err := decl.Parse("shop.yaml", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Engine.Create(t.Context(), *x), s.Engine.Start(t.Context(), "shop")); err != nil {
		t.Fatal(err)
	}
	key, _, err := s.Engine.NewKey(t.Context(), "app", serve.ScopeDecide|serve.ScopeReward)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(s.URL, key)
	if err != nil {
		t.Fatal(err)
	}
	for p, _, err := s.Engine.Plan(t.Context(), "shop"); err != nil || p.Reason != ""; p, _, err = s.Engine.Plan(t.Context(), "shop") {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	cfg.Experiment = "shop"
	f, err := leased.Follow(t.Context(), c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close(t.Context()) })
	return s, c, f
}

func decisions(t *testing.T, s *servetest.Service) (n int) {
	t.Helper()
	info, err := s.Engine.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range info.Arms {
		n += a.Decisions
	}
	return n
}

// Units are decided here, over several plans, and each counts once, with the arm that it was given, though the service
// cannot be reached meanwhile; who comes back has its arm, and its events are rewards.
func TestFollow(t *testing.T) {
	s, c, f := follow(t, leased.Config{Every: 20 * time.Millisecond})
	var down atomic.Bool
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return down.Load()
	})
	var mu sync.Mutex
	arms, epochs := map[string]string{}, map[uint64]bool{}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 300 {
				unit := fmt.Sprint(worker, " ", i%250)
				d, err := f.Decide(unit)
				for ; errors.Is(err, leased.ErrNoPlan); d, err = f.Decide(unit) { // the machine is busy
					time.Sleep(10 * time.Millisecond)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				was, again := arms[unit]
				if again && (was != d.Arm || d.Reason != leased.Sticky) || !again && d.Reason != leased.Split ||
					d.Arm == "red" && string(d.Value) != `"#c00"` {
					t.Errorf("unit %s is given %+v, was %s", unit, d, was)
				}
				arms[unit], epochs[f.Plan().Epoch] = d.Arm, true
				mu.Unlock()
				down.Store(i > 100 && i < 120)
				time.Sleep(8 * time.Millisecond)
			}
		})
	}
	all.Wait()
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := decisions(t, s); n != 1000 || len(epochs) < 2 {
		t.Errorf("%d decisions, must be 1000, over %d plans", n, len(epochs))
	}
	for unit, arm := range arms {
		if d, err := s.Engine.Decide(t.Context(), "shop", unit); err != nil || d.Name != arm {
			t.Fatalf("unit %s has %s, and was given %s, %v", unit, d.Name, arm, err)
		}
	}
	if err := c.Track(t.Context(), client.Event{Name: "checkout", Unit: "0 1"}); err != nil {
		t.Error(err)
	}
	if _, err := f.Decide("somebody"); !errors.Is(err, leased.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A plan that has ended is used no more, a full queue decides nothing, and while nobody is assigned all are given
// one arm without an exposure.
func TestFollowerRefuses(t *testing.T) {
	s, _, f := follow(t, leased.Config{Every: time.Hour, Size: 2})
	for want, unit := range map[string]string{"from 1 to 4096": "", "has 4097": strings.Repeat("6543", 1024) + "x", "Unicode": "6543\xff"} {
		if _, err := f.Decide(unit); !errors.Is(err, client.ErrRequest) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "6543") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for i := range 3 {
		if _, err := f.Decide(fmt.Sprint(i)); (i == 2) != errors.Is(err, leased.ErrFull) || i < 2 && err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	if err := s.Engine.Pause(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(20 * time.Second)
	for f.Plan().Reason == "" && time.Now().Before(until) {
		time.Sleep(5 * time.Millisecond)
	}
	if d, err := f.Decide("ann"); err != nil || d.Arm != "red" || d.Reason != string(serve.Disabled) {
		t.Errorf("paused: %+v, %v", d, err)
	}
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	for {
		_, err := f.Decide("ann")
		if errors.Is(err, leased.ErrNoPlan) && errors.Is(err, client.ErrUnavailable) {
			break
		}
		if err != nil || time.Now().After(until) {
			t.Fatalf("the plan is used on, or %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Who has not agreed to take part is given the fallback: nothing is reported, and the unit can still be assigned.
func TestWithout(t *testing.T) {
	s, _, f := follow(t, leased.Config{})
	d, err := f.Without()
	if err != nil || d.Arm != "red" || string(d.Value) != `"#c00"` || d.Propensity != 1 || d.Reason != leased.Default {
		t.Errorf("%+v, %v", d, err)
	}
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := decisions(t, s); n != 0 {
		t.Errorf("%d decisions", n)
	}
	p := lease.Plan{Fallback: "blue", Arms: []lease.Share{{Arm: "red"}, {Arm: "blue"}}}
	if got := p.Without(); got.Arm != "blue" {
		t.Errorf("of two arms it is %+v", got)
	}
	if p.Fallback = "gone"; p.Without().Arm != "red" {
		t.Errorf("where the fallback is gone it is %+v", p.Without())
	}
}
