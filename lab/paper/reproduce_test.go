package paper

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// hostile would break out of any text, attribute or line that does not escape it.
const hostile = "<script src=\"http://evil.example/x.js\"></script>'\"`--> & \u202e\x07\n| **x** ]]>"

var testSettings = fstest.MapFS{
	"README.md": {Data: []byte("Settings of the tests.\n")},
	"pair.yaml": {Data: []byte(`name: pair
description: Two arms.
horizon: 2000
runs: 24
seed: 7
instances: [{name: pair, bernoulli: [0.75, 0.25]}]
policies: [adap-ucb, ucb]
budgets: [{epsilon: 1}]
checkpoints: 5
`)},
	"logged.yaml": {Data: []byte(`name: logged
horizon: 500
runs: 4
seed: 8
instances: [{name: doses, csv: doses.csv}]
policies: [ucb]
checkpoints: 3
`)},
	"doses.csv": {Data: []byte("arm,reward\na,0\na,1\nb,1\nb,1\n")},
}

// testFigures are two small figures: all verdicts, an experiment that quick leaves out, and hostile
// text; and one that breaks.
func testFigures() []Figure {
	compare := func(threshold float64) Check {
		return func(e *Evidence) Finding {
			a := need(e.Cell("pair", "pair", "adap-ucb", "epsilon=1")).FinalRegret
			b := need(e.Cell("pair", "pair", "ucb", "none")).FinalRegret
			r, lo, hi := Ratio(a, b, 1)
			return Above(r, lo, hi, threshold, len(a), hostile)
		}
	}
	return []Figure{
		{
			ID: "thesis-9.10", Source: "000", Where: "Figure 9.10", Title: "Two arms " + hostile,
			About: hostile, Chosen: hostile, Voids: "Rewards are not clipped. " + hostile,
			Experiments: []Experiment{
				{Name: "pair", File: "pair.yaml", Quick: func(s *experiment.Spec) { s.Runs = 12 }},
				{Name: "logged", File: "logged.yaml"},
			},
			Claims: []Claim{
				{ID: "dearer", Text: "Privacy costs, " + hostile, Statistic: hostile, Why: hostile,
					Decide: compare(1)},
				{ID: "dearer-by-far", Text: "Privacy costs a thousandfold", Why: "Why: " + hostile,
					Decide: compare(1000)},
				{ID: "open", Text: "Privacy costs exactly so much", Decide: func(e *Evidence) Finding {
					return Above(1, 0, 2, 1, 6, "")
				}},
				{ID: "left-out", Text: "Logged rewards", Decide: func(e *Evidence) Finding {
					r, err := e.Results("logged")
					if err != nil {
						err = fmt.Errorf("logged rewards: %w", err)
					}
					return Above(float64(len(need(r, err).Cells)), 1, 1, 0, 1, "")
				}},
				{ID: "wrong", Text: "A check with an error", Decide: func(e *Evidence) Finding {
					return need(Finding{}, errors.New("no such arm "+hostile))
				}},
				{ID: "broken", Text: "A check that breaks", Decide: func(e *Evidence) Finding {
					var x []int
					return Finding{Runs: x[3]}
				}},
			},
		},
		{
			ID: "thesis-9.2", Source: "000", Where: "Theorem 9.2", Title: "A number",
			Compute: func(_ context.Context, _ Preset, n *Numbers) {
				*n = Numbers{
					Values: map[string][]float64{"pi": {math.Pi}}, Runs: 3,
					Notes: []string{"No real data was given: the sample was used. " + hostile},
					Tables: []report.Table{{Title: hostile, Head: []string{"a", hostile}, Text: 1,
						Groups: []report.Group{{Head: hostile, Rows: [][]string{{hostile, "1"}}}}}},
					Figures: []report.Figure{{ID: "pi", Title: hostile, XLabel: hostile,
						YLabel: hostile, Series: []report.Series{{Label: hostile,
							X: []float64{1, 2}, Mean: []float64{3, 4}}}},
						{ID: "pi", Title: "Again", Series: []report.Series{{Label: "b",
							X: []float64{1, 2}, Mean: []float64{3, 4}}}}},
				}
			},
			Claims: []Claim{{ID: "pi", Text: "π is above 3", Decide: func(e *Evidence) Finding {
				v := need(e.Values("pi"))
				return Above(v[0], v[0], v[0], 3, 0, "")
			}}},
		},
		{
			ID: "sajed-1", Source: "002", Where: "nowhere", Title: "What cannot be computed",
			Compute: func(context.Context, Preset, *Numbers) {
				try(errors.New("no numbers " + hostile))
			},
			Claims: []Claim{{ID: "any", Text: "Anything", Decide: func(e *Evidence) Finding {
				return Finding{Answer: Holds}
			}}},
		},
	}
}

