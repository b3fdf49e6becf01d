//go:build unix

package serve

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// What a child does is written down line by line, each in one write, so that a kill loses none:
//
//	sent TOKEN STEPS     a reward is about to be reported, or TOKEN.ID where all of a decision count
//	got TOKEN STATUS     and was answered
//	line NUMBER TEXT     a line of the transcript was shown
//	sums NUMBER SUM      what all lines before this one released
//
// A decision that was told and never reported is a default.
const crashShop = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb, first: 10, alpha: 1.05}
budget: {epsilon: 1}
unit: {of: visit}
reward: {range: [0, 1], default: 0.25}
window: 100ms
floor: 0.3
sticky: false
`

// A twin is a store that is wrong in a way that a crash shows.
type twin struct {
	store.Store
	fault string
	held  *store.Commit
	said  int64 // as of saidSums when it was held
	reads int   // for so many milliseconds at most it waits until it is read
	drop  bool
}

// saidSums is how often a child has said what was released.
var saidSums atomic.Int64

func (s *twin) Commit(ctx context.Context, c store.Commit) error {
	switch s.fault {
	case "answers before the fsync": // a commit is made with the next one
		held := s.held
		s.held = &c
		if held == nil {
			return nil
		}
		return s.Store.Commit(ctx, *held)
	case "releases outside of the transaction": // the line goes before what it took
		for i, w := range c.Writes {
			if len(w.Taken) == 0 {
				continue
			}
			if err := s.Store.Commit(ctx, store.Commit{Now: c.Now, Writes: []store.Write{{ID: w.ID,
				Lines: w.Lines, Number: w.Number}}}); err != nil {
				return err
			}
			syscallKill()
			c.Writes[i].Lines = nil
		}
	case "draws noise again": // a release is shown before it is written
		if s.held != nil {
			held := *s.held
			s.held = nil
			for range s.reads { // until it was read, if it was shown
				if saidSums.Load() > s.said {
					kill()
				}
				time.Sleep(time.Millisecond)
			}
			if err := s.Store.Commit(ctx, held); err != nil {
				return err
			}
		}
		for _, w := range c.Writes {
			if len(w.Taken) > 0 {
				s.held, s.said = &c, saidSums.Load()
				time.Sleep(40 * time.Millisecond) // more than a tick
				return nil
			}
		}
	case "adds outside of the transaction": // the arm goes before its line
		for _, w := range c.Writes {
			if len(w.Lines) > 0 && strings.Contains(string(w.Lines[0]), `"add":`) {
				w.Lines, w.Number = nil, 0
				if err := s.Store.Commit(ctx, store.Commit{Now: c.Now, Writes: []store.Write{w}}); err != nil {
					return err
				}
				syscallKill()
			}
		}
	case "forgets names": // a report that is sent again counts again
		for i, w := range c.Writes {
			for j, row := range w.Totals {
				if total, err := readTotal(row.Data, 1); err == nil && len(total.Names) > 0 {
					total.Names = nil
					c.Writes[i].Totals[j].Data = appendTotal(nil, total)
				}
			}
		}
	case "forgets reports":
		for i := range c.Writes {
			c.Writes[i].Reports = nil
		}
	case "issues numbers again":
		for i := range c.Writes {
			c.Writes[i].DropSums = c.Writes[i].DropSums || s.drop
			s.drop = false
		}
	}
	return s.Store.Commit(ctx, c)
}

// Load of the twin that issues numbers again forgets decisions that are durable.
func (s *twin) Load(ctx context.Context, id int64) (store.Stored, error) {
	out, err := s.Store.Load(ctx, id)
	if s.fault != "issues numbers again" {
		return out, err
	}
	for i := range out.Arms {
		a := &out.Arms[i]
		first := a.Head // forgets all that is in the queue
		a.Issued = first
		for len(a.Runs) > 1 && a.Runs[len(a.Runs)-1].From > first {
			a.Runs = a.Runs[:len(a.Runs)-1]
		}
	}
	out.Segments, out.Parts, s.drop = nil, nil, true
	return out, err
}

// Patience keeps a clock before the deadlines of rewards that are in time until their answers are told. Who
// sends one again, since its answer was lost, is answered the same then, however long the machine let
// the answer wait: after its deadline it would be late, though it counts.
type patience struct {
	mu sync.Mutex
	at map[string]time.Time // readings of the clock, by token
}

// of holds the clock for a decision's reward, until it is let go.
func (h *patience) of(e *Engine, name string, expires time.Time) (letGo func()) {
	at := e.cfg.Clock()
	at = at.Add(expires.Sub(time.UnixMilli(e.now())) - 2*time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[string]time.Time{}
	}
	h.at[name] = at
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.at, name)
	}
}

// before is t, or the first time that is held.
func (h *patience) before(t time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range h.at {
		if at.Before(t) {
			t = at
		}
	}
	return t
}

// syscallKill kills the process as the kernel does, now and then.
func syscallKill() {
	if rand.IntN(3) == 0 {
		kill()
	}
}

func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// hasty has all connections to SQLite wait less for the disk than they must.
func hasty(fault string) {
	if pragma, ok := strings.CutPrefix(fault, "synchronous="); ok {
		sqlite.RegisterConnectionHook(func(c sqlite.ExecQuerierContext, _ string) error {
			_, err := c.ExecContext(context.Background(), "PRAGMA synchronous="+pragma, nil)
			return err
		})
	}
}

func say(format string, args ...any) {
	_, _ = io.WriteString(os.Stdout, fmt.Sprintf(format, args...)+"\n")
}

// openChild is the engine of a process that is killed: its clock stands until it is started, and is
// held by who waits for an answer.
func openChild(t *testing.T) (e *Engine, held *patience, start func()) {
	dir := os.Getenv("SOTTO_CRASH_DIR")
	if dir == "" {
		t.Skip("it is run by TestCrash")
	}
	fault := os.Getenv("SOTTO_CRASH_TWIN")
	hasty(fault)
	point, after, _ := strings.Cut(os.Getenv("SOTTO_CRASH_AT"), ":")
	left, _ := strconv.Atoi(after)
	kill := syscall.SIGKILL
	if os.Getenv("SOTTO_CRASH_STOPS") != "" {
		kill = syscall.SIGSTOP
	}
	var started atomic.Int64 // when the clock began to run; 0: it stands
	held = &patience{}
	from := time.UnixMilli(1)
	e, err := Open(t.Context(), Config{
		Store: func(ctx context.Context) (store.Store, error) {
			s, err := store.SQLite(dir)(ctx)
			return &twin{Store: s, fault: fault, reads: 500}, err
		},
		Clock: func() time.Time {
			if at := started.Load(); at != 0 {
				return held.before(from.Add(time.Duration(time.Now().UnixNano() - at)))
			}
			return from
		},
		Curator:      knownNoise(func() int { return rand.IntN(1000) }),
		HelperSecret: func(string) []byte { return shared },
		gatherPause:  time.Millisecond,
		hook: func(at string) {
			if at == point {
				if left--; left == -1 {
					_ = syscall.Kill(os.Getpid(), kill)
					time.Sleep(100 * time.Millisecond) // a stop may take a moment
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, held, func() { started.Store(time.Now().UnixNano()) }
}

// reportAll reports the rewards that were not answered before.
func reportAll(report func(name string, steps int64)) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		token, steps, _ := strings.Cut(in.Text(), " ")
		n, _ := strconv.ParseInt(steps, 10, 64)
		report(token, n)
	}
}

// isHidden says that the service sees no reward of an experiment.
func isHidden(text string) bool { return strings.Contains(text, "trust: two-server") }

// TestCrashChild is the process that is killed.
func TestCrashChild(t *testing.T) {
	e, held, start := openChild(t)
	text := cmp.Or(os.Getenv("SOTTO_CRASH_SHOP"), crashShop)
	report := func(token string, steps int64) {
		for {
			if text == crashGrown && steps >= 0 && track(t, e, token, steps) == nil {
				say("tracked %s", token)
				steps = isTracked
			}
			if s, err := crashReport(t, e, "shop", token, steps); err == nil {
				say("got %s %s", token, s)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	reportAll(report)
	if _, err := e.Get(t.Context(), "shop"); errors.Is(err, ErrNotFound) {
		begin(t, e, text)
		say("made")
	}
	slow, _ := strconv.Atoi(os.Getenv("SOTTO_CRASH_SLOW"))
	if info, err := e.Get(t.Context(), "shop"); err != nil || info.State == Failed {
		say("failed %s %v", info.Reason, err)
		return
	}
	grid := int64(1) // rewards are multiples of so many steps
	if isHidden(text) {
		grid = 1 << 10
	}
	start()
	say("ready")
	grows := text == crashGrown
	if grows {
		go addArms(t, e)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				unit := ""
				if grows {
					unit = fmt.Sprint(rand.Uint64())
				}
				d, err := e.Decide(t.Context(), "shop", unit)
				if err != nil || d.Token == "" {
					continue
				}
				time.Sleep(time.Duration((1+slow)*rand.IntN(3)) * time.Millisecond)
				if rand.IntN(4) > 0 {
					letGo := held.of(e, d.Token, d.Expires)
					names := reportsOf(text, d.Token)
					if grows {
						names = []string{d.Token + "." + unit}
					}
					for _, name := range names {
						steps := rand.Int64N(1<<20+1) / grid * grid
						say("sent %s %d", name, steps)
						report(name, steps)
					}
					letGo()
				}
			}
		})
	}
	sayShown(t, e)
}

// reportsOf are the names of what a child reports of a decision: one, or several that add up.
func reportsOf(text, token string) (names []string) {
	if !strings.Contains(text, "aggregate") {
		return []string{token}
	}
	for id := range 1 + rand.IntN(3) {
		names = append(names, fmt.Sprintf("%s.%d", token, id))
	}
	return names
}

// sayShown says all that is shown of an experiment.
func sayShown(t *testing.T, e *Engine) {
	shown, batches := 0, -1
	for {
		if info, err := e.Get(t.Context(), "shop"); err == nil && info.Batches != batches {
			batches = info.Batches
			sum := 0.0
			for _, a := range info.Arms {
				sum += a.Sum
			}
			say("sums %d %v", batches, sum)
			saidSums.Add(1)
		}
		lines, err := e.Transcript(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for line, err := range lines {
			if err == nil && i >= shown {
				say("line %d %s", i, strings.TrimSpace(string(line)))
				shown++
			}
			i++
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A witness knows what all children were told.
type witness struct {
	sent   map[string]int64  // rewards by token
	got    map[string]string // answers
	lines  []string
	sums   map[string]string
	faults []string
	text   string // of their experiment
	name   string // its
	starts int    // of children that were ready
	count  int    // of syncs
	added  []string
	// tracked are events that were answered.
	tracked map[string]bool
}

func (w *witness) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *witness) hear(text string) {
	word, rest, _ := strings.Cut(text, " ")
	a, b, _ := strings.Cut(rest, " ")
	switch word {
	case "ready":
		w.starts++
	case "failed":
		w.fault("%s", text)
	case "tracked":
		w.tracked[a] = true
	case "added":
		w.added = append(w.added, rest)
	case "sent":
		w.sent[a], _ = strconv.ParseInt(b, 10, 64)
	case "got":
		if old, ok := w.got[a]; ok && old != b {
			w.fault("a reward was answered %s, then %s", old, b)
		}
		w.got[a] = b
	case "sums":
		if old, ok := w.sums[a]; ok && old != b {
			w.fault("the sum of %s batches was shown as %s and as %s", a, old, b)
		}
		w.sums[a] = b
	case "line":
		n, _ := strconv.Atoi(a)
		switch {
		case n > len(w.lines):
			w.fault("line %d was shown after %d", n, len(w.lines))
		case n == len(w.lines):
			w.lines = append(w.lines, b)
		case w.lines[n] != b:
			w.fault("line %d was shown as %s and as %s", n, w.lines[n], b)
		}
	}
}

// open are the rewards that were sent and not answered.
func (w *witness) open() (out []string) {
	for token, steps := range w.sent {
		if w.tracked[token] {
			steps = isTracked
		}
		if _, ok := w.got[token]; !ok {
			out = append(out, fmt.Sprintf("%s %d", token, steps))
		}
	}
	return out
}

// life is one child, from its start to its kill.
func (w *witness) life(t *testing.T, dir, fault, at string, wait time.Duration) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	c.Env = append(os.Environ(), "SOTTO_CRASH_DIR="+dir, "SOTTO_CRASH_TWIN="+fault, "SOTTO_CRASH_AT="+at,
		"SOTTO_CRASH_SHOP="+w.text)
	c.Stdin = strings.NewReader(strings.Join(w.open(), "\n"))
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	slow := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
	defer slow.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		w.hear(lines.Text())
		if lines.Text() == "ready" {
			time.AfterFunc(wait, func() { _ = c.Process.Kill() })
		}
	}
	_ = c.Wait() // it was killed
}

// judge opens the store a last time, releases all that can be, and holds every released sum against
// what was told and accepted.
func (w *witness) judge(t *testing.T, dir string) (released int) {
	t.Helper()
	return w.judgeStore(t, store.SQLite(dir))
}

func (w *witness) judgeStore(t *testing.T, at func(context.Context) (store.Store, error),
	others ...*witness) (released int) {
	t.Helper()
	c := clock.At(time.UnixMilli(1))
	e, err := Open(t.Context(), quiet(at, c.Now))
	if err != nil { // of a broken copy it may be what a page of another commit has made of it
		w.fault("it cannot be opened: %v", err)
		return 0
	}
	defer func() { _ = e.Close() }()
	if err := e.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := append([]*witness{w}, others...) // of the experiments of this store
	for _, w := range all {
		for _, text := range w.open() {
			token, steps, _ := strings.Cut(text, " ")
			n, _ := strconv.ParseInt(steps, 10, 64)
			s, err := crashReport(t, e, w.name, token, n)
			if err != nil {
				w.fault("a reward is refused: %v", err)
				return 0
			}
			w.got[token] = string(s)
		}
	}
	const tick = 7 * time.Millisecond
	settle(t, e, c, tick, 60)
	for _, w := range all {
		info, err := e.Get(t.Context(), w.name)
		for info.State == Waiting && info.Wait != "rewards" { // sums are gathered beside the writer
			settle(t, e, c, tick, 1)
			time.Sleep(time.Millisecond)
			info, err = e.Get(t.Context(), w.name)
		}
		if err != nil || info.State == Failed {
			w.fault("failed %s, %v", info.Reason, err)
			return 0
		}
		released += w.holdArms(t, e)
	}
	return released
}

// holdArms holds every sum, released or not, against the rewards that were accepted.
func (w *witness) holdArms(t *testing.T, e *Engine) (released int) {
	t.Helper()
	x := mustFind(t, e, w.name)
	sign := newSigner(x.tokenKey)
	accepted, by := map[[2]int]int64{}, map[[2]int]string{}
	for name, s := range w.got {
		if Status(s) != Accepted {
			continue
		}
		token, id, several := strings.Cut(name, ".")
		k, ok := sign.read(token)
		at := [2]int{k.arm, int(k.number)}
		if other, twice := by[at]; twice && (other != token || !several) || !ok {
			w.fault("decision %v counts for two, %s", at, id)
		}
		by[at] = token
		accepted[at] += w.sent[name]
	}
	for at, steps := range accepted {
		accepted[at] = min(steps, 1<<20)
	}
	lines, err := e.Transcript(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	heads, i := make([]int, 2), 0
	names := map[string]bool{}
	for line, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		w.hear(fmt.Sprintf("line %d %s", i, strings.TrimSpace(string(line))))
		i++
		var in struct {
			Plays, Ahead []struct {
				Arm  int
				Held bool
			}
			Release struct {
				N   []int
				Sum []float64
			}
			Add    *int
			Change struct{ Add []Added }
		}
		if err := json.Unmarshal(line, &in); err != nil {
			t.Fatal(err)
		}
		if in.Add != nil {
			heads = append(heads, 0)
			names[in.Change.Add[0].Name] = true
		}
		var arms []int
		for _, p := range append(in.Plays, in.Ahead...) {
			if !p.Held {
				arms = append(arms, p.Arm)
			}
			if p.Arm >= len(heads) {
				w.fault("line %d is of arm %d, before the line that adds it", i-1, p.Arm)
				return released
			}
		}
		for j, n := range in.Release.N {
			arm, want := arms[j], int64(0)
			for number := heads[arm]; number < heads[arm]+n; number++ {
				steps, ok := accepted[[2]int{arm, number}]
				if !ok {
					steps = 1 << 18
				}
				want += steps
			}
			if got := stepsOf(in.Release.Sum[j]); got != want {
				w.fault("line %d: arm %d released %d steps of decisions %d to %d, accepted and defaults are %d",
					i-1, arm, got, heads[arm], heads[arm]+n, want)
			}
			heads[arm] += n
			released += n
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.play == nil {
		w.fault("it does not play")
		return released
	}
	for _, name := range w.added {
		if !names[name] {
			w.fault("arm %s was answered, and never came", name)
		}
	}
	for arm := range heads { // and what waits
		q := x.play.Queue(arm, 0)
		for _, s := range q.Segments {
			end, want := q.Issued, int64(0)
			if s.End > 0 {
				end = min(end, s.End)
			}
			for number := s.Start; number < end; number++ {
				want += accepted[[2]int{arm, number}]
			}
			if isHidden(w.text) { // what they are is in no sum
				want = 0
			}
			if s.Sum != want {
				w.fault("arm %d has %d steps of decisions %d to %d, accepted are %d", arm, s.Sum, s.Start,
					end, want)
			}
		}
		for at := range accepted {
			if at[0] == arm && at[1] >= q.Issued {
				w.fault("decision %v was accepted and is not there", at)
			}
		}
	}
	return released
}

// quiet is an engine whose noise is none.
func quiet(at func(context.Context) (store.Store, error), now func() time.Time) Config {
	return Config{Store: at, Clock: now, Curator: knownNoise(func() int { return 0 }),
		HelperSecret: func(string) []byte { return shared }, gatherPause: time.Millisecond}
}

// crashStore makes a store in which experiments run.
func crashStore(t *testing.T, at func(context.Context) (store.Store, error), texts ...string) {
	t.Helper()
	e := open(t, quiet(at, func() time.Time { return time.UnixMilli(1) }))
	for _, text := range texts {
		begin(t, e, text)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// crash kills a child so often.
func crash(t *testing.T, fault, text string, kills int) (w *witness, released int) {
	t.Helper()
	dir := t.TempDir()
	crashStore(t, store.SQLite(dir), text)
	if w = newWitness(text); w.lives(t, dir, fault, kills) {
		released = w.judge(t, dir)
	}
	return w, released
}

func newWitness(text string) *witness {
	_, name, _ := strings.Cut(text, "name: ")
	name, _, _ = strings.Cut(name, "\n")
	return &witness{text: text, name: name, sent: map[string]int64{}, got: map[string]string{}, sums: map[string]string{},
		tracked: map[string]bool{}}
}

// lives are so many children, half of them killed at named points. It is false if a twin was found.
func (w *witness) lives(t *testing.T, dir, fault string, kills int) bool {
	t.Helper()
	points := []string{"before a commit", "after a commit", "before a release", "after a release"}
	if isHidden(w.text) {
		points = append(points, "gathered")
	}
	for i := range kills {
		at := ""
		if i%2 == 0 {
			at = fmt.Sprintf("%s:%d", points[i/2%len(points)], rand.IntN(2))
		}
		wait := time.Duration(20+rand.IntN(250)) * time.Millisecond
		if fault == "draws noise again" { // which kills itself, when it has been found out
			wait *= 10
		}
		if w.life(t, dir, fault, at, wait); w.text == crashGrown {
			w.orphans(t, store.SQLite(dir))
		}
		if len(w.faults) > 0 && fault != "" {
			return false
		}
	}
	return true
}

// kills is how often a child is killed: SOTTO_CRASHES, or 20.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("SOTTO_CRASHES")); err == nil {
		return n
	}
	return testkit.Size(12, 20)
}

// However often the process is killed, what is released is what was accepted, and defaults for what
// was not; what was shown once is not shown differently; no two decisions have one number.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	for name, text := range map[string]string{"first": crashShop, "sum": crashSum} {
		t.Run(name, func(t *testing.T) {
			kills := (kills() + 1) / 2
			w, released := crash(t, "", text, kills)
			for _, f := range w.faults {
				t.Error(f)
			}
			counts := map[string]int{}
			for _, s := range w.got {
				counts[s]++
			}
			t.Logf("%d kills, %d times ready, %d rewards sent, %v, %d lines shown, %d decisions released", kills, w.starts,
				len(w.sent), counts, len(w.lines), released)
			if counts["accepted"] == 0 || released == 0 || w.starts < kills/4 {
				t.Errorf("nothing was tried: %v, %d released, %d starts", counts, released, w.starts)
			}
		})
	}
}

// crashSum is crashShop where all reports of a decision add up.
var crashSum = strings.Replace(crashShop, "default: 0.25}", "default: 0.25, aggregate: sum}", 1)

// crashGrown is crashShop with arms that are added and with events by unit.
var crashGrown = strings.NewReplacer("default: 0.25}", "default: 0.25, event: buy}", "sticky: false\n", "",
	"first: 10", "first: 4").Replace(crashShop)

// addArms has the experiment have up to five arms, and says what was promised.
func addArms(t *testing.T, e *Engine) {
	for {
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		info, err := e.Get(t.Context(), "shop")
		if err != nil || len(info.Arms) == 5 {
			continue
		}
		name := fmt.Sprint("more ", rand.Uint64())
		if err := e.Change(t.Context(), "shop", Change{Add: []Added{{Name: name}}}); err == nil {
			say("added %s", name)
		}
	}
}

// isTracked is in the place of a reward whose event was answered, and is not sent again.
const isTracked = -1

// track reports an event of a decision's unit, perhaps twice.
func track(t *testing.T, e *Engine, name string, steps int64) (err error) {
	_, unit, _ := strings.Cut(name, ".")
	v := Event{Name: "buy", Unit: unit, Fields: map[string]float64{decl.ValueField: float64(steps) * release.ExactStep}}
	for range 1 + rand.IntN(2) {
		err = cmp.Or(err, e.Track(t.Context(), []Event{v}, nil))
	}
	return err
}

// orphans holds that a store has no arm, and no unit with one, that no line adds.
func (w *witness) orphans(t *testing.T, at func(context.Context) (store.Store, error)) {
	t.Helper()
	s, err := at(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	heads, err := s.Heads(t.Context())
	if err != nil || len(heads.Experiments) != 1 {
		t.Fatalf("%d experiments, %v", len(heads.Experiments), err)
	}
	id, arms := heads.Experiments[0].ID, 2
	for line, err := range s.Lines(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(line), `"add":`) {
			arms++
		}
	}
	in, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Arms) > arms {
		w.fault("the store has %d arms, and lines of %d", len(in.Arms), arms)
	}
}

// However often the process is killed while arms are added and units do things, an arm that was answered comes, once and with
// its line before all else of it; what a unit did counts once, also when it is sent again. A store that writes an arm before its
// line is found, and so is, at the full size, one that answers before it has written.
func TestCrashGrown(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	added, got, released := 0, 0, 0
	for tries := 0; tries < 5 && (added == 0 || got < 50 || released == 0); tries++ { // a busy machine does little between kills
		w, n := crash(t, "", crashGrown, (kills()+1)/2)
		for _, f := range w.faults {
			t.Error(f)
		}
		added, got, released = added+len(w.added), got+len(w.got), released+n
		t.Logf("%d arms added, %d events sent, %d answered, %d lines, %d decisions released", len(w.added), len(w.sent),
			len(w.got), len(w.lines), n)
	}
	if added == 0 || got < 50 || released == 0 {
		t.Errorf("%d arms added, %d events answered, %d decisions released: nothing was tried", added, got, released)
	}
	for fault, as := range map[string]string{"adds outside of the transaction": "and lines of",
		"answers before the fsync": "accepted and defaults are"} {
		kills := 4
		if fault == "answers before the fsync" {
			if kills = 12; !testkit.Full() { // TestCrashTwins has it at every size
				continue
			}
		}
		found := ""
		for tries := 0; tries < 20 && found == ""; tries++ {
			w, _ := crash(t, fault, crashGrown, kills)
			for _, f := range w.faults {
				if strings.Contains(f, as) {
					found = f
					t.Log(tries, f)
				}
			}
		}
		if found == "" {
			t.Errorf("a store that %s is not found", fault)
		}
	}
}

// Stores that are wrong are found.
func TestCrashTwins(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	for fault, as := range map[string]string{
		"answers before the fsync":            "accepted and defaults are",
		"releases outside of the transaction": "the transcript does not hold",
		"draws noise again":                   "was shown as",
		"issues numbers again":                "counts for two",
		"forgets names":                       "accepted",
	} {
		t.Run(fault, func(t *testing.T) {
			text := crashShop
			if fault == "forgets names" {
				text = crashSum
			}
			for range 20 { // each finds it with a probability far above a half
				w, _ := crash(t, fault, text, 12)
				for _, f := range w.faults {
					if strings.Contains(f, as) {
						t.Log(f)
						return
					}
				}
			}
			t.Error("it was not found")
		})
	}
}
