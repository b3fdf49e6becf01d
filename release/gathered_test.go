package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	mathbig "math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// gatherings are the trust models, each with three users a cohort where it has cohorts.
var gatherings = []Gathering{{Trust: privacy.TrustTwoServer}, {Trust: privacy.TrustLocal},
	{Trust: privacy.TrustSecAgg, Users: 3}}

// gathered is what comes to the curator of rewards that nobody sees: of a slot of four decisions
// the rewards 1, 1/4 and 0, in steps, with the noise of the others. parties says how many draw.
func gathered(t testing.TB, g Gathering, stated privacy.Mechanism, parties int, src rand.Source) int64 {
	t.Helper()
	sum := int64(gridSteps + gridSteps/4)
	if g.Trust == privacy.TrustSecAgg {
		m, err := CohortMechanism(stated, g, 3)
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRandomizer(m, src, nil)
		if err != nil {
			t.Fatal(err)
		}
		total := uint64(0)
		for i, y := range []float64{1, 0.25, 0} {
			message, err := r.messages(nil, y)
			if err != nil {
				t.Fatal(err)
			}
			if i >= parties { // has no noise
				message[0] = uint64(y * gridSteps)
			}
			total = addMod(total, message[0], r.modulus)
		}
		a, err := newAnalyser(m, src, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.decode(total, 3)
	}
	n, err := NoiseOf(stated)
	if err != nil {
		t.Fatal(err)
	}
	for range parties {
		z, err := n.draw(src)
		if err != nil {
			t.Fatal(err)
		}
		sum += z
	}
	return sum
}

// partiesOf is how many others draw noise.
func partiesOf(g Gathering) int {
	if g.Trust == privacy.TrustTwoServer {
		return 1
	}
	return 3
}

// A gatheredTwin is what is done to a Gathered that tests should notice; the zero value is nothing.
type gatheredTwin struct {
	parties int                                           // less or more of the others
	curator func(c *Gathered, own Noise, src rand.Source) // before each release
}

// gatheredLaw is the p-value of what is released, in steps, against the law that is promised.
func gatheredLaw(t testing.TB, g Gathering, stated privacy.Mechanism, twin gatheredTwin) float64 {
	t.Helper()
	key := noise.Key{Seed: 5, Experiment: fmt.Sprint(g, stated), Role: noise.RoleNoise}
	others := key.ChaCha8()
	key.Run = 1
	c, err := newGathered(Config{Arms: 2, Mechanism: stated}, g, key.ChaCha8())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := NoiseOf(stated)
	if err != nil {
		t.Fatal(err)
	}
	one := laplaceMass(float64(whole.Num) / float64(whole.Den))
	if whole.Name == privacy.NoiseGaussian {
		one = gaussianMass(float64(whole.Num) / float64(whole.Den))
	}
	noises := map[privacy.Trust]int{privacy.TrustTwoServer: 2, privacy.TrustLocal: 3,
		privacy.TrustSecAgg: 1}[g.Trust]
	want := one.times(noises)
	if g.Trust == privacy.TrustSecAgg && whole.Name == privacy.NoiseGaussian {
		m, err := CohortMechanism(stated, g, 3)
		if err != nil {
			t.Fatal(err)
		}
		want = gaussianMass(float64(m.Num) / float64(m.Den)).times(3)
	}
	const at = gridSteps + gridSteps/4 + gridSteps/2 // and the public default of the fourth
	want.low += at
	return pValue(testkit.Size(20_000, 100_000), func() int {
		sum := gathered(t, g, stated, partiesOf(g)+twin.parties, others)
		if twin.curator != nil {
			twin.curator(c, whole, others)
		}
		if err := c.AddSteps(1, 4, gridSteps/2); err != nil {
			t.Fatal(err)
		}
		if err := c.AddNoisy(1, 3, sum); err != nil {
			t.Fatal(err)
		}
		r, err := c.Release([]int{1})
		if err != nil {
			t.Fatal(err)
		}
		return int(math.Round(r.Sum(0) * gridSteps))
	}, want)
}

var smallNoise = []privacy.Mechanism{privacy.Laplace{Scale: 2e-5}, privacy.Gaussian{Sigma: 3e-5}}

// What is released has the law that is promised: of two whole noises between two servers, of one
// whole noise for each answer under local trust, of one whole noise for a cohort. 6 laws, with a
// false-alarm probability of 10^-6 each.
func TestGatheredLaw(t *testing.T) {
	for _, g := range gatherings {
		for _, m := range smallNoise {
			if p := gatheredLaw(t, g, m, gatheredTwin{}); !(p > falseAlarm) {
				t.Errorf("%s, %v: χ² p-value %v", g.Trust, m, p)
			}
		}
	}
}

// Twins with less noise, or more, are caught.
func TestGatheredTwinsAreCaught(t *testing.T) {
	testkit.OneGoroutine(t)
	quiet := func(c *Gathered, _ Noise, _ rand.Source) { c.curator.noise = silent{} }
	own := func(times uint64) func(*Gathered, Noise, rand.Source) {
		return func(c *Gathered, n Noise, src rand.Source) {
			if n.Num *= times; times == 0 { // half
				n.Num = c.plan.whole.Num / 2
			}
			var err error
			if c.curator.noise, err = n.law(src); err != nil {
				panic(err)
			}
		}
	}
	for what, c := range map[string]struct {
		trusts []int
		twin   gatheredTwin
	}{
		"no noise of the leader's own":   {[]int{0}, gatheredTwin{curator: quiet}},
		"no noise of the helper":         {[]int{0}, gatheredTwin{parties: -1}},
		"half of the leader's noise":     {[]int{0}, gatheredTwin{curator: own(0)}},
		"twice the leader's noise":       {[]int{0}, gatheredTwin{curator: own(2)}},
		"a user without noise":           {[]int{1, 2}, gatheredTwin{parties: -1}},
		"noise of the curator's own too": {[]int{1, 2}, gatheredTwin{curator: own(1)}},
	} {
		for _, g := range c.trusts {
			for _, m := range smallNoise {
				if p := gatheredLaw(t, gatherings[g], m, c.twin); p > falseAlarm {
					t.Errorf("%s, %s, %v: not caught, χ² p-value %v", what, gatherings[g].Trust, m, p)
				}
			}
		}
	}
}

// No release costs more than Real's: with Laplace noise in no currency more than its ε promises,
// with normal noise in none more than its ρ promises. (Of one discrete Gaussian the ledger knows an
// (ε,δ) that is less than its ρ promises: that of μ-GDP. Of what two parties add it does not.)
func TestGatheredPriceIsCentrals(t *testing.T) {
	for _, stated := range []privacy.Mechanism{privacy.Laplace{Scale: 0.3}, privacy.Laplace{Scale: 1},
		privacy.Laplace{Scale: 10}, privacy.Laplace{Scale: 1000}, privacy.Gaussian{Sigma: 0.5},
		privacy.Gaussian{Sigma: 2.236}, privacy.Gaussian{Sigma: 200}} {
		central, err := exactPlan(stated, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range gatherings {
			for _, n := range []int{1, 7, 1000} {
				m, err := GatheredMechanism(stated, g, n)
				if err != nil {
					t.Fatal(err)
				}
				have, most := m.Loss(), central.charge.Loss()
				for _, like := range []privacy.Budget{privacy.Pure{}, privacy.ZCDP{},
					privacy.Approx{Delta: 1e-6}, privacy.Renyi{Alpha: 8}} {
					limit := most.In(like)
					// what its ε promises in each currency
					if _, pure := stated.(privacy.Laplace); pure {
						limit = privacy.LossOf(privacy.Pure{Epsilon: most.Pure()}).In(like)
					}
					if _, pure := stated.(privacy.Laplace); !pure { // Real's (ε,δ) is that of μ-GDP
						if b, ok := limit.(privacy.Approx); ok {
							limit = privacy.LossOf(most.In(privacy.ZCDP{})).In(b)
						}
					}
					if !have.Within(limit) {
						t.Errorf("%v, %s, n = %d: costs %v, must be within %v", stated, g.Trust, n,
							have.In(like), limit)
					}
				}
				if _, pure := stated.(privacy.Laplace); pure {
					if e, c := have.Pure(), most.Pure(); e > c || e < c*(1-1e-6) {
						t.Errorf("%v, %s: ε = %v, and Real's is %v", stated, g.Trust, e, c)
					}
				}
			}
		}
	}
}

// Given the sum of both servers' noises, two servers release what a server that is believed does:
// the same sum, of as many.
func TestTwoServersReleaseWhatOneDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stated := rapid.SampledFrom([]privacy.Mechanism{privacy.Laplace{Scale: 2},
			privacy.Gaussian{Sigma: 1.5}}).
			Draw(t, "mechanism")
		seed := rapid.Uint64().Draw(t, "seed")
		two, err := newGathered(Config{Arms: 1, Mechanism: stated}, Gathering{Trust: privacy.TrustTwoServer},
			rand.NewPCG(seed, 1))
		if err != nil {
			t.Fatal(err)
		}
		one, err := newExact(Config{Arms: 1, Mechanism: stated}, rand.NewPCG(seed, 2))
		if err != nil {
			t.Fatal(err)
		}
		whole := two.plan.whole
		for range rapid.IntRange(1, 4).Draw(t, "releases") {
			steps := rapid.SliceOfN(rapid.Int64Range(0, gridSteps), 1, 20).Draw(t, "steps")
			// of these the public default counts
			late := rapid.IntRange(0, len(steps)).Draw(t, "late")
			sum, missing := int64(0), int64(0)
			for i, x := range steps {
				if i < late {
					missing += x
				} else {
					sum += x
				}
			}
			helper, err := whole.draw(rand.NewPCG(seed, uint64(sum)))
			if err != nil {
				t.Fatal(err)
			}
			if err := two.AddSteps(0, len(steps), missing); err != nil {
				t.Fatal(err)
			}
			if err := two.AddNoisy(0, len(steps)-late, sum+helper); err != nil {
				t.Fatal(err)
			}
			// both servers' noises, added by one
			leader, err := two.curator.noise.Draw(1)
			if err != nil {
				t.Fatal(err)
			}
			two.curator.noise, one.noise = fixed(leader), fixed(leader+helper)
			if err := one.AddSteps(0, len(steps), sum+missing); err != nil {
				t.Fatal(err)
			}
			a, err := two.Release([]int{0})
			if err != nil {
				t.Fatal(err)
			}
			b, err := one.Release([]int{0})
			if err != nil {
				t.Fatal(err)
			}
			if a.Sum(0) != b.Sum(0) || a.N(0) != b.N(0) {
				t.Fatalf("two servers release %v of %d, one %v of %d", a.Sum(0), a.N(0), b.Sum(0), b.N(0))
			}
			if two.curator.noise, err = whole.law(rand.NewPCG(seed, 3+uint64(late))); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// fixed is noise that is known.
type fixed int64

func (f fixed) Draw(int) (int64, error) { return int64(f), nil }

// The tail of a release bounds its noise, on either side: exactly, by convolution, for one to five
// answers of five decisions. Of two Laplace noises it bounds both sides together, and not by much more.
func TestGatheredTails(t *testing.T) {
	for _, g := range gatherings {
		for _, stated := range smallNoise {
			c, err := newGathered(Config{Arms: 1, Mechanism: stated}, g, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.AddSteps(0, 5, 0); err != nil {
				t.Fatal(err)
			}
			form, err := c.outline([]int{0})
			if err != nil {
				t.Fatal(err)
			}
			m, tail := form.Mechanism.(privacy.Aggregated), form.Tail
			whole := c.plan.whole
			x := float64(whole.Num) / float64(whole.Den)
			one := laplaceMass(x)
			if whole.Name == privacy.NoiseGaussian {
				one = gaussianMass(x)
			}
			for answers := 1; answers <= 5; answers++ {
				sum := one.times(answers)
				switch {
				case g.Trust == privacy.TrustTwoServer:
					sum = one.times(2)
				case g.Trust == privacy.TrustSecAgg && answers < 3: // no cohort
					continue
				case g.Trust == privacy.TrustSecAgg && whole.Name == privacy.NoiseGaussian:
					sum = gaussianMass(float64(m.Num) / float64(m.Den)).times(answers)
				case g.Trust == privacy.TrustSecAgg:
					h := negativeMass(float64(answers)/3, x)
					sum = h.minus(h)
				}
				for _, l := range []float64{0.1, 0.7, 2, 5, 10, 20, 30} {
					p := above(sum, oneSided(tail, l)*gridSteps)
					if p > math.Exp(-l)*(1+1e-9) {
						t.Errorf("%s, %v, %d answers: P(noise > tail(%v)) is %v", g.Trust, stated, answers, l, p)
					}
					if tail.Sigma > 0 {
						continue
					}
					if both := 2 * p; both > math.Exp(-l)*(1+1e-9) || l >= 5 && both < math.Exp(-l)/2 {
						t.Errorf("%s, %v: P(|noise| > tail(%v)) is %v", g.Trust, stated, l, both)
					}
				}
			}
		}
	}
}

func oneSided(t privacy.Tail, x float64) float64 {
	return float64(t.Sigma*math.Sqrt(2*x)) + t.H*(x+t.Log)
}

// The formula behind the tail of two Laplace noises is that of the convolution, and its bound holds,
// down to noise of less than a step. (The convolution leaves out what is below 10^-18 at an end, some
// 10^-16 in all.)
func TestTwoLaplaces(t *testing.T) {
	for _, b := range []float64{0.3, 1, 3, 16.02, 100} {
		sum, beta := laplaceMass(b).times(2), math.Exp(-1/b)
		for y := 0; y < int(20*b); y += 1 + int(b/3) {
			p := above(sum, float64(y)-0.5)
			exact := math.Pow(beta, float64(y)) * ((1+beta+2*beta*beta)/(1+beta) + float64(y)*(1-beta)) /
				(1 + beta) / (1 + beta)
			z := float64(y) / b
			bound := 0.5 * (1 + z/2) * math.Exp(-z) * math.Exp(1/(2*b))
			if math.Abs(p-exact) > 1e-9*exact+1e-15 || exact > bound*(1+1e-12) {
				t.Errorf("b = %v: P(S ≥ %d) is %v, the formula %v, the bound %v", b, y, p, exact, bound)
			}
		}
		tail := twoLaplaces(b)
		for l := 0.0; l < 30; l += 0.25 {
			if p := 2 * above(sum, tail.H*gridSteps*(l+tail.Log)); p > math.Exp(-l)*(1+1e-9) {
				t.Errorf("b = %v: P(|S| > tail(%v)) is %v", b, l, p)
			}
		}
	}
}

// above is the mass above x.
func above(m mass, x float64) (p float64) {
	for i, q := range m.p {
		if float64(m.low+i) > x {
			p += q
		}
	}
	return p
}

// The ledger's line says who is believed, and an outline says all of it but the sums.
func TestGatheredLine(t *testing.T) {
	for _, g := range gatherings {
		var text bytes.Buffer
		cfg := Config{Arms: 3, Lo: -1, Hi: 3, Mechanism: privacy.Laplace{Scale: 2},
			Ledger: privacy.NewLedger(privacy.WithTranscript(&text),
				privacy.WithCap(privacy.Pure{Epsilon: 0.5}))}
		c, err := newGathered(cfg, g, noise.Key{Seed: 3}.ChaCha8())
		if err != nil {
			t.Fatal(err)
		}
		o, err := NewGatheredOutline(cfg, g)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range [][]int{{5, 0, 900}, {1, 0, 0}, {4, 4, 4}} {
			var arms []int
			for a, n := range batch {
				if n == 0 {
					continue
				}
				arms = append(arms, a)
				if err := c.AddSteps(a, n, 0); err != nil {
					t.Fatal(err)
				}
				if err := c.AddNoisy(a, n, 12345); err != nil {
					t.Fatal(err)
				}
				if err := o.Play(a, n); err != nil {
					t.Fatal(err)
				}
			}
			text.Reset()
			if _, err := c.Release(arms); err != nil {
				t.Fatal(err)
			}
			want, err := o.Release(arms)
			if err != nil {
				t.Fatal(err)
			}
			var line struct {
				Slots     []int
				N         []int
				Mechanism json.RawMessage
				Tail      privacy.Tail
			}
			if err := json.Unmarshal(text.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			m, err := privacy.UnmarshalMechanism(line.Mechanism)
			if err != nil {
				t.Fatal(err)
			}
			if got := (Form{line.Slots, m, line.N, line.Tail}); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: the line is %v, the outline %v", g.Trust, got, want)
			}
			if m.(privacy.Aggregated).Trust != g.Trust {
				t.Errorf("%s: the line says %v", g.Trust, m)
			}
		}
		if e := c.Ledger().Total().Pure(); !(e > 0.4999 && e <= 0.5) {
			t.Errorf("%s: it has cost %v", g.Trust, e)
		}
	}
}

// A gathered sum is told once, for a release that has it, and there is no other way in.
func TestGatheredRefuses(t *testing.T) {
	laplace := privacy.Laplace{Scale: 1}
	build := func() *Gathered {
		c, err := RealGathered(Config{Arms: 2, Mechanism: laplace}, Gathering{Trust: privacy.TrustTwoServer})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddSteps(0, 3, 0); err != nil {
			t.Fatal(err)
		}
		return c
	}
	release := func(c *Gathered) error { _, err := c.Release([]int{0}); return err }
	for want, try := range map[string]func(c *Gathered) error{
		"whose sum was not gathered": release,
		"with 4 answers, of 3 decisions": func(c *Gathered) error {
			if err := c.AddNoisy(0, 4, 0); err != nil {
				return err
			}
			return release(c)
		},
		"gathered already": func(c *Gathered) error {
			if err := c.AddNoisy(0, 3, 0); err != nil {
				return err
			}
			return c.AddNoisy(0, 3, 0)
		},
		"slot is empty": func(c *Gathered) error {
			if err := c.AddNoisy(0, 3, 0); err != nil {
				return err
			}
			if err := release(c); err != nil {
				return err
			}
			return release(c)
		},
		"arm is 2":          func(c *Gathered) error { return c.AddNoisy(2, 0, 0) },
		"answers of arm 0":  func(c *Gathered) error { return c.AddNoisy(0, -1, 0) },
		"none comes in":     func(c *Gathered) error { return c.Add(0, 1) },
		"none comes in the": func(c *Gathered) error { return c.AddSum(0, 1, 1) },
		errAsk.Error():      func(c *Gathered) error { _, err := c.Ask([]int{0}, 1); return err },
		"mechanism is \"tree\"": func(c *Gathered) error {
			return c.Forget(privacy.Tree{Scale: 1, Horizon: 8})
		},
	} {
		if err := try(build()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for want, c := range map[string]struct {
		cfg Config
		g   Gathering
	}{
		`trust is "central"`: {Config{Arms: 1, Mechanism: laplace},
			Gathering{Trust: privacy.TrustCentral}},
		`trust is ""`:              {Config{Arms: 1, Mechanism: laplace}, Gathering{}},
		"users is 1, must be 0":    {Config{Arms: 1, Mechanism: laplace}, Gathering{privacy.TrustLocal, 1}},
		"users is 1, must be from": {Config{Arms: 1, Mechanism: laplace}, Gathering{privacy.TrustSecAgg, 1}},
		"has no noise":             {Config{Arms: 1, Mechanism: privacy.Gaussian{}}, gatherings[0]},
		"mechanism is missing":     {Config{Arms: 1}, gatherings[0]},
		"sigma is 256, must be at": {Config{Arms: 1, Mechanism: privacy.Gaussian{Sigma: 256}}, gatherings[0]},
		"must be at most 1048576":  {Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1e7}}, gatherings[0]},
		"unclipped":                {Config{Arms: 1, Mechanism: laplace, Unclipped: true}, gatherings[0]},
		"must be missing where":    {Config{Arms: 1, Mechanism: laplace, Trust: &Trust{}}, gatherings[0]},
		"arms is 0":                {Config{Mechanism: laplace}, gatherings[0]},
	} {
		if c, err := RealGathered(c.cfg, c.g); c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v, %v", want, c, err)
		}
	}
}

// A release that the ledger's cap refuses leaves the slot, and what was gathered for it, as it was.
func TestGatheredSlotsAfterARefusal(t *testing.T) {
	c, err := RealGathered(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1},
		Ledger: privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.5}))}, gatherings[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddSteps(0, 3, 7); err != nil {
		t.Fatal(err)
	}
	if err := c.AddNoisy(0, 2, 10); err != nil {
		t.Fatal(err)
	}
	before := c.slots[0]
	if _, err := c.Release([]int{0}); err == nil {
		t.Fatal("the cap allows it")
	}
	if c.slots[0] != before || c.came[0] != (gatheredSum{true, 2, 10}) {
		t.Errorf("the slot is %+v with %+v, was %+v", c.slots[0], c.came[0], before)
	}
}

