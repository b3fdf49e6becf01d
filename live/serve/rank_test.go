package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
)

func armsAsk(event string) RankAsk {
	return RankAsk{Event: event, Actions: []Action{{ID: "blue"}, {ID: "red"}}}
}

// Events of an experiment with arms: decided once, rewarded once, released with their arm.
func TestRankArms(t *testing.T) {
	c, got := newClock(), newSums()
	cfg := Config{Store: store.NewMemory().Open, Clock: c.Now, Curator: silent(got.tell)}
	e := open(t, cfg)
	begin(t, e, shop)
	reward := func(event string, want Status) {
		t.Helper()
		if s, err := e.RewardEvent(t.Context(), "shop", event, 0.5); s != want || err != nil {
			t.Errorf("the reward of %s is %q, %v, want %q", event, s, err, want)
		}
	}
	first := map[string]Ranking{}
	var came [2][]int64 // by arm and decision
	for i := range 100 {
		r, err := e.Rank(t.Context(), "shop", armsAsk(""))
		if err != nil || r.Reason != Split || len(r.Event) != 32 || !r.Expires.Equal(c.Now().Add(time.Minute)) {
			t.Fatalf("%+v, %v", r, err)
		}
		sum := 0.0
		for j, a := range r.Ranked {
			if sum += a.Probability; a.ID != []string{"blue", "red"}[j] || (a.Probability == r.Propensity) !=
				(a.ID == r.Action) {
				t.Errorf("%+v", r)
			}
		}
		if math.Abs(sum-1) > 1e-12 || math.Abs(math.Abs(r.Propensity-0.5)-0.45) > 1e-12 {
			t.Errorf("probabilities %v of sum %v", r.Ranked, sum)
		}
		steps := int64(0)
		if first[r.Event] = r; i%4 == 0 {
			reward(r.Event, Accepted)
			reward(r.Event, Accepted)
			steps = 1 << 19
		}
		arm := map[string]int{"red": 0, "blue": 1}[r.Action]
		came[arm] = append(came[arm], steps)
		if s, err := e.ActivateEvent(t.Context(), "shop", r.Event); s != Accepted || err != nil {
			t.Errorf("an event that counts at once is activated: %v, %v", s, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	for event, was := range first {
		r, err := e.Rank(t.Context(), "shop", armsAsk(event))
		if err != nil || fmt.Sprint(r) != fmt.Sprint(was) {
			t.Fatalf("asked again: %+v, was %+v, %v", r, was, err)
		}
	}
	c.Add(61 * time.Second)
	for event := range first {
		reward(event, Late)
		if s, err := e.ActivateEvent(t.Context(), "shop", event); s != Late || err != nil {
			t.Errorf("a late activation is %v, %v", s, err)
		}
		break
	}
	settle(t, e, c, time.Second, 70)
	for arm, steps := range came {
		var want int64
		for _, x := range steps[:got.n[arm]] {
			want += x
		}
		if got.n[arm] < 20 || got.steps[arm] != want {
			t.Errorf("arm %d: %d decisions are released with %d steps, accepted were %d", arm, got.n[arm],
				got.steps[arm], want)
		}
	}
	for _, do := range []func() (Status, error){
		func() (Status, error) { return e.RewardEvent(t.Context(), "shop", "nobody's", 1) },
		func() (Status, error) { return e.ActivateEvent(t.Context(), "shop", "nobody's") },
	} {
		if _, err := do(); !errors.Is(err, ErrEvent) {
			t.Errorf("an unknown event: %v", err)
		}
	}
	if err := e.Stop(t.Context(), "shop", "blue"); err != nil {
		t.Fatal(err)
	}
	r, err := e.Rank(t.Context(), "shop", armsAsk("after"))
	if err != nil || r.Action != "blue" || r.Reason != Static || !r.Expires.IsZero() {
		t.Errorf("when it has stopped: %+v, %v", r, err)
	}
}

// An event that is an offer counts when it is activated, and its reward from then on.
func TestRankActivates(t *testing.T) {
	c, got := newClock(), newSums()
	cfg := Config{Store: store.NewMemory().Open, Clock: c.Now, Curator: silent(got.tell)}
	e := open(t, cfg)
	begin(t, e, offers(""))
	for i := range 180 {
		ask := armsAsk(fmt.Sprint("event ", i))
		ask.Deferred = i%2 == 0
		r, err := e.Rank(t.Context(), "shop", ask)
		if err != nil || !r.ActivateBy.Equal(c.Now().Add(10*time.Second)) {
			t.Fatalf("%+v, %v", r, err)
		}
		if i == 30 { // what was decided is there
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
		}
		want := Void
		if i%3 == 0 {
			want = Accepted
			if s, err := e.ActivateEvent(t.Context(), "shop", r.Event); s != Accepted || err != nil {
				t.Errorf("%v, %v", s, err)
			}
		}
		if s, err := e.RewardEvent(t.Context(), "shop", r.Event, 1); s != want || err != nil {
			t.Errorf("reward of event %d: %v, %v, want %v", i, s, err, want)
		}
	}
	settle(t, e, c, time.Second, 100)
	n, steps := got.n[0]+got.n[1], got.steps[0]+got.steps[1]
	if n < 40 || n > 60 || steps != int64(n)<<20 {
		t.Errorf("released %d decisions of %d steps", n, steps)
	}
}

// What cannot be asked of arms has one error, which names the field.
func TestRankRefuses(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, shop)
	begin(t, e, strings.Replace(strings.Replace(shop, "shop", "free", 1), "window", "sticky: false\nwindow", 1))
	begin(t, e, strings.Replace(strings.Replace(shop, "shop", "twice", 1), "assignments: 1", "assignments: 2", 1))
	for field, ask := range map[string]RankAsk{
		"event":               {Event: strings.Repeat("x", maxUnit+1), Actions: armsAsk("").Actions},
		"actions":             {Actions: []Action{{ID: "red"}}},
		"actions[1].id":       {Actions: []Action{{ID: "red"}, {ID: "red"}}},
		"actions[2].id":       {Actions: []Action{{ID: "red"}, {ID: "blue"}, {ID: "green"}}},
		"actions[0].features": {Actions: []Action{{ID: "red", Features: map[string]any{"a": 1.0}}, {ID: "blue"}}},
		"context":             {Context: map[string]any{"a": "b"}, Actions: armsAsk("").Actions},
		"excluded":            {Excluded: []string{"red"}, Actions: armsAsk("").Actions},
		"deferred":            {Deferred: true, Actions: armsAsk("").Actions},
	} {
		_, err := e.Rank(t.Context(), "shop", ask)
		if wrong := (*keyed.Error)(nil); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, name := range []string{"free", "twice"} {
		_, err := e.Rank(t.Context(), name, armsAsk(""))
		if wrong := (*keyed.Error)(nil); !errors.As(err, &wrong) || wrong.Field != "event" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := e.Rank(t.Context(), "nothing", armsAsk("")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := e.TakeOff(t.Context(), "shop", "blue"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 2)
	if _, err := e.Rank(t.Context(), "shop", armsAsk("off")); err == nil {
		t.Error("an arm that is off is ranked")
	}
	r, err := e.Rank(t.Context(), "shop", RankAsk{Event: "off", Actions: []Action{{ID: "red"}}})
	if err != nil || r.Action != "red" || r.Propensity != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := e.RewardEvent(t.Context(), "shop", "", 1); err == nil {
		t.Error("an event without a name has a reward")
	}
}

// An event is told when it is durable: one whose commit failed is told to nobody, and is not there,
// also where the disk has come back before the caller is answered.
func TestRankIsDurable(t *testing.T) {
	for name, text := range map[string]string{"shop": shop, "news": news} {
		c, mem := newClock(), store.NewMemory()
		var full atomic.Bool
		var told atomic.Int32
		e := open(t, Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return flaky{s, &full}, err
		}})
		begin(t, e, text)
		var clients sync.WaitGroup
		for client := range 4 { // what one has decided is in another's commit
			clients.Go(func() {
				for i := client; i < 200; i += 4 {
					ask := newsAsk(i)
					if name == "shop" {
						ask = armsAsk(ask.Event)
					}
					full.Store(i/4%2 == 1) // the next commit, whosever it is, fails
					r, err := e.Rank(t.Context(), name, ask)
					switch {
					case err == nil:
						told.Add(1)
						if r, again := e.RewardEvent(t.Context(), name, ask.Event, 1); errors.Is(again, ErrEvent) {
							t.Errorf("%s: event %d was told, and is lost: %v, %v", name, i, r, again)
						}
					case !errors.Is(err, ErrUnavailable):
						t.Error(r, err)
					}
					for e.Ready() != nil {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		clients.Wait()
		if n := told.Load(); n < 50 || n == 200 {
			t.Errorf("%s: %d of 200 events were told", name, n)
		}
	}
}

// A flaky store fails one commit of an experiment when it is told to.
type flaky struct {
	store.Store
	once *atomic.Bool
}

func (s flaky) Commit(ctx context.Context, c store.Commit) error {
	if len(c.Writes) > 0 && s.once.Swap(false) {
		return errDisk
	}
	return s.Store.Commit(ctx, c)
}
