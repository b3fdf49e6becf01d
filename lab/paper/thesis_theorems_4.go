package paper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/internal/report"
)

// responder plays the first arm, and then one by randomised response about its reward.
func responder(epsilon float64) audit.Finite {
	p := 1 / (1 + math.Exp(-epsilon))
	return audit.Finite{Arms: 2, Rounds: 2, Rewards: 2, Law: func(history []audit.Step, law []float64) {
		law[0], law[1] = 1, 0
		if len(history) == 1 {
			r := history[0].Reward
			law[r], law[1-r] = p, 1-p
		}
	}}
}

// calmer is a policy that tosses a coin instead, but for a share of the time.
func calmer(f audit.Finite, share float64) audit.Finite {
	law := f.Law
	f.Law = func(history []audit.Step, p []float64) {
		law(history, p)
		for a := range p {
			p[a] = share*p[a] + (1-share)/float64(f.Arms)
		}
	}
	return f
}

// A transport is both sides of Theorems 4.9 and 4.14 but for ε and ρ: the divergence of the plays
// under two instances of Bernoulli arms, E Σ t and E (Σ t)² + E Σ t(1 − t) under the first.
type transport struct{ kl, linear, square float64 }

func transportOf(f audit.Finite, nu, other []float64) transport {
	var x transport
	history := make([]audit.Step, f.Rounds)
	law := make([]float64, f.Arms)
	for s := range int(math.Pow(float64(f.Arms), float64(f.Rounds))) {
		sum, spread := 0.0, 0.0
		for t, rest := 0, s; t < f.Rounds; t, rest = t+1, rest/f.Arms {
			a := rest % f.Arms
			history[t].Action = a
			v := math.Abs(nu[a] - other[a])
			sum, spread = sum+v, spread+v*(1-v)
		}
		var m, m2 float64
		for rewards := range 1 << f.Rounds {
			p, p2 := 1.0, 1.0
			for t := range f.Rounds {
				f.Law(history[:t], law)
				a, r := history[t].Action, rewards>>t&1
				history[t].Reward = r
				p, p2 = p*law[a], p2*law[a]
				if r == 1 {
					p, p2 = p*nu[a], p2*other[a]
				} else {
					p, p2 = p*(1-nu[a]), p2*(1-other[a])
				}
			}
			m, m2 = m+p, m2+p2
		}
		if m > 0 {
			x.kl += m * math.Log(m/m2)
		}
		x.linear, x.square = x.linear+m*sum, x.square+m*(sum*sum+spread)
	}
	return x
}

// planned are both sides of Lemma B.1 for fixed shares of plays, Σ_j N_j |a_jᵀ G⁻¹ x| and
// Σ_j |a_jᵀ x|/‖a_j‖² with x = a_0 − a_1; and the largest ‖A_B⁻¹ x‖₁ over bases B of arms, which
// is the ρ_a(A) of package bound.
func planned(arms [][]float64, plays []float64) (left, printed, bases float64, err error) {
	d := len(arms[0])
	g := mat.NewSymDense(d, nil)
	for j, a := range arms {
		g.SymRankOne(g, plays[j], mat.NewVecDense(d, a))
	}
	x, y := mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
	x.SubVec(mat.NewVecDense(d, arms[0]), mat.NewVecDense(d, arms[1]))
	var chol mat.Cholesky
	if !chol.Factorize(g) {
		return 0, 0, 0, errors.New("paper: the arms do not span their space")
	}
	if err := chol.SolveVecTo(y, x); err != nil {
		return 0, 0, 0, err
	}
	for j, a := range arms {
		v := mat.NewVecDense(d, a)
		left += plays[j] * math.Abs(mat.Dot(v, y))
		printed += math.Abs(mat.Dot(v, x)) / mat.Dot(v, v)
	}
	for set := range 1 << len(arms) {
		var rows []float64
		for j, a := range arms {
			if set>>j&1 == 1 {
				rows = append(rows, a...)
			}
		}
		if len(rows) != d*d {
			continue
		}
		c := mat.NewVecDense(d, nil)
		if c.SolveVec(mat.NewDense(d, d, rows).T(), x) != nil {
			continue // no basis, or hardly one
		}
		bases = max(bases, mat.Norm(c, 1))
	}
	return left, printed, bases, nil
}

