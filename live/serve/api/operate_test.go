package api

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

func form(fields ...string) string {
	out := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		out.Set(fields[i], fields[i+1])
	}
	return out.Encode()
}

// shopForm is shop in the fields of the form.
func shopForm(more ...string) string {
	return form(append([]string{"name", "shop", "description", `"Which" <color>?`, "arms",
		"red\r\n\r\n blue \n",
		"policy", "dp-klucb", "epsilon", "1", "unit", "person", "window", "1m", "public", "on"}, more...)...)
}

// An experiment from a form to its archive, by what a browser does without script.
func TestOperations(t *testing.T) {
	w := newWorld(t)
	b := w.login(w.key)
	b.want(200, "GET", "/new", "")
	if text := b.want(200, "POST", "/new", shopForm("do", "text")); !strings.Contains(text,
		"policy: dp-klucb") &&
		!strings.Contains(text, "policy: &#34;dp-klucb&#34;") {
		t.Error(text)
	}
	if promise := b.want(200, "POST", "/new", shopForm("do", "check")); !strings.Contains(promise, "ε = 1") ||
		!strings.Contains(promise, "released noisy sums alone") {
		t.Error(promise)
	}
	b.want(303, "POST", "/new", shopForm("do", "create"))
	if again := b.want(409, "POST", "/new", shopForm("do", "create")); !strings.Contains(again,
		"the name is taken") ||
		!strings.Contains(again, "&lt;color&gt;") {
		t.Error(again)
	}
	const x = "/experiments/shop"
	state := func(want serve.State) {
		t.Helper()
		info, err := w.engine.Get(t.Context(), "shop")
		if err != nil || info.State != want {
			t.Errorf("it is %s, must be %s: %v", info.State, want, err)
		}
	}
	state(serve.Draft)
	if info, _ := w.engine.Get(t.Context(), "shop"); len(info.Experiment.Arms) != 2 ||
		info.Experiment.Description != `"Which" <color>?` || !info.Experiment.Public ||
		info.Experiment.Arms[1].Name != "blue" {
		t.Errorf("%+v", info.Experiment)
	}
	b.want(409, "POST", x+"/pause", "")
	b.want(303, "POST", x+"/start", "")
	state(serve.Running)
	if page := b.want(200, "GET", x, ""); !strings.Contains(page, x+"/pause") ||
		!strings.Contains(page, x+"/stop") ||
		strings.Contains(page, x+"/resume") {
		t.Error(page)
	}
	b.want(303, "POST", x+"/pause", "")
	state(serve.Paused)
	b.want(303, "POST", x+"/resume", "")
	for i := range 20 {
		w.decide(fmt.Sprint("unit ", i))
	}
	for _, do := range []string{"off", "stop", "archive"} {
		ask := b.want(200, "GET", x+"/"+do, "")
		if !strings.Contains(ask, "type the name") {
			t.Error(ask)
		}
		for _, bad := range []string{"", "SHOP", "sho p"} {
			b.want(400, "POST", x+"/"+do, form("confirm", bad))
		}
	}
	if ask := b.want(200, "GET", x+"/stop", ""); !strings.Contains(ask, "20 decisions that were not released") {
		t.Error(ask)
	}
	state(serve.Running)
	b.want(409, "POST", x+"/archive", form("confirm", "shop"))
	if bad := b.want(400, "POST", x+"/stop", form("confirm", "shop", "arm", "green")); !strings.Contains(bad,
		"must be one of the experiment&#39;s arms") {
		t.Error(bad)
	}
	b.want(400, "POST", x+"/off", form("confirm", "shop"))
	b.want(303, "POST", x+"/stop", form("confirm", " shop ", "arm", "blue"))
	state(serve.Stopping)
	if page := b.want(200, "GET", x, ""); !strings.Contains(page, "stopping: nobody new is assigned") ||
		!strings.Contains(page, "then everybody gets blue") || !strings.Contains(page, "Stop now") {
		t.Error(page)
	}
	if ask := b.want(200, "GET", x+"/stop", ""); strings.Contains(ask, "<select") ||
		!strings.Contains(ask, `name="now" value="true">Stop now, and destroy the rewards of 20 decisions</button>`) ||
		strings.Count(ask, "<button class=\"danger\"") != 1 {
		t.Error(ask)
	}
	b.want(409, "POST", x+"/stop", form("confirm", "shop"))
	b.want(400, "POST", x+"/stop", form("confirm", "ship", "now", "true"))
	b.want(303, "POST", x+"/stop", form("confirm", "shop", "now", "true"))
	state(serve.Stopped)
	if page := b.want(200, "GET", x, ""); !strings.Contains(page, "everybody gets blue") {
		t.Error(page)
	}
	b.want(303, "POST", x+"/archive", form("confirm", "shop"))
	state(serve.Archived)
	var journal []string
	lines, err := w.engine.Audit(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for line := range lines {
		var e serve.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Experiment == "shop" {
			journal = append(journal, e.By+" "+e.Did)
		}
	}
	if got := strings.Join(journal, ", "); got != "admin create, admin start, admin pause, admin "+
		"resume, admin stop, admin stop now, "+
		"admin archive" {
		t.Error(got)
	}
}

// An arm is taken off by a form, where the policy can go on without it.
func TestTakeOffByForm(t *testing.T) {
	w := shopOpen(t)
	b := w.login(w.key)
	ask := b.want(200, "GET", "/experiments/shop/off", "")
	out := b.do("POST", "/experiments/shop/off", form("confirm", "shop", "arm", "red"))
	if out.Code != 303 && (out.Code != 409 || !strings.Contains(out.Body.String(), "arm")) {
		t.Errorf("%d %s after %s", out.Code, out.Body, ask)
	}
	if w.pass(time.Minute); out.Code == 303 {
		if info, _ := w.engine.Get(t.Context(), "shop"); !info.Arms[0].Off {
			t.Error("it is on")
		}
	}
}

// Why an arm is off stands at the arm and in the history: what, when and why for everybody, by whom for who may read the
// journal. A reason that cannot be shown is refused where it was typed, and nothing is done.
func TestWhyAnArmIsOff(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("[{name: red", "[{name: green}, {name: red",
		"dp-klucb, first: 8", "dp-klucb").Replace(shop))
	b, anybody := w.login(w.key), &browser{w: w}
	const x = "/experiments/shop"
	w.want(400, "POST", "/v1"+x+"/start", `{"reason": "two\nlines"}`)
	w.want(400, "POST", "/v1"+x+"/start", `{"raeson": "it is misspelt"}`)
	w.want(200, "POST", "/v1"+x+"/start", `{"reason": "the sale begins"}`)
	for _, reason := range []string{strings.Repeat("x", 201), "two\nlines"} {
		if bad := b.want(400, "POST", x+"/off", form("confirm", "shop", "arm", "green", "reason", reason)); !strings.Contains(bad,
			`name="reason"`) || !strings.Contains(bad, `aria-invalid="true"`) || !strings.Contains(bad, "a line of text") && !strings.Contains(bad, "at most 200") {
			t.Error(bad)
		}
	}
	b.want(303, "POST", x+"/off", form("confirm", "shop", "arm", "green", "reason", "it breaks on <phones>"))
	w.want(200, "PATCH", "/v1"+x, `{"share": 0.5, "reason": "half is enough"}`)
	b.want(303, "POST", x+"/pause", form("reason", "stocktaking"))
	w.pass(time.Minute)
	for who, page := range map[string]string{"the team": anybody.want(200, "GET", x, ""), "admin": b.want(200, "GET", x, "")} {
		for _, want := range []string{" UTC by the team: it breaks on &lt;phones&gt;</bdi></span></th>", "<bdi>Arm green removed</bdi>", "by <bdi>" + who + "</bdi>",
			"Share of units in it 50 %", "<q><bdi>half is enough</bdi></q>", "stocktaking", "the sale begins"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %s in %s", who, want, page)
			}
		}
		if who == "the team" && strings.Contains(page, "admin") {
			t.Error("everybody sees who did it")
		}
	}
	if journal := w.want(200, "GET", "/v1/audit", ""); !strings.Contains(journal, `"reason":"half is enough"`) {
		t.Error(journal)
	}
	w.want(400, "PATCH", "/v1"+x, `{"reason": "nothing is to change"}`)
	w.want(200, "POST", "/v1"+x+"/stop", `{"keep": "blue", "now": true, "confirm": "shop", "reason": "blue is enough"}`)
	if page := anybody.want(200, "GET", x, ""); !strings.Contains(page, "UTC by the team: blue is enough</bdi></span></th>") {
		t.Error(page)
	}
}

