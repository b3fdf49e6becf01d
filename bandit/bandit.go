// Package bandit holds reward laws, instances and the worlds they come from. Begin with an Instance
// of laws, such as BernoulliInstance.
//
// A Law is the law of one arm's rewards. It draws one reward, or the sum of n at once: a simulation
// only needs the sum of a slot, and for Bernoulli, Gaussian and finite laws that sum costs no more
// than one draw, whatever n. All sums are exact in law, up to double arithmetic: nothing here is a
// normal approximation.
//
//	law                               reward                                    Sum(n)
//	bernoulli(p)                      1 with probability p, else 0              one binomial draw
//	gaussian(mean,sd)                 normal                                    one normal draw
//	clipped-gaussian(mean,sd,lo,hi)   normal, clipped to [lo,hi]                n draws
//	beta(a,b)                         Beta                                      n draws
//	uniform(lo,hi)                    uniform                                   n draws
//	table(v1:p1,v2:p2,…)              vi with probability pi                    at most one binomial draw a value
//	empirical(n=…,sha256=…)           one of n logged rewards, each alike       at most one binomial draw a distinct value
//
// The left column is how an experiment file writes a law, and what String gives; ParseLaw reads it
// back. Laws are made by their constructors, which refuse parameters that are no law; they never
// change, so they may be shared between goroutines.
//
// An Instance is the laws of the arms. A Source is where the instance of a run comes from: fixed,
// or drawn anew for every run.
//
// A LinearInstance has actions in ℝ^d besides, with rewards of a RewardNoise around ⟨θ*,a⟩; it
// comes from a LinearSource or from a log with features (ReadLinearCSV). A ContextualInstance draws
// a new set of actions each round; it comes from a ContextualSource, of which a log of rounds is
// one (ReadContextualCSV). Regret bounds and sensitivities of linear policies suppose ‖a‖ ≤ 1, ‖θ*‖
// ≤ 1 and rewards in [−1,1]. SignNoise on the sphere or the unit ball has all three; the sources'
// own experiments, N(0,1) noise and normal contexts, have not.
//
// Nothing here knows about privacy: rewards are clipped to their declared range by package
// release, not by the law.
package bandit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/noise"

	"github.com/sotto-dp/sotto/logged"
)

// A Law is the law of an arm's rewards.
type Law interface {
	Mean() float64
	// Support is the smallest interval that holds every reward; ±Inf if unbounded.
	Support() (lo, hi float64)
	// Draw is one reward.
	Draw(s *noise.Fast) float64
	// Sum is the sum of n independent rewards, exact in law; O(1) where the sum has a closed law.
	// It is 0 for n ≤ 0.
	Sum(n int, s *noise.Fast) float64
	// String is the law as an experiment file writes it; equal strings are equal laws.
	String() string
}

// MaxAbs is the largest absolute value that a reward, a mean or a standard deviation may be given:
// far beyond any use, and sums and widths stay finite.
const MaxAbs = logged.MaxAbs

// checkNumber refuses what is not a number of moderate size.
func checkNumber(law, field string, x float64) error {
	if !(math.Abs(x) <= MaxAbs) {
		return fmt.Errorf("%s: %s is %v, must be a finite number, at most %v in absolute value",
			law, field, x, MaxAbs)
	}
	return nil
}

// checkSD refuses what is not a standard deviation.
func checkSD(law string, sd float64) error {
	if !(sd > 0 && sd <= MaxAbs) {
		return fmt.Errorf("%s: sd is %v, must be positive and at most %v", law, sd, MaxAbs)
	}
	return nil
}

// checkInterval refuses what is not lo < hi.
func checkInterval(law string, lo, hi float64) error {
	if err := checkNumber(law, "lo", lo); err != nil {
		return err
	}
	if err := checkNumber(law, "hi", hi); err != nil {
		return err
	}
	if !(lo < hi) {
		return fmt.Errorf("%s: lo is %v and hi is %v: lo must be below hi", law, lo, hi)
	}
	return nil
}

// unsigned turns −0 into 0, so that equal laws have equal strings.
func unsigned(x float64) float64 {
	if x == 0 {
		return 0
	}
	return x
}

// number writes x with the fewest digits that read back as x.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// format writes a law in its canonical form.
func format(name string, args ...float64) string {
	var b strings.Builder
	b.WriteString(name)
	for i, x := range args {
		b.WriteByte("(,"[min(i, 1)])
		b.WriteString(number(x))
	}
	b.WriteByte(')')
	return b.String()
}
