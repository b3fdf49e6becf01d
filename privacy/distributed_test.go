package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleNewAggregated() {
	// A batch of 100 users, all of whom answer; ε = 1, p = 0.01.
	for _, noise := range []privacy.NoiseName{privacy.NoisePolya, privacy.NoiseSkellam, privacy.NoiseGaussian} {
		m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
			Noise: noise, Epsilon: 1, S: 1, Users: 100, Invited: 100, P: 0.01})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(m, m.Bits(), "bits")
		fmt.Println(" ", m.Loss())
	}
	// Output:
	// aggregated(trust=secagg,noise=polya,g=10,users=100,invited=100,modulus=1107,tau=53,num=10,den=1) 11 bits
	//   epsilon=1
	// aggregated(trust=secagg,noise=skellam,g=10,users=100,invited=100,modulus=1109,tau=54,num=1,den=1) 11 bits
	//   rho=1.009
	// aggregated(trust=secagg,noise=gaussian,g=10,users=100,invited=100,modulus=1067,tau=33,num=1,den=1) 11 bits
	//   rho=0.5001369471747701
}

func ExampleAggregated_LossWith() {
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 0.1, S: 1, Users: 4096, Invited: 4096,
		P: 0.01})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("all answer: %.2f, half: %.2f\n", m.LossWith(4096).Pure(), m.LossWith(2048).Pure())
	// Output:
	// all answer: 0.10, half: 0.96
}

func calibration(t *rapid.T) privacy.Calibration {
	c := privacy.Calibration{
		Epsilon: math.Exp(rapid.Float64Range(-5, 2).Draw(t, "log epsilon")),
		S:       1 + rapid.Float64Range(0, 20).Draw(t, "s - 1"),
		P:       math.Exp(rapid.Float64Range(-20, -0.1).Draw(t, "log p")),
		Users:   int(math.Exp(rapid.Float64Range(0, 14).Draw(t, "log users"))),
	}
	c.Invited = c.Users
	if rapid.Bool().Draw(t, "dropouts") {
		c.Invited += rapid.IntRange(0, c.Users).Draw(t, "more")
	}
	c.Trust = rapid.SampledFrom([]privacy.Trust{privacy.TrustCentral, privacy.TrustLocal,
		privacy.TrustSecAgg}).Draw(t, "trust")
	noises := []privacy.NoiseName{privacy.NoiseLaplace, privacy.NoiseSkellam, privacy.NoiseGaussian}
	if c.Trust == privacy.TrustSecAgg {
		noises[0] = privacy.NoisePolya
	}
	c.Noise = rapid.SampledFrom(noises).Draw(t, "noise")
	return c
}

func aggregated(t testing.TB, c privacy.Calibration) privacy.Aggregated {
	t.Helper()
	m, err := privacy.NewAggregated(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAggregatedReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := privacy.NewAggregated(calibration(t))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := privacy.UnmarshalMechanism(data); got != m || err != nil {
			t.Fatalf("%s reads back as %v, %v", data, got, err)
		}
	})
}

