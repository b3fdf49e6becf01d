package paper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// The names of policies in the settings of [Sajed 2019], and of its experiments.
const (
	se, se2, se2mod, ucb = "dp-se", "dp-se-2", "dp-se-2-modified", "dp-ucb"
	ucb2                 = "dp-ucb-log2" // logarithms to base 2
	slow                 = "dp-ucb"      // the experiment that has DP-UCB
	slowC1               = "dp-ucb-c1"
	slow2                = "dp-ucb-log2"
	fast                 = "elimination"
)

const (
	logsChosen = "DP-UCB's width Γ has three logarithms whose base is not said. To base 2, the " +
		"base of its tree's depth, Γ is three times as wide as with natural ones. Both were " +
		"played; a claim stands if it does under one of them, " +
		"and both results are shown; whether one base gives all of them is a finding of ours."
	logsReader = "That DP-SE is ahead stands under either base, at least threefold. For the " +
		"factor say which base: from 3 up at ε = 1 and from 9 up below with natural logarithms, " +
		"from 8 up with base 2."
	se2Why = "DP-SE 2 looks after 3, 5, 9, … rounds of each arm, so that its regret on equal " +
		"gaps is a power of two times the gap: whether it is ahead at one budget is a matter of " +
		"where the steps lie. The base of the logarithms of DP-UCB's Γ, and how long " +
		"the epochs of the program were, are not known."
	se2Reader = "Compare DP-SE 2 and DP-UCB on your own gaps, budget and number of arms; DP-SE " +
		"is ahead of both here, everywhere."
)

