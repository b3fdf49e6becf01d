package experiment

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/privacy"
)

// Report arranges the results for a page: what all experiments have, and the tables and figures of
// the kind.
func (r *Results) Report() (report.Page, error) {
	m := r.Manifest
	spec, err := Reader{Catalog: r.Catalog}.Parse(m.Name, m.Spec)
	if err != nil {
		return report.Page{}, fmt.Errorf("report: the manifest's experiment: %w", err)
	}
	text, err := spec.YAML()
	if err != nil {
		return report.Page{}, err
	}
	k := m.kind()
	length, _ := k.length(spec)
	out := report.Page{
		Name: m.Name, Version: "Sotto " + m.Build.Version, Description: m.Description,
		Spec: string(text), Warnings: m.Warnings,
		Facts: []report.Fact{
			{Name: length, Value: words.Whole(m.Horizon)},
			{Name: "runs of each", Value: words.Whole(m.Runs)},
			{Name: "seed", Value: strconv.FormatUint(m.Seed, 10)},
			{Name: "privacy adjacency", Value: k.adjacency(r)},
		},
	}
	if m.Delay != "" {
		out.Facts = append(out.Facts, report.Fact{Name: "delay of rewards, in rounds", Value: m.Delay})
	}
	if err := k.report(r, &out); err != nil {
		return report.Page{}, err
	}
	seen := map[string]bool{}
	for i := range out.Figures {
		out.Figures[i].ID = unique(seen, out.Figures[i].ID)
	}
	return out, nil
}

// WriteText writes the report's tables for a terminal.
func (r *Results) WriteText(w io.Writer) error {
	out, err := r.Report()
	if err != nil {
		return err
	}
	return out.WriteText(w)
}

// Draw draws the report into a directory: one SVG a figure, and report.html. Files appear whole.
func (r *Results) Draw(dir string) error { return r.DrawAs(dir, report.Selection{}) }

