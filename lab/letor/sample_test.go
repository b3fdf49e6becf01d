package letor

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/sotto-dp/sotto/noise"
)

// WriteSample writes rows of the LETOR form whose clusters are known: each row is of one of the
// groups, drawn uniformly, with features around the group's own centre and a rating around its own
// mean. It is for tests and examples: it says nothing of any real search.
func WriteSample(w io.Writer, rows, features, groups int, seed uint64) error {
	return writeSample(w, rows, features, groups, seed, nil)
}

// writeSample tells of each row which group it is of, if asked to.
func writeSample(w io.Writer, rows, features, groups int, seed uint64, tell func(group int)) error {
	if rows < 1 || features < 1 || features > MaxFeatures || groups < 1 {
		return fmt.Errorf("letor: a sample of %d rows, %d features and %d groups: each must be "+
			"at least 1, and features at most %d", rows, features, groups, MaxFeatures)
	}
	random := rand.New(noise.Key{Seed: seed, Experiment: "letor sample", Role: noise.RoleInstance}.ChaCha8())
	centre, mean := make([][]float64, groups), make([]float64, groups)
	for g := range centre {
		centre[g] = make([]float64, features)
		for i := range centre[g] {
			// Features have scales of their own, as real ones have.
			centre[g][i] = math.Pow(10, float64(i%4)) * (4 * random.Float64())
		}
		mean[g] = MaxRating * (0.1 + 0.6*random.Float64())
	}
	b := bufio.NewWriter(w)
	query := 1
	for row := range rows {
		g := random.IntN(groups)
		if tell != nil {
			tell(g)
		}
		if row%20 == 19 {
			query++
		}
		rating := 0
		for range MaxRating {
			if random.Float64() < mean[g]/MaxRating {
				rating++
			}
		}
		fmt.Fprintf(b, "%d qid:%d", rating, query)
		for i, c := range centre[g] {
			x := c + math.Pow(10, float64(i%4))*0.2*random.NormFloat64()
			fmt.Fprintf(b, " %d:%.3f", i+1, x)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}
