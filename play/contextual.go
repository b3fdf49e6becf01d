package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/gramline"
	"github.com/sotto-dp/sotto/internal/unitball"
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

// A ContextualConfig is what a Contextual is made of. All of it is public, and fixed before the
// first decision but for Window and Epoch.
type ContextualConfig struct {
	Policy ContextualPolicy // that was not played yet
	// Horizon is how many decisions there are: after the last one the segment is cut. 0 is no end.
	Horizon int
	// Lo, Hi, Default and Window are as in Config. The policy's rewards are mapped to [−1,1].
	Lo, Hi, Default float64
	Window          int64
	// Rules are others whose earnings are estimated. The cap of Ledger, if there is one, must be
	// for all of them together.
	Rules  []Rule
	Ledger []privacy.Option
	// Curator builds the policy's curator; nil is release.RealFeatures. It must return a
	// release.StepFeatureCurator.
	Curator func(release.FeatureConfig) (release.FeatureCurator, error)
	// Sums builds those of the rules, as Config.Curator.
	Sums  func(release.Config) (release.Curator, error)
	Epoch Epoch
}

// A Contextual plays a policy on units who come one by one with a decision set each, and whose
// rewards come when they will. What it promises is what a Live promises; the records of a release
// are vectors and their rewards:
//
//   - Best is what the policy plays, and Decide makes a decision of it, or of another vector where
//     a floor of traffic says so: the vector that was played, and its weight by each rule.
//   - Settle takes a ticket's reward, once. A deadline that passes without one is the default.
//   - A segment ends with the decision by which the policy says so, of public vectors and counts.
//     Close releases the oldest that has ended when the deadlines of all its decisions have passed:
//     what has been released is a prefix of the decisions.
//   - Commit hands the release to the policy.
//
// The reward alone is protected. Vectors and weights are public, and so none of them may be made of
// a reward that was not released: the lines of the transcript have sums of them, without noise.
// Single rewards are gone at a release; vectors and weights too, but for what a policy keeps of
// vectors, sums of products.
//
// Where the policy releases running Gram matrices (linear.LinUCB in leaves), a decision's vector
// and its reward are protected together, under joint differential privacy: the lines have noisy
// matrices and nothing else, segments end by count, and no error has anything of a vector. Then
// whoever is not the unit must not see what she was given, nor vectors, nor propensities: that is
// the caller's. There are no rules, whose weights would tell. The curator is a release.KeptCurator:
// its state is in the state, and the one that goes with a line must be durable with it, or neither;
// see there for what would be lost by going back.
//
// It serves one goroutine at a time. After an error of Close all further calls fail with it:
// restore what is durable.
type Contextual struct {
	cfg     ContextualConfig
	clip    release.Clip
	missing int64 // the default, in steps
	rules   []metric
	curator release.StepFeatureCurator
	width   int // sums of a segment's vectors
	// what is not to count is added up here: how long others wait must not tell whose reward came
	nowhere []int64
	line    bytes.Buffer // what the ledger writes

	s        ContextualState
	grams    [][]int64 // of the segments that were cut
	earned   []Earned
	pending  *Commit
	released privacy.ReleasedVector // that is pending, and what is earned with it
	next     []Earned
	failed   error
}

// maxDim is far beyond what a policy can learn.
const maxDim = 1 << 10

// NewContextual returns a Contextual at its beginning.
func NewContextual(cfg ContextualConfig) (*Contextual, error) {
	c, err := buildContextual(cfg)
	if err != nil {
		return nil, err
	}
	c.s = ContextualState{ContextualTerms: c.terms()}
	if err := c.begin(func(func([]byte, error) bool) {}); err != nil {
		return nil, err
	}
	return c, nil
}

