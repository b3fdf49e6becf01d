package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A BudgetSearch looks for the smallest ε at which privacy costs less than the share More of the
// regret without it: of the same policy, on the same rewards.
type BudgetSearch struct {
	Arms []string // laws, as bandit.ParseLaw reads them
	// one that is private under ε-DP; at budget none it is its own reference
	Policy   Policy
	Catalog  catalog.Catalog // has the policies by name; the zero value those of Sotto
	Horizon  keyed.Count
	Runs     keyed.Count // at each ε, at least 2
	Seed     uint64
	More     float64 // above 0: 0.1 is 10 %
	From, To float64 // the ε to look between, 0 < From < To; both 0: 0.001 and 100
	Workers  int     // runs played at a time; answers do not depend on it. 0 is one a processor

	Progress func(BudgetProbe) // nil: nobody is told
}

// Where BudgetSearch looks unless it is told, and how finely: a grid of so many ε a decade.
const (
	defaultFrom, defaultTo = 1e-3, 100
	PerDecade              = 24
)

// A BudgetProbe is what was found at one ε.
type BudgetProbe struct {
	Epsilon float64
	Most    int     // probes that there are at most in this search
	Regret  float64 // mean at the horizon
	// Ratio is what it is above the regret without privacy, as a share of it; Ratio ± Half is its
	// Student interval of level 95 %.
	Ratio, Half float64
	// Less says that privacy was shown to cost less than More, Greater that it costs at least so
	// much; both false: these runs do not tell.
	Less, Greater bool
}

// A BudgetAnswer is the outcome of a BudgetSearch.
type BudgetAnswer struct {
	World  string
	Policy string
	Free   float64 // mean regret without privacy
	FreeSE float64
	// Epsilon is the smallest ε of the grid from which on the mean cost is below More; +Inf if that
	// is nowhere, and at the first of the grid it may be smaller still.
	Epsilon float64
	// The true one is in (Low, High] with probability 95 %, if the cost of privacy falls in ε: at
	// Low the cost was shown to be More at least (0: at no ε of the grid), at High to be less
	// (+Inf: at none). Student's intervals, corrected for all ε of the grid.
	Low, High float64
	// Falls is false if the cost was shown not to fall in ε: less than More at one ε, and not at a
	// larger one. Then there is no one answer.
	Falls  bool
	Grid   []float64
	Probes []BudgetProbe // in the order played

	// What lower bounds say, for Bernoulli arms, otherwise 0. LowerRatio is the share by which Σ
	// Δ/d_ε is above Σ Δ/kl at Epsilon, LowerEpsilon the ε where that share is More, and LowerFree
	// the ε from which on it is 0.
	LowerRatio, LowerEpsilon, LowerFree float64
}

// ErrBudgetSearch is matched by every error in a BudgetSearch.
var ErrBudgetSearch = errors.New("cannot search for a budget")

