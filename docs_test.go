package sotto_test

import (
	"encoding/csv"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// read is a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages are all pages of the repository, without what runs have written or npm has installed.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (path == "results" || d.Name() == "node_modules" ||
			path != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("%d pages: %v", len(all), err)
	}
	return all
}

// Links between pages lead somewhere: to a file that there is and, after #, to one of its headings.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
				continue
			}
			if heading != "" && !slices.Contains(anchors(read(t, target)), heading) {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
	}
}

// Files of the code that pages name are there; what has changed names what was.
func TestFilesOnPages(t *testing.T) {
	name, found := regexp.MustCompile("`([a-z]+(?:/[a-z0-9_]+)+\\.go)`"), 0
	for _, path := range pages(t) {
		if path == "CHANGELOG.md" {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(read(t, path), -1) {
			found++
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s: %v", path, m[1], err)
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d names of files were found", found)
	}
}

// anchors are a page's headings as links have them.
func anchors(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\pL\pN\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(plain, " ", "-"))
	}
	return out
}

// The README is a screen and a half, and leads to the index, which leads to every page of docs; CI takes the
// tests' command from it.
func TestReadme(t *testing.T) {
	text := read(t, "README.md")
	if n := strings.Count(text, "\n"); n > 65 {
		t.Errorf("README.md has %d lines: what a page says goes there", n)
	}
	if len(regexp.MustCompile(`(?m)^    go test .*$`).FindAllString(text, -1)) != 1 {
		t.Error("README.md must have one line with the tests' command")
	}
	if !strings.Contains(text, "(docs/README.md)") {
		t.Error("README.md does not lead to docs/README.md")
	}
	index := read(t, "docs/README.md")
	for _, path := range pages(t) {
		if name := filepath.Base(path); filepath.Dir(path) == "docs" && name != "README.md" &&
			!strings.Contains(index, "]("+name+"): ") {
			t.Errorf("docs/README.md does not lead to %s with a sentence", path)
		}
	}
}

// The page of examples has each file and directory of theirs, and no other.
func TestExamplesPage(t *testing.T) {
	text := read(t, "examples/README.md")
	var named []string
	for _, m := range regexp.MustCompile("`([a-z0-9-]+(?:\\.(?:yaml|csv|txt|py)|/))`").FindAllStringSubmatch(text, -1) {
		named = append(named, strings.TrimSuffix(m[1], "/"))
	}
	files, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != "README.md" && !slices.Contains(named, f.Name()) {
			t.Errorf("examples/README.md does not name %s", f.Name())
		}
	}
	for _, name := range named {
		if _, err := os.Stat(filepath.Join("examples", name)); err != nil {
			t.Error(err)
		}
	}
}

// A made block is one of a page that a test writes: its name, its text, and the command that writes it.
func made(t *testing.T, path, name, command, want string) {
	t.Helper()
	page := read(t, path)
	begin, end := fmt.Sprintf("<!-- %s: %s -->\n", name, command), fmt.Sprintf("<!-- end of %s -->", name)
	head, rest, ok := strings.Cut(page, begin)
	is, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Errorf("%s has no place for %s", path, name)
	case is == want:
	case *update:
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: %s are not what they are made of: %s", path, name, command)
	}
}

// The lists of docs/sources.md are made from docs/sotto.bib: who, what, where, when, and what it is used for; of five
// also the key by which comments cite them, and the number that machines know.
func TestBibliography(t *testing.T) {
	var five, list strings.Builder
	field := regexp.MustCompile(`(?m)^  (\w+) = \{+(.*?)\}+,?$`)
	entries := strings.Split(read(t, "docs/sotto.bib"), "\n\n")
	for _, entry := range entries {
		of := map[string]string{}
		for _, m := range field.FindAllStringSubmatch(entry, -1) {
			of[m[1]] = m[2]
		}
		authors := strings.Split(of["author"], " and ")
		for i, a := range authors {
			if last, first, ok := strings.Cut(a, ", "); ok {
				authors[i] = first + " " + last
			}
		}
		if of["title"] == "" || of["author"] == "" || of["year"] == "" {
			t.Errorf("docs/sotto.bib has an entry without author, title or year:\n%s", entry)
			continue
		}
		who := authors[0]
		if n := len(authors); n > 1 {
			who = strings.Join(authors[:n-1], ", ") + " and " + authors[n-1]
		}
		where := []string{who, "*" + of["title"] + "*"}
		for _, name := range []string{"school", "journal", "booktitle", "publisher", "note"} {
			if of[name] != "" && name == "journal" && of["volume"] != "" {
				of[name] += " " + of["volume"]
			}
			if of[name] != "" {
				where = append(where, of[name])
			}
		}
		line := strings.Join(append(where, of["year"]), ", ")
		if of["use"] != "" {
			line += ": " + of["use"]
		}
		if of["ours"] != "" {
			fmt.Fprintf(&five, "- [%s], %s: %s\n", of["cited"], of["ours"], line)
			continue
		}
		list.WriteString("- " + line + "\n")
	}
	if len(entries) < 100 {
		t.Errorf("only %d sources were found", len(entries))
	}
	const command = "go test . -run Bibliography -update"
	made(t, "docs/sources.md", "five", command, five.String())
	made(t, "docs/sources.md", "sources", command, list.String())
}