func elimination() []Figure {
	const chosen = "The rules that eliminate are played in 200 to 500 runs, the source has 30. " +
		"DP-UCB decides in every round, at T = 5·10⁷, and is played in 4 or 8 runs of the same " +
		"worlds: its regret varies by a few hundredths. C2 and C4 are built from " +
		"their formulas: the means printed beside them (0.525 twice) do not follow from those. " +
		"Algorithm 9's R_e is rounded up. In our text of Algorithm 6 Γ is divided by 2; by its " +
		"units, and the regret quoted beside it, that is ε. " + logsChosen
	budgets := []Experiment{
		{fast, "sajed-budgets.yaml", quickHorizon(50, 0)},
		{slowC1, "sajed-budgets-ucb-c1.yaml", func(s *experiment.Spec) {
			s.Runs = 4
			keepBudgets(s, "1")
		}},
		{slow, "sajed-budgets-ucb.yaml", nil},
		{slow2, "sajed-budgets-ucb-log2.yaml", func(s *experiment.Spec) {
			keepBudgets(s, "1")
			keepInstances(s, "C1")
		}},
	}
	arms := []Experiment{
		{fast, "sajed-arms.yaml", quickHorizon(20, 0)},
		{slow, "sajed-arms-ucb.yaml", func(s *experiment.Spec) {
			s.Runs = 2
			keepBudgets(s, "1")
			keepInstances(s, "C4-K10")
		}},
		{slow2, "sajed-arms-ucb-log2.yaml", nil},
	}
	on := func(c string) func(place) bool {
		return func(p place) bool { return strings.HasPrefix(p.instance, c) }
	}
	const six, a2 = "results and discussion of chapter 6", "results and discussion of §A.2"
	common := []Claim{
		{ID: "five-times", Text: "In all settings that were tested, DP-SE outperforms DP-UCB by " +
			"at least 5 times.", Where: six,
			Statistic: "Regret of DP-UCB over that of DP-SE at T, in each cell: holds if above 5 " +
				"in all, with logarithms of one base or the other.",
			Decide: eitherBase(se, above(5), nil), Weaker: overUCB(se, above(1), nil), Reader: logsReader,
			Why: "With natural logarithms it is 3 to 5 times in a few settings at ε = 1: there " +
				"the private part of both bounds is small, and what is compared is how each rule " +
				"explores without privacy."},
		{ID: "outperforms", Text: "DP-SE has less regret than DP-UCB, in all settings.", Where: six,
			Statistic: "Regret of DP-UCB, with natural logarithms, over that of DP-SE at T, in " +
				"each cell: holds if above 1.", Decide: overUCB(se, above(1), nil)},
		{ID: "modified", Text: "The modified DP-SE 2 has less regret than DP-UCB, in all settings.", Where: a2,
			Statistic: "Regret of DP-UCB, with natural logarithms, over that of the modified " +
				"DP-SE 2 at T, in each cell: holds if above 1.", Decide: overUCB(se2mod, above(1), nil)},
		{ID: "c2-c3", Text: "Under C2 and C3, DP-SE 2 has less regret than DP-UCB throughout.", Where: a2,
			Statistic: "Regret of DP-UCB, with natural logarithms, over that of DP-SE 2 at T, in " +
				"each cell of C2 and C3: holds if above 1.",
			Decide: overUCB(se2, above(1), func(p place) bool {
				return on("C2")(p) || on("C3")(p)
			}), Why: se2Why},
		{ID: "se-se2", Text: "DP-SE has less regret than DP-SE 2 in all cases.", Where: a2,
			Statistic: "Regret of DP-SE 2 over that of DP-SE at T, paired, in each cell: holds " +
				"if above 1.", Decide: overRows(fast, se2, se, above(1))},
		{ID: "se-modified", Text: "DP-SE has less regret than the modified DP-SE 2 most of the " +
			"times.", Where: a2,
			Statistic: "In how many cells the ratio of the regret of the modified DP-SE 2 to " +
				"that of DP-SE, paired, is above 1, of all: holds if more than half are surely " +
				"so, fails if fewer than half can be.",
			Decide: mostOf(fast, se2mod, se), Why: "Each looks at few times: which one's " +
				"falls sooner after it could decide changes from cell to cell."},
	}
	byBudget := append(slices.Clone(common),
		Claim{ID: "stops", Text: "At some point DP-SE has eliminated all arms but the best: its " +
			"curve is piecewise linear.", Where: six,
			Statistic: "Share of the regret of DP-SE at T that comes after T/2, in each cell: " +
				"holds if there is none. It is a fact of these runs, without an interval.",
			Decide: lateShare(se, 0, false, fast)},
		Claim{ID: "goes-on", Text: "DP-UCB pulls suboptimal arms also for fairly large T: its " +
			"curve is smooth.", Where: six,
			Statistic: "Share of the regret of DP-UCB at T that comes after T/2, in each cell: " +
				"holds if there is any. It is a fact of these runs, without an interval.",
			Decide: lateShare(ucb, 0, true, slowC1, slow)},
		Claim{ID: "c1-small", Text: "Under C1, DP-SE 2 has less regret than DP-UCB where ε is at " +
			"most 0.25.", Where: "Figure A.1, " + a2,
			Statistic: "Regret of DP-UCB over that of DP-SE 2 at T under C1, at ε of 0.1 and " +
				"0.25: holds if above 1 at both, with logarithms of one base or the other.",
			Decide: eitherBase(se2, above(1), func(p place) bool {
				return on("C1")(p) && epsilonOf(p) <= 0.25
			}), Why: se2Why, Reader: se2Reader},
		Claim{ID: "c1-large", Text: "Under C1 with five arms, DP-UCB has less regret than DP-SE " +
			"2 where ε is larger.", Where: "Figure A.1, " + a2,
			Statistic: "Regret of DP-UCB over that of DP-SE 2 at T under C1, at ε of 0.5 and 1: " +
				"holds if below 1 at both, with logarithms of one base or the other.",
			Decide: eitherBase(se2, below(1), func(p place) bool {
				return on("C1")(p) && epsilonOf(p) > 0.25
			}), Why: se2Why, Reader: se2Reader},
		Claim{ID: "c4-large", Text: "Under C4, DP-SE 2 can be outperformed by DP-UCB where ε is " +
			"large.", Where: "Figure A.4, " + a2,
			Statistic: "Regret of DP-UCB over that of DP-SE 2 at T under C4, at ε = 1: holds if " +
				"below 1, with logarithms of one base or the other.",
			Decide: eitherBase(se2, below(1), func(p place) bool {
				return on("C4")(p) && epsilonOf(p) == 1
			}), Why: se2Why, Reader: se2Reader},
		Claim{ID: "c4-small", Text: "Under C4, DP-SE 2 has less regret than DP-UCB where ε is " +
			"smaller, also where it is not under C1.", Where: "Figure A.4, " + a2,
			Statistic: "Regret of DP-UCB, with natural logarithms, over that of DP-SE 2 at T " +
				"under C4, at ε of 0.1, 0.25 and 0.5: holds if above 1.",
			Decide: overUCB(se2, above(1), func(p place) bool {
				return on("C4")(p) && epsilonOf(p) < 1
			}), Why: se2Why},
		Claim{ID: "c2-soon", Text: "Under C2, DP-SE 2 has eliminated all suboptimal arms not " +
			"long after the modified DP-SE 2 has; under C1, unless ε is small, the difference is " +
			"drastic.", Where: "Figures A.1 and A.2, " + a2,
			Statistic: "Plays of suboptimal arms by DP-SE 2 over those by the modified one, " +
				"paired: that ratio under C1 over that under C2, at ε of 0.5 and 1: holds if " +
				"above 1.", Decide: wastedMore("C1", "C2", "epsilon=0.5", "epsilon=1")},
		Claim{ID: "c1-fifth", Text: "Under C1, the modified DP-SE 2 needs roughly a fifth of the " +
			"time of DP-SE 2 to eliminate all suboptimal arms, unless ε is quite small, as its " +
			"Hoeffding term is a fifth.", Where: "Figure A.1, " + a2,
			Statistic: "Plays of suboptimal arms by DP-SE 2 over those by the modified one, " +
				"paired, at each ε: holds if between 4 and 6, a margin of ours (found: 6.6, 9.6, " +
				"16.0 and 19.9 at ε = 0.1, 0.25, 0.5 and 1). Beside it: whether it is above 6.",
			Decide:   wasted(on("C1"), between(4, 6)),
			Stronger: wasted(on("C1"), above(6)),
			Why: "The Hoeffding term falls as the root of the number of plays: where it is a " +
				"fifth of the size, it takes a twenty-fifth of the time, up to the doubling of " +
				"batches, so a sixteenth or a thirty-second. The private term does not shrink " +
				"with it, so that at small ε something in between is seen.",
			Reader: "The modified DP-SE 2 gains more than the text says: it takes a seventh of " +
				"the time at ε = 0.1, a tenth at 0.25, a sixteenth at 0.5 and a twentieth at " +
				"1, and not a fifth."},
		Claim{ID: "one-base", Text: "With logarithms of neither base DP-UCB is both five times " +
			"behind DP-SE in all settings and ahead of DP-SE 2 under C4 at ε = 1: no one reading " +
			"of Γ gives all claims of this page.", Own: true,
			Statistic: "five-times and c4-large with natural logarithms, and with base 2: holds " +
				"if of each base one fails.",
			Decide: noBase(ask{se, above(5), nil}, ask{se2, below(1), func(p place) bool {
				return on("C4")(p) && epsilonOf(p) == 1
			}})},
	)
	small := func(p place) bool { return on("C1")(p) && epsilonOf(p) <= 0.25 }
	byArms := append(slices.Clone(common),
		Claim{ID: "c1-small", Text: "Under C1, DP-SE 2 has less regret than DP-UCB at ε = 0.25, " +
			"for any number of arms.", Where: "Figure A.5, " + a2,
			Statistic: "Regret of DP-UCB over that of DP-SE 2 at T under C1, at ε = 0.25: holds " +
				"if above 1 for each number of arms, with logarithms of one base or the other.",
			Decide: eitherBase(se2, above(1), small), Why: se2Why, Reader: se2Reader},
		Claim{ID: "c1-many", Text: "Under C1, DP-SE 2 has less regret than DP-UCB for large " +
			"values of K.", Where: "Figure A.5, " + a2,
			Statistic: "Regret of DP-UCB over that of DP-SE 2 at T under C1 with 20 arms, at " +
				"both ε: holds if above 1, with logarithms of one base or the other.",
			Decide: eitherBase(se2, above(1), func(p place) bool { return p.instance == "C1-K20" }),
			Why: "On equal gaps the regret of either grows in proportion to the number of " +
				"arms here, so that their ratio hardly depends on it; at ε = 1 it is below 1 for " +
				"any, under both bases. We do not know the program's logarithms and epochs, nor " +
				"where its figure's curves overlap.",
			Reader: se2Reader},
		Claim{ID: "c4-few", Text: "Under C4 with few arms, DP-SE 2 is not behind DP-UCB at an ε " +
			"as large as 1, as it is under C1.", Where: "Figure A.8, " + a2,
			Statistic: "Regret of DP-UCB, with natural logarithms, over that of DP-SE 2 at T " +
				"under C4 with 3 arms, at ε = 1: holds if above 1.",
			Decide: overUCB(se2, above(1), func(p place) bool {
				return p.instance == "C4-K3" && epsilonOf(p) == 1
			}), Why: se2Why},
		Claim{ID: "c4-large", Text: "Under C4, DP-SE 2 can be outperformed by DP-UCB at a large ε.",
			Where: "Figure A.8, " + a2,
			Statistic: "Regret of DP-UCB, with natural logarithms, over that of DP-SE 2 at T " +
				"under C4, at ε = 1: holds if below 1 for some number of arms.",
			Decide: func(e *Evidence) Finding {
				return Some(cellsOfUCB(e, ucb, se2, below(1), func(p place) bool {
					return on("C4")(p) && epsilonOf(p) == 1
				}))
			}, Why: se2Why},
	)
	return []Figure{
		{
			ID: "sajed-6.1-6.4-a.1-a.4", Source: "002", Where: "Figures 6.1 to 6.4 and A.1 to " +
				"A.4, chapter 6 and §A.2",
			Title: "Successive elimination against DP-UCB, by budget",
			About: "Regret of DP-SE, DP-SE 2, the modified DP-SE 2 and DP-UCB with five arms at " +
				"four budgets, T = 5·10⁷, β = 1/T.",
			Chosen: chosen + " Shown are regret over rounds at the source's default, ε = " +
				"0.25 (preset quick: 1), and regret at T against ε.",
			Experiments: budgets, Draw: drawBudgets, Claims: byBudget,
		},
		{
			ID: "sajed-6.5-6.8-a.5-a.8", Source: "002", Where: "Figures 6.5 to 6.8 and A.5 to " +
				"A.8, chapter 6 and §A.2",
			Title: "Successive elimination against DP-UCB, by number of arms",
			About: "Regret of DP-SE, DP-SE 2, the modified DP-SE 2 and DP-UCB with 3, 5, " +
				"10 and 20 arms at two budgets, T = 5·10⁷, β = 1/T.",
			Chosen:      chosen + " Shown is regret at T against the number of arms.",
			Experiments: arms, Draw: drawArms, Claims: byArms,
		},
		stoppingRules(),
	}
}

