package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A Format is what a figure is written as.
type Format string

// The formats. A PDF has its letters inside and its text as text.
const (
	SVG Format = "svg"
	PDF Format = "pdf"
	PNG Format = "png"
)

// Points are 1/72 of an inch.
const (
	PointsPerInch = 72.0
	PointsPerCM   = 72 / 2.54
)

// A Drawing is how a figure is drawn. The zero value is the figure as it is on the page.
type Drawing struct {
	// Width and Height, in points. Zero is as wide as on a page, 20 cm, and as high as that takes;
	// with a width, text has 8 points.
	Width, Height float64
	DPI           float64 // pixels of an inch, of PNG; 192 if zero
	Linear        bool    // linear axes instead of logarithmic ones
	Title         string  // instead of title and subtitle; empty keeps them
	Bare          bool    // without title, subtitle and note, for who writes a caption
}

// ErrDrawing is matched by errors that say what of a selection or drawing is not allowed.
var ErrDrawing = errors.New("not allowed")

// A drawingError says what is not allowed.
type drawingError struct{ text string }

func (e *drawingError) Error() string   { return e.text }
func (e *drawingError) Is(t error) bool { return t == ErrDrawing }

func refused(format string, args ...any) error { return &drawingError{fmt.Sprintf(format, args...)} }

// The limits of a drawing.
const (
	leastWidth = 5 * PointsPerCM
	mostSide   = 100 * PointsPerCM
	leastDPI   = 36
	mostDPI    = 1200
	mostPixels = 100e6
	leastPlot  = 80.0 // the height of the plot alone, in the layout's units
	// narrower, in the layout's units, labels do not stand beside the plot
	narrowBelow = 500
)

// Write draws the figure in a format. Equal figures give equal bytes. The error says what of the
// drawing is not allowed, or what cannot be drawn, as that of WriteSVG does.
func (f Figure) Write(w io.Writer, format Format, d Drawing) error {
	b, err := f.drawn(format, d)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("report: write figure %s: %w", f.ID, err)
	}
	return nil
}

// Check says what of a drawing is not allowed, for any figure.
func (d Drawing) Check() error {
	for _, c := range []struct {
		name           string
		v, least, most float64
	}{{"width", d.Width, leastWidth, mostSide}, {"height", d.Height, 0, mostSide}} {
		if c.v != 0 && !(c.v >= c.least && c.v <= c.most) {
			return refused("%s is %.4g cm, must be from %.4g to %.4g", c.name, c.v/PointsPerCM,
				c.least/PointsPerCM, c.most/PointsPerCM)
		}
	}
	switch {
	case d.Height != 0 && d.Width == 0:
		return refused("width is missing, must be given with a height")
	case d.DPI != 0 && !(d.DPI >= leastDPI && d.DPI <= mostDPI):
		return refused("resolution is %v pixels an inch, must be from %d to %d", d.DPI, leastDPI, mostDPI)
	}
	return nil
}

func (f Figure) drawn(format Format, d Drawing) ([]byte, error) {
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("report: figure %s: %w", f.ID, err)
	}
	if d.Linear {
		f.LogX, f.LogY = false, false
	}
	if d.Title != "" {
		f.Title, f.Subtitle = d.Title, ""
	}
	// Text of 12.5 units has the size that a screen gives it, or 8.3 points.
	unit, frame := PointsPerInch/96, frame{width: figureWidth, bare: d.Bare}
	if d.Width > 0 {
		unit = 2. / 3
		frame.width, frame.height = d.Width/unit, d.Height/unit
		frame.narrow = frame.width < narrowBelow
	}
	l, err := f.place(frame)
	if err != nil {
		return nil, err
	}
	var b []byte
	switch format {
	case SVG:
		if b = l.svg(); d.Width > 0 {
			b = l.sized(px(l.width*unit)+"pt", px(l.height*unit)+"pt")
		}
	case PDF:
		b, err = l.pdf(unit)
	case PNG:
		dpi := d.DPI
		if dpi == 0 {
			dpi = 192
		}
		pixels := unit * dpi / PointsPerInch
		if n := l.width * l.height * pixels * pixels; n > mostPixels {
			return nil, refused("figure %s: has %.0f million pixels, must have at most %.0f",
				f.ID, math.Ceil(n/1e6), mostPixels/1e6)
		}
		b, err = l.png(pixels, dpi)
	default:
		return nil, refused("format is %q, must be svg, pdf or png", format)
	}
	if err != nil {
		return nil, fmt.Errorf("report: figure %s as %s: %w", f.ID, format, err)
	}
	return b, nil
}

// A Selection is which figures of a report are written, as what, and how. The zero value is all of
// them, as SVG, as they are on the page.
type Selection struct {
	Drawing
	Formats []Format
	Only    []string // IDs; none: all figures
}

// A File is a drawing and its name.
type File struct {
	Name string
	Data []byte
}

// Files are the drawings of a selection. The error says which figure is not there, or cannot be
// drawn; then there is none.
func (r Page) Files(s Selection) ([]File, error) {
	var known []string
	for _, f := range r.Figures {
		known = append(known, f.ID)
	}
	for _, id := range s.Only {
		if !slices.Contains(known, id) {
			return nil, refused("figure is %q, must be one of %s", id, strings.Join(known, ", "))
		}
	}
	formats := s.Formats
	if formats == nil {
		formats = []Format{SVG}
	}
	var out []File
	for _, f := range r.Figures {
		if s.Only != nil && !slices.Contains(s.Only, f.ID) {
			continue
		}
		for _, format := range formats {
			b, err := f.drawn(format, s.Drawing)
			if err != nil {
				return nil, err
			}
			out = append(out, File{f.ID + "." + string(format), b})
		}
	}
	return out, nil
}
