package api

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// The scripts are small, are JavaScript, and are kept by browsers until they change.
func TestScript(t *testing.T) {
	for name, c := range map[string]struct {
		text []byte
		most int
	}{"sotto.js": {script, 3 << 10}, "sotto-model.js": {modelScript, 7 << 10}, "sotto-lease.js": {leaseScript, 10 << 10}} {
		if len(c.text) > c.most {
			t.Errorf("%s has %d bytes, may have %d", name, len(c.text), c.most)
		}
		w := newWorld(t)
		w.key = ""
		out := w.ask("GET", "/"+name+"?key=sotto_0123456789", "")
		tag := out.Header().Get("ETag")
		if out.Code != 200 || out.Body.String() != string(c.text) || tag == "" ||
			out.Header().Get("Cache-Control") != "public, max-age=3600" {
			t.Errorf("%s: %d %v", name, out.Code, out.Header())
		}
		for known, want := range map[string]int{tag: 304, "W/" + tag: 304, `"other"`: 200} {
			if out := w.ask("GET", "/"+name, "", "If-None-Match", known); out.Code != want ||
				(out.Body.Len() == 0) != (want == 304) {
				t.Errorf("%s: If-None-Match: %s: %d", name, known, out.Code)
			}
		}
		if w.log.Len() > 0 {
			t.Errorf("the log has %s", w.log.String())
		}
		c := exec.Command(testkit.Program(t, "node"), "--check", "--input-type=module")
		c.Stdin = strings.NewReader(w.ask("GET", "/"+name, "").Body.String())
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
