package decl

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/keyed"
)

// eventful is liveShop where a reward and a metric are of events.
var eventful = strings.NewReplacer("default: 5", "default: 5, event: Order Completed, field: total", ", assignments: 2",
	"").Replace(liveShop) + `metrics:
  - {name: signups, range: [0, 1], event: signup, budget: {epsilon: 0.5}}
  - {name: items, range: [0, 9], aggregate: sum, event: Order Completed, field: items, budget: {epsilon: 0.5}}
`

// Events have a normal form, which is read again; what is declared without them is written as before. An event says
// what is declared of it: a field, or its default; a value, or 1; and of other events nothing.
func TestEvents(t *testing.T) {
	l, err := Reader{}.Parse("shop.yaml", []byte(eventful))
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.JSON()
	for _, want := range []string{`"default":5,"event":"Order Completed","field":"total"}`, `"default":0,"event":"signup","budget"`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s, %v", want, text, err)
		}
	}
	again, err := Reader{}.Parse("shop.json", text)
	if err != nil || again.Source != l.Source || again.Metrics[1].Source != l.Metrics[1].Source {
		t.Errorf("read again: %+v, %v", again, err)
	}
	if !l.Apart() || !l.Aggregates() || !reflect.DeepEqual(l.Events(), []string{"Order Completed", "signup"}) {
		t.Errorf("%v %v", l.Apart(), l.Events())
	}
	if said, err := l.Guarantee(); err != nil || !strings.Contains(said, "counts in every experiment that declares it") ||
		!strings.Contains(said, "the service keeps what its reports add up to") {
		t.Errorf("%s, %v", said, err)
	}
	plain, err := Reader{}.Parse("shop.yaml", []byte(liveShop))
	if err != nil {
		t.Fatal(err)
	}
	text, _ = plain.JSON()
	if said, err := plain.Guarantee(); err != nil || strings.Contains(said, "event") || strings.Contains(string(text), "event") ||
		plain.Apart() || plain.Events() != nil {
		t.Errorf("without: %s, %s, %v", said, text, err)
	}
	none := math.NaN()
	for _, c := range []struct {
		event  string
		fields map[string]float64
		want   []float64
	}{
		{"Order Completed", map[string]float64{"total": 7, "items": 2, "value": 3}, []float64{7, none, 2}},
		{"Order Completed", map[string]float64{"value": 3}, []float64{5, none, none}},
		{"signup", map[string]float64{"total": 7}, []float64{none, 1, none}},
		{"signup", map[string]float64{"value": 0.5}, []float64{none, 0.5, none}},
		{"order completed", map[string]float64{"total": 7}, []float64{none, none, none}},
	} {
		reward, metrics := l.Told(c.event, c.fields)
		for i, got := range append([]float64{reward}, metrics...) {
			if got != c.want[i] && !(math.IsNaN(got) && math.IsNaN(c.want[i])) {
				t.Errorf("%s %v: %v %v, must be %v", c.event, c.fields, reward, metrics, c.want)
			}
		}
	}
	one := strings.NewReplacer("default: 5", "default: 5, event: checkout").Replace(liveShop)
	for _, c := range []struct{ text, old, new, want string }{
		{liveShop, "default: 5", "default: 5, field: total", `reward.field: is "total", and no event is declared`},
		{eventful, "event: signup", "event: \"\"", "metrics[0].event: is empty"},
		{eventful, "event: signup", "event: \" signup\"", "metrics[0].event: is \" signup\", must have no spaces"},
		{eventful, "field: items", "field: \"a\\tb\"", "metrics[1].field: is \"a\\tb\", must be one line"},
		{strings.Replace(eventful, "aggregate: sum, ", "", 1), "of: person", "of: person, assignments: 2", "is 2, and the numbers are of several events, must be 1"},
		{one, "floor: 0.05", "exposure: activate", `reward.event: is "checkout", and a person has up to 2 assignments with exposure: activate`},
		{one, "floor: 0.05", "missing: drop\nreports: every", `reward.event: is "checkout" with missing: drop`},
		{gatheredShop + "trust: local\n", "default: ", "event: checkout, default: ", `reward.event: is "checkout", and is for trust central`},
		{liveFront, "default: ", "event: checkout, default: ", `reward.event: is "checkout", and is not for contextual`},
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
}
