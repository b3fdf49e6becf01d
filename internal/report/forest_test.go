package report_test

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/report"
)

func forest() report.Figure {
	return report.Figure{ID: "claims", Title: "Claims", XLabel: "audited/claimed", LogX: true,
		Forest: &report.Forest{Reference: 1, Says: "claimed", Least: 0.1, Most: 10, Rows: []report.Interval{
			{Name: "holds", Lo: 0.5, Mid: 0.9, Hi: 1.5, Text: "0.5 of 1", Verdict: "not refuted"},
			{Name: "hardly tested <b>", Lo: 0, Mid: 0.4, Hi: 1, Verdict: "not refuted"},
			{Name: "wrong", Lo: 2, Mid: 4, Hi: 8, Verdict: "refuted", Above: true, Wrong: true},
			{Name: "copy", Lo: 1, Mid: math.Inf(1), Hi: math.Inf(1), Verdict: "refuted", Above: true},
			{Name: "far", Lo: 20, Mid: 30, Hi: 40, Verdict: "refuted", Above: true},
		}}}
}

// A forest plot says by shapes and words what it says by colour, keeps all that it draws within its
// edges, and marks which intervals go on beyond them.
func TestForest(t *testing.T) {
	for _, narrow := range []bool{false, true} {
		var b bytes.Buffer
		write, width := forest().WriteSVG, 760.
		if narrow {
			write, width = forest().WriteNarrowSVG, 380
		}
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.Bytes())
		rows := strings.Split(b.String(), `class="interval"`)[1:]
		if len(rows) != 5 {
			t.Fatalf("%d rows", len(rows))
		}
		for i, want := range []struct {
			sign, mark string
			strokes    int // the span, the bar, and two of each arrow
		}{{"✓", "<circle", 2}, {"✓", "<circle", 3}, {"✗", `class="marker"`, 2}, {"✓", "", 4}, {"✓", "", 3}} {
			row := rows[i]
			if !strings.Contains(row, want.sign+" ") || !strings.Contains(row, want.mark) ||
				want.mark == "" && strings.Contains(row, "marker") {
				t.Errorf("row %d has not %s and %s: %s", i, want.sign, want.mark, row)
			}
			d := regexp.MustCompile(`class="span" d="([^"]*)"`).FindStringSubmatch(row)
			if d == nil || strings.Count(d[1], "M") != want.strokes {
				t.Errorf("row %d has strokes %v, want %d", i, d, want.strokes)
			}
		}
		if strings.Count(b.String(), "#b00020") <= 2 || strings.Contains(rows[0], "#b00020") {
			t.Error("what is wrong is not told by colour, or what is right is")
		}
		for _, m := range regexp.MustCompile(`[MHL]\s*(-?[0-9.]+)`).FindAllStringSubmatch(b.String(), -1) {
			if x, err := strconv.ParseFloat(m[1], 64); err != nil || x < 0 || x > width {
				t.Errorf("something is drawn at %s of %v", m[1], width)
			}
		}
		if !strings.Contains(b.String(), "wrong: from 2 to 8, refuted, which it must not be.") {
			t.Error("it does not say in words what it shows")
		}
	}
	for _, format := range []report.Format{report.PDF, report.PNG} {
		if b := drawn(t, forest(), format, report.Drawing{}); !bytes.Equal(b, drawn(t, forest(), format, report.Drawing{})) {
			t.Errorf("two drawings as %s differ", format)
		}
	}
	page := html(t, report.Page{Name: "audit", FiguresFirst: true, Figures: []report.Figure{forest()},
		Tables: []report.Table{table().Table()}})
	selfContained(t, page, 1)
	if bytes.Index(page, []byte("<figure")) > bytes.Index(page, []byte("<table")) {
		t.Error("the figure is not before the table")
	}
}

func TestBadForests(t *testing.T) {
	for want, change := range map[string]func(*report.Figure){
		"has no rows":                         func(f *report.Figure) { f.Forest.Rows = nil },
		"the axis is from 0 by 1 to 10":       func(f *report.Figure) { f.Forest.Least = 0 },
		"the interval is from NaN to 1.5":     func(f *report.Figure) { f.Forest.Rows[0].Lo = math.NaN() },
		"the interval is from 2 to 1.5, must": func(f *report.Figure) { f.Forest.Rows[0].Lo = 2 },
		"has both series and a forest":        func(f *report.Figure) { f.Series = small().Series },
	} {
		f := forest()
		change(&f)
		var b bytes.Buffer
		if err := f.WriteSVG(&b); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("%v, want %q and nothing written", err, want)
		}
	}
}
