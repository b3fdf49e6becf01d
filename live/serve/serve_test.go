package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// shop is the smallest experiment.
const shop = `
name: shop
arms: [{name: red, value: "#c00"}, {name: blue, value: {hex: "#00c", n: 3}}]
policy: {policy: dp-klucb, first: 20}
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 1m
floor: 0.1
`

func parse(t testing.TB, text string) Experiment {
	t.Helper()
	x, err := decl.Reader{}.Parse("shop.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return *x
}

// newClock is one whose times have no monotonic reading.
func newClock() *clock.Manual { return clock.At(time.UnixMilli(1_000_000_000_000)) }

// silent is a curator whose noise is known: there is next to none, and what is released is what
// came in, so that sums can be held against the rewards that were accepted.
func silent(tell func(arm, n int, steps int64)) func(release.Config) (release.Curator, error) {
	return func(c release.Config) (release.Curator, error) {
		s := noise.NewFast(1, 2)
		cur, err := release.Simulated(c, &s)
		if err != nil {
			return nil, err
		}
		return told{cur.(release.StepCurator), tell}, nil
	}
}

type told struct {
	release.StepCurator
	tell func(arm, n int, steps int64)
}

func (c told) AddSteps(arm, n int, steps int64) error {
	c.tell(arm, n, steps)
	return c.StepCurator.AddSteps(arm, n, steps)
}

func open(t testing.TB, cfg Config) *Engine {
	t.Helper()
	e, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func begin(t testing.TB, e *Engine, text string) string {
	t.Helper()
	x := parse(t, text)
	if err := e.Create(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), x.Name); err != nil {
		t.Fatal(err)
	}
	return x.Name
}

func mustFind(t testing.TB, e *Engine, name string) *served {
	t.Helper()
	x, err := e.find(name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// settle brings time forward by so many steps of d, and lets the engine do what is due.
func settle(t testing.TB, e *Engine, c *clock.Manual, d time.Duration, steps int) {
	t.Helper()
	for range steps {
		c.Add(d)
		if err := e.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// stopped has an experiment stop, and time pass until it has.
func stopped(t testing.TB, e *Engine, c *clock.Manual, name, keep string) Info {
	t.Helper()
	if err := e.Stop(context.Background(), name, keep); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if info, err := e.Get(context.Background(), name); err != nil || info.State != Stopping {
			return info
		}
		settle(t, e, c, 5*time.Second, 1)
	}
	t.Fatal("it stops, and has not stopped")
	return Info{}
}

// An experiment from its declaration to its end: what is released is the accepted rewards and the
// defaults, at the price that was declared, and an arm is kept.
func TestLife(t *testing.T) {
	c, got := newClock(), newSums()
	mem := store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: c.Now, Curator: silent(got.tell)})
	if err := e.Create(t.Context(), parse(t, shop)); err != nil {
		t.Fatal(err)
	}
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil || d.Reason != Disabled || d.Token != "" || d.Name != "red" {
		t.Errorf("a draft decides %+v, %v", d, err)
	}
	if err := e.Start(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	var came [2][]int64 // by arm and decision
	for i := range 200 {
		d, err := e.Decide(t.Context(), "shop", fmt.Sprint("unit ", i))
		if err != nil || len(d.Token) != 58 || d.Reason != Split || !d.Expires.Equal(c.Now().Add(time.Minute)) {
			t.Fatalf("%+v, %v", d, err)
		}
		if math.Abs(d.Propensity-0.95) > 1e-12 && math.Abs(d.Propensity-0.05) > 1e-12 {
			t.Errorf("propensity is %v", d.Propensity)
		}
		again, err := e.Decide(t.Context(), "shop", fmt.Sprint("unit ", i))
		if err != nil || again.Token != d.Token || again.Arm != d.Arm || again.Propensity != d.Propensity {
			t.Fatalf("asked again: %+v, was %+v, %v", again, d, err)
		}
		came[d.Arm] = append(came[d.Arm], 0)
		if i%4 > 0 {
			continue
		}
		for _, r := range []float64{1, 0, math.NaN()} { // the first counts
			s, err := e.Reward(t.Context(), "shop", Report{d.Token, r})
			if err != nil || s != Accepted {
				t.Fatal(s, err)
			}
		}
		came[d.Arm][len(came[d.Arm])-1] = 1 << 20
	}
	info, err := e.Get(t.Context(), "shop")
	if err != nil || info.State != Waiting || info.Wait != "rewards" {
		t.Errorf("%+v, %v", info, err)
	}
	settle(t, e, c, time.Second, 59)
	if info, _ = e.Get(t.Context(), "shop"); info.Batches > 0 || len(got.n) > 0 {
		t.Errorf("released before the window has passed: %+v", info)
	}
	settle(t, e, c, time.Second, 11)
	if info, _ = e.Get(t.Context(), "shop"); info.Batches == 0 {
		t.Fatalf("nothing was released: %+v", info)
	}
	for a, arm := range info.Arms {
		if arm.Decisions != len(came[a]) || arm.Released != got.n[a] || arm.Released < 20 {
			t.Errorf("arm %d: %+v of %d decisions; the curator has %v", a, arm, len(came[a]), got.n)
		}
		want := int64(0)
		for _, steps := range came[a][:arm.Released] {
			want += steps
		}
		if got.steps[a] != want {
			t.Errorf("arm %d released %d steps, accepted were %d", a, got.steps[a], want)
		}
	}
	if info.Spent.Pure() > 1 || info.Spent.Pure() < 0.9 {
		t.Errorf("spent %v", info.Spent)
	}
	lines, err := e.Transcript(t.Context(), "shop")
	n := 0
	for line, err := range lines {
		if n++; err != nil || n > 1 && !strings.Contains(string(line), `Z","plays":[`) {
			t.Errorf("%s, %v", line, err)
		}
	}
	if err != nil || n != info.Batches+1 { // and the declaration
		t.Errorf("%d lines of %d batches, %v", n, info.Batches, err)
	}
	kept, err := e.Decide(t.Context(), "shop", "unit 1")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Pause(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if d, err := e.Decide(t.Context(), "shop", "somebody new"); err != nil ||
		d.Reason != Disabled || d.Token != "" {
		t.Errorf("paused: %+v, %v", d, err)
	}
	if d, err := e.Decide(t.Context(), "shop", "unit 1"); err != nil || d.Token != kept.Token {
		t.Errorf("paused, who was assigned: %+v, was %+v, %v", d, kept, err)
	}
	if err := e.Resume(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	info = stopped(t, e, c, "shop", "blue")
	for a, arm := range info.Arms {
		if arm.Decisions != arm.Released || arm.Released != got.n[a] || info.Left != 0 {
			t.Errorf("arm %d: %+v when it has stopped; the curator has %v", a, arm, got.n)
		}
	}
	if d, err := e.Decide(t.Context(), "shop", "unit 1"); err != nil || d.Reason != Static ||
		d.Name != "blue" ||
		string(d.Value) != `{"hex":"#00c","n":3}` || d.Token != "" {
		t.Errorf("%+v, %v", d, err)
	}
	if err := e.Archive(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
	if err := e.Resume(t.Context(), "shop"); !errors.Is(err, ErrState) {
		t.Error(err)
	}
}

// An error names an experiment that is not there once.
func TestUnknownIsNamedOnce(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open})
	err := e.Start(t.Context(), "nobody")
	if !errors.Is(err, ErrNotFound) || strings.Count(fmt.Sprint(err), "nobody") != 1 {
		t.Error(err)
	}
}

// While nothing can be written, what an operator did is not told: after the fault it may never have been. The
// simulation found that a stop was shown, with a line of the transcript that nobody had.
func TestOnlyWhatIsDurableIsTold(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	var full atomic.Bool
	e := open(t, Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
		if full.Load() {
			return nil, errDisk
		}
		s, err := mem.Open(ctx)
		return sick{s, &full}, err
	}})
	begin(t, e, shop)
	was, err := e.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	if err := e.Stop(t.Context(), "shop", ""); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("a stop on a full disk: %v", err)
	}
	is, err := e.Get(t.Context(), "shop")
	if err != nil || is.State != was.State || is.Why != "" || is.Lines != was.Lines || is.Tip != was.Tip {
		t.Errorf("it is %s, %q, %d lines; %v; it was %s, %d lines", is.State, is.Why, is.Lines, err, was.State, was.Lines)
	}
	full.Store(false)
	within(t, 10*time.Second, "an end of the fault", func() bool { return e.Ready() == nil })
	if is, err = e.Get(t.Context(), "shop"); err != nil || is.State != was.State {
		t.Errorf("it is %s after the fault: %v", is.State, err)
	}
}

// A program's experiment that names no policy is given one when it is made, and is stored with it.
func TestCreatePicks(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open})
	x := parse(t, shop)
	x.Policy = decl.Policy{}
	if err := e.Create(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	info, err := e.Get(t.Context(), x.Name)
	if err != nil || info.Experiment.Policy.Policy == "" || info.Experiment.Policy.Policy == catalog.AutoPolicy {
		t.Errorf("%+v, %v", info.Experiment.Policy, err)
	}
}
