package serve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

var errDisk = errors.New("no space left on the device")

// A sick store fails its commits while it is told to.
type sick struct {
	store.Store
	full *atomic.Bool
}

func (s sick) Commit(ctx context.Context, c store.Commit) error {
	if s.full.Load() {
		return errDisk
	}
	return s.Store.Commit(ctx, c)
}

// While nothing can be written rewards are refused and decisions go on; then all goes on, no
// accepted reward is lost, and decisions that were not durable are void.
func TestFullDisk(t *testing.T) {
	c, got, mem := newClock(), newSums(), store.NewMemory()
	var full atomic.Bool
	e := open(t, Config{Clock: c.Now, Curator: silent(got.tell),
		Store: func(ctx context.Context) (store.Store, error) {
			if full.Load() {
				return nil, errDisk
			}
			s, err := mem.Open(ctx)
			return sick{s, &full}, err
		}})
	begin(t, e, strings.Replace(shop, "floor: 0.1", "sticky: false", 1))
	accepted := [2]int64{}
	var early []Decision
	for range 40 {
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil {
			t.Fatal(err)
		}
		if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 0.5}); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
		accepted[d.Arm] += 1 << 19
		early = append(early, d)
	}
	full.Store(true)
	lost, err := e.Decide(t.Context(), "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Reward(t.Context(), "shop", Report{lost.Token, 1}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a reward on a full disk: %v", err)
	}
	if e.Ready() == nil {
		t.Error("it says that it is ready")
	}
	for range 5 {
		if d, err := e.Decide(t.Context(), "shop", ""); err != nil || d.Token == "" {
			t.Errorf("no decision on a full disk: %+v, %v", d, err)
		}
	}
	full.Store(false)
	for deadline := time.Now().Add(10 * time.Second); e.Ready() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("it does not come back")
		}
		time.Sleep(time.Millisecond)
	}
	if s, err := e.Reward(t.Context(), "shop", Report{lost.Token, 1}); s != Void || err != nil {
		t.Errorf("a decision that was lost: %v, %v", s, err)
	}
	if s, err := e.Reward(t.Context(), "shop", Report{early[0].Token, 1}); s != Accepted || err != nil {
		t.Errorf("a decision that was not: %v, %v", s, err)
	}
	for range 10 {
		if _, err := e.Decide(t.Context(), "shop", ""); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, e, c, time.Second, 70)
	if got.n[0] < 20 || got.n[1] < 20 || got.steps[0] != accepted[0] || got.steps[1] != accepted[1] {
		t.Errorf("released %v decisions, %v steps; accepted were %v", got.n, got.steps, accepted)
	}
}

// Of two engines on one store the one that came last goes on. The other one's rewards are refused,
// and its decisions are void for the one that goes on.
func TestTwoWriters(t *testing.T) {
	for name, st := range map[string]func(context.Context) (store.Store, error){
		"memory": store.NewMemory().Open, "sqlite": store.SQLite(t.TempDir()),
	} {
		c := newClock()
		first := open(t, Config{Store: st, Clock: c.Now})
		begin(t, first, strings.Replace(shop, "floor: 0.1", "sticky: false", 1))
		if err := first.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := open(t, Config{Store: st, Clock: c.Now})
		d, err := first.Decide(t.Context(), "shop", "")
		if errors.Is(err, ErrUnavailable) { // it has seen it already, on a machine that is slow
			continue
		}
		if err != nil {
			t.Fatal(name, err)
		}
		if s, err := first.Reward(t.Context(), "shop", Report{d.Token, 1}); !errors.Is(err, ErrUnavailable) ||
			!errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: who was taken over accepts: %v, %v", name, s, err)
		}
		if s, err := second.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Void || err != nil {
			t.Errorf("%s: a decision of who was taken over: %v, %v", name, s, err)
		}
		if err := second.Sync(t.Context()); err != nil {
			t.Errorf("%s: who took over cannot write: %v", name, err)
		}
	}
}

