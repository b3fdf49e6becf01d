package release

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// Scales differ, so that no noise can stand in for another.
var (
	ranged = privacy.Sparse{Questions: privacy.Questions{Threshold: 3, Query: 2,
		Statistic: privacy.Range}, Scale: 1.5}
	centred = privacy.Sparse{Questions: privacy.Questions{Threshold: 2, Query: 3,
		Statistic: privacy.Centre}, Scale: 1}
)

// chanceOfNo is the probability that k questions at a distance x above the statistic are all
// answered no: E_B[P(A ≤ x+B)^k].
func chanceOfNo(m privacy.Sparse, x float64, k int) float64 {
	sum, weight := 0.0, 0.0
	const steps = 40000
	for i := range steps {
		b := m.Threshold * 30 * (2*(float64(i)+0.5)/steps - 1)
		p := math.Exp(-math.Abs(b)/m.Threshold) / 2
		f := 1 - math.Exp(-(x+b)/m.Query)/2
		if x+b < 0 {
			f = math.Exp((x+b)/m.Query) / 2
		}
		sum += p * math.Pow(f, float64(k))
		weight += p
	}
	return sum / weight
}

// inspectSparse names the checks that a curator fails: z standard errors, as inspect.
func inspectSparse(t testing.TB, build maker, m privacy.Sparse) []string {
	t.Helper()
	var bad []string
	fail := func(name, format string, args ...any) {
		if !slices.Contains(bad, name) {
			bad = append(bad, name)
		}
		t.Logf("%s: %s", name, fmt.Sprintf(format, args...))
	}
	arms, size := []int{0, 1}, 3.0
	if m.Statistic == privacy.Centre {
		arms, size = []int{0}, 2
	}
	newCurator := func(run int) Curator {
		c, err := build(m, run)
		must(t, err)
		return c
	}
	// fill makes the statistic 3 (range) or 2 (centre), in six or four rewards.
	fill := func(c Curator) {
		for range int(size * 2 / float64(len(arms))) {
			if len(arms) == 1 {
				must(t, c.Add(0, 1))
			}
		}
		if len(arms) == 2 {
			for range 3 {
				must(t, c.Add(0, 1))
				must(t, c.Add(1, 0))
			}
		}
	}
	proportion := func(name string, hits, n int, p float64) {
		if d := math.Abs(float64(hits)/float64(n)-p) / math.Sqrt(p*(1-p)/float64(n)); d > z {
			fail(name, "%d of %d, probability %.4f: %.1f standard errors", hits, n, p, d)
		}
	}
	const runs, k = 6000, 12
	var firstNo, allNo, bothNo int
	var sums, again []float64
	for run := range runs {
		c := newCurator(run)
		fill(c)
		noes, yes := 0, false
		for i := range k {
			r, err := c.Ask(arms, size+4)
			must(t, err)
			if yes = r.Len() > 0; yes {
				break
			}
			noes++
			if i == 0 {
				firstNo++
			}
		}
		if noes == k {
			allNo++
		}
		if !yes {
			r, err := c.Ask(arms, -1e6)
			must(t, err)
			if r.Len() != len(arms) {
				t.Fatal("a statistic far above the level")
			}
		}
		if _, err := c.Ask(arms, 0); err == nil {
			fail("emptied", "a group was asked about after its yes")
		}
		// The next group: the first question of both is no, independently, and sums are of
		// its own rewards.
		fill(c)
		r, err := c.Ask(arms, size+4)
		must(t, err)
		if noes > 0 && r.Len() == 0 {
			bothNo++
		}
		if r.Len() == 0 {
			r, err = c.Ask(arms, -1e6)
			must(t, err)
		}
		n := int(2*size) / len(arms)
		if r.N(0) != n {
			fail("emptied", "%d rewards of %d in a group", r.N(0), n)
		}
		again = append(again, r.Sum(0)-float64(n))

		c = newCurator(runs + run)
		fill(c)
		r, err = c.Ask(arms, -1e6)
		must(t, err)
		sums = append(sums, r.Sum(0)-float64(n))
	}
	no := chanceOfNo(m, 4, 1)
	proportion("first question", firstNo, runs, no)
	proportion("all questions", allNo, runs, chanceOfNo(m, 4, k))
	proportion("next group", bothNo, runs, no*no)
	cdf, deviation := oneDraw(privacy.Laplace{Scale: m.Scale})
	if d, limit := kolmogorov(sums, cdf), math.Sqrt(math.Log(2/1e-7)/(2*runs)); d > limit {
		fail("sums", "Kolmogorov distance of a released sum is %.4f, above %.4f", d, limit)
	}
	if meanTest(again, 0, deviation) > z {
		fail("emptied", "the sums of the second group are off in the mean")
	}

	c := newCurator(0)
	fill(c)
	_, err := c.Ask(arms, 1e6)
	must(t, err)
	if got, want := c.Ledger().Total().Pure(), m.Questions.Loss().Pure(); math.Abs(got-want) > 1e-5*want {
		fail("price", "a no costs %v, want %v", got, want)
	}
	_, err = c.Ask(arms, -1e6)
	must(t, err)
	if got, want := c.Ledger().Total().Pure(), m.Loss().Pure(); math.Abs(got-want) > 1e-5*want {
		fail("price", "a yes and its sums cost %v, want %v", got, want)
	}
	return bad
}

