package report

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
)

// face is the letters of an SVG: those that its reader has.
const face = "Helvetica, Arial, 'Liberation Sans', sans-serif"

// WriteSVG draws the figure as a standalone SVG: text as text, no script, no reference to anything
// outside, and one style sheet, which makes it dark on screens whose reader asks for that. Each
// series is a group with the id "ID-s0", "ID-s1", … and data-series, so that a page can find it.
// Equal figures give equal bytes. The error says what cannot be drawn: an ID that is no file name,
// lengths that differ, X that does not increase, no series.
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

// svg is the drawing as SVG, of so many pixels as it has units.
func (l *layout) svg() []byte { return l.sized(px(l.width), px(l.height)) }

// sized is the drawing as SVG of a size.
func (l *layout) sized(width, height string) []byte {
	d := &svgCanvas{}
	id := l.id
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" width="%v" height="%v" role="img" `+
		`aria-labelledby="%v-title %v-desc" font-family="%v">`+"\n", l.width, l.height, width, height,
		id, id, face)
	d.f(`<title id="%v-title">%v</title>`+"\n", id, esc(cmp.Or(Clean(l.f.Title), l.f.ID)))
	d.f(`<desc id="%v-desc">%v</desc>`+"\n", id, esc(l.describe()))
	d.f("<style>%v</style>\n", dark())
	d.f(`<rect width="%v" height="%v" fill="%v"/>`+"\n", l.width, l.height, ground.light())
	l.draw(d)
	d.f("</svg>\n")
	return d.Bytes()
}

// dark is the style sheet of the dark. Colours are attributes, as programs that know no style sheets
// need them, and rules go before attributes. A page that is paper, and what is printed, stay light.
func dark() string {
	var b strings.Builder
	b.WriteString("@media screen and (prefers-color-scheme: dark) { ")
	for c := ground; c < hue+hues; c++ {
		light, dark := c.shades()
		for _, what := range []string{"fill", "stroke"} {
			fmt.Fprintf(&b, `:root:not(.paper) [%[1]s="%[2]s"] { %[1]s: %[3]s } `, what, light, dark)
		}
	}
	b.WriteString(":root:not(.paper) .band[fill-opacity] { fill-opacity: .25 } }")
	return b.String()
}

// svgCanvas is XML under construction.
type svgCanvas struct{ bytes.Buffer }

func (d *svgCanvas) f(format string, args ...any) {
	for i, a := range args {
		if v, ok := a.(float64); ok {
			args[i] = px(v)
		}
	}
	fmt.Fprintf(d, format, args...)
}

func (d *svgCanvas) group(attributes ...string) {
	d.WriteString("<g")
	for i := 0; i+1 < len(attributes); i += 2 {
		d.f(` %v="%v"`, attributes[i], esc(attributes[i+1]))
	}
	d.WriteString(">\n")
}

func (d *svgCanvas) end() { d.WriteString("</g>\n") }

func (d *svgCanvas) path(p path) {
	d.WriteString("<path")
	if p.class != "" {
		d.f(` class="%v"`, p.class)
	}
	d.WriteString(` d="`)
	for _, line := range p.lines {
		var x, y string
		for i, at := range line {
			toX, toY := px(at.x), px(at.y)
			switch {
			case i == 0:
				d.f("M%v %v", toX, toY)
			case toY == y:
				d.f("H%v", toX)
			case toX == x:
				d.f("V%v", toY)
			default:
				d.f("L%v %v", toX, toY)
			}
			x, y = toX, toY
		}
		if p.stroke == noColour {
			d.WriteString("Z")
		}
	}
	if p.stroke == noColour {
		d.f(`" fill="%v" fill-opacity="%v"/>`+"\n", p.fill.light(), p.opacity)
		return
	}
	d.f(`" fill="none" stroke="%v" stroke-width="%v" stroke-linejoin="round"`, p.stroke.light(), p.width)
	if p.dash != nil {
		var lengths []string
		for _, v := range p.dash {
			lengths = append(lengths, px(v))
		}
		d.f(` stroke-dasharray="%v"`, strings.Join(lengths, " "))
	}
	d.WriteString("/>\n")
}

func (d *svgCanvas) dots(at []point, r float64, fill colour) {
	d.f(`<g fill="%v">`, fill.light())
	for _, p := range at {
		d.f(`<circle cx="%v" cy="%v" r="%v"/>`, p.x, p.y, r)
	}
	d.WriteString("</g>\n")
}

func (d *svgCanvas) text(t text) {
	d.f(`<text x="%v" y="%v" font-size="%v" fill="%v"`, t.x, t.y, t.size, t.fill.light())
	if t.anchor != "" && t.anchor != "start" {
		d.f(` text-anchor="%v"`, t.anchor)
	}
	if t.bold {
		d.WriteString(` font-weight="bold"`)
	}
	d.WriteString(">")
	if t.full != "" {
		d.f("<title>%v</title>", esc(t.full))
	}
	d.WriteString(esc(t.s))
	if t.raised != "" {
		d.f(`<tspan dy="%v" font-size="%v">%v</tspan>`, -raisedBy, raisedSize, esc(t.raised))
	}
	d.WriteString("</text>\n")
}

// px writes a coordinate with at most two decimals.
func px(v float64) string {
	s := words.TrimZeros(strconv.FormatFloat(v, 'f', 2, 64))
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
