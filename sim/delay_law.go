package sim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/noise"
)

// A DelayLaw says how late rewards are, in rounds, as a value: Delay makes a run's Delay of it. The
// zero value is none, and rewards come at once.
//
// A reward that is d rounds late counts if d is below Window, and if not the round counts Default.
// Nothing is released before the windows of its rewards have passed, so that when a reward comes
// inside its window makes no difference: the law says which share comes in time.
type DelayLaw struct {
	Window  int     // at least 1, where rewards are there before the next round
	Default float64 // in the declared range
	Law     string  // one of DelayLaws; empty: all rewards come in time
	Mean    float64 // of the law, but for DelayEmpirical; above 0, or from 0 for DelayConstant
	// of DelayEmpirical: whole rounds from 0, and the share of rewards that are so late. Shares add
	// up to 1.
	Rounds, Share []float64
	Missing       float64 // share of the rewards that never come, whatever the law, in [0,1)
}

// The laws of delays.
const (
	DelayConstant  = "constant"  // Mean, a whole number
	DelayGeometric = "geometric" // on 0, 1, 2, …
	DelayUniform   = "uniform"   // on 0, …, 2·Mean, a whole number
	DelayEmpirical = "empirical"
)

// DelayLaws are the values of DelayLaw.Law.
func DelayLaws() []string {
	return []string{DelayConstant, DelayGeometric, DelayUniform, DelayEmpirical}
}

// MaxDelays is how many rounds an empirical law may list.
const MaxDelays = 10_000

// maxDelay bounds windows, means and rounds.
const maxDelay = min(1<<53, math.MaxInt/4)

// On says that there is a delay.
func (l DelayLaw) On() bool { return l.Window != 0 }

// Check finds what is wrong with the law where rewards are in [lo, hi], and in which field, by its
// name in experiment files: window, default, law, mean, rounds, share or missing.
func (l DelayLaw) Check(lo, hi float64) (field string, err error) {
	own := l.Law == DelayEmpirical
	switch {
	case l.Window < 1 || l.Window > maxDelay:
		return "window", fmt.Errorf("is %d, must be a whole number from 1 to %d", l.Window, maxDelay)
	case !(l.Default >= lo && l.Default <= hi):
		return "default", fmt.Errorf("is %v, must be in the range, from %v to %v", l.Default, lo, hi)
	case !(l.Missing >= 0 && l.Missing < 1):
		return "missing", fmt.Errorf("is %v, must be at least 0 and below 1", l.Missing)
	case l.Law != "" && !slices.Contains(DelayLaws(), l.Law):
		return "law", fmt.Errorf("is %q, must be %s", l.Law, strings.Join(DelayLaws(), ", "))
	case l.Mean != 0 && (own || l.Law == ""):
		return "mean", fmt.Errorf("is %v, and law is %q: it is for %s", l.Mean, l.Law,
			strings.Join(DelayLaws()[:3], ", "))
	case l.Rounds != nil && !own:
		return "rounds", fmt.Errorf("is for law %s, and law is %q", DelayEmpirical, l.Law)
	case l.Share != nil && !own:
		return "share", fmt.Errorf("is for law %s, and law is %q", DelayEmpirical, l.Law)
	}
	switch l.Law {
	case DelayConstant:
		if !wholeDelay(l.Mean) {
			return "mean", fmt.Errorf("is %v, must be a whole number of rounds from 0 to %d", l.Mean, maxDelay)
		}
	case DelayGeometric:
		if !(l.Mean > 0 && l.Mean <= maxDelay) {
			return "mean", fmt.Errorf("is %v, must be a number of rounds above 0, to %d", l.Mean, maxDelay)
		}
	case DelayUniform:
		if !(l.Mean > 0 && wholeDelay(2*l.Mean)) {
			return "mean", fmt.Errorf("is %v, must be a whole or a half number of rounds above 0, to %d",
				l.Mean, maxDelay/2)
		}
	case DelayEmpirical:
		if field, err := l.checkShares(); err != nil {
			return field, err
		}
	}
	if l.Late() >= 1 {
		return "window", fmt.Errorf("is %d, must be longer: no reward comes in it", l.Window)
	}
	return "", nil
}

