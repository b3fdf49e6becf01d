package page

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/plan"
)

// A forecast does not say that privacy is faster, nor slower where its runs cannot tell.
func TestForecastSaysWhatItsRunsTell(t *testing.T) {
	x, err := decl.Reader{}.Parse("shop", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	nan := math.NaN()
	for _, c := range []struct {
		private, plain          time.Duration
		mean, se, plainMean, of float64
		same                    bool
	}{
		{13 * day, 14 * day, 13, 1, 14, 1, true}, {13 * day, 14 * day, nan, nan, 14, 1, true}, {13 * day, -1, 13, 1, nan, nan, true},
		{15 * day, 14 * day, 15, 1, 14, 1, true}, {18 * day, 14 * day, 18, 1, 14, 1, false}, {15 * day, 14 * day, nan, nan, 14, 1, false},
	} {
		row := plan.Row{KnownMedian: c.private, Known90: 20 * day, KnownMean: c.mean, KnownSE: c.se}
		plain := plan.Row{KnownMedian: c.plain, KnownMean: c.plainMean, KnownSE: c.of}
		f := told(plan.Request{Live: *x, Traffic: 100, Best: 0.5, Gap: 0.1, Days: 30}, &plan.Forecast{Runs: 50, Period: 30 * day,
			Rows: []plan.Row{row}, Plain: plain}, "")
		text := f.Facts[1].Text
		if strings.Contains(text, "no later than without privacy, as far as 50 runs can tell") != c.same ||
			strings.Contains(text, "without privacy after 14 days") == c.same {
			t.Errorf("%+v: %s", c, text)
		}
	}
}
