package dap

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"github.com/sotto-dp/sotto/secagg/prio"
)

// leaderSelected is the batch mode of our tasks.
const leaderSelected = 2

// VDAF's ping-pong messages.
const (
	pingInitialize = 0
	pingFinish     = 2
)

// What a PrepareResp says.
const (
	respContinue = 0
	respReject   = 2
)

// pong is the finish message of a helper, with Prio3Sum's empty prep message.
var pong = [5]byte{pingFinish}

// addSelector is DAP's PartialBatchSelector or BatchSelector.
func addSelector(b *cryptobyte.Builder, of Batch) {
	id := of.ID()
	b.AddUint8(leaderSelected)
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(id[:]) })
}

func readSelector(s *cryptobyte.String) (Batch, error) {
	var mode uint8
	var config cryptobyte.String
	if !s.ReadUint8(&mode) || !s.ReadUint16LengthPrefixed(&config) {
		return Batch{}, malformed("batch selector", "cut short")
	}
	if mode != leaderSelected || len(config) != 32 {
		return Batch{}, malformed("batch selector", "mode %d with %d bytes, must be %d with 32", mode,
			len(config), leaderSelected)
	}
	return ParseBatch([32]byte(config))
}

// readAggParam reads the aggregation parameter of Prio3, which is empty.
func readAggParam(s *cryptobyte.String) error {
	var param cryptobyte.String
	switch {
	case !read32(s, &param):
		return malformed("request", "cut short")
	case !param.Empty():
		return fmt.Errorf("%w: %d bytes, must be none", InvalidAggregationParameter, len(param))
	}
	return nil
}

// A LeaderJob is an aggregation job at the leader, between its request and the helper's response.
// The same reports in the same order make the same request, byte for byte.
type LeaderJob struct {
	sum     *prio.Sum
	request []byte
	waiting []prepared
	refused []Refusal
}

type prepared struct {
	id     ReportID
	ticket Ticket
	prep   prio.Prep
}

// A Refusal is a report that does not count, and why.
type Refusal struct {
	Ticket Ticket
	Reason ReportError
}

// NewLeaderJob opens the leader's shares of at most MaxJob reports of a batch, and begins their
// check. A report whose share does not open, or is not one, is refused: the helper is not asked.
func NewLeaderJob(t Task, key Key, verify VerifyKey, batch Batch, reports []Report) (*LeaderJob,
	error) {
	sum, err := t.sum()
	if err != nil {
		return nil, err
	}
	if err := batch.Validate(); err != nil {
		return nil, err
	}
	if len(reports) > MaxJob {
		return nil, fmt.Errorf("dap: job of %d reports, must be at most %d", len(reports), MaxJob)
	}
	j := &LeaderJob{sum: sum}
	b := cryptobyte.NewBuilder(nil)
	b.AddUint32(0)
	addSelector(b, batch)
	seen := newSeen(len(reports))
	for _, r := range reports {
		if err := seen.take(batch, r.Metadata); err != nil {
			return nil, err
		}
		prep, err := prepare(t, sum, key, &verify, prio.Leader, r.Metadata, r.Leader)
		if why, ok := reject(err); ok {
			j.refused = append(j.refused, Refusal{Ticket: r.Ticket, Reason: why})
			continue
		} else if err != nil {
			return nil, err
		}
		share, err := prep.Share()
		if err != nil {
			return nil, err
		}
		j.waiting = append(j.waiting, prepared{id: r.ID, ticket: r.Ticket, prep: prep})
		r.Metadata.add(b)
		b.AddUint32(0)
		r.Helper.add(b)
		b.AddUint32LengthPrefixed(func(b *cryptobyte.Builder) {
			b.AddUint8(pingInitialize)
			b.AddUint32LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(share) })
		})
	}
	if j.request, err = b.Bytes(); err != nil {
		return nil, fmt.Errorf("dap: job: %w", err)
	}
	return j, nil
}

