package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/net/html"
)

// missing ends a test for which something is missing: it is skipped, and fails where CI is set.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s; where CI is set nothing is skipped", what)
	}
	t.Skip(what)
}

// needsSearch ends a test where pagefind is missing.
func needsSearch(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("node_modules/pagefind"); err != nil {
		missing(t, "run npm ci in deploy/site: pagefind is not there")
	}
}

// The site of this tree is built, which checks its links and weights. Then a newcomer finds answers in it, programs
// find its Markdown, and a browser goes through it.
func TestSite(t *testing.T) {
	needsSearch(t)
	dir := filepath.Join(t.TempDir(), "site")
	if err := run(t.Context(), []string{"-out", dir}); err != nil {
		t.Fatal(err)
	}
	site := os.DirFS(dir)
	docs, err := documents(site)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("questions", func(t *testing.T) { newcomer(t, site, docs) })
	t.Run("parts", func(t *testing.T) { parts(t, site, docs) })
	t.Run("browser", func(t *testing.T) { browse(t, dir) })
}

// questions are a newcomer's, each with the place of its answer and words that it must have.
var questions = []struct{ asks, place, words string }{
	{"Which policy?", "docs/guide.html#which-policy", "dp-imed"},
	{"Which ε?", "docs/guide.html#choosing-ε", `odds|factor|e\^`},
	{"What is promised to whom?", "docs/privacy.html#what-is-protected-and-what-is-not", "reward"},
	{"How do I start?", "docs/serve.html#start", "sotto serve"},
	{"How do I run a private A/B test?", "docs/abtest.html#a-test-with-fixed-shares", "plan live"},
	{"How do I add a policy?", "docs/adding-a-policy.html#the-policy", "func New"},
	{"Where is the proof?", "docs/policies.html#k-arms", "Theorem|Lemma|Proposition"},
}

// newcomer follows links of texts, and of lists of a page's headings, but not the sidebar, which leads everywhere.
func newcomer(t *testing.T, site fs.FS, docs map[string]*document) {
	for _, q := range questions {
		if n := clicks(docs, q.place); n < 0 || n > 2 {
			t.Errorf("%q is answered at %s, which is %d clicks from the README, must be at most 2", q.asks, q.place, n)
		}
		file, anchor, _ := strings.Cut(q.place, "#")
		if text := below(t, site, file, anchor); !regexp.MustCompile(q.words).MatchString(text) {
			t.Errorf("%q is answered at %s, which has no %s", q.asks, q.place, q.words)
		}
	}
	// Clicks are counted: a place that is three away is not said to be nearer, and one that nothing leads to is nowhere.
	chain := map[string]*document{"index.html": {text: []string{"a.html"}}, "a.html": {text: []string{"b.html", "#x"}},
		"b.html": {text: []string{"#y"}}}
	for place, want := range map[string]int{"a.html": 1, "a.html#x": 2, "b.html": 2, "b.html#y": 3, "c.html": -1} {
		if n := clicks(chain, place); n != want {
			t.Errorf("%s is %d clicks away, must be %d", place, n, want)
		}
	}
}

// clicks is the number of links from the README to a place, and -1 if there is no way of three.
func clicks(docs map[string]*document, place string) int {
	at, seen := []string{"index.html"}, map[string]bool{}
	for n := range 3 {
		var next []string
		for _, from := range at {
			file, _, _ := strings.Cut(from, "#")
			if docs[file] == nil || seen[file] {
				continue
			}
			seen[file] = true
			for _, link := range docs[file].text {
				to, anchor := target("/", file, link)
				if anchor != "" {
					to += "#" + anchor
				}
				if to == place {
					return n + 1
				}
				next = append(next, to)
			}
		}
		at = next
	}
	return -1
}

// below is the text below a heading, until the next one that is no lower.
func below(t *testing.T, site fs.FS, file, anchor string) string {
	t.Helper()
	b, err := fs.ReadFile(site, file)
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for n := range root.Descendants() {
		if !slices.Contains(n.Attr, html.Attribute{Key: "id", Val: anchor}) {
			continue
		}
		for s := n.NextSibling; s != nil && (len(s.Data) != 2 || s.Data[0] != 'h' || s.Data > n.Data); s = s.NextSibling {
			for d := range s.Descendants() {
				if d.Type == html.TextNode {
					out.WriteString(d.Data)
				}
			}
		}
	}
	return out.String()
}

