package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/internal/report"
)

// tb is what testing.T and rapid.T share.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func svg(t tb, f report.Figure) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.WriteSVG(&b); err != nil {
		t.Fatalf("%v", err)
	}
	return b.Bytes()
}

func html(t tb, r report.Page) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatalf("%v", err)
	}
	return b.Bytes()
}

func text(t tb, table report.Comparison) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := table.Table().WriteText(&b); err != nil {
		t.Fatalf("%v", err)
	}
	return b.Bytes()
}

// small is a figure of few points with everything a figure can have.
func small() report.Figure {
	return report.Figure{
		ID: "small", Title: "Small & plain", Subtitle: "two lines", XLabel: "round t",
		YLabel: "regret", LogX: true, LogY: true, Note: "Mean of 3 runs.",
		Series: []report.Series{
			{Label: "AdaP-KLUCB", Policy: "adap-klucb", Budget: "epsilon=1",
				X: []float64{1, 10, 100, 1000}, Mean: []float64{0, 2, 20, 50}, Lo: []float64{0, 1, 18, 46},
				Hi: []float64{0, 3, 22, 54}},
			{Policy: "dp-ucb", Budget: "none", Void: true, X: []float64{1, 10, 100, 1000},
				Mean: []float64{.25, 2.5, 25, 60}},
		},
	}
}

// smallPage is a page with everything a page can have.
func smallPage() report.Page {
	r := page()
	r.Figures = []report.Figure{small()}
	return r
}

// A meter is a bar with its text, whatever is in that.
func TestMeter(t *testing.T) {
	r := page()
	r.Meters = []report.Meter{{Name: "<budget>", Text: "1 of 4", Share: 0.25}}
	got := string(html(t, r))
	for _, want := range []string{`value="0.25"`, `aria-label="&lt;budget&gt;"`, ">1 of 4</meter>"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not on the page", want)
		}
	}
}

func TestGolden(t *testing.T) {
	for name, got := range map[string][]byte{
		"small.svg": svg(t, small()), "table.txt": text(t, table()), "page.html": html(t, smallPage()),
	} {
		path := filepath.Join("testdata", name)
		got = bytes.Replace(got, []byte(look.CSS()), []byte("/* the style of all pages */\n"), 1)
		if *update {
			write(t, path, got)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (go test -update rewrites it):\n%s", name, diff)
		}
	}
}

var (
	pathData = regexp.MustCompile(`^[MLHVZhv0-9 .-]*$`)
	decimal  = regexp.MustCompile(`-?[0-9]*\.?[0-9]+`)
)

// wellFormed parses the SVG and checks what a browser would otherwise be silent about:
// coordinates that are no numbers or lie outside of the view box, ids used twice, anything that
// could load or run.
func wellFormed(t tb, data []byte) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	ids := map[string]bool{}
	width, height := 0.0, 0.0
	coordinate := func(s string, limit float64) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= -0.01 && v <= limit+0.01) {
			t.Fatalf("coordinate %s is not in [0, %v]", s, limit)
		}
	}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v\n%s", err, data)
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "svg", "title", "desc", "style", "rect", "path", "g", "text", "tspan", "circle":
			default:
				t.Fatalf("unexpected element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				switch n := a.Name.Local; n {
				case "viewBox":
					if _, err := fmt.Sscanf(a.Value, "0 0 %g %g", &width, &height); err != nil {
						t.Fatalf("view box %q: %v", a.Value, err)
					}
				case "id":
					if ids[a.Value] {
						t.Fatalf("id %s is used twice", a.Value)
					}
					ids[a.Value] = true
				case "d":
					if !pathData.MatchString(a.Value) {
						t.Fatalf("path %q", a.Value)
					}
					for _, n := range decimal.FindAllString(a.Value, -1) {
						if n != "-4" { // relative: a mark's length
							coordinate(n, max(width, height))
						}
					}
				case "x", "cx":
					coordinate(a.Value, width)
				case "y", "cy":
					coordinate(a.Value, height)
				default:
					if strings.HasPrefix(n, "on") || n == "href" || n == "style" {
						t.Fatalf("unexpected attribute %s", n)
					}
				}
			}
		case xml.CharData:
			if style := string(e); strings.HasPrefix(style,
				"@media screen and (prefers-color-scheme: dark) {") {
				if outside.MatchString(style) {
					t.Fatalf("a style sheet leads outside: %s", style)
				}
				continue
			}
			texts = append(texts, string(e))
		}
	}
	return texts
}

