package serve

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
)

func capped(t testing.TB, text string) *PersonCap {
	t.Helper()
	c, err := ParsePersonCap(text)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// named is the shop under another name, with other lines.
func named(name string, lines ...string) string {
	text := strings.Replace(shop, "name: shop", "name: "+name, 1)
	for _, line := range lines {
		key, _, _ := strings.Cut(line, ":")
		if at := strings.Index(text, "\n"+key+":"); at >= 0 {
			end := at + 1 + strings.Index(text[at+1:], "\n")
			text = text[:at+1] + line + text[end:]
		} else {
			text += line + "\n"
		}
	}
	return text
}

// haveRelease has units come to an experiment, until it has made a release, and no other waits to be shown.
func haveRelease(t testing.TB, e *Engine, c *clock.Manual, name string) {
	t.Helper()
	for i := range 200 {
		if _, err := e.Decide(t.Context(), name, fmt.Sprint("unit ", i)); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, e, c, time.Second, 64)
	for lines, still := 0, 0; still < 3; still++ {
		settle(t, e, c, time.Second, 1)
		info, err := e.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Lines != lines {
			lines, still = info.Lines, -1
		}
	}
}

// releasesOf are the times of the lines of a transcript that release something.
func releasesOf(t testing.TB, e *Engine, name string) (at []time.Time) {
	t.Helper()
	batches, err := e.Batches(t.Context(), name, 1)
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range batches {
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Released) > 0 {
			at = append(at, b.Closed)
		}
	}
	return at
}

// Twelve experiments of a month each, one after the other at ε = 1, cost a person 12 in a year. Under a cap
// of 3 the fourth is refused, with what is spent and the day that would do.
func TestTwelveMonths(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=3/365d")})
	var last []time.Time
	for i := range 3 {
		name := fmt.Sprint("month-", i+1)
		begin(t, e, named(name))
		haveRelease(t, e, c, name)
		settle(t, e, c, 30*day, 1)
		if err := e.StopNow(t.Context(), name, "", name); err != nil {
			t.Fatal(err)
		}
		at := releasesOf(t, e, name)
		last = append(last, at[len(at)-1])
	}
	if err := e.Create(t.Context(), parse(t, named("month-4"))); err != nil {
		t.Fatal(err)
	}
	err := e.Start(t.Context(), "month-4")
	var of *decl.Error
	if !errors.Is(err, ErrPersonCap) || !errors.As(err, &of) || of.Field != "budget" {
		t.Fatalf("the fourth month: %v", err)
	}
	// A line is shown a tick after it was closed, and counts for 365 days from then on.
	free := last[0].Add(time.Second + year)
	soonest, latest := free.Format(time.RFC3339), free.Add(2*time.Second).Format(time.RFC3339)
	at := strings.Index(err.Error(), "Start it on ")
	if at < 0 {
		t.Fatalf("no day that would do: %v", err)
	}
	would, _, _ := strings.Cut(err.Error()[at+len("Start it on "):], " ")
	if would < soonest || would > latest {
		t.Errorf("%s would do, must be from %s to %s: %v", would, soonest, latest, err)
	}
	for _, part := range []string{"costs one person epsilon=1, and epsilon=4 with what counts then",
		"the cap is epsilon=3 within 365 days", "month-1 with epsilon=1 until " + would,
		"month-2 with epsilon=1 until 2002-", "month-3 with", "or later: --person-cap does not allow it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if info, err := e.Get(t.Context(), "month-4"); err != nil || info.State != Draft || info.Lines > 0 {
		t.Errorf("what was refused is %v, %v", info.State, err)
	}
	day, err := time.Parse(time.RFC3339, would)
	if err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, day.Sub(c.Now())-3*time.Second, 1)
	if err := e.Start(t.Context(), "month-4"); !errors.Is(err, ErrPersonCap) {
		t.Errorf("3 s before: %v", err)
	}
	settle(t, e, c, 3*time.Second, 1)
	if err := e.Start(t.Context(), "month-4"); err != nil {
		t.Errorf("on that day: %v", err)
	}
}

