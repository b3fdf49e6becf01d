package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// progress is a bar on a terminal and one line a cell otherwise.
type progress struct {
	w    io.Writer
	bars *mpb.Progress
	bar  *mpb.Bar
	name string
	from time.Time
}

func newProgress(w io.Writer, plan *experiment.Resolved) *progress {
	p := &progress{w: w, name: plan.Spec.Name, from: time.Now()}
	if f, ok := w.(*os.File); ok && hasRoom(f) {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	}
	return p
}

// hasRoom says whether a file is a terminal that can show a bar: some pretend to have no rows.
func hasRoom(f *os.File) bool {
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0
}

// A screen is a terminal that programs write tables to (report.Screen).
type screen struct{ *os.File }

// onScreen is a writer as a screen, if it is a terminal.
func onScreen(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && hasRoom(f) {
		return screen{f}
	}
	return w
}

// Columns implements report.Screen.
func (s screen) Columns() int {
	width, _, err := term.GetSize(int(s.Fd()))
	if err != nil {
		return 80
	}
	return width
}

// Colored implements report.Screen.
func (s screen) Colored() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// file is what kong asks for the width of: the terminal itself.
func file(w io.Writer) io.Writer {
	if s, ok := w.(screen); ok {
		return s.File
	}
	return w
}

func (p *progress) step(s experiment.Step) {
	if p.bars == nil {
		if s.CellDone == s.CellTotal {
			fmt.Fprintf(p.w, "%s  %s  [%d of %d, %s]\n", s.Cell, words.Several(s.CellTotal, "run"),
				s.Done, s.Total, time.Since(p.from).Round(100*time.Millisecond))
		}
		return
	}
	if p.bar == nil {
		p.bar = p.bars.AddBar(int64(s.Total),
			mpb.PrependDecorators(decor.Name(p.name+" "), decor.CountersNoUnit("%d/%d runs ")),
			mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}),
				decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 8}),
				decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), "")))
	}
	p.bar.SetCurrent(int64(s.Done))
}

func (p *progress) end() {
	if p.bars == nil {
		return
	}
	if p.bar != nil && !p.bar.Completed() {
		p.bar.Abort(false)
	}
	p.bars.Wait()
}