func TestBadAggregated(t *testing.T) {
	good := privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: privacy.NoisePolya, Epsilon: 1,
		S: 1, Users: 100, Invited: 120, P: 0.01}
	for _, c := range []struct {
		change  func(*privacy.Calibration)
		mention string
	}{
		{func(c *privacy.Calibration) { c.Trust = "nobody" }, `trust is "nobody"`},
		{func(c *privacy.Calibration) { c.Trust = privacy.TrustShuffle }, `trust is "shuffle"`},
		{func(c *privacy.Calibration) {
			c.Noise = "laplace"
		}, `noise is "laplace": for trust "secagg" it must be`},
		{func(c *privacy.Calibration) { c.Trust = "local" }, `noise is "polya": for trust "local" it must be`},
		{func(c *privacy.Calibration) { c.Epsilon = 0 }, "epsilon is 0"},
		{func(c *privacy.Calibration) { c.Epsilon = math.NaN() }, "epsilon is NaN"},
		{func(c *privacy.Calibration) { c.Epsilon = math.Inf(1) }, "epsilon is +Inf"},
		{func(c *privacy.Calibration) { c.S = 0.99 }, "s is 0.99, must be finite and at least 1"},
		{func(c *privacy.Calibration) { c.S = math.NaN() }, "s is NaN"},
		{func(c *privacy.Calibration) { c.S = math.Inf(1) }, "s is +Inf"},
		{func(c *privacy.Calibration) { c.P = 0 }, "p is 0, must be above 0 and below 1"},
		{func(c *privacy.Calibration) { c.P = 1 }, "p is 1,"},
		{func(c *privacy.Calibration) { c.P = math.NaN() }, "p is NaN"},
		{func(c *privacy.Calibration) { c.Users = 0 }, "users is 0: a batch must have at least 1"},
		{func(c *privacy.Calibration) { c.Invited = 99 }, "invited is 99, must be at least users, 100"},
		{func(c *privacy.Calibration) {
			c.Epsilon = 1e18
		}, "precision g = s·ε·√n is 1.095e+19 for s = 1, ε = 1e+18, n = 120, must be below 2^63"},
		{func(c *privacy.Calibration) {
			c.S = math.MaxFloat64
			c.Epsilon = 1e9
		}, "precision g = s·ε·√n is +Inf"},
		{func(c *privacy.Calibration) {
			c.Epsilon = 1e17
		}, "n·g + 2τ + 1 with n = 120, g = 1095445115010321280, τ = 114, must be below 2^63"},
		{func(c *privacy.Calibration) { c.Epsilon = 1e-300 }, "scale g/ε is 1e+300"},
		{func(c *privacy.Calibration) { c.Noise = "skellam"; c.Epsilon = 1e-10 }, "variance g²/(nε²) is 1e+18"},
	} {
		d := good
		c.change(&d)
		if m, err := privacy.NewAggregated(d); err == nil || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%+v: %v, %v: want %s", d, m, err, c.mention)
		}
	}
	m := aggregated(t, good)
	for _, c := range []struct {
		change  func(*privacy.Aggregated)
		mention string
	}{
		{func(m *privacy.Aggregated) {
			m.Modulus--
		}, fmt.Sprintf("modulus is %d, must be at least n·g + 2τ + 1 = %d, for n = 120, g = "+
			"11, τ = %d", m.Modulus-1, m.Modulus, m.Tau)},
		{func(m *privacy.Aggregated) { m.Modulus = -1 }, "modulus is -1"},
		{func(m *privacy.Aggregated) { m.G = 0 }, "g is 0, must be at least 1"},
		{func(m *privacy.Aggregated) { m.Tau = -1 }, "tau is -1, must be at least 0"},
		{func(m *privacy.Aggregated) { m.Den = 0 }, "den is 0"},
		{func(m *privacy.Aggregated) { m.Users = -3 }, "users is -3"},
		{func(m *privacy.Aggregated) { m.Tau = math.MaxInt64 }, "must be below 2^63"},
		{func(m *privacy.Aggregated) { m.G = math.MaxInt64 / 100 }, "must be below 2^63"},
	} {
		d := m
		c.change(&d)
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%+v: %v: want %s", d, err, c.mention)
		}
		if !d.Loss().Infinite() {
			t.Errorf("%+v has a finite loss", d)
		}
	}
	// Secure aggregation without noise is valid, and costs ∞.
	m.Num = 0
	if err := m.Validate(); err != nil || !m.Loss().Infinite() || m.Tail() != (privacy.Tail{}) {
		t.Errorf("%v: %v, loss %v", m, err, m.Loss())
	}
	for _, s := range []string{`{"mechanism":"aggregated"}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":1,"invited":1,"modulus":2,"tau":0,"num":1}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":1,"invited":1,"modulus":1,"tau":0,"num":1,"den":1}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1.5,"users":1,"invited":1,"modulus":2,"tau":0,"num":1,"den":1}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":1,"invited":1,"modulus":2,"tau":0,"num":-1,"den":1}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":1,"invited":1,"modulus":2,"tau":0,"num":1,"den":1,"scale":1}`} {
		if m, err := privacy.UnmarshalMechanism([]byte(s)); err == nil {
			t.Errorf("UnmarshalMechanism(%s) = %v", s, m)
		}
	}
}

