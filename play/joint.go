package play

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A Joint policy gives each arm a fixed share of the decisions, and learns by joint batches: rows of
// consecutive decisions of all arms, released together. Whoever decides draws each arm with the
// shares, independently of everything. How many decisions a row has is fixed when it opens, and every
// arm's segment is cut at the very decision that fills it, so that the arms of a row met the same
// times: what a comparison needs that is to hold while means drift. Rows fill one after the other,
// also while earlier ones wait for their windows, and are released in their order. An arm without a
// decision in a row is not in its release.
//
// Each decision is in one row, so in one release; and where rows end depends on the number of
// decisions alone.
type Joint interface {
	policy.Policy
	// Shares are those of the arms that there are after n decisions, for the next one: above 0, and 1 together,
	// and the same for the same n. They change only where a row begins.
	Shares(n int) []float64
	// JointEnd is how many decisions there are, of all arms, when the row ends that begins after the
	// first n: above n, and the same for the same n.
	JointEnd(n int) int
}

// A JointGrower is a Joint policy that can go on with one arm more, which the operator adds.
type JointGrower interface {
	Joint
	// JoinAt has an arm more, whose number is that after the last, with this share of the decisions from n on,
	// where a row begins of which nothing was asked for yet; or it says why not, and nothing has changed. Of what any
	// two of the other arms are given, each keeps its share.
	JoinAt(n int, share float64) error
}

// Shares are those with which whoever decides is to draw the next arm, to be read only: 0 of an arm whose row has
// not begun. They are nil if Arm says what is played.
func (l *Live) Shares() []float64 {
	if l.rows == nil {
		return nil
	}
	return l.rows.shares
}

// rows are the joint batches of a play. A decision's segment has in Cut where its row ends: the clock
// of joint batches is the number of decisions.
type rows struct {
	Joint
	shares []float64 // of the next decision, by arm
	made   int64     // decisions so far, of all arms
	end    int64     // with how many the row ends that they are in
	out    int64     // with how many the row ends that is released next
	joined int64     // with how many the last arm begins that was added
}

// after is where the row ends that begins after n decisions.
func (r *rows) after(n int64) int64 {
	return min(int64(r.JointEnd(int(min(n, math.MaxInt)))), maxTime)
}

// at are the shares after n decisions, 0 of arms that come later.
func (r *rows) at(n int64, arms int) []float64 {
	shares := r.Shares(int(min(n, math.MaxInt)))
	return append(slices.Clip(shares), make([]float64, max(0, arms-len(shares)))...)
}

// opens is where the first row begins that no decision is in, that is not out, and in which the arms are that were
// added before.
func (r *rows) opens() int64 { return max(r.out, r.end, r.joined) }

// join adds an arm to the policy from a row on.
func (r *rows) join(from int64, share float64) error {
	grower, ok := r.Joint.(JointGrower)
	if !ok {
		return AddsArms(r.Joint)
	}
	if err := grower.JoinAt(int(min(from, math.MaxInt)), share); err != nil {
		return err
	}
	r.joined = from
	return nil
}

// isOpening says what is wrong with a line that has an arm begin at a row, after so many decisions were released.
func (r *rows) isOpening(from, released int64) error {
	at := r.after(released)
	for next := r.after(at); at < from && next > at; next = r.after(at) {
		at = next
	}
	if at != from || from < r.joined || from >= maxTime {
		return fmt.Errorf("an arm begins after %d decisions, where no later row does", from)
	}
	return nil
}

// terms are the shares, and where the first rows end.
func (r *rows) terms() string {
	ends, n := [4]int64{}, int64(0)
	for i := range ends {
		n = r.after(n)
		ends[i] = n
	}
	return fmt.Sprint(r.Shares(0), ends)
}

