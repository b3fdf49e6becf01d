package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/clicks"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A ContextualForecast answers a Request of a contextual experiment. It is simulated in generated
// worlds of the declared map, another in each run: visitors whose features are drawn uniformly from
// what is declared, actions that go through the declared values, and rewards at the ends of their
// range whose means are linear in the vector, with normal coefficients, scaled so that the best
// action for each visitor earns Request.Gap more, on average, than any. Every decision has all
// actions.
type ContextualForecast struct {
	Policy        string
	Dim, Actions  int
	Best, Uniform float64 // mean reward of the best choices, and of uniform ones: means over runs
	Period        time.Duration
	Rounds        int // decisions in it
	Window        int // decisions in a window of the rewards
	Runs          int
	Rows          []ContextualRow // by budget, the declared one among them
	Plain         ContextualRow   // without privacy
	// Settings are other parameters at the declared budget. What they lose is counted from the most
	// that any of them, or what is declared, wins without privacy. Better is the one that earns
	// most, if that is significantly more than what is declared, else −1.
	Settings []ContextualRow
	Better   int
	// Enough is the number of decisions from which on privacy costs less than CostShare at the
	// declared budget with the parameters that are declared, or with those that are better; −1 if
	// it is more than was simulated, which is Searched decisions.
	Enough, Searched int
	// Smaller are maps with fewer values in each feature, if Enough is not reached in the period:
	// the last is the first that reaches it, if any does.
	Smaller []ContextualRow
	Advice  []string
}

// CostShare is the share of what is won that privacy may cost before a plan advises against it.
const CostShare = 0.1

// A ContextualRow is what was found at one budget. What is won is what decisions earn above uniform
// ones, as a share of what the best ones would.
type ContextualRow struct {
	Budget       privacy.Budget // of a unit; None: the same policy without privacy
	Setting      string         // parameters that are not as declared
	Dim          int
	FirstRelease time.Duration // median over runs, −1 if there is none
	Releases     float64       // mean
	Reward       float64       // mean of a decision
	Won, WonSE   float64
	// Lost is the share that privacy costs of what is won without it, NaN if nothing is, and
	// LostReward of what is earned.
	Lost, LostReward float64
	// Enough is the number of decisions from which on Lost is below CostShare; −1: not in the period.
	Enough int
	Course []ContextualPoint
}

// A ContextualPoint is where an experiment is after some decisions, in the mean over runs.
type ContextualPoint struct {
	Decisions int
	Won       float64 // since the point before
	All       float64 // won since the start
}

// contextualPlan is a Request of a contextual experiment that has been checked.
type contextualPlan struct {
	armsPlan
	out ContextualForecast
}

// A candidate is a policy's parameters beside the declared ones, and a map.
type candidate struct {
	text   string
	params catalog.Params
	fields feature.Map
	rounds int
	runs   int
}

// RunContextual is Run for a contextual experiment. Means must be nil.
func (q Request) RunContextual(ctx context.Context) (*ContextualForecast, error) {
	p := contextualPlan{armsPlan: armsPlan{Request: q}}
	if err := p.check(); err != nil {
		return nil, err
	}
	declared := candidate{params: catalog.Params{}, fields: p.Live.Contextual.Features, rounds: p.out.Rounds,
		runs: int(p.Runs)}
	plain, err := p.row(ctx, privacy.None{}, declared)
	if err != nil {
		return nil, err
	}
	p.out.Plain = *plain
	at := -1
	for _, b := range p.Budgets {
		row, err := p.row(ctx, b, declared, plain)
		if err != nil {
			return nil, err
		}
		if b.String() == p.Live.Budget.String() {
			at = len(p.out.Rows)
		}
		p.out.Rows = append(p.out.Rows, *row)
	}
	best, chosen, err := p.settings(ctx, declared, p.out.Rows[at])
	if err != nil {
		return nil, err
	}
	if err := p.traffic(ctx, chosen, best); err != nil {
		return nil, err
	}
	p.advise(p.out.Rows[at], best)
	return &p.out, nil
}

