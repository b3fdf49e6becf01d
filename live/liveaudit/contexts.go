package liveaudit

import (
	"encoding/json"
	"errors"
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
	released: func(g *target, _ string) (sum float64) {
		_, text, _ := strings.Cut(g.ask(http.MethodGet, page+"/transcript", ""), "\n")
		for line := range strings.Lines(text) {
			var in struct{ Release struct{ Vector []float64 } }
			if err := json.Unmarshal([]byte(line), &in); err != nil && g.err == nil {
				g.err = err
			}
			if v := in.Release.Vector; len(v) == 3 {
				// along (1, 1, 0)/√2 rewards of 0 are −1 each, and one of 1 is 1
				return ((v[0]+v[1])/math.Sqrt2 + float64(len(units))) / sensitivity
			}
		}
		if g.err == nil {
			g.err = errors.New("nothing was released")
		}
		return 0
	},
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
	less.Mechanism, less.Ledger = privacy.VectorGaussian{Sigma: privacy.ScaleOf(c.Mechanism) / 2}, nil
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
