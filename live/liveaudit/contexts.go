package liveaudit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// sensitivity is by how much a reward moves Σ a·r where ‖a‖ = 1, and rho what it may cost.
const sensitivity, rho = 2, 0.5

// contexts is an experiment with contexts. Before the first release the first action is played, so
// that all vectors are (1, 1, 0)/√2 on the grid: of four of them det V is 5, where a segment ends.
var contexts = shop{
	name: "service over HTTP, contexts",
	declaration: `
name: shop
contextual:
  action: {topic: {values: [war, sport]}}
  actions: 2
policy: {policy: adac-oful, c: 3.5, greed: 1}
horizon: 100
budget: {rho: 0.5}
unit: {of: person}
reward: {range: [0, 1], default: 0}
window: 2s
floor: 0
public: true
`,
	claim: privacy.VectorGaussian{Sigma: sensitivity / math.Sqrt(2*rho)}.Loss(), delta: 0.05,
	decide: func(unit string) (string, string) {
		return page + "/rank", `{"event":"` + unit + `","actions":[{"id":"a","features":{"topic":"war"}},` +
			`{"id":"b","features":{"topic":"sport"}}]}`
	},
	reward: func(unit, _, reward string) (string, string) {
		return page + "/events/" + unit + "/reward", `{"reward":` + reward + `}`
	},
	// along (1, 1, 0)/√2 rewards of 0 are −1 each, and one of 1 is 1
	released: vector(3, func(v []float64) float64 { return (v[0] + v[1]) / math.Sqrt2 }),
}

// learners are those whose choices are draws, or that protect contexts. Their two actions have one vector, (1, 1, 0)/√2,
// so that the first is given whatever is drawn.
func learners() (all []shop) {
	add := func(policy, protect string, claim privacy.Mechanism, released func(*target, string) float64) {
		x := contexts
		name, _, _ := strings.Cut(policy, ",")
		x.name = "service over HTTP, " + name
		x.claim = claim.Loss()
		x.declaration = strings.NewReplacer("adac-oful, c: 3.5, greed: 1", policy+", first: 4", "public: true", "",
			"  actions: 2", "  actions: 2"+protect).Replace(contexts.declaration)
		x.decide = func(unit string) (string, string) {
			path, body := contexts.decide(unit)
			return path, strings.Replace(body, "sport", "war", 1)
		}
		x.released = released
		all = append(all, x)
	}
	const joint = "\n  protect: joint"
	sigma := 1 / math.Sqrt(2*rho)
	add("dp-lin-ts", "", privacy.VectorGaussian{Sigma: sensitivity * sigma}, contexts.released)
	// lost and won of the first of three rows
	add("histogram-ts", joint, privacy.GaussianHistogram{Sigma: math.Sqrt2 * sigma},
		vector(6, func(v []float64) float64 { return v[1] - v[0] }))
	// Σ a·r is at the ends of the rows of the triangle
	add("jdp-greedy, leaf: 4", joint, privacy.GramGaussian{Sigma: 3 / math.Sqrt2 * sigma},
		vector(9, func(v []float64) float64 { return (v[3] + v[6]) / math.Sqrt2 }))
	for _, policy := range []string{"dp-ts", "dp-sed"} {
		x := arms
		x.name = "service over HTTP, " + policy
		x.declaration = strings.Replace(declaration, "dp-klucb", policy, 1)
		if policy == "dp-sed" {
			x.declaration += "risk: 0.05\n"
		}
		all = append(all, x)
	}
	return all
}

// vector is what was released of ann's reward where so many numbers are released, of which along says the sum of
// all rewards, mapped to −1 and 1.
func vector(numbers int, along func([]float64) float64) func(*target, string) float64 {
	return func(g *target, _ string) float64 {
		_, text, _ := strings.Cut(g.ask(http.MethodGet, page+"/transcript", ""), "\n")
		for line := range strings.Lines(text) {
			var in struct{ Release struct{ Vector []float64 } }
			if err := json.Unmarshal([]byte(line), &in); err != nil && g.err == nil {
				g.err = err
			}
			if v := in.Release.Vector; len(v) == numbers {
				return (along(v) + float64(len(units))) / sensitivity
			}
		}
		if g.err == nil {
			g.err = errors.New("nothing was released")
		}
		return 0
	}
}

// A thin curator adds half the noise that it books.
type thin struct {
	release.StepFeatureCurator
	cfg  release.FeatureConfig
	next int
}

// newVectors is a curator of simulated rewards, or its twin.
func newVectors(c release.FeatureConfig, broken bool, src *noise.Fast) (release.FeatureCurator, error) {
	if !broken {
		return release.SimulatedFeatures(c, src)
	}
	less := c
	less.Ledger = nil
	switch m := c.Mechanism.(type) {
	case privacy.VectorGaussian:
		less.Mechanism = privacy.VectorGaussian{Sigma: m.Sigma / 2}
	case privacy.GaussianHistogram:
		less.Mechanism = privacy.GaussianHistogram{Sigma: m.Sigma / 2}
	case privacy.GramGaussian:
		less.Mechanism = privacy.GramGaussian{Sigma: m.Sigma / 2}
	default:
		return nil, fmt.Errorf("%s has no copy with half the noise", m.Kind())
	}
	cur, err := release.SimulatedFeatures(less, src)
	if err != nil {
		return nil, err
	}
	return &thin{StepFeatureCurator: cur.(release.StepFeatureCurator), cfg: c}, nil
}

// Ledger implements release.FeatureCurator.
func (h *thin) Ledger() *privacy.Ledger { return h.cfg.Ledger }

// Release implements release.FeatureCurator.
func (h *thin) Release(slot int) (privacy.ReleasedVector, error) {
	r, err := h.StepFeatureCurator.Release(slot)
	if err != nil {
		return r, err
	}
	v := privacy.Vector{N: r.N()}
	for i := range r.Len() {
		v.Value = append(v.Value, r.At(i))
	}
	h.next++
	return h.cfg.Ledger.ReleaseVector(h.next-1, h.cfg.Mechanism, &v)
}
