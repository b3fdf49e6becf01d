package release

import (
	"errors"
	"math"
	integer "math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// round takes the fraction as a number of 53 bits: it rounds up if a number drawn is below it.
func TestRoundAtItsFraction(t *testing.T) {
	const half = 1 << 52
	for _, c := range []struct {
		y    float64
		g    int64
		word uint64
		want int64
	}{
		{0.5, 1, half << 11, 0}, {0.5, 1, (half - 1) << 11, 1}, {0.5, 3, half << 11, 1},
		{0.5, 3, (half - 1) << 11, 2}, {0.25, 1, half / 2 << 11, 0}, {0.25, 1, (half/2 - 1) << 11, 1},
		{1, 7, 0, 7}, {0, 7, 0, 0},
	} {
		if got := round(c.y, c.g, &script{c.word}); got != c.want {
			t.Errorf("round(%v·%d) with %x: %d, want %d", c.y, c.g, c.word, got, c.want)
		}
	}
}

// Under each name of a noise a party draws that law, from the same bits the same number.
func TestSharesHaveTheirLaw(t *testing.T) {
	key := noise.Key{Seed: 41, Role: noise.RoleNoise}
	const num, den, users = 3000, 7, 5
	laplace, err := noise.NewDiscreteLaplace(num, den)
	must(t, err)
	polya, err := noise.NewPolyaDifference(users, num, den)
	must(t, err)
	skellam, err := noise.NewSkellam(num, den)
	must(t, err)
	gaussian, err := noise.NewDiscreteGaussianVariance(num, den)
	must(t, err)
	src := key.ChaCha8()
	fast := &key.Fast(1)[0]
	const x = float64(num) / den
	for name, draw := range map[privacy.NoiseName][2]func() (int64, error){
		privacy.NoiseLaplace: {func() (int64, error) { return laplace.Draw(src) },
			func() (int64, error) { return fast.DiscreteLaplace(x), nil }},
		privacy.NoisePolya: {func() (int64, error) { return polya.Draw(src) },
			func() (int64, error) { return fast.PolyaDifference(1.0/users, x), nil }},
		privacy.NoiseSkellam: {func() (int64, error) { return skellam.Draw(src) },
			func() (int64, error) { return fast.Skellam(x), nil }},
		privacy.NoiseGaussian: {func() (int64, error) { return gaussian.Draw(src) },
			func() (int64, error) { return fast.DiscreteGaussian(math.Sqrt(x)), nil }},
	} {
		m := privacy.Aggregated{Noise: name, Num: num, Den: den, Users: users}
		exact, err := exactShare(m, key.ChaCha8())
		must(t, err)
		src, fast = key.ChaCha8(), &key.Fast(1)[0]
		simulated := fastShare(m, &key.Fast(1)[0])
		for i, share := range []partyNoise{exact, simulated} {
			for range 200 {
				got, err := share()
				must(t, err)
				want, err := draw[i]()
				must(t, err)
				if got != want {
					t.Fatalf("%s: drew %d, want %d", name, got, want)
				}
			}
		}
	}
}

// A user of a shuffled count draws two shares of Num/Den and 1/Users, sends its bit unless it is blank, and
// as many pairs of +1 and −1 as the cumulative table says.
func TestShuffledCountMessagesByHand(t *testing.T) {
	const top = 1 << 62
	draws := []int64{2, 1}
	r := &Randomizer{shares: 1, count: &shuffledShare{blank: top / 4,
		pairs: []uint64{top / 2, top / 4 * 3, top},
		noise: func() (int64, error) {
			x := draws[0]
			draws = append(draws[1:], x)
			return x, nil
		}}}
	for _, c := range []struct {
		name        string
		blank, pair uint64
		plus, minus int
	}{
		{"blank", top/4 - 1, 0, 2, 1},
		{"not blank by one", top / 4, 0, 3, 1},
		{"last of none", top - 1, top/2 - 1, 3, 1},
		{"first of one", top - 1, top / 2, 4, 2},
		{"last of one", top - 1, top/4*3 - 1, 4, 2},
		{"first of two", top - 1, top / 4 * 3, 5, 3},
		{"last of two", top - 1, top - 1, 5, 3},
	} {
		r.src = &script{c.blank << 2, c.pair << 2}
		got, err := r.messages(nil, 1)
		must(t, err)
		want := append(slices.Repeat([]uint64{1}, c.plus), slices.Repeat([]uint64{countRing - 1},
			c.minus)...)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %d and %d", c.name, got, c.plus, c.minus)
		}
	}
	// A table that ends below a draw gives its last entry.
	r.count.pairs = []uint64{1, 2}
	r.src = &script{(top - 1) << 2, (top - 1) << 2}
	if got, err := r.messages(nil, 0); err != nil || len(got) != 2+1+2 {
		t.Errorf("%v, %v", got, err)
	}
	m, err := privacy.NewShuffledCount(1, 0.5, 16, 16, 0.1)
	must(t, err)
	key := noise.Key{Seed: 43, Role: noise.RoleNoise}
	simulated, err := newRandomizer(m, nil, &key.Fast(1)[0])
	must(t, err)
	fast := &key.Fast(1)[0]
	for range 100 {
		got, err := simulated.count.noise()
		if want := fast.NegativeBinomial(1.0/16, float64(m.Num)/float64(m.Den)); err != nil || got != want {
			t.Fatalf("drew %d, %v, want %d", got, err, want)
		}
	}
}

