package identify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// By hand: 50 of 100 of (1,0) and 100 of 400 of (0,1): θ̃ = (0.5, 0.25). For (0.6,0.8) c = (0.006, 0.002), so that
// the mean is 0.5, ΣNc² = 0.0036 + 0.0016 and Σ|c| = 0.008. Of (2,0) it is 1, 0.04 and 0.02. Where nobody
// answers for (0,1), (1,0) alone is known.
func TestFitByHand(t *testing.T) {
	f := testkit.Must(newFit([][]float64{{1, 0}, {0, 1}, {0.6, 0.8}, {2, 0}}, 4, Link{}))
	plays := []policy.Play{{Arm: 0, Rounds: 100, Release: true}, {Arm: 1, Rounds: 400, Release: true}}
	for answers, want := range map[int][]estimate{
		400: {{0.5, 0.01, 0.01}, {0.25, 0.0025, 0.0025}, {0.5, 0.0052, 0.008}, {1, 0.04, 0.02}},
		0:   {{0.5, 0.01, 0.01}, unknown(), unknown(), {1, 0.04, 0.02}},
	} {
		v := &privacy.Values{N: []int{100, answers}, Sum: []float64{50, 100}}
		released := testkit.Must(privacy.NewLedger().Release(0, privacy.Laplace{Scale: 1}, v))
		f.estimate(released, plays, []int{0, 1, 2, 3}, func(i int, e estimate) {
			same := func(x, y float64) bool { return math.IsNaN(x) && math.IsNaN(y) || x == y || near(x, y, 1e-12) }
			if !same(e.mean, want[i].mean) || !same(e.square, want[i].square) || !same(e.total, want[i].total) {
				t.Errorf("%d answers, arm %d: %+v, want %+v", answers, i, e, want[i])
			}
		})
	}
}

// Vectors of any scale, and that differ little, are told apart: each run is wrong with probability at most 0.1, so that
// 15 of 20 are with below 1e-10. What is all but in the span of others is refused, and what is in it is not.
func TestFitIsConditioned(t *testing.T) {
	means := []float64{0.5, 0.9, 0.6}
	for _, x := range [][][]float64{
		{{1e10, 0}, {1e10, 1}, {1.2e10, 0}},
		{{1, 1}, {1, 1 + 2e-8}, {1.2, 1.2}},
		{{1, 1, 2}, {1, 1 + 2e-8, 2 + 2e-8}, {1.2, 1.2, 2.4}},
	} {
		wrong := 0
		for seed := range uint64(20) {
			p := testkit.Must(NewDPRace(3, privacy.Pure{Epsilon: 1}, 0.1, RaceGoal{Top: 1}, 0))
			if err := p.SetVectors(x, Link{}); err != nil {
				t.Fatal(err)
			}
			if raced(t, p, rand.New(rand.NewPCG(seed, 49)), means, 1, 1, nil); !p.Right(means) {
				wrong++
			}
		}
		if wrong >= 15 {
			t.Errorf("%v: %d of 20 are wrong", x, wrong)
		}
	}
	_, err := newFit([][]float64{{1, 1}, {1, 1 + 1e-10}, {1.2, 1.2}}, 3, Link{})
	if want := "must be 0 or at least 1e-09 of it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := newFit([][]float64{{1, 0.1}, {3, 3 * 0.1}}, 2, Link{}); err != nil {
		t.Error(err)
	}
}

// circle is so many arms around a circle, with means around 1/2, the first the best.
func circle(arms int) (x [][]float64, means []float64) {
	for a := range arms {
		angle := 2 * math.Pi * float64(a) / float64(arms)
		v := []float64{1, math.Cos(angle), math.Sin(angle)}
		x = append(x, v)
		means = append(means, float64(0.5*v[0])+float64(0.4*v[1])-float64(0.01*v[2]))
	}
	return x, means
}

