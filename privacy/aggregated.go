package privacy

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// A Trust is a trust model: who adds the noise, and so whom a user need not believe.
type Trust string

const (
	// TrustCentral has the analyser add the noise [Chowdhury and Zhou 2023, Appendix H.1]. Users
	// believe the server.
	TrustCentral Trust = "central"
	// TrustLocal has every user add noise that is enough alone [Chowdhury and Zhou 2023, Appendix
	// H.2]. Users believe nobody.
	TrustLocal Trust = "local"
	// TrustShuffle hides who sent what. Users believe the shuffler and, for some mechanisms, one
	// another: ShuffledCount, SplitMix, Clones.
	TrustShuffle Trust = "shuffle"
	// TrustTwoServer splits every message between two servers, each of which adds a whole noise to
	// the sum (Corrigan-Gibbs and Boneh 2017). Users believe that one of them is honest.
	TrustTwoServer Trust = "two-server"
	// TrustSecAgg has every user add a share of the noise, and shows the sum only [Chowdhury and
	// Zhou 2023, section 4]. Users believe that enough others are honest.
	TrustSecAgg Trust = "secagg"
)

// A NoiseName is a family of integer noise.
type NoiseName string

const (
	// NoiseLaplace is discrete Laplace noise, for TrustCentral, TrustLocal and TrustTwoServer.
	NoiseLaplace NoiseName = "laplace"
	// NoisePolya is a difference of two Pólya variates, n of which add up to one discrete Laplace
	// variate [Chowdhury and Zhou 2023, Fact 1], for TrustSecAgg.
	NoisePolya NoiseName = "polya"
	// NoiseSkellam is a difference of two Poisson variates [Chowdhury and Zhou 2023, Definition 5].
	NoiseSkellam NoiseName = "skellam"
	// NoiseGaussian is discrete Gaussian noise (Canonne, Kamath and Steinke 2020).
	NoiseGaussian NoiseName = "gaussian"
	// NoiseCount is that of ShuffledCount, for TrustShuffle.
	NoiseCount NoiseName = "count"
)

// Aggregated releases the sum of one batch of rewards in [0,1] through the protocol of [Chowdhury
// and Zhou 2023, Algorithm 1]: each of the users that answer, Users to Invited of them, rounds G
// times its reward to an integer at random, adds noise and sends the result modulo Modulus; what is
// released is the sum modulo Modulus, and it is read as a number between −Tau and n·G + Tau, over
// G. Replacing a reward changes the sum of integers by G at most, and reduction modulo Modulus and
// reading are post-processing. So the loss follows from G and the noise alone:
//
//	laplace   a Lap_Z(b), b = Num/Den: ε = G/b ([Chowdhury and Zhou 2023, Fact 3]; Theorems 5 and 6)
//	polya     shares of a Lap_Z(b): the same, as soon as Users honest users have added theirs [Chowdhury and Zhou 2023, Theorem 1]
//	skellam   a total of variance σ²: the Rényi curve of skellamRenyi ([Chowdhury and Zhou 2023, Theorem 2] by its Lemma 3); as a ρ, D_2
//	gaussian  a sum of n shares of variance σ² each: the ρ of gaussianSumZCDP ([Chowdhury and Zhou 2023, Theorem 4] by its Lemma 4); n = 1 if one party adds it all
//
// Num/Den is b for laplace and polya. For skellam and gaussian it is the variance that each party
// that adds noise adds: the analyser (central), each user its own (local) or its share (secagg),
// each of two servers (two-server: the price is that of one server's noise, as the other may be
// corrupt, and the tail that of both). Num = 0 is no noise: secure aggregation alone costs ∞.
//
// Users is the smallest promised number of honest users that answer. Shares are calibrated to it:
// if fewer answer, there must be no release (see LossWith for what it would cost). Noise of further
// users, honest or not, is post-processing. Whether a user answers must not depend on its reward.
type Aggregated struct {
	Trust          Trust
	Noise          NoiseName
	G              int64 // precision: the integer that stands for reward 1
	Users, Invited int   // n_min, n_max
	Modulus, Tau   int64
	Num, Den       uint64
}