// figures are drawn at random, with everything floating point and Unicode have to offer.
func figures() *rapid.Generator[report.Figure] {
	return rapid.Custom(func(t *rapid.T) report.Figure {
		word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"",
			"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "]]>", "\x00\x1b[31m",
			strings.Repeat("long ", 40), "\xff\xfe", "\u202eevil", "日本語", "{{.}}", "</title></svg>"}))
		value := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1e6),
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1),
				math.Inf(-1), math.MaxFloat64,
				-math.MaxFloat64, 5e-324, 1e300, -1e300, 1}))
		f := report.Figure{ID: "f", Title: word.Draw(t, "title"),
			Subtitle: word.Draw(t, "subtitle"), XLabel: word.Draw(t, "x"), YLabel: word.Draw(t, "y"),
			Note: word.Draw(t, "note"), LogX: rapid.Bool().Draw(t, "logx"), LogY: rapid.Bool().Draw(t, "logy")}
		for range rapid.IntRange(1, 20).Draw(t, "series") {
			s := report.Series{Label: word.Draw(t, "label"), Policy: word.Draw(t, "policy"),
				Budget: word.Draw(t, "budget"), Void: rapid.Bool().Draw(t, "void")}
			n := rapid.IntRange(0, 20).Draw(t, "points")
			x := rapid.SampledFrom([]float64{-10, 0, 1e-300, 1, 1e290}).Draw(t, "x0")
			band := rapid.Bool().Draw(t, "band")
			for range n {
				s.X, s.Mean = append(s.X, x), append(s.Mean, value.Draw(t, "mean"))
				if band {
					s.Lo, s.Hi = append(s.Lo, value.Draw(t, "lo")), append(s.Hi, value.Draw(t, "hi"))
				}
				x += math.Abs(x)*rapid.Float64Range(1e-6, 10).Draw(t, "step") + 1e-300
			}
			f.Series = append(f.Series, s)
		}
		return f
	})
}

func TestAnyFigureIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := figures().Draw(t, "figure")
		drawn := svg(t, f)
		wellFormed(t, drawn)
		if !bytes.Equal(drawn, svg(t, f)) {
			t.Fatalf("two drawings differ")
		}
		page := html(t, report.Page{Name: f.Title, Spec: f.Note, Description: f.Subtitle,
			Figures:  []report.Figure{f},
			Warnings: []string{f.Series[0].Label}, Tables: []report.Table{report.Comparison{Title: f.Title,
				Rows: []report.Row{{Instance: f.XLabel, Policy: f.YLabel}}}.Table()}})
		if !bytes.Contains(page, drawn) {
			t.Fatalf("the page does not hold the same drawing")
		}
		selfContained(t, page, 1)
	})
}

func TestExtremes(t *testing.T) {
	for _, f := range extremes() {
		wellFormed(t, svg(t, f))
	}
	// A thousand points.
	s := report.Series{Label: "long"}
	for i := range 1000 {
		s.X, s.Mean = append(s.X, float64(i)), append(s.Mean, math.Sin(float64(i)))
	}
	wellFormed(t, svg(t, report.Figure{ID: "long", Series: []report.Series{s}}))
}

// A logarithmic axis starts a line at its first positive point, and a gap interrupts it.
func TestGaps(t *testing.T) {
	f := report.Figure{ID: "gap", LogY: true,
		Series: []report.Series{{Label: "a", X: []float64{1, 2, 3, 4, 5, 6, 7},
			Mean: []float64{0, 1, 10, math.NaN(), 10, 1, -1}}}}
	lines := regexp.MustCompile(`class="line" d="([^"]*)"`).FindSubmatch(svg(t, f))
	if lines == nil {
		t.Fatal("no line")
	}
	if d := string(lines[1]); strings.Count(d, "M") != 2 || strings.Count(d, "L") != 2 {
		t.Errorf("path %s, want two strokes of two points", d)
	}
}

