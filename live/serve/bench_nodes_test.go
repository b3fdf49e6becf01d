//go:build unix

package serve

import (
	"context"
	"fmt"
	"strings"
	"testing"

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
