package policy

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// batchwise is [Chowdhury and Zhou 2023, Algorithm 1], written from its pseudo-code, one reward at
// a time, but that the arms of a batch take turns.
func batchwise(tab table, horizon, eta int, radius func(active, b, n float64) float64) []int {
	arms := len(tab.reward)
	var (
		played []int
		sum    = make([]float64, arms)
		n      = make([]float64, arms)
		drawn  = make([]int, arms)
	)
	phi := make(map[int]bool)
	for a := range arms {
		phi[a] = true
	}
	for b, l := 1, eta; len(phi) > 1; b, l = b+1, l*eta {
		clear(sum)
		clear(n)
		for range l {
			for a := range arms {
				if !phi[a] {
					continue
				}
				if len(played) == horizon {
					return played
				}
				played = append(played, a)
				sum[a] += tab.reward[a][drawn[a]]
				drawn[a]++
				n[a]++
			}
		}
		ucb, lcb, top := make([]float64, arms), make([]float64, arms), math.Inf(-1)
		for a := range phi {
			mean := (sum[a] + tab.noise[a][b-1]) / n[a]
			beta := radius(float64(len(phi)), float64(b), n[a])
			ucb[a], lcb[a] = mean+beta, mean-beta
			top = max(top, lcb[a])
		}
		for a := range arms {
			if phi[a] && ucb[a] < top {
				delete(phi, a)
			}
		}
	}
	for a := range phi {
		for len(played) < horizon {
			played = append(played, a)
		}
	}
	return played
}

// provedRadius is the radius for noise with the tail s√(2x) + h·x.
func provedRadius(p, s, h float64) func(active, b, n float64) float64 {
	return func(active, b, n float64) float64 {
		l := math.Log(8 * active * b * b / p)
		return math.Sqrt(l/2/n) + (s*math.Sqrt(2*l)+h*l)/n
	}
}

func TestBatchSEAgainstReference(t *testing.T) {
	testkit.OneGoroutine(t)
	const horizon = 20000
	dropped := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 12))
		arms, eta := 2+r.IntN(5), 2+r.IntN(4)
		epsilon, p, s := math.Exp(3*r.Float64()-1), 0.5*r.Float64()+1e-4, 1+20*r.Float64()
		for _, v := range []struct {
			name   string
			budget privacy.Budget
			draw   func() float64
			tail   privacy.Tail
			print  *PrintedRadius
			radius func(active, b, n float64) float64
		}{
			{"laplace", privacy.Pure{Epsilon: epsilon}, laplace(r, 1/epsilon),
				privacy.Tail{H: 1 / epsilon}, nil, provedRadius(p, 0, 1/epsilon)},
			{"gaussian", privacy.ZCDP{Rho: epsilon * epsilon / 2}, func() float64 {
				return r.NormFloat64() / epsilon
			}, privacy.Tail{Sigma: 1 / epsilon}, nil,
				provedRadius(p, 1/epsilon, 0)},
			{"every part of a tail", privacy.Pure{Epsilon: epsilon}, laplace(r, 1/epsilon),
				privacy.Tail{Sigma: 0.3, H: 1 / epsilon, Log: 5}, nil,
				func(active, b, n float64) float64 {
					return provedRadius(p, 0.3, 1/epsilon)(active, b, n) + 5/epsilon/n
				}},
			{"none", privacy.None{}, func() float64 { return 0 }, privacy.Tail{}, nil, provedRadius(p, 0, 0)},
			{"pure", privacy.Pure{Epsilon: epsilon}, laplace(r, 1/epsilon), privacy.Tail{H: 99},
				new(PrintedPure(epsilon)), printedReference(p, func(float64) (float64, float64) {
					return math.Sqrt(2) / epsilon, 1 / epsilon
				})},
			{"rdp", privacy.Pure{Epsilon: epsilon}, laplace(r, 1/epsilon), privacy.Tail{H: 99},
				new(PrintedRDP(epsilon, s)), printedReference(p, func(float64) (float64, float64) {
					return (2 + math.Sqrt(2)/s) / epsilon, 1 / (s * epsilon)
				})},
			{"cdp", privacy.Pure{Epsilon: epsilon}, laplace(r, 1/epsilon), privacy.Tail{H: 99},
				new(PrintedCDP(epsilon, s)), printedReference(p, func(float64) (float64, float64) {
					return math.Sqrt(2) * (1 + 1/s) / epsilon, 0
				})},
			{"local", privacy.Pure{Epsilon: epsilon}, laplace(r, 1/epsilon), privacy.Tail{H: 99},
				new(PrintedLocal(epsilon)), printedReference(p, func(n float64) (float64, float64) {
					return (2*math.Sqrt(n) + math.Sqrt(2)) / epsilon, 1 / epsilon
				})},
		} {
			tab := newTable(r, arms, horizon, v.draw)
			q, err := NewBatchSE(arms, v.budget, p, float64(eta))
			check(t, err)
			if v.print != nil {
				check(t, q.SetPrinted(*v.print))
			}
			got := playTable(t, q, tab, v.tail, horizon)
			same(t, fmt.Sprintf("batch-se %s, seed %d", v.name, seed), got,
				batchwise(tab, horizon, eta, v.radius))
			dropped += arms - len(q.alive)
		}
	}
	if dropped < 150 {
		t.Errorf("only %d arms were ever dropped: the comparison says little", dropped)
	}
}

