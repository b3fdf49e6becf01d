package policy

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

func TestDPUCBCounterAgainstReference(t *testing.T) {
	const horizon = 2000
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 10))
		arms := 2 + r.IntN(4)
		beta := 0.3*r.Float64() + 1e-4
		tail := privacy.Tail{Sigma: 5 * r.Float64(), H: 3 * r.Float64(), Log: r.Float64()}
		tab := newTable(r, arms, horizon, laplace(r, 2))
		p, err := NewDPUCBCounter(arms, horizon, privacy.KAry{Scale: 1, Base: 5, Horizon: horizon}, beta)
		check(t, err)
		x := math.Log(float64(arms) * horizon / beta)
		w := tail.Sigma*math.Sqrt(2*x) + tail.H*(x+tail.Log)
		same(t, "dp-ucb", playTable(t, p, tab, tail, horizon),
			optimistic(tab, horizon, func(mean, n float64, t int) float64 {
				return mean + math.Sqrt(2*math.Log(float64(t))/n) + w/n
			}))
	}
}

// By hand: K = 2, T = 8, β = ½: x = log 32 = 3.466; the tail {1, 0.5, 0} has w = √(2·3.466) + 1.733
// = 4.366. Arm 0 gives 1, arm 1 gives ½.
//
//	round 3: 1 + √(2 log 3) + 4.366 = 6.848 against 6.348: arm 0
//	round 4: 1 + √(2 log 4/2) + 2.183 = 4.360 against 0.5 + √(2 log 4) + 4.366 = 6.531: arm 1
//	round 5: 1 + √log 5 + 2.183 = 4.452 against 0.5 + 3.452 = 3.952: arm 0
//	round 6: 1 + √(2 log 6/3) + 1.455 = 3.548 against 0.5 + √log 6 + 2.183 = 4.022: arm 1
//	round 7: 1 + √(2 log 7/3) + 1.455 = 3.594 against 0.5 + √(2 log 7/3) + 1.455: arm 0
//	round 8: 1 + √(2 log 8/4) + 1.092 = 3.111 against 0.5 + √(2 log 8/3) + 1.455 = 3.133: arm 1
func TestDPUCBCounterByHand(t *testing.T) {
	p, err := NewDPUCBCounter(2, 8, privacy.KAry{Scale: 0.5, Base: 3, Horizon: 8}, 0.5)
	check(t, err)
	tab := table{reward: [][]float64{{1, 1, 1, 1, 1, 1, 1, 1}, {.5, .5, .5, .5, .5, .5, .5, .5}},
		noise: [][]float64{make([]float64, 8), make([]float64, 8)}}
	got := playTable(t, p, tab, privacy.Tail{Sigma: 1, H: 0.5}, 8)
	same(t, "dp-ucb", got, []int{0, 1, 0, 1, 0, 1, 0, 1})
}

func TestDPUCBKAry(t *testing.T) {
	p, err := NewDPUCBKAry(5, 1_000_000, 1, 1e-6)
	check(t, err)
	m, ok := p.Mechanism().(privacy.KAry)
	if !ok || !m.Loss().Within(privacy.Pure{Epsilon: 1}) || m.Loss().Within(privacy.Pure{Epsilon: 0.999}) {
		t.Fatalf("%v costs %v", p.Mechanism(), p.Mechanism().Loss())
	}
	x := math.Log(5e12)
	w := tailWidth(m.Tail(), x)
	if math.Abs(w-489.09) > 0.01 {
		t.Errorf("%v: w is %v", m, w)
	}
	for k := 3; k < 200; k += 2 {
		if other := tailWidth(privacy.NewKAry(1, k, 1_000_000).Tail(), x); other < w {
			t.Errorf("base %d has width %v, the one taken, %d, %v", k, other, m.Base, w)
		}
	}
	source, err := NewDPUCB(5, 1_000_000, 1, 1e-6)
	check(t, err)
	if math.Abs(source.gamma-6082.26) > 0.01 {
		t.Errorf("Γ is %v", source.gamma)
	}
	free, err := NewDPUCBKAry(5, 1000, math.Inf(1), 0.1)
	check(t, err)
	if !free.Mechanism().Loss().Infinite() {
		t.Errorf("ε = ∞ costs %v", free.Mechanism().Loss())
	}
}

// Bad parameters, and the twin that is not continual: a policy of running sums on noise that is
// drawn again for each would be charged for each.
func TestBadCounters(t *testing.T) {
	good := privacy.KAry{Scale: 1, Base: 3, Horizon: 100}
	for _, c := range []struct {
		arms, horizon int
		m             privacy.Mechanism
		beta          float64
		mention       string
	}{
		{1, 100, good, 0.1, "arms is 1"},
		{5, 4, good, 0.1, "horizon is 4"},
		{2, 100, good, 1, "beta is 1"},
		{2, 100, nil, 0.1, "counter is missing"},
		{2, 100, privacy.Laplace{Scale: 1}, 0.1, "counter is laplace"},
		{2, 100, privacy.KAry{Scale: 1, Base: 2, Horizon: 100}, 0.1, "base is 2"},
	} {
		if _, err := NewDPUCBCounter(c.arms, c.horizon, c.m, c.beta); err == nil ||
			!strings.Contains(err.Error(), c.mention) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := NewDPUCBKAry(2, 100, math.NaN(), 0.1); err == nil {
		t.Error("ε is NaN: no error")
	}
}
