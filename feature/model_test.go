package feature

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func small(t *testing.T) *Model {
	t.Helper()
	m, err := NewModel(Model{Experiment: "small", Release: 2, Decisions: 30, Range: [2]float64{0, 1},
		Map: Map{Action: []Feature{{Name: "topic", Values: []string{"war", "sport"}}},
			Context: []Feature{{Name: "z", Hi: 1}, {Name: "a", Hi: 2}}, Actions: 4},
		Theta: []float64{0, 5, 5, -1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A model is written with its features in the order of their blocks, and read to the same.
func TestModel(t *testing.T) {
	m := small(t)
	text, err := json.Marshal(m)
	if err != nil || !strings.HasPrefix(string(text), `{"format":"sotto-model/1","experiment":"small"`) ||
		!strings.Contains(string(text), `"context":[{"name":"a","hi":2},{"name":"z","hi":1}]`) ||
		!strings.Contains(string(text), `"unit":524288,"components":["intercept","a","z","topic=war","topic=sport"]`) {
		t.Fatalf("%s, %v", text, err)
	}
	read, err := ReadModel(text)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(read); err != nil || string(again) != string(text) {
		t.Errorf("%s, %v", again, err)
	}
	actions := []Action{{ID: "x", Features: map[string]any{"topic": "war"}}, {ID: "y", Features: map[string]any{"topic": "sport"}},
		{ID: "z", Features: map[string]any{"topic": "sport"}}, {ID: "w"}}
	for _, c := range []struct {
		excluded []string
		best     int
	}{{nil, 1}, {[]string{"y"}, 2}, {[]string{"y", "z"}, 3}, {[]string{"none", "w", "y", "z"}, 0}} {
		if best, err := read.Best(map[string]any{"a": 1.0}, actions, c.excluded...); best != c.best || err != nil {
			t.Errorf("without %v it is %d, %v, must be %d", c.excluded, best, err, c.best)
		}
	}
	var wrong *Error
	if _, err := read.Best(nil, actions, "x", "y", "z", "w"); !errors.As(err, &wrong) || wrong.Field != "excluded" || !errors.Is(err, ErrFeatures) {
		t.Error(err)
	}
	if _, err := read.Best(map[string]any{"b": 1}, actions); !errors.As(err, &wrong) || wrong.Field != "context.b" {
		t.Error(err)
	}
	if Best(nil, nil) != 0 || Best([]float64{1}, []float64{-3, -2, -2}) != 1 {
		t.Error("the best of none, or of negative ones")
	}
}

// What is no model is one error that names the field.
func TestModelErrors(t *testing.T) {
	text, err := json.Marshal(small(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, says string }{
		{string(text), "", "unexpected end"},
		{string(text), "null", `format is "", must be "sotto-model/1"`},
		{"sotto-model/1", "sotto-model/2", `format is "sotto-model/2", must be`},
		{`"unit":524288`, `"unit":524287`, "unit is 524287, must be 524288"},
		{"[0,5,5,-1,1]", "[0,5,5,-1]", "theta has 4 numbers, must have 5"},
		{"[0,5,5,-1,1]", `"x"`, "theta"},
		{`"name":"z","hi":1`, `"name":"z"`, "map.context.z: has no values"},
	} {
		if _, err := ReadModel([]byte(strings.Replace(string(text), c.old, c.new, 1))); !errors.Is(err, ErrModel) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, must say %s", err, c.says)
		}
	}
	m := *small(t)
	m.Theta = []float64{0, 0, math.NaN(), 0, 0}
	if _, err := NewModel(m); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "theta[2] is NaN, must be") {
		t.Error(err)
	}
}
