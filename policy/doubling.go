package policy

import (
	"fmt"

	"github.com/sotto-dp/sotto/privacy"
)

// Doubling makes a policy that needs the horizon do without: it guesses T, and in round T/2 doubles
// the guess and starts afresh ([Sajed 2019, Theorem 5.1.3], "guess-and-double"). Each guess learns
// from its own rewards only, those of a batch that a new guess cuts short are forgotten unreleased,
// so that privacy is that of one guess: the guesses read disjoint rewards. Restarting costs a
// factor log T in the regret, so the theorem's rate is lost.
type Doubling struct {
	build  func(horizon int) (Policy, error)
	guess  int
	round  int // rounds asked for so far
	inner  Policy
	batch  Batch // what is out: inner's plays, or those of cut
	cut    []Play
	counts []int
}

// NewDoubling returns the horizon-free version of the policies that build makes, for a number of
// arms. The first guess is the least power of two that leaves every arm two rounds before T/2. What
// build returns an error for once, it must return an error for always.
func NewDoubling(arms int, build func(horizon int) (Policy, error)) (*Doubling, error) {
	if err := checkArms(arms); err != nil {
		return nil, err
	}
	guess := 4
	for guess/2 < 2*arms {
		guess *= 2
	}
	inner, err := build(guess)
	if err != nil {
		return nil, fmt.Errorf("guess-and-double: %w", err)
	}
	return &Doubling{build: build, guess: guess, inner: inner}, nil
}

// Mechanism implements Policy: that of the current guess.
func (p *Doubling) Mechanism() privacy.Mechanism { return p.inner.Mechanism() }

// Next implements Policy. It is nil, a stop, should build fail for a later guess.
func (p *Doubling) Next(released privacy.Released) *Batch {
	fresh := false
	if p.round >= p.guess/2 {
		if p.guess > Forever/2 {
			return nil
		}
		p.guess *= 2
		inner, err := p.build(p.guess)
		if err != nil {
			return nil
		}
		p.inner, released, fresh = inner, privacy.Released{}, true
	}
	b := p.inner.Next(released)
	if b == nil {
		return nil
	}
	left := p.guess/2 - p.round
	if n := b.Rounds(); n <= left {
		p.round += n
		// Not into b, which is inner's: it would stay fresh, and a tree or a running sum would
		// start anew with every batch.
		p.batch = *b
		p.batch.Fresh = b.Fresh || fresh
		return &p.batch
	}
	p.round += left
	if cap(p.counts) < len(b.Plays) {
		p.counts = make([]int, len(b.Plays))
	}
	k := p.counts[:len(b.Plays)]
	b.Counts(left, k)
	// Cut short, nothing of this batch is ever released.
	p.cut = p.cut[:0]
	for i, n := range k {
		if n > 0 {
			p.cut = append(p.cut, Play{Arm: b.Plays[i].Arm, Rounds: n})
		}
	}
	p.batch = Batch{Plays: p.cut, Fresh: b.Fresh || fresh}
	return &p.batch
}
