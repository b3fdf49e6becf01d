package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// windowing is DPWindowKLUCB written from its description, one reward at a time: it keeps every
// reward with the batch it came in, and looks through all of them at each decision. Where indices
// are equal up to the arithmetic of either it follows got.
func windowing(tab table, got []int, eps float64, window, first int, how flaw) []int {
	arms := len(tab.reward)
	type past struct {
		at    int // round of its batch's end
		batch int
		x     float64
	}
	var played []int
	log, used, batches := make([][]past, arms), make([]int, arms), make([]int, arms)
	play := func(plays []int) { // one batch: arms in the order of their rounds
		ended := len(played) + len(plays)
		for _, a := range plays {
			if len(played) == len(got) {
				return
			}
			played = append(played, a)
			log[a] = append(log[a], past{ended, batches[a], tab.reward[a][used[a]]})
			used[a]++
		}
		for _, a := range slices.Compact(slices.Sorted(slices.Values(plays))) {
			batches[a]++
		}
	}
	var opening []int
	for j := range first * arms {
		opening = append(opening, j%arms)
	}
	play(opening)
	for len(played) < len(got) {
		t := len(played)
		mean, n, m := make([]float64, arms), make([]float64, arms), make([]float64, arms)
		for a := range arms {
			sum, seen := 0.0, map[int]bool{}
			for _, p := range log[a] {
				if p.at <= t-window && how != forgets { // here: it does not forget
					continue
				}
				sum += p.x
				n[a]++
				if !seen[p.batch] {
					seen[p.batch] = true
					z := tab.noise[a][p.batch]
					switch how {
					case halfNoise:
						z /= 2
					case redraws:
						z = tab.noise[a][batches[a]-1]
					}
					sum += z
				}
			}
			m[a] = float64(len(seen))
			if n[a] > 0 {
				mean[a] = min(1, max(0, sum/n[a]))
			}
		}
		index := func(a int) float64 {
			if n[a] == 0 {
				return 1
			}
			return dRefUpper(mean[a], math.Log(float64(min(t, window)))/n[a], eps, m[a]/n[a])
		}
		best, top := 0, math.Inf(-1)
		for a := range arms {
			if x := index(a); x > top || x == top && n[a] < n[best] {
				best, top = a, x
			}
		}
		if a := got[t]; a != best {
			if x := index(a); x > top-1e-7 && x != top {
				best = a
			}
		}
		play(slices.Repeat([]int{best}, max(first, int(n[best]/16))))
	}
	return played
}

func TestDPWindowKLUCBAgainstReference(t *testing.T) {
	const horizon = 300
	caught := map[flaw]int{}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 22))
		arms := 2 + r.IntN(3)
		eps := math.Exp(4*r.Float64() - 2)
		first := 1 + r.IntN(10)
		window := 2*arms*first + r.IntN(200)
		scale := 1 / eps
		if seed%8 == 7 {
			eps, scale = math.Inf(1), 0
		}
		tab := newTable(r, arms, horizon, laplace(r, scale))
		for a := range arms { // the world changes
			if r.IntN(2) == 0 {
				for i := horizon / 8; i < horizon; i++ {
					tab.reward[a][i] = 1 - tab.reward[a][i]
				}
			}
		}
		p, err := NewDPWindowKLUCB(arms, eps, window, first)
		check(t, err)
		got := playTable(t, p, tab, privacy.Tail{H: scale}, horizon)
		same(t, "dp-window-klucb", got, windowing(tab, got, eps, window, first, faithful))
		for _, how := range []flaw{forgets, halfNoise, redraws} {
			if !slices.Equal(got, windowing(tab, got, eps, window, first, how)) {
				caught[how]++
			}
		}
	}
	for _, how := range []flaw{forgets, halfNoise, redraws} {
		if caught[how] < 6 {
			t.Errorf("twin %d differs in %d of 12 runs only", how, caught[how])
		}
	}
}

// By hand, without noise, a window of 8 and batches of 2. With log 4 = 1.386, arm 0 at 2/2 has the
// index 1, arm 1 at 0/2 has 1 − e^{−0.693} = 0.5. Arm 0 goes on until the window has forgotten arm
// 1, whose batch ended at round 4: at round 12. Arm 1 then has the index 1, and no samples.
func TestDPWindowKLUCBByHand(t *testing.T) {
	p, err := NewDPWindowKLUCB(2, math.Inf(1), 8, 2)
	check(t, err)
	l := privacy.NewLedger()
	if b := p.Next(privacy.Released{}); !slices.Equal(b.Plays, []Play{{0, 2, true}, {1, 2, true}}) {
		t.Fatalf("first batch %v", b.Plays)
	}
	r, err := l.ReleaseAll([]int{0, 1}, p.Mechanism(), &privacy.Values{N: []int{2, 2}, Sum: []float64{2, 0}})
	check(t, err)
	for i, want := range []int{0, 0, 0, 0, 1, 0} {
		b := p.Next(r)
		if len(b.Plays) != 1 || b.Plays[0] != (Play{want, 2, true}) {
			t.Fatalf("batch %d: %v, want 2 rounds of arm %d", i, b.Plays, want)
		}
		r, err = l.Release(i+2, p.Mechanism(), &privacy.Values{N: []int{2},
			Sum: []float64{2 * float64(1-want)}})
		check(t, err)
	}
}

func TestDPWindowKLUCBBadInput(t *testing.T) {
	for _, v := range []struct {
		arms          int
		eps           float64
		window, first int
		want          string
	}{
		{1, 1, 100, 0, "arms is 1"}, {2, 0, 100, 0, "epsilon is 0"}, {2, math.NaN(), 100, 0, "epsilon is NaN"},
		{2, 1, 0, 0, "window is 0"}, {2, 1, -5, 0, "window is -5"},
		{2, 1, 31, 0, "window is 31, must be at least 32: two batches of 8 rounds of each of 2 arms"},
		{2, 1, 100, -1, "first is -1"}, {2, 1e-300, 100, 0, "window is 100, must be at least"},
	} {
		if _, err := NewDPWindowKLUCB(v.arms, v.eps, v.window, v.first); err == nil ||
			!strings.Contains(err.Error(), v.want) {
			t.Errorf("got %v, want %q", err, v.want)
		}
	}
}

// An arm that was taken off is not asked for again, before the first batch and after it.
func TestDPWindowKLUCBDrops(t *testing.T) {
	for first := range 4 {
		p, err := NewDPWindowKLUCB(3, 1, 100, 4)
		check(t, err)
		l := privacy.NewLedger()
		var r privacy.Released
		for i := range 40 {
			b := p.Next(r)
			r = privacy.Released{}
			if i == first {
				p.Drop(0)
				b = p.Next(r)
			}
			var n, ids []int
			var sum []float64
			for j, q := range b.Plays {
				if i >= first && q.Arm == 0 {
					t.Fatalf("batch %d plays the arm that is gone", i)
				}
				n, sum, ids = append(n, q.Rounds+i%3), append(sum, 0), append(ids, 100*i+j)
			}
			r, err = l.ReleaseAll(ids, p.Mechanism(), &privacy.Values{N: n, Sum: sum})
			check(t, err)
		}
	}
}
