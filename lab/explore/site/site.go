// Package site serves the explorer: the page of docs/explorer, and pictures that are computed
// natively. It also writes the page's files, for a static host.
package site

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	page "github.com/sotto-dp/sotto/docs/explorer"
	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/lab/explore"
)

// beginning is what a page begins with.
type beginning struct {
	Offers  explore.Offer    `json:"offers"`
	Picture *explore.Picture `json:"picture,omitempty"`
}

// First is first.json of a static page: what Sotto offers, and what is drawn until the page has
// played by itself.
func First() ([]byte, error) {
	e, err := explore.New(catalog.Catalog{}, explore.Default(), nil)
	if err != nil {
		return nil, err
	}
	b := beginning{Offers: explore.Offers(catalog.Catalog{})}
	enough := errors.New("enough")
	err = e.PlayAll(context.Background(), 0, func(p explore.Picture) error {
		if b.Picture = &p; p.Runs >= 64 {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return nil, err
	}
	return json.Marshal(b)
}

// policy is what the page may do: run its own scripts and WebAssembly, and fetch from here alone.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; " +
	"style-src 'self'; " +
	"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// maxLink is what a request may have of bytes, with room for what the parser then refuses.
const maxLink = 1 << 15

// Handler serves the page, and pictures to it. Every request must name one of these hosts, or an
// address: a name that somebody else's server has for this machine opens nothing.
func Handler(known catalog.Catalog, hosts ...string) (http.Handler, error) {
	first, err := json.Marshal(beginning{Offers: explore.Offers(known)})
	if err != nil {
		return nil, err
	}
	index, err := fs.ReadFile(page.Files(), "index.html")
	if err != nil {
		return nil, err
	}
	// The page of a static host plays by itself; this one is told that it need not.
	index = bytes.Replace(index, []byte(`<html lang="en">`), []byte(`<html lang="en" data-native>`), 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(index) // who asked is gone
	})
	mux.HandleFunc("GET /first.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(first)
	})
	mux.Handle("GET /", http.FileServerFS(page.Files()))
	mux.HandleFunc("POST /pictures", func(w http.ResponseWriter, r *http.Request) { pictures(w, r, known) })
	same := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		if !ours(r.Host, hosts) {
			http.Error(w, "this is no host of this page: use the address that sotto explore printed",
				http.StatusMisdirectedRequest)
			return
		}
		same.ServeHTTP(w, r)
	}), nil
}

// ours says whether a host that a request names is an address or a known name.
func ours(host string, known []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if net.ParseIP(host) != nil {
		return true
	}
	for _, k := range append(known, "localhost") {
		if strings.EqualFold(k, host) {
			return true
		}
	}
	return false
}

// pictures answers a link with its pictures, a line of JSON each, until the last or until nobody
// reads. A bad link is one line too, with the field that is wrong.
func pictures(w http.ResponseWriter, r *http.Request, known catalog.Catalog) {
	link, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLink))
	if err != nil {
		http.Error(w, fmt.Sprintf("the link is longer than %d bytes", maxLink),
			http.StatusRequestEntityTooLarge)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, control := json.NewEncoder(w), http.NewResponseController(w)
	tell := func(v any) error {
		if err := out.Encode(v); err != nil {
			return err
		}
		return control.Flush()
	}
	q, err := explore.Parse(string(link))
	var e *explore.Explorer
	if err == nil {
		e, err = explore.New(known, q, nil)
	}
	if err == nil {
		err = e.PlayAll(r.Context(), 0, func(p explore.Picture) error { return tell(p) })
	}
	if err != nil && r.Context().Err() == nil {
		_ = tell(explore.Refusal(err))
	}
}

// Serve answers on a listener until the context ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // nothing is lost: pages ask again
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ErrNotEmpty is matched when a directory has files of somebody else's.
var ErrNotEmpty = errors.New("has other files")

// Write writes the page's files into a directory, which is made, or is empty, or has an earlier
// version of them.
func Write(dir string) error {
	all := page.Files()
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		if _, err := os.Stat(filepath.Join(dir, "sotto.wasm.gz")); err != nil {
			return fmt.Errorf("%s %w, must be new, empty, or of an earlier --out", dir, ErrNotEmpty)
		}
	}
	return fs.WalkDir(all, ".", func(name string, d fs.DirEntry, err error) error {
		path := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(path, 0o755)
		}
		b, err := fs.ReadFile(all, name)
		if err != nil {
			return err
		}
		return atomicfile.WriteFile(path, b, 0o644)
	})
}
