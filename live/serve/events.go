package serve

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/sotto-dp/sotto/play"
)

// Vectors are stored as what is not 0 of them: how many, then of each its distance from the one
// before and its steps of 2^-20, of which all vectors are multiples. Weights follow, 8 bytes each.

const eventStep = 1.0 / (1 << 20)

var errEvents = errors.New("events are damaged")

func appendVector(b []byte, vector, weights []float64) []byte {
	n := 0
	for _, x := range vector {
		if x != 0 {
			n++
		}
	}
	b = binary.AppendUvarint(b, uint64(n))
	last := -1
	for i, x := range vector {
		if x != 0 {
			b = binary.AppendUvarint(b, uint64(i-last))
			b = binary.AppendVarint(b, int64(x/eventStep))
			last = i
		}
	}
	for _, w := range weights {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(w))
	}
	return b
}

func readVector(b []byte, dim, rules int) (vector, weights []float64, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(dim) {
		return nil, nil, nil, errEvents
	}
	vector, weights, b = make([]float64, dim), make([]float64, rules), b[k:]
	at := -1
	for range n {
		gap, k := binary.Uvarint(b)
		if k <= 0 || gap == 0 || gap > uint64(dim-1-at) {
			return nil, nil, nil, errEvents
		}
		at, b = at+int(gap), b[k:]
		steps, k := binary.Varint(b)
		if k <= 0 || steps == 0 || steps > 1<<20 || steps < -1<<20 {
			return nil, nil, nil, errEvents
		}
		vector[at], b = float64(steps)*eventStep, b[k:]
	}
	if len(b) < 8*rules {
		return nil, nil, nil, errEvents
	}
	for i := range weights {
		weights[i], b = math.Float64frombits(binary.BigEndian.Uint64(b)), b[8:]
	}
	return vector, weights, b, nil
}

// eventsText writes decisions that follow each other.
func eventsText(events []play.Event) (b []byte) {
	for _, v := range events {
		b = appendVector(b, v.Vector, v.Weights)
	}
	return b
}

// readEvents reads decisions from number start on.
func readEvents(b []byte, start, dim, rules int) (out []play.Event, err error) {
	for len(b) > 0 {
		v := play.Event{Number: start + len(out)}
		if v.Vector, v.Weights, b, err = readVector(b, dim, rules); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// What is kept of an event beside its assignment: a byte that says whether there is something, the
// hashes of its actions, and if the byte says so its vector and weights.
const (
	noEvent byte = iota
	anEvent
	anOffer
)

func appendEvent(b []byte, v event, ok bool) []byte {
	switch {
	case !ok:
		return append(b, noEvent)
	case v.offer == nil:
		b = append(b, anEvent)
	default:
		b = append(b, anOffer)
	}
	b = binary.BigEndian.AppendUint64(b, v.action)
	b = binary.BigEndian.AppendUint64(b, v.greedy)
	if v.offer == nil {
		return b
	}
	return appendVector(b, v.offer.Vector, v.offer.Weights)
}

func readEvent(b []byte, dim, rules int) (v event, ok bool, rest []byte, err error) {
	switch {
	case len(b) == 0 || b[0] > anOffer:
		return v, false, nil, errEvents
	case b[0] == noEvent:
		return v, false, b[1:], nil
	case len(b) < 17:
		return v, false, nil, errEvents
	}
	v.action, v.greedy, rest = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:]), b[17:]
	if b[0] == anOffer {
		v.offer = &play.Decision{}
		v.offer.Vector, v.offer.Weights, rest, err = readVector(rest, dim, rules)
	}
	return v, err == nil, rest, err
}