// cellsOfUCB judges how many times the regret of a policy DP-UCB has, with logarithms of one base,
// in each cell; a nil function is everywhere.
func cellsOfUCB(e *Evidence, base, policy string, judge judgement, of func(place) bool) []Finding {
	if of == nil {
		of = allPlaces
	}
	names := []string{slowC1, slow}
	if base == ucb2 {
		names = []string{slow2}
	}
	var places []place
	in := map[place]string{} // the experiment that has the place
	for _, name := range names {
		if e.Experiments[name] == nil { // some are left out, or there is one only
			continue
		}
		more := some(e, name, base, of)
		for _, p := range more {
			in[p] = name
		}
		places = append(places, more...)
	}
	var parts []Finding
	for _, p := range places {
		a, b := cellAt(e, in[p], base, p), cellAt(e, fast, policy, p)
		r, lo, hi := unpaired(a.FinalRegret, b.FinalRegret, len(places))
		parts = append(parts, judge(r, lo, hi, len(a.FinalRegret),
			fmt.Sprintf("%s over %s at %s", base, policy, p)))
	}
	// Where a preset plays DP-UCB in part of the settings only, that it holds there does not say
	// that it holds in all.
	settings := some(e, fast, policy, of)
	if len(places) < len(settings) && Every(parts).Answer == Holds {
		return need(parts, &NotPlayedError{Name: fmt.Sprintf("%s in %d of %d settings", base,
			len(settings)-len(places), len(settings)), Preset: e.Preset})
	}
	return parts
}

