package audit

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	lin "github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// vectorRounds are when the reward of a linear policy is changed.
var vectorRounds = []int{1, 2, 3, 5, 8}

func roundNames(rounds []int) []string {
	var out []string
	for _, t := range rounds {
		out = append(out, fmt.Sprintf("round %d, all other rewards 0", t))
	}
	return out
}

// basis are the actions of the linear audits: the unit vectors of ℝ², so that a release has one
// coordinate that the changed reward moves by as much as it can.
var basis = [][]float64{{1, 0}, {0, 1}}

// VectorSubject is a policy of the catalog for linear or contextual bandits of two unit vectors:
// the reward of one round is −1 or 1, all others are 0, and the attacker sees every release. Broken
// is built at a budget of about half the noise, of an eighth if it is pure or
// Wishart noise, while its claim is that of b.
func VectorSubject(e catalog.Entry, horizon int, b privacy.Budget, given catalog.Params,
	broken bool) (Direct, error) {
	return vectorSubject(e, horizon, b, given, broken, clipping{})
}

// A clipping is how rewards get to the curator of vectors under audit.
type clipping struct {
	real bool // it is the curator of real rewards, whose noise is its own
	far  bool // the changed reward is 10⁶, or no number, and must be clipped to 1 and −1
	open bool // far rewards are not clipped: a broken twin, simulated
}

// rewards are the two that the changed one may be.
func (d clipping) rewards() (out, in float64) {
	switch {
	case d.open:
		return -1e6, 1e6
	case d.far:
		return math.NaN(), 1e6
	}
	return -1, 1
}

func (d clipping) actions(src *noise.Fast) (release.ActionCurator, error) {
	if d.real {
		return release.RealActions(basis, nil)
	}
	return release.SimulatedActions(basis, d.open, nil, src)
}

func (d clipping) features(cfg release.FeatureConfig, src *noise.Fast) (release.FeatureCurator, error) {
	if d.real {
		return release.RealFeatures(cfg)
	}
	cfg.Unclipped = d.open
	return release.SimulatedFeatures(cfg, src)
}

// step is that of the curator's grid.
func (d clipping) step() float64 {
	if d.real {
		return release.ExactStep
	}
	return 0
}

// name is what a clipping adds to that of a subject.
func (d clipping) name() string {
	switch {
	case d.open:
		return ", rewards out of range, " + Unclipped.String()
	case d.far:
		return ", rewards out of range, real"
	case d.real:
		return ", real"
	}
	return ""
}

func vectorSubject(e catalog.Entry, horizon int, b privacy.Budget, given catalog.Params,
	broken bool, by clipping) (Direct, error) {
	if e.NewLinear == nil && e.NewContextual == nil {
		return Direct{}, fmt.Errorf("audit: policy %s is not for linear or contextual bandits", e.Name)
	}
	if last := vectorRounds[len(vectorRounds)-1]; horizon < last {
		return Direct{}, fmt.Errorf("audit: horizon is %d, must be at least %d: rewards are "+
			"changed up to there", horizon, last)
	}
	params, err := e.Complete(given)
	if err != nil {
		return Direct{}, fmt.Errorf("audit: %w", err)
	}
	if err := e.With(params).Meets(b); err != nil {
		return Direct{}, fmt.Errorf("audit: %w", err)
	}
	at, claimed, fault := b, privacy.Budget(nil), NoFault
	if broken {
		claimed, fault = b, HalfScale
		switch x := b.(type) {
		case privacy.ZCDP:
			at = privacy.ZCDP{Rho: 4 * x.Rho} // half the σ
		case privacy.Approx:
			at = privacy.Approx{Epsilon: 3 * x.Epsilon, Delta: x.Delta}
		case privacy.Pure:
			// a unit vector shows less than what the claim is for: (1,…,1)/√d
			if at, fault = (privacy.Pure{Epsilon: 8 * x.Epsilon}), EighthScale; e.Name == instrumentPolicy {
				at, fault = privacy.Pure{Epsilon: 2 * x.Epsilon}, HalfScale // by length it shows all
			}
		default:
			return Direct{}, fmt.Errorf("audit: budget is %v, must be of ε-DP, (ε,δ)-DP or "+
				"ρ-zCDP for a broken twin", b)
		}
	}
	var d direct
	if e.NewLinear != nil {
		d, err = actionSet(e, horizon, at, claimed, given, by)
	} else {
		d, err = contextual(e, horizon, at, claimed, given, by)
	}
	d.name += by.name()
	if fault == EighthScale && d.fault == HalfScale {
		d.fault = fault
	}
	if broken {
		d.name += ", " + d.fault.String()
	}
	return Direct{direct: d}, err
}

