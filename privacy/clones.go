package privacy

import (
	"fmt"
	"math"
)

// Clones is local noise amplified by a shuffler: every user sends its message of Inner, of trust
// local and noise laplace, and the shuffler hides whose is whose. Each message alone is ε0-DP, and
// all of them are (ε,Delta)-DP with the ε of clonesEpsilon for n = Users honest users that answer.
// It is charged for (ε,Delta), and what is known of ε0 is not added to it.
type Clones struct {
	Inner Aggregated
	Delta float64
}

// Kind is clones.
func (Clones) Kind() string { return "clones" }

// Continual is false.
func (Clones) Continual() bool { return false }

// Validate accepts 0 < Delta < 1 and a valid Inner of trust local and noise laplace.
func (m Clones) Validate() error {
	const kind = "mechanism clones: "
	if err := m.Inner.Validate(); err != nil {
		return fmt.Errorf(kind+"inner: %w", err)
	}
	if m.Inner.Trust != TrustLocal || m.Inner.Noise != NoiseLaplace {
		return fmt.Errorf(kind+"inner has trust %q and noise %q, must have %q and %q",
			m.Inner.Trust, m.Inner.Noise, TrustLocal, NoiseLaplace)
	}
	if err := probability("delta", m.Delta); err != nil {
		return fmt.Errorf(kind+"%w", err)
	}
	return nil
}

// Loss is (ε,Delta).
func (m Clones) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	e0 := m.Inner.Loss().Pure()
	if math.IsInf(e0, 1) {
		return InfiniteLoss()
	}
	return approxLoss(clonesEpsilon(m.Inner.Users, e0, m.Delta), m.Delta)
}

// Tail is Inner's.
func (m Clones) Tail() Tail { return m.Inner.Tail() }

// TailOf is Inner's.
func (m Clones) TailOf(answers int) Tail { return m.Inner.TailOf(answers) }

func (Clones) facts() facts { return facts{sum: true} }
func (m Clones) entry() Entry {
	e := m.Inner.entry()
	e.Protects = fmt.Sprintf("a user's reward, from everybody but the shuffler, if %d honest "+
		"users answer", m.Inner.Users)
	return e
}

func (m Clones) String() string {
	return "clones(delta=" + number(m.Delta) + "," + m.Inner.String() + ")"
}

// cloneShare is the probability that a report is a clone: see ClonesDelta.
func cloneShare(epsilon0 float64) float64 { return 2 / (math.Exp(epsilon0) + 1) }

// maxClones is where more users stop counting: more clones hide no worse.
const maxClones = 1 << 30

