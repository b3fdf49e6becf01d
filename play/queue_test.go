package play

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// asks is a flexible policy of one arm that asks for so many decisions, batch by batch.
func asks(rounds ...int) policy.Policy {
	s := &script{m: privacy.Laplace{Scale: 1}}
	for _, n := range rounds {
		s.batches = append(s.batches, policy.Batch{Plays: []policy.Play{{Arm: 0, Rounds: n, Release: n > 0}}})
		if n < 0 {
			s.batches[len(s.batches)-1].Plays[0].Rounds = -n // released later
		}
	}
	return flexible{s}
}

// segments are the starts and ends of an arm's segments.
func segments(l *Live, arm int) string {
	var out []string
	for _, g := range l.s.Arms[arm].Segments {
		out = append(out, fmt.Sprintf("%d-%d", g.Start, g.End))
	}
	return strings.Join(out, " ")
}

// Where segments end, by hand: where a batch has enough, where the clock cuts, and where a batch is
// asked for in the middle of one.
func TestSegmentsByHand(t *testing.T) {
	l, err := New(Config{Policy: asks(5, 4, 1, 2, -3, 3, 4), Arms: 2, Window: 160, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	see := func(want string) {
		t.Helper()
		if got := segments(l, 0); got != want {
			t.Errorf("segments %s, must be %s", got, want)
		}
	}
	decide := func(arm int, times ...int64) {
		t.Helper()
		for _, now := range times {
			if _, err := l.Decide(Decision{Arm: arm}, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	closes := func(at int64, want string) {
		t.Helper()
		if due, ok := l.Due(at); !ok || due != at {
			t.Errorf("due at %d, %v, must be at %d", due, ok, at)
		}
		if c, err := l.Close(at - 1); c != nil || err != nil {
			t.Fatalf("closed at %d: %v, %v", at-1, c, err)
		}
		c, err := l.Close(at)
		if err != nil || c == nil || fmt.Sprint(c.Taken) != want {
			t.Fatalf("closed %+v, %v, must be %s", c, err, want)
		}
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(now int64) {
		t.Helper()
		if at, ok := l.Due(now); ok {
			t.Errorf("due at %d", at)
		}
	}
	decide(0, 0, 1, 2, 3)
	waits(9)
	see("0-0")
	decide(0, 4)
	see("0-5") // five were asked for
	decide(0, 5, 6, 14)
	see("0-5 5-0")
	if s, ok := l.Segment(0, 7); !ok || s.Cut != 15 || s.Settles != 174 {
		t.Errorf("segment %+v, %v: the clock cuts a sixteenth of the window after its first decision", s, ok)
	}
	decide(0, 15)
	see("0-5 5-8 8-0")
	decide(1, 20)
	closes(164, "[{0 0 5}]") // and four are asked for, the last of them is number 8
	see("5-8 8-9")
	decide(0, 170, 171)
	see("5-8 8-9 9-0")
	closes(175, "[{0 5 9}]") // one is asked for: of two in an open segment, both are taken
	see("9-11")
	decide(0, 180, 181, 190, 195, 199)
	see("9-11 11-13 13-0")
	closes(331, "[{0 9 11}]") // two are asked for, and are there; the clock has cut the others
	see("11-13 13-16")
	closes(341, "[{0 11 13}]") // three, not to be released now: there are three
	if at, ok := l.Due(342); !ok || at > 342 {
		t.Errorf("a batch that releases nothing is due at %d, %v", at, ok)
	}
	see("13-16")
	closes(-maxTime, "[]") // and three more: one has to come
	see("13-16")
	decide(0, 400, 401, 402)
	see("13-16 16-19")
	closes(562, "[{0 13 19}]")
	see("")
	decide(0, 600)
	waits(609)
	waits(610) // the clock cuts, and one is not four
	see("19-20")
	if got := segments(l, 1); got != "0-0" {
		t.Errorf("the other arm has %s: nobody asked for it, and nobody looked", got)
	}
}

// A state is what a Live can have, or it is refused: each rule at its edge.
func TestStateRules(t *testing.T) {
	base := func() State {
		return State{Terms: Terms{Hi: 1, Take: AtLeast}, Lines: 3,
			Batch: []policy.Play{{Arm: 1, Rounds: 4, Release: true}},
			Arms: []Queue{{}, {Head: 10, Issued: 80, Asked: 4,
				Runs: []Run{{5, Epoch{1}}, {40, Epoch{2}}}, Segments: []Segment{
					{Start: 10, End: 12, Came: Set{3}, Sum: 2 << 20},
					{Start: 12, Came: Set{1, 8}, Cut: -maxTime, Settles: 2*maxTime - 1},
				}}}}
	}
	const good = true
	for name, c := range map[string]struct {
		ok     bool
		change func(s *State, q *Queue)
	}{
		"nothing":            {good, func(*State, *Queue) {}},
		"no arms":            {!good, func(s *State, _ *Queue) { s.Arms, s.Batch = nil, nil }},
		"no take":            {!good, func(s *State, _ *Queue) { s.Take = 0 }},
		"negative lines":     {!good, func(s *State, _ *Queue) { s.Lines = -1 }},
		"arm of the batch":   {!good, func(s *State, _ *Queue) { s.Batch[0].Arm = 2 }},
		"no rounds":          {!good, func(s *State, _ *Queue) { s.Batch[0].Rounds = 0 }},
		"too many rounds":    {!good, func(s *State, _ *Queue) { s.Batch[0].Rounds = 5 }},
		"arm twice":          {!good, func(s *State, _ *Queue) { s.Batch = append(s.Batch, s.Batch[0]) }},
		"off":                {good, func(s *State, q *Queue) { q.Off, q.Asked, s.Batch = true, 0, nil }},
		"off and in batch":   {!good, func(_ *State, q *Queue) { q.Off = true }},
		"off and empty":      {good, func(s *State, _ *Queue) { s.Arms[0].Off = true }},
		"off and asked":      {!good, func(s *State, _ *Queue) { s.Arms[0].Off, s.Arms[0].Asked = true, 1 }},
		"no epoch":           {!good, func(_ *State, q *Queue) { q.Runs = nil }},
		"epoch too late":     {!good, func(_ *State, q *Queue) { q.Runs[0].From = 11 }},
		"epoch in time":      {good, func(_ *State, q *Queue) { q.Runs[0].From = 10 }},
		"epochs equal":       {!good, func(_ *State, q *Queue) { q.Runs[1].From = 5 }},
		"epoch at the end":   {good, func(_ *State, q *Queue) { q.Runs[1].From = 80 }},
		"epoch to come":      {!good, func(_ *State, q *Queue) { q.Runs[1].From = 81 }},
		"a gap":              {!good, func(_ *State, q *Queue) { q.Segments[1].Start = 13 }},
		"a gap at first":     {!good, func(_ *State, q *Queue) { q.Head = 9 }},
		"empty segment":      {!good, func(_ *State, q *Queue) { q.Segments[1].Start, q.Issued = 12, 12 }},
		"open in the middle": {!good, func(_ *State, q *Queue) { q.Segments[0].End = 0 }},
		"end":                {good, func(_ *State, q *Queue) { q.Segments[1].End = 80 }},
		"end to come":        {good, func(_ *State, q *Queue) { q.Segments[1].End = 81 }},
		"end too early":      {!good, func(_ *State, q *Queue) { q.Segments[1].End = 79 }},
		"no segments":        {!good, func(_ *State, q *Queue) { q.Segments = nil }},
		"sum":                {!good, func(_ *State, q *Queue) { q.Segments[0].Sum++ }},
		"negative sum":       {!good, func(_ *State, q *Queue) { q.Segments[0].Sum = -1 }},
		"trailing word":      {!good, func(_ *State, q *Queue) { q.Segments[0].Came = Set{3, 0} }},
		"came of none":       {!good, func(_ *State, q *Queue) { q.Segments[0].Came = Set{4} }},
		"the last came":      {good, func(_ *State, q *Queue) { q.Segments[1].Came = Set{1, 1 << 3} }},
		"one more came":      {!good, func(_ *State, q *Queue) { q.Segments[1].Came = Set{1, 1 << 4} }},
		"a word more came":   {!good, func(_ *State, q *Queue) { q.Segments[1].Came = Set{1, 1, 1} }},
		"time":               {!good, func(_ *State, q *Queue) { q.Segments[1].Cut = -maxTime - 1 }},
		"a later time":       {!good, func(_ *State, q *Queue) { q.Segments[1].Settles = 2*maxTime - 1 + 1 }},
		"issued":             {good, func(_ *State, q *Queue) { q.Issued = maxIssued }},
		"issued too many":    {!good, func(_ *State, q *Queue) { q.Issued = maxIssued + 1 }},
		"issued below":       {!good, func(_ *State, q *Queue) { q.Issued = 9 }},
	} {
		s := base()
		c.change(&s, &s.Arms[min(1, len(s.Arms)-1)])
		if err := s.validate(0); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Driver counts what was released, hands nothing out twice, and may close again after an error.
func TestDriver(t *testing.T) {
	p := &script{m: privacy.Laplace{}, batches: []policy.Batch{
		{Plays: []policy.Play{{Arm: 0, Rounds: 1, Release: true}, {Arm: 1, Rounds: 2}}},
		{Plays: []policy.Play{{Arm: 1, Rounds: 1}}},
		{Plays: []policy.Play{{Arm: 0, Rounds: 1, Release: true}}, Fresh: true},
	}}
	cur, err := release.Real(release.Config{Arms: 2, Mechanism: p.m})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDriver(p, cur)
	if b, err := d.Next(); b == nil || err != nil {
		t.Fatal(b, err)
	}
	if err := d.Close(); err == nil || d.Releases != 0 || d.Released.Len() != 0 {
		t.Errorf("an empty slot was released: %v", err)
	}
	if err := errors.Join(cur.Add(0, 1), cur.Add(1, 1), d.Close()); err != nil || d.Releases != 1 ||
		d.Released.Sum(0) != 1 {
		t.Errorf("%v, %d releases", err, d.Releases)
	}
	if b, err := d.Next(); b == nil || err != nil {
		t.Fatal(b, err)
	}
	if err := d.Close(); err != nil || d.Releases != 1 || len(d.Releasing()) != 0 || d.Released.Len() != 0 {
		t.Errorf("a batch that asks for nothing: %v, %d releases", err, d.Releases)
	}
	if b, err := d.Next(); b == nil || err != nil {
		t.Fatal(b, err)
	}
	if err := errors.Join(cur.Add(0, 0.5), d.Close()); err != nil || d.Released.N(0) != 1 || d.Batches != 3 {
		t.Errorf("%v, %d batches", err, d.Batches)
	}
	p.m, p.batches = privacy.Laplace{Scale: -1}, []policy.Batch{{Fresh: true}, {Plays: nil}}
	if _, err := d.Next(); err == nil {
		t.Error("a curator was built of a mechanism that is none")
	}
	if b, err := d.Next(); b == nil || err != nil {
		t.Error(b, err)
	}
	if b, err := d.Next(); b != nil || err != nil || d.Batches != 5 {
		t.Error(b, err, d.Batches)
	}
}

type vectorScript struct{ batches []policy.Batch }

func (*vectorScript) Mechanism() privacy.Mechanism { return privacy.Sums{Sigma: 1} }
func (p *vectorScript) Next(privacy.ReleasedVector) *policy.Batch {
	if len(p.batches) == 0 {
		return nil
	}
	b := p.batches[0]
	p.batches = p.batches[1:]
	return &b
}

func TestVectorDriver(t *testing.T) {
	cur, err := release.RealActions([][]float64{{1, 0}, {0, 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := VectorDriver{Curator: cur, Policy: &vectorScript{[]policy.Batch{
		{Plays: []policy.Play{{Arm: 0, Rounds: 1}}},
		{Plays: []policy.Play{{Arm: 1, Rounds: 1, Release: true}, {Arm: 0, Rounds: 1}}},
		{Ask: true}, {Fresh: true},
	}}}
	for releases := range 2 {
		b, err := d.Next()
		if err != nil || b == nil || d.Releasing() != (releases == 1) {
			t.Fatal(b, err)
		}
		if err := errors.Join(cur.Add(0, 1), d.Close()); err != nil || d.Releases != releases ||
			d.Released.Len() > 0 != (releases == 1) {
			t.Errorf("%v, %d releases", err, d.Releases)
		}
	}
	for range 2 {
		if _, err := d.Next(); !errors.Is(err, ErrBatch) {
			t.Errorf("a question, or a new start: %v", err)
		}
	}
	if b, err := d.Next(); b != nil || err != nil {
		t.Error(b, err)
	}
}

// Releases by hand where not all decisions count: withdrawn ones, and, where what does not come is
// dropped, those without a reward. A batch waits for more until it has what was asked for.
func TestGoneByHand(t *testing.T) {
	for _, drop := range []bool{false, true} {
		l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Default: 0.5, Window: 10, Cut: 100,
			Take: AtLeast, Drop: drop, Epoch: Epoch{1}})
		if err != nil {
			t.Fatal(err)
		}
		var tickets []Ticket
		for i := range 6 { // two of each arm, which is what is asked
			k, err := l.Decide(Decision{Arm: i % 3}, 0)
			if err != nil {
				t.Fatal(err)
			}
			tickets = append(tickets, k)
		}
		for _, k := range tickets[:4] { // the second of arms 1 and 2 has none
			if s, err := l.Settle(k, 1, 1); s != Accepted || err != nil {
				t.Fatal(s, err)
			}
		}
		withdraw := func(k Ticket, now int64, want Status) {
			t.Helper()
			if s, err := l.Withdraw(k, now); s != want || err != nil {
				t.Errorf("%v, %v, want %v", s, err, want)
			}
		}
		withdraw(tickets[3], 2, Accepted) // of arm 0, whose reward came
		withdraw(tickets[3], 3, Accepted)
		withdraw(Ticket{Arm: 0, Number: 9, Deadline: 10, Epoch: Epoch{1}}, 3, Void)
		withdraw(tickets[0], 10, Late)
		if c, err := l.Close(10); c != nil || err != nil {
			t.Fatalf("arm 0 has one that counts, and two were asked for: %v, %v", c, err)
		}
		if a := l.Arm(); a != 0 {
			t.Errorf("arm %d is played, and arm 0 lacks one", a)
		}
		more := map[bool][]int{false: {0}, true: {0, 1, 2}}[drop]
		for range 2 {
			for _, arm := range more {
				k, err := l.Decide(Decision{Arm: arm}, 10)
				if err != nil {
					t.Fatal(err)
				}
				if s, err := l.Settle(k, 1, 11); s != Accepted || err != nil {
					t.Fatal(s, err)
				}
			}
			if !drop {
				break
			}
		}
		c, err := l.Close(20)
		if err != nil || c == nil {
			t.Fatal(c, err)
		}
		want := map[bool]string{
			false: `"rounds":2,"release":true,"gone":1},{"arm":1,"rounds":2,"release":true},{"arm":2,"rounds":2,"release":true}]`,
			true: `"rounds":2,"release":true,"gone":1},{"arm":1,"rounds":2,"release":true,"gone":1},` +
				`{"arm":2,"rounds":2,"release":true,"gone":1}]`,
		}[drop]
		if !strings.Contains(string(c.Line), want) {
			t.Errorf("drop %v: %s, want %s", drop, c.Line, want)
		}
		if err := l.Commit(c); err != nil {
			t.Error(err)
		}
	}
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 10, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Withdraw(Ticket{}, 0); !errors.Is(err, ErrExact) {
		t.Errorf("exactly: %v", err)
	}
	if _, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 10, Drop: true,
		Epoch: Epoch{1}}); err == nil || !strings.Contains(err.Error(), "cannot be dropped") {
		t.Errorf("exactly, and dropping: %v", err)
	}
}

// What is cut from a sum was withdrawn, and the sum of what counts is between: all that three decisions
// of two segments can report, withdrawn or not. Neighbours, who differ in one report, also a withdrawn
// one's, have the same count and sums that are a reward of 1 apart at most, whatever the others report.
func TestCutIsOfWithdrawnAlone(t *testing.T) {
	const units, none, says = 3, 0, 4 // nothing, 0, ½ and 1
	reward := [says]int64{0, 0, oneStep / 2, oneStep}
	type said [units]struct {
		report int
		gone   bool
	}
	type taken struct {
		n   int
		sum int64
	}
	play := func(all said, drop bool) (out taken, counted, whole int64) {
		q := Queue{Issued: units, Segments: []Segment{{End: 1}, {Start: 1, End: units}}}
		for i, u := range all {
			s := q.find(i)
			if u.report != none {
				s.Came.add(i - s.Start)
				s.Sum += reward[u.report]
			}
			if u.gone {
				s.Gone.add(i - s.Start)
				q.lose(s, s.lost+1)
			}
			x, counts := reward[u.report], !u.gone && (u.report != none || !drop)
			if counts && u.report == none {
				x = oneStep / 2
			}
			if whole += x; counts {
				counted += x
			}
		}
		if drop {
			q.lapse(0, false)
		}
		n, sums := q.take(2, []int64{oneStep / 2})
		return taken{n, sums[0]}, counted, whole
	}
	broken := map[string]func(n int, counted, whole int64) int64{
		"":         nil,
		"uncut":    func(_ int, _, whole int64) int64 { return whole },
		"scaled":   func(n int, _, whole int64) int64 { return whole * int64(n) / units },
		"cut to 0": func(n int, _, whole int64) int64 { return whole % (int64(n)*oneStep + 1) },
	}
	for name, fault := range broken {
		wrong, cut := 0, 0
		run := func(all said, drop bool) taken {
			out, counted, whole := play(all, drop)
			if fault != nil {
				out.sum = fault(out.n, counted, whole)
			}
			if out.sum < counted || out.sum > whole || out.sum > int64(out.n)*oneStep {
				wrong++
			}
			if out.sum < whole {
				cut++
			}
			return out
		}
		for _, drop := range []bool{false, true} {
			for code := range 8 * 8 * 8 {
				var all said
				for i := range all {
					all[i].report, all[i].gone = code>>(3*i)&3, code>>(3*i+2)&1 == 1
				}
				here := run(all, drop)
				for i := range all {
					for report := range says {
						there := all
						there[i].report = report
						if drop && (report == none) != (all[i].report == none) {
							continue // who reports is told
						}
						if o := run(there, drop); o.n != here.n || max(o.sum-here.sum, here.sum-o.sum) > oneStep {
							wrong++
						}
					}
				}
			}
		}
		if (wrong > 0) != (fault != nil) {
			t.Errorf("%q: %d are wrong", name, wrong)
		}
		if fault == nil && cut == 0 {
			t.Error("nothing was cut: nothing was tested")
		}
	}
}
