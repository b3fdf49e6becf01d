package paper

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes what was found of all figures in the directory, as docs/reproduction.md has it: speeds, which are measured now, what failed and
// why, every claim, what the sources leave open, and times.
func (r *Reproduction) WriteMarkdown(ctx context.Context, w io.Writer) error {
	loop, batched, err := speeds(ctx)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	t, rounds := total(r.All)
	line("# Reproduction of the sources\n")
	line("Made by `%s --markdown FILE`, in %s, by Sotto %s. The same command makes a site with every figure,", command(r.Preset, "", r.ids()...), took(t.Seconds), markdown(r.Build.String()))
	line("its settings, seeds and data, and `claims.csv`. [sources.md](sources.md) says what the numbers stand for.\n")
	line("A check is decided by an interval at level %g %%, over all cells that it speaks of. What its answer means for the claim is the verdict. Claims are in our words.\n", 100*Level)
	line("| verdict | means |")
	line("|---|---|")
	for _, v := range Verdicts() {
		line("| %s | %s |", v, v.Means())
	}
	line("")
	if len(r.Left) > 0 {
		line("**Not finished: %s are left.**\n", markdown(strings.Join(r.Left, ", ")))
	}
	line("| source | figures | %s | time |", strings.Join(words(Verdicts()), " | "))
	line("|---|---%s|---|", strings.Repeat("|---", len(Verdicts())))
	sum := func(name string, results []Result) {
		row := ""
		for _, v := range Verdicts() {
			n := 0
			for i := range results {
				n += results[i].Count(v)
			}
			row += fmt.Sprintf(" %d |", n)
		}
		t, _ := total(results)
		line("| %s | %d |%s %s |", name, len(results), row, took(t.Seconds))
	}
	for _, g := range bySource(r.All) {
		sum(g[0].Source, g)
	}
	sum("all", r.All)

	line("\n## Speed\n")
	line("The published programs play %s to %s rounds a second, one by one, in Python. On the machine that made this page:\n", short(pythonSlow), short(pythonFast))
	line("| what | rounds a second | times Python |")
	line("|---|---|---|")
	speed := func(what string, x float64) {
		line("| %s | %s | %s to %s |", what, millions(x), times(x/pythonFast), times(x/pythonSlow))
	}
	work := fmt.Sprintf("AdaP-UCB on %d arms, ε = 1, T = %s, one core", len(baselineMeans), whole(baselineHorizon))
	speed("our own loop, round by round: "+work, loop)
	speed("package `sim`: the same", batched)
	if rounds > 0 && t.Playing > 0 {
		if part, seconds := upTo(r.All, 10_000_000); part > 0 && seconds > 0 {
			speed(fmt.Sprintf("the experiments of this page with horizons up to %s: %s rounds in %s, %.2g workers", whole(10_000_000), millions(part), took(seconds), t.Worker/t.Playing), part/seconds)
		}
		speed(fmt.Sprintf("all of them, %s rounds in %s", millions(rounds), took(t.Playing)), rounds/t.Playing)
	}
	line("\nPackage `sim` is %s times as fast as the loop on the same work, with the same law: it draws the sum of a batch at once. Policies that decide in each round, such as DP-UCB, gain less", times(batched/loop))
	line("and take most of the time above; at horizons of 10^8 and more nearly all rounds are in few batches, so that the last row says little.")

	section := func(head string, verdict Verdict) {
		line("\n## %s\n", head)
		n := 0
		for i := range r.All {
			f := &r.All[i]
			if f.Failed != "" && verdict == Errored {
				n++
				line("- **%s** went wrong: %s", markdown(f.ID), markdown(f.Failed))
			}
			for _, c := range f.Outcomes {
				if c.Verdict != verdict {
					continue
				}
				n++
				line("- **%s** (%s): %s", markdown(c.ID), markdown(c.Where), markdown(c.Text))
				if text := found(c.Finding); text != "" {
					line("  Found: %s", text)
				}
				for _, more := range []struct{ head, text string }{{"Proof", c.Proof}, {"Why", c.Why}, {"For a reader", c.Reader}} {
					if more.text != "" {
						line("  *%s:* %s", more.head, markdown(more.text))
					}
				}
			}
		}
		if n == 0 {
			line("Nothing.")
		}
	}
	for _, v := range Verdicts() {
		if v.Grave() && (v != Errored || slices.ContainsFunc(r.All, func(f Result) bool { return f.wrong() })) {
			section(strings.ToUpper(string(v[:1]))+string(v[1:]), v)
		}
	}

	line("\n## All claims")
	for _, g := range bySource(r.All) {
		line("\n### %s\n", g[0].Source)
		line("| claim | what it says | verdict | statistic | %g %% interval | runs | decided by |", 100*Level)
		line("|---|---|---|---|---|---|---|")
		for i := range g {
			for _, c := range g[i].Outcomes {
				runs := ""
				if c.Runs > 0 {
					runs = whole(c.Runs)
				}
				line("| %s | %s | %s | %s | %s | %s | %s |", markdown(c.ID), markdown(c.Text), marked(c.Verdict), short(c.Value), intervalText(c.Finding), runs, markdown(c.Statistic))
			}
		}
	}

	notes := func(head string, text func(f *Result) string) {
		line("\n## %s\n", head)
		n := 0
		for i := range r.All {
			if s := text(&r.All[i]); s != "" {
				n++
				line("- **%s** (%s): %s", markdown(r.All[i].ID), markdown(r.All[i].Where), markdown(s))
			}
		}
		if n == 0 {
			line("Nothing.")
		}
	}
	notes("What the sources leave open, and what we chose", func(f *Result) string { return f.Chosen })
	notes("Settings that void a guarantee", func(f *Result) string { return f.Voids })
	for i := range r.All {
		if len(r.All[i].Notes) > 0 {
			notes("Notes", func(f *Result) string { return strings.Join(f.Notes, " ") })
			break
		}
	}

	line("\n## Times\n")
	line("| figure | title | time | rounds |")
	line("|---|---|---|---|")
	for i := range r.All {
		f := &r.All[i]
		played := ""
		if f.Rounds > 0 {
			played = millions(f.Rounds)
		}
		line("| %s | %s | %s | %s |", markdown(f.ID), markdown(f.Title), took(f.Time.Seconds), played)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// upTo is what was played in experiments whose horizon is at most so long, and its time. Beyond, nearly all rounds are in batches whose number grows with log T: to count
// them says little.
func upTo(all []Result, horizon int) (rounds, seconds float64) {
	for i := range all {
		for _, s := range all[i].Settings {
			if took, ok := all[i].Time.Experiments[s.Name]; ok && s.Played && s.Horizon <= horizon {
				rounds += s.Rounds
				seconds += took
			}
		}
	}
	return rounds, seconds
}

// found tells the numbers and the detail of a finding in one line.
func found(f Finding) string {
	parts := []string{}
	for _, s := range []string{numbersText(f), markdown(f.Detail)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + "."
}

func words(verdicts []Verdict) []string {
	out := make([]string, len(verdicts))
	for i, v := range verdicts {
		out[i] = string(v)
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

// times writes a ratio with two or three digits.
func times(x float64) string {
	if x >= 1e6 {
		return millions(x)
	}
	if x >= 100 {
		return thousands(fmt.Sprintf("%.0f", x))
	}
	return fmt.Sprintf("%.2g", x)
}

// markdown makes text safe in a line or a cell of a table: what Markdown would read as a mark is shown as it is.
func markdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "|", `\|`, "~", `\~`).Replace(oneLine(s))
}
