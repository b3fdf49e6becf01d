package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// DPTS is Thompson sampling on releases: each round plays the arm whose draw θ_a is the largest, and
// the law of the draws changes at releases alone. It is ours.
//
// An arm's batches end at n_1 = first and n_{m+1} = ⌈1.5n_m⌉ plays, and each releases its own rewards
// once, with one fresh noise, Laplace for a pure budget and normal for the others. A reward is in one
// release, so that for rewards in [0,1] the policy is ε-DP, or meets the other budget, by parallel
// composition. It is anytime.
//
// # The law
//
// Let release j of an arm have n_j rewards, the sum S_j and noise of variance σ_j². With weights w_j =
// n_j/(vn_j + σ_j²), the best ones for rewards of variance v, the arm's estimate is m = Σw_jS_j/Σw_jn_j.
// If the mean is x it has at most the variance
//
//	s²(x) = (x(1−x) Σw_j²n_j + Σw_j²σ_j²)/(Σw_jn_j)²,
//
// and θ has the distribution function Φ((x−m)/(αs(x))): x is as likely to be below θ as the estimate is
// to be that far above x. The variance is that at x and not that at m, as in Wilson's interval: an arm
// whose first release was too low has a small m(1−m), and would hardly be drawn again. (With m(1−m), α = 1
// and f = .01, two arms of .01 to .05 lose nearly twice as much in 10⁵ rounds, and four times as much in
// the worst 5 % of runs.) v is
// that of the arm's mean with ten plays of the base rate, the mean of all that was released, beside it. x
// counts as at least a tenth of the base rate.
//
// # The shares
//
// Between two releases rounds are independent, and arm a is played with probability p_a = P(θ_a is the
// largest), which largest integrates. So no coin is tossed: a batch goes on until the first arm has its
// next release, and gives each arm the share p_a of its rounds. What is less than one play is carried
// over. Each arm has as many plays as draws would give it in expectation. Live, a batch that waits goes on
// in its shares, and anybody can play the transcript again, as no coin is secret.
//
// α is (2/K)^κ, κ = min(1/4, 20/log² t). It follows from the number of arms and of rounds alone. A small
// α explores little, which pays where an arm that was lost has others near it. It also has heavier tails,
// which cost more the longer a run is (see the end), so that κ falls. The numbers were fitted to means of
// .01 to .05 at ρ = ½, and to nothing else.
//
// # What is proved
//
// A. The wrapper. In round t, [L_a, U_a] are the means that the arm's last release, the j-th, does not
// rule out: nJ < log(2Kj(j+1)t′), J that of ZCDPIMED for normal noise and of divergence.DEpsNoisy for
// Laplace noise, n the arm's rewards, t′ in (t/2, t]. An arm is active unless U_a < max L. No other is
// played, and an active one with fewer than ft/K′ plays, K′ the number of active ones, first gets what it
// lacks.
//
// Theorem. Rewards are independent and in [0,1], noise is normal of variance σ², f ≤ .05, n_1 ≥ 10. J is
// the most releases of an arm and c = log(2KJ(J+1)T). Whatever α, whatever the shares of active arms,
//
//	E Reg_T ≤ Kn_1 + 7K/f + 11√(cKT/f) + (24σK√(cJ)/f + 5)(1 + log T).
//
// Of Lap(b) noises it holds with σ = 2b and max(√(cJ), c) for √(cJ).
//
// Proof. Rewards and noises are a table. Let G_t say that no arm's mean is ever outside of its interval
// at level log(2Kj(j+1)t), for any j. By Chernoff P(G_t fails) ≤ Σ_a Σ_j 2/(2Kj(j+1)t) = 1/t, and as the
// level grows with t, G_t implies G_{t+1}.
//
// A batch that begins in round t ends by round 1.5t + K, as no arm has more than half as many plays as
// before, and one. A batch in which the shares play leaves no active arm with fewer than ft/K − 1 plays;
// those in which they do not only raise arms to ft/K′, together to t/(1−f). So if arm * is active since
// round .42s − 1.1K it has at least fs/4K plays in round s ≥ 7K/f; and G at t′ ≥ .2s says that it is. An
// arm with N ≥ 10 plays has n ≥ .6N of them in releases.
//
// On G the active arm a that is played has Δ_a ≤ w_a + w_*, the widths of the intervals: μ_* ≤ U_*, U_a ≥
// L_*. As J_v(x,y) ≥ (x−y)²/(2(1/4+v)), w ≤ 2√(2c(1/4n + Jσ²/n²)) ≤ √(2c/n) + 2√(2cJ)σ/n. Add w_a up
// over the plays of each arm, Σ√N_a ≤ √(KT), and w_* over rounds. Where G fails a round loses at most 1,
// with probability at most 5/s. For Laplace noise λ ≤ 1/(√2b), where −log(1−λ²b²) ≤ 2λ²b². ∎
//
// It is far from what is measured: c is for the worst case. f = .05, which is best for it, adds a third
// to the regret at T = 10⁶ with twenty arms and three quarters with ten, as arms are not yet ruled out
// then; .002 adds less than can be told.
//
// B. The draws. If means are independent N(m_0,τ²), rewards N(μ_a,s²) with s known and noise N(0,σ²), α
// is 1 and θ is of the posterior, of precision τ^−2 + Σn_j²/(s²n_j + σ²), then without the wrapper the
// Bayesian regret is at most, with β = √(2 log KT), γ = ½ + 1/n_1 and J ≤ 1 + log_1.5 max(1, T/n_1),
//
//	β(Kn_1τ + γs√(KT)/(1−1.5^−½) + γσKJ^{3/2}) + (1.5 + K/T)τ/√(2π).
//
// Proof. Let U_a = m_a + βs_a, of the posterior's mean and deviation. Given the releases the arm A that is
// played and the best arm A* have one law, so E(μ_{A*} − μ_A) = E(μ_{A*} − U_{A*}) + E(U_A − μ_A). The
// first is at most Σ_a E(μ_a − U_a)^+ ≤ Kτe^{−β²/2}/√(2π), and the second βE s_A. By Cauchy and Schwarz
// s_a² ≤ s²/N + jσ²/N² after N plays in j releases, and at most γN plays follow. Plays that
// are still owed only make it less, and those of the batch that is open at T end by round 1.5T + K. ∎ (After Russo and Van Roy, Learning to
// optimize via posterior sampling, Mathematics of Operations Research, 2014.)
//
// Nothing is proved of the law above beyond A: it is not this posterior, and α is below 1 from three arms
// on. With α < 1 and no wrapper the regret is polynomial. Let arm 2 be known and arm 1 be better by Δ, and
// its first release normal of deviation s_1, with T rounds to come. With probability Q(Δ/s_1 + α√(2 log
// T)), Q the normal tail, that is so low that arm 1 wins a draw with probability at most 1/2T: so E Reg ≥
// ½ΔT Q(Δ/s_1 + α√(2 log T)) = T^{1−α²−o(1)}.
type DPTS struct {
	accumulation
	pure   bool
	spread float64 // α; 0: by the rule
	floor  float64 // f
	own    []drawn
	looked float64 // t′
	field  largest
}

