package release

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

func simulated(t testing.TB, cfg Config) Curator {
	t.Helper()
	s := noise.NewFast(1, 2)
	c, err := Simulated(cfg, &s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func realCurator(t testing.TB, cfg Config) Curator {
	t.Helper()
	c, err := exact(cfg, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func both(t *testing.T, f func(t *testing.T, build func(testing.TB, Config) Curator)) {
	t.Run("simulated", func(t *testing.T) { f(t, simulated) })
	t.Run("real", func(t *testing.T) { f(t, realCurator) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func release(t testing.TB, c Curator, arms ...int) privacy.Released {
	t.Helper()
	r, err := c.Release(arms)
	must(t, err)
	return r
}

func TestDoorMapsAndClips(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		c := build(t, Config{Arms: 2, Lo: -1, Hi: 3, Mechanism: privacy.Exact{}})
		want := 0.0
		for i, x := range []struct{ reward, mapped float64 }{
			{-1, 0}, {0, 0.25}, {1, 0.5}, {3, 1}, {3.0000001, 1}, {-1.5, 0}, {1e300, 1},
			{math.Inf(1), 1}, {math.Inf(-1), 0}, {-math.MaxFloat64, 0},
		} {
			must(t, c.Add(1, x.reward))
			want += x.mapped
			if r := release(t, c, 1); r.Sum(0) != want || r.N(0) != i+1 || r.Mean(0) != want/float64(i+1) {
				t.Errorf("after %v: sum %v of %d, must be %v of %d", x.reward, r.Sum(0), r.N(0), want, i+1)
			}
		}
		if _, real := c.(*curator[int64]); real { // takes every reward: TestNaNIsTheLowerEnd
			return
		}
		if err := c.Add(1, math.NaN()); err == nil || !strings.Contains(err.Error(), "NaN") {
			t.Errorf("NaN: %v", err)
		}
		if r := release(t, c, 1); r.Sum(0) != want || r.N(0) != 10 {
			t.Errorf("a refused reward has changed the slot: %v of %d", r.Sum(0), r.N(0))
		}
	})
}

// By hand: 1/3 is 349525.33 steps, 0.7 is 734003.2, 2/3 is 699050.67.
func TestFixedPointByHand(t *testing.T) {
	c := realCurator(t, Config{Arms: 1, Mechanism: privacy.Laplace{}})
	for _, x := range []float64{1.0 / 3, 0.7, 2.0 / 3, 1, 0, 0x1p-21, 0x1p-22} {
		must(t, c.Add(0, x))
	}
	const steps = 349525 + 734003 + 699051 + 1048576 + 0 + 1 + 0 // half a step goes up
	if r := release(t, c, 0); r.Sum(0) != steps/1048576.0 || r.N(0) != 7 || r.Tail() != (privacy.Tail{}) {
		t.Errorf("sum %v of %d, must be %v of 7", r.Sum(0), r.N(0), steps/1048576.0)
	}
	if !c.Ledger().Total().Infinite() {
		t.Error("no noise costs", c.Ledger().Total())
	}
}

// Exact noise comes out in whole steps, whatever the rewards: no low bits for anybody to read.
func TestRealReleasesAreOnTheGrid(t *testing.T) {
	for _, m := range private {
		c := realCurator(t, Config{Arms: 1, Lo: -0.3, Hi: 1.9, Mechanism: m})
		for i := range 8 {
			must(t, c.Add(0, float64(i)/7))
			if s := release(t, c, 0).Sum(0) * gridSteps; s != math.Trunc(s) {
				t.Errorf("%v: released %v steps", m, s)
			}
		}
	}
}

func TestRealTakesItsBitsFromTheSystem(t *testing.T) {
	var sums [2]float64
	for i := range sums {
		c, err := Real(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1000}})
		must(t, err)
		must(t, c.Add(0, 0))
		sums[i] = release(t, c, 0).Sum(0)
	}
	if sums[0] == sums[1] { // probability below 1e-9
		t.Errorf("two curators drew %v", sums[0])
	}
}

func TestRealIsChargedForTheNoiseItUses(t *testing.T) {
	for _, x := range []float64{1, 0.1, 1.0 / 3, 1e-7, 12345.678, 1 << 20} {
		c := realCurator(t, Config{Arms: 1, Mechanism: privacy.Laplace{Scale: x}})
		must(t, c.Add(0, 1))
		tail := release(t, c, 0).Tail()
		got := c.Ledger().Entries()[0].Mechanism.(privacy.Laplace).Scale
		step := 1.0 / gridSteps
		if !(got >= x && (got <= x+step/32 || got <= 17*step)) {
			t.Errorf("scale %v is charged as %v", x, got)
		}
		if tail.H-got != step/stepParts {
			t.Errorf("scale %v has the tail of %v and is charged as %v: must be a 64th of a step "+
				"apart", x, tail.H, got)
		}
		beta := math.Exp(-1 / (tail.H * gridSteps))
		if want := math.Log(2 / (1 + beta)); math.Abs(tail.Log-want) > 1e-15 || tail.Log <= 0 {
			t.Errorf("scale %v: Log is %v, must be %v", x, tail.Log, want)
		}
		if loss := c.Ledger().Total(); !loss.Within(privacy.Pure{Epsilon: 1 / x}) {
			t.Errorf("scale %v costs %v", x, loss)
		}
	}
	for _, m := range private { // and in full for the others
		c := realCurator(t, Config{Arms: 1, Mechanism: m})
		must(t, c.Add(0, 1))
		release(t, c, 0)
		if got, want := c.Ledger().Total(), m.Loss(); got.ZCDP() > want.ZCDP() ||
			got.Pure() > want.Pure() || got.Approx(1e-6) > want.Approx(1e-6) {
			t.Errorf("%v costs %v, more than %v", m, got, want)
		}
	}
}

// AddSum of n rewards is n Adds: the same slots, the same noise, drawn at the release.
func TestSumsEqualSingleRewards(t *testing.T) {
	for _, m := range append(private, privacy.Exact{}, privacy.Tree{Scale: 1, Horizon: 1 << 20}) {
		rapid.Check(t, func(t *rapid.T) {
			s1, s2 := noise.NewFast(3, 4), noise.NewFast(3, 4)
			cfg := Config{Arms: 3, Lo: 0, Hi: 4, Mechanism: m}
			one, err := Simulated(cfg, &s1)
			if err != nil {
				t.Fatal(err)
			}
			many, err := Simulated(cfg, &s2)
			if err != nil {
				t.Fatal(err)
			}
			left := [3]int{8, 8, 8}
			for range rapid.IntRange(1, 10).Draw(t, "releases") {
				arm := rapid.IntRange(0, 2).Draw(t, "arm")
				if left[arm] == 0 {
					continue
				}
				n := rapid.IntRange(1, left[arm]).Draw(t, "n")
				left[arm] -= n
				sum := 0.0
				for range n {
					x := float64(rapid.IntRange(0, 16).Draw(t, "reward")) / 4
					if err := one.Add(arm, x); err != nil {
						t.Fatal(err)
					}
					sum += x
				}
				if err := many.AddSum(arm, n, sum); err != nil {
					t.Fatal(err)
				}
				a, err := one.Release([]int{arm})
				if err != nil {
					t.Fatal(err)
				}
				b, err := many.Release([]int{arm})
				if err != nil {
					t.Fatal(err)
				}
				if a.Sum(0) != b.Sum(0) || a.N(0) != b.N(0) || a.Tail() != b.Tail() {
					t.Fatalf("%v of %d, and %v of %d", a.Sum(0), a.N(0), b.Sum(0), b.N(0))
				}
			}
		})
	}
}

// Whatever is added, released and forgotten: without noise, sums and counts are those of the
// rewards, each released once; slots are disjoint; and the total is one mechanism's loss.
func TestBookkeeping(t *testing.T) {
	mechanisms := append([]privacy.Mechanism{privacy.Exact{}, privacy.Laplace{}, privacy.Gaussian{},
		privacy.Tree{Horizon: 30}, privacy.Hybrid{}}, private...)
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(mechanisms).Draw(t, "mechanism")
		quiet := m.Loss().Infinite()
		cfg := Config{Arms: 3, Mechanism: m}
		var c Curator
		var err error
		if rapid.Bool().Draw(t, "real") {
			c, err = exact(cfg, rand.NewChaCha8([32]byte{1}))
		} else {
			s := noise.NewFast(1, 2)
			c, err = Simulated(cfg, &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		var n [3]int
		var sum [3]float64
		most, released := 30, 0
		if tree, ok := m.(privacy.Tree); ok {
			most = tree.Horizon
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			arm := rapid.IntRange(0, 2).Draw(t, "arm")
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0, 1, 2:
				x := float64(rapid.IntRange(0, 8).Draw(t, "reward")) / 8
				err := c.Add(arm, x)
				if full := n[arm] == most; full != (err != nil) && m.Kind() == "tree" {
					t.Fatalf("reward %d of at most %d: %v", n[arm]+1, most, err)
				}
				if err == nil {
					n[arm]++
					sum[arm] += x
				}
			case 3, 4:
				arms := rapid.Permutation([]int{0, 1, 2}).Draw(t, "arms")[:rapid.IntRange(1, 3).Draw(t, "k")]
				empty := false
				for _, a := range arms {
					empty = empty || n[a] == 0
				}
				r, err := c.Release(arms)
				if empty != (err != nil) {
					t.Fatalf("release of %v with %v rewards: %v", arms, n, err)
				}
				if err != nil {
					continue
				}
				released++
				for i, a := range arms {
					if r.N(i) != n[a] || quiet && r.Sum(i) != sum[a] {
						t.Fatalf("arm %d: released %v of %d, must be %v of %d", a, r.Sum(i), r.N(i),
							sum[a], n[a])
					}
					if !m.Continual() {
						n[a], sum[a] = 0, 0
					}
				}
			case 5:
				if err := c.Forget(m); err != nil {
					t.Fatal(err)
				}
				n, sum = [3]int{}, [3]float64{}
			}
		}
		for _, e := range c.Ledger().Entries() {
			if !m.Continual() && e.Releases != 1 {
				t.Fatalf("slot %d was released %d times", e.Slot, e.Releases)
			}
		}
		total, want := c.Ledger().Total(), m.Loss()
		switch {
		case released == 0:
			want = privacy.Loss{}
		case !quiet:
			// Real noise is rounded up.
			if total.ZCDP() > want.ZCDP() || total.ZCDP() < want.ZCDP()*(1-1e-6) {
				t.Fatalf("total is %v, must be %v", total, want)
			}
			return
		}
		if total.ZCDP() != want.ZCDP() || total.Pure() != want.Pure() {
			t.Fatalf("total is %v, must be %v", total, want)
		}
	})
}

func TestTreeTakesItsWholeHorizonAndNoMore(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		for _, horizon := range []int{1, 2, 3, 4, 7, 8, 9, 64} {
			c := build(t, Config{Arms: 1, Mechanism: privacy.Tree{Scale: 1, Horizon: horizon}})
			for i := range horizon {
				must(t, c.Add(0, 1))
				if r := release(t, c, 0); r.N(0) != i+1 {
					t.Errorf("%d rewards of %d", r.N(0), i+1)
				}
			}
			if err := c.Add(0, 1); err == nil || !strings.Contains(err.Error(),
				fmt.Sprint("at most ", horizon)) {
				t.Errorf("reward %d of %d: %v", horizon+1, horizon, err)
			}
		}
	})
}

