package linear_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// A knowing policy says how far effects may be off.
type knowing interface {
	Mechanism() privacy.Mechanism
	Play(a []float64)
	Due() int
	Cut() []int64
	Learn(privacy.ReleasedVector)
	Within(x []float64, risk, norm float64) (lo, hi float64)
}

// Intervals of effects hold at all releases together, in more runs than they promise; those of a copy that
// knows of no noise do not. 40 runs at a risk of 0.05, where more than 20 that miss have a probability below
// 1e-14: none does, as the bounds are wide.
func TestWithin(t *testing.T) {
	testkit.OneGoroutine(t)
	const d, decisions, runs, risk = 4, 2000, 40, 0.05
	theta := []float64{-0.9, 0.5, 0.3, -0.4} // of an intercept, and of vectors whose unit ball is divided by 2
	some := [][]float64{{0, 1, 0, 0}, {0, 1, -1, 0}, {0, 0, 0, 1}, {0, 0.5, 0, 0.5}}
	grid := func(x float64) float64 { return math.Trunc(x*(1<<20)) / (1 << 20) }
	for name, made := range map[string]func(b privacy.Budget) knowing{
		"adac-oful": func(b privacy.Budget) knowing {
			p, err := linear.NewOFUL(d, 0, b, linear.OFULOptions{Lambda: 1, C: 0.5, Risk: 0.05, Split: true})
			must(t, err)
			return p
		},
		"dp-lin-ts": func(b privacy.Budget) knowing {
			return linTS(t, d, b, linear.LinTSOptions{Alpha: 1, First: 50, Norm: 2})
		},
	} {
		t.Run(name, func(t *testing.T) {
			missed, bare := 0, 0
			for run := range runs {
				rng := rand.New(rand.NewPCG(uint64(run), 35))
				p, other := made(privacy.ZCDP{Rho: 0.01}), made(privacy.None{})
				sigma := p.Mechanism().(privacy.VectorGaussian).Sigma
				sum, n := make([]float64, d), 0
				out := func(p knowing) bool {
					return slices.ContainsFunc(some, func(x []float64) bool {
						lo, hi := p.Within(x, risk, 2)
						at := dot(theta, x)
						return !(lo <= at && at <= hi)
					})
				}
				wrong, copied := false, false
				for range decisions {
					a := []float64{0.5, 0, 0, grid(0.5 * rng.Float64())}
					a[1+rng.IntN(2)] = 0.5
					for i, x := range a {
						sum[i] += x * sign(rng, dot(theta, a))
					}
					n++
					p.Play(a)
					other.Play(a)
					if p.Due() < 0 {
						continue
					}
					p.Cut()
					other.Cut()
					for i := range sum {
						sum[i] += sigma * rng.NormFloat64()
					}
					r, err := privacy.NewLedger().ReleaseVector(0, p.Mechanism(), &privacy.Vector{N: n, Value: sum})
					must(t, err)
					p.Learn(r)
					other.Learn(r)
					sum, n = make([]float64, d), 0
					wrong, copied = wrong || out(p), copied || out(other)
				}
				if wrong {
					missed++
				}
				if copied {
					bare++
				}
			}
			if missed > 20 || bare <= 20 {
				t.Errorf("in %d of %d runs an interval misses, and in %d where noise is not known of; want at most 20, "+
					"and more", missed, runs, bare)
			}
		})
	}
}

// What a set says of a direction is what it says of its vectors: within it no other is farther off.
func TestWithinIsTheSet(t *testing.T) {
	for name, p := range map[string]interface {
		Estimate() ([]float64, float64)
		Within(x []float64, risk, norm float64) (lo, hi float64)
	}{
		"lin-ucb": func() *linear.LinUCB {
			p, err := linear.NewLinUCB(2, 100, privacy.ZCDP{Rho: 1}, linear.LinUCBOptions{Risk: 0.01, Lambda: 1})
			must(t, err)
			return p
		}(),
		"jdp-greedy": jdpGreedy(t, 2, 100, privacy.ZCDP{Rho: 1}, linear.JDPGreedyOptions{Risk: 0.01, First: 50,
			Growth: 1.5, Leaf: 100}),
	} {
		theta, radius := p.Estimate()
		x := []float64{0.6, -0.8}
		lo, hi := p.Within(x, 0.05, 1)
		if got := (hi - lo) / 2; !(got > 0) || math.Abs((hi+lo)/2-dot(theta, x)) > 1e-12 || got > radius*1.0001 {
			t.Errorf("%s: %v to %v, of a radius of %v", name, lo, hi, radius)
		}
		if lo, hi := p.Within(x, 0.001, 1); !math.IsInf(lo, -1) || !math.IsInf(hi, 1) {
			t.Errorf("%s: %v to %v at a risk that its set does not have", name, lo, hi)
		}
		if l, h := p.Within(x, 0.05, 2); !(l < lo && h > hi) {
			t.Errorf("%s: %s for a larger model, no wider than %v to %v", name, fmt.Sprint(l, h), lo, hi)
		}
	}
	if lo, hi := linTS(t, 2, privacy.None{}, linear.LinTSOptions{First: 10, Memory: 100}).Within([]float64{1, 0}, 0.05, 1); !math.IsInf(lo, -1) ||
		!math.IsInf(hi, 1) {
		t.Errorf("%v to %v of a world that moves", lo, hi)
	}
}
