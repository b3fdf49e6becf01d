package identify

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// PublishedAdaPTT is AdaP-TT as the program published with [Azize et al. 2023] plays it
// (github.com/achraf-azize/DP-BAI, commit c8d8be2, algorithms/adapTT.py), written anew from what
// that program does. It is ε-DP for rewards in [0,1], and nothing is proved of its answers. Phases
// are those of AdaPTT and private means are not clipped. When a phase ends, with n the plays of all
// phases that have ended, ω the rewards behind a mean and N all plays of an arm,
//
//	leader B    argmax μ̃_a + log n/(εω_a) + √(log n/(2ω_a)), until the next phase ends,
//	stops       when d²/(2(1/ω_B + 1/ω_a)) is at least PublishedThreshold for all a ≠ B, d = μ̃_B − μ̃_a of either sign,
//	answers     argmax μ̃_a, which need not be B;
//
// and until then a coin plays B with probability β, or else the argmin of (d +
// 1/(1+√n))/√(1/N_B + 1/N_a).
//
// The paper [Azize et al. 2023, Algorithm 2, Theorem 4] has the proved threshold, tests the
// empirical best with d₊, and tracks. The statistic is that of σ = 1, as in the paper. The program
// writes down Ended for its stopping time: see PublishedTime.
type PublishedAdaPTT struct {
	epsilon, beta float64
	clipped       bool
	coins         policy.Coins
	threshold     Threshold

	arms   []publishedArm
	ended  int // plays of phases that have ended
	begun  bool
	answer int

	batch policy.Batch
}

type publishedArm struct {
	Sample
	plays, end, before int
	weight             float64 // c|c|, c = d + 1/(1+√n)
	inverse, slope     float64 // 1/weight and 1/(weight·plays)
}

// NewPublishedAdaPTT returns it for a number of arms ≥ 2, a budget (privacy.Pure, or privacy.None
// for no noise), a risk δ in (0,1) and coins. Options that change one thing of it: WithBeta,
// WithClippedMeans and WithThreshold.
func NewPublishedAdaPTT(arms int, budget privacy.Budget, risk float64, coins policy.Coins,
	options ...TopTwoOption) (*PublishedAdaPTT, error) {
	fail := func(err error) (*PublishedAdaPTT, error) { return nil, fmt.Errorf("published adap-tt: %w", err) }
	if err := checkPublished(arms, risk, coins); err != nil {
		return fail(err)
	}
	epsilon, err := epsilonOf(budget)
	if err != nil {
		return fail(err)
	}
	o, err := applyTopTwo(options, "beta", "clipped means", "threshold")
	if err != nil {
		return fail(err)
	}
	if o.threshold == nil {
		if o.threshold, err = NewPublishedThreshold(risk); err != nil {
			return fail(err)
		}
	}
	return &PublishedAdaPTT{epsilon: epsilon, beta: o.beta, clipped: o.clipped, coins: coins,
		threshold: o.threshold,
		arms:      make([]publishedArm, arms), answer: -1}, nil
}

func checkPublished(arms int, risk float64, coins policy.Coins) error {
	if coins == nil {
		return errors.New("coins are missing: it randomises its choices")
	}
	return checkTask(arms, risk)
}

// Mechanism implements policy.Policy.
func (p *PublishedAdaPTT) Mechanism() privacy.Mechanism {
	return privacy.Laplace{Scale: 1 / p.epsilon}
}

// Answer implements Identifier.
func (p *PublishedAdaPTT) Answer() int { return p.answer }

// Ended is how many plays there were in the phases that have ended.
func (p *PublishedAdaPTT) Ended() int { return p.ended }

// PublishedTime is PublishedAdaPTT with the stopping time that the program writes down, which
// leaves out the plays of the phases that are open when it stops. It is a broken twin, to be
// compared with figures that the program made.
type PublishedTime struct{ *PublishedAdaPTT }

// Reported implements Reporter.
func (p PublishedTime) Reported() int { return p.Ended() }

// Next implements policy.Policy: one play of each arm, and then batches up to the end of a phase.
func (p *PublishedAdaPTT) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	if len(p.batch.Plays) == 0 {
		for a := range p.arms {
			p.arms[a] = publishedArm{plays: 1}
			p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: 1, Release: true})
		}
		return &p.batch
	}
	p.learn(released)
	leader := p.leader()
	if p.begun && p.stops(leader) {
		p.answer = highest(p.arms, func(a *publishedArm) float64 { return a.Mean })
		return nil
	}
	p.begun = true
	p.play(leader)
	p.batch.Plays = p.batch.Plays[:0]
	for a := range p.arms {
		x := &p.arms[a]
		if n := x.plays - x.before; n > 0 {
			p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: n, Release: x.plays == x.end})
		}
	}
	return &p.batch
}

