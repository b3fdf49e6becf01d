package choose

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
)

// synthetic is a contest of laws whose means are known: draw is the value of an entrant in a world
// of its own, with a part that all share.
func synthetic(seed uint64, entrants int,
	draw func(entrant int, shared float64, r *rand.Rand) float64) *contest {
	return &contest{
		ranked: entrants, all: entrants, level: 0.05, resolution: 0.01, top: 1e6, min: 32,
		max: 1024, effort: 1 << 28, workers: 1,
		play: func(_ context.Context, i, first int, out []float64) (int, error) {
			for k := range out {
				world := rand.New(rand.NewPCG(seed, uint64(first+k)))
				shared := world.NormFloat64()
				out[k] = draw(i, shared, rand.New(rand.NewPCG(seed^uint64(i+1)<<40, uint64(first+k))))
			}
			return 1, nil
		},
	}
}

func ordered(c *contest) bool {
	for _, p := range c.pairs {
		if p.verdict == Better {
			return true
		}
	}
	return false
}

// atMost fails if a rate is above p beyond chance. False alarm: 1e-6, for a rate of p exactly.
func atMost(t *testing.T, count, n int, p float64) {
	t.Helper()
	lo, _, err := stats.ClopperPearson(count, n, 1-2e-6)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d", count, n)
	if lo > p {
		t.Errorf("%d of %d: above %v", count, n, p)
	}
}

// Among policies of equal means, a strict order is declared with probability at most the level,
// although one looks again and again. Values are Gaussian and share their worlds, exponential, or
// one of them costs 20 once in 20 runs.
func TestEqualMeansAreNotOrdered(t *testing.T) {
	for _, test := range []struct {
		name           string
		min, questions int
		draw           func(i int, shared float64, r *rand.Rand) float64
	}{
		{"gaussian", 32, 2000, func(i int, shared float64, r *rand.Rand) float64 {
			return 100 + 10*shared + float64(1+i)*r.NormFloat64()
		}},
		{"exponential", 32, 1000, func(i int, shared float64, r *rand.Rand) float64 {
			return 10*r.ExpFloat64() + shared
		}},
		{"disasters", 256, 500, func(i int, shared float64, r *rand.Rand) float64 {
			if i > 0 {
				return 1 + 0.1*r.NormFloat64()
			}
			if r.Float64() < 0.05 {
				return 20
			}
			return 0
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wrong := 0
			for q := range test.questions {
				c := synthetic(uint64(q), 3, test.draw)
				c.min, c.max = test.min, 4*test.min
				if err := c.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if ordered(c) {
					wrong++
				}
			}
			atMost(t, wrong, test.questions, 0.05)
		})
	}
}

// The broken twin spends the whole level on each statement at each look, and is caught
// by the same test.
func TestLooksWithoutASplitAreCaught(t *testing.T) {
	const questions = 400
	wrong := 0
	for q := range questions {
		c := synthetic(uint64(q), 3, func(_ int, shared float64, r *rand.Rand) float64 {
			return 100 + shared + r.NormFloat64()
		})
		// 12 statements; a quarter of the weight at the second look
		c.level, c.resolution, c.max = 0.05*12*4*(math.Pi*math.Pi/3-1), 1e-9, 256
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ordered(c) {
			wrong++
		}
	}
	lo, _, err := stats.ClopperPearson(wrong, questions, 1-2e-6)
	if err != nil {
		t.Fatal(err)
	}
	if lo <= 0.05 {
		t.Errorf("%d of %d: not caught", wrong, questions)
	}
}

// Ties are declared of policies 2 % apart with probability at most the level, and orders the
// wrong way round too.
func TestWrongStatementsOfDifferentMeans(t *testing.T) {
	const questions = 2000
	wrong := 0
	for q := range questions {
		c := synthetic(uint64(q), 2, func(i int, shared float64, r *rand.Rand) float64 {
			return 100 + 2*float64(i) + 5*shared + 3*r.NormFloat64()
		})
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.verdict(0, 1) == Tie || c.verdict(1, 0) == Better {
			wrong++
		}
	}
	atMost(t, wrong, questions, 0.05)
}

func TestSettled(t *testing.T) {
	c := synthetic(1, 4, func(i int, shared float64, r *rand.Rand) float64 {
		return []float64{3, 1, 1.002, 2}[i] + 0.1*shared + 0.01*r.NormFloat64()
	})
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.order, []int{1, 2, 3, 0}) || c.stopped != "settled" {
		t.Errorf("order %v, stopped by %s", c.order, c.stopped)
	}
	for k, want := range []Verdict{Tie, Better, Better} {
		if got := c.verdict(c.order[k], c.order[k+1]); got != want {
			t.Errorf("places %d and %d: %s, want %s", k+1, k+2, got, want)
		}
	}
}

