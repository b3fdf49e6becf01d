package dap_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/prio"
)

// sealed is a report of input shares that need not be of any value.
func (w world) sealed(t testing.TB, m dap.Metadata, forLeader, forHelper []byte) dap.Report {
	t.Helper()
	r, err := dap.SealReport(w.task, w.leader.Config(), w.helper.Config(), m, forLeader, forHelper,
		rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shares are the input shares of a value under any range, for a nonce.
func (w world) shares(t testing.TB, largest, value uint64, id dap.ReportID) (leader, helper []byte) {
	t.Helper()
	sum, err := prio.NewSum(largest, append([]byte(dap.Version), w.task.ID[:]...))
	if err != nil {
		t.Fatal(err)
	}
	if leader, helper, err = sum.Shard(value, &id, rand.Reader); err != nil {
		t.Fatal(err)
	}
	return leader, helper
}

// Whatever a client sends, and whatever is put in the place of what an honest one sent, counts for
// a value from 0 to the grid, or is refused with the reason that is DAP's, at both servers alike;
// the honest reports beside it count as ever.
func TestAttacksAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		why  dap.ReportError
		make func(t *testing.T, w world) dap.Report
	}{
		{"one more than the grid, under the proof of a wider range", dap.VDAFPrepError,
			func(t *testing.T, w world) dap.Report {
				m := dap.Metadata{ID: dap.ReportID{5}, Ticket: w.ticket(50)}
				leader, helper := w.shares(t, 2047, w.task.Grid+1, m.ID) // as many bits, and bytes
				return w.sealed(t, m, leader, helper)
			}},
		{"less than nothing", dap.VDAFPrepError, func(t *testing.T, w world) dap.Report {
			m := dap.Metadata{ID: dap.ReportID{5}, Ticket: w.ticket(50)}
			leader, helper := w.shares(t, w.task.Grid, 0, m.ID)
			first := binary.LittleEndian.Uint64(leader)
			binary.LittleEndian.PutUint64(leader, sub(first, 1))
			return w.sealed(t, m, leader, helper)
		}},
		{"a bit of the measurement flipped", dap.VDAFPrepError, func(t *testing.T, w world) dap.Report {
			m := dap.Metadata{ID: dap.ReportID{5}, Ticket: w.ticket(50)}
			leader, helper := w.shares(t, w.task.Grid, 0, m.ID)
			first := binary.LittleEndian.Uint64(leader)
			binary.LittleEndian.PutUint64(leader, add(first, 1))
			return w.sealed(t, m, leader, helper)
		}},
		{"the shares of two reports", dap.VDAFPrepError, func(t *testing.T, w world) dap.Report {
			m := dap.Metadata{ID: dap.ReportID{5}, Ticket: w.ticket(50)}
			leader, _ := w.shares(t, w.task.Grid, 7, m.ID)
			_, helper := w.shares(t, w.task.Grid, 7, m.ID)
			return w.sealed(t, m, leader, helper)
		}},
		{"the shares of another task", dap.VDAFPrepError, func(t *testing.T, w world) dap.Report {
			m := dap.Metadata{ID: dap.ReportID{5}, Ticket: w.ticket(50)}
			other := w
			other.task.ID[0]++
			leader, helper := other.shares(t, w.task.Grid, 7, m.ID)
			return w.sealed(t, m, leader, helper)
		}},
		{"a leader's share of another length", dap.InvalidReport, func(t *testing.T, w world) dap.Report {
			m := dap.Metadata{ID: dap.ReportID{5}, Ticket: w.ticket(50)}
			leader, helper := w.shares(t, 1, 1, m.ID)
			return w.sealed(t, m, leader, helper)
		}},
		{"a helper's share of another length", dap.InvalidReport, func(t *testing.T, w world) dap.Report {
			m := dap.Metadata{ID: dap.ReportID{5}, Ticket: w.ticket(50)}
			leader, helper := w.shares(t, w.task.Grid, 1, m.ID)
			return w.sealed(t, m, leader, helper[1:])
		}},
		{"another task's report", dap.HPKEDecryptError, func(t *testing.T, w world) dap.Report {
			w.task.ID[31]++
			return w.report(t, 50, 7)
		}},
		{"another ticket", dap.HPKEDecryptError, func(t *testing.T, w world) dap.Report {
			r := w.report(t, 51, 7)
			r.Ticket = w.ticket(50)
			return r
		}},
		{"another token", dap.HPKEDecryptError, func(t *testing.T, w world) dap.Report {
			r := w.report(t, 50, 7)
			r.Ticket.Token[0]++
			return r
		}},
		{"another report id", dap.HPKEDecryptError, func(t *testing.T, w world) dap.Report {
			r := w.report(t, 50, 7)
			r.ID[0]++
			return r
		}},
		{"another time", dap.HPKEDecryptError, func(t *testing.T, w world) dap.Report {
			r := w.report(t, 50, 7)
			r.Time++
			return r
		}},
		{"another report's share for the helper", dap.HPKEDecryptError, func(t *testing.T, w world) dap.Report {
			r := w.report(t, 50, 7)
			r.Helper = w.report(t, 51, 7).Helper
			return r
		}},
		{"the servers' shares exchanged", dap.HPKEUnknownConfigID, func(t *testing.T, w world) dap.Report {
			r := w.report(t, 50, 7)
			r.Leader, r.Helper = r.Helper, r.Leader
			return r
		}},
		{"the helper's share for the leader, sealed to it", dap.HPKEDecryptError,
			func(t *testing.T, w world) dap.Report {
				other := w
				other.helper = w.leader
				r := w.report(t, 50, 7)
				r.Leader = other.report(t, 50, 7).Helper
				return r
			}},
		{"an old key of the helper's", dap.HPKEUnknownConfigID, func(t *testing.T, w world) dap.Report {
			other := w
			other.helper = testkit.Must(dap.DeriveKey(bytes.Repeat([]byte{2}, 32), 3))
			return other.report(t, 50, 7)
		}},
		{"a key of the same id that is not the helper's", dap.HPKEDecryptError,
			func(t *testing.T, w world) dap.Report {
				other := w
				other.helper = testkit.Must(dap.DeriveKey(bytes.Repeat([]byte{9}, 32), 2))
				return other.report(t, 50, 7)
			}},
		{"a point of low order in a sealed share", dap.HPKEDecryptError,
			func(t *testing.T, w world) dap.Report {
				r := w.report(t, 50, 7)
				r.Helper.Enc = [32]byte{}
				return r
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1024)
			reports := []dap.Report{w.report(t, 20, 3), c.make(t, w), w.report(t, 60, 1024)}
			leader, helper, refused := w.run(t, reports)
			if len(refused) != 1 || refused[0].Reason != c.why || refused[0].Ticket.Number != 50 {
				t.Fatalf("refused are %v, want ticket 50 as %v", refused, c.why)
			}
			if leader.Count != 2 || helper.Count != 2 || leader.Refused != 1 {
				t.Errorf("the leader counts %d and refuses %d, the helper counts %d", leader.Count,
					leader.Refused, helper.Count)
			}
			if got := w.meet(t, leader, helper, 5); got != 1027*1024+5 {
				t.Errorf("the sum is %d, want %d", got, 1027*1024+5)
			}
		})
	}
}

