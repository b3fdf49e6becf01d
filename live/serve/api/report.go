package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

func (f *front) report(w http.ResponseWriter, r *http.Request) (any, error) {
	numbers, html, err := f.pages.Report(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	h := w.Header()
	h.Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		return numbers, nil
	}
	writeReport(w, html)
	return nil, nil
}

// writeReport writes a report, which runs the page's one script, by its hash, and nothing that others could put in.
func writeReport(w http.ResponseWriter, html []byte) {
	_, script, _ := bytes.Cut(html, []byte("<script>\n"))
	script, _, _ = bytes.Cut(script, []byte("</script>"))
	hash := sha256.Sum256(append([]byte("\n"), script...))
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"+
		base64.StdEncoding.EncodeToString(hash[:])+"'; base-uri 'none'; form-action 'none'; "+
		"frame-ancestors 'none'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(html)
}

// reportPage is the report for who is known by a cookie, which the page of the experiment links.
func (f *front) reportPage(w http.ResponseWriter, r *http.Request) error {
	_, html, err := f.pages.Report(r.Context(), r.PathValue("name"))
	if err == nil {
		writeReport(w, html)
	}
	return err
}
