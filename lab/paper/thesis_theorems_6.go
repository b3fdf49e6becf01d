package paper

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/noise"
)

// A release is the law of a mechanism's output in a game with a fixed target, without and with it,
// for outputs that can be listed.
type release struct{ out, in []float64 }

// convolved is the law of the sum of n bits that are 1 with probability p.
func convolved(n int, p float64) []float64 {
	law := []float64{1}
	for range n {
		next := make([]float64, len(law)+1)
		for s, m := range law {
			next[s] += m * (1 - p)
			next[s+1] += m * p
		}
		law = next
	}
	return law
}

// meanOfBits is the mean of n points of independent Bernoulli columns, where one point is the
// target or none is.
func meanOfBits(n int, p []float64, target []int) release {
	r := release{[]float64{1}, []float64{1}}
	for j := range p {
		fresh, others := convolved(n, p[j]), convolved(n-1, p[j])
		shifted := make([]float64, n+1)
		copy(shifted[target[j]:], others)
		var out, in []float64
		for i := range r.out {
			for s := range fresh {
				out, in = append(out, r.out[i]*fresh[s]), append(in, r.in[i]*shifted[s])
			}
		}
		r = release{out, in}
	}
	return r
}

// power is the largest probability of "in" under "in" of the tests that say so above a
// threshold of the likelihood ratio, with at most alpha under "out". Tossed tests also toss a
// coin at the threshold.
func (r release) power(alpha float64, tossed bool) float64 {
	order := make([]int, len(r.out))
	for i := range order {
		order[i] = i
	}
	// Products, since a quotient may be 0/0; outputs that cannot be come first and cost nothing.
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := r.in[a]*r.out[b], r.in[b]*r.out[a]
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	sameRatio := func(a, b int) bool {
		return math.Abs(r.in[a]*r.out[b]-r.in[b]*r.out[a]) <=
			1e-15*(r.in[a]+r.out[a])*(r.in[b]+r.out[b])
	}
	false1, true1 := 0.0, 0.0
	for i := 0; i < len(order); {
		f, t := 0.0, 0.0
		j := i
		for ; j < len(order) && sameRatio(order[j], order[i]); j++ {
			f, t = f+r.out[order[j]], t+r.in[order[j]]
		}
		if false1+f > alpha*(1+1e-12) {
			if tossed && f > 0 {
				true1 += t * (alpha - false1) / f
			}
			break
		}
		false1, true1, i = false1+f, true1+t, j
	}
	return true1
}

// tests calls f with the errors of every test of the release: its false alarms and its power.
func (r release) tests(f func(alpha, power float64)) {
	for set := range 1 << len(r.out) {
		a, p := 0.0, 0.0
		for i := range r.out {
			if set>>i&1 == 1 {
				a, p = a+r.out[i], p+r.in[i]
			}
		}
		f(a, p)
	}
}

// variation is the total variation of the two laws, and bayes the advantage of the test that says
// "in" where that is likelier.
func (r release) variation() (variation, bayes float64) {
	for i := range r.out {
		variation += math.Abs(r.in[i]-r.out[i]) / 2
		if r.in[i] > r.out[i] {
			bayes += r.in[i] - r.out[i]
		}
	}
	return variation, bayes
}

// farFrom is the Kolmogorov distance of a sample from N(mean, variance).
func farFrom(sample []float64, mean, variance float64) float64 {
	x := slices.Sorted(slices.Values(sample))
	n, d := float64(len(x)), 0.0
	for i, v := range x {
		p := normalTail((mean - v) / math.Sqrt(variance))
		d = max(d, p-float64(i)/n, float64(i+1)/n-p)
	}
	return d
}

// histogram is the density of a sample in bins as a line.
func histogram(label string, sample []float64, lo, hi float64, bins int) report.Series {
	s := report.Series{Label: label}
	width := (hi - lo) / float64(bins)
	counts := make([]float64, bins)
	for _, v := range sample {
		if i := int((v - lo) / width); v >= lo && i < bins {
			counts[i]++
		}
	}
	for i, c := range counts {
		s.X, s.Mean = append(s.X, lo+(float64(i)+0.5)*width), append(s.Mean, c/float64(len(sample))/width)
	}
	return s
}

