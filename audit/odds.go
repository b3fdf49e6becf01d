package audit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/sotto-dp/sotto/noise"
)

// A Rule guesses the bit of a game from a score: "in" above In, "out" at Out or below. Between them
// it abstains. +Inf for In or −Inf for Out guesses on one side alone.
type Rule struct {
	In, Out float64
}

// Answers are how a Rule did in Games independent games whose bits were fair coins. It answered in
// Right + Wrong of them.
type Answers struct {
	Games, Right, Wrong int
}

// Answer lets a rule answer all games. The rule must not have been chosen on their bits; it may
// depend on anything else.
func (s Scores) Answer(r Rule) (Answers, error) {
	if err := s.Validate(); err != nil {
		return Answers{}, err
	}
	if !(r.Out <= r.In) {
		return Answers{}, fmt.Errorf("audit: a rule says \"in\" above %v and \"out\" up to %v: "+
			"the first must be at least the second, and both numbers", r.In, r.Out)
	}
	return s.answer(r), nil
}

func (s Scores) answer(r Rule) Answers {
	a := Answers{Games: len(s.In) + len(s.Out)}
	for _, v := range s.In {
		switch {
		case v > r.In:
			a.Right++
		case v <= r.Out:
			a.Wrong++
		}
	}
	for _, v := range s.Out {
		switch {
		case v > r.In:
			a.Wrong++
		case v <= r.Out:
			a.Right++
		}
	}
	return a
}

// leakShare is how much of γ goes to the number of games that δ explains.
const leakShare = 1. / 16

// Epsilon is the ε below which so many right answers refute (ε,δ)-DP, except with probability γ.
//
// Given the score, the odds of a fair bit are at most e^ε : 1 under ε-DP. So given all scores, and
// with them how many answers there are, Right is stochastically below a Binomial(Right + Wrong,
// e^ε/(1+e^ε)), and ε is the log-odds of its Clopper–Pearson lower bound. Both sides' answers and
// both sides' errors are in this one count, where bounds on the two rates (Region) cost half of γ
// each and use the errors of one side. For Laplace noise at ε = 3 it is off by half as much.
//
// With δ: a right answer has probability c ≤ e^ε·w + δ, w that of a wrong one, because P(above In
// given in) ≤ e^ε·P(above In given out) + δ, the same for the other side, and the bit is fair. Call
// a right answer leaked with probability (c − e^ε·w)⁺/c. Leaked ones are stochastically below a
// Binomial(Games, δ), and among the other answers right ones have odds of at most e^ε. So
// γ/16 bounds the leaked ones, which are taken away from Right, and the rest of γ is as without δ.
func (a Answers) Epsilon(gamma, delta float64) (float64, error) {
	if err := checkGamma(gamma); err != nil {
		return 0, err
	}
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	if a.Right < 0 || a.Wrong < 0 || a.Games < 1 || a.Right > a.Games-a.Wrong {
		return 0, fmt.Errorf("audit: %d right and %d wrong answers in %d games: impossible",
			a.Right, a.Wrong, a.Games)
	}
	right := a.Right
	if delta > 0 {
		right -= leaks(a.Games, delta, leakShare*gamma)
		gamma -= leakShare * gamma
	}
	if right <= 0 {
		return 0, nil
	}
	wrong := upper(a.Wrong, right+a.Wrong, gamma)
	return max(0, math.Log((1-wrong)/wrong)), nil
}

// leaks is the smallest l with P(Binomial(n, p) > l) ≤ tail.
func leaks(n int, p, tail float64) int {
	return 1 + searchLast(n, func(l int) bool {
		return mathext.RegIncBeta(float64(l+1), float64(n-l), p) > tail
	})
}

// Rule chooses, on games that are not tested, the rule that promises most ε at δ for a test of so
// many games at error probability γ. There must be a game on each side.
//
// Where few games with the wrong bit score so high, or so low, their share is that of a tail that
// falls exponentially from the eighth of them on: a count of 0 says too little. Only the choice
// depends on it.
func (s Scores) Rule(games int, gamma, delta float64) (Rule, error) {
	if err := checkGamma(gamma); err != nil {
		return Rule{}, err
	}
	if err := checkDelta(delta); err != nil {
		return Rule{}, err
	}
	if err := s.Validate(); err != nil {
		return Rule{}, err
	}
	r, _ := s.rule(games, gamma, delta)
	return r, nil
}

