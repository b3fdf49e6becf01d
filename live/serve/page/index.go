package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/serve"
)

// A Home is the list of experiments that one may see: those that were asked for, a page of them.
type Home struct {
	Frame
	Index
}

// An Index is a page of a list of experiments.
type Index struct {
	Ask
	Experiments []Entry // of this page
	All, Found  int     // of how many, and how many of them were asked for
	First, Last int     // places of this page's among those, from 1 on
	Pages       int     // at least 1
	States      []Choice
	Sorts       []Choice
	Before      string // addresses of the pages beside this one, empty for none
	After       string
}

// A Choice is one of a list, with its title.
type Choice struct {
	Value, Title string
	On           bool
}

// An Ask is what somebody looks for, as the address has it: q, state, sort and page.
type Ask struct {
	Q     string // part of a name or a description, in any case
	State string // one of groups, or empty for all
	Sort  string // one of sorts
	Page  int    // from 1 on
}

// An Entry is what the list says of an experiment.
type Entry struct {
	Name, Description string
	State             State
	Says              string
	Group             string // one of groups
	Decisions         int
	Promise           string // such as "at most ε = 1 per person"
	info              serve.Info
}

// perPage is how many experiments a page has.
const perPage = 25

// groups are what the list can be narrowed to, those first that somebody may have to do something about.
var groups = []Choice{{"failed", "failed", false}, {"running", "running", false}, {"paused", "paused", false}, {"draft", "draft", false},
	{"stopped", "stopped", false}, {"archived", "archived", false}}

// sorts are the orders of a list, the first if none is asked for.
var sorts = []Choice{{"active", "active first", false}, {"newest", "newest first", false}, {"name", "name", false},
	{"decisions", "most decisions", false}}

// groupOf is what the list can be narrowed to that an experiment is in. Whether one collects or waits does not
// matter here, so that no decision moves it.
func groupOf(s State) string {
	switch s {
	case Starting, Collecting, Awaiting:
		return "running"
	case Stopping, Stopped:
		return "stopped"
	}
	return string(s)
}

// askOf reads what is looked for.
func askOf(q url.Values) (a Ask, err error) {
	one := func(name string, of []Choice) (string, error) {
		v := q.Get(name)
		if v == "" || slices.ContainsFunc(of, func(c Choice) bool { return c.Value == v }) {
			return v, nil
		}
		var all []string
		for _, c := range of {
			all = append(all, c.Value)
		}
		return "", wrong(name, "%s must be one of %s", name, strings.Join(all, ", "))
	}
	a.Q, a.Page = strings.TrimSpace(q.Get("q")), 1
	if a.State, err = one("state", groups); err != nil {
		return a, err
	}
	if a.Sort, err = one("sort", sorts); err != nil {
		return a, err
	}
	a.Sort = cmp.Or(a.Sort, sorts[0].Value)
	if at := q.Get("page"); at != "" {
		if a.Page, err = strconv.Atoi(at); err != nil || a.Page < 1 {
			return a, wrong("page", "page must be a whole number, at least 1")
		}
	}
	return a, nil
}

// address is that of a page of what is asked for.
func (a Ask) address(page int) string {
	q := url.Values{}
	for name, v := range map[string]string{"q": a.Q, "state": a.State, "sort": a.Sort} {
		if v != "" && !(name == "sort" && v == sorts[0].Value) {
			q.Set(name, v)
		}
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	return strings.TrimSuffix("/?"+q.Encode(), "?")
}

// entriesOf are the experiments that somebody may see, in the order in which they were made: all to who reads, the
// public ones to everybody. It is a function of these alone, so that lists of several engines can be joined.
func entriesOf(all []serve.Info, reads bool) (out []Entry) {
	for _, info := range all {
		x := &info.Experiment
		if !reads && !x.Public {
			continue
		}
		e := Entry{Name: x.Name, Description: x.Description,
			Promise: fmt.Sprintf("at most %s per %s", greek(fmt.Sprint(x.Total())), x.Unit.Of), info: info}
		e.State, e.Says = stateOf(info)
		e.Group = groupOf(e.State)
		for _, a := range info.Arms {
			e.Decisions += a.Decisions
		}
		if info.Contextual != nil {
			e.Decisions = info.Contextual.Decisions
		}
		out = append(out, e)
	}
	return out
}

// indexOf is the page that is asked for, of experiments that who asks may see, the oldest first. Beyond the last
// page there is the last.
func indexOf(all []Entry, ask Ask) Index {
	out := Index{Ask: ask, All: len(all), States: marked(groups, ask.State), Sorts: marked(sorts, ask.Sort)}
	var found []Entry
	part := strings.ToLower(ask.Q)
	for _, e := range slices.Backward(all) {
		if (ask.State == "" || e.Group == ask.State) &&
			(strings.Contains(strings.ToLower(e.Name), part) || strings.Contains(strings.ToLower(e.Description), part)) {
			found = append(found, e)
		}
	}
	place := func(e Entry) int { return slices.IndexFunc(groups, func(c Choice) bool { return c.Value == e.Group }) }
	slices.SortStableFunc(found, func(a, b Entry) int {
		switch ask.Sort {
		case "active":
			return cmp.Compare(place(a), place(b))
		case "name":
			return strings.Compare(a.Name, b.Name)
		case "decisions":
			return cmp.Compare(b.Decisions, a.Decisions)
		}
		return 0 // the newest first, as they are
	})
	out.Found, out.Pages = len(found), max(1, (len(found)+perPage-1)/perPage)
	out.Page = min(ask.Page, out.Pages)
	from := (out.Page - 1) * perPage
	out.Experiments = found[from:min(len(found), from+perPage)]
	out.First, out.Last = from+1, from+len(out.Experiments)
	if out.Page > 1 {
		out.Before = ask.address(out.Page - 1)
	}
	if out.Page < out.Pages {
		out.After = ask.address(out.Page + 1)
	}
	return out
}

func marked(of []Choice, value string) []Choice {
	of = slices.Clone(of)
	for i := range of {
		of[i].On = of[i].Value == value
	}
	return of
}

// Verdict is what is known of the arms; nil where nothing was released, or there are contexts.
func (e Entry) Verdict() *interval.Verdict {
	if e.info.Contextual != nil {
		return nil
	}
	v := serve.VerdictOf(&e.info.Experiment, e.info.Arms)
	if v.Leader == "" {
		return nil
	}
	return &v
}

// Home shows the experiments that one may see.
func (p *Pages) Home(w http.ResponseWriter, r *http.Request) error {
	ask, err := askOf(r.URL.Query())
	if err != nil {
		return err
	}
	f := p.frame(r, "Experiments")
	p.write(w, http.StatusOK, "home.html", Home{f, indexOf(entriesOf(p.cfg.Engine.List(r.Context()), f.Who.Reads), ask)})
	return nil
}

// NotFound says that there is no such page.
func (p *Pages) NotFound(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	f := p.frame(r, "There is no such page")
	p.write(w, http.StatusNotFound, "problem.html", Problem{f, http.StatusNotFound,
		"The address may be misspelt, or what was here may be gone."})
}
