package decl

import (
	"fmt"
	"strings"
	"testing"
)

// What the terms of cohorts may be.
func TestCohortTerms(t *testing.T) {
	for terms, want := range map[string]string{
		"users: 20, corrupt: 0": "cohort.corrupt", "users: 20, corrupt: 1.5": "cohort.corrupt",
		"users: 20, vanish: .nan": "cohort.vanish", "users: 20, vanish: -1": "cohort.vanish",
		"users: 20, corrupt: 0.5, vanish: 0.5": "cohort: corrupt and vanish are 0.5 and 0.5, must be below 1",
		"users: 20, every: 1s":                 "cohort.every: is 1s, must be from 1m0s to 168h",
		"users: 20, every: 200h":               "cohort.every: is 200h0m0s",
		"users: 20, every: 1m, wait: 31s":      "cohort.wait: is 31s, must be from 1s to half of every, 30s",
		"users: 20, tries: 1001":               "cohort.tries: is 1001, must be from 1 to 1000",
		"users: 20, otherwise: wait":           "cohort.otherwise",
		"users: 20, server: malicious":         `unknown key "server"`,
		"users: 9000": "cohort.users: is 9000, which takes 11252 who " +
			"register: at most 10000 can",
	} {
		_, err := liveTrust(gatheredShop + "trust: secagg\ncohort: {" + terms + "}\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", terms, want, err)
		}
	}
	l, err := liveTrust(gatheredShop + "trust: secagg\ncohort: {users: 20, every: 10m, wait: 2m, " +
		"tries: 1, otherwise: stop}\n")
	if err != nil {
		t.Fatal(err)
	}
	of, err := l.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := of.Session([32]byte{1}, 1, 0, 40)
	if got := fmt.Sprint(s.NMin, s.Honest, s.Corrupt(), s.Gamma, s.Delta, s.Mode, err); got !=
		"24 20 4 0.1 0.1 semi-honest <nil>" {
		t.Errorf("the session is %s", got)
	}
}
