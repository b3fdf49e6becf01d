package bandit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/noise"
)

// A LinearInstance is a finite set of actions in ℝ^d with the law of each one's rewards.
// NewLinearInstance and ReadLinearCSV make one.
type LinearInstance struct {
	Actions  [][]float64
	Theta    []float64 // θ*; nil for logged rewards, whose means need not be linear
	Instance           // the law of each action's reward, mean ⟨θ*,a⟩
}

// A LinearSource is where the linear instance of a run comes from.
type LinearSource interface {
	Linear(s *noise.Fast) (LinearInstance, error)
	// Redrawn is as in Source.
	Redrawn() bool
	String() string // canonical: the key of its streams
}

// MaxDim is the largest dimension of an action.
const MaxDim = 1 << 10

// NewLinearInstance returns the instance of these actions, at least two and all different, and
// this θ*, with rewards of this noise around ⟨θ*,a⟩. All norms are at most 1 ([Azize 2024,
// Assumption 5.10]; [Azize and Basu 2024, Assumption 1]): Normalise helps those that are not. The
// arguments are copied.
func NewLinearInstance(actions [][]float64, theta []float64, n RewardNoise) (LinearInstance, error) {
	in := LinearInstance{Actions: make([][]float64, len(actions)), Theta: slices.Clone(theta)}
	for i, a := range actions {
		in.Actions[i] = slices.Clone(a)
	}
	in.Arms = make([]Law, len(actions))
	if err := checkActions(in.Actions, 1); err != nil {
		return LinearInstance{}, fmt.Errorf("linear instance: %w", err)
	}
	if err := checkTheta(in.Theta, in.Dim()); err != nil {
		return LinearInstance{}, fmt.Errorf("linear instance: %w", err)
	}
	for i, a := range in.Actions {
		l, err := n.Law(dot(in.Theta, a))
		if err != nil {
			return LinearInstance{}, fmt.Errorf("linear instance: action %d: %w", i+1, err)
		}
		in.Arms[i] = l
	}
	return in, nil
}

// Dim is the dimension d of the actions, 0 if there are none.
func (in LinearInstance) Dim() int {
	if len(in.Actions) == 0 {
		return 0
	}
	return len(in.Actions[0])
}

// Validate says what is wrong with an instance that was put together by hand: what
// NewLinearInstance refuses, and an action without a law.
func (in LinearInstance) Validate() error {
	if err := checkActions(in.Actions, 1); err != nil {
		return fmt.Errorf("linear instance: %w", err)
	}
	if in.Theta != nil {
		if err := checkTheta(in.Theta, in.Dim()); err != nil {
			return fmt.Errorf("linear instance: %w", err)
		}
	}
	if len(in.Arms) != len(in.Actions) {
		return fmt.Errorf("linear instance: %d laws for %d actions, must be as many",
			len(in.Arms), len(in.Actions))
	}
	return in.Instance.Validate()
}

// String is linear(actions=…,dim=…,sha256=…): a hash of the actions, of θ* and of the laws. Equal
// strings are equal instances.
func (in LinearInstance) String() string {
	h := sha256.New()
	for _, a := range in.Actions {
		hashVector(h, a)
	}
	hashVector(h, in.Theta)
	h.Write([]byte(in.Instance.String()))
	return fmt.Sprintf("linear(actions=%d,dim=%d,sha256=%s)", len(in.Actions), in.Dim(),
		hex.EncodeToString(h.Sum(nil)))
}

func hashVector(h interface{ Write([]byte) (int, error) }, a []float64) {
	b := make([]byte, 0, 8*len(a)+8)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(a)))
	for _, x := range a {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(unsigned(x)))
	}
	h.Write(b) // a hash takes everything
}

// Normalise scales actions and θ* jointly so that the largest action has norm 1: actions are
// divided by R = max ‖a‖ and θ* is multiplied by it, which changes no mean. It returns copies, and
// R. If R‖θ*‖ > 1 means can leave [−1,1] and no scaling of the actions helps: an error says so.
// theta may be nil, for logged rewards.
func Normalise(actions [][]float64, theta []float64) (a [][]float64, t []float64, r float64, err error) {
	for i, x := range actions {
		if err := checkVector(fmt.Sprintf("action %d", i+1), x); err != nil {
			return nil, nil, 0, fmt.Errorf("normalise: %w", err)
		}
		r = max(r, norm(x))
	}
	if err := checkVector("theta", theta); err != nil {
		return nil, nil, 0, fmt.Errorf("normalise: %w", err)
	}
	if r == 0 {
		return nil, nil, 0, errors.New("normalise: all actions are 0: at least one must have a positive norm")
	}
	if s := float64(r * norm(theta)); s > 1+unitball.Slack {
		return nil, nil, 0, fmt.Errorf("normalise: the largest action has norm %v and theta %v: "+
			"their product is %v and must be at most 1, or means leave [-1,1]",
			r, norm(theta), s)
	}
	a = make([][]float64, len(actions))
	for i, x := range actions {
		a[i] = make([]float64, len(x))
		for j := range x {
			a[i][j] = x[j] / r
		}
	}
	if theta != nil {
		t = make([]float64, len(theta))
		for j := range theta {
			t[j] = float64(theta[j] * r)
		}
	}
	return a, t, r, nil
}

// FixedLinear is the source that always gives this instance.
type FixedLinear LinearInstance

// Linear is the instance itself, if it is valid; it reads nothing from the stream, which may be nil.
func (f FixedLinear) Linear(*noise.Fast) (LinearInstance, error) {
	in := LinearInstance(f)
	if err := in.Validate(); err != nil {
		return LinearInstance{}, err
	}
	return in, nil
}

