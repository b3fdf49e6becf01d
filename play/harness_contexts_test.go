package play

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

const (
	flatDim     = 3
	flatHorizon = 900
	flatRho     = 0.5
)

// A flat is the game with contexts, whose vectors are public.
type flat struct {
	given    [][]int64 // what the curators were given: the policy's, then the rules'
	released int       // decisions
	other    alone
	base     *mat.SymDense // V of what was released
}

// An alone is a policy that has learned the lines of a transcript, and knows of no other decision.
type alone struct {
	policy ContextualPolicy
	past   *past
	last   []byte // line
}

// best is what such a policy plays.
func (a *alone) best(h *house, start func() ContextualPolicy, actions []float64) (int, error) {
	if a.past == nil || a.past.Lines > len(h.lines) ||
		a.past.Lines > 0 && !bytes.Equal(a.last, h.lines[a.past.Lines-1]) {
		cfg := h.cfg
		cfg.Contexts, cfg.Epoch = start(), Epoch{1}
		l, err := build(cfg)
		if err != nil {
			return 0, err
		}
		a.policy, a.past = cfg.Contexts, l.past()
	}
	if more := h.lines[a.past.Lines:]; len(more) > 0 {
		if err := follow(listed(more), a.past.add, &a.past.Lines); err != nil {
			return 0, err
		}
		a.last = more[len(more)-1]
	}
	return a.policy.Best(actions), nil
}

// ofContexts is a house with contexts, that is to be built.
func ofContexts() house {
	g := &flat{base: mat.NewSymDense(flatDim, nil)}
	for i := range flatDim {
		g.base.SetSym(i, i, 0.5)
	}
	return house{game: g, cfg: flatConfig()}
}

func flatConfig() Config {
	return Config{Horizon: flatHorizon, Lo: -1, Hi: 3, Default: 0.5, Window: 30, Rules: []Rule{
		{Name: "always", Clip: 4, Mechanism: privacy.Gaussian{Sigma: 3}},
		{Name: "rarely", Clip: 20, Mechanism: privacy.Laplace{Scale: 5}},
	}}
}

func flatPolicy() *linear.OFUL {
	p, err := linear.NewOFUL(flatDim, flatHorizon, privacy.ZCDP{Rho: flatRho},
		linear.OFULOptions{Lambda: 0.5, C: 0.4, Risk: 0.01})
	if err != nil {
		panic(err)
	}
	return p
}

// A learner tells what it is given.
type learner struct {
	*linear.OFUL
	see func(privacy.ReleasedVector)
	// of looksAhead: plays by V of all decisions, with the sums of the released ones
	ahead bool
	all   *mat.SymDense
	sum   []float64
}

func (p *learner) Learn(r privacy.ReleasedVector) {
	p.see(r)
	for i := range p.sum {
		p.sum[i] += r.At(i)
	}
	p.OFUL.Learn(r)
}

func (p *learner) Play(a []float64) {
	p.all.SymRankOne(p.all, 1, mat.NewVecDense(len(a), a))
	p.OFUL.Play(a)
}

func (p *learner) Best(actions []float64) int {
	if !p.ahead {
		return p.OFUL.Best(actions)
	}
	var c mat.Cholesky
	var theta, x mat.VecDense
	if !c.Factorize(p.all) || c.SolveVecTo(&theta, mat.NewVecDense(len(p.sum), p.sum)) != nil {
		panic("V is singular")
	}
	_, radius := p.Estimate()
	best, top := 0, math.Inf(-1)
	for i := range len(actions) / len(p.sum) {
		a := mat.NewVecDense(len(p.sum), actions[i*len(p.sum):][:len(p.sum)])
		if c.SolveVecTo(&x, a) != nil {
			panic("V is singular")
		}
		if y := mat.Dot(&theta, a) + radius*math.Sqrt(mat.Dot(a, &x)); y > top {
			best, top = i, y
		}
	}
	return best
}

// A noter remembers what a curator is given.
type noter struct {
	release.StepFeatureCurator
	g *flat
}

func (c noter) AddSteps(slot, n int, sums []int64) error {
	c.g.given = append(c.g.given, slices.Clone(sums))
	return c.StepFeatureCurator.AddSteps(slot, n, sums)
}

type sumNoter struct {
	release.StepCurator
	g *flat
}

func (c sumNoter) AddSteps(arm, n int, steps int64) error {
	c.g.given = append(c.g.given, []int64{steps})
	return c.StepCurator.AddSteps(arm, n, steps)
}

// A cheat draws less noise than its ledger is told.
type cheat struct {
	release.StepFeatureCurator
	ledger *privacy.Ledger
	m      privacy.Mechanism
	slot   int
}

