package sim

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Intervals ask a run what its releases say of the arms' means in the end, and receive it: each
// interval is one that holds at all times together (interval.Sums.Interval). They change nothing that
// is played.
type Intervals struct {
	Risk  float64   // of each interval by itself, in (0,1)
	Means []float64 // of the arms, rewards clipped to the range: what intervals are held against
	Arms  []Estimate
}

// An Estimate is what a run says of an arm, in units of rewards.
type Estimate struct {
	Plays    int
	Released int // rewards that are in a release
	// Interval is for the arm's mean, and Difference for its mean less that of the first arm with
	// the largest one; of that arm itself it is 0 and 0.
	Interval, Difference [2]float64
	// Held says that the mean was in its interval whenever it was looked at: after releases that
	// have brought one reward more in 64, at least.
	Held bool
	// Plain and PlainDifference are the widths of the same two intervals of all rewards that were
	// played, released or not, without noise: the confidence sequence that nobody's privacy is in.
	Plain, PlainDifference float64
}

// ErrNoInterval is matched by the error of a policy whose releases give no interval.
var ErrNoInterval = errors.New("no interval is known for its releases")

// AdmitIntervals says whether releases by a mechanism give intervals: Laplace or normal noise on
// sums of fresh rewards, or none at all. A counter's running sums have the same noise in one after
// the other, and answers to questions are no sums.
func AdmitIntervals(m privacy.Mechanism) error {
	if d, ok := privacy.DrawsOf(m); ok && d.Sum && (d.Once || d.Law == "") {
		return nil
	}
	return fmt.Errorf("%w: its mechanism is %s, must be laplace, gaussian or none", ErrNoInterval, m.Kind())
}

// A watch is the intervals of a run that goes on. It stands before the curator, and sees rewards.
type watch struct {
	*Intervals
	tally     *play.Tally
	mechanism func() privacy.Mechanism
	curator   release.Curator
	played    []interval.Sums // of all rewards that were drawn, without noise
	next      []int           // rewards of the arm at which it is looked at again
	lo, hi    float64
}

// watched are the intervals of a run, nil if nobody has asked for them, and where its rewards go.
func watched(in *Intervals, cfg Config, p policy.Policy, cur release.Curator, lo, hi float64) (*watch, intake,
	error) {
	if in == nil {
		return nil, cur, nil
	}
	arms := len(cfg.Instance.Arms)
	switch {
	case !(in.Risk > 0 && in.Risk < 1):
		return nil, nil, fmt.Errorf("sim: the risk of intervals is %v, must be above 0 and below 1", in.Risk)
	case len(in.Means) != arms:
		return nil, nil, fmt.Errorf("sim: intervals have %d means for %d arms, must be one an arm",
			len(in.Means), arms)
	case cfg.Unclipped || cfg.Trust != nil || cfg.Instance.Drifts():
		return nil, nil, errors.New("sim: intervals are for clipped rewards of laws that do not change, and " +
			"a server that is believed")
	}
	for _, m := range in.Means {
		if !(m >= lo && m <= hi) {
			return nil, nil, fmt.Errorf("sim: intervals have the mean %v, must be from %v to %v", m, lo, hi)
		}
	}
	if err := AdmitIntervals(p.Mechanism()); err != nil {
		return nil, nil, fmt.Errorf("sim: %w", err)
	}
	w := &watch{Intervals: in, tally: play.NewTally(arms), mechanism: p.Mechanism, curator: cur,
		played: make([]interval.Sums, arms), next: make([]int, arms), lo: lo, hi: hi}
	in.Arms = make([]Estimate, arms)
	for a := range in.Arms {
		in.Arms[a].Held = true
	}
	return w, w, nil
}

// Add implements intake.
func (w *watch) Add(arm int, reward float64) error {
	w.played[arm].N++
	w.played[arm].Sum += w.unit(min(max(reward, w.lo), w.hi))
	return w.curator.Add(arm, reward)
}

// AddSum implements intake: nothing of such a sum is clipped.
func (w *watch) AddSum(arm, n int, sum float64) error {
	w.played[arm].N += n
	w.played[arm].Sum += (sum - float64(float64(n)*w.lo)) / (w.hi - w.lo)
	return w.curator.AddSum(arm, n, sum)
}

func (w *watch) unit(x float64) float64 { return (x - w.lo) / (w.hi - w.lo) }

// learn hears of a release.
func (w *watch) learn(b *policy.Batch, released privacy.Released) error {
	if released.Len() == 0 {
		return nil
	}
	w.tally.Learn(b, released, w.mechanism())
	for _, p := range b.Plays {
		s := w.tally.Sums[p.Arm]
		if !p.Release || s.N < w.next[p.Arm] {
			continue
		}
		w.next[p.Arm] = s.N + s.N/64 + 1
		against, err := s.Against(w.unit(w.Means[p.Arm]))
		if err != nil {
			return err
		}
		if against > -math.Log(w.Risk) {
			w.Arms[p.Arm].Held = false
		}
	}
	return nil
}

// end draws the rewards that no release was made of, and makes the intervals.
func (w *watch) end(f *feed, plays []int) error {
	best := 0
	for a, mean := range w.Means {
		if mean > w.Means[best] {
			best = a
		}
		if n := plays[a] - w.played[a].N; n > 0 {
			f.waiting[a] = n
			if err := f.fill(a); err != nil {
				return err
			}
		}
		w.played[a].Releases = min(1, w.played[a].N)
	}
	width := w.hi - w.lo
	for a := range w.Arms {
		of, s := &w.Arms[a], w.tally.Sums[a]
		of.Plays, of.Released = plays[a], s.N
		lo, hi, err := s.Interval(w.Risk)
		if err != nil {
			return err
		}
		of.Interval = [2]float64{w.lo + float64(width*lo), w.lo + float64(width*hi)}
		if lo, hi, err = w.played[a].Interval(w.Risk); err != nil {
			return err
		}
		of.Plain = width * (hi - lo)
		if a == best {
			continue
		}
		if lo, hi, err = interval.Difference(s, w.tally.Sums[best], w.Risk); err != nil {
			return err
		}
		of.Difference = [2]float64{width * lo, width * hi}
		if lo, hi, err = interval.Difference(w.played[a], w.played[best], w.Risk); err != nil {
			return err
		}
		of.PlainDifference = width * (hi - lo)
	}
	return nil
}
