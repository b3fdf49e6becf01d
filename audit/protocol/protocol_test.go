package protocol

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
)

// Those that take no time: each protocol, each kind of fault. The probability that any claim is
// refuted is below 1e-6; a twin is missed with about that, too: the bounds are far from the claims.
func TestAudits(t *testing.T) {
	picked := []string{"two-server laplace", "two-server laplace, the honest server adds nothing",
		"two-server laplace by prio3, the honest server adds nothing", "secagg, a lying server",
		"secagg, a lying server, announced threshold",
		"bell2020 of one user", "bell2020 of two users", "bell2020 of two users, half a noise each",
		"prio3 of one user", "prio3 of one user, handed the reward",
		"aggregate, retries and restarts", "aggregate, retries and restarts, remembered by session",
		"split-mix", "split-mix, not mixed", "split-mix, cut off at 0 instead of reduced"}
	if testkit.Race { // all are done by the same goroutines, and found without it
		picked = picked[10:12]
	}
	all, err := Audits()
	if err != nil {
		t.Fatal(err)
	}
	results, err := audit.SelfAudit{Quick: true, Games: 12000, Seed: 1, Gamma: 1e-6, More: all,
		Only: func(n string) bool { return slices.Contains(picked, n) }}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !r.Good {
			t.Errorf("%v", r)
		}
	}
	if len(results) != len(picked) {
		t.Errorf("%d of %d names are an audit's", len(results), len(picked))
	}
}

func TestEveryAuditHasATwin(t *testing.T) {
	all, err := Audits()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range all {
		if seen[o.Name] {
			t.Errorf("two audits have the name %q", o.Name)
		}
		if seen[o.Name] = true; !o.Twin && !slices.ContainsFunc(all, func(p audit.Outside) bool {
			return p.Twin && strings.HasPrefix(p.Name, strings.TrimSuffix(o.Name, " of two users"))
		}) {
			t.Errorf("%s has no broken twin", o.Name)
		}
	}
	if len(all) != 27 {
		t.Errorf("there are %d audits", len(all))
	}
}