// The integers of [Chowdhury and Zhou 2023]'s theorems, computed here by hand: g = ⌈sε√n⌉, τ,
// m = ng + 2τ + 1.
func TestTheoremsIntegers(t *testing.T) {
	const p = 0.01
	l := math.Log(2 / p) // 5.298317
	for _, c := range []struct {
		privacy.Calibration
		g, tau int64
		noise  float64
	}{
		// Theorem 1: τ = (10/0.1)·5.298 = 529.8; b = 10/0.1.
		{privacy.Calibration{Trust: "secagg", Noise: "polya", Epsilon: 0.1, S: 1, Users: 10_000,
			Invited: 10_000}, 10, 530, 100},
		// The same with 3/4 promised: n = 10 000 invited, r = 4/3: τ =
		// 100·(2√(4/3·5.298)+5.298) = 1061.4.
		{privacy.Calibration{Trust: "secagg", Noise: "polya", Epsilon: 0.1, S: 1, Users: 7500,
			Invited: 10_000}, 10, 1062, 100},
		// Theorem 5: as Theorem 1, whoever is missing.
		{privacy.Calibration{Trust: "central", Noise: "laplace", Epsilon: 0.1, S: 1, Users: 7500,
			Invited: 10_000}, 10, 530, 100},
		// Theorem 2: τ = (2·100/0.1)·√5.298 + √2·5.298 = 4603.6 + 7.5 = 4611.1; variance a user
		// (100/0.1)²/10 000.
		{privacy.Calibration{Trust: "secagg", Noise: "skellam", Epsilon: 0.1, S: 10, Users: 10_000,
			Invited: 10_000}, 100, 4612, 100},
		// Theorem 4: τ = (100/0.1)·√(2·5.298) = 3255.3.
		{privacy.Calibration{Trust: "secagg", Noise: "gaussian", Epsilon: 0.1, S: 10, Users: 10_000,
			Invited: 10_000}, 100, 3256, 100},
		// Theorem 6: τ = (10/0.1)·(2√(10 000·5.298) + 5.298) = 46 566.1.
		{privacy.Calibration{Trust: "local", Noise: "laplace", Epsilon: 0.1, S: 1, Users: 10_000,
			Invited: 10_000}, 10, 46_566, 100},
	} {
		c.P = p
		m := aggregated(t, c.Calibration)
		if math.Abs(float64(m.Num)/float64(m.Den)/c.noise-1) > 1e-9 {
			t.Errorf("%v: noise %d/%d, want %v", m, m.Num, m.Den, c.noise)
		}
		if m.G != c.g || m.Tau != c.tau || m.Modulus != int64(c.Invited)*c.g+2*c.tau+1 {
			t.Errorf("%v: want g = %d, τ = %d", m, c.g, c.tau)
		}
		if got := m.Bits(); got != int(math.Ceil(math.Log2(float64(m.Modulus)))) {
			t.Errorf("%v: %d bits", m, got)
		}
	}
	// ν of each family at L, from the tail: what a policy's radius and Tau agree in.
	for _, c := range []struct {
		trust privacy.Trust
		noise privacy.NoiseName
		nu    float64
	}{
		{"secagg", "polya", l / 0.1}, {"central", "laplace", l / 0.1},
		{"secagg", "skellam", 2*math.Sqrt(l)/0.1 + math.Sqrt2*l/100},
		{"secagg", "gaussian", math.Sqrt(2*l) / 0.1}, {"local", "laplace", (2*math.Sqrt(10_000*l) + l) / 0.1},
	} {
		m := aggregated(t, privacy.Calibration{Trust: c.trust, Noise: c.noise, Epsilon: 0.1, S: 10,
			Users: 10_000, Invited: 10_000, P: p})
		tail := m.Tail()
		near(t, m.String(), tail.Sigma*math.Sqrt(2*l)+tail.H*l, c.nu, 1e-9)
		near(t, "gν", float64(m.Tau), math.Ceil(float64(m.G)*c.nu), 1e-15)
	}
	// 100 = 0.1·√10⁶ is not 101 for a product that was rounded, and g is 1 at least.
	if m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "polya", Epsilon: 0.1, S: 1,
		Users: 1_000_000, Invited: 1_000_000, P: p}); m.G != 100 {
		t.Errorf("%v", m)
	}
	if m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "polya", Epsilon: 0.001, S: 1,
		Users: 4, Invited: 4, P: p}); m.G != 1 {
		t.Errorf("%v", m)
	}
}

// A law is of integers −m to m.
type law []float64

func (l law) at(x int) float64 {
	if m := len(l) / 2; x >= -m && x <= m {
		return l[x+m]
	}
	return 0
}

func newLaw(m int, mass func(x int) float64) law {
	l, sum := make(law, 2*m+1), 0.0
	for x := -m; x <= m; x++ {
		l[x+m] = mass(x)
		sum += l[x+m]
	}
	for i := range l {
		l[i] /= sum
	}
	return l
}

// polya is X − Y for independent Pólya(r, β) by adding up pairs.
func polya(m int, r, beta float64) law {
	p := make([]float64, 2*m+1)
	p[0] = math.Pow(1-beta, r)
	for x := 1; x < len(p); x++ {
		p[x] = p[x-1] * beta * (float64(x-1) + r) / float64(x)
	}
	return newLaw(m, func(x int) float64 {
		if x < 0 {
			x = -x
		}
		sum := 0.0
		for k := 0; k+x < len(p); k++ {
			sum += p[k] * p[k+x]
		}
		return sum
	})
}

// skellam is the difference of two Poisson variates of mean v/2.
func skellam(m int, v float64) law {
	p := make([]float64, 3*m+1)
	for x := range p {
		g, _ := math.Lgamma(float64(x + 1))
		p[x] = math.Exp(-v/2 + float64(x)*math.Log(v/2) - g)
	}
	return newLaw(m, func(x int) float64 {
		if x < 0 {
			x = -x
		}
		sum := 0.0
		for k := 0; k+x < len(p); k++ {
			sum += p[k] * p[k+x]
		}
		return sum
	})
}

// gaussians is the sum of n discrete Gaussians.
func gaussians(m, n int, v float64) law {
	one := newLaw(m, func(x int) float64 { return math.Exp(-float64(x*x) / (2 * v)) })
	sum := newLaw(m, func(x int) float64 {
		if x == 0 {
			return 1
		}
		return 0
	})
	for range n {
		next := make(law, len(sum))
		for i, p := range sum {
			if p == 0 {
				continue
			}
			for j, q := range one {
				if k := i + j - m; k >= 0 && k < len(next) && q > 0 {
					next[k] += p * q
				}
			}
		}
		sum = next
	}
	return sum
}

// divergence is the Rényi divergence of l and l shifted by g, over all x where both are.
func (l law) divergence(g int, alpha float64) float64 {
	m, sum := len(l)/2, 0.0
	for x := -m + g; x <= m; x++ {
		if p, q := l.at(x), l.at(x-g); p > 0 && q > 0 {
			sum += math.Exp(alpha*math.Log(p) + (1-alpha)*math.Log(q))
		}
	}
	return math.Log(sum) / (alpha - 1)
}

