package privacy

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// # What a cap proves
//
// A cap is a filter: a rule that looks at the prices so far and admits the next event or refuses
// it. The events may be chosen in the light of everything that was released before, their noise
// included, and so may their number and their prices.
//
// Theorem. Let every event of a slot cost c₁, c₂, … in one currency that was fixed beforehand,
// each cᵢ a function of what was released before event i, and let the filter admit event i only
// if c₁ + … + cᵢ ≤ C. Then all that is released of the slot costs at most C in that currency.
// The currencies are
//
//	ε      pure differential privacy (Rogers, Roth, Ullman and Vadhan 2016)
//	ρ      zero-concentrated (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023)
//	α, ε   the Rényi divergence of one order α (Feldman and Zrnic 2021; Lécuyer 2021)
//	μ²     Gaussian differential privacy, C = μ² (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023)
//	ε, δ   both added up, with no conversion (the basic filter of Rogers et al. 2016): of an event that is pure ε and 0, of one that
//	       is known by its own (ε,δ) only, that
//
// Proofs. Write P and Q for two neighbours, pᵢ and qᵢ for the densities of event i given what came
// before it, and L = Π pᵢ/qᵢ.
//
//   - ε: L ≤ e^{Σcᵢ} ≤ e^C, whatever was released. Coq checks it where outcomes are discrete, for each of them
//     (proofs/Composition.v#cap_is_a_filter) and for sets (proofs/Composition.v#dp_of_sets and
//     proofs/Composition.v#dp_of_infinite_sets).
//   - Rényi: given the past, E_Q (pᵢ/qᵢ)^α ≤ e^{(α−1)cᵢ}, and cᵢ is known by then. So
//     (p₁…pᵢ/q₁…qᵢ)^α e^{−(α−1)(c₁+…+cᵢ)} is a supermartingale under Q that starts at 1; at the end
//     Σcᵢ ≤ C, hence E_Q L^α ≤ e^{(α−1)C}. For events without end, Fatou.
//   - ρ: an event that is ρᵢ-zCDP costs αρᵢ at every order, and Σρᵢ ≤ ρ is one and the same filter
//     for all of them.
//   - μ²: let B be a Brownian motion with drift 0 under Q and 1 under P, and Sᵢ = c₁ + … + cᵢ. Its
//     increment from Sᵢ₋₁ to Sᵢ is N(0,cᵢ) or N(cᵢ,cᵢ), a pair as hard to tell apart as N(0,1) and
//     N(√cᵢ,1), and independent of the path before (Sᵢ is known at Sᵢ₋₁: strong Markov property). An
//     event that is √cᵢ-GDP is a post-processing of that pair (Blackwell; Dong, Roth and Su 2022,
//     Theorem 2.10), so all events together are a post-processing of B up to time C, which is √C-GDP.
//   - ε, δ: by induction over the events left, for every set S of outcomes P(S) ≤ e^ε Q(S) + δ with
//     what is left of (ε,δ). After the first event P(S|y) ≤ min(1, e^{ε−ε₁} Q(S|y)) + δ−δ₁, and
//     integrating against p₁ costs e^{ε₁} and δ₁ more.
//
// What a cap in (ε,δ) cannot be is the best conversion of all that was charged: which conversion is
// best may depend on what was released. With the cap (1, 10⁻⁶), Gaussian noise of μ = 0.071 may be
// followed by a Gaussian of μ = 0.2258 (by way of μ-GDP), or by a Laplace release of ε = 0.712 (by
// way of Rényi divergences); whoever takes the one or the other as the first release suggests has δ
// = 1.227·10⁻⁶ at ε = 1. So noise that is Gaussian is refused by a cap in (ε,δ): take GDPWithin or
// ZCDPWithin of it. The filter's theorem then gives the currency, and one conversion at the end the
// (ε,δ): see Ledger.Guarantee.
//
// Events are one-shot. A continual mechanism (a tree) is one event as long as nothing else reads
// its slot in between, as it is with the curators of package release; for interleaved ones see
// Haney, Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang 2023.
//
// # Windows
//
// A cap on windows is for records that are read for ever: at most C within any time of length L. What
// is admitted are analyses. Each has a cost c and an instant at which it begins, both fixed when it is
// admitted; whatever it releases, and however that is chosen, its releases cost c together, as under a
// ledger's cap. It counts from its begin until L after its last release.
//
// Theorem. Let an analysis be admitted only if at every instant at which it counts, the costs of all
// that were admitted and count then add up to C at most, its own included; one whose last release is
// not known yet counts for ever. Let noise be one-shot. Then for every window W = [s, s+L], given all
// that was released before s, what is released in W costs at most C, in ε or in ρ, whichever is added.
//
// Proof. Let J be the analyses with a release in W. Each begins by s+L, and its last release is at s or
// later, so that it counts at t = s+L. Take the one of J that was admitted last. By then the others of
// J were known, with ends not before their true ones, and the filter had all of J count at t: Σ_J c ≤
// C. This holds whatever was released, though that may decide who is in J. Given the past each release
// is a draw of its own, so the releases in W are one adaptive sequence of events; those of one analysis
// cost its c at most, and all of them C. The theorem above does the rest. ∎
//
// Noise that outlives a release (trees) is no fresh draw given the past. Then analyses are concurrent
// interactive mechanisms, and count with what they released before s too. In ε that changes nothing
// but the words: their noises are independent, so the likelihood ratio of everything is the product of
// each one's own, at most e^c, and over J at most e^C. In ρ, concurrent composition (Haney et al. 2023)
// bounds the analyses of a filter, but J is chosen at s among all that ever began, by what they
// released. So whoever counts ρ admits one-shot noise alone.
//
// A record may have a position p in [0,1) in a layer of analyses, each of which reads the records of a
// range: it is in those whose range holds p, at every instant the same p. For each p the theorem
// holds with these analyses, so the filter counts the worst p of each layer, whether ranges overlap
// or are used again.
//
// Sums are rounded up, and may exceed C by the slack of a ledger's cap.

