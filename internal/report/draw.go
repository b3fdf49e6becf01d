package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
)

// draw draws what plan has placed.
func (l *layout) draw(c canvas) {
	y := float64(margin)
	for _, s := range l.title {
		y += titleSize + 4
		c.text(text{x: margin, y: y - 6, size: titleSize, fill: ink, bold: true, s: s})
	}
	for _, s := range l.subtitle {
		y += textSize + 4
		c.text(text{x: margin, y: y - 5, size: textSize, fill: quiet, s: s})
	}
	if l.f.YLabel != "" && l.f.Forest == nil {
		c.text(text{x: margin, y: l.top - 12, size: textSize, fill: ink,
			s: fit(Clean(l.f.YLabel), (l.width-2*margin)/textSize)})
	}
	l.axes(c)
	l.marks(c)
	if l.f.Forest != nil {
		l.forest(c)
	}
	for i, s := range l.f.styles() {
		l.series(c, i, s)
	}
	y = l.bottom + 22
	if l.f.XLabel != "" {
		y += textSize + 6
		c.text(text{x: (l.left + l.right) / 2, y: y - 2, size: textSize, anchor: "middle", fill: ink,
			s: fit(Clean(l.f.XLabel), (l.right-l.left)/textSize)})
	}
	if l.narrow && l.f.Forest == nil {
		for _, b := range l.labels {
			y += b.height()
		}
		y += 6
	}
	for _, s := range l.note {
		y += noteSize + 4
		c.text(text{x: margin, y: y + 4, size: noteSize, fill: quiet, s: s})
	}
}

// axes draws grid, marks and their labels.
func (l *layout) axes(c canvas) {
	major, minor := path{stroke: grid, width: 1}, path{stroke: faint, width: 0.7}
	line := func(p *path, x1, y1, x2, y2 float64) { p.lines = append(p.lines, []point{{x1, y1}, {x2, y2}}) }
	for _, t := range l.xTicks {
		if t.minor {
			line(&minor, t.at, l.bottom, t.at, l.bottom+4)
		} else {
			line(&major, t.at, l.bottom, t.at, l.top)
		}
	}
	for _, t := range l.yTicks {
		if t.minor {
			line(&minor, l.left, t.at, l.left-4, t.at)
		} else {
			line(&major, l.left, t.at, l.right, t.at)
		}
	}
	for _, p := range []path{major, minor} {
		if len(p.lines) > 0 {
			c.path(p)
		}
	}
	frame := []point{{l.left, l.top}, {l.left, l.bottom}, {l.right, l.bottom}}
	if l.f.Forest != nil { // which begins nowhere
		frame = frame[1:]
	}
	c.path(path{stroke: axisInk, width: 1, lines: [][]point{frame}})
	for _, t := range l.xTicks {
		if !t.minor {
			c.text(text{x: t.at, y: l.bottom + 18, size: textSize, anchor: "middle", fill: ink, s: t.text,
				raised: t.sup})
		}
	}
	for _, t := range l.yTicks {
		if !t.minor {
			c.text(text{x: l.left - 8, y: t.at + 4.5, size: textSize, anchor: "end", fill: ink, s: t.text,
				raised: t.sup})
		}
	}
}

// marks draws the vertical lines, and their labels on the side that has more room.
func (l *layout) marks(c canvas) {
	for i, m := range l.f.Marks {
		if !l.x.inside(m.X) {
			continue
		}
		x, _ := l.x.at(m.X)
		room, anchor, at := l.right-x-5, "start", x+5
		if x-l.left > l.right-x {
			room, anchor, at = x-l.left-5, "end", x-5
		}
		c.path(path{class: "mark", lines: [][]point{{{x, l.bottom}, {x, l.top}}}, stroke: quiet, width: 1.2,
			dash: []float64{1.5, 3}})
		c.text(text{x: at, y: l.top + noteSize + float64(i)*(noteSize+3), size: noteSize, anchor: anchor,
			fill: quiet, s: fit(Clean(m.Label), room/noteSize)})
	}
}

