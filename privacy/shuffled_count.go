package privacy

import (
	"errors"
	"fmt"
	"math"
)

// ShuffledCount releases the number of ones among the bits of one batch of users through a
// shuffler, with pure ε-DP. A reward in [0,1] is rounded to a bit at random first, which keeps its
// mean. Messages are "+1" and "−1"; the shuffler shows how many there are of each, and not whose
// they are. With q = e^{−ε1}, ε1 = Den/Num < ε, and γ = β/n for n = Users:
//
//   - every user draws A and B from Pólya(1/n, q) and C from D;
//   - it sends x + A + C messages "+1" and B + C messages "−1", or with probability γ ("blank") A
//     and B of them only;
//   - the analyser takes the difference of the two numbers. It is the number of ones plus
//     Lap_Z(1/ε1), except for the ones of blank users: nothing wraps around. There is a blank user
//     with probability β·answers/n at most.
//
// D(c) = g·e^{(ε−ε1)c} for c < L and the rest for c = L, where g = γ(e^ε−1)/(1−γ) and L = ⌈log(1 +
// (e^{ε−ε1}−1)/g)/(ε−ε1)⌉ − 1: see Cover.
//
// Theorem. The two numbers (P, M) are ε-DP under replace-one, also for an analyser who joins with
// all other users but n honest ones that answer.
//
// Proof. Give away everything of the others but their A and B, and subtract it. Then P = x + C + A
// and M = C + B for user 1, blank: P = A and M = B, where A and B are totals of n shares (those of
// further users are post-processing): independent and geometric, (1−q)q^a. For a user who is not
// blank and has the bit t
//
//	G_t(P,M) = (1−q)²·q^{P+M−t}·Σ_{c ≤ min(P−t, M)} D(c)q^{−2c},
//
// and for a blank one U(P,M) = (1−q)²·q^{P+M}. If M ≤ P−1 the sums have the same terms and G_1 =
// e^{ε1}G_0. If M ≥ P, put S(k) = Σ_{c≤k} D(c)e^{2ε1c}; G_0 is S(P) and G_1 is e^{ε1}S(P−1) ≤
// e^{ε1}G_0, up to the same factor, which is U. So with bit 1 no (P, M) is more than e^{ε1} times
// as likely as with bit 0. The other way, with M ≥ P, needs
//
//	(1−γ)S(P) + γ ≤ e^ε((1−γ)e^{ε1}S(P−1) + γ), that is S(P) − e^{ε+ε1}S(P−1) ≤ g for all P ≥ 0.
//
// For D above there is equality, by induction: S(P) = g(e^{(ε+ε1)(P+1)}−1)/(e^{ε+ε1}−1), until the
// mass is used up at L. There D(L) is at most what equality would need, and beyond it S(P) −
// e^{ε+ε1}S(P−1) < 0. ∎
//
// Why the parts are there: without the blank mode P = 0 would show that the bit is 0. Without C it
// would nearly so, for any small γ. Shares of 1/Invited would be too little noise when fewer answer.
//
// It takes O(log(n/β)/ε) messages a user. The sum modulo m of Cheu and Yan (2021), which [Chowdhury
// and Zhou 2023, Appendix D.2] takes, needs about n^2.5.
type ShuffledCount struct {
	Epsilon        float64
	Num, Den       uint64 // 1/ε1, the scale of the noise in the count
	Users, Invited int    // n_min, n_max
	Beta           float64
}

// coverUnit is the unit of a Cover's probabilities.
const coverUnit = 1 << 62

// maxCover bounds the numbers of pairs that a user may have to add.
const maxCover = 1 << 16

// A Cover hides one user's bit among messages that cancel: how often it is blank, and how many
// pairs C of "+1" and "−1" it adds if not. Probabilities are integers over 2^62.
type Cover struct {
	Blank uint64
	Pairs []uint64 // of C = 0, 1, …; their sum is 2^62
}

// CoverUnit is what the numbers of a Cover are divided by.
func CoverUnit() uint64 { return coverUnit }

