package privacy_test

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// What is joined has the sums of its parts and their law, and stays when the curator's own change.
func TestJoin(t *testing.T) {
	l := privacy.NewLedger()
	v := &privacy.Values{N: []int{3, 4}, Sum: []float64{1, 2}, Tail: privacy.Tail{H: 1}}
	both, err := l.ReleaseAll([]int{0, 1}, privacy.Laplace{Scale: 1}, v)
	if err != nil {
		t.Fatal(err)
	}
	one := both.Part(1)
	v.N[1], v.Sum[1] = 9, 9
	got, err := privacy.Join(one, privacy.Released{}, both)
	if err != nil || got.Len() != 3 || got.N(0) != 4 || got.Sum(0) != 2 || got.N(2) != 9 || got.Sum(1) != 1 ||
		got.Tail() != both.Tail() || !got.Laplace() {
		t.Errorf("%+v, %v", got, err)
	}
	other, err := l.Release(2, privacy.Gaussian{Sigma: 1}, &privacy.Values{N: []int{1}, Sum: []float64{0},
		Tail: privacy.Tail{Sigma: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := privacy.Join(one, other); err == nil || got.Len() > 0 {
		t.Errorf("two laws are one: %+v", got)
	}
	if got, err := privacy.Join(); err != nil || got.Len() != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Totals are those of their sums, and have the noise of all of them: its tail holds, and that of one noise does not.
// At x = 3 a bound that holds is passed in e⁻³ of 100 000 draws or fewer, beyond 0.0084 more of them with
// probability 1e-6 at most (Hoeffding).
func TestFold(t *testing.T) {
	draws := noise.NewFast(3, 4)
	for name, m := range map[string]privacy.Mechanism{"laplace": privacy.Laplace{Scale: 2},
		"gaussian": privacy.Gaussian{Sigma: 2}} {
		tail := m.(interface{ Tail() privacy.Tail }).Tail()
		l := privacy.NewLedger()
		all, err := l.ReleaseAll([]int{0, 1, 2, 3, 4}, m, &privacy.Values{N: []int{1, 2, 3, 4, 5},
			Sum: []float64{1, 2, 3, 4, 5}, Tail: tail})
		if err != nil {
			t.Fatal(err)
		}
		got, err := all.Fold([]int{4, 1})
		if err != nil || got.Len() != 2 || got.N(0) != 10 || got.Sum(0) != 10 || got.N(1) != 5 || got.Sum(1) != 5 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if k, scale := got.Noises(0); got.Laplace() || name == "laplace" && (k != 4 || scale != 2) {
			t.Errorf("%s: %v noises of scale %v", name, k, scale)
		}
		if same, err := all.Fold([]int{1, 1, 1, 1, 1}); err != nil || same.Tail() != tail ||
			same.Laplace() != (name == "laplace") {
			t.Errorf("%s: sums of one are %+v, %v", name, same, err)
		}
		if got, err := privacy.Join(all.Part(0), got); err != nil || got.Laplace() || got.Tail().Sigma < tail.Sigma {
			t.Errorf("%s: one noise beside four is %+v, %v", name, got, err)
		}
		for _, bad := range [][]int{{4}, {4, 2}, {0, 5}, {5, 1}} {
			if _, err := all.Fold(bad); err == nil {
				t.Errorf("%s: totals of %v", name, bad)
			}
		}
		const n, x = 100_000, 3.0
		beyond := func(tail privacy.Tail) float64 { return tail.Sigma*math.Sqrt(2*x) + tail.H*(x+tail.Log) }
		four, one := 0, 0
		for range n {
			sum := 0.0
			for range 4 {
				if name == "laplace" {
					sum += draws.Laplace(2)
				} else {
					sum += 2 * draws.Normal()
				}
			}
			if sum > beyond(got.Tail()) {
				four++
			}
			if sum > beyond(tail) {
				one++
			}
		}
		if most := (math.Exp(-x) + 0.0084) * n; float64(four) > most || float64(one) <= most {
			t.Errorf("%s: the tail is passed %d times, and one noise's %d times", name, four, one)
		}
	}
}
