package play

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// fours is an A/B test in rows of four decisions.
type fours struct{ batch policy.Batch }

func (p *fours) Mechanism() privacy.Mechanism { return privacy.Laplace{} }
func (p *fours) Shares(int) []float64         { return []float64{0.5, 0.5} }
func (p *fours) JointEnd(n int) int           { return n + 4 }
func (p *fours) Next(privacy.Released) *policy.Batch {
	p.batch.Plays = []policy.Play{{Arm: 0, Rounds: 2, Release: true}, {Arm: 1, Rounds: 2, Release: true}}
	return &p.batch
}

func newFours(t *testing.T, cfg Config) *Live {
	t.Helper()
	cfg.Policy, cfg.Arms, cfg.Window, cfg.Epoch = &fours{}, 2, 100, Epoch{1}
	if cfg.Curator == nil {
		s := noise.NewFast(1, 2)
		cfg.Curator = func(c release.Config) (release.Curator, error) { return release.Simulated(c, &s) }
	}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Rows by hand: they end with every fourth decision, whatever the time; a row is released when the
// last of its windows has passed, all arms in one line; later rows fill meanwhile; an arm that has
// none of a row is not in its line; and there is no clock that cuts.
func TestJointByHand(t *testing.T) {
	l := newFours(t, Config{})
	var tickets []Ticket
	decide := func(arm int, now int64) {
		t.Helper()
		k, err := l.Decide(Decision{Arm: arm}, now)
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, k)
	}
	see := func(now int64, a, b string, due int64) {
		t.Helper()
		at, ok := l.Due(now)
		if segments(l, 0) != a || segments(l, 1) != b || ok != (due > 0) || ok && at != due {
			t.Errorf("at %d: %q and %q, due at %d, %v; must be %q and %q, due at %d", now, segments(l, 0),
				segments(l, 1), at, ok, a, b, due)
		}
	}
	decide(0, 0)
	decide(1, 1)
	decide(0, 2)
	see(90, "0-0", "0-0", 0) // far beyond a sixteenth of the window
	decide(0, 90)            // the row is full: the other arm's segment is cut too
	see(90, "0-3", "0-1", 190)
	decide(1, 91)
	decide(1, 92)
	decide(1, 93)
	decide(1, 94) // a row without arm 0
	see(94, "0-3", "0-1 1-5", 190)
	decide(1, 95)
	see(95, "0-3", "0-1 1-5 5-0", 190)
	for i, reward := range []float64{1, 0.5, 1, 0, 0, 0, 0, 1} {
		if got, err := l.Settle(tickets[i], reward, 95); got != Accepted || err != nil {
			t.Fatal(got, err)
		}
	}
	if c, err := l.Close(189); c != nil || err != nil {
		t.Fatalf("closed before its windows: %+v, %v", c, err)
	}
	for i, want := range []string{
		`"arm":0,"rounds":2,"release":true},{"arm":1,"rounds":2,"release":true}],"release":{…"n":[3,1],"sum":[2,0.5]`,
		`"arm":0,"rounds":2},{"arm":1,"rounds":2,"release":true}],"release":{…"n":[4],"sum":[1]`,
	} {
		c, err := l.Close(194)
		if err != nil || c == nil {
			t.Fatalf("row %d: %+v, %v", i, c, err)
		}
		for _, part := range strings.Split(want, "…") {
			if !strings.Contains(string(c.Line), part) {
				t.Errorf("row %d is %s, and has no %s", i, c.Line, part)
			}
		}
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	see(1000, "", "5-0", 0)
}

// What was withdrawn is in no release, and an arm of which nothing is left is in none.
func TestJointGone(t *testing.T) {
	l := newFours(t, Config{})
	var lines [][]byte
	for row := range 2 {
		for i := range 4 {
			k, err := l.Decide(Decision{Arm: i / 3}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if i == 3 || row == 1 {
				if got, err := l.Withdraw(k, 1); got != Accepted || err != nil {
					t.Fatal(got, err)
				}
			}
		}
		c, err := l.Close(100)
		if err != nil || c == nil {
			t.Fatalf("%+v, %v", c, err)
		}
		if lines = append(lines, c.Line); l.Commit(c) != nil || len(c.Taken) != 2 {
			t.Fatalf("%+v", c)
		}
	}
	for i, want := range []string{`{"arm":1,"rounds":2,"gone":1}],"release":{"slots":[0],`,
		`{"plays":[{"arm":0,"rounds":2,"gone":3},{"arm":1,"rounds":2,"gone":1}]}`} {
		if !strings.Contains(string(lines[i]), want) {
			t.Errorf("line %s has no %s", lines[i], want)
		}
	}
	got, err := Replay(Config{Policy: &fours{}, Arms: 2, Window: 100}, listed(lines))
	if err != nil || got.Released[0] != 3 || got.Released[1] != 0 || got.Releases[1] != 0 {
		t.Errorf("replayed %+v, %v", got, err)
	}
}

// exactFours is fours as a policy by arm: two decisions of each, whenever they come.
type exactFours struct{ fours }

func (p *exactFours) End(_, n int) int { return n + 2 }

// byArm says of a policy that it cuts by arm, and nothing else.
type byArm struct{ Exact }

// The arms of each release met the same times: their decisions are a row of all that were made. A
// play that cuts each arm by its own count is told from that.
func TestJointRowsAreAligned(t *testing.T) {
	aligned := func(p policy.Policy) error {
		s := noise.NewFast(1, 2)
		l, err := New(Config{Policy: p, Arms: 2, Window: 100, Epoch: Epoch{1},
			Curator: func(c release.Config) (release.Curator, error) { return release.Simulated(c, &s) }})
		if err != nil {
			t.Fatal(err)
		}
		src, place, next := rand.New(rand.NewPCG(1, 2)), map[Ticket]int{}, 0
		for now := range int64(4000) {
			k, err := l.Decide(Decision{Arm: src.IntN(2)}, now)
			if err != nil {
				t.Fatal(err)
			}
			k.Deadline, k.Epoch = 0, Epoch{}
			place[k] = len(place)
			c, err := l.Close(now)
			if err != nil {
				t.Fatal(err)
			}
			if c == nil {
				continue
			}
			n := 0
			for _, r := range c.Taken {
				for i := r.Start; i < r.End; i++ {
					if at := place[Ticket{Arm: r.Arm, Number: i}]; at < next || at >= next+4 {
						return fmt.Errorf("decision %d is in the release of %d to %d", at, next, next+3)
					}
					n++
				}
			}
			if next += n; n != 4 {
				return fmt.Errorf("a release of %d decisions", n)
			}
			if err := l.Commit(c); err != nil {
				t.Fatal(err)
			}
		}
		if next < 3000 {
			return fmt.Errorf("%d decisions were released", next)
		}
		return nil
	}
	if err := aligned(&fours{}); err != nil {
		t.Error(err)
	}
	if err := aligned(byArm{&exactFours{}}); err == nil {
		t.Error("a policy that cuts by arm is not told from one that does not")
	}
}

// A state or a transcript whose rows are others restores nothing.
func TestJointRestoreErrors(t *testing.T) {
	var h *house
	for seed := uint64(1); h == nil || len(h.live.s.Arms[0].Segments) < 3 || len(h.lines) < 10; seed++ {
		var err error
		h, err = run(none, ofArms(policies(t)["joint"], houseConfig(3)), seed, 1500)
		if err == nil {
			err = h.write()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(cfg *Config, lines [][]byte, s *State)
		want   string
	}{
		"nothing":        {func(*Config, [][]byte, *State) {}, ""},
		"another cut":    {func(_ *Config, _ [][]byte, s *State) { s.Arms[0].Segments[1].Cut++ }, "joint batch of decisions"},
		"open in a row":  {func(_ *Config, _ [][]byte, s *State) { last(s).End = last(s).End ^ 1<<20 }, "joint batch"},
		"another policy": {func(cfg *Config, _ [][]byte, _ *State) { cfg.Policy = &fours{}; cfg.Arms = 2 }, "must be on"},
		"other rows": {func(cfg *Config, _ [][]byte, s *State) {
			s.Joint = strings.Replace(s.Joint, "[1 ", "[2 ", 1)
		}, "must be on"},
		"a decision more": {func(_ *Config, lines [][]byte, _ *State) {
			lines[4] = bytes.Replace(lines[4], []byte(`"n":[`), []byte(`"n":[1`), 1)
		}, "its joint batch"},
		"one is gone": {func(_ *Config, lines [][]byte, _ *State) {
			lines[4] = bytes.Replace(lines[4], []byte(`"release":true}`), []byte(`"release":true,"gone":1}`), 1)
		}, "its joint batch"},
	} {
		cfg := h.config()
		s, err := h.read()
		if err != nil {
			t.Fatal(err)
		}
		lines := append([][]byte(nil), h.lines...)
		c.change(&cfg, lines, &s)
		h.handed = map[int][]float64{}
		_, err = Restore(cfg, listed(lines), s)
		if name == "nothing" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// last is the last segment of the first arm that has one.
func last(s *State) *Segment {
	for a := range s.Arms {
		if n := len(s.Arms[a].Segments); n > 0 {
			return &s.Arms[a].Segments[n-1]
		}
	}
	return &Segment{}
}

// A policy without a share of each arm, or whose batch leaves one out, is refused; no arm can be taken
// off; and terms of other plays have nothing of joint batches in their JSON.
func TestJointBatchErrors(t *testing.T) {
	if _, err := New(Config{Policy: &fours{}, Arms: 3, Window: 1, Epoch: Epoch{1}}); err == nil ||
		!strings.Contains(err.Error(), "has 2 shares") {
		t.Error(err)
	}
	if _, err := New(Config{Policy: &fours{}, Arms: 2, Window: 1, Epoch: Epoch{1}, Take: AtLeast}); err == nil ||
		!strings.Contains(err.Error(), "must be jointly") {
		t.Error(err)
	}
	if _, err := New(Config{Policy: &oneOfTwo{}, Arms: 2, Window: 1, Epoch: Epoch{1}}); err == nil ||
		!strings.Contains(err.Error(), "it is joint, and has 1 arms of 2") {
		t.Error(err)
	}
	l := newFours(t, Config{})
	if _, err := l.TakeOff(0); err == nil || !strings.Contains(err.Error(), "never change") {
		t.Error(err)
	}
	if s := l.Shares(); len(s) != 2 || s[0] != 0.5 {
		t.Error(s)
	}
	terms, err := TermsOf(Config{Policy: &fours{}, Arms: 2, Window: 1, Epoch: Epoch{1}})
	if err != nil || terms.Joint != "[0.5 0.5] [4 8 12 16]" || terms.Take != Jointly {
		t.Errorf("%+v, %v", terms, err)
	}
	if text, _ := json.Marshal(Terms{}); bytes.Contains(text, []byte("Joint")) {
		t.Errorf("%s", text)
	}
}

type oneOfTwo struct{ fours }

func (p *oneOfTwo) Next(r privacy.Released) *policy.Batch {
	b := p.fours.Next(r)
	b.Plays = b.Plays[:1]
	return b
}
