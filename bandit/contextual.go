package bandit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/noise"
)

// A ContextualInstance draws a decision set each round. It does not change, so runs may share it.
type ContextualInstance interface {
	Dim() int
	MaxActions() int
	// Round draws a round's decision set into actions (grown if need be), d numbers an action, and
	// the mean reward of each action into means.
	Round(actions, means []float64, s *noise.Fast) (a, m []float64)
	// Reward draws the reward of an action with this mean. It takes the same number of draws from s
	// whatever the mean: runs are paired.
	Reward(mean float64, s *noise.Fast) float64
	// Bounded says that rewards are in [−1,1] and ‖a‖₂ ≤ 1 by construction.
	Bounded() bool
}

// A ContextualSource is where the contextual instance of a run comes from.
type ContextualSource interface {
	Contextual(s *noise.Fast) (ContextualInstance, error)
	// Redrawn is as in Source: whether every run has its own instance, such as its own θ*. Contexts
	// are drawn anew in every run anyway.
	Redrawn() bool
	String() string
}

// A ContextConfig is what the generators of contexts share.
type ContextConfig struct {
	Arms  int       // K, actions in each round's decision set, from 1 to MaxArms
	Dim   int       // d, from 1 to MaxDim
	Theta []float64 // θ*, ‖θ*‖ ≤ 1; nil: uniform on the unit sphere, drawn by the source
	Noise RewardNoise
	// Normalise moves vectors of norm above 1 to the unit sphere, as the guarantee needs ‖a‖ ≤ 1:
	// each by itself, before its mean is taken.
	Normalise bool
	Redrawn   bool // every run has its own θ*
}

func (c *ContextConfig) check() error {
	if c.Arms < 1 || c.Arms > MaxArms {
		return fmt.Errorf("the number of actions is %d, must be between 1 and %d", c.Arms, MaxArms)
	}
	if c.Dim < 1 || c.Dim > MaxDim {
		return fmt.Errorf("the dimension is %d, must be between 1 and %d", c.Dim, MaxDim)
	}
	if c.Theta != nil {
		if err := checkTheta(c.Theta, c.Dim); err != nil {
			return err
		}
	}
	c.Theta = slices.Clone(c.Theta)
	return nil
}

func (c *ContextConfig) theta(s *noise.Fast) ([]float64, error) {
	if c.Theta != nil {
		return c.Theta, nil
	}
	if s == nil {
		return nil, errors.New("theta is drawn: the stream is missing")
	}
	theta := make([]float64, c.Dim)
	sphere(theta, s)
	return theta, nil
}

// GaussianContexts is the source of [Azize 2024, §5.5.2] and [Azize and Basu 2024, §VII-A]: in each
// round K new actions, independent and N(m, v·I_d).
type GaussianContexts struct {
	cfg  ContextConfig
	mean []float64
	v    float64
}

// NewGaussianContexts returns the source of normal contexts of this mean, nil for (1/√d,…,1/√d),
// and this variance v > 0 of each feature; the sources have v = 1/10. Half of such vectors have
// norm above 1: set Normalise where the guarantee must hold.
func NewGaussianContexts(c ContextConfig, mean []float64, v float64) (GaussianContexts, error) {
	const name = "gaussian contexts"
	if err := c.check(); err != nil {
		return GaussianContexts{}, fmt.Errorf("%s: %w", name, err)
	}
	if mean == nil {
		mean = make([]float64, c.Dim)
		for j := range mean {
			mean[j] = 1 / math.Sqrt(float64(c.Dim))
		}
	}
	if len(mean) != c.Dim {
		return GaussianContexts{}, fmt.Errorf("%s: mean has %d features, must have %d", name,
			len(mean), c.Dim)
	}
	if err := checkVector("mean", mean); err != nil {
		return GaussianContexts{}, fmt.Errorf("%s: %w", name, err)
	}
	if !(v > 0 && v <= MaxAbs) {
		return GaussianContexts{}, fmt.Errorf("%s: variance is %v, must be positive and at "+
			"most %v", name, v, MaxAbs)
	}
	return GaussianContexts{c, slices.Clone(mean), v}, nil
}

