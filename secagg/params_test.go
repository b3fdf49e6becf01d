package secagg

import (
	"errors"
	"math/big"
	"testing"
)

func TestRuleA(t *testing.T) {
	for _, c := range []struct {
		n            int
		gamma, delta float64
		mode         Mode
		k, t         int
	}{
		// The test vectors of the authors' code.
		{100, .33, .33, SemiHonest, 68, 34}, {1000, .33, .33, SemiHonest, 286, 150},
		{10000, .33, .33, SemiHonest, 422, 221},
		{1000, .05, .33, SemiHonest, 72, 24}, {10000, .05, .33, SemiHonest, 86, 29},
		{100, .05, .05, SemiHonest, 12, 6},
		{1000, .05, .05, SemiHonest, 30, 17}, {10000, .05, .05, SemiHonest, 34, 20},
		{100000, .05, .05, SemiHonest, 36, 21},
		{10, .33, .33, SemiHonest, 8, 4},
		{100, .05, .05, Malicious, 16, 11}, {1000, .05, .05, Malicious, 52, 37},
		{10000, .05, .05, Malicious, 62, 44},
		{10000, .05, .33, Malicious, 746, 420}, {1000, .33, .05, Malicious, 132, 109},
		// A second, independent computation.
		{20, .1, .1, SemiHonest, 6, 3}, {20, .1, .1, Malicious, 8, 6},
		{50, .1, .1, SemiHonest, 12, 6}, {50, .1, .1, Malicious, 16, 11},
		{100, .1, .1, SemiHonest, 22, 11}, {100, .1, .1, Malicious, 32, 22},
		{200, .1, .1, SemiHonest, 34, 19}, {200, .1, .1, Malicious, 56, 39},
		{500, .1, .1, SemiHonest, 42, 24}, {500, .1, .1, Malicious, 82, 57},
		{1000, .1, .1, SemiHonest, 48, 27}, {1000, .1, .1, Malicious, 96, 67},
		{2000, .1, .1, SemiHonest, 50, 28}, {2000, .1, .1, Malicious, 106, 74},
		{5000, .1, .1, SemiHonest, 52, 30}, {5000, .1, .1, Malicious, 116, 81},
		{10000, .1, .1, SemiHonest, 54, 31}, {10000, .1, .1, Malicious, 122, 85},
		{1000, .2, .2, SemiHonest, 98, 54}, {1000, .2, .2, Malicious, 302, 206},
		{10000, .2, .2, SemiHonest, 122, 67}, {10000, .2, .2, Malicious, 482, 328},
		{1000, .33, .1, SemiHonest, 102, 72}, {1000, .33, .1, Malicious, 218, 171},
	} {
		corrupt := floorOf(c.gamma, c.n)
		got, err := ruleA(c.n, corrupt, c.delta, c.mode)
		if want := (Params{c.n, c.k, c.t}); err != nil || got != want {
			t.Errorf("ruleA(%d, %g, %g, %v) = %+v, %v, want %+v", c.n, c.gamma, c.delta, c.mode, got, err, want)
		}
		if c.n >= completeBelow && !got.Sufficient(corrupt, c.delta, c.mode, false) {
			t.Errorf("%+v is not sufficient for itself", got)
		}
		if weak := (Params{got.N, got.K, got.T - 1}); c.n >= completeBelow && got.T > 2 &&
			weak.Sufficient(corrupt, c.delta, c.mode, false) {
			t.Errorf("a threshold lower by one passes: %+v", weak)
		}
	}
}

