package audit

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/base/testneeds"
)

// The audits that take no time: each fault, each kind of subject. The probability that any claim is
// refuted is below 1e-6; a twin is missed with about that, too: the bounds are far from the claims.
func TestSelfAudit(t *testing.T) {
	picked := []string{
		"laplace", "laplace, half the scale", "laplace, noise shared across arms",
		"laplace, rewards counted in two releases", "laplace, no clipping",
		"gaussian, half the scale", "sqrt, half the scale",
		"aggregated secagg polya", "aggregated secagg polya, half the scale",
		"aggregated secagg polya, published scale", "clones, not shuffled",
		"shuffled-count", "shuffled-count, without cover", "two-server laplace",
		"two-server laplace, the honest server adds nothing",
		"two-server laplace by prio3, the honest server adds nothing", "secagg, a lying server",
		"secagg, a lying server, announced threshold",
		"bell2020 of one user", "bell2020 of two users", "bell2020 of two users, half a noise each",
		"prio3 of one user", "prio3 of one user, handed the reward",
		"aggregate, retries and restarts", "aggregate, retries and restarts, remembered by session",
		"split-mix", "split-mix, not mixed", "split-mix, cut off at 0 instead of reduced",
		"adap-klucb, shuffle count, half the scale",
		"ledger, restarted, the journal's cap is dropped",
		"ledger, replayed, the release is made again",
		"ledger, a lie about N, every sum is sealed",
		"randomizer, shared by goroutines", "randomizer, shared by goroutines, noise repeated",
		"adap-klucb", "adap-klucb, plays only", "adap-klucb, noise shared across arms",
		"adap-klucb, rewards counted in two releases",
		"adac-ucb, no clipping, plays only", "identify adap-tt-star, half the scale", "adac-gope",
		"adac-oful, half the scale",
	}
	if testneeds.Race { // all are done by the same goroutines, and found without it
		picked = []string{"laplace, half the scale", "clones, not shuffled", "shuffled-count",
			"aggregate, retries and restarts", "aggregate, retries and restarts, remembered by session",
			"ledger, replayed, the release is made again", "ledger, a lie about N, every sum is sealed",
			"randomizer, shared by goroutines", "randomizer, shared by goroutines, noise repeated",
			"adap-klucb, plays only", "adac-oful, half the scale"}
	}
	if testneeds.Full() { // what is claimed of ledgers takes the longest; their twins are found always
		picked = append(picked, "ledger, restarted", "ledger, replayed", "ledger, a lie about N")
	}
	left := map[string]bool{}
	for _, n := range picked {
		left[n] = true
	}
	s := SelfAudit{Quick: true, Games: 12000, Seed: 1, Gamma: 1e-6, Only: func(n string) bool {
		return left[n]
	}}
	results, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		delete(left, r.Name)
		if !r.Good {
			t.Errorf("%v", r)
		}
	}
	for n := range left {
		t.Errorf("there is no audit of the name %q", n)
	}
}

// All of it, when asked for: SOTTO_AUDIT_SELF=quick or =full, or part of a name.
func TestSelfAuditInFull(t *testing.T) {
	what := os.Getenv("SOTTO_AUDIT_SELF")
	if what == "" {
		t.Skip("SOTTO_AUDIT_SELF is not set")
	}
	s := SelfAudit{Quick: what != "full", Seed: 1, Report: func(done, all int, r SelfResult) {
		t.Logf("%d/%d %v", done, all, r)
		if !r.Good {
			t.Errorf("WRONG: %s", r.Name)
		}
	}}
	if what != "full" && what != "quick" {
		s.Only = func(n string) bool { return strings.Contains(n, what) }
	}
	if _, err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestSelfAuditHasEveryPrivatePolicyAndItsTwin(t *testing.T) {
	items, err := selfItems(catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	seen, own, twins := map[string]bool{}, 0, 0
	for _, i := range items {
		if seen[i.name] {
			t.Errorf("two audits have the name %q", i.name)
		}
		seen[i.name] = true
		if i.twin {
			twins++
			continue
		}
		own++
		found := false
		base := strings.TrimSuffix(strings.TrimSuffix(i.name, ", plays only"), ", real")
		for _, j := range items {
			found = found || j.twin && strings.HasPrefix(j.name, base+", ")
		}
		if !found {
			t.Errorf("%s has no broken twin", i.name)
		}
	}
	if own < 60 || twins < 50 {
		t.Errorf("%d audits of what is claimed and %d of twins", own, twins)
	}
}
