package release

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// An exam is a curator of vectors as an auditor sees it: rewards of a few known actions go in,
// vectors come out.
type exam struct {
	add     func(action int, reward float64) error
	release func() (privacy.ReleasedVector, error)
	ledger  *privacy.Ledger
	inner   any // *actions or *features
}

// A sitting says how to examine a mechanism.
type sitting struct {
	name string
	set  [][]float64
	n    []int // how often each action is played before a release
	m    privacy.Mechanism
	of   [][]float64 // the vector that a reward of 1 of each action adds
	// covariance of the noise, whose span may be smaller than the space.
	covariance [][]float64
	// sensitivity² over the noise's covariance: (Δᵀ covariance⁺ Δ) of one reward
	// replaced is at most μ².
	mu2 float64
	// build is a curator with noise of its own for each seed.
	build func(seed uint64) (exam, error)
}

// What is played in the examinations: a plane in space, so that V is singular, with one action
// that is not played.
var (
	examined = [][]float64{{0.6, 0.8, 0}, {1, 0, 0}, {0, 0, 1}, {-0.5, 0.25, 0}}
	played   = []int{3, 1, 0, 2}
)

const examSigma = 1.5

func sittings(t testing.TB) []sitting {
	t.Helper()
	e, err := privacy.NewElliptic(examSigma, examined, played)
	must(t, err)
	shaped := e.V()
	for i := range shaped {
		for j := range shaped[i] {
			shaped[i][j] *= examSigma * examSigma
		}
	}
	diagonal := func(on ...float64) [][]float64 {
		m := make([][]float64, len(on))
		for i := range m {
			m[i] = make([]float64, len(on))
			m[i][i] = on[i] * examSigma * examSigma
		}
		return m
	}
	unit := func(k int) [][]float64 {
		m := make([][]float64, k)
		for i := range m {
			m[i] = make([]float64, k)
			m[i][i] = 1
		}
		return m
	}
	fixed := func(m privacy.Mechanism, exactly bool) func(seed uint64) (exam, error) {
		return func(seed uint64) (exam, error) {
			var c ActionCurator
			var err error
			if exactly {
				c, err = exactActions(examined, nil, rand.NewChaCha8([32]byte{byte(seed),
					byte(seed >> 8), byte(seed >> 16)}))
			} else {
				s := noise.NewFast(7, seed)
				c, err = SimulatedActions(examined, false, nil, &s)
			}
			if err != nil {
				return exam{}, err
			}
			return exam{c.Add, func() (privacy.ReleasedVector, error) {
				return c.Release(m)
			}, c.Ledger(), c}, nil
		}
	}
	free := func(m privacy.Mechanism, exactly bool) func(seed uint64) (exam, error) {
		return func(seed uint64) (exam, error) {
			cfg := FeatureConfig{Dim: 3, Slots: 2, Mechanism: m}
			var c FeatureCurator
			var err error
			if exactly {
				c, err = exactFeatures(cfg, rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8),
					byte(seed >> 16)}))
			} else {
				s := noise.NewFast(7, seed)
				c, err = SimulatedFeatures(cfg, &s)
			}
			if err != nil {
				return exam{}, err
			}
			return exam{func(i int, x float64) error { return c.Add(1, examined[i], x) },
				func() (privacy.ReleasedVector, error) { return c.Release(1) }, c.Ledger(), c}, nil
		}
	}
	sums, flat := privacy.Sums{Sigma: examSigma}, privacy.VectorGaussian{Sigma: examSigma}
	mu2 := 4 / (examSigma * examSigma)
	return []sitting{
		{"simulated elliptic", examined, played, e, examined, shaped, mu2 * e.G2(), fixed(e, false)},
		{"simulated sums", examined, played, sums, unit(4), diagonal(1, 1, 0, 1), mu2, fixed(sums, false)},
		{"real sums", examined, played, sums, unit(4), diagonal(1, 1, 0, 1), mu2, fixed(sums, true)},
		{"simulated vector-gaussian", examined, played, flat, examined, diagonal(1, 1, 1), mu2,
			free(flat, false)},
		{"real vector-gaussian", examined, played, flat, examined, diagonal(1, 1, 1), mu2, free(flat, true)},
	}
}

// play puts the sitting's rewards in, all of them x but the odd one.
func (s sitting) play(c exam, x float64, odd int, y float64) error {
	k := 0
	for a, n := range s.n {
		for range n {
			r := x
			if k == odd {
				r = y
			}
			if err := c.add(a, r); err != nil {
				return err
			}
			k++
		}
	}
	return nil
}

// whiten is (xᵀ C⁺ x, how far x is off C's span), and C's rank.
func whiten(c [][]float64) (square func(x []float64) (float64, float64), rank int) {
	d := len(c)
	sym := mat.NewSymDense(d, nil)
	for i := range c {
		for j := range c {
			sym.SetSym(i, j, c[i][j])
		}
	}
	var e mat.EigenSym
	if !e.Factorize(sym, true) {
		panic("eigenvalues")
	}
	values := e.Values(nil)
	var u mat.Dense
	e.VectorsTo(&u)
	for _, v := range values {
		if v > 1e-10 {
			rank++
		}
	}
	return func(x []float64) (on, off float64) {
		for i, v := range values {
			p := 0.0
			for j := range x {
				p += u.At(j, i) * x[j]
			}
			if v > 1e-10 {
				on += p * p / v
			} else {
				off = max(off, math.Abs(p))
			}
		}
		return on, off
	}, rank
}

