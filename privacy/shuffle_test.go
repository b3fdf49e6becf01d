package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleNewShuffledCount() {
	m, err := privacy.NewShuffledCount(1, 0.5, 1000, 1000, 1e-3)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := m.Cover()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m)
	fmt.Printf("%v, at most %d pairs, %.1f messages a user\n", m.Loss().In(privacy.Pure{}),
		len(c.Pairs)-1, m.Messages())
	// Output:
	// shuffled-count(epsilon=1,num=2,den=1,users=1000,invited=1000,beta=0.001)
	// epsilon=1.000000000000012, at most 25 pairs, 46.9 messages a user
}

func ExampleNewSplitMix() {
	inner, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 0.5, S: 1, Users: 10_000, Invited: 10_000,
		P: 0.01})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := privacy.NewSplitMix(inner, 40)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d shares of %d bits: %v\n", m.Shares, inner.Bits(), m.Loss().In(privacy.Approx{Delta: 1e-11}))
	// Output:
	// 10 shares of 19 bits: epsilon=0.5,delta=1e-11
}

func shuffled(t testing.TB, epsilon, epsilon1 float64, n int, beta float64) privacy.ShuffledCount {
	t.Helper()
	m, err := privacy.NewShuffledCount(epsilon, epsilon1, n, n, beta)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestShuffledCountWorkedNumbers(t *testing.T) {
	for _, c := range []struct {
		n                       int
		epsilon, epsilon1, beta float64
		pairs                   int
		messages                string
		sd, rounded             float64
	}{
		{1000, 1, 0.8, 1e-3, 58, "107", 1.72, 0.005},
		{1000, 1, 0.5, 1e-3, 25, "47", 2.80, 0.005},
		{10_000, 1, 0.9, 1e-6, 202, "384", 1.52, 0.005},
		{65_536, 1, 0.8, 5e-7, 117, "225", 1.72, 0.005},
		{1000, 0.1, 0.05, 1e-3, 261, "483", 28.3, 0.05},
		{1000, 0.1, 0.08, 1e-3, 608, "1116", 17.7, 0.05},
	} {
		m := shuffled(t, c.epsilon, c.epsilon1, c.n, c.beta)
		cover, err := m.Cover()
		if err != nil {
			t.Fatal(err)
		}
		if got := len(cover.Pairs) - 1; got != c.pairs {
			t.Errorf("%v: L = %d, want %d", m, got, c.pairs)
		}
		if got := fmt.Sprintf("%.0f", m.Messages()); got != c.messages {
			t.Errorf("%v: %s messages, want %s", m, got, c.messages)
		}
		if got, want := m.Blank(), float64(cover.Blank)/float64(privacy.CoverUnit()); got != want {
			t.Errorf("%v: blank with %v, its cover with %v", m, got, want)
		}
		q := math.Exp(-m.Epsilon1())
		if got := math.Sqrt(2*q) / (1 - q); math.Abs(got-c.sd) > c.rounded {
			t.Errorf("%v: standard deviation %v, want %v", m, got, c.sd)
		}
		near(t, m.String(), m.Loss().Pure(), c.epsilon, 1e-9)
		// The integers follow D.
		sum := uint64(0)
		gamma := c.beta / float64(c.n)
		for k, w := range cover.Pairs {
			sum += w
			d := gamma * math.Expm1(c.epsilon) / (1 - gamma) *
				math.Exp((c.epsilon-m.Epsilon1())*float64(k))
			if k < c.pairs {
				near(t, fmt.Sprintf("D(%d)", k), float64(w)/(1<<62), d, 1e-6)
			}
		}
		if sum != privacy.CoverUnit() {
			t.Errorf("%v: masses add up to %d", m, sum)
		}
	}
}

// A view is the law of (P, M) up to P, M < side.
type view [][]float64

const side = 26

func convolve(a, b view) view {
	out := make(view, side)
	for i := range out {
		out[i] = make([]float64, side)
	}
	for i := range side {
		for j := range side {
			if a[i][j] == 0 {
				continue
			}
			for k := range side - i {
				for l := range side - j {
					out[i+k][j+l] += a[i][j] * b[k][l]
				}
			}
		}
	}
	return out
}

// sender is the law of one user's messages: the bit, the share's weight r, q, and the cover.
func sender(bit int, r, q, gamma float64, pairs []float64) view {
	polya := make([]float64, side)
	polya[0] = math.Pow(1-q, r)
	for x := 1; x < side; x++ {
		polya[x] = polya[x-1] * q * (float64(x-1) + r) / float64(x)
	}
	out := make(view, side)
	for i := range out {
		out[i] = make([]float64, side)
		for j := range out[i] {
			out[i][j] = gamma * polya[i] * polya[j]
			for c, d := range pairs {
				if x, y := i-bit-c, j-c; x >= 0 && y >= 0 {
					out[i][j] += (1 - gamma) * d * polya[x] * polya[y]
				}
			}
		}
	}
	return out
}

// worst is the largest log-ratio of the views with the first user's bit replaced, in
// either direction.
func worst(users func(first int) []view) float64 {
	total := [2]view{}
	for bit := range total {
		all := users(bit)
		total[bit] = all[0]
		for _, v := range all[1:] {
			total[bit] = convolve(total[bit], v)
		}
	}
	most := 0.0
	for i := range side {
		for j := range side {
			if a, b := total[0][i][j], total[1][i][j]; a != b {
				most = max(most, math.Abs(math.Log(a/b)))
			}
		}
	}
	return most
}

// Three users, every share drawn apart, all messages convolved: the largest ratio of any view is
// e^ε and no more. Each part left out, or calibrated for users who do not answer, is caught.
func TestShuffledCountByBruteForce(t *testing.T) {
	const epsilon, beta = 1.0, 0.2
	for _, e1 := range []float64{0.5, 0.75} {
		m := shuffled(t, epsilon, e1, 3, beta)
		cover, err := m.Cover()
		if err != nil {
			t.Fatal(err)
		}
		var pairs []float64
		for _, w := range cover.Pairs {
			pairs = append(pairs, float64(w)/(1<<62))
		}
		if len(pairs) > side/2 {
			t.Fatalf("L = %d leaves the table", len(pairs)-1)
		}
		gamma, q := float64(cover.Blank)/(1<<62), math.Exp(-m.Epsilon1())
		three := func(r, gamma float64, pairs []float64) float64 {
			return worst(func(first int) []view {
				return []view{sender(first, r, q, gamma, pairs), sender(1, r, q, gamma, pairs),
					sender(0, r, q, gamma, pairs)}
			})
		}
		near(t, "largest log-ratio", three(1.0/3, gamma, pairs), epsilon, 1e-9)
		near(t, "loss", m.Loss().Pure(), epsilon, 1e-9)
		even := slices.Repeat([]float64{1 / float64(len(pairs))}, len(pairs))
		for _, twin := range []struct {
			name  string
			ratio float64
			least float64
		}{
			{"never blank", three(1.0/3, 0, pairs), math.Inf(1)},
			{"no pairs", three(1.0/3, gamma, []float64{1}), epsilon * 1.5},
			{"an even number of pairs", three(1.0/3, gamma, even), epsilon * 1.01},
			{"shares for four, three answer", three(1.0/4, gamma, pairs), epsilon * 1.01},
			{"half the noise", worst(func(first int) []view {
				half := q * q
				return []view{sender(first, 1.0/3, half, gamma, pairs),
					sender(1, 1.0/3, half, gamma, pairs), sender(0, 1.0/3, half, gamma, pairs)}
			}), epsilon * 1.01},
		} {
			t.Logf("ε1 = %v, %s: %.3f", e1, twin.name, twin.ratio)
			if !(twin.ratio >= twin.least) {
				t.Errorf("ε1 = %v, %s: the largest log-ratio is %v, want %v at least", e1,
					twin.name, twin.ratio, twin.least)
			}
		}
	}
}

func anyShuffledCount(t *rapid.T) (privacy.ShuffledCount, error) {
	epsilon := math.Exp(rapid.Float64Range(-4, 2).Draw(t, "log epsilon"))
	users := int(math.Exp(rapid.Float64Range(0, 14).Draw(t, "log users")))
	return privacy.NewShuffledCount(epsilon, epsilon*rapid.Float64Range(0.1, 0.95).Draw(t, "share"),
		users, users+rapid.IntRange(0, users).Draw(t, "more"),
		math.Exp(rapid.Float64Range(-20, -0.1).Draw(t, "log beta")))
}

// The loss that is left by the integers is ε and not above it; D's masses grow but for the last.
func TestShuffledCountLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := anyShuffledCount(t)
		if err != nil {
			t.Fatal(err)
		}
		c, err := m.Cover()
		if err != nil {
			t.Fatal(err)
		}
		// If the mass is used up at once, a little less than ε is lost.
		if e := m.Loss().Pure(); !(e <= m.Epsilon*(1+1e-12) && (e >= m.Epsilon*(1-1e-4) || len(c.Pairs) == 1)) {
			t.Fatalf("%v loses %v", m, e)
		}
		if n := len(c.Pairs) - 1; !slices.IsSorted(c.Pairs[:n]) {
			t.Fatalf("%v: %v", m, c.Pairs)
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := privacy.UnmarshalMechanism(data); got != m || err != nil {
			t.Fatalf("%s reads back as %v, %v", data, got, err)
		}
	})
}

