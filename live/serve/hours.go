package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// An Hour is how many decisions of an experiment were issued in an hour of UTC, by arm. Counted is
// what ArmInfo.Decisions counts, no more and no less: an activation where decisions count when they are
// activated, and nothing that is told again, forced, or given to who is not in it. What was counted
// stays, also if its unit takes it back, is erased or archived.
//
// So an hour tells what counts of decisions tell, when they were made: whoever came alone in an hour
// finds their arm in it. It tells nothing of a reward but what the releases before it did.
type Hour struct {
	From      time.Time
	Decisions []int
}

const hourMillis = int64(time.Hour / time.Millisecond)

// hours are an experiment's, but for those without a decision.
type hours struct {
	past []byte // but the last: for each the hours since the one before, and its decisions by arm
	of   int64  // hours since 1970 of the last of past
	at   int64  // and of the one that n counts; −1 before the first decision
	n    []int
	rows []store.Hour // that ended and are to be written
	// of the arms that were added, the hour of the last decision before: hours from it on have them
	added []int64
	first recent // of its first hours, finer
	// of the floor's coin, in the hour that n counts and in all before it, and the terms of now
	coins, before coins
	terms         terms
}

// count counts a decision.
func (h *hours) count(arm int, now int64) {
	if at := now / hourMillis; at > h.at {
		h.turn(at)
	}
	if h.first.over = h.first.over || h.first.bins == nil && !h.empty(); !h.first.over {
		h.first.count(arm, len(h.n), now)
	}
	h.n[arm]++
}

// empty says whether there was no decision yet.
func (h *hours) empty() bool {
	return len(h.past) == 0 && !slices.ContainsFunc(h.n, func(n int) bool { return n > 0 })
}

// recent are the first decisions of an experiment in bins that are finer than an hour and grow with its age, as
// long as they are, and as long as the process that saw the first of them goes on: what whoever asks for counts
// each second has seen.
type recent struct {
	step  int // of recentSteps; past the last there are none any more
	began int64
	bins  [][]int // from the first decision on, by arm; nil of one without decisions
	over  bool    // it has begun without them
}

// How long a bin is, in milliseconds: each is a multiple of the one before. There are mostBins at most.
var recentSteps = [...]int64{1e3, 5e3, 15e3, 60e3, 300e3, 900e3}

const mostBins = 120

// count counts a decision of an arm of so many.
func (r *recent) count(arm, arms int, now int64) {
	if r.bins == nil {
		r.began = now / recentSteps[0]
	}
	for {
		at := max(now/recentSteps[r.step]-r.began, int64(len(r.bins)-1))
		if at < mostBins {
			r.bins = append(r.bins, make([][]int, at+1-int64(len(r.bins)))...)
			r.bins[at] = append(r.bins[at], make([]int, max(0, arms-len(r.bins[at])))...)
			r.bins[at][arm]++
			return
		}
		if r.step+1 == len(recentSteps) {
			*r = recent{over: true}
			return
		}
		r.coarsen(recentSteps[r.step+1] / recentSteps[r.step])
	}
}

// coarsen makes one bin of so many.
func (r *recent) coarsen(of int64) {
	began, bins := r.began/of, [][]int(nil)
	for i, n := range r.bins {
		at := (r.began+int64(i))/of - began
		bins = append(bins, make([][]int, at+1-int64(len(bins)))...)
		bins[at] = append(bins[at], make([]int, max(0, len(n)-len(bins[at])))...)
		for a := range n {
			bins[at][a] += n[a]
		}
	}
	r.step, r.began, r.bins = r.step+1, began, bins
}

// grow has one arm more from an hour on. It was off as long as it was not there, to the floor's coin.
func (h *hours) grow(from int64) {
	arm := len(h.n)
	for _, all := range []coins{h.coins, h.before} {
		for i := range all {
			t := &all[i]
			t.off, t.drawn, t.played = append(slices.Clip(t.off), arm), append(slices.Clip(t.drawn), 0),
				append(slices.Clip(t.played), 0)
		}
	}
	h.n, h.added, h.terms = append(h.n, 0), append(slices.Clip(h.added), from), terms{}
}

