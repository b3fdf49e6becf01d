package serve

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// dimNews is an experiment with contexts whose vectors have d components: one, two classes of c values each,
// and their products.
func dimNews(c int) string {
	values := func(of string) (out []string) {
		for i := range c {
			out = append(out, fmt.Sprint(of, i))
		}
		return out
	}
	return fmt.Sprintf(`
name: news
contextual:
  context: {place: {values: [%s]}}
  action: {topic: {values: [%s]}}
  cross: [{of: [place, topic]}]
policy: {policy: adac-oful}
horizon: 1e9
budget: {rho: 1}
unit: {of: visit}
window: 1s
floor: 0.1
`, join(values("p")), join(values("t")))
}

func join(all []string) (out string) {
	for i, s := range all {
		if i > 0 {
			out += ", "
		}
		out += s
	}
	return out
}

func dimAsk(c, i int) RankAsk {
	ask := RankAsk{Event: fmt.Sprint("event ", i), Context: map[string]any{"place": fmt.Sprint("p", i%c)}}
	for a := range 10 {
		ask.Actions = append(ask.Actions, Action{ID: fmt.Sprint(a),
			Features: map[string]any{"topic": fmt.Sprint("t", (a+i/c)%c)}})
	}
	return ask
}

// dimEngine is an engine with such an experiment, and what has so many events come.
func dimEngine(b *testing.B, c int, at opener) (cfg Config, e *Engine, come func(n int)) {
	b.Helper()
	now := newClock()
	cfg = Config{Store: at, Clock: now.Now}
	e, err := Open(context.Background(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	begin(b, e, dimNews(c))
	came := 0
	return cfg, e, func(n int) {
		for range n {
			ask := dimAsk(c, came)
			came++
			if _, err := e.Rank(context.Background(), "news", ask); err != nil {
				b.Fatal(err)
			}
			if _, err := e.RewardEvent(context.Background(), "news", ask.Event, float64(came%2)); err != nil {
				b.Fatal(err)
			}
			if now.Add(20 * time.Millisecond); came%20 == 0 {
				if err := e.Sync(context.Background()); err != nil { // a release, if it is due
					b.Fatal(err)
				}
			}
		}
	}
}

// Experiments with contexts by the dimension of their vectors: an event with its reward, one after the other on
// SQLite, and a start after 10 000 of them. CPU is all of the process's; the transcript's size is beside it.
func BenchmarkDimension(b *testing.B) {
	for _, c := range []int{2, 5, 9, 14} {
		d := (c + 1) * (c + 1)
		b.Run(fmt.Sprintf("event/d=%d", d), func(b *testing.B) {
			_, e, come := dimEngine(b, c, store.SQLite(b.TempDir()))
			if got := mustFind(b, e, "news").events.mapper.Dim(); got != d {
				b.Fatal(got)
			}
			come(100)
			before := cpu()
			b.ResetTimer()
			come(b.N)
			b.ReportMetric(float64(cpu()-before)/float64(b.N)/1e3, "cpu-µs/op")
			_ = e.Close()
		})
		b.Run(fmt.Sprintf("start/d=%d", d), func(b *testing.B) {
			cfg, e, come := dimEngine(b, c, store.NewMemory().Open)
			come(10_000)
			info, _ := e.Get(context.Background(), "news")
			size := 0
			for _, line := range newsTranscript(b, e) {
				size += len(line) + 1
			}
			_ = e.Close()
			var used time.Duration
			for b.Loop() {
				before := cpu()
				e, err := Open(context.Background(), cfg)
				if err != nil {
					b.Fatal(err)
				}
				used += cpu() - before
				_ = e.Close()
			}
			b.ReportMetric(float64(used)/float64(b.N)/1e6, "cpu-ms/op")
			b.ReportMetric(float64(size)/1e6, "MB")
			b.ReportMetric(float64(info.Lines), "lines")
		})
	}
}
