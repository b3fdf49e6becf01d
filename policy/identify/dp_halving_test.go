package identify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// The rule is sequential halving as Karnin, Koren and Somekh print it, on the means of each batch: it keeps
// the ⌈s/2⌉ arms that fewest others are above.
func TestDPHalvingIsItsReference(t *testing.T) {
	for _, arms := range []int{2, 3, 5, 8, 13} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 40))
			means := make([]float64, arms)
			for a := range means {
				means[a] = r.Float64()
			}
			const plays = 2000
			p := testkit.Must(NewDPHalving(arms, privacy.Pure{Epsilon: 1}, plays))
			var alive []int
			for a := range arms {
				alive = append(alive, a)
			}
			rounds := int(math.Ceil(math.Log2(float64(arms))))
			used := raced(t, p, r, means, 1, 1, func(batch []policy.Play, values []float64) {
				var asked []int
				for _, x := range batch {
					asked = append(asked, x.Arm)
					if x.Rounds != plays/(rounds*len(alive)) {
						t.Fatalf("%d arms: %v", arms, batch)
					}
				}
				if !slices.Equal(asked, alive) {
					t.Fatalf("it plays %v, want %v", asked, alive)
				}
				var kept []int
				for i, a := range alive {
					above := 0
					for j := range alive {
						if values[2*j+1] > values[2*i+1] {
							above++
						}
					}
					if above < (len(alive)+1)/2 {
						kept = append(kept, a)
					}
				}
				alive = kept
			})
			total := 0
			for _, n := range used {
				total += n
			}
			if len(alive) != 1 || p.Answer() != alive[0] || total > plays {
				t.Errorf("%d arms, seed %d: %d after %v; want %v", arms, seed, p.Answer(), used, alive)
			}
		}
	}
}

// What is proved: no more errors than HalvingError says. Where the bound is p, 400 runs have more than
// 400p + 5.3√(400p) + 10 wrong answers with probability below 1e-6 (Bernstein). The bound is of use: on 5000 plays
// it is below 0.05. A broken copy that keeps the worse half is above.
func TestDPHalvingTheorem(t *testing.T) {
	const b, runs = 10.0, 400
	means := []float64{0.3, 0.9, 0.3, 0.2, 0.5}
	tail := func(int) privacy.Tail { return privacy.Tail{H: b} }
	for plays, most := range map[int]float64{600: 1, 2000: 1, 5000: 0.05} {
		bound := testkit.Must(HalvingError(means, plays, tail))
		if !(bound <= most) {
			t.Errorf("%d plays: the bound is %v", plays, bound)
		}
		wrong, broken := 0, 0
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 41))
			p := testkit.Must(NewDPHalving(5, privacy.Pure{Epsilon: 1 / b}, plays))
			if raced(t, p, r, means, b, b, nil); p.Answer() != 1 {
				wrong++
			}
			worse := make([]float64, len(means))
			for a, m := range means {
				worse[a] = 1 - m
			}
			q := testkit.Must(NewDPHalving(5, privacy.Pure{Epsilon: 1 / b}, plays))
			if raced(t, q, r, worse, b, b, nil); q.Answer() != 1 {
				broken++
			}
		}
		limit := runs*bound + 5.3*math.Sqrt(runs*bound) + 10
		if float64(wrong) > limit {
			t.Errorf("%d plays: %d of %d are wrong, and the bound is %v", plays, wrong, runs, bound)
		}
		if bound < 0.05 && float64(broken) <= limit {
			t.Errorf("%d plays: a broken copy is wrong %d times of %d only", plays, broken, runs)
		}
	}
}

// By hand: 4 arms, 800 plays, no noise: t = 100, and 200 of the last two. h = 2, Δ_(2) = 0.4, c = (4−1−1)/1 = 2,
// x = 100·0.16 = 16; then h = 1, Δ_(1) = 0.2, c = 1, x = 200·0.04 = 8. With Laplace noise of scale 1 and t = 200,
// √(200x) + 2x = 40 at x = 5.3590 (x = (√(200+320)−√200)²/16).
func TestHalvingErrorByHand(t *testing.T) {
	means := []float64{0.5, 0.9, 0.7, 0.1}
	got := testkit.Must(HalvingError(means, 800, func(int) privacy.Tail { return privacy.Tail{} }))
	if want := 6*math.Exp(-16) + 3*math.Exp(-8); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if x, want := deviation(200, 0.2, privacy.Tail{H: 1}), math.Pow(math.Sqrt(520)-math.Sqrt(200), 2)/16; !near(x, want, 1e-9) {
		t.Errorf("x is %v, want %v", x, want)
	}
}
