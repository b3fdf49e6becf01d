// Package oidc knows the people who look at a service's pages by an issuer of identities that others run
// (OpenID Connect Core 1.0): the code flow with PKCE (RFC 7636), a state and a nonce. Who may do what is said
// by groups that the issuer tells, and by listed e-mail addresses. Begin with Parse and New.
//
// What the issuer says of somebody is in no error and in no log: Identity has what the journal of operators
// needs, and the rest is dropped.
package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// answerWithin bounds each request to the issuer: a browser waits meanwhile.
const answerWithin = 10 * time.Second

// maxName bounds the name of somebody in the journal, as that of a key.
const maxName = 100

// What can come of a login. No error has anything of whom it was.
var (
	// ErrDown: the issuer does not answer.
	ErrDown = errors.New("the issuer of identities does not answer")
	// ErrRefused: what the issuer said cannot be believed, or it said nothing.
	ErrRefused = errors.New("the issuer of identities did not say who it is")
	// ErrRole: somebody is known, and may do nothing here.
	ErrRole = errors.New("nobody of this name has a role here")
)

// An Identity is somebody, as the journal names them, and the role.
type Identity struct {
	Name string // a verified address, or else the issuer's own name
	Role Role
}

// An Issuer is asked who somebody is. It may be used by many goroutines.
type Issuer struct {
	Config
	secret string
	client *http.Client

	mu    sync.Mutex
	found *oidc.Provider // nil until it answered for the first time
}

// New makes an Issuer, which is asked nothing before somebody logs in: a service starts without it.
func New(c Config, secret string) *Issuer {
	return &Issuer{Config: c, secret: secret, client: &http.Client{Timeout: answerWithin}}
}

// Host is the issuer as people know it.
func (i *Issuer) Host() string {
	u, err := url.Parse(i.Config.Issuer)
	if err != nil {
		return i.Config.Issuer
	}
	return u.Host
}

// provider is where the issuer says that its parts are, which it is asked once.
func (i *Issuer) provider(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	found := i.found
	i.mu.Unlock()
	if found != nil {
		return found, nil
	}
	// Its keys are fetched later, with what is in this context: it must not end.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), i.client), i.Config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDown, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.found = found
	return found, nil
}

func (i *Issuer) oauth(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: i.Client, ClientSecret: i.secret, Endpoint: p.Endpoint(), RedirectURL: i.URL + CallbackPath,
		Scopes: append([]string{oidc.ScopeOpenID}, i.Scopes...)}
}

// Address is where a browser is sent.
func (i *Issuer) Address(ctx context.Context, state, nonce, verifier string) (string, error) {
	p, err := i.provider(ctx)
	if err != nil {
		return "", err
	}
	return i.oauth(p).AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// Identify gives a code to the issuer, and says whom it names: ErrDown, ErrRefused or ErrRole if nobody.
func (i *Issuer) Identify(ctx context.Context, code, nonce, verifier string) (Identity, error) {
	p, err := i.provider(ctx)
	if err != nil {
		return Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, i.client)
	token, err := i.oauth(p).Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Identity{}, exchangeError(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return Identity{}, fmt.Errorf("%w: it gave no ID token", ErrRefused)
	}
	id, err := p.Verifier(&oidc.Config{ClientID: i.Client}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, verifyError(err)
	}
	if id.Nonce != nonce {
		return Identity{}, fmt.Errorf("%w: the token is of another login", ErrRefused)
	}
	// By their exact names: a field of a struct is found in any case, and some issuers have claims that users choose.
	all := map[string]json.RawMessage{}
	if id.Claims(&all) != nil {
		return Identity{}, fmt.Errorf("%w: its claims cannot be read", ErrRefused)
	}
	var email string // counts if the issuer has verified it; some say so in a word
	if text, there := all["email"]; there && json.Unmarshal(text, &email) != nil {
		return Identity{}, fmt.Errorf("%w: its claims cannot be read", ErrRefused)
	}
	if strings.Trim(string(all["email_verified"]), `"`) != "true" {
		email = ""
	}
	who := Identity{Name: email, Role: i.role(email, groupsOf(all[i.Claim]))}
	if email == "" && id.Subject != "" {
		who.Name = "sub:" + id.Subject // some issuers have users choose it, and it may look like an address
	}
	switch {
	case who.Role == Nobody:
		return Identity{}, ErrRole
	case who.Name == "" || len(who.Name) > maxName || strings.ContainsFunc(who.Name, func(r rune) bool { return r < ' ' }):
		return Identity{}, fmt.Errorf("%w: its name must have 1 to %d characters", ErrRefused, maxName)
	}
	return who, nil
}

// groupsOf reads the groups of a claim, which is a list of names, or one name.
func groupsOf(claim json.RawMessage) (out []string) {
	var one string
	switch {
	case len(claim) == 0:
	case json.Unmarshal(claim, &one) == nil && one != "":
		return []string{one}
	case json.Unmarshal(claim, &out) != nil:
		return nil
	}
	return out
}

// exchangeError says what went wrong with a code, in the words of the protocol alone: the bodies of answers
// may name somebody.
func exchangeError(err error) error {
	var answered *oauth2.RetrieveError
	if !errors.As(err, &answered) {
		return fmt.Errorf("%w: %s", ErrDown, reasonOf(err))
	}
	if answered.Response != nil && answered.Response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%w: status %d", ErrDown, answered.Response.StatusCode)
	}
	for _, known := range []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
		"unsupported_grant_type", "invalid_scope"} { // RFC 6749, 5.2
		if answered.ErrorCode == known {
			return fmt.Errorf("%w: %s", ErrRefused, known)
		}
	}
	return ErrRefused
}

// verifyError tells a token that is wrong from keys that cannot be fetched.
func verifyError(err error) error {
	var old *oidc.TokenExpiredError
	var asked *url.Error
	switch {
	case errors.As(err, &old):
		return fmt.Errorf("%w: the token has expired; are both clocks right?", ErrRefused)
	case errors.As(err, &asked), strings.Contains(err.Error(), "fetching keys"):
		return fmt.Errorf("%w: its keys cannot be fetched", ErrDown)
	case strings.Contains(err.Error(), "expected audience"):
		return fmt.Errorf("%w: the token is for another client", ErrRefused)
	}
	return fmt.Errorf("%w: the token is not its own, or is damaged", ErrRefused)
}

// reasonOf is why nobody answered, without the address that was asked.
func reasonOf(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return "its answer cannot be read"
}
