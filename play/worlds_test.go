package play

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// A report is what one unit does with her ticket: when, after her decision, and what she says.
type report struct {
	after  int64
	reward float64
}

// world plays a fixed traffic in which one unit, the one of decision 40, reports as she will,
// and writes down all that anybody sees until her reward is released: arms, tickets, the
// answers to everybody, her own ticket's to whoever tries it, what is due, each line, the
// public part of the state. With withdrawn, somebody says in the middle that she never met it.
func world(t *testing.T, twin fault, take Take, drop, withdrawn bool, hers []report) string {
	t.Helper()
	const unit = 40
	s := noise.NewFast(1, 2)
	l, err := New(Config{
		Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 50, Take: take, Drop: drop, Epoch: Epoch{1},
		Curator: func(c release.Config) (release.Curator, error) { return release.Simulated(c, &s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	src := rand.New(rand.NewPCG(5, 6)) // of the traffic
	var tickets []Ticket
	var mine Ticket
	settle := func(who string, k Ticket, reward float64, now int64) {
		_, segment := l.Segment(k.Arm, k.Number)
		came := segment && l.s.Arms[k.Arm].find(k.Number).Came.Has(k.Number-l.s.Arms[k.Arm].find(k.Number).Start)
		status, err := l.Settle(k, reward, now)
		if twin == countsTwice && came { // this twin says so
			status = Late
		}
		if who != "" {
			fmt.Fprintln(&out, who, k, status, err)
		}
	}
	for now := int64(0); now < 2000; now++ {
		if src.IntN(3) > 0 {
			arm := l.Arm()
			if src.IntN(5) == 0 {
				arm = src.IntN(3)
			}
			k, err := l.Decide(arm, now)
			fmt.Fprintln(&out, now, "decides", k, err)
			if tickets = append(tickets, k); len(tickets) == unit+1 {
				mine = k
			}
		}
		for i, k := range tickets[max(0, len(tickets)-60):] {
			if src.IntN(4) == 0 && k != mine {
				settle("another", k, float64(i%2), now)
			}
		}
		if len(tickets) > unit {
			for _, r := range hers {
				if now == mine.Deadline-50+r.after {
					settle("", mine, r.reward, now)
				}
			}
			if s := l.s.Arms[mine.Arm].find(mine.Number); withdrawn && now == mine.Deadline-25 &&
				(twin != heedsRewards || s == nil || !s.Came.Has(mine.Number-s.Start)) {
				status, err := l.Withdraw(mine, now)
				fmt.Fprintln(&out, "withdrawn", status, err)
			}
			// somebody who knows her ticket, when she has had her say
			if src.IntN(3) == 0 && now >= mine.Deadline-20 {
				settle("observer", mine, 0, now)
			}
		}
		at, ok := l.Due(now)
		fmt.Fprintln(&out, "due", at, ok, l.Arm(), l.Batches(), l.Stopped())
		when := now
		if twin == closesEarly && ok {
			came := true
			for _, p := range l.s.Batch {
				k, _, _ := l.s.Arms[p.Arm].enough()
				for _, g := range l.s.Arms[p.Arm].Segments[:k] {
					came = came && g.Came.Len() == g.End-g.Start
				}
			}
			if came {
				when = at
			}
		}
		c, err := l.Close(when)
		if c == nil {
			fmt.Fprintln(&out, "open", err)
			continue
		}
		hit := slices.ContainsFunc(c.Taken, func(r Taken) bool {
			return r.Arm == mine.Arm && mine.Number >= r.Start && mine.Number < r.End
		})
		if hit && len(tickets) > unit {
			fmt.Fprintln(&out, "released at", now, c.Taken)
			return out.String()
		}
		fmt.Fprintf(&out, "%s", c.Line)
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
		public := l.State()
		for a := range public.Arms {
			for i := range public.Arms[a].Segments {
				public.Arms[a].Segments[i].Sum, public.Arms[a].Segments[i].Came = 0, nil
			}
		}
		fmt.Fprintf(&out, "%+v\n", public)
	}
	t.Fatal("her reward was never released")
	return ""
}

// Two runs that differ in one unit's reward, or in whether, how often or when she reports, are the
// same to everybody until her reward is released.
func TestTwoWorlds(t *testing.T) {
	worlds := map[string][]report{
		"0": {{3, 0}}, "1": {{3, 1}}, "later": {{28, 1}}, "twice": {{3, 1}, {4, 1}},
		"two rewards": {{3, 0}, {9, 1}}, "late": {{50, 1}},
		"out of range": {{1, 1e300}}, "thrice and late": {{1, 1}, {2, 1}, {49, 0}, {70, 1}},
	}
	for _, c := range []struct {
		take      Take
		withdrawn bool
	}{{AtLeast, false}, {AtLeast, true}, {Exactly, false}} {
		silent := world(t, none, c.take, false, c.withdrawn, nil)
		if n := bytes.Count([]byte(silent), []byte("observer")); n < 3 {
			t.Errorf("the observer asked %d times", n)
		}
		for name, hers := range worlds {
			if got := world(t, none, c.take, false, c.withdrawn, hers); got != silent {
				t.Errorf("%v: %s: somebody sees it:\n%s", c, name, firstDifference(got, silent))
			}
		}
		for _, twin := range []fault{countsTwice, closesEarly, heedsRewards} {
			if twin == heedsRewards && !c.withdrawn {
				continue
			}
			same := true
			base := world(t, twin, c.take, false, c.withdrawn, nil)
			for _, hers := range worlds {
				same = same && world(t, twin, c.take, false, c.withdrawn, hers) == base
			}
			if same {
				t.Errorf("%v: twin %d is not caught", c, twin)
			}
		}
	}
	// Where what does not come is dropped, whether it came is no secret, and all else is one.
	said := world(t, none, AtLeast, true, false, worlds["0"])
	for _, name := range []string{"1", "later", "twice", "two rewards", "out of range"} {
		if got := world(t, none, AtLeast, true, false, worlds[name]); got != said {
			t.Errorf("dropping: %s: somebody sees it:\n%s", name, firstDifference(got, said))
		}
	}
}

func firstDifference(a, b string) string {
	la, lb := bytes.Split([]byte(a), []byte("\n")), bytes.Split([]byte(b), []byte("\n"))
	for i := range min(len(la), len(lb)) {
		if !bytes.Equal(la[i], lb[i]) {
			return fmt.Sprintf("%d: %s\n%d: %s", i, la[i], i, lb[i])
		}
	}
	return "one ends before the other"
}
