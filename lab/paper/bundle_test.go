package paper

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/testkit"
)

// A bundle has every figure, is the same bytes for the same results, and its program draws each from the
// numbers alone: as XML, whatever the texts are. A file that has changed is told.
func TestBundle(t *testing.T) {
	python := testkit.Program(t, "python3")
	draw := testFigures()[:1]
	draw[0].Draw = func(*Evidence) ([]report.Figure, []report.Table) {
		return []report.Figure{
			{ID: "curves", Title: "Regret " + hostile, XLabel: "t", YLabel: "regret", LogX: true, LogY: true,
				Series: []report.Series{
					{Label: "a " + hostile, X: []float64{1, 10, 100}, Mean: []float64{1, math.NaN(), 3},
						Lo: []float64{0.5, 0.5, 0.5}, Hi: []float64{2, 3, 4}},
					{Policy: "b", Budget: "none", X: []float64{50}, Mean: []float64{2}, Plain: true}},
				Marks: []report.Mark{{X: 20, Label: hostile}}},
			{ID: "forest", Title: "Ratios", XLabel: "ratio", LogX: true, Forest: &report.Forest{Reference: 1, Says: "claimed",
				Least: 0.1, Most: 10, Rows: []report.Interval{{Name: hostile, Lo: 0.5, Mid: 0.8, Hi: math.Inf(1), Text: "0.8",
					Verdict: "refuted"}}}},
		}, nil
	}
	dir := filepath.Join(t.TempDir(), "out[1]*") // no pattern
	if runtime.GOOS == "windows" {
		dir = t.TempDir()
	}
	var bundles [2]bytes.Buffer
	for i := range bundles {
		r, err := reproduce(t, t.Context(), dir, draw, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.WriteBundle(&bundles[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(bundles[0].Bytes(), bundles[1].Bytes()) {
		t.Error("two bundles of one directory differ")
	}
	to := t.TempDir()
	names := unpacked(t, bundles[0].Bytes(), to)
	for _, want := range []string{"SHA256SUMS", "claims.csv", "make.py", "README.txt", "experiments/thesis-9.10/pair.yaml",
		"data/thesis-9.10/curves.csv", "data/thesis-9.10/forest.json"} {
		if !strings.Contains(names, "\n"+want+"\n") {
			t.Errorf("the bundle has no %s:%s", want, names)
		}
	}
	run := func() (string, error) {
		out, err := exec.Command(python, "-I", filepath.Join(to, "make.py")).CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err != nil || !strings.HasPrefix(out, "2 figures") {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"curves", "forest"} {
		b, err := os.ReadFile(filepath.Join(to, "figures", "thesis-9.10", name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(b)); ; {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "script" {
				t.Errorf("%s has a script", name)
			}
		}
		if bytes.Contains(b, []byte("nan")) || !bytes.Contains(b, []byte("<circle")) {
			t.Errorf("%s has no point, or one that is no number:\n%s", name, b)
		}
	}
	// A file that is not listed is not drawn, and where none is listed nothing is, which is told.
	if err := os.WriteFile(filepath.Join(to, "data", "more.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(); err != nil || !strings.HasPrefix(out, "2 figures") {
		t.Fatalf("%v: %s", err, out)
	}
	sums, err := os.ReadFile(filepath.Join(to, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{nil, sums} {
		if err := os.WriteFile(filepath.Join(to, "SHA256SUMS"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := run(); (err == nil) != (text != nil) {
			t.Errorf("with %d bytes of sums: %v: %s", len(text), err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(to, "data", "thesis-9.10", "curves.csv"), []byte("series\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(); err == nil || !strings.Contains(out, "data/thesis-9.10/curves.csv is not what it was") {
		t.Errorf("a file that has changed is drawn: %v: %s", err, out)
	}
	// What an earlier version drew has no numbers.
	r, err := reproduce(t, t.Context(), dir, draw, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "data", "thesis-9.10", "figures", "curves.csv")); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteBundle(io.Discard); !errors.Is(err, ErrOutput) {
		t.Errorf("the error is %v, must be that of the directory", err)
	}
}

// A figure that was asked for and has no drawing is no part of a bundle, and this is told.
func TestBundleUndrawn(t *testing.T) {
	r := &Reproduction{Dir: t.TempDir(), Results: []Result{{ID: "thesis-9.10"}}}
	if err := r.WriteBundle(io.Discard); !errors.Is(err, ErrOutput) || !strings.Contains(err.Error(), "thesis-9.10 has no drawing") {
		t.Errorf("the error is %v", err)
	}
	if err := os.MkdirAll(filepath.Join(r.Dir, "data", "thesis-9.10", "figures"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteBundle(io.Discard); !errors.Is(err, ErrOutput) || !strings.Contains(err.Error(), "none of the figures") {
		t.Errorf("the error is %v", err)
	}
}

// unpacked writes a bundle's files into a directory and lists them, a line each.
func unpacked(t *testing.T, b []byte, to string) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	names, last := "\n", ""
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name <= last || h.Mode != 0o644 || h.ModTime.Unix() > 0 {
			t.Errorf("%s of %v, mode %o, comes after %s", h.Name, h.ModTime, h.Mode, last)
		}
		last = h.Name
		name := strings.TrimPrefix(h.Name, "sotto-figures/")
		names += name + "\n"
		text, err := io.ReadAll(in)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
