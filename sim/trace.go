package sim

import (
	"slices"
	"sort"

	"github.com/sotto-dp/sotto/policy"
)

// A Segment is a stretch of rounds in which the plays take turns in their public order
// (policy.Batch.Counts), cut after Length rounds. Most have one play: one arm, first round, length.
type Segment struct {
	Round  int // the first, counted from 1
	Length int
	Plays  []policy.Play
}

// A Trace is a run as a list of segments: exact, and evaluated at whatever rounds a plot wants.
// Policies that decide each round make a segment whenever they change arms; keep a trace of those
// for short runs only.
type Trace struct{ Segments []Segment }

func (t *Trace) add(b *policy.Batch, before, m int) {
	if n := len(t.Segments); n > 0 && len(b.Plays) == 1 {
		if s := &t.Segments[n-1]; len(s.Plays) == 1 && s.Plays[0].Arm == b.Plays[0].Arm {
			s.Length += m
			s.Plays[0].Rounds = s.Length
			return
		}
	}
	plays := slices.Clone(b.Plays)
	if len(plays) == 1 {
		plays[0].Rounds = m
	}
	t.Segments = append(t.Segments, Segment{Round: before + 1, Length: m, Plays: plays})
}

// Plays writes into count, one entry an arm, how often each arm was played in the first m rounds.
func (t *Trace) Plays(m int, count []int) {
	clear(count)
	var k []int
	for i := range t.Segments {
		s := &t.Segments[i]
		n := min(m-(s.Round-1), s.Length)
		if n <= 0 {
			return
		}
		b := policy.Batch{Plays: s.Plays}
		k = slices.Grow(k[:0], len(s.Plays))[:len(s.Plays)]
		b.Counts(n, k)
		for j := range s.Plays {
			count[s.Plays[j].Arm] += k[j]
		}
	}
}

// Arm is the arm played in a round, counted from 1; −1 outside the trace.
func (t *Trace) Arm(round int) int {
	i := sort.Search(len(t.Segments), func(i int) bool { return t.Segments[i].Round > round }) - 1
	if i < 0 || round >= t.Segments[i].Round+t.Segments[i].Length {
		return -1
	}
	s := &t.Segments[i]
	b := policy.Batch{Plays: s.Plays}
	before, after := make([]int, len(s.Plays)), make([]int, len(s.Plays))
	b.Counts(round-s.Round, before)
	b.Counts(round-s.Round+1, after)
	for j := range after {
		if after[j] > before[j] {
			return s.Plays[j].Arm
		}
	}
	return -1
}