func (l law) above(y float64) float64 {
	sum := 0.0
	for x := len(l) / 2; float64(x) > y; x-- {
		sum += l.at(x)
	}
	return sum
}

func TestDiscreteLaplaceRenyiAgainstItsSum(t *testing.T) {
	for _, c := range []struct {
		g int
		b float64
	}{{1, 0.7}, {1, 10}, {3, 2}, {10, 10}, {7, 70}, {50, 11}} {
		l := newLaw(60*int(c.b+1)+200, func(x int) float64 { return math.Exp(-math.Abs(float64(x)) / c.b) })
		for _, a := range []float64{1.01, 1.5, 2, 3, 10, 64} {
			near(t, fmt.Sprintf("g = %d, b = %v, α = %v", c.g, c.b, a),
				privacy.DiscreteLaplaceRenyi(float64(c.g), c.b, a), l.divergence(c.g, a), 1e-9)
		}
	}
	near(t, "randomised response", privacy.DiscreteLaplaceRenyi(1, 2, 3), privacy.PureToRenyi(0.5, 3), 1e-12)
	near(t, "the continuous law", privacy.DiscreteLaplaceRenyi(1e6, 2e6, 3), privacy.LaplaceRenyi(0.5, 3), 1e-6)
}

// The bounds hold for the exact laws, and are near them.
func TestLossesAgainstExactLaws(t *testing.T) {
	for _, c := range []struct {
		g int
		v float64
	}{{1, 1}, {1, 5}, {4, 16}, {4, 40}, {10, 100}, {10, 25}} {
		l := skellam(10*int(math.Sqrt(c.v)+1)+60+10*c.g, c.v)
		for _, a := range []float64{2, 3, 4, 7, 10} {
			exact, bound := l.divergence(c.g, a), privacy.SkellamRenyi(float64(c.g), c.v, a)
			if exact > bound*(1+1e-9) {
				t.Errorf("skellam g = %d, variance %v, α = %v: the divergence is %v, above %v", c.g,
					c.v, a, exact, bound)
			}
		}
	}
	for _, c := range []struct {
		g, n int
		v    float64
	}{{1, 1, 0.3}, {1, 4, 0.5}, {2, 10, 1}, {3, 5, 1.3}, {5, 3, 4}} {
		l := gaussians(60, c.n, c.v)
		rho := privacy.GaussianSumZCDP(float64(c.g), c.v, c.n)
		for _, a := range []float64{1.1, 2, 3, 5} {
			if exact := l.divergence(c.g, a); exact > rho*a*(1+1e-9) {
				t.Errorf("sum of %d gaussians of variance %v, g = %d, α = %v: the divergence is "+
					"%v, above %v", c.n, c.v, c.g, a, exact, rho*a)
			}
		}
	}
}

// Worked numbers of the theorems' accounting.
func TestTheoremsAccounting(t *testing.T) {
	// Theorem 2 with n = 10⁴, ε = 0.1, s = 10: g = 100, σ = 1000, g²/σ² = 0.01, and
	// min{((2α−1)·10⁴+600)/(4·10¹²), 300/(2·10⁶)}.
	m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "skellam", Epsilon: 0.1, S: 10,
		Users: 10_000, Invited: 10_000, P: 0.01})
	for _, c := range []struct{ alpha, want float64 }{
		{2, 0.01 + (3e4+600)/4e12}, {10, 0.05 + (19e4+600)/4e12}, {4096, 20.48 + (8191e4+600)/4e12},
		{65_536, 327.68 + 1.5e-4},
	} {
		near(t, fmt.Sprintf("D_%v", c.alpha), m.Loss().Renyi(c.alpha), c.want, 1e-9)
		// The printed curve, with s, n and ε: its third term is 6g/(4σ⁴) =
		// 3ε³/(2s·n^{1/2}·(εs√n)²)… the same number.
		s, n, e := 10.0, 1e4, 0.1
		near(t, "the print", m.Loss().Renyi(c.alpha),
			c.alpha*e*e/2+min((2*c.alpha-1)*e*e/(4*s*s*n)+3*e/(2*s*s*s*math.Pow(n, 1.5)),
				3*e/(2*s*math.Sqrt(n))), 1e-9)
	}
	if got := m.Loss().Renyi(1.5); got != m.Loss().Renyi(2) {
		t.Errorf("D_1.5 = %v is not D_2", got)
	}
	near(t, "D_2.5", m.Loss().Renyi(2.5), (0.5*m.Loss().Renyi(2)+0.5*2*m.Loss().Renyi(3))/1.5, 1e-9)
	near(t, "ρ", m.Loss().ZCDP(), m.Loss().Renyi(2), 1e-12)
	// Theorem 4 with s = 1, n = 100: ξ = 10·Σ_{k=1}^{99} exp(−2π²k/(k+1)).
	m = aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "gaussian", Epsilon: 0.5, S: 1,
		Users: 100, Invited: 100, P: 0.01})
	xi := 0.0
	for k := 1.0; k < 100; k++ {
		xi += 10 * math.Exp(-2*math.Pi*math.Pi*k/(k+1))
	}
	near(t, "ρ", m.Loss().ZCDP(), min(0.25+xi/2, (0.5+xi)*(0.5+xi))/2, 1e-9)
	near(t, "ξ", xi, 5.477890e-4, 1e-6)
	// s buys back what ξ takes: with 10⁶ users it is 0.027 at s = 1, and nothing at s = 2.
	near(t, "ξ of 10⁶", privacy.GaussianSumZCDP(500, 1, 1_000_000)*2, 0.25+0.0274/2, 1e-3)
	near(t, "ξ of 10⁶ at s = 2", privacy.GaussianSumZCDP(1000, 4, 1_000_000)*2, 0.25, 1e-12)
	if !math.IsInf(privacy.GaussianSumZCDP(1, 0.2, 2), 1) {
		t.Error("a variance below ¼ has a price")
	}
	// One party's discrete Gaussian is exact, also centrally and locally; so are Theorems 1, 5 and 6.
	for _, trust := range []privacy.Trust{"central", "local"} {
		m := aggregated(t, privacy.Calibration{Trust: trust, Noise: "gaussian", Epsilon: 0.5, S: 1,
			Users: 100, Invited: 100, P: 0.01})
		near(t, string(trust), m.Loss().ZCDP(), 0.125, 1e-9)
		m = aggregated(t, privacy.Calibration{Trust: trust, Noise: "laplace", Epsilon: 0.5, S: 1,
			Users: 100, Invited: 100, P: 0.01})
		near(t, string(trust), m.Loss().Pure(), 0.5, 1e-9)
		if a, b := m.Loss().Renyi(2), privacy.PureToRenyi(0.5, 2); !(a < b) {
			t.Errorf("D_2 = %v, not below %v", a, b)
		}
	}
}

