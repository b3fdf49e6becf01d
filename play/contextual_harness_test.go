package play

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Further faults, of a Contextual.
const (
	unclipped    fault = 100 + iota // a rule's weight is not clipped
	looksAhead                      // choices are made with V of decisions that were not released
	halfNoise                       // a release has half the noise that is charged
	silentRule                      // a rule has no noise, and it is charged
	otherDefault                    // what does not come counts as 0
)

const (
	flatDim     = 3
	flatHorizon = 900
	flatRho     = 0.5
)

// A flat is a Contextual with a store, a naive model of both that keeps every single reward, and a
// fault.
type flat struct {
	fault  fault
	cfg    ContextualConfig // but for policy and epoch
	noise  noise.Fast
	rng    *rand.Rand // of vectors
	live   *Contextual
	epochs uint64
	given  [][]int64 // what the curators were given: the policy's, then the rules'

	// The store.
	lines [][]byte
	notes int
	state ContextualState

	// The model.
	now      int64
	tickets  []Ticket
	rewards  map[Ticket]float64 // accepted
	durable  map[Ticket]float64 // and written
	owner    map[Ticket]Event
	released int // decisions
	handed   [][]float64
	other    *linear.OFUL // see alone
	learned  int
	base     *mat.SymDense // V of what was released
	// of each release and coordinate, and of each rule: noise over what is charged
	noises, quiet []float64
}

