package cli

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/transport"
)

// sessionFile is a session as it is written down: the same file for the server and for all clients.
type sessionFile struct {
	ID         string            `yaml:"id"`
	Experiment string            `yaml:"experiment"`
	Arm        scalar            `yaml:"arm"`
	Batch      scalar            `yaml:"batch"`
	Policy     string            `yaml:"policy"`
	Mechanism  map[string]any    `yaml:"mechanism"`
	Modulus    scalar            `yaml:"modulus"`
	Grid       scalar            `yaml:"g"`
	Length     scalar            `yaml:"length"`
	Noise      string            `yaml:"noise"`
	Mode       string            `yaml:"mode"`
	Complete   bool              `yaml:"complete"`
	NMin       scalar            `yaml:"n_min"`
	Gamma      scalar            `yaml:"gamma"`
	Delta      scalar            `yaml:"delta"`
	Server     string            `yaml:"server"`
	Clients    map[string]string `yaml:"clients"`
	Timeouts   struct {
		Wait  string `yaml:"wait"`
		Round string `yaml:"round"`
	} `yaml:"timeouts"`
}

// scalar is the text of a number. The reader of YAML alone would cut 1.5 to 1, and not say where a
// number is wrong.
type scalar string

// UnmarshalYAML keeps the text of a node.
func (x *scalar) UnmarshalYAML(b []byte) error {
	text, _, _ := strings.Cut(string(b), " #")
	*x = scalar(strings.TrimSpace(text))
	return nil
}

// whole is a number in a field of this name, from lo to hi.
func (x scalar) whole(name string, lo, hi uint64) (uint64, error) {
	v, err := strconv.ParseUint(string(x), 10, 64)
	if err != nil || v < lo || v > hi {
		return 0, fmt.Errorf("%s is %s, must be a whole number from %d to %d", name, x.orMissing(), lo, hi)
	}
	return v, nil
}

// number is a number in a field of this name; 0 if there is none. What it may be is for
// the session to say.
func (x scalar) number(name string) (float64, error) {
	if x == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(string(x), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s is %s, must be a number", name, x)
	}
	return v, nil
}

func (x scalar) orMissing() string {
	if x == "" {
		return "missing"
	}
	return string(x)
}

// aggregateSession is a session file, read and checked.
type aggregateSession struct {
	Session   secagg.Session
	Mechanism *privacy.Aggregated // nil: messages are the clients' own, and so is noise
	Server    ed25519.PublicKey
	Clients   map[uint32]ed25519.PublicKey
	Wait      time.Duration
	Round     time.Duration
}

const (
	maxSessionFile = 64 << 20
	longest        = 24 * time.Hour // of a timeout
	keyPrefix      = "ed25519:"
)

// formatKey and parseKey are a public key as text.
func formatKey(k ed25519.PublicKey) string { return keyPrefix + base64.StdEncoding.EncodeToString(k) }

func parseKey(text string) (ed25519.PublicKey, error) {
	rest, ok := strings.CutPrefix(text, keyPrefix)
	b, err := base64.StdEncoding.Strict().DecodeString(rest)
	if !ok || err != nil || len(b) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%q is no public key, must be %q and 44 characters of base64, as "+
			"sotto aggregate keygen prints it", text, keyPrefix)
	}
	return b, nil
}

func parseHash(text string) (out [32]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(out) {
		return out, fmt.Errorf("%q, must be 64 hexadecimal digits", text)
	}
	return [32]byte(b), nil
}

// readLimited reads a file of at most so many bytes.
func readLimited(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s: more than %d bytes", path, most)
	}
	return b, err
}

// readSession reads a session file. An error is the caller's.
func readSession(path string) (aggregateSession, error) {
	b, err := readLimited(path, maxSessionFile)
	if err != nil {
		return aggregateSession{}, usage(err)
	}
	out, err := parseSession(b)
	if err != nil {
		return out, usage(fmt.Errorf("%s: %w", path, err))
	}
	return out, nil
}

