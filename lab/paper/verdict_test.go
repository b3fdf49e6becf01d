package paper

import (
	"errors"
	"strings"
	"testing"
)

func answers(a Answer) Check { return func(*Evidence) Finding { return Finding{Answer: a} } }

func TestVerdictOfAnAnswer(t *testing.T) {
	failing := func(err error) Check {
		return func(*Evidence) Finding { return need(Finding{}, err) }
	}
	for _, c := range []struct {
		name  string
		claim Claim
		want  Verdict
	}{
		{"holds", Claim{Decide: answers(Holds)}, Reproduces},
		{"a bound holds", Claim{Decide: answers(Holds), IfHolds: NotContradicted}, NotContradicted},
		{"fails", Claim{Decide: answers(Fails)}, NotReproduced},
		{"fails, with a proof", Claim{Decide: answers(Fails), IfFails: Refuted, Proof: "Take x = 1."}, Refuted},
		{"holds, although there is a proof", Claim{Decide: answers(Holds), IfFails: Refuted,
			Proof: "Take x = 1."}, Reproduces},
		{"fails, and the direction holds", Claim{Decide: answers(Fails), Weaker: answers(Holds)}, Overstated},
		{"fails, and more holds", Claim{Decide: answers(Fails), Stronger: answers(Holds)}, Understated},
		{"fails, and more does not hold", Claim{Decide: answers(Fails), Stronger: answers(Fails)},
			NotReproduced},
		{"fails, and so does the direction", Claim{Decide: answers(Fails), Weaker: answers(Fails)},
			NotReproduced},
		{"fails, and the direction is open", Claim{Decide: answers(Fails),
			Weaker: answers(Undecided)}, NotReproduced},
		{"fails, and the direction is not played",
			Claim{Decide: answers(Fails), Weaker: failing(&NotPlayedError{})}, NotReproduced},
		{"fails, and the direction breaks", Claim{Decide: answers(Fails),
			Weaker: failing(errors.New("no"))}, Errored},
		{"holds, whatever the direction", Claim{Decide: answers(Holds), Weaker: answers(Fails)}, Reproduces},
		{"undecided", Claim{Decide: answers(Undecided), IfFails: Refuted, Proof: "Take x = 1."}, NotTested},
		{"not played", Claim{Decide: failing(&NotPlayedError{})}, NotTested},
		{"ours fails", Claim{Decide: answers(Fails), Own: true}, OurFinding},
		{"ours breaks", Claim{Decide: failing(errors.New("no")), Own: true}, Errored},
		{"answers nonsense", Claim{Decide: answers("perhaps")}, Errored},
		{"has no check", Claim{}, Errored},
	} {
		if _, got := decide(&c.claim, &Evidence{}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Runs alone refute nothing, and no answer means what it cannot.
func TestMeaningsThatAreRefused(t *testing.T) {
	for want, claim := range map[string]Claim{
		"needs a proof":               {IfFails: Refuted},
		"needs a proof or":            {IfFails: Refuted, Proof: " "},
		"cannot be refuted":           {Proof: "Take x = 1."},
		`holds cannot mean that`:      {IfHolds: Refuted, Proof: "Take x = 1."},
		`claim is "reproduces"`:       {IfFails: Reproduces},
		`claim is "not contradicted"`: {IfFails: NotContradicted},
		`claim is "our finding"`:      {IfFails: OurFinding},
		`claim is "not reproduced"`:   {IfHolds: NotReproduced},
		"finding of our own":          {Own: true, IfFails: Overstated},
		"has no verdict":              {Own: true, Stronger: answers(Holds)},
	} {
		claim.ID, claim.Decide = "c", answers(Fails)
		f := Figure{ID: "a-1", Source: "000", Claims: []Claim{claim}}
		if err := check([]Figure{f}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestVerdictsAreExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Verdicts() {
		means := v.Means()
		if means == "" || strings.Contains(means, "\n") || seen[means] || seen[v.class()] ||
			strings.Contains(v.class(), " ") {
			t.Errorf("%s: %q, class %s", v, means, v.class())
		}
		seen[means], seen[v.class()] = true, true
		for _, part := range []string{"." + v.class() + " ", "." + v.class() + ","} {
			if strings.Contains(siteSource, part) {
				seen["style of "+v.class()] = true
			}
		}
		if !seen["style of "+v.class()] {
			t.Errorf("%s has no style of its own", v)
		}
	}
	if !Refuted.Grave() || Reproduces.Grave() || NotTested.Grave() || OurFinding.Grave() {
		t.Error("which verdicts are grave")
	}
}

// Who says that a source is wrong says why, and what its reader should do.
func TestGraveVerdictsHelpAReader(t *testing.T) {
	for _, f := range All() {
		for _, c := range f.Claims {
			declared := c.Weaker != nil || c.Stronger != nil || c.IfFails.Grave() || c.IfHolds.Grave()
			if declared && (strings.TrimSpace(c.Why) == "" || strings.TrimSpace(c.Reader) == "") {
				t.Errorf("%s/%s says not why, or not what a reader should do", f.ID, c.ID)
			}
		}
	}
}

// A claim says where it stands: in the theses, on which page.
func TestClaimsCitePassages(t *testing.T) {
	for _, f := range All() {
		for _, c := range f.Claims {
			where := c.Where
			if where == "" {
				where = f.Where
			}
			switch {
			case c.Own || f.Source != "000" && f.Source != "002":
			case !strings.Contains(passage(f.Source, where, f.Where), "(from p. "):
				t.Errorf("%s/%s stands at %q, which has no page", f.ID, c.ID, where)
			}
		}
	}
	if got := passage("000", "Theorem 2.14 in §2.1.4, §6.6",
		"§7.2"); got != "Theorem 2.14 in §2.1.4, §6.6 (from p. 18, p. 147)" {
		t.Error(got)
	}
}

// The summary shows claims that there are.
func TestSummaryNamesClaims(t *testing.T) {
	known := map[string]bool{}
	for _, f := range All() {
		for _, c := range f.Claims {
			known[f.ID+"/"+c.ID] = true
		}
	}
	for _, h := range highlights() {
		if !known[h.claim] {
			t.Errorf("there is no claim %s", h.claim)
		}
	}
	for _, id := range strengths() {
		if !known[id] {
			t.Errorf("there is no claim %s", id)
		}
	}
}
