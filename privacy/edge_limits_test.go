package privacy

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
)

func single(n int, sum float64) *Values { return &Values{N: []int{n}, Sum: []float64{sum}} }

// A slot that was used long before its neighbours keeps what it went through when they catch up.
func TestSlotsThatNeighboursCatchUpWith(t *testing.T) {
	const far = 100 // further from the first than the ledger makes room for
	for _, last := range []Mechanism{Laplace{Scale: 1}, Laplace{Scale: 4}, Tree{Scale: 4, Horizon: 1}} {
		l := NewLedger(WithCap(Pure{Epsilon: 2}))
		release := func(slot int, m Mechanism) error {
			_, err := l.Release(slot, m, single(1, 0.5))
			return err
		}
		if err := release(far, Laplace{Scale: 1}); err != nil {
			t.Fatal(err)
		}
		for slot := range far {
			if err := release(slot, Laplace{Scale: 2}); err != nil {
				t.Fatal(err)
			}
		}
		want := 1 + last.Loss().Pure()
		if err := release(far, last); err != nil {
			t.Fatal(err)
		}
		if got := l.Slot(far).Pure(); got != want {
			t.Errorf("%v: slot %d has lost %v, want %v", last, far, got, want)
		}
		if got := l.Total().Pure(); got != want {
			t.Errorf("%v: total %v, want %v", last, got, want)
		}
		if err := release(far, Laplace{Scale: 0.75}); !errors.Is(err, ErrBudget) {
			t.Errorf("%v: beyond the cap: %v", last, err)
		}
	}
}

