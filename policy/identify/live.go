package identify

// End is how many plays of the arm have been released when the release after the first n is: where
// its phases end, whatever is released (play.Exact).
func (p *TopTwo) End(_, n int) int {
	if n == 0 {
		return min(p.parts.First, longest)
	}
	return grown(n, p.parts.Growth)
}

// BearsMore says whether a batch may bring more rewards than it asked for (play.Flexible).
func (p *Elimination) BearsMore() bool {
	r, ok := p.rule.(interface{ BearsMore() bool })
	return ok && r.BearsMore()
}

// Wants is 0: an arm that a batch does not release was dropped, and no later batch has it (play.Foretold).
func (p *Elimination) Wants(int, int) int { return 0 }
