package decl

import (
	"errors"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/play"
)

const celledShop = `
name: shop
arms: [classic, onepage]
policy: {policy: split}
effect: 0.1
budget: {epsilon: 0.5}
unit: {of: visit}
window: 1h
by: {device: [phone, 3, true]}
`

func TestCells(t *testing.T) {
	x, err := Parse("shop.yaml", []byte(celledShop))
	if err == nil {
		err = x.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, device := range []any{"phone", 3.0, true, "tablet", nil, []any{"phone"}} {
		if got := x.Cell(map[string]any{"device": device}); got != min(i, 3) {
			t.Errorf("%v is in cell %d", device, got)
		}
	}
	if got := x.Cell(nil); got != 3 {
		t.Errorf("no context is in cell %d", got)
	}
	// 8b of each of two arms
	if got, err := x.PlayCells(); err != nil || got != (play.Cells{Count: 4, Least: 32}) {
		t.Errorf("%+v, %v", got, err)
	}
	text, err := x.JSON()
	if err != nil || !strings.Contains(string(text), `"by":{"device":["phone","3","true"]}`) {
		t.Fatalf("%s, %v", text, err)
	}
	again, err := Parse("again", text)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := again.JSON(); err != nil || string(same) != string(text) {
		t.Errorf("%s, %v", same, err)
	}
	if says, err := x.Guarantee(); err != nil || !strings.Contains(says, "how many decisions had which device, and when, is public") {
		t.Errorf("%q, %v", says, err)
	}
	// a joint batch is √4 times as long
	plain := *x
	plain.By = By{}
	p, err := x.NewPolicy(ZeroCoins{})
	q, err2 := plain.NewPolicy(ZeroCoins{})
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if a, b := p.(play.Joint).JointEnd(0), q.(play.Joint).JointEnd(0); a != 2*b {
		t.Errorf("a batch has %d decisions, and without cells %d", a, b)
	}
}

func TestCellErrors(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{"by: {device: [phone, 3, true]}", "by: device", "by: is the text \"device\" without values, must name them"},
		{"by: {device: [phone, 3, true]}", "by: {device: []}", "by.device: has 0 values, must be from 1 to 49"},
		{"by: {device: [phone, 3, true]}", "by: {a: [b], c: [d]}", "by: has 2 keys, must have one"},
		{"phone, 3", "phone, phone", `by.device[1]: is "phone", which is there before`},
		{"phone, 3", "phone, other", `by.device[1]: is "other", which is the cell`},
		{"phone, 3", "phone, [3]", "by.device[1]: is no string, number or boolean"},
		{"by: {device: [phone, 3, true]}", "cell_minimum: 3", "cell_minimum: is given, and there are no cells"},
		{"window: 1h", "window: 1h\ncell_minimum: 2000000000", "cell_minimum: is 2000000000, must be from 1 to"},
		{"window: 1h", "window: 1h\nmissing: drop\nreports: every", "by: is given, and missing is drop"},
		{"window: 1h", "window: 1h\nexposure: activate", "by: is given, and exposure is activate"},
		{"window: 1h", "window: 1h\ntrust: local", "by: is given under trust local, must be for trust central"},
		{"policy: {policy: split}\neffect: 0.1", "policy: {policy: dp-klucb}", "policy: cannot do with by"},
		// 3 · 30 decisions, of 32 a cell
		{"window: 1h", "window: 1h\ntraffic: 3", "by: has 4 cells with other, must have at most 2: 3 decisions a day"},
		{"window: 1h", "window: 1h\ntraffic: 2", "declare a cell_minimum of at most 15, or leave by out"},
		{"window: 1h", "window: 1h\ntraffic: 5\nstart: 2026-01-01T00:00:00Z\nend: 2026-01-21T00:00:00Z",
			"must have at most 3"},
	} {
		x, err := Parse("shop.yaml", []byte(strings.Replace(celledShop, c.was, c.is, 1)))
		if err == nil {
			err = x.Check()
		}
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.is, err)
		}
	}
	x, err := Parse("shop.yaml", []byte(strings.Replace(celledShop, "window: 1h", "window: 1h\ntraffic: 2\ncell_minimum: 15", 1)))
	if err == nil {
		err = x.Check()
	}
	if err != nil {
		t.Errorf("with the minimum that is told: %v", err)
	}
}
