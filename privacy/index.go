package privacy

import "math"

// An Index is the condition sum/n + Root/√n + Inv/n > Above on a noisy sum of n rewards, as data:
// whoever makes releases one after the other can see from them alone when their reader wants to
// hear of one (policy.Stayer).
type Index struct{ Root, Inv, Above float64 }

// Holds says whether the index of this release is above.
func (x Index) Holds(n int, sum float64) bool {
	inv := 1 / float64(n)
	mean := float64(sum * inv)
	return mean+float64(x.Root*math.Sqrt(inv))+float64(x.Inv*inv) > x.Above
}
