package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/front/report"
)

type auditSelf struct {
	Quick bool   `help:"Fewer games: minutes instead of an hour."`
	Only  string `help:"Only audits whose name has this text in it. The confidence is split over all audits nevertheless." placeholder:"TEXT"`
	List  bool   `help:"List the audits and do none."`
	// Progress is for who waits.
	Progress bool `help:"Show on stderr how far it is and about how long it will take, in place of each audit's outcome."`
	auditFlags
}

// Help is shown by --help.
func (c *auditSelf) Help() string {
	return `Examples:
  sotto audit self --quick
  sotto audit self --quick --only adap-klucb
  sotto audit self --out report`
}

func (c *auditSelf) Run(ctx context.Context, s streams) error {
	usual := 1_000_000
	if c.Quick {
		usual = 30_000
	}
	gamma, games, seed, err := c.read(usual)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	self := audit.SelfAudit{Gamma: gamma, Quick: c.Quick, Games: int(c.Games), Seed: seed, Workers: c.Workers,
		Catalog: s.known}
	names, err := self.Names()
	if err != nil {
		return err
	}
	picked := func(name string) bool { return strings.Contains(name, c.Only) }
	if !slices.ContainsFunc(names, picked) {
		return fmt.Errorf("%w: --only is %q, must be part of the name of an audit: see sotto "+
			"audit self --list", errUsage, c.Only)
	}
	chosen := 0
	for _, n := range names {
		if !picked(n) {
			continue
		}
		chosen++
		if c.List {
			if _, err := fmt.Fprintln(s.out, n); err != nil {
				return err
			}
		}
	}
	if c.List {
		return nil
	}
	self.Only = picked
	self.Report = func(done, all int, r audit.SelfResult) { fmt.Fprintf(s.err, "%d/%d %v\n", done, all, r) }
	if c.Progress {
		self.Report = waiting(s.err)
	}
	results, err := self.Run(ctx)
	if err != nil {
		return failed(err)
	}
	o := &outcome{title: "Self-audit of Sotto", gamma: gamma, seed: seed,
		description: "Every mechanism and every private policy of this program, and twins of " +
			"them that are broken in ways that have happened. A sound auditor refutes every twin " +
			"and no claim of its own.",
		tested: []report.Fact{
			{Name: "audits", Value: fmt.Sprintf("%d of %d; the confidence is split over all of them",
				chosen, len(names))},
			{Name: "games", Value: fmt.Sprintf("%d for each audit, fewer where games are slow "+
				"but at least 2000; the table says how many", games)},
			{Name: "neighbours", Value: "one reward, or the rewards of one round, replaced by others"},
			{Name: "the claims", Value: "the ledger's, at the δ in the table; of a twin, those " +
				"of what it is a twin of"},
			{Name: "adversary", Value: "knows all rewards but those of one round and has chosen " +
				"them; sees every release, or, where the name says so, the plays only"},
		},
		cannot: []string{
			"A claim with a low ratio of audited to claimed ε was hardly tested, only not refuted.",
			"Simulated noise, except where a name says real. Timing, floating point of other " +
				"machines and the randomness of a deployment are not in it.",
		},
	}
	for _, r := range results {
		o.findings = append(o.findings, auditRow{r.Finding, r.Twin})
	}
	if c.Out != "" {
		if f, ok := tightness(o.findings); ok {
			o.figures = append(o.figures, f)
		}
	}
	return c.finish(s, o)
}

// waiting is one line that is written again and again on a terminal, and a line an audit elsewhere.
func waiting(w io.Writer) func(done, all int, r audit.SelfResult) {
	file, ok := w.(*os.File)
	terminal, from, wrong := ok && hasRoom(file), time.Now(), 0
	return func(done, all int, r audit.SelfResult) {
		if !r.Good {
			wrong++
		}
		spent := time.Since(from)
		left := time.Duration(float64(spent) / float64(done) * float64(all-done))
		line := fmt.Sprintf("%d/%d audits, %d wrong, %v, about %v left", done, all, wrong,
			spent.Round(time.Second), left.Round(time.Second))
		switch {
		case !terminal:
			fmt.Fprintf(w, "%s: %s\n", line, r.Name)
		case done == all:
			fmt.Fprintf(w, "\r\x1b[K%s\n", line)
		default:
			fmt.Fprintf(w, "\r\x1b[K%s", line)
		}
	}
}

// tightness is audited over claimed ε of all audits, sorted.
func tightness(all []auditRow) (report.Figure, bool) {
	f := report.Figure{ID: "tightness", Title: "How much of each claim was found",
		Subtitle: "Audited over claimed ε, sorted", XLabel: "audits, in the order of the ratio",
		YLabel: "audited/claimed",
		Note:   "Lower bounds. Own claims must stay at or below 1, broken twins must be above it."}
	most := 0
	for _, twin := range []bool{false, true} {
		var x []float64
		for _, r := range all {
			if t := r.Tightness(); r.twin == twin && !math.IsNaN(t) && !math.IsInf(t, 0) {
				x = append(x, t)
			}
		}
		if len(x) == 0 {
			continue
		}
		slices.Sort(x)
		s := report.Series{Label: "own claims", Mean: x}
		if twin {
			s.Label = "broken twins"
		}
		for i := range x {
			s.X = append(s.X, float64(i+1))
		}
		most = max(most, len(x))
		f.Series = append(f.Series, s)
	}
	if most < 2 {
		return f, false
	}
	f.Series = append(f.Series, report.Series{Label: "refuted above",
		X: []float64{1, float64(most)}, Mean: []float64{1, 1}})
	return f, true
}