// Run searches. The cost of privacy is taken to fall in ε: three bisections on a grid find where
// the mean cost crosses More, the largest ε that is shown to cost more, and the smallest that is
// shown to cost less; both ends of the grid are looked at besides. At each ε the same runs are
// played, in the worlds that the policy without privacy met.
//
// The arms take turns in being listed first, from run to run: most policies give ties to the first,
// and at an ε where a policy learns nothing all arms are tied. With the best arm first, to learn
// nothing would cost nothing.
func (q BudgetSearch) Run(ctx context.Context) (*BudgetAnswer, error) {
	fail := func(format string, args ...any) (*BudgetAnswer, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrBudgetSearch}, args...)...)
	}
	if q.From == 0 && q.To == 0 {
		q.From, q.To = defaultFrom, defaultTo
	}
	switch {
	case !(q.More > 0 && q.More <= 1e6):
		return fail("the share is %v, must be above 0 and at most 1e6", q.More)
	case !(q.From >= 1e-9 && q.From < q.To && q.To <= 1e6):
		return fail("ε is looked for from %v to %v, must be between 1e-9 and 1e6, in order", q.From, q.To)
	case q.Runs < 2 || q.Runs > 1e6:
		return fail("runs is %d, must be from 2 to 1e6", q.Runs)
	case q.Workers < 0:
		return fail("workers is %d, must be at least 1, or 0 for one a processor", q.Workers)
	}
	steps := int(math.Ceil(math.Log10(q.To/q.From)*PerDecade - 1e-9))
	grid := make([]float64, steps+1)
	budgets := []privacy.Budget{privacy.None{}}
	for i := range grid {
		grid[i] = q.From * math.Pow(q.To/q.From, float64(i)/float64(steps))
		budgets = append(budgets, privacy.Pure{Epsilon: grid[i]})
	}
	spec := Spec{Name: "budget", Horizon: q.Horizon, Runs: q.Runs, Seed: q.Seed,
		Checkpoints: []keyed.Count{q.Horizon}, Budgets: budgets,
		Policies: []Policy{q.Policy}, Catalog: q.Catalog}
	var laws []string
	for i, text := range q.Arms {
		l, err := bandit.ParseLaw(text)
		if err != nil {
			return fail("arm %d: %w", i+1, err)
		}
		laws = append(laws, l.String())
	}
	turns := max(1, min(len(laws), mostTurns, int(q.Runs)))
	for i := range turns {
		at := i * len(laws) / turns
		order := slices.Concat(laws[at:], laws[:at])
		if !slices.ContainsFunc(spec.Instances, func(in Instance) bool {
			return slices.Equal(in.Laws, order)
		}) {
			spec.Instances = append(spec.Instances, Instance{Name: fmt.Sprintf("arms, from %d on",
				at+1), Laws: order})
		}
	}
	turns = len(spec.Instances)
	plan, err := spec.Resolve()
	if err != nil {
		return fail("%w", err)
	}
	if len(plan.Cells) != turns*len(budgets) {
		return fail("%s is not private: its regret depends on no budget", plan.Cells[0].Policy)
	}
	s := &budgetSearch{BudgetSearch: q, plan: plan, turns: turns, cells: map[[2]string]*Cell{},
		probes: map[int]BudgetProbe{}, alpha: 0.05 / float64(len(grid))}
	for i := range plan.Cells {
		c := &plan.Cells[i]
		s.cells[[2]string{c.Instance, c.Budget}] = c
	}
	s.answer = BudgetAnswer{World: plan.Cells[0].world.Source.String(),
		Policy: plan.Cells[0].Policy, Grid: grid}
	if s.free, err = s.play(ctx, privacy.None{}); err != nil {
		return nil, err
	}
	s.answer.Free, _, s.answer.FreeSE = stats.Mean(s.free)
	if !(s.answer.Free > 0) {
		return fail("without privacy the mean regret is %v: there is no share of it to compare with",
			s.answer.Free)
	}
	if err := s.search(ctx); err != nil {
		return nil, err
	}
	return &s.answer, s.bounds()
}

