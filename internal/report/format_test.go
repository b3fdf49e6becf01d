package report_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"image/png"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/report"
)

func drawn(t tb, f report.Figure, format report.Format, d report.Drawing) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b, format, d); err != nil {
		t.Fatalf("%v", err)
	}
	return b.Bytes()
}

// streams are the contents of a PDF, without their compression.
func streams(t tb, pdf []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, s := range regexp.MustCompile(`(?s)/FlateDecode.*?stream\n(.*?)\nendstream`).FindAllSubmatch(pdf, -1) {
		z, err := zlib.NewReader(bytes.NewReader(s[1]))
		if err != nil {
			t.Fatalf("%v", err)
		}
		if _, err := io.Copy(&out, z); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return out.Bytes()
}

// inPDF is a text as a PDF has it.
func inPDF(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.BigEndian.AppendUint16(b, u)
	}
	return b
}

// A PDF has a page of the figure's size, its letters inside, its text as text, and no time.
func TestPDF(t *testing.T) {
	b := drawn(t, small(), report.PDF, report.Drawing{Width: 360, Height: 240})
	if !bytes.Equal(b, drawn(t, small(), report.PDF, report.Drawing{Width: 360, Height: 240})) {
		t.Error("two drawings differ")
	}
	for _, want := range []string{"%PDF-1.", "/MediaBox [0 0 360.00 240.00]", "/FontFile2", "/ToUnicode",
		"/CreationDate (D:19700101000000)", "/Count 1"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("the PDF lacks %s", want)
		}
	}
	if bytes.Count(b, []byte("/FontFile2")) != 2 {
		t.Error("it has letters that it does not use")
	}
	text := streams(t, b)
	for _, want := range []string{"regret", "round t", "AdaP-KLUCB", "dp-ucb, none", "no privacy guarantee",
		"Mean of 3 runs."} {
		if !bytes.Contains(text, inPDF(want)) {
			t.Errorf("the PDF lacks the text %q", want)
		}
	}
	// The first line's points are where the SVG has them.
	if !strings.Contains(string(svg(t, small())), `stroke-dasharray="7 3"`) ||
		!regexp.MustCompile(`\[4\.67 2\.00\] 0\.00 d`).Match(text) {
		t.Error("dashes are not as long as their line's unit has them")
	}
}

// A PNG has the pixels of its resolution, says what that is, and has the line where the SVG has it.
func TestPNG(t *testing.T) {
	f := report.Figure{ID: "a", Series: []report.Series{{Label: "a", X: []float64{0, 1},
		Mean: []float64{1, 1}}}}
	at := func(dpi float64) (w, h int, coloured float64) {
		b := drawn(t, f, report.PNG, report.Drawing{DPI: dpi})
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte("pHYs")); i < 0 ||
			binary.BigEndian.Uint32(b[i+4:]) != uint32(dpi/0.0254+0.5) || b[i+12] != 1 {
			t.Errorf("it does not say that an inch has %v pixels", dpi)
		}
		size := img.Bounds().Size()
		for y := range size.Y {
			if r, g, b, _ := img.At(size.X/2, y).RGBA(); r>>8 == 0x0f && g>>8 == 0x4b && b>>8 == 0x6e {
				return size.X, size.Y, float64(y) / float64(size.Y)
			}
		}
		t.Fatal("the line is not there")
		return 0, 0, 0
	}
	line := regexp.MustCompile(`class="line" d="M[0-9.]+ ([0-9.]+)H`).FindSubmatch(svg(t, f))
	var want, height float64
	fmt.Sscan(string(line[1]), &want)
	fmt.Sscan(regexp.MustCompile(`height="([0-9.]+)"`).FindStringSubmatch(string(svg(t, f)))[1], &height)
	for _, dpi := range []float64{96, 300} {
		w, h, y := at(dpi)
		if w != int(760*dpi/96+0.5) || h != int(height*dpi/96+0.5) {
			t.Errorf("%d × %d pixels at %v", w, h, dpi)
		}
		if off := y*height - want; off < -2 || off > 1 {
			t.Errorf("the line is at %v, in the SVG at %v", y*height, want)
		}
	}
}