// When a unit is erased or looked up nobody sees: a page is not made again for it, and has no line of it.
func TestNoPageTellsOfUnits(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", shop)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	w.decide("zoe")
	acts := func() int {
		info, err := w.engine.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		return info.Acts
	}
	before := acts()
	w.want(200, "GET", "/v1/experiments/shop/units/zoe", "")
	w.want(204, "DELETE", "/v1/experiments/shop/units/zoe", "")
	if n := acts(); n != before {
		t.Errorf("a page sees %d acts, and %d before a unit was looked up and erased", n, before)
	}
	if w.want(200, "POST", "/v1/experiments/shop/pause", ""); acts() == before {
		t.Error("a page does not see that the experiment was paused")
	}
}

// An arm that was taken off for good is not proposed to be kept, nor one of those to choose.
func TestStopKeepsNoArmThatIsOff(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("[{name: red", "[{name: green}, {name: red",
		"dp-klucb, first: 8", "dp-klucb").Replace(shop))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	b := w.login(w.key)
	b.want(303, "POST", "/experiments/shop/off", form("confirm", "shop", "arm", "green"))
	w.pass(time.Minute)
	if info, _ := w.engine.Get(t.Context(), "shop"); !info.Arms[0].Off {
		t.Fatal("it is on")
	}
	for _, do := range []string{"stop", "off"} {
		if ask := b.want(200, "GET", "/experiments/shop/"+do, ""); strings.Contains(ask, "green") ||
			!strings.Contains(ask, "red</option>") || !strings.Contains(ask, "blue</option>") {
			t.Error(ask)
		}
	}
}

