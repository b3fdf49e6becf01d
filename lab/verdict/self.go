package verdict

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
)

// Self audits everything that is private here, and broken twins of it.
func Self(ctx context.Context, a audit.SelfAudit, games int) (*Page, error) {
	names, err := a.Names()
	if err != nil {
		return nil, err
	}
	looks, err := a.Looks()
	if err != nil {
		return nil, err
	}
	results, err := a.Run(ctx)
	if err != nil {
		return nil, err
	}
	quick := ""
	if a.Quick && a.Games == 0 {
		quick = ", all of which count, those of the search too"
	}
	p := &Page{Title: "Self-audit of Sotto", Gamma: a.Gamma, Seed: a.Seed,
		Description: "Every mechanism and every private policy of this program, its service over " +
			"HTTP, and broken copies of them, with faults that have happened. A sound audit refutes every broken copy " +
			"and no claim.",
		Tested: []report.Fact{
			{Name: "audits", Value: fmt.Sprintf("%d of %d; the confidence is split over all of them",
				len(results), len(names))},
			{Name: "games", Value: fmt.Sprintf("%d for each claim, fewer where games are slow%s; the table says "+
				"how many", games, quick)},
			{Name: "a broken copy", Value: fmt.Sprintf("is played until it is refuted. A test of it has up to "+
				"sixteen times the games of a claim; it is given up after %d tests", looks)},
			{Name: "neighbours", Value: "one reward, or the rewards of one round, replaced by others"},
			{Name: "the claims", Value: "the ledger's, at the δ in the table; of a broken copy, those " +
				"of what it is a copy of"},
			{Name: "adversary", Value: "knows all rewards but those of one round and has chosen " +
				"them; sees every release, or, where the name says so, the plays only"},
		},
		Cannot: []string{
			"A claim with a low ratio of audited to claimed ε was hardly tested, only not refuted.",
			"Simulated noise, except where a name says real. Timing, floating point of other " +
				"machines and the randomness of a deployment are not in it.",
		},
	}
	p.Notes = []string{fmt.Sprintf("A sound program fails this audit with probability at most %v: each of "+
		"%d audits has an equal part of it. A true claim is refuted with no more than that, and a "+
		"broken copy is given up only after %d tests that share no game, each of which is taken to miss it no "+
		"more often than not.", a.Gamma, len(names), looks)}
	if a.Quick && a.Games == 0 { // else claims have one test, at a number of games that was fixed before
		p.Notes = append(p.Notes, anytime)
	}
	for _, r := range results {
		if r.Looks > 1 {
			p.Notes = append(p.Notes, fmt.Sprintf("%s was played on: the row is its test %d.", r.Name, r.Looks))
		}
		p.Rows = append(p.Rows, Row{r.Finding, r.Twin})
	}
	return p, nil
}
