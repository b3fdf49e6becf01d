package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

//go:embed page.html site.css site.js
var design embed.FS

// layout is that of every page.
var layout = template.Must(template.ParseFS(design, "page.html"))

// A section is a group of the sidebar: one of the four kinds of documents.
type section struct {
	Title string
	Items []item
}

// An item is a page of the sidebar, with its sentence in docs/README.md.
type item struct {
	Path, Title, About string
	source             string
}

// An edition is the documents at one version.
type edition struct {
	version string
	commit  string
	prefix  string // directory in the site, empty for the newest; it ends with /
	repo    string // directory
	nav     []section
	pages   map[string]*page  // by their path
	raw     map[string][]byte // files that are given as they are, by their path
}

// The files whose pages are there without a link: from these all others are reached.
const (
	home  = "README.md"
	index = "docs/README.md"
)

const (
	explorerPage    = "docs/explorer.md"
	explorerPicture = "docs/explorer.png"
	explorerDir     = "docs/explorer/"
	explorerMake    = "lab/explore/make"
)

// explorerHere is the explorer on its page: in it where there is room, and one click away where there is none.
const explorerHere template.HTML = `<span class="explorer"><a class="button primary" ` +
	`href="explorer/index.html">Open the explorer</a>` +
	`<iframe src="explorer/index.html" title="The explorer" loading="lazy"></iframe></span>`

// build makes all editions in a directory, and gives a line that says what they are.
func (p plan) build(ctx context.Context, work, made string) (string, error) {
	editions := []*edition{{version: p.version, commit: p.commit, repo: p.repo}}
	for _, tag := range p.earlier {
		commit, err := output(ctx, p.repo, "git", "rev-parse", "--short=12", "--verify", tag+"^{commit}")
		if err != nil {
			return "", fmt.Errorf("-earlier: %w", err)
		}
		source := filepath.Join(work, "source-"+tag)
		if err := export(ctx, p.repo, commit, source); err != nil {
			return "", err
		}
		editions = append(editions, &edition{version: tag, commit: commit, prefix: tag + "/", repo: source})
	}
	var problems []error
	for _, e := range editions {
		if err := e.read(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", e.version, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return "", err
	}
	assets, err := loadAssets(os.DirFS(p.repo))
	if err != nil {
		return "", err
	}
	for i, e := range editions {
		dir := filepath.Join(work, fmt.Sprint("edition-", i))
		if err := e.write(dir, p.base, assets, editions); err != nil {
			return "", err
		}
		if err := e.explore(ctx, work, dir); err != nil {
			return "", err
		}
		if err := search(ctx, dir); err != nil {
			return "", err
		}
		if err := os.Rename(dir, filepath.Join(made, e.prefix)); err != nil {
			return "", err
		}
	}
	return check(made, p.base)
}

// export writes the files of a commit into a directory.
func export(ctx context.Context, repo, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tree := dir + ".tar"
	if _, err := output(ctx, repo, "git", "archive", "--format=tar", "--output="+tree, commit); err != nil {
		return err
	}
	_, err := output(ctx, dir, "tar", "-xf", tree)
	return err
}

// read makes pages of the documents, and of each file that one of them links to.
func (e *edition) read() error {
	repo := os.DirFS(e.repo)
	r := reader{repo: repo}
	if _, err := fs.Stat(repo, explorerMake); err == nil {
		r.embedded = map[string]template.HTML{explorerPicture: explorerHere}
	}
	src, err := fs.ReadFile(repo, index)
	if err != nil {
		return err
	}
	if e.nav, err = sidebar(src); err != nil {
		return err
	}
	e.pages, e.raw = map[string]*page{}, map[string][]byte{}
	queue, err := fs.Glob(repo, "docs/*.md")
	if err != nil {
		return err
	}
	var problems []error
	seen := map[string]bool{}
	for queue = append([]string{home}, queue...); len(queue) > 0; queue = queue[1:] {
		source := queue[0]
		if seen[source] {
			continue
		}
		seen[source] = true
		p, err := e.add(r, source)
		if err != nil {
			problems = append(problems, err)
		}
		if p != nil {
			queue = append(queue, p.links...)
		}
	}
	for _, s := range e.nav {
		for _, it := range s.Items {
			if p := e.pages[it.Path]; p != nil {
				p.about = it.About
			} else {
				problems = append(problems, fmt.Errorf("%s: link is %q, which %w, must be Markdown of the repository",
					index, it.source, errDead))
			}
		}
	}
	return errors.Join(problems...)
}

// mostCode is the size up to which a file is shown on a page; a larger one is given as it is, too.
const mostCode = 100_000

// add is the page of a file or directory.
func (e *edition) add(r reader, source string) (*page, error) {
	info, err := fs.Stat(r.repo, source)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		p, err := listing(r.repo, source)
		if err == nil {
			e.pages[p.path] = p
		}
		return p, err
	}
	b, err := fs.ReadFile(r.repo, source)
	if err != nil {
		return nil, err
	}
	e.raw[source] = b
	if path.Ext(source) == ".md" {
		p, err := r.read(source)
		if p != nil {
			e.pages[p.path] = p
		}
		return p, err
	}
	if ext := path.Ext(source); ext == ".png" || ext == ".svg" {
		return nil, nil // pictures are parts of pages
	}
	if !utf8.Valid(b) || len(b) > mostCode {
		return nil, fmt.Errorf("%s is a file of %d bytes, must be text of at most %d to have a page",
			source, len(b), mostCode)
	}
	p := &page{source: source, path: source + ".html", title: source, about: "A file of the repository"}
	p.body = "<h1>" + template.HTML(template.HTMLEscapeString(source)) + "</h1>\n" +
		colour(language(source), strings.TrimRight(string(b), "\n"))
	e.pages[p.path] = p
	return p, nil
}