func (c *cheat) Ledger() *privacy.Ledger { return c.ledger }

func (c *cheat) Release(slot int) (privacy.ReleasedVector, error) {
	r, err := c.StepFeatureCurator.Release(slot)
	if err != nil {
		return r, err
	}
	v := privacy.Vector{N: r.N(), Value: make([]float64, r.Len())}
	for i := range v.Value {
		v.Value[i] = r.At(i)
	}
	c.slot++
	return c.ledger.ReleaseVector(c.slot-1, c.m, &v)
}

type sumCheat struct {
	release.StepCurator
	ledger *privacy.Ledger
	m      privacy.Mechanism
	slot   int
}

func (c *sumCheat) Release(arms []int) (privacy.Released, error) {
	r, err := c.StepCurator.Release(arms)
	if err != nil {
		return r, err
	}
	c.slot++
	return c.ledger.Release(c.slot-1, c.m, &privacy.Values{N: []int{r.N(0)}, Sum: []float64{r.Sum(0)}})
}

func (g *flat) start(h *house, cfg *Config) {
	g.given = nil
	taught := 0
	l := &learner{OFUL: flatPolicy(), ahead: h.fault == looksAhead, all: mat.NewSymDense(flatDim, nil),
		sum: make([]float64, flatDim)}
	for i := range flatDim {
		l.all.SetSym(i, i, 0.5)
	}
	l.see = func(r privacy.ReleasedVector) {
		h.seeVector(taught, r)
		taught++
	}
	cfg.Contexts = l
	cfg.Vectors = func(fc release.FeatureConfig) (release.FeatureCurator, error) {
		honest := fc
		if h.fault == halfNoise {
			fc.Mechanism = privacy.VectorGaussian{Sigma: fc.Mechanism.(privacy.VectorGaussian).Sigma / 2}
			fc.Ledger = nil
		}
		c, err := release.SimulatedFeatures(fc, &h.noise)
		if err != nil {
			return nil, err
		}
		s := c.(release.StepFeatureCurator)
		if h.fault == halfNoise {
			s = &cheat{s, honest.Ledger, honest.Mechanism, len(honest.Ledger.Entries()) / (1 + len(cfg.Rules))}
		}
		return noter{s, g}, nil
	}
	cfg.Curator = func(rc release.Config) (release.Curator, error) {
		honest := rc
		if h.fault == silentRule {
			rc.Mechanism, rc.Ledger = privacy.Laplace{Scale: 0}, nil
		}
		s, err := h.simulated(rc)
		if err != nil {
			return nil, err
		}
		if h.fault == silentRule {
			s = &sumCheat{s, honest.Ledger, honest.Mechanism, len(honest.Ledger.Entries())}
		}
		return sumNoter{s, g}, nil
	}
}

// set is a decision set on the grid.
func decisionSet(rng *rand.Rand, k int) []float64 {
	out := make([]float64, k*flatDim)
	for i := range k {
		a, q := out[i*flatDim:][:flatDim], 0.0
		for j := range a {
			a[j] = rng.NormFloat64()
			q += a[j] * a[j]
		}
		for j := range a {
			a[j] = math.Trunc(a[j]/math.Sqrt(q)*rng.Float64()*vectorSteps) / vectorSteps
		}
	}
	return out
}

// decide makes a decision, and looks whether it is that of the policy that has the released lines
// alone.
func (g *flat) decide(h *house, pick choice) error {
	own, actions := int64(max(0, pick(60, "own")-40)), decisionSet(h.rng, 4)
	best := h.live.Best(actions)
	if want, err := g.other.best(h, func() ContextualPolicy { return flatPolicy() }, actions); err != nil {
		return err
	} else if best != want && h.live.pending == nil {
		return caught("plays %d of %v, and what was released says %d", best, actions, want)
	}
	if h.rng.IntN(4) == 0 {
		best = h.rng.IntN(4)
	}
	e := Event{h.live.s.Arms[0].Issued, actions[best*flatDim:][:flatDim],
		[]float64{1 / (0.3 + h.rng.Float64()), 50 * float64(h.rng.IntN(2)) * h.rng.Float64()}}
	deadline := h.now + h.cfg.Window
	if own > 0 {
		deadline = h.now + own
	}
	if err := h.give(e, deadline); err != nil {
		return err
	}
	return g.ends(h, e.Number)
}

// give makes a decision of a vector, by its window or by a deadline of its own.
func (h *house) give(e Event, deadline int64) (err error) {
	var t Ticket
	d := Decision{Vector: e.Vector, Weights: e.Weights}
	if deadline == h.now+h.cfg.Window {
		t, err = h.live.Decide(d, h.now)
	} else {
		t, err = h.live.DecideUntil(d, h.now, deadline)
	}
	if (e.Number >= h.cfg.Horizon) != errors.Is(err, ErrStopped) {
		return caught("decision %d: %v", e.Number, err)
	}
	if err != nil {
		return err
	}
	e.Vector = slices.Clone(e.Vector)
	return h.decided(t, e, deadline)
}