// ClonesDelta is a δ such that n shuffled reports, each through the same ε0-DP randomiser R, are
// (ε,δ)-DP under replace-one. With r = e^{ε0}, C ~ Bin(n−1, 2/(r+1)), A ~ Bin(C,½) and Δ ~ Ber(a), a
// = r/(r+1), the worlds are no easier to tell apart than
//
//	P = (A+Δ, C−A+1−Δ) and Q = (A+1−Δ, C−A+Δ),
//
// and δ is their hockey stick at ε. That is randomised response on a bit, where with probability
// 2/(r+1) a report is a clone: a fair coin that says nothing of its user. Feldman, McMillan and Talwar
// (2021) have e^{−ε0} clones a report; for randomised response there are up to twice as many (the same,
// 2023), and it is the worst of all ε0-DP randomisers, at every ε and so in every composition:
//
// Theorem. δ(ε) of the shuffled reports of any ε0-DP R is at most that of P and Q, at every real ε.
//
// Proof. Let ε in [0, ε0): beyond ε0 δ is 0, and for ε < 0 it is 1 − e^ε + e^ε·δ(−ε) of the worlds
// exchanged. Say R0 and R1 for R on the two rewards, ω = inf_x R(x) for the densities, and give away
// which of the others report from ω, and what those report that do not (Balle, Bell, Gascón and
// Nissim 2019). What is left are m reports from ω and one from R0 or R1, shuffled, with m ~ Bin(n−1,
// ∫ω). The density of the m+1 is the mean of R0/ω over them, so that
//
//	δ(ε) ≤ E[(Z_1 + … + Z_n)⁺]/n, Z independent: R0/ω − e^ε·R1/ω at a report from ω, else 0,
//
// with equality if all others are known except for what is from ω, as they are in P and Q. Now φ(Z) for a
// convex φ is convex in R0/ω, and in R1/ω, which are both in [1, r]: its mean grows if each is moved to
// 1 and r, keeping its mean. Let (r,1), (1,r), (1,1) and (r,r) have α, β, c and d of ω. R0 and R1 have
// the mass 1, so α = β and c + rd = 1 − (r+1)α; P and Q have α = 1/(r+1) and c = d = 0. With T = r −
// e^ε > 0 and B = 1 − r·e^ε < 0, that is as much as to say
//
//	c(φ(1−e^ε) − φ(0)) + d(φ(r−r·e^ε) − φ(0)) ≤ (c + rd)/(r+1)·(φ(T) + φ(B) − 2φ(0)),
//
// which is true for c and d one by one. (r+1)(1−e^ε) = T + B + (r−1)·0 is Jensen's inequality. And
// (r+1)(r−r·e^ε) + (r−1)·0 = rT + rB, where both numbers on the left are in [B, T]: there φ is below
// its chord, and on the right it is on it. So Z of R is below that of P and Q in convex order, and so
// are sums of independent ones, and E[(·)⁺] of them. ∎
//
// Swapping the coordinates swaps P and Q, so one side is both. Given C = c, P > e^ε·Q where the first
// coordinate x has x·u > (c+1−x)·v, u = a − e^ε(1−a), v = e^ε·a − (1−a): for x ≥ x0, and with the
// masses f and upper tails F of Bin(c,½)
//
//	Σ_{x≥x0} P(x) − e^ε·Q(x) = u·f(x0−1) − (v−u)·F(x0).
//
// This is averaged over all c but some of mass below 10^-22, which is added. It is right to about
// 10 digits. It is 0 for ε ≥ ε0.
func ClonesDelta(n int, epsilon0, epsilon float64) float64 {
	if !(epsilon0 >= 0) || !(epsilon >= 0) || n < 1 {
		return 1
	}
	if epsilon >= epsilon0 {
		return 0
	}
	a := 1 / (1 + math.Exp(-epsilon0))
	u, v := -math.Expm1(epsilon-epsilon0)*a, a*(math.Exp(epsilon)-math.Exp(-epsilon0))
	theta := v / (u + v)
	others, p := float64(min(n, maxClones)-1), cloneShare(epsilon0)
	lo, hi, delta := binomialRange(others, p, 1e-26)
	w := binomial(lo, others, p)
	// f is f_c(x0−1) and tail F_c(x0), both followed from c to c+1. Subtractions lose digits of the
	// tail as it falls, so it is summed anew from time to time.
	x0 := math.Floor(theta*(lo+1)) + 1
	f, tail := upperTail(lo, x0)
	fresh := tail
	for c := lo; ; c++ {
		delta += w * max(0, float64(u*f)-float64((v-u)*tail))
		if c >= hi {
			if math.IsNaN(delta) { // e^ε has left the doubles
				return 1
			}
			return min(1, delta)
		}
		w *= (others - c) * p / ((c + 1) * (1 - p))
		tail += f / 2
		f *= (c + 1) / (2 * (c + 2 - x0))
		for x := math.Floor(theta*(c+2)) + 1; x0 < x; x0++ {
			f *= (c + 1 - x0 + 1) / x0
			tail -= f
		}
		if tail < fresh/16 || tail > 16*fresh {
			f, tail = upperTail(c+1, x0)
			fresh = tail
		}
	}
}

// binomialRange is a range around the mode of Bin(n, p) at whose ends the mass is at most small, or
// which has 0 or n for an end. Cut bounds the mass of what is outside, and of the ends that are not
// 0 or n: from there masses fall faster than geometrically, by the factor of the first step.
func binomialRange(n, p, small float64) (lo, hi, cut float64) {
	mode := min(math.Floor((n+1)*p), n)
	top := binomial(mode, n, p)
	lo, w := mode, top
	for lo > 0 && w > small {
		w *= lo * (1 - p) / ((n - lo + 1) * p)
		lo--
	}
	if lo > 0 {
		cut += binomial(lo, n, p) / (1 - lo*(1-p)/((n-lo+1)*p))
	}
	hi, w = mode, top
	for hi < n && w > small {
		w *= (n - hi) * p / ((hi + 1) * (1 - p))
		hi++
	}
	if hi < n {
		cut += w / (1 - (n-hi)*p/((hi+1)*(1-p)))
	}
	return lo, hi, cut
}