func reproduce(t *testing.T, ctx context.Context, dir string, figures []Figure,
	o Options) (*Reproduction, error) {
	t.Helper()
	o.Out, o.settings = dir, testSettings
	if o.Preset == "" {
		o.Preset = Quick
	}
	return Reproduce(ctx, figures, o)
}

// claims is claims.csv without its seconds.
func claims(t *testing.T, dir string) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "claims.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if len(rows[i]) != 11 {
			t.Fatalf("line %d has %d fields", i+1, len(rows[i]))
		}
		rows[i] = rows[i][:10]
	}
	return rows
}

func TestEndToEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	var events []string
	r, err := reproduce(t, t.Context(), dir, testFigures(), Options{Workers: 2, Progress: func(e Event) {
		if e.Done != nil {
			events = append(events, fmt.Sprint(e.Figure, e.I, e.N))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"thesis-9.101 3", "thesis-9.22 3", "sajed-13 3"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	if want := []string{"thesis-9.10", "sajed-1"}; !slices.Equal(r.Failed(), want) {
		t.Errorf("failed %q, want %q", r.Failed(), want)
	}
	want := [][2]string{ // by source, 9.2 before 9.10
		{"id", "verdict"}, {"thesis-9.2/pi", "reproduces"}, {"thesis-9.10/dearer", "reproduces"},
		{"thesis-9.10/dearer-by-far", "not reproduced"}, {"thesis-9.10/open", "not tested"},
		{"thesis-9.10/left-out", "not tested"}, {"thesis-9.10/wrong", "error"},
		{"thesis-9.10/broken", "error"}, {"sajed-1/any", "error"},
	}
	rows := claims(t, dir)
	if len(rows) != len(want) {
		t.Fatalf("claims.csv has %d lines, want %d", len(rows), len(want))
	}
	for i, row := range rows {
		if row[0] != want[i][0] || row[4] != want[i][1] {
			t.Errorf("line %d: %s %s, want %s", i+1, row[0], row[4], want[i])
		}
	}
	if rows[4][6] != "1" || rows[4][9] != "6" || rows[5][6] != "" || rows[5][7] != "" ||
		rows[1][6] != "3.141592653589793" {
		t.Errorf("numbers: %q %q %q", rows[1], rows[4], rows[5])
	}
	if got := r.Results[0].Runs; got != 2*12 {
		t.Errorf("%v runs were counted, want %d", got, 2*12)
	}
	figure := read(t, dir, "thesis-9.10.html")
	for _, part := range []string{
		"not played at preset quick", "no such arm", "the check broke", "Rewards are not clipped",
		"sotto reproduce thesis-9.10 --preset quick", "<svg", "seed 7", "horizon: 2000", "runs: 12",
		"<strong>Why:",
	} {
		if !strings.Contains(figure, part) {
			t.Errorf("the figure's page does not say %q", part)
		}
	}
	// Why is for what does not hold.
	if n := strings.Count(figure, "<strong>Why:"); n != 1 {
		t.Errorf("Why is told %d times, want 1", n)
	}
	if page := read(t, dir, "sajed-1.html"); !strings.Contains(page, "computation: no numbers") {
		t.Error("the page of a figure with an error does not tell it")
	}
	// wide and narrow
	if page := read(t, dir, "thesis-9.2.html"); !strings.Contains(page, "the sample was used") ||
		strings.Count(page, "<svg xmlns") != 2*2 {
		t.Error("the page of a computation lacks its note or a figure")
	}
	if _, err := os.Stat(filepath.Join(dir, "settings", "doses.csv")); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every page is well-formed but for the doctype, void elements and entities of HTML; it loads
// nothing, runs nothing, and its links lead to files that are there.
func TestPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := reproduce(t, t.Context(), dir, testFigures(), Options{Preset: Full}); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil || len(pages) != 6 {
		t.Fatalf("pages %v, %v, want 6", pages, err)
	}
	for _, path := range pages {
		name := filepath.Base(path)
		text := read(t, dir, name)
		if strings.Contains(text, "<script") {
			t.Errorf("%s has a script", name)
		}
		if strings.ContainsAny(text, "\u202e\x07") {
			t.Errorf("%s has a character that turns text around or rings", name)
		}
		// HTML's void elements are closed here.
		text = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(text, "")
		text = regexp.MustCompile(`<(meta|br)\b([^>]*)>`).ReplaceAllString(text, "<$1$2/>")
		d := xml.NewDecoder(strings.NewReader(text))
		d.Entity = xml.HTMLEntity
		ids, links, heads := map[string]bool{}, []string{}, 0
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			e, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			switch e.Name.Local {
			case "script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "use":
				t.Errorf("%s has a %s", name, e.Name.Local)
			case "h1":
				heads++
			}
			for _, a := range e.Attr {
				switch {
				case a.Name.Local == "id":
					if ids[a.Value] {
						t.Errorf("%s has the id %q twice", name, a.Value)
					}
					ids[a.Value] = true
				case a.Name.Local == "href":
					links = append(links, a.Value)
				case a.Name.Local == "src", a.Name.Local == "srcset", strings.HasPrefix(a.Name.Local, "on"):
					t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
				case a.Name.Local != "xmlns" && strings.Contains(a.Value, "://") &&
					!strings.Contains(a.Value, "evil.example"):
					t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
				}
			}
		}
		if heads != 1 || !ids["main"] {
			t.Errorf("%s has %d h1, and main: %v", name, heads, ids["main"])
		}
		for _, l := range links {
			file, anchor, _ := strings.Cut(l, "#")
			switch {
			case file == "" && !ids[anchor]:
				t.Errorf("%s: link to %q", name, l)
			case file != "":
				if b, err := os.ReadFile(filepath.Join(dir,
					filepath.FromSlash(file))); err != nil || anchor != "" &&
					!strings.Contains(string(b), `id="`+anchor+`"`) {
					t.Errorf("%s: link to %q: %v", name, l, err)
				}
			}
		}
	}
}

// A run that was stopped, at any of its steps, ends as one that was not: the same claims and,
// times apart, pages.
func TestStoppedAndGoneOn(t *testing.T) {
	figures := testFigures()
	whole := filepath.Join(t.TempDir(), "whole")
	if _, err := reproduce(t, t.Context(), whole, figures, Options{}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "stopped")
	for steps := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		left := steps
		_, err := reproduce(t, ctx, dir, figures, Options{Workers: 1, Progress: func(e Event) {
			if left--; left < 0 {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the same command goes on") {
			t.Fatalf("stopped after %d steps: %v", steps, err)
		}
		if page := read(t, dir, "index.html"); !strings.Contains(page, "Not finished") {
			t.Error("the index does not say that it is not finished")
		}
	}
	r, err := reproduce(t, t.Context(), dir, figures, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(claims(t, dir)), fmt.Sprint(claims(t, whole)); got != want {
		t.Errorf("claims differ:\n%s\n%s", got, want)
	}
	times := regexp.MustCompile(`[0-9.]+ s\b|[^>]* of playing, [^<]*`)
	for _, name := range []string{"index.html", "thesis-9.10.html", "thesis-9.2.html"} {
		if times.ReplaceAllString(read(t, dir, name), "") != times.ReplaceAllString(read(t, whole, name), "") {
			t.Errorf("%s differs", name)
		}
	}
	// Nothing is left to play: seconds stay, and so do all bytes.
	before := read(t, dir, "claims.csv")
	calls := 0
	for i := range figures {
		if f := figures[i].Compute; f != nil && figures[i].ID == "thesis-9.2" {
			figures[i].Compute = func(ctx context.Context, p Preset, n *Numbers) {
				calls++
				f(ctx, p, n)
			}
		}
	}
	again, err := reproduce(t, t.Context(), dir, figures[:2], Options{})
	if err != nil {
		t.Fatal(err)
	}
	if read(t, dir, "claims.csv") != before || calls != 0 {
		t.Errorf("a second call played again: %d computations", calls)
	}
	if !reflect.DeepEqual(again.Results[0].Time, r.Results[0].Time) || len(again.All) != 3 ||
		len(again.Results) != 2 {
		t.Error("a second call lost time or a figure")
	}
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := reproduce(t, ctx, filepath.Join(t.TempDir(), "out"), testFigures(),
		Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(t.TempDir(), "full")
	if _, err := reproduce(t, t.Context(), full, nil, Options{Preset: Full}); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, stateFile), []byte(`{"format": 9}`), 0o644); err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(t.TempDir(), "built")
	if _, err := reproduce(t, t.Context(), built, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	b := strings.Replace(read(t, built, stateFile), `"go": "go`, `"go": "gone`, 1)
	if err := os.WriteFile(filepath.Join(built, stateFile), []byte(b), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir, want string
		o         Options
	}{
		{other, "it is not empty, and it holds no reproduction", Options{}},
		{full, "it holds a reproduction at preset paper, not quick", Options{}},
		{foreign, "is none of this program's", Options{}},
		{built, "it was begun by another build", Options{}},
		{file, "not a directory", Options{}},
		{"", "none is given", Options{}},
		{full, `preset is "both"`, Options{Preset: "both"}},
		{full, "workers is -1", Options{Workers: -1}},
	} {
		_, err := reproduce(t, t.Context(), c.dir, testFigures()[:1], c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
			continue
		}
		if c.o.Preset == "" && c.o.Workers == 0 &&
			(!errors.Is(err, ErrOutput) || !errors.Is(err, experiment.ErrOutput)) {
			t.Errorf("%v matches no ErrOutput", err)
		}
	}
	if r, err := reproduce(t, t.Context(), built, nil, Options{Mixed: true}); err != nil || !r.Mixed {
		t.Errorf("mixed builds: %v", err)
	}
	if _, err := os.Stat(filepath.Join(other, "index.html")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a directory that was refused was written to")
	}
	// Results of another experiment where a figure's belong are that figure's error.
	dir := filepath.Join(t.TempDir(), "out")
	figures := testFigures()[:2]
	figures[0].Experiments = figures[0].Experiments[:1]
	if _, err := reproduce(t, t.Context(), dir, figures, Options{}); err != nil {
		t.Fatal(err)
	}
	figures[0].Experiments[0].Quick = func(s *experiment.Spec) { s.Runs = 5 }
	r, err := reproduce(t, t.Context(), dir, figures, Options{})
	if err != nil || !strings.Contains(r.Results[0].Failed, "it holds another experiment of the "+
		"same name") || r.Results[1].Failed != "" {
		t.Errorf("changed settings: %v, %+v", err, r)
	}
}

func TestSelect(t *testing.T) {
	figures := testFigures()
	for _, c := range []struct {
		names, want []string
	}{
		{nil, []string{"thesis-9.10", "thesis-9.2", "sajed-1"}},
		{[]string{"000"}, []string{"thesis-9.10", "thesis-9.2"}},
		{[]string{"sajed"}, []string{"sajed-1"}},
		{[]string{"sajed-1", "thesis-9.2", "002"}, []string{"thesis-9.2", "sajed-1"}},
		{[]string{"thesis-9.1"}, []string{"thesis-9.10"}},
	} {
		got, err := Select(figures, c.names)
		var ids []string
		for i := range got {
			ids = append(ids, got[i].ID)
		}
		if err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%q: %q, %v, want %q", c.names, ids, err, c.want)
		}
	}
	for _, name := range []string{"zcdp", "", "003"} {
		var unknown *UnknownError
		if _, err := Select(figures, []string{name}); !errors.As(err, &unknown) ||
			!strings.Contains(err.Error(), "thesis-9.10, thesis-9.2, sajed-1") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestBadFigures(t *testing.T) {
	ok := func() Figure {
		return Figure{ID: "a-1", Source: "000", Experiments: []Experiment{{Name: "x",
			File: "pair.yaml"}}, Claims: []Claim{{ID: "c"}}}
	}
	for want, spoil := range map[string]func(f *Figure){
		"its ID must be":        func(f *Figure) { f.ID = "../x" },
		"name of another page":  func(f *Figure) { f.ID = "index" },
		"source \"\" must be":   func(f *Figure) { f.Source = "" },
		"experiment \"a/b\"":    func(f *Figure) { f.Experiments[0].Name = "a/b" },
		"claim \"c\": IDs must": func(f *Figure) { f.Claims = append(f.Claims, Claim{ID: "c"}) },
		"experiment \"x\": names m": func(f *Figure) {
			f.Experiments = append(f.Experiments, f.Experiments[0])
		},
	} {
		f := ok()
		spoil(&f)
		if _, err := reproduce(t, t.Context(), t.TempDir(), []Figure{f}, Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := reproduce(t, t.Context(), t.TempDir(), []Figure{ok(), ok()},
		Options{}); err == nil || !strings.Contains(err.Error(), "is there twice") {
		t.Error(err)
	}
	if err := check(All()); err != nil {
		t.Error(err)
	}
}

func TestNatural(t *testing.T) {
	want := []string{"sajed-6.1", "sajed-6.2", "sajed-6.10", "sajed-a.1", "thesis-2.1",
		"thesis-5.2", "thesis-5.02x", "thesis-c.1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, natural)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestShort(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1: "1", 2.04999: "2.05", -0.5: "−0.5", 12345: "12\u202f345",
		-1234567: "−1\u202f234\u202f567", 0.0001234567: "0.0001235", 1e-5: "1e−05",
		math.Inf(1): "∞", math.Inf(-1): "−∞", 3e10: "3e+10",
	} {
		if got := short(x); got != want {
			t.Errorf("short(%v) = %q, want %q", x, got, want)
		}
	}
	if short(math.NaN()) != "–" {
		t.Error("NaN")
	}
}

func TestMarkdown(t *testing.T) {
	r, err := reproduce(t, t.Context(), filepath.Join(t.TempDir(), "out"), testFigures(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, part := range []string{
		"| verdict | means | Azize 2024 | Sajed 2019 | all |", "| **error** | The check, or what " +
			"it rests on, " +
			"went wrong here. | 2 | 1 | 3 |", "| not tested | What would decide it is not at " +
			"hand: data, more runs, a longer preset, or how near \"matches\" is. | 2 | 0 | 2 |",
		"- *not reproduced*: thesis-9.10/dearer-by-far.\n", "- **sajed-1** went wrong: " +
			"computation: no numbers", "8 claims on 3 pages", "24 runs were played: a run is",
		"are not contradicted, 2 are not tested.", "- **Sajed 2019**: 0 of 1 claims reproduce or are not " +
			"contradicted.\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q", part)
		}
	}
	if strings.Contains(text, "<script") || strings.ContainsAny(text, "\u202e\x07") ||
		strings.Contains(text, "| **x**") {
		t.Error("hostile text is not escaped")
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 6 {
			t.Errorf("a row of %d cells: %s", strings.Count(line, "|")-1, line)
		}
	}
}

// Real data replaces a sample; the page says which was played.
func TestRealData(t *testing.T) {
	figures := testFigures()[:1]
	dir, data := filepath.Join(t.TempDir(), "out"), t.TempDir()
	if _, err := reproduce(t, t.Context(), dir, figures, Options{Preset: Full}); err != nil {
		t.Fatal(err)
	}
	if page := read(t, dir, "thesis-9.10.html"); !strings.Contains(page,
		"no real data was given: doses.csv is the sample") {
		t.Error("the page does not say that a sample was played")
	}
	if _, err := reproduce(t, t.Context(), dir, figures,
		Options{Preset: Full, Data: data}); !errors.Is(err, ErrData) ||
		!strings.Contains(err.Error(), "doses.csv") {
		t.Errorf("a directory without data: %v", err)
	}
	if err := os.WriteFile(filepath.Join(data, "doses.csv"), []byte("arm,reward\na,0\nb,1\nb,0\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	// Not in the same directory: results of the sample must not pass for others.
	r, err := reproduce(t, t.Context(), dir, figures, Options{Preset: Full, Data: data})
	if err != nil || !strings.Contains(r.Results[0].Failed, "it holds another experiment of the same name") {
		t.Errorf("other data in the same directory: %v, %q", err, r.Results[0].Failed)
	}
	dir = filepath.Join(t.TempDir(), "real")
	r, err = reproduce(t, t.Context(), dir, testFigures()[:2],
		Options{Preset: Full, Data: data, DataFlag: "--data here"})
	if err != nil {
		t.Fatal(err)
	}
	// A page's command names the data where there are such, and else would be refused.
	for page, has := range map[string]bool{"thesis-9.10.html": true, "index.html": true,
		testFigures()[1].ID + ".html": false} {
		if strings.Contains(read(t, dir, page), "--data here") != has {
			t.Errorf("%s: --data in its command: want %v", page, has)
		}
	}
	if page := read(t, dir, "thesis-9.10.html"); !strings.Contains(page, "real data: doses.csv is ") {
		t.Error("the page does not name the real data")
	}
	// The summary's numbers are of the command that it shows.
	var b bytes.Buffer
	if err := r.WriteMarkdown(&b); err != nil || !strings.Contains(b.String(), "--preset paper --data DIR`") {
		t.Errorf("the summary does not say that real data were given (%v):\n%s", err, b.String())
	}
}
