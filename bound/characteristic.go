package bound

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// ErrTie is matched by the error for means of which several are the largest: no finite number of
// samples tells them apart.
var ErrTie = errors.New("several arms have the largest mean")

// A Characteristic is a characteristic time of best-arm identification: in the long run, as the
// risk δ goes to 0, a δ-correct policy needs Time samples for each log(1/δ). It is the value of a
// game between the player, who chooses which share of the plays each arm gets, and nature, who
// chooses the nearest instance with another best arm.
type Characteristic struct {
	Time float64 // what Allocation attains: an upper bound on the value
	// a lower bound on the value, from tangents to a convex function: Time − Low is the certified gap
	Low float64
	// Allocation is the share of each arm, sum 1.
	Allocation []float64
}

// Samples is Time·kl(δ, 1−δ): no policy that is right with probability 1−δ takes fewer samples in the
// mean, for a risk δ in (0,1); 0 from δ = ½ on. The event that the policy answers with the best arm
// has probability 1−δ at least, and δ at most on an instance with another best arm. By data processing
// the divergence of the two transcripts, which is at most the cost of the samples, is at least kl(1−δ,
// δ) = (1−2δ) log((1−δ)/δ). That is more than the log(1/(3δ)) to which [Azize 2024, Theorem 4.24] and
// [Azize et al. 2023, Theorem 2] round it down: 2.65 for 1.90 at δ = 0.05.
func (c Characteristic) Samples(risk float64) float64 {
	return max(0, float64(c.Low*(1-2*min(risk, 0.5)))*math.Log((1-risk)/risk))
}

// gapTolerance is the relative gap at which the solver stops.
const gapTolerance = 1e-9

// BernoulliTime is T*(ν;ε) of [Azize 2024, Theorem 4.24] for Bernoulli arms: E τ ≥ T*(ν;ε)
// kl(δ, 1−δ) (Samples) for every δ-correct ε-View DP policy, with
//
//	1/T* = max_ω min_λ min( Σ ω_a kl(μ_a, λ_a), ε Σ ω_a |μ_a − λ_a| ),   λ with another best arm.
//
// At ε = +Inf it is T*_KL (Garivier and Kaufmann 2016). epsilon is above 0; means are in [0,1], at
// least two, one of them largest: otherwise ErrTie.
//
// With ω_{a*} = 1 before scaling, arm a is told from the best at level y once it has the weight
// x_a(y), the larger of the inverse of the kl cost and y/(εΔ_a), and y ≤ εΔ_min: so 1/T* = max_y
// y/(1 + Σ x_a(y)), where all x_a are convex.
func BernoulliTime(means []float64, epsilon float64) (Characteristic, error) {
	best, err := checkMeans(means, 0, 1)
	if err != nil {
		return Characteristic{}, err
	}
	if !(epsilon > 0) {
		return Characteristic{}, fmt.Errorf("bound: epsilon is %v, must be above 0", epsilon)
	}
	pairs := make([]rival, 0, len(means)-1)
	for a, mean := range means {
		if a != best {
			pairs = append(pairs, bernoulli{means[best], mean, epsilon})
		}
	}
	return solve(pairs, best)
}

// GaussianTime is T*_KL for Gaussian arms of standard deviation sigma, and for rewards in [0,1] at
// sigma = 1/2 the time of all policies that use them as σ-sub-Gaussian.
func GaussianTime(means []float64, sigma float64) (Characteristic, error) {
	pairs, best, err := gaussians(means, sigma, math.Inf(1))
	if err != nil {
		return Characteristic{}, err
	}
	return solve(pairs, best)
}

// GaussianBetaTime is T*_{KL,β} for Gaussian arms: the same game when the best arm gets the share
// beta, in (0,1), of the plays, as by a Top Two policy. At beta = ½ it is at most twice
// GaussianTime (Russo 2016).
func GaussianBetaTime(means []float64, sigma, beta float64) (Characteristic, error) {
	return betaTime(means, sigma, beta, math.Inf(1))
}

// PrivateBetaTime is T*_{ε,β} of [Azize 2024, (5.13)], the relaxed private time of AdaP-TT*, at
// sigma = ½ in the source:
//
//	1/T*_{ε,β} = max_{ω: ω_{a*} = β} min_a Δ_a min{3ε, Δ_a}/(2σ²(1/β + 1/ω_a)).
func PrivateBetaTime(means []float64, sigma, beta, epsilon float64) (Characteristic, error) {
	if !(epsilon > 0) {
		return Characteristic{}, fmt.Errorf("bound: epsilon is %v, must be above 0", epsilon)
	}
	return betaTime(means, sigma, beta, epsilon)
}