// In a simulation the sum of all users' shares of a count is one draw of Num/Den.
func TestTotalCountIsOneDraw(t *testing.T) {
	m, err := privacy.NewShuffledCount(0.7, 0.3, 16, 16, 0.1)
	must(t, err)
	if m.Den == 1 || m.Num == 1 {
		t.Fatalf("%+v cannot tell a product from a quotient", m)
	}
	b := float64(m.Num) / float64(m.Den)
	for run := range 50 {
		got := (&distributed{fast: fastStream(run)}).totalCount(m, &waiting{bits: [2]int{16, 0}})
		if want := intoRing(fastStream(run).DiscreteLaplace(b), countRing); got != want {
			t.Fatalf("run %d: %d, want %d", run, got, want)
		}
	}
	simulated, err := newRandomizer(m, nil, fastStream(0))
	must(t, err)
	fast := fastStream(0)
	for range 50 {
		if got, err := simulated.count.noise(); err != nil || got != fast.NegativeBinomial(1.0/16, b) {
			t.Fatalf("%d, %v", got, err)
		}
	}
}

// The largest total that stands for itself is n·g + τ.
func TestDecodeAtItsBorder(t *testing.T) {
	a := &Analyser{modulus: 1000, g: 7, tau: 30}
	for total, want := range map[uint64]int64{0: 0, 50: 50, 51: 51, 52: -948, 999: -1} {
		if got := a.decode(total, 3); got != want {
			t.Errorf("%d is read as %d, want %d", total, got, want)
		}
	}
}

func TestTooFewErrorSaysWhich(t *testing.T) {
	few := &TooFewError{Arms: []int{4, 5}, Answers: 1, Promised: 3}
	if got, want := few.Error(), "arm 4: too few users answered: 1, must be at least 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	few.Err = errDraw
	if few.Error() != errDraw.Error() {
		t.Errorf("%q", few.Error())
	}
}

// How many must answer: n_min, and three where a sum of fewer would show a message.
func TestLeastAndAlone(t *testing.T) {
	for _, c := range []struct {
		model         privacy.Trust
		promised      float64
		invited, want int
	}{
		{privacy.TrustSecAgg, 0.1, 10, 3}, {privacy.TrustSecAgg, 0.1, 3, 3}, {privacy.TrustSecAgg,
			0.1, 2, 1},
		{privacy.TrustSecAgg, 0, 10, 10}, {privacy.TrustSecAgg, 0.5, 10, 5}, {privacy.TrustSecAgg, 0, 2, 2},
		{privacy.TrustCentral, 0.1, 10, 1}, {privacy.TrustLocal, 0.1, 10, 1},
		{privacy.TrustTwoServer, 0.25, 10, 3},
	} {
		trust := Trust{Model: c.model, Promised: c.promised, P: 0.01}
		if got := trust.least(c.invited); got != c.want {
			t.Errorf("%s: %d of %d, promised %v; want %d", c.model, got, c.invited, c.promised, c.want)
		}
	}
	for _, c := range []struct{ trust, want Trust }{
		{Trust{Model: privacy.TrustCentral, Noise: privacy.NoisePolya},
			Trust{Model: privacy.TrustCentral, Noise: privacy.NoisePolya}},
		{Trust{Model: privacy.TrustSecAgg, Noise: privacy.NoisePolya}, Trust{Model: privacy.TrustLocal}},
		{Trust{Model: privacy.TrustSecAgg}, Trust{Model: privacy.TrustLocal}},
		{Trust{Model: privacy.TrustSecAgg, Noise: privacy.NoiseSkellam},
			Trust{Model: privacy.TrustLocal, Noise: privacy.NoiseSkellam}},
	} {
		if got := c.trust.alone(); got != c.want {
			t.Errorf("%+v alone: %+v", c.trust, got)
		}
	}
}

