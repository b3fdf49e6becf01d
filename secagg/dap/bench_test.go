package dap_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// BenchmarkReports is what each party computes for one report. Most of the servers' part is one
// X25519 each, to open a share; package prio's BenchmarkServers is the rest, beside circl's own.
func BenchmarkReports(b *testing.B) {
	for _, grid := range []uint64{1, 1024, 1 << 20} {
		w := newWorld(b, grid)
		reports := make([]dap.Report, dap.MaxJob)
		for i := range reports {
			reports[i] = w.report(b, w.batch.Start+uint64(i), grid)
		}
		request := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, reports)).Request()
		per := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*dap.MaxJob), "µs/report")
			b.ReportMetric(float64(len(request))/dap.MaxJob, "bytes/report")
		}
		b.Run(fmt.Sprintf("g=%d/client", grid), func(b *testing.B) {
			b.ReportAllocs()
			leader, helper := w.leader.Config(), w.helper.Config()
			for b.Loop() {
				if _, err := dap.NewReport(w.task, leader, helper, 0, w.ticket(10), grid,
					rand.Reader); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(reports[0].Marshal())), "bytes/report")
		})
		b.Run(fmt.Sprintf("g=%d/leader", grid), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				j := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, reports))
				if !bytes.Equal(j.Request(), request) {
					b.Fatal("the same reports make another request")
				}
			}
			per(b)
		})
		b.Run(fmt.Sprintf("g=%d/helper", grid), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, a := w.help(b, request); a.Count != dap.MaxJob {
					b.Fatalf("%d of %d pass", a.Count, dap.MaxJob)
				}
			}
			per(b)
		})
	}
}