// A cost never exceeds the promise by more than rounding, grows with ε, and does not grow with n
// for the same integers' noise.
func TestLossIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := calibration(t)
		m, err := privacy.NewAggregated(c)
		if err != nil {
			t.Fatal(err)
		}
		e := c.Epsilon
		switch c.Noise {
		case privacy.NoisePolya, privacy.NoiseLaplace:
			if got := m.Loss().Pure(); !(got <= e*(1+1e-12) && got >= e*(1-1e-8)) {
				t.Fatalf("%v costs %v", m, got)
			}
		case privacy.NoiseSkellam:
			// Theorem 2: αε²/2 and at most 3g/(2σ²) = 3ε/(2s√n)·… more, with the actual integer g.
			for _, a := range []float64{2, 5, 64} {
				if got, most := m.Loss().Renyi(a),
					a*e*e/2+1.5*e*e/float64(m.G); !(got <= most*(1+1e-9) && got >= a*e*e/2*(1-1e-8)) {
					t.Fatalf("%v: D_%v = %v, want at most %v", m, a, got, most)
				}
			}
		default:
			if got := m.Loss().ZCDP(); !(got >= e*e/2*(1-1e-8)) || c.Trust != privacy.TrustSecAgg &&
				got > e*e/2*(1+1e-12) {
				t.Fatalf("%v costs %v", m, got)
			}
		}
		cost := func(l privacy.Loss) float64 { return l.Approx(1e-6) }
		more := m
		more.G++
		more.Modulus += int64(m.Invited)
		if cost(more.Loss()) < cost(m.Loss()) {
			t.Fatalf("%v costs less than %v", more, m)
		}
		louder := m
		louder.Num += louder.Num / 3
		if cost(louder.Loss()) > cost(m.Loss())*(1+1e-12) {
			t.Fatalf("%v costs more than %v", louder, m)
		}
		last := cost(m.LossWith(1))
		for _, honest := range []int{m.Users / 4, m.Users / 2, m.Users - 1, m.Users, m.Users + 1, m.Invited} {
			if honest < 1 {
				continue
			}
			got := cost(m.LossWith(honest))
			if got > last*(1+1e-9) || honest >= m.Users && got != cost(m.Loss()) {
				t.Fatalf("%v with %d honest users costs %v, with fewer %v", m, honest, got, last)
			}
			last = got
		}
		if !m.LossWith(0).Infinite() {
			t.Fatal("nobody's noise has a price")
		}
	})
}