// A shown file, or declarations of one, is what the file has: examples without the comment before them, Go from one
// declaration to another.
//
//	<!-- file: examples/quickstart.yaml -->
//	<!-- code: policy/example_add_test.go PrivateCommit Next -->
func TestShown(t *testing.T) {
	place, found := regexp.MustCompile(`(?m)^<!-- (file|code): ((\S+)(?: (\S+) (\S+))?) -->$`), 0
	for _, path := range pages(t) {
		for _, m := range place.FindAllStringSubmatch(read(t, path), -1) {
			found++
			text := read(t, m[3])
			if m[1] == "code" {
				text = strings.ReplaceAll(declarations(t, m[3], m[4], m[5]), "\t", "    ")
			}
			text = strings.TrimSpace(regexp.MustCompile(`\A(?:#.*\n)+`).ReplaceAllString(text, ""))
			text = regexp.MustCompile(`(?m)^(.+)$`).ReplaceAllString(text, "    $1")
			made(t, path, m[1], m[2], "\n"+text+"\n\n")
		}
	}
	if found < 5 {
		t.Errorf("only %d files are shown", found)
	}
}

// declarations are a file's text from the comment of one declaration to the end of another.
func declarations(t *testing.T, path, from, to string) string {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := -1, -1
	for _, d := range f.Decls {
		var name string
		var doc *ast.CommentGroup
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, doc = d.Name.Name, d.Doc
		case *ast.GenDecl:
			if of, ok := d.Specs[0].(*ast.TypeSpec); ok {
				name, doc = of.Name.Name, d.Doc
			}
		}
		if name == from && begin < 0 && doc != nil {
			begin = set.Position(doc.Pos()).Offset
		}
		if name == to && begin >= 0 && end < 0 {
			end = set.Position(d.End()).Offset
		}
	}
	if begin < 0 || end < begin {
		t.Fatalf("%s has no %s with a comment, and %s after it", path, from, to)
	}
	return read(t, path)[begin:end]
}

// wholes are the pages that commands write whole; all others are by hand but for what their comments say is made.
var wholes = map[string]string{
	"commands.md":     "go test ./cli -run CommandsPage -update",
	"policies.md":     "go test ./catalog -run PoliciesPage -update",
	"cube.md":         "go test ./catalog -run CubePage -update",
	"api.md":          "go test ./live/serve/api -run APIPage -update",
	"declaration.md":  "go test ./live/decl -run DeclarationPage -update",
	"reproduction.md": "sotto reproduce --preset paper --data DIR --markdown docs/reproduction.md",
}

// handKB is how many kilobytes of docs are by hand at most, which may only fall.
const handKB = 263

// What is written by hand is to be read by people: so much, and no more. Comments are not counted, nor what commands
// print below them, which go test ./cli -run Docs compares and writes.
func TestDocsSize(t *testing.T) {
	blocks := regexp.MustCompile(`(?s)<!-- (?:classes|code|file|five|floors|made|made slow|peers|sources|verdicts|widths)(?:: [^\n]*)? -->\n.*?<!-- end of \w+ -->|` +
		`<!-- (?:keys|instances) of \w+ -->(.*?)<!-- end -->`)
	comments := regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	hand, by := 0, map[string]int{}
	for _, path := range pages(t) {
		if filepath.Dir(path) != "docs" {
			continue
		}
		text, name := read(t, path), filepath.Base(path)
		command, whole := wholes[name]
		if whole {
			by[command] += len(text)
			continue
		}
		rest := blocks.ReplaceAllStringFunc(text, func(m string) string {
			first, _, _ := strings.Cut(m, "\n")
			by[strings.Trim(first, "<>!- ")] += len(m)
			return ""
		})
		printed := outputs(rest)
		by["go test ./cli -run Docs -update"] += printed
		n := len(comments.ReplaceAllString(rest, "")) - printed
		t.Logf("%-20s %6d bytes by hand of %6d", name, n, len(text))
		hand += n
	}
	made := 0
	for _, command := range slices.Sorted(maps.Keys(by)) {
		t.Logf("%6d bytes made: %s", by[command], command)
		made += by[command]
	}
	t.Logf("%d KB by hand, %d KB made", hand/1000, made/1000)
	if hand > handKB*1000 {
		t.Errorf("docs have %d KB by hand, must be at most %d: join or remove as much as you add", hand/1000, handKB)
	}
}

