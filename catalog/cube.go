package catalog

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/privacy"
)

// A Goal is what is asked of a policy.
type Goal string

// The goals.
const (
	GoalRegret     Goal = "regret"
	GoalConfidence Goal = "best arm at fixed confidence"
	GoalBudget     Goal = "best arm at fixed budget"
	GoalTop        Goal = "top-k"
	GoalThreshold  Goal = "threshold"
	GoalStopping   Goal = "stopping"
)

// Goals are all goals, in the order of the cube.
func Goals() []Goal {
	return []Goal{GoalRegret, GoalConfidence, GoalBudget, GoalTop, GoalThreshold, GoalStopping}
}

// Seeks is the entry's goal: if it says none, the best arm at fixed confidence of BanditIdentify, and regret of
// others.
func (e Entry) Seeks() Goal {
	switch {
	case e.Goal != "":
		return e.Goal
	case e.Bandit == BanditIdentify:
		return GoalConfidence
	}
	return GoalRegret
}

// Currencies are those of the cube, as Kind names them.
func Currencies() []string { return []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"} }

// Trusts are the trust models of the cube.
func Trusts() []string {
	return []string{string(privacy.TrustCentral), string(privacy.TrustLocal), string(privacy.TrustShuffle),
		string(privacy.TrustSecAgg), string(privacy.TrustTwoServer)}
}

// Actions are the kinds of action of the cube.
func Actions() []string { return []string{onArms, BanditLinear, BanditContextual, onGeneral} }

const (
	onArms    = "arms"
	onGeneral = "generalised linear"
)

// The verdicts on a cell.
const (
	CubeProved     = "proved"      // privacy, and a theorem on utility that is finite
	CubeImpossible = "impossible"  // by a theorem whose value a command computes
	CubeOpen       = "open"        // Why says what is missing
	CubeNone       = "no question" // Why says why
)

// A Cell is a question: a goal, a currency, who is trusted, and what is played; with what is known of it.
type Cell struct {
	Goal     Goal   `json:"goal"`
	Currency string `json:"currency"`
	Trust    string `json:"trust"`
	Actions  string `json:"actions"`
	Verdict  string `json:"verdict"`
	// Converted says that it is won by noise for another currency, at a budget that implies this one.
	Converted bool `json:"converted,omitempty"`
	// Contexts says that it is won by a bandit of its own for each of finitely many public contexts.
	Contexts bool `json:"contexts,omitempty"`
	// Of a cell that is proved: by which policy, with which parameters and noise, the theorem and the file
	// that has the policy, and of which rows of `sotto audit self` broken copies are refuted.
	Policy  string            `json:"policy,omitempty"`
	Params  map[string]string `json:"params,omitempty"`
	Noise   string            `json:"noise,omitempty"`
	Theorem string            `json:"theorem,omitempty"`
	File    string            `json:"file,omitempty"`
	Audits  []string          `json:"audits,omitempty"`
	Why     string            `json:"why,omitempty"` // of others
}

// Name is the cell in words.
func (c Cell) Name() string {
	return fmt.Sprintf("%s, %s, %s, %s", c.Goal, c.Currency, c.Trust, c.Actions)
}

// Cube is every cell, in the order of Goals, Actions, Trusts and Currencies. It follows from the entries of
// policies and mechanisms: a cell is proved by an entry for its goal and actions that takes its currency,
// whose own record has a finite theorem on utility, and whose proof holds for a noise that its trust model
// has. Of several it is one whose noise was made for the currency, and then, of
// arms, the one that takes the most currencies.
func Cube() []Cell {
	var out []Cell
	candidates := cubeEntries()
	for _, goal := range Goals() {
		for _, actions := range Actions() {
			for _, trust := range Trusts() {
				for _, currency := range Currencies() {
					c := Cell{Goal: goal, Currency: currency, Trust: trust, Actions: actions}
					c.judge(candidates)
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// A cubeEntry is an entry with parameters.
type cubeEntry struct {
	Entry
	params Params
	on     string
	states map[string]stated // in each currency, of an entry with a theorem
}

// stated is a mechanism that a policy states at a budget.
type stated struct {
	Mechanism
	gdp bool // normal noise, whose exact trade-off is kept
}

// cubeEntries are the private entries at their defaults, or corrected where there is that choice, and with each choice
// of the parameter that is their goal. Of k arms the cube has two, as one is the best arm.
func cubeEntries() []cubeEntry {
	var out []cubeEntry
	for _, e := range append(All(), StoppingRules()...) {
		if !e.Private || e.Name == AutoPolicy {
			continue
		}
		all := []Params{{}}
		if _, ok := e.Param("corrected"); ok { // without it the theorem needs few dimensions
			all = []Params{{"corrected": 1}}
		}
		if p, ok := e.Param("goal"); ok {
			for i := 1; i < len(p.Choices); i++ {
				all = append(all, Params{"goal": float64(i)})
			}
		}
		for _, given := range all {
			if given["goal"] == raceTop && e.Bandit == BanditIdentify {
				given["k"] = 2
			}
			params, err := e.Complete(given)
			if err != nil {
				continue
			}
			x := cubeEntry{Entry: e.With(params), params: given}
			x.on = x.Bandit
			switch {
			case x.Vectors == MeansLinear:
				x.on = BanditLinear
			case x.Vectors == MeansLogistic:
				x.on = onGeneral
			case x.Contexts:
				x.on = BanditContextual
			case x.Bandit != BanditLinear && x.Bandit != BanditContextual:
				x.on = onArms
			}
			if x.finite() {
				x.state()
			}
			out = append(out, x)
		}
	}
	// Of arms the most general first: what is proved of any noise with a tail, in any currency. Of vectors what was made
	// for them, in the order of the catalog, and then what plays arms.
	place := func(x cubeEntry) int {
		switch {
		case x.on == onArms:
			return -len(x.Budgets)
		case x.Bandit == BanditLinear || x.Bandit == BanditContextual:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(x, y cubeEntry) int { return place(x) - place(y) })
	return out
}

// finite says whether the entry has a finite theorem on utility. Of answers with a risk it is one only if they are proved
// to be wrong with no more than that.
func (e Entry) finite() bool {
	return e.Finite && (e.Bandit != BanditIdentify || e.Seeks() == GoalBudget || e.Correct != "")
}

// judge finds what is known of the cell.
func (c *Cell) judge(candidates []cubeEntry) {
	if c.Goal == GoalStopping && c.Actions != onArms {
		c.Verdict, c.Why = CubeNone, "a stopping rule samples one law until its mean is known: there is no action to choose"
		return
	}
	c.Verdict, c.Why = CubeOpen, c.missing(candidates)
	for _, e := range candidates {
		if e.Seeks() != c.Goal || e.on != c.Actions || !slices.Contains(e.Budgets, c.Currency) || !e.finite() {
			continue
		}
		for _, m := range e.noises(c.Trust, c.Currency) {
			converted := !m.native(c.Currency) || !e.states[c.Currency].native(c.Currency)
			if c.Verdict == CubeProved && (converted || !c.Converted) {
				continue
			}
			c.Verdict, c.Why, c.Converted, c.Contexts = CubeProved, "", converted, e.Contexts
			c.Policy, c.Noise, c.Theorem, c.File = e.Name, m.Noise, e.Regret, e.file()
			c.Params, c.Audits = e.words(), []string{e.audited()}
			if m.Trust != "" {
				c.Audits = append(c.Audits, m.audited())
			}
		}
	}
}

// noises are the mechanisms of the trust model for which the entry's theorem holds: those that are made for the
// model, and last, of a server that is believed, what the policy states. Policies of vectors know no other.
func (e cubeEntry) noises(trust, currency string) []stated {
	var out []stated
	if e.NewLinear == nil && e.NewContextual == nil {
		params, err := e.Complete(e.params)
		if err != nil || !e.AnyTail && (e.Gathers(params) != nil || e.Gathered.Proved != ofTail) {
			return nil
		}
		for _, m := range Mechanisms() {
			if m.Trust == trust && slices.Contains(m.Budgets, currency) {
				out = append(out, stated{Mechanism: m})
			}
		}
	}
	if m, ok := e.states[currency]; ok && trust == string(privacy.TrustCentral) {
		out = append(out, m)
	}
	return out
}

// A budget of each currency, to build policies at.
func cubeBudget(currency string) privacy.Budget {
	switch currency {
	case "epsilon":
		return privacy.Pure{Epsilon: 1}
	case "rho":
		return privacy.ZCDP{Rho: 0.5}
	case "epsilon,delta":
		return privacy.Approx{Epsilon: 1, Delta: 1e-6}
	}
	return privacy.Renyi{Alpha: 8, Epsilon: 1}
}

// state finds the mechanisms that the entry states. They are of no trust model.
func (e *cubeEntry) state() {
	e.states = map[string]stated{}
	all := Mechanisms()
	for _, currency := range Currencies() {
		if !slices.Contains(e.Budgets, currency) {
			continue
		}
		m, err := e.build(cubeBudget(currency))
		if err != nil {
			continue
		}
		// those that a policy states are after those of a trust model, of which none has their kind
		if i := slices.IndexFunc(all, func(x Mechanism) bool { return x.Name == m.Kind() }); i >= 0 {
			known := all[i]
			known.Trust, known.Noise, known.Budgets = "", "", []string{currency}
			e.states[currency] = stated{known, m.Loss().GDP() <= math.MaxFloat64}
		}
	}
}

// native says whether the mechanism's guarantee is in this currency. That of ρ-zCDP bounds the divergence of every
// order; a δ is converted from it, unless the noise is normal and its exact trade-off known. Skellam noise's is in
// Rényi divergences, and a ρ is converted from them.
func (m stated) native(currency string) bool {
	switch {
	case strings.HasPrefix(m.Guarantee, "ε-DP"):
		return currency == "epsilon"
	case strings.HasPrefix(m.Guarantee, "(ε,δ)-DP"):
		return currency == "epsilon,delta"
	case strings.HasPrefix(m.Guarantee, "Rényi DP"):
		return currency == "alpha,epsilon"
	case strings.HasPrefix(m.Guarantee, "ρ-zCDP"):
		return currency == "rho" || currency == "alpha,epsilon" || currency == "epsilon,delta" && m.gdp
	}
	return false
}

// build is the mechanism that the policy states at a budget.
func (e cubeEntry) build(b privacy.Budget) (privacy.Mechanism, error) {
	params, err := e.Complete(e.params)
	if err != nil {
		return nil, err
	}
	const arms, horizon = 4, 10_000
	switch {
	case e.New != nil:
		p, err := e.New(Setting{Arms: arms, Horizon: horizon, Budget: b, Coins: fair{}}, params)
		if err != nil {
			return nil, err
		}
		return p.Mechanism(), nil
	case e.NewIdentify != nil:
		p, err := e.NewIdentify(IdentifySetting{Arms: arms, Risk: 0.1, Budget: b, Coins: fair{}}, params)
		if err != nil {
			return nil, err
		}
		return p.Mechanism(), nil
	case e.NewLinear != nil:
		p, err := e.NewLinear(LinearSetting{Actions: [][]float64{{1, 0}, {0, 1}, {0.6, 0.8}}, Horizon: horizon,
			Budget: b}, params)
		if err != nil {
			return nil, err
		}
		p.Next(privacy.ReleasedVector{}) // what is played shapes the noise
		return p.Mechanism(), nil
	case e.NewContextual != nil:
		p, err := e.NewContextual(ContextualSetting{Dim: 2, Arms: arms, Horizon: horizon, Budget: b,
			Coins: fair{}}, params)
		if err != nil {
			return nil, err
		}
		return p.Mechanism(), nil
	}
	if !e.AnyTail {
		return privacy.Sparse{}, nil // a stopping rule that asks questions
	}
	if _, pure := b.(privacy.Pure); pure {
		return privacy.Laplace{Scale: 1}, nil
	}
	return privacy.Gaussian{Sigma: 1}, nil
}

// fair are coins for policies that are built to be looked at.
type fair struct{}

func (fair) Float64() float64          { return 0.5 }
func (fair) Normal() float64           { return 0 }
func (fair) Beta(a, b float64) float64 { return a / (a + b) }

// words are the parameters as a file has them.
func (e cubeEntry) words() map[string]string {
	if len(e.params) == 0 {
		return nil
	}
	out := map[string]string{}
	for name, x := range e.params {
		if p, ok := e.Param(name); ok {
			out[name] = p.Text(x)
		}
	}
	return out
}

// file is where the policy is. A policy that is a variant of another is in its file.
func (e Entry) file() string {
	name := strings.ReplaceAll(e.Name, "-", "_")
	switch e.Name {
	case "adac-gope", "adac-gope-var":
		name = "gope"
	case "adac-oful":
		name = "oful"
	case "dp-lin-race", "dp-lin-halving", "dp-glm-race", "dp-glm-halving":
		name = strings.NewReplacer("lin_", "", "glm_", "").Replace(name)
	case "dp-lin-se", "dp-glm-se":
		return "policy/identify/phased.go"
	case "dp-context-se", "dp-context-race", "dp-context-halving":
		return "policy/contexts.go"
	case "dp-se":
		if e.Bandit == BanditIdentify {
			name = "elimination"
		}
	}
	dir := "policy/"
	switch {
	case e.Goal == GoalStopping:
		return "trial/stopping/" + strings.Replace(name, "exp_", "exponential_", 1) + ".go"
	case e.Bandit == BanditIdentify:
		dir += "identify/"
	case e.Bandit == BanditLinear, e.Bandit == BanditContextual:
		dir += "linear/"
	}
	return dir + name + ".go"
}

// audited is what the rows of `sotto audit self` begin with that attack the policy and its broken copies.
func (e Entry) audited() string {
	switch {
	case e.Goal == GoalStopping && !e.AnyTail: // whose answers are those of its mechanism
		return privacy.Sparse{}.Kind()
	case e.Goal == GoalStopping: // whose releases are those of its mechanism
		return privacy.Laplace{}.Kind()
	case e.Bandit == BanditIdentify:
		return "identify " + e.Name
	}
	return e.Name
}

// audited is the same of a mechanism.
func (m Mechanism) audited() string {
	switch m.Trust {
	case string(privacy.TrustShuffle):
		return m.Name
	case string(privacy.TrustTwoServer):
		return m.Trust + " " + m.Noise
	}
	return m.Name + " " + m.Trust + " " + m.Noise
}

// missing says what an open cell lacks.
func (c *Cell) missing(candidates []cubeEntry) string {
	var finite, takes, near []string
	for _, e := range candidates {
		if e.Seeks() != c.Goal || e.on != c.Actions {
			continue
		}
		switch in := slices.Contains(e.Budgets, c.Currency); {
		case e.finite() && in:
			takes = append(takes, e.Name)
		case e.finite():
			finite = append(finite, e.Name)
		case in:
			near = append(near, e.Name)
		}
	}
	few := func(names []string) string { return strings.Join(slices.Compact(names), ", ") }
	switch {
	case takes != nil && c.Trust != string(privacy.TrustCentral):
		return fmt.Sprintf("%s: proved and played where a server is believed only", few(takes))
	case takes != nil:
		return fmt.Sprintf("%s: the theorem is not for a noise that is drawn", few(takes))
	case near != nil:
		return fmt.Sprintf("%s: private, and nothing finite is proved of utility", few(near))
	case finite != nil:
		return fmt.Sprintf("%s: not in this currency", few(finite))
	}
	return fmt.Sprintf("no policy has this goal on %s actions", c.Actions)
}

// A CubeCount counts cells by verdict.
type CubeCount struct {
	Proved     int `json:"proved"`
	Converted  int `json:"converted"` // of those
	Contexts   int `json:"contexts"`  // of those, as Cell.Contexts has it
	Impossible int `json:"impossible"`
	Open       int `json:"open"`
	None       int `json:"no_question"`
}

// CountCube counts cells by verdict.
func CountCube(cells []Cell) CubeCount {
	var n CubeCount
	for _, c := range cells {
		switch c.Verdict {
		case CubeProved:
			n.Proved++
			if c.Converted {
				n.Converted++
			}
			if c.Contexts {
				n.Contexts++
			}
		case CubeImpossible:
			n.Impossible++
		case CubeOpen:
			n.Open++
		case CubeNone:
			n.None++
		}
	}
	return n
}

// Share is how much of what is a question, and not impossible, is proved; what is converted counts half.
func (n CubeCount) Share() float64 {
	return (float64(n.Proved) - float64(n.Converted)/2) / float64(max(1, n.Proved+n.Open))
}

// String is the count in a sentence.
func (n CubeCount) String() string {
	return fmt.Sprintf("%d proved, of which %d by conversion from another currency, which count half, and %d by one bandit "+
		"for each of finitely many public contexts; %d impossible; %d open; %d no question. Of the %d that are questions and "+
		"not impossible, %.1f %% are proved",
		n.Proved, n.Converted, n.Contexts, n.Impossible, n.Open, n.None, n.Proved+n.Open, 100*n.Share())
}

// StoppingRules are the private rules of package trial/stopping, as the catalog describes policies.
func StoppingRules() []Entry {
	rule := func(name, title, source, samples string) Entry {
		return Entry{Name: name, Title: title, Source: source, Private: true, Budgets: []string{"epsilon"},
			Guarantee: "ε-DP", Regret: samples, Finite: true, Goal: GoalStopping, Anytime: true}
	}
	batches := rule("dp-batch-mean", "DP batch mean", "ours: the test of [Sajed 2019, Algorithm 3] on disjoint batches",
		"O(R² log(1/β)/(αμ)² + Rτ(log(1/β))/(α|μ|)) samples with probability 1 − β, up to log log, τ the tail of a "+
			"release's noise (proof: stopping.BatchMean)")
	batches.Budgets, batches.AnyTail = Currencies(), true
	batches.Guarantee = "ε-DP, ρ-zCDP, (ε,δ)-DP or (α,ε)-RDP, as the budget is; samples in range"
	nas := rule("dp-nas", "DP-NAS", "[Sajed 2019, Algorithm 7]", "none proved: its number of samples is not analysed")
	nas.Finite = false
	return []Entry{
		nas,
		rule("dp-exp-nas", "DP exponential NAS", "[Sajed 2019, Algorithm 8]", "2000(t₀ + t₁ + t₂) samples with "+
			"probability 1 − β [Sajed 2019, Theorem 4.1.3]"),
		batches,
	}
}
