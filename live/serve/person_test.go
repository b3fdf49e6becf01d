package serve

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// No more decisions of a person count than were declared, whatever units they are of, and also after a
// restart, a crash, or the erasure of units or of the person.
func TestPerPerson(t *testing.T) {
	for kind, lines := range map[string][]string{
		"units":       {"unit: {of: device, per_person: 3}"},
		"not sticky":  {"unit: {of: visit, per_person: 3}", "sticky: false"},
		"activated":   {"unit: {of: visit, per_person: 3}", "sticky: false", "exposure: activate"},
		"assignments": {"unit: {of: device, assignments: 2, per_person: 3}"},
	} {
		t.Run(kind, func(t *testing.T) {
			c, mem := newClock(), store.NewMemory()
			cfg := Config{Store: mem.Open, Clock: c.Now}
			e := open(t, cfg)
			begin(t, e, named("shop", lines...))
			counts := func(unit, person string) bool {
				t.Helper()
				d, err := e.DecideFor(t.Context(), "shop", Ask{Unit: unit, Person: person})
				if err != nil || d.Token == "" && d.Reason != Limit && d.Reason != Default || d.Token != "" && d.Reason != Split {
					t.Fatalf("%s of %s: %+v, %v", unit, person, d, err)
				}
				return d.Token != ""
			}
			for _, ask := range []Ask{{Unit: "device"}, {Unit: "device", Person: strings.Repeat("x", maxUnit+1)}} {
				if _, err := e.DecideFor(t.Context(), "shop", ask); !errors.Is(err, ErrPerson) || strings.Contains(err.Error(), "xxx") {
					t.Errorf("a decision for nobody: %v", err)
				}
			}
			for i := range 2 {
				if !counts(fmt.Sprint("ann's ", i), "ann") || !counts(fmt.Sprint("bob's ", i), "bob") {
					t.Error("one of three does not count")
				}
			}
			if err := e.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg) // the other is killed
			if err := e.Erase(t.Context(), "shop", "ann's 0"); err != nil {
				t.Fatal(err)
			}
			if !counts("ann's 2", "ann") || counts("ann's 3", "ann") || counts("ann's 4", "ann") {
				t.Error("not three of ann's devices count")
			}
			if err := e.Erase(t.Context(), "shop", "bob"); err != nil {
				t.Fatal(err)
			}
			if counts("bob's 2", "bob") {
				t.Error("who was erased counts again")
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if e = open(t, cfg); counts("ann's 5", "ann") || counts("bob's 3", "bob") || !counts("carl's", "carl") {
				t.Error("counts were lost at a restart")
			}
			settle(t, e, c, time.Second, 2)
		})
	}
}

// A rank's person is counted as a decision's.
func TestPerPersonOfEvents(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now, PersonCap: capped(t, "unit=person,rho=100/365d")}
	e := open(t, cfg)
	text := strings.Replace(news, "unit: {of: visit}", "unit: {of: visit, per_person: 3}", 1)
	begin(t, e, text)
	if got, err := e.Account(t.Context()); err != nil || got.Most != 9*10.2 {
		t.Errorf("three events at ρ = 10.2 cost %v, must be 91.8: %v", got.Most, err)
	}
	ask := func(i int, person string) (Ranking, error) {
		a := newsAsk(i)
		a.Person = person
		return e.Rank(t.Context(), "news", a)
	}
	if _, err := ask(9, ""); !errors.Is(err, ErrPerson) {
		t.Errorf("an event of nobody: %v", err)
	}
	for i := range 5 {
		if i == 2 {
			e = open(t, cfg)
		}
		got, err := ask(i, "ann")
		if err != nil || (got.Reason == Split) != (i < 3) || i >= 3 && (got.Reason != Limit || !got.Expires.IsZero()) {
			t.Errorf("event %d: %+v, %v", i, got, err)
		}
		again, err := ask(i, "ann")
		if err != nil || again.Action != got.Action || again.Reason != got.Reason {
			t.Errorf("event %d again: %+v, was %+v, %v", i, again, got, err)
		}
	}
}

// What joint privacy keeps from release to release has no price under a cap.
func TestJointHasNoPrice(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now, PersonCap: capped(t, "unit=person,rho=1e9/365d")})
	x := parse(t, strings.Replace(clinic, "unit: {of: visit}", "unit: {of: visit, per_person: 3}", 1))
	if err := e.Create(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	var of *decl.Error
	if err := e.Start(t.Context(), x.Name); !errors.Is(err, ErrPersonCap) || !errors.As(err, &of) || of.Field != "contextual.protect" {
		t.Errorf("joint privacy under a cap: %v", err)
	}
}