// How to send visitors is said before the first and after, by a program and in a page, to who may make keys alone.
func TestSendVisitorsStays(t *testing.T) {
	w := shopOpen(t)
	b := w.login(w.key)
	said := func(page, open string) bool {
		return strings.Contains(page, `<details id="ask"`+open+`>`) && strings.Contains(page, "/v1/experiments/shop/decisions\n") &&
			strings.Contains(page, "/sotto.js?key=…") && strings.Contains(page, "await decide('shop'")
	}
	if page := b.want(200, "GET", "/experiments/shop", ""); !said(page, " open data-new") {
		t.Error(page)
	}
	w = shopOpen(t) // a page that was drawn is kept for a while
	w.decide("ann")
	w.pass(time.Minute)
	if page := w.login(w.key).want(200, "GET", "/experiments/shop", ""); !said(page, "") {
		t.Error(page)
	}
	if page := (&browser{w: w}).want(200, "GET", "/experiments/shop", ""); strings.Contains(page, `id="ask"`) {
		t.Error(page)
	}
}

// A removal is offered where the service takes it: not of the last arm, and not of an A/B test, and then the page says
// why.
func TestTakeOffIsOfferedWhereItCanBe(t *testing.T) {
	w := shopOpen(t)
	b := w.login(w.key)
	offered := func(name, why string) {
		t.Helper()
		page := b.want(200, "GET", "/experiments/"+name, "")
		if got := strings.Contains(page, "/experiments/"+name+"/off"); got != (why == "") ||
			strings.Contains(page, "No arm can be removed: "+why) != (why != "") {
			t.Errorf("%s: it is offered: %v; it must say %q", name, got, why)
		}
	}
	offered("shop", "")
	b.want(303, "POST", "/experiments/shop/off", form("confirm", "shop", "arm", "red"))
	w.pass(time.Minute)
	w.pass(time.Minute) // its line is shown
	offered("shop", "one is left.")
	b.want(409, "POST", "/experiments/shop/off", form("confirm", "shop", "arm", "blue"))
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: even", "{policy: dp-klucb, first: 8}",
		"{policy: split}").Replace(shop))
	w.want(200, "POST", "/v1/experiments/even/start", "")
	offered("even", "an A/B test compares its arms until it stops.")
	b.want(409, "POST", "/experiments/even/off", form("confirm", "even", "arm", "red"))
}

// An arm that is taken off releases nothing, and the page counts no batch for it.
func TestRemovalIsNoRelease(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "[{name: red", "[{name: green}, {name: red", 1))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	b := w.login(w.key)
	released := regexp.MustCompile(`The rewards of \d+ of them were released, in \d+ batch`)
	for i := range 30 {
		w.decide(fmt.Sprint("unit ", i))
		w.pass(5 * time.Second)
	}
	w.pass(time.Minute)
	w.pass(time.Minute)
	before := released.FindString(b.want(200, "GET", "/experiments/shop", ""))
	b.want(303, "POST", "/experiments/shop/off", form("confirm", "shop", "arm", "green"))
	w.pass(time.Minute)
	w.pass(time.Minute) // its line is shown
	after := released.FindString(b.want(200, "GET", "/experiments/shop", ""))
	info, err := w.engine.Get(t.Context(), "shop")
	if err != nil || !info.Arms[0].Off || info.Batches != strings.Count(string(w.want(200, "GET",
		"/v1/experiments/shop/transcript", "")), "\n")-1 {
		t.Fatalf("%+v, %v", info, err)
	}
	if before == "" || before != after || strings.HasSuffix(after, fmt.Sprintf(" %d batch", info.Batches)) {
		t.Errorf("%q, and then %q, of %d lines", before, after, info.Batches)
	}
}

