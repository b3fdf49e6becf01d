// Package liveaudit attacks the decision service through its HTTP front: an adversary who chose all
// rewards but one sees every answer, page and public metric, asks again and reports on others'
// decisions, and tells from all that, and from the released sum, whether one person reported.
package liveaudit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/api"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

const (
	window = 2 * time.Second
	tick   = window / 16

	declaration = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb, first: 2}
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 2s
public: true
`
	page = "/v1/experiments/shop"
)

// units are who comes; ann is the one that is attacked.
var units = []string{"bob", "ann", "cid", "dan"}

// A fault is a way in which a service can be wrong.
type fault string

const (
	sound     fault = ""
	half      fault = ", half the scale"
	early     fault = ", closes when all rewards are in"
	duplicate fault = ", says which reward came before"
	counted   fault = ", counts the rewards that arrived"
)

// A shop is an experiment that is attacked, and how it is asked.
type shop struct {
	name, declaration string
	claim             privacy.Loss
	delta             float64 // that the claim is tested at
	decide            func(unit string) (path, body string)
	reward            func(unit, decision, reward string) (path, body string)
	// meets has a unit decided by a plan, and exposed, where clients do that; its name is in the place of a decision.
	meets func(g *target, unit string, in bool) (name, arm string)
	// released is what was released of ann's arm, less what others' rewards of 0 are in it: 0 or 1,
	// and noise.
	released func(g *target, arm string) float64
}

// arms is an experiment with arms.
var arms = shop{
	name: "service over HTTP", declaration: declaration, claim: privacy.Laplace{Scale: 1}.Loss(),
	decide: func(unit string) (string, string) { return page + "/decisions", `{"unit":"` + unit + `"}` },
	reward: func(_, decision, reward string) (string, string) {
		return page + "/rewards", `{"decision":"` + decision + `","reward":` + reward + `}`
	},
	released: func(g *target, arm string) float64 { return g.sumOf(arm, false) },
}

// sumOf is what was released of an arm, 0 if that is nothing; of an arm of which nothing was released there must be
// leave.
func (g *target) sumOf(arm string, leave bool) (sum float64) {
	var x struct {
		Arms []struct {
			Name     string
			Released float64
			Mean     *float64
		}
	}
	g.read(g.ask(http.MethodGet, page, ""), &x)
	for _, a := range x.Arms {
		if a.Name == arm && a.Mean != nil {
			sum = *a.Mean * a.Released
		} else if a.Mean == nil && !leave && g.err == nil {
			g.err = fmt.Errorf("nothing of arm %s was released", a.Name)
		}
	}
	return sum
}

// Audits are those of the service, with arms and with contexts, and of its broken twins. Those that
// tell by themselves do so by what both have. Where the service does not see rewards, they are of
// those who gather them.
func Audits() []audit.Outside {
	all := append(arms.audits(sound, half, early, duplicate, counted), contexts.audits(sound, half)...)
	all = append(all, cells.audits(sound, beside)...)
	all = append(all, leases.audits(sound, onSuccess, recounted, forged)...)
	for _, x := range learners() {
		all = append(all, x.audits(sound, half)...)
	}
	return append(all, hidden()...)
}

func (x shop) audits(faults ...fault) []audit.Outside {
	var all []audit.Outside
	for _, f := range faults {
		all = append(all, audit.Outside{
			Name: x.name + string(f), Twin: f != sound, Claim: x.claim, Delta: x.delta,
			Attack: "all that is public, then the released sum", Model: "observer",
			Adversaries: []string{"the unit reports 1, or never", "the unit reports 1, or 0"}, Cost: 100,
			Worlds: func(adversary int) func() func(bool, *noise.Fast, []float64) error {
				// what is seen before the release where they never report
				usual := sync.OnceValues(func() (string, error) {
					src := noise.NewFast(1, 2)
					seen, _, err := x.live(f, adversary, false, &src)
					return seen, err
				})
				return func() func(bool, *noise.Fast, []float64) error {
					return func(in bool, src *noise.Fast, scores []float64) error {
						want, err := usual()
						if err != nil {
							return err
						}
						seen, sum, err := x.live(f, adversary, in, src)
						if scores[0] = sum; seen != want {
							scores[0] = 1e6
						}
						return err
					}
				}
			},
		})
	}
	return all
}

// A target is a service and who asks it.
type target struct {
	fault fault
	clock *clock.Manual
	front http.Handler
	key   string
	came  map[string]int // rewards by decision, for the twins that tell
	names map[string]int // tokens, which are keyed, by the order in which they were seen
	// by arm, what a broken copy tells beside cells
	totals []float64
	expose string // the exposure that was reported last
	seen   strings.Builder
	err    error
}

// live plays a life of the service to its first release. Seen is all that everybody can see before,
// sum what was released of ann's arm, less what the adversary knows to be in it.
func (x shop) live(f fault, adversary int, in bool, src *noise.Fast) (seen string, sum float64, err error) {
	g := &target{fault: f, came: map[string]int{}, names: map[string]int{},
		clock: clock.At(time.UnixMilli(1_000_000_000_000)), totals: make([]float64, 2)}
	metrics, ctx := api.NewMetrics(), context.Background()
	e, err := serve.Open(ctx, serve.Config{Store: store.NewMemory().Open, Clock: g.clock.Now, Meter: metrics,
		Curator: func(c release.Config) (release.Curator, error) {
			switch f {
			case half:
				return newHalf(c, src)
			case beside:
				return newBesides(c, src, g.totals)
			}
			return release.Simulated(c, src)
		},
		VectorCurator: func(c release.FeatureConfig) (release.FeatureCurator, error) {
			return newVectors(c, f == half, src)
		}})
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = e.Close() }()
	g.front = api.Handler(api.Config{Engine: e, Metrics: metrics})
	if g.key, _, err = e.NewKey(ctx, "admin", serve.ScopeAdmin); err != nil {
		return "", 0, err
	}
	g.ask(http.MethodPost, "/v1/experiments", x.declaration)
	g.ask(http.MethodPost, page+"/start", "")
	tokens, arm := map[string]string{}, ""
	ask := func(path, body string) string { return g.ask(http.MethodPost, path, body) }
	if x.meets != nil { // by its first plan
		g.clock.Add(tick)
		g.err = e.Sync(ctx)
	}
	for _, u := range units {
		var d struct{ Decision, Arm string }
		if x.meets != nil {
			d.Decision, d.Arm = x.meets(g, u, in)
		} else {
			g.read(ask(x.decide(u)), &d)
		}
		if tokens[u] = d.Decision; u == "ann" {
			arm = d.Arm
		}
	}
	for _, u := range units { // the adversary chose those of all others
		reward := map[bool]string{true: "1", false: "0"}[in]
		if u != "ann" {
			reward = "0"
		} else if !in && adversary == 0 {
			continue
		}
		ask(x.reward(u, tokens[u], reward))
	}
	// in the middle of the window and at its end, where their own report would still count
	for range 2 {
		g.clock.Add(window/2 - tick)
		if g.err = e.Sync(ctx); g.err != nil {
			break
		}
		for _, path := range []string{page, page + "/transcript", page + "/ledger", "/readyz"} {
			g.look(http.MethodGet, path, "")
		}
		key := g.key
		g.key = ""
		g.look(http.MethodGet, "/metrics", "")
		g.key = key
		path, body := x.decide("ann")
		if x.meets != nil { // the arms of names follow from a secret
			path, body = "/v1/exposures", g.expose
		}
		g.look(http.MethodPost, path, body)
		path, body = x.reward("ann", tokens["ann"], "0")
		g.look(http.MethodPost, path, body)
	}
	for range 5 {
		g.clock.Add(tick)
		if g.err == nil {
			g.err = e.Sync(ctx)
		}
	}
	sum = x.released(g, arm)
	return g.seen.String(), sum, g.err
}

// ask sends a request to the service, or to its twin.
func (g *target) ask(method, path, body string) string {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if g.key != "" {
		r.Header.Set("X-API-Key", g.key)
	}
	out := httptest.NewRecorder()
	g.front.ServeHTTP(out, r)
	if out.Code >= 400 && g.err == nil {
		g.err = fmt.Errorf("%s %s: %d %s", method, path, out.Code, out.Body)
	}
	text := fmt.Sprint(out.Code, " ", out.Header()["Content-Type"], "\n", out.Body)
	switch {
	case strings.HasSuffix(path, "/rewards"), strings.HasSuffix(path, "/reward"):
		in := struct{ Decision string }{path} // which names an event
		g.read("\n"+body, &in)
		if g.came[in.Decision]++; g.fault == duplicate && g.came[in.Decision] > 1 {
			text = strings.Replace(text, "accepted", "duplicate", 1)
		}
		if g.fault == early && len(g.came) == len(units) {
			g.clock.Add(window) // its clock is as good as over
		}
	case path == "/metrics" && g.fault == counted:
		text += fmt.Sprintln("sotto_rewards_total", len(g.came))
	}
	return text
}

var token = regexp.MustCompile(`"[A-Za-z0-9_-]{50,}"`)

// look is ask by somebody who writes down what it sees. Tokens and hashes of random seeds differ
// from life to life, whatever anybody reports.
func (g *target) look(method, path, body string) {
	text := token.ReplaceAllStringFunc(g.ask(method, path, body), func(s string) string {
		if _, ok := g.names[s]; !ok {
			g.names[s] = len(g.names)
		}
		return fmt.Sprint("token ", g.names[s])
	})
	fmt.Fprintln(&g.seen, method, path, text)
}

// read reads JSON from the second line of an answer on.
func (g *target) read(answer string, into any) {
	_, body, _ := strings.Cut(answer, "\n")
	if err := json.Unmarshal([]byte(body), into); err != nil && g.err == nil {
		g.err = err
	}
}

// A halved curator adds half the noise that it books.
type halved struct {
	release.StepCurator
	cfg   release.Config
	src   *noise.Fast
	n     []int
	steps []int64
	next  int
}

func newHalf(c release.Config, src *noise.Fast) (release.Curator, error) {
	cur, err := release.Simulated(c, src)
	if err != nil {
		return nil, err
	}
	return &halved{StepCurator: cur.(release.StepCurator), cfg: c, src: src, n: make([]int, c.Arms),
		steps: make([]int64, c.Arms)}, nil
}

// AddSteps implements release.StepCurator.
func (h *halved) AddSteps(arm, n int, steps int64) error {
	h.n[arm] += n
	h.steps[arm] += steps
	return nil
}

// Release implements release.Curator.
func (h *halved) Release(arms []int) (privacy.Released, error) {
	v := &privacy.Values{Tail: privacy.Tail{H: 1}}
	var slots []int
	for _, a := range arms {
		v.N = append(v.N, h.n[a])
		v.Sum = append(v.Sum, float64(h.steps[a])*release.ExactStep+
			h.src.Laplace(privacy.ScaleOf(h.cfg.Mechanism)/2))
		h.n[a], h.steps[a] = 0, 0
		slots = append(slots, h.next)
		h.next++
	}
	return h.cfg.Ledger.ReleaseAll(slots, h.cfg.Mechanism, v)
}
