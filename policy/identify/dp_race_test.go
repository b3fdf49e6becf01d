package identify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// raceReference decides as the rule's comment says it, pair by pair: the arms that are in after batch m, and
// those that are left.
func raceReference(goal RaceGoal, alive, in []int, lo, hi map[int]float64) (left, chosen []int) {
	k := goal.Top - len(in)
	chosen = slices.Clone(in)
	for _, a := range alive {
		below, above := 0, 0
		for _, b := range alive {
			if hi[b] < lo[a] {
				below++
			}
			if lo[b] > hi[a] {
				above++
			}
		}
		switch {
		case goal.Top > 0 && below >= len(alive)-k, goal.Top == 0 && lo[a] > goal.Level:
			chosen = append(chosen, a)
		case goal.Top > 0 && above >= k, goal.Top == 0 && hi[a] < goal.Level:
		default:
			left = append(left, a)
		}
	}
	if goal.Top > 0 && len(chosen) == goal.Top {
		left = nil
	}
	if goal.Top > 0 && len(left) == goal.Top-len(chosen) {
		chosen, left = append(chosen, left...), nil
	}
	slices.Sort(chosen)
	return left, chosen
}

// laplace draws Lap(b).
func laplace(r *rand.Rand, b float64) float64 { return b * (r.ExpFloat64() - r.ExpFloat64()) }

// bernoullis is the sum of n draws.
func bernoullis(r *rand.Rand, n int, p float64) (sum float64) {
	for range n {
		if r.Float64() < p {
			sum++
		}
	}
	return sum
}

// raced plays a rule until it stops, with noise of scale b and a release that says so, or that it is told.
func raced(t *testing.T, p Identifier, r *rand.Rand, means []float64, b, told float64,
	see func(plays []policy.Play, values []float64)) (plays []int) {
	t.Helper()
	plays = make([]int, len(means))
	batch := give(t, p, told)
	for batch != nil {
		var values []float64
		for _, x := range batch.Plays {
			plays[x.Arm] += x.Rounds
			values = append(values, float64(x.Rounds), bernoullis(r, x.Rounds, means[x.Arm])+laplace(r, b))
		}
		if see != nil {
			see(batch.Plays, values)
		}
		batch = give(t, p, told, values...)
	}
	return plays
}

// The rule is the reference, batch by batch and arm by arm, for each goal.
func TestDPRaceIsItsReference(t *testing.T) {
	const risk, b = 0.2, 3.0
	for _, goal := range []RaceGoal{{Top: 1}, {Top: 2}, {Top: 4}, {Level: 0.45}} {
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 37))
			means := make([]float64, 5)
			for a := range means {
				means[a] = 0.1 + 0.2*float64((a*3+int(seed))%5)
			}
			p := testkit.Must(NewDPRace(5, privacy.Pure{Epsilon: 1 / b}, risk, goal, 32))
			alive, in, m := []int{0, 1, 2, 3, 4}, []int(nil), 0
			raced(t, p, r, means, b, b, func(plays []policy.Play, values []float64) {
				m++
				var asked []int
				lo, hi := map[int]float64{}, map[int]float64{}
				for i, x := range plays {
					if x.Rounds != 32<<(m-1) || !x.Release {
						t.Fatalf("batch %d: %v", m, plays)
					}
					asked = append(asked, x.Arm)
					n := float64(x.Rounds)
					l := math.Log(5 * 5 * float64(m*m) / risk)
					radius := math.Sqrt(l/(2*n)) + b*l/n
					lo[x.Arm], hi[x.Arm] = values[2*i+1]/n-radius, values[2*i+1]/n+radius
				}
				if !slices.Equal(asked, alive) {
					t.Fatalf("%+v, seed %d, batch %d: it plays %v, want %v", goal, seed, m, asked, alive)
				}
				alive, in = raceReference(goal, alive, in, lo, hi)
			})
			if len(alive) > 0 || !slices.Equal(p.Chosen(), in) || !p.Right(means) {
				t.Errorf("%+v, seed %d: %v of means %v; want %v, and %v are left", goal, seed, p.Chosen(), means, in, alive)
			}
		}
	}
}