// check is armsPlan's for contextual experiments.
func (p *contextualPlan) check() error {
	if p.Live.Contextual == nil {
		return fmt.Errorf("%w: experiment %s has arms", ErrPlan, p.Live.Name)
	}
	if p.Live.Contextual.Joint() && !p.Live.Counted() {
		return fmt.Errorf("%w: experiment %s protects contexts too (contextual.protect: %s), and a plan is of "+
			"those that protect rewards: sotto validate says from how many decisions on noise is less than "+
			"what was played", ErrPlan, p.Live.Name, decl.ProtectJoint)
	}
	if p.Live.Contextual.Mode == decl.ModeApprentice {
		return fmt.Errorf("%w: experiment %s gives the first action while it is an apprentice: a plan is "+
			"of mode: learn", ErrPlan, p.Live.Name)
	}
	if p.Means != nil {
		return fmt.Errorf("%w: means are of arms, and experiment %s has contexts", ErrPlan, p.Live.Name)
	}
	if err := p.armsPlan.check(); err != nil {
		return err
	}
	out := &p.out
	l := &p.armsPlan.out
	out.Policy, out.Period, out.Rounds, out.Window = l.Policy, l.Period, l.Rounds, l.Window
	if n := int(p.Live.Horizon); n > 0 && n < out.Rounds {
		out.Rounds, out.Period = n, days(float64(n)/p.Traffic)
	}
	mapper, err := p.Live.Mapper()
	if err != nil {
		return err
	}
	out.Dim, out.Actions, out.Better = mapper.Dim(), p.Live.Contextual.MaxActions(), -1
	if ids := p.Live.Contextual.Features.ID.Values; ids != nil {
		out.Actions = min(out.Actions, len(ids))
	}
	if out.Actions < 2 {
		return fmt.Errorf("%w: a decision has %d action, must have at least 2", ErrPlan, out.Actions)
	}
	if p.Runs == 0 {
		p.Runs = keyed.Count(min(20, max(4, enoughWork/work(out.Rounds, out.Dim))))
	}
	out.Runs = int(p.Runs)
	return nil
}

// work is how long a run takes, in additions or so.
func work(rounds, dim int) float64 { return float64(rounds) * float64(dim*dim+500) }

const (
	enoughWork = 1e9 // of all runs of a row
	mostWork   = 2e9 // of one run that looks for more traffic
)

// spec is the range of rewards, the mean of uniform choices, and by how much the best ones are more.
func (p *contextualPlan) spec() (lo, hi, uniform, gap float64) {
	lo, hi = p.Live.Range()
	return lo, hi, p.best() - p.Gap, p.Gap
}

// ridges are the λ of greedy settings, the fastest first. Noise asks for more than chance does.
func ridges() []float64 { return []float64{30, 300, 3000} }

// others are the ridges of settings that are not what is declared, which would be held against
// itself: with other noise it may look better by chance.
func (p *contextualPlan) others() []float64 {
	said := p.Live.Policy.Params
	return slices.DeleteFunc(ridges(), func(lambda float64) bool {
		return said["greed"] == 1 && said["lambda"] == lambda
	})
}

func greedy(s candidate, lambda float64) candidate {
	s.params = catalog.Params{"greed": 1, "lambda": lambda}
	s.text = fmt.Sprintf("greed: 1, lambda: %g", lambda)
	return s
}

// settings plays other parameters at the declared budget, and returns what is best, and the setting
// that it is of.
func (p *contextualPlan) settings(ctx context.Context, declared candidate, row ContextualRow) (ContextualRow,
	candidate, error) {
	best, chosen := row, declared
	if !p.canBeGreedy() {
		return best, chosen, nil
	}
	plain := []*ContextualRow{&p.out.Plain}
	for _, lambda := range p.others() {
		r, err := p.row(ctx, privacy.None{}, greedy(declared, lambda))
		if err != nil {
			return best, chosen, err
		}
		plain = append(plain, r)
	}
	best.against(plain, p.lo())
	for _, lambda := range p.others() {
		s := greedy(declared, lambda)
		r, err := p.row(ctx, p.Live.Budget, s, plain...)
		if err != nil {
			return best, chosen, err
		}
		p.out.Settings = append(p.out.Settings, *r)
		if r.Won-row.Won > 2*math.Hypot(r.WonSE, row.WonSE) && r.Won > best.Won {
			best, chosen, p.out.Better = *r, s, len(p.out.Settings)-1
		}
	}
	return best, chosen, nil
}

