package decl

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// leasedShop is liveShop whose clients decide by a plan.
var leasedShop = strings.NewReplacer("default: 5", "default: 5, event: order", ", assignments: 2", "").Replace(liveShop) +
	"leases: {for: 10m, delay: 1h}\n"

// Leases have a normal form, which is read again, and the guarantee says their premise; what is declared without
// them is written as before.
func TestLeases(t *testing.T) {
	for text, want := range map[string]Leases{
		leasedShop: {For: 10 * time.Minute, Delay: time.Hour},
		strings.Replace(leasedShop, "1h}", "1h, exposures: strict}", 1): {10 * time.Minute, time.Hour, ExposuresStrict},
	} {
		l, err := Parse("shop.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		normal, err := l.JSON()
		if err != nil || !strings.Contains(string(normal), `"leases":{"for":"10m0s","delay":"1h0m0s"`) {
			t.Errorf("%s, %v", normal, err)
		}
		again, err := Parse("shop.json", normal)
		if err != nil || again.Leases != want {
			t.Errorf("read again: %+v, %v", again.Leases, err)
		}
		said, err := l.Guarantee()
		if err != nil || !strings.Contains(said, "whether and when an exposure comes must not depend on its outcome") {
			t.Errorf("%s, %v", said, err)
		}
	}
	plain, err := Parse("shop.yaml", []byte(liveShop))
	if err != nil {
		t.Fatal(err)
	}
	normal, _ := plain.JSON()
	if said, err := plain.Guarantee(); err != nil || plain.Leases.On() || strings.Contains(string(normal), "leases") ||
		strings.Contains(said, "exposure") {
		t.Errorf("without: %s, %s, %v", said, normal, err)
	}
}

// What cannot be decided by a public plan is refused by its name.
func TestLeasesRefuse(t *testing.T) {
	for want, change := range map[string][2]string{
		"leases.for":        {"10m", "100ms"},
		"leases.delay":      {"1h", "17h"},
		"leases.exposures":  {"1h}", "1h, exposures: loose}"},
		"trust":             {"window: 24h", "window: 24h\ntrust: local\npolicy: {policy: dp-klucb}"},
		"unit.assignments":  {"of: person", "of: person, assignments: 2"},
		"unit.per_person":   {"of: person", "of: person, per_person: 2"},
		"sticky":            {"floor: 0.05", "sticky: false"},
		"exposure":          {"floor: 0.05", "exposure: activate"},
		"missing":           {"floor: 0.05", "missing: drop\nreports: every"},
		"share":             {"floor: 0.05", "share: 0.5"},
		"ramp":              {"floor: 0.05", "ramp: [{share: 0.1, for: 24h}, {share: 1}]"},
		"only":              {"floor: 0.05", "only: {country: [de]}"},
		"by":                {"floor: 0.05", "by: {device: [phone, desktop]}"},
		"layer":             {"floor: 0.05", "layer: {name: home, from: 0, to: 0.5}"},
		"reward.event":      {", event: order", ""},
		"metrics[0].event":  {"floor: 0.05", "metrics: [{name: n, budget: {epsilon: 1}}]"},
		"leases.delay ":     {", delay: 1h", ""},
		"leases.for is bad": {"for: 10m", "for: soon"},
	} {
		text := strings.Replace(leasedShop, change[0], change[1], 1)
		if want == "trust" {
			text = strings.NewReplacer("window: 24h", "window: 24h\ntrust: local", ", event: order", "").Replace(leasedShop)
		}
		l, err := Parse("shop.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		field, _, _ := strings.Cut(want, " ")
		var of *Error
		if !errors.As(err, &of) || of.Field != field && !(want == "missing" && of.Field == "reward.event") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
