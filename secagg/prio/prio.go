// Package prio sums clients' integers between two servers, each of which learns the noisy sum and
// nothing else, and neither of which lets a lying client count for more than the range: Prio3 (RFC
// draft-irtf-cfrg-vdaf; Corrigan-Gibbs and Boneh, NSDI 2017), from github.com/cloudflare/circl.
// Begin with NewSum for a client and NewServer for a server.
//
// A client speaks once: it splits its integer from 0 to g into two shares, with a proof that
// it is in the range, and sends one to each server. The servers check the proof together, add
// up the shares of those that pass, and each adds a whole noise of its own to its share before
// they put them together.
//
// # What is promised
//
// Against one corrupt server together with any number of corrupt clients: it learns the sum over
// all accepted clients with the other server's noise in it, which reports were accepted, and who
// sent them. One whole noise is in what it sees, whatever it does: that is what a mechanism's price
// is to be computed for. The noise in the sum is that of two.
//
// Against corrupt clients alone: a report adds an integer from 0 to g, or is refused, with the
// soundness of Prio3 (the degree of the proof over the 2^64 − 2^32 + 1 elements of its field, for
// each report that is tried).
//
// # What is not
//
// A corrupt server can spoil the sum: nothing proves that it added what it says. Two corrupt
// servers see every reward. Who takes part, and when, is no secret. Noise cannot be the clients',
// as it is not bounded and would pass no proof of a range. Sums over slowly changing groups are
// kept apart by the noise only. A report is bound to its session (secagg.Session.Digest): a server
// cannot use it in another one; a nonce is taken once.
package prio

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/sotto-dp/sotto/secagg"
)

// The errors. A message that is not of the format matches secagg.ErrMalformed or ErrVersion, one of
// another session secagg.ErrContext, a second report with one nonce secagg.ErrReplay, and a step
// out of its turn secagg.ErrEarly or ErrLate.
var (
	// ErrProof: a report whose value is not in the range, or whose parts do not belong together.
	ErrProof = errors.New("prio: the report does not pass")
	// ErrTooFew: fewer reports were accepted than the session asks for. It is secagg.ErrTooFew.
	ErrTooFew = secagg.ErrTooFew
	// ErrOverflow: the noise does not fit.
	ErrOverflow = errors.New("prio: out of range")
)

// Version is the first byte of every message.
const Version = 1

const (
	digestSize = 32
	// headerSize is a version, a kind, a digest and a nonce.
	headerSize = 2 + digestSize + NonceSize
	// maxPart bounds a part of a report; the largest range needs less than half of it.
	maxPart = 1 << 14
)

// Kinds of message.
const (
	kindReport byte = 1 + iota
	kindPrep
	kindAggregate
)

// A Role is one of the two servers.
type Role uint8

// The two servers.
const (
	Leader Role = iota
	Helper
)

// NewVerifyKey draws one; nil is the operating system's randomness.
func NewVerifyKey(rnd io.Reader) (k VerifyKey, err error) {
	if rnd == nil {
		rnd = rand.Reader
	}
	if _, err = io.ReadFull(rnd, k[:]); err != nil {
		return k, fmt.Errorf("prio: drawing a verify key: %w", err)
	}
	return k, nil
}

// prio3 is Prio3 for a session: integers from 0 to Session.Grid, bound to its digest.
func prio3(s secagg.Session) (*Sum, [digestSize]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, [digestSize]byte{}, err
	}
	if s.Length != 1 {
		return nil, [digestSize]byte{}, fmt.Errorf("%w: length = %d, must be 1", secagg.ErrSession, s.Length)
	}
	if s.Grid < 1 || s.Grid > MaxMeasurement {
		return nil, [digestSize]byte{}, fmt.Errorf("%w: grid = %d, must be from 1 to 2^40 − 1",
			secagg.ErrSession, s.Grid)
	}
	digest := s.Digest()
	v, err := NewSum(s.Grid, digest[:])
	return v, digest, err
}

