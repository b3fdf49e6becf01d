package api

import (
	"fmt"
	"strings"
	"testing"
)

// A key that is there twice is refused wherever it is: what one reader takes is not what another does.
func TestKeysTwice(t *testing.T) {
	w := shopOpen(t)
	d := *w.decide("ann").Decision
	many := func(last string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, `"k%d": 1, `, i)
		}
		return `{"unit": "x", "context": {` + b.String() + last + `: 1}}`
	}
	const x = "/v1/experiments/shop"
	for _, c := range []struct {
		path, body string
		field      string
		holds      bool
	}{
		{"/rewards", `{"decision": "` + d + `", "reward": 0, "reward": 1}`, "reward", false},
		{"/rewards", `{"decision": "` + d + `", "reward": 0, "REWARD": 1}`, "reward", false},
		{"/rewards", `{"decision": "` + d + `", "reward": 0, "rew\u0061rd": 1}`, "reward", false},
		{"/rewards/batch", `{"rewards": [{"decision": "` + d + `", "reward": 0, "reward": 1}]}`, "reward", false},
		{"/rewards/batch", `{"rewards": [{"decision": "` + d + `", "Reward": 0, "reward": 1}]}`, "reward", false},
		{"/rewards", `{"decision": "` + d + `", "reward": 0, "metrics": {"x": 1, "x": 2}}`, "", false},
		{"/decisions", `{"unit": "x", "unit": "y"}`, "unit", false},
		{"/decisions", `{"unit": "x", "context": {"a": [{"b": 1, "b": 2}]}}`, "", false},
		{"/decisions", many(`"k3"`), "", false},
		{"/decisions", many(`"k39"`), "", false},
		{"/decisions", many(`"k40"`), "", true},
		{"/decisions", `{"unit": "unit\",\"unit", "context": {"unit": 1, "a": 1, "A": 2, "b": ["a", "a"], ` +
			`"c": [{"a": 1}, {"a": 1}], "d": {"a": "a"}}}`, "", true},
	} {
		if c.holds {
			w.want(200, "POST", x+c.path, c.body)
			continue
		}
		text := w.want(400, "POST", x+c.path, c.body)
		if !strings.Contains(text, "twice") || strings.Contains(text, `"field":"`+c.field) != (c.field != "") {
			t.Errorf("%s: %s", c.body, text)
		}
	}
	w.want(400, "PATCH", x, `{"floor": 0.1, "floor": 0.9}`)
}

// Keys of contexts that clients of other services send are their own, and lists have many of them.
func TestKeysTwiceElsewhere(t *testing.T) {
	const ok = `{"contextFeatures": [{"a": 1, "A": 2}], "actions": [{"id": "x", "features": [{"b": 1}, {"b": 2}]}]}`
	if name, twice := repeated([]byte(ok), false); twice {
		t.Error(name)
	}
	if _, twice := repeated([]byte(strings.Replace(ok, `"A"`, `"a"`, 1)), false); !twice {
		t.Error("a feature is there twice")
	}
}

func BenchmarkRepeated(b *testing.B) {
	text := []byte(`{"decision": "` + strings.Repeat("d", 58) + `", "reward": 1}`)
	for b.Loop() {
		repeated(text, true)
	}
}
