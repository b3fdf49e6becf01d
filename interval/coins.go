package interval

import "math"

// Tosses are how often a coin came up heads and tails that shows heads with probability P.
type Tosses struct {
	Heads, Tails int
	P            float64 // in (0,1)
}

// Evidence is what tosses say against their probabilities: the logarithm of a supermartingale that begins
// at 0. It is ever above log(1/risk) with probability risk at most, whoever looks when, if each toss shows
// heads with its P, given all before it. Which of the coins is tossed next, and whether any is, may depend
// on all before it.
//
// Proof. Had a coin the probability q, a toss would multiply the likelihood by (q/P or (1−q)/(1−P)), whose
// mean is 1 if P is right. So the product over all tosses is a martingale for each q, and so is its mixture
// over q by a law that is fixed beforehand, a Beta law of mean P; for several coins, the product of these.
// Ville's inequality does the rest. The mixture is B(a+heads, b+tails) / (B(a, b) P^heads (1−P)^tails).
func Evidence(all []Tosses) float64 {
	sum := 0.0
	for _, t := range all {
		if t.Heads+t.Tails == 0 {
			continue
		}
		a, b := t.P/min(t.P, 1-t.P), (1-t.P)/min(t.P, 1-t.P)
		heads, tails := float64(t.Heads), float64(t.Tails)
		sum += logBeta(a+heads, b+tails) - logBeta(a, b) - float64(heads*math.Log(t.P)) -
			float64(tails*math.Log1p(-t.P))
	}
	return sum
}

// Any is the evidence that one of several has: the logarithm of the mean of their supermartingales, which
// is one, too.
func Any(all []float64) float64 {
	top, sum := math.Inf(-1), 0.0
	for _, x := range all {
		top = max(top, x)
	}
	if math.IsInf(top, -1) {
		return 0
	}
	for _, x := range all {
		sum += math.Exp(x - top)
	}
	return top + math.Log(sum/float64(len(all)))
}

func logBeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	z, _ := math.Lgamma(a + b)
	return x + y - z
}