// overUCB judges all cells with natural logarithms.
func overUCB(policy string, judge judgement, of func(place) bool) Check {
	return overBase(ucb, policy, judge, of)
}

// overBase judges all cells with logarithms of one base.
func overBase(base, policy string, judge judgement, of func(place) bool) Check {
	return func(e *Evidence) Finding { return Every(cellsOfUCB(e, base, policy, judge, of)) }
}

// asPlayed is what a check finds, and what Every finds of nothing where the preset leaves out what
// it needs: the error says what.
func (c Check) asPlayed(e *Evidence) (Finding, error) {
	f, err := c.Of(e)
	var not *NotPlayedError
	if errors.As(err, &not) {
		return Every(nil), err
	}
	return need(f, err), nil
}

// eitherBase judges all cells with natural logarithms and all with logarithms to base 2, and holds
// if either does: the source does not say which it has. Numbers are of the one that holds, or of
// base 2, and the detail has both.
func eitherBase(policy string, judge judgement, of func(place) bool) Check {
	return func(e *Evidence) Finding {
		var f [2]Finding
		for i, base := range []string{ucb, ucb2} {
			var left error
			if f[i], left = overBase(base, policy, judge, of).asPlayed(e); left != nil {
				f[i].Detail = left.Error()
			}
			f[i].Detail = fmt.Sprintf("%s (%s)", f[i].Detail, f[i].Answer)
		}
		both := "natural logarithms: " + f[0].Detail + "; base 2: " + f[1].Detail
		out := f[1]
		if f[0].Answer == Holds {
			out = f[0]
		} else if f[0].Answer == Undecided && f[1].Answer == Fails {
			out = f[0]
		}
		out.Detail = both
		return out
	}
}