// DrawAs draws report.html, and of its figures those that are wanted, as they are. If one cannot be
// drawn so, nothing is.
func (r *Results) DrawAs(dir string, wanted report.Selection) error {
	out, err := r.Report()
	if err != nil {
		return err
	}
	files, err := out.Files(wanted)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := out.WriteHTML(&page); err != nil {
		return err
	}
	for _, f := range append(files, report.File{Name: "report.html", Data: page.Bytes()}) {
		if err := r.Manifest.writeFile(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	return nil
}

// instances are those of the results, in order.
func (r *Results) instances() []string {
	return distinct(r, func(c *CellResult) (string, bool) { return c.Instance, true })
}

// symbols writes a budget as people do.
func symbols(budget string) string {
	return strings.NewReplacer(",epsilon=", ", ε=", ",delta=", ", δ=", "epsilon=", "ε=", "rho=",
		"ρ=", "alpha=", "α=").Replace(budget)
}

func distinct(r *Results, f func(*CellResult) (string, bool)) []string {
	var out []string
	seen := map[string]bool{}
	for i := range r.Cells {
		if s, ok := f(&r.Cells[i]); ok && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// protects says what each private policy of a contextual bandit protects, as some protect
// contexts and others do not, and who has to be believed where that is not a server that adds
// continuous noise. Before that, how late rewards are, if they are.
func protects(r *Results) []string {
	var out []string
	if d := r.Manifest.Delay; d != "" {
		out = append(out, "rewards come late, in rounds: "+d)
	}
	for i := range r.Cells {
		note := ""
		switch c := &r.Cells[i]; {
		case c.Private && r.Manifest.kind().protects():
			note = "privacy of " + c.Policy + ": " + c.Guarantee
		case c.Trust != "":
			note = "trust of " + c.Policy + ": " + c.Trust + "; " + c.Assumes
		}
		if note != "" && !slices.Contains(out, note) {
			out = append(out, note)
		}
	}
	return out
}

func void(r *Results, c *CellResult) bool {
	return c.Private && c.Budget != keyed.None && r.Manifest.Unclipped
}

// family is the policy without privacy that a cell's policy makes private or is; what no catalog
// has is a family of its own.
func (r *Results) family(c *CellResult) string {
	e, err := r.Catalog.Find(r.Manifest.Kind, c.Catalog)
	if err != nil || e.Family == "" {
		return c.Catalog
	}
	return e.Family
}

// setAside greys what a catalog has a newer policy for, where the figure has one that is recommended.
func (r *Results) setAside(f *report.Figure) {
	older := map[string]bool{} // of the private policies, by their labels
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Private {
			e, err := r.Catalog.Find(r.Manifest.Kind, c.Catalog)
			older[c.Policy] = err == nil && e.Newer != ""
		}
	}
	if !slices.ContainsFunc(f.Series, func(s report.Series) bool {
		old, private := older[s.Policy]
		return private && !old && !s.Plain
	}) {
		return
	}
	const grey = " Grey: older policies, to compare with."
	for i := range f.Series {
		if f.Series[i].Aside = older[f.Series[i].Policy]; f.Series[i].Aside && !strings.HasSuffix(f.Note, grey) {
			f.Note += grey
		}
	}
}

// familyOf is the family of the cells with a policy's label.
func (r *Results) familyOf(policy string) string {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Policy == policy {
			return r.family(c)
		}
	}
	return ""
}

// plainNote says what dots are, where private lines have such beside them.
func plainNote(f report.Figure) string {
	plain := func(want bool) bool {
		return slices.ContainsFunc(f.Series, func(s report.Series) bool {
			return s.Family != "" && s.Plain == want
		})
	}
	if plain(true) && plain(false) {
		return " Dotted: without privacy, in the colour of what makes it private."
	}
	return ""
}

func bandNote(m *Manifest, at string) string {
	late := ""
	if m.Delay != "" {
		late = " Rewards come late, in rounds: " + m.Delay + "."
	}
	if m.Runs == 1 {
		return "Lines are one run: there is no interval to draw." + late
	}
	return fmt.Sprintf("Lines are means of %s runs, bands their 95 %% Student intervals at each "+
		"%s.%s", words.Whole(m.Runs), at,
		late)
}

// unique is an ID that no other figure has: files, and some systems have one case.
func unique(seen map[string]bool, id string) string {
	out := id
	for i := 2; seen[strings.ToLower(out)]; i++ {
		out = fmt.Sprintf("%s-%d", id, i)
	}
	seen[strings.ToLower(out)] = true
	return out
}

// optional writes a bound, and a dash where there is none.
func optional(x float64) string {
	if x == 0 {
		return "–"
	}
	return shown(x)
}

// budgetAxes are the numbers of a budget that figures have as an axis, with their symbols.
func budgetAxes() []struct{ key, symbol string } {
	return []struct{ key, symbol string }{{"epsilon", "ε"}, {"rho", "ρ"}}
}

// budgetValue is ε or ρ of a cell's budget, by the key, if it is that alone.
func budgetValue(c *CellResult, key string) (float64, bool) {
	return budgetNumber(c.PrivacyBudget(), key)
}

func budgetNumber(b privacy.Budget, key string) (float64, bool) {
	f := keyed.BudgetFields(b)
	if len(f) != 1 || f[0].Key != key {
		return 0, false
	}
	x, ok := f[0].Value.(float64)
	return x, ok
}

// point is one more point: checkpoint k of a curve, with its band if there is more than one run.
func point(s *report.Series, c *Curve, k int, half float64, runs int) {
	s.Mean = append(s.Mean, c.Mean[k])
	s.Q05, s.Q50, s.Q95 = append(s.Q05, c.Q05[k]), append(s.Q50, c.Q50[k]), append(s.Q95, c.Q95[k])
	if runs > 1 {
		s.Lo, s.Hi = append(s.Lo, c.Mean[k]-half*c.SE[k]), append(s.Hi, c.Mean[k]+half*c.SE[k])
	}
}

// shown writes a number for reading.
func shown(x float64) string { return words.Number(x) }

// playerText is who plays, in a column of a grid.
func playerText(c *CellResult) string { return report.Cut(report.Clean(c.Policy), 48) }

// ends writes an interval of a proportion.
func ends(lo, hi float64) string { return "[" + shown(round(lo)) + ", " + shown(round(hi)) + "]" }

// rowNote says how many runs are behind a row.
func rowNote(runs int) string {
	if runs == 1 {
		return "n = 1 run a row, which bounds nothing"
	}
	return "n = " + words.Whole(runs) + " runs a row"
}

// round leaves four decimals of a proportion.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
