// Package interval has confidence from releases: intervals for the means of arms, for their
// differences and for what other rules would have earned, that hold at all times together, whoever
// looks when and stops for whatever reason. Begin with Sums.Interval, or with a Table of arms.
package interval

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// Sums is all that was released of an arm, added up: what an interval for its mean is made of.
type Sums struct {
	N        int     // rewards in the sums
	Sum      float64 // of them, mapped to [0,1], and of the noise
	Releases int     // in which they were, each with noise of its own
	// Noise of one release: privacy.Laplace, privacy.Gaussian, or nil or privacy.Exact for none. It
	// is as promised or as charged: the noise that release.Real draws for it is larger by next to
	// nothing, and the interval allows for that. Of privacy.Aggregated it is all the noise that there can
	// be: of two servers two whole ones a release, of local trust one of each reward. What is beyond the
	// reach of that noise is clipped, with probability 2^-64 for each whole one.
	Noise privacy.Mechanism
	// Noises is how many of these are in the sums at most, if more than one a release: where users
	// add noise, say; else 0.
	Noises int
}

// Interval is a confidence interval for the arm's mean that holds at all times together: whatever
// is released, and whoever looks when and stops for whatever reason, the probability that there is
// ever a release after which the mean is outside is at most risk, in (0,1). The mean is that of
// rewards clipped to the declared range and mapped to [0,1], and so are lo and hi.
//
// It is assumed that each reward of the arm has this mean given all before it (draws of one law
// will do), that noise is independent of all else, and that which rewards a release reads, and how
// many, depends on earlier releases and on what has nothing to do with rewards: as in every play of
// this module. Which arm is played may depend on all that was released. Where means change, it is an
// interval for the average of the means that the arm's rewards had so far, each given all before it.
//
// Proof. Let release k read n_k rewards with the noise Z_k, S_k their noisy sum, and |λ| < 1/b for
// Lap(b). As X ∈ [0,1], E e^{λX} ≤ 1−μ+μe^λ by convexity; E e^{λZ} ≤ ψ(λ), which is 1/(1−λ²b²) for
// Laplace noise and e^{λ²σ²/2} for normal noise, discrete or not (Canonne, Kamath and Steinke 2020
// for the normal one; the other has (cosh(1/b)−1)/(cosh(1/b)−cosh λ)). So
//
//	M_k(λ) = Π_{i≤k} e^{λS_i} / ((1−μ+μe^λ)^{n_i} ψ(λ))
//
// is a supermartingale that begins at 1, as n_i is known before S_i, and so is its mixture over λ
// with weights that are fixed beforehand, here equal ones of ±λ_0 2^{−j/2}. By Ville's inequality
// that is ever at least 1/risk with probability risk at most. The interval is the means at which it
// is below. Where means change, (1−μ+μe^λ)^n at their average μ is at least Π(1−μ_s+μ_s e^λ), as
// log(1+μg) is concave in μ, so M is at most the supermartingale that has this product.
//
// The noise is inside of the supermartingale, and is paid for as part of the deviation of
// the sum: not by a bound on the noise beside one on the rewards. It is the sub-Bernoulli
// confidence sequence of Howard et al. (2021) by a discrete mixture, and the noise enters as the
// randomisation of each reward does in Waudby-Smith et al. (2023). To adapt to the variance of
// rewards between 0 and 1, as betting on each of them does, one would have to see them.
func (s Sums) Interval(risk float64) (lo, hi float64, err error) {
	level, err := levelOf(risk)
	if err != nil {
		return 0, 1, err
	}
	m, err := s.mixture()
	if err != nil {
		return 0, 1, err
	}
	return max(0, m.edge(0, level)-rounding), min(1, m.edge(1, level)+rounding), nil
}

// Against is what the releases say against a mean, from 0 to 1: the logarithm of the
// supermartingale of Interval's proof at it. If that is the arm's mean, it is ever above
// log(1/risk) with probability risk at most.
func (s Sums) Against(mean float64) (float64, error) {
	if !(mean >= 0 && mean <= 1) {
		return 0, fmt.Errorf("interval: mean is %v, must be from 0 to 1", mean)
	}
	m, err := s.mixture()
	if err != nil {
		return 0, err
	}
	value, _ := m.value(mean)
	return value, nil
}

