package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// orders is the public, fixed grid of Rényi orders on which losses are kept. Between two
// orders (α−1)D_α is convex in α (van Erven and Harremoës 2014, Corollary 2), so a chord is
// still an upper bound.
var orders = [...]float64{1.01, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.25, 2.5, 3, 3.5, 4, 5,
	6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48,
	56, 64, 96, 128, 192, 256, 512, 1024, 4096, 16384, 65536}

// rdpOrders returns the grid of Rényi orders on which losses are kept.
func rdpOrders() []float64 { return append([]float64(nil), orders[:]...) }

// Loss is an upper bound on what a record loses, in every currency at once: pure ε, ρ of zCDP, a
// curve of Rényi divergences, μ of Gaussian DP, and apart from these (ε,δ) for events that have no
// such bound. Losses add up in each currency and are converted only when asked. A Loss never
// changes and is one word; the zero value is no loss at all.
type Loss struct{ t *tally }

// tally holds a loss's currencies. Each is an upper bound by itself; +Inf is "no bound".
type tally struct {
	// ε; ρ; μ², which adds up as ρ does (Dong, Roth and Su 2022, Corollary 3.3)
	pure, rho, mu2 float64
	rdp            [len(orders)]float64
	// Events that are only (ε,δ)-DP add up on their own [Azize 2024, Proposition 2.9].
	epsilon, delta float64
}

// InfiniteLoss is the loss of an exact or unknown release.
func InfiniteLoss() Loss {
	t := renyiless()
	t.epsilon, t.delta = math.Inf(1), 1
	return Loss{t}
}

// renyiless is a tally without a bound in any currency but (ε,δ).
func renyiless() *tally {
	t := &tally{pure: math.Inf(1), rho: math.Inf(1), mu2: math.Inf(1)}
	for i := range t.rdp {
		t.rdp[i] = math.Inf(1)
	}
	return t
}

// LossOf is the loss of an event of which only its guarantee is known. An invalid or nil budget,
// like None, is an infinite loss. That of a Renyi budget is kept at the grid's orders up to its α,
// so an α off the grid is rounded down.
func LossOf(b Budget) Loss {
	if b == nil || b.Validate() != nil {
		return InfiniteLoss()
	}
	switch b := b.(type) {
	case Pure:
		mu := pureToGDP(b.Epsilon)
		t := &tally{pure: b.Epsilon, rho: pureToZCDP(b.Epsilon), mu2: mulUp(mu, mu)}
		for i, a := range orders {
			t.rdp[i] = pureToRenyi(b.Epsilon, a)
		}
		return Loss{t}
	case ZCDP:
		t := renyiless()
		t.rho = b.Rho
		for i, a := range orders {
			t.rdp[i] = mulUp(b.Rho, a)
		}
		return Loss{t}
	case Renyi:
		t := renyiless()
		for i, a := range orders {
			if a <= b.Alpha { // D_α is non-decreasing in α
				t.rdp[i] = b.Epsilon
			}
		}
		return Loss{t}
	case GDP: // a post-processing of the Gaussian pair
		return gaussianLoss(mulUp(b.Mu, b.Mu))
	case Approx:
		t := &tally{}
		t.epsilon, t.delta = b.Epsilon, b.Delta
		return Loss{t}
	}
	return InfiniteLoss()
}

// laplaceLoss is the loss of one release with Lap(b) noise at sensitivity 1, x = 1/b or above.
func laplaceLoss(x float64) Loss {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return InfiniteLoss()
	}
	mu := pureToGDP(x)
	t := &tally{pure: x, rho: pureToZCDP(x), mu2: mulUp(mu, mu)}
	for i, a := range orders {
		t.rdp[i] = laplaceShiftRenyi(x, a)
	}
	return Loss{t}
}

// gaussianLoss is the loss of one release with N(0,σ²) noise at sensitivity Δ, mu2 = Δ²/σ² or above.
func gaussianLoss(mu2 float64) Loss {
	if math.IsNaN(mu2) || math.IsInf(mu2, 0) {
		return InfiniteLoss()
	}
	l := LossOf(ZCDP{mu2 / 2})
	if mu2 == 0 { // σ is so large that its square has left the doubles
		l = LossOf(ZCDP{math.SmallestNonzeroFloat64})
	}
	l.t.mu2 = mu2
	return l
}

