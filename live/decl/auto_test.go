package decl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
)

const autoShop = `name: shop
arms: [red, blue]
budget: {rho: 0.05}
unit: {of: person}
window: 24h
`

// Where no policy is named, or auto, one is picked by the declaration; what is stored has it by its name, and
// is read as one that somebody named.
func TestAuto(t *testing.T) {
	for _, add := range []string{"", "policy: auto\n", "policy: {policy: auto}\nrate: 0.03\ntraffic: 1000\n",
		"reward: {range: [0, 10]}\nrate: 0.3\nhorizon: 30_000\n", "by: {device: [phone]}\n",
		"trust: two-server\nhelper: {url: \"https://helper.example\", key: \"" + helperKey + "\"}\n"} {
		l, err := Reader{}.Parse("shop.yaml", []byte(autoShop+add))
		if err == nil {
			err = l.Check()
		}
		if err != nil {
			t.Fatalf("%s: %v", add, err)
		}
		if l.Policy.Policy == catalog.AutoPolicy || !strings.HasPrefix(l.Picked, l.Policy.Policy+", picked") || l.Rate != 0 {
			t.Errorf("%s: %+v, %q, rate %v", add, l.Policy, l.Picked, l.Rate)
		}
		text, err := l.JSON()
		if err != nil || strings.Contains(string(text), `"auto"`) || strings.Contains(string(text), `"rate"`) {
			t.Errorf("%s, %v", text, err)
		}
		again, err := Reader{}.Parse("shop.json", text)
		if err != nil {
			t.Fatal(err)
		}
		if other, err := again.JSON(); err != nil || string(other) != string(text) || again.Picked != "" {
			t.Errorf("%s\n%s\n%q, %v", text, other, again.Picked, err)
		}
	}
}

// The rate is in the units of rewards, and a horizon is traffic over the declared time: the same plan, the
// same pick.
func TestAutoReadsThePlan(t *testing.T) {
	picked := func(add string) string {
		l, err := Reader{}.Parse("shop.yaml", []byte(autoShop+add))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(l.Policy)
	}
	if a, b := picked("rate: 0.03\nhorizon: 30_000\n"), picked("reward: {range: [-1, 1], default: -1}\nrate: -0.94\ntraffic: 1000\n"); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := picked("rate: 0.03\n"), picked("rate: 0.5\n"); a == b {
		t.Errorf("the rate decides nothing: %s", a)
	}
}

// What is wrong beside is said as ever, and effect is for an A/B test.
func TestAutoErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"[red, blue]", "[red]", "arms: has 1, must be from 2"},
		{"{rho: 0.05}", "none", "budget: is none"},
		{"window: 24h", "window: 24h\ntraffic: -5", "traffic: is -5, must be above 0"},
		{"{rho: 0.05}", "{rho: -1}", "rho is -1"},
		{"window: 24h", "window: 24h\nrate: 1", "rate: is 1, must be above 0 and below 1"},
		{"window: 24h", "window: 24h\neffect: 0.1", "effect: is given, and the policy is auto: it is for policy split"},
		{"window: 24h", "window: 24h\npolicy: {policy: auto, rate: 0.1}", "policy.rate: is given, must be a key of the " +
			"experiment, beside policy"},
		{"window: 24h", "window: 24h\npolicy: {policy: auto, first: 3}", `policy: unknown key "first"`},
	} {
		l, err := Reader{}.Parse("shop.yaml", []byte(strings.Replace(autoShop, c.old, c.new, 1)))
		if err == nil {
			err = l.Check()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
}

// Who looks for the best arm, or has contexts, and names no policy has the usual one, and what is stored names it.
func TestUsualPolicies(t *testing.T) {
	for want, text := range map[string]string{
		"dp-sed": strings.Replace(autoShop, "window: 24h", "window: 24h\nrisk: 0.05", 1),
		ContextualPolicy: "name: words\ncontextual: {action: {topic: {values: [a, b]}}}\nbudget: {rho: 1}\n" +
			"unit: {of: visit}\nwindow: 1m\n",
		HistogramPolicy: "name: words\ncontextual: {action: {topic: {values: [a, b]}}, protect: joint}\n" +
			"budget: {rho: 1}\nunit: {of: visit}\nwindow: 1m\n",
	} {
		l := testkit.Must(Reader{}.Parse("words.yaml", []byte(text)))
		if err := l.Check(); err != nil || l.Policy.Policy != want || !strings.HasPrefix(l.Picked, want) {
			t.Errorf("%s: %v, %q, %q", want, err, l.Policy.Policy, l.Picked)
		}
		if stored := testkit.Must(l.JSON()); !strings.Contains(string(stored), want) {
			t.Errorf("%s is not stored: %s", want, stored)
		}
	}
}