// examine returns the names of the checks that fail. Statistical ones have a false-alarm
// probability below 1e-6 each: at most 15 comparisons with P(|N| > 5.6) = 2e-8.
func examine(t testing.TB, s sitting, draws int) []string {
	t.Helper()
	var bad []string
	fail := func(name, format string, args ...any) {
		if !slices.Contains(bad, name) {
			bad = append(bad, name)
		}
		t.Logf("%s: %s", name, fmt.Sprintf(format, args...))
	}
	c, err := s.build(1)
	must(t, err)
	d := len(s.covariance)
	square, rank := whiten(s.covariance)

	// law: the noise in releases one after another.
	mean := make([]float64, d)
	for a, n := range s.n {
		for j := range mean {
			mean[j] += float64(n) * 0.5 * s.of[a][j]
		}
	}
	second, lagged := make([][]float64, d), make([][]float64, d)
	for i := range second {
		second[i], lagged[i] = make([]float64, d), make([]float64, d)
	}
	var squares []float64
	x, last := make([]float64, d), make([]float64, d)
	total := 0
	for _, n := range s.n {
		total += n
	}
	for k := range draws {
		must(t, s.play(c, 0.5, -1, 0))
		r, err := c.release()
		must(t, err)
		if r.N() != total {
			fail("form", "%d rewards, must be %d", r.N(), total)
		}
		if r.Len() != d {
			fail("form", "%d coordinates, must be %d", r.Len(), d)
			return bad
		}
		for i := range x {
			x[i] = r.At(i) - mean[i]
		}
		on, off := square(x)
		squares = append(squares, on)
		if off > 1e-5 { // a real reward's rounding is below 1e-6
			fail("law", "the noise is %v off its span", off)
			break
		}
		for i := range x {
			for j := range x {
				second[i][j] += x[i] * x[j]
				if k%2 == 1 {
					lagged[i][j] += x[i] * last[j]
				}
			}
		}
		copy(last, x)
	}
	n := float64(draws)
	for i := range d {
		for j := range d {
			c := s.covariance
			spread := math.Sqrt((c[i][i]*c[j][j] + c[i][j]*c[i][j]) / n)
			if got := second[i][j] / n; math.Abs(got-c[i][j]) > 5.6*spread+1e-10 {
				fail("law", "covariance of coordinates %d and %d is %v, must be %v", i, j, got, c[i][j])
			}
			if got := lagged[i][j] / (n / 2); math.Abs(got) > 5.6*math.Sqrt(2*c[i][i]*c[j][j]/n)+1e-10 {
				fail("fresh noise", "covariance of one release and the next is %v", got)
			}
		}
	}
	chi := distuv.ChiSquared{K: float64(rank)}
	if d, limit := kolmogorov(squares, chi.CDF), math.Sqrt(math.Log(2/1e-7)/(2*n)); d > limit {
		fail("law", "the noise's length: Kolmogorov distance %.4f from χ² of %d, above %.4f", d, rank, limit)
	}

	// looks: a slot is released once.
	if _, err := c.release(); err == nil {
		fail("one look", "an emptied slot was released again")
	}
	// price: many slots, one release each.
	if got, want := c.ledger.Total(),
		s.m.Loss(); math.Abs(got.ZCDP()-want.ZCDP()) > 1e-5*want.ZCDP() || got.ZCDP() > want.ZCDP()*(1+1e-12) {
		fail("price", "the ledger has %v, the mechanism is %v", got, want)
	}
	if l := len(c.ledger.Entries()); l != draws {
		fail("price", "%d entries for %d releases", l, draws)
	}

	// sensitivity: the same noise, rewards that differ in one; three releases, of which the
	// differing reward is in one.
	furthest := 0.0
	for _, pair := range [][2]float64{{-1, 1}, {-0.25, 1e6}, {math.Inf(-1), math.Inf(1)}} {
		for odd := range total {
			var out [2][][]float64
			for side := range 2 {
				c, err := s.build(3)
				must(t, err)
				for k := range 3 {
					at := -1
					if k == 1 {
						at = odd
					}
					must(t, s.play(c, 0.5, at, pair[side]))
					r, err := c.release()
					must(t, err)
					v := make([]float64, d)
					for i := range v {
						v[i] = r.At(i)
					}
					out[side] = append(out[side], v)
				}
			}
			moved := 0.0
			for k := range out[0] {
				for i := range x {
					x[i] = out[1][k][i] - out[0][k][i]
				}
				on, off := square(x)
				if math.IsNaN(on) || off > 1e-5 {
					on = math.Inf(1)
				}
				moved += on
			}
			furthest = max(furthest, moved)
		}
	}
	if furthest > s.mu2*(1+1e-5) {
		fail("sensitivity", "releases moved by %v, μ² is %v", furthest, s.mu2)
	}
	if furthest < s.mu2*(1-1e-5) {
		fail("sensitivity", "releases moved by %v only, μ² is %v", furthest, s.mu2)
	}
	return bad
}

