package audit

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// CovarianceOf is the attack for a mean and a covariance that are known, or were estimated
// elsewhere, for an attack on the mean of this many rows. A singular covariance is ErrSingular.
func CovarianceOf(mean []float64, covariance mat.Symmetric, rows int) (Covariance, error) {
	if err := checkRows(rows); err != nil {
		return Covariance{}, err
	}
	if err := sameDim("the covariance", covariance.SymmetricDim(), len(mean)); err != nil {
		return Covariance{}, err
	}
	c := Covariance{mean: append([]float64(nil), mean...), rows: rows, chol: new(mat.Cholesky)}
	if !c.chol.Factorize(covariance) || c.chol.Cond() >= 1e12 {
		return Covariance{}, fmt.Errorf("audit: %w: that of %d dimensions", ErrSingular, len(mean))
	}
	var l mat.TriDense
	c.chol.LTo(&l)
	c.lower = l.RawTriangular()
	return c, nil
}

// Mean is μ̂₀.
func (c Covariance) Mean() []float64 { return append([]float64(nil), c.mean...) }

// Matrix is Ĉ₀ as it is in use, shrunk or not.
func (c Covariance) Matrix() *mat.SymDense {
	var s mat.SymDense
	c.chol.ToSym(&s)
	return &s
}
