package serve

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// AnyExperiment stands for all experiments where a unit is signed. It is no experiment's name.
const AnyExperiment = "*"

// ErrSignature: the name of a unit was not signed by who may, not for this experiment, or not for
// now. It says the same whether or not the unit was ever assigned.
var ErrSignature = errors.New("the unit's signature is not good here: it was made with another key or for " +
	"another experiment, or its time has passed")

// SignedUnit is the unit that a token names. Whoever has a key of the scope sign makes them,
// client.SignUnit says how; the store has the SHA-256 of that key, which is what they are signed
// with, and a key that was revoked signs nothing.
func (e *Engine) SignedUnit(experiment, token string) (string, error) {
	text, mac, ok := cutLast(token)
	name, until, ok2 := cutLast(text)
	if !ok || !ok2 {
		return "", ErrSignature
	}
	signed := false
	e.mu.RLock()
	for _, r := range e.keys {
		if keyOf(r).Scopes&ScopeSign != 0 {
			for _, of := range []string{experiment, AnyExperiment} {
				// all of them are looked at, so that the time tells nothing of the keys
				signed = hmac.Equal(mac64(r.Data[:sha256.Size], of+"\n"+text), []byte(mac)) || signed
			}
		}
	}
	e.mu.RUnlock()
	unit, err := base64.RawURLEncoding.Strict().DecodeString(name)
	seconds, err2 := strconv.ParseInt(until, 10, 64)
	if !signed || err != nil || err2 != nil || e.latest()/1000 >= seconds || len(unit) == 0 ||
		!utf8.Valid(unit) || strings.ContainsRune(string(unit), utf8.RuneError) { // as of units that are named
		return "", ErrSignature
	}
	return string(unit), nil
}

// cutLast cuts at the last dot.
func cutLast(s string) (before, after string, ok bool) {
	at := strings.LastIndexByte(s, '.')
	if at < 0 {
		return "", "", false
	}
	return s[:at], s[at+1:], true
}

func mac64(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.RawURLEncoding.AppendEncode(nil, mac.Sum(nil))
}

// CookieLife is how long a cookie names its unit: as long as browsers keep one.
const CookieLife = 400 * 24 * time.Hour

// cookieUnit is before the names of units that cookies have.
const cookieUnit = "cookie "

// NewCookie makes a new unit for a browser, and the cookie that names it: base64url of 128 random
// bits and the second until which it does, a dot, and their HMAC-SHA256 under a key of the store.
func (e *Engine) NewCookie() (unit, cookie string, err error) {
	var b [24]byte
	if _, err := io.ReadFull(e.cfg.random, b[:16]); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	binary.BigEndian.PutUint64(b[16:], uint64(e.latest()/1000+int64(CookieLife/time.Second)))
	text := base64.RawURLEncoding.EncodeToString(b[:])
	return nameOf(b[:]), text + "." + string(mac64(e.cookieKey(), text)), nil
}

// CookieUnit is the unit that a cookie names, if it is one of NewCookie whose time has not passed.
func (e *Engine) CookieUnit(cookie string) (unit string, ok bool) {
	text, mac, _ := cutLast(cookie)
	if !hmac.Equal(mac64(e.cookieKey(), text), []byte(mac)) {
		return "", false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 24 || e.latest()/1000 >= int64(binary.BigEndian.Uint64(b[16:])) {
		return "", false
	}
	return nameOf(b), true
}

// nameOf is the name of a cookie's unit.
func nameOf(cookie []byte) string {
	return cookieUnit + base64.RawURLEncoding.EncodeToString(cookie[:16])
}

func (e *Engine) cookieKey() []byte {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.cookies == nil { // until the store's is known, one by which nothing was signed, nor will be
		return []byte(rand.Text())
	}
	return e.cookies
}