// A process whose store was taken over answers nothing more, also if it has nothing to write: neither
// decisions, which would be void, nor what it knows of transcripts, and says so.
func TestSuperseded(t *testing.T) {
	for name, st := range map[string]func(context.Context) (store.Store, error){
		"memory": store.NewMemory().Open, "sqlite": store.SQLite(t.TempDir()),
	} {
		c := newClock()
		first := open(t, Config{Store: st, Clock: c.Now})
		begin(t, first, shop)
		if err := first.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := open(t, Config{Store: st, Clock: c.Now})
		select {
		case <-first.Superseded():
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: it does not see that it was taken over", name)
		}
		if err := first.Ready(); !errors.Is(err, ErrUnavailable) || !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: it is ready: %v", name, err)
		}
		if here, address, _ := first.Where(); here || address != "" {
			t.Errorf("%s: it says that %q answers, or it", name, address)
		}
		for what, do := range map[string]func() error{
			"decide":     func() error { _, err := first.Decide(t.Context(), "shop", "ann"); return err },
			"transcript": func() error { _, err := first.Transcript(t.Context(), "shop"); return err },
			"get":        func() error { _, err := first.Get(t.Context(), "shop"); return err },
			"stop":       func() error { return first.Stop(t.Context(), "shop", "") },
			"create":     func() error { return first.Create(t.Context(), parse(t, shop)) },
		} {
			if err := do(); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if err := first.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := second.Decide(t.Context(), "shop", "ann"); err != nil {
			t.Errorf("%s: who took over: %v", name, err)
		}
	}
}

// A clock that goes back shortens no window, also over a restart; one that jumps ahead closes
// nothing twice.
func TestClockJumps(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, strings.Replace(shop, "floor: 0.1", "sticky: false", 1))
	decide := func() Decision {
		t.Helper()
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	say := func(d Decision) Status {
		t.Helper()
		s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	d := decide()
	c.Add(-time.Hour)
	again := decide()
	if again.Expires.Before(d.Expires) {
		t.Errorf("expires %v, before %v", again.Expires, d.Expires)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg) // the wall clock is an hour behind what is stored
	if now := time.UnixMilli(e.now()); now.Before(d.Expires.Add(-time.Minute)) {
		t.Errorf("after a restart it is %v", now)
	}
	c.Add(59 * time.Second)
	if s := say(again); s != Accepted {
		t.Errorf("within its window: %v", s)
	}
	c.Add(2 * time.Second)
	if s := say(again); s != Late {
		t.Errorf("after its window: %v", s)
	}
	for range 60 {
		decide()
	}
	settle(t, e, c, 24*time.Hour, 3)
	info, _ := e.Get(t.Context(), "shop")
	if n := info.Arms[0].Released + info.Arms[1].Released; info.Batches == 0 || n > 62 {
		t.Errorf("%d batches of %d decisions", info.Batches, n)
	}
	c.Add(-25 * time.Hour)
	settle(t, e, c, time.Second, 3)
	if after, _ := e.Get(t.Context(), "shop"); after.Batches != info.Batches {
		t.Errorf("%d batches, then %d", info.Batches, after.Batches)
	}
}

// An experiment whose database was replaced by an older one can be read and stopped, and no more,
// also after another restart.
func TestOlderDatabase(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	cfg := Config{Store: store.SQLite(dir), Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, shop)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sotto.db")
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); err != nil || s != Accepted {
		t.Fatal(s, err)
	}
	if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e = open(t, cfg)
		info, err := e.Get(t.Context(), "shop")
		if err != nil || info.State != Failed || !strings.Contains(info.Reason, "gone back") {
			t.Fatalf("%+v, %v", info, err)
		}
		if d, err := e.Decide(t.Context(), "shop", "ann"); err != nil || d.Reason != Disabled || d.Token != "" {
			t.Errorf("it decides %+v, %v", d, err)
		}
		if err := e.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e = open(t, cfg)
	if err := e.Stop(t.Context(), "shop", "blue"); err != nil {
		t.Error(err)
	}
}