var (
	scripts = regexp.MustCompile(`(?s)<script[^>]*>.*?</script>|<style>.*?</style>`)
	data    = regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`)
	outside = regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9]|url\(|@import|\s(?:src|href|action)\s*=`)
)

// selfContained parses the page without its scripts, and checks that nothing of it leads outside
// and that it has no script but ours.
func selfContained(t tb, page []byte, figures int) {
	t.Helper()
	markup := scripts.ReplaceAll(page, nil)
	d := xml.NewDecoder(bytes.NewReader(markup))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	depth := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("page does not parse: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			depth++
			if n := e.Name.Local; n == "script" || n == "img" || n == "link" || n == "iframe" || n == "a" {
				t.Fatalf("unexpected element %s", n)
			}
			for _, a := range e.Attr {
				if n := a.Name.Local; strings.HasPrefix(n, "on") || n == "src" || n == "href" {
					t.Fatalf("unexpected attribute %s", n)
				}
			}
		case xml.EndElement:
			depth--
		}
	}
	if depth != 0 {
		t.Fatalf("%d elements are left open", depth)
	}
	blocks := data.FindAllSubmatch(page, -1)
	if len(blocks) != 2*figures { // wide and narrow
		t.Fatalf("%d blocks of data, want %d", len(blocks), 2*figures)
	}
	for _, b := range blocks {
		var r struct {
			Box    [4]float64
			X      []float64
			At     []string
			Series []struct {
				Y    []*float64
				Text []string
			}
		}
		if err := json.Unmarshal(b[1], &r); err != nil {
			t.Fatalf("data: %v\n%s", err, b[1])
		}
		for _, s := range r.Series {
			if len(s.Y) != len(r.X) || len(s.Text) != len(r.X) || len(r.At) != len(r.X) {
				t.Fatalf("data of %d checkpoints, %d places, %d texts", len(r.X), len(s.Y), len(s.Text))
			}
		}
	}
}

