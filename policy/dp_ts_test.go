package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// A trace by hand: no noise, α = 1, no floor, first batch 10. The weights are equal, so that an estimate
// is the mean, and θ has the law Φ((x−m)/√(x(1−x)/n)), x at least a tenth of the base rate.
//
//	sums 5, 5          equal shares; each has 5 plays to its release at 15               both, 5 rounds
//	sums +5, +0        means ⅔, ⅓: shares .9681, .0319; arm 0 has 8 to 23, arm 1 is owed .26   arm 0, 8
//	arm 0: +2          12/23, ⅓: .8762, .1238; arm 0 has 12 to 35, in 13.70 rounds, of which
//	                   1.70 are arm 1's, which is owed 1.96                              arm 0, 12; arm 1, 1
func TestDPTSByHand(t *testing.T) {
	p, err := NewDPTS(2, privacy.None{}, 10)
	check(t, err)
	check(t, p.SetSpread(1))
	check(t, p.SetFloor(0))
	l, slot := privacy.NewLedger(), 0
	released := privacy.Released{}
	for i, v := range []struct {
		want []Play
		sums []float64
	}{
		{[]Play{{0, 10, true}, {1, 10, true}}, []float64{5, 5}},
		{[]Play{{0, 5, true}, {1, 5, true}}, []float64{5, 0}},
		{[]Play{{0, 8, true}}, []float64{2}},
		{[]Play{{0, 12, true}, {1, 1, false}}, nil},
	} {
		b := p.Next(released)
		if !slices.Equal(b.Plays, v.want) {
			t.Fatalf("batch %d is %v, want %v", i, b.Plays, v.want)
		}
		values, slots := &privacy.Values{Sum: v.sums}, []int(nil)
		for _, play := range b.Plays[:len(v.sums)] {
			values.N, slots = append(values.N, play.Rounds), append(slots, slot)
			slot++
		}
		if len(slots) > 0 {
			released, err = l.ReleaseAll(slots, p.Mechanism(), values)
			check(t, err)
		}
	}
	for a, want := range []float64{0, 0.958977} {
		if got := p.own[a].credit; math.Abs(got-want) > 1e-3 {
			t.Errorf("arm %d is owed %v, want %v", a, got, want)
		}
	}
}

// Sums 6 of 10 and 4 of 5, each with noise of variance 1, and rewards of variance ¼: weights 10/3.5 and
// 5/2.25, so that the estimate is (17.143 + 8.889)/(28.571 + 11.111).
func TestDPTSEstimate(t *testing.T) {
	d := drawn{past: []noisySum{{10, 6, 1}, {5, 4, 1}}}
	mean, v, noise := d.estimate(0.25)
	for _, x := range [][2]float64{{mean, 0.656000}, {v, 0.0675201}, {noise, 0.00832013}} {
		if math.Abs(x[0]-x[1]) > 1e-6 {
			t.Errorf("got %v, %v, %v", mean, v, noise)
		}
	}
}

// A flaw is what a twin of the reference does otherwise.
type drawnFlaw int

const (
	drawnFaithful drawnFlaw = iota
	plugsIn                 // the variance is that at the estimate
	pools                   // releases count by their rewards
	loses                   // it forgets what came before the last release
	halves                  // it takes the noise's deviation for half of what it is
	knowsNew                // an arm without a release has a quarter of its width
)

// drawnReference holds the batches of a policy against the definition in DPTS' comment, reward by reward,
// by sums over a fine grid and by searches of its own. It returns what is wrong first.
func drawnReference(p *DPTS, tab table, alpha, floor float64, first, horizon int, tail privacy.Tail,
	how drawnFlaw) error {
	return drawnSince(math.MaxInt, p, tab, alpha, floor, first, horizon, tail, how)
}

