package release

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// A Trust says who has to be believed: how the releases that a policy asks for are made without, or
// with less of, a trusted server. The policy states a mechanism with noise on a sum,
// privacy.Laplace or Gaussian; the curator makes each release of it by the protocol of [Chowdhury
// and Zhou 2023, Algorithm 1], with integers that suit the batch at hand, and the ledger is charged
// for those. What a reward loses is never more than the stated mechanism promises, in the currency
// of Like: of Laplace all that its pure ε allows, of Gaussian what it costs.
//
//	central  laplace, gaussian, skellam   the analyser adds discrete noise
//	local    laplace, gaussian, skellam   every user adds noise that is enough alone
//	secagg   polya, gaussian, skellam     every user adds a share, and the server learns the noisy sum only; with fewer than 3 invited to a batch
//	                                      there is nobody to hide among, so it is made as under local trust, and said and priced so
//	two-server  laplace, gaussian, skellam  each of two servers adds noise that is enough alone
//	shuffle  count                        privacy.ShuffledCount: pure
//	shuffle  polya                        privacy.SplitMix: (ε,δ); a batch of fewer than 19 promised users is made as the next
//	shuffle  laplace                      privacy.Clones: local noise, (ε,δ) by amplification
type Trust struct {
	Model privacy.Trust
	// empty: laplace for central and local trust, polya for secagg, count for shuffle
	Noise privacy.NoiseName
	S     float64 // [Chowdhury and Zhou 2023]'s s ≥ 1, precision beyond ε√n; 0 means 1
	// Like is the currency of the promise: only its kind and its α or δ count. nil is pure ε for
	// Laplace and ρ for Gaussian.
	Like privacy.Budget
	// P in (0,1) bounds what can go wrong with decoding: release c = 1, 2, … misreads a sum of any
	// arm, as its noise exceeds τ, with probability P/(10c²) at most. That is P/6 in all, and leaves
	// 5P/6 to the radii of a policy that may fail with probability P. A count has β = P/2 instead
	// ([Chowdhury and Zhou 2023]: 1/(2T)), and the bits that blank users lose are in its tail.
	P float64
	// Promised in (0,1] is the share of the invited users who are promised to answer and to be
	// honest, rounded up to n_min of them; 0 means 1. Noise is calibrated to them.
	Promised float64
	// Dropout in [0,1) is the probability that an invited user does not answer, whatever the
	// reward: for simulations.
	Dropout float64
	// PerUser has every user's messages drawn and summed, where a simulation would draw the total
	// at once, from the same law.
	PerUser bool
	// of count: ε1/ε in (0,1), how much of ε the noise in the count has; 0 means 0.8
	Cover  float64
	Summer Summer // S, for PerUser and for real rewards; nil means PlainSum
}

// NoiseOf is the noise, with the model's default.
func (t Trust) NoiseOf() privacy.NoiseName {
	if t.Noise != "" {
		return t.Noise
	}
	switch t.Model {
	case privacy.TrustSecAgg:
		return privacy.NoisePolya
	case privacy.TrustShuffle:
		return privacy.NoiseCount
	}
	return privacy.NoiseLaplace
}

func (t Trust) s() float64 {
	if t.S == 0 {
		return 1
	}
	return t.S
}

func (t Trust) promised() float64 {
	if t.Promised == 0 {
		return 1
	}
	return t.Promised
}

func (t Trust) cover() float64 {
	if t.Cover == 0 {
		return 0.8
	}
	return t.Cover
}

// users is n_min of so many invited.
func (t Trust) users(invited int) int {
	return max(1, int(math.Ceil(float64(t.promised()*float64(invited))*(1-1e-12))))
}

// minCrowd is the least number of messages of which a secure sum shows nothing but the sum.
const minCrowd = 3

// least is how many of so many invited must answer for the sum to be opened: n_min, and a crowd
// where it takes one.
func (t Trust) least(invited int) int {
	n := t.users(invited)
	if t.Model == privacy.TrustSecAgg && invited >= minCrowd {
		n = max(n, minCrowd)
	}
	return n
}

// alone is the trust model under which a batch of users without a crowd is released: each adds a
// whole noise, since each message may be seen.
func (t Trust) alone() Trust {
	if t.Model != privacy.TrustSecAgg {
		return t
	}
	t.Model = privacy.TrustLocal
	if t.Noise == privacy.NoisePolya {
		t.Noise = "" // laplace, of which they are the shares
	}
	return t
}

