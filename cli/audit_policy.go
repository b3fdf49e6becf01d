package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/experiment"
	"github.com/sotto-dp/sotto/internal/front/report"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

type auditPolicy struct {
	Policy   string           `arg:"" name:"POLICY" help:"A private policy of K arms, one that looks for the best of them, or one for linear or contextual bandits, with parameters if need be: adap-ucb:alpha=4. See list policies."`
	Bandit   string           `default:"arms" help:"arms; identify: find the best arm; linear or contextual: of two unit vectors." placeholder:"KIND"`
	Arms     experiment.Count `default:"2" help:"Arms." placeholder:"K"`
	Horizon  experiment.Count `default:"128" help:"Rounds of a game; of identify, at most so many." placeholder:"T"`
	Risk     string           `default:"0.1" help:"Probability of a wrong answer, of identify." placeholder:"δ"`
	Epsilon  string           `help:"Budget of ε-DP; with --delta, of (ε,δ)-DP." placeholder:"ε" group:"The budget:"`
	Rho      string           `help:"Budget of ρ-zCDP." placeholder:"ρ" group:"The budget:"`
	Delta    string           `help:"δ at which ε is claimed and audited. Without it 0 for a budget of ε-DP, and 0.01 for one of ρ-zCDP." placeholder:"δ"`
	Claim    string           `help:"Audit this claim instead of the ledger's." placeholder:"ε"`
	Models   string           `default:"view,table,interactive,continual" help:"What adversaries may do: view (a list of rewards), table, interactive (choose what is played), continual (choose each reward as late as can be)." placeholder:"MODEL,…"`
	Sees     string           `default:"releases" help:"What they see: releases (all that the curator lets out) or plays." placeholder:"NAME"`
	Broken   string           `default:"none" help:"Break the curator on purpose: half, quarter, eighth, shared, redrawn, twice or unclipped. The claim remains, and must be refuted." placeholder:"FAULT"`
	Real     bool             `help:"Attack the curator of real rewards, whose noise nobody can repeat."`
	Trust    string           `default:"continuous" help:"How releases are made: continuous noise of a believed server, or the protocol of central, local, two-server, shuffle or secagg trust." placeholder:"MODEL"`
	Noise    string           `help:"Noise under --trust: laplace, polya, skellam, gaussian or count; that of the model without it." placeholder:"NAME"`
	Searched experiment.Count `default:"2048" help:"Games of the search with each adversary." placeholder:"N"`
	auditMore
	auditGuess
	auditFlags
}

// Help is shown by --help.
func (c *auditPolicy) Help() string {
	return `Examples:
  sotto audit policy adap-klucb --epsilon 1 --horizon 128
  sotto audit policy adac-ucb --rho 0.5 --delta 0.01 --out report
  sotto audit policy dp-tt --bandit identify --epsilon 1 --horizon 1024
  sotto audit policy adap-klucb --epsilon 1 --broken shared
  sotto audit policy adap-klucb --epsilon 1 --trust secagg --reconstruct 3
  sotto audit policy adac-oful --bandit contextual --rho 0.5 --horizon 16`
}

var (
	banditNames = []string{"arms", "identify", "linear", "contextual"}
	bandits     = []string{catalog.BanditArms, catalog.BanditIdentify, catalog.BanditLinear,
		catalog.BanditContextual}
)

// entry reads the policy with its parameters.
func (c *auditPolicy) entry(known catalog.Catalog) (catalog.Entry, catalog.Params, error) {
	bandit, err := oneOf("bandit", c.Bandit, banditNames, bandits)
	if err != nil {
		return catalog.Entry{}, nil, err
	}
	name, rest, _ := strings.Cut(c.Policy, ":")
	e, err := known.Find(bandit, name)
	if err != nil {
		return e, nil, fmt.Errorf("POLICY: %w", err)
	}
	if !e.Private {
		return e, nil, fmt.Errorf("POLICY is %q, must be a private one: it claims nothing", name)
	}
	params := catalog.Params{}
	for rest != "" {
		var one string
		one, rest, _ = strings.Cut(rest, ":")
		key, value, ok := strings.Cut(one, "=")
		if !ok {
			return e, nil, fmt.Errorf("POLICY is %q: parameters are written NAME:PARAMETER=VALUE", c.Policy)
		}
		if _, twice := params[key]; twice {
			return e, nil, fmt.Errorf("POLICY is %q: %s is given twice", c.Policy, key)
		}
		param, _ := e.Param(key) // Complete tells of an unknown one
		param.Name = key
		if params[key], err = param.Parse(value); err != nil {
			return e, nil, fmt.Errorf("POLICY: %w", err)
		}
	}
	return e, params, nil
}

