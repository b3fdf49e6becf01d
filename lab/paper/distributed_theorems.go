package paper

import (
	"context"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// skellamLaw has log P(Sk(0, variance) = k) for k from 0 to most, by backward recursion of ratios
// of Bessel functions, which is exact up to rounding for all k.
func skellamLaw(variance float64, most int) []float64 {
	r := 0.0
	log := make([]float64, most+1)
	for k := most + 64; k > 0; k-- {
		r = 1 / (2*float64(k)/variance + r)
		if k <= most {
			log[k] = math.Log(r)
		}
	}
	sum := 1.0
	for k := 1; k <= most; k++ {
		log[k] += log[k-1]
		sum += 2 * math.Exp(log[k])
	}
	for k := range log {
		log[k] -= math.Log(sum)
	}
	return log
}

// renyi is D_α of a symmetric law on the integers, given by its logarithms from 0 on, from
// itself moved by g.
func renyi(log []float64, g int, alpha float64) float64 {
	at := func(k int) float64 {
		if k < 0 {
			k = -k
		}
		return log[k]
	}
	most := math.Inf(-1)
	var terms []float64
	for k := g - len(log) + 1; k < len(log); k++ {
		x := alpha*at(k-g) + (1-alpha)*at(k)
		terms, most = append(terms, x), max(most, x)
	}
	sum := 0.0
	for _, x := range terms {
		sum += math.Exp(x - most)
	}
	return (most + math.Log(sum)) / (alpha - 1)
}

// sumOf is the law of the sum of n draws from one on −most to most, cut to the same values. n is a
// power of two.
func sumOf(law []float64, n int) []float64 {
	most := len(law) / 2
	for ; n > 1; n /= 2 {
		next := make([]float64, len(law))
		for i := range next {
			for j := max(0, i-most); j <= min(2*most, i+most); j++ {
				next[i] += law[j] * law[i-j+most]
			}
		}
		law = next
	}
	return law
}

// gaussianSumLaw has log P(ΣX_i = k), k ≥ 0, of n discrete Gaussians of a variance each, n a power
// of two. Supports end at ±most.
func gaussianSumLaw(variance float64, n, most int) []float64 {
	law := make([]float64, 2*most+1)
	sum := 0.0
	for i := range law {
		x := float64(i - most)
		law[i] = math.Exp(-x * x / (2 * variance))
		sum += law[i]
	}
	for i := range law {
		law[i] /= sum
	}
	law = sumOf(law, n)
	log := make([]float64, most+1)
	for k := range log {
		log[k] = math.Log(law[most+k])
	}
	return log
}

// polyaSum is the largest relative distance of the law of n differences of Pólya(1/n, e^{−1/b})
// from Lap_Z(b), for values up to 12b. n is a power of two.
func polyaSum(b float64, n int) float64 {
	beta, r := math.Exp(-1/b), 1/float64(n)
	most := int(40*b) + 40
	polya := make([]float64, most+1)
	polya[0] = math.Pow(1-beta, r)
	for x := 1; x <= most; x++ {
		polya[x] = polya[x-1] * beta * (float64(x-1) + r) / float64(x)
	}
	law := make([]float64, 2*most+1)
	for i := range law {
		for x := max(0, i-most); x <= min(most, i); x++ { // the difference is i − most
			law[i] += polya[x] * polya[x-(i-most)]
		}
	}
	law = sumOf(law, n)
	apart := 0.0
	for k := range int(12 * b) {
		want := (1 - beta) / (1 + beta) * math.Pow(beta, float64(k))
		apart = max(apart, math.Abs(law[most+k]/want-1))
	}
	return apart
}

// wrapped is the largest log-ratio of the laws of (x + Lap_Z(b)) mod m for two sums x that are g
// apart, from an exact sum over what is wrapped around.
func wrapped(g, m int, b float64) float64 {
	law := func(y int) float64 { // its logarithm, up to a constant
		y = ((y % m) + m) % m
		near, far := float64(min(y, m-y))/b, float64(max(y, m-y))/b
		return math.Log1p(math.Exp(near-far)) - near
	}
	most := 0.0
	for y := range m {
		most = max(most, math.Abs(law(y)-law(y-g)))
	}
	return most
}

// skellamCurve is ε̂(α) of [Chowdhury and Zhou 2023, Theorem 2] for batches of n users, by the
// derivation in Appendix E: Lemma 3 with g = sε√n and a total variance of g²/ε².
func skellamCurve(epsilon, s, alpha float64, n int) float64 {
	root := math.Sqrt(float64(n))
	return alpha*epsilon*epsilon/2 + min((2*alpha-1)*epsilon*epsilon/(4*s*s*float64(n))+
		3*epsilon/(2*s*s*s*root*root*root), 3*epsilon/(2*s*root))
}

// gaussianCurve is ε̂ of [Chowdhury and Zhou 2023, Theorem 4].
func gaussianCurve(epsilon, s float64, horizon int) float64 {
	xi := 0.0
	for k := 1; k < horizon/2; k++ {
		xi += 10 * math.Exp(-2*math.Pi*math.Pi*s*s*float64(k)/float64(k+1))
	}
	return min(math.Sqrt(epsilon*epsilon+xi/2), epsilon+xi)
}

// messages are the mechanisms of the theorems, at ε = 1 and 32 users.
var messages = []struct {
	name  string // of the audit
	trust privacy.Trust
	noise privacy.NoiseName
	delta float64
	s     float64
}{
	{"secure aggregation, Pólya", privacy.TrustSecAgg, privacy.NoisePolya, 0, 1},
	{"secure aggregation, Skellam", privacy.TrustSecAgg, privacy.NoiseSkellam, 0.05, 1},
	{"secure aggregation, Gaussian", privacy.TrustSecAgg, privacy.NoiseGaussian, 0.05, 1},
	{"central, Laplace", privacy.TrustCentral, privacy.NoiseLaplace, 0, 1},
	{"local, Laplace", privacy.TrustLocal, privacy.NoiseLaplace, 0, 1},
}

// attackMessage attacks one of messages, or its twin with half the noise.
func attackMessage(ctx context.Context, seed uint64, i, users, games int, half bool) (foundEpsilon, error) {
	c := messages[i]
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: c.trust, Noise: c.noise, Epsilon: 1,
		S: c.s, Users: users, Invited: users, P: 1e-6})
	if err != nil {
		return foundEpsilon{}, err
	}
	d, err := audit.MessageSubject(m, half)
	if err != nil {
		return foundEpsilon{}, err
	}
	claim := m.Loss().Pure()
	if c.delta > 0 {
		claim = m.Loss().Approx(c.delta)
	}
	d.Delta, d.Gamma, d.Games, d.Pilot, d.Key = c.delta, auditGamma, games, max(128, games/64),
		noise.Key{Seed: seed, Experiment: "theorem", Cell: c.name}
	f, err := d.Run(ctx)
	return foundEpsilon{f.Low, f.Estimate, claim, float64(f.Games)}, err
}

