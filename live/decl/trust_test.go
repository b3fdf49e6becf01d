package decl

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// helperKey is the HpkeConfig of a helper.
var helperKey = testkit.Must(dap.DeriveKey(bytes.Repeat([]byte{1}, 32), 7)).Config().String()

// gatheredShop has a policy that is proved for the noise of others.
var gatheredShop = strings.Replace(liveShop, "dp-klucb", "dp-klucb-j", 1)

var twoServers = gatheredShop + `trust: two-server
helper: {url: "https://helper.example.org", key: ` + helperKey + `}
`

// liveTrust reads and checks an experiment.
func liveTrust(text string) (*Experiment, error) {
	l, err := Reader{}.Parse("shop.yaml", []byte(text))
	if err == nil {
		err = l.Check()
	}
	return l, err
}

// Who is believed is in the normal form with all that follows from it, and the normal form of an
// experiment that believes its service is what it was.
func TestLiveTrust(t *testing.T) {
	central, err := liveTrust(gatheredShop)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := central.JSON()
	if err != nil {
		t.Fatal(err)
	}
	promise, err := central.Guarantee()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, more string
		trust      privacy.Trust
		after      time.Duration
		grid       int
		gathering  release.Gathering
	}{
		{gatheredShop + "trust: central\n", "", privacy.TrustCentral, 0, 0, release.Gathering{}},
		{twoServers, `,"trust":"two-server","report_after":"12h0m0s","grid":1024,"helper":{"url":` +
			`"https://helper.example.org","key":"` + helperKey + `"}`,
			privacy.TrustTwoServer, 12 * time.Hour, 1024, release.Gathering{Trust: privacy.TrustTwoServer}},
		{gatheredShop + "trust: local\nreport_after: 90m\n", `,"trust":"local","report_after":"1h30m0s"`,
			privacy.TrustLocal, 90 * time.Minute, 0, release.Gathering{Trust: privacy.TrustLocal}},
		{gatheredShop + "trust: secagg\ncohort: {users: 20}\n",
			`,"trust":"secagg","report_after":"12h0m0s","cohort":{"users":20,"corrupt":0.1,"vanish":0.1,` +
				`"every":"1h0m0s","wait":"1m0s","tries":3,"otherwise":"default"}`, privacy.TrustSecAgg,
			12 * time.Hour, 0, release.Gathering{Trust: privacy.TrustSecAgg, Users: 20}},
	} {
		l, err := liveTrust(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.trust, err)
			continue
		}
		if l.TrustModel() != c.trust || l.ReportDelay() != c.after || l.ReportGrid() != c.grid ||
			l.Gathering() != c.gathering {
			t.Errorf("%s: trust %s, report after %v, grid %d, %v", c.trust, l.TrustModel(), l.ReportDelay(),
				l.ReportGrid(), l.Gathering())
		}
		text, err := l.JSON()
		if want := strings.TrimSuffix(string(plain), "}") + c.more + "}"; err != nil || string(text) != want {
			t.Errorf("%s: %s, want %s, %v", c.trust, text, want, err)
		}
		again, err := liveTrust(string(text))
		if err != nil {
			t.Errorf("%s: read again: %v", c.trust, err)
		} else if other, err := again.JSON(); err != nil || string(other) != string(text) {
			t.Errorf("%s: read again: %s, %v", c.trust, other, err)
		}
		noise, err := l.Noise()
		const want = "laplace 134217729/64"
		if alone := c.trust == privacy.TrustCentral; alone != (err != nil) || !alone && noise.String() != want {
			t.Errorf("%s: the noise is %v, must be %s: %v", c.trust, noise, want, err)
		}
		said, err := l.Guarantee()
		if err != nil || (c.trust == privacy.TrustCentral) != (said == promise) {
			t.Errorf("%s: the guarantee is %q, %v", c.trust, said, err)
		}
	}
}