func wholeDelay(x float64) bool { return x >= 0 && x <= maxDelay && x == math.Trunc(x) }

func (l DelayLaw) checkShares() (field string, err error) {
	if n := len(l.Rounds); n == 0 || n > MaxDelays {
		return "rounds", fmt.Errorf("has %d numbers, must have from 1 to %d", n, MaxDelays)
	}
	if len(l.Share) != len(l.Rounds) {
		return "share", fmt.Errorf("has %d numbers, must have one for each of the %d rounds",
			len(l.Share), len(l.Rounds))
	}
	sum := 0.0
	for i, x := range l.Rounds {
		if !wholeDelay(x) {
			return fmt.Sprintf("rounds[%d]", i), fmt.Errorf("is %v, must be a whole number of rounds "+
				"from 0 to %d", x, maxDelay)
		}
		if !(l.Share[i] >= 0 && l.Share[i] <= 1) {
			return fmt.Sprintf("share[%d]", i), fmt.Errorf("is %v, must be a share from 0 to 1", l.Share[i])
		}
		sum += l.Share[i]
	}
	if math.Abs(sum-1) > 1e-6 {
		return "share", fmt.Errorf("adds up to %v, must add up to 1: what never comes is missing", sum)
	}
	return "", nil
}

// Late is the probability that a reward does not come in its window, that it never comes included.
func (l DelayLaw) Late() float64 {
	w, late := float64(l.Window), 0.0
	switch l.Law {
	case DelayConstant:
		if l.Mean >= w {
			late = 1
		}
	case DelayGeometric:
		late = math.Exp(-w * math.Log1p(1/l.Mean))
	case DelayUniform:
		n := float64(2*l.Mean) + 1
		late = max(0, n-w) / n
	case DelayEmpirical:
		for i, x := range l.Rounds {
			if x >= w {
				late += l.Share[i]
			}
		}
	}
	return l.Missing + float64((1-l.Missing)*min(late, 1))
}

// String is the delay on one line; empty if there is none.
func (l DelayLaw) String() string {
	if !l.On() {
		return ""
	}
	s := fmt.Sprintf("window %d", l.Window)
	switch l.Law {
	case "":
	case DelayEmpirical:
		s = fmt.Sprintf("%s of %d, %s", l.Law, len(l.Rounds), s)
	default:
		s = fmt.Sprintf("%s of mean %s, %s", l.Law, strconv.FormatFloat(l.Mean, 'g', -1, 64), s)
	}
	if late := l.Late(); late > 0 {
		s += fmt.Sprintf("; %.3g %% do not come in it and count %s", 100*late,
			strconv.FormatFloat(l.Default, 'g', -1, 64))
	}
	return s
}

// Delay is that of a run: how late its rewards are is drawn from the stream.
func (l DelayLaw) Delay(s *noise.Fast) Delay {
	out := Delay{Window: l.Window, Default: l.Default}
	if l.Late() == 0 {
		return out
	}
	draw := l.draw(s)
	out.After = func() int {
		if l.Missing > 0 && s.Float64() < l.Missing {
			return l.Window
		}
		return int(min(draw(), maxDelay))
	}
	return out
}

// draw draws from the law.
func (l DelayLaw) draw(s *noise.Fast) func() int64 {
	switch l.Law {
	case DelayConstant:
		return func() int64 { return int64(l.Mean) }
	case DelayGeometric:
		scale := 1 / math.Log1p(1/l.Mean)
		return func() int64 { return s.Geometric(scale) }
	case DelayUniform:
		n := float64(2*l.Mean) + 1
		return func() int64 { return int64(s.Float64() * n) }
	case DelayEmpirical:
		upto, sum := make([]float64, len(l.Share)), 0.0
		for i, p := range l.Share {
			sum += p
			upto[i] = sum
		}
		return func() int64 {
			x := float64(s.Float64() * sum)
			i, found := slices.BinarySearch(upto, x)
			for found && i < len(upto) && upto[i] == x { // x is below the end of its own part
				i++
			}
			return int64(l.Rounds[min(i, len(l.Rounds)-1)])
		}
	}
	return func() int64 { return 0 }
}
