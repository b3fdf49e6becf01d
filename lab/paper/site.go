package paper

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
)

//go:embed site.html
var siteSource string

// A work is a source that is played again; docs/sources.md has it in full.
type work struct {
	ID         string // of its figures, its page and its column in claims.csv
	Key, Title string
}

// workOf is the work with this ID, which is its key too where it is none of ours.
func workOf(id string) work {
	switch id {
	case "000":
		return work{id, "Azize 2024", "Privacy-utility trade-offs in sequential decision-making " +
			"under uncertainty, doctoral thesis"}
	case "001":
		return work{id, "Azize and Basu 2024", "Concentrated differential privacy for bandits"}
	case "002":
		return work{id, "Sajed 2019", "Optimal differentially private finite armed stochastic " +
			"bandit, master's thesis"}
	case "003":
		return work{id, "Chowdhury and Zhou 2023", "Distributed differential privacy in " +
			"multi-armed bandits"}
	case "004":
		return work{id, "Azize et al. 2023", "On the complexity of differentially private best-arm " +
			"identification with fixed confidence"}
	}
	return work{ID: id, Key: id}
}

// page is a file of the site.
type page struct {
	name string
	text []byte
}

// count is a number of claims with a verdict.
type count struct {
	Class, Word, Means string
	N                  int
}

// counts leaves out verdicts that nothing has.
func counts(results ...Result) []count {
	var out []count
	for _, v := range Verdicts() {
		if n := countOf(v, results...); n > 0 {
			out = append(out, count{v.class(), string(v), v.Means(), n})
		}
	}
	return out
}

// claimView is a claim on a page.
type claimView struct {
	ID, Page, Anchor, Verdict, Class, Text, Where, Statistic, Numbers, Detail, Proof, Why, Reader string
}

func claimViews(results ...Result) []claimView {
	var out []claimView
	for i := range results {
		r := &results[i]
		for _, c := range r.Outcomes {
			v := claimView{
				ID: c.ID, Page: r.ID + ".html", Anchor: "claim-" +
					strings.TrimPrefix(c.ID, r.ID+"/"), Verdict: string(c.Verdict), Class: c.Verdict.class(),
				Text: oneLine(c.Text), Where: oneLine(c.Where), Statistic: oneLine(c.Statistic),
				Numbers: numbersText(c.Finding), Detail: oneLine(c.Detail), Reader: oneLine(c.Reader),
			}
			if c.Verdict.Grave() || c.Verdict == NotTested {
				v.Why = oneLine(c.Why)
			}
			// what we say must be seen not to stand
			if c.Verdict == OurFinding && c.Answer != Holds {
				v.Verdict = string(OurFinding) + ": " + string(c.Answer)
			}
			if c.Verdict == Refuted {
				v.Proof = oneLine(c.Proof)
			}
			out = append(out, v)
		}
	}
	return out
}

// numbersText is the statistic, its interval and the runs; empty if there is none.
func numbersText(f Finding) string {
	if math.IsNaN(f.Value) && math.IsNaN(f.Low) && math.IsNaN(f.High) {
		return ""
	}
	text := short(f.Value)
	switch interval := intervalText(f); {
	case strings.HasPrefix(interval, "("):
		text += " " + interval
	default:
		text += fmt.Sprintf(", %g %% interval %s", 100*Level, interval)
	}
	if f.Runs > 0 {
		text += ", " + words.Several(f.Runs, "run")
	}
	return text
}

// intervalText is the interval, or that there is none since nothing is random.
func intervalText(f Finding) string {
	switch {
	case math.IsNaN(f.Low) && math.IsNaN(f.High):
		return "(no interval)"
	case f.Low == f.High && f.Low == f.Value && f.Runs > 0:
		return "(the same in every run)"
	case f.Low == f.High && f.Low == f.Value:
		return "(exact)"
	}
	return "[" + short(f.Low) + ", " + short(f.High) + "]"
}

// short writes a number for reading, with four significant digits.
func short(x float64) string {
	a := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return "–"
	case math.IsInf(x, 0):
		return strings.NewReplacer("+Inf", "∞", "-Inf", "−∞").Replace(fmt.Sprintf("%+v", x))
	case x == 0:
		return "0"
	case a >= 1e9 || a < 1e-4:
		return strings.ReplaceAll(strconv.FormatFloat(x, 'g', 4, 64), "-", "−")
	case a >= 1000:
		return words.Fixed(x, 0)
	}
	text := strconv.FormatFloat(x, 'f', max(0, 3-int(math.Floor(math.Log10(a)))), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return strings.ReplaceAll(text, "-", "−")
}

