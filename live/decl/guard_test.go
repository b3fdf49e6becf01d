package decl

import (
	"errors"
	"strings"
	"testing"
)

const guarded = `name: shop
arms: [a, b]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: person}
window: 24h
metrics: [{name: returns, range: [0, 10], budget: {epsilon: 0.5}}]
guard: [{metric: returns, below: 3, risk: 0.02}, {metric: reward, above: 0.1, risk: 0.01}]
`

// Guards are read, and written as they are read; their risk is shared out to guards and arms.
func TestGuard(t *testing.T) {
	l, err := Parse("shop.yaml", []byte(guarded))
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.JSON()
	if err != nil || !strings.Contains(string(text), `"guard":[{"metric":"returns","below":3,"risk":0.02},`+
		`{"metric":"reward","above":0.1,"risk":0.01}]`) {
		t.Errorf("%s, %v", text, err)
	}
	again, err := Parse("shop.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := again.JSON(); err != nil || string(other) != string(text) {
		t.Errorf("%s\n%s\n%v", text, other, err)
	}
	if r := l.GuardRisk(l.Guard[0]); r != 0.02/4 {
		t.Errorf("the risk of one guard and arm is %v", r)
	}
	for _, c := range []struct{ old, new, field, says string }{
		{"metric: returns, b", "metric: clicks, b", "guard[0].metric", "metrics: [{name: clicks, budget: {epsilon: 0.1}}]"},
		{"below: 3", "below: 10", "guard[0].below", "above 0 and below 10"},
		{"above: 0.1", "above: 1", "guard[1].above", "above 0 and below 1"},
		{"above: 0.1, ", "", "guard[1]", "must have below or above"},
		{"above: 0.1", "above: 0.1, below: 0.3", "guard[1].below", "is given beside above"},
		{"risk: 0.02", "risk: 0.6", "guard[0].risk", "at most 0.5"},
		{"risk: 0.02", "risk: 0", "guard[0].risk", "0.01 is usual"},
		{", risk: 0.02", "", "guard[0].risk", "0.01 is usual"},
		{"metric: reward, above: 0.1", "metric: returns, below: 5", "guard[1]", "from the same side as guard[0]"},
		{"[{name: returns,", "[{name: reward, budget: {epsilon: 0.1}}, {name: returns,", "guard[1].metric", "give that another name"},
		{"guard:", "ramp: [{share: 0.5, for: 1h}, {share: 0.25}]\nguard:", "ramp[1].share", "above that of the step before, 0.5"},
		{"guard:", "ramp: [{share: 0, for: 1h}, {share: 1}]\nguard:", "ramp[0].share", "above 0 and at most 1"},
		{"guard:", "ramp: [{share: 0.5, for: 1h}, {share: 1.5}]\nguard:", "ramp[1].share", "above 0 and at most 1"},
		{"guard:", "ramp: [{share: 0.5}, {share: 1}]\nguard:", "ramp[0].for", "24h is usual"},
		{"guard:", "ramp: [{share: 0.5, for: 1h}]\nguard:", "ramp[0].for", "add a step"},
		{"guard:", "share: 0.3\nramp: [{share: 0.5, for: 1h}, {share: 1}]\nguard:", "share", "must be left out beside a ramp, which begins with 0.5"},
		{"metrics:", "trust: local\n#", "guard", "it needs trust central"},
	} {
		l, err := Parse("shop.yaml", []byte(strings.Replace(guarded, c.old, c.new, 1)))
		if err == nil {
			err = l.Check()
		}
		var of *Error
		if !errors.As(err, &of) || of.Field != c.field || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}
