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

// phasedRun plays a policy for regret to the horizon, with noise of scale b and a release that says so, or that it is
// told.
func phasedRun(t *testing.T, p policy.Policy, r *rand.Rand, means []float64, horizon int, b, told float64,
	see func(plays []policy.Play, values []float64)) (regret float64, plays []int) {
	t.Helper()
	plays = make([]int, len(means))
	best := slices.Max(means)
	batch := give(t, p, told)
	for left := horizon; left > 0; {
		k := make([]int, len(batch.Plays))
		batch.Counts(min(left, batch.Rounds()), k)
		var values []float64
		for i, x := range batch.Plays {
			plays[x.Arm] += k[i]
			regret += (best - means[x.Arm]) * float64(k[i])
			left -= k[i]
			if x.Release && left > 0 {
				values = append(values, float64(k[i]), bernoullis(r, k[i], means[x.Arm])+laplace(r, b))
			}
		}
		if left > 0 {
			if see != nil {
				see(batch.Plays, values)
			}
			batch = give(t, p, told, values...)
		}
	}
	return regret, plays
}

// leastSquares are the estimates of phased elimination as Lattimore and Szepesvári print it, of vectors in the plane: θ̃ =
// V⁻¹ Σ S̃_a x_a, V = ΣN_a x_a x_aᵀ; and radii from what every sum does to each of them.
func leastSquares(x [][]float64, plays []policy.Play, values []float64, level, b float64) (mean, radius []float64) {
	var v [3]float64 // of V
	var s [2]float64
	for i, p := range plays {
		n, z := values[2*i], x[p.Arm]
		v[0], v[1], v[2] = v[0]+n*z[0]*z[0], v[1]+n*z[0]*z[1], v[2]+n*z[1]*z[1]
		s[0], s[1] = s[0]+values[2*i+1]*z[0], s[1]+values[2*i+1]*z[1]
	}
	det := v[0]*v[2] - v[1]*v[1]
	through := func(y, z []float64) float64 { // yᵀV⁻¹z
		return (y[0]*(v[2]*z[0]-v[1]*z[1]) + y[1]*(v[0]*z[1]-v[1]*z[0])) / det
	}
	for _, y := range x {
		square, total := 0.0, 0.0
		for i, p := range plays {
			c := through(y, x[p.Arm])
			square, total = square+values[2*i]*c*c, total+math.Abs(c)
		}
		mean = append(mean, through(y, s[:]))
		radius = append(radius, math.Sqrt(level*square/2)+b*level*total)
	}
	return mean, radius
}

// Batch by batch the arms that are played are of those that the reference has left, so many that every radius is what
// the design promises, and the last that is left is played for ever.
func TestPhasedIsItsReference(t *testing.T) {
	const p, b, first, horizon = 0.1, 2.0, 16, 100_000
	decided := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 55))
		x, means := make([][]float64, 6), make([]float64, 6)
		for a := range x {
			x[a] = []float64{0.2 + 0.8*r.Float64(), 0.2 + 0.8*r.Float64()}
			means[a] = 0.6*x[a][0] + 0.3*x[a][1]
		}
		q := testkit.Must(NewPhased(6, privacy.Pure{Epsilon: 1 / b}, p, first))
		if err := q.SetVectors(x, Link{}); err != nil {
			t.Fatal(err)
		}
		left, m := []int{0, 1, 2, 3, 4, 5}, 0
		_, _ = phasedRun(t, q, r, means, horizon, b, b, func(plays []policy.Play, values []float64) {
			m++
			level := math.Log(6 * 6 * float64(m*m) / p)
			total := 0
			for _, play := range plays {
				total += play.Rounds
				if !slices.Contains(left, play.Arm) {
					t.Fatalf("seed %d, batch %d: it plays %v, and %v are left", seed, m, plays, left)
				}
			}
			n := float64(first) * math.Ldexp(1, m-1) * 2
			if float64(total) < n || float64(total) > n+3 { // s ≤ 3
				t.Fatalf("seed %d, batch %d: %d plays, want %v", seed, m, total, n)
			}
			mean, radius := leastSquares(x, plays, values, level, b)
			for _, a := range left {
				if most := math.Sqrt(2.02*level/(2*n)) + 2.02*3*b*level/n; radius[a] > most {
					t.Errorf("seed %d, batch %d: the radius of arm %d is %v, above %v", seed, m, a, radius[a], most)
				}
			}
			var kept []int
			for _, a := range left {
				above := 0
				for _, c := range left {
					if mean[c]-radius[c] > mean[a]+radius[a] {
						above++
					}
				}
				if above == 0 {
					kept = append(kept, a)
				}
			}
			left = kept
		})
		if len(left) == 1 {
			decided++
			if got := q.Next(privacy.Released{}).Plays; len(got) != 1 || got[0] != (policy.Play{Arm: left[0],
				Rounds: policy.Forever}) {
				t.Errorf("seed %d: it plays %v, want %d for ever", seed, got, left[0])
			}
		}
	}
	if decided < 10 {
		t.Errorf("only %d runs came to one arm", decided)
	}
}

