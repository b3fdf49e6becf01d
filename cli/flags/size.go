package flags

import (
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/internal/report"
)

// A Size is that of a drawing: a width, or width and height, in centimetres or inches.
type Size struct{ Width, Height float64 } // in points; zero is not given

// Decode implements kong.MapperValue.
func (s *Size) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	const must = "a width, or width and height, such as 8.5cm, 17x9cm or 3.3in, from 5 to 100 cm"
	unit := report.PointsPerCM
	number, inches := strings.CutSuffix(text, "in")
	if inches {
		unit = report.PointsPerInch
	} else if number, inches = strings.CutSuffix(text, "cm"); !inches {
		return bad(must)
	}
	sides := strings.Split(number, "x")
	if len(sides) > 2 {
		return bad(must)
	}
	var points [2]float64
	for i, side := range sides {
		v, err := strconv.ParseFloat(strings.TrimSpace(side), 64)
		if err != nil || !(v > 0) {
			return bad(must)
		}
		points[i] = v * unit
	}
	d := report.Drawing{Width: points[0], Height: points[1]}
	if d.Check() != nil {
		return bad(must)
	}
	s.Width, s.Height = d.Width, d.Height
	return nil
}
