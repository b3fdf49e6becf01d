package paper

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/train"
)

// writeImages writes n made-up images in the files of Fashion-MNIST.
func writeImages(t *testing.T, dir string, n, side int) {
	t.Helper()
	images := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 3}, uint32(n))
	images = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(images, uint32(side)), uint32(side))
	labels := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, uint32(n))
	state := uint32(1)
	for i := range n {
		labels = append(labels, byte(i%10))
		for range side * side {
			state = state*1664525 + 1013904223
			images = append(images, byte(10*(i%10))+byte(state>>25))
		}
	}
	for name, b := range map[string][]byte{"train-images-idx3-ubyte": images,
		"train-labels-idx1-ubyte": labels} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// small are trainings that take no time.
func small(all []training) []training {
	for i := range all {
		all[i].references, all[i].pool, all[i].epoch, all[i].games = 100, 200, 64, testkit.Size(30, 100)
	}
	return all
}

// Chapter 7 on files: what was played is in the title and the notes; images that are not the
// published ones decide nothing; and what is kept of some data is not taken for others.
func TestTracingOnFiles(t *testing.T) {
	testkit.RacedBefore(t)
	figure := thesis72()
	plays := 0
	figure.Real = func(dir string) (*Figure, error) {
		f, err := findFashion(dir)
		if f == nil || err != nil {
			return nil, err
		}
		real := tracing(f, func(p Preset) []training { plays++; return small(f.trainings(p)) })
		return &real, nil
	}
	data, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	writeImages(t, data, 300, 28)
	play := func() *Reproduction {
		t.Helper()
		r, err := Reproduce(t.Context(), []Figure{figure},
			Options{Out: out, Preset: Quick, Data: data, Mixed: true})
		if err != nil || r.Results[0].Failed != "" {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	r := play()
	page := read(t, out, "thesis-7.2.html")
	for _, want := range []string{"on other images in the files of Fashion-MNIST and on " +
		"generated images", "not those published (SHA-256 ", "MIT licence",
		"at 7×7 pixels, batches of 64"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, o := range r.Results[0].Outcomes {
		if o.Verdict != NotTested && o.Verdict != OurFinding {
			t.Errorf("%s: %s of made-up images", o.ID, o.Verdict)
		}
	}
	if play(); plays != 1 {
		t.Errorf("the same data were played %d times", plays)
	}
	writeImages(t, data, 310, 28)
	if play(); plays != 2 {
		t.Errorf("other data were played %d times", plays-1)
	}

	for _, c := range []struct {
		n, side int
		say     string
	}{{20, 28, "20 images, must be at least 300"}, {310, 14, "images of 14×14 pixels, must be of 28×28"}} {
		writeImages(t, data, c.n, c.side)
		r, err := Reproduce(t.Context(), []Figure{figure}, Options{Out: out, Preset: Quick, Data: data})
		if err != nil || !strings.Contains(r.Results[0].Failed, c.say) {
			t.Errorf("%d images of %d pixels a side: %v, %q, must say %q", c.n, c.side, err,
				r.Results[0].Failed, c.say)
		}
	}
	if err := os.Remove(filepath.Join(data, "train-labels-idx1-ubyte")); err != nil {
		t.Fatal(err)
	}
	if _, err := Reproduce(t.Context(), []Figure{figure},
		Options{Out: out, Preset: Quick, Data: data}); !errors.Is(err, ErrData) {
		t.Errorf("images without labels: %v", err)
	}
	if _, err := Reproduce(t.Context(), []Figure{figure},
		Options{Out: out, Preset: Quick, Data: t.TempDir()}); !errors.Is(err, ErrData) ||
		!strings.Contains(err.Error(), "Fashion-MNIST") {
		t.Errorf("nothing there: %v", err)
	}
}

// On the published images the claims of the linear model have verdicts, and those of the net have
// none; a threshold of ours alone decides nothing.
func TestTracingOnPublished(t *testing.T) {
	f := &fashion{dir: "dir", sum: train.FashionMNISTSum}
	figure := tracing(f, f.trainings)
	if err := check([]Figure{figure}); err != nil {
		t.Fatal(err)
	}
	if want := "Tracing an example in one epoch of gradient descent, on Fashion-MNIST and on " +
		"generated images"; figure.Title != want {
		t.Errorf("title %q, want %q", figure.Title, want)
	}
	canaries := func(numbers ...float64) *Evidence {
		return &Evidence{Preset: Full, Numbers: &Numbers{Values: map[string][]float64{
			"canaries linear": numbers, "canaries convolutional": numbers,
			"linear easy covariance": {0.9, 0.8, 0.95}, "convolutional easy covariance": {0.9, 0.8, 0.95},
		}, Runs: 1000}}
	}
	for _, c := range []struct {
		claim string
		e     *Evidence
		want  Verdict
	}{
		{"once", canaries(), Reproduces},
		{"once-net", canaries(), NotTested},
		{"heuristics", canaries(1, 2, 2, 2, 0.95, 0.95, 0.95), Reproduces},
		{"heuristics", canaries(1, 0.9, 2, 2, 0.85, 0.95, 0.95), NotTested},
		{"heuristics", canaries(1, 0.2, 2, 2, 0.24, 0.95, 0.95), NotReproduced},
		{"heuristics-net", canaries(1, 2, 2, 2, 0.95, 0.95, 0.95), NotTested},
	} {
		claim := claimOf(t, figure, c.claim)
		if _, v := decide(&claim, c.e); v != c.want {
			t.Errorf("%s: %s, want %s", c.claim, v, c.want)
		}
	}
}
