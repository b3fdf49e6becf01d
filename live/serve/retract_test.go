package serve

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
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

// A reward that came before its decision was retracted stays in the sum, as far as the count allows:
// also over restarts, and whoever reports what, a retracted unit too, the count is the same and the
// sum at most one reward away.
func TestRetractedRewards(t *testing.T) {
	const counted, gone = 20, 17
	released := func(t *testing.T, reward float64, hers float64, shown, restart bool) (n int, steps int64) {
		now, got := newClock(), newSums()
		cfg := Config{Store: store.NewMemory().Open, Clock: now.Now, Curator: silent(got.tell)}
		e := open(t, cfg)
		begin(t, e, with("exposure: retract"))
		must := func(s Status, err error) {
			t.Helper()
			if s != Accepted || err != nil {
				t.Fatal(s, err)
			}
		}
		var by [2]int
		for i := 0; min(by[0], by[1]) < counted+gone; i++ {
			d, err := e.Decide(t.Context(), "shop", fmt.Sprint("unit ", i))
			if err != nil {
				t.Fatal(err)
			}
			k := by[d.Arm]
			by[d.Arm]++
			r := Report{d.Token, reward}
			retract := k < gone
			if d.Arm == 0 && k == 3 { // theirs
				r.Reward, retract = hers, !shown
			}
			if r.Reward >= 0 {
				must(e.Reward(t.Context(), "shop", r))
			}
			if retract {
				must(e.Activate(t.Context(), "shop", d.Token, false))
			}
			if restart && i == counted {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = open(t, cfg)
			}
		}
		settle(t, e, now, time.Second, 64)
		return got.n[0], got.steps[0]
	}
	for others, shown := range map[int]bool{counted + gone - 1: false, counted + gone - 2: true} {
		for _, reward := range []float64{0.25, 0.5, 1} { // up to 9.25, 18.5 and 37 in all
			var first int64
			for i, hers := range []float64{-1, 0, 1, reward} { // −1: nothing
				n, steps := released(t, reward, hers, shown, i%2 == 1)
				if n != counted {
					t.Fatalf("arm 0 released %d", n)
				}
				if i == 0 {
					first = steps
				}
				all := int64((float64(others)*reward + max(0, hers)) * (1 << 20))
				if want := min(all, int64(n)<<20); steps != want {
					t.Errorf("reward %v, hers %v: released %d steps, must be %d", reward, hers, steps, want)
				}
				if d := steps - first; max(d, -d) > 1<<20 {
					t.Errorf("reward %v: their reward of %v moves the sum by %d steps", reward, hers, d)
				}
			}
		}
	}
}