// An ask is what one claim asks of DP-UCB beside a policy.
type ask struct {
	policy string
	judge  judgement
	of     func(place) bool
}

// noBase holds if some ask fails with logarithms of either base, and fails if all hold with those
// of one. It shows the first that fails.
func noBase(asks ...ask) Check {
	return func(e *Evidence) Finding {
		var out Finding
		var details []string
		failing := 0
		for _, base := range []struct{ policy, name string }{{ucb, "natural logarithms"}, {ucb2, "base 2"}} {
			var all []Finding
			for _, a := range asks {
				f, _ := overBase(base.policy, a.policy, a.judge, a.of).asPlayed(e)
				all = append(all, f)
			}
			f := Every(all)
			details = append(details, base.name+": "+f.Detail)
			switch f.Answer {
			case Holds:
				f.Answer, f.Detail = Fails, details[len(details)-1]
				return f
			case Fails:
				failing++
			}
			out = f
		}
		out.Answer = Undecided
		if failing == len(details) {
			out.Answer = Holds
		}
		out.Detail = strings.Join(details, "; ")
		return out
	}
}

// mostOf judges whether policy a has more regret than b in most cells. Value and interval are of
// the share of cells.
func mostOf(name, a, b string) Check {
	return func(e *Evidence) Finding {
		places := placesOf(e, name, a)
		count, runs := map[Answer]int{}, 0
		above1 := 0
		for _, p := range places {
			f := paired(e, name, a, b, above(1))(p, len(places))
			count[f.Answer]++
			runs = f.Runs
			if f.Value > 1 {
				above1++
			}
		}
		n := float64(len(places))
		return Above(float64(above1)/n, float64(count[Holds])/n, 1-float64(count[Fails])/n, 0.5, runs,
			fmt.Sprintf("%s has more regret than %s in %d of %d cells for sure, and less in %d", a,
				b, count[Holds], len(places), count[Fails]))
	}
}

// lateShare looks at the share of a policy's regret that comes after half of the rounds: the claim
// holds if it is at least, or at most, a threshold in every cell. It is a fact of the runs as they
// were played, and has no interval.
func lateShare(policy string, threshold float64, more bool, names ...string) Check {
	return func(e *Evidence) Finding {
		var parts []Finding
		for _, name := range names {
			r, ok := e.Experiments[name]
			if !ok { // this preset leaves it out
				continue
			}
			half, last := 0, len(r.Manifest.Checkpoints)-1
			for i, t := range r.Manifest.Checkpoints {
				if 2*t <= r.Manifest.Horizon {
					half = i
				}
			}
			for i := range r.Cells {
				c := &r.Cells[i]
				if c.Policy != policy {
					continue
				}
				share := 1 - c.Regret.Mean[half]/c.Regret.Mean[last]
				f := Finding{Answer: Fails, Value: share, Low: math.NaN(), High: math.NaN(),
					Runs: r.Manifest.Runs, Detail: c.Label()}
				if more && share >= threshold && share > 0 || !more && share <= threshold {
					f.Answer = Holds
				}
				parts = append(parts, f)
			}
		}
		return Every(parts)
	}
}

// wasted judges the ratio of plays of suboptimal arms by DP-SE 2 to those by its modification.
func wasted(of func(place) bool, judge judgement) Check {
	return func(e *Evidence) Finding {
		places := some(e, fast, se2, of)
		horizon := float64(e.Experiments[fast].Manifest.Horizon)
		return everywhere(places, func(p place, cells int) Finding {
			var x [2][]float64
			for i, policy := range []string{se2, se2mod} {
				c := cellAt(e, fast, policy, p)
				for _, best := range c.FinalPlaysBest {
					x[i] = append(x[i], horizon-best)
				}
			}
			r, lo, hi := Ratio(x[0], x[1], cells)
			return judge(r, lo, hi, len(x[0]), p.String())
		})
	}
}

