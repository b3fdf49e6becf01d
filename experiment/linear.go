package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A Linear says what the actions of an instance of KindLinear or KindContextual are, in exactly one
// way: Actions; of KindLinear also Sphere; of KindContextual also Contexts; or, with the instance's
// CSV, none of them. Rewards have mean ⟨θ*,a⟩.
type Linear struct {
	Actions [][]float64 // the same in each round
	Sphere  bool        // Arms actions, uniform on the sphere of ℝ^Dimension
	// Arms actions in each round: gaussian, N(Mean, Variance·I), or sphere, uniform on it
	Contexts  string
	Arms      Count
	Dimension Count
	// of Gaussian contexts: one number for all coordinates, or one each; nil: 1/√Dimension
	Mean      []float64
	Variance  float64   // of each coordinate of Gaussian contexts; 0: DefaultVariance
	Theta     []float64 // θ*; nil: drawn uniformly on the sphere
	Noise     string    // sign (or empty): rewards are −1 or 1; gaussian(SD)
	Normalise bool      // scale what has a norm above 1: see docs/experiments.md
	Redraw    bool      // draw what is drawn once for each run anew; else for all runs together
}

// DefaultVariance is that of Gaussian contexts in [Azize 2024, §5.5] and [Azize and
// Basu 2024, §VIII].
const DefaultVariance = 0.1

// given says whether it is an instance by itself, without a CSV.
func (l *Linear) given() bool { return l != nil && (l.Actions != nil || l.Sphere || l.Contexts != "") }

// linearKind says whether an experiment of this kind has actions in ℝ^d.
func linearKind(kind string) bool { return kind == KindLinear || kind == KindContextual }

// banditOf is the kind of bandit that the policies of a kind of experiment play.
func banditOf(kind string) string {
	switch kind {
	case KindLinear:
		return catalog.BanditLinear
	case KindContextual:
		return catalog.BanditContextual
	case KindIdentify:
		return catalog.BanditIdentify
	}
	return catalog.BanditArms
}

// ways are the ways to say what an instance is, and the further keys that each of them takes.
type ways []struct {
	key   string
	takes []string
}

func instanceWays(kind string) ways {
	switch kind {
	case KindLinear:
		return ways{
			{"actions", []string{"theta", "noise", "normalise"}},
			{"sphere", []string{"theta", "noise", "redraw"}},
			{"csv", []string{"sha256", "normalise"}},
			{programKey, nil},
		}
	case KindContextual:
		return ways{
			{"contexts", []string{"arms", "dimension", "mean", "variance", "theta", "noise",
				"normalise", "redraw"}},
			{"actions", []string{"theta", "noise", "normalise", "redraw"}},
			{"csv", []string{"sha256", "normalise"}},
			{programKey, nil},
		}
	}
	return ways{
		{"bernoulli", nil},
		{"laws", nil},
		{"standard", []string{"arms"}},
		{"means", []string{"arms", "law", "sd", "redraw"}},
		{"csv", []string{"arm_column", "reward_column", "user_column", "skip_missing", "sha256"}},
		{programKey, nil},
	}
}

// names are the ways that a file may use.
func (w ways) names() []string {
	var out []string
	for _, k := range w {
		if k.key != programKey {
			out = append(out, k.key)
		}
	}
	return out
}

// normal is the fields of an instance in normal form, its name apart.
func (l *Linear) normal(csv string) ([]field, error) {
	if csv != "" {
		return []field{{"csv", csv}, {"normalise", l != nil && l.Normalise}}, nil
	}
	var theta any = "sphere"
	if l.Theta != nil {
		theta = list(l.Theta)
	}
	n := l.Noise
	if n == "" {
		n = "sign"
	}
	shared := []field{{"theta", theta}, {"noise", n}}
	normalise, redraw := field{"normalise", l.Normalise}, field{"redraw", l.Redraw}
	switch {
	case l.Actions != nil:
		rows := make([]any, len(l.Actions))
		for i, a := range l.Actions {
			rows[i] = list(a)
		}
		out := append([]field{{"actions", rows}}, append(shared, normalise)...)
		if l.Redraw {
			out = append(out, redraw)
		}
		return out, nil
	case l.Sphere:
		return append([]field{{"sphere", []field{{"arms", l.Arms}, {"dimension", l.Dimension}}}},
			append(shared, redraw)...), nil
	}
	out := []field{{"contexts", l.Contexts}, {"arms", l.Arms}, {"dimension", l.Dimension}}
	if l.Contexts == "gaussian" {
		var mean any
		switch len(l.Mean) {
		case 0:
			mean = 1 / math.Sqrt(float64(l.Dimension))
		case 1:
			mean = l.Mean[0]
		default:
			mean = list(l.Mean)
		}
		out = append(out, field{"mean", mean}, field{"variance", l.variance()})
	}
	out = append(out, shared...)
	if l.Contexts == "gaussian" {
		out = append(out, normalise)
	}
	return append(out, redraw), nil
}

