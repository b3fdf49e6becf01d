package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// SessionLife is how long a session stands for its key.
const SessionLife = 12 * time.Hour

// Session is what a browser keeps in the place of a key, and the key, without scopes if the secret
// is none: base64url of the key's ID and the second until which it is good, a dot, and their
// HMAC-SHA256 with the key's hash under a key of the store. Who finds one has not found the key,
// and it ends with the key, also when that was revoked and another got its ID.
func (e *Engine) Session(secret string) (session string, k Key) {
	hash := sha256.Sum256([]byte(secret))
	if k = e.who(hash); k.Scopes == 0 {
		return "", k
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(k.ID))
	b = binary.BigEndian.AppendUint64(b, uint64(e.latest()/1000+int64(SessionLife/time.Second)))
	text := base64.RawURLEncoding.EncodeToString(b)
	return text + "." + string(mac64(e.sessionKey(hash), text)), k
}

// Visitor is the key that a session stands for, without scopes if it stands for none any more.
func (e *Engine) Visitor(session string) Key {
	text, mac, _ := cutLast(session)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 16 || e.latest()/1000 >= int64(binary.BigEndian.Uint64(b[8:])) {
		return Key{}
	}
	hash, ok := e.hashOf(int64(binary.BigEndian.Uint64(b)))
	if !ok || !hmac.Equal(mac64(e.sessionKey(hash), text), []byte(mac)) {
		return Key{}
	}
	return e.who(hash)
}

// hashOf is the hash of a key, by its ID.
func (e *Engine) hashOf(id int64) (hash [sha256.Size]byte, ok bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	at := slices.IndexFunc(e.keys, func(r store.Record) bool { return r.ID == id && len(r.Data) >= keyBytes })
	if at < 0 {
		return hash, false
	}
	return [sha256.Size]byte(e.keys[at].Data), true
}

// sessionKey signs the sessions of a key, of which the store has the hash.
func (e *Engine) sessionKey(hash [sha256.Size]byte) []byte {
	return keyFor(e.cookieKey(), hash[:], "session")
}