// TVTime is T*_TV for Bernoulli arms in closed form, 1/Δ_min + Σ_{a≠a*} 1/Δ_a [Azize 2024,
// Proposition 4.26]: under strong privacy E τ ≥ (T*_TV/ε) log(1/(3δ)).
func TVTime(means []float64) (float64, error) {
	best, err := checkMeans(means, 0, 1)
	if err != nil {
		return 0, err
	}
	sum, least := 0.0, math.Inf(1)
	for a, mean := range means {
		if a != best {
			sum += 1 / (means[best] - mean)
			least = min(least, means[best]-mean)
		}
	}
	return sum + 1/least, nil
}

// RegimeBoundary is the ε at which T*_TV/ε = T*_KL for Bernoulli arms: above it the relaxed lower
// bound [Azize 2024, Corollary 4.25] is the one without privacy, below it that of privacy.
func RegimeBoundary(means []float64) (float64, error) {
	tv, err := TVTime(means)
	if err != nil {
		return 0, err
	}
	kl, err := BernoulliTime(means, math.Inf(1))
	if err != nil {
		return 0, err
	}
	return tv / kl.Time, nil
}

// AdaPTTUpper is the asymptotic upper bound of [Azize 2024, Theorem 5.20] on E τ/log(1/δ) of
// AdaP-TT, 4T*_{KL,β}(1 + √(1 + Δ_max²/(2σ⁴ε²))), for arms with distinct means: where two are equal
// it is no theorem, and the number is returned all the same.
func AdaPTTUpper(means []float64, epsilon, beta float64) (float64, error) {
	const sigma = 0.5
	t, err := GaussianBetaTime(means, sigma, beta)
	if err != nil {
		return 0, err
	}
	if !(epsilon > 0) {
		return 0, fmt.Errorf("bound: epsilon is %v, must be above 0", epsilon)
	}
	x := spread(means) / (sigma * sigma * epsilon)
	return 4 * t.Time * (1 + math.Sqrt(1+float64(x*x)/2)), nil
}

// AdaPTTStarUpper is the asymptotic upper bound of [Azize 2024, Theorem 5.23] on E τ/log(1/δ) of
// AdaP-TT*: 4T*_{KL,β} g₁(Δ_max/(σ²ε)) where Δ_max < 3ε, and otherwise (12/σ²)T*_{ε,β}
// g₂(3ε²T*_{ε,β} max{β,1−β}/2). Means as for AdaPTTUpper.
func AdaPTTStarUpper(means []float64, epsilon, beta float64) (float64, error) {
	const sigma = 0.5
	t, err := PrivateBetaTime(means, sigma, beta, epsilon)
	if err != nil {
		return 0, err
	}
	gap := spread(means)
	if gap < 3*epsilon { // then the two times are the same
		return 4 * t.Time * g1(gap/(sigma*sigma*epsilon)), nil
	}
	y := 3 * epsilon * epsilon * t.Time * max(beta, 1-beta) / 2
	return 12 / (sigma * sigma) * t.Time * (1 + 2/(math.Sqrt(1+1/y)-1)), nil
}

// g1 is sup{x: x² < x + y√(2x) + y²/4} of [Azize 2024, Theorem 5.23], the largest root
// of the difference.
func g1(y float64) float64 {
	lo, hi := 1.0, 1.0
	above := func(x float64) bool { return float64(x*x) > x+float64(y*math.Sqrt(2*x))+float64(y*y)/4 }
	for !above(hi) {
		lo, hi = hi, 2*hi
	}
	for range 200 {
		m := lo + (hi-lo)/2
		if m == lo || m == hi {
			break
		}
		if above(m) {
			hi = m
		} else {
			lo = m
		}
	}
	return hi
}

// spread is Δ_max.
func spread(means []float64) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, m := range means {
		lo, hi = min(lo, m), max(hi, m)
	}
	return hi - lo
}

// checkMeans returns the best arm.
func checkMeans(means []float64, lo, hi float64) (int, error) {
	if len(means) < 2 {
		return 0, fmt.Errorf("bound: %d means, must be at least 2", len(means))
	}
	best, ties := 0, 0
	for i, m := range means {
		if !(m >= lo && m <= hi) || math.IsInf(m, 0) {
			return 0, fmt.Errorf("bound: mean %d is %v, must be from %v to %v", i+1, m, lo, hi)
		}
		switch {
		case m > means[best]:
			best, ties = i, 0
		case i > 0 && m == means[best]:
			ties++
		}
	}
	if ties > 0 {
		return 0, fmt.Errorf("bound: mean %v of arm %d is that of %d others: %w", means[best],
			best+1, ties, ErrTie)
	}
	return best, nil
}

