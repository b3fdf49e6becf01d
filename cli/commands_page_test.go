package cli

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

const commandsPage = "../docs/commands.md"

// moreExamples are for commands whose help has none.
var moreExamples = map[string]string{
	"sotto reproduce": "sotto reproduce thesis-5.2 --preset quick\nsotto reproduce --list",
}

// exitNotes are what the exit codes of a command mean beside the common ones.
var exitNotes = map[string]string{
	"sotto stop": "3 if the data or the cap ended before the rule stopped: there is " +
		"no estimate, and the error says what was spent.",
	"sotto identify":        "3 if the data or the cap ended before an answer: the error says what was spent.",
	"sotto audit mechanism": "1 also if the claim is refuted.",
	"sotto audit policy":    "1 also if the claim is refuted.",
	"sotto audit training":  "1 also if the claim is refuted.",
	"sotto audit self":      "1 also if a claim is refuted, or a broken twin is not.",
	"sotto aggregate serve": "1 also if the sum is refused: the error names the reason. 4 if it " +
		"failed so late that it is possibly released: the batch is spent.",
	"sotto aggregate join": "1 also if the sum is refused: the error names the reason. 4 if it " +
		"failed so late that it is possibly released: the reward is spent.",
	"sotto replay": "1 also if the transcript does not hold, or cannot be played again yet, as its policy's " +
		"coins are told at its end: the error names the line.",
	"sotto reproduce": "1 also if a figure could not be made. A verdict against a source " +
		"is a finding, and no error: 0.",
}

// The page of commands says what the program does. With -update it is written anew:
//
//	go test ./cli -run CommandsPage -update
func TestCommandsPage(t *testing.T) {
	k, err := newParser(streams{program: "sotto"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	page(t, &b, k.Model.Node)
	if *update {
		if err := os.WriteFile(commandsPage, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, b.Bytes()) {
		t.Errorf("docs/commands.md is not what the commands are: go test ./cli -run CommandsPage -update")
	}
	// Whatever the generator forgets, every command and flag of the tree must be on the page.
	for _, n := range leaves(k.Model.Node) {
		_, section, found := strings.Cut(string(written), "\n## "+n.FullPath()+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found {
			t.Errorf("%s is not on the page", n.FullPath())
		}
		for _, f := range n.Flags {
			if !f.Hidden && !strings.Contains(section, "`--"+f.Name) {
				t.Errorf("%s has a flag --%s that is not on the page", n.FullPath(), f.Name)
			}
		}
	}
	for name := range exitNotes {
		if !slices.ContainsFunc(leaves(k.Model.Node), func(n *kong.Node) bool { return n.FullPath() == name }) {
			t.Errorf("there is a note on the exit codes of %s, which is no command", name)
		}
	}
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

func page(t *testing.T, b *bytes.Buffer, root *kong.Node) {
	b.WriteString("# Commands\n\n" +
		"<!-- Written by `go test ./cli -run CommandsPage -update`: change the commands, " +
		"not this page. -->\n\n" +
		"Every command, its flags and their defaults. `sotto COMMAND --help` prints the same. " +
		"Data and tables go to standard output; progress, warnings and errors to standard error.\n\n" +
		"Exit codes, of every command:\n\n| code | meaning |\n|---|---|\n")
	for _, c := range []struct {
		code int
		text string
	}{{exitOK, "done"}, {exitFailed, "something outside the command line and the files it names " +
		"went wrong, such as a full disk"},
		{exitUsage, "bad input, such as a file that is not there: one clear error says which flag, " +
			"file or value, and what is allowed"},
		{exitInterrupted, "stopped by Ctrl-C or SIGTERM"}} {
		fmt.Fprintf(b, "| %d | %s |\n", c.code, c.text)
	}
	b.WriteString("\n| command | what it does |\n|---|---|\n")
	for _, n := range leaves(root) {
		fmt.Fprintf(b, "| [`%s`](#%s) | %s |\n", n.FullPath(),
			strings.ReplaceAll(n.FullPath(), " ", "-"), cell(n.Help))
	}
	for _, n := range leaves(root) {
		command(t, b, n)
	}
}

func command(t *testing.T, b *bytes.Buffer, n *kong.Node) {
	name := n.FullPath()
	text, examples := split(n.Detail)
	if examples == "" {
		examples = moreExamples[name]
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n    %s\n", name, n.Help, usageOf(n))
	if text != "" {
		fmt.Fprintf(b, "\n%s\n", text)
	}
	if len(n.Positional) > 0 {
		b.WriteString("\n| argument | meaning |\n|---|---|\n")
		for _, p := range n.Positional {
			fmt.Fprintf(b, "| `%s` | %s |\n", p.Summary(), cell(p.Help))
		}
	}
	groups := []string{""}
	flags := map[string][]*kong.Flag{}
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
	for _, g := range groups {
		if len(flags[g]) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n| %s | default | meaning |\n|---|---|---|\n",
			cmp.Or(begins(strings.TrimSuffix(g, ":")), "flag"))
		for _, f := range flags[g] {
			value := "-"
			switch {
			case f.HasDefault && f.Default != "":
				value = "`" + f.Default + "`"
			case f.Required:
				value = "required"
			}
			meaning := cell(f.Help)
			if f.Enum != "" && f.Target.Kind() == reflect.String {
				meaning += " One of `" + strings.ReplaceAll(f.Enum, ",", "`, `") + "`."
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", flagText(f), value, meaning)
		}
	}
	if examples == "" {
		t.Errorf("%s has no example", name)
	}
	b.WriteString("\nExamples:\n\n")
	for line := range strings.Lines(examples) {
		b.WriteString("    " + strings.TrimSpace(line) + "\n")
		parses(t, strings.TrimSpace(line))
	}
	b.WriteString("\nExit codes: those above.")
	if note := exitNotes[name]; note != "" {
		b.WriteString(" " + note)
	}
	b.WriteString("\n")
}

// begins is text without a capital at its beginning.
func begins(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}

// usageOf is the first line of the help.
func usageOf(n *kong.Node) string {
	text := "sotto " + strings.TrimPrefix(n.Summary(), "sotto ")
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

// cell is text that may stand in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// split parts the text of a help from the examples in it.
func split(detail string) (text, examples string) {
	var kept, shown []string
	inside := false
	for line := range strings.Lines(detail) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "Examples:":
			inside = true
		case inside && strings.HasPrefix(line, "  "):
			shown = append(shown, line)
		default:
			inside = false
			if item, ok := strings.CutPrefix(line, "  "); ok { // a list, in Markdown
				line = "- " + item
				if last := len(kept) - 1; last >= 0 && kept[last] != "" &&
					!strings.HasPrefix(strings.TrimSpace(kept[last]), "- ") {
					line = "\n" + line
				}
			}
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n")), strings.Join(shown, "\n")
}

// parses checks that an example is a command with flags that there are.
func parses(t *testing.T, line string) {
	if _, after, ok := strings.Cut(line, "| "); ok {
		line = after
	}
	line, _, _ = strings.Cut(line, " > ")
	args := words(line)
	if args[0] != "sotto" {
		t.Errorf("the example %q is none of sotto", line)
		return
	}
	k, err := newParser(streams{program: "sotto"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Parse(benchCommand(args[1:])); err != nil {
		t.Errorf("the example %q: %v", line, err)
	}
}

// words cuts a line as a shell does, as far as examples need it: at spaces outside single quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}
