package dap_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/secagg/dap"
)

// world is a task, its two servers, and a batch that their reports are of.
type world struct {
	task           dap.Task
	leader, helper dap.Key
	verify         dap.VerifyKey
	batch          dap.Batch
}

func newWorld(t testing.TB, grid uint64) world {
	t.Helper()
	w := world{task: dap.Task{ID: dap.TaskID{1, 2, 3}, Grid: grid},
		batch: dap.Batch{Arm: 2, Start: 10, End: 10000}}
	var errs [3]error
	w.leader, errs[0] = dap.DeriveKey(bytes.Repeat([]byte{1}, 32), 1)
	w.helper, errs[1] = dap.DeriveKey(bytes.Repeat([]byte{2}, 32), 2)
	w.verify, errs[2] = dap.DeriveVerify(bytes.Repeat([]byte{3}, 32), w.task.ID)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w world) ticket(number uint64) dap.Ticket {
	return dap.Ticket{Arm: w.batch.Arm, Number: number, Token: fmt.Appendf(nil, "token %d", number)}
}

func (w world) report(t testing.TB, number, value uint64) dap.Report {
	t.Helper()
	r, err := dap.NewReport(w.task, w.leader.Config(), w.helper.Config(), 488_000, w.ticket(number),
		value, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// What the leader has came over the wire.
	back, err := dap.ParseReport(r.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func all(dap.Metadata) error { return nil }

// run is one job between the two servers.
func (w world) run(t testing.TB, reports []dap.Report) (leader, helper dap.Aggregate,
	refused []dap.Refusal) {
	t.Helper()
	j, err := dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, reports)
	if err != nil {
		t.Fatal(err)
	}
	response, helper := w.help(t, j.Request())
	leader, refused, err = j.Finish(response)
	if err != nil {
		t.Fatal(err)
	}
	return leader, helper, refused
}

func (w world) help(t testing.TB, request []byte) ([]byte, dap.Aggregate) {
	t.Helper()
	job, err := dap.ParseJob(w.task, request)
	if err != nil {
		t.Fatal(err)
	}
	if job.Batch != w.batch {
		t.Fatalf("the helper reads batch %v, not %v", job.Batch, w.batch)
	}
	response, helper, err := job.Help(w.helper, w.verify, all)
	if err != nil {
		t.Fatal(err)
	}
	return response, helper
}

// meet is what the leader learns when the helper adds this noise.
func (w world) meet(t testing.TB, leader, helper dap.Aggregate, noise int64) int64 {
	t.Helper()
	request, err := dap.ParseShareRequest(leader.Request(w.batch).Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if err := request.Check(w.task, helper); err != nil {
		t.Fatal(err)
	}
	share, err := helper.Share(w.task, noise)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := dap.Meet(w.task, leader, share, 0)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// Whatever the values, the grid, the noise and the cut into jobs are, the leader learns the plain
// sum, in steps of 2^-20, and the helper's noise.
func TestSumIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		grid := uint64(1) << rapid.IntRange(0, 20).Draw(rt, "log grid")
		w := newWorld(t, grid)
		var leader, helper dap.Aggregate
		want, number := int64(0), w.batch.Start
		for range rapid.IntRange(0, 3).Draw(rt, "jobs") {
			var reports []dap.Report
			for range rapid.IntRange(0, 4).Draw(rt, "reports") {
				x := rapid.Uint64Range(0, grid).Draw(rt, "value")
				reports = append(reports, w.report(t, number, x))
				want += int64(x * (dap.MaxGrid / grid))
				number++
			}
			l, h, refused := w.run(t, reports)
			if len(refused) > 0 {
				rt.Fatalf("refused %v", refused)
			}
			leader, helper = leader.Add(l), helper.Add(h)
		}
		if n := int(number - w.batch.Start); leader.Count != n || helper.Count != n {
			rt.Fatalf("the leader counts %d, the helper %d, want %d", leader.Count, helper.Count, n)
		}
		kept, err := helper.MarshalBinary()
		if err != nil {
			rt.Fatal(err)
		}
		helper = dap.Aggregate{}
		if err := helper.UnmarshalBinary(kept); err != nil {
			rt.Fatal(err)
		}
		noise := rapid.Int64Range(-1<<60, 1<<60).Draw(rt, "noise")
		if got := w.meet(t, leader, helper, noise); got != want+noise {
			rt.Fatalf("the sum is %d, want %d and the noise %d", got, want, noise)
		}
	})
}
