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
	// Out is the batch that the policy wants next; nil if it has stopped.
	Out []policy.Play
	Off []bool // by arm, whether it was taken off
	// Released is how many decisions of each arm were released, and Sums are the noisy sums of
	// their rewards, mapped to [0,1].
	Released []int
	Sums     []float64
	Releases []int             // by arm, how many releases that were
	Noise    privacy.Mechanism // of each release, as it was charged; nil before the first
}

// Replay plays a transcript again, without rewards: cfg is as for New, with a policy at its start;
// its Epoch is not looked at. Each batch must be the one that the policy plays after the releases
// before it, and each release one that the curator for real rewards (release.Real, or
// release.RealGathered) makes for it: by its mechanism, its tail, its counts, and slots that no
// release has read. Of a release its sums alone are believed. An error matches ErrState and is about
// the line that was given last, or it is the lines' own.
func Replay(cfg Config, lines iter.Seq2[[]byte, error]) (*Replayed, error) {
	cfg.Epoch = Epoch{1}
	l, err := build(cfg)
	if err != nil {
		return nil, err
	}
	l.s.Arms = make([]Queue, cfg.Arms)
	p := l.past()
	if p.outline, err = cfg.outline(release.Config{Arms: cfg.Arms, Lo: l.cfg.Lo, Hi: l.cfg.Hi,
		Mechanism: cfg.Policy.Mechanism()}); err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	for i, m := range l.metrics {
		if p.metrics[i].outline, err = release.NewOutline(release.Config{Arms: cfg.Arms, Lo: m.Lo, Hi: m.Hi,
			Mechanism: m.Mechanism}, true); err != nil {
			return nil, fmt.Errorf("play: metric %q: %w", m.Name, err)
		}
	}
	if err := follow(lines, p.add, &p.lines); err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	out := &Replayed{Ledger: p.ledger, Batches: l.driver.Batches, Lines: p.lines, Off: p.off,
		Released: p.released, Sums: p.sums,
		Releases: p.releases, Noise: p.noise}
	if b := p.batch(); b != nil {
		out.Out = slices.Clone(b.Plays)
	}
	return out, nil
}

// A past is what the lines of a transcript have said so far.
type past struct {
	driver   *Driver
	take     Take
	ledger   *privacy.Ledger
	lines    int
	heads    []int // by arm, the decisions that are gone
	asked    []int // by arm, what was asked for since its last release
	off      []bool
	released []int
	sums     []float64
	releases []int
	noise    privacy.Mechanism
	outline  *release.Outline // nil: releases may be of any curator
	slots    map[int]bool     // that were released
	metrics  []pastMetric
}

// past is before the first line.
func (l *Live) past() *past {
	n := l.cfg.Arms
	l.driver.replay(privacy.Released{})
	p := &past{driver: &l.driver, take: l.cfg.Take, ledger: privacy.NewLedger(l.cfg.Ledger...),
		heads: make([]int, n), asked: make([]int, n), off: make([]bool, n), released: make([]int, n),
		sums: make([]float64, n), releases: make([]int, n),
		slots: map[int]bool{}}
	for range l.metrics {
		p.metrics = append(p.metrics, newPastMetric())
	}
	return p
}

// batch is the one that is out, nil if the policy has stopped.
func (p *past) batch() *policy.Batch { return p.driver.batch }

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
	var in line
	if err := readLine(text, &in); err != nil {
		return err
	}
	if in.Change != nil {
		if p.batch() == nil || in.Off != nil || in.Gone != 0 ||
			len(in.Plays)+len(in.Release)+len(in.Metrics) > 0 {
			return fmt.Errorf("%w: nothing can have been changed here", ErrState)
		}
		return nil
	}
	if in.Off != nil {
		return p.takeOff(*in.Off, in)
	}
	if b := p.batch(); b == nil || b.Ask || b.Fresh || !slices.Equal(b.Plays, in.plays()) {
		return fmt.Errorf("%w: the policy does not ask for this batch", ErrState)
	}
	var arms, gone []int
	for i, play := range p.batch().Plays {
		if play.Arm < 0 || play.Arm >= len(p.heads) || p.off[play.Arm] {
			return fmt.Errorf("%w: arm %d is not there", ErrState, play.Arm)
		}
		p.asked[play.Arm] = plus(p.asked[play.Arm], play.Rounds)
		if g := in.Plays[i].Gone; g < 0 || g > 0 && (!play.Release || p.take == Exactly) {
			return fmt.Errorf("%w: %d decisions of arm %d cannot be gone", ErrState, g, play.Arm)
		}
		if play.Release {
			arms, gone = append(arms, play.Arm), append(gone, in.Plays[i].Gone)
		}
	}
	var released privacy.Released
	if len(in.Release) > 0 {
		var err error
		if released, err = p.ledger.Restore(in.Release); err != nil {
			return err
		}
	}
	if released.Len() != len(arms) {
		return fmt.Errorf("%w: it releases %d sums, and the batch asks for %d", ErrState, released.Len(),
			len(arms))
	}
	if err := p.check(arms, released, in.Release); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := p.addMetrics(arms, in); err != nil {
		return err
	}
	for i, a := range arms {
		p.heads[a], p.asked[a] = plus(p.heads[a], plus(released.N(i), gone[i])), 0
		p.released[a] = plus(p.released[a], released.N(i))
		p.sums[a] += released.Sum(i)
		p.releases[a]++
	}
	p.driver.replay(released)
	return nil
}

// takeOff is a line that takes an arm off.
func (p *past) takeOff(a int, in line) error {
	dropper, ok := p.driver.Policy.(Dropper)
	if !ok || p.batch() == nil || a < 0 || a >= len(p.heads) || p.off[a] || in.Gone < 0 ||
		len(in.Plays)+len(in.Release)+len(in.Metrics) > 0 {
		return fmt.Errorf("%w: arm %d cannot have been taken off", ErrState, a)
	}
	p.off[a], p.heads[a] = true, plus(p.heads[a], in.Gone)
	dropper.Drop(a)
	p.driver.replay(privacy.Released{})
	return nil
}

// check holds a release of rewards against what a curator makes of the batch, where that is known.
func (p *past) check(arms []int, released privacy.Released, text []byte) error {
	if p.outline == nil {
		return nil
	}
	for i, a := range arms {
		if n, asked := released.N(i), p.asked[a]; n < asked || p.take == Exactly && n > asked {
			return fmt.Errorf("it releases %d rewards of arm %d, must be %v %d", n, a, p.take, asked)
		}
	}
	m, err := checkRelease(p.outline, p.slots, arms, released, text)
	if m != nil {
		p.noise = m
	}
	return err
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
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	m, err := privacy.UnmarshalMechanism(in.Mechanism)
	if err == nil {
		in.Mechanism, err = json.Marshal(m)
	}
	var again []byte
	if err == nil {
		again, err = json.Marshal(in)
	}
	switch {
	case err != nil:
		return nil, err
	case !bytes.Equal(again, text):
		return nil, errors.New("the release is not written as a ledger does")
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