// Difference is an interval for the mean of arm a less that of arm b that holds at all times
// together, as Interval does. The product of the two arms' supermartingales is one too, and the
// interval is the differences of the pairs of means at which it is below 1/risk: narrower than what
// two intervals leave, of which each would have to hold.
func Difference(a, b Sums, risk float64) (lo, hi float64, err error) {
	level, err := levelOf(risk)
	if err != nil {
		return -1, 1, err
	}
	ma, err := a.mixture()
	if err != nil {
		return -1, 1, err
	}
	mb, err := b.mixture()
	if err != nil {
		return -1, 1, err
	}
	return max(-1, -most(mb, ma, level)-2*rounding), min(1, most(ma, mb, level)+2*rounding), nil
}

func levelOf(risk float64) (float64, error) {
	if !(risk > 0 && risk < 1) {
		return 0, fmt.Errorf("interval: risk is %v, must be above 0 and below 1", risk)
	}
	return -math.Log(risk), nil
}

// rounding is how far a mean moves if rewards are rounded to 2^-20 of their range (release.Real).
const rounding = 1.0 / (1 << 21)

// A mixture is the logarithm of the mixed supermartingale as a function of the mean: convex, as
// each of its terms is.
type mixture struct {
	n     float64
	terms []mixed
}

// mixed is one λ.
type mixed struct {
	at     float64 // its value, but for the mean's part
	growth float64 // e^λ − 1
}

const (
	mixedTerms = 36  // of each sign: λ from λ_0 to λ_0 2^{−17.5}, for some 10^12 rewards
	mixedMost  = 1   // λ_0 at most
	mixedNoise = 0.9 // λ_0 b
)

// check says what is wrong with the sums.
func (s Sums) check() error {
	switch {
	case s.N < 0 || s.Releases < 0 || s.Releases > s.N:
		return fmt.Errorf("interval: there are %d rewards in %d releases, must be at least one in each",
			s.N, s.Releases)
	case s.Noises < 0:
		return fmt.Errorf("interval: noises is %d, must be at least 0", s.Noises)
	case math.IsNaN(s.Sum) || math.IsInf(s.Sum, 0):
		return errors.New("interval: the sum is not finite, must be")
	}
	return nil
}

func (s Sums) mixture() (*mixture, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	top, cost, err := noiseCost(s.Noise)
	if err != nil {
		return nil, err
	}
	m := &mixture{n: float64(s.N), terms: make([]mixed, 0, 2*mixedTerms)}
	weight := -math.Log(2 * mixedTerms)
	for j := range mixedTerms {
		lambda := top * math.Pow(2, -float64(j)/2)
		noise := float64(s.noises()) * cost(lambda)
		for _, l := range []float64{lambda, -lambda} {
			m.terms = append(m.terms, mixed{weight + float64(l*s.Sum) - noise, math.Expm1(l)})
		}
	}
	return m, nil
}

// noises is how many there are in the sums.
func (s Sums) noises() int {
	n := s.Releases
	if m, ok := s.Noise.(privacy.Aggregated); ok {
		switch m.Trust {
		case privacy.TrustTwoServer:
			n = 2 * s.Releases
		case privacy.TrustLocal:
			n = s.N
		default: // Users shares are a whole one
			n = (s.N + m.Users - 1) / max(1, m.Users)
		}
	}
	return max(n, s.Noises)
}

// Variance is that of all the noise in the sum, 0 if it is of a law that no interval is known of.
func (s Sums) Variance() float64 {
	noise := s.Noise
	if m, ok := noise.(privacy.Aggregated); ok {
		noise = whole(m)
	}
	d, _ := privacy.DrawsOf(noise)
	each := float64(d.Scale * d.Scale)
	switch {
	case !d.Sum || !d.Once:
		return 0
	case d.Law == privacy.NoiseLaplace:
		each *= 2
	}
	return float64(s.noises()) * each
}