// What missing users cost: f(0)/f(g), checked against every ratio of the exact law, and a promise
// of 0.1 that becomes 0.96.
func TestMissingUsers(t *testing.T) {
	m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "polya", Epsilon: 0.1, S: 1,
		Users: 4096, Invited: 4096, P: 0.01})
	if m.G != 7 || fmt.Sprintf("%.2f", m.LossWith(2048).Pure()) != "0.96" {
		t.Errorf("%v with half of the users: %v", m, m.LossWith(2048))
	}
	for _, c := range []struct {
		g, users, honest int
		num              uint64
	}{{7, 4, 2, 10}, {3, 10, 1, 4}, {1, 10, 9, 2}, {20, 3, 2, 10}} {
		m := privacy.Aggregated{Trust: "secagg", Noise: "polya", G: int64(c.g), Users: c.users,
			Invited: c.users, Modulus: math.MaxInt64, Num: c.num, Den: 1}
		l := polya(40*int(c.num), float64(c.honest)/float64(c.users), math.Exp(-1/float64(c.num)))
		worst := 0.0
		for x := -5 * int(c.num); x <= 5*int(c.num); x++ {
			worst = max(worst, math.Abs(math.Log(l.at(x)/l.at(x+c.g))))
		}
		near(t, m.String(), m.LossWith(c.honest).Pure(), worst, 1e-9)
	}
	// Skellam and Gaussian shares lose noise evenly: half of the users, twice the first-order price.
	for _, noise := range []privacy.NoiseName{"skellam", "gaussian"} {
		m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: noise, Epsilon: 0.1, S: 10,
			Users: 4096, Invited: 4096, P: 0.01})
		near(t, m.String(), m.LossWith(2048).Renyi(2), 2*m.Loss().Renyi(2), 1e-3)
	}
	// Local noise is one's own.
	m = aggregated(t, privacy.Calibration{Trust: "local", Noise: "laplace", Epsilon: 0.1, S: 1,
		Users: 4096, Invited: 4096, P: 0.01})
	near(t, "local", m.LossWith(1).Pure(), 0.1, 1e-9)
}

// The authors' published noise, Pólya variates with the reciprocal scale (1−β)/β: 580 times too
// little, priced at 30 for a promise of 0.1.
func TestReciprocalScaleIsPriced(t *testing.T) {
	m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "polya", Epsilon: 0.1, S: 1,
		Users: 4096, Invited: 4096, P: 0.01})
	beta := math.Exp(-float64(m.Den) / float64(m.Num))
	sd := func(beta float64) float64 { return math.Sqrt(2*beta) / (1 - beta) }
	if got := fmt.Sprintf("%.0f %.2f", sd(beta), sd(1-beta)); got != "99 0.17" {
		t.Errorf("standard deviations %s", got)
	}
	m.Num, m.Den = uint64(math.Round(-1e9/math.Log(1-beta))), 1e9
	if e := m.Loss().Pure(); !(e > 29 && e < 31) || m.Loss().Within(privacy.Pure{Epsilon: 0.1}) {
		t.Errorf("%v costs %v", m, e)
	}
}

// Tails against exact laws, and Tau against P.
func TestTailsOfSums(t *testing.T) {
	for _, c := range []struct {
		m       privacy.Aggregated
		answers int
		law     law
	}{
		{privacy.Aggregated{Trust: "secagg", Noise: "polya", Users: 10, Num: 4}, 10,
			polya(300, 1, math.Exp(-0.25))},
		{privacy.Aggregated{Trust: "secagg", Noise: "polya", Users: 10, Num: 4}, 13,
			polya(300, 1.3, math.Exp(-0.25))},
		{privacy.Aggregated{Trust: "secagg", Noise: "polya", Users: 10, Num: 4}, 40,
			polya(300, 4, math.Exp(-0.25))},
		{privacy.Aggregated{Trust: "secagg", Noise: "polya", Users: 10, Num: 1}, 10,
			polya(100, 1, math.Exp(-1))},
		{privacy.Aggregated{Trust: "central", Noise: "laplace", Users: 10, Num: 4}, 20,
			polya(300, 1, math.Exp(-0.25))},
		{privacy.Aggregated{Trust: "local", Noise: "laplace", Users: 10, Num: 4}, 20,
			polya(700, 20, math.Exp(-0.25))},
		{privacy.Aggregated{Trust: "local", Noise: "laplace", Users: 1, Num: 4}, 1,
			polya(300, 1, math.Exp(-0.25))},
		{privacy.Aggregated{Trust: "secagg", Noise: "skellam", Users: 10, Num: 1}, 10, skellam(100, 10)},
		{privacy.Aggregated{Trust: "secagg", Noise: "skellam", Users: 10, Num: 3}, 30, skellam(200, 90)},
		{privacy.Aggregated{Trust: "central", Noise: "skellam", Users: 10, Num: 3}, 30, skellam(60, 3)},
		{privacy.Aggregated{Trust: "local", Noise: "skellam", Users: 10, Num: 3}, 30, skellam(200, 90)},
		{privacy.Aggregated{Trust: "secagg", Noise: "skellam", Users: 10, Num: 100}, 10, skellam(600, 1000)},
		{privacy.Aggregated{Trust: "local", Noise: "skellam", Users: 10, Num: 100}, 10, skellam(600, 1000)},
		{privacy.Aggregated{Trust: "secagg", Noise: "gaussian", Users: 5, Num: 2}, 7, gaussians(80, 7, 2)},
		{privacy.Aggregated{Trust: "central", Noise: "gaussian", Users: 5, Num: 2}, 7, gaussians(80, 1, 2)},
		{privacy.Aggregated{Trust: "local", Noise: "gaussian", Users: 5, Num: 2}, 7, gaussians(80, 7, 2)},
	} {
		c.m.G, c.m.Den, c.m.Invited, c.m.Modulus = 5, 1, max(c.m.Users, c.answers), math.MaxInt64
		if err := c.m.Validate(); err != nil {
			t.Fatal(err)
		}
		tail := c.m.TailOf(c.answers)
		most := 0.0
		for x := 0.0; x < 20; x += 0.05 {
			y := 5 * (tail.Sigma*math.Sqrt(2*x) + tail.H*(x+tail.Log))
			most = max(most, c.law.above(y)/math.Exp(-x))
		}
		if !(most <= 1+1e-9) || most < 0.15 {
			t.Errorf("%v, %d answers: P(noise > bound) is up to %v of e^{−x}", c.m, c.answers, most)
		}
		if c.m.Noise == privacy.NoiseSkellam && c.m.Num < 100 {
			continue // the bound's last term, √2·x, is wider than the noise
		}
		half := c.m
		half.Den = 2
		if half.Noise == privacy.NoiseSkellam || half.Noise == privacy.NoiseGaussian {
			half.Den = 4
		}
		tail = half.TailOf(c.answers)
		x := 12.0
		if y := 5 * (tail.Sigma*math.Sqrt(2*x) + tail.H*(x+tail.Log)); c.law.above(y) <= math.Exp(-x) {
			t.Errorf("%v, %d answers: the tail of half the noise is not told apart", c.m, c.answers)
		}
	}
	m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "polya", Epsilon: 0.5, S: 1,
		Users: 100, Invited: 100, P: 0.05})
	l := polya(600, 1, math.Exp(-float64(m.Den)/float64(m.Num)))
	if p := 2 * l.above(float64(m.Tau)); !(p <= 0.05 && p > 0.01) {
		t.Errorf("%v: the noise leaves ±τ with probability %v", m, p)
	}
}