// What is proved, with vectors: each of 60 runs is wrong with probability at most 0.1, so that more than 30 are
// with below 1e-13. A broken copy that is told of less noise is wrong more often.
func TestLinearTheorem(t *testing.T) {
	const risk, b, runs = 0.1, 10.0, 60
	x, means := circle(8)
	for _, goal := range []RaceGoal{{Top: 1}, {Top: 3}, {Level: 0.6}} {
		wrong := func(told float64) (n int) {
			for seed := range uint64(runs) {
				p := testkit.Must(NewDPRace(8, privacy.Pure{Epsilon: 1 / b}, risk, goal, 4))
				if err := p.SetVectors(x, Link{}); err != nil {
					t.Fatal(err)
				}
				if raced(t, p, rand.New(rand.NewPCG(seed, 43)), means, b, told, nil); !p.Right(means) {
					n++
				}
			}
			return n
		}
		if right, broken := wrong(b), wrong(0); right > 30 || broken <= 30 {
			t.Errorf("%+v: of %d %d are wrong, and %d of the broken copy", goal, runs, right, broken)
		}
	}
}

// Halving on designs keeps to its plays and is right: by its theorem each run is wrong with probability below
// 0.01, so that more than 12 of 100 are with below 1e-9. (q = 3, s ≤ 6 and n' > 19 990 of each of 3 batches: at
// x = 9 √(xA/2) + Bτ(x) < 0.074 + 0.033, and all gaps are above 0.19; 3·7·3e^−9 < 0.008.)
func TestLinearHalving(t *testing.T) {
	x, means := circle(6)
	wrong := 0
	for seed := range uint64(100) {
		p := testkit.Must(NewDPHalving(6, privacy.Pure{Epsilon: 1}, 60_000))
		if err := p.SetVectors(x, Link{}); err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, n := range raced(t, p, rand.New(rand.NewPCG(seed, 44)), means, 1, 1, nil) {
			total += n
		}
		if total > 60_000 {
			t.Fatalf("%d plays", total)
		}
		if p.Answer() != 0 {
			wrong++
		}
	}
	if wrong > 12 {
		t.Errorf("%d of 100 are wrong", wrong)
	}
}

func TestVectorsAreRefused(t *testing.T) {
	p := testkit.Must(NewDPRace(2, privacy.Pure{Epsilon: 1}, 0.1, RaceGoal{Top: 1}, 0))
	for want, x := range map[string][][]float64{
		"dp-race: vectors are 1, must be one for each of 2 arms":                                           {{1}},
		"dp-race: vectors: that of arm 2 is [0 0], must have 2 finite numbers, and one that is not 0":      {{1, 0}, {0, 0}},
		"dp-race: vectors: that of arm 2 is [1], must have 2 finite numbers, and one that is not 0":        {{1, 0}, {1}},
		"dp-race: vectors: that of arm 1 is [NaN], must have 1 finite numbers, and one that is not 0":      {{math.NaN()}, {1}},
		"dp-race: vectors: that of arm 1 is [1e+200 0], must have 2 finite numbers, and one that is not 0": {{1e200, 0}, {0, 1}},
	} {
		if err := p.SetVectors(x, Link{}); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Every vector is the sum of those of a spanner with shares of at most 2, in any dimension, also where vectors
// do not span it, or are of very different lengths.
func TestSpanner(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 45))
		d, arms := 1+int(seed%6), 8+int(seed%20)
		x := make([][]float64, arms)
		for a := range x {
			x[a] = make([]float64, d)
			for j := range x[a] {
				if x[a][j] = r.NormFloat64() * math.Pow(10, -float64(seed%3)*r.Float64()); d > 3 && j == 1 {
					x[a][j] = -x[a][0] // a direction less
				}
			}
		}
		f := testkit.Must(newFit(x, arms, Link{Bound: 1}))
		alive := []int{}
		for a := range arms {
			if a%5 != 3 {
				alive = append(alive, a)
			}
		}
		s := f.spanner(alive)
		want := d
		if d > 3 {
			want--
		}
		if len(s.arms) != want {
			t.Fatalf("seed %d: %d arms, want %d", seed, len(s.arms), want)
		}
		for i, a := range alive {
			sum := make([]float64, d)
			for j, c := range s.shares[i] {
				if math.Abs(c) > 2+1e-6 {
					t.Errorf("seed %d: arm %d has a share of %v", seed, a, c)
				}
				for k := range sum {
					sum[k] += c * x[s.arms[j]][k]
				}
			}
			if distance(sum, x[a]) > 1e-7 {
				t.Errorf("seed %d: arm %d is %v, and its shares make %v", seed, a, x[a], sum)
			}
		}
	}
}