// series draws band, line, leader and label of one series.
func (l *layout) series(c canvas, i int, look style) {
	s, b, own := l.f.Series[i], l.labels[i], look.colour()
	c.group("id", l.id+"-s"+strconv.Itoa(i), "class", "series", "data-series", strconv.Itoa(i),
		"data-policy", Clean(s.Policy), "data-budget", Clean(s.Budget))
	line := path{class: "line", stroke: own, width: 2, dash: look.dash}
	var dots []point // of few points, or of one alone
	for _, run := range l.stretches(s) {
		if len(s.Lo) > 0 {
			c.path(l.bandPath(s, run, own))
		}
		var piece []point
		for j := run[0]; j < run[1]; j++ {
			x, y, _ := l.point(s, j)
			if s.Step && j > run[0] { // what held until here
				piece = append(piece, point{x, piece[len(piece)-1].y})
			}
			piece = append(piece, point{x, y})
			if len(s.X) <= 16 && !s.Step || run[1]-run[0] == 1 {
				dots = append(dots, point{x, y})
			}
		}
		if len(piece) > 1 {
			line.lines = append(line.lines, piece)
		}
	}
	if len(line.lines) > 0 {
		c.path(line)
	}
	if len(dots) == 0 && len(l.f.Series) > 1 {
		dots = l.marked(i, line.lines)
	}
	if len(dots) > 0 {
		look.marker.drawAll(c, dots, markerSize, own)
	}

	x := l.right + leaderWidth
	if l.narrow {
		x = margin
	} else if !b.empty && (math.Abs(b.at-b.y) > 1.5 || b.x < l.right-1) {
		c.path(path{lines: [][]point{{{b.x + 3, b.y}, {x - 3, b.at}}}, stroke: leader, width: 0.8})
	}
	c.group("class", "label", "data-series", strconv.Itoa(i))
	c.path(path{lines: [][]point{{{x, b.at}, {x + sampleWidth, b.at}}}, stroke: own, width: 2.5,
		dash: look.dash})
	if len(l.f.Series) > 1 {
		look.marker.draw(c, x+sampleWidth/2, b.at, markerSize, own)
	}
	x += sampleWidth + 6
	t := text{x: x, y: b.at + 4.5, size: textSize, fill: ink, s: b.text}
	if b.cut {
		t.full = b.full
	}
	c.text(t)
	if b.second != "" {
		fill := quiet
		if b.void {
			fill = danger
		}
		c.text(text{x: x, y: b.at + 4.5 + voidHeight, size: noteSize, fill: fill, s: b.second})
	}
	c.end()
	c.end()
}

// bandPath is the band over a stretch of points: its upper end forwards, its lower end backwards. A
// point alone has a whisker.
func (l *layout) bandPath(s Series, run [2]int, own colour) path {
	var upper, lower []point
	for j := run[0]; j < run[1]; j++ {
		x, _, _ := l.point(s, j)
		lo, hi := l.band(s, j)
		if n := len(upper); s.Step && n > 0 { // what held until here
			upper = append(upper, point{x, upper[n-1].y})
			lower = append(lower, point{x, lower[n-1].y})
		}
		upper, lower = append(upper, point{x, hi}), append(lower, point{x, lo})
	}
	if len(upper) == 1 {
		whisker := path{class: "band", lines: [][]point{{lower[0], upper[0]}}, stroke: own, width: 1.5}
		if l.f.Whole && s.Plain { // bars of one hue stand side by side
			whisker.dash = []float64{2, 2.5}
		}
		return whisker
	}
	slices.Reverse(lower)
	opacity := 0.16
	if len(l.f.Series) > 8 { // bands over bands turn to mud
		opacity = 0.08
	}
	return path{class: "band", lines: [][]point{append(upper, lower...)}, fill: own, opacity: opacity}
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
	if l.f.Forest != nil {
		return l.describeForest()
	}
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
			fmt.Fprintf(&b, " A vertical line at %s: %s.", position(m.X), Clean(m.Label))
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
		fmt.Fprintf(&b, ": %s at %s.", words.Number(s.Mean[last]), l.position(s.X[last]))
	}
	return b.String()
}