// buildContextual makes all that is not state, but for the curators, which need the restored ledger.
func buildContextual(cfg ContextualConfig) (*Contextual, error) {
	if cfg.Lo == 0 && cfg.Hi == 0 {
		cfg.Hi = 1
	}
	if cfg.Curator == nil {
		cfg.Curator = release.RealFeatures
	}
	if cfg.Sums == nil {
		cfg.Sums = release.Real
	}
	switch {
	case cfg.Policy == nil:
		return nil, errors.New("play: policy is missing")
	case cfg.Policy.Dim() < 1 || cfg.Policy.Dim() > maxDim:
		return nil, fmt.Errorf("play: dim of the policy is %d, must be from 1 to %d", cfg.Policy.Dim(), maxDim)
	case cfg.Horizon < 0 || cfg.Horizon > maxIssued:
		return nil, fmt.Errorf("play: horizon is %d, must be from 1 to %d, or 0 for no end", cfg.Horizon,
			maxIssued)
	case cfg.Epoch == Epoch{}:
		return nil, errors.New("play: epoch is missing, must be 128 new random bits")
	case !(cfg.Default >= cfg.Lo && cfg.Default <= cfg.Hi):
		return nil, fmt.Errorf("play: default is %v, must be in the range, from %v to %v",
			cfg.Default, cfg.Lo, cfg.Hi)
	}
	switch m := cfg.Policy.Mechanism().(type) {
	case privacy.VectorGaussian:
	case privacy.GramTree:
		switch leaf := max(1, m.Leaf); {
		case cfg.Horizon == 0 || cfg.Horizon > m.Horizon || cfg.Horizon%leaf != 0:
			return nil, fmt.Errorf("play: horizon is %d, must be a multiple of %d, the leaves' decisions, "+
				"up to %d", cfg.Horizon, leaf, m.Horizon)
		case len(cfg.Rules) > 0:
			return nil, fmt.Errorf("play: rules has %d, must have none where vectors are private: weights "+
				"follow from them", len(cfg.Rules))
		}
	case nil:
		return nil, fmt.Errorf("play: %T has no mechanism", cfg.Policy)
	default:
		return nil, fmt.Errorf("play: %T cannot be played live: the noise of its mechanism, %s, "+
			"outlives a release, and cannot be stored safely", cfg.Policy, m.Kind())
	}
	if err := checkWindow(cfg.Window, 0); err != nil {
		return nil, err
	}
	clip, err := release.NewClip(cfg.Lo, cfg.Hi)
	if err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	c := &Contextual{cfg: cfg, clip: clip, missing: clip.Steps(cfg.Default)}
	if c.rules, err = buildRules(cfg.Rules); err != nil {
		return nil, err
	}
	c.cfg.Ledger = append(slices.Clip(cfg.Ledger), privacy.WithTranscript(&c.line))
	return c, nil
}

// ContextualTermsOf are the terms of a play with this ContextualConfig.
func ContextualTermsOf(cfg ContextualConfig) (ContextualTerms, error) {
	c, err := buildContextual(cfg)
	if err != nil {
		return ContextualTerms{}, err
	}
	return c.terms(), nil
}

func (c *Contextual) terms() ContextualTerms {
	return ContextualTerms{Lo: c.cfg.Lo, Hi: c.cfg.Hi, Default: c.cfg.Default, Dim: c.cfg.Policy.Dim(),
		Horizon: c.cfg.Horizon, Rules: describeRules(c.cfg.Rules)}
}

// curate builds the curators on what was released.
func (c *Contextual) curate(p *contextualPast) error {
	cur, err := c.cfg.Curator(release.FeatureConfig{Dim: c.cfg.Policy.Dim(), Slots: 1,
		Mechanism: c.cfg.Policy.Mechanism(), Ledger: p.ledger})
	if err != nil {
		return fmt.Errorf("play: %w", err)
	}
	var ok bool
	if c.curator, ok = cur.(release.StepFeatureCurator); !ok {
		return fmt.Errorf("play: the curator is a %T, must be one that takes sums of steps", cur)
	}
	c.width = c.curator.Width()
	c.nowhere = make([]int64, c.width+len(c.rules))
	if c.joint() {
		kept, ok := c.curator.(release.KeptCurator)
		if !ok {
			return fmt.Errorf("play: the curator is a %T, must be one that is kept", cur)
		}
		if err := kept.Restore(0, c.s.Kept, p.last); err != nil {
			return fmt.Errorf("play: %w: %w", ErrState, err)
		}
	} else if len(c.s.Kept) > 0 {
		return fmt.Errorf("play: %w: it has a curator's", ErrState)
	}
	for i := range c.rules {
		if err := c.rules[i].curate(Config{Arms: 1, Curator: c.cfg.Sums}, p.rules[i]); err != nil {
			return err
		}
	}
	c.earned = p.earned
	return nil
}

// joint says that vectors are private.
func (c *Contextual) joint() bool {
	_, ok := c.cfg.Policy.Mechanism().(privacy.GramTree)
	return ok
}

// Ledger has what the releases have cost.
func (c *Contextual) Ledger() *privacy.Ledger { return c.curator.Ledger() }

// Stopped says that there are as many decisions as there are to be. Releases go on.
func (c *Contextual) Stopped() bool { return c.cfg.Horizon > 0 && c.s.Queue.Issued >= c.cfg.Horizon }

// Kept is the curator's state, as ContextualState has it: to be read only.
func (c *Contextual) Kept() []byte { return c.s.Kept }

// Rules is what was released of the rules' earnings, in their order.
func (c *Contextual) Rules() []Earned { return slices.Clone(c.earned) }

