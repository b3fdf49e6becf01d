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
// from one of its actions on.
func (s *Sets) highest(theta []float64, set, from int) (best int) {
	begin, end := s.first[set], s.first[set+1]
	top, v := math.Inf(-1), begin+from
	best = from
	for range end - begin {
		var score float64
		for _, c := range s.some[s.from[v]:s.from[v+1]] {
			score += float64(theta[c.at] * c.x)
		}
		if score > top {
			best, top = v-begin, score
		}
		if v++; v == end {
			v = begin
		}
	}
	return best
}
