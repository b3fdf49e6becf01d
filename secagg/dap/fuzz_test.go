package dap_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// fuzzed are messages of every kind, for seeds.
func fuzzed(f *testing.F) (w world, reports []dap.Report, j *dap.LeaderJob, response []byte) {
	w = newWorld(f, 2)
	coins := rand.NewChaCha8([32]byte{1})
	for i := range uint64(2) {
		reports = append(reports, testkit.Must(dap.NewReport(w.task, w.leader.Config(), w.helper.Config(), 488_000,
			w.ticket(20+i), i, coins)))
	}
	j = testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, reports))
	response, _ = w.help(f, j.Request())
	return w, reports, j, response
}

// Parsers read exactly what is written: what they accept is written as the same bytes.
func FuzzParsers(f *testing.F) {
	w, reports, _, _ := fuzzed(f)
	a, _, _ := w.run(f, reports)
	ask := a.Request(w.batch).Marshal()
	id := w.batch.ID()
	for _, b := range [][]byte{reports[0].Marshal(), append(reports[0].Marshal(), reports[1].Marshal()...),
		w.leader.Config().Marshal(), dap.MarshalConfigs(w.leader.Config(), w.helper.Config()),
		reports[0].Ticket.Marshal(), ask, testkit.Must(a.MarshalBinary()), id[:], make([]byte, 17),
		[]byte(w.leader.Config().String()), []byte(w.task.ID.String())} {
		f.Add(b)
		f.Add(b[:len(b)-1])
		f.Add(append(bytes.Clone(b), 0))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(what string, again []byte) {
			t.Helper()
			if !bytes.Equal(again, b) {
				t.Errorf("%s: read as %x, written as %x", what, b, again)
			}
		}
		if r, err := dap.ParseReport(b); err == nil {
			same("report", r.Marshal())
		}
		if rs, err := dap.ParseReports(b, 3); err == nil {
			var again []byte
			for _, r := range rs {
				again = append(again, r.Marshal()...)
			}
			same("reports", again)
		}
		if c, err := dap.ParseConfig(b); err == nil {
			same("configuration", c.Marshal())
		}
		_, _ = dap.ParseConfigs(b)
		var c dap.Config
		if err := c.UnmarshalText(b); err == nil {
			same("configuration in text", []byte(c.String()))
		}
		if x, err := dap.ParseTicket(b); err == nil {
			same("ticket", x.Marshal())
		}
		if r, err := dap.ParseShareRequest(b); err == nil {
			same("share request", r.Marshal())
		}
		var a dap.Aggregate
		if err := a.UnmarshalBinary(b); err == nil {
			same("aggregate", testkit.Must(a.MarshalBinary()))
		}
		if len(b) == 32 {
			if x, err := dap.ParseBatch([32]byte(b)); err == nil {
				id := x.ID()
				same("batch", id[:])
			}
		}
		if s, err := dap.ParseUploadResponse(b); err == nil {
			same("upload response", dap.MarshalUploadResponse(s...))
		}
		if id, err := dap.ParseTaskID(string(b)); err == nil {
			same("task id", []byte(id.String()))
		}
		_, _ = dap.Meet(w.task, a, b, 0)
	})
}

// Whatever a leader asks, the helper gives an answer to every report of the job or refuses it
// whole, and the leader reads it.
func FuzzHelp(f *testing.F) {
	w, _, j, response := fuzzed(f)
	for _, b := range [][]byte{j.Request(), j.Request()[:60], testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify,
		w.batch, nil)).Request()} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		job, err := dap.ParseJob(w.task, request)
		if err != nil {
			return
		}
		answer, a, err := job.Help(w.helper, w.verify, all)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(job.Reports()); a.Count+a.Refused != n {
			t.Errorf("of %d reports %d count and %d are refused", n, a.Count, a.Refused)
		}
		// Both count in the job that was asked, or in one of another batch that they are in.
		if a.Count == 2 {
			id, asked := w.batch.ID(), bytes.Clone(request)
			copy(asked[7:], id[:])
			if !bytes.Equal(asked, j.Request()) || !bytes.Equal(answer, response) {
				t.Errorf("another request, %x, has both reports count", request)
			}
		}
	})
}

// Whatever a helper answers, the leader counts no report that it does not have.
func FuzzFinish(f *testing.F) {
	_, _, j, response := fuzzed(f)
	f.Add(response)
	f.Add(response[:len(response)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, refused, err := j.Finish(b); err == nil && a.Count+len(refused) != 2 {
			t.Errorf("%d count, %d are refused, of 2", a.Count, len(refused))
		}
	})
}