// Best is which of the actions the policy plays, Dim numbers each: by releases alone. It changes
// nothing.
func (c *Contextual) Best(vectors []float64) int { return c.cfg.Policy.Best(vectors) }

// Decide makes a decision of the vector that is played. Its numbers are multiples of 2^-20 and its
// norm is at most 1. The weights are by rule: the probability that the rule plays it over the
// probability with which it was played here, 0 if the rule would play another. The ticket is good
// until its deadline, a window from now, however clocks jump.
func (c *Contextual) Decide(vector, weights []float64, now int64) (Ticket, error) {
	return c.DecideUntil(vector, weights, now, now+c.cfg.Window)
}

// DecideUntil is Decide with a deadline of the ticket's own, after now: that of an offer, which was
// fixed when it was made.
func (c *Contextual) DecideUntil(vector, weights []float64, now, deadline int64) (Ticket, error) {
	q := &c.s.Queue
	switch {
	case c.failed != nil:
		return Ticket{}, c.failed
	case c.Stopped():
		return Ticket{}, ErrStopped
	case now < -maxTime || now > maxTime:
		return Ticket{}, fmt.Errorf("play: the time is %d, must be within 2^61 of 0: %w", now, ErrTime)
	case deadline <= now || deadline >= 2*maxTime:
		return Ticket{}, fmt.Errorf("play: the deadline is %d, must be after %d, and below 2^62: %w", deadline,
			now, ErrTime)
	case q.Issued >= maxIssued:
		return Ticket{}, fmt.Errorf("play: there are %d decisions, must be at most %d", q.Issued, maxIssued)
	}
	e := Event{q.Issued, slices.Clone(vector), slices.Clone(weights)}
	if err := c.check(e); err != nil {
		return Ticket{}, err
	}
	if n := len(q.Segments); n == 0 || q.Segments[n-1].End > 0 {
		q.Segments = append(q.Segments, Segment{Start: q.Issued, Settles: deadline})
	}
	s := q.last()
	s.Settles = max(s.Settles, deadline)
	q.Issued++
	c.s.Events = append(c.s.Events, e)
	if c.play(e) {
		s.End = q.Issued
	}
	return Ticket{0, e.Number, deadline, c.cfg.Epoch}, nil
}

// play tells the policy of a decision, and ends the segment if it ends with it.
func (c *Contextual) play(e Event) (ended bool) {
	c.cfg.Policy.Play(e.Vector)
	if c.cfg.Policy.Due() < 0 && e.Number+1 != c.cfg.Horizon {
		return false
	}
	c.grams = append(c.grams, c.cfg.Policy.Cut())
	return true
}

// errPrivate is all that is said of a vector that is private.
var errPrivate = errors.New("play: the vector is none of the unit ball on the grid: its numbers must be " +
	"multiples of 2^-20, and its norm at most 1")

// check says what is wrong with a decision's vector and weights.
func (c *Contextual) check(e Event) error {
	err := c.checkVector(e)
	if err != nil && c.joint() {
		return errPrivate
	}
	return err
}

