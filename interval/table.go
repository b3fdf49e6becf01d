package interval

// Confidence is that of all intervals of a Table together, at all times.
const Confidence = 0.95

// A Table is a row of arms whose intervals are shown beside one another: on a live experiment's page
// and report, and by sotto replay and sotto identify. Half of the risk is for the means of all arms,
// half for the differences of all pairs, so that whoever reads both of them can rely on both.
type Table struct {
	Arms   int
	Lo, Hi float64 // the range of rewards, in whose units the intervals are
}

// Mean is the interval for an arm's mean. It is nil before the first release, and where the noise is
// one of which no interval is known.
func (t Table) Mean(s Sums) *[2]float64 {
	if s.N == 0 {
		return nil
	}
	lo, hi, err := s.Interval((1 - Confidence) / 2 / float64(t.Arms))
	if err != nil {
		return nil
	}
	width := t.Hi - t.Lo
	return &[2]float64{t.Lo + float64(width*lo), t.Lo + float64(width*hi)}
}

// Difference is the interval for the mean of arm a less that of arm b, nil as Mean is. The pair may
// be chosen by what was released.
func (t Table) Difference(a, b Sums) *[2]float64 {
	if a.N == 0 || b.N == 0 {
		return nil
	}
	k := float64(t.Arms)
	lo, hi, err := Difference(a, b, (1-Confidence)/2/(k*(k-1)/2))
	if err != nil {
		return nil
	}
	width := t.Hi - t.Lo
	return &[2]float64{width * lo, width * hi}
}
