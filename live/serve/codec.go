package serve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
)

var errPart = errors.New("a part of the redeemed decisions is damaged")

// gaps writes a part: increasing numbers, each as its distance from the last, the first from −1.
func gaps(numbers []int) []byte {
	b, last := []byte{}, -1
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n-last))
		last = n
	}
	return b
}

// kindsSaid is how many things may be said of a decision: that its reward came, that it was withdrawn, and
// of cells that it is in this one.
func kindsSaid(cells int) int { return 2 + cells }

// said is what was said of a segment's decisions as one set: the number of a decision times the kinds is
// that its reward came, one more that it was withdrawn, and what follows that it is in a cell.
func said(s play.Segment) play.Set {
	sets, longest := append([]play.Set{s.Came, s.Gone}, s.Cells...), 0
	for _, set := range sets {
		longest = max(longest, len(set))
	}
	out := make(play.Set, len(sets)*longest)
	for kind, set := range sets {
		for i, w := range set {
			for ; w != 0; w &= w - 1 {
				put1(&out, len(sets)*(64*i+bits.TrailingZeros64(w))+kind)
			}
		}
	}
	return out
}

// put1 puts a number into a set.
func put1(s *play.Set, n int) {
	if need := n>>6 + 1 - len(*s); need > 0 {
		*s = append(*s, make(play.Set, need)...)
	}
	(*s)[n>>6] |= 1 << (n & 63)
}

// unsaid takes it apart.
func unsaid(s play.Set, cells int) (came, gone play.Set, of []play.Set) {
	sets := make([]play.Set, kindsSaid(cells))
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			n := 64*i + bits.TrailingZeros64(w)
			put1(&sets[n%len(sets)], n/len(sets))
		}
	}
	if cells > 0 {
		of = sets[2:]
	}
	return sets[0], sets[1], of
}

// words writes a whole set, as part 0.
func words(s play.Set) []byte {
	b := make([]byte, 0, 8*len(s))
	for _, w := range s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// redeem adds a part to the set of a segment of n decisions.
func redeem(s play.Set, p store.Part, n int) (play.Set, error) {
	if p.Number == 0 {
		if len(p.Redeemed)%8 != 0 {
			return nil, errPart
		}
		s = make(play.Set, len(p.Redeemed)/8)
		for i := range s {
			s[i] = binary.LittleEndian.Uint64(p.Redeemed[8*i:])
		}
		return s, nil
	}
	at, rest := -1, p.Redeemed
	for len(rest) > 0 {
		gap, k := binary.Uvarint(rest)
		if k <= 0 || gap == 0 || gap > uint64(n-1-at) {
			return nil, errPart
		}
		at, rest = at+int(gap), rest[k:]
		if len(s) <= at>>6 {
			s = append(s, make(play.Set, at>>6+1-len(s))...)
		}
		s[at>>6] |= 1 << (at & 63)
	}
	return s, nil
}

// sumsText writes the further sums of a segment, of metrics or of vectors, of which some are negative.
func sumsText(all []int64, signed bool) string {
	var b []byte
	for _, x := range all {
		if signed {
			b = binary.AppendVarint(b, x)
		} else {
			b = binary.AppendUvarint(b, uint64(x))
		}
	}
	return string(b)
}

func readSums(text string, signed bool) (all []int64, _ error) {
	for b := []byte(text); len(b) > 0; {
		x, n := binary.Varint(b)
		if !signed {
			var u uint64
			u, n = binary.Uvarint(b)
			x = int64(u)
		}
		switch {
		case n <= 0 && signed:
			return nil, errors.New("the sums of a segment's vectors are damaged")
		case n <= 0 || x < 0 && !signed:
			return nil, errors.New("the sums of a segment's metrics are damaged")
		}
		all, b = append(all, x), b[n:]
	}
	return all, nil
}

// unitBytes is how long an assignment is as it is stored: tag, arm, number, deadline, that of
// activation, epoch, propensity, how many.
const unitBytes = 16 + 2 + 5 + 6 + 6 + 8 + 8 + 4

// openBytes is how long what follows is where the time of an assignment is kept: how long it was open.
const openBytes = 4

// A unitForm says what is stored behind each assignment.
type unitForm struct {
	timed      bool // how long it was open
	events     bool // what is kept of an event, with vectors and weights of these lengths
	dim, rules int
}

// append adds an assignment, and what is kept of its event if ok.
func (f unitForm) append(b []byte, t tag, u assignment, epoch epochTag, v event, ok bool) []byte {
	b = append(b, t[:]...)
	b = binary.BigEndian.AppendUint16(b, u.arm)
	b = appendLow(b, uint64(u.number), 5)
	b = appendLow(b, uint64(u.deadline), 6)
	b = appendLow(b, uint64(u.by), 6)
	b = append(b, epoch[:]...)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(u.propensity))
	b = binary.BigEndian.AppendUint32(b, u.used)
	if f.timed {
		b = appendLow(b, uint64(u.open), openBytes)
	}
	if f.events {
		b = appendEvent(b, v, ok)
	}
	return b
}