func (l Loss) tally() tally {
	if l.t == nil {
		return tally{}
	}
	return *l.t
}

// Add is the loss of both events on one record: sequential composition, also when the second was
// chosen after seeing the first ([Azize 2024, Proposition 2.9] and the text below it).
func (l Loss) Add(m Loss) Loss {
	if l.t == nil {
		return m
	}
	if m.t == nil {
		return l
	}
	return combine(l.t, m.t, addUp)
}

// Max is the loss of events that read different records: parallel composition [Azize 2024, Lemma
// 2.10], the larger of the two in each currency.
func (l Loss) Max(m Loss) Loss {
	if l.t == nil || l.t == m.t {
		return m
	}
	if m.t == nil {
		return l
	}
	return combine(l.t, m.t, func(a, b float64) float64 { return max(a, b) })
}

func combine(a, b *tally, f func(a, b float64) float64) Loss {
	t := &tally{pure: f(a.pure, b.pure), rho: f(a.rho, b.rho), mu2: f(a.mu2, b.mu2),
		epsilon: f(a.epsilon, b.epsilon), delta: min(1, f(a.delta, b.delta))}
	for i := range t.rdp {
		t.rdp[i] = f(a.rdp[i], b.rdp[i])
	}
	return Loss{t}
}

// Times is the loss of n such events on one record.
func (l Loss) Times(n int) Loss {
	if l.t == nil || n <= 0 {
		return Loss{}
	}
	if n == 1 {
		return l
	}
	k := float64(n)
	t := &tally{pure: mulUp(l.t.pure, k), rho: mulUp(l.t.rho, k), mu2: mulUp(l.t.mu2, k),
		epsilon: mulUp(l.t.epsilon, k), delta: min(1, mulUp(l.t.delta, k))}
	for i := range t.rdp {
		t.rdp[i] = mulUp(l.t.rdp[i], k)
	}
	return Loss{t}
}

// Infinite says that there is no bound in any currency.
func (l Loss) Infinite() bool {
	if l.t == nil {
		return false
	}
	if math.IsInf(l.t.epsilon, 1) || l.t.delta >= 1 {
		return true
	}
	if !math.IsInf(l.t.pure, 1) || !math.IsInf(l.t.rho, 1) || !math.IsInf(l.t.mu2, 1) {
		return false
	}
	for _, e := range l.t.rdp {
		if !math.IsInf(e, 1) {
			return false
		}
	}
	return true
}

// approx says that an event without a Rényi bound is part of the loss.
func (t *tally) approx() bool { return t.epsilon > 0 || t.delta > 0 }

// Pure is the ε of ε-DP; +Inf if there is none.
func (l Loss) Pure() float64 {
	if l.t == nil {
		return 0
	}
	if l.t.approx() {
		return math.Inf(1)
	}
	return l.t.pure
}

// ZCDP is the ρ of ρ-zCDP; +Inf if there is none.
func (l Loss) ZCDP() float64 {
	if l.t == nil {
		return 0
	}
	if l.t.approx() {
		return math.Inf(1)
	}
	return l.t.zcdp()
}

func (t *tally) zcdp() float64 { return min(t.rho, pureToZCDP(t.pure), t.mu2/2) }

// GDP is the μ of μ-Gaussian-DP; +Inf if there is none.
func (l Loss) GDP() float64 {
	if l.t == nil {
		return 0
	}
	if l.t.approx() {
		return math.Inf(1)
	}
	return min(sqrtUp(l.t.mu2), pureToGDP(l.t.pure))
}

