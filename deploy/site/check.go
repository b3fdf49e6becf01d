package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// mostBytes is how much a page may take on its way, with its style, script and pictures. Hosts compress text.
// The explorer, and the search until somebody searches, are apart.
const mostBytes = 200_000

// errHeavy is matched by a page that takes more.
var errHeavy = errors.New("is too heavy")

// A document is a page of the site as a browser reads it.
type document struct {
	ids   map[string]bool
	links []string // addresses of the site or of others, in order
	text  []string // those of the text and of the list of its headings, and not of what is around them
	parts []string // what comes with it
}

// check looks whether each link of a site leads to a file and to an anchor in it, without a network, and how much
// each page takes. It gives a line that says how many there were.
func check(dir, base string) (string, error) {
	site := os.DirFS(dir)
	docs, err := documents(site)
	if err != nil {
		return "", err
	}
	var problems []error
	links, heaviest, most := 0, "", 0
	for name, d := range docs {
		for _, link := range slices.Concat(d.links, d.parts) {
			links++
			if err := d.leads(site, docs, base, name, link); err != nil {
				problems = append(problems, err)
			}
		}
		n, err := weight(site, base, name, d.parts)
		if err != nil {
			problems = append(problems, err)
		}
		if n > mostBytes {
			problems = append(problems,
				fmt.Errorf("%s %w: %d bytes, must be at most %d", name, errHeavy, n, mostBytes))
		}
		if n > most {
			heaviest, most = name, n
		}
	}
	lists, err := fs.Glob(site, "*/"+llms)
	if err != nil {
		return "", err
	}
	for _, name := range append(lists, llms) {
		b, err := fs.ReadFile(site, name)
		if err != nil {
			return "", err
		}
		for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllSubmatch(b, -1) {
			links++
			if _, err := fs.Stat(site, path.Join(path.Dir(name), string(m[1]))); err != nil {
				problems = append(problems,
					fmt.Errorf("%s: link is %q, which %w, must be a file of the site", name, m[1], errDead))
			}
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	said := fmt.Sprintf("%d pages, %d links that lead somewhere, %d kB at most (%s).", len(docs), links,
		most/1000, heaviest)
	return said, errors.Join(problems...)
}

// documents are all pages of a site but the explorer.
func documents(site fs.FS) (map[string]*document, error) {
	docs := map[string]*document{}
	err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "pagefind" || strings.HasSuffix(name, "/pagefind") ||
			strings.HasSuffix(name+"/", explorerDir)):
			return fs.SkipDir
		case path.Ext(name) == ".html" && !exampleOf(site, name):
			docs[name], err = open(site, name)
		}
		return err
	})
	return docs, err
}

// exampleOf says whether a file is HTML that the documents show: its own page stands beside it.
func exampleOf(site fs.FS, name string) bool {
	_, err := fs.Stat(site, name+".html")
	return err == nil
}

// open reads a page.
func open(site fs.FS, name string) (*document, error) {
	b, err := fs.ReadFile(site, name)
	if err != nil {
		return nil, err
	}
	root, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &document{ids: map[string]bool{}}
	var twice error
	var walk func(n *html.Node, inText bool)
	walk = func(n *html.Node, inText bool) {
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
		}
		if id := attr["id"]; id != "" {
			if d.ids[id] {
				twice = fmt.Errorf("%s: id is %q twice, must be one element's", name, id)
			}
			d.ids[id] = true
		}
		inText = inText || n.Data == "article" || attr["class"] == "brief"
		switch href, src := attr["href"], attr["src"]; {
		case n.Data == "a" && href != "":
			d.links = append(d.links, href)
			if inText {
				d.text = append(d.text, href)
			}
		case n.Data == "link" && attr["rel"] == "stylesheet", n.Data == "link" && attr["rel"] == "alternate":
			d.parts = append(d.parts, href)
		case n.Data == "iframe":
			d.links = append(d.links, src)
		case src != "":
			d.parts = append(d.parts, src)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, inText)
		}
	}
	walk(root, false)
	return d, twice
}

// target is the file and the anchor that a link leads to, from one page.
func target(base, from, link string) (file, anchor string) {
	file, anchor, _ = strings.Cut(link, "#")
	if plain, err := url.PathUnescape(anchor); err == nil {
		anchor = plain
	}
	switch {
	case file == "":
		return from, anchor
	case strings.HasPrefix(file, "/"):
		file = strings.TrimPrefix(file, base)
	default:
		file = path.Join(path.Dir(from), file)
	}
	if file == "" || strings.HasSuffix(file, "/") {
		file += "index.html"
	}
	return file, anchor
}

// leads says whether a link does.
func (d *document) leads(site fs.FS, docs map[string]*document, base, name, link string) error {
	// The reader's own machine is one.
	for _, elsewhere := range []string{"https://", "http://127.0.0.1:", "data:image/"} {
		if strings.HasPrefix(link, elsewhere) {
			return nil
		}
	}
	file, anchor := target(base, name, link)
	if _, err := fs.Stat(site, file); err != nil {
		return fmt.Errorf("%s: link is %q, which %w, must be a file of the site", name, link, errDead)
	}
	if anchor == "" {
		return nil
	}
	if to := docs[file]; to == nil || !to.ids[anchor] {
		return fmt.Errorf("%s: link is %q, which %w, must be a heading of %s", name, link, errDead, file)
	}
	return nil
}

// weight is what a page and its parts take, compressed but for pictures of points.
func weight(site fs.FS, base, name string, parts []string) (int, error) {
	files := []string{name}
	for _, part := range parts {
		if file, _ := target(base, name, part); !strings.HasPrefix(part, "data:") && path.Ext(file) != ".md" &&
			!slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	sum := 0
	for _, file := range files {
		b, err := fs.ReadFile(site, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a dead link is told as one
		} else if err != nil {
			return 0, err
		}
		if path.Ext(file) != ".png" {
			var small bytes.Buffer
			z := gzip.NewWriter(&small)
			if _, err := z.Write(b); err != nil {
				return 0, err
			}
			if err := z.Close(); err != nil {
				return 0, err
			}
			b = small.Bytes()
		}
		sum += len(b)
	}
	return sum, nil
}