func printedReference(p float64, constants func(n float64) (sigma, h float64)) func(active, b,
	n float64) float64 {
	return func(active, b, n float64) float64 {
		sigma, h := constants(n)
		x := math.Log(2 * active * b * b / p)
		return math.Sqrt(math.Log(4*active*b*b/p)/(2*n)) + sigma*math.Sqrt(x)/n + h*x/n
	}
}

// give releases sums as a curator would.
func give(t *testing.T, p Policy, tail privacy.Tail, n []int, sums ...float64) *Batch {
	t.Helper()
	r, err := privacy.NewLedger().Release(0, p.Mechanism(), &privacy.Values{N: n, Sum: sums, Tail: tail})
	check(t, err)
	return p.Next(r)
}

// By hand, with p = ½, η = 2 and Lap(1):
//
//	b  |Φ|  L        β = √(L/2n) + L/n            means          kept
//	1  3    log 48   0.98377 + 1.93560 = 2.91937  7, 1, 1.2      1+β = 3.919 < 4.081 = 7−β ≤ 1.2+β = 4.119
//	2  2    log 128  0.77878 + 1.21301 = 1.99179  0.5, 4.48      0.5+β = 2.4918 ≥ 2.4882 = 4.48−β: what was good is forgotten
//	3  2    log 288  0.59493 + 0.70787 = 1.30280  0.5, 3.2       0.5+β = 1.803 < 1.897 = 3.2−β
func TestBatchSETrace(t *testing.T) {
	p, err := NewBatchSE(3, privacy.Pure{Epsilon: 1}, 0.5, 2)
	check(t, err)
	want := func(b *Batch, plays ...Play) {
		t.Helper()
		if b.Ask || b.Fresh || !slices.Equal(b.Plays, plays) {
			t.Fatalf("batch %v, want %v", b.Plays, plays)
		}
	}
	tail := privacy.Tail{H: 1}
	want(p.Next(privacy.Released{}), Play{0, 2, true}, Play{1, 2, true}, Play{2, 2, true})
	want(give(t, p, tail, []int{2, 2, 2}, 14, 2, 2.4), Play{0, 4, true}, Play{2, 4, true})
	want(give(t, p, tail, []int{4, 4}, 2, 17.92), Play{0, 8, true}, Play{2, 8, true})
	want(give(t, p, tail, []int{8, 8}, 4, 25.6), Play{2, Forever, false})
	want(p.Next(privacy.Released{}), Play{2, Forever, false})

	// the radii themselves
	for b, beta := range map[int]float64{1: 2.91937, 2: 1.99179, 3: 1.30280} {
		active := map[int]int{1: 3, 2: 2, 3: 2}[b]
		p.b, p.alive = b, make([]int, active)
		r, err := privacy.NewLedger().Release(0, p.Mechanism(),
			&privacy.Values{N: []int{1 << b}, Sum: []float64{0}, Tail: tail})
		check(t, err)
		if got := p.radius(r, 0); math.Abs(got-beta) > 6e-6 {
			t.Errorf("radius in batch %d is %v, want %v", b, got, beta)
		}
	}
}