// The tail against the exact law of the noise: Laplace minus the ones of blank users,
// all bits being 1.
func TestShuffledCountTail(t *testing.T) {
	for _, beta := range []float64{1e-3, 0.5} {
		const n = 40
		m := shuffled(t, 1, 0.7, n, beta)
		c, err := m.Cover()
		if err != nil {
			t.Fatal(err)
		}
		gamma, b := float64(c.Blank)/(1<<62), 1/m.Epsilon1()
		below := func(y float64) float64 { // P(noise < −y)
			sum, w := 0.0, math.Pow(1-gamma, n)
			for k := range n + 1 {
				z := math.Floor(y-float64(k)) + 1 // Lap ≥ z
				p := math.Exp(-z/b) / (1 + math.Exp(-1/b))
				if z <= 0 {
					p = 1 - math.Exp((z-1)/b)/(1+math.Exp(-1/b))
				}
				sum += w * p
				w *= float64(n-k) / float64(k+1) * gamma / (1 - gamma)
			}
			return sum
		}
		tail := m.Tail()
		for x := 0.0; x < 30; x += 0.01 {
			if y := tail.H * (x + tail.Log); below(y) > math.Exp(-x)*(1+1e-12) {
				t.Fatalf("β = %v: P(noise < −%v) = %v, above e^{−%v}", beta, y, below(y), x)
			}
		}
	}
}

