// Package testkit is for tests: what many of them would copy, and what not everybody has. Where a
// program is missing they skip themselves and say so, and fail where everything is checked; where time is
// short, or the race detector is on, they do less.
package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Missing ends a test for which something is missing: it is skipped, and fails where the
// environment has CI.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s; where CI is set nothing is skipped", what)
	}
	t.Skip(what)
}

// Program is the path of the first of some programs that is there.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, "there is no "+strings.Join(names, " and no "))
	return ""
}

// Browse opens an address in Chromium, without a window and with a profile of its own, until the
// test ends.
func Browse(t testing.TB, address string, flags ...string) (profile string) {
	t.Helper()
	path := Program(t, "chromium", "chromium-browser", "google-chrome")
	profile, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), path, append(flags, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--no-first-run", "--disable-dev-shm-usage", "--user-data-dir="+profile, address)...)
	errs := &bytes.Buffer{}
	c.Stderr = errs
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()   // it was killed
		for range 50 { // its children end when they see that, and write until then
			if os.RemoveAll(profile) == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if t.Failed() {
			t.Log(errs.String())
		}
	})
	return profile
}
