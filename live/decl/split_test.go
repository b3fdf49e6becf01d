package decl

import (
	"errors"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/play"
)

const liveTest = `name: checkout
arms: [classic, onepage]
policy: split
shares: {classic: 0.75, onepage: 0.25}
effect: 2
rate: 1
budget: {epsilon: 1}
unit: {of: person}
reward: {range: [0, 10], default: 0}
window: 24h
`

// An A/B test is read from YAML and from its normal form, is played jointly with its shares, and is
// planned in units of the range.
func TestParseSplit(t *testing.T) {
	l, err := Reader{}.Parse("checkout.yaml", []byte(liveTest))
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Reader{}.Parse("checkout.json", text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if other, err := again.JSON(); err != nil || string(other) != string(text) {
		t.Errorf("%s\n%s\n%v", text, other, err)
	}
	if take, err := again.Take(); err != nil || take != play.Jointly {
		t.Errorf("it takes %v, %v", take, err)
	}
	p, err := again.NewPolicy(ZeroCoins{})
	if err != nil {
		t.Fatal(err)
	}
	// Δ = .2, v = .09: batches of 40·√((16/9 + 16)/2) rounds
	joint := p.(play.Joint)
	if s := joint.Shares(0); s[0] != 0.75 || s[1] != 0.25 || joint.JointEnd(0) != 120 {
		t.Errorf("shares %v, and the first batch ends at %d", s, joint.JointEnd(0))
	}
	if q, err := again.Queue(); err != nil || !strings.Contains(q, "(classic 0.75, onepage 0.25)") ||
		!strings.Contains(q, "120 decisions") {
		t.Error(q, err)
	}
	table := again.Table()
	if j := table.Joint; j == nil || j.Shares[0] != 0.75 || j.Plan != (interval.Plan{Base: 0.1, Effect: 0.2}) || table.Hi != 10 {
		t.Errorf("its verdict is by %+v", table)
	}
	if len(again.Policy.Params) != 0 {
		t.Errorf("it was given parameters: %v", again.Policy.Params)
	}
}

func TestSplitErrors(t *testing.T) {
	for _, c := range []struct{ old, new, field, want string }{
		{"0.75", "0.7", "shares", `add to 0.95, must add to 1: with "classic" at 0.75 they would`},
		{"onepage: 0.25", "short: 0.25", "shares", `name "short", which is no arm`},
		{", onepage: 0.25", "", "shares", `have none of "onepage", must name each arm and add to 1: with "onepage" at 0.25 they would`},
		{"{classic: 0.75, onepage: 0.25}", "{}", "shares", `have none of "onepage", must name each arm and add to 1: 0.5 each would`},
		{"0.75, onepage: 0.25", "0.9, onepage: 0.9", "shares", `add to 1.8, must add to 1: with "classic" at 0.1 they would`},
		{"0.25", "0", "shares.onepage", "is 0, must be from 0.001 to below 1"},
		{"0.25", "-0.25", "shares.onepage", "is -0.25, must be"},
		{"0.25", ".nan", "shares.onepage", "is NaN, must be"},
		{"onepage: 0.25", "classic: 0.25", "", `"classic" already defined`},
		{"effect: 2", "effect: 11", "effect", "is 11, must be above 0 and at most 10"},
		{"effect: 2", "effect: -1", "effect", "is -1, must be above 0"},
		{"effect: 2", "effect: 0", "effect", "is 0, must be above 0"},
		{"rate: 1", "rate: 10", "rate", "is 10, must be above 0 and below 10"},
		{"policy: split", "policy: {policy: split, effect: 0.2}", "policy.effect", "must be a key of the experiment"},
		{"policy: split", "policy: dp-klucb", "effect", "is given, and the policy is dp-klucb"},
		{"policy: split\nshares: {classic: 0.75, onepage: 0.25}\neffect: 2\nrate: 1",
			"policy: dp-klucb\nshares: {classic: 0.75, onepage: 0.25}", "shares", "the policy is dp-klucb"},
		{"window: 24h", "window: 24h\nfloor: 0.1", "floor", "is 0.1, must be 0 or not given with policy split"},
		{"effect: 2", "effect: 1e-300", "policy", "releases nothing before"},
		{"window: 24h", "window: 24h\nrisk: 0.1", "", ""}, // another kind, which has no such keys
	} {
		l, err := Reader{}.Parse("checkout.yaml", []byte(strings.Replace(liveTest, c.old, c.new, 1)))
		if err == nil {
			err = l.Check()
		}
		var at *Error
		if !errors.As(err, &at) || !strings.HasPrefix(at.Field, c.field) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.new, err)
		}
	}
}

// What may turn out not to count goes with joint batches, whose rows are of decisions.
func TestSplitTakesJointly(t *testing.T) {
	for _, more := range []string{"", "exposure: retract\n", "exposure: activate\n",
		"missing: drop\nreports: every\n", "trust: local\n"} {
		l, err := Reader{}.Parse("checkout.yaml", []byte(liveTest+more))
		if err == nil {
			err = l.Check()
		}
		if err != nil {
			t.Errorf("%s: %v", more, err)
			continue
		}
		if take, err := l.Take(); err != nil || take != play.Jointly {
			t.Errorf("%s: it takes %v, %v", more, take, err)
		}
	}
}