// wastedMore judges whether the ratio of wasted is larger on one instance than on another, at each
// of some budgets.
func wastedMore(larger, smaller string, rows ...string) Check {
	return func(e *Evidence) Finding {
		return each(rows, func(row string) Finding {
			var x [2]Finding
			for i, instance := range []string{larger, smaller} {
				x[i] = wasted(func(p place) bool {
					return p == place{instance, row}
				}, func(r, lo, hi float64, runs int, detail string) Finding {
					return Finding{Answer: Undecided, Value: r, Low: lo, High: hi, Runs: runs}
				})(e)
			}
			return Above(x[0].Value/x[1].Value, x[0].Low/x[1].High,
				x[0].High/x[1].Low, 1, x[0].Runs,
				fmt.Sprintf("%s: %.1f under %s, %.1f under %s", row, x[0].Value, larger, x[1].Value, smaller))
		})
	}
}

// keepInstances leaves out all instances but these.
func keepInstances(s *experiment.Spec, names ...string) {
	s.Instances = slices.DeleteFunc(s.Instances, func(in experiment.Instance) bool {
		return !slices.Contains(names, in.Name)
	})
}

// tablesOf are the comparisons of all experiments that were played.
func tablesOf(e *Evidence, names ...string) []report.Table {
	var tables []report.Table
	for _, name := range names {
		r, ok := e.Experiments[name]
		if !ok {
			continue
		}
		t := need(r.Report()).Tables[0]
		t.Title = name + ": " + t.Title
		tables = append(tables, t)
	}
	return tables
}

// against is regret at the horizon against what x says of a place, a line a policy, of the
// places that x accepts.
func against(e *Evidence, f report.Figure, x func(place) (float64, bool)) report.Figure {
	f.YLabel, f.LogX, f.LogY = "pseudo-regret at T", true, true
	for _, of := range []struct {
		name, policy string
	}{{fast, se}, {fast, se2}, {fast, se2mod}, {slowC1, ucb}, {slow, ucb}, {slow2, ucb2}} {
		r, ok := e.Experiments[of.name]
		if !ok {
			continue
		}
		s := report.Series{Policy: of.policy, Label: of.policy}
		for i := range r.Cells {
			c := &r.Cells[i]
			v, ok := x(place{c.Instance, c.Row()})
			if !ok || c.Policy != of.policy {
				continue
			}
			m, half := stats.Half(c.FinalRegret, experiment.Level)
			s.X, s.Mean, s.Lo, s.Hi = append(s.X, v), append(s.Mean, m), append(s.Lo, m-half),
				append(s.Hi, m+half)
		}
		if len(s.X) > 0 {
			f.Series = append(f.Series, s)
		}
	}
	f.Note = "Points are means over runs, bands their 95 % Student intervals" + fewerRuns(f)
	return f
}

// fewerRuns is the end of a note: of DP-UCB, if it is drawn.
func fewerRuns(f report.Figure) string {
	if slices.ContainsFunc(f.Series, func(s report.Series) bool {
		return s.Policy == ucb || s.Policy == ucb2
	}) {
		return "; DP-UCB has fewer runs, with natural logarithms and with logarithms to base 2."
	}
	return "; this preset does not play DP-UCB here."
}

func drawBudgets(e *Evidence) ([]report.Figure, []report.Table) {
	var figures []report.Figure
	for _, c := range []string{"C1", "C2", "C3", "C4"} {
		row, epsilon := "epsilon=0.25", "0.25" // the source's default, or where DP-UCB was played
		played, _ := overUCB(se, above(0), func(p place) bool { return p == place{c, row} }).Of(e)
		if played.Runs == 0 {
			row, epsilon = "epsilon=1", "1"
		}
		f := report.Figure{ID: "rounds-" + c, Title: "Regret under " + c,
			Subtitle: "K = 5, ε = " + epsilon, XLabel: "round t", YLabel: "pseudo-regret",
			LogX: true, LogY: true}
		for _, name := range []string{fast, slowC1, slow, slow2} {
			r, ok := e.Experiments[name]
			if !ok {
				continue
			}
			for i := range r.Cells {
				if cell := &r.Cells[i]; cell.Instance == c && cell.Row() == row {
					f.Series = append(f.Series, roundLine(r, cell, 0))
				}
			}
		}
		f.Note = "Lines are means over runs, bands their 95 % Student intervals at each checkpoint" +
			fewerRuns(f)
		figures = append(figures, f, against(e, report.Figure{ID: "budgets-" + c,
			Title: "Regret under " + c + " against ε", Subtitle: "K = 5", XLabel: "budget ε"},
			func(p place) (float64, bool) { return epsilonOf(p), p.instance == c }))
	}
	return figures, tablesOf(e, fast, slowC1, slow, slow2)
}