func (p *contextualPlan) lo() float64 {
	lo, _ := p.Live.Range()
	return lo
}

func (p *contextualPlan) canBeGreedy() bool {
	entry, _, err := p.entry()
	_, ok := entry.Param("greed")
	return err == nil && ok
}

// again plays a setting in another world or for longer, at the declared budget, beside what is won
// without privacy: by itself, and by the fastest setting.
func (p *contextualPlan) again(ctx context.Context, s candidate) (*ContextualRow, error) {
	twins := []candidate{s}
	if fast := greedy(s, ridges()[0]); p.canBeGreedy() && fast.text != s.text {
		twins = append(twins, fast)
	}
	var plain []*ContextualRow
	for _, twin := range twins {
		r, err := p.row(ctx, privacy.None{}, twin)
		if err != nil {
			return nil, err
		}
		plain = append(plain, r)
	}
	return p.row(ctx, p.Live.Budget, s, plain...)
}

// traffic looks for the number of decisions that is enough, in longer runs if need be, and for
// a smaller map for which there are enough.
func (p *contextualPlan) traffic(ctx context.Context, s candidate, row ContextualRow) error {
	p.out.Enough, p.out.Searched = row.Enough, p.out.Rounds
	longer := s
	longer.runs = min(s.runs, 4)
	for p.out.Enough < 0 {
		longer.rounds *= 4
		if longer.rounds > mostLiveRounds || work(longer.rounds, row.Dim) > mostWork {
			break
		}
		more, err := p.again(ctx, longer)
		if err != nil {
			return err
		}
		p.out.Enough, p.out.Searched = more.Enough, longer.rounds
	}
	for smaller := s; row.Enough < 0; {
		var ok bool
		if smaller.fields, ok = halved(smaller.fields); !ok {
			return nil
		}
		less, err := p.again(ctx, smaller)
		if errors.Is(err, clicks.ErrWorld) {
			return nil // with so few values
		}
		if err != nil {
			return err
		}
		row = *less
		row.Setting = "half as many values"
		if n := len(p.out.Smaller); n > 0 {
			row.Setting = fmt.Sprintf("%d times fewer values", 2<<n)
		}
		p.out.Smaller = append(p.out.Smaller, row)
	}
	return nil
}

// halved is a map with half as many values and buckets, rounded up; not ok if there is none.
func halved(m feature.Map) (_ feature.Map, ok bool) {
	half := func(n int) int {
		if n > 2 {
			ok = true
			return (n + 1) / 2
		}
		return n
	}
	one := func(f feature.Feature) feature.Feature {
		f.Buckets = half(f.Buckets)
		f.Values = f.Values[:half(len(f.Values))]
		return f
	}
	each := func(of []feature.Feature) []feature.Feature {
		of = slices.Clone(of)
		for i, f := range of {
			of[i] = one(f)
		}
		return of
	}
	m.Context, m.Action = each(m.Context), each(m.Action)
	m.ID = one(m.ID)
	m.Cross = slices.Clone(m.Cross)
	for i := range m.Cross {
		m.Cross[i].Buckets = half(m.Cross[i].Buckets)
	}
	return m, ok
}

// checkpoints are ten a decade, from the first window on.
func (p *contextualPlan) checkpoints(rounds int) (at []int) {
	for i := 0; ; i++ {
		t := int(math.Round(math.Pow(10, 1+float64(i)/10)))
		if t >= rounds {
			return append(at, rounds)
		}
		if t >= p.out.Window && (len(at) == 0 || t > at[len(at)-1]) {
			at = append(at, t)
		}
	}
}