// A price is what an event costs in the currency of a cap: a number that adds up, and beside it a δ
// that does where the cap has one.
type price struct{ x, delta float64 }

// plus rounds up.
func (p price) plus(q price) price { return price{addUp(p.x, q.x), addUp(p.delta, q.delta)} }

// times rounds up.
func (p price) times(n int) price {
	if n <= 0 {
		return price{}
	}
	return price{mulUp(p.x, float64(n)), mulUp(p.delta, float64(n))}
}

// within says that p does not exceed the limit, except for slack: noise is calibrated by a division
// and priced by another.
func (p price) within(limit price) bool {
	return p.x <= limit.x*(1+slack) && p.delta <= limit.delta*(1+slack)
}

// priceIn is the price of one event in the currency of a cap, infinite if it has none.
func (l Loss) priceIn(of Budget) price {
	if l.t == nil {
		return price{}
	}
	switch b := of.(type) {
	case Pure:
		return price{x: l.Pure()}
	case ZCDP:
		return price{x: l.ZCDP()}
	case Renyi:
		return price{x: l.Renyi(b.Alpha)}
	case GDP:
		mu := l.GDP()
		return price{x: mulUp(mu, mu)}
	case Approx:
		if l.t.approx() || !math.IsInf(l.t.pure, 1) {
			return price{addUp(l.t.pure, l.t.epsilon), l.t.delta}
		}
	}
	return price{x: math.Inf(1)}
}

// limitOf is a cap in its currency. With an invalid one nothing is within it.
func limitOf(b Budget) price {
	if b == nil || b.Validate() != nil {
		return price{math.NaN(), math.NaN()}
	}
	switch b := b.(type) {
	case Pure:
		return price{x: b.Epsilon}
	case ZCDP:
		return price{x: b.Rho}
	case Renyi:
		return price{x: b.Epsilon}
	case GDP:
		return price{x: float64(b.Mu * b.Mu)}
	case Approx:
		return price{b.Epsilon, b.Delta}
	case None:
		return price{math.Inf(1), math.Inf(1)}
	}
	return price{math.NaN(), math.NaN()}
}

// plain is b if it is one of this package's budgets, by value, and else a budget that is never met:
// of a pointer, or of what embeds a budget, the currency would not be seen, nor the cap be kept.
func plain(b Budget) Budget {
	switch b.(type) {
	case Pure, ZCDP, Approx, Renyi, GDP, None:
		return b
	}
	return foreign(fmt.Sprintf("%T", b))
}

// foreign is the type of what is no budget.
type foreign string

func (f foreign) String() string { return string(f) }
func (foreign) sealed()          {}

// Validate says what it must be.
func (f foreign) Validate() error {
	return fmt.Errorf("budget is of type %s, must be Pure, ZCDP, Approx, Renyi, GDP or None, "+
		"by value", string(f))
}

// currency is what a cap counts, for people.
func currency(b Budget) string {
	switch b := b.(type) {
	case Pure:
		return "pure ε"
	case ZCDP:
		return "ρ"
	case Renyi:
		return "the Rényi divergence of order " + number(b.Alpha)
	case GDP:
		return "μ of Gaussian differential privacy"
	}
	return "(ε,δ)"
}

// unpriced says why a mechanism has no price in the currency of a cap.
func unpriced(m Mechanism, cap Budget) string {
	if m.Loss().Infinite() {
		return "it has no finite price in any currency"
	}
	if _, ok := cap.(Approx); ok {
		return "a cap in (ε,δ) adds up pure ε and what is (ε,δ) only, since a conversion of " +
			"anything else would depend on what is " +
			"released; take a cap in mu (GDPWithin) or rho (ZCDPWithin)"
	}
	return fmt.Sprintf("it has no price in %s, which the cap counts; take a cap in a currency "+
		"that it has, when the ledger is made", currency(cap))
}

// sameCurrency says that two caps count the same.
func sameCurrency(a, b Budget) bool {
	if x, ok := a.(Renyi); ok {
		y, ok := b.(Renyi)
		return ok && x.Alpha == y.Alpha
	}
	return currency(a) == currency(b)
}

