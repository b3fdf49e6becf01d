package oidc

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// A Role is what somebody may do at the pages; each is all of those before it too.
type Role int

// The roles.
const (
	Nobody  Role = iota
	Look         // see all experiments
	Operate      // start, pause, resume, stop and archive them, and take arms off
	Admin        // make experiments and keys
)

// A Config says who the issuer is, and who may do what.
type Config struct {
	Issuer string `yaml:"issuer"` // its URL, as its tokens have it
	Client string `yaml:"client"` // this service's ID there
	// SecretFile has the client's secret; empty for a public client, which PKCE alone protects.
	SecretFile string `yaml:"secret_file"`
	URL        string `yaml:"url"` // of this service, as browsers have it, without a path
	// Claim has the groups of somebody; groups if it is not given.
	Claim string `yaml:"claim"`
	// Scopes are asked for beside openid; email and profile if they are not given.
	Scopes []string `yaml:"scopes"`
	Roles  Roles    `yaml:"roles"`
}

// Roles are who has each.
type Roles struct {
	Look    Members `yaml:"look"`
	Operate Members `yaml:"operate"`
	Admin   Members `yaml:"admin"`
}

// Members are all who are in one of the groups, or have one of the addresses, which the issuer must have
// verified.
type Members struct {
	Groups []string `yaml:"groups"`
	Emails []string `yaml:"emails"`
}

// CallbackPath is where the issuer sends a browser back to, of this service.
const CallbackPath = "/login/callback"

// ErrConfig is matched by what is wrong with a Config.
var ErrConfig = errors.New("configuration of a login")

// Parse reads a Config from YAML. Keys that are not known are errors, and name their line.
func Parse(data []byte) (Config, error) {
	c := Config{Claim: "groups", Scopes: []string{"email", "profile"}}
	if err := yaml.UnmarshalWithOptions(data, &c, yaml.Strict()); err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := c.check(); err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c, nil
}

func (c *Config) check() error {
	for _, u := range []struct {
		field, value string
		path         bool
	}{{"issuer", c.Issuer, true}, {"url", c.URL, false}} {
		if !secure(u.value, u.path) {
			return fmt.Errorf("%s is %q, must be a URL with https, such as https://login.example, or http on this machine%s",
				u.field, u.value, map[bool]string{false: ", without a path"}[u.path])
		}
	}
	switch {
	case c.Client == "":
		return errors.New("client is missing: the ID that the issuer has given this service")
	case c.Claim == "":
		return errors.New(`claim is "", must be the name of the claim that has groups, such as groups`)
	}
	all := []struct {
		role string
		Members
	}{{"look", c.Roles.Look}, {"operate", c.Roles.Operate}, {"admin", c.Roles.Admin}}
	some := false
	for _, m := range all {
		for i, email := range m.Emails {
			if a, err := mail.ParseAddress(email); err != nil || a.Address != email {
				return fmt.Errorf("roles.%s.emails[%d] is %q, must be an address, such as ada@shop.example", m.role, i, email)
			}
		}
		if i := slices.Index(m.Groups, ""); i >= 0 {
			return fmt.Errorf(`roles.%s.groups[%d] is "", must be the name of a group`, m.role, i)
		}
		some = some || len(m.Emails)+len(m.Groups) > 0
	}
	if !some {
		return errors.New("roles is empty, must say who may look, operate or admin: nobody could log in")
	}
	return nil
}

// secure says whether a URL is one that nobody on the way can change: with TLS, or on this machine.
func secure(text string, path bool) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !path && u.Path != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// Terms are a digest of a Config: where who may do what has changed, so have they.
func (c Config) Terms() []byte {
	text, _ := json.Marshal(c) // strings alone
	sum := sha256.Sum256(text)
	return sum[:]
}

// role is the highest that somebody has.
func (c Config) role(email string, groups []string) Role {
	for _, m := range []struct {
		role Role
		Members
	}{{Admin, c.Roles.Admin}, {Operate, c.Roles.Operate}, {Look, c.Roles.Look}} {
		if slices.ContainsFunc(m.Emails, func(e string) bool { return same(e, email) }) ||
			slices.ContainsFunc(m.Groups, func(g string) bool { return slices.Contains(groups, g) }) {
			return m.role
		}
	}
	return Nobody
}

// same compares addresses without the case of ASCII. Other letters are compared as they are: by Unicode's
// rules the sign of the kelvin is a k, and an address with it is another person's.
func same(a, b string) bool {
	ascii := func(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }
	return a == b || ascii(a) && ascii(b) && strings.EqualFold(a, b)
}
