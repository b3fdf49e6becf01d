// Package site serves the explorer: the page of docs/explorer, and pictures that are computed
// natively.
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
	"strings"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	page "github.com/sotto-dp/sotto/docs/explorer"
	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/lab/explore"
)

// beginning is what a page begins with.
type beginning struct {
	Offers  explore.Offer    `json:"offers"`
	Picture *explore.Picture `json:"picture,omitempty"`
	Room    int              `json:"room,omitempty"` // bytes that a request may have
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

// policy is what the page may do: run its own scripts, and fetch from here alone.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	maxBody  = 1 << 26 // bytes of a request: its link, and its log if it has one
	most     = 4       // requests that are played side by side
	patience = 2 * time.Second
)

// Handler serves the page, and pictures to it. Every request must name one of these hosts, or an
// address: a name that somebody else's server has for this machine opens nothing.
func Handler(known catalog.Catalog, hosts ...string) (http.Handler, error) {
	first, err := json.Marshal(beginning{Offers: explore.Offers(known), Room: maxBody})
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
	mux.Handle("GET /look/", http.StripPrefix("/look/", http.FileServerFS(look.Files())))
	mux.Handle("POST /pictures", &player{known, make(chan struct{}, most)})
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

// A player plays a few requests side by side.
type player struct {
	known catalog.Catalog
	turns chan struct{}
}

// ServeHTTP answers a link, and on further lines the log that it names, with pictures, a line of JSON
// each, until the last or until nobody reads. A refusal is one line too, with the field that is wrong.
func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, control := json.NewEncoder(w), http.NewResponseController(w)
	tell := func(v any) error {
		if err := out.Encode(v); err != nil {
			return err
		}
		return control.Flush()
	}
	err := p.play(r.Context(), http.MaxBytesReader(w, r.Body, maxBody), tell)
	if err != nil && r.Context().Err() == nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		_ = tell(explore.Refusal(err)) // who asked is gone
	}
}

func (p *player) play(ctx context.Context, request io.Reader, tell func(any) error) error {
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience): // one that is left needs a moment to end
		return fmt.Errorf("the number of requests that are played is %d, must be at most %d: close other "+
			"pages of sotto explore", most+1, most)
	}
	body, err := io.ReadAll(request) // all of it: the connection then tells when nobody waits any more
	if err != nil {
		return fmt.Errorf("the request, at most %d bytes, cannot be read: %w", maxBody, err)
	}
	link, text, dropped := bytes.Cut(body, []byte("\n"))
	var log io.Reader
	if dropped {
		log = bytes.NewReader(text)
	}
	q, err := explore.Parse(string(link))
	if err != nil {
		return err
	}
	e, err := explore.New(p.known, q, log)
	if err != nil {
		return err
	}
	return e.PlayAll(ctx, 0, func(x explore.Picture) error { return tell(x) })
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
