package privacy_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sotto-dp/sotto/privacy"
)

// Scales of Laplace noise, worked by hand at budgets where no factor is 1.
func TestLaplaceScaleWorkedNumbers(t *testing.T) {
	for _, c := range []struct {
		b    privacy.Budget
		want float64
	}{
		{privacy.Pure{Epsilon: 0.25}, 4},
		{privacy.Approx{Epsilon: 0.2, Delta: 1e-6}, 5},
		{privacy.ZCDP{Rho: 0.02}, 5},                // 1/√0.04
		{privacy.Renyi{Alpha: 8, Epsilon: 0.25}, 4}, // √(8/0.5)
		// log(Φ(5)/Φ(−5)), to 40 digits elsewhere
		{privacy.GDP{Mu: 10}, 1 / 15.064998107337113},
		{privacy.GDP{Mu: 0.5}, 1 / 0.40007768940170446}, // log(Φ(¼)/Φ(−¼))
		{privacy.GDP{Mu: 8.4}, 1 / 11.224299303763003},  // log(Φ(4.2)/Φ(−4.2))
		// either side of where the formula changes, μ = 6√2
		{privacy.GDP{Mu: 8.485281374}, 1 / 11.413499176699847},
		{privacy.GDP{Mu: 8.485281375}, 1 / 11.413499178928584},
	} {
		got, err := privacy.LaplaceScale(c.b)
		if err != nil || math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%v: scale %.12g, %v; want %.12g (1/%.12g)", c.b, got, err, c.want, 1/got)
		}
	}
}

// Groups of k records, where neither k nor the budget is 1: kε, k²ρ, kμ, (kε, k·e^{(k−1)ε}·δ), and
// (α/2^c, 3^c·ε) for 2^c ≥ k.
func TestGroupWorkedNumbers(t *testing.T) {
	for _, c := range []struct {
		b    privacy.Budget
		k    int
		want privacy.Budget
	}{
		{privacy.Pure{Epsilon: 0.5}, 3, privacy.Pure{Epsilon: 1.5}},
		{privacy.ZCDP{Rho: 0.1}, 3, privacy.ZCDP{Rho: 0.9}},
		{privacy.GDP{Mu: 0.5}, 3, privacy.GDP{Mu: 1.5}},
		{privacy.Approx{Epsilon: 0.5, Delta: 1e-6}, 3, privacy.Approx{Epsilon: 1.5, Delta: 3e-6 * math.E}},
		{privacy.Renyi{Alpha: 16, Epsilon: 0.1}, 4, privacy.Renyi{Alpha: 4, Epsilon: 0.9}},
		{privacy.Renyi{Alpha: 16, Epsilon: 0.1}, 3, privacy.Renyi{Alpha: 4, Epsilon: 0.9}},
		// the smallest order that there is
		{privacy.Renyi{Alpha: 8, Epsilon: 0.1}, 4, privacy.Renyi{Alpha: 2, Epsilon: 0.9}},
		{privacy.Renyi{Alpha: 1.5, Epsilon: 0.1}, 1, privacy.Renyi{Alpha: 1.5, Epsilon: 0.1}},
		{privacy.Pure{Epsilon: 0.5}, 1, privacy.Pure{Epsilon: 0.5}},
	} {
		got, err := privacy.Group(c.b, c.k)
		if err != nil || !cmp.Equal(got, c.want, cmpopts.EquateApprox(1e-14, 0)) {
			t.Errorf("%d records of %v: %v, %v; want %v", c.k, c.b, got, err, c.want)
		}
	}
	if got, err := privacy.Group(privacy.Renyi{Alpha: 7.999, Epsilon: 0.1}, 4); err == nil {
		t.Errorf("order 7.999 for four records: %v", got)
	}
}

// Normal noise adds up by squares: 3 and 4 are 5.
func TestSumsOfGDP(t *testing.T) {
	got, err := privacy.Sequential(privacy.GDP{Mu: 3}, privacy.GDP{Mu: 4})
	if err != nil || !cmp.Equal(got, privacy.Budget(privacy.GDP{Mu: 5}), cmpopts.EquateApprox(1e-15, 0)) {
		t.Errorf("3 and 4 are %v, %v", got, err)
	}
	got, err = privacy.Parallel(privacy.GDP{Mu: 3}, privacy.GDP{Mu: 4})
	if err != nil || !cmp.Equal(got, privacy.Budget(privacy.GDP{Mu: 4}), cmpopts.EquateApprox(1e-15, 0)) {
		t.Errorf("3 beside 4 is %v, %v", got, err)
	}
}

