package catalog

import (
	"cmp"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// AutoPolicy is the name of the policy that is picked by Auto.
const AutoPolicy = "auto"

// DefaultRule is the rule of who looks for the best arm and names none: of all that are proved it took the
// fewest participants in the mean, or within 5 % of the fewest, wherever it was measured (docs/trial.md).
const DefaultRule = "dp-sed"

// A Plan is what is declared before the first reward: all that Auto goes by. So what it picks tells
// nothing of anybody, and costs nothing.
type Plan struct {
	Arms    int            // K
	Budget  privacy.Budget // of one reward
	Horizon int            // about how many rounds there will be, 0 if nobody knows
	Rate    float64        // about what a reward is on average, of rewards mapped to [0,1]; 0 if nobody knows
	// Gathered says that nobody sees the rewards, or that a release adds up several noises: what is picked
	// is then proved for that (Entry.Gathers).
	Gathered bool
}

// A Pick is what Auto picks, and why in a sentence.
type Pick struct {
	Policy string
	Params Params
	Why    string
}

// What a plan says nothing of.
const (
	autoRate    = 0.1
	autoHorizon = 100_000
)

// Auto picks a policy of K arms, by a plan alone. The rule is ours, and fitted: docs/grid.md has how it does on
// instances that it was not fitted on.
//
// Let σ be the deviation of a release's noise, r the rate (0.1 if nobody knows), q = min(r, 1−r), and τ = q/3
// a guess of how far arms are apart. After
//
//	N = r(1−r)/τ² + σ/τ
//
// plays of each of them, two arms that are τ apart have a difference of the order of its deviation. Up to
// 4500 K^0.87 N rounds it is Thompson's chances (dp-ts), which find good arms earlier than an index does. They go
// on trying what an index has given up, so that beyond it is one: zcdp-imed for normal noise, dp-imed for
// Laplace noise, dp-imed-j where several of these are in a sum, or where there are two arms and σ ≤ 2r(1−r)/τ:
// it has lighter tails. If nobody knows the horizon T, it is taken for 10⁵.
//
// dp-ts has first batches of σ min(12/√v, √(T/K)/(16v)) plays, v = r(1−r), 10 at least and T/(3K) at most:
// fewer where rewards vary much beside the noise, and where there are few rounds for each arm.
func Auto(p Plan) (Pick, error) {
	sd, normal, err := autoNoise(p.Budget)
	if err != nil {
		return Pick{}, err
	}
	rate, horizon := cmp.Or(p.Rate, autoRate), cmp.Or(p.Horizon, autoHorizon)
	if !(rate > 0 && rate < 1) || p.Arms < 2 || horizon < 1 {
		return Pick{}, fmt.Errorf("%s: %d arms, rate %v, horizon %d, must be at least 2, between 0 and 1, and at least 1",
			AutoPolicy, p.Arms, rate, horizon)
	}
	v, apart := rate*(1-rate), min(rate, 1-rate)/3
	until := 4500 * math.Pow(float64(p.Arms), 0.87) * (v/apart/apart + sd/apart)
	pick := Pick{Policy: "dp-ts"}
	switch {
	case float64(horizon) <= until:
		each := float64(horizon) / float64(p.Arms)
		batch := min(sd*min(12/math.Sqrt(v), math.Sqrt(each)/(16*v)), each/3)
		pick.Params = Params{"first": min(maxRounds, max(10, math.Ceil(batch)))}
	case normal:
		pick.Policy = "zcdp-imed"
	case p.Gathered || p.Arms == 2 && sd <= 2*v/apart:
		pick.Policy = "dp-imed-j"
	default:
		pick.Policy = "dp-imed"
	}
	say := func(x float64, said bool) string {
		if !said {
			return fmt.Sprintf("%.2g (assumed)", x)
		}
		return fmt.Sprintf("%.2g", x)
	}
	pick.Why = fmt.Sprintf("%s, picked for %d arms, %v a reward, a mean reward of about %s of the range and %s decisions: "+
		"dp-ts up to %.2g, beyond it an index", pick.Policy, p.Arms, p.Budget, say(rate, p.Rate != 0),
		say(float64(horizon), p.Horizon != 0), until)
	return pick, nil
}

// autoNoise is the deviation of a release's noise, and whether it is normal.
func autoNoise(b privacy.Budget) (sd float64, normal bool, err error) {
	if pure, ok := b.(privacy.Pure); ok {
		return math.Sqrt2 / pure.Epsilon, false, pure.Validate()
	}
	sd, err = privacy.GaussianSigma(b)
	return sd, true, err
}

// auto is the entry of AutoPolicy, which picks among known ones.
func auto(known []Entry) Entry {
	return Entry{
		Name: AutoPolicy, Title: "picked by what is declared", Family: "imed", Private: true, Continuous: true,
		Budgets: []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"}, Anytime: true,
		Guarantee: "ε-DP, ρ-zCDP, (ε,δ)-DP or (α,ε)-RDP (Interactive), as the budget is, rewards in range",
		Regret:    "that of the policy that is picked",
		Gathered: Verdict{Refused: "simulated, it picks for a server that sees the rewards: name a policy; live, it picks one " +
			"that is proved"},
		Source: "ours: a policy that is picked by K, the budget, the horizon and the rate alone (catalog.Auto)",
		Params: []Param{{Name: "rate", Doc: "about what a reward is on average, of rewards mapped to [0,1]; live it is " +
			"a key of the experiment", Default: math.NaN(), DefaultDoc: "0.1", Lo: 0, Hi: 1,
			Proof: always("the theorem of what is picked")}},
		New: func(s Setting, p Params) (policy.Policy, error) {
			pick, err := Auto(Plan{Arms: s.Arms, Budget: s.Budget, Horizon: s.Horizon, Rate: p.or("rate", 0)})
			if err != nil {
				return nil, err
			}
			e, err := find(known, pick.Policy)
			if err != nil {
				return nil, err
			}
			params, err := e.Complete(pick.Params)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", AutoPolicy, err)
			}
			return e.New(s, params)
		},
	}
}
