package secagg

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

// The first two numbers are those of the production code of the protocol's authors: its own test
// vectors, and a second computation of it. The others were computed apart from this package, with
// the same bounds.
func TestRuleA(t *testing.T) {
	for _, c := range []struct {
		n              int
		gamma, delta   float64
		mode           Mode
		theirK, theirT int
		k, t           int
	}{
		{100, .33, .33, SemiHonest, 68, 34, 68, 34},
		{1000, .33, .33, SemiHonest, 286, 150, 270, 142},
		{10000, .33, .33, SemiHonest, 422, 221, 388, 204},
		{1000, .05, .33, SemiHonest, 72, 24, 68, 23},
		{10000, .05, .33, SemiHonest, 86, 29, 82, 28},
		{100, .05, .05, SemiHonest, 12, 6, 12, 6},
		{1000, .05, .05, SemiHonest, 30, 17, 28, 17},
		{10000, .05, .05, SemiHonest, 34, 20, 32, 19},
		{100000, .05, .05, SemiHonest, 36, 21, 36, 21},
		{10, .33, .33, SemiHonest, 8, 4, 8, 4},
		{100, .05, .05, Malicious, 16, 11, 16, 11},
		{1000, .05, .05, Malicious, 52, 37, 48, 34},
		{10000, .05, .05, Malicious, 62, 44, 58, 41},
		{10000, .05, .33, Malicious, 746, 420, 666, 375},
		{1000, .33, .05, Malicious, 132, 109, 128, 106},
		// The second computation.
		{20, .1, .1, SemiHonest, 6, 3, 6, 3},
		{20, .1, .1, Malicious, 8, 6, 8, 6},
		{50, .1, .1, SemiHonest, 12, 6, 12, 6},
		{50, .1, .1, Malicious, 16, 11, 16, 11},
		{100, .1, .1, SemiHonest, 22, 11, 20, 11},
		{100, .1, .1, Malicious, 32, 22, 32, 22},
		{200, .1, .1, SemiHonest, 34, 19, 32, 18},
		{200, .1, .1, Malicious, 56, 39, 56, 39},
		{500, .1, .1, SemiHonest, 42, 24, 40, 23},
		{500, .1, .1, Malicious, 82, 57, 80, 56},
		{1000, .1, .1, SemiHonest, 48, 27, 46, 26},
		{1000, .1, .1, Malicious, 96, 67, 90, 63},
		{2000, .1, .1, SemiHonest, 50, 28, 48, 27},
		{2000, .1, .1, Malicious, 106, 74, 100, 70},
		{5000, .1, .1, SemiHonest, 52, 30, 50, 29},
		{5000, .1, .1, Malicious, 116, 81, 110, 77},
		{10000, .1, .1, SemiHonest, 54, 31, 52, 30},
		{10000, .1, .1, Malicious, 122, 85, 112, 78},
		{1000, .2, .2, SemiHonest, 98, 54, 94, 52},
		{1000, .2, .2, Malicious, 302, 206, 284, 194},
		{10000, .2, .2, SemiHonest, 122, 67, 116, 63},
		{10000, .2, .2, Malicious, 482, 328, 436, 297},
		{1000, .33, .1, SemiHonest, 102, 72, 96, 68},
		{1000, .33, .1, Malicious, 218, 171, 204, 160},
	} {
		corrupt := floorOf(c.gamma, c.n)
		got, err := ruleA(c.n, corrupt, c.delta, c.mode)
		if want := (Params{c.n, c.k, c.t}); err != nil || got != want {
			t.Errorf("ruleA(%d, %g, %g, %v) = %+v, %v, want %+v", c.n, c.gamma, c.delta, c.mode, got, err, want)
		}
		if c.n < completeBelow {
			continue
		}
		for _, p := range []Params{got, {c.n, c.theirK, c.theirT}} {
			if !p.Sufficient(corrupt, c.delta, c.mode, false) {
				t.Errorf("%+v is not sufficient", p)
			}
		}
		if weak := (Params{got.N, got.K, got.T - 1}); weak.Sufficient(corrupt, c.delta, c.mode, false) {
			t.Errorf("a threshold lower by one passes: %+v", weak)
		}
		if weak := (Params{got.N, got.K - 2, got.T - 1}); weak.Sufficient(corrupt, c.delta, c.mode, false) {
			t.Errorf("a degree lower by two passes: %+v", weak)
		}
	}
}

