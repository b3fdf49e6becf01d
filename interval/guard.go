package interval

// Side says on which side of a value the mean surely is: 1 where Interval at this risk lies above the
// value, −1 where it lies below, and 0 where the value is in it. It costs one look at the mixture, where
// an interval costs a search.
//
// A guard rests on it. Let it say that a mean must stay below x, and have it act on an arm as soon as Side
// is 1 after any of its releases.
//
// Theorem. Take G guards and K arms, the guard g at risk r_g, and judge each arm by each guard at r_g/(G·K).
// Whatever is released, and whatever is paused meanwhile: with probability at most r_g/G the guard g ever
// acts on an arm whose rewards each have a mean, given all before it, that keeps the bound; and with
// probability at most max r_g any guard ever does so to any arm. The same risks bound that Side is ever −1,
// which is what a ramp waits for, for an arm of which each mean is x or more.
//
// Proof. Interval covers, at all times together, the average of the means that the arm's rewards had so
// far, but for a probability of its risk. If each of these means is at most x, so is their average, and an
// interval above x has missed it. So one guard ever acts on one arm that keeps its bound with probability
// r_g/(G·K) at most. The events of K arms and G guards add up (Boole's inequality), however they depend
// on each other: to K·r_g/(G·K), and to Σ_g r_g/G. An arm that is no longer played is judged no more,
// which takes events away. For bounds from above the other way round, by 1 less the reward. ∎
//
// What is not covered: an arm whose mean was past the bound for a while, and is not now, may be paused;
// and nothing says how soon an arm that does harm is, which follows from the noise and the decisions.
func (s Sums) Side(value, risk float64) (int, error) {
	level, err := levelOf(risk)
	if err != nil {
		return 0, err
	}
	m, err := s.mixture()
	if err != nil {
		return 0, err
	}
	for _, side := range []float64{1, -1} {
		at := value + side*rounding // the mixture is convex: at falls towards the means that it allows
		if against, slope := m.value(at); at > 0 && at < 1 && against > level && slope*side < 0 {
			return int(side), nil
		}
	}
	return 0, nil
}
