package play

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/privacy"
)

// A Rule is another way to choose, which is not played, and whose earnings are estimated from the
// decisions that were: Σ min(w,Clip)·r, w the probability of what was played by the rule over that
// with which it was played. Single rewards are gone at a release, so rules are declared at the
// start; a unit loses by each what its mechanism costs, in addition.
type Rule struct {
	Name string
	// Clip is the largest weight that counts, from 1 to 2^20: one reward moves the released sum, in
	// units of it, by at most 1.
	Clip      float64
	Mechanism privacy.Mechanism // privacy.Laplace or Gaussian, of values in [0,1]
}

const maxClip = 1 << 20

// buildRules makes rules ready.
func buildRules(in []Rule) ([]further, error) {
	as := make([]Metric, len(in))
	for i, r := range in {
		if !(r.Clip >= 1 && r.Clip <= maxClip) {
			return nil, fmt.Errorf("play: rules[%d]: clip is %v, must be from 1 to %d", i, r.Clip, maxClip)
		}
		as[i] = Metric{Name: r.Name, Mechanism: r.Mechanism}
	}
	out, err := buildFurther("rule", as)
	for i := range out {
		out[i].most = in[i].Clip
	}
	return out, err
}

// weightSteps is a weight, clipped, in steps of 2^-20 of the largest one.
func weightSteps(w, clip float64) int64 {
	return int64(math.Round(float64(min(w, clip) / clip * float64(oneStep))))
}

// weighted is a reward, in steps, times a weight: from 0 to the weight.
func weighted(weight, steps int64) int64 { return (weight*steps + oneStep/2) / oneStep }

// A ruleLine is what a line has of a rule: the sums of its decisions' weights, in steps of 2^-20 of
// the clip, and of their squares, in steps of 2^-40, which are public; and the release.
type ruleLine struct {
	Weights int64           `json:"weights"`
	Squares int64           `json:"squares"`
	Release json.RawMessage `json:"release"`
}

// weigh sums the weights of decisions up.
func (v *vectors) weigh(events []Event) []ruleLine {
	var out []ruleLine
	for i, f := range v.further {
		var l ruleLine
		for _, e := range events {
			w := weightSteps(e.Weights[i], f.most)
			l.Weights += w
			l.Squares += w * w
		}
		out = append(out, l)
	}
	return out
}

// check says whether weights are those of so many decisions: each is from 0 to 1, so their squares are
// less, and no less than where all are equal.
func (l ruleLine) check(n int) error {
	if l.Weights < 0 || l.Weights > int64(n)*oneStep || l.Squares < 0 ||
		float64(l.Squares) > float64(l.Weights)*float64(oneStep) ||
		float64(l.Squares)*float64(n) < float64(float64(l.Weights)*float64(l.Weights))*(1-1e-9) {
		return errors.New("its weights are those of no decisions")
	}
	return nil
}

// Earned is what was released of a rule, all releases added up.
type Earned struct {
	Name     string
	Clip     float64
	Lo, Hi   float64 // the declared range of rewards
	N        int     // decisions that were released
	Releases int
	// Sum is Σ w·r/Clip with the noise of all releases, w clipped and r mapped to [0,1]. Weights
	// and Squares are Σ w/Clip and Σ (w/Clip)², and are exact.
	Sum, Weights, Squares float64
	// of each release, as it was charged; nil before the first
	Noise privacy.Mechanism
}

func (e *Earned) add(l ruleLine) error {
	var text struct {
		Mechanism json.RawMessage `json:"mechanism"`
		N         [1]int          `json:"n"`
		Sum       [1]float64      `json:"sum"`
	}
	if err := json.Unmarshal(l.Release, &text); err != nil {
		return err
	}
	m, err := privacy.UnmarshalMechanism(text.Mechanism)
	if err != nil {
		return err
	}
	e.Noise = m
	e.N += text.N[0]
	e.Releases++
	e.Sum += text.Sum[0]
	e.Weights += float64(l.Weights) / float64(oneStep)
	e.Squares += float64(float64(l.Squares)/float64(oneStep)) / float64(oneStep)
	return nil
}

// Mean estimates what the rule would have earned a decision, by inverse propensities: Clip·Sum/N in
// the units of rewards. Without noise its mean is at most that: weights above Clip count as Clip,
// and what is lost so counts as the lowest reward. It is NaN before the first release.
func (e Earned) Mean() float64 { return e.scale(e.Clip * e.Sum / float64(e.N)) }

// SelfNormalised estimates the same by Sum/Weights: of less variance where rewards are far from the
// lowest or weights are rarely above 0, biased by what vanishes as decisions grow, and without a
// proved interval. It is NaN while all weights are 0.
func (e Earned) SelfNormalised() float64 { return e.scale(e.Sum / e.Weights) }

func (e Earned) scale(share float64) float64 { return e.Lo + float64((e.Hi-e.Lo)*share) }

// Interval holds at all times together with probability 1−risk, as interval.Weighted says: for the mean
// over the decisions that were released of what the rule would have earned in the context and at the
// instant of each, by weights up to Clip. Where the rule plays what has propensity below 1/Clip, its
// earnings are more than that by what the clipped weights lose: lo holds for them, and hi may not.
func (e Earned) Interval(risk float64) (lo, hi float64, err error) {
	lo, hi, err = interval.Weighted{Sums: interval.Sums{N: e.N, Sum: e.Sum, Releases: e.Releases, Noise: e.Noise},
		Squares: e.Squares}.Interval(risk)
	if err != nil {
		return 0, 0, fmt.Errorf("play: rule %q: %w", e.Name, err)
	}
	return e.scale(min(1, e.Clip*lo)), e.scale(min(1, e.Clip*hi)), nil
}
