// Package clicks generates the worlds that contextual policies are planned and compared in: visitors
// and actions of a declared map of features, and rewards that are clicks.
package clicks

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/sim"
)

// A World says which worlds are generated: visitors' features are drawn uniformly from what is
// declared, actions go through the declared values, and an action's mean is a link of ⟨θ, x⟩, with
// normal θ, a slope and an offset, which are fitted so that uniform choices and the best ones earn
// what is said.
type World struct {
	Map     feature.Map
	Actions int     // of each decision
	Mean    float64 // of uniform choices, in (0,1)
	Gap     float64 // by how much the best choices for each visitor are more
	// Visitors is how many are drawn, each as likely to come as the others; 0: 256.
	Visitors int
	// Logistic is the link 1/(1 + exp(−z)). Without it means are linear, cut off at 0 and 1.
	Logistic bool
	// Every and Turns are of worlds that move: after so many decisions, so many times, θ turns by
	// π/100 from one drawn vector toward another, so that after 50 turns it is that. Earnings are
	// fitted anew each time.
	Every, Turns int
}

// ErrWorld is matched where no world can be generated.
var ErrWorld = errors.New("the map tells no actions apart in a generated world, or the gap does not fit " +
	"in the range beside the best mean")

// Generate draws a world. Its means, as its rewards, are from −1 to 1.
func (c World) Generate(s *noise.Fast) (*sim.Visits, error) {
	w, err := c.visitors(s)
	if err != nil {
		return nil, err
	}
	var theta, other []float64
	for range 20 { // some coefficients leave no room for the gap in the range
		theta = normals(theta, w.Dim, s)
		if c.Turns > 0 {
			other = normals(other, w.Dim, s)
		}
		if err = c.move(w, theta, other); err == nil {
			return w, nil
		}
	}
	return nil, err
}

func normals(to []float64, n int, s *noise.Fast) []float64 {
	if to == nil {
		to = make([]float64, n)
	}
	s.Normals(to)
	return to
}

// move makes the means, and those after each turn.
func (c World) move(w *sim.Visits, theta, other []float64) (err error) {
	if w.Means, err = c.scale(w, theta); err != nil {
		return err
	}
	w.Every, w.Later = c.Every, nil
	now := make([]float64, len(theta))
	for turn := range c.Turns {
		sin, cos := math.Sincos(float64(turn+1) * math.Pi / 100)
		for j := range now {
			now[j] = float64(cos*theta[j]) + float64(sin*other[j])
		}
		means, err := c.scale(w, now)
		if err != nil {
			return err
		}
		w.Later = append(w.Later, means)
	}
	return nil
}

// visitors are a world without means.
func (c World) visitors(s *noise.Fast) (*sim.Visits, error) {
	m, actions := c.Map, c.Actions
	m.Actions = max(m.Actions, actions)
	mapper, err := feature.New(m)
	if err != nil {
		return nil, err
	}
	all := make([]feature.Action, actions)
	turn := 1
	for i := range all {
		all[i] = feature.Action{ID: fmt.Sprintf("action-%d", i+1), Features: map[string]any{}}
		if m.ID.Values != nil {
			all[i].ID = m.ID.Values[i%len(m.ID.Values)]
		}
	}
	for _, f := range m.Action {
		for i := range all {
			all[i].Features[f.Name] = valueOf(f, i/turn, s)
		}
		turn = min(turn*max(1, kinds(f)), actions)
	}
	w := &sim.Visits{Dim: mapper.Dim()}
	known := map[string]int{}
	n := c.Visitors
	if n == 0 {
		n = 256
	}
	for range n {
		features := map[string]any{}
		for _, f := range m.Context {
			features[f.Name] = valueOf(f, int(s.Float64()*float64(max(1, kinds(f)))), s)
		}
		name := fmt.Sprint(features)
		i, ok := known[name]
		if !ok {
			i = len(w.Actions)
			known[name] = i
			vectors, err := mapper.Vectors(nil, features, all)
			if err != nil {
				return nil, err
			}
			w.Actions = append(w.Actions, vectors)
		}
		w.Of = append(w.Of, i)
	}
	return w, nil
}

// kinds is how many different words a feature has in a generated world, 0 for numbers.
func kinds(f feature.Feature) int {
	switch {
	case f.Values != nil:
		return len(f.Values)
	case f.Buckets != 0:
		return f.Buckets
	case f.Lo != 0 || f.Hi != 0:
		return 0
	}
	return 32 // in hashed crosses alone
}

// valueOf is the i-th word of a feature, or a number that is drawn.
func valueOf(f feature.Feature, i int, s *noise.Fast) any {
	n := kinds(f)
	switch {
	case n == 0:
		return f.Lo + float64(s.Float64()*(f.Hi-f.Lo))
	case f.Values != nil:
		return f.Values[i%n]
	}
	return fmt.Sprintf("word-%d", i%n+1)
}

// scale makes the means of a model: clicks' of [0,1], mapped to [−1,1].
func (c World) scale(w *sim.Visits, theta []float64) ([][]float64, error) {
	out := &sim.Visits{Of: w.Of, Means: make([][]float64, len(w.Actions))}
	raw := make([][]float64, len(w.Actions))
	for i, set := range w.Actions {
		raw[i], out.Means[i] = make([]float64, c.Actions), make([]float64, c.Actions)
		for a := range raw[i] {
			for j, x := range set[a*w.Dim:][:w.Dim] {
				raw[i][a] += float64(theta[j] * x)
			}
		}
		copy(out.Means[i], raw[i])
	}
	best, centre := out.Earns()
	if !(best > centre) {
		return nil, ErrWorld
	}
	slope, offset := c.Gap/(best-centre), c.Mean
	if c.Logistic {
		slope, offset = slope/(c.Mean*(1-c.Mean)), logit(c.Mean)
	}
	for range 200 { // the link takes from both: a few steps find what gives it back
		for i := range raw {
			for a, x := range raw[i] {
				out.Means[i][a] = c.link(offset + float64(slope*(x-centre)))
			}
		}
		best, uniform := out.Earns()
		steeper := slope * math.Sqrt(min(2, c.Gap/max(best-uniform, c.Gap/2)))
		higher := offset + (c.Mean-uniform)/2
		if c.Logistic {
			higher = offset + (logit(c.Mean)-logit(uniform))/2
		}
		if steeper == slope && higher == offset {
			break
		}
		slope, offset = steeper, higher
	}
	best, uniform := out.Earns()
	if !(math.Abs(best-uniform-c.Gap) <= 0.01*c.Gap && math.Abs(uniform-c.Mean) <= 0.01*c.Gap) {
		return nil, ErrWorld
	}
	for _, means := range out.Means {
		for a, x := range means {
			means[a] = 2*x - 1
		}
	}
	return out.Means, nil
}

func (c World) link(z float64) float64 {
	if c.Logistic {
		return 1 / (1 + math.Exp(-z))
	}
	return min(1, max(0, z))
}

func logit(p float64) float64 { return math.Log(p / (1 - p)) }
