package page

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
)

const front = `
name: front
contextual:
  context: {device: {values: [phone, desktop]}}
  action: {topic: {values: [news, sport]}}
  cross: [{of: [device, topic]}]
  actions: 5
  mode: apprentice
  rules:
    - {name: product, play: first, clip: 2, budget: {rho: 0.05}}
    - {name: learner, play: policy, clip: 20, budget: {rho: 0.05}}
    - {name: seven, play: {id: article-7}, clip: 25, budget: {rho: 0.05}}
policy: {policy: adac-oful, greed: 1, lambda: 30}
horizon: 100_000
budget: {rho: 1}
unit: {of: visit}
reward: {range: [-1, 1], default: -1}
window: 10m
floor: 0.2
`

// frontInfo is how such an experiment is after 80 released decisions of 100.
func frontInfo(t *testing.T) serve.Info {
	t.Helper()
	x, err := decl.Reader{}.Parse("front", []byte(front))
	if err == nil {
		err = x.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	earned := func(name string, clip, sum float64) play.Earned {
		return play.Earned{Name: name, Clip: clip, Lo: -1, Hi: 1, N: 80000, Releases: 3, Sum: sum,
			Weights: 80000 / clip, Squares: 80000 / clip, Noise: privacy.Gaussian{Sigma: math.Sqrt(10)}}
	}
	return serve.Info{Experiment: *x, State: serve.Running, Keep: -1, Batches: 4, Lines: 5, Tip: "abc",
		Contextual: &serve.ContextualInfo{Decisions: 100000, Released: 80000, Releases: 3, Dim: 10, Norm: 2,
			Rules: []play.Earned{earned("product", 2, 20000), earned("learner", 20, 2400),
				{Name: "seven", Clip: 25,
					Lo: -1, Hi: 1}}}}
}

// What is shown in the place of arms: estimates within their intervals, which is too
// low, and the gain.
func TestContexts(t *testing.T) {
	info := frontInfo(t)
	c := contextsOf(info)
	if c == nil || !c.Apprentice || c.Actions != 5 || c.Dim != 10 || c.Norm != 2 ||
		c.Releases != 3 || len(c.Rules) != 3 {
		t.Fatalf("%+v", c)
	}
	// 2·20000/80000 = 0.5 of [−1,1] is 0, and 20·2400/80000 = 0.6 is 0.2.
	for i, want := range []float64{0, 0.2} {
		r := c.Rules[i]
		if r.Estimate == nil || math.Abs(*r.Estimate-want) > 1e-9 || r.Interval == nil ||
			r.Interval[0] >= want ||
			r.Interval[1] <= want || r.Interval[0] < -1 || r.Interval[1] > 1 || r.Released != 80000 {
			t.Errorf("%+v, want %v", r, want)
		}
	}
	// Weights go up to 5/0.2 = 25 for what is not given, and to 1/(0.8 + 0.04) for what is.
	if c.Rules[0].Low || !c.Rules[1].Low || c.Rules[2].Low {
		t.Errorf("%+v", c.Rules)
	}
	if r := c.Rules[2]; r.Estimate != nil || r.Interval != nil || r.Plays != "the action article-7" {
		t.Errorf("nothing was released, and %+v", r)
	}
	g := c.Gain
	// the learner's weights are clipped: it may earn as much as there is
	if g == nil || g.Of != "learner" || g.Over != "product" || math.Abs(*g.Estimate-0.2) > 1e-9 ||
		g.Interval[0] != c.Rules[1].Interval[0]-c.Rules[0].Interval[1] ||
		g.Interval[1] != 1-c.Rules[0].Interval[0] || !g.Low || g.Text() != "+0.20 or more" {
		t.Errorf("%+v, %s", g, g.Text())
	}
	for i, clip := range []float64{1, 25} { // now only the first action's are
		info.Experiment.Contextual.Rules[i].Clip, info.Contextual.Rules[i].Clip = clip, clip
	}
	c = contextsOf(info)
	if g := c.Gain; g.Low || g.Interval[0] != c.Rules[1].Interval[0]-1 ||
		g.Interval[1] != c.Rules[1].Interval[1]-c.Rules[0].Interval[0] || g.Text() != "+1.00" {
		t.Errorf("%+v, %s", g, g.Text())
	}
	joint := frontInfo(t)
	joint.Experiment.Contextual.Protect, joint.Experiment.Contextual.Rules = decl.ProtectJoint, nil
	if a, b := c.Protects, contextsOf(joint).Protects; !strings.HasPrefix(a, "Rewards alone") ||
		!strings.HasPrefix(b, "Contexts, features and rewards") {
		t.Errorf("%s; under joint privacy %s", a, b)
	}
	if c := contextsOf(serve.Info{}); c != nil {
		t.Errorf("of arms: %+v", c)
	}
}

// The best of the other rules is that with the highest estimate, and the interval is over whichever is best.
func TestOverTheBestRule(t *testing.T) {
	x := [2]float64{0.3, 0.5}
	rule := func(name string, mean, lo, hi float64) Rule {
		return Rule{Name: name, Estimate: &mean, Interval: &[2]float64{lo, hi}}
	}
	rules := []Rule{rule("learner", 0.4, x[0], x[1]), rule("first", 0.2, 0.1, 0.35), rule("any", 0.28, 0.22, 0.4),
		rule("seven", 0.25, 0.2, 0.28)}
	declared := []decl.Rule{{Play: decl.PlayPolicy}, {Play: decl.PlayFirst}, {Play: decl.PlayUniform}, {ID: "7"}}
	g := bestOf(rules, declared, 1)
	if g == nil || g.Of != "learner" || g.Over != "any" || math.Abs(*g.Estimate-0.12) > 1e-12 ||
		g.Interval[0] != x[0]-0.4 || g.Interval[1] != x[1]-0.22 {
		t.Errorf("%+v", g)
	}
	if rules[3].Low = true; bestOf(rules, declared, 1).Interval[0] != x[0]-1 {
		t.Error("a rule that may earn more than its interval says is held to it")
	}
	if g := bestOf(rules[:2], declared[:2:2], 1); g == nil || g.Over != "first" {
		t.Errorf("%+v", g)
	}
	if bestOf(rules[1:], declared[1:], 1) != nil || bestOf(rules[:1], declared[:1], 1) != nil {
		t.Error("nothing to compare with, and it is compared")
	}
	rules[1].Interval = nil
	if g := bestOf(rules, declared, 1); g == nil || g.Interval != nil || g.Text() != "–" {
		t.Errorf("%+v", g)
	}
}

// The page of an experiment with contexts says what is not protected, and nothing by action; what
// is of arms alone cannot be done there.
func TestContextsPage(t *testing.T) {
	info := frontInfo(t)
	r, err := reportOf(info)
	if err != nil {
		t.Fatal(err)
	}
	if r.Released != 80000 || len(r.Arms) != 0 || r.Contexts == nil {
		t.Errorf("%+v", r)
	}
	v := viewOf(info, r)
	p := New(Config{})
	defer p.Close()
	for name, want := range map[string][]string{
		"live-state": {"&#43;0.20 or more</p>", "Rewards alone are protected",
			"what learner would have won over product", "vectors of 10 components",
			"The first action is given", `data-decisions="100000"`, "in 3 releases"},
		"live-arms": {"learner", "0.200 or more", "the first action", "the action article-7", "ρ = 0.05"},
		"live-privacy": {"contexts, features, ids of actions and what was decided are not protected",
			"ρ = 1.15"},
	} {
		var b bytes.Buffer
		if err := p.templates["experiment.html"].ExecuteTemplate(&b, name, v); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s has no %q:\n%s", name, text, b.String())
			}
		}
		if strings.Contains(b.String(), "Leader") {
			t.Errorf("%s has a leader", name)
		}
	}
	var b bytes.Buffer
	shown := Shown{Frame{Who: Who{Admin: true}}, v, &Data{Arms: []string{"decisions"}},
		operationsOf(Who{Admin: true}, v), "{}", nil}
	if err := p.templates["experiment.html"].ExecuteTemplate(&b, "layout", shown); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "/off") || strings.Contains(text, "declare a winner") ||
		!strings.Contains(text, "Nothing is shown by action") {
		t.Error(text)
	}
	if q := queuesOf(info); len(q) != 1 || q[0] != (queue{"decisions", 100000, 80000}) {
		t.Errorf("%+v", q)
	}
	var html bytes.Buffer
	if err := r.page([]byte("{}")).WriteHTML(&html); err != nil ||
		!strings.Contains(html.String(), "article-7") {
		t.Error(err)
	}
	for state, want := range map[serve.State]string{serve.Paused: "paused: everybody gets the first action",
		serve.Stopped: "stopped: everybody gets the first action"} {
		info.State = state
		if _, says := stateOf(info); says != want {
			t.Errorf("%s, want %s", says, want)
		}
	}
}

