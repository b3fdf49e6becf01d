package linear_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

const gridStep = 1.0 / (1 << 20)

// onGrid rounds vectors to the grid, toward 0.
func onGrid(a []float64) {
	for i, x := range a {
		a[i] = math.Trunc(x/gridStep) * gridStep
	}
}

// A lateWorld plays an OFUL whose releases come late: the rewards of a segment are all known so
// many decisions after its last one was made, and segments come out in their order.
type lateWorld struct {
	p       *linear.OFUL
	d       int
	rng     *rand.Rand
	theta   []float64
	reward  func(mean float64) float64
	slot    *featureSlot // of the oldest
	open    *featureSlot
	waiting []lateSegment
	actions []float64
	t       int
	// what came out last, and V of all that did
	gone     lateSegment
	released *mat.SymDense
}

type lateSegment struct {
	sum  []float64
	n    int
	due  int // decision before which it is released
	gram []int64
}

func newLateWorld(t testing.TB, d, horizon int, b privacy.Budget, o linear.OFULOptions,
	rng *rand.Rand) *lateWorld {
	p := oful(t, d, horizon, b, o)
	w := &lateWorld{p: p, d: d, rng: rng, theta: make([]float64, d), slot: newFeatureSlot(p, d, rng),
		open: newFeatureSlot(p, d, rng), actions: make([]float64, 6*d)}
	w.reward = func(mean float64) float64 { return sign(rng, mean) }
	sphere(w.theta, d, 1, rng)
	w.released = mat.NewSymDense(d, nil)
	for i := range d {
		w.released.SetSym(i, i, o.Lambda)
	}
	return w
}

// release lets the oldest segment out if it is known, and says what came out.
func (w *lateWorld) release(t testing.TB) (out privacy.ReleasedVector, ok bool) {
	if len(w.waiting) == 0 || w.waiting[0].due > w.t {
		return out, false
	}
	s := w.waiting[0]
	w.waiting, w.gone = w.waiting[1:], s
	for i, at := 0, 0; i < w.d; i++ {
		for j := range i + 1 {
			w.released.SetSym(i, j, w.released.At(i, j)+float64(s.gram[at])/(1<<40))
			at++
		}
	}
	copy(w.slot.sum, s.sum)
	w.slot.n = s.n
	return w.slot.release(t, w.p.Mechanism()), true
}

// set draws a decision set, on the grid.
func (w *lateWorld) set() []float64 {
	sphere(w.actions, w.d, 1, w.rng)
	for k := range len(w.actions) / w.d {
		l := math.Sqrt(w.rng.Float64())
		for i := range w.d {
			w.actions[k*w.d+i] *= l
		}
	}
	onGrid(w.actions)
	return w.actions
}

// play is a decision, and whether it ended a segment, which waits for so many more.
func (w *lateWorld) play(a []float64, wait int) (ended bool) {
	w.p.Play(a)
	w.open.add(a, w.reward(dot(w.theta, a)))
	w.t++
	if w.p.Due() < 0 {
		return false
	}
	w.waiting = append(w.waiting, lateSegment{slices.Clone(w.open.sum), w.open.n, w.t + wait, w.p.Cut()})
	w.open.n = 0
	clear(w.open.sum)
	return true
}

// A prefixReference is the delayed policy by its definition: V of all decisions for when segments
// end, V of those that were released for what is played, inverses by gonum.
type prefixReference struct {
	*paperOFUL
	issued  *mat.SymDense
	lastCut float64 // log det
	cuts    []*mat.SymDense
	rounds  []int
}

func newPrefixReference(p *paperOFUL) *prefixReference {
	r := &prefixReference{paperOFUL: p, issued: mat.NewSymDense(p.d, nil)}
	r.issued.CopySym(p.v)
	r.lastCut = logDetOf(r.issued)
	return r
}

func (r *prefixReference) play(a []float64, n int) (ended bool) {
	r.issued.SymRankOne(r.issued, 1, mat.NewVecDense(r.d, a))
	if logDetOf(r.issued) <= r.lastCut+math.Log1p(r.o.C) {
		return false
	}
	r.lastCut = logDetOf(r.issued)
	v := mat.NewSymDense(r.d, nil)
	v.CopySym(r.issued)
	r.cuts, r.rounds = append(r.cuts, v), append(r.rounds, n)
	return true
}

