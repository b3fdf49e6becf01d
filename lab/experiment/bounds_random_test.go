package experiment_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/privacy"
)

// drawn is an admissible value of a parameter, from all over its range on a logarithmic scale.
func drawn(r *rand.Rand, p catalog.Param) float64 {
	switch {
	case p.Flag:
		return float64(r.IntN(2))
	case p.Choices != nil:
		return float64(r.IntN(len(p.Choices)))
	}
	lo, hi := max(p.Lo, 1e-6), min(p.Hi, 1e4)
	x := lo + (hi-lo)*r.Float64()*r.Float64()
	if r.IntN(2) == 0 {
		x = lo * math.Exp(math.Log(hi/lo)*r.Float64())
	}
	if p.Lo == 1 && !p.Integer { // ratios: a little above 1 is where they differ
		x = 1 + math.Exp(-2+7*r.Float64())
	}
	if p.Proof.Above == 3 { // as are exponents a little above 3
		x = 2.5 + 2*r.Float64()
	}
	if p.Integer {
		x = math.Ceil(x)
	}
	return x
}

// For random parameters, instances and budgets the mean regret of a few runs is below every
// explicit bound that has a number. The settings are drawn with a fixed seed and so are the runs:
// it passes always, or never. Bounds have slack by factors of two and more.
func TestExplicitBoundsHoldForAdmissibleParameters(t *testing.T) {
	testkit.RacedBefore(t)
	seen, withheld, broken := map[string]int{}, 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 21))
		rho := math.Exp(-4 + 5*r.Float64())
		s := &experiment.Spec{
			Name: "random", Runs: 4, Seed: seed, Horizon: 4000, Points: 1,
			Budgets: []privacy.Budget{privacy.Pure{Epsilon: math.Exp(-3 + 4*r.Float64())},
				privacy.ZCDP{Rho: rho}},
		}
		kind, policies := catalog.BanditArms, 4
		switch seed % 6 {
		case 0:
			kind, policies = catalog.BanditLinear, 2
			s.Kind, s.Budgets = experiment.KindLinear, s.Budgets[1:]
			in := experiment.Instance{Name: "world", Linear: &experiment.Linear{Theta: unit(r, 3)}}
			for range 4 {
				in.Linear.Actions = append(in.Linear.Actions, unit(r, 3))
			}
			s.Instances = []experiment.Instance{in}
		case 1:
			kind, policies = catalog.BanditContextual, 2
			s.Kind, s.Budgets, s.Horizon = experiment.KindContextual, s.Budgets[1:], 1000
			s.Instances = []experiment.Instance{{Name: "world",
				Linear: &experiment.Linear{Contexts: "sphere", Arms: 4, Dimension: 2}}}
		default:
			in := experiment.Instance{Name: "world"}
			for range 2 + r.IntN(3) {
				in.Bernoulli = append(in.Bernoulli, math.Round(100*r.Float64())/100)
			}
			s.Instances = []experiment.Instance{in}
		}
		for _, e := range catalog.For(kind) {
			if !bounds[e.Name] {
				continue
			}
			twice := map[string]bool{}
			for i := range policies {
				params := catalog.Params{}
				for _, p := range e.Params {
					if r.IntN(3) == 0 {
						params[p.Name] = drawn(r, p)
					}
				}
				complete, err := e.Complete(params)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if twice[e.Content(complete)] {
					continue
				}
				twice[e.Content(complete)] = true
				s.Policies = append(s.Policies, experiment.Policy{Policy: e.Name,
					Name: fmt.Sprintf("%s-%d", e.Name, i), Params: params})
			}
		}
		plan, err := s.Resolve()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		result, err := plan.Run(context.Background(),
			experiment.Options{Out: filepath.Join(t.TempDir(), "out")})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		mean := map[[2]string]float64{}
		for i := range result.Cells {
			c := &result.Cells[i]
			mean[[2]string{c.Budget, c.Policy}], _, _ = stats.Mean(c.FinalRegret)
		}
		problems, _ := plan.BoundProblems()
		for _, p := range problems {
			broken += above(t, p, mean, float64(s.Horizon))
			all, err := bound.Regret(p.Problem)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, b := range all {
				got, played := mean[[2]string{p.Budget, b.Policy}]
				switch {
				case !played || b.Lower || b.Unproved:
				case b.Kind == bound.NotProved:
					withheld++
				case b.Kind == bound.Explicit:
					seen[b.Name]++
					limit := b.Value(float64(s.Horizon))
					if !(got <= limit*(1+1e-9)) {
						t.Errorf("seed %d, %s at %s: regret %v, above %v of %s", seed, b.Policy,
							p.Budget, got, limit, b.Name)
					}
				}
			}
		}
	}
	t.Logf("%v, and %d withheld, of which %d are wrong", seen, withheld, broken)
	for _, name := range []string{"sajed-2.22", "sajed-2.21-gap-free", "sajed-2.34", "adap-ucb",
		"thesis-C.7", "thesis-5.6", "zcdp-11", "dp-se-epochs",
		"sajed-5.1.2", "batch-se", "adac-gope", "adac-gope-gap-free", "gope", "adac-oful", "rs-oful"} {
		if seen[name] < 5 {
			t.Errorf("%s was looked at %d times", name, seen[name])
		}
	}
	if withheld < 100 || broken < 5 {
		t.Errorf("%d bounds were withheld, and %d of them would have been wrong: the parameters "+
			"are too tame", withheld, broken)
	}
}

// above counts the bounds that the regret would be above if none were withheld.
func above(t *testing.T, p experiment.BoundProblem, mean map[[2]string]float64, horizon float64) (n int) {
	t.Helper()
	p.Problem.Variants = slices.Clone(p.Problem.Variants)
	for i := range p.Problem.Variants {
		p.Problem.Variants[i].Unproved = ""
	}
	all, err := bound.Regret(p.Problem)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if got, played := mean[[2]string{p.Budget, b.Policy}]; played && b.Kind == bound.Explicit &&
			!b.Unproved && got > b.Value(horizon) {
			n++
		}
	}
	return n
}

// bounds are the policies with explicit bounds.
var bounds = map[string]bool{"adap-ucb": true, "adac-ucb": true, "dp-se": true, "batch-se": true,
	"ucb-2logt": true, "successive-elimination": true,
	"adac-gope": true, "gope": true, "adac-oful": true, "rs-oful": true}

func unit(r *rand.Rand, d int) []float64 {
	x, n := make([]float64, d), 0.0
	for i := range x {
		x[i] = r.NormFloat64()
		n = math.Hypot(n, x[i])
	}
	for i := range x {
		x[i] *= (1 - 1e-12) / n
	}
	return x
}
