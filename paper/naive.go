package paper

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/sim"
)

// naive is AdaP-UCB (000 §5.2) as published programs are written: an object that is asked for an action in each round and told each reward, which it keeps in a list. It is
// here to be measured against: the same policy in the same worlds' law, round by round, where package sim draws a batch's sum at once.
type naive struct {
	epsilon, alpha float64
	round          int
	arm, left      int // of the episode
	arms           []naiveArm
	noise          *noise.Fast
}

type naiveArm struct {
	rewards []float64 // of the last episode
	plays   int
	mean    float64 // released
}

func newNaive(arms int, epsilon, alpha float64, own *noise.Fast) *naive {
	return &naive{epsilon: epsilon, alpha: alpha, arms: make([]naiveArm, arms), noise: own}
}

func (p *naive) choose() int {
	p.round++
	if p.round <= len(p.arms) {
		p.arm, p.left = p.round-1, 1
	}
	if p.left == 0 {
		top := math.Inf(-1)
		x := p.alpha * math.Log(float64(p.round))
		for a := range p.arms {
			h := float64(len(p.arms[a].rewards))
			if index := p.arms[a].mean + math.Sqrt(x/(2*h)) + x/(p.epsilon*h); index > top {
				top, p.arm = index, a
			}
		}
		p.left = p.arms[p.arm].plays
		p.arms[p.arm].rewards = p.arms[p.arm].rewards[:0]
	}
	return p.arm
}

func (p *naive) update(reward float64) {
	a := &p.arms[p.arm]
	a.rewards = append(a.rewards, reward)
	a.plays++
	if p.left--; p.left > 0 {
		return
	}
	sum := 0.0
	for _, r := range a.rewards {
		sum += r
	}
	a.mean = (sum + p.noise.Laplace(1/p.epsilon)) / float64(len(a.rewards))
}

// playNaive plays it on Bernoulli arms and returns the pseudo-regret.
func playNaive(means []float64, epsilon, alpha float64, horizon int, world, own *noise.Fast) float64 {
	p := newNaive(len(means), epsilon, alpha, own)
	best := means[0]
	for _, m := range means {
		best = max(best, m)
	}
	regret := 0.0
	for range horizon {
		a := p.choose()
		reward := 0.0
		if world.Bernoulli(means[a]) {
			reward = 1
		}
		p.update(reward)
		regret += best - means[a]
	}
	return regret
}

// The work that speeds are compared on: five arms of 000 chapter 5, ε = 1, α = 3.1.
var baselineMeans = [...]float64{0.75, 0.7, 0.7, 0.7, 0.7}

const (
	baselineHorizon = 1_000_000
	// The published programs play 17 000 to 32 000 rounds a second in Python.
	pythonSlow, pythonFast = 17_000.0, 32_000.0
)

// speeds are rounds a second on that work: the naive loop, and package sim. Each is the best of several runs, since a busy machine only slows.
func speeds(ctx context.Context) (loop, batched float64, err error) {
	in, err := bandit.BernoulliInstance(baselineMeans[:]...)
	if err != nil {
		return 0, 0, err
	}
	var out sim.Result
	for run := range 20 {
		world := noise.Key{Seed: uint64(run), Experiment: "speed", Role: noise.RoleReward}.Fast(len(baselineMeans))
		own := noise.Key{Seed: uint64(run), Experiment: "speed", Role: noise.RoleNoise}.Fast(1)
		p, err := policy.NewAdaPUCB(len(baselineMeans), 1, 3.1)
		if err != nil {
			return 0, 0, err
		}
		from := time.Now()
		err = sim.Run(ctx, sim.Config{Policy: p, Instance: in, Horizon: baselineHorizon, Checkpoints: []int{baselineHorizon}, Rewards: world, Noise: &own[0]}, &out)
		if err != nil {
			return 0, 0, fmt.Errorf("speed of the simulator: %w", err)
		}
		batched = max(batched, baselineHorizon/time.Since(from).Seconds())
		if run >= 10 {
			continue
		}
		from = time.Now()
		playNaive(baselineMeans[:], 1, 3.1, baselineHorizon, &world[0], &own[0])
		loop = max(loop, baselineHorizon/time.Since(from).Seconds())
	}
	return loop, batched, nil
}
