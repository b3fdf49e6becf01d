package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/paper"
)

type reproduceCommand struct {
	IDs []string `arg:"" optional:"" name:"ID" help:"${reproduceIDs}"`

	Preset   string        `help:"${reproducePreset}" enum:"quick,paper" default:"quick"`
	Out      string        `help:"${reproduceOut}" placeholder:"DIR" type:"path"`
	Workers  flags.Workers `help:"${reproduceWorkers}" placeholder:"W"`
	Mixed    bool          `help:"Go on with what another build began, whose numbers may differ."`
	Data     string        `help:"${reproduceData}" placeholder:"DIR" type:"path"`
	Seeds    int           `help:"${reproduceSeeds}" placeholder:"N"`
	List     bool          `help:"List the figures, and how many claims each has."`
	Markdown string        `help:"${reproduceMarkdown}" placeholder:"FILE" type:"path"`
	Bundle   string        `help:"${reproduceBundle}" placeholder:"FILE" type:"path"`
	JSON     bool          `help:"As JSON, for programs."`
}

func (c *reproduceCommand) Run(ctx context.Context, s streams) error {
	figures, err := paper.Select(paper.All(), c.IDs)
	if err != nil {
		return usage(err)
	}
	switch {
	case c.List && c.JSON:
		return printJSON(s, figuresOf(figures))
	case c.List:
		return listFigures(s.out, figures)
	}
	if c.Seeds < 0 || c.Seeds > paper.MaxSeeds {
		return usagef("--seeds is %d, must be from 0 to %d", c.Seeds, paper.MaxSeeds)
	}
	flags, data := flagOf("--out", c.Out), flagOf("--data", c.Data)
	if c.Data != "" {
		if info, err := os.Stat(c.Data); err != nil || !info.IsDir() {
			return usagef("--data: %s is no directory", c.Data)
		}
	}
	if c.Out == "" {
		c.Out = filepath.Join("results", "reproduce-"+c.Preset)
	}
	var page, bundle *atomicfile.File
	if c.Bundle != "" {
		if bundle, err = pending("--bundle", c.Bundle, publicFile); err != nil {
			return err
		}
		defer bundle.Discard()
	}
	if c.Markdown != "" {
		if page, err = pending("--markdown", c.Markdown, publicFile); err != nil {
			return err
		}
		defer page.Discard() // nothing, once it has its name
	}
	p := &figureProgress{w: s.err, from: time.Now()}
	r, err := paper.Reproduce(ctx, figures, paper.Options{Out: c.Out,
		Preset: paper.Preset(c.Preset), Workers: int(c.Workers), Mixed: c.Mixed, Data: c.Data, Seeds: c.Seeds,
		Flags: flags, DataFlag: data, Progress: p.tell})
	p.end()
	switch {
	case errors.Is(err, context.Canceled):
		return interrupted("stopped; what is finished is in " + c.Out + ", and the same command goes on")
	case errors.Is(err, paper.ErrData):
		return usage(err)
	case err != nil:
		return err
	}
	if page != nil {
		if err := r.WriteMarkdown(page); err != nil {
			return err
		}
		if err := page.Replace(); err != nil {
			return fmt.Errorf("--markdown: %w", err)
		}
	}
	if bundle != nil {
		if err := r.WriteBundle(bundle); err != nil {
			return err
		}
		if err := bundle.Replace(); err != nil {
			return fmt.Errorf("--bundle: %w", err)
		}
	}
	if c.JSON {
		err = printJSON(s, claimsOf(r))
	} else if err = printClaims(s.out, r); err == nil {
		_, err = fmt.Fprintf(s.out, "\nThe page is %s, all claims are in %s.\n",
			near(filepath.Join(c.Out, "index.html")), near(filepath.Join(c.Out, "claims.csv")))
		if err == nil && c.Seeds > 0 {
			verdicts, moved := r.Moved()
			_, err = fmt.Fprintf(s.out, "Of %s with other seeds %d moved: %s has them by claim.\n",
				words.Several(verdicts, "verdict"), moved, near(filepath.Join(c.Out, "seeds.csv")))
		}
	}
	if err != nil {
		return err
	}
	if failed := r.Failed(); len(failed) > 0 {
		return fmt.Errorf("%s went wrong: %s (their pages say how)", words.Several(len(failed), "figure"),
			strings.Join(failed, ", "))
	}
	return nil
}

// flagOf is a flag as pages show it, for who plays a figure again in the same working directory.
func flagOf(name, path string) string {
	if path == "" {
		return ""
	}
	return name + " " + shellWord(near(path))
}