// By hand: (1,0) has 60 of 100, (0,1) 30 of 100, and at x = 2 and noise 1 the radius is 0.1 + 0.01. So of (½,−½) ⟨θ,x⟩
// is from ½σ⁻¹(0.49) − ½σ⁻¹(0.41) to ½σ⁻¹(0.71) − ½σ⁻¹(0.19), and its estimate is ½σ⁻¹(0.6) − ½σ⁻¹(0.3). Where nobody
// answers for (0,1), ⟨θ,x⟩ is from −3 to 3 for it.
func TestLogisticByHand(t *testing.T) {
	f := testkit.Must(newFit([][]float64{{1, 0}, {0, 1}, {0.5, -0.5}}, 3, Link{Bound: 3}))
	all := []int{0, 1, 2}
	plays := f.plays(nil, all, func(rank int) float64 { return 100 * float64(rank) })
	if fmt.Sprint(plays) != "[{0 100 true} {1 100 true}]" {
		t.Fatalf("%v", plays)
	}
	for answers, want := range map[int][2]float64{
		100: {sigmoid((logit(0.49) - logit(0.41)) / 2), sigmoid((logit(0.71) - logit(0.19)) / 2)},
		0:   {sigmoid((logit(0.49) - 3) / 2), sigmoid((logit(0.71) + 3) / 2)},
	} {
		v := &privacy.Values{N: []int{100, answers}, Sum: []float64{60, 30}}
		released := testkit.Must(privacy.NewLedger().Release(0, privacy.Laplace{Scale: 1}, v))
		f.intervals(released, plays, all, 2, 1, func(i int, lo, hi float64) {
			if i == 0 && !(near(lo, 0.49, 1e-12) && near(hi, 0.71, 1e-12)) ||
				i == 2 && !(near(lo, want[0], 1e-12) && near(hi, want[1], 1e-12)) {
				t.Errorf("%d answers, arm %d: %v to %v, want %v of the last", answers, i, lo, hi, want)
			}
		})
		f.means(released, plays, all, func(i int, mean float64) {
			if answers > 0 && i == 2 && !near(mean, (logit(0.6)-logit(0.3))/2, 1e-12) {
				t.Errorf("arm %d: %v", i, mean)
			}
		})
	}
}

// What is proved, with logistic means: as in TestLinearTheorem, each of 60 runs is wrong with probability at most 0.1. A
// broken copy is told of less noise. Halving is right in all but a few, and keeps to its plays.
func TestLogisticTheorem(t *testing.T) {
	const risk, b, runs = 0.1, 10.0, 60
	var x [][]float64
	var means []float64
	for a := range 8 {
		angle := 2 * math.Pi * float64(a) / 8
		x = append(x, []float64{math.Cos(angle), math.Sin(angle)})
		means = append(means, sigmoid(float64(2*x[a][0])+float64(0.3*x[a][1])))
	}
	link := Link{Bound: 2.5}
	for _, goal := range []RaceGoal{{Top: 1}, {Top: 3}, {Level: 0.6}} {
		wrong := func(told float64) (n int) {
			for seed := range uint64(runs) {
				p := testkit.Must(NewDPRace(8, privacy.Pure{Epsilon: 1 / b}, risk, goal, 4))
				if err := p.SetVectors(x, link); err != nil {
					t.Fatal(err)
				}
				if raced(t, p, rand.New(rand.NewPCG(seed, 46)), means, b, told, nil); !p.Right(means) {
					n++
				}
			}
			return n
		}
		if right, broken := wrong(b), wrong(0); right > 30 || broken <= 30 {
			t.Errorf("%+v: of %d %d are wrong, and %d of the broken copy", goal, runs, right, broken)
		}
	}
	wrong := 0
	for seed := range uint64(runs) {
		p := testkit.Must(NewDPHalving(8, privacy.Pure{Epsilon: 1}, 60_000))
		if err := p.SetVectors(x, link); err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, n := range raced(t, p, rand.New(rand.NewPCG(seed, 47)), means, 1, 1, nil) {
			total += n
		}
		if p.Answer() != 0 {
			wrong++
		}
		if total > 60_000 {
			t.Fatalf("%d plays", total)
		}
	}
	if wrong > 30 {
		t.Errorf("halving is wrong in %d of %d", wrong, runs)
	}
}