// language is that of a file.
func language(source string) string {
	switch ext := strings.TrimPrefix(path.Ext(source), "."); ext {
	case "cff":
		return "yaml"
	case "service", "conf":
		return "ini"
	case "bib":
		return "bibtex"
	default:
		return ext
	}
}

// listing is the page of a directory, whose files have pages, too.
func listing(repo fs.FS, source string) (*page, error) {
	files, err := fs.ReadDir(repo, source)
	if err != nil {
		return nil, err
	}
	p := &page{source: source, path: source + "/index.html", title: source, about: "A directory of the repository"}
	var out strings.Builder
	out.WriteString("<h1>" + template.HTMLEscapeString(source) + "</h1>\n<ul>\n")
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		name := template.HTMLEscapeString(f.Name())
		p.links = append(p.links, path.Join(source, f.Name()))
		fmt.Fprintf(&out, `<li><a href="%s.html">%s</a></li>`+"\n", name, name)
	}
	p.body = template.HTML(out.String() + "</ul>\n")
	return p, nil
}

// sidebar reads the groups of docs/README.md: headings, and below each a list of links with sentences.
func sidebar(src []byte) ([]section, error) {
	doc := goldmark.New().Parser().Parse(text.NewReader(src))
	var out []section
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				out = append(out, section{Title: plain(n, src)})
			}
		case *ast.List:
			if len(out) == 0 {
				continue
			}
			s := &out[len(out)-1]
			for li := n.FirstChild(); li != nil; li = li.NextSibling() {
				link, ok := li.FirstChild().FirstChild().(*ast.Link)
				if !ok {
					return nil, fmt.Errorf("%s: item is %q, must begin with a link", index, plain(li, src))
				}
				source := path.Join(path.Dir(index), string(link.Destination))
				title := plain(link, src)
				s.Items = append(s.Items, item{Path: address(source), Title: title, source: source,
					About: strings.TrimLeft(strings.TrimPrefix(plain(li, src), title), ": ")})
			}
		}
	}
	out = slices.DeleteFunc(out, func(s section) bool { return len(s.Items) == 0 })
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no section, must have headings with lists of links", index)
	}
	return out, nil
}

// assets are the files that all pages share, under names that change with what is in them.
type assets struct {
	Style, Script string
	files         map[string][]byte
}

func loadAssets(repo fs.FS) (a assets, err error) {
	look, err := fs.ReadFile(repo, "internal/look/look.css")
	if err != nil {
		return a, err
	}
	style, err := design.ReadFile("site.css")
	if err != nil {
		return a, err
	}
	script, err := design.ReadFile("site.js")
	if err != nil {
		return a, err
	}
	a.files = map[string][]byte{}
	add := func(ext string, b []byte) string {
		sum := sha256.Sum256(b)
		name := fmt.Sprintf("assets/site-%x%s", sum[:4], ext)
		a.files[name] = b
		return name
	}
	a.Style, a.Script = add(".css", slices.Concat(look, style)), add(".js", script)
	return a, nil
}

// A view is what the layout shows.
type view struct {
	assets
	Root            string // leads to the edition's first page
	Path            string
	Title, About    string
	Raw             string // name of the file that the page shows, which stands beside it
	Body            template.HTML
	Headings        []heading
	Nav             []section
	Version, Commit string
	Versions        []version
	Before, After   *item
	Doc             bool // it is found by the search
}

// A version is one that a reader may go to.
type version struct {
	Name, Href string
	Here       bool
}