// What is wrong with a form is said at its field, by the page and by its check while it is filled
// in, and of a text with its line and column.
func TestNewIsChecked(t *testing.T) {
	w := newWorld(t)
	b := w.login(w.key)
	type answer struct {
		OK                        bool
		Field, Detail, HTML, Text string
		Line, Column              int
	}
	check := func(body string) (out answer) {
		t.Helper()
		if err := json.Unmarshal([]byte(b.want(200, "POST", "/new/check", body)), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const fine = "Nothing is missing: you can make the draft."
	if page := b.want(200, "POST", "/new", shopForm("do", "check")); !strings.Contains(page, fine) {
		t.Error(page) // who has no script asks by the button
	}
	if good := check(shopForm()); !good.OK || !strings.Contains(good.HTML, "sums alone") || good.Field != "" ||
		!strings.Contains(good.HTML, fine) {
		t.Errorf("%+v", good)
	}
	for epsilon, said := range map[string]string{"50": "protects little", "0.001": "for long", "1": ""} {
		good := check(shopForm("epsilon", epsilon))
		if !good.OK || !strings.Contains(good.HTML, said) || said == "" && strings.Contains(good.HTML, "At ε") {
			t.Errorf("%s: %+v", epsilon, good)
		}
	}
	for _, c := range []struct{ name, value, field, detail string }{
		{"name", "", "name", ""}, {"name", "Shop!", "name", ""}, {"arms", "red", "arms", "must be from 2"},
		{"arms", "red\nred", "arms", ""}, {"policy", "nothing", "policy", ""}, {"epsilon", "-1", "epsilon", ""},
		{"epsilon", "NaN", "epsilon", "must be a number"},
		{"epsilon", "1}\nwebhook: http://x", "epsilon", "must be a number"},
		{"epsilon", "", "epsilon", ""}, {"epsilon", "1e999", "epsilon", "must be a number"},
		{"unit", "", "unit", ""}, {"assignments", "0.5", "assignments", ""},
		{"assignments", "-3", "assignments", ""},
		{"low", "2", "low", ""}, {"default", "7", "default", ""}, {"window", "soon", "window", ""},
		{"window", "0s", "window", ""}, {"floor", "1", "floor", ""}, {"traffic", "-1", "traffic", ""},
		{"public", "perhaps", "public", ""}, {"risk", "0.05", "policy", "best-arm"},
		{"horizon", "0", "horizon", ""}, {"per_person", "some", "per_person", "must be a number"},
		{"per_person", "0.5", "per_person", ""}, {"per_person", "0", "per_person", "too small"},
		{"keep", "green", "keep", "green"},
	} {
		got := check(shopForm(c.name, c.value))
		if got.OK || got.Field != c.field || !strings.Contains(got.Detail, c.detail) || got.Detail == "" ||
			strings.Contains(got.HTML, fine) {
			t.Errorf("%s %q: %+v", c.name, c.value, got)
		}
		if page := b.want(400, "POST", "/new", shopForm(c.name, c.value, "do",
			"create")); !strings.Contains(page,
			`role="alert"`) {
			t.Errorf("%s %q: %s", c.name, c.value, page)
		}
	}
	bad := check(form("text", "name: shop\narms: [red, blue]\npolicy: {policy: "+
		"dp-klucb}\nbudget: {epsilon: 1}\n"+
		"unit: {of: person}\nwindow: 1m\nfloor: 2\n"))
	if bad.OK || bad.Line != 7 || bad.Column < 7 || !strings.Contains(bad.HTML, "line 7") {
		t.Errorf("%+v", bad)
	}
	if len(w.engine.List(t.Context())) != 0 {
		t.Error("something was made")
	}
}

// The first field that is missing is the one that is named, with all that are; what is there is read all the same.
func TestNewNamesWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	b := w.login(w.key)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: first", 1))
	for _, c := range []struct{ form, field, detail, missing string }{
		{form(), "goal", "is missing", "Goal, Name, Arms, Window, A unit is a, Budget of a unit, ε"},
		{shopForm("name", "", "arms", ""), "name", "is missing", "Name, Arms"},
		{shopForm("name", "", "epsilon", "0"), "name", "is missing", "Name"},
		{shopForm("policy", ""), "goal", "is missing", "Goal"},
		{shopForm("arms", "", "values", "red = 1", "keep", "red"), "arms", "is missing", "Arms"},
		{shopForm("name", "Shop!", "arms", ""), "name", "must be at most", "Arms"},
		{shopForm("name", "", "window", "soon"), "name", "is missing", "Name"},
		{shopForm("policy", "dp-sed"), "risk", "is missing", "Risk"},
		{shopForm("name", "first"), "name", "the name is taken", ""},
		{shopForm("name", "first", "arms", ""), "name", "the name is taken", "Arms"},
		{form("text", strings.Replace(shop, "name: shop", "name: first", 1)), "name", "the name is taken", ""},
		{shopForm("goal", "earn", "policy", "split"), "policy", "must be one for your goal", ""},
		{shopForm("goal", "decide"), "policy", "must be one for your goal", ""},
		{shopForm("goal", "win"), "goal", "must be earn or decide", ""},
		{shopForm("metrics", "basket = 0, 200, 0.5\nclicks"), "metrics", "line 2 must be", ""},
		{shopForm("metrics", "basket = 0, 200, 0"), "metrics", "above 0", ""},
		{shopForm("metrics", "basket = 2, 1, 1"), "metrics", "", ""},
		{shopForm("metrics", "basket = 1, 2, 0.5"), "", "", ""},
		{shopForm("goal", "decide", "policy", "", "effect", "0.02", "rate", "0.1", "floor", "0.05"), "", "", ""},
		{shopForm("goal", "earn", "policy", "", "effect", "0.02", "rate", "0.1", "floor", "0.05"), "", "", ""},
		{shopForm("goal", "decide", "policy", "dp-sed", "risk", "0.05"), "", "", ""},
	} {
		var got struct {
			OK, Taken     bool
			Field, Detail string
			Missing       []string
		}
		if err := json.Unmarshal([]byte(b.want(200, "POST", "/new/check", c.form)), &got); err != nil {
			t.Fatal(err)
		}
		if got.Field != c.field || !strings.Contains(got.Detail, c.detail) || strings.Join(got.Missing, ", ") != c.missing ||
			got.OK != (c.field == "") || got.Taken != (c.detail == "the name is taken") {
			t.Errorf("%s: %+v, must be %s: %s, missing %s", c.form, got, c.field, c.detail, c.missing)
		}
	}
}

// All that is wrong is said at once, each at its field, and the first has the focus; nothing is said of what goes by a
// field that is wrong.
func TestNewSaysAllThatIsWrong(t *testing.T) {
	w := newWorld(t)
	b := w.login(w.key)
	w.want(201, "POST", "/v1/experiments", shop)
	for _, c := range []struct{ form, fields string }{
		{shopForm("policy", "", "arms", "red", "values", "blue = 1", "window", "soon", "epsilon", "0", "rate", "much"),
			"goal name arms values window epsilon rate"},
		{shopForm("name", "other", "low", "5", "high", "3", "default", "4", "floor", "2"), "low floor"},
		{shopForm("name", "Other!", "unit", "", "assignments", "0"), "name unit assignments"},
		{shopForm("name", "other", "policy", "nothing", "risk", "0.05"), "policy"},
		{shopForm("name", "other", "arms", "red", "keep", "blue", "traffic", "-1"), "arms traffic"},
	} {
		var got struct {
			Wrong []struct{ Field, Detail string }
		}
		if err := json.Unmarshal([]byte(b.want(200, "POST", "/new/check", c.form)), &got); err != nil {
			t.Fatal(err)
		}
		var fields []string
		out := b.do("POST", "/new", c.form+"&do=create")
		page := out.Body.String()
		for _, one := range got.Wrong {
			fields = append(fields, one.Field)
			if at := regexp.MustCompile(`id="` + one.Field + `-error">[^<]`); !at.MatchString(page) || !strings.Contains(page, `<a href="#`+one.Field+`">`) {
				t.Errorf("%s is not wrong in %s", one.Field, page)
			}
		}
		if strings.Join(fields, " ") != c.fields {
			t.Errorf("%s: wrong are %v, must be %s", c.form, got.Wrong, c.fields)
		}
		if focus := regexp.MustCompile(`name="(\w+)"[^>]* autofocus`).FindAllStringSubmatch(page, -1); c.fields != "policy" && (len(focus) != 1 ||
			focus[0][1] != strings.Fields(c.fields)[0]) {
			t.Errorf("the focus is on %v, must be on the first of %s", focus, c.fields)
		}
	}
}

// Who goes on with the text has all that was typed, also what is wrong.
func TestNewLosesNothing(t *testing.T) {
	w := newWorld(t)
	b := w.login(w.key)
	for _, c := range [][]string{
		{"epsilon", "0"}, {"epsilon", "much"}, {"name", ""}, {"arms", ""}, {"values", "red #c00"}, {"metrics", "basket 7"},
		{"shares", "red half"}, {"floor", "none"}, {"effect", "0.025"}, {"rate", "0.15"}, {"traffic", "many"}, {"per_person", "few"},
		{"keep", "green"}, {"default", "seven"}, {"horizon", "long"}, {"risk", "some"}, {"goal", "decide"},
	} {
		for _, do := range []string{"text", "check", "create"} {
			if do == "create" && (c[0] == "effect" || c[0] == "rate") {
				continue // nothing is wrong
			}
			out := b.do("POST", "/new", shopForm(append(c, "do", do)...))
			for _, typed := range []string{c[1], "&lt;color&gt;", "blue", "1m"} {
				if typed == "blue" && c[0] == "arms" || typed == "decide" && do == "text" {
					continue
				}
				for word := range strings.FieldsSeq(typed) {
					if !strings.Contains(out.Body.String(), word) {
						t.Errorf("%s, %s: %q is lost: %s", do, c, word, out.Body)
					}
				}
			}
		}
	}
	if got := len(w.engine.List(t.Context())); got != 0 {
		t.Errorf("%d were made", got)
	}
}

// A forecast says when there is a leader, when the page is conclusive, and what that costs; it follows from the form
// alone, so it is the same whatever people reported.
func TestNewForecast(t *testing.T) {
	testkit.RacedBefore(t)
	w := newWorld(t)
	b := w.login(w.key)
	ask := func(more ...string) string {
		t.Helper()
		var got struct{ HTML string }
		for range 5 { // it has six seconds, which a busy machine may not give it
			body := b.want(200, "POST", "/new/forecast", shopForm(append([]string{"name", "other", "policy", "", "traffic", "2000",
				"window", "1h"}, more...)...))
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.HTML, "too long to forecast") {
				break
			}
		}
		return got.HTML
	}
	split := []string{"goal", "decide", "rate", "0.4", "effect", "0.2"}
	before := ask(split...)
	for _, want := range []string{"best arm earns 0.6 a decision and the others 0.4", "<dt>First leader</dt>", "<dt>Conclusive</dt><dd>in half of the runs after ",
		"<dt>Cost</dt><dd>about 5600 rewards", "at most ε = 1 per person", "sotto plan live other.yaml --traffic 2000/day --gap 0.2 --best 0.6"} {
		if !strings.Contains(before, want) {
			t.Errorf("%q is not in %s", want, before)
		}
	}
	for _, c := range []struct {
		more []string
		want string
	}{
		{[]string{"goal", "earn"}, "Say which difference matters"}, {[]string{"goal", "earn", "traffic", "", "effect", "0.1"}, "Say how many decisions"},
		{[]string{"goal", "decide", "effect", "0.2", "rate", "0.9"}, "must be in the range"}, {[]string{"epsilon", "0"}, ""},
		{[]string{"goal", "earn", "traffic", "1000000", "window", "24h", "effect", "0.1"}, "take too long"},
		{[]string{"goal", "earn", "traffic", "50000", "rate", "0.4", "effect", "0.003"},
			"not within the 5 days that can be simulated here, in more than half"},
		{[]string{"goal", "decide", "low", "-1e300", "high", "1e300", "effect", "1e299"}, "so large a range are not simulated"},
	} {
		if got := ask(c.more...); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %s", c.more, got)
		}
	}
	if page := b.want(200, "POST", "/new", shopForm(append(split, "name", "other", "policy", "", "traffic", "2000", "window", "1h",
		"do", "check")...)); !strings.Contains(page, "<dt>Conclusive</dt>") {
		t.Error("without script there is no forecast")
	}
	w.want(201, "POST", "/v1/experiments", shop)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	for i := range 40 {
		d := w.decide(fmt.Sprint("visitor ", i))
		w.want(200, "POST", "/v1/experiments/shop/rewards", fmt.Sprintf(`{"decision":%q,"reward":1}`, *d.Decision))
	}
	w.pass(2 * time.Minute)
	if after := ask(split...); after != before {
		t.Errorf("%s\nis not\n%s", after, before)
	}
}

