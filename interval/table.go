package interval

// Confidence is that of all intervals of a Table together, at all times.
const Confidence = 0.95

// A Table is a row of arms whose intervals are shown beside one another: on a live experiment's page
// and report, and by sotto replay and sotto identify. Half of the risk is for the means of all arms,
// half for the differences of all pairs, so that whoever reads both of them can rely on both; of joint
// batches, whose question is the difference, a tenth and nine tenths.
type Table struct {
	Arms   int
	Lo, Hi float64 // the range of rewards, in whose units the intervals are
	Joint  *Joint  // nil where arms are released by clocks of their own, or shares change
	Cells  int     // tables that share the risk, each of a cell of the decisions; 0 for this one alone
}

// risks are those of all means, and of all differences.
func (t Table) risks() (means, differences float64) {
	part := 0.5
	if t.Joint != nil {
		part = 0.1
	}
	means = (1 - Confidence) * part
	each := float64(max(1, t.Cells))
	return means / each, (1 - Confidence - means) / each
}

// Mean is the interval for an arm's mean. It is nil before the first release, and where the noise is
// one of which no interval is known.
func (t Table) Mean(s Sums) *[2]float64 {
	if s.N == 0 {
		return nil
	}
	risk, _ := t.risks()
	var plan Plan
	if t.Joint != nil {
		plan = t.Joint.Plan
	}
	lo, hi, err := plan.Mean(s, risk/float64(t.Arms))
	if err != nil {
		return nil
	}
	width := t.Hi - t.Lo
	return &[2]float64{t.Lo + float64(width*lo), t.Lo + float64(width*hi)}
}

// Difference is the interval for the mean of arm a less that of arm b, nil as Mean is. The pair may
// be chosen by what was released. It is the package's Difference, of constant means: Verdict has the
// intervals of joint batches.
func (t Table) Difference(a, b Sums) *[2]float64 {
	if a.N == 0 || b.N == 0 {
		return nil
	}
	_, risk := t.risks()
	k := float64(t.Arms)
	lo, hi, err := Difference(a, b, risk/(k*(k-1)/2))
	if err != nil {
		return nil
	}
	width := t.Hi - t.Lo
	return &[2]float64{width * lo, width * hi}
}