// NewShuffledCount is the mechanism with ε1 = epsilon1, rounded down by less than a part in 2^31.
// [Chowdhury and Zhou 2023] have β = 1/(2T). The nearer ε1 is to ε, the less noise and the more
// messages: with (n, ε, β) = (1000, 1, 10^-3) there are 47 messages a user for ε1 = 0.5 and 107 for
// 0.8, and the noise has standard deviation 2.80 and 1.72, where the central mechanism has 1.36.
func NewShuffledCount(epsilon, epsilon1 float64, users, invited int, beta float64) (ShuffledCount, error) {
	if err := positive("epsilon1", epsilon1); err != nil {
		return ShuffledCount{}, fmt.Errorf("mechanism shuffled-count: %w", err)
	}
	if x := 1 / epsilon1; !(x <= 1<<50 && x >= 1.0/(1<<20)) {
		return ShuffledCount{}, fmt.Errorf("mechanism shuffled-count: epsilon1 is %v, must be "+
			"from 2^-50 to 2^20", epsilon1)
	}
	m := ShuffledCount{Epsilon: epsilon, Users: users, Invited: invited, Beta: beta}
	m.Num, m.Den = above(1 / epsilon1)
	return m, m.Validate()
}

// Kind is shuffled-count.
func (ShuffledCount) Kind() string { return "shuffled-count" }

// Continual is false.
func (ShuffledCount) Continual() bool { return false }

// Epsilon1 is ε1 = Den/Num.
func (m ShuffledCount) Epsilon1() float64 { return float64(m.Den) / float64(m.Num) }

// gamma is the probability of being blank, in the unit.
func (m ShuffledCount) gamma() uint64 {
	return uint64(math.Ceil(float64(m.Beta/float64(m.Users)) * coverUnit))
}

// Blank is γ, the probability of a user's being blank, rounded up to a multiple of 2^-62: that of
// Cover, without the work of the rest.
func (m ShuffledCount) Blank() float64 { return float64(m.gamma()) / coverUnit }

// g is γ(e^ε−1)/(1−γ).
func (m ShuffledCount) g() float64 {
	c := m.Blank()
	return c * math.Expm1(m.Epsilon) / (1 - c)
}

// pairs is L.
func (m ShuffledCount) pairs() float64 {
	d := m.Epsilon - m.Epsilon1()
	return max(0, math.Ceil(math.Log1p(math.Expm1(d)/m.g())/d)-1)
}

// Validate accepts 0 < ε1 < Epsilon ≤ 64, 1 ≤ Users ≤ Invited and 0 < Beta < 1, if L is at most 2^16.
func (m ShuffledCount) Validate() error {
	const kind = "mechanism shuffled-count: "
	var epsilon, noise, beta error
	if !(m.Epsilon > 0 && m.Epsilon <= 64) {
		epsilon = fmt.Errorf(kind+"epsilon is %v, must be above 0 and at most 64", m.Epsilon)
	} else if m.Num == 0 || m.Den == 0 {
		noise = fmt.Errorf(kind+"num/den is %d/%d, both must be at least 1", m.Num, m.Den)
	} else if e1 := m.Epsilon1(); !(e1 < m.Epsilon) {
		noise = fmt.Errorf(kind+"epsilon1 = den/num is %v, must be below epsilon, %v", e1, m.Epsilon)
	}
	if !(m.Beta > 0 && m.Beta < 1) {
		beta = fmt.Errorf(kind+"beta is %v, must be above 0 and below 1", m.Beta)
	}
	if err := errors.Join(epsilon, noise, beta, cohort(kind, m.Users, m.Invited)); err != nil {
		return err
	}
	if g := m.g(); !(g*coverUnit >= 1 && m.Beta/float64(m.Users) >= 1.0/(1<<52)) {
		return fmt.Errorf(kind+"beta/n is %v/%d, epsilon is %v: beta/n must be at least 2^-52, "+
			"and times epsilon 2^-62", m.Beta, m.Users, m.Epsilon)
	}
	if l := m.pairs(); !(l <= maxCover) {
		return fmt.Errorf(kind+"a user may have to send %v pairs of messages, for epsilon = %v, "+
			"epsilon1 = %v, n = %d, beta = %v, must be at most %d", l, m.Epsilon,
			m.Epsilon1(), m.Users, m.Beta, maxCover)
	}
	return nil
}

// Cover is the law D in integers, and γ rounded up. Every D(c) is rounded down given those before
// it, so that S(P) − e^{ε+ε1}S(P−1) ≤ g still holds.
func (m ShuffledCount) Cover() (Cover, error) {
	if err := m.Validate(); err != nil {
		return Cover{}, err
	}
	out := Cover{Blank: m.gamma()}
	g, e1 := m.g(), m.Epsilon1()
	// s is S(P)·e^{−2ε1P}.
	s, left, fall := 0.0, uint64(coverUnit), math.Exp(-2*e1)
	rise := math.Expm1(m.Epsilon+e1) * fall
	for p := 0.0; left > 0; p++ {
		d := math.Floor((float64(g*math.Exp(-2*e1*p)) + float64(rise*s)) * coverUnit)
		w := left
		if d < float64(left) {
			w = uint64(d)
		}
		if w == 0 || p > 2*maxCover { // Validate has seen to that, except for rounding
			return Cover{}, fmt.Errorf("mechanism shuffled-count: beta/n is %v/%d: for epsilon = "+
				"%v that is too small", m.Beta, m.Users, m.Epsilon)
		}
		out.Pairs = append(out.Pairs, w)
		left -= w
		s = float64(s*fall) + float64(w)/coverUnit
	}
	return out, nil
}