// row simulates all runs of a setting at a budget, and compares them with the best of those without
// privacy that are given.
func (p *contextualPlan) row(ctx context.Context, b privacy.Budget, s candidate,
	plain ...*ContextualRow) (*ContextualRow, error) {
	at := p.checkpoints(s.rounds)
	type run struct {
		visitRun
		regret []float64
	}
	runs := make([]run, s.runs)
	err := pool.Run(ctx, p.Workers, s.runs, func() func(context.Context, int) error {
		return func(ctx context.Context, i int) (err error) {
			var out sim.Result
			runs[i].visitRun, err = p.one(ctx, b, s, i, at, &out)
			runs[i].regret = out.Regret
			return err
		}
	})
	if err != nil {
		return nil, err
	}
	row := &ContextualRow{Budget: b, Setting: s.text, Enough: -1, Lost: math.NaN(), LostReward: math.NaN()}
	var won, firsts []float64
	n := float64(len(runs))
	lo, hi := p.Live.Range()
	real := func(mean float64) float64 { return lo + (mean+1)/2*(hi-lo) }
	var best, uniform float64
	for _, r := range runs {
		row.Dim = r.dim
		row.Releases += float64(r.releases) / n
		best, uniform = best+real(r.best)/n, uniform+real(r.uniform)/n
		last := r.regret[len(r.regret)-1] / float64(s.rounds)
		row.Reward += real(r.best-last) / n
		won = append(won, 1-last/(r.best-r.uniform))
		firsts = append(firsts, r.first)
	}
	row.Won, _, row.WonSE = stats.Mean(won)
	row.FirstRelease = p.after(stats.Quantiles(firsts, 0.5)[0])
	for i, t := range at {
		point := ContextualPoint{Decisions: t}
		for _, r := range runs {
			all, from, before := r.regret[i], 0.0, 0
			if i > 0 {
				from, before = r.regret[i-1], at[i-1]
			}
			point.All += (1 - all/(float64(t)*(r.best-r.uniform))) / n
			point.Won += (1 - (all-from)/(float64(t-before)*(r.best-r.uniform))) / n
		}
		row.Course = append(row.Course, point)
	}
	if len(plain) == 0 {
		if s.text == "" && s.rounds == p.out.Rounds {
			p.out.Best, p.out.Uniform = best, uniform
		}
	} else {
		row.against(plain, lo)
	}
	if p.ContextualProgress != nil {
		p.ContextualProgress(*row)
	}
	return row, nil
}

// against says what privacy costs, beside the best of these rows without it.
func (r *ContextualRow) against(plain []*ContextualRow, lo float64) {
	won, reward := math.Inf(-1), math.Inf(-1)
	for _, q := range plain {
		won, reward = max(won, q.Won), max(reward, q.Reward)
	}
	r.Lost, r.LostReward, r.Enough = math.NaN(), math.NaN(), -1
	if won > 0 {
		r.Lost = 1 - r.Won/won
	}
	if reward > lo {
		r.LostReward = (reward - r.Reward) / (reward - lo)
	}
	for i := len(r.Course) - 1; i >= 0; i-- {
		most := math.Inf(-1)
		for _, q := range plain {
			most = max(most, q.Course[i].All)
		}
		if !(most > 0 && r.Course[i].All > (1-CostShare)*most) {
			return
		}
		r.Enough = r.Course[i].Decisions
	}
}

// A visitRun is what one run leaves.
type visitRun struct {
	first         float64 // decisions before the first release; ∞: there was none
	releases, dim int
	best, uniform float64 // in [−1,1]
}

// one simulates a run.
func (p *contextualPlan) one(ctx context.Context, b privacy.Budget, s candidate, run int, at []int,
	to *sim.Result) (out visitRun, err error) {
	lo, hi, uniform, gap := p.spec()
	content := fmt.Sprintf("live contextual %s gap=%s best=%s range=[%s,%s]",
		fmt.Sprintf("%+v", s.fields), keyed.Number(gap),
		keyed.Number(uniform+gap), keyed.Number(lo), keyed.Number(hi))
	key := noise.Key{Seed: p.Seed, Experiment: content, Run: run, Role: noise.RoleInstance}
	world, err := clicks.World{Map: s.fields, Actions: p.out.Actions, Mean: (uniform - lo) / (hi - lo),
		Gap: gap / (hi - lo)}.Generate(&key.Fast(1)[0])
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	key.Role = noise.RoleReward
	rewards := key.Fast(2)
	key.Role = noise.RoleFloor
	floor := key.Fast(1)
	key.Role, key.Cell = noise.RoleNoise, b.String()+" "+s.text
	streams := key.Fast(1)
	key.Role = noise.RolePolicy
	pol, err := p.policy(b, s, world.Dim, &key.Fast(1)[0])
	if err != nil {
		return out, err
	}
	out.first, out.dim = math.Inf(1), world.Dim
	out.best, out.uniform = world.Earns()
	err = sim.RunVisits(ctx, sim.VisitsConfig{Policy: pol, World: world, Horizon: s.rounds,
		Window: p.out.Window, Floor: p.Live.Floor, Checkpoints: at, Visitors: &rewards[0], Rewards: &rewards[1],
		Coins: &floor[0], Noise: &streams[0], Released: func(n int) { out.first = min(out.first, float64(n)) },
	}, to)
	out.releases = to.Releases
	return out, err
}

