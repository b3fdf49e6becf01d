package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// quarter is an A/B test that holds the units of its arm blue, and heldShop an experiment that they are not in.
var (
	quarter  = strings.Replace(splitShop, "name: shop", "name: quarter\nholds: blue", 1)
	heldShop = shop + "holdout: quarter\n"
)

// A way is how a service decides, of which some are broken.
type way func(e *Engine, name, unit string) (Decision, error)

func right(e *Engine, name, unit string) (Decision, error) {
	return e.Decide(context.Background(), name, unit)
}

// holdouts says where units are not held, or are held that must not be, in every state of an experiment and its
// holdout. Half of the units are in the holdout before they ask the experiment, half after.
func holdouts(t *testing.T, decide way) (wrong []string) {
	t.Helper()
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, random: rand.NewChaCha8([32]byte{5})})
	begin(t, e, quarter)
	begin(t, e, heldShop+"fallback: blue\n")
	const n = 4000
	held, holds := map[string]bool{}, 0
	ask := func(name, unit string) Decision {
		d, err := decide(e, name, unit)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i := range n {
		unit := fmt.Sprint(i)
		var in Decision
		if i%2 == 0 {
			in = ask("quarter", unit)
		}
		d := ask("shop", unit)
		if i%2 == 1 {
			in = ask("quarter", unit)
		}
		if again := ask("quarter", unit); in.Reason != Split || again.Token != in.Token {
			t.Fatalf("in the holdout: %+v, was %+v", again, in)
		}
		if held[unit] = in.Name == "blue"; held[unit] {
			holds++
		}
		if in.Propensity != []float64{0.7, 0.3}[in.Arm] {
			t.Fatalf("%+v", in)
		}
		if out := d.Reason == Holdout; out != held[unit] || out != (d.Token == "") || out && d.Name != "blue" {
			wrong = append(wrong, fmt.Sprintf("running: %s: %+v", unit, d))
		}
	}
	if !near(holds, n, 0.3) {
		t.Fatalf("%d of %d are held", holds, n)
	}
	x := mustFind(t, e, "shop")
	if info, _ := e.Get(t.Context(), "shop"); info.Arms[0].Decisions+info.Arms[1].Decisions != n-holds ||
		len(x.units) != n-holds {
		wrong = append(wrong, fmt.Sprintf("%+v, and %d units, of %d with %d held", info.Arms, len(x.units), n, holds))
	}
	const some = 200
	all := func(state string, out, in Reason) {
		for i := range some {
			unit := fmt.Sprint(i)
			want := in
			if held[unit] {
				want = out
			}
			if d := ask("shop", unit); d.Reason != want {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %+v", state, unit, d))
			}
		}
	}
	do := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	do(e.Pause(t.Context(), "quarter"))
	all("the holdout is paused", Holdout, Split)
	do(e.Pause(t.Context(), "shop"))
	all("paused", Holdout, Split)
	do(e.Resume(t.Context(), "shop"))
	do(e.StopNow(t.Context(), "shop", "red", "shop"))
	all("stopped", Holdout, Static)
	if _, err := e.Decide(t.Context(), "shop", ""); !errors.Is(err, ErrUnit) {
		wrong = append(wrong, fmt.Sprintf("nobody: %v", err))
	}
	do(e.StopNow(t.Context(), "quarter", "blue", "quarter"))
	all("the holdout has stopped", Static, Static)
	if d, err := e.Decide(t.Context(), "shop", ""); err != nil || d.Name != "red" {
		wrong = append(wrong, fmt.Sprintf("nobody, and nobody is held: %+v, %v", d, err))
	}
	return wrong
}

