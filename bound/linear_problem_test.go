package bound

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// Three arms in the plane, e₁, e₂ and (1−γ, κγ), θ = e₁ (Lattimore and Szepesvári 2020, Example
// 25.3): next to e₁ only the second coordinate is unknown, e₂ buys it at 1, and the third arm wants
// H ≥ 2κ². So c = 2κ², not 2/γ + 2, for κ ≥ 1.
func TestLinearProblemExample(t *testing.T) {
	for _, kappa := range []float64{1, 3} {
		actions := [][]float64{{1, 0}, {0, 1}, {0.99, 0.01 * kappa}}
		c, err := LinearProblem(actions, []float64{1, 0}, 1, math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		close(t, "c", c.Value, 2*kappa*kappa, 2e-6)
		close(t, "low", c.Low, 2*kappa*kappa, 2e-6)
		// σ = 2 asks for four times the plays.
		four, err := LinearProblem(actions, []float64{1, 0}, 2, math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		close(t, "σ = 2", four.Value, 8*kappa*kappa, 2e-6)
	}
	// On a line one play of the best says all.
	c, err := LinearProblem([][]float64{{1}, {0.5}}, []float64{1}, 1, 0.1)
	if err != nil || c.Value != 0 {
		t.Errorf("on a line: %v, %v", c, err)
	}
}

func drawActions(r *rand.Rand, k, d int) [][]float64 {
	out := make([][]float64, k)
	for i := range out {
		out[i] = make([]float64, d)
		n := 0.0
		for j := range out[i] {
			out[i][j] = r.NormFloat64()
			n += out[i][j] * out[i][j]
		}
		for j := range out[i] {
			out[i][j] /= math.Sqrt(n)
		}
	}
	return out
}

func TestLinearProblemIsSolved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(2, 4).Draw(t, "d")
		k := rapid.IntRange(d, 9).Draw(t, "k")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		actions, theta := drawActions(r, k, d), drawActions(r, 1, d)[0]
		epsilon := math.Exp(rapid.Float64Range(-5, 2).Draw(t, "log epsilon"))
		c, err := LinearProblem(actions, theta, 1, epsilon)
		if errors.Is(err, ErrTie) || errors.Is(err, ErrSpan) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !(c.Low <= c.Value*(1+1e-12) && c.Value-c.Low <= 1e-3*c.Value) {
			t.Fatalf("from %v to %v", c.Low, c.Value)
		}
		best := 0
		for a := range actions {
			if dot(actions[a], theta) > dot(actions[best], theta) {
				best = a
			}
		}
		rho, err := basisNorms(actions, best)
		if err != nil {
			t.Fatal(err)
		}
		cost := func(alpha []float64) (s float64) {
			for a, v := range actions {
				s += alpha[a] * (dot(actions[best], theta) - dot(v, theta))
			}
			return s
		}
		// worst is the largest ‖a‖²/m as the share of the best grows without bound: what is along
		// a* is then known, and H acts on what is left of each action. It is 1 where the allocation
		// just will do. (A large share instead, with all of H, is a matter of rounding where gaps
		// are tiny or actions nearly along a*.)
		left := make([][]float64, k)
		for a, v := range actions {
			along := dot(v, actions[best]) / norm2(actions[best])
			for i, x := range v {
				left[a] = append(left[a], x-along*actions[best][i])
			}
		}
		worst := func(alpha []float64) float64 {
			h := mat.NewSymDense(d, nil)
			// of no matter to what is orthogonal to it
			h.SymRankOne(h, cost(alpha), mat.NewVecDense(d, actions[best]))
			for a, v := range left {
				if a != best {
					h.SymRankOne(h, alpha[a], mat.NewVecDense(d, v))
				}
			}
			var f mat.Cholesky
			if !f.Factorize(h) {
				return math.Inf(1)
			}
			top := 0.0
			for a, v := range left {
				if gap := dot(actions[best], theta) - dot(actions[a], theta); gap > 0 {
					var x mat.VecDense
					if err := f.SolveVecTo(&x, mat.NewVecDense(d, v)); err != nil && !hasSolution(err) {
						return math.Inf(1)
					}
					top = max(top, mat.Dot(&x, mat.NewVecDense(d, v))/min(gap*gap/2, epsilon*gap*rho[a]/2))
				}
			}
			return top
		}
		if w := worst(c.Plays); math.Abs(w-1) > 1e-3 {
			t.Fatalf("the allocation has ‖a‖²/m up to %v", w)
		}
		if v := cost(c.Plays); math.Abs(v-c.Value) > 1e-9*c.Value {
			t.Fatalf("the allocation costs %v, not %v", v, c.Value)
		}
		for range 20 {
			alpha := make([]float64, k)
			for a := range alpha {
				alpha[a] = (c.Plays[a] + 0.01*c.Value) * math.Exp(0.7*r.NormFloat64())
			}
			if v := cost(alpha) * worst(alpha); v < c.Low*(1-1e-5) { // scaled to what just will do
				t.Fatalf("another allocation costs %v, below %v", v, c.Low)
			}
		}
		// Less privacy, no more regret; none, the bound without.
		free, err := LinearProblem(actions, theta, 1, math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		if free.Low > c.Value*(1+1e-9) {
			t.Fatalf("%v without privacy, %v with", free.Low, c.Value)
		}
	})
}

