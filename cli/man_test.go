package cli

import (
	"bytes"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The manual page is what man(7) defines: a title of five words, sections, and lists whose entries
// are a name and a text. What programs that read pages warn of is an error, where they are installed.
func TestManual(t *testing.T) {
	k, err := newParser(streams{program: "sotto"})
	if err != nil {
		t.Fatal(err)
	}
	source := manual(k.Model)
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	if !regexp.MustCompile(`^\.TH SOTTO 1 "" "sotto [^" ]+" "sotto manual"$`).MatchString(lines[0]) {
		t.Errorf("the title is %q", lines[0])
	}
	macros := []string{".TH", ".SH", ".SS", ".TP", ".PP", ".RS", ".RE", ".nf", ".fi", ".nh"}
	open := 0
	for i, l := range lines {
		macro, _, _ := strings.Cut(l, " ")
		switch {
		case l == "" || strings.HasPrefix(l, "'") || strings.HasPrefix(l, ".") && !slices.Contains(macros, macro):
			t.Errorf("line %d is %q: empty, or of no macro that the page uses", i+1, l)
		case strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r > '~' }):
			t.Errorf("line %d has what not every program reads: %q", i+1, l)
		case macro == ".TP" && (strings.HasPrefix(lines[i+1], ".") || strings.HasPrefix(lines[i+2], ".")):
			t.Errorf("line %d begins an entry without a name and a text: %q", i+1, lines[i+1:i+3])
		case macro == ".RS":
			open++
		case macro == ".RE":
			open--
		}
	}
	if open != 0 {
		t.Errorf("%d indents are not closed", open)
	}
	for _, n := range leaves(k.Model.Node) {
		if !strings.Contains(source, "\n.SS "+roff(usageOf(n))+"\n") {
			t.Errorf("%s has no section", n.FullPath())
		}
	}
	for _, reader := range [][]string{{"mandoc", "-T", "lint", "-W", "warning"}, {"groff", "-man", "-T", "utf8", "-ww", "-z"}} {
		path, err := exec.LookPath(reader[0])
		if err != nil {
			t.Logf("%s is not installed: what it warns of is not looked at", reader[0])
			continue
		}
		c := exec.Command(path, reader[1:]...)
		c.Stdin = strings.NewReader(source)
		said, _ := c.CombinedOutput()
		for line := range bytes.Lines(said) {
			if !bytes.Contains(line, []byte("missing date")) { // the page is of a build, not of a day
				t.Errorf("%s says: %s", reader[0], line)
			}
		}
	}
}

// Text is no command of roff, whatever it begins with, and says in ASCII what it says.
func FuzzRoff(f *testing.F) {
	for _, s := range []string{"", ".PP", "'nf", `\fB`, "ε-DP", "a\n.SH b", "don't", "`x` ^ ~ \x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := roff(text)
		if strings.HasPrefix(out, ".") || strings.HasPrefix(out, "'") || strings.Contains(out, "\n") ||
			strings.ContainsFunc(out, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q becomes %q", text, out)
		}
	})
}
