package identify

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A Family is what TrackAndStop takes rewards for.
type Family int

const (
	// Bernoulli is for rewards in {0,1}. As a reward in [0,1] has no larger moment generating
	// function than a Bernoulli one of the same mean, what is proved of stopping holds for those too.
	Bernoulli Family = iota
	// Gaussian is for σ-sub-Gaussian rewards, σ = 1/2: all rewards in [0,1].
	Gaussian
)

// TrackAndStop is Garivier and Kaufmann 2016, with D-tracking: the reference without privacy, whose
// mean number of samples is asymptotically T*_KL(ν) log(1/δ), that of the lower bound. In each round
// it plays the least played arm if that has had less than √t − K/2 plays, and otherwise the arm
// furthest behind t·w*(μ̂), the allocation that would be optimal if the empirical means were true. It
// stops when the cost of the empirical best against every other arm is above the threshold.
//
// The cost and its threshold are the family's: BernoulliCost with BernoulliThreshold, GaussianCost
// with GaussianThreshold. Both are time-uniform, so that it is δ-correct whatever is played. So w*
// is recomputed only when the plays have grown by a hundredth since: it moves little, and takes
// most of the time.
type TrackAndStop struct {
	family    Family
	cost      Cost
	threshold Threshold
	arms      []Sample
	means     []float64
	weights   []float64
	due       int // round at which the weights are found anew
	rounds    int
	answer    int
	batch     policy.Batch
}

// NewTrackAndStop returns it for a number of arms ≥ 2, a risk δ in (0,1) and a family.
func NewTrackAndStop(arms int, risk float64, family Family) (*TrackAndStop, error) {
	p := &TrackAndStop{family: family, arms: make([]Sample, max(arms, 0)),
		means: make([]float64, max(arms, 0)), answer: -1}
	var err error
	switch family {
	case Bernoulli:
		p.cost = BernoulliCost{}
		p.threshold, err = NewBernoulliThreshold(arms, risk)
	case Gaussian:
		p.cost = GaussianCost{0.5}
		p.threshold, err = NewGaussianThreshold(arms, risk)
	default:
		err = fmt.Errorf("family is %d, must be Bernoulli or Gaussian", family)
	}
	if err != nil {
		return nil, fmt.Errorf("track-and-stop: %w", err)
	}
	return p, nil
}

// Mechanism implements policy.Policy: it reads exact sums.
func (p *TrackAndStop) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Answer implements Identifier.
func (p *TrackAndStop) Answer() int { return p.answer }

// Next implements policy.Policy: every arm once, then batches of one round.
func (p *TrackAndStop) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	if p.rounds == 0 {
		p.batch.Plays = once(p.batch.Plays, len(p.arms))
		p.rounds = len(p.arms)
		return &p.batch
	}
	for i := range min(released.Len(), len(p.batch.Plays)) {
		a := p.batch.Plays[i].Arm
		p.arms[a].N = float64(released.N(i))
		p.means[a] = min(1, max(0, released.Mean(i)))
		p.arms[a].Mean = p.means[a]
	}
	best := 0
	for a, m := range p.means {
		if m > p.means[best] {
			best = a
		}
	}
	if p.stop(best) {
		p.answer = best
		return nil
	}
	p.batch.Plays = append(p.batch.Plays[:0], policy.Play{Arm: p.choose(), Rounds: 1, Release: true})
	p.rounds++
	return &p.batch
}

func (p *TrackAndStop) stop(best int) bool {
	for b := range p.arms {
		if b != best && !(p.cost.Between(p.arms[best], p.arms[b]) > p.threshold.At(p.arms[best], p.arms[b])) {
			return false
		}
	}
	return true
}

// choose is the arm of this round.
func (p *TrackAndStop) choose() int {
	t := float64(p.rounds)
	least := 0
	for a := range p.arms {
		if p.arms[a].N < p.arms[least].N {
			least = a
		}
	}
	if p.arms[least].N < math.Sqrt(t)-float64(len(p.arms))/2 {
		return least
	}
	if p.rounds >= p.due {
		p.due = p.rounds + max(1, p.rounds/100)
		var c bound.Characteristic
		var err error
		if p.family == Bernoulli {
			c, err = bound.BernoulliTime(p.means, math.Inf(1))
		} else {
			c, err = bound.GaussianTime(p.means, 0.5)
		}
		if p.weights = c.Allocation; err != nil {
			// Equal best means have no optimal allocation; until they part, everybody gets the same.
			p.weights, p.due = nil, p.rounds+1
		}
	}
	if p.weights == nil {
		return least
	}
	behind, most := 0, math.Inf(-1)
	for a := range p.arms {
		if d := float64(t*p.weights[a]) - p.arms[a].N; d > most {
			behind, most = a, d
		}
	}
	return behind
}

// BernoulliThreshold is Kaufmann and Koolen's (2021, Theorem 7 with two arms),
//
//	3 log(1 + log ω_a) + 3 log(1 + log ω_b) + 2𝒯(½ log((K−1)/δ)),   𝒯(x) = 2h̃((h⁻¹(1+x) + log 2ζ(2))/2),
//
// where h(u) = u − log u, h⁻¹ is WBar, and h̃(x) = e^{1/h⁻¹(x)}h⁻¹(x) for x ≥ h⁻¹(1/log(3/2)) and
// (3/2)(x − log log(3/2)) below. It is δ-correct for BernoulliCost with exact means that rest on
// all rewards, for any sampling rule, when it is looked at after every round.
type BernoulliThreshold struct{ constant float64 }

// NewBernoulliThreshold returns it for a number of arms ≥ 2 and a risk in (0,1).
func NewBernoulliThreshold(arms int, risk float64) (BernoulliThreshold, error) {
	if err := checkTask(arms, risk); err != nil {
		return BernoulliThreshold{}, err
	}
	return BernoulliThreshold{2 * mixture(math.Log(float64(arms-1)/risk)/2)}, nil
}

// At implements Threshold.
func (t BernoulliThreshold) At(a, b Sample) float64 {
	return 3*math.Log1p(math.Log(a.N)) + 3*math.Log1p(math.Log(b.N)) + t.constant
}

// mixture is 𝒯.
func mixture(x float64) float64 {
	y := (WBar(1+x) + math.Log(2*mathext.Zeta(2, 1))) / 2
	log := math.Log(1.5)
	if y >= WBar(1/log) {
		u := WBar(y)
		return 2 * math.Exp(1/u) * u
	}
	return 3 * (y - math.Log(log))
}
