package play

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// A report is what one unit does with its ticket: when, after its decision, and what it says.
type report struct {
	after  int64
	reward float64
}

// A traffic is who comes to a world: how one of them is decided.
type traffic struct {
	cfg    Config
	unit   int // whose reward is looked for
	stop   int // after how many decisions they end, if they do
	grow   int // after how many there is an arm more, if there is
	decide func(l *Live, src *rand.Rand, now int64) (what any, t Ticket, err error)
}

// toArms are units who are given an arm, some by a floor.
func toArms(t *testing.T, take Take, drop bool, unit int) func() traffic {
	return func() traffic {
		return traffic{Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Take: take, Drop: drop}, unit, 0, 0,
			func(l *Live, src *rand.Rand, now int64) (any, Ticket, error) {
				arm := l.Arm()
				if src.IntN(5) == 0 {
					arm = src.IntN(len(l.s.Arms))
				}
				k, err := l.Decide(Decision{Arm: arm, Cell: l.s.Arms[arm].Issued / 2 % l.cfg.Cells.each()}, now)
				return arm, k, err
			}}
	}
}

// inCells are units in three cells.
func inCells(of func() traffic) func() traffic {
	return func() traffic {
		out := of()
		out.cfg.Cells = Cells{Count: 3, Least: 2}
		return out
	}
}

// toJointly are units who are given an arm by coins, for joint batches.
func toJointly() traffic {
	return traffic{Config{Policy: &jointly{}, Arms: 3}, 40, 0, 0, func(l *Live, src *rand.Rand, now int64) (any, Ticket, error) {
		arm := min(2, max(0, src.IntN(10)-5)/3+src.IntN(2))
		k, err := l.Decide(Decision{Arm: arm, Cell: l.s.Arms[arm].Issued / 2 % l.cfg.Cells.each()}, now)
		return arm, k, err
	}}
}

// toContexts are units with a decision set each.
func toContexts() traffic {
	cfg := flatConfig()
	cfg.Contexts = flatPolicy()
	return traffic{cfg, 40, 0, 0, func(l *Live, src *rand.Rand, now int64) (any, Ticket, error) {
		actions := decisionSet(src, 5)
		best, weight := l.Best(actions), 5.0
		if src.IntN(5) == 0 {
			best, weight = src.IntN(5), 0
		}
		k, err := l.Decide(Decision{Vector: actions[best*flatDim:][:flatDim],
			Weights: []float64{weight, 2 * weight}}, now)
		return best, k, err
	}}
}

// stopped is a traffic whose decisions end while those around the unit's wait.
func stopped(of func() traffic, after int) func() traffic {
	return func() traffic {
		out := of()
		out.stop = after
		return out
	}
}

// grown is a traffic in which there is an arm more, while the unit's decision waits.
func grown(of func() traffic, after int) func() traffic {
	return func() traffic {
		out := of()
		out.grow = after
		return out
	}
}

// early is when the batch, what is ahead, or the rest is due if it is when all its rewards are in: now,
// if they are not.
func early(l *Live, now int64) int64 {
	at := now
	full := func(rows map[int]int) { // so many segments of these arms
		settles := now
		for a, k := range rows {
			q := &l.s.Arms[a]
			for _, s := range q.Segments[:k] {
				if settles = max(settles, s.Settles); s.Came.Len() < min(s.until(), q.Issued)-s.Start {
					return
				}
			}
		}
		at = max(at, settles)
	}
	batch, rest := map[int]int{}, map[int]int{}
	for _, p := range l.side.out() {
		batch[p.Arm], _, _ = l.enough(&l.s.Arms[p.Arm])
	}
	for a := range l.s.Arms {
		q := &l.s.Arms[a]
		rest[a] = len(q.Segments)
		if n := l.want(a, q.Head, l.s.Batch); n > 0 && !l.ending {
			if k, _, ok := q.enough(n); ok {
				full(map[int]int{a: k})
			}
		}
	}
	if _, ok := l.due(now); ok {
		full(batch)
	} else if l.ending {
		full(rest)
	}
	return at
}

// A twin is a way in which a world tells somebody what they must not know.
type twin int

