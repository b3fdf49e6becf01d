package policy_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A policy that was told that an arm is gone never asks for it again, finds the best of those that
// are left, and still ends its releases where it says.
func TestDrop(t *testing.T) {
	type dropper interface {
		policy.Policy
		Drop(arm int)
		End(arm, n int) int
	}
	makers := map[string]func() (dropper, error){
		"dp-klucb":       func() (dropper, error) { return policy.NewDPKLUCB(4, 1, 1.5, 3) },
		"dp-klucb-j":     func() (dropper, error) { return policy.NewDPKLUCBJ(4, 1, 2, 0) },
		"dp-imed":        func() (dropper, error) { return policy.NewDPIMED(4, 1, 1.5, 3) },
		"dp-imed-j":      func() (dropper, error) { return policy.NewDPIMEDJ(4, 1, 2, 0) },
		"dp-ucb-anytime": func() (dropper, error) { return policy.NewDPUCBDoubling(4, 1, 1.5, 3) },
		"dp-ts":          func() (dropper, error) { return policy.NewDPTS(4, privacy.Pure{Epsilon: 1}, 3) },
		"zcdp-imed": func() (dropper, error) {
			return policy.NewZCDPIMED(4, privacy.ZCDP{Rho: 1}, 1.5, 3)
		},
	}
	means := []float64{0.9, 0.8, 0.2, 0.1} // the best arms go
	for name, build := range makers {
		for first := range 12 {
			drops := map[int]int{first: 0, first + 3: 1} // before batch: arm
			p, err := build()
			if err != nil {
				t.Fatal(err)
			}
			s := noise.NewFast(uint64(first), 1)
			cur, err := release.Simulated(release.Config{Arms: 4, Mechanism: p.Mechanism()}, &s)
			if err != nil {
				t.Fatal(err)
			}
			gone, plays, last := map[int]bool{}, make([]int, 4), make([]int, 4)
			var released privacy.Released
			for batch := range 60 {
				b := p.Next(released)
				released = privacy.Released{}
				if arm, ok := drops[batch]; ok {
					p.Drop(arm)
					gone[arm] = true
					b = p.Next(released)
				}
				var arms []int
				long := false
				for _, play := range b.Plays {
					if gone[play.Arm] {
						t.Fatalf("%s: batch %d plays arm %d, which is gone", name, batch, play.Arm)
					}
					if want := p.End(play.Arm, last[play.Arm]); play.Release && plays[play.Arm]+play.Rounds != want {
						t.Fatalf("%s: batch %d releases arm %d at %d, said %d", name, batch,
							play.Arm, plays[play.Arm]+play.Rounds, want)
					}
					if long = play.Rounds > 1<<20; long {
						break
					}
					plays[play.Arm] += play.Rounds
					if play.Release {
						arms, last[play.Arm] = append(arms, play.Arm), plays[play.Arm]
					}
					if err := cur.AddSum(play.Arm, play.Rounds,
						float64(play.Rounds)*means[play.Arm]); err != nil {
						t.Fatal(err)
					}
				}
				if long {
					break
				}
				if len(arms) == 0 {
					continue
				}
				if released, err = cur.Release(arms); err != nil {
					t.Fatal(err)
				}
			}
			if plays[2] <= plays[3] {
				t.Errorf("%s: plays %v: arm 2 is the best that is left", name, plays)
			}
		}
	}
}

// Policies of which no arm is taken off end their releases where they say, too.
func TestEnd(t *testing.T) {
	type scheduled interface {
		policy.Policy
		End(arm, n int) int
	}
	coins := noise.NewFast(1, 2)
	for name, build := range map[string]func() (scheduled, error){
		"adap-klucb": func() (scheduled, error) { return policy.NewAdaPKLUCB(3, 1, 3.1) },
		"adap-ucb, another ratio": func() (scheduled, error) {
			p, err := policy.NewAdaPUCB(3, 1, 3.1)
			return p, errors.Join(err, p.SetRatio(1.3))
		},
		"adac-ucb":   func() (scheduled, error) { return policy.NewAdaCUCB(3, privacy.ZCDP{Rho: 1}, 3.1) },
		"dp-ts":      func() (scheduled, error) { return policy.NewDPTS(3, privacy.ZCDP{Rho: 0.5}, 5) },
		"lazy-dp-ts": func() (scheduled, error) { return policy.NewLazyDPTS(3, 1, &coins) },
	} {
		p, err := build()
		if err != nil {
			t.Fatal(err)
		}
		s := noise.NewFast(1, 1)
		cur, err := release.Simulated(release.Config{Arms: 3, Mechanism: p.Mechanism()}, &s)
		if err != nil {
			t.Fatal(err)
		}
		plays, last, ends := make([]int, 3), make([]int, 3), 0
		var released privacy.Released
		for range 200 {
			if max(plays[0], plays[1], plays[2]) > math.MaxInt32/4 {
				break
			}
			var arms []int
			for _, play := range p.Next(released).Plays {
				plays[play.Arm] += play.Rounds
				if play.Release {
					if want := p.End(play.Arm, last[play.Arm]); plays[play.Arm] != want {
						t.Fatalf("%s: arm %d is released at %d after %d, said %d", name, play.Arm,
							plays[play.Arm], last[play.Arm], want)
					}
					last[play.Arm] = plays[play.Arm]
					arms = append(arms, play.Arm)
					ends++
				}
				mean := []float64{0.5, 0.45, 0.4}[play.Arm]
				if err := cur.AddSum(play.Arm, play.Rounds, float64(play.Rounds)*mean); err != nil {
					t.Fatal(err)
				}
			}
			released = privacy.Released{}
			if len(arms) == 0 {
				continue
			}
			if released, err = cur.Release(arms); err != nil {
				t.Fatal(err)
			}
		}
		if ends < 20 {
			t.Errorf("%s: %d releases", name, ends)
		}
	}
}
