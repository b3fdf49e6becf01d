package audit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

func enumerated(t *testing.T, f Finite) *Exact {
	t.Helper()
	e, err := Enumerate(f)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The tables of the specification, to all printed digits.
func TestCounterExamples(t *testing.T) {
	e := enumerated(t, Strictness())
	for _, c := range []struct {
		m                Model
		delta, epsilon   float64
		delta98          float64
		digits, digitsAt float64
	}{
		{View, 0.168783, 0.943628, 0.166667, 5e-7, 5e-7},
		{Table, 0.177684, 0.983978, 0.170913, 5e-7, 5e-7},
		{Continual, 0.212633, 1.069730, 0.202425, 5e-7, 5e-7},
		{Interactive, 6. / 7, math.Inf(1), 6. / 7, 1e-12, 0},
	} {
		if d, err := e.Delta(c.m, 0.95); err != nil || math.Abs(d-c.delta) > c.digits {
			t.Errorf("%v: δ(0.95) = %.9f, %v, want %v", c.m, d, err, c.delta)
		}
		if d, err := e.Delta(c.m, 0.98); err != nil || math.Abs(d-c.delta98) > c.digits {
			t.Errorf("%v: δ(0.98) = %.9f, %v, want %v", c.m, d, err, c.delta98)
		}
		if x, err := e.Epsilon(c.m, 0.17); err != nil || x != c.epsilon && math.Abs(x-c.epsilon) > c.digitsAt {
			t.Errorf("%v: ε(0.17) = %.9f, %v, want %v", c.m, x, err, c.epsilon)
		}
		if x, err := e.Epsilon(c.m, 0); err != nil || !math.IsInf(x, 1) {
			t.Errorf("%v: ε(0) = %v, %v, want +Inf", c.m, x, err)
		}
		if x, err := e.Rho(c.m); err != nil || !math.IsInf(x, 1) {
			t.Errorf("%v: ρ = %v, %v, want +Inf", c.m, x, err)
		}
	}
	e = enumerated(t, Separation())
	for m, want := range map[Model]float64{Interactive: 0.45, Table: 0.44755, Continual: 0.55939} {
		if d, err := e.Delta(m, 0.5); err != nil || math.Abs(d-want) > 5e-6 {
			t.Errorf("%v: δ(0.5) = %.9f, %v, want %v", m, d, err, want)
		}
	}
}

// Without its certainties the policy separates View from Table in ρ too, and not in ε.
func TestCounterExampleOfRho(t *testing.T) {
	f := Strictness()
	sharp := f.Law
	f.Law = func(h []Step, p []float64) {
		sharp(h, p)
		p[0] = min(max(p[0], 0.05), 0.95)
		p[1] = 1 - p[0]
	}
	e := enumerated(t, f)
	for m, want := range map[Model]float64{View: 0.4557, Table: 0.4750} {
		if rho, err := e.Rho(m); err != nil || math.Abs(rho-want) > 5e-5 {
			t.Errorf("%v: ρ = %.6f, %v, want %v", m, rho, err, want)
		}
		if x, err := e.Epsilon(m, 0); err != nil || math.Abs(x-2.5539) > 5e-5 {
			t.Errorf("%v: ε = %.6f, %v, want 2.5539", m, x, err)
		}
	}
}

// randomFinite is a policy with random laws, some of them with a zero.
func randomFinite(r *rand.Rand, arms, rounds, rewards int, zeros bool) Finite {
	laws := map[string][]float64{}
	return Finite{Arms: arms, Rounds: rounds, Rewards: rewards, Law: func(h []Step, p []float64) {
		k := ""
		for _, s := range h {
			k += string(rune('a'+s.Action)) + string(rune('0'+s.Reward))
		}
		if laws[k] == nil {
			law, sum := make([]float64, arms), 0.0
			for a := range law {
				law[a] = r.ExpFloat64() + 0.05
				if zeros && a > 0 && r.IntN(8) == 0 {
					law[a] = 0
				}
				sum += law[a]
			}
			for a := range law {
				law[a] /= sum
			}
			laws[k] = law
		}
		copy(p, laws[k])
	}}
}

// listing is the definitions, word for word: every adversary is written down as a table, every
// output's probability is a product, and a set of outputs is the best one.
func listing(f Finite, m Model, do func(p, q []float64)) {
	outputs := [][]int{}
	o := make([]int, f.Rounds)
	for {
		outputs = append(outputs, append([]int{}, o...))
		if !count(o, f.Arms) {
			break
		}
	}
	prefixes := 0 // of 1..T−1 outputs: where an adversary has to decide
	for n, t := f.Arms, 1; t < f.Rounds; n, t = n*f.Arms, t+1 {
		prefixes += n
	}
	number := func(o []int) int { // of a prefix
		at, size := 0, f.Arms
		for range len(o) - 1 {
			at += size
			size *= f.Arms
		}
		v := 0
		for _, a := range o {
			v = v*f.Arms + a
		}
		return at + v
	}
	law := make([]float64, f.Arms)
	chance := func(o []int, played func(prefix []int) int, reward func(prefix []int, q int) int) float64 {
		h, p := []Step{}, 1.0
		for t, a := range o {
			f.Law(h, law)
			p *= law[a]
			q := played(o[:t+1])
			r := 0
			if t < f.Rounds-1 {
				r = reward(o[:t+1], q)
			}
			h = append(h, Step{q, r})
		}
		return p
	}
	self := func(prefix []int) int { return prefix[len(prefix)-1] }
	p, q := make([]float64, len(outputs)), make([]float64, len(outputs))
	pair := func(played func([]int) int, x, y func([]int, int) int) {
		for i, o := range outputs {
			p[i], q[i] = chance(o, played, x), chance(o, played, y)
		}
		do(p, q)
	}
	e := Exact{arms: f.Arms, rounds: f.Rounds, rewards: f.Rewards}
	switch m {
	case View:
		e.tables(1, func(x, y [][]int) {
			pair(self, func(o []int, _ int) int {
				return x[len(o)-1][0]
			}, func(o []int, _ int) int { return y[len(o)-1][0] })
		})
	case Table:
		e.tables(f.Arms, func(x, y [][]int) {
			pair(self, func(o []int, q int) int {
				return x[len(o)-1][q]
			}, func(o []int, q int) int { return y[len(o)-1][q] })
		})
	case Interactive:
		b := make([]int, prefixes)
		for {
			e.tables(f.Arms, func(x, y [][]int) {
				pair(func(o []int) int {
					if len(o) == f.Rounds {
						return 0
					}
					return b[number(o)]
				}, func(o []int, q int) int {
					return x[len(o)-1][q]
				}, func(o []int, q int) int { return y[len(o)-1][q] })
			})
			if !count(b, f.Arms) {
				return
			}
		}
	case Continual: // two trees of rewards that differ at one depth [Azize 2024, Remark 3.11]
		left := make([]int, prefixes)
		for {
			for at, size, from := 0, f.Arms, 0; at < f.Rounds-1; at, size, from = at+1, size*f.Arms, from+size {
				right := append([]int{}, left...)
				clear(right[from : from+size])
				for {
					pair(self, func(o []int, _ int) int {
						return left[number(o)]
					}, func(o []int, _ int) int { return right[number(o)] })
					if !count(right[from:from+size], f.Rewards) {
						break
					}
				}
			}
			if !count(left, f.Rewards) {
				return
			}
		}
	}
}

func TestEnumerationAgainstTheDefinitions(t *testing.T) {
	testkit.OneGoroutine(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5 {
		f := randomFinite(r, 2, 3, 2, i%2 == 1)
		if i >= 4 {
			f = randomFinite(r, 3, 2, 3, i%2 == 1)
		}
		e := enumerated(t, f)
		for _, m := range Models() {
			for _, epsilon := range []float64{0, 0.3, 1.2} {
				want := 0.0
				listing(f, m, func(p, q []float64) {
					sum := 0.0
					for i := range p {
						sum += max(0, p[i]-math.Exp(epsilon)*q[i])
					}
					want = max(want, sum)
				})
				if got, err := e.Delta(m, epsilon); err != nil || math.Abs(got-want) > 1e-12 {
					t.Fatalf("policy %d, %v: δ(%v) = %v, %v, want %v", i, m, epsilon, got, err, want)
				}
			}
			var pure, rho float64
			listing(f, m, func(p, q []float64) {
				for i := range p {
					if p[i] > 0 {
						pure = max(pure, math.Log(p[i]/q[i]))
					}
				}
				for _, alpha := range []float64{1.001, 1.1, 1.5, 2, 4, 16} {
					sum := 0.0
					for i := range p {
						if p[i] > 0 {
							sum += p[i] * math.Pow(p[i]/q[i], alpha-1)
						}
					}
					rho = max(rho, math.Log(sum)/(alpha-1)/alpha)
				}
			})
			if got, err := e.Epsilon(m, 0); err != nil || got != pure && math.Abs(got-pure) > 1e-12 {
				t.Fatalf("policy %d, %v: ε = %v, %v, want %v", i, m, got, err, pure)
			}
			got, err := e.Rho(m)
			if err != nil || got < rho-1e-9 || math.IsInf(got, 1) != math.IsInf(pure, 1) ||
				got > pure*pure/2+1e-9 {
				t.Fatalf("policy %d, %v: ρ = %v, %v, want at least %v and at most ε²/2 = %v", i, m,
					got, err, rho, pure*pure/2)
			}
		}
	}
}

// The arrows that are proved: Interactive ⇒ Table ⇒ View, Continual ⇒ Table, all but Interactive
// the same for pure DP, and View ⇒ Table at a price.
func TestArrowsBetweenModels(t *testing.T) {
	testkit.OneGoroutine(t)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 24 {
		e := enumerated(t, randomFinite(r, 2, 3, 2, i%3 == 0))
		var pure, rho, delta [4]float64
		for _, m := range Models() {
			pure[m], _ = e.Epsilon(m, 0)
			rho[m], _ = e.Rho(m)
			delta[m], _ = e.Delta(m, 0.4)
		}
		for _, arrow := range [][2]Model{{Interactive, Table}, {Table, View}, {Continual, Table}} {
			a, b := arrow[0], arrow[1]
			if pure[a] < pure[b]-1e-12 || rho[a] < rho[b]-1e-9 || delta[a] < delta[b]-1e-12 {
				t.Errorf("policy %d: %v does not imply %v: ε %v, ρ %v, δ %v", i, a, b, pure, rho, delta)
			}
		}
		if pure[View] != pure[Table] && math.Abs(pure[View]-pure[Table]) > 1e-12 ||
			pure[View] != pure[Continual] && math.Abs(pure[View]-pure[Continual]) > 1e-12 {
			t.Errorf("policy %d: ε differs between view, table and continual: %v", i, pure)
		}
		if _, most, err := TableFromView(0.4, delta[View], 2, 3); err != nil || delta[Table] > most+1e-12 {
			t.Errorf("policy %d: δ under table is %v, above %v, %v", i, delta[Table], most, err)
		}
	}
}

// Randomised response on the first reward: P(a₂ = r₁) = e^ε/(1+e^ε).
func TestEnumerationOfRandomisedResponse(t *testing.T) {
	const epsilon = 1.5
	e := enumerated(t, Finite{Arms: 2, Rounds: 2, Rewards: 2, Law: func(h []Step, p []float64) {
		p[0], p[1] = 1, 0
		if len(h) == 1 {
			keep := math.Exp(epsilon) / (1 + math.Exp(epsilon))
			p[h[0].Reward], p[1-h[0].Reward] = keep, 1-keep
		}
	}})
	rho := epsilon * math.Tanh(epsilon/2) // D_α/α is largest at α → 1, and KL is this
	for _, m := range Models() {
		if x, err := e.Epsilon(m, 0); err != nil || math.Abs(x-epsilon) > 1e-12 {
			t.Errorf("%v: ε = %v, %v, want %v", m, x, err, epsilon)
		}
		delta := (math.Exp(epsilon) - math.Exp(0.5)) / (1 + math.Exp(epsilon))
		if x, err := e.Delta(m, 0.5); err != nil || math.Abs(x-delta) > 1e-14 {
			t.Errorf("%v: δ(0.5) = %v, %v, want %v", m, x, err, delta)
		}
		if x, err := e.Epsilon(m, delta); err != nil || math.Abs(x-0.5) > 1e-11 {
			t.Errorf("%v: ε(%v) = %v, %v, want 0.5", m, delta, x, err)
		}
		if x, err := e.Rho(m); err != nil || math.Abs(x-rho) > 1e-8 {
			t.Errorf("%v: ρ = %v, %v, want %v", m, x, err, rho)
		}
	}
}

func TestEnumerationRefusesBadInput(t *testing.T) {
	good := Strictness()
	for name, f := range map[string]Finite{
		"arms":    {Arms: 1, Rounds: 3, Rewards: 2, Law: good.Law},
		"rounds":  {Arms: 2, Rounds: 0, Rewards: 2, Law: good.Law},
		"rewards": {Arms: 2, Rounds: 3, Rewards: 1, Law: good.Law},
		"law":     {Arms: 2, Rounds: 3, Rewards: 2},
		"size":    {Arms: 4, Rounds: 20, Rewards: 2, Law: good.Law},
		"nan":     {Arms: 2, Rounds: 1, Rewards: 2, Law: func(_ []Step, p []float64) { p[0] = math.NaN() }},
		"sum":     {Arms: 2, Rounds: 1, Rewards: 2, Law: func(_ []Step, p []float64) { p[0] = 0.5 }},
	} {
		if _, err := Enumerate(f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	e := enumerated(t, good)
	if _, err := e.Delta(View, math.NaN()); err == nil {
		t.Error("epsilon NaN: no error")
	}
	if _, err := e.Epsilon(View, 1); err == nil {
		t.Error("delta 1: no error")
	}
	if _, err := e.Rho(Model(9)); err == nil {
		t.Error("model 9: no error")
	}
	big := enumerated(t, randomFinite(rand.New(rand.NewPCG(5, 6)), 3, 5, 2, false))
	if _, err := big.Delta(Interactive, 1); err == nil {
		t.Error("too large: no error")
	}
	if _, _, err := TableFromView(1, 1, 2, 3); err == nil {
		t.Error("conversion with delta 1: no error")
	}
}
