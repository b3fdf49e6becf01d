package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
)

// A Forest is intervals, one a row, against one reference: a forest plot. It is told without colour,
// by the shapes of its marks and by words.
type Forest struct {
	Reference float64 // a vertical line
	Says      string  // above it
	// The ends of the axis, 0 < Least < Most. An interval that goes on beyond them ends in an arrow.
	Least, Most float64
	Rows        []Interval
}

// An Interval is a row of a Forest. The lower end decides and has a bar; the upper one has none.
type Interval struct {
	Name         string
	Lo, Mid, Hi  float64 // +Inf is allowed; a Mid that is NaN is not drawn
	Text         string  // beside the plot: the numbers
	Verdict      string
	Above, Wrong bool // of the reference: a diamond, not a dot; and the verdict must not be so
}

// Sizes of a forest plot, in the layout's units.
const (
	rowHeight    = 19.0
	narrowRow    = 35.0
	mostNameEm   = 27.0
	columnGap    = 14.0
	arrowLength  = 6.0
	forestLabels = noteSize + 6 // above the plot: what the reference is
)

// check refuses what cannot be drawn.
func (p *Forest) check(id string) error {
	if len(p.Rows) == 0 {
		return fmt.Errorf("report: figure %s: has no rows", id)
	}
	if !(p.Least > 0 && p.Least < p.Reference && p.Reference < p.Most && p.Most <= 1e300) {
		return fmt.Errorf("report: figure %s: the axis is from %v by %v to %v, must increase from above 0",
			id, p.Least, p.Reference, p.Most)
	}
	for _, r := range p.Rows {
		if !(r.Lo <= r.Hi) {
			return fmt.Errorf("report: figure %s: row %q: the interval is from %v to %v, must not "+
				"decrease", id, Clean(r.Name), r.Lo, r.Hi)
		}
	}
	return nil
}

// placeForest places a forest plot in a frame.
func (l *layout) placeForest(in frame) error {
	f, p := l.f, l.f.Forest
	l.row = rowHeight
	if l.narrow {
		l.row = narrowRow
	}
	needed := float64(len(p.Rows))*l.row + 6
	l.top = margin + l.headHeight() + forestLabels
	l.bottom = l.top + needed
	if in.height > 0 {
		rest := l.top + l.footHeight()
		if l.bottom = in.height - rest + l.top; l.bottom < l.top+needed {
			return refused("figure %s: height is %.3g of its width, must be at least %.2f of it for "+
				"what it has to say", f.ID, in.height/in.width, math.Ceil(100*(rest+needed)/in.width)/100)
		}
	}
	l.height = l.bottom + l.footHeight()
	l.left, l.right = margin+arrowLength, l.width-margin-arrowLength
	if !l.narrow {
		names, texts := 0.0, 0.0
		for _, r := range p.Rows {
			names = max(names, min(em(Clean(r.Name)), mostNameEm)*textSize)
			texts = max(texts, em(Clean(r.Text))*noteSize)
			l.verdicts = max(l.verdicts, em(signOf(r)+r.Verdict)*textSize)
		}
		l.verdicts *= 1.04
		l.names = min(names*1.04, l.width*0.45)
		l.left += l.names + columnGap
		l.right -= texts*1.04 + l.verdicts + 2*columnGap
	}
	l.x = axis{lo: 0, hi: p.Most}
	if f.LogX {
		l.x = axis{log: true, lo: math.Log10(p.Least), hi: math.Log10(p.Most)}
	}
	l.x.from, l.x.to = l.left, l.right
	l.xTicks = l.x.ticks(5)
	return nil
}

// headHeight is that of title and subtitle, footHeight that of what is below the plot.
func (l *layout) headHeight() float64 {
	return float64(len(l.title))*(titleSize+4) + float64(len(l.subtitle))*(textSize+4)
}

func (l *layout) footHeight() float64 {
	h := 22 + margin + float64(len(l.note))*(noteSize+4)
	if l.f.XLabel != "" {
		h += textSize + 6
	}
	return h
}

// signOf says without colour whether a verdict is as it must be.
func signOf(r Interval) string {
	if r.Wrong {
		return "✗ "
	}
	return "✓ "
}