// How often a person counts, and what is kept, have fields of the form: they are in the text of the declaration, and
// in what is made of it.
func TestNewWithPersonsAndAStop(t *testing.T) {
	w := newWorld(t)
	b := w.login(w.key)
	made := shopForm("unit", "device", "per_person", "3", "keep", "leader")
	if text := b.want(200, "POST", "/new", made+"&do=text"); !strings.Contains(text, "per_person: 3}") ||
		!strings.Contains(text, "stop: {keep: &#34;leader&#34;}") {
		t.Error(text)
	}
	if promise := b.want(200, "POST", "/new", made+"&do=check"); !strings.Contains(promise, "at most 3 decisions of a person") {
		t.Error(promise)
	}
	b.want(303, "POST", "/new", made+"&do=create")
	info, err := w.engine.Get(t.Context(), "shop")
	if x := info.Experiment; err != nil || x.Unit.PerPerson != 3 || x.Stop.Keep != decl.KeepLeader {
		t.Errorf("%+v, %+v, %v", x.Unit, x.Stop, err)
	}
	if text := b.want(200, "POST", "/new", shopForm("do", "text")); strings.Contains(text, "per_person") || strings.Contains(text, "stop:") {
		t.Error(text)
	}
}

// Values of arms have a field of the form: text, or JSON. Without one an arm is shown by its name.
func TestNewWithValues(t *testing.T) {
	w := newWorld(t)
	b := w.login(w.key)
	arms := "red\nblue\nx = y\nsmall\nbare"
	b.want(303, "POST", "/new", shopForm("arms", arms, "do", "create", "values", "\r\n blue = #00c: {\"x\" # \r\n\r\n"+
		"red={\"a\":[1,null,\"\\ud83d\\ude00\\/\"],\"b\":{}}\nx = y = \"3\"\nsmall = 1.50"))
	for arm, want := range map[string]string{"blue": `"#00c: {\"x\" #"`, "red": `{"a":[1,null,"😀/"],"b":{}}`,
		"x = y": `"3"`, "small": "1.50", "bare": `"bare"`} {
		got := w.want(200, "POST", "/v1/experiments/shop/decisions", fmt.Sprintf(`{"force":%q}`, arm))
		if !strings.Contains(got, `"value":`+want+`,`) {
			t.Errorf("%s: %s, want %s", arm, got, want)
		}
	}
	for values, line := range map[string]int{"#c00": 1, "red = 1\n\nredder = 2": 3, "blue =": 1,
		"red = 1\nblue = 2\nred = 3": 3, "= 3": 1, "blue = " + strings.Repeat("x", 1<<16+1): 0} {
		page := b.want(400, "POST", "/new", shopForm("name", "other", "values", values, "do", "create"))
		_, field, _ := strings.Cut(page, `id="values-error">`)
		if said, _, _ := strings.Cut(field, "<"); line > 0 && !strings.HasPrefix(said, fmt.Sprintf("line %d ", line)) ||
			line == 0 && !strings.Contains(said, "65536") {
			t.Errorf("%.20q: %q", values, said)
		}
	}
}