// Validate accepts the noises of each model, and numbers in the ranges given with the fields.
func (t Trust) Validate() error {
	var noises []privacy.NoiseName
	switch t.Model {
	case privacy.TrustCentral, privacy.TrustLocal, privacy.TrustTwoServer:
		noises = []privacy.NoiseName{privacy.NoiseLaplace, privacy.NoiseGaussian, privacy.NoiseSkellam}
	case privacy.TrustSecAgg:
		noises = []privacy.NoiseName{privacy.NoisePolya, privacy.NoiseGaussian, privacy.NoiseSkellam}
	case privacy.TrustShuffle:
		noises = []privacy.NoiseName{privacy.NoiseCount, privacy.NoisePolya, privacy.NoiseLaplace}
	default:
		return fmt.Errorf("trust is %q, must be central, local, two-server, shuffle or secagg", t.Model)
	}
	known := false
	for _, n := range noises {
		known = known || n == t.NoiseOf()
	}
	switch {
	case !known:
		return fmt.Errorf("noise is %q, must be %s, %s or %s for trust %s", t.Noise, noises[0],
			noises[1], noises[2], t.Model)
	case t.S != 0 && !(t.S >= 1 && t.S <= math.MaxFloat64):
		return fmt.Errorf("precision s is %v, must be finite and at least 1", t.S)
	case !(t.P > 0 && t.P < 1):
		return fmt.Errorf("p is %v, must be above 0 and below 1", t.P)
	case t.Promised != 0 && !(t.Promised > 0 && t.Promised <= 1):
		return fmt.Errorf("promised is %v, must be above 0 and at most 1", t.Promised)
	case !(t.Dropout >= 0 && t.Dropout < 1):
		return fmt.Errorf("dropout is %v, must be at least 0 and below 1", t.Dropout)
	case t.Cover != 0 && !(t.Cover > 0 && t.Cover < 1):
		return fmt.Errorf("cover is %v, must be above 0 and below 1", t.Cover)
	case t.Model == privacy.TrustShuffle && t.NoiseOf() != privacy.NoiseCount && t.Like != nil:
		if _, ok := t.Like.(privacy.Approx); !ok {
			return fmt.Errorf("noise is %s and the budget is %v: a shuffler with it gives "+
				"(epsilon, delta), never less; take a budget with delta, or noise count", t.NoiseOf(), t.Like)
		}
	case t.NoiseOf() == privacy.NoiseSkellam || t.NoiseOf() == privacy.NoiseGaussian:
		if _, ok := t.Like.(privacy.Pure); ok {
			return fmt.Errorf("noise is %s and the budget is %v: no such noise is pure; take a "+
				"budget in rho, (alpha, epsilon) or (epsilon, delta)", t.NoiseOf(), t.Like)
		}
	}
	return nil
}

// Mechanism is one release of what a policy states, with so many users invited, misread with
// probability P at most: its integers, its loss and its tail.
func (t Trust) Mechanism(stated privacy.Mechanism, invited int) (privacy.Mechanism, error) {
	if invited < 1 || invited > maxRewards {
		return nil, fmt.Errorf("users is %d, must be from 1 to 2^42", invited)
	}
	c, err := newCalibration(t, stated)
	if err != nil {
		return nil, err
	}
	return c.mechanism(invited, t.users(invited), invited, t.P)
}

// A calibration is what a stated mechanism promises, and how its releases are made
// under a trust model.
type calibration struct {
	trust  Trust
	stated privacy.Mechanism
	target privacy.Budget // what a reward may lose
	// [Chowdhury and Zhou 2023]'s: of laplace and polya pure, of the others √(2ρ) about
	epsilon float64
	scaled  map[cohort]float64 // ε, which may have had to be made smaller
	local   map[int]float64    // ε0 of clones by users
}

// A cohort is what a release is calibrated to, beside the target.
type cohort struct {
	trust          privacy.Trust
	invited, users int
}

func newCalibration(t Trust, stated privacy.Mechanism) (*calibration, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	c := &calibration{trust: t, stated: stated, scaled: map[cohort]float64{}, local: map[int]float64{}}
	like := t.Like
	var promise privacy.Loss
	switch m := stated.(type) {
	case privacy.Laplace:
		c.epsilon = 1 / m.Scale
		// Continuous Laplace noise loses a little less than pure ε-DP allows in other currencies;
		// what is promised is the ε.
		promise = privacy.LossOf(privacy.Pure{Epsilon: c.epsilon})
		if like == nil {
			like = privacy.Pure{}
		}
	case privacy.Gaussian:
		c.epsilon = 1 / m.Sigma
		promise = m.Loss()
		if like == nil {
			like = privacy.ZCDP{}
		}
	case nil:
		return nil, errors.New("mechanism is missing, must be laplace or gaussian")
	default:
		return nil, fmt.Errorf("mechanism is %q: trust %s is for releases of a batch's sum, "+
			"laplace or gaussian; there is no distributed noise for this one", stated.Kind(), t.Model)
	}
	if err := stated.Validate(); err != nil {
		return nil, err
	}
	if math.IsInf(c.epsilon, 0) {
		return nil, fmt.Errorf("mechanism %v has no noise: trust %s needs some", stated, t.Model)
	}
	if _, none := like.(privacy.None); none {
		return nil, fmt.Errorf("budget is none: trust %s needs a private one", t.Model)
	}
	t.Like = like
	if err := t.Validate(); err != nil {
		return nil, err
	}
	c.target = promise.In(like)
	if b, ok := c.target.(privacy.Approx); ok && t.pure() {
		c.epsilon = b.Epsilon // pure ε-DP is (ε,δ)-DP
	}
	return c, nil
}

