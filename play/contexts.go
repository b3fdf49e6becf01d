package play

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	cells "github.com/sotto-dp/sotto/internal/rows"
	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A ContextualPolicy chooses from a new decision set each time, while earlier decisions wait for
// their rewards: linear.OFUL and linear.LinUCB are, and say there what it is that each method does.
type ContextualPolicy interface {
	Mechanism() privacy.Mechanism
	Dim() int
	// Best is which of the actions, Dim numbers each, is played; it changes nothing.
	Best(actions []float64) int
	// Play takes the vector of the next decision.
	Play(vector []float64)
	// Due is at least 0 if the open segment ends with the decision that was played last. It may
	// depend on what was played, and on counts, and on no reward that was not released.
	Due() int
	// Cut ends the segment. The result is what the transcript has of its vectors, which must be
	// public then; nil for nothing.
	Cut() []int64
	// Skip is Play of all n decisions of a segment from what Cut has returned for it; Cut follows.
	// The error says why there are no such decisions.
	Skip(n int, gram []int64) error
	// Learn takes the release of the oldest segment that was cut.
	Learn(privacy.ReleasedVector)
}

// A Modelled policy scores vectors by their product with an estimate, and perhaps a bonus for what is to be
// learnt. The estimate follows from what was released, and so does whatever is chosen by it, for ever.
type Modelled interface {
	// Estimate is by component, and how far off it may be.
	Estimate() (theta []float64, radius float64)
}

// Estimate is that of a ContextualPolicy that is Modelled, nil of any other.
func (l *Live) Estimate() []float64 {
	m, ok := l.policy.(Modelled)
	if !ok {
		return nil
	}
	theta, _ := m.Estimate()
	return theta
}

// A Confident policy has a theorem that says how far its estimate may be off.
type Confident interface {
	Modelled
	// Within is an interval of ⟨θ*, x⟩, which holds for all x, at all releases, together with probability at least
	// 1−risk, if rewards in [−1,1] have the mean ⟨θ*, vector⟩ and ‖θ*‖ ≤ norm. It has no end where nothing is proved.
	Within(x []float64, risk, norm float64) (lo, hi float64)
}

// Within are intervals of a Confident policy, one for each of xs; nil of any other, and where one has no end.
func Within(p ContextualPolicy, xs [][]float64, risk, norm float64) (out [][2]float64) {
	c, ok := p.(Confident)
	if !ok {
		return nil
	}
	for _, x := range xs {
		lo, hi := c.Within(x, risk, norm)
		if width := hi - lo; !(width >= 0 && width <= math.MaxFloat64) {
			return nil
		}
		out = append(out, [2]float64{lo, hi})
	}
	return out
}

// Within are those of the policy that is played.
func (l *Live) Within(xs [][]float64, risk, norm float64) [][2]float64 {
	return Within(l.cfg.Contexts, xs, risk, norm)
}

// A Drawing policy plays by one of Draws vectors, chosen uniformly, so that each action has a probability that is known
// exactly (linear.LinTS).
type Drawing interface {
	ContextualPolicy
	// Draw makes counts of how many of the vectors each action is the best by. It may draw other vectors for the
	// next decision, and changes nothing that a release or an estimate follows from.
	Draw(actions []float64, counts []int) (draws int)
}

// An Event is a decision with a context that was not released: its vector, and its weights by rule.
type Event struct {
	Number          int
	Vector, Weights []float64
}

// vectors is the side of a policy that chooses from vectors: a batch is the oldest segment that it has
// cut, and a release is of vectors times their rewards.
type vectors struct {
	*Live
	play     ContextualPolicy
	dim      int
	width    int         // sums of a segment's vectors
	joint    bool        // vectors are private
	kept     bool        // the curator is one that is kept
	rows     cells.Table // of a histogram, all vectors that there may be
	features release.StepFeatureCurator
	oldest   [1]policy.Play // of the one queue, to be released always
	// what is not to count is added up here: how long others wait must not tell whose reward came
	nowhere  []int64
	grams    [][]int64 // of the segments that were cut
	released privacy.ReleasedVector
}

