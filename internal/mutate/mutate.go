// Command mutate changes the code of a package, one operator at a time, and looks whether a test of
// the package notices. A change that no test notices must be in testdata/mutants.txt with the
// reason why it changes nothing that is promised: otherwise, or if one that is named there no
// longer lives, it ends with status 1.
//
//	go run ./internal/mutate [flags] PACKAGE
//
// The operators are the default ones of gremlins: boundaries and negations of conditions,
// arithmetic, ++ and --, and signs. Gremlins itself (v0.6.0) is not used, since what it counts is
// not so: a mutant that does not compile is "killed"; conditions of case clauses are "not covered"
// whatever tests do; --test-cpu reaches go test as one word, so that every run fails and every
// mutant is "killed"; and it builds the package once for each of a thousand mutants. Here all
// mutants are compiled into one test binary, which reads from the environment the one that is on;
// what would not compile is left out; and a mutant meets only the tests that reach it. Constant
// declarations, which a test binary cannot choose, are left out as well.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

type options struct {
	pkg, names, only, skip string
	short                  bool
}

func main() {
	var o options
	flag.StringVar(&o.names, "names", "testdata/mutants.txt", "`file` of the mutants that may live")
	flag.StringVar(&o.only, "only", "", "only mutants whose \"file:line function operator "+
		"expression\" matches this `regexp`")
	flag.StringVar(&o.skip, "skip", "^$", "leave out tests that match this `regexp`")
	flag.BoolVar(&o.short, "short", true, "run tests with -test.short")
	flag.Parse()
	if o.pkg = flag.Arg(0); flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: mutate [flags] PACKAGE, for example ./privacy")
		os.Exit(2)
	}
	ok, err := mutate(o, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// mutate writes the mutants that live and the counts to out, and reports whether all that live are
// named and all that are named live.
func mutate(o options, out, progress io.Writer) (ok bool, err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return false, err
	}
	names, err := os.ReadFile(o.names)
	if err != nil {
		return false, err
	}
	reasons, err := readNames(string(names), strings.TrimPrefix(filepath.ToSlash(filepath.Clean(o.pkg)), "./"))
	if err != nil {
		return false, fmt.Errorf("%s: %w", o.names, err)
	}
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	b, mutants, err := build(o.pkg, work)
	if err != nil {
		return false, err
	}
	mutants = slices.DeleteFunc(mutants, func(m mutant) bool {
		return !only.MatchString(m.place + " " + m.key())
	})
	tests, err := b.tests(o, progress)
	if err != nil {
		return false, err
	}
	for i := range mutants {
		mutants[i].state = b.judge(mutants[i].id, tests)
		if i%50 == 49 {
			fmt.Fprintf(progress, "%s %d of %d\n", time.Now().Format(time.TimeOnly), i+1, len(mutants))
		}
	}
	return report(out, mutants, reasons, o.only == ""), nil
}

// report counts, and prints what lives without a reason and, of a whole package, reasons without a
// mutant that lives.
func report(out io.Writer, mutants []mutant, reasons map[string][]string, whole bool) bool {
	var killed, equivalent, open, unnamed, stale int
	at := ""
	for _, m := range mutants {
		k := m.key()
		switch rs := reasons[k]; {
		case m.state == dead:
			killed++
		case len(rs) > 0:
			reasons[k] = rs[1:]
			if strings.HasPrefix(rs[0], "Open") {
				open++
			} else {
				equivalent++
			}
		default:
			unnamed++
			if m.fn != at {
				at = m.fn
				fmt.Fprintf(out, "%s: \n", at)
			}
			fmt.Fprintf(out, "\t%s %s\t# %s %s\n", m.kind, m.expr, m.place, m.state)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(reasons)) {
		for range reasons[k] {
			if whole {
				stale++
				fmt.Fprintln(out, "named, but does not live:", k)
			}
		}
	}
	all := len(mutants)
	percent := func(of int) float64 { return 100 * float64(killed) / float64(max(of, 1)) }
	fmt.Fprintf(out, "%d mutants: %d killed, %d named as equivalent, %d named as open, %d not named\n",
		all, killed, equivalent, open, unnamed)
	fmt.Fprintf(out, "killed: %.1f %% of all, %.1f %% of those that are not equivalent\n",
		percent(all), percent(all-equivalent))
	return unnamed == 0 && stale == 0
}

// readNames reads the reasons of one package, by mutant. The file has "== package" before each
// package, "function: reason" before each group, and in it a tab, the operator and the expression
// of each mutant: neither files nor lines, so that it stays true when code is wrapped or moved.
func readNames(text, pkg string) (map[string][]string, error) {
	reasons := map[string][]string{}
	var here, fn, reason string
	for i, l := range strings.Split(text, "\n") {
		switch {
		case l == "" || strings.HasPrefix(l, "#"):
		case strings.HasPrefix(l, "== "):
			here, fn = l[3:], ""
		case l[0] != '\t':
			var ok bool
			if fn, reason, ok = strings.Cut(l, ": "); !ok || here == "" {
				return nil, fmt.Errorf("line %d must be \"function: reason\" in a package", i+1)
			}
		case fn == "":
			return nil, fmt.Errorf("line %d: a mutant without a function", i+1)
		case here == pkg:
			l, _, _ = strings.Cut(l, "\t# ")
			k := fn + " " + strings.TrimSpace(l)
			reasons[k] = append(reasons[k], reason)
		}
	}
	return reasons, nil
}