const (
	honest        twin = iota
	countsTwice        // a reward that comes twice is answered otherwise
	closesEarly        // a batch closes when all its rewards are in
	heedsRewards       // who has had a reward cannot be withdrawn
	growsByReward      // an arm is added as soon as its own has come
)

// world plays a fixed traffic in which one unit, the one of a decision, reports as it will, and
// writes down all that anybody sees until its reward is released, in a batch or in the rest: arms, tickets, the
// answers to everybody, its own ticket's to whoever tries it, what is due, each line, the
// public part of the state. With withdrawn, somebody says in the middle that it never met it.
func world(t *testing.T, of func() traffic, as twin, withdrawn bool, hers []report) string {
	t.Helper()
	s, units := noise.NewFast(1, 2), of()
	cfg, unit := units.cfg, units.unit
	cfg.Window, cfg.Epoch = 50, Epoch{1}
	cfg.Curator = func(c release.Config) (release.Curator, error) { return release.Simulated(c, &s) }
	cfg.Vectors = func(c release.FeatureConfig) (release.FeatureCurator, error) {
		return release.SimulatedFeatures(c, &s)
	}
	l, err := New(cfg)
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
		if as == countsTwice && came { // this twin says so
			status = Late
		}
		if who != "" {
			fmt.Fprintln(&out, who, k, status, err)
		}
	}
	for now := int64(0); now < 2000; now++ {
		if units.stop > 0 && len(tickets) == units.stop {
			l.Finish()
		}
		if src.IntN(3) > 0 && !l.ending {
			what, k, err := units.decide(l, src, now)
			fmt.Fprintln(&out, now, "decides", what, k, err)
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
				(as != heedsRewards || s == nil || !s.Came.Has(mine.Number-s.Start)) {
				status, err := l.Withdraw(mine, now)
				fmt.Fprintln(&out, "withdrawn", status, err)
			}
			// somebody who knows its ticket, when it has had its say
			if src.IntN(3) == 0 && now >= mine.Deadline-20 {
				settle("observer", mine, 0, now)
			}
		}
		s := l.s.Arms[mine.Arm].find(mine.Number)
		heard := as == growsByReward && len(tickets) > unit && s != nil && s.Came.Has(mine.Number-s.Start)
		if units.grow > 0 && len(l.s.Arms) == cfg.Arms && (heard || len(tickets) == units.grow) {
			c, err := l.AddArm(0, []byte(`{"name":"another"}`))
			fmt.Fprintln(&out, now, "added", l.Arm(), err)
			if err := l.Commit(c); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s", c.Line)
		}
		at, ok := l.Due(now)
		fmt.Fprintln(&out, "due", at, ok, l.Arm(), l.Batches(), l.Stopped(), l.Rules())
		when := now
		if as == closesEarly {
			when = early(l, now)
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
			fmt.Fprintln(&out, "released at", now, c.Taken, strings.Count(string(c.Line), `"ahead"`), "ahead", l.rested)
			return out.String()
		}
		fmt.Fprintf(&out, "%s", c.Line)
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
		public := l.State()
		for a := range public.Arms {
			for i := range public.Arms[a].Segments {
				g := &public.Arms[a].Segments[i]
				g.Sum, g.More, g.Came = 0, nil, nil
			}
		}
		fmt.Fprintf(&out, "%+v\n", public)
	}
	t.Fatal("its reward was never released")
	return ""
}

