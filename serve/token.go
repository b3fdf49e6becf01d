package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"

	"github.com/sotto-dp/sotto/play"
)

// A token is 43 bytes, 58 characters: the epoch's first 8 bytes, arm (2), number (5), deadline in
// milliseconds (6), the unit's tag's first 6, and 16 of the HMAC-SHA256 of these under the
// experiment's key. So a token is of one experiment, and cannot be guessed.
const (
	tokenBody  = 27
	tokenBytes = tokenBody + 16
)

// beyond is the number of a decision that does not count: its unit has all its assignments.
const beyond = 1<<40 - 1

// An epochTag is what a token has of its epoch.
type epochTag [8]byte

// A tag stands for a unit: a keyed hash of its name. The zero tag is of no unit.
type tag [16]byte

// A ticket is what a token says.
type ticket struct {
	arm      int
	number   int64
	deadline int64
	epoch    epochTag
}

// A signer signs and reads the tokens of one experiment. It serves one goroutine.
type signer struct{ mac hash.Hash }

// keyFor derives a key of an experiment for a use from the store's secret.
func keyFor(secret, experiment []byte, use string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("sotto " + use + "\x00"))
	h.Write(experiment)
	return h.Sum(nil)
}

func newSigner(key []byte) signer { return signer{hmac.New(sha256.New, key)} }

func (s signer) sign(t ticket, unit tag) string {
	var b [tokenBytes + 16]byte
	copy(b[:], t.epoch[:])
	binary.BigEndian.PutUint16(b[8:], uint16(t.arm))
	put(b[10:15], uint64(t.number))
	put(b[15:21], uint64(t.deadline))
	copy(b[21:tokenBody], unit[:])
	s.mac.Reset()
	s.mac.Write(b[:tokenBody])
	s.mac.Sum(b[:tokenBody])
	return base64.RawURLEncoding.EncodeToString(b[:tokenBytes])
}

// read is what a token says; ok is false if this signer did not sign it.
func (s signer) read(token string) (_ ticket, ok bool) {
	var b [tokenBytes + 2]byte
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return ticket{}, false
	}
	if n, err := base64.RawURLEncoding.Strict().Decode(b[:], []byte(token)); err != nil || n != tokenBytes {
		return ticket{}, false
	}
	var sum [sha256.Size]byte
	s.mac.Reset()
	s.mac.Write(b[:tokenBody])
	s.mac.Sum(sum[:0])
	if !hmac.Equal(sum[:16], b[tokenBody:tokenBytes]) {
		return ticket{}, false
	}
	return ticket{
		epoch:    epochTag(b[:8]),
		arm:      int(binary.BigEndian.Uint16(b[8:])),
		number:   int64(get(b[10:15])),
		deadline: int64(get(b[15:21])),
	}, true
}

// tagOf is the tag of a unit.
func tagOf(mac hash.Hash, unit string) tag {
	var sum [sha256.Size]byte
	mac.Reset()
	mac.Write([]byte(unit))
	mac.Sum(sum[:0])
	return tag(sum[:16])
}

// put writes the low bytes of x, the highest first, and get reads them.
func put(b []byte, x uint64) {
	for i := range b {
		b[i] = byte(x >> (8 * (len(b) - 1 - i)))
	}
}

func get(b []byte) (x uint64) {
	for _, c := range b {
		x = x<<8 | uint64(c)
	}
	return x
}

func tagOfEpoch(e play.Epoch) epochTag { return epochTag(e[:8]) }
