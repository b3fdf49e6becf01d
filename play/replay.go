package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Replayed is what follows from the lines of a transcript, and from nothing else.
type Replayed struct {
	Ledger  *privacy.Ledger // what the releases have cost
	Batches int             // that the policy has asked for: rounds of adaptivity
	Lines   int
	// Out is the batch that the policy wants next; nil if it has stopped, and with contexts.
	Out     []policy.Play
	Stopped bool // the policy wants nothing more, or with contexts all that are to be were released
	// by arm, with contexts of the one queue
	Off []bool // whether it was taken off
	// Released is how many decisions were released, and Sums are the noisy sums of the rewards of
	// arms, mapped to [0,1].
	Released []int
	Sums     []float64
	Releases []int             // how many releases that were
	Noise    privacy.Mechanism // of each release, as it was charged; nil before the first
	// Metrics are the noisy sums of each metric, by arm, mapped to [0,1].
	Metrics [][]float64
	// Cells are what was released of each arm's cells, if there are any, of which Sums and Metrics are the
	// totals: so many noises are in them.
	Cells [][]CellSums
	Rules []Earned
	// Estimate is that of a Modelled policy of contexts, else nil.
	Estimate []float64
}

// Replay plays a transcript again, without rewards and without vectors: cfg is as for New, with a
// policy at its start, which then has learned all that was released; its Epoch is not looked at. Each
// batch must be the one that the policy plays after the releases before it, or each segment one that
// it ends there, and each release one that the curators for real rewards (release.Real,
// release.RealGathered, or release.RealFeatures) make for it: by its mechanism, its tail, its counts,
// and slots that no release has read. Of a release its sums alone are believed, of vectors and weights
// sums that some have. An error matches ErrState and is about the line that was given last, or it is
// the lines' own.
func Replay(cfg Config, lines iter.Seq2[[]byte, error]) (*Replayed, error) {
	cfg.Epoch = Epoch{1}
	l, err := build(cfg)
	if err != nil {
		return nil, err
	}
	p := l.past()
	if err := l.side.outline(p); err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	for i := range l.further {
		if err := l.further[i].outlines(l.cfg); err != nil {
			return nil, err
		}
	}
	if err := follow(lines, p.add, &p.Lines); err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	p.Batches, p.Stopped = l.driver.Batches, p.stopped()
	p.measure()
	p.Estimate = l.Estimate()
	if b := p.batch(); b != nil && !p.rested {
		p.Out = slices.Clone(b.Plays)
	}
	return &p.Replayed, nil
}

// A past is what the lines of a transcript have said so far.
type past struct {
	Replayed
	of    *Live
	heads []int // by arm, the decisions that are gone
	asked []int // by arm, what was asked for since its last release
	// what a curator of people's rewards releases; nil: releases may be of any curator
	rewards *release.Outline
	charge  privacy.Mechanism      // of vectors
	slots   map[int]bool           // that were released
	rested  bool                   // the rest was
	last    privacy.ReleasedVector // of the last line that is one
	// of vectors in the mechanism that there is now: after how many decisions and releases it began
	from, slot int
}

// past is before the first line.
func (l *Live) past() *past {
	n := l.cfg.Arms
	if l.cfg.Policy != nil {
		l.driver.replay(privacy.Released{})
	}
	l.ledger = privacy.NewLedger(l.cfg.Ledger...)
	l.ahead, l.ends = make([][]privacy.Released, n), make([]int, n)
	p := &past{Replayed: Replayed{Ledger: l.ledger, Off: make([]bool, n), Released: make([]int, n),
		Sums: make([]float64, n), Releases: make([]int, n)}, of: l, heads: make([]int, n),
		asked: make([]int, n), slots: map[int]bool{}}
	for i, f := range l.further {
		if f.most > 0 {
			p.Rules = append(p.Rules, Earned{Name: f.Name, Clip: f.most, Lo: l.cfg.Lo, Hi: l.cfg.Hi})
			continue
		}
		l.further[i].sums = make([]float64, n*l.cfg.Cells.each())
	}
	for range n * min(1, l.cfg.Cells.Count) {
		p.Cells = append(p.Cells, make([]CellSums, l.cfg.Cells.Count))
	}
	return p
}