// Who is held is in no experiment of the holdout, in any of its states, is given its fallback with a reason of its own,
// and is neither counted nor kept there; all others may be in it. Services that count a held unit, hold by another hash
// or by coins, or forget the holdout when the experiment has stopped, are found out.
func TestHoldout(t *testing.T) {
	if wrong := holdouts(t, right); len(wrong) > 0 {
		t.Errorf("%d are wrong: %v", len(wrong), wrong[0])
	}
	for name, broken := range map[string]way{
		"counts who is held": func(e *Engine, name, unit string) (Decision, error) {
			x, _ := e.find(name)
			return x.decide(Ask{Unit: unit}, e.now())
		},
		"holds by a coin": func(e *Engine, name, unit string) (Decision, error) {
			x, _ := e.find(name)
			ask := Ask{Unit: unit}
			if x.decl.Holdout != "" && x.coins.Float64() < 0.3 {
				ask.hold = heldOut
			}
			return x.decide(ask, e.now())
		},
		"holds by another hash": func(e *Engine, name, unit string) (Decision, error) {
			x, _ := e.find(name)
			return x.decide(Ask{Unit: unit, hold: e.hold(x, unit+"!")}, e.now())
		},
		"holds while it runs": func(e *Engine, name, unit string) (Decision, error) {
			x, _ := e.find(name)
			if x.rec.State != Running {
				return x.decide(Ask{Unit: unit}, e.now())
			}
			return right(e, name, unit)
		},
		"holds for good": func(e *Engine, name, unit string) (Decision, error) {
			x, _ := e.find(name)
			h, _ := e.find("quarter")
			ask := Ask{Unit: unit}
			if arm, _ := h.armBy(h.decl.SharesAfter(0), unit); x != h && arm == 1 {
				ask.hold = heldOut
			}
			return x.decide(ask, e.now())
		},
	} {
		if len(holdouts(t, broken)) == 0 {
			t.Errorf("a service that %s is not found out", name)
		}
	}
}

// A rank is held as a decision is.
func TestHoldoutRank(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open})
	begin(t, e, quarter)
	begin(t, e, heldShop)
	both := []Action{{ID: "red"}, {ID: "blue"}}
	for i := range 40 {
		event := fmt.Sprint(i)
		d, err := e.Decide(t.Context(), "quarter", event)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Rank(t.Context(), "shop", RankAsk{Event: event, Actions: both})
		if out := d.Name == "blue"; err != nil || out != (r.Reason == Holdout) || out &&
			!slices.Equal(r.Ranked, []Ranked{{"red", 1}, {"blue", 0}}) {
			t.Errorf("%+v: %+v, %v", d, r, err)
		}
	}
}

// lying is a store that loses what it says it has written, once it lies.
type lying struct {
	store.Store
	lies *atomic.Bool
}

func (s lying) Commit(ctx context.Context, c store.Commit) error {
	if s.lies.Load() {
		return nil
	}
	return s.Store.Commit(ctx, c)
}

// Who was held is held after a crash that lost all assignments, and who was not is not. Coins, as other A/B tests toss
// them, would not do.
func TestHoldoutCrash(t *testing.T) {
	for text, same := range map[string]bool{quarter: true, strings.Replace(quarter, "holds: blue", "", 1): false} {
		mem := store.NewMemory()
		var lies atomic.Bool
		cfg := Config{Clock: newClock().Now, Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return lying{s, &lies}, err
		}}
		var arms [2][]int
		for life := range 2 {
			e, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if life == 0 {
				begin(t, e, text)
				lies.Store(true)
			} else if x := mustFind(t, e, "quarter"); len(x.units) > 0 {
				t.Fatalf("%d units were not lost", len(x.units))
			}
			for i := range 200 {
				d, err := e.Decide(t.Context(), "quarter", fmt.Sprint(i))
				if err != nil {
					t.Fatal(err)
				}
				arms[life] = append(arms[life], d.Arm)
			}
			_ = e.Close()
		}
		if slices.Equal(arms[0], arms[1]) != same {
			t.Errorf("%s%v\n%v", text, arms[0], arms[1])
		}
	}
}