func (p *PublishedAdaPTT) learn(released privacy.Released) {
	i := 0
	for _, play := range p.batch.Plays {
		if !play.Release {
			continue
		}
		x := &p.arms[play.Arm]
		p.ended += x.plays - x.end/2
		x.end = 2 * x.plays
		x.Phase = 1 + bits.Len(uint(max(2, x.plays)/2)) // log₂ω + 2
		// otherwise nobody's reward came: the old mean stands
		if i < released.Len() && released.N(i) > 0 {
			x.Mean, x.N, x.Noises, x.Scale = released.Mean(i), float64(released.N(i)), 1, 1/p.epsilon
			if p.clipped {
				x.Mean = min(1, max(0, x.Mean))
			}
		}
		i++
	}
}

func (p *PublishedAdaPTT) leader() int {
	log := math.Log(float64(p.ended))
	return highest(p.arms, func(x *publishedArm) float64 {
		if x.N == 0 {
			return math.Inf(1)
		}
		return x.Mean + log/(p.epsilon*x.N) + math.Sqrt(log/(2*x.N))
	})
}

// highest is the first arm of the highest value.
func highest[A any](arms []A, value func(*A) float64) int {
	best, top := 0, math.Inf(-1)
	for a := range arms {
		if v := value(&arms[a]); v > top {
			best, top = a, v
		}
	}
	return best
}

func (p *PublishedAdaPTT) stops(leader int) bool {
	top := p.arms[leader].Sample
	for a := range p.arms {
		x := p.arms[a].Sample
		if x.N == 0 {
			return false
		}
		d := top.Mean - x.Mean
		if a != leader && d*d/(2*(1/top.N+1/x.N)) < p.threshold.At(top, x) {
			return false
		}
	}
	return true
}

// play adds the plays up to the next end of a phase.
func (p *PublishedAdaPTT) play(leader int) {
	lead, bonus := &p.arms[leader], 1/(1+math.Sqrt(float64(p.ended)))
	least := math.Inf(1)
	for a := range p.arms {
		x := &p.arms[a]
		c := lead.Mean - x.Mean + bonus
		x.weight, x.before = c*math.Abs(c), x.plays
		if a != leader {
			least = min(least, x.weight)
		}
	}
	// Among weights of either sign the challenger has a negative one.
	only, candidates, fit := -1, 0, math.Abs(least) > 1e-100 // so that no inverse overflows
	for a := range p.arms {
		x := &p.arms[a]
		x.inverse, x.slope = 1/x.weight, 1/float64(x.weight*float64(x.plays))
		if a == leader || least < 0 && x.weight >= 0 {
			x.inverse, x.slope = math.Inf(-1), 0
		} else {
			only, candidates = a, candidates+1
		}
	}
	log := math.Log(p.beta)
	for {
		run := streak(1-p.coins.Float64(), p.beta, log)
		if run >= float64(lead.end-lead.plays) {
			lead.plays = lead.end
			return
		}
		lead.plays += int(run)
		a, n := only, float64(lead.plays)
		if candidates > 1 {
			a = p.challenger(leader, n, fit)
		}
		challenger := &p.arms[a]
		if challenger.plays++; challenger.plays >= challenger.end {
			return
		}
		if candidates > 1 {
			challenger.slope = 1 / float64(challenger.weight*float64(challenger.plays))
		}
	}
}

// challenger is cheapest, by way of furthest if the inverses are fit for it.
func (p *PublishedAdaPTT) challenger(leader int, n float64, fit bool) int {
	if fit {
		if a := p.furthest(n); a >= 0 {
			return a
		}
	}
	return p.cheapest(leader, n)
}

// cheapest is the challenger when the leader has n plays: the square of the cost with the cost's
// sign, over a common N_B, has the same argmin.
func (p *PublishedAdaPTT) cheapest(leader int, n float64) int {
	least, challenger := math.Inf(1), leader
	for a := range p.arms {
		x := &p.arms[a]
		m := float64(x.plays)
		if w := float64(x.weight*m) / (n + m); a != leader && w < least {
			least, challenger = w, a
		}
	}
	return challenger
}