func (c *auditPolicy) prepare(known catalog.Catalog) (*outcome, searched, error) {
	o := &outcome{title: "Audit of a policy",
		description: "Two worlds that differ in the rewards of one round; an adversary chooses " +
			"them and all the others, sees what comes out, and says which of the two it was."}
	var p searched
	gamma, games, seed, err := c.read(100_000)
	if err != nil {
		return nil, p, err
	}
	o.gamma, o.seed = gamma, seed
	e, params, err := c.entry(known)
	if err != nil {
		return nil, p, err
	}
	b, delta, err := auditBudget(c.Epsilon, c.Rho, c.Delta)
	if err != nil {
		return nil, p, err
	}
	if delta != delta {
		delta = 0
		if _, ok := b.(privacy.ZCDP); ok {
			delta = 0.01
		}
	}
	if _, ok := b.(privacy.ZCDP); ok && delta == 0 && c.Claim == "" {
		return nil, p, errors.New("--delta is 0, must be above 0: ρ-zCDP claims no ε at δ = 0")
	}
	o.tested = []report.Fact{{Name: "policy", Value: e.Title + ": " + e.Content(params)},
		{Name: "guarantee", Value: e.Guarantee}, {Name: "budget", Value: b.String()}}
	if c.Bandit == catalog.BanditLinear || c.Bandit == catalog.BanditContextual {
		return c.prepareVectors(o, e, params, b, delta, gamma, games, seed)
	}
	arms, horizon := int(c.Arms), int(c.Horizon)
	if arms < 2 || arms > 1000 {
		return nil, p, fmt.Errorf("--arms is %d, must be from 2 to 1000", arms)
	}
	if horizon < arms || horizon > 10_000_000 {
		return nil, p, fmt.Errorf("--horizon is %d, must be from --arms, %d, to 1e7", horizon, arms)
	}
	var subject audit.Subject
	if e.NewIdentify != nil && c.Bandit == "identify" {
		risk, rerr := positive("--risk", c.Risk)
		if rerr != nil {
			return nil, p, rerr
		}
		subject, err = audit.IdentifySubject(e, arms, horizon, risk, b, params)
	} else {
		subject, err = audit.PolicySubject(e, arms, horizon, b, params)
	}
	if err != nil {
		return nil, p, err
	}
	possible := []audit.Fault(nil)
	if c.Trust != experiment.Continuous {
		if c.Real {
			return nil, p, errors.New("want one of --real and --trust: the protocol's noise is simulated")
		}
		t, terr := c.trust(b)
		if terr != nil {
			return nil, p, terr
		}
		if subject, err = subject.Under(t); err != nil {
			return nil, p, fmt.Errorf("--trust %s: %w", c.Trust, err)
		}
		o.tested = append(o.tested, report.Fact{Name: "trust",
			Value: fmt.Sprintf("%s, noise %s; the attacker sees what the protocol lets out",
				t.Model, t.NoiseOf())})
		possible = []audit.Fault{audit.HalfScale}
	} else if c.Noise != "" {
		return nil, p, errors.New("--noise needs --trust")
	}
	var models []audit.Model
	var names []string
	for _, m := range audit.Models() {
		names = append(names, strings.ToLower(m.String()))
	}
	for _, name := range strings.Split(c.Models, ",") {
		m, err := oneOf("models", strings.TrimSpace(name), names, audit.Models())
		if err != nil {
			return nil, p, err
		}
		if slices.Contains(models, m) {
			return nil, p, fmt.Errorf("--models is %q: %s is given twice", c.Models, name)
		}
		models = append(models, m)
	}
	sees, err := oneOf("sees", c.Sees, []string{"releases", "plays"}, []audit.Sees{audit.Releases, audit.Plays})
	if err != nil {
		return nil, p, err
	}
	a := audit.PolicyAudit{Subject: subject,
		Adversaries: audit.Adversaries(arms, horizon, models...), Sees: sees, Delta: delta,
		Games: games, Pilot: int(c.Searched),
		Workers: c.Workers, Key: keyOf(seed, "policy", subject.Name)}
	o.tested = append(o.tested, report.Fact{Name: "games",
		Value: fmt.Sprintf("%s, %s", several(arms, "arm"), several(horizon, "round"))})
	if err := c.breaks(o, &a, c.Broken, c.Real, possible); err != nil {
		return nil, p, err
	}
	what := "every number that the curator lets out"
	if sees == audit.Plays {
		what = "what is played, and when the policy stops"
	}
	says := fmt.Sprintf("the ledger's after the games, at δ = %v", delta)
	if c.Claim != "" {
		says = fmt.Sprintf("ε = %s at δ = %v, given on the command line", c.Claim, delta)
	}
	o.tested = append(o.tested, report.Fact{Name: "neighbours",
		Value: "the rewards of one round, in [0, 1]"}, report.Fact{Name: "the claim", Value: says},
		report.Fact{Name: "adversary", Value: "knows the policy and all rewards but those of one " +
			"round, has chosen them (" + strings.Join(strings.Split(c.Models, ","), ", ") +
			"), and sees " + what})
	o.cannot = append(o.cannot, fmt.Sprintf("Horizons above %d, other numbers of arms and other "+
		"parameters were not tried.", horizon))
	if sees == audit.Plays && c.Reconstruct != 0 {
		return nil, p, errors.New("--reconstruct needs --sees releases: it guesses from the " +
			"number that is released")
	}
	p = searchedPolicy(a, c.Workers)
	if a.Gamma, err = p.split(o, gamma, c.auditGuess, c.auditMore, false); err != nil {
		return nil, p, err
	}
	p.run = a.Run
	return o, p, nil
}

