package choose

import "fmt"

// Judge ranks policies by their mean regret, the least first, as Rank does, from runs that are
// there: samples[i] has those of policy i, at least 16 and of all as many, run by run in the same
// worlds, and no regret is above top. verdicts[k] is of order[k] and order[k+1]. At all sizes
// 16·2^i together anything in what Judge says is wrong with probability level at most, so that it
// does not matter when one looks; means within the resolution of each other are a tie.
func Judge(samples [][]float64, top, level, resolution float64) (order []int, verdicts []Verdict, err error) {
	switch {
	case len(samples) < 1:
		return nil, nil, fmt.Errorf("%w: there are no samples, must be at least one", ErrQuestion)
	case !(level > 0 && level < 1):
		return nil, nil, fmt.Errorf("%w: level is %v, must be above 0 and below 1", ErrQuestion, level)
	case !(resolution > 0 && resolution < 1):
		return nil, nil, fmt.Errorf("%w: resolution is %v, must be above 0 and below 1",
			ErrQuestion, resolution)
	}
	runs := len(samples[0])
	for i, x := range samples {
		if len(x) != runs || runs < fewest {
			return nil, nil, fmt.Errorf("%w: sample %d has %d runs, must have at least %d, as all others",
				ErrQuestion, i+1, len(x), fewest)
		}
	}
	c := contest{ranked: len(samples), all: len(samples), level: level, resolution: resolution, top: top,
		min: judged, max: max(judged, runs)}
	c.plan()
	for i, x := range samples {
		size := 0
		for size+1 < len(c.sizes) && c.sizes[size+1] <= runs {
			size++
		}
		c.entrant[i] = played{x: x[:c.sizes[size]], size: size}
	}
	c.settle()
	c.rank()
	for k := 1; k < len(c.order); k++ {
		verdicts = append(verdicts, c.verdict(c.order[k-1], c.order[k]))
	}
	return c.order, verdicts, nil
}

// judged is the size, 16·2⁴, at which Judge's statements have the largest share of the level.
const judged = 256
