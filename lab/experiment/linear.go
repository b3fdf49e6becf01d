package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/noise"
)

// A Linear says what the actions of an instance of KindLinear or KindContextual are, in exactly one
// way: Actions; of KindLinear also Sphere; of KindContextual also Contexts; or, with the instance's
// CSV, none of them. Rewards have mean ⟨θ*,a⟩.
type Linear struct {
	Actions [][]float64 // the same in each round
	Sphere  bool        // Arms actions, uniform on the sphere of ℝ^Dimension
	// Arms actions in each round: gaussian, N(Mean, Variance·I), or sphere, uniform on it
	Contexts  string
	Arms      keyed.Count
	Dimension keyed.Count
	// of Gaussian contexts: one number for all coordinates, or one each; nil: 1/√Dimension
	Mean      []float64
	Variance  float64   // of each coordinate of Gaussian contexts; 0: 0.1
	Theta     []float64 // θ*; nil: drawn uniformly on the sphere
	Noise     string    // sign (or empty): rewards are −1 or 1; gaussian(SD)
	Normalise bool      // scale what has a norm above 1: see docs/experiments.md
	Redraw    bool      // draw what is drawn once for each run anew; else for all runs together
}

// defaultVariance is that of Gaussian contexts in [Azize 2024, §5.5.2] and
// [Azize and Basu 2024, §VII-A].
const defaultVariance = 0.1

// given says whether it is an instance by itself, without a CSV.
func (l *Linear) given() bool { return l != nil && (l.Actions != nil || l.Sphere || l.Contexts != "") }

func (l *Linear) variance() float64 {
	if l.Variance == 0 {
		return defaultVariance
	}
	return l.Variance
}

// parseNoise reads sign, gaussian or gaussian(SD).
func parseNoise(text string) (bandit.RewardNoise, error) {
	const want = "want sign, or gaussian(SD) with a standard deviation above 0"
	switch text {
	case "", "sign":
		return bandit.SignNoise(), nil
	case "gaussian":
		return bandit.GaussianNoise(1)
	}
	inner, ok := strings.CutPrefix(text, "gaussian(")
	if ok {
		inner, ok = strings.CutSuffix(inner, ")")
	}
	if !ok {
		return bandit.RewardNoise{}, fmt.Errorf("is %q%s: %s", keyed.Clip(text),
			catalog.Hint(keyed.Clip(text), []string{"sign", "gaussian(1)"}), want)
	}
	digits, ok := keyed.Plain(strings.TrimSpace(inner))
	sd, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(sd > 0) {
		return bandit.RewardNoise{}, fmt.Errorf("is %q: %s", keyed.Clip(text), want)
	}
	return bandit.GaussianNoise(sd)
}

// key is what an instance's streams are keyed by.
func (p *Resolved) key(source fmt.Stringer) (content string, stream *noise.Fast) {
	content = fmt.Sprintf("%v range=[-1,1]", source)
	s := noise.Key{Seed: p.Spec.Seed, Experiment: content, Run: runOfAll, Role: noise.RoleInstance}.Fast(1)
	return content, &s[0]
}

// leaves warns of rewards beyond the range, and says whether they are clipped to it.
func (p *Resolved) leaves(instance string) (clipped bool) {
	if p.Spec.Unclipped {
		p.warn("instance %s: rewards leave [-1, 1] and are not clipped: no privacy guarantee", instance)
		return false
	}
	p.warn("instance %s: rewards leave [-1, 1] and are clipped to it, which bends their means; "+
		"regret counts the means before clipping", instance)
	return true
}

// parsedNoise is the noise of an instance whose noise has been read before; signs if it has none.
func parsedNoise(l *Linear) bandit.RewardNoise {
	if l == nil {
		return bandit.SignNoise()
	}
	n, err := parseNoise(l.Noise)
	if err != nil {
		return bandit.SignNoise()
	}
	return n
}

