package serve

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/serve/store"
)

// with is shop with more keys.
func with(more string) string { return strings.Replace(shop, "window: 1m", "window: 1m\n"+more, 1) }

// What was not shown counts no more, and what does not come is dropped where that was declared: what
// is released is the rest, also over restarts, and both are answered alike whatever was reported.
func TestRetractAndDrop(t *testing.T) {
	whole := 0
	for _, c := range []struct {
		more string
		drop bool
	}{{"exposure: retract", false}, {"missing: drop\nreports: every\nexposure: retract", true}} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(c.more, restart), func(t *testing.T) {
				now, got := newClock(), newSums()
				cfg := Config{Store: store.NewMemory().Open, Clock: now.Now, Curator: silent(got.tell)}
				e := open(t, cfg)
				begin(t, e, with(c.more))
				var gone, missing [2]int
				var decided [2]int
				decide := func(i int) {
					d, err := e.Decide(t.Context(), "shop", fmt.Sprint("unit ", i))
					if err != nil {
						t.Fatal(err)
					}
					decided[d.Arm]++
					if i%3 != 1 {
						s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1})
						if s != Accepted || err != nil {
							t.Fatal(s, err)
						}
					} else if i%6 != 1 {
						missing[d.Arm]++
					}
					if i%6 == 1 { // no reward came
						for range 2 {
							if s, err := e.Activate(t.Context(), "shop", d.Token, false); s != Accepted || err != nil {
								t.Fatal(s, err)
							}
						}
						gone[d.Arm]++
						if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Accepted || err != nil {
							t.Fatal(s, err)
						}
					}
				}
				for i := range 300 {
					decide(i)
					if restart && i%100 == 50 {
						if err := e.Close(); err != nil {
							t.Fatal(err)
						}
						e = open(t, cfg)
					}
				}
				settle(t, e, now, time.Second, 64)
				info, err := e.Get(t.Context(), "shop")
				if err != nil || info.Batches == 0 {
					t.Fatalf("nothing was released: %+v, %v", info, err)
				}
				for a := range 2 {
					// in one segment, which the first release takes whole or in two
					x, err := e.find("shop")
					if err != nil {
						t.Fatal(err)
					}
					q := x.play.Queue(a, 0)
					left := q.Issued - q.Head
					if left == 0 {
						whole++
						n, want := decided[a]-gone[a], int64(decided[a]-gone[a]-missing[a])<<20
						if c.drop {
							n -= missing[a]
						}
						if got.n[a] != n || got.steps[a] != want {
							t.Errorf("arm %d released %d and %d steps, must be %d and %d", a, got.n[a], got.steps[a], n, want)
						}
					} else if got.n[a] < 20 {
						t.Errorf("arm %d released %d", a, got.n[a])
					}
				}
				if lines := fmt.Sprint(transcript(t, e)); !strings.Contains(lines, `"gone":`) {
					t.Errorf("no line says what is gone: %s", lines)
				}
			})
		}
	}
	if whole == 0 {
		t.Error("no arm was released as a whole: nothing was tested")
	}
	e := open(t, Config{Store: store.NewMemory().Open})
	begin(t, e, shop)
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Activate(t.Context(), "shop", d.Token, false); !errors.Is(err, ErrState) {
		t.Errorf("it was not declared: %v", err)
	}
}
