package privacy

import (
	"fmt"
	"math"
)

// SplitMix is secure aggregation by a shuffler (Ishai, Kushilevitz, Ostrovsky and Sahai 2006;
// Balle, Bell, Gascón and Nissim 2020): every user of Inner splits its message, which is its reward
// with its share of the noise, into Shares uniform elements of the integers modulo Inner.Modulus
// that add up to it, and the shuffler shows all elements of all users without an order. For two
// batches with the same sum what it shows has statistical distance 2^{−σ} at most, where
//
//	Shares = max(3, ⌈(2σ + log₂ m)/(log₂ n − log₂ e) + 1⌉), n = Users ≥ 19.
//
// Why, in short, for any messages, not only for uniform ones: against uniform elements with the
// same sum the law of what is shown has chi-square divergence E m^{C−1} − 1 at most, C the
// components of a random graph that has the n users for vertices and Shares·n edges, each user
// being the head of Shares of them and the tail of as many: two ways to deal the elements out agree
// on a user's messages as often as if these were uniform, except for one relation a component. So the
// statistical distance is ½√(E m^{C−1} − 1); a user alone is a component with probability
// 1/binomial(Shares·n, Shares). The formula is from the second source; computed exactly for n = 19,
// 24, 40 and 80, m from 2 to 2^62 and σ from ½ to 40, the distance is below 2^{−σ} each time.
//
// So if Inner is ε-DP, this is (ε, (1+e^ε)2^{−σ})-DP: what it shows is within 2^{−σ} of a function
// of the noisy sum, under either of two neighbours. It is never pure.
type SplitMix struct {
	Inner  Aggregated // of trust secagg and noise polya
	Shares int
}

// MinSplitMix is the least number of users for which the analysis of SplitMix holds.
const MinSplitMix = 19

// Kind is split-mix.
func (SplitMix) Kind() string { return "split-mix" }

// Continual is false.
func (SplitMix) Continual() bool { return false }

// Validate accepts at least 3 shares and a valid Inner of trust secagg and noise polya, of
// at least 19 users.
func (m SplitMix) Validate() error {
	const kind = "mechanism split-mix: "
	if err := m.Inner.Validate(); err != nil {
		return fmt.Errorf(kind+"inner: %w", err)
	}
	if m.Inner.Trust != TrustSecAgg || m.Inner.Noise != NoisePolya {
		return fmt.Errorf(kind+"inner has trust %q and noise %q, must have %q and %q",
			m.Inner.Trust, m.Inner.Noise, TrustSecAgg, NoisePolya)
	}
	if m.Inner.Users < MinSplitMix {
		return fmt.Errorf(kind+"users is %d, must be at least %d", m.Inner.Users, MinSplitMix)
	}
	if m.Shares < 3 || m.Shares > 1<<20 {
		return fmt.Errorf(kind+"shares is %d, must be from 3 to 2^20", m.Shares)
	}
	return nil
}

// Sigma is the σ that Shares give: ½((Shares−1)(log₂ n − log₂ e) − log₂ m).
func (m SplitMix) Sigma() float64 {
	users, modulus := float64(m.Inner.Users), float64(m.Inner.Modulus)
	return (float64(float64(m.Shares-1)*(math.Log2(users)-math.Log2E)) - math.Log2(modulus)) / 2
}

// bits is what each user sends.
func (m SplitMix) bits() int { return m.Shares * m.Inner.Bits() }

// Loss is (ε, (1+e^ε)2^{−σ}) with Inner's ε.
func (m SplitMix) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	e := m.Inner.Loss().Pure()
	return approxLoss(e, raised((1+math.Exp(e))*math.Exp2(-m.Sigma()), many))
}

// Tail is Inner's.
func (m SplitMix) Tail() Tail { return m.Inner.Tail() }

// TailOf is Inner's.
func (m SplitMix) TailOf(answers int) Tail { return m.Inner.TailOf(answers) }

// splitMixShares is how many shares have statistical distance 2^{−sigma}, for n users and the
// integers modulo m.
func splitMixShares(sigma float64, n int, m int64) (int, error) {
	if !(sigma > 0 && sigma <= 1024) {
		return 0, fmt.Errorf("split and mix: sigma is %v, must be above 0 and at most 1024", sigma)
	}
	if n < MinSplitMix {
		return 0, fmt.Errorf("split and mix: users is %d, must be at least %d", n, MinSplitMix)
	}
	if m < 2 {
		return 0, fmt.Errorf("split and mix: modulus is %d, must be at least 2", m)
	}
	return max(3, int(math.Ceil((2*sigma+math.Log2(float64(m)))/(math.Log2(float64(n))-math.Log2E)+1))), nil
}

// NewSplitMix has as many shares as 2^{−sigma} needs.
func NewSplitMix(inner Aggregated, sigma float64) (SplitMix, error) {
	m := SplitMix{Inner: inner, Shares: 3}
	if err := m.Validate(); err != nil {
		return SplitMix{}, err
	}
	var err error
	if m.Shares, err = splitMixShares(sigma, inner.Users, inner.Modulus); err != nil {
		return SplitMix{}, fmt.Errorf("mechanism split-mix: %w", err)
	}
	return m, nil
}

func (SplitMix) facts() facts { return facts{sum: true} }
func (m SplitMix) entry() Entry {
	e := m.Inner.entry()
	e.Protects = fmt.Sprintf("a user's reward, from everybody but the shuffler, if %d honest "+
		"users answer", m.Inner.Users)
	return e
}

func (m SplitMix) String() string { return fmt.Sprintf("split-mix(shares=%d,%v)", m.Shares, m.Inner) }

func (m *SplitMix) fields() []field {
	return []field{{"inner", (*inner)(&m.Inner)}, {"shares", &m.Shares}}
}

// MarshalJSON writes {"mechanism":"split-mix","inner":{…},"shares":12}.
func (m SplitMix) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m SplitMix) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
