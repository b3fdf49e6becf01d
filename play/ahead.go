package play

import (
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// What is released ahead. An arm that no release of the batch that is out is of has decisions all the
// same: a floor of traffic gives it some, and so does a batch that waits. When as many of them have
// settled as the policy asks for next of the arm, Close releases these, and the release is held until
// the policy asks for the arm: then its batch is closed with what is held, without another noise. What
// was decided becomes knowledge at once, whoever waits for it, and nobody pays twice.
//
// It tells nothing of a reward. Which rows are released, and when, follows from counts, from deadlines
// and from the clock, like a batch's; each is in one release, and the ledger is charged for it then.
//
// The policy has the same law. It reads of an arm, batch by batch, the sums of rows, each with noise of
// its own, and nothing else of it:
//
//   - Of one that takes exactly what it asks for (Exact), a release of the arm is of the decisions from
//     one end of the schedule to the next, whenever it is made. So the row is the same, and its noise is
//     fresh and of the same law, drawn from nothing that the policy has seen; only when it is drawn, and
//     in which order with others', is another. Given the plays the rows' sums have the law that they
//     had, and so, batch by batch, have the plays, but for how long a batch waits: what is held never
//     waits longer than what is not.
//   - An Exact policy that takes at least n (decisions may be withdrawn) asks for the same n. A batch
//     takes the oldest whole segments that have n decisions; what has settled does not change any more,
//     and more decisions come behind it. So the row is the one that the batch would have taken later.
//   - A Foretold policy says what it asks for at most. A row that has so many answers its batch alone,
//     with one noise; it may be of more decisions than the batch had taken, which a Flexible policy
//     bears. What it never asks for again it never reads, and there half of what has left the queue is
//     waited for, so that noises are few.
//
// Several rows of an arm may be held: they are read in their order. In an arm's next phase there are
// ratio − 1 times as many decisions as were released before it, or fewer. So at each Close, when no row
// is left, at least 1/ratio of what has settled is released, a half where phases double: but of an arm
// that the batch that is out releases, and before the first batch. One row of an arm is released at a
// Close.
//
// Nothing is ahead where rewards that do not come are dropped, since when a row has enough depends on
// reports then. Nor where sums are gathered: a gatherer asks for the sum of a row that a batch would take,
// and might then ask for some of its decisions again, in another row with another noise: two releases.

// A Foretold policy is a Flexible one, without a schedule, that says beforehand what it will ask for.
type Foretold interface {
	Flexible
	// Wants is how much the next batch that releases the arm asks for at most, where the one that is out
	// does not release it, and so many rewards more of the arm come before that one; 0 if none will.
	Wants(arm, more int) int
}

// want is how many decisions of an arm are released ahead, if that many have settled; 0 if none are. Of
// its decisions head have left the queue, and out is the batch that is out.
func (l *Live) want(arm, head int, out []policy.Play) int {
	if l.cfg.Gathering.On() || l.cfg.Drop || slices.ContainsFunc(out, func(p policy.Play) bool {
		return p.Arm == arm && p.Release
	}) {
		return 0
	}
	switch p := l.cfg.Policy.(type) {
	case Exact:
		return p.End(arm, l.ends[arm]) - l.ends[arm]
	case Foretold:
		if n := p.Wants(arm, count(l.ahead[arm])); n > 0 {
			return n
		}
		return max(1, head-head/2)
	}
	return 0
}

// early are the rows that can be released ahead now, by arm.
func (l *Live) early(now int64) (rows []row) {
	for a := range l.s.Arms {
		q := &l.s.Arms[a]
		if l.ending || q.Off || q.Head == q.Issued { // what an end or an arm that is off leaves is the rest
			continue
		}
		n := l.want(a, q.Head, l.s.Batch)
		if n < 1 {
			continue
		}
		q.tick(now)
		if k, settles, ok := q.enough(n); ok && now >= settles {
			rows = append(rows, row{arm: a, asked: n, segments: k})
		}
	}
	return rows
}

// share gives the policy what a line has released for its batch, and what is held for it; what is
// ahead is held from now on.
func (l arms) share(rows []row, as line, got privacy.Released) (privacy.Released, error) {
	for _, r := range rows {
		l.ends[r.arm] = plus(l.ends[r.arm], r.asked)
	}
	var parts []privacy.Released
	next := 0
	for _, p := range as.Plays {
		switch h := l.ahead[p.Arm]; {
		case p.Held:
			parts, l.ahead[p.Arm] = append(parts, h[0]), h[1:]
		case p.Release:
			parts = append(parts, got.Part(next))
			next++
		}
	}
	for i, p := range as.Ahead {
		l.ahead[p.Arm] = append(l.ahead[p.Arm], got.Part(next+i))
	}
	l.hold()
	return privacy.Join(parts...)
}

// hold has the queues know what is held.
func (l *Live) hold() {
	for a := range min(len(l.s.Arms), len(l.ahead)) { // lines may be before one that adds an arm
		l.s.Arms[a].ahead = count(l.ahead[a])
	}
}

// count is how many rewards are in these releases, of one sum each.
func count(all []privacy.Released) (n int) {
	for _, r := range all {
		n += r.N(0)
	}
	return n
}

// armsIn are those of rows.
func armsIn(rows []row) (out []int) {
	for _, r := range rows {
		out = append(out, r.arm)
	}
	return out
}
