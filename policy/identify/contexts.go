package identify

import "github.com/sotto-dp/sotto/policy"

// PerContext looks for an answer in each of finitely many contexts, by a rule for each: see policy.PerContext, which has
// the theorem. It stops when all have stopped, and people of a context that has its answer are given that meanwhile.
type PerContext struct {
	*policy.PerContext
	of   []Identifier
	arms int
}

// NewPerContext returns the rule for K ≥ 2 arms in each context, with a rule for each context that has not been asked
// for anything. Arm a of context c is arm cK + a.
func NewPerContext(arms int, of []Identifier) (*PerContext, error) {
	policies := make([]policy.Policy, len(of))
	for c, rule := range of {
		policies[c] = rule
	}
	p, err := policy.NewPerContext(arms, policies)
	if err != nil {
		return nil, err
	}
	return &PerContext{PerContext: p, of: of, arms: arms}, nil
}

// Answer implements Identifier: it is that of the first context.
func (p *PerContext) Answer() int {
	for _, rule := range p.of {
		if rule.Answer() < 0 {
			return -1
		}
	}
	return p.of[0].Answer()
}

// Chosen implements Chooser: the answers of all contexts.
func (p *PerContext) Chosen() []int {
	if p.Answer() < 0 {
		return nil
	}
	var out []int
	for c, rule := range p.of {
		chosen := []int{rule.Answer()}
		if set, ok := rule.(Chooser); ok {
			chosen = set.Chosen()
		}
		for _, a := range chosen {
			out = append(out, c*p.arms+a)
		}
	}
	return out
}

// Right implements Chooser: every answer is.
func (p *PerContext) Right(means []float64) bool {
	if p.Answer() < 0 {
		return false
	}
	for c, rule := range p.of {
		own := means[c*p.arms : (c+1)*p.arms]
		if set, ok := rule.(Chooser); ok {
			if !set.Right(own) {
				return false
			}
			continue
		}
		for _, m := range own {
			if m > own[rule.Answer()] {
				return false
			}
		}
	}
	return true
}