// upperTail is f(x−1) and P(Bin(c,½) ≥ x), for x ≥ (c+1)/2.
func upperTail(c, x float64) (f, tail float64) {
	f = binomial(x-1, c, 0.5)
	term := f
	for k := x - 1; k < c; k++ {
		term *= (c - k) / (k + 1)
		tail += term
		if term <= 1e-18*tail {
			break
		}
	}
	return f, tail
}

// clonesRounding is more than the share of itself that ClonesDelta rounds: at most 2·10⁻¹³ in ten
// cases against 40 digits.
const clonesRounding = 1e-11

// clonesEpsilon is the least ε ≤ ε0 for which ClonesDelta is at most δ, from above: to 13 digits
// for a δ that is lower by 10⁻¹¹ of it. For n = 10^5, ε0 = 4, δ = 10^-6 it is 0.118153; with
// e^{−ε0} clones a report it was 0.169770, and closed forms of that give 0.53 and more.
func clonesEpsilon(n int, epsilon0, delta float64) float64 {
	if !(delta > 0) || !(epsilon0 >= 0) || n < 1 {
		return math.Inf(1)
	}
	delta -= float64(delta * clonesRounding)
	if ClonesDelta(n, epsilon0, 0) <= delta {
		return 0
	}
	lo, hi := 0.0, epsilon0
	for range 200 {
		mid := (lo + hi) / 2
		if hi-lo < 1e-13*hi || mid <= lo || mid >= hi {
			break
		}
		if ClonesDelta(n, epsilon0, mid) <= delta {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// ClonesLocal is the ε0 that each of n users may spend for all reports together to be (ε,δ)-DP: the
// largest with ClonesDelta at most δ, from below. It is at least ε.
func ClonesLocal(n int, b Approx) (float64, error) {
	if err := b.Validate(); err != nil {
		return 0, fmt.Errorf("clones: %w", err)
	}
	if n < 1 {
		return 0, fmt.Errorf("clones: users is %d: a batch must have at least 1", n)
	}
	lo := b.Epsilon
	hi := lo + math.Log(float64(n)) + 40
	for range 100 {
		mid := (lo + hi) / 2
		if hi-lo < 1e-10*lo || mid <= lo || mid >= hi {
			break
		}
		if ClonesDelta(n, mid, b.Epsilon) <= b.Delta*(1-clonesRounding) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// binomial is the mass of Bin(n, p) at k, right to 13 digits and more (Loader 2000): lgamma would
// lose as many as n has.
func binomial(k, n, p float64) float64 {
	switch {
	case k < 0 || k > n:
		return 0
	case k == 0:
		return math.Exp(n * math.Log1p(-p))
	case k == n:
		return math.Exp(n * math.Log(p))
	}
	l := stirling(n) - stirling(k) - stirling(n-k) - deviance(k, n*p) - deviance(n-k, n*(1-p))
	return math.Exp(l) * math.Sqrt(n/(2*math.Pi*k*(n-k)))
}

// stirling is log n! − log(√(2πn)(n/e)^n).
func stirling(n float64) float64 {
	if n < 16 {
		g, _ := math.Lgamma(n + 1)
		return g - float64((n+0.5)*math.Log(n)) + n - math.Log(2*math.Pi)/2
	}
	n2 := n * n
	return (1.0/12 - (1.0/360-(1.0/1260-(1.0/1680)/n2)/n2)/n2) / n
}

// deviance is x·log(x/m) + m − x.
func deviance(x, m float64) float64 {
	if math.Abs(x-m) < 0.1*(x+m) {
		v := (x - m) / (x + m)
		s, term := (x-m)*v, 2*x*v
		for j := 1.0; ; j++ {
			term *= v * v
			next := s + term/(2*j+1)
			if next == s {
				return s
			}
			s = next
		}
	}
	return float64(x*math.Log(x/m)) + m - x
}

func (m *Clones) fields() []field {
	return []field{{"inner", (*inner)(&m.Inner)}, {"delta", &m.Delta}}
}

// MarshalJSON writes {"mechanism":"clones","inner":{…},"delta":1e-06}.
func (m Clones) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Clones) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
