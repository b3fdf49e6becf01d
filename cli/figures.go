package cli

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/report"
)

// drawingFlags say how figures are drawn.
type drawingFlags struct {
	Size   flags.Size   `help:"${drawingSize}" placeholder:"W[xH]cm" group:"figures"`
	DPI    flags.Number `name:"dpi" in:"[36,1200]" help:"Pixels of an inch, of PNG; 192 if not given." placeholder:"N" group:"figures"`
	Linear bool         `help:"Linear axes instead of logarithmic ones." group:"figures"`
	Title  string       `help:"Title of the figures, instead of their own and what is below it." placeholder:"TEXT" group:"figures"`
	Bare   bool         `help:"${drawingBare}" group:"figures"`
}

// figureFlags say as what figures are written, too.
type figureFlags struct {
	Format flags.Choices `of:"svg,pdf,png" default:"svg" help:"${figureFormat}" placeholder:"FORMAT,…" group:"figures"`
	drawingFlags
}

// figureTexts are help texts that are too long for their flags.
var figureTexts = kong.Vars{
	"drawingSize": "Width, or width and height, such as 8.5cm, 17x9cm or 3.3in; text has 8 points then. " +
		"Without it a figure is 20 cm wide.",
	"drawingBare": "Without title, subtitle and note: for who writes a caption.",
	"figureFormat": "Write figures as svg, pdf (its letters inside, text as text) or png; several " +
		"separated by commas.",
}

func (d drawingFlags) drawing() report.Drawing {
	return report.Drawing{Width: d.Size.Width, Height: d.Size.Height, DPI: d.DPI.X, Linear: d.Linear,
		Title: d.Title, Bare: d.Bare}
}

func (f figureFlags) selection() report.Selection {
	s := report.Selection{Drawing: f.drawing()}
	for _, name := range f.Format.Names {
		s.Formats = append(s.Formats, report.Format(name))
	}
	return s
}

// format is the one that a file's name ends in.
func format(flag, path string) (report.Format, error) {
	f := report.Format(strings.ToLower(strings.TrimPrefix(filepath.Ext(path), ".")))
	switch f {
	case report.SVG, report.PDF, report.PNG:
		return f, nil
	}
	return "", usagef("%s is %q, must end in .svg, .pdf or .png", flag, path)
}

// drawn is the error of a drawing: that of who asked for it, if it is not allowed.
func drawn(err error) error {
	if errors.Is(err, report.ErrDrawing) {
		return usage(err)
	}
	return err
}

// saveFigure draws a figure into a file, as what its name says.
func (d drawingFlags) saveFigure(flag, path string, f report.Figure) error {
	as, err := format(flag, path)
	if err != nil {
		return err
	}
	return save(flag, path, publicFile, func(w io.Writer) error { return f.Write(w, as, d.drawing()) })
}
