package audit

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	lin "github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// What goes wrong with running Gram matrices that outlive their process.
type keeping string

const (
	keptWell  keeping = ""
	keptThin  keeping = "half the scale"
	keptAnew  keeping = "noise drawn again after a restart"
	keptTwice keeping = "a record in two leaves"
	keptBack  keeping = "its store put back one line"
)

const keptLeaf = 4

// restarted is the audit of running Gram matrices of real records under joint DP, in leaves, by a
// curator that is made anew from its state and its last line before each release. The first record
// is a = 1 with a reward of −1 or 1, all others are 0; of d = 1 the number that moves is Σ a·r. The
// attacker sees every line, and adds up what is new in each node that has the record, or all lines.
func restarted(rho float64, how keeping) (direct, error) {
	leaves := 16
	if how == keptAnew {
		leaves = 64 // more to average over
	}
	m, err := privacy.NewGramLeaves(privacy.ZCDP{Rho: rho}, keptLeaf*leaves, keptLeaf)
	if err != nil {
		return direct{}, err
	}
	d := direct{name: "running Gram matrices, restarted", claim: m.Loss(), attack: "sum of noisy numbers",
		adversaries: []string{"node by node", "all lines"}, model: View.String()}
	switch how {
	case keptWell:
	case keptThin:
		d.fault, m.Sigma = HalfScale, m.Sigma/2
	case keptAnew:
		d.fault = Redrawn
	case keptTwice:
		d.fault = Twice
	}
	if how != keptWell {
		d.name += ", " + string(how)
	}
	d.worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			return func(in bool, _ *noise.Fast, out []float64) error {
				reward := -1.0
				if in {
					reward = 1
				}
				lines, err := keptLines(m, reward, how)
				if err != nil {
					return err
				}
				out[0] = coarse(keptScore(lines, adversary == 1))
				return nil
			}
		}
	}
	return d, nil
}

// A keptLine is what a line says: after so many leaves, Σ a·r.
type keptLine struct {
	leaves int
	sum    float64
}

// keptLines are the lines of one game.
func keptLines(m privacy.GramTree, reward float64, how keeping) (out []keptLine, err error) {
	var text, state, oldText, oldState []byte
	again := 0 // how often a store was put back
	for leaf := 0; leaf < m.Leaves(m.Horizon); leaf++ {
		var line bytes.Buffer
		l := privacy.NewLedger(privacy.WithTranscript(&line))
		var last privacy.ReleasedVector
		if text != nil { // the last line is all that a tree of one slot looks at
			if last, err = l.RestoreVector(text); err != nil {
				return nil, err
			}
		}
		f, err := release.RealFeatures(release.FeatureConfig{Dim: 1, Slots: 1, Mechanism: m, Ledger: l})
		if err != nil {
			return nil, err
		}
		c, ok := f.(release.KeptCurator)
		if !ok {
			return nil, fmt.Errorf("audit: the curator is a %T, must be one that is kept", f)
		}
		leaves := []int{leaf}
		if how == keptAnew {
			leaves = nil
			for i := range leaf + 1 {
				leaves = append(leaves, i)
			}
		} else if err := c.Restore(0, state, last); err != nil {
			return nil, err
		}
		for _, i := range leaves {
			sums := make([]int64, c.Width())
			if i == 0 || i == 1 && how == keptTwice {
				c.Products(sums, []float64{1}, reward)
			}
			if err := c.AddSteps(0, keptLeaf, sums); err != nil {
				return nil, err
			}
		}
		r, err := c.Release(0)
		if err != nil {
			return nil, err
		}
		out = append(out, keptLine{leaf + 1, r.At(1)})
		if how == keptAnew {
			continue
		}
		oldText, oldState, text = text, state, bytes.Clone(line.Bytes())
		if state, err = c.State(0); err != nil {
			return nil, err
		}
		if how == keptBack && again < 16 {
			text, state = oldText, oldState
			leaf, again = leaf-1, again+1
		}
	}
	return out, nil
}

