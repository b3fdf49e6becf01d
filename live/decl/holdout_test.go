package decl

import (
	"errors"
	"strings"
	"testing"
)

// heldTest is liveTest that is a holdout, and heldShop an experiment that has one.
var (
	heldTest = strings.Replace(liveTest, "window:", "holds: onepage\nwindow:", 1)
	heldShop = strings.Replace(liveShop, "floor: 0.05", "floor: 0.05\nholdout: quarter", 1)
)

// A holdout has a normal form, which is read again, and the guarantee says who is held; what is declared without one is
// written as before.
func TestHoldout(t *testing.T) {
	for text, want := range map[string][2]string{
		heldTest: {`"holds":"onepage"`, `who is given "onepage" follows from a keyed hash of a person's name`},
		heldShop: {`"holdout":"quarter"`, `whom experiment "quarter" holds out follows from a keyed hash`},
	} {
		l, err := Parse("shop.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		normal, err := l.JSON()
		if err != nil || !strings.Contains(string(normal), want[0]) {
			t.Errorf("%s, %v", normal, err)
		}
		again, err := Parse("shop.json", normal)
		if err != nil || again.Holds != l.Holds || again.Holdout != l.Holdout {
			t.Errorf("read again: %+v, %v", again, err)
		}
		if said, err := l.Guarantee(); err != nil || !strings.Contains(said, want[1]) {
			t.Errorf("%s, %v", said, err)
		}
		if l.Holds != "" && l.NoArm() == nil {
			t.Error("an arm can join, and with it units leave the held arm")
		}
	}
	for _, text := range []string{liveTest, liveShop} {
		plain, err := Parse("shop.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		normal, _ := plain.JSON()
		if said, err := plain.Guarantee(); err != nil || strings.Contains(string(normal), `"hold`) ||
			strings.Contains(said, "keyed hash") {
			t.Errorf("without: %s, %s, %v", said, normal, err)
		}
	}
}

// What cannot be held, or hold, is refused by its name.
func TestHoldoutRefuses(t *testing.T) {
	const at = "holds: onepage"
	for want, text := range map[string]string{
		"holds":            strings.Replace(heldTest, at, "holds: green", 1),
		"holds, no test":   strings.Replace(heldShop, "holdout: quarter", "holds: red", 1),
		"holdout":          strings.Replace(heldTest, at, at+"\nholdout: quarter", 1),
		"sticky":           strings.Replace(heldTest, at, at+"\nsticky: false", 1),
		"unit.assignments": strings.Replace(heldTest, "of: person", "of: person, assignments: 2", 1),
		"unit.per_person":  strings.Replace(heldTest, "of: person", "of: person, per_person: 2", 1),
		"share":            strings.Replace(heldTest, at, at+"\nshare: 0.5", 1),
		"ramp":             strings.Replace(heldTest, at, at+"\nramp: [{share: 0.1, for: 24h}, {share: 1}]", 1),
		"only":             strings.Replace(heldTest, at, at+"\nonly: {country: [de]}", 1),
		"layer":            strings.Replace(heldTest, at, at+"\nlayer: {name: home, from: 0, to: 0.5}", 1),
		"leases": strings.NewReplacer(at, at+"\nleases: {for: 10m, delay: 1h}", "default: 0", "default: 0, event: e").
			Replace(heldTest),
		"holdout, no name":    strings.Replace(heldShop, "quarter", "a b", 1),
		"holdout, itself":     strings.Replace(heldShop, "quarter", "shop", 1),
		"holdout, no units":   strings.Replace(heldShop, "floor: 0.05", "sticky: false", 1),
		"holdout, with plans": strings.Replace(leasedShop, "floor: 0.05", "holdout: quarter", 1),
	} {
		l, err := Parse("shop.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		field, _, _ := strings.Cut(want, ",")
		var of *Error
		if !errors.As(err, &of) || of.Field != field {
			t.Errorf("%s: %v", want, err)
		}
	}
}