// Contextual draws θ*, unless it is given.
func (g GaussianContexts) Contextual(s *noise.Fast) (ContextualInstance, error) {
	theta, err := g.cfg.theta(s)
	if err != nil {
		return nil, fmt.Errorf("gaussian contexts: %w", err)
	}
	return &drawnContexts{cfg: g.cfg, theta: theta, mean: g.mean, sd: math.Sqrt(g.v)}, nil
}

// Redrawn says whether every run has its own θ*.
func (g GaussianContexts) Redrawn() bool { return g.cfg.Redrawn }

// String is
// gaussian-contexts(arms=…,dim=…,mean=…,variance=…,theta=…,noise=…,normalise=…,redrawn=…).
func (g GaussianContexts) String() string {
	return fmt.Sprintf("gaussian-contexts(arms=%d,dim=%d,mean=%s,variance=%s,theta=%s,noise=%v,"+
		"normalise=%t,redrawn=%t)", g.cfg.Arms, g.cfg.Dim,
		vector(g.mean), number(g.v), vector(g.cfg.Theta), g.cfg.Noise, g.cfg.Normalise, g.cfg.Redrawn)
}

// SphereContexts is the source of K new actions in each round, independent and uniform on the
// unit sphere of ℝ^d.
type SphereContexts struct{ cfg ContextConfig }

// NewSphereContexts returns the source of contexts on the sphere. Their norms are 1:
// Normalise does nothing.
func NewSphereContexts(c ContextConfig) (SphereContexts, error) {
	if err := c.check(); err != nil {
		return SphereContexts{}, fmt.Errorf("sphere contexts: %w", err)
	}
	c.Normalise = false
	return SphereContexts{c}, nil
}

// Contextual draws θ*, unless it is given.
func (g SphereContexts) Contextual(s *noise.Fast) (ContextualInstance, error) {
	theta, err := g.cfg.theta(s)
	if err != nil {
		return nil, fmt.Errorf("sphere contexts: %w", err)
	}
	return &drawnContexts{cfg: g.cfg, theta: theta, onSphere: true}, nil
}

// Redrawn says whether every run has its own θ*.
func (g SphereContexts) Redrawn() bool { return g.cfg.Redrawn }

// String is sphere-contexts(arms=…,dim=…,theta=…,noise=…,redrawn=…).
func (g SphereContexts) String() string {
	return fmt.Sprintf("sphere-contexts(arms=%d,dim=%d,theta=%s,noise=%v,redrawn=%t)", g.cfg.Arms,
		g.cfg.Dim, vector(g.cfg.Theta), g.cfg.Noise,
		g.cfg.Redrawn)
}

// drawnContexts is an instance of GaussianContexts or SphereContexts.
type drawnContexts struct {
	cfg      ContextConfig
	theta    []float64
	mean     []float64
	sd       float64
	onSphere bool
}

func (c *drawnContexts) Dim() int        { return c.cfg.Dim }
func (c *drawnContexts) MaxActions() int { return c.cfg.Arms }

func (c *drawnContexts) Bounded() bool {
	return c.cfg.Noise.bounded() && (c.onSphere || c.cfg.Normalise)
}

func (c *drawnContexts) Reward(mean float64, s *noise.Fast) float64 { return c.cfg.Noise.draw(mean, s) }

// Round draws the actions in their order, d normals each. Runs of contextual bandits spend half of
// their time here.
func (c *drawnContexts) Round(actions, means []float64, s *noise.Fast) (a, m []float64) {
	d, k := c.cfg.Dim, c.cfg.Arms
	actions, means = room(actions, k*d), room(means, k)
	if c.onSphere {
		for i := range means {
			x := actions[i*d : i*d+d]
			sphere(x, s)
			means[i] = c.cfg.Noise.mean(dot(c.theta, x))
		}
		return actions, means
	}
	s.Normals(actions)
	theta, centre, sd := c.theta, c.mean[:len(c.theta)], c.sd
	for i := range means {
		x := actions[i*d : i*d+d][:len(theta)]
		var mean, q float64
		for j, t := range theta {
			y := centre[j] + float64(sd*x[j])
			x[j] = y
			mean += float64(t * y)
			q += float64(y * y)
		}
		if c.cfg.Normalise {
			if q > 1 { // to the nearest vector of the unit ball
				r := 1 / math.Sqrt(q)
				for j := range x {
					x[j] = float64(x[j] * r)
				}
				mean = float64(mean * r)
			}
		}
		means[i] = c.cfg.Noise.mean(mean)
	}
	return actions, means
}

