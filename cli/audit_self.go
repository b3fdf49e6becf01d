package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/audit/protocol"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/lab/verdict"
	"github.com/sotto-dp/sotto/live/liveaudit"
)

type auditSelf struct {
	Quick bool   `help:"Few games: seconds instead of an hour."`
	Only  string `help:"${auditSelfOnly}" placeholder:"TEXT"`
	List  bool   `help:"List the audits and do none."`
	// Progress is for who waits.
	Progress   bool         `help:"${auditSelfProgress}"`
	Confidence flags.Number `in:"(0,0.999999999]" default:"0.999999" help:"${selfConfidence}" placeholder:"1−γ"`
	auditFlags
}

// auditSelfTexts are help texts that are too long for their flags.
var auditSelfTexts = kong.Vars{
	"auditSelfOnly": "Only audits whose name has this text in it. The confidence is split over all audits " +
		"nevertheless.",
	"auditSelfProgress": "Show on stderr how far it is and about how long it will take, and not each audit's outcome. " +
		"A terminal has it in any case.",
	"audit self": `Examples:
  sotto audit self --quick
  sotto audit self --quick --only dp-imed
  sotto audit self --out report

A sound program fails with probability at most 10⁻⁶: a claim that is true is refuted, or a broken copy is
not. A broken copy is played until it is refuted, so that one unlucky test decides nothing. With --quick
claims are tested in the same way, with few games; without it, or with --games, as tightly as so many games
allow.`,
}

func (c *auditSelf) Run(ctx context.Context, s streams) error {
	usual := 1_000_000
	if c.Quick {
		usual = audit.QuickGames
	}
	set, err := c.settings(c.Confidence, usual)
	if err != nil {
		return usage(err)
	}
	protocols, err := protocol.Audits()
	if err != nil {
		return err
	}
	self := audit.SelfAudit{Gamma: set.Gamma, Quick: c.Quick, Games: int(c.Games), Seed: set.Seed,
		Workers: set.Workers, Catalog: s.known, More: append(protocols, liveaudit.Audits()...), Only: func(name string) bool {
			return strings.Contains(name, c.Only)
		}}
	names, err := self.Names()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !self.Only(n) })
	if len(names) == 0 {
		return flags.Bad("--only", c.Only, "part of the name of an audit: see %s audit self --list", s.program)
	}
	switch {
	case c.List && c.JSON:
		return printJSON(s, names)
	case c.List:
		_, err := fmt.Fprintln(s.out, strings.Join(names, "\n"))
		return err
	}
	w, wrong, from := waiting(s, "audit self", len(names)), 0, time.Now()
	self.Report = func(done, all int, r audit.SelfResult) {
		if !r.Good {
			wrong++
		}
		switch spent := time.Since(from); {
		case !c.Progress:
			w.tell(done, fmt.Sprintf("%d/%d %v", done, all, r))
		case w.terminal:
			w.tell(done, "")
		default:
			left := time.Duration(float64(spent) / float64(done) * float64(all-done))
			w.tell(done, fmt.Sprintf("%d/%d audits, %d wrong, %v, about %v left: %s", done, all, wrong,
				spent.Round(time.Second), left.Round(time.Second), r.Name))
		}
	}
	p, err := verdict.Self(ctx, self, set.Games)
	w.end()
	if err != nil {
		return failed(err)
	}
	return c.finish(s, p)
}