// twoVectors draws both sides of Lemma B.1 for two unit vectors, of which the worse is played log T
// times: lim ρ_T(H), which is 1 whatever the angle, and ρ_a.
func twoVectors() report.Figure {
	limit, printed := report.Series{Label: "lim ρ_T(H), to be bounded"},
		report.Series{Label: "ρ_a(A), as printed"}
	for degrees := 5.0; degrees <= 90; degrees += 5 {
		limit.X, limit.Mean = append(limit.X, degrees), append(limit.Mean, 1)
		printed.X, printed.Mean = append(printed.X, degrees),
			append(printed.Mean, 2*(1-math.Cos(degrees*math.Pi/180)))
	}
	return report.Figure{
		ID: "thesis-4.18", Title: "Lemma B.1 on two unit vectors", Subtitle: "the worse is played log T times",
		XLabel: "angle between them (degrees)", YLabel: "value", Series: []report.Series{limit, printed},
	}
}

// committed is the regret of a rule on two Gaussian arms of unit variance that are gap apart: it
// plays both n times, sums the signs of the differences of paired rewards, adds N(0, 2/ρ), which
// is ρ-zCDP since one reward changes one sign, and commits. At ρ = +Inf there is no noise. The
// rule sees differences only: both instances of the proof of Theorem 4.20 cost it the same.
func committed(horizon, n int, gap, rho float64) float64 {
	miss := max(normalTail(gap/math.Sqrt2), math.SmallestNonzeroFloat64) // of a sign
	wrong, whole := 0.0, 0.0
	all, _ := math.Lgamma(float64(n + 1))
	for i := range n + 1 {
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		mass := math.Exp(all - a - b + float64(i)*math.Log(1-miss) + float64(n-i)*math.Log(miss))
		tail := 0.5
		if sum := float64(2*i - n); sum != 0 {
			tail = normalTail(sum * math.Sqrt(rho/2))
		}
		wrong, whole = wrong+mass*tail, whole+mass
	}
	return gap * (float64(n) + float64(horizon-2*n)*wrong/whole)
}

// leastCommitted is the least regret of such rules over n, on the instances of the proof of
// Theorem 4.20 for this T and ρ, over the theorem's private term. Noise is the ρ of its noise.
func leastCommitted(horizon int, rho, noise float64) float64 {
	t := float64(horizon)
	beta, gamma := 2*rho*t*t, rho*t // at K = 2
	gap := 1/math.Sqrt(beta) - gamma/(2*beta)
	least := committed(horizon, 0, gap, noise)
	for n := 1; 2*n <= horizon; n *= 2 {
		least = min(least, committed(horizon, n, gap, noise))
	}
	return least / bound.ZCDPMinimax(2, rho)
}

// randomMeans are means of Bernoulli arms, the first one largest.
func randomMeans(r *rand.Rand, arms int) []float64 {
	m := make([]float64, arms)
	for a := range m {
		m[a] = 0.02 + 0.96*r.Float64()
	}
	slices.Sort(m)
	slices.Reverse(m)
	return m
}

// certified are the value of 1/T*_TV that an allocation attains and a limit that none passes, both
// times the closed form of Proposition 4.26: 1 and 1 if it is right. Nature meets an arm and the
// best one anywhere between them: ends cost least, so its moves are to lift the arm, at ω_a Δ_a, or
// to lower the best one, at ω_1 Δ_a.
func certified(means []float64) (attained, limit float64, err error) {
	closed, err := bound.TVTime(means)
	if err != nil {
		return 0, 0, err
	}
	least := means[0] - means[1]
	// The allocation, ω ∝ (1/Δ_min, 1/Δ_2, …), and the same numbers as a mixture of moves: against
	// the mixture an allocation has Σ ω_a·coefficient_a, so no more than the largest coefficient.
	first := 1 / least / closed
	attained, limit = math.Inf(1), first*least
	for _, m := range means[1:] {
		gap := means[0] - m
		share := 1 / gap / closed
		for i := range 21 {
			x := m + gap*float64(i)/20
			attained = min(attained, first*(means[0]-x)+share*(x-m))
		}
		limit = max(limit, share*gap)
	}
	return attained * closed, limit * closed, nil
}