func normalLine(label string, mean, variance, lo, hi float64) report.Series {
	s := report.Series{Label: label}
	for i := range 81 {
		x := lo + (hi-lo)*float64(i)/80
		s.X, s.Mean = append(s.X, x), append(s.Mean,
			math.Exp(-(x-mean)*(x-mean)/(2*variance))/math.Sqrt(2*math.Pi*variance))
	}
	return s
}

// nearNormal is how far, in Kolmogorov distance, the law of a score may be from its limit. It is
// ours, and that of powers on the page of Figure 6.2.
const nearNormal = tolerance

// scored are the distances of scores from their laws without the target and with it, m*, and the
// games of either side.
type scored struct {
	Apart   [2]float64
	Leakage float64
	Games   [2]float64
}

// scores62 are the scores of games in the setting of Figure 6.2 and their distances from the limits
// of Theorems 6.3 and 6.5.
func scores62(ctx context.Context, n *Numbers, points, games int) {
	params, easy, medium, hard := targets62(points, n.seed(62))
	data := audit.Bernoulli{P: params}
	variance := data.Variance()
	gamma := slices.Repeat([]float64{1}, len(params))
	for _, c := range []struct {
		name          string
		target, noise []float64
	}{{"easy", easy, nil}, {"medium", medium, nil}, {"hard", hard, nil}, {"medium, noise 1", medium, gamma}} {
		m := need(audit.Leakage(points, c.target, params, variance, c.noise))
		g := audit.Game{Data: data, Mean: audit.Mean{N: points, Noise: c.noise}, Target: c.target,
			Games: games, Key: noise.Key{Seed: n.seed(21063), Experiment: c.name},
			Attacks: []audit.Attack{audit.Asymptotic{Mu: params, Var: variance, Noise: c.noise, Rows: points}}}
		s := need(g.Play(ctx))
		n.set("scores "+c.name, scored{
			[2]float64{farFrom(s[0].Out, -m/2, m), farFrom(s[0].In, m/2, m)}, m,
			[2]float64{float64(len(s[0].Out)), float64(len(s[0].In))}})
		lo, hi := -m/2-4*math.Sqrt(m), m/2+4*math.Sqrt(m)
		n.Figures = append(n.Figures, report.Figure{
			ID:       report.Stem("thesis-6.1-" + c.name),
			Title:    "Scores of the attack, " + c.name + " target",
			Subtitle: fmt.Sprintf("n = %d, d = %d, m* = %.2f", points, len(params), m),
			XLabel:   "score", YLabel: "density", Series: []report.Series{
				histogram("games without the target", s[0].Out, lo, hi, 40),
				normalLine("N(−m*/2, m*)", -m/2, m, lo, hi),
				histogram("games with it", s[0].In, lo, hi, 40), normalLine("N(m*/2, m*)", m/2, m, lo, hi),
			},
		})
	}
}

// kolmogorov is the half width of a band for a distribution function: Dvoretzky, Kiefer,
// Wolfowitz and Massart.
func kolmogorov(n float64, cells int) float64 {
	return math.Sqrt(math.Log(2/(1-level(cells))) / (2 * n))
}