func flatConfig() ContextualConfig {
	return ContextualConfig{Horizon: flatHorizon, Lo: -1, Hi: 3, Default: 0.5, Window: 30, Rules: []Rule{
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

func newFlat(f fault, seed uint64) (*flat, error) {
	h := &flat{fault: f, cfg: flatConfig(), noise: noise.NewFast(seed, 7), rng: rand.New(rand.NewPCG(seed, 8)),
		rewards: map[Ticket]float64{}, durable: map[Ticket]float64{}, owner: map[Ticket]Event{}}
	h.learned, h.base = -1, mat.NewSymDense(flatDim, nil)
	for i := range flatDim {
		h.base.SetSym(i, i, 0.5)
	}
	var err error
	h.live, err = NewContextual(h.config())
	if err != nil {
		return nil, err
	}
	h.write()
	return h, nil
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
	h *flat
}

func (c noter) AddSteps(slot, n int, sums []int64) error {
	c.h.given = append(c.h.given, slices.Clone(sums))
	return c.StepFeatureCurator.AddSteps(slot, n, sums)
}

type sumNoter struct {
	release.StepCurator
	h *flat
}

func (c sumNoter) AddSteps(arm, n int, steps int64) error {
	c.h.given = append(c.h.given, []int64{steps})
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

// config is that of one more start.
func (h *flat) config() ContextualConfig {
	h.epochs++
	cfg := h.cfg
	binary.BigEndian.PutUint64(cfg.Epoch[:], h.epochs)
	taught := 0
	l := &learner{OFUL: flatPolicy(), ahead: h.fault == looksAhead, all: mat.NewSymDense(flatDim, nil),
		sum: make([]float64, flatDim)}
	for i := range flatDim {
		l.all.SetSym(i, i, 0.5)
	}
	l.see = func(r privacy.ReleasedVector) {
		got := []float64{float64(r.N())}
		for i := range r.Len() {
			got = append(got, r.At(i))
		}
		switch {
		case taught >= len(h.lines)-h.notes:
			panic(caught("release %d was handed out before it was durable", taught))
		case taught >= len(h.handed):
			h.handed = append(h.handed, got)
		case !slices.Equal(h.handed[taught], got):
			panic(caught("release %d was handed out as %v and as %v", taught, h.handed[taught], got))
		}
		taught++
	}
	cfg.Policy = l
	cfg.Curator = func(fc release.FeatureConfig) (release.FeatureCurator, error) {
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
		return noter{s, h}, nil
	}
	cfg.Sums = func(rc release.Config) (release.Curator, error) {
		honest := rc
		if h.fault == silentRule {
			rc.Mechanism, rc.Ledger = privacy.Laplace{Scale: 0}, nil
		}
		c, err := release.Simulated(rc, &h.noise)
		if err != nil {
			return nil, err
		}
		s := c.(release.StepCurator)
		if h.fault == silentRule {
			s = &sumCheat{s, honest.Ledger, honest.Mechanism, len(honest.Ledger.Entries())}
		}
		return sumNoter{s, h}, nil
	}
	return cfg
}

// write makes the state durable.
func (h *flat) write() { h.state, h.durable = h.live.State(), maps.Clone(h.rewards) }

// set is a decision set on the grid.
func (h *flat) set(k int) []float64 {
	out := make([]float64, k*flatDim)
	for i := range k {
		a, q := out[i*flatDim:][:flatDim], 0.0
		for j := range a {
			a[j] = h.rng.NormFloat64()
			q += a[j] * a[j]
		}
		for j := range a {
			a[j] = math.Trunc(a[j]/math.Sqrt(q)*h.rng.Float64()*vectorSteps) / vectorSteps
		}
	}
	return out
}

// decide makes a decision, and looks whether it is that of the policy that has the released lines
// alone.
func (h *flat) decide(own int64) error {
	actions := h.set(4)
	best := h.live.Best(actions)
	if p, err := h.alone(); err != nil {
		return err
	} else if want := p.Best(actions); best != want && h.live.pending == nil {
		return caught("plays %d of %v, and what was released says %d", best, actions, want)
	}
	if h.rng.IntN(4) == 0 {
		best = h.rng.IntN(4)
	}
	e := Event{h.live.s.Queue.Issued, actions[best*flatDim:][:flatDim],
		[]float64{1 / (0.3 + h.rng.Float64()), 50 * float64(h.rng.IntN(2)) * h.rng.Float64()}}
	var t Ticket
	var err error
	deadline := h.now + h.cfg.Window
	if own > 0 {
		deadline = h.now + own
		t, err = h.live.DecideUntil(e.Vector, e.Weights, h.now, deadline)
	} else {
		t, err = h.live.Decide(e.Vector, e.Weights, h.now)
	}
	if stopped := e.Number >= flatHorizon; stopped != errors.Is(err, ErrStopped) {
		return caught("decision %d: %v", e.Number, err)
	}
	if err != nil {
		return err
	}
	if t.Arm != 0 || t.Number != e.Number || t.Deadline != deadline {
		return caught("the ticket %+v of decision %d at %d", t, e.Number, h.now)
	}
	if slices.Contains(h.tickets, t) {
		return caught("two units have the ticket %+v", t)
	}
	e.Vector = slices.Clone(e.Vector)
	h.owner[t] = e
	h.tickets = append(h.tickets, t)
	return h.ends(e.Number)
}

// alone is a policy that has learned the lines and knows of no other decision.
func (h *flat) alone() (*linear.OFUL, error) {
	if h.learned == len(h.lines) {
		return h.other, nil
	}
	p := flatPolicy()
	h.other, h.learned = p, len(h.lines)
	cfg := h.cfg
	cfg.Policy, cfg.Epoch = p, Epoch{1}
	c, err := buildContextual(cfg)
	if err != nil {
		return nil, err
	}
	past := c.past()
	return p, follow(h.written(), past.add, &past.lines)
}

// ends looks whether the last segment ends where det V says, by another library.
func (h *flat) ends(number int) error {
	v := mat.NewSymDense(flatDim, nil)
	v.CopySym(h.base)
	events := map[int][]float64{}
	for _, e := range h.owner {
		events[e.Number] = e.Vector
	}
	last, _ := mat.LogDet(v)
	cut := h.released
	for n := h.released; n <= number; n++ {
		v.SymRankOne(v, 1, mat.NewVecDense(flatDim, events[n]))
		now, _ := mat.LogDet(v)
		if now > last+math.Log(1.4) || n+1 == flatHorizon {
			last, cut = now, n+1
		}
	}
	q := &h.live.s.Queue
	if s := q.last(); (s.End != 0) != (cut == number+1) || s.End != 0 && s.End != cut ||
		s.End == 0 && s.Start != cut {
		return caught("the last segment is %+v, and the last cut at %d", *s, cut)
	}
	return nil
}

// settle reports on a ticket, known or not, and compares the answer with the model's.
func (h *flat) settle(t Ticket, reward float64) error {
	c := h.live
	e, known := h.owner[t]
	held := c.s.Queue.find(t.Number)
	came := held != nil && held.Came.Has(t.Number-held.Start)
	if h.fault == countsTwice && came && known && h.now < t.Deadline {
		c.count(held.More, t.Number, c.clip.Steps(reward))
	}
	asked := t
	if h.fault == countsLate {
		asked.Deadline = math.MaxInt64
	}
	got, err := c.Settle(asked, reward, h.now)
	if err != nil {
		return err
	}
	want := Accepted
	switch {
	case t.Number < h.released: // whoever's number it was
		want = Late
	case !known:
		want = Void
	case h.now >= t.Deadline:
		want = Late
	}
	if got != want {
		return caught("the answer for %+v at %d is %v, must be %v", t, h.now, got, want)
	}
	if _, again := h.rewards[t]; got == Accepted && !again {
		h.rewards[t] = reward
		if w := e.Weights[1]; h.fault == unclipped && w > h.cfg.Rules[1].Clip {
			s := c.s.Queue.find(t.Number)
			s.More[flatDim+1] += weighted(int64((w/h.cfg.Rules[1].Clip-1)*float64(oneStep)),
				c.clip.Steps(reward))
		}
	}
	return nil
}

// crash loses all that is not durable, and restores the rest.
func (h *flat) crash() (err error) {
	h.rewards = maps.Clone(h.durable)
	for t := range h.owner {
		if t.Number >= h.state.Queue.Issued { // void: its number may be another's
			delete(h.rewards, t)
			delete(h.owner, t)
		}
	}
	before := h.state
	before.Queue, before.Events = before.Queue.clone(), slices.Clone(before.Events)
	h.live, err = RestoreContextual(h.config(), h.written(), before)
	if err != nil {
		return err
	}
	if h.fault == sameEpoch {
		h.live.cfg.Epoch = Epoch{7: 1}
		h.live.s.Queue.Runs = []Run{{0, h.live.cfg.Epoch}}
	}
	got := h.live.State()
	got.Queue.Runs = before.Queue.Runs
	if !reflect.DeepEqual(got, before) {
		return caught("restored\n%+v, stored was\n%+v", got, before)
	}
	return nil
}

// written are the lines of the store.
func (h *flat) written() func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for _, line := range h.lines {
			if !yield(line, nil) {
				return
			}
		}
	}
}

func (h *flat) note(crash int) error {
	c, err := h.live.Note([]byte(`{"floor":0.5}`))
	if err != nil || crash == beforeWrite {
		return errors.Join(err, h.crash())
	}
	h.notes++
	return h.finish(h.live.State(), c, crash)
}

// close releases what is due, in one transaction, with a crash at some place of it.
func (h *flat) close(crash int) error {
	l, now := h.live, h.now
	if q := &l.s.Queue; h.fault == closesEarly && len(q.Segments) > 0 && q.Segments[0].End > 0 &&
		q.Segments[0].Came.Len() == q.Segments[0].End-q.Segments[0].Start {
		now = max(now, q.Segments[0].Settles) // as if all were known when all came
	}
	if h.fault == otherDefault {
		l.missing = 0
	}
	before := l.State()
	h.given = h.given[:0]
	earned := l.Rules()
	c, err := l.Close(now)
	if err != nil || c == nil {
		return err
	}
	if !slices.Equal(earned, l.Rules()) {
		return caught("what is earned is told before it is durable")
	}
	if h.fault == handsOut {
		if err := l.Commit(c); err != nil {
			return err
		}
	}
	if crash == beforeWrite {
		return h.crash()
	}
	if err := h.judge(c); err != nil {
		return err
	}
	return h.finish(before, c, crash)
}

// finish makes a commit durable and commits it.
func (h *flat) finish(before ContextualState, c *Commit, crash int) (err error) {
	state, lines := h.state, h.lines
	h.lines = append(slices.Clone(h.lines), c.Line)
	if h.fault == keepsSegment {
		h.state = before
	} else {
		h.write()
	}
	if crash == afterWrite {
		return h.crash()
	}
	if h.fault != handsOut {
		if err := h.live.Commit(c); err != nil {
			return err
		}
	}
	if crash == afterCommit {
		if h.fault == drawsAgain {
			h.state, h.lines = state, lines
		}
		return h.crash()
	}
	return nil
}

// judge holds a release against the model, at the moment when it becomes durable.
func (h *flat) judge(c *Commit) error {
	var line contextualLine
	if err := readLine(c.Line, &line); err != nil {
		return err
	}
	took := c.Taken[0]
	if len(c.Taken) != 1 || took.Arm != 0 || took.Start != h.released || took.End-took.Start != line.N {
		return caught("%+v was taken after %d decisions, and the line says %d", c.Taken, h.released, line.N)
	}
	h.released = took.End
	cfg := h.cfg
	vector, rules := make([]int64, flatDim), make([]int64, len(cfg.Rules))
	gram := make([]int64, 0, 6)
	events := map[int]Ticket{}
	for t := range h.owner {
		if t.Number >= took.Start && t.Number < took.End {
			events[t.Number] = t
		}
	}
	weights := make([]int64, len(cfg.Rules))
	for n := took.Start; n < took.End; n++ {
		t := events[n]
		e := h.owner[t]
		if h.now < t.Deadline {
			return caught("released at %d, before the deadline of %+v", h.now, t)
		}
		r, came := h.rewards[t]
		if !came {
			r = cfg.Default
		}
		if r != r {
			r = cfg.Lo
		}
		share := math.Round((min(max(r, cfg.Lo), cfg.Hi)-cfg.Lo)/(cfg.Hi-cfg.Lo)*(1<<20)) / (1 << 20)
		h.base.SymRankOne(h.base, 1, mat.NewVecDense(flatDim, e.Vector))
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
	if len(h.given) != 1+len(rules) || !slices.Equal(h.given[0], vector) {
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
		if h.given[1+i][0] != x || line.Rules[i].Weights != weights[i] {
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

// step does one random thing to a flat.
func (h *flat) step(pick choice) error {
	switch what := pick(12, "what"); what {
	case 0, 1, 2, 3:
		return h.decide(int64(max(0, pick(60, "own")-40)))
	case 4, 5, 6:
		if len(h.tickets) == 0 {
			return nil
		}
		t := h.tickets[len(h.tickets)-1-pick(min(len(h.tickets), 40), "back")]
		return h.settle(t, []float64{-1, 3, 0.25, -3, 7, math.NaN(), math.Inf(1)}[pick(7, "reward")])
	case 7:
		h.write()
		if pick(4, "crash") == 0 {
			return h.crash()
		}
	case 8:
		if pick(6, "crash") == 0 {
			return h.crash()
		}
		if pick(60, "note") == 59 && h.fault == none {
			return h.note(pick(places, "place"))
		}
	case 9, 10:
		h.now += int64(pick(6, "time"))
		if far := int64(pick(400, "far") - 200); pick(60, "jump") == 59 {
			h.now += far // clocks go back, too
		}
		return h.close(pick(places, "place"))
	case 11:
		h.now++
		for range 8 {
			if err := h.close(nowhere); err != nil {
				return err
			}
		}
	}
	return nil
}

// play does so many random things.
func (h *flat) play(steps int, pick choice) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(error)
			if !ok || !errors.Is(e, errCaught) {
				panic(r)
			}
			err = e
		}
	}()
	for i := range steps {
		if err := h.step(pick); err != nil && !errors.Is(err, ErrStopped) {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// loud says whether noise over its scale may be standard normal: the sum of squares of n is within
// 7 standard deviations, which normal noise leaves with probability below 1e-6 for n ≥ 200.
func loud(noises []float64) bool {
	var q float64
	for _, x := range noises {
		q += x * x
	}
	n := float64(len(noises))
	return math.Abs(q-n) < 7*math.Sqrt(2*n)
}

// flatRun plays one long run.
func flatRun(f fault, seed uint64, steps int) (*flat, error) {
	h, err := newFlat(f, seed)
	if err != nil {
		return nil, err
	}
	src := rand.New(rand.NewPCG(seed, 2))
	return h, h.play(steps, func(n int, _ string) int { return src.IntN(n) })
}