// Four kinds of documents are in the sidebar. Each page of them has its Markdown beside it, whose links lead
// somewhere as they are, and is in the list for programs. The explorer is there.
func parts(t *testing.T, site fs.FS, docs map[string]*document) {
	src, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	nav, err := sidebar(src)
	if err != nil || len(nav) != 4 {
		t.Fatalf("%d kinds of documents, must be 4: %v", len(nav), err)
	}
	list, err := fs.ReadFile(site, llms)
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^):#\s]+)[)#]`)
	for _, s := range nav {
		for _, it := range s.Items {
			if docs[it.Path] == nil || it.About == "" {
				t.Errorf("%s is no page with a sentence", it.Path)
			}
			if !bytes.Contains(list, []byte("("+it.source+"): ")) {
				t.Errorf("%s does not have %s", llms, it.source)
			}
			b, err := fs.ReadFile(site, it.source)
			if err != nil {
				t.Error(err)
			}
			for _, m := range link.FindAllSubmatch(b, -1) {
				to := path.Join(path.Dir(it.source), string(m[1]))
				if _, err := fs.Stat(site, to); err != nil && to != explorerPicture {
					t.Errorf("%s links to %s: %v", it.source, m[1], err)
				}
			}
		}
	}
	for _, name := range []string{"docs/explorer/sotto.wasm.gz", "docs/explorer/wasm_exec.js", "pagefind/pagefind.js", notFound} {
		if _, err := fs.Stat(site, name); err != nil {
			t.Error(err)
		}
	}
}

// browse has browser.mjs go through a site.
func browse(t *testing.T, dir string) {
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && chromium == "" {
			chromium = found
		}
	}
	if chromium == "" {
		missing(t, "there is no chromium")
	}
	if _, err := os.Stat("../../cli/testdata/browser/node_modules/playwright-core"); err != nil {
		missing(t, "run npm ci in cli/testdata/browser: what drives the browser is not there")
	}
	c := exec.CommandContext(t.Context(), "node", "browser.mjs")
	c.Env = append(os.Environ(), "SITE="+dir, "CHROMIUM="+chromium)
	c.WaitDelay = 5 * time.Second
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	const want = `the first key press skips to the text
the search finds a section, and leads to it
Escape closes the search
without script there are the list of documents and code in colours
the explorer plays in its page
nothing is too wide, and axe finds nothing
paper has the text alone
an address that is none leads on
`
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%s\nwant\n%s\n%s", err, out, want, errs.String())
	}
}

// small is a repository with all that a site needs.
func small() map[string]string {
	return map[string]string{
		"README.md":              "# Small\n\nIt is small.\n\n[Guide](docs/guide.md#two-words)\n",
		"docs/README.md":         "# Documents\n\n## Start\n\n- [Guide](guide.md): what it says.\n",
		"docs/guide.md":          "# Guide\n\n## Two words\n\nSee [the code](../code/a.go), [all](../code) and [here](#two-words).\n",
		"code/a.go":              "package a\n",
		"internal/look/look.css": "body { margin: 0; }\n",
	}
}

// tree writes a repository.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// built is the site of a repository, without a search.
func built(t *testing.T, files map[string]string) (dir string, err error) {
	t.Helper()
	repo, dir := tree(t, files), t.TempDir()
	e := &edition{version: "v1", commit: "v1", repo: repo}
	if err := e.read(); err != nil {
		return dir, err
	}
	a, err := loadAssets(os.DirFS(repo))
	if err != nil {
		return dir, err
	}
	if err := e.write(dir, "/", a, []*edition{e}); err != nil {
		return dir, err
	}
	_, err = check(dir, "/")
	return dir, err
}

// A link that leads nowhere, and a page that is too heavy, are found, and named.
func TestFaults(t *testing.T) {
	if _, err := built(t, small()); err != nil {
		t.Fatalf("a sound site: %v", err)
	}
	noise := strings.Builder{} // that does not compress
	for i := range 60_000 {
		fmt.Fprintf(&noise, "%x", uint64(i+1)*0x9e3779b97f4a7c15)
	}
	for _, c := range []struct {
		name, file, text string
		is               error
		says             string
	}{
		{"a file", "docs/guide.md", "# Guide\n\n[x](gone.md)\n\n## Two words\n", errDead, `docs/guide.md: link is "gone.md"`},
		{"an anchor", "docs/guide.md", "# Guide\n\n## Other words\n", errDead, `index.html: link is "docs/guide.html#two-words"`},
		{"an anchor of the page", "docs/guide.md", "# Guide\n\n[x](#three)\n\n## Two words\n", errDead, `must be a heading of docs/guide.html`},
		{"a picture", "docs/guide.md", "# Guide\n\n![x](gone.png)\n\n## Two words\n", errDead, `picture is "gone.png"`},
		{"the index", "docs/README.md", "# Documents\n\n## Start\n\n- [Guide](gone.md): x.\n", errDead, "gone.md"},
		{"weight", "docs/guide.md", "# Guide\n\n## Two words\n\n" + noise.String() + "\n", errHeavy, "docs/guide.html is too heavy"},
		{"plain http", "docs/guide.md", "# Guide\n\n[x](http://example.com)\n\n## Two words\n", nil, "must be a file or begin with https://"},
		{"HTML", "docs/guide.md", "# Guide\n\n## Two words\n\n<script>1</script>\n", nil, `HTML is "<script>1</script>", must be`},
		{"no title", "docs/guide.md", "## Two words\n", nil, "heading of the first level is none, must be one"},
		{"no kinds", "docs/README.md", "# Documents\n", nil, "has no section, must have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := small()
			files[c.file] = c.text
			_, err := built(t, files)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, must be %v and say %q", err, c.is, c.says)
			}
		})
	}
}

