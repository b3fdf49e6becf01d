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
// grew from is one node's. With segments each line is its own records', until a tree goes on with later ones.
type clinic struct {
	segments bool
	base     int // decisions before the tree, once there is one
	releases int // and releases
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

// ofSegments is ofClinic on disjoint segments, the first two of half a leaf. What is played is far from even in
// all directions, which the test proves after 80 decisions or so; the rest is in a tree.
func ofSegments() house {
	h := ofClinic()
	h.game.(*clinic).segments = true
	return h
}

func jointPolicy(rho float64) *linear.LinUCB {
	p, err := linear.NewLinUCB(jointDim, jointHorizon, privacy.ZCDP{Rho: rho}, linear.LinUCBOptions{Lambda: 0.5,
		Risk: 0.01, Noise: linear.GramTree, Step: release.ExactStep, Leaf: jointLeaf})
	if err != nil {
		panic(err)
	}
	return p
}

func (g *clinic) policy() ContextualPolicy {
	if !g.segments {
		return jointPolicy(jointRho)
	}
	p, err := linear.NewJDPGreedy(jointDim, jointHorizon, privacy.ZCDP{Rho: jointRho}, linear.JDPGreedyOptions{
		Risk: 0.99, First: jointLeaf / 2, Growth: 2, Leaf: jointLeaf, Diversity: 1, Step: release.ExactStep})
	if err != nil {
		panic(err)
	}
	return p
}

// A pupil says what it learns.
type pupil struct {
	ContextualPolicy
	learn func(privacy.ReleasedVector)
}

func (p pupil) Learn(r privacy.ReleasedVector) {
	p.learn(r)
	p.ContextualPolicy.Learn(r)
}

func (p pupil) Whole(n int) error { return p.ContextualPolicy.(wholly).Whole(n) }

// A liar has a curator of its own under it, and tells its ledger of the mechanism.
type liar struct {
	release.KeptCurator
	ledger *privacy.Ledger
	m      privacy.Mechanism
	g      *clinic
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
	return c.ledger.ReleaseVector(c.g.releases, c.m, &v)
}

// A forgetful liar draws shown noise again after a restart: it keeps the sums alone.
type forgetful struct{ liar }

func (c *forgetful) AddSteps(slot, n int, sums []int64) error {
	c.g.sums[c.g.released] = slices.Clone(sums)
	return c.KeptCurator.AddSteps(slot, n, sums)
}

func (c *forgetful) State(int) ([]byte, error) { return []byte("{}"), nil }

func (c *forgetful) Restore(_ int, state []byte, _ privacy.ReleasedVector) error {
	for n := c.g.base; n < c.g.released && state != nil; n += jointLeaf {
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
	cfg.Contexts = pupil{g.policy(), func(r privacy.ReleasedVector) {
		h.seeVector(taught, r)
		taught++
	}}
	cfg.Vectors = func(fc release.FeatureConfig) (release.FeatureCurator, error) {
		honest := fc
		m, tree := fc.Mechanism.(privacy.GramTree)
		switch {
		case h.fault == halfNoise && tree:
			m.Sigma /= 2
			fallthrough
		case h.fault == redraws && tree:
			fc.Mechanism, fc.Ledger = m, privacy.NewLedger()
		case h.fault == halfNoise:
			fc.Mechanism = privacy.GramGaussian{Sigma: fc.Mechanism.(privacy.GramGaussian).Sigma / 2}
			fc.Ledger = privacy.NewLedger()
		}
		c, err := release.RealFeatures(fc)
		if err != nil {
			return nil, err
		}
		kept := c.(release.KeptCurator)
		l := liar{kept, honest.Ledger, honest.Mechanism, g}
		switch {
		case h.fault == halfNoise:
			return &l, nil
		case h.fault == redraws && tree:
			return &forgetful{l}, nil
		case h.fault == twoLeaves:
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
		if want, err := g.other.best(h, g.policy, actions); err != nil {
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
		if s.End != 0 && s.End != s.Start+g.length(s.Start) {
			return caught("a segment from %d to %d", s.Start, s.End)
		}
	}
	return nil
}

// length is of the segment that begins there.
func (g *clinic) length(start int) int {
	if g.segments && start < jointLeaf {
		return jointLeaf / 2
	}
	return jointLeaf
}

// judge keeps the noise of the line, too.
func (g *clinic) judge(h *house, _ State, c *Commit) error {
	line, err := readLine(c.Line)
	if err != nil {
		return err
	}
	took := c.Taken[0]
	if line.Gram != nil || line.Rules != nil || line.N != g.length(took.Start) {
		return caught("a line tells %s", c.Line)
	}
	if took.Start != g.released || took.End != g.released+line.N {
		return caught("%+v was taken after %d", took, g.released)
	}
	g.released = took.End
	var text struct {
		Slot, N   int
		Mechanism struct{ Mechanism string }
		Vector    []float64
	}
	if err := json.Unmarshal(line.Release, &text); err != nil {
		return err
	}
	tree := text.Mechanism.Mechanism == "gram-tree"
	switch {
	case !g.segments && (!tree || text.Slot != 0):
		return caught("a release is of %s in slot %d", text.Mechanism.Mechanism, text.Slot)
	case g.segments && (tree && took.Start < 60 || g.base > 0 && !tree || text.Slot != g.releases):
		return caught("a release of %d on is of %s in slot %d", took.Start, text.Mechanism.Mechanism, text.Slot)
	case g.segments && tree && g.base == 0:
		g.base = took.Start
		fallthrough
	case g.segments && !tree:
		clear(g.truth)
	}
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
	noise := slices.Clone(text.Vector)
	for i := range noise {
		noise[i] -= g.truth[i]
	}
	if !tree {
		if g.releases++; text.N != line.N || len(noise) != jointWidth-1 {
			return caught("a release of %d records and %d numbers, of a segment of %d", text.N, len(noise), line.N)
		}
		sigma := 3 / math.Sqrt2 / math.Sqrt(2*jointRho)
		for i, x := range noise {
			if i == 1 { // off the diagonal
				x *= math.Sqrt2
			}
			h.noises = append(h.noises, x/sigma)
		}
	} else {
		leaves := (g.released - g.base) / jointLeaf
		if text.N != g.released-g.base {
			return caught("a release of %d records after %d", text.N, g.released)
		}
		m, err := privacy.NewGramLeaves(privacy.ZCDP{Rho: jointRho}, jointHorizon-g.base, jointLeaf)
		if err != nil {
			return err
		}
		for i := range noise {
			scale := m.Sigma
			if i == 0 || i == 3 || i == 5 {
				scale *= math.Sqrt2
			}
			// the line that it has all but one node from
			h.noises = append(h.noises, (noise[i]-g.noise[leaves&(leaves-1)][i])/scale)
		}
		g.noise[leaves] = noise
	}
	near := 1e-6
	if g.segments { // the noise is that of two 64ths of a step less at most, of σ/√2 off the diagonal
		near = 1.0 / 16 / (1.5 / math.Sqrt(2*jointRho) * (1 << 20))
	}
	if got := h.live.Ledger().Total().ZCDP(); got > jointRho*(1+1e-12) || got < jointRho*(1-near) {
		return caught("the ledger has %v, must have %v", got, jointRho)
	}
	return nil
}