// The account is that of all that ran, also where it was archived, a unit was erased, or the program
// was killed, and of who forgets the flag.
func TestTheAccountIsKept(t *testing.T) {
	for _, restart := range []string{"no", "closed", "killed", "without the flag"} {
		t.Run(restart, func(t *testing.T) {
			c, mem := newClock(), store.NewMemory()
			cfg := Config{Store: mem.Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=2/365d")}
			e := open(t, cfg)
			again := func() {
				if restart == "closed" {
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if restart != "no" {
					other := cfg
					if restart == "without the flag" {
						other.PersonCap = nil
					}
					e = open(t, other)
				}
			}
			begin(t, e, named("a"))
			haveRelease(t, e, c, "a")
			again()
			begin(t, e, named("never-came"))
			for _, err := range []error{e.Erase(t.Context(), "a", "unit 1"), e.StopNow(t.Context(), "a", "", "a"),
				e.StopNow(t.Context(), "never-came", "", "never-came"), e.Erase(t.Context(), "a", "unit 2"), e.Archive(t.Context(), "a")} {
				if err != nil {
					t.Fatal(err)
				}
			}
			settle(t, e, c, 100*day, 1)
			again()
			got, err := e.Account(t.Context())
			if err != nil || got.Most != 1 || got.Left() != 1 || len(got.Entries) != 1 || got.Cap.String() != "unit=person,epsilon=2/365d" ||
				got.Entries[0].State != Archived || got.Entries[0].Experiment != "a" || got.Entries[0].Cap != got.Cap.String() {
				t.Fatalf("%+v, %v", got, err)
			}
			until := got.Entries[0].Until
			if at := releasesOf(t, e, "a"); until.Before(at[len(at)-1].Add(year)) || until.After(at[len(at)-1].Add(year+time.Hour)) {
				t.Errorf("it counts until %v, its last release is of %v", until, at[len(at)-1])
			}
			if err := e.Create(t.Context(), parse(t, named("b", "budget: {epsilon: 1.5}"))); err != nil {
				t.Fatal(err)
			}
			if err := e.Start(t.Context(), "b"); !errors.Is(err, ErrPersonCap) ||
				!strings.Contains(err.Error(), "Take a budget that costs at most epsilon=1, or start it on "+until.Format(time.RFC3339)) {
				t.Errorf("1.5 beside 1 of 2: %v", err)
			}
			settle(t, e, c, until.Sub(c.Now()), 1)
			if err := e.Start(t.Context(), "b"); err != nil {
				t.Errorf("when it counts no more: %v", err)
			}
		})
	}
}

// Of a layer the worst position counts: ranges that are apart do not add up, and one that is used again
// does.
func TestTheAccountOfLayers(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=2/365d")})
	most := func(want float64) {
		t.Helper()
		if got, err := e.Account(t.Context()); err != nil || got.Most != want {
			t.Errorf("one person is charged %v, must be %v: %+v, %v", got.Most, want, got.Entries, err)
		}
	}
	try := func(want error, text string) {
		t.Helper()
		x := parse(t, text)
		if err := e.Create(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), x.Name); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v", x.Name, err)
		}
	}
	try(nil, named("a", "layer: {name: checkout, from: 0, to: 0.5}"))
	try(nil, named("b", "layer: {name: checkout, from: 0.5, to: 1}", "budget: {epsilon: 1.5}"))
	most(1.5)
	try(nil, named("other", "layer: {name: cart, from: 0, to: 0.5}", "budget: {epsilon: 0.5}"))
	most(2)
	for _, name := range []string{"a", "other"} {
		haveRelease(t, e, c, name)
		if err := e.StopNow(t.Context(), name, "", name); err != nil {
			t.Fatal(err)
		}
	}
	try(nil, named("a-again", "layer: {name: checkout, from: 0, to: 0.25}", "budget: {epsilon: 0.5}"))
	most(2)
	try(ErrPersonCap, named("all", "budget: {epsilon: 0.1}"))
	try(ErrPersonCap, named("a-third", "layer: {name: checkout, from: 0.25, to: 0.5}", "budget: {epsilon: 0.6}"))
	try(nil, named("a-third-less", "layer: {name: checkout, from: 0.25, to: 0.5}", "budget: {epsilon: 0.5}"))
	most(2)
	// It is its layer's largest position that was released of, also when all is stopped.
	if err := e.StopNow(t.Context(), "b", "", "b"); err != nil { // which has released nothing
		t.Fatal(err)
	}
	most(2)
}

