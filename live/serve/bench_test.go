package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

const benchShop = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: visit}
window: 24h
floor: 0.05
sticky: false
`

func benchEngine(b *testing.B, text string) *Engine {
	b.Helper()
	return benchOn(b, text, store.SQLite(b.TempDir()))
}

func benchOn(b *testing.B, text string, at func(context.Context) (store.Store, error)) *Engine {
	b.Helper()
	e, err := Open(context.Background(), Config{Store: at})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	begin(b, e, text)
	return e
}

func tokens(b *testing.B, e *Engine, n int) []string {
	b.Helper()
	out := make([]string, n)
	for i := range out {
		d, err := e.Decide(context.Background(), "shop", "")
		if err != nil {
			b.Fatal(err)
		}
		out[i] = d.Token
	}
	return out
}

// clients runs n goroutines on the numbers below total, and reports the 99th percentile of what
// each of them took.
func clients(b *testing.B, n, total int, each func(i int) error) {
	b.Helper()
	var group sync.WaitGroup
	took := make([]time.Duration, total)
	for g := range n {
		group.Go(func() {
			for i := g; i < total; i += n {
				from := time.Now()
				if err := each(i); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(from)
			}
		})
	}
	group.Wait()
	slices.Sort(took)
	b.ReportMetric(took[total*99/100].Seconds()*1e3, "p99-ms")
}

func perSecond(b *testing.B, n int) { b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "per-s") }

// Durable single rewards, by 64 clients.
func BenchmarkReward(b *testing.B) { benchReward(b, benchEngine(b, benchShop)) }

func benchReward(b *testing.B, e *Engine) {
	b.Helper()
	all := tokens(b, e, max(b.N, 64))
	b.ReportAllocs()
	b.ResetTimer()
	clients(b, 64, len(all), func(i int) error {
		_, err := e.Reward(context.Background(), "shop", Report{all[i], 1})
		return err
	})
	perSecond(b, len(all))
}

// Durable rewards in hundreds, by 64 clients.
func BenchmarkRewards(b *testing.B) { benchRewards(b, benchEngine(b, benchShop)) }

func benchRewards(b *testing.B, e *Engine) {
	b.Helper()
	n := max(b.N/100, 64)
	all := tokens(b, e, 100*n)
	b.ReportAllocs()
	b.ResetTimer()
	clients(b, 64, n, func(i int) error {
		reports := make([]Report, 100)
		for j := range reports {
			reports[j] = Report{all[100*i+j], 1}
		}
		_, err := e.Rewards(context.Background(), "shop", reports)
		return err
	})
	perSecond(b, len(all))
}

// What the peer does: lines appended to a file and synced, in groups as large as come by 64 clients.
func BenchmarkLog(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := []byte(strings.Repeat("x", 64*70))
	n := 0
	for b.Loop() {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		n += 64
	}
	perSecond(b, n)
}

// Decisions by one caller, and the CPU of one: all of the process's, with the marks that the writer
// makes.
func BenchmarkDecide(b *testing.B) {
	for name, text := range map[string]string{"free": benchShop,
		"sticky": strings.Replace(benchShop, "sticky: false", "", 1)} {
		b.Run(name, func(b *testing.B) {
			e := benchEngine(b, text)
			unit := ""
			b.ReportAllocs()
			before := cpu()
			for i := 0; b.Loop(); i++ {
				if name == "sticky" {
					unit = fmt.Sprint(i)
				}
				if _, err := e.Decide(context.Background(), "shop", unit); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, b.N)
			b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// Start with 10^6 open decisions whose rewards all came, and how large their database is.
func BenchmarkOpen(b *testing.B) {
	for name, text := range map[string]string{"free": benchShop,
		"sticky": strings.Replace(benchShop, "sticky: false", "", 1)} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			e, err := Open(context.Background(), Config{Store: store.SQLite(dir)})
			if err != nil {
				b.Fatal(err)
			}
			begin(b, e, text)
			for i := range 1000 {
				reports := make([]Report, 1000)
				for j := range reports {
					unit := ""
					if name == "sticky" {
						unit = fmt.Sprint(i, j)
					}
					d, err := e.Decide(context.Background(), "shop", unit)
					if err != nil {
						b.Fatal(err)
					}
					reports[j] = Report{d.Token, 1}
				}
				if _, err := e.Rewards(context.Background(), "shop", reports); err != nil {
					b.Fatal(err)
				}
			}
			used := time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				before := cpu()
				if e, err = Open(context.Background(), Config{Store: store.SQLite(dir)}); err != nil {
					b.Fatal(err)
				}
				used += cpu() - before
			}
			_ = e.Close()
			b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
			if info, err := os.Stat(filepath.Join(dir, "sotto.db")); err == nil {
				b.ReportMetric(float64(info.Size())/1e6, "MB")
			}
		})
	}
}

// benchNews is an experiment with vectors of 20 components.
const benchNews = `
name: news
contextual:
  context: {device: {values: [phone, tablet, desktop]}, age: {range: [0, 100]}}
  action: {topic: {values: [war, sport, art]}, length: {range: [0, 3000]}}
  cross: [{of: [device, topic]}, {of: [device, length], buckets: 2}]
  rules:
    - {name: any, play: uniform, clip: 20, budget: {rho: 0.05}}
policy: {policy: adac-oful}
horizon: 1e9
budget: {rho: 1}
unit: {of: visit}
window: 24h
floor: 0.1
`

// Ranks of 50 actions in 20 dimensions: the choice alone, which is what is asked under 20 µs of CPU,
// and with the commit, on a disk in memory and on SQLite, by 64 clients; CPU is all of the process's.
func BenchmarkRank(b *testing.B) {
	ask := RankAsk{Context: map[string]any{"device": "tablet", "age": 44.0}}
	for i := range 50 {
		ask.Actions = append(ask.Actions, Action{ID: fmt.Sprint("article ", i), Features: map[string]any{
			"topic": []string{"war", "sport", "art"}[i%3], "length": float64(60 * i)}})
	}
	for name, clientsOf := range map[string]int{"choice": 0, "memory/64": 64, "sqlite/64": 64} {
		b.Run(name, func(b *testing.B) {
			at := store.NewMemory().Open
			if strings.HasPrefix(name, "sqlite") {
				at = store.SQLite(b.TempDir())
			}
			e := benchOn(b, benchNews, at)
			x, err := e.find("news")
			if err != nil || x.events.mapper.Dim() != 20 {
				b.Fatal(x.events.mapper.Dim(), err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu()
			rank := func(i int) error {
				ask := ask
				ask.Event = fmt.Sprint("event ", i)
				_, err := e.Rank(context.Background(), "news", ask)
				return err
			}
			if clientsOf == 0 {
				for i := range b.N {
					ask.Event = fmt.Sprint("event ", i)
					if _, _, err := x.rank(ask, e.now()); err != nil {
						b.Fatal(err)
					}
				}
			} else {
				clients(b, clientsOf, b.N, rank)
			}
			perSecond(b, b.N)
			b.ReportMetric(float64(cpu()-before)/float64(b.N)/1e3, "cpu-µs/op")
		})
	}
}