func (r *prefixReference) release(y []float64) {
	r.v, r.t = r.cuts[0], r.rounds[0]
	r.cuts, r.rounds = r.cuts[1:], r.rounds[1:]
	r.learn(y)
}

func (r *prefixReference) best(actions []float64) int {
	best, top := 0, math.Inf(-1)
	for i := range len(actions) / r.d {
		a := mat.NewVecDense(r.d, actions[i*r.d:][:r.d])
		if s := mat.Dot(r.theta, a) + r.radius*math.Sqrt(mat.Inner(a, r.inverse, a)); s > top {
			best, top = i, s
		}
	}
	return best
}

// With random delays the policy plays what its definition plays, and one that looks at V of
// decisions that were not released does not.
func TestOFULDelayedIsItsDefinition(t *testing.T) {
	testkit.OneGoroutine(t)
	const horizon = 1500
	rare := linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.001, Split: true}
	often, printed := rare, rare
	often.C = 0.2
	printed.Printed, printed.Lambda0 = true, 0.25
	for _, c := range []struct {
		name string
		d    int
		rho  float64
		o    linear.OFULOptions
		wait int
	}{
		{"d=1", 1, 1, rare, 50},
		{"at once", 3, 1, rare, 0},
		{"d=3", 3, 5, rare, 200},
		{"d=5,many waiting", 5, 100, often, 300},
		{"printed", 2, 10, printed, 100},
		{"no noise", 4, math.Inf(1), often, 70},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b privacy.Budget = privacy.None{}
			if !math.IsInf(c.rho, 1) {
				b = privacy.ZCDP{Rho: c.rho}
			}
			rng := rand.New(rand.NewPCG(17, uint64(c.d)))
			w := newLateWorld(t, c.d, horizon, b, c.o, rng)
			ref := newPrefixReference(newPaperOFUL(c.d, horizon, c.rho, c.o))
			most, other, cuts := 0, 0, 0.0
			for n := range horizon {
				for r, ok := w.release(t); ok; r, ok = w.release(t) {
					y := make([]float64, c.d)
					for i := range y {
						y[i] = r.At(i)
					}
					ref.release(y)
					w.p.Learn(r)
					got, radius := w.p.Estimate()
					near(t, "radius", radius, ref.radius, 1e-8*ref.radius)
					for i := range got {
						near(t, "estimate", got[i], ref.theta.AtVec(i), 1e-8*(1+math.Abs(got[i])))
					}
				}
				actions := w.set()
				got, want := w.p.Best(actions), ref.best(actions)
				if got != want {
					t.Fatalf("decision %d: plays %d, the reference %d", n, got, want)
				}
				if twin := *ref; twin.all() != nil && twin.best(actions) != want {
					other++
				}
				a := actions[want*c.d:][:c.d]
				ended, should := w.play(a, rng.IntN(c.wait+1)), ref.play(a, n+1)
				if ended != should {
					t.Fatalf("decision %d: a segment ends: %t, of the reference %t", n, ended, should)
				}
				if ended {
					cuts++
				}
				if limit := linear.MaxUpdates(c.d, n+1, c.o.Lambda, c.o.C); cuts > limit {
					t.Fatalf("decision %d: %v segments have ended, must be at most %v", n, cuts, limit)
				}
				most = max(most, len(w.waiting))
			}
			if w.p.Updates() < 5 || c.wait > 50 && c.d > 1 && (most < 2 || other < 10) {
				t.Errorf("%d updates, at most %d waiting, %d decisions where V of all plays another",
					w.p.Updates(), most, other)
			}
		})
	}
}

// all makes choices with V of all decisions, as a broken twin does.
func (r *prefixReference) all() *prefixReference {
	base := *r.paperOFUL
	r.paperOFUL = &base
	r.v = r.issued
	r.theta = mat.NewVecDense(r.d, nil)
	r.set()
	return r
}

// Where every segment is released at its end, what is played is what Choose plays.
func TestOFULDelayedByNothing(t *testing.T) {
	for _, d := range []int{1, 3, 6} {
		o := linear.OFULOptions{Lambda: 0.1, C: 0.5, Risk: 0.01}
		w := newLateWorld(t, d, 3000, privacy.ZCDP{Rho: 2}, o, rand.New(rand.NewPCG(3, uint64(d))))
		p := oful(t, d, 3000, privacy.ZCDP{Rho: 2}, o)
		for n := range 3000 {
			actions := w.set()
			got, want := w.p.Best(actions), p.Choose(actions).Action
			if got != want {
				t.Fatalf("d = %d, decision %d: plays %d, Choose %d", d, n, got, want)
			}
			if w.play(actions[want*d:][:d], 0) != (p.Due() == 0) {
				t.Fatalf("d = %d, decision %d: they are not due together", d, n)
			}
			if r, ok := w.release(t); ok {
				w.p.Learn(r)
				p.Learn(r)
			}
		}
		if p.Updates() < 10 || p.Updates() != w.p.Updates() {
			t.Errorf("d = %d: %d updates and %d", d, p.Updates(), w.p.Updates())
		}
	}
}

