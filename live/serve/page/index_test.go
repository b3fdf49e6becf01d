package page

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
)

// experimentsOf are 60 of them: each third is a draft, and each tenth is public.
func experimentsOf() (all []serve.Info) {
	for i := range 60 {
		x := decl.Experiment{Name: fmt.Sprintf("exp-%02d", i), Description: "Which Color?", Public: i%10 == 0,
			Arms: []decl.Arm{{Name: "red"}, {Name: "blue"}}, Unit: decl.Unit{Of: "person"}, Budget: privacy.Pure{Epsilon: 1}}
		info := serve.Info{Experiment: x, State: serve.Running, Keep: -1, Next: -1, Arms: []serve.ArmInfo{{Decisions: i}, {}}}
		if i%3 == 0 {
			info.State = serve.Draft
		}
		all = append(all, info)
	}
	return all
}

// A list has what is looked for, in the order that is asked for, a page at a time: all pages together have each
// experiment once.
func TestIndex(t *testing.T) {
	all := entriesOf(experimentsOf(), true)
	at := func(query string) Index {
		t.Helper()
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		ask, err := askOf(q)
		if err != nil {
			t.Fatal(err)
		}
		return indexOf(all, ask)
	}
	for _, c := range []struct {
		query        string
		found, pages int
		first        string
	}{
		{"", 60, 3, "exp-59"}, {"sort=name", 60, 3, "exp-00"}, {"sort=newest&page=3", 60, 3, "exp-09"}, {"state=draft", 20, 1, "exp-57"},
		{"q=EXP-1", 10, 1, "exp-19"}, {"q=+color", 60, 3, "exp-59"}, {"q=exp-1&state=draft", 3, 1, "exp-18"},
		{"page=99", 60, 3, "exp-27"}, {"q=nothing", 0, 1, ""}, {"state=archived", 0, 1, ""}, {"sort=decisions&page=2", 60, 3, "exp-34"},
	} {
		got, first := at(c.query), ""
		if len(got.Experiments) > 0 {
			first = got.Experiments[0].Name
		}
		if got.Found != c.found || got.Pages != c.pages || first != c.first || got.All != 60 {
			t.Errorf("%q: %d found, %d pages, the first is %q, must be %+v", c.query, got.Found, got.Pages, first, c)
		}
	}
	for _, e := range at("state=running").Experiments { // the badge and the filter have one word
		if e.Says != e.Group {
			t.Errorf("%s is %q, and found as %q", e.Name, e.Says, e.Group)
		}
	}
	seen := map[string]int{}
	for next := "/?q=exp&sort=active"; next != ""; {
		page := at(strings.TrimPrefix(next, "/?"))
		for _, e := range page.Experiments {
			seen[e.Name]++
		}
		if next = page.After; next != "" && !strings.HasPrefix(next, "/?page=") {
			t.Fatalf("%q does not keep what is asked for", next)
		}
	}
	for _, e := range all {
		if seen[e.Name] != 1 {
			t.Errorf("%s is there %d times", e.Name, seen[e.Name])
		}
	}
	for _, bad := range []string{"state=open", "sort=size", "page=0", "page=x", "page=-1"} {
		q, _ := url.ParseQuery(bad)
		name, value, _ := strings.Cut(bad, "=")
		if _, err := askOf(q); err == nil || !strings.HasPrefix(err.Error(), name+" must be ") || strings.Contains(err.Error(), "is "+value) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Who may not see an experiment does not learn that there is one, whatever is looked for.
func TestIndexOfWhoMayNotRead(t *testing.T) {
	all := experimentsOf()
	open := entriesOf(all, false)
	if len(open) != 6 {
		t.Fatalf("%d, must be the 6 public ones", len(open))
	}
	var public []serve.Info
	for _, info := range all {
		if info.Experiment.Public {
			public = append(public, info)
		}
	}
	for _, query := range []string{"", "q=exp-1", "q=exp-11", "state=draft", "sort=decisions&page=2"} {
		q, _ := url.ParseQuery(query)
		ask, _ := askOf(q)
		if got, want := fmt.Sprint(indexOf(open, ask)), fmt.Sprint(indexOf(entriesOf(public, true), ask)); got != want {
			t.Errorf("%q tells of what is not public:\n%s\n%s", query, got, want)
		}
	}
}
