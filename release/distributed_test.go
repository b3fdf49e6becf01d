package release

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// falseAlarm is the probability with which a right law fails one χ² test. Seeds are fixed.
const falseAlarm = 1e-6

// A mass is a law on the integers: p[i] is that of low + i.
type mass struct {
	low int
	p   []float64
}

func massOf(low, high int, f func(int) float64) mass {
	m := mass{low: low, p: make([]float64, high-low+1)}
	for i := range m.p {
		m.p[i] = f(low + i)
	}
	return m
}

func (m mass) plus(o mass) mass {
	out := mass{m.low + o.low, make([]float64, len(m.p)+len(o.p)-1)}
	for i, x := range m.p {
		if x > 0 {
			for j, y := range o.p {
				out.p[i+j] += x * y
			}
		}
	}
	return out.trim()
}

// trim drops what is below 1e-18 at the ends.
func (m mass) trim() mass {
	for len(m.p) > 1 && m.p[0] < 1e-18 {
		m.low, m.p = m.low+1, m.p[1:]
	}
	for len(m.p) > 1 && m.p[len(m.p)-1] < 1e-18 {
		m.p = m.p[:len(m.p)-1]
	}
	return m
}

func (m mass) times(n int) mass {
	out := mass{0, []float64{1}}
	for range n {
		out = out.plus(m)
	}
	return out
}

func (m mass) minus(o mass) mass {
	r := mass{-(o.low + len(o.p) - 1), make([]float64, len(o.p))}
	for i, x := range o.p {
		r.p[len(o.p)-1-i] = x
	}
	return m.plus(r)
}

func laplaceMass(b float64) mass {
	r := int(45*b) + 2
	beta := math.Exp(-1 / b)
	return massOf(-r, r, func(x int) float64 {
		return (1 - beta) / (1 + beta) * math.Pow(beta, math.Abs(float64(x)))
	}).trim()
}

func skellamMass(variance float64) mass {
	r := int(variance+12*math.Sqrt(variance)) + 40
	poisson := massOf(0, r, distuvPoisson(variance/2)).trim()
	return poisson.minus(poisson)
}

func distuvPoisson(mean float64) func(int) float64 {
	p := distuv.Poisson{Lambda: mean}
	return func(x int) float64 { return p.Prob(float64(x)) }
}

func gaussianMass(variance float64) mass {
	r := int(10*math.Sqrt(variance)) + 4
	m := massOf(-r, r, func(x int) float64 { return math.Exp(-float64(x*x) / (2 * variance)) })
	sum := 0.0
	for _, p := range m.p {
		sum += p
	}
	for i := range m.p {
		m.p[i] /= sum
	}
	return m.trim()
}

// negativeMass is the negative binomial law of shape r and scale b.
func negativeMass(r, b float64) mass {
	beta := math.Exp(-1 / b)
	return massOf(0, int(45*b*max(1, r))+40, func(x int) float64 {
		up, _ := math.Lgamma(float64(x) + r)
		down, _ := math.Lgamma(float64(x) + 1)
		base, _ := math.Lgamma(r)
		return math.Exp(up - down - base + r*math.Log1p(-beta) + float64(x)*math.Log(beta))
	}).trim()
}

// users of the law tests: ones, zeros and rewards between.
var lawUsers = waiting{invited: 7, bits: [2]int{2, 3}, y: []float64{0.3, 0.85}}

// wantMass is the law of g times what is read, found by convolution alone.
func wantMass(m privacy.Mechanism) mass {
	if c, ok := m.(privacy.ShuffledCount); ok {
		cover, err := c.Cover()
		if err != nil {
			panic(err)
		}
		gamma := float64(cover.Blank) / float64(privacy.CoverUnit())
		sum := mass{0, []float64{1}}
		for _, y := range append([]float64{1, 1, 1}, lawUsers.y...) {
			sum = sum.plus(mass{0, []float64{1 - y*(1-gamma), y * (1 - gamma)}})
		}
		share := negativeMass(1/float64(c.Users), float64(c.Num)/float64(c.Den))
		return sum.plus(share.minus(share).times(lawUsers.invited))
	}
	inner, _ := innerOf(m)
	g := float64(inner.G)
	sum := mass{3 * int(inner.G), []float64{1}}
	for _, y := range lawUsers.y {
		whole := math.Floor(y * g)
		sum = sum.plus(mass{int(whole), []float64{1 - (y*g - whole), y*g - whole}})
	}
	x := float64(inner.Num) / float64(inner.Den)
	var one mass
	switch inner.Noise {
	case privacy.NoiseLaplace:
		one = laplaceMass(x)
	case privacy.NoisePolya:
		h := negativeMass(1/float64(inner.Users), x)
		one = h.minus(h)
	case privacy.NoiseSkellam:
		one = skellamMass(x)
	default:
		one = gaussianMass(x)
	}
	parties := lawUsers.invited
	switch inner.Trust {
	case privacy.TrustCentral:
		parties = 1
	case privacy.TrustTwoServer:
		parties = 2
	}
	sum = sum.plus(one.times(parties))
	// The ring, and its reading.
	mod, top := int(inner.Modulus), lawUsers.invited*int(inner.G)+int(inner.Tau)
	wrapped := mass{top + 1 - mod, make([]float64, mod)}
	for i, p := range sum.p {
		v := ((sum.low+i)%mod + mod) % mod
		if v > top {
			v -= mod
		}
		wrapped.p[v-wrapped.low] += p
	}
	return wrapped
}

