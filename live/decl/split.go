package decl

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
)

// An A/B test: fixed shares, released in joint batches, on a schedule that an effect plans.

// SplitPolicy is the policy of an A/B test, which effect and rate are for.
const SplitPolicy = "split"

// Split says whether the experiment is an A/B test: its policy is SplitPolicy.
func (l *Experiment) Split() bool {
	return l.Bandit() == catalog.BanditArms && l.Policy.Policy == SplitPolicy
}

// splitKeys are the keys of an A/B test.
func splitKeys() []keyed.Key[Experiment] {
	return []keyed.Key[Experiment]{
		keyed.Of("shares", shares(), func(l *Experiment) *map[string]float64 { return &l.Shares },
			"of policy split: the share of decisions of each arm, by its name; even if they are not given"),
		keyed.Of("effect", keyed.Positive(keyed.Object{"exclusiveMinimum": 0}),
			func(l *Experiment) *float64 { return &l.Effect },
			"of policy split: the smallest difference between arms that matters, in the units of the reward, "+
				"which its rows are planned for. Each arm has, with even shares, 8/(εΔ) decisions in a row for an effect Δ in shares of the "+
				"range, and a tenth of all before once four times as many came as a plain test needs for Δ. Without an effect at first "+
				"8/ε or 1/(ε²v), whichever is more, then 8/ε or (2/ε)√(n/v) after n of each, at most as many as came before; v is r(1−r) "+
				"for a rate r of the range, else ¼"),
		keyed.Of("rate", keyed.Positive(keyed.Object{}), func(l *Experiment) *float64 { return &l.Rate },
			"of policies split and auto: about what a reward is on average, a guess that batches are planned from, "+
				"or a policy is picked by"),
	}
}

// shares is the form of the shares of arms.
func shares() keyed.Form[map[string]float64] {
	return keyed.Form[map[string]float64]{
		Schema: func() keyed.Object {
			return keyed.Object{"type": "object", "minProperties": 2, "maxProperties": maxArms,
				"additionalProperties": keyed.Object{"type": "number", "minimum": policy.MinShare,
					"exclusiveMaximum": 1}}
		},
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *map[string]float64) error {
			values, err := d.Mapping(n, at)
			*to = map[string]float64{}
			for _, kv := range values {
				if err == nil {
					var x float64
					name := kv.Key.GetToken().Value
					err = d.Float(kv.Value, keyed.Join(at, name), &x)
					(*to)[name] = x
				}
			}
			return err
		},
		Write: func(of map[string]float64) (any, error) {
			var out []keyed.Field
			for _, name := range slices.Sorted(maps.Keys(of)) {
				out = append(out, keyed.FieldOf(name, of[name]))
			}
			return out, nil
		},
	}
}

// checkSplit says what is wrong with shares, effect and rate.
func (l *Experiment) checkSplit() error {
	split, auto := l.Split(), l.Policy.Policy == catalog.AutoPolicy
	lo, hi := l.Range()
	for _, key := range []struct {
		name    string
		is      float64
		ok      bool
		allowed string
	}{
		{"effect", l.Effect, l.Effect > 0 && l.Effect <= hi-lo,
			fmt.Sprintf("above 0 and at most %v, the width of the range of rewards", hi-lo)},
		{"rate", l.Rate, l.Rate > lo && l.Rate < hi,
			fmt.Sprintf("above %v and below %v, the range of rewards", lo, hi)},
	} {
		_, param := l.Policy.Params[key.name]
		switch {
		case key.is != 0 && !split && !(key.name == "rate" && auto):
			return l.fail(key.name, "is given, and the policy is %s: it is for policy %s", l.Policy.Policy,
				SplitPolicy)
		case key.is != 0 && !key.ok:
			return l.fail(key.name, "is %v, must be %s", key.is, key.allowed)
		case param && (split || auto):
			return l.fail("policy."+key.name, "is given, must be a key of the experiment, beside policy, in the "+
				"units of the reward")
		}
	}
	return l.checkShares()
}