// furthest is cheapest without a division: what is least has its inverse, which is linear in
// n, highest among those of its sign. It is −1 if that is too close to call, by far more than
// what rounding does.
func (p *PublishedAdaPTT) furthest(n float64) int {
	best, first, second := -1, math.Inf(-1), math.Inf(-1)
	for a := range p.arms {
		x := &p.arms[a]
		if v := float64(n*x.slope) + x.inverse; v > first {
			best, first, second = a, v, first
		} else if v > second {
			second = v
		}
	}
	if !(first-second > 1e-12*math.Abs(first)) {
		return -1
	}
	return best
}

// streak is log v/log β: how often in a row, rounded down, a coin falls for the leader, if v is
// uniform on (0,1]. For β = ½ it is read off the exponent, already rounded down, unless v is so
// near a power of two that rounding of the logarithms matters.
func streak(v, beta, log float64) float64 {
	const edge, bits = 1 << 22, 52
	w := math.Float64bits(v)
	if m := w & (1<<bits - 1); beta == 0.5 && m-edge < 1<<bits-2*edge {
		return float64(1022 - int(w>>bits))
	}
	return math.Log(v) / log
}

// PublishedTTUCB is TTUCB as the same program plays it (algorithms/toptwo_ucb.py), without privacy,
// round by round. With t the plays so far, N those of an arm and B the arm of the highest mean, it
// stops with the answer B when d²/(2(1/N_B + 1/N_a)) is at least log((1 + log t)/δ) for all a ≠ B,
// and otherwise a coin plays B with probability β, or else the argmin of (d +
// log(1+t)^{−1/4})/√(1/N_B + 1/N_a). Nothing is proved of its answers. TTUCB has a bonus for its
// leader and a proved threshold.
type PublishedTTUCB struct {
	beta, risk float64
	coins      policy.Coins

	arms   []publishedArm
	rounds int
	answer int
	batch  policy.Batch
}

// NewPublishedTTUCB returns it for a number of arms ≥ 2, a risk δ in (0,1) and coins. It has the
// option WithBeta.
func NewPublishedTTUCB(arms int, risk float64, coins policy.Coins,
	options ...TopTwoOption) (*PublishedTTUCB, error) {
	if err := checkPublished(arms, risk, coins); err != nil {
		return nil, fmt.Errorf("published ttucb: %w", err)
	}
	o, err := applyTopTwo(options, "beta")
	if err != nil {
		return nil, fmt.Errorf("published ttucb: %w", err)
	}
	return &PublishedTTUCB{beta: o.beta, risk: risk, coins: coins, arms: make([]publishedArm, arms),
		answer: -1}, nil
}

// Mechanism implements policy.Policy.
func (p *PublishedTTUCB) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Answer implements Identifier.
func (p *PublishedTTUCB) Answer() int { return p.answer }

// Next implements policy.Policy: every arm once, then batches of one round.
func (p *PublishedTTUCB) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	if p.rounds == 0 {
		for a := range p.arms {
			p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: 1, Release: true})
		}
		p.rounds = len(p.arms)
		return &p.batch
	}
	for i := range min(released.Len(), len(p.batch.Plays)) {
		x := &p.arms[p.batch.Plays[i].Arm]
		x.N, x.Mean = float64(released.N(i)), released.Mean(i)
	}
	best := highest(p.arms, func(x *publishedArm) float64 { return x.Mean })
	top := p.arms[best].Sample
	if p.rounds > len(p.arms) && p.stops(best) {
		p.answer = best
		return nil
	}
	next := best
	if p.coins.Float64() >= p.beta {
		bonus, least := math.Pow(math.Log1p(float64(p.rounds)), -0.25), math.Inf(1)
		for a := range p.arms {
			x := p.arms[a].Sample
			if w := (top.Mean - x.Mean + bonus) / math.Sqrt(1/top.N+1/x.N); a != best && w < least {
				least, next = w, a
			}
		}
	}
	p.rounds++
	p.batch.Plays = append(p.batch.Plays[:0], policy.Play{Arm: next, Rounds: 1, Release: true})
	return &p.batch
}

func (p *PublishedTTUCB) stops(best int) bool {
	top, threshold := p.arms[best].Sample, math.Log((1+math.Log(float64(p.rounds)))/p.risk)
	for a := range p.arms {
		x := p.arms[a].Sample
		if d := top.Mean - x.Mean; a != best && d*d/(2*(1/top.N+1/x.N)) < threshold {
			return false
		}
	}
	return true
}

