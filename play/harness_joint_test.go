package play

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

const (
	jointDim     = 2
	jointWidth   = 6
	jointLeaf    = 4
	jointHorizon = 240
	jointRho     = 5000 // so that a record counts beside the noise
)

// A clinic is the game under joint privacy. The curator is that of real records, whose noise nobody
// knows: what a line adds to the records is noise, and what it adds to the noise of the line that it
// grew from is one node's.
type clinic struct {
	released int
	other    alone
	truth    []float64         // of the records that were released, in units
	noise    map[int][]float64 // by leaves, of lines
	sums     map[int][]int64   // of twins: what a curator was given, by its first decision
}

// ofClinic is a house under joint privacy, that is to be built.
func ofClinic() house {
	return house{game: &clinic{sums: map[int][]int64{}, truth: make([]float64, jointWidth),
		noise: map[int][]float64{0: make([]float64, jointWidth)}},
		cfg: Config{Horizon: jointHorizon, Lo: -1, Hi: 3, Default: 0.5, Window: 20}}
}

func jointPolicy(rho float64) *linear.LinUCB {
	p, err := linear.NewLinUCB(jointDim, jointHorizon, privacy.ZCDP{Rho: rho}, linear.LinUCBOptions{Lambda: 0.5,
		Risk: 0.01, Noise: linear.GramTree, Step: release.ExactStep, Leaf: jointLeaf})
	if err != nil {
		panic(err)
	}
	return p
}

// A pupil says what it learns.
type pupil struct {
	*linear.LinUCB
	learn func(privacy.ReleasedVector)
}

func (p pupil) Learn(r privacy.ReleasedVector) {
	p.learn(r)
	p.LinUCB.Learn(r)
}

// A liar has a curator of its own under it, and tells its ledger of the mechanism.
type liar struct {
	release.KeptCurator
	ledger *privacy.Ledger
	m      privacy.Mechanism
}

func (c *liar) Ledger() *privacy.Ledger { return c.ledger }

func (c *liar) Release(slot int) (privacy.ReleasedVector, error) {
	r, err := c.KeptCurator.Release(slot)
	if err != nil {
		return r, err
	}
	v := privacy.Vector{N: r.N(), Value: make([]float64, r.Len())}
	for i := range v.Value {
		v.Value[i] = r.At(i)
	}
	return c.ledger.ReleaseVector(0, c.m, &v)
}

// A forgetful liar draws shown noise again after a restart: it keeps the sums alone.
type forgetful struct {
	liar
	g *clinic
}

func (c *forgetful) AddSteps(slot, n int, sums []int64) error {
	c.g.sums[c.g.released] = slices.Clone(sums)
	return c.KeptCurator.AddSteps(slot, n, sums)
}

func (c *forgetful) State(int) ([]byte, error) { return []byte("{}"), nil }

func (c *forgetful) Restore(_ int, state []byte, _ privacy.ReleasedVector) error {
	for n := 0; n < c.g.released && state != nil; n += jointLeaf {
		if err := c.KeptCurator.AddSteps(0, jointLeaf, c.g.sums[n]); err != nil {
			return err
		}
	}
	return nil
}

// Of a twofold one a leaf has a record of the leaf before.
type twofold struct {
	release.KeptCurator
	g *clinic
}

func (c *twofold) AddSteps(slot, n int, sums []int64) error {
	c.g.sums[c.g.released] = slices.Clone(sums)
	all := slices.Clone(sums)
	for i, x := range c.g.sums[c.g.released-jointLeaf] {
		all[i] += x / jointLeaf // their mean is as good as any
	}
	return c.KeptCurator.AddSteps(slot, n, all)
}

func (g *clinic) start(h *house, cfg *Config) {
	taught := 0
	cfg.Contexts = pupil{jointPolicy(jointRho), func(r privacy.ReleasedVector) {
		h.seeVector(taught, r)
		taught++
	}}
	cfg.Vectors = func(fc release.FeatureConfig) (release.FeatureCurator, error) {
		honest := fc
		m := fc.Mechanism.(privacy.GramTree)
		switch h.fault {
		case halfNoise:
			m.Sigma /= 2
			fallthrough
		case redraws:
			fc.Mechanism, fc.Ledger = m, privacy.NewLedger()
		}
		c, err := release.RealFeatures(fc)
		if err != nil {
			return nil, err
		}
		kept := c.(release.KeptCurator)
		l := liar{kept, honest.Ledger, honest.Mechanism}
		switch h.fault {
		case halfNoise:
			return &l, nil
		case redraws:
			return &forgetful{l, g}, nil
		case twoLeaves:
			return &twofold{kept, g}, nil
		}
		return c, nil
	}
}

func (g *clinic) decide(h *house, pick choice) error {
	actions := make([]float64, 3*jointDim)
	for i := range actions {
		actions[i] = float64(h.rng.IntN(1<<20)-1<<19) / (1 << 20)
	}
	best := h.live.Best(actions)
	// What is played is what the lines alone say.
	if h.live.pending == nil && h.rng.IntN(10) == 0 {
		build := func() ContextualPolicy { return jointPolicy(jointRho) }
		if want, err := g.other.best(h, build, actions); err != nil {
			return err
		} else if want != best {
			return caught("plays %d, and what was released says %d", best, want)
		}
	}
	e := Event{Number: h.live.s.Arms[0].Issued, Vector: actions[best*jointDim:][:jointDim]}
	if err := h.give(e, h.now+h.cfg.Window); err != nil {
		return err
	}
	for _, s := range h.live.s.Arms[0].Segments {
		if s.Start%jointLeaf != 0 || s.End != 0 && s.End != s.Start+jointLeaf {
			return caught("a segment from %d to %d", s.Start, s.End)
		}
	}
	return nil
}

// judge keeps the noise of the line, too.
func (g *clinic) judge(h *house, _ State, c *Commit) error {
	line, err := readLine(c.Line)
	if err != nil {
		return err
	}
	if line.Gram != nil || line.Rules != nil || line.N != jointLeaf {
		return caught("a line tells %s", c.Line)
	}
	took := c.Taken[0]
	if took.Start != g.released || took.End != g.released+jointLeaf {
		return caught("%+v was taken after %d", took, g.released)
	}
	g.released = took.End
	for _, t := range h.takenBy(took) {
		share, _ := h.share(t)
		z := append(slices.Clone(h.owner[t].Vector), 2*share-1)
		at := 0
		for i := range z {
			for j := i; j < len(z); j++ {
				g.truth[at] += math.Round(z[i]*z[j]*(1<<20)) / (1 << 20)
				at++
			}
		}
	}
	var text struct {
		N      int
		Vector []float64
	}
	if err := json.Unmarshal(line.Release, &text); err != nil {
		return err
	}
	leaves := g.released / jointLeaf
	if text.N != g.released {
		return caught("a release of %d records after %d", text.N, g.released)
	}
	noise := slices.Clone(text.Vector)
	m := jointPolicy(jointRho).Mechanism().(privacy.GramTree)
	for i := range noise {
		noise[i] -= g.truth[i]
		scale := m.Sigma
		if i == 0 || i == 3 || i == 5 {
			scale *= math.Sqrt2
		}
		// the line that it has all but one node from
		h.noises = append(h.noises, (noise[i]-g.noise[leaves&(leaves-1)][i])/scale)
	}
	g.noise[leaves] = noise
	if got := h.live.Ledger().Total().ZCDP(); math.Abs(got-jointRho) > 1e-6*jointRho {
		return caught("the ledger has %v, must have %v", got, jointRho)
	}
	return nil
}