// prepare opens a share and begins its check: a ReportError if the report is not to count.
func prepare(t Task, sum *prio.Sum, key Key, verify *VerifyKey, role prio.Role, m Metadata,
	c Ciphertext) (prio.Prep, error) {
	as := byte(roleLeader)
	if role == prio.Helper {
		as = roleHelper
	}
	share, err := openShare(t, key, as, m, c)
	if err != nil {
		return prio.Prep{}, err
	}
	prep, err := sum.Prepare(verify, &m.ID, role, share)
	switch {
	case errors.Is(err, prio.ErrProof):
		return prep, VDAFPrepError
	case err != nil:
		return prep, InvalidReport
	}
	return prep, nil
}

// seen refuses what a job may not have: a ticket out of the batch, a ticket or a report id twice.
type seen struct {
	numbers map[uint64]bool
	ids     map[ReportID]bool
}

func newSeen(n int) seen { return seen{make(map[uint64]bool, n), make(map[ReportID]bool, n)} }

func (s seen) take(b Batch, m Metadata) error {
	switch {
	case !b.Has(m.Ticket):
		return fmt.Errorf("%w: ticket %d of arm %d is not in the batch", BatchInvalid, m.Ticket.Number,
			m.Ticket.Arm)
	case s.numbers[m.Ticket.Number]:
		return malformed("job", "ticket %d twice", m.Ticket.Number)
	case s.ids[m.ID]:
		return malformed("job", "report %x twice", m.ID)
	}
	s.numbers[m.Ticket.Number], s.ids[m.ID] = true, true
	return nil
}

// Request is the AggregationJobInitReq.
func (j *LeaderJob) Request() []byte { return j.request }

// Len is how many reports the request has. Without any there is nothing to ask: Finish takes
// no bytes.
func (j *LeaderJob) Len() int { return len(j.waiting) }

// Finish takes the helper's AggregationJobResp, and returns the leader's share of what both accept
// and which reports were refused, by either server. A response that does not answer the request is
// InvalidMessage, and leaves the job as it was.
func (j *LeaderJob) Finish(response []byte) (Aggregate, []Refusal, error) {
	s := cryptobyte.String(response)
	a, total := Aggregate{}, j.sum.Total()
	refused := append([]Refusal(nil), j.refused...)
	for _, w := range j.waiting {
		why, err := readResponse(&s, w.id)
		if err != nil {
			return Aggregate{}, nil, err
		}
		if why != 0 {
			refused = append(refused, Refusal{Ticket: w.ticket, Reason: why})
			continue
		}
		if err := total.Add(w.prep); err != nil {
			return Aggregate{}, nil, err
		}
		a.count(w.id)
	}
	if !s.Empty() {
		return Aggregate{}, nil, malformed("response", "%d bytes too many", len(s))
	}
	var err error
	a.Refused = len(refused)
	a.share, err = total.Share()
	return a, refused, err
}

// readResponse reads the PrepareResp of a report: 0 if it is accepted.
func readResponse(s *cryptobyte.String, want ReportID) (ReportError, error) {
	var id ReportID
	var kind, why uint8
	var payload cryptobyte.String
	switch {
	case !s.CopyBytes(id[:]) || !s.ReadUint8(&kind):
		return 0, malformed("response", "cut short")
	case id != want:
		return 0, malformed("response", "report %x, must be %x", id, want)
	case kind == respReject:
		if !s.ReadUint8(&why) || why == 0 {
			return 0, malformed("response", "a refusal without a reason")
		}
		return ReportError(why), nil
	case kind != respContinue:
		return 0, malformed("response", "type %d, must be %d or %d", kind, respContinue, respReject)
	case !read32(s, &payload) || !bytes.Equal(payload, pong[:]):
		return 0, malformed("response", "must finish the check of a report")
	}
	return 0, nil
}

// A Job is a leader's request for an aggregation job, as the helper reads it.
type Job struct {
	Batch  Batch
	task   Task
	shares []reportShare
}

// reportShare is DAP's PrepareInit.
type reportShare struct {
	Metadata
	sealed Ciphertext
	prep   []byte // the leader's
}

