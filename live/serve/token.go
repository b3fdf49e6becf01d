package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"math"

	"github.com/sotto-dp/sotto/play"
)

// A token is 43 bytes, 58 characters: the epoch's first 8 bytes, arm (2), number (5), deadline in
// milliseconds (6), the unit's tag's first 6, and 16 of the HMAC-SHA256 of these under the
// experiment's key. So a token is of one experiment, and cannot be guessed.
//
// That of an offer, of a decision that counts when it is activated, is 67 bytes, 90 characters: the
// number is of offers, and after the first deadline come the one of activation (6), the propensity
// (8) and the whole tag (16). So nothing of an offer has to be kept.
const (
	tokenBody  = 27
	offerBody  = 51
	tokenBytes = tokenBody + macBytes
	offerBytes = offerBody + macBytes
	macBytes   = 16
)

// Numbers of decisions that do not count: beyond, as their unit has all its assignments, and tested, of one
// that was forced.
const (
	beyond = 1<<40 - 1
	tested = 1<<40 - 2
)

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

	// of an offer alone
	by         int64 // when it can be activated no more; 0: it is none
	propensity float64
	unit       tag
}

// key is what an offer is kept under when it is activated, among the tags of units.
func (t ticket) key() (k tag) {
	copy(k[:], t.epoch[:])
	binary.BigEndian.PutUint64(k[8:], uint64(t.number))
	return k
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

// reader is a signer for who reads tokens, and puts its mac back into x.readers: to make one takes longer than to
// read a token.
func (x *served) reader() signer {
	if mac, ok := x.readers.Get().(hash.Hash); ok {
		return signer{mac}
	}
	return newSigner(x.tokenKey)
}

func (s signer) sign(t ticket, unit tag) string {
	b := make([]byte, 0, offerBytes+16)
	b = append(b, t.epoch[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(t.arm))
	b = appendLow(b, uint64(t.number), 5)
	b = appendLow(b, uint64(t.deadline), 6)
	if t.by == 0 {
		b = append(b, unit[:6]...)
	} else {
		b = appendLow(b, uint64(t.by), 6)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(t.propensity))
		b = append(b, unit[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, s.mac16(b)...))
}

// mac16 is the beginning of the MAC of a body.
func (s signer) mac16(body []byte) []byte {
	var sum [sha256.Size]byte
	s.mac.Reset()
	s.mac.Write(body)
	return s.mac.Sum(sum[:0])[:macBytes]
}

// read is what a token says; ok is false if this signer did not sign it.
func (s signer) read(token string) (_ ticket, ok bool) {
	var b [offerBytes + 2]byte
	n := tokenBytes
	if len(token) == base64.RawURLEncoding.EncodedLen(offerBytes) {
		n = offerBytes
	} else if len(token) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return ticket{}, false
	}
	if m, err := base64.RawURLEncoding.Strict().Decode(b[:], []byte(token)); err != nil || m != n {
		return ticket{}, false
	}
	return s.readRaw(b[:n])
}

// readRaw is read of the bytes of a token.
func (s signer) readRaw(b []byte) (_ ticket, ok bool) {
	n := len(b)
	if n != tokenBytes && n != offerBytes {
		return ticket{}, false
	}
	if body := n - macBytes; !hmac.Equal(s.mac16(b[:body]), b[body:n]) {
		return ticket{}, false
	}
	t := ticket{
		epoch:    epochTag(b[:8]),
		arm:      int(binary.BigEndian.Uint16(b[8:])),
		number:   int64(get(b[10:15])),
		deadline: int64(get(b[15:21])),
	}
	if n == offerBytes {
		t.by = int64(get(b[21:27]))
		t.propensity = math.Float64frombits(binary.BigEndian.Uint64(b[27:35]))
		t.unit = tag(b[35:offerBody])
	}
	return t, true
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

// appendLow appends the n low bytes of x.
func appendLow(b []byte, x uint64, n int) []byte {
	var low [8]byte
	put(low[:n], x)
	return append(b, low[:n]...)
}

func get(b []byte) (x uint64) {
	for _, c := range b {
		x = x<<8 | uint64(c)
	}
	return x
}

func tagOfEpoch(e play.Epoch) epochTag { return epochTag(e[:8]) }
