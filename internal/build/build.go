// Package build says what is running: [This] is the program's version, commit and compiler.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
)

// A Build is what decides the last bits of a number, apart from the experiment: equal builds
// give equal bytes.
type Build struct {
	Module   string `json:"module"`
	Program  string `json:"program,omitempty"` // module of the program, and its version, if another
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // of the program
	Modified bool   `json:"modified,omitempty"` // the commit, and changes that were not committed
	Go       string `json:"go"`
	GOARCH   string `json:"goarch"`
	GOAMD64  string `json:"goamd64,omitempty"`
}

const Module = "github.com/sotto-dp/sotto"

// version and commit are those of a release. The linker sets them (deploy/release), whose source has no .git.
var version, commit string

// This describes the running binary.
func This() Build {
	b := Build{Module: Module, Version: "unknown", Go: runtime.Version(), GOARCH: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "GOAMD64" {
			b.GOAMD64 = s.Value
		}
	}
	if info.Main.Path != Module {
		for _, d := range info.Deps {
			if d.Path == Module {
				b.Version = d.Version
			}
		}
		b.Program = strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
	} else if v := cmp.Or(version, info.Main.Version); v != "" {
		b.Version, b.Commit = v, commit
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the build on one line.
func (b Build) String() string {
	parts := []string{b.Version}
	if b.Program != "" {
		parts = append(parts, b.Program)
	}
	if b.Commit != "" {
		parts = append(parts, b.Commit)
	}
	if b.Modified {
		parts = append(parts, "modified")
	}
	parts = append(parts, b.Go, b.GOARCH)
	if b.GOAMD64 != "" {
		parts = append(parts, b.GOAMD64)
	}
	return strings.Join(parts, " ")
}
