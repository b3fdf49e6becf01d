package catalog

// All returns every policy of every kind of bandit: those of arms first, then linear, then contextual ones.
func All() []Entry {
	return append(append(Policies(), LinearPolicies()...), ContextualPolicies()...)
}

// For returns the policies for one kind of bandit.
func For(bandit string) []Entry {
	switch bandit {
	case BanditLinear:
		return LinearPolicies()
	case BanditContextual:
		return ContextualPolicies()
	}
	return Policies()
}

// LinearPolicies returns the policies for a fixed set of actions in ℝ^d, private ones first.
func LinearPolicies() []Entry { return nil }

// ContextualPolicies returns the policies for sets of actions in ℝ^d that change in each round, private ones first.
func ContextualPolicies() []Entry { return nil }
