package release

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// The harness looks at a curator from outside, as an auditor would, and names what is wrong with
// it. Good curators must pass it, and the broken twins in twins_test.go must be caught by it.
// Statistical checks have fixed seeds and a false-alarm probability below 1e-6 each.

// maker builds a curator of three arms on [0,1]; different runs have independent noise.
type maker func(m privacy.Mechanism, run int) (Curator, error)

func simulatedMaker(m privacy.Mechanism, run int) (Curator, error) {
	s := &noise.Key{Seed: 7, Run: run, Role: noise.RoleNoise}.Fast(1)[0]
	return Simulated(Config{Arms: 3, Mechanism: m}, s)
}

func exactMaker(m privacy.Mechanism, run int) (Curator, error) {
	return exact(Config{Arms: 3, Mechanism: m}, noise.Key{Seed: 7, Run: run, Role: noise.RoleNoise}.ChaCha8())
}

// z is the number of standard errors beyond which a check fails: P(|N| > 5.2) = 2e-7.
const z = 5.2

const replicates = 4000

// inspect returns the names of the checks that fail.
func inspect(t testing.TB, build maker, m privacy.Mechanism) []string {
	t.Helper()
	var bad []string
	fail := func(name, format string, args ...any) {
		if !slices.Contains(bad, name) {
			bad = append(bad, name)
		}
		t.Logf("%s: %s", name, fmt.Sprintf(format, args...))
	}
	newCurator := func(run int) Curator {
		c, err := build(m, run)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	add := func(c Curator, arm int, rewards ...float64) {
		for _, x := range rewards {
			if err := c.Add(arm, x); err != nil {
				t.Fatal(err)
			}
		}
	}
	release := func(c Curator, arms ...int) []float64 {
		r, err := c.Release(arms)
		if errors.Is(err, privacy.ErrPrefix) {
			fail("one look", "the ledger refuses another sum of the same rewards: %v", err)
			return make([]float64, len(arms))
		} else if err != nil {
			t.Fatal(err)
		}
		out := []float64{}
		for i := range arms {
			out = append(out, r.Sum(i))
		}
		return out
	}

	// law and independence: one reward in each of two arms, released together, and then
	// one more in each.
	var first, second, product, next []float64
	for run := range replicates {
		c := newCurator(run)
		add(c, 0, 1)
		add(c, 1, 0)
		x := release(c, 0, 1)
		first, second = append(first, x[0]-1), append(second, x[1])
		product = append(product, (x[0]-1)*x[1])
		add(c, 0, 1)
		y := release(c, 0)
		if m.Continual() {
			next = append(next, (x[0]-1)*(y[0]-2))
		} else {
			next = append(next, (x[0]-1)*(y[0]-1))
		}
	}
	cdf, deviation := oneDraw(m)
	for _, sample := range [][]float64{first, second} {
		if d, limit := kolmogorov(sample, cdf), math.Sqrt(math.Log(2/1e-7)/(2*replicates)); d > limit {
			fail("law", "Kolmogorov distance of one release is %.4f, above %.4f", d, limit)
		}
	}
	v := deviation * deviation
	if meanTest(product, 0, v) > z {
		fail("independent arms", "noise of two arms is correlated")
	}
	// A tree's t = 1 and 2 share no node; a hybrid's share Lap(b), and [2,2] has Lap(2b), so x(x+y)
	// has mean 2b² = v and variance (24−4+2·8)b⁴ = (3v)². A base-3 tree's t = 1 is a node of level
	// 0 and t = 2 one of level 1 less another of level 0. Normal variates b z_1 + z_2 after z_1
	// have covariance b, and the product has variance 1 + 2b².
	covariance, spread := 0.0, v
	switch m := m.(type) {
	case privacy.Hybrid:
		covariance, spread = v, 3*v
	case privacy.SquareRoot:
		covariance, spread = v/2, v*math.Sqrt(1.5)
	case privacy.BLT:
		b := 1.0
		for _, w := range m.Weight {
			b -= w
		}
		covariance, spread = b*v, v*math.Sqrt(1+2*b*b)
	case privacy.KAry: // the second has two nodes
		spread = v * math.Sqrt2
	}
	if meanTest(next, covariance, spread) > z {
		fail("successive releases", "noise of the first and the second release has the wrong covariance")
	}

	// looks: a released number is released again as it is.
	c := newCurator(0)
	for range 7 {
		add(c, 0, 1)
		a := release(c, 0)
		if !m.Continual() {
			if _, err := c.Release([]int{0}); err == nil {
				fail("one look", "an emptied slot was released again")
			}
		} else if b := release(c, 0); a[0] != b[0] {
			fail("one look", "the sum was %v and then %v", a[0], b[0])
		}
	}
	// Continual releases that differ by one node.
	if at, factor := shared(m); at > 0 {
		var difference []float64
		for run := range replicates {
			c := newCurator(run)
			for range at {
				add(c, 0, 0)
			}
			a := release(c, 0)
			add(c, 0, 0)
			b := release(c, 0)
			difference = append(difference, (b[0]-a[0])/factor)
		}
		if d, limit := kolmogorov(difference, cdf), math.Sqrt(math.Log(2/1e-7)/(2*replicates)); d > limit {
			fail("shared nodes", "the noise between t = %d and %d is no single node's: "+
				"Kolmogorov distance %.4f, above %.4f", at, at+1, d, limit)
		}
	}

	// sensitivity: the same noise, inputs that differ in one reward of arm 0. One-shot releases
	// differ by at most 1 in sum over all of them, as a reward is in one of them; continual ones
	// by at most 1 each.
	for _, pair := range [][2]float64{{0, 1}, {0, 1e6}, {-1e6, 1}, {math.Inf(-1), math.Inf(1)}} {
		for changed := range 5 {
			var out [2][]float64
			for side := range 2 {
				c := newCurator(3)
				for i := range 5 {
					x := 0.5
					if i == changed {
						x = pair[side]
					}
					add(c, 0, x)
					add(c, 1, 0.25)
					if i%2 == 1 || m.Continual() {
						out[side] = append(out[side], release(c, 0, 1)...)
					}
				}
				add(c, 0, 0.5)
				add(c, 1, 0.5)
				out[side] = append(out[side], release(c, 0, 1)...)
			}
			total, largest := 0.0, 0.0
			for i := range out[0] {
				d := math.Abs(out[0][i] - out[1][i])
				if math.IsNaN(d) {
					d = math.Inf(1)
				}
				total += d
				largest = max(largest, d)
			}
			if m.Continual() {
				total = largest
			}
			if total > 1+1e-9 {
				fail("sensitivity", "reward %d changed from %v to %v: releases moved by %v",
					changed, pair[0], pair[1], total)
			}
			if total < 0.5 {
				fail("sensitivity", "reward %d changed from %v to %v: releases moved by %v only",
					changed, pair[0], pair[1], total)
			}
		}
	}

	// price: what was charged is one mechanism, and no less than promised.
	if got, want := c.Ledger().Total(),
		m.Loss(); !(math.Abs(got.Pure()-want.Pure()) <= 1e-5*want.Pure() || math.IsInf(want.Pure(), 1)) ||
		math.Abs(got.ZCDP()-want.ZCDP()) > 1e-5*want.ZCDP() {
		fail("price", "the ledger has %v, the mechanism is %v", got, want)
	}
	return bad
}

// shared is a number of rewards at which the next one adds a single node, and that node's scale.
func shared(m privacy.Mechanism) (at int, factor float64) {
	switch m.(type) {
	case privacy.Tree:
		return 6, 1
	case privacy.Hybrid:
		return 5, 3 // {1} {2,3} [4,5] and then [6,6]
	case privacy.KAry:
		return 6, 1 // base 3: [1,9] less [7,9], and then [7,7]
	}
	return 0, 1
}

// oneDraw is the distribution function of one draw of a mechanism, and its standard deviation.
func oneDraw(m privacy.Mechanism) (func(float64) float64, float64) {
	laplace := func(b float64) (func(float64) float64, float64) {
		return func(x float64) float64 {
			if x < 0 {
				return math.Exp(x/b) / 2
			}
			return 1 - math.Exp(-x/b)/2
		}, b * math.Sqrt2
	}
	normal := func(sigma float64) (func(float64) float64, float64) {
		return func(x float64) float64 { return math.Erfc(-x/sigma/math.Sqrt2) / 2 }, sigma
	}
	switch m := m.(type) {
	case privacy.Laplace:
		return laplace(m.Scale)
	case privacy.Tree:
		return laplace(m.Scale)
	case privacy.Hybrid:
		return laplace(m.Scale)
	case privacy.KAry:
		return laplace(m.Scale)
	case privacy.Gaussian:
		return normal(m.Sigma)
	case privacy.SquareRoot:
		return normal(m.Sigma)
	case privacy.BLT:
		return normal(m.Sigma)
	}
	panic("no noise")
}

// kolmogorov is the largest distance between a sample's distribution function and cdf.
func kolmogorov(sample []float64, cdf func(float64) float64) float64 {
	s := slices.Sorted(slices.Values(sample))
	d := 0.0
	for i, x := range s {
		f := cdf(x)
		d = max(d, f-float64(i)/float64(len(s)), float64(i+1)/float64(len(s))-f)
	}
	return d
}

// meanTest is how many standard errors the sample's mean is from want; deviation is
// that of one of them.
func meanTest(sample []float64, want, deviation float64) float64 {
	sum := 0.0
	for _, x := range sample {
		sum += x
	}
	n := float64(len(sample))
	return math.Abs(sum/n-want) / (deviation / math.Sqrt(n))
}