func (c *Contextual) checkVector(e Event) error {
	if dim := c.cfg.Policy.Dim(); len(e.Vector) != dim {
		return fmt.Errorf("play: the vector has %d numbers, must have %d", len(e.Vector), dim)
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
	if len(e.Weights) != len(c.rules) {
		return fmt.Errorf("play: there are %d weights, must be one for each of %d rules", len(e.Weights),
			len(c.rules))
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

// Settle takes the reward of a ticket, once, clipped to the declared range; what is no number
// counts as the lowest. A second one of the same ticket has the same answer and changes nothing.
func (c *Contextual) Settle(t Ticket, reward float64, now int64) (Status, error) {
	if c.failed != nil {
		return Void, c.failed
	}
	if t.Arm != 0 {
		return Void, nil
	}
	s, status := c.s.Queue.held(t, now)
	if s == nil {
		return status, nil
	}
	if s.More == nil {
		s.More = make([]int64, c.width+len(c.rules))
	}
	sums, i := s.More, t.Number-s.Start
	if s.Came.Has(i) {
		sums = c.nowhere
	}
	c.count(sums, t.Number, c.clip.Steps(reward))
	s.Came.add(i)
	return Accepted, nil
}

// count adds a decision's reward, in steps of the range, to a segment's sums.
func (c *Contextual) count(sums []int64, number int, steps int64) {
	e := &c.s.Events[number-c.s.Queue.Head]
	c.curator.Products(sums[:c.width], e.Vector, float64(2*float64(steps)/float64(oneStep))-1)
	for i, w := range e.Weights {
		sums[c.width+i] += weighted(weightSteps(w, c.cfg.Rules[i].Clip), steps)
	}
}

// Segment is the segment that holds a decision: what has to be written again when its reward came.
// Its Sum is 0, and More has the sums of the vectors times their rewards, then those of the rules;
// it is nil if no reward came. Sets and More are the machine's own, to be read only, and good until
// the next call. ok is false if the decision is not in the queue.
func (c *Contextual) Segment(number int) (_ Segment, ok bool) {
	s := c.s.Queue.find(number)
	if s == nil {
		return Segment{}, false
	}
	return *s, true
}

// Queue is a copy of the queue as Live.Queue is.
func (c *Contextual) Queue(from int) Queue { return c.s.Queue.since(from) }

// Due is when the oldest segment can be released; ok is false if it has not ended, or there is
// none. It depends on public vectors and on the clock alone.
func (c *Contextual) Due(int64) (at int64, ok bool) {
	q := &c.s.Queue
	if c.failed != nil || c.pending != nil || len(q.Segments) == 0 || q.Segments[0].End == 0 {
		return 0, false
	}
	return q.Segments[0].Settles, true
}

// ready says why nothing can be committed now.
func (c *Contextual) ready() error {
	if c.failed == nil && c.pending != nil {
		return ErrPending
	}
	return c.failed
}

// Close releases the oldest segment if it is due, and draws the noise; the result is nil if it is
// not. Until the commit decisions and rewards go on, and are of the state that follows.
func (c *Contextual) Close(now int64) (*Commit, error) {
	if err := c.ready(); err != nil {
		return nil, err
	}
	if at, ok := c.Due(now); !ok || now < at {
		return nil, nil
	}
	out, err := c.close()
	if err != nil {
		c.failed = fmt.Errorf("play: line %d: %w", c.s.Lines, err)
		return nil, c.failed
	}
	return out, nil
}

func (c *Contextual) close() (*Commit, error) {
	q := &c.s.Queue
	s := q.Segments[0]
	n := s.End - s.Start
	sums := make([]int64, c.width+len(c.rules))
	copy(sums, s.More)
	for i := range n {
		to := sums
		if s.Came.Has(i) {
			to = c.nowhere
		}
		c.count(to, s.Start+i, c.missing)
	}
	clear(c.nowhere)
	text := contextualLine{N: n, Gram: c.grams[0], Rules: c.weigh(c.s.Events[:n])}
	q.Segments = slices.Delete(q.Segments, 0, 1)
	q.advance(s.End)
	c.s.Events = slices.Clone(c.s.Events[n:])
	c.grams = slices.Delete(c.grams, 0, 1)

	c.line.Reset()
	err := c.curator.AddSteps(0, n, sums[:c.width])
	if err == nil {
		c.released, err = c.curator.Release(0)
	}
	if kept, ok := c.curator.(release.KeptCurator); ok && err == nil && c.joint() {
		c.s.Kept, err = kept.State(0)
	}
	if err != nil {
		return nil, err
	}
	text.Release = bytes.Clone(bytes.TrimSpace(c.line.Bytes()))
	if err := c.releaseRules(n, sums[c.width:], text.Rules); err != nil {
		return nil, err
	}
	return c.write(&Commit{Taken: []Taken{{0, s.Start, s.End}}}, text)
}

// write has a line written, and waits for the commit.
func (c *Contextual) write(out *Commit, text contextualLine) (*Commit, error) {
	gram := text.Gram
	text.Gram = nil
	b, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	out.Line = append(gramline.Put(b, gram), '\n')
	c.s.Lines++
	c.pending = out
	return out, nil
}

// Commit hands a release that is durable to the policy.
func (c *Contextual) Commit(out *Commit) error {
	switch {
	case c.failed != nil:
		return c.failed
	case out == nil || out != c.pending:
		return errors.New("play: what is committed is not what Close returned last")
	}
	if c.pending = nil; !out.note {
		c.cfg.Policy.Learn(c.released)
		c.earned = c.next
	}
	return nil
}

// Note writes a line of the transcript that is no release, what an operator changed, as Live.Note.
func (c *Contextual) Note(change json.RawMessage) (*Commit, error) {
	if err := c.ready(); err != nil {
		return nil, err
	}
	if len(change) == 0 || string(change) == "null" {
		return nil, errors.New("play: the change is missing")
	}
	out, err := c.write(&Commit{note: true}, contextualLine{Change: change})
	if err != nil {
		return nil, fmt.Errorf("play: the change is no JSON: %w", err)
	}
	return out, nil
}

// SetWindow changes how long rewards may take. What has been decided keeps its deadline.
func (c *Contextual) SetWindow(window int64) error {
	if err := checkWindow(window, 0); err != nil {
		return err
	}
	c.cfg.Window = window
	return nil
}