// Who is assigned stays so over a restart, and is answered the same.
func TestStickyIsDurable(t *testing.T) {
	cfg := Config{Store: store.SQLite(t.TempDir()), Clock: newClock().Now}
	e := open(t, cfg)
	begin(t, e, shop)
	before := map[string]Decision{}
	for i := range 300 {
		unit := fmt.Sprint("unit ", i)
		d, err := e.Decide(t.Context(), "shop", unit)
		if err != nil {
			t.Fatal(err)
		}
		before[unit] = d
		if i%100 == 99 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
		}
	}
	for unit, d := range before {
		again, err := e.Decide(t.Context(), "shop", unit)
		if err != nil || again.Token != d.Token || again.Arm != d.Arm || again.Propensity != d.Propensity ||
			!again.Expires.Equal(d.Expires) {
			t.Fatalf("%+v, was %+v, %v", again, d, err)
		}
		if s, err := e.Reward(t.Context(), "shop", Report{again.Token, 1}); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
	}
}

// A unit is assigned as often as it may be, and no more.
func TestAssignments(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, strings.NewReplacer("assignments: 1", "assignments: 2", "floor: 0.1",
		"sticky: false").Replace(shop))
	begin(t, e, strings.NewReplacer("assignments: 1", "assignments: 2", "name: shop",
		"name: sticky").Replace(shop))
	tokens := map[string]bool{}
	for i := range 4 {
		d, err := e.Decide(t.Context(), "shop", "ann")
		if err != nil || tokens[d.Token] && i < 3 || (d.Reason == Limit) != (i > 1) {
			t.Errorf("assignment %d: %+v, %v", i, d, err)
		}
		tokens[d.Token] = true
		want := Accepted
		if i > 1 {
			want = OverLimit
		}
		if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != want || err != nil {
			t.Errorf("assignment %d: %v, %v", i, s, err)
		}
	}
	clear(tokens)
	for range 5 {
		for range 2 {
			d, err := e.Decide(t.Context(), "sticky", "ann")
			if err != nil || d.Reason != Split {
				t.Errorf("%+v, %v", d, err)
			}
			tokens[d.Token] = true
		}
		c.Add(time.Minute)
	}
	if len(tokens) != 2 {
		t.Errorf("a sticky unit had %d assignments", len(tokens))
	}
}