func drawArms(e *Evidence) ([]report.Figure, []report.Table) {
	var figures []report.Figure
	for _, c := range []string{"C1", "C2", "C3", "C4"} {
		for _, epsilon := range []string{"0.25", "1"} {
			figures = append(figures, against(e, report.Figure{ID: report.Stem("arms-" + c + "-" +
				epsilon), Title: "Regret under " + c + " against the number of arms",
				Subtitle: "ε = " + epsilon, XLabel: "arms K"},
				func(p place) (float64, bool) {
					k, err := strconv.Atoi(strings.TrimPrefix(p.instance, c+"-K"))
					return float64(k), err == nil && p.row == "epsilon="+epsilon
				}))
		}
	}
	return figures, tablesOf(e, fast, slowC1, slow, slow2)
}

// The rules of chapters 2 and 4, and what the source proves of them.
func stoppingRules() Figure {
	const name = "rules"
	correct := func(rule string) Check {
		return func(e *Evidence) Finding {
			cells := cellsOf(e, name, rule)
			return each(cells, func(c *experiment.CellResult) Finding {
				return atMost(c.Failures, len(c.FinalSamples), c.Stopping.Beta, len(cells),
					fmt.Sprintf("%s: %d wrong", c.Label(), c.Failures))
			})
		}
	}
	return Figure{
		ID: "sajed-stopping", Source: "002", Where: "chapters 2 and 4",
		Title: "Means of unknown size from few samples",
		About: "Samples that NAS, DP-NAS and DP exponential NAS take until they know a " +
			"mean up to 25 % with probability 0.95, at ε = 1, on five laws in [−1, 1].",
		Chosen: "The source proves its theorems and has no experiment on these rules: laws, " +
			"α = 0.25, β = 0.05 and ε = 1 are our choice. NAS has H_t for samples in [−R, R], " +
			"twice the printed one.",
		Experiments: []Experiment{{name, "sajed-stopping.yaml", quickHorizon(400, 0)}},
		Compute:     printedNAS,
		Claims: []Claim{
			{ID: "nas", IfHolds: NotContradicted, Text: "NAS is an (α, β)-stopping rule: its " +
				"estimate is off by more than α|μ| with probability at most β.",
				Where: "Theorem 2.2.1 in §2.2.1",
				Statistic: "Share of runs that are off by more, on each law, with H_t for " +
					"samples in [−R, R]: holds if at most β.", Decide: correct("nas")},
			{ID: "nas-printed", Text: "NAS with H_t as Algorithm 3 prints it is an (α, " +
				"β)-stopping rule for samples in [−R, R].", Where: "Algorithm 3 and Theorem 2.2.1 in §2.2.1",
				Statistic: "The probability that it stops with an estimate off by more than " +
					"α|μ|, at α = 0.9 and β = 0.001 on ±1 with mean 0.2, by recursion over the " +
					"law of the sum: holds if at most β.",
				Decide: judged("printed", func(n nasChances) (float64, bool, string) {
					return n.Off, n.Off <= nasBeta, fmt.Sprintf("%.6f, against β = %v; it has "+
						"stopped by t = %d with probability %.4f", n.Off, nasBeta, nasRounds, n.Stopped)
				}),
				IfFails: Misprint,
				Why: "R√(log(4t²/β)/(2t)) is Hoeffding's bound for samples in a range of length " +
					"R; [−R, R] has length 2R, for which it is twice that. Chapter 4 has the " +
					"right one in DP-NAS, h_t = R√(2 log(16t²/β)/t), " +
					"and the orders of Theorems 2.2.1 and 2.2.2 do not change.",
				Reader: "Implement NAS with H_t = R√(2 log(4t²/β)/t)."},
			{ID: "dp-nas", IfHolds: NotContradicted, Text: "DP-NAS is an (α, β)-stopping rule.",
				Where: "Theorem 4.1.1 in §4.1", Statistic: "Share of runs that are off by more " +
					"than α|μ|, on each law: holds if at most β.", Decide: correct("dp-nas")},
			{ID: "dp-exp-nas", IfHolds: NotContradicted, Text: "DP exponential NAS is an (α, " +
				"β)-stopping rule.", Where: "Corollary 4.1.2 in §4.1",
				Statistic: "Share of runs that are off by more than α|μ|, on each law: holds if " +
					"at most β.", Decide: correct("dp-exp-nas")},
			{ID: "upper", IfHolds: NotContradicted, Text: "DP exponential NAS stops by t_U = " +
				"2000 (t₀ + t₁ + t₂) with probability at least 1 − β.", Where: "Theorem 4.1.3 in §4.1",
				Statistic: "Share of runs that take more samples, on each law: holds if at most β.",
				Decide: overSamples(name, "dp-exp-nas", func(c *experiment.CellResult,
					cells int) Finding {
					late := 0
					for _, x := range c.FinalSamples {
						if x > c.Stopping.UpperBound {
							late++
						}
					}
					return atMost(late, len(c.FinalSamples), c.Stopping.Beta, cells,
						fmt.Sprintf("%s: t_U is %.3g times the mean", c.Label(),
							c.Stopping.UpperBound/mean(c.FinalSamples)))
				})},
			{ID: "lower", IfHolds: NotContradicted, Text: "A private rule takes more than n = R " +
				"log(1/β)/(12 α|μ|ε) samples with probability above 1/4 on the two-point law of " +
				"the proof.", Where: "Theorem 4.2.1 in §4.2",
				Statistic: "Share of runs of DP-NAS and DP exponential NAS on the two-point law " +
					"that take more: holds if above 1/4.",
				Decide: func(e *Evidence) Finding {
					cells := cellsOf(e, name, "dp-nas", "dp-exp-nas")
					var parts []Finding
					for _, c := range cells {
						if c.Instance != "two points" {
							continue
						}
						more := 0
						for _, x := range c.FinalSamples {
							if x > c.Stopping.LowerBound {
								more++
							}
						}
						lo, hi := share(more, len(c.FinalSamples), 2)
						parts = append(parts, Above(float64(more)/float64(len(c.FinalSamples)), lo,
							hi, 0.25, len(c.FinalSamples),
							fmt.Sprintf("%s: the mean is %.3g times n", c.Label(),
								mean(c.FinalSamples)/c.Stopping.LowerBound)))
					}
					return Every(parts)
				}},
			{ID: "doubling", IfHolds: NotContradicted, Text: "Looking at doubling times only " +
				"costs no more than a constant factor of samples.", Where: "§4.1",
				Statistic: "Samples of DP exponential NAS over those of DP-NAS, on each law: " +
					"holds if below 2, a threshold of ours.",
				Decide: overRows(name, "dp-exp-nas", "dp-nas", below(2))},
		},
	}
}