// measure adds up what was released of metrics.
func (p *past) measure() {
	for i := range p.of.further {
		f, each := &p.of.further[i], p.of.cfg.Cells.each()
		if f.sums == nil {
			continue
		}
		all := make([]float64, len(p.heads))
		for slot, x := range f.sums {
			all[slot/each] += x
			if p.Cells != nil {
				s := &p.Cells[slot/each][slot%each]
				s.Metrics = append(s.Metrics, x)
			}
		}
		p.Metrics = append(p.Metrics, all)
	}
}

// batch is the one that is out, nil if the policy has stopped, and with contexts.
func (p *past) batch() *policy.Batch { return p.of.driver.batch }

// stopped says that nothing more is to be released.
func (p *past) stopped() bool {
	if p.of.cfg.Policy != nil {
		return p.batch() == nil
	}
	return p.of.cfg.Horizon > 0 && p.heads[0] == p.of.cfg.Horizon
}

// follow hands lines over, and counts those that were taken.
func follow(lines iter.Seq2[[]byte, error], add func(text []byte) error, taken *int) error {
	for text, err := range lines {
		if err == nil {
			err = add(text)
		}
		if err != nil {
			return err
		}
		*taken++
	}
	return nil
}

// add gives the policy what a line says, and has its next batch.
func (p *past) add(text []byte) error {
	in, err := readLine(text)
	if err != nil {
		return err
	}
	switch {
	case p.rested:
		return fmt.Errorf("%w: it follows the rest, after which there is nothing", ErrState)
	case in.Add == nil && (in.From != 0 || in.Share != 0):
		return fmt.Errorf("%w: it says where an arm begins, and adds none", ErrState)
	case in.Change == nil, in.Add != nil:
		return p.of.side.add(p, in)
	}
	if p.batch() == nil && p.of.cfg.Policy != nil || in.N != 0 || in.Off != nil || in.Gone != 0 ||
		len(in.Gram)+len(in.Plays)+len(in.Ahead)+len(in.Rest)+len(in.Release)+len(in.Metrics)+len(in.Rules) > 0 {
		return fmt.Errorf("%w: nothing can have been changed here", ErrState)
	}
	return nil
}

// checkRelease holds a release against an outline, unless that is nil, and adds its slots to those
// that were released; the mechanism is the release's.
func checkRelease(outline *release.Outline, slots map[int]bool, arms []int, released privacy.Released,
	text []byte) (privacy.Mechanism, error) {
	if outline == nil || len(arms) == 0 {
		return nil, nil
	}
	for i, a := range arms {
		if err := outline.Play(a, released.N(i)); err != nil {
			return nil, err
		}
	}
	want, err := outline.Release(arms)
	if err != nil {
		return nil, err
	}
	var in struct {
		Slots     []int           `json:"slots"`
		Mechanism json.RawMessage `json:"mechanism"`
		N         []int           `json:"n"`
		Sum       []float64       `json:"sum"`
		Tail      privacy.Tail    `json:"tail"`
	}
	m, err := readRelease(text, &in, &in.Mechanism)
	switch {
	case err != nil:
		return nil, err
	case m != want.Mechanism:
		return nil, fmt.Errorf("the mechanism of the release is %v, and the policy's is %v", m, want.Mechanism)
	case released.Tail() != want.Tail:
		return nil, errors.New("the tail of the release is not that of the policy's mechanism")
	}
	for _, s := range in.Slots {
		if slots[s] {
			return nil, fmt.Errorf("slot %d was released before", s)
		}
		slots[s] = true
	}
	return m, nil
}

// readRelease reads a release, and its mechanism in it, which must be written as a ledger does.
func readRelease(text []byte, in any, mechanism *json.RawMessage) (privacy.Mechanism, error) {
	if err := json.Unmarshal(text, in); err != nil {
		return nil, err
	}
	m, err := privacy.UnmarshalMechanism(*mechanism)
	if err == nil {
		*mechanism, err = json.Marshal(m)
	}
	var again []byte
	if err == nil {
		again, err = json.Marshal(in)
	}
	if err == nil && !bytes.Equal(again, text) {
		err = errors.New("the release is not written as a ledger does")
	}
	return m, err
}
