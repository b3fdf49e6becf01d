package audit

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	lin "github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// What goes wrong with the histograms of a policy under joint DP.
type tallying string

const (
	talliedWell  tallying = ""
	talliedThin  tallying = "half the scale"
	talliedAlike tallying = "shared noise"
	talliedTwice tallying = "a record in two segments"
	talliedBare  tallying = "exact counts of the rows"
)

// histogramFirst is the first segment's length where a file does not say: games are short.
const histogramFirst = 4

// histogram is the audit of a policy whose releases are histograms, of two rows. In one world round t brings the
// first action alone, and its reward is −1; in the other it brings the second, and its reward is 1. All
// other rounds bring both, and their rewards are 0. The attacker sees all releases, and what was played in
// other rounds, which is a function of releases before, so that those explain all but round t.
type histogram struct {
	build   func(privacy.Budget, *noise.Fast) (lin.Contextual, error)
	b       privacy.Budget
	horizon int
	by      clipping
	how     tallying
}

// histogramSeen is what an attacker has of the segment with round t, and of the next: a bin's noise, and what round t is
// of it.
type histogramSeen [2][4]float64

func (g histogram) play(at int, in bool, src *noise.Fast) (s histogramSeen, _ *privacy.Ledger, err error) {
	p, err := g.build(g.b, src)
	if err != nil {
		return s, nil, err
	}
	mech, ok := p.Mechanism().(privacy.Histogram)
	if !ok {
		return s, nil, fmt.Errorf("audit: %v is no histogram", p.Mechanism())
	}
	cfg := release.FeatureConfig{Dim: 2, Slots: 1, Mechanism: mech, Rows: lin.RowsOf(p)}
	if g.how == talliedBare || g.how == talliedAlike { // whose noise is the twin's own
		cfg.Mechanism = privacy.LaplaceHistogram{}
	}
	cur, err := g.by.features(cfg, src)
	if err != nil {
		return s, nil, err
	}
	both := append(append([]float64(nil), basis[0]...), basis[1]...)
	var others [4]float64
	segment := -1 // since round t
	var again func() error
	for t := 1; t <= g.horizon; t++ {
		for p.Due() >= 0 {
			r, err := cur.Release(0)
			if err != nil {
				return s, nil, err
			}
			x := g.twin(r, mech, src)
			if segment++; segment == 0 && t <= at {
				segment = -1
			} else if segment < len(s) {
				for i := range others {
					s[segment][i] = coarse(x[i] - others[i])
				}
			}
			others = [4]float64{}
			if r, err = privacy.NewLedger().ReleaseVector(0, mech, &privacy.Vector{N: r.N(), Value: x}); err != nil {
				return s, nil, err
			}
			if p.Learn(r); again != nil {
				if err := again(); err != nil {
					return s, nil, err
				}
				again = nil
			}
		}
		actions, reward := both, 0.0
		if t == at {
			low, high := g.by.rewards()
			if actions, reward = basis[0], low; in {
				actions, reward = basis[1], high
			}
		}
		c := p.Choose(actions)
		vector := actions[2*c.Action : 2*c.Action+2]
		add := func() error { return cur.Add(0, vector, reward) }
		if err := add(); err != nil {
			return s, nil, err
		}
		switch {
		case t != at:
			others[2*c.Action] += 0.5
			others[2*c.Action+1] += 0.5
		case g.how == talliedTwice:
			again = add
		}
	}
	return s, cur.Ledger(), nil
}

// twin is a release as the twin has it.
func (g histogram) twin(r privacy.ReleasedVector, m privacy.Histogram, src *noise.Fast) []float64 {
	draw := func() float64 {
		if m, ok := m.(privacy.LaplaceHistogram); ok {
			return src.Laplace(m.Scale)
		}
		return float64(privacy.ScaleOf(m) * src.Normal())
	}
	x := make([]float64, r.Len())
	for i := range x {
		x[i] = r.At(i)
	}
	shared := draw()
	for i := 0; i < len(x); i += 2 {
		switch g.how {
		case talliedAlike:
			x[i], x[i+1] = x[i]+shared, x[i+1]+shared
		case talliedBare:
			z := draw()
			x[i], x[i+1] = x[i]+z, x[i+1]-z
		}
	}
	return x
}

// histogramScores are what the attacker makes of it, by adversary.
var histogramScores = []string{"likelihood ratio", "difference of two bins", "counts of rows", "two segments"}

