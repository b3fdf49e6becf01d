package play

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/sotto-dp/sotto/release"
)

// A Queue is the decisions of one arm, or of all contexts, that have not been released: numbers Head to Issued−1, kept
// as the sums of segments. Everything but the segments' Sum and Came is public.
type Queue struct {
	Head   int  // the first decision that has not been released
	Issued int  // the number of the next decision
	Off    bool // the arm was taken off
	Asked  int  // how many of the queue the policy has asked for since the arm's last release
	// Runs says which epoch the numbers from From on, to the next run's, were handed out in.
	Runs     []Run
	Segments []Segment

	lost  int // by all segments
	ahead int // before Head, that were released ahead of a batch
}

// A Run is a row of decisions of one epoch.
type Run struct {
	From  int
	Epoch Epoch
}

// A Segment is a row of decisions whose rewards are kept as one sum. It is released as a whole
// or not at all, so that where it ends is fixed by counts and by the clock, before anybody
// could know its sum.
type Segment struct {
	Start   int     // the number of its first decision
	End     int     // the number after its last; 0: not fixed yet
	Cut     int64   // when the clock fixes the end; in joint batches, after how many decisions of all arms
	Settles int64   // when the windows of all its decisions so far have passed
	Sum     int64   // of the rewards that came, in steps of release.ExactStep
	More    []int64 // the same of each metric, or see Live.Segment; nil if no reward came
	Cells   []Set   `json:",omitempty"` // by cell, its decisions, less Start
	Came    Set     // the decisions whose rewards came, less Start
	Gone    Set     // the decisions that were withdrawn, less Start
	// Totals are those of decisions of which several reports can count, less Start
	Totals map[int]Total `json:",omitempty"`

	lost   int  // how many of its decisions count nowhere
	lapsed bool // and they are all known
}

// whole says that no decision joins the segment any more.
func (s *Segment) whole(issued int) bool { return s.End > 0 && issued >= s.End }

// A Set is a set of small numbers, a bit each.
type Set []uint64

// Has says whether i ≥ 0 is in the set.
func (s Set) Has(i int) bool { return i>>6 < len(s) && s[i>>6]>>(i&63)&1 == 1 }

// Len is how many numbers are in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// common is how many numbers are in both sets.
func (s Set) common(other Set) int {
	n := 0
	for i := range min(len(s), len(other)) {
		n += bits.OnesCount64(s[i] & other[i])
	}
	return n
}