// An experiment that nothing bounds per person, or that counts in another currency, is refused by the
// name of what is wrong.
func TestWhatHasNoPrice(t *testing.T) {
	pure, rho := "unit=person,epsilon=3/365d", "unit=person,rho=3/365d"
	for _, test := range []struct{ cap, text, field, part string }{
		{pure, named("a", "budget: {rho: 1}"), "budget", "is rho=1, which has no price in the currency of the cap, epsilon=3"},
		{pure, named("a", "unit: {of: visit}"), "unit.of", "is visit, and nothing bounds how often one person counts: declare unit.per_person"},
		{pure, named("a", "sticky: false"), "sticky", "is false, and nothing bounds"},
		{rho, news, "contextual", "is of events, and nothing bounds"},
		{pure, named("a", "unit: {of: visit, per_person: 4}"), "budget", "costs one person epsilon=4, and epsilon=4 with what counts then"},
		{pure, named("a", "unit: {of: visit, per_person: 3}"), "", ""},
		{pure, named("a", "unit: {of: visit, per_person: 3}", "sticky: false"), "", ""},
		{pure, named("a", "unit: {of: person, assignments: 3}"), "", ""},
		{pure, named("a", "metrics: [{name: basket, range: [0, 1], default: 0, budget: {epsilon: 2.5}}]"), "budget", "costs one person epsilon=3.5"},
		{rho, named("a", "budget: {epsilon: 10}"), "budget", "costs one person rho="},
		{rho, named("a", "budget: {epsilon: 1}"), "", ""},
	} {
		e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now, PersonCap: capped(t, test.cap)})
		x := parse(t, test.text)
		if err := e.Create(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		err := e.Start(t.Context(), x.Name)
		var of *decl.Error
		if test.field == "" && err == nil {
			continue
		}
		if !errors.Is(err, ErrPersonCap) || !errors.As(err, &of) || of.Field != test.field || !strings.Contains(err.Error(), test.part) {
			t.Errorf("under %s: %v, must be of %q and say %q", test.cap, err, test.field, test.part)
		}
		got, err := e.Account(t.Context())
		if err != nil || len(got.Drafts) != 1 || !strings.Contains(got.Drafts[0].Why, test.part) {
			t.Errorf("the account says of the draft %+v, %v", got.Drafts, err)
		}
	}
}

