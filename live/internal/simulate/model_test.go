package simulate

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// An invariant is what holds of the service whatever happens to it. The list of docs/operations.md is made of these.
type invariant string

const (
	counts     invariant = "What was acknowledged counts, once."
	twice      invariant = "Nothing counts twice."
	stays      invariant = "A line of a transcript never changes."
	once       invariant = "A slot's noise is drawn once."
	inTime     invariant = "A reward is taken until its deadline, and not after it."
	blind      invariant = "No release's time moves with a reward."
	superseded invariant = "A superseded process answers nothing that counts."
	stayVoid   invariant = "A void decision stays void."
	budgets    invariant = "No budget is passed."
	replays    invariant = "A replay gives the same state."
	bounded    invariant = "What was released is gone from the store, so that memory is bounded."
	announced  invariant = "Whatever was destroyed was announced."
	sticky     invariant = "Who asks again is answered the same."
	goesOn     invariant = "When a fault is over, the service goes on."
	guarded    invariant = "An arm is paused when what was released says so, and not before."
)

var invariants = []invariant{counts, twice, stays, once, inTime, blind, superseded, stayVoid, budgets, replays,
	bounded, announced, sticky, goesOn, guarded}

// A violation is what breaks one.
type violation struct {
	of   invariant
	what string
}

func (v *violation) Error() string { return fmt.Sprintf("%s %s", v.of, v.what) }

func broken(of invariant, format string, args ...any) *violation {
	return &violation{of, fmt.Sprintf(format, args...)}
}

// A key names a decision for ever: its number may be another's in another epoch.
type key struct {
	arm, number int32
	epoch       uint64
}

// read is what a token says of its decision. That of an offer does not have the decision's number.
func read(token string) (k key, deadline int64, offer bool) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) < 43 {
		return key{}, 0, false
	}
	low := func(b []byte) (x int64) {
		for _, c := range b {
			x = x<<8 | int64(c)
		}
		return x
	}
	return key{int32(binary.BigEndian.Uint16(b[8:])), int32(low(b[10:15])), binary.BigEndian.Uint64(b)},
		low(b[15:21]), len(b) > 43
}

// What is known of something that was sent.
type known uint8

const (
	unsent known = iota
	unsure       // it is on its way, or its answer was lost
	acked
)

// held is what is known of a decision, by whoever was given it.
type held struct {
	arm               int32
	cell              int32 // the number of its cell from 1 on, 0 if that is not known
	index             int32 // its place among all: its reward follows from it
	unit              int32
	person            int32 // where those of a person are counted
	deadline          int64
	vector            []float64 // with contexts
	reward, gone      known
	late, wasVoid, by bool // by a process that was superseded
	sealed            bool // its unit was erased before it had reported, where reports add up
}

// A book is what is known of an experiment from outside and from what is durable.
type book struct {
	id            int64
	x             *serve.Experiment
	mapper        *feature.Mapper
	bins          map[string]int // of a histogram, by the vectors' text
	clips         []release.Clip // of rewards, then of each metric
	missing       []int64
	each          privacy.Budget
	most          int // assignments of a unit
	cells         play.Cells
	exact         bool
	of            map[key]*held
	runs          [][]play.Run
	heads, issued []int
	next          int          // of contexts, the number of the decision after the last
	off, leaves   map[int]bool // that are taken off, and that an operator would have so
	safe          safety
	ahead         map[int]int // by arm, rows that were released and are to come in a batch
	lines         [][]byte
	seen          int           // lines that were shown
	counted       map[int32]int // of a unit
	persons       map[int32]int
	given         map[int32]int   // to a person, whatever became of it
	unheard       map[string]bool // units that may not have heard what they were given
	last          map[string]*given
	ticks         []int64 // that it has had
	state         serve.State
	coming        int      // changes that come with the next ticks
	asked         int64    // when the last decision was made
	closed        int64    // the time of its last line
	rested        bool     // what was left is released
	adds          int      // arms that an operator has asked for
	joining       []string // that were promised
	ended, over   bool     // its last line is written; nothing counts any more
	shown, overAt int64    // when it released last; when it was over
}

