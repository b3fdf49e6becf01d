package paper

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // the program that draws
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/report"
)

// bundleProgram draws a bundle's figures from its data, with nothing of Sotto's.
//
//go:embed bundle.py
var bundleProgram []byte

const bundleText = `Figures of the sources of Sotto, played again.

    python3 make.py

checks the files against SHA256SUMS and draws every figure of data/ as SVG into figures/. It needs Python's standard
library and nothing else. data/FIGURE/NAME.csv has the numbers of a figure, NAME.json its titles and axes; claims.csv
what became of each claim; experiments/ the files that "sotto run" plays again.
`

// A drawing is all of a figure but its numbers.
type drawing struct {
	ID        string        `json:"id"`
	Title     string        `json:"title"`
	Subtitle  string        `json:"subtitle,omitempty"`
	X         string        `json:"x"`
	Y         string        `json:"y"`
	LogX      bool          `json:"log_x,omitempty"`
	LogY      bool          `json:"log_y,omitempty"`
	Series    []drawnSeries `json:"series,omitempty"`
	Marks     []drawnMark   `json:"marks,omitempty"`
	Reference *float64      `json:"reference,omitempty"` // of a forest plot, whose rows are in the CSV
	Says      string        `json:"says,omitempty"`
	Note      string        `json:"note,omitempty"`
}

type drawnSeries struct {
	Label string `json:"label"`
	Step  bool   `json:"step,omitempty"`
	Plain bool   `json:"plain,omitempty"`
	Aside bool   `json:"aside,omitempty"`
}

type drawnMark struct {
	X     float64 `json:"x"`
	Label string  `json:"label"`
}

// dataOf is a figure as files: what it is, and its numbers.
func dataOf(f report.Figure) (about, numbers []byte, err error) {
	d := drawing{ID: f.ID, Title: f.Title, Subtitle: f.Subtitle, X: f.XLabel, Y: f.YLabel, LogX: f.LogX,
		LogY: f.LogY, Note: f.Note}
	for _, m := range f.Marks {
		if !math.IsNaN(m.X) && !math.IsInf(m.X, 0) { // others are out of the range of the series
			d.Marks = append(d.Marks, drawnMark(m))
		}
	}
	var rows [][]string
	if f.Forest != nil {
		d.Reference, d.Says = &f.Forest.Reference, f.Forest.Says
		rows = append(rows, []string{"row", "low", "middle", "high", "text", "verdict"})
		for _, r := range f.Forest.Rows {
			rows = append(rows, []string{r.Name, digits(r.Lo), digits(r.Mid), digits(r.Hi), r.Text, r.Verdict})
		}
	} else {
		rows = append(rows, []string{"series", "x", "mean", "low", "high"})
	}
	for i, s := range f.Series {
		label := s.Label
		if label == "" {
			label = strings.TrimSuffix(s.Policy+", "+s.Budget, ", ")
		}
		d.Series = append(d.Series, drawnSeries{label, s.Step, s.Plain, s.Aside})
		for j := range s.X {
			row := []string{strconv.Itoa(i), digits(s.X[j]), digits(s.Mean[j]), "", ""}
			if len(s.Lo) == len(s.X) && len(s.Hi) == len(s.X) {
				row[3], row[4] = digits(s.Lo[j]), digits(s.Hi[j])
			}
			rows = append(rows, row)
		}
	}
	if about, err = json.MarshalIndent(d, "", " "); err != nil {
		return nil, nil, fmt.Errorf("figure %s: %w", f.ID, err)
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		return nil, nil, fmt.Errorf("figure %s: %w", f.ID, err)
	}
	return append(about, '\n'), b.Bytes(), nil
}

// WriteBundle writes one archive, a tar.gz, of the figures that were asked for: their numbers, their
// experiments, the claims, and a program that draws each figure from the numbers. Equal results
// are equal bytes.
func (r *Reproduction) WriteBundle(w io.Writer) error {
	files := map[string][]byte{"make.py": bundleProgram, "README.txt": []byte(bundleText)}
	results, drawn := slices.Clone(r.Results), 0
	for i := range results {
		f := &results[i]
		f.Time = Time{} // another machine's
		for _, x := range f.Settings {
			if x.Played {
				files[path.Join("experiments", f.ID, x.Name+".yaml")] = []byte(x.YAML)
			}
		}
		at := filepath.Join(r.Dir, "data", f.ID, "figures")
		entries, err := os.ReadDir(at) // empty where all is in tables
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bundle: %w %s: figure %s has no drawing, must have been played to its end: "+
				"leave it out", ErrOutput, r.Dir, f.ID)
		}
		if err != nil {
			return fmt.Errorf("bundle: %w", err)
		}
		for _, e := range entries {
			name, svg := strings.CutSuffix(e.Name(), ".svg")
			if !svg || strings.HasSuffix(name, "-narrow") {
				continue
			}
			drawn++
			for _, ext := range []string{".json", ".csv"} {
				b, err := os.ReadFile(filepath.Join(at, name+ext))
				if errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("bundle: %w %s: figure %s was drawn by an earlier version, which kept no "+
						"numbers: choose another directory with --out", ErrOutput, r.Dir, f.ID)
				}
				if err != nil {
					return fmt.Errorf("bundle: %w", err)
				}
				files[path.Join("data", f.ID, name+ext)] = b
			}
		}
	}
	if drawn == 0 {
		return fmt.Errorf("bundle: %w %s: none of the figures that were asked for has a drawing, one must",
			ErrOutput, r.Dir)
	}
	var claims bytes.Buffer
	if err := WriteClaims(&claims, results); err != nil {
		return err
	}
	files["claims.csv"] = claims.Bytes()
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	files["SHA256SUMS"] = []byte(sums.String())
	return writeTar(w, "sotto-figures", files)
}

// writeTar writes files by name, under a directory, with no time and no owner.
func writeTar(w io.Writer, dir string, files map[string][]byte) error {
	zip, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	out := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(dir, name), Mode: 0o644,
			Size: int64(len(files[name])), Format: tar.FormatPAX})
		if err == nil {
			_, err = out.Write(files[name])
		}
		if err != nil {
			return fmt.Errorf("bundle: %s: %w", name, err)
		}
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}
