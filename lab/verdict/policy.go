package verdict

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Policy is an audit of a private policy of the catalog.
type Policy struct {
	Settings
	Entry    catalog.Entry
	Params   catalog.Params
	Budget   privacy.Budget
	Delta    *float64 // nil: 0, or 0.01 for a budget of ρ-zCDP
	Arms     int      // of K arms, 2 to 1000; others have two unit vectors
	Horizon  int      // rounds of a game; of identify, at most so many
	Risk     float64  // of identify: the probability of a wrong answer
	Models   []audit.Model
	Sees     audit.Sees
	Fault    audit.Fault
	Real     bool           // the curator of real rewards
	Trust    *release.Trust // nil: continuous noise of a server that is believed
	Searched int            // games of the search with each adversary
	Further  audit.Further
}

// Prepare checks the audit.
func (a Policy) Prepare() (*Searched, error) {
	if !a.Entry.Private {
		return nil, fmt.Errorf("POLICY is %q, must be a private one: it claims nothing", a.Entry.Name)
	}
	_, zero := a.Budget.(privacy.ZCDP)
	delta := 0.0
	switch {
	case a.Delta != nil:
		delta = *a.Delta
	case zero:
		delta = 0.01
	}
	if zero && delta == 0 && a.Claim == nil {
		return nil, errNoClaim("ρ-zCDP")
	}
	p := &Page{Title: "Audit of a policy", Description: "Two worlds that differ in the rewards of " +
		"one round; an adversary chooses them and all the others, sees what comes out, and says " +
		"which of the two it was."}
	p.fact("policy", "%s: %s", a.Entry.Title, a.Entry.Content(a.Params))
	p.fact("guarantee", "%s", a.Entry.Guarantee)
	p.fact("budget", "%v", a.Budget)
	if a.Entry.Bandit == catalog.BanditLinear || a.Entry.Bandit == catalog.BanditContextual {
		return a.vectors(p, delta)
	}
	return a.arms(p, delta)
}

// arms is the audit of a policy of K arms.
func (a Policy) arms(p *Page, delta float64) (*Searched, error) {
	if a.Arms < 2 || a.Arms > 1000 {
		return nil, fmt.Errorf("arms is %d, must be from 2 to 1000", a.Arms)
	}
	if a.Horizon < a.Arms || a.Horizon > 10_000_000 {
		return nil, fmt.Errorf("horizon is %d, must be from the number of arms, %d, to 1e7", a.Horizon, a.Arms)
	}
	var subject audit.Subject
	var err error
	if a.Entry.Bandit == catalog.BanditIdentify {
		subject, err = audit.IdentifySubject(a.Entry, a.Arms, a.Horizon, a.Risk, a.Budget, a.Params)
	} else {
		subject, err = audit.PolicySubject(a.Entry, a.Arms, a.Horizon, a.Budget, a.Params)
	}
	if err != nil {
		return nil, err
	}
	var possible []audit.Fault
	if t := a.Trust; t != nil {
		if a.Real {
			return nil, errors.New("the protocol's noise is simulated, and its curator is not " +
				"that of real rewards")
		}
		if err := t.Validate(); err != nil {
			return nil, fmt.Errorf("trust %s, noise %s: %w", t.Model, t.NoiseOf(), err)
		}
		if subject, err = subject.Under(*t); err != nil {
			return nil, fmt.Errorf("trust %s: %w", t.Model, err)
		}
		p.fact("trust", "%s, noise %s; the attacker sees what the protocol lets out", t.Model, t.NoiseOf())
		possible = []audit.Fault{audit.HalfScale}
	}
	if a.Sees == audit.Plays && a.Further.Values > 0 {
		return nil, errors.New("a reward is guessed from the number that is released, which who " +
			"sees plays does not see")
	}
	p.fact("games", "%s, %s", words.Counted(a.Arms, "arm", "arms"), words.Counted(a.Horizon, "round", "rounds"))
	q, err := p.breaks(audit.PolicyAudit{Subject: subject, Sees: a.Sees, Delta: delta, Gamma: a.Gamma,
		Adversaries: audit.Adversaries(a.Arms, a.Horizon, a.Models...), Games: a.Games,
		Pilot: a.Searched, Workers: a.Workers, Key: a.key("policy", subject.Name), Until: a.Until},
		a.Fault, a.Real, possible)
	if err != nil {
		return nil, err
	}
	what, says := "every number that the curator lets out",
		fmt.Sprintf("the ledger's after the games, at δ = %v", delta)
	if a.Sees == audit.Plays {
		what = "what is played, and when the policy stops"
	}
	if a.Claim != nil {
		says = fmt.Sprintf("ε = %v at δ = %v, given on the command line", *a.Claim, delta)
	}
	var models []string
	for _, m := range a.Models {
		models = append(models, strings.ToLower(m.String()))
	}
	p.fact("neighbours", "the rewards of one round, in [0, 1]")
	p.fact("the claim", "%s", says)
	p.fact("adversary", "knows the policy and all rewards but those of one round, has chosen them "+
		"(%s), and sees %s", join(models, ", "), what)
	p.Cannot = append(p.Cannot, fmt.Sprintf("Horizons above %d, other numbers of arms and other "+
		"parameters were not tried.", a.Horizon))
	return a.searched(p, q.Search(a.Further)), nil
}

// vectors is the audit of a policy whose actions are vectors. It has one broken twin, of less noise.
func (a Policy) vectors(p *Page, delta float64) (*Searched, error) {
	if a.Horizon < 8 || a.Horizon > 10_000_000 {
		return nil, fmt.Errorf("horizon is %d, must be from 8 to 1e7", a.Horizon)
	}
	half := a.Fault == audit.HalfScale
	if a.Fault != audit.NoFault && !half {
		return nil, fmt.Errorf("fault is %v, must be %v for actions that are vectors: there is one "+
			"twin, of less noise", a.Fault, audit.HalfScale)
	}
	d, err := audit.VectorSubject(a.Entry, a.Horizon, a.Budget, a.Params, half)
	if err != nil {
		return nil, err
	}
	d.Delta, d.Gamma, d.Games, d.Pilot, d.Workers = delta, a.Gamma, a.Games, a.Searched, a.Workers
	d.Key, d.Until = a.key("policy", d.Name()), a.Until
	broken := "none"
	if half {
		broken = "half"
	}
	p.fact("games", "two actions, the unit vectors of the plane, %s", words.Counted(a.Horizon, "round", "rounds"))
	p.fact("broken on purpose", "%s", broken)
	p.fact("neighbours", "the reward of one round, −1 or 1")
	p.fact("the claim", "%s", a.claimText(d.Claim(), delta))
	p.fact("adversary", "knows the policy; all rewards but one are 0; sees every number that the "+
		"curator lets out")
	p.Cannot = append(p.Cannot, simulatedOnly, fmt.Sprintf("Horizons above %d, other actions and "+
		"other parameters were not tried.", a.Horizon))
	x, err := d.Search(a.Further)
	if err != nil {
		return nil, err
	}
	return a.searched(p, x), nil
}
