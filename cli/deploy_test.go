package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// What deployments say to sotto serve by flags and variables is what it has. That their manifests
// are what Kubernetes and compose read is tested in deploy/check.
func TestDeployments(t *testing.T) {
	var help, errs strings.Builder
	if code := run(context.Background(), []string{"serve", "--help"},
		streams{in: strings.NewReader(""), out: &help, err: &errs}); code != exitOK {
		t.Fatal(errs.String())
	}
	known := map[string]bool{"SOTTO_DB_PASSWORD": true} // of the compose file itself
	for _, f := range reflect.VisibleFields(reflect.TypeFor[serveCommand]()) {
		known[f.Tag.Get("env")] = true
	}
	files := []string{"../deploy/Dockerfile", "../deploy/compose.yaml", "../deploy/sotto.service",
		"../deploy/kubernetes/deployment.yaml", "../deploy/nginx.conf", "../deploy/alerts.yaml"}
	variable := regexp.MustCompile(`\bSOTTO_[A-Z_]+`)
	flag := regexp.MustCompile(`\bserve\b.*?(--[a-z-]+)`)
	seen := map[string]bool{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range variable.FindAllString(string(text), -1) {
			seen[name] = true
			if !known[name] {
				t.Errorf("%s: %s is no variable of sotto serve", path, name)
			}
		}
		for _, m := range flag.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(help.String(), m[1]) {
				t.Errorf("%s: %s is no flag of sotto serve", path, m[1])
			}
		}
	}
	for _, name := range []string{"SOTTO_LISTEN", "SOTTO_DATA", "SOTTO_DATABASE", "SOTTO_ADVERTISE",
		"SOTTO_ADMIN_KEY_FILE", "SOTTO_CLIENT_ADDRESS_HEADER"} {
		if !seen[name] {
			t.Errorf("no deployment has %s", name)
		}
	}
}

// The unit is one that systemd reads without a word.
func TestSystemdUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("it needs systemd-analyze")
	}
	unit, err := os.ReadFile("../deploy/sotto.service")
	if err != nil {
		t.Fatal(err)
	}
	verify := func(unit string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "sotto.service")
		if err := os.WriteFile(path, []byte(strings.Replace(unit, "/usr/local/bin/sotto", "/bin/true", 1)),
			0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), analyze, "verify", path).CombinedOutput()
		if err != nil && len(out) == 0 {
			t.Fatal(err)
		}
		return string(out)
	}
	if out := verify(string(unit)); strings.Contains(out, "sotto.service") {
		t.Error(out)
	}
	if out := verify(strings.Replace(string(unit), "DynamicUser=yes", "DynamicUsers=yes",
		1)); !strings.Contains(out,
		"DynamicUsers") {
		t.Errorf("a setting that there is not passes: %s", out)
	}
}
