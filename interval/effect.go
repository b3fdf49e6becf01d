package interval

import (
	"fmt"
	"math"
)

// A Plan is what a test of two arms is tuned to. It is public and fixed before the first reward. A
// wrong plan costs time, and never the risk; with none at all it takes some 1.5 times as long.
type Plan struct {
	Base   float64 // the mean that is expected, of rewards mapped to [0,1]; 0: nobody knows
	Effect float64 // the difference of two arms that is looked for, likewise
}

// A guess is one value of a plan, and its weight.
type guess struct{ value, weight float64 }

func (p Plan) check() error {
	switch {
	case !(p.Base >= 0 && p.Base < 1):
		return fmt.Errorf("interval: base is %v, must be at least 0 and below 1", p.Base)
	case !(p.Effect >= 0 && p.Effect <= 1):
		return fmt.Errorf("interval: effect is %v, must be from 0 to 1", p.Effect)
	}
	return nil
}

// odds are those of the mean: the plan's, or something else up to three times as far.
func (p Plan) odds() []guess {
	if p.Base == 0 {
		return []guess{{1. / 81, 1. / 6}, {1. / 27, 1. / 6}, {1. / 9, 1. / 6}, {1. / 3, 1. / 6}, {1, 1. / 6}, {3, 1. / 6}}
	}
	o := p.Base / (1 - p.Base)
	return []guess{{o, 0.8}, {1.7 * o, 0.05}, {o / 1.7, 0.05}, {3 * o, 0.05}, {o / 3, 0.05}}
}

// effects are the plan's times 2^{j/2}, |j| ≤ 4, with weights of e^{−0.7|j|}, or any that rewards of
// variance v show.
func (p Plan) effects(v float64) (out []guess) {
	if p.Effect == 0 {
		for j := 1; j <= 16; j++ {
			out = append(out, guess{math.Sqrt(v) * math.Pow(2, -float64(j)/2), 1. / 16})
		}
		return out
	}
	total := 0.0
	for j := -4; j <= 4; j++ {
		w := math.Exp(-0.7 * math.Abs(float64(j)))
		out = append(out, guess{p.Effect * math.Pow(2, float64(j)/2), w})
		total += w
	}
	for i := range out {
		out[i].weight /= total
	}
	return out
}

// Effect is an interval for the average effect so far: of the decisions that were given arm a or
// arm b, the average of what a would bring each of them less what b would. It holds at all times
// together, as Interval does, and also where the means of both arms change from decision to decision,
// whatever they depend on. The arm is tossed for each decision: it is a with probability share, given
// that it is a or b, the same all the time. Both arms are released together, all decisions up to some
// decision that follows from counts and clock alone: a joint batch. With whole permuted blocks in the
// place of tosses (n_a of a and n_b of b, share = n_a/(n_a+n_b)) it holds where means are constant
// within each block.
//
// Proof. Let u_i(a), u_i(b) be the means of decision i given all before it, δ_i = u_i(a) − u_i(b), and
// s the share. For p and Δ > 0 with p_a = p+(1−s)Δ and p_b = p−sΔ in (0,1), both x of {a, b} have
//
//	λ_x = log(p_x/p) − log((1−p_x)/(1−p)),  κ_x = log((1−p)/(1−p_x)).
//
// A decision that is given x and has the reward X counts e^{λ_x X − κ_x}. By convexity e^{λX} ≤
// 1+X(e^λ−1), and (e^{λ_x}−1)e^{−κ_x} = (p_x−p)/(p(1−p)), so this is at most
// 1 + (p_x−p)(u_i(x)−p)/(p(1−p)) in the mean; with the toss, as s(p_a−p) + (1−s)(p_b−p) = 0,
//
//	1 + cδ_i ≤ e^{cδ_i},  c = s(1−s)Δ/(p(1−p)):
//
// whatever both arms have in common cancels. (Of a block the product is, by the inequality of the
// means, at most (1+cδ)^{n_a+n_b}.) Noise Z counts e^{λZ}, which costs ψ(λ) as in Interval's proof.
// So for the sums S̃_x of n_x rewards and k_x noises, n = n_a+n_b,
//
//	exp(Σ_x [λ_x S̃_x − n_x κ_x − k_x ψ(λ_x)] − cΣδ_i)
//
// is a supermartingale in the order of decisions that begins at 1, and so is its mixture over the
// pairs (p, Δ) with weights that are fixed beforehand. By Ville's inequality that is ever at least
// 2/risk with probability risk/2 at most. With the average δ̄ = Σδ_i/n, the lower end is the δ̄ at which
// it is 2/risk, above which it is less; the upper end is that of b less a, for the other half. ∎
//
// λ depends on no count, so sums and counts over all batches are all it takes. Without noise it is the
// 2×2 test of Turner, Ly and Grünwald. Rewards that are rounded to 2^-20 move a difference by 2^-20 at
// most, which the ends have beside it.
func Effect(a, b Sums, share float64, plan Plan, risk float64) (lo, hi float64, err error) {
	level, err := levelOf(risk)
	if err != nil {
		return -1, 1, err
	}
	for _, end := range []struct {
		of, than Sums
		share    float64
		at       *float64
	}{{a, b, share, &lo}, {b, a, 1 - share, &hi}} {
		var t *contest
		if t, err = plan.contest(end.of, end.than, end.share); err != nil {
			return -1, 1, err
		}
		*end.at = min(1, max(-1, t.lower(end.of, end.than, level+math.Ln2)-2*rounding))
	}
	return min(lo, -hi), max(lo, -hi), nil // where no effect explains the sums they have crossed
}

