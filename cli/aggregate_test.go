package cli

import (
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/secagg"
)

func publicKey(name string) string {
	return formatKey(ed25519.NewKeyFromSeed([]byte((name +
		strings.Repeat("-", 32))[:32])).Public().(ed25519.PublicKey))
}

const mechanismJSONText = `{mechanism: aggregated, trust: secagg, noise: polya, g: 3, users: 4, invited: 5, modulus: 156, tau: 70, num: 3, den: 1}`

// sessionText is a session file with some lines replaced: "" takes a line out.
func sessionText(change map[string]string) string {
	out := ""
	for _, f := range [][2]string{{"id", strings.Repeat("0a", 32)}, {"experiment", "doses"},
		{"arm", "1"}, {"batch", "7"}, {"policy", strings.Repeat("ff", 32)}, {"mechanism", ""},
		{"modulus", "1000"},
		{"g", "10"}, {"length", "1"}, {"noise", "none"}, {"mode", "semi-honest"},
		{"complete", "false"}, {"n_min", "3"}, {"gamma", "0.1"}, {"delta", "0.3"},
		{"server", publicKey("server")},
		{"clients", "{1: '" + publicKey("1") + "', 2: '" + publicKey("2") + "', 3: '" +
			publicKey("3") + "', 4: '" + publicKey("4") + "'}"}, {"timeouts", "{wait: 20s, round: 10s}"}} {
		if v, ok := change[f[0]]; ok {
			f[1] = v
		}
		if f[1] != "" {
			out += f[0] + ": " + f[1] + "\n"
		}
	}
	return out
}

func TestSessionFile(t *testing.T) {
	x, err := parseSession([]byte(sessionText(nil)))
	if err != nil {
		t.Fatal(err)
	}
	want := secagg.Session{Experiment: "doses", Arm: 1, Batch: 7, Grid: 10, Modulus: 1000,
		Length: 1, Enrolled: 4, NMin: 3, Noise: "none", Mode: secagg.SemiHonest, Gamma: .1, Delta: .3}
	for i := range want.ID {
		want.ID[i], want.Policy[i] = 0x0a, 0xff
	}
	if x.Session != want || len(x.Clients) != 4 || x.Wait != 20*time.Second ||
		x.Round != 10*time.Second || formatKey(x.Clients[2]) != publicKey("2") || x.Mechanism != nil {
		t.Errorf("%+v", x)
	}
	// Defaults, and the greatest numbers.
	x, err = parseSession([]byte(sessionText(map[string]string{"timeouts": "", "policy": "",
		"g": "", "length": "", "noise": "", "complete": "true", "arm": "18446744073709551615 # " +
			"the last", "modulus": "0", "mode": "malicious"})))
	if err != nil || x.Wait != time.Minute || x.Round != secagg.DefaultTimeout ||
		x.Session.Grid != 1 || x.Session.Length != 1 || x.Session.Arm != 1<<64-1 ||
		!x.Session.Complete || x.Session.Mode != secagg.Malicious {
		t.Errorf("%+v, %v", x, err)
	}
	// A mechanism says what messages are, and how many honest ones a sum must have.
	own := map[string]string{"modulus": "", "g": "", "length": "", "noise": "",
		"mechanism": mechanismJSONText, "n_min": "4", "gamma": "0"}
	x, err = parseSession([]byte(sessionText(own)))
	if err != nil || x.Session.Modulus != 156 || x.Session.Grid != 3 || x.Session.Honest != 4 ||
		!strings.Contains(x.Session.Noise, `"noise":"polya"`) || x.Mechanism.Num != 3 {
		t.Errorf("%+v, %v", x, err)
	}
}

