package paper

import (
	"context"
	"math"
	"math/rand/v2"
)

// A channel is a mechanism whose law can be listed: the probabilities of its outputs on each
// dataset of a few bits. Neighbours differ in one bit.
type channel [][]float64

// randomChannel looks at the bits of mask only. The larger spread is, the more it tells.
func randomChannel(r *rand.Rand, bits, mask, outputs int, spread float64) channel {
	c := make(channel, 1<<bits)
	for d := range c {
		if d&mask != d {
			c[d] = c[d&mask]
			continue
		}
		c[d] = make([]float64, outputs)
		total := 0.0
		for o := range c[d] {
			c[d][o] = math.Exp(spread * r.NormFloat64())
			total += c[d][o]
		}
		for o := range c[d] {
			c[d][o] /= total
		}
	}
	return c
}

// response is randomised response about the first bit: the truth with odds e^ε.
func response(bits int, epsilon float64) channel {
	c := make(channel, 1<<bits)
	p := 1 / (1 + math.Exp(-epsilon))
	for d := range c {
		c[d] = []float64{p, 1 - p}
		if d&1 == 1 {
			c[d] = []float64{1 - p, p}
		}
	}
	return c
}

// beside is both channels on the same dataset, with coins of their own.
func (c channel) beside(other channel) channel {
	out := make(channel, len(c))
	for d := range c {
		for _, p := range c[d] {
			for _, q := range other[d] {
				out[d] = append(out[d], p*q)
			}
		}
	}
	return out
}

// then is the channel with its output put through kernel: a random function of it, as
// on the dataset d.
func (c channel) then(kernel func(d, output int) []float64) channel {
	out := make(channel, len(c))
	for d := range c {
		for o, p := range c[d] {
			k := kernel(d, o)
			if out[d] == nil {
				out[d] = make([]float64, len(k))
			}
			for i, q := range k {
				out[d][i] += p * q
			}
		}
	}
	return out
}

// neighbours calls f for the laws on each ordered pair of neighbours.
func (c channel) neighbours(f func(p, q []float64)) {
	for d := range c {
		for bit := 1; bit < len(c); bit <<= 1 {
			f(c[d], c[d^bit])
		}
	}
}

// delta is the least δ at which the channel is (ε,δ)-DP.
func (c channel) delta(epsilon float64) float64 {
	worst, e := 0.0, math.Exp(epsilon)
	c.neighbours(func(p, q []float64) {
		sum := 0.0
		for i := range p {
			sum += max(0, p[i]-e*q[i])
		}
		worst = max(worst, sum)
	})
	return worst
}

// pure is the least ε at which the channel is ε-DP.
func (c channel) pure() float64 {
	worst := 0.0
	c.neighbours(func(p, q []float64) {
		for i := range p {
			worst = max(worst, math.Log(p[i]/q[i]))
		}
	})
	return worst
}

// zcdp is the largest D_α/α over neighbours and a grid of orders, the limit α → 1 included: the
// least ρ at which the channel is ρ-zCDP, on that grid.
func (c channel) zcdp() float64 {
	worst := 0.0
	c.neighbours(func(p, q []float64) {
		loss, most, kl := make([]float64, len(p)), math.Inf(-1), 0.0
		for i := range p {
			loss[i] = math.Log(p[i] / q[i])
			most, kl = max(most, loss[i]), kl+p[i]*loss[i]
		}
		worst = max(worst, kl)
		for alpha := 1.05; alpha < 200; alpha *= 1.5 {
			sum := 0.0
			for i := range p {
				sum += p[i] * math.Exp((alpha-1)*(loss[i]-most))
			}
			worst = max(worst, (math.Log(sum)/(alpha-1)+most)/alpha)
		}
	})
	return worst
}

// epsilons2 are those at which δ is compared.
func epsilons2() []float64 { return []float64{0, 0.05, 0.2, 0.5, 1, 2} }