// Whatever a batch may spend composes to no more than the total, checked by the composition itself
// at half of δ; else it is the even share. Where advanced composition stops paying, near ε =
// 4·log(2/δ), the check must be the right one.
func TestSharesOfBatchesCompose(t *testing.T) {
	shared, even := 0, 0
	for _, delta := range []float64{1e-6, 1e-3, 0.1} {
		for _, batches := range []int{1, 2, 130, 1000, 100_000} {
			for epsilon := 0.5; epsilon < 80; epsilon += 0.125 {
				total := privacy.Approx{Epsilon: epsilon, Delta: delta}
				got, err := privacy.PerBatch(total, batches)
				if err != nil {
					t.Fatal(err)
				}
				each := got.(privacy.Approx)
				n := float64(batches)
				share := epsilon / (2 * math.Sqrt(2*n*math.Log(2/delta)))
				all, err := privacy.Advanced(privacy.Approx{Epsilon: share, Delta: delta / (2 * n)},
					batches, delta/2)
				if want := epsilon / n; err == nil && share > want && all.Epsilon <= epsilon {
					shared++
					if math.Abs(each.Epsilon-share) > 1e-12*share ||
						math.Abs(each.Delta-delta/(2*n)) > 1e-12*delta {
						t.Errorf("%v in %d: %v, want ε = %v", total, batches, each, share)
					}
				} else {
					even++
					if math.Abs(each.Epsilon-want) > 1e-12*want || math.Abs(each.Delta-delta/n) > 1e-12*delta {
						t.Errorf("%v in %d: %v, want ε = %v", total, batches, each, want)
					}
				}
			}
		}
	}
	if shared < 500 || even < 500 {
		t.Errorf("%d shares, %d even: the cases show too little", shared, even)
	}
	got, err := privacy.PerBatch(privacy.Renyi{Alpha: 4, Epsilon: 0.6}, 3)
	if err != nil || !cmp.Equal(got, privacy.Budget(privacy.Renyi{Alpha: 4, Epsilon: 0.6 / 3}),
		cmpopts.EquateApprox(1e-15, 0)) {
		t.Errorf("a third of (4,0.6): %v, %v", got, err)
	}
	// One event, and a δ that simple composition uses up.
	if a, err := privacy.Advanced(privacy.Approx{Epsilon: 0.5, Delta: 1e-3}, 1, 1e-3); err != nil ||
		math.Abs(a.Delta-2e-3) > 1e-18 ||
		math.Abs(a.Epsilon-(0.5*math.Sqrt(2*math.Log(1000))+0.5*math.Expm1(0.5))) > 1e-12 {
		t.Errorf("one event: %v, %v", a, err)
	}
	if a, err := privacy.Repeated(privacy.Approx{Epsilon: 0.5, Delta: 0.25}, 2, 0.5); err != nil ||
		a != (privacy.Approx{Epsilon: 1, Delta: 0.5}) {
		t.Errorf("two events at δ = ½: %v, %v", a, err)
	}
	if a, err := privacy.Repeated(privacy.Approx{Epsilon: 0.5}, 1, 0.5); err != nil || a.Epsilon > 0.5 {
		t.Errorf("one pure event: %v, %v", a, err)
	}
}

// Rényi divergences from 40 digits elsewhere: never below the truth, and right to 10^-12 except
// where the comments allow the bound αε²/2.
func TestRenyiWorkedNumbers(t *testing.T) {
	for _, c := range []struct {
		what                  string
		got, want, above, eps float64
	}{
		{"laplace(0.009, 3)", privacy.LaplaceRenyi(0.009, 3), 0.00012112654897979671, 1e-12, 1e-15},
		{"laplace(0.02, 1.001)", privacy.LaplaceRenyi(0.02, 1.001), 0.00019887196691385947, 1e-10, 1e-15},
		{"laplace(2, 5)", privacy.LaplaceRenyi(2, 5), 1.8530533368204662, 1e-14, 1e-14},
		{"laplace(0.5, 2.5)", privacy.LaplaceRenyi(0.5, 2.5), 0.23871265883408402, 1e-14, 1e-14},
		{"laplace(0.0099, 1.005)", privacy.LaplaceRenyi(0.0099, 1.005), 4.9087897361202233e-5, 0.0034, 0},
		{"laplace(1e-5, 2)", privacy.LaplaceRenyi(1e-5, 2), 9.9999666664166708e-11, 1e-5, 0},
		{"pure(0.001, 4)", privacy.PureToRenyi(0.001, 4), 1.99999583334695e-6, 1e-5, 0},
		{"pure(0.5, 3)", privacy.PureToRenyi(0.5, 3), 0.30240637505622147, 1e-14, 1e-14},
		{"pure(2, 1.5)", privacy.PureToRenyi(2, 1.5), 1.7824438337496745, 1e-14, 1e-14},
	} {
		if !(c.got >= c.want*(1-c.eps)) || !(c.got <= c.want*(1+c.above)) {
			t.Errorf("%s = %.17g, want %.17g", c.what, c.got, c.want)
		}
	}
}