// What the maximum over bases is for: Σ N_j|a_jᵀG⁻¹(a−a*)| ≤ ρ_a(A) for every N. The printed Σ_j
// |a_jᵀ(a−a*)|/‖a_j‖² fails on the way.
func TestBasisNormsBoundTheLemma(t *testing.T) {
	failed, cases := 0, 0
	property := func(t *rapid.T) {
		d := rapid.IntRange(2, 4).Draw(t, "d")
		k := rapid.IntRange(d, 8).Draw(t, "k")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 8))
		actions := drawActions(r, k, d)
		rho, err := basisNorms(actions, 0)
		if err != nil {
			t.Fatal(err)
		}
		g := mat.NewSymDense(d, nil)
		n := make([]float64, k)
		for j, v := range actions {
			n[j] = math.Exp(2 * r.NormFloat64())
			g.SymRankOne(g, n[j], mat.NewVecDense(d, v))
		}
		var f mat.Cholesky
		if !f.Factorize(g) || f.Cond() > 1e9 {
			t.Skip("singular")
		}
		for a := 1; a < k; a++ {
			x, printed := mat.NewVecDense(d, nil), 0.0
			x.SubVec(mat.NewVecDense(d, actions[a]), mat.NewVecDense(d, actions[0]))
			var u mat.VecDense
			if err := f.SolveVecTo(&u, x); err != nil {
				t.Skip(err)
			}
			got := 0.0
			for j, v := range actions {
				got += n[j] * math.Abs(mat.Dot(mat.NewVecDense(d, v), &u))
				printed += math.Abs(mat.Dot(mat.NewVecDense(d, v), x)) / norm2(v)
			}
			if got > rho[a]*(1+1e-6) {
				t.Fatalf("%v above %v", got, rho[a])
			}
			cases++
			if got > printed*(1+1e-9) {
				failed++
			}
		}
	}
	rapid.Check(t, property)
	// What is caught is no matter of luck: these draws are fixed.
	for seed := range 100 {
		rapid.Custom(func(t *rapid.T) bool { property(t); return true }).Example(seed)
	}
	if failed == 0 {
		t.Errorf("the printed constant held in all %d cases: is this test looking at it?", cases)
	}
	t.Logf("the printed constant failed in %d of %d cases", failed, cases)
}

// exactNorms is the maximum over bases in rational numbers.
func exactNorms(actions [][]float64, best int) []float64 {
	k, d := len(actions), len(actions[0])
	out := make([]float64, k)
	var visit func(from int, pick []int)
	visit = func(from int, pick []int) {
		if len(pick) < d {
			for a := from; a < k; a++ {
				visit(a+1, append(pick[:len(pick):len(pick)], a))
			}
			return
		}
		rows := make([][]*big.Rat, d) // [A_B | a − a* for all a]
		for i := range rows {
			for _, a := range pick {
				rows[i] = append(rows[i], new(big.Rat).SetFloat64(actions[a][i]))
			}
			for a := range k {
				x := new(big.Rat).SetFloat64(actions[a][i])
				rows[i] = append(rows[i], x.Sub(x, new(big.Rat).SetFloat64(actions[best][i])))
			}
		}
		for c := range d {
			p := slices.IndexFunc(rows[c:], func(row []*big.Rat) bool { return row[c].Sign() != 0 })
			if p < 0 {
				return
			}
			rows[c], rows[c+p] = rows[c+p], rows[c]
			inverse := new(big.Rat).Inv(rows[c][c])
			for j := range rows[c] {
				rows[c][j].Mul(rows[c][j], inverse)
			}
			for i := range rows {
				if f := new(big.Rat).Set(rows[i][c]); i != c && f.Sign() != 0 {
					for j := range rows[i] {
						rows[i][j].Sub(rows[i][j], new(big.Rat).Mul(f, rows[c][j]))
					}
				}
			}
		}
		for a := range k {
			sum := new(big.Rat)
			for i := range rows {
				sum.Add(sum, new(big.Rat).Abs(rows[i][d+a]))
			}
			x, _ := sum.Float64()
			out[a] = max(out[a], x)
		}
	}
	visit(0, nil)
	return out
}