func theoremsOfChapter6() Figure {
	return Figure{
		ID: "thesis-6.1", Source: "000", Where: "Theorem 6.1, §6.3, Theorem 6.3, §6.4, and " +
			"Figure 6.2, §6.6", Title: "Optimal adversaries, and the laws of their scores",
		About: "All tests of a mean of a few points of Bernoulli columns, listed; and the scores " +
			"of games in the setting of Figure 6.2 as histograms against the normal laws of " +
			"Theorems 6.3 and 6.5. " +
			"Our text of the figure has its caption and no picture: that these laws are what its " +
			"dotted lines come from is our reading.",
		Chosen: "Listed means have n = 2 and 3 points and up to two columns, at parameters 0.1 " +
			"to 0.9 and all targets. Scores: n and d, law and targets of Figure 6.2 as on its " +
			"page, 40 000 games a target (quick: n = 100, 10 000 games).",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			points, games := p.size(1000, 100), p.size(40_000, 10_000)
			n.Runs = games
			// By how much another test is ahead, of the plain and of the tossed ratio test; and
			// of the advantage.
			plain, tossed, bayes, apart := sharpest{}, sharpest{}, sharpest{}, sharpest{}
			grid := []float64{0.1, 0.3, 0.5, 0.7, 0.9}
			for _, size := range []int{2, 3} {
				for _, a := range grid {
					for _, b := range append([]float64{0}, grid...) {
						for target := range 4 {
							params, z := []float64{a}, []int{target & 1}
							if b > 0 && size == 2 {
								params, z = append(params, b), append(z, target>>1)
							}
							r := meanOfBits(size, params, z)
							variation, advantage := r.variation()
							apart.take(math.Abs(variation-advantage), a)
							r.tests(func(alpha, power float64) {
								bayes.take(power-alpha-variation, a)
								plain.take(power-r.power(alpha, false), alpha, float64(size), a)
								tossed.take(power-r.power(alpha, true), alpha, float64(size), a)
							})
						}
					}
				}
			}
			n.Values["plain"], n.Values["tossed"], n.Values["bayes"], n.Values["variation"] = plain.numbers(),
				tossed.numbers(), bayes.numbers(), apart.numbers()
			scores62(ctx, n, points, games)
		},
		Claims: []Claim{
			{
				ID: "most-power", Text: "At every significance no score has more power than the " +
					"likelihood ratio, each with a threshold.", Where: "Theorem 6.1 (a) in §6.3",
				Statistic: "The power of a test of the mean of two or three points less that of " +
					"the best threshold of the ratio at its significance, exact, largest over " +
					"all tests; holds if at most 0",
				Decide: largest("plain", 1e-12, "at significance %.3g, n = %.0f, p = %v"),
				Weaker: largest("tossed", 1e-12, "with a coin at the threshold"),
				Why: "The lemma of Neyman and Pearson lets the test toss a coin at its " +
					"threshold; Pow_n in §6.2.2 does not, and the score of a Bernoulli mean has " +
					"atoms. The mean of two points of one column, p = 0.3, target 1: sums 0, 1, " +
					"2 have probabilities 0.49, 0.42, 0.09 without the target and 0, 0.7, 0.3 with it; " +
					"the ratio is largest at 2. At significance 0.42 its only threshold says " +
					"\"in\" at 2 and has power 0.3; the score that says so at 1 has 0.7. With a " +
					"coin, at significances that thresholds attain, and for outputs with a " +
					"density, the statement is true; so it is in the limit of Theorem 6.3.",
				Reader: "The likelihood ratio is the best test if it may toss a coin at its " +
					"threshold, or at significances that it attains. Nothing later rests on it.",
			},
			{
				ID: "bayes", Text: "No adversary has a larger advantage than the likelihood " +
					"ratio at threshold 0.", Where: "Theorem 6.1 (b) in §6.3",
				Statistic: "The advantage of a test less that of the ratio at 0, exact, largest " +
					"over all tests; holds if 0",
				Decide: judged("bayes", func(most float64) (float64, bool, string) {
					return most, math.Abs(most) <= 1e-12, "the largest is attained"
				}), Why: theoremWhy,
			},
			{
				ID: "variation", Text: "That advantage is the total variation of the two laws.",
				Where:     "Theorem 6.1 (c), (6.1), in §6.3",
				Statistic: "Their largest difference, exact; holds if 0",
				Decide: largest("variation", 1e-12, "for the mean of two points at p = 0.3 and "+
					"target 1 it is 0.49"), Why: theoremWhy,
			},
			{
				ID: "histograms", Text: "In the setting of Figure 6.2 scores are N(−m*/2, m*) " +
					"without the target and N(m*/2, m*) with it, and so with noise.",
				Where: "Theorem 6.3 in §6.4, Theorem 6.5 in §6.5.1, and Figure 6.2 in §6.6",
				Statistic: fmt.Sprintf("The Kolmogorov distance of scores in games from the law, "+
					"three targets and one with noise, both sides; holds if all are below %v, "+
					"which is ours", nearNormal),
				Decide: func(e *Evidence) Finding {
					var parts []Finding
					for _, name := range []string{"easy", "medium", "hard", "medium, noise 1"} {
						s := named[scored](e, "scores "+name)
						for side, d := range s.Apart {
							half := kolmogorov(s.Games[side], 8)
							parts = append(parts, Below(d, d-half, d+half, nearNormal,
								int(s.Games[0]+s.Games[1]),
								fmt.Sprintf("%s target, m* = %.2f", name, s.Leakage)))
						}
					}
					return Every(parts)
				},
			},
		},
	}
}
