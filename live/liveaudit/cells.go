package liveaudit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// beside is the fault of a service that releases the total of an arm beside its cells, each at the whole ε.
const beside fault = ", totals beside cells"

// cells is an experiment whose releases are by cell: ann is alone in theirs.
var cells = shop{
	name: "service over HTTP, by cell", claim: privacy.Laplace{Scale: 1}.Loss(),
	declaration: strings.Replace(declaration, "dp-klucb, first: 2", "dp-klucb-j, first: 2", 1) +
		"by: {device: [phone, desktop]}\ncell_minimum: 1\n",
	decide: func(unit string) (string, string) {
		device := map[bool]string{true: "phone", false: "desktop"}[unit == "ann"]
		return page + "/decisions", fmt.Sprintf(`{"unit":%q,"context":{"device":%q}}`, unit, device)
	},
	reward: arms.reward,
	// what is released of their cell, and where there is more, of its arm: others' rewards are 0
	released: func(g *target, arm string) float64 {
		at := map[string]int{"red": 0, "blue": 1}[arm]
		_, lines, _ := strings.Cut(g.ask(http.MethodGet, page+"/transcript", ""), "\n")
		for text := range strings.Lines(lines) {
			var in struct {
				Plays []struct {
					Arm   int
					Cells []int
				}
				Release struct{ Sum []float64 }
			}
			if err := json.Unmarshal([]byte(text), &in); err != nil && g.err == nil {
				g.err = err
			}
			next := 0
			for _, p := range in.Plays {
				for _, c := range p.Cells {
					if p.Arm == at && c == 0 {
						score := ratio(in.Release.Sum[next] * one)
						if g.fault == beside {
							score += ratio(g.totals[at] * one)
						}
						return score
					}
					next++
				}
			}
		}
		if g.err == nil {
			g.err = fmt.Errorf("nothing of arm %s was released", arm)
		}
		return 0
	},
}

// A besides curator tells the totals of arms, too, with noise of their own.
type besides struct {
	release.StepCurator
	src   *noise.Fast
	each  int // cells of an arm
	steps []int64
	tell  []float64 // by arm
}

func newBesides(c release.Config, src *noise.Fast, tell []float64) (release.Curator, error) {
	cur, err := release.Simulated(c, src)
	if err != nil {
		return nil, err
	}
	return &besides{StepCurator: cur.(release.StepCurator), src: src, each: c.Arms / len(tell),
		steps: make([]int64, len(tell)), tell: tell}, nil
}

// AddSteps implements release.StepCurator.
func (b *besides) AddSteps(slot, n int, steps int64) error {
	b.steps[slot/b.each] += steps
	return b.StepCurator.AddSteps(slot, n, steps)
}

// Release implements release.Curator.
func (b *besides) Release(slots []int) (privacy.Released, error) {
	for arm, steps := range b.steps {
		b.tell[arm], b.steps[arm] = float64(steps)*release.ExactStep+b.src.Laplace(1), 0
	}
	return b.StepCurator.Release(slots)
}
