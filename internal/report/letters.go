package report

import (
	"strings"

	"codeberg.org/go-fonts/dejavu/dejavusansmono"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
)

// The letters of what has no letters of its reader's: Go's typeface, which is small and about as wide as Helvetica, and
// for signs that it lacks DejaVu Sans Mono, half of DejaVu Sans. Both may be given away, also inside of documents.
type typeface int

const (
	regular typeface = iota
	bold
	signs
)

var typefaces = [...]typeface{regular, bold, signs}

// file is the font as a file.
func (t typeface) file() []byte {
	return [...][]byte{goregular.TTF, gobold.TTF, dejavusansmono.TTF}[t]
}

// letters knows which characters the typefaces have.
type letters struct {
	fonts [len(typefaces)]*sfnt.Font
	buf   sfnt.Buffer
}

func newLetters() (*letters, error) {
	l := &letters{}
	for _, t := range typefaces {
		var err error
		if l.fonts[t], err = sfnt.Parse(t.file()); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// A run is text in one typeface.
type run struct {
	face typeface
	s    string
}

// runs splits a text by the typefaces that have its characters. What none has is drawn as a box,
// for which a script that none has would have to be installed anyway.
func (l *letters) runs(s string, heavy bool) []run {
	first := regular
	if heavy {
		first = bold
	}
	has := func(t typeface, r rune) bool {
		i, err := l.fonts[t].GlyphIndex(&l.buf, r)
		return err == nil && i != 0 && r <= 0xffff // what a PDF's text has
	}
	var out []run
	for _, r := range s {
		face := first
		switch {
		case has(first, r):
		case has(signs, r):
			face = signs
		default:
			r = '□'
		}
		if n := len(out); n > 0 && out[n-1].face == face {
			out[n-1].s += string(r)
		} else {
			out = append(out, run{face, string(r)})
		}
	}
	return out
}

// A pen writes runs somewhere: width is how wide a run is at a size, and write draws it.
type pen interface {
	width(r run, size float64) float64
	write(x, y float64, r run, size float64)
}

// set writes a line of text, its exponent raised, at its anchor.
func (l *letters) set(p pen, t text) {
	type piece struct {
		run
		size, up float64
	}
	var pieces []piece
	whole := 0.0
	add := func(s string, size, up float64) {
		for _, r := range l.runs(s, t.bold) {
			pieces = append(pieces, piece{r, size, up})
			whole += p.width(r, size)
		}
	}
	add(t.s, t.size, 0)
	add(t.raised, raisedSize, raisedBy)
	x := t.x
	switch t.anchor {
	case "middle":
		x -= whole / 2
	case "end":
		x -= whole
	}
	for _, w := range pieces {
		if strings.TrimSpace(w.s) != "" {
			p.write(x, t.y-w.up, w.run, w.size)
		}
		x += p.width(w.run, w.size)
	}
}
