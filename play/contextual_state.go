package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sotto-dp/sotto/internal/gramline"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// An Event is a decision that was not released: its vector, and its weights by rule.
type Event struct {
	Number          int
	Vector, Weights []float64
}

// ContextualTerms are what must be the same whenever a state is restored.
type ContextualTerms struct {
	Lo, Hi, Default float64
	Dim, Horizon    int
	Rules           string // what they are, a line each
}

// A ContextualState is all of a Contextual that is not in the lines of its transcript. It holds
// sums of rewards: whoever reads it is the curator.
type ContextualState struct {
	ContextualTerms
	Lines  int     // of the transcript
	Queue  Queue   // see Contextual.Segment
	Events []Event // the decisions of the queue, in their order
	// Kept is the curator's under joint privacy, of the last line that is a release: it changes with
	// that line and never without it. nil before, and elsewhere.
	Kept []byte
}

// State is a copy of the state as it is now. The events' vectors and weights are the machine's own,
// to be read only.
func (c *Contextual) State() ContextualState {
	s := c.s
	s.Queue, s.Events, s.Kept = s.Queue.clone(), slices.Clone(s.Events), bytes.Clone(s.Kept)
	return s
}

// A contextualLine is a line of the transcript: a segment, its number of decisions, what the policy
// tells of its vectors, and its release, as the ledger writes it; or what else was changed.
type contextualLine struct {
	N       int             `json:"n,omitempty"`
	Gram    []int64         `json:"gram,omitempty"`
	Release json.RawMessage `json:"release,omitempty"`
	Rules   []ruleLine      `json:"rules,omitempty"`
	Change  json.RawMessage `json:"change,omitempty"`
}

// RestoreContextual returns the Contextual that has this state, after all lines of its transcript:
// cfg has a new policy and a new epoch. The ledger and the policy get every release again, and the
// policy the vectors of all decisions since: its segments must end where the state's do. Tickets of
// decisions that the state does not have are void from now on.
func RestoreContextual(cfg ContextualConfig, lines iter.Seq2[[]byte, error], s ContextualState) (*Contextual,
	error) {
	c, err := buildContextual(cfg)
	if err != nil {
		return nil, err
	}
	if s.ContextualTerms != c.terms() {
		return nil, fmt.Errorf("play: %w: it is of %+v, must be of %+v", ErrState, s.ContextualTerms, c.terms())
	}
	c.s = s
	c.s.Queue, c.s.Events, c.s.Kept = s.Queue.clone(), slices.Clone(s.Events), bytes.Clone(s.Kept)
	if err := c.begin(lines); err != nil {
		return nil, err
	}
	return c, nil
}

// begin brings ledger, policy and curators to where the lines end, and the policy to the last
// decision.
func (c *Contextual) begin(lines iter.Seq2[[]byte, error]) error {
	p := c.past()
	if err := follow(lines, p.add, &p.lines); err != nil {
		return fmt.Errorf("play: line %d of the transcript: %w", p.lines+1, err)
	}
	if p.lines != c.s.Lines {
		return fmt.Errorf("play: %w: it is of %d lines and there are %d", ErrState, c.s.Lines, p.lines)
	}
	if p.decisions != c.s.Queue.Head {
		return fmt.Errorf("play: %w: %d decisions are gone from it, and %d were released", ErrState,
			c.s.Queue.Head, p.decisions)
	}
	if err := c.curate(p); err != nil {
		return err
	}
	if err := c.resume(); err != nil {
		return fmt.Errorf("play: %w: %w", ErrState, err)
	}
	if err := c.s.Queue.enter(c.cfg.Epoch); err != nil {
		return fmt.Errorf("play: %w", err)
	}
	return nil
}

// resume plays the decisions of the state again, and says what no state of a Contextual has. It
// tells no sum.
func (c *Contextual) resume() error {
	q := &c.s.Queue
	if err := q.validate(c.width); err != nil {
		return err
	}
	if q.Asked != 0 || q.Off {
		return errors.New("it has a batch, or is off")
	}
	if len(c.s.Events) != q.Issued-q.Head {
		return fmt.Errorf("there are %d events of %d decisions", len(c.s.Events), q.Issued-q.Head)
	}
	for i := range q.Segments {
		s := &q.Segments[i]
		end := s.End
		if end == 0 {
			end = q.Issued
		}
		if end > q.Issued {
			return fmt.Errorf("segment %d ends at %d, and there are %d decisions", i, end, q.Issued)
		}
		if len(s.Gone) > 0 || s.Sum != 0 || s.More != nil && len(s.More) != c.width+len(c.rules) {
			return fmt.Errorf("segment %d has %d sums", i, len(s.More))
		}
		for n := s.Start; n < end; n++ {
			e := c.s.Events[n-q.Head]
			if e.Number != n {
				return fmt.Errorf("event %d is of decision %d", n, e.Number)
			}
			if err := c.check(e); err != nil {
				return fmt.Errorf("event %d: %w", n, err)
			}
			if ends := n+1 == s.End; c.play(e) != ends {
				return fmt.Errorf("a segment ends at %d, and the policy says otherwise", end)
			}
		}
	}
	return nil
}