// By hand: d = 1, λ = 1, C = 1, δ = e⁻², ρ = 2, so σ = 1.
func TestOFULDelayedByHand(t *testing.T) {
	const horizon = 50
	p := oful(t, 1, horizon, privacy.ZCDP{Rho: 2}, linear.OFULOptions{Lambda: 1, C: 1, Risk: math.Exp(-2)})
	ledger := privacy.NewLedger()
	learn := func(slot int, y float64) {
		r, err := ledger.ReleaseVector(slot, p.Mechanism(), &privacy.Vector{N: 1, Value: []float64{y}})
		if err != nil {
			t.Fatal(err)
		}
		p.Learn(r)
	}
	check := func(theta, radius float64, due int) {
		t.Helper()
		got, r := p.Estimate()
		near(t, "θ̃", got[0], theta, 1e-15)
		near(t, "β̃", r, radius, 1e-12)
		if p.Due() != due {
			t.Errorf("due is %d, want %d", p.Due(), due)
		}
	}
	play := func(want int, actions ...float64) {
		t.Helper()
		if got := p.Best(actions); got != want {
			t.Errorf("plays %d of %v, want %d", got, actions, want)
		}
		p.Play(actions[want : want+1])
	}
	cut := func(want float64) {
		t.Helper()
		if g := p.Cut(); len(g) != 1 || float64(g[0]) != want*(1<<40) {
			t.Errorf("the segment's sum of squares is %v, want %v", g, want)
		}
	}
	x := 2 + math.Log(horizon)
	f := 1 + 2*math.Sqrt(x) + 2*x
	learn(0, 9) // of nothing that was cut: the policy was not played yet, as Choose's V = λ
	p = oful(t, 1, horizon, privacy.ZCDP{Rho: 2}, linear.OFULOptions{Lambda: 1, C: 1, Risk: math.Exp(-2)})
	play(1, 0.5, -1)  // V = 2, not more than 2·1
	check(0, 3, -1)   // √(2·2 + log 1) + √1
	learn(1, 9)       // there is no segment
	check(0, 3, -1)   // so that nothing has changed
	play(1, 0.5, -1)  // V = 3
	check(0, 3, 0)    // due
	cut(2)            // the first segment, V = 3
	check(0, 3, -1)   // and not any more
	play(0, 1, -0.9)  // the longest still: nothing was released. V = 4
	play(0, 1, -0.9)  // V = 5
	play(1, 0.5, -1)  // V = 6, not more than 2·3
	check(0, 3, -1)   //
	play(0, 0.5)      // V = 6.25
	check(0, 3, 0)    //
	cut(3.25)         // the second segment, V = 6.25, while the first waits
	learn(2, -1.5)    // of the first: θ̃ = −1.5/3
	play(1, 1, -0.75) // V = 6.8125. 1 scores β̃/√3 − 0.5 = 2.783, −0.75 scores 2.837
	check(-0.5, math.Sqrt(4+math.Log(3))+1+math.Sqrt(f/3), -1)
	learn(3, 2.5) // of the second: both noises are in (−1.5 + 2.5)/6.25
	check(0.16, math.Sqrt(4+math.Log(6.25))+1+math.Sqrt(2*f/6.25), -1)
	learn(4, 2.5) // there is no third
	check(0.16, math.Sqrt(4+math.Log(6.25))+1+math.Sqrt(2*f/6.25), -1)
	if p.Updates() != 2 {
		t.Errorf("%d updates, want 2", p.Updates())
	}
}