// A run stays what it is.
func TestBatchSEGolden(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tab := newTable(r, 4, 20000, laplace(r, 1))
	p, err := NewBatchSE(4, privacy.Pure{Epsilon: 1}, 1e-4, 2)
	check(t, err)
	var n [4]int
	h := fnv.New64a()
	for _, a := range playTable(t, p, tab, privacy.Tail{H: 1}, 20000) {
		n[a]++
		h.Write([]byte{byte(a)})
	}
	if want := [4]int{2046, 510, 16934, 510}; n != want || h.Sum64() != 0x1dd1874c7c38d28d {
		t.Errorf("plays %v, hash %#x, want %v", n, h.Sum64(), want)
	}
}

// Answers may be missing: means and radii are of those that came, an arm of which nothing came
// stays, and so do all if nothing was released.
func TestBatchSEMissingAnswers(t *testing.T) {
	tail := privacy.Tail{H: 1}
	start := func() *BatchSE {
		p, err := NewBatchSE(3, privacy.Pure{Epsilon: 1}, 0.5, 2)
		check(t, err)
		p.Next(privacy.Released{})
		return p
	}
	arms := func(b *Batch) (out []int) {
		for _, play := range b.Plays {
			out = append(out, play.Arm)
		}
		return out
	}
	// n = 1 has radius √(L/2) + L = 5.262: 7−2.919 = 4.081 drops 1+2.919, not 1+5.262, though the
	// sum is half as large.
	if got := arms(give(t, start(), tail, []int{2, 1, 2}, 14, 1, 2)); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("one answer of two: arms %v, want 0 and 1", got)
	}
	for _, sum := range []float64{0, 5, -5} { // 0/0 is NaN, others ±∞
		if got := arms(give(t, start(), tail, []int{2, 0, 2}, 14, sum, 2)); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("no answer, sum %v: arms %v, want 0 and 1", sum, got)
		}
	}
	if got := arms(give(t, start(), tail, []int{0, 0, 0}, 0, 0, 0)); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("no answers at all: arms %v", got)
	}
	p := start()
	if b := p.Next(privacy.Released{}); !slices.Equal(arms(b), []int{0, 1, 2}) || b.Plays[0].Rounds != 4 {
		t.Errorf("nothing released: %v, want the next batch of all", b.Plays)
	}
}

// However low all means are, and whatever the tail, somebody is left.
func TestBatchSEKeepsTheLast(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		p, err := NewBatchSE(4, privacy.Pure{Epsilon: 1}, 0.5, 2)
		check(t, err)
		b := p.Next(privacy.Released{})
		for range 80 { // until the rounds leave the integers
			if len(b.Plays) == 0 {
				t.Fatalf("seed %d: no arm is left", seed)
			}
			if !b.Plays[0].Release {
				break
			}
			n, sums := make([]int, len(b.Plays)), make([]float64, len(b.Plays))
			for i := range n {
				n[i], sums[i] = r.IntN(b.Plays[i].Rounds), math.Ldexp(r.NormFloat64(), r.IntN(80)-10)
			}
			b = give(t, p, privacy.Tail{Sigma: r.Float64(), H: r.Float64()}, n, sums...)
		}
	}
	p, err := NewBatchSE(2, privacy.Pure{Epsilon: 1}, 0.5, 2)
	check(t, err)
	b := p.Next(privacy.Released{})
	for range 70 {
		b = p.Next(privacy.Released{})
	}
	if b.Plays[0].Rounds != Forever || b.Rounds() != Forever {
		t.Errorf("batch 71 has %d rounds an arm", b.Plays[0].Rounds)
	}
}

// world draws what a believed server would release.
type world struct {
	means []float64
	noise func() float64
	tail  privacy.Tail
	src   *rand.Rand
}

