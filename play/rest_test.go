package play

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// By hand: a policy asks arm 0 for one decision, for two, then for nine; arm 1 it never asks for. When decisions
// end, the batch that has all of its decisions is closed and given to the policy. The rest is released at
// the last of the windows: of both arms, with what was withdrawn beside it, and once.
func TestRest(t *testing.T) {
	s, rewards, baskets := noise.NewFast(1, 2), &recorder{}, &recorder{}
	config := func(epoch byte) Config {
		return Config{Policy: asks(1, 2, 9), Arms: 2, Window: 50, Cut: 10, Epoch: Epoch{epoch},
			Metrics: []Metric{{Name: "basket", Hi: metricHigh, Mechanism: privacy.Laplace{Scale: 2}}},
			Curator: func(c release.Config) (release.Curator, error) {
				all, err := release.Simulated(c, &s)
				to := rewards
				if c.Hi == metricHigh {
					to = baskets
				}
				to.StepCurator, _ = all.(release.StepCurator)
				return to, err
			}}
	}
	l, err := New(config(1))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	decide := func(arm int, now int64) Ticket {
		t.Helper()
		k, err := l.Decide(Decision{Arm: arm}, now)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	settle := func(k Ticket, reward float64, now int64, want Status) {
		t.Helper()
		if got, err := l.SettleAll(k, reward, []float64{3 * reward}, now); got != want || err != nil {
			t.Errorf("%+v at %d is %v, %v", k, now, got, err)
		}
	}
	closes := func(now int64, line, taken string, given ...given) {
		t.Helper()
		if c, err := l.Close(now - 1); c != nil || err != nil {
			t.Fatalf("it closes before %d: %v, %v", now, c, err)
		}
		rewards.given, baskets.given = nil, nil
		c, err := l.Close(now)
		if err != nil || c == nil || !strings.HasPrefix(string(c.Line), line) || fmt.Sprint(c.Taken) != taken {
			t.Fatalf("at %d: %+v, %v", now, c, err)
		}
		if !slices.Equal(rewards.given, given) || !slices.Equal(baskets.given, given) {
			t.Errorf("at %d %v are released, and %v of the metric", now, rewards.given, baskets.given)
		}
		lines = append(lines, string(c.Line))
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	settle(decide(0, 0), 1, 3, Accepted)
	closes(50, `{"plays":[{"arm":0,"rounds":1,"release":true}],"release":`, "[{0 0 1}]", given{0, 1, oneStep})
	settle(decide(0, 60), 1, 61, Accepted)
	decide(0, 61)
	settle(decide(1, 62), 0.5, 63, Accepted)
	gone, left := decide(1, 63), decide(0, 70)
	last := decide(1, 90) // of another segment
	settle(left, 1, 91, Accepted)
	if s, err := l.Withdraw(gone, 92); s != Accepted || err != nil {
		t.Fatal(s, err)
	}
	l.Finish()
	l.Finish()
	if _, err := l.Decide(Decision{Arm: 0}, 93); !errors.Is(err, ErrStopped) || l.Arm() != -1 || l.Offer() != -1 {
		t.Errorf("after the end there is arm %d, %v", l.Arm(), err)
	}
	if n, settled, ok := l.Left(); n != 6 || settled != 140 || !ok {
		t.Errorf("%d are left until %d, %v", n, settled, ok)
	}
	closes(111, `{"plays":[{"arm":0,"rounds":2,"release":true}],"release":`, "[{0 1 3}]", given{0, 2, oneStep})
	settle(last, 1, 139, Accepted)
	settle(last, 1, 140, Late)
	if rows, ok := l.Slots(140); !ok || !slices.Equal(rows, []Taken{{0, 3, 4}, {1, 0, 3}}) {
		t.Errorf("the rows of the rest are %v, %v", rows, ok)
	}
	before, batches, spent := l.State(), l.Batches(), l.Ledger().Total().Pure()
	closes(140, `{"rest":[{"arm":0,"rounds":1},{"arm":1,"rounds":2,"gone":1}],"release":{`, "[{0 3 4} {1 0 3}]",
		given{0, 1, oneStep}, given{1, 2, oneStep + oneStep/2})
	if l.Batches() != batches || l.Out() != nil {
		t.Errorf("the policy was asked again: %d batches, %v", l.Batches(), l.Out())
	}
	if got := l.Ledger().Total().Pure(); got != spent {
		t.Errorf("the rest costs: %v, were %v", got, spent)
	}
	if _, err := l.Close(1000); !errors.Is(err, ErrStopped) {
		t.Errorf("after the rest: %v", err)
	}
	settle(last, 1, 141, Late)

	// What is restored before it has the same rest, and after it nothing: no other line follows or takes its place.
	restore := func(s State, lines ...string) (*Live, error) {
		var text [][]byte
		for _, l := range lines {
			text = append(text, []byte(l))
		}
		s.Lines = len(lines)
		return Restore(config(2), listed(text), s)
	}
	if r, err := restore(before, lines[:2]...); err != nil {
		t.Error(err)
	} else {
		r.Finish()
		if rows, ok := r.Slots(140); !ok || !slices.Equal(rows, []Taken{{0, 3, 4}, {1, 0, 3}}) {
			t.Errorf("restored before the rest, its rows are %v, %v", rows, ok)
		}
	}
	if r, err := restore(l.State(), lines...); err != nil {
		t.Error(err)
	} else if _, err := r.Close(1000); !errors.Is(err, ErrStopped) {
		t.Errorf("restored after the rest: %v", err)
	}
	if _, err := restore(before, lines...); !errors.Is(err, ErrState) {
		t.Errorf("a state without the rest: %v", err)
	}
	for was, is := range map[string]string{
		`"rounds":2,"gone":1`:   `"rounds":3,"gone":1`,
		`"rounds":2,"gone"`:     `"rounds":2,"release":true,"gone"`,
		`"gone":1`:              `"gone":-1`,
		`{"arm":0,"rounds":1}`:  `{"arm":0,"rounds":0}`,
		`{"arm":1,`:             `{"arm":2,`,
		`{"arm":0,`:             `{"arm":1,`,
		`{"rest":[`:             `{"plays":[{"arm":0,"rounds":9,"release":true}],"rest":[`,
		`{"arm":0,"rounds":1},`: ``,
	} {
		if _, err := restore(l.State(), lines[0], lines[1], strings.Replace(lines[2], was, is, 1)); !errors.Is(err, ErrState) {
			t.Errorf("with %s in the place of %s: %v", is, was, err)
		}
	}
	for _, more := range []string{`{"change":1}`, lines[2]} {
		if _, err := restore(l.State(), append(slices.Clone(lines), more)...); !errors.Is(err, ErrState) {
			t.Errorf("%s follows the rest: %v", more, err)
		}
	}
}

// What is left of an arm that was taken off is of the rest, and where nothing counts nothing is released.
func TestNothingEmptyIsReleased(t *testing.T) {
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Take: AtLeast, Window: 50, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(c *Commit, err error) string {
		t.Helper()
		if err != nil || c == nil || l.Commit(c) != nil {
			t.Fatal(c, err)
		}
		return string(c.Line)
	}
	var tickets []Ticket
	for arm := 1; arm < 3; arm++ {
		k, err := l.Decide(Decision{Arm: arm}, int64(arm))
		if tickets = append(tickets, k); err != nil {
			t.Fatal(err)
		}
	}
	commit(l.TakeOff(1))
	for _, k := range tickets {
		if s, err := l.Withdraw(k, 3); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
	}
	l.Finish()
	if got := commit(l.Close(52)); got != `{"rest":[{"arm":1,"rounds":0,"gone":1},{"arm":2,"rounds":0,"gone":1}]}`+"\n" {
		t.Errorf("the rest is %s", got)
	}
	if got := l.Ledger().Total(); got.Pure() != 0 {
		t.Errorf("what was not released costs %v", got)
	}
	// and where nothing was decided there is no line
	if l, err = New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 50, Epoch: Epoch{1}}); err != nil {
		t.Fatal(err)
	}
	l.Finish()
	if n, _, ok := l.Left(); n != 0 || ok {
		t.Errorf("%d are left, %v", n, ok)
	}
	if c, err := l.Close(1000); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}