// θ* is in the confidence set at all releases of a run with probability 1−δ, whatever the delays.
// Of 400 runs at δ = 0.05 more than 45 fail with probability 1.9e-7; a set with V of all decisions
// fails in more.
func TestOFULDelayedCovers(t *testing.T) {
	testkit.OneGoroutine(t)
	const d, horizon, runs, most = 3, 400, 400, 45
	o := linear.OFULOptions{Lambda: 1, C: 0.5, Risk: 0.05, Split: true}
	fails, wrong := 0, 0
	for run := range runs {
		w := newLateWorld(t, d, horizon, privacy.None{}, o, rand.New(rand.NewPCG(uint64(run), 8)))
		failed, twin := false, false
		v := mat.NewSymDense(d, nil)
		for i := range d {
			v.SetSym(i, i, o.Lambda)
		}
		for range horizon {
			for r, ok := w.release(t); ok; r, ok = w.release(t) {
				w.p.Learn(r)
				failed = failed || !w.p.Covers(w.theta)
				twin = twin || w.twin(v)
			}
			actions := w.set()
			a := actions[w.p.Best(actions)*d:][:d]
			v.SymRankOne(v, 1, mat.NewVecDense(d, a))
			w.play(a, 100)
		}
		if failed {
			fails++
		}
		if twin {
			wrong++
		}
	}
	if fails > most || wrong <= most {
		t.Errorf("%d of %d runs leave the confidence set, and %d with V of all decisions; want at most "+
			"%d, and more", fails, runs, wrong, most)
	}
}

// twin is the estimate of a policy that divides what was released by the V of all decisions, and
// whether θ* is out of its set.
func (w *lateWorld) twin(all *mat.SymDense) (out bool) {
	theta, radius := w.p.Estimate()
	var sums, other mat.VecDense
	sums.MulVec(w.released, mat.NewVecDense(w.d, theta))
	if err := other.SolveVec(all, &sums); err != nil {
		return true
	}
	other.SubVec(mat.NewVecDense(w.d, slices.Clone(w.theta)), &other)
	return math.Sqrt(mat.Inner(&other, all, &other)) > radius
}

// What is known of released decisions follows from their lines: a policy that skips them and plays
// the rest is in the same state, bit for bit, however they were cut.
func TestOFULSkip(t *testing.T) {
	for _, d := range []int{1, 3, 4} {
		const horizon = 4000
		b, o := privacy.ZCDP{Rho: 3}, linear.OFULOptions{Lambda: 0.1, C: 0.3, Risk: 0.01}
		rng := rand.New(rand.NewPCG(21, uint64(d)))
		w := newLateWorld(t, d, horizon, b, o, rng)
		type line struct {
			n        int
			gram     []int64
			released privacy.ReleasedVector
		}
		var lines []line
		var played [][]float64 // of decisions that were not released
		var ends []int         // of segments that were not released, from played's begin
		check := func(n int) {
			again := oful(t, d, horizon, b, o)
			for _, l := range lines {
				if err := again.Skip(l.n, l.gram); err != nil {
					t.Fatal(err)
				}
				if again.Due() != 0 {
					t.Fatalf("d = %d, decision %d: a segment that was cut is not due again", d, n)
				}
				if !slices.Equal(again.Cut(), l.gram) {
					t.Fatalf("d = %d, decision %d: a segment has another gram", d, n)
				}
				again.Learn(l.released)
			}
			for i, a := range played {
				again.Play(a)
				if (again.Due() == 0) != slices.Contains(ends, i+1) {
					t.Fatalf("d = %d, decision %d: a segment ends elsewhere", d, n)
				}
				if again.Due() == 0 {
					again.Cut()
				}
			}
			if len(lines) > 0 && linear.Settled(again) {
				t.Fatalf("d = %d, decision %d: an estimate was made that nobody has asked for", d, n)
			}
			if !linear.SameOFUL(w.p, again) {
				t.Fatalf("d = %d, decision %d: another state", d, n)
			}
		}
		for n := range horizon {
			for r, ok := w.release(t); ok; r, ok = w.release(t) {
				w.p.Learn(r)
				end := ends[0]
				for i := range ends {
					ends[i] -= end
				}
				played, ends = played[end:], ends[1:]
				lines = append(lines, line{r.N(), w.gone.gram, keep(t, r, w.p.Mechanism())})
			}
			if n%501 == 500 {
				check(n)
			}
			actions := w.set()
			a := slices.Clone(actions[w.p.Best(actions)*d:][:d])
			played = append(played, a)
			if w.play(a, rng.IntN(100)) {
				ends = append(ends, len(played))
			}
		}
		if len(lines) < 10 {
			t.Errorf("d = %d: %d releases", d, len(lines))
		}
	}
}

