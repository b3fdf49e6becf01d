package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/release"
)

// sumShop is an experiment whose reward is the sum of a decision's reports, with a count beside it.
var sumShop = strings.Replace(shop, "default: 0}", "default: 0, aggregate: sum}", 1) +
	"metrics: [{name: orders, range: [0, 4], default: 0, aggregate: count, budget: {epsilon: 0.25}}]\n"

// ordered is one order: its reward is a quarter less for each that is taken back.
func ordered(token string, id int, reward float64) Outcome {
	return Outcome{Report: Report{token, reward}, ID: fmt.Sprint("order ", id), Metrics: map[string]float64{"orders": 1}}
}

// What is released is the sum over decisions of all that each reported, clipped once, whatever the order, however
// often each report was sent, over restarts, on each kind of store; and then no total is left anywhere.
func TestTotals(t *testing.T) {
	dir := t.TempDir()
	for name, disk := range map[string]func(context.Context) (store.Store, error){
		"memory": store.NewMemory().Open, "sqlite": store.SQLite(dir),
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restart), func(t *testing.T) {
				c, rewards, orders := newClock(), newSums(), newSums()
				cfg := Config{Store: disk, Clock: c.Now, Curator: func(rc release.Config) (release.Curator, error) {
					if rc.Hi == 4 {
						return silent(orders.tell)(rc)
					}
					return silent(rewards.tell)(rc)
				}}
				e := open(t, cfg)
				decl := parse(t, sumShop)
				decl.Name = fmt.Sprint("shop-", restart)
				if err := errors.Join(e.Create(t.Context(), decl), e.Start(t.Context(), decl.Name)); err != nil {
					t.Fatal(err)
				}
				src := rand.New(rand.NewPCG(1, 2))
				var want [2][][2]int64
				var names [][]byte
				for i := range 100 {
					d, err := e.Decide(t.Context(), decl.Name, fmt.Sprint(i))
					if err != nil {
						t.Fatal(err)
					}
					total, n := 0.0, src.IntN(6)
					for id := range n {
						r := float64(src.IntN(9)-2) / 8
						total += r
						one := ordered(d.Token, id, r)
						batch := []Outcome{one, one} // as who has had no answer
						if restart && i%40 == 20 {
							batch = batch[:1]
						}
						out, err := e.Outcomes(t.Context(), decl.Name, batch)
						if err != nil || out[0] != (Result{Status: Accepted}) || out[len(out)-1] != out[0] {
							t.Fatal(out, err)
						}
						if restart && i%40 == 20 {
							if err := e.Close(); err != nil {
								t.Fatal(err)
							}
							e = open(t, cfg)
							if out, err := e.Outcomes(t.Context(), decl.Name, []Outcome{one}); err != nil || out[0].Status != Accepted {
								t.Fatal(out, err)
							}
						}
					}
					if n > 0 {
						x := mustFind(t, e, decl.Name)
						x.mu.Lock()
						k, _ := x.sign.read(d.Token)
						names = append(names, binary.BigEndian.AppendUint64(nil, x.nameOf(k.arm, int(k.number), "order 0")))
						x.mu.Unlock()
					}
					total = max(0, min(total, 1)) * (1 << 20)
					want[d.Arm] = append(want[d.Arm], [2]int64{int64(total), int64(min(n, 4)) << 18})
				}
				if name == "sqlite" && len(holds(t, dir, names[len(names)-1])) == 0 {
					t.Error("a total is in no file before its release")
				}
				settle(t, e, c, time.Second, 70)
				if err := e.Stop(t.Context(), decl.Name, ""); err != nil { // which releases the rest
					t.Fatal(err)
				}
				settle(t, e, c, time.Second, 70)
				for a := range want {
					var sums [2]int64
					for _, w := range want[a] {
						sums[0], sums[1] = sums[0]+w[0], sums[1]+w[1]
					}
					if rewards.n[a] != len(want[a]) || rewards.steps[a] != sums[0] || orders.steps[a] != sums[1] {
						t.Errorf("arm %d: of %d decisions %d and %d steps, must be of %d, %v", a, rewards.n[a],
							rewards.steps[a], orders.steps[a], len(want[a]), sums)
					}
				}
				x := mustFind(t, e, decl.Name)
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				s, err := disk(t.Context())
				if err == nil {
					_, err = s.Begin(t.Context(), "test")
				}
				if err != nil {
					t.Fatal(err)
				}
				if in, err := s.Load(t.Context(), x.id); err != nil || len(in.Totals) > 0 {
					t.Errorf("%d totals are left, %v", len(in.Totals), err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				for i := range names {
					if left := name == "sqlite" && i%7 == 0 && len(holds(t, dir, names[i])) > 0; left {
						t.Fatalf("the id of a report is in a file after its release")
					}
				}
			})
		}
	}
}

