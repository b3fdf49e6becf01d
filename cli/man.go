package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/sotto-dp/sotto/internal/build"
)

type manCommand struct{}

func (c *manCommand) Run(k *kong.Kong, s streams) error {
	_, err := io.WriteString(s.out, manual(k.Model))
	return err
}

// manual is the manual page, by the macros of man(7).
func manual(app *kong.Application) string {
	var m manWriter
	about, more, _ := strings.Cut(app.Help, "\n\n")
	m.linef(`.TH %s 1 "" "%[2]s %[3]s" "%[2]s manual"`, roff(strings.ToUpper(app.Name)), roff(app.Name),
		roff(build.This().Version))
	m.linef(".nh") // a hyphen at the end of a line might be part of a flag
	m.linef(".SH NAME\n%s \\- %s", roff(app.Name), roff(strings.TrimSuffix(about, ".")))
	m.linef(".SH SYNOPSIS\n\\fB%s\\fR \\fIcommand\\fR [\\fIarguments\\fR] [\\fIflags\\fR]", roff(app.Name))
	m.linef(".SH DESCRIPTION\n%s is a program of commands. Each says with \\fB\\-\\-help\\fR what is said of it here.",
		roff(app.Name))
	m.text(more)
	m.linef(".SH OPTIONS")
	for _, f := range app.Flags {
		m.item("--"+f.Name, f.Help)
	}
	m.linef(".SH COMMANDS")
	for _, n := range leaves(app.Node) {
		m.command(n)
	}
	m.linef(".SH EXIT STATUS")
	for _, e := range exitMeanings {
		m.item(fmt.Sprint(e.code), e.text+".")
	}
	return m.String()
}

// A manWriter writes the source of a manual page: never an empty line, which man(7) leaves undefined.
type manWriter struct{ strings.Builder }

func (m *manWriter) linef(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// item is an entry of a list.
func (m *manWriter) item(name, text string) {
	m.linef(".TP\n\\fB%s\\fR\n%s", roff(name), roff(text))
}

// text is paragraphs; lines that are indented keep their form.
func (m *manWriter) text(text string) {
	paragraph, verbatim := true, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !verbatim:
			m.linef(".PP\n.RS 4\n.nf")
		case !indented && verbatim:
			m.linef(".fi\n.RE")
			paragraph = true
		}
		verbatim = indented
		if line == "" {
			paragraph = true
			continue
		}
		if paragraph && !indented {
			m.linef(".PP")
		}
		paragraph = false
		m.linef("%s", roff(strings.TrimPrefix(line, "  ")))
	}
	if verbatim {
		m.linef(".fi\n.RE")
	}
}

func (m *manWriter) command(n *kong.Node) {
	m.linef(".SS %s", roff(usageOf(n)))
	m.linef("%s", roff(n.Help))
	for _, p := range n.Positional {
		m.item(p.Summary(), p.Help)
	}
	groups, flags := grouped(n)
	for _, g := range groups {
		if g != "" {
			m.linef(".PP\n%s:", roff(strings.TrimSuffix(g, ":")))
		}
		for _, f := range flags[g] {
			text := f.Help
			if f.HasDefault && f.Default != "" && !f.IsBool() {
				text += " Default: " + f.Default + "."
			}
			m.item(flagText(f), text)
		}
	}
	m.text(n.Detail)
	if note := exitNotes[n.FullPath()]; note != "" {
		m.linef(".PP\nExit status: %s", roff(note))
	}
}

// roff is text as the source of a manual page has it. Letters beyond ASCII have names, which every
// program that reads pages knows: not all of them read UTF-8.
func roff(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`) // a minus, to be copied: a hyphen would be U+2010
		case r < ' ':
			b.WriteByte(' ')
		case r > '~':
			fmt.Fprintf(&b, `\[u%04X]`, r)
		case strings.ContainsRune("'`^~", r):
			fmt.Fprintf(&b, `\(%s`, map[rune]string{'\'': "aq", '`': "ga", '^': "ha", '~': "ti"}[r])
		default:
			b.WriteRune(r)
		}
	}
	if s := b.String(); strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return b.String()
}

// exitMeanings are the exit codes that all commands have.
var exitMeanings = []struct {
	code int
	text string
}{
	{exitOK, "done"},
	{exitFailed, "something outside the command line and the files it names went wrong, such as a " +
		"full disk"},
	{exitUsage, "bad input, such as a file that is not there: one clear error says which flag, " +
		"file or value, and what is allowed"},
	{exitInterrupted, "stopped by Ctrl-C or SIGTERM"},
}

// exitNotes are what the exit codes of a command mean beside the common ones.
var exitNotes = map[string]string{
	"sotto stop": "3 if the data or the cap ended before the rule stopped: there is " +
		"no estimate, and the error says what was spent.",
	"sotto identify":        "3 if the data or the cap ended before an answer: the error says what was spent.",
	"sotto audit mechanism": "1 also if the claim is refuted.",
	"sotto audit policy":    "1 also if the claim is refuted.",
	"sotto audit training":  "1 also if the claim is refuted.",
	"sotto audit self":      "1 also if a claim is refuted, or a broken copy is not.",
	"sotto aggregate serve": "1 also if the sum is refused: the error names the reason. 4 if it " +
		"failed so late that it is possibly released: the batch is spent.",
	"sotto aggregate join": "1 also if the sum is refused: the error names the reason. 4 if it " +
		"failed so late that it is possibly released: the reward is spent.",
	"sotto replay": "1 also if the transcript does not hold, or cannot be played again yet, as its policy's " +
		"coins are told at its end: the error names the line.",
	"sotto reproduce": "1 also if a figure could not be made. A verdict against a source " +
		"is a finding, and no error: 0.",
}

// leaves are the commands that do something, in the order of the tree.
func leaves(n *kong.Node) []*kong.Node {
	if n.Leaf() {
		return []*kong.Node{n}
	}
	var out []*kong.Node
	for _, c := range n.Children {
		if !c.Hidden {
			out = append(out, leaves(c)...)
		}
	}
	return out
}

// grouped are the flags of a command that are shown, by the titles of their groups, in order.
func grouped(n *kong.Node) (groups []string, flags map[string][]*kong.Flag) {
	groups, flags = []string{""}, map[string][]*kong.Flag{}
	for _, f := range n.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		g := ""
		if f.Group != nil {
			g = f.Group.Title
		}
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
		flags[g] = append(flags[g], f)
	}
	return groups, flags
}

// usageOf is the first line of the help.
func usageOf(n *kong.Node) string {
	text := n.FullPath() + strings.TrimPrefix(n.Summary(), n.Path())
	if !slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return !f.Hidden && f.Name != "help" }) {
		text = strings.TrimSuffix(text, " [flags]")
	}
	return text
}

// flagText is the flag with the name of its value, and not with its default.
func flagText(f *kong.Flag) string {
	switch {
	case f.IsBool():
		return "--" + f.Name
	case f.PlaceHolder != "":
		return "--" + f.Name + "=" + f.PlaceHolder
	}
	return "--" + f.Name + "=" + strings.ToUpper(f.Name)
}
