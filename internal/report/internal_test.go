package report

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/look"
)

func TestPValues(t *testing.T) {
	for p, want := range map[float64]string{0: "p<0.001", .00099: "p<0.001", .0123: "p=0.012",
		.0499: "p=0.050", .314: "p=0.31", 1: "p=1.00"} {
		if got := pValue(p); got != want {
			t.Errorf("pValue(%v) = %s, want %s", p, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(a axis, n int) string {
		var all []string
		for _, tick := range a.ticks(n) {
			if !tick.minor {
				text := tick.text
				if tick.sup != "" {
					text += "^" + tick.sup
				}
				all = append(all, text)
			}
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		values []float64
		log    bool
		want   string
	}{
		{[]float64{1, 1e7}, true, "1 10 10^2 10^3 10^4 10^5 10^6 10^7"},
		{[]float64{1e-20, 1e20}, true, "10^−18 10^−12 10^−6 1 10^6 10^12 10^18"},
		{[]float64{.05, 4}, true, "0.05 0.1 0.2 0.5 1 2"},
		{[]float64{1000, 4000}, true, "1000 1500 2000 2500 3000 3500 4000"},
		{[]float64{0, 1e7}, false, "0 2×10^6 4×10^6 6×10^6 8×10^6 10^7"},
		{[]float64{1.9e6, 2.05e6}, false, "1.9×10^6 1.95×10^6 2×10^6 2.05×10^6"},
		{[]float64{-1, 1}, false, "−1.0 −0.5 0 0.5 1.0"},
		{[]float64{0, 26340}, false, "0 5000 10\u202f000 15\u202f000 20\u202f000 25\u202f000"},
		{[]float64{0}, false, "0 0.2 0.4 0.6 0.8 1.0"},
		{nil, false, "0 0.2 0.4 0.6 0.8 1.0"},
	} {
		a := newAxis(c.values, c.log, 0)
		a.from, a.to = 0, 100
		if got := labels(a, 7); got != c.want {
			t.Errorf("ticks of %v (log %v): %s, want %s", c.values, c.log, got, c.want)
		}
	}
}

// Whatever the data, an axis has a few labelled marks, inside its range and in order.
func TestTicksProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64(), 0, 5).Draw(t, "values")
		a := newAxis(values, rapid.Bool().Draw(t, "log"), rapid.SampledFrom([]float64{0, .04}).Draw(t, "air"))
		a.from, a.to = 10, 500
		if !(a.lo < a.hi) {
			t.Fatalf("empty axis %+v", a)
		}
		var at []float64
		for _, tick := range a.ticks(7) {
			if !(tick.at >= 9.9 && tick.at <= 500.1) {
				t.Fatalf("tick %+v outside of %+v", tick, a)
			}
			if !tick.minor {
				at = append(at, tick.at)
			}
		}
		if len(at) < 2 || len(at) > 12 || !slices.IsSorted(at) {
			t.Fatalf("labelled ticks at %v of %+v", at, a)
		}
	})
}

// Labels never overlap, keep the order of their lines, stay inside when there is room, and do not
// move without need.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := make([]label, rapid.IntRange(1, 20).Draw(t, "n"))
		room := 0.0
		for i := range labels {
			labels[i].y = rapid.Float64Range(0, 300).Draw(t, "y")
			if rapid.Bool().Draw(t, "second") {
				labels[i].second = "second line"
			}
			room += labels[i].height()
		}
		spread(labels, 0, max(300, room))
		slices.SortFunc(labels, func(a, b label) int {
			if a.at < b.at {
				return -1
			}
			return 1
		})
		crowded := false
		for i, b := range labels {
			top := b.at - labelHeight/2
			if top < -1e-6 || top+b.height() > max(300, room)+1e-6 {
				t.Fatalf("label at %v left the room", b.at)
			}
			// the edge pushes
			crowded = crowded || b.y < labelHeight || b.y > 300-labelHeight-voidHeight
			if i == 0 {
				continue
			}
			above := labels[i-1]
			if gap := top - (above.at - labelHeight/2 + above.height()); gap < -1e-6 {
				t.Fatalf("labels at %v and %v overlap", above.at, b.at)
			}
			if above.y > b.y+sameEnd {
				t.Fatalf("labels of lines ending at %v and %v changed places", above.y, b.y)
			}
			crowded = crowded || b.y-above.y < labelHeight+voidHeight
		}
		if b := labels[0]; !crowded && math.Abs(b.at-b.y) > 1e-9 {
			t.Fatalf("lonely label moved from %v to %v", b.y, b.at)
		}
	})
}