// pValue is that of Pearson's χ² of n draws against a law; neighbours are joined until 30 are
// expected in each cell.
func pValue[T int | int64](n int, draw func() T, want mass) float64 {
	seen := make([]float64, len(want.p))
	outside := 0.0
	for range n {
		if i := int(draw()) - want.low; i >= 0 && i < len(seen) {
			seen[i]++
		} else {
			outside++
		}
	}
	var chi2, e, o, all float64
	cells := 0
	for i, p := range want.p {
		e, o = e+p*float64(n), o+seen[i]
		rest := (1-all)*float64(n) - e
		if e >= 30 && rest >= 30 || i == len(want.p)-1 {
			if i == len(want.p)-1 { // what is outside belongs to the last cell
				e, o = (1-all)*float64(n), o+outside
			}
			chi2 += (o - e) * (o - e) / e
			all += e / float64(n)
			e, o = 0, 0
			cells++
		}
	}
	return distuv.ChiSquared{K: float64(cells - 1)}.Survival(chi2)
}

// drawer has a curator with the users of the law tests, and draws what is read, times g.
func drawer(t testing.TB, trust Trust, m privacy.Mechanism, exactly bool, twist func(*distributed)) func() int {
	t.Helper()
	key := noise.Key{Seed: 11, Experiment: fmt.Sprint(m, trust.PerUser, exactly), Role: noise.RoleNoise}
	cfg := Config{Arms: 1, Mechanism: privacy.Gaussian{Sigma: 1}, Trust: &trust}
	if trust.pure() && trust.Like == nil {
		cfg.Mechanism = privacy.Laplace{Scale: 1}
	}
	var cur Curator
	var err error
	if exactly {
		cur, err = exact(cfg, key.ChaCha8())
	} else {
		cur, err = Simulated(cfg, &key.Fast(1)[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	c := cur.(*distributed)
	if twist != nil {
		twist(c)
	}
	g := 1.0
	if inner, ok := innerOf(m); ok {
		g = float64(inner.G)
	}
	return func() int {
		c.slots[0] = lawUsers
		c.out = privacy.Values{N: c.n[:1], Sum: c.sum[:1]}
		if _, _, err := c.sums([]int{0}, m); err != nil {
			t.Fatal(err)
		}
		return int(math.Round(c.sum[0] * g))
	}
}

type lawCase struct {
	trust Trust
	m     privacy.Mechanism
}

// lawCases are all families for the users of the law tests, with a τ so small that sums are
// misread now and then.
func lawCases(t testing.TB) []lawCase {
	t.Helper()
	var out []lawCase
	approx := privacy.Approx{Epsilon: 1, Delta: 0.01}
	for _, trust := range []Trust{
		{Model: privacy.TrustCentral}, {Model: privacy.TrustCentral, Noise: privacy.NoiseGaussian},
		{Model: privacy.TrustCentral, Noise: privacy.NoiseSkellam, S: 2},
		{Model: privacy.TrustLocal}, {Model: privacy.TrustLocal, Noise: privacy.NoiseGaussian},
		{Model: privacy.TrustLocal, Noise: privacy.NoiseSkellam},
		{Model: privacy.TrustSecAgg}, {Model: privacy.TrustSecAgg, Promised: 0.5},
		{Model: privacy.TrustSecAgg, Noise: privacy.NoiseSkellam, S: 2},
		{Model: privacy.TrustSecAgg, Noise: privacy.NoiseGaussian},
		{Model: privacy.TrustSecAgg, Noise: privacy.NoiseGaussian, S: 3},
		{Model: privacy.TrustTwoServer}, {Model: privacy.TrustTwoServer, Noise: privacy.NoiseGaussian},
		{Model: privacy.TrustShuffle}, {Model: privacy.TrustShuffle, Promised: 0.5},
		{Model: privacy.TrustShuffle, Noise: privacy.NoiseLaplace, Like: approx},
	} {
		trust.P = 0.5
		n := lawUsers.invited
		var m privacy.Mechanism
		var err error
		if trust.Model == privacy.TrustShuffle && trust.NoiseOf() == privacy.NoiseCount {
			m, err = privacy.NewShuffledCount(1, 0.5, trust.users(n), n, 0.5)
		} else {
			k := privacy.Calibration{Trust: trust.Model, Noise: trust.NoiseOf(), Epsilon: 1,
				S: trust.s(), Users: trust.users(n), Invited: n, P: 0.5}
			if trust.Model == privacy.TrustShuffle {
				k.Trust = privacy.TrustLocal
			}
			var a privacy.Aggregated
			a, err = privacy.NewAggregated(k)
			m = a
			if trust.Model == privacy.TrustShuffle {
				m = privacy.Clones{Inner: a, Delta: 0.01}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, lawCase{trust, m})
	}
	return out
}

// What is read has the law of the central discrete mechanism after the same wrap: found by
// convolution, and drawn at once, by every user with fast noise, and by every user exactly. 16
// families in three ways, each with a false-alarm probability of 10^-6.
func TestReadLaw(t *testing.T) {
	draws := testkit.Size(40_000, 100_000)
	for _, c := range lawCases(t) {
		want := wantMass(c.m)
		for _, way := range []string{"total", "per user", "exact"} {
			t.Run(fmt.Sprintf("%s/%s/s=%v/promised=%v/%s", c.trust.Model, c.trust.NoiseOf(),
				c.trust.s(), c.trust.promised(), way), func(t *testing.T) {
				trust := c.trust
				trust.PerUser = way == "per user"
				n := draws
				if way != "total" {
					n /= 2
				}
				if p := pValue(n, drawer(t, trust, c.m, way == "exact", nil), want); !(p > falseAlarm) {
					t.Errorf("χ² p-value %v", p)
				}
			})
		}
	}
}

// The noise of so many users, drawn by each and drawn at once, has the same law for every family:
// both against the exact convolution, 10^6 draws each (2.5·10^5 for counts by every user), with a
// false-alarm probability of 10^-6 for each of the 14 tests. Twins with a user too few, or one
// discrete Gaussian for two narrow ones, are caught.
func TestTotalNoiseLaw(t *testing.T) {
	testkit.OneGoroutine(t)
	draws := testkit.Size(100_000, 1_000_000)
	s := &noise.Key{Seed: 23, Role: noise.RoleNoise}.Fast(1)[0]
	d := &distributed{fast: s, src: s}
	for _, c := range []struct {
		noise    privacy.NoiseName
		trust    privacy.Trust
		users    int
		num, den uint64
		answers  int
		one      mass
	}{
		{privacy.NoisePolya, privacy.TrustSecAgg, 3, 4, 1, 3,
			negativeMass(1.0/3, 4).minus(negativeMass(1.0/3, 4))},
		// one more than was promised
		{privacy.NoisePolya, privacy.TrustSecAgg, 2, 4, 1, 3, negativeMass(0.5, 4).minus(negativeMass(0.5, 4))},
		{privacy.NoiseLaplace, privacy.TrustLocal, 1, 3, 2, 3, laplaceMass(1.5)},
		{privacy.NoiseSkellam, privacy.TrustSecAgg, 3, 7, 4, 3, skellamMass(1.75)},
		// told apart from one discrete Gaussian: drawn one by one
		{privacy.NoiseGaussian, privacy.TrustSecAgg, 2, 1, 4, 2, gaussianMass(0.25)},
		// drawn as one
		{privacy.NoiseGaussian, privacy.TrustSecAgg, 3, 9, 1, 3, gaussianMass(9)},
	} {
		m := privacy.Aggregated{Trust: c.trust, Noise: c.noise, G: 1, Users: c.users,
			Invited: max(c.users, c.answers), Modulus: 1 << 40, Tau: 1 << 30, Num: c.num, Den: c.den}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s, %d of %d, %d/%d", c.noise, c.answers, c.users, c.num, c.den)
		want, share := c.one.times(c.answers), fastShare(m, s)
		users := func(n int) func() int {
			return func() int {
				x := 0
				for range n {
					z, _ := share()
					x += int(z)
				}
				return x
			}
		}
		if p := pValue(draws, func() int { return int(d.totalNoise(m, c.answers)) }, want); !(p > falseAlarm) {
			t.Errorf("%s at once: χ² p-value %v", name, p)
		}
		if p := pValue(draws, users(c.answers), want); !(p > falseAlarm) {
			t.Errorf("%s by every user: χ² p-value %v", name, p)
		}
		if p := pValue(100_000, users(c.answers-1), want); !(p < falseAlarm) {
			t.Errorf("%s with a user too few passes: %v", name, p)
		}
	}
	narrow := func() int64 { return s.DiscreteGaussian(math.Sqrt(0.5)) }
	if p := pValue(draws, narrow, gaussianMass(0.25).times(2)); !(p < falseAlarm) {
		t.Errorf("one discrete Gaussian for two passes: %v", p)
	}

	// The difference of the messages of a shuffled count: three users with bits 0, 1, 1.
	m, err := privacy.NewShuffledCount(1, 0.5, 2, 3, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRandomizer(m, s, s)
	if err != nil {
		t.Fatal(err)
	}
	gamma, half := m.Blank(), negativeMass(0.5, 2)
	bit := mass{0, []float64{gamma, 1 - gamma}}
	want := bit.plus(bit).plus(half.minus(half).times(3))
	w := &waiting{invited: 3, bits: [2]int{1, 2}}
	signed := func(total uint64) int { return int(int64(total<<1) >> 1) } // of 63 bits
	if p := pValue(draws, func() int { return signed(d.totalCount(m, w)) }, want); !(p > falseAlarm) {
		t.Errorf("count at once: χ² p-value %v", p)
	}
	d.messages = nil
	if p := pValue(draws/4, func() int {
		if err := d.encode(r, w); err != nil {
			t.Fatal(err)
		}
		total := uint64(0)
		for _, x := range d.messages {
			total = addMod(total, x, countRing)
		}
		return signed(total)
	}, want); !(p > falseAlarm) {
		t.Errorf("count by every user: χ² p-value %v", p)
	}
}

// Twins that are wrong in one thing are caught by the same test.
func TestBrokenProtocolsAreCaught(t *testing.T) {
	cases := lawCases(t)
	secagg := cases[6]
	inner := secagg.m.(privacy.Aggregated)
	for _, twin := range []struct {
		name string
		c    lawCase
		m    privacy.Mechanism // what is really used
	}{
		{"half the noise", secagg, func() privacy.Aggregated { m := inner; m.Den *= 2; return m }()},
		{"shares for all who are invited, not for those who are promised", cases[7], func() privacy.Aggregated {
			m := cases[7].m.(privacy.Aggregated)
			m.Users = m.Invited
			return m
		}()},
		{"no room for noise below zero", secagg, func() privacy.Aggregated {
			m := inner
			m.Tau = m.Modulus
			return m
		}()},
		{"coarser integers", secagg, func() privacy.Aggregated { m := inner; m.G--; return m }()},
	} {
		t.Run(twin.name, func(t *testing.T) {
			want := wantMass(twin.c.m)
			trust := twin.c.trust
			trust.PerUser = true
			g := float64(inner.G)
			draw := drawer(t, trust, twin.c.m, false, nil)
			key := noise.Key{Seed: 12, Experiment: twin.name, Role: noise.RoleNoise}
			s := &key.Fast(1)[0]
			broken := func() int {
				m, _ := innerOf(twin.m)
				r := &Randomizer{mechanism: m, modulus: uint64(inner.Modulus), src: s, inner: m,
					noise: fastShare(m, s), shares: 1}
				var messages []uint64
				for _, y := range append([]float64{0, 0, 1, 1, 1}, lawUsers.y...) {
					messages, _ = r.Messages(messages, y)
				}
				total, n, err := PlainSum{}.Sum(Sum{Modulus: r.modulus}, messages)
				if err != nil {
					t.Fatal(err)
				}
				a := &Analyser{modulus: r.modulus, g: m.G, tau: min(m.Tau, inner.Modulus-1-int64(n)*m.G)}
				return int(a.decode(total, n)) // in integers of this g
			}
			const n = 50_000
			if p := pValue(n, draw, want); !(p > falseAlarm) {
				t.Errorf("the right one fails: %v", p)
			}
			if p := pValue(n, broken, want); !(p < falseAlarm) {
				t.Errorf("the broken one passes: %v (g = %v)", p, g)
			}
		})
	}
}

// One draw of noise for all users, and noise of the authors' published code, whose Gamma scale is
// the reciprocal: a 580th of what it should be for ε = 0.1 and 4096 users.
func TestSharedAndPublishedNoiseAreCaught(t *testing.T) {
	const n = 4096
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 0.1, S: 1, Users: n, Invited: n, P: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	s := &noise.Key{Seed: 13, Role: noise.RoleNoise}.Fast(1)[0]
	b := float64(m.Num) / float64(m.Den)
	right := func() float64 { return float64(s.DiscreteLaplace(b)) }
	beta := math.Exp(-1 / b)
	// The sum of n shares Poisson(Gamma(1/n)·scale) is Poisson(Gamma(1)·scale).
	half := func() float64 { return float64(s.Poisson(s.Exponential() * (1 - beta) / beta)) }
	wrong, good := deviation(func() float64 {
		plus, minus := half(), half()
		return plus - minus
	}, 100_000), deviation(right, 100_000)
	if good/wrong < 500 || good/wrong > 650 {
		t.Errorf("the noise has standard deviation %v, the published one %v", good, wrong)
	}
	t.Logf("ε = 0.1, n = 4096, g = %d: the noise in the sum has standard deviation %.1f, the "+
		"published one %.3f: %.0f times less", m.G, good, wrong, good/wrong)
	// The ledger prices what it is given: with that little noise the same release costs this much.
	little := m
	little.Num, little.Den = 1, 1
	if got := little.Loss().Pure(); got < 1 {
		t.Errorf("little noise costs ε = %v", got)
	}
}

func deviation(draw func() float64, n int) float64 {
	sum := 0.0
	for range n {
		x := draw()
		sum += x * x
	}
	return math.Sqrt(sum / float64(n))
}

func TestRoundIsUnbiased(t *testing.T) {
	s := &noise.Key{Seed: 14, Role: noise.RoleNoise}.Fast(1)[0]
	for _, y := range []float64{0, 1, 0.5, 0.1, 1.0 / 3, 1e-9, 1 - 1e-9} {
		for _, g := range []int64{1, 3, 10, 1 << 40, 1<<63 - 1} {
			low, up := int64(math.MaxInt64), int64(0)
			ups := 0
			const n = 20_000
			for range n {
				x := round(y, g, s)
				low, up = min(low, x), max(up, x)
				ups += int(min(x-int64(math.Floor(y*float64(g))), 1))
			}
			if low < 0 || up > g || up-low > 1 {
				t.Errorf("round(%v, %d) is from %d to %d", y, g, low, up)
			}
			if g > 1<<30 {
				continue // the fraction is no double
			}
			frac := y*float64(g) - math.Floor(y*float64(g))
			if d := math.Abs(float64(ups)/n - frac); d > 5.2*math.Sqrt(frac*(1-frac)/n)+1e-12 {
				t.Errorf("round(%v, %d) is up with frequency %v, want %v", y, g, float64(ups)/n, frac)
			}
		}
	}
}

// Whatever is asked for, what is charged is within what was stated, and each release is on the
// ledger.
func TestDistributedNeverCostsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stated := rapid.SampledFrom([]privacy.Mechanism{privacy.Laplace{Scale: 10},
			privacy.Laplace{Scale: 0.7}, privacy.Gaussian{Sigma: 3},
			privacy.Gaussian{Sigma: 20}}).Draw(t, "stated")
		trust := Trust{Model: rapid.SampledFrom([]privacy.Trust{privacy.TrustCentral,
			privacy.TrustLocal, privacy.TrustShuffle, privacy.TrustSecAgg}).Draw(t, "model"),
			P:        rapid.Float64Range(1e-9, 0.9).Draw(t, "p"),
			S:        rapid.SampledFrom([]float64{0, 1, 10, 100}).Draw(t, "s"),
			Promised: rapid.SampledFrom([]float64{0, 0.5, 0.8}).Draw(t, "promised")}
		trust.Noise = rapid.SampledFrom([]privacy.NoiseName{"", privacy.NoiseLaplace,
			privacy.NoisePolya, privacy.NoiseSkellam, privacy.NoiseGaussian,
			privacy.NoiseCount}).Draw(t, "noise")
		trust.Like = rapid.SampledFrom([]privacy.Budget{nil, privacy.Pure{}, privacy.ZCDP{},
			privacy.Approx{Epsilon: 1, Delta: 1e-6}, privacy.Renyi{Alpha: 4}}).Draw(t, "like")
		s := &noise.Key{Seed: 15, Role: noise.RoleNoise}.Fast(1)[0]
		c, err := Simulated(Config{Arms: 2, Mechanism: stated, Trust: &trust}, s)
		if err != nil {
			return // refused before anything was released
		}
		target := c.(*distributed).calibr.target
		for round := range 3 {
			for a := range 2 {
				n := rapid.IntRange(1, 3000).Draw(t, "n")
				if err := c.AddSum(a, n, float64(n/3)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Release([]int{0, 1}); err != nil {
				if strings.Contains(err.Error(), "no noise keeps within") ||
					strings.Contains(err.Error(), "mechanism") {
					return // refused, with numbers
				}
				t.Fatal(err)
			}
			if got := len(c.Ledger().Entries()); got != 2*(round+1) {
				t.Fatalf("%d entries after %d releases of two arms", got, round+1)
			}
		}
		if !c.Ledger().Total().Within(target) {
			t.Fatalf("%v %v costs %v, above %v", trust.Model, trust.NoiseOf(), c.Ledger().Total(), target)
		}
	})
}

// Fewer answers than promised: nothing is released or charged, these arms' rewards are gone,
// the others' wait.
func TestTooFewAnswers(t *testing.T) {
	s := &noise.Key{Seed: 16, Role: noise.RoleNoise}.Fast(1)[0]
	trust := Trust{Model: privacy.TrustSecAgg, P: 0.01, Promised: 0.9, Dropout: 0.1}
	c, err := Simulated(Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1}, Trust: &trust}, s)
	if err != nil {
		t.Fatal(err)
	}
	refused, released := 0, 0
	for range 300 {
		for a := range 2 {
			if c.(*distributed).slots[a].invited == 0 {
				if err := c.AddSum(a, 40, 20); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := len(c.Ledger().Entries())
		r, err := c.Release([]int{0, 1})
		var few *TooFewError
		switch {
		case errors.As(err, &few):
			refused++
			if !errors.Is(err, ErrAnswers) || few.Answers >= few.Promised || few.Promised != 36 ||
				r.Len() != 0 || len(c.Ledger().Entries()) != before {
				t.Fatalf("%v: %+v, %d sums, %d entries, before %d", err, few, r.Len(),
					len(c.Ledger().Entries()), before)
			}
			for a := range 2 {
				gone := c.(*distributed).slots[a].invited == 0
				if want := few.Arms[0] == a || len(few.Arms) == 2; gone != want {
					t.Fatalf("arm %d: emptied %v, want %v", a, gone, want)
				}
				if !gone {
					if err := c.Add(a, 1); err == nil {
						t.Fatal("a reward came after its batch was closed")
					}
				}
			}
		case err != nil:
			t.Fatal(err)
		default:
			released++
			for i := range 2 {
				if r.N(i) < 36 || r.N(i) > 40 {
					t.Fatalf("%d answers", r.N(i))
				}
			}
			if want := (privacy.Aggregated{}); r.Tail() == want.Tail() {
				t.Fatal("no tail")
			}
		}
	}
	// Each of the two is refused with probability P(Bin(40,0.9) < 36) = 0.371.
	if refused == 0 || released == 0 {
		t.Errorf("%d refused, %d released", refused, released)
	}
}

// brittle is an S that fails at one of its calls: users are missing on the way, or it says nothing
// of what it has shown.
type brittle struct {
	at   int
	err  error // nil: too few messages
	sums []Sum
}

func (f *brittle) Sum(s Sum, messages []uint64) (uint64, int, error) {
	f.sums = append(f.sums, s)
	switch {
	case len(f.sums) != f.at:
		return PlainSum{}.Sum(s, messages)
	case f.err != nil:
		return 0, 0, f.err
	}
	return PlainSum{}.Sum(s, messages[:1])
}

// What S had opened before it failed is charged for and never released, and so are messages
// that may have been seen: local ones always, others unless S had too few to open. No reward
// goes out again under other noise, no sum has the number of another, and a batch with too few
// is to be played again.
func TestSummerFails(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		name    string
		trust   Trust
		err     error
		charges int // of three arms, the second of which fails
		left    int // arms whose users have sent nothing
	}{
		{"secagg, too few", Trust{Model: privacy.TrustSecAgg}, nil, 1, 0},
		{"secagg, lost", Trust{Model: privacy.TrustSecAgg}, lost, 2, 1},
		{"local, too few", Trust{Model: privacy.TrustLocal}, nil, 2, 0},
		{"local, lost", Trust{Model: privacy.TrustLocal}, lost, 2, 1},
		{"shuffle, lost", Trust{Model: privacy.TrustShuffle}, lost, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			summer := &brittle{at: 2, err: c.err}
			c.trust.P, c.trust.Summer = 0.01, summer
			cur, err := Simulated(Config{Arms: 3, Mechanism: privacy.Laplace{Scale: 1},
				Trust: &c.trust}, &noise.Key{Seed: 17, Role: noise.RoleNoise}.Fast(1)[0])
			if err != nil {
				t.Fatal(err)
			}
			fill := func() {
				for a := range 3 {
					if cur.(*distributed).slots[a].invited == 0 {
						if err := cur.AddSum(a, 10, 5); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			fill()
			r, err := cur.Release([]int{0, 1, 2})
			var few *TooFewError
			if errors.As(err, &few) != (c.err == nil) || c.err != nil && !errors.Is(err, c.err) ||
				r.Len() != 0 {
				t.Fatalf("%d sums, error %v", r.Len(), err)
			}
			if few != nil && len(few.Arms) != 3 {
				t.Errorf("%d arms are to be played again, want all", len(few.Arms))
			}
			left := 0
			for _, w := range cur.(*distributed).slots {
				if w.invited > 0 {
					left++
				}
			}
			if n := len(cur.Ledger().Entries()); n != c.charges || left != c.left {
				t.Errorf("%d charges, %d arms wait, want %d and %d", n, left, c.charges, c.left)
			}
			fill()
			if r, err = cur.Release([]int{0, 1, 2}); err != nil || r.Len() != 3 || r.N(0) != 10 {
				t.Fatalf("%v, %v", r, err)
			}
			if n := len(cur.Ledger().Entries()); n != c.charges+3 {
				t.Errorf("%d charges, want %d", n, c.charges+3)
			}
			seen := map[[2]int]bool{}
			for _, s := range summer.sums {
				at := [2]int{s.Batch, s.Arm}
				if s.Batch < 0 || seen[at] {
					t.Errorf("batch %d, arm %d was computed before", s.Batch, s.Arm)
				}
				seen[at] = true
			}
		})
	}
}

// A budget that does not allow a release is found before any user sends a message.
func TestBudgetBeforeMessages(t *testing.T) {
	summer := &brittle{}
	cur, err := Simulated(Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1},
		Trust:  &Trust{Model: privacy.TrustSecAgg, P: 0.01, Summer: summer},
		Ledger: privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.5}))},
		&noise.Key{Seed: 21, Role: noise.RoleNoise}.Fast(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	for a := range 2 {
		if err := cur.AddSum(a, 10, 5); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := cur.Release([]int{0, 1}); !errors.Is(err, privacy.ErrBudget) || r.Len() != 0 ||
		len(summer.sums) != 0 || len(cur.Ledger().Entries()) != 0 {
		t.Errorf("%d sums released, %d computed, %d charges, error %v", r.Len(), len(summer.sums),
			len(cur.Ledger().Entries()), err)
	}
	if w := cur.(*distributed).slots[0]; w.invited != 10 {
		t.Errorf("%d rewards wait, want 10: nobody has sent anything", w.invited)
	}
}

// Local messages of a batch that too few answered have been seen: they are on the ledger.
func TestTooFewLocalAnswersAreCharged(t *testing.T) {
	cur, err := Simulated(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1},
		Trust: &Trust{Model: privacy.TrustLocal, P: 0.01, Dropout: 0.5}},
		&noise.Key{Seed: 22, Role: noise.RoleNoise}.Fast(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := cur.AddSum(0, 100, 50); err != nil {
		t.Fatal(err)
	}
	if _, err := cur.Release([]int{0}); !errors.Is(err, ErrAnswers) {
		t.Fatal(err)
	}
	if e := cur.Ledger().Entries(); len(e) != 1 || math.Abs(cur.Ledger().Total().Pure()-1) > 1e-8 {
		t.Errorf("%d charges, %v in all", len(e), cur.Ledger().Total())
	}
}

func TestBadTrust(t *testing.T) {
	s := &noise.Key{Seed: 18, Role: noise.RoleNoise}.Fast(1)[0]
	ok := Trust{Model: privacy.TrustSecAgg, P: 0.01}
	change := func(f func(*Trust)) *Trust { t := ok; f(&t); return &t }
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Trust: change(func(t *Trust) {
			t.Model = ""
		})}, `trust is "", must be central, local, two-server, shuffle or secagg`},
		{Config{Trust: change(func(t *Trust) {
			t.Noise = "laplace"
		})}, `noise is "laplace", must be polya, gaussian or skellam for trust secagg`},
		{Config{Trust: change(func(t *Trust) { t.P = 0 })}, "p is 0, must be above 0 and below 1"},
		{Config{Trust: change(func(t *Trust) { t.P = 1 })}, "p is 1, must be above 0 and below 1"},
		{Config{Trust: change(func(t *Trust) { t.P = math.NaN() })}, "p is NaN, must be above 0 and below 1"},
		{Config{Trust: change(func(t *Trust) {
			t.S = 0.5
		})}, "precision s is 0.5, must be finite and at least 1"},
		{Config{Trust: change(func(t *Trust) {
			t.S = math.Inf(1)
		})}, "precision s is +Inf, must be finite and at least 1"},
		{Config{Trust: change(func(t *Trust) {
			t.Promised = 1.5
		})}, "promised is 1.5, must be above 0 and at most 1"},
		{Config{Trust: change(func(t *Trust) {
			t.Dropout = 1
		})}, "dropout is 1, must be at least 0 and below 1"},
		{Config{Trust: change(func(t *Trust) {
			t.Model, t.Cover = "shuffle", 1
		})}, "cover is 1, must be above 0 and below 1"},
		{Config{Trust: change(func(t *Trust) {
			t.Noise, t.Like = "skellam", privacy.Pure{Epsilon: 1}
		})}, "no such noise is pure"},
		{Config{Trust: change(func(t *Trust) {
			t.Model, t.Noise, t.Like = "shuffle", "polya", privacy.Pure{Epsilon: 1}
		})}, "gives (epsilon, delta), never less"},
		{Config{Trust: &ok, Unclipped: true}, "unclipped is true"},
		{Config{Trust: &ok, Mechanism: privacy.Tree{Scale: 1, Horizon: 4}}, `mechanism is "tree"`},
		{Config{Trust: &ok, Mechanism: privacy.Exact{}}, `mechanism is "exact"`},
		{Config{Trust: &ok, Mechanism: privacy.Laplace{}}, "has no noise"},
	} {
		c.cfg.Arms = 2
		if c.cfg.Mechanism == nil {
			c.cfg.Mechanism = privacy.Laplace{Scale: 1}
			if c.cfg.Trust.Noise == "skellam" {
				c.cfg.Mechanism = privacy.Gaussian{Sigma: 1}
			}
		}
		if _, err := Simulated(c.cfg, s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want one with %q", err, c.want)
		}
	}
	cur, err := Simulated(Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1}, Trust: &ok}, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{cur.Add(0, math.NaN()), "reward of arm 0 is NaN"},
		{cur.Add(2, 1), "arm is 2, must be from 0 to 1"},
		{cur.AddSum(0, 3, 1.5), "must be that of rewards 0 and 1"},
		{cur.AddSum(0, 3, 4), "must be from 0 to 3"},
		{cur.AddSum(0, -1, 0), "must not be negative"},
		{func() error { _, err := cur.Release(nil); return err }(), "release of no arms"},
		{func() error { _, err := cur.Release([]int{1}); return err }(), "whose slot is empty"},
		{func() error { _, err := cur.Ask([]int{1}, 0); return err }(), errAsk.Error()},
		{func() error {
			_, _, err := PlainSum{}.Sum(Sum{Modulus: 10}, []uint64{3, 10})
			return err
		}(), "message 1 must be below the modulus, 10"},
		{func() error {
			_, _, err := PlainSum{}.Sum(Sum{Modulus: 10}, nil)
			return err
		}(), "must be at least 1"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error is %v, want one with %q", c.err, c.want)
		}
	}
	// g and m beyond 2^63.
	if _, err := Simulated(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1e-30}, Trust: &ok},
		s); err != nil {
		t.Fatal(err)
	}
	big, err := Simulated(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1e-30}, Trust: &ok}, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := big.AddSum(0, 4, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := big.Release([]int{0}); err == nil || !strings.Contains(err.Error(), "must be below 2^63") {
		t.Errorf("error is %v", err)
	}
}

