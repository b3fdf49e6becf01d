package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The colours are those of Okabe and Ito (Color Universal Design, 2008) without yellow, which is
// too light for a line on white. Dashes tell the lines apart without colour. Five and seven have no
// common divisor, so 35 lines look different.
func colour(i int) string {
	return [...]string{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"}[i%7]
}

func dash(i int) string {
	return [...]string{"", "7 3", "2 2.5", "9 3 2 3", "9 3 2 3 2 3"}[i%5]
}

const (
	ink    = "#1a1a1a"
	quiet  = "#5a5a5a"
	grid   = "#e3e3e3"
	danger = "#b00020"
	face   = "Helvetica, Arial, 'Liberation Sans', sans-serif"
)

// WriteSVG draws the figure as a standalone SVG: white ground, text as text, no style sheet, no
// script, no reference to anything outside. Each series is a group with the id "ID-s0", "ID-s1",
// … and data-series, so that a page can find it. Equal figures give equal bytes. The error says
// what cannot be drawn: an ID that is no file name, lengths that differ, X that does not
// increase, no series.
func (f Figure) WriteSVG(w io.Writer) error { return f.write(w, false) }

// WriteNarrowSVG draws the figure as WriteSVG does, half as wide, with its labels below in the order
// of the series: for the screen of a phone. Its IDs end in "-narrow", so that a page can have both.
func (f Figure) WriteNarrowSVG(w io.Writer) error { return f.write(w, true) }

func (f Figure) write(w io.Writer, narrow bool) error {
	l, err := f.plan(narrow)
	if err != nil {
		return err
	}
	if _, err := w.Write(l.svg()); err != nil {
		return fmt.Errorf("report: write figure %s: %w", f.ID, err)
	}
	return nil
}

// drawing is XML under construction.
type drawing struct{ bytes.Buffer }

func (d *drawing) f(format string, args ...any) {
	for i, a := range args {
		if v, ok := a.(float64); ok {
			args[i] = px(v)
		}
	}
	fmt.Fprintf(d, format, args...)
}

// px writes a coordinate with at most two decimals.
func px(v float64) string {
	s := trimZeros(strconv.FormatFloat(v, 'f', 2, 64))
	if s == "-0" {
		return "0"
	}
	return s
}

// esc makes text safe in XML, in text and in attributes.
func esc(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}

// text draws one line of text.
func (d *drawing) text(x, y, size float64, anchor, fill, more, s string) {
	if anchor != "" {
		anchor = ` text-anchor="` + anchor + `"`
	}
	d.f(`<text x="%v" y="%v" font-size="%v" fill="%v"%v%v>%v</text>`+"\n", x, y, size, fill, anchor,
		more, esc(s))
}

// tick draws the label of a tick, its exponent raised.
func (d *drawing) tick(x, y float64, anchor string, t tick) {
	d.f(`<text x="%v" y="%v" text-anchor="%v">%v`, x, y, anchor, esc(t.text))
	if t.sup != "" {
		d.f(`<tspan dy="-5" font-size="9">%v</tspan>`, esc(t.sup))
	}
	d.f("</text>\n")
}

// svg draws what plan has placed.
func (l *layout) svg() []byte {
	d := &drawing{}
	id := l.id
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" width="%v" height="%v" role="img" aria-labelledby="%v-title %v-desc" font-family="%v">`+"\n",
		l.width, l.height, l.width, l.height, id, id, face)
	d.f(`<title id="%v-title">%v</title>`+"\n", id, esc(Clean(l.f.Title)))
	d.f(`<desc id="%v-desc">%v</desc>`+"\n", id, esc(l.describe()))
	d.f(`<rect width="%v" height="%v" fill="#ffffff"/>`+"\n", l.width, l.height)

	y := float64(margin)
	for _, s := range l.title {
		y += titleSize + 4
		d.text(margin, y-6, titleSize, "", ink, ` font-weight="bold"`, s)
	}
	for _, s := range l.subtitle {
		y += textSize + 4
		d.text(margin, y-5, textSize, "", quiet, "", s)
	}
	if l.f.YLabel != "" {
		d.text(margin, l.top-12, textSize, "", ink, "", fit(Clean(l.f.YLabel), (l.width-2*margin)/textSize))
	}
	l.axes(d)
	l.marks(d)
	for i := range l.f.Series {
		l.series(d, i)
	}
	y = l.bottom + 22
	if l.f.XLabel != "" {
		y += textSize + 6
		d.text((l.left+l.right)/2, y-2, textSize, "middle", ink, "",
			fit(Clean(l.f.XLabel), (l.right-l.left)/textSize))
	}
	if l.narrow {
		for _, b := range l.labels {
			y += b.height()
		}
		y += 6
	}
	for _, s := range l.note {
		y += noteSize + 4
		d.text(margin, y+4, noteSize, "", quiet, "", s)
	}
	d.f("</svg>\n")
	return d.Bytes()
}