// Lines that end at one place have their labels in the order of the series, which is that
// of their numbers.
func TestSpreadOfOneEnd(t *testing.T) {
	labels := []label{{y: 101}, {y: 100.2}, {y: 102}, {y: 20}, {y: 100}}
	spread(labels, 0, 300)
	if !(labels[3].at < labels[0].at && labels[0].at < labels[1].at &&
		labels[1].at < labels[2].at && labels[2].at < labels[4].at) {
		t.Errorf("%+v", labels)
	}
}

func TestFitAndWrap(t *testing.T) {
	if got := fit("short", 100); got != "short" {
		t.Error(got)
	}
	if got := fit("a very long label that will not fit", 8); em(got) > 8 || !strings.HasSuffix(got, "…") {
		t.Errorf("%q is %v wide", got, em(got))
	}
	if got := wrap("one two three four five six", 5, 2); len(got) != 2 || em(got[0]) > 5 || em(got[1]) > 5 {
		t.Errorf("%q", got)
	}
	if got := Cut("日本語のラベル", 7); columns(got) > 7 {
		t.Errorf("%q takes %d columns", got, columns(got))
	}
}

func TestStem(t *testing.T) {
	for in, want := range map[string]string{"regret mu2, ε=1": "regret-mu2----1",
		"../../etc/passwd": "etc-passwd", "": "figure", "a.b_c-D9": "a.b_c-D9", "ε": "figure"} {
		if got := Stem(in); got != want {
			t.Errorf("Stem(%q) = %q, want %q", in, got, want)
		}
	}
}

// A step function holds a point's mean, and its band, until the next point.
func TestStepsAreSteps(t *testing.T) {
	f := Figure{ID: "roc", Title: "ROC", Series: []Series{{Label: "a", Step: true,
		X: []float64{0, 1, 2}, Mean: []float64{0, 1, 2}, Lo: []float64{0, 0, 1}, Hi: []float64{1, 2, 2}}}}
	var b bytes.Buffer
	if err := f.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	path := func(class string) string {
		m := regexp.MustCompile(`class="` + class + `" d="([^"]*)"`).FindStringSubmatch(b.String())
		if m == nil {
			t.Fatalf("no %s", class)
		}
		return m[1]
	}
	l, err := f.plan(false)
	if err != nil {
		t.Fatal(err)
	}
	at := func(x, y float64) (string, string) {
		right, _ := l.x.at(x)
		down, _ := l.y.at(y)
		return px(right), px(down)
	}
	x0, y0 := at(0, 0)
	x1, y1 := at(1, 1)
	x2, y2 := at(2, 2)
	if got, want := path("line"), "M"+x0+" "+y0+"H"+x1+"V"+y1+"H"+x2+"V"+y2; got != want {
		t.Errorf("line %q, want steps %q", got, want)
	}
	// along the upper ends 1, 2, 2, and back along the lower ones 1, 0, 0
	want := "M" + x0 + " " + y1 + "H" + x1 + "V" + y2 + "H" + x2 + "H" + x2 + "V" + y1 + "V" + y0 + "H" +
		x1 + "H" + x1 + "H" + x0 + "Z"
	if got := path("band"); got != want {
		t.Errorf("band %q, want steps %q", got, want)
	}
	if strings.Contains(b.String(), "<circle") {
		t.Error("steps have dots")
	}
}