func TestForgetStartsAnew(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		c := build(t, Config{Arms: 2, Mechanism: privacy.Tree{Scale: 3, Horizon: 4}})
		must(t, c.Add(0, 1))
		release(t, c, 0)
		must(t, c.Add(1, 1))
		must(t, c.Forget(privacy.Tree{Scale: 4, Horizon: 8}))
		if _, err := c.Release([]int{1}); err == nil {
			t.Error("a forgotten reward was released")
		}
		must(t, c.Add(0, 1))
		release(t, c, 0)
		entries := c.Ledger().Entries()
		if len(entries) != 2 || entries[0].Slot == entries[1].Slot {
			t.Errorf("entries %v: must be two slots", entries)
		}
		// Rewards are new ones: the worse of the two mechanisms counts, 3/3 and 4/4.
		if got := c.Ledger().Total().Pure(); math.Abs(got-1) > 1e-6 {
			t.Errorf("ε is %v, must be 1", got)
		}
		if err := c.Forget(nil); err == nil {
			t.Error("no mechanism: no error")
		}
	})
}

func TestUnclippedCostsEverything(t *testing.T) {
	for _, m := range append(private, privacy.Exact{}) {
		c := simulated(t, Config{Arms: 1, Mechanism: m, Unclipped: true})
		must(t, c.Add(0, 100))
		must(t, c.AddSum(0, 3, -1e6))
		if s := release(t, c, 0).Sum(0); math.Abs(s-(100-1e6)) > 1000 {
			t.Errorf("%v: sum is %v, must be near %v", m, s, 100-1e6)
		}
		if !c.Ledger().Total().Infinite() {
			t.Errorf("%v: unclipped rewards cost %v", m, c.Ledger().Total())
		}
		for _, x := range []float64{math.NaN(), math.Inf(1)} {
			if c.Add(0, x) == nil || c.AddSum(0, 2, x) == nil {
				t.Errorf("%v is let in", x)
			}
		}
	}
}

