package play

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"

	"github.com/sotto-dp/sotto/policy"
)

// A State is all of a Live that is not in the lines of its transcript. It holds sums of
// rewards: whoever reads it is the curator. A store may keep it as one value (MarshalBinary),
// or field by field.
type State struct {
	Terms
	Lines int // of the transcript
	// the batch that is out, nil after a line and before the policy was asked again
	Batch []policy.Play
	Arms  []Queue
}

// Terms are what must be the same whenever a state is restored.
type Terms struct {
	Lo, Hi, Default float64
	Take            Take
	Drop            bool
	Metrics         string // what they are, a line each
}

// State is a copy of the state as it is now: decisions that were made since it was last
// written are in it.
func (l *Live) State() State { return l.s.clone() }

func (s State) clone() State {
	s.Batch, s.Arms = slices.Clone(s.Batch), slices.Clone(s.Arms)
	for a := range s.Arms {
		s.Arms[a] = s.Arms[a].clone()
	}
	return s
}

func (q Queue) clone() Queue {
	q.Runs, q.Segments = slices.Clone(q.Runs), slices.Clone(q.Segments)
	for i := range q.Segments {
		q.Segments[i] = q.Segments[i].clone()
	}
	return q
}

func (s *Segment) clone() Segment {
	out := *s
	out.Came, out.Gone, out.More = slices.Clone(s.Came), slices.Clone(s.Gone), slices.Clone(s.More)
	return out
}

// validate says what no state of a Live has. It tells no sum.
func (s *State) validate() error {
	if s.Drop && s.Take == Exactly {
		return errors.New("what does not come is dropped, and it takes exactly what is asked for")
	}
	if s.Lines < 0 || len(s.Arms) < 1 || len(s.Arms) > maxArms || s.Take != AtLeast && s.Take != Exactly {
		return fmt.Errorf("%d lines, %d arms or take %d", s.Lines, len(s.Arms), int(s.Take))
	}
	for a := range s.Arms {
		if err := s.Arms[a].validate(0); err != nil {
			return fmt.Errorf("arm %d: %w", a, err)
		}
		if s.Take == Exactly && slices.ContainsFunc(s.Arms[a].Segments, func(g Segment) bool {
			return len(g.Gone) > 0
		}) {
			return fmt.Errorf("arm %d: decisions were withdrawn, and it takes exactly what is asked for", a)
		}
	}
	seen := make([]bool, len(s.Arms))
	for _, p := range s.Batch {
		if p.Arm < 0 || p.Arm >= len(seen) || seen[p.Arm] || s.Arms[p.Arm].Off || p.Rounds < 1 ||
			p.Rounds > s.Arms[p.Arm].Asked {
			return fmt.Errorf("the batch has %d rounds of arm %d", p.Rounds, p.Arm)
		}
		seen[p.Arm] = true
	}
	return nil
}

// validate says what no queue has, in whose segments so many of the further sums may be negative.
func (q *Queue) validate(signed int) error {
	if q.Head < 0 || q.Issued < q.Head || q.Issued > maxIssued || q.Asked < 0 {
		return fmt.Errorf("head %d, issued %d, asked %d", q.Head, q.Issued, q.Asked)
	}
	if q.Off && (q.Head != q.Issued || q.Asked > 0) {
		return errors.New("it is off, and has decisions")
	}
	for i, r := range q.Runs {
		if i == 0 && r.From > q.Head || i > 0 && r.From <= q.Runs[i-1].From || r.From < 0 || r.From > q.Issued {
			return fmt.Errorf("run %d from %d", i, r.From)
		}
	}
	if len(q.Runs) == 0 && q.Issued > 0 {
		return errors.New("decisions of no epoch")
	}
	next := q.Head
	for i := range q.Segments {
		s := &q.Segments[i]
		last := i == len(q.Segments)-1
		end := s.End // of those that were made
		if last && (end == 0 || end > q.Issued) {
			end = q.Issued
		}
		if s.Start != next || end <= s.Start || end > q.Issued || s.End < 0 {
			return fmt.Errorf("segment %d from %d to %d", i, s.Start, s.End)
		}
		for _, set := range []Set{s.Came, s.Gone} {
			if n := len(set); n > 0 && (set[n-1] == 0 || n > (end-s.Start+63)/64 ||
				bits.Len64(set[n-1])+64*(n-1) > end-s.Start) {
				return fmt.Errorf("segment %d knows of decisions that are not in it", i)
			}
		}
		if absurd(s.Cut) || absurd(s.Settles) {
			return fmt.Errorf("segment %d: its times are out of range", i)
		}
		most := int64(s.Came.Len()) * oneStep
		for j, sum := range append([]int64{s.Sum}, s.More...) {
			if sum > most || sum < -most || sum < 0 && (j == 0 || j > signed) {
				return fmt.Errorf("segment %d: a sum is out of range", i)
			}
		}
		next = end
	}
	if next != q.Issued {
		return fmt.Errorf("decisions from %d to %d in no segment", next, q.Issued)
	}
	return nil
}

// absurd says that no sum of a time and a window is this.
func absurd(t int64) bool { return t < -maxTime || t > 2*maxTime-1 }

const stateMagic = "sotto play"

