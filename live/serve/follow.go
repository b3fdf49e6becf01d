package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// A Stream is who may follow what changes of the flags of a key: a program that can send no key, such as a
// browser's EventSource, and has a token in its place.
type Stream struct {
	// Unit tells the units of a key apart, by a keyed hash; it is zero where none was named, and so is First then.
	Unit [8]byte
	// First is when the first of the decisions ends that the unit has; zero if it has none.
	First time.Time
	// Version stands for what the unit's decisions were made by.
	Version [8]byte

	hash [sha256.Size]byte // of the key
}

// streamPeriod is how long a stream's token is good, at least; at most twice as long. It is the same for all
// that are made in a period, so that an answer which has one does not change each second.
const streamPeriod = 5 * time.Minute

const streamBytes = 5 * 8

// NewStream is the stream of a unit of a key, and its token: base64url of the key's ID, the second until
// which it can be opened, the stream, and 128 bits of their HMAC-SHA256 with the key's hash under a key of the
// store. Who finds one has not found the key, and can do nothing else with it.
func (e *Engine) NewStream(secret, unit string, first time.Time, version [8]byte) (token string, s Stream) {
	s = Stream{First: first, Version: version, hash: sha256.Sum256([]byte(secret))}
	sign := newSigner(keyFor(e.cookieKey(), s.hash[:], "stream"))
	if unit != "" {
		s.Unit = [8]byte(sign.mac16([]byte("unit\n" + unit)))
	} else {
		s.First, first = time.Time{}, time.Time{} // all without a name would share it
	}
	period := int64(streamPeriod / time.Second)
	b := binary.BigEndian.AppendUint64(nil, uint64(e.who(s.hash).ID))
	b = binary.BigEndian.AppendUint64(b, uint64((e.latest()/1000/period+2)*period))
	ends := int64(0)
	if !first.IsZero() {
		ends = first.UnixMilli()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(ends))
	b = append(append(b, s.Unit[:]...), version[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, sign.mac16(b)...)), s
}

// OpenStream is the stream of a token, if that is one of NewStream whose time has not passed.
func (e *Engine) OpenStream(token string) (s Stream, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != streamBytes+macBytes {
		return s, false
	}
	b, mac := b[:streamBytes], b[streamBytes:]
	if s.hash, ok = e.hashOf(int64(binary.BigEndian.Uint64(b))); !ok {
		return Stream{}, false
	}
	if !hmac.Equal(newSigner(keyFor(e.cookieKey(), s.hash[:], "stream")).mac16(b), mac) ||
		e.latest()/1000 >= int64(binary.BigEndian.Uint64(b[8:])) {
		return Stream{}, false
	}
	s.Unit, s.Version = [8]byte(b[24:]), [8]byte(b[32:])
	if ends := int64(binary.BigEndian.Uint64(b[16:])); ends != 0 && s.Unit != [8]byte{} {
		s.First = time.UnixMilli(ends)
	}
	return s, true
}

// Follower is the key of a stream as it is now, without scopes if it was revoked.
func (e *Engine) Follower(s Stream) Key { return e.who(s.hash) }

// Time is the service's, by which decisions end.
func (e *Engine) Time() time.Time { return time.UnixMilli(e.now()) }