// Redrawn is false.
func (f FixedLinear) Redrawn() bool { return false }

// String is the instance's.
func (f FixedLinear) String() string { return LinearInstance(f).String() }

// SphereActions is the source of [Azize 2024, §5.5.2] and [Azize and Basu 2024, §VII-A]: K actions
// independent and uniform on the unit sphere of ℝ^d, and θ* uniform on it too.
type SphereActions struct {
	arms, dim int
	theta     []float64
	noise     RewardNoise
	redrawn   bool
}

// NewSphereActions returns the source of this many actions, from 2 to MaxArms, in ℝ^d, d from 2 to
// MaxDim, on whose sphere no two actions are the same. theta is nil for a θ* that is drawn with the
// actions, uniform on the sphere; else a given one, ‖θ*‖ ≤ 1. If redrawn, every run has its own
// actions and θ*; the sources do not say which they did.
func NewSphereActions(arms, dim int, theta []float64, n RewardNoise, redrawn bool) (SphereActions, error) {
	const name = "sphere actions"
	if err := checkArms(arms); err != nil {
		return SphereActions{}, fmt.Errorf("%s: %w", name, err)
	}
	if dim < 2 || dim > MaxDim {
		return SphereActions{}, fmt.Errorf("%s: the dimension is %d, must be between 2 and %d",
			name, dim, MaxDim)
	}
	if theta != nil {
		if err := checkTheta(theta, dim); err != nil {
			return SphereActions{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return SphereActions{arms, dim, slices.Clone(theta), n, redrawn}, nil
}

// Linear draws θ*, unless it is given, and then the actions in their order, d normals each.
func (g SphereActions) Linear(s *noise.Fast) (LinearInstance, error) {
	theta := g.theta
	if theta == nil {
		theta = make([]float64, g.dim)
		sphere(theta, s)
	}
	actions := make([][]float64, g.arms)
	for i := range actions {
		actions[i] = make([]float64, g.dim)
		sphere(actions[i], s)
	}
	return NewLinearInstance(actions, theta, g.noise)
}

// Redrawn says whether every run has its own actions.
func (g SphereActions) Redrawn() bool { return g.redrawn }

// String is sphere-actions(arms=…,dim=…,theta=…,noise=…,redrawn=…).
func (g SphereActions) String() string {
	return fmt.Sprintf("sphere-actions(arms=%d,dim=%d,theta=%s,noise=%v,redrawn=%t)", g.arms, g.dim,
		vector(g.theta), g.noise, g.redrawn)
}

// sphere makes a uniform on the unit sphere: a normal vector, scaled.
func sphere(a []float64, s *noise.Fast) {
	for {
		s.Normals(a)
		if r := norm(a); r > 1e-100 {
			for j := range a {
				a[j] /= r
			}
			return
		}
	}
}

// vector writes a vector with the fewest digits that read back, and nil as sphere, which is where
// it is then drawn.
func vector(a []float64) string {
	if a == nil {
		return "sphere"
	}
	b := []byte{'['}
	for i, x := range a {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, number(unsigned(x))...)
	}
	return string(append(b, ']'))
}

func dot(a, b []float64) float64 {
	var x float64
	for i, y := range a {
		x += float64(y * b[i])
	}
	return x
}

// norm is ‖a‖₂. Vectors here are of moderate size (checkVector), so squares stay finite.
func norm(a []float64) float64 { return math.Sqrt(dot(a, a)) }

// checkActions refuses what is no set of at least two different actions of one dimension, with
// norms of at most limit.
func checkActions(actions [][]float64, limit float64) error {
	if n := len(actions); n < 2 || n > MaxArms {
		return fmt.Errorf("the number of actions is %d, must be between 2 and %d", n, MaxArms)
	}
	d := len(actions[0])
	if d < 1 || d > MaxDim {
		return fmt.Errorf("the dimension is %d, must be between 1 and %d", d, MaxDim)
	}
	seen := make(map[string]int, len(actions))
	var key []byte
	for i, a := range actions {
		if len(a) != d {
			return fmt.Errorf("action %d has %d features and action 1 has %d, all must have as many",
				i+1, len(a), d)
		}
		if err := checkVector(fmt.Sprintf("action %d", i+1), a); err != nil {
			return err
		}
		if r := norm(a); r > limit+unitball.Slack {
			return fmt.Errorf("action %d has norm %v, must be at most %v (or normalise: true)",
				i+1, r, limit)
		}
		key = vectorKey(key[:0], a)
		if j, ok := seen[string(key)]; ok {
			return fmt.Errorf("actions %d and %d are the same, %s: actions must be distinct", j+1,
				i+1, vector(a))
		}
		seen[string(key)] = i
	}
	return nil
}

// vectorKey tells vectors of one dimension apart.
func vectorKey(key []byte, a []float64) []byte {
	for _, x := range a {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(unsigned(x)))
	}
	return key
}

// checkVector refuses features that are not numbers of moderate size.
func checkVector(name string, a []float64) error {
	for j, x := range a {
		if !(math.Abs(x) <= MaxAbs) {
			return fmt.Errorf("%s: feature %d is %v, must be a finite number, at most %v in "+
				"absolute value", name, j+1, x, MaxAbs)
		}
	}
	return nil
}

func checkTheta(theta []float64, d int) error {
	if len(theta) != d {
		return fmt.Errorf("theta has %d features and the actions have %d, must have as many", len(theta), d)
	}
	if err := checkVector("theta", theta); err != nil {
		return err
	}
	if r := norm(theta); r > 1+unitball.Slack {
		return fmt.Errorf("theta has norm %v, must be at most 1", r)
	}
	return nil
}

var (
	_ LinearSource = FixedLinear{}
	_ LinearSource = SphereActions{}
)
