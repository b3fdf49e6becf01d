package secagg

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"
)

// Session is what all clients of one sum must have been told alike. Its [Session.Digest] goes into
// every derived key and every signature, so that masks cancel only between clients who were told
// the same, and no message fits another sum.
type Session struct {
	// ID is fresh for every sum, 32 random bytes ([NewID]).
	ID [32]byte
	// Experiment, Arm, Batch say what is summed.
	Experiment string
	Arm, Batch uint64
	// Grid is g, the number of steps of a reward's range: a message counts in units of 1/g.
	Grid uint64
	// Modulus is m; 0 stands for 2^64. All arithmetic is in the integers modulo m.
	Modulus uint64
	// Length is the number of coordinates of a message, at least 1.
	Length int
	// Enrolled is the number of clients who are enrolled, of whom the server chooses those who take
	// part. The corrupt are counted among all of them: a server that leaves honest clients out does
	// not leave corrupt ones out.
	Enrolled int
	// NMin is the least number of surviving clients whose sum is opened, at least 1 and
	// at most Enrolled.
	NMin int
	// Honest is the number of honest messages in a sum that the caller has calibrated noise shares to
	// (a corrupt client adds no noise), at most [Session.HonestMin]. Everybody refuses a graph that
	// promises fewer, when too few clients come. 0 stands for 2, as the sum of one is its message.
	Honest int
	// Noise describes the mechanism and its parameters, in the caller's words.
	Noise string
	// Policy is a hash of the state of the policy that chose the arm.
	Policy [32]byte
	// Mode says what the server is trusted with.
	Mode Mode
	// Gamma bounds the fraction of corrupt clients among those who are enrolled
	// ([Session.Corrupt]), Delta the fraction of those who vanish between the first message and the
	// last among those who take part.
	Gamma, Delta float64
	// Complete makes every client every other's neighbour, whatever their number. Nobody needs to
	// trust the draw of the graph then.
	Complete bool
}

// maxLength bounds the coordinates of a message, maxText the texts of a session.
const (
	maxLength = 1 << 20
	maxText   = 1 << 12
)

// Validate says what is wrong with the session, if anything.
func (s Session) Validate() error {
	switch {
	case s.ID == [32]byte{}:
		return fmt.Errorf("%w: id is all zero, must be 32 random bytes", ErrSession)
	case len(s.Experiment) > maxText:
		return fmt.Errorf("%w: experiment has %d bytes, at most %d are allowed", ErrSession,
			len(s.Experiment), maxText)
	case len(s.Noise) > maxText:
		return fmt.Errorf("%w: noise has %d bytes, at most %d are allowed", ErrSession, len(s.Noise), maxText)
	case s.Modulus == 1:
		return fmt.Errorf("%w: modulus = 1, must be at least 2 (0 stands for 2^64)", ErrSession)
	case s.Length < 1 || s.Length > maxLength:
		return fmt.Errorf("%w: length = %d, must be in [1, %d]", ErrSession, s.Length, maxLength)
	case s.Enrolled < 1 || s.Enrolled > maxClients:
		return fmt.Errorf("%w: enrolled = %d, must be in [1, %d]", ErrSession, s.Enrolled, maxClients)
	case s.NMin < 1:
		return fmt.Errorf("%w: n_min is %d, must be in [1, enrolled = %d]", ErrSession, s.NMin, s.Enrolled)
	case s.NMin > s.Enrolled:
		return fmt.Errorf("%w: n_min = %d, %d clients are enrolled", ErrTooFew, s.NMin, s.Enrolled)
	case s.Honest < 0:
		return fmt.Errorf("%w: honest = %d, must not be negative", ErrSession, s.Honest)
	case s.Honest > s.NMin:
		return fmt.Errorf("%w: n_min is %d, must be at least %d, the honest clients that the "+
			"noise is calibrated to", ErrSession, s.NMin, s.Honest)
	}
	return checkRates(s.Gamma, s.Delta, s.Mode)
}

// Digest is SHA-256 of the session's one encoding: a label, then every field in the order of the
// struct, numbers big endian in eight bytes, texts preceded by their length.
func (s Session) Digest() [32]byte {
	b := []byte("sotto secagg 2 session\x00")
	text := func(t string) {
		b = binary.BigEndian.AppendUint64(b, uint64(len(t)))
		b = append(b, t...)
	}
	number := func(v uint64) { b = binary.BigEndian.AppendUint64(b, v) }
	b = append(b, s.ID[:]...)
	text(s.Experiment)
	number(s.Arm)
	number(s.Batch)
	number(s.Grid)
	number(s.Modulus)
	number(uint64(s.Length))
	number(uint64(s.Enrolled))
	number(uint64(s.NMin))
	number(uint64(s.Honest))
	text(s.Noise)
	b = append(b, s.Policy[:]...)
	number(uint64(s.Mode))
	number(math.Float64bits(s.Gamma))
	number(math.Float64bits(s.Delta))
	if s.Complete {
		number(1)
	} else {
		number(0)
	}
	return sha256.Sum256(b)
}

// NewID draws a session id from rnd, or from the operating system if rnd is nil.
func NewID(rnd io.Reader) (id [32]byte, err error) {
	if rnd == nil {
		rnd = rand.Reader
	}
	if _, err = io.ReadFull(rnd, id[:]); err != nil {
		return id, fmt.Errorf("secagg: drawing a session id: %w", err)
	}
	return id, nil
}

// Used remembers the sessions that a client has taken part in. Its zero value is ready; it is safe
// for concurrent use. A client who takes part twice in one session, with two inputs, may show their
// difference: keep one Used for a client's life, and [Used.Add] what a former process has used.
type Used struct {
	mu  sync.Mutex
	ids map[[32]byte]bool
}

// Add marks id as used. It is [ErrReplay] if it was used before.
func (u *Used) Add(id [32]byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids[id] {
		return fmt.Errorf("%w: session %x was used before", ErrReplay, id[:8])
	}
	if u.ids == nil {
		u.ids = map[[32]byte]bool{}
	}
	u.ids[id] = true
	return nil
}