func TestTrustTakesTheEdges(t *testing.T) {
	for _, c := range []struct {
		change func(*Trust)
		ok     bool
	}{
		{func(t *Trust) {}, true}, {func(t *Trust) { t.S = 1 }, true},
		{func(t *Trust) { t.S = math.MaxFloat64 }, true},
		{func(t *Trust) { t.S = math.Nextafter(1, 0) }, false},
		{func(t *Trust) { t.S = math.Inf(1) }, false},
		{func(t *Trust) { t.Promised = 1 }, true},
		{func(t *Trust) { t.Promised = math.Nextafter(1, 2) }, false},
		{func(t *Trust) { t.Promised = -0.5 }, false}, {func(t *Trust) { t.Cover = 0.5 }, true},
		{func(t *Trust) { t.Cover = 1 }, false}, {func(t *Trust) { t.Cover = -0.5 }, false},
	} {
		trust := Trust{Model: privacy.TrustShuffle, P: 0.01}
		c.change(&trust)
		if err := trust.Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", trust, err)
		}
	}
	trust := Trust{Model: privacy.TrustCentral, P: 0.01}
	for users, ok := range map[int]bool{0: false, 1: true, maxRewards: true, maxRewards + 1: false} {
		_, err := trust.Mechanism(privacy.Laplace{Scale: 1}, users)
		if refused := err != nil && strings.HasPrefix(err.Error(), "users is"); refused == ok {
			t.Errorf("%d users: %v", users, err)
		}
	}
	if _, err := trust.Mechanism(nil, 1); err == nil {
		t.Error("no mechanism is taken")
	}
}

// Three users are a crowd, two are not: each of them adds a whole noise.
func TestCrowds(t *testing.T) {
	trust := Trust{Model: privacy.TrustSecAgg, P: 0.01}
	for users, want := range map[int]privacy.Trust{1: privacy.TrustLocal, 2: privacy.TrustLocal,
		3: privacy.TrustSecAgg, 4: privacy.TrustSecAgg} {
		m, err := trust.Mechanism(privacy.Laplace{Scale: 1}, users)
		must(t, err)
		if got := m.(privacy.Aggregated).Trust; got != want {
			t.Errorf("%d users: %s, want %s", users, got, want)
		}
	}
}

// What a mechanism states is kept in its own currency, unless the trust says another: pure ε of
// Laplace, ρ of Gaussian noise. And ε is the largest that keeps it, to 1e-8.
func TestCalibrationIsTight(t *testing.T) {
	if c, err := newCalibration(Trust{Model: privacy.TrustCentral, P: 0.01},
		privacy.Laplace{Scale: 2}); err != nil ||
		c.target != (privacy.Budget)(privacy.Pure{Epsilon: 0.5}) {
		t.Errorf("laplace: %+v, %v", c, err)
	}
	for _, name := range []privacy.NoiseName{privacy.NoiseGaussian, privacy.NoiseSkellam} {
		for _, sigma := range []float64{0.5, 1, 4, 30, 100} {
			trust := Trust{Model: privacy.TrustSecAgg, Noise: name, P: 0.01, S: 4}
			c, err := newCalibration(trust, privacy.Gaussian{Sigma: sigma})
			must(t, err)
			target := privacy.ZCDP{Rho: 1 / (2 * sigma * sigma)}
			if got, ok := c.target.(privacy.ZCDP); !ok || math.Abs(got.Rho-target.Rho) > 1e-12*target.Rho {
				t.Errorf("gaussian: target %v, want %v", c.target, target)
			}
			m, err := c.mechanism(20, 20, 20, 0.01)
			must(t, err)
			k := privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: name, S: 4, Users: 20,
				Invited: 20, P: 0.01}
			within := func(e float64) (privacy.Aggregated, bool) {
				k.Epsilon = e
				m, err := privacy.NewAggregated(k)
				return m, err == nil && m.Loss().Within(c.target)
			}
			if !m.Loss().Within(c.target) {
				t.Errorf("%s, σ = %v: loses %v", name, sigma, m.Loss())
			}
			if full, ok := within(1 / sigma); ok {
				if m != privacy.Mechanism(full) {
					t.Errorf("%s, σ = %v: %v, want %v", name, sigma, m, full)
				}
				continue
			}
			lo, hi := 0.0, 1/sigma
			for range 200 {
				if mid := (lo + hi) / 2; mid > lo && mid < hi {
					if _, ok := within(mid); ok {
						lo = mid
					} else {
						hi = mid
					}
				}
			}
			if _, ok := within(lo); !ok {
				t.Fatalf("%s, σ = %v: there is no ε", name, sigma)
			}
			at := cohort{privacy.TrustSecAgg, 20, 20}
			if got := c.scaled[at]; got > lo*(1+1e-12) || got < lo*(1-1e-8) {
				t.Errorf("%s, σ = %v: ε = %v, the largest is %v", name, sigma, got, lo)
			}
			again, err := c.mechanism(20, 20, 20, 0.01)
			if err != nil || again != m {
				t.Errorf("%s, σ = %v: %v again, was %v; %v", name, sigma, again, m, err)
			}
		}
	}
}

