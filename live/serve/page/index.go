package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/serve"
)

// A Home is the list of experiments that one may see: those that were asked for, a page of them.
type Home struct {
	Frame
	Index
	Lacks bool // experiments that nobody answers for now
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
	Made              time.Time
	Age               string     // since it was made, in days
	Next              string     // what comes next, or is to be done
	Winner            string     // what everybody gets since it has stopped; empty before
	Known             *Known     // of the arms; nil where nothing was released, or there are contexts
	info              serve.Info // of this engine's, else empty
}

// A Known is a verdict in a word and in a sentence, and the arm that it is about.
type Known struct{ Word, Text, Leader string }

// Beside is what other engines have of a list.
type Beside struct {
	Entries []Entry
	Lacks   bool // an engine did not answer
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
// public ones to everybody.
func entriesOf(all []serve.Info, reads bool) (out []Entry) {
	for _, info := range all {
		x := &info.Experiment
		if !reads && !x.Public {
			continue
		}
		e := Entry{Name: x.Name, Description: x.Description,
			Promise: fmt.Sprintf("at most %s per %s", greek(fmt.Sprint(x.Total())), x.Unit.Of), Made: info.Created, info: info}
		e.State, e.Says = stateOf(info)
		e.Group = groupOf(e.State)
		for _, a := range info.Arms {
			e.Decisions += a.Decisions
		}
		if info.Contextual != nil {
			e.Decisions = info.Contextual.Decisions
		}
		e.Next, e.Winner = nextOf(info, e.State)
		out = append(out, e)
	}
	return out
}

// nextOf says what comes next of an experiment, or is to be done, and what everybody gets once it has stopped.
func nextOf(info serve.Info, s State) (next, winner string) {
	x := &info.Experiment
	ends := ""
	if !x.End.IsZero() {
		ends = "ends " + clockOf(x.End)
	}
	switch s {
	case Draft:
		return "to be started", ""
	case Starting:
		return "starts " + clockOf(info.Until), ""
	case Collecting, Awaiting:
		if info.Trouble != "" {
			return "waits for sums: " + info.Trouble, ""
		}
		if !info.NotBefore.IsZero() && info.First.IsZero() {
			return "first release from " + clockOf(info.NotBefore), ""
		}
		return ends, ""
	case Paused:
		if g := info.Guards(); g != nil && g.Paused != "" {
			return g.Paused + ": to be resumed or stopped", ""
		}
		return "to be resumed or stopped", ""
	case Stopping:
		if info.Wait == "rewards" {
			return "last rewards until " + clockOf(info.Until), ""
		}
		return "last release", ""
	case Failed:
		return "to be looked at, and stopped", ""
	}
	switch {
	case info.Keep >= 0 && info.Keep < len(x.Arms):
		winner = x.Arms[info.Keep].Name
	case x.Contextual != nil:
		winner = keptOf(info)
	}
	return "", winner
}

// ageOf is how old something is in whole days, so that a list is the same all day.
func ageOf(d time.Duration) string {
	if days := int(d / (24 * time.Hour)); days > 0 {
		return words.Several(days, "day")
	}
	return "today"
}

// indexOf is the page that is asked for, of experiments that who asks may see. Beyond the last page there is the last.
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
	slices.SortStableFunc(found, func(a, b Entry) int { return b.Made.Compare(a.Made) })
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
		return 0 // the newest first, as in all orders
	})
	out.Found, out.Pages = len(found), max(1, (len(found)+perPage-1)/perPage)
	out.Page = min(ask.Page, out.Pages)
	from := (out.Page - 1) * perPage
	out.Experiments = found[from:min(len(found), from+perPage)]
	known(out.Experiments)
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

// known has entries of this engine say what is known.
func known(all []Entry) {
	for i := range all {
		in := &all[i].info
		if in.Experiment.Name == "" || in.Contextual != nil {
			continue
		}
		v := serve.VerdictOf(&in.Experiment, in.Arms)
		if v.Leader == "" {
			continue
		}
		all[i].Known = &Known{string(v.Word), v.Text, v.Leader}
		if sure := v.Word == interval.Conclusive || v.Word == interval.NoDifference; sure && all[i].Group == "running" {
			all[i].Next = "has its answer: to be stopped"
		}
	}
}

// Home shows the experiments that one may see.
func (p *Pages) Home(w http.ResponseWriter, r *http.Request) error {
	return p.HomeBeside(w, r, Beside{})
}

// HomeBeside is Home with what other engines have, as Entries of their pages say it.
func (p *Pages) HomeBeside(w http.ResponseWriter, r *http.Request, of Beside) error {
	ask, err := askOf(r.URL.Query())
	if err != nil {
		return err
	}
	f := p.frame(r, "Experiments")
	all := append(of.Entries, entriesOf(p.cfg.Engine.List(r.Context()), f.Who.Reads)...)
	index := indexOf(all, ask)
	for i := range index.Experiments {
		index.Experiments[i].Age = ageOf(p.cfg.Engine.Time().Sub(index.Experiments[i].Made))
	}
	p.write(w, http.StatusOK, "home.html", Home{f, index, of.Lacks})
	return nil
}

// Entries are what Home has of the experiments that one may see, as JSON.
func (p *Pages) Entries(w http.ResponseWriter, r *http.Request) error {
	all := entriesOf(p.cfg.Engine.List(r.Context()), p.frame(r, "").Who.Reads)
	known(all)
	return json.NewEncoder(w).Encode(all)
}

// NotFound says that there is no such page.
func (p *Pages) NotFound(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	f := p.frame(r, "There is no such page")
	p.write(w, http.StatusNotFound, "problem.html", Problem{f, http.StatusNotFound,
		"The address may be misspelt, or what was here may be gone."})
}