func (l *Linear) variance() float64 {
	if l.Variance == 0 {
		return DefaultVariance
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
		return bandit.RewardNoise{}, fmt.Errorf("is %q%s: %s", clip(text),
			catalog.Hint(clip(text), []string{"sign", "gaussian(1)"}), want)
	}
	digits, ok := plain(strings.TrimSpace(inner))
	sd, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(sd > 0) {
		return bandit.RewardNoise{}, fmt.Errorf("is %q: %s", clip(text), want)
	}
	return bandit.GaussianNoise(sd)
}

// linearWorlds are the instances of KindLinear and KindContextual.
func (p *Plan) linearWorlds() ([]world, error) {
	s := &p.Spec
	if len(s.Instances) == 0 {
		example := "{name: three, actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]}"
		if s.Kind == KindContextual {
			example = "{name: sphere, contexts: sphere, arms: 10, dimension: 3}"
		}
		return nil, s.fail("instances", "is missing: want at least one, such as %s", example)
	}
	var out []world
	seen := map[string]int{}
	for i := range s.Instances {
		in := &s.Instances[i]
		at := fmt.Sprintf("instances[%d]", i)
		if err := in.named(s, i, seen); err != nil {
			return nil, err
		}
		if in.Bernoulli != nil || in.Laws != nil || in.Standard != "" || in.Means != nil ||
			in.Source != nil || in.Law != "" || in.Columns != (Columns{}) {
			return nil, s.fail(at, "has arms: an experiment of kind %s wants one of %s", s.Kind,
				strings.Join(instanceWays(s.Kind).names(), ", "))
		}
		if in.CSV != "" && in.Linear == nil {
			in.Linear = &Linear{} // one normal form
		}
		resolve := p.linearWorld
		if s.Kind == KindContextual {
			resolve = p.contextualWorld
		}
		w, field, err := resolve(in)
		if err != nil {
			if field != "" {
				at += "." + field
			}
			return nil, s.src.wrap(at, err)
		}
		w.label = in.Name
		out = append(out, w)
	}
	if s.Unclipped {
		p.warn("unclipped: rewards are not clipped to [-1, 1]: no privacy guarantee")
	}
	return out, nil
}

// key is what an instance's streams are keyed by.
func (p *Plan) key(source fmt.Stringer) (content string, stream *noise.Fast) {
	content = fmt.Sprintf("%v range=[-1,1]", source)
	s := noise.Key{Seed: p.Spec.Seed, Experiment: content, Run: runOfAll, Role: noise.RoleInstance}.Fast(1)
	return content, &s[0]
}

// leaves warns of rewards beyond the range, and says whether they are clipped to it.
func (p *Plan) leaves(instance string) (clipped bool) {
	if p.Spec.Unclipped {
		p.warn("instance %s: rewards leave [-1, 1] and are not clipped: no privacy guarantee", instance)
		return false
	}
	p.warn("instance %s: rewards leave [-1, 1] and are clipped to it, which bends their means; "+
		"regret counts the means before clipping", instance)
	return true
}

func (p *Plan) linearWorld(in *Instance) (w world, field string, err error) {
	source, field, err := in.linearSource(&p.Spec)
	if err != nil {
		return w, field, err
	}
	content, stream := p.key(source)
	fixed, err := source.Linear(stream)
	if err != nil {
		return w, field, err
	}
	w = world{linear: source, fixedLinear: fixed, arms: len(fixed.Actions), dim: fixed.Dim(), content: content}
	if a, b := fixed.Support(); a < -1 || b > 1 {
		w.clipped = p.leaves(in.Name)
	}
	if r := rank(fixed.Actions); r < w.dim {
		p.warn("instance %s: the actions span %d of %d dimensions: policies work on their span",
			in.Name, r, w.dim)
	}
	return w, "", nil
}