// axes draws grid, marks and their labels.
func (l *layout) axes(d *drawing) {
	var major, minor strings.Builder
	for _, t := range l.xTicks {
		if t.minor {
			fmt.Fprintf(&minor, "M%s %sv4", px(t.at), px(l.bottom))
		} else {
			fmt.Fprintf(&major, "M%s %sV%s", px(t.at), px(l.bottom), px(l.top))
		}
	}
	for _, t := range l.yTicks {
		if t.minor {
			fmt.Fprintf(&minor, "M%s %sh-4", px(l.left), px(t.at))
		} else {
			fmt.Fprintf(&major, "M%s %sH%s", px(l.left), px(t.at), px(l.right))
		}
	}
	if major.Len() > 0 {
		d.f(`<path d="%v" fill="none" stroke="%v"/>`+"\n", major.String(), grid)
	}
	if minor.Len() > 0 {
		d.f(`<path d="%v" fill="none" stroke="#b5b5b5" stroke-width=".7"/>`+"\n", minor.String())
	}
	d.f(`<path d="M%v %vV%vH%v" fill="none" stroke="#777777"/>`+"\n", l.left, l.top, l.bottom, l.right)
	d.f(`<g font-size="%v" fill="%v">`+"\n", textSize, ink)
	for _, t := range l.xTicks {
		if !t.minor {
			d.tick(t.at, l.bottom+18, "middle", t)
		}
	}
	for _, t := range l.yTicks {
		if !t.minor {
			d.tick(l.left-8, t.at+4.5, "end", t)
		}
	}
	d.f("</g>\n")
}

// marks draws the vertical lines, and their labels on the side that has more room.
func (l *layout) marks(d *drawing) {
	for i, m := range l.f.Marks {
		if !l.x.inside(m.X) {
			continue
		}
		x, _ := l.x.at(m.X)
		room, anchor, at := l.right-x-5, "start", x+5
		if x-l.left > l.right-x {
			room, anchor, at = x-l.left-5, "end", x-5
		}
		d.f(`<path class="mark" d="M%v %vV%v" stroke="%v" stroke-width="1.2" stroke-dasharray="1.5 3" fill="none"/>`+
			"\n", x, l.bottom, l.top, quiet)
		d.text(at, l.top+noteSize+float64(i)*(noteSize+3), noteSize, anchor, quiet, "",
			fit(Clean(m.Label), room/noteSize))
	}
}

// series draws band, line, leader and label of one series.
func (l *layout) series(d *drawing, i int) {
	s, b := l.f.Series[i], l.labels[i]
	c := colour(i)
	stroke := ""
	if dash(i) != "" {
		stroke = ` stroke-dasharray="` + dash(i) + `"`
	}
	d.f(`<g id="%v-s%d" class="series" data-series="%d" data-policy="%v" data-budget="%v">`+"\n",
		l.id, i, i, esc(Clean(s.Policy)), esc(Clean(s.Budget)))
	var line, dots strings.Builder
	points := 0
	for _, run := range l.stretches(s) {
		points += run[1] - run[0]
		if len(s.Lo) > 0 {
			l.bandPath(d, s, run, c)
		}
		for j := run[0]; j < run[1]; j++ {
			x, y, _ := l.point(s, j)
			command := "L"
			if j == run[0] {
				command = "M"
			}
			if run[1]-run[0] > 1 {
				if s.Step && j > run[0] {
					line.WriteString("H" + px(x))
				}
				line.WriteString(command + px(x) + " " + px(y))
			}
			// Few points, or one alone, are worth a mark.
			if len(s.X) <= 16 && !s.Step || run[1]-run[0] == 1 {
				fmt.Fprintf(&dots, `<circle cx="%s" cy="%s" r="3"/>`, px(x), px(y))
			}
		}
	}
	if line.Len() > 0 {
		d.f(`<path class="line" d="%v" fill="none" stroke="%v" stroke-width="2" stroke-linejoin="round"%v/>`+
			"\n", line.String(), c, stroke)
	}
	if dots.Len() > 0 {
		d.f(`<g fill="%v">%v</g>`+"\n", c, dots.String())
	}

	x := l.right + leaderWidth
	if l.narrow {
		x = margin
	} else if !b.empty && (math.Abs(b.at-b.y) > 1.5 || b.x < l.right-1) {
		d.f(`<path d="M%v %vL%v %v" stroke="#9a9a9a" stroke-width=".8" fill="none"/>`+"\n", b.x+3,
			b.y, x-3, b.at)
	}
	d.f(`<g class="label" data-series="%d">`+"\n", i)
	d.f(`<path d="M%v %vh%d" stroke="%v" stroke-width="2.5"%v fill="none"/>`+"\n", x, b.at,
		sampleWidth, c, stroke)
	x += sampleWidth + 6
	title := ""
	if b.cut {
		title = "<title>" + esc(b.full) + "</title>"
	}
	d.f(`<text x="%v" y="%v" font-size="%v" fill="%v">%v%v</text>`+"\n", x, b.at+4.5, textSize, ink,
		title, esc(b.text))
	if b.second != "" {
		fill := quiet
		if b.void {
			fill = danger
		}
		d.text(x, b.at+4.5+voidHeight, noteSize, "", fill, "", b.second)
	}
	d.f("</g>\n</g>\n")
}

