package bandit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
)

// Empirical is the law of logged rewards: each of them is drawn with the same probability,
// with replacement.
type Empirical struct {
	finite
	text string
}

// NewEmpirical returns the law of a log in which each of these rewards came as often as its count
// says. Rewards are finite, counts positive; there is at least one.
func NewEmpirical(counts map[float64]int) (*Empirical, error) {
	values := make([]float64, 0, len(counts))
	for v, k := range counts {
		if !(math.Abs(v) <= MaxAbs) { // an error does not tell a reward
			return nil, fmt.Errorf("empirical: a reward is no finite number, at most %v in "+
				"absolute value", MaxAbs)
		}
		if k <= 0 {
			return nil, fmt.Errorf("empirical: a reward comes %d times: a count must be positive", k)
		}
		values = append(values, unsigned(v))
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("empirical: no rewards, must have at least one")
	}
	slices.Sort(values)
	weight := make([]float64, len(values))
	h := sha256.New()
	n := 0
	for i, v := range values {
		k := counts[v]
		weight[i] = float64(k)
		if n += k; n < 0 {
			return nil, fmt.Errorf("empirical: the counts overflow")
		}
		fmt.Fprintf(h, "%s:%d\n", number(v), k)
	}
	return &Empirical{newFinite(values, weight),
		fmt.Sprintf("empirical(n=%d,sha256=%s)", n, hex.EncodeToString(h.Sum(nil)))}, nil
}

// String is empirical(n=…,sha256=…): the number of logged rewards and the hash of their values and
// counts. It is a content key; it cannot be read back.
func (e *Empirical) String() string { return e.text }

// Every law is a Law.
var (
	_ Law = Bernoulli{}
	_ Law = Gaussian{}
	_ Law = ClippedGaussian{}
	_ Law = Beta{}
	_ Law = Uniform{}
	_ Law = (*Table)(nil)
	_ Law = (*Empirical)(nil)
)