// phasedBound is the theorem's, of linear means if kappa is 0.
func phasedBound(arms, first, rank, support, horizon int, p, b, g, kappa float64) float64 {
	total := float64(first*rank + support)
	n, used := float64(first*rank), float64(first*rank)
	for m := 2; used < float64(horizon); m++ {
		level := math.Log(5 * float64(arms) * float64((m-1)*(m-1)) / p)
		r := math.Sqrt(g*level/(2*n)) + g*float64(support)*b*level/n
		if kappa > 0 {
			q := float64(rank)
			r = q * (math.Sqrt(level*q/(2*n)) + b*level*q/n) / (2 * kappa)
		}
		n *= 2
		used += n
		total += (n + float64(support)) * min(1, 4*r)
	}
	return total
}

// What is proved: with probability 1 − p the regret is below the bound. Each of 40 runs is above it, or loses the best arm,
// with probability at most 0.1, so that more than 20 are with below 1e-9. A broken copy that is told of less noise than there
// is loses it more often.
func TestPhasedTheorem(t *testing.T) {
	const p, b, first, horizon, runs = 0.1, 20.0, 8, 20_000_000, 40
	x, means := circle(6)
	curved := make([]float64, len(means)) // logistic, of θ = (0, 2, 0)
	var steep [][]float64
	for a := range x {
		steep = append(steep, x[a][1:])
		curved[a] = sigmoid(2 * x[a][1])
	}
	for _, c := range []struct {
		x     [][]float64
		means []float64
		link  Link
		bound float64
	}{
		{x, means, Link{}, phasedBound(6, first, 3, 6, horizon, p, b, 3.01, 0)},
		{steep, curved, Link{Bound: 2}, phasedBound(6, first, 2, 0, horizon, p, b, 0, sigmoid(2)*sigmoid(-2))},
	} {
		best := slices.Index(c.means, slices.Max(c.means))
		failed := func(told float64) (n int) {
			for seed := range uint64(runs) {
				q := testkit.Must(NewPhased(6, privacy.Pure{Epsilon: 1 / b}, p, first))
				if err := q.SetVectors(c.x, c.link); err != nil {
					t.Fatal(err)
				}
				regret, _ := phasedRun(t, q, rand.New(rand.NewPCG(seed, 56)), c.means, horizon, b, told, nil)
				kept := slices.Contains(q.race.alive, best) || slices.Contains(q.race.in, best)
				if regret > c.bound || !kept {
					n++
				}
			}
			return n
		}
		sorted := slices.Sorted(slices.Values(c.means))
		if second := (sorted[5] - sorted[4]) * horizon; c.bound > second { // the second best arm, for ever
			t.Errorf("%v: the bound says nothing: %v of %v", c.link, c.bound, second)
		}
		right, broken := failed(b), failed(0)
		if right > 20 || broken <= 20 {
			t.Errorf("%v: of %d runs %d are beyond the bound, and %d of the broken copy", c.link, runs, right, broken)
		}
	}
}

