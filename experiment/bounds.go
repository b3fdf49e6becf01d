package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
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
func (p *Plan) BoundProblems() (out []BoundProblem, left []string) {
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
	e, params := c.choice.entry, c.choice.params
	v := bound.Variant{Policy: e.Name, Label: c.Policy}
	why := e.Unproved(params)
	if t := c.choice.trust; t.on() && e.Private && c.trust(0.5) != nil {
		why = append(why, fmt.Sprintf("trust is %s; the theorem is for continuous noise that a "+
			"server adds who is believed", t.label()))
	}
	if s.Delay.On() {
		why = append(why, "rewards come late; the theorem is for rewards that come at once")
	}
	v.Unproved = strings.Join(why, "; and ")
	take := func(name string, to *float64) {
		if x, given := params[name]; given {
			*to = x
		}
	}
	switch e.Name {
	case "adap-ucb", "adap-klucb":
		take("alpha", &v.Beta)
	case "adac-ucb":
		take("beta", &v.Beta)
	case "dp-klucb", "dp-imed":
		take("alpha", &v.Alpha)
	case "dp-se", "dp-se-2":
		take("beta", &v.Risk)
	case "batch-se":
		take("eta", &v.Eta)
		take("p", &v.Risk)
	case "gope", "adac-gope":
		take("risk", &v.Risk)
	case "rs-oful", "adac-oful":
		take("risk", &v.Risk)
		take("lambda", &v.Lambda)
		take("c", &v.C)
		v.Whole = params["split"] == 0
	}
	return v
}

// BoundArms is the problem of finite arms with rewards in [0,1]. A law whose class is not known
// counts by its mean alone; one that leaves [0,1] is refused unless rewards are not clipped, and
// then there are no bounds for private policies.
func BoundArms(arms []bandit.Law, unclipped bool, b privacy.Budget) (bound.Problem, error) {
	p := bound.Problem{Budget: b}
	for i, l := range arms {
		lo, hi := l.Support()
		if outside := lo < 0 || hi > 1; outside && !unclipped {
			return p, fmt.Errorf("the rewards of arm %d, %v, leave [0,1] and are clipped: bounds "+
				"are for the laws after that, such as clipped-gaussian", i+1, l)
		} else if sd, ok := gaussianSD(l); ok {
			p.Laws = append(p.Laws, bound.Gaussian{Mu: l.Mean(), Sigma: sd})
		} else if outside {
			return p, fmt.Errorf("the rewards of arm %d, %v, leave [0,1]: there are bounds for "+
				"Gaussian arms that do", i+1, l)
		} else {
			p.Laws = append(p.Laws, boundLaw(l))
		}
	}
	return p, p.Check()
}

func boundLaw(l bandit.Law) bound.Law {
	name, args, _ := strings.Cut(strings.TrimSuffix(l.String(), ")"), "(")
	switch l := l.(type) {
	case bandit.Bernoulli:
		return bound.Bernoulli(l.Mean())
	case bandit.Uniform:
		lo, hi := l.Support()
		return bound.Uniform{A: lo, B: hi, Lo: 0, Hi: 1}
	case *bandit.Table:
		var values, p []float64
		for _, pair := range strings.Split(args, ",") {
			v, q, _ := strings.Cut(pair, ":")
			x, err1 := strconv.ParseFloat(v, 64)
			y, err2 := strconv.ParseFloat(q, 64)
			if name != "table" || err1 != nil || err2 != nil {
				return bound.MeanOnly(l.Mean())
			}
			values, p = append(values, x), append(p, y)
		}
		if f, err := bound.NewFinite(values, p, 0, 1); err == nil {
			return f
		}
	}
	return bound.MeanOnly(l.Mean())
}

// gaussianSD is the standard deviation of a Gaussian law, which its canonical form has.
func gaussianSD(l bandit.Law) (float64, bool) {
	if _, ok := l.(bandit.Gaussian); !ok {
		return 0, false
	}
	_, sd, _ := strings.Cut(strings.TrimSuffix(l.String(), ")"), ",")
	x, err := strconv.ParseFloat(sd, 64)
	return x, err == nil
}

// boundLines are the lower bounds that figures draw: of this instance the strongest that is
// asymptotic, and of the worst case the strongest.
func (p *Plan) boundLines() (out []BoundLine, left []string) {
	problems, left := p.BoundProblems()
	for _, q := range problems {
		all, err := bound.Regret(q.Problem)
		if err != nil {
			left = append(left, q.Instance+": "+err.Error())
			continue
		}
		last := float64(p.Checkpoints[len(p.Checkpoints)-1])
		best := map[bool]int{}
		for i, b := range all {
			if !b.Lower || b.Unproved || b.Value == nil {
				continue
			}
			if j, ok := best[b.WorstCase]; !ok || !(all[j].Value(last) >= b.Value(last)) {
				best[b.WorstCase] = i
			}
		}
		for _, worst := range []bool{false, true} {
			i, ok := best[worst]
			if !ok {
				continue
			}
			b := all[i]
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
