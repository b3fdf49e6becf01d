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

	"github.com/sotto-dp/sotto/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

const commandsPage = "../docs/commands.md"

// moreExamples are for commands whose help has none.
var moreExamples = map[string]string{
	"sotto reproduce": "sotto reproduce thesis-5.2 --preset quick\nsotto reproduce --list",
}

// The page of commands says what the program does. With -update it is written anew:
//
//	go test ./cli -run CommandsPage -update
func TestCommandsPage(t *testing.T) {
	testkit.OneGoroutine(t)
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

func page(t *testing.T, b *bytes.Buffer, root *kong.Node) {
	b.WriteString("# Commands\n\n" +
		"<!-- Written by `go test ./cli -run CommandsPage -update`: change the commands, " +
		"not this page. -->\n\n" +
		"Every command, its flags and their defaults. `sotto COMMAND --help` prints the same. " +
		"Data and tables go to standard output; progress, warnings and errors to standard error. " +
		"On a terminal tables are folded to its width and headings are bold (`NO_COLOR` keeps them plain); " +
		"what goes to a pipe or a file has every column whole.\n\n" +
		"Exit codes, of every command:\n\n| code | meaning |\n|---|---|\n")
	for _, c := range exitMeanings {
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
	groups, flags := grouped(n)
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
	args := wordsOf(line)
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

// wordsOf cuts a line as a shell does, as far as examples need it: at spaces outside single quotes.
func wordsOf(line string) []string {
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
