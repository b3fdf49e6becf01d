package main

import (
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

var (
	goCode   = regexp.MustCompile(`(?m)^(package|import|func|type|var|const) |:= `)
	yamlCode = regexp.MustCompile(`^(#.*\n)*(- )?[a-z_]+:( |\n)`)
	command  = regexp.MustCompile(`^(#|\$ |\w+=|(sotto|go|curl|npm|npx|make|git|sudo|systemctl|docker|kubectl|cd|cat|` +
		`echo|export|install|python3?|jq|openssl|psql|useradd|mkdir|cp|tar|for|while|done|IFS)\b)`)
)

// guess is the language of an indented block, empty if it is none that is known: output has no colours.
func guess(code string) string {
	switch first := strings.TrimSpace(code); {
	case strings.HasPrefix(first, "<"):
		return "html"
	case strings.HasPrefix(first, "{"):
		return "json"
	case yamlCode.MatchString(code):
		return "yaml"
	}
	goes := false // the line before does
	for _, line := range strings.Split(strings.TrimRight(code, "\n"), "\n") {
		if !goes && line != "" && !command.MatchString(line) && !strings.HasPrefix(line, " ") {
			if goCode.MatchString(code) {
				return "go"
			}
			return ""
		}
		goes = strings.HasSuffix(line, "\\")
	}
	return "bash"
}

// wide is a line's length that a phone does not show whole: such code is reached by the keyboard, to scroll it.
const wide = 36

// colour is code as HTML with the classes of site.css: no script runs for them.
func colour(language, code string) template.HTML {
	var out strings.Builder
	out.WriteString("<pre")
	for _, line := range strings.Split(code, "\n") {
		if len(line) > wide {
			out.WriteString(` tabindex="0"`)
			break
		}
	}
	out.WriteString("><code>")
	if lexer := lexers.Get(language); language != "" && lexer != nil {
		if tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code); err == nil {
			for t := range tokens.Stdlib() {
				if class := class(t.Type); class != "" {
					fmt.Fprintf(&out, `<span class="%s">%s</span>`, class, html.EscapeString(t.Value))
				} else {
					out.WriteString(html.EscapeString(t.Value))
				}
			}
			return template.HTML(strings.TrimRight(out.String(), "\n") + "</code></pre>\n")
		}
	}
	return template.HTML(out.String() + html.EscapeString(code) + "</code></pre>\n")
}

// class is a kind of token's, empty for most of them: a few colours are quieter, and a page is lighter.
func class(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "c"
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber):
		return "m"
	case t.InCategory(chroma.Keyword) && t != chroma.KeywordType, t == chroma.NameTag:
		return "k"
	}
	return ""
}
