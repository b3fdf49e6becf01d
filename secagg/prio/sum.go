package prio

import (
	"fmt"
	"io"

	"github.com/cloudflare/circl/vdaf/prio3/arith/fp64"
	"github.com/cloudflare/circl/vdaf/prio3/sum"

	"github.com/sotto-dp/sotto/secagg"
)

// MaxMeasurement is the largest range of a Sum: sums of 2^20 reports stay far from half the field.
const MaxMeasurement = 1<<40 - 1

// Sizes in bytes.
const (
	NonceSize = 16
	KeySize   = 32
	// ShareSize is that of an aggregate share.
	ShareSize = fp64.Size
	// coins is what Shard reads: the seed of the helper's share, and that of the proof.
	coins = 2 * KeySize
)

type (
	// A Nonce names a report. Clients draw it, and a server prepares none twice.
	Nonce = sum.Nonce
	// A VerifyKey is the servers' common secret: 32 random bytes that no client knows, chosen
	// before any report is made.
	VerifyKey = sum.VerifyKey
)

// A Sum is Prio3Sum for two servers (draft-irtf-cfrg-vdaf-14, section 7.4.2): integers from 0 to a
// largest one, bound to a context. It is the bare function, without sessions or messages. It has
// scratch space, and is for one goroutine at a time.
type Sum struct {
	vdaf *sum.Sum
	max  uint64
}

// NewSum is Prio3Sum of integers from 0 to largest, which is from 1 to MaxMeasurement.
func NewSum(largest uint64, context []byte) (*Sum, error) {
	if largest < 1 || largest > MaxMeasurement {
		return nil, fmt.Errorf("%w: largest measurement = %d, must be from 1 to 2^40 − 1",
			secagg.ErrRange, largest)
	}
	v, err := sum.New(2, largest, context)
	if err != nil {
		return nil, fmt.Errorf("prio: %w", err)
	}
	return &Sum{vdaf: v, max: largest}, nil
}

// Shard splits a client's value into the two servers' input shares, with a proof of its range. It
// reads 64 bytes of rnd. The public share is empty.
func (s *Sum) Shard(value uint64, nonce *Nonce, rnd io.Reader) (leader, helper []byte, err error) {
	if value > s.max {
		return nil, nil, fmt.Errorf("%w: value must be from 0 to %d", secagg.ErrRange, s.max)
	}
	var seeds [coins]byte
	if _, err := io.ReadFull(rnd, seeds[:]); err != nil {
		return nil, nil, fmt.Errorf("prio: drawing shares: %w", err)
	}
	_, shares, err := s.vdaf.Shard(value, nonce, seeds[:])
	if err != nil {
		return nil, nil, fmt.Errorf("prio: %w", err)
	}
	if leader, err = shares[Leader].MarshalBinary(); err != nil {
		return nil, nil, fmt.Errorf("prio: %w", err)
	}
	if helper, err = shares[Helper].MarshalBinary(); err != nil {
		return nil, nil, fmt.Errorf("prio: %w", err)
	}
	return leader, helper, nil
}

// A Prep is one server's half of the check of a report.
type Prep struct {
	role  Role
	state *sum.PrepState
	share *sum.PrepShare
}

// Prepare begins the check of a report. An input share that is not one is secagg.ErrMalformed.
func (s *Sum) Prepare(key *VerifyKey, nonce *Nonce, role Role, share []byte) (Prep, error) {
	params := s.vdaf.Params()
	var in sum.InputShare
	if err := in.New(&params, uint(role)).UnmarshalBinary(share); err != nil {
		return Prep{}, fmt.Errorf("%w: input share: %v", secagg.ErrMalformed, err)
	}
	state, prep, err := s.vdaf.PrepInit(key, nonce, uint8(role), nil, in)
	if err != nil {
		return Prep{}, fmt.Errorf("%w: %v", ErrProof, err)
	}
	return Prep{role: role, state: state, share: prep}, nil
}

// Share is what the other server needs.
func (p Prep) Share() ([]byte, error) {
	b, err := p.share.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("prio: %w", err)
	}
	return b, nil
}

