package report

import "math"

// A marker is a shape on a line, by which it is told apart without colour: the first is a dot.
type marker int

const markers = 7

// A shape is a marker's outline, in circles' radii from its middle: of no points it is a circle.
var shapes = [markers][]point{
	nil,
	{{-.9, -.9}, {.9, -.9}, {.9, .9}, {-.9, .9}},
	{{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
	{{0, -1.25}, {1.2, .85}, {-1.2, .85}},
	{{0, 1.25}, {1.2, -.85}, {-1.2, -.85}},
	{{-.4, -1.25}, {.4, -1.25}, {.4, -.4}, {1.25, -.4}, {1.25, .4}, {.4, .4}, {.4, 1.25}, {-.4, 1.25},
		{-.4, .4}, {-1.25, .4}, {-1.25, -.4}, {-.4, -.4}},
	{{0, -1.4}, {.4, -.43}, {1.33, -.43}, {.6, .18}, {.82, 1.13}, {0, .6}, {-.82, 1.13}, {-.6, .18},
		{-1.33, -.43}, {-.4, -.43}},
}

// draw draws markers around points.
func (m marker) drawAll(c canvas, at []point, r float64, fill colour) {
	shape := shapes[m]
	if shape == nil {
		c.dots(at, r, fill)
		return
	}
	p := path{class: "marker", fill: fill, opacity: 1}
	for _, middle := range at {
		var outline []point
		for _, corner := range shape {
			outline = append(outline, point{middle.x + r*corner.x, middle.y + r*corner.y})
		}
		p.lines = append(p.lines, outline)
	}
	c.path(p)
}

func (m marker) draw(c canvas, x, y, r float64, fill colour) {
	m.drawAll(c, []point{{x, y}}, r, fill)
}

// markersOnLine is how many a line of many points has, at most.
const markersOnLine = 6

// marked are the places of the markers on a line of many points: at its own distance in each line, so
// that lines that are one have both markers to be seen.
func (l *layout) marked(i int, line [][]point) []point {
	var out []point
	gap := (l.right - l.left) / markersOnLine
	phase := math.Mod(float64(i+1)*0.382, 1) // apart, however many there are
	for k := range markersOnLine {
		x := l.left + gap*(float64(k)+phase)
		for _, piece := range line {
			for j := 1; j < len(piece); j++ {
				a, b := piece[j-1], piece[j]
				if a.x <= x && x < b.x {
					out = append(out, point{x, a.y + (b.y-a.y)*(x-a.x)/(b.x-a.x)})
				}
			}
		}
	}
	return out
}
