package stopping

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/release"
)

// simulate runs the rule on samples of a law, with fast noise: it protects nobody. Samples outside
// [−R,R] are clipped, and counted. With a limit > 0 the rule gives up after so many samples, with
// an *UnfinishedError.
//
// A rule that asks after every sample is not asked in vain: see skip. The results have the law that
// one question a sample gives.
func simulate(ctx context.Context, rule Rule, law bandit.Law, limit int, samples,
	privacyNoise *noise.Fast) (Result, error) {
	switch {
	case law == nil:
		return Result{}, errors.New("stopping: law is missing")
	case samples == nil || privacyNoise == nil:
		return Result{}, errors.New("stopping: a stream is missing, must have one of samples " +
			"and one of noise")
	case limit < 0:
		return Result{}, fmt.Errorf("%s: cap is %d, must be at least 1, or 0 for none", rule.name, limit)
	}
	w := drawer{law: law, stream: samples, r: rule.r}
	lo, hi := law.Support()
	w.inside = lo >= -rule.r && hi <= rule.r
	if !rule.doubles {
		return skip(ctx, rule, &w, limit, privacyNoise)
	}
	cur, err := release.Simulated(release.Config{Arms: 1, Lo: -rule.r, Hi: rule.r,
		Mechanism: rule.Mechanism()}, privacyNoise)
	if err != nil {
		return Result{}, err
	}
	out, err := run(ctx, rule, cur, limit, func(n int) (int, error) { return n, cur.AddSum(0, n, w.sum(n)) })
	out.Clipped = w.clipped
	return out, err
}

// A drawer draws sums of samples, clipped to [−R,R].
type drawer struct {
	law     bandit.Law
	stream  *noise.Fast
	r       float64
	inside  bool // no sample is ever clipped
	clipped int
}

func (w *drawer) sum(n int) float64 {
	if w.inside {
		return w.law.Sum(n, w.stream)
	}
	sum := 0.0
	for range n {
		x := w.law.Draw(w.stream)
		if x > w.r {
			x = w.r
			w.clipped++
		} else if x < -w.r {
			x = -w.r
			w.clipped++
		}
		sum += x
	}
	return sum
}

// longest is how many questions are passed over at once.
const longest = min(1<<50, math.MaxInt/4)

// skip simulates a rule that asks after every sample without drawing noise for each question.
//
// Given the samples and the threshold's noise, question t is answered yes with probability p_t =
// P(A > gap_t), independently of the others, where gap_t is how far the level and its noise are
// above the statistic. One sample moves the statistic by ½ at most, and levels rise, so in the next
// w questions the gap is at least gap − w/2 =: g, and p_t ≤ p = P(A > g). So let candidates come
// with probability p each, the next one a geometric number of questions away, draw the sum of the
// samples up to it at once, and let the candidate be a yes with probability p_t/p. That is the same
// law, exactly; and where p is 0 (no noise) no question of the window can be a yes.
func skip(ctx context.Context, rule Rule, w *drawer, limit int, s *noise.Fast) (Result, error) {
	if limit == 0 {
		limit = policy.Forever
	}
	m := rule.Mechanism()
	threshold, scale := s.Laplace(m.Threshold), m.Query
	t, centred := 0, 0.0 // samples, and their sum in units of 2R
	gap := threshold     // there is no question after no samples, and its statistic is 0
	for looks := 0; t < limit; looks++ {
		if looks&0xfff == 0 && ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		// A window that leaves the noise 12 scales to go, or else half of the gap.
		n := 1
		if far := 2 * (gap - 12*scale); far > gap {
			n = int(min(far, longest))
		} else if gap > 1 {
			n = int(min(gap, longest))
		}
		n = max(1, min(n, limit-t))
		p := 1.0
		if n > 1 {
			p = exceeds(scale, gap-float64(n)/2)
		}
		step := n
		candidate := p == 1
		if p > 0 && p < 1 {
			// P(no candidate among the first j) = (1−p)^j.
			if j := math.Floor(s.Exponential()/-math.Log1p(-p)) + 1; j <= float64(n) {
				step, candidate = int(j), true
			}
		}
		centred += w.sum(step) / (2 * rule.r)
		t += step
		gap = rule.above(t, t) + threshold - math.Abs(centred)
		if candidate && s.Float64()*p < exceeds(scale, gap) {
			sum := centred + s.Laplace(m.Scale)
			return Result{Estimate: float64(2 * rule.r * (sum / float64(t))), Samples: t,
				Questions: t, Clipped: w.clipped, Loss: rule.loss}, nil
		}
	}
	return Result{}, &UnfinishedError{Samples: t, Capped: true, Spent: m.Questions.Loss()}
}

// exceeds is P(A > x) for A ~ Lap(scale).
func exceeds(scale, x float64) float64 {
	switch {
	case scale == 0 && x < 0:
		return 1
	case scale == 0:
		return 0
	case x < 0:
		return 1 - math.Exp(x/scale)/2
	}
	return math.Exp(-x/scale) / 2
}
