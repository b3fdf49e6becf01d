package release

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/privacy"
)

// questions is the sparse vector technique, [Sajed 2019, Algorithm 4] with one threshold, made
// ready. The threshold's noise is drawn once a group of slots, the query's at each question, and
// the first yes ends the group: its sums are released and its slots emptied. So no reward is read
// under two thresholds, and no threshold's noise serves twice.
type questions[T number] struct {
	threshold, query sampler[T]
	statistic        privacy.Statistic

	// the arms that the questions are about; empty: no question has been answered since the last yes
	group     []int
	ids       []int          // their slots
	noise     T              // of the threshold, once group is set
	answering privacy.Values // what a no tells: the numbers of rewards
}

// Ask implements Curator.
func (c *curator[T]) Ask(arms []int, above float64) (privacy.Released, error) {
	q := c.questions
	switch {
	case q == nil:
		return privacy.Released{}, errors.New("curator: a question, whose mechanism must be sparse")
	case math.IsNaN(above) || math.IsInf(above, 0):
		return privacy.Released{}, fmt.Errorf("curator: a question whether the statistic is "+
			"above %v, must be finite", above)
	case q.statistic == privacy.Centre && len(arms) > 1:
		return privacy.Released{}, fmt.Errorf("curator: a question about the centre of %d arms, "+
			"must be of one", len(arms))
	case len(q.group) > 0 && !slices.Equal(q.group, arms):
		return privacy.Released{}, fmt.Errorf("curator: a question about arms %v, must be about "+
			"%v until there has been a yes", arms, q.group)
	}
	if err := c.check(arms); err != nil {
		return privacy.Released{}, err
	}
	q.ids = q.ids[:0]
	for _, a := range arms {
		q.ids = append(q.ids, c.slots[a].id)
	}
	// Paid before it is answered: from here on the rewards have been read, whatever goes wrong.
	if err := c.ledger.Question(q.ids, c.charge); err != nil {
		return privacy.Released{}, fmt.Errorf("curator: %w", err)
	}
	if len(q.group) == 0 {
		b, err := q.threshold.Draw(1)
		if err != nil {
			return privacy.Released{}, fmt.Errorf("curator: noise of a threshold: %w", err)
		}
		q.noise, q.group = b, append(q.group, arms...)
	}
	a, err := q.query.Draw(1)
	if err != nil {
		return privacy.Released{}, fmt.Errorf("curator: noise of a question: %w", err)
	}
	if c.statistic(arms)+a <= c.level(above)+q.noise {
		q.answering.N = q.answering.N[:0]
		for _, arm := range arms {
			q.answering.N = append(q.answering.N, c.slots[arm].n)
		}
		if err := c.ledger.No(q.ids, c.charge, q.answering.N, c.tails[0]); err != nil {
			return privacy.Released{}, fmt.Errorf("curator: %w", err)
		}
		return privacy.Released{}, nil
	}
	// The threshold has had its yes and must not be compared with anything again, even if the
	// release fails: the group ends.
	q.group = q.group[:0]
	c.many.N, c.many.Sum, c.many.Tail = c.n[:len(arms)], c.sum[:len(arms)], c.tails[0]
	for i, arm := range arms {
		s := &c.slots[arm]
		var x T
		if err == nil {
			x, err = c.noise.Draw(1)
		}
		c.n[i], c.sum[i] = s.n, float64(float64(s.sum+x)*c.step)
		*s = slot[T]{id: c.open()}
	}
	if err != nil {
		return c.refuse(fmt.Errorf("curator: noise of a sum: %w", err))
	}
	released, err := c.ledger.ReleaseAll(q.ids, c.charge, &c.many)
	if err != nil {
		return c.refuse(fmt.Errorf("curator: %w", err))
	}
	return released, nil
}

// statistic is what the question is about, in steps.
func (c *curator[T]) statistic(arms []int) T {
	if c.questions.statistic == privacy.Centre {
		s := &c.slots[arms[0]]
		// n/2 is a whole number of steps, and with at most 2^42 rewards this product of a power
		// of two is exact.
		x := s.sum - T(float64(float64(s.n)*(c.grid/2)))
		if x < 0 {
			x = -x
		}
		return x
	}
	lo, hi := c.slots[arms[0]].sum, c.slots[arms[0]].sum
	for _, a := range arms[1:] {
		lo, hi = min(lo, c.slots[a].sum), max(hi, c.slots[a].sum)
	}
	return hi - lo
}

// level is a public threshold in steps, rounded up to a whole one if sums are integers.
func (c *curator[T]) level(above float64) T {
	x := float64(above * c.grid)
	if c.half > 0 {
		const far = 1 << 62 // beyond every sum, and with the noise added still no overflow
		x = math.Ceil(min(max(x, -far), far))
	}
	return T(x)
}

// errAsk is what becomes of a release without a question where one is due.
var errAsk = errors.New("a sparse mechanism releases nothing without a question")