func TestSlotsAreNumberedOnInAUsedLedger(t *testing.T) {
	l := privacy.NewLedger()
	for range 3 {
		c := simulated(t, Config{Arms: 2, Mechanism: privacy.Tree{Scale: 2, Horizon: 2}, Ledger: l})
		must(t, c.Add(0, 1))
		must(t, c.Add(1, 1))
		release(t, c, 0, 1)
		release(t, c, 0)
	}
	if n := len(l.Entries()); n != 6 {
		t.Errorf("%d slots, must be 6", n)
	}
	if got := l.Total().Pure(); got != 1 {
		t.Errorf("ε is %v, must be 1", got)
	}
}

func TestRefusedReleasesKeepTheirRewards(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		c := build(t, Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1},
			Ledger: privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.5}))})
		must(t, c.Add(0, 1))
		must(t, c.Add(1, 1))
		for _, arms := range [][]int{{0}, {0, 1}} {
			if r, err := c.Release(arms); !errors.Is(err, privacy.ErrBudget) || r.Len() != 0 {
				t.Errorf("%v above the cap: %v, %v", arms, r, err)
			}
		}
		must(t, c.Forget(privacy.Laplace{Scale: 2}))
		must(t, c.Add(0, 1))
		if r := release(t, c, 0); r.N(0) != 1 {
			t.Errorf("%d rewards", r.N(0))
		}
	})
	// Nothing shows through an earlier release either.
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		for _, arms := range [][]int{{0}, {0, 1}} {
			c := build(t, Config{Arms: 2, Mechanism: privacy.Tree{Scale: 1, Horizon: 1},
				Ledger: privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))})
			must(t, c.Add(0, 1))
			must(t, c.Add(1, 1))
			old := release(t, c, arms...)
			must(t, c.Forget(privacy.Laplace{Scale: 0.5}))
			must(t, c.Add(0, 1))
			must(t, c.Add(1, 1))
			if _, err := c.Release(arms); !errors.Is(err, privacy.ErrBudget) {
				t.Fatal(err)
			}
			for i := range arms {
				if old.Sum(i) != 0 || old.N(i) != 0 {
					t.Errorf("refused, and shown: %v of %d", old.Sum(i), old.N(i))
				}
			}
		}
	})
	// All or none: arm 1 is empty, so arm 0 keeps its reward.
	c := simulated(t, Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1}})
	must(t, c.Add(0, 1))
	if _, err := c.Release([]int{0, 1}); err == nil {
		t.Error("an empty slot was released")
	}
	if r := release(t, c, 0); r.N(0) != 1 || len(c.Ledger().Entries()) != 1 {
		t.Error("the refused release left something")
	}
	// What is not finite is refused and charged, and its rewards are used.
	c = simulated(t, Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}, Unclipped: true})
	must(t, c.Add(0, 1e308))
	must(t, c.Add(0, 1e308))
	if _, err := c.Release([]int{0}); !errors.Is(err, privacy.ErrValues) {
		t.Errorf("an infinite sum: %v", err)
	}
	if _, err := c.Release([]int{0}); err == nil || errors.Is(err, privacy.ErrValues) {
		t.Errorf("a slot that was charged is still there: %v", err)
	}
}

