package main

import (
	"bytes"
	"io"
	"testing"
)

// Of tiny, by hand: Half has >, >, /; Sign <, <, ==, −; Count !=, ++, ++; Idle −. Name has none,
// since "tiny " - s does not compile. Half's boundary, 10 or 5 at 10, and Idle live; the first ++
// of Count never ends.
func TestTiny(t *testing.T) {
	b, mutants, err := build("./testdata/tiny", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b.least = 0 // one of them never ends
	tests, err := b.tests(options{skip: "^$", short: true}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for i := range mutants {
		mutants[i].state = b.judge(mutants[i].id, tests)
	}
	lives := "Half: \n\tCONDITIONALS_BOUNDARY n > 10\t# tiny.go:6 lives\n" +
		"Idle: \n\tINVERT_NEGATIVES -x\t# tiny.go:35 is reached by no test\n"
	head := "# A comment.\n== other\nHalf: Of another package.\n\tARITHMETIC_BASE n / 2\n== testdata/tiny\n"
	for _, c := range []struct {
		name, names, want string
		ok                bool
	}{
		{"nothing named", head, lives + "11 mutants: 9 killed, 0 named as equivalent, 0 named as " +
			"open, 2 not named\n" +
			"killed: 81.8 % of all, 81.8 % of those that are not equivalent\n", false},
		{"all named", head + "Half: Equality.\n\tCONDITIONALS_BOUNDARY n > 10\nIdle: " +
			"Open.\n\tINVERT_NEGATIVES -x\n",
			"11 mutants: 9 killed, 1 named as equivalent, 1 named as open, 0 not named\n" +
				"killed: 81.8 % of all, 90.0 % of those that are not equivalent\n", true},
		{"stale", head + "Half: Dead.\n\tARITHMETIC_BASE n / 2\n\tCONDITIONALS_BOUNDARY n > 10\t# a remark\n" +
			"Idle: Open.\n\tINVERT_NEGATIVES -x\n\tINVERT_NEGATIVES -x\n",
			"named, but does not live: Half ARITHMETIC_BASE n / 2\nnamed, but does not live: " +
				"Idle INVERT_NEGATIVES -x\n" +
				"11 mutants: 9 killed, 1 named as equivalent, 1 named as open, 0 not named\n" +
				"killed: 81.8 % of all, 90.0 % of those that are not equivalent\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reasons, err := readNames(c.names, "testdata/tiny")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			ok := report(&out, mutants, reasons, true)
			if ok != c.ok || out.String() != c.want {
				t.Errorf("%v\n%s\nwant %v\n%s", ok, out.String(), c.ok, c.want)
			}
		})
	}
}

func TestNamesAreRefused(t *testing.T) {
	for _, text := range []string{"Half: Before any package.\n", "== p\nno colon\n",
		"== p\n\tARITHMETIC_BASE n / 2\n"} {
		if _, err := readNames(text, "p"); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
