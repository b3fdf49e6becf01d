package play

import (
	"math"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/policy"
)

// Weights are what Arm gives one by one: the same shares of the next n decisions, up to a decision an arm,
// whatever the plays have so far.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		rounds, have []int
		n            int
		want         []float64 // of so many; nil: what Arm gives
	}{
		{[]int{10, 30}, []int{0, 0}, 40, []float64{.25, .75}},
		{[]int{10, 30}, []int{0, 0}, 1, []float64{.25, .75}}, // what the batch wants
		{[]int{10, 30}, []int{10, 10}, 5, []float64{0, 1}},
		{[]int{10, 30}, []int{25, 30}, 0, []float64{0, 1}},
		{[]int{10, 30}, []int{10, 30}, 0, []float64{.25, .75}},
		{[]int{10, 30}, []int{40, 30}, 1000, nil},
		{[]int{10, 30, 5}, []int{4, 90, 0}, 200, nil},
		{[]int{7, 7, 7}, []int{7, 0, 3}, 11, nil},
		{[]int{7}, []int{9}, 3, []float64{1}},
	} {
		l := &Live{}
		l.side, l.releases = arms{l}, make([]bool, len(c.rounds))
		l.s.Arms = make([]Queue, len(c.rounds))
		for a, n := range c.rounds {
			l.plan = append(l.plan, policy.Play{Arm: a, Rounds: n})
			l.s.Arms[a] = Queue{Asked: n, Issued: c.have[a]}
			l.before, l.offers = append(l.before, 0), append(l.offers, 0)
		}
		got, want := l.Weights(float64(c.n)), c.want
		if want == nil {
			want = make([]float64, len(c.rounds))
			for range c.n {
				a := l.Arm()
				l.s.Arms[a].Issued++
				want[a] += 1 / float64(c.n)
			}
		}
		sum := 0.
		for a := range got {
			sum += got[a]
			if math.Abs(got[a]-want[a]) > 1.01/float64(max(1, c.n)) && c.want == nil ||
				math.Abs(got[a]-want[a]) > 1e-12 && c.want != nil {
				t.Errorf("%+v: %v, must be %v", c, got, want)
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%+v: %v add up to %v", c, got, sum)
		}
		l.ending = true
		if got := l.Weights(9); got != nil {
			t.Errorf("%v when it ends", got)
		}
	}
	l := &Live{rows: &rows{shares: []float64{.2, .8}}, plan: []policy.Play{{Arm: 0, Rounds: 1}, {Arm: 1, Rounds: 1}}}
	if got := l.Weights(3); !slices.Equal(got, []float64{.2, .8}) {
		t.Errorf("joint: %v", got)
	}
}
