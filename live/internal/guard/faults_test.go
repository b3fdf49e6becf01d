package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// A fault is what a bad merge of two engines may leave: where the text of the first stands in play there is the
// second while the fault is on. A merge that moves the first takes the second with it.
type fault struct{ name, file, was, is string }

// on is a condition of the sources under test: the fault of this name is planted.
func on(name string) string { return fmt.Sprintf("planted == %q", name) }

var faults = []fault{
	// What was released stays in the queue of its arm, and is in the next release too.
	{"a slot twice", "queue.go", "q.Segments = slices.Delete(q.Segments, 0, k)\n\tq.advance(head)",
		`if asked := q.Asked > 0; !(%s && asked) { // of contexts nothing is asked for
			q.Segments = slices.Delete(q.Segments, 0, k)
			q.advance(head)
		} else {
			q.Asked = 0
		}`},
	// A curator is made anew for a release, with another key of its noise.
	{"noise drawn again", "arms.go", "func (l arms) head() (out line) {",
		`func (l arms) head() (out line) {
			if %s {
				_ = l.curate(nil)
			}`},
	// A decision's reward goes with the vector of the one beside it.
	{"a vector from the wrong queue", "contexts.go", "e := &v.s.Events[number-v.s.Arms[0].Head]",
		`e := &v.s.Events[number-v.s.Arms[0].Head]
		if i := (number - v.s.Arms[0].Head) ^ 1; %s && i < len(v.s.Events) {
			e = &v.s.Events[i]
		}`},
	// The first millisecond after a window is of it.
	{"a window off by one", "queue.go", "case now >= t.Deadline || t.Number < q.Head:",
		"case now > t.Deadline || now == t.Deadline && !(%s) || t.Number < q.Head:"},
	// The third line is counted, and nobody is told of it.
	{"a restore that skips a line", "replay.go", "err = add(text)",
		`if !(%s && *taken == 2) {
			err = add(text)
		}`},
	// What is in the queue of an arm that was taken off stays, and the policy goes on asking for it.
	{"a removed arm released", "operate.go", "q.Off, q.Segments, q.lost = true, nil, 0\n\tq.advance(q.Issued)",
		`if %s {
			c.drop = func() {}
		} else {
			q.Off, q.Segments, q.lost = true, nil, 0
			q.advance(q.Issued)
		}`},
}

// switches is compiled into play: which fault is on.
const switches = `package play

import "os"

var planted = os.Getenv("SOTTO_GUARD_FAULT")
`

// plant compiles this test with all faults in play.
func plant(t *testing.T) (binary string) {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs("../../../play")
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{"zz_planted.go": switches}
	for _, f := range faults {
		if text[f.file] == "" {
			b, err := os.ReadFile(filepath.Join(source, f.file))
			if err != nil {
				t.Fatalf("%s is to be planted elsewhere: %v", f.name, err)
			}
			text[f.file] = string(b)
		}
		if n := strings.Count(text[f.file], f.was); n != 1 {
			t.Fatalf("%s is to be planted elsewhere: play/%s has its place %d times", f.name, f.file, n)
		}
		text[f.file] = strings.Replace(text[f.file], f.was, fmt.Sprintf(f.is, on(f.name)), 1)
	}
	over := map[string]string{}
	put := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, s := range text {
		over[filepath.Join(source, name)] = put(name, []byte(s))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": over})
	if err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "guard.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", put("overlay.json", overlay),
		"-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

var counted = regexp.MustCompile(`(\d+) of \d+ traces differ`)

// Each fault is found by some of the first traces, which TestGuard plays at both its sizes, and nothing is where
// none is on.
func TestGuardFindsFaults(t *testing.T) {
	if !testkit.Full() {
		t.Skip("the program is built again with faults: SOTTO_FULL has it")
	}
	const n = 40
	binary := plant(t)
	for _, f := range append([]fault{{}}, faults...) {
		c := exec.Command(binary, "-test.run=^TestGuard$", fmt.Sprint("-guard.n=", n))
		c.Env = append(os.Environ(), "SOTTO_GUARD_FAULT="+f.name)
		out, err := c.CombinedOutput()
		found := 0
		if m := counted.FindSubmatch(out); m != nil {
			found, _ = strconv.Atoi(string(m[1]))
		}
		t.Logf("%q is found by %d of %d traces", f.name, found, n)
		if (f.name == "") != (err == nil) || (f.name == "") != (found == 0) {
			t.Errorf("%q: %v\n%.2000s", f.name, err, out)
		}
	}
}