// write writes the pages of an edition, what they link to, and the lists of them for programs.
func (e *edition) write(dir, base string, a assets, all []*edition) error {
	files := map[string][]byte{llms: e.llms()}
	for name, b := range e.raw {
		files[name] = b
	}
	for name, b := range a.files {
		files[name] = b
	}
	var order []item
	for _, s := range e.nav {
		order = append(order, s.Items...)
	}
	for _, p := range e.pages {
		root := strings.Repeat("../", strings.Count(p.path, "/"))
		v := view{assets: a, Root: root, Path: p.path, Title: p.title, About: p.about, Body: p.body,
			Nav: e.nav, Version: e.version, Commit: e.commit, Versions: versions(e, p.path, root, all)}
		if _, there := e.raw[p.source]; there {
			v.Raw = path.Base(p.source)
		}
		if path.Ext(p.source) == ".md" {
			v.Doc, v.Headings = true, outline(p.headings)
		}
		if i := slices.IndexFunc(order, func(it item) bool { return it.Path == p.path }); i >= 0 {
			if i > 0 {
				v.Before = &order[i-1]
			}
			if i+1 < len(order) {
				v.After = &order[i+1]
			}
		}
		b, err := v.html()
		if err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		files[p.path] = b
	}
	if e.prefix == "" {
		files[own] = nil
		b, err := view{assets: a, Root: base, Path: notFound, Title: "Not found", Nav: e.nav, Version: e.version,
			Commit: e.commit, Body: "<h1>There is no such page</h1>\n<p>It may have moved. Search for it, or go to " +
				template.HTML(`<a href="`+template.HTMLEscapeString(base)+`docs/index.html">all documents</a>.</p>`) + "\n"}.html()
		if err != nil {
			return err
		}
		files[notFound] = b
	}
	for name, b := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// notFound is the page that hosts give for an address that is none.
const notFound = "404.html"

func (v view) html() ([]byte, error) {
	var out bytes.Buffer
	err := layout.Execute(&out, v)
	return out.Bytes(), err
}

// outline is the headings that are listed beside a page: of a long one those of the second level alone.
func outline(all []heading) []heading {
	if len(all) > 30 {
		all = slices.DeleteFunc(slices.Clone(all), func(h heading) bool { return h.Level > 2 })
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// versions are the editions, each with its page of the same path, or its first one.
func versions(here *edition, at, root string, all []*edition) (out []version) {
	if here.prefix != "" {
		root += "../"
	}
	for _, e := range all {
		to := at
		if e.pages[at] == nil {
			to = "index.html"
		}
		out = append(out, version{e.version, root + e.prefix + to, e == here})
	}
	return out
}

// llms is the list of pages in Markdown, in the form of llmstxt.org.
func (e *edition) llms() []byte {
	var out strings.Builder
	first := e.pages["index.html"]
	fmt.Fprintf(&out, "# %s\n\n> %s.\n\nVersion %s. Each page is Markdown, and stands beside its HTML.\n\n"+
		"- [Overview](%s)\n", first.title, strings.TrimSuffix(first.about, "."), e.version, first.source)
	for _, s := range e.nav {
		fmt.Fprintf(&out, "\n## %s\n\n", s.Title)
		for _, it := range s.Items {
			fmt.Fprintf(&out, "- [%s](%s): %s\n", it.Title, it.source, it.About)
		}
	}
	return []byte(out.String())
}

// explore builds the explorer of an edition that has one.
func (e *edition) explore(ctx context.Context, work, dir string) error {
	if _, err := os.Stat(filepath.Join(e.repo, explorerMake)); err != nil {
		return nil
	}
	made := filepath.Join(dir, filepath.FromSlash(explorerDir))
	c := exec.CommandContext(ctx, "go", "run", "./"+explorerMake, made)
	c.Dir, c.Stderr = e.repo, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("explorer: %w", err)
	}
	first := filepath.Join(made, "index.html")
	b, err := os.ReadFile(first)
	if err != nil {
		return err
	}
	b = bytes.Replace(b, []byte(`<span class="brand">Sotto</span>`), // it leads back
		[]byte(`<a class="brand" href="../../index.html" target="_top">Sotto</a>`), 1)
	return os.WriteFile(first, b, 0o644)
}

// search writes the index of a site, and the program that reads it, into pagefind. Its own widgets are left out.
func search(ctx context.Context, dir string) error {
	program, err := filepath.Abs("node_modules/pagefind/lib/runner/bin.cjs")
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return errors.New("pagefind is not there: run npm ci in deploy/site")
	}
	if _, err := output(ctx, dir, "node", program, "--site", "."); err != nil {
		return err
	}
	unused, err := filepath.Glob(filepath.Join(dir, "pagefind", "pagefind-*"))
	if err != nil {
		return err
	}
	for _, name := range unused {
		if keep := []string{"pagefind-entry.json", "pagefind-worker.js"}; !slices.Contains(keep, filepath.Base(name)) {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
