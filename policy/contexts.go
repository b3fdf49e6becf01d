package policy

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// PerContext plays a policy of its own in each of finitely many contexts: one bandit a context (Lattimore and
// Szepesvári 2020, §18.1), on sums that are released. A person comes with a context, which is public, and is given
// an arm by the policy of that context alone. With K arms in each of C contexts, arm a of context c is arm cK + a
// here, and of the rewards that it is released with.
//
// # Privacy
//
// A person has one context and is given one arm, so that a reward is in one slot, which is released as the policy
// of the context asks: what is released costs what it costs one of the policies, in every currency and under every
// trust model, as slots that share no reward compose in parallel. Which slot that is, and when it is
// released, follows from earlier releases and from the contexts, which are public and not protected.
//
// # Theorem
//
// Let contexts be drawn from any law, or be any sequence that is fixed beforehand, and rewards be independent of one
// another given contexts and arms. Then in each context the policy plays what it would play alone on the people of
// that context, and all that is proved of it for independent rewards holds there. In particular:
//
//   - with BatchSE at p/C in each, with probability at least 1 − p every arm a of every context c is played at most
//     Σ_{b ≤ b_a} l(b) times, as there for Δ_{c,a}, how much worse it is than the best of its context. With p = 1/T
//     and a fixed η the regret against the best arm of each context is
//
//     O(Σ_c Σ_{a: Δ_{c,a}>0} (log(CKT)/Δ_{c,a} + τ(log(CKT))));
//
//   - with identify.DPRace at risk δ/C in each, all answers are right with probability at least 1 − δ, and
//     context c has its own after people of its own as many as are there with δ/C for δ;
//
//   - with identify.DPHalving of n plays in each, each has its answer after n people of its own, and that of some
//     context is wrong with probability at most the sum of the bounds there. Of a budget of T people in all, who are of
//     context c with probability q_c and of whom n ≤ min_c q_c T/2, some answer is wrong or missing with probability at
//     most that sum and Σ_c e^{−q_c T/8}.
//
// Where the context is c with probability q, n people are at least qn/2 of it with probability at least 1 − e^{−qn/8}
// (Chernoff): so m of it are among the first max(2m, 8 log(C/η))/q, in all contexts at once with probability 1 − η.
//
// Proof. Let the k-th person of context c who is given arm a have reward X_{c,a,k}, a table that is fixed in advance,
// with noise for each release beside it. What the policy of c asks for is a function of the rows of c. When its people
// come, and what others are given meanwhile, is a function of contexts and of rows of other contexts, which are
// independent of these rows. So its transcript has the law that it has alone, but for sums that a trust model may misread,
// with probability P/6 in all contexts together. The rest is a union over C contexts: the
// probabilities are p/C and δ/C, or are added up. The horizon cuts the plays of a context, which is one of the cases
// there, and no more than T people are of any context. ∎
//
// The zero value is not usable.
type PerContext struct {
	of   []Policy // by context
	arms int      // K
	come Arrivals
	ends []int // rounds at which a batch ends at the latest
	t    int   // rounds so far

	asked   []*Batch // by context: what is being played; nil once its policy has stopped
	done    []int    // rounds of it that have been played
	closing int      // the context whose release Next is given; −1: none
	begun   bool
	batch   Batch
	step    []int // people by context: of a step,
	came    []int // of a batch,
	before  []int // and of a play before and after it
	after   []int
	err     error
}

// Arrivals says of which contexts the next n people are: it writes how many are of each.
type Arrivals func(n int, to []int)

// longestStep is how many people are drawn at once where no policy will want a release.
const longestStep = 1 << 24

// NewPerContext returns the policy for K ≥ 2 arms in each context, whose policies it is given: they must ask no
// questions and not start afresh, and state one mechanism. People's contexts take turns, until SetArrivals.
func NewPerContext(arms int, of []Policy) (*PerContext, error) {
	if len(of) == 0 {
		return nil, errors.New("policy: contexts are 0, must be at least 1")
	}
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	first := of[0].Mechanism()
	for c := range of {
		m := of[c].Mechanism()
		if x, y := m.Loss(), first.Loss(); m.Kind() != first.Kind() || x.Pure() != y.Pure() || x.Renyi(2) != y.Renyi(2) {
			return nil, fmt.Errorf("policy: context %d has %v, must be %v as the first", c+1, m, first)
		}
	}
	n := len(of)
	p := &PerContext{of: of, arms: arms, asked: make([]*Batch, n), done: make([]int, n), closing: -1,
		step: make([]int, n), came: make([]int, n), come: turns()}
	return p, nil
}

