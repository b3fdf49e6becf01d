package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
)

// guardedShop has an arm that does harm, blue: its visitors return what they bought.
const guardedShop = `
name: shop
arms: [red, blue, green]
policy: {policy: dp-klucb, first: 40}
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 1m
floor: 0.5
metrics: [{name: returns, range: [0, 10], budget: {epsilon: 1}}]
guard: [{metric: returns, below: 5, risk: 0.01}, {metric: reward, above: 0.05, risk: 0.01}]
`

// guardedSplit is an A/B test of the same, which cannot go on without an arm.
var guardedSplit = strings.NewReplacer("{policy: dp-klucb, first: 40}", "split", "floor: 0.5\n", "").
	Replace(guardedShop)

// A guardTraffic asks and reports: visitors of blue return all of it.
type guardTraffic struct {
	e *Engine
	c *clock.Manual
	n int
}

// come has n visitors come and report, and a tick pass.
func (g *guardTraffic) come(t testing.TB, n int) (arms []string, counted int) {
	t.Helper()
	var out []Outcome
	for range n {
		d, err := g.e.Decide(t.Context(), "shop", fmt.Sprint(g.n))
		if g.n++; err != nil {
			t.Fatal(err)
		}
		if arms = append(arms, d.Name); d.Token == "" {
			continue
		}
		harm := 0.0
		if d.Name == "blue" {
			harm = 10
		}
		counted++
		out = append(out, Outcome{Report: Report{d.Token, 0.5}, Metrics: map[string]float64{"returns": harm}})
	}
	if len(out) > 0 {
		if _, err := g.e.Outcomes(t.Context(), "shop", out); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, g.e, g.c, time.Second, 1)
	return arms, counted
}

// until has visitors come until the guard has done something, and says how many decisions blue had.
func (g *guardTraffic) until(t testing.TB, done func(Info) bool) Info {
	t.Helper()
	for range 400 {
		g.come(t, 10)
		if info, err := g.e.Get(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		} else if done(info) {
			return info
		}
	}
	t.Fatal("no guard has done anything")
	return Info{}
}

func audited(t testing.TB, e *Engine) (out string) {
	t.Helper()
	lines, err := e.Audit(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for line, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		out += string(line)
	}
	return out
}

