// Package problem says of arms with laws what bounds on the regret need to know.
package problem

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/privacy"
)

// Arms is the problem of finite arms with rewards in [0,1]. A law whose class is not known
// counts by its mean alone; one that leaves [0,1] is refused unless rewards are not clipped, and
// then there are no bounds for private policies.
func Arms(arms []bandit.Law, unclipped bool, b privacy.Budget) (bound.Problem, error) {
	p := bound.Problem{Budget: b}
	for i, l := range arms {
		lo, hi := l.Support()
		if outside := lo < 0 || hi > 1; outside && !unclipped {
			return p, fmt.Errorf("the rewards of arm %d, %v, leave [0,1] and are clipped: bounds "+
				"are for the laws after that, such as clipped-gaussian", i+1, l)
		} else if sd, ok := GaussianSD(l); ok {
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

// GaussianSD is the standard deviation of a Gaussian law, which its canonical form has.
func GaussianSD(l bandit.Law) (float64, bool) {
	if _, ok := l.(bandit.Gaussian); !ok {
		return 0, false
	}
	_, sd, _ := strings.Cut(strings.TrimSuffix(l.String(), ")"), ",")
	x, err := strconv.ParseFloat(sd, 64)
	return x, err == nil
}