// linearSource makes the source of an instance of KindLinear. On error it says in which of the
// instance's fields.
func (in *Instance) linearSource(s *Spec) (src bandit.LinearSource, field string, err error) {
	l := in.Linear
	if err := in.oneWay(KindLinear, in.LinearSource != nil); err != nil {
		return nil, "", err
	}
	switch {
	case in.LinearSource != nil:
		return in.LinearSource, "", nil
	case in.CSV != "":
		var inst bandit.LinearInstance
		field, err := in.read(s, func(r io.Reader) (err error) {
			inst, err = bandit.ReadLinearCSV(r, l != nil && l.Normalise)
			return err
		})
		return bandit.FixedLinear(inst), field, err
	}
	n, err := parseNoise(l.Noise)
	if err != nil {
		return nil, "noise", err
	}
	if l.Sphere {
		if field, err := l.size("sphere.", 2); err != nil {
			return nil, field, err
		}
		if field, err := l.checkTheta(int(l.Dimension)); err != nil {
			return nil, field, err
		}
		src, err := bandit.NewSphereActions(int(l.Arms), int(l.Dimension), l.Theta, n, l.Redraw)
		return src, "sphere", err
	}
	actions, theta, field, err := l.actions(true)
	if err != nil {
		return nil, field, err
	}
	inst, err := bandit.NewLinearInstance(actions, theta, n)
	return bandit.FixedLinear(inst), "actions", err
}

func (p *Plan) contextualWorld(in *Instance) (w world, field string, err error) {
	source, field, err := in.contextualSource(&p.Spec)
	if err != nil {
		return w, field, err
	}
	content, stream := p.key(source)
	fixed, err := source.Contextual(stream)
	if err != nil {
		return w, field, err
	}
	w = world{contextual: source, fixedContextual: fixed, arms: fixed.MaxActions(),
		dim: fixed.Dim(), content: content}
	if l := in.Linear; l.given() && l.Contexts == "gaussian" && !l.Normalise {
		if !p.Spec.Unclipped {
			return w, "contexts", errors.New("has vectors of norm above 1, on which sensitivity " +
				"rests: want normalise: true, which moves them into the unit ball; " +
				"or unclipped: true, which voids the privacy guarantee")
		}
		p.warn("instance %s: contexts have norms above 1: no privacy guarantee", in.Name)
	}
	if n := parsedNoise(in.Linear); n != bandit.SignNoise() || !in.Linear.given() && !fixed.Bounded() {
		w.clipped = p.leaves(in.Name)
	}
	return w, "", nil
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

// contextualSource makes the source of an instance of KindContextual. On error it says in which of
// the instance's fields.
func (in *Instance) contextualSource(s *Spec) (src bandit.ContextualSource, field string, err error) {
	l := in.Linear
	if err := in.oneWay(KindContextual, in.ContextualSource != nil); err != nil {
		return nil, "", err
	}
	switch {
	case in.ContextualSource != nil:
		return in.ContextualSource, "", nil
	case in.CSV != "":
		var log *bandit.ContextLog
		field, err := in.read(s, func(r io.Reader) (err error) {
			log, err = bandit.ReadContextualCSV(r, l != nil && l.Normalise)
			return err
		})
		return log, field, err
	}
	c := bandit.ContextConfig{Arms: int(l.Arms), Dim: int(l.Dimension), Theta: l.Theta,
		Normalise: l.Normalise, Redrawn: l.Redraw}
	if c.Noise, err = parseNoise(l.Noise); err != nil {
		return nil, "noise", err
	}
	if l.Actions != nil {
		actions, theta, field, err := l.actions(false)
		if err != nil {
			return nil, field, err
		}
		c.Theta = theta
		src, err := bandit.NewFixedContexts(actions, c)
		return src, "actions", err
	}
	if field, err := l.size("", 1); err != nil {
		return nil, field, err
	}
	if field, err := l.checkTheta(c.Dim); err != nil {
		return nil, field, err
	}
	switch l.Contexts {
	case "sphere":
		if l.Mean != nil || l.Variance != 0 || l.Normalise {
			return nil, "contexts", errors.New("is sphere: mean, variance and normalise are for " +
				"gaussian contexts")
		}
		src, err := bandit.NewSphereContexts(c)
		return src, "contexts", err
	case "gaussian":
		mean := l.Mean
		switch {
		case mean == nil:
		case len(mean) == 1:
			mean = slices.Repeat(mean, c.Dim)
		case len(mean) != c.Dim:
			return nil, "mean", fmt.Errorf("has %d numbers: want one for all coordinates, or %d, "+
				"one each", len(mean), c.Dim)
		}
		for _, x := range mean {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, "mean", fmt.Errorf("is %v: want finite numbers", x)
			}
		}
		if v := l.variance(); !(v > 0) || math.IsInf(v, 0) {
			return nil, "variance", fmt.Errorf("is %v: want a finite number above 0", v)
		}
		src, err := bandit.NewGaussianContexts(c, mean, l.variance())
		return src, "contexts", err
	}
	return nil, "contexts", fmt.Errorf("is %q%s: want gaussian or sphere", clip(l.Contexts),
		catalog.Hint(clip(l.Contexts), []string{"gaussian", "sphere"}))
}

