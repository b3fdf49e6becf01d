package report

import "fmt"

// A canvas is what a figure is drawn on: an SVG, the page of a PDF, or pixels. Coordinates are
// those of the layout, from the left and the top. One drawing serves all.
type canvas interface {
	// group begins a part of the drawing that a page can find, where the format has such a thing.
	group(attributes ...string)
	end()
	path(p path)
	dots(at []point, r float64, fill colour)
	text(t text)
}

type point struct{ x, y float64 }

// A path is lines of points, drawn as lines if it has a stroke, or else as areas.
type path struct {
	class   string // by which a page can find it
	lines   [][]point
	stroke  colour
	width   float64
	dash    []float64
	fill    colour
	opacity float64 // of an area
}

// A text is one line of text.
type text struct {
	x, y, size float64
	anchor     string // start, middle or end
	fill       colour
	bold       bool
	s, raised  string // the second is an exponent
	full       string // what was cut short to s; empty if nothing was
}

// A colour is one of the palette.
type colour int

const (
	noColour colour = iota
	ground
	ink
	quiet
	danger
	grid
	faint
	axisInk
	leader
	hue // the first of hues
)

const hues = 8

// shades are the colours in light and in dark. Those that pages have too are as package look has
// them.
func (c colour) shades() (light, dark string) {
	s := [...][2]string{
		ground: {"#ffffff", "#121417"}, ink: {"#1b1e23", "#e8eaed"}, quiet: {"#585e67", "#a4aab2"},
		danger: {"#b00020", "#ff8f9a"}, grid: {"#e3e3e3", "#2c3035"}, faint: {"#b5b5b5", "#5a5e63"},
		axisInk: {"#777777", "#8a9098"}, leader: {"#9a9a9a", "#6b7078"},
		hue: {"#0f4b6e", "#1376bf"}, {"#d65e00", "#f87505"}, {"#3e967e", "#30c899"}, {"#af73cf", "#e5ade4"},
		{"#b07d00", "#e6b84a"}, {"#3a9bd0", "#8fd0f5"}, {"#3c4147", "#c9ced6"}, {"#8a5a2b", "#cf9f6e"},
	}[c]
	return s[0], s[1]
}

// light is the colour on white: on paper, and wherever nobody asks for the dark.
func (c colour) light() string {
	light, _ := c.shades()
	return light
}

// A style tells a line apart: by its colour, and without it by its dashes and its marker.
type style struct {
	hue    int // from 0; none of a line that is grey
	dash   []float64
	marker marker
}

const none = -1

func (s style) colour() colour {
	if s.hue == none {
		return axisInk
	}
	return hue + colour(s.hue)
}

// styles are those of the series. Each has a hue, but that one without privacy takes the hue of the
// first private one of its family, and that grey lines have none. Dots are for lines without privacy, and
// for no others. Eight hues and five dashes have no common divisor, so 40 lines look different; with the markers
// the first 35 do without colours.
func (f Figure) styles() []style {
	out, next, plain, aside := make([]style, len(f.Series)), 0, 0, 0
	dashes := [...][]float64{nil, {7, 3}, {4, 2}, {9, 3, 2, 3}, {9, 3, 2, 3, 2, 3}}
	taken := map[string]int{} // by families
	for i, s := range f.Series {
		if s.Plain || s.Aside {
			continue
		}
		if _, ok := taken[s.Family]; !ok && s.Family != "" {
			taken[s.Family] = i
		}
	}
	for i, s := range f.Series {
		_, shared := taken[s.Family]
		switch {
		case s.Aside:
			out[i] = style{hue: none, dash: dashes[aside%len(dashes)]}
			aside++
		case !s.Plain || !shared:
			out[i] = style{hue: next % hues, dash: dashes[next%len(dashes)]}
			next++
		}
	}
	for i, s := range f.Series {
		if !s.Plain {
			continue
		}
		if with, ok := taken[s.Family]; ok && !s.Aside {
			out[i].hue = out[with].hue
		}
		out[i].dash = [...][]float64{{2, 2.5}, {2, 5}, {2, 2.5, 2, 6}}[plain%3]
		plain++
	}
	seen := map[string]bool{}
	for i := range out {
		key := func(m int) string { return fmt.Sprint(out[i].dash, m%markers) }
		m := i
		for m < i+markers && seen[key(m)] {
			m++
		}
		seen[key(m)], out[i].marker = true, marker(m%markers)
	}
	return out
}