// moreAfter is how many times as much the second channel tells as the first: the largest ratio of δ
// over ε, of ε and of ρ.
func moreAfter(before, after channel) float64 {
	worst := max(after.pure()/before.pure(), after.zcdp()/before.zcdp())
	for _, epsilon := range epsilons2() {
		if d := before.delta(epsilon); d > 1e-9 {
			worst = max(worst, after.delta(epsilon)/d)
		}
	}
	return worst
}

// apartFromParts is how far the privacy of a channel is from that of the worst of its parts: of δ
// over ε, of ε and of ρ.
func apartFromParts(whole channel, parts []channel) float64 {
	largest := func(of func(c channel) float64) float64 {
		worst := 0.0
		for _, c := range parts {
			worst = max(worst, of(c))
		}
		return math.Abs(of(whole) - worst)
	}
	worst := max(largest(channel.pure), largest(channel.zcdp))
	for _, epsilon := range epsilons2() {
		worst = max(worst, largest(func(c channel) float64 { return c.delta(epsilon) }))
	}
	return worst
}

// responsesDelta is the least δ at ε of k randomised responses of ε₀ about the same bit.
func responsesDelta(k int, epsilon0, epsilon float64) float64 {
	p := 1 / (1 + math.Exp(-epsilon0))
	n, _ := math.Lgamma(float64(k + 1))
	sum := 0.0
	for j := k; 2*j > k; j-- {
		a, _ := math.Lgamma(float64(j + 1))
		b, _ := math.Lgamma(float64(k - j + 1))
		loss := float64(2*j-k) * epsilon0
		if loss <= epsilon {
			break
		}
		mass := math.Exp(n - a - b + float64(j)*math.Log(p) + float64(k-j)*math.Log1p(-p))
		sum += mass * -math.Expm1(epsilon-loss)
	}
	return sum
}