// turns has one person of each context come after the other.
func turns() Arrivals {
	next := 0
	return func(n int, to []int) {
		for c := range to {
			to[c] = n / len(to)
		}
		for range n % len(to) {
			to[next]++
			next = (next + 1) % len(to)
		}
	}
}

// SetArrivals has people come as it says, and batches end at these rounds at the latest, increasing: a caller that
// looks at a run, or cuts it, nowhere else sees every round that it has, and no other. Call it before the first Next.
func (p *PerContext) SetArrivals(come Arrivals, ends []int) { p.come, p.ends = come, ends }

// Contexts is how many contexts there are.
func (p *PerContext) Contexts() int { return len(p.of) }

// Mechanism implements Policy.
func (p *PerContext) Mechanism() privacy.Mechanism { return p.of[0].Mechanism() }

// Err implements Outsider: it is set if a policy asked for what only one policy alone can have.
func (p *PerContext) Err() error { return p.err }

// End implements Outsider.
func (p *PerContext) End() {
	for _, q := range p.of {
		End(q)
	}
}

// Next implements Policy. It is nil when all policies have stopped.
func (p *PerContext) Next(released privacy.Released) *Batch {
	switch {
	case !p.begun:
		p.begun = true
		for c := range p.of {
			p.ask(c, privacy.Released{})
		}
	case p.closing >= 0:
		c := p.closing
		p.closing = -1
		p.ask(c, released)
	}
	if p.err != nil || !p.wanted() {
		return nil
	}
	p.gather()
	return &p.batch
}

// ask gets the next batch of a context.
func (p *PerContext) ask(c int, released privacy.Released) {
	b := p.of[c].Next(released)
	if err := Err(p.of[c]); err != nil && p.err == nil {
		p.err = err
	}
	p.asked[c], p.done[c] = b, 0
	if b != nil && (b.Ask || b.Fresh || b.Rounds() <= 0) && p.err == nil {
		p.err = fmt.Errorf("policy: that of context %d asks a question, starts afresh or plays nothing, must do neither", c+1)
	}
}

// wanted says whether any policy goes on.
func (p *PerContext) wanted() bool {
	for _, b := range p.asked {
		if b != nil {
			return true
		}
	}
	return false
}

// left is how many people of a context its batch still wants.
func (p *PerContext) left(c int) int {
	if b := p.asked[c]; b != nil && b.Rounds() < Forever {
		return b.Rounds() - p.done[c]
	}
	return math.MaxInt
}

// gather makes the next batch: people come until one context has all that its policy asked for, which is then
// released, or until the batch must end. In a step come no more than the fewest that a context wants: nobody comes
// for whom its policy has said nothing.
func (p *PerContext) gather() {
	clear(p.came)
	for len(p.ends) > 0 && p.ends[0] <= p.t {
		p.ends = p.ends[1:]
	}
	end := p.t + longestStep
	if len(p.ends) > 0 {
		end = p.ends[0]
	}
	for p.closing < 0 && p.t < end {
		n := end - p.t
		for c := range p.of {
			n = min(n, p.left(c)-p.came[c])
		}
		p.come(n, p.step)
		p.t += n
		for c, k := range p.step {
			p.came[c] += k
			if b := p.asked[c]; b != nil && b.Rounds() < Forever && p.came[c] == p.left(c) {
				p.closing = c
			}
		}
	}
	p.batch.Plays = p.batch.Plays[:0]
	for c := range p.of {
		p.place(c)
	}
}

// place gives the people who came of a context to its arms, as its policy's batch has them take turns.
func (p *PerContext) place(c int) {
	n, b := p.came[c], p.asked[c]
	if b == nil { // it has stopped: they are given its answer, and are in no release
		arm := 0
		if a, ok := p.of[c].(interface{ Answer() int }); ok {
			arm = a.Answer()
		}
		if n > 0 {
			p.batch.Plays = append(p.batch.Plays, Play{Arm: c*p.arms + arm, Rounds: n})
		}
		return
	}
	if k := len(b.Plays); k > len(p.before) {
		p.before, p.after = make([]int, k), make([]int, k)
	}
	b.Counts(p.done[c], p.before)
	b.Counts(p.done[c]+n, p.after)
	p.done[c] += n
	for i, play := range b.Plays {
		release := play.Release && c == p.closing
		if k := p.after[i] - p.before[i]; k > 0 || release {
			p.batch.Plays = append(p.batch.Plays, Play{Arm: c*p.arms + play.Arm, Rounds: k, Release: release})
		}
	}
}