// Renyi is the bound on the Rényi divergence of order alpha > 1; +Inf if there is none. Off the
// grid of orders it is the chord of (α−1)D_α.
func (l Loss) Renyi(alpha float64) float64 {
	if l.t == nil {
		return 0
	}
	if !(alpha > 1) || l.t.approx() {
		return math.Inf(1)
	}
	t := l.t
	best := min(mulUp(t.zcdp(), alpha), t.pure)
	if !math.IsInf(t.pure, 1) {
		best = min(best, pureToRenyi(t.pure, alpha))
	}
	below, ebelow := 1.0, 0.0
	for i, a := range orders {
		e := t.rdp[i]
		if a >= alpha {
			if a == alpha {
				return min(best, e)
			}
			w := (alpha - below) / (a - below)
			chord := (float64((1-w)*float64((below-1)*ebelow)) + float64(w*float64((a-1)*e))) / (alpha - 1)
			if !math.IsNaN(chord) {
				best = min(best, raised(chord, guard)+guard*ebelow)
			}
			return min(best, e)
		}
		below, ebelow = a, e
	}
	return best
}

// Approx is the ε of (ε,δ)-DP at this δ: the best of the conversions from every currency, plus what
// had no Rényi bound. +Inf if there is none, as for any δ smaller than what those events have spent.
func (l Loss) Approx(delta float64) float64 {
	if l.t == nil {
		return 0
	}
	t := l.t
	left := delta - t.delta
	if t.delta > 0 && left > 0 {
		left = math.Nextafter(left, 0)
	}
	if !(left >= 0) || math.IsInf(t.epsilon, 1) {
		return math.Inf(1)
	}
	if left == 0 {
		return addUp(t.epsilon, t.pure)
	}
	if left >= 1 {
		return 0
	}
	best := pureToApprox(t.pure, left)
	best = min(best, ZCDPToApproxTight(t.zcdp(), left))
	for i, a := range orders {
		best = min(best, RenyiToApprox(a, t.rdp[i], left))
	}
	if !math.IsInf(t.mu2, 1) {
		best = min(best, GaussianEpsilon(sqrtUp(t.mu2), left))
	}
	return addUp(t.epsilon, best)
}

// In is the loss in the currency of like: at its δ if that is Approx, at its α if it is Renyi. It
// is None where there is no bound, or like is None.
func (l Loss) In(like Budget) Budget {
	var b Budget
	var x float64
	switch like := like.(type) {
	case Pure:
		x = l.Pure()
		b = Pure{x}
	case ZCDP:
		x = l.ZCDP()
		b = ZCDP{x}
	case Approx:
		x = l.Approx(like.Delta)
		b = Approx{x, like.Delta}
	case Renyi:
		x = l.Renyi(like.Alpha)
		b = Renyi{like.Alpha, x}
	case GDP:
		x = l.GDP()
		b = GDP{x}
	default:
		return None{}
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return None{}
	}
	return b
}

// slack is how far, relatively, a loss may be above a budget: noise is calibrated by a division and
// priced by another, and sums round.
const slack = 1e-9

// Within says that the loss is at most b. Everything is within None; nothing but no loss is within
// an invalid budget.
func (l Loss) Within(b Budget) bool {
	if l.t == nil {
		return true
	}
	if b == nil || b.Validate() != nil {
		return false
	}
	switch b := b.(type) {
	case None:
		return true
	case Pure:
		return l.Pure() <= b.Epsilon*(1+slack)
	case ZCDP:
		return l.ZCDP() <= b.Rho*(1+slack)
	case Renyi:
		return l.Renyi(b.Alpha) <= b.Epsilon*(1+slack)
	case GDP:
		return l.GDP() <= b.Mu*(1+slack)
	case Approx:
		return l.Approx(b.Delta) <= b.Epsilon*(1+slack)
	}
	return false
}

// String is the loss for people: what it is in each currency that bounds it. A number that is next to
// nothing below one of at most six digits is written as that: the noise of a budget of 1.05 is drawn
// with fractions, and costs 1.0499999962.
func (l Loss) String() string {
	switch {
	case l.t == nil:
		return "nothing"
	case l.Infinite():
		return "none"
	case !math.IsInf(l.Pure(), 1):
		return Pure{shortUp(l.Pure())}.String()
	case !math.IsInf(l.ZCDP(), 1):
		return ZCDP{shortUp(l.ZCDP())}.String()
	}
	const delta = 1e-6
	return Approx{shortUp(l.Approx(delta)), delta}.String()
}