// drawn is what DPTS knows of an arm beside what is accumulated.
type drawn struct {
	end    int     // plays at its next release
	credit float64 // plays that it is owed
	past   []noisySum
	lo, hi float64 // the interval
	share  float64 // p_a
}

// noisySum is a release: so many rewards, and the variance of the noise in their sum.
type noisySum struct{ n, sum, v float64 }

const (
	drawnRatio = 1.5
	drawnWarm  = 40 // a first batch's rewards for each standard deviation of the noise
	drawnLeast = 10 // and at least so many
	beside     = 10 // plays of the base rate beside an arm's own
	drawnFloor = 0.002
)

// NewDPTS returns the policy for a number of arms ≥ 2, a budget (privacy.None for the same algorithm
// without noise) and an arm's first batch ≥ 1 in rounds; 0 means 40 standard deviations of the noise,
// and at least 10.
func NewDPTS(arms int, budget privacy.Budget, first int) (*DPTS, error) {
	fail := func(err error) (*DPTS, error) { return nil, fmt.Errorf("dp-ts: %w", err) }
	mech, err := oneShot(budget)
	if err != nil {
		return fail(err)
	}
	laplace, pure := mech.(privacy.Laplace)
	scale, sd := laplace.Scale, float64(math.Sqrt2*laplace.Scale)
	if normal, ok := mech.(privacy.Gaussian); ok {
		scale, sd = normal.Sigma, normal.Sigma
	}
	if first == 0 {
		first = max(drawnLeast, roundsOf(drawnWarm*sd))
	}
	p, err := newAccumulation(arms, 1/scale, drawnRatio, first, warm)
	if err != nil {
		return fail(err)
	}
	p.mech = mech
	return &DPTS{accumulation: p, pure: pure, floor: drawnFloor, own: make([]drawn, arms),
		field: newLargest(arms)}, nil
}

