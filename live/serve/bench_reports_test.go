package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/circl/vdaf/prio3/sum"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/prio"
)

// Reports at the leader: accept is from a message to its row on the disk, in hundreds; gather from the
// rows of a slot to its sum, over HTTP to a helper that has its answers ready, so that the work is the
// leader's alone. Both are by CPU of the process: reports a second and core.
func BenchmarkHiddenReports(b *testing.B) {
	for _, grid := range []int{1, 1024} {
		p := newParty(b, func() int64 { return 0 })
		shop := strings.NewReplacer("grid: 1024", fmt.Sprint("grid: ", grid), "window: 1m", "window: 24h",
			"report_after: 20s", "report_after: 1h").Replace(p.shop())
		x := parse(b, shop)
		var err error
		if p.task, err = x.Task(); err != nil {
			b.Fatal(err)
		}
		e := open(b, Config{Store: store.SQLite(b.TempDir()), HelperSecret: func(string) []byte {
			return bytes.Clone(shared)
		}})
		begin(b, e, shop)
		const slots = 1024 // reports
		var bodies []Message
		size := 0
		rows := map[int][]store.Hidden{}
		for len(rows[0]) < slots {
			d := decided(b, e, 1)[0]
			m := p.report(b, e, d, uint64(grid))
			k, err := dap.ParseTicket(m.Ticket)
			if err != nil {
				b.Fatal(err)
			}
			rows[d.Arm] = append(rows[d.Arm], store.Hidden{Arm: d.Arm, Number: int(k.Number), Data: m.Body})
			bodies, size = append(bodies, m), size+len(m.Body)
		}
		b.Run(fmt.Sprintf("grid=%d/accept", grid), func(b *testing.B) {
			made, err := dap.ParseReport(bodies[0].Body)
			if err != nil {
				b.Fatal(err)
			}
			used, n := time.Duration(0), 0
			for ; n < b.N; n += 100 {
				b.StopTimer()
				some := make([]Message, 100)
				for i, d := range decided(b, e, 100) { // whether it opens is not asked yet
					if made.Ticket, err = dap.ParseTicket(d.Report.Ticket); err != nil {
						b.Fatal(err)
					}
					some[i] = Message{d.Report.Ticket, made.Marshal()}
				}
				b.StartTimer()
				from := cpu()
				if out, err := e.Reports(context.Background(), "shop", some); err != nil || out[0].Status != Accepted {
					b.Fatal(out, err)
				}
				used += cpu() - from
			}
			b.ReportMetric(float64(n)/used.Seconds(), "reports/core-s")
			b.ReportMetric(float64(size)/float64(len(bodies)), "bytes/report")
		})
		b.Run(fmt.Sprintf("grid=%d/gather", grid), func(b *testing.B) {
			g := mustFind(b, e, "shop").gatherer
			of := slot{play.Taken{Arm: 0, End: slots}, func(yield func(store.Hidden, error) bool) {
				for _, r := range rows[0][:slots] {
					if !yield(r, nil) {
						return
					}
				}
			}}
			if _, err := g.gather(context.Background(), of); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			used, n := cpu(), 0
			for ; n < b.N; n += slots {
				if out, err := g.gather(context.Background(), of); err != nil || out.answers != slots {
					b.Fatal(out, err)
				}
			}
			b.ReportMetric(float64(n)/(cpu()-used).Seconds(), "reports/core-s")
		})
		b.Run(fmt.Sprintf("grid=%d/circl", grid), func(b *testing.B) {
			used := cpu()
			circlLeader(b, uint64(grid))
			b.ReportMetric(float64(b.N)/(cpu()-used).Seconds(), "reports/core-s")
		})
	}
}

// circlLeader checks a report b.N times as the leader, the helper's answer being there.
func circlLeader(b *testing.B, grid uint64) {
	b.Helper()
	ctx := []byte("a context of 38 bytes, as a task has it")
	own, err := prio.NewSum(grid, ctx)
	if err != nil {
		b.Fatal(err)
	}
	bare, err := sum.New(2, grid, ctx)
	if err != nil {
		b.Fatal(err)
	}
	key, nonce, params := prio.VerifyKey{1}, prio.Nonce{2}, bare.Params()
	var bytes [2][]byte
	if bytes[0], bytes[1], err = own.Shard(grid, &nonce, rand.Reader); err != nil {
		b.Fatal(err)
	}
	var in [2]sum.InputShare
	var sent [2]sum.PrepShare
	for i := range in {
		if err := in[i].New(&params, uint(i)).UnmarshalBinary(bytes[i]); err != nil {
			b.Fatal(err)
		}
		_, share, err := bare.PrepInit(&key, &nonce, uint8(i), nil, in[i])
		if err != nil {
			b.Fatal(err)
		}
		sent[i] = *share
	}
	m, err := bare.PrepSharesToPrep(sent[:])
	if err != nil {
		b.Fatal(err)
	}
	total := bare.AggregateInit()
	b.ResetTimer()
	for range b.N {
		state, _, err := bare.PrepInit(&key, &nonce, 0, nil, in[0])
		if err != nil {
			b.Fatal(err)
		}
		out, err := bare.PrepNext(state, m)
		if err != nil {
			b.Fatal(err)
		}
		bare.AggregateUpdate(&total, out)
	}
}
