package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/sim"
)

// checkKnown holds what is known beforehand of Bernoulli arms, and of who comes to them, against their means. On error it
// says in which of the instance's fields.
func (in *Instance) checkKnown(w *environment) (field string, err error) {
	if in.Changes != nil && (in.Vectors != nil || in.Contexts != nil) {
		return "changes", errors.New("is given, and so are vectors or contexts: these are of laws that do not change")
	}
	if field, err := in.checkVectors(&w.armsWorld); err != nil {
		return field, err
	}
	return "contexts", in.checkContexts(&w.armsWorld)
}

// checkVectors holds the vectors of Bernoulli arms against their means.
func (in *Instance) checkVectors(w *armsWorld) (field string, err error) {
	if in.Vectors == nil {
		if in.Link != "" {
			return "link", fmt.Errorf("is %s, but there are no vectors", in.Link)
		}
		return "", nil
	}
	if len(in.Vectors) != len(in.Bernoulli) {
		return "vectors", fmt.Errorf("are %d, must be one for each of %d arms", len(in.Vectors), len(in.Bernoulli))
	}
	var with [][]float64
	for a, x := range in.Vectors {
		if len(x) != len(in.Vectors[0]) || len(x) > bandit.MaxDim || !(norm(x) > 0 && norm(x) <= math.MaxFloat64) {
			return "vectors", fmt.Errorf("have %v for arm %d, must have %d finite numbers for each, at most %d, and one that "+
				"is not 0", x, a+1, len(in.Vectors[0]), bandit.MaxDim)
		}
		eta := in.Bernoulli[a]
		if in.Link == catalog.MeansLogistic {
			if eta = math.Log(eta) - math.Log1p(-eta); math.IsInf(eta, 0) {
				return "bernoulli", fmt.Errorf("has %v, must be above 0 and below 1 with link: %s", in.Bernoulli[a], in.Link)
			}
			w.steep = max(w.steep, math.Abs(eta), math.SmallestNonzeroFloat64)
		}
		with = append(with, append(slices.Clone(x), eta))
	}
	if rank(with) != rank(in.Vectors) {
		return "vectors", fmt.Errorf("do not have the means %v for any θ: means must be %s in them", in.Bernoulli,
			cmp.Or(in.Link, catalog.MeansLinear))
	}
	w.vectors = in.Vectors
	return "", nil
}

// checkContexts holds the shares of contexts against the arms.
func (in *Instance) checkContexts(w *armsWorld) error {
	n, sum := len(in.Contexts), 0.0
	if in.Contexts == nil {
		return nil
	}
	for _, q := range in.Contexts {
		if !(q > 0 && q < 1) {
			return fmt.Errorf("has the share %v, must be above 0 and below 1", q)
		}
		sum += q
	}
	switch k := len(in.Bernoulli); {
	case in.Vectors != nil:
		return errors.New("is given, and so are vectors, must be one or the other")
	case n < 2 || math.Abs(sum-1) > 1e-9:
		return fmt.Errorf("has %d shares that add up to %v, must have at least 2 that add up to 1", n, sum)
	case k%n != 0 || k/n < 2:
		return fmt.Errorf("has %d shares for %d arms, must have as many arms for each, at least 2", n, k)
	}
	w.contexts = in.Contexts
	return nil
}

// of is how many contexts there are.
func (w *armsWorld) of() int { return max(1, len(w.contexts)) }

// drawn are the contexts of a run's people, nil of none.
func (w *armsWorld) drawn(run int) *sim.Contexts {
	if w.contexts == nil {
		return nil
	}
	return &sim.Contexts{Shares: w.contexts, Stream: w.Contexts(run)}
}

// writeKnown is what a cell's hash has of it.
func (w *armsWorld) writeKnown(h io.Writer) {
	if w.vectors != nil {
		fmt.Fprintf(h, "vectors %v\nlogistic %v\n", w.vectors, w.steep > 0)
	}
	if w.contexts != nil {
		fmt.Fprintf(h, "contexts %v\n", w.contexts)
	}
}

// admitKnown refuses a policy whose theorem the arms do not meet, or that cannot play them.
func (c *Cell) admitKnown(s *Spec, p policy.Policy) error {
	name := c.choice.entry.Name
	if bound, ok := c.choice.params["bound"]; ok && c.world.steep > bound {
		return fmt.Errorf("instance %s: |⟨θ,x⟩| is %.4g for an arm, above the bound of policy %s, %v: its answers would not "+
			"be proved", c.world.label, c.world.steep, name, bound)
	}
	if c.world.contexts == nil {
		return nil
	}
	own, ok := p.(interface{ Contexts() int })
	switch {
	case !ok || own.Contexts() != c.world.of():
		return fmt.Errorf("policy %s on instance %s: there are %d contexts, and it plays none", name, c.world.label, c.world.of())
	case s.Delay.On() || s.Intervals != 0:
		return fmt.Errorf("policy %s on instance %s: there are contexts, and delay or intervals, must be one or the other",
			name, c.world.label)
	case c.choice.trust.Dropout > 0:
		return fmt.Errorf("policy %s on instance %s: there are contexts, and dropout is %v, must be 0", name, c.world.label,
			c.choice.trust.Dropout)
	}
	return nil
}