func parseSession(b []byte) (out aggregateSession, err error) {
	if json.Valid(b) { // it is YAML too, but for tabs
		var plain bytes.Buffer
		if err := json.Indent(&plain, b, "", " "); err != nil {
			return out, err
		}
		b = plain.Bytes()
	}
	var f sessionFile
	if err := yaml.UnmarshalWithOptions(b, &f, yaml.Strict()); err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			p := at.GetToken().Position
			return out, fmt.Errorf("line %d, column %d: %s", p.Line, p.Column, at.GetMessage())
		}
		first, _, _ := strings.Cut(err.Error(), "\n")
		return out, errors.New(first)
	}
	x := &out.Session
	*x = secagg.Session{Experiment: f.Experiment, Noise: f.Noise, Complete: f.Complete, Length: 1}
	if x.ID, err = parseHash(f.ID); err != nil {
		return out, fmt.Errorf("id is %w, fresh for every sum; sotto aggregate id draws one", err)
	}
	if f.Policy != "" {
		if x.Policy, err = parseHash(f.Policy); err != nil {
			return out, fmt.Errorf("policy is %w: a hash of the policy's state", err)
		}
	}
	switch f.Mode {
	case secagg.SemiHonest.String():
		x.Mode = secagg.SemiHonest
	case secagg.Malicious.String():
		x.Mode = secagg.Malicious
	default:
		return out, fmt.Errorf("mode is %q, must be %v or %v: what the server is trusted with",
			f.Mode, secagg.SemiHonest, secagg.Malicious)
	}
	for _, v := range []struct {
		name string
		from scalar
		to   *uint64
	}{{"arm", f.Arm, &x.Arm}, {"batch", f.Batch, &x.Batch}} {
		if v.from == "" {
			continue
		}
		if *v.to, err = v.from.whole(v.name, 0, math.MaxUint64); err != nil {
			return out, err
		}
	}
	if x.Gamma, err = f.Gamma.number("gamma"); err != nil {
		return out, err
	}
	if x.Delta, err = f.Delta.number("delta"); err != nil {
		return out, err
	}
	n, err := f.NMin.whole("n_min", 2, 1<<20)
	if err != nil {
		return out, err
	}
	x.NMin = int(n)
	if err := f.numbers(&out); err != nil {
		return out, err
	}
	if err := f.people(&out); err != nil {
		return out, err
	}
	x.Enrolled = len(out.Clients)
	for _, t := range []struct {
		name, text string
		to         *time.Duration
		def        time.Duration
	}{{"wait", f.Timeouts.Wait, &out.Wait, transport.DefaultWait},
		{"round", f.Timeouts.Round, &out.Round, secagg.DefaultTimeout}} {
		*t.to = t.def
		if t.text == "" {
			continue
		}
		if *t.to, err = time.ParseDuration(t.text); err != nil || *t.to <= 0 || *t.to > longest {
			return out, fmt.Errorf("timeouts.%s is %q, must be a time such as 30s, above 0 and "+
				"at most %v", t.name, t.text, longest)
		}
	}
	return out, out.check()
}

// numbers are what messages are: by a mechanism, or in the clients' own hands.
func (f *sessionFile) numbers(out *aggregateSession) (err error) {
	x := &out.Session
	if f.Mechanism == nil {
		if f.Modulus == "" {
			return errors.New("modulus is missing, must be there, or a mechanism as sotto plan release " +
				"--json prints it")
		}
		// 0 stands for 2^64
		if x.Modulus, err = f.Modulus.whole("modulus", 0, math.MaxUint64); err != nil {
			return err
		}
		x.Grid = 1
		if f.Grid != "" {
			if x.Grid, err = f.Grid.whole("g", 1, math.MaxUint64); err != nil {
				return err
			}
		}
		if f.Length != "" {
			n, err := f.Length.whole("length", 1, 1<<20)
			if err != nil {
				return err
			}
			x.Length = int(n)
		}
		return nil
	}
	if f.Modulus != "" || f.Grid != "" || f.Length != "" || f.Noise != "" {
		return errors.New("modulus, g, length and noise are the mechanism's, and must not be given beside it")
	}
	b, err := json.Marshal(f.Mechanism)
	if err != nil {
		return fmt.Errorf("mechanism: %w", err)
	}
	m, err := privacy.UnmarshalMechanism(b)
	if err != nil {
		return err
	}
	a, ok := m.(privacy.Aggregated)
	if !ok || a.Trust != privacy.TrustSecAgg {
		return fmt.Errorf("mechanism is %q, must be aggregated with trust secagg", m.Kind())
	}
	if b, err = json.Marshal(a); err != nil {
		return fmt.Errorf("mechanism: %w", err)
	}
	out.Mechanism = &a
	x.Modulus, x.Grid, x.Noise, x.Honest = uint64(a.Modulus), uint64(a.G), string(b), a.Users
	return nil
}

// people are the keys.
func (f *sessionFile) people(out *aggregateSession) (err error) {
	if out.Server, err = parseKey(f.Server); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	seen := map[string]string{string(out.Server): "the server"}
	out.Clients = make(map[uint32]ed25519.PublicKey, len(f.Clients))
	for text, key := range f.Clients {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil || strconv.FormatUint(id, 10) != text {
			return fmt.Errorf("clients: %q is no client, must be a number from 0 to 2^32-1", text)
		}
		k, err := parseKey(key)
		if err != nil {
			return fmt.Errorf("clients: %d: %w", id, err)
		}
		if other, ok := seen[string(k)]; ok {
			return fmt.Errorf("clients: %d and %s have one key", id, other)
		}
		seen[string(k)] = text
		out.Clients[uint32(id)] = k
	}
	return nil
}

// check refuses what could not be done even if all clients came.
func (a *aggregateSession) check() error {
	if _, err := secagg.NewServer(secagg.ServerConfig{Session: a.Session,
		Identity: make(ed25519.PrivateKey, ed25519.PrivateKeySize), Clients: a.Clients,
		Timeout: a.Round}); err != nil {
		return err
	}
	if m := a.Mechanism; m != nil && len(a.Clients) > m.Invited {
		return fmt.Errorf("clients: there are %d, and the mechanism is for at most %d who are "+
			"invited", len(a.Clients), m.Invited)
	}
	return nil
}
