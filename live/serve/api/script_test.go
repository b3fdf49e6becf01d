package api

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// The script is small, is JavaScript, and is kept by browsers until it changes.
func TestScript(t *testing.T) {
	if len(script) > 3<<10 {
		t.Errorf("sotto.js has %d bytes, may have 3072", len(script))
	}
	w := newWorld(t)
	w.key = ""
	out := w.ask("GET", "/sotto.js?key=sotto_0123456789", "")
	tag := out.Header().Get("ETag")
	if out.Code != 200 || out.Body.String() != string(script) || tag == "" ||
		out.Header().Get("Cache-Control") != "public, max-age=3600" {
		t.Errorf("%d %v", out.Code, out.Header())
	}
	for known, want := range map[string]int{tag: 304, "W/" + tag: 304, `"other"`: 200} {
		if out := w.ask("GET", "/sotto.js", "", "If-None-Match", known); out.Code != want ||
			(out.Body.Len() == 0) != (want == 304) {
			t.Errorf("If-None-Match: %s: %d", known, out.Code)
		}
	}
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
	c := exec.Command(testkit.Program(t, "node"), "--check", "--input-type=module")
	c.Stdin = strings.NewReader(string(script))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
