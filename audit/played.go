package audit

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// The games of this file are against what package play releases, and when: two arms are played live,
// all rewards but one are 0, and the attacker reads every line. The noise is that of real curators,
// but in broken copies whose curator is at fault.

// A lived game is a play of two arms and the decision whose reward is attacked.
type lived struct {
	*play.Live
	decided []play.Ticket
	target  int // of these; it is the first of its arm that Close has not taken by then
	reward  float64
	now     int64
	// sums are what lines release of each arm from the target's row on, less what others have in it:
	// the rewards are 0, so it is the sum.
	sums [2][]float64
	// asked says that the policy was given a release of the target's arm since then.
	asked bool
}

// liveLine is what a line releases of arms.
type liveLine struct {
	Plays []struct {
		Arm           int
		Release, Held bool
	}
	Ahead, Rest []struct{ Arm, Rounds int }
	Release     struct{ Sum []float64 }
}

// decide has a unit come to an arm, the one that is attacked if it is the target.
func (g *lived) decide(arm int) error {
	k, err := g.Decide(play.Decision{Arm: arm}, g.now)
	if err == nil && len(g.decided) == g.target {
		_, err = g.Settle(k, g.reward, g.now)
	}
	g.decided = append(g.decided, k)
	return err
}

// tick is the time at which all windows have passed, and what is closed then.
func (g *lived) tick() (in liveLine, err error) {
	g.now++
	c, err := g.Close(g.now)
	if c == nil || err != nil {
		return in, err
	}
	if err := json.Unmarshal(c.Line, &in); err != nil {
		return in, err
	}
	var arms []int
	for _, p := range in.Plays {
		if p.Release && !p.Held {
			arms = append(arms, p.Arm)
		}
	}
	for _, p := range append(in.Ahead, in.Rest...) {
		if p.Rounds > 0 {
			arms = append(arms, p.Arm)
		}
	}
	if len(arms) != len(in.Release.Sum) {
		return in, fmt.Errorf("audit: a line releases %d sums of %d arms", len(in.Release.Sum), len(arms))
	}
	if len(g.decided) > g.target {
		for i, a := range arms {
			g.sums[a] = append(g.sums[a], coarse(in.Release.Sum[i]))
		}
		for _, p := range in.Plays {
			g.asked = g.asked || p.Release && p.Arm == g.decided[g.target].Arm
		}
	}
	return in, g.Commit(c)
}

// stepped has a faulty curator take the steps of real rewards.
type stepped struct{ *faulty }

func (c stepped) AddSteps(arm, n int, steps int64) error {
	return c.AddSum(arm, n, float64(steps)*release.ExactStep)
}

// A livePlay is a way in which a decision is released.
type livePlay struct {
	name, twin  string
	fault       Fault // of the twin's curator, if that is at fault
	adversaries []string
	policy      func() (policy.Policy, error)
	// play plays a game to its end. Broken is the twin, where the play is at fault.
	play func(g *lived, adversary int, broken bool, src *noise.Fast) error
	// score is that of an adversary.
	score func(g *lived, adversary int) float64
}

// asks plays until the policy asks for one arm. The next decision is the target.
func asks(g *lived) (policy.Play, error) {
	for range 4 { // first batches of 2
		if err := g.decide(len(g.decided) % 2); err != nil {
			return policy.Play{}, err
		}
	}
	if _, err := g.tick(); err != nil {
		return policy.Play{}, err
	}
	out := g.Out()
	if len(out) != 1 {
		return policy.Play{}, fmt.Errorf("audit: the batch is %v, must be of one arm", out)
	}
	g.target = len(g.decided)
	return out[0], nil
}

// waiting plays until a batch with the target has all its decisions, and waits for their windows.
func waiting(g *lived) (arm int, err error) {
	out, err := asks(g)
	for range out.Rounds {
		if err == nil {
			err = g.decide(out.Arm)
		}
	}
	return out.Arm, err
}

// ahead plays until a decision is released that the policy did not ask for.
func ahead(g *lived) (arm int, err error) {
	out, err := asks(g)
	if err != nil {
		return 0, err
	}
	arm = 1 - out.Arm
	for range 8 {
		if err := g.decide(arm); err != nil {
			return 0, err
		}
		if in, err := g.tick(); err != nil || len(in.Ahead) > 0 {
			return arm, err
		}
	}
	return 0, fmt.Errorf("audit: nothing of arm %d is released ahead", arm)
}