// forest draws the rows.
func (l *layout) forest(c canvas) {
	p := l.f.Forest
	at, _ := l.x.at(p.Reference)
	mark := path{class: "mark", lines: [][]point{{{at, l.bottom}, {at, l.top}}}, stroke: ink, width: 1.2}
	if l.narrow { // beside the intervals alone: names are where it would go on
		mark.lines = nil
		for i := range p.Rows {
			y := l.top + float64(i)*l.row
			mark.lines = append(mark.lines, []point{{at, y + rowHeight - 3}, {at, y + l.row - 3}})
		}
	}
	c.path(mark)
	c.text(text{x: at, y: l.top - 5, size: noteSize, anchor: "middle", fill: quiet, s: Clean(p.Says)})
	for i, r := range p.Rows {
		c.group("class", "interval", "data-row", strconv.Itoa(i))
		l.interval(c, r, l.top+float64(i)*l.row)
		c.end()
	}
}

// interval draws a row from y on.
func (l *layout) interval(c canvas, r Interval, y float64) {
	own, fill := hue, quiet
	if r.Wrong {
		own, fill = danger, danger
	}
	name, verdict := Clean(r.Name), signOf(r)+Clean(r.Verdict)
	right := l.width - margin
	room := l.names
	middle, base := y+rowHeight/2, y+rowHeight/2+4.5
	if l.narrow {
		middle, room = y+rowHeight+4, right-margin-em(verdict)*textSize*1.06-columnGap
	}
	t := text{x: margin, y: base, size: textSize, fill: ink, s: fit(name, room/textSize/1.02)}
	if t.s != name {
		t.full = name
	}
	c.text(t)
	c.text(text{x: right, y: base, size: textSize, anchor: "end", fill: fill, bold: r.Wrong, s: verdict})
	if !l.narrow {
		c.text(text{x: right - l.verdicts - columnGap, y: base, size: noteSize, anchor: "end", fill: quiet,
			s: Clean(r.Text)})
	}
	from, before := l.end(r.Lo, l.left)
	to, after := l.end(r.Hi, l.right)
	span := path{class: "span", lines: [][]point{{{from, middle}, {to, middle}}}, stroke: own, width: 1.6}
	if l.x.inside(r.Lo) { // the end that decides
		span.lines = append(span.lines, []point{{from, middle - 5}, {from, middle + 5}})
	}
	for _, side := range []struct {
		there bool
		x, by float64
	}{{before, from - arrowLength, 1}, {after, to + arrowLength, -1}} {
		if tip := side.x; side.there {
			span.lines = append(span.lines, []point{{tip + side.by*arrowLength, middle}, {tip, middle}},
				[]point{{tip + 4*side.by, middle - 3.5}, {tip, middle}, {tip + 4*side.by, middle + 3.5}})
		}
	}
	c.path(span)
	if l.x.inside(r.Mid) {
		x, _ := l.x.at(r.Mid)
		shape := marker(0)
		if r.Above {
			shape = 2
		}
		shape.draw(c, x, middle, 4, own)
	}
}

// end is where an end of an interval is drawn, and whether the interval goes on beyond the edge.
func (l *layout) end(v, edge float64) (x float64, beyond bool) {
	if l.x.inside(v) {
		x, _ = l.x.at(v)
		return x, false
	}
	high := l.x.hi
	if l.x.log {
		high = math.Pow(10, high)
	}
	if beyond = true; v > high {
		return l.right, edge == l.right
	}
	return l.left, edge == l.left
}

// describeForest tells the rows in words.
func (l *layout) describeForest() string {
	var b strings.Builder
	p := l.f.Forest
	fmt.Fprintf(&b, "Intervals of %s. A vertical line at %s: %s.", Clean(l.f.XLabel),
		words.Number(p.Reference), Clean(p.Says))
	for _, r := range p.Rows {
		fmt.Fprintf(&b, " %s: from %s to %s, %s", Clean(r.Name), bounded(r.Lo), bounded(r.Hi), Clean(r.Verdict))
		if r.Wrong {
			b.WriteString(", which it must not be")
		}
		b.WriteString(".")
	}
	return b.String()
}

// bounded is a number that may be infinite.
func bounded(v float64) string {
	if math.IsInf(v, 1) {
		return "∞"
	}
	return words.Number(v)
}
