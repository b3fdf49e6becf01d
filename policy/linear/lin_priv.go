package linear

import (
	"errors"

	"github.com/sotto-dp/sotto/privacy"
)

// LinPriv is optimism with one regression an arm and private rewards (Neel and Roth 2018).
type LinPriv struct{}

// LinPrivOptions are the parameters of LinPriv.
type LinPrivOptions struct {
	Lambda float64 // λ, the ridge parameter of each arm, from 1e-12 to 1e12
	Risk   float64 // δ from 1e-300 to below 1, the probability that a confidence interval fails
}

// NewLinPriv returns LinPriv for decision sets of at most this many arms, arm i being the i-th vector of each set, and a budget: Pure, as in the source,
// ZCDP, Approx or Renyi, or None.
func NewLinPriv(dim, arms, horizon int, b privacy.Budget, o LinPrivOptions) (*LinPriv, error) {
	return nil, errors.New("lin-priv: not yet")
}
