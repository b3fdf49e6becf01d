package linear_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

func jdpInstruments(t testing.TB, dim, arms int, b privacy.Budget, o linear.InstrumentOptions) *linear.JDPInstruments {
	t.Helper()
	p, err := linear.NewJDPInstruments(dim, arms, b, o)
	must(t, err)
	return p
}

// Two segments by hand. The first, of four rounds, plays the largest component by turns: the second action for
// component 0, the first for component 1. It releases y = (2, 0). M = 2I, b = 2,
// V = (1 + 3b² + 0.6²·tr H⁻¹)I = 13.36I for H = 2I, H becomes 2 + 4/13.36 = 30.72/13.36, and
// θ̂ = (2/13.36)·2/(30.72/13.36) = 25/192. Then u = (1, 0), the instrument of (0.6, 0.8) is (0, 1), and what is
// predicted is 0.6·25/192. Segments end after 4, 6, 9 and 14 rounds.
func TestJDPInstrumentsByHand(t *testing.T) {
	p := jdpInstruments(t, 2, 2, privacy.Pure{Epsilon: 1}, linear.InstrumentOptions{First: 4, Growth: 1.5})
	learn := func(y ...float64) {
		r, err := privacy.NewLedger().ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: 4, Value: y})
		must(t, err)
		p.Learn(r)
	}
	actions, z := []float64{0, 0.8, -0.9, 0}, make([]float64, 2)
	for i := range 4 {
		choice := p.Choose(actions)
		if want := 1 - i%2; choice.Action != want || choice.Slot != 0 {
			t.Fatalf("round %d plays %d, must play %d", i, choice.Action, want)
		}
		a := actions[2*choice.Action:][:2]
		predicted, width := p.Instrument(z, a)
		if length := math.Hypot(a[0], a[1]); predicted != 0 || width != 1 || z[0] != a[0]/length || z[1] != a[1]/length {
			t.Errorf("round %d: instrument %v, %v of width %v", i, z, predicted, width)
		}
	}
	learn(2, 0)
	theta, _ := p.Estimate()
	if math.Abs(theta[0]-25./192) > 1e-12 || theta[1] != 0 {
		t.Fatalf("the estimate is %v, must be 25/192 and 0", theta)
	}
	for _, x := range []struct {
		a, z      []float64
		predicted float64
	}{
		{[]float64{0.6, 0.8}, []float64{0, 1}, 0.6 * 25 / 192},
		{[]float64{-1, 0}, []float64{0, 0}, -25. / 192},
		{[]float64{1, 1e-160}, []float64{0, 0}, 25. / 192}, // its square has lost digits
		{[]float64{0.5, -1e-90}, []float64{0, -1}, 0.5 * 25 / 192},
		{[]float64{-6, 0.1}, []float64{0, 1}, -0.5}, // longer than any, to be cut
	} {
		predicted, width := p.Instrument(z, x.a)
		if math.Abs(predicted-x.predicted) > 1e-12 || width != 1.5 || z[0] != x.z[0] || math.Abs(z[1]-x.z[1]) > 1e-12 {
			t.Errorf("%v: instrument %v, %v of width %v; must be %v, %v, 1.5", x.a, z, predicted, width, x.z, x.predicted)
		}
	}
	for n, want := 4, []int{6, 9, 14}; len(want) > 0; n++ {
		if due := p.Due() == 0; due != (n == want[0]) {
			t.Fatalf("after %d rounds a release is due: %v", n, due)
		} else if due {
			learn(0, 0)
			want = want[1:]
		}
		p.Choose(actions)
	}
}