// run plays p for horizon rounds and returns its plays, and whether the proved radius of any sum
// missed the arm's mean.
func (w *world) run(t *testing.T, p *BatchSE, horizon int) (plays []int, missed bool) {
	plays = make([]int, len(w.means))
	left, ledger := horizon, privacy.NewLedger()
	var released privacy.Released
	for slot := 0; ; slot++ {
		b := p.Next(released)
		k := make([]int, len(b.Plays))
		cut := b.Rounds() >= left
		b.Counts(min(left, b.Rounds()), k)
		for i, n := range k {
			plays[b.Plays[i].Arm] += n
			left -= n
		}
		if cut {
			return plays, missed
		}
		v := &privacy.Values{Tail: w.tail}
		for _, play := range b.Plays {
			x := distuv.Binomial{N: float64(play.Rounds), P: w.means[play.Arm], Src: w.src}.Rand()
			v.N, v.Sum = append(v.N, play.Rounds), append(v.Sum, x+w.noise())
		}
		var err error
		if released, err = ledger.Release(slot, p.Mechanism(), v); err != nil {
			t.Fatal(err)
		}
		for i, play := range b.Plays {
			missed = missed || math.Abs(released.Mean(i)-w.means[play.Arm]) > p.radius(released, i)
		}
	}
}

// most is how often [Chowdhury and Zhou 2023]'s proof lets an arm of this gap be played: as long as
// four radii with all arms active are at least the gap.
func most(gap, eta float64, radius func(active, b, n float64) float64, arms, horizon int) int {
	total := 0
	for b := 1.0; ; b++ {
		l := math.Pow(eta, b)
		total += int(l)
		if total >= horizon {
			return horizon
		}
		if 4*radius(float64(arms), b, l) < gap {
			return total
		}
	}
}

// The means of [Azize 2024, §5.5.1].
var instances = map[string][]float64{
	"mu1": {0.75, 0.7, 0.7, 0.7, 0.7},
	"mu2": {0.75, 0.625, 0.5, 0.375, 0.25},
	"mu3": {0.75, 0.53125, 0.375, 0.28125, 0.25},
	"mu4": {0.75, 0.71875, 0.625, 0.46875, 0.25},
}

// [Chowdhury and Zhou 2023, Lemma 2] with its constants: with probability 1 − p no arm is played
// more often than its proof allows (p = 10⁻⁸ here, in 96 runs: a false alarm has probability 10⁻⁶);
// and with p = 1/T the mean regret is below the sum of all that, plus p·T·max Δ (the mean is far
// below: no chance involved to speak of).
func TestBatchSERegretBound(t *testing.T) {
	const horizon, runs = 1_000_000, 3
	for name, means := range instances {
		for _, eta := range []float64{2, 4} {
			for _, epsilon := range []float64{0.1, 1} {
				for _, gaussian := range []bool{false, true} {
					src := rand.New(rand.NewPCG(5, uint64(eta)))
					w := &world{means: means, src: src, noise: laplace(src, 1/epsilon),
						tail: privacy.Tail{H: 1 / epsilon}}
					budget := privacy.Budget(privacy.Pure{Epsilon: epsilon})
					if gaussian {
						w.noise, w.tail = func() float64 {
							return src.NormFloat64() / epsilon
						}, privacy.Tail{Sigma: 1 / epsilon}
						budget = privacy.ZCDP{Rho: epsilon * epsilon / 2}
					}
					for _, p := range []float64{1e-8, 1.0 / horizon} {
						radius := provedRadius(p, w.tail.Sigma, w.tail.H)
						limit, bound := make([]int, len(means)), p*horizon*0.5
						for a, mean := range means[1:] {
							limit[a+1] = most(means[0]-mean, eta, radius, len(means), horizon)
							bound += (means[0] - mean) * float64(limit[a+1])
						}
						total := 0.0
						for range runs {
							q, err := NewBatchSE(len(means), budget, p, eta)
							check(t, err)
							plays, _ := w.run(t, q, horizon)
							for a := 1; a < len(means); a++ {
								if p == 1e-8 && plays[a] > limit[a] {
									t.Errorf("%s, η = %v, %v: arm %d is played %d times, at most "+
										"%d allowed", name, eta, budget, a, plays[a], limit[a])
								}
								total += (means[0] - means[a]) * float64(plays[a])
							}
						}
						if mean := total / runs; !(mean <= bound) {
							t.Errorf("%s, η = %v, %v, p = %v: mean regret %v, bound %v", name, eta,
								budget, p, mean, bound)
						}
					}
				}
			}
		}
	}
}