// The edges of the clones' price: of δ = 0 nothing is said, and a δ that ε = 0 has
// already costs nothing.
func TestClonesEpsilonAtItsEdges(t *testing.T) {
	if e := privacy.ClonesEpsilon(10, 1, 0); !math.IsInf(e, 1) {
		t.Errorf("δ = 0: %v", e)
	}
	for _, n := range []int{1, 10} {
		// δ(0) itself may round: a little more is enough, and it costs no more than the rounding.
		delta := privacy.ClonesDelta(n, 1, 0)
		if e := privacy.ClonesEpsilon(n, 1, delta*(1+2e-11)); e != 0 {
			t.Errorf("%d users, above δ(0): %v", n, e)
		}
		if e := privacy.ClonesEpsilon(n, 1, delta); !(e < 1e-10) {
			t.Errorf("%d users, δ(0): %v", n, e)
		}
	}
}

// Values that are not finite are refused where a slot's sums run on, on the short way too, and stay
// charged; after that the slot goes on.
func TestRunningSumsRefuseWhatIsNotFinite(t *testing.T) {
	tree := privacy.Tree{Scale: 8, Horizon: 64}
	one := func(n int, sum float64) *privacy.Values { return &privacy.Values{N: []int{n}, Sum: []float64{sum}} }
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		l := privacy.NewLedger()
		a := l.Account(tree)
		for slot, release := range []func(slot int, v *privacy.Values) (privacy.Released, error){
			func(slot int, v *privacy.Values) (privacy.Released, error) { return l.Release(slot, tree, v) },
			a.Release,
			func(slot int, v *privacy.Values) (privacy.Released, error) {
				return l.ReleaseAll([]int{slot}, tree, v)
			},
		} {
			if r, err := release(slot, one(1, 0.5)); err != nil || r.Sum(0) != 0.5 {
				t.Fatalf("way %d: %v", slot, err)
			}
			if r, err := release(slot, one(2, x)); !errors.Is(err, privacy.ErrValues) || r.Len() != 0 {
				t.Errorf("way %d: a sum of %v: %v, %v", slot, x, r, err)
			}
			if r, err := release(slot, one(3, 1.5)); err != nil || r.Sum(0) != 1.5 {
				t.Errorf("way %d, after %v: %v", slot, x, err)
			}
		}
		if got, want := l.Total().Pure(), tree.Loss().Pure(); got != want {
			t.Errorf("%v was charged, want %v", got, want)
		}
	}
}

// Released.Laplace is a promise about the law of the noise: one Laplace variate in each sum,
// continuous or discrete; and Noises about how many there are.
func TestReleasedLaplaceIsTrue(t *testing.T) {
	aggregated := func(trust privacy.Trust, noise privacy.NoiseName, users int) privacy.Aggregated {
		c := privacy.Calibration{Trust: trust, Noise: noise, Epsilon: 1, S: 1, Users: users,
			Invited: users, P: 1e-6}
		m, err := privacy.NewAggregated(c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		m      privacy.Mechanism
		want   bool
		noises float64 // in a sum of five
		scale  float64
	}{
		{privacy.Laplace{Scale: 2}, true, 1, 2}, {privacy.Gaussian{Sigma: 2}, false, 0, 0},
		{privacy.Tree{Scale: 2, Horizon: 8}, false, 0, 0}, {privacy.Exact{}, false, 0, 0},
		{aggregated(privacy.TrustCentral, privacy.NoiseLaplace, 1), true, 1, 1},
		{aggregated(privacy.TrustTwoServer, privacy.NoiseLaplace, 10), false, 2, 1},
		{aggregated(privacy.TrustLocal, privacy.NoiseLaplace, 10), false, 5, 1}, // a sum of five
		{aggregated(privacy.TrustSecAgg, privacy.NoisePolya, 10), false, 0.5, 1},
		{aggregated(privacy.TrustCentral, privacy.NoiseSkellam, 1), false, 0, 0},
	} {
		r, err := privacy.NewLedger().Release(0, c.m, &privacy.Values{N: []int{5}, Sum: []float64{0}})
		if err != nil {
			t.Fatal(err)
		}
		noises, scale := r.Noises(0)
		if r.Laplace() != c.want || noises != c.noises || noises > 0 && math.Abs(scale-c.scale) > 1e-9 {
			t.Errorf("%v: %v, %v noises of scale %v; want %v, %v of %v", c.m, r.Laplace(), noises, scale,
				c.want, c.noises, c.scale)
		}
	}
}