// search looks for the least budget and for the ends of its interval.
func (s *budgetSearch) search(ctx context.Context) error {
	a, grid := &s.answer, s.answer.Grid
	// The first of the grid, from lo to its end, where the condition holds, if it holds from
	// somewhere on; len(grid) if nowhere.
	first := func(lo, hi int, holds func(BudgetProbe) bool) (int, error) {
		for lo < hi {
			mid := lo + (hi-lo)/2
			p, err := s.probe(ctx, mid)
			if err != nil {
				return 0, err
			}
			if holds(p) {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		return lo, nil
	}
	at, err := first(0, len(grid), func(p BudgetProbe) bool { return p.Ratio < s.More })
	if err != nil {
		return err
	}
	low, err := first(0, at, func(p BudgetProbe) bool { return !p.Greater })
	if err != nil {
		return err
	}
	high, err := first(at, len(grid), func(p BudgetProbe) bool { return p.Less })
	if err != nil {
		return err
	}
	for _, i := range []int{0, len(grid) - 1} {
		if _, err := s.probe(ctx, i); err != nil {
			return err
		}
	}
	a.Falls = true
	for _, p := range a.Probes {
		for _, q := range a.Probes {
			a.Falls = a.Falls && !(p.Less && q.Greater && p.Epsilon < q.Epsilon)
		}
	}
	a.Epsilon, a.High = math.Inf(1), math.Inf(1)
	if at < len(grid) {
		a.Epsilon = grid[at]
	}
	if low > 0 {
		a.Low = grid[low-1]
	}
	if high < len(grid) {
		a.High = grid[high]
	}
	return nil
}

type budgetSearch struct {
	BudgetSearch
	plan   *Resolved
	turns  int                 // instances: the same arms in another order
	cells  map[[2]string]*Cell // by instance and budget
	free   []float64           // regrets without privacy
	alpha  float64             // error of the two verdicts at one ε
	probes map[int]BudgetProbe
	answer BudgetAnswer
}

// mostTurns bounds the number of orders that arms are listed in.
const mostTurns = 16

// play plays all runs at a budget.
func (s *budgetSearch) play(ctx context.Context, b privacy.Budget) ([]float64, error) {
	out := make([]float64, s.Runs)
	err := pool.Run(ctx, s.Workers, int(s.Runs), func() func(context.Context, int) error {
		var r sim.Result
		var metrics []float64
		return func(ctx context.Context, run int) (err error) {
			cell := s.cells[[2]string{s.plan.Spec.Instances[run%s.turns].Name, b.String()}]
			if metrics, _, err = s.plan.play(ctx, cell, run, &r, metrics[:0]); err == nil {
				out[run] = metrics[0]
			}
			return err
		}
	})
	return out, err
}

// probe plays at the i-th ε of the grid, once.
func (s *budgetSearch) probe(ctx context.Context, i int) (BudgetProbe, error) {
	if p, ok := s.probes[i]; ok {
		return p, nil
	}
	regret, err := s.play(ctx, privacy.Pure{Epsilon: s.answer.Grid[i]})
	if err != nil {
		return BudgetProbe{}, err
	}
	n := len(s.answer.Grid)
	p := BudgetProbe{Epsilon: s.answer.Grid[i], Most: min(n, 3*bits.Len(uint(n))+2)} // of three searches and both ends
	p.Regret, _, _ = stats.Mean(regret)
	difference := make([]float64, len(regret))
	for r := range regret {
		difference[r] = regret[r] - s.free[r]
	}
	ratio, se := ratioOfMeans(difference, s.free)
	p.Ratio, p.Half = ratio, stats.T(len(regret), 0.95)*se
	// The verdict is on the mean of regret − (1+More)·free, which needs no ratio. As in package
	// choose, Student's end is believed only where the skewness in the direction that would mislead
	// is at most √(n/25).
	for r := range regret {
		difference[r] = regret[r] - float64((1+s.More)*s.free[r])
	}
	mean, sd, se := stats.Mean(difference)
	half := stats.T(len(regret), 1-s.alpha) * se
	skew := 0.0
	if sd > 0 {
		for _, d := range difference {
			z := (d - mean) / sd
			skew += float64(z * z * z)
		}
		skew /= float64(len(difference))
	}
	most := math.Sqrt(float64(len(difference)) / 25)
	p.Less = mean+half < 0 && skew <= most
	p.Greater = mean-half >= 0 && skew >= -most
	s.probes[i] = p
	s.answer.Probes = append(s.answer.Probes, p)
	if s.Progress != nil {
		s.Progress(p)
	}
	return p, nil
}

// bounds fills in what the lower bounds say.
func (s *budgetSearch) bounds() error {
	problems, _ := s.plan.BoundProblems()
	if len(problems) == 0 {
		return nil
	}
	var means []float64
	best := 0.0
	for _, l := range problems[0].Problem.Laws {
		b, ok := l.(bound.Bernoulli)
		if !ok {
			return nil
		}
		means, best = append(means, b.Mean()), max(best, b.Mean())
	}
	free, err := bound.BernoulliRegret(means, math.Inf(1))
	if err != nil || !(free > 0) || best >= 1 {
		return err
	}
	share := func(epsilon float64) float64 {
		c, err := bound.BernoulliRegret(means, epsilon)
		if err != nil {
			return math.NaN()
		}
		return c/free - 1
	}
	a := &s.answer
	if !math.IsInf(a.Epsilon, 1) {
		a.LowerRatio = max(0, share(a.Epsilon))
	}
	for _, m := range means {
		if m < best {
			a.LowerFree = max(a.LowerFree, bound.FreePrivacy(m, best))
		}
	}
	lo, hi := 1e-12, 1e6
	for range 200 {
		mid := math.Sqrt(lo * hi)
		if share(mid) >= s.More {
			lo = mid
		} else {
			hi = mid
		}
	}
	a.LowerEpsilon = hi
	return nil
}