// An experiment starts if its holdout holds somebody, a draft too, and nothing changes who is held.
func TestHoldoutRefuses(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	create := func(text string) {
		t.Helper()
		if err := e.Create(t.Context(), parse(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(err error, want string) {
		t.Helper()
		var of *decl.Error
		if !errors.As(err, &of) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	create(heldShop)
	refused(e.Start(t.Context(), "shop"), `holdout: is "quarter", must be an experiment that is there`)
	create(strings.NewReplacer("name: shop", "name: plain", "holdout: quarter", "holdout: other").Replace(heldShop))
	begin(t, e, strings.Replace(splitShop, "name: shop", "name: other", 1))
	refused(e.Start(t.Context(), "plain"), `holdout: is "other", must be an experiment that declares holds`)
	create(quarter)
	create(strings.NewReplacer("name: shop", "name: visits", "of: person", "of: visit").Replace(heldShop))
	refused(e.Start(t.Context(), "visits"), `holdout: is "quarter", whose unit is "person", must be an experiment of the unit "visit"`)
	if err := e.Start(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
	held := 0
	for i := range 100 {
		if d, err := e.Decide(t.Context(), "shop", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		} else if d.Reason == Holdout {
			held++
		}
	}
	if held == 0 {
		t.Error("a draft holds nobody, and would later")
	}
	if err := e.Start(t.Context(), "quarter"); err != nil {
		t.Fatal(err)
	}
	half := 0.5
	refused(e.Change(t.Context(), "quarter", Change{Share: &half}), "share: is not for holdouts")
	refused(e.Change(t.Context(), "quarter", Change{Add: []Added{{Name: "green"}}}), "with other shares")
	if err := e.StopNow(t.Context(), "quarter", "red", "quarter"); err != nil {
		t.Fatal(err)
	}
	create(strings.Replace(heldShop, "name: shop", "name: later", 1))
	refused(e.Start(t.Context(), "later"), `holdout: is "quarter", which is stopped, must not have stopped`)
}

// What an experiment tells is the same whatever a unit of its holdout reports there, until that is released: here to
// the end, for nothing of the holdout is. A service that holds by what was reported is caught.
func TestHoldoutWorlds(t *testing.T) {
	world := func(reward float64, broken bool) string {
		c, mem := newClock(), store.NewMemory()
		e := open(t, Config{Clock: c.Now, random: rand.NewChaCha8([32]byte{7}),
			Store: func(ctx context.Context) (store.Store, error) {
				s, err := mem.Open(ctx)
				return fixed{s}, err
			}})
		begin(t, e, quarter)
		begin(t, e, heldShop)
		var out strings.Builder
		for i := range 60 {
			unit := fmt.Sprint(i)
			d, err := e.Decide(t.Context(), "quarter", unit)
			if err != nil {
				t.Fatal(err)
			}
			mine := float64(i % 2)
			if i == 30 {
				mine = reward
			}
			s, err := e.Reward(t.Context(), "quarter", Report{d.Token, mine})
			fmt.Fprintln(&out, d, s, err)
			x := mustFind(t, e, "shop")
			ask := Ask{Unit: unit, hold: e.hold(x, unit)}
			if broken && mine == 0 {
				ask.hold = letIn
			} else if broken {
				ask.hold = heldOut
			}
			d, err = x.decide(ask, e.now())
			fmt.Fprintln(&out, d, err)
			settle(t, e, c, 500*time.Millisecond, 1)
			info, err := e.Get(t.Context(), "shop")
			fmt.Fprintln(&out, info.State, info.Arms, info.Batches, info.Lines, info.Tip, err)
			info, err = e.Get(t.Context(), "quarter")
			fmt.Fprintln(&out, info.State, info.Batches, info.Lines, info.Tip, err)
			if info.Batches > 0 {
				t.Fatal("something of the holdout was released")
			}
		}
		return out.String()
	}
	if world(0, false) != world(1, false) {
		t.Error("what is told depends on a reward in the holdout")
	}
	if world(0, true) == world(1, true) {
		t.Error("a service that holds by rewards is not caught")
	}
}