// maxDim is far beyond what a policy can learn.
const maxDim = 1 << 10

func (v *vectors) admit() (err error) {
	cfg := &v.cfg
	v.play, v.dim, v.oldest[0].Release = cfg.Contexts, cfg.Contexts.Dim(), true
	v.width = v.dim
	switch {
	case v.dim < 1 || v.dim > maxDim:
		return fmt.Errorf("play: dim of the policy is %d, must be from 1 to %d", v.dim, maxDim)
	case cfg.Horizon < 0 || cfg.Horizon > maxIssued:
		return fmt.Errorf("play: horizon is %d, must be from 1 to %d, or 0 for no end", cfg.Horizon,
			maxIssued)
	case cfg.Arms != 0 || len(cfg.Metrics) > 0 || cfg.Drop || cfg.Take == AtLeast || cfg.Gathering.On():
		return errors.New("play: there are arms, metrics, gathering or what may not count, must be none with " +
			"contexts")
	}
	switch m := v.policy.Mechanism().(type) {
	case privacy.VectorGaussian:
	case privacy.Histogram:
		v.joint = true
		of, ok := v.policy.(interface{ Rows() []float64 })
		if !ok {
			return fmt.Errorf("play: %T does not say which vectors there may be", v.policy)
		}
		if v.rows, err = cells.New(v.dim, of.Rows()); err != nil {
			return fmt.Errorf("play: %w", err)
		}
	case privacy.GramGaussian:
		v.joint = true
		whole, ok := v.policy.(wholly)
		if !ok {
			return fmt.Errorf("play: %T does not say which decisions are whole segments", v.policy)
		}
		if err := whole.Whole(cfg.Horizon); err != nil {
			return fmt.Errorf("play: %w", err)
		}
	case privacy.GramTree:
		v.joint = true
		if leaf := max(1, m.Leaf); cfg.Horizon == 0 || cfg.Horizon > m.Horizon || cfg.Horizon%leaf != 0 {
			return fmt.Errorf("play: horizon is %d, must be a multiple of %d, the leaves' decisions, "+
				"up to %d", cfg.Horizon, leaf, m.Horizon)
		}
	case nil:
		return fmt.Errorf("play: %T has no mechanism", v.policy)
	default:
		why := "is of a kind that live play has no segments of"
		if m.Continual() {
			why = "outlives a release, and cannot be stored safely"
		}
		return fmt.Errorf("play: %T cannot be played live: the noise of its mechanism, %s, %s", v.policy, m.Kind(), why)
	}
	if v.joint {
		if v.width = (v.dim + 1) * (v.dim + 2) / 2; v.rows.Len() > 0 {
			v.width = 2 * v.rows.Len()
		}
		if len(cfg.Rules) > 0 {
			return fmt.Errorf("play: rules has %d, must have none where vectors are private: weights "+
				"follow from them", len(cfg.Rules))
		}
	}
	cfg.Arms, cfg.Take, cfg.Cut = 1, Exactly, 0
	if v.further, err = buildRules(cfg.Rules); err != nil {
		return err
	}
	// What does not come is counted by head, decision by decision.
	v.missing = make([]int64, 1+v.width)
	v.nowhere = make([]int64, v.width+len(v.further))
	return nil
}

// A wholly policy's segments end by count alone, and no partial one may be released.
type wholly interface{ Whole(decisions int) error }

// curated is what the curator is built of.
func (v *vectors) curated() release.FeatureConfig {
	return release.FeatureConfig{Dim: v.dim, Slots: 1, Mechanism: v.policy.Mechanism(), Rows: v.rows.Flat()}
}

