// Package verdict is the pages of audits: what was tested against whom, what was found, what it
// says of a claim, and what an audit cannot show. Each kind of audit is a value (Sums, Messages,
// Mean, Policy, Training, Self) that is prepared, which says what is wrong with it, and then run.
//
// The attacks, the games and the judgement of their scores are in package audit.
package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
)

// Level is a confidence 1−γ in digits, rounded: 1 − 0.05 is not 0.95 in binary.
func Level(gamma float64) string { return strconv.FormatFloat(rounded(1-gamma), 'g', -1, 64) }

// rounded is x to twelve decimals.
func rounded(x float64) float64 { return math.Round(x*1e12) / 1e12 }

// A Page is what an audit has to say: a table, figures, and what was tested against whom.
type Page struct {
	Title, Description string
	Tested             []report.Fact // what was attacked, against whom, with what knowledge
	Rows               []Row
	// Broken says that all of it is broken on purpose: it should be refuted, but the answer is that
	// of any claim.
	Broken           bool
	Warnings, Cannot []string // Cannot is what this audit cannot show, beside what none can
	Figures          []report.Figure
	Notes            []string // below the table of findings
	Curve            *Curve   // that is drawn; nil: none
	Readings         []audit.Reading
	Level            string  // confidence of each reading
	Gamma            float64 // 1 − the confidence of all of it
	Seed             uint64
	// Command gives the same answer again; empty if it is not known.
	Command string
}

// A Row is a finding, and whether it is of something that was broken on purpose.
type Row struct {
	audit.Finding
	Twin bool
}

// Wrong says that the finding is not what it must be.
func (r Row) Wrong() bool { return r.Refuted != r.Twin }

// Err is nil if every claim stands and every broken twin is refuted.
func (p *Page) Err() error {
	var refuted, missed []string
	for _, f := range p.Rows {
		switch {
		case f.Wrong() && f.Twin:
			missed = append(missed, f.Name)
		case f.Wrong():
			refuted = append(refuted, f.Name)
		}
	}
	for _, r := range p.Readings {
		if r.Refuted() {
			refuted = append(refuted, r.Name())
		}
	}
	switch {
	case refuted != nil:
		return fmt.Errorf("refuted: %s", strings.Join(refuted, "; "))
	case missed != nil:
		return fmt.Errorf("broken on purpose and not refuted: %s", strings.Join(missed, "; "))
	}
	return nil
}

// never are the limits of every audit.
func never(gamma float64) []string {
	return []string{
		"It refutes claims and proves none. A low audited ε may mean a private subject, or a " +
			"weak attack, or too few games.",
		fmt.Sprintf("Everything refuted is refuted at confidence %s: if a claim is true, it is "+
			"refuted with probability at most %v.", Level(gamma), gamma),
		"The upper end of an interval is that of the same test's errors. It is no upper bound on " +
			"the true ε: no audit gives one.",
		"Only the attacks and adversaries named here were tried.",
	}
}

// simulatedOnly is the limit of an audit with simulated noise.
const simulatedOnly = "The noise was simulated: the audit is of the algorithm and its " +
	"calibration. Timing, floating point and randomness of a deployment are not in it."

