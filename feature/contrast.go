package feature

import (
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// A Contrast is a difference of two vectors of a map that are equal but for one thing: what a model's
// product with X is, is the effect of that thing alone.
type Contrast struct {
	Name    string    // such as device=phone, or device=phone × topic=news
	Against string    // such as device=desktop; of a cross empty: it is beyond what both do alone
	X       []float64 // by component
}

// MostContrasts is how many Contrasts there are at most.
const MostContrasts = 128

// Contrasts are those of each declared value with its feature's first, of each number from one end of its
// range to the other, and of each cross of two: what both together do beyond what each does alone.
// All else is at its first value, or at the lower end of its range. A coefficient alone says little: no data
// tells an intercept from all values of a feature together, and all data tells their differences. Words that
// are hashed have none. There are all of them, of which MostContrasts at most are given, in the map's order.
func (p *Mapper) Contrasts() (out []Contrast, all int) {
	first := make([]value, len(p.features))
	for i := range p.features {
		if f := &p.features[i]; f.number() || len(f.Values) > 0 {
			first[i] = f.at0()
		}
	}
	base := p.vector(first)
	give := func(c Contrast, x func() []float64) {
		if all++; len(out) < MostContrasts {
			c.X = x()
			out = append(out, c)
		}
	}
	with := func(changes map[int]value) []float64 {
		of := slices.Clone(first)
		for i, v := range changes {
			of[i] = v
		}
		return p.vector(of)
	}
	for i := range p.features {
		f := &p.features[i]
		names, others := f.others()
		for k, v := range others {
			give(Contrast{Name: names[k+1], Against: names[0]}, func() []float64 {
				return minus(with(map[int]value{i: v}), base)
			})
		}
	}
	for _, c := range p.crosses {
		if len(c.of) != 2 {
			continue
		}
		i, j := c.of[0], c.of[1]
		names, some := p.features[i].others()
		others, more := p.features[j].others()
		for k, v := range some {
			for l, w := range more {
				name := names[k+1] + " × " + others[l+1]
				give(Contrast{Name: name}, func() []float64 {
					both := minus(with(map[int]value{i: v, j: w}), with(map[int]value{i: v}))
					return minus(both, minus(with(map[int]value{j: w}), base))
				})
			}
		}
	}
	return out, all
}

// at0 is a feature's first value, or the lower end of its range.
func (f *compiled) at0() value {
	if f.number() {
		return value{given: true, ok: true}
	}
	return value{given: true, ok: true, x: 1, hash: xxhash.Sum64String(f.Values[0])}
}

// others are a feature's values but the first, and the names of all; none of words that are hashed.
func (f *compiled) others() (names []string, out []value) {
	switch {
	case f.number():
		lo, hi := strconv.FormatFloat(f.Lo, 'g', -1, 64), strconv.FormatFloat(f.Hi, 'g', -1, 64)
		return []string{f.label() + "=" + lo, f.label() + "=" + hi}, []value{{given: true, ok: true, x: 1}}
	case len(f.Values) == 0:
		return nil, nil
	}
	for i, text := range f.Values[1:] {
		out = append(out, value{given: true, ok: true, place: i + 1, x: 1, hash: xxhash.Sum64String(text)})
	}
	return f.names(), out
}

// vector is that of one action by the values of all features.
func (p *Mapper) vector(values []value) []float64 {
	row := make([]float64, p.dim)
	row[0] = p.unit / grid
	for i := range p.features {
		p.place(row, &p.features[i], &values[i])
	}
	for i := range p.crosses {
		p.product(row, &p.crosses[i], values)
	}
	return row
}

func minus(x, y []float64) []float64 {
	for i := range x {
		x[i] -= y[i]
	}
	return x
}
