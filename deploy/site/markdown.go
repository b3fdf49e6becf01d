package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"html/template"
	"image/png"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A page is what a file of the repository becomes.
type page struct {
	source   string // of the repository, such as docs/guide.md
	path     string // of the site, such as docs/guide.html
	title    string
	about    string // a sentence
	body     template.HTML
	headings []heading
	links    []string // sources that it links to, in order
}

// A heading is one of the second or third level.
type heading struct {
	Level     int
	ID, Title string
}

// address is where a page of the repository is in the site: README.md is its directory's index.
func address(source string) string {
	if path.Base(source) == "README.md" {
		return path.Join(path.Dir(source), "index.html")
	}
	return strings.TrimSuffix(source, ".md") + ".html"
}

// relative leads from one file of the site to another.
func relative(from, to string) string {
	a, b := strings.Split(path.Dir(from), "/"), strings.Split(path.Dir(to), "/")
	if a[0] == "." {
		a = nil
	}
	if b[0] == "." {
		b = nil
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return strings.Repeat("../", len(a)) + strings.Join(append(b, path.Base(to)), "/")
}

// A reader turns the repository's Markdown into pages. Embedded has what is shown in place of a picture.
type reader struct {
	repo     fs.FS
	embedded map[string]template.HTML
}

// read is a page, and every link that leads nowhere as an error.
func (r reader) read(source string) (*page, error) {
	src, err := fs.ReadFile(r.repo, source)
	if err != nil {
		return nil, err
	}
	p := &page{source: source, path: address(source)}
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithRendererOptions(
		renderer.WithNodeRenderers(util.Prioritized(blocks{r.embedded}, 1))))
	doc := md.Parser().Parse(text.NewReader(src))
	var problems []error
	ids := map[string]int{}
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Heading:
			p.head(n, src, ids)
		case *ast.Link:
			n.Destination, err = r.follow(p, n.Destination)
		case *ast.Image:
			err = r.picture(p, n)
		case *ast.Paragraph:
			if p.about == "" && n.Parent().Kind() == ast.KindDocument && n.FirstChild().Kind() != ast.KindImage {
				p.about, _, _ = strings.Cut(plain(n, src), ". ")
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", source, err))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	if p.title == "" {
		problems = append(problems, fmt.Errorf("%s: heading of the first level is none, must be one", source))
	}
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, src, doc); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", source, err))
	}
	p.body = template.HTML(out.String())
	return p, errors.Join(problems...)
}

// head gives a heading the address that hosts of Git give it.
func (p *page) head(n *ast.Heading, src []byte, ids map[string]int) {
	title := plain(n, src)
	id := anchor(title)
	if ids[id]++; ids[id] > 1 {
		id += "-" + strconv.Itoa(ids[id]-1)
	}
	n.SetAttributeString("id", []byte(id))
	switch {
	case n.Level == 1 && p.title == "":
		p.title = title
	case n.Level == 2 || n.Level == 3:
		p.headings = append(p.headings, heading{n.Level, id, title})
	}
}

// anchor is a heading's text in lower case, with hyphens for spaces, and without punctuation.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// plain is the text of a node.
func plain(n ast.Node, src []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			out.Write(util.UnescapePunctuations(n.Segment.Value(src)))
			if n.SoftLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(n.Value)
		}
		return ast.WalkContinue, nil
	})
	return html.UnescapeString(out.String())
}

// errDead is matched by a link that leads nowhere.
var errDead = errors.New("leads nowhere")

// follow is a link of the repository as one of the site. The source that it leads to becomes a page, too.
func (r reader) follow(p *page, destination []byte) ([]byte, error) {
	link := string(destination)
	if strings.Contains(link, ":") {
		if !strings.HasPrefix(link, "https://") {
			return nil, fmt.Errorf("link is %q, must be a file or begin with https://", link)
		}
		return destination, nil
	}
	file, fragment, has := strings.Cut(link, "#")
	if file == "" {
		return destination, nil
	}
	source := path.Join(path.Dir(p.source), file)
	info, err := fs.Stat(r.repo, source)
	if err != nil {
		return nil, fmt.Errorf("link is %q, which %w, must be a file of the repository", link, errDead)
	}
	to := ""
	switch {
	case info.IsDir():
		if _, err := fs.Stat(r.repo, path.Join(source, "README.md")); err == nil {
			source = path.Join(source, "README.md")
		}
		to = path.Join(strings.TrimSuffix(source, "/README.md"), "index.html")
	case path.Ext(source) == ".md":
		to = address(source)
	default:
		to = source + ".html"
	}
	p.links = append(p.links, source)
	out := relative(p.path, to)
	if has {
		out += "#" + fragment
	}
	return []byte(out), nil
}

var svgSize = regexp.MustCompile(`^<svg[^>]* width="([0-9.]+)" height="([0-9.]+)"`)