// curate builds the curator of what is released next. A policy may change its mechanism as it learns a
// release: what follows is other records, in slots of their own.
func (v *vectors) curate(p *past) error {
	cfg := v.curated()
	v.kept = v.joint && cfg.Mechanism.Continual()
	cfg.Ledger = v.ledger
	c, err := v.cfg.Vectors(cfg)
	if err != nil {
		return fmt.Errorf("play: %w", err)
	}
	var ok bool
	if v.features, ok = c.(release.StepFeatureCurator); !ok || v.features.Width() != v.width {
		return fmt.Errorf("play: the curator is a %T, must be one that takes sums of steps", c)
	}
	if v.kept {
		kept, ok := c.(release.KeptCurator)
		if !ok {
			return fmt.Errorf("play: the curator is a %T, must be one that is kept", c)
		}
		if err := kept.Restore(0, v.s.Kept, p.last); err != nil {
			return fmt.Errorf("play: %w: %w", ErrState, err)
		}
	} else if len(v.s.Kept) > 0 {
		return fmt.Errorf("play: %w: it has a curator's", ErrState)
	}
	return nil
}

// resume plays the decisions of the state again, and says what no state with contexts has. It tells
// no sum.
func (v *vectors) resume(*past) error {
	q := &v.s.Arms[0]
	if err := v.replay(q); err != nil {
		return fmt.Errorf("play: %w: %w", ErrState, err)
	}
	v.stop(q)
	return nil
}

func (v *vectors) replay(q *Queue) error {
	if q.Asked != 0 || q.Off || v.s.Batch != nil {
		return errors.New("it has a batch, or is off")
	}
	if len(v.s.Events) != q.Issued-q.Head {
		return fmt.Errorf("there are %d events of %d decisions", len(v.s.Events), q.Issued-q.Head)
	}
	for i, s := range q.Segments {
		end := s.End
		if end == 0 {
			end = q.Issued
		}
		if end > q.Issued || s.Sum != 0 {
			return fmt.Errorf("segment %d ends at %d, of %d decisions, or has a reward's sum", i, end, q.Issued)
		}
		for n := s.Start; n < end; n++ {
			e := v.s.Events[n-q.Head]
			if e.Number != n {
				return fmt.Errorf("event %d is of decision %d", n, e.Number)
			}
			if err := v.check(e); err != nil {
				return fmt.Errorf("event %d: %w", n, err)
			}
			if ends := n+1 == s.End; v.tell(e) != ends {
				return fmt.Errorf("a segment ends at %d, and the policy says otherwise", end)
			}
		}
	}
	return nil
}

// stop stops where there are as many decisions as there are to be.
func (v *vectors) stop(q *Queue) { v.stopped = v.cfg.Horizon > 0 && q.Issued >= v.cfg.Horizon }

// decide puts a decision into its queue.
func (v *vectors) decide(q *Queue, d Decision, deadline int64) (Ticket, error) {
	e := Event{q.Issued, slices.Clone(d.Vector), slices.Clone(d.Weights)}
	if err := v.check(e); err != nil {
		return Ticket{}, err
	}
	q.decide(deadline, 0, func(int) int { return 0 }, 0)
	v.s.Events = append(v.s.Events, e)
	if v.tell(e) {
		q.last().End = q.Issued
	}
	v.stop(q)
	return Ticket{0, e.Number, deadline, v.cfg.Epoch}, nil
}

// tell tells the policy of a decision; ended says that the segment ends with it.
func (v *vectors) tell(e Event) (ended bool) {
	v.play.Play(e.Vector)
	if v.play.Due() < 0 && e.Number+1 != v.cfg.Horizon {
		return false
	}
	v.grams = append(v.grams, v.play.Cut())
	return true
}

// errPrivate is all that is said of a vector that is private.
var errPrivate = errors.New("play: the vector is none of the unit ball on the grid: its numbers must be " +
	"multiples of 2^-20, and its norm at most 1")

// errNoRow is the same of a vector that has no bins, which would be in no count.
var errNoRow = errors.New("play: the vector is none of the rows that were declared")

// check says what is wrong with a decision's vector and weights.
func (v *vectors) check(e Event) error {
	err := v.checkVector(e)
	switch {
	case err != nil && v.joint:
		return errPrivate
	case v.rows.Len() > 0 && v.rows.Find(e.Vector) < 0:
		return errNoRow
	}
	return err
}