// What is drawn for a paper is as it asks: its size, axes, title, or none.
func TestDrawing(t *testing.T) {
	s := string(drawn(t, small(), report.SVG, report.Drawing{Width: 17 * report.PointsPerCM,
		Height: 9 * report.PointsPerCM, Title: "Mine", Linear: true}))
	for _, want := range []string{`width="481.89pt" height="255.12pt"`, ">Mine</text>", ">1000<",
		">Mean of 3 runs.<"} {
		if !strings.Contains(s, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if strings.Contains(s, "two lines") || strings.Contains(s, "logarithmic") {
		t.Error("it has its own subtitle, or logarithmic axes")
	}
	bare := string(drawn(t, small(), report.SVG, report.Drawing{Bare: true}))
	if strings.Contains(bare, "font-weight") || strings.Contains(bare, ">Mean of 3 runs.<") {
		t.Error("it has a title or a note")
	}
	wellFormed(t, []byte(s))
	wellFormed(t, []byte(bare))
	if !bytes.Equal(drawn(t, small(), report.SVG, report.Drawing{}), svg(t, small())) {
		t.Error("without wishes it is not as it is on the page")
	}
}

func TestBadDrawings(t *testing.T) {
	for want, c := range map[string]struct {
		format report.Format
		d      report.Drawing
	}{
		"width is 3.528 cm, must be from 5 to 100":      {report.PDF, report.Drawing{Width: 100}},
		"width is missing, must be given with a height": {report.PDF, report.Drawing{Height: 300}},
		"height is 176.4 cm, must be from 0 to 100": {report.PDF,
			report.Drawing{Width: 200, Height: 5000}},
		"resolution is 5 pixels an inch, must be from 36 to 1200": {report.PNG, report.Drawing{DPI: 5}},
		"must have at most 100": {report.PNG,
			report.Drawing{Width: 2800, DPI: 1200}},
		"height is 0.1 of its width, must be at least": {report.SVG,
			report.Drawing{Width: 500, Height: 50}},
		`format is "eps", must be svg, pdf or png`: {"eps", report.Drawing{}},
	} {
		var b bytes.Buffer
		err := small().Write(&b, c.format, c.d)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!errors.Is(err, report.ErrDrawing) || b.Len() > 0 {
			t.Errorf("%v, want %q and nothing written", err, want)
		}
	}
	r := report.Page{Figures: []report.Figure{small()}}
	if _, err := r.Files(report.Selection{Only: []string{"none"}}); err == nil ||
		err.Error() != `figure is "none", must be one of small` {
		t.Error(err)
	}
	files, err := r.Files(report.Selection{Only: []string{"small"},
		Formats: []report.Format{report.PDF, report.PNG}})
	if err != nil || len(files) != 2 || files[0].Name != "small.pdf" || files[1].Name != "small.png" {
		t.Error(files, err)
	}
}

// Whatever the figure, it can be drawn as PDF and PNG, and the same twice.
func TestAnyFigureIsDrawn(t *testing.T) {
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		if n++; n > 12 { // letters are read for each: 10 ms
			return
		}
		f := figures().Draw(t, "figure")
		d := report.Drawing{Width: rapid.Float64Range(142, 600).Draw(t, "width"), DPI: 48,
			Linear: rapid.Bool().Draw(t, "linear")}
		if b := drawn(t, f, report.PDF, d); !bytes.Equal(b, drawn(t, f, report.PDF, d)) {
			t.Fatalf("two drawings differ")
		}
		if _, err := png.Decode(bytes.NewReader(drawn(t, f, report.PNG, d))); err != nil {
			t.Fatalf("%v", err)
		}
	})
}
