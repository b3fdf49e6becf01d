package release

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// Shares that were drawn ahead add up to the whole noise: how often three of them are 0 together is P(X = 0) of the
// discrete Laplace law, by Hoeffding but with probability 1e-6. Shares of six users are not enough, and are
// refused for messages of three.
func TestStockOfShares(t *testing.T) {
	n, draws := Noise{Name: privacy.NoiseLaplace, Num: 2, Den: 1}, 4000
	zero := math.Tanh(1. / 4)
	for users, enough := range map[int]bool{3: true, 6: false} {
		s := testkit.Must(n.Shares(users))
		hits := 0
		for range draws {
			sum := testkit.Must(s.Draw()) + testkit.Must(s.Draw()) + testkit.Must(s.Draw())
			if sum == 0 {
				hits++
			}
		}
		far := math.Abs(float64(hits)/float64(draws)-zero) > math.Sqrt(math.Log(2e6)/float64(2*draws))
		if far == enough {
			t.Errorf("three shares of %d users are 0 together in %d of %d, and the law says %.4g", users, hits, draws, zero)
		}
		r := testkit.Must(NewRandomizer(testkit.Must(n.Cohort(3, 5)))) // of five that are invited three are promised
		if err := r.From(s); (err == nil) != enough {
			t.Errorf("shares of %d users: %v", users, err)
		}
	}
	whole := testkit.Must(n.Stock(1))
	r := testkit.Must(NewRandomizer(testkit.Must(n.Cohort(3, 5))))
	if err := r.From(whole); err == nil {
		t.Error("a stock of whole noises passes for one of shares")
	}
	if _, err := (Noise{Name: "polya", Num: 1, Den: 1}).Stock(1); err == nil {
		t.Error("a stock of an unknown law is made")
	}
	if _, err := n.Shares(0); err == nil {
		t.Error("shares of nobody are made")
	}
}

// Whether the time of a client's report tells how large its noise is, by hand (docs/timing.md): what is drawn when it
// is needed is beside it.
func TestTimingOfReports(t *testing.T) {
	pairs := testkit.Timing()
	n := Noise{Name: privacy.NoiseLaplace, Num: 64*gridSteps + 1, Den: 64}
	normal := Noise{Name: privacy.NoiseGaussian, Num: gridSteps * gridSteps, Den: 1}
	clip := testkit.Must(NewClip(0, 1))
	modulus := int64(math.MaxInt64) // of messages
	type report func() int64
	local := func(n Noise) (report, *ahead) {
		s := testkit.Must(n.Stock(1))
		return func() int64 { return testkit.Must(s.LocalReport(clip, 0)) }, s.drawn
	}
	then := func(n Noise) (report, *ahead) {
		return func() int64 { return testkit.Must(LocalReport(n, clip, 0)) }, nil
	}
	message := func(n Noise, early bool) (report, *ahead) {
		m := testkit.Must(n.Cohort(100, 100))
		modulus = m.Modulus
		var drawn *ahead
		r := testkit.Must(NewRandomizer(m))
		if early {
			s := testkit.Must(n.Shares(100))
			if err := r.From(s); err != nil {
				t.Fatal(err)
			}
			drawn = s.drawn
		}
		var to [1]uint64
		return func() int64 { return int64(testkit.Must(r.Messages(to[:0], 0))[0]) }, drawn
	}
	for _, c := range []struct {
		name  string
		ready func() (report, *ahead)
	}{
		{"local, ε, drawn ahead", func() (report, *ahead) { return local(n) }},
		{"local, ε, drawn then", func() (report, *ahead) { return then(n) }},
		{"local, ρ, drawn ahead", func() (report, *ahead) { return local(normal) }},
		{"local, ρ, drawn then", func() (report, *ahead) { return then(normal) }},
		{"secagg, ε, drawn ahead", func() (report, *ahead) { return message(n, true) }},
		{"secagg, ε, drawn then", func() (report, *ahead) { return message(n, false) }},
		{"secagg, ρ, drawn ahead", func() (report, *ahead) { return message(normal, true) }},
		{"secagg, ρ, drawn then", func() (report, *ahead) { return message(normal, false) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			make, drawn := c.ready()
			one := func() (size int64, took float64) {
				for drawn != nil && (len(drawn.stock) < cap(drawn.stock) || drawn.busy.Load()) {
					runtime.Gosched() // reports are seconds apart: nothing is drawn beside them
				}
				from := time.Now()
				x := make()
				took = float64(time.Since(from))
				if x > modulus/2 { // of a message
					x -= modulus
				}
				return max(x, -x), took
			}
			var sizes []int64
			for range min(1001, pairs) {
				x, _ := one()
				sizes = append(sizes, x)
			}
			if pairs == 0 { // it runs, and no more
				one()
				return
			}
			slices.Sort(sizes)
			middle := sizes[len(sizes)/2]
			var out stats.Timing
			for range 2 * pairs {
				x, took := one()
				class := 0
				if x > middle {
					class = 1
				}
				out.Add(class, took)
			}
			told := out.Told()
			if t.Log(told); drawn != nil && told.Leaks() {
				t.Error("the time of a report tells of its noise")
			}
		})
	}
}
