package identify

import (
	"fmt"
	"math"
	"sort"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A Leader is how the leader of a round is chosen, from private means alone. The lowest of
// equal arms leads.
type Leader int

const (
	// UCBLeader has the highest μ̃_a + √(log n/(2Ñ_a)) + log n/(εÑ_a), where n is the round and Ñ_a
	// the rewards behind μ̃_a.
	UCBLeader Leader = iota
	// PrintedUCBLeader has k_a, the arm's phase, where UCBLeader has 2 log n and log n: √(k_a/Ñ_a)
	// + k_a/(εÑ_a), as [Azize 2024, Algorithm 10] prints it. An arm that is not played keeps its
	// bonus then, and runs may not stop: play with a cap.
	PrintedUCBLeader
	// BestLeader has the highest μ̃_a.
	BestLeader
)

// Parts are what a Top Two rule is put together from.
type Parts struct {
	Leader Leader

	// Challenger is the cost, at the numbers of plays of all phases, whose argmin over the other arms
	// challenges the leader. With LogCount γ log N_a is added, γ the Caution: at least 1, or 0 for 1.
	Challenger Cost
	LogCount   bool
	Caution    float64

	// Beta is the share of its rounds that a leader is played, in (0,1): when N ≤ βL, where N is
	// how often it was played as leader and L counts the rounds that it led, this one included. A
	// Coin, if there is one, decides instead.
	Beta float64
	Coin policy.Coins

	// The rule stops when the Cost of the answer against every other arm is at least (Above:
	// above) the Threshold.
	Cost      Cost
	Threshold Threshold
	Above     bool

	// An arm's phases end at First plays, and then at max(n+1, ⌈Growth·n⌉) plays after n. With
	// Forget a mean rests on the arm's last phase only, otherwise on all.
	First  int
	Growth float64
	Forget bool

	// LeastPhase is the least number of a phase for the threshold: 2 where it is log₂ω + 2.
	LeastPhase int

	// Unclipped leaves private means as they are instead of clipping them to [0,1].
	Unclipped bool
}

// TopTwo is [Azize 2024, Algorithm 10], the private Top Two meta-algorithm: in each round a leader
// and its challenger, one of which is played. Each arm has phases of its own, and a phase's rewards
// are released as one sum with a Lap(1/ε) when it ends; everything that is decided rests on these
// releases. Every reward is in one release, so the transcript of plays, stopping time and answer is
// ε-DP for rewards in [0,1] ([Azize 2024, §5.4.1]; parallel composition, [Azize 2024, Lemma 2.10]).
//
// The stopping rule is looked at when a phase ends: nothing that it reads changes in between. Until
// the next phase ends the plays are a deterministic function of what is known, so that they are one
// batch, found without playing it round by round where the costs allow (see schedule.go).
type TopTwo struct {
	parts   Parts
	epsilon float64

	arms   []topArm
	rounds int // asked for so far
	answer int
	other  bool // a release had noise that was neither one Laplace's nor some that are counted

	batch  policy.Batch
	before []int // plays of each arm when the batch began
	schedule
}

// topArm is an arm of a TopTwo.
type topArm struct {
	Sample
	sum   float64 // noisy, of the rewards behind the mean
	phase int     // k_a: phases that have ended
	plays int     // N_a, asked for so far
	end   int     // plays at which the phase ends
	led   int     // L_a
	own   int     // N_a^a
	root  float64 // 1/√(2Ñ_a)
	slow  float64 // 1/(εÑ_a)
}

// NewTopTwo returns a rule for a number of arms ≥ 2, a budget (privacy.Pure, or privacy.None for no
// noise) and its parts.
func NewTopTwo(arms int, budget privacy.Budget, parts Parts) (*TopTwo, error) {
	p, err := newTopTwo(arms, budget, parts)
	if err != nil {
		return nil, fmt.Errorf("top two: %w", err)
	}
	return &p, nil
}

func newTopTwo(arms int, budget privacy.Budget, parts Parts) (TopTwo, error) {
	if err := checkArmsOf(arms); err != nil {
		return TopTwo{}, err
	}
	epsilon, err := epsilonOf(budget)
	if err != nil {
		return TopTwo{}, err
	}
	switch {
	case parts.Leader < UCBLeader || parts.Leader > BestLeader:
		err = fmt.Errorf("leader is %d, must be UCBLeader, PrintedUCBLeader or BestLeader", parts.Leader)
	case parts.Challenger == nil || parts.Cost == nil || parts.Threshold == nil:
		err = fmt.Errorf("challenger, cost or threshold is missing")
	case !(parts.Beta > 0 && parts.Beta < 1):
		err = fmt.Errorf("beta is %v, must be above 0 and below 1", parts.Beta)
	case !(parts.Caution == 0 || parts.Caution >= 1 && parts.Caution <= math.MaxFloat64):
		err = fmt.Errorf("caution is %v, must be finite and at least 1", parts.Caution)
	case parts.First < 1:
		err = fmt.Errorf("first is %d, must be at least 1", parts.First)
	case !(parts.Growth > 1 && parts.Growth <= math.MaxFloat64):
		err = fmt.Errorf("growth is %v, must be finite and above 1", parts.Growth)
	}
	if err != nil {
		return TopTwo{}, err
	}
	if parts.Caution == 0 {
		parts.Caution = 1
	}
	p := TopTwo{parts: parts, epsilon: epsilon, answer: -1, arms: make([]topArm, arms),
		before: make([]int, arms), schedule: newSchedule(arms)}
	p.batch.Plays = make([]policy.Play, 0, arms)
	return p, nil
}

// Mechanism implements policy.Policy.
func (p *TopTwo) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1 / p.epsilon} }

