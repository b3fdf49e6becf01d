package play

import "slices"

// Weights are shares of the arms that whoever decides by them for a while gives the policy what it asks for: of
// a Joint policy its own, and else those in which Arm would give the next n decisions, or as many as the batch
// that is played still wants if that is more. So an arm that has all of its decisions has no share while others
// want some, and when none does they go on in the batch's shares. What is decided beyond a batch is in the queue
// of its arm, as ever. They follow from the batch and from counts alone; nil if the policy wants nothing more.
func (l *Live) Weights(n float64) []float64 {
	if l.stopped || l.ending || len(l.plan) == 0 {
		return nil
	}
	if shares := l.Shares(); shares != nil {
		return slices.Clone(shares)
	}
	rounds, have, want := make([]float64, len(l.plan)), make([]float64, len(l.plan)), 0.
	for i, p := range l.plan {
		rounds[i], have[i] = float64(p.Rounds), float64(l.have(i))
		want += max(0, rounds[i]-have[i])
	}
	out := make([]float64, len(l.s.Arms))
	if n = max(n, want); !(n > 0) {
		n = 1
	}
	// The level up to which decisions fill each play, in parts of its rounds: the plays that are below it have
	// n together.
	order := make([]int, len(l.plan))
	for i := range order {
		order[i] = i
	}
	at := func(i int) float64 { return have[i] / rounds[i] }
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case at(i) < at(j):
			return -1
		case at(i) > at(j):
			return 1
		}
		return 0
	})
	var level, sum, all float64
	for k, i := range order {
		if k > 0 && at(i) >= level {
			break
		}
		sum, all = sum+rounds[i], all+have[i]
		level = (n + all) / sum
	}
	for i, p := range l.plan {
		out[p.Arm] += max(0, float64(level*rounds[i])-have[i]) / n
	}
	return out
}
