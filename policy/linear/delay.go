package linear

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/privacy"
)

// # OFUL whose rewards come late
//
// With Best, Play, Cut and Learn the same policy is played where many decisions are out at once.
// Decisions s = 1, 2, … have their numbers from when they are made. Of all of them the vectors
// a_s are known, V_t = λI + Σ_{s≤t} a_s a_sᵀ; of a prefix of them, s ≤ τ, the rewards have been
// released. Whenever det V_t is more than 1+C times what it was at the last cut, the segment of
// decisions since then is cut (Due, Cut): a function of public vectors. A segment is released as
// a whole, after those before it, when its last reward has come or is given up (Learn). Until
// then choices are made with θ̃_τ, V_τ and β̃_τ of the prefix that has been released: what was
// decided since is in V_t, and decides when the next segment ends, and nothing else.
//
// # The radius under delay
//
// Claim: with probability at least 1−δ (three thirds, see Split), θ* is in {θ : ‖θ − θ̃_τ‖_{V_τ} ≤
// β̃_τ} at all releases, with the β̃_τ of the undelayed policy: ellipsoidRadius of det V_τ, and
// noiseRadius of the ℓ noises that were released. Assumed as there: ‖θ*‖ ≤ S, which is 1 or Norm; and
// of r_s, what is counted as decision s's reward (the declared default, if none came in time), η_s =
// r_s − ⟨θ*,a_s⟩ is 1-subgaussian given G_s, which is a_1, …, a_s, all r_u of u < s, and all noise.
//
// Proof. (1) Order by decisions, not by the clock. a_s is a function of contexts and of releases
// of segments that ended before s, so of r_u with u < s alone: it is G_s-measurable. That r_u of
// some u < s had not come when a_s was chosen makes a_s a function of less, and the η_s are
// martingale differences of (G_s) as without delay. (2) With S_t = Σ_{s≤t} a_s η_s, the
// self-normalised bound (Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 1) is of all t at once:
// with probability 1−δ', ‖S_t‖_{V_t⁻¹} ≤ √(2 log(1/δ') + log(det V_t/λ^d)) for all t. Released
// records are a prefix of the decisions, so it holds at t = τ, whatever τ is and whatever it
// depends on. Were segments released in another order, what is released would be no prefix, and
// the bound would not be of it. (3) What was released adds up to Σ_{s≤τ} a_s r_s + Y, Y the sum of
// ℓ independent N(0,σ²I); so θ̃_τ − θ* = V_τ⁻¹(S_τ + Y − λθ*), and its norm in V_τ is at most
// ‖S_τ‖_{V_τ⁻¹} + √λ·S + ‖Y‖/√λ_min(V_τ). (4) ‖Y‖ of ℓ noises exceeds σ√(ℓ·normalNorm(d, δ”/T))
// with probability δ”/T, for each ℓ; there are at most T releases. Without a horizon it is 6δ”/(π²ℓ²), which adds
// up to δ” over all ℓ. Nothing in (4) asks how V_τ depends on the noise. ∎
//
// Real rewards (release.RealFeatures) are rounded, and Σ a·r of n decisions with them, by at most
// n/2^21 in each coordinate: that comes on top, √d·n·2^-21/√λ_min(V_τ) at most, and is 0 where all
// rewards are at the ends of their range. Noise there is discrete, whose norm has the bound of a
// normal one (Hsu, Kakade and Zhang 2012: it is as subgaussian), and is wider than σ by little more
// than √d·2^-21 of it and 2^-25. β̃ leaves all this out.
//
// # What delay costs
//
// The number of releases, which the noise is paid by, stays at most MaxUpdates: segments end by
// V_t, whether or not those before have been released (and there is one more for each 2^22
// decisions that do not double det V, which integers have no room for). Regret: let D be the most
// decisions that are made from a cut to the release of its segment. While no segment waits, V_τ is
// that of the last cut, det V_t ≤ (1+C)·det V_τ, and the round is one of the undelayed proof. At
// most MaxUpdates·D decisions are made while one waits, and each costs at most 2: so
//
//	regret ≤ regret without delay + 2·D·d·log(1 + T/(λd))/log(1+C),
//
// on the event of the claim. That is a worst case: V_τ of a prefix is still right, only older.
//
// # Exact sums
//
// Vectors are multiples of 2^-20 with ‖a‖ ≤ 1, so that products are whole steps of 2^-40 and a
// segment's Σ aaᵀ is a sum of integers. At a cut V is made anew from V at the cut before and
// these integers, and its factor from V: all that is known of released decisions follows from
// their integers and releases, bit for bit, without a vector (Skip). That a segment ends where it
// does follows from them too: the determinant that says so is of this V.
type late struct {
	base    []float64 // V at the last cut
	gram    []int64   // Σ aaᵀ since, lower triangle, row by row, in steps of 2^-40
	steps   []int64   // scratch: a vector in steps of 2^-20
	rounds  int       // since the last cut
	before  float64   // log det V at the last cut
	waiting []cut     // not released, the oldest first
	whole   *factor   // scratch: of a V that is made from sums
	made    *factor   // of the V that Cut makes, where it is known: that of all decisions, or whole
	// V_τ, where what follows from it is not made yet: of many releases in a row, as at a start, the last
	// alone is asked, and the smallest eigenvalue costs more than all else
	learned []float64
}

// A cut is V at the end of a segment, after t decisions.
type cut struct {
	v []float64
	t int
}

// vectorSteps is how many steps of a vector's number are 1. Products of two are whole steps of
// 2^-40, exactly as floating-point numbers too.
const vectorSteps = 1 << 20

const gramSteps = vectorSteps * vectorSteps