// Report is what a client sends: one message to each server. It is an error if the value is above
// the session's Grid. rnd nil is the operating system's randomness.
func Report(s secagg.Session, value uint64, rnd io.Reader) (leader, helper []byte, err error) {
	v, digest, err := prio3(s)
	if err != nil {
		return nil, nil, err
	}
	if rnd == nil {
		rnd = rand.Reader
	}
	var nonce Nonce
	if _, err := io.ReadFull(rnd, nonce[:]); err != nil {
		return nil, nil, fmt.Errorf("prio: drawing a nonce: %w", err)
	}
	if leader, helper, err = v.Shard(value, &nonce, rnd); err != nil {
		return nil, nil, err
	}
	return message(kindReport, digest, nonce[:], nil, leader),
		message(kindReport, digest, nonce[:], nil, helper), nil
}

// message is a header and parts, each with its length.
func message(kind byte, digest [digestSize]byte, nonce []byte, parts ...[]byte) []byte {
	size := headerSize
	for _, p := range parts {
		size += 4 + len(p)
	}
	b := append(append(append(make([]byte, 0, size), Version, kind), digest[:]...), nonce...)
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

// read takes a message apart, and refuses all that message does not write.
func read(b []byte, kind byte, digest [digestSize]byte, parts int) (nonce Nonce, out [][]byte,
	err error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{secagg.ErrMalformed}, args...)...)
	}
	switch {
	case len(b) < headerSize:
		return nonce, nil, bad("%d bytes, must be at least %d", len(b), headerSize)
	case b[0] != Version:
		return nonce, nil, fmt.Errorf("%w: %d, must be %d", secagg.ErrVersion, b[0], Version)
	case b[1] != kind:
		return nonce, nil, bad("kind is %d, must be %d", b[1], kind)
	case [digestSize]byte(b[2:2+digestSize]) != digest:
		return nonce, nil, secagg.ErrContext
	}
	nonce = Nonce(b[2+digestSize : headerSize])
	b = b[headerSize:]
	out = make([][]byte, 0, parts)
	for range parts {
		if len(b) < 4 {
			return nonce, nil, bad("cut short")
		}
		n := binary.BigEndian.Uint32(b)
		if b = b[4:]; n > maxPart || int(n) > len(b) {
			return nonce, nil, bad("a part says %d bytes, %d are left", n, len(b))
		}
		out, b = append(out, b[:n]), b[n:]
	}
	if len(b) > 0 {
		return nonce, nil, bad("%d bytes too many", len(b))
	}
	return nonce, out, nil
}

// A Server is one of the two. For each report it says Prepare, gives the result to the other one,
// and then Finish with what the other one gave; after the last one Close. It is for one goroutine.
type Server struct {
	session secagg.Session
	digest  [digestSize]byte
	role    Role
	key     VerifyKey
	sum     *Sum
	state   map[Nonce]*pending
	total   Total
	count   int
	refused int
	closed  bool
}

// pending is a report that the servers are checking.
type pending struct {
	prep Prep
	done bool
}

// NewServer is one server of a session. The two have the same key.
func NewServer(s secagg.Session, role Role, key VerifyKey) (*Server, error) {
	if role != Leader && role != Helper {
		return nil, fmt.Errorf("prio: role is %d, must be Leader or Helper", role)
	}
	v, digest, err := prio3(s)
	if err != nil {
		return nil, err
	}
	return &Server{session: s, digest: digest, role: role, key: key, sum: v,
		state: map[Nonce]*pending{}, total: v.Total()}, nil
}