// What is proved: no wrong answer and no more plays than RacePlays. Each run of 300 fails with probability at
// most 0.1, and in truth far below; that more than 80 do has probability below 1e-13 if the theorem is true.
// A broken copy that is told of less noise than there is errs more often than that.
func TestDPRaceTheorem(t *testing.T) {
	const risk, b, first = 0.1, 40.0, 16
	means := []float64{0.9, 0.85, 0.3, 0.2}
	tail := func(int) privacy.Tail { return privacy.Tail{H: b} }
	for _, goal := range []RaceGoal{{Top: 2}, {Level: 0.6}} {
		bound := testkit.Must(RacePlays(means, risk, goal, first, tail))
		failed, broken := 0, 0
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 38))
			p := testkit.Must(NewDPRace(4, privacy.Pure{Epsilon: 1 / b}, risk, goal, first))
			plays := raced(t, p, r, means, b, b, nil)
			if over := slices.ContainsFunc([]int{0, 1, 2, 3}, func(a int) bool { return plays[a] > bound[a] }); over ||
				!p.Right(means) {
				failed++
			}
			q := testkit.Must(NewDPRace(4, privacy.Pure{Epsilon: 1 / b}, risk, goal, first))
			if raced(t, q, r, means, b, 0, nil); !q.Right(means) {
				broken++
			}
		}
		if failed > 80 {
			t.Errorf("%+v: %d of 300 are wrong or too long: %v", goal, failed, bound)
		}
		if broken <= 80 {
			t.Errorf("%+v: a broken copy is wrong %d times of 300 only", goal, broken)
		}
	}
}

// What it did on fixed draws, so that a change of its plays or answer is seen.
func TestDPRaceGolden(t *testing.T) {
	means := []float64{0.7, 0.2, 0.5, 0.6, 0.3}
	for goal, want := range map[RaceGoal]string{
		{Top: 1}:     "[8176 496 2032 8176 1008] [0]",
		{Top: 3}:     "[1008 2032 2032 1008 2032] [0 2 3]",
		{Level: 0.4}: "[240 1008 2032 1008 2032] [0 2 3]",
	} {
		p := testkit.Must(NewDPRace(5, privacy.Pure{Epsilon: 0.5}, 0.05, goal, 0))
		plays := raced(t, p, rand.New(rand.NewPCG(7, 49)), means, 2, 2, nil)
		if got := fmt.Sprint(plays, p.Chosen()); got != want {
			t.Errorf("%+v: %s, want %s", goal, got, want)
		}
	}
}

// Whatever is released, also numbers that no sum can be, the rule keeps k arms.
func FuzzDPRaceKeepsK(f *testing.F) {
	f.Add(uint64(1), uint8(2), uint8(5))
	f.Fuzz(func(t *testing.T, seed uint64, k, arms uint8) {
		n := 2 + int(arms%9)
		goal := RaceGoal{Top: 1 + int(k)%(n-1)}
		r := rand.New(rand.NewPCG(seed, 39))
		p := testkit.Must(NewDPRace(n, privacy.ZCDP{Rho: 0.5}, 0.1, goal, 1))
		batch := p.Next(privacy.Released{})
		for m := 0; batch != nil && m < 30; m++ {
			var values []float64
			for _, x := range batch.Plays {
				rewards := x.Rounds * (1 - int(r.Uint64()%8)/7) // sometimes nobody answers
				values = append(values, float64(rewards), float64(x.Rounds)*(3*r.Float64()-1))
			}
			batch = give(t, p, 1, values...)
		}
		if batch == nil && len(p.Chosen()) != goal.Top {
			t.Fatalf("%d arms of %d: %v", goal.Top, n, p.Chosen())
		}
	})
}

func TestDPRaceRefuses(t *testing.T) {
	for want, build := range map[string]func() error{
		"dp-race: k is 3, must be at least 1 and below the number of arms, 3": func() error {
			_, err := NewDPRace(3, privacy.Pure{Epsilon: 1}, 0.1, RaceGoal{Top: 3}, 0)
			return err
		},
		"dp-race: level is 0, must be above 0 and below 1": func() error {
			_, err := NewDPRace(3, privacy.Pure{Epsilon: 1}, 0.1, RaceGoal{}, 0)
			return err
		},
		"dp-halving: plays is 15, must be at least 24 for 8 arms, and below 2^50": func() error {
			_, err := NewDPHalving(8, privacy.Pure{Epsilon: 1}, 15)
			return err
		},
	} {
		if err := build(); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
