package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the tables for a terminal.
func (r Page) WriteText(w io.Writer) error {
	for i, t := range r.Tables {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := t.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// shown is the table as a terminal or a page has it, with text that is safe to show.
func (t Table) shown(terminal bool) (Table, error) {
	if t.of == nil {
		return t.clean()
	}
	c := *t.of
	c.Title = t.Title
	return c.table(terminal), nil
}

// clean is the table with text that is safe to show. Rows must be as long as the head.
func (t Table) clean() (Table, error) {
	all := func(in []string) []string {
		out := make([]string, len(in))
		for i, s := range in {
			out[i] = Clean(s)
		}
		return out
	}
	out := Table{Title: Clean(t.Title), Head: all(t.Head), Text: t.Text, Notes: all(t.Notes)}
	for _, group := range t.Groups {
		c := Group{Head: Clean(group.Head)}
		for i, row := range group.Rows {
			if len(row) != len(t.Head) {
				return Table{}, fmt.Errorf("report: table %q: row %d of %s has %d cells, the head %d",
					t.Title, i, group.Head, len(row), len(t.Head))
			}
			c.Rows = append(c.Rows, all(row))
		}
		out.Groups = append(out.Groups, c)
	}
	return out, nil
}

// WriteText writes the table as plain text, columns aligned. On a Screen it fits the width.
func (t Table) WriteText(w io.Writer) error {
	t, err := t.shown(true)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	width, bold, dim := screenOf(w)
	if t.Title != "" {
		fmt.Fprintln(out, bold(t.Title))
	}
	rows := [][]string{t.Head} // all groups together: they have the same columns
	for _, group := range t.Groups {
		rows = append(rows, group.Rows...)
	}
	chunks := aligned(rows, t.Numbers, width)
	at := 1
	for _, group := range t.Groups {
		fmt.Fprintf(out, "\n%s\n", bold(strings.Join(within(group.Head, width), "\n")))
		for i, lines := range chunks {
			if i > 0 {
				fmt.Fprintln(out)
			}
			fmt.Fprintln(out, dim(lines[0]))
			for _, l := range lines[at : at+len(group.Rows)] {
				fmt.Fprintln(out, l)
			}
		}
		at += len(group.Rows)
	}
	if len(t.Notes) > 0 {
		fmt.Fprintln(out)
	}
	for _, n := range t.Notes {
		fmt.Fprintln(out, strings.Join(within(n, width), "\n"))
	}
	return out.Flush()
}

// What follows is for page.html.

// Numbers says whether a column is of numbers.
func (t Table) Numbers(column int) bool {
	return column >= t.Text && (column != t.verdict || t.verdict == 0)
}

// Class is a cell's class in the page, empty if it has none.
func (t Table) Class(column int, cell string) string {
	switch {
	case t.Numbers(column):
		return "n"
	case column == 0 && (t.verdict > 0 || len(cell) > 20 && len(t.Head) > t.Text):
		return "name"
	case t.verdict > 0 && column == t.verdict:
		return "verdict"
	case len(cell) > 40:
		return "long"
	}
	return ""
}

// Named says whether any column has a head.
func (t Table) Named() bool { return strings.Join(t.Head, "") != "" }

// Best and Void are what a comparison says of a row.
func (g Group) Best(row int) bool { return row < len(g.of) && g.of[row].Best }
func (g Group) Void(row int) bool { return row < len(g.of) && g.of[row].Void }