// What ran before there was a cap counts: what has no price until it is gone.
func TestACapThatComesLater(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: c.Now})
	begin(t, e, named("visits", "unit: {of: visit}"))
	begin(t, e, named("persons", "budget: {epsilon: 4}"))
	if got, err := e.Account(t.Context()); err != nil || got.Cap != (PersonCap{}) || got.Entries != nil {
		t.Errorf("without a cap: %+v, %v", got, err)
	}
	for _, name := range []string{"visits", "persons"} {
		haveRelease(t, e, c, name)
	}
	var log bytes.Buffer
	e = open(t, Config{Store: mem.Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=3/365d"),
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	got, err := e.Account(t.Context())
	if err != nil || !math.IsInf(got.Most, 1) || got.Left() != 0 || !math.IsInf(got.Over(), 1) || len(got.Entries) != 2 ||
		!strings.Contains(got.Entries[0].Why, "unit.of") {
		t.Errorf("%+v, %v", got, err)
	}
	if err := e.Create(t.Context(), parse(t, named("next", "budget: {epsilon: 0.1}"))); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "next"); !errors.Is(err, ErrPersonCap) || !strings.Contains(err.Error(), "visits whose") ||
		!strings.Contains(err.Error(), "while it goes on") || !strings.Contains(err.Error(), "365 days more") {
		t.Errorf("beside what has no price: %v", err)
	}
	for _, name := range []string{"visits", "persons"} { // it goes on
		if err := e.StopNow(t.Context(), name, "", name); err != nil {
			t.Fatal(err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("no start was under another cap: %s", log.String())
	}
	settle(t, e, c, year+time.Minute, 1)
	if err := e.Start(t.Context(), "next"); err != nil {
		t.Error(err)
	}
}

// A cap that is raised or lowered holds for starts from then on, and the log says so. What goes on goes
// on, and the excess is shown.
func TestAnotherCap(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	var log bytes.Buffer
	at := func(cap string) *Engine {
		log.Reset()
		return open(t, Config{Store: mem.Open, Clock: c.Now, PersonCap: capped(t, cap), Log: slog.New(slog.NewTextHandler(&log, nil))})
	}
	e := at("unit=person,epsilon=3/365d")
	begin(t, e, named("a", "budget: {epsilon: 2}"))
	e = at("unit=person,epsilon=1.5/365d")
	if !strings.Contains(log.String(), "was=\"unit=person,epsilon=3/365d\" is=\"unit=person,epsilon=1.5/365d\"") {
		t.Errorf("the log says %q", log.String())
	}
	got, err := e.Account(t.Context())
	if err != nil || got.Most != 2 || got.Over() != 0.5 || got.Left() != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := e.Create(t.Context(), parse(t, named("b", "budget: {epsilon: 0.1}"))); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "b"); !errors.Is(err, ErrPersonCap) {
		t.Errorf("a start above a cap that was lowered: %v", err)
	}
	if d, err := e.Decide(t.Context(), "a", "ann"); err != nil || d.Token == "" {
		t.Errorf("what goes on: %+v, %v", d, err)
	}
	e = at("none")
	if err := e.Start(t.Context(), "b"); err != nil {
		t.Errorf("without a cap: %v", err)
	}
	e = open(t, Config{Store: mem.Open, Clock: c.Now})
	if got, err := e.Account(t.Context()); err != nil || got.Cap != (PersonCap{}) {
		t.Errorf("who forgets the flag goes by the last start's, none: %+v, %v", got, err)
	}
}

// A cap is kept from the first start under it, whatever became of that.
func TestACapOfWhatCameToNothing(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=3/365d")})
	begin(t, e, named("a"))
	if err := e.StopNow(t.Context(), "a", "", "a"); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, Config{Store: mem.Open, Clock: c.Now}).Account(t.Context())
	if err != nil || got.Cap.String() != "unit=person,epsilon=3/365d" || got.Most != 0 || got.Entries != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// A release that was durable when the program was killed is seen when it comes up again, and counts from then on.
func TestAReleaseIsSeenAfterAnOutage(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=3/365d")}
	e := open(t, cfg)
	begin(t, e, named("a"))
	for i := range 200 {
		if _, err := e.Decide(t.Context(), "a", fmt.Sprint("unit ", i)); err != nil {
			t.Fatal(err)
		}
	}
	x := mustFind(t, e, "a")
	closed := func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.pending != nil
	}
	for steps := 0; !closed(); steps++ {
		if steps > 100 {
			t.Fatal("nothing was released")
		}
		settle(t, e, c, time.Second, 1)
	}
	c.Add(30 * day)
	up := c.Now()
	e = open(t, cfg)
	if err := e.StopNow(t.Context(), "a", "", "a"); err != nil {
		t.Fatal(err)
	}
	got, err := e.Account(t.Context())
	if err != nil || len(got.Entries) != 1 || got.Entries[0].Until.Before(up.Add(year)) || got.Entries[0].Until.After(up.Add(year+2*time.Second)) {
		t.Errorf("the service came up at %v: %+v, %v", up, got.Entries, err)
	}
}

