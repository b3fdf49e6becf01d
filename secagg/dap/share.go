package dap

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"github.com/sotto-dp/sotto/secagg/prio"
)

// An Aggregate is what a server has of a batch, or of a part of it. Its zero value is that of no
// reports. Its share alone has the law of a random number; with the other server's it is the sum.
type Aggregate struct {
	// Count is how many reports are in it, Refused how many are not.
	Count, Refused int
	// Checksum is the exclusive or of the SHA-256 of their ids.
	Checksum [32]byte
	share    prio.Share
}

// Add is both together.
func (a Aggregate) Add(b Aggregate) Aggregate {
	a.Count += b.Count
	a.Refused += b.Refused
	subtle.XORBytes(a.Checksum[:], a.Checksum[:], b.Checksum[:])
	a.share = a.share.Plus(b.share)
	return a
}

// aggregateSize is that of MarshalBinary.
const aggregateSize = 8 + 8 + 32 + prio.ShareSize

// MarshalBinary is for the server's own store.
func (a Aggregate) MarshalBinary() ([]byte, error) {
	share, err := a.share.Bytes()
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, aggregateSize), uint64(a.Count))
	b = binary.BigEndian.AppendUint64(b, uint64(a.Refused))
	return append(append(b, a.Checksum[:]...), share...), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (a *Aggregate) UnmarshalBinary(b []byte) error {
	if len(b) != aggregateSize {
		return malformed("aggregate", "%d bytes, must be %d", len(b), aggregateSize)
	}
	count, refused := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	if count > maxCount || refused > maxCount {
		return malformed("aggregate", "counts %d and %d, must be at most %d", count, refused, maxCount)
	}
	share, err := prio.ParseShare(b[48:])
	if err != nil {
		return malformed("aggregate", "share: not an element of the field")
	}
	*a = Aggregate{Count: int(count), Refused: int(refused), Checksum: [32]byte(b[16:48]), share: share}
	return nil
}

// maxCount bounds counts, so that sums of 2^20 steps a report stay far from half the field.
const maxCount = 1<<31 - 1

// Share is what the helper hands out: its share in steps of 2^-20, with its noise in it, added in
// the field. A noise of more than 2^60 in size is prio.ErrOverflow.
func (a Aggregate) Share(t Task, noise int64) ([]byte, error) {
	z, err := prio.Noise(noise)
	if err != nil {
		return nil, err
	}
	s, err := a.share.Times(t.steps())
	if err != nil {
		return nil, err
	}
	return s.Plus(z).Bytes()
}

// Meet puts the leader's own share and what the helper handed out together: the sum of the batch's
// rewards in steps of 2^-20, with the helper's noise in it and known added, the steps of what
// counts in the place of refused reports. It is an element of the field, as the integer next to 0,
// and is not looked at any further: what a helper says may be false, and the leader's own noise is
// not in it yet. Add that in the field (release.Gathered does), and look then: a check before would
// tell the helper without noise on which side of a bound the sum is.
func Meet(t Task, own Aggregate, helper []byte, known int64) (int64, error) {
	theirs, err := prio.ParseShare(helper)
	if err != nil {
		return 0, malformed("aggregate share", "%d bytes: not an element of the field", len(helper))
	}
	k, err := prio.Noise(known)
	if err != nil {
		return 0, err
	}
	s, err := own.share.Times(t.steps())
	if err != nil {
		return 0, err
	}
	return s.Plus(theirs).Plus(k).Int64()
}

// A ShareRequest is DAP's AggregateShareReq.
type ShareRequest struct {
	Batch    Batch
	Count    int
	Checksum [32]byte
}

// Request is what asks for the helper's share of a batch.
func (a Aggregate) Request(b Batch) ShareRequest {
	return ShareRequest{Batch: b, Count: a.Count, Checksum: a.Checksum}
}

// Marshal is the encoding of an AggregateShareReq.
func (r ShareRequest) Marshal() []byte {
	b := cryptobyte.NewBuilder(nil)
	addSelector(b, r.Batch)
	b.AddUint32(0)
	b.AddUint64(uint64(r.Count))
	b.AddBytes(r.Checksum[:])
	return b.BytesOrPanic()
}

// ParseShareRequest reads what Marshal wrote.
func ParseShareRequest(raw []byte) (r ShareRequest, err error) {
	s := cryptobyte.String(raw)
	if r.Batch, err = readSelector(&s); err != nil {
		return ShareRequest{}, err
	}
	if err := readAggParam(&s); err != nil {
		return ShareRequest{}, err
	}
	var count uint64
	if !s.ReadUint64(&count) || !s.CopyBytes(r.Checksum[:]) || !s.Empty() {
		return ShareRequest{}, malformed("aggregate share request", "%d bytes, must be 79", len(raw))
	}
	if count > maxCount {
		return ShareRequest{}, malformed("aggregate share request", "count %d, must be at most %d", count,
			maxCount)
	}
	r.Count = int(count)
	return r, nil
}

// Check is BatchMismatch if the request is not about what the helper has, and InvalidBatchSize if
// that is less than the task's minimum. Nothing may be drawn then.
func (r ShareRequest) Check(t Task, own Aggregate) error {
	switch {
	case r.Count != own.Count || r.Checksum != own.Checksum:
		return fmt.Errorf("%w: the leader has %d reports, the helper %d, or others", BatchMismatch,
			r.Count, own.Count)
	case own.Count < t.MinBatch:
		return fmt.Errorf("%w: %d reports, must be at least %d", InvalidBatchSize, own.Count, t.MinBatch)
	}
	return nil
}
