package audit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/stats"
)

// What can be wrong with an audit's input. Errors of this package wrap one of these, where one
// fits, and name the value.
var (
	ErrNoGames       = errors.New("no games")
	ErrNaNScore      = errors.New("a score is NaN")
	ErrConstantScore = errors.New("the score is constant")
	ErrDelta         = errors.New("δ is outside [0, 1)")
	ErrConfidence    = errors.New("γ is outside (0, 1)")
	ErrSingular      = errors.New("the covariance is singular")
	ErrFewReferences = errors.New("fewer references than dimensions need")
	ErrShape         = errors.New("dimensions do not match")
)

// Scores are the scores of an attack in games with the target (b = 1) and in games without it (b =
// 0). A higher score speaks for "in". ±Inf is a certain answer and is allowed; NaN is not.
type Scores struct {
	In, Out []float64
}

// Validate reports the first thing that makes the scores useless: no games on one side, a NaN, or
// one and the same score in all games, which tells nothing apart.
func (s Scores) Validate() error {
	switch {
	case len(s.In) == 0:
		return fmt.Errorf("audit: %w with the target in (and %d without it)", ErrNoGames, len(s.Out))
	case len(s.Out) == 0:
		return fmt.Errorf("audit: %w with the target out (and %d with it)", ErrNoGames, len(s.In))
	}
	first, constant := s.In[0], true
	for _, side := range [2][]float64{s.In, s.Out} {
		for i, v := range side {
			if math.IsNaN(v) {
				return fmt.Errorf("audit: %w (game %d of its side)", ErrNaNScore, i)
			}
			constant = constant && v == first
		}
	}
	if constant {
		return fmt.Errorf("audit: %w: %v in all %d games", ErrConstantScore, first, len(s.In)+len(s.Out))
	}
	return nil
}

// An Estimate is a number estimated from games, and its interval at the level that was asked for.
type Estimate struct {
	Value, Lo, Hi float64
}

// Metrics are what [Azize 2024, §2.3.2] measures of the adversary that answers "in" if the score is
// above a threshold.
type Metrics struct {
	Threshold float64
	TypeI     Estimate // α, (2.23): P(in | out), the false positive rate
	TypeII    Estimate // β, (2.24): P(out | in), the false negative rate
	Power     Estimate // 1 − β
	Advantage Estimate // (2.22): 1 − α − β
	Accuracy  Estimate // (2.21), for a fair bit: (1 + advantage)/2
}

// At returns the metrics at one threshold. The intervals of the two errors and of the power are
// Clopper and Pearson's, each at the given level; those of the advantage and the accuracy combine
// both errors at half the error probability each, so that they hold at the level too. The threshold
// must not have been chosen on these games, or the intervals are too narrow.
func (s Scores) At(threshold, level float64) (Metrics, error) {
	if err := s.Validate(); err != nil {
		return Metrics{}, err
	}
	if math.IsNaN(threshold) {
		return Metrics{}, fmt.Errorf("audit: threshold is NaN, must be a number")
	}
	fp, fn := s.errors(threshold)
	m := Metrics{Threshold: threshold}
	var err error
	if m.TypeI, err = proportion(fp, len(s.Out), level); err != nil {
		return Metrics{}, err
	}
	if m.TypeII, err = proportion(fn, len(s.In), level); err != nil {
		return Metrics{}, err
	}
	m.Power = Estimate{1 - m.TypeII.Value, 1 - m.TypeII.Hi, 1 - m.TypeII.Lo}
	a, err := proportion(fp, len(s.Out), (1+level)/2)
	if err != nil {
		return Metrics{}, err
	}
	b, err := proportion(fn, len(s.In), (1+level)/2)
	if err != nil {
		return Metrics{}, err
	}
	m.Advantage = Estimate{1 - a.Value - b.Value, 1 - a.Hi - b.Hi, 1 - a.Lo - b.Lo}
	m.Accuracy = Estimate{(1 + m.Advantage.Value) / 2, (1 + m.Advantage.Lo) / 2, (1 + m.Advantage.Hi) / 2}
	return m, nil
}

