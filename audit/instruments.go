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

const instrumentPolicy = "jdp-instruments"

// instruments is the audit of a policy whose releases have noise by length, and are of other records than the
// vectors that were played. The reward of one round is −1 or 1, all others are 0, and the vectors are known. So the
// attacker knows what each release were in both worlds without noise, s_out and s_in, and of y the likelihood
// ratio is (‖y−s_out‖ − ‖y−s_in‖)/Scale.
type instruments struct {
	build   func(privacy.Budget, *noise.Fast) (lin.Contextual, error)
	b       privacy.Budget
	horizon int
	by      clipping
}

// curators are the one under audit, and what it would release without noise in both worlds.
func (g instruments) curators(p lin.Contextual, l *privacy.Ledger, src *noise.Fast) (c [3]release.FeatureCurator, err error) {
	cfg := release.FeatureConfig{Dim: 2, Slots: 1, Mechanism: p.Mechanism(), Ledger: l}
	if c[0], err = g.by.features(cfg, src); err != nil {
		return c, err
	}
	bare, ok := privacy.WithScale(cfg.Mechanism, 0)
	if !ok {
		return c, fmt.Errorf("audit: %v has no scale", cfg.Mechanism)
	}
	for i := range c[1:] {
		cfg := release.FeatureConfig{Dim: 2, Slots: 1, Mechanism: bare}
		if c[1+i], err = release.SimulatedFeatures(cfg, src); err != nil {
			return c, err
		}
	}
	return c, nil
}

// play returns the likelihood ratio of a game with the challenge in round at.
func (g instruments) play(at int, in bool, src *noise.Fast) (ratio float64, l *privacy.Ledger, err error) {
	p, err := g.build(g.b, src)
	if err != nil {
		return 0, nil, err
	}
	z, l := make([]float64, 2), privacy.NewLedger()
	of, ok := p.(lin.Instrumental)
	if !ok {
		return 0, nil, fmt.Errorf("audit: %T has no instruments", p)
	}
	c, err := g.curators(p, l, src)
	if err != nil {
		return 0, nil, err
	}
	both := append(append([]float64(nil), basis[0]...), basis[1]...)
	low, high := g.by.rewards()
	clipped := low
	if math.IsNaN(low) { // which counts as the least, and which no simulated curator takes
		clipped = math.Inf(-1)
	}
	for t := 1; t <= g.horizon; t++ {
		for p.Due() >= 0 {
			var r [3]privacy.ReleasedVector
			for i := range c {
				if r[i], err = c[i].Release(0); err != nil {
					return 0, nil, err
				}
			}
			m := p.Mechanism()
			ratio += coarse((byLength(m, r[0], r[1]) - byLength(m, r[0], r[2])) / privacy.ScaleOf(m))
			if p.Learn(r[0]); p.Mechanism() != m {
				if c, err = g.curators(p, l, src); err != nil {
					return 0, nil, err
				}
			}
		}
		action := p.Choose(both).Action
		predicted, width := of.Instrument(z, both[2*action:2*action+2])
		rewards := [3]float64{0, clipped, high} // played, and in both worlds
		switch {
		case t != at:
			rewards = [3]float64{}
		case in:
			rewards[0] = high
		default:
			rewards[0] = low
		}
		for i, x := range rewards {
			if err := c[i].Add(0, z, (x-predicted)/width); err != nil {
				return 0, nil, err
			}
		}
	}
	return ratio, l, nil
}

// byLength is how far two releases are from each other in the norm of the noise, in which an entry off the diagonal
// of a Gram matrix of ℝ² is twice.
func byLength(m privacy.Mechanism, a, b privacy.ReleasedVector) float64 {
	_, gram := m.(privacy.GramLaplace)
	var q float64
	for i := range a.Len() {
		x := a.At(i) - b.At(i)
		if gram && i == 1 {
			x *= math.Sqrt2
		}
		q += float64(x * x)
	}
	return math.Sqrt(q)
}

// subject is the audit at budget b of what is claimed of another.
func (g instruments) subject(name string, claimed privacy.Budget, at []int) (direct, error) {
	src := noise.NewFast(1, 2)
	fair := g
	fair.b, fair.by = claimed, g.by.closed()
	_, l, err := fair.play(at[0], true, &src)
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	d := direct{name: name, claim: l.Total(), adversaries: roundNames(at), attack: "likelihood ratio",
		model: View.String()}
	d.worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			return func(in bool, src *noise.Fast, out []float64) (err error) {
				out[0], _, err = g.play(at[adversary], in, src)
				return err
			}
		}
	}
	return d, nil
}

// selfInstruments are the Gram matrices that follow instruments. At ε = 3 they follow from round 24 on: round 26 is
// in the first.
func selfInstruments() ([]selfItem, error) {
	e, err := catalog.Catalog{}.Find(catalog.BanditContextual, instrumentPolicy)
	if err != nil {
		return nil, err
	}
	params, err := e.Complete(catalog.Params{"first": 25})
	if err != nil {
		return nil, err
	}
	var all []selfItem
	for _, twin := range []bool{false, true} {
		claimed := privacy.Pure{Epsilon: 3}
		g := instruments{build: func(b privacy.Budget, src *noise.Fast) (lin.Contextual, error) {
			return e.NewContextual(contextualSetting(42, b, src, 0), params)
		}, b: claimed, horizon: 42}
		name := e.Name + ", Gram matrices"
		if twin {
			g.b = privacy.Pure{Epsilon: 2 * claimed.Epsilon}
			name += ", " + HalfScale.String()
		}
		d, err := g.subject(name, claimed, []int{26})
		if err != nil {
			return nil, err
		}
		all = append(all, ofDirect(d, 0, twin, 1))
	}
	return all, nil
}