// A rival is what it takes to tell an arm from the best one: the cost C(1,x) of plays in the ratio
// 1 to x, concave and increasing in x.
type rival interface {
	// top is the supremum of C(1,x), and whether it is attained.
	top() (y float64, attained bool)
	// weight is the x at which C(1,x) = y, and its derivative in y, for 0 < y below top or at an
	// attained one. It is convex in y.
	weight(y float64) (x, slope float64)
}

// bernoulli costs min( kl(μ,m) + x kl(ν,m), ε min(1,x)(μ−ν) ), m = (μ + xν)/(1+x), μ > ν.
type bernoulli struct{ mu, nu, epsilon float64 }

func (b bernoulli) top() (float64, bool) {
	kl, tv := divergence.KL(b.mu, b.nu), float64(b.epsilon*(b.mu-b.nu))
	if tv < kl {
		return tv, true
	}
	return kl, false
}

func (b bernoulli) weight(y float64) (x, slope float64) {
	x, slope = b.klWeight(y)
	if tv := 1 / float64(b.epsilon*(b.mu-b.nu)); float64(tv*y) > x {
		return float64(tv * y), tv
	}
	return x, slope
}

// klWeight inverts x ↦ kl(μ,m) + x kl(ν,m), whose derivative is kl(ν,m). It is concave: Newton's
// steps from the left stay on the left.
func (b bernoulli) klWeight(y float64) (x, slope float64) {
	at := func(x float64) (g, d float64) {
		m := b.nu + (b.mu-b.nu)/(1+x)
		d = divergence.KL(b.nu, m)
		return divergence.KL(b.mu, m) + float64(x*d), d
	}
	g, d := at(1)
	for x = 1; g > y && x > 1e-30; g, d = at(x) { // beside the best arm's 1, less is nothing
		x /= 8
	}
	for range 200 {
		step := (y - g) / d
		if !(step > float64(1e-15*x)) {
			break
		}
		x += step
		if g, d = at(x); g >= y {
			break
		}
	}
	return x, 1 / d
}

// gaussian costs rate/(1 + 1/x).
type gaussian struct{ rate float64 }

func (g gaussian) top() (float64, bool) { return g.rate, false }

func (g gaussian) weight(y float64) (x, slope float64) {
	left := g.rate - y
	return y / left, g.rate / float64(left*left)
}

func gaussians(means []float64, sigma, epsilon float64) ([]rival, int, error) {
	const huge = 1e100
	best, err := checkMeans(means, -huge, huge)
	if err != nil {
		return nil, 0, err
	}
	if !(sigma > 0 && sigma <= huge) {
		return nil, 0, fmt.Errorf("bound: sigma is %v, must be above 0 and finite", sigma)
	}
	pairs := make([]rival, 0, len(means)-1)
	for a, mean := range means {
		if a != best {
			gap := means[best] - mean
			pairs = append(pairs, gaussian{gap * min(3*epsilon, gap) / (2 * sigma * sigma)})
		}
	}
	return pairs, best, nil
}

func betaTime(means []float64, sigma, beta, epsilon float64) (Characteristic, error) {
	pairs, best, err := gaussians(means, sigma, epsilon)
	if err != nil {
		return Characteristic{}, err
	}
	return solveBeta(pairs, best, beta)
}

// total is S(y) = Σ x_a(y) and its derivative.
func total(pairs []rival, y float64) (s, slope float64) {
	for _, p := range pairs {
		x, d := p.weight(y)
		s, slope = s+x, slope+d
	}
	return s, slope
}

// ceiling is the least top.
func ceiling(pairs []rival) (y float64, attained bool) {
	y = math.Inf(1)
	for _, p := range pairs {
		if t, at := p.top(); t < y || t == y && !at {
			y, attained = t, at
		}
	}
	return y, attained
}

// A tangent of S at y.
type tangent struct{ y, s, slope float64 }

// turn is 1 + S − yS', which falls in y and is 0 where (1+S(y))/y is least.
func (t tangent) turn() float64 { return 1 + t.s - float64(t.y*t.slope) }

// value is (1+S(y))/y: what the allocation (1, x_a(y)) attains.
func (t tangent) value() float64 { return (1 + t.s) / t.y }

func tooNear() error {
	return fmt.Errorf("bound: the best mean is too near another to tell them apart in any number "+
		"of samples: %w", ErrTie)
}