func number(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "∞"
	case math.IsNaN(x):
		return "–"
	case x < 0.0005 && x > -0.0005:
		return "0"
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// table is the findings as people read them.
func (p *Page) table() report.Table {
	g := report.Table{Title: "Audited privacy loss",
		Head: []string{"subject", "verdict", "best attack", "adversary", "claimed ε", "δ",
			"audited ε", "interval", "ratio", "games"}, Text: 4}
	groups := []report.Group{{Head: "claims"}, {Head: "broken on purpose: must be refuted"}}
	for _, r := range p.Rows {
		claim := number(r.Claimed)
		if math.IsInf(r.Claimed, 1) {
			claim = "none"
		}
		verdict := r.Verdict()
		if math.IsInf(r.Claimed, 1) {
			verdict = "no claim"
		}
		group := &groups[0]
		if r.Twin {
			group = &groups[1]
		}
		against := r.Against
		if r.Model != "" {
			against = r.Model + ": " + against
		}
		group.Rows = append(group.Rows, []string{r.Name, verdict, dash(r.Attack), dash(against),
			claim, strconv.FormatFloat(r.Delta, 'g', 4, 64), number(r.Estimate),
			"[" + number(r.Low) + ", " + number(r.High) + "]", number(r.Tightness()),
			words.Whole(r.Games)})
	}
	for _, group := range groups {
		if group.Rows != nil {
			g.Groups = append(g.Groups, group)
		}
	}
	level := Level(p.Gamma)
	if len(p.Rows) > 1 {
		level += " for all together"
	}
	g.Notes = []string{"A claim is refuted if it is below the lower end, the audited ε at " +
		"confidence " + level + ".", "The audited ε before the interval is the one that the " +
		"test's right and wrong answers show without a correction.",
		"The ratio is that of the lower end to the claimed ε."}
	g.Notes = append(g.Notes, p.Notes...)
	return g
}

// narrower is the table for a page, which has no room for ten columns: who attacks is beside the attack, and
// δ beside the claim where there is one.
func narrower(t report.Table) report.Table {
	const attack, against, claimed, delta = 2, 3, 4, 5
	row := func(of []string) []string {
		of = slices.Clone(of)
		if of[against] != dash("") {
			of[attack] += "; " + of[against]
		}
		if of[delta] != "0" {
			of[claimed] += " at δ = " + of[delta]
		}
		return slices.Concat(of[:against], of[claimed:delta], of[delta+1:])
	}
	head := slices.Concat(t.Head[:attack], []string{"best attack, and who makes it"}, t.Head[claimed:delta], t.Head[delta+1:])
	out := report.Table{Title: t.Title, Head: head, Text: t.Text - 1, Notes: t.Notes}
	for _, g := range t.Groups {
		narrow := report.Group{Head: g.Head}
		for _, r := range g.Rows {
			narrow.Rows = append(narrow.Rows, row(r))
		}
		out.Groups = append(out.Groups, narrow)
	}
	return out
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// Report is the page for a privacy officer.
func (p *Page) Report() report.Page {
	r := report.Page{Name: p.name(), Version: "Sotto " + build.This().Version,
		Description: p.Description, Warnings: p.Warnings, Figures: append(forests(p.Rows), p.Figures...), FiguresFirst: true,
		Facts: []report.Fact{{Name: "confidence", Value: Level(p.Gamma)},
			{Name: "seed", Value: strconv.FormatUint(p.Seed, 10)}}}
	if p.Command != "" {
		r.Facts = append([]report.Fact{{Name: "command", Value: p.Command}}, r.Facts...)
	}
	for _, f := range p.Rows {
		switch {
		case f.Wrong() && f.Twin:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s is broken on purpose and was not "+
				"refuted: this audit is too weak to tell.", f.Name))
		case p.Broken && !f.Refuted:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: this fault was not noticed, so the "+
				"audit is too weak to tell. More --games, or other settings, may.", f.Name))
		case f.Wrong():
			r.Warnings = append(r.Warnings, fmt.Sprintf("The claim of %s is refuted: ε = %s at δ "+
				"= %v is claimed, and ε is at least %s.", f.Name, number(f.Claimed), f.Delta,
				number(f.Low)))
		case math.IsInf(f.Claimed, 1):
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s claims no privacy.", f.Name))
		}
	}
	tested := report.Table{Title: "What was tested, and against whom", Head: []string{"what", ""}, Text: 2}
	group := report.Group{Head: "setting"}
	for _, f := range p.Tested {
		group.Rows = append(group.Rows, []string{f.Name, f.Value})
	}
	tested.Groups = []report.Group{group}
	cannot := report.Table{Title: "What this audit cannot show", Head: []string{"", ""}, Text: 2}
	group = report.Group{Head: "limits"}
	for i, s := range slices.Concat(never(p.Gamma), p.Cannot) {
		group.Rows = append(group.Rows, []string{strconv.Itoa(i + 1), s})
	}
	cannot.Groups = []report.Group{group}
	for _, x := range p.Readings {
		if x.Refuted() {
			r.Warnings = append(r.Warnings, fmt.Sprintf("The claim is refuted by a further "+
				"reading, %s: %s is claimed, and it is at least %s.", x.Name(),
				number(x.Claimed), number(x.Low)))
		}
	}
	r.Tables = []report.Table{narrower(p.table())}
	if p.Readings != nil {
		r.Tables = append(r.Tables, readings(p.Readings, p.Level))
	}
	r.Tables = append(r.Tables, tested, cannot)
	return r
}

// readings are the rows as people read them.
func readings(rows []audit.Reading, level string) report.Table {
	g := report.Table{Title: "Further readings",
		Head: []string{"reading", "verdict", "δ", "claimed", "audited, at least", "games"}, Text: 2,
		Notes: []string{"Each reading by itself is right at confidence " + level +
			", and so are all of them and the audit above together at the audit's."}}
	group := report.Group{Head: "lower bounds"}
	for _, r := range rows {
		delta, claimed := "–", "none"
		if !math.IsNaN(r.Delta) {
			delta = strconv.FormatFloat(r.Delta, 'g', 4, 64)
		}
		if !math.IsInf(r.Claimed, 1) {
			claimed = number(r.Claimed)
		}
		group.Rows = append(group.Rows, []string{r.What, r.Verdict(), delta, claimed,
			number(r.Low), words.Whole(r.Games)})
	}
	g.Groups = []report.Group{group}
	return g
}

// auditJSON is an outcome as programs read it.
type auditJSON struct {
	Title      string            `json:"title"`
	Confidence float64           `json:"confidence"`
	Seed       uint64            `json:"seed"`
	Version    string            `json:"version"`
	Refuted    bool              `json:"refuted"` // a claim that should hold
	Tested     map[string]string `json:"tested"`
	Findings   []findingJSON     `json:"findings"`
	Readings   []readingJSON     `json:"readings,omitempty"`
	Curve      *curveJSON        `json:"curve,omitempty"`
	Warnings   []string          `json:"warnings"`
	Cannot     []string          `json:"cannot_show"`
}