// Shuffled sums by their formulas: counts with β = P/2, split and mix with log₂((1+e^ε)/δ) bits,
// clones where users are too few for that.
func TestShuffledByTheirFormulas(t *testing.T) {
	const p = 0.04
	trust := Trust{Model: privacy.TrustShuffle, P: p}
	got, err := trust.Mechanism(privacy.Laplace{Scale: 2}, 1000)
	must(t, err)
	want, err := privacy.NewShuffledCount(0.5, 0.4, 1000, 1000, p/2)
	if err != nil || got != privacy.Mechanism(want) {
		t.Errorf("count: %v, want %v, %v", got, want, err)
	}
	b := privacy.Approx{Epsilon: 0.5, Delta: 1e-6}
	trust.Like, trust.Noise = b, privacy.NoisePolya
	c, err := newCalibration(trust, privacy.Laplace{Scale: 2})
	must(t, err)
	b = c.target.(privacy.Approx)
	for users, split := range map[int]bool{privacy.MinSplitMix - 1: false,
		privacy.MinSplitMix: true, 500: true} {
		got, err := trust.Mechanism(privacy.Laplace{Scale: 2}, users)
		must(t, err)
		_, ok := got.(privacy.SplitMix)
		if ok != split {
			t.Errorf("%d users: %v", users, got)
		}
		if !split {
			e0, err := privacy.ClonesLocal(users, b)
			must(t, err)
			inner, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustLocal,
				Noise: privacy.NoiseLaplace, Epsilon: e0, S: 1, Users: users, Invited: users, P: p})
			must(t, err)
			if got != privacy.Mechanism(privacy.Clones{Inner: inner, Delta: b.Delta}) {
				t.Errorf("%d users: %v, want clones of %v", users, got, inner)
			}
			continue
		}
		inner, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
			Noise:   privacy.NoisePolya,
			Epsilon: b.Epsilon, S: 1, Users: users, Invited: users, P: p})
		must(t, err)
		want, err := privacy.NewSplitMix(inner, math.Log2((1+math.Exp(b.Epsilon))/b.Delta)*(1+1e-12))
		if err != nil || got != privacy.Mechanism(want) {
			t.Errorf("%d users: %v, want %v, %v", users, got, want, err)
		}
	}
}

// recorder is a sum in the open that keeps what it was asked, and fails where it is told to.
type recorder struct {
	sums []Sum
	fail int // number of the call
}

func (r *recorder) Sum(s Sum, messages []uint64) (uint64, int, error) {
	r.sums = append(r.sums, s)
	if len(r.sums) == r.fail {
		return 0, 0, errDraw
	}
	return PlainSum{}.Sum(s, messages)
}