// size checks the numbers of actions and of dimensions.
func (l *Linear) size(at string, least keyed.Count) (field string, err error) {
	if err := armCount(l.Arms); err != nil {
		return at + "arms", err
	}
	switch d := l.Dimension; {
	case d == 0:
		return at + "dimension", fmt.Errorf("is missing, must be the dimension of the actions, from "+
			"%d to %d", least, bandit.MaxDim)
	case d < least || d > bandit.MaxDim:
		return at + "dimension", fmt.Errorf("is %d, must be a dimension from %d to %d", int(d), least,
			bandit.MaxDim)
	}
	return "", nil
}

// norm is ‖a‖₂, without overflow.
func norm(a []float64) float64 {
	n := 0.0
	for _, x := range a {
		n = math.Hypot(n, x)
	}
	return n
}

// checkTheta checks a θ* that is given.
func (l *Linear) checkTheta(dim int) (field string, err error) {
	if l.Theta == nil {
		return "", nil
	}
	if len(l.Theta) != dim {
		return "theta", fmt.Errorf("has %d numbers and actions have %d, must be as many", len(l.Theta), dim)
	}
	for j, x := range l.Theta {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Sprintf("theta[%d]", j), fmt.Errorf("is %v, must be a finite number", x)
		}
	}
	if n := norm(l.Theta); n > 1+unitball.Slack && (l.Actions == nil || !l.Normalise) {
		return "theta", fmt.Errorf("has norm %.6g, must be at most 1%s", n,
			keyed.Either(l.Actions != nil, ", or normalise: true if the actions are so small", ""))
	}
	return "", nil
}

// actions checks the list of actions, and scales them and θ* if they are to be normalised.
func (l *Linear) actions(thetaGiven bool) (actions [][]float64, theta []float64, field string, err error) {
	fail := func(i, j int, format string, args ...any) ([][]float64, []float64, string, error) {
		field := "actions"
		if i >= 0 {
			field += fmt.Sprintf("[%d]", i)
		}
		if j >= 0 {
			field += fmt.Sprintf("[%d]", j)
		}
		return nil, nil, field, fmt.Errorf(format, args...)
	}
	switch n := len(l.Actions); {
	case n == 0:
		return fail(-1, -1, "is empty, must be at least 2 actions")
	case n == 1:
		return fail(-1, -1, "has 1 action, must be at least 2, or there is nothing to learn")
	case n > bandit.MaxArms:
		return fail(-1, -1, "has %d actions, must be at most %d", n, bandit.MaxArms)
	}
	d := len(l.Actions[0])
	seen := map[string]int{}
	for i, a := range l.Actions {
		switch {
		case len(a) == 0 || len(a) > bandit.MaxDim:
			return fail(i, -1, "has %d numbers, must be from 1 to %d", len(a), bandit.MaxDim)
		case len(a) != d:
			return fail(i, -1, "has %d numbers, the first action %d, must be as many in each", len(a), d)
		}
		for j, x := range a {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fail(i, j, "is %v, must be a finite number", x)
			}
		}
		if n := norm(a); n > 1+unitball.Slack && !l.Normalise {
			return fail(i, -1, "has norm %.6g, must be at most 1, or normalise: true", n)
		}
		key := fmt.Sprint(keyed.List(a))
		if j, twice := seen[key]; twice {
			return fail(i, -1, "is also actions[%d]: actions must differ", j)
		}
		seen[key] = i
	}
	if thetaGiven && l.Theta == nil {
		return nil, nil, "theta", fmt.Errorf("is missing, must be a list of %d numbers, of norm at most 1", d)
	}
	if field, err := l.checkTheta(d); err != nil {
		return nil, nil, field, err
	}
	if !l.Normalise {
		return l.Actions, l.Theta, "", nil
	}
	actions, theta, _, err = bandit.Normalise(l.Actions, l.Theta)
	return actions, theta, "actions", err
}

// rank is the dimension of what the actions span: Gram and Schmidt, with the longest remainder first.
func rank(actions [][]float64) int {
	rest := make([][]float64, len(actions))
	for i, a := range actions {
		rest[i] = slices.Clone(a)
	}
	first := 0.0
	for r := 0; ; r++ {
		best, at := 0.0, -1
		for i, a := range rest {
			if n := norm(a); n > best {
				best, at = n, i
			}
		}
		first = max(first, best)
		if r == len(actions[0]) || best <= 1e-9*first {
			return r
		}
		q := slices.Clone(rest[at])
		for j := range q {
			q[j] /= best
		}
		for _, a := range rest {
			dot := 0.0
			for j := range a {
				dot += float64(a[j] * q[j])
			}
			for j := range a {
				a[j] -= float64(dot * q[j])
			}
		}
	}
}

