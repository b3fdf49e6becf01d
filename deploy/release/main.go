// Command release builds what somebody installs, from one commit: an archive for each system, packages for
// Debian and Fedora, an image, a bill of materials of each program (CycloneDX), and checksums of all. Equal
// commits give equal bytes: nothing depends on the clock, the host, the directory or the caches. It is a
// module of its own, so that nobody who uses Sotto downloads its tools.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// systems are those of a release; of arm it is the seventh version.
const systems = "linux/amd64,linux/arm64,linux/arm,linux/386,darwin/amd64,darwin/arm64,windows/amd64,freebsd/amd64"

// A plan is what is released, and where it goes.
type plan struct {
	version string // such as v0.1.0
	commit  string
	at      time.Time // of the commit; everything has it as its time
	source  string    // directory with the commit's files
	out     string
	targets []target
}

// A target is a system and a processor, by Go's names.
type target struct{ system, processor string }

func (t target) String() string { return t.system + "_" + t.processor }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	repo := f.String("repo", "../..", "git `directory` of Sotto")
	at := f.String("commit", "HEAD", "`commit` that is released")
	version := f.String("version", "", "`version`, such as v0.1.0; if not given, the commit's tag, or what Go "+
		"calls a commit without one")
	out := f.String("out", "../../out/release", "`directory` that is made; it must not be there")
	targets := f.String("targets", systems, "`systems` as GOOS/GOARCH, with commas between")
	if err := f.Parse(args); err != nil {
		return err
	}
	p, err := planned(ctx, *repo, *at, *version)
	if err != nil {
		return err
	}
	if p.targets, err = parseTargets(*targets); err != nil {
		return err
	}
	if p.out, err = filepath.Abs(*out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.out), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(p.out, 0o755); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	work, err := os.MkdirTemp("", "sotto-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if p.source, err = export(ctx, *repo, p.commit, work); err != nil {
		return err
	}
	return p.make(ctx, work)
}

// versions are semantic ones: packages sort by them.
var versions = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// planned says which commit it is, of when, and how it is called.
func planned(ctx context.Context, repo, at, version string) (p plan, err error) {
	show, err := output(ctx, repo, "git", "show", "-s", "--format=%H %ct", at+"^{commit}")
	if err != nil {
		return p, fmt.Errorf("-commit: %w", err)
	}
	commit, seconds, _ := strings.Cut(show, " ")
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 {
		return p, fmt.Errorf("SOURCE_DATE_EPOCH is %q, must be whole seconds since 1970", seconds)
	}
	p = plan{version: version, commit: commit, at: time.Unix(n, 0).UTC()}
	if version == "" {
		tag, err := output(ctx, repo, "git", "describe", "--tags", "--exact-match", "--match", "v*", commit)
		if p.version = tag; err != nil {
			p.version = "v0.0.0-" + p.at.Format("20060102150405") + "-" + commit[:12]
		}
	}
	if !versions.MatchString(p.version) {
		return p, fmt.Errorf("-version is %q, must be such as v0.1.0 or v0.1.0-rc.1", p.version)
	}
	return p, nil
}

func parseTargets(text string) (out []target, err error) {
	known := map[string]bool{}
	for _, one := range strings.Split(systems, ",") {
		known[one] = true
	}
	for _, one := range strings.Split(text, ",") {
		if !known[one] {
			return nil, fmt.Errorf("-targets has %q, must be of %s, each once", one, systems)
		}
		known[one] = false
		system, processor, _ := strings.Cut(one, "/")
		out = append(out, target{system, processor})
	}
	return out, nil
}

// make builds all, and the checksums last.
func (p *plan) make(ctx context.Context, work string) error {
	texts, err := p.texts(ctx, work)
	if err != nil {
		return err
	}
	var images []imageOf
	for _, t := range p.targets {
		program, err := p.compile(ctx, t, work)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		files, err := p.files(ctx, t, program, texts)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if err := p.bill(t, program); err != nil {
			return fmt.Errorf("%s: bill of materials: %w", t, err)
		}
		if err := p.archive(t, files); err != nil {
			return fmt.Errorf("%s: archive: %w", t, err)
		}
		if t.system != "linux" {
			continue
		}
		if err := p.packages(t, files); err != nil {
			return fmt.Errorf("%s: packages: %w", t, err)
		}
		images = append(images, imageOf{t, program})
	}
	if len(images) > 0 {
		if err := p.image(images, work); err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	return p.checksums()
}

// name is that of a file of the release.
func (p *plan) name(rest string) string {
	return filepath.Join(p.out, "sotto_"+strings.TrimPrefix(p.version, "v")+"_"+rest)
}

// output runs a command and gives what it said, without the end of its line.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stderr = dir, os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
