// Package look is the one design of all pages: their style, their charts, and uPlot, which draws
// these. Pages that are served take the files by Handler; pages that are files have the style inside.
package look

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed look.css chart.js uplot
var files embed.FS

//go:embed look.css
var css string

// CSS is the style of all pages, with its tokens for light, dark and print.
func CSS() string { return css }

// Files has look.css, chart.js, uplot/uPlot.iife.min.js and uplot/uPlot.min.css.
func Files() fs.FS { return files }

// Assets are files as a server gives them: compressed once, and under addresses that change with
// what is in them, so that a browser asks for each once.
type Assets struct {
	prefix string
	files  map[string]asset
}

type asset struct {
	kind, hash   string
	plain, small []byte
}

// NewAssets has the files of some file systems, later ones before earlier ones. The prefix, such as
// "/look/", begins all their addresses.
func NewAssets(prefix string, from ...fs.FS) (*Assets, error) {
	a := &Assets{prefix, make(map[string]asset)}
	kinds := map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".wasm": "application/wasm",
		".svg": "image/svg+xml",
	}
	for _, f := range from {
		err := fs.WalkDir(f, ".", func(name string, d fs.DirEntry, err error) error {
			kind := kinds[path.Ext(name)]
			if err != nil || d.IsDir() || kind == "" {
				return err
			}
			b, err := fs.ReadFile(f, name)
			if err != nil {
				return err
			}
			hash := sha256.Sum256(b)
			var small bytes.Buffer
			z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
			if err != nil {
				return err
			}
			_, _ = z.Write(b) // into memory
			_ = z.Close()
			a.files[name] = asset{kind, hex.EncodeToString(hash[:6]), b, small.Bytes()}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look: %w", err)
		}
	}
	return a, nil
}

// Path is the address of a file, with the hash of what is in it; an error names one that is not
// there, so that a page with a wrong name is not made.
func (a *Assets) Path(name string) (string, error) {
	f, ok := a.files[name]
	if !ok {
		return "", fmt.Errorf("look: %q: there is no such file", name)
	}
	return a.prefix + name + "?v=" + f.hash, nil
}

// ServeHTTP answers with a file: for ever where the address has its hash, to be asked for again
// where it has none.
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.files[strings.TrimPrefix(r.URL.Path, a.prefix)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", `"`+f.hash+`"`)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == f.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), f.hash) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	b := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		b = f.small
	}
	h.Set("Content-Length", fmt.Sprint(len(b)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(b) // who asked is gone
	}
}