// near is a path as seen from the working directory, if it is in there.
func near(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// shellWord is a word for a shell, in quotes if it needs them.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+,:@%=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func listFigures(w io.Writer, figures []paper.Figure) error {
	t := report.NewColumns(w)
	fmt.Fprintln(t, "figure\tsource\tclaims\ttitle")
	n := 0
	for i := range figures {
		f := &figures[i]
		n += len(f.Claims)
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", f.ID, f.Source, len(f.Claims), f.Title)
	}
	fmt.Fprintf(t, "%s\t\t%d\t\n", words.Several(len(figures), "figure"), n)
	return t.Flush()
}

func printClaims(w io.Writer, r *paper.Reproduction) error {
	t := report.NewColumns(w)
	fmt.Fprintln(t, "claim\tverdict\tstatistic\tinterval\truns\tseconds")
	number := func(x float64) string {
		if math.IsNaN(x) {
			return "-"
		}
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	for i := range r.Results {
		f := &r.Results[i]
		for _, c := range f.Outcomes {
			interval := "[" + number(c.Low) + ", " + number(c.High) + "]"
			if math.IsNaN(c.Low) && math.IsNaN(c.High) {
				interval = "-"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%.1f\n", c.ID, c.Verdict, number(c.Value), interval,
				c.Runs, f.Time.Seconds)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", countsText(r.Count))
	return err
}

// countsText says how many claims have which verdict, the gravest first.
func countsText(count func(paper.Verdict) int) string {
	var parts []string
	for _, v := range paper.Verdicts() {
		if n := count(v); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	if len(parts) == 0 {
		return "no claims"
	}
	return strings.Join(parts, ", ")
}

// figureProgress is a bar an experiment on a terminal, and else a line an experiment and a figure.
type figureProgress struct {
	w    io.Writer
	from time.Time
	bar  *progress
}

func (p *figureProgress) tell(e paper.Event) {
	at := time.Since(p.from).Round(100 * time.Millisecond)
	switch {
	case e.Plan != nil:
		p.end()
		if bar := newProgress(p.w, e.Plan); bar.bars != nil {
			bar.name = e.Figure + " " + e.Experiment
			p.bar = bar
			return
		}
		fmt.Fprintf(p.w, "%s  %s: %s  [figure %d of %d, %s]\n", e.Figure, e.Experiment,
			words.Several(len(e.Plan.Cells), "cell"), e.I, e.N, at)
	case e.Step != nil && p.bar != nil:
		p.bar.step(*e.Step)
	case e.Done != nil:
		p.end()
		what := countsText(e.Done.Count)
		if e.Done.Failed != "" {
			what += "; error: " + e.Done.Failed
		}
		fmt.Fprintf(p.w, "%s  %s, %.1f s  [figure %d of %d, %s]\n", e.Figure, what,
			e.Done.Time.Seconds, e.I, e.N, at)
	case e.Replay > 0:
		fmt.Fprintf(p.w, "%s  seed %d: %s moved  [figure %d of %d, %s]\n", e.Figure, e.Replay,
			words.Several(e.Moved, "verdict"), e.I, e.N, at)
	}
}

func (p *figureProgress) end() {
	if p.bar != nil {
		p.bar.end()
		p.bar = nil
	}
}

// reproduceTexts are help texts that are too long for their flags.
var reproduceTexts = kong.Vars{
	"reproduceIDs": "Figures, such as thesis-5.2; sources, by the numbers in docs/sources.md, " +
		"such as 000; or how figures begin, such as " +
		"sajed. None: all of them.",
	"reproducePreset": "quick decides the robust claims in minutes, paper is the scale of the sources.",
	"reproduceOut": "Directory of the site; results/reproduce-PRESET if none is given. What is there of " +
		"the same preset is not played again.",
	"reproduceWorkers": "Runs played at a time; results do not depend on it. 0 is one a processor.",
	"reproduceData": "Directory with real data: its CSV files are played instead of the samples of the " +
		"same names, and the training files of Fashion-MNIST by thesis-7.2.",
	"reproduceSeeds": "Then play what decides a claim with so many other seeds too, and write to seeds.csv " +
		"which verdicts move.",
	"reproduceBundle": "Write one archive (tar.gz) from which every figure is drawn again without Sotto: numbers, " +
		"experiments, claims, and a program for Python's standard library.",
	"reproduceMarkdown": "Write a summary of two pages to this file too, as docs/reproduction.md is.",
}