// curveJSON is a Curve: all its bounds hold together.
type curveJSON struct {
	Confidence float64     `json:"confidence"`
	MuLow      float64     `json:"mu_low"`
	MuHigh     *float64    `json:"mu_high"` // null: infinite
	Points     []pointJSON `json:"points"`
}

type pointJSON struct {
	Delta   float64  `json:"delta"`
	Low     float64  `json:"epsilon_low"`
	High    *float64 `json:"epsilon_high"`    // of this attack; null: infinite
	Claimed *float64 `json:"epsilon_claimed"` // null: no claim
}

type readingJSON struct {
	What    string   `json:"what"`
	Delta   *float64 `json:"delta"`   // null: none
	Claimed *float64 `json:"claimed"` // null: no claim
	Low     *float64 `json:"low"`     // null: infinite
	Verdict string   `json:"verdict"`
	Games   int      `json:"games"`
}

type findingJSON struct {
	Subject  string   `json:"subject"`
	Claimed  *float64 `json:"claimed_epsilon"` // null: no claim
	Delta    float64  `json:"delta"`
	Low      float64  `json:"audited_epsilon_low"`
	Estimate *float64 `json:"audited_epsilon"`
	High     *float64 `json:"audited_epsilon_high"` // null: infinite
	Ratio    *float64 `json:"audited_over_claimed"`
	Verdict  string   `json:"verdict"`
	Refuted  bool     `json:"refuted"`
	Twin     bool     `json:"broken_on_purpose"`
	Attack   string   `json:"attack"`
	Against  string   `json:"adversary"`
	Model    string   `json:"model"`
	Games    int      `json:"games"`
	Gamma    float64  `json:"gamma"`
}

func (p *Page) json() auditJSON {
	finite := func(x float64) *float64 {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		return &x
	}
	r := p.Report()
	out := auditJSON{Title: p.name(), Confidence: rounded(1 - p.Gamma), Seed: p.Seed,
		Version: build.This().Version, Tested: map[string]string{}, Findings: []findingJSON{},
		Warnings: append([]string{}, r.Warnings...), Cannot: slices.Concat(never(p.Gamma), p.Cannot)}
	for _, f := range p.Tested {
		out.Tested[f.Name] = f.Value
	}
	for _, f := range p.Rows {
		out.Refuted = out.Refuted || f.Refuted && !f.Twin
		out.Findings = append(out.Findings, findingJSON{f.Name, finite(f.Claimed), f.Delta, f.Low,
			finite(f.Estimate), finite(f.High), finite(f.Tightness()), f.Verdict(), f.Refuted, f.Twin,
			f.Attack, f.Against, f.Model, f.Games, f.Gamma})
	}
	for _, r := range p.Readings {
		out.Refuted = out.Refuted || r.Refuted()
		out.Readings = append(out.Readings, readingJSON{r.What, finite(r.Delta), finite(r.Claimed),
			finite(r.Low), r.Verdict(), r.Games})
	}
	if c := p.Curve; c != nil {
		out.Curve = &curveJSON{rounded(1 - c.Gamma), c.Mu[0], finite(c.Mu[1]), nil}
		for _, r := range c.Rows {
			out.Curve.Points = append(out.Curve.Points, pointJSON{r.Delta, r.Low, finite(r.High),
				finite(r.Claimed)})
		}
	}
	return out
}

// WriteJSON writes the page as programs read it.
func (p *Page) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(p.json())
}

// WriteText writes the tables of the findings and what is to be said of them.
func (p *Page) WriteText(w io.Writer) error {
	r := p.Report()
	shown := []report.Table{p.table()}
	if p.Readings != nil {
		shown = append(shown, r.Tables[1])
	}
	if err := (report.Page{Tables: shown}).WriteText(w); err != nil {
		return err
	}
	return report.WriteLines(w, append([]string{""}, r.Warnings...)...)
}

// WriteDir writes report.html, audit.json, drawings of the figures and curve.csv, if there is a Curve,
// to a directory, which is made if it is not there.
func (p *Page) WriteDir(dir string, figures report.Selection) error {
	r := p.Report()
	files, err := r.Files(figures)
	if err != nil {
		return err
	}
	var page, numbers bytes.Buffer
	if err := errors.Join(r.WriteHTML(&page), p.WriteJSON(&numbers)); err != nil {
		return err
	}
	if p.Curve != nil {
		files = append(files, report.File{Name: "curve.csv", Data: p.Curve.csv()})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range append(files, report.File{Name: "audit.json", Data: numbers.Bytes()},
		report.File{Name: "report.html", Data: page.Bytes()}) {
		if err := atomicfile.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// name is the title, with the subject if there is one alone.
func (p *Page) name() string {
	if len(p.Rows) == 1 {
		return p.Title + ": " + p.Rows[0].Name
	}
	return p.Title
}