func TestVectorCuratorsPassExamination(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, s := range sittings(t) {
		t.Run(s.name, func(t *testing.T) {
			if bad := examine(t, s, 100_000); len(bad) > 0 {
				t.Errorf("fails %q", bad)
			}
		})
	}
}

func TestBrokenVectorTwinsAreCaught(t *testing.T) {
	testkit.OneGoroutine(t)
	noisy := func(f func(s sampler[float64]) sampler[float64]) func(exam) exam {
		return func(e exam) exam {
			switch c := e.inner.(type) {
			case *actions[float64]:
				var once sampler[float64] // the same for all releases
				prepare := c.prepare
				c.prepare = func(m privacy.Mechanism) (recipe[float64], error) {
					p, err := prepare(m)
					if once == nil {
						once = f(p.noise)
					}
					p.noise = once
					return p, err
				}
			case *features[float64]:
				c.plan.noise = f(c.plan.noise)
			}
			return e
		}
	}
	for _, twin := range []struct {
		name, check string
		breaks      func(e exam) exam
	}{
		{"half the noise", "law", noisy(func(s sampler[float64]) sampler[float64] { return halved{s} })},
		{"one ξ for all coordinates", "law", noisy(func(s sampler[float64]) sampler[float64] {
			return &repeated{sampler: s, times: 3}
		})},
		{"noise of the release before", "fresh noise", noisy(func(s sampler[float64]) sampler[float64] {
			return &twiceOver{sampler: s}
		})},
		{"one draw for ever", "law", noisy(func(s sampler[float64]) sampler[float64] {
			return &repeated{sampler: s, times: 1 << 30}
		})},
		{"no noise", "law", noisy(func(sampler[float64]) sampler[float64] { return quiet{} })},
		{"sums that are not emptied", "sensitivity", keptSums},
		{"a slot that is not emptied", "one look", keptSlot},
		{"a reward counted twice", "sensitivity", func(e exam) exam {
			add := e.add
			e.add = func(a int, x float64) error {
				if err := add(a, x); err != nil {
					return err
				}
				switch c := e.inner.(type) {
				case *actions[float64]:
					c.sum[a] += min(max(x, -1), 1)
				case *features[float64]:
					for j, f := range examined[a] {
						c.sum[3+j] += f * min(max(x, -1), 1)
					}
				}
				return nil
			}
			return e
		}},
		{"no clipping", "sensitivity", func(e exam) exam {
			add := e.add
			e.add = func(a int, x float64) error { return add(a, min(max(x, -1e9), 1e9)) }
			switch c := e.inner.(type) {
			case *actions[float64]:
				c.unclipped = true
			case *features[float64]:
				c.unclipped = true
			}
			return e
		}},
		{"charged as if one reward moved the sum by 1", "price", func(e exam) exam {
			switch c := e.inner.(type) {
			case *actions[float64]:
				prepare := c.prepare
				c.prepare = func(m privacy.Mechanism) (recipe[float64], error) {
					p, err := prepare(m)
					switch m := m.(type) {
					case privacy.Elliptic:
						p.charge, _ = m.WithSigma(2 * m.Sigma())
					case privacy.Sums:
						p.charge = privacy.Sums{Sigma: 2 * m.Sigma}
					}
					return p, err
				}
			case *features[float64]:
				c.account = c.ledger.Account(privacy.VectorGaussian{Sigma: 2 * examSigma})
			}
			return e
		}},
	} {
		for _, s := range sittings(t) {
			if _, counts := s.m.(privacy.Elliptic); counts && twin.check == "one look" ||
				!strings.HasPrefix(s.name, "simulated") {
				continue // such noise notices that there are more rewards than it covers
			}
			t.Run(twin.name+"/"+s.name, func(t *testing.T) {
				build := s.build
				s.build = func(seed uint64) (exam, error) {
					e, err := build(seed)
					return twin.breaks(e), err
				}
				if bad := examine(t, s, 3000); !slices.Contains(bad, twin.check) {
					t.Errorf("the check %q did not catch it; %q did", twin.check, bad)
				}
			})
		}
	}
}

type quiet struct{}

func (quiet) Draw(int) (float64, error) { return 0, nil }

// twiceOver gives every three draws twice: those of one release, and again at the next.
type twiceOver struct {
	sampler[float64]
	k     int
	noise [3]float64
}

func (r *twiceOver) Draw(int) (float64, error) {
	i := r.k % 3
	if r.k%6 < 3 {
		r.noise[i], _ = r.sampler.Draw(1)
	}
	r.k++
	return r.noise[i], nil
}

// keptSums leaves a slot's sums where they were after a release.
func keptSums(e exam) exam {
	release := e.release
	e.release = func() (privacy.ReleasedVector, error) {
		switch c := e.inner.(type) {
		case *actions[float64]:
			sum := slices.Clone(c.sum)
			defer func() { copy(c.sum, sum) }()
		case *features[float64]:
			sum := slices.Clone(c.sum)
			defer func() { copy(c.sum, sum) }()
		}
		return release()
	}
	return e
}