// Versions are built beside each other, and each page leads to itself in the others, or to their first. A directory
// with files of somebody else's is left as it is, and so is the last site when the next one cannot be built.
func TestVersions(t *testing.T) {
	needsSearch(t)
	files := small()
	repo := tree(t, files)
	git := func(args ...string) {
		t.Helper()
		if _, err := output(t.Context(), repo, "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	git("tag", "v0.1.0")
	write("docs/new.md", "# New\n")
	write("docs/README.md", files["docs/README.md"]+"- [New](new.md): it is new.\n")
	dir := filepath.Join(t.TempDir(), "out", "site")
	args := []string{"-repo", repo, "-out", dir, "-version", "v0.2.0", "-earlier", "v0.1.0"}
	for range 2 { // over nothing, and over an earlier one
		if err := run(t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, has string }{
		{"docs/guide.html", `href="../v0.1.0/docs/guide.html">v0.1.0`},
		{"docs/new.html", `href="../v0.1.0/index.html">v0.1.0`},
		{"v0.1.0/docs/guide.html", `href="../../docs/guide.html">v0.2.0`},
		{"v0.1.0/docs/guide.html", `aria-current="true">v0.1.0`},
		{"v0.1.0/llms.txt", "(docs/guide.md): what it says."},
		{"docs/guide.html", "Sotto v0.2.0 ("},
	} {
		b, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil || !strings.Contains(string(b), c.has) {
			t.Errorf("%s has no %s: %v", c.file, c.has, err)
		}
	}
	write("docs/new.md", "# New\n\n[x](gone.md)\n")
	if err := run(t.Context(), args); !errors.Is(err, errDead) {
		t.Errorf("%v, must be of the link", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "docs/new.html")); err != nil {
		t.Errorf("the last site: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("%v was left beside it: %v", left, err)
	}
	full := t.TempDir()
	for _, name := range []string{"mine", llms} { // others have lists of pages, too
		if err := os.WriteFile(filepath.Join(full, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), []string{"-repo", repo, "-out", full}); !errors.Is(err, errNotEmpty) {
		t.Error(err)
	}
	for _, bad := range [][]string{{"-base", "docs"}, {"-earlier", "../x"}, {"more"}, {"-x"}} {
		if err := run(t.Context(), append([]string{"-repo", repo, "-out", dir}, bad...)); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// Headings have the anchors that hosts of Git give them, also the second of a name.
func TestAnchors(t *testing.T) {
	files := fstest.MapFS{"a.md": {Data: []byte("# T\n\n## Which ε, `now`?\n\n## [One](https://x.y): a_b\n\n## Which ε, `now`?\n")}}
	p, err := reader{repo: files}.read("a.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range p.headings {
		got = append(got, h.ID)
	}
	if want := []string{"which-ε-now", "one-a_b", "which-ε-now-1"}; !slices.Equal(got, want) {
		t.Errorf("%q, must be %q", got, want)
	}
}

// Indented code is known by what it says. Output is not, so that an apostrophe in it colours nothing.
func TestColours(t *testing.T) {
	for _, c := range []struct{ code, language string }{
		{"sotto run x.yaml \\\n  --out 'a b'   # once\n", "bash"},
		{"name: shop\narms: [a, b]\n", "yaml"},
		{"func New(n int) *T {\n\treturn nil\n}\n", "go"},
		{"{\"a\": 1}\n", "json"},
		{"<p>x</p>\n", "html"},
		{"policy  regret\nit's   12\n", ""},
		{"$ sotto list\ndp-imed  it's\n", ""},
	} {
		if got := guess(c.code); got != c.language {
			t.Errorf("%q is %q, must be %q", c.code, got, c.language)
		}
	}
	if got, want := colour("go", "return 1 < 2 // \"x\""), template.HTML(`<pre><code><span class="k">return</span> `+
		`<span class="m">1</span> &lt; <span class="m">2</span> <span class="c">// &#34;x&#34;</span></code></pre>`+"\n"); got != want {
		t.Errorf("%s, must be %s", got, want)
	}
	if got := colour("", strings.Repeat("x", wide+1)); !strings.Contains(string(got), `tabindex="0"`) {
		t.Errorf("%s is not reached by the keyboard", got)
	}
}