// Kind is aggregated.
func (Aggregated) Kind() string { return "aggregated" }

// Continual is false: a batch is released once.
func (Aggregated) Continual() bool { return false }

// Validate accepts the noises of each trust model, G ≥ 1, 1 ≤ Users ≤ Invited, Tau ≥ 0, Den ≥ 1 and
// a Modulus, below 2^63, of Invited·G + 2·Tau + 1 at least: with a smaller one, sums that are less
// than Tau out of range would be misread.
func (m Aggregated) Validate() error {
	const kind = "mechanism aggregated: "
	ok := false
	switch m.Trust {
	case TrustCentral, TrustLocal, TrustTwoServer:
		ok = m.Noise == NoiseLaplace || m.Noise == NoiseSkellam || m.Noise == NoiseGaussian
	case TrustSecAgg:
		ok = m.Noise == NoisePolya || m.Noise == NoiseSkellam || m.Noise == NoiseGaussian
	default:
		return fmt.Errorf(kind+"trust is %q, must be %q, %q, %q or %q", m.Trust, TrustCentral,
			TrustLocal, TrustTwoServer, TrustSecAgg)
	}
	var noise, den error
	if !ok && m.Trust == TrustSecAgg {
		noise = fmt.Errorf(kind+"noise is %q: for trust %q it must be %q, %q or %q", m.Noise,
			m.Trust, NoisePolya, NoiseSkellam, NoiseGaussian)
	} else if !ok {
		noise = fmt.Errorf(kind+"noise is %q: for trust %q it must be %q, %q or %q", m.Noise,
			m.Trust, NoiseLaplace, NoiseSkellam, NoiseGaussian)
	}
	if m.Den == 0 {
		den = errors.New(kind + "den is 0, must be at least 1")
	}
	if err := errors.Join(noise, atLeast(kind, "g", m.G, 1), cohort(kind, m.Users, m.Invited),
		atLeast(kind, "tau", m.Tau, 0), den); err != nil {
		return err
	}
	need, ok := modulus(m.G, m.Invited, m.Tau)
	if !ok {
		return fmt.Errorf(kind+"n·g + 2τ + 1 with n = %d, g = %d, τ = %d, must be below 2^63",
			m.Invited, m.G, m.Tau)
	}
	if m.Modulus < need {
		return fmt.Errorf(kind+"modulus is %d, must be at least n·g + 2τ + 1 = %d, for n = "+
			"%d, g = %d, τ = %d", m.Modulus, need, m.Invited, m.G, m.Tau)
	}
	return nil
}

func atLeast(kind, field string, x, least int64) error {
	if x < least {
		return fmt.Errorf("%s%s is %d, must be at least %d", kind, field, x, least)
	}
	return nil
}

func cohort(kind string, users, invited int) error {
	if users < 1 {
		return fmt.Errorf("%susers is %d: a batch must have at least 1", kind, users)
	}
	if invited < users {
		return fmt.Errorf("%sinvited is %d, must be at least users, %d", kind, invited, users)
	}
	return nil
}

// modulus is n·g + 2τ + 1, false from 2^63 on.
func modulus(g int64, n int, tau int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(g), uint64(n))
	lo, carry := bits.Add64(lo, 2*uint64(tau)+1, 0) // τ < 2^63
	if hi+carry > 0 || lo >= 1<<63 {
		return 0, false
	}
	return int64(lo), true
}

// A Calibration is what the integers of an Aggregated follow from.
type Calibration struct {
	Trust Trust
	Noise NoiseName
	// [Chowdhury and Zhou 2023]'s ε: pure for laplace and polya, about √(2ρ) for the others
	Epsilon float64
	// [Chowdhury and Zhou 2023]'s s ≥ 1: precision beyond ε√n. Theorems 1, 5 and 6 have s = 1
	S       float64
	Users   int // n_min, the smallest promised number of honest users that answer
	Invited int // n_max ≥ n_min, of all who may answer
	// P in (0,1): if all who were invited answer, the noise exceeds Tau, and the sum is misread,
	// with at most this probability. [Chowdhury and Zhou 2023] have 1/T.
	P float64
}

