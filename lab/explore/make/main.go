// Command make writes the explorer's page for a host of files, which needs no server: docs/explorer,
// the design that all pages have, the simulator as WebAssembly with Go's script that starts it, and
// the picture that the page begins with. It builds from source: `make explorer`.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	page "github.com/sotto-dp/sotto/docs/explorer"
	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/lab/explore/site"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./lab/explore/make DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "explorer:", err)
		os.Exit(1)
	}
	fmt.Printf("The page is in %s: give the directory to any host for files.\n", os.Args[1])
}

const simulator = "sotto.wasm.gz"

// errNotEmpty is matched when a directory has files of somebody else's.
var errNotEmpty = errors.New("has other files")

// run writes the page's files into a directory.
func run(dir string) error {
	if err := free(dir); err != nil {
		return err
	}
	all, err := files()
	if err != nil {
		return err
	}
	return write(dir, all)
}

// free says whether a directory is still to be made, or is empty, or has an earlier version of the page.
func free(dir string) error {
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		if _, err := os.Stat(filepath.Join(dir, simulator)); err != nil {
			return fmt.Errorf("%s %w, must be new, empty, or of an earlier make", dir, errNotEmpty)
		}
	}
	return nil
}

// files are the page's, by name.
func files() (map[string][]byte, error) {
	out := map[string][]byte{}
	for prefix, files := range map[string]fs.FS{"": page.Files(), "look/": look.Files()} {
		err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			out[prefix+name], err = fs.ReadFile(files, name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for name, made := range map[string]func() ([]byte, error){
		simulator: build, "first.json": site.First,
		"wasm_exec.js":      func() ([]byte, error) { return ofGo("lib/wasm/wasm_exec.js") },
		"wasm_exec.LICENSE": func() ([]byte, error) { return ofGo("LICENSE") },
	} {
		b, err := made()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = b
	}
	return out, nil
}

func write(dir string, all map[string][]byte) error {
	for name, b := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := atomicfile.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// build is the simulator, compressed: without names and paths, the same bytes wherever it is built by
// one version of Go.
func build() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sotto-wasm-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system's own directory for that
	wasm := filepath.Join(dir, "sotto.wasm")
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", wasm,
		"github.com/sotto-dp/sotto/lab/explore/wasm")
	c.Env, c.Stderr = append(os.Environ(), "GOOS=js", "GOARCH=wasm"), os.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	b, err := os.ReadFile(wasm)
	if err != nil {
		return nil, err
	}
	var small bytes.Buffer
	z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	err = z.Close()
	return small.Bytes(), err
}

// ofGo is a file of the Go that builds the simulator: its script is of the same version.
func ofGo(name string) ([]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), filepath.FromSlash(name)))
}