// Releases are numbered from 0, each may be misread with P/(10·number²·arms), and with
// a Summer each knows what was released before.
func TestReleasesAreNumberedAndBound(t *testing.T) {
	var s recorder
	trust := Trust{Model: privacy.TrustSecAgg, P: 0.01, Summer: &s}
	cur, err := Simulated(Config{Arms: 3, Mechanism: privacy.Laplace{Scale: 1}, Trust: &trust},
		fastStream(1))
	must(t, err)
	c, err := newCalibration(trust, privacy.Laplace{Scale: 1})
	must(t, err)
	for call := 1.0; call <= 3; call++ {
		must(t, cur.AddSum(0, 20, 10))
		must(t, cur.AddSum(2, 20, 10))
		if _, err := cur.Release([]int{0, 2}); err != nil {
			t.Fatal(err)
		}
		want, err := c.mechanism(20, 20, 20, 0.01/(10*call*call*2))
		must(t, err)
		entries := cur.Ledger().Entries()
		if got := entries[len(entries)-1].Mechanism; got != want {
			t.Errorf("release %v: %v, want %v", call, got, want)
		}
	}
	var states [][32]byte
	for i, sum := range s.sums {
		if sum.Batch != i/2 || sum.Arm != i%2*2 {
			t.Errorf("sum %d: batch %d, arm %d", i, sum.Batch, sum.Arm)
		}
		if i%2 == 0 {
			if slices.Contains(states, sum.State) {
				t.Errorf("release %d has the state of an earlier one", i/2)
			}
			states = append(states, sum.State)
		}
	}
	if states[0] != [32]byte{} {
		t.Error("the first release knows of one before")
	}
}

// What S may have shown when it failed is charged to its own arm's slot, and to no other.
func TestTheArmThatFailedIsCharged(t *testing.T) {
	s := recorder{fail: 2}
	cur, err := Simulated(Config{Arms: 3, Mechanism: privacy.Laplace{Scale: 1},
		Trust: &Trust{Model: privacy.TrustSecAgg, P: 0.01, Summer: &s}}, fastStream(2))
	must(t, err)
	for a := range 3 {
		must(t, cur.AddSum(a, 10, 5))
	}
	_, err = cur.Release([]int{0, 1, 2})
	if !errors.Is(err, errDraw) {
		t.Fatal(err)
	}
	var slots []int
	for _, e := range cur.Ledger().Entries() {
		slots = append(slots, e.Slot)
	}
	if !slices.Equal(slots, []int{0, 1}) {
		t.Errorf("slots %v are charged, want 0 and 1", slots)
	}
}

// Under local trust a user who does not answer has sent nothing: nothing is charged for a batch without
// an answer.
func TestNoAnswersCostNothing(t *testing.T) {
	cur, err := Simulated(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1},
		Trust: &Trust{Model: privacy.TrustLocal, P: 0.01, Dropout: math.Nextafter(1, 0)}}, fastStream(3))
	must(t, err)
	must(t, cur.AddSum(0, 3, 1))
	if _, err := cur.Release([]int{0}); !errors.Is(err, ErrAnswers) {
		t.Fatal(err)
	}
	if n := len(cur.Ledger().Entries()); n != 0 {
		t.Errorf("%d charges", n)
	}
}

// The ring's sums and remainders are those of large integers, at the ends too.
func TestRing(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	edges := []uint64{0, 1, 2, 1<<62 + 1, 1<<63 - 1, 1 << 63}
	large := func(x uint64) *integer.Int { return new(integer.Int).SetUint64(x) }
	for i := range 20_000 {
		m := 1 + r.Uint64()>>(1+r.IntN(63))
		if i < len(edges) && edges[i] > 0 {
			m = edges[i]
		}
		x := int64(r.Uint64()) >> r.IntN(64)
		if i%7 == 0 {
			x = []int64{math.MinInt64, math.MaxInt64, 0, -1, int64(m), -int64(m)}[r.IntN(6)]
		}
		if got, want := intoRing(x, m), new(integer.Int).Mod(integer.NewInt(x), large(m)); got != want.Uint64() {
			t.Fatalf("%d modulo %d is %d, must be %d", x, m, got, want)
		}
		wide := max(m, m<<1) // sums that wrap too
		a, b := r.Uint64()%wide, r.Uint64()%wide
		want := new(integer.Int).Add(large(a), large(b))
		if got := addMod(a, b, wide); got != want.Mod(want, large(wide)).Uint64() {
			t.Fatalf("%d + %d modulo %d is %d, must be %d", a, b, wide, got, want)
		}
	}
}
