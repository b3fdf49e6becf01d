package decl

import (
	"strings"
	"testing"
	"time"
)

const forgetting = `name: shop
arms: [a, b]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: person, assignments: 2}
window: 24h
forget: 90d
start: 2026-01-10T12:00:00Z
end: 2026-07-11T00:00:00Z
`

// An experiment forgets what it can account for: it ends before a unit could come back once more than is paid for.
func TestForget(t *testing.T) {
	read := func(text string) error {
		l, err := Parse("shop.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		return err
	}
	l, err := Parse("shop.yaml", []byte(forgetting))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	each, err := l.EachAssignment()
	if text, _ := l.JSON(); err != nil || each.String() != "epsilon=0.5" || !strings.Contains(string(text), `"forget":"90d"`) ||
		l.AtOnce() != 1 {
		t.Errorf("%v, %v, %s", each, err, text)
	}
	// assigned on the 10th of January, forgotten on the 11th of April, and once more on the 11th of July
	if last := l.LastEnd(l.Start); !last.Equal(time.Date(2026, 7, 11, 0, 0, 0, 0, time.UTC)) {
		t.Error(last)
	}
	if says, err := l.Guarantee(); err != nil || !strings.Contains(says, "a person is forgotten 90d after its decision and "+
		"counts as new when it comes back, which it can do 1 time at most until the end") {
		t.Error(says, err)
	}
	if err := read(strings.Replace(forgetting, "start: 2026-01-10T12:00:00Z\n", "", 1)); err != nil {
		t.Error(err) // it is held against the clock when it starts
	}
	for _, c := range []struct{ old, new, field, says string }{
		{"2026-07-11T00:00:00Z", "2026-07-11T00:00:01Z", "end", "must be at most 2026-07-11T00:00:00Z, or unit.assignments, which is 2, must be more"},
		{"assignments: 2", "assignments: 1", "end", "must be at most 2026-04-11T00:00:00Z"},
		{"end: 2026-07-11T00:00:00Z\n", "", "end", "is missing"},
		{"90d", "0d", "forget", "must be whole days, from 1d to 3660d"}, {"90d", "2160h", "forget", "whole days"},
		{"90d", "3661d", "forget", "3660d"}, {"90d", "-1d", "forget", "whole days"}, {"90d", "1.5d", "forget", "whole days"},
		{"window: 24h", "window: 2161h", "forget", "must be at least the window"},
		{"forget", "sticky: false\nforget", "forget", "nothing is kept of a unit"},
		{"assignments: 2", "assignments: 2, per_person: 3", "forget", "unit.per_person"},
		{"{epsilon: 1}", "{rho: 1, delta: 0.1}", "budget", ""},
	} {
		text := strings.Replace(forgetting, c.old, c.new, 1)
		if err := read(text); err == nil || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
	l.Unit.Assignments = 1 << 30
	if last := l.LastEnd(l.Start); last.Before(l.Start.Add(99 * 365 * Day)) {
		t.Errorf("it overflows: %v", last)
	}
}
