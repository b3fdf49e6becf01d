package serve

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// What operators did is in the journal, by whom, and once; what was refused is not. It is there
// after a restart.
func TestAudit(t *testing.T) {
	for name, st := range map[string]Config{
		"memory": {Store: store.NewMemory().Open}, "sqlite": {Store: store.SQLite(t.TempDir())},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			st.Clock = c.Now
			e := open(t, st)
			ctx := t.Context()
			secret, _, err := e.NewKey(ctx, "admin", ScopeAdmin)
			if err != nil {
				t.Fatal(err)
			}
			by := As(ctx, e.Who(secret))
			three := strings.Replace(shop, "{name: red,", "green, {name: red,", 1)
			if err := e.Create(by, parse(t, three)); err != nil {
				t.Fatal(err)
			}
			if err := e.Create(by, parse(t, three)); !errors.Is(err, ErrExists) {
				t.Fatal(err)
			}
			if err := e.Resume(by, "shop"); !errors.Is(err, ErrState) {
				t.Fatal(err)
			}
			because, bad := Because(by, " the stock ran out: “0 left” ")
			if bad != nil {
				t.Fatal(bad)
			}
			_, k, err := e.NewKey(by, "shop's", ScopeDecide)
			for _, do := range []func() error{
				func() error { return err },
				func() error { return e.Start(by, "shop") }, func() error { return e.Pause(by, "shop") },
				func() error {
					return e.Resume(by, "shop")
				}, func() error { return e.TakeOff(because, "shop", "green") },
				func() error { return e.Erase(by, "shop", "ann") },
				func() error {
					return e.Stop(ctx, "shop", "blue")
				}, func() error { return e.Archive(by, "shop") },
				func() error { return e.RevokeKey(by, k.ID) }, e.Close,
			} {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			}
			e = open(t, st)
			lines, err := e.Audit(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line, err := range lines {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, strings.TrimPrefix(strings.TrimSuffix(string(line), "}\n"),
					`{"time":"2001-09-09T01:46:40Z",`))
			}
			mine := `"key":1,"by":"admin",`
			if want := []string{
				mine + `"did":"create","experiment":"shop"`, mine + `"did":"make key","with":"shop's"`,
				mine + `"did":"start","experiment":"shop"`, mine + `"did":"pause","experiment":"shop"`,
				mine + `"did":"resume","experiment":"shop"`,
				mine + `"did":"take off","experiment":"shop","with":"green","reason":"the stock ran out: “0 left”"`,
				mine + `"did":"erase","experiment":"shop"`,
				`"by":"the program","did":"stop","experiment":"shop","with":"blue"`,
				mine + `"did":"archive","experiment":"shop"`, mine + `"did":"revoke key","with":"shop's"`,
			}; !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if _, err := e.Audit(ctx, -1); err == nil {
				t.Error("a line before the first")
			}
			acts, err := e.Acts(ctx, "shop")
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			for _, a := range acts {
				told = append(told, a.Did+" "+a.Reason)
			}
			if got := strings.Join(told, ", "); got != "create , start , pause , resume , take off the stock ran out: “0 left”, stop , archive " {
				t.Error(got)
			}
			if acts, err := e.Acts(ctx, "sho"); err != nil || len(acts) > 0 {
				t.Errorf("%v, %v of another experiment", acts, err)
			}
		})
	}
}

// A reason is a line of text, and not a long one.
func TestBecause(t *testing.T) {
	for reason, ok := range map[string]bool{"": true, strings.Repeat("é", MaxReason): true, strings.Repeat("é", MaxReason+1): false,
		"two\nlines": false, "a\u202eb": false, "\xff": false, "\x00": false} {
		_, err := Because(t.Context(), reason)
		var of *decl.Error
		if (err == nil) != ok || err != nil && (!errors.As(err, &of) || of.Field != "reason") {
			t.Errorf("%q: %v", reason, err)
		}
	}
}
