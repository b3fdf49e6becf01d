package simulate

import (
	"encoding/json"
	"sync"

	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A draw is one sum that a curator let out, with its noise.
type draw struct {
	n         int
	steps     []int64 // one of an arm, as many as there are coordinates of a vector
	mechanism privacy.Mechanism
	shown     bool
}

// draws are all of a world, by what was released. Where they are blind, nothing of a reward is in it.
type draws struct {
	mu    sync.Mutex
	of    map[float64][]*draw
	blind bool
}

// add notes what was released, of which the first number tells it from others.
func (s *draws) add(value float64, d draw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[value] = append(s.of[value], &d)
}

// show is the draw of a number that is shown; nil if none was drawn, or it was shown before. Two may be the same
// by chance, of which one may have been lost: then it is one that fits.
func (s *draws) show(value float64, fits func(*draw) bool) (found *draw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.of[value] {
		if !d.shown && (found == nil || !fits(found)) {
			found = d
		}
	}
	if found != nil {
		found.shown = true
	}
	return found
}

// A seen curator is that of people's rewards, of a metric, or of a rule, and notes what it lets out.
type seen struct {
	release.StepCurator
	draws     *draws
	mechanism privacy.Mechanism
	steps     []int64
}

// curator builds one.
func (s *draws) curator(c release.Config) (release.Curator, error) {
	real, err := release.Real(c)
	if err != nil {
		return nil, err
	}
	return &seen{real.(release.StepCurator), s, c.Mechanism, make([]int64, c.Arms)}, nil
}

func (c *seen) AddSteps(arm, n int, steps int64) error {
	c.steps[arm] += steps
	if c.draws.blind {
		steps = 0
	}
	return c.StepCurator.AddSteps(arm, n, steps)
}

func (c *seen) Release(arms []int) (privacy.Released, error) {
	out, err := c.StepCurator.Release(arms)
	for i, a := range arms {
		if err == nil {
			c.draws.add(out.Sum(i), draw{n: out.N(i), steps: []int64{c.steps[a]}, mechanism: c.mechanism})
		}
		c.steps[a] = 0
	}
	return out, err
}

// A seenVectors curator is one of vectors.
type seenVectors struct {
	release.StepFeatureCurator
	draws     *draws
	mechanism privacy.Mechanism
	n         int
	sums      []int64
}

// A blindKept curator is one of running products, whose noise is kept from release to release, and is not
// taken off.
type blindKept struct{ release.KeptCurator }

func (c blindKept) AddSteps(slot, n int, sums []int64) error {
	return c.KeptCurator.(release.StepFeatureCurator).AddSteps(slot, n, make([]int64, len(sums)))
}

// vectors builds one.
func (s *draws) vectors(c release.FeatureConfig) (release.FeatureCurator, error) {
	real, err := release.RealFeatures(c)
	if err != nil || c.Mechanism.Continual() {
		if kept, ok := real.(release.KeptCurator); ok && s.blind {
			return blindKept{kept}, nil
		}
		return real, err
	}
	of := real.(release.StepFeatureCurator)
	return &seenVectors{of, s, c.Mechanism, 0, make([]int64, of.Width())}, nil
}

func (c *seenVectors) AddSteps(slot, n int, sums []int64) error {
	c.n += n
	for i, x := range sums {
		c.sums[i] += x
	}
	if c.draws.blind {
		of, lost := sums, 0
		sums = make([]int64, len(of))
		_, counts := c.mechanism.(privacy.Histogram)
		for ; counts && lost < len(of); lost += 2 { // all has been lost
			sums[lost] = of[lost] + of[lost+1]
		}
	}
	return c.StepFeatureCurator.AddSteps(slot, n, sums)
}

func (c *seenVectors) Release(slot int) (privacy.ReleasedVector, error) {
	out, err := c.StepFeatureCurator.Release(slot)
	if err == nil {
		c.draws.add(out.At(0), draw{n: c.n, steps: c.sums, mechanism: c.mechanism})
	}
	c.n, c.sums = 0, make([]int64, len(c.sums))
	return out, err
}

// A shown line is what a line of a transcript says of what was released.
type shown struct {
	At     string
	Plays  []shownRow
	Ahead  []shownRow // released, and not of a batch yet
	Rest   []shownRow
	N      *int
	Off    *int
	Add    *int
	Change *struct {
		Guard *struct{ Arm string }
		Share *float64
		Add   []struct{ Name string }
	}
	Gone    int // decisions that were destroyed at the end
	End     *string
	Release *released
	Metrics []released
	Rules   []struct{ Release released }
}

// A shownRow is what a line says of a row of decisions of an arm.
type shownRow struct {
	Arm, Rounds, Gone int
	Release, Held     bool
	Cells             []int // each with a sum of its own; none where there are no cells
}

// slots is how many sums it has released.
func (r shownRow) slots() int { return max(1, len(r.Cells)) }

// arms are the rows of which a line has released sums, in their order. Rows has how many of an arm's were
// ahead and are to come in a batch.
func (s *shown) arms(rows map[int]int) (out []shownRow, ok bool) {
	ok = true
	if s.N != nil {
		return []shownRow{{}}, ok
	}
	for _, p := range s.Plays {
		switch {
		case p.Held:
			rows[p.Arm]--
			ok = ok && rows[p.Arm] >= 0
		case p.Release:
			out, ok = append(out, p), ok && rows[p.Arm] == 0
		}
	}
	for _, p := range s.Ahead {
		out = append(out, p)
		rows[p.Arm]++
	}
	for _, r := range s.Rest {
		if r.Rounds > 0 {
			out = append(out, r)
		}
	}
	return out, ok
}

type released struct {
	N      json.RawMessage // one, or one of each arm
	Sum    []float64
	Vector []float64
}
