package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type state string

const (
	dead       state = "is dead"
	lives      state = "lives"
	notReached state = "is reached by no test"
)

// binary is a test binary with all mutants of a package.
type binary struct {
	path, dir, work string
	flags           []string
	least           time.Duration // of processor time that a mutant has
}

type test struct {
	name    string
	cpu     time.Duration
	reaches map[int]bool
}

// run runs the tests that match, with a limit of processor time, since what else the machine does
// says nothing of a mutant, and a wide one of time, since waiting for nothing costs no processor.
func (b *binary) run(env, pattern string, cpu time.Duration) (used time.Duration, out []byte, err error) {
	args := []string{"-c", fmt.Sprintf(`ulimit -t %d; exec "$0" "$@"`, int(cpu/time.Second)+1), b.path,
		"-test.run", pattern, "-test.failfast"}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second+5*cpu)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append(args, b.flags...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), env, "GOMAXPROCS=1", "GOMEMLIMIT=1GiB")
	out, err = cmd.CombinedOutput()
	if s := cmd.ProcessState; s != nil {
		used = s.UserTime() + s.SystemTime()
	}
	return used, out, err
}

// tests runs every test without a mutant and records what it costs and reaches, cheapest first.
func (b *binary) tests(o options, progress io.Writer) ([]test, error) {
	b.flags = []string{"-test.timeout", "1h"}
	if o.short {
		b.flags = append(b.flags, "-test.short")
	}
	if usage, _ := exec.Command(b.path, "-h").CombinedOutput(); bytes.Contains(usage, []byte("rapid.nofailfile")) {
		// failures are what is wanted, the first of them
		b.flags = append(b.flags, "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	list := exec.Command(b.path, "-test.list", "^(Test|Example|Fuzz)")
	list.Dir = b.dir
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing tests: %w", err)
	}
	skip, err := regexp.Compile(o.skip)
	if err != nil {
		return nil, err
	}
	var tests []test
	var total time.Duration
	for n := range strings.FieldsSeq(string(names)) {
		if skip.MatchString(n) {
			continue
		}
		reached := filepath.Join(b.work, n)
		used, text, err := b.run("MUTANTS_REACHED="+reached, "^"+n+"$", 10*time.Minute)
		if err != nil {
			return nil, fmt.Errorf("%s fails without a mutant: %w\n%s", n, err, text)
		}
		t := test{n, used, map[int]bool{}}
		ids, _ := os.ReadFile(reached) // absent if it reaches none
		for id := range strings.FieldsSeq(string(ids)) {
			i, err := strconv.Atoi(id)
			if err != nil {
				return nil, err
			}
			t.reaches[i] = true
		}
		total += used
		tests = append(tests, t)
	}
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.cpu, b.cpu) })
	fmt.Fprintf(progress, "%d tests, %v of processor time\n", len(tests), total.Round(time.Millisecond))
	return tests, nil
}

// judge runs the tests that reach a mutant, cheap ones at once, until one fails.
func (b *binary) judge(id int, tests []test) state {
	s := notReached
	for len(tests) > 0 {
		var names []string
		var cpu time.Duration
		for len(tests) > 0 && (len(names) == 0 || cpu+tests[0].cpu < 2*time.Second) {
			if t := tests[0]; t.reaches[id] {
				names, cpu = append(names, t.name), cpu+t.cpu
			}
			tests = tests[1:]
		}
		if len(names) == 0 {
			break
		}
		s = lives
		pattern := "^(" + strings.Join(names, "|") + ")$"
		if _, _, err := b.run("MUTANT="+strconv.Itoa(id), pattern, 3*cpu+b.least); err != nil {
			return dead
		}
	}
	return s
}