// The form takes the text of a declaration with contexts, and says what it promises and what had
// better be otherwise.
func TestContextsForm(t *testing.T) {
	x := frontInfo(t).Experiment
	promise, err := promiseOf(&x)
	if err != nil || !strings.Contains(promise.Queue, "9 components, blocks divided by 2") ||
		!strings.Contains(strings.Join(promise.Warnings, "\n"), "contextual.rules[1].clip: is "+
			"20, and weights go up to 25") {
		t.Errorf("%+v, %v", promise, err)
	}
}

// From events to the page: what was released of an experiment with contexts is on it, on its ledger
// and in its files; Take off is refused.
func TestContextsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		// Without a range of rewards, which is [0,1] then.
		x, err := decl.Reader{}.Parse("front", []byte(strings.Replace(front,
			"reward: {range: [-1, 1], default: -1}\n", "", 1)))
		if err == nil {
			err = e.Create(t.Context(), *x)
		}
		if err == nil {
			err = e.Start(t.Context(), "front")
		}
		if err != nil {
			t.Fatal(err)
		}
		p := New(Config{Engine: e, Problem: func(error) (int, string, string) {
			return http.StatusNotFound, "", ""
		}})
		defer p.Close()
		for n := range 200 {
			event := fmt.Sprint(n)
			_, err := e.Rank(t.Context(), "front", serve.RankAsk{Event: event,
				Context: map[string]any{"device": "phone"},
				Actions: []serve.Action{{ID: "a", Features: map[string]any{"topic": "news"}},
					{ID: "secret", Features: map[string]any{"topic": "sport"}}}})
			if err == nil {
				_, err = e.RewardEvent(t.Context(), "front", event, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		s, err := p.snapshot(t.Context(), "front")
		if err != nil {
			t.Fatal(err)
		}
		v := s.view
		if v.Decisions != 200 || v.Released == 0 || v.Batches == 0 || v.Last == nil ||
			len(v.Privacy.Entries) == 0 ||
			v.Contexts.Rules[0].Released != v.Released {
			t.Errorf("%+v, %+v", v, v.Contexts)
		}
		// Estimates are in the range of rewards, which are all 1, within the interval.
		if r := v.Contexts.Rules[0]; r.Estimate == nil ||
			!(r.Interval[0] < 1 && r.Interval[1] >= *r.Estimate) ||
			r.Interval[1] == 0 {
			t.Errorf("%+v", r)
		}
		// what the rule would have earned is drawn as it is said, up to the last release
		if p := s.data.Course[0].Points; len(s.data.Lines) != len(v.Contexts.Rules) || len(p) == 0 ||
			p[len(p)-1][3] != *v.Contexts.Rules[0].Estimate || p[len(p)-1][4] != v.Contexts.Rules[0].Interval[0] ||
			p[len(p)-1][1] != float64(v.Released) {
			t.Errorf("%v, %v", s.data.Lines, s.data.Course)
		}
		// what the policy wins over the best of the other rules is the course after theirs, and ends where the text is
		last := s.data.Course[len(s.data.Course)-1]
		if p := last.Points; last.Arm != len(v.Contexts.Rules) || len(p) == 0 || s.data.Gain == "" ||
			p[len(p)-1][3] != *v.Contexts.Best.Estimate || p[len(p)-1][4] != v.Contexts.Best.Interval[0] {
			t.Errorf("%q, %+v, %+v", s.data.Gain, last, v.Contexts.Best)
		}
		if f := v.Contexts.Effects; f == nil || len(f.Each) != 3 || f.Each[0].Interval == nil ||
			!strings.Contains(f.Says, "linear in the features") || !strings.Contains(f.Says, "those of rules do so apart") || !strings.Contains(s.fragments["live-effects"], "topic=sport") {
			t.Errorf("%+v\n%s", f, s.fragments["live-effects"])
		}
		if len(s.data.Arms) != 1 || len(s.data.Hours.Rows) == 0 || s.data.Hours.Rows[0][1] != 200 {
			t.Errorf("%+v", s.data)
		}
		of := map[string]bool{}
		for _, l := range v.Privacy.Entries {
			of[l.Of] = l.Arm == "" && l.Cost != ""
		}
		if !of["rewards"] || !of["product"] {
			t.Errorf("%+v", v.Privacy.Entries)
		}
		for _, c := range []struct {
			do   Handler
			code int
			want string
		}{{p.Experiment, 200, "Nothing is shown by action"}, {p.Hours, 200, "decisions,200"},
			{p.LedgerFile, 200, "rewards"},
			{p.BatchFile, 200, "n decisions"}, {p.Ledger, 200, "product"},
			{p.Ask("stop"), 200, "everybody gets the first action"},
			{p.Ask("stop"), 200, `<option value="policy">the best action by what was learnt</option>`},
			{p.Ask("off"), 404, ""}} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.SetPathValue("name", "front")
			w := httptest.NewRecorder()
			p.Answer(w, r, c.do)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) ||
				strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d, want %d and %q:\n%s", w.Code, c.code, c.want, w.Body)
			}
		}
		if _, html, err := p.Report(t.Context(), "front"); err != nil ||
			!strings.Contains(string(html), "learner") || !strings.Contains(string(html), "What matters") ||
			!strings.Contains(string(html), "over the best of the other rules") {
			t.Errorf("%v", err)
		}
	})
}