// A ContextualReplayed is what follows from the lines of a transcript, and from nothing else.
type ContextualReplayed struct {
	Ledger    *privacy.Ledger // what the releases have cost
	Lines     int
	Decisions int // that were released
	Releases  int
	Noise     privacy.Mechanism // of each release, as it was charged; nil before the first
	Rules     []Earned
}

// ReplayContextual plays a transcript again, without rewards and without vectors: cfg is as for
// NewContextual, with a policy at its start, which then has learned all that was released; its
// Epoch is not looked at. Each segment must be one that the policy ends there, and each release one
// that the curators for real rewards (release.RealFeatures, release.Real) make for it: by its
// mechanism, its tail, its counts, and the next slot. Of a release its sums alone
// are believed, of vectors and weights sums that some have. An error matches ErrState and is about
// the line that was given last, or it is the lines' own.
func ReplayContextual(cfg ContextualConfig, lines iter.Seq2[[]byte, error]) (*ContextualReplayed, error) {
	cfg.Epoch = Epoch{1}
	c, err := buildContextual(cfg)
	if err != nil {
		return nil, err
	}
	p := c.past()
	if p.charge, err = release.FeatureCharge(release.FeatureConfig{Dim: cfg.Policy.Dim(), Slots: 1,
		Mechanism: cfg.Policy.Mechanism()}); err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	for i, r := range c.rules {
		if p.rules[i].outline, err = release.NewOutline(release.Config{Arms: 1, Mechanism: r.Mechanism},
			true); err != nil {
			return nil, fmt.Errorf("play: rule %q: %w", r.Name, err)
		}
	}
	if err := follow(lines, p.add, &p.lines); err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	return &ContextualReplayed{Ledger: p.ledger, Lines: p.lines, Decisions: p.decisions,
		Releases: p.releases, Noise: p.noise, Rules: p.earned}, nil
}

// A contextualPast is what the lines of a transcript have said so far.
type contextualPast struct {
	policy    ContextualPolicy
	horizon   int
	ledger    *privacy.Ledger
	lines     int
	decisions int
	releases  int
	width     int                    // numbers of a release
	running   bool                   // each is of all decisions before it, in one slot
	last      privacy.ReleasedVector // of the last line that is one
	noise     privacy.Mechanism
	charge    privacy.Mechanism // of each release; nil: of any curator
	rules     []pastMetric
	earned    []Earned
}

// past is before the first line.
func (c *Contextual) past() *contextualPast {
	dim := c.cfg.Policy.Dim()
	p := &contextualPast{policy: c.cfg.Policy, horizon: c.cfg.Horizon, width: dim, running: c.joint(),
		ledger: privacy.NewLedger(c.cfg.Ledger...)}
	if p.running {
		p.width = (dim + 1) * (dim + 2) / 2
	}
	for _, r := range c.cfg.Rules {
		p.rules = append(p.rules, newPastMetric())
		p.earned = append(p.earned, Earned{Name: r.Name, Clip: r.Clip, Lo: c.cfg.Lo, Hi: c.cfg.Hi})
	}
	return p
}

