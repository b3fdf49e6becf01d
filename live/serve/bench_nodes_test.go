//go:build unix

package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/pgtest"
)

// The same on PostgreSQL, on the machine of the benchmark: rewards by 64 clients, one by one and in
// hundreds, and decisions by 64 clients while their marks are written.
func BenchmarkPostgres(b *testing.B) {
	sticky := strings.Replace(benchShop, "sticky: false", "", 1)
	at := func(b *testing.B, text string) *Engine {
		b.Helper()
		return benchOn(b, text, postgresAt(b, pgtest.Database(b)))
	}
	b.Run("reward", func(b *testing.B) { benchReward(b, at(b, benchShop)) })
	b.Run("rewards", func(b *testing.B) { benchRewards(b, at(b, benchShop)) })
	for name, text := range map[string]string{"free": benchShop, "sticky": sticky} {
		b.Run("decide/"+name, func(b *testing.B) {
			e := at(b, text)
			n := max(b.N, 64)
			b.ResetTimer()
			clients(b, 64, n, func(i int) error {
				unit := ""
				if name == "sticky" {
					unit = fmt.Sprint(i)
				}
				_, err := e.Decide(context.Background(), "shop", unit)
				return err
			})
			perSecond(b, n)
		})
	}
}

// From the end of a writer whose experiment has 10^5 units until another process writes.
func BenchmarkTakeOver(b *testing.B) {
	address, ctx := pgtest.Database(b), context.Background()
	nodes := []*Engine{benchOn(b, strings.Replace(benchShop, "sticky: false", "", 1), postgresAt(b, address))}
	for i := range 100_000 {
		if _, err := nodes[0].Decide(ctx, "shop", fmt.Sprint(i)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		b.StopTimer()
		next, err := Open(ctx, Config{Store: postgresAt(b, address)})
		if err != nil {
			b.Fatal(err)
		}
		if err := nodes[0].Sync(ctx); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := nodes[0].Close(); err != nil {
			b.Fatal(err)
		}
		if err := next.Lead(ctx); err != nil {
			b.Fatal(err)
		}
		nodes[0] = next
	}
	_ = nodes[0].Close()
}

// Decisions and rewards of 16 experiments in 8 shares, which one, two and three processes share out, all of them in
// this one; 64 clients ask whoever writes. Beside them what a second costs in which nobody asks, and how long it takes
// from the end of a process until the others write all that it did.
func BenchmarkNodes(b *testing.B) {
	for nodes := 1; nodes <= 3; nodes++ {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			const shares = 8
			address, ctx := pgtest.Database(b), context.Background()
			all := []*Shares{sharesAt(b, address, "node0", shares)}
			names := beginIn(b, 16, all[0])
			for i := range nodes - 1 {
				all = append(all, sharesAt(b, address, fmt.Sprint("node", 1+i), shares))
			}
			within(b, time.Minute, "that all write as many", func() bool {
				each, whole := every(shares, all...)
				return whole && slices.Max(each) <= (shares+nodes-1)/nodes
			})
			from := cpu()
			time.Sleep(2 * time.Second)
			idle := float64((cpu() - from).Microseconds()) / 2e3
			// a machine that stands still has takeovers, and clients ask again
			ask := func(name string, what func(e *Engine) error) error {
				for {
					e := writerOf(b, name, all...)
					if e != nil {
						if err := what(e); !errors.Is(err, ErrUnavailable) {
							return err
						}
					}
					time.Sleep(time.Millisecond)
				}
			}
			n := max(b.N, 64)
			tokens := make([]string, n)
			from = cpu()
			clients(b, 64, n, func(i int) error {
				return ask(names[i%len(names)], func(e *Engine) error {
					d, err := e.Decide(ctx, names[i%len(names)], fmt.Sprint(i))
					tokens[i] = d.Token
					return err
				})
			})
			decide := float64((cpu() - from).Nanoseconds()) / 1e3 / float64(n)
			b.ResetTimer() // which forgets what was reported
			b.ReportMetric(idle, "idle-ms/s")
			b.ReportMetric(decide, "decide-µs")
			from = cpu()
			clients(b, 64, n, func(i int) error {
				return ask(names[i%len(names)], func(e *Engine) error {
					_, err := e.Reward(ctx, names[i%len(names)], Report{tokens[i], 1})
					return err
				})
			})
			b.ReportMetric(float64((cpu()-from).Nanoseconds())/1e3/float64(n), "reward-µs")
			perSecond(b, n)
			if nodes > 1 {
				b.StopTimer()
				if err := all[nodes-1].Close(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(within(b, time.Minute, "a takeover", func() bool {
					_, whole := every(shares, all[:nodes-1]...)
					return whole
				}).Seconds()*1e3, "takeover-ms")
			}
		})
	}
}