// oneWay says if an instance is not said in one way.
func (in *Instance) oneWay(kind string, program bool) error {
	l, n := in.Linear, 0
	for _, given := range []bool{l != nil && l.Actions != nil, l != nil && l.Sphere, l != nil &&
		l.Contexts != "", in.CSV != "", program} {
		if given {
			n++
		}
	}
	names := strings.Join(instanceWays(kind).names(), ", ")
	switch {
	case n != 1:
		return fmt.Errorf("says what its actions are in %d ways: want exactly one of %s", n, names)
	case l != nil && (kind == KindLinear && l.Contexts != "" || kind == KindContextual && l.Sphere):
		return fmt.Errorf("is of another kind of experiment: one of kind %s wants one of %s", kind, names)
	}
	return nil
}

// size checks the numbers of actions and of dimensions.
func (l *Linear) size(at string, least Count) (field string, err error) {
	if err := armCount(l.Arms); err != nil {
		return at + "arms", err
	}
	switch d := l.Dimension; {
	case d == 0:
		return at + "dimension", fmt.Errorf("is missing: want the dimension of the actions, from "+
			"%d to %d", least, bandit.MaxDim)
	case d < least || d > bandit.MaxDim:
		return at + "dimension", fmt.Errorf("is %d: want a dimension from %d to %d", int(d), least,
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

// normSlack is by how much a norm may exceed 1 through rounding alone.
const normSlack = 1e-9

// checkTheta checks a θ* that is given.
func (l *Linear) checkTheta(dim int) (field string, err error) {
	if l.Theta == nil {
		return "", nil
	}
	if len(l.Theta) != dim {
		return "theta", fmt.Errorf("has %d numbers and actions have %d: want as many", len(l.Theta), dim)
	}
	for j, x := range l.Theta {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Sprintf("theta[%d]", j), fmt.Errorf("is %v: want a finite number", x)
		}
	}
	if n := norm(l.Theta); n > 1+normSlack && (l.Actions == nil || !l.Normalise) {
		return "theta", fmt.Errorf("has norm %.6g: want at most 1%s", n,
			either(l.Actions != nil, ", or normalise: true if the actions are so small", ""))
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
		return fail(-1, -1, "is empty: want at least 2 actions")
	case n == 1:
		return fail(-1, -1, "has 1 action: want at least 2, or there is nothing to learn")
	case n > bandit.MaxArms:
		return fail(-1, -1, "has %d actions: want at most %d", n, bandit.MaxArms)
	}
	d := len(l.Actions[0])
	seen := map[string]int{}
	for i, a := range l.Actions {
		switch {
		case len(a) == 0 || len(a) > bandit.MaxDim:
			return fail(i, -1, "has %d numbers: want from 1 to %d", len(a), bandit.MaxDim)
		case len(a) != d:
			return fail(i, -1, "has %d numbers, the first action %d: want as many in each", len(a), d)
		}
		for j, x := range a {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fail(i, j, "is %v: want a finite number", x)
			}
		}
		if n := norm(a); n > 1+normSlack && !l.Normalise {
			return fail(i, -1, "has norm %.6g: want at most 1, or normalise: true", n)
		}
		key := fmt.Sprint(list(a))
		if j, twice := seen[key]; twice {
			return fail(i, -1, "is also actions[%d]: actions must differ", j)
		}
		seen[key] = i
	}
	if thetaGiven && l.Theta == nil {
		return nil, nil, "theta", fmt.Errorf("is missing: want a list of %d numbers, of norm at most 1", d)
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

// contextualSetting is what the cell's policy may know; coins are for policies that
// randomise their choices.
func (c *Cell) contextualSetting(horizon int, coins *noise.Fast) catalog.ContextualSetting {
	return catalog.ContextualSetting{Dim: c.world.dim, Arms: c.world.arms, Horizon: horizon,
		Budget: c.budget, Coins: sim.NewCoins(coins)}
}

// tryLinear builds the policy of a cell of these kinds, so that one that cannot be built is found
// before anything is played.
func (p *Plan) tryLinear(c *Cell) error {
	s := &p.Spec
	horizon := int(s.Horizon)
	if s.Kind == KindContextual {
		_, err := c.choice.entry.NewContextual(c.contextualSetting(horizon, &noise.Fast{}), c.choice.params)
		return err
	}
	setting := catalog.LinearSetting{Actions: c.world.fixedLinear.Actions, Horizon: horizon, Budget: c.budget}
	pol, err := c.choice.entry.NewLinear(setting, c.choice.params)
	if err != nil {
		return err
	}
	// What a policy plays before its first release is public and does not depend on rewards.
	if b := pol.Next(privacy.ReleasedVector{}); b != nil && b.Rounds() > horizon {
		p.endless = append(p.endless, fmt.Sprintf("%s (%d rounds)", c.Label(), b.Rounds()))
	}
	return nil
}

// warnEndless tells of the cells whose first phase is longer than the horizon.
func (p *Plan) warnEndless() {
	const most = 3
	n := len(p.endless)
	if n == 0 {
		return
	}
	more := ""
	if n > most {
		more = fmt.Sprintf(", and %d more", n-most)
	}
	p.warn("the first phase is longer than the horizon, so that nothing is released and nothing "+
		"learnt, for %s%s", strings.Join(p.endless[:min(n, most)], ", "), more)
}

// playLinear is play for KindLinear and KindContextual.
func (p *Plan) playLinear(ctx context.Context, c *Cell, run int, out *sim.Result) error {
	s := &p.Spec
	fail := func(err error) error { return fmt.Errorf("%s, run %d: %w", c.Label(), run, err) }
	key := noise.Key{Seed: s.Seed, Experiment: c.world.content, Run: run, Role: noise.RoleInstance}
	own := key
	own.Role, own.Cell = noise.RoleNoise, c.choice.content+" at "+c.Budget
	privately := own.Fast(1)
	if s.Kind == KindLinear {
		instance := c.world.fixedLinear
		if c.world.linear.Redrawn() {
			stream := key.Fast(1)
			var err error
			if instance, err = c.world.linear.Linear(&stream[0]); err != nil {
				return fail(err)
			}
		}
		pol, err := c.choice.entry.NewLinear(catalog.LinearSetting{Actions: instance.Actions,
			Horizon: int(s.Horizon), Budget: c.budget}, c.choice.params)
		if err != nil {
			return fail(err)
		}
		key.Role = noise.RoleReward
		err = sim.RunLinear(ctx, sim.LinearConfig{
			Policy: pol, Instance: instance, Horizon: int(s.Horizon), Unclipped: s.Unclipped,
			Checkpoints: p.Checkpoints,
			Rewards:     key.Fast(len(instance.Actions)), Noise: &privately[0],
		}, out)
		if err != nil {
			return fail(err)
		}
		return nil
	}
	instance := c.world.fixedContextual
	if c.world.contextual.Redrawn() {
		stream := key.Fast(1)
		var err error
		if instance, err = c.world.contextual.Contextual(&stream[0]); err != nil {
			return fail(err)
		}
	}
	own.Role = noise.RolePolicy
	coins := own.Fast(1)
	pol, err := c.choice.entry.NewContextual(c.contextualSetting(int(s.Horizon), &coins[0]), c.choice.params)
	if err != nil {
		return fail(err)
	}
	key.Role = noise.RoleReward
	world := key.Fast(2) // contexts, and rewards
	err = sim.RunContextual(ctx, sim.ContextualConfig{
		Policy: pol, Instance: instance, Horizon: int(s.Horizon), Unclipped: s.Unclipped,
		Checkpoints: p.Checkpoints,
		Contexts:    &world[0], Rewards: &world[1], Noise: &privately[0],
	}, out)
	if err != nil {
		return fail(err)
	}
	return nil
}
