package report

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"

	"git.sr.ht/~sbinet/gg"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
)

// png is the drawing in pixels, of which the layout's unit has so many, and an inch dpi.
func (l *layout) png(unit, dpi float64) ([]byte, error) {
	letters, err := newLetters()
	if err != nil {
		return nil, err
	}
	c := &pngCanvas{Context: gg.NewContext(int(math.Round(l.width*unit)), int(math.Round(l.height*unit))),
		unit: unit, letters: letters, faces: map[faceSize]font.Face{}}
	c.ink(ground, 1)
	c.Clear()
	c.SetLineCapButt()
	l.draw(c)
	if c.err != nil {
		return nil, c.err
	}
	var b bytes.Buffer
	if err := c.EncodePNG(&b); err != nil {
		return nil, err
	}
	return resolved(b.Bytes(), dpi), nil
}

// resolved adds to a PNG how many pixels an inch has, which the standard library leaves out, and
// programs take for its size on paper: a chunk pHYs after the first, which has 25 bytes.
func resolved(png []byte, dpi float64) []byte {
	const first = 8 + 25
	chunk := []byte("\x00\x00\x00\x09pHYs")
	metre := uint32(math.Round(dpi / 0.0254))
	chunk = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(chunk, metre), metre)
	chunk = append(chunk, 1)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return append(append(append([]byte{}, png[:first]...), chunk...), png[first:]...)
}

type pngCanvas struct {
	*gg.Context
	unit    float64
	letters *letters
	faces   map[faceSize]font.Face
	err     error
}

type faceSize struct {
	face typeface
	size float64
}

func (c *pngCanvas) group(...string) {}
func (c *pngCanvas) end()            {}

func (c *pngCanvas) ink(of colour, opacity float64) {
	r, g, b := of.rgb()
	c.SetRGBA(float64(r)/255, float64(g)/255, float64(b)/255, opacity)
}

func (c *pngCanvas) path(p path) {
	for _, line := range p.lines {
		for i, at := range line {
			if i == 0 {
				c.MoveTo(at.x*c.unit, at.y*c.unit)
			} else {
				c.LineTo(at.x*c.unit, at.y*c.unit)
			}
		}
		if p.stroke == noColour {
			c.ClosePath()
		}
	}
	if p.stroke == noColour {
		c.ink(p.fill, p.opacity)
		c.Fill()
		return
	}
	c.ink(p.stroke, 1)
	c.SetLineWidth(p.width * c.unit)
	var dash []float64
	for _, v := range p.dash {
		dash = append(dash, v*c.unit)
	}
	c.SetDash(dash...)
	c.Stroke()
}

func (c *pngCanvas) dots(at []point, r float64, fill colour) {
	c.ink(fill, 1)
	for _, p := range at {
		c.DrawCircle(p.x*c.unit, p.y*c.unit, r*c.unit)
	}
	c.Fill()
}

func (c *pngCanvas) text(t text) {
	c.ink(t.fill, 1)
	c.letters.set(c, t)
}

// face chooses the letters of a run.
func (c *pngCanvas) face(r run, size float64) {
	key := faceSize{r.face, size}
	if c.faces[key] == nil {
		face, err := opentype.NewFace(c.letters.fonts[r.face],
			&opentype.FaceOptions{Size: size * c.unit, DPI: 72, Hinting: font.HintingNone})
		if err != nil {
			c.err = err
			return
		}
		c.faces[key] = face
	}
	c.SetFontFace(c.faces[key])
}

func (c *pngCanvas) width(r run, size float64) float64 {
	c.face(r, size)
	w, _ := c.MeasureString(r.s)
	return w / c.unit
}

func (c *pngCanvas) write(x, y float64, r run, size float64) {
	c.face(r, size)
	c.DrawString(r.s, x*c.unit, y*c.unit)
}
