//go:build unix

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
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

// TestCrashContextsChild is the process that is killed. Beside what TestCrashChild says it says
//
//	ask EVENT            an event is about to be ranked
//	told EVENT ACTION    and was answered
func TestCrashContextsChild(t *testing.T) {
	e, held, start := openChild(t)
	report := func(event string, steps int64) {
		for {
			s, err := e.RewardEvent(t.Context(), "news", event, float64(steps)*release.ExactStep)
			switch {
			case err == nil:
				say("got %s %s", event, s)
				return
			case errors.Is(err, ErrEvent):
				say("failed event %s was told, and is not there", event)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	reportAll(report)
	if info, err := e.Get(t.Context(), "news"); err != nil || info.State == Failed {
		say("failed %s %v", info.Reason, err)
		return
	}
	start()
	say("ready")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				ask := crashAsk(fmt.Sprintf("%d-%x", rand.IntN(1000), rand.Uint64()))
				say("ask %s", ask.Event)
				r, err := e.Rank(t.Context(), "news", ask)
				if err != nil || r.Reason != Split {
					continue
				}
				say("told %s %s", ask.Event, r.Action)
				if rand.IntN(4) > 0 {
					steps, letGo := rand.Int64N(1<<20+1), held.of(e, ask.Event, r.Expires)
					say("sent %s %d", ask.Event, steps)
					report(ask.Event, steps)
					letGo()
				}
			}
		})
	}
	sayShown(t, e, "news", func(info Info) float64 { return info.Contextual.Rules[0].Sum })
}

// judgeContexts opens the store a last time, releases all that can be, and holds every released sum
// against the vectors of the events that were told, and their rewards that were accepted.
func (w *witness) judgeContexts(t *testing.T, dir string) (released int) {
	t.Helper()
	c := clock.At(time.UnixMilli(1))
	zero := func() int { return 0 }
	e := open(t, Config{Clock: c.Now, Curator: knownNoise(zero), VectorCurator: knownVectors(zero),
		Store: store.SQLite(dir)})
	defer func() { _ = e.Close() }()
	for _, text := range w.open() {
		event, steps, _ := strings.Cut(text, " ")
		n, _ := strconv.ParseInt(steps, 10, 64)
		s, err := e.RewardEvent(t.Context(), "news", event, float64(n)*release.ExactStep)
		if err != nil {
			w.fault("a reward is refused: %v", err)
			return 0
		}
		w.got[event] = string(s)
	}
	settle(t, e, c, 20*time.Millisecond, 60)
	info, _ := e.Get(t.Context(), "news")
	if info.State == Failed {
		w.fault("failed %s", info.Reason)
		return 0
	}
	return w.holdContexts(t, e)
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
	w := newWitness("")
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

func crashContexts(t *testing.T, fault string, kills int) (w *witness, released int) {
	t.Helper()
	dir := t.TempDir()
	zero := func() int { return 0 }
	e := open(t, Config{Store: store.SQLite(dir), Clock: func() time.Time { return time.UnixMilli(1) },
		Curator: knownNoise(zero), VectorCurator: knownVectors(zero)})
	begin(t, e, crashNews)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if w = newWitness("TestCrashContextsChild"); !w.lives(t, dir, fault, kills) {
		return w, 0
	}
	return w, w.judgeContexts(t, dir)
}

// However often the process is killed, an event that was told is there, as it was told; what is
// released is the vectors of the decisions times what was accepted, and defaults for what was not;
// what was shown once is not shown differently.
func TestCrashContexts(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	w, released := crashContexts(t, "", kills())
	for _, f := range w.faults {
		t.Error(f)
	}
	counts := map[string]int{}
	for _, s := range w.got {
		counts[s]++
	}
	t.Logf("%d kills, %d times ready, %d events told, %d rewards sent, %v, %d lines shown, %d decisions released",
		kills(), w.starts, len(w.told), len(w.sent), counts, len(w.lines), released)
	if counts["accepted"] == 0 || released == 0 || w.starts < kills()/4 {
		t.Errorf("nothing was tried: %v, %d released, %d starts", counts, released, w.starts)
	}
}

// Stores that are wrong are found.
func TestCrashContextsTwins(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	for fault, as := range map[string]string{
		"answers before the fsync":            "there is no such event|was told, and is not there",
		"releases outside of the transaction": "the transcript does not hold",
		"draws noise again":                   "was shown as",
		"issues numbers again":                "counts for two",
		"forgets vectors":                     "events of",
	} {
		found := regexp.MustCompile(as)
		t.Run(fault, func(t *testing.T) {
			for range 20 { // each finds it with a probability far above a half
				w, _ := crashContexts(t, fault, 12)
				for _, f := range w.faults {
					if found.MatchString(f) {
						t.Log(f)
						return
					}
				}
			}
			t.Error("it was not found")
		})
	}
}