// drawnSince has the last arm come before that batch.
func drawnSince(late int, p *DPTS, tab table, alpha, floor float64, first, horizon int, tail privacy.Tail,
	how drawnFlaw) error {
	type sum struct{ n, s, v float64 }
	k := len(tab.reward)
	points := 2500
	if late < math.MaxInt { // an arm without a release has a wide law
		points = 4000
	}
	past, waits, end, plays := make([][]sum, k), make([]sum, k), make([]int, k), make([]int, k)
	drawn, owed, level := make([]int, k), make([]float64, k), 0.0
	bounds, looked := make([][2]float64, k), make([]int, k)
	released, ledger, slot := privacy.Released{}, privacy.NewLedger(), 0
	for a := range end {
		end[a] = first
	}
	variance := float64(tail.Sigma*tail.Sigma) + 2*tail.H*tail.H
	k = len(p.own)
	for t, batch := 0, 0; ; batch++ {
		b := p.Next(released)
		if batch == late {
			before := make([]float64, k)
			for a := range before {
				before[a] = p.own[a].credit
			}
			if err := p.AddArm(); err != nil {
				return err
			}
			for a := range before {
				if math.Abs(p.own[a].credit-before[a]) > 1e-9 {
					return fmt.Errorf("arm %d is owed %v after a batch that was withdrawn, want %v", a, p.own[a].credit, before[a])
				}
				owed[a] = p.own[a].credit
			}
			k, level = k+1, 0
			b = p.Next(privacy.Released{})
		}
		if t > 0 {
			// who is not ruled out
			var n, s, low float64
			means := make([]float64, k)
			again := float64(t) >= 2*level
			if again {
				level = float64(t)
			}
			for a := range k {
				var all sum
				for _, x := range past[a] {
					all.n, all.s, all.v = all.n+x.n, all.s+x.s, all.v+variance
				}
				n, s = n+all.n, s+all.s
				means[a] = min(1, max(0, all.s/all.n))
				m := float64(len(past[a]))
				if all.n == 0 {
					bounds[a] = [2]float64{0, 1}
				} else if again || looked[a] < len(past[a]) {
					c := math.Log(2 * float64(k) * m * (m + 1) * level)
					bounds[a] = [2]float64{1 - noisyEnd(1-means[a], c, all.n, m, all.v, tail),
						noisyEnd(means[a], c, all.n, m, all.v, tail)}
					looked[a] = len(past[a])
				}
				low = max(low, bounds[a][0])
			}
			base := min(0.995, max(0.005, s/n))
			var active []int
			for a := range k {
				if math.Abs(bounds[a][1]-low) < 1e-4 {
					return nil // too close to tell
				}
				if bounds[a][1] >= low {
					active = append(active, a)
				}
			}
			// the laws
			laws := make([]func(x float64) float64, len(active))
			from, to := math.Inf(1), math.Inf(-1)
			for i, a := range active {
				rel := past[a]
				if how == loses && len(rel) > 0 {
					rel = rel[len(rel)-1:]
				}
				all := 0.0
				for _, x := range past[a] {
					all += x.n
				}
				m := (means[a]*all + 10*base) / (all + 10)
				var wn, ws, w2n, w2v float64
				for _, x := range rel {
					v := variance
					if how == halves {
						v /= 4
					}
					w := x.n / (m*(1-m)*x.n + v)
					if how == pools {
						w = 1
					}
					wn, ws, w2n, w2v = wn+w*x.n, ws+w*x.s, w2n+w*w*x.n, w2v+w*w*v
				}
				if len(rel) == 0 {
					if wn, ws, w2n = 1, base, 1; how == knowsNew {
						w2n = 1. / 16
					}
				}
				e := min(1, max(0, ws/wn))
				deviation := func(x float64) float64 {
					if how == plugsIn {
						x = e
					}
					x = min(1-base/10, max(base/10, x))
					return alpha * math.Sqrt(x*(1-x)*w2n+w2v) / wn
				}
				laws[i] = func(x float64) float64 { return math.Erfc((e-x)/deviation(x)/math.Sqrt2) / 2 }
				from, to = min(from, e-7*alpha*math.Sqrt(w2n/4+w2v)/wn), max(to, e+7*alpha*math.Sqrt(w2n/4+w2v)/wn)
			}
			shares, before := make([]float64, len(active)), make([]float64, len(active))
			from, to = max(from, -2), min(to, 3)
			for j := range points + 1 {
				x := from + (to-from)*float64(j)/float64(points)
				all := 1.0
				now := make([]float64, len(active))
				for i, f := range laws {
					now[i] = f(x)
					all *= now[i]
				}
				for i, f := range now {
					if f > before[i] && f > 0 {
						shares[i] += (f - before[i]) * all / f
					}
				}
				before = now
			}
			total := 0.0
			for _, s := range shares {
				total += s
			}
			// the batch
			got := make([]int, k)
			ends := false
			for _, play := range b.Plays {
				got[play.Arm], ends = play.Rounds, ends || play.Release
			}
			if !ends {
				return fmt.Errorf("round %d: %v ends without a release", t, b.Plays)
			}
			rounds, first := 0.0, false // that shares play, and whether a release is owed before
			for _, a := range active {
				owed[a] = max(owed[a], math.Floor(floor*float64(t)/float64(len(active))-float64(plays[a])))
				rounds += float64(got[a]) + p.own[a].credit - owed[a]
				first = first || owed[a] >= float64(end[a]-plays[a])
			}
			if first && rounds > 1e-6 {
				return fmt.Errorf("round %d: %v has %v rounds beside what was owed", t, b.Plays, rounds)
			}
			for i, a := range active {
				want := min(owed[a]+shares[i]/total*rounds, float64(end[a]-plays[a]))
				if math.Abs(want-float64(got[a])) > 1.01+0.002*rounds {
					return fmt.Errorf("round %d: arm %d has %d plays of %v, want %v", t, a, got[a], b.Plays, want)
				}
				owed[a] = p.own[a].credit
			}
			for a := range k {
				if got[a] > 0 && !slices.Contains(active, a) {
					return fmt.Errorf("round %d: arm %d is played, which is ruled out", t, a)
				}
			}
		}
		v, slots := &privacy.Values{Tail: tail}, []int(nil)
		for _, play := range b.Plays {
			a := play.Arm
			for range play.Rounds {
				if t++; t > horizon {
					return nil
				}
				waits[a].n, waits[a].s = waits[a].n+1, waits[a].s+tab.reward[a][drawn[a]]
				drawn[a]++
			}
			plays[a] += play.Rounds
			if play.Release != (plays[a] == end[a]) {
				return fmt.Errorf("round %d: arm %d is released after %d plays, must be after %d", t, a, plays[a], end[a])
			}
			if play.Release {
				waits[a].s += tab.noise[a][len(past[a])]
				v.N, v.Sum, slots = append(v.N, int(waits[a].n)), append(v.Sum, waits[a].s), append(slots, slot)
				slot++
				past[a], waits[a] = append(past[a], waits[a]), sum{}
				end[a] = int(math.Ceil(1.5 * float64(end[a])))
			}
		}
		if released = (privacy.Released{}); len(slots) > 0 {
			var err error
			if released, err = ledger.ReleaseAll(slots, p.Mechanism(), v); err != nil {
				return err
			}
		}
	}
}