func TestBadShuffledCount(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		epsilon, epsilon1 float64
		users, invited    int
		beta              float64
		mention           string
	}{
		{0, 0.5, 10, 10, 0.1, "epsilon is 0"},
		{nan, 0.5, 10, 10, 0.1, "epsilon is NaN"},
		{math.Inf(1), 0.5, 10, 10, 0.1, "epsilon is +Inf"},
		{1, 1, 10, 10, 0.1, "epsilon1 = den/num is 1, must be below epsilon, 1"},
		{1, 2, 10, 10, 0.1, "epsilon1 = den/num is 2, must be below epsilon, 1"},
		{1, 0, 10, 10, 0.1, "epsilon1 is 0"},
		{1, nan, 10, 10, 0.1, "epsilon1 is NaN"},
		{1, 1e-300, 10, 10, 0.1, "epsilon1 is 1e-300"},
		{1, 0.5, 0, 10, 0.1, "users is 0: a batch must have at least 1"},
		{1, 0.5, 10, 9, 0.1, "invited is 9, must be at least users, 10"},
		{1, 0.5, 10, 10, 0, "beta is 0, must be above 0 and below 1"},
		{1, 0.5, 10, 10, 1, "beta is 1,"},
		{1, 0.5, 10, 10, nan, "beta is NaN,"},
		{1, 0.5, min(1<<40, math.MaxInt/4), min(1<<40, math.MaxInt/4), 1e-9, "beta/n is 1e-09/1099511627776"},
		{1, 1 - 1e-7, 10, 10, 1e-9, "pairs of messages, for epsilon = 1"},
	} {
		if m, err := privacy.NewShuffledCount(c.epsilon, c.epsilon1, c.users, c.invited,
			c.beta); err == nil || !strings.Contains(err.Error(), c.mention) || !m.Loss().Infinite() {
			t.Errorf("%+v: %v, %v", c, m, err)
		}
	}
	if m := (privacy.ShuffledCount{}); m.Validate() == nil || !math.IsNaN(m.Messages()) ||
		m.Tail() != (privacy.Tail{}) {
		t.Errorf("the zero value: %v", m)
	}
	for _, s := range []string{`{"mechanism":"shuffled-count"}`,
		`{"mechanism":"shuffled-count","epsilon":1,"num":2,"den":1,"users":10,"invited":10}`,
		`{"mechanism":"shuffled-count","epsilon":1,"num":0,"den":1,"users":10,"invited":10,"beta":0.1}`,
		`{"mechanism":"shuffled-count","epsilon":1,"num":2,"den":1,"users":10,"invited":10,"beta":0.1,"delta":0.1}`,
		`{"mechanism":"split-mix","shares":3}`,
		`{"mechanism":"split-mix","shares":3,"inner":{"mechanism":"laplace","scale":1}}`,
		`{"mechanism":"clones","delta":0.1}`, `{"mechanism":"clones","delta":0.1,"inner":7}`} {
		if m, err := privacy.UnmarshalMechanism([]byte(s)); err == nil {
			t.Errorf("UnmarshalMechanism(%s) = %v", s, m)
		}
	}
}