// whole is one whole noise of sums that were gathered, m itself if nothing is known of it.
func whole(m privacy.Aggregated) privacy.Mechanism {
	scale := float64(m.Num) / float64(m.Den)
	switch m.Noise {
	case privacy.NoiseGaussian: // a variance, of a share
		return privacy.Gaussian{Sigma: math.Sqrt(scale*float64(m.Users)) / float64(m.G)}
	case privacy.NoiseLaplace, privacy.NoisePolya:
		return privacy.Laplace{Scale: scale / float64(m.G)}
	}
	return m
}

// noiseCost is the largest λ to mix, and log E e^{λZ} or more for the noise of a release.
func noiseCost(noise privacy.Mechanism) (top float64, cost func(lambda float64) float64, err error) {
	// What release.Real draws is at least 2^-16, and larger than promised by 2^-25 at most.
	drawn := func(scale float64) float64 { return max(scale, 0x1p-16) + 0x1p-25 }
	if m, ok := noise.(privacy.Aggregated); ok {
		noise = whole(m)
	}
	d, ok := privacy.DrawsOf(noise)
	scale := d.Scale
	switch {
	case noise == nil:
	case !ok || !d.Sum || !d.Once && d.Law != "":
		return 0, nil, fmt.Errorf("interval: noise is that of %s, must be laplace, gaussian or none",
			noise.Kind())
	case !(scale > 0):
	case d.Law == privacy.NoiseLaplace:
		b := drawn(scale)
		top = min(mixedMost, mixedNoise/b)
		cost = func(l float64) float64 { return -math.Log1p(-float64(l * l * b * b)) }
	default:
		sigma := drawn(scale)
		top = min(mixedMost, 2/sigma)
		cost = func(l float64) float64 { return float64(l*l*sigma*sigma) / 2 }
	}
	if scale < 0 || math.IsNaN(scale) || math.IsInf(scale, 0) {
		return 0, nil, fmt.Errorf("interval: scale of the noise is %v, must be finite and at least 0", scale)
	}
	if cost == nil {
		return mixedMost, func(float64) float64 { return 0 }, nil
	}
	return top, cost, nil
}

// value is the mixture's logarithm at a mean, and its slope there.
func (m *mixture) value(mean float64) (value, slope float64) {
	var logs [2 * mixedTerms]float64
	top := math.Inf(-1)
	for i, t := range m.terms {
		logs[i] = t.at - m.n*math.Log1p(mean*t.growth)
		top = max(top, logs[i])
	}
	sum := 0.0
	for i, t := range m.terms {
		if logs[i] < top-45 { // of the largest one's size it has nothing
			continue
		}
		p := math.Exp(logs[i] - top)
		sum += p
		slope -= p * m.n * t.growth / (1 + mean*t.growth)
	}
	return top + math.Log(sum), slope / sum
}

// edge is where the means end at which the mixture is at most level, on the side of from, 0 or 1:
// by Newton's method, which comes from outside and stays there, as the mixture is convex. If there
// is no such mean it is where the mixture is least.
func (m *mixture) edge(from, level float64) float64 {
	mean := from
	for range 200 {
		v, slope := m.value(mean)
		if v <= level {
			return mean
		}
		if slope == 0 || slope > 0 != (from == 1) {
			return m.least()
		}
		next := mean - (v-level)/slope
		if !(next >= 0 && next <= 1) {
			return m.least()
		}
		if math.Abs(next-mean) < 1e-13 {
			return next
		}
		mean = next
	}
	return mean
}

// least is where the mixture is least.
func (m *mixture) least() float64 {
	lo, hi := 0.0, 1.0
	for range 50 {
		mid := (lo + hi) / 2
		if _, slope := m.value(mid); slope > 0 {
			hi = mid
		} else {
			lo = mid
		}
	}
	return (lo + hi) / 2
}

// most is the largest mean of a less that of b where the two add up to at most level. It is concave
// in the mean of a, which is searched for by golden sections.
func most(a, b *mixture, level float64) float64 {
	least, _ := b.value(b.least())
	less := func(mean float64) float64 {
		v, _ := a.value(mean)
		return b.edge(0, max(level-v, least)) - mean
	}
	return 1e-8 - divergence.Golden(less, a.edge(0, level-least), a.edge(1, level-least), 1e-8)
}