// The true means leave their radii in at most a share p of all runs. With the noise counted half in
// the radius they do so more often, and it shows. A right policy fails with probability below 10⁻⁶
// (five and more standard deviations of a share that is p at most, 0.823p if the bounds were tight).
func TestBatchSERadiiCover(t *testing.T) {
	const runs, horizon, arms, epsilon = 3000, 20000, 10, 0.2
	means := make([]float64, arms)
	for a := range means {
		means[a] = 0.05 * float64(a)
	}
	for _, gaussian := range []bool{false, true} {
		for _, p := range []float64{0.02, 0.1} {
			misses := map[bool]int{}
			for _, half := range []bool{false, true} {
				src := rand.New(rand.NewPCG(6, 7))
				w := &world{means: means, src: src, noise: laplace(src, 1/epsilon),
					tail: privacy.Tail{H: 1 / epsilon}}
				budget := privacy.Budget(privacy.Pure{Epsilon: epsilon})
				if gaussian {
					w.noise, w.tail = func() float64 {
						return src.NormFloat64() / epsilon
					}, privacy.Tail{Sigma: 1 / epsilon}
					budget = privacy.ZCDP{Rho: epsilon * epsilon / 2}
				}
				if half {
					w.tail.H, w.tail.Sigma = w.tail.H/2, w.tail.Sigma/2
				}
				for range runs {
					q, err := NewBatchSE(arms, budget, p, 2)
					check(t, err)
					if _, missed := w.run(t, q, horizon); missed {
						misses[half]++
					}
				}
			}
			limit := p*runs + 5*math.Sqrt(p*(1-p)*runs)
			t.Logf("gaussian %v, p = %v: %.4f of runs leave a radius; %.4f with half the noise",
				gaussian, p, float64(misses[false])/runs, float64(misses[true])/runs)
			if float64(misses[false]) > limit {
				t.Errorf("gaussian %v, p = %v: %d of %d runs leave a radius", gaussian, p, misses[false], runs)
			}
			if float64(misses[true]) <= limit {
				t.Errorf("gaussian %v, p = %v: half the noise in the radius is not caught: %d of "+
					"%d runs", gaussian, p, misses[true], runs)
			}
		}
	}
}

// One draw for all arms, as in the code published with [Chowdhury and Zhou 2023], keeps every
// radius and yet is no privacy for comparisons: it cancels in them. What is released shows it: the
// spread of sums about their mean over the arms is 2b² for independent Laplace noise, and nothing
// for a shared draw. With 20000 arms' draws the estimate has a relative standard deviation of
// √(5/20000) = 0.016 at most.
func TestBatchSESharedNoise(t *testing.T) {
	const arms, releases, b = 10, 2000, 5.0
	spread := func(noise func() []float64) float64 {
		total := 0.0
		for range releases {
			x := noise()
			mean := 0.0
			for _, v := range x {
				mean += v / arms
			}
			for _, v := range x {
				total += (v - mean) * (v - mean) / (arms - 1)
			}
		}
		return total / releases / (2 * b * b)
	}
	draw := laplace(rand.New(rand.NewPCG(8, 9)), b)
	independent := func() []float64 {
		x := make([]float64, arms)
		for a := range x {
			x[a] = draw()
		}
		return x
	}
	shared := func() []float64 {
		x := make([]float64, arms)
		for a, one := 0, draw(); a < arms; a++ {
			x[a] = one
		}
		return x
	}
	if got := spread(independent); math.Abs(got-1) > 0.1 {
		t.Errorf("independent noise: spread %v of what it should be", got)
	}
	if got := spread(shared); math.Abs(got-1) <= 0.1 {
		t.Errorf("shared noise is not caught: spread %v", got)
	}
	// And the policy's decisions do not depend on it at all.
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 10))
		with := newTable(r, 4, 5000, func() float64 { return 0 })
		none := table{with.reward, make([][]float64, 4)}
		one := make([]float64, 5000)
		for i := range one {
			// whole, so that it cancels to the last bit but for the division
			one[i] = math.Round(20 * r.NormFloat64())
		}
		for a := range 4 {
			none.noise[a], with.noise[a] = with.noise[a], one
		}
		p, err := NewBatchSE(4, privacy.Pure{Epsilon: 5}, 0.1, 2)
		check(t, err)
		q, err := NewBatchSE(4, privacy.Pure{Epsilon: 5}, 0.1, 2)
		check(t, err)
		tail := privacy.Tail{H: 0.2}
		same(t, "shared noise", playTable(t, p, with, tail, 5000), playTable(t, q, none, tail, 5000))
	}
}