// Check says whether a report passes, given what the other server's Share returned: nil, ErrProof,
// or secagg.ErrMalformed.
func (s *Sum) Check(own Prep, other []byte) error {
	params := s.vdaf.Params()
	var theirs sum.PrepShare
	if err := theirs.New(&params).UnmarshalBinary(other); err != nil {
		return fmt.Errorf("%w: prep share: %v", secagg.ErrMalformed, err)
	}
	both := [2]sum.PrepShare{*own.share, theirs}
	if own.role == Helper {
		both[0], both[1] = both[1], both[0]
	}
	if _, err := s.vdaf.PrepSharesToPrep(both[:]); err != nil {
		return fmt.Errorf("%w: %v", ErrProof, err)
	}
	return nil
}

// A Total adds up the output shares of reports that passed. Its zero value is not ready: see
// Sum.Total.
type Total struct {
	sum   *Sum
	share sum.AggShare
}

// Total is a total of no reports.
func (s *Sum) Total() Total { return Total{sum: s, share: s.vdaf.AggregateInit()} }

// Add adds a report of which Check said, here or at the other server, that it passes.
func (t *Total) Add(p Prep) error {
	// A report's preparation has one round, and no joint randomness: the message is empty.
	out, err := t.sum.vdaf.PrepNext(p.state, nil)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrProof, err)
	}
	t.sum.vdaf.AggregateUpdate(&t.share, out)
	return nil
}

// Share is the aggregate share so far.
func (t *Total) Share() (Share, error) {
	b, err := t.share.MarshalBinary()
	if err != nil {
		return Share{}, fmt.Errorf("prio: %w", err)
	}
	return ParseShare(b)
}

// A Share is an element of the field of 2^64 − 2^32 + 1 elements: an aggregate share, or what two
// of them add up to. Its zero value is 0.
type Share struct{ x fp64.Fp }

// ParseShare reads what Bytes wrote, which is VDAF's encoding of an aggregate share.
func ParseShare(b []byte) (s Share, err error) {
	if err := s.x.UnmarshalBinary(b); err != nil || len(b) != ShareSize {
		return Share{}, fmt.Errorf("%w: share of %d bytes: not an element of the field",
			secagg.ErrMalformed, len(b))
	}
	return s, nil
}

// Bytes are ShareSize bytes, the lowest first.
func (s Share) Bytes() ([]byte, error) {
	b, err := s.x.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("prio: %w", err)
	}
	return b, nil
}

// Plus is s + t.
func (s Share) Plus(t Share) Share {
	s.x.AddAssign(&t.x)
	return s
}

// Times is k·s. It is ErrOverflow if k is no element of the field.
func (s Share) Times(k uint64) (Share, error) {
	var f fp64.Fp
	if err := f.SetUint64(k); err != nil {
		return Share{}, fmt.Errorf("%w: factor is %d, must be below 2^64 − 2^32 + 1", ErrOverflow, k)
	}
	s.x.MulAssign(&f)
	return s, nil
}

// maxNoise keeps sums with two noises far from half the field.
const maxNoise = 1 << 60

// Noise is an integer in the field: noise, to be added to a share. More than 2^60 in size
// is ErrOverflow, which does not tell it: who knew a noise could take it away.
func Noise(x int64) (s Share, err error) {
	if x > maxNoise || x < -maxNoise {
		return Share{}, fmt.Errorf("%w: noise must be at most 2^60 in size", ErrOverflow)
	}
	magnitude := x
	if x < 0 {
		magnitude = -x
	}
	if err := s.x.SetUint64(uint64(magnitude)); err != nil {
		return Share{}, fmt.Errorf("prio: %w", err)
	}
	if x < 0 {
		var zero fp64.Fp
		zero.SubAssign(&s.x)
		s.x = zero
	}
	return s, nil
}

// Int64 is the integer next to 0 that s stands for: what two aggregate shares and their noises add
// up to.
func (s Share) Int64() (int64, error) {
	v, err := s.x.GetUint64()
	if err != nil {
		return 0, fmt.Errorf("prio: %w", err)
	}
	const order = 1<<64 - 1<<32 + 1
	if v > order/2 {
		return -int64(order - v), nil
	}
	return int64(v), nil
}