// The filter, what is played and the instruments against dense matrices by the printed formulas, from the releases
// alone, with noise, to Gram matrices and beyond. κ is the closed form for ℝ³, where a coordinate is uniform:
// 2k·B(k + ½, 3/2), to which the policy's sum is near. All of it costs one budget.
func TestJDPInstrumentsIsItsFormulas(t *testing.T) {
	const d, arms, horizon, bonus, epsilon = 3, 5, 1500, 0.7, 2.0
	rng := rand.New(rand.NewPCG(7, 8))
	p := jdpInstruments(t, d, arms, privacy.Pure{Epsilon: epsilon}, linear.InstrumentOptions{Growth: 1.6, Bonus: bonus})
	c := curate(t, p, d, 3)
	kappa := 2 * arms * mathext.Beta(arms+0.5, 1.5)
	variance := (d*(d+3)/2 + 1) * 4.5 / epsilon / epsilon
	h, theta, u := mat.NewDense(d, d, nil), mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
	for i := range d {
		h.Set(i, i, d)
	}
	inverse := func(m mat.Matrix) *mat.Dense {
		var x mat.Dense
		must(t, x.Inverse(m))
		return &x
	}
	// learn is the filter of M, V⁻¹ and y.
	learn := func(m, v mat.Matrix, y mat.Vector) {
		var mv, mvm mat.Dense
		mv.Mul(m.T(), v)
		mvm.Mul(&mv, m)
		h.Add(h, &mvm)
		var move, step mat.VecDense
		move.MulVec(&mv, y)
		step.MulVec(inverse(h), &move)
		theta.AddVec(theta, &step)
	}
	start, end, segments, grams := 0, int(math.Ceil(8*d*(1+1/epsilon))), 0, 0
	z := make([]float64, d)
	for n := range horizon {
		if due := p.Due() == 0; due != (n == end) {
			t.Fatalf("after %d rounds a release is due: %v", n, due)
		} else if due {
			kind := p.Mechanism()
			r, err := c.Release(0)
			must(t, err)
			segments++
			switch m := kind.(type) {
			case privacy.VectorLaplace:
				along, k, width := float64(d-1), kappa, 1.5
				if start == 0 {
					along, k, width = d, 1, 1
				}
				across, v, one := mat.NewDense(d, d, nil), mat.NewDense(d, d, nil), float64(r.N())*k/along
				b := width * 2 / epsilon
				each := float64(r.N())/2/along + (d+1)*b*b + 0.09*one*one*mat.Trace(inverse(h))
				y := mat.NewVecDense(d, nil)
				for i := range d {
					y.SetVec(i, width*r.At(i))
					for j := range d {
						x := -u.AtVec(i) * u.AtVec(j)
						if i == j {
							x++
						}
						across.Set(i, j, one*x)
						v.Set(i, j, x/each)
					}
				}
				learn(across, v, y)
			case privacy.GramLaplace:
				grams++
				g, y, at := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil), 0
				for i := range d {
					for j := i; j < d; j++ {
						g.SetSym(i, j, r.At(at))
						at++
					}
					y.SetVec(i, r.At(at))
					at++
				}
				var e mat.EigenSym
				var q, positive mat.Dense
				if !e.Factorize(g, true) || r.Len() != at {
					t.Fatal("no eigenvalues, or another length")
				}
				e.VectorsTo(&q)
				values := e.Values(nil)
				for i := range values {
					values[i] = math.Max(0, values[i])
				}
				positive.Product(&q, mat.NewDiagDense(d, values), q.T())
				noise := variance * (1 + mat.Dot(theta, theta)/2)
				v := mat.NewDense(d, d, nil)
				v.Scale(0.5, &positive)
				for i := range d {
					v.Set(i, i, v.At(i, i)+noise)
				}
				var known mat.VecDense
				known.MulVec(&positive, theta)
				y.SubVec(y, &known)
				learn(&positive, inverse(v), y)
			default:
				t.Fatalf("the mechanism is %v", m)
			}
			p.Learn(r)
			start, end = n, n+int(math.Ceil(float64(n)*(1.6-1)))
			if _, now := p.Mechanism().(privacy.GramLaplace); now != (float64(n) >= 4*d*variance) {
				t.Fatalf("after %d rounds Gram matrices are released: %v", n, now)
			} else if now != (grams > 0) {
				h.Scale(0.1, h)
			}
			if p.Mechanism() != kind {
				c = again(t, p, d, c)
			}
			got, _ := p.Estimate()
			for i, x := range got {
				if math.Abs(x-theta.AtVec(i)) > 1e-6 {
					t.Fatalf("after %d rounds component %d is %v, must be %v", n, i, x, theta.AtVec(i))
				}
				theta.SetVec(i, x) // to go on from there
			}
			u.ScaleVec(1/mat.Norm(theta, 2), theta)
		}
		actions, best, top := make([]float64, arms*d), 0, math.Inf(-1)
		back := inverse(h)
		for k := range arms {
			a := mat.NewVecDense(d, actions[k*d:][:d])
			for i := range d {
				a.SetVec(i, rng.NormFloat64())
			}
			a.ScaleVec(1/mat.Norm(a, 2), a)
			score := math.Abs(a.AtVec(n % d))
			if start > 0 {
				score = mat.Dot(a, theta) + bonus*math.Sqrt(mat.Inner(a, back, a))
			}
			if score > top {
				best, top = k, score
			}
		}
		choice := p.Choose(actions)
		if choice.Action != best {
			t.Fatalf("round %d plays %d, must play %d", n, choice.Action, best)
		}
		a := mat.NewVecDense(d, actions[best*d:][:d])
		var want mat.VecDense
		want.CloneFromVec(a)
		predicted, width := 0.0, 1.0
		if _, ok := p.Mechanism().(privacy.VectorLaplace); ok {
			want.AddScaledVec(a, -mat.Dot(a, u), u)
			want.ScaleVec(1/mat.Norm(&want, 2), &want)
			if start > 0 {
				predicted, width = math.Max(-0.5, math.Min(0.5, mat.Dot(a, theta))), 1.5
			}
		}
		gotP, gotW := p.Instrument(z, a.RawVector().Data)
		if math.Abs(gotP-predicted) > 1e-12 || gotW != width {
			t.Fatalf("round %d predicts %v of width %v, must %v, %v", n, gotP, gotW, predicted, width)
		}
		for i, x := range z {
			if math.Abs(x-want.AtVec(i)) > 1e-12 {
				t.Fatalf("round %d has the instrument %v, must have %v", n, z, want.RawVector().Data)
			}
		}
		reward := math.Copysign(1, 0.9*a.AtVec(0)-0.3*a.AtVec(2)+rng.Float64()*2-1)
		must(t, c.Add(0, z, (reward-gotP)/gotW))
	}
	if segments < 7 || grams < 3 {
		t.Errorf("%d segments, %d of Gram matrices", segments, grams)
	}
	if got := c.Ledger().Total().Pure(); !(got <= epsilon*(1+1e-12) && got > 0.999*epsilon) {
		t.Errorf("all of it has cost ε = %v, must be %v", got, epsilon)
	}
}

