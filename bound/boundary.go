package bound

import (
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// A Boundary is a budget at which privacy begins to cost, by a lower bound: below it the private
// part of the bound is above the part without privacy.
type Boundary struct {
	Name, Where string
	Symbol      string // ε or ρ
	Value       func(T float64) float64
	Note        string
}

// Boundaries lists the regime boundaries of a problem, of both budgets' bounds whatever the
// problem's own is.
func Boundaries(p Problem) ([]Boundary, error) {
	q, err := p.check()
	if err != nil {
		return nil, err
	}
	const dpSymbol, zcdpSymbol = "ε", "ρ"
	constant := func(x float64) func(float64) float64 { return func(float64) float64 { return x } }
	if q.d > 0 {
		return []Boundary{
			{"linear-minimax", "[Azize 2024, Theorem 4.17]", dpSymbol, func(T float64) float64 {
				return math.E / math.Sqrt(T)
			}, "printed as 2e/√T, with the factor that its proof loses"},
			{"linear-minimax-zcdp", "[Azize 2024, Theorem 4.21]; [Azize and Basu 2024, Theorem 9]",
				zcdpSymbol, func(T float64) float64 {
					return math.Exp(-0.5) / T
				}, "as printed 4e^{−1/2}/T"},
		}, nil
	}
	k := q.k - 1
	out := []Boundary{
		{"minimax", "[Azize 2024, Theorem 4.15]", dpSymbol, func(T float64) float64 {
			return 27.0 / 22 * math.Sqrt(k/T)
		}, "printed with the factor upside down, 22/27"},
		{"minimax-zcdp", "[Azize 2024, Theorem 4.20]", zcdpSymbol, func(T float64) float64 {
			return 27.0 / 124 * (27.0 / 124) / T
		}, ""},
	}
	ratio, known := 0.0, true
	for a, l := range q.Laws {
		if q.gaps[a] > 0 {
			if tv := l.TVInf(q.best); tv > 0 && !math.IsInf(tv, 1) {
				ratio = max(ratio, l.KLInf(q.best)/tv)
			} else {
				known = false
			}
		}
	}
	if known && !math.IsNaN(ratio) {
		out = append(out, Boundary{"problem", "[Azize 2024, Theorem 4.16]", dpSymbol, constant(ratio),
			"max_a KL_inf/TV_inf: above it no arm costs more than without privacy"})
	}
	if means, ok := q.bernoulli(); ok && q.best < 1 {
		x := 0.0
		for a, m := range means {
			if q.gaps[a] > 0 {
				x = max(x, FreePrivacy(m, q.best))
			}
		}
		out = append(out, Boundary{"d-epsilon", "arXiv:2505.05613", dpSymbol, constant(x),
			"max_a log(μ*(1−μ_a)/(μ_a(1−μ*))): above it all d_ε are kl"})
	}
	return out, nil
}

// FreePrivacy is the ε from which on d_ε(mean,best) = kl(mean,best), so that privacy costs nothing
// in the long run: log(μ*/μ) + log((1−μ)/(1−μ*)), for means in [0,1].
func FreePrivacy(mean, best float64) float64 {
	if !(divergence.TV(mean, best) > 0) {
		return 0
	}
	return math.Abs(math.Log(best) - math.Log(mean) + math.Log1p(-mean) - math.Log1p(-best))
}