// A narrow figure has the same lines and labels, half as wide, the labels in the order of the
// series and below the plot.
func TestNarrow(t *testing.T) {
	f := Figure{ID: "x", Title: "A title that is long enough to be on more than one line of a " +
		"narrow figure", XLabel: "x", YLabel: "y", Note: "a note",
		Series: []Series{{Label: "ε = 0.1", X: []float64{1, 2}, Mean: []float64{5, 1}},
			{Label: "ε = 1", X: []float64{1, 2}, Mean: []float64{1, 5}}}}
	var b bytes.Buffer
	if err := f.WriteNarrowSVG(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !strings.Contains(text, `viewBox="0 0 380 `) ||
		!strings.Contains(text, `id="x-narrow-s1"`) || strings.Contains(text, `id="x-s1"`) {
		t.Error("it is not narrow, or shares IDs with the wide one")
	}
	l, err := f.plan(true)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := l.labels[0], l.labels[1]; a.at >= b.at || a.at <= l.bottom || b.at >= l.height {
		t.Errorf("labels at %v and %v, the plot ends at %v and the figure at %v", a.at, b.at,
			l.bottom, l.height)
	}
}

// A figure's colours are those of pages, in the light and in the dark.
func TestColoursArePages(t *testing.T) {
	light, dark, _ := strings.Cut(look.CSS(), "@media screen and (prefers-color-scheme: dark)")
	token := func(css, name string) string {
		m := regexp.MustCompile("--" + name + ": (#[0-9a-f]+);").FindStringSubmatch(css)
		if m == nil {
			t.Fatalf("pages have no --%s", name)
		}
		if v := m[1]; len(v) == 4 {
			return "#" + string([]byte{v[1], v[1], v[2], v[2], v[3], v[3]})
		}
		return m[1]
	}
	names := map[colour]string{ground: "ground", ink: "ink", quiet: "quiet", danger: "danger"}
	for i := range colour(hues) {
		names[hue+i] = "s" + strconv.Itoa(int(i)+1)
	}
	seen := map[string]bool{}
	for c := ground; c < hue+hues; c++ {
		l, d := c.shades()
		if name, ok := names[c]; ok && (l != token(light, name) || d != token(dark, name)) {
			t.Errorf("--%s is %s and %s, a figure's %s and %s", name, token(light, name),
				token(dark, name), l, d)
		}
		if seen[l] {
			t.Errorf("%s is two colours: the dark cannot tell them apart", l)
		}
		seen[l] = true
	}
}

// A line without privacy has the hue of the private one that it belongs to, and dots; without such
// it has a hue of its own. No two lines of a figure look alike, with or without their colours.
func TestTwinsShareAHue(t *testing.T) {
	f := Figure{Series: []Series{{Family: "ucb"}, {Family: "kl-ucb"}, {Family: "ucb", Plain: true},
		{Family: "kl-ucb", Plain: true}, {Family: "ucb"}, {}, {Family: "se", Plain: true},
		{Family: "kl-ucb", Plain: true}}}
	got := f.styles()
	for i, want := range []int{0, 1, 0, 1, 2, 3, 4, 1} {
		if got[i].hue != want {
			t.Errorf("series %d has hue %d, want %d", i, got[i].hue, want)
		}
		if dotted := len(got[i].dash) > 1 && got[i].dash[0] == 2; dotted != f.Series[i].Plain {
			t.Errorf("series %d has dashes %v", i, got[i].dash)
		}
	}
	many := Figure{Series: make([]Series, 40)}
	mixed := Figure{Series: make([]Series, 30)}
	for i := range mixed.Series {
		mixed.Series[i] = Series{Aside: i%3 == 1, Plain: i%7 == 2, Family: strconv.Itoa(i % 4)}
	}
	for _, f := range []Figure{f, many, mixed} {
		seen := map[string]bool{}
		for i, s := range f.styles() {
			key := fmt.Sprint(s)
			if i < 35 {
				key = fmt.Sprint(s.dash, s.marker)
			}
			if seen[key] {
				t.Errorf("series %d of %d looks like another: %s", i, len(f.Series), key)
			}
			seen[key] = true
		}
	}
}