// shortUp is the number of at most six digits that is above x by a part of 10^-8 at most, or below by
// what rounding does; else x.
func shortUp(x float64) float64 {
	if !(x > 0 && x <= math.MaxFloat64) {
		return x
	}
	for digits := range 6 {
		unit := int(math.Floor(math.Log10(x))) - digits
		at := strconv.FormatFloat(x, 'e', digits, 64) // to the nearest
		y, err := strconv.ParseFloat(at, 64)
		if err == nil && y < x*(1-1e-14) { // upward
			n, e := math.Round(y/math.Pow10(unit))+1, unit
			y, err = strconv.ParseFloat(strconv.FormatFloat(n, 'f', 0, 64)+"e"+strconv.Itoa(e), 64)
		}
		if err == nil && y <= x*(1+1e-8) {
			return y
		}
	}
	return x
}

// orNone is a number whose infinity is written "none".
type orNone float64

func (b orNone) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(b), 1) {
		return []byte(`"none"`), nil
	}
	return json.Marshal(float64(b))
}

func (b *orNone) UnmarshalJSON(data []byte) error {
	if string(data) == `"none"` {
		*b = orNone(math.Inf(1))
		return nil
	}
	var x *float64
	if err := json.Unmarshal(data, &x); err != nil || x == nil || !(*x >= 0) {
		return fmt.Errorf("a loss is %s, must be a number, at least 0, or \"none\"", data)
	}
	*b = orNone(*x)
	return nil
}

// lossJSON is how a loss is written: the currencies by name, the curve as pairs of
// order and divergence.
type lossJSON struct {
	Epsilon *orNone     `json:"epsilon"`
	Rho     *orNone     `json:"rho"`
	Mu2     *orNone     `json:"mu2"`
	Renyi   [][2]orNone `json:"renyi,omitempty"`
	Approx  *[2]orNone  `json:"approx,omitempty"`
}

// MarshalJSON writes every currency; what has no bound is "none".
func (l Loss) MarshalJSON() ([]byte, error) {
	t := l.tally()
	e, r, m := orNone(t.pure), orNone(t.rho), orNone(t.mu2)
	out := lossJSON{Epsilon: &e, Rho: &r, Mu2: &m}
	for i, a := range orders {
		if !math.IsInf(t.rdp[i], 1) && t.rdp[i] != 0 {
			out.Renyi = append(out.Renyi, [2]orNone{orNone(a), orNone(t.rdp[i])})
		}
	}
	if t.approx() {
		out.Approx = &[2]orNone{orNone(t.epsilon), orNone(t.delta)}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes. A currency that is missing has no bound; orders off
// the grid are not used.
func (l *Loss) UnmarshalJSON(data []byte) error {
	var in lossJSON
	if err := strict(data, &in); err != nil {
		return fmt.Errorf("loss: %w", err)
	}
	t := renyiless()
	for _, c := range []struct {
		from *orNone
		to   *float64
	}{{in.Epsilon, &t.pure}, {in.Rho, &t.rho}, {in.Mu2, &t.mu2}} {
		if c.from != nil {
			*c.to = float64(*c.from)
		}
	}
	if t.pure == 0 {
		clear(t.rdp[:])
	}
	for _, p := range in.Renyi {
		for i, a := range orders {
			if a == float64(p[0]) {
				t.rdp[i] = float64(p[1])
			}
		}
	}
	if in.Approx != nil {
		t.epsilon, t.delta = float64(in.Approx[0]), float64(in.Approx[1])
		if t.delta > 1 {
			return errors.New("loss: delta is above 1")
		}
	}
	*l = Loss{t}
	return nil
}

// approxLoss is an event that is (ε,δ)-DP, ε = 0 too.
func approxLoss(epsilon, delta float64) Loss {
	if !(epsilon >= 0 && epsilon <= math.MaxFloat64 && delta >= 0 && delta < 1) {
		return InfiniteLoss()
	}
	return Loss{&tally{epsilon: epsilon, delta: delta}}
}