// transports are both sides of Theorems 4.9 and 4.14 for random policies and instances, and for
// policies that answer about one reward.
func transports(ctx context.Context, n *Numbers, r *rand.Rand, policies int) {
	var view, interactive sharpest
	compare := func(f audit.Finite, pairs int) {
		e := need(audit.Enumerate(f))
		epsilon := need(e.Epsilon(audit.View, 0))
		rho := need(e.Rho(audit.Interactive))
		for i := range pairs {
			nu, other := []float64{r.Float64(), r.Float64()}, []float64{r.Float64(), r.Float64()}
			if i == 0 {
				nu, other = []float64{1, 0.5}, []float64{0, 0.5}
			}
			x := transportOf(f, nu, other)
			view.take(x.kl/(epsilon*x.linear), epsilon, x.linear)
			interactive.take(x.kl/(rho*x.square), rho, x.square)
		}
	}
	for i := range policies {
		try(ctx.Err())
		compare(calmer(randomPolicy(r, 2, 3, false), float64(1+i%4)/4), 10)
	}
	for _, epsilon := range []float64{0.01, 0.1, 0.5, 1, 2, 4, 8} {
		compare(responder(epsilon), 1)
	}
	n.Values["view"], n.Values["interactive"] = view.numbers(), interactive.numbers()
}

// Numbers of chapter 4.
type (
	// both sides of Lemma B.1 for two arms, their ratio; and of random cases the share in which
	// the left is larger, how many they are, and by how much it is at most
	lemmaSides struct{ Ratio, Above, Cases, Most float64 }
	// the least T*_TV Δ_min, and the most over K
	timeLimits struct{ Low, High float64 }
)

// lemmaB1 are both sides of Lemma B.1: in the limit of its proof for two arms 30° apart, as the
// page has it, and for random arms at random shares of plays.
func lemmaB1(n *Numbers, r *rand.Rand, cases int) {
	const few, many = 30, 1e13 // plays of a and of a*: log T and T
	above, most, bases := 0, 0.0, sharpest{}
	for range cases {
		d := 2 + r.IntN(3)
		arms, plays := make([][]float64, d+r.IntN(4)), []float64{}
		for j := range arms {
			arms[j] = make([]float64, d)
			for i := range arms[j] {
				arms[j][i] = r.NormFloat64()
			}
			plays = append(plays, math.Exp(2*r.NormFloat64()))
		}
		left, printed, ours, err := planned(arms, plays)
		try(err)
		if left > printed*(1+1e-9) {
			above++
		}
		most = max(most, left/printed)
		bases.take(left/ours, float64(len(arms)))
	}
	n.set("lemma", lemmaSides{(1 + few/many) / (2 * (1 - math.Cos(math.Pi/6))),
		float64(above) / float64(cases), float64(cases), most})
	n.Values["bases"] = bases.numbers()
}

