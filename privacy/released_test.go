package privacy_test

import (
	"testing"

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