// keep is a release that lasts.
func keep(t *testing.T, r privacy.ReleasedVector, m privacy.Mechanism) privacy.ReleasedVector {
	t.Helper()
	v := privacy.Vector{N: r.N(), Value: make([]float64, r.Len())}
	for i := range v.Value {
		v.Value[i] = r.At(i)
	}
	out, err := privacy.NewLedger().ReleaseVector(0, m, &v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Sums that no decisions have are refused, and change nothing.
func TestOFULSkipErrors(t *testing.T) {
	const one = 1 << 40
	p := oful(t, 2, 100, privacy.ZCDP{Rho: 1}, linear.OFULOptions{Lambda: 1, C: 1, Risk: 0.1})
	for _, c := range []struct {
		name string
		n    int
		gram []int64
		want string
	}{
		{"nothing", 0, []int64{0, 0, 0}, "oful: a segment has 0 decisions, must have 1 to 4194304"},
		{"too many", 1<<22 + 1, []int64{0, 0, 0}, "oful: a segment has 4194305 decisions, must " +
			"have 1 to 4194304"},
		{"length", 1, []int64{0, 0}, "oful: a segment has 2 sums of products, must have 3"},
		{"square", 1, []int64{-1, 0, 0}, "oful: a segment has a negative sum of squares"},
		{"product", 1, []int64{4, 5, 4}, "oful: a segment has a sum of products that its sums of " +
			"squares do not allow"},
		{"norm", 1, []int64{one, 0, one}, "oful: a segment has 2 as sum of squared norms, must be at most 1"},
	} {
		err := p.Skip(c.n, c.gram)
		if err == nil || err.Error() != c.want || p.Due() >= 0 {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if err := p.Skip(2, []int64{one, -one, one}); err != nil || p.Due() != 0 {
		t.Errorf("two decisions: %v, due is %d", err, p.Due())
	}
	if err := p.Skip(1, []int64{0, 0, 0}); err == nil {
		t.Error("a segment was skipped to within another")
	}
	p.Cut()
	p.Play([]float64{1, 0})
	if err := p.Skip(1, []int64{0, 0, 0}); err == nil {
		t.Error("a segment was skipped to within another")
	}
}

// A choice and what it does to V allocate nothing.
func TestOFULDelayedAllocatesNothing(t *testing.T) {
	w := newLateWorld(t, 5, 1e6, privacy.ZCDP{Rho: 1}, linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.1},
		rand.New(rand.NewPCG(1, 1)))
	actions := w.set()
	w.p.Play(actions[:5])
	if n := testing.AllocsPerRun(100, func() { w.p.Play(actions[w.p.Best(actions)*5:][:5]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A segment that was ended by its vectors is ended by their sums too, also where V is close to
// singular: blocks of words, whose components add up to the intercept, beside a small λ.
func TestOFULSegmentsEndByTheirSums(t *testing.T) {
	testkit.OneGoroutine(t)
	const blocks, d = 4, 16
	unit := math.Trunc(1/math.Sqrt(blocks)/gridStep) * gridStep
	for _, lambda := range []float64{1e-12, 1e-9, 1e-3, 1} {
		rng := rand.New(rand.NewPCG(5, 1))
		o := linear.OFULOptions{Lambda: lambda, C: 1, Risk: 0.1}
		p, again := oful(t, d, 1e6, privacy.ZCDP{Rho: 1}, o), oful(t, d, 1e6, privacy.ZCDP{Rho: 1}, o)
		n, cuts := 0, 0
		for range 20000 {
			a := make([]float64, d)
			i, j := rng.IntN(3), rng.IntN(3)
			for _, k := range []int{0, 1 + i, 4 + j, 7 + 3*i + j} {
				a[k] = unit
			}
			p.Play(a)
			if n++; p.Due() < 0 {
				continue
			}
			gram := p.Cut()
			if err := again.Skip(n, gram); err != nil {
				t.Fatal(err)
			}
			if again.Due() < 0 {
				t.Errorf("λ = %v: segment %d of %d decisions ends, and by its sums it does not", lambda, cuts, n)
			}
			again.Cut()
			n, cuts = 0, cuts+1
		}
		if most := linear.MaxUpdates(d, 20000, lambda, 1); cuts < 10 || float64(cuts) > most {
			t.Errorf("λ = %v: %d segments, at most %v", lambda, cuts, most)
		}
	}
}