// A leader that gives the helper's share of one report another ticket, or another report's share,
// has it refused: neither opens.
func TestLeaderCannotMoveAShare(t *testing.T) {
	w := newWorld(t, 1)
	reports := []dap.Report{w.report(t, 20, 1), w.report(t, 21, 0)}
	request := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, reports)).Request()
	first, second := reports[0].Ticket.Marshal(), w.ticket(30).Marshal()
	moved := bytes.Replace(request, first, second, 1)
	if bytes.Equal(moved, request) {
		t.Fatal("the ticket is not in the request")
	}
	swapped := bytes.Clone(request)
	swap(t, swapped, reports[0].Helper.Payload, reports[1].Helper.Payload)
	swap(t, swapped, reports[0].Helper.Enc[:], reports[1].Helper.Enc[:])
	for name, request := range map[string][]byte{"moved": moved, "swapped": swapped} {
		response, helper := w.help(t, request)
		if !bytes.Contains(response, []byte{2, byte(dap.HPKEDecryptError)}) {
			t.Errorf("%s: the helper answers %x", name, response)
		}
		if want := map[string]int{"moved": 1, "swapped": 0}[name]; helper.Count != want {
			t.Errorf("%s: %d count, want %d", name, helper.Count, want)
		}
	}
}

// swap exchanges two pieces of the same length.
func swap(t *testing.T, b, x, y []byte) {
	t.Helper()
	i, j := bytes.Index(b, x), bytes.Index(b, y)
	if i < 0 || j < 0 || len(x) != len(y) {
		t.Fatal("the pieces are not there")
	}
	x, y = bytes.Clone(x), bytes.Clone(y)
	copy(b[i:], y)
	copy(b[j:], x)
}

