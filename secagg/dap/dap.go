// Package dap has the messages of the Distributed Aggregation Protocol between clients, a leader
// and a helper, and what each of them computes, for the live service's trust model two-server:
// Prio3Sum (package prio) of rewards, with the noise of each server in its share. It has no input,
// output, clock or state: who keeps what, and for how long, is package serve's and
// live/serve/helper's. Begin with NewReport for a client and NewLeaderJob for the leader.
//
// It follows draft-ietf-ppm-dap-16, the newest whose VDAF is that of github.com/cloudflare/circl
// (draft-irtf-cfrg-vdaf-14; Prio3 is the same, bit for bit, in drafts 12 to 17): its encodings,
// media types, HPKE suite, info and associated data, verify key, problem types. docs/two-servers.md
// says what is promised to whom, with proofs, and where slots are not DAP's batches. In short:
//
//   - A report has one public extension, its Ticket: the decision that it reports on. It is in the
//     associated data of both shares, so that neither opens under another ticket.
//   - A batch is a range of tickets of one arm, and its id says which (Batch.ID).
//   - The leader is the collector: the helper's aggregate share goes to it, with a whole noise in
//     it, and is not encrypted to anybody else.
//
// # What the callers owe
//
// A helper must admit a ticket once, ever, and keep that before it answers, whether or not the
// report passes: a leader that has one report checked twice, with other words of its own, learns
// more than the sum. It must draw one noise for a batch, once, and give the same bytes for ever.
// No ticket may be taken into a batch whose share was given.
package dap

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/sotto-dp/sotto/secagg/prio"
)

// Version is the draft's tag in everything that is derived or sealed.
const Version = "dap-16"

// Media types, of DAP but for the last: a share that is not encrypted is not DAP's AggregateShare.
const (
	MediaConfigs        = "application/dap-hpke-config-list"
	MediaUpload         = "application/dap-upload-req"
	MediaUploadResponse = "application/dap-upload-resp"
	MediaJob            = "application/dap-aggregation-job-init-req"
	MediaJobResponse    = "application/dap-aggregation-job-resp"
	MediaShareRequest   = "application/dap-aggregate-share-req"
	MediaShare          = "application/vnd.sotto.aggregate-share"
)

// Limits.
const (
	// MaxGrid is the finest grid: steps of 2^-20.
	MaxGrid = 1 << 20
	// MaxToken is the longest token of a ticket, in bytes.
	MaxToken = 1024
	// MaxReport is the longest report, in bytes. At a grid of 2^20 and the longest token it has 2670.
	MaxReport = 4096
	// MaxJob is how many reports an aggregation job may have.
	MaxJob = 256
	// MaxRequest is the longest request for an aggregation job, in bytes.
	MaxRequest = MaxJob*MaxReport + 64
	// SecretSize is the least size of the secrets that keys are derived from, in bytes.
	SecretSize = 32
)

// TimePrecision is what a Report's time is a multiple of.
const TimePrecision = time.Hour

// Time is t as a report has it: whole TimePrecisions since 1970.
func Time(t time.Time) uint64 { return uint64(max(0, t.Unix())) / uint64(TimePrecision/time.Second) }

// A TaskID names a task; see decl.Experiment.Task.
type TaskID [32]byte