// What ran on for free before another mechanism came is in the entries afterwards, as is what
// runs on then.
func TestEntriesOfASlotOfTwoMechanisms(t *testing.T) {
	tree, l := Tree{Scale: 1, Horizon: 8}, NewLedger()
	account := l.Account(tree)
	run := func(from, to int) {
		for n := from; n <= to; n++ {
			if _, err := account.Release(0, single(n, float64(n))); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(1, 4)
	if _, err := l.Release(0, Laplace{Scale: 1}, single(4, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := account.Release(0, single(4, 3)); !errors.Is(err, ErrPrefix) {
		t.Errorf("another sum of 4 rewards: %v", err)
	}
	run(5, 6)
	got := map[string]int{}
	for _, e := range l.Entries() {
		got[e.Mechanism.Kind()] = e.Releases
	}
	if len(got) != 2 || got["tree"] != 6 || got["laplace"] != 1 {
		t.Errorf("releases %v, want 6 of the tree and 1", got)
	}
}

// After a yes a slot that is named twice pays for both sums; another slot's sum is not its own.
func TestTwoSumsOfASlotAfterAYes(t *testing.T) {
	// 1/6 + 2/6 for the questions and 1/2 for each sum
	m := Sparse{Questions{Threshold: 6, Query: 6, Statistic: Range}, 2}
	for _, c := range []struct {
		cap   float64
		slots []int
		ok    bool
	}{
		{1, []int{0}, true}, {1, []int{0, 1}, true}, {1, []int{0, 0}, false}, {1, []int{0, 1, 0}, false},
		{1.5, []int{0, 0}, true}, {1.5, []int{0, 0, 0}, false}, {0.75, []int{0}, false},
	} {
		l := NewLedger(WithCap(Pure{Epsilon: c.cap}))
		v := &Values{N: make([]int, len(c.slots)), Sum: make([]float64, len(c.slots))}
		_, err := l.ReleaseAll(c.slots, m, v)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrBudget) {
			t.Errorf("cap %v, slots %v: %v", c.cap, c.slots, err)
		}
		if err != nil && l.Total() != (Loss{}) {
			t.Errorf("cap %v, slots %v: refused, and charged %v", c.cap, c.slots, l.Total())
		}
	}
}

// A loss with a δ has no ε at any smaller one, the smallest there are included.
func TestNoEpsilonBelowDelta(t *testing.T) {
	for _, delta := range []float64{1e-6, 0x1p-1060, 1e-323} {
		l := LossOf(Approx{Epsilon: 1, Delta: delta})
		if got := l.Approx(math.Nextafter(delta, 0)); !math.IsInf(got, 1) {
			t.Errorf("δ = %v: ε = %v below it", delta, got)
		}
		if got := l.Approx(delta); got != 1 {
			t.Errorf("δ = %v: ε = %v", delta, got)
		}
	}
}

// The limits of shuffled counts are taken, and what is next to them is not.
func TestLimitsOfShuffledCounts(t *testing.T) {
	if m, err := NewShuffledCount(1, 0x1p-50, 10, 10, 0.1); err != nil || m.Num != 1<<50 || m.Den != 1 {
		t.Errorf("ε1 = 2^-50: %+v, %v", m, err)
	}
	for e1, want := range map[float64]string{0x1p20: "must be below epsilon",
		math.Nextafter(0x1p20, 1e9): "must be from", math.Nextafter(0x1p-50, 0): "must be from"} {
		if _, err := NewShuffledCount(1, e1, 10, 10, 0.1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ε1 = %v: %v, want %q", e1, err, want)
		}
	}
	// β/n = 2^-52, and ε such that g is 2^-62, and the numbers below them.
	m := ShuffledCount{Num: 1 << 30, Den: 1, Users: 1 << 22, Invited: 1 << 22, Beta: 0x1p-30}
	m.Epsilon = math.Log1p(0x1p-10)
	for m.g()*coverUnit >= 1 {
		m.Epsilon = math.Nextafter(m.Epsilon, 0)
	}
	if err := m.Validate(); err == nil {
		t.Errorf("ε = %v: g is %v", m.Epsilon, m.g())
	}
	for m.g()*coverUnit < 1 {
		m.Epsilon = math.Nextafter(m.Epsilon, 1)
	}
	if err := m.Validate(); err != nil || m.g() != 0x1p-62 {
		t.Errorf("g = %v·2^-62: %v", m.g()*coverUnit, err)
	}
	m.Epsilon, m.Beta = 1, math.Nextafter(m.Beta, 0)
	if err := m.Validate(); err == nil || !strings.Contains(err.Error(), "2^-52") {
		t.Errorf("β/n below 2^-52: %v", err)
	}
	// The most pairs: 2^16.
	m = ShuffledCount{Num: 1 << 40, Den: 1, Users: 1000, Invited: 1000, Beta: 1e-3}
	lo, hi := 1e-6, 1.0 // more than 2^16, and fewer
	for range 60 {
		if m.Epsilon = (lo + hi) / 2; m.pairs() > maxCover {
			lo = m.Epsilon
		} else {
			hi = m.Epsilon
		}
	}
	for e, want := range map[float64]float64{lo: maxCover + 1, hi: maxCover} {
		if m.Epsilon = e; m.pairs() != want || (m.Validate() == nil) != (want == maxCover) {
			t.Errorf("%v pairs, want %v: %v", m.pairs(), want, m.Validate())
		}
	}
}

// As many pairs as the law D has: 0, …, L.
func TestCoversHaveTheirPairs(t *testing.T) {
	for _, m := range []ShuffledCount{
		{Epsilon: 1, Num: 2, Den: 1, Users: 1000, Invited: 1000, Beta: 1e-3},
		{Epsilon: 2, Num: 5, Den: 4, Users: 20, Invited: 40, Beta: 0.25},
		{Epsilon: 0.1, Num: 100, Den: 1, Users: 50, Invited: 50, Beta: 0.5},
	} {
		c, err := m.Cover()
		// L = ⌈log(1 + (e^d−1)/g)/d⌉ − 1 with d = ε − ε1 and g = γ(e^ε−1)/(1−γ)
		gamma, d := m.Beta/float64(m.Users), m.Epsilon-float64(m.Den)/float64(m.Num)
		g := gamma * math.Expm1(m.Epsilon) / (1 - gamma)
		want := math.Ceil(math.Log1p(math.Expm1(d)/g)/d) - 1
		if err != nil || m.pairs() != want || float64(len(c.Pairs)) != want+1 {
			t.Errorf("%v: L = %v, %d pairs, want %v: %v", m, m.pairs(), len(c.Pairs), want, err)
		}
	}
}

// The largest horizon has the nodes that whole numbers of any length say.
func TestLevelsOfTheLargestHorizon(t *testing.T) {
	for _, base := range []int{3, 5, 7, 9, 99} {
		want, power := 0, big.NewInt(1) // the smallest h with base^h ≥ 2·MaxInt + 1
		for least := new(big.Int).SetUint64(2*uint64(math.MaxInt) + 1); power.Cmp(least) < 0; want++ {
			power.Mul(power, big.NewInt(int64(base)))
		}
		if got := (KAry{Scale: 1, Base: base, Horizon: math.MaxInt}).Levels(); got != want {
			t.Errorf("base %d: %d levels, want %d", base, got, want)
		}
	}
}

// More users hide each other no worse, as many as there may be.
func TestClonesOfTheMostUsers(t *testing.T) {
	b := Approx{Epsilon: 0.25, Delta: 1e-6}
	few, err := ClonesLocal(1_000_000, b)
	if err != nil {
		t.Fatal(err)
	}
	if most, err := ClonesLocal(math.MaxInt, b); err != nil || most < few {
		t.Errorf("ε0 = %v for the most users, %v for a million: %v", most, few, err)
	}
}

// Scales so small that the loss leaves the doubles cost ∞; a loss that is the largest
// double does not.
func TestLossesBesideInfinity(t *testing.T) {
	for _, x := range []float64{5e-324, 0x1p-1030} {
		l := Hybrid{Scale: x}.Loss()
		if !l.Infinite() || !math.IsInf(l.Pure(), 1) || !math.IsInf(l.Approx(0.5), 1) {
			t.Errorf("hybrid of scale %v costs %v", x, l)
		}
	}
	if l := discreteLaplaceLoss(math.MaxFloat64, 1); l.Pure() != math.MaxFloat64 {
		t.Errorf("the largest loss is %v", l.Pure())
	}
	if l := discreteLaplaceLoss(math.MaxFloat64, 0.5); !l.Infinite() {
		t.Errorf("a larger loss is %v", l)
	}
}