// keptSlot leaves everything: noise shaped by a design would notice, since it counts.
func keptSlot(e exam) exam {
	release := keptSums(e).release
	e.release = func() (privacy.ReleasedVector, error) {
		switch c := e.inner.(type) {
		case *actions[float64]:
			n, all := slices.Clone(c.n), c.all
			defer func() {
				copy(c.n, n)
				c.all = all
			}()
		case *features[float64]:
			n := slices.Clone(c.n)
			defer func() { copy(c.n, n) }()
		}
		return release()
	}
	return e
}

func actionCurator(t testing.TB, ledger *privacy.Ledger, set ...[]float64) ActionCurator {
	t.Helper()
	s := noise.NewFast(1, 2)
	c, err := SimulatedActions(set, false, ledger, &s)
	must(t, err)
	return c
}

func featureCurator(t testing.TB, cfg FeatureConfig) FeatureCurator {
	t.Helper()
	s := noise.NewFast(1, 2)
	c, err := SimulatedFeatures(cfg, &s)
	must(t, err)
	return c
}

func TestVectorDoorsClip(t *testing.T) {
	rewards := []float64{0.25, -1, 3, math.Inf(-1), 1e300, math.Inf(1), -0.5}
	const sum = 0.25 - 1 + 1 - 1 + 1 + 1 - 0.5
	real1, err := exactActions([][]float64{{1}, {2}}, nil, rand.NewChaCha8([32]byte{1}))
	must(t, err)
	for _, c := range []ActionCurator{actionCurator(t, nil, []float64{1}, []float64{2}), real1} {
		for _, x := range rewards {
			must(t, c.Add(1, x))
		}
		// A real curator takes every reward: TestNaNIsTheLowerEnd.
		if c != real1 && !refused(c.Add(1, math.NaN()), "action 1 is NaN") {
			t.Error("NaN is let in")
		}
		r, err := c.Release(privacy.Sums{})
		must(t, err)
		if r.Len() != 2 || r.N() != len(rewards) || r.At(0) != 0 || r.At(1) != sum {
			t.Errorf("released %v, %v of %d, want 0, %v", r.At(0), r.At(1), r.N(), sum)
		}
		if !c.Ledger().Total().Infinite() {
			t.Error("no noise costs", c.Ledger().Total())
		}
	}
	cfg := FeatureConfig{Dim: 2, Slots: 1, Mechanism: privacy.VectorGaussian{}}
	real2, err := exactFeatures(cfg, rand.NewChaCha8([32]byte{1}))
	must(t, err)
	for _, c := range []FeatureCurator{featureCurator(t, cfg), real2} {
		for _, x := range rewards {
			must(t, c.Add(0, []float64{0.5, -0.25}, x))
		}
		if c != real2 && !refused(c.Add(0, []float64{0.5, 0}, math.NaN()), "slot 0 is NaN") {
			t.Error("NaN is let in")
		}
		r, err := c.Release(0)
		must(t, err)
		if r.N() != len(rewards) || r.At(0) != sum/2 || r.At(1) != -sum/4 {
			t.Errorf("released %v, %v of %d", r.At(0), r.At(1), r.N())
		}
	}
}