// contextual is the audit of a policy for contextual bandits of two unit vectors in each round: the
// reward of one round is −1 or 1, all others are 0. The attacker sees every release. The policy is
// built at budget b, and the claim is that of the ledger, or, if claimed is set, what the policy
// would have cost at that budget: so a policy with too little noise can be shown. Wishart noise is
// then an eighth: its cost is bounded from far above.
func contextual(e catalog.Entry, horizon int, b, claimed privacy.Budget, given catalog.Params,
	by clipping) (direct, error) {
	params, err := e.Complete(given)
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	build := func(b privacy.Budget, src *noise.Fast) (lin.Contextual, error) {
		return e.NewContextual(contextualSetting(horizon, b, src, by.step()), params)
	}
	if e.Name == catalog.HistogramTS {
		if _, said := given["first"]; !said {
			params["first"] = histogramFirst
		}
		g := histogram{build: build, b: b, horizon: horizon, by: by}
		fault := NoFault
		if claimed == nil {
			claimed = b
		} else {
			fault = HalfScale
		}
		d, err := g.subject(e.Content(params), claimed, vectorRounds)
		d.fault = fault
		return d, err
	}
	d := direct{name: e.Content(params), adversaries: roundNames(vectorRounds),
		attack: "likelihood ratio", model: Continual.String()}
	if claimed == nil {
		claimed = b
	} else {
		d.fault = HalfScale
	}
	src := noise.NewFast(1, 2)
	p, err := build(claimed, &src)
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	if _, err := build(b, &src); err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	if _, ok := p.(lin.Instrumental); ok {
		fault := d.fault
		d, err = instruments{build: build, b: b, horizon: horizon, by: by}.subject(d.name, claimed, vectorRounds)
		d.fault = fault
		return d, err
	}
	actions := append(append([]float64(nil), basis[0]...), basis[1]...)
	// play plays a game with the challenge in round at, and returns the ledger. The
	// meter has the score.
	play := func(p lin.Contextual, by clipping, at int, in bool, src *noise.Fast,
		m *meter) (*privacy.Ledger, error) {
		mech := p.Mechanism()
		cur, err := by.features(release.FeatureConfig{Dim: 2, Slots: p.Slots(), Mechanism: mech}, src)
		if err != nil {
			return nil, err
		}
		where := [2]int{0, 1}
		switch mech.(type) {
		case privacy.GramTree, privacy.GramGaussian, privacy.GramBLT, privacy.GramWishart:
			where = [2]int{2, 4} // of a·r in the upper triangle of [a;r][a;r]ᵀ, row by row
		}
		// Each coordinate of each slot is one sum to the meter. All are 0 before the challenge.
		if len(m.arms) != 2*p.Slots() {
			m.arms = make([]track, 2*p.Slots())
		}
		slots := make([]slot, len(m.arms))
		m.begin(mech)
		for t := 1; t <= horizon; t++ {
			for due := p.Due(); due >= 0; due = p.Due() {
				r, err := cur.Release(due)
				if err != nil {
					return nil, err
				}
				for i, at := range where {
					s := &slots[2*due+i]
					m.take(2*due+i, r.At(at)-s.sum, s)
					if !mech.Continual() {
						*s = slot{}
					}
				}
				p.Learn(r)
			}
			c := p.Choose(actions)
			slots[2*c.Slot].n++
			slots[2*c.Slot+1].n++
			reward := 0.0
			if t == at {
				i := 2*c.Slot + c.Action
				slots[i].position, slots[i].sum = slots[i].n, -1
				m.arm, m.shift = i, 2
				low, high := by.rewards()
				if reward = low; in {
					reward = high
				}
			}
			if err := cur.Add(c.Slot, actions[2*c.Action:2*c.Action+2], reward); err != nil {
				return nil, err
			}
		}
		return cur.Ledger(), nil
	}
	l, err := play(p, by.closed(), 1, true, &src, new(meter))
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	d.claim = l.Total()
	if m, ok := p.Mechanism().(privacy.GramWishart); ok {
		// What it takes to calibrate this noise is too long for each game. The policy releases
		// after every round, whatever it plays, and its plays are a function of the releases.
		if d.fault != NoFault {
			d.fault = EighthScale
			m.Scale /= 8
		}
		build = func(privacy.Budget, *noise.Fast) (lin.Contextual, error) { return &everyRound{mech: m}, nil }
	}
	d.worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		at := vectorRounds[adversary]
		return func() func(bool, *noise.Fast, []float64) error {
			var m meter
			return func(in bool, src *noise.Fast, out []float64) error {
				p, err := build(b, src)
				if err != nil {
					return err
				}
				if _, err := play(p, by, at, in, src, &m); err != nil {
					return err
				}
				out[0] = m.llr
				return nil
			}
		}
	}
	return d, nil
}