func (s *Set) add(i int) {
	for i>>6 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

// decide gives out the queue's next number. End is where the segment that holds it ends if that is
// known, 0 if not, and target where it ends because nobody has asked for more.
func (q *Queue) decide(deadline, cut int64, end func(start int) int, target int) int {
	n := q.Issued
	if len(q.Segments) == 0 || q.last().whole(n) {
		q.Segments = append(q.Segments, Segment{Start: n, End: end(n), Cut: cut, Settles: deadline})
	}
	s := q.last()
	s.Settles = max(s.Settles, deadline)
	q.Issued++
	if s.End == 0 && q.Issued == target {
		s.End = target
	}
	return n
}

// tick lets the clock cut the last segment.
func (q *Queue) tick(now int64) {
	if len(q.Segments) > 0 {
		if s := q.last(); s.End == 0 && now >= s.Cut {
			s.End = q.Issued
		}
	}
}

func (q *Queue) last() *Segment { return &q.Segments[len(q.Segments)-1] }

// ask adds n decisions to those that are wanted. If they are to be released and end inside the last
// segment, it ends with what is in it.
func (q *Queue) ask(n int, released bool) {
	q.Asked = plus(q.Asked, n)
	if !released || len(q.Segments) == 0 {
		return
	}
	if s := q.last(); s.End == 0 && q.target() <= q.Issued && q.target() > s.Start {
		s.End = q.Issued
	}
}

// target is the number after the last decision that the policy has asked for, if no more of those
// that were made are lost.
func (q *Queue) target() int { return plus(q.Head-q.ahead, plus(q.Asked, q.lost)) }

// lose says of a segment how many of its decisions count nowhere.
func (q *Queue) lose(s *Segment, lost int) {
	q.lost += lost - s.lost
	s.lost = lost
}

// lapse loses the decisions whose reward did not come, of segments that have settled: whole ones, or in
// the end all.
func (q *Queue) lapse(now int64, all bool) {
	for i := range q.Segments {
		if s := &q.Segments[i]; !s.lapsed && (all || s.whole(q.Issued)) && now >= s.Settles {
			s.lapsed = true
			q.lose(s, min(s.until(), q.Issued)-s.Start-s.Came.Len()+s.Came.common(s.Gone))
		}
	}
}

// enough is how many of the oldest segments hold n decisions that count, and when the last of them
// settles; ok is false if their decisions have not all been made.
func (q *Queue) enough(n int) (k int, settles int64, ok bool) {
	have := 0
	for k < len(q.Segments) && q.Segments[k].whole(q.Issued) {
		s := &q.Segments[k]
		settles = max(settles, s.Settles)
		have += s.End - s.Start - s.lost
		if k++; have >= n {
			return k, settles, true
		}
	}
	return 0, 0, false
}

// find is the segment of a decision that is in the queue.
func (q *Queue) find(number int) *Segment {
	if number < q.Head || number >= q.Issued {
		return nil
	}
	i := sort.Search(len(q.Segments), func(i int) bool { return q.Segments[i].Start > number }) - 1
	return &q.Segments[i]
}

// held is the segment of a ticket whose window is open, or nil and the answer to who has it.
func (q *Queue) held(t Ticket, now int64) (*Segment, Status) {
	switch {
	case t.Number < 0 || t.Number >= q.Issued || t.Number >= q.Head && q.epoch(t.Number) != t.Epoch:
		return nil, Void
	case now >= t.Deadline || t.Number < q.Head:
		return nil, Late
	}
	if s := q.find(t.Number); !s.lapsed {
		return s, Accepted
	}
	return nil, Late
}

// since is a copy without the sets, of the segments from that of a decision on.
func (q Queue) since(from int) Queue {
	q.Runs = slices.Clone(q.Runs)
	first := 0
	for i := len(q.Segments) - 1; i > 0 && first == 0; i-- {
		if q.Segments[i].Start <= from {
			first = i
		}
	}
	q.Segments = slices.Clone(q.Segments[first:])
	for i := range q.Segments {
		s := &q.Segments[i]
		s.Came, s.Gone, s.Totals, s.Cells = nil, nil, nil, nil
	}
	return q
}

// epoch is that of a decision in the queue.
func (q *Queue) epoch(number int) Epoch {
	i := sort.Search(len(q.Runs), func(i int) bool { return q.Runs[i].From > number }) - 1
	return q.Runs[i].Epoch
}

// take removes the k oldest segments, and gives how many of their decisions count, n, and the sums of
// their rewards and metrics, with so many steps for each that did not come. A reward that came before
// its decision was withdrawn stays in the sum, which keeps no single rewards to take it out of; the
// decision is not in n. Where the sum S is then more than n rewards can be, it is cut to n:
//
//   - All that is cut was withdrawn. Those that count add up to T ≤ n, as each is at most 1, so what is
//     cut, S − n, is at most S − T, which is of withdrawn decisions alone. And T ≤ min(S, n) ≤ S: to
//     cut is never further from T than not to, and no mean is above 1 before the noise.
//   - It costs no privacy. Counts and withdrawals are the same whatever is reported (with Drop, who
//     reports is told), so neighbours have the same n; one decision's report, also a withdrawn one's,
//     moves S by at most 1; and |min(S, n) − min(S', n)| ≤ |S − S'|. So the sensitivity is 1, whatever
//     others report.
func (q *Queue) take(k int, missing []int64) (n int, sums []int64) {
	head := q.Head
	sums = make([]int64, len(missing))
	for i := range q.Segments[:k] {
		s := &q.Segments[i]
		size, absent := min(s.until(), q.Issued)-s.Start, 0
		head, n = head+size, n+size-s.lost
		if !s.lapsed {
			absent = size - s.Came.Len() - s.lost + s.Came.common(s.Gone)
		}
		if sums[0] += s.Sum; s.Cells == nil { // else they are by cell, see parts
			for j, x := range s.More {
				sums[1+j] += x
			}
		}
		for j, x := range missing {
			sums[j] += x * int64(absent)
		}
		q.lose(s, 0)
	}
	q.Segments = slices.Delete(q.Segments, 0, k)
	q.advance(head)
	for j := range sums {
		sums[j] = min(sums[j], int64(n)*oneStep)
	}
	return n, sums
}

// oneStep is a reward of 1, in steps.
const oneStep = int64(1 / release.ExactStep)

// advance makes the decision of this number the first one in the queue.
func (q *Queue) advance(head int) {
	q.Head, q.Asked = head, 0
	for len(q.Runs) > 1 && q.Runs[1].From <= q.Head {
		q.Runs = q.Runs[1:]
	}
}

// plus is a sum of counts that stays at the largest there is.
func plus(a, b int) int {
	if c := a + b; c >= a {
		return c
	}
	return int(^uint(0) >> 1)
}
