package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/lab/verdict"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

type auditPolicy struct {
	Policy  flags.Policy `arg:"" name:"POLICY" help:"${auditedPolicy}"`
	Bandit  flags.Choice `of:"arms,identify,linear,contextual" default:"arms" help:"${bandit}" placeholder:"KIND"`
	Arms    flags.Count  `default:"2" help:"Arms." placeholder:"K"`
	Horizon flags.Count  `default:"128" help:"Rounds of a game; of identify, at most so many." placeholder:"T"`
	Risk    flags.Number `in:"(0,1)" default:"0.1" help:"Probability of a wrong answer, of identify." placeholder:"δ"`
	budgetFlags
	Delta    flags.Number  `in:"[0,1)" help:"${policyDelta}" placeholder:"δ"`
	Claim    flags.Number  `in:"[0,inf)" help:"Audit this claim instead of the ledger's." placeholder:"ε"`
	Models   flags.Choices `of:"view,table,interactive,continual" default:"view,table,interactive,continual" help:"${models}" placeholder:"MODEL,…"`
	Sees     flags.Choice  `of:"releases,plays" default:"releases" help:"${sees}" placeholder:"NAME"`
	Broken   flags.Choice  `of:"none,half,quarter,eighth,shared,redrawn,twice,unclipped" default:"none" help:"${broken}" placeholder:"FAULT"`
	Real     bool          `help:"Attack the curator of real rewards, whose noise nobody can repeat."`
	Trust    flags.Choice  `of:"continuous,central,local,two-server,shuffle,secagg" default:"continuous" help:"${auditTrust}" placeholder:"MODEL"`
	Noise    flags.Choice  `of:"laplace,polya,skellam,gaussian,count" help:"${auditNoise}" placeholder:"NAME"`
	Until    flags.Number  `in:"(0,inf)" help:"${until}" placeholder:"ε"`
	Searched flags.Count   `default:"2048" help:"Games of the search with each adversary." placeholder:"N"`
	programFlag
	furtherFlags
	confidenceFlag
	auditFlags
}

var auditPolicyTexts = kong.Vars{
	"auditedPolicy": "A private policy of K arms, one that looks for the best of them, or one for " +
		"linear or contextual bandits, with parameters if need be: adap-ucb:alpha=4. See list policies.",
	"bandit": "arms; identify: find the best arm; linear or contextual: of two unit vectors.",
	"policyDelta": "δ at which ε is claimed and audited. Without it 0 for a budget of ε-DP, and " +
		"0.01 for one of ρ-zCDP.",
	"models": "What adversaries may do: view (a list of rewards), table, interactive (choose what " +
		"is played), continual (choose each reward as late as can be).",
	"sees": "What they see: releases (all that the curator lets out) or plays.",
	"auditTrust": "How releases are made: continuous noise of a believed server, or the protocol of " +
		"central, local, two-server, shuffle or secagg trust.",
	"auditNoise": "Noise under --trust: laplace, polya, skellam, gaussian or count; that of the " +
		"model without it.",
	"until": "Stop as soon as ε is known to be above this, after at most --games. Every game counts, those " +
		"of the search too.",
	"audit policy": `Examples:
  sotto audit policy dp-imed --epsilon 1 --horizon 128
  sotto audit policy adac-ucb --rho 0.5 --delta 0.01 --out report
  sotto audit policy dp-tt --bandit identify --epsilon 1 --horizon 1024
  sotto audit policy dp-imed --epsilon 1 --broken shared
  sotto audit policy adap-klucb --epsilon 1 --until 0.9
  sotto audit policy adap-klucb --epsilon 1 --trust secagg --reconstruct 3
  sotto audit policy adac-oful --bandit contextual --rho 0.5 --horizon 16`,
}

func (c *auditPolicy) Run(ctx context.Context, s streams) error {
	bandit := string(c.Bandit)
	if bandit == "arms" {
		bandit = catalog.BanditArms
	}
	known, err := c.known(s, bandit, true)
	if err != nil {
		return err
	}
	p, err := c.prepare(known)
	return play(ctx, s, &c.auditFlags, p, err)
}

// prepare is the audit that the flags say.
func (c *auditPolicy) prepare(known catalog.Catalog) (*verdict.Searched, error) {
	set, err := c.settings(c.Confidence, 100_000)
	if err != nil {
		return nil, err
	}
	set.Claim, set.Until = c.Claim.Pointer(), c.Until.X
	bandit := string(c.Bandit)
	if bandit == "arms" {
		bandit = catalog.BanditArms
	}
	a := verdict.Policy{Settings: set, Delta: c.Delta.Pointer(), Arms: int(c.Arms),
		Horizon: int(c.Horizon), Risk: c.Risk.X, Sees: audit.Sees(c.Sees.Index("releases", "plays")),
		Fault: fault(c.Broken), Real: c.Real, Searched: int(c.Searched), Further: c.further(false)}
	if a.Entry, a.Params, err = c.Policy.Find(known, bandit); err != nil {
		return nil, err
	}
	if a.Budget, err = c.budget(c.Delta); err != nil {
		return nil, err
	}
	for _, m := range audit.Models() {
		if slices.Contains(c.Models.Names, strings.ToLower(m.String())) {
			a.Models = append(a.Models, m)
		}
	}
	if c.Trust != experiment.Continuous {
		a.Trust = &release.Trust{Model: privacy.Trust(c.Trust), Noise: privacy.NoiseName(c.Noise),
			Like: a.Budget, P: 1e-3}
	}
	if err := c.together(); err != nil {
		return nil, err
	}
	return a.Prepare()
}

// together says which flags do not go together.
func (c *auditPolicy) together() error {
	if c.Until.Set && c.further(false).Parts() > 1 {
		return errors.New("--until does not go with --deltas, --gaussian-dp and --reconstruct: they need a " +
			"number of games that is fixed")
	}
	if c.Bandit == "linear" || c.Bandit == "contextual" {
		for _, f := range []struct {
			flag  string
			given bool
		}{{"real", c.Real}, {"trust", c.Trust != experiment.Continuous}, {"noise", c.Noise != ""},
			{"sees plays", c.Sees != "releases"}, {"reconstruct", c.Reconstruct != 0}, {"arms", c.Arms != 2}} {
			if f.given {
				return fmt.Errorf("--%s is not for --bandit %s, whose actions are two unit vectors "+
					"and whose attacker sees releases", f.flag, c.Bandit)
			}
		}
		if c.Broken != "none" && c.Broken != "half" {
			return flags.Bad("--broken", c.Broken, "half for --bandit %s: there is one broken copy, of less "+
				"noise", c.Bandit)
		}
		return nil
	}
	switch {
	case c.Real && c.Trust != experiment.Continuous:
		return errors.New("want one of --real and --trust: the protocol's noise is simulated")
	case c.Noise != "" && c.Trust == experiment.Continuous:
		return errors.New("--noise needs --trust")
	case c.Real && c.Broken != "none":
		return errRealBroken
	case c.Sees == "plays" && c.Reconstruct != 0:
		return errors.New("--reconstruct needs --sees releases: it guesses from the number that is " +
			"released")
	}
	return nil
}
