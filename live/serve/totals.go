package serve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
)

// Totals: what has come of one decision, where several reports of it count (play.Aggregate). The sum of
// its segment has what it is worth; the total itself must be kept, so that the range can clip it, and with
// it a keyed hash of each report's id, so that one that is sent again counts once. It is a row of the
// store from the commit of the first report to that of the release, or until its unit is erased, and
// nowhere else: in no answer, line, page, log or metric.

// maxID is the longest id of a report, in bytes.
const maxID = 256

// checkID says whether a report has the id that it needs.
func (x *served) checkID(r Outcome) error {
	switch {
	case len(r.ID) > maxID:
		return fieldError("id", "has %d bytes, must have at most %d", len(r.ID), maxID)
	case r.ID == "" && x.aggregates && x.decl.AddsUp():
		return fieldError("id", "is missing: all reports of a decision count, and each needs an id of its own, "+
			"so that one that is sent again counts once")
	case r.ID != "" && math.IsNaN(r.Reward) && !x.aggregates:
		return fieldError("reward", "is missing: the first report of a decision counts, with all that is in it")
	}
	return nil
}

// nameOf is the keyed hash of a report's id, of one decision; 0 where it has none.
func (x *served) nameOf(arm, number int, id string) uint64 {
	if id == "" {
		return 0
	}
	t := tagOf(x.ids, fmt.Sprint(arm, " ", number, " ", id))
	return max(1, binary.BigEndian.Uint64(t[:]))
}

// A numbered is a decision by its number.
type numbered struct{ arm, number int }

// shut says that what came of a decision of a segment was destroyed: nothing counts any more.
func shut(s play.Segment, at int) bool {
	t, there := s.Totals[at]
	return there && t.Sums == nil
}

// totals are the rows of decisions that were reported on in time, of those that still wait. What was
// sealed, or adds nothing, is written all the same: it is the same work.
func (x *served) totals() (rows []store.Total) {
	for at := range x.reported {
		s, held := x.play.Segment(at.arm, at.number)
		if t, there := s.Totals[at.number-s.Start]; held && there {
			rows = append(rows, store.Total{Arm: at.arm, Number: at.number, Data: appendTotal(nil, t)})
		}
	}
	return rows
}

// seal destroys what is kept of a unit's decision, whether or not anything was reported.
func (x *served) seal(t tag) {
	u, ok := x.units[t]
	if !ok || x.play == nil || !x.aggregates {
		return
	}
	if u.by != 0 { // an offer, which may be a decision by now
		if u, ok = x.units[ticket{number: u.number, epoch: x.epochs[u.epoch]}.key()]; !ok {
			return
		}
	}
	if u.number < tested {
		at := numbered{int(u.arm), int(min(u.number, math.MaxInt))}
		x.play.Seal(at.arm, at.number)
		x.reported[at] = struct{}{}
	}
}

// A row of a total is its sums, each a byte that says whether there is one and two numbers, and then its
// names, 8 bytes each; one that is sealed is empty.

var errTotal = errors.New("a decision's total is damaged")

func appendTotal(b []byte, t play.Total) []byte {
	if t.Sums == nil {
		return b
	}
	for _, r := range t.Sums {
		has := byte(0)
		if r.Has {
			has = 1
		}
		b = binary.AppendUvarint(append(b, has), uint64(r.Up))
		b = binary.AppendUvarint(b, uint64(r.Down))
	}
	for _, n := range t.Names {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func readTotal(b []byte, sums int) (t play.Total, err error) {
	if len(b) == 0 {
		return t, nil
	}
	for range sums {
		if len(b) == 0 || b[0] > 1 {
			return t, errTotal
		}
		r := play.Running{Has: b[0] == 1}
		b = b[1:]
		for _, to := range []*int64{&r.Up, &r.Down} {
			u, n := binary.Uvarint(b)
			if n <= 0 || u > math.MaxInt64 {
				return t, errTotal
			}
			*to, b = int64(u), b[n:]
		}
		t.Sums = append(t.Sums, r)
	}
	if len(b)%8 != 0 {
		return t, errTotal
	}
	for ; len(b) > 0; b = b[8:] {
		t.Names = append(t.Names, binary.BigEndian.Uint64(b))
	}
	return t, nil
}

// addTotals puts the totals that are stored into the queues that they are of.
func addTotals(queues []play.Queue, in []store.Total, sums int) error {
	for _, row := range in {
		if row.Arm < 0 || row.Arm >= len(queues) {
			return errTotal
		}
		t, err := readTotal(row.Data, sums)
		if err != nil {
			return err
		}
		segments := queues[row.Arm].Segments
		i := sort.Search(len(segments), func(i int) bool { return segments[i].Start > row.Number }) - 1
		if i < 0 {
			return errTotal
		}
		if segments[i].Totals == nil {
			segments[i].Totals = map[int]play.Total{}
		}
		segments[i].Totals[row.Number-segments[i].Start] = t
	}
	return nil
}
