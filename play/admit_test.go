package play

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

func TestAdmit(t *testing.T) {
	dptt, err := identify.NewDPTT(3, privacy.Pure{Epsilon: 1}, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	dpse, err := identify.NewDPSE(3, privacy.Pure{Epsilon: 1}, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	se, err := identify.NewSE(3, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	half, err := policy.NewAdaPKLUCB(2, 1, 3.1)
	if err != nil {
		t.Fatal(err)
	}
	half.PrintedHalf()
	for want, p := range map[string]policy.Policy{
		"exactly": dptt, "jointly": &jointly{}, "at least": dpse, "without noise": se, "*policy.AdaPKLUCB cannot be " +
			"played live: it starts afresh": half,
		"no mechanism": &script{}, "mechanism, tree": &script{m: privacy.Tree{Scale: 1, Horizon: 8}},
		"sparse":                       &script{m: privacy.Sparse{}},
		"*play.script is not admitted": &script{m: privacy.Laplace{Scale: 1}},
	} {
		take, err := Admit(p)
		if got := take.String(); err == nil && got != want || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v, %v", want, take, err)
		}
	}
}

// A script is a policy that asks for given batches.
type script struct {
	m       privacy.Mechanism
	batches []policy.Batch
}

func (p *script) Mechanism() privacy.Mechanism { return p.m }
func (p *script) Next(privacy.Released) *policy.Batch {
	if len(p.batches) == 0 {
		return nil
	}
	b := p.batches[0]
	p.batches = p.batches[1:]
	return &b
}

// A scheduled script says that the arms' releases end at multiples of ten.
type scheduled struct{ script }

func (*scheduled) End(_, n int) int { return n/10*10 + 10 }

// What cannot be played live is refused when it is asked for, and from then on.
func TestBatchesThatCannotBePlayed(t *testing.T) {
	good := []policy.Play{{Arm: 0, Rounds: 10, Release: true}}
	for name, bad := range map[string]policy.Batch{
		"a question":       {Plays: good, Ask: true},
		"afresh":           {Plays: good, Fresh: true},
		"empty":            {},
		"0 rounds":         {Plays: []policy.Play{{Arm: 0, Rounds: 0}}},
		"arm 2":            {Plays: []policy.Play{{Arm: 2, Rounds: 1}}},
		"arm -1":           {Plays: []policy.Play{{Arm: -1, Rounds: 1}}},
		"arm 0 twice":      {Plays: []policy.Play{{Arm: 0, Rounds: 1}, {Arm: 0, Rounds: 9, Release: true}}},
		"which said 10":    {Plays: []policy.Play{{Arm: 0, Rounds: 9, Release: true}}},
		"of arm 1, which ": {Plays: []policy.Play{{Arm: 1, Rounds: math.MaxInt, Release: true}}},
	} {
		cfg := Config{Arms: 2, Window: 5, Epoch: Epoch{1}}
		cfg.Policy = &scheduled{script{privacy.Laplace{Scale: 1}, []policy.Batch{bad}}}
		if _, err := New(cfg); !errors.Is(err, ErrBatch) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		cfg.Policy = &scheduled{script{privacy.Laplace{Scale: 1}, []policy.Batch{{Plays: good}, bad}}}
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := l.Decide(Decision{Arm: 0}, 0); err != nil {
				t.Fatal(err)
			}
		}
		c, err := l.Close(5)
		if err != nil || c == nil {
			t.Fatal(c, err)
		}
		if err := l.Commit(c); !errors.Is(err, ErrBatch) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.Decide(Decision{Arm: 0}, 6); !errors.Is(err, ErrBatch) {
			t.Errorf("%s: after it: %v", name, err)
		}
		if _, err := l.Settle(Ticket{}, 1, 6); !errors.Is(err, ErrBatch) {
			t.Errorf("%s: after it: %v", name, err)
		}
	}
}

// The states of one release: nothing is due before the windows have passed, one commit at a time,
// and of what Close returned only; a policy that stops wants nothing more.
func TestOneRelease(t *testing.T) {
	p := &scheduled{script{privacy.Laplace{Scale: 1},
		[]policy.Batch{{Plays: []policy.Play{{Arm: 0, Rounds: 10, Release: true}}}}}}
	l, err := New(Config{Policy: p, Arms: 2, Window: 5, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 14 { // four more than it wants
		if a := l.Arm(); a != 0 {
			t.Fatal(a)
		}
		k, err := l.Decide(Decision{Arm: 0}, int64(i))
		if err != nil || k != (Ticket{0, i, int64(i) + 5, Epoch{1}}) {
			t.Fatal(k, err)
		}
	}
	if at, ok := l.Due(13); !ok || at != 14 {
		t.Errorf("due at %d, %v", at, ok)
	}
	if c, err := l.Close(13); c != nil || err != nil {
		t.Errorf("closed early: %v, %v", c, err)
	}
	c, err := l.Close(14)
	if err != nil || !slices.Equal(c.Taken, []Taken{{0, 0, 10}}) {
		t.Fatal(c, err)
	}
	if _, err := l.Close(14); !errors.Is(err, ErrPending) {
		t.Errorf("closed twice: %v", err)
	}
	if k, err := l.Decide(Decision{Arm: 1}, 14); err != nil || k.Number != 0 { // decisions go on
		t.Error(k, err)
	}
	if err := l.Commit(&Commit{}); err == nil {
		t.Error("committed what was not closed")
	}
	if s, ok := l.Segment(0, 12); !ok || s.Start != 10 || s.End != 20 || s.Settles != 18 {
		t.Errorf("segment %+v, %v", s, ok)
	}
	if _, ok := l.Segment(0, 9); ok {
		t.Error("a segment that is released is there")
	}
	if _, ok := l.Segment(0, 14); ok {
		t.Error("a decision that was not made is in a segment")
	}
	if err := l.Commit(c); err != nil || !l.Stopped() || l.Arm() != -1 || l.Batches() != 1 {
		t.Error(err, l.Stopped(), l.Arm(), l.Batches())
	}
	if _, err := l.Decide(Decision{Arm: 0}, 15); !errors.Is(err, ErrStopped) {
		t.Errorf("decided after the end: %v", err)
	}
	if _, err := l.Close(15); !errors.Is(err, ErrStopped) {
		t.Errorf("closed after the end: %v", err)
	}
	if s, err := l.Settle(Ticket{0, 12, 17, Epoch{1}}, 1, 16); s != Accepted || err != nil {
		t.Error(s, err)
	}
}

// A window that changes leaves deadlines that were promised as they are.
func TestSetWindow(t *testing.T) {
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 50, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if i == 4 {
			for _, bad := range [][2]int64{{0, 0}, {-1, 0}, {math.MaxInt64, 0}, {5, -1}} {
				if l.SetWindow(bad[0], bad[1]) == nil {
					t.Errorf("set to %v", bad)
				}
			}
			if err := l.SetWindow(5, 0); err != nil {
				t.Fatal(err)
			}
		}
		k, err := l.Decide(Decision{Arm: l.Arm()}, int64(i))
		if want := int64(i) + []int64{50, 50, 50, 50, 5, 5}[i]; err != nil || k.Deadline != want {
			t.Errorf("decision %d: %+v, %v", i, k, err)
		}
	}
	if at, ok := l.Due(5); !ok || at != 53 {
		t.Errorf("due at %d, %v: the oldest windows must have passed", at, ok)
	}
}

// Offers are shared out as decisions are, before any of them is one; what then counts has the
// deadline that it was offered with, and is in the order of its counting.
func TestOffer(t *testing.T) {
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 50, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	var arms []int
	for range 7 {
		arms = append(arms, l.Offer())
	}
	if want := []int{0, 1, 2, 0, 1, 2, 0}; !slices.Equal(arms, want) || l.Arm() != 0 {
		t.Errorf("offers are %v, want %v; the next decision has arm %d", arms, want, l.Arm())
	}
	for i, deadline := range []int64{70, 65} {
		if k, err := l.DecideUntil(Decision{Arm: 1}, 5, deadline); err != nil || k != (Ticket{1, i, deadline, Epoch{1}}) {
			t.Errorf("%+v, %v", k, err)
		}
		for _, arm := range []int{0, 2} {
			if _, err := l.Decide(Decision{Arm: arm}, 5); err != nil {
				t.Fatal(err)
			}
		}
	}
	if at, ok := l.Due(6); !ok || at != 70 {
		t.Errorf("it is due at %d, %v", at, ok)
	}
	c, err := l.Close(70)
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	if err := l.Commit(c); err != nil {
		t.Fatal(err)
	}
	if a := l.Offer(); a != l.Arm() {
		t.Errorf("the first offer of a batch is arm %d, of decisions %d", a, l.Arm())
	}
}

// What an operator changed is in the transcript, and the batch that is out goes on.
func TestNote(t *testing.T) {
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 50, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if _, err := l.Decide(Decision{Arm: l.Arm()}, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	out := l.Out()
	c, err := l.Note([]byte(`{"floor": 0.5}`))
	if err != nil || string(c.Line) != `{"change":{"floor":0.5}}`+"\n" || c.Taken != nil {
		t.Fatalf("%v, %+v", err, c)
	}
	if _, err := l.Note([]byte(`1`)); !errors.Is(err, ErrPending) {
		t.Errorf("another one before the commit: %v", err)
	}
	if early, err := l.Close(1000); early != nil || !errors.Is(err, ErrPending) {
		t.Errorf("a release before the commit: %v", err)
	}
	if err := l.Commit(c); err != nil || !slices.Equal(l.Out(), out) || l.Batches() != 1 {
		t.Errorf("%v: %v is out, was %v; %d batches", err, l.Out(), out, l.Batches())
	}
	if c, err = l.Close(60); err != nil || c == nil {
		t.Fatal(c, err)
	}
	if err := l.Commit(c); err != nil || l.Batches() != 2 {
		t.Error(err, l.Batches())
	}
	for _, bad := range []string{"", "null", "{", `{"floor":}`} {
		if _, err := l.Note([]byte(bad)); err == nil {
			t.Errorf("%q is a change", bad)
		}
	}
}

// A onceTaught policy says how many releases it was given.
type onceTaught struct {
	policy.Policy
	given int
}

func (p *onceTaught) Next(released privacy.Released) *policy.Batch {
	if released.Len() > 0 {
		p.given++
	}
	return p.Policy.Next(released)
}

func (p *onceTaught) Drop(arm int)  { p.Policy.(Dropper).Drop(arm) }
func (p *onceTaught) AddArm() error { return p.Policy.(Grower).AddArm() }
func (p *onceTaught) End(arm, n int) int {
	return p.Policy.(interface{ End(arm, n int) int }).End(arm, n)
}

// A policy is given each release once, whether an arm is taken off after it, or added: most count nothing of a batch
// that was withdrawn, so that one which is given twice shows here alone.
func TestEachReleaseIsLearnedOnce(t *testing.T) {
	p := &onceTaught{Policy: policies(t)["dp-klucb"]()}
	l, err := New(Config{Policy: p, Arms: 3, Window: 50, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	now, closed := int64(0), 0
	do := func(c *Commit, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	rounds := func() {
		for range 40 {
			if now++; l.Arm() >= 0 {
				if _, err := l.Decide(Decision{Arm: l.Arm()}, now); err != nil {
					t.Fatal(err)
				}
			}
		}
		now += 60
		if c, err := l.Close(now); err != nil {
			t.Fatal(err)
		} else if c != nil {
			closed++
			do(c, nil)
		}
	}
	rounds()
	do(l.TakeOff(1))
	rounds()
	do(l.AddArm(0, nil))
	rounds()
	if closed != 3 || p.given != closed {
		t.Errorf("%d releases were given, of %d", p.given, closed)
	}
}

// Without an arm the others go on; its windows stay what they are, and what it had waits for the rest.
func TestTakeOff(t *testing.T) {
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 50, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	var gone Ticket
	for i := range 5 {
		k, err := l.Decide(Decision{Arm: l.Arm()}, int64(i))
		if err != nil {
			t.Fatal(err)
		}
		if k.Arm == 1 {
			gone = k
		}
	}
	c, err := l.TakeOff(1)
	if err != nil || string(c.Line) != `{"off":1}`+"\n" || len(c.Taken) > 0 {
		t.Fatalf("%v, %+v", err, c)
	}
	if _, err := l.TakeOff(0); !errors.Is(err, ErrPending) {
		t.Errorf("another one before the commit: %v", err)
	}
	if err := l.Commit(c); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Decide(Decision{Arm: 1}, 6); !errors.Is(err, ErrOff) {
		t.Errorf("decided for an arm that is off: %v", err)
	}
	if s, err := l.Settle(gone, 1, 6); s != Accepted || err != nil {
		t.Errorf("a reward of an arm that is off: %v, %v", s, err)
	}
	for i := range 20 {
		if a := l.Arm(); a == 1 {
			t.Fatal("it is played")
		} else if _, err := l.Decide(Decision{Arm: a}, int64(10+i)); err != nil {
			t.Fatal(err)
		}
	}
	c, err = l.Close(60)
	if err != nil || !slices.Equal(c.Taken, []Taken{{0, 0, 2}, {2, 0, 2}}) {
		t.Fatalf("%v, %+v", err, c)
	}
	if err := l.Commit(c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		arm int
		err string
	}{{1, "taken off"}, {-1, "arm is -1"}, {3, "arm is 3"}} {
		if _, err := l.TakeOff(want.arm); err == nil || !strings.Contains(err.Error(), want.err) {
			t.Errorf("%+v: %v", want, err)
		}
	}
	if c, err = l.TakeOff(0); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(c); err != nil {
		t.Fatal(err)
	}
	if _, err := l.TakeOff(2); err == nil || !strings.Contains(err.Error(), "the last one") {
		t.Errorf("the last one: %v", err)
	}
	deaf, err := New(Config{Policy: policies(t)["batch-se"](), Arms: 3, Window: 50, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deaf.TakeOff(0); err == nil ||
		!strings.Contains(err.Error(), "*policy.BatchSE cannot be told") {
		t.Errorf("a policy that cannot be told: %v", err)
	}
}

func TestDecideErrors(t *testing.T) {
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 5, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		arm int
		now int64
	}{{-1, 0}, {3, 0}, {0, math.MaxInt64}, {0, math.MinInt64}} {
		if k, err := l.Decide(Decision{Arm: bad.arm}, bad.now); err == nil {
			t.Errorf("%+v: %+v", bad, k)
		}
	}
	for _, deadline := range []int64{-1, 0, math.MinInt64, 1 << 62, math.MaxInt64} {
		if k, err := l.DecideUntil(Decision{Arm: 0}, 0, deadline); !errors.Is(err, ErrTime) {
			t.Errorf("until %d: %+v, %v", deadline, k, err)
		}
	}
	for _, void := range []Ticket{{Arm: -1}, {Arm: 3}, {Number: -1}, {Deadline: 9, Epoch: Epoch{1}}} {
		if s, err := l.Settle(void, 1, 0); s != Void || err != nil {
			t.Errorf("%+v: %v, %v", void, s, err)
		}
	}
}

// A budget that is used up stops the machine: nothing is handed out.
func TestBudget(t *testing.T) {
	p := &scheduled{script{privacy.Laplace{Scale: 1},
		[]policy.Batch{{Plays: []policy.Play{{Arm: 0, Rounds: 10, Release: true}}}}}}
	l, err := New(Config{Policy: p, Arms: 1, Window: 5, Epoch: Epoch{1},
		Ledger: []privacy.Option{privacy.WithCap(privacy.Pure{Epsilon: 0.5})}})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := l.Decide(Decision{Arm: 0}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := l.Close(5); c != nil || !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("released %v, %v", c, err)
	}
	if _, err := l.Close(6); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("and then: %v", err)
	}
}

// A curator whose rewards are not sums of steps is refused.
func TestTrustIsRefused(t *testing.T) {
	s := noise.NewFast(1, 2)
	_, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 5, Epoch: Epoch{1},
		Curator: func(c release.Config) (release.Curator, error) {
			cur, err := release.Simulated(c, &s)
			return struct{ release.Curator }{cur}, err
		}})
	if err == nil || !strings.Contains(err.Error(), "sums of steps") {
		t.Error(err)
	}
}

// With exact noise, under a cap, and restored after every release: the total is what it was, and
// within the cap.
func TestRealNoiseIsRestored(t *testing.T) {
	start := func(n int) Config {
		return Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 5, Epoch: Epoch{byte(n)},
			Ledger: []privacy.Option{privacy.WithCap(privacy.Pure{Epsilon: 1})}}
	}
	l, err := New(start(1))
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	for now := int64(0); len(lines) < 12; now++ {
		k, err := l.Decide(Decision{Arm: l.Arm()}, now)
		if err == nil {
			_, err = l.Settle(k, float64(k.Number%2), now)
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Close(now)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		lines = append(lines, c.Line)
		state, before := l.State(), l.Ledger().Total()
		l, err = Restore(start(len(lines)+1), func(yield func([]byte, error) bool) {
			for _, line := range lines {
				if !yield(line, nil) {
					return
				}
			}
		}, state)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Ledger().Total(); got.Pure() != before.Pure() || !(got.Pure() > 0.99 && got.Pure() <= 1) {
			t.Errorf("after %d releases the total is %v, was %v", len(lines), got.Pure(), before.Pure())
		}
	}
}
