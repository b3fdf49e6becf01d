package interval

import (
	"fmt"
	"math"
)

// Ratio is an interval for r = E X/E Y that holds at all times together, as Interval does: of two numbers of the
// same decisions, such as revenue and orders, that are mapped to [0,1], where X ≤ Y for each decision. X and
// Y are released together, with noises that are independent of one another, and r is in [0,1].
//
// It is assumed that E X = r·E Y for each decision given all before it. How likely Y is may change all the
// time. How many decisions there are is not looked at: what has no Y counts nothing.
//
// Proof. For λ of either sign let h = log(1+r(e^λ−1)). The function e^{λx−hy} is convex, and each (x, y) with
// 0 ≤ x ≤ y ≤ 1 is (1−y)·(0,0) + (y−x)·(0,1) + x·(1,1), so
//
//	E e^{λX−hY} ≤ 1−EY + (EY−EX)e^{−h} + EX·e^{λ−h} = 1−EY + EY·e^{−h}(1−r+r·e^λ) = 1.
//
// Noises Z and W count e^{λZ} and e^{−hW}, and cost ψ_X(λ) and ψ_Y(h) each, as in Interval's proof. So for the
// noisy sums S and T of k releases
//
//	M(r) = Σ_j w_j exp(λ_j S − h_j T − kψ_X(λ_j) − kψ_Y(h_j)),
//
// is a supermartingale that begins at 1 at most; λ, and so h, are fixed beforehand. By Ville's inequality it is
// ever at least 1/risk with probability risk at most. The interval has all r at which it is below:
//
// An exponent is linear in h less a convex function, so concave, and h is monotone in r: between two ratios it is
// at least the lesser of its values at both. Take the terms of λ > 0 alone, each at the lesser of its values
// at 0 and at r. Their sum is at most M(r′) for every r′ ≤ r, as the other terms are positive, and it falls
// as r grows: up to where it is 1/risk, which bisection finds, no ratio is in the set. For larger ratios it is λ < 0,
// with 1 in the place of 0. As |h| ≤ |λ|, all of it is where ψ_Y is finite. ∎
//
// It is the ratio of the numbers as they count, each rounded to a step of 2^-20 of its range (release.ExactStep): where
// Y is small, that of the numbers before can be 2^-21/Y beside it.
//
// Y need not be 0 or 1: convexity over the triangle does not ask for it. The variance is bounded by that of X = 0
// or Y, so choose the range of X as small as what a Y can bring.
func Ratio(x, y Sums, risk float64) (lo, hi float64, err error) {
	level, err := levelOf(risk)
	if err != nil {
		return 0, 1, err
	}
	if x.N != y.N || x.Releases != y.Releases {
		return 0, 1, fmt.Errorf("interval: X is of %d decisions in %d releases, and Y of %d in %d, must be of the same",
			x.N, x.Releases, y.N, y.Releases)
	}
	q, err := quotientOf(x, y)
	if err != nil {
		return 0, 1, err
	}
	return q.edge(level, 1), q.edge(level, -1), nil
}

// A quotient is M of Ratio's proof.
type quotient struct {
	y     Sums
	terms []part // of λ > 0, each with that of −λ after it
	cost  func(float64) float64
}

// part is one λ.
type part struct {
	at     float64 // log w + λS − kψ_X(λ)
	growth float64 // e^λ − 1
	end    float64 // its exponent where ratios end on the side that it is for: at 0, or for λ < 0 at 1
}

func quotientOf(x, y Sums) (*quotient, error) {
	top, cost := 0.0, [2]func(float64) float64{}
	for i, s := range []Sums{x, y} {
		if err := s.check(); err != nil {
			return nil, err
		}
		most, of, err := noiseCost(s.Noise)
		if err != nil {
			return nil, err
		}
		if cost[i] = of; i == 0 || most < top {
			top = most
		}
	}
	q := &quotient{y: y, cost: cost[1]}
	weight := -math.Log(2 * mixedTerms)
	for j := range mixedTerms {
		lambda := top * math.Pow(2, -float64(j)/2)
		noise := float64(x.noises()) * cost[0](lambda)
		for _, l := range []float64{lambda, -lambda} {
			t := part{at: weight + float64(l*x.Sum) - noise, growth: math.Expm1(l)}
			if t.end = t.at; l < 0 {
				t.end = q.exponent(t, 1)
			}
			q.terms = append(q.terms, t)
		}
	}
	return q, nil
}

// exponent is that of a term at a ratio.
func (q *quotient) exponent(t part, ratio float64) float64 {
	h := math.Log1p(float64(ratio * t.growth))
	return t.at - float64(h*q.y.Sum) - float64(float64(q.y.noises())*q.cost(h))
}

// against is the logarithm of the terms of one sign, each at its least between a ratio and the end of that
// sign: at most what M is beyond the ratio.
func (q *quotient) against(ratio, sign float64) float64 {
	first := 0
	if sign < 0 {
		first = 1
	}
	var logs [mixedTerms]float64
	top := math.Inf(-1)
	for j := range logs {
		t := q.terms[2*j+first]
		logs[j] = min(q.exponent(t, ratio), t.end)
		top = max(top, logs[j])
	}
	sum := 0.0
	for _, l := range logs {
		if l > top-45 { // below, of the largest one's size it has nothing
			sum += math.Exp(l - top)
		}
	}
	return top + math.Log(sum)
}

// edge is the lower end for a sign of 1, the upper one for −1.
func (q *quotient) edge(level, sign float64) float64 {
	out, in := 0.0, 1.0 // out is not in the set unless it is where ratios end
	if sign < 0 {
		out, in = in, out
	}
	for range 50 {
		mid := (out + in) / 2
		if q.against(mid, sign) >= level {
			out = mid
		} else {
			in = mid
		}
	}
	return out
}
