package audit

import (
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// A meter turns releases into scores. It knows the mechanism that is claimed and every reward but
// that of the challenge, so what it does not know of a release is its noise, and whether the reward
// was low or high: the residual, the release less what the world without the target would have, is
// the noise, or the noise plus shift.
type meter struct {
	mech   privacy.Mechanism
	draws  privacy.Draws
	arm    int // of the challenge, −1 before it
	shift  float64
	reads  int // releases of the arm since then
	llr    float64
	twice  float64
	sum    float64 // of residuals of the arm since then, each over its variance
	weight float64 // of the inverse variances
	across float64
	found  bool    // across is known
	value  float64 // what the reward seems to be above Low; NaN: nothing has read it
	arms   []track
	coef   []float64 // of the counters with correlated noise
	shown  []privacy.Shown
	spread []float64 // variances of the noise by number of rewards, of this mechanism
	of     privacy.Mechanism
	sparse questions
}

// A track holds the residuals of an arm's running sums.
type track struct {
	residual   []float64 // by number of rewards; NaN if there was no release
	difference []float64
	white      []float64
	last       float64 // residual of the last release, whatever the mechanism
	known      bool
}

func (m *meter) begin(mech privacy.Mechanism) {
	m.arm, m.reads, m.llr, m.twice, m.sum, m.weight, m.across, m.found = -1, 0, 0, 0, 0, 0, 0, false
	m.value = math.NaN()
	m.fresh(mech)
}

// fresh forgets what an emptied curator forgets.
func (m *meter) fresh(mech privacy.Mechanism) {
	if m.mech != mech {
		m.mech, m.coef, m.shown = mech, m.coef[:0], m.shown[:0]
		m.draws, _ = privacy.DrawsOf(mech)
	}
	for i := range m.arms {
		t := &m.arms[i]
		t.residual, t.difference, t.white, t.known = t.residual[:0], t.difference[:0], t.white[:0], false
	}
	m.sparse.begin(mech)
}

func (m *meter) target(arm int, high, low float64) {
	m.arm, m.shift = arm, min(max(high, 0), 1)-min(max(low, 0), 1)
	if m.shift == 0 {
		m.shift = 1 // out of range both: whoever does not clip shows it
	}
}

// laplace is the log-likelihood ratio of a residual under Lap(b).
func laplace(e, shift, b float64) float64 { return (math.Abs(e) - math.Abs(e-shift)) / b }

// normal is that under N(0, σ²).
func normal(e, shift, sigma float64) float64 {
	return float64(shift*(e-shift/2)) / (sigma * sigma)
}

// one is the log-likelihood ratio of one residual if the mechanism adds noise once.
func (m *meter) one(e float64) float64 {
	if m.draws.Law == "" {
		return e * m.shift
	}
	return m.drawn(e, 1)
}

// drawn is that of a residual which is a draw of this weight.
func (m *meter) drawn(e float64, weight int) float64 {
	scale := m.draws.Scale * float64(weight)
	if m.draws.Law == privacy.NoiseGaussian {
		return normal(e, m.shift, scale)
	}
	return laplace(e, m.shift, scale)
}

// coarse rounds a residual to 2⁻³². Simulated noise is a float64, whose last bits tell a sum of 0
// from a sum of 1 (Mironov 2012): without rounding every audit of release.Simulated would find just
// that. It protects nobody; release.Real draws on a grid, where there are no such bits.
func coarse(e float64) float64 { return math.Round(e*(1<<32)) / (1 << 32) }

// release takes releases of the arms in.
func (m *meter) release(arms []int, slots []slot, r privacy.Released) {
	for i, a := range arms {
		m.take(a, r.Sum(i)-slots[a].sum, &slots[a])
	}
	m.compare(arms, slots)
}

// take takes the residual of one release in.
func (m *meter) take(a int, e float64, s *slot) {
	e = coarse(e)
	m.arms[a].last, m.arms[a].known = e, true
	if m.arm < 0 {
		m.counter(a, e, s)
		return
	}
	if a != m.arm {
		return
	}
	m.reads++
	w := 1 / m.variance(s.n)
	m.sum += float64(float64(e*m.shift) * w)
	m.weight += w
	switch {
	case m.mech.Continual():
		m.llr += m.counter(a, e, s)
		m.twice = m.llr
	case s.position > 0:
		x := m.one(e)
		m.value = e
		m.llr += x
		m.twice += x
	case m.reads == 2:
		m.twice += m.one(e - s.before)
	}
}

// variance is that of the noise in the running sum of n rewards, and 1 for mechanisms that release
// once: all their releases are alike.
func (m *meter) variance(n int) float64 {
	if !m.mech.Continual() || n < 1 {
		return 1
	}
	if m.of != m.mech {
		m.of, m.spread = m.mech, m.spread[:0]
	}
	for i := len(m.spread); i <= n; i++ {
		v := 1.0
		switch {
		case m.draws.Variance != nil:
			v = m.draws.Variance(i)
		case m.draws.Weights != nil: // all of one variance
			v = float64(len(m.draws.Weights(nil, i)))
		}
		m.spread = append(m.spread, v)
	}
	return m.spread[n]
}

// compare looks at the difference of the changed arm's residual and another one's, once, as soon
// as there are both.
func (m *meter) compare(arms []int, slots []slot) {
	if m.arm < 0 || m.found || len(m.arms) < 2 {
		return
	}
	read := false
	for _, a := range arms {
		read = read || a == m.arm && slots[a].position > 0
	}
	if !read {
		return
	}
	for b := range m.arms {
		// Of a joint release if there is one, otherwise the last one of any arm.
		if b != m.arm && m.arms[b].known {
			d := m.arms[m.arm].last - m.arms[b].last
			// Whatever noise the two share is gone: what is left is 0 or shift, or noise.
			m.across = math.Abs(d) - math.Abs(d-m.shift)
			m.found = true
			if contains(arms, b) {
				return
			}
		}
	}
}

func contains(x []int, v int) bool {
	for _, y := range x {
		if y == v {
			return true
		}
	}
	return false
}

// counter takes a running sum's residual in, and returns its share of the log-likelihood ratio:
// what is new in it, given those before.
func (m *meter) counter(a int, e float64, s *slot) float64 {
	if !m.mech.Continual() {
		return 0
	}
	t := &m.arms[a]
	for len(t.residual) <= s.n {
		t.residual = append(t.residual, math.NaN())
	}
	t.residual[0] = 0
	t.residual[s.n] = e
	if m.draws.Column != nil {
		return m.white(t, e, s)
	}
	total := 0.0
	if m.draws.Shows != nil {
		m.shown = m.draws.Shows(m.shown[:0], s.n)
	}
	for _, of := range m.shown {
		if x := t.residual[of.From]; !math.IsNaN(x) && s.position > of.From && s.position <= s.n {
			total += m.drawn(e-x, of.Weight)
		}
	}
	return total
}

// white is the share of a running sum whose noise is AC⁻¹z: z is C times the differences of the
// residuals, and the reward moves it by a column of C.
func (m *meter) white(t *track, e float64, s *slot) float64 {
	if len(t.difference) != s.n-1 {
		return 0 // rewards without a release in between: what is new is not known alone
	}
	for len(m.coef) <= s.n {
		m.coef = append(m.coef, m.draws.Column(m.coef))
	}
	t.difference = append(t.difference, e-t.residual[s.n-1])
	if s.position == 0 {
		return 0
	}
	z := 0.0
	for k := range s.n {
		z += float64(m.coef[k] * t.difference[s.n-1-k])
	}
	return normal(z, float64(m.coef[s.n-s.position]*m.shift), m.draws.Scale)
}

// answer takes the answer of a question in.
func (m *meter) answer(arms []int, slots []slot, above float64, yes bool) {
	m.sparse.ask(arms, slots, m.arm, m.shift, above, yes)
	if yes {
		x := m.sparse.ratio()
		m.llr += x
		m.twice += x
		m.sparse.end()
	}
}

func (m *meter) finish(out []float64) {
	m.llr += m.sparse.ratio()
	out[scoreRatio], out[scoreTwice], out[scoreAcross], out[scoreMean] = m.llr, m.twice, m.across, 0
	if m.reads > 0 {
		out[scoreMean] = m.sum / m.weight
		if m.mech.Continual() {
			m.value = out[scoreMean] // of shift 1
		}
	}
}

// grid is the number of values of the threshold's noise that stand for its law, of the same mass
// each.
const grid = 32

// questions is the likelihood of a sparse mechanism's answers in either world. The threshold's noise
// is common to all answers of a group, so it is integrated out; given it they are independent.
type questions struct {
	privacy.Questions
	on       bool
	noise    [grid]float64
	low      [grid]float64 // log-likelihoods in the world without the target
	high     [grid]float64
	differed bool
	for_     privacy.Mechanism
}

func (q *questions) begin(m privacy.Mechanism) {
	s, ok := m.(privacy.Sparse)
	q.on = ok
	if !ok {
		return
	}
	if q.for_ != m {
		q.for_, q.Questions = m, s.Questions
		for i := range q.noise {
			u := (float64(i) + 0.5) / grid
			if u < 0.5 {
				q.noise[i] = s.Threshold * math.Log(2*u)
			} else {
				q.noise[i] = -s.Threshold * math.Log(2*(1-u))
			}
		}
	}
	q.end()
}

func (q *questions) end() {
	q.differed = false
	q.low, q.high = [grid]float64{}, [grid]float64{}
}

func (q *questions) ask(arms []int, slots []slot, arm int, shift, above float64, yes bool) {
	if !q.on {
		return
	}
	low := q.statistic(arms, slots, -1, 0)
	high := low
	if arm >= 0 && slots[arm].position > 0 && contains(arms, arm) {
		high = q.statistic(arms, slots, arm, shift)
		q.differed = true
	}
	for i, rho := range q.noise {
		l := logAnswer(above+rho-low, q.Query, yes)
		q.low[i] += l
		if high != low {
			l = logAnswer(above+rho-high, q.Query, yes)
		}
		q.high[i] += l
	}
}

func (q *questions) statistic(arms []int, slots []slot, arm int, shift float64) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, a := range arms {
		x := slots[a].sum
		if a == arm {
			x += shift
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	if q.Statistic == privacy.Centre {
		return math.Abs(hi - float64(slots[arms[0]].n)/2)
	}
	return hi - lo
}

// logAnswer is the log-probability that Lap(scale) is above x, or not.
func logAnswer(x, scale float64, yes bool) float64 {
	if !yes {
		x = -x
	}
	x /= scale
	if x > 0 {
		return -x - math.Ln2
	}
	return math.Log1p(-math.Exp(x) / 2)
}

// ratio is the log-likelihood ratio of the answers of the group.
func (q *questions) ratio() float64 {
	if !q.on || !q.differed {
		return 0
	}
	return logSum(q.high[:]) - logSum(q.low[:])
}

func logSum(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, v)
	}
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}