func refused(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// Whole σ: the numbers of the policy's least squares, against sums made by hand.
func TestReleasedSumsByHand(t *testing.T) {
	set := [][]float64{{0.6, 0.8}, {1, 0}, {0, -1}}
	c := actionCurator(t, nil, set...)
	must(t, c.AddSum(0, 4, 2.5))
	must(t, c.Add(0, -1))
	must(t, c.AddSum(2, 10, -10))
	m, err := privacy.NewElliptic(0, set, []int{5, 0, 20}) // fewer than counted is fine
	must(t, err)
	r, err := c.Release(m)
	must(t, err)
	if r.N() != 15 || r.Len() != 2 || math.Abs(r.At(0)-0.9) > 1e-15 || math.Abs(r.At(1)-11.2) > 1e-14 {
		t.Errorf("released %v, %v of %d", r.At(0), r.At(1), r.N())
	}
	// It was emptied, and the next one's number is the next.
	if r, err := c.Release(m); err == nil || r.Len() != 0 {
		t.Error("released twice")
	}
	must(t, c.Add(1, 0.5))
	r, err = c.Release(privacy.Sums{})
	must(t, err)
	if r.N() != 1 || r.At(0) != 0 || r.At(1) != 0.5 || r.At(2) != 0 {
		t.Errorf("released %v %v %v of %d", r.At(0), r.At(1), r.At(2), r.N())
	}
	if e := c.Ledger().Entries(); len(e) != 2 || e[0].Slot != 0 || e[1].Slot != 1 {
		t.Errorf("%v", e)
	}
}

// Slots of a ledger that has entries are numbered on, and each slot of a FeatureCurator
// has its own number.
func TestVectorSlotNumbers(t *testing.T) {
	l := privacy.NewLedger()
	must(t, l.Record(4, privacy.Laplace{Scale: 1}))
	m := privacy.VectorGaussian{Sigma: 2}
	f := featureCurator(t, FeatureConfig{Dim: 1, Slots: 2, Mechanism: m, Ledger: l})
	for range 2 {
		for slot := range 2 {
			must(t, f.Add(slot, []float64{1}, 1))
			_, err := f.Release(slot)
			must(t, err)
		}
	}
	c := actionCurator(t, l, []float64{1})
	must(t, c.Add(0, 1))
	_, err := c.Release(privacy.Sums{Sigma: 2})
	must(t, err)
	var slots []int
	for _, e := range l.Entries() {
		slots = append(slots, e.Slot)
		if e.Releases != 1 {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(slots, []int{4, 5, 6, 7, 8, 9}) {
		t.Errorf("slots %v", slots)
	}
	if got := l.Total().ZCDP(); got != 0.5 {
		t.Errorf("total %v, must be 0.5: parallel", got)
	}
}

func TestUnclippedVectorsCostInfinity(t *testing.T) {
	s := noise.NewFast(1, 2)
	set := [][]float64{{3, 4}, {1, 0}}
	e, err := privacy.NewElliptic(1, set, []int{9, 9})
	must(t, err)
	for _, m := range []privacy.Mechanism{e, privacy.Sums{Sigma: 1}} {
		c, err := SimulatedActions(set, true, nil, &s)
		must(t, err)
		must(t, c.Add(0, 12))
		must(t, c.AddSum(1, 2, -7))
		if _, err := c.Release(m); err != nil || !c.Ledger().Total().Infinite() ||
			c.Ledger().Entries()[0].Mechanism.Kind() != "unclipped "+m.Kind() {
			t.Errorf("%v: %v, total %v", m, err, c.Ledger().Total())
		}
		if c.Add(0, math.NaN()) == nil || c.Add(0, math.Inf(1)) == nil || c.AddSum(0, 1, math.Inf(1)) == nil {
			t.Error("let what is not finite in")
		}
	}
	f := featureCurator(t, FeatureConfig{Dim: 2, Slots: 1,
		Mechanism: privacy.VectorGaussian{Sigma: 1}, Unclipped: true})
	must(t, f.Add(0, []float64{3, 4}, 2))
	if f.Add(0, []float64{3, math.NaN()}, 1) == nil ||
		f.Add(0, []float64{1, 0}, math.Inf(1)) == nil || f.Add(0, []float64{math.Inf(1), 0}, 0) == nil {
		t.Error("let what is not finite in")
	}
	r, err := f.Release(0)
	if err != nil || r.N() != 1 || math.Abs(r.At(0)-6) > 8 || !f.Ledger().Total().Infinite() {
		t.Errorf("%v, total %v", err, f.Ledger().Total())
	}
	if _, err := exactFeatures(FeatureConfig{Dim: 1, Slots: 1,
		Mechanism: privacy.VectorGaussian{Sigma: 1}, Unclipped: true}, &s); err == nil {
		t.Error("unclipped real rewards")
	}
}

// A refused release leaves the slot as it is if nothing was charged, empties it if something was,
// and leaves nothing to look at.
func TestVectorRefusals(t *testing.T) {
	set := [][]float64{{1, 0}, {0, 1}}
	m, err := privacy.NewElliptic(1, set, []int{1, 1}) // g² = 1, ρ = 2
	must(t, err)
	capped := actionCurator(t, privacy.NewLedger(privacy.WithCap(privacy.ZCDP{Rho: 1})), set...)
	must(t, capped.Add(0, 1))
	if r, err := capped.Release(m); !errors.Is(err, privacy.ErrBudget) || r.Len() != 0 {
		t.Errorf("%v", err)
	}
	large, err := m.WithSigma(2)
	must(t, err)
	r, err := capped.Release(large)
	if err != nil || r.N() != 1 {
		t.Errorf("a slot that was refused: %v", err)
	}
	held := r
	must(t, capped.Add(0, 1))
	if _, err := capped.Release(m); err == nil || held.At(0) != 0 {
		t.Errorf("who holds an earlier release sees %v of one that was refused", held.At(0))
	}

	var log failing
	c := actionCurator(t, privacy.NewLedger(privacy.WithTranscript(&log)), set...)
	must(t, c.Add(0, 1))
	if r, err := c.Release(m); err == nil || r.Len() != 0 {
		t.Error("a transcript that cannot be written")
	}
	if _, err := c.Release(m); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("rewards that were charged for are still there: %v", err)
	}
	f := featureCurator(t, FeatureConfig{Dim: 1, Slots: 1,
		Mechanism: privacy.VectorGaussian{Sigma: 1}, Ledger: privacy.NewLedger(privacy.WithTranscript(&log))})
	must(t, f.Add(0, []float64{1}, 1))
	for _, says := range []string{"transcript", "empty"} {
		if r, err := f.Release(0); err == nil || r.Len() != 0 || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, must say %q", err, says)
		}
	}
	// A failing draw charges nothing.
	broken := actionCurator(t, nil, set...).(*actions[float64])
	broken.prepare = func(m privacy.Mechanism) (recipe[float64], error) {
		return recipe[float64]{charge: m, noise: noDraw{}}, nil
	}
	must(t, broken.Add(0, 1))
	for _, m := range []privacy.Mechanism{m, privacy.Sums{Sigma: 1}} {
		if _, err := broken.Release(m); !errors.Is(err, noise.ErrOverflow) ||
			len(broken.Ledger().Entries()) != 0 {
			t.Errorf("%v: %v", m, err)
		}
	}
	brittle := featureCurator(t, FeatureConfig{Dim: 1, Slots: 1,
		Mechanism: privacy.VectorGaussian{Sigma: 1}}).(*features[float64])
	brittle.plan.noise = noDraw{}
	must(t, brittle.Add(0, []float64{1}, 1))
	if _, err := brittle.Release(0); !errors.Is(err, noise.ErrOverflow) ||
		len(brittle.Ledger().Entries()) != 0 {
		t.Error(err)
	}
}

type failing struct{}

func (*failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

type noDraw struct{}

func (noDraw) Draw(int) (float64, error) { return 0, noise.ErrOverflow }

func TestVectorErrorsSayWhat(t *testing.T) {
	set := [][]float64{{1, 0}, {0, 1}}
	s := noise.NewFast(1, 2)
	ok := FeatureConfig{Dim: 2, Slots: 2, Mechanism: privacy.VectorGaussian{Sigma: 1}}
	m, err := privacy.NewElliptic(1, set, []int{2, 0})
	must(t, err)
	other, err := privacy.NewElliptic(1, [][]float64{{0.5, 0}, {0, 1}}, []int{2, 0})
	must(t, err)
	on := func(f func(ActionCurator) error) func() error {
		return func() error { return f(actionCurator(t, nil, set...)) }
	}
	exactly := func(f func(ActionCurator) error) func() error {
		return func() error {
			c, err := exactActions(set, nil, rand.NewChaCha8([32]byte{1}))
			must(t, err)
			return f(c)
		}
	}
	releasing := func(action int, m privacy.Mechanism) func(ActionCurator) error {
		return func(c ActionCurator) error {
			must(t, c.Add(action, 1))
			_, err := c.Release(m)
			return err
		}
	}
	with := func(f func(*FeatureConfig)) func() error {
		return func() error {
			cfg := ok
			f(&cfg)
			_, err := SimulatedFeatures(cfg, &s)
			_, err2 := exactFeatures(cfg, &s)
			if (err == nil) != (err2 == nil) {
				t.Errorf("simulated: %v; real: %v", err, err2)
			}
			return errors.Join(err, err2)
		}
	}
	free := func(f func(FeatureCurator) error) func() error {
		return func() error { return f(featureCurator(t, ok)) }
	}
	for _, c := range []struct {
		do   func() error
		says []string
	}{
		{func() error { _, err := SimulatedActions(set, false, nil, nil); return err }, []string{"stream"}},
		{func() error { _, err := SimulatedFeatures(ok, nil); return err }, []string{"stream"}},
		{func() error { _, err := SimulatedActions(nil, false, nil, &s); return err }, []string{"no actions"}},
		{func() error {
			_, err := SimulatedActions([][]float64{{}}, false, nil, &s)
			return err
		}, []string{"action 0", "0 features"}},
		{func() error {
			_, err := SimulatedActions([][]float64{{1}, {1, 2}}, false, nil, &s)
			return err
		}, []string{"action 1", "2 features"}},
		{func() error {
			_, err := SimulatedActions([][]float64{{1, math.NaN()}}, false, nil, &s)
			return err
		}, []string{"feature 1", "action 0", "NaN"}},
		{on(func(c ActionCurator) error { return c.Add(2, 1) }), []string{"action is 2", "from 0 to 1"}},
		{on(func(c ActionCurator) error { return c.Add(-1, 1) }), []string{"action is -1"}},
		{on(func(c ActionCurator) error { return c.AddSum(7, 1, 1) }), []string{"action is 7"}},
		{on(func(c ActionCurator) error { return c.AddSum(0, -1, 0) }), []string{"n of action 0 is -1"}},
		{on(func(c ActionCurator) error {
			return c.AddSum(0, 3, 3.001)
		}), []string{"sum of 3 rewards", "out of range", "from -3 to 3"}},
		{on(func(c ActionCurator) error {
			return c.AddSum(0, 3, -3.001)
		}), []string{"out of range", "from -3 to 3"}},
		{on(func(c ActionCurator) error { return c.AddSum(0, 3, math.NaN()) }), []string{"finite"}},
		{on(func(c ActionCurator) error { return c.AddSum(0, 3, math.Inf(1)) }), []string{"finite"}},
		{on(func(c ActionCurator) error { return c.AddSum(0, 0, 1) }), []string{"0 rewards"}},
		{on(func(c ActionCurator) error {
			_, err := c.Release(privacy.Sums{Sigma: 1})
			return err
		}), []string{"slot", "empty"}},
		{on(releasing(0, nil)), []string{"mechanism is missing", "elliptic or sums"}},
		{on(releasing(0, privacy.Laplace{Scale: 1})), []string{"laplace", "elliptic or sums"}},
		{on(releasing(0, privacy.VectorGaussian{Sigma: 1})), []string{"vector-gaussian", "elliptic or sums"}},
		{on(releasing(0, privacy.Elliptic{})), []string{"no actions"}},
		{on(releasing(0, privacy.Sums{Sigma: math.NaN()})), []string{"sigma is NaN"}},
		{on(releasing(1, m)), []string{"action 1 has 1 rewards", "at most 0"}},
		{on(releasing(0, other)), []string{"action 0 is [1 0]", "must be [0.5 0]"}},
		{on(func(c ActionCurator) error {
			must(t, c.AddSum(0, 2, 1))
			return releasing(0, m)(c)
		}), []string{"action 0 has 3 rewards", "at most 2"}},
		{exactly(releasing(0, m)), []string{"elliptic", "simulated rewards only", "take sums"}},
		{exactly(releasing(0, privacy.Laplace{Scale: 1})), []string{"laplace", "elliptic or sums"}},
		{exactly(releasing(0, privacy.Sums{Sigma: 1<<20 + 1})), []string{"sums", "at most 1048576"}},
		{exactly(func(c ActionCurator) error {
			return c.AddSum(0, 2, 1)
		}), []string{"n of action 0 is 2", "must be 1"}},
		{with(func(c *FeatureConfig) { c.Dim = 0 }), []string{"dim is 0"}},
		{with(func(c *FeatureConfig) { c.Slots = -1 }), []string{"slots is -1"}},
		{with(func(c *FeatureConfig) { c.Mechanism = nil }), []string{"mechanism is missing"}},
		{with(func(c *FeatureConfig) {
			c.Mechanism = privacy.Gaussian{Sigma: 1}
		}), []string{"gaussian", "must be"}},
		{with(func(c *FeatureConfig) {
			c.Mechanism = privacy.VectorGaussian{Sigma: -1}
		}), []string{"sigma is -1"}},
		{free(func(c FeatureCurator) error {
			return c.Add(2, []float64{1, 0}, 1)
		}), []string{"slot is 2", "from 0 to 1"}},
		{free(func(c FeatureCurator) error {
			return c.Add(0, []float64{1}, 1)
		}), []string{"1 features", "must have 2"}},
		{free(func(c FeatureCurator) error {
			return c.Add(0, []float64{0.8, 0.7}, 1)
		}), []string{"norm 1.063", "at most 1"}},
		{free(func(c FeatureCurator) error {
			return c.Add(0, []float64{0.8, math.NaN()}, 1)
		}), []string{"feature 1 is NaN"}},
		{free(func(c FeatureCurator) error {
			return c.Add(0, []float64{math.Inf(-1), 0}, 1)
		}), []string{"feature 0 is -Inf"}},
		{free(func(c FeatureCurator) error {
			_, err := c.Release(1)
			return err
		}), []string{"slot 1", "empty"}},
		{free(func(c FeatureCurator) error {
			_, err := c.Release(2)
			return err
		}), []string{"slot 2", "from 0 to 1"}},
	} {
		err := c.do()
		if err == nil {
			t.Errorf("no error that says %q", c.says)
			continue
		}
		for _, w := range c.says {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
	// Rounding is forgiven, of norms and of sums.
	f := featureCurator(t, ok)
	must(t, f.Add(0, []float64{1 + 1e-10, 0}, 1))
	if f.Add(0, []float64{1 + 1e-8, 0}, 1) == nil {
		t.Error("a norm of 1+1e-8 was let in")
	}
	must(t, actionCurator(t, nil, set...).AddSum(0, 1_000_000, 1_000_000+1e-4))
}

// What is charged for real noise is at most what the mechanism promised, and at least what the
// noise that was drawn costs at the sensitivity of what was added.
func TestRealVectorsAreChargedForTheNoiseTheyUse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sigma := math.Exp(rapid.Float64Range(-20, 12).Draw(r, "log sigma"))
		dim := rapid.IntRange(1, 1000).Draw(r, "dim")
		c, err := exactFeatures(FeatureConfig{Dim: dim, Slots: 1,
			Mechanism: privacy.VectorGaussian{Sigma: sigma}}, rand.NewChaCha8([32]byte{1}))
		must(t, err)
		f := c.(*features[int64])
		charged := f.plan.charge.(privacy.VectorGaussian).Sigma
		if charged < sigma*(1-1e-12) {
			r.Fatalf("σ %v is charged as %v", sigma, charged)
		}
		// The worst a with ‖a‖ = 1: all coordinates one size, rounded outwards.
		worst := math.Sqrt(float64(dim)) * 2 * math.Round(math.Sqrt(1/float64(dim))*gridSteps) / gridSteps
		if worst > roundedSensitivity(dim) {
			r.Fatalf("moves by %v, above %v", worst, roundedSensitivity(dim))
		}
	})
	a, err := exactActions([][]float64{{1}}, nil, rand.NewChaCha8([32]byte{1}))
	must(t, err)
	must(t, a.Add(0, 1))
	_, err = a.Release(privacy.Sums{Sigma: 0.1})
	must(t, err)
	if got := a.Ledger().Entries()[0].Mechanism.(privacy.Sums).Sigma; !(got >= 0.1 &&
		got <= 0.1+2.0/gridSteps) {
		t.Errorf("σ 0.1 is charged as %v", got)
	}
}

// Real releases are whole steps, whatever was added.
func TestRealVectorsAreOnTheGrid(t *testing.T) {
	set := [][]float64{{1.0 / 3}, {0.7}}
	a, err := RealActions(set, nil)
	must(t, err)
	f, err := RealFeatures(FeatureConfig{Dim: 1, Slots: 1, Mechanism: privacy.VectorGaussian{Sigma: 0.3}})
	must(t, err)
	for range 20 {
		for i := range set {
			must(t, a.Add(i, 1.0/7))
			must(t, f.Add(0, set[i], -1.0/7))
		}
		x, err := a.Release(privacy.Sums{Sigma: 1.0 / 3})
		must(t, err)
		y, err := f.Release(0)
		must(t, err)
		for _, v := range []float64{x.At(0), x.At(1), y.At(0)} {
			if v *= gridSteps; v != math.Trunc(v) {
				t.Errorf("released %v steps", v)
			}
		}
	}
}

// A transcript of vectors brings back what was released, and its price.
func TestVectorTranscriptOfACurator(t *testing.T) {
	var b bytes.Buffer
	set := [][]float64{{1, 0}, {0.6, 0.8}}
	c := actionCurator(t, privacy.NewLedger(privacy.WithTranscript(&b)), set...)
	var want []float64
	for k := range 3 {
		must(t, c.AddSum(0, 5, 1.25))
		must(t, c.AddSum(1, k+1, 0.5))
		m, err := privacy.NewElliptic(0.3, set, []int{5, k + 1})
		must(t, err)
		r, err := c.Release(m)
		must(t, err)
		want = append(want, r.At(0), r.At(1), float64(r.N()))
	}
	l := privacy.NewLedger()
	var got []float64
	for _, line := range bytes.Split(bytes.TrimSpace(b.Bytes()), []byte("\n")) {
		r, err := l.RestoreVector(line)
		must(t, err)
		got = append(got, r.At(0), r.At(1), float64(r.N()))
	}
	if !slices.Equal(got, want) || l.Total().ZCDP() != c.Ledger().Total().ZCDP() {
		t.Errorf("restored %v at %v, was %v at %v", got, l.Total(), want, c.Ledger().Total())
	}
}

// Without noise the stream is not touched.
func TestNoNoiseDrawsNothing(t *testing.T) {
	set := [][]float64{{1, 0}, {0.6, 0.8}}
	e, err := privacy.NewElliptic(0, set, []int{5, 5})
	must(t, err)
	s, fresh := noise.NewFast(1, 2), noise.NewFast(1, 2)
	c, err := SimulatedActions(set, false, nil, &s)
	must(t, err)
	for _, m := range []privacy.Mechanism{e, privacy.Sums{}} {
		must(t, c.Add(0, 1))
		_, err := c.Release(m)
		must(t, err)
	}
	f, err := SimulatedFeatures(FeatureConfig{Dim: 1, Slots: 1, Mechanism: privacy.VectorGaussian{}}, &s)
	must(t, err)
	must(t, f.Add(0, []float64{1}, 1))
	_, err = f.Release(0)
	must(t, err)
	if s.Uint64() != fresh.Uint64() {
		t.Error("something was drawn")
	}
}

func TestVectorHotPathsAllocateNothing(t *testing.T) {
	c := featureCurator(t, FeatureConfig{Dim: 3, Slots: 1,
		Mechanism: privacy.VectorGaussian{Sigma: 1}}).(*features[float64])
	a := []float64{0.1, 0.2, 0.3}
	once := func() {
		must(t, c.Add(0, a, 0.5))
		_, err := c.Release(0)
		must(t, err)
	}
	for range 1000 { // the ledger's cells grow now and then
		once()
	}
	c.ledger.Reset()
	c.id[0], c.next = 0, 1
	if n := testing.AllocsPerRun(500, once); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFeatureAdd(b *testing.B) {
	for _, d := range []int{3, 20} {
		b.Run(fmt.Sprintf("d=%d", d), func(b *testing.B) {
			c := featureCurator(b, FeatureConfig{Dim: d, Slots: 1, Mechanism: privacy.VectorGaussian{Sigma: 1}})
			a := make([]float64, d)
			a[d-1] = 0.5
			b.ReportAllocs()
			for b.Loop() {
				if c.Add(0, a, 0.25) != nil {
					b.Fatal("add")
				}
			}
		})
	}
}

func BenchmarkVectorRelease(b *testing.B) {
	set := [][]float64{{1, 0, 0}, {0.6, 0.8, 0}, {0, 0, 1}}
	m, err := privacy.NewElliptic(1, set, []int{5, 5, 5})
	must(b, err)
	b.Run("elliptic", func(b *testing.B) {
		c := actionCurator(b, nil, set...)
		b.ReportAllocs()
		for b.Loop() {
			must(b, c.AddSum(0, 3, 1))
			_, err := c.Release(m)
			must(b, err)
		}
	})
	b.Run("vector-gaussian", func(b *testing.B) {
		c := featureCurator(b, FeatureConfig{Dim: 3, Slots: 1, Mechanism: privacy.VectorGaussian{Sigma: 1}})
		b.ReportAllocs()
		for b.Loop() {
			must(b, c.Add(0, set[0], 1))
			_, err := c.Release(0)
			must(b, err)
		}
	})
}