func TestSparseCuratorsPassInspection(t *testing.T) {
	for _, m := range []privacy.Sparse{ranged, centred} {
		if bad := inspectSparse(t, simulatedMaker, m); len(bad) > 0 {
			t.Errorf("simulated, %v: fails %q", m, bad)
		}
		if bad := inspectSparse(t, exactMaker, m); len(bad) > 0 {
			t.Errorf("real, %v: fails %q", m, bad)
		}
	}
}

func TestBrokenSparseTwinsAreCaught(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, twin := range []struct {
		name, check string
		build       maker
	}{
		{"noise reused between questions", "all questions", broken(func(c *curator[float64]) Curator {
			c.questions.query = &repeated{sampler: c.questions.query, times: 1 << 30}
			return c
		})},
		{"threshold noise left out", "first question", broken(func(c *curator[float64]) Curator {
			c.questions.threshold = nothing{}
			return c
		})},
		{"half the threshold noise", "first question", broken(func(c *curator[float64]) Curator {
			c.questions.threshold = halved{c.questions.threshold}
			return c
		})},
		{"half the query noise", "first question", broken(func(c *curator[float64]) Curator {
			c.questions.query = halved{c.questions.query}
			return c
		})},
		{"half the noise of the sums", "sums", broken(func(c *curator[float64]) Curator {
			c.noise = halved{c.noise}
			return c
		})},
		{"a threshold drawn again at each question", "all questions", broken(func(c *curator[float64]) Curator {
			return redrawn{c}
		})},
		{"one threshold for every group", "next group", broken(func(c *curator[float64]) Curator {
			c.questions.threshold = &repeated{sampler: c.questions.threshold, times: 1 << 30}
			return c
		})},
		{"an epoch's rewards kept for the next", "emptied", broken(func(c *curator[float64]) Curator {
			return hoarding{c}
		})},
		{"answers that are not charged", "price", broken(func(c *curator[float64]) Curator {
			c.charge = privacy.Laplace{Scale: 1.5}
			return c
		})},
	} {
		if bad := inspectSparse(t, twin.build, ranged); !slices.Contains(bad, twin.check) {
			t.Errorf("%s: the check %q did not catch it; %q did", twin.name, twin.check, bad)
		}
	}
}

type nothing struct{}

func (nothing) Draw(int) (float64, error) { return 0, nil }

type redrawn struct{ *curator[float64] }

func (c redrawn) Ask(arms []int, above float64) (privacy.Released, error) {
	c.questions.group = c.questions.group[:0]
	return c.curator.Ask(arms, above)
}

type hoarding struct{ *curator[float64] }

func (c hoarding) Ask(arms []int, above float64) (privacy.Released, error) {
	before := slices.Clone(c.slots)
	r, err := c.curator.Ask(arms, above)
	for a := range c.slots {
		c.slots[a].n, c.slots[a].sum = before[a].n, before[a].sum
	}
	return r, err
}

