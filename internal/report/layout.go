package report

import (
	"cmp"
	"math"
	"slices"
)

// The sizes of a figure, in the units of its view box. The width is fixed; the height grows
// with the lines of text and of labels. A narrow figure, for the screen of a phone, has its
// labels below the plot.
const (
	figureWidth = 760
	narrowWidth = 380
	plotHeight  = 330
	margin      = 14
	titleSize   = 16
	textSize    = 12.5
	noteSize    = 11
	raisedSize  = 9.0 // of an exponent, and how far it is above the line
	raisedBy    = 5.0
	sampleWidth = 24 // the piece of line in front of a label
	leaderWidth = 16 // between the plot and the samples
	labelWidth  = 190
	labelHeight = 17.0 // not 17: halves are exact
	voidHeight  = 13.0 // more, for a label with a second line
	markerSize  = 3.2
	sameEnd     = 3.0 // how near two lines end that end at one place
)

// layout is a figure with everything placed.
type layout struct {
	f                        Figure
	id                       string
	width                    float64
	narrow                   bool
	legend                   float64 // where the labels of a narrow figure begin
	title, subtitle, note    []string
	left, right, top, bottom float64 // of the plot
	height                   float64
	x, y                     axis
	xTicks, yTicks           []tick
	labels                   []label
	row, names, verdicts     float64 // of a forest: how high a row is, how wide its columns of words
}

// A label names a line at its right end.
type label struct {
	text, full string
	cut        bool   // text is not all of full
	second     string // a smaller line below
	void       bool
	empty      bool    // the series has no point to draw
	x, y       float64 // the last point of the line
	at         float64 // where the label's middle is drawn
}

// A frame is what a figure is placed in.
type frame struct {
	width, height float64 // a height of zero is what the figure takes
	narrow        bool    // labels are below the plot
	bare          bool    // without title, subtitle and note
}

// plan places everything as pages have it.
func (f Figure) plan(narrow bool) (*layout, error) {
	if narrow {
		return f.place(frame{width: narrowWidth, narrow: true})
	}
	return f.place(frame{width: figureWidth})
}

// place places everything in a frame.
func (f Figure) place(in frame) (*layout, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	narrow := in.narrow
	l := &layout{f: f, id: f.ID, width: in.width, narrow: narrow}
	lines := 1
	if narrow {
		l.id, lines = f.ID+"-narrow", 2
	}
	if !in.bare {
		// bold is wider
		l.title = wrap(Clean(f.Title), (l.width-2*margin)/(titleSize*1.06), 2*lines)
		l.subtitle = wrap(Clean(f.Subtitle), (l.width-2*margin)/textSize, 2*lines)
		l.note = wrap(Clean(f.Note), (l.width-2*margin)/noteSize, 4*lines)
	}
	if f.Forest != nil {
		return l, l.placeForest(in)
	}

	xs, ys, empty := f.extent()
	l.x, l.y = newAxis(xs, f.LogX, 0), newAxis(ys, f.LogY, 0.04)
	if f.Whole && len(xs) > 0 {
		l.x = axis{lo: math.Round(slices.Min(xs)) - 0.5, hi: math.Round(slices.Max(xs)) + 0.5}
	}

	needed, labels := l.label(empty)
	l.top = margin + l.headHeight()
	if f.YLabel != "" {
		l.top += textSize + 8
	}
	l.top += 8
	plot := max(plotHeight, needed)
	if narrow {
		plot = plotHeight * 0.8 * l.width / narrowWidth
	}
	if in.height > 0 { // what the rest leaves
		rest := l.top + l.footHeight()
		least := max(leastPlot, needed)
		if narrow {
			rest, least = rest+needed+6, leastPlot
		}
		if plot = in.height - rest; plot < least {
			return nil, refused("figure %s: height is %.3g of its width, must be at least %.2f of it for "+
				"what it has to say", f.ID, in.height/in.width, math.Ceil(100*(rest+least)/in.width)/100)
		}
	}
	l.bottom = l.top + plot
	l.height = l.bottom + l.footHeight()
	if narrow {
		l.legend = l.height - float64(len(l.note))*(noteSize+4) - margin + 6
		l.height += needed + 6
	}

	l.y.from, l.y.to = l.bottom, l.top
	l.yTicks = l.y.ticks(max(2, min(6, int(plot/40))))
	tickWidth := 0.0
	for _, t := range l.yTicks {
		tickWidth = max(tickWidth, em(t.text)*textSize+em(t.sup)*raisedSize)
	}
	l.left = margin + tickWidth + 9
	l.right = l.width - margin - labels*1.04 - sampleWidth - leaderWidth - 6
	ticks := 7
	if narrow {
		l.right, ticks = l.width-margin, 4
	}
	if f.Whole { // no marks between whole numbers
		ticks = max(1, min(ticks, int(l.x.hi-l.x.lo)))
	}
	l.x.from, l.x.to = l.left, l.right
	l.xTicks = l.x.ticks(ticks)

	for i, s := range f.Series {
		b := &l.labels[i]
		b.x, b.y = l.right, l.bottom
		for j := range s.X {
			if x, y, ok := l.point(s, j); ok {
				b.x, b.y = x, y
			}
		}
	}
	if narrow {
		at := l.legend
		for i := range l.labels {
			l.labels[i].at = at + labelHeight/2
			at += l.labels[i].height()
		}
		return l, nil
	}
	spread(l.labels, l.top-labelHeight/2, l.bottom+labelHeight/2)
	return l, nil
}

