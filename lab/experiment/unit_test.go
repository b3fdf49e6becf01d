package experiment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

func drawUnit(t *rapid.T) *unit {
	c := rapid.IntRange(1, 5).Draw(t, "checkpoints")
	u := &unit{first: rapid.IntRange(0, keyed.MaxCount>>13).Draw(t, "first"),
		runs: rapid.IntRange(1, 5).Draw(t, "runs"), metrics: rapid.IntRange(1, 9).Draw(t, "metrics"),
		ends: rapid.IntRange(0, 3).Draw(t, "ends")}
	copy(u.cell[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "cell"))
	last := 0
	for range c {
		last += rapid.IntRange(1, keyed.MaxCount>>13).Draw(t, "step")
		u.checkpoints = append(u.checkpoints, last)
	}
	n := (u.metrics*c + u.ends) * u.runs
	u.data = rapid.SliceOfN(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), n, n).Draw(t, "data")
	for _, b := range rapid.SliceOfN(rapid.SampledFrom([]privacy.Budget{privacy.Pure{Epsilon: 0.3},
		privacy.ZCDP{Rho: 0.1},
		privacy.Approx{Epsilon: 1, Delta: 1e-6}, privacy.None{}}), 1, 3).Draw(t, "losses") {
		u.loss = u.loss.Max(privacy.LossOf(b))
	}
	return u
}

func TestUnitRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := drawUnit(t)
		b, err := u.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeUnit(b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.encode()
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("came back different, %v", err)
		}
		if back.loss.String() != u.loss.String() || back.metrics != u.metrics || back.ends != u.ends ||
			back.first != u.first || !slices.Equal(back.data, u.data) {
			t.Fatalf("%+v came back as %+v", u, back)
		}
		// One bit is wrong, or some bytes are missing.
		i := rapid.IntRange(0, len(b)-1).Draw(t, "byte")
		b[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := decodeUnit(b); !errors.Is(err, ErrUnit) {
			t.Fatalf("bit in byte %d is wrong: %v", i, err)
		}
		if _, err := decodeUnit(again[:i]); !errors.Is(err, ErrUnit) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	})
}

// The fuzzer works on what is below the checksum; else it would never get past it.
func FuzzUnit(f *testing.F) {
	for _, m := range []int{1, pair, 7} {
		u := &unit{first: 64, runs: 2, checkpoints: []int{1, 10}, metrics: m,
			data: make([]float64, 4*m), loss: privacy.LossOf(privacy.Pure{Epsilon: 1})}
		b, err := u.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:len(b)-sha256.Size])
		u.ends, u.data = 3, make([]float64, 4*m+6)
		if b, err = u.encode(); err != nil {
			f.Fatal(err)
		}
		f.Add(b[:len(b)-sha256.Size])
	}
	f.Add([]byte(unitMagicEnds))
	f.Add([]byte(unitMagic))
	f.Add([]byte(unitMagicMany))
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		u, err := decodeUnit(append(slices.Clone(body), sum[:]...))
		if err != nil {
			if !errors.Is(err, ErrUnit) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		one, err := u.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeUnit(one)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := back.encode(); err != nil || !bytes.Equal(one, two) {
			t.Fatalf("encoding is not stable, %v", err)
		}
	})
}

const tiny = `name: tiny
horizon: 200
runs: 300
instances: [{name: two, bernoulli: [0.9, 0.1]}]
policies: [{policy: adap-ucb}, {policy: ucb}]
budgets: [{epsilon: 1}]
checkpoints: 5
`

