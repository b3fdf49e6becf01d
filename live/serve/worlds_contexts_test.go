package serve

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// worldOfContexts is world for an experiment with contexts: all that anybody is told until the
// reward of one event, number 30, is released, by who may also ask for that event again, activate it
// and reward it.
func worldOfContexts(t *testing.T, twin, text string, hers []saying) string {
	t.Helper()
	const hersIs = 30
	c, mem, coins := newClock(), store.NewMemory(), noise.NewFast(1, 2)
	e, err := Open(t.Context(), Config{
		Clock: c.Now, random: rand.NewChaCha8([32]byte{7}),
		Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return fixed{s}, err
		},
		Curator: func(rc release.Config) (release.Curator, error) { return release.Simulated(rc, &coins) },
		VectorCurator: func(rc release.FeatureConfig) (release.FeatureCurator, error) {
			return release.SimulatedFeatures(rc, &coins)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	begin(t, e, text)
	offers := strings.Contains(text, "activate")
	var out bytes.Buffer
	met := map[int][]string{} // by round
	src := rand.New(rand.NewPCG(5, 6))
	mine, n := newsAsk(hersIs), 0
	var decided time.Time
	for round := range 400 {
		c.Add(500 * time.Millisecond)
		if round == 40 { // what an operator changes meanwhile tells nothing either
			longer, floor := 12*time.Second, 0.3
			if err := e.Change(t.Context(), "news", Change{Window: &longer, Floor: &floor}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range src.IntN(4) {
			ask := newsAsk(n)
			r, err := e.Rank(t.Context(), "news", ask)
			fmt.Fprintln(&out, "ranks", n, r, err)
			if n%3 != 2 {
				met[round+4] = append(met[round+4], ask.Event)
			}
			if n == hersIs {
				decided = c.Now()
			} else if src.IntN(2) == 0 {
				s, err := e.RewardEvent(t.Context(), "news", ask.Event, float64(n%2))
				fmt.Fprintln(&out, "another", s, err)
			}
			n++
		}
		for _, event := range met[round] {
			if s, err := e.ActivateEvent(t.Context(), "news", event); offers {
				fmt.Fprintln(&out, "activates", event, s, err)
			}
		}
		if !decided.IsZero() {
			for _, r := range hers {
				if c.Now().Equal(decided.Add(r.after)) {
					if _, err := e.RewardEvent(t.Context(), "news", mine.Event, r.reward); err != nil {
						t.Fatal(err)
					}
					if twin == "activates" {
						_, _ = e.ActivateEvent(t.Context(), "news", mine.Event)
					}
				}
			}
			x, _ := e.find("news")
			x.mu.Lock()
			k, err := x.event(mine.Event)
			if u, said := x.units[k.key()]; said {
				k.number = u.number
			} else if offers {
				k.number = beyond
			}
			g, held := x.play.Segment(0, int(k.number))
			came, head := held && g.Came.Has(int(k.number)-g.Start), x.play.Queue(0, 0).Head
			x.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			if int(k.number) < head {
				fmt.Fprintln(&out, "released at", c.Now())
				return out.String()
			}
			again, err := e.Rank(t.Context(), "news", mine)
			fmt.Fprintln(&out, "asked again", again, err)
			if src.IntN(3) == 0 && c.Now().After(decided.Add(6*time.Second)) {
				s, err := e.RewardEvent(t.Context(), "news", mine.Event, 0)
				if twin == "duplicates" && came {
					s = "duplicate"
				}
				fmt.Fprintln(&out, "observer", s, err)
			}
			switch {
			case twin == "counts":
				fmt.Fprintln(&out, g.Came.Len())
			case twin == "sums" && g.More != nil:
				fmt.Fprintln(&out, g.More[0])
			}
		}
		info, err := e.Get(t.Context(), "news")
		ledger, _ := e.Ledger(t.Context(), "news")
		hours, _ := e.Hours(t.Context(), "news")
		fmt.Fprintf(&out, "%v %v %v %+v %v %v %v %s\n", info.State, info.Wait, info.Until, *info.Contextual,
			info.Batches, hours, err, ledger)
		for _, line := range newsTranscript(t, e) {
			fmt.Fprintln(&out, line)
		}
	}
	t.Fatal("her reward was never released")
	return ""
}

// Two runs that differ in one event's reward, or in whether, how often or when it comes, are the
// same to everybody until it is released, and it is released at the same tick.
func TestTwoWorldsOfContexts(t *testing.T) {
	worlds := map[string][]saying{
		"0": {{3e9, 0}}, "1": {{3e9, 1}}, "later": {{9e9, 1}}, "twice": {{3e9, 1}, {4e9, 1}},
		"two rewards": {{3e9, 0}, {5e9, 1}}, "late": {{31e9, 1}}, "out of range": {{1e9, 1e300}},
		"at once": {{0, 1}}, "before it is shown, and after": {{5e8, 1}, {4e9, 1}},
	}
	apprentice := strings.Replace(news, "actions: 8", "mode: apprentice", 1)
	activated := strings.Replace(news, "floor: 0.2", "floor: 0.2\nexposure: activate\nactivate_within: 8s", 1)
	for _, text := range []string{news, apprentice, activated} {
		silent := worldOfContexts(t, "", text, nil)
		if n := strings.Count(silent, "observer accepted"); n < 3 {
			t.Errorf("the observer was answered %d times", n)
		}
		for name, hers := range worlds {
			if got := worldOfContexts(t, "", text, hers); got != silent {
				t.Errorf("%s: somebody sees it: %s", name, differ(got, silent))
			}
		}
		for _, twin := range []string{"duplicates", "counts", "sums"} {
			if worldOfContexts(t, twin, text, worlds["1"]) == worldOfContexts(t, twin, text, nil) {
				t.Errorf("a service that tells %s is not caught", twin)
			}
		}
	}
	if worldOfContexts(t, "activates", activated, worlds["at once"]) ==
		worldOfContexts(t, "activates", activated, nil) {
		t.Error("a service in which rewards activate is not caught")
	}
}