func TestUnsettled(t *testing.T) {
	c := synthetic(1, 3, func(i int, _ float64, r *rand.Rand) float64 {
		return []float64{100, 100, 1000}[i] + 20*r.NormFloat64()
	})
	c.resolution = 1e-6
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.stopped != "runs" || c.verdict(c.order[0], c.order[1]) != Unsettled ||
		c.verdict(c.order[1], c.order[2]) != Better {
		t.Errorf("stopped by %s; %v", c.stopped, c.pairs)
	}
	// The one that is out of the race stopped early.
	if n := []int{len(c.entrant[0].x), len(c.entrant[1].x), len(c.entrant[2].x)}; !slices.Equal(n,
		[]int{1024, 1024, 32}) {
		t.Errorf("%v runs", n)
	}
}

// Where runs are long, there are fewer of them, and the answer says why it is not settled.
func TestEffort(t *testing.T) {
	c := synthetic(1, 2, func(_ int, _ float64, r *rand.Rand) float64 { return 100 + 20*r.NormFloat64() })
	play := c.play
	c.play = func(ctx context.Context, i, first int, out []float64) (int, error) {
		_, err := play(ctx, i, first, out)
		return 1000, err
	}
	c.min, c.max, c.effort, c.resolution = 256, 4096, 70_000, 1e-6
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(c.entrant[0].x); n != 64 || c.stopped != "effort" {
		t.Errorf("%d runs, stopped by %s", n, c.stopped)
	}
}

// A few disasters keep Student's interval from being believed; Hoeffding's bound settles what is
// far apart all the same.
func TestDisastersAreSettledByHoeffding(t *testing.T) {
	draw := func(i int, _ float64, r *rand.Rand) float64 {
		if i == 1 {
			return 600 + r.NormFloat64()
		}
		if r.Float64() < 0.004 {
			return 1000
		}
		return 1
	}
	c := synthetic(1, 2, draw)
	c.top, c.min, c.max = 1000, 512, 512
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := c.entrant[0]
	s := sampled(len(e.x), func(k int) float64 { return e.x[k] })
	if s.upperHolds() || slices.Max(e.x) != 1000 {
		t.Errorf("skewness %v is believed", s.skew)
	}
	if c.verdict(0, 1) != Better {
		t.Errorf("%v", c.pairs)
	}
	// Ten per cent apart is within what Hoeffding cannot see and Student must not.
	c = synthetic(1, 2, func(i int, shared float64, r *rand.Rand) float64 {
		x := draw(i, shared, r)
		if i == 1 {
			x = x - 600 + 8
		}
		return x
	})
	c.top, c.min, c.max = 1000, 512, 512
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.stopped != "runs" {
		t.Errorf("settled: %v", c.pairs)
	}
}

// A disaster that no run has shown misleads Student's interval, as the package says, and never
// a strict contest.
func TestStrictKnowsOfDisastersUnseen(t *testing.T) {
	wrong := [2]int{}
	const questions = 300
	for q := range questions {
		for k, strict := range []bool{false, true} {
			c := synthetic(uint64(q), 2, func(i int, _ float64, r *rand.Rand) float64 {
				if i == 1 {
					return 10 + 0.1*r.NormFloat64()
				}
				if r.Float64() < 1e-3 {
					return 10000
				}
				return 1 // mean 11: the worse one
			})
			c.top, c.strict, c.min, c.max = 10000, strict, 64, 256
			if err := c.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.verdict(0, 1) != Unsettled {
				wrong[k]++
			}
		}
	}
	t.Logf("wrong: %d and, strictly, %d of %d", wrong[0], wrong[1], questions)
	if wrong[0] < questions/2 {
		t.Errorf("%d of %d: Student's interval has seen the unseen", wrong[0], questions)
	}
	if wrong[1] > 0 {
		t.Errorf("strictly wrong %d times", wrong[1])
	}
}

// A strict contest settles what is far enough apart.
func TestStrictSettles(t *testing.T) {
	c := synthetic(1, 2, func(i int, _ float64, r *rand.Rand) float64 {
		return 10 + 50*float64(i) + r.NormFloat64()
	})
	c.top, c.strict = 100, true
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.verdict(0, 1) != Better {
		t.Errorf("%v", c.pairs)
	}
}

// The errors of all statements, at all sizes, add up to the level.
func TestErrorIsSpentOnce(t *testing.T) {
	c := contest{ranked: 7, all: 9, level: 0.05, min: 1024, max: 10_000_000}
	c.plan()
	if want := []int{16, 32, 64}; !slices.Equal(c.sizes[:3], want) || c.sizes[c.base] != 1024 ||
		c.sizes[len(c.sizes)-1] != c.max {
		t.Fatalf("sizes %v", c.sizes)
	}
	// Student's and Hoeffding's statements, and the bets on pairs, which are spent once for all
	// sizes.
	total := c.level / c.statements() * (7 * 6 / 2)
	for k := range c.sizes {
		total += c.alpha(k) * (7*6/2 + 2*9)
	}
	if !(total <= 0.05 && total > 0.04) {
		t.Errorf("spent %v", total)
	}
}