func TestBatchSEMechanism(t *testing.T) {
	for _, v := range []struct {
		budget  privacy.Budget
		want    privacy.Mechanism
		epsilon float64
	}{
		{privacy.Pure{Epsilon: 0.5}, privacy.Laplace{Scale: 2}, 0.5},
		{privacy.ZCDP{Rho: 0.125}, privacy.Gaussian{Sigma: 2}, 0.5},
		{privacy.Renyi{Alpha: 8, Epsilon: 1}, privacy.Gaussian{Sigma: 2}, 0.5},
		{privacy.None{}, privacy.Laplace{}, math.Inf(1)},
		{nil, privacy.Laplace{}, math.Inf(1)},
		// √(2·8)/½
		{privacy.Approx{Epsilon: 0.5, Delta: 1.25 * math.Exp(-8)}, privacy.Gaussian{Sigma: 8}, 0.125},
	} {
		p, err := NewBatchSE(2, v.budget, 0.1, 2)
		check(t, err)
		if p.Mechanism() != v.want || p.Epsilon() != v.epsilon {
			t.Errorf("%v: %v with ε = %v, want %v with %v", v.budget, p.Mechanism(), p.Epsilon(),
				v.want, v.epsilon)
		}
	}
}

func TestBatchSEBadInput(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	pure := privacy.Pure{Epsilon: 1}
	bad := func(name string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "batch-se: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, arms := range []int{-1, 0, 1} {
		_, err := NewBatchSE(arms, pure, 0.1, 2)
		bad("arms", err)
	}
	for _, p := range []float64{nan, 0, 1, -1, inf} {
		_, err := NewBatchSE(2, pure, p, 2)
		bad("p is", err)
	}
	for _, eta := range []float64{nan, 1, 0, -2, inf} {
		_, err := NewBatchSE(2, pure, 0.1, eta)
		bad("eta", err)
	}
	for _, x := range []float64{nan, 0, -1} {
		_, err := NewBatchSE(2, privacy.Pure{Epsilon: x}, 0.1, 2)
		bad("epsilon", err)
		_, err = NewBatchSE(2, privacy.ZCDP{Rho: x}, 0.1, 2)
		bad("rho", err)
	}
	p, err := NewBatchSE(2, pure, 0.1, 2)
	check(t, err)
	for _, x := range []float64{nan, -1, inf} {
		bad("sigma", p.SetPrinted(PrintedRadius{Sigma: x}))
		bad("h of", p.SetPrinted(PrintedRadius{H: x}))
		bad("local", p.SetPrinted(PrintedRadius{Local: x}))
	}
	// Without noise the printed radius is still the printed one.
	check(t, p.SetPrinted(PrintedPure(inf)))
	p.Next(privacy.Released{})
	r, err := privacy.NewLedger().Release(0, p.Mechanism(),
		&privacy.Values{N: []int{2}, Sum: []float64{0}, Tail: privacy.Tail{H: 7}})
	check(t, err)
	if got, want := p.radius(r, 0), math.Sqrt(math.Log(80)/4); math.Abs(got-want) > 1e-15 {
		t.Errorf("printed radius without noise %v, want %v", got, want)
	}
}

func BenchmarkBatchSE(b *testing.B) {
	tail := privacy.Tail{H: 1}
	v := &privacy.Values{N: make([]int, 10), Sum: make([]float64, 10), Tail: tail}
	for a := range v.N {
		v.N[a], v.Sum[a] = 1000, 500
	}
	p, err := NewBatchSE(10, privacy.Pure{Epsilon: 1}, 0.1, 2)
	if err != nil {
		b.Fatal(err)
	}
	r, err := privacy.NewLedger().Release(0, p.Mechanism(), v)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.b, p.rounds = 8, 1
		p.Next(r)
	}
}