// checkShares says what is wrong with the shares alone, and which would do.
func (l *Experiment) checkShares() error {
	if l.Shares == nil {
		return nil
	}
	of := map[string]bool{}
	first := l.Arms[:l.FirstArms()] // the others have shares of their own
	for _, a := range first {
		of[a.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(l.Shares)) {
		if !of[name] {
			return l.fail("shares", "name %q, which is no arm", keyed.Clip(name))
		}
		q := l.Shares[name]
		if !(q >= policy.MinShare && q < 1) {
			return l.fail(keyed.Join("shares", name), "is %v, must be from %v to below 1", q, policy.MinShare)
		}
		if to, same := nearest(q, inPlan); l.Leases.On() && !same {
			return l.fail(keyed.Join("shares", name), "is %v, must be a multiple of %v with leases, such as %v", q,
				1./inPlan, to)
		}
	}
	var sum float64
	missing, largest := "", l.Arms[0].Name
	for _, a := range first {
		q, there := l.Shares[a.Name]
		if sum += q; !there {
			missing = a.Name
		}
		if q > l.Shares[largest] {
			largest = a.Name
		}
	}
	change, to := largest, shortFloat(1-sum+l.Shares[largest])
	if missing != "" {
		change, to = missing, shortFloat(1-sum)
	}
	do := fmt.Sprintf("with %q at %v they would", change, to)
	if n := len(first) - len(l.Shares); n > 1 || !(to >= policy.MinShare && to < 1) {
		do = fmt.Sprintf("%v each would, as without shares", shortFloat(1/float64(len(first))))
	}
	switch {
	case missing != "":
		return l.fail("shares", "have none of %q, must name each arm and add to 1: %s", missing, do)
	case sum < 1-1e-9 || sum > 1+1e-9:
		return l.fail("shares", "add to %v, must add to 1: %s", shortFloat(sum), do)
	}
	return nil
}

// sharesOf are the declared shares in the order of the first arms, nil if there are none and the policy's even ones are
// meant. An A/B test with leases always has some, in buckets: so its arms are drawn with the shares of its plans.
func (l *Experiment) sharesOf() (out []float64) {
	switch {
	case l.Shares == nil && l.Split() && l.Leases.On():
		return l.SharesAfter(0)
	case l.Shares == nil:
		return nil
	}
	for _, a := range l.Arms[:l.FirstArms()] {
		out = append(out, l.Shares[a.Name])
	}
	return out
}

// SharesAfter are the shares of an A/B test, declared or even, when so many arms had joined it: those with which
// arms are drawn (inBuckets).
func (l *Experiment) SharesAfter(joined int) []float64 {
	shares := slices.Repeat([]float64{1 / float64(l.FirstArms())}, l.FirstArms())
	if l.Shares != nil {
		shares = l.sharesOf()
	}
	for _, q := range l.Joined[:joined] {
		shares = policy.JoinShares(shares, q)
	}
	return l.inBuckets(shares)
}

// inPlan are lease.Buckets: the share of an arm in a plan is a multiple of 1/inPlan.
const inPlan = 10000

// inBuckets are declared or even shares as plans with leases have them, so that the verdict and the check of the sample
// ratio are of the shares that are played: lease.Apportion makes the same of them. Even shares of three arms have
// 3334, 3333 and 3333 buckets; those that are declared, and those of arms that join, are multiples.
func (l *Experiment) inBuckets(shares []float64) []float64 {
	if !l.Leases.On() {
		return shares
	}
	out, left := make([]float64, len(shares)), float64(inPlan)
	for a, q := range shares {
		out[a] = math.Floor(float64(q*inPlan) + 1e-6)
		left -= out[a]
	}
	for a := range out {
		if left > 0 {
			out[a]++
			left--
		}
		out[a] /= inPlan
	}
	return out
}

// nearest is the multiple of 1/parts within (0, 1) that is nearest to a share, and whether that is the same. Parts
// are 2 at least.
func nearest(share float64, parts int) (to float64, same bool) {
	n := min(max(math.Round(share*float64(parts)), 1), float64(parts-1))
	to = n / float64(parts)
	return to, math.Abs(share-to) < 1e-9
}

// joinsLeased says why no arm can join an A/B test with leases with this share, that many having joined before: the
// others must keep their buckets' proportions exactly, since any two of them keep their share of what either has.
func (l *Experiment) joinsLeased(before []float64, share float64) error {
	if !l.Leases.On() {
		return nil
	}
	parts := 0 // the greatest common divisor of the arms' buckets
	for _, q := range before {
		for n := int(math.Round(q * inPlan)); n != 0; {
			parts, n = n, parts%n
		}
	}
	if parts < 2 {
		return errors.New("plans have 10000 buckets, and those of its arms cannot be made fewer in proportion: declare " +
			"shares that are multiples of 0.01")
	}
	if to, same := nearest(share, parts); !same {
		return fmt.Errorf("its share is %v, must be a multiple of %v with leases, such as %v: the other arms' buckets must keep "+
			"their proportions", shortFloat(share), shortFloat(1/float64(parts)), to)
	}
	return nil
}

// compared is what the verdict of an A/B test needs, nil of other experiments.
func (l *Experiment) compared() *interval.Joint {
	if !l.Split() {
		return nil
	}
	lo, hi := l.Range()
	out := &interval.Joint{Shares: l.SharesAfter(len(l.Joined)), Plan: interval.Plan{Effect: l.Effect / (hi - lo)}}
	if l.Rate != 0 {
		out.Plan.Base = (l.Rate - lo) / (hi - lo)
	}
	return out
}

// planned are the parameters of the policy with those that are declared in the units of rewards.
func (l *Experiment) planned(params catalog.Params) catalog.Params {
	if !l.Split() {
		return params
	}
	plan := l.compared().Plan
	if plan.Effect != 0 {
		params["effect"] = plan.Effect
	}
	if plan.Base != 0 {
		params["rate"] = plan.Base
	}
	return params
}

// maxFirst is more decisions than any first row needs.
const maxFirst = 1_000_000_000

// checkJoint says what does not go with how the policy takes decisions.
func (l *Experiment) checkJoint(take play.Take, p policy.Policy) error {
	joint, _ := p.(play.Joint)
	switch {
	case take != play.Jointly && l.Shares != nil:
		return l.fail("shares", "are given, and the policy is %s: they are for policy %s", l.Policy.Policy,
			SplitPolicy)
	case take == play.Jointly && l.Floor != 0:
		return l.fail("floor", "is %v, must be 0 or not given with policy %s: each arm keeps its share of all "+
			"decisions", l.Floor, l.Policy.Policy)
	case take == play.Jointly && joint.JointEnd(0) > maxFirst:
		return l.fail("policy", "releases nothing before %d decisions, must before %d: declare a larger effect, a "+
			"rate nearer the middle, or a larger budget", joint.JointEnd(0), maxFirst)
	}
	return nil
}

// Queue says in a sentence what is done with decisions whose rewards are late, of an experiment with
// arms that passes Check.
func (l *Experiment) Queue() (string, error) {
	p, err := l.NewPolicy(ZeroCoins{})
	if err != nil {
		return "", err
	}
	if joint, ok := p.(play.Joint); ok {
		var of []string
		for i, q := range joint.Shares(0) {
			of = append(of, fmt.Sprintf("%s %v", l.Arms[i].Name, shortFloat(q)))
		}
		return fmt.Sprintf("%s draws the arm of each decision (%s) and releases all arms together, the first "+
			"time when the windows of %d decisions have passed", l.Policy.Policy, strings.Join(of, ", "),
			joint.JointEnd(0)), nil
	}
	take, err := l.Take()
	return fmt.Sprintf("%s gets %s what it asks for, the oldest decisions first", l.Policy.Policy, take), err
}
