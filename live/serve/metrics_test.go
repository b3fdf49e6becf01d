package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// basket is the key of a metric.
const basket = "metrics: [{name: basket, range: [0, 200], default: 50, budget: {epsilon: 0.25}}]"

// A metric is released with the rewards: of the same decisions, as it was first reported or else by
// its default, at the sum of both prices, also over restarts, on each kind of store.
func TestMetrics(t *testing.T) {
	for name, disk := range map[string]func(context.Context) (store.Store, error){
		"memory": store.NewMemory().Open, "sqlite": store.SQLite(t.TempDir()),
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restart), func(t *testing.T) {
				c, rewards, baskets := newClock(), newSums(), newSums()
				cfg := Config{Store: disk, Clock: c.Now, Curator: func(rc release.Config) (release.Curator, error) {
					if rc.Hi == 200 {
						return silent(baskets.tell)(rc)
					}
					return silent(rewards.tell)(rc)
				}}
				e := open(t, cfg)
				decl := parse(t, with(basket))
				decl.Name = fmt.Sprint("shop-", restart)
				if err := e.Create(t.Context(), decl); err != nil {
					t.Fatal(err)
				}
				if err := e.Start(t.Context(), decl.Name); err != nil {
					t.Fatal(err)
				}
				var want [2][]int64
				for i := range 200 {
					d, err := e.Decide(t.Context(), decl.Name, fmt.Sprint(i))
					if err != nil {
						t.Fatal(err)
					}
					report := func(metrics map[string]float64) {
						t.Helper()
						out, err := e.Outcomes(t.Context(), decl.Name, []Outcome{{Report: Report{d.Token, 1}, Metrics: metrics}})
						if err != nil || out[0] != (Result{Status: Accepted}) {
							t.Fatal(out, err)
						}
					}
					steps := int64(1 << 18)
					switch i % 4 {
					case 0:
						report(map[string]float64{"basket": 100})
						report(map[string]float64{"basket": 200})
						steps = 1 << 19
					case 1:
						report(nil)
						report(map[string]float64{"basket": 200})
					case 2:
						report(map[string]float64{"basket": 1e9})
						steps = 1 << 20
					}
					want[d.Arm] = append(want[d.Arm], steps)
					if restart && i%70 == 50 {
						if err := e.Close(); err != nil {
							t.Fatal(err)
						}
						e = open(t, cfg)
					}
				}
				settle(t, e, c, time.Second, 70)
				info, err := e.Get(t.Context(), decl.Name)
				if err != nil || info.Batches == 0 {
					t.Fatalf("nothing was released: %+v, %v", info, err)
				}
				for a, arm := range info.Arms {
					sum := int64(0)
					for _, x := range want[a][:arm.Released] {
						sum += x
					}
					if rewards.n[a] != arm.Released || baskets.n[a] != arm.Released || baskets.steps[a] != sum {
						t.Errorf("arm %d: %d and %d released, %d steps, must be %d and %d", a, rewards.n[a], baskets.n[a],
							baskets.steps[a], arm.Released, sum)
					}
					if got := info.Metrics[0][a]; math.Abs(got-float64(sum)/(1<<20)) > 200 { // of noise at a scale of 4
						t.Errorf("arm %d: its metric is %v, must be about %v", a, got, float64(sum)/(1<<20))
					}
				}
				if got := info.Spent.Pure(); math.Abs(got-1.25) > 1e-6 || math.Abs(info.Cap.Pure()-1.25) > 1e-6 {
					t.Errorf("spent %v of %v, must be 1.25", got, info.Cap.Pure())
				}
				if err := e.Close(); err != nil { // what is shown after a restart is the same
					t.Fatal(err)
				}
				e = open(t, cfg)
				again, err := e.Get(t.Context(), decl.Name)
				if err != nil || fmt.Sprint(again.Metrics, again.Spent) != fmt.Sprint(info.Metrics, info.Spent) {
					t.Errorf("%v at %v, was %v at %v: %v", again.Metrics, again.Spent, info.Metrics, info.Spent, err)
				}
			})
		}
	}
}

// A report with a metric that was not declared is refused, without its name and with none of it taken.
func TestUnknownMetric(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open})
	begin(t, e, with(basket))
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Outcomes(t.Context(), "shop", []Outcome{{Report: Report{d.Token, 1},
		Metrics: map[string]float64{"basket": 1, "0.731": 2}}})
	var of *keyed.Error
	if err != nil || !errors.As(out[0].Err, &of) || of.Error() !=
		"metrics: has a name that is none of the experiment's metrics" {
		t.Error(out, err)
	}
}
