package decl

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/play"
)

// summed is liveShop where revenue adds up, with orders beside it and their ratio.
var summed = strings.NewReplacer("default: 5", "default: 0, aggregate: sum", ", assignments: 2", "").Replace(liveShop) + `metrics:
  - {name: orders, range: [0, 4], aggregate: count, budget: {epsilon: 0.5}}
  - {name: largest, range: [0, 10], aggregate: max, budget: {epsilon: 0.5}}
ratios: [{name: value, of: reward, per: orders}]
`

// Aggregates and ratios have a normal form, which is read again; what is declared without them is written as before.
// The guarantee says what is kept, and a ratio costs nothing.
func TestAggregates(t *testing.T) {
	l, err := Reader{}.Parse("shop.yaml", []byte(summed))
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.JSON()
	for _, want := range []string{`"default":0,"aggregate":"sum"}`, `"aggregate":"count"`, `"aggregate":"max"`,
		`"ratios":[{"name":"value","of":"reward","per":"orders"}]`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s, %v", want, text, err)
		}
	}
	again, err := Reader{}.Parse("shop.json", text)
	if err != nil || !reflect.DeepEqual(again.Ratios, l.Ratios) || again.Aggregate != "sum" || again.Metrics[1].Aggregate != "max" {
		t.Errorf("read again: %+v, %v", again, err)
	}
	if said, err := l.Guarantee(); err != nil || !strings.Contains(said, "the service keeps what its reports add up to") {
		t.Errorf("%s, %v", said, err)
	}
	lo, hi := l.RatioRange(l.Ratios[0])
	if !l.Aggregates() || !l.AddsUp() || !reflect.DeepEqual(l.PlayRatios(), []play.Ratio{{Of: 0, Per: 1}}) || lo != 0 || hi != 2.5 {
		t.Errorf("%v, from %v to %v", l.PlayRatios(), lo, hi)
	}
	if total := l.Total(); total.String() != "epsilon=2" {
		t.Errorf("it costs %v", total)
	}
	plain, err := Reader{}.Parse("shop.yaml", []byte(liveShop))
	if err != nil {
		t.Fatal(err)
	}
	said, err := plain.Guarantee()
	text, _ = plain.JSON()
	if plain.Aggregates() || err != nil || strings.Contains(said, "keeps") || strings.Contains(string(text), "aggregate") ||
		strings.Contains(string(text), "ratios") {
		t.Errorf("without: %s, %s, %v", said, text, err)
	}
	for _, c := range []struct{ text, old, new, want string }{
		{summed, "aggregate: sum", "aggregate: mean", `reward.aggregate: is "mean" (did you mean "max"?), must be sum, count, max`},
		{summed, "aggregate: max", "aggregate: last", `metrics[1].aggregate: is "last", must be`},
		{summed, "per: orders", "per: sales", `ratios[0].per: is "sales", must be the name of a metric, or reward`},
		{summed, "of: reward", "of: orders", "ratios[0].per: is orders, must be another one than of"},
		{summed, "name: value", "name: orders", `ratios[0].name: "orders" is the name of a metric`},
		{summed, "of: person", "of: person, assignments: 2", "reward.aggregate: is sum, and a person has up to 2 assignments"},
		{summed, "name: value", "name: reward", `ratios[0].name: is "reward", must be another one`},
		{summed, "name: value", "name: Value", `ratios[0].name: is "Value"`},
		{summed, "name: orders, range: [0, 4]", "name: orders, range: [-1, 4]", "ratios[0].per: is orders, whose range is from -1"},
		{summed, "default: 0,", "default: 5,", "ratios[0].of: is reward, whose default 5 is more than 2.5 for each one of " +
			"orders, must be at most 0"},
		{summed, "per: orders}", "per: orders}, {name: other, of: orders, per: largest}",
			"ratios[0].per: is orders, must be one that no ratio divides"},
		{summed, "{name: value, of: reward, per: orders}", "{name: value, of: reward}", `ratios[0].per: is "", must be`},
		{gatheredShop + "trust: local\n", "default: ", "aggregate: sum, default: ", "reward.aggregate: is sum, and is for trust central"},
		{twoServers, "default: ", "aggregate: sum, default: ", "reward.aggregate: is sum, and is for trust central"},
		{liveFront, "default: ", "aggregate: sum, default: ", "reward.aggregate: is sum, and is not for contextual"},
		{liveFront, "floor: 0.1", "ratios: [{name: a, of: reward, per: reward}]", "ratios: is not for contextual"},
	} {
		if !strings.Contains(c.text, c.old) {
			t.Fatalf("%q is not in %s", c.old, c.text)
		}
		l, err := Reader{}.Parse("shop.yaml", []byte(strings.Replace(c.text, c.old, c.new, 1)))
		if err == nil {
			err = l.Check()
		}
		if err == nil || !errors.Is(err, keyed.ErrSpec) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.new, c.want, err)
		}
	}
	if err := (&Experiment{Name: "shop", Arms: make([]Arm, 2), Policy: Policy{Policy: "dp-se"}, Unit: Unit{Of: "x"},
		Window: MinWindow, Aggregate: "mean"}).Check(); err == nil || !strings.Contains(err.Error(), "must be sum, count or max") {
		t.Errorf("of a program: %v", err)
	}
}
