package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// TestDocsTrue runs the commands behind the numbers of README.md and docs. A comment of its own line stands before the
// paragraph, item or table that it is of, and each number there must be among those that the command prints, rounded as
// the page has it:
//
//	<!-- true: sotto run examples/quickstart.yaml -->
//
// A number of the command itself is given, and needs not be printed. Words before the colon say what is different:
// "slow" commands run with SOTTO_TRUE=all (make docs-true), or the page's name, and "only 129 12" has these numbers looked at, and not
// the rest. Several comments may stand before a block: a number must be in what any of them prints.
//
// A block between "made" and "end of made" is what its command prints, to the letter; -update writes it:
//
//	<!-- made slow: sotto run examples/grid.yaml --out $OUT/g >/dev/null; awk -f docs/grid.awk $OUT/g/summary.csv -->
//	<!-- end of made -->
//
// Numbers of prose and tables without a command are counted by page; testdata/untrue.csv has how many there may be, and
// that may only fall: -update writes lower counts, and those of new pages.
func TestDocsTrue(t *testing.T) {
	if testkit.Race {
		t.Skip("what the pages show is simulation, slow under the race detector")
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	limits, counts := readUntrue(t), map[string]int{}
	shell := newShell(t)
	checked, caught, tried := 0, 0, 0
	for _, path := range append([]string{"../README.md"}, pages...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		if path == "../README.md" {
			name = "../" + name
		}
		if slices.Contains([]string{"api.md", "commands.md", "cube.md", "declaration.md", "policies.md", "reproduction.md"}, name) {
			continue // made of the code, and held against it
		}
		made := printedBlock.ReplaceAllStringFunc(string(text), func(was string) string {
			m := printedBlock.FindStringSubmatch(was)
			if of := os.Getenv("SOTTO_TRUE"); m[1] != "" && of != "all" && of != name {
				return was
			}
			out, err := shell.run(t, m[2])
			if err != nil {
				t.Errorf("%s: %s: %v\n%s", name, m[2], err, out)
				return was
			}
			return "<!-- made" + m[1] + ": " + m[2] + " -->\n" + out + "<!-- end of made -->"
		})
		switch {
		case made == string(text):
		case *update:
			if err := os.WriteFile(path, []byte(made), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s: a block is not what its command prints: go test ./cli -run DocsTrue -update", name)
		}
		for _, b := range blocksOf(made) {
			open := b.numbers
			if len(b.truths) > 0 {
				open = nil
			}
			var printed []float64
			given, ran := map[string]bool{}, false
			for _, c := range b.truths {
				if len(c.only) > 0 {
					open = slices.DeleteFunc(slices.Clone(b.numbers), func(n string) bool { return slices.Contains(c.only, n) })
				}
				for _, n := range number.FindAllString(plain(c.command), -1) {
					given[n] = true
					given[strconv.FormatFloat(100*value(n), 'g', 6, 64)] = true // in per cent
				}
				if of := os.Getenv("SOTTO_TRUE"); c.slow && of != "all" && of != name {
					continue
				}
				began := time.Now()
				out, err := shell.run(t, c.command)
				if err != nil {
					t.Errorf("%s:%d: %s: %v\n%s", name, b.line, c.command, err, out)
					continue
				}
				t.Logf("%s:%d: %s (%v)", name, b.line, c.command, time.Since(began).Round(time.Second/10))
				ran = true
				for _, n := range number.FindAllString(plain(out), -1) {
					printed = append(printed, value(n))
				}
			}
			counts[name] += len(open)
			if !ran {
				continue
			}
			for _, n := range b.numbers {
				if given[n] || slices.Contains(open, n) {
					continue
				}
				checked++
				if !among(n, value(n), printed) {
					t.Errorf("%s:%d: %s is not among what its command prints", name, b.line, n)
				}
				tried++ // a number that is off by one in its last digit must be found out
				if !among(n, value(n)+unit(n), printed) {
					caught++
				}
			}
		}
	}
	t.Logf("%d numbers checked; of as many that are off by one in the last digit %d are found out", checked, caught)
	if tried < 10 || caught*10 < tried*6 {
		t.Errorf("of %d wrong numbers %d are found out", tried, caught)
	}
	total := 0
	for _, name := range sortedKeys(counts) {
		limit, known := limits[name]
		total += counts[name]
		t.Logf("%-22s %4d numbers without a command", name, counts[name])
		switch {
		case *update && (!known || counts[name] < limit):
			limits[name] = counts[name]
		case !known:
			t.Errorf("%s is new: go test ./cli -run DocsTrue -update", name)
		case counts[name] > limit:
			t.Errorf("%s has %d numbers without a command, and had %d: say the command (true_test.go)", name, counts[name], limit)
		}
	}
	t.Logf("%d numbers without a command in all", total)
	if *update {
		writeUntrue(t, limits)
	}
}

const untrue = "testdata/untrue.csv"

func readUntrue(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(untrue)
	if os.IsNotExist(err) {
		return map[string]int{}
	}
	rows, err2 := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	limits := map[string]int{}
	for _, row := range rows[1:] {
		if limits[row[0]], err = strconv.Atoi(row[1]); err != nil {
			t.Fatal(err)
		}
	}
	return limits
}

func writeUntrue(t *testing.T, limits map[string]int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("page,numbers\n")
	for _, name := range sortedKeys(limits) {
		fmt.Fprintf(&b, "%s,%d\n", name, limits[name])
	}
	if err := os.WriteFile(untrue, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func sortedKeys(m map[string]int) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// A told block is a paragraph, an item or a table of a page, with the commands that its numbers are from.
type told struct {
	line    int
	numbers []string
	truths  []truth
}

// A truth is a command, whether it takes long, and which of the block's numbers it is for if not for all.
type truth struct {
	slow    bool
	only    []string
	command string
}

var (
	truthMark    = regexp.MustCompile(`^<!-- true( slow)?(?: only ([^:]*))?: (.*) -->$`)
	comment      = regexp.MustCompile(`(?s)<!--.*?-->`)
	madeBlock    = regexp.MustCompile(`(?s)<!-- (?:classes|code|file|five|floors|made|made slow|peers|sources|verdicts|widths)(?:: [^\n]*)? -->\n.*?<!-- end of \w+ -->|<!-- (?:keys|instances) of \w+ -->.*?<!-- end -->`)
	printedBlock = regexp.MustCompile(`(?s)<!-- made( slow)?: ([^\n]*) -->\n(.*?)<!-- end of made -->`)
	// A number of prose: not of a name, a version, a heading's place or an exponent.
	number = regexp.MustCompile(`(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e[+-]?[0-9]+)?`)
	// What has digits and no figure: code, links, sources with their years, names with digits.
	notFigures = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|https?://\\S+|\\[[^\\]]*(?:19|20)\\d\\d[^\\]]*\\]|arXiv:\\S+|\\p{L}[\\p{L}\\d-]*\\d[\\d.\\p{L}-]*|" +
		"10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|2[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|\\b(?:19|20)\\d\\d\\b|^ *\\d+\\. ")
)

// plain is a text with numbers as machines write them: 10 000 000 and 10,000,000 are one, and a minus is a hyphen.
func plain(s string) string {
	grouped := regexp.MustCompile(`\b(\d{1,3})((?:[\x{00a0}\x{202f}_ ]\d{3})+)\b`)
	return grouped.ReplaceAllStringFunc(s, func(m string) string {
		return strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "_", "").Replace(m)
	})
}

func value(n string) float64 {
	x, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// unit is one in the last digit of a number.
func unit(n string) float64 {
	mantissa, exponent, _ := strings.Cut(n, "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent)
	return math.Pow(10, float64(e-len(decimals)))
}

// among says whether x, written as n is, is what one of the numbers is when it is rounded to as many digits.
func among(n string, x float64, printed []float64) bool {
	half := unit(n) / 2
	return slices.ContainsFunc(printed, func(p float64) bool { return math.Abs(p-x) <= half*(1+1e-9) })
}

// blocksOf are the blocks of a page: what an indent of four or a fence has is code, which TestDocs has.
func blocksOf(text string) (all []told) {
	text = madeBlock.ReplaceAllStringFunc(text, func(m string) string { return strings.Repeat("\n", strings.Count(m, "\n")) })
	var next told
	var body strings.Builder
	end := func() {
		if body.Len() > 0 {
			prose := comment.ReplaceAllString(body.String(), "")
			var lines []string
			for line := range strings.Lines(prose) {
				lines = append(lines, notFigures.ReplaceAllString(line, " "))
			}
			next.numbers = number.FindAllString(plain(strings.Join(lines, "")), -1)
			all = append(all, next)
		}
		next = told{}
		body.Reset()
	}
	fenced, code, item := false, false, false
	for i, line := range strings.Split(text, "\n") {
		m := truthMark.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "#"):
		case m != nil:
			end2 := body.Len() > 0
			if end2 {
				end()
			}
			next.truths = append(next.truths, truth{slow: m[1] != "", only: strings.Fields(m[2]), command: m[3]})
		case strings.TrimSpace(line) == "":
			if body.Len() > 0 {
				end()
			}
			code = false
		case strings.HasPrefix(line, "    ") && (code || !item && body.Len() == 0 || strings.HasPrefix(strings.TrimSpace(line), "$ ")):
			code = true
		default:
			isItem := strings.HasPrefix(line, "- ") || regexp.MustCompile(`^\d+\. `).MatchString(line)
			if isItem && body.Len() > 0 {
				end()
			}
			item = isItem || item && strings.HasPrefix(line, "  ")
			if body.Len() == 0 {
				next.line = i + 1
			}
			body.WriteString(line + "\n")
		}
	}
	end()
	return all
}

// A shell runs commands with sotto at hand, each of them once.
type shellOf struct {
	dir string
	ran map[string]string
}

func newShell(t *testing.T) *shellOf {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	return &shellOf{ran: map[string]string{}}
}

// run is what a command prints, at the root of the repository.
func (s *shellOf) run(t *testing.T, command string) (string, error) {
	t.Helper()
	if s.dir == "" {
		s.dir = t.TempDir()
		self, err := os.Executable() // which is sotto under that name (TestMain)
		if err == nil {
			err = os.Symlink(self, filepath.Join(s.dir, "sotto"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, ok := s.ran[command]; ok {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Dir = ".."
	c.Env = append(os.Environ(), "PATH="+s.dir+string(os.PathListSeparator)+os.Getenv("PATH"), "OUT="+t.TempDir())
	out, err := c.CombinedOutput()
	if err == nil {
		s.ran[command] = string(out)
	}
	return string(out), err
}