// turn goes on to another hour.
func (h *hours) turn(at int64) {
	if h.at >= 0 {
		h.past = h.decisions(binary.AppendUvarint(h.past, uint64(h.at-h.of)))
		h.of = h.at
		h.rows = append(h.rows, h.row())
	}
	h.at = at
	clear(h.n)
	h.before, h.coins = h.before.plus(h.coins), nil
}

// row is the hour that goes on, as it is stored.
func (h *hours) row() store.Hour {
	return store.Hour{At: h.at, Decisions: h.coins.append(h.decisions(nil))}
}

func (h *hours) decisions(to []byte) []byte {
	for _, n := range h.n {
		to = binary.AppendUvarint(to, uint64(n))
	}
	return to
}

// write are the hours in which there may be decisions since it was called last.
func (h *hours) write() []store.Hour {
	out := h.rows
	if h.rows = nil; h.at >= 0 {
		out = append(out, h.row())
	}
	return out
}

var errHours = errors.New("the decisions of an hour are damaged")

// restore are those that were stored.
func (h *hours) restore(rows []store.Hour) error {
	added := h.added
	h.added = nil
	grow := func(to int64) {
		for ; len(added) > 0 && added[0] <= to; added = added[1:] {
			h.grow(added[0])
		}
	}
	defer func() { grow(math.MaxInt64) }()
	for _, row := range rows {
		if row.At <= h.at {
			return errHours
		}
		h.turn(row.At)
		grow(row.At)
		left, err := readDecisions(row.Decisions, h.n)
		if err == nil {
			h.coins, err = readCoins(left, len(h.n))
		}
		if err != nil {
			return err
		}
	}
	h.rows = nil
	return nil
}

func readDecisions(b []byte, n []int) (left []byte, err error) {
	for i := range n {
		x, size := binary.Uvarint(b)
		if size <= 0 || x > 1<<53 {
			return nil, errHours
		}
		n[i], b = int(x), b[size:]
	}
	return b, nil
}

// Early are the decisions that were issued in the first hours of an experiment, in bins of a length that grows with
// its age, at most a quarter of an hour; none of an older one, or since another process goes on with it.
func (e *Engine) Early(_ context.Context, name string) (step time.Duration, bins []Hour, err error) {
	x, err := e.find(name)
	if err != nil {
		return 0, nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r, arms := &x.hours.first, len(x.hours.n)
	if len(r.bins) == 0 {
		return 0, nil, nil
	}
	millis := recentSteps[r.step]
	for i, n := range r.bins {
		h := Hour{time.UnixMilli((r.began + int64(i)) * millis).UTC(), make([]int, arms)}
		copy(h.Decisions, n)
		bins = append(bins, h)
	}
	return time.Duration(millis) * time.Millisecond, bins, nil
}

// Hours are the hours in which decisions of an experiment were issued, by time.
func (e *Engine) Hours(_ context.Context, name string) ([]Hour, error) {
	x, err := e.find(name)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	past, at, last := slices.Clip(x.hours.past), x.hours.at, slices.Clone(x.hours.n)
	added := slices.Clone(x.hours.added)
	x.mu.Unlock()
	var out []Hour
	for was := int64(0); len(past) > 0; {
		since, size := binary.Uvarint(past)
		h := Hour{Decisions: make([]int, len(last))}
		was += int64(since)
		h.From = time.UnixMilli(was * hourMillis).UTC()
		there := len(last)
		for _, from := range added {
			if from > was {
				there--
			}
		}
		if past, err = readDecisions(past[max(size, 0):], h.Decisions[:there]); err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	if at >= 0 {
		out = append(out, Hour{time.UnixMilli(at * hourMillis).UTC(), last})
	}
	return out, nil
}