// The tail by floating logarithms against exact rational numbers.
func TestHypergeometric(t *testing.T) {
	for _, c := range []struct {
		n, m, k int
	}{{50, 5, 12}, {1000, 100, 48}, {1000, 330, 286}, {10000, 9000, 54}} {
		total := new(big.Int).Binomial(int64(c.n), int64(c.k))
		for x := 0; x <= c.k; x++ {
			p := new(big.Int).Binomial(int64(c.m), int64(x))
			p.Mul(p, new(big.Int).Binomial(int64(c.n-c.m), int64(c.k-x)))
			want, _ := new(big.Rat).SetFrac(p, total).Float64()
			if x > c.m {
				want = 0
			}
			if got := hypergeometric(c.n, c.m, c.k, x); got > want*(1+1e-9) || got < want*(1-1e-9) {
				t.Errorf("HG(%d, %d, %d)(%d) = %g, want %g", c.n, c.m, c.k, x, got, want)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		n            int
		gamma, delta float64
		mode         Mode
		complete     bool
		want         Params
	}{
		{3, 0, 0, SemiHonest, false, Params{3, 2, 2}},
		{20, .1, .1, SemiHonest, false, Params{20, 19, 3}},
		{20, .1, .1, Malicious, false, Params{20, 19, 11}},
		{49, .1, .1, Malicious, false, Params{49, 48, 27}},
		{50, .1, .1, SemiHonest, false, Params{50, 12, 6}},
		{50, .1, .1, SemiHonest, true, Params{50, 49, 6}},
		{100, .1, .1, Malicious, true, Params{100, 99, 55}},
	} {
		corrupt := floorOf(c.gamma, c.n)
		got, err := Choose(c.n, corrupt, c.delta, c.mode, c.complete)
		if err != nil || got != c.want {
			t.Errorf("Choose(%d, %g, %g, %v, %v) = %+v, %v, want %+v", c.n, c.gamma, c.delta,
				c.mode, c.complete, got, err, c.want)
		}
		if !got.Sufficient(corrupt, c.delta, c.mode, c.complete) {
			t.Errorf("%+v is not sufficient for itself", got)
		}
	}
	for _, c := range []struct {
		n, corrupt int
		delta      float64
		mode       Mode
		want       error
	}{
		{2, 0, 0, SemiHonest, ErrTooFew}, {10, -1, 0, SemiHonest, ErrSession},
		{10, 0, 1, SemiHonest, ErrSession}, {10, 0, 0, 3, ErrSession},
		{1000, 500, .45, SemiHonest, ErrInfeasible}, {1000, 200, .4, Malicious, ErrInfeasible},
		{20, 10, .5, SemiHonest, ErrInfeasible},
		{10, 10, 0, SemiHonest, ErrTooFew}, {10, maxClients + 1, 0, SemiHonest, ErrSession},
	} {
		if _, err := Choose(c.n, c.corrupt, c.delta, c.mode, false); !errors.Is(err, c.want) {
			t.Errorf("Choose(%d, %d, %g, %v): %v, want %v", c.n, c.corrupt, c.delta, c.mode, err, c.want)
		}
	}
}

func TestHonestMin(t *testing.T) {
	for _, c := range []struct {
		n, nMin  int
		mode     Mode
		complete bool
		want     int
	}{
		{20, 15, SemiHonest, false, 13}, {20, 15, Malicious, false, 13}, {1000, 800, SemiHonest, false, 700},
		{1000, 800, Malicious, false, 1 + 67 - corruptNeighbours(1000, 96, 100)},
		{1000, 800, Malicious, true, 700},
	} {
		s := testSession("honest", c.n)
		s.NMin, s.Mode, s.Complete = c.nMin, c.mode, c.complete
		got, err := s.HonestMin(c.n)
		if err != nil || got != c.want {
			t.Errorf("n=%d, n_min=%d, %v, complete %v: %d, %v, want %d", c.n, c.nMin, c.mode,
				c.complete, got, err, c.want)
		}
	}
	s := testSession("honest", 1000)
	s.NMin = 100
	if _, err := s.HonestMin(1000); !errors.Is(err, ErrTooFew) {
		t.Errorf("a hundred survivors, a hundred corrupt: %v", err)
	}
	// Calibrated to 14 honest messages of at least 15, with 2 corrupt of 20: refused.
	s.Enrolled, s.NMin, s.Honest = 20, 15, 14
	if _, err := s.Graph(20); !errors.Is(err, ErrInfeasible) {
		t.Error(err)
	}
}

// Clients take whatever graph the server has by the rule, and none with a threshold less: also
// where few or none are corrupt.
func TestClientsTakeTheRulesGraph(t *testing.T) {
	for _, mode := range []Mode{SemiHonest, Malicious} {
		for _, complete := range []bool{true, false} {
			for n := 3; n <= 120; n++ {
				for _, corrupt := range []int{0, 1, 2, 5, 10, 20} {
					for _, delta := range []float64{0, 0.1, 0.3} {
						p, err := Choose(n, corrupt, delta, mode, complete)
						if err != nil {
							continue
						}
						if !p.Sufficient(corrupt, delta, mode, complete) {
							t.Errorf("%v, complete %v: %+v with %d corrupt, δ = %v, is refused",
								mode, complete, p, corrupt, delta)
						}
						if p.T--; p.Sufficient(corrupt, delta, mode, complete) {
							t.Errorf("%v, complete %v: %+v with %d corrupt, δ = %v, is accepted",
								mode, complete, p, corrupt, delta)
						}
					}
				}
			}
		}
	}
}
