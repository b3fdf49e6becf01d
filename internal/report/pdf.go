package report

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"time"

	"codeberg.org/go-pdf/fpdf"
)

// pdf is the drawing as a PDF of one page, of the drawing's size: lines as lines, text as text,
// with the letters that it uses inside. unit is how many points the layout's unit has.
func (l *layout) pdf(unit float64) ([]byte, error) {
	letters, err := newLetters()
	if err != nil {
		return nil, err
	}
	doc := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt",
		Size: fpdf.SizeType{Wd: l.width * unit, Ht: l.height * unit}})
	doc.SetMargins(0, 0, 0)
	doc.SetAutoPageBreak(false, 0)
	// Equal figures give equal bytes: no map's order, and the epoch for the time, which it must have.
	doc.SetCatalogSort(true)
	doc.SetCreationDate(time.Unix(0, 0).UTC())
	doc.SetModificationDate(time.Unix(0, 0).UTC())
	doc.SetProducer("Sotto", true)
	doc.SetTitle(cmp.Or(Clean(l.f.Title), l.f.ID), true)
	doc.SetSubject(l.describe(), true)
	doc.SetLang("en")
	doc.AddPage()
	doc.SetLineJoinStyle("round")
	l.draw(&pdfCanvas{doc, unit, letters})
	var b bytes.Buffer
	if err := doc.Output(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// name is the typeface's in a document.
func (t typeface) name() string { return [...]string{"text", "bold", "signs"}[t] }

type pdfCanvas struct {
	doc     *fpdf.Fpdf
	unit    float64
	letters *letters
}

func (c *pdfCanvas) group(...string) {}
func (c *pdfCanvas) end()            {}

func (c *pdfCanvas) path(p path) {
	how := "D"
	if p.stroke == noColour {
		how = "F"
		c.doc.SetFillColor(p.fill.rgb())
		c.doc.SetAlpha(p.opacity, "Normal")
		defer c.doc.SetAlpha(1, "Normal")
	} else {
		c.doc.SetDrawColor(p.stroke.rgb())
		c.doc.SetLineWidth(p.width * c.unit)
		var dash []float64
		for _, v := range p.dash {
			dash = append(dash, v*c.unit)
		}
		c.doc.SetDashPattern(dash, 0)
	}
	for _, line := range p.lines {
		for i, at := range line {
			if i == 0 {
				c.doc.MoveTo(at.x*c.unit, at.y*c.unit)
			} else {
				c.doc.LineTo(at.x*c.unit, at.y*c.unit)
			}
		}
		if p.stroke == noColour {
			c.doc.ClosePath()
		}
	}
	c.doc.DrawPath(how)
}

func (c *pdfCanvas) dots(at []point, r float64, fill colour) {
	c.doc.SetFillColor(fill.rgb())
	for _, p := range at {
		c.doc.Circle(p.x*c.unit, p.y*c.unit, r*c.unit, "F")
	}
}

func (c *pdfCanvas) text(t text) {
	c.doc.SetTextColor(t.fill.rgb())
	c.letters.set(c, t)
}

// face chooses the letters of a run, which are then in the document.
func (c *pdfCanvas) face(r run, size float64) {
	c.doc.AddUTF8FontFromBytes(r.face.name(), "", r.face.file()) // once, whatever the calls
	c.doc.SetFont(r.face.name(), "", size*c.unit)
}

func (c *pdfCanvas) width(r run, size float64) float64 {
	c.face(r, size)
	return c.doc.GetStringWidth(r.s) / c.unit
}

func (c *pdfCanvas) write(x, y float64, r run, size float64) {
	c.face(r, size)
	c.doc.Text(x*c.unit, y*c.unit, r.s)
}

// rgb is the colour on white, each part from 0 to 255.
func (c colour) rgb() (r, g, b int) {
	v, err := strconv.ParseUint(c.light()[1:], 16, 32)
	if err != nil {
		panic(fmt.Sprintf("report: colour %d: %v", c, err)) // it is a constant
	}
	return int(v >> 16), int(v >> 8 & 0xff), int(v & 0xff)
}