// Two worlds: what a decision reports, be it nothing or a hundred reports, moves one release of each sum by at
// most the range, and nothing else. A copy in which each report counts by itself is caught.
func TestTotalMovesOneRelease(t *testing.T) {
	releases := func(her []float64, twin bool) (all [2][]int64) {
		c := newClock()
		e := open(t, Config{Store: func(ctx context.Context) (store.Store, error) {
			s, err := store.NewMemory().Open(ctx)
			return fixed{s}, err
		}, Clock: c.Now, random: rand.NewChaCha8([32]byte{7}), Curator: func(rc release.Config) (release.Curator, error) {
			sum := 0
			if rc.Hi == 4 {
				sum = 1
			}
			return silent(func(_, _ int, steps int64) { all[sum] = append(all[sum], steps) })(rc)
		}})
		begin(t, e, sumShop)
		for i := range 60 {
			d, err := e.Decide(t.Context(), "shop", fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			mine := []float64{0.25, 0.25}
			if i == 30 {
				mine = her
			}
			for id, r := range mine {
				if _, err := e.Outcomes(t.Context(), "shop", []Outcome{ordered(d.Token, id, r)}); err != nil {
					t.Fatal(err)
				}
				if x := mustFind(t, e, "shop"); twin { // which knows nothing of what came before
					x.mu.Lock()
					k, _ := x.sign.read(d.Token)
					s, _ := x.play.Segment(k.arm, int(k.number))
					at := int(k.number) - s.Start
					delete(s.Totals, at)
					s.Came[at>>6] &^= 1 << (at & 63)
					x.mu.Unlock()
				}
			}
		}
		settle(t, e, c, time.Second, 70)
		if err := e.Stop(t.Context(), "shop", ""); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Second, 70)
		return all
	}
	many := make([]float64, 100)
	for i := range many {
		many[i] = 0.75
	}
	without := releases(nil, false)
	moved := func(all [2][]int64) (n int, far bool) {
		for j := range all {
			if len(all[j]) != len(without[j]) || len(all[j]) < 2 {
				t.Fatalf("%d releases, and %d without hers", len(all[j]), len(without[j]))
			}
			for i, sum := range all[j] {
				if d := sum - without[j][i]; d != 0 {
					n, far = n+1, far || d > 1<<20 || d < -1<<20
				}
			}
		}
		return n, far
	}
	for _, her := range [][]float64{many, {-5, 0.5, 1e300}, {1}} {
		if n, far := moved(releases(her, false)); n != 2 || far {
			t.Errorf("%d of their reports move %d sums, by more than the range: %v", len(her), n, far)
		}
	}
	if _, far := moved(releases(many, true)); !far {
		t.Error("a copy in which each report counts by itself is not caught")
	}
}

// Erasing a unit destroys its total. What it was worth stays in the sum; what it reports later counts nowhere.
func TestErasedTotal(t *testing.T) {
	dir, c, got := t.TempDir(), newClock(), newSums()
	cfg := Config{Store: store.SQLite(dir), Clock: c.Now, Curator: silent(got.tell)}
	e := open(t, cfg)
	begin(t, e, sumShop)
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	report := func(id int, reward float64) {
		t.Helper()
		out, err := e.Outcomes(t.Context(), "shop", []Outcome{ordered(d.Token, id, reward)})
		if err != nil || out[0] != (Result{Status: Accepted}) {
			t.Fatal(out, err)
		}
	}
	report(1, 0.25)
	x := mustFind(t, e, "shop")
	x.mu.Lock()
	k, _ := x.sign.read(d.Token)
	name := binary.BigEndian.AppendUint64(nil, x.nameOf(k.arm, int(k.number), "order 1"))
	x.mu.Unlock()
	if len(holds(t, dir, name)) == 0 {
		t.Fatal("its total is in no file before")
	}
	for _, unit := range []string{"nobody", "ann"} {
		if err := e.Erase(t.Context(), "shop", unit); err != nil {
			t.Fatal(err)
		}
	}
	if left := holds(t, dir, name); len(left) > 0 {
		t.Errorf("its total is in %v", left)
	}
	for range 2 {
		report(2, 0.5)
		x := mustFind(t, e, "shop")
		x.mu.Lock()
		if s, _ := x.play.Segment(k.arm, int(k.number)); s.Sum != 1<<18 || s.More[0] != 1<<18 {
			t.Errorf("the sums are %d, %v", s.Sum, s.More)
		}
		x.mu.Unlock()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
	}
}

