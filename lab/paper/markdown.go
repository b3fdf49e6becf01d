package paper

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
)

// WriteMarkdown writes a summary of two pages of all figures in the directory, as
// docs/reproduction.md has it: what was played, which verdicts there are, the findings that
// matter, the others in a line each, and what could not be known. Everything else is on the site
// and in claims.csv.
func (r *Reproduction) WriteMarkdown(w io.Writer) error {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	t, runs := total(r.All)
	data := ""
	if r.Real {
		data = "--data DIR"
	}
	line("# The sources, played again\n")
	line("Five [sources](sources.md) on private bandits and on tracing attacks were read, " +
		"implemented and played again:")
	line("%s on %s, in %s by Sotto %s.", words.Several(claimCount(r.All), "claim"),
		words.Several(len(r.All), "page"), took(t.Seconds), markdown(r.Build.String()))
	line("`%s` makes a site with a page a source and a page a figure, with every",
		command(r.Preset, data, r.ids()...))
	line("setting, seed and number; [claims.csv](claims.csv) has all entries. %s were played: a "+
		"run is one policy, or one rule, on one world.\n", words.Several(int(runs), "run"))
	if len(r.Left) > 0 {
		line("**Not finished: %s are left.**\n", markdown(strings.Join(r.Left, ", ")))
	}

	line("## Verdicts\n")
	line("%s\n", levelText)
	groups := bySource(r.All)
	head, rule := "| verdict | means |", "|---|---|"
	for _, g := range groups {
		head, rule = head+" "+workOf(g[0].Source).Key+" |", rule+"---|"
	}
	line("%s all |", head)
	line("%s---|", rule)
	for _, v := range present(r.All) {
		row := fmt.Sprintf("| %s | %s |", marked(v), v.Means())
		for _, g := range append(groups, r.All) {
			row += fmt.Sprintf(" %d |", countOf(v, g...))
		}
		line("%s", row)
	}

	if replays, err := r.seeds(); err != nil {
		return err
	} else if len(replays) > 0 {
		line("\n## Verdicts and seeds\n")
		line("`%s --seeds N` plays what decides a claim again with N other seeds, and counts the verdicts "+
			"that differ; [seeds.csv](../lab/paper/seeds.csv) has each claim whose numbers change with "+
			"the seed. Claims that are not in it are exact, or their pages were not played again.\n",
			command(r.Preset, data, r.ids()...))
		for _, text := range seedsText(replays, len(r.All)) {
			line("%s", text)
		}
	}

	line("\n## What stands\n")
	for _, g := range groups {
		text := fmt.Sprintf("- **%s**: %d of %d claims reproduce or are not contradicted%s.",
			workOf(g[0].Source).Key, countOf(Reproduces, g...)+countOf(NotContradicted, g...),
			claimCount(g), leftOpen(countOf(NotTested, g...)))
		for _, id := range strengths() {
			if o := find(g, id); o != nil && (o.Verdict == Reproduces || o.Verdict == NotContradicted) {
				text += " " + markdown(o.Text)
			}
		}
		line("%s", text)
	}

	shown := map[string]bool{}
	line("\n## Six findings\n")
	for _, h := range highlights() {
		o := find(r.All, h.claim)
		if o == nil {
			continue
		}
		shown[o.ID] = true
		line("### %s\n", h.title)
		line("![Figure](%s)\n", h.gallery)
		numbers := ""
		if text := numbersText(o.Finding); text != "" {
			numbers = ": " + h.number + " is " + text
		}
		line("%s, %s: *%s%s.* %s", source(r.All, o.ID), markdown(o.Where), o.Verdict, numbers, markdown(o.Text))
		line("%s %s\n", h.reason, markdown(o.Reader))
	}

	line("## What else a reader should know")
	last := Verdict("")
	for _, p := range advice(r.All, shown) {
		if p.verdict != last {
			line("\n*%s*:\n", p.verdict)
			last = p.verdict
		}
		line("- %s, %s: %s", p.source, markdown(withoutPages(strings.Join(p.where, "; "))), markdown(p.text))
	}
	line("\nOn their pages is what to read instead, or to ask:\n")
	for _, v := range []Verdict{Misprint, NotReproduced} {
		var ids []string
		for _, o := range grave(r.All...) {
			if o.Verdict == v && !shown[o.ID] {
				ids = append(ids, markdown(o.ID))
			}
		}
		if len(ids) > 0 {
			line("- *%s*: %s.", v, strings.Join(ids, ", "))
		}
	}
	for i := range r.All {
		if f := &r.All[i]; f.Failed != "" {
			line("- **%s** went wrong: %s", markdown(f.ID), markdown(f.Failed))
		}
	}

	line("\n## What could not be known\n")
	for _, u := range unknowns() {
		line("- %s", u)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// leftOpen says of how many claims nothing is known.
func leftOpen(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 is not tested"
	}
	return fmt.Sprintf(", %d are not tested", n)
}

// source is the key of the source that a claim is of.
func source(all []Result, claim string) string {
	page, _, _ := strings.Cut(claim, "/")
	for i := range all {
		if all[i].ID == page {
			return workOf(all[i].Source).Key
		}
	}
	return ""
}

// claimCount is how many claims of sources there are.
func claimCount(all []Result) int {
	n := -countOf(OurFinding, all...)
	for i := range all {
		n += len(all[i].Outcomes)
	}
	return n
}

// withoutPages leaves out of places on which pages they are: those are on the site.
func withoutPages(where string) string {
	return regexp.MustCompile(` \(from [^)]*\)`).ReplaceAllString(where, "")
}

// A point is what a reader of a source is told of one or more of its claims.
type point struct {
	verdict Verdict
	source  string
	where   []string
	text    string
}

// advice is what readers should know of the gravest verdicts that are not shown elsewhere:
// nothing is said twice.
func advice(all []Result, shown map[string]bool) []point {
	var out []point
	for _, o := range grave(all...) {
		text := o.Reader
		if text == "" {
			text = o.Text
		}
		source := source(all, o.ID)
		i := slices.IndexFunc(out, func(p point) bool { return p.source == source && p.text == text })
		switch {
		case shown[o.ID] || o.Verdict == Misprint || o.Verdict == NotReproduced: // named only
		case i < 0:
			out = append(out, point{o.Verdict, source, []string{o.Where}, text})
		case !slices.Contains(out[i].where, o.Where):
			out[i].where = append(out[i].where, o.Where)
		}
	}
	return out
}

// marked makes grave verdicts easy to find in a column.
func marked(v Verdict) string {
	if v.Grave() {
		return "**" + string(v) + "**"
	}
	return string(v)
}

// markdown makes text safe in a line or a cell of a table: what Markdown would read as a mark
// is shown as it is.
func markdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`,
		"<", "&lt;", ">", "&gt;", "&", "&amp;", "|", `\|`, "~", `\~`).Replace(oneLine(s))
}