// ρ is never below its exact value, or the lower bound would be too high: also where actions are
// nearly, or exactly, dependent.
func TestBasisNormsAreNotTooSmall(t *testing.T) {
	infinite, finite := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		d := 2 + r.IntN(2)
		k := d + 1 + r.IntN(3)
		actions := drawActions(r, k, d)
		switch seed % 4 {
		case 0: // nearly one of the others
			near := math.Pow(10, -(1 + 14*r.Float64()))
			for j := range actions[k-1] {
				actions[k-1][j] = actions[1][j] + near*actions[k-1][j]
			}
		case 1: // exactly along one of the others
			for j := range actions[k-1] {
				actions[k-1][j] = -0.5 * actions[1][j]
			}
		case 2: // small
			near := math.Pow(10, -(1 + 14*r.Float64()))
			for j := range actions[k-1] {
				actions[k-1][j] *= near
			}
		}
		got, err := basisNorms(actions, 0)
		if err != nil {
			t.Fatal(err)
		}
		for a, want := range exactNorms(actions, 0) {
			if !(got[a] >= want) {
				t.Fatalf("ρ of action %d is %v, below %v", a, got[a], want)
			}
			if a == 0 {
				continue
			}
			if math.IsInf(got[a], 1) {
				infinite++
			} else if finite++; got[a] > want*1.001+1e-12 {
				t.Fatalf("ρ of action %d is %v, far above %v", a, got[a], want)
			}
		}
	}
	if infinite < 50 || finite < 200 {
		t.Errorf("%d infinite, %d finite", infinite, finite)
	}
}

// What singular rests on, and what it says, against determinants in rational numbers: of dependent,
// nearly dependent and other vectors.
func TestSingular(t *testing.T) {
	for _, n := range belowPowers {
		if p := new(big.Int).SetUint64(1<<n[0] - n[1]); !p.ProbablyPrime(20) {
			t.Errorf("2^%d − %d is no prime", n[0], n[1])
		}
	}
	said := map[bool]int{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 10))
		d := 2 + r.IntN(5)
		rows := drawActions(r, d, d)
		switch seed % 4 {
		case 0: // of small integers, some of which are dependent
			for _, row := range rows {
				for j := range row {
					row[j] = float64(r.IntN(3) - 1)
				}
			}
		case 1: // a power of two times another
			for j := range rows[0] {
				rows[0][j] = rows[1][j] * -0x1p-9
			}
		case 2: // one bit off that
			for j := range rows[0] {
				rows[0][j] = rows[1][j] * 0x1p3
			}
			rows[0][0] = math.Nextafter(rows[0][0], 2)
		}
		pick, m := make([]int, d), make([][]*big.Rat, d)
		for i, row := range rows {
			pick[i] = i
			for _, x := range row {
				m[i] = append(m[i], new(big.Rat).SetFloat64(x))
			}
		}
		want := false
		for c := range d {
			p := slices.IndexFunc(m[c:], func(row []*big.Rat) bool { return row[c].Sign() != 0 })
			if want = p < 0; want {
				break
			}
			m[c], m[c+p] = m[c+p], m[c]
			for i := c + 1; i < d; i++ {
				f := new(big.Rat).Quo(m[i][c], m[c][c])
				for j := range d {
					m[i][j].Sub(m[i][j], new(big.Rat).Mul(f, m[c][j]))
				}
			}
		}
		said[want]++
		if got := singular(rows, pick); got != want {
			t.Fatalf("%v: %v", rows, got)
		}
	}
	if said[true] < 100 || said[false] < 100 {
		t.Errorf("%v", said)
	}
}

// An action that is nearly the best one makes a basis whose norms are large. Left out, the privacy
// constraint is too tight, and c(A,θ) 237 times too large.
func TestLinearProblemWithNearlyDependentActions(t *testing.T) {
	actions, theta := [][]float64{{1, 0}, {0.9, 1e-11}, {0.5, 0.5}}, []float64{1, 0}
	free, err := LinearProblem(actions, theta, 1, math.Inf(1))
	if err != nil {
		t.Fatal(err)
	}
	private, err := LinearProblem(actions, theta, 1, 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	if private.Low > free.Low*(1+1e-6) {
		t.Errorf("%v with privacy, %v without", private.Low, free.Low)
	}
}

func TestLinearProblemErrors(t *testing.T) {
	good := [][]float64{{1, 0}, {0, 1}}
	for _, c := range []struct {
		actions [][]float64
		theta   []float64
		sigma   float64
		epsilon float64
		want    error
	}{
		{good, nil, 1, 1, nil}, {good, []float64{1}, 1, 1, nil}, {good, []float64{1, 0}, 0, 1, nil},
		{good, []float64{1, 0}, 1, 0, nil},
		{good, []float64{1, 1}, 1, 1, ErrTie}, {[][]float64{{1, 0}, {0.5, 0}}, []float64{1, 0}, 1, 1, ErrSpan},
		{drawActions(rand.New(rand.NewPCG(1, 1)), mostActions+1, 2), []float64{1, 0}, 1, 1, ErrLarge},
		{drawActions(rand.New(rand.NewPCG(1, 1)), 60, 8), []float64{1, 0, 0, 0, 0, 0, 0, 0}, 1, 1, ErrLarge},
	} {
		_, err := LinearProblem(c.actions, c.theta, c.sigma, c.epsilon)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}