// Who lies under local trust adds no more than the noise could, and neither does a helper.
func TestGatheredIsClipped(t *testing.T) {
	for _, g := range gatherings {
		for _, sum := range []int64{math.MinInt64, math.MaxInt64} {
			c, err := newGathered(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}}, g,
				noise.Key{}.ChaCha8())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.AddSteps(0, 3, 0), c.AddNoisy(0, 3, sum)); err != nil {
				t.Fatal(err)
			}
			reach := c.plan.whole.Reach()
			switch g.Trust {
			case privacy.TrustLocal:
				reach *= 3
			case privacy.TrustTwoServer:
				reach *= 2
			}
			r, err := c.Release([]int{0})
			if err != nil {
				t.Fatal(err)
			}
			if got := int64(r.Sum(0) * gridSteps); got != -reach && got != 3*gridSteps+reach {
				t.Errorf("%s: %d", g.Trust, got)
			}
		}
	}
}

// Whatever a helper says its share is, what is released depends on the sum of the rewards and the
// leader's noise alone: one step more of the one and one less of the other release the same, also
// at the edges of the field and of the clip. Where the noise is added after either, they do not: so
// the twin is caught, by one sum.
func TestHelperThatLiesSeesNoise(t *testing.T) {
	stated, answers := privacy.Laplace{Scale: 1}, 3
	release := func(t *rapid.T, sum, said, noise int64) float64 {
		c, err := newGathered(Config{Arms: 1, Mechanism: stated}, gatherings[0], rand.NewPCG(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		c.curator.noise = fixed(noise)
		if err := errors.Join(c.AddSteps(0, answers, 0),
			c.AddNoisy(0, answers, inField(sum, said))); err != nil {
			t.Fatal(err)
		}
		r, err := c.Release([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		return r.Sum(0)
	}
	const edge = fieldOrder / 2
	plan, err := newGatheredPlan(stated, gatherings[0])
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		sum := rapid.Int64Range(0, int64(answers)*gridSteps-1).Draw(t, "sum")
		near := rapid.SampledFrom([]int64{0, edge, -edge, plan.reach(answers),
			-plan.reach(answers)}).Draw(t, "near")
		said := inField(near, rapid.Int64Range(-4, 4).Draw(t, "off")-sum)
		noise := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "noise")
		if a, b := release(t, sum, said, noise), release(t, sum+1, said, noise-1); a != b {
			t.Fatalf("%v, and %v of one step more and one less of noise", a, b)
		}
	})
	if a, b := plan.clip(inField(0, edge), answers), plan.clip(inField(1, edge), answers); a-b < 1<<20 {
		t.Errorf("the twin clips sums of one step between to %d and %d, and then adds noise: not caught", a, b)
	}
}

// The field's addition is that of integers modulo its order, in the representation next to 0.
func TestInField(t *testing.T) {
	order := new(mathbig.Int).SetUint64(fieldOrder)
	rapid.Check(t, func(t *rapid.T) {
		x, z := rapid.Int64().Draw(t, "x"), rapid.Int64().Draw(t, "z")
		want := new(mathbig.Int).Add(mathbig.NewInt(x), mathbig.NewInt(z))
		want.Mod(want, order)
		if want.Cmp(new(mathbig.Int).Rsh(order, 1)) > 0 {
			want.Sub(want, order)
		}
		if got := inField(x, z); mathbig.NewInt(got).Cmp(want) != 0 {
			t.Fatalf("%d + %d is %d, must be %v", x, z, got, want)
		}
	})
}

// The reach of a noise has all but 2^-64 of it.
func TestNoiseReach(t *testing.T) {
	for _, scale := range []float64{1e-6, 1e-3, 1, 100} {
		l, err := NoiseOf(privacy.Laplace{Scale: scale})
		if err != nil {
			t.Fatal(err)
		}
		b := float64(l.Num) / float64(l.Den)
		if p := 2 * math.Exp(-float64(l.Reach())/b); p > 0x1p-64 || p < 0x1p-67 {
			t.Errorf("%v: 2^%v is beyond", l, math.Log2(p))
		}
		g, err := NoiseOf(privacy.Gaussian{Sigma: scale})
		if err != nil {
			t.Fatal(err)
		}
		r := float64(g.Reach())
		if p := 2 * math.Exp(-float64(r*r)/2/float64(g.Num)); p > 0x1p-64 || p < 0x1p-72 {
			t.Errorf("%v: 2^%v is beyond", g, math.Log2(p))
		}
	}
}

// What a client sends: whole multiples are not random, others are rounded to a neighbour with the
// mean kept, and a local report is a reward's steps with a whole noise. The false-alarm probability
// of each law is 10^-6.
func TestWhatClientsSend(t *testing.T) {
	clip, err := NewClip(-1, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reward float64
		grid   int
		want   int
	}{{-1, 1, 0}, {3, 1, 1}, {7, 1024, 1024}, {math.Inf(-1), 8, 0}, {math.NaN(), 8, 0}, {0, 4, 1}, {1, 2, 1}} {
		if got, err := clip.Round(c.reward, c.grid); got != c.want || err != nil {
			t.Errorf("%v on a grid of %d: %d, %v", c.reward, c.grid, got, err)
		}
	}
	for _, grid := range []int{0, -1, gridSteps + 1} {
		if _, err := clip.Round(0, grid); err == nil {
			t.Errorf("grid %d is allowed", grid)
		}
	}
	src := noise.Key{Seed: 8}.ChaCha8()
	if p := pValue(20_000, func() int64 { return round(clip.share(0.2), 4, src) },
		mass{1, []float64{0.8, 0.2}}); !(p > falseAlarm) {
		t.Errorf("rounded: χ² p-value %v", p)
	}
	n, err := NoiseOf(privacy.Laplace{Scale: 2e-5})
	if err != nil {
		t.Fatal(err)
	}
	if n.String() != "laplace 1344/64" {
		t.Errorf("the law is %v", n)
	}
	for range 100 { // beyond the reach with probability 2^-57
		if x, err := LocalReport(n, clip, 1); err != nil || x < gridSteps/2-n.Reach() ||
			x > gridSteps/2+n.Reach() {
			t.Errorf("a local report of the middle is %d, %v", x, err)
		}
	}
	want := laplaceMass(1344. / 64)
	if p := pValue(20_000, func() int64 {
		z, err := n.draw(src)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}, want); !(p > falseAlarm) {
		t.Errorf("local noise: χ² p-value %v", p)
	}
	if _, err := (Noise{Name: "polya", Num: 1, Den: 1}).Draw(); err == nil {
		t.Error("a share is a whole noise")
	}
}

// In simulations the noise, the tail and the charge are those of gathered sums whose every decision
// is answered. 6 laws, with a false-alarm probability of 10^-6 each, and a twin with a noise less.
func TestSimulatedGathered(t *testing.T) {
	for _, g := range gatherings {
		for _, stated := range smallNoise {
			for _, missing := range []int{0, 1} {
				s := noise.Key{Seed: 5, Experiment: fmt.Sprint(g, stated), Role: noise.RoleNoise}.Fast(1)
				cur, err := SimulatedGathered(Config{Arms: 2, Mechanism: stated}, g, &s[0])
				if err != nil {
					t.Fatal(err)
				}
				c := cur.(*simulatedGathered)
				whole := c.own.plan.whole
				one := laplaceMass(float64(whole.Num) / float64(whole.Den))
				if whole.Name == privacy.NoiseGaussian {
					one = gaussianMass(float64(whole.Num) / float64(whole.Den))
				}
				want := one.times(map[privacy.Trust]int{privacy.TrustTwoServer: 2, privacy.TrustLocal: 3,
					privacy.TrustSecAgg: 1}[g.Trust] + missing)
				want.low += gridSteps / 2
				p := pValue(testkit.Size(20_000, 100_000), func() int {
					if err := c.AddSum(1, 3, 0.5); err != nil {
						t.Fatal(err)
					}
					r, err := c.Release([]int{1})
					if err != nil {
						t.Fatal(err)
					}
					return int(math.Round(r.Sum(0) * gridSteps))
				}, want)
				if (p > falseAlarm) != (missing == 0) {
					t.Errorf("%s, %v, %d noises missing: χ² p-value %v", g.Trust, stated, missing, p)
				}
			}
			s := noise.Key{Seed: 6}.Fast(1)
			cur, err := SimulatedGathered(Config{Arms: 2, Mechanism: stated}, g, &s[0])
			if err != nil {
				t.Fatal(err)
			}
			o, err := NewGatheredOutline(Config{Arms: 2, Mechanism: stated}, g)
			if err != nil {
				t.Fatal(err)
			}
			for a, n := range []int{9, 3} {
				if err := cur.AddSum(a, n, 1); err != nil {
					t.Fatal(err)
				}
				if err := o.Play(a, n); err != nil {
					t.Fatal(err)
				}
			}
			r, err := cur.Release([]int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			form, err := o.Release([]int{0, 1})
			if err != nil || r.Tail() != form.Tail || cur.Ledger().Total().Pure() != form.Mechanism.Loss().Pure() {
				t.Errorf("%s, %v: the tail is %v, of real rewards %v; %v", g.Trust, stated, r.Tail(), form.Tail, err)
			}
		}
	}
	if _, err := SimulatedGathered(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}}, Gathering{},
		&noise.Fast{}); err == nil {
		t.Error("nothing is gathered, and there is a curator")
	}
	if _, err := SimulatedGathered(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}}, gatherings[0],
		nil); err == nil {
		t.Error("a curator without noise")
	}
}