// crowds gives the number of clients with at least t marked neighbours on this circle, and of those
// with none of that kind in the four before them.
func (p Params) crowds(marked func(place int) bool, t int) (all, begin int) {
	last := -p.N // a place of the kind
	var first []int
	for place := range p.N {
		neighbours := 0
		for x := 1; x <= p.K; x++ {
			if marked(p.neighbour(place, x)) {
				neighbours++
			}
		}
		if neighbours < t {
			continue
		}
		all++
		if place-last > before {
			begin++
			first = append(first, place)
		}
		last = place
	}
	if begin > 0 && first[0]+p.N-last <= before {
		begin-- // the first was none: the circle closes
	}
	return all, begin
}

// All ways to mark some clients of a small circle: begins is how many begin a crowd, and the bound
// on anybody having t marked neighbours holds and is below the union bound.
func TestBeginsIsEveryWay(t *testing.T) {
	for _, c := range []struct {
		p         Params
		marked, t int
	}{{Params{N: 26, K: 8}, 4, 4}, {Params{N: 26, K: 8}, 4, 3}, {Params{N: 27, K: 8}, 4, 4},
		{Params{N: 30, K: 10}, 4, 3}, {Params{N: 28, K: 8}, 5, 3}} {
		ways, somebody, each, begin := 0, 0, 0, 0
		for set := uint64(1)<<c.marked - 1; set < 1<<c.p.N; {
			ways++
			a, b := c.p.crowds(func(place int) bool { return set>>place&1 > 0 }, c.t)
			each, begin = each+a, begin+b
			if a > 0 {
				somebody++
			}
			// the next number with as many bits
			low := set & -set
			up := set + low
			set = up | (set^up)/low>>2
		}
		of := func(x int) float64 { return float64(x) / float64(ways) }
		n := float64(c.p.N)
		if got := n * c.p.begins(c.marked, c.t); math.Abs(got/of(begin)-1) > 1e-9 {
			t.Errorf("%+v, %d marked, %d of them neighbours: %v begin a crowd, want %v", c.p, c.marked, c.t,
				got, of(begin))
		}
		union := 0.0
		for x := c.t; x <= c.p.K; x++ {
			union += n * hypergeometric(c.p.N, c.marked, c.p.K, x)
		}
		if math.Abs(union/of(each)-1) > 1e-9 || begin < somebody || begin >= each {
			t.Errorf("%+v, %d marked: %d ways, %d with somebody of %d marked neighbours, %d "+
				"begin a crowd of %d; union %v",
				c.p, c.marked, ways, somebody, c.t, begin, each, union)
		}
	}
	if p := (Params{N: 26, K: 8}); p.begins(6, 3) != 1 {
		t.Error("six marked clients can be everybody's neighbours three times, and there is a bound")
	}
}

// The graph as it is drawn, where crowds are frequent: of 20 000 graphs on 300 clients, 30 of whom
// are marked, as many have a client with t marked neighbours as begins says, or somewhat fewer, and
// the union bound is off by far. 5.2 standard errors: a false alarm has probability below 4·10⁻⁷.
func TestCrowdsOfDrawnGraphs(t *testing.T) {
	const graphs, marked, few = 20_000, 30, 30
	p := Params{N: 300, K: 36}
	ids := make([]uint32, p.N)
	var hits [2]float64
	at := [2]int{10, 11}
	for g := range graphs {
		for i := range ids {
			ids[i] = uint32(i)
		}
		if err := permute(ids, [32]byte{byte(g), byte(g >> 8), 7}); err != nil {
			t.Fatal(err)
		}
		most, window := 0, 0
		mark := func(place int) int {
			if ids[(place+p.N)%p.N] < few {
				return 1
			}
			return 0
		}
		for place := -p.K / 2; place <= p.K/2; place++ {
			window += mark(place)
		}
		for place := range p.N {
			most = max(most, window-mark(place))
			window += mark(place+1+p.K/2) - mark(place-p.K/2)
		}
		for i, x := range at {
			if most >= x {
				hits[i]++
			}
		}
	}
	for i, x := range at {
		bound, union := float64(p.N)*p.begins(marked, x), 0.0
		for y := x; y <= p.K; y++ {
			union += float64(p.N) * hypergeometric(p.N, marked, p.K, y)
		}
		got := hits[i] / graphs
		se := math.Sqrt(got * (1 - got) / graphs)
		if got > bound+5.2*se || got < 0.8*bound-5.2*se || bound > 0.7*union || got < 0.001 {
			t.Errorf("%d marked neighbours: in %.4f ± %.4f of graphs, at most %.4f, by the union bound %.4f",
				x, got, se, bound, union)
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
		{1000, 800, Malicious, false, 1 + 63 - Params{N: 1000, K: 90}.corruptNeighbours(100, .1)},
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