// An arm that harms is taken off as soon as a release is shown that says so, and never again given;
// what it waits for is released; the journal has it once, whatever restarts there are, and it is not what a
// stop keeps though it leads. The transcript replays, and does not without the line, or with it elsewhere.
func TestGuardRemovesAnArm(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	g := &guardTraffic{c: c, e: open(t, cfg)}
	begin(t, g.e, guardedShop+"stop: {keep: blue}\n")
	if got := mustFind(t, g.e, "shop").info(0); got.Guards().Each[0].Arms[1] != (GuardedState{"blue", nil, UnsureGuard}) {
		t.Errorf("%+v", got.Guards())
	}
	info := g.until(t, func(i Info) bool {
		if err := g.e.Close(); err != nil { // also between the release and the line
			t.Fatal(err)
		}
		g.e = open(t, cfg)
		return i.Arms[1].Off
	})
	if n := info.Arms[1].Released; n > 200 {
		t.Errorf("it took %d decisions", n)
	}
	for range 5 {
		if arms, counted := g.come(t, 20); slices.Contains(arms, "blue") || counted != 20 {
			t.Fatalf("%v is given to %d", arms, counted)
		}
	}
	told := `"did":"guard","experiment":"shop","with":"blue is past its guard of returns"`
	if all := audited(t, g.e); strings.Count(all, told) != 1 || strings.Count(all, `"guard"`) != 1 {
		t.Errorf("the journal: %s", all)
	}
	settle(t, g.e, c, time.Minute, 3)
	end := stopped(t, g.e, c, "shop", "")
	all := end.Guards()
	blue := all.Each[0].Arms[1]
	if all.Paused != "" || blue.State != RemovedGuard || blue.Interval[0] <= 5 || all.Each[0].Arms[0].State != KeepsGuard ||
		all.Each[1].Arms[1].State != KeepsGuard || end.Keep != 0 || end.Arms[1].Released != end.Arms[1].Decisions {
		t.Errorf("%+v, %+v", end, all)
	}
	text := published(t, g.e)
	r, err := Replay(strings.NewReader(text), catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(r.Guards()); string(got) != string(must(json.Marshal(all))) {
		t.Errorf("replayed: %s", got)
	}
	lines := strings.SplitAfter(text, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"off":1`) })
	for name, forged := range map[string][]string{
		"left out": slices.Delete(slices.Clone(lines), at, at+1),
		"later":    slices.Concat(lines[:at], lines[at+1:at+2], lines[at:at+1], lines[at+2:]),
		"another":  slices.Concat(lines[:at], []string{strings.Replace(lines[at], `"off":1`, `"off":2`, 1)}, lines[at+1:]),
		"a pause": slices.Concat(lines[:at], []string{strings.Replace(lines[at], `"off":1`,
			`"change":{"guard":{"arm":"blue","metrics":["returns"]}}`, 1)}, lines[at+1:]),
	} {
		_, err := Replay(strings.NewReader(relinked(forged)), catalog.Catalog{})
		if !errors.Is(err, ErrTranscript) {
			t.Errorf("%s: %v", name, err)
		}
		if err := guardedAlone(t, relinked(forged)); err == nil || !strings.Contains(err.Error(),
			"blue is past its guard of returns, and is not taken off") {
			t.Errorf("%s: guards alone: %v", name, err)
		}
	}
	if err := guardedAlone(t, text); err != nil {
		t.Error(err)
	}
}

// guardedAlone holds a transcript against its guards and its ramp, and nothing else.
func guardedAlone(t *testing.T, text string) error {
	t.Helper()
	var all []entry
	for e, err := range entries(new(Replayed).read(strings.NewReader(text))) {
		if err != nil {
			t.Fatal(err)
		}
		e.line = line{}
		all = append(all, e)
	}
	x, err := decl.Reader{Catalog: catalog.Catalog{}}.Parse("declaration", all[0].header.Declaration)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&Replayed{Started: all[0].at}).guarded(x, all)
	return err
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// An A/B test, whose shares never change, is paused: everybody gets the fallback, who had the arm too, over a
// restart, and the webhook is told. Who resumes it stands in the transcript; the guard does not pause it for
// that arm again, and what leads is not kept by itself.
func TestGuardPausesTheExperiment(t *testing.T) {
	c, mem, h := newClock(), store.NewMemory(), newHook(t, 500)
	cfg := Config{Store: mem.Open, Clock: c.Now, hookPause: time.Millisecond}
	g := &guardTraffic{c: c, e: open(t, cfg)}
	begin(t, g.e, guardedSplit+"webhook: "+h.URL+"/stopped\n")
	was, err := g.e.Decide(t.Context(), "shop", "ann")
	for n := 0; was.Name != "blue" && err == nil; n++ {
		was, err = g.e.Decide(t.Context(), "shop", fmt.Sprint("ann", n))
	}
	if err != nil {
		t.Fatal(err)
	}
	g.until(t, func(i Info) bool { return i.State == Paused })
	h.wait(t, 2)
	want := `{"experiment":"shop","state":"paused","guard":{"arm":"blue","metrics":["returns"]},"time":"`
	if got := h.bodies; len(got) != 2 || got[0] != got[1] || !strings.HasPrefix(got[0], want) {
		t.Errorf("the webhook was told %s", got)
	}
	for range 2 {
		if arms, counted := g.come(t, 20); counted != 0 || slices.ContainsFunc(arms, func(a string) bool { return a != "red" }) {
			t.Errorf("%v is given, and %d count", arms, counted)
		}
		if d, err := g.e.Decide(t.Context(), "shop", "ann"); err != nil || d.Name != "red" || d.Reason != Disabled {
			t.Errorf("%+v, %v", d, err)
		}
		if err := g.e.Close(); err != nil {
			t.Fatal(err)
		}
		g.e = open(t, cfg)
		settle(t, g.e, c, time.Second, 2)
	}
	for range 2 { // which is the same as once
		if err := g.e.Resume(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
	}
	info, _ := g.e.Get(t.Context(), "shop")
	if info.State != Paused || len(info.Changes) != 1 || info.Guards().Paused != "blue is past its guard of returns" || info.Guards().Each[0].Arms[1].State != PastGuard {
		t.Errorf("before the tick: %+v", info)
	}
	settle(t, g.e, c, time.Second, 2)
	if info, _ = g.e.Get(t.Context(), "shop"); info.Guards().Paused != "" || info.Guards().Each[0].Arms[1].State != ResumedGuard {
		t.Errorf("%+v", info.Guards())
	}
	for range 80 {
		if _, counted := g.come(t, 20); counted != 20 {
			t.Fatal("it is paused again")
		}
	}
	if err := g.e.Pause(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if err := g.e.Resume(t.Context(), "shop"); err != nil { // which is an operator's, and takes no line
		t.Fatal(err)
	}
	if info, _ = g.e.Get(t.Context(), "shop"); info.State == Paused {
		t.Error("it is not resumed at once")
	}
	if end := stopped(t, g.e, c, "shop", "leader"); end.Keep == 1 {
		t.Error("what harms is kept")
	}
	text := published(t, g.e)
	if n := strings.Count(text, `"change":{"guard"`); n != 1 || strings.Count(text, `"change":{"resume":true}`) != 1 {
		t.Errorf("it was paused %d times: %s", n, text)
	}
	if _, err := Replay(strings.NewReader(text), catalog.Catalog{}); err != nil {
		t.Error(err)
	}
	lines := strings.SplitAfter(text, "\n")
	for _, f := range []struct{ what, from, to string }{
		{"left out", `"change":{"guard":{"arm":"blue","metrics":["returns"]}}`, `"change":{"floor":0}`},
		{"another arm", `"arm":"blue"`, `"arm":"green"`}, {"another guard", `["returns"]`, `["reward"]`},
		{"resumed before", `"change":{"guard":{"arm":"blue","metrics":["returns"]}}`, `"change":{"resume":true}`},
		{"paused again", `"change":{"resume":true}`, `"change":{"guard":{"arm":"blue","metrics":["returns"]}}`},
	} {
		forged := slices.Clone(lines)
		at := slices.IndexFunc(lines[1:], func(l string) bool { return strings.Contains(l, f.from) }) + 1
		forged[at] = strings.Replace(lines[at], f.from, f.to, 1)
		if _, err := Replay(strings.NewReader(relinked(forged)), catalog.Catalog{}); !errors.Is(err, ErrTranscript) {
			t.Errorf("%s: %v", f.what, err)
		}
	}
}

// Where each arm is past a guard, none leads: a stop that keeps the leader gives the fallback, and says so.
func TestGuardLeavesNoLeader(t *testing.T) {
	c := newClock()
	g := &guardTraffic{c: c, e: open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})}
	begin(t, g.e, strings.Replace(guardedSplit, "above: 0.05", "above: 0.9", 1)+"fallback: green\n")
	g.until(t, func(i Info) bool {
		if i.State == Paused {
			if err := g.e.Resume(t.Context(), "shop"); err != nil {
				t.Fatal(err)
			}
		}
		return !slices.ContainsFunc(i.Guards().Each[1].Arms, func(a GuardedState) bool { return !a.Past() })
	})
	end := stopped(t, g.e, c, "shop", "leader")
	r, err := Replay(strings.NewReader(published(t, g.e)), catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	if end.Leader || end.Keep != 2 || r.Leader {
		t.Errorf("it keeps %d, leading: %v, %v, %+v", end.Keep, end.Leader, r.Leader, end.Guards())
	}
}

// What a guard says of an arm is not said by who changes terms.
func TestGuardsAreNotGiven(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	begin(t, e, guardedShop)
	for _, c := range []Change{{Guard: &Harm{Arm: "blue"}}, {Resume: true}} {
		if err := e.Change(t.Context(), "shop", c); !errors.Is(err, ErrState) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// judged plays arms of these means to the end, rewards and noise drawn, and says after how many decisions each
// was first past a guard; 0: never. Unless all are asked for it ends with the first that is.
func (w watch) judged(src *rand.Rand, means []float64, most int, all bool) ([]int, error) {
	b := board{queues: make([]ArmInfo, len(means)), metrics: [][]float64{make([]float64, len(means))}, watch: w.clone()}
	first := make([]int, len(means))
	const n = 50 // of each arm, in each release
	for done := n; done <= most && (all || slices.Max(first) == 0); done += n {
		for a, mean := range means {
			q := &b.queues[a]
			for _, sum := range []*float64{&q.Sum, &b.metrics[0][a]} {
				for range n {
					if src.Float64() < mean {
						*sum++
					}
				}
				*sum += src.ExpFloat64() - src.ExpFloat64() // Laplace noise of scale 1
			}
			q.Released, q.Releases, q.Noise = done, q.Releases+1, privacy.Laplace{Scale: 1}
			if err := b.judge(a); err != nil {
				return nil, err
			}
			if first[a] == 0 && b.watch.harms(a) {
				first[a] = done
			}
		}
	}
	return first, nil
}

// Arms that are just at their bounds are paused, any of them and ever, in no more runs than the guards' risks
// say; one that does harm is soon, and one that keeps away from the bound never. Guards that judge each arm at their
// full risk, or that go by the wrong end, are caught. A sound one fails with probability 1e-6 at
// most (Clopper and Pearson); seeds are fixed.
func TestGuardsKeepTheirRisk(t *testing.T) {
	testkit.OneGoroutine(t)
	names := make([]string, 80)
	for i := range names {
		names[i] = fmt.Sprint("arm", i)
	}
	x := parse(t, strings.NewReplacer("[red, blue, green]", "["+strings.Join(names, ", ")+"]", "range: [0, 10]", "range: [0, 1]",
		"below: 5, risk: 0.01", "below: 0.3, risk: 0.5", "above: 0.05, risk: 0.01", "above: 0.3, risk: 0.5").Replace(guardedShop))
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
	sound, err := newWatch(&x)
	if err != nil {
		t.Fatal(err)
	}
	const runs, most = 40, 250
	at := slices.Repeat([]float64{0.3}, len(names))
	paused := func(w watch) (lo float64) {
		src, n := rand.New(rand.NewPCG(11, 12)), 0
		for range runs {
			first, err := w.judged(src, at, most, false)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Max(first) > 0 {
				n++
			}
		}
		if lo, _, err = stats.ClopperPearson(n, runs, 1-2e-6); err != nil {
			t.Fatal(err)
		}
		return lo
	}
	if lo := paused(sound); lo > 0.5 {
		t.Errorf("arms at their bounds are paused in more than %.3f of runs", lo)
	}
	for name, change := range map[string]func(b *bound){
		"full risk": func(b *bound) { b.each = 0.5 },
		"the wrong end": func(b *bound) {
			b.Side = map[string]string{decl.Below: decl.Above, decl.Above: decl.Below}[b.Side]
			b.at += 0.2
		},
		"the mean": func(b *bound) { b.each = 0.999 },
	} {
		broken := sound.clone()
		for i := range broken.of {
			change(&broken.of[i])
		}
		if lo := paused(broken); lo <= 0.5 {
			t.Errorf("guards that go by %s are not caught: %.3f", name, lo)
		}
	}
	first, err := sound.judged(rand.New(rand.NewPCG(13, 14)), []float64{0.5, 0.3, 0.1}, 600, true)
	if err != nil || first[0] == 0 || first[0] > 300 || first[2] == 0 || first[2] > 300 || first[1] != 0 {
		t.Errorf("arms past their bounds, and one at them, are paused after %v, %v", first, err)
	}
}

// A line that pauses an experiment for an arm is about that arm alone, also where it was known before.
func TestGuardPausesForOneArm(t *testing.T) {
	x := parse(t, guardedSplit)
	b, err := newBoard(&x)
	if err != nil {
		t.Fatal(err)
	}
	b.watch.of[0].past[0], b.watch.of[0].past[1] = true, true
	first, _ := b.harmed()
	b.pauses(first)
	if err := b.changed([]byte(`{"guard":{"arm":"red","metrics":["returns"]}}`), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if next, ok := b.harmed(); !ok || next.arm != 1 || first.arm != 0 {
		t.Errorf("after arm %d comes %+v, %v", first.arm, next, ok)
	}
}
