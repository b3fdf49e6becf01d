package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/sotto-dp/sotto/lab/experiment"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small has all that runs differ in, and takes milliseconds: two instances, one redrawn, private
// and not, three budgets.
const small = `name: small
horizon: 3000
runs: 70
seed: 7
checkpoints: 12
instances:
  - {name: fixed, bernoulli: [0.9, 0.6, 0.3]}
  - {name: redrawn, means: {uniform: [0.25, 0.75]}, arms: 3, redraw: true}
policies:
  - {policy: adap-ucb}
  - {policy: dp-se}
  - {policy: adac-ucb}
  - {policy: ucb}
budgets: [{epsilon: 1}, {rho: 0.1}, none]
`

func parse(t testing.TB, text string) *experiment.Spec {
	t.Helper()
	s, err := experiment.Reader{}.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t testing.TB, text string, o experiment.Options) *experiment.Results {
	t.Helper()
	r, err := experiment.Run(context.Background(), parse(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// files is everything in an output directory but the manifest, whose times differ.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		if rel == "manifest.json" {
			// Times are on lines of their own.
			var keep []string
			for line := range strings.Lines(string(b)) {
				if !strings.Contains(line, `"started"`) && !strings.Contains(line, `"finished"`) {
					keep = append(keep, line)
				}
			}
			b = []byte(strings.Join(keep, ""))
		}
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s: %s is missing", what, name)
		} else if got[name] != want[name] {
			t.Errorf("%s: %s differs", what, name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s should not be there", what, name)
		}
	}
}

// Outputs are the same bytes however the work is cut up: any number of workers, shards in any
// order, or a run that was stopped anywhere and resumed.
func TestSameBytes(t *testing.T) {
	ctx := context.Background()
	one := t.TempDir()
	play(t, small, experiment.Options{Out: one, Workers: 1})
	want := files(t, one)
	if len(want) != 2*9*2+3 {
		t.Fatalf("%d files", len(want))
	}

	for _, workers := range []int{2, 5} {
		dir := t.TempDir()
		play(t, small, experiment.Options{Out: dir, Workers: workers})
		same(t, fmt.Sprintf("%d workers", workers), want, files(t, dir))
	}

	t.Run("shards", func(t *testing.T) {
		var dirs []string
		for i := range 3 {
			dir := filepath.Join(t.TempDir(), "shard")
			if r := play(t, small, experiment.Options{Out: dir, ShardI: i, ShardN: 3}); r != nil {
				t.Error("a shard gave results")
			}
			dirs = append([]string{dir}, dirs...)
		}
		if _, err := experiment.Load(dirs[0]); !errors.Is(err, experiment.ErrOutput) {
			t.Errorf("a shard was loaded: %v", err)
		}
		if _, err := experiment.Merge(ctx, dirs[:2], filepath.Join(t.TempDir(), "m"),
			false); !errors.Is(err, experiment.ErrShards) ||
			!strings.Contains(err.Error(), "not given: shard 0/3") {
			t.Errorf("two of three: %v", err)
		}
		out := filepath.Join(t.TempDir(), "merged")
		if _, err := experiment.Merge(ctx, dirs, out, false); err != nil {
			t.Fatal(err)
		}
		same(t, "merged", want, files(t, out))
	})

	t.Run("resume", func(t *testing.T) {
		for _, stop := range []int{1, 20, 35} {
			dir := t.TempDir()
			stopping, cancel := context.WithCancel(ctx)
			n := 0
			_, err := experiment.Run(stopping, parse(t, small),
				experiment.Options{Out: dir, Workers: 2, Progress: func(experiment.Step) {
					if n++; n == stop {
						cancel()
					}
				}})
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "--resume") {
				t.Fatalf("stopped: %v", err)
			}
			left := files(t, dir)
			if len(left) < stop+1 || len(left) > stop+3 {
				t.Errorf("stopped after %d units, %d files are there", stop, len(left))
			}
			for name, b := range left {
				if want[name] != b && name != "manifest.json" {
					t.Errorf("%s is half-written", name)
				}
			}
			if _, err := experiment.Run(ctx, parse(t, small),
				experiment.Options{Out: dir}); !errors.Is(err, experiment.ErrOutput) ||
				!strings.Contains(err.Error(), "--resume") {
				t.Errorf("without --resume: %v", err)
			}
			// One unit was damaged while we were away: it is played again.
			for name := range left {
				if strings.HasSuffix(name, ".unit") {
					if err := os.WriteFile(filepath.Join(dir, name),
						[]byte("sotto unit 1\nrubbish"), 0o644); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			play(t, small, experiment.Options{Out: dir, Workers: 2, Resume: true})
			same(t, fmt.Sprintf("resumed after %d", stop), want, files(t, dir))
		}
	})
}
