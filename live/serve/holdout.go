package serve

// Holdouts: an A/B test one of whose arms keeps its units out of other experiments. Its arms are by a keyed hash of
// the unit, not by a coin: so whether a unit is held is known before it is assigned and when its assignment was lost
// or forgotten, and is asked of nothing that is kept of a unit.

// To whoever has not the key, the hash is a coin for each unit that is tossed once; so a unit is assigned once at most,
// or its decisions would share a toss and the test's intervals would not hold. Given the hashes, the holdout and the
// experiments are mechanisms on the rewards of their own decisions, and a later audience is a function of releases: prices
// add as for any two experiments. A unit that is held pays the holdout alone; the account does not know of it, and charges
// it for both. A holdout that is a draft holds too, so that no unit is in an experiment first and held
// then.

// A hold is what an experiment's holdout says of a unit.
type hold uint8

const (
	letIn    hold = iota // it may be in the experiment: also where there is no holdout, or it has stopped
	heldOut              // it is held
	heldOrIn             // nobody can know, since it has no name
)

// armBy is the arm that a unit has of these shares, and the share: by a hash in a holdout, and else by a coin.
func (x *served) armBy(shares []float64, unit string) (arm int, share float64) {
	if x.decl.Holds == "" {
		return byShares(shares, x.coins.Float64())
	}
	return byShares(shares, point(x.holdouts, unit))
}

// hold is what the holdout of x, if it has one, says of a unit. It holds from its creation on, until it is durable
// that it has stopped: units that were held may then be in x.
func (e *Engine) hold(x *served, unit string) hold {
	if x.decl.Holdout == "" {
		return letIn
	}
	of, err := e.lookup(x.decl.Holdout)
	if err != nil { // it was there when x was started
		return letIn
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	s := of.durable.state
	switch {
	case of.decl.Holds == "" || s == Stopped || s == Archived:
		return letIn
	case unit == "":
		return heldOrIn
	}
	if arm, _ := of.armBy(of.decl.SharesAfter(0), unit); of.decl.Arms[arm].Name == of.decl.Holds {
		return heldOut
	}
	return letIn
}

// hasHoldout says why x cannot be started, where its holdout holds nobody.
func (e *Engine) hasHoldout(x *served) error {
	if x.decl.Holdout == "" {
		return nil
	}
	of, err := e.lookup(x.decl.Holdout)
	if err != nil {
		return fieldError("holdout", "is %q, must be an experiment that is there: %w", x.decl.Holdout, ErrState)
	}
	of.mu.Lock() // only the writer, which this is, has two
	s := of.rec.State
	of.mu.Unlock()
	switch {
	case of.decl.Holds == "":
		return fieldError("holdout", "is %q, must be an experiment that declares holds: %w", x.decl.Holdout, ErrState)
	case of.decl.Unit.Of != x.decl.Unit.Of: // the names of whom it holds are others
		return fieldError("holdout", "is %q, whose unit is %q, must be an experiment of the unit %q: %w", x.decl.Holdout,
			of.decl.Unit.Of, x.decl.Unit.Of, ErrState)
	case !s.plays() && s != Draft:
		return fieldError("holdout", "is %q, which is %s, must not have stopped: it holds nobody: %w",
			x.decl.Holdout, s, ErrState)
	}
	return nil
}