func theoremsOfChapter2() Figure {
	return Figure{
		ID: "thesis-2.7", Source: "000", Where: "Propositions 2.7 and 2.9, Lemma 2.10, §2.1.3",
		Title: "Post-processing and composition, by listing all outputs",
		About: "Mechanisms on datasets of two to four bits, with so few outputs that δ at every " +
			"ε, ε and ρ are sums: before and after a random function, together on the same data, " +
			"and each on data of its own. " +
			"Our text of Lemma 2.10 has ρ_i in its assumption and ρ in its conclusion; Appendix " +
			"C.1.1 has one ρ for all, which is how it is read.",
		Chosen: "Laws are log-normal weights; how much they tell is drawn too. Orders α of zCDP " +
			"are a grid from 1 to 200, and ε for δ are 0 to 2.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			trials := p.size(2000, 150)
			n.Runs = trials
			r := rand.New(rand.NewPCG(n.seed(20207), 210))
			var post, simple, parallel sharpest
			for range trials {
				try(ctx.Err())
				c := randomChannel(r, 2, 3, 5, r.Float64()*2)
				kernel := make([][]float64, 5)
				for o := range kernel {
					kernel[o] = randomChannel(r, 0, 0, 3, 3*r.Float64())[0]
				}
				post.take(moreAfter(c, c.then(func(_, o int) []float64 { return kernel[o] })), c.pure())
				// Two mechanisms on the same three bits.
				a, b := randomChannel(r, 3, 7, 3, r.Float64()), randomChannel(r, 3, 7, 4, r.Float64())
				both, ea, eb := a.beside(b), r.Float64(), r.Float64()
				if da, db := a.delta(ea), b.delta(eb); da+db > 0 {
					simple.take(both.delta(ea+eb)/(da+db), ea, eb)
				}
				simple.take(both.pure()/(a.pure()+b.pure()), a.pure(), b.pure())
				simple.take(both.zcdp()/(a.zcdp()+b.zcdp()), a.pure(), b.pure())
				// Two mechanisms on two bits each.
				a, b = randomChannel(r, 4, 3, 3, r.Float64()), randomChannel(r, 4, 12, 3, r.Float64())
				parallel.take(apartFromParts(a.beside(b), []channel{a, b}))
			}
			n.Values["post"], n.Values["simple"], n.Values["parallel"] = post.numbers(),
				simple.numbers(), parallel.numbers()
			// What composition costs at most: k randomised responses about one bit.
			attained := math.Inf(1)
			for _, epsilon := range []float64{0.1, 1, 3} {
				one, all := response(1, epsilon), response(1, epsilon)
				for k := 2; k <= 5; k++ {
					all = all.beside(one)
					attained = min(attained, all.pure()/(float64(k)*epsilon))
				}
			}
			n.set("attained", attained)
			var advanced sharpest
			for _, k := range []int{1, 2, 5, 10, 30, 100, 300, 1000} {
				for _, epsilon := range []float64{0.003, 0.01, 0.03, 0.1, 0.3, 1} {
					for _, slack := range []float64{1e-9, 1e-6, 1e-3, 0.1} {
						t := math.Sqrt(2*float64(k)*math.Log(1/slack))*epsilon +
							float64(k)*epsilon*math.Expm1(epsilon)
						advanced.take(responsesDelta(k, epsilon, t)/slack, float64(k), epsilon, slack)
					}
				}
			}
			n.Values["advanced"] = advanced.numbers()
		},
		Claims: []Claim{
			{
				ID: "post-processing", IfHolds: NotContradicted, Text: "A random function of a " +
					"mechanism's output is as private as the mechanism: (ε,δ)-DP and ρ-zCDP.",
				Where: "Proposition 2.7 in §2.1.3",
				Statistic: "δ at six ε, ε and ρ after the function over those before it, the " +
					"largest ratio over random mechanisms and functions; holds if at most 1",
				Decide: largest("post", 1+1e-12, "tightest for a mechanism of ε = %.2f and a "+
					"function that forgets little"), Why: theoremWhy,
			},
			{
				ID: "simple", IfHolds: NotContradicted, Text: "Mechanisms on the same data are " +
					"together (Σε, Σδ)-DP and Σρ-zCDP.", Where: "Proposition 2.9 in §2.1.3",
				Statistic: "δ at ε₁ + ε₂ over δ₁ + δ₂, ε over ε₁ + ε₂ and ρ over ρ₁ + ρ₂ of two " +
					"random mechanisms, exact; holds if all are at most 1",
				Decide: largest("simple", 1+1e-12, "tightest at ε = %.3f and %.3f"), Why: theoremWhy,
			},
			{
				ID: "simple-attained", Own: true, Text: "Nothing less than the sum will do for " +
					"pure DP: k randomised responses about one bit have kε.",
				Statistic: "ε of k = 2 to 5 responses over kε, smallest; holds if 1",
				Decide: judged("attained", func(least float64) (float64, bool, string) {
					return least, math.Abs(least-1) < 1e-12, "at ε = 0.1, 1 and 3"
				}),
			},
			{
				ID: "advanced", IfHolds: NotContradicted, Text: "k times an ε-DP mechanism is " +
					"(√(2k log(1/δ′)) ε + kε(e^ε − 1), δ′)-DP.", Where: "comment on Proposition 2.9, §2.1.3",
				Statistic: "δ of k randomised responses at that ε, exact, over δ′, largest over " +
					"192 triples (k, ε, δ′); holds if at most 1",
				Decide: largest("advanced", 1, "tightest at k = %.0f, ε = %v, δ′ = %v"), Why: theoremWhy,
			},
			{
				ID: "parallel", Text: "Mechanisms on parts of the data that do not overlap are " +
					"together as private as one of them.", Where: "Lemma 2.10 in §2.1.3; proof " +
					"in Appendix C.1.1",
				Statistic: "δ at six ε, ε and ρ of two random mechanisms together, less those of " +
					"the worse of the two, largest absolute difference; holds if 0 up to rounding",
				Decide: judged("parallel", func(apart float64) (float64, bool, string) {
					return apart, apart < 1e-12, "equal: the other part's output has the same law " +
						"on both neighbours"
				}), Why: theoremWhy,
			},
		},
	}
}
