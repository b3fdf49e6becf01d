package linear_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

func jdpGreedy(t testing.TB, dim, horizon int, b privacy.Budget, o linear.JDPGreedyOptions) *linear.JDPGreedy {
	t.Helper()
	p, err := linear.NewJDPGreedy(dim, horizon, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Segments end by hand: first 4, then half as many again, but at 10, where 9 and half as many again would have
// gone beyond, and at all multiples of 10.
func TestJDPGreedyEnds(t *testing.T) {
	p := jdpGreedy(t, 1, 1000, privacy.ZCDP{Rho: 1}, linear.JDPGreedyOptions{Risk: 0.1, First: 4, Growth: 1.5,
		Leaf: 10})
	n := 0
	for i, want := range []int{4, 6, 10, 15, 20, 30, 40} {
		if n = p.End(n); n != want {
			t.Fatalf("segment %d ends after %d, must after %d", i, n, want)
		}
		for p.Due() < 0 {
			p.Play(nil)
		}
		p.Cut()
		if err := p.Skip(1, nil); err == nil {
			t.Errorf("a segment of one round is taken after %d", n)
		}
	}
	if err := p.Skip(10, nil); err != nil {
		t.Error(err)
	}
	if err := p.Skip(10, nil); err == nil {
		t.Error("a segment is skipped inside one")
	}
}

// The estimate, its radius, the test and what LinUCB begins with, against dense matrices by the printed
// formulas, from the releases alone. The world has two even directions and one that is never played, which
// the test finds; the fallback is LinUCB's formula on all releases.
func TestJDPGreedyIsItsFormulas(t *testing.T) {
	const d, horizon, leaf, risk, diversity = 3, 30_000, 2000, 0.05, 0.9
	rng := rand.New(rand.NewPCG(5, 6))
	p := jdpGreedy(t, d, horizon, privacy.ZCDP{Rho: 20}, linear.JDPGreedyOptions{Risk: risk, First: 100,
		Growth: 1.5, Leaf: leaf, Diversity: diversity})
	m := p.Mechanism().(privacy.GramGaussian)
	c := curate(t, p, d, 1)
	plain, weighed := mat.NewSymDense(d, nil), mat.NewSymDense(d, nil)
	plainB, weighedB := mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
	var count, rounds, square float64
	add := func(g *mat.SymDense, b *mat.VecDense, r privacy.ReleasedVector, w float64, corner int) {
		at := 0
		for i := range d {
			for j := i; j < d; j++ {
				g.SetSym(i, j, g.At(i, j)+w*r.At(at))
				at++
			}
			b.SetVec(i, b.AtVec(i)+w*r.At(at))
			at++
		}
		if r.Len() != at+corner {
			t.Fatalf("a release has %d numbers, must have %d", r.Len(), at+corner)
		}
	}
	values := func(g *mat.SymDense) []float64 {
		var e mat.EigenSym
		if !e.Factorize(g, false) {
			t.Fatal("no eigenvalues")
		}
		return e.Values(nil)
	}
	first := 0 // the fallback's release
	var base *mat.SymDense
	var baseB *mat.VecDense
	for n := 1; n <= horizon; n++ {
		actions := make([]float64, 4*d)
		for i := range actions {
			if i%d < 2 {
				actions[i] = rng.Float64()*1.2 - 0.6
			}
		}
		choice := p.Choose(actions)
		a := actions[choice.Action*d:][:d]
		must(t, c.Add(0, a, math.Copysign(1, 0.8*a[0]-0.5*a[1]+rng.Float64()*2-1)))
		for p.Due() >= 0 {
			r, err := c.Release(0)
			must(t, err)
			was := p.Fallback()
			p.Learn(r)
			if was {
				first++
				treeIs(t, p, r.N(), r.At, base, baseB, m, count, horizon-int(rounds), leaf, risk/(count*(count+1)))
				break
			}
			count++
			rounds += float64(r.N())
			w := float64(r.N()) / (float64(r.N()) + 4*d*m.Sigma*m.Sigma)
			square += w * w
			add(plain, plainB, r, 1, 0)
			add(weighed, weighedB, r, w, 0)
			// certificate
			l := math.Log(4 * count * (count + 1) / risk)
			omega := math.Sqrt(square)
			b := math.Max(1, m.Sigma*omega*(math.Sqrt(2*d)+math.Sqrt(2*l)))
			lambda := math.Max(1, m.Sigma*omega*math.Sqrt(d))
			e := values(weighed)
			h := math.Max(0, e[0]) + lambda
			want := math.Sqrt(1+math.Max(0, 2*b-lambda)/h)*math.Sqrt((2*l+d*math.Log(1+rounds/(d*b)))/h) +
				(m.Sigma*omega*(math.Sqrt(d)+math.Sqrt(2*l))+b+math.Max(0, -e[0])+lambda)/h
			least := values(plain)[0]
			b = m.Sigma * math.Sqrt(count) * (math.Sqrt(2*d) + math.Sqrt(2*l))
			kappa := diversity / float64(d)
			segments := float64(horizon)/leaf + math.Log(horizon)/math.Log(1.5) + 2
			fails := int(rounds)%leaf == 0 && rounds > leaf && rounds >= 8/kappa*math.Log(d*segments/risk) && least+b < kappa*rounds/2
			if fails != p.Fallback() {
				t.Fatalf("after %v rounds the fallback is %v: λ_min %v, B %v", rounds, p.Fallback(), least, b)
			}
			if fails {
				base, baseB = plain, plainB
				c = again(t, p, d, c)
				treeIs(t, p, 0, func(int) float64 { return 0 }, base, baseB, m, count, horizon-int(rounds), leaf, risk/(count*(count+1)))
				continue
			}
			theta, radius := p.Estimate()
			if math.Abs(radius-want) > 1e-9*want {
				t.Fatalf("after %v rounds the radius is %v, must be %v", rounds, radius, want)
			}
			if e[0] > 0 {
				full := mat.NewSymDense(d, nil)
				full.CopySym(weighed)
				for i := range d {
					full.SetSym(i, i, full.At(i, i)+lambda)
				}
				var x mat.VecDense
				if err := x.SolveVec(full, weighedB); err != nil {
					t.Fatal(err)
				}
				for i := range d {
					if math.Abs(x.AtVec(i)-theta[i]) > 1e-9 {
						t.Fatalf("θ̂ is %v, must be %v", theta, x)
					}
				}
			}
		}
	}
	if first < 3 {
		t.Errorf("the fallback had %d releases", first)
	}
	// One budget: segments and tree have no record in common.
	if got := c.Ledger().Total().ZCDP(); math.Abs(got-20) > 1e-6 {
		t.Errorf("the ledger has ρ = %v, must have 20", got)
	}
}

// again is a new curator of the policy's mechanism on the ledger of the old one.
func again(t *testing.T, p linear.Contextual, d int, old release.FeatureCurator) release.FeatureCurator {
	t.Helper()
	s := noise.NewFast(10, 11)
	c, err := release.SimulatedFeatures(release.FeatureConfig{Dim: d, Slots: 1, Mechanism: p.Mechanism(),
		Ledger: old.Ledger()}, &s)
	must(t, err)
	return c
}

// treeIs holds the fallback's estimate after a release of the tree, none at first, against LinUCB's formula on
// all releases.
func treeIs(t *testing.T, p *linear.JDPGreedy, rounds int, released func(int) float64, base *mat.SymDense,
	baseB *mat.VecDense, m privacy.GramGaussian, segments float64, horizon, leaf int, risk float64) {
	t.Helper()
	d := len(baseB.RawVector().Data)
	tree := p.Mechanism().(privacy.GramTree)
	if tree.Horizon != horizon || tree.Leaf != leaf {
		t.Fatalf("%v, must have a horizon of %d and leaves of %d", tree, horizon, leaf)
	}
	x := math.Log(8*(float64(horizon/leaf)+1)) - math.Log(risk)
	root := math.Sqrt(float64(d))
	band := func(nodes int) float64 {
		from := 2 * m.Sigma / math.Sqrt2 * math.Sqrt(segments) * (root + math.Sqrt(x))
		return from + 2*tree.Sigma*math.Sqrt(float64(nodes))*(root+math.Sqrt(x))
	}
	low := 1.0
	for nodes := range bits.Len(uint(horizon/leaf)) + 1 { // that its leaves may have
		low = math.Max(low, band(nodes))
	}
	v, u := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
	at := 0
	for i := range d {
		for j := i; j < d; j++ {
			y := base.At(i, j) + released(at)
			if i == j {
				y += low + band(bits.OnesCount(uint(rounds/leaf)))
			}
			v.SetSym(i, j, y)
			at++
		}
		u.SetVec(i, baseB.AtVec(i)+released(at))
		at++
	}
	var want mat.VecDense
	if err := want.SolveVec(v, u); err != nil {
		t.Fatal(err)
	}
	theta, radius := p.Estimate()
	for i := range theta {
		if math.Abs(theta[i]-want.AtVec(i)) > 1e-9 {
			t.Fatalf("after %d of the tree θ̃ is %v, must be %v", rounds, theta, want)
		}
	}
	if least := math.Sqrt(2*math.Log(2/risk)) + math.Sqrt(low); radius < least {
		t.Fatalf("radius %v, must be at least %v", radius, least)
	}
}

// The certificate holds at all releases, in worlds whose contexts are diverse and in others: of 60 runs at a
// risk of .2 none may fail, for it is far from tight; one with the noise left out fails.
func TestJDPGreedyCovers(t *testing.T) {
	const d, horizon, runs = 2, 3000, 60
	theta := []float64{0.6, -0.5}
	bad, thin := 0, 0
	for run := range runs {
		p := jdpGreedy(t, d, horizon, privacy.ZCDP{Rho: 0.005}, linear.JDPGreedyOptions{Risk: 0.2, First: 50,
			Growth: 1.5, Leaf: 1000})
		bare := jdpGreedy(t, d, horizon, privacy.None{}, linear.JDPGreedyOptions{Risk: 0.2, First: 50,
			Growth: 1.5, Leaf: 1000})
		c := curate(t, p, d, uint64(run))
		rng := rand.New(rand.NewPCG(7, uint64(run)))
		off := func(p *linear.JDPGreedy) bool {
			got, radius := p.Estimate()
			return math.Hypot(got[0]-theta[0], got[1]-theta[1]) > radius
		}
		missed, missedThin := false, false
		for range horizon {
			for p.Due() >= 0 {
				r, err := c.Release(0)
				must(t, err)
				p.Learn(r)
				bare.Learn(r) // its bounds know of no noise
				missed, missedThin = missed || off(p), missedThin || off(bare)
			}
			a := []float64{rng.NormFloat64(), rng.NormFloat64()}
			if run%2 == 0 {
				a[1] /= 50
			}
			norm := math.Hypot(a[0], a[1])
			a[0], a[1] = a[0]/norm, a[1]/norm
			p.Choose(a)
			bare.Play(a)
			must(t, c.Add(0, a, math.Copysign(1, a[0]*theta[0]+a[1]*theta[1]+rng.Float64()*2-1)))
		}
		if missed {
			bad++
		}
		if missedThin {
			thin++
		}
	}
	if bad > 0 || thin == 0 {
		t.Errorf("%d of %d runs left the certificate, without noise in it %d", bad, runs, thin)
	}
}

func TestJDPGreedyErrors(t *testing.T) {
	good := linear.JDPGreedyOptions{Risk: 0.1, First: 10, Growth: 1.5, Leaf: 100, Diversity: 0.1}
	for says, change := range map[string]func(*linear.JDPGreedyOptions){
		"first is 0":      func(o *linear.JDPGreedyOptions) { o.First = 0 },
		"growth is 1, ":   func(o *linear.JDPGreedyOptions) { o.Growth = 1 },
		"leaf is 0":       func(o *linear.JDPGreedyOptions) { o.Leaf = 0 },
		"diversity is 2":  func(o *linear.JDPGreedyOptions) { o.Diversity = 2 },
		"risk is 0":       func(o *linear.JDPGreedyOptions) { o.Risk = 0 },
		"greed is 2":      func(o *linear.JDPGreedyOptions) { o.Greed = 2 },
		"step is -1":      func(o *linear.JDPGreedyOptions) { o.Step = -1 },
		"diversity is Na": func(o *linear.JDPGreedyOptions) { o.Diversity = math.NaN() },
	} {
		o := good
		change(&o)
		if _, err := linear.NewJDPGreedy(2, 1000, privacy.ZCDP{Rho: 1}, o); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	for _, b := range []privacy.Budget{nil, privacy.Pure{Epsilon: 1}, privacy.ZCDP{Rho: 1e-300}} {
		if _, err := linear.NewJDPGreedy(2, 1000, b, good); err == nil {
			t.Errorf("%v is taken", b)
		}
	}
	if _, err := linear.NewJDPGreedy(0, 1000, privacy.ZCDP{Rho: 1}, good); err == nil {
		t.Error("no dimension is taken")
	}
	if _, err := linear.NewJDPGreedy(2, 0, privacy.ZCDP{Rho: 1}, good); err == nil {
		t.Error("no horizon is taken")
	}
}

func TestJDPGreedyAllocatesNothing(t *testing.T) {
	p := jdpGreedy(t, 3, 1000, privacy.ZCDP{Rho: 1}, linear.JDPGreedyOptions{Risk: 0.1, First: 900, Growth: 2,
		Leaf: 1000})
	actions := make([]float64, 30)
	if n := testing.AllocsPerRun(100, func() { p.Choose(actions) }); n != 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
