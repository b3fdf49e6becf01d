package release

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A stuck law counts, and fails at its fifth draw; then nobody gets anything until somebody waits.
type stuckLaw struct {
	n    int64
	wait chan struct{}
}

func (l *stuckLaw) Draw(int) (int64, error) {
	if l.n++; l.n > leastAhead {
		<-l.wait
	}
	if l.n == 5 {
		return 0, noise.ErrOverflow
	}
	return l.n, nil
}

// What was drawn ahead comes in order, with its error, while the law draws on: nobody waits for it. A
// sampler that draws when it is asked would wait for ever.
func TestAheadNobodyWaits(t *testing.T) {
	law := &stuckLaw{wait: make(chan struct{})}
	a := newAhead(law, 1)
	for len(a.stock) < leastAhead {
		time.Sleep(time.Millisecond)
	}
	for i := range int64(leastAhead) {
		x, err := a.Draw(1)
		if i == 4 && errors.Is(err, noise.ErrOverflow) {
			continue
		}
		if x != i+1 || err != nil {
			t.Fatalf("draw %d is %d, %v", i+1, x, err)
		}
	}
	close(law.wait)
	for i := range int64(1000) { // faster than it is filled
		if x, err := a.Draw(1); x != leastAhead+i+1 || err != nil {
			t.Fatalf("draw %d is %d, %v", leastAhead+i+1, x, err)
		}
	}
	a.stop()
	for i := range int64(1000) {
		if x, err := a.Draw(1); x != leastAhead+1000+i+1 || err != nil {
			t.Fatalf("after the end, draw %d is %d, %v", leastAhead+1000+i+1, x, err)
		}
	}
}

// With the same bits the same sums are released, whether they were drawn ahead or not, also when a
// new law takes the bits over; then some of them are lost with what nobody used, and all is one law's.
func TestAheadReleasesTheSame(t *testing.T) {
	for _, m := range []privacy.Mechanism{privacy.Laplace{Scale: 2}, privacy.Gaussian{Sigma: 2}} {
		all := [2][]float64{}
		for i := range all {
			c, err := newExact(Config{Arms: 3, Mechanism: m}, rand.NewChaCha8([32]byte{9}))
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				drawAhead(c)
			}
			for range 100 {
				for arm := range 3 {
					if err := c.Add(arm, 0.5); err != nil {
						t.Fatal(err)
					}
				}
				r, err := c.Release([]int{0, 1, 2})
				if err != nil {
					t.Fatal(err)
				}
				all[i] = append(all[i], r.Sum(0), r.Sum(1), r.Sum(2))
			}
			for range 50 { // -race looks whether two laws draw at once
				if err := c.Forget(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, x := range all[0] {
			if x != all[1][i] {
				t.Fatalf("%v: release %d is %v, drawn ahead %v", m, i, x, all[1][i])
			}
		}
	}
	c, err := Real(Config{Arms: 1, Mechanism: privacy.Tree{Horizon: 8, Scale: 1}})
	if _, late := c.(*curator[int64]).noise.(*ahead); err != nil || late {
		t.Errorf("a tree draws for nodes: %v, %v", late, err)
	}
	f, err := RealFeatures(FeatureConfig{Dim: 50, Slots: 2, Mechanism: privacy.VectorGaussian{Sigma: 1}})
	if a, ok := f.(*features[int64]).plan.noise.(*ahead); err != nil || !ok || cap(a.stock) != 100 {
		t.Errorf("a vector's noise is not drawn ahead for a release: %v", err)
	}
}

// Whether the time of a release tells how large its noise is, or the sum, by hand (docs/timing.md): of Real it must
// not. What is drawn when it is released is beside it.
func TestTimingOfReleases(t *testing.T) {
	pairs := testkit.Timing()
	now := time.Now()
	clock := func() int64 { return time.Since(now).Nanoseconds() }
	for _, c := range []struct {
		name  string
		ahead bool
		sums  bool // the classes are true sums, else sizes of noise
	}{{"noise, drawn ahead", true, false}, {"sum 0 or 100, drawn ahead", true, true},
		{"noise, drawn at the release", false, false}, {"sum 0 or 100, drawn at the release", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			cur, err := newExact(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}}, testkit.Must(noise.Secure()))
			if err != nil {
				t.Fatal(err)
			}
			if c.ahead {
				drawAhead(cur)
			}
			var out stats.Timing
			random := rand.New(rand.NewPCG(1, 1))
			for range 2*pairs + 10 {
				class := random.IntN(2)
				sum := int64(0)
				if c.sums {
					sum = int64(class) * 100 * gridSteps
				}
				if err := cur.AddSteps(0, 100, sum); err != nil {
					t.Fatal(err)
				}
				for a, ok := cur.noise.(*ahead); ok && len(a.stock) < cap(a.stock)/2; {
					time.Sleep(10 * time.Microsecond) // releases are a tick apart
				}
				from := clock()
				r, err := cur.Release([]int{0})
				took := clock() - from
				if err != nil {
					t.Fatal(err)
				}
				if !c.sums {
					class = 0
					if math.Abs(r.Sum(0)) > math.Ln2 { // the median of its size
						class = 1
					}
				}
				out.Add(class, float64(took))
			}
			if told := out.Told(); pairs > 0 {
				t.Log(told)
				if c.ahead && told.Leaks() {
					t.Errorf("the time of a release tells: %v", told)
				}
			}
		})
	}
}