// Numbers of [Chowdhury and Zhou 2023]: what unionOf003 gives with each radius over 3p, and
// the ends of ratios.
type (
	failures003 struct{ Printed, Mended float64 }
	ratioRange  struct{ Least, Most float64 }
)

// unionOf003 is the failure probability, over p, that a union bound over arms and batches gives
// Lemma 2 with Assumption 1 as it is stated, if the radius has log(4|Φ|b²/p) in the term of the
// rewards and log(inside·|Φ|b²/p) in those of the noise.
func unionOf003(inside float64) float64 {
	batches := math.Pi * math.Pi / 6 // Σ 1/b²
	return batches/2 + 2*batches*2/inside
}

func computeDistributed(ctx context.Context, p Preset, n *Numbers) {
	n.set("lemma", failures003{unionOf003(2) / 3, unionOf003(4) / 3})
	var tail tightest
	for _, variance := range []float64{0.001, 0.01, 0.1, 1, 10, 100, 1e4} {
		law := skellamLaw(variance, int(200+20*math.Sqrt(variance)))
		for _, prob := range []float64{1, 0.5, 0.1, 0.01, 1e-4, 1e-8} {
			l := math.Log(2 / prob)
			beyond := 0.0
			for k := len(law) - 1; float64(k) > 2*math.Sqrt(variance*l)+math.Sqrt2*l; k-- {
				beyond += 2 * math.Exp(law[k])
			}
			tail.see(beyond/prob, "σ² = %v, p = %v", variance, prob)
		}
	}
	tail.put(n, "Skellam, tail over p")
	var skellam tightest
	for _, epsilon := range []float64{0.1, 1, 4} {
		for _, s := range []float64{1, 3, 10} {
			for _, users := range []int{2, 16, 256} {
				try(ctx.Err())
				g := int(math.Ceil(s * epsilon * math.Sqrt(float64(users)) * (1 - 1e-14)))
				sigma := float64(g) / epsilon
				for _, alpha := range []float64{2, 3, 8, 32} {
					law := skellamLaw(sigma*sigma, int((alpha*epsilon+16)*sigma)+40)
					skellam.see(renyi(law, g, alpha)/skellamCurve(epsilon, s, alpha, 2),
						"ε = %v, s = %v, n = %d, α = %v", epsilon, s, users, alpha)
				}
			}
		}
	}
	skellam.put(n, "Skellam, divergence over Theorem 2")
	var gaussian tightest
	for _, epsilon := range []float64{0.1, 0.5, 0.99} {
		for _, s := range []float64{1, 2} {
			limit := gaussianCurve(epsilon, s, 1_000_000)
			for _, users := range []int{2, 8, 32} {
				g := int(math.Ceil(s * epsilon * math.Sqrt(float64(users)) * (1 - 1e-14)))
				sigma := float64(g) / epsilon
				law := gaussianSumLaw(sigma*sigma/float64(users), users, int(24*sigma)+20)
				for _, alpha := range []float64{1.5, 2, 8} {
					gaussian.see(renyi(law, g, alpha)/(alpha*limit*limit/2),
						"ε = %v, s = %v, n = %d, α = %v", epsilon, s, users, alpha)
				}
			}
		}
	}
	gaussian.put(n, "Gaussian, divergence over Theorem 4")
	var shares, modular tightest
	for _, users := range []int{2, 8, 32} {
		for _, b := range []float64{0.5, 2, 10} {
			shares.see(polyaSum(b, users)/1e-9, "n = %d, scale %v", users, b)
		}
	}
	shares.put(n, "Pólya, distance from Laplace over 1e-9")
	for _, epsilon := range []float64{0.01, 0.1, 1} {
		for _, users := range []int{2, 64, 4096} {
			g := math.Ceil(epsilon * math.Sqrt(float64(users)) * (1 - 1e-14))
			tau := math.Ceil(g / epsilon * math.Log(2e6))
			modular.see(wrapped(int(g), users*int(g)+2*int(tau)+1, g/epsilon)/epsilon,
				"ε = %v, n = %d", epsilon, users)
		}
	}
	modular.put(n, "Laplace modulo m, log-ratio over ε")
	// Bits: from 2^10 to 2^30 users, ng may grow by 20·3/2 bits, and rounding may cost one.
	for _, c := range messages {
		var bits tightest
		for _, epsilon := range []float64{0.1, 1} {
			var b [2]float64
			for i, users := range []int{1 << 10, 1 << 30} {
				m := need(privacy.NewAggregated(privacy.Calibration{Trust: c.trust, Noise: c.noise,
					Epsilon: epsilon, S: c.s, Users: users, Invited: users, P: 1e-6}))
				b[i] = float64(m.Bits())
			}
			bits.see((b[1]-b[0])/31, "ε = %v: %v bits for 2¹⁰ users, %v for 2³⁰", epsilon, b[0], b[1])
		}
		bits.put(n, "bits, "+c.name)
	}
	var returning, composed tightest
	least := math.Inf(1)
	for _, batches := range []int{10, 1000, 100_000} {
		for _, delta := range []float64{1e-3, 1e-6, 1e-12} {
			// Variances of noise for (1,δ): by (14) with the Gaussian mechanism's 2
			// log(1.25/δ_i)/ε_i², and by (15) with the ρ that is (1,δ)-DP.
			l, each := math.Log(1/delta), 1/(2*math.Sqrt(2*float64(batches)*math.Log(2/delta)))
			rho := math.Pow(math.Sqrt(l+1)-math.Sqrt(l), 2) / float64(batches)
			x := 2 * math.Log(2.5*float64(batches)/delta) / (each * each) * 2 * rho / math.Log(float64(batches)/delta)
			least = min(least, x)
			returning.see(x, "B = %d, δ = %v", batches, delta)
			for _, epsilon := range []float64{0.01, 0.1, 1} {
				one := privacy.Approx{
					Epsilon: epsilon / (2 * math.Sqrt(2*float64(batches)*math.Log(2/delta))),
					Delta:   delta / (2 * float64(batches)),
				}
				all := need(privacy.Advanced(one, batches, delta/2))
				composed.see(max(all.Epsilon/epsilon, all.Delta/delta), "B = %d, δ = %v, ε = %v",
					batches, delta, epsilon)
			}
		}
	}
	composed.put(n, "returning users, composed over claimed")
	n.set("returning", ratioRange{least, returning.value})
	games := 5 * gamesOf(p)
	n.Runs = games
	for i, c := range messages {
		n.set(c.name, need(attackMessage(ctx, n.seed(21602), i, 32, games, false)))
	}
}

