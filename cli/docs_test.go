package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// TestDocs runs what the pages of docs show, so that they do not rot. A block of four spaces that
// has a line "$ sotto …" is a session: each command is run, all of a page in one directory, and
// the lines under it must be among those that it prints, in that order; a line of "…" alone
// stands for any lines, and so does the rest of a line after " …". A comment before the block
// says what is different:
//
//	<!-- run: varies -->  what is printed has noise that nobody can repeat: only the exit code is looked at
//	<!-- run: slow -->    it takes long, and is run where SOTTO_DOCS=all
//	<!-- run: exit 1 -->  the last command of the block ends with this exit code
//
// With -update lines that are not printed any more become those printed that begin with the same words.
func TestDocs(t *testing.T) {
	if testkit.Race {
		t.Skip("what the pages show is simulation, slow under the race detector")
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sessions := sessionsOf(string(text))
		if len(sessions) == 0 {
			continue
		}
		page, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			lines, renewed := strings.Split(string(text), "\n"), false
			for _, s := range sessions {
				if s.slow && os.Getenv("SOTTO_DOCS") != "all" {
					continue
				}
				for i, c := range s.commands {
					commands++
					var out bytes.Buffer
					code := run(context.Background(), wordsOf(c.text)[1:],
						streams{in: strings.NewReader(""), out: &out, err: &out})
					want := exitOK
					if i == len(s.commands)-1 {
						want = s.exit
					}
					if code != want {
						t.Errorf("line %d: %s: exit code %d, want %d:\n%s", c.line, c.text, code,
							want, out.String())
					}
					// elsewhere logarithms differ in last bits, and few of them change a run
					if s.varies || runtime.GOARCH != "amd64" {
						continue
					}
					if *update {
						renewed = c.renew(lines, out.String()) || renewed
					}
					c.compare(t, out.String())
				}
			}
			if renewed {
				if err := os.WriteFile(page, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if commands < 20 {
		t.Errorf("only %d commands were found", commands)
	}
}

// A session is a block of commands with what they print.
type session struct {
	varies, slow bool
	exit         int
	commands     []shown
}

type shown struct {
	line   int // of the page
	text   string
	output []string
}

var (
	marker   = regexp.MustCompile(`^<!-- run: (.*) -->$`)
	exitWord = regexp.MustCompile(`\bexit (\d+)`)
)

func sessionsOf(text string) []session {
	var all []session
	next, inside := session{}, false
	end := func() {
		if inside {
			all = append(all, next)
			next, inside = session{}, false
		}
	}
	for i, line := range strings.Split(text, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		command, isCommand := strings.CutPrefix(code, "$ ")
		switch {
		case indented && isCommand && strings.HasPrefix(command, "sotto "):
			inside = true
			next.commands = append(next.commands, shown{line: i + 1, text: command})
		case inside && (indented || line == ""):
			last := &next.commands[len(next.commands)-1]
			last.output = append(last.output, code)
		default:
			end()
			if m := marker.FindStringSubmatch(line); m != nil {
				next = session{slow: strings.Contains(m[1], "slow"), varies: strings.Contains(m[1], "varies")}
				if n := exitWord.FindStringSubmatch(m[1]); n != nil {
					next.exit, _ = strconv.Atoi(n[1])
				}
			}
		}
	}
	end()
	return all
}

// compare looks for the lines that are shown among those that were printed.
func (c shown) compare(t *testing.T, printed string) {
	lines := strings.Split(printed, "\n")
	at, free := 0, true // free: lines may be left out here. Progress comes first
	for _, want := range c.output {
		want = strings.TrimRight(want, " ")
		if want == "" || want == "…" {
			free = free || want == "…"
			continue
		}
		same := func(got string) bool {
			if begin, ok := strings.CutSuffix(want, " …"); ok {
				return strings.HasPrefix(squeeze(got), squeeze(begin))
			}
			return squeeze(got) == squeeze(want)
		}
		for !free && at < len(lines) && strings.TrimSpace(lines[at]) == "" {
			at++
		}
		found := slices.IndexFunc(lines[at:], same)
		if found < 0 || found > 0 && !free {
			t.Errorf("line %d: %s: does not print, at this place,\n%s\nbut\n%s", c.line, c.text, want, printed)
			return
		}
		at += found + 1
		free = false
	}
}

// renew makes lines of the page, and what is shown, what was printed: the line that begins with the most of the same
// words, cut where what was shown was.
func (c shown) renew(lines []string, printed string) (changed bool) {
	left := strings.Split(printed, "\n") // what is printed below the line before
	for i, want := range c.output {
		text, cut := strings.CutSuffix(strings.TrimRight(want, " "), " …")
		words := strings.Fields(text)
		if len(words) == 0 || text == "…" {
			continue
		}
		best, most, at := "", 0, 0
		for j, line := range left {
			n := 0
			for w := range strings.FieldsSeq(line) {
				if n == len(words) || w != words[n] {
					break
				}
				n++
			}
			if n > most || n == most && squeeze(line) == squeeze(text) {
				best, most, at = line, n, j+1
			}
		}
		left = left[at:]
		if cut {
			best = regexp.MustCompile(fmt.Sprintf(`^\s*(?:\S+\s*){0,%d}`, len(words))).FindString(best)
			best = strings.TrimRight(best, " ") + " …"
		}
		if most > 0 && squeeze(best) != squeeze(want) {
			c.output[i], lines[c.line+i], changed = best, "    "+best, true
		}
	}
	return changed
}

// squeeze makes every space one space: columns are narrower where rows have been left out.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

const addingPage = "../docs/adding-a-policy.md"

// codeBlocks are the parts of a page that are indented by four spaces, without these.
func codeBlocks(text string) []string {
	var out []string
	for _, block := range regexp.MustCompile(`(?m)(?:^    .*\n|^\n)+`).FindAllString(text, -1) {
		out = append(out, strings.TrimSpace(regexp.MustCompile(`(?m)^    `).ReplaceAllString(block, "")))
	}
	return out
}