func TestCountsAreLimitedSoThatSumsAreNot(t *testing.T) {
	c := realCurator(t, Config{Arms: 1, Mechanism: privacy.Hybrid{Scale: 1 << 20}}).(*curator[int64])
	c.slots[0].n, c.slots[0].sum = maxRewards-1, (maxRewards-1)*gridSteps
	must(t, c.Add(0, 1))
	if r := release(t, c, 0); math.Abs(r.Sum(0)/maxRewards-1) > 1 {
		t.Errorf("mean %v of a full slot of ones", r.Mean(0))
	}
	if err := c.Add(0, 0); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxRewards)) {
		t.Errorf("one reward more: %v", err)
	}
	// The worst of everything is still an int64.
	if worst := big(maxRewards) * gridSteps; worst+84*maxDraw < 0 || worst+84*maxDraw < worst {
		t.Error("limits overflow")
	}
	for _, x := range []int64{maxDraw + 1, -maxDraw - 1} {
		if _, err := inRange(x, nil); !errors.Is(err, noise.ErrOverflow) {
			t.Errorf("a draw of %d: %v", x, err)
		}
	}
	s := simulated(t, Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}})
	must(t, s.AddSum(0, math.MaxInt-1, 0))
	if err := s.AddSum(0, 2, 0); err == nil {
		t.Error("counts overflow")
	}
}