// An experiment with a start to come counts from then on, and one that goes on for ever, even where an end
// is declared: the message says what would do if it came to that.
func TestStartsToCome(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=1/10d")})
	at := func(d time.Duration) string { return c.Now().Add(d).UTC().Format(time.RFC3339) }
	begin(t, e, named("a"))
	haveRelease(t, e, c, "a")
	if err := e.StopNow(t.Context(), "a", "", "a"); err != nil {
		t.Fatal(err)
	}
	begin(t, e, named("in-11-days", "start: "+at(11*day), "end: "+at(12*day)))
	if err := e.Create(t.Context(), parse(t, named("in-20-days", "start: "+at(20*day)))); err != nil {
		t.Fatal(err)
	}
	would := "or later, if the others end as they declare"
	if err := e.Start(t.Context(), "in-20-days"); !errors.Is(err, ErrPersonCap) || !strings.Contains(err.Error(), would) {
		t.Errorf("%v", err)
	}
	if got, err := e.Account(t.Context()); err != nil || got.Most != 1 || len(got.Entries) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Of starts at once no more go through than the cap allows.
func TestStartsAtOnce(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=3/365d")})
	const n = 12
	for i := range n {
		if err := e.Create(t.Context(), parse(t, named(fmt.Sprint("x", i)))); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = e.Start(t.Context(), fmt.Sprint("x", i)) })
	}
	all.Wait()
	went := 0
	for _, err := range errs {
		if err == nil {
			went++
		} else if !errors.Is(err, ErrPersonCap) {
			t.Error(err)
		}
	}
	if got, err := open(t, Config{Store: mem.Open, Clock: c.Now}).Account(t.Context()); went != 3 || err != nil || got.Most != 3 {
		t.Errorf("%d of %d went through; %+v, %v", went, n, got, err)
	}
}

// worstYear is the most that one person lost within any 365 days, by the transcripts alone: of what had a
// release there, at the worst position.
func worstYear(t testing.TB, e *Engine) (most float64) {
	t.Helper()
	type made struct {
		x  Experiment
		at []time.Time
	}
	var all []made
	for _, info := range e.List(t.Context()) {
		if info.Lines > 0 {
			all = append(all, made{info.Experiment, releasesOf(t, e, info.Experiment.Name)})
		}
	}
	for _, m := range all {
		for _, from := range m.at {
			for p := range 4 {
				sum := 0.0
				for _, o := range all {
					in := o.x.Layer.Name == "" || o.x.Layer.From <= float64(p)/4 && float64(p)/4 < o.x.Layer.To
					if in && slices.ContainsFunc(o.at, func(at time.Time) bool {
						return !at.Before(from) && !at.After(from.Add(year))
					}) {
						sum += o.x.Budget.(privacy.Pure).Epsilon
					}
				}
				most = max(most, sum)
			}
		}
	}
	return most
}

