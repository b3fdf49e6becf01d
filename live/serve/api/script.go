package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // all three
	"encoding/hex"
	"net/http"
	"time"
)

// The client for pages, what it imports to decide by a model, and what decides by a plan.
var (
	//go:embed sotto.js
	script []byte
	//go:embed sotto-model.js
	modelScript []byte
	//go:embed sotto-lease.js
	leaseScript []byte
)

// script serves one. A key in its address is the page's own to read, and is not looked at.
func (f *front) script(of []byte) http.HandlerFunc {
	sum := sha256.Sum256(of)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/javascript")
		h.Set("ETag", tag)
		h.Set("Cache-Control", "public, max-age=3600")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(of))
	}
}