// Answer implements Identifier.
func (p *TopTwo) Answer() int { return p.answer }

// Next implements policy.Policy.
func (p *TopTwo) Next(released privacy.Released) *policy.Batch {
	switch {
	case p.answer >= 0:
		return nil
	case p.rounds == 0:
		return p.every()
	}
	p.learn(released)
	if p.stop() {
		return nil
	}
	return p.plan()
}

// every asks for the first phase of each arm.
func (p *TopTwo) every() *policy.Batch {
	first := min(p.parts.First, longest)
	for a := range p.arms {
		p.arms[a].plays = first
		p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: first, Release: true})
	}
	p.rounds = first * len(p.arms)
	return &p.batch
}

// learn takes what the phases that have ended released.
func (p *TopTwo) learn(released privacy.Released) {
	i := 0
	for _, play := range p.batch.Plays {
		if !play.Release {
			continue
		}
		a := &p.arms[play.Arm]
		a.phase++
		a.Phase = max(a.phase, p.parts.LeastPhase)
		a.end = grown(a.plays, p.parts.Growth)
		if i >= released.Len() || released.N(i) < 1 { // nobody's reward came: the old mean stands
			i++
			continue
		}
		if p.parts.Forget {
			a.sum, a.N, a.Noises = 0, 0, 0
		}
		a.sum += released.Sum(i)
		a.N += float64(released.N(i))
		if a.Noises == 0 {
			a.Scale, a.Log = 1/p.epsilon, 0
		}
		// The noise that was really drawn may be a little larger than asked for: integers round up.
		// Noise that is not Laplace's has a Laplace tail above it, nearest where thresholds look.
		tail, noises := released.Tail().Laplace(tangent), 1
		switch k, scale := released.Noises(i); {
		case released.Laplace():
		case k > 0 && p.parts.counts():
			tail, noises = privacy.Tail{H: scale}, int(math.Ceil(k))
		default:
			p.other = true
		}
		a.Noises += noises
		// of the noises that are in the mean, the widest
		a.Scale, a.Log = max(tail.H, a.Scale), max(tail.Log, a.Log)
		if a.Mean = a.sum / a.N; !p.parts.Unclipped {
			a.Mean = min(1, max(0, a.Mean))
		}
		a.root, a.slow = math.Sqrt(1/(2*a.N)), a.Scale/a.N
		i++
	}
}

// counts says that what stops the rule is proved for any number of Laplace noises in a mean.
func (p Parts) counts() bool {
	_, noisy := p.Cost.(NoisyCost)
	_, perArm := p.Threshold.(PerArmThreshold)
	return noisy || perArm
}

// tangent is where a tail is bounded by that of Laplace noise: any is right, and this one is
// log(K/δ) plus some phases' logarithms.
const tangent = 10