// bandPath draws the band over a stretch of points: its upper end forwards, its lower end backwards.
func (l *layout) bandPath(d *drawing, s Series, run [2]int, c string) {
	var upper, lower []string
	for j := run[0]; j < run[1]; j++ {
		x, _, _ := l.point(s, j)
		lo, hi := l.band(s, j)
		if n := len(upper); s.Step && n > 0 { // what held until here
			_, above, _ := strings.Cut(upper[n-1], " ")
			_, below, _ := strings.Cut(lower[n-1], " ")
			upper, lower = append(upper, px(x)+" "+above), append(lower, px(x)+" "+below)
		}
		upper = append(upper, px(x)+" "+px(hi))
		lower = append(lower, px(x)+" "+px(lo))
	}
	if len(upper) == 1 { // a point alone has a whisker
		x, _, _ := strings.Cut(upper[0], " ")
		_, hi, _ := strings.Cut(upper[0], " ")
		_, lo, _ := strings.Cut(lower[0], " ")
		d.f(`<path class="band" d="M%v %vV%v" stroke="%v" stroke-width="1.5" fill="none"/>`+"\n", x, lo, hi, c)
		return
	}
	slices.Reverse(lower)
	path := "M" + strings.Join(upper, "L") + "L" + strings.Join(lower, "L")
	opacity := ".16"
	if len(l.f.Series) > 8 { // bands over bands turn to mud
		opacity = ".08"
	}
	d.f(`<path class="band" d="%vZ" fill="%v" fill-opacity="%v"/>`+"\n", path, c, opacity)
}

// stretches are the runs [from, to) of points that can be drawn.
func (l *layout) stretches(s Series) [][2]int {
	var runs [][2]int
	open := false
	for j := range s.X {
		if _, _, ok := l.point(s, j); !ok {
			open = false
			continue
		}
		if !open {
			runs = append(runs, [2]int{j, j})
			open = true
		}
		runs[len(runs)-1][1] = j + 1
	}
	return runs
}

// describe tells the figure in words, for those who do not see it.
func (l *layout) describe() string {
	var b strings.Builder
	kind := func(log bool) string {
		if log {
			return " (logarithmic)"
		}
		return ""
	}
	fmt.Fprintf(&b, "Lines of %s%s against %s%s.", Clean(l.f.YLabel), kind(l.f.LogY),
		Clean(l.f.XLabel), kind(l.f.LogX))
	for _, m := range l.f.Marks {
		if l.x.inside(m.X) {
			fmt.Fprintf(&b, " A vertical line at %s: %s.", position(m.X, ""), Clean(m.Label))
		}
	}
	for _, s := range l.f.Series {
		fmt.Fprintf(&b, " %s", s.label())
		if s.Void {
			b.WriteString(" (" + NoGuarantee + ")")
		}
		last := -1
		for j := range s.X {
			if _, _, ok := l.point(s, j); ok {
				last = j
			}
		}
		if last < 0 {
			b.WriteString(": nothing to draw.")
			continue
		}
		fmt.Fprintf(&b, ": %s at %s.", Number(s.Mean[last], ""), position(s.X[last], ""))
	}
	return b.String()
}
