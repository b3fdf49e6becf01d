package linear

import "math"

// Sets are decision sets that are known beforehand and met again and again, as in a simulation of finitely many
// contexts: what is not 0 of their vectors. Their vectors have numbers, in order, from 0.
type Sets struct {
	first []int // by set, and one more: the number of its first vector
	from  []int // by vector, and one more: where its components begin
	some  []component
}

// A component of a vector that is not 0.
type component struct {
	at int
	x  float64
}

// NewSets returns sets of vectors of so many numbers, one vector after the other. What is left over of a multiple of
// dim is left out.
func NewSets(dim int, sets [][]float64) *Sets {
	s := &Sets{first: []int{0}, from: []int{0}}
	for _, set := range sets {
		for ; len(set) >= dim; set = set[dim:] {
			for j, x := range set[:dim] {
				if x != 0 {
					s.some = append(s.some, component{j, x})
				}
			}
			s.from = append(s.from, len(s.some))
		}
		s.first = append(s.first, len(s.from)-1)
	}
	return s
}

// Len is how many vectors there are.
func (s *Sets) Len() int { return len(s.from) - 1 }

// First is the number of a set's first vector.
func (s *Sets) First(set int) int { return s.first[set] }

// highest is the action that has the highest product with theta: of equals the first, the set being listed
// from one of its actions on. Products are compared as integers in the same order, which takes no branch: nothing
// would foresee it.
func (s *Sets) highest(theta []float64, set, from int) (best int) {
	begin, end := s.first[set], s.first[set+1]
	best, top := from, ordered(math.Inf(-1))
	at := s.from[begin : end+1]
	for a, some := range at[:len(at)-1] {
		var score float64
		for _, c := range s.some[some:at[a+1]] {
			score += float64(theta[c.at] * c.x)
		}
		key := ordered(score)
		if key == top && best < from && from <= a { // which is listed before best
			best = a
		}
		if key > top {
			best, top = a, key
		}
	}
	return best
}

// ordered is an integer for a number, in the same order. Only −0 is less than 0: a sum that begins with 0 is never that.
func ordered(x float64) int64 {
	b := int64(math.Float64bits(x))
	return b ^ int64(uint64(b>>63)>>1)
}