// A settled pair keeps its order where means of samples of different sizes say otherwise.
func TestOrderKeepsWhatIsSettled(t *testing.T) {
	c := contest{ranked: 3, pairs: map[[2]int]judgement{{0, 1}: {verdict: Better}},
		entrant: []played{{x: []float64{5}}, {x: []float64{6}}, {x: []float64{7}}}}
	c.rank()
	if !slices.Equal(c.order, []int{1, 0, 2}) {
		t.Errorf("order %v", c.order)
	}
	c.pairs = map[[2]int]judgement{{0, 1}: {verdict: Better, first: true},
		{1, 2}: {verdict: Better, first: true}}
	// the last one by way of the second
	if w := c.worse(0); !slices.Equal(w, []bool{false, true, true}) {
		t.Errorf("worse than the first: %v", w)
	}
	c.pairs[[2]int{0, 2}] = judgement{verdict: Better} // a circle must end
	c.rank()
	if len(c.order) != 3 {
		t.Errorf("order %v", c.order)
	}
}

// Where runs are bounded, a bet proves an order that disasters hide from Student's interval, in a
// sample of 20 000 with about 40 of them; and what is no order is not proved: of equal means,
// seldom enough, however often one looks.
func TestBets(t *testing.T) {
	testkit.OneGoroutine(t)
	// two points, 1000 with probability 1/500, less 2 and the mean
	values := func(seed uint64, mean float64) func(int) float64 {
		r := rand.New(rand.NewPCG(seed, 1))
		x := make([]float64, 20_000)
		for i := range x {
			x[i] = mean - 2
			if r.Float64() < 1.0/500 {
				x[i] += 1000
			}
		}
		return func(i int) float64 { return x[i] }
	}
	c := contest{ranked: 2, all: 2, level: 0.05, top: 1000}
	f := values(1, -2.5)
	if s := sampled(2000, f); s.upperHolds() || !c.negative(20_000, f) {
		t.Errorf("skewness %v; not proved", s.skew)
	}
	c.level = 6 * 0.1 // 0.05 for a bet
	const questions = 400
	wrong := 0
	for q := range questions {
		f := values(uint64(q), 0)
		for n := 500; n <= 16_000; n *= 2 {
			if c.negative(n, f) {
				wrong++
				break
			}
		}
	}
	atMost(t, wrong, questions, 0.05)
}

// What settled a pair is withdrawn when a longer sample shows a disaster. The first entrant costs
// 1, and 10 000 in run 700 alone.
func TestADisasterWithdrawsAVerdict(t *testing.T) {
	var looks []Verdict
	c := synthetic(1, 2, nil)
	c.play = func(_ context.Context, i, first int, out []float64) (int, error) {
		for k := range out {
			out[k] = []float64{1, 8}[i]
			if i == 0 && first+k == 700 {
				out[k] = 10_000
			}
		}
		return 1, nil
	}
	c.min = 64
	c.progress = func(Progress) { looks = append(looks, c.verdict(0, 1)) }
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(looks, []Verdict{Unsettled, Better, Unsettled}) || c.stopped != "runs" ||
		!slices.Equal(c.order, []int{1, 0}) {
		t.Errorf("%v, stopped by %s, order %v", looks, c.stopped, c.order)
	}
}

func TestConstants(t *testing.T) {
	for _, mean := range []float64{0, 4} {
		c := synthetic(1, 2, func(int, float64, *rand.Rand) float64 { return mean })
		c.top = 10
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.verdict(0, 1) != Tie {
			t.Errorf("two constants of %v: %v", mean, c.pairs)
		}
	}
}

// When time is over, whole samples are kept, and there must be one.
func TestTime(t *testing.T) {
	slow := func(after int) *contest {
		c := synthetic(1, 2, func(_ int, _ float64, r *rand.Rand) float64 { return 100 + 20*r.NormFloat64() })
		play := c.play
		c.play = func(ctx context.Context, i, first int, out []float64) (int, error) {
			if first >= after {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return play(ctx, i, first, out)
		}
		c.limit, c.resolution = 50*time.Millisecond, 1e-6
		return c
	}
	if err := slow(0).run(t.Context()); !errors.Is(err, ErrTime) {
		t.Errorf("no run in time: %v", err)
	}
	c := slow(32)
	if err := c.run(t.Context()); err != nil || c.stopped != "time" || len(c.entrant[0].x) != 32 {
		t.Errorf("%v, stopped by %s after %d runs", err, c.stopped, len(c.entrant[0].x))
	}
}

// A failure and a cancelled context end a contest with their errors.
func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	c := synthetic(1, 2, nil)
	c.play = func(_ context.Context, _, first int, _ []float64) (int, error) {
		if first == 7 {
			return 0, broken
		}
		return 1, nil
	}
	if err := c.run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	c = synthetic(1, 2, nil)
	c.play = func(ctx context.Context, _, _ int, _ []float64) (int, error) {
		cancel(errors.New("a signal"))
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if err := c.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