func (s histogramSeen) score(adversary int, m privacy.Histogram) float64 {
	ratio := func(x [4]float64) float64 { // in: (0,0,0,1), out: (1,0,0,0)
		scale := privacy.ScaleOf(m)
		if _, ok := m.(privacy.LaplaceHistogram); ok {
			return (math.Abs(x[3]) - math.Abs(x[3]-1) + math.Abs(x[0]-1) - math.Abs(x[0])) / scale
		}
		return (x[3] - x[0]) / (scale * scale)
	}
	switch adversary {
	case 1:
		return s[0][3] - s[0][0]
	case 2:
		return s[0][2] + s[0][3] - s[0][0] - s[0][1]
	case 3:
		return ratio(s[0]) + ratio(s[1])
	}
	return ratio(s[0])
}

// subject is the audit at budget b of what is claimed of another.
func (g histogram) subject(name string, claimed privacy.Budget, at []int) (direct, error) {
	src := noise.NewFast(1, 2)
	fair := g
	fair.b, fair.how, fair.by = claimed, talliedWell, g.by.closed()
	_, l, err := fair.play(1, true, &src)
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	p, err := g.build(g.b, &src)
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	m := p.Mechanism().(privacy.Histogram) // play has seen to it
	d := direct{name: name, claim: l.Total(), attack: "likelihood ratio", model: View.String()}
	for _, t := range at {
		for _, how := range histogramScores {
			d.adversaries = append(d.adversaries, fmt.Sprintf("round %d, %s", t, how))
		}
	}
	d.worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			return func(in bool, src *noise.Fast, out []float64) error {
				s, _, err := g.play(at[adversary/len(histogramScores)], in, src)
				out[0] = coarse(s.score(adversary%len(histogramScores), m))
				return err
			}
		}
	}
	return d, nil
}

// selfHistogram are histograms of real records by the policy that is for them, and its twins.
func selfHistogram() ([]selfItem, error) {
	var e catalog.Entry
	for _, e = range catalog.ContextualPolicies() {
		if e.Name == catalog.HistogramTS {
			break
		}
	}
	params, err := e.Complete(catalog.Params{"first": histogramFirst, "draws": 1})
	if err != nil {
		return nil, err
	}
	var all []selfItem
	for _, c := range []struct {
		claimed, b privacy.Budget
		how        tallying
	}{
		{privacy.ZCDP{Rho: 0.5}, privacy.ZCDP{Rho: 0.5}, talliedWell},
		{privacy.ZCDP{Rho: 0.5}, privacy.ZCDP{Rho: 2}, talliedThin},
		{privacy.Pure{Epsilon: 1}, privacy.Pure{Epsilon: 1}, talliedWell},
		{privacy.Pure{Epsilon: 1}, privacy.Pure{Epsilon: 2}, talliedThin},
		{privacy.Pure{Epsilon: 1}, privacy.Pure{Epsilon: 1}, talliedAlike},
		{privacy.ZCDP{Rho: 0.5}, privacy.ZCDP{Rho: 0.5}, talliedTwice},
		{privacy.Pure{Epsilon: 1}, privacy.Pure{Epsilon: 1}, talliedBare},
	} {
		g := histogram{build: func(b privacy.Budget, src *noise.Fast) (lin.Contextual, error) {
			return e.NewContextual(contextualSetting(8, b, src, 0), params)
		}, b: c.b, horizon: 8, how: c.how}
		g.by.real = c.how != talliedAlike && c.how != talliedBare
		name := e.Name + ", contexts and rewards, " + c.claimed.String()
		if c.how != talliedWell {
			name += ", " + string(c.how)
		}
		d, err := g.subject(name, c.claimed, []int{3})
		if err != nil {
			return nil, err
		}
		if c.how == talliedThin {
			d.fault = HalfScale
		}
		all = append(all, ofDirect(d, deltaFor(c.claimed), c.how != talliedWell, 2))
	}
	return all, nil
}

// contextualSetting is that of audits: two unit vectors.
func contextualSetting(horizon int, b privacy.Budget, src *noise.Fast, step float64) catalog.ContextualSetting {
	return catalog.ContextualSetting{Dim: 2, Arms: 2, Horizon: horizon, Budget: b, Coins: src, Step: step,
		Rows: append(append([]float64(nil), basis[0]...), basis[1]...)}
}
