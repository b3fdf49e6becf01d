package decl

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/lease"
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
		"forget":            {"floor: 0.05", "forget: 90d\nend: 2026-05-01T00:00:00Z"},
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

// leasedSplit is an A/B test of three arms whose clients decide by plans.
const leasedSplit = `
name: shop
arms: [red, blue, green]
policy: split
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0, event: order}
window: 1m
leases: {for: 10m, delay: 1h}
`

// What is declared of an A/B test with leases is what plans play: whole buckets, which the verdict is of. An arm joins
// if the others' buckets can keep their proportions, so that each two keep the coin that they are compared by.
func TestLeasedShares(t *testing.T) {
	read := func(shares string) (*Experiment, error) {
		l, err := Parse("shop.yaml", []byte(leasedSplit+shares))
		if err == nil {
			err = l.Check()
		}
		return l, err
	}
	for _, c := range []struct {
		declared string
		want     []float64
		joins    float64 // 0 for none
	}{
		{"", []float64{.3334, .3333, .3333}, 0},
		{"shares: {red: 0.5, blue: 0.3, green: 0.2}", []float64{.5, .3, .2}, .001},
		{"shares: {red: 0.3334, blue: 0.3333, green: 0.3333}", []float64{.3334, .3333, .3333}, 0},
		{"shares: {red: 0.998, blue: 0.001, green: 0.001}", []float64{.998, .001, .001}, .1},
		{"shares: {red: 0.34, blue: 0.33, green: 0.33}", []float64{.34, .33, .33}, .25},
	} {
		l, err := read(c.declared)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Table().Joint.Shares; !slices.Equal(got, c.want) {
			t.Errorf("%s: the verdict is of %v, must be of %v", c.declared, got, c.want)
		}
		if got := l.SharesAfter(0); !slices.Equal(got, c.want) || !slices.Equal(l.inBuckets(got), got) {
			t.Errorf("%s: %v, must be %v", c.declared, got, c.want)
		}
		for n := range 9999 {
			q, fits := float64(n+1)/10000, true
			for _, share := range c.want {
				x := share * 10000 * (1 - q)
				fits = fits && math.Abs(x-math.Round(x)) < 1e-6
			}
			if err := l.joinsLeased(c.want, q); (err == nil) != fits {
				t.Fatalf("%s: an arm joins with %v: %v", c.declared, q, err)
			}
		}
		if err := l.NoArms(.12345); err == nil {
			t.Errorf("%s: an arm joins with a share that is no bucket's", c.declared)
		}
		if c.joins == 0 {
			if err := l.NoArms(.25); err == nil || !strings.Contains(err.Error(), "multiples of 0.01") {
				t.Errorf("%s: an arm joins: %v", c.declared, err)
			}
		}
	}
	for arms := 2; arms <= 100; arms++ { // and buckets are those of plans
		even := slices.Repeat([]float64{1 / float64(arms)}, arms)
		for a, n := range lease.Apportion(even) {
			if got := (&Experiment{Leases: Leases{For: 1}}).inBuckets(even)[a]; got != float64(n)/lease.Buckets {
				t.Errorf("arm %d of %d has %v, must have %d buckets", a, arms, got, n)
			}
		}
	}
	for n := range 9999 {
		all := []float64{float64(n+1) / inPlan, 1 - float64(n+1)/inPlan}
		if got := lease.Apportion(all); got[0] != n+1 {
			t.Errorf("%v have %v buckets", all, got)
		}
	}
	l, err := read("shares: {red: 0.5, blue: 0.3, green: 0.2}")
	if err := l.NoArms(.2345); err == nil || !strings.Contains(err.Error(), "must be a multiple of 0.001 with leases, such as 0.23") {
		t.Error(err)
	}
	if err := l.NoArms(.25); err != nil {
		t.Error(err)
	}
	if err != nil || l.IntervalCondition() != "Intervals hold only if whether a decision is exposed does not go by its arm or its reward." {
		t.Errorf("%q, %v", l.IntervalCondition(), err)
	}
	if says, err := l.Guarantee(); err != nil || !strings.Contains(says, "must not depend on its outcome, and for intervals not on its arm") {
		t.Errorf("%q, %v", says, err)
	}
	var of *Error
	if _, err := read("shares: {red: 0.50005, blue: 0.29995, green: 0.2}"); !errors.As(err, &of) || of.Field != "shares.blue" ||
		!strings.Contains(err.Error(), "must be a multiple of 0.0001 with leases, such as 0.3") {
		t.Error(err)
	}
}