func TestSplitMixWorkedNumbers(t *testing.T) {
	for _, c := range []struct {
		n    int
		m    int64
		want int
	}{{100, 1 << 32, 23}, {1000, 1 << 32, 15}, {1000, 1 << 20, 13}, {10_000, 1 << 32, 11},
		{10_000, math.MaxInt64, 14}, {1_000_000, 1 << 32, 8}, {19, 2, 30}} {
		if got, err := privacy.SplitMixShares(40, c.n, c.m); got != c.want || err != nil {
			t.Errorf("n = %d, m = %d: %d shares, %v, want %d", c.n, c.m, got, err, c.want)
		}
	}
	inner := aggregated(t, privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 0.5, S: 1, Users: 10_000, Invited: 12_000, P: 0.01})
	m, err := privacy.NewSplitMix(inner, 40)
	if err != nil {
		t.Fatal(err)
	}
	delta := (1 + math.Exp(0.5)) * math.Exp2(-m.Sigma())
	if s := m.Sigma(); !(s >= 40 && s < 47) {
		t.Errorf("σ = %v", s)
	}
	l := m.Loss()
	if e := l.Approx(delta * 1.0001); math.Abs(e-0.5) > 1e-9 {
		t.Errorf("ε = %v", e)
	}
	if !math.IsInf(l.Approx(delta*0.9999), 1) || !math.IsInf(l.Pure(), 1) {
		t.Errorf("%v costs %v", m, l)
	}
	if m.Tail() != inner.Tail() || m.TailOf(11_000) != inner.TailOf(11_000) ||
		m.Bits() != m.Shares*inner.Bits() {
		t.Errorf("tail %v, %d bits", m.Tail(), m.Bits())
	}
	// One share fewer: half of what log₂ n − log₂ e is goes.
	fewer := m
	fewer.Shares--
	near(t, "σ", m.Sigma()-fewer.Sigma(), (math.Log2(10_000)-math.Log2E)/2, 1e-12)
	// Too few shares hide nothing.
	fewer.Shares = 3
	fewer.Inner.Users = 19
	if !fewer.Loss().Infinite() {
		t.Errorf("%v costs %v", fewer, fewer.Loss())
	}
	skellam := inner
	skellam.Noise = privacy.NoiseSkellam
	for _, c := range []struct {
		m       privacy.SplitMix
		mention string
	}{{privacy.SplitMix{Inner: inner, Shares: 2}, "shares is 2"},
		{privacy.SplitMix{Inner: skellam, Shares: 5}, `noise "skellam", must have "secagg" and "polya"`},
		{privacy.SplitMix{Shares: 5}, "inner: "}} {
		if err := c.m.Validate(); err == nil || !strings.Contains(err.Error(), c.mention) ||
			!c.m.Loss().Infinite() {
			t.Errorf("%v: %v", c.m, err)
		}
	}
	few := aggregated(t, privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: privacy.NoisePolya,
		Epsilon: 0.5, S: 1, Users: 18, Invited: 18, P: 0.01})
	if _, err := privacy.NewSplitMix(few, 40); err == nil ||
		!strings.Contains(err.Error(), "users is 18, must be at least 19") {
		t.Error(err)
	}
	for _, sigma := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := privacy.NewSplitMix(inner, sigma); err == nil ||
			!strings.Contains(err.Error(), "sigma is") {
			t.Errorf("σ = %v: %v", sigma, err)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := privacy.UnmarshalMechanism(data); got != m || err != nil {
		t.Errorf("%s reads back as %v, %v", data, got, err)
	}
}