// solve minimises (1+S(y))/y for convex S by cutting planes. Above the least value of the larger of
// two tangents, one on either side, there is no better y: that is the certificate.
func solve(pairs []rival, best int) (Characteristic, error) {
	top, attained := ceiling(pairs)
	if !(top > 0) || math.IsInf(1/top, 1) {
		return Characteristic{}, tooNear()
	}
	at := func(y float64) tangent {
		s, slope := total(pairs, y)
		return tangent{y, s, slope}
	}
	if attained {
		if t := at(top); t.turn() >= 0 { // the least value is at the end of the range
			return t.characteristic(pairs, best, t.value()), nil
		}
	}
	// A left tangent with turn ≥ 0 and a right one with turn < 0.
	lo, hi := top/4, top/2
	if math.IsInf(top, 1) {
		lo, hi = 1, 2
	}
	left, right := at(lo), at(hi)
	// also where S is too large for a number, as it soon is where an arm's mean is 0
	for !(left.turn() >= 0) {
		right = left
		if left = at(left.y / 4); left.y == 0 {
			return Characteristic{}, tooNear()
		}
	}
	for !(right.turn() < 0) || math.IsInf(right.turn(), -1) {
		if !(right.turn() >= 0) || math.IsInf(right.turn(), 1) { // too large for numbers
			y := left.y + (right.y-left.y)/2
			if !(y > left.y && y < right.y) {
				return Characteristic{}, tooNear()
			}
			if t := at(y); t.turn() >= 0 {
				left = t
			} else {
				right = t
			}
			continue
		}
		left = right
		if math.IsInf(top, 1) {
			right = at(4 * right.y)
		} else {
			right = at(top - (top-right.y)/4)
		}
		if right.y == left.y { // the ceiling is nearer than numbers are
			return Characteristic{}, tooNear()
		}
	}
	incumbent, low := left, 0.0
	for range 500 {
		if right.value() < incumbent.value() {
			incumbent = right
		}
		if left.value() < incumbent.value() {
			incumbent = left
		}
		// Where the tangents meet.
		y := (left.s - float64(left.slope*left.y) - right.s +
			float64(right.slope*right.y)) / (right.slope - left.slope)
		if !(y > left.y && y < right.y) {
			low = max(low, min(incumbent.value(), left.value()))
			break
		}
		low = (1 + left.s + float64(left.slope*(y-left.y))) / y
		if incumbent.value()-low <= float64(gapTolerance*low) {
			break
		}
		// The meeting point may creep along one side: then halve.
		if w := right.y - left.y; y-left.y < 0.05*w || right.y-y < 0.05*w {
			y = left.y + w/2
		}
		if t := at(y); t.turn() >= 0 {
			left = t
		} else {
			right = t
		}
	}
	return incumbent.characteristic(pairs, best, min(low, incumbent.value())), nil
}

func (t tangent) characteristic(pairs []rival, best int, low float64) Characteristic {
	c := Characteristic{Time: t.value(), Low: low}
	c.Allocation = shares(pairs, best, t.y, 1/(1+t.s))
	return c
}

// shares is the allocation w·(1, x_a(y)), the best arm put in its place.
func shares(pairs []rival, best int, y, w float64) []float64 {
	out := make([]float64, 0, len(pairs)+1)
	for i := 0; i <= len(pairs); i++ {
		switch {
		case i == best:
			out = append(out, w)
		case i < best:
			x, _ := pairs[i].weight(y)
			out = append(out, float64(w*x))
		default:
			x, _ := pairs[i-1].weight(y)
			out = append(out, float64(w*x))
		}
	}
	return out
}

// solveBeta is the game in which the best arm has the share beta. Costs are homogeneous, so rival a
// needs the share β·x_a(z), z = y/β: the level is as high as Σ x_a(z) = (1−β)/β allows.
func solveBeta(pairs []rival, best int, beta float64) (Characteristic, error) {
	if !(beta > 0 && beta < 1) {
		return Characteristic{}, fmt.Errorf("bound: beta is %v, must be above 0 and below 1", beta)
	}
	top, attained := ceiling(pairs)
	if !(top > 0) || math.IsInf(1/top, 1) {
		return Characteristic{}, tooNear()
	}
	room := (1 - beta) / beta
	lo, hi := 0.0, top
	if attained {
		if s, _ := total(pairs, top); s <= room { // the best arm's share is what is short
			lo = top
		}
	}
	if math.IsInf(hi, 1) {
		for hi = 1; ; hi *= 2 {
			if s, _ := total(pairs, hi); s > room {
				break
			}
		}
	}
	for range 200 {
		z := lo + (hi-lo)/2
		if z == lo || z == hi {
			break
		}
		if s, _ := total(pairs, z); s <= room {
			lo = z
		} else {
			hi = z
		}
	}
	if math.IsInf(1/float64(beta*lo), 1) {
		return Characteristic{}, tooNear()
	}
	c := Characteristic{Time: 1 / float64(beta*lo), Low: 1 / float64(beta*hi)}
	c.Allocation = shares(pairs, best, lo, beta)
	sum := 0.0
	for _, w := range c.Allocation {
		sum += w
	}
	// what rounding and an attained top have left over goes to the others
	for i := range c.Allocation {
		if i != best {
			c.Allocation[i] *= (1 - beta) / (sum - beta)
		}
	}
	return c, nil
}