func TestJDPInstrumentsErrors(t *testing.T) {
	nan := math.NaN()
	one := privacy.Pure{Epsilon: 1}
	for _, c := range []struct {
		dim, arms int
		b         privacy.Budget
		o         linear.InstrumentOptions
		says      string
	}{
		{1, 2, one, linear.InstrumentOptions{Growth: 2}, "dim is 1, must be between 2"},
		{1 << 20, 2, one, linear.InstrumentOptions{Growth: 2}, "dim is 1048576, must be between 2"},
		{2, 0, one, linear.InstrumentOptions{Growth: 2}, "arms is 0, must be at least 1"},
		{2, 2, one, linear.InstrumentOptions{Growth: 2, First: -1}, "first is -1, must be from 0"},
		{2, 2, one, linear.InstrumentOptions{Growth: 1}, "growth is 1, must be from 1.01 to 100"},
		{2, 2, one, linear.InstrumentOptions{Growth: nan}, "growth is NaN, must be from 1.01 to 100"},
		{2, 2, one, linear.InstrumentOptions{Growth: 101}, "growth is 101, must be from 1.01 to 100"},
		{2, 2, one, linear.InstrumentOptions{Growth: 2, Bonus: nan}, "bonus is NaN, must be from 0 to 10"},
		{2, 2, one, linear.InstrumentOptions{Growth: 2, Bonus: -1}, "bonus is -1, must be from 0 to 10"},
		{2, 2, privacy.Pure{Epsilon: 1e-9}, linear.InstrumentOptions{Growth: 2}, "its noise is too large to learn"},
		{2, 2, privacy.Pure{Epsilon: -1}, linear.InstrumentOptions{Growth: 2}, "epsilon is -1"},
	} {
		_, err := linear.NewJDPInstruments(c.dim, c.arms, c.b, c.o)
		if err == nil || !strings.HasPrefix(err.Error(), "jdp-instruments: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v does not say %q", err, c.says)
		}
	}
}
