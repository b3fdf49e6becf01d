package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // sotto.js
	"encoding/hex"
	"net/http"
	"time"
)

//go:embed sotto.js
var script []byte

// script serves the client for pages. A key in its address is the page's own to read, and is not
// looked at.
func (f *front) script(w http.ResponseWriter, r *http.Request) {
	h, sum := w.Header(), sha256.Sum256(script)
	h.Set("Content-Type", "text/javascript")
	h.Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
	h.Set("Cache-Control", "public, max-age=3600")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(script))
}