// vectors is what KindLinear and KindContextual have in common: actions in ℝ^d.
type vectors struct{ measured }

func (vectors) span() (lo, hi float64) { return -1, 1 }

func (vectors) unitRange() keyed.Key[Spec] {
	return rangeKey("rewards are in [-1, 1]", "`[-1, 1]`, whether given or not: scale rewards that "+
		"are elsewhere. Clipping bends a linear model, so rewards that leave the range are warned of").
		Like(keyed.Object{"const": []any{-1, 1}})
}

func (vectors) check(s *Spec) error {
	if lo, hi := s.span(); lo != -1 || hi != 1 {
		return s.fail("range", "is [%v, %v]: rewards are in [-1, 1] in an experiment of "+
			"kind %s; scale them", lo, hi, s.Kind)
	}
	return nil
}

// each makes the worlds. A world of a CSV without more has no Linear yet: there is one normal form.
func (vectors) each(p *Resolved, resolve func(*Instance) (environment, string, error)) ([]environment, error) {
	out, err := p.eachInstance(func(in *Instance) (environment, string, error) {
		if in.CSV != "" && in.Linear == nil {
			in.Linear = &Linear{}
		}
		return resolve(in)
	})
	if p.Spec.Unclipped {
		p.warn("unclipped: rewards are not clipped to [-1, 1]: no privacy guarantee")
	}
	return out, err
}

func (vectors) tell(*Spec, *Cell, *CellInfo) {}

// The keys of their instances.

func beginLinear(in *Instance) { in.Linear = &Linear{} }

// ofLinear is a field of an instance's Linear.
func ofLinear[F any](at func(*Linear) *F) func(*Instance) *F {
	return func(in *Instance) *F {
		if in.Linear == nil {
			return nil
		}
		return at(in.Linear)
	}
}

func vector() keyed.Form[[]float64] { return keyed.Reals(keyed.Object{"minItems": 1}) }

func actionsKey() keyed.Key[Instance] {
	return keyed.Of("actions", keyed.Many(vector(), keyed.Object{"minItems": 2}),
		ofLinear(func(l *Linear) *[][]float64 { return &l.Actions }), "the actions, of one dimension").Must()
}

func theta() keyed.Form[[]float64] {
	f := vector()
	one := f.Schema
	f.Schema = func() keyed.Object { return keyed.Object{"anyOf": []any{one(), keyed.Object{"const": "sphere"}}} }
	f.Read = func(d *keyed.Decoder, n ast.Node, at string, to *[]float64) error {
		if s, ok := n.(*ast.StringNode); ok && s.Value == "sphere" {
			return nil
		}
		if _, ok := n.(*ast.SequenceNode); !ok {
			return d.Fail(n, at, "is %s, must be a list of numbers, or sphere", keyed.KindOfNode(n))
		}
		return vector().Read(d, n, at, to)
	}
	return f
}

func thetaKey() keyed.Key[Instance] {
	return keyed.Of("theta", theta(), ofLinear(func(l *Linear) *[]float64 { return &l.Theta }),
		"theta*, of norm at most 1: the mean of an action's rewards is its inner product with it; "+
			"sphere: drawn uniformly on the sphere").Or("sphere")
}

// thetaGivenKey is that of a list of actions, which are drawn by nobody.
func thetaGivenKey() keyed.Key[Instance] {
	k := thetaKey().Must()
	k.Doc, k.Schema = "", vector().Schema
	return k
}

