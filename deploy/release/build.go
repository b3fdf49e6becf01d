package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// largest is what a stripped program may have, in bytes; and largestElsewhere where it is not in Linux's format: the
// same code has a megabyte more in macOS's.
const (
	largest          = 52_000_000
	largestElsewhere = 53_000_000
)

// export writes the files of a commit into a directory of their own, so that nothing that was not committed
// is released.
func export(ctx context.Context, repo, commit, work string) (string, error) {
	source, tar := filepath.Join(work, "source"), filepath.Join(work, "source.tar")
	if err := os.Mkdir(source, 0o755); err != nil {
		return "", err
	}
	if _, err := output(ctx, repo, "git", "archive", "--format=tar", "-o", tar, commit); err != nil {
		return "", err
	}
	if _, err := output(ctx, work, "tar", "-xf", tar, "-C", source); err != nil {
		return "", err
	}
	return source, os.Remove(tar)
}

// goes runs the go command in the commit's files. What a user has set for it changes nothing.
func (p *plan) goes(ctx context.Context, t target, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Stderr = p.source, os.Stderr
	c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "GOEXPERIMENT=") || strings.HasPrefix(e, "GOFIPS140=")
	})
	c.Env = append(c.Env, "GOOS="+t.system, "GOARCH="+t.processor, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOENV=off", "GOAMD64=v1", "GOARM64=v8.0", "GOARM=7", "GO386=sse2")
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// compile builds the program of a target.
func (p *plan) compile(ctx context.Context, t target, work string) (string, error) {
	program := filepath.Join(work, t.String(), "sotto")
	if t.system == "windows" {
		program += ".exe"
	}
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	const set = "-X github.com/sotto-dp/sotto/internal/build."
	if _, err := p.goes(ctx, t, "build", "-trimpath", "-buildvcs=false", "-ldflags",
		fmt.Sprintf("-s -w -buildid= %[1]sversion=%[2]s %[1]scommit=%[3]s", set, p.version, p.commit), "-o", program,
		"./cmd/sotto"); err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	fmt.Printf("%-14s %.1f MB\n", t, float64(info.Size())/1e6)
	most := int64(largestElsewhere)
	if t.system == "linux" {
		most = largest
	}
	if info.Size() > most {
		return "", fmt.Errorf("the program has %d bytes, must have at most %d: go tool nm -size -sort size names "+
			"what grew", info.Size(), most)
	}
	return program, nil
}

// texts are the files that all systems have, and that the program writes itself: its manual page and what
// completes its commands. They are asked of the program of this machine.
func (p *plan) texts(ctx context.Context, work string) ([]file, error) {
	program, err := p.compile(ctx, target{runtime.GOOS, runtime.GOARCH}, work)
	if err != nil {
		return nil, err
	}
	out := []file{
		{in: "README.md"}, {in: "CHANGELOG.md"}, {in: "LICENSE"}, {in: "deploy/sotto.service", to: "sotto.service"}}
	for i, f := range out {
		if out[i].data, err = os.ReadFile(filepath.Join(p.source, f.in)); err != nil {
			return nil, err
		}
		if f.to == "" {
			out[i].to = f.in
		}
	}
	for _, made := range []struct{ to, args string }{{"sotto.1", "man"}, {"completions/sotto.bash", "completion bash"},
		{"completions/_sotto", "completion zsh"}, {"completions/sotto.fish", "completion fish"}} {
		text, err := exec.CommandContext(ctx, program, strings.Fields(made.args)...).Output()
		if err != nil {
			return nil, fmt.Errorf("sotto %s: %w", made.args, err)
		}
		out = append(out, file{to: made.to, data: text})
	}
	return out, nil
}

// legal are the names of files that say under which terms others' code may be passed on.
var legal = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|copyright)([.-].*)?$`)

// licenses are the terms of all that a program is made of, which it may not be passed on without.
func (p *plan) licenses(ctx context.Context, t target) ([]byte, error) {
	listed, err := p.goes(ctx, t, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}",
		"./cmd/sotto")
	if err != nil {
		return nil, err
	}
	root, err := p.goes(ctx, t, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	lines := append(strings.Split(strings.TrimSpace(listed), "\n"), "Go's standard library\t"+runtime.Version()+"\t"+
		strings.TrimSpace(root))
	slices.Sort(lines)
	var out bytes.Buffer
	for _, line := range slices.Compact(lines) {
		if line == "" {
			continue
		}
		of := strings.Split(line, "\t")
		entries, err := os.ReadDir(of[2])
		if err != nil {
			return nil, err
		}
		found := false
		for _, e := range entries { // sorted by name
			if e.IsDir() || !legal.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(of[2], e.Name()))
			if err != nil {
				return nil, err
			}
			found = true
			fmt.Fprintf(&out, "%s\n%s %s: %s\n\n%s\n\n", strings.Repeat("=", 78), of[0], of[1], e.Name(),
				strings.TrimSpace(string(text)))
		}
		if !found {
			return nil, fmt.Errorf("%s %s has no license beside its go.mod: it may not be passed on", of[0], of[1])
		}
	}
	return out.Bytes(), nil
}
