package interval

// A Controlled is a row of arms that are held against one of them, the control, which is fixed before
// anything is released: the metrics of a live experiment. Half of the risk is for the means of all
// arms, half for their differences to the control. These are as many as there are other arms, and not
// as many as there are pairs, so that each is narrower than that of a Table.
//
// All of its intervals hold together at all times, but for a probability of Risk: each has its share
// of it, and the shares add up (Boole's inequality). For several rows together the risks add up too.
type Controlled struct {
	Arms   int
	Lo, Hi float64 // the range of what is counted, in whose units the intervals are
	Risk   float64 // in (0,1), of the whole row
}

// Mean is the interval for an arm's mean. It is nil before the first release, and where the noise is
// one of which no interval is known.
func (c Controlled) Mean(s Sums) *[2]float64 {
	if s.N == 0 {
		return nil
	}
	lo, hi, err := s.Interval(c.Risk / 2 / float64(c.Arms))
	if err != nil {
		return nil
	}
	return &[2]float64{c.Lo + float64((c.Hi-c.Lo)*lo), c.Lo + float64((c.Hi-c.Lo)*hi)}
}

// mostControlled is of how many arms a row has differences of their own: each takes as long as fifty
// means.
const mostControlled = 32

// Difference is the interval for the mean of an arm less that of the control, nil as Mean is. Of a row
// of more than 32 arms it is what the intervals of the two means leave, which is wider, and made at once.
func (c Controlled) Difference(arm, control Sums) *[2]float64 {
	a, b := c.Mean(arm), c.Mean(control)
	if a == nil || b == nil {
		return nil
	}
	if c.Arms > mostControlled {
		return &[2]float64{a[0] - b[1], a[1] - b[0]}
	}
	lo, hi, err := Difference(arm, control, c.Risk/2/float64(c.Arms-1))
	if err != nil {
		return nil
	}
	return &[2]float64{float64((c.Hi - c.Lo) * lo), float64((c.Hi - c.Lo) * hi)}
}

// Effect is Difference in joint batches, of an arm that has this share of the decisions that it or the control
// was given. It is the package's Effect without a plan: right whatever means do, and narrower.
func (c Controlled) Effect(arm, control Sums, share float64) *[2]float64 {
	if arm.N == 0 || control.N == 0 {
		return nil
	}
	lo, hi, err := Effect(arm, control, share, Plan{}, c.Risk/2/float64(c.Arms-1))
	if err != nil {
		return nil
	}
	return &[2]float64{float64((c.Hi - c.Lo) * lo), float64((c.Hi - c.Lo) * hi)}
}
