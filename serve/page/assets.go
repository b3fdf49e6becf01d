package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// An asset is a file that pages fetch, at an address that has its hash.
type asset struct {
	text []byte
	kind string
	hash string
}

// kinds are those of files by their names: the system's own table may have others.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

type assets map[string]asset

// readAssets reads all files that pages fetch.
func readAssets() assets {
	out := assets{}
	names, _ := fs.Glob(assetFiles, "assets/*") // the pattern is right
	for _, name := range names {
		text, _ := assetFiles.ReadFile(name) // is there
		sum := sha256.Sum256(text)
		out[path.Base(name)] = asset{text, kinds[path.Ext(name)], hex.EncodeToString(sum[:8])}
	}
	return out
}

// address is where a file is; it changes with the file.
func (a assets) address(name string) (string, error) {
	f, ok := a[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return "/assets/" + name + "?" + f.hash, nil
}

// Asset serves a file.
func (p *Pages) Asset(w http.ResponseWriter, r *http.Request) error {
	f, ok := p.assets[r.PathValue("file")]
	if !ok {
		return &FieldError{http.StatusNotFound, "", "there is no such file"}
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+f.hash+`"`)
	if r.URL.RawQuery == f.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.text))
	return nil
}
