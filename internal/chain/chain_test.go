package chain

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// A journal is read as it was written, and a worked line has the SHA-256 of the one before it.
func TestChain(t *testing.T) {
	var out strings.Builder
	w := &Writer{W: &out}
	for _, object := range []string{"{\"a\":1}\n", "{\"b\":2}\n", "{\"c\":3}\n"} {
		if n, err := w.Write([]byte(object)); n != len(object) || err != nil {
			t.Fatal(n, err)
		}
	}
	lines := strings.SplitAfter(out.String(), "\n")
	// printf '{"a":1}' | sha256sum
	const second = `{"after":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","b":2}` + "\n"
	if lines[0] != "{\"a\":1}\n" || lines[1] != second {
		t.Errorf("%q", lines)
	}
	r := NewReader(strings.NewReader(out.String()))
	for i, want := range []string{`{"a":1}`, `{"b":2}`, `{"c":3}`} {
		if got, err := r.Next(); string(got) != want || err != nil || r.At() != i+1 {
			t.Errorf("%q, %v, at %d", got, err, r.At())
		}
		if got := Object([]byte(lines[i])); string(got) != want {
			t.Errorf("the object of line %d is %q", i, got)
		}
	}
	if _, err := r.Next(); err != io.EOF || r.Tip() != w.tip {
		t.Error(err, r.Tip(), w.tip)
	}
	for name, c := range map[string]struct {
		text string
		at   int
		want error
	}{
		"the first is gone":    {lines[1] + lines[2], 1, ErrBroken},
		"one is gone":          {lines[0] + lines[2], 2, ErrBroken},
		"two are swapped":      {lines[0] + lines[2] + lines[1], 2, ErrBroken},
		"one is altered":       {strings.Replace(out.String(), "2}", "4}", 1), 3, ErrBroken},
		"its link is altered":  {strings.Replace(out.String(), "015", "115", 1), 2, ErrBroken},
		"one is there twice":   {lines[0] + lines[1] + lines[1], 3, ErrBroken},
		"the end of it is cut": {strings.TrimSuffix(out.String(), "\n"), 3, ErrCut},
	} {
		r, err := NewReader(strings.NewReader(c.text)), error(nil)
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, c.want) || r.At() != c.at {
			t.Errorf("%s: %v at %d, must be %v at %d", name, err, r.At(), c.want, c.at)
		}
	}
}

// What is linked is unlinked to itself, and behind another line it is not.
func FuzzLink(f *testing.F) {
	f.Add("ab", []byte(`{"a":1}`))
	f.Add("", []byte(`{}`))
	f.Fuzz(func(t *testing.T, tip string, line []byte) {
		object, next, err := Unlink(tip, line)
		if err != nil || len(object) == 0 {
			return
		}
		again, tip2 := Link(tip, object)
		if tip2 != next || !bytes.Equal(bytes.TrimSpace(again), bytes.TrimSpace(line)) {
			t.Errorf("%q becomes %q", line, again)
		}
	})
}