// took writes seconds.
func took(seconds float64) string {
	if seconds < 60 {
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// total is the time of results, and how many runs they have.
func total(results []Result) (t Time, runs float64) {
	for i := range results {
		t.Seconds += results[i].Time.Seconds
		t.Playing += results[i].Time.Playing
		t.Worker += results[i].Time.Worker
		runs += results[i].Runs
	}
	return t, runs
}

// rate is how many runs there were, and how fast; empty if there were none.
func rate(t Time, runs float64) string {
	if runs == 0 || !(t.Playing > 0) {
		return ""
	}
	return fmt.Sprintf("%s in %s of playing, %s a second", words.Whole(int(runs)), took(t.Playing),
		short(math.Round(runs/t.Playing)))
}

// command is what plays figures again, with more flags if there are any.
func command(p Preset, flags string, ids ...string) string {
	words := append(append([]string{"sotto reproduce"}, ids...), "--preset "+string(p))
	if flags != "" {
		words = append(words, flags)
	}
	return oneLine(strings.Join(words, " "))
}

// figureView is a figure in a list.
type figureView struct {
	ID, Title, Where, Voids, Failed, Took string
	Counts                                []count
}

func figureViews(results []Result) []figureView {
	var out []figureView
	for i := range results {
		r := &results[i]
		out = append(out, figureView{
			ID: r.ID, Title: oneLine(r.Title), Where: oneLine(r.Where), Voids: r.Voids,
			Failed: oneLine(r.Failed), Took: took(r.Time.Seconds), Counts: counts(*r),
		})
	}
	return out
}

func execute(name string, view any) ([]byte, error) {
	t, err := template.New("site").Parse(siteSource)
	if err != nil {
		return nil, fmt.Errorf("page template: %w", err)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, name, view); err != nil {
		return nil, fmt.Errorf("page %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// bySource are results by their sources, in order.
func bySource(all []Result) [][]Result {
	var out [][]Result
	for _, r := range all {
		if n := len(out); n == 0 || out[n-1][0].Source != r.Source {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

// pages are the index and the pages of sources.
func (r *Reproduction) pages() ([]page, error) {
	type source struct {
		work
		Counts []count
	}
	type verdictRow struct {
		Verdict, Class, Means string
		N                     []int // by source, and of all
		Columns               int
	}
	type findingView struct {
		Title, Number, Reason string
		Claim                 claimView
		SVG                   template.HTML
	}
	t, runs := total(r.All)
	index := struct {
		Level, Command, Took, Rate, RunIs, Build, Left string
		Preset                                         Preset
		Mixed                                          bool
		Verdicts                                       []verdictRow
		Sources                                        []source
		Findings                                       []findingView
	}{
		Level: levelText, Took: took(t.Seconds), Rate: rate(t, runs), RunIs: whatARunIs,
		Build: r.Build.String(), Preset: r.Preset, Mixed: r.Mixed,
		Left: strings.Join(r.Left, ", "), Command: command(r.Preset,
			flagsOf(r.Flags, r.DataFlag, r.All...), r.ids()...),
	}
	var out []page
	groups := bySource(r.All)
	var works []work
	for _, g := range groups {
		works = append(works, workOf(g[0].Source))
	}
	for _, v := range present(r.All) {
		row := verdictRow{Verdict: string(v), Class: v.class(), Means: v.Means(), Columns: len(groups) + 2}
		for _, g := range append(slices.Clone(groups), r.All) {
			row.N = append(row.N, countOf(v, g...))
		}
		index.Verdicts = append(index.Verdicts, row)
	}
	for _, h := range highlights() {
		for _, c := range claimViews(r.All...) {
			if c.ID == h.claim {
				// it escapes every text that it draws
				index.Findings = append(index.Findings, findingView{h.title, h.number, h.reason, c,
					template.HTML(h.picture(r.Dir))})
			}
		}
	}
	for i, g := range groups {
		w := works[i]
		index.Sources = append(index.Sources, source{w, counts(g...)})
		t, _ := total(g)
		text, err := execute("source", struct {
			Heading, Title, Command, Took, Build string
			Others                               []work
			Counts                               []count
			Figures                              []figureView
			Parts                                []claimPart
		}{
			w.Key, w.Title, command(r.Preset, flagsOf(r.Flags, r.DataFlag, g...), w.ID),
			took(t.Seconds), r.Build.String(), slices.DeleteFunc(slices.Clone(works),
				func(v work) bool {
					return v.ID == w.ID
				}), counts(g...), figureViews(g), claimParts(claimViews(g...)),
		})
		if err != nil {
			return nil, err
		}
		out = append(out, page{"source-" + w.ID + ".html", text})
	}
	text, err := execute("index", index)
	if err != nil {
		return nil, err
	}
	return append(out, page{"index.html", text}), nil
}

// ids are the figures of the directory for a command line; none if these are all there are.
func (r *Reproduction) ids() []string {
	all := All()
	var out []string
	for i := range r.All {
		out = append(out, r.All[i].ID)
	}
	out = append(out, r.Left...)
	for i := range all {
		if !slices.Contains(out, all[i].ID) {
			return out
		}
	}
	return nil
}

// claimPart is claims that belong together on the page of a source.
type claimPart struct {
	Head   string
	Claims []claimView
}

// claimParts are the claims of a source: what its reader should know, the gravest first, what else
// it claims, and what we found beside it.
func claimParts(claims []claimView) []claimPart {
	parts := []claimPart{{Head: "What a reader should know"}, {Head: "What else it claims"},
		{Head: "What we found beside it"}}
	for _, v := range Verdicts() {
		for _, c := range claims {
			switch {
			case c.Class != v.class():
			case v.Grave():
				parts[0].Claims = append(parts[0].Claims, c)
			case v == OurFinding:
				parts[2].Claims = append(parts[2].Claims, c)
			default:
				parts[1].Claims = append(parts[1].Claims, c)
			}
		}
	}
	return slices.DeleteFunc(parts, func(p claimPart) bool { return len(p.Claims) == 0 })
}

// figuresFirst is how many drawings stand before the claims: who opens the page of a figure looks
// for the figure, and claims should not be far down.
const figuresFirst = 3

// figurePage is the page of one figure; flags are those that play it again.
func figurePage(r *Result, d drawn, p Preset, flags string) ([]byte, error) {
	type svg struct {
		Title string
		SVG   template.HTML
	}
	type setting struct {
		Name, File, YAML, Runs, Horizon string
		Seed                            uint64
		Played                          bool
	}
	view := struct {
		ID, Heading, Where, Command, Took, Rate, Seeds, Failed, Voids, About,
		Chosen, Build string
		Source          work
		Preset          Preset
		Void            bool
		Warnings, Notes []string
		Counts          []count
		Claims          []claimView
		// before the claims, and after
		First, More []svg
		Tables      []report.Table
		Settings    []setting
	}{
		ID: r.ID, Heading: r.ID + ": " + oneLine(r.Title), Source: workOf(r.Source),
		Where: oneLine(r.Where), Command: command(p, flags, r.ID),
		Took: took(r.Time.Seconds), Rate: rate(r.Time, r.Runs), Voids: oneLine(r.Voids),
		About: oneLine(r.About), Chosen: oneLine(r.Chosen),
		Build: build.This().String(), Preset: p, Counts: counts(*r), Claims: claimViews(*r),
	}
	var seeds []string
	for _, s := range r.Settings {
		view.Settings = append(view.Settings, setting{s.Name, s.File, s.YAML, words.Whole(s.Runs),
			words.Whole(s.Horizon), s.Seed, s.Played})
		if !s.Played {
			continue
		}
		view.Void = view.Void || s.Void
		if seed := strconv.FormatUint(s.Seed, 10); !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
		for _, w := range s.Warnings {
			if w = oneLine(w); !slices.Contains(view.Warnings, w) {
				view.Warnings = append(view.Warnings, w)
			}
		}
	}
	view.Seeds = strings.Join(seeds, ", ")
	for _, n := range r.Notes {
		view.Notes = append(view.Notes, oneLine(n))
	}
	seen := map[string]bool{}
	var drawings []svg
	fail := func(err error) {
		if r.Failed == "" {
			r.Failed = err.Error()
		}
	}
	for _, f := range d.figures {
		id := f.ID
		for n := 2; seen[f.ID]; n++ {
			f.ID = fmt.Sprintf("%s-%d", id, n)
		}
		seen[f.ID] = true
		var b bytes.Buffer
		if err := errors.Join(f.WriteSVG(&b), f.WriteNarrowSVG(&b)); err != nil {
			fail(err)
			continue
		}
		// it escapes every text that it draws
		drawings = append(drawings, svg{oneLine(f.Title), template.HTML(b.String())})
	}
	n := min(len(drawings), figuresFirst)
	view.First, view.More = drawings[:n], drawings[n:]
	for _, g := range d.tables {
		if err := square(g); err != nil {
			fail(err)
			continue
		}
		view.Tables = append(view.Tables, tidy(g))
	}
	view.Failed = oneLine(r.Failed)
	return execute("figure", view)
}

// square wants rows as long as their head.
func square(g report.Table) error {
	for _, group := range g.Groups {
		for i, row := range group.Rows {
			if len(row) != len(g.Head) {
				return fmt.Errorf("table %q: row %d has %d cells, its head %d", g.Title, i,
					len(row), len(g.Head))
			}
		}
	}
	return nil
}

// tidy is a grid whose every text is on one line.
func tidy(g report.Table) report.Table {
	lines := func(in []string) []string {
		out := make([]string, len(in))
		for i, s := range in {
			out[i] = oneLine(s)
		}
		return out
	}
	out := report.Table{Title: oneLine(g.Title), Head: lines(g.Head), Text: g.Text, Notes: lines(g.Notes)}
	for _, group := range g.Groups {
		c := report.Group{Head: oneLine(group.Head)}
		for _, row := range group.Rows {
			c.Rows = append(c.Rows, lines(row))
		}
		out.Groups = append(out.Groups, c)
	}
	return out
}