// add gives the policy what a line says.
func (p *contextualPast) add(text []byte) error {
	in, err := readContextual(text)
	if err != nil {
		return err
	}
	if in.Change != nil {
		if in.N != 0 || len(in.Gram)+len(in.Release)+len(in.Rules) > 0 {
			return fmt.Errorf("%w: it is a change and a release", ErrState)
		}
		return nil
	}
	if in.N < 1 || in.N > maxIssued-p.decisions || p.horizon > 0 && in.N > p.horizon-p.decisions {
		return fmt.Errorf("%w: it releases %d decisions after %d", ErrState, in.N, p.decisions)
	}
	if err := p.policy.Skip(in.N, in.Gram); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	p.decisions += in.N
	if p.policy.Due() < 0 && p.decisions != p.horizon {
		return fmt.Errorf("%w: the policy does not end a segment after %d decisions", ErrState, p.decisions)
	}
	if again := p.policy.Cut(); !slices.Equal(again, in.Gram) {
		return fmt.Errorf("%w: it tells more of vectors than the policy does", ErrState)
	}
	released, err := p.ledger.RestoreVector(in.Release)
	if err != nil {
		return err
	}
	slot, err := p.check(in, released)
	if err == nil {
		err = p.addRules(in, slot)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	p.last = released
	p.policy.Learn(released)
	return nil
}

// readContextual is readLine of a line of contexts, whose many sums it reads by itself.
func readContextual(text []byte) (in contextualLine, err error) {
	rest, list, cut := gramline.Cut(text)
	gram, ok := gramline.Parse(list)
	if !cut || !ok {
		err = readLine(text, &in)
		return in, err
	}
	if err = readLine(rest, &in); err == nil && in.Gram != nil {
		err = fmt.Errorf("%w: it is not written as a line is", ErrState)
	}
	in.Gram = gram
	return in, err
}

// readLine reads a line, which another reader could read in no other way: no field is there twice,
// or in other letters.
func readLine(text []byte, in any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if again, err := json.Marshal(in); err != nil || !bytes.Equal(again, bytes.TrimSpace(text)) {
		return fmt.Errorf("%w: it is not written as a line is", ErrState)
	}
	return nil
}

// check holds a release against what a curator makes of the segment, as far as that is known.
func (p *contextualPast) check(in contextualLine, released privacy.ReleasedVector) (slot int, err error) {
	var text struct {
		Slot      int             `json:"slot"`
		Mechanism json.RawMessage `json:"mechanism"`
		N         int             `json:"n"`
		Vector    []float64       `json:"vector"`
	}
	if err := readLine(in.Release, &text); err != nil {
		return 0, err
	}
	m, err := privacy.UnmarshalMechanism(text.Mechanism)
	if err != nil {
		return 0, err
	}
	again, err := json.Marshal(m)
	n, slot := in.N, p.releases
	if p.running {
		n, slot = p.decisions, 0
	}
	switch {
	case err != nil:
		return 0, err
	case released.N() != n:
		return 0, fmt.Errorf("it releases %d rewards, must be %d", released.N(), n)
	case released.Len() != p.width:
		return 0, fmt.Errorf("it releases %d numbers, must be %d", released.Len(), p.width)
	case text.Slot != slot:
		return 0, fmt.Errorf("slot %d is released, must be %d", text.Slot, slot)
	case !bytes.Equal(again, text.Mechanism):
		return 0, errors.New("the release is not written as a ledger does")
	case p.charge != nil && m != p.charge:
		return 0, fmt.Errorf("the mechanism of the release is %v, and the policy's is %v", m, p.charge)
	}
	p.releases, p.noise = p.releases+1, m
	return text.Slot, nil
}

// addRules books the rules of a line.
func (p *contextualPast) addRules(in contextualLine, slot int) error {
	if len(in.Rules) != len(p.rules) {
		return fmt.Errorf("it releases %d rules, must be %d", len(in.Rules), len(p.rules))
	}
	for i, l := range in.Rules {
		if err := p.addRule(i, l, in.N, slot); err != nil {
			return fmt.Errorf("rule %d: %w", i, err)
		}
	}
	return nil
}

func (p *contextualPast) addRule(i int, l ruleLine, n, slot int) error {
	r := p.rules[i]
	var text struct {
		Slots []int `json:"slots"`
	}
	if err := json.Unmarshal(l.Release, &text); err != nil {
		return err
	}
	released, err := r.ledger.Restore(l.Release)
	switch {
	case err != nil:
		return err
	case !slices.Equal(text.Slots, []int{slot}) || released.N(0) != n:
		return errors.New("its release is not of the slot of the rewards")
	// each weight is from 0 to 1, so their squares are less, and no less than where all are equal
	case l.Weights < 0 || l.Weights > int64(n)*oneStep || l.Squares < 0 ||
		float64(l.Squares) > float64(l.Weights)*float64(oneStep) ||
		float64(l.Squares)*float64(n) < float64(float64(l.Weights)*float64(l.Weights))*(1-1e-9):
		return errors.New("its weights are those of no decisions")
	}
	if _, err := checkRelease(r.outline, r.slots, []int{0}, released, l.Release); err != nil {
		return err
	}
	if _, err := p.ledger.Restore(l.Release); err != nil {
		return err
	}
	return p.earned[i].add(released, l)
}
