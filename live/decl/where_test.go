package decl

import (
	"strings"
	"testing"
)

// What a decision's context must be, by values, negation, ranges and versions, whose order is that of
// semver.org 2.0.0, 11.
func TestWhere(t *testing.T) {
	for _, v := range []struct {
		only, value string
		want        bool
	}{
		{"{not: [free, trial]}", `"pro"`, true}, {"{not: [free, trial]}", `"free"`, false}, {"{not: 3}", "3", false},
		{"{from: 18, below: 65}", "18", true}, {"{from: 18, below: 65}", "65", false}, {"{from: 18}", `"20"`, true},
		{"{from: 18}", `"old"`, false}, {"{below: 0}", "-1.5", true}, {"{from: 0}", "-1", false}, {"{from: 18}", "true", false},
		{`{semver: ">=2.1.0 <3"}`, `"2.1.0"`, true}, {`{semver: ">=2.1.0 <3"}`, `"3.0.0"`, false},
		{`{semver: ">=2.1.0 <3"}`, `"2.10.1"`, true}, {`{semver: ">=2.1.0"}`, `"2.1.0-rc.1"`, false},
		{`{semver: ">1.0.0-alpha"}`, `"1.0.0-alpha.1"`, true}, {`{semver: ">1.0.0-alpha.1"}`, `"1.0.0-alpha.beta"`, true},
		{`{semver: ">1.0.0-alpha.beta"}`, `"1.0.0-beta"`, true}, {`{semver: ">1.0.0-beta.2"}`, `"1.0.0-beta.11"`, true},
		{`{semver: ">1.0.0-rc.1"}`, `"1.0.0"`, true}, {`{semver: "=1.2.3"}`, `"1.2.3+build.5"`, true},
		{`{semver: "!=1.2.3"}`, `"1.2"`, true}, {`{semver: ">=1.0.0"}`, `"1.0.0.0"`, false}, {`{semver: ">=1.0.0"}`, `"01.0.0"`, false},
		{`{semver: "<=2"}`, `"x"`, false}, {`{semver: ">=1", not: "1.5.0"}`, `"1.5.0"`, false},
	} {
		x, err := Parse("shop.yaml", []byte(liveShop+"only: {k: "+v.only+", c: NL}\n"))
		if err == nil {
			err = x.Check()
		}
		if err != nil {
			t.Fatal(v.only, err)
		}
		text, err := x.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("again", text)
		if err != nil {
			t.Fatal(string(text), err)
		}
		var value any = strings.Trim(v.value, `"`)
		switch v.value {
		case "true":
			value = true
		case "18", "65", "-1.5", "-1", "3":
			value = map[string]float64{"18": 18, "65": 65, "-1.5": -1.5, "-1": -1, "3": 3}[v.value]
		}
		for _, of := range []*Experiment{x, again} {
			if got := of.For(map[string]any{"k": value, "c": "NL"}); got != v.want {
				t.Errorf("%s of %s: %v", v.only, v.value, got)
			}
			if of.For(map[string]any{"k": value}) || of.For(map[string]any{"c": "NL"}) {
				t.Errorf("%s: a decision without a key is in", v.only)
			}
		}
	}
	for only, want := range map[string]string{
		"{}": "says nothing", "{semver: '>=2.x'}": `only.k.semver: has ">=2.x", must have comparisons such as >=2.1.0`,
		"{semver: 2.1.0}": `has "2.1.0"`, "{semver: '=>2'}": `has "=>2"`, "{semver: '>= 2'}": `has ">="`,
		"{from: 5, below: 5}": "only.k.below: is 5, must be above from, 5", "{since: 5}": "since", "{not: []}": "0 values",
		"{from: much}": "only.k.from",
	} {
		x, err := Parse("shop.yaml", []byte(liveShop+"only: {k: "+only+"}\n"))
		if err == nil {
			err = x.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", only, err, want)
		}
	}
}