// Keys are made, shown once, and revoked when their name was typed.
func TestKeysByForm(t *testing.T) {
	w := newWorld(t)
	b := w.login(w.key)
	w.want(201, "POST", "/v1/experiments", shop)
	b.want(400, "POST", "/keys", form("name", "server"))
	b.want(400, "POST", "/keys", form("scope-read", "on"))
	b.want(400, "POST", "/keys", form("name", "page", "scope-browser", "on"))
	b.want(400, "POST", "/keys", form("name", "app", "experiment", "shop", "scope-read", "on"))
	b.want(404, "POST", "/keys", form("name", "app", "experiment", "none", "scope-decide", "on"))
	if got := b.want(201, "POST", "/keys", form("name", "app", "experiment", "shop", "scope-decide", "on")); !strings.
		Contains(got, ", of shop alone") {
		t.Error(got)
	}
	page := b.want(201, "POST", "/keys", form("name", "<server>", "scope-decide", "on", "scope-reward", "on"))
	_, rest, _ := strings.Cut(page, "<code>sotto_")
	secret, _, _ := strings.Cut(rest, "<")
	k := w.engine.Who("sotto_" + secret)
	if k.Scopes != serve.ScopeDecide|serve.ScopeReward || k.Name != "<server>" ||
		strings.Contains(page, "<server>") {
		t.Errorf("%+v %s", k, page)
	}
	if list := b.want(200, "GET", "/keys", ""); strings.Contains(list, secret) ||
		!strings.Contains(list, "&lt;server&gt;") {
		t.Error(list)
	}
	// as a page does that is loaded again
	b.want(400, "POST", "/keys", form("name", "<server>", "scope-decide", "on", "scope-reward", "on"))
	at := "/keys/" + strconv.FormatInt(k.ID, 10) + "/revoke"
	b.want(200, "GET", at, "")
	b.want(400, "POST", at, form("confirm", "server"))
	if w.engine.Who("sotto_"+secret).Scopes == 0 {
		t.Fatal("it is revoked")
	}
	b.want(303, "POST", at, form("confirm", "<server>"))
	if w.engine.Who("sotto_"+secret).Scopes != 0 {
		t.Error("it is not revoked")
	}
	for _, path := range []string{"/keys/99/revoke", "/keys/x/revoke"} {
		b.want(404, "GET", path, "")
		b.want(404, "POST", path, form("confirm", "x"))
	}
}

