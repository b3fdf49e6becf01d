package audit

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
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

// oneSided says that only one of the answers is ever given.
func (r Rule) oneSided() bool { return math.IsInf(r.In, 1) || math.IsInf(r.Out, -1) }

// Answers are how a Rule did in Games independent games whose bits were fair coins. It answered in
// Right + Wrong of them.
type Answers struct {
	Games, Right, Wrong int
	OneSided            bool // all answers are the same
}

// Answer lets a rule answer all games. The rule must not have been chosen on their bits; it may
// depend on all their scores, and on anything else.
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
	a := Answers{Games: len(s.In) + len(s.Out), OneSided: r.oneSided()}
	for _, v := range s.In {
		switch {
		case v > r.In:
			a.Right++
		case v <= r.Out && !math.IsInf(r.Out, -1):
			a.Wrong++
		}
	}
	for _, v := range s.Out {
		switch {
		case v > r.In:
			a.Wrong++
		case v <= r.Out && !math.IsInf(r.Out, -1):
			a.Right++
		}
	}
	return a
}

// leakShare is how much of γ goes to the number of games that δ explains: a third of it each to all
// of them, to those with the target and to those without it.
const leakShare = 1. / 16

// leaked bounds how many right answers δ explains, of two answers or of one alone. All three bounds
// hold together except with probability leakShare·γ, so that a rule may be chosen by scores and by
// bits of games that it does not answer.
func leaked(games int, delta, gamma float64) (two, one int) {
	if delta == 0 {
		return 0, 0
	}
	two = leaks(games, delta, leakShare*gamma/3)
	return two, min(two, leaks(games, delta/2, leakShare*gamma/3))
}

// Epsilon is the ε below which so many right answers refute (ε,δ)-DP, except with probability γ.
//
// An (ε,δ)-DP pair of laws is a randomisation of the following (Kairouz, Oh and Viswanath 2015, by
// Blackwell): with probability δ the bit is told, the game is a leak; else it is told with
// probability e^ε/(1+e^ε), and the other bit with the rest. So leaks are independent of bits, and
// given all scores and which games are leaks, the bits of the other games are independent, each
// with odds of at most e^ε : 1. Whichever of those games are answered, by a choice that depends on
// all this and on bits of games that are not answered, the right answers among so many are
// stochastically below a Binomial(answers, e^ε/(1+e^ε)). Leaks are a Binomial(Games, δ), those with
// the target a Binomial(Games, δ/2): γ/16 bounds them. A bound falls as Right does, and as Wrong
// rises, so all that there may be are taken away from Right and none from Wrong, and ε is the
// log-odds of the Clopper–Pearson lower bound of the rest, with the rest of γ.
//
// Both sides' answers and both sides' errors are in this one count, where bounds on the two rates
// (Region) cost half of γ each and use the errors of one side.
//
// With sides of fixed sizes bits are not independent given the scores, and this is not proved:
// see Coins.
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
	two, one := leaked(a.Games, delta, gamma)
	return a.epsilon(gamma, delta, two, one), nil
}

func (a Answers) epsilon(gamma, delta float64, two, one int) float64 {
	right := a.Right - two
	if a.OneSided {
		right = a.Right - one
	}
	if right <= 0 {
		return 0
	}
	if delta > 0 {
		gamma -= leakShare * gamma
	}
	wrong := upper(a.Wrong, right+a.Wrong, gamma)
	return max(0, math.Log((1-wrong)/wrong))
}

// between is the ε of the answers as they are, and with as few wrong ones as one may have except
// with probability γ. It is NaN if nobody would take them for a sign of the bit.
func (a Answers) between(gamma, delta float64) (estimate, high float64) {
	leak := float64(a.Games) * delta
	if a.OneSided {
		leak /= 2
	}
	right := float64(a.Right) - leak
	if right <= 0 {
		return math.NaN(), math.Inf(1)
	}
	least := 1 - upper(a.Right, a.Right+a.Wrong, gamma) // of the share of wrong ones
	n := float64(a.Right + a.Wrong)
	return max(0, math.Log(right/float64(a.Wrong))), max(0, math.Log((n*(1-least)-leak)/(n*least)))
}

// leaks is the smallest l with P(Binomial(n, p) > l) ≤ tail.
func leaks(n int, p, tail float64) int {
	return 1 + searchLast(n, func(l int) bool {
		return mathext.RegIncBeta(float64(l+1), float64(n-l), p) > tail
	})
}