// NewAggregated calibrates the protocol, with n = Invited and r = Invited/Users:
//
//	g = ⌈sε√n⌉, τ = ⌈gν⌉, m = ng + 2τ + 1, L = log(2/p), and
//	laplace  b = g/ε                       ν = L/ε [Chowdhury and Zhou 2023, Theorem 5]; if local (2√(nL) + L)/ε (Theorem 6)
//	polya    b = g/ε, shares of 1/Users    ν = L/ε (Theorem 1); if r > 1 (2√(rL) + L)/ε
//	skellam  g²/ε² in all                  ν = 2√(rL)/ε + √2·L/g (Theorem 2)
//	gaussian g²/ε² in all                  ν = √(2rL)/ε (Theorem 4)
//
// where in the local model all of it is each user's and r = n. The sum of n local Laplaces has
// P(|S| > b(2√(nx)+x)) ≤ 2e^{−x}; [Chowdhury and Zhou 2023]'s Lemma 5 has an unknown constant
// instead. For a policy's radii to fail with probability p in all, take P = p/(4|Φ_b|b²) in batch b
// with |Φ_b| active arms: L = log(8|Φ_b|b²/p), where a share of e^{−L} = P/2 each goes to the two
// sides of the rewards' deviation and the two of the noise's.
//
// b and the variance are rounded up to a multiple of a power of two, by less than one part in 2^31,
// so that it costs no more than ε promises.
func NewAggregated(c Calibration) (Aggregated, error) {
	const kind = "mechanism aggregated: "
	var p error
	if !(c.P > 0 && c.P < 1) {
		p = fmt.Errorf(kind+"p is %v, must be above 0 and below 1", c.P)
	}
	var s error
	if !(c.S >= 1 && c.S <= math.MaxFloat64) {
		s = fmt.Errorf(kind+"s is %v, must be finite and at least 1", c.S)
	}
	var epsilon error
	if err := positive("epsilon", c.Epsilon); err != nil {
		epsilon = fmt.Errorf(kind+"%w", err)
	}
	if err := errors.Join(epsilon, s, p, cohort(kind, c.Users, c.Invited)); err != nil {
		return Aggregated{}, err
	}
	n := float64(c.Invited)
	// not one more for a product that was rounded
	g := math.Ceil(float64(c.S*c.Epsilon) * math.Sqrt(n) * (1 - 1e-14))
	if g >= 1<<63 {
		return Aggregated{}, fmt.Errorf(kind+"precision g = s·ε·√n is %.4g for s = %v, ε = %v, n "+
			"= %d, must be below 2^63", g, c.S, c.Epsilon, c.Invited)
	}
	m := Aggregated{Trust: c.Trust, Noise: c.Noise, G: int64(max(1, g)), Users: c.Users,
		Invited: c.Invited, Den: 1, Modulus: math.MaxInt64}
	// the names
	if err := (Aggregated{Trust: c.Trust, Noise: c.Noise, G: 1, Users: 1, Invited: 1, Modulus: 2,
		Den: 1}).Validate(); err != nil {
		return Aggregated{}, err
	}
	what, x := "scale g/ε", float64(m.G)/c.Epsilon
	if c.Noise == NoiseSkellam || c.Noise == NoiseGaussian {
		what, x = "variance g²/ε²", x*x
		if c.Trust == TrustSecAgg {
			what, x = "variance g²/(nε²)", x/float64(c.Users)
		}
	}
	if !(x <= 1<<50) {
		return Aggregated{}, fmt.Errorf(kind+"%s is %.4g for g = %d, ε = %v, n = %d, must be "+
			"at most 2^50", what, x, m.G, c.Epsilon, c.Users)
	}
	m.Num, m.Den = above(x)
	l := math.Log(2 / c.P)
	t := m.Tail()
	tau := math.Ceil(float64(m.G) * (float64(t.Sigma*math.Sqrt(2*l)) + float64(t.H*l)) * (1 - 1e-14))
	if !(tau < 1<<62) {
		return Aggregated{}, fmt.Errorf(kind+"τ is %.4g for g = %d, ε = %v, p = %v, must be "+
			"below 2^62", tau, m.G, c.Epsilon, c.P)
	}
	m.Tau = int64(tau)
	need, ok := modulus(m.G, m.Invited, m.Tau)
	if !ok {
		return Aggregated{}, m.Validate()
	}
	m.Modulus = need
	return m, m.Validate()
}

