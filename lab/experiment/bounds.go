package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/internal/problem"
	"github.com/sotto-dp/sotto/privacy"
)

// A BoundLine is a lower bound on the regret of an instance at a budget, for figures:
// see bound.Bound.
type BoundLine struct {
	Instance  string `json:"instance"`
	Budget    string `json:"budget"` // none: that without privacy
	Name      string `json:"name"`
	Where     string `json:"where"`
	Form      string `json:"form"`
	Kind      string `json:"kind"`                 // explicit or asymptotic
	WorstCase bool   `json:"worst_case,omitempty"` // of some instance, not of this one
	// at the checkpoints; 0 where the theorem says nothing
	Regret []float64 `json:"regret"`
}

// A BoundProblem is what regret can be bounded for: an instance of an experiment at a budget.
type BoundProblem struct {
	Instance, Budget string
	Problem          bound.Problem
}

// BoundProblems lists the instances with their budgets, as the cells have them, and says why others
// have no bounds. Each has the policies that are played there as variants.
func (p *Resolved) BoundProblems() (out []BoundProblem, left []string) {
	seen := map[[2]string]int{}
	for i := range p.Cells {
		c := &p.Cells[i]
		at := [2]string{c.Instance, c.Budget}
		j, ok := seen[at]
		if !ok {
			problem, err := p.kind.problem(&p.Spec, c)
			if err != nil {
				j = -1
				if text := c.Instance + ": " + err.Error(); !slices.Contains(left, text) {
					left = append(left, text)
				}
			} else {
				j = len(out)
				out = append(out, BoundProblem{c.Instance, c.Budget, problem})
			}
			seen[at] = j
		}
		if j >= 0 {
			out[j].Problem.Variants = append(out[j].Problem.Variants, c.variant(&p.Spec))
		}
	}
	return out, left
}

// variant is the cell's policy with the parameters that its bounds depend on, and why they are not
// proved for it, if so.
func (c *Cell) variant(s *Spec) bound.Variant {
	e := c.choice.entry
	v := e.Variant(c.choice.params)
	v.Label = c.Policy
	why := e.Unproved(c.choice.params)
	if t := c.choice.trust; t.on() && e.Private && c.trust(0.5) != nil {
		why = append(why, fmt.Sprintf("trust is %s; the theorem is for continuous noise that a "+
			"server adds who is believed", t.label()))
	}
	if s.Delay.On() {
		why = append(why, "rewards come late; the theorem is for rewards that come at once")
	}
	v.Unproved = strings.Join(why, "; and ")
	return v
}

// BoundArms is the problem of finite arms with rewards in [0,1]. A law whose class is not known
// counts by its mean alone; one that leaves [0,1] is refused unless rewards are not clipped, and
// then there are no bounds for private policies.
func BoundArms(arms []bandit.Law, unclipped bool, b privacy.Budget) (bound.Problem, error) {
	return problem.Arms(arms, unclipped, b)
}

// boundLines are the lower bounds that figures draw: of this instance the strongest that is
// asymptotic, and of the worst case the strongest.
func (p *Resolved) boundLines() (out []BoundLine, left []string) {
	problems, left := p.BoundProblems()
	for _, q := range problems {
		all, err := bound.Regret(q.Problem)
		if err != nil {
			left = append(left, q.Instance+": "+err.Error())
			continue
		}
		last := float64(p.Checkpoints[len(p.Checkpoints)-1])
		for _, b := range bound.Strongest(all, last) {
			line := BoundLine{Instance: q.Instance, Budget: q.Budget, Name: b.Name, Where: b.Where,
				Form: b.Form, Kind: b.Kind.String(), WorstCase: b.WorstCase}
			for _, t := range p.Checkpoints {
				v := b.Value(float64(t))
				if math.IsNaN(v) || math.IsInf(v, 0) {
					v = 0
				}
				line.Regret = append(line.Regret, v)
			}
			out = append(out, line)
		}
	}
	return out, left
}