// The parties apart, as they would be on different machines: users' messages, their sum, its reading.
func TestPartiesApart(t *testing.T) {
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 2, S: 1, Users: 50, Invited: 60, P: 1e-9})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRandomizer(m)
	if err != nil {
		t.Fatal(err)
	}
	ledger := privacy.NewLedger(privacy.WithCap(m.Loss().In(privacy.Pure{})))
	a, err := NewAnalyser(m, ledger)
	if err != nil {
		t.Fatal(err)
	}
	var messages []uint64
	for i := range 55 {
		if messages, err = r.Messages(messages, float64(i%2)); err != nil {
			t.Fatal(err)
		}
	}
	total, answers, err := PlainSum{}.Sum(Sum{Modulus: r.Modulus(), Users: 50}, messages)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := a.Read(0, total, answers)
	if err != nil || math.Abs(sum.Sum(0)-27) > m.TailOf(55).H*25+m.TailOf(55).Sigma*8 {
		t.Errorf("sum is %v, %v", sum, err)
	}
	// Read again it is another release: the cap has no room for it, and another slot has.
	if _, err := a.Read(0, total, answers); !errors.Is(err, privacy.ErrBudget) ||
		ledger.Slot(0).Pure() != m.Loss().Pure() {
		t.Errorf("a second time: %v, ε = %v", err, ledger.Slot(0).Pure())
	}
	if _, err := a.Read(1, total, answers); err != nil {
		t.Error(err)
	}
	// What cannot be read was seen all the same.
	for slot, c := range []struct {
		total   uint64
		answers int
		want    error
		loss    float64
	}{{total, 49, ErrAnswers, math.Inf(1)}, {uint64(m.Modulus), 50, ErrMessage, m.Loss().Pure()}} {
		ledger := privacy.NewLedger()
		a, err := NewAnalyser(m, ledger)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Read(slot, c.total, c.answers); !errors.Is(err, c.want) ||
			ledger.Slot(slot).Pure() != c.loss {
			t.Errorf("%d answers, total %d: %v, want %v; ε = %v, want %v", c.answers, c.total, err,
				c.want, ledger.Slot(slot).Pure(), c.loss)
		}
	}
	if _, err := NewAnalyser(m, nil); err == nil {
		t.Error("an analyser without a ledger")
	}
	if m, err := r.Messages(nil, math.NaN()); err != nil || len(m) == 0 {
		t.Errorf("NaN: %v, %v: who sends nothing tells something", m, err)
	}
}