// ends looks whether the last segment ends where det V says, by another library.
func (g *flat) ends(h *house, number int) error {
	v := mat.NewSymDense(flatDim, nil)
	v.CopySym(g.base)
	events := map[int][]float64{}
	for _, e := range h.owner {
		events[e.Number] = e.Vector
	}
	last, _ := mat.LogDet(v)
	cut := g.released
	for n := g.released; n <= number; n++ {
		v.SymRankOne(v, 1, mat.NewVecDense(flatDim, events[n]))
		now, _ := mat.LogDet(v)
		if now > last+math.Log(1.4) || n+1 == flatHorizon {
			last, cut = now, n+1
		}
	}
	q := &h.live.s.Arms[0]
	if s := q.last(); (s.End != 0) != (cut == number+1) || s.End != 0 && s.End != cut ||
		s.End == 0 && s.Start != cut {
		return caught("the last segment is %+v, and the last cut at %d", *s, cut)
	}
	return nil
}

// unclip counts what a ticket's weight by the second rule is above its clip.
func (v *vectors) unclip(t Ticket, reward float64) {
	s := v.s.Arms[0].find(t.Number)
	if over := v.s.Events[t.Number-v.s.Arms[0].Head].Weights[1]/v.further[1].most - 1; over > 0 {
		s.More[v.width+1] += weighted(int64(over*float64(oneStep)), v.clip.Steps(reward))
	}
}

func (g *flat) judge(h *house, _ State, c *Commit) error {
	given := g.given
	g.given = nil
	line, err := readLine(c.Line)
	if err != nil {
		return err
	}
	took := c.Taken[0]
	if len(c.Taken) != 1 || took.Arm != 0 || took.Start != g.released || took.End-took.Start != line.N {
		return caught("%+v was taken after %d decisions, and the line says %d", c.Taken, g.released, line.N)
	}
	g.released = took.End
	cfg, events := h.cfg, h.takenBy(took)
	vector, rules := make([]int64, flatDim), make([]int64, len(cfg.Rules))
	gram, weights := make([]int64, 0, 6), make([]int64, len(cfg.Rules))
	for n := took.Start; n < took.End; n++ {
		e := h.owner[events[n]]
		share, _ := h.share(events[n])
		g.base.SymRankOne(g.base, 1, mat.NewVecDense(flatDim, e.Vector))
		for i, x := range e.Vector {
			vector[i] += int64(math.Round(x * (2*share - 1) * (1 << 20)))
		}
		for i, w := range e.Weights {
			x := math.Round(math.Min(w, cfg.Rules[i].Clip) / cfg.Rules[i].Clip * (1 << 20))
			weights[i] += int64(x)
			rules[i] += int64(math.Floor(x*share + 0.5))
		}
	}
	for i := range flatDim {
		for j := range i + 1 {
			x := int64(0)
			for n := took.Start; n < took.End; n++ {
				a := h.owner[events[n]].Vector
				x += int64(a[i] * a[j] * (1 << 40))
			}
			gram = append(gram, x)
		}
	}
	if !slices.Equal(gram, line.Gram) {
		return caught("the products of the vectors are %v, must be %v", line.Gram, gram)
	}
	if len(given) != 1+len(rules) || !slices.Equal(given[0], vector) {
		return caught("a release is of sums that are not those of its rewards and defaults")
	}
	noisy, err := privacy.NewLedger().RestoreVector(line.Release)
	if err != nil {
		return err
	}
	sigma := flatPolicy().Mechanism().(privacy.VectorGaussian).Sigma
	for i, x := range vector {
		h.noises = append(h.noises, (noisy.At(i)-float64(x)/(1<<20))/sigma)
	}
	for i, x := range rules {
		if given[1+i][0] != x || line.Rules[i].Weights != weights[i] {
			return caught("rule %d has a sum that is not that of its rewards and defaults", i)
		}
		r, err := privacy.NewLedger().Restore(line.Rules[i].Release)
		if err != nil {
			return err
		}
		h.quiet = append(h.quiet, r.Sum(0)-float64(x)/(1<<20))
	}
	// a decision costs what its mechanisms do
	want := flatRho + 1.0/18 + 1.0/50
	if got := h.live.Ledger().Total().ZCDP(); math.Abs(got-want) > 1e-9 {
		return caught("the ledger has %v, must have %v", got, want)
	}
	return nil
}
