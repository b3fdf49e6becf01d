package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// packed is a release of a program that is none, at some time of the clock.
func packed(t *testing.T) *plan {
	t.Helper()
	p := &plan{version: "v0.1.0-rc.1", commit: strings.Repeat("c", 40), at: time.Unix(1_700_000_000, 0).UTC(), out: t.TempDir()}
	work := t.TempDir()
	program := filepath.Join(work, "sotto")
	if err := os.WriteFile(program, []byte("a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := []file{{to: "sotto", data: []byte("a program"), mode: 0o755}, {to: "LICENSES.txt", data: []byte("terms")},
		{to: "sotto.service", data: []byte("ExecStart=/usr/local/bin/sotto serve\n")}}
	var images []imageOf
	for _, processor := range []string{"amd64", "arm"} {
		of := target{"linux", processor}
		if err := p.archive(of, files); err != nil {
			t.Fatal(err)
		}
		if err := p.packages(of, files); err != nil {
			t.Fatal(err)
		}
		images = append(images, imageOf{of, program})
	}
	if err := p.archive(target{"windows", "amd64"}, files); err != nil {
		t.Fatal(err)
	}
	if err := p.image(images, work); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(work, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if err := p.checksums(); err != nil {
		t.Fatal(err)
	}
	return p
}

// What is packed twice, in other directories and seconds, has the same bytes.
func TestTwice(t *testing.T) {
	sums := func() string {
		b, err := os.ReadFile(filepath.Join(packed(t).out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := sums()
	time.Sleep(1100 * time.Millisecond) // times in tar and ar are whole seconds
	if second := sums(); first != second || strings.Count(first, "\n") != 8 {
		t.Errorf("%s\nis not\n%s", first, second)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	p := packed(t)
	entries, err := os.ReadDir(p.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(p.out, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(host) > 5 && bytes.Contains(b, []byte(host)) {
			t.Errorf("%s has the host's name", e.Name())
		}
	}
}

// The image trusts authorities, all of which can be read.
func TestAuthorities(t *testing.T) {
	n := 0
	for rest := authorities(); len(rest) > 0; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatal("no certificate")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
	}
	if n < 50 {
		t.Errorf("%d", n)
	}
}

func TestTargets(t *testing.T) {
	if all, err := parseTargets(systems); err != nil || len(all) != 8 {
		t.Error(all, err)
	}
	for _, bad := range []string{"", "linux", "plan9/amd64", "linux/amd64,linux/amd64"} {
		if _, err := parseTargets(bad); err == nil {
			t.Errorf("%q", bad)
		}
	}
	for version, good := range map[string]bool{"v0.1.0": true, "v0.1.0-rc.1": true, "0.1.0": false, "v0.1": false, "v1.0.0 x": false} {
		if versions.MatchString(version) != good {
			t.Error(version)
		}
	}
}
