package decl

import "github.com/sotto-dp/sotto/catalog"

// Pick picks the policy of an experiment that names none, or of one with arms that names catalog.AutoPolicy:
// see catalog.Auto. The experiment then has that policy with its parameters, which is what is stored: a later
// rule changes nothing of what runs. It goes by the declaration alone, and has used up Rate. Where the
// declaration is wrong nothing is picked, and Check says what is wrong. Parse has done it.
func (l *Experiment) Pick() error {
	if one := l.usual(); l.Policy.Policy == "" && one != "" {
		l.Policy.Policy, l.Picked = one, one+", as no policy is named"
		return nil
	}
	if l.Bandit() != catalog.BanditArms || l.Policy.Policy != "" && l.Policy.Policy != catalog.AutoPolicy {
		return nil
	}
	if l.Policy.Policy = catalog.AutoPolicy; len(l.Arms) < 2 || l.checkSplit() != nil {
		return nil
	}
	each, err := l.EachAssignment()
	if err != nil || each.Validate() != nil {
		return nil
	}
	plan := catalog.Plan{Arms: len(l.Arms), Budget: each, Horizon: l.expected(),
		Gathered: l.Gathering().On() || l.By.Key != ""}
	if lo, hi := l.Range(); l.Rate != 0 {
		plan.Rate = (l.Rate - lo) / (hi - lo)
	}
	pick, err := catalog.Auto(plan)
	if err != nil {
		return nil
	}
	l.Policy, l.Picked, l.Rate = Policy{Policy: pick.Policy, Params: pick.Params}, pick.Why, 0
	return nil
}

// usual is the policy of an experiment that names none, "" where one is to be picked, or must be named.
func (l *Experiment) usual() string {
	switch bandit := l.Bandit(); {
	case bandit == catalog.BanditIdentify:
		return catalog.DefaultRule
	case l.Contextual.Joint():
		return l.jointPolicy()
	case bandit == catalog.BanditContextual:
		return ContextualPolicy
	}
	return ""
}

// expected is about how many decisions there will be, 0 if nobody says.
func (l *Experiment) expected() int {
	n := float64(l.Horizon)
	if n == 0 {
		n = l.Traffic * l.lasts().Hours() / 24
	}
	return int(min(n, maxFirst))
}