// Pages of the ledger and files have what the transcript has.
func TestBooks(t *testing.T) {
	w := shopOpen(t)
	for i := range 60 {
		w.decide(fmt.Sprint("unit ", i))
	}
	for range 6 {
		w.pass(time.Minute)
	}
	w.decide("one more")
	info, err := w.engine.Get(t.Context(), "shop")
	if err != nil || info.Batches < 3 {
		t.Fatal(info.Batches, err)
	}
	b := w.login(w.key)
	read := func(name string) (rows []map[string]string) {
		t.Helper()
		out := b.do("GET", "/experiments/shop/"+name+".csv", "")
		all, err := csv.NewReader(out.Body).ReadAll()
		if err != nil || out.Code != 200 ||
			!strings.HasPrefix(out.Header().Get("Content-Disposition"), "attachment") {
			t.Fatal(name, out.Code, out.Header(), err)
		}
		for _, cells := range all[1:] {
			row := map[string]string{}
			for i, c := range cells {
				row[all[0][i]] = c
			}
			rows = append(rows, row)
		}
		return rows
	}
	sum := func(rows []map[string]string, column string, where ...string) (total int) {
		for _, r := range rows {
			if n, err := strconv.Atoi(r[column]); err == nil && (len(where) == 0 || r[where[0]] == where[1]) {
				total += n
			}
		}
		return total
	}
	hours, ledger, batches := read("hours"), read("ledger"), read("batches")
	for i, arm := range []string{"red", "blue"} {
		a := info.Arms[i]
		if n := sum(hours, "decisions", "arm", arm); n != a.Decisions {
			t.Errorf("%d of %s by hour, must be %d", n, arm, a.Decisions)
		}
		if n := sum(ledger, "n", "arm", arm); n != a.Released {
			t.Errorf("%d of %s on the ledger, must be %d", n, arm, a.Released)
		}
		if n := sum(batches, "n "+arm, "what", "batch") + sum(batches, "n "+arm, "what", "ahead"); n != a.Released {
			t.Errorf("%d of %s in batches, must be %d", n, arm, a.Released)
		}
		if n := sum(batches, "n "+arm, "what", "open"); n != a.Decisions-a.Released {
			t.Errorf("%d of %s are open, must be %d", n, arm, a.Decisions-a.Released)
		}
	}
	if len(batches) != info.Batches+1 || ledger[0]["mechanism"] != "laplace" ||
		ledger[0]["cost"] != "epsilon=1" ||
		ledger[0]["scale"] != "1" || ledger[0]["slot"] != "0" {
		t.Errorf("%v\n%v", batches, ledger)
	}
	if got := b.want(200, "GET", "/experiments/shop/transcript.jsonl", ""); got !=
		w.want(200, "GET", "/v1/experiments/shop/transcript", "") {
		t.Error("it is another transcript")
	}
	page := b.want(200, "GET", "/experiments/shop/ledger", "")
	if n := strings.Count(page, "<td>laplace</td>"); n != len(ledger) {
		t.Errorf("%d entries, must be %d: %s", n, len(ledger), page)
	}
	second := b.want(200, "GET", "/experiments/shop/ledger?from=2", "")
	if n := strings.Count(second, "<td>laplace</td>"); n != len(ledger)-sum(ledger[:2], "line") {
		t.Errorf("%d entries from line 2 on: %s", n, second)
	}
	for _, bad := range []string{"0", "-1", "x", "1e9"} {
		b.want(400, "GET", "/experiments/shop/ledger?from="+bad, "")
	}
	b.want(200, "GET", "/experiments/shop/ledger?from=1000000", "")
}

