package paper

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A highlight is one of the findings that the summary shows, each with a picture.
type highlight struct {
	claim, title string
	figure       string // of the claim's page, or of another: PAGE/FIGURE
	gallery      string // the same in docs
	number       string // what the number that was found is
	reason       string // why, in a sentence or two, and what stands; Markdown
}

// highlights are the six findings that matter most to who reads the sources, the gravest first.
func highlights() []highlight {
	return []highlight{
		{"thesis-6.2/rates-theory", "Sub-sampling mixes; it does not shrink the sample",
			"thesis-6.2-c", "gallery/trace.svg",
			"the power that was found minus the printed one",
			"Left out of the sample, which has probability 1 − ρ, a target leaves no trace: no " +
				"test has power above (1 − ρ)α + ρ."},
		{"thesis-3.12/interactive-continual", "Two definitions of privacy are not ordered",
			"thesis-3.12", "gallery/definitions.svg",
			"δ at ε = 0.5 under continual release minus that under Interactive DP",
			"A policy of two arms and four rounds is the counter-example; for pure ε the arrow is right."},
		{"thesis-4.9/lemma", "A bilinear form is not ordered like a quadratic one", "thesis-4.18",
			"gallery/lemma.svg", "what the proof needs over the constant, for two arms 30° apart,",
			"Elimination on signs beats the bound there. With another constant the theorem is " +
				"true, and its two regimes stay."},
		{"zcdp-theorems/linear-in-d", "Linear in the dimension, with other phases",
			"zcdp-theorems-d", "gallery/dimension.svg",
			"the growth of regret over the claimed order, from d = 10⁴ to 10¹⁶,",
			"The private term f(d, δ) of a phase is at least d. For d = O(log(K log T/δ)), as in " +
				"the experiments, the theorem holds as it is printed."},
		{"faults-program/samples", "The published program stops by another threshold than the " +
			"theorem", "thesis-5.7/median-stopping-time-mu1", "gallery/trial.svg",
			"plays of the program over those of the rule with the theorem's threshold",
			"That is on (0.6, 0.5) at ε = 0.05. What §5 says of its figures comes out with the program."},
		{"thesis-5.3/low-privacy", "Privacy becomes free later than was read off", "thesis-5.3-far",
			"gallery/regimes.svg", "regret at ε = 0.3 over that at 10",
			"There are two regimes, as the theorems have it; by the source's own bound they meet " +
				"at ε = 1.6 here."},
	}
}

// strengths are claims that say best what stands, for the summary.
func strengths() []string {
	return []string{
		"thesis-5.2/lowest", "thesis-5.4/price", "zcdp-4/rate",
		"sajed-6.1-6.4-a.1-a.4/outperforms",
		"distributed-4/central", "bai-1/high-fewer", "bai-2/correct",
	}
}

// Facts that hold of all results, for the summary.
const (
	whatARunIs = "A run is one policy, or one rule, on one world until its horizon or until it " +
		"stops; games of audits and exact computations are counted on their pages."
	levelText = "A check is decided by an interval at level 99 %, over all cells that it speaks " +
		"of. What its answer means for the claim is the verdict. Runs alone refute nothing: that " +
		"takes a proof or a counter-example on the page."
)

// unknowns are what could not be known of the sources, and what was done about it.
func unknowns() []string {
	return []string{
		"**Programs** were published with [Chowdhury and Zhou 2023] and [Azize et al. 2023] " +
			"only, and were run and read (the latter at " +
			"commit c8d8be2). For [Azize 2024], [Azize and Basu 2024] and [Sajed 2019] ours " +
			"follow the text, but that Figure 5.7 of the first " +
			"is played with the program of [Azize et al. 2023].",
		"**Data.** Where --data gave no file, generated images and a sample stood for " +
			"Fashion-MNIST, CIFAR-10 and the ranking data of [Chowdhury and Zhou 2023]: claims " +
			"about these are *not " +
			"tested*, whatever came out.",
		"**Parameters.** [Azize 2024] leaves open the law, noise and rates of Figure 6.2, the budgets of " +
			"Figures 5.3 and 5.7, and its DP-SE; [Azize and Basu 2024] whether actions were " +
			"drawn once, and the " +
			"phases of AdaC-GOPE-Var; [Sajed 2019] the base of DP-UCB's logarithms.",
		"**Print.** Our texts are conversions: where one looks wrong, the derivation decided, " +
			"and the finding says *our text of it*.",
		"**Thresholds.** Where a source says \"about\" or \"of order\", a number in a check is " +
			"ours and is called so. They were committed before fresh seeds were played; " +
			"what was changed after that is in docs/verdicts.md. No verdict against a source " +
			"hangs on one alone.",
	}
}

// picture is a highlight's figure as it was drawn, wide and narrow; empty if it was not.
func (h highlight) picture(dir string) []byte {
	page, _, _ := strings.Cut(h.claim, "/")
	figure := h.figure
	if of, name, ok := strings.Cut(figure, "/"); ok {
		page, figure = of, name
	}
	dir = filepath.Join(dir, "data", page, "figures")
	var out []byte
	for _, name := range []string{figure, figure + "-narrow"} {
		b, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil {
			return nil
		}
		out = append(out, b...)
	}
	return out
}

// find is a claim's outcome by its ID.
func find(all []Result, id string) *Outcome {
	for i := range all {
		for j := range all[i].Outcomes {
			if all[i].Outcomes[j].ID == id {
				return &all[i].Outcomes[j]
			}
		}
	}
	return nil
}

// grave are the outcomes that a reader should know of, the gravest first.
func grave(results ...Result) []*Outcome {
	var out []*Outcome
	for _, v := range Verdicts() {
		for i := range results {
			for j := range results[i].Outcomes {
				if o := &results[i].Outcomes[j]; o.Verdict == v && v.Grave() {
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// present are the verdicts that some claim has.
func present(all []Result) []Verdict {
	return slices.DeleteFunc(Verdicts(), func(v Verdict) bool {
		return !slices.ContainsFunc(all, func(r Result) bool { return r.Count(v) > 0 })
	})
}