func BenchmarkDistributed(b *testing.B) {
	for _, c := range []struct {
		name  string
		trust Trust
		m     privacy.Mechanism
	}{
		{"polya", Trust{Model: privacy.TrustSecAgg, P: 1e-7}, privacy.Laplace{Scale: 1}},
		{"skellam", Trust{Model: privacy.TrustSecAgg, Noise: privacy.NoiseSkellam, S: 10, P: 1e-7},
			privacy.Gaussian{Sigma: 1}},
		{"gaussian", Trust{Model: privacy.TrustSecAgg, Noise: privacy.NoiseGaussian, S: 10,
			P: 1e-7}, privacy.Gaussian{Sigma: 1}},
		{"local", Trust{Model: privacy.TrustLocal, P: 1e-7}, privacy.Laplace{Scale: 1}},
		{"count", Trust{Model: privacy.TrustShuffle, P: 1e-7}, privacy.Laplace{Scale: 1}},
	} {
		for _, perUser := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/peruser=%v", c.name, perUser), func(b *testing.B) {
				trust := c.trust
				trust.PerUser = perUser
				s := &noise.Key{Seed: 19, Role: noise.RoleNoise}.Fast(1)[0]
				cur, err := Simulated(Config{Arms: 1, Mechanism: c.m, Trust: &trust}, s)
				if err != nil {
					b.Fatal(err)
				}
				const users = 4096
				b.ReportAllocs()
				for b.Loop() {
					if err := cur.AddSum(0, users, users/2); err != nil {
						b.Fatal(err)
					}
					if _, err := cur.Release([]int{0}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(users)*float64(b.N)/b.Elapsed().Seconds(), "users/s")
			})
		}
	}
}