func anyDistributed() *rapid.Generator[privacy.Mechanism] {
	return rapid.Custom(func(t *rapid.T) privacy.Mechanism {
		var m privacy.Mechanism
		var err error
		switch rapid.IntRange(0, 3).Draw(t, "mechanism") {
		case 0:
			m, err = anyShuffledCount(t)
		case 1:
			c := calibration(t)
			c.Trust, c.Noise, c.Users, c.Invited = privacy.TrustSecAgg, privacy.NoisePolya,
				c.Users+19, c.Invited+19
			inner, e := privacy.NewAggregated(c)
			if e != nil {
				t.Fatal(e)
			}
			m, err = privacy.NewSplitMix(inner, 30)
		case 2:
			c := calibration(t)
			c.Trust, c.Noise, c.Epsilon = privacy.TrustLocal, privacy.NoiseLaplace, min(c.Epsilon, 1)
			inner, e := privacy.NewAggregated(c)
			m, err = privacy.Clones{Inner: inner, Delta: 1e-7}, e
		default:
			m, err = privacy.NewAggregated(calibration(t))
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}

// The ledger tells the mechanisms apart, prices each batch for itself, takes the worst slot, and
// reads its journal back.
func TestLedgerPricesDistributedMechanisms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, other := anyDistributed().Draw(t, "mechanism"), anyDistributed().Draw(t, "other")
		l := privacy.NewLedger()
		for _, c := range []struct {
			slot int
			m    privacy.Mechanism
		}{{0, m}, {1, other}, {2, m}, {2, other}, {2, m}} {
			if _, err := l.Release(c.slot, c.m, one()); err != nil {
				t.Fatal(err)
			}
		}
		want := m.Loss().Add(m.Loss()).Add(other.Loss())
		const delta = 1e-3
		if got := l.Total(); math.Abs(got.Approx(delta)-want.Approx(delta)) > 1e-12*want.Approx(delta) ||
			math.IsInf(got.Approx(delta), 1) {
			t.Fatalf("%v and %v: the total is %v, want %v", m, other, got, want)
		}
		for _, e := range l.Entries() {
			if !(e.Scale > 0 && e.Sensitivity >= 1) || e.Loss.Infinite() {
				t.Fatalf("entry %+v", e)
			}
		}
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var again privacy.Ledger
		if err := json.Unmarshal(data, &again); err != nil ||
			again.Total().Approx(delta) != l.Total().Approx(delta) {
			t.Fatalf("%s: %v, total %v", data, err, again.Total())
		}
		// A vector is another matter.
		v := privacy.NewLedger()
		if _, err := v.ReleaseVector(0, m, vector(1, 2)); err != nil || !v.Total().Infinite() {
			t.Fatalf("%v of a vector costs %v, %v", m, v.Total(), err)
		}
	})
}

func TestDistributedEntries(t *testing.T) {
	m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "skellam", Epsilon: 0.5, S: 2,
		Users: 100, Invited: 144, P: 0.01})
	l := privacy.NewLedger(privacy.WithCap(privacy.Renyi{Alpha: 2, Epsilon: 0.26}))
	release(t, l, 0, m)
	if _, err := l.Release(0, m, one()); err == nil {
		t.Error("the second release of a batch is not refused")
	}
	e := l.Entries()[0]
	if e.Sensitivity != 12 || math.Abs(e.Scale-24) > 1e-6 ||
		!strings.Contains(e.Protects, "if 100 honest users answer") {
		t.Errorf("%+v", e)
	}
}

