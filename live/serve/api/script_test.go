package api

import (
	"os"
	"os/exec"
	"path/filepath"
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

// Without consent a page's script sends neither the visitor's unit nor the cookie, and what it gives reports nothing.
func TestScriptWithoutConsent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sotto.mjs")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(testkit.Program(t, "node"), "--input-type=module")
	c.Stdin = strings.NewReader(`
globalThis.fetch = async (url, { body, credentials }) => {
  console.log(credentials, body);
  return { ok: true, json: async () => ({ arm: 'red', decision: null }) };
};
const { decide, reward } = await import('file://` + path + `?key=sotto_k');
for (const consent of [undefined, true, false, null]) {
  for (const unitToken of [undefined, 'signed']) {
    const d = await decide('shop', { unitToken, consent });
    if (reward(d)) throw new Error('it reports');
  }
}`)
	out, err := c.CombinedOutput()
	const want = `include {"consent":true}
omit {"unit_token":"signed","consent":true}
include {"consent":true}
omit {"unit_token":"signed","consent":true}
omit {"unit_token":"","consent":false}
omit {"unit_token":"","consent":false}
omit {"unit_token":"","consent":false}
omit {"unit_token":"","consent":false}
`
	if err != nil || string(out) != want {
		t.Errorf("%v: it sends\n%s, must send\n%s", err, out, want)
	}
}
