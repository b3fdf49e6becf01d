package audit_test

import (
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/noise"
)

// The attack of a covariance that is given is the attack of the references that it came from.
func TestCovarianceOf(t *testing.T) {
	src := noise.NewFast(31, 1)
	refs := make([][]float64, 12)
	for i := range refs {
		refs[i] = []float64{src.Normal(), src.Normal() + 1, src.Normal()}
		refs[i][2] += refs[i][0]
	}
	from, err := audit.NewCovariance(refs, 5, true)
	if err != nil {
		t.Fatal(err)
	}
	given, err := audit.CovarianceOf(from.Mean(), from.Matrix(), 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, attack := range [][2]audit.Attack{{from, given},
		{audit.GLiR{Covariance: from}, audit.GLiR{Covariance: given}}} {
		var score [2]float64
		for i, a := range attack {
			s, err := a.Aim([]float64{1, 2, 3})
			if err != nil {
				t.Fatal(err)
			}
			score[i] = s.Score([]float64{0.1, 0.9, 0.2})
		}
		if math.Abs(score[0]-score[1]) > 1e-10*math.Abs(score[0]) {
			t.Errorf("%T: %v of references, %v of their covariance", attack[0], score[0], score[1])
		}
	}
	if _, err := audit.CovarianceOf([]float64{0, 0}, mat.NewSymDense(2, []float64{1, 1, 1, 1}),
		5); !errors.Is(err, audit.ErrSingular) {
		t.Errorf("a singular covariance: %v", err)
	}
	if _, err := audit.CovarianceOf([]float64{0}, mat.NewSymDense(2, []float64{1, 0, 0, 1}),
		5); !errors.Is(err, audit.ErrShape) {
		t.Errorf("a mean of one dimension: %v", err)
	}
}