// Loss is ε'-DP for the largest log-ratio ε' ≤ Epsilon that the proof leaves, computed from the
// integers of Cover.
func (m ShuffledCount) Loss() Loss {
	c, err := m.Cover()
	if err != nil {
		return InfiniteLoss()
	}
	// a logarithm of a quotient near 1 rounds by itself
	return LossOf(Pure{raised(c.epsilon(m.Epsilon1())+ulps, guard)})
}

// epsilon is the largest of ε1 and log[((1−γ)S(P) + γ)/((1−γ)e^{ε1}S(P−1) + γ)].
func (c Cover) epsilon(e1 float64) float64 {
	gamma := float64(c.Blank) / coverUnit
	worst, before := e1, 0.0 // S(P−1)e^{−2ε1P}
	fall, blank := math.Exp(-2*e1), gamma
	for _, w := range c.Pairs {
		s := before + float64(w)/coverUnit
		worst = max(worst, math.Log((float64((1-gamma)*s)+
			blank)/(float64((1-gamma)*float64(math.Exp(e1)*before))+blank)))
		before, blank = s*fall, blank*fall
	}
	return worst
}

// Messages is the mean number of messages of a user whose mean reward is ½.
func (m ShuffledCount) Messages() float64 {
	c, err := m.Cover()
	if err != nil {
		return math.NaN()
	}
	mean := 0.0
	for k, w := range c.Pairs {
		mean += float64(k) * (float64(w) / coverUnit)
	}
	shares := 2 / (math.Expm1(m.Epsilon1()) * float64(m.Users))
	return float64((1-float64(c.Blank)/coverUnit)*(0.5+2*mean)) + shares
}

// Tail is that of the noise in the count if all who were invited answer.
func (m ShuffledCount) Tail() Tail { return m.TailOf(m.Invited) }

// TailOf is the tail of the noise if so many answer, the ones of blank users included: on top of
// Laplace noise S of weight r = answers/Users, whose tail is that of Aggregated.TailOf, at most
// Bin(answers, γ) ones are missing. The moment generating function of that at s ≤ ε1 is at most e^Λ
// with Λ = βr(e^{ε1}−1), so that Chernoff's bound for S holds for both with x + Λ for x.
func (m ShuffledCount) TailOf(answers int) Tail {
	if m.Validate() != nil {
		return Tail{}
	}
	b, r := 1/m.Epsilon1(), float64(answers)/float64(m.Users)
	extra := float64(float64(float64(m.gamma())/coverUnit)*float64(answers)) * math.Expm1(m.Epsilon1())
	if r == 1 {
		// One side: P(S ≥ v) ≤ e^{−v/b} for every integer v. Both sides together are e^{−x}
		// with the logarithm.
		return Tail{H: b, Log: extra + math.Log(2/(1+math.Exp(-1/b)))}
	}
	// √(x+Λ) ≤ √x + √Λ
	return Tail{Sigma: b * math.Sqrt(2*r), H: b, Log: extra + 2*math.Sqrt(float64(r*extra))}
}

func (ShuffledCount) facts() facts { return facts{sum: true} }
func (m ShuffledCount) entry() Entry {
	return Entry{Sensitivity: 1, Scale: 1 / m.Epsilon1(),
		Protects: fmt.Sprintf("a user's reward, from everybody but the shuffler, if %d honest "+
			"users answer", m.Users)}
}

func (m ShuffledCount) String() string {
	return fmt.Sprintf("shuffled-count(epsilon=%s,num=%d,den=%d,users=%d,invited=%d,beta=%s)",
		number(m.Epsilon), m.Num, m.Den, m.Users, m.Invited, number(m.Beta))
}

func (m *ShuffledCount) fields() []field {
	return []field{{"epsilon", &m.Epsilon}, {"num", &m.Num}, {"den", &m.Den}, {"users", &m.Users},
		{"invited", &m.Invited}, {"beta", &m.Beta}}
}

// MarshalJSON writes
// {"mechanism":"shuffled-count","epsilon":1,"num":2,"den":1,"users":1000,"invited":1000,"beta":0.001}.
func (m ShuffledCount) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m ShuffledCount) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