// times are characteristic times of random instances against each other.
func times(ctx context.Context, n *Numbers, r *rand.Rand, instances int) {
	var relaxed, away, closed, pinsker sharpest
	sandwich := timeLimits{Low: math.Inf(1)}
	for i := range instances {
		try(ctx.Err())
		means := randomMeans(r, 2+i%5)
		if i == 0 {
			means = []float64{0.505, 0.495}
		}
		attained, limit := both(certified(means))
		closed.take(max(math.Abs(attained-1), math.Abs(limit-1)))
		tv := need(bound.TVTime(means))
		gap := means[0] - means[1]
		sandwich.Low = min(sandwich.Low, tv*gap)
		sandwich.High = max(sandwich.High, tv*gap/float64(len(means)))
		kl := need(bound.BernoulliTime(means, math.Inf(1)))
		pinsker.take(-tv/math.Sqrt(2*kl.Time), means[0], means[1])
		for _, epsilon := range []float64{0.001, 0.01, 0.1, 0.5, 1, 2, 10, tv / kl.Time} {
			x := need(bound.BernoulliTime(means, epsilon))
			larger := max(kl.Low, tv/epsilon)
			relaxed.take(-x.Low/larger, epsilon)
			away.take(x.Time/larger, epsilon, tv/epsilon/kl.Time)
		}
	}
	n.Values["relaxed"], n.Values["gives away"], n.Values["closed"] = relaxed.numbers(),
		away.numbers(), closed.numbers()
	n.Values["pinsker"] = pinsker.numbers()
	n.set("sandwich", sandwich)
}

