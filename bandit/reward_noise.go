package bandit

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/noise"
)

// RewardNoise is the law of a reward around a mean m that is linear in the action. The zero
// value is SignNoise.
//
//	sign             1 with probability (1+m)/2, else −1: bounded and 1-subgaussian, so that privacy and regret bounds both hold as proved
//	gaussian(sd=…)   N(m, sd²): unbounded, as in the experiments of [Azize 2024] and [Azize and Basu 2024] (sd = 1). A curator clips it, which bends the means; an unclipped
//	                 run has no privacy guarantee
type RewardNoise struct{ sd float64 } // sd 0: signs

// SignNoise is rewards of −1 and 1.
func SignNoise() RewardNoise { return RewardNoise{} }

// GaussianNoise is normal rewards of this standard deviation, sd > 0.
func GaussianNoise(sd float64) (RewardNoise, error) {
	if err := checkSD("gaussian noise", sd); err != nil {
		return RewardNoise{}, err
	}
	return RewardNoise{sd}, nil
}

// Law is the law of rewards of this mean. A mean of signs must be in [−1,1]; beyond it by
// rounding is at its end.
func (n RewardNoise) Law(mean float64) (Law, error) {
	if n.sd > 0 {
		return familyLaw(NewGaussian(mean, n.sd))
	}
	if !(math.Abs(mean) <= 1+unitball.Slack) {
		return nil, fmt.Errorf("sign: the mean is %v, must be between -1 and 1", mean)
	}
	p := (1 + n.mean(mean)) / 2
	switch {
	case p == 0:
		return NewTable([]float64{-1}, []float64{1})
	case p == 1:
		return NewTable([]float64{1}, []float64{1})
	}
	return NewTable([]float64{-1, 1}, []float64{1 - p, p})
}

// mean is the mean of rewards that were meant to have mean m: signs cannot leave [−1,1].
func (n RewardNoise) mean(m float64) float64 {
	switch { // rather than min and max: these are all but never taken
	case n.sd > 0:
		return m
	case m > 1:
		return 1
	case m < -1:
		return -1
	}
	return m
}

// draw is one reward. What it takes from the stream does not depend on the mean. The probability of
// a sign is rounded to a multiple of 2⁻⁵³: an exact coin would now and then take a second word.
func (n RewardNoise) draw(mean float64, s *noise.Fast) float64 {
	if n.sd > 0 {
		return mean + float64(n.sd*s.Normal())
	}
	if s.Float64() < 0.5+0.5*mean {
		return 1
	}
	return -1
}

// bounded says whether rewards are in [−1,1].
func (n RewardNoise) bounded() bool { return n.sd == 0 }

// String is sign or gaussian(sd=…).
func (n RewardNoise) String() string {
	if n.sd > 0 {
		return "gaussian(sd=" + number(n.sd) + ")"
	}
	return "sign"
}