// Where reports add up each needs an id; one of metrics alone needs no reward; else it must have one. No answer
// says what was there, and forced decisions say whether one report by itself would be clipped.
func TestReportsOfADecision(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open})
	begin(t, e, sumShop)
	if err := e.Create(t.Context(), parse(t, strings.Replace(shop, "name: shop", "name: first", 1))); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	token := func(name, force string) string {
		d, err := e.DecideFor(t.Context(), name, Ask{Unit: "ann", Force: force})
		if err != nil {
			t.Fatal(err)
		}
		return d.Token
	}
	orders := map[string]float64{"orders": 9}
	for _, c := range []struct {
		name, force string
		Outcome
		want string
	}{
		{"shop", "", Outcome{Report: Report{Reward: 1}}, "id: is missing"},
		{"shop", "", Outcome{Report: Report{Reward: 1}, ID: strings.Repeat("x", 257)}, "id: has 257 bytes"},
		{"shop", "", Outcome{Report: Report{Reward: math.NaN()}, ID: "a", Metrics: orders}, "accepted"},
		{"shop", "", Outcome{Report: Report{Reward: 1}, ID: "a"}, "accepted"},
		{"first", "", Outcome{Report: Report{Reward: math.NaN()}, ID: "a"}, "reward: is missing"},
		{"first", "", Outcome{Report: Report{Reward: 1}, ID: "a"}, "accepted"},
		{"shop", "red", Outcome{Report: Report{Reward: 1}, ID: "a", Metrics: orders}, "in_range"},
		{"shop", "red", Outcome{Report: Report{Reward: 1.5}, ID: "a"}, "clipped"},
		{"shop", "red", Outcome{Report: Report{Reward: math.NaN()}, ID: "a", Metrics: orders}, "in_range"},
	} {
		c.Token = token(c.name, c.force)
		out, err := e.Outcomes(t.Context(), c.name, []Outcome{c.Outcome})
		if err != nil {
			t.Fatal(err)
		}
		var of *keyed.Error
		if got := string(out[0].Status); got != c.want && !(errors.As(out[0].Err, &of) &&
			strings.HasPrefix(of.Error(), c.want)) {
			t.Errorf("%s %q %+v: %+v, must be %s", c.name, c.force, c.Outcome, out[0], c.want)
		}
	}
	var of *keyed.Error
	if _, err := e.RewardEvent(t.Context(), "shop", "ann", 1); !errors.As(err, &of) || of.Field != "id" {
		t.Errorf("an event's report without an id: %v", err)
	}
	if s, err := e.ReportEvent(t.Context(), "shop", "ann", "b", 1); s != Accepted || err != nil {
		t.Error(s, err)
	}
}

// A row is read as it was written, and nothing else is.
func TestTotalRows(t *testing.T) {
	for _, want := range []play.Total{{}, {Sums: []play.Running{{Has: true, Up: 1 << 62, Down: 5}, {}},
		Names: []uint64{1, math.MaxUint64}}, {Sums: make([]play.Running, 2)}} {
		b := appendTotal(nil, want)
		if got, err := readTotal(b, 2); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v, %v, must be %+v", got, err, want)
		}
		for i := range b {
			if i > 0 && (i < 6 || i%8 != len(b)%8) {
				if _, err := readTotal(b[:i], 2); err == nil {
					t.Errorf("%d of %d bytes are read", i, len(b))
				}
			}
		}
	}
	for _, row := range []store.Total{{Arm: 2}, {Arm: -1}, {Number: 3}, {Number: 5, Data: []byte{2}}} {
		if err := addTotals([]play.Queue{{}, {Segments: []play.Segment{{Start: 4}}}}, []store.Total{row}, 1); err == nil {
			t.Errorf("%+v is put somewhere", row)
		}
	}
}

// Of an experiment that has failed nothing will be released, so erasing a unit destroys all of its totals.
func TestErasedTotalOfWhatFailed(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	e := open(t, Config{Store: store.SQLite(dir), Clock: c.Now})
	begin(t, e, sumShop)
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := e.Outcomes(t.Context(), "shop", []Outcome{ordered(d.Token, 1, 0.25)}); err != nil {
		t.Fatal(out, err)
	}
	x := mustFind(t, e, "shop")
	x.mu.Lock()
	k, _ := x.sign.read(d.Token)
	name := binary.BigEndian.AppendUint64(nil, x.nameOf(k.arm, int(k.number), "order 1"))
	x.fail(errors.New("a disk that lies"))
	x.todo |= theRecord
	x.mu.Unlock()
	settle(t, e, c, time.Second, 5)
	if len(holds(t, dir, name)) == 0 {
		t.Fatal("its total is in no file before")
	}
	if err := e.Erase(t.Context(), "shop", "ann"); err != nil {
		t.Fatal(err)
	}
	if left := holds(t, dir, name); len(left) > 0 {
		t.Errorf("its total is in %v", left)
	}
}

// A report that comes too late is the same work whether one came before: how long an answer takes would tell.
func TestLateReportsWriteNothing(t *testing.T) {
	for _, before := range []bool{false, true} {
		c, commits := newClock(), 0
		e := open(t, Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
			s, err := store.NewMemory().Open(ctx)
			return countingStore{s, &commits}, err
		}})
		begin(t, e, sumShop)
		d, err := e.Decide(t.Context(), "shop", "ann")
		if err != nil {
			t.Fatal(err)
		}
		if before {
			if _, err := e.Outcomes(t.Context(), "shop", []Outcome{ordered(d.Token, 1, 1)}); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, e, c, time.Second, 90)
		commits = 0
		out, err := e.Outcomes(t.Context(), "shop", []Outcome{ordered(d.Token, 2, 1)})
		if err != nil || out[0].Status != Late || commits != 0 {
			t.Errorf("reported before: %v: %v, %v after %d commits", before, out, err, commits)
		}
	}
}

// A countingStore counts commits.
type countingStore struct {
	store.Store
	n *int
}

func (s countingStore) Commit(ctx context.Context, c store.Commit) error {
	*s.n++
	return s.Store.Commit(ctx, c)
}