// Prepare takes a client's report in, and returns what the other server needs to check it. A nonce
// that was there before is secagg.ErrReplay.
func (s *Server) Prepare(report []byte) ([]byte, error) {
	if s.closed {
		return nil, secagg.ErrLate
	}
	nonce, parts, err := read(report, kindReport, s.digest, 2)
	if err != nil {
		return nil, err
	}
	if s.state[nonce] != nil {
		return nil, fmt.Errorf("%w: nonce %x", secagg.ErrReplay, nonce)
	}
	if len(parts[0]) > 0 {
		return nil, fmt.Errorf("%w: public share of %d bytes, must be empty", secagg.ErrMalformed,
			len(parts[0]))
	}
	prep, err := s.sum.Prepare(&s.key, &nonce, s.role, parts[1])
	if errors.Is(err, ErrProof) {
		s.refused++
		s.state[nonce] = &pending{done: true}
	}
	if err != nil {
		return nil, err
	}
	b, err := prep.Share()
	if err != nil {
		return nil, err
	}
	s.state[nonce] = &pending{prep: prep}
	return message(kindPrep, s.digest, nonce[:], b), nil
}

// Finish takes what the other server's Prepare returned, and counts the report if it passes; else
// the error is ErrProof, for both servers.
func (s *Server) Finish(other []byte) error {
	if s.closed {
		return secagg.ErrLate
	}
	nonce, parts, err := read(other, kindPrep, s.digest, 1)
	if err != nil {
		return err
	}
	p := s.state[nonce]
	switch {
	case p == nil:
		return fmt.Errorf("%w: nonce %x has no report", secagg.ErrEarly, nonce)
	case p.done:
		return fmt.Errorf("%w: nonce %x", secagg.ErrDuplicate, nonce)
	}
	err = s.sum.Check(p.prep, parts[0])
	if errors.Is(err, secagg.ErrMalformed) {
		return err
	}
	prep := p.prep
	*p = pending{done: true}
	if err == nil {
		err = s.total.Add(prep)
	}
	if err != nil {
		s.refused++
		return err
	}
	s.count++
	return nil
}

// Count is how many reports were accepted, and how many refused.
func (s *Server) Count() (accepted, refused int) { return s.count, s.refused }

// Close ends the session: the server adds a whole noise of its own to its share of the sum, in
// the field, and hands it out. With fewer reports than the session's NMin it refuses, and
// nothing is handed out.
func (s *Server) Close(noise int64) ([]byte, error) {
	if s.closed {
		return nil, secagg.ErrLate
	}
	s.closed = true
	if s.count < s.session.NMin {
		return nil, fmt.Errorf("%w: %d reports passed, n_min is %d", ErrTooFew, s.count, s.session.NMin)
	}
	z, err := Noise(noise)
	if err != nil {
		return nil, err
	}
	share, err := s.total.Share()
	if err != nil {
		return nil, err
	}
	b, err := share.Plus(z).Bytes()
	if err != nil {
		return nil, err
	}
	var count [8]byte
	binary.BigEndian.PutUint64(count[:], uint64(s.count))
	return message(kindAggregate, s.digest, make([]byte, NonceSize), []byte{byte(s.role)}, count[:], b), nil
}

// Combine puts the two servers' shares together: the sum with both noises, and how many
// reports are in it. Shares of other sessions, of one server twice, or of different numbers
// of reports are refused.
func Combine(s secagg.Session, leader, helper []byte) (total int64, count int, err error) {
	_, digest, err := prio3(s)
	if err != nil {
		return 0, 0, err
	}
	var acc Share
	for i, b := range [][]byte{leader, helper} {
		_, parts, err := read(b, kindAggregate, digest, 3)
		if err != nil {
			return 0, 0, err
		}
		if len(parts[0]) != 1 || parts[0][0] != byte(i) {
			return 0, 0, fmt.Errorf("%w: share %d is of server %d", secagg.ErrSender, i, parts[0])
		}
		if len(parts[1]) != 8 {
			return 0, 0, fmt.Errorf("%w: a count of %d bytes", secagg.ErrMalformed, len(parts[1]))
		}
		n := int(binary.BigEndian.Uint64(parts[1]))
		if i == 1 && n != count {
			return 0, 0, fmt.Errorf("%w: one server counts %d reports, the other %d",
				secagg.ErrShares, count, n)
		}
		count = n
		share, err := ParseShare(parts[2])
		if err != nil {
			return 0, 0, err
		}
		acc = acc.Plus(share)
	}
	total, err = acc.Int64()
	return total, count, err
}