// The law test sees the published noise at once, and one draw shared by all arms.
func TestPublishedAndSharedNoiseFailTheLawTest(t *testing.T) {
	c := lawCases(t)[6] // shares under secure aggregation
	m := c.m.(privacy.Aggregated)
	s := &noise.Key{Seed: 20, Role: noise.RoleNoise}.Fast(1)[0]
	beta := math.Exp(-float64(m.Den) / float64(m.Num))
	half := func() int64 { return s.Poisson(s.Exponential() * (1 - beta) / beta) }
	a := &Analyser{modulus: uint64(m.Modulus), g: m.G, tau: m.Tau}
	published := func() int {
		x := 3 * m.G
		for _, y := range lawUsers.y {
			x += round(y, m.G, s)
		}
		plus, minus := half(), half()
		return int(a.decode(intoRing(x+plus-minus, a.modulus), lawUsers.invited))
	}
	if p := pValue(50_000, published, wantMass(m)); !(p < falseAlarm) {
		t.Errorf("the published noise passes: %v", p)
	}
	// Two arms released together have noises of their own: equal by chance only. With one draw for
	// both, as in the authors' DP-SE, they always are.
	trust := c.trust
	cur, err := Simulated(Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1}, Trust: &trust}, s)
	if err != nil {
		t.Fatal(err)
	}
	equal, want := 0, 0.0
	for _, p := range laplaceMass(float64(m.Num) / float64(m.Den)).p {
		want += p * p
	}
	const n = 20_000
	for range n {
		d := cur.(*distributed)
		for arm := range 2 {
			d.slots[arm] = waiting{invited: 7, bits: [2]int{4, 3}}
		}
		d.out = privacy.Values{N: d.n[:2], Sum: d.sum[:2]}
		if _, _, err := d.sums([]int{0, 1}, m); err != nil {
			t.Fatal(err)
		}
		if d.sum[0] == d.sum[1] {
			equal++
		}
	}
	// Sums that are misread are equal as their noises are.
	if d := math.Abs(float64(equal)/n - want); d > 5.2*math.Sqrt(want/n) {
		t.Errorf("two arms' noises are equal with frequency %v, want %v", float64(equal)/n, want)
	}
	if 1-want < 5.2*math.Sqrt(want/n) {
		t.Error("a shared draw would pass")
	}
}