// years has experiments come and go by chance for some years, and is what one person lost in the worst one.
func years(t testing.TB, seed uint64, broken func([]standing) []standing) float64 {
	rng, c, mem := rand.New(rand.NewPCG(seed, 7)), newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now, PersonCap: capped(t, "unit=person,epsilon=2/365d"), account: broken}
	e := open(t, cfg)
	going := map[string]bool{}
	for i := range 24 {
		name := fmt.Sprint("x", i)
		lines := []string{fmt.Sprintf("budget: {epsilon: %v}", []float64{0.5, 1, 1.5}[rng.IntN(3)])}
		if lo := rng.IntN(4); rng.IntN(2) == 0 {
			lines = append(lines, fmt.Sprintf("layer: {name: l, from: %v, to: %v}", float64(lo)/4, float64(lo+1+rng.IntN(4-lo))/4))
		}
		if err := e.Create(t.Context(), parse(t, named(name, lines...))); err != nil {
			t.Fatal(err)
		}
		switch err := e.Start(t.Context(), name); {
		case err == nil:
			haveRelease(t, e, c, name)
			going[name] = true
		case !errors.Is(err, ErrPersonCap) && !errors.Is(err, ErrState):
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(going)) {
			if rng.IntN(2) == 0 {
				continue
			}
			delete(going, name)
			if err := e.StopNow(t.Context(), name, "", name); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(2) == 0 {
				if err := e.Archive(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
		settle(t, e, c, time.Duration(rng.IntN(90))*day, 1)
		if rng.IntN(4) == 0 {
			e = open(t, cfg) // the other is killed
		}
	}
	return worstYear(t, e)
}

// In no window of 365 days more is released of one person than the cap, whatever starts, stops, is archived
// and is killed; accounts that forget are caught.
func TestNoYearIsBeyondTheCap(t *testing.T) {
	testkit.RacedBefore(t)
	const worlds = 6
	for seed := range uint64(worlds) {
		if got := years(t, seed, nil); got > 2 || got == 0 {
			t.Errorf("world %d: in one year a person lost %v, of 2", seed, got)
		}
	}
	for name, broken := range map[string]func([]standing) []standing{
		"forgets what was archived": func(all []standing) []standing {
			return slices.DeleteFunc(all, func(s standing) bool { return s.state == Archived })
		},
		"counts of layers what runs": func(all []standing) []standing {
			return slices.DeleteFunc(all, func(s standing) bool { return s.decl.Layer.Name != "" && s.last != privacy.Never })
		},
	} {
		caught := false
		for seed := range uint64(worlds) {
			caught = caught || years(t, seed, broken) > 2
		}
		if !caught {
			t.Errorf("an account that %s was not caught in %d worlds", name, worlds)
		}
	}
}

func TestParsePersonCap(t *testing.T) {
	for _, text := range []string{"unit=person,epsilon=3/365d", "unit=customer number,rho=0.5/1d", "none"} {
		if c, err := ParsePersonCap(text); err != nil || c.String() != text {
			t.Errorf("%s is read as %v, %v", text, c, err)
		}
	}
	for text, part := range map[string]string{
		"": "must be such as unit=person,epsilon=3/365d, or none", "unit=person": "must be such as",
		"unit=person,epsilon=3": "must be such as", "epsilon=3/365d": "must be such as",
		"unit=,epsilon=3/365d": "unit is \"\"", "unit= person,epsilon=3/365d": "unit is",
		"unit=person,epsilon=NaN/365d": "epsilon is NaN", "unit=person,epsilon=Inf/365d": "epsilon is +Inf",
		"unit=person,epsilon=0/365d": "epsilon is 0", "unit=person,rho=-1/365d": "rho is -1",
		"unit=person,epsilon=x/365d": "epsilon is \"x\", must be a number", "unit=person,mu=1/365d": "must be in epsilon or in rho",
		"unit=person,epsilon=1,delta=0.1/365d": "must be in epsilon or in rho", "unit=person,none/365d": "must be in epsilon or in rho",
		"unit=person,epsilon=3/0d": "window is \"0d\"", "unit=person,epsilon=3/-1d": "window is", "unit=person,epsilon=3/1.5d": "window is",
		"unit=person,epsilon=3/36501d": "must be from 1d to 36500d", "unit=person,epsilon=3/1h": "must be such as",
		"unit=person,epsilon=3/NaNd": "window is",
	} {
		if c, err := ParsePersonCap(text); err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v, must say %q", text, c, err, part)
		}
	}
}