// The disk is full after any number of files: one clear error, nothing half-written, and a resumed
// run gives the same bytes.
func TestDiskFull(t *testing.T) {
	spec, err := Reader{}.Parse("tiny.yaml", []byte(tiny))
	if err != nil {
		t.Fatal(err)
	}
	want := t.TempDir()
	if _, err := Run(context.Background(), spec, Options{Out: want}); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int64{0, 1, 4, 10, 11} {
		dir := filepath.Join(t.TempDir(), "out")
		var left atomic.Int64
		left.Store(room)
		full := func(path string, data []byte) error {
			if left.Add(-1) < 0 {
				return fmt.Errorf("write %s: %w", path, syscall.ENOSPC)
			}
			return writeFile(path, data, 0o644)
		}
		_, err := Run(context.Background(), spec, Options{Out: dir, Workers: 2, write: full})
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left on device") {
			t.Fatalf("%d files: %v", room, err)
		}
		if _, err := Load(dir); err == nil {
			t.Errorf("%d files: it counts as finished", room)
		}
		if _, err := Run(context.Background(), spec, Options{Out: dir, Resume: true}); err != nil {
			t.Fatalf("resumed: %v", err)
		}
		for _, name := range []string{"summary.csv", "results.parquet"} {
			a, _ := os.ReadFile(filepath.Join(want, name))
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("%d files: %s differs after resuming, %v", room, name, err)
			}
		}
	}
}

// The same on a real file system, where this test may mount one: there is no temporary
// file left, either.
func TestRealDiskFull(t *testing.T) {
	mount := t.TempDir()
	if err := mountTmpfs(mount, "size=64k"); err != nil {
		t.Skipf("needs a small file system: %v", err)
	}
	defer unmount(mount)
	spec, err := Reader{}.Parse("tiny.yaml", []byte(strings.Replace(tiny, "checkpoints: 5", "checkpoints: 100", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), spec, Options{Out: filepath.Join(mount, "out"), Workers: 2})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left on device") {
		t.Fatalf("%v", err)
	}
	err = filepath.WalkDir(mount, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != manifestFile {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if _, err := decodeUnit(b); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A failure of an output that is streamed leaves no file, and keeps an older one.
func TestWriteStreamFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "summary.csv")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := writeStream(path, 0o644, func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			return err
		}
		return syscall.ENOSPC
	})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	entries, _ := os.ReadDir(dir)
	if b, _ := os.ReadFile(path); len(entries) != 1 || string(b) != "old" {
		t.Errorf("%d files, %q", len(entries), b)
	}
}

func TestBlockSize(t *testing.T) {
	for _, c := range []struct{ horizon, runs, checkpoints, want int }{
		{10_000_000, 20, 200, 2}, {1000, 20, 200, 64}, {1 << 25, 20, 200, 1}, {keyed.MaxCount, 1, 1, 1},
		{10_000_000, 20_000, 200, 256},
		{1, 10_000_000, 1, 1 << 17}, {1000, 10_000_000, 100_000, 8},
	} {
		if got := blockSize(c.horizon, c.runs, c.checkpoints); got != c.want {
			t.Errorf("blockSize(%d, %d, %d) = %d, want %d", c.horizon, c.runs, c.checkpoints, got, c.want)
		}
	}
}

// Summaries are the same whether all checkpoints fit in memory or one.
func TestSummariseInGroups(t *testing.T) {
	spec, err := Reader{}.Parse("tiny.yaml", []byte(tiny))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := Run(context.Background(), spec, Options{Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Cells {
		for _, room := range []int{1, 2 * 300, 4*300 + 1} {
			c, err := summariseIn(context.Background(), dir, r.Manifest, &r.Manifest.Cells[i], room)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.Regret.Mean, r.Cells[i].Regret.Mean) ||
				!slices.Equal(c.PlaysBest.Q05, r.Cells[i].PlaysBest.Q05) ||
				!slices.Equal(c.FinalRegret, r.Cells[i].FinalRegret) ||
				!slices.Equal(c.FinalPlaysBest, r.Cells[i].FinalPlaysBest) || c.Loss != r.Cells[i].Loss {
				t.Errorf("%s with room for %d numbers differs", c.Label(), room)
			}
		}
	}
}
