package dap_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// What is as large as it may be is read, and what is larger by one is refused.
func TestLimits(t *testing.T) {
	w := newWorld(t, 1)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, dap.InvalidMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	taken := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := dap.ParseTicket(make([]byte, 12+dap.MaxToken))
	taken("the longest token", err)
	_, err = dap.ParseTicket(make([]byte, 13+dap.MaxToken))
	refused("a longer token", err)
	if !strings.Contains(err.Error(), "must be from 12 to 1036") {
		t.Error(err)
	}

	r := w.report(t, 20, 1)
	long := r
	long.Helper.Payload = make([]byte, dap.MaxReport-len(r.Marshal())+len(r.Helper.Payload))
	_, err = dap.ParseReport(long.Marshal())
	taken("the longest report", err)
	_, err = dap.ParseReports(append(long.Marshal(), long.Marshal()...), 2)
	taken("the longest reports", err)
	long.Helper.Payload = append(long.Helper.Payload, 0)
	_, err = dap.ParseReport(long.Marshal())
	refused("a longer report", err)
	for i := range r.Marshal() {
		if _, err := dap.ParseReport(r.Marshal()[:i]); !errors.Is(err, dap.InvalidMessage) {
			t.Errorf("the first %d bytes of a report: %v", i, err)
		}
	}
	two := append(r.Marshal(), w.report(t, 21, 0).Marshal()...)
	got, err := dap.ParseReports(two, 2)
	taken("two reports of two", err)
	if len(got) != 2 || got[1].Ticket.Number != 21 {
		t.Errorf("read as %+v", got)
	}
	_, err = dap.ParseReports(two, 1)
	refused("two reports of one", err)
	_, err = dap.ParseReports(nil, 1)
	refused("no report", err)

	// A job checks the sealed share alone: the leader's is not in it.
	long.Helper.Payload = make([]byte, dap.MaxReport)
	ask := func(r dap.Report) []byte {
		return testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, []dap.Report{r})).Request()
	}
	_, err = dap.ParseJob(w.task, ask(long))
	taken("the longest sealed share", err)
	long.Helper.Payload = append(long.Helper.Payload, 0)
	_, err = dap.ParseJob(w.task, ask(long))
	refused("a longer sealed share", err)
	if _, err = dap.ParseJob(w.task, make([]byte, dap.MaxRequest)); strings.Contains(err.Error(), "at most") {
		t.Errorf("a request of the greatest length is refused for it: %v", err)
	}
	if _, err = dap.ParseJob(w.task, make([]byte, dap.MaxRequest+1)); !strings.Contains(err.Error(),
		"at most") {
		t.Errorf("a longer request: %v", err)
	}
	full := make([]dap.Report, dap.MaxJob)
	for i := range full {
		full[i] = w.report(t, 20+uint64(i), 0)
	}
	j, err := dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, full)
	taken("the largest job", err)
	job, err := dap.ParseJob(w.task, j.Request())
	taken("the largest job", err)
	if len(job.Reports()) != dap.MaxJob {
		t.Errorf("%d reports are read", len(job.Reports()))
	}

	kept := make([]byte, 56)
	binary.BigEndian.PutUint64(kept, 1<<31-1)
	binary.BigEndian.PutUint64(kept[8:], 1<<31-1)
	taken("the largest aggregate", new(dap.Aggregate).UnmarshalBinary(kept))
	for at := range 2 {
		more := append([]byte(nil), kept...)
		binary.BigEndian.PutUint64(more[8*at:], 1<<31)
		refused("a larger aggregate", new(dap.Aggregate).UnmarshalBinary(more))
	}
	request := dap.ShareRequest{Batch: w.batch, Count: 1<<31 - 1}.Marshal()
	_, err = dap.ParseShareRequest(request)
	taken("the greatest count", err)
	binary.BigEndian.PutUint64(request[39:], 1<<31)
	_, err = dap.ParseShareRequest(request)
	refused("a greater count", err)
	_, err = dap.ParseUploadResponse(make([]byte, 18))
	refused("half a status", err)
	statuses, err := dap.ParseUploadResponse(dap.MarshalUploadResponse(
		dap.UploadStatus{ID: dap.ReportID{1}, Reason: dap.ReportReplayed},
		dap.UploadStatus{ID: dap.ReportID{2}, Reason: dap.ReportDropped}))
	taken("two statuses", err)
	if len(statuses) != 2 || statuses[1] != (dap.UploadStatus{ID: dap.ReportID{2}, Reason: dap.ReportDropped}) {
		t.Errorf("statuses are read as %+v", statuses)
	}
	if last := w.ticket(w.batch.End); w.batch.Has(last) || !w.batch.Has(w.ticket(w.batch.End-1)) {
		t.Error("a batch ends before its end, or with it")
	}
}

func TestTimeAndErrors(t *testing.T) {
	for at, want := range map[time.Time]uint64{
		time.Unix(0, 0): 0, time.Unix(3599, 999): 0, time.Unix(3600, 0): 1, time.Unix(-5, 0): 0,
		time.Date(2026, 11, 23, 1, 30, 0, 0, time.UTC): 498_721,
	} {
		if got := dap.Time(at); got != want {
			t.Errorf("%v is %d, want %d", at, got, want)
		}
	}
	for err, want := range map[error]string{dap.ReportError(0): "dap: report: reserved",
		dap.OutdatedConfig: "dap: report: outdated_config", dap.ReportError(12): "dap: report: error 12",
		dap.InvalidReport: "dap: report: invalid_message", dap.BatchOverlap: "dap: batchOverlap"} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if got := dap.BatchOverlap.Type(); got != "urn:ietf:params:ppm:dap:error:batchOverlap" {
		t.Error(got)
	}
}
