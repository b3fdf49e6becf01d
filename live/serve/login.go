package serve

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// PersonLife is how long a session stands for a person whom an issuer of identities has named. The issuer
// tells nobody that somebody has left, so that it is asked again after this time.
const PersonLife = time.Hour

// flowLife is how long somebody may be at the issuer.
const flowLife = 10 * time.Minute

// A person is a session in the place of a key: who it is, by whom, and until which second.
type person struct {
	Name   string `json:"n"`
	Issuer string `json:"i"`
	Scopes Scope  `json:"s"`
	Until  int64  `json:"u"`
}

// PersonSession is what a browser keeps for a person, as Session is for a key: k has its Name, its Issuer
// and its Scopes. The terms are a digest of who may do what, by which it is signed: where they change, every
// session has ended.
func (e *Engine) PersonSession(terms []byte, k Key) (string, error) {
	return e.signed(terms, "person", person{k.Name, k.Issuer, k.Scopes, e.latest()/1000 + int64(PersonLife/time.Second)})
}

// Person is whom a PersonSession names, without scopes if it names nobody any more.
func (e *Engine) Person(terms []byte, session string) Key {
	var p person
	if !e.opened(terms, "person", session, &p) || e.latest()/1000 >= p.Until {
		return Key{}
	}
	return Key{Name: p.Name, Issuer: p.Issuer, Scopes: p.Scopes}
}

// A Flow is a login that is on its way to an issuer and back.
type Flow struct {
	Cookie string // what the browser keeps meanwhile
	// State comes back by the browser and Nonce in what the issuer says; Verifier is for the issuer alone
	// (PKCE). They are made of Cookie by a key of the store: the browser is told neither of the last two
	// in advance, and no process needs to remember them.
	State, Nonce, Verifier string
	To                     string // the page to go to
}

type flow struct {
	Random []byte `json:"r"`
	Until  int64  `json:"u"`
	To     string `json:"t"`
}

// BeginFlow begins a login, after which somebody goes to a page.
func (e *Engine) BeginFlow(terms []byte, to string) (Flow, error) {
	begun := flow{make([]byte, 32), e.latest()/1000 + int64(flowLife/time.Second), to}
	if _, err := io.ReadFull(e.cfg.random, begun.Random); err != nil {
		return Flow{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	cookie, err := e.signed(terms, "flow", begun)
	if err != nil {
		return Flow{}, err
	}
	return e.flow(terms, cookie, to), nil
}

// EndFlow is the login that a browser's cookie began, if what came back is its State, and in time.
func (e *Engine) EndFlow(terms []byte, cookie, state string) (Flow, bool) {
	var begun flow
	if !e.opened(terms, "flow", cookie, &begun) || e.latest()/1000 >= begun.Until {
		return Flow{}, false
	}
	f := e.flow(terms, cookie, begun.To)
	return f, hmac.Equal([]byte(f.State), []byte(state))
}

func (e *Engine) flow(terms []byte, cookie, to string) Flow {
	of := func(use string) string { return string(mac64(keyFor(e.cookieKey(), terms, use), cookie)) }
	return Flow{Cookie: cookie, State: of("state"), Nonce: of("nonce"), Verifier: of("verifier"), To: to}
}

// signed is a value as a cookie has it: base64url of its JSON, a dot, and the HMAC-SHA256 of that under a key
// for this use alone.
func (e *Engine) signed(terms []byte, use string, value any) (string, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(b)
	return text + "." + string(mac64(keyFor(e.cookieKey(), terms, use), text)), nil
}

// opened reads what signed wrote, and says whether it did.
func (e *Engine) opened(terms []byte, use, cookie string, value any) bool {
	text, mac, _ := cutLast(cookie)
	if !hmac.Equal(mac64(keyFor(e.cookieKey(), terms, use), text), []byte(mac)) {
		return false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && json.Unmarshal(b, value) == nil
}
