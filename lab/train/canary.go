package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
)

// A Canary is what is in the training set or not: an example, whose gradient follows the
// parameters, or a gradient, the same at every step, as a client of federated learning may send it.
type Canary struct {
	Name     string
	X        []float64
	Label    int
	Gradient []float64 // nil: an example
}

func (c Canary) gradient(p Pass, theta, dst []float64) {
	if c.Gradient != nil {
		copy(dst, c.Gradient)
		return
	}
	p.Gradient(theta, c.X, c.Label, dst, nil)
}

func (c Canary) validate(m Model) error {
	if c.Gradient != nil {
		if len(c.Gradient) != m.Params() {
			return fmt.Errorf("%s: a gradient of %d, the model has %d parameters", c.Name,
				len(c.Gradient), m.Params())
		}
		return checkFinite("gradient", c.Gradient)
	}
	if err := checkPoint(c.X, c.Label, m.Inputs(), m.Classes()); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

// Example is point i of the data as a canary.
func Example(d Dataset, i int) (Canary, error) {
	if i < 0 || i >= len(d.X) {
		return Canary{}, fmt.Errorf("train: point %d of %d", i, len(d.X))
	}
	return Canary{Name: fmt.Sprintf("example %d", i), X: d.X[i], Label: d.Labels[i]}, nil
}

// Blank is an example whose features are all 0 (Nasr et al. 2023).
func Blank(d Dataset, label int) Canary {
	return Canary{Name: "blank", X: make([]float64, d.Inputs()), Label: label}
}

// Mislabelled is point i of the data with a wrong label: the one that the model at theta
// finds least likely.
func Mislabelled(m Model, theta []float64, d Dataset, i int) (Canary, error) {
	c, err := Example(d, i)
	if err != nil {
		return c, err
	}
	if err := c.validate(m); err != nil {
		return Canary{}, fmt.Errorf("train: %w", err)
	}
	logits := m.NewPass().Logits(theta, c.X)
	worst := -1
	for l, v := range logits {
		if l != c.Label && (worst < 0 || v < logits[worst]) {
			worst = l
		}
	}
	c.Name, c.Label = fmt.Sprintf("mislabelled %d", i), worst
	return c, nil
}

// Dirac is a gradient that is 0 but for one parameter (Nasr et al. 2023).
func Dirac(m Model, parameter int, size float64) (Canary, error) {
	if parameter < 0 || parameter >= m.Params() {
		return Canary{}, fmt.Errorf("train: parameter %d of %d", parameter, m.Params())
	}
	if size == 0 || size-size != 0 {
		return Canary{}, fmt.Errorf("train: a Dirac canary of size %v, must be finite and not 0", size)
	}
	g := make([]float64, m.Params())
	g[parameter] = size
	return Canary{Name: fmt.Sprintf("Dirac %d", parameter), Gradient: g}, nil
}

// Select is Algorithm 14: the candidate of the highest Mahalanobis score, and the scores of all.
// The print takes the uncentred second moment for the covariance; this is centred, and holds the
// run's noise. The plan must be one with a covariance.
func Select(p *Prepared, candidates []Canary) (best int, scores []float64, err error) {
	if len(candidates) == 0 {
		return 0, nil, errors.New("train: no candidates for a canary")
	}
	for i, c := range candidates {
		m, err := p.Mahalanobis(c)
		if err != nil {
			return 0, nil, fmt.Errorf("candidate %d: %w", i, err)
		}
		scores = append(scores, m)
		if m > scores[best] {
			best = i
		}
	}
	return best, scores, nil
}

// CANIFE crafts an example by descent on Σ⟨u_i, g*⟩² + max(C − ‖g*‖, 0)² over its features
// (Maddock, Sablayrolles and Stock 2022; (7.1)), where g* is its gradient at θ and u_i those of
// references: a gradient as long as the clip, in directions where the others have little.
type CANIFE struct {
	References Dataset
	Clip       float64 // C > 0
	Steps      int     // of the descent
	Label      int
	// Lo and Hi are the range of a feature: [0, 1] for pixels. Hi ≤ Lo is no limit.
	Lo, Hi float64
}

// Craft starts at x, or at random features of [0,1] if x is nil, and returns the best canary seen
// and the losses of (7.1) at the start and at the end.
//
// The derivative in x needs that of a gradient: with v = ∂ℓ/∂g*, it is ∂/∂x⟨v, ∇_θ ℓ⟩, taken as the
// central difference of ∇_x at θ ± hv. A step that does not lower the loss is halved.
func (c CANIFE) Craft(m Model, theta, x []float64, src *noise.Fast) (canary Canary, first,
	last float64, err error) {
	if !(c.Clip > 0) || math.IsInf(c.Clip, 0) {
		return Canary{}, 0, 0, fmt.Errorf("train: clipping norm is %v, must be positive and finite", c.Clip)
	}
	if c.Steps < 1 {
		return Canary{}, 0, 0, fmt.Errorf("train: steps = %d: at least 1", c.Steps)
	}
	if len(theta) != m.Params() {
		return Canary{}, 0, 0, fmt.Errorf("train: θ has %d parameters, the model %d", len(theta), m.Params())
	}
	if err := c.References.Validate(); err != nil {
		return Canary{}, 0, 0, fmt.Errorf("train: references: %w", err)
	}
	if len(c.References.X) == 0 || c.References.Inputs() != m.Inputs() || c.References.Classes != m.Classes() {
		return Canary{}, 0, 0, fmt.Errorf("train: %d references of %d features and %d classes, a "+
			"model of %d and %d", len(c.References.X), c.References.Inputs(), c.References.Classes,
			m.Inputs(), m.Classes())
	}
	at := make([]float64, m.Inputs())
	if x == nil {
		for j := range at {
			at[j] = src.Float64()
		}
	} else {
		if err := checkPoint(x, c.Label, m.Inputs(), m.Classes()); err != nil {
			return Canary{}, 0, 0, fmt.Errorf("train: start: %w", err)
		}
		copy(at, x)
	}
	if err := checkPoint(at, c.Label, m.Inputs(), m.Classes()); err != nil {
		return Canary{}, 0, 0, fmt.Errorf("train: CANIFE: %w", err)
	}
	s := newCanife(c, m, theta)
	loss := s.loss(at)
	first = loss
	step, trial := 0.1, make([]float64, len(at))
	for range c.Steps {
		dir := s.slope(at)
		var norm float64
		for _, v := range dir {
			norm += v * v
		}
		if norm == 0 {
			break
		}
		norm = math.Sqrt(norm / float64(len(dir)))
		for range 12 {
			for j, v := range dir {
				trial[j] = at[j] - step*v/norm
				if c.Hi > c.Lo {
					trial[j] = max(c.Lo, min(c.Hi, trial[j]))
				}
			}
			if l := s.loss(trial); l < loss {
				loss = l
				copy(at, trial)
				step *= 1.5
				break
			}
			step /= 2
		}
	}
	return Canary{Name: "CANIFE", X: at, Label: c.Label}, first, loss, nil
}

type canife struct {
	c              CANIFE
	m              Model
	pass           Pass
	theta, moved   []float64
	u              [][]float64
	g, v, scratch  []float64
	in, plus, back []float64
}

func newCanife(c CANIFE, m Model, theta []float64) *canife {
	d, n := m.Params(), m.Inputs()
	s := &canife{c, m, m.NewPass(), theta, make([]float64, d), nil, make([]float64, d),
		make([]float64, d), make([]float64, d), make([]float64, n), make([]float64, n), make([]float64, n)}
	for i, x := range c.References.X {
		u := make([]float64, d)
		s.pass.Gradient(theta, x, c.References.Labels[i], u, nil)
		clip(u, c.Clip)
		s.u = append(s.u, u)
	}
	return s
}

// loss is (7.1) at x; it leaves g* in s.g and ∂ℓ/∂g* in s.v.
func (s *canife) loss(x []float64) float64 {
	s.pass.Gradient(s.theta, x, s.c.Label, s.g, nil)
	clear(s.v)
	var loss, norm float64
	for _, u := range s.u {
		var dot float64
		for j, v := range u {
			dot += float64(v * s.g[j])
		}
		loss += dot * dot
		for j, v := range u {
			s.v[j] += float64(2 * dot * v)
		}
	}
	for _, v := range s.g {
		norm += float64(v * v)
	}
	norm = math.Sqrt(norm)
	if short := s.c.Clip - norm; short > 0 && norm > 0 {
		for j, v := range s.g {
			s.v[j] -= 2 * short * v / norm
		}
	}
	short := max(s.c.Clip-norm, 0)
	return loss + short*short
}

// slope is ∂ℓ/∂x.
func (s *canife) slope(x []float64) []float64 {
	s.loss(x)
	var norm float64
	for _, v := range s.v {
		norm += v * v
	}
	norm = math.Sqrt(norm)
	if norm == 0 {
		clear(s.in)
		return s.in
	}
	h := 1e-5 / norm
	for j, v := range s.v {
		s.moved[j] = s.theta[j] + h*v
	}
	s.pass.Gradient(s.moved, x, s.c.Label, s.scratch, s.plus)
	for j, v := range s.v {
		s.moved[j] = s.theta[j] - h*v
	}
	s.pass.Gradient(s.moved, x, s.c.Label, s.scratch, s.back)
	for j := range s.in {
		s.in[j] = (s.plus[j] - s.back[j]) / (2 * h)
	}
	return s.in
}
