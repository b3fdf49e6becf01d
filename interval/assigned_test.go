package interval

import (
	"math"
	"reflect"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// An assignment is worth the means of its cells by their shares, and its intervals are theirs.
func TestAssign(t *testing.T) {
	noise := privacy.Laplace{Scale: 1}
	arm := func(name string, n int, sum float64) NamedArm {
		return NamedArm{Name: name, Sums: Sums{N: n, Sum: sum, Releases: min(n, 3), Noise: noise}}
	}
	table := Table{Arms: 2, Lo: -1, Hi: 3, Cells: 3}
	cells := [][]NamedArm{{arm("a", 1000, 100), arm("b", 2000, 800)}, {arm("a", 500, 300), arm("b", 500, 100)},
		{arm("a", 0, 0), arm("b", 0, 0)}} // nobody of the third
	got, err := table.Assign(cells, []int{1, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if want := 0.75*(-1+4*0.4) + 0.25*(-1+4*0.6); math.Abs(*got.Mean-want) > 1e-12 {
		t.Errorf("it brings %v, must bring %v", *got.Mean, want)
	}
	sum := func(x, y *[2]float64, p, q float64) [2]float64 {
		return [2]float64{float64(p*x[0]) + float64(q*y[0]), float64(p*x[1]) + float64(q*y[1])}
	}
	none := &[2]float64{}
	for what, c := range map[string]struct{ got, want [2]float64 }{
		"value":  {got.Interval, sum(table.Mean(cells[0][1].Sums), table.Mean(cells[1][0].Sums), 0.75, 0.25)},
		"over a": {*got.Over[0].Interval, sum(table.Lead(cells[0], 1, 0), none, 0.75, 0)},
		"over b": {*got.Over[1].Interval, sum(none, table.Lead(cells[1], 0, 1), 0, 0.25)},
	} {
		if math.Abs(c.got[0]-c.want[0])+math.Abs(c.got[1]-c.want[1]) > 1e-12 {
			t.Errorf("%s: %v, must be %v", what, c.got, c.want)
		}
	}
	if !got.Over[0].Better || got.Over[0].Arm != "a" || !got.Over[1].Better {
		t.Errorf("%+v", got.Over)
	}
	// of an arm that nobody of the cell was given nothing is known
	cells[1][0] = arm("a", 0, 0)
	got, err = table.Assign(cells, []int{1, 0, 0})
	if err != nil || got.Mean != nil || got.Interval[1]-got.Interval[0] < 4*500.0/3500 || got.Over[1].Better {
		t.Errorf("%+v, %v", got, err)
	}
	nothing, err := table.Assign([][]NamedArm{cells[2], cells[2], cells[2]}, []int{0, 0, 0})
	if err != nil || nothing.Mean != nil || nothing.Interval != [2]float64{-1, 3} {
		t.Errorf("%+v, %v", nothing, err)
	}
	for _, bad := range [][]int{{0, 0}, {0, 0, 2}, {0, -1, 0}} {
		if _, err := table.Assign(cells, bad); err == nil {
			t.Errorf("arms %v", bad)
		}
	}
	if got, err := (Table{Arms: 2}).Assign(nil, nil); err != nil || !reflect.DeepEqual(got, Assigned{Over: []Lead{}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// The interval holds at all looks together, with all noises in it. Of 50 runs more than 14 are missed with probability
// below 1e-6 where it is 5 % (binomial). A broken copy that counts a tenth of the noise misses nearly all.
func TestAssignCovers(t *testing.T) {
	draws := noise.NewFast(5, 6)
	means := [2][2]float64{{0.1, 0.3}, {0.5, 0.2}}
	missed := func(scale float64) (n int) {
		table := Table{Hi: 1, Arms: 2, Cells: 2}
		for range 50 {
			cells, out := make([][]NamedArm, 2), false
			for c := range cells {
				cells[c] = make([]NamedArm, 2)
				for a := range cells[c] {
					cells[c][a].Noise = privacy.Laplace{Scale: scale}
				}
			}
			for range 4 {
				for c := range cells {
					for a := range cells[c] {
						s := &cells[c][a].Sums
						s.N, s.Releases = s.N+20, s.Releases+1
						s.Sum += float64(draws.Binomial(20, means[c][a])) + draws.Laplace(20)
					}
				}
				got, err := table.Assign(cells, []int{1, 0})
				if err != nil {
					t.Fatal(err)
				}
				const truth = (0.3 + 0.5) / 2
				out = out || truth < got.Interval[0] || truth > got.Interval[1]
			}
			if out {
				n++
			}
		}
		return n
	}
	if n := missed(20); n > 14 {
		t.Errorf("in %d runs of 50 the value is outside its interval", n)
	}
	if n := missed(2); n <= 14 {
		t.Errorf("a broken copy is missed in %d runs of 50", n)
	}
}