// GDPWithin is the largest μ, rounded down, such that whatever is μ-GDP is (ε,δ)-DP (Balle and Wang
// 2018, Theorem 8): the cap of a ledger whose guarantee is to be read in (ε,δ).
func GDPWithin(b Approx) (GDP, error) {
	sigma, err := AnalyticSigma(b)
	if err != nil {
		return GDP{}, err
	}
	out := GDP{1 / sigma}
	for step := 0x1p-52; LossOf(out).Approx(b.Delta) > b.Epsilon; step *= 2 {
		if step >= 1 { // μ² has left the doubles
			return GDP{}, fmt.Errorf("privacy: %v needs a mu of %v: not a number to use", b, 1/sigma)
		}
		out.Mu -= float64(step * out.Mu)
	}
	return out, out.Validate()
}

// ZCDPWithin is the largest ρ, from below, such that whatever is ρ-zCDP is (ε,δ)-DP by
// ZCDPToApproxTight: the cap of a ledger whose guarantee is to be read in (ε,δ), and whose releases
// have a ρ and no μ.
func ZCDPWithin(b Approx) (ZCDP, error) {
	if err := b.Validate(); err != nil {
		return ZCDP{}, err
	}
	out := ZCDP{approxToZCDP(b)}
	return out, out.Validate()
}

// Never is the instant of a last release that nobody knows yet.
const Never = math.MaxInt64

// A Charge is what one analysis can cost a record, and when. Instants are whole numbers of any unit.
type Charge struct {
	Loss Loss // of all that it releases of the record
	// From is the instant at which it begins, and Last that of its last release.
	From, Last int64
	// Layer names analyses that each read the records of a range of positions: from Lo on and below Hi.
	// Empty: it reads all records.
	Layer  string
	Lo, Hi float64
}

// Windows is a filter on windows of time: what analyses may cost one record within any of that length
// (filter.go has the theorem). It knows no clock.
type Windows struct {
	cap    Budget
	limit  price
	length int64
}

// NewWindows is a filter for a cap, Pure or ZCDP, on windows of a length above 0.
func NewWindows(cap Budget, length int64) (Windows, error) {
	cap = plain(cap)
	if err := cap.Validate(); err != nil {
		return Windows{}, err
	}
	switch cap.(type) {
	case Pure, ZCDP:
	default:
		return Windows{}, fmt.Errorf("budget is %v, must be in epsilon or in rho", cap)
	}
	if length <= 0 {
		return Windows{}, fmt.Errorf("length is %d, must be positive", length)
	}
	return Windows{cap, limitOf(cap), length}, nil
}

// Price is what a loss costs in the currency of the cap, +Inf if it has no price there.
func (w Windows) Price(l Loss) float64 { return l.priceIn(w.cap).x }

// End is the last instant at which a charge counts, Never if that is not known.
func (w Windows) End(c Charge) int64 {
	if c.Last > Never-w.length {
		return Never
	}
	return c.Last + w.length
}

// Most is the most that one record is charged at an instant from from up to to: what it may lose
// within the window that ends there.
func (w Windows) Most(charges []Charge, from, to int64) float64 {
	most := w.at(charges, from)
	for _, c := range charges { // it grows where a charge begins alone
		if c.From > from && c.From <= to {
			most = max(most, w.at(charges, c.From))
		}
	}
	return most
}

// Allow is nil if next may be admitted after these charges, and otherwise an error that matches ErrBudget.
func (w Windows) Allow(charges []Charge, next Charge) error {
	most := w.Most(append(slices.Clip(charges), next), next.From, w.End(next))
	if (price{x: most}).within(w.limit) {
		return nil
	}
	return fmt.Errorf("%s would be %v within %d, and the cap is %v: %w", currency(w.cap), most, w.length, w.cap,
		ErrBudget)
}

// Begin is the first instant, next.From or later, at which next could begin instead; ok is false if there is
// none as far as the ends of the charges are known.
func (w Windows) Begin(charges []Charge, next Charge) (from int64, ok bool) {
	at := []int64{next.From}
	for _, c := range charges {
		if end := w.End(c); end != Never && end >= next.From {
			at = append(at, end+1)
		}
	}
	slices.Sort(at)
	for _, from := range at {
		later := next
		if later.From = from; next.Last != Never {
			later.Last += from - next.From
		}
		if w.Allow(charges, later) == nil {
			return from, true
		}
	}
	return 0, false
}

// at is what one record is charged at an instant, at its worst positions.
func (w Windows) at(charges []Charge, t int64) (sum float64) {
	layers := map[string][]Charge{}
	for _, c := range charges {
		switch {
		case c.From > t || w.End(c) < t:
		case c.Layer == "" || !(c.Lo < c.Hi): // what is no range holds everybody
			sum = addUp(sum, w.Price(c.Loss))
		default:
			layers[c.Layer] = append(layers[c.Layer], c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(layers)) {
		most := 0.0
		for _, p := range layers[name] { // it grows where a range begins alone
			here := 0.0
			for _, c := range layers[name] {
				if c.Lo <= p.Lo && p.Lo < c.Hi {
					here = addUp(here, w.Price(c.Loss))
				}
			}
			most = max(most, here)
		}
		sum = addUp(sum, most)
	}
	return sum
}