// Each route is for whom its table says: nobody writes without an admin's key, nobody's page of
// another origin does, and unknown experiments are not found.
func TestPageRoutes(t *testing.T) {
	w := shopOpen(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: secret",
		"public: true", "").
		Replace(shop))
	secret, _, err := w.engine.NewKey(t.Context(), "reader", serve.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	anybody, reader, admin := &browser{w: w}, w.login(secret), w.login(w.key)
	open := map[string]bool{"GET /{$}": true, "GET /login": true, "POST /login": true, "POST /logout": true,
		"GET /assets/{file...}": true, "GET /help/{$}": true, "GET /help/{file}": true, "GET /login/issuer": true, "GET /login/callback": true}
	if help := anybody.want(200, "GET", "/help/serve.md", ""); !strings.Contains(help, `<h2 id="start">Start</h2>`) {
		t.Error(help)
	}
	anybody.want(303, "GET", "/help/", "")
	for _, none := range []string{"none.md", "%2e", "..%2fREADME.md"} {
		anybody.want(404, "GET", "/help/"+none, "")
	}
	reads := map[string]bool{"GET /experiments/{name}": true, "GET /experiments/{name}/ledger": true,
		"GET /experiments/{name}/events": true, "GET /experiments/{name}/report": true, "GET /account": true}
	for _, file := range []string{"transcript.jsonl", "ledger.csv", "hours.csv", "batches.csv"} {
		reads["GET /experiments/{name}/"+file] = true
		reader.want(200, "GET", "/experiments/secret/"+file, "")
	}
	reads["GET /experiments/{name}/model.json"] = true // which this one does not have
	reader.want(409, "GET", "/experiments/secret/model.json", "")
	for pattern := range w.front.pageTable() {
		method, path, _ := strings.Cut(pattern, " ")
		if open[pattern] {
			continue
		}
		of := func(name string) string {
			return strings.NewReplacer("{name}", name, "{id}", "77").Replace(path)
		}
		anybody.want(401, method, of("secret"), "")
		anybody.want(401, method, of("nothing"), "")
		if !reads[pattern] {
			reader.want(403, method, of("secret"), "")
			anybody.want(401, method, of("shop"), "")
		}
		if method == http.MethodPost {
			admin.want(403, method, of("shop"), "", "Sec-Fetch-Site", "cross-site")
			if path != "/keys/{id}/revoke" {
				admin.want(415, method, of("shop"), "", "Content-Type", "application/json")
				admin.want(413, method, of("shop"), "x="+strings.Repeat("a", 300_000))
				admin.want(400, method, of("shop"), "nothing=1")
			}
		}
		if strings.Contains(path, "{name}") && method == http.MethodGet {
			admin.want(404, method, of("nothing"), "")
		}
	}
	if info, err := w.engine.Get(t.Context(), "shop"); err != nil || info.State != serve.Running {
		t.Error(info.State, err)
	}
	admin.want(404, "POST", "/experiments/nothing/start", "")
	admin.want(404, "POST", "/experiments/nothing/stop", form("confirm", "nothing"))
}