// Two runs that differ in one unit's reward, or in whether, how often or when it reports, are the
// same to everybody until its reward is released.
func TestTwoWorlds(t *testing.T) {
	worlds := func(lo, hi float64) map[string][]report {
		return map[string][]report{
			"lowest": {{3, lo}}, "highest": {{3, hi}}, "later": {{28, hi}}, "twice": {{3, 1}, {4, 1}},
			"two rewards": {{3, 0}, {9, 1}}, "late": {{50, 1}}, "none": {{7, math.NaN()}},
			"out of range": {{1, 1e300}}, "thrice and late": {{1, 1}, {2, 1}, {49, 0}, {70, 1}},
		}
	}
	for name, c := range map[string]struct {
		of        func() traffic
		withdrawn bool
		lo, hi    float64
		lines     int // that somebody sees before
	}{
		"at least":            {toArms(t, AtLeast, false, 40), false, 0, 1, 1},
		"at least, withdrawn": {toArms(t, AtLeast, false, 40), true, 0, 1, 1},
		"exactly":             {toArms(t, Exactly, false, 40), false, 0, 1, 1},
		"jointly":             {toJointly, false, 0, 1, 3},
		"jointly, withdrawn":  {toJointly, true, 0, 1, 3},
		"contexts":            {toContexts, false, -1, 3, 3},
		// whose reward is released ahead of a batch
		"at least, ahead":            {toArms(t, AtLeast, false, 28), false, 0, 1, 9},
		"at least, withdrawn, ahead": {toArms(t, AtLeast, false, 60), true, 0, 1, 9},
		"exactly, ahead":             {toArms(t, Exactly, false, 41), false, 0, 1, 9},

		"cells":                     {inCells(toArms(t, AtLeast, false, 36)), false, 0, 1, 1},
		"cells, exactly":            {inCells(toArms(t, Exactly, false, 36)), false, 0, 1, 1},
		"cells, jointly, withdrawn": {inCells(toJointly), true, 0, 1, 3},
		"cells, ahead":              {inCells(toArms(t, AtLeast, false, 28)), false, 0, 1, 9},

		"an arm more, ahead":                   {grown(toArms(t, AtLeast, false, 40), 44), false, 0, 1, 1},
		"an arm more, exactly":                 {grown(toArms(t, Exactly, false, 40), 44), false, 0, 1, 1},
		"an arm more, cells, withdrawn, ahead": {grown(inCells(toArms(t, AtLeast, false, 40)), 44), true, 0, 1, 1},

		"stopped, cells":               {stopped(inCells(toArms(t, AtLeast, false, 41)), 58), false, 0, 1, 1},
		"stopped, at least":            {stopped(toArms(t, AtLeast, false, 41), 58), false, 0, 1, 1},
		"stopped, at least, withdrawn": {stopped(toArms(t, AtLeast, false, 41), 58), true, 0, 1, 1},
		"stopped, exactly":             {stopped(toArms(t, Exactly, false, 41), 58), false, 0, 1, 1},
		"stopped, jointly":             {stopped(toJointly, 41), false, 0, 1, 1},
	} {
		silent := world(t, c.of, honest, c.withdrawn, nil)
		if n := strings.Count(silent, "observer"); n < 3 {
			t.Errorf("%s: the observer asked %d times", name, n)
		}
		if strings.HasSuffix(name, "ahead") != strings.Contains(silent, " 1 ahead") {
			t.Errorf("%s: it is not", name)
		}
		if strings.Contains(silent, `"add":3`) != strings.HasPrefix(name, "an arm more") {
			t.Errorf("%s: it is not", name)
		}
		if n := strings.Count(silent, `"release":{`); n < c.lines {
			t.Errorf("%s: there were %d releases before", name, n)
		}
		if rest := strings.HasSuffix(silent, "true\n"); rest != strings.HasPrefix(name, "stopped") {
			t.Errorf("%s: that its reward is in the rest is %v", name, rest)
		}
		for what, hers := range worlds(c.lo, c.hi) {
			if got := world(t, c.of, honest, c.withdrawn, hers); got != silent {
				t.Errorf("%s, %s: somebody sees it:\n%s", name, what, firstDifference(got, silent))
			}
		}
		for _, as := range []twin{countsTwice, closesEarly, heedsRewards, growsByReward} {
			grows := strings.HasPrefix(name, "an arm more") // and has withdrawn the batch that would close early
			if as == heedsRewards && !c.withdrawn || grows == (as == closesEarly) && (grows || as == growsByReward) {
				continue
			}
			base, same := world(t, c.of, as, c.withdrawn, nil), true
			for _, hers := range worlds(c.lo, c.hi) {
				same = same && world(t, c.of, as, c.withdrawn, hers) == base
			}
			if same {
				t.Errorf("%s: twin %d is not caught", name, as)
			}
		}
	}
	// Where what does not come is dropped, whether it came is no secret, and all else is one.
	said := world(t, toArms(t, AtLeast, true, 40), honest, false, worlds(0, 1)["lowest"])
	for _, name := range []string{"highest", "later", "twice", "two rewards", "out of range"} {
		if got := world(t, toArms(t, AtLeast, true, 40), honest, false, worlds(0, 1)[name]); got != said {
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