// closed is the clipping that the claim is of.
func (d clipping) closed() clipping {
	d.open = false
	return d
}

// addZeros adds n rewards of 0: real ones one by one.
func addZeros(cur release.ActionCurator, action, n int, real bool) error {
	if !real {
		return cur.AddSum(action, n, 0)
	}
	for range n {
		if err := cur.Add(action, 0); err != nil {
			return err
		}
	}
	return nil
}

// everyRound plays the first action and releases after every round.
type everyRound struct {
	mech privacy.Mechanism
	due  bool
}

func (p *everyRound) Mechanism() privacy.Mechanism { return p.mech }
func (p *everyRound) Slots() int                   { return 1 }
func (p *everyRound) Learn(privacy.ReleasedVector) { p.due = false }
func (p *everyRound) Choose([]float64) lin.Choice  { p.due = true; return lin.Choice{} }
func (p *everyRound) Due() int {
	if p.due {
		return 0
	}
	return -1
}

// actionSet is the audit of a policy for a fixed set of actions, two unit vectors, as contextual.
func actionSet(e catalog.Entry, horizon int, b, claimed privacy.Budget, given catalog.Params,
	by clipping) (direct, error) {
	params, err := e.Complete(given)
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	build := func(b privacy.Budget) (lin.Policy, error) {
		return e.NewLinear(catalog.LinearSetting{Actions: basis, Horizon: horizon, Budget: b}, params)
	}
	d := direct{name: e.Content(params), adversaries: roundNames(vectorRounds),
		attack: "likelihood ratio", model: Continual.String()}
	if claimed == nil {
		claimed = b
	} else {
		d.fault = HalfScale
	}
	// play plays a game, and returns the ledger.
	game := func(b privacy.Budget, by clipping, at int, in bool, src *noise.Fast,
		out []float64) (*privacy.Ledger, error) {
		p, err := build(b)
		if err != nil {
			return nil, err
		}
		cur, err := by.actions(src)
		if err != nil {
			return nil, err
		}
		d := play.VectorDriver{Policy: p, Curator: cur}
		arm := -1
		out[0] = 0
		for t := 0; t < horizon; {
			batch, err := d.Next()
			if err != nil {
				return nil, err
			}
			if batch == nil {
				break
			}
			n := batch.Rounds()
			if n > horizon-t {
				break
			}
			for i := range batch.Plays {
				play := &batch.Plays[i]
				left := play.Rounds
				if arm < 0 && t < at && at <= t+n && (i == len(batch.Plays)-1 ||
					at-t <= play.Rounds) && left > 0 {
					// The order within a batch is public and changes nothing: which of an action's
					// rewards is the changed one.
					arm = play.Arm
					reward, high := by.rewards()
					if in {
						reward = high
					}
					if err := cur.Add(arm, reward); err != nil {
						return nil, err
					}
					left--
				}
				if err := addZeros(cur, play.Arm, left, by.real); err != nil {
					return nil, err
				}
			}
			t += n
			if err := d.Close(); err != nil {
				return nil, err
			}
			if d.Releasing() && arm >= 0 && t-n < at {
				switch mech := p.Mechanism().(type) {
				case privacy.Sums:
					out[0] = d.Released.At(arm)
				case privacy.Elliptic:
					out[0] = d.Released.At(arm) / math.Sqrt(float64(max(mech.Count(arm), 1)))
				default:
					return nil, fmt.Errorf("audit: %v is not known", mech)
				}
				out[0] = coarse(out[0])
			}
		}
		return cur.Ledger(), nil
	}
	src := noise.NewFast(1, 2)
	l, err := game(claimed, by.closed(), 1, true, &src, make([]float64, 1))
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	d.claim = l.Total()
	d.worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			return func(in bool, src *noise.Fast, out []float64) error {
				_, err := game(b, by, vectorRounds[adversary], in, src, out)
				return err
			}
		}
	}
	return d, nil
}