// By hand, without noise: five rewards of one arm against five of the other.
func TestQuestionsByHand(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		m := privacy.Sparse{Questions: privacy.Questions{Statistic: privacy.Range}}
		c := build(t, Config{Arms: 3, Lo: -1, Hi: 3, Mechanism: m})
		for _, x := range []float64{1, 2, 1} { // ½ + ¾ + ½
			must(t, c.Add(2, x))
		}
		must(t, c.Add(0, 0)) // ¼
		must(t, c.Add(1, 9))
		for _, q := range []struct {
			above float64
			sums  int
		}{{1.75, 0}, {1.5, 0}, {1.4999, 2}} {
			r, err := c.Ask([]int{0, 2}, q.above)
			must(t, err)
			if r.Len() != q.sums {
				t.Fatalf("above %v: %d sums", q.above, r.Len())
			}
			if r.Len() == 2 && (r.Sum(0) != 0.25 || r.Sum(1) != 1.75 || r.N(0) != 1 || r.N(1) != 3) {
				t.Errorf("sums %v of %d, %v of %d", r.Sum(0), r.N(0), r.Sum(1), r.N(1))
			}
		}
		if !c.Ledger().Total().Infinite() {
			t.Error("no noise costs", c.Ledger().Total())
		}
		// Arm 1 was in no question: its slot is as it was.
		if r, err := c.Ask([]int{1}, -1); err != nil || r.N(0) != 1 || r.Sum(0) != 1 {
			t.Errorf("%v, %v", r, err)
		}

		c = build(t, Config{Arms: 1, Lo: -2, Hi: 2,
			Mechanism: privacy.Sparse{Questions: privacy.Questions{Statistic: privacy.Centre}}})
		for _, x := range []float64{-2, -1, -1, 2} { // −2 in all: −½ in units of the range
			must(t, c.Add(0, x))
		}
		for _, above := range []float64{0.5, 0.50001, 1e300, math.MaxFloat64} {
			if r, err := c.Ask([]int{0}, above); err != nil || r.Len() != 0 {
				t.Errorf("above %v: %d sums, %v", above, r.Len(), err)
			}
		}
		if r, err := c.Ask([]int{0}, 0.49999); err != nil || r.Len() != 1 || r.Sum(0) != 1.5 {
			t.Errorf("%v, %v", r, err)
		}
	})
}

func TestBadQuestions(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		fails := func(c Curator, arms []int, above float64, mention string) {
			t.Helper()
			if r, err := c.Ask(arms, above); err == nil ||
				!strings.Contains(err.Error(), mention) || r.Len() > 0 {
				t.Errorf("arms %v above %v: %v, %v; want an error about %q", arms, above, r.Len(), err, mention)
			}
		}
		c := build(t, Config{Arms: 3, Mechanism: ranged})
		for a := range 3 {
			must(t, c.Add(a, 0.5))
		}
		fails(c, []int{0, 1}, math.NaN(), "above NaN")
		fails(c, []int{0, 1}, math.Inf(-1), "above -Inf")
		fails(c, nil, 1, "no arms")
		fails(c, []int{0, 3}, 1, "arm 3")
		fails(c, []int{0, 0}, 1, "twice")
		if n := len(c.Ledger().Entries()); n != 0 {
			t.Errorf("%d refused questions were charged", n)
		}
		if _, err := c.Release([]int{0}); !errors.Is(err, errAsk) {
			t.Errorf("a release without a question: %v", err)
		}
		if _, err := c.Release([]int{0, 1}); !errors.Is(err, errAsk) {
			t.Errorf("a release without a question: %v", err)
		}
		if _, err := c.Ask([]int{0, 1}, 1e6); err != nil {
			t.Fatal(err)
		}
		fails(c, []int{0, 2}, 1, "about [0 1]")
		fails(c, []int{0}, 1, "about [0 1]")
		// A fresh start forgets the group, its threshold and its rewards.
		must(t, c.Forget(ranged))
		fails(c, []int{0, 2}, 1, "empty")
		must(t, c.Add(0, 1))
		must(t, c.Add(2, 1))
		if _, err := c.Ask([]int{0, 2}, 1e6); err != nil {
			t.Error(err)
		}
		if got, want := c.Ledger().Total().Pure(), ranged.Questions.Loss().Pure(); got > want {
			t.Errorf("two groups of other rewards cost %v, want %v", got, want)
		}

		c = build(t, Config{Arms: 2, Mechanism: centred})
		must(t, c.Add(0, 1))
		must(t, c.Add(1, 1))
		fails(c, []int{0, 1}, 1, "centre of 2 arms")
		c = build(t, Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}})
		must(t, c.Add(0, 1))
		fails(c, []int{0}, 1, "must be sparse")
		if _, err := newAny(privacy.Sparse{Questions: privacy.Questions{Threshold: 1, Query: 1,
			Statistic: "sum"}, Scale: 1}); err == nil {
			t.Error("a statistic that does not exist")
		}

		// A cap: no answer is given that is not paid for; and a yes whose sums the cap
		// refuses ends the group.
		l := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))
		c = build(t, Config{Arms: 1, Mechanism: centred, Ledger: l}) // 1/2 + 2/3
		must(t, c.Add(0, 1))
		if _, err := c.Ask([]int{0}, -1e6); !errors.Is(err, privacy.ErrBudget) || len(l.Entries()) != 0 {
			t.Errorf("%v, entries %v", err, l.Entries())
		}
		l = privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 2})) // and 1 for the sums
		c = build(t, Config{Arms: 1, Mechanism: centred, Ledger: l})
		must(t, c.Add(0, 1))
		if _, err := c.Ask([]int{0}, -1e6); !errors.Is(err, privacy.ErrBudget) || l.Total().Pure() > 1.2 {
			t.Errorf("%v, total %v", err, l.Total())
		}
		fails(c, []int{0}, 1, "empty")
	})
}

