package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// No command may wait for what all the others say: the tree of commands takes 23 000 allocations,
// and took 169 000 when each flag read the texts of all.
func TestStart(t *testing.T) {
	n := testing.AllocsPerRun(1, func() {
		if _, err := newParser(streams{program: "sotto"}); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%.0f allocations", n)
	if n > 50_000 {
		t.Errorf("%.0f allocations", n)
	}
}

// Every command is the same when it is built alone as it is among all.
func TestNamed(t *testing.T) {
	var all bytes.Buffer
	k, err := newParser(streams{program: "sotto", out: &all, err: &all}, kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range leaves(k.Model.Node) {
		args := append(benchCommand(strings.Fields(n.FullPath())[1:]), "--help")
		all.Reset()
		_, _ = k.Parse(args) // it goes on after the help, which ends a program
		var alone bytes.Buffer
		code := run(context.Background(), args, streams{out: &alone, err: &alone})
		if code != exitOK || alone.Len() == 0 || !strings.HasPrefix(all.String(), alone.String()) {
			t.Errorf("%q: exit code %d, %q among all, %q alone", args, code, all.String(), alone.String())
		}
	}
	for _, name := range []string{"audit", "serve bench", "run"} {
		p, err := parserOf(named([]string{name}), streams{program: "sotto"})
		if err != nil || len(p.Model.Children) != 1 {
			t.Errorf("%s has %v beside it, error %v", name, p.Model.Children, err)
		}
	}
}