// pilotShare is the part of the games on which Odds begins to choose.
const pilotShare = 0.1

// Odds is a lower bound on ε at δ that counts all games, those of the search too. A tenth of them
// is where it begins to choose a rule; then it looks at the bits of games that no rule near the
// best would answer, chooses again, and so on. It tests the last rule on all games whose bits it
// has not looked at, with all of γ: for the proof see Answers.Epsilon. The answers are those of the
// test.
//
// The bits must be fair coins, one for each game, and both sides in the order in which the games
// were played, or in any that says nothing of the scores, as Play returns them. For sides of fixed
// sizes see Coins. The error matches ErrConstantScore if there is nothing to choose.
func (s Scores) Odds(gamma, delta float64) (float64, Rule, Answers, error) {
	if err := checkGamma(gamma); err != nil {
		return 0, Rule{}, Answers{}, err
	}
	if err := checkDelta(delta); err != nil {
		return 0, Rule{}, Answers{}, err
	}
	if err := s.Validate(); err != nil {
		return 0, Rule{}, Answers{}, err
	}
	pilot, test := s.part(pilotShare, draw(s))
	e, r, a := odds(pilot, test, gamma, delta)
	return e, r, a, nil
}

// odds is Odds with a pilot of other games of the same law.
func odds(pilot, test Scores, gamma, delta float64) (float64, Rule, Answers) {
	x := newSearched(pilot, test, gamma, delta)
	x.best()
	for _, room := range []float64{2, 1.5, 1.25} {
		x.see(room)
		x.best()
	}
	a := x.answers()
	return a.epsilon(gamma, delta, x.two, x.one), x.rule(), a
}

// draw is a source that scores choose, the same for the same scores: a stand-in for one that is
// independent of the games. One for each number of games would be none: it would have too many bits of
// one side in every pilot of that size, and too few in what is left.
func draw(all ...Scores) *noise.Fast {
	h := fnv.New64a()
	var b [8]byte
	for _, s := range all {
		for _, x := range [][]float64{s.In, s.Out} {
			binary.LittleEndian.PutUint64(b[:], uint64(len(x)))
			h.Write(b[:])
			for _, v := range x {
				binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
				h.Write(b[:])
			}
		}
	}
	src := noise.NewFast(1, h.Sum64())
	return &src
}

// part takes a share of the games, whatever their bits are: as many of each side as a draw of games
// without replacement has, so that the bits of the others are fair coins as before.
func (s Scores) part(share float64, src *noise.Fast) (taken, left Scores) {
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

// Coins thins games whose sides were given sizes, half of them with the target for instance, to
// games with fair coins: as many of each side as so many coins show, at random. So many coins are
// tossed that they ask for more games of a side than there are with a probability below 10⁻⁹, which
// is to be added to γ: about six standard deviations of their heads are lost on each side.
//
// Given all scores, bits of fixed sums are not independent: with as many answers of each kind, the
// right ones of n + n games are even in number, and an odd one refutes nothing. So Answers.Epsilon,
// whose proof is given the scores, does not hold as it is.
func (s Scores) Coins(key noise.Key) (Scores, error) {
	if err := s.Validate(); err != nil {
		return Scores{}, err
	}
	m, n := len(s.In), len(s.Out)
	// The sum of both tails at k coins: more than m heads, or more than n tails.
	k := 1 + searchLast(m+n, func(k int) bool {
		k++
		tail := 0.0
		for _, most := range []int{m, n} {
			if most < k {
				tail += mathext.RegIncBeta(float64(most+1), float64(k-most), 0.5)
			}
		}
		return tail < 1e-9
	})
	src := &key.Fast(1)[0]
	heads := 0
	for range k {
		heads += int(src.Uint64() >> 63)
	}
	out := Scores{slices.Clone(s.In), slices.Clone(s.Out)}
	for _, x := range [][]float64{out.In, out.Out} {
		for i := range x {
			j := i + min(len(x)-1-i, int(src.Float64()*float64(len(x)-i)))
			x[i], x[j] = x[j], x[i]
		}
	}
	out.In, out.Out = out.In[:min(heads, m)], out.Out[:min(k-heads, n)]
	return out, nil
}
