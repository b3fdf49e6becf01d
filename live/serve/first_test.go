package serve

import (
	"fmt"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// When the first release can be is known once its decisions were made, and is when they are settled; when it
// was stays, also after others and over a restart. Where what is not reported is dropped, nobody is told
// when it can be: others may be wanted in the place of what was dropped.
func TestFirstRelease(t *testing.T) {
	for _, more := range []string{"", "missing: drop\nreports: every"} {
		t.Run(more, func(t *testing.T) {
			now, mem := newClock(), store.NewMemory()
			cfg := Config{Store: mem.Open, Clock: now.Now}
			e := open(t, cfg)
			begin(t, e, with(more))
			said := func() Info {
				t.Helper()
				info, err := e.Get(t.Context(), "shop")
				if err != nil {
					t.Fatal(err)
				}
				return info
			}
			if info := said(); !info.First.IsZero() || !info.NotBefore.IsZero() {
				t.Errorf("before the first decision: %v, %v", info.First, info.NotBefore)
			}
			var last time.Time // of the decisions of the first batch
			var tokens []Report
			for i := 0; last.IsZero() && i < 200; i++ {
				d, err := e.Decide(t.Context(), "shop", fmt.Sprint(i))
				if err != nil {
					t.Fatal(err)
				}
				tokens = append(tokens, Report{d.Token, 1})
				if info := said(); info.Wait == "rewards" {
					last = d.Expires
				} else if !info.NotBefore.IsZero() {
					t.Fatalf("after %d decisions it can be at %v", i, info.NotBefore)
				}
				now.Add(100 * time.Millisecond)
			}
			want := last.UTC()
			if more != "" {
				want = time.Time{}
				if _, err := e.Rewards(t.Context(), "shop", tokens); err != nil {
					t.Fatal(err)
				}
			}
			if got := said().NotBefore; !got.Equal(want) {
				t.Errorf("it can be at %v, must be %v", got, want)
			}
			for said().First.IsZero() {
				before := now.Now()
				settle(t, e, now, time.Second, 1)
				if before.After(last.Add(10 * time.Second)) {
					t.Fatal("nothing was released")
				}
			}
			first := said().First
			if first.Before(last) || first.After(last.Add(time.Second)) || !said().NotBefore.IsZero() {
				t.Errorf("it was at %v, must be the tick after %v", first, last)
			}
			for i := range 300 {
				d, err := e.Decide(t.Context(), "shop", fmt.Sprint("later ", i))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := e.Rewards(t.Context(), "shop", []Report{{d.Token, 1}}); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, e, now, time.Second, 70)
			if info := said(); info.Batches < 2 || !info.First.Equal(first) {
				t.Errorf("after %d batches it was at %v", info.Batches, info.First)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if e = open(t, cfg); !said().First.Equal(first) {
				t.Errorf("after a restart it was at %v, must be %v", said().First, first)
			}
		})
	}
}