func distributedTheorems() Figure {
	const early, late = "1e8", "1e11"
	reads := func(c *experiment.CellResult) (k, gap, epsilon float64) {
		gap, _ = gapOf(c)
		return float64(c.Arms), gap, epsilonOfCell(c)
	}
	plain := func(c *experiment.CellResult, T, private float64) float64 {
		k, gap, _ := reads(c)
		return (k-1)*math.Log(T)/gap + k*private
	}
	pure := func(c *experiment.CellResult, T float64) float64 {
		_, _, epsilon := reads(c)
		return plain(c, T, math.Log(T)/epsilon)
	}
	concentrated := func(c *experiment.CellResult, T float64) float64 {
		_, _, epsilon := reads(c)
		return plain(c, T, math.Sqrt(math.Log(T))/epsilon)
	}
	mixed := func(c *experiment.CellResult, T float64) float64 { // s = 1
		_, _, epsilon := reads(c)
		return plain(c, T, (math.Sqrt(math.Log(T))+math.Log(T))/epsilon)
	}
	local := func(c *experiment.CellResult, T float64) float64 {
		k, gap, epsilon := reads(c)
		return (k - 1) * math.Log(T) / (gap * epsilon * epsilon)
	}
	// The arms of a cell were dropped well before the earlier horizon.
	dropped := func(c *experiment.CellResult) string {
		_, gap, _ := reads(c)
		if m := mean(c.FinalRegret); m > 0.1*gap*1e8 {
			return ""
		}
		return c.Instance + ", " + c.Row()
	}
	regret := func(id, text, where, policy, of string,
		rate func(c *experiment.CellResult, T float64) float64) Claim {
		return Claim{
			ID: id, IfHolds: NotContradicted, Text: text, Where: where,
			Statistic: "Mean regret over " + of + " at T = 10¹¹, over the same at 10⁸, for two " +
				"and ten arms and three gaps, at each ε, where arms were dropped by 10⁷: holds " +
				"if all are below 2, a threshold of ours (batches double)",
			Decide: keepsOrder(policy, early, late, 2, rate, dropped),
		}
	}
	// The exponent of 1/ε in regret, with arms far apart, where the cost of privacy is most of it.
	exponentOf := func(policy string, small, large string, from, to float64) Check {
		return func(e *Evidence) Finding {
			return each([]string{"two arms, gap-0.5", "ten arms, gap-0.5"}, func(instance string) Finding {
				a := cellAt(e, late, policy, place{instance, "epsilon=" + small})
				b := cellAt(e, late, policy, place{instance, "epsilon=" + large})
				r, lo, hi := unpaired(a.FinalRegret, b.FinalRegret, 2)
				return Between(math.Log10(r), math.Log10(max(lo, 1e-300)),
					math.Log10(hi), from, to, len(a.FinalRegret),
					fmt.Sprintf("%s, %s: %.3g times the regret", policy, instance, r))
			})
		}
	}
	bits := func(id, where, of string) Claim {
		return Claim{
			ID: id, Text: "A user sends O(log m) bits, which is logarithmic in the batch's size.",
			Where: where, IfHolds: NotContradicted,
			Statistic: "Bits of the modulus m that the theorem's n, g and τ ask for: their " +
				"growth from 2¹⁰ to 2³⁰ users over 31, which is 3/2 a doubling and one for " +
				"rounding: largest of ε = 0.1 and 1; holds if at most 1", Decide: ratios("bits, " + of),
		}
	}
	private := func(id, text, where, of string) Claim {
		return Claim{ID: id, IfHolds: NotContradicted, Text: text, Where: where,
			Decide: unfound(of), Why: auditWhy,
			Statistic: "The lower bound on ε, at 99 %, of games that guess one of 32 users' " +
				"rewards from the sum, ε = 1 (at δ = 0.05 where it is not pure): holds if not " +
				"above what the theorem's account gives. A twin with half the noise must be " +
				"found out, which a test sees to"}
	}
	return Figure{
		ID: "distributed-theorems", Source: "003", Where: "Theorems 1 to 6, §4 to §6 and " +
			"Appendices C to I", Title: "The theorems on distributed privacy",
		About: "Laws of noise and their divergences, exactly; attacks on the sums; bits; and how " +
			"the regret of Algorithm 1 grows with T and 1/ε under each trust model.",
		Chosen: "In our text formulas are partly lost; they are read by their derivations. " +
			"Algorithm 1 has p = 1/T and η = 2, and the radius that covers τ. The audits have 32 " +
			"users. ε for Rényi privacy is at order 2, with ε² in the place of ε, and ½ε² for " +
			"concentrated privacy, as in Figure 4. " +
			"Theorem 3 rests on a shuffled sum that takes about n^2.5 messages, and is checked " +
			"by its account. The regret of Lemma 2 is that of the theorems, which are cases of it.",
		Experiments: []Experiment{{early, "distributed-theorems-1e8.yaml", quickHorizon(40, 0)},
			{late, "distributed-theorems-1e11.yaml", quickHorizon(40, 0)}},
		Compute: computeDistributed,
		Show:    func(string, string) bool { return false },
		Claims: []Claim{
			{
				ID: "lemma-2", Text: "With the radius √(log(4|Φ|b²/p)/2l) + σ√log(2|Φ|b²/p)/l + " +
					"h log(2|Φ|b²/p)/l, all means are within it with probability at least 1 − 3p.",
				Where: "Lemma 2 in Appendix C",
				Statistic: "The failure probability that a union bound over arms and batches " +
					"gives with Assumption 1 as it is stated, over 3p: holds if at most 1",
				Decide: judged("lemma", func(n failures003) (float64, bool, string) {
					return n.Printed, n.Printed <= 1, fmt.Sprintf("with log(4|Φ|b²/p) in all three "+
						"terms it is %.3g", n.Mended)
				}),
				IfFails: Misprint,
				Why: "Assumption 1 has σ√log(2/p) + h log(2/p) with probability 1 − 2p; " +
					"where the proof uses it, it has log(1/p). The 2 is lost in the radius too, " +
					"which then costs 4.1p by this bound. Orders do not change; and that a bound " +
					"does not give it is no proof that it is not so.",
				Reader: "Take log(4|Φ|b²/p) in all three terms.",
			},
			{
				ID: "proposition-1", IfHolds: NotContradicted, Text: "A Skellam variable of " +
					"variance σ² is above 2σ√log(2/p) + √2 log(2/p) in size with probability at " +
					"most p.", Where: "Proposition 1 in §5",
				Statistic: "That probability, exact, over p, for σ² from 0.001 to 10⁴ and p from " +
					"1 to 10⁻⁸: holds if at most 1", Decide: ratios("Skellam, tail over p"), Why: theoremWhy,
			},
			{
				ID: "fact-1", Text: "The sum of n differences of Pólya(1/n, e^{−1/b}) variables " +
					"is Lap_Z(b).", Where: "Fact 1 in §4, for Theorem 1",
				Statistic: "The largest relative distance of the two laws, for n = 2, 8, 32 and " +
					"b = ½, 2, 10, over 10⁻⁹, a bound on rounding: holds if at most 1",
				Decide: ratios("Pólya, distance from Laplace over 1e-9"),
			},
			{
				ID: "pure", IfHolds: NotContradicted, Text: "What the server sees, a sum with " +
					"Lap_Z(g/ε) noise modulo m, is (ε,0)-DP, at the theorems' g, τ and m.",
				Where: "Theorems 1, 5 and 6, Appendices D.1 and H",
				Statistic: "The largest log-ratio of the laws of two sums that are g apart, " +
					"exact, over ε, for ε = 0.01, 0.1, 1 and n = 2, 64, 4096: holds if at most 1",
				Decide: ratios("Laplace modulo m, log-ratio over ε"), Why: theoremWhy,
			},
			private("1-private", "With Pólya noise under secure aggregation, Algorithm 1 is "+
				"(ε,0)-DP in the distributed model.", "Theorem 1 in §4", messages[0].name),
			regret("1-regret", "Its regret is O(Σ log T/Δ + K log T/ε).",
				"Theorem 1 in §4; Theorem 3 in Appendix D.2 has the same law at ε/2", "distributed",
				"Σ log T/Δ + K log T/ε", pure),
			bits("1-bits", "§4, after Theorem 1; Theorem 3 in Appendix D.2 at ε/2", messages[0].name),
			{
				ID: "2-curve", IfHolds: NotContradicted, Text: "With Skellam noise it is (α, " +
					"ε̂(α))-RDP, ε̂(α) = αε²/2 + min{(2α−1)ε²/(4s²n) + 3ε/(2s³n^{3/2}), " +
					"3ε/(2s√n)} with n = 2.", Where: "Theorem 2 in §5, and its proof in Appendix E",
				Statistic: "The Rényi divergence of the noise and itself moved by g, exact, over " +
					"ε̂(α), for ε = 0.1, 1, 4, s = 1, 3, 10, n = 2, 16, 256 and α = 2, 3, 8, 32: " +
					"holds if at most 1", Decide: ratios("Skellam, divergence over Theorem 2"), Why: theoremWhy,
			},
			private("2-private", "With Skellam noise under secure aggregation, no attack finds "+
				"more than its account at s = 1 allows.", "Theorem 2 in §5", messages[1].name),
			regret("2-regret", "Its regret is O(Σ log T/Δ + K√log T/ε + K log T/(sε)).",
				"Theorem 2 in §5", "skellam", "Σ log T/Δ + K√log T/ε + K log T/ε (s = 1)", mixed),
			bits("2-bits", "§5, after Theorem 2", messages[1].name),
			{
				ID: "3-account", Text: "With an (ε/4, 1/(2T))-relaxed secure aggregation and " +
					"noise for ε/2, Algorithm 1 is (ε,0)-DP.", Where: "Theorem 3 in Appendix D.2",
				Statistic: "2·ε/4 plus the largest log-ratio of the laws of sums with " +
					"Lap_Z(2g/ε) noise modulo m, exact, over ε: holds if at most 1",
				Decide: judged("Laplace modulo m, log-ratio over ε",
					func(most float64) (float64, bool, string) {
						x := 2*0.25 + 0.5*most
						return x, x <= 1+1e-9, "the same ratio at ε/2"
					}), IfHolds: NotContradicted, Why: theoremWhy + " Not checked: an attack on a run " +
					"of it, since a shuffled sum of the proof takes about n^2.5 messages; the " +
					"account rests on the relaxed aggregation being as private as it is assumed.",
			},
			{
				ID: "4-curve", IfHolds: NotContradicted, Text: "With discrete Gaussian noise, ε " +
					"< 1, it is ½ε̂²-CDP, ε̂ = min{√(ε² + ξ/2), ε + ξ}, ξ = 10Σ_{k<T/2} " +
					"e^{−2π²s²k/(k+1)}.", Where: "Theorem 4 in Appendix F",
				Statistic: "The Rényi divergence of a sum of n discrete Gaussians and itself " +
					"moved by g, exact, over ½αε̂² at T = 10⁶, for ε = 0.1, 0.5, 0.99, s = 1, 2, " +
					"n = 2, 8, 32 and α = 1.5, 2, 8: holds if at most 1",
				Decide: ratios("Gaussian, divergence over Theorem 4"), Why: theoremWhy,
			},
			private("4-private", "With discrete Gaussian noise under secure aggregation, no "+
				"attack finds more than its account allows.", "Theorem 4 in Appendix F", messages[2].name),
			regret("4-regret", "Its regret is O(Σ log T/Δ + K√log T/ε).", "Theorem 4 in Appendix F",
				"gaussian", "Σ log T/Δ + K√log T/ε", concentrated),
			bits("4-bits", "Theorem 4 in Appendix F", messages[2].name),
			private("5-private", "With central noise, Algorithm 1 is (ε,0)-DP in the central model.",
				"Theorem 5 in Appendix H.1", messages[3].name),
			regret("5-regret", "Its regret is O(Σ log T/Δ + K log T/ε).",
				"Theorem 5 in Appendix H.1", "central", "Σ log T/Δ + K log T/ε", pure),
			bits("5-bits", "Theorem 5 in Appendix H.1", messages[3].name),
			private("6-private", "With local noise, Algorithm 1 is (ε,0)-DP in the local model "+
				"(here: what the analyser learns of one of 32 users).", "Theorem 6 in Appendix H.2",
				messages[4].name),
			regret("6-regret", "Its regret is O(Σ log T/(ε²Δ)).", "Theorem 6 in Appendix H.2",
				"local", "Σ log T/(ε²Δ)", local),
			bits("6-bits", "Theorem 6 in Appendix H.2", messages[4].name),
			{
				ID: "table-1", Text: "The cost of privacy is of order 1/ε under the central model.",
				Where: "Table 1 in §1", IfHolds: NotContradicted,
				Statistic: "The exponent of 1/ε in mean regret from ε = 0.001 to 0.01 for arms " +
					"at gap 0.5, T = 10¹¹: holds if in 1 ± 0.35, ours (batches double)",
				Decide: exponentOf("central", "0.001", "0.01", 0.65, 1.35),
			},
			{
				ID: "table-1-distributed", Text: "So it is under the distributed model, for pure " +
					"privacy.", Where: "Table 1 in §1", IfHolds: NotContradicted,
				Statistic: "The same exponent with secure aggregation: holds if in 1 ± 0.35, ours",
				Decide:    exponentOf("distributed", "0.001", "0.01", 0.65, 1.35),
			},
			{
				ID: "table-1-rdp", Text: "And for Rényi privacy.", Where: "Table 1 in §1",
				IfHolds:   NotContradicted,
				Statistic: "The same exponent with Skellam noise: holds if in 1 ± 0.35, ours",
				Decide:    exponentOf("skellam", "0.001", "0.01", 0.65, 1.35),
			},
			{
				ID: "table-1-local", Text: "Under the local model it is of order 1/ε².",
				Where: "Table 1 in §1", IfHolds: NotContradicted,
				Statistic: "The same exponent with local noise, from ε = 0.01 to 0.1: holds if " +
					"in 2 ± 0.35, ours", Decide: exponentOf("local", "0.01", "0.1", 1.65, 2.35),
			},
			{
				ID: "returning-composes", IfHolds: NotContradicted,
				Text: "B batches of (ε/(2√(2B log(2/δ))), δ/2B)-DP are (ε,δ)-DP by advanced " +
					"composition.", Where: "Appendix I, before (14)",
				Statistic: "What advanced composition gives, over (ε,δ), for ε = 0.01, 0.1, 1, δ " +
					"from 10⁻³ to 10⁻¹² and B from 10 to 10⁵: holds if at most 1",
				Decide: ratios("returning users, composed over claimed"), Why: theoremWhy,
			},
			{
				ID: "returning", IfHolds: NotContradicted, Text: "For returning users, " +
					"accounting by Rényi privacy saves a factor of the order log(B/δ) in the " +
					"variance of noise.", Where: "Appendix I, (14) and (15)",
				Statistic: "The ratio of variances over log(B/δ), largest over smallest for ε = " +
					"1, those B and δ: holds if at most 5, a bound of ours",
				Decide: judged("returning", func(n ratioRange) (float64, bool, string) {
					return n.Most / n.Least, n.Most <= 5*n.Least, fmt.Sprintf("between %.3g and %.3g "+
						"times log(B/δ)", n.Least, n.Most)
				}),
			},
		},
	}
}