func (v *vectors) checkVector(e Event) error {
	if len(e.Vector) != v.dim {
		return fmt.Errorf("play: the vector has %d numbers, must have %d", len(e.Vector), v.dim)
	}
	var q float64
	for i, x := range e.Vector {
		if steps := float64(x * vectorSteps); !(math.Abs(steps) <= vectorSteps) || steps != math.Trunc(steps) {
			return fmt.Errorf("play: vector[%d] is %v, must be a multiple of 2^-20 from -1 to 1", i, x)
		}
		q += float64(x * x)
	}
	if !(q <= 1+unitball.Slack) {
		return fmt.Errorf("play: the vector has norm %v, must be at most 1", math.Sqrt(q))
	}
	if len(e.Weights) != len(v.further) {
		return fmt.Errorf("play: there are %d weights, must be one for each of %d rules", len(e.Weights),
			len(v.further))
	}
	for i, w := range e.Weights {
		if !(w >= 0 && w <= math.MaxFloat64) {
			return fmt.Errorf("play: weights[%d] is %v, must be at least 0 and finite", i, w)
		}
	}
	return nil
}

// vectorSteps is how many steps of a vector's numbers are 1.
const vectorSteps = 1 << 20

// settle adds what was reported of a decision to its segment, once.
func (v *vectors) settle(s *Segment, number int, steps int64) {
	if s.More == nil {
		s.More = make([]int64, len(v.nowhere))
	}
	sums, i := s.More, number-s.Start
	if s.Came.Has(i) {
		sums = v.nowhere
	}
	v.count(sums, number, steps)
	s.Came.add(i)
}

// count adds a decision's reward, in steps of the range, to a segment's sums.
func (v *vectors) count(sums []int64, number int, steps int64) {
	e := &v.s.Events[number-v.s.Arms[0].Head]
	v.features.Products(sums[:v.width], e.Vector, float64(2*float64(steps)/float64(oneStep))-1)
	for i, w := range e.Weights {
		sums[v.width+i] += weighted(weightSteps(w, v.further[i].most), steps)
	}
}

func (v *vectors) out() []policy.Play { return v.oldest[:] }

// head is of the oldest segment, in which what did not come is counted as the default.
func (v *vectors) head() line {
	s := &v.s.Arms[0].Segments[0]
	n := s.End - s.Start
	// Anew, also where rewards came: how long it takes must not tell.
	sums := make([]int64, len(v.nowhere))
	copy(sums, s.More)
	s.More = sums
	missing := v.clip.Steps(v.cfg.Default)
	for i := range n {
		to := s.More
		if s.Came.Has(i) {
			to = v.nowhere
		}
		v.count(to, s.Start+i, missing)
	}
	clear(v.nowhere)
	out := line{N: n, Gram: v.grams[0], Rules: v.weigh(v.s.Events[:n])}
	v.s.Events = slices.Clone(v.s.Events[n:])
	v.grams = slices.Delete(v.grams, 0, 1)
	return out
}

func (v *vectors) put(_, n int, sums []int64) error { return v.features.AddSteps(0, n, sums[1:]) }

func (v *vectors) release([]row, line) (err error) {
	if v.released, err = v.features.Release(0); err == nil && v.kept {
		v.s.Kept, err = v.features.(release.KeptCurator).State(0)
	}
	return err
}

func (v *vectors) learn(c *Commit) error {
	for i, r := range c.rules {
		if err := v.earned[i].add(r); err != nil {
			return err
		}
	}
	kind := v.policy.Mechanism().Kind()
	v.play.Learn(v.released)
	v.driver.Batches++
	if v.policy.Mechanism().Kind() != kind {
		return v.curate(&past{})
	}
	return nil
}

// Best is which of the actions the policy plays, Dim numbers each: by releases alone. It changes
// nothing. It is −1 without contexts.
func (l *Live) Best(actions []float64) int {
	if l.cfg.Contexts == nil {
		return -1
	}
	return l.cfg.Contexts.Best(actions)
}