// String is base64url without padding, as paths have it.
func (id TaskID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTaskID reads what String wrote.
func ParseTaskID(s string) (id TaskID, err error) { return id, fromText(s, id[:], "task id") }

// A ReportID names a report, and is the nonce of its proof.
type ReportID = prio.Nonce

// An ID names an aggregation job, or an aggregate share, of a task.
type ID [16]byte

// String is base64url without padding, as paths have it.
func (id ID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseID reads what String wrote.
func ParseID(s string) (id ID, err error) { return id, fromText(s, id[:], "id") }

// fromText decodes base64url into all of to.
func fromText(s string, to []byte, what string) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != len(to) {
		return fmt.Errorf("%w: %s must be %d bytes in base64url without padding", InvalidMessage,
			what, len(to))
	}
	copy(to, b)
	return nil
}

// A Task is what both servers and the clients agree on.
type Task struct {
	ID TaskID
	// Grid is the largest measurement: a reward is a multiple of 1/Grid. It is a power of two
	// from 1 to MaxGrid.
	Grid uint64
	// MinBatch is DAP's min_batch_size. With noise in every share it protects nobody's privacy.
	MinBatch int
}

// Validate says what is wrong with the task.
func (t Task) Validate() error {
	switch {
	case t.Grid < 1 || t.Grid > MaxGrid || t.Grid&(t.Grid-1) != 0:
		return fmt.Errorf("dap: task: grid = %d, must be a power of two from 1 to %d", t.Grid, MaxGrid)
	case t.MinBatch < 0:
		return fmt.Errorf("dap: task: min batch = %d, must be at least 0", t.MinBatch)
	}
	return nil
}

// context binds the proof of a report to the draft and the task.
func (t Task) context() []byte { return append([]byte(Version), t.ID[:]...) }

// sum is Prio3Sum of the task.
func (t Task) sum() (*prio.Sum, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return prio.NewSum(t.Grid, t.context())
}

// steps are how many steps of 2^-20 one of the grid has.
func (t Task) steps() uint64 { return MaxGrid / t.Grid }

// A Batch is the tickets of one arm whose numbers are from Start to End − 1.
type Batch struct {
	Arm        uint32
	Start, End uint64
}

// batchTag is the end of every batch id.
const batchTag = "sotto batch1"

// Validate says what is wrong with the batch.
func (b Batch) Validate() error {
	if b.Start >= b.End {
		return fmt.Errorf("%w: batch: end is %d, must be above its start, %d", BatchInvalid, b.End, b.Start)
	}
	return nil
}

// ID is DAP's batch id: the arm, the start and the end, the highest byte first, and a tag.
func (b Batch) ID() (id [32]byte) {
	binary.BigEndian.PutUint32(id[0:], b.Arm)
	binary.BigEndian.PutUint64(id[4:], b.Start)
	binary.BigEndian.PutUint64(id[12:], b.End)
	copy(id[20:], batchTag)
	return id
}

// ParseBatch reads what ID wrote; what it did not is BatchInvalid.
func ParseBatch(id [32]byte) (Batch, error) {
	if string(id[20:]) != batchTag {
		return Batch{}, fmt.Errorf("%w: the batch id is not one of ours", BatchInvalid)
	}
	b := Batch{Arm: binary.BigEndian.Uint32(id[0:]), Start: binary.BigEndian.Uint64(id[4:]),
		End: binary.BigEndian.Uint64(id[12:])}
	return b, b.Validate()
}

// Has says whether the ticket is in the batch.
func (b Batch) Has(t Ticket) bool {
	return t.Arm == b.Arm && t.Number >= b.Start && t.Number < b.End
}

// JobID is the id of the batch's aggregation job whose first ticket has this number. A leader that
// begins again asks the same questions under the same ids.
func (b Batch) JobID(first uint64) ID {
	id := b.ID()
	return idOf("job", binary.BigEndian.AppendUint64(id[:], first))
}

// ShareID is the id of the batch's aggregate share.
func (b Batch) ShareID() ID {
	id := b.ID()
	return idOf("share", id[:])
}

func idOf(kind string, of []byte) ID {
	h := sha256.Sum256(append([]byte("sotto "+kind+" "), of...))
	return ID(h[:16])
}

// A Problem is an error of DAP that goes to the other side: the name in its "type".
type Problem string

// The problem types of the draft.
const (
	InvalidMessage              Problem = "invalidMessage"
	UnrecognizedTask            Problem = "unrecognizedTask"
	UnrecognizedAggregationJob  Problem = "unrecognizedAggregationJob"
	BatchInvalid                Problem = "batchInvalid"
	InvalidBatchSize            Problem = "invalidBatchSize"
	InvalidAggregationParameter Problem = "invalidAggregationParameter"
	BatchMismatch               Problem = "batchMismatch"
	StepMismatch                Problem = "stepMismatch"
	BatchOverlap                Problem = "batchOverlap"
	UnsupportedExtension        Problem = "unsupportedExtension"
)

// Error implements error.
func (p Problem) Error() string { return "dap: " + string(p) }

// Type is the problem document's "type".
func (p Problem) Type() string { return "urn:ietf:params:ppm:dap:error:" + string(p) }

// A ReportError is why one report was refused. It tells nothing of its value but that it does
// not pass.
type ReportError uint8

// The report errors of the draft.
const (
	BatchCollected ReportError = 1 + iota
	ReportReplayed
	ReportDropped
	HPKEUnknownConfigID
	HPKEDecryptError
	VDAFPrepError
	TaskExpired
	InvalidReport // invalid_message
	ReportTooEarly
	TaskNotStarted
	OutdatedConfig
)

var reportErrors = [...]string{"reserved", "batch_collected", "report_replayed", "report_dropped",
	"hpke_unknown_config_id", "hpke_decrypt_error", "vdaf_prep_error", "task_expired",
	"invalid_message", "report_too_early", "task_not_started", "outdated_config"}

// Error implements error.
func (e ReportError) Error() string {
	if int(e) < len(reportErrors) {
		return "dap: report: " + reportErrors[e]
	}
	return fmt.Sprintf("dap: report: error %d", uint8(e))
}

// reject is the report error in err, if any.
func reject(err error) (ReportError, bool) {
	var e ReportError
	return e, errors.As(err, &e)
}
