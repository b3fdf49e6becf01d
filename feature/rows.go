package feature

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// MaxRows is the largest number of vectors that Rows lists.
const MaxRows = 1 << 12

// mostCombinations is how many combinations of words Rows looks at: some make the same vector.
const mostCombinations = 1 << 14

// Rows are all vectors that the map makes, each once, Dim numbers each, one after the other: of every combination
// of words, and of what may be missing. An error, which names the feature and matches ErrMap, says why they are
// not few: a number has too many values, and so have words that are not listed, in a cross by their hash; or
// there are more than MaxRows.
func (p *Mapper) Rows() ([]float64, error) {
	all := 1
	for i := range p.features {
		f := &p.features[i]
		at := p.placeOf(i)
		switch {
		case f.number():
			return nil, wrong(at, "is a number, must be a word: vectors are not few")
		case f.Values == nil && p.hashed(i):
			return nil, wrong(at, "is any word, in a cross by its hash, must have values: vectors are not few")
		}
		if all *= p.choices(i); all > mostCombinations {
			return nil, wrong(at, "makes more than %d combinations of words with those before it, must make fewer",
				mostCombinations)
		}
	}
	values := make([]value, len(p.features))
	seen := map[string]bool{}
	var rows []float64
	var key []byte
	row := make([]float64, p.dim)
	for n := range all {
		p.combine(values, n)
		clear(row)
		row[0] = p.unit / grid
		for i := range p.features {
			p.place(row, &p.features[i], &values[i])
		}
		for i := range p.crosses {
			p.product(row, &p.crosses[i], values)
		}
		key = key[:0]
		for _, x := range row {
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(x))
		}
		if seen[string(key)] {
			continue
		}
		if len(seen) == MaxRows {
			return nil, wrong("context", "and action make more than %d vectors, must make fewer", MaxRows)
		}
		seen[string(key)], rows = true, append(rows, row...)
	}
	return rows, nil
}

// combine makes the values of the n-th combination.
func (p *Mapper) combine(values []value, n int) {
	for i := range values {
		f, k := &p.features[i], p.choices(i)
		j := n % k
		n /= k
		values[i] = value{}
		if words := len(f.Values) + f.Buckets; j < words {
			values[i] = value{ok: true, place: j, x: 1}
			if f.Values != nil {
				values[i].hash = xxhash.Sum64String(f.Values[j])
			}
		}
	}
}

// choices is how many words a feature may be, and one more where it may be missing. An id is always there, and is
// missing where it is none of those listed and that is ignored.
func (p *Mapper) choices(i int) int {
	f := &p.features[i]
	n := len(f.Values) + f.Buckets
	if i < len(p.features)-1 || n == 0 || f.Values != nil && p.ignore {
		n++
	}
	return n
}

// hashed says that a feature is in a cross by its hash.
func (p *Mapper) hashed(i int) bool {
	return slices.ContainsFunc(p.crosses, func(c cross) bool { return c.Buckets > 0 && slices.Contains(c.of, i) })
}

// placeOf names a feature as a declaration has it.
func (p *Mapper) placeOf(i int) string {
	if i == len(p.features)-1 {
		return idName
	}
	return scopes[p.scope(i)] + "." + p.features[i].Name
}