// newRows are those of a policy at its start, which must have a share of each arm.
func newRows(p Joint, arms int) (*rows, error) {
	shares, sum := p.Shares(0), 0.0
	for _, q := range shares {
		if !(q > 0) {
			return nil, fmt.Errorf("play: a share of %T is %v, must be above 0", p, q)
		}
		sum += q
	}
	if len(shares) != arms || math.Abs(sum-1) > 1e-6 {
		return nil, fmt.Errorf("play: %T has %d shares, which add to %v; must have %d that add to 1", p,
			len(shares), sum, arms)
	}
	return &rows{Joint: p, shares: shares}, nil
}

// decide gives out the next number of an arm, and has the row cut that is full with it.
func (r *rows) decide(queues []Queue, arm int, deadline int64) int {
	if r.made == r.end {
		r.end = r.after(r.made)
	}
	n := queues[arm].decide(deadline, r.end, func(int) int { return 0 }, 0)
	if r.made++; r.made == r.end {
		for a := range queues {
			queues[a].tick(r.made)
		}
		r.shares = r.at(r.made, len(queues))
	}
	return n
}

// enough is Queue.enough for the row that is out: the arm's segment in it, if it has one.
func (r *rows) enough(q *Queue) (k int, settles int64, ok bool) {
	switch {
	case r.made < r.out:
		return 0, 0, false
	case len(q.Segments) == 0 || q.Segments[0].Cut != r.out:
		return 0, -maxTime, true
	}
	return 1, q.Segments[0].Settles, q.Segments[0].whole(q.Issued)
}

// resume finds the rows of a state, and says what no state with rows has. It tells no sum.
func (r *rows) resume(queues []Queue) error {
	r.made = 0
	for _, q := range queues {
		r.made += int64(q.Issued)
	}
	r.end = released(queues)
	next := make([]int, len(queues)) // the segment of each arm that is to be in a row
	for r.end < r.made {
		from, n := r.end, int64(0)
		r.end = r.after(from)
		for a, q := range queues {
			if next[a] == len(q.Segments) || q.Segments[next[a]].Cut != r.end {
				continue
			}
			s := q.Segments[next[a]]
			if next[a]++; s.whole(q.Issued) != (r.end <= r.made) || s.End > q.Issued {
				return fmt.Errorf("a segment of arm %d does not end with its joint batch", a)
			}
			n += int64(min(q.Issued, s.until()) - s.Start)
		}
		if n != min(r.end, r.made)-from {
			return fmt.Errorf("the joint batch of decisions %d to %d has %d", from, r.end-1, n)
		}
	}
	r.shares = r.at(r.made, len(queues))
	return nil
}

// isPlay says whether a line has what the policy asks for. Of a joint batch it may release nothing of
// an arm.
func (l arms) isPlay(asked, in policy.Play) bool {
	in.Release = in.Release || l.rows != nil && asked.Release
	return asked == in
}

// row holds a line's decisions against the joint batch that comes next, and takes those that are gone of
// the arms that are not in its release.
func (p *past) row(in line, released privacy.Released) error {
	var start int64
	for _, head := range p.heads {
		start += int64(head)
	}
	size := p.of.rows.after(start) - start
	left := size
	take := func(n int) {
		if left >= 0 { // beyond, nothing overflows
			left -= int64(n)
		}
	}
	for _, play := range in.Plays {
		take(play.Gone)
	}
	for i := range released.Len() {
		take(released.N(i))
	}
	if left != 0 {
		return fmt.Errorf("it is not of the %d decisions of its joint batch", size)
	}
	for _, play := range in.Plays {
		if !play.Release {
			p.heads[play.Arm], p.asked[play.Arm] = p.heads[play.Arm]+play.Gone, 0
		}
	}
	return nil
}

// released is how many decisions of all arms are in no queue any more.
func released(queues []Queue) (n int64) {
	for _, q := range queues {
		n += int64(q.Head)
	}
	return n
}

// until is where a segment ends, beyond all decisions if that is not fixed yet.
func (s *Segment) until() int {
	if s.End == 0 {
		return math.MaxInt
	}
	return s.End
}
