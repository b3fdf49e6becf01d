package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// quiet is a policy of two arms without noise, whose releases are ⌈1.5n⌉ plays long.
func quiet(t *testing.T) policy.Policy {
	t.Helper()
	p, err := policy.NewDPKLUCB(2, math.Inf(1), 1.5, 4)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The policy is given, phase by phase, the rows of the rewards that it would have been given had
// nothing been ahead: without noise it asks for the batches of one that is given them reward by reward.
func TestAheadReference(t *testing.T) {
	for name, build := range map[string]func() policy.Policy{
		"dp-klucb": func() policy.Policy { return quiet(t) },
		"adap-klucb": func() policy.Policy {
			p, err := policy.NewAdaPKLUCB(2, math.Inf(1), 3.1)
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		"dp-ts": func() policy.Policy {
			p, err := policy.NewDPTS(2, privacy.None{}, 3)
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		"lazy-dp-ts": func() policy.Policy {
			coins := noise.NewFast(3, 4)
			p, err := policy.NewLazyDPTS(2, math.Inf(1), &coins)
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
	} {
		l, err := New(Config{Policy: build(), Arms: 2, Window: 40, Epoch: Epoch{1}})
		if err != nil {
			t.Fatal(err)
		}
		src := rand.New(rand.NewPCG(1, 2))
		rewards := [2][]float64{}
		asks, held := [][]policy.Play{l.Out()}, 0
		for now := range int64(6000) {
			arm := l.Arm()
			if src.IntN(3) == 0 {
				arm = src.IntN(2)
			}
			k, err := l.Decide(Decision{Arm: arm}, now)
			if err != nil {
				t.Fatal(err)
			}
			reward := 0.0
			if src.Float64() < []float64{0.3, 0.6}[arm] {
				reward = 1
				if _, err := l.Settle(k, 1, now); err != nil {
					t.Fatal(err)
				}
			}
			rewards[arm] = append(rewards[arm], reward)
			c, err := l.Close(now)
			if err != nil {
				t.Fatal(err)
			}
			if c == nil {
				continue
			}
			held += bytes.Count(c.Line, []byte(`"held":true`))
			if err := l.Commit(c); err != nil {
				t.Fatal(err)
			}
			if !c.note {
				asks = append(asks, l.Out())
			}
		}
		if held < 3 || len(asks) < 20 {
			t.Errorf("%s: %d batches, of which %d were held: nothing was tested", name, len(asks), held)
		}
		again, ledger := build(), privacy.NewLedger()
		waits, next := [2]int{}, [2]int{}
		released, slot := privacy.Released{}, 0
		for i, want := range asks {
			b := again.Next(released)
			if !slices.Equal(b.Plays, want) {
				t.Fatalf("%s: batch %d is %v, reward by reward it is %v", name, i, want, b.Plays)
			}
			v, slots := &privacy.Values{}, []int(nil)
			for _, p := range b.Plays {
				if waits[p.Arm] += p.Rounds; !p.Release || i == len(asks)-1 {
					continue
				}
				sum := 0.0
				for _, r := range rewards[p.Arm][next[p.Arm]:][:waits[p.Arm]] {
					sum += r
				}
				v.N, v.Sum = append(v.N, waits[p.Arm]), append(v.Sum, sum)
				next[p.Arm], waits[p.Arm] = next[p.Arm]+waits[p.Arm], 0
				slots = append(slots, slot)
				slot++
			}
			if released = (privacy.Released{}); len(slots) > 0 {
				if released, err = ledger.ReleaseAll(slots, again.Mechanism(), v); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// By hand: what the floor gives an arm is released when as many have settled as the policy asks for
// next, once, and handed to it when it asks; a restart between changes nothing; what an operator takes
// off is not given back.
func TestAheadByHand(t *testing.T) {
	var lines [][]byte
	epoch := byte(0)
	config := func() Config {
		epoch++
		return Config{Policy: quiet(t), Arms: 2, Window: 10, Epoch: Epoch{epoch}}
	}
	l, err := New(config())
	if err != nil {
		t.Fatal(err)
	}
	decide := func(now int64, arm, n int, reward float64) {
		t.Helper()
		for range n {
			k, err := l.Decide(Decision{Arm: arm}, now)
			if err == nil {
				_, err = l.Settle(k, reward, now)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	sees := func(now int64, want string) {
		t.Helper()
		c, err := l.Close(now)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			if want != "" {
				t.Fatalf("nothing closes at %d, want %s", now, want)
			}
			return
		}
		line := string(c.Line)
		line = strings.ReplaceAll(line, `,"tail":{"sigma":0,"h":0,"log":0}`, "")
		line = strings.ReplaceAll(line, `"mechanism":{"mechanism":"laplace","scale":0},`, "")
		if line != want+"\n" {
			t.Fatalf("at %d the line is\n%swant\n%s", now, line, want)
		}
		lines = append(lines, c.Line)
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	restart := func() {
		t.Helper()
		if l, err = Restore(config(), each(lines), l.State()); err != nil {
			t.Fatal(err)
		}
	}
	decide(0, 0, 4, 0)
	decide(0, 1, 4, 1)
	sees(9, "")
	sees(10, `{"plays":[{"arm":0,"rounds":4,"release":true},{"arm":1,"rounds":4,"release":true}],`+
		`"release":{"slots":[0,1],"n":[4,4],"sum":[0,4]}}`)
	// arm 1 has led, and is asked for 2; a floor gives 1 of arm 0, and another
	decide(11, 0, 1, 0)
	sees(21, "")
	decide(22, 0, 1, 1)
	sees(31, "")
	sees(32, `{"ahead":[{"arm":0,"rounds":2}],"release":{"slots":[2],"n":[2],"sum":[1]}}`)
	restart()
	sees(33, "") // the next phase is of 3
	if got := l.Out(); !slices.Equal(got, []policy.Play{{Arm: 1, Rounds: 2, Release: true}}) {
		t.Fatalf("the batch is %v", got)
	}
	decide(34, 0, 3, 1)
	decide(34, 1, 2, 0)
	// both at once: the batch, and what is ahead
	sees(44, `{"plays":[{"arm":1,"rounds":2,"release":true}],"ahead":[{"arm":0,"rounds":3}],`+
		`"release":{"slots":[4,3],"n":[2,3],"sum":[0,3]}}`)
	for i := range 12 { // until arm 0 is asked for: what is held is its next phase
		now := int64(60 + 20*i)
		if out := l.Out(); out[0].Arm == 0 {
			if i == 0 {
				t.Fatal("arm 0 is asked for at once: nothing is held")
			}
			before := l.Ledger().Total()
			sees(now, `{"plays":[{"arm":0,"rounds":2,"release":true,"held":true}]}`)
			if l.Ledger().Total() != before {
				t.Error("what is held is paid twice")
			}
			restart()
			c, err := l.TakeOff(0)
			if err != nil || len(c.Taken) > 0 {
				t.Fatalf("%+v, %v: nothing goes with it", c, err)
			}
			lines = append(lines, c.Line)
			if err := l.Commit(c); err != nil {
				t.Fatal(err)
			}
			break
		}
		decide(now, 1, l.Out()[0].Rounds, 0)
		c, err := l.Close(now + 10)
		if err != nil || c == nil {
			t.Fatal(c, err)
		}
		lines = append(lines, c.Line)
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	r, err := Replay(config(), each(lines))
	if err != nil {
		t.Fatal(err)
	}
	if r.Released[0] != 9 || r.Releases[0] != 3 || r.Sums[0] != 4 || !r.Off[0] {
		t.Errorf("replayed: %+v", r)
	}
	if !bytes.Contains(bytes.Join(lines, nil), []byte("held")) {
		t.Error("nothing was held")
	}
	for name, change := range map[string]func([][]byte) [][]byte{
		"ahead twice":          func(l [][]byte) [][]byte { return slices.Insert(l, 2, l[1]) },
		"ahead before a batch": func(l [][]byte) [][]byte { l[0], l[1] = l[1], l[0]; return l },
		"left out":             func(l [][]byte) [][]byte { return slices.Delete(l, 1, 2) },
		"too few":              swap(1, `"rounds":2`, `"rounds":1`),
		"more than it has":     swap(1, `"n":[2]`, `"n":[3]`),
		"of the batch's arm":   swap(1, `"arm":0`, `"arm":1`),
		"of no arm":            swap(1, `"arm":0`, `"arm":7`),
		"it is held itself":    swap(1, `"rounds":2`, `"rounds":2,"held":true`),
		"it is the batch's":    swap(1, `"rounds":2`, `"rounds":2,"release":true`),
		"gone":                 swap(1, `"rounds":2`, `"rounds":2,"gone":1`),
		"a slot again":         swap(1, `"slots":[2]`, `"slots":[1]`),
		"nothing is released":  swap(1, `"release":{`, `"metrics":[{`),
		"a change beside it":   swap(1, `"release":{`, `"change":{},"release":{`),
		"held, and it is not":  swap(2, `"release":true}`, `"release":true,"held":true}`),
		"both are ahead": swap(2, `"ahead":[{"arm":0,"rounds":3}]`,
			`"ahead":[{"arm":0,"rounds":3},{"arm":1,"rounds":3}]`),
		"not held, and it is": func(l [][]byte) [][]byte {
			for i := range l {
				l[i] = bytes.Replace(l[i], []byte(`,"held":true`), nil, 1)
			}
			return l
		},
	} {
		twin := change(slices.Clone(lines))
		if _, err := Replay(config(), each(twin)); !errors.Is(err, ErrState) && (err == nil ||
			!strings.Contains(err.Error(), "release")) {
			t.Errorf("%s is replayed: %v", name, err)
		}
	}
}

// swap changes a line.
func swap(at int, old, new string) func([][]byte) [][]byte {
	return func(l [][]byte) [][]byte {
		l[at] = bytes.Replace(l[at], []byte(old), []byte(new), 1)
		return l
	}
}

// dropping never asks again for the arms that it has dropped.
type dropping struct{ flexible }

func (dropping) Wants(int, int) int { return 0 }

// What an elimination has dropped is released when half of what has left its queue waits, by the clock
// alone.
func TestAheadOfWhatWasDropped(t *testing.T) {
	both := policy.Batch{Plays: []policy.Play{{Arm: 0, Rounds: 4, Release: true}, {Arm: 1, Rounds: 4, Release: true}}}
	one := policy.Batch{Plays: []policy.Play{{Arm: 0, Rounds: policy.Forever}}}
	l, err := New(Config{Policy: dropping{flexible{&script{privacy.Laplace{Scale: 1}, []policy.Batch{both, one}}}},
		Arms: 2, Window: 10, Cut: 1, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	var taken []string
	for now := range int64(200) {
		if _, err := l.Decide(Decision{Arm: int(now % 2)}, now); err != nil {
			t.Fatal(err)
		}
		c, err := l.Close(now)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		for _, row := range c.Taken {
			taken = append(taken, fmt.Sprint(now, row))
		}
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	// the last arm is not in a batch that releases it either; 0 decides at even times, 1 at odd ones
	want := "[17 {0 0 4} 17 {1 0 4} 20 {0 4 6} 21 {1 4 6} 26 {0 6 9} 27 {1 6 9} 36 {0 9 14} 37 {1 9 14} " +
		"50 {0 14 21} 51 {1 14 21} 72 {0 21 32} 73 {1 21 32} 104 {0 32 48} 105 {1 32 48} 152 {0 48 72} 153 {1 48 72}]"
	if got := fmt.Sprint(taken); got != want {
		t.Errorf("taken\n%s, want\n%s", got, want)
	}
}

// Under a floor half of what has settled is released of each arm at each tick, and few were before.
func TestShareReleased(t *testing.T) {
	src, coins := rand.New(rand.NewPCG(1, 2)), noise.NewFast(1, 2)
	p, err := policy.NewDPKLUCB(2, 1, 2, 16)
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{Policy: p, Arms: 2, Window: 100, Epoch: Epoch{1},
		Curator: func(c release.Config) (release.Curator, error) { return release.Simulated(c, &coins) }})
	if err != nil {
		t.Fatal(err)
	}
	var settles [2][]int64
	released, given := [2]int{}, 0
	for now := range int64(20_000) {
		arm := l.Arm()
		if src.IntN(10) == 0 {
			arm = src.IntN(2)
		}
		k, err := l.Decide(Decision{Arm: arm}, now)
		if err == nil && src.Float64() < []float64{.08, .2}[arm] {
			_, err = l.Settle(k, 1, now)
		}
		if err != nil {
			t.Fatal(err)
		}
		settles[arm] = append(settles[arm], k.Deadline)
		if now%20 != 0 {
			continue
		}
		for a, all := range settles {
			settled, _ := slices.BinarySearch(all, now+1-20) // by the last tick
			out := slices.ContainsFunc(l.Out(), func(p policy.Play) bool { return p.Arm == a })
			if first := released[a] == 0; !first && !out && 2*released[a] < settled {
				t.Errorf("at %d %d of %d of arm %d are released", now, released[a], settled, a)
			}
		}
		c, err := l.Close(now)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		for _, row := range c.Taken {
			released[row.Arm] += row.End - row.Start
		}
		var in struct {
			Plays []struct{ Arm, Rounds int }
		}
		if err := json.Unmarshal(c.Line, &in); err != nil {
			t.Fatal(err)
		}
		for _, p := range in.Plays {
			if p.Arm == 0 {
				given += p.Rounds
			}
		}
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	if loser := len(settles[0]); 2*released[0] < loser-200 || 4*given > loser {
		t.Errorf("%d of the loser's %d are released, and its batches were of %d", released[0], loser, given)
	}
}
