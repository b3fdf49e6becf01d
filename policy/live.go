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
	p.withdraw()
	p.arms[arm].off = true
}

// AddArm adds an arm, the one after the last, and withdraws the batch that is out: what Next returns then,
// with nothing released, may ask for it (play.Grower).
//
// # What is kept
//
// An arm's index is made of its own releases, of the leader's mean and of the round, and of nothing that
// says when the arm came. An arm without a release goes first. Let arms come at rounds t_1 < t_2 < … that
// follow from what was released before and from coins, or were fixed, and let * be the best arm of those
// that are there from t_p to t_{p+1}. The batches that begin then are of the three kinds of DPIMED's proof
// (ZCDPIMED's, with its J), with * for arm 1: in (ii) the leader's index is at most γ log t_{p+1}, and in
// (iii) * has one release at least, since before its first it is the arm that is played. A batch that is
// out when an arm comes is withdrawn, so none of an arm that was the best of those before lasts into the
// time in which it is not. So an arm a that is not the best is played in that time at most
//
//	n_1 + αγ log t_{p+1}/d_ε(μ_a, μ_*) + o(log t_{p+1})
//
// times, and fewer by what it was played before: n in the proof is all of its plays. The regret against the
// best arm there is at each time is at most the sum of that over times and arms, and the bound of the last
// one alone is that of a policy that began with all arms. Privacy is as before: a reward is in one release,
// and when an arm comes must depend on no reward but through releases.
func (p *accumulation) AddArm() error {
	p.withdraw()
	p.arms = append(p.arms, accumulated{})
	return nil
}

// withdraw takes the plays of the batch that is out back.
func (p *accumulation) withdraw() {
	for _, play := range p.batch.Plays {
		if play.Rounds < Forever {
			p.arms[play.Arm].plays -= play.Rounds
			p.round -= play.Rounds
		}
	}
	p.batch.Plays = p.batch.Plays[:0]
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
