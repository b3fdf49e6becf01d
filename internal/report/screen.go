package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Screen is a terminal. What is written to one fits its width, and may have colours; what goes to
// any other writer, such as a pipe or a file, has every table whole and nothing but text.
type Screen interface {
	io.Writer
	Columns() int  // how many columns it has
	Colored() bool // it shows colours, and they are wanted
}

// screenOf is the width of w, 0 if it has none, and how it shows headings.
func screenOf(w io.Writer) (width int, bold, dim func(string) string) {
	bold = func(s string) string { return s }
	dim = bold
	s, ok := w.(Screen)
	if !ok {
		return 0, bold, dim
	}
	if s.Colored() {
		style := func(code string) func(string) string {
			return func(s string) string {
				if s == "" {
					return s
				}
				return "\x1b[" + code + "m" + s + "\x1b[0m"
			}
		}
		bold, dim = style("1"), style("2")
	}
	return max(s.Columns(), leastScreen), bold, dim
}

const (
	leastScreen = 40 // narrower screens are written to as if they had this width
	leastCell   = 24 // a word in a cell that takes more may be broken
)

// folded breaks text at spaces into lines of a width, indented as it is, and words that are longer
// wherever they must.
func folded(text string, width int) []string {
	body := strings.TrimLeft(text, " ")
	indent := text[:len(text)-len(body)]
	width = max(width-len(indent), 1)
	lines := []string{""}
	last := func() *string { return &lines[len(lines)-1] }
	for word := range strings.FieldsSeq(text) {
		switch {
		case *last() == "":
			*last() = word
		case columns(*last())+1+columns(word) <= width:
			*last() += " " + word
		default:
			lines = append(lines, word)
		}
		for columns(*last()) > width {
			rest := []rune(*last())
			n, used := 0, 0
			for ; n < len(rest) && (n == 0 || used+runeColumns(rest[n]) <= width); n++ {
				used += runeColumns(rest[n])
			}
			if n == len(rest) {
				break
			}
			*last() = string(rest[:n])
			lines = append(lines, string(rest[n:]))
		}
	}
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	return lines
}

// aligned is rows of cells as lines. If they are wider than width, which 0 never is, columns of text
// are folded; if that is not enough, columns that have no room follow below, beside the first again.
// It gives one text a row, the lines of a chunk of columns after those of the one before it.
func aligned(rows [][]string, right func(column int) bool, width int) (chunks [][]string) {
	count := 0
	for _, row := range rows {
		count = max(count, len(row))
	}
	natural, least := make([]int, count), make([]int, count)
	for _, row := range rows {
		for i, cell := range row {
			natural[i] = max(natural[i], columns(cell))
			word := columns(cell)
			if !right(i) {
				word = 0
				indent := len(cell) - len(strings.TrimLeft(cell, " "))
				for w := range strings.FieldsSeq(cell) {
					word = max(word, min(indent+columns(w), leastCell, width/2-4)) // two have room
				}
			}
			least[i] = max(least[i], word)
		}
	}
	all := make([]int, count)
	for i := range all {
		all[i] = i
	}
	if width == 0 {
		return [][]string{lined(rows, all, natural, right)}
	}
	total := func(which []int, of []int) (n int) {
		for _, i := range which {
			n += 2 + of[i]
		}
		return n
	}
	for len(all) > 0 {
		n := len(all)
		for n > 2 && total(all[:n], least) > width {
			n--
		}
		some := all[:n]
		limit, widths := 0, slices.Clone(natural)
		for _, i := range some {
			limit = max(limit, natural[i])
		}
		for ; limit > 0 && total(some, widths) > width; limit-- {
			for _, i := range some {
				widths[i] = min(natural[i], max(least[i], limit))
			}
		}
		chunks = append(chunks, lined(rows, some, widths, right))
		if n == len(all) {
			break
		}
		all = append([]int{0}, all[n:]...)
	}
	return chunks
}

// lined is rows with cells folded to widths.
func lined(rows [][]string, which, widths []int, right func(int) bool) []string {
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		cells, height := make([][]string, len(which)), 1
		for j, i := range which {
			if i < len(row) {
				cells[j] = []string{row[i]}
				if columns(row[i]) > widths[i] {
					cells[j] = folded(row[i], widths[i])
				}
				height = max(height, len(cells[j]))
			}
		}
		lines := make([]string, height)
		for h := range lines {
			var b strings.Builder
			for j, i := range which {
				text := ""
				if h < len(cells[j]) {
					text = cells[j][h]
				}
				gap := strings.Repeat(" ", max(widths[i]-columns(text), 0))
				if right(i) {
					b.WriteString("  " + gap + text)
				} else {
					b.WriteString("  " + text + gap)
				}
			}
			lines[h] = strings.TrimRight(b.String(), " ")
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return out
}

// Columns aligns cells that end in tabs, as text/tabwriter does with two spaces between columns. On a
// Screen it folds those that have no room.
type Columns struct {
	*tabwriter.Writer
	to    io.Writer
	lines bytes.Buffer // of a screen
	width int
}

// NewColumns aligns what is written to w. Flush writes it.
func NewColumns(w io.Writer) *Columns {
	width, _, _ := screenOf(w)
	return &Columns{Writer: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), to: w, width: width}
}

// Write implements io.Writer.
func (c *Columns) Write(p []byte) (int, error) {
	if c.width == 0 {
		return c.Writer.Write(p)
	}
	return c.lines.Write(p)
}

// Flush writes what was written so far.
func (c *Columns) Flush() error {
	if c.width == 0 {
		return c.Writer.Flush()
	}
	var out strings.Builder
	var block [][]string
	end := func() {
		if len(block) > 0 {
			chunks := aligned(block, func(int) bool { return false }, c.width+2)
			for _, lines := range chunks {
				for _, l := range lines {
					for line := range strings.SplitSeq(l, "\n") {
						fmt.Fprintln(&out, strings.TrimPrefix(line, "  "))
					}
				}
			}
			block = nil
		}
	}
	for line := range strings.Lines(c.lines.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			block = append(block, strings.Split(line, "\t"))
			continue
		}
		end()
		fmt.Fprintln(&out, strings.Join(within(line, c.width), "\n"))
	}
	end()
	c.lines.Reset()
	_, err := io.WriteString(c.to, out.String())
	return err
}

// within is a line of prose as lines of a width, which is 0 if it has none.
func within(line string, width int) []string {
	if width == 0 || columns(line) <= width {
		return []string{line}
	}
	return folded(line, width)
}

// WriteLines writes lines of prose, which fit a Screen.
func WriteLines(w io.Writer, lines ...string) error {
	width, _, _ := screenOf(w)
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintln(&b, strings.Join(within(l, width), "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