func TestPage(t *testing.T) {
	p := html(t, page())
	selfContained(t, p, 2)
	if found := outside.Find(bytes.ReplaceAll(p, []byte("http://www.w3.org/2000/svg"), nil)); found != nil {
		t.Errorf("the page leads outside: %q", found)
	}
	for _, want := range []string{
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">`,
		"<strong>No privacy guarantee:</strong>", "adap-klucb: alpha = 3 is not above 3",
		"horizon: 10_000_000", "not significant (p=0.31)",
		`<span class="void">no privacy guarantee</span>`, "26\u202f340 ± 42", "Made by sotto v0.1.0.",
	} {
		if !bytes.Contains(p, []byte(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if !bytes.Equal(p, html(t, page())) {
		t.Error("two pages differ")
	}
	harmless := page()
	harmless.Tables, harmless.Warnings, harmless.Figures = nil, nil, harmless.Figures[:1]
	if bytes.Contains(html(t, harmless), []byte(`class="warnings"`)) {
		t.Error("a page without warnings warns")
	}
}

// What users write shows as they wrote it, and does nothing else.
func TestHostileText(t *testing.T) {
	evil := `</script><script>alert("x")</script>&amp;'`
	f := small()
	f.Title, f.XLabel, f.YLabel, f.Note, f.Subtitle = evil, evil, evil, evil, evil
	f.Series[0].Label, f.Series[0].Policy, f.Series[0].Budget = evil, evil, evil
	if texts := strings.Join(wellFormed(t, svg(t, f)), "\n"); !strings.Contains(texts, evil) {
		t.Error("the text is not drawn as written")
	}
	r := report.Page{
		Name: evil, Version: evil, Description: evil, Spec: evil, Warnings: []string{evil},
		Facts: []report.Fact{{Name: evil, Value: evil}},
		Tables: []report.Table{report.Comparison{Title: evil, Metric: evil, Test: evil,
			Correction: evil, Notes: []string{evil},
			Rows: []report.Row{{Instance: evil, Policy: evil, Budget: evil}}}.Table()},
		Figures: []report.Figure{f},
	}
	p := html(t, r)
	selfContained(t, p, 1)
	if bytes.Contains(p, []byte(`alert("x")`)) || bytes.Count(p, []byte("<script")) != 3 {
		t.Error("a script was let in")
	}
	out := text(t, report.Comparison{Title: "a\x1b[2Jb",
		Rows: []report.Row{{Instance: "c\nd", Policy: "e\x07\u202e", Runs: 1}}})
	if bytes.ContainsAny(out, "\x1b\x07\u202e") || !bytes.Contains(out, []byte("c d")) {
		t.Errorf("control characters reached the terminal: %q", out)
	}
}

// A void result is marked wherever it is told.
func TestVoidIsMarked(t *testing.T) {
	const mark = "no privacy guarantee"
	// label and description
	if texts := wellFormed(t, svg(t, small())); strings.Count(strings.Join(texts, "\n"), mark) != 2 {
		t.Errorf("the figure does not mark its void line: %q", texts)
	}
	f := small()
	f.Series[1].Void = false
	if bytes.Contains(svg(t, f), []byte(mark)) {
		t.Error("the figure marks a sound line")
	}
	out := string(text(t, table()))
	if !strings.Contains(out, "DP-UCB †") || !strings.Contains(out, "† "+mark) {
		t.Errorf("the table does not mark its void row:\n%s", out)
	}
}

func TestTableEdges(t *testing.T) {
	if out := string(text(t, report.Comparison{Title: "Nothing"})); !strings.Contains(out, "no results") {
		t.Errorf("empty table:\n%s", out)
	}
	one := report.Comparison{Rows: []report.Row{
		{Instance: "i", Policy: strings.Repeat("long", 50), Runs: 1, Mean: 5, Half: math.Inf(1),
			Ratio: 1, Best: true},
		{Instance: "i", Policy: "b", Runs: 2, Mean: 1e20, Half: math.NaN(), Ratio: math.Inf(1), P: math.NaN()},
	}}
	out := string(text(t, one))
	for _, want := range []string{"± ∞", "not tested", "runs", "…"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "corrected") {
		t.Errorf("a table without tests speaks of them:\n%s", out)
	}
}

func TestBadFigures(t *testing.T) {
	x := []float64{1, 2}
	for _, c := range []struct {
		change func(*report.Figure)
		want   string
	}{
		{func(f *report.Figure) {
			f.ID = "../x"
		}, `report: figure ID is "../x", must be letters, digits, '.', '_' and '-', start with a letter or digit, and have at most 200`},
		{func(f *report.Figure) { f.Series = nil }, `report: figure small: has no series`},
		{func(f *report.Figure) {
			f.Series[0].Mean = x
		}, `report: figure small: series 0 ("AdaP-KLUCB"): Mean has 2 values, X has 4`},
		{func(f *report.Figure) {
			f.Series[1].Lo = x
		}, `report: figure small: series 1 ("dp-ucb, none"): Lo has 2 values, X has 4`},
		{func(f *report.Figure) {
			f.Series[0].Hi = nil
		}, `report: figure small: series 0 ("AdaP-KLUCB"): a band needs both Lo and Hi`},
		{func(f *report.Figure) {
			f.Series[0].X[2] = 10
		}, `report: figure small: series 0 ("AdaP-KLUCB"): X[2] is 10 after 10, must increase`},
		{func(f *report.Figure) {
			f.Series[0].X[2] = math.NaN()
		}, `report: figure small: series 0 ("AdaP-KLUCB"): X[2] is NaN after 10, must increase`},
	} {
		f := small()
		c.change(&f)
		if err := f.WriteSVG(io.Discard); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
		if err := (report.Page{Figures: []report.Figure{f}}).WriteHTML(io.Discard); err == nil {
			t.Errorf("the page drew a figure that cannot be drawn: %s", c.want)
		}
	}
	twice := report.Page{Figures: []report.Figure{small(), small()}}
	if err := twice.WriteHTML(io.Discard); err == nil ||
		err.Error() != `report: figure ID "small": is used twice` {
		t.Error(err)
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	for _, err := range []error{small().WriteSVG(full{}), page().WriteHTML(full{}),
		table().Table().WriteText(full{})} {
		if !errors.Is(err, errFull) {
			t.Errorf("%v does not say that the disk is full", err)
		}
	}
}