// Every bad field is one clear error of one line that names it.
func TestBadSessionFiles(t *testing.T) {
	mechanism := map[string]string{"modulus": "", "g": "", "length": "", "noise": "",
		"mechanism": mechanismJSONText, "n_min": "4", "gamma": "0"}
	with := func(base map[string]string, key, value string) map[string]string {
		out := map[string]string{key: value}
		for k, v := range base {
			if k != key {
				out[k] = v
			}
		}
		return out
	}
	k := func(n string) string { return "'" + publicKey(n) + "'" }
	for _, c := range []struct {
		change map[string]string
		want   string
	}{
		{map[string]string{"id": ""}, "id is"},
		{map[string]string{"id": "12"}, "id is"},
		{map[string]string{"id": strings.Repeat("0g", 32)}, "64 hexadecimal digits"},
		{map[string]string{"id": strings.Repeat("0", 63) + "a"}, ""},
		{map[string]string{"id": "'" + strings.Repeat("00", 32) + "'"}, "id is all zero"},
		{map[string]string{"policy": "abc"}, "policy is"},
		{map[string]string{"experiment": strings.Repeat("x", 5000)}, "experiment has 5000 bytes"},
		{map[string]string{"arm": "-1"}, "arm is -1, must be a whole number from 0 to 18446744073709551615"},
		{map[string]string{"arm": "[1]"}, "arm is [1]"},
		{map[string]string{"arm": "1.5"}, "arm is 1.5"},
		{map[string]string{"arm": ".nan"}, "arm is .nan"},
		{map[string]string{"batch": "18446744073709551616"}, "batch is 18446744073709551616"},
		{map[string]string{"modulus": ""}, "modulus is missing"},
		{map[string]string{"modulus": "1"}, "modulus = 1"},
		{map[string]string{"modulus": "1e3"}, "modulus is 1e3"},
		{map[string]string{"g": "0"}, "g is 0, must be"},
		{map[string]string{"length": "0"}, "length is 0, must be"},
		{map[string]string{"length": "1048577"}, "length is 1048577"},
		{map[string]string{"noise": strings.Repeat("x", 5000)}, "noise has 5000 bytes"},
		{map[string]string{"mode": ""}, "mode is"},
		{map[string]string{"mode": "nice"}, `mode is "nice"`},
		{map[string]string{"n_min": ""}, "n_min is missing"},
		{map[string]string{"n_min": "0"}, "n_min is 0"},
		{map[string]string{"n_min": "1"}, "n_min is 1, must be"},
		{map[string]string{"n_min": "5"}, "n_min = 5, 4 clients are enrolled"},
		{map[string]string{"n_min": "99999999999"}, "n_min is 99999999999, must be"},
		{map[string]string{"gamma": ".nan"}, "gamma is .nan"},
		{map[string]string{"gamma": ".inf"}, "gamma is .inf"},
		{map[string]string{"gamma": "-0.1"}, "gamma = -0.1"},
		{map[string]string{"gamma": "1"}, "gamma = 1"},
		{map[string]string{"gamma": "many"}, "gamma is many, must be a number"},
		{map[string]string{"delta": ".nan"}, "delta is .nan"},
		{map[string]string{"delta": "-.inf"}, "delta is -.inf"},
		{map[string]string{"delta": "0.9"}, "no graph is good enough"},
		{map[string]string{"server": ""}, "server: "},
		{map[string]string{"server": "ed25519:AAAA"}, "server: "},
		{map[string]string{"server": publicKey("1")}, "have one key"},
		{map[string]string{"clients": ""}, "enrolled = 0, must be"},
		{map[string]string{"clients": "[1]"}, "line 16"},
		{map[string]string{"clients": "{1: x, 2: y}"}, "is no public key"},
		{map[string]string{"clients": "{-1: " + k("1") + "}"}, `"-1" is no client`},
		{map[string]string{"clients": "{4294967296: " + k("1") + "}"}, `"4294967296" is no client`},
		{map[string]string{"clients": "{1: " + k("1") + ", 1: " + k("2") + "}"}, "already defined"},
		{map[string]string{"clients": "{1: " + k("1") + ", 2: " + k("1") + ", 3: " + k("3") + "}"},
			"have one key"},
		{map[string]string{"timeouts": "{wait: 0s}"}, "timeouts.wait is"},
		{map[string]string{"timeouts": "{wait: -1s}"}, "timeouts.wait is"},
		{map[string]string{"timeouts": "{round: soon}"}, "timeouts.round is"},
		{map[string]string{"timeouts": "{round: 25h}"}, "timeouts.round is"},
		{map[string]string{"timeouts": "{rounds: 1s}"}, "unknown field"},
		{map[string]string{"timeouts": "{round: 1s}\nfoo: 1"}, "unknown field"},
		{with(mechanism, "modulus", "5"), "modulus, g, length and noise are the mechanism's"},
		{with(mechanism, "noise", "none"), "modulus, g, length and noise are the mechanism's"},
		{with(mechanism, "mechanism", "{mechanism: laplace, scale: 1}"), `mechanism is "laplace"`},
		{with(mechanism, "mechanism", strings.NewReplacer("secagg", "local", "polya",
			"laplace").Replace(mechanismJSONText)), "must be aggregated with trust secagg"},
		{with(mechanism, "mechanism", strings.Replace(mechanismJSONText, "g: 3", "g: 0", 1)),
			"g is 0, must be at least 1"},
		{with(mechanism, "mechanism", "{g: 3}"), "mechanism"},
		{with(mechanism, "n_min", "3"), "n_min is 3, must be at least 4, the honest clients that " +
			"the noise is calibrated to"},
		{with(mechanism, "gamma", "0.25"), "no graph is good enough"},
		{with(mechanism, "mechanism", strings.NewReplacer("invited: 5", "invited: 3", "users: 4",
			"users: 3").Replace(mechanismJSONText)), "at most 3 who are invited"},
	} {
		_, err := parseSession([]byte(sessionText(c.change)))
		if c.want == "" {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q", c.change, err, c.want)
		}
	}
}

func FuzzSessionFile(f *testing.F) {
	f.Add([]byte(sessionText(nil)))
	f.Add([]byte(sessionText(map[string]string{"modulus": "", "g": "", "length": "", "noise": "",
		"mechanism": mechanismJSONText, "n_min": "4", "gamma": "0"})))
	f.Add([]byte(`{"id": 1, "clients": {"1": null}, "mechanism": []}`))
	f.Add([]byte("clients: &a {1: *a}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := parseSession(b)
		if err == nil && (x.Session.Validate() != nil || len(x.Clients) < x.Session.NMin ||
			x.Wait <= 0 || x.Round <= 0) {
			t.Fatalf("%+v", x)
		}
	})
}

func TestMarkUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "used")
	id := [32]byte{1}
	if err := wasUsed(dir, id); err != nil {
		t.Error(err)
	}
	if err := markUsed(dir, id); err != nil {
		t.Error(err)
	}
	for _, err := range []error{markUsed(dir, id), wasUsed(dir, id)} {
		if !errors.Is(err, secagg.ErrReplay) {
			t.Errorf("%v, want %v", err, secagg.ErrReplay)
		}
	}
	if err := markUsed(dir, [32]byte{2}); err != nil {
		t.Error(err)
	}
}
