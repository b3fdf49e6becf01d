package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// TimingLimit is the |t| from which a Timing has found a leak. Each of its tests exceeds it by chance
// with probability 6.8e-6, and one of all with 2e-4 at most.
const TimingLimit = 4.5

// crops are the shares of measurements that are below the thresholds at which a Timing looks. The
// last is of all.
var crops = [...]float64{1. / 16, 1. / 8, 1. / 4, 1. / 2, 3. / 4, 7. / 8, 15. / 16, 31. / 32, 63. / 64, 127. / 128, 255. / 256,
	511. / 512, 1023. / 1024, 1}

const middle, mostly = 3, 7 // of crops: the median, and what leaves the long tail out

// warmth is how many measurements a Timing throws away: they set its thresholds.
const warmth = 1000

// A Timing tests whether the time that something takes tells in which of two classes it was, as
// [Reparaz, Balasch and Verbauwhede 2017] do (dudect): by Welch's t, of all measurements and of those
// below each threshold, and of squared deviations. Beside that it compares what share of each class is
// below a threshold, which sees a leak that a long tail hides from means. The zero value is ready.
type Timing struct {
	warm       []float64
	thresholds [len(crops)]float64
	below      [len(crops)]sides
	squares    sides
}

// sides are the measurements of both classes, by Welford's method.
type sides struct{ n, mean, m2 [2]float64 }

func (s *sides) add(class int, x float64) {
	s.n[class]++
	d := x - s.mean[class]
	s.mean[class] += d / s.n[class]
	s.m2[class] += float64(d * (x - s.mean[class]))
}

// t is Welch's, with the difference of means and its standard error.
func (s *sides) t() (t, difference, se float64) {
	v := 0.0
	for c, n := range s.n {
		if n < 2 {
			return 0, 0, math.Inf(1)
		}
		v += s.m2[c] / (n - 1) / n
	}
	difference, se = s.mean[1]-s.mean[0], math.Sqrt(v)
	return ratio(difference, se), difference, se
}

func ratio(difference, se float64) float64 {
	if difference == 0 {
		return 0
	}
	return difference / se
}

// Add adds a measurement of class 0 or 1.
func (t *Timing) Add(class int, took float64) {
	if len(t.warm) < warmth {
		if t.warm = append(t.warm, took); len(t.warm) == warmth {
			copy(t.thresholds[:], Quantiles(t.warm, crops[:]...))
			t.thresholds[len(crops)-1] = math.Inf(1)
		}
		return
	}
	for i, most := range t.thresholds {
		if took < most {
			t.below[i].add(class, took)
		}
	}
	// The squares of what is beyond the 97th percentile would be all that one sees of them.
	if s := &t.below[mostly]; took < t.thresholds[mostly] && s.n[class] > warmth {
		d := took - s.mean[class]
		t.squares.add(class, float64(d*d))
	}
}

// Run measures n pairs, one of each class in random order. Prepare readies a measurement, whose
// time is that of what it returns, in units of the clock; blocks of them are readied at once.
func (t *Timing) Run(n int, random *rand.Rand, now func() int64, prepare func(class int) func()) {
	const block = 50
	var classes [2 * block]int
	var do [2 * block]func()
	for range (n + warmth/2 + block - 1) / block {
		for i := 0; i < len(do); i += 2 {
			classes[i] = random.IntN(2)
			classes[i+1] = 1 - classes[i]
		}
		for i, c := range classes {
			do[i] = prepare(c)
		}
		for i, f := range do {
			from := now()
			f()
			t.Add(classes[i], float64(now()-from))
		}
	}
}

// A Told is what times tell of the class.
type Told struct {
	N          int     // measurements
	T          float64 // the largest in size of all tests
	By         string  // which of them
	Median     float64 // of all
	Difference float64 // class 1 less class 0 of the means of the shortest 31/32
	Error      float64 // its standard error
	Advantage  float64 // by how much one measurement betters a guess, as a share of certainty, at the best threshold
}

// Told is what was found.
func (t *Timing) Told() Told {
	all := &t.below[len(crops)-1]
	out := Told{N: int(all.n[0] + all.n[1]), Median: t.thresholds[middle]}
	_, out.Difference, out.Error = t.below[mostly].t()
	say := func(x float64, by string, args ...any) {
		if math.Abs(x) > math.Abs(out.T) {
			out.T, out.By = x, fmt.Sprintf(by, args...)
		}
	}
	for i, share := range crops {
		x, _, _ := t.below[i].t()
		say(x, "mean of the shortest %.4g", share)
		var p [2]float64
		v := 0.0
		for c, n := range all.n {
			p[c] = t.below[i].n[c] / max(n, 1)
			v += p[c] * (1 - p[c]) / max(n, 1)
		}
		say(ratio(p[0]-p[1], math.Sqrt(v)), "share below the %.4g quantile", share)
		out.Advantage = max(out.Advantage, math.Abs(p[0]-p[1]))
	}
	x, _, _ := t.squares.t()
	say(x, "variance")
	return out
}

// Leaks says whether times tell the class.
func (o Told) Leaks() bool { return math.Abs(o.T) >= TimingLimit }

func (o Told) String() string {
	return fmt.Sprintf("n %d, median %.0f, difference %+.2f ± %.2f, advantage %.4f, t %+.2f (%s)",
		o.N, o.Median, o.Difference, o.Error, o.Advantage, o.T, o.By)
}