// Tokens that are not this experiment's are errors, whatever is wrong with them.
func TestTokens(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, shop)
	begin(t, e, strings.Replace(shop, "name: shop", "name: other", 1))
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	bad := []string{"", "x", strings.Repeat("A", 58), strings.Repeat("A", 1<<20), d.Token + "A",
		d.Token[:57] + "\n"}
	for i := range d.Token {
		b := []byte(d.Token)
		b[i] ^= 1
		bad = append(bad, string(b))
	}
	for _, token := range bad {
		if s, err := e.Reward(t.Context(), "shop", Report{token, 1}); !errors.Is(err, ErrToken) {
			t.Errorf("%.80q: %v, %v", token, s, err)
		}
	}
	if s, err := e.Reward(t.Context(), "other", Report{d.Token, 1}); !errors.Is(err, ErrToken) {
		t.Errorf("of another experiment: %v, %v", s, err)
	}
	if _, err := e.Reward(t.Context(), "none", Report{d.Token, 1}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	out, err := e.Rewards(t.Context(), "shop", []Report{{"x", 1}, {d.Token, 1}, {d.Token, 0}})
	if err != nil || !errors.Is(out[0].Err, ErrToken) || out[1].Status != Accepted ||
		out[2].Status != Accepted {
		t.Errorf("%+v, %v", out, err)
	}
	for _, unit := range []string{"", strings.Repeat("u", 1<<20)} {
		if d, err := e.Decide(t.Context(), "shop", unit); !errors.Is(err, ErrUnit) || len(err.Error()) > 200 {
			t.Errorf("%+v, %v", d, err)
		}
	}
	c.Add(time.Minute)
	if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Late || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// An arm that is taken off is given to nobody, by the policy or the floor, also after a restart;
// its rewards go unreleased, and the other arms go on.
func TestTakeOff(t *testing.T) {
	c, cfg := newClock(), Config{Store: store.NewMemory().Open}
	cfg.Clock = c.Now
	e := open(t, cfg)
	begin(t, e, strings.NewReplacer("arms: [", "arms: [green, ", "floor: 0.1",
		"floor: 0.5\nsticky: false").Replace(shop))
	var last Decision
	for range 30 {
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil {
			t.Fatal(err)
		}
		if d.Name == "red" {
			last = d
		}
	}
	if err := e.TakeOff(t.Context(), "shop", "pink"); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if err := e.TakeOff(t.Context(), "shop", "red"); err != nil {
		t.Fatal(err)
	}
	if err := e.TakeOff(t.Context(), "shop", "red"); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if err := e.Close(); err != nil { // it was promised, and is done after a restart
		t.Fatal(err)
	}
	e = open(t, cfg)
	settle(t, e, c, time.Second, 3)
	for restart := range 2 {
		for range 100 {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil || d.Name == "red" || d.Propensity != 0.25 && d.Propensity != 0.75 {
				t.Fatalf("restart %d: %+v, %v", restart, d, err)
			}
		}
		if s, err := e.Reward(t.Context(), "shop", Report{last.Token, 1}); s != Late || err != nil {
			t.Errorf("a decision of the arm: %v, %v", s, err)
		}
		settle(t, e, c, 10*time.Second, 10)
		info, err := e.Get(t.Context(), "shop")
		if err != nil || info.Arms[1].Released != 0 || !info.Arms[1].Off || info.Arms[0].Released == 0 {
			t.Errorf("%+v, %v", info.Arms, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
	}
	if err := e.TakeOff(t.Context(), "shop", "blue"); err != nil {
		t.Error(err)
	}
	if err := e.TakeOff(t.Context(), "shop", "green"); !errors.Is(err, ErrState) {
		t.Errorf("the last arm is taken off: %v", err)
	}
	for _, gone := range []string{"red", "blue"} { // blue will be, at the next tick
		if err := e.Stop(t.Context(), "shop", gone); err == nil || !strings.Contains(err.Error(), "off for good") {
			t.Errorf("%s is kept: %v", gone, err)
		}
	}
}

// blind is a store whose lines cannot be read from the n-th time on.
type blind struct {
	store.Store
	left *int
}

func (s blind) Lines(ctx context.Context, id int64, from int) iter.Seq2[[]byte, error] {
	if *s.left--; *s.left < 0 {
		return func(yield func([]byte, error) bool) { yield(nil, errDisk) }
	}
	return s.Store.Lines(ctx, id, from)
}

// A store that cannot be read at a start, or is closed in the middle of it, ends no experiment.
func TestUnreadableStart(t *testing.T) {
	for left := range 2 { // the transcript is read, and then played
		mem, c := store.NewMemory(), newClock()
		cfg := Config{Store: mem.Open, Clock: c.Now}
		e := open(t, cfg)
		begin(t, e, shop)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		cfg.Store = func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return blind{s, &left}, err
		}
		if e, err := Open(t.Context(), cfg); !errors.Is(err, errDisk) {
			t.Errorf("a store that cannot be read is opened: %v", err)
			_ = e.Sync(t.Context())
			_ = e.Close()
		}
		cfg.Store = mem.Open
		if info, err := open(t, cfg).Get(t.Context(), "shop"); err != nil || info.State != Running {
			t.Errorf("then it is %s: %s, %v", info.State, info.Reason, err)
		}
	}
}
