package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// fixed is a store whose secret is known, so that two runs have the same tokens.
type fixed struct{ store.Store }

func (s fixed) Begin(ctx context.Context, holder string) (store.Opened, error) {
	o, err := s.Store.Begin(ctx, holder)
	o.Secret = [32]byte{1}
	return o, err
}

func (s fixed) Heads(ctx context.Context) (store.Heads, error) {
	h, err := s.Store.Heads(ctx)
	h.Secret = [32]byte{1}
	return h, err
}

// A saying is what one unit says: when, after its decision, and what reward.
type saying struct {
	after  time.Duration
	reward float64
}

// stopsThere ends the text of an experiment that an operator stops while the unit's window is open.
const stopsThere = "# it is stopped"

// growsThere ends the text of an experiment to which an operator adds an arm while the unit's window is open.
const growsThere = "# it grows"

// A traffic is an experiment and how its decisions are asked for and reported, by their numbers.
type traffic struct {
	name  string
	most  int           // decisions a round, below
	late  time.Duration // after which somebody else reports on theirs
	terms Change        // by an operator, in round at
	at    int
	stop  int // the round in which an operator stops it, if one does

	decide func(n int) (any, error)
	reward func(n int, reward float64) (Status, error)
	meet   func(n int, shown bool) (Status, error)
	ticket func(n int) ticket // x.mu is held
	unit   func(n int) string
}

// trafficOf is that of an experiment with arms, or with contexts.
func trafficOf(t *testing.T, e *Engine, text string) (of traffic) {
	defer func() {
		if strings.HasSuffix(text, stopsThere) {
			of.stop = of.at - 10
		}
		if strings.HasSuffix(text, growsThere) {
			of.terms.Add = []Added{{Name: "green"}}
		}
	}()
	longer, floor := 70*time.Second, 0.2
	if strings.Contains(text, "contextual:") {
		longer, floor = 12*time.Second, 0.3
		return traffic{name: "news", most: 4, late: 6 * time.Second, terms: Change{Window: &longer, Floor: &floor},
			at:     40,
			unit:   func(n int) string { return newsAsk(n).Event },
			decide: func(n int) (any, error) { return e.Rank(t.Context(), "news", newsAsk(n)) },
			reward: func(n int, r float64) (Status, error) {
				return e.RewardEvent(t.Context(), "news", newsAsk(n).Event, r)
			},
			meet: func(n int, shown bool) (Status, error) {
				if !shown { // which nobody can say
					return "", nil
				}
				return e.ActivateEvent(t.Context(), "news", newsAsk(n).Event)
			},
			ticket: func(n int) ticket {
				k, err := mustFind(t, e, "news").event(newsAsk(n).Event)
				if err != nil {
					t.Fatal(err)
				}
				return k
			}}
	}
	tokens, said, terms := map[int]string{}, map[int]int{}, Change{Window: &longer, Floor: &floor}
	if strings.Contains(text, "policy: split") {
		terms.Floor = nil
	}
	of = traffic{name: "shop", most: 3, late: 40 * time.Second, terms: terms, at: 60, unit: strconv.Itoa,
		decide: func(n int) (any, error) {
			d, err := e.DecideFor(t.Context(), "shop", Ask{Unit: fmt.Sprint(n),
				Context: map[string]any{"device": []string{"phone", "desktop", "tv"}[n/2%3]}})
			tokens[n] = d.Token
			return d, err
		},
		reward: func(n int, r float64) (Status, error) {
			if strings.Contains(text, "event:") {
				v := Event{Name: []string{"checkout", "signup"}[n/5%2], Unit: fmt.Sprint(n), Fields: map[string]float64{"value": r}}
				if n%3 == 0 {
					v.Fields["total"] = 4 * r
				}
				return Accepted, e.Track(t.Context(), []Event{v}, nil)
			}
			one := Outcome{Report: Report{tokens[n], r}}
			if said[n]++; strings.Contains(text, "aggregate") {
				one.ID = fmt.Sprint(said[n])
			}
			if strings.Contains(text, "metrics") && n%5 == 0 {
				one.Metrics = map[string]float64{"basket": 150 * r}
			}
			out, err := e.Outcomes(t.Context(), "shop", []Outcome{one})
			if err != nil {
				return "", err
			}
			return out[0].Status, out[0].Err
		},
		meet: func(n int, shown bool) (Status, error) {
			return e.Activate(t.Context(), "shop", tokens[n], shown)
		},
		ticket: func(n int) ticket {
			k, _ := newSigner(mustFind(t, e, "shop").tokenKey).read(tokens[n])
			return k
		}}
	if !strings.Contains(text, "leases:") {
		return of
	}
	of.decide = func(n int) (any, error) { return leasedDecision(t, e, fmt.Sprint(n)) }
	of.ticket = func(n int) ticket {
		k, err := mustFind(t, e, "shop").event(fmt.Sprint(n))
		if err != nil { // a broken copy has not counted it
			k.number = -1
		}
		return k
	}
	return of
}