// trust reads --trust and --noise.
func (c *auditPolicy) trust(b privacy.Budget) (release.Trust, error) {
	models := experiment.TrustModels()
	model, err := oneOf("trust", c.Trust, models, models)
	if err != nil {
		return release.Trust{}, err
	}
	noises := []string{"laplace", "polya", "skellam", "gaussian", "count"}
	if c.Noise != "" {
		if _, err := oneOf("noise", c.Noise, noises, noises); err != nil {
			return release.Trust{}, err
		}
	}
	t := release.Trust{Model: privacy.Trust(model), Noise: privacy.NoiseName(c.Noise), Like: b, P: 1e-3}
	if err := t.Validate(); err != nil {
		return t, fmt.Errorf("--trust %s --noise %s: %w", c.Trust, t.NoiseOf(), err)
	}
	return t, nil
}

// prepareVectors is the audit of a policy whose actions are vectors.
func (c *auditPolicy) prepareVectors(o *outcome, e catalog.Entry, params catalog.Params,
	b privacy.Budget, delta, gamma float64, games int, seed uint64) (*outcome, searched, error) {
	var x searched
	for _, f := range []struct {
		flag  string
		given bool
	}{{"real", c.Real}, {"trust", c.Trust != experiment.Continuous}, {"noise", c.Noise != ""},
		{"sees plays", c.Sees != "releases"}, {"reconstruct", c.Reconstruct != 0}, {"arms", c.Arms != 2}} {
		if f.given {
			return nil, x, fmt.Errorf("--%s is not for --bandit %s, whose actions are two unit "+
				"vectors and whose attacker sees releases", f.flag, c.Bandit)
		}
	}
	if c.Broken != "none" && c.Broken != "half" {
		return nil, x, fmt.Errorf("--broken is %q, must be half for --bandit %s: there is one "+
			"twin, of less noise", c.Broken, c.Bandit)
	}
	if c.Horizon < 8 || c.Horizon > 10_000_000 {
		return nil, x, fmt.Errorf("--horizon is %d, must be from 8 to 1e7", c.Horizon)
	}
	d, err := audit.VectorSubject(e, int(c.Horizon), b, params, c.Broken == "half")
	if err != nil {
		return nil, x, err
	}
	d.Delta, d.Games, d.Pilot, d.Workers, d.Key = delta, games, int(c.Searched), c.Workers,
		keyOf(seed, "policy", d.Name())
	o.tested = append(o.tested, report.Fact{Name: "games",
		Value: fmt.Sprintf("two actions, the unit vectors of the plane, %s", several(int(c.Horizon), "round"))},
		report.Fact{Name: "broken on purpose", Value: c.Broken},
		report.Fact{Name: "neighbours", Value: "the reward of one round, −1 or 1"},
		report.Fact{Name: "the claim", Value: claimText(c.Claim, d.Claim(), delta)},
		report.Fact{Name: "adversary", Value: "knows the policy; all rewards but one are 0; sees " +
			"every number that the curator lets out"})
	o.cannot = append(o.cannot, simulatedOnly,
		fmt.Sprintf("Horizons above %d, other actions and other parameters were not tried.", c.Horizon))
	x = searchedDirect(d)
	if d.Gamma, err = x.split(o, gamma, c.auditGuess, c.auditMore, false); err != nil {
		return nil, x, err
	}
	x.run = d.Run
	return o, x, nil
}

func (c *auditPolicy) Run(ctx context.Context, s streams) error {
	o, p, err := c.prepare(s.known)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return c.auditFlags.play(ctx, s, o, p, c.Claim)
}
