package policy

import "errors"

// Coins are a policy's own randomness: it randomises choices with them, never releases. Whoever
// builds a policy gives it coins, so that a policy stays a function: the same coins and the same
// transcript of releases make the same choices.
type Coins interface {
	Float64() float64          // uniform on [0,1)
	Normal() float64           // standard normal
	Beta(a, b float64) float64 // Beta(a,b), for a, b > 0
}

func checkCoins(c Coins) error {
	if c == nil {
		return errors.New("coins are missing: it randomises its choices")
	}
	return nil
}