func newAny(m privacy.Mechanism) (c Curator, err error) {

	if _, err = exactMaker(m, 0); err == nil {
		return nil, nil
	}
	return simulatedMaker(m, 0)
}

func TestUnclippedQuestionsAreUnknown(t *testing.T) {
	c := simulated(t, Config{Arms: 1, Mechanism: centred, Unclipped: true})
	must(t, c.Add(0, 50))
	r, err := c.Ask([]int{0}, 1)
	if err != nil || r.Len() != 1 || !c.Ledger().Total().Infinite() {
		t.Errorf("%v, %v, costs %v", r.Len(), err, c.Ledger().Total())
	}
}

func TestTranscriptHasEveryAnswer(t *testing.T) {
	var b bytes.Buffer
	l := privacy.NewLedger(privacy.WithTranscript(&b))
	c := realCurator(t, Config{Arms: 2, Mechanism: ranged, Ledger: l})
	for i := range 4 {
		must(t, c.Add(0, 1))
		must(t, c.Add(1, 0))
		above := 1e6
		if i == 3 {
			above = -above
		}
		_, err := c.Ask([]int{0, 1}, above)
		must(t, err)
	}
	back := privacy.NewLedger()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), b.String())
	}
	for i, text := range lines {
		r, err := back.Restore([]byte(text))
		must(t, err)
		if (r.Len() == 2) != (i == 3) {
			t.Errorf("line %d has %d sums", i, r.Len())
		}
	}
	if back.Total().Pure() != l.Total().Pure() {
		t.Errorf("restored %v, was %v", back.Total(), l.Total())
	}
	if tail, err := ExactTail(1.5); err != nil || tail.H < 1.5 || tail.H > 1.5+1e-6 ||
		!(tail.Log > 0 && tail.Log < 1e-6) {
		t.Errorf("tail %v, %v", tail, err)
	}
	if _, err := ExactTail(-1); err == nil {
		t.Error("a negative scale")
	}
}

func BenchmarkAsk(b *testing.B) {
	c := simulated(b, Config{Arms: 20,
		Mechanism: privacy.Sparse{Questions: privacy.Questions{Threshold: 6, Query: 6,
			Statistic: privacy.Range}, Scale: 2}})
	arms := make([]int, 20)
	for a := range arms {
		arms[a] = a
		must(b, c.Add(a, 0.5))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Ask(arms, 1e9); err != nil {
			b.Fatal(err)
		}
	}
}