// room is a slice of length n, the given one if it has room.
func room(x []float64, n int) []float64 {
	if cap(x) < n {
		return make([]float64, n)
	}
	return x[:n]
}

// FixedContexts is the source of the same decision set in each round: a linear bandit, for policies
// that choose each round.
type FixedContexts struct {
	cfg    ContextConfig
	rows   []float64
	action [][]float64
}

// NewFixedContexts returns the source of this decision set, actions of one dimension, at least one.
// Norms are at most 1, and the fields Arms, Dim and Normalise of the configuration are not read.
func NewFixedContexts(actions [][]float64, c ContextConfig) (FixedContexts, error) {
	const name = "fixed contexts"
	if len(actions) == 0 {
		return FixedContexts{}, fmt.Errorf("%s: the decision set is empty, must have at "+
			"least one action", name)
	}
	c.Arms, c.Dim, c.Normalise = len(actions), len(actions[0]), false
	if err := c.check(); err != nil {
		return FixedContexts{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(actions) > 1 {
		if err := checkActions(actions, 1); err != nil {
			return FixedContexts{}, fmt.Errorf("%s: %w", name, err)
		}
	} else if err := checkVector("action 1", actions[0]); err != nil {
		return FixedContexts{}, fmt.Errorf("%s: %w", name, err)
	} else if r := norm(actions[0]); r > 1+unitball.Slack {
		return FixedContexts{}, fmt.Errorf("%s: action 1 has norm %v, must be at most 1 (or "+
			"normalise: true)", name, r)
	}
	f := FixedContexts{cfg: c}
	for _, a := range actions {
		f.rows = append(f.rows, a...)
	}
	for i := range actions {
		f.action = append(f.action, f.rows[i*c.Dim:(i+1)*c.Dim])
	}
	return f, nil
}

// Contextual draws θ*, unless it is given.
func (f FixedContexts) Contextual(s *noise.Fast) (ContextualInstance, error) {
	theta, err := f.cfg.theta(s)
	if err != nil {
		return nil, fmt.Errorf("fixed contexts: %w", err)
	}
	c := &fixedContexts{cfg: f.cfg, rows: f.rows}
	for _, a := range f.action {
		c.means = append(c.means, f.cfg.Noise.mean(dot(theta, a)))
	}
	return c, nil
}

// Redrawn says whether every run has its own θ*.
func (f FixedContexts) Redrawn() bool { return f.cfg.Redrawn }

// String is fixed-contexts(actions=[…] […],theta=…,noise=…,redrawn=…).
func (f FixedContexts) String() string {
	var b []byte
	for i, a := range f.action {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, vector(a)...)
	}
	return fmt.Sprintf("fixed-contexts(actions=%s,theta=%s,noise=%v,redrawn=%t)", b,
		vector(f.cfg.Theta), f.cfg.Noise, f.cfg.Redrawn)
}

type fixedContexts struct {
	cfg         ContextConfig
	rows, means []float64
}

func (c *fixedContexts) Dim() int                                   { return c.cfg.Dim }
func (c *fixedContexts) MaxActions() int                            { return c.cfg.Arms }
func (c *fixedContexts) Bounded() bool                              { return c.cfg.Noise.bounded() }
func (c *fixedContexts) Reward(mean float64, s *noise.Fast) float64 { return c.cfg.Noise.draw(mean, s) }

// Rows are all vectors, one after the other.
func (c *fixedContexts) Rows() []float64 { return c.rows }

func (c *fixedContexts) Round(actions, means []float64, _ *noise.Fast) (a, m []float64) {
	return append(actions[:0], c.rows...), append(means[:0], c.means...)
}

var (
	_ ContextualSource = GaussianContexts{}
	_ ContextualSource = SphereContexts{}
	_ ContextualSource = FixedContexts{}
	_ ContextualSource = (*ContextLog)(nil)
)
