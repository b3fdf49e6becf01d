package policy

import (
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// A posterior is the family of the posteriors of Thompson sampling. Each place, one an arm and one
// for a posterior that an arm may come to, has that of n rewards in [0,1] whose sum is s. Within
// what such rewards may lead to, more rewards of 0 make a posterior smaller, in law for the Beta
// family, and as far as its tail above 0 goes for the Gaussian one.
type posterior interface {
	set(a int, n, s float64)
	draw(a int) float64
	spread(a int) (mean, sd float64)

	// over is at least P(θ > c), and above draws what it bounds: with probability P(θ > c)/over a θ
	// given θ > c.
	over(a int, c float64) float64
	above(a int, c float64) (theta float64, ok bool)

	// raise turns θ, a draw of the place low, into one of place a, whose rewards are those of low
	// with some more, or some of 0 fewer. For x > 0 it is not below x if θ was not.
	raise(a, low int, theta float64) float64

	// under is P(θ ≤ c), and below draws θ given θ ≤ c.
	under(a int, c float64) float64
	below(a int, c float64) float64
	// Under is at most exp(−quiet), for c below the mean, and at most exp(−quiet) of a given quiet
	// after as many rewards of 0 as patience says; that is not at least 0 if there are none.
	quiet(a int, c float64) float64
	patience(a int, c, quiet float64) float64
}

// betaPosterior is Beta(1+s, 1+n−s).
type betaPosterior struct {
	coins Coins
	at    []betaShapes
}

type betaShapes struct{ a, b float64 }

func (p *betaPosterior) set(a int, n, s float64) {
	s = min(max(s, 0), n) // unclipped rewards may leave [0,n]
	p.at[a] = betaShapes{1 + s, 1 + n - s}
}

func (p *betaPosterior) draw(a int) float64 { return p.coins.Beta(p.at[a].a, p.at[a].b) }

func (p *betaPosterior) spread(a int) (mean, sd float64) {
	v := p.at[a]
	mean = v.a / (v.a + v.b)
	return mean, math.Sqrt(mean * (1 - mean) / (v.a + v.b + 1))
}

// over is the mass above c of the exponential law that touches the density at c.
func (p *betaPosterior) over(a int, c float64) float64 {
	v, c1 := p.at[a], 1-c
	all, _ := math.Lgamma(v.a + v.b)
	la, _ := math.Lgamma(v.a)
	lb, _ := math.Lgamma(v.b)
	density := math.Exp(all - la - lb + float64((v.a-1)*math.Log(c)) + float64((v.b-1)*math.Log(c1)))
	slope := (v.a-1)/c - (v.b-1)/c1
	if math.Abs(slope*c1) < 1e-9 {
		return density * c1
	}
	return density * math.Expm1(slope*c1) / slope
}

func (p *betaPosterior) above(a int, c float64) (theta float64, ok bool) {
	theta, _, ok = tangentDraw(p.coins, p.at[a].a, p.at[a].b, c, 1-c)
	return theta, ok
}

// raise knows a draw of Beta(a,b) as X/(X+Y), X ~ Gamma(a), Y ~ Gamma(b). Of Y, which is the sum of
// Gamma draws for what both places have, for successes that the higher one has more, and for
// failures that it has fewer, the second goes to X and the third is left out. Both make the ratio
// larger. How Y is divided depends neither on Y nor on X.
func (p *betaPosterior) raise(a, low int, theta float64) float64 {
	v, w := p.at[a], p.at[low]
	more, fewer := v.a-w.a, v.a+v.b-w.a-w.b
	x, y := theta, 1-theta
	if fewer < 0 {
		y *= p.coins.Beta(v.b+max(more, 0), -fewer)
	}
	all := x + y
	if more > 0 {
		x += float64(y * p.coins.Beta(more, v.b))
	}
	return x / all
}

func (p *betaPosterior) under(a int, c float64) float64 {
	return betaAbove(p.at[a].b, p.at[a].a, 1-c, c)
}

func (p *betaPosterior) below(a int, c float64) float64 {
	_, x := drawAbove(p.coins, p.at[a].b, p.at[a].a, 1-c, c, p.under(a, c) > seldom)
	return x
}

// quiet is Chernoff's bound. With X ~ Gamma(a), Y ~ Gamma(b), N = a+b and μ = a/N, θ ≤ c if
// W = (1−c)X − cY ≤ 0, and for λ = (μ−c)/(c(1−c)) > 0
//
//	P(W ≤ 0) ≤ E exp(−λW) = (1+λ(1−c))^−a (1−λc)^−b = (μ/c)^−a ((1−μ)/(1−c))^−b = exp(−N kl(μ,c)).
//
// It is smaller by twice what rounding may blur, and patience leaves once that much.
func (p *betaPosterior) quiet(a int, c float64) float64 {
	v := p.at[a]
	all := v.a + v.b
	return float64(all*divergence.KL(v.a/all, c)) - 2*blur(all)
}

func blur(all float64) float64 { return 1e-9 + float64(1e-14*all) }

// patience takes two of Newton's steps: N kl(a/N, c) is convex in N, and falls until a/N is c, so
// that steps from the left stay there.
func (p *betaPosterior) patience(a int, c, quiet float64) float64 {
	v := p.at[a]
	from := v.a + v.b
	quiet += blur(from)
	all := from
	for range 2 {
		mean := v.a / all
		if !(mean > c) {
			return -1
		}
		all += (float64(all*divergence.KL(mean, c)) - quiet) / math.Log1p((mean-c)/(1-mean))
		if all < from {
			return -1
		}
	}
	return math.Floor(all - from)
}

// normalPosterior is N(s/(n+1), 1/(n+1)).
type normalPosterior struct {
	coins Coins
	at    []normalMoments
}

type normalMoments struct{ n1, mean, sd float64 } // n1 is n+1

func (p *normalPosterior) set(a int, n, s float64) {
	p.at[a] = normalMoments{n + 1, s / (n + 1), 1 / math.Sqrt(n+1)}
}

func (p *normalPosterior) draw(a int) float64 {
	return p.at[a].mean + float64(p.at[a].sd*p.coins.Normal())
}

func (p *normalPosterior) spread(a int) (mean, sd float64) { return p.at[a].mean, p.at[a].sd }

// score is how far x is above the mean, in standard deviations.
func (p *normalPosterior) score(a int, x float64) float64 { return (x - p.at[a].mean) / p.at[a].sd }

func (p *normalPosterior) over(a int, c float64) float64 {
	return math.Erfc(p.score(a, c)/math.Sqrt2) / 2
}

func (p *normalPosterior) above(a int, c float64) (theta float64, ok bool) {
	return c + float64(p.beyond(p.score(a, c))*p.at[a].sd), true
}

// beyond draws Z − z for a standard normal Z, given Z > z: rejection from the exponential law of
// rate z at z (Robert, "Simulation of truncated normal variables", 1995), or from Z itself where
// that is not rare.
func (p *normalPosterior) beyond(z float64) float64 {
	if z < 1 {
		for {
			if x := p.coins.Normal() - z; x > 0 {
				return x
			}
		}
	}
	for {
		x := -math.Log(1-p.coins.Float64()) / z
		y := float64(x*x) / 2
		if u := p.coins.Float64(); u < 1-y || u < math.Exp(-y) {
			return x
		}
	}
}

// raise keeps the standard score. That of x, x√(n+1) − s/√(n+1), grows with n for x, s ≥ 0 and falls
// with s.
func (p *normalPosterior) raise(a, low int, theta float64) float64 {
	return p.at[a].mean + float64(p.at[a].sd*p.score(low, theta))
}

func (p *normalPosterior) under(a int, c float64) float64 {
	return math.Erfc(-p.score(a, c)/math.Sqrt2) / 2
}

func (p *normalPosterior) below(a int, c float64) float64 {
	return c - float64(p.beyond(-p.score(a, c))*p.at[a].sd)
}

// quiet is by P(Z ≤ −z) ≤ exp(−z²/2)/2, whose factor 1/2 is more than rounding can blur.
func (p *normalPosterior) quiet(a int, c float64) float64 {
	z := p.score(a, c)
	return float64(z*z) / 2
}

// For c > 0 the score of the mean over c, s/√(n+m+1) − c√(n+m+1), falls with m, and is z where
// √(n+m+1) = (√(z²+4cs) − z)/2c.
func (p *normalPosterior) patience(a int, c, quiet float64) float64 {
	v, z := p.at[a], math.Sqrt(2*quiet)
	root := (math.Sqrt(float64(z*z)+float64(4*c*v.mean*v.n1)) - z) / (2 * c)
	return math.Floor(float64(root*root) - v.n1 + 1e-9)
}