// leasedDecision is what a client does who has the plan, and what the service says to it.
func leasedDecision(t *testing.T, e *Engine, unit string) (any, error) {
	t.Helper()
	p, _, err := e.Plan(t.Context(), "shop")
	if err != nil {
		return nil, err
	}
	arm := p.Arms[p.Decide(unit)].Arm
	if p.Reason == "" {
		err = e.Expose(t.Context(), []Exposure{{Experiment: "shop", Unit: unit, Epoch: p.Epoch, Arm: arm}}, nil)
	}
	return fmt.Sprint(p, arm), err
}

// world plays a fixed traffic in which one unit, the one of decision 30, reports as it will, and
// writes down all that anybody is told until its reward is released: decisions, tokens, the answers
// to everybody, who may ask for its decision again and report on it, the states, the lines, the
// ledger. Twin has the observer told what a broken service would tell. Where decisions count when
// they are activated, they are after two seconds, this one too, and some never.
func world(t *testing.T, twin, text string, hers []saying) string {
	t.Helper()
	const unit = 30
	c, mem, coins := newClock(), store.NewMemory(), noise.NewFast(1, 2)
	var limit *PersonCap
	if strings.Contains(text, "of: person") {
		limit = capped(t, "unit=person,epsilon=2/365d")
	}
	came := false // their reward
	e, err := Open(t.Context(), Config{
		PersonCap: limit,
		account: func(all []standing) []standing {
			if twin == "charges rewards" && !came {
				return nil
			}
			return all
		},
		Clock: c.Now, random: rand.NewChaCha8([32]byte{7}),
		Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return fixed{s}, err
		},
		Curator: func(rc release.Config) (release.Curator, error) { return release.Simulated(rc, &coins) },
		VectorCurator: func(rc release.FeatureConfig) (release.FeatureCurator, error) {
			return release.SimulatedFeatures(rc, &coins)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var out bytes.Buffer
	begin(t, e, text)
	if err := e.Create(t.Context(), parse(t, named("refused", "budget: {epsilon: 1.5}"))); err != nil {
		t.Fatal(err)
	}
	of := trafficOf(t, e, text)
	x := mustFind(t, e, of.name)
	offers, retracted := strings.Contains(text, "activate"), strings.Contains(text, "retract")
	shows := func(who any, n int, shown bool) {
		s, err := of.meet(n, shown)
		fmt.Fprintln(&out, "shows", who, shown, s, err)
	}
	met := map[int][]int{}             // by round
	src := rand.New(rand.NewPCG(5, 6)) // of the traffic
	var decided time.Time
	n := 0
	for round := range 400 {
		c.Add(500 * time.Millisecond)
		if round == of.stop && round > 0 {
			if err := e.Stop(t.Context(), of.name, ""); err != nil {
				t.Fatal(err)
			}
		}
		over := of.stop > 0 && round >= of.stop
		if round == of.at && !over { // what an operator changes meanwhile tells nothing either
			if err := e.Change(t.Context(), of.name, of.terms); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range src.IntN(of.most) {
			decide := of.decide
			if n == unit && len(hers) == 0 && twin == "exposes what pays" {
				decide = func(int) (any, error) { return nil, nil }
			}
			d, err := decide(n)
			fmt.Fprintln(&out, "decides", n, d, err)
			if over { // who is new counts nothing
				n++
				continue
			}
			if n%3 != 2 {
				met[round+4] = append(met[round+4], n)
			}
			if n == unit {
				decided = c.Now()
			} else if src.IntN(2) == 0 {
				s, err := of.reward(n, float64(n%2))
				fmt.Fprintln(&out, "another", s, err)
			}
			n++
		}
		for _, n := range met[round] {
			shows(n, n, true)
		}
		if !decided.IsZero() {
			for _, r := range hers {
				if c.Now().Equal(decided.Add(r.after)) {
					if _, err := of.reward(unit, r.reward); err != nil {
						t.Fatal(err)
					}
					switch twin {
					case "activates":
						_, _ = of.meet(unit, true)
					case "exposes twice what pays":
						x.mu.Lock()
						delete(x.units, tagOf(x.tags, fmt.Sprint(unit)))
						x.mu.Unlock()
						_, _ = of.decide(unit)
					}
				}
			}
			x.mu.Lock()
			if x.play == nil { // theirs was in no segment that was whole
				x.mu.Unlock()
				fmt.Fprintln(&out, "it has stopped at", c.Now())
				return out.String()
			}
			k := of.ticket(unit)
			if u, said := x.units[k.key()]; said {
				k.number = u.number
			} else if offers {
				k.number = beyond
			}
			g, held := x.play.Segment(k.arm, int(k.number))
			came = held && g.Came.Has(int(k.number)-g.Start)
			head := x.play.Queue(k.arm, 0).Head
			ahead := x.pending != nil && bytes.Contains(x.pending.Line, fmt.Appendf(nil, `"ahead":[{"arm":%d`, k.arm))
			rest := over && x.rec.State == Stopping && x.pending != nil
			x.mu.Unlock()
			if int(k.number) < head || twin == "hurries" && over && came {
				fmt.Fprintln(&out, "released at", c.Now(), "ahead:", ahead, rest)
				return out.String()
			}
			again, err := of.decide(unit)
			fmt.Fprintln(&out, "asked again", again, err)
			since := c.Now().Sub(decided)
			if retracted && src.IntN(5) == 0 && since >= 10*time.Second && (twin != "heeds rewards" || !came) {
				shows("her", unit, false)
			}
			if offers && src.IntN(3) == 0 && since >= time.Second {
				shows("her", unit, src.IntN(2) == 0 || since < 3*time.Second)
			}
			if src.IntN(3) == 0 && since > of.late {
				s, err := of.reward(unit, 0)
				if twin == "duplicates" && came {
					s = "duplicate"
				}
				fmt.Fprintln(&out, "observer", s, err)
			}
			switch {
			case twin == "counts":
				fmt.Fprintln(&out, g.Came.Len())
			case twin == "sums":
				fmt.Fprintln(&out, g.Sum, g.More)
			case twin == "learns" && g.More != nil: // from what was not released
				fmt.Fprintln(&out, x.estimate()[0]+float64(g.More[0]))
			case twin == "totals":
				fmt.Fprintln(&out, len(g.Totals))
			case twin == "adds what pays" && came && g.Sum > 0:
				_ = e.Change(t.Context(), of.name, Change{Add: []Added{{Name: "grey"}}})
			case twin == "guards what waits" && came && g.Sum > 0:
				_ = e.Pause(t.Context(), of.name)
			}
		}
		if round%4 == 0 { // often enough to be between their report and its release
			kept, err := e.Kept(t.Context(), of.name, of.unit(unit))
			if twin == "answers what came" {
				kept.Assigned = kept.Assigned && !came
			}
			fmt.Fprintf(&out, "%s %v\n", must(json.Marshal(kept)), err)
		}
		if round%16 == 0 {
			sum := sha256.New()
			backsUp(t, e, twin, c.Now().Add(agree), sum)
			fmt.Fprintf(&out, "backup %x\n", sum.Sum(nil))
		}
		info, err := e.Get(t.Context(), of.name)
		ledger, _ := e.Ledger(t.Context(), of.name)
		hours, _ := e.Hours(t.Context(), of.name)
		fmt.Fprintf(&out, "%v %v %v %v %v %v %v %v %s\n", info.State, info.Wait, info.Until, info.Left, info.Arms,
			info.Batches, hours, err, ledger)
		fmt.Fprintf(&out, "%+v\n", info.SampleRatio())
		if guards := info.Guards(); guards != nil {
			fmt.Fprintf(&out, "%s\n", must(json.Marshal(guards)))
		}
		if of := info.Contextual; of != nil {
			m, err := e.Model(t.Context(), "news")
			fmt.Fprintf(&out, "%+v %s %v\n", *of, textOf(t, m), err)
		}
		if limit != nil {
			account, err := e.Account(t.Context())
			if twin != "charges rewards" {
				fmt.Fprintln(&out, e.Start(t.Context(), "refused"))
			}
			fmt.Fprintf(&out, "%+v %v\n", account, err)
		}
		lines, err := e.Transcript(t.Context(), of.name)
		if err != nil {
			t.Fatal(err)
		}
		for line, err := range lines {
			fmt.Fprintf(&out, "%s %v", line, err)
		}
	}
	t.Fatal("the reward was never released")
	return ""
}

// Two runs that differ in one unit's reward, or in whether, how often or when it is reported, are the
// same to everybody until that is released, and it is released at the same tick.
func TestTwoWorlds(t *testing.T) {
	testkit.RacedBefore(t)
	sayings := map[string][]saying{
		"0": {{3e9, 0}}, "1": {{3e9, 1}}, "later": {{28e9, 1}}, "twice": {{3e9, 1}, {4e9, 1}},
		"two rewards": {{3e9, 0}, {9e9, 1}}, "late": {{61e9, 1}}, "out of range": {{1e9, 1e300}},
		"at once": {{0, 1}}, "before it is shown, and after": {{5e8, 1}, {5e9, 1}},
	}
	twoWorlds(t, slices.Concat(exposures, early, []string{trialShop}), sayings, "duplicates", "counts", "sums", "charges rewards",
		"backs up sums", "answers what came")
	twoWorlds(t, []string{summed, strings.Replace(summed, "window: 1m", "exposure: activate\nactivate_within: 20s\n"+
		"window: 40s", 1) + stopsThere}, sayings, "duplicates", "totals", "backs up totals")
	for _, text := range early {
		if !strings.Contains(world(t, "", text, nil), "ahead: true") {
			t.Error("their reward is not released ahead of a batch")
		}
	}
	for _, text := range guardedShops {
		silent := world(t, "", text, nil)
		if !strings.Contains(silent, `{"paused":"`) && !strings.Contains(silent, `"off":`) &&
			!strings.Contains(silent, `"change":{"share":1}`) {
			t.Errorf("no guard does anything before their reward is released: %s", text)
		}
		for name, hers := range sayings {
			if got := world(t, "", text, hers); got != silent {
				t.Errorf("guards, %s: somebody sees it: %s", name, differ(got, silent))
			}
		}
		if !strings.Contains(text, "ramp") && world(t, "guards what waits", text, sayings["1"]) == silent {
			t.Error("guards that read what waits are not caught")
		}
	}
	rushed := with(basket) + stopsThere
	if world(t, "hurries", rushed, sayings["later"]) == world(t, "hurries", rushed, nil) {
		t.Error("a service that releases the rest when all has come is not caught")
	}
	if world(t, "heeds rewards", exposures[2], sayings["1"]) == world(t, "heeds rewards", exposures[2], nil) {
		t.Error("a service in which who has had a reward cannot be retracted is not caught")
	}
	// where what does not come is dropped, whether it came is no secret
	dropping := with("missing: drop\nreports: every")
	reported := world(t, "", dropping, sayings["0"])
	for _, name := range []string{"1", "later", "twice", "two rewards", "out of range"} {
		if got := world(t, "", dropping, sayings[name]); got != reported {
			t.Errorf("dropping: %s: somebody sees it: %s", name, differ(got, reported))
		}
	}
}

// The same with contexts.
func TestTwoWorldsOfContexts(t *testing.T) {
	testkit.RacedBefore(t)
	twoWorlds(t, []string{news,
		strings.Replace(news, "floor: 0.2", "floor: 0.2\nexposure: activate\nactivate_within: 8s", 1),
		strings.Replace(news, "actions: 8", "mode: apprentice", 1), news + stopsThere,
		news + "stop: {keep: policy}\n" + stopsThere, drawnNews, tallied, segments,
	}, map[string][]saying{
		"0": {{3e9, 0}}, "1": {{3e9, 1}}, "later": {{9e9, 1}}, "twice": {{3e9, 1}, {4e9, 1}},
		"two rewards": {{3e9, 0}, {5e9, 1}}, "late": {{31e9, 1}}, "out of range": {{1e9, 1e300}},
		"at once": {{0, 1}}, "before it is shown, and after": {{5e8, 1}, {4e9, 1}},
	}, "duplicates", "counts", "sums", "learns", "backs up sums")
}

// So are those of a policy that draws, whose chances take long under the race detector.
func TestTwoWorldsOfDraws(t *testing.T) {
	testkit.RacedBefore(t)
	twoWorlds(t, []string{sampledShop}, map[string][]saying{"0": {{3e9, 0}}, "1": {{3e9, 1}}, "late": {{61e9, 1}}},
		"counts", "sums")
}

// Two runs in which an operator adds an arm meanwhile are one: a service that added one where a reward came
// is caught.
func TestTwoWorldsOfAnArmMore(t *testing.T) {
	sayings := map[string][]saying{"0": {{3e9, 0}}, "1": {{3e9, 1}}, "twice": {{3e9, 1}, {4e9, 1}}, "late": {{61e9, 1}}}
	for _, text := range []string{shop + growsThere, splitShop + growsThere} {
		twoWorlds(t, []string{text}, sayings, "adds what pays", "duplicates", "backs up sums", "answers what came")
		if !strings.Contains(world(t, "", text, nil), `"add":2`) {
			t.Error("no arm is added before their reward is released")
		}
	}
}

// twoWorlds compares the worlds of experiments, in the second of which decisions are activated, and has
// those be caught that tell.
func twoWorlds(t *testing.T, experiments []string, sayings map[string][]saying, twins ...string) {
	t.Helper()
	for _, text := range experiments {
		silent := world(t, "", text, nil)
		if n := strings.Count(silent, "observer accepted"); n < 3 {
			t.Errorf("the observer was answered %d times", n)
		}
		if rest := strings.HasSuffix(silent, "true\n"); rest != strings.HasSuffix(text, stopsThere) {
			t.Errorf("that their reward is released after a stop is %v", rest)
		}
		for name, hers := range sayings {
			if got := world(t, "", text, hers); got != silent {
				t.Errorf("%s: somebody sees it: %s", name, differ(got, silent))
			}
		}
		for _, twin := range twins {
			if world(t, twin, text, sayings["1"]) == world(t, twin, text, nil) {
				t.Errorf("a service that tells %s is not caught", twin)
			}
		}
	}
	if len(experiments) > 1 && world(t, "activates", experiments[1], sayings["at once"]) == world(t, "activates", experiments[1], nil) {
		t.Error("a service in which rewards activate is not caught")
	}
}

// differ is the first line in which two worlds differ.
func differ(a, b string) string {
	is, was := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(is), len(was)) {
		if is[i] != was[i] {
			return fmt.Sprintf("line %d is\n%s\nwas\n%s", i, is[i], was[i])
		}
	}
	return fmt.Sprintf("%d lines, were %d", len(is), len(was))
}

// exposures are the experiments whose worlds are compared.
var exposures = []string{shop, strings.Replace(shop, "window: 1m", "exposure: activate\nactivate_within: 20s\n"+
	"window: 40s", 1), with("exposure: retract"), with(basket), splitShop,
	splitShop + "exposure: activate\nactivate_within: 20s\n", splitShop + "exposure: retract\n" + basket,
	splitShop + "by: {device: [phone, desktop]}\ncell_minimum: 3\nexposure: retract\n" + basket,
	with(basket) + stopsThere, with("exposure: retract") + stopsThere}

// summed is an experiment of which all reports of a decision count.
var summed = strings.Replace(with(strings.Replace(basket, "default: 50", "default: 50, aggregate: max", 1)),
	"default: 0}", "default: 0, aggregate: sum}", 1)

// splitShop is an A/B test in rows of 33 decisions or more.
const splitShop = `
name: shop
arms: [{name: red, value: "#c00"}, {name: blue, value: {hex: "#00c", n: 3}}]
policy: split
shares: {red: 0.7, blue: 0.3}
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 1m
`

// guardedShops are those of which a guard removes arms, until it is stopped, or pauses all of it, and one
// that is ramped up when a guard is kept.
var guardedShops = func() (out []string) {
	guard := "\nguard: [{metric: reward, above: 0.9, risk: 0.5}, {metric: basket, below: 190, risk: 0.5}]\n"
	few := strings.NewReplacer("of: person", "of: visit", "budget: {epsilon: 1}", "budget: {epsilon: 40}", "first: 20",
		"first: 4")
	return []string{few.Replace(strings.Replace(with(basket), "arms: [", "fallback: blue\narms: [green, ", 1)) + guard +
		stopsThere, few.Replace(splitShop+basket) + guard, few.Replace(shop) + "guard: [{metric: reward, below: 0.99, " +
		"risk: 0.5}]\nramp: [{share: 0.9, for: 20s}, {share: 1}]\n"}
}()

// early are those in which the reward is released ahead of a batch.
var early = []string{strings.Replace(shop, "first: 20", "first: 3", 1),
	strings.Replace(with("exposure: retract"), "first: 20", "first: 3", 1),
	strings.Replace(with(basket), "first: 20", "first: 3", 1)}

// trialShop is an experiment that stops by itself.
var trialShop = strings.NewReplacer("{policy: dp-klucb, first: 20}", "{policy: dp-sed, first: 3}", "floor: 0.1",
	"risk: 0.05").Replace(shop)

// sampledShop gives each arm its chance to be the best.
var sampledShop = strings.Replace(shop, "dp-klucb, first: 20", "dp-ts, first: 12", 1)

// A rule that looks for the best arm stops by itself and answers; its answer is what everybody
// gets, also after a restart.
func TestIdentification(t *testing.T) {
	for _, rule := range []string{"dp-se", "dp-sed"} {
		t.Run(rule, func(t *testing.T) { identifies(t, rule) })
	}
}

func identifies(t *testing.T, rule string) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, strings.NewReplacer("{policy: dp-klucb, first: 20}", rule, "floor: 0.1", "risk: 0.05",
		"unit: {of: person, assignments: 1}", "unit: {of: visit}\nsticky: false").Replace(shop))
	src := rand.New(rand.NewPCG(1, 2))
	var info Info
	for range 2000 {
		var reports []Report
		for range 50 {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil {
				t.Fatal(err)
			}
			if src.Float64() < [2]float64{0.1, 0.9}[d.Arm] {
				reports = append(reports, Report{d.Token, 1})
			}
		}
		if _, err := e.Rewards(t.Context(), "shop", reports); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Minute, 1)
		if info, _ = e.Get(t.Context(), "shop"); info.State == Stopped {
			break
		}
	}
	if info.State != Stopped || info.Keep != 1 || info.Spent.Pure() > 1 {
		t.Fatalf("%+v", info)
	}
	for range 2 {
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil || d.Reason != Static || d.Name != "blue" || d.Token != "" {
			t.Errorf("%+v, %v", d, err)
		}
		again, _ := e.Get(t.Context(), "shop")
		if fmt.Sprint(again.Arms, again.Batches, again.Keep, again.Spent) !=
			fmt.Sprint(info.Arms, info.Batches, info.Keep, info.Spent) {
			t.Errorf("%+v, was %+v", again, info)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
	}
}