func rewardNoiseKey() keyed.Key[Instance] {
	f := keyed.As(keyed.Object{"type": "string", "pattern": `^(sign|gaussian|gaussian\(.+\))$`, "default": "sign"},
		func(d *keyed.Decoder, n ast.Node, at string, to *string) error {
			if err := d.Text(n, at, to); err != nil {
				return err
			}
			if _, err := parseNoise(*to); err != nil {
				return d.Fail(n, at, "%w", err)
			}
			return nil
		})
	return keyed.Of("noise", f, ofLinear(func(l *Linear) *string { return &l.Noise }),
		"rewards are signs, -1 or 1, or Gaussian of this standard deviation").Or("sign")
}

func normaliseKey() keyed.Key[Instance] {
	return keyed.Always("normalise", keyed.YesNo(), ofLinear(func(l *Linear) *bool { return &l.Normalise }),
		"scale what has a norm above 1")
}

func redrawKey(doc string) keyed.Key[Instance] {
	return keyed.Always("redraw", keyed.YesNo(), ofLinear(func(l *Linear) *bool { return &l.Redraw }), doc)
}

// sphereKey says how many actions are drawn, of which dimension.
func sphereKey() keyed.Key[Instance] {
	size := keyed.Mapped(func() []keyed.Key[Linear] {
		return []keyed.Key[Linear]{
			keyed.Always("arms", keyed.Whole(), func(l *Linear) *keyed.Count { return &l.Arms },
				"number of actions, at least 2").Must(),
			keyed.Always("dimension", keyed.Whole(), func(l *Linear) *keyed.Count { return &l.Dimension },
				"d, at least 2").Must(),
		}
	})
	k := keyed.Of("sphere", size, func(in *Instance) *Linear { return in.Linear }, "").Must()
	k.Given = func(in *Instance) bool { return in.Linear != nil && in.Linear.Sphere }
	read := k.Read
	k.Read = func(d *keyed.Decoder, n ast.Node, at string, to *Instance) error {
		to.Linear.Sphere = true
		return read(d, n, at, to)
	}
	return k
}

func contextsKey() keyed.Key[Instance] {
	f := keyed.Filled(", must be gaussian or sphere")
	f.Schema = func() keyed.Object { return keyed.Object{"enum": []any{"gaussian", "sphere"}} }
	return keyed.Of("contexts", f, ofLinear(func(l *Linear) *string { return &l.Contexts }),
		"law of the actions of each round").Must()
}

func meanKey() keyed.Key[Instance] {
	at := ofLinear(func(l *Linear) *[]float64 { return &l.Mean })
	k := keyed.Of("mean", vector(), at, "of Gaussian contexts: one number for all coordinates, or one "+
		"each; 1/sqrt(d) if not given")
	one := k.Schema
	k.Schema = func() keyed.Object { return keyed.Object{"anyOf": []any{keyed.Object{"type": "number"}, one()}} }
	k.Read = func(d *keyed.Decoder, n ast.Node, place string, to *Instance) error {
		if _, ok := n.(*ast.SequenceNode); !ok {
			*at(to) = make([]float64, 1)
			return d.Float(n, place, &(*at(to))[0])
		}
		if err := vector().Read(d, n, place, at(to)); err != nil {
			return err
		}
		if len(*at(to)) == 0 {
			return d.Fail(n, place, "is empty, must be a number, or a list of them")
		}
		return nil
	}
	k.Value = func(in *Instance) (any, error) {
		switch l := in.Linear; len(l.Mean) {
		case 0:
			return 1 / math.Sqrt(float64(l.Dimension)), nil
		case 1:
			return l.Mean[0], nil
		default:
			return keyed.List(l.Mean), nil
		}
	}
	return k
}

func varianceKey() keyed.Key[Instance] {
	f := keyed.Real(keyed.Object{"exclusiveMinimum": 0, "default": defaultVariance})
	f.Read = func(d *keyed.Decoder, n ast.Node, at string, to *float64) error {
		if err := d.Float(n, at, to); err != nil {
			return err
		}
		if !(*to > 0) {
			return d.Fail(n, at, "is %v, must be a finite number above 0", *to)
		}
		return nil
	}
	return keyed.Of("variance", f, ofLinear(func(l *Linear) *float64 { return &l.Variance }),
		"of each coordinate of Gaussian contexts").Or(defaultVariance)
}
