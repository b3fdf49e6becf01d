package identify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A seal hands out values as a curator would, in rewards of [0,1].
type seal struct {
	ledger *privacy.Ledger
	slot   int
}

func newSeal() *seal { return &seal{ledger: privacy.NewLedger()} }

func (s *seal) release(t testing.TB, m privacy.Mechanism, n []int, sum []float64) privacy.Released {
	t.Helper()
	slots := make([]int, len(n))
	for i := range slots {
		s.slot++
		slots[i] = s.slot
	}
	v := privacy.Values{N: n, Sum: sum}
	if m, ok := m.(interface{ Tail() privacy.Tail }); ok {
		v.Tail = m.Tail()
	}
	r, err := s.ledger.ReleaseAll(slots, m, &v)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A world plays an exact rule round by round on Bernoulli arms.
type world struct {
	means []float64
	n     []int
	sum   []float64
	r     *rand.Rand
}

func newWorld(seed uint64, means ...float64) *world {
	return &world{means, make([]int, len(means)), make([]float64, len(means)), rand.New(rand.NewPCG(seed, 7))}
}

// run plays p to its end and returns the number of plays; look sees each batch before it is played.
func (w *world) run(t testing.TB, p Identifier, most int, look func(*policy.Batch)) int {
	t.Helper()
	s := newSeal()
	var released privacy.Released
	for rounds := 0; ; {
		b := p.Next(released)
		if b == nil {
			return rounds
		}
		if look != nil {
			look(b)
		}
		var n []int
		var sum []float64
		for _, q := range b.Plays {
			for range q.Rounds {
				w.n[q.Arm]++
				if w.r.Float64() < w.means[q.Arm] {
					w.sum[q.Arm]++
				}
			}
			rounds += q.Rounds
			n, sum = append(n, w.n[q.Arm]), append(sum, w.sum[q.Arm])
		}
		if rounds > most {
			t.Fatalf("%T has not stopped after %d plays", p, rounds)
		}
		released = s.release(t, p.Mechanism(), n, sum)
	}
}

// The threshold against its formula with h inverted by bisection, and against a value worked by
// hand: for K = 5 and δ = 0.01, h⁻¹(1 + 2.99573) = 5.74430, so h̃ is at 3.46741, below h⁻¹(1/log
// 1.5) = 3.87…, and 𝒯 = 3(3.46741 + 0.90272) = 13.1104.
func TestBernoulliThreshold(t *testing.T) {
	inverse := func(x float64) float64 {
		lo, hi := 1.0, 4*x+10
		for range 200 {
			if m := (lo + hi) / 2; m-math.Log(m) < x {
				lo = m
			} else {
				hi = m
			}
		}
		return lo
	}
	tilde := func(x float64) float64 {
		if x >= inverse(1/math.Log(1.5)) {
			return math.Exp(1/inverse(x)) * inverse(x)
		}
		return 1.5 * (x - math.Log(math.Log(1.5)))
	}
	for _, c := range []struct {
		arms int
		risk float64
	}{{2, 0.5}, {2, 0.1}, {5, 0.01}, {100, 1e-6}, {10, 1e-12}} {
		x := math.Log(float64(c.arms-1)/c.risk) / 2
		want := 2 * 2 * tilde((inverse(1+x)+math.Log(math.Pi*math.Pi/3))/2)
		th, err := NewBernoulliThreshold(c.arms, c.risk)
		if err != nil {
			t.Fatal(err)
		}
		got := th.At(Sample{N: 1}, Sample{N: math.E})
		if want += 3 * math.Ln2; math.Abs(got-want) > 1e-9*want {
			t.Errorf("K = %d, δ = %v: %v, want %v", c.arms, c.risk, got, want)
		}
	}
	th, err := NewBernoulliThreshold(5, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	if got := th.constant / 2; math.Abs(got-13.11) > 0.01 {
		t.Errorf("𝒯(½ log 400) = %v, want 13.11", got)
	}
}

// Rules that claim to be δ-correct are wrong at most δ often. The risk is large, so that the test
// can fail, and the false alarm of each one-sided bound is 10⁻⁶. A threshold that ignores the many
// looks is caught.
func TestExactRulesAreCorrect(t *testing.T) {
	const risk, runs = 0.2, 150
	build := map[string]func() (Identifier, error){
		"se":            func() (Identifier, error) { return NewSE(3, risk) },
		"lucb":          func() (Identifier, error) { return NewLUCB(3, risk) },
		"tas bernoulli": func() (Identifier, error) { return NewTrackAndStop(3, risk, Bernoulli) },
		"tas gaussian":  func() (Identifier, error) { return NewTrackAndStop(3, risk, Gaussian) },
	}
	wrongOf := func(means []float64, build func() (Identifier, error)) (wrong, total int) {
		for i := range uint64(runs) {
			p, err := build()
			if err != nil {
				t.Fatal(err)
			}
			total += newWorld(i, means...).run(t, p, 200_000, nil)
			if p.Answer() != 1 {
				wrong++
			}
			if p.Next(privacy.Released{}) != nil {
				t.Fatal("it goes on after its answer")
			}
		}
		return wrong, total
	}
	for name, b := range build {
		wrong, total := wrongOf([]float64{0.5, 0.7, 0.3}, b)
		lo, _, err := stats.ClopperPearson(wrong, runs, 1-2e-6)
		if err != nil {
			t.Fatal(err)
		}
		if lo > risk {
			t.Errorf("%s: %d wrong answers in %d runs", name, wrong, runs)
		}
		t.Logf("%s: %d of %d wrong, %d plays on average", name, wrong, runs, total/runs)
	}
	// A threshold of the likelihood ratio alone, without what the many looks cost, is caught.
	wrong, _ := wrongOf([]float64{0.5, 0.52, 0.48}, func() (Identifier, error) {
		p, err := NewTrackAndStop(3, risk, Bernoulli)
		p.threshold = constantThreshold(0.02)
		return p, err
	})
	if lo, _, err := stats.ClopperPearson(wrong, runs, 1-2e-6); err != nil || lo <= risk {
		t.Errorf("a threshold of 0.02 is not caught: %d wrong answers in %d runs (%v)", wrong, runs, err)
	}
}

type constantThreshold float64

func (c constantThreshold) At(a, b Sample) float64 { return float64(c) }

// By hand: K = 2, δ = ½, ε = 1. Epoch 1 has R = ⌈max(32·4·log 32, 8·2·log 16) + 1⌉ = ⌈443.6…+1⌉ =
// 445, h = √(log 32/890) = 0.06240, c = log 16/445 = 0.006231. Means that are apart by more than 2h
// + 2c = 0.13726 end it.
func TestDPSEByHand(t *testing.T) {
	for _, c := range []struct {
		gap  float64
		stop bool
	}{{0.1372, false}, {0.1373, true}, {-0.1373, true}} {
		p, err := NewDPSE(2, privacy.Pure{Epsilon: 1}, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		b := p.Next(privacy.Released{})
		if len(b.Plays) != 2 || b.Plays[0].Rounds != 445 || !b.Plays[0].Release {
			t.Fatalf("first batch %+v", b.Plays)
		}
		b = p.Next(newSeal().release(t, p.Mechanism(), []int{445, 445},
			[]float64{445 * (0.5 + c.gap), 445 * 0.5}))
		if c.stop != (b == nil) {
			t.Errorf("gap %v: batch %v", c.gap, b)
		}
		want := -1
		if c.stop {
			if want = 0; c.gap < 0 {
				want = 1
			}
		}
		if p.Answer() != want {
			t.Errorf("gap %v: answer %d, want %d", c.gap, p.Answer(), want)
		}
	}
}

// By hand: K = 3, δ = 0.1. After one play of each with rewards 1, 0, 1 the best is arm 0 and its
// strongest rival arm 2, with the same mean.
func TestLUCBByHand(t *testing.T) {
	p, err := NewLUCB(3, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	s := newSeal()
	p.Next(privacy.Released{})
	b := p.Next(s.release(t, p.Mechanism(), []int{1, 1, 1}, []float64{1, 0, 1}))
	if len(b.Plays) != 2 || b.Plays[0].Arm != 0 || b.Plays[1].Arm != 2 {
		t.Fatalf("plays %+v, want arms 0 and 2", b.Plays)
	}
	// t = 5: the half log is ½ log(1.25·3·625/0.1) = 5.0309. Arm 0 at 2/2, arm 2 at 1/2 with the
	// bound 0.5 + √(5.0309/2) = 2.09, arm 1 at 0 + √5.0309 = 2.24.
	b = p.Next(s.release(t, p.Mechanism(), []int{2, 2}, []float64{2, 1}))
	if b.Plays[0].Arm != 0 || b.Plays[1].Arm != 1 {
		t.Fatalf("plays %+v, want arms 0 and 1", b.Plays)
	}
}

// Track-and-stop against its definition: nobody falls behind √t − K/2, and whoever is
// played otherwise is furthest behind the optimal allocation of the empirical means, which
// the test finds anew.
func TestTrackAndStopTracks(t *testing.T) {
	means := []float64{0.7, 0.6, 0.3}
	w := newWorld(3, means...)
	p, err := NewTrackAndStop(3, 0.01, Bernoulli)
	if err != nil {
		t.Fatal(err)
	}
	rounds, forced := 0, 0
	w.run(t, p, 100_000, func(b *policy.Batch) {
		if len(b.Plays) > 1 {
			rounds += 3
			return
		}
		least := min(w.n[0], w.n[1], w.n[2])
		if floor := math.Sqrt(float64(rounds)) - 1.5; float64(least) < floor {
			forced++
			if w.n[b.Plays[0].Arm] != least {
				t.Fatalf("round %d: arm %d is played with %v plays, the least is %d", rounds,
					b.Plays[0].Arm, w.n, least)
			}
		} else if rounds >= 100 && p.due == rounds+rounds/100 { // the weights are new
			mu := []float64{w.sum[0] / float64(w.n[0]), w.sum[1] / float64(w.n[1]), w.sum[2] / float64(w.n[2])}
			c, err := bound.BernoulliTime(mu, math.Inf(1))
			if err != nil {
				t.Fatal(err)
			}
			want, most := 0, math.Inf(-1)
			for a := range mu {
				if d := float64(rounds)*c.Allocation[a] - float64(w.n[a]); d > most {
					want, most = a, d
				}
			}
			if b.Plays[0].Arm != want {
				t.Fatalf("round %d: arm %d is played, arm %d is behind", rounds, b.Plays[0].Arm, want)
			}
		}
		rounds++
	})
	if forced == 0 || p.Answer() != 0 {
		t.Errorf("%d forced plays, answer %d", forced, p.Answer())
	}
}

func TestReferenceErrors(t *testing.T) {
	one := func(f func() error, want string) {
		t.Helper()
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for _, build := range []func(int, float64) error{
		func(k int, d float64) error { _, err := NewSE(k, d); return err },
		func(k int, d float64) error { _, err := NewLUCB(k, d); return err },
		func(k int, d float64) error { _, err := NewTrackAndStop(k, d, Bernoulli); return err },
		func(k int, d float64) error { _, err := NewTrackAndStop(k, d, Gaussian); return err },
		func(k int, d float64) error { _, err := NewDPSE(k, privacy.Pure{Epsilon: 1}, d); return err },
	} {
		one(func() error { return build(1, 0.1) }, "arms is 1")
		one(func() error { return build(-3, 0.1) }, "arms is -3")
		one(func() error { return build(2, 0) }, "risk is 0")
		one(func() error { return build(2, 1) }, "risk is 1")
		one(func() error { return build(2, math.NaN()) }, "risk is NaN")
	}
	one(func() error { _, err := NewTrackAndStop(2, 0.1, 7); return err }, "family is 7")
	one(func() error { _, err := NewDPSE(2, privacy.ZCDP{Rho: 1}, 0.1); return err }, "must be epsilon")
	one(func() error { _, err := NewDPSE(2, privacy.Pure{Epsilon: -1}, 0.1); return err }, "epsilon")
}

func ExampleNewSE() {
	p, err := NewSE(2, 0.05)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := p.Next(privacy.Released{})
	fmt.Println(len(b.Plays), "arms,", b.Plays[0].Rounds, "round each, answer", p.Answer())
	// Output: 2 arms, 1 round each, answer -1
}