func newBook(x *serve.Experiment) (*book, error) {
	b := &book{x: x, of: map[key]*held{}, off: map[int]bool{}, leaves: map[int]bool{}, ahead: map[int]int{},
		counted: map[int32]int{}, persons: map[int32]int{}, given: map[int32]int{}, last: map[string]*given{},
		unheard: map[string]bool{}, most: x.Assignments(), exact: x.Exposure != decl.ExposeActivate && x.Trust == ""}
	if x.Contextual != nil {
		var err error
		if b.mapper, err = x.Mapper(); err != nil {
			return nil, err
		}
		if b.exact = !x.Contextual.Joint() || x.Policy.Policy != "lin-ucb"; x.Counted() {
			if err := b.rows(); err != nil {
				return nil, err
			}
		}
	}
	cells, err := x.PlayCells()
	if err != nil {
		return nil, err
	}
	b.cells = cells
	arms := max(1, len(x.Arms))
	b.runs, b.heads, b.issued = make([][]play.Run, arms), make([]int, arms), make([]int, arms)
	if b.each, err = x.EachAssignment(); err != nil {
		return nil, err
	}
	add := func(lo, hi, missing float64) error {
		c, err := release.NewClip(lo, hi)
		b.clips, b.missing = append(b.clips, c), append(b.missing, c.Steps(missing))
		return err
	}
	if err := add(x.Lo, x.Hi, x.Default); err != nil {
		return nil, err
	}
	metrics, err := x.PlayMetrics()
	if err != nil {
		return nil, err
	}
	for _, m := range metrics {
		if err := add(m.Lo, m.Hi, m.Default); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// rows numbers the vectors that a histogram has bins of.
func (b *book) rows() error {
	flat, err := b.mapper.Rows()
	b.bins = map[string]int{}
	for len(flat) > 0 {
		b.bins[fmt.Sprint(flat[:b.mapper.Dim()])] = len(b.bins)
		flat = flat[b.mapper.Dim():]
	}
	return err
}

// record is what a decision adds to a release, in rewards from −1 to 1: its vector times that, or of a histogram what
// was lost and won of its vector's, or of a Gram matrix all products with the reward below the vector.
func (b *book) record(v []float64, reward float64) (out []float64) {
	switch {
	case b.bins != nil:
		out = make([]float64, 2*len(b.bins))
		i := b.bins[fmt.Sprint(v)]
		out[2*i], out[2*i+1] = (1-reward)/2, (1+reward)/2
	case b.x.Contextual.Joint():
		all := append(slices.Clone(v), reward)
		for i, x := range all {
			for _, y := range all[i:] {
				out = append(out, x*y)
			}
		}
	default:
		for _, x := range v {
			out = append(out, x*reward)
		}
	}
	return out
}

// epoch is that of the decision which has a number for good; 0 if none has.
func epoch(runs []play.Run, number int) (out uint64, from int) {
	from = -1
	for _, r := range runs {
		if r.From <= number && r.From >= from {
			out, from = binary.BigEndian.Uint64(r.Epoch[:]), r.From
		}
	}
	return out, from
}

// durable says that a decision is one that has its number for good.
func (b *book) durable(k key) bool {
	e, _ := epoch(b.runs[k.arm], int(k.number))
	return e == k.epoch && int(k.number) < b.issued[k.arm]
}

// write holds what has become durable of the experiment against what is known.
func (w *world) write(b *book, c store.Write, now int64) error {
	was := b.state
	early := func() error {
		if w.clock(w.disk.latest.Load()) < b.x.End.UnixMilli() {
			return broken(inTime, "%s is ended by its date, before it", b.x.Name)
		}
		return nil
	}
	if c.Record != nil {
		var r struct {
			State   serve.State
			Stop    struct{ Why string }
			Reason  string
			Off     []int
			Changes []json.RawMessage
		}
		if err := json.Unmarshal(c.Record.Data, &r); err != nil {
			return err
		}
		if r.State == serve.Stopping && b.state != r.State {
			b.asked = max(b.asked, now) // no release of the rest is due before
			if err := early(); r.Stop.Why == "date" && err != nil {
				return err
			}
		}
		b.state, b.coming = r.State, len(r.Off)+len(r.Changes)
		if !b.over {
			b.overAt = now
		}
		if b.over = !slices.Contains([]serve.State{serve.Draft, serve.Running, serve.Paused, serve.Stopping}, r.State); r.State ==
			serve.Failed && !w.wentBack {
			return broken(goesOn, "%s has failed: %s", b.x.Name, r.Reason)
		}
	}
	if err := w.joins(b, c); err != nil {
		return err
	}
	var runs [][]play.Run
	for a := range b.runs {
		runs = append(runs, slices.Clone(b.runs[a]))
	}
	for _, a := range c.Arms {
		runs[a.Arm] = append(runs[a.Arm], a.Runs...)
	}
	if len(c.Lines) > 0 && c.Number != len(b.lines) {
		return broken(stays, "line %d of %s is written, after line %d", c.Number, b.x.Name, len(b.lines)-1)
	}
	rows := c.Taken
	for _, text := range c.Lines {
		b.lines = append(b.lines, text)
		var line shown
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		// one that was stopping may be ended by a process whose clock is behind
		if b.ended = b.ended || line.End != nil; line.End != nil && *line.End == "date" && was != serve.Stopping {
			if err := early(); err != nil {
				return err
			}
		}
		before := b.closed
		if at, err := time.Parse(time.RFC3339, line.At); err == nil {
			b.closed = at.UnixMilli()
		}
		if err := b.safe.follows(b, &line); err != nil {
			return err
		}
		if line.Off != nil {
			b.off[*line.Off] = true // and what it has waits for the rest
			delete(b.ahead, *line.Off)
		}
		if left := b.left(); line.End != nil && line.Gone < left { // there may be some that were not durable
			return broken(announced, "%d decisions of %s are destroyed, and its last line says %d", left, b.x.Name, line.Gone)
		}
		if line.Rest != nil {
			rest, err := w.theRest(b, &line, rows, runs)
			if err != nil {
				return err
			}
			rows = rest
		}
		arms, ok := line.arms(b.ahead)
		if ok && line.N == nil {
			if err := b.safe.add(b, &line, arms); err != nil {
				return err
			}
		}
		if !ok {
			return broken(twice, "line %d of %s is given what was ahead in another order: %s", len(b.lines)-1, b.x.Name,
				text)
		}
		for _, p := range line.Plays { // of a joint batch, an arm of which nothing counts
			i := slices.IndexFunc(rows, func(row play.Taken) bool { return row.Arm == p.Arm })
			if p.Release || p.Gone == 0 || i < 0 {
				continue
			}
			if err := b.noneCounts(rows[i], runs); err != nil {
				return err
			}
			rows = slices.Concat(rows[:i], rows[i+1:])
		}
		if line.Release == nil || string(line.Release.N) == "" {
			continue
		}
		k, slots := len(arms), 0
		for _, r := range arms {
			slots += r.slots()
		}
		if len(rows) < k || line.N == nil && slots != len(line.Release.Sum) ||
			!slices.EqualFunc(rows[:k], arms, func(row play.Taken, r shownRow) bool { return row.Arm == r.Arm }) {
			return broken(counts, "line %d of %s releases arms %v, and %v were taken", len(b.lines)-1, b.x.Name, arms, rows)
		}
		if err := cmp.Or(w.onTick(b, now), w.withinCap(b, now)); err != nil {
			return err
		}
		due, err := w.released(b, &line, rows[:k], arms, runs)
		if err == nil {
			err = w.atOnce(b, now, due, before)
		}
		if err != nil {
			return err
		}
		rows = rows[k:]
	}
	if len(rows) > 0 {
		return broken(announced, "%v of %s were taken, and no line says so", rows, b.x.Name)
	}
	if left := b.left(); b.rested && left > 0 && !b.ended {
		return broken(announced, "%d decisions of %s are not in its rest", left, b.x.Name)
	}
	if c.DropSums && !b.ended && b.state != serve.Failed {
		return broken(announced, "all rewards of %s that were not released are destroyed, and no line says so",
			b.x.Name)
	}
	for _, a := range c.Arms {
		if h := b.heads[a.Arm]; a.Head != h && !b.over && (h >= 0 || a.Head > a.Issued) {
			return broken(announced, "arm %d of %s begins at %d, and %d were released", a.Arm, b.x.Name, a.Head, h)
		}
		b.runs[a.Arm], b.issued[a.Arm] = slices.Clone(a.Runs), a.Issued
	}
	return nil
}

// joins has the arms that lines add, and holds that none is written before its line.
func (w *world) joins(b *book, c store.Write) error {
	for _, text := range c.Lines {
		var line shown
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		if line.Add == nil {
			continue
		}
		if *line.Add != len(b.runs) || len(line.Change.Add) != 1 {
			return broken(announced, "%s has %d arms, and its line is %s", b.x.Name, len(b.runs), text)
		}
		name := line.Change.Add[0].Name
		b.runs, b.heads, b.issued = append(b.runs, nil), append(b.heads, 0), append(b.issued, 0)
		b.x.Arms, w.arms[b.x.Name] = append(slices.Clip(b.x.Arms), decl.Arm{Name: name}), append(w.arms[b.x.Name], name)
	}
	for _, a := range c.Arms {
		if a.Arm >= len(b.runs) {
			return broken(announced, "%s: arm %d has %d decisions, and no line adds it", b.x.Name, a.Arm, a.Issued)
		}
	}
	return nil
}

// left is how many durable decisions are in no release.
func (b *book) left() (n int) {
	for a := range b.heads {
		n += max(0, b.issued[a]-b.heads[a])
	}
	return n
}

// theRest holds the line of what was left against the rows that it took, and gives those that it has released.
func (w *world) theRest(b *book, line *shown, rows []play.Taken, runs [][]play.Run) (out []play.Taken, err error) {
	if b.rested || b.state != serve.Stopping || len(rows) != len(line.Rest) {
		return nil, broken(twice, "%s, which is %s, releases the rest %v of %v", b.x.Name, b.state, line.Rest, rows)
	}
	b.rested = true
	for i, r := range line.Rest {
		row := rows[i]
		if row.Arm != r.Arm || row.End-row.Start != r.Rounds+r.Gone {
			return nil, broken(announced, "%s releases %v, and took %v", b.x.Name, r, row)
		}
		if r.Rounds > 0 {
			out = append(out, row)
			continue
		}
		if err := b.noneCounts(row, runs); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// noneCounts takes a row of which nothing is released.
func (b *book) noneCounts(row play.Taken, runs [][]play.Run) error {
	if row.Start != b.heads[row.Arm] {
		return broken(twice, "%s: %v, and those below %d are gone", b.x.Name, row, b.heads[row.Arm])
	}
	b.heads[row.Arm] = row.End
	for n := row.Start; n < row.End; n++ {
		e, _ := epoch(runs[row.Arm], n)
		k := key{int32(row.Arm), int32(n), e}
		if h := b.of[k]; h != nil && h.gone == unsent && (b.x.Missing != decl.MissingDrop || h.reward == acked) {
			return broken(counts, "%s: decision %d of arm %d counts nowhere", b.x.Name, n, row.Arm)
		}
		delete(b.of, k)
	}
	return nil
}

// onTick holds that a release is closed at a sweep, half a tick or 50 ms after a public tick, and not with what
// somebody else writes. A sync is a sweep.
func (w *world) onTick(b *book, now int64) error {
	if w.syncing || len(w.names) > 1 || !w.steady() {
		return nil
	}
	e := w.disk.latest.Load().up.Load()
	if e == nil {
		return nil
	}
	info, err := e.Get(w.t.Context(), b.x.Name)
	if err != nil {
		return nil
	}
	for _, tick := range append(b.ticks, info.Tick.Milliseconds(), time.Second.Milliseconds()) {
		if (now-min(tick, 100)/2)%tick <= 1 {
			return nil
		}
	}
	return broken(blind, "%s: a release is written when there is no sweep, %d ms after a tick", b.x.Name,
		now%info.Tick.Milliseconds())
}

// never is a time that does not come.
const never = 1 << 60

// steady says that sweeps come at their times: a start, and an end of a fault, are sweeps too.
func (w *world) steady() bool {
	return w.slept && !w.shared && !w.slowed && !w.jumped &&
		min(time.Since(w.since), time.Since(w.disk.upset)) > 3*time.Second
}

// atOnce holds that a release is closed at the first tick after all of its windows, whatever else there is to
// write. There is one line at a tick.
func (w *world) atOnce(b *book, now, windows, before int64) error {
	e := w.disk.latest.Load().up.Load()
	if e == nil {
		return nil
	}
	info, err := e.Get(w.t.Context(), b.x.Name)
	if err != nil || !w.steady() || !b.exact || b.x.Contextual != nil {
		return nil
	}
	ticks := append(b.ticks, info.Tick.Milliseconds())
	tick := slices.Max(ticks)
	due := max(windows, b.asked, before+tick, w.since.UnixMilli()+1000, w.disk.upset.UnixMilli()+1000)
	if slices.Min(ticks) == tick { // it was always the same
		due += tick - 1 - (due-1)%tick - tick
	}
	if late := now - due - tick - min(tick, 100)/2 - 1; late > 0 {
		return broken(blind, "%s: a release comes %d ms later than it must", b.x.Name, late)
	}
	return nil
}

// released holds a line and the rows of decisions that it took against what is known of each decision, and gives
// when the last window of these has passed.
func (w *world) released(b *book, line *shown, rows []play.Taken, in []shownRow, runs [][]play.Run) (windows int64,
	err error) {
	name := func(i int) string { return fmt.Sprintf("%s, line %d, arm %d", b.x.Name, len(b.lines)-1, rows[i].Arm) }
	var ns []int
	if err := json.Unmarshal(line.Release.N, &ns); err != nil {
		ns = []int{0}
		if err := json.Unmarshal(line.Release.N, &ns[0]); err != nil {
			return 0, err
		}
	}
	all := make([]celled, len(rows))
	for i, row := range rows {
		if row.Start != b.heads[row.Arm] {
			return 0, broken(twice, "%s: decisions %d to %d, and those below %d were released before", name(i),
				row.Start, row.End, b.heads[row.Arm])
		}
		b.heads[row.Arm] = row.End
		all[i] = newCelled(b)
		for n := row.Start; n < row.End; n++ {
			e, _ := epoch(runs[row.Arm], n)
			k := key{int32(row.Arm), int32(n), e}
			h := b.of[k]
			if h == nil { // nobody was told of it
				h, windows = &held{}, never
			}
			windows = max(windows, h.deadline)
			if h.by {
				return 0, broken(superseded, "%s: decision %d", name(i), n)
			}
			if at := w.clock(w.disk.latest.Load()); !w.jumped && at < h.deadline {
				return 0, broken(inTime, "%s: decision %d is released %d ms before its deadline", name(i), n, h.deadline-at)
			}
			if h.wasVoid {
				return 0, broken(stayVoid, "%s: decision %d", name(i), n)
			}
			if h.unit > 0 && h.gone == unsent {
				if b.counted[h.unit]++; b.counted[h.unit] > b.most {
					return 0, broken(budgets, "%s: unit %d counts %d times", name(i), h.unit, b.counted[h.unit])
				}
			}
			if m := int(b.x.Unit.PerPerson); m > 0 && h.deadline > 0 && h.gone == unsent {
				if b.persons[h.person]++; b.persons[h.person] > m {
					return 0, broken(budgets, "%s: person %d counts %d times", name(i), h.person, b.persons[h.person])
				}
			}
			all[i].add(b, h, w.values(b, h))
			delete(b.of, k)
		}
	}
	if !b.exact {
		return windows, nil
	}
	if err := b.apart(all, in, ns); err != nil {
		return 0, err
	}
	slot := 0
	for i, row := range in {
		whole, had := &all[i][0], sums{lo: make([]int64, len(b.clips))}
		for j := range row.slots() {
			of := whole
			if len(row.Cells) > 0 {
				of = &all[i][1+row.Cells[j]]
			}
			if err := w.sum(b, line, slot, ns[slot], of, &had, name(i)); err != nil {
				return 0, err
			}
			slot++
		}
		if b.cells.Count > 0 {
			if err := whole.hold(had, name(i)); err != nil {
				return 0, err
			}
		}
	}
	return windows, nil
}

// sum holds what was released of a slot against what must be in it, and adds it to what the row has had.
func (w *world) sum(b *book, line *shown, i, n int, want, had *sums, name string) error {
	had.least += n
	first := 0.0
	if len(line.Release.Vector) > 0 {
		first = line.Release.Vector[0]
	} else {
		first = line.Release.Sum[i]
	}
	check := func(value float64, m int, vector bool) error {
		what, lo, hi := "rewards", want.lo[m], want.hi[m]
		if m > 0 {
			what = "metrics"
		}
		lo, hi = min(lo, int64(n)<<20), min(hi, int64(n)<<20)
		d := w.draws.show(value, func(d *draw) bool {
			return d.n == n && (vector || d.steps[0] >= lo && d.steps[0] <= hi)
		})
		switch {
		case d == nil:
			return broken(once, "%s: no curator has drawn its %s, or it was released before", name, what)
		case d.n != n || n < want.least || n > want.most:
			return broken(counts, "%s: it says %d decisions, the curator had %d, and there are %d to %d", name, n, d.n,
				want.least, want.most)
		}
		if m == 0 && !d.mechanism.Loss().Within(b.each) {
			return broken(budgets, "%s: %v for a budget of %v", name, d.mechanism, b.each)
		}
		got := d.steps[0]
		had.lo[m] += got
		if vector {
			return w.vector(d, n, want, name)
		}
		switch {
		case got > hi:
			return broken(twice, "%s: %d steps of its %s, there are %d at most", name, got, what, hi)
		case got < lo:
			return broken(counts, "%s: %d steps of its %s, there are %d at least", name, got, what, lo)
		}
		return nil
	}
	if err := check(first, 0, len(line.Release.Vector) > 0); err != nil {
		return err
	}
	for _, r := range line.Rules {
		if d := w.draws.show(r.Release.Sum[i], func(d *draw) bool { return d.n == n }); d == nil || d.n != n {
			return broken(once, "%s: no curator has drawn the sum of a rule for %d decisions, or it was released before",
				name, n)
		}
	}
	for m := range line.Metrics {
		if err := check(line.Metrics[m].Sum[i], m+1, false); err != nil {
			return err
		}
	}
	return nil
}

// celled are what the sums of a row must be of: all of it, and then of each cell.
type celled []sums

func newCelled(b *book) celled {
	c := make(celled, 1+b.cells.Count)
	for i := range c {
		c[i].begin(len(b.clips))
	}
	return c
}

// add adds a decision, which may be in any cell where it is not known in which.
func (c celled) add(b *book, h *held, values []int64) {
	c[0].add(b, h, values)
	switch {
	case len(c) == 1:
	case h.cell > 0:
		c[h.cell].add(b, h, values)
	default:
		var one sums
		one.begin(len(values))
		one.add(b, h, values)
		one.least = 0
		clear(one.lo)
		for i := range c[1:] {
			c[1+i].join(one)
		}
	}
}

func (s *sums) join(t sums) {
	s.least, s.most = s.least+t.least, s.most+t.most
	for i := range s.lo {
		s.lo[i], s.hi[i] = s.lo[i]+t.lo[i], s.hi[i]+t.hi[i]
	}
}

// hold holds what all cells of a row have had together.
func (s *sums) hold(had sums, name string) error {
	if had.least < s.least || had.least > s.most {
		return broken(counts, "%s: its cells have %d decisions, there are %d to %d", name, had.least, s.least, s.most)
	}
	for m, got := range had.lo {
		lo, hi := min(s.lo[m], int64(had.least)<<20), min(s.hi[m], int64(had.least)<<20)
		if got < lo || got > hi {
			return broken(counts, "%s: its cells have %d steps of number %d, there are %d to %d", name, got, m, lo, hi)
		}
	}
	return nil
}

// apart holds that those cells are released for themselves which have their least of decisions, in a joint batch
// of all arms, and has all others be in the last one.
func (b *book) apart(all []celled, in []shownRow, ns []int) error {
	if b.cells.Count == 0 {
		return nil
	}
	last := b.cells.Count - 1
	least, has := make([][]int, len(all)), make([][]int, len(all)) // by row and cell: surely, and as it is said
	slot := 0
	for i, row := range in {
		least[i], has[i] = make([]int, b.cells.Count), make([]int, b.cells.Count)
		if b.x.Split() {
			least[i], has[i] = least[0], has[0]
		}
		for c := range b.cells.Count {
			least[i][c] += all[i][1+c].least
		}
		for _, c := range row.Cells {
			if c < 0 || c > last {
				return broken(counts, "%s releases cell %d", b.x.Name, c)
			}
			has[i][c] += ns[slot]
			slot++
		}
	}
	for i, row := range in {
		for c := range last {
			switch own := slices.Contains(row.Cells, c); {
			case own && has[i][c] < b.cells.Least:
				return broken(counts, "%s: cell %d of arm %d has %d decisions, of %d at least", b.x.Name, c, row.Arm,
					has[i][c], b.cells.Least)
			case !own && all[i][1+c].least > 0 && least[i][c] >= b.cells.Least:
				return broken(counts, "%s: cell %d of arm %d has %d decisions, and is not released for itself", b.x.Name, c,
					row.Arm, least[i][c])
			case !own:
				all[i][1+last].join(all[i][1+c])
			}
		}
		if all[i][1+last].least > 0 && !slices.Contains(row.Cells, last) {
			return broken(counts, "%s: %d decisions of arm %d are in no cell", b.x.Name, all[i][1+last].least, row.Arm)
		}
	}
	return nil
}

// cell is the number of a decision's cell from 1 on, whose last is of all that has no declared value.
func (b *book) cell(about map[string]any) int32 {
	if b.cells.Count == 0 {
		return 0
	}
	if i := slices.Index(b.x.By.Values, fmt.Sprint(about[b.x.By.Key])); i >= 0 {
		return int32(i + 1)
	}
	return int32(b.cells.Count)
}

// vector holds the sum of vectors times rewards that was released against what must be in it.
func (w *world) vector(d *draw, n int, want *sums, name string) error {
	room := 2 * float64(n) // what is rounded
	for i, got := range d.steps {
		switch x := float64(got); {
		case want.strange:
		case x < want.from[i]-room || x > want.to[i]+room:
			return broken(counts, "%s: %d steps of coordinate %d of its vectors, there are %.0f to %.0f", name, got, i,
				want.from[i], want.to[i])
		}
	}
	return nil
}

// sums are what a release must be of: so many decisions, and between two sums of each number.
type sums struct {
	least, most int
	lo, hi      []int64
	// with contexts, of each number of their records; strange if there are vectors that nobody was told of
	from, to []float64
	strange  bool
}

// weigh adds what a decision is in a release, whose reward lies between two numbers of steps.
func (s *sums) weigh(b *book, h *held, lo, hi int64) {
	if s.strange = s.strange || h.vector == nil; s.strange {
		return
	}
	const one = 1 << 20
	least, most := b.record(h.vector, 2*float64(lo)/one-1), b.record(h.vector, 2*float64(hi)/one-1)
	if s.from == nil {
		s.from, s.to = make([]float64, len(least)), make([]float64, len(least))
	}
	for i, x := range least {
		from, to := min(x, most[i]), max(x, most[i])
		if lo < hi && b.bins == nil && b.x.Contextual.Joint() && i == len(least)-1 { // a reward's square
			from, to = 0, 1
		}
		s.from[i], s.to[i] = s.from[i]+from*one, s.to[i]+to*one
	}
}

func (s *sums) begin(k int) { s.lo, s.hi = make([]int64, k), make([]int64, k) }

func (s *sums) add(b *book, h *held, values []int64) {
	drop := b.x.Missing == decl.MissingDrop
	least, most := 1, 1
	if h.gone == acked || drop && h.reward == unsent {
		least = 0
	}
	if h.gone == unsure || drop && h.reward == unsure {
		least = 0
	}
	if h.gone == acked || drop && h.reward == unsent {
		most = 0
	}
	s.least, s.most = s.least+least, s.most+most
	for i, missing := range b.missing {
		lo, hi := missing, missing
		if drop {
			lo, hi = 0, 0
		}
		switch h.reward {
		case acked:
			lo, hi = values[i], values[i]
		case unsure:
			lo, hi = min(lo, values[i]), max(hi, values[i])
		}
		if h.sealed { // perhaps before it came
			lo, hi = min(lo, missing), max(hi, missing)
		}
		if h.gone != unsent { // what came before stays, and is cut
			lo = 0
			if h.reward == unsent && h.gone == acked {
				hi = 0
			}
		}
		s.lo[i], s.hi[i] = s.lo[i]+lo, s.hi[i]+hi
		if b.x.Contextual != nil {
			s.weigh(b, h, lo, hi)
		}
	}
}

// values are the steps of what is reported of a decision.
func (w *world) values(b *book, h *held) []int64 {
	reward, metrics := w.report(b, h.index, h.arm)
	n := parts(b, h.index)
	out := []int64{b.clips[0].Steps(worth(b.x.Aggregate, n, reward))}
	for i, m := range b.x.Metrics {
		v, ok := metrics[m.Name]
		if !ok {
			out = append(out, b.missing[i+1])
		} else {
			out = append(out, b.clips[i+1].Steps(worth(m.Aggregate, n, v)))
		}
	}
	return within(b, out)
}

// within holds what sums count of a decision to the ratios.
func within(b *book, worth []int64) []int64 {
	for _, r := range b.x.PlayRatios() {
		worth[r.Of] = min(worth[r.Of], worth[r.Per])
	}
	return worth
}

// answered holds an answer to a report against what is known. The time is that at which it was asked.
func (w *world) answered(b *book, k key, h *held, over bool, at, deadline int64, s serve.Status, by *process) error {
	name := fmt.Sprintf("%s: decision %d of arm %d", b.x.Name, k.number, k.arm)
	plain := !b.over && !w.jumped && !w.wentBack
	switch s {
	case serve.Accepted:
		switch {
		case over:
			return broken(counts, "%s: a reward is accepted after the experiment's end", name)
		case h.late && !w.jumped:
			return broken(inTime, "%s was late, and a reward of it is accepted", name)
		case h.wasVoid:
			return broken(stayVoid, "%s was void, and a reward of it is accepted", name)
		case h.by && b.x.Exposure != decl.ExposeActivate || by != w.disk.latest.Load(): // an offer may be met elsewhere
			return broken(superseded, "%s: a process that was superseded accepts its reward", name)
		case !w.jumped && at >= deadline+w.rounding():
			return broken(inTime, "%s: a reward %d ms after its deadline is accepted", name, at-deadline)
		}
	case serve.Late:
		// it may have been on its way, or be void, and its number another's that was released
		if h.late = true; plain && w.clock(by) < deadline && b.exact && b.durable(k) {
			return broken(inTime, "%s: a reward %d ms before its deadline is late", name, deadline-w.clock(by))
		}
	case serve.Void:
		if plain && b.durable(k) && b.exact && !h.by && by == w.disk.latest.Load() {
			return broken(counts, "%s is durable, and void", name)
		}
		if !b.over && b.x.Exposure != decl.ExposeActivate { // an offer may be met later
			h.wasVoid = true
		}
	}
	return nil
}

// lasts says that what was told of an arm must hold.
func (w *world) lasts(b *book, arm int) bool {
	return !b.over && !b.off[arm] && !w.jumped && w.p == w.disk.latest.Load()
}

// same holds that a unit which asks again has the decision that is durable, until its window has passed.
func (w *world) same(b *book, unit, token string) error {
	g := b.last[unit]
	if g != nil && !b.x.Free && g.met && b.most == 1 && token != g.token && w.lasts(b, int(g.k.arm)) {
		return broken(sticky, "%s: %s has met its last decision, and is given another", b.x.Name, unit)
	}
	if g == nil || b.x.Exposure == decl.ExposeActivate || b.x.Free || g.h.by || !b.durable(g.k) ||
		!w.lasts(b, int(g.k.arm)) || w.clock(w.p) >= g.deadline || token == g.token {
		return nil
	}
	return broken(sticky, "%s: %s had decision %d of arm %d, and is given another", b.x.Name, unit, g.k.number, g.k.arm)
}

// rounding is how far behind a clock of its own a process is, in milliseconds: both are cut to whole ones.
func (w *world) rounding() int64 {
	if w.slept {
		return 1
	}
	return 0
}

// ticked notes what tick an experiment has.
func (b *book) ticked(d time.Duration) {
	if t := d.Milliseconds(); !slices.Contains(b.ticks, t) {
		b.ticks = append(b.ticks, t)
	}
}

// look holds what a process shows of an experiment against what is durable.
func (w *world) look(b *book) error {
	ctx, e := w.t.Context(), w.p.e
	info, err := e.Get(ctx, b.x.Name)
	if err != nil {
		if w.resting {
			return broken(goesOn, "%s cannot be seen: %v", b.x.Name, err)
		}
		return nil // it says that it cannot be seen now
	}
	lines, err := e.Transcript(ctx, b.x.Name)
	if err != nil {
		return nil
	}
	var all []byte
	n := 0
	b.ticked(info.Tick)
	for line, err := range lines {
		if err != nil {
			if w.resting {
				return broken(goesOn, "%s cannot be read: %v", b.x.Name, err)
			}
			return nil
		}
		line = append(bytes.TrimSuffix(line, []byte("\n")), '\n')
		if n >= len(b.lines) || !bytes.Equal(bytes.TrimSuffix(b.lines[n], []byte("\n")), line[:len(line)-1]) {
			return broken(stays, "%s: line %d is shown, and another is durable", b.x.Name, n)
		}
		w.tell(line)
		all = append(all, line...)
		n++
	}
	if n < b.seen && !w.wentBack {
		return broken(stays, "%s: %d lines are shown, %d were before", b.x.Name, n, b.seen)
	}
	b.seen = n
	if total, err := b.x.EachTotal(); err != nil || !info.Spent.Within(total) {
		return broken(budgets, "%s: %v was spent of %v, %v", b.x.Name, info.Spent, total, err)
	}
	if n == 0 || !w.resting && w.IntN(4) > 0 { // each replay is of all lines
		return nil
	}
	r, err := serve.Replay(bytes.NewReader(all), catalogOf())
	switch {
	case errors.Is(err, serve.ErrSealed): // it tosses coins, whose seed is told at its end
		return nil
	case err != nil:
		return broken(replays, "%s: %v", b.x.Name, err)
	case r.Tip != info.Tip || r.Lines != info.Lines || r.Batches != info.Batches:
		return broken(replays, "%s: %d lines, %d batches are replayed, %d and %d are shown", b.x.Name, r.Lines,
			r.Batches, info.Lines, info.Batches)
	case n == len(b.lines) && r.Spent.String() != info.Spent.String(): // else one is to be shown at the next tick
		return broken(replays, "%s: %v was spent by its lines, %v by what is shown", b.x.Name, r.Spent, info.Spent)
	}
	if n == len(b.lines) && r.Contextual != nil && r.Contextual.Released > 0 {
		lines, wrong := r.Model()
		switch m, err := e.Model(ctx, b.x.Name); {
		case err != nil && !w.resting: // it says that it cannot be seen now
		case wrong != nil || err != nil || !slices.Equal(m.Theta, lines.Theta) || m.Decisions != lines.Decisions ||
			r.Policy != (info.Policy && r.End != ""):
			return broken(replays, "%s: what was learnt is another by its lines: %v, %v", b.x.Name, err, wrong)
		}
	}
	for a, arm := range r.Arms {
		if got := info.Arms[a]; got.Released != arm.Released || got.Sum != arm.Sum || n == len(b.lines) && got.Off != arm.Off {
			return broken(replays, "%s: arm %d is replayed as %+v, and shown as %+v", b.x.Name, a, arm, got)
		}
		of := info.Arms[a]
		for _, c := range info.Cells {
			of.Released, of.Sum = of.Released-c.Arms[a].Released, of.Sum-c.Arms[a].Sum
		}
		if len(info.Cells) > 0 && (of.Released != 0 || math.Abs(of.Sum) > 1e-6) {
			return broken(counts, "%s: arm %d is not what its cells are together, but for %+v", b.x.Name, a, of)
		}
	}
	if !reflect.DeepEqual(info.Cells, r.Cells) {
		return broken(replays, "%s: cells are replayed as %+v, and shown as %+v", b.x.Name, r.Cells, info.Cells)
	}
	return nil
}

// durableOnly holds that while nothing can be written, nothing is shown that was not.
func (w *world) durableOnly(b *book) error {
	if w.p.dead.Load() || w.p != w.disk.latest.Load() {
		return nil
	}
	info, err := w.p.e.Get(w.t.Context(), b.x.Name)
	switch {
	case err != nil:
		return nil
	case info.Lines > len(b.lines):
		return broken(stays, "%s: %d lines are told of, %d are durable", b.x.Name, info.Lines, len(b.lines))
	case len(info.Changes) != b.coming:
		return broken(stays, "%s is said to have %d changes to come, durable are %d", b.x.Name, len(info.Changes), b.coming)
	case info.State != b.state && !(info.State == serve.Waiting && b.state == serve.Running):
		return broken(stays, "%s is shown as %s, and is durably %s", b.x.Name, info.State, b.state)
	}
	return nil
}

// rows holds what is stored against what must be: the queues, and nothing of what was released.
func (w *world) rows(b *book) error {
	s, err := w.disk.mem.Open(w.t.Context())
	if err != nil {
		return err
	}
	in, err := s.Load(w.t.Context(), b.id)
	if err == nil && (b.state == serve.Stopped || b.state == serve.Archived) {
		left := len(in.Segments) + len(in.Parts) + len(in.Events) + len(in.Totals)
		for a := range in.Arms {
			for range s.Reports(w.t.Context(), b.id, a, 0, math.MaxInt) {
				left++
			}
		}
		if left > 0 || b.state == serve.Archived && len(in.Units) > 0 {
			return broken(bounded, "%s is %s, and the store has %d rows of its rewards, %d of units", b.x.Name, b.state, left, len(in.Units))
		}
	}
	if err != nil || b.over {
		return err
	}
	for _, g := range in.Segments {
		if g.Start < in.Arms[g.Arm].Head || g.Start >= in.Arms[g.Arm].Issued {
			return broken(bounded, "%s: the store has decisions %d to %d of arm %d, whose queue is from %d to %d",
				b.x.Name, g.Start, g.End, g.Arm, in.Arms[g.Arm].Head, in.Arms[g.Arm].Issued)
		}
	}
	for _, p := range in.Parts {
		if p.Start < in.Arms[p.Arm].Head || p.Number > 64 {
			return broken(bounded, "%s: the store has part %d of decisions from %d on of arm %d", b.x.Name, p.Number,
				p.Start, p.Arm)
		}
	}
	for _, t := range in.Totals {
		if t.Number < in.Arms[t.Arm].Head || t.Number >= in.Arms[t.Arm].Issued {
			return broken(bounded, "%s: the store has what came of decision %d of arm %d alone, which was released", b.x.Name,
				t.Number, t.Arm)
		}
	}
	for _, e := range in.Events {
		if e.Start < in.Arms[0].Head {
			return broken(bounded, "%s: the store has vectors from %d on, and %d were released", b.x.Name, e.Start,
				in.Arms[0].Head)
		}
	}
	for a := range in.Arms {
		for r, err := range s.Reports(w.t.Context(), b.id, a, 0, in.Arms[a].Head) {
			return broken(bounded, "%s: the store has a report of decision %d of arm %d, which was released: %v",
				b.x.Name, r.Number, r.Arm, err)
		}
	}
	return nil
}