// pure says that the noise is that of a pure mechanism.
func (t Trust) pure() bool {
	n := t.NoiseOf()
	return n == privacy.NoiseLaplace || n == privacy.NoisePolya || n == privacy.NoiseCount
}

// mechanism is that of one release: so many invited, at least users of whom are promised, and no
// fewer than fewest to any of its batches, misread with probability p at most.
func (c *calibration) mechanism(invited, users, fewest int, p float64) (privacy.Mechanism, error) {
	t := c.trust
	if fewest < minCrowd {
		t = t.alone()
	}
	if t.Model == privacy.TrustShuffle {
		return c.shuffled(invited, users, p)
	}
	return c.aggregated(privacy.Calibration{Trust: t.Model, Noise: t.NoiseOf(), S: t.s(),
		Users: users, Invited: invited, P: p})
}

// aggregated has the largest ε, at most that of the stated mechanism, with which the loss is within
// the target: [Chowdhury and Zhou 2023]'s ε promises ½ε²-zCDP except for terms of higher order, and
// those count here.
func (c *calibration) aggregated(k privacy.Calibration) (privacy.Mechanism, error) {
	at := cohort{k.Trust, k.Invited, k.Users}
	if e, ok := c.scaled[at]; ok {
		k.Epsilon = e
		return privacy.NewAggregated(k)
	}
	k.Epsilon = c.epsilon
	m, err := privacy.NewAggregated(k)
	if err != nil {
		return nil, err
	}
	if m.Loss().Within(c.target) {
		c.scaled[at] = k.Epsilon
		return m, nil
	}
	lo, hi := 0.0, c.epsilon
	var best privacy.Aggregated
	for range 60 {
		k.Epsilon = (lo + hi) / 2
		if lo == 0 { // down by quarters first: there may be no ε that is enough
			k.Epsilon = hi / 4 * 3
		}
		if m, err = privacy.NewAggregated(k); err == nil && m.Loss().Within(c.target) {
			lo, best = k.Epsilon, m
		} else {
			hi = k.Epsilon
		}
		if lo > 0 && hi-lo < 1e-9*lo {
			break
		}
	}
	if lo == 0 {
		return nil, fmt.Errorf("trust %s with noise %s: no noise keeps within %v for a batch of "+
			"%d users, %d of them promised: take another noise or a larger precision s", k.Trust,
			k.Noise, c.target, k.Invited, k.Users)
	}
	c.scaled[at] = lo
	return best, nil
}

func (c *calibration) shuffled(invited, users int, p float64) (privacy.Mechanism, error) {
	t := c.trust
	if t.NoiseOf() == privacy.NoiseCount {
		// What blank users' bits do is in the release's tail: β need not get smaller from
		// release to release.
		return privacy.NewShuffledCount(c.epsilon, c.epsilon*t.cover(), users, invited,
			max(t.P/2, float64(users)/(1<<51)))
	}
	b := c.target.(privacy.Approx) // Validate has seen to that
	k := privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: privacy.NoisePolya,
		Epsilon: b.Epsilon, S: t.s(), Users: users, Invited: invited, P: p}
	if t.NoiseOf() == privacy.NoisePolya && users >= privacy.MinSplitMix {
		inner, err := privacy.NewAggregated(k)
		if err != nil {
			return nil, err
		}
		return privacy.NewSplitMix(inner, math.Log2((1+math.Exp(b.Epsilon))/b.Delta)*(1+1e-12))
	}
	k.Trust, k.Noise = privacy.TrustLocal, privacy.NoiseLaplace
	e0, ok := c.local[users]
	if !ok {
		var err error
		if e0, err = privacy.ClonesLocal(users, b); err != nil {
			return nil, err
		}
		c.local[users] = e0
	}
	k.Epsilon = e0
	inner, err := privacy.NewAggregated(k)
	return privacy.Clones{Inner: inner, Delta: b.Delta}, err
}
