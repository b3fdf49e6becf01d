// Package gramline reads and writes the sums of products in a line of a transcript with contexts,
// {"n":…,"gram":[…],…}: d(d+1)/2 integers, at d = 225 nine tenths of the line. Whoever does not need them
// cuts them out, and the rest is read as JSON.
package gramline

import (
	"bytes"
	"slices"
	"strconv"
)

const field = `,"gram":[`

// Cut takes the sums out of a line: rest is the line without them, and list what is between their brackets,
// digits, signs and commas. ok is false for a line that has none there, or is written in another way: it is to
// be read whole.
func Cut(line []byte) (rest, list []byte, ok bool) {
	number, ok := bytes.CutPrefix(line, []byte(`{"n":`))
	head := len(line) - len(number)
	for head < len(line) && line[head] >= '0' && line[head] <= '9' {
		head++
	}
	list, has := bytes.CutPrefix(line[head:], []byte(field))
	if !ok || !has {
		return line, nil, false
	}
	for i, c := range list {
		switch {
		case c >= '0' && c <= '9' || c == ',' || c == '-':
		case c == ']' && i > 0 && i+1 < len(list) && list[i+1] == ',':
			return slices.Concat(line[:head], list[i+1:]), list[:i], true
		default:
			return line, nil, false
		}
	}
	return line, nil, false
}

// Put puts sums into a line that begins with its n and has more fields: Cut takes them out again. A line gets
// no empty list.
func Put(rest []byte, sums []int64) []byte {
	at := bytes.IndexByte(rest, ',')
	if len(sums) == 0 || at < 0 {
		return rest
	}
	b := append(make([]byte, 0, len(rest)+4*len(sums)), rest[:at]...)
	b = append(b, field...)
	for _, x := range sums {
		b = append(strconv.AppendInt(b, x, 10), ',')
	}
	b[len(b)-1] = ']'
	return append(b, rest[at:]...)
}

// Parse reads a list as Put writes it, and in no other way: no zero is in front, and no sign before a zero.
func Parse(list []byte) (sums []int64, ok bool) {
	sums = make([]int64, 0, bytes.Count(list, []byte(","))+1)
	for at := 0; ; at++ {
		start, negative := at, at < len(list) && list[at] == '-'
		if negative {
			at++
		}
		first, x := at, uint64(0)
		for ; at < len(list) && list[at] >= '0' && list[at] <= '9' && at-first < 19; at++ {
			x = 10*x + uint64(list[at]-'0')
		}
		switch n := at - first; {
		case n == 0 || list[first] == '0' && at-start > 1:
			return nil, false
		case negative && x > 1<<63 || !negative && x > 1<<63-1:
			return nil, false
		}
		if negative {
			x = -x
		}
		sums = append(sums, int64(x))
		if at == len(list) {
			return sums, true
		}
		if list[at] != ',' {
			return nil, false
		}
	}
}
