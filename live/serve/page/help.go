package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/sotto-dp/sotto/docs"
)

// A Help is one of the documents, which the program has with it: a service may be where there is no network.
type Help struct {
	Frame
	Body template.HTML
}

// Help is the address of the document that says more of the page: each of these has a link to it.
func (f Frame) Help() string {
	switch {
	case f.Path == "/new":
		return "/help/abtest.md"
	case f.Path == "/account":
		return "/help/serve.md#one-person-all-experiments"
	case f.Path == "/login", strings.HasPrefix(f.Path, "/keys"):
		return "/help/serve.md#keys"
	case strings.HasSuffix(f.Path, "/ledger"):
		return "/help/privacy.md"
	case strings.HasPrefix(f.Path, "/experiments/"):
		return "/help/inference.md"
	case strings.HasPrefix(f.Path, "/help/"):
		return "/help/README.md"
	}
	return "/help/serve.md#in-a-browser"
}

// Documents leads to the index of the documents.
func (p *Pages) Documents(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, "/help/README.md", http.StatusSeeOther)
	return nil
}

// Document shows one of the documents.
func (p *Pages) Document(w http.ResponseWriter, r *http.Request) error {
	all, err := documents()
	if err != nil {
		return err
	}
	d, ok := all[r.PathValue("file")]
	if !ok {
		return &FieldError{http.StatusNotFound, "", "there is no such document"}
	}
	p.write(w, http.StatusOK, "help.html", Help{p.frame(r, d.title), d.body})
	return nil
}

// A document is one as HTML.
type document struct {
	title string
	body  template.HTML
}

// documents are made once: whoever asks has no key.
var documents = sync.OnceValues(func() (map[string]document, error) {
	files, err := docs.Files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	all := map[string]document{}
	for _, f := range files {
		src, err := docs.Files.ReadFile(f.Name())
		if err != nil {
			return nil, err
		}
		if all[f.Name()], err = rendered(src); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return all, nil
})

// rendered is a document as HTML. Headings have the addresses that hosts of Git give them. Of links to what the program
// does not have with it, and of pictures, the text is left. Goldmark leaves out all HTML of a document.
func rendered(src []byte) (out document, err error) {
	md := goldmark.New(goldmark.WithExtensions(extension.NewTable(
		extension.WithTableCellAlignMethod(extension.TableCellAlignNone))))
	doc := md.Parser().Parse(text.NewReader(src))
	ids := map[string]int{}
	var away []ast.Node
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			words := wordsOf(n, src)
			id := anchor(words)
			if ids[id]++; ids[id] > 1 {
				id += "-" + strconv.Itoa(ids[id]-1)
			}
			if n.SetAttributeString("id", []byte(id)); out.title == "" {
				out.title = words
			}
		case *ast.Link:
			file, _, _ := strings.Cut(string(n.Destination), "#")
			if _, err := fs.Stat(docs.Files, path.Clean(file)); file != "" && err != nil && !strings.HasPrefix(file, "https://") {
				away = append(away, n)
			}
		case *ast.Image:
			away = append(away, n)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return document{}, err
	}
	for _, n := range away {
		for c := n.FirstChild(); c != nil; c = n.FirstChild() {
			n.Parent().InsertBefore(n.Parent(), n, c)
		}
		n.Parent().RemoveChild(n.Parent(), n)
	}
	var b bytes.Buffer
	err = md.Renderer().Render(&b, src, doc)
	// What scrolls does so by the keyboard, too. Code is escaped, so these are tags.
	scrolls := strings.NewReplacer("<pre>", `<pre tabindex="0">`, "</table>", "</table></div>", "<th></th>", "<td></td>",
		"<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`)
	out.body = template.HTML(scrolls.Replace(b.String()))
	return out, err
}

// anchor is a heading in lower case, with hyphens for spaces, and without punctuation.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// wordsOf is the text of a node.
func wordsOf(n ast.Node, src []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(util.UnescapePunctuations(n.Segment.Value(src)))
			}
		case *ast.String:
			if entering {
				out.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}
