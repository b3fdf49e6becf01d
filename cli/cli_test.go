package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sotto": func() { Main() }, "peer": peer,
		"silent": func() { Main(Policies(silent())) }})
}

// silent is a private policy that never releases anything: nothing shows that a copy of it is broken.
func silent() catalog.Entry {
	return catalog.Entry{Name: "silent", Title: "The first arm for ever", Private: true, Anytime: true,
		Budgets: []string{"epsilon"}, Guarantee: "ε-DP", Regret: "linear", Source: "nobody",
		New: func(catalog.Setting, catalog.Params) (policy.Policy, error) { return forever{}, nil }}
}

type forever struct{}

func (forever) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1} }

func (forever) Next(privacy.Released) *policy.Batch {
	return &policy.Batch{Plays: []policy.Play{{Rounds: policy.Forever}}}
}

func TestScripts(t *testing.T) {
	dir, files := "testdata/script", []string(nil)
	if testkit.Race { // of each process the start takes 0.1 s there: those that do several things at once
		dir = ""
		for _, name := range []string{"aggregate", "aggregate-spent", "explore", "interrupt", "run", "serve",
			"shards"} {
			files = append(files, "testdata/script/"+name+".txtar")
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			examples, err := filepath.Abs("../examples")
			e.Setenv("EXAMPLES", examples)
			if err != nil {
				return err
			}
			for name, text := range map[string][]byte{"doses.csv": doses(2000),
				"sorted.csv": sorted(), "fading.csv": fading(), "late.csv": late(), "visits.csv": visits()} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), text, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits,
			"lines": lines, "fill": fill, "address": address, "mode": mode},
	})
}

// exits CODE COMMAND… wants a command to end with an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	code := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

// lines N FILE wants a file of N lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines N FILE")
	}
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	if n := strings.Count(string(b), "\n"); args[0] != strconv.Itoa(n) {
		ts.Fatalf("%s has %d lines, want %s", args[1], n, args[0])
	}
}

// mode OCTAL FILE… wants files with these permissions.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mode OCTAL FILE…")
	}
	for _, name := range args[1:] {
		info, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		if got := strconv.FormatUint(uint64(info.Mode().Perm()), 8); got != args[0] {
			ts.Fatalf("%s has mode %s, want %s", name, got, args[0])
		}
	}
}

// fill TEMPLATE OUT writes a file in which @NAME stands for the line that the file NAME holds.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fill TEMPLATE OUT")
	}
	out := regexp.MustCompile(`@[a-z0-9.]+`).ReplaceAllStringFunc(ts.ReadFile(args[0]),
		func(name string) string {
			return strings.TrimSpace(ts.ReadFile(name[1:]))
		})
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(out), 0o644))
}

// address FILE NAME waits until a server has written its address to a file, and sets a variable to
// it.
func address(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: address FILE NAME")
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(ts.MkAbs(args[0])); err == nil {
			ts.Setenv(args[1], strings.TrimSpace(string(b)))
			return
		}
	}
	ts.Fatalf("%s did not appear", args[0])
}

// doses is a log of three arms with this many rewards each: placebo has a mean of 0.2, low of 0.4
// and high of 0.9.
func doses(rows int) []byte {
	b := []byte("arm,reward\n")
	for i := range rows {
		for _, arm := range []struct {
			name  string
			tenth int
		}{{"placebo", 2}, {"low", 4}, {"high", 9}} {
			reward := "0"
			if i*7%10 < arm.tenth {
				reward = "1"
			}
			b = append(b, arm.name+","+reward+"\n"...)
		}
	}
	return b
}

// sorted is a log of two arms that somebody sorted: half of a's rewards are 1, and come first; 80 %
// of b's are, and come last.
func sorted() []byte {
	b := []byte("arm,reward\n")
	for i := range 2000 {
		b = fmt.Appendf(b, "a,%d\n", 1-i/1000)
	}
	for i := range 2000 {
		b = fmt.Appendf(b, "b,%d\n", min(i/400, 1))
	}
	return b
}

// fading is a column of 3000 values of 0.9 and then 3000 of 0.1.
func fading() []byte {
	b := []byte("id,delay\n")
	for i := range 6000 {
		b = fmt.Appendf(b, "%d,0.%d\n", i, 9-i/3000*8)
	}
	return b
}

// late is a column of 600 values with one that is no number in row 500.
func late() []byte {
	b := []byte("delay\n")
	for i := range 600 {
		value := "0.9"
		if i == 499 {
			value = "0.731secret"
		}
		b = append(b, value+"\n"...)
	}
	return b
}

// visits is a log of 2400 visitors of two versions of a page with two rows each: for one third of
// the same version, for one third of both, and for one third with a reward that is missing. Of ten
// visitors two like the short version, and nine the long one.
func visits() []byte {
	b := []byte("day,version,visitor,sent\n")
	versions, likes := []string{"short", "long"}, []int{2, 9}
	for i := range 2400 {
		row := func(version int, missing bool) {
			sent := "0"
			if missing {
				sent = "NA"
			} else if i/2%10 < likes[version] {
				sent = "100" // clipped
			}
			b = fmt.Appendf(b, "mon,%s,v%d,%s\n", versions[version], i, sent)
		}
		row(i%2, false)
		switch i % 3 {
		case 0:
			row(i%2, false)
		case 1:
			row(i%2, true)
		default:
			row(1-i%2, false)
		}
	}
	return b
}