// above is the fraction in lowest terms that is not below x and less than a part in 2^31 above it,
// for 2^-20 ≤ x ≤ 2^50.
func above(x float64) (num, den uint64) {
	_, e := math.Frexp(x)
	k := max(0, 40-e)
	num, den = uint64(math.Ceil(math.Ldexp(x, k))), 1<<k
	shift := min(bits.TrailingZeros64(num), k)
	return num >> shift, den >> shift
}

// noise is Num/Den.
func (m Aggregated) noise() float64 { return float64(m.Num) / float64(m.Den) }

// Bits is what each user sends: ⌈log₂ Modulus⌉.
func (m Aggregated) Bits() int { return bits.Len64(uint64(m.Modulus - 1)) }

// Loss is what a reward loses if Users honest users answer.
func (m Aggregated) Loss() Loss { return m.lossWith(m.Users) }

// lossWith is what a reward loses if so many honest users answer, itself included: what a broken
// promise costs. It is ∞ for none, and Loss for Users or more.
//
// With half of the users missing, shares of ε = 0.1 cost 0.96: the noise's weight r is then below
// 1, and its law has a peak at 0. In detail, X − Y for independent X and Y of Pólya(r, β), r < 1,
// has mass f(x) = ∫t^|x| dν(t) for some measure ν on [0,β], as Γ(x+r)/(x!Γ(r)) is the x-th moment
// of Beta(r,1−r). So f(x)/f(x+G) falls in x ≥ 0, and the largest ratio of all is f(0)/f(G). It is
// not computed, and the loss is ∞, for G + 20b above 10^8.
func (m Aggregated) lossWith(honest int) Loss {
	if m.Validate() != nil || m.Num == 0 || honest < 1 {
		return InfiniteLoss()
	}
	honest = min(honest, m.Users)
	g, x := float64(m.G), m.noise()
	if m.Trust != TrustSecAgg {
		honest = 1
	}
	switch m.Noise {
	case NoiseLaplace:
		return discreteLaplaceLoss(g, x)
	case NoisePolya:
		if honest < m.Users {
			return LossOf(Pure{polyaEpsilon(m.G, x, float64(honest)/float64(m.Users))})
		}
		return discreteLaplaceLoss(g, x)
	case NoiseSkellam:
		return skellamLoss(g, x*float64(honest))
	}
	rho := gaussianSumZCDP(g, x, honest)
	return LossOf(ZCDP{rho})
}

// Tail of the noise in the sum over G if all who were invited answer: see TailOf.
func (m Aggregated) Tail() Tail { return m.TailOf(m.Invited) }

// TailOf is the tail of the noise in the sum over G, of rewards that were rounded, if so many
// answer. Rounded rewards are independent, in [0,1] and of the same mean, so that confidence
// radii need no term for rounding. In the analyser's reading the bound holds except for misreadings,
// which Tau makes rare.
//
// With r the number of complete noises in the sum, 1 (central), 2 (two-server), the answers (local)
// or answers/Users (secagg), and b, σ² those of one, in rewards:
//
//	laplace, polya  b(x + log(2/(1+e^{−1/b'}))) for r = 1, b' in integers: both sides together have probability e^{−x} then; else b(2√(rx) + x)
//	skellam         2σ√(rx) + √2·x/G [Chowdhury and Zhou 2023, Proposition 1]
//	gaussian        σ√(2rx): E e^{λX} ≤ e^{λ²σ²/2} also for discrete Gaussians
func (m Aggregated) TailOf(answers int) Tail {
	if m.Num == 0 || m.Den == 0 {
		return Tail{}
	}
	g, x, n := float64(m.G), m.noise(), float64(answers)
	switch m.Trust {
	case TrustCentral:
		n = 1
	case TrustTwoServer:
		n = 2
	}
	switch m.Noise {
	case NoiseLaplace, NoisePolya:
		if m.Noise == NoisePolya {
			n /= float64(m.Users)
		}
		if n == 1 {
			return Tail{H: x / g, Log: math.Log(2 / (1 + math.Exp(-1/x)))}
		}
		return Tail{Sigma: math.Sqrt(2*n) * x / g, H: x / g}
	case NoiseSkellam:
		return Tail{Sigma: math.Sqrt(2*n*x) / g, H: math.Sqrt2 / g}
	}
	return Tail{Sigma: math.Sqrt(n*x) / g}
}

