// Command site builds Sotto's documents as static pages that any host for files serves: what README.md and
// docs/ link to, with a sidebar after docs/README.md, a search without a server (Pagefind), the explorer, and
// each page's Markdown beside it. It ends with an error for a dead link or a page that is too heavy, and then
// leaves the last site as it was. It is a module of its own, so that nobody who uses Sotto downloads its tools.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// errUsage is matched by what somebody typed wrong.
var errUsage = errors.New("usage: site [-repo DIR] [-out DIR] [-version NAME] [-earlier TAG,TAG] [-base /PATH/]")

// A plan is what is built, and where it goes.
type plan struct {
	repo    string
	out     string
	base    string // path of the site on its host: the page of what is not found alone needs it
	version string
	commit  string
	earlier []string // tags, newest first
}

func run(ctx context.Context, args []string) error {
	p, err := parse(ctx, args)
	if err != nil {
		return err
	}
	if err := free(p.out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.out), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(p.out), ".site-") // on the same disk: it is renamed
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	made := filepath.Join(work, "site")
	report, err := p.build(ctx, work, made)
	if err != nil {
		return err
	}
	if err := replace(made, p.out, filepath.Join(work, "last")); err != nil {
		return err
	}
	fmt.Printf("%s\nThe site is in %s: give the directory to any host for files.\n", report, p.out)
	return nil
}

func parse(ctx context.Context, args []string) (p plan, err error) {
	f := flag.NewFlagSet("site", flag.ContinueOnError)
	f.StringVar(&p.repo, "repo", "../..", "`directory` of Sotto's source")
	f.StringVar(&p.out, "out", "../../out/site", "`directory` that is made, or made again")
	f.StringVar(&p.base, "base", "/", "`path` of the site on its host, which its 404 page needs")
	f.StringVar(&p.version, "version", "", "`name` of what is built; if not given, the commit's tag or its hash")
	earlier := f.String("earlier", "", "`tags` whose documents are built beside, newest first, with commas between")
	if err := f.Parse(args); err != nil {
		return p, errors.Join(errUsage, err)
	}
	if f.NArg() > 0 {
		return p, fmt.Errorf("argument is %q, must be a flag: %w", f.Arg(0), errUsage)
	}
	if !strings.HasPrefix(p.base, "/") || !strings.HasSuffix(p.base, "/") {
		return p, fmt.Errorf("-base is %q, must begin and end with /: %w", p.base, errUsage)
	}
	if p.out, err = filepath.Abs(p.out); err != nil {
		return p, err
	}
	if p.commit, err = output(ctx, p.repo, "git", "rev-parse", "--short=12", "HEAD"); err != nil {
		return p, err
	}
	if p.version == "" {
		if p.version, err = output(ctx, p.repo, "git", "describe", "--tags", "--exact-match", "--match", "v*"); err != nil {
			p.version = p.commit // it has no tag
		}
	}
	for _, tag := range strings.FieldsFunc(*earlier, func(r rune) bool { return r == ',' }) {
		if !tags.MatchString(tag) {
			return p, fmt.Errorf("-earlier has %q, must be tags such as v0.1.0: %w", tag, errUsage)
		}
		p.earlier = append(p.earlier, tag)
	}
	return p, nil
}

// tags are names of directories, too.
var tags = regexp.MustCompile(`^v[0-9A-Za-z][0-9A-Za-z.-]*$`)

// errNotEmpty is matched when a directory has files of somebody else's.
var errNotEmpty = errors.New("has other files")

// llms is the list of pages for programs, and own is an empty file by which a directory is known as a site that
// was made here, which may be replaced. Others have an llms.txt, too.
const (
	llms = "llms.txt"
	own  = ".sotto-site"
)

// free says whether a directory is still to be made, or is empty, or has an earlier site.
func free(dir string) error {
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		if _, err := os.Stat(filepath.Join(dir, own)); err != nil {
			return fmt.Errorf("-out is %s, which %w, must be new, empty, or of an earlier make", dir, errNotEmpty)
		}
	}
	return nil
}

// replace puts a site where the last one was, which goes away.
func replace(made, out, last string) error {
	if err := os.Rename(out, last); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(made, out)
}

// output runs a command and gives what it said, without the end of its line.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