// SetSpread sets α, above 0, for all rounds. Call it before the first Next.
func (p *DPTS) SetSpread(alpha float64) error {
	if err := checkPositive("spread", alpha, false); err != nil {
		return err
	}
	p.spread = alpha
	return nil
}

// SetFloor sets f, from 0, for which nothing is proved, to 0.05. Call it before the first Next.
func (p *DPTS) SetFloor(f float64) error {
	if !(f >= 0 && f <= 0.05) {
		return fmt.Errorf("floor is %v, must be from 0 to 0.05", f)
	}
	p.floor = f
	return nil
}

// Next implements Policy.
func (p *DPTS) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		for a := range p.own {
			p.own[a].end = p.first
		}
		return p.every()
	}
	t := 0.0
	for a := range p.arms {
		t += float64(p.arms[a].plays)
	}
	all := t >= 2*p.looked
	if all {
		p.looked = t
	}
	for i := range released.Len() {
		a, tail := p.batch.Plays[i].Arm, released.Tail()
		own := &p.own[a]
		own.end = grown(own.end, p.alpha)
		if n := released.N(i); n > 0 {
			own.past = append(own.past, noisySum{float64(n), released.Sum(i),
				float64(tail.Sigma*tail.Sigma) + 2*float64(tail.H*tail.H)})
		}
		if !all {
			p.confine(a)
		}
	}
	if all {
		for a := range p.own {
			p.confine(a)
		}
	}
	p.draw(t)
	return p.shares(t)
}

// confine computes an arm's interval.
func (p *DPTS) confine(a int) {
	arm, own := &p.arms[a], &p.own[a]
	own.lo, own.hi = 0, 1
	if arm.n == 0 {
		return
	}
	j := float64(len(own.past))
	level := math.Log(2*float64(len(p.arms))*j*(j+1)*p.looked) / arm.n
	upper := func(x float64) float64 {
		if p.pure {
			return divergence.DEpsNoisyUpper(x, level, p.least, arm.m/arm.n)
		}
		return divergence.KLNoisyUpper(x, level, arm.v/arm.n)
	}
	own.lo, own.hi = 1-upper(1-arm.mean), upper(arm.mean)
}

// draw computes the chance of each arm to have the largest draw in the rounds from t on.
func (p *DPTS) draw(t float64) {
	var n, sum, lo float64
	for a := range p.arms {
		arm := &p.arms[a]
		n, sum = n+arm.n, sum+arm.sum
		if !arm.off {
			lo = max(lo, p.own[a].lo)
		}
	}
	base := 0.5
	if n > 0 {
		base = min(0.995, max(0.005, sum/n))
	}
	alpha := p.spread
	if alpha == 0 {
		alpha = math.Pow(2/float64(len(p.arms)), min(0.25, 20/float64(math.Log(t)*math.Log(t))))
	}
	p.field.reset(base / 10)
	for a := range p.arms {
		arm, own := &p.arms[a], &p.own[a]
		if own.share = 0; arm.off || own.hi < lo {
			continue
		}
		m := (float64(arm.mean*arm.n) + float64(beside*base)) / (arm.n + beside)
		mean, v, noise := own.estimate(float64(m * (1 - m)))
		if v == 0 {
			mean, v = base, 1
		}
		p.field.add(a, min(1, max(0, mean)), float64(alpha*alpha*v), float64(alpha*alpha*noise))
	}
	p.field.solve()
	for _, c := range p.field.of {
		p.own[c.arm].share = c.chance
	}
}