// longest is more plays than anybody will see, and few enough for floating point to count them.
const longest = min(1<<50, math.MaxInt/4)

// grown is the end of the phase that begins after n plays.
func grown(n int, growth float64) int {
	x := math.Ceil(float64(growth*float64(n)) - 1e-9)
	if !(x < longest) {
		return longest
	}
	return max(n+1, int(x))
}

// stop says whether there is an answer, which is the arm with the highest private mean.
func (p *TopTwo) stop() bool {
	best := 0
	for a := range p.arms {
		if p.arms[a].N == 0 {
			return false
		}
		if p.arms[a].Mean > p.arms[best].Mean {
			best = a
		}
	}
	top := p.arms[best].Sample
	// Most looks end at bounds of the cost or the threshold that are easily found.
	least, ok := p.parts.Threshold.(interface{ AtLeast(a, b Sample) float64 })
	most, bounded := p.parts.Cost.(interface{ AtMost(a, b Sample) float64 })
	if ok {
		for b := range p.arms {
			if b == best {
				continue
			}
			arm := p.arms[b].Sample
			var w float64
			if bounded {
				w = most.AtMost(top, arm)
			} else {
				w = p.parts.Cost.Between(top, arm)
			}
			if w < least.AtLeast(top, arm) {
				return false
			}
		}
	}
	sided, _ := p.parts.Cost.(interface {
		side(a, b Sample, level float64) int
	})
	for b := range p.arms {
		if b == best {
			continue
		}
		c := p.parts.Threshold.At(top, p.arms[b].Sample)
		if sided != nil {
			if side := sided.side(top, p.arms[b].Sample, c); side < 0 {
				return false
			} else if side > 0 {
				continue
			}
		}
		if w := p.parts.Cost.Between(top, p.arms[b].Sample); !(w > c || w == c && !p.parts.Above) {
			return false
		}
	}
	p.answer = best
	return true
}

// plan asks for all rounds up to the next end of a phase.
func (p *TopTwo) plan() *policy.Batch {
	most := 0 // rounds that may pass before a phase ends
	for a := range p.arms {
		p.before[a] = p.arms[a].plays
		most += p.arms[a].end - p.arms[a].plays
	}
	p.batch.Plays = p.batch.Plays[:0]
	if most <= 0 || most >= longest { // no horizon reaches the end of this
		p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: p.leader(p.rounds + 1), Rounds: policy.Forever})
		return &p.batch
	}
	for ended := false; !ended; {
		n := p.rounds + 1 // the round about to be played
		b := p.leader(n)
		ended = p.advance(b, p.leads(b, n, most))
	}
	for a := range p.arms {
		if played := p.arms[a].plays - p.before[a]; played > 0 {
			p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: played,
				Release: p.arms[a].plays >= p.arms[a].end})
		}
	}
	return &p.batch
}

// leader is the leader of round n.
func (p *TopTwo) leader(n int) int {
	var log, root float64
	if p.parts.Leader == UCBLeader {
		log = math.Log(float64(n))
		root = math.Sqrt(log)
	}
	best, top := 0, math.Inf(-1)
	for a := range p.arms {
		arm := &p.arms[a]
		index := arm.Mean
		switch p.parts.Leader {
		case UCBLeader:
			index += float64(root*arm.root) + float64(log*arm.slow)
		case PrintedUCBLeader:
			k := float64(arm.phase)
			index += math.Sqrt(k/arm.N) + float64(k*arm.slow)
		}
		if arm.N == 0 {
			index = math.Inf(1) // its rewards have not come
		}
		if index > top {
			best, top = a, index
		}
	}
	return best
}

// leads is for how many rounds from n on arm b, which leads in n, goes on leading if no phase
// ends; at most most.
//
// Of two arms the one with fewer rewards has the faster growing bonus, in both terms: two indices
// cross at most once, and an arm that has been overtaken stays so. So the rounds in which b leads
// are an interval, whose end is found by bisection.
func (p *TopTwo) leads(b, n, most int) int {
	if p.parts.Leader != UCBLeader || p.leader(n+most) == b {
		return most
	}
	return 1 + sort.Search(most-1, func(i int) bool { return p.leader(n+1+i) != b })
}