// errors counts the false positives and the false negatives at a threshold.
func (s Scores) errors(threshold float64) (fp, fn int) {
	for _, v := range s.Out {
		if v > threshold {
			fp++
		}
	}
	for _, v := range s.In {
		if v <= threshold {
			fn++
		}
	}
	return fp, fn
}

func proportion(k, n int, level float64) (Estimate, error) {
	lo, hi, err := stats.ClopperPearson(k, n, level)
	if err != nil {
		return Estimate{}, fmt.Errorf("audit: %w", err)
	}
	return Estimate{float64(k) / float64(n), lo, hi}, nil
}

// upper is the one-sided Clopper–Pearson upper bound of a proportion, the p with P(Binomial(n, p) ≤
// k) = tail: too low with probability at most tail.
func upper(k, n int, tail float64) float64 {
	switch {
	case k >= n:
		return 1
	case k == 0: // (1−p)^n = tail
		return -math.Expm1(math.Log(tail) / float64(n))
	case k == n-1: // 1 − p^n = tail
		return math.Exp(math.Log1p(-tail) / float64(n))
	}
	below := func(p float64) float64 { return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p) }
	p := 1 - distuv.Beta{Alpha: float64(n - k), Beta: float64(k + 1)}.Quantile(tail)
	// The inverse gives up on some far tails: check it, and bisect where it did.
	if math.Abs(below(p)/tail-1) < 1e-7 {
		return p
	}
	lo, hi := float64(k)/float64(n), 1.0
	if below(lo) < tail {
		lo = 0
	}
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			break
		}
		if below(mid) > tail {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// A Point of a ROC curve: the two rates of the test "score > Threshold".
type Point struct {
	Threshold, TypeI, Power float64
}

// ROC is the empirical ROC curve (2.25): a point for each distinct score, from the strictest
// threshold, (0, 0), to the threshold −Inf, which is (1, 1) unless a score is −Inf. For log axes draw
// it from the first point with TypeI > 0: below 1/len(Out) there is nothing but the absence of games.
func (s Scores) ROC() ([]Point, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	in, out := sorted(s.In), sorted(s.Out)
	points := []Point{}
	i, o := len(in), len(out) // scores from here on are above the threshold
	for {
		t := math.Inf(-1)
		if i > 0 {
			t = in[i-1]
		}
		if o > 0 {
			t = max(t, out[o-1])
		}
		points = append(points, Point{t, float64(len(out)-o) / float64(len(out)),
			float64(len(in)-i) / float64(len(in))})
		if math.IsInf(t, -1) {
			return points, nil
		}
		for i > 0 && in[i-1] == t {
			i--
		}
		for o > 0 && out[o-1] == t {
			o--
		}
	}
}

// A PowerAt is the power at a fixed significance.
type PowerAt struct {
	Significance float64
	Threshold    float64  // the smallest one whose empirical Type I error is at most Significance
	Power        Estimate // of the best threshold test of true significance at most Significance
}

// PowerAt returns the power at significance α (2.25), for the tests that threshold this score.
//
// The interval allows for the threshold being chosen on the same games. Let τ_k be the (k+1)-th
// largest of the n scores without the target. The true probability of a score above τ_k has the law
// Beta(k+1, n−k) if scores have no ties, and is stochastically smaller with ties (and the probability
// of at least τ_k stochastically larger than Beta(k+1, n-k)); games with the target are independent
// of τ_k. So with a quarter of the error probability each: a k for which the test above τ_k is of
// significance α, and a Clopper–Pearson lower bound of its power; and a k for which the test from τ_k
// on is not. Then no test of significance α is more than above τ_k, which bounds the power from above.
// With fewer than about log(4/(1−level))/α games without the target the lower end is 0.
func (s Scores) PowerAt(significance, level float64) (PowerAt, error) {
	p, err := s.Curve([]float64{significance}, level)
	if err != nil {
		return PowerAt{}, err
	}
	return p[0], nil
}

// Curve returns PowerAt for each significance. Each interval holds at the level; all
// together need not.
func (s Scores) Curve(significances []float64, level float64) ([]PowerAt, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if !(level > 0 && level < 1) {
		return nil, fmt.Errorf("audit: level is %v, must be in (0, 1)", level)
	}
	in, out := sorted(s.In), sorted(s.Out)
	n, m := len(out), len(in)
	above := func(t float64) int { // games in with a score above t
		i, _ := slices.BinarySearchFunc(in, t, func(v, t float64) int {
			if v > t {
				return 1
			}
			return -1
		})
		return m - i
	}
	tail := (1 - level) / 4
	curve := make([]PowerAt, len(significances))
	for j, a := range significances {
		if !(a >= 0 && a <= 1) {
			return nil, fmt.Errorf("audit: significance is %v, must be in [0, 1]", a)
		}
		p := PowerAt{Significance: a, Threshold: math.Inf(-1)}
		p.Power.Value = 1 // of "in", always: what is above −Inf need not be all
		if k := int(math.Floor(a * float64(n))); k < n {
			p.Threshold = out[n-1-k]
			p.Power.Value = float64(above(p.Threshold)) / float64(m)
		}
		// The largest k with P(Beta(k+1, n−k) > a) ≤ tail. upper grows with k.
		k := searchLast(n, func(k int) bool { return upper(k, n, tail) <= a })
		if k >= 0 {
			p.Power.Lo = 1 - upper(m-above(out[n-1-k]), m, tail)
		}
		// The smallest k with P(Beta(k+1, n−k) < a) ≤ tail.
		p.Power.Hi = 1
		k = 1 + searchLast(n, func(k int) bool { return 1-upper(n-1-k, n, tail) < a })
		if k < n {
			p.Power.Hi = upper(above(out[n-1-k]), m, tail)
		}
		curve[j] = p
	}
	return curve, nil
}

// searchLast returns the largest k in [0, n) for which ok holds, or −1, if ok holds up to
// there and not beyond.
func searchLast(n int, ok func(int) bool) int {
	lo, hi := -1, n
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; ok(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// LogGrid returns n significances from lo to 1, equally spaced on a log axis: the abscissae of a
// ROC curve drawn on one. It is nil unless 0 < lo < 1 and n ≥ 2.
func LogGrid(lo float64, n int) []float64 {
	if !(lo > 0 && lo < 1) || n < 2 {
		return nil
	}
	grid := make([]float64, n)
	for i := range grid {
		grid[i] = math.Pow(lo, 1-float64(i)/float64(n-1))
	}
	return grid
}

// AUC is the area under the ROC curve: the probability that a score with the target exceeds one
// without it, ties counting one half. The interval is the fifth method of Newcombe (Statistics in
// Medicine 25, 2006): all areas θ with |θ − estimate| ≤ z·√V(θ), where V is Hanley and McNeil's
// variance. It is approximate, but has a width even for scores that are separated perfectly.
func (s Scores) AUC(level float64) (Estimate, error) {
	if err := s.Validate(); err != nil {
		return Estimate{}, err
	}
	if !(level > 0 && level < 1) {
		return Estimate{}, fmt.Errorf("audit: level is %v, must be in (0, 1)", level)
	}
	in, out := sorted(s.In), sorted(s.Out)
	m, n := float64(len(in)), float64(len(out))
	var wins float64
	below, notAbove := 0, 0
	for _, v := range in {
		for below < len(out) && out[below] < v {
			below++
		}
		notAbove = max(notAbove, below)
		for notAbove < len(out) && out[notAbove] <= v {
			notAbove++
		}
		wins += float64(below+notAbove) / 2
	}
	e := Estimate{Value: wins / (m * n)}
	z := distuv.UnitNormal.Quantile((1 + level) / 2)
	pairs := (m+n)/2 - 1
	inside := func(t float64) bool {
		v := t * (1 - t) * (1 + pairs*((1-t)/(2-t)+t/(1+t))) / (m * n)
		return math.Abs(t-e.Value) <= z*math.Sqrt(v)
	}
	e.Lo = edge(e.Value, 0, inside)
	e.Hi = edge(e.Value, 1, inside)
	return e, nil
}

// edge is where inside ends on the way from a point of it to limit.
func edge(from, limit float64, inside func(float64) bool) float64 {
	for range 60 {
		mid := from + (limit-from)/2
		if inside(mid) {
			from = mid
		} else {
			limit = mid
		}
	}
	return from
}

func sorted(x []float64) []float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return x
}