// estimate is the arm's, and what multiplies x(1−x) in its variance and what is added to it; v is 0
// if nothing was released.
func (d *drawn) estimate(variance float64) (mean, v, noise float64) {
	var rewards float64 // Σ wn
	for _, s := range d.past {
		w := s.n / (float64(variance*s.n) + s.v)
		rewards += float64(w * s.n)
		mean += float64(w * s.sum)
		v += float64(w * float64(w*s.n))
		noise += float64(w * float64(w*s.v))
	}
	if rewards == 0 {
		return 0, 0, 0
	}
	return mean / rewards, v / rewards / rewards, noise / rewards / rewards
}

// shares asks for rounds in these shares, up to the first release. What an arm is short of the floor
// it is owed; who is owed a release has it first.
func (p *DPTS) shares(t float64) *Batch {
	rounds := float64(Forever / 8)
	least := float64(p.floor*t) / float64(len(p.field.of))
	for _, c := range p.field.of {
		own, plays := &p.own[c.arm], p.arms[c.arm].plays
		own.credit = max(own.credit, math.Floor(least-float64(plays)))
		switch need := float64(own.end-plays) - own.credit; {
		case need <= 0:
			rounds = 0
		case own.share > 0:
			rounds = min(rounds, need/own.share)
		}
	}
	p.batch.Plays = p.batch.Plays[:0]
	for _, c := range p.field.of {
		p.own[c.arm].credit += float64(c.chance * rounds)
	}
	for _, release := range []bool{true, false} { // first what learn is to find
		for _, c := range p.field.of {
			own, arm := &p.own[c.arm], &p.arms[c.arm]
			left := own.end - arm.plays
			n := int(min(own.credit+1e-6, float64(left)))
			if n >= 1 && release == (n == left) {
				p.batch.Plays = append(p.batch.Plays, Play{Arm: c.arm, Rounds: n, Release: release})
			}
		}
	}
	for _, play := range p.batch.Plays {
		p.own[play.Arm].credit -= float64(play.Rounds)
		p.arms[play.Arm].plays += play.Rounds
		p.round += play.Rounds
	}
	return &p.batch
}

// Drop takes an arm off for good, and withdraws the batch that is out: what its arms had of it they
// are owed (play.Dropper).
func (p *DPTS) Drop(arm int) {
	// the first batch is asked for again
	if first := p.batch.Rounds() == p.round; !first {
		for _, play := range p.batch.Plays {
			p.own[play.Arm].credit += float64(play.Rounds)
		}
	}
	p.accumulation.Drop(arm)
}

// AddArm adds an arm, the one after the last, and withdraws the batch that is out (play.Grower). Its shares
// were those of draws without the arm, so nothing of it is owed: the leader's batches are up to a third of all
// rounds, and owing one first would keep a better arm waiting for as long. All intervals are computed anew, for
// the new number of arms.
//
// Theorem A holds for the time from one arm that comes at a round t_p to the next, against the best arm
// that is there, with ft_p/(1−f) + Kn_1/f rounds more. K is the number of arms then; the level is that of K, so G_t
// fails with probability at most 1/t, or, if when arms come follows from releases, (1 + log K)/t, since
// the k-th arm is at the level of k arms at least. First those arms are raised that have less than the
// floor gives them, which are at most ft/(1−f) rounds, all arms together. Until an arm that came has its first
// release, n_1 plays, the theorem says nothing: its interval is all of [0, 1], whatever it has been played. The
// floor alone brings that release within Kn_1/f rounds. A batch that m arms without a release are in ends by round
// 1.5t + K + mn_1. In a batch that the shares play after that, begun in round t, each active arm has ft/K − 1
// plays at least, and the batch ends by round 1.5t + K: so the best arm, if it is active, has fs/4K plays in
// each round s ≥ 7K/f, and the rest of the proof is as it stands. In B the arm that is played and the best arm there is have one law given the
// releases, whatever arms there were before.
func (p *DPTS) AddArm() error {
	if err := p.accumulation.AddArm(); err != nil {
		return err
	}
	p.own = append(p.own, drawn{end: p.first, hi: 1})
	p.field, p.looked = newLargest(len(p.own)), 0
	return nil
}