// What it did on fixed draws.
func TestPhasedGolden(t *testing.T) {
	x, means := circle(5)
	p := testkit.Must(NewPhased(5, privacy.Pure{Epsilon: 0.5}, 0.05, 0))
	if err := p.SetVectors(x, Link{}); err != nil {
		t.Fatal(err)
	}
	_, plays := phasedRun(t, p, rand.New(rand.NewPCG(7, 57)), means, 50_000, 2, 2, nil)
	if got, want := fmt.Sprint(plays), phasedGolden; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

const phasedGolden = "[46752 812 300 300 1836]"

// racedOpen is raced for slots that fill in several batches.
func racedOpen(t *testing.T, p Identifier, r *rand.Rand, means []float64, b, told float64) {
	t.Helper()
	waiting := make([]int, len(means))
	for batch := p.Next(privacy.Released{}); batch != nil; {
		var values []float64
		for _, x := range batch.Plays {
			waiting[x.Arm] += x.Rounds
			if x.Release {
				values = append(values, float64(waiting[x.Arm]), bernoullis(r, waiting[x.Arm], means[x.Arm])+laplace(r, b))
				waiting[x.Arm] = 0
			}
		}
		batch = give(t, p, told, values...)
	}
}

// In each context the answer is that of a rule of its own, and it is right of all or of none. Each of 40 runs is wrong with
// probability at most 0.1, so that more than 20 are with below 1e-9; a broken copy that is told of less noise is.
func TestContextsTheorem(t *testing.T) {
	const risk, b = 0.1, 40.0
	means := []float64{0.9, 0.5, 0.1, 0.2, 0.3, 0.8}
	for _, goal := range []RaceGoal{{Top: 1}, {Top: 2}, {Level: 0.6}} {
		wrong := func(told float64) (n int) {
			for seed := range uint64(40) {
				of := make([]Identifier, 2)
				for c := range of {
					of[c] = testkit.Must(NewDPRace(3, privacy.Pure{Epsilon: 1 / b}, risk/2, goal, 16))
				}
				p := testkit.Must(NewPerContext(3, of))
				r := rand.New(rand.NewPCG(seed, 58))
				p.SetArrivals(func(n int, to []int) {
					clear(to)
					for range n {
						to[r.IntN(3)/2]++
					}
				}, nil)
				if p.Answer() != -1 || p.Chosen() != nil || p.Right(means) {
					t.Fatal("it has an answer before it has begun")
				}
				racedOpen(t, p, r, means, b, told)
				if !p.Right(means) {
					n++
				}
				if chosen := append(of[0].(Chooser).Chosen(), 0)[0]; len(p.Chosen()) > 0 && goal.Top > 0 && p.Chosen()[0] != chosen {
					t.Fatalf("it answers %v, and the first context %d", p.Chosen(), chosen)
				}
			}
			return n
		}
		if right, broken := wrong(b), wrong(0); right > 20 || broken <= 20 {
			t.Errorf("%+v: of 40 %d are wrong, and %d of the broken copy", goal, right, broken)
		}
	}
}

// By hand: halving in two contexts, without noise. Wrong of one is wrong of all.
func TestContextsByHand(t *testing.T) {
	of := []Identifier{testkit.Must(NewDPHalving(2, privacy.None{}, 2)), testkit.Must(NewDPHalving(2, privacy.None{}, 4))}
	p := testkit.Must(NewPerContext(2, of))
	batch := p.Next(privacy.Released{}) // contexts take turns: 0, 1, 0 fill the first
	if got := fmt.Sprint(batch.Plays); got != "[{0 1 true} {1 1 true} {2 1 false}]" {
		t.Fatal(got)
	}
	// arm 1 of the first is better; two people of it come while the second fills
	batch = give(t, p, 0, 1, 0, 1, 1)
	total := map[int]int{}
	for batch != nil {
		var values []float64
		for _, x := range batch.Plays {
			total[x.Arm] += x.Rounds
			if x.Release {
				values = append(values, 2, float64(3-x.Arm)) // arm 2 has 1, arm 3 has 0
			}
		}
		batch = give(t, p, 0, values...)
	}
	if fmt.Sprint(p.Chosen(), total) != "[1 2] map[1:2 2:1 3:2]" || p.Answer() != 1 {
		t.Errorf("%v, %v", p.Chosen(), total)
	}
	if !p.Right([]float64{0.1, 0.2, 0.9, 0.5}) || p.Right([]float64{0.1, 0.2, 0.5, 0.9}) {
		t.Error("it is right where it is wrong")
	}
}