func (s Scores) rule(games int, gamma, delta float64) (Rule, float64) {
	in, out := sorted(s.In), sorted(s.Out)
	highs := sideOf(in, out)
	flip(in)
	flip(out)
	lows := sideOf(out, in)  // the other side is the same, seen from below
	for i, l := range lows { // "above −t" from below is "below t"
		lows[i].at = math.Nextafter(-l.at, math.Inf(-1))
	}
	z := -quantile(gamma)
	n := float64(len(in) + len(out))
	grow := float64(games) / n
	best, rule := math.Inf(-1), Rule{math.Inf(1), math.Inf(-1)}
	for _, h := range highs {
		for _, l := range lows {
			if l.at > h.at {
				continue
			}
			right := h.right + l.right - float64(n*delta)
			wrong := h.wrong + l.wrong
			if !(right > 0) {
				continue
			}
			answers := right + wrong
			p, c := wrong/answers, z*z/(answers*grow)
			u := (p + c/2 + math.Sqrt(c*(p*(1-p)+c/4))) / (1 + c)
			e := math.Log((1-u)/u) - doubt/math.Sqrt(max(sure, float64(wrong*(1-p))))
			if e > best {
				best, rule = e, Rule{h.at, l.at}
			}
		}
	}
	return rule, best
}

// A side is a threshold and how many games of both bits are above it.
type side struct {
	at           float64
	right, wrong float64
}

const (
	few   = 8  // games of which a tail is made
	cells = 64 // thresholds of each side's scores, beside those far out
	// A rule's log-odds are lowered by so many standard errors of the games that it is chosen on,
	// else the luckiest of some thousand pairs is chosen and not the best. sure is how many wrong
	// answers a tail is worth in that.
	doubt, sure = 3, 2.5
)

// sideOf are thresholds for the bit of right, both sorted, and one above which is nothing.
func sideOf(right, wrong []float64) []side {
	var at []float64
	for _, x := range [][]float64{right, wrong} {
		n := len(x)
		for i := range cells {
			at = append(at, x[i*n/cells])
		}
		for _, k := range ranks(n, 1.3) {
			at = append(at, x[n-1-k])
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	above := func(x []float64, t float64) float64 {
		i, _ := slices.BinarySearchFunc(x, t, func(v, t float64) int {
			if v > t {
				return 1
			}
			return -1
		})
		return float64(len(x) - i)
	}
	n := len(wrong)
	k := min(few, n)
	from := wrong[n-k]
	excess := 0.0
	for _, v := range wrong[n-k:] {
		excess += (v - from) / float64(k)
	}
	sides := []side{{math.Inf(1), 0, 0}}
	for _, t := range at {
		s := side{t, above(right, t), above(wrong, t)}
		if s.wrong < float64(k) && t >= from && excess > 0 && !math.IsInf(excess, 1) {
			s.wrong = float64(k) * math.Exp(-(t-from)/excess)
		}
		sides = append(sides, s)
	}
	return sides
}

// flip turns sorted scores upside down.
func flip(x []float64) {
	slices.Reverse(x)
	for i := range x {
		x[i] = -x[i]
	}
}

// searchShare is the part of the games on which SplitOdds chooses.
const searchShare = 0.15

// Odds chooses a rule on 0.15 of the games, and tests it on the others with all of γ: a lower bound
// on ε at δ that counts all games, those of the search too. The bits must be fair coins, one for
// each game, as those of Play are, and not two sides of fixed sizes. There must be one game of each
// side in each part.
func (s Scores) Odds(gamma, delta float64) (float64, Rule, error) {
	if err := checkGamma(gamma); err != nil {
		return 0, Rule{}, err
	}
	if err := checkDelta(delta); err != nil {
		return 0, Rule{}, err
	}
	if err := s.Validate(); err != nil {
		return 0, Rule{}, err
	}
	search, test := s.part(searchShare)
	if len(search.In) == 0 || len(search.Out) == 0 {
		return 0, Rule{}, fmt.Errorf("audit: %w to choose a rule: %d with the target and %d "+
			"without it", ErrNoGames, len(s.In), len(s.Out))
	}
	r, _ := search.rule(len(test.In)+len(test.Out), gamma, delta)
	e, err := test.answer(r).Epsilon(gamma, delta)
	return e, r, err
}

// part takes a share of the games, whatever their bits are: as many of each side as a draw of games
// without replacement has, so that the bits of the others are fair coins as before.
func (s Scores) part(share float64) (taken, left Scores) {
	src := noise.NewFast(1, uint64(len(s.In)+len(s.Out)))
	m, n := len(s.In), len(s.Out)
	i, o := 0, 0
	for range int(math.Ceil(share * float64(m+n))) {
		if src.Float64()*float64(m-i+n-o) < float64(m-i) {
			i++
		} else {
			o++
		}
	}
	return Scores{s.In[:i], s.Out[:o]}, Scores{s.In[i:], s.Out[o:]}
}