// keptScore is the sum of what is new in each node that has the first leaf, or of all lines, each by
// what its noise weighs.
func keptScore(lines []keptLine, all bool) (score float64) {
	for _, line := range lines {
		switch t := line.leaves; {
		case all:
			score += line.sum / float64(bits.OnesCount(uint(t)))
		case t&(t-1) == 0: // the node of the first t leaves
			score += line.sum
		}
	}
	return score
}

// segmented is the audit of segments of real records, of which the first is one of the pair that moves a
// release the furthest, a and a' at 60° with rewards of 1 and −1. The attacker sees every release, and adds up
// all numbers by what their noise weighs.
func segmented(rho float64, how keeping) (direct, error) {
	m, err := privacy.NewGramGaussian(privacy.ZCDP{Rho: rho})
	if err != nil {
		return direct{}, err
	}
	d := direct{name: "segments", claim: m.Loss(), attack: "likelihood ratio", adversaries: []string{"all numbers"},
		model: View.String()}
	releases := 1
	switch how {
	case keptThin:
		d.fault, m.Sigma = HalfScale, m.Sigma/2
	case keptTwice:
		d.fault, releases = Twice, 4
	}
	if how != keptWell {
		d.name += ", " + string(how)
	}
	far := math.Sqrt(0.75)
	pair := [2][3]float64{{1, 0, 1}, {0.5, far, -1}}
	weights := [5]float64{0.75, -far, 1.5, -0.75, far} // what it moves, twice that off the diagonal
	d.worlds = func(int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			return func(in bool, _ *noise.Fast, out []float64) error {
				f, err := release.RealFeatures(release.FeatureConfig{Dim: 2, Slots: 1, Mechanism: m})
				if err != nil {
					return err
				}
				c, ok := f.(release.StepFeatureCurator)
				if !ok {
					return fmt.Errorf("audit: the curator is a %T, must be one that takes sums of steps", f)
				}
				record, score := pair[0], 0.0
				if !in {
					record = pair[1]
				}
				for range releases {
					sums := make([]int64, c.Width())
					c.Products(sums, record[:2], record[2])
					if err := c.AddSteps(0, 1, sums); err != nil {
						return err
					}
					r, err := c.Release(0)
					if err != nil {
						return err
					}
					for i, w := range weights {
						score += float64(w * r.At(i))
					}
				}
				out[0] = coarse(score / float64(releases))
				return nil
			}
		}
	}
	return d, nil
}

// selfKept are running Gram matrices in leaves, their curator, and LinUCB on it; and segments.
func selfKept() ([]selfItem, error) {
	const rho = 0.5
	var all []selfItem
	for _, how := range []keeping{keptWell, keptThin, keptAnew, keptTwice, keptBack} {
		d, err := restarted(rho, how)
		if err != nil {
			return nil, err
		}
		all = append(all, ofDirect(d, selfDelta, how != keptWell, 8))
	}
	for _, how := range []keeping{keptWell, keptThin, keptTwice} {
		d, err := segmented(rho, how)
		if err != nil {
			return nil, err
		}
		all = append(all, ofDirect(d, selfDelta, how != keptWell, 2))
	}
	for _, e := range catalog.ContextualPolicies() {
		if e.Name != "lin-ucb" {
			continue
		}
		for _, twin := range []bool{false, true} {
			b := privacy.ZCDP{Rho: rho}
			x, err := vectorSubject(e, 16, b, catalog.Params{"noise": float64(lin.GramTree), "leaf": 4}, twin,
				clipping{real: true})
			if err != nil {
				return nil, err
			}
			d := x.direct
			d.name = e.Name + " leaf=4, real"
			if twin {
				d.name += ", " + d.fault.String()
			}
			all = append(all, ofDirect(d, selfDelta, twin, 4))
		}
	}
	return all, nil
}