// stateVersion is that of the encoding.
const stateVersion = 2

// castagnoli finds damage, not forgery.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MarshalBinary implements encoding.BinaryMarshaler: a name and a version, the fields in their
// order, and a CRC-32C.
func (s State) MarshalBinary() ([]byte, error) {
	var b []byte
	for _, x := range []float64{s.Lo, s.Hi, s.Default} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(x))
	}
	put := func(x int) { b = binary.AppendUvarint(b, uint64(x)) }
	put(int(s.Take))
	put(flag(s.Drop))
	put(len(s.Metrics))
	b = append(b, s.Metrics...)
	put(s.Lines)
	put(len(s.Batch))
	for _, p := range s.Batch {
		put(p.Arm)
		put(p.Rounds)
		put(flag(p.Release))
	}
	put(len(s.Arms))
	for _, q := range s.Arms {
		put(q.Head)
		put(q.Issued)
		put(q.Asked)
		put(flag(q.Off))
		put(len(q.Runs))
		for _, r := range q.Runs {
			put(r.From)
			b = append(b, r.Epoch[:]...)
		}
		put(len(q.Segments))
		for _, g := range q.Segments {
			put(g.Start)
			put(g.End)
			b = binary.AppendVarint(binary.AppendVarint(b, g.Cut), g.Settles)
			b = binary.AppendUvarint(b, uint64(g.Sum))
			put(len(g.More))
			for _, sum := range g.More {
				b = binary.AppendUvarint(b, uint64(sum))
			}
			for _, set := range []Set{g.Came, g.Gone} {
				put(len(set))
				for _, w := range set {
					b = binary.BigEndian.AppendUint64(b, w)
				}
			}
		}
	}
	return seal(b), nil
}

// seal puts the name and the version before the fields, and the checksum behind.
func seal(fields []byte) []byte {
	b := append(append([]byte(stateMagic), stateVersion), fields...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It takes what MarshalBinary writes of a
// valid state, and nothing else; its errors tell no sum.
func (s *State) UnmarshalBinary(text []byte) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("play: %w: %w", ErrState, fmt.Errorf(format, args...))
	}
	head := len(stateMagic) + 1
	switch {
	case len(text) < head+4 || string(text[:head-1]) != stateMagic:
		return fail("it is not the state of a play")
	case text[head-1] != stateVersion:
		return fail("its version is %d, must be %d", text[head-1], stateVersion)
	case crc32.Checksum(text[:len(text)-4], castagnoli) != binary.BigEndian.Uint32(text[len(text)-4:]):
		return fail("it is damaged")
	}
	r := reader{rest: text[head : len(text)-4]}
	var out State
	out.Lo, out.Hi, out.Default = math.Float64frombits(r.word()), math.Float64frombits(r.word()),
		math.Float64frombits(r.word())
	out.Take, out.Drop = Take(r.count()), r.count() == 1
	out.Metrics = string(r.bytes(r.length(1)))
	out.Lines = r.count()
	for range r.length(3) {
		out.Batch = append(out.Batch, policy.Play{Arm: r.count(), Rounds: r.count(), Release: r.count() == 1})
	}
	for range r.length(6) {
		q := Queue{Head: r.count(), Issued: r.count(), Asked: r.count(), Off: r.count() == 1}
		for range r.length(17) {
			q.Runs = append(q.Runs, Run{r.count(), Epoch(r.bytes(16))})
		}
		for range r.length(8) {
			g := Segment{Start: r.count(), End: r.count(), Cut: r.signed(), Settles: r.signed(),
				Sum: int64(r.count64())}
			for range r.length(1) {
				g.More = append(g.More, int64(r.count64()))
			}
			for _, set := range []*Set{&g.Came, &g.Gone} {
				for range r.length(8) {
					*set = append(*set, r.word())
				}
			}
			q.Segments = append(q.Segments, g)
		}
		out.Arms = append(out.Arms, q)
	}
	if r.short {
		return fail("it is cut short or out of range")
	}
	if err := out.validate(); err != nil {
		return fail("%w", err)
	}
	// Only one text is a state's: numbers are in their shortest form, flags are 0 or 1,
	// nothing follows.
	if again, err := out.MarshalBinary(); err != nil || !bytes.Equal(again, text) {
		return fail("it is not written as a state is")
	}
	*s = out
	return nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A reader takes a state apart; what is missing is 0.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if len(r.rest) < n {
		r.rest, r.short = nil, true
		return make([]byte, n)
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) word() uint64 { return binary.BigEndian.Uint64(r.bytes(8)) }

func (r *reader) count64() uint64 {
	x, n := binary.Uvarint(r.rest)
	if n <= 0 || x > math.MaxInt64 {
		r.rest, r.short = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return x
}

func (r *reader) signed() int64 {
	x, n := binary.Varint(r.rest)
	if n <= 0 {
		r.rest, r.short = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return x
}

func (r *reader) count() int {
	x := r.count64()
	if x > math.MaxInt {
		r.short = true
		return 0
	}
	return int(x)
}

// length is the number of what follows, each of at least this many bytes.
func (r *reader) length(least int) int {
	n := r.count()
	if n > len(r.rest)/least {
		r.rest, r.short = nil, true
		return 0
	}
	return n
}