// label makes the labels of the series, and says how high they are together and how wide the widest is.
func (l *layout) label(empty []bool) (needed, labels float64) {
	for k, s := range l.f.Series {
		full := s.label()
		room := float64(labelWidth)
		if l.narrow {
			room = l.width - 2*margin - sampleWidth - 6
		}
		b := label{full: full, text: fit(full, room/textSize), second: second(s.Void, empty[k]),
			void: s.Void, empty: empty[k]}
		b.cut = b.text != full
		width := em(b.text) * textSize
		labels = max(labels, width, em(b.second)*noteSize)
		needed += b.height()
		l.labels = append(l.labels, b)
	}
	return needed, labels
}

// extent is all that axes have to show, and which series have nothing.
func (f Figure) extent() (xs, ys []float64, empty []bool) {
	empty = make([]bool, len(f.Series))
	for k, s := range f.Series {
		empty[k] = true
		for i := range s.X {
			if !drawable(s.X[i], f.LogX) || !drawable(s.Mean[i], f.LogY) {
				continue
			}
			empty[k] = false
			xs, ys = append(xs, s.X[i]), append(ys, s.Mean[i])
			if len(s.Lo) > 0 {
				// A lower end near zero must not stretch a logarithmic axis by decades; the band
				// is cut at its end.
				if !f.LogY || s.Lo[i] > s.Mean[i]/3 {
					ys = append(ys, s.Lo[i])
				}
				ys = append(ys, s.Hi[i])
			}
		}
	}
	return xs, ys, empty
}

// point is where the i-th mean of a series is drawn, if it can be.
func (l *layout) point(s Series, i int) (x, y float64, ok bool) {
	x, okX := l.x.at(s.X[i])
	y, okY := l.y.at(s.Mean[i])
	return x, y, okX && okY
}

// position writes a place on the horizontal axis.
func (l *layout) position(x float64) string {
	if l.f.Whole {
		x = math.Round(x)
	}
	return position(x)
}

// band is where the i-th interval of a series is drawn, cut at the edge of the plot; a point
// without one gets no width.
func (l *layout) band(s Series, i int) (lo, hi float64) {
	_, y, _ := l.point(s, i)
	lo, hi = y, y
	if v, ok := l.y.at(s.Lo[i]); ok {
		lo = v
	} else if s.Lo[i] <= 0 && s.Lo[i] >= -1e300 {
		lo = l.bottom // zero and below, on a logarithmic axis
	}
	if v, ok := l.y.at(s.Hi[i]); ok {
		hi = v
	}
	return lo, hi
}

func (b label) height() float64 {
	if b.second != "" {
		return labelHeight + voidHeight
	}
	return labelHeight
}

// second is the smaller line of a label.
func second(void, empty bool) string {
	switch {
	case void && empty:
		return NoGuarantee + "; nothing to draw"
	case void:
		return NoGuarantee
	case empty:
		return "nothing to draw"
	}
	return ""
}

// spread places the labels between top and bottom as near to their lines' ends as they can be without
// overlap: least squares in the order of the ends, or of the series where ends are at one place.
// Labels that would overlap are pooled into blocks; a block sits at the mean of what its labels want.
func spread(labels []label, top, bottom float64) {
	order := make([]int, len(labels))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(labels[i].y, labels[j].y) })
	// ends that are at one place, to the eye, keep the order of the series: that of their numbers
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && labels[order[to]].y-labels[order[from]].y <= sameEnd {
			to++
		}
		slices.Sort(order[from:to])
		from = to
	}

	type block struct {
		first, n         int
		height, sum, top float64
	}
	var blocks []block
	for k, i := range order {
		h := labels[i].height()
		b := block{first: k, n: 1, height: h, sum: labels[i].y - labelHeight/2}
		for {
			b.top = max(min(b.sum/float64(b.n), bottom-b.height), top)
			if len(blocks) == 0 {
				break
			}
			above := blocks[len(blocks)-1]
			if above.top+above.height <= b.top {
				break
			}
			b = block{first: above.first, n: above.n + b.n, height: above.height + b.height,
				sum: above.sum + b.sum - float64(float64(b.n)*above.height)}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		at := b.top
		for k := b.first; k < b.first+b.n; k++ {
			i := order[k]
			labels[i].at = at + labelHeight/2
			at += labels[i].height()
		}
	}
}