func ExampleReturningUsers() {
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoiseSkellam, Epsilon: 0.01, S: 10, Users: 1000, Invited: 1000,
		P: 0.01})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := privacy.ReturningUsers(m.Loss(), 100, 1e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("100 batches at δ = 1e-6: Rényi %.3f, advanced %.2f, simple %.2f\n", r.Renyi,
		r.Advanced, r.Simple)
	// Output:
	// 100 batches at δ = 1e-6: Rényi 0.431, advanced 2.88, simple 4.75
}

// [Chowdhury and Zhou 2023, Appendix I] with numbers computed here from its formulas.
func TestReturningUsers(t *testing.T) {
	m := aggregated(t, privacy.Calibration{Trust: "secagg", Noise: "skellam", Epsilon: 0.1, S: 10,
		Users: 1000, Invited: 1000, P: 0.01})
	const delta = 1e-6
	g, v := float64(m.G), 1000*float64(m.Num)/float64(m.Den)
	// [Chowdhury and Zhou 2023, Lemma 10] over integer orders.
	convert := func(times, delta float64) float64 {
		best := math.Inf(1)
		for a := 2.0; a < 3000; a++ {
			best = min(best, times*privacy.SkellamRenyi(g, v, a)+math.Log(1/(a*delta))/(a-1)+math.Log(1-1/a))
		}
		return best
	}
	for _, batches := range []int{1, 10, 100, 1000} {
		r, err := privacy.ReturningUsers(m.Loss(), batches, delta)
		if err != nil {
			t.Fatal(err)
		}
		b := float64(batches)
		// The ledger's grid of orders is coarser than all integers: by less than a
		// hundredth here, upwards.
		for _, c := range []struct{ got, want float64 }{
			{r.Renyi, convert(b, delta)},
			{r.Simple, b * convert(1, delta/b)},
			{r.Advanced, func() float64 {
				e := convert(1, delta/(2*b))
				return e*math.Sqrt(2*b*math.Log(2/delta)) + b*e*(math.Exp(e)-1)
			}()},
		} {
			if !(c.got >= c.want*(1-1e-9) && c.got <= c.want*1.015) {
				t.Errorf("%d batches: %+v: %v, want %v", batches, r, c.got, c.want)
			}
		}
		if batches > 1 && !(r.Renyi < r.Advanced && r.Renyi < r.Simple) {
			t.Errorf("%+v", r)
		}
	}
	// (14) and (15). The share of a batch by [Chowdhury and Zhou 2023] is ε/(2√(2B log(2/δ))) with
	// δ/(2B); an even share is more for 100 batches, not for 1000.
	total := privacy.Approx{Epsilon: 1, Delta: delta}
	for _, c := range []struct {
		batches                int
		concentrated, advanced float64
		share                  privacy.Approx
	}{{100, 45.3088, 412.357, privacy.Approx{Epsilon: 0.01, Delta: delta / 100}},
		{1000, 143.279, 1526.59, privacy.Approx{Epsilon: 1 / (2 * math.Sqrt(2*1000*math.Log(2/delta))),
			Delta: delta / 2000}}} {
		concentrated, advanced, err := privacy.ReturningSigma(total, c.batches)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "concentrated", concentrated, c.concentrated, 1e-5)
		near(t, "advanced", advanced, c.advanced, 1e-5)
		rho := float64(c.batches) / (2 * concentrated * concentrated)
		near(t, "ε of ρ", privacy.ZCDPToApproxTight(rho, delta), 1, 1e-9)
		near(t, "ρ", rho, privacy.ApproxToZCDP(total), 1e-12)
		// of ρ + 2√(ρ log(1/δ))
		if plain := math.Pow(math.Sqrt(math.Log(1/delta)+1)-math.Sqrt(math.Log(1/delta)), 2); !(rho > plain) {
			t.Errorf("ρ = %v, not above the closed form's %v", rho, plain)
		}
		want, err := privacy.AnalyticSigma(c.share)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the share's", advanced, want, 1e-9)
	}
	for _, c := range []struct {
		batches int
		delta   float64
		mention string
	}{{0, 0.1, "batches is 0, must be at least 1"}, {1, 0, "delta is 0"}, {1, 1, "delta is 1"},
		{1, math.NaN(), "delta is NaN"}} {
		if _, err := privacy.ReturningUsers(m.Loss(), c.batches, c.delta); err == nil ||
			!strings.Contains(err.Error(), c.mention) {
			t.Error(err)
		}
		if _, _, err := privacy.ReturningSigma(privacy.Approx{Epsilon: 1, Delta: c.delta},
			c.batches); err == nil || !strings.Contains(err.Error(), c.mention) {
			t.Error(err)
		}
	}
	if r, err := privacy.ReturningUsers(privacy.InfiniteLoss(), 3, 0.1); err != nil ||
		!math.IsInf(r.Renyi, 1) || !math.IsInf(r.Advanced, 1) {
		t.Errorf("%+v, %v", r, err)
	}
}
