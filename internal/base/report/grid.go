package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the tables and grids for a terminal.
func (r Report) WriteText(w io.Writer) error {
	for i, t := range r.Tables {
		if err := apart(w, i > 0); err != nil {
			return err
		}
		if err := t.WriteText(w); err != nil {
			return err
		}
	}
	for i, g := range r.Grids {
		if err := apart(w, i > 0 || len(r.Tables) > 0); err != nil {
			return err
		}
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// apart is an empty line, if there is something to keep apart.
func apart(w io.Writer, yes bool) error {
	if !yes {
		return nil
	}
	_, err := fmt.Fprintln(w)
	return err
}

// clean is the grid with text that is safe to show. Rows must be as long as the head.
func (g Grid) clean() (Grid, error) {
	all := func(in []string) []string {
		out := make([]string, len(in))
		for i, s := range in {
			out[i] = Clean(s)
		}
		return out
	}
	out := Grid{Title: Clean(g.Title), Head: all(g.Head), Text: g.Text, Notes: all(g.Notes)}
	for _, group := range g.Groups {
		c := GridGroup{Head: Clean(group.Head)}
		for i, row := range group.Rows {
			if len(row) != len(g.Head) {
				return Grid{}, fmt.Errorf("report: grid %q: row %d of %s has %d cells, the head %d",
					g.Title, i, group.Head, len(row), len(g.Head))
			}
			c.Rows = append(c.Rows, all(row))
		}
		out.Groups = append(out.Groups, c)
	}
	return out, nil
}

// WriteText writes the grid for a terminal: plain text, columns aligned.
func (g Grid) WriteText(w io.Writer) error {
	g, err := g.clean()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if g.Title != "" {
		fmt.Fprintln(out, g.Title)
	}
	widths := make([]int, len(g.Head))
	measure := func(row []string) {
		for i, s := range row {
			widths[i] = max(widths[i], columns(s))
		}
	}
	measure(g.Head)
	for _, group := range g.Groups {
		for _, row := range group.Rows {
			measure(row)
		}
	}
	line := func(row []string) {
		var b strings.Builder
		for i, s := range row {
			gap := strings.Repeat(" ", widths[i]-columns(s))
			if i < g.Text {
				b.WriteString("  " + s + gap)
			} else {
				b.WriteString("  " + gap + s)
			}
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
	for _, group := range g.Groups {
		fmt.Fprintf(out, "\n%s\n", group.Head)
		line(g.Head)
		for _, row := range group.Rows {
			line(row)
		}
	}
	if len(g.Notes) > 0 {
		fmt.Fprintln(out)
	}
	for _, n := range g.Notes {
		fmt.Fprintln(out, n)
	}
	return out.Flush()
}