func theoremsOfChapter4() Figure {
	return Figure{
		ID: "thesis-4.9", Source: "000", Where: "Theorems 4.9, 4.14, 4.18 and 4.20, Corollary " +
			"4.25 and Proposition 4.26, §4.2 to §4.4", Title: "The steps of the lower bounds, computed",
		About: "How far plays can tell two instances apart under View DP and Interactive zCDP, " +
			"for policies so small that all plays can be listed; the constant of Theorem 4.18; a " +
			"private rule on the " +
			"hardest instances of Theorem 4.20; and characteristic times against each other.",
		Chosen: "Random policies have two arms, two rewards and three rounds; instances are " +
			"Bernoulli. The rule for Theorem 4.20 sums signs and adds Gaussian noise, at K = 2: " +
			"so its regret is a sum, and no runs are needed.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			policies, instances, cases := p.size(300, 40), p.size(300, 40), p.size(20_000, 2000)
			n.Runs = policies
			r := rand.New(rand.NewPCG(n.seed(20409), 414))
			transports(ctx, n, r, policies)
			lemmaB1(n, r, cases)
			// Theorem 4.20: what its proof has to give, and a rule on its instances.
			steps, rule := sharpest{}, sharpest{}
			fig := report.Figure{
				ID: "thesis-4.20", Title: "A ρ-zCDP rule on the instances of Theorem 4.20",
				Subtitle: "two Gaussian arms; the best n of rules that commit after n plays of each",
				XLabel:   "budget ρ", YLabel: "regret over the bound", LogX: true, LogY: true,
			}
			for _, horizon := range []int{16, 256, 4096} {
				s := report.Series{Label: fmt.Sprintf("T = %d", horizon)}
				for i := range 17 {
					rho := math.Pow(10, -8+float64(i)/2)
					ratio := leastCommitted(horizon, rho, rho)
					rule.take(-ratio, float64(horizon), rho)
					s.X, s.Mean = append(s.X, rho), append(s.Mean, ratio)
					for _, arms := range []int{2, 3, 10, 100, 1000} {
						steps.take(-bound.ZCDPMinimaxSharp(arms, rho)/bound.ZCDPMinimax(arms, rho),
							float64(arms), rho)
					}
				}
				fig.Series = append(fig.Series, s)
			}
			n.Figures = []report.Figure{fig, twoVectors()}
			n.Values["steps"], n.Values["rule"] = steps.numbers(), rule.numbers()
			times(ctx, n, r, instances)
		},
		Claims: []Claim{
			{
				ID: "view", IfHolds: NotContradicted, Text: "The plays of an ε-View DP policy " +
					"under two instances diverge by at most ε E Σ TV of the arms that are played.",
				Where: "Theorem 4.9 in §4.2",
				Statistic: "The divergence over the bound at the policy's own ε, exact, largest " +
					"over random policies and pairs of instances, and policies that answer about " +
					"one reward; holds if at most 1",
				Decide: largest("view", 1+1e-9, "tightest at ε = %.3g with E Σ TV = %.3g"), Why: theoremWhy,
			},
			{
				ID: "interactive", IfHolds: NotContradicted, Text: "Those of a ρ-Interactive " +
					"zCDP policy by at most ρ E (Σ TV)² + ρ E Σ TV(1 − TV).", Where: "Theorem 4.14 in §4.2",
				Statistic: "The divergence over the bound at the policy's own ρ, exact, largest " +
					"over the same; holds if at most 1",
				Decide: largest("interactive", 1+1e-6, "tightest at ρ = %.3g, of which the "+
					"bound has %.3g"), Why: theoremWhy,
			},
			{
				ID: "lemma", Text: "The constant ρ_a(A) = Σ_j |a_jᵀ(a − a*)|/‖a_j‖² of Theorem " +
					"4.18 is as large as its proof needs it: lim ρ_T(H) ≤ ρ_a(A).",
				Where: "Lemma B.1 in Appendix B.3; Theorem 4.18 in §4.3.1",
				Statistic: "lim ρ_T(H) over ρ_a(A) for two unit vectors 30° apart, of which the " +
					"worse is played log T times; holds if at most 1",
				Decide: judged("lemma", func(n lemmaSides) (float64, bool, string) {
					return n.Ratio, n.Ratio <= 1+1e-9, fmt.Sprintf("its inequality also fails in %.0f "+
						"%% of %.0f random sets of arms and shares of plays, by up to %.3g times",
						100*n.Above, n.Cases, n.Most)
				}),
				IfFails: Refuted,
				Proof: "A counter-example of two arms. Let a and a* be unit vectors of the " +
					"plane, 30° apart: ρ_a(A) is 2(1 − cos 30°) = 0.268. Let a be played N_a = " +
					"log T times and a* the rest, N_*, as by a policy of logarithmic regret. " +
					"With A = (a, a*), " +
					"Ḡ_T⁻¹ is A⁻ᵀ diag(1/N_a, 1/N_*) A⁻¹, so H is a multiple of A⁻ᵀ diag(1, 0) " +
					"A⁻¹. For x = a − a* then Hx is orthogonal to a*, and ρ_T(H) is N_a times " +
					"the squared norm of x in Ḡ_T⁻¹, that is 1 + N_a/N_*, with the limit 1 > 0.268. " +
					"The step that fails is |a_jᵀ G⁻¹ x| ≤ |a_jᵀ (N_j a_j a_jᵀ)⁺ x| from G ⪰ N_j " +
					"a_j a_jᵀ: that is an order of quadratic forms, and this form is bilinear. " +
					"Theorem 4.18 with this constant falls too. Two arms that span the plane are " +
					"any two Gaussian arms, whatever the angle φ between them; elimination on " +
					"the signs of differences of paired rewards, with Laplace noise, is ε-View " +
					"DP, never looks at φ and has regret " +
					"O(log T) for each pair of means; the bound, 2 log T/(ε ρ_a) = log T/(ε(1 − " +
					"cos φ)) for small φ, is as large as one likes.",
				Why: "In §4.3.1 the constant is only called structure dependent, and with " +
					"another one the theorem is true: the largest ‖A_B⁻¹(a − a*)‖₁ over bases B " +
					"of arms, since (N_j a_jᵀ G⁻¹ x)_j is a mean of the A_B⁻¹ x. " +
					"For orthogonal arms both are 2 (Example B.2). The two regimes of privacy stay.",
				Reader: "Use the theorem with the largest ‖A_B⁻¹(a − a*)‖₁ over bases for ρ_a(A).",
			},
			{
				ID: "bases", Own: true, Text: "With the largest ‖A_B⁻¹(a − a*)‖₁ over bases B of " +
					"arms in place of ρ_a(A) the inequality of Lemma B.1 holds.",
				Statistic: "Σ_j N_j |a_jᵀ G⁻¹(a − a*)| over it, largest over the random sets; " +
					"holds if at most 1",
				Decide: largest("bases", 1+1e-6, "tightest for %.0f arms"),
			},
			{
				ID: "minimax", IfHolds: NotContradicted, Text: "Under ρ-Interactive zCDP some " +
					"Gaussian instance costs √((K − 1)/ρ)/124, for ρ ≤ 1.", Where: "Theorem 4.20 in §4.3.2",
				Statistic: "The least regret of rules that commit, exact, on the two instances " +
					"of the proof, over the bound, at 51 pairs (T, ρ), K = 2; holds if all are at least 1",
				Decide: smallest("rule", 1, "tightest at T = %.0f, ρ = %.2g"),
				Why: theoremWhy + " Not checked: rules on more than two arms, and rules that " +
					"do not commit; the constant is checked for up to 1000 arms (next claim).",
			},
			{
				ID: "minimax-constant", IfHolds: NotContradicted, Text: "The steps of its proof " +
					"give the constant 1/124.", Where: "Appendix B.4; Theorem 4.20 in §4.3.2",
				Statistic: "What the same steps give at the best Δ, over the theorem, smallest " +
					"over K = 2 to 1000 and ρ = 10⁻⁸ to 1; holds if at least 1",
				Decide: smallest("steps", 1, "tightest at K = %.0f, ρ = %.2g"), Why: theoremWhy,
			},
			{
				ID: "relaxed", IfHolds: NotContradicted, Text: "T*(ν; ε) is at least T*_KL and " +
					"at least T*_TV/ε.", Where: "Corollary 4.25 in §4.4",
				Statistic: "T*(ν; ε), from below, over the larger of the two, smallest over " +
					"random Bernoulli instances and ε = 0.001 to 10; holds if at least 1, up to " +
					"10⁻⁶, the gap of the certificate",
				Decide: func(e *Evidence) Finding {
					least := -named[float64](e, "relaxed")
					away := named[struct{ Times, Epsilon, Ratio float64 }](e, "gives away")
					return exact(least, least >= 1-1e-6, fmt.Sprintf("and at most %.3f times as "+
						"much, at ε = %.3g, where T*_TV/ε is %.2f T*_KL: what the corollary "+
						"gives away", away.Times, away.Epsilon, away.Ratio))
				}, Why: theoremWhy,
			},
			{
				ID: "closed-form", Text: "For Bernoulli arms T*_TV is 1/Δ_min + Σ 1/Δ_a.",
				Where: "Proposition 4.26 in §4.4",
				Statistic: "What the proof's allocation attains, and what a mixture of nature's " +
					"moves allows at most, both times the formula, farther from 1 of the two, " +
					"over random instances of two to six arms; holds if both are 1 up to rounding",
				Decide: judged("closed", func(apart float64) (float64, bool, string) {
					return 1 + apart, apart < 1e-9, "both certificates agree; for means 0.75 and 0.625 it is 16"
				}), Why: theoremWhy,
			},
			{
				ID: "sandwich", IfHolds: NotContradicted,
				Text: "It is between 1/Δ_min and K/Δ_min.", Where: "Proposition 4.26 in §4.4",
				Statistic: "T*_TV Δ_min/K, largest over the same instances, and T*_TV Δ_min, " +
					"smallest; holds if at most 1 and at least 1",
				Decide: judged("sandwich", func(n timeLimits) (float64, bool, string) {
					return n.High, n.Low >= 1 && n.High <= 1+1e-12,
						fmt.Sprintf("from above tight where all gaps are equal; from below never "+
							"under %.2f, since the best arm counts beside the second", n.Low)
				}), Why: theoremWhy,
			},
			{
				ID: "pinsker", IfHolds: NotContradicted, Text: "T*_TV is at least √(2 T*_KL).",
				Where: "comment on Proposition 4.26, §4.4",
				Statistic: "T*_TV over √(2 T*_KL), smallest over the same instances and two arms " +
					"at ½ ± 0.005; holds if at least 1, up to 10⁻⁶",
				Decide: smallest("pinsker", 1-1e-6, "tightest for best means %.3f and %.3f"),
				Why:    theoremWhy,
			},
		},
	}
}