// ParseJob reads an AggregationJobInitReq. A job that names a ticket out of its batch, or a ticket
// or a report id twice, is refused whole.
func ParseJob(t Task, request []byte) (Job, error) {
	j := Job{task: t}
	if len(request) > MaxRequest {
		return Job{}, malformed("job", "%d bytes, must be at most %d", len(request), MaxRequest)
	}
	s := cryptobyte.String(request)
	if err := readAggParam(&s); err != nil {
		return Job{}, err
	}
	var err error
	if j.Batch, err = readSelector(&s); err != nil {
		return Job{}, err
	}
	seen := newSeen(MaxJob)
	for !s.Empty() {
		if len(j.shares) == MaxJob {
			return Job{}, malformed("job", "must have at most %d reports", MaxJob)
		}
		r, err := readShare(&s)
		if err != nil {
			return Job{}, err
		}
		if err := seen.take(j.Batch, r.Metadata); err != nil {
			return Job{}, err
		}
		j.shares = append(j.shares, r)
	}
	return j, nil
}

func readShare(s *cryptobyte.String) (r reportShare, err error) {
	if r.Metadata, err = readMetadata(s); err != nil {
		return r, err
	}
	if err := readPublicShare(s); err != nil {
		return r, err
	}
	if r.sealed, err = readCiphertext(s); err != nil {
		return r, err
	}
	var ping, prep cryptobyte.String
	var kind uint8
	if !read32(s, &ping) || !ping.ReadUint8(&kind) || !read32(&ping, &prep) || !ping.Empty() {
		return r, malformed("job", "the check of a report is cut short")
	}
	if kind != pingInitialize {
		return r, malformed("job", "type %d, must be %d", kind, pingInitialize)
	}
	r.prep = append([]byte(nil), prep...)
	return r, nil
}

// Reports are what both servers see of the job's reports, in their order.
func (j Job) Reports() []Metadata {
	out := make([]Metadata, len(j.shares))
	for i, s := range j.shares {
		out[i] = s.Metadata
	}
	return out
}

// Help checks the reports of a job, and returns the AggregationJobResp and the helper's share of
// what passes. admit is asked about each report before anything is computed of it: nil takes it in,
// a ReportError refuses it, any other error ends the job. Whatever then becomes of a report that
// was admitted, its ticket is spent: the caller keeps that, with the response, before it answers,
// and gives the same response to the same request ever after.
func (j Job) Help(key Key, verify VerifyKey, admit func(Metadata) error) (response []byte,
	a Aggregate, err error) {
	sum, err := j.task.sum()
	if err != nil {
		return nil, Aggregate{}, err
	}
	total := sum.Total()
	b := cryptobyte.NewBuilder(nil)
	for _, r := range j.shares {
		b.AddBytes(r.ID[:])
		err := admit(r.Metadata)
		var prep prio.Prep
		if err == nil {
			prep, err = prepare(j.task, sum, key, &verify, prio.Helper, r.Metadata, r.sealed)
		}
		if err == nil && sum.Check(prep, r.prep) != nil {
			err = VDAFPrepError
		}
		if err == nil {
			err = total.Add(prep)
		}
		if why, ok := reject(err); ok {
			b.AddUint8(respReject)
			b.AddUint8(uint8(why))
			a.Refused++
			continue
		} else if err != nil {
			return nil, Aggregate{}, err
		}
		b.AddUint8(respContinue)
		b.AddUint32LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(pong[:]) })
		a.count(r.ID)
	}
	if a.share, err = total.Share(); err != nil {
		return nil, Aggregate{}, err
	}
	if response, err = b.Bytes(); err != nil {
		return nil, Aggregate{}, fmt.Errorf("dap: job: %w", err)
	}
	return response, a, nil
}

// count counts a report in, and its id into the checksum.
func (a *Aggregate) count(id ReportID) {
	h := sha256.Sum256(id[:])
	for i := range a.Checksum {
		a.Checksum[i] ^= h[i]
	}
	a.Count++
}