// A leader that changes what it says of a report has it refused, and no more.
func TestLeaderCannotSpoilTheCheck(t *testing.T) {
	w := newWorld(t, 1)
	request := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, []dap.Report{w.report(t, 20, 1)})).
		Request()
	for i := range 24 { // the prep share is the last thing in the request
		bad := bytes.Clone(request)
		bad[len(bad)-1-i] ^= 1
		if _, helper := w.help(t, bad); helper.Count != 0 || helper.Refused != 1 {
			t.Errorf("byte %d from the end changed: %d count, %d are refused", i, helper.Count,
				helper.Refused)
		}
	}
	other := w
	other.verify[0]++
	request = testkit.Must(dap.NewLeaderJob(w.task, w.leader, other.verify, w.batch,
		[]dap.Report{w.report(t, 20, 1)})).Request()
	if _, helper := w.help(t, request); helper.Count != 0 {
		t.Error("a report passes under two verify keys")
	}
}

// A ticket or a report that was there before, or is of another batch, ends the job for both servers.
func TestJobsOfRepeatedReports(t *testing.T) {
	w := newWorld(t, 1)
	one := w.report(t, 20, 1)
	again := w.report(t, 20, 1)
	leader, helper := w.shares(t, 1, 1, one.ID)
	renamed := w.sealed(t, dap.Metadata{ID: one.ID, Ticket: w.ticket(21)}, leader, helper)
	outside := w.report(t, 9, 1)
	other := w
	other.batch.Arm++
	otherArm := other.report(t, 22, 1)
	for _, c := range []struct {
		name    string
		reports []dap.Report
		want    dap.Problem
	}{
		{"a report twice", []dap.Report{one, one}, dap.InvalidMessage},
		{"a ticket twice", []dap.Report{one, again}, dap.InvalidMessage},
		{"a report id twice", []dap.Report{one, renamed}, dap.InvalidMessage},
		{"before the batch", []dap.Report{one, outside}, dap.BatchInvalid},
		{"of another arm", []dap.Report{one, otherArm}, dap.BatchInvalid},
	} {
		if _, err := dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, c.reports); !errors.Is(err, c.want) {
			t.Errorf("%s: the leader says %v, want %v", c.name, err, c.want)
		}
		// A leader that asks all the same.
		var request []byte
		for i, r := range c.reports {
			part := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, anyBatch(w, r),
				[]dap.Report{r})).Request()
			if i == 0 {
				request = part[:selectorEnd]
			}
			request = append(request, part[selectorEnd:]...)
		}
		id := w.batch.ID()
		copy(request[7:], id[:])
		if _, err := dap.ParseJob(w.task, request); !errors.Is(err, c.want) {
			t.Errorf("%s: the helper says %v, want %v", c.name, err, c.want)
		}
	}
	big := make([]dap.Report, dap.MaxJob+1)
	for i := range big {
		big[i] = w.report(t, 20+uint64(i), 0)
	}
	if _, err := dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, big); err == nil {
		t.Error("a job of too many reports")
	}
}

// selectorEnd is where the reports of a job begin.
const selectorEnd = 4 + 1 + 2 + 32

// anyBatch is a batch that the report is in.
func anyBatch(w world, r dap.Report) dap.Batch {
	return dap.Batch{Arm: r.Ticket.Arm, Start: r.Ticket.Number, End: r.Ticket.Number + 1}
}

