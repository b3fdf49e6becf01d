package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sotto-dp/sotto/internal/atomicfile"
)

// names are what is in a directory, with what the files hold.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Name()+"="+string(b))
	}
	return out
}

func TestFileIsThereWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	f, err := atomicfile.Create(path, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	if _, err := f.WriteString("new"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before Replace: %v", err)
	}
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(); err != nil {
		t.Fatal(err)
	}
	if err := f.Discard(); err != nil {
		t.Errorf("Discard after Replace: %v", err)
	}
	if err := f.Replace(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a second Replace: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"a=new"}) {
		t.Errorf("there is %q", got)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := atomicfile.Create(filepath.Join(dir, "a"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Discard(), f.Discard()); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("there is %q", got)
	}
}

// What cannot get its name (a directory has it, or the file was closed under our hands)
// leaves nothing behind.
func TestFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sub", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, "sub"), []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	f, err := atomicfile.Create(filepath.Join(dir, "a"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a file that was closed: %v", err)
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 1 {
		t.Errorf("there is %v, %v", all, err)
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, "none", "a"), nil, 0o600); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}

// Of many who write one at once, one succeeds, and its file is whole.
func TestWriteOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var group sync.WaitGroup
	var mu sync.Mutex
	var won []byte
	for i := range 16 {
		group.Go(func() {
			data := []byte(strings.Repeat(string(rune('a'+i)), 1000))
			if err := atomicfile.WriteOnce(path, data); err == nil {
				mu.Lock()
				defer mu.Unlock()
				if won != nil {
					t.Error("written twice")
				}
				won = data
			} else if !errors.Is(err, os.ErrExist) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != string(won) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: left behind", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