// read calls each for the assignments of a block; v is nil where nothing is kept of an event.
func (f unitForm) read(b []byte, each func(t tag, u assignment, e epochTag, v *event)) error {
	for len(b) > 0 {
		if len(b) < unitBytes {
			return errUnits
		}
		head := b[:unitBytes]
		b = b[unitBytes:]
		u := assignment{
			arm: binary.BigEndian.Uint16(head[16:]), number: int64(get(head[18:23])),
			deadline: int64(get(head[23:29])), by: int64(get(head[29:35])),
			propensity: math.Float64frombits(binary.BigEndian.Uint64(head[43:])),
			used:       binary.BigEndian.Uint32(head[51:]),
		}
		if f.timed {
			if len(b) < openBytes {
				return errUnits
			}
			u.open, b = uint32(get(b[:openBytes])), b[openBytes:]
		}
		var of *event
		if f.events {
			v, ok, rest, err := readEvent(b, f.dim, f.rules)
			if err != nil {
				return err
			}
			if b = rest; ok {
				of = &v
			}
		}
		each(tag(head), u, epochTag(head[35:43]), of)
	}
	return nil
}

var errUnits = errors.New("a block of assignments is cut")

// queuesOf puts queues together from what is stored, of arms with so many cells; the further sums of a segment
// may be signed.
func queuesOf(in store.Stored, arms, cells int, signed bool) (_ []play.Queue, err error) {
	all := make([]play.Queue, arms)
	for _, a := range in.Arms {
		if a.Arm < 0 || a.Arm >= arms {
			return nil, fmt.Errorf("arm %d is stored, of %d", a.Arm, arms)
		}
		all[a.Arm] = play.Queue{Head: a.Head, Issued: a.Issued, Asked: a.Asked, Off: a.Off, Runs: a.Runs}
	}
	parts := in.Parts
	for _, g := range in.Segments {
		if g.Arm < 0 || g.Arm >= arms {
			return nil, fmt.Errorf("a segment of arm %d is stored, of %d", g.Arm, arms)
		}
		q := &all[g.Arm]
		out := play.Segment{Start: g.Start, End: g.End, Cut: g.Cut, Settles: g.Settles, Sum: g.Sum}
		if out.More, err = readSums(g.More, signed); err != nil {
			return nil, err
		}
		var of play.Set
		for len(parts) > 0 && parts[0].Arm == g.Arm && parts[0].Start == g.Start {
			if of, err = redeem(of, parts[0], kindsSaid(cells)*(q.Issued-g.Start)); err != nil {
				return nil, err
			}
			parts = parts[1:]
		}
		out.Came, out.Gone, out.Cells = unsaid(of, cells)
		q.Segments = append(q.Segments, out)
	}
	if len(parts) > 0 {
		return nil, errors.New("redeemed decisions of no segment are stored")
	}
	return all, nil
}
