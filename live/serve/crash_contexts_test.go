//go:build unix

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// crashNews is an experiment with contexts whose windows pass while a child lives.
var crashNews = strings.NewReplacer("window: 10s", "window: 300ms", "default: 0", "default: 0.25",
	"    - {name: first, play: first, clip: 2, budget: {rho: 0.05}}\n", "",
	"    - {name: learner, play: policy, clip: 20, budget: {rho: 0.05}}\n", "",
	"    - {name: three, play: {id: a3}, clip: 20, budget: {rho: 0.05}}\n", "").Replace(news)

// crashAsk is what an event asks, by its name.
func crashAsk(event string) RankAsk {
	i, _, _ := strings.Cut(event, "-")
	n, _ := strconv.Atoi(i)
	ask := newsAsk(n)
	ask.Event = event
	return ask
}

func newsVictim(t *testing.T, e *Engine) victim {
	return victim{name: "news", grid: 1, tick: 20 * time.Millisecond,
		decide: func() (string, time.Time, bool) {
			ask := crashAsk(fmt.Sprintf("%d-%x", rand.IntN(1000), rand.Uint64()))
			say("ask %s", ask.Event)
			r, err := e.Rank(t.Context(), "news", ask)
			if err != nil || r.Reason != Split {
				return "", time.Time{}, false
			}
			say("told %s %s", ask.Event, r.Action)
			return ask.Event, r.Expires, true
		},
		report: func(event string, steps int64) (Status, error) {
			return e.RewardEvent(t.Context(), "news", event, float64(steps)*release.ExactStep)
		},
		sum:  func(info Info) float64 { return info.Contextual.Rules[0].Sum },
		hold: func(w *witness) int { return w.holdContexts(t, e) },
	}
}

// holdContexts holds the lines against what was told, and gives how many decisions they release.
func (w *witness) holdContexts(t *testing.T, e *Engine) (released int) {
	t.Helper()
	known := map[int]newsDecision{}
	for event := range w.asked {
		x := mustFind(t, e, "news")
		x.mu.Lock()
		k, err := x.event(event)
		x.mu.Unlock()
		told, was := w.told[event]
		switch {
		case err != nil && !was: // and it counts nowhere
			continue
		case err != nil:
			w.fault("event %s was told, and is not there: %v", event, err)
			return 0
		}
		d := decideNews(t, e, crashAsk(event))
		if was && d.ranking.Action != told {
			w.fault("event %s was told %s, and is told %s", event, told, d.ranking.Action)
		}
		if _, twice := known[int(k.number)]; twice {
			w.fault("decision %d counts for two", k.number)
		}
		if d.steps = 1 << 18; Status(w.got[event]) == Accepted {
			d.steps = w.sent[event]
		}
		known[int(k.number)] = d
	}
	head := 0
	for i, line := range newsTranscript(t, e) {
		w.hear(fmt.Sprintf("line %d %s", i, line))
		var in struct {
			N       int
			Release struct{ Vector []float64 }
			Rules   []struct{ Release struct{ Sum []float64 } }
		}
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			t.Fatal(err)
		}
		if in.N == 0 {
			continue
		}
		var all []newsDecision
		var earned int64
		for n := head; n < head+in.N; n++ {
			d, ok := known[n]
			if !ok {
				w.fault("decision %d is nobody's", n)
				return released
			}
			all = append(all, d)
			weight := math.Round(1 / float64(len(d.ask.Actions)-(len(d.ask.Excluded)+1)/2) /
				d.ranking.Propensity / 20 * (1 << 20))
			earned += (int64(weight)*d.steps + 1<<19) >> 20
		}
		head += in.N
		released += in.N
		for j, want := range products(all) {
			if got := signedSteps(in.Release.Vector[j]); got != want {
				w.fault("line %d: component %d is %d steps of decisions %d to %d, accepted and defaults are %d", i, j,
					got, head-in.N, head, want)
			}
		}
		if got := stepsOf(in.Rules[0].Release.Sum[0]); got != earned {
			w.fault("line %d: the rule earned %d steps, accepted and defaults are %d", i, got, earned)
		}
	}
	return released
}

// A moody store fails commits now and then, of which some were made all the same.
type moody struct {
	store.Store
	ill *atomic.Bool
}

func (s moody) Commit(ctx context.Context, c store.Commit) error {
	if !s.ill.Load() || rand.IntN(4) > 0 {
		return s.Store.Commit(ctx, c)
	}
	if rand.IntN(2) == 0 {
		if err := s.Store.Commit(ctx, c); err != nil {
			return err
		}
	}
	return errDisk
}

// Whatever commits fail, also those of releases, and whether they were made or not: who asks again
// until there is an answer has one decision and one reward, and released is what was told.
func TestContextsOnAMoodyDisk(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	var ill atomic.Bool
	random := func() int { return rand.IntN(1000) }
	e := open(t, Config{Clock: c.Now, Curator: knownNoise(random), VectorCurator: knownVectors(random),
		Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return moody{s, &ill}, err
		}})
	begin(t, e, crashNews)
	w := newWitness(crashNews)
	var mu sync.Mutex
	failures := 0
	again := func(do func() error) {
		for {
			err := do()
			if err == nil {
				return
			}
			if !errors.Is(err, ErrUnavailable) {
				t.Error(err)
				return
			}
			mu.Lock()
			failures++
			mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	}
	for phase := range 4 {
		ill.Store(true)
		var group sync.WaitGroup
		for client := range 4 {
			group.Go(func() {
				for i := range 12 {
					event, steps := fmt.Sprintf("%d-%d-%d", i, client, phase), rand.Int64N(1<<20+1)
					var r Ranking
					again(func() (err error) {
						r, err = e.Rank(t.Context(), "news", crashAsk(event))
						return err
					})
					var s Status
					again(func() (err error) {
						s, err = e.RewardEvent(t.Context(), "news", event, float64(steps)*release.ExactStep)
						return err
					})
					mu.Lock()
					w.asked[event], w.told[event], w.sent[event], w.got[event] = true, r.Action, steps, string(s)
					mu.Unlock()
				}
			})
		}
		group.Wait()
		for range 30 {
			c.Add(20 * time.Millisecond)
			again(func() error { return e.Sync(t.Context()) })
		}
	}
	ill.Store(false)
	settle(t, e, c, 20*time.Millisecond, 30)
	released := w.holdContexts(t, e)
	for _, f := range w.faults {
		t.Error(f)
	}
	info, _ := e.Get(t.Context(), "news")
	for _, s := range w.got {
		if Status(s) != Accepted {
			t.Errorf("a reward is %s", s)
		}
	}
	if in := info.Contextual; failures == 0 || released < 40 || in.Released != released || in.Decisions != 192 {
		t.Errorf("%d failures, %d decisions released, %+v", failures, released, in)
	}
}

// However often the process is killed, an event that was told is there, as it was told; what is
// released is the vectors of the decisions times what was accepted, and defaults for what was not;
// what was shown once is not shown differently.
func TestCrashContexts(t *testing.T) { crashes(t, crashNews) }

// Stores that are wrong are found.
func TestCrashContextsTwins(t *testing.T) {
	crashTwins(t, crashNews, map[string]string{
		"answers before the fsync":            "there is no such event|was told, and is not there",
		"releases outside of the transaction": "the transcript does not hold",
		"draws noise again":                   "was shown as",
		"issues numbers again":                "counts for two",
		"forgets vectors":                     "events of",
	})
}
