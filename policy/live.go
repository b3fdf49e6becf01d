package policy

// What policies say of themselves for being played live, where rewards come late and decisions wait
// in the queue of their arm: see play.Exact, play.Flexible and play.Admit.

// End is how many plays of the arm have been released when the release after the first n is: the
// batches of an arm grow by a fixed schedule, whatever is released.
func (p *accumulation) End(_, n int) int {
	if n == 0 {
		return p.first
	}
	return grown(n, p.alpha)
}

// BearsMore says that a batch may bring more rewards than it asked for.
func (p *accumulation) BearsMore() bool { return true }

// Drop takes an arm off for good, and withdraws the batch that is out: what Next returns then, with
// nothing released, is asked for without the arm. Another one must be left (play.Dropper).
func (p *accumulation) Drop(arm int) {
	for _, play := range p.batch.Plays {
		if play.Rounds < Forever {
			p.arms[play.Arm].plays -= play.Rounds
			p.round -= play.Rounds
		}
	}
	p.arms[arm].off = true
}

// End is how many plays of the arm have been released when the release after the first n is.
func (e *episodes) End(_, n int) int {
	if n == 0 {
		return 1
	}
	return grown(n, e.ratio)
}

// Restarts says that the policy asks to forget its slots: after the first episodes, if their noise
// is the printed one.
func (e *episodes) Restarts() bool { return e.first != nil }

// Restarts says that the policy asks to forget its slots: at every new guess.
func (p *Doubling) Restarts() bool { return true }

// End is how many plays of the arm have been released when the release after the first n is: 1, 3,
// 7, ….
func (p *LazyDPTS) End(_, n int) int {
	if n > Forever/4 {
		return Forever
	}
	return 2*n + 1
}

// BearsMore says that a batch may bring more rewards than it asked for: the bounds rest on the
// least number of rewards that any arm has.
func (p *DPSE) BearsMore() bool { return true }

// BearsMore says that a batch may bring more rewards than it asked for, unless the radius is a
// printed one.
func (e *BatchSE) BearsMore() bool { return e.printed == nil }

// Wants is 0: an arm that a batch does not release was dropped, or is the last, and no later batch
// releases it (play.Foretold).
func (e *elimination) Wants(int, int) int { return 0 }

// Wants is what the next batch of the arm asks for at most, if so many more of its rewards come before
// it: what the window forgets meanwhile makes it less (play.Foretold).
func (p *DPWindowKLUCB) Wants(arm, more int) int {
	return max(p.first, int((p.arms[arm].n+float64(more))/slicesOfWindow))
}
