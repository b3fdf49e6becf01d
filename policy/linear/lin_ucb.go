package linear

import (
	"errors"

	"github.com/sotto-dp/sotto/privacy"
)

// LinUCB is optimism on an ellipsoid under joint differential privacy: contexts and rewards are both private (Shariff and Sheffet 2018).
type LinUCB struct{}

// A GramNoise is the mechanism that hides LinUCB's running Gram matrix.
type GramNoise int

const (
	GramBLT     GramNoise = iota // privacy.GramBLT, normal noise correlated over rounds: the least of it
	GramTree                     // privacy.GramTree, normal noise on the nodes of a binary tree
	GramWishart                  // privacy.GramWishart, Wishart noise on the nodes of a binary tree: for (ε,δ) only
)

// LinUCBOptions are the parameters of LinUCB.
type LinUCBOptions struct {
	Risk float64 // α from 1e-300 to below 1, the probability that a confidence set fails
	// Lambda is λ, the least regulariser, from 1e-12 to 1e12: ρ_min is λ, or the bound Υ on the noise where that is more. At budget None it is the ridge
	// parameter.
	Lambda float64
	Noise  GramNoise // not used at budget None
	C      float64   // a new estimate when det V has grown by more than 1+C; 0 for one every round, as in the source
}

// NewLinUCB returns LinUCB for actions in ℝ^d, a horizon of at least one round, and a budget: ZCDP, Approx or Renyi (Approx alone with GramWishart),
// or None for LinUCB without privacy.
func NewLinUCB(dim, horizon int, b privacy.Budget, o LinUCBOptions) (*LinUCB, error) {
	return nil, errors.New("lin-ucb: not yet")
}