// Draw makes counts, one for each of the actions, of how many draws of the policy each is played by, and returns
// how many there are: one, of Best, unless the policy is Drawing. By releases alone, and coins.
func (l *Live) Draw(actions []float64, counts []int) (draws int) {
	if d, ok := l.cfg.Contexts.(Drawing); ok {
		return d.Draw(actions, counts)
	}
	clear(counts)
	counts[l.Best(actions)] = 1
	return 1
}

// Kept is the curator's state, as State has it: to be read only.
func (l *Live) Kept() []byte { return l.s.Kept }

// Rules is what was released of the rules' earnings, in their order.
func (l *Live) Rules() []Earned { return slices.Clone(l.earned) }

func (v *vectors) outline(p *past) (err error) {
	p.charge, err = release.FeatureCharge(v.curated())
	return err
}

func (v *vectors) add(p *past, in line) error {
	done := p.heads[0]
	switch {
	case len(in.Plays)+len(in.Ahead)+len(in.Rest)+len(in.Metrics) > 0 || in.Off != nil || in.Add != nil || in.Gone != 0:
		return fmt.Errorf("%w: it is a line of arms", ErrState)
	case in.N < 1 || in.N > maxIssued-done || v.cfg.Horizon > 0 && in.N > v.cfg.Horizon-done:
		return fmt.Errorf("%w: it releases %d decisions after %d", ErrState, in.N, done)
	}
	if err := v.play.Skip(in.N, in.Gram); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	done += in.N
	p.heads[0], p.Released[0] = done, done
	if v.play.Due() < 0 && done != v.cfg.Horizon {
		return fmt.Errorf("%w: the policy does not end a segment after %d decisions", ErrState, done)
	}
	if again := v.play.Cut(); !slices.Equal(again, in.Gram) {
		return fmt.Errorf("%w: it tells more of vectors than the policy does", ErrState)
	}
	released, err := v.ledger.RestoreVector(in.Release)
	if err != nil {
		return err
	}
	err = v.checkRelease(p, in, released)
	if err == nil {
		err = v.addFurther([]int{0}, in)
	}
	for i, r := range in.Rules {
		if err == nil {
			err = errors.Join(r.check(in.N), p.Rules[i].add(r))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	p.Releases[0]++
	p.last = released
	kind := v.policy.Mechanism().Kind()
	v.play.Learn(released)
	v.driver.Batches++
	if v.policy.Mechanism().Kind() != kind {
		p.last, p.from, p.slot = privacy.ReleasedVector{}, done, p.Releases[0]
		if p.charge != nil {
			return v.outline(p)
		}
	}
	return nil
}

// checkRelease holds a release against what a curator makes of the segment, as far as that is known.
func (v *vectors) checkRelease(p *past, in line, released privacy.ReleasedVector) error {
	var text struct {
		Slot      int             `json:"slot"`
		Mechanism json.RawMessage `json:"mechanism"`
		N         int             `json:"n"`
		Vector    []float64       `json:"vector"`
	}
	m, err := readRelease(in.Release, &text, &text.Mechanism)
	n, slot, width := in.N, p.Releases[0], v.width
	switch of := v.policy.Mechanism(); {
	case of.Continual():
		n, slot = p.heads[0]-p.from, p.slot
	case v.joint && v.rows.Len() == 0: // without the sum of squared rewards
		width--
	}
	switch {
	case err != nil:
		return err
	case released.N() != n:
		return fmt.Errorf("it releases %d rewards, must be %d", released.N(), n)
	case released.Len() != width:
		return fmt.Errorf("it releases %d numbers, must be %d", released.Len(), width)
	case text.Slot != slot:
		return fmt.Errorf("slot %d is released, must be %d", text.Slot, slot)
	case p.charge != nil && m != p.charge:
		return fmt.Errorf("the mechanism of the release is %v, and the policy's is %v", m, p.charge)
	}
	p.Noise = m
	return nil
}
