package play

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// TakeOff takes an arm off for good: no decision is for it any more, and the policy is given none of
// its rewards. What is in its queue stays there until it is released with the rest, see Finish. The batch that
// is out is withdrawn; what was decided for it stays in the queues of its arms. The policy must be a
// Dropper, and is told by Commit, which is as for a release.
func (l *Live) TakeOff(arm int) (*Commit, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	dropper, ok := l.cfg.Policy.(Dropper)
	switch {
	case l.rows != nil:
		return nil, fmt.Errorf("play: no arm can be taken off: the shares of %T never change", l.policy)
	case arm < 0 || arm >= len(l.s.Arms):
		return nil, fmt.Errorf("play: arm is %d, must be from 0 to %d", arm, len(l.s.Arms)-1)
	case l.s.Arms[arm].Off:
		return nil, fmt.Errorf("play: arm %d: %w", arm, ErrOff)
	case !ok:
		return nil, fmt.Errorf("play: no arm can be taken off: %T cannot be told of it (Dropper)", l.policy)
	}
	var left []policy.Play
	for a := range l.s.Arms {
		if a != arm && !l.s.Arms[a].Off {
			left = append(left, policy.Play{Arm: a, Rounds: 1})
		}
	}
	if len(left) == 0 {
		return nil, fmt.Errorf("play: arm %d is the last one: stop the play instead", arm)
	}
	l.withdraw()
	c := &Commit{drop: func() { dropper.Drop(arm) }}
	q := &l.s.Arms[arm]
	q.Off, q.Asked, q.ahead, l.ahead[arm] = true, 0, 0, nil
	l.plan = slices.DeleteFunc(slices.Clone(l.plan), func(p policy.Play) bool { return p.Arm == arm })
	if len(l.plan) == 0 {
		l.plan = left
	}
	l.before, l.offers = make([]int, len(l.plan)), make([]int, len(l.plan))
	l.driver.Released = privacy.Released{} // the policy has had what the batch before released
	if err := l.wait(c, line{Off: &arm}); err != nil {
		l.failed = fmt.Errorf("play: arm %d: %w", arm, err)
		return nil, l.failed
	}
	return c, nil
}

// AddArm adds an arm, whose number is that after the last, with a line that says what else is to be known of
// it: one JSON value, which must depend on no reward and may be nil. The batch that is out is withdrawn, as
// TakeOff has it, and from the Commit on, which is as for a release, the policy plays the arm; decisions may
// be for it from now on. The policy must be a Grower. Nothing is paid for it: the sums of an arm are slots of
// its own, and when it comes depends on no reward but through what was released.
//
// In joint batches the batch that is out stays, and so do the rows that decisions are in: the arm has this share from
// the row on that is to be opened next, and is 0 of Shares before. A share of 0 is an even one, and other policies
// have no other. The policy must be a JointGrower.
func (l *Live) AddArm(share float64, change json.RawMessage) (*Commit, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	arm := len(l.s.Arms)
	switch {
	case l.ending:
		return nil, ErrStopped
	case l.cfg.Policy == nil:
		return nil, errors.New("play: no arm can be added: decisions with contexts bring their actions")
	case l.cfg.Gathering.On():
		return nil, fmt.Errorf("play: no arm can be added under trust %s: who gathers sums knows the arms there were",
			l.cfg.Gathering.Trust)
	case (arm+1)*l.cfg.Cells.each() > maxArms:
		return nil, fmt.Errorf("play: there are %d arms, must be at most %d", arm, maxArms/l.cfg.Cells.each())
	case share != 0 && l.rows == nil:
		return nil, fmt.Errorf("play: share is %v, must be 0: %T has no shares", share, l.policy)
	}
	text := line{Add: &arm, Change: change}
	err := AddsArms(l.cfg.Policy)
	switch {
	case err != nil:
	case l.rows != nil:
		if text.From, text.Share = l.rows.opens(), share; share == 0 {
			text.Share = 1 / float64(arm+1)
		}
		err = l.rows.join(text.From, text.Share)
	default:
		err = l.cfg.Policy.(Grower).AddArm()
	}
	if err != nil {
		return nil, fmt.Errorf("play: no arm can be added: %w", err)
	}
	l.grow()
	l.s.Arms = append(l.s.Arms, Queue{})
	if err = l.s.Arms[arm].enter(l.cfg.Epoch); err == nil {
		err = l.side.curate(nil) // they hold nothing between releases
	}
	for i := range l.further {
		if err == nil {
			err = l.further[i].curate(l.cfg)
		}
	}
	c := &Commit{drop: func() {}} // the policy knows of it
	switch {
	case err != nil:
	case l.rows != nil:
		l.rows.shares = l.rows.at(l.rows.made, arm+1)
		c.note = true
		err = l.write(c, text)
	default:
		l.withdraw()
		l.driver.Released = privacy.Released{} // the policy has had what the batch before released
		err = l.wait(c, text)
	}
	if err != nil {
		l.failed = fmt.Errorf("play: arm %d: %w", arm, err)
		return nil, l.failed
	}
	return c, nil
}

// withdraw withdraws the batch that is out.
func (l *Live) withdraw() {
	for i, p := range l.s.Batch {
		l.s.Arms[p.Arm].Asked = l.before[i]
	}
}

// grow has room for one arm more in what is no state.
func (l *Live) grow() {
	l.cfg.Arms++
	l.releases, l.ends = append(l.releases, false), append(l.ends, 0)
	l.ahead = append(l.ahead, nil)
	for i := range l.further {
		if f := &l.further[i]; f.sums != nil {
			f.sums = append(f.sums, make([]float64, l.cfg.Cells.each())...)
		}
	}
}

// Note writes a line of the transcript that is no batch's, what an operator changed: one JSON value,
// which Restore passes over. Its Commit is as for a release, but the batch that is out stays. The
// value must depend on no reward.
func (l *Live) Note(change json.RawMessage) (*Commit, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	if len(change) == 0 || string(change) == "null" {
		return nil, errors.New("play: the change is missing")
	}
	c := &Commit{note: true}
	if err := l.write(c, line{Change: change}); err != nil {
		return nil, fmt.Errorf("play: the change is no JSON: %w", err)
	}
	return c, nil
}

// SetWindow changes how long rewards may take, and how long the clock leaves a segment open, as in
// Config. What has been decided keeps its deadline. With contexts cut has no meaning.
func (l *Live) SetWindow(window, cut int64) error {
	if err := checkWindow(window, cut); err != nil {
		return err
	}
	if l.cfg.Window = window; l.cfg.Contexts == nil && l.rows == nil {
		l.cfg.Cut = orSixteenth(cut, window)
	}
	return nil
}

func checkWindow(window, cut int64) error {
	switch {
	case window < 1 || window > maxTime:
		return fmt.Errorf("play: window is %d, must be from 1 to 2^61", window)
	case cut < 0 || cut > maxTime:
		return fmt.Errorf("play: cut is %d, must be from 1 to 2^61, or 0 for a sixteenth of the window", cut)
	}
	return nil
}

func orSixteenth(cut, window int64) int64 {
	if cut == 0 {
		return max(1, window/16)
	}
	return cut
}
