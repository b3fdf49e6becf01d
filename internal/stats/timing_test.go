package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ticking is a clock that f brings forward, and what each measurement adds to it.
type ticking struct {
	at     int64
	random *rand.Rand
}

func (c *ticking) now() int64 { return c.at }

// took is a time as machines have them: a body, and a tail that is longer than anything one looks for.
func (c *ticking) took() int64 {
	x := 1000 + 50*c.random.ExpFloat64()
	if c.random.IntN(50) == 0 {
		x += 20000 * math.Pow(c.random.Float64(), -0.7)
	}
	return int64(x)
}

func timed(seed uint64, pairs int, more func(r *rand.Rand, class int) int64) Told {
	c := &ticking{random: rand.New(rand.NewPCG(seed, 1))}
	var t Timing
	t.Run(pairs, c.random, c.now, func(class int) func() {
		return func() { c.at += c.took() + more(c.random, class) }
	})
	return t.Told()
}

// Classes that take the same are told apart by none of 200 tests, whose false alarm is 200·2e-4 in
// all: the seeds are fixed, so that it is now or never.
func TestTimingOfEqualClasses(t *testing.T) {
	most := 0.0
	for seed := range uint64(200) {
		o := timed(seed, 2000, func(*rand.Rand, int) int64 { return 0 })
		if most = max(most, math.Abs(o.T)); o.Leaks() {
			t.Errorf("seed %d: %v", seed, o)
		}
	}
	if most < 1 {
		t.Errorf("the largest t of 200 is %v: it is no t", most)
	}
}

// What a class does more is found, wherever it is: in all measurements, in few, and in how they vary.
func TestTimingFindsLeaks(t *testing.T) {
	for name, more := range map[string]func(*rand.Rand, int) int64{
		"a hundredth more":      func(_ *rand.Rand, c int) int64 { return int64(10 * c) },
		"a hundredth less":      func(_ *rand.Rand, c int) int64 { return int64(-10 * c) },
		"a tenth of them":       func(r *rand.Rand, c int) int64 { return int64(300 * c * (r.IntN(10) / 9)) },
		"as long, but spread":   func(r *rand.Rand, c int) int64 { return int64(100 * c * (2*r.IntN(2) - 1)) },
		"only the longest ones": func(r *rand.Rand, c int) int64 { return int64(1e5 * c * (r.IntN(40) / 39)) },
	} {
		o := timed(1, 20000, more)
		if t.Logf("%s: %v", name, o); math.Abs(o.T) < 10 {
			t.Errorf("%s: %v", name, o)
		}
	}
	o := timed(1, 200000, func(_ *rand.Rand, c int) int64 { return int64(10 * c) })
	if o.Difference < 8 || o.Difference > 11 || o.Error > 1 || o.Advantage < 0.15 || o.Advantage > 0.25 {
		t.Errorf("10 of exponential 50 (1 - e^-0.2 = 0.18): %v", o)
	}
	if o.N < 400000 || o.N > 400200 {
		t.Errorf("%d measurements", o.N)
	}
}