// outputs are the bytes of a page that commands print in its sessions, but for those whose noise nobody can repeat.
func outputs(text string) (n int) {
	inside, varies := false, false
	for line := range strings.Lines(text) {
		code := strings.HasPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "<!-- run: "):
			varies = strings.Contains(line, "varies")
		case strings.HasPrefix(line, "    $ sotto "):
			inside = true
		case inside && code && !varies:
			n += len(line)
		case !code && line != "\n":
			inside, varies = false, false
		}
	}
	return n
}

// Comments of public packages cite by authors and year, and what they cite is in the bibliography.
func TestCitations(t *testing.T) {
	page, _, _ := strings.Cut(read(t, "docs/sources.md"), "\n## ")
	known := map[string]bool{} // the first author's family name and the year
	for _, m := range regexp.MustCompile(`author = \{+(.*?)\}+,\n.*\n  year = \{(\d+)\}`).FindAllStringSubmatch(
		read(t, "docs/sotto.bib"), -1) {
		first, _, _ := strings.Cut(m[1], " and ")
		known[first[strings.LastIndex(first, " ")+1:]+" "+m[2]] = true
	}
	var (
		bare = regexp.MustCompile(`\b00[0-4](?:'s)? (?:§|\(\d|Theorem|Lemma|Algorithm|Prop|Cor|Def|App|` +
			`Fig|Table|Remark|[Cc]hapter|[Ss]ection)`)
		key  = regexp.MustCompile(`\[([^\[\]]*? (?:19|20)\d\d)(?:, [^\]]*)?\]`)
		name = `\p{Lu}[\pL’'-]+`
		year = regexp.MustCompile(`(` + name + `)(?:(?:, ` + name + `)*,? and ` + name +
			`| et al\.),? \(?((?:19|20)\d\d)\b`)
	)
	cited := 0
	for _, p := range list(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if dir == "" || !public(dir) {
			continue
		}
		for path, text := range comments(t, dir) {
			for _, s := range bare.FindAllString(text, -1) {
				t.Errorf("%s cites %q: name authors and year, as docs/sources.md does", path, s)
			}
			for _, m := range key.FindAllStringSubmatch(text, -1) {
				cited++
				if !strings.Contains(page, "["+m[1]+"]") {
					t.Errorf("%s cites [%s], which docs/sources.md does not have", path, m[1])
				}
			}
			for _, m := range year.FindAllStringSubmatch(text, -1) {
				cited++
				if !known[m[1]+" "+m[2]] {
					t.Errorf("%s cites %q, which docs/sotto.bib does not have", path, m[0])
				}
			}
		}
	}
	if cited < 300 {
		t.Errorf("only %d citations were found", cited)
	}
}