func big(n int64) int64 { return n }

// A transcript that cannot be written: the release was charged and may have been seen, so its
// rewards are used.
func TestChargedRewardsAreUsed(t *testing.T) {
	c := simulated(t, Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1},
		Ledger: privacy.NewLedger(privacy.WithTranscript(full{}))})
	for _, arms := range [][]int{{0}, {0, 1}} {
		must(t, c.Add(0, 1))
		must(t, c.Add(1, 1))
		if _, err := c.Release(arms); !errors.Is(err, errFull) {
			t.Errorf("%v: %v", arms, err)
		}
		if _, err := c.Release(arms); err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%v again: %v", arms, err)
		}
	}
	if got := c.Ledger().Total().Pure(); got != 1 {
		t.Errorf("ε is %v, must be 1", got)
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A failing draw releases nothing, and charges nothing.
func TestFailingNoise(t *testing.T) {
	c := realCurator(t, Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1}}).(*curator[int64])
	c.noise = &numbered{r: rand.NewPCG(1, 2), failAt: 2}
	must(t, c.Add(0, 1))
	must(t, c.Add(1, 1))
	if r, err := c.Release([]int{0, 1}); !errors.Is(err, errDraw) || r.Len() != 0 {
		t.Errorf("%v, %v", r, err)
	}
	if len(c.Ledger().Entries()) != 0 {
		t.Error("charged for nothing")
	}
}

