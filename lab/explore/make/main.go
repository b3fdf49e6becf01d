// Command make makes what of docs/explorer is made: the simulator as WebAssembly, with Go's script
// that starts it, the design that all pages have, and the picture that the page begins with. It
// runs in the module's root: `make explorer`.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/lab/explore/site"
)

func main() {
	if err := run("docs/explorer"); err != nil {
		fmt.Fprintln(os.Stderr, "explorer:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	wasm := filepath.Join(os.TempDir(), fmt.Sprintf("sotto-%d.wasm", os.Getpid()))
	defer os.Remove(wasm)
	// Without names and paths, and the same bytes wherever it is built by one version of Go.
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", wasm,
		"./lab/explore/wasm")
	build.Env, build.Stderr = append(os.Environ(), "GOOS=js", "GOARCH=wasm"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	b, err := os.ReadFile(wasm)
	if err != nil {
		return err
	}
	var small bytes.Buffer
	z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(b); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	if err != nil {
		return err
	}
	first, err := site.First()
	if err != nil {
		return err
	}
	out := map[string][]byte{"sotto.wasm.gz": small.Bytes(), "wasm_exec.js": script,
		"wasm_exec.LICENSE": licence,
		"first.json":        first}
	err = fs.WalkDir(look.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out["look/"+name], err = fs.ReadFile(look.Files(), name)
		return err
	})
	if err != nil {
		return err
	}
	for name, b := range out {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("sotto.wasm is %d bytes, %d compressed, by %s\n", len(b), small.Len(), runtime.Version())
	return nil
}
