package report_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/sotto-dp/sotto/internal/report"
)

// A screen is one that remembers what it was sent.
type screen struct {
	bytes.Buffer
	width   int
	colored bool
}

func (s *screen) Columns() int  { return s.width }
func (s *screen) Colored() bool { return s.colored }

var style = regexp.MustCompile("\x1b\\[[0-9]+m")

// widest is the longest line, without styles; all letters of the tests have one column.
func widest(text string) (n int) {
	for line := range strings.SplitSeq(style.ReplaceAllString(text, ""), "\n") {
		n = max(n, len([]rune(line)))
	}
	return n
}

func wide() report.Table {
	row := []string{"subject " + strings.Repeat("x", 30), "a long text of many words, which has to be folded",
		strings.Repeat("unbreakable", 4)}
	head := []string{"name", "what", "key"}
	for i := range 12 {
		head, row = append(head, fmt.Sprintf("T = 1e%d", i)), append(row, fmt.Sprintf("%d.%d", 1000*i, i))
	}
	return report.Table{Title: "Title", Head: head, Text: 3, Groups: []report.Group{
		{Head: strings.Repeat("group ", 30), Rows: [][]string{row, row}}}, Notes: []string{strings.Repeat("note ", 60)}}
}

// Tables fit a screen, and nothing of them is lost: words and numbers are those of a pipe.
func TestTablesFitScreens(t *testing.T) {
	var pipe bytes.Buffer
	if err := wide().WriteText(&pipe); err != nil {
		t.Fatal(err)
	}
	if widest(pipe.String()) < 200 || style.MatchString(pipe.String()) {
		t.Errorf("a pipe has %d columns: %q", widest(pipe.String()), pipe.String())
	}
	for _, width := range []int{40, 80, 120, 200} {
		for _, colored := range []bool{false, true} {
			s := &screen{width: width, colored: colored}
			if err := wide().WriteText(s); err != nil {
				t.Fatal(err)
			}
			text := s.String()
			if got := widest(text); got > width {
				t.Errorf("%d columns on a screen of %d:\n%s", got, width, text)
			}
			if style.MatchString(text) != colored {
				t.Errorf("colours are %v: %q", colored, text)
			}
			letters := strings.Join(strings.Fields(style.ReplaceAllString(text, "")), "")
			for i := range 12 {
				if n := strings.Count(letters, fmt.Sprintf("%d.%d", 1000*i, i)); n < 2 {
					t.Errorf("at %d columns the numbers of column %d are there %d times", width, i, n)
				}
			}
		}
	}
}

// Cells that end in tabs are text/tabwriter's in a pipe, and fit a screen.
func TestColumnsFitScreens(t *testing.T) {
	text := "head\n  a\tshort\n  longer\t" + strings.Repeat("many words ", 30) + "\n\n" + strings.Repeat("prose ", 40) + "\n" +
		"1\t2\t3\n"
	var pipe, same bytes.Buffer
	w, want := report.NewColumns(&pipe), tabwriter.NewWriter(&same, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, text)
	fmt.Fprint(want, text)
	if w.Flush() != nil || want.Flush() != nil || pipe.String() != same.String() {
		t.Errorf("a pipe has %q, want %q", pipe.String(), same.String())
	}
	for _, width := range []int{40, 80} {
		s := &screen{width: width}
		w := report.NewColumns(s)
		fmt.Fprint(w, text)
		if err := w.Flush(); err != nil || widest(s.String()) > width ||
			strings.Join(strings.Fields(s.String()), " ") != strings.Join(strings.Fields(text), " ") {
			t.Errorf("at %d columns, error %v:\n%s", width, err, s.String())
		}
	}
	s := &screen{width: 400}
	w = report.NewColumns(s)
	fmt.Fprint(w, text)
	if err := w.Flush(); err != nil || strings.ReplaceAll(s.String(), " \n", "\n") != strings.ReplaceAll(same.String(), " \n", "\n") {
		t.Errorf("a wide screen has\n%s, want\n%s", s.String(), same.String())
	}
}

// Whatever a cell has, a table fits or is the least that its numbers need, and does not panic.
func FuzzScreen(f *testing.F) {
	f.Add("a b c", "  indented text", 40, 3)
	f.Add("", "\t\n", 0, -1)
	f.Add("漢字 漢字", strings.Repeat("x", 100), 41, 9)
	f.Fuzz(func(t *testing.T, a, b string, width, n int) {
		s := &screen{width: width % 500}
		table := report.Table{Head: []string{a, b, "n"}, Text: 2,
			Groups: []report.Group{{Head: b, Rows: [][]string{{b, a, "1"}, {a, a, "2"}}}}, Notes: []string{a + b}}
		if err := table.WriteText(s); err != nil {
			t.Fatal(err)
		}
		w := report.NewColumns(s)
		fmt.Fprintf(w, "%s\t%s\n%s\n", a, b, a)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	})
}
