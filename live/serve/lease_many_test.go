package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A tiring store loses one commit of so many, and does not say of another one that it was written.
type tiring struct {
	store.Store
	rng  *rand.Rand
	many int
	n    *int
}

func (s tiring) Commit(ctx context.Context, c store.Commit) error {
	how := s.rng.IntN(s.many)
	if how != 0 {
		if err := s.Store.Commit(ctx, c); err != nil {
			return err
		}
	}
	if how < 2 {
		*s.n++
		return errors.New("the disk is tired")
	}
	return nil
}

// Clients decide by plans, send what they gave in batches until it is taken, again where they had no answer, and units that
// are known by later plans; what units do comes before and after. The store fails, the service ends and begins. What is
// released is each unit once, with its first arm and its first event after that. SOTTO_LEASED is how many there are,
// fifty thousand in a world at most.
func TestManyLeased(t *testing.T) {
	testkit.OneGoroutine(t)
	left := 30_000
	if text := os.Getenv("SOTTO_LEASED"); text != "" {
		var err error
		if left, err = strconv.Atoi(text); err != nil || left < 1000 {
			t.Fatalf("SOTTO_LEASED is %q, must be a number of decisions, 1000 at least", text)
		}
	}
	var all manyLeased
	for seed := uint64(0); left > 0; seed++ {
		w := manyLeased{n: min(left, 50_000), seed: seed}
		w.play(t)
		if w.wrong != "" {
			t.Errorf("world %d: %s", seed, w.wrong)
		}
		left -= w.n
		all.n, all.resent, all.failed, all.ended = all.n+w.n, all.resent+w.resent, all.failed+w.failed, all.ended+w.ended
	}
	t.Logf("%d decisions: %d requests were sent again, %d commits failed, the service ended %d times",
		all.n, all.resent, all.failed, all.ended)
	if all.resent == 0 || all.failed == 0 || all.ended == 0 {
		t.Error("nothing fails")
	}
	for _, twin := range []string{"gives up", "another name", "not heard"} {
		w := manyLeased{n: 10_000, seed: 1, twin: twin}
		if w.play(t); w.wrong == "" {
			t.Errorf("the broken twin %q is not found", twin)
		}
	}
}

// manyLeased is one world of many leased decisions.
type manyLeased struct {
	n    int // units
	seed uint64
	twin string // what is broken in it

	resent, failed, ended int
	wrong                 string
}

func (w *manyLeased) play(t *testing.T) {
	t.Helper()
	const batch = 500
	rng, c, disk := rand.New(rand.NewPCG(w.seed, 34)), newClock(), store.NewMemory()
	tired := false
	cfg := Config{Clock: c.Now, Curator: knownNoise(func() int { return 0 }), Store: func(ctx context.Context) (store.Store, error) {
		s, err := disk.Open(ctx)
		if err != nil || !tired {
			return s, err
		}
		return tiring{s, rng, max(10, w.n/1000), &w.failed}, nil
	}}
	e := open(t, cfg)
	begin(t, e, leasedShop(shop))
	settle(t, e, c, time.Second, 1)
	again := func() { // it ends without time to write, and begins
		e.stop()
		<-e.done
		for { // its first commit may fail
			var err error
			if e, err = Open(t.Context(), cfg); err == nil {
				return
			}
		}
	}
	tired = true
	again() // with a store that fails
	from := 0
	until := func(what func() error) {
		for first := true; ; first = false {
			err := what()
			if err == nil {
				return
			}
			if !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
			if first || rng.IntN(8) == 0 {
				w.resent++
			}
			again()
			if w.ended++; w.twin == "gives up" && from > 0 {
				return
			}
		}
	}
	pass := func(d time.Duration) {
		c.Add(d)
		until(func() error { return e.Sync(t.Context()) })
	}
	var want, got [2]struct {
		n     int
		steps int64
	}
	name := func(i int) string { return fmt.Sprint(w.seed, " ", i) }
	reward := func(i int) float64 { return float64(i%5) / 4 }
	var exposures, known []Exposure
	var early, events []Event
	for ; from < w.n; from += batch {
		if rng.IntN(4) == 0 {
			pass(time.Duration(rng.IntN(4)) * time.Second)
		}
		var p lease.Plan
		for p.Epoch == 0 {
			until(func() (err error) { p, _, err = e.Plan(t.Context(), "shop"); return err })
		}
		exposures, early, events = exposures[:0], early[:0], events[:0]
		for i := from; i < min(from+batch, w.n); i++ {
			arm := p.Decide(name(i))
			v := Exposure{"shop", name(i), p.Epoch, p.Arms[arm].Arm, ""}
			exposures = append(exposures, v)
			want[arm].n++
			if i%8 == 0 { // of what comes before a unit's decision nothing counts
				early = append(early, Event{Unit: v.Unit, Name: "checkout", Fields: map[string]float64{"value": 1}})
			}
			if i%4 == 3 {
				continue
			}
			events = append(events, Event{Unit: v.Unit, Name: "checkout", Fields: map[string]float64{"value": reward(i)}})
			want[arm].steps += int64(reward(i) * (1 << 20))
			if w.twin == "another name" && i%100 == 0 {
				v.Unit += "'"
				exposures = append(exposures, v)
			}
		}
		for i, v := range known { // by this plan, whatever arm it gives
			v.Epoch, v.Arm = p.Epoch, p.Arms[p.Decide(v.Unit)].Arm
			known[i] = v
		}
		sendEvents := func(all []Event) func() error {
			return func() error { return e.Track(t.Context(), all, nil) }
		}
		send := func() error { return e.Expose(t.Context(), append(exposures, known...), nil) }
		until(sendEvents(early))
		until(send)
		if w.twin == "not heard" && from == 0 {
			events = events[:0]
		}
		until(sendEvents(events))
		for range rng.IntN(2) { // as who has had no answer
			w.resent++
			until(send)
			until(sendEvents(events))
		}
		known = append(known[:0], exposures[:10]...)
	}
	for range 70 {
		pass(time.Second)
	}
	tired = false
	again()
	stopped(t, e, c, "shop", "")
	script, err := e.Transcript(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for line, err := range script {
		if err != nil {
			t.Fatal(err)
		}
		in, err := readLine(line)
		if err != nil {
			t.Fatal(err)
		}
		var arms []int
		for _, p := range in.Plays {
			if !p.Held {
				arms = append(arms, p.Arm)
			}
		}
		for _, p := range in.Ahead {
			arms = append(arms, p.Arm)
		}
		for _, p := range in.Rest {
			arms = append(arms, p.Arm)
		}
		var of struct {
			N   []int
			Sum []float64
		}
		if err := json.Unmarshal(in.Release, &of); len(in.Release) > 0 && err != nil {
			t.Fatal(err)
		}
		for j, n := range of.N {
			got[arms[j]].n += n
			got[arms[j]].steps += stepsOf(of.Sum[j])
		}
	}
	if got != want {
		w.wrong = fmt.Sprintf("decisions and steps by arm are released as %v, must be %v", got, want)
	}
	_ = e.Close()
}
