package cli

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/live/decl"
)

type noticeCommand struct {
	File    string `arg:"" help:"Live experiment in YAML; - reads standard input."`
	By      string `help:"Who runs the experiment, as visitors know you." placeholder:"NAME"`
	Contact string `help:"Where visitors object, such as privacy@shop.example." placeholder:"ADDRESS"`
	HTML    bool   `name:"html" help:"A page of HTML, not Markdown."`
}

// noticeTexts are help texts that are too long for their flags.
var noticeTexts = kong.Vars{
	"notice": `Examples:
  sotto notice shop.yaml --by 'Shop Ltd' --contact privacy@shop.example
  sotto notice shop.yaml --html --by 'Shop Ltd' --contact privacy@shop.example > notice.html

It says what is recorded, what others can learn (ε as odds), how long it is kept and how to object, by the
declaration alone. What only you know is in square brackets, and stderr lists what is left to do. It is no legal
advice.`,
}

func (c *noticeCommand) Run(s streams) error {
	spec, live, file, err := readAny(c.File, s)
	switch {
	case err != nil:
		return err
	case spec != nil:
		return usagef("%s is an experiment for sotto run, must be a live one: sotto schema live has its keys", file)
	}
	if err := live.Check(); err != nil {
		return err
	}
	n, err := live.Notice(decl.Sender{Name: c.By, Contact: c.Contact})
	if err != nil {
		return err
	}
	write := noticeMarkdown
	if c.HTML {
		write = noticeHTML
	}
	var b bytes.Buffer // so that an error leaves no half notice
	if err := write(&b, n); err != nil {
		return err
	}
	if _, err := s.out.Write(b.Bytes()); err != nil {
		return err
	}
	for _, todo := range n.Todo {
		fmt.Fprintln(s.err, "to do:", todo)
	}
	return nil
}

// marked are the letters that mean something in Markdown.
var marked = func() *strings.Replacer {
	var pairs []string
	for _, r := range "\\`*_<>#|~&[]" {
		pairs = append(pairs, string(r), `\`+string(r))
	}
	return strings.NewReplacer(pairs...)
}()

func noticeMarkdown(w io.Writer, n decl.Notice) error {
	line := func(s string) string { return marked.Replace(report.Clean(s)) }
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", line(n.Title))
	for _, s := range n.Sections {
		fmt.Fprintf(&b, "\n## %s\n", line(s.Title))
		for _, p := range s.Text {
			fmt.Fprintf(&b, "\n%s\n", line(p))
		}
		for i, item := range s.Items {
			if i == 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "- %s\n", line(item))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var noticePage = template.Must(template.New("notice").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
{{.Style}}
body { max-width: 44rem; }
li { margin: .35rem 0; }
</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
{{- range .Sections}}
<h2>{{.Title}}</h2>
{{- range .Text}}
<p>{{.}}</p>
{{- end}}
{{- with .Items}}
<ul>
{{- range .}}
<li>{{.}}</li>
{{- end}}
</ul>
{{- end}}
{{- end}}
</main>
</body>
</html>
`))

func noticeHTML(w io.Writer, n decl.Notice) error {
	for i, s := range n.Sections {
		for j := range s.Text {
			n.Sections[i].Text[j] = report.Clean(s.Text[j])
		}
		for j := range s.Items {
			n.Sections[i].Items[j] = report.Clean(s.Items[j])
		}
	}
	return noticePage.Execute(w, struct {
		decl.Notice
		Style template.CSS
	}{n, template.CSS(look.CSS())})
}