// picture gives an image its size, so that nothing moves when it comes.
func (r reader) picture(p *page, n *ast.Image) error {
	source := path.Join(path.Dir(p.source), string(n.Destination))
	b, err := fs.ReadFile(r.repo, source)
	if err != nil {
		return fmt.Errorf("picture is %q, which %w, must be a file of the repository", n.Destination, errDead)
	}
	width, height := "", ""
	if m := svgSize.FindSubmatch(b); m != nil {
		width, height = string(m[1]), string(m[2])
	} else if c, err := png.DecodeConfig(bytes.NewReader(b)); err == nil {
		width, height = strconv.Itoa(c.Width), strconv.Itoa(c.Height)
	} else {
		return fmt.Errorf("picture is %q, must be a PNG, or an SVG with width and height", n.Destination)
	}
	n.SetAttributeString("width", []byte(width))
	n.SetAttributeString("height", []byte(height))
	n.SetAttributeString("decoding", []byte("async"))
	if _, there := r.embedded[source]; there {
		n.SetAttributeString("embedded", []byte(source))
		return nil
	}
	p.links = append(p.links, source)
	return nil
}

// blocks renders what the site has otherwise than Markdown: headings with a link to themselves, tables and code
// that scroll, by the keyboard too, code in colours, and comments not at all.
type blocks struct{ embedded map[string]template.HTML }

func (b blocks) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHeading, renderHeading)
	reg.Register(ast.KindCodeBlock, renderCode)
	reg.Register(ast.KindFencedCodeBlock, renderCode)
	reg.Register(ast.KindHTMLBlock, renderHTML)
	reg.Register(ast.KindRawHTML, renderHTML)
	reg.Register(east.KindTable, renderTable)
	reg.Register(east.KindTableCell, renderCell)
	reg.Register(ast.KindImage, b.renderImage)
}

func renderHeading(w util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	id, _ := n.AttributeString("id")
	if entering {
		_, _ = fmt.Fprintf(w, `<h%d id="%s">`, n.Level, html.EscapeString(string(id.([]byte))))
		return ast.WalkContinue, nil
	}
	if n.Level > 1 { // a pointer's: the keyboard has the list of headings
		_, _ = fmt.Fprintf(w, ` <a class="anchor" href="#%s" tabindex="-1" aria-hidden="true" data-pagefind-ignore>#</a>`,
			html.EscapeString(string(id.([]byte))))
	}
	_, _ = fmt.Fprintf(w, "</h%d>\n", n.Level)
	return ast.WalkContinue, nil
}

func renderCode(w util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var code strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		code.Write(line.Value(src))
	}
	language := ""
	if n, ok := node.(*ast.FencedCodeBlock); ok {
		language = string(n.Language(src))
	} else {
		language = guess(code.String())
	}
	_, err := w.WriteString(string(colour(language, strings.TrimRight(code.String(), "\n"))))
	return ast.WalkSkipChildren, err
}

// tag is HTML that is let through: nothing in it is an address or a program.
var tag = regexp.MustCompile(`^</?(sup|sub|kbd|br)>$`)

// renderHTML leaves out comments, which are for programs.
func renderHTML(w util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var raw strings.Builder
	switch n := node.(type) {
	case *ast.HTMLBlock:
		raw.Write(n.Lines().Value(src))
	case *ast.RawHTML:
		raw.Write(n.Segments.Value(src))
	}
	switch it := strings.TrimSpace(raw.String()); {
	case tag.MatchString(it):
		_, _ = w.WriteString(it)
	case !strings.HasPrefix(it, "<!--"):
		return ast.WalkStop, fmt.Errorf("HTML is %q, must be Markdown, a comment, or one of sup, sub, kbd and br", it)
	}
	return ast.WalkSkipChildren, nil
}

func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>` + "\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// renderCell has classes for sides, since a page takes no style but from its file. An empty cell heads nothing.
func renderCell(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*east.TableCell)
	name, attributes := "td", ""
	if n.Parent().Kind() == east.KindTableHeader && n.HasChildren() {
		name, attributes = "th", ` scope="col"`
	}
	if n.Alignment == east.AlignRight {
		attributes += ` class="n"`
	}
	if entering {
		_, _ = fmt.Fprintf(w, "<%s%s>", name, attributes)
	} else {
		_, _ = fmt.Fprintf(w, "</%s>\n", name)
	}
	return ast.WalkContinue, nil
}

func (b blocks) renderImage(w util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.Image)
	if source, there := n.AttributeString("embedded"); there {
		_, err := w.WriteString(string(b.embedded[string(source.([]byte))]))
		return ast.WalkSkipChildren, err
	}
	_, _ = fmt.Fprintf(w, `<img src="%s" alt="%s"`, html.EscapeString(string(n.Destination)),
		html.EscapeString(plain(n, src)))
	for _, a := range n.Attributes() {
		_, _ = fmt.Fprintf(w, ` %s="%s"`, a.Name, html.EscapeString(string(a.Value.([]byte))))
	}
	_, err := w.WriteString(">")
	return ast.WalkSkipChildren, err
}