// policy builds the policy at a budget of a unit.
func (p *contextualPlan) policy(b privacy.Budget, s candidate, dim int, coins *noise.Fast) (sim.LatePolicy, error) {
	l := p.Live
	each := b
	if (b != privacy.Budget(privacy.None{})) {
		l.Budget = b
		var err error
		if each, err = l.EachAssignment(); err != nil {
			return nil, err
		}
	}
	entry, err := l.Catalog.Find(catalog.BanditContextual, l.Policy.Policy)
	if err != nil {
		return nil, l.Wrap("policy", err)
	}
	params, err := l.ContextualParams(entry, s.fields.Norm())
	if err != nil {
		return nil, l.Wrap("policy", err)
	}
	for name, x := range s.params {
		params[name] = x
	}
	horizon := s.rounds
	if l.Horizon == 0 {
		horizon = 0
	}
	var rows []float64
	if l.Counted() {
		mapper, err := feature.New(s.fields)
		if err != nil {
			return nil, err
		}
		if rows, err = mapper.Rows(); err != nil {
			return nil, err
		}
	}
	pol, err := entry.NewContextual(catalog.ContextualSetting{Dim: dim, Arms: p.out.Actions,
		Horizon: horizon, Budget: each, Coins: coins, Rows: rows}, params)
	if err != nil {
		return nil, l.Wrap("policy", err)
	}
	late, ok := pol.(sim.LatePolicy)
	if !ok {
		return nil, fmt.Errorf("%w: policy %s has no form for rewards that come late", ErrPlan, entry.Name)
	}
	return late, nil
}

// advise says it in words.
func (p *contextualPlan) advise(declared, best ContextualRow) {
	say := func(format string, args ...any) {
		p.out.Advice = append(p.out.Advice, fmt.Sprintf(format, args...))
	}
	with := ""
	if best.Setting != "" {
		with = "with " + best.Setting + ": "
		say("%s wins %.0f %% of what is to be won, what is declared %.0f %%: the same privacy and no bound on "+
			"regret; who is greedy needs the floor", best.Setting, 100*best.Won, 100*declared.Won)
	}
	switch {
	case math.IsNaN(best.Lost):
		say("%sin %d decisions nothing is won even without privacy: d = %d is too large for the traffic, or "+
			"the gap too small", with, p.out.Rounds, best.Dim)
	case best.Enough >= 0:
		say("%sprivacy costs %s of what is won, and less than %.0f %% from %s decisions on", with,
			cost(best.Lost), 100*CostShare, about(best.Enough))
	default:
		enough := fmt.Sprintf("it would take more than %s", about(p.out.Searched))
		if p.out.Enough >= 0 {
			enough = fmt.Sprintf("it would take %s", about(p.out.Enough))
		}
		say("%sd = %d is too large for %s decisions: privacy costs %s of what is won; to cost less "+
			"than %.0f %% %s", with, best.Dim, about(p.out.Rounds), cost(best.Lost), 100*CostShare, enough)
		if n := len(p.out.Smaller); n > 0 && p.out.Smaller[n-1].Enough >= 0 {
			r := p.out.Smaller[n-1]
			say("%s (d = %d) would do: there it costs %s", r.Setting, r.Dim, cost(r.Lost))
		}
	}
}

func cost(x float64) string {
	if x <= 0 {
		return "nothing that these runs can tell"
	}
	return fmt.Sprintf("%.2g %%", 100*x)
}

// about is a number of decisions to two digits.
func about(n int) string { return words.Short(rounded(n)) }

// rounded is a number of decisions to two digits.
func rounded(n int) float64 {
	x, _ := strconv.ParseFloat(strconv.FormatFloat(float64(n), 'g', 2, 64), 64) // it is a number
	return x
}