// Of shares of Laplace noise the moment generating function is a power of that of a whole one, so
// that they count as parts of one. How many there are follows from who answers, which is not the
// mechanism's to say.
func (m Aggregated) facts() facts {
	f := facts{sum: true, noises: laplaces{scale: m.noise() / float64(m.G)}}
	switch {
	case m.Noise == NoisePolya:
		f.noises.each = 1 / float64(m.Users)
	case m.Noise != NoiseLaplace:
		f.noises.normal = m.Noise == NoiseGaussian
	case m.Trust == TrustCentral:
		f.noises.fixed = 1
	case m.Trust == TrustTwoServer:
		f.noises.fixed = 2
	case m.Trust == TrustLocal:
		f.noises.each = 1
	}
	return f
}

// entry is in integers: a reward changes the sum by G.
func (m Aggregated) entry() Entry {
	e := Entry{Sensitivity: float64(m.G), Scale: m.noise()}
	if m.Noise == NoiseSkellam || m.Noise == NoiseGaussian {
		parties := 1.0
		if m.Trust == TrustSecAgg {
			parties = float64(m.Users)
		}
		e.Scale = math.Sqrt(m.noise() * parties)
	}
	switch m.Trust {
	case TrustTwoServer:
		e.Protects = "a user's reward, from everybody, and from each of the two servers if the " +
			"other one is honest"
	case TrustLocal:
		e.Protects = "a user's reward, from everybody, the server too, which may see each " +
			"message: each has a whole noise"
	case TrustSecAgg:
		e.Protects = fmt.Sprintf("a user's reward, from everybody, the server too, which sees "+
			"the sum modulo %d only, if %d honest users answer", m.Modulus, m.Users)
	}
	return e
}

func (m Aggregated) String() string {
	return fmt.Sprintf("aggregated(trust=%s,noise=%s,g=%d,users=%d,invited=%d,modulus=%d,tau=%d,num=%d,den=%d)",
		m.Trust, m.Noise, m.G, m.Users, m.Invited, m.Modulus, m.Tau, m.Num, m.Den)
}

func (m *Aggregated) fields() []field {
	return []field{{"trust", &m.Trust}, {"noise", &m.Noise}, {"g", &m.G}, {"users", &m.Users},
		{"invited", &m.Invited}, {"modulus", &m.Modulus}, {"tau", &m.Tau}, {"num", &m.Num}, {"den", &m.Den}}
}

// MarshalJSON writes
// {"mechanism":"aggregated","trust":"secagg","noise":"polya","g":10,"users":100,"invited":100,"modulus":1107,"tau":53,"num":10,"den":1}.
func (m Aggregated) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Aggregated) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}

// inner is the Aggregated inside another mechanism.
type inner Aggregated

func (m inner) MarshalJSON() ([]byte, error) { return Aggregated(m).MarshalJSON() }

func (m *inner) UnmarshalJSON(data []byte) error {
	got, err := UnmarshalMechanism(data)
	if err != nil {
		return err
	}
	a, ok := got.(Aggregated)
	if !ok {
		return fmt.Errorf("it is of kind %q, must be %q", got.Kind(), a.Kind())
	}
	*m = inner(a)
	return nil
}
