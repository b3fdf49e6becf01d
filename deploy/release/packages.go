package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the format deb
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // the format rpm
)

// places are where a package puts files. The unit names where the program is for who copies it by hand.
var places = map[string]string{
	"sotto": "/usr/bin/sotto", "sotto.1": "/usr/share/man/man1/sotto.1",
	"sotto.service":          "/usr/lib/systemd/system/sotto.service",
	"completions/sotto.bash": "/usr/share/bash-completion/completions/sotto",
	"completions/_sotto":     "/usr/share/zsh/vendor-completions/_sotto",
	"completions/sotto.fish": "/usr/share/fish/vendor_completions.d/sotto.fish",
	"LICENSE":                "/usr/share/doc/sotto/copyright", "LICENSES.txt": "/usr/share/doc/sotto/LICENSES.txt",
	"README.md": "/usr/share/doc/sotto/README.md", "CHANGELOG.md": "/usr/share/doc/sotto/CHANGELOG.md",
}

// What is done when a package comes and goes. A service that runs is started anew by another version and
// stopped when its program goes; a first installation starts none, since it would listen before anybody has
// said where. Nothing removes /var/lib/sotto: it is people's assignments, and the ledger of what was told.
const (
	installed = `#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart sotto.service
fi
`
	removes = `#!/bin/sh
set -e
case "$1" in remove|0) if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then systemctl disable --now sotto.service; fi ;; esac
`
	removed = `#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
`
)

// packages writes a deb and an rpm.
func (p *plan) packages(t target, of []file) error {
	dir, err := os.MkdirTemp("", "sotto-package-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var contents files.Contents
	put := func(name, to string, data []byte, mode int64) error {
		source := filepath.Join(dir, filepath.Base(name))
		contents = append(contents, &files.Content{Source: source, Destination: to,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(mode), MTime: p.at}})
		return os.WriteFile(source, data, 0o600)
	}
	for _, f := range of {
		to, ok := places[f.to]
		if !ok {
			return fmt.Errorf("%s has no place in a package", f.to)
		}
		if f.to == "sotto.service" {
			f.data = bytes.Replace(f.data, []byte("/usr/local/bin/sotto"), []byte("/usr/bin/sotto"), 1)
		}
		mode := f.mode
		if mode == 0 {
			mode = 0o644
		}
		if err := put(f.to, to, f.data, mode); err != nil {
			return err
		}
	}
	scripts := nfpm.Scripts{}
	for _, s := range []struct {
		in   *string
		name string
		text string
	}{{&scripts.PostInstall, "postinstall", installed}, {&scripts.PreRemove, "preremove", removes},
		{&scripts.PostRemove, "postremove", removed}} {
		*s.in = filepath.Join(dir, s.name)
		if err := os.WriteFile(*s.in, []byte(s.text), 0o600); err != nil {
			return err
		}
	}
	for _, format := range []string{"deb", "rpm"} {
		info := nfpm.WithDefaults(&nfpm.Info{Name: "sotto", Arch: p.arch(t), Platform: "linux", Version: p.version,
			Release: "1", Section: "science", Priority: "optional", MTime: p.at, DisableGlobbing: true,
			Maintainer: "The Sotto maintainers <maintainers@sotto.invalid>", Vendor: "Sotto", License: "Apache-2.0",
			Homepage: "https://github.com/sotto-dp/sotto",
			Description: "differentially private bandits\n Library, live service and auditor: A/B tests and bandits that learn from\n" +
				" people without telling on any of them.",
			Overridables: nfpm.Overridables{Contents: contents, Scripts: scripts,
				Recommends: []string{"ca-certificates"}, RPM: nfpm.RPM{BuildHost: "sotto.invalid", Group: "Applications/Internet",
					Summary: "differentially private bandits"}}})
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		name := filepath.Join(p.out, packager.ConventionalFileName(info))
		if err := write(name, func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

// arch is a processor by nfpm's name, which it has for each format.
func (p *plan) arch(t target) string {
	if t.processor == "arm" {
		return "arm7"
	}
	return t.processor
}
