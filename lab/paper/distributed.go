package paper

import (
	"fmt"
	"strings"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// The names of policies in the settings of [Chowdhury and Zhou 2023].
const (
	believed = "DP-SE"
	pure     = "Dist-DP-SE"
	renyi10  = "Dist-RDP-SE(10)"
	renyi100 = "Dist-RDP-SE(100)"
)

const distributedChosen = "The source does not say the variance of its Gaussian rewards: ours " +
	"have standard deviation 0.1, as its program has, clipped to [0, 1]. Its ε for Rényi privacy " +
	"is at order 2 here, with ε² in the place of ε; " +
	"batches follow its η = 4. Radii and precision are as printed. There are 60 instances, the " +
	"source has 20. The gap \"for small T\" is read at a tenth of the horizon, in the same worlds."

const distributedWhy = "Appendix J says that it is the same order-wise, and so it is (next " +
	"claim). DP-SE of [Sajed 2019] has other constants than [Chowdhury and Zhou 2023, Algorithm " +
	"1]: with central noise of the " +
	"same size, Algorithm 1 (CDP-SE, Figure 4) has the regret of Dist-DP-SE, to within the 5 % " +
	"that is tested there. What lies between " +
	"DP-SE and Dist-DP-SE is the elimination rule and not the trust model, and is no less at T " +
	"than at T/10. The faults of the program (faults-polya, faults-shared) hardly move the curves: " +
	curvesOf003

const distributedReader = "Read \"matches\" as \"order-wise\", as Appendix J has it. Beside the " +
	"same algorithm with a believed server (CDP-SE, Figure 4) secure aggregation costs nothing " +
	"to speak of, which is the paper's point."

func distributed() []Figure {
	easy := Experiment{"easy", "distributed-easy.yaml", quickHorizon(20, 0)}
	// The two scales alone, in other worlds: 60 runs do not decide between them.
	easyScale := Experiment{"easy-scale", "distributed-easy-scale.yaml", nil}
	easyShort := Experiment{"easy-short", "distributed-easy-short.yaml", quickHorizon(20, 0)}
	hard := Experiment{"hard", "distributed-hard.yaml", nil}
	hardShort := Experiment{"hard-short", "distributed-hard-short.yaml", nil}
	letor := Experiment{"letor", "distributed-letor.yaml", quickHorizon(20, 0)}
	return []Figure{
		{
			ID: "distributed-2", Source: "003", Where: "Figure 2, and Figure 1 (a, b), §7 and Appendix J",
			Title: "Secure aggregation against a believed server, arms far apart",
			About: "Regret a round of successive elimination with secure aggregation under " +
				"pure and Rényi privacy, and of DP-SE with a believed server: ten arms, means " +
				"uniform in [0.25, 0.75], 20 instances.",
			Chosen:      distributedChosen,
			Experiments: []Experiment{easy, easyShort, easyScale},
			Draw:        drawEach("easy"),
			Claims:      distributedClaims("easy", "easy-short", "easy-scale"),
		},
		{
			ID: "distributed-3", Source: "003", Where: "Figure 3, and Figure 1 (c), §7 and Appendix J",
			Title:       "Secure aggregation against a believed server, arms close together",
			About:       "As in Figure 2, with means uniform in [0.45, 0.55], and ten times the rounds.",
			Chosen:      distributedChosen,
			Experiments: []Experiment{hard, hardShort},
			Draw:        drawEach("hard"),
			Claims:      distributedClaims("hard", "hard-short", "hard"),
		},
		{
			ID: "distributed-4", Source: "003", Where: "Figure 4, Appendix J",
			Title: "One algorithm under three trust models and three kinds of privacy",
			About: "Algorithm 1 with central noise, local noise, and noise from the users " +
				"under secure aggregation, the last under pure, Rényi and concentrated privacy, " +
				"on the instances of Figure 2.",
			Chosen: "As in Figure 2. The ε of the source for Rényi and concentrated privacy " +
				"is ε² at order 2, and ½ε² in zCDP. \"Similar\" is read as within 5 %, \"much " +
				"better\" as half of the regret or less.",
			Experiments: []Experiment{{"trust", "distributed-trust.yaml", quickHorizon(8, 0)}},
			Draw:        drawEach("trust"),
			Claims: []Claim{
				{ID: "central", Text: "Under pure privacy, Algorithm 1 has about the same regret " +
					"with secure aggregation as with a believed server: a distributed guarantee " +
					"costs no more than the central one.",
					Where: "abstract, §3 and Appendix J", Statistic: "Regret of Dist-DP-SE over " +
						"that of CDP-SE at T, paired, at each ε: holds if between 0.95 and 1.05, " +
						"which are ours.",
					Decide: overRows("trust", pure, "CDP-SE", between(0.95, 1.05))},
				{ID: "local", Text: "Both have much less regret than the local model.",
					Statistic: "Regret of LDP-SE over that of CDP-SE at T, paired, at each ε: " +
						"holds if above 2, which is ours.",
					Decide: overRows("trust", "LDP-SE", "CDP-SE", above(2))},
				{ID: "local-distributed", Text: "Secure aggregation has much less regret than " +
					"the local model.", Statistic: "Regret of LDP-SE over that of Dist-DP-SE at " +
					"T, paired, at each ε: holds if above 2, which is ours.",
					Decide: overRows("trust", "LDP-SE", pure, above(2))},
				{ID: "renyi", Text: "Giving up pure for Rényi privacy lowers regret.",
					Statistic: "Regret of Dist-RDP-SE(10) over that of Dist-DP-SE at T, paired, " +
						"at each ε: holds if below 1.",
					Decide: overRows("trust", renyi10, pure, below(1))},
				{ID: "concentrated", Text: "Giving up pure for concentrated privacy lowers regret.",
					Statistic: "Regret of Dist-CDP-SE(10) over that of Dist-DP-SE at T, paired, " +
						"at each ε: holds if below 1.",
					Decide: overRows("trust", "Dist-CDP-SE(10)", pure, below(1))},
				{ID: "gaussian-skellam", Text: "Concentrated privacy with discrete Gaussian " +
					"noise has less regret than Rényi privacy with Skellam noise.",
					Statistic: "Regret of Dist-CDP-SE(10) over that of Dist-RDP-SE(10) at T, " +
						"paired, at each ε: holds if below 1.",
					Decide: overRows("trust", "Dist-CDP-SE(10)", renyi10, below(1))},
			},
		},
		{
			ID: "distributed-5", Source: "003", Where: "Figure 5, and Figure 1 (bottom), §7 and Appendix J",
			Title: "Secure aggregation against a believed server, learning to rank",
			About: "As in Figure 2, with the arms of a learning-to-rank data set: 50 clusters of " +
				"rated pairs of query and page.",
			Chosen: "The data set of the source, MSLR-WEB10K, is not shipped. A made-up sample " +
				"of 2000 pairs stands for it, clustered as the source does: what holds here need " +
				"not hold there. " +
				"`sotto letor --help` says how to make the arms from the real file; as " +
				"distributed-letor-arms.csv in a directory of real data they take the sample's " +
				"place. There are 100 runs. Rewards are relevance labels over 4. Otherwise as in Figure 2.",
			Experiments: []Experiment{letor},
			Draw:        drawEach("letor"),
			Claims:      distributedClaims("letor", "", "letor"),
		},
	}
}

// distributedClaims are those that the source makes of Figures 2, 3 and 5 alike. Without the name
// of a shorter experiment they are fewer; scales has the two scales of Rényi privacy.
func distributedClaims(name, short, scales string) []Claim {
	// the source speaks of the gap where T is small
	early, when := name, "at T (no shorter horizon is played)"
	if short != "" {
		early, when = short, "at T/10"
	}
	claims := []Claim{
		{ID: "matches", Text: "For large T, the regret of Dist-DP-SE matches that of DP-SE.", Where: "§7",
			Statistic: "Regret of Dist-DP-SE over that of DP-SE at T, paired, at each ε: holds " +
				"if all are between 0.9 and 1.1, and fails if one is beyond ⅔ or 1.5. The " +
				"numbers are ours; what lies between them is left open, as the source does.",
			Decide: overRows(name, pure, believed, near(0.1, 0.5)),
			Weaker: overRows(name, pure, believed, between(1./3, 3)), Why: distributedWhy,
			Reader: distributedReader},
		{ID: "order", Text: "For large T, the regret of Dist-DP-SE is of the order of that of " +
			"DP-SE.", Where: "Appendix J",
			Statistic: "Regret of Dist-DP-SE over that of DP-SE at T, paired, at each ε: holds " +
				"if between a third and 3, which are ours.",
			Decide: overRows(name, pure, believed, between(1./3, 3)), IfHolds: NotContradicted},
		{ID: "gap-epsilon", Text: "The gap between Dist-DP-SE and DP-SE, which is one of small " +
			"T, is smaller for larger ε.", Where: "§7 and Appendix J",
			Statistic: "The ratio of their regrets at the smallest ε over that at the largest, " +
				when + ", paired: holds if above 1.",
			Decide: acrossRows(early, pure, believed, above(1))},
		{ID: "gain", Text: "Rényi privacy has considerably less regret than pure privacy, " +
			"already at the small scale s = 10.", Where: "§7 and Appendix J",
			Statistic: "Regret of Dist-RDP-SE(10) over that of Dist-DP-SE at T, paired, at each " +
				"ε: holds if below 1.",
			Decide: overRows(name, renyi10, pure, below(1)),
			Why: "Where the cost of privacy is small beside the rest of the regret there " +
				"is little left to gain; batches that double round small differences away."},
		{ID: "gain-epsilon", Text: "That gain is larger where ε is small.", Where: "§7 and Appendix J",
			Statistic: "The ratio of the regrets of Dist-RDP-SE(10) and Dist-DP-SE at the " +
				"smallest ε over that at the largest, at T, paired: holds if below 1.",
			Decide: acrossRows(name, renyi10, pure, below(1)),
			Why: "Batches grow by a factor, so that an arm is dropped at one of few times: " +
				"gains come in steps that need not follow ε."},
		{ID: "scale", Text: "The higher the scale s, the higher the gain in regret.", Where: "Appendix J",
			Statistic: "Regret of Dist-RDP-SE(100) over that of Dist-RDP-SE(10) at T, paired, at " +
				"each ε: holds if below 1.",
			Decide: overRows(scales, renyi100, renyi10, below(1)),
			Why: "At a large ε the noise is small at either scale, and both often drop an " +
				"arm after the same batch: the ratio is then near 1."},
	}
	if short == "" {
		for i := range claims {
			claims[i].Decide = onRealData(name, claims[i].Decide)
		}
		return claims
	}
	return append(claims,
		Claim{ID: "gap-early", Text: "For small T, Dist-DP-SE has more regret than DP-SE: the " +
			"price of discrete noise and of no believed server.", Where: "§7 and Appendix J",
			Statistic: "Regret of Dist-DP-SE over that of DP-SE at T/10, paired, at each ε: " +
				"holds if above 1.", Decide: overRows(short, pure, believed, above(1))},
		Claim{ID: "gap-closes", Text: "The ratio of the two at T is within a tenth of what it " +
			"was at T/10.", Own: true,
			Statistic: "The ratio of their regrets at T over that at T/10, paired, at each ε: " +
				"holds if between 0.9 and 1.1.",
			Decide: func(e *Evidence) Finding {
				return everywhere(placesOf(e, name, pure), func(p place, cells int) Finding {
					var x [4][]float64
					for i, of := range [4]struct {
						name, policy string
					}{{name, pure}, {name, believed}, {short, pure}, {short, believed}} {
						x[i] = cellAt(e, of.name, of.policy, p).FinalRegret
					}
					r, lo, hi := ratioOfRatios(x[0], x[1], x[2], x[3], cells)
					return Between(r, lo, hi, 0.9, 1.1, len(x[0]), p.String())
				})
			}})
}

// onRealData leaves a claim about a data set undecided where a sample stood for it.
func onRealData(name string, decide Check) Check {
	return func(e *Evidence) Finding {
		f := decide(e)
		if e.Sampled[name] {
			f.Answer, f.Detail = Undecided, "on the made-up sample: "+f.Detail
		}
		return f
	}
}

// overRows judges the ratio of two policies at every place of an experiment.
func overRows(name, a, b string, judge judgement) Check {
	return overSome(name, a, b, judge, allPlaces)
}

// acrossRows judges how the ratio of two policies at the first budget compares with that at the
// last, on each instance.
func acrossRows(name, a, b string, judge judgement) Check {
	return func(e *Evidence) Finding {
		places := placesOf(e, name, a)
		if len(places) < 2 {
			return need(Finding{}, &NotPlayedError{Name: name + ": two budgets", Preset: e.Preset})
		}
		first, last := places[0], places[len(places)-1]
		var x [4][]float64
		for i, of := range [4]struct {
			policy string
			p      place
		}{{a, first}, {b, first}, {a, last}, {b, last}} {
			x[i] = cellAt(e, name, of.policy, of.p).FinalRegret
		}
		r, lo, hi := ratioOfRatios(x[0], x[1], x[2], x[3], 1)
		return judge(r, lo, hi, len(x[0]), fmt.Sprintf("%s over %s at %s, beside %s", a, b,
			first.row, last.row))
	}
}

// quickHorizon plays fewer runs, and fewer rounds if horizon is above 0.
func quickHorizon(runs, horizon keyed.Count) func(s *experiment.Spec) {
	return func(s *experiment.Spec) {
		s.Runs = min(s.Runs, runs)
		if horizon > 0 {
			s.Horizon = min(s.Horizon, horizon)
		}
	}
}

// drawEach is regret a round, as the source draws it, at each budget.
func drawEach(name string) func(e *Evidence) ([]report.Figure, []report.Table) {
	return func(e *Evidence) ([]report.Figure, []report.Table) {
		r, err := e.Results(name)
		if err != nil {
			return nil, nil // this preset leaves it out
		}
		page := need(r.Report())
		var figures []report.Figure
		var rows []place
		for i := range r.Cells {
			c := &r.Cells[i]
			p := place{c.Instance, c.Row()}
			k := -1
			for j := range rows {
				if rows[j] == p {
					k = j
				}
			}
			if k < 0 {
				k = len(rows)
				rows = append(rows, p)
				figures = append(figures, report.Figure{
					ID:       report.Stem("average-" + strings.ReplaceAll(p.row, "=", "-")),
					Title:    "Regret a round on " + p.instance,
					Subtitle: strings.ReplaceAll(p.row, "epsilon=", "ε = "),
					XLabel:   "round t", YLabel: "pseudo-regret over t", LogX: true,
					Note: "Lines are means of " + words.Whole(r.Manifest.Runs) + " runs, bands their 95 % " +
						"Student intervals at each checkpoint.",
				})
			}
			figures[k].Series = append(figures[k].Series, roundLine(r, c, 1))
		}
		return figures, page.Tables[:1]
	}
}