// PublishedDPSE is DP-SE as the same program plays it (algorithms/dp_se.py): policy.DPSE, but that
// the sum of an epoch is divided by all plays of the arm so far, which shrinks every mean but that
// of the first epoch, while the noise is that of a mean of R_e rewards; R_e is rounded down; and
// arms that are gone are compared with as noise about 0. It is ε-DP for rewards in [0,1].
//
// The noise on a sum is wider than 1/ε by N/R_e, N the plays so far: coins widen the
// noise of the release.
type PublishedDPSE struct {
	epsilon, risk float64
	coins         policy.Coins

	alive  []int
	gone   []bool
	plays  []int
	epoch  int
	rounds float64 // R_e before it is rounded
	answer int
	batch  policy.Batch
}

// NewPublishedDPSE returns it for a number of arms ≥ 2, a budget (privacy.Pure, or privacy.None for
// no noise), a risk δ in (0,1) and coins.
func NewPublishedDPSE(arms int, budget privacy.Budget, risk float64,
	coins policy.Coins) (*PublishedDPSE, error) {
	if err := checkPublished(arms, risk, coins); err != nil {
		return nil, fmt.Errorf("published dp-se: %w", err)
	}
	epsilon, err := epsilonOf(budget)
	if err != nil {
		return nil, fmt.Errorf("published dp-se: %w", err)
	}
	p := &PublishedDPSE{epsilon: epsilon, risk: risk, coins: coins, gone: make([]bool, arms),
		plays: make([]int, arms), answer: -1}
	for a := range arms {
		p.alive = append(p.alive, a)
	}
	return p, nil
}

// Mechanism implements policy.Policy.
func (p *PublishedDPSE) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1 / p.epsilon} }

// Answer implements Identifier.
func (p *PublishedDPSE) Answer() int { return p.answer }

// Next implements policy.Policy: an epoch.
func (p *PublishedDPSE) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	if p.epoch > 0 {
		if p.learn(released); p.answer >= 0 {
			return nil
		}
	}
	p.epoch++
	gap := math.Ldexp(1, -p.epoch)
	p.rounds = max(32*p.logs(8)/(gap*gap), 8*p.logs(4)/(p.epsilon*gap)) + 1
	p.batch.Plays = p.batch.Plays[:0]
	rounds := policy.Forever
	if p.rounds < policy.Forever {
		rounds = int(p.rounds)
	}
	for _, a := range p.alive {
		p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: rounds, Release: true})
	}
	return &p.batch
}

// logs is log(c|S|e²/δ).
func (p *PublishedDPSE) logs(c float64) float64 {
	return math.Log(c * float64(len(p.alive)) * float64(p.epoch*p.epoch) / p.risk)
}

func (p *PublishedDPSE) learn(released privacy.Released) {
	scale := 1 / (p.epsilon * math.Floor(p.rounds)) // of the noise of a mean
	means := make([]float64, len(p.plays))
	for i := range released.Len() {
		a := p.alive[i]
		p.plays[a] += released.N(i)
		n := float64(p.plays[a])
		means[a] = released.Sum(i) / n
		// With probability r² nothing, and otherwise Laplace noise of that scale, makes noise of
		// scale r·scale into it.
		if r := 1 / (p.epsilon * n * scale); scale > 0 && p.coins.Float64() >= float64(r*r) {
			means[a] += p.laplace(scale)
		}
	}
	for a, gone := range p.gone {
		if gone {
			means[a] = p.laplace(scale)
		}
	}
	best := highest(means, func(m *float64) float64 { return *m })
	radius := 2 * (math.Sqrt(p.logs(8)/(2*p.rounds)) + p.logs(4)/(p.rounds*p.epsilon))
	kept := p.alive[:0]
	for _, a := range p.alive {
		if p.gone[a] = means[best]-means[a] > radius; !p.gone[a] {
			kept = append(kept, a)
		}
	}
	if p.alive = kept; len(kept) <= 1 {
		p.answer = best
	}
}

// laplace draws from the policy's coins.
func (p *PublishedDPSE) laplace(scale float64) float64 {
	x := -scale * math.Log(1-p.coins.Float64())
	if p.coins.Float64() < 0.5 {
		return -x
	}
	return x
}