func TestErrorsSayWhat(t *testing.T) {
	ok := Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1}}
	s := noise.NewFast(1, 2)
	with := func(f func(*Config)) func() error {
		return func() error {
			cfg := ok
			f(&cfg)
			_, err := Simulated(cfg, &s)
			_, err2 := exact(cfg, &s)
			if (err == nil) != (err2 == nil) && !cfg.Unclipped &&
				!strings.Contains(fmt.Sprint(err2), "for exact noise") {
				return fmt.Errorf("simulated: %w; real: %w", err, err2)
			}
			return errors.Join(err, err2)
		}
	}
	on := func(f func(Curator) error) func() error {
		return func() error { return f(simulated(t, ok)) }
	}
	var none *noise.Fast
	for _, c := range []struct {
		do   func() error
		says []string
	}{
		{func() error { _, err := Simulated(ok, none); return err }, []string{"stream"}},
		{with(func(c *Config) { c.Arms = 0 }), []string{"arms", "0", "at least 1"}},
		{with(func(c *Config) { c.Arms = -3 }), []string{"arms", "-3", "at least 1"}},
		{with(func(c *Config) { c.Lo, c.Hi = 1, 0 }), []string{"lo", "1", "hi", "0", "below"}},
		{with(func(c *Config) { c.Lo, c.Hi = 2, 2 }), []string{"lo", "2", "below"}},
		{with(func(c *Config) { c.Lo = math.NaN() }), []string{"lo", "NaN", "finite"}},
		{with(func(c *Config) { c.Hi = math.Inf(1) }), []string{"hi", "+Inf", "finite"}},
		{with(func(c *Config) { c.Lo, c.Hi = -math.MaxFloat64, math.MaxFloat64 }), []string{"difference"}},
		{with(func(c *Config) { c.Lo, c.Hi = 0, 5e-324 }), []string{"difference"}},
		{with(func(c *Config) { c.Mechanism = nil }), []string{"mechanism", "missing"}},
		{with(func(c *Config) {
			c.Mechanism = privacy.Unknown{Name: "magic"}
		}), []string{"mechanism", "magic", "must be exact"}},
		{with(func(c *Config) { // of vectors: nothing is known of a sum's tail
			c.Mechanism = privacy.Sums{Sigma: 3}
		}), []string{"sums", "must be exact", "sqrt or blt"}},
		{with(func(c *Config) {
			c.Mechanism = privacy.VectorGaussian{Sigma: 3}
		}), []string{"vector-gaussian", "must be exact", "sqrt or blt"}},
		{with(func(c *Config) {
			c.Mechanism = &privacy.Laplace{Scale: 1}
		}), []string{"*privacy.Laplace", "must be exact"}},
		{with(func(c *Config) {
			c.Mechanism = privacy.Laplace{Scale: -1}
		}), []string{"laplace", "scale", "-1", "at least 0"}},
		{with(func(c *Config) {
			c.Mechanism = privacy.Gaussian{Sigma: math.NaN()}
		}), []string{"gaussian", "sigma", "NaN"}},
		{with(func(c *Config) {
			c.Mechanism = privacy.Tree{Scale: 1}
		}), []string{"tree", "horizon", "0", "at least 1"}},
		{with(func(c *Config) {
			c.Mechanism = privacy.Hybrid{Scale: math.Inf(1)}
		}), []string{"hybrid", "scale", "Inf", "finite"}},
		{with(func(c *Config) {
			c.Mechanism = privacy.Laplace{Scale: 1<<20 + 1}
		}), []string{"laplace", "1.048577e+06", "at most 1048576"}},
		{with(func(c *Config) { c.Unclipped = true }), []string{"unclipped", "must be false"}},
		{on(func(c Curator) error { return c.Add(2, 1) }), []string{"arm", "2", "from 0 to 1"}},
		{on(func(c Curator) error { return c.Add(-1, 1) }), []string{"arm", "-1", "from 0 to 1"}},
		{on(func(c Curator) error { return c.AddSum(2, 1, 1) }), []string{"arm", "2", "from 0 to 1"}},
		{on(func(c Curator) error { return c.AddSum(0, -1, 0) }), []string{"n", "-1", "negative"}},
		{on(func(c Curator) error {
			return c.AddSum(0, 3, 3.001)
		}), []string{"sum", "3 rewards", "out of range", "from 0 to 3"}},
		{on(func(c Curator) error {
			return c.AddSum(0, 3, -0.001)
		}), []string{"sum", "out of range", "from 0 to 3"}},
		{on(func(c Curator) error { return c.AddSum(0, 3, math.NaN()) }), []string{"sum", "finite"}},
		{on(func(c Curator) error { return c.AddSum(0, 3, math.Inf(1)) }), []string{"sum", "finite"}},
		{on(func(c Curator) error { return c.AddSum(0, 0, 1) }), []string{"sum", "0 rewards", "from 0 to 0"}},
		{func() error { return realCurator(t, ok).AddSum(0, 2, 1) }, []string{"n", "2", "must be 1"}},
		{on(func(c Curator) error { _, err := c.Release(nil); return err }), []string{"no arms"}},
		{on(func(c Curator) error {
			_, err := c.Release([]int{5})
			return err
		}), []string{"arm 5", "from 0 to 1"}},
		{on(func(c Curator) error { _, err := c.Release([]int{1}); return err }), []string{"arm 1", "empty"}},
		{on(func(c Curator) error {
			if err := c.Add(0, 1); err != nil {
				return err
			}
			_, err := c.Release([]int{0, 0})
			return err
		}), []string{"arm 0", "twice"}},
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
	// Rounding is forgiven: a million times 0.1 is not quite 1e5.
	sum := 0.0
	for range 1_000_000 {
		sum += 0.1
	}
	c := simulated(t, Config{Arms: 1, Lo: 0, Hi: 0.1, Mechanism: privacy.Exact{}})
	must(t, c.AddSum(0, 1_000_000, sum))
	if got := release(t, c, 0).Sum(0); got != 1_000_000 {
		t.Errorf("sum %v above its limit by rounding", got)
	}
}

func TestHotPathsAllocateNothing(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		for _, m := range []privacy.Mechanism{privacy.Exact{},
			privacy.Tree{Scale: 20, Horizon: 1 << 20}, privacy.Hybrid{Scale: 2}} {
			c := build(t, Config{Arms: 3, Mechanism: m})
			arms := []int{0, 2}
			if n := testing.AllocsPerRun(2000, func() {
				for _, a := range arms {
					must(t, c.AddSum(a, 1, 1))
				}
				release(t, c, arms...)
				release(t, c, arms[:1]...)
			}); n != 0 {
				t.Errorf("%v: %v allocations", m, n)
			}
		}
	})
}
