package paper

import (
	"fmt"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/lab/experiment"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The names of rules in the settings of [Azize et al. 2023] and of [Azize 2024, §5.5.3]: those of
// the program that was published with [Azize et al. 2023], and those that are as they are written.
const (
	adaptt       = "AdaP-TT" // with the stopping times that it reports
	adapttPlays  = "AdaP-TT, all plays"
	dpse         = "DP-SE"
	ttucb        = "TTUCB"
	adapttProved = "AdaP-TT proved"
	adapttStar   = "AdaP-TT* proved"
	dpseOf002    = "DP-SE of 002"
	ttucbProved  = "TTUCB proved"
)

const (
	programWhy = "What is said of the figures comes out with the program that was published with " +
		"[Azize et al. 2023] (this page's other claims), and not with the threshold of the " +
		"theorem: that has a " +
		"union bound over phases and arms, and " +
		"twice the main term. DP-TT (figure57.yaml) is proved too, and takes fewer plays than either."
	regimeWhy = "Phases double, so that stopping times come in steps, and private means fall " +
		"into the same phase over a range of budgets."
	// RegimeBoundary of the two instances.
	boundaryWhy = " By the lower bounds the regimes meet at ε = 0.21 on the first instance and " +
		"at 0.07 on the second, not at 0.1 and 0.4."
	starWhy = "No program of AdaP-TT* is published, and [Azize et al. 2023]'s program has another threshold " +
		"than the theorem, so that we cannot know with which one the thesis has played: the " +
		"threshold is the one that is proved, (5.14). AdaP-TT* judges a pair of arms by one of two " +
		"thresholds, by how its gap compares with 3ε: where 3ε lies between the gaps of an " +
		"instance, different arms are judged by different ones, and it stops late."
	starReader = "Ask for the program before building on the curves of AdaP-TT*; the theorem " +
		"about it is another matter, and stands."
	correctBy = "Wrong answers of AdaP-TT and of DP-SE, each over all its cells, " +
		"Clopper–Pearson: holds if at most δ = 0.01."
	chosenBAI = "Rules without a note are those of the program that was published with [Azize et " +
		"al. 2023], and " +
		"AdaP-TT has the stopping time that it reports, as in the figure; \"all plays\" counts what it plays."
)

func identification() []Figure {
	high := func(p place) bool { return epsilonOf(p) < 0.2 }
	low := func(p place) bool { return epsilonOf(p) > 0.2 }
	claims004 := func(name string, more ...Claim) []Claim {
		return append(more, []Claim{
			{ID: "high-fewer", Text: "In the high-privacy regime AdaP-TT outperforms DP-SE in " +
				"all the instances tested.", Where: "§5",
				Statistic: "Mean stopping time of AdaP-TT over that of DP-SE, paired, at each ε " +
					"below 0.2: holds if below 1.", Decide: overSome(name, adaptt, dpse, below(1), high)},
			{ID: "low-similar", Text: "In the low-privacy regime both have similar performance.", Where: "§5",
				Statistic: "Mean stopping time of AdaP-TT over that of DP-SE, paired, at each ε " +
					"above 0.2: holds if between one half and 2, which are ours.",
				Decide: overSome(name, adaptt, dpse, between(0.5, 2), low)},
			{ID: "four-times", Text: "There AdaP-TT takes at most four times the samples of " +
				"TTUCB, which has no privacy.", Where: "§5",
				Statistic: "Mean stopping time of AdaP-TT over that of TTUCB, paired, at each ε " +
					"above 0.2: holds if below 4.", Decide: overSome(name, adaptt, ttucb, below(4), low)},
			{ID: "four-times-se", Text: "There DP-SE takes at most four times the samples of TTUCB.",
				Where: "§5",
				Statistic: "Mean stopping time of DP-SE over that of TTUCB, paired, at each ε " +
					"above 0.2: holds if below 4.5, which is four to the digit that is printed.",
				Decide: overSome(name, dpse, ttucb, below(4.5), low),
				Why:    "On one instance, (0, 0.25, 0.5, 0.75, 1), it is 4.1. No theorem says it of DP-SE."},
			{ID: "regime-high", Text: "For ε < 0.2 the stopping time of AdaP-TT depends on the " +
				"budget.", Where: "§5",
				Statistic: "Mean stopping time of AdaP-TT over that at ε = 10, paired, at the " +
					"smallest ε, on each instance: holds if above 1.",
				Decide: atSmallest(name, adaptt, above(1)),
				Why: regimeWhy + " Just below 0.2 a change may not show yet: where the regimes " +
					"meet is the instance's, by the lower bounds at T*_TV/T*_KL, which is 0.21 " +
					"on the first and 0.07 on the second."},
			{ID: "regime-low", Text: "For ε > 0.2 it does not depend on it.", Where: "§5 and Appendix F",
				Statistic: "Mean stopping time of AdaP-TT over that at ε = 10, paired, at each ε " +
					"from 0.3 to 1: holds if between 0.8 and 1.25, which are ours.",
				Decide: overLargest(name, adaptt, between(0.8, 1.25), func(p place) bool {
					return low(p) && epsilonOf(p) < 10
				}), Why: regimeWhy},
			{ID: "proved", Text: "With the threshold of Theorem 4, by which it is proved to be " +
				"δ-correct, AdaP-TT takes more plays than the DP-SE of [Sajed 2019].", Own: true,
				Statistic: "Mean stopping time of AdaP-TT with that threshold over that of the " +
					"DP-SE of [Sajed 2019], paired, in each cell: holds if above 1.",
				Decide: overSome(name, adapttProved, dpseOf002, above(1), allPlaces), Why: programWhy},
			{ID: "right-se", Text: "Counting all plays, the program's AdaP-TT is behind the " +
				"DP-SE of [Sajed 2019] at some ε below 0.2.", Own: true,
				Statistic: "Mean plays of AdaP-TT over those of the DP-SE of [Sajed 2019], paired, at " +
					"each ε below 0.2: holds if above 1 somewhere.",
				Decide: somewhere(name, adapttPlays, dpseOf002, above(1), high),
				Why: "Part of DP-SE's distance in the figures is a fault of its program " +
					"(figure faults-means), and part the plays that AdaP-TT does not report."},
			{ID: "lower-bound", Text: "No δ-correct private rule stops sooner, in the mean, than " +
				"the lower bound.", Where: "Theorem 2 and Corollary 1; [Azize 2024, Theorem 4.24]",
				Statistic: "Mean stopping time of the two private rules with a proof over T*(ν; " +
					"ε) log(1/3δ), of each cell that has the bound: holds if above 1.",
				Decide: overBound(name, adapttProved, dpseOf002), IfHolds: NotContradicted, Why: theoremWhy},
		}...)
	}
	const chosen004 = chosenBAI + " The source has 100 runs, here are 400. Rules that are proved " +
		"have σ = 1, as Theorem 4; AdaP-TT with its threshold has log n in the leader's bonus " +
		"and means clipped to [0, 1], since runs of the printed rule may never stop."
	first := func(p place) bool {
		return p.instance == "mu1" && epsilonOf(p) < 0.1 || p.instance == "mu2" && epsilonOf(p) < 0.4
	}
	second := func(p place) bool {
		return p.instance == "mu1" && epsilonOf(p) > 0.1 || p.instance == "mu2" && epsilonOf(p) > 0.4
	}
	below10 := func(p place) bool { return second(p) && epsilonOf(p) < 10 }
	return []Figure{
		{
			ID: "thesis-5.7", Source: "000", Where: "Figure 5.7, §5.5.3",
			Title: "Plays until the best arm is named, under ε-DP",
			About: "Stopping times of AdaP-TT, DP-SE and TTUCB by the program that was published " +
				"with [Azize et al. 2023], and of AdaP-TT*, of which no program is published, by " +
				"the threshold " +
				"that is proved, on two instances at δ = 0.01. Beside them AdaP-TT and TTUCB with " +
				"the thresholds that are proved, and the DP-SE of [Sajed 2019].",
			Chosen: chosenBAI + " The thesis does not say which program it has played, nor list " +
				"its budgets: ours are ten from 0.01 to 10, with 500 runs. Rules that are proved " +
				"have σ = ½, log n in the leader's bonus and means clipped to [0, 1], " +
				"since runs of the printed rule may never stop. A run ends after 5·10⁷ plays.",
			Experiments: []Experiment{{"stopping", "thesis-5.7.yaml",
				quickIdentify(60, "0.05", "0.1", "0.5", "10")}},
			Claims: []Claim{
				{ID: "fewer", Text: "AdaP-TT requires fewer samples than DP-SE, for different " +
					"values of ε and in all the instances tested.",
					Statistic: "Mean stopping time of AdaP-TT over that of DP-SE, paired, in " +
						"each cell: holds if below 1.",
					Decide: overSome("stopping", adaptt, dpse, below(1), allPlaces),
					Why: "By the program of [Azize et al. 2023] it does at small ε, and from 0.5 " +
						"on DP-SE needs " +
						"fewer, on both instances. [Azize et al. 2023, §5] says the same of the " +
						"same figure with " +
						"the scope that is missing here; which program the thesis has played is " +
						"not known.",
					Reader: "Read it as [Azize et al. 2023, §5] does: AdaP-TT needs fewer plays " +
						"than DP-SE at " +
						"small ε, and not at large."},
				{ID: "fewer-proved", Text: "With the threshold (5.11), by which Lemma 5.18 " +
					"proves it to be δ-correct, AdaP-TT takes more plays than the DP-SE of " +
					"[Sajed 2019].", Own: true,
					Statistic: "Mean stopping time of AdaP-TT with that threshold over that of " +
						"the DP-SE of [Sajed 2019], paired, in each cell: holds if above 1.",
					Decide: overSome("stopping", adapttProved, dpseOf002, above(1), allPlaces),
					Why:    programWhy},
				{ID: "star", Text: "AdaP-TT* requires fewer samples than DP-SE, improves on " +
					"AdaP-TT in the high-privacy regime, and has its performance in the " +
					"low-privacy one, where it does not depend on ε.",
					Statistic: "Mean stopping times, paired, AdaP-TT* over: the DP-SE of [Sajed 2019], in " +
						"each cell; AdaP-TT, proved as it is, at ε below 0.1 on the first " +
						"instance and 0.4 on the second; the same above; and itself at ε = 10, " +
						"above. Holds if the first two are below 1, the third is between 0.9 and " +
						"1.1 and the last between 0.8 and 1.25, which are ours.",
					Decide: together(
						clause{"over DP-SE", overSome("stopping", adapttStar, dpseOf002, below(1), allPlaces)},
						clause{"over AdaP-TT at small ε",
							overSome("stopping", adapttStar, adapttProved, below(1), first)},
						clause{"over AdaP-TT at large ε",
							overSome("stopping", adapttStar, adapttProved, between(0.9, 1.1), second)},
						clause{"over itself at ε = 10",
							overLargest("stopping", adapttStar, between(0.8, 1.25), below10)}),
					Why: starWhy + " Where a gap is below 3ε, that threshold has, by a sharper " +
						"proof, half of the main term of that of AdaP-TT: it takes about half " +
						"the plays at ε = 10, better than the claim. The improvement that is " +
						"proved for small ε is of a bound for δ → 0." + boundaryWhy,
					Reader: starReader},
				{ID: "regime-high", Text: "For ε < 0.1 on the first instance and ε < 0.4 on the " +
					"second, the stopping time of AdaP-TT depends on the budget.",
					Statistic: "Mean stopping time of AdaP-TT over that at ε = 10, paired, at " +
						"the smallest ε, on each instance: holds if above 1.",
					Decide: atSmallest("stopping", adaptt, above(1)),
					Why:    regimeWhy + " So a change need not show at each such ε." + boundaryWhy},
				{ID: "regime-low", Text: "For larger ε it does not depend on it.",
					Statistic: "Mean stopping time of AdaP-TT over that at ε = 10, paired, at " +
						"each such ε: holds if between 0.8 and 1.25, which are ours.",
					Decide: overLargest("stopping", adaptt, between(0.8, 1.25), below10),
					Weaker: overLargest("stopping", adaptt, between(0.8, 1.25), func(p place) bool {
						return below10(p) && epsilonOf(p) >= 0.5
					}),
					Why: regimeWhy + boundaryWhy, Reader: "Take the boundary from T*_TV/T*_KL, " +
						"as after Theorem 4.24."},
				{ID: "four-times", Text: "There AdaP-TT takes at most four times the samples of " +
					"TTUCB, as shown theoretically.",
					Statistic: "Mean stopping time of AdaP-TT over that of TTUCB, paired, at " +
						"each such ε: holds if below 4.", Decide: overSome("stopping", adaptt,
						ttucb, below(4), second),
					Reader: "What is shown is eight: Theorem 5.20 has 4(1 + √(1 + …)) times " +
						"T*_{KL,β}, which is eight times as ε grows, in the limit δ → 0. Four is " +
						"the factor of phases that " +
						"double and forget, without noise; the split of the risk between rewards " +
						"and noise doubles it, as the discussion after [Azize et al. 2023, Theorem 5] says."},
				{ID: "correct", Text: "AdaP-TT, AdaP-TT*, DP-SE and TTUCB as they are proved " +
					"name a wrong arm in at most a share δ of runs.", Where: "Lemmas 5.18 and 5.21, §2.2.9",
					Statistic: "Wrong answers of each of the four over all its cells, " +
						"Clopper–Pearson: holds if at most δ = 0.01.",
					Decide: pooledCorrect("stopping", adapttProved, adapttStar, dpseOf002,
						ttucbProved), IfHolds: NotContradicted, Why: theoremWhy},
				{ID: "lower-bound", Text: "No δ-correct private rule stops sooner, in the mean, " +
					"than the lower bound.", Where: "Theorem 4.24",
					Statistic: "Mean stopping time of the three private rules with a proof over " +
						"T*(ν; ε) log(1/3δ), of each cell that has the bound: holds if above 1.",
					Decide:  overBound("stopping", adapttProved, adapttStar, dpseOf002),
					IfHolds: NotContradicted, Why: theoremWhy},
			},
		},
		{
			ID: "bai-1", Source: "004", Where: "Figure 1, §5",
			Title: "Plays until the best arm is named: two instances",
			About: "Stopping times of AdaP-TT, DP-SE and TTUCB at δ = 0.01 by the program " +
				"that was published with the paper; and of AdaP-TT with the threshold of Theorem " +
				"4, and the DP-SE of [Sajed 2019].",
			Chosen: chosen004 + " The first instance has six arms here, as §5 prints it, " +
				"and five in Figure 2.",
			Experiments: []Experiment{{"stopping", "bai-1.yaml",
				quickIdentify(40, "0.01", "0.1", "0.5", "10")}},
			Claims: claims004("stopping", Claim{
				ID: "correct", Own: true, Text: "On these two instances, whose answers the " +
					"source does not count, the program's AdaP-TT and DP-SE name a wrong arm in " +
					"at most a share δ of runs.",
				Statistic: correctBy, Decide: pooledCorrect("stopping", adapttPlays, dpse)}),
		},
		{
			ID: "bai-2", Source: "004", Where: "Figure 2, Appendix F",
			Title:  "Plays until the best arm is named: six instances",
			About:  "As Figure 1, on the six instances of the appendix at its 15 budgets.",
			Chosen: chosen004,
			Experiments: []Experiment{{"stopping", "bai-2.yaml",
				quickIdentify(40, "0.01", "0.1", "0.5", "10")}},
			Claims: claims004("stopping", Claim{
				ID: "fewer", Text: "AdaP-TT requires fewer samples than DP-SE, on each instance " +
					"over the budgets taken together.", Where: "§5, Appendix F, first " +
					"conclusion, and the captions of Figures 1 and 2",
				Statistic: "Geometric mean over the budgets, a summary of ours, of the mean " +
					"stopping time of AdaP-TT over that of DP-SE, paired, on each instance: " +
					"holds if below 1.", Decide: overBudgets("stopping", adaptt, dpse, below(1)),
				Why: "§5 says more exactly what is seen: AdaP-TT is ahead in the high-privacy " +
					"regime, and both are similar in the low-privacy one. There it needs more on " +
					"three instances: phases that forget throw away half of the plays.",
				Reader: "Prefer AdaP-TT for small ε, as §5 has it."},
				Claim{ID: "correct", Text: "The algorithms are δ-correct, as is verified " +
					"empirically.", Where: "Appendix F", Statistic: correctBy + " The source's " +
					"100 runs of a cell could not show it.",
					Decide: pooledCorrect("stopping", adapttPlays, dpse), IfHolds: NotContradicted,
					Why: "The program of AdaP-TT has no proof; figure faults-program has " +
						"instances on which it errs more often than δ."}),
		},
	}
}

func allPlaces(place) bool { return true }

// atSmallest judges the ratio of a policy at the smallest ε of each instance to itself at ε = 10.
func atSmallest(name, policy string, judge judgement) Check {
	return func(e *Evidence) Finding {
		places := some(e, name, policy, allPlaces)
		smallest := map[string]float64{}
		for _, p := range places {
			if least, ok := smallest[p.instance]; !ok || epsilonOf(p) < least {
				smallest[p.instance] = epsilonOf(p)
			}
		}
		return overLargest(name, policy, judge, func(p place) bool {
			return epsilonOf(p) == smallest[p.instance]
		})(e)
	}
}

// somewhere judges whether the ratio of two policies is so at one at least of the places that a
// claim speaks of.
func somewhere(name, a, b string, judge judgement, of func(place) bool) Check {
	return func(e *Evidence) Finding {
		places := some(e, name, a, of)
		f := nothing(Undecided, "no place decides")
		holds := 0
		for _, p := range places {
			g := paired(e, name, a, b, judge)(p, len(places))
			if g.Answer == Holds {
				holds++
			}
			if f.Runs == 0 || g.Value > f.Value {
				f = g
			}
		}
		f.Detail = fmt.Sprintf("%s; so at %d of %d places", f.Detail, holds, len(places))
		return f
	}
}

// overBudgets judges the geometric mean of a ratio of policies over the budgets of each instance.
// Its interval is of the intervals of all ratios together.
func overBudgets(name, a, b string, judge judgement) Check {
	return func(e *Evidence) Finding {
		places := some(e, name, a, allPlaces)
		var instances []string
		logs, more, of := map[string][3]float64{}, map[string]int{}, map[string]int{}
		runs := 0
		for _, p := range places {
			f := paired(e, name, a, b, judge)(p, len(places))
			if of[p.instance]++; of[p.instance] == 1 {
				instances = append(instances, p.instance)
			}
			if f.Value > 1 {
				more[p.instance]++
			}
			sum := logs[p.instance]
			for i, v := range [3]float64{f.Value, f.Low, f.High} {
				sum[i] += math.Log(max(v, math.SmallestNonzeroFloat64))
			}
			logs[p.instance], runs = sum, f.Runs
		}
		return each(instances, func(in string) Finding {
			n, x := float64(of[in]), logs[in]
			return judge(math.Exp(x[0]/n), math.Exp(x[1]/n), math.Exp(x[2]/n), runs,
				fmt.Sprintf("%s over %s on %s; above 1 at %d of %d budgets", a, b, in, more[in], of[in]))
		})
	}
}

// A clause is one of several things that a claim says.
type clause struct {
	name   string
	decide Check
}

// together is the finding of a claim that says several things: that of Every, and what was found
// of each.
func together(of ...clause) Check {
	return func(e *Evidence) Finding {
		var parts []Finding
		var found []string
		for _, p := range of {
			f := p.decide(e)
			found = append(found, fmt.Sprintf("%s: %s, %s (%s)", p.name, f.Answer, numbersText(f), f.Detail))
			parts = append(parts, f)
		}
		f := Every(parts)
		f.Detail = strings.Join(found, "; ")
		return f
	}
}

// epsilonOf is the ε of a place's row; below every other where there is none.
func epsilonOf(p place) float64 {
	x, err := strconv.ParseFloat(strings.TrimPrefix(p.row, "epsilon="), 64)
	if err != nil {
		return -1
	}
	return x
}

// some are the places of a policy that a claim speaks of.
func some(e *Evidence, name, policy string, of func(place) bool) []place {
	return slices.DeleteFunc(placesOf(e, name, policy), func(p place) bool { return !of(p) })
}

// overSome judges the ratio of two policies at the places that a claim speaks of.
func overSome(name, a, b string, judge judgement, of func(place) bool) Check {
	return func(e *Evidence) Finding {
		return everywhere(some(e, name, a, of), paired(e, name, a, b, judge))
	}
}

// overLargest judges the ratio of a policy to itself at ε = 10.
func overLargest(name, policy string, judge judgement, of func(place) bool) Check {
	return func(e *Evidence) Finding {
		return everywhere(some(e, name, policy, of), func(p place, cells int) Finding {
			c := cellAt(e, name, policy, p)
			base := cellAt(e, name, policy, place{p.instance, "epsilon=10"})
			x := finalOf(c)
			r, lo, hi := Ratio(x, finalOf(base), cells)
			return judge(r, lo, hi, len(x), fmt.Sprintf("%s at %s over ε = 10", policy, p))
		})
	}
}

// cellsOf are the cells of some policies.
func cellsOf(e *Evidence, name string, policies ...string) []*experiment.CellResult {
	var out []*experiment.CellResult
	r := need(e.Results(name))
	for _, policy := range policies {
		for i := range r.Cells {
			if r.Cells[i].Policy == policy {
				out = append(out, &r.Cells[i])
			}
		}
	}
	return out
}

// pooledCorrect judges the share of wrong answers of each of some rules, over all its cells. A run
// that reached the cap has none.
func pooledCorrect(name string, policies ...string) Check {
	return func(e *Evidence) Finding {
		var parts []Finding
		for _, policy := range policies {
			cells := cellsOf(e, name, policy)
			wrong, runs, most, risk := 0, 0, 0, 0.
			for _, c := range cells {
				wrong, runs, most, risk = wrong+c.Failures, runs+len(c.FinalStoppingTime),
					max(most, c.Failures), c.Identify.Risk
			}
			if runs == 0 {
				continue
			}
			parts = append(parts, atMost(wrong, runs, risk, len(policies),
				fmt.Sprintf("%s: %d wrong of %d, at most %d in one cell", policy, wrong, runs, most)))
		}
		return Every(parts)
	}
}

// riskOf is the δ of the sources' figures.
const riskOf = 0.01

// overBound judges the mean of every cell of some rules that has a lower bound.
func overBound(name string, policies ...string) Check {
	return func(e *Evidence) Finding {
		cells := cellsOf(e, name, policies...)
		bounded := cells[:0]
		for _, c := range cells {
			if c.Identify.LowerBound > 0 {
				bounded = append(bounded, c)
			}
		}
		return each(bounded, func(c *experiment.CellResult) Finding {
			m, lo, hi := Difference(c.FinalStoppingTime, make([]float64, len(c.FinalStoppingTime)),
				len(bounded))
			b := c.Identify.Time * math.Log(1/(3*riskOf)) // as the sources have it
			return Above(m/b, lo/b, hi/b, 1, len(c.FinalStoppingTime), c.Label())
		})
	}
}

// quickIdentify plays fewer runs at some of the budgets.
func quickIdentify(runs keyed.Count, epsilons ...string) func(s *experiment.Spec) {
	return func(s *experiment.Spec) {
		s.Runs = min(s.Runs, runs)
		keepBudgets(s, epsilons...)
	}
}

// keepBudgets leaves out all budgets but those of these ε.
func keepBudgets(s *experiment.Spec, epsilons ...string) {
	kept := s.Budgets[:0]
	for _, b := range s.Budgets {
		for _, x := range epsilons {
			if b.String() == "epsilon="+x {
				kept = append(kept, b)
			}
		}
	}
	s.Budgets = kept
}