// overSamples judges every cell of a rule that has an upper bound.
func overSamples(name, rule string, judge func(c *experiment.CellResult, cells int) Finding) Check {
	return func(e *Evidence) Finding {
		cells := cellsOf(e, name, rule)
		cells = slices.DeleteFunc(cells, func(c *experiment.CellResult) bool {
			return c.Stopping.UpperBound == 0
		})
		return each(cells, func(c *experiment.CellResult) Finding {
			return judge(c, len(cells))
		})
	}
}

func mean(x []float64) float64 {
	m, _, _ := stats.Mean(x)
	return m
}

// Of Algorithm 3 as it is printed.
const (
	nasAlpha  = 0.9
	nasBeta   = 0.001
	nasMean   = 0.2
	nasRounds = 3000
)

// nasChances are the probabilities that NAS stops with an estimate that is off, and that it stops.
type nasChances struct{ Off, Stopped float64 }

// printedNAS is the probability that Algorithm 3, with H_t as printed and R = 1, stops by round
// nasRounds with an estimate that is off by more than α|μ|, on samples of ±1, and the probability
// that it stops by then. Both are exact: the law of the sum of those runs that have not stopped is
// carried from round to round.
func printedNAS(ctx context.Context, _ Preset, n *Numbers) {
	const up = (1 + nasMean) / 2
	// by the sum, from −nasRounds−1
	law, next := make([]float64, 2*nasRounds+3), make([]float64, 2*nasRounds+3)
	const zero = nasRounds + 1
	law[zero] = 1
	var found nasChances
	for t := 1; t <= nasRounds; t++ {
		try(ctx.Err())
		h := math.Sqrt(math.Log(4*float64(t)*float64(t)/nasBeta) / float64(2*t))
		clear(next)
		for s := -t; s <= t; s += 2 {
			p := up*law[zero+s-1] + (1-up)*law[zero+s+1]
			mean := float64(s) / float64(t)
			if math.Abs(mean) < h*(1+1/nasAlpha) {
				next[zero+s] = p
				continue
			}
			found.Stopped += p
			if math.Abs(mean-nasMean) > nasAlpha*nasMean {
				found.Off += p
			}
		}
		law, next = next, law
	}
	n.set("printed", found)
}