// noisyEnd is the upper end of the means y at which sup λ(y−x)… is below c, by bisection and, for each
// mean, a search for λ: of n rewards whose mean is x, with m Laplace noises or normal ones of variance v.
func noisyEnd(x, c, n, m, v float64, tail privacy.Tail) float64 {
	against := func(y float64) float64 {
		lo, hi := 0.0, 60.0
		if tail.H > 0 {
			hi = 1 / tail.H
		}
		f := func(l float64) float64 {
			cost := l * l * v / 2
			if tail.H > 0 {
				cost = -m * math.Log(1-l*l*tail.H*tail.H)
			}
			return -l*x*n - n*math.Log(1-y+y*math.Exp(-l)) - cost
		}
		for range 60 {
			if a, b := lo+(hi-lo)/3, hi-(hi-lo)/3; f(a) < f(b) {
				lo = a
			} else {
				hi = b
			}
		}
		return f((lo + hi) / 2)
	}
	lo, hi := x, 1.0
	for range 40 {
		if mid := (lo + hi) / 2; against(mid) < c {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

func TestDPTSAgainstReference(t *testing.T) {
	const horizon = 2500
	runs := testkit.Size(8, 32)
	caught := map[drawnFlaw]int{}
	for seed := range uint64(runs) {
		build := func() (*DPTS, table, func(drawnFlaw) error) {
			r := rand.New(rand.NewPCG(seed, 31))
			arms, first, floor := 2+r.IntN(4), 10+r.IntN(20), 0.05*r.Float64()
			scale, alpha := math.Exp(2.5*r.Float64()-0.5), 0.5+r.Float64()
			var budget privacy.Budget = privacy.Pure{Epsilon: 1 / scale}
			tail, noise := privacy.Tail{H: scale}, laplace(r, scale)
			if seed%2 == 0 {
				budget, tail = privacy.ZCDP{Rho: 1 / (2 * scale * scale)}, privacy.Tail{Sigma: scale}
				noise = func() float64 { return scale * r.NormFloat64() }
			}
			tab := newTable(r, arms, horizon, noise)
			p, err := NewDPTS(arms, budget, first)
			check(t, err)
			check(t, p.SetSpread(alpha))
			check(t, p.SetFloor(floor))
			return p, tab, func(how drawnFlaw) error {
				return drawnReference(p, tab, alpha, floor, first, horizon, tail, how)
			}
		}
		for _, how := range []drawnFlaw{drawnFaithful, plugsIn, pools, loses, halves} {
			_, _, play := build()
			switch err := play(how); {
			case how == drawnFaithful && err != nil:
				t.Fatalf("seed %d: %v", seed, err)
			case err != nil:
				caught[how]++
			}
		}
	}
	for _, how := range []drawnFlaw{plugsIn, pools, loses, halves} {
		if caught[how] < runs/4 {
			t.Errorf("twin %d is told apart in %d of %d runs", how, caught[how], runs)
		}
	}
}

// The chances are those of draws, by Pearson's χ² test on counts, for few arms and many, near each other and not, at
// the rates where the variance at x matters. A true law fails once in 1e6 runs of all of it, and one whose variance is
// that at the estimate is caught. Draws invert Φ(z(x)) in closed form: (x−m)² = g²(vx(1−x) + noise) where x is not
// below the least variance's, else a straight line.
func TestDPTSChances(t *testing.T) {
	draws := testkit.Size(100_000, 10_000_000)
	src := rand.New(rand.NewPCG(7, 33))
	for name, arms := range map[string][]contender{
		"two":    {{mean: 0.05, v: 0.002, noise: 1e-5}, {mean: 0.02, v: 0.02, noise: 4e-5}},
		"clicks": {{mean: 0.03, v: 1e-3, noise: 1e-5}, {mean: 0, v: 0.02, noise: 1e-5}, {mean: 0.02, v: 4e-3, noise: 6e-6}},
		"many": {{mean: 0.5, v: 0.02}, {mean: 0.55, v: 0.1}, {mean: 0.3, v: 0.1}, {mean: 0.45, v: 0.03}, {mean: 0.2, v: 0.2},
			{mean: 0.55, v: 0.04}, {mean: 0.1, v: 0.3, noise: 1e-4}},
	} {
		const least = 0.004
		l := newLargest(len(arms))
		l.reset(least)
		for i, c := range arms {
			l.add(i, c.mean, c.v, c.noise)
		}
		l.solve()
		draw := func(c contender, plugged bool) float64 {
			g := src.NormFloat64()
			if plugged {
				return c.mean + g*math.Sqrt(c.v*c.mean*(1-c.mean)+c.noise)
			}
			v, mid := g*g*c.v, c.mean+g*g*c.v/2
			x := (mid + math.Copysign(math.Sqrt(mid*mid-(1+v)*(c.mean*c.mean-g*g*c.noise)), g)) / (1 + v)
			if !(x >= least && x <= 1-least) {
				x = c.mean + g*math.Sqrt(c.v*least*(1-least)+c.noise)
			}
			return x
		}
		for _, plugged := range []bool{false, true} {
			want, got := map[string]float64{}, map[string]float64{}
			names := make([]string, len(arms))
			for i := range arms {
				names[i] = fmt.Sprint(i)
				want[names[i]] = l.of[i].chance
			}
			n := draws
			if plugged {
				n = 100_000
			}
			for range n {
				best, top := 0, math.Inf(-1)
				for i, c := range arms {
					if x := draw(c, plugged); x > top {
						best, top = i, x
					}
				}
				got[names[best]]++
			}
			if p := fit(want, got, n); (p < 1e-6/3) != plugged {
				t.Errorf("%s, variance at the estimate %v: p = %v for chances %v and counts %v", name, plugged, p, want, got)
			}
		}
	}
}

func TestDPTSErrors(t *testing.T) {
	for _, v := range []struct {
		arms   int
		budget privacy.Budget
		first  int
		want   string
	}{
		{1, privacy.None{}, 0, "dp-ts: arms is 1, must be at least 2"},
		{2, privacy.Pure{}, 0, "dp-ts: epsilon is 0, must be"},
		{2, privacy.None{}, -1, "dp-ts: first is -1, must be at least 1"},
	} {
		if _, err := NewDPTS(v.arms, v.budget, v.first); err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%+v: %v", v, err)
		}
	}
	p, err := NewDPTS(2, nil, 0)
	check(t, err)
	for _, x := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if err := p.SetSpread(x); err == nil || !strings.Contains(err.Error(), "must be finite and above 0") {
			t.Errorf("spread %v: %v", x, err)
		}
	}
	for _, x := range []float64{-0.1, 0.06, math.NaN()} {
		if err := p.SetFloor(x); err == nil || !strings.Contains(err.Error(), "must be from 0 to 0.05") {
			t.Errorf("floor %v: %v", x, err)
		}
	}
}