// What the helper does not admit is refused by both, and no word is computed of it; an error that
// is no refusal ends the job.
func TestAdmission(t *testing.T) {
	w := newWorld(t, 1)
	reports := []dap.Report{w.report(t, 20, 1), w.report(t, 21, 1)}
	reports[1].Helper.Payload[0]++ // it would not open: that must not be what is said
	j := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, reports))
	job := testkit.Must(dap.ParseJob(w.task, j.Request()))
	if all := job.Reports(); len(all) != 2 || all[1].ID != reports[1].ID || all[1].Ticket.Number != 21 ||
		string(all[1].Ticket.Token) != "token 21" || all[1].Time != 488_000 {
		t.Errorf("the job's reports are %+v", all)
	}
	response, helper, err := job.Help(w.helper, w.verify, func(m dap.Metadata) error {
		if m.Ticket.Number == 21 {
			return fmt.Errorf("ticket %d: %w", m.Ticket.Number, dap.ReportReplayed)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	leader, refused, err := j.Finish(response)
	if err != nil || len(refused) != 1 || refused[0].Reason != dap.ReportReplayed {
		t.Fatalf("refused are %v, %v", refused, err)
	}
	if got := w.meet(t, leader, helper, 0); got != 1<<20 {
		t.Errorf("the sum is %d", got)
	}
	broken := errors.New("the disk is full")
	if _, _, err := job.Help(w.helper, w.verify, func(dap.Metadata) error {
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("an error of the store: %v", err)
	}
}

// A leader reads no response but one to its request.
func TestLyingResponses(t *testing.T) {
	w := newWorld(t, 1)
	j := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch,
		[]dap.Report{w.report(t, 20, 1), w.report(t, 21, 0)}))
	good, _ := w.help(t, j.Request())
	one := len(good) / 2
	other := bytes.Clone(good)
	other[0]++
	finished := append(append(bytes.Clone(good[:16]), 1), good[one:]...)
	unreasoned := append(append(bytes.Clone(good[:16]), 2, 0), good[one:]...)
	again := bytes.Clone(good)
	again[21] = 1 // another kind of ping-pong message
	for name, bad := range map[string][]byte{
		"nothing": nil, "half of it": good[:one], "cut short": good[:len(good)-1],
		"more": append(bytes.Clone(good), 0), "another order": append(bytes.Clone(good[one:]), good[:one]...),
		"another report": other, "finished before it began": finished, "no reason": unreasoned,
		"not the end": again,
	} {
		if _, _, err := j.Finish(bad); !errors.Is(err, dap.InvalidMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if leader, refused, err := j.Finish(good); err != nil || leader.Count != 2 || len(refused) != 0 {
		t.Errorf("after all that: %d count, refused %v, %v", leader.Count, refused, err)
	}
	empty := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, nil))
	if leader, _, err := empty.Finish(nil); err != nil || leader != (dap.Aggregate{}) || empty.Len() != 0 {
		t.Errorf("nothing asked, nothing answered: %+v, %v", leader, err)
	}
	if response, helper := w.help(t, empty.Request()); len(response) > 0 || helper != (dap.Aggregate{}) {
		t.Errorf("asked about nothing, the helper says %x, %+v", response, helper)
	}
}

// A share is given for what both servers have, and for nothing else.
func TestShareOfAnotherBatch(t *testing.T) {
	w := newWorld(t, 1)
	w.task.MinBatch = 2
	leader, helper, _ := w.run(t, []dap.Report{w.report(t, 20, 1), w.report(t, 21, 1)})
	other, _, _ := w.run(t, []dap.Report{w.report(t, 22, 1), w.report(t, 23, 1)})
	single, one, _ := w.run(t, []dap.Report{w.report(t, 24, 1)})
	ask := func(a, own dap.Aggregate) error { return a.Request(w.batch).Check(w.task, own) }
	if err := ask(leader, helper); err != nil {
		t.Error(err)
	}
	if err := ask(other, helper); !errors.Is(err, dap.BatchMismatch) {
		t.Errorf("as many other reports: %v", err)
	}
	if err := ask(single, helper); !errors.Is(err, dap.BatchMismatch) {
		t.Errorf("fewer reports: %v", err)
	}
	if err := ask(single, one); !errors.Is(err, dap.InvalidBatchSize) {
		t.Errorf("too few: %v", err)
	}
	miscounted := leader
	miscounted.Count++
	if err := ask(miscounted, helper); !errors.Is(err, dap.BatchMismatch) {
		t.Errorf("a wrong count: %v", err)
	}
	// Shares of two batches meet in a random element: nobody is told that it is out of range before
	// there is noise in it.
	if sum, err := dap.Meet(w.task, other, testkit.Must(helper.Share(w.task, 0)), 0); err != nil || sum>>40 == 0 {
		t.Errorf("shares of two batches meet in %d, %v", sum, err)
	}
	if sum, err := dap.Meet(w.task, leader, testkit.Must(helper.Share(w.task, -5)), 1<<19); err != nil ||
		sum != 5<<19-5 {
		t.Errorf("two clicks, a default of a half and a noise of -5 are %d, %v", sum, err)
	}
	if _, err := dap.Meet(w.task, leader, bytes.Repeat([]byte{0xff}, 8), 0); !errors.Is(err,
		dap.InvalidMessage) {
		t.Errorf("no element of the field: %v", err)
	}
	_, err := helper.Share(w.task, 1<<60+12345)
	if !errors.Is(err, prio.ErrOverflow) || strings.Contains(err.Error(), fmt.Sprint(int64(1<<60+12345))) {
		t.Errorf("too much noise: %v", err)
	}
}

// Each server's share of a report has one law, whatever the reward is: χ² over 256 cells of two
// bytes of each server's share, for a reward of 1 against uniform, and of 0 against 1; 8 tests,
// false alarms below 2·10^-7 each. The twin whose leader is given the reward itself is caught.
func TestOneShareTellsNothing(t *testing.T) {
	const draws = 6000
	coins := mrand.NewChaCha8([32]byte{7})
	sum := testkit.Must(prio.NewSum(1, []byte("context")))
	key, nonce := prio.VerifyKey{1}, prio.Nonce{}
	type cells [2][2][256]float64 // by server, and byte of its share
	bytesAt := [2]int{0, 7}
	count := func(value uint64, broken bool) (n cells) {
		for range draws {
			leader, helper, err := sum.Shard(value, &nonce, coins)
			if err != nil {
				t.Fatal(err)
			}
			if broken { // the helper's half is left out
				binary.LittleEndian.PutUint64(leader, value)
			}
			for role, share := range [][]byte{leader, helper} {
				prep := testkit.Must(sum.Prepare(&key, &nonce, prio.Role(role), share))
				total := sum.Total()
				if err := total.Add(prep); err != nil {
					t.Fatal(err)
				}
				out := testkit.Must(testkit.Must(total.Share()).Bytes())
				for i, at := range bytesAt {
					n[role][i][out[at]]++
				}
			}
		}
		return n
	}
	between := func(x, y [256]float64) (chi2 float64) {
		for i := range x {
			if n := x[i] + y[i]; n > 0 {
				chi2 += (x[i] - y[i]) * (x[i] - y[i]) / n
			}
		}
		return chi2
	}
	// 255 degrees of freedom: mean 255, deviation 22.6; above 390 with probability 1.1·10^-7.
	const limit = 390
	zero, one := count(0, false), count(1, false)
	for role := range zero {
		for i, at := range bytesAt {
			uniform := 0.0
			for _, n := range one[role][i] {
				const want = draws / 256.0
				uniform += (n - want) * (n - want) / want
			}
			if same := between(zero[role][i], one[role][i]); uniform > limit || same > limit {
				t.Errorf("server %d, byte %d: χ² is %.0f against uniform, %.0f of 0 against 1, limit %d",
					role, at, uniform, same, limit)
			}
		}
	}
	zero, one = count(0, true), count(1, true)
	if same := between(zero[0][0], one[0][0]); same <= limit {
		t.Errorf("the broken twin passes with χ² %.0f", same)
	}
}

func TestKeys(t *testing.T) {
	secret := bytes.Repeat([]byte{4}, 32)
	seen := map[string]bool{}
	for _, s := range []string{
		testkit.Must(dap.DeriveKey(secret, 1)).Config().String(), testkit.Must(dap.DeriveKey(secret, 2)).Config().String(),
		testkit.Must(dap.DeriveBearer(secret, dap.TaskID{1})), testkit.Must(dap.DeriveBearer(secret, dap.TaskID{2})),
		fmt.Sprint(testkit.Must(dap.DeriveVerify(secret, dap.TaskID{1}))),
		fmt.Sprint(testkit.Must(dap.DeriveVerify(secret, dap.TaskID{2}))),
	} {
		if seen[s] {
			t.Errorf("%s comes out twice", s)
		}
		seen[s] = true
	}
	_, err1 := dap.DeriveKey(secret[1:], 1)
	_, err2 := dap.DeriveVerify(secret[1:], dap.TaskID{})
	_, err3 := dap.DeriveBearer(nil, dap.TaskID{})
	for _, err := range []error{err1, err2, err3} {
		if err == nil || !strings.Contains(err.Error(), "must be at least 32") {
			t.Errorf("a short secret: %v", err)
		}
	}
	c := testkit.Must(dap.DeriveKey(secret, 1)).Config()
	var back dap.Config
	if err := back.UnmarshalText([]byte(c.String())); err != nil || back != c {
		t.Errorf("%v, %v", back, err)
	}
	foreign := append([]byte{9, 0, 0x10, 0, 1, 0, 1, 0, 65}, make([]byte, 65)...)
	list := append(binary.BigEndian.AppendUint16(nil, uint16(len(foreign)+41)), foreign...)
	if got, err := dap.ParseConfigs(append(list, c.Marshal()...)); err != nil || got != c {
		t.Errorf("the first of our suite is %v, %v", got, err)
	}
	if _, err := dap.ParseConfig(foreign); !errors.Is(err, dap.InvalidMessage) {
		t.Errorf("a key on P-256: %v", err)
	}
	if _, err := dap.ParseConfigs(binary.BigEndian.AppendUint16(nil, 0)); !errors.Is(err, dap.InvalidMessage) {
		t.Errorf("no keys: %v", err)
	}
	if got, err := dap.ParseConfigs(dap.MarshalConfigs(c)); err != nil || got != c {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTask(t *testing.T) {
	w := newWorld(t, 1)
	for _, grid := range []uint64{0, 3, 1000, 1 << 21, 1<<64 - 1} {
		bad := dap.Task{Grid: grid}
		_, err := dap.NewReport(bad, w.leader.Config(), w.helper.Config(), 0, dap.Ticket{}, 0, rand.Reader)
		if err == nil || bad.Validate() == nil || !strings.Contains(err.Error(), fmt.Sprint("grid = ", grid)) {
			t.Errorf("grid %d: %v", grid, err)
		}
	}
	const secret = 987_654
	_, err := dap.NewReport(w.task, w.leader.Config(), w.helper.Config(), 0, w.ticket(1), secret, rand.Reader)
	if err == nil || strings.Contains(err.Error(), fmt.Sprint(secret)) {
		t.Errorf("a value out of range: %v", err)
	}
	long := dap.Ticket{Token: make([]byte, dap.MaxToken+1)}
	if _, err := dap.NewReport(w.task, w.leader.Config(), w.helper.Config(), 0, long, 0,
		rand.Reader); err == nil {
		t.Error("a token that is too long")
	}
	for name, id := range map[string]string{"short": "AAAA", "padded": w.task.ID.String() + "=",
		"not base64": strings.Repeat("*", 43), "long": w.task.ID.String() + "AA"} {
		if _, err := dap.ParseTaskID(id); !errors.Is(err, dap.InvalidMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if id, err := dap.ParseTaskID(w.task.ID.String()); err != nil || id != w.task.ID {
		t.Errorf("%v, %v", id, err)
	}
	b := dap.Batch{Arm: 1, Start: 2, End: 3}
	if id, err := dap.ParseID(b.ShareID().String()); err != nil || id != b.ShareID() || id == b.JobID(2) {
		t.Errorf("%v, %v", id, err)
	}
	if got, err := dap.ParseBatch(b.ID()); err != nil || got != b {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := dap.ParseBatch(sha256.Sum256(nil)); !errors.Is(err, dap.BatchInvalid) {
		t.Errorf("a batch id that is not ours: %v", err)
	}
	if _, err := dap.ParseBatch(dap.Batch{Start: 3, End: 3}.ID()); !errors.Is(err, dap.BatchInvalid) {
		t.Errorf("a batch without tickets: %v", err)
	}
}

// How many bytes a report has.
func TestSizes(t *testing.T) {
	for grid, want := range map[uint64]int{1: 304, 1024: 912, 1 << 20: 1584} {
		w := newWorld(t, grid)
		r := w.report(t, 20, grid)
		r.Ticket.Token = make([]byte, 24)
		if got := len(r.Marshal()); got != want {
			t.Errorf("a report on a grid of %d with a token of 24 bytes has %d bytes, want %d", grid, got, want)
		}
	}
	w := newWorld(t, dap.MaxGrid)
	r, err := dap.NewReport(w.task, w.leader.Config(), w.helper.Config(), 0,
		dap.Ticket{Token: make([]byte, dap.MaxToken)}, 1, rand.Reader)
	if got := len(r.Marshal()); err != nil || got > dap.MaxReport {
		t.Errorf("the longest report has %d bytes, %v", got, err)
	}
	if _, err = dap.ParseReport(r.Marshal()); err != nil {
		t.Error(err)
	}
}