// What is not proved where nobody sees the rewards is refused, by one error that names its key.
func TestLiveTrustRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"trust: two-server", "trust: shuffle",
			`trust: is "shuffle", must be central, two-server, local, secagg`},
		{"trust: two-server", "trust: local",
			"helper: is given, and trust is local: it is for trust two-server"},
		{"trust: two-server", "trust: central", "helper: is given, and trust is central"},
		{"trust: two-server", "trust: two-server\ncohort: {users: 3}",
			"cohort: is given, and trust is two-server"},
		{"trust: two-server", "", "helper: is given, and trust is central"},
		{"helper: {url", "report_after: 24h\nhelper: {url",
			"report_after: is 24h0m0s, must be from 1ms to below"},
		{"helper: {url", "report_after: 10us\nhelper: {url", "report_after: is 10µs, must be"},
		{"helper: {url", "report_after: -1h\nhelper: {url", "report_after: is -1h0m0s, must be"},
		{"helper: {url", "report_after: 0s\nhelper: {url", "report_after: is 0s, must be"},
		{"helper: {url", "grid: 1000\nhelper: {url",
			"grid: is 1000, must be a power of two from 1 to 1048576"},
		{"helper: {url", "grid: 2097152\nhelper: {url", "grid: is 2097152, must be a power of two"},
		{"helper: {url", "grid: 0\nhelper: {url", `grid: "0" is too small, must`},
		{"helper: {url", "grid: -8\nhelper: {url", `grid: "-8" is too small, must`},
		{"https://helper", "http://helper", `helper.url: has the scheme "http"`},
		{"https://helper.example.org", "helper", "helper.url: must be an address"},
		{"example.org", "example.org?a=b", "helper.url: must be an address"},
		{"example.org", "example.org#a", "helper.url: must be an address"},
		{helperKey, "no/base64", "helper.key: must be the helper's HpkeConfig"},
		{helperKey, strings.Repeat("A", 1368), "helper.key: must be the helper's HpkeConfig"},
		{", key: " + helperKey, "", "helper.key: must be"},
		{helperKey, helperKey[:8], "helper.key: must be the helper's HpkeConfig"},
		{"trust: two-server", "trust: two-server\nmetrics: [{name: basket, budget: {epsilon: 1}}]",
			"metrics: are for trust central"},
		{"trust: two-server", "trust: two-server\nexposure: retract",
			"exposure: is retract, must be decide"},
		{"trust: two-server", "trust: two-server\nexposure: activate",
			"exposure: is activate, must be decide"},
		{"trust: two-server", "trust: two-server\nmissing: drop\nreports: every",
			"missing: is drop, must be default"},
		{"budget: {epsilon: 1}", "budget: {epsilon: 1.0e-9}", "budget: not under trust two-server"},
		{"dp-klucb-j", "dp-klucb", "policy: dp-klucb: it is not proved for sums that are gathered"},
		{"dp-klucb-j", "lazy-dp-ts", "policy: lazy-dp-ts: it is not proved for sums that are gathered"},
		{"policy: {policy: dp-klucb-j}", "risk: 0.1\npolicy: {policy: dp-tt, forget: true}",
			"policy: dp-tt: it is not proved for sums that are gathered: with forget"},
	} {
		text := strings.Replace(twoServers, c.old, c.new, 1)
		if text == twoServers {
			t.Fatalf("%s: nothing is replaced", c.old)
		}
		if _, err := liveTrust(text); err == nil || !errors.Is(err, keyed.ErrSpec) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.new, c.want, err)
		}
	}
	for text, want := range map[string]string{
		gatheredShop + "trust: two-server\n": "helper: is missing",
		gatheredShop + "trust: secagg\n":     "cohort: is missing",
		gatheredShop + "trust: secagg\ncohort: {users: 1}\n": "cohort.users: gathering: users is " +
			"1, must be from 2",
		gatheredShop + "grid: 4\n":          "grid: is given, and trust is central",
		gatheredShop + "report_after: 1h\n": "report_after: is given, and trust is central",
		liveFront + "trust: local\n":        "trust: is not for contextual experiments",
		liveFront + "report_after: 1m\n":    "report_after: is not for contextual experiments",
	} {
		if _, err := liveTrust(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Normal noise that another adds is priced by its ρ: a budget in (ε,δ) that counts on a better
// price is refused, and what the same ρ promises is not.
func TestLiveTrustOfNormalNoise(t *testing.T) {
	text := strings.Replace(gatheredShop, "dp-klucb-j", "adac-ucb", 1) + "trust: local\n"
	text = strings.Replace(text, ", assignments: 2", "", 1)
	if _, err := liveTrust(strings.Replace(text, "{epsilon: 1}", "{rho: 0.1}", 1)); err != nil {
		t.Error(err)
	}
	const want = "budget: is epsilon=1,delta=1e-06 a reward, and a release under trust local costs"
	if _, err := liveTrust(strings.Replace(text, "{epsilon: 1}", "{epsilon: 1, delta: 1.0e-6}",
		1)); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// A task is the same for who was told the same, and another for who was told anything else that
// both servers count by; what an operator may change on the way is not in it.
func TestLiveTask(t *testing.T) {
	of := func(old, new string) dap.Task {
		t.Helper()
		text := strings.Replace(twoServers, old, new, 1)
		if text == twoServers && old != new {
			t.Fatalf("%s: nothing is replaced", old)
		}
		l, err := liveTrust(text)
		if err != nil {
			t.Fatal(err)
		}
		task, err := l.Task()
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	task := of("", "")
	if id := task.ID.String(); task.Grid != 1024 || task.MinBatch != 0 ||
		id != "w8W5mI6-P7-SChSCdnBiSbJZIkBKfquDSSklHj9i-0Y" {
		t.Errorf("the task is %s, of grid %d, at least %d", id, task.Grid, task.MinBatch)
	}
	seen := map[dap.TaskID]string{task.ID: "the same"}
	for _, c := range [][2]string{{"name: shop", "name: shop2"}, {", green]", ", green, white]"},
		{"range: [0, 10]", "range: [0, 11]"}, {"default: 5", "default: 4"}, {"epsilon: 1", "epsilon: 2"},
		{"assignments: 2", "assignments: 3"}, {"helper: {", "grid: 1\nhelper: {"},
		{"example.org", "example.net"},
		{helperKey, testkit.Must(dap.DeriveKey(bytes.Repeat([]byte{2}, 32), 7)).Config().String()}} {
		other := of(c[0], c[1])
		if before, ok := seen[other.ID]; ok {
			t.Errorf("%s has the task of %s", c[1], before)
		}
		seen[other.ID] = c[1]
	}
	for _, c := range [][2]string{{"window: 24h", "window: 48h"}, {"floor: 0.05", "floor: 0.1"},
		{"helper: {", "report_after: 1h\nhelper: {"}, {"start: 2026-01-31T09:00:00Z", "public: true"}} {
		if of(c[0], c[1]) != task {
			t.Errorf("%s has another task", c[1])
		}
	}
	for _, text := range []string{gatheredShop, gatheredShop + "trust: local\n"} {
		l, err := liveTrust(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Task(); err == nil {
			t.Errorf("trust %s has a task", l.TrustModel())
		}
	}
}