// What people read names sources by authors and year: numbers are for machines, the arguments of
// `sotto reproduce` and a column of claims.csv. So no text, comment, page or script has them. The
// keys of settings are left out: hashes that are published are of them.
func TestSourcesAreNamed(t *testing.T) {
	var (
		grouped = regexp.MustCompile(`\b\d{1,3}(?:[\p{Z}]\d{3})+\b`) // 20 000
		anID    = regexp.MustCompile(`(?:reproduce|such as|--source) 00[0-4]|000 to 004|^00[0-4]$|^DP-SE of 002$`)
		number  = regexp.MustCompile(`(?:^|[^\pL\d.,_/"-])00[0-4](?:[^\pL\d._/"%-]|\.\D|\.?$)`)
	)
	check := func(path, text string) {
		for _, line := range strings.Split(text, "\n") {
			if s := number.FindString(anID.ReplaceAllString(grouped.ReplaceAllString(line, ""), "")); s != "" {
				t.Errorf("%s: %q in %q: name authors and year, as docs/sources.md does", path, s, line)
			}
		}
	}
	for _, text := range []string{"000 Theorem 4.24", "by (002 Algorithm 9)", "that of 002.", "004's"} {
		if !number.MatchString(text) {
			t.Errorf("%q passes", text)
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); name != "." && strings.HasPrefix(name, ".") || name == "node_modules" {
				return filepath.SkipDir
			}
		case path == "docs_test.go":
		case path == "docs/sources.md":
			// the table before
			_, after, _ := strings.Cut(read(t, path), "\nOthers that the code rests on")
			check(path, after)
		case path == "docs/claims.csv":
			rows, err := csv.NewReader(strings.NewReader(read(t, path))).ReadAll()
			if err != nil {
				return err
			}
			for _, row := range rows {
				check(path, row[2]+"\n"+row[3])
			}
		case filepath.Ext(path) == ".go":
			f, err := parser.ParseFile(token.NewFileSet(), path, nil,
				parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, g := range f.Comments {
				check(path, strings.Join(strings.Fields(g.Text()), " "))
			}
			for _, text := range literals(f) {
				check(path, text)
			}
		case filepath.Ext(path) == ".yaml":
			check(path, strings.Join(regexp.MustCompile(`#.*`).FindAllString(read(t, path), -1), "\n"))
		case slices.Contains([]string{".md", ".txtar", ".html"}, filepath.Ext(path)):
			check(path, read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// literals are the texts of a file, those that are joined by + as one.
func literals(f *ast.File) []string {
	var all []string
	ast.Inspect(f, func(n ast.Node) bool {
		text, ok := written(n)
		if ok {
			all = append(all, text)
		}
		return !ok
	})
	return all
}

// written is the text that a node is.
func written(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			text, err := strconv.Unquote(n.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		x, _ := written(n.X)
		y, ok := written(n.Y)
		if !ok {
			return "", false
		}
		return x + y, x != ""
	}
	return "", false
}

// comments are the comments of a package's files without tests, each in one line.
func comments(t *testing.T, dir string) map[string]string {
	t.Helper()
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range p.GoFiles {
		path := filepath.Join(dir, name)
		f, err := parser.ParseFile(token.NewFileSet(), path, nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, g := range f.Comments {
			text.WriteString(strings.Join(strings.Fields(g.Text()), " ") + "\n")
		}
		all[path] = text.String()
	}
	return all
}

// public says whether others can import the package.
func public(name string) bool {
	return !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "docs/") &&
		!strings.HasPrefix(name, "examples/") &&
		!strings.HasPrefix(name+"/", "internal/") &&
		!strings.Contains(name, "/internal/")
}

// A package's comment is in the file named after it, and in no other.
func TestPackageComments(t *testing.T) {
	for _, p := range list(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		files, err := build.ImportDir(filepath.Join(".", dir), 0)
		if err != nil {
			t.Fatal(err)
		}
		want := files.Name + ".go"
		if files.Name == "main" && !slices.Contains(files.GoFiles, filepath.Base(dir)+".go") {
			want = "main.go"
		} else if files.Name == "main" {
			want = filepath.Base(dir) + ".go"
		}
		for _, name := range files.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil,
				parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if (f.Doc != nil) != (name == want) {
				t.Errorf("%s/%s: the package comment belongs in %s", dir, name, want)
			}
		}
		if !slices.Contains(files.GoFiles, want) {
			t.Errorf("%s has no %s with the package comment", dir, want)
		}
	}
}

// packageName is a package on the page that says what is promised.
var packageName = regexp.MustCompile("`([a-z]+(?:/[a-z]+)*)`")

// Every public package is on the page that says what is promised of it, and no other.
func TestStabilityPage(t *testing.T) {
	page := read(t, "docs/stability.md")
	_, promised, found := strings.Cut(page, "\n## Packages\n")
	promised, _, _ = strings.Cut(promised, "\n## ")
	var named, known []string
	for _, m := range packageName.FindAllStringSubmatch(promised, -1) {
		named = append(named, m[1])
	}
	for _, p := range list(t) {
		if name := strings.TrimPrefix(p.ImportPath, module+"/"); name != module && public(name) {
			known = append(known, name)
		}
	}
	slices.Sort(named)
	slices.Sort(known)
	if !found || !slices.Equal(named, known) {
		t.Errorf("docs/stability.md has the packages\n%v, must have each public one once:\n%v", named, known)
	}
}