// Under joint privacy a page has the releases, and says what is protected then.
func TestJointLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		x, err := decl.Reader{}.Parse("clinic", []byte(`
name: clinic
contextual:
  context: {risk: {range: [0, 1], cross_only: true}}
  action: {dose: {values: [low, high]}}
  cross: [{of: [risk, dose]}]
  protect: joint
policy: {policy: lin-ucb, leaf: 10, greed: 1}
horizon: 1000
budget: {rho: 1}
unit: {of: patient}
window: 1m
floor: 0.1
`))
		if err == nil {
			err = e.Create(t.Context(), *x)
		}
		if err == nil {
			err = e.Start(t.Context(), "clinic")
		}
		for n := 0; err == nil && n < 25; n++ {
			_, err = e.Rank(t.Context(), "clinic", serve.RankAsk{Event: fmt.Sprint(n), Context: map[string]any{"risk": 0.5},
				Actions: []serve.Action{{ID: "a", Features: map[string]any{"dose": "low"}}, {ID: "b"}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		p := New(Config{Engine: e})
		defer p.Close()
		s, err := p.snapshot(t.Context(), "clinic")
		if err != nil {
			t.Fatal(err)
		}
		if v := s.view; v.Released != 20 || v.Batches != 2 || len(v.Privacy.Entries) == 0 ||
			!strings.HasPrefix(v.Contexts.Protects, "Contexts, features and rewards") ||
			v.Contexts.Effects == nil || v.Contexts.Left != "975 of 1000 decisions are left; the rewards of 5 that were made are "+
			"still to be released." {
			t.Errorf("%+v, %+v", v, v.Contexts)
		}
		if _, err := promiseOf(x); err != nil {
			t.Error(err)
		}
	})
}