// maxSegment is the most decisions between two cuts: of so many no integer sum exceeds 2^62 (and
// what Slack lets through).
const maxSegment = 1 << 22

// delayed makes the OFUL one whose releases come late.
func (p *OFUL) delayed() *late {
	if p.late == nil {
		whole := newFactor(p.dim, p.o.Lambda)
		// V ≥ λI, so every pivot is at least λ: what is less is rounding
		p.now.least, whole.least = p.o.Lambda, p.o.Lambda
		p.late = &late{base: slices.Clone(p.now.v), gram: make([]int64, len(p.now.v)),
			steps: make([]int64, p.dim), before: p.now.logDet(), whole: whole}
	}
	return p.late
}

// Best is the action that Choose would play, and changes nothing.
func (p *OFUL) Best(actions []float64) int {
	best, _ := p.best(actions)
	return best
}

// Play counts the vector of a decision into V: d multiples of 2^-20, of a norm of at most 1. The
// caller sees to that: there is no error to return. Decisions that were played are for Cut to end,
// and Learn then is of the oldest segment that was cut; those that Choose counts are not.
func (p *OFUL) Play(a []float64) {
	l := p.delayed()
	for i, x := range a {
		l.steps[i] = int64(x * vectorSteps)
	}
	row := l.gram
	for i, x := range l.steps {
		if x != 0 { // most are 0, where contexts are words
			for j, y := range l.steps[:i+1] {
				row[j] += x * y
			}
		}
		row = row[i+1:]
	}
	l.made = nil
	l.rounds++
	p.t++
	if p.shrunk *= p.now.add(a); p.Due() >= 0 {
		// Where V is close to singular the factor that grew with it may be off, and whoever has the
		// sums alone must see the segment end here too: they decide.
		l.total(l.whole.v)
		if l.whole.refactor() {
			l.made = l.whole
		}
		p.shrunk = l.shrunk(l.whole)
	}
}

// Cut ends the segment of the decisions since the last cut: its release is due as soon as its
// rewards are known. The result is Σ aaᵀ of the segment, the lower triangle row by row, in steps of
// 2^-40: the caller's to keep.
func (p *OFUL) Cut() (gram []int64) {
	l := p.delayed()
	gram = slices.Clone(l.gram)
	l.total(l.base)
	switch l.made {
	case nil:
		copy(p.now.v, l.base)
		p.now.refactor()
	case l.whole:
		p.now, l.whole = l.whole, p.now
	}
	l.before = p.now.logDet()
	l.waiting = append(l.waiting, cut{slices.Clone(l.base), p.t})
	clear(l.gram)
	l.rounds, p.shrunk = 0, 1
	return gram
}

// total makes v the V of all decisions.
func (l *late) total(v []float64) {
	for i, x := range l.gram {
		v[i] = l.base[i] + float64(float64(x)/gramSteps)
	}
}

// shrunk is det V at the last cut over that of another.
func (l *late) shrunk(v *factor) float64 { return math.Exp(l.before - v.logDet()) }

// Skip is Play of all decisions of a segment, from what Cut has returned for it: for one that is
// brought back to where it was. It is for the beginning of a segment. The error says why no n
// decisions can have these sums; then nothing has changed.
func (p *OFUL) Skip(n int, gram []int64) error {
	l := p.delayed()
	if l.rounds > 0 {
		return fmt.Errorf("oful: the segment has %d decisions, must have none", l.rounds)
	}
	if err := checkGram(p.dim, n, gram); err != nil {
		return fmt.Errorf("oful: %w", err)
	}
	copy(l.gram, gram)
	l.total(p.now.v)
	p.now.refactor()
	l.made = p.now
	l.rounds = n
	p.t += n
	p.shrunk = l.shrunk(p.now)
	return nil
}

// checkGram says why no n vectors of ℝ^d in the unit ball have this Σ aaᵀ. That its minors of two
// are not negative is all that is asked of its directions.
func checkGram(d, n int, gram []int64) error {
	if n < 1 || n > maxSegment {
		return fmt.Errorf("a segment has %d decisions, must have 1 to %d", n, maxSegment)
	}
	if len(gram) != d*(d+1)/2 {
		return fmt.Errorf("a segment has %d sums of products, must have %d", len(gram), d*(d+1)/2)
	}
	var trace float64
	diagonal, row := make([]float64, d), gram
	for i := range d {
		x := float64(row[i])
		if x < 0 {
			return errors.New("a segment has a negative sum of squares")
		}
		for j, y := range row[:i] {
			if y := float64(y); float64(y*y) > float64(x*diagonal[j])*(1+1e-9) {
				return errors.New("a segment has a sum of products that its sums of squares do not allow")
			}
		}
		diagonal[i], row = x, row[i+1:]
		trace += x
	}
	if most := float64(n) * gramSteps; trace > most*(1+4*unitball.Slack) {
		return fmt.Errorf("a segment has %v as sum of squared norms, must be at most %d", trace/gramSteps, n)
	}
	return nil
}

// learn takes the release of the oldest segment that was cut.
func (l *late) learn(p *OFUL, released privacy.ReleasedVector) {
	if len(l.waiting) == 0 {
		return
	}
	oldest := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	p.add(released)
	p.tau, l.learned = oldest.t, oldest.v
}

// settle makes what follows from the releases that were learned since it was last asked.
func (p *OFUL) settle() {
	l := p.late
	if l == nil || l.learned == nil {
		return
	}
	copy(l.whole.v, l.learned)
	l.whole.refactor()
	l.learned = nil
	if l.made == l.whole {
		l.made = nil
	}
	p.estimate(l.whole, p.tau)
}