// ratios adds up the likelihood ratios of sums that the target may be in.
func ratios(sums []float64) (llr float64) {
	for _, x := range sums {
		llr += laplace(x, 1, 1)
	}
	return llr
}

func livePlays() []livePlay {
	klucb := func() (policy.Policy, error) { return policy.NewDPKLUCB(2, 1, 1.5, 2) }
	all := func(g *lived, _ int) float64 { return ratios(g.sums[g.decided[g.target].Arm]) }
	return []livePlay{{
		name: "play, what is ahead", twin: "drawn again when the policy asks",
		adversaries: []string{"all that is released of the arm, until the policy is given it"},
		policy:      klucb, score: all,
		play: func(g *lived, _ int, broken bool, src *noise.Fast) error {
			arm, err := ahead(g)
			for i := 0; err == nil && i < 200 && !g.asked; i++ {
				if err = g.decide(g.Arm()); err == nil {
					_, err = g.tick()
				}
			}
			if broken && g.asked {
				g.sums[arm] = append(g.sums[arm], coarse(g.reward+src.Laplace(1)))
			}
			return err
		},
	}, {
		name: "play, the last release", twin: "what was released is in it too", fault: Twice,
		adversaries: []string{"all of an arm that was released ahead", "all of an arm whose batch waits when " +
			"decisions end"},
		policy: klucb, score: all,
		play: func(g *lived, adversary int, _ bool, _ *noise.Fast) error {
			until := ahead
			if adversary == 1 {
				until = waiting
			}
			arm, err := until(g)
			if err == nil {
				err = g.decide(arm) // which is left
			}
			if err != nil {
				return err
			}
			g.Finish()
			for range 4 {
				if in, err := g.tick(); err != nil || len(in.Rest) > 0 {
					return err
				}
			}
			return errors.New("audit: what is left is not released")
		},
	}, {
		name: "play, joint batches", twin: Shared.String(), fault: Shared,
		adversaries: []string{"the sum of its arm", "the difference of the arms"},
		policy: func() (policy.Policy, error) {
			return policy.NewSplit([]float64{0.5, 0.5}, privacy.Pure{Epsilon: 1}, 0, 0)
		},
		play: func(g *lived, _ int, _ bool, _ *noise.Fast) error {
			for len(g.sums[0]) == 0 {
				if err := g.decide(len(g.decided) % 2); err != nil {
					return err
				}
				if _, err := g.tick(); err != nil {
					return err
				}
			}
			return nil
		},
		score: func(g *lived, adversary int) float64 {
			if adversary == 0 {
				return ratios(g.sums[0])
			}
			return coarse(g.sums[0][0] - g.sums[1][0])
		},
	}}
}

// game is one game: what is released, and what the ledger says that it costs.
func (x livePlay) game(reward float64, adversary int, broken bool, src *noise.Fast) (*lived, error) {
	p, err := x.policy()
	if err != nil {
		return nil, err
	}
	cfg := play.Config{Policy: p, Arms: 2, Window: 1, Epoch: play.Epoch{1}}
	if broken && x.fault != NoFault {
		cfg.Curator = func(c release.Config) (release.Curator, error) {
			f := &faulty{fault: x.fault, ledger: c.Ledger, src: src, slots: make([]faultySlot, c.Arms)}
			return stepped{f}, f.Forget(c.Mechanism)
		}
	}
	g := &lived{reward: reward}
	if g.Live, err = play.New(cfg); err != nil {
		return nil, err
	}
	return g, x.play(g, adversary, broken, src)
}

// selfPlays are live plays by what they release.
func selfPlays() ([]selfItem, error) {
	var all []selfItem
	for _, x := range livePlays() {
		src := noise.NewFast(1, 2)
		g, err := x.game(1, 0, false, &src)
		if err != nil {
			return nil, err
		}
		for _, broken := range []bool{false, true} {
			d := direct{name: x.name, claim: g.Ledger().Total(), adversaries: x.adversaries,
				attack: "likelihood ratio", model: View.String(),
				worlds: func(adversary int) func() func(bool, *noise.Fast, []float64) error {
					return func() func(bool, *noise.Fast, []float64) error {
						return func(in bool, src *noise.Fast, out []float64) error {
							reward := 0.0
							if in {
								reward = 1
							}
							g, err := x.game(reward, adversary, broken, src)
							if err == nil {
								out[0] = coarse(x.score(g, adversary))
							}
							return err
						}
					}
				}}
			if broken {
				d.name += ", " + x.twin
			}
			all = append(all, ofDirect(d, 0, broken, 4))
		}
	}
	return all, nil
}