// A contest asks whether one arm is better than another: the pairs (p, Δ) of Effect's proof.
type contest struct{ pairs []pair }

// pair is one of them.
type pair struct {
	weight float64 // its logarithm
	c      float64
	arms   [2]stake
}

// A stake is what an arm's rewards and noises count.
type stake struct{ lambda, kappa, noise float64 }

// mostNoise is what a noise counts at most: beyond, it takes more than larger λ give. At ε = 0.1 a cap at
// the λ that noiseCost allows takes a fifth more decisions.
const mostNoise = 0.45

// contest has the pairs for arms that have the noise of these sums, where the first has this share.
func (p Plan) contest(of, than Sums, share float64) (*contest, error) {
	if !(share > 0 && share < 1) {
		return nil, fmt.Errorf("interval: share is %v, must be above 0 and below 1", share)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	var tops [2]float64
	var costs [2]func(float64) float64
	for i, s := range []Sums{of, than} {
		if err := s.check(); err != nil {
			return nil, err
		}
		var err error
		if tops[i], costs[i], err = noiseCost(s.Noise); err != nil {
			return nil, err
		}
		for costs[i](tops[i]) > mostNoise {
			tops[i] *= 0.95
		}
	}
	t := &contest{}
	for _, odds := range p.odds() {
		mean := odds.value / (1 + odds.value)
		v := mean / (1 + odds.value)
		// the largest Δ whose λ are within reach: e^λ−1 = d/(p(1−p)−pd) of p_x = p+d
		up, down := math.Expm1(tops[0]), -math.Expm1(-tops[1])
		most := min(v*up/(1+float64(mean*up))/(1-share), v*down/(1-float64(mean*down))/share)
		for _, effect := range p.effects(v) {
			delta := min(effect.value, most)
			x := pair{weight: math.Log(odds.weight * effect.weight), c: share * (1 - share) * delta / v}
			for i, d := range []float64{(1 - share) * delta, -share * delta} {
				kappa := -math.Log1p(-d / (1 - mean))
				lambda := math.Log1p(d/mean) + kappa
				x.arms[i] = stake{lambda, kappa, costs[i](lambda)}
			}
			t.pairs = append(t.pairs, x)
		}
	}
	return t, nil
}

// mostPairs is how many there are of no plan at all.
const mostPairs = 6 * 16

// value is the mixture's logarithm at an effect, convex and falling, and its slope there.
func (t *contest) value(of, than Sums, effect float64) (value, slope float64) {
	var logs [mostPairs]float64
	top, n := math.Inf(-1), float64(of.N)+float64(than.N)
	for i, x := range t.pairs {
		logs[i] = x.weight + x.arms[0].log(of) + x.arms[1].log(than) - float64(n*x.c*effect)
		top = max(top, logs[i])
	}
	sum := 0.0
	for i, x := range t.pairs {
		if logs[i] < top-45 { // of the largest one's size it has nothing
			continue
		}
		p := math.Exp(logs[i] - top)
		sum += p
		slope -= float64(p * n * x.c)
	}
	return top + math.Log(sum), slope / sum
}

func (k stake) log(s Sums) float64 {
	return float64(k.lambda*s.Sum) - float64(float64(s.N)*k.kappa) - float64(float64(s.noises())*k.noise)
}

// lower is the effect at which the mixture is at level, or −1 if that is less: by Newton's method,
// which comes from below and never passes it, as the mixture is convex and falls.
func (t *contest) lower(of, than Sums, level float64) float64 {
	effect := -1.0
	for range 200 {
		value, slope := t.value(of, than, effect)
		if !(value > level) || effect >= 1 {
			break
		}
		step := (value - level) / -slope
		if effect += step; step < 1e-12 {
			break
		}
	}
	return effect
}
