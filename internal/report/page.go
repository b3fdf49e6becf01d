package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/internal/words"
)

//go:embed page.html
var pageSource string

// WriteHTML writes one self-contained page: style, script, tables and the same SVGs that WriteSVG
// draws, all inline. It needs no network and asks for none (a content security policy forbids it);
// without script everything but the readout is there. All text is escaped. The error names the
// figure that cannot be drawn, or the ID that two figures share.
func (r Page) WriteHTML(w io.Writer) error {
	page := pageView{
		Name: Clean(r.Name), Version: Clean(r.Version), Description: cleanLines(r.Description),
		Spec: cleanLines(r.Spec), Style: template.CSS(look.CSS()), FiguresFirst: r.FiguresFirst,
	}
	for _, f := range r.Facts {
		page.Facts = append(page.Facts, Fact{Name: Clean(f.Name), Value: Clean(f.Value)})
	}
	for _, m := range r.Meters {
		page.Meters = append(page.Meters, Meter{Clean(m.Name), Clean(m.Text), m.Share})
	}
	for _, warning := range r.Warnings {
		page.Warnings = append(page.Warnings, cleanLines(warning))
	}
	void := false
	for _, t := range r.Tables {
		t, err := t.shown(false)
		if err != nil {
			return err
		}
		page.Tables = append(page.Tables, t)
		for _, g := range t.Groups {
			void = void || slices.ContainsFunc(g.of, func(r Row) bool { return r.Void })
		}
	}
	seen := make(map[string]bool)
	for _, f := range r.Figures {
		if seen[f.ID] {
			return fmt.Errorf("report: figure ID %q: is used twice", f.ID)
		}
		seen[f.ID] = true
		view := figureView{Title: Clean(f.Title)}
		for _, narrow := range []bool{false, true} {
			l, err := f.plan(narrow)
			if err != nil {
				return err
			}
			data, err := l.readout()
			if err != nil {
				return fmt.Errorf("report: figure %s: %w", f.ID, err)
			}
			class := "plot wide"
			if narrow {
				class = "plot narrow"
			}
			// Both are ours: svg escapes every text it draws, and json.Marshal writes <, >
			// and & as escapes.
			view.Plots = append(view.Plots, plotView{ID: l.id, Class: class, SVG: template.HTML(l.svg()),
				Data: template.JS(data)})
		}
		page.Figures = append(page.Figures, view)
		for _, s := range f.Series {
			void = void || s.Void
		}
	}
	page.Void = void
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("report: page template: %w", err)
	}
	var out bytes.Buffer // so that an error leaves no half page
	if err := t.Execute(&out, page); err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("report: write page: %w", err)
	}
	return nil
}

// pageView is what page.html is filled with.
type pageView struct {
	Name, Version, Description, Spec string
	Style                            template.CSS
	Facts                            []Fact
	Meters                           []Meter
	Warnings                         []string
	Void, FiguresFirst               bool
	Tables                           []Table
	Figures                          []figureView
}

type figureView struct {
	Title string
	Plots []plotView // for wide screens, and for narrow ones
}

type plotView struct {
	ID, Class string
	SVG       template.HTML
	Data      template.JS
}

// readout is what the page's script needs to tell the values at a checkpoint: where things are
// drawn, and the texts to show, so that the script neither scales nor formats.
type readout struct {
	Box    [4]float64      `json:"box"` // left, top, right, bottom of the plot
	X      []pixel         `json:"x"`   // where the checkpoints of all series are
	At     []string        `json:"at"`  // what they are called
	Series []readoutSeries `json:"series"`
}

type readoutSeries struct {
	Name string   `json:"name"`
	Void bool     `json:"void,omitempty"`
	Hue  int      `json:"hue"` // of the page's style, from 1
	Y    []*pixel `json:"y"`   // null where the series has no point
	Text []string `json:"text"`
}

// pixel is written with at most two decimals.
type pixel float64

func (p pixel) MarshalJSON() ([]byte, error) { return []byte(px(float64(p))), nil }

func (l *layout) readout() ([]byte, error) {
	r := readout{Box: [4]float64{math.Round(l.left), math.Round(l.top), math.Round(l.right),
		math.Round(l.bottom)}}
	// The checkpoints of all series, merged; each is increasing.
	next := make([]int, len(l.f.Series))
	head := Clean(l.f.XLabel)
	if head != "" {
		head += " = "
	}
	for i, look := range l.f.styles() {
		s := l.f.Series[i]
		r.Series = append(r.Series, readoutSeries{Name: s.label(), Void: s.Void, Hue: look.hue + 1})
	}
	for {
		x, found := math.Inf(1), false
		for i, s := range l.f.Series {
			for next[i] < len(s.X) {
				if _, _, ok := l.point(s, next[i]); ok {
					x, found = min(x, s.X[next[i]]), true
					break
				}
				next[i]++
			}
		}
		if !found {
			break
		}
		at, _ := l.x.at(x)
		r.X, r.At = append(r.X, pixel(at)), append(r.At, head+l.position(x))
		for i, s := range l.f.Series {
			y, text := (*pixel)(nil), ""
			if j := next[i]; j < len(s.X) && s.X[j] == x {
				_, v, _ := l.point(s, j)
				p := pixel(v)
				y, text = &p, s.tell(j)
				next[i]++
			}
			r.Series[i].Y, r.Series[i].Text = append(r.Series[i].Y, y), append(r.Series[i].Text, text)
		}
	}
	return json.Marshal(r)
}

// tell is the readout of a point: mean, band and median.
func (s Series) tell(j int) string {
	text := words.Number(s.Mean[j])
	if len(s.Lo) > 0 && !math.IsNaN(s.Lo[j]) && !math.IsNaN(s.Hi[j]) {
		text += " [" + words.Number(s.Lo[j]) + ", " + words.Number(s.Hi[j]) + "]"
	}
	if len(s.Q50) > 0 && !math.IsNaN(s.Q50[j]) {
		text += ", median " + words.Number(s.Q50[j])
	}
	if len(s.Q05) > 0 && len(s.Q95) > 0 && !math.IsNaN(s.Q05[j]) && !math.IsNaN(s.Q95[j]) {
		text += ", 5–95 % " + words.Number(s.Q05[j]) + "–" + words.Number(s.Q95[j])
	}
	return text
}
