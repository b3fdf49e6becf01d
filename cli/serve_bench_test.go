package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/pgtest"
)

// sotto serve bench measures, as text and as JSON, and leaves nothing behind.
func TestServeBench(t *testing.T) {
	dir := t.TempDir()
	small := []string{"serve", "bench", "--clients", "4", "--requests", "20", "--data", dir}
	out, errs := tryCommand(t, exitOK, "", small...)
	for _, want := range []string{"SQLite, ", "peer: a log, synced in groups",
		"rewards, in hundreds", "200000"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if strings.Count(errs, "\n") != 9 {
		t.Errorf("progress: %s", errs)
	}
	out, _ = tryCommand(t, exitOK, "", append(small, "--json")...)
	var got benchJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Store != "SQLite" || got.Clients != 4 ||
		len(got.Figures) != 9 || got.Figures[8].Rate <= 0 {
		t.Errorf("%s, %v", out, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	for want, args := range map[string][]string{
		"--data: ":      {"--data", "none"},
		"--clients":     {"--clients", "0"},
		"--requests":    {"--requests", "1.5"},
		"--database: ":  {"--database", "mysql://x"},
		"is not for it": {"--database", "postgres:///x", "--data", dir},
	} {
		if _, errs := tryCommand(t, exitUsage, "",
			append([]string{"serve", "bench"}, args...)...); !strings.Contains(
			errs, want) {
			t.Errorf("%q: %s", args, errs)
		}
	}
}

// On PostgreSQL it takes an empty database, and none that is in use.
func TestServeBenchPostgres(t *testing.T) {
	args := []string{"serve", "bench", "--clients", "4", "--requests", "20", "--database", pgtest.Database(t)}
	if out, _ := tryCommand(t, exitOK, "", args...); !strings.Contains(out, "PostgreSQL, ") {
		t.Error(out)
	}
	if _, errs := tryCommand(t, exitUsage, "", args...); !strings.Contains(errs,
		"--database: it has experiments") {
		t.Error(errs)
	}
}
