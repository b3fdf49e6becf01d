package serve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// splitOf is splitShop with other lines beside its own.
func splitOf(t testing.TB, pairs ...string) string {
	t.Helper()
	return strings.NewReplacer(pairs...).Replace(splitShop)
}

// pairs is Pearson's statistic for decisions two by two, of arms drawn with these shares: of 4
// cells, so that above 30.66 are one in a million (χ² of 3 degrees of freedom).
func pairs(arms []int, shares [2]float64) (q float64) {
	var n [2][2]float64
	for i := 0; i+1 < len(arms); i += 2 {
		n[arms[i]][arms[i+1]]++
	}
	for a := range 2 {
		for b := range 2 {
			want := shares[a] * shares[b] * float64(len(arms)/2)
			q += (n[a][b] - want) * (n[a][b] - want) / want
		}
	}
	return q
}

// Coins are tossed with the declared shares, each for itself, and the propensity says so; asked again
// is answered the same. A service that takes turns, or whose coins are fair, is caught. One sound
// service in a million would be, by chance; the seed is fixed.
func TestSplitCoins(t *testing.T) {
	const most = 30.66
	shares := [2]float64{0.7, 0.3}
	e := open(t, Config{Store: store.NewMemory().Open, random: rand.NewChaCha8([32]byte{3})})
	begin(t, e, splitShop)
	var arms, turns, fair []int
	for i := range 20_000 {
		x := mustFind(t, e, "shop")
		x.mu.Lock()
		turns, fair = append(turns, x.play.Arm()), append(fair, x.coins.IntN(2))
		x.mu.Unlock()
		d, err := e.Decide(t.Context(), "shop", fmt.Sprint(i))
		if err != nil || d.Reason != Split || d.Propensity != shares[d.Arm] {
			t.Fatalf("%+v, %v", d, err)
		}
		if again, err := e.Decide(t.Context(), "shop", fmt.Sprint(i)); err != nil || again.Token != d.Token ||
			again.Propensity != d.Propensity {
			t.Fatalf("asked again: %+v, was %+v, %v", again, d, err)
		}
		arms = append(arms, d.Arm)
	}
	if q := pairs(arms, shares); q > most {
		t.Errorf("the coins: χ² = %.1f", q)
	}
	if q := pairs(turns, shares); q < most {
		t.Errorf("a service that takes turns is not caught: χ² = %.1f", q)
	}
	if q := pairs(fair, shares); q < most {
		t.Errorf("fair coins are not caught: χ² = %.1f", q)
	}
}

// A rank tells the shares of all arms.
func TestSplitRank(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open})
	begin(t, e, splitOf(t, "arms: [", "arms: [green, ", "red: 0.7", "green: 0.5, red: 0.2"))
	for i := range 10 {
		for range 2 {
			r, err := e.Rank(t.Context(), "shop", RankAsk{Event: fmt.Sprint(i),
				Actions: []Action{{ID: "red"}, {ID: "blue"}, {ID: "green"}}})
			if err != nil || !slices.Equal(r.Ranked, []Ranked{{"red", 0.2}, {"blue", 0.3}, {"green", 0.5}}) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	}
}

// What is released of each row is the rewards of its decisions, in their order and of all arms, over
// restarts at every row, while later rows fill. The bill is the declared ε once.
func TestSplitRows(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	var mu sync.Mutex
	var got [][3]int64 // arm, n, steps
	cfg := Config{Store: mem.Open, Clock: c.Now, Curator: silent(func(arm, n int, steps int64) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, [3]int64{int64(arm), int64(n), steps})
	})}
	e := open(t, cfg)
	begin(t, e, splitShop)
	p, err := mustFind(t, e, "shop").decl.NewPolicy(nil)
	if err != nil {
		t.Fatal(err)
	}
	end := p.(interface{ JointEnd(n int) int }).JointEnd
	src := rand.New(rand.NewPCG(8, 9))
	type decided struct {
		arm   int
		steps int64
	}
	var all []decided
	for round := range 120 {
		for range 5 + src.IntN(15) {
			d, err := e.Decide(t.Context(), "shop", fmt.Sprint(len(all)))
			if err != nil {
				t.Fatal(err)
			}
			one := decided{arm: d.Arm}
			if src.Float64() < 0.4 {
				r := float64(src.IntN(5)) / 4
				one.steps = int64(r * (1 << 20))
				if s, err := e.Reward(t.Context(), "shop", Report{d.Token, r}); err != nil || s != Accepted {
					t.Fatal(s, err)
				}
			}
			all = append(all, one)
		}
		settle(t, e, c, 5*time.Second, 1)
		if round%3 == 2 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
		}
	}
	settle(t, e, c, time.Second, 120)
	info, err := e.Get(t.Context(), "shop")
	if err != nil || info.Batches < 10 || info.Spent.Pure() > 1 || info.Spent.Pure() < 0.9 {
		t.Fatalf("%d batches, spent %v, %v", info.Batches, info.Spent, err)
	}
	from, at := 0, 0
	for row := range info.Batches {
		to := end(from)
		if to > len(all) {
			t.Fatalf("row %d ends at %d, of %d decisions", row, to, len(all))
		}
		var want [2][3]int64
		for _, d := range all[from:to] {
			want[d.arm][0] = int64(d.arm)
			want[d.arm][1]++
			want[d.arm][2] += d.steps
		}
		for _, w := range want {
			if w[1] > 0 {
				if at >= len(got) || got[at] != w {
					t.Fatalf("row %d of decisions %d to %d released %v, must be %v", row, from, to-1, got[min(at,
						len(got)-1)], w)
				}
				at++
			}
		}
		from = to
	}
	if at != len(got) || end(from) <= len(all) {
		t.Errorf("%d sums were released, must be %d; rows to %d of %d decisions", len(got), at, from, len(all))
	}
}

// An A/B test is replayed from its lines, also where decisions are met, retracted or dropped, and
// under local trust.
func TestSplitReplay(t *testing.T) {
	for name, more := range map[string]string{"": "", "retract": "exposure: retract\n", "activate": "exposure: activate\n",
		"drop": "missing: drop\nreports: every\n", "rho": "", "local": "trust: local\n"} {
		t.Run(name, func(t *testing.T) {
			c, cfg := newClock(), Config{}
			mem := store.NewMemory()
			cfg.Store, cfg.Clock = mem.Open, c.Now
			e := open(t, cfg)
			text := splitOf(t, "{of: person, assignments: 1}", "{of: visit}\nsticky: false") + more
			if name == "rho" {
				text = strings.Replace(text, "{epsilon: 1}", "{rho: 0.5}", 1)
			}
			begin(t, e, text)
			var info Info
			for n := 0; n < 60 && info.Batches < 6; n++ {
				for i := range 20 {
					d, err := e.Decide(t.Context(), "shop", "")
					if err != nil {
						t.Fatal(err)
					}
					switch {
					case name == "activate" && i%4 > 0:
						_, err = e.Activate(t.Context(), "shop", d.Token, true)
					case name == "retract" && i%4 == 0:
						_, err = e.Activate(t.Context(), "shop", d.Token, false)
					case name == "local": // nothing needs to come
					case i%2 == 0:
						_, err = e.Reward(t.Context(), "shop", Report{d.Token, 1})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				settle(t, e, c, 10*time.Second, 2)
				if n%4 == 3 {
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					e = open(t, cfg)
				}
				time.Sleep(time.Millisecond) // for who gathers
				info, _ = e.Get(t.Context(), "shop")
			}
			r, err := Replay(strings.NewReader(published(t, e)), catalog.Catalog{})
			if err != nil || r.Batches != info.Batches || r.Batches < 6 || r.Tip != info.Tip ||
				r.Spent.Pure() != info.Spent.Pure() {
				t.Fatalf("%v; %d batches, spent %v, must be %d and %v", err, r.Batches, r.Spent, info.Batches, info.Spent)
			}
			for a, arm := range info.Arms {
				arm.Decisions = 0
				if arm != r.Arms[a] || arm.Released == 0 {
					t.Errorf("arm %d is %+v, and was %+v", a, r.Arms[a], arm)
				}
			}
		})
	}
}

// What an A/B test has not: a floor, also later, and arms that are taken off.
func TestSplitKeepsItsShares(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open})
	begin(t, e, splitShop)
	floor := 0.1
	if err := e.Change(t.Context(), "shop", Change{Floor: &floor}); err == nil ||
		!strings.Contains(err.Error(), "each arm keeps its share") {
		t.Error(err)
	}
	if err := e.TakeOff(t.Context(), "shop", "red"); !errors.Is(err, ErrState) ||
		!strings.Contains(err.Error(), "policy split cannot go on without an arm") {
		t.Error(err)
	}
	longer := 2 * time.Minute
	if err := e.Change(t.Context(), "shop", Change{Window: &longer}); err != nil {
		t.Error(err)
	}
}

// An arm joins an A/B test that runs: with its share from the row on that opens next, over restarts at any place, and
// what there was before is known alike to page, restart and replay, of metrics and cells too. Coins are held against
// the shares that there were.
func TestArmJoinsSplit(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		c, cfg := newClock(), Config{Store: store.NewMemory().Open, random: rand.NewChaCha8([32]byte{3})}
		cfg.Clock = c.Now
		e := open(t, cfg)
		again := func() {
			if restarts {
				must(0, e.Close())
				e = open(t, cfg)
			}
		}
		begin(t, e, splitShop+"by: {device: [phone, desktop]}\ncell_minimum: 1\nmetrics: [{name: basket, budget: {epsilon: 1}}]\n")
		var arms []int
		come := func(n int) {
			t.Helper()
			var out []Outcome
			for range n {
				d := must(e.DecideFor(t.Context(), "shop", Ask{Unit: fmt.Sprint(len(arms)),
					Context: map[string]any{"device": []string{"phone", "desktop"}[len(arms)%2]}}))
				arms = append(arms, d.Arm)
				out = append(out, Outcome{Report: Report{d.Token, 1}, Metrics: map[string]float64{"basket": 0.5}})
			}
			must(e.Outcomes(t.Context(), "shop", out))
		}
		come(700)
		again()
		settle(t, e, c, time.Hour, 2)
		come(30)
		for _, bad := range []float64{-1, 1, 1e-6, 0.9999} {
			var of *keyed.Error
			err := e.Change(t.Context(), "shop", Change{Add: []Added{{Name: "green", Share: bad}}})
			if !errors.As(err, &of) || of.Field != "add[0].share" && of.Field != "add[0]" {
				t.Errorf("share %v: %v", bad, err)
			}
		}
		must(0, e.Change(t.Context(), "shop", Change{Add: []Added{{Name: "green", Share: 0.25}, {Name: "white"}}}))
		settle(t, e, c, time.Second, 3)
		again()
		from := 0
		for _, line := range transcript(t, e) {
			if _, rest, ok := strings.Cut(line, `"add":3,"from":`); ok {
				fmt.Sscan(rest, &from)
			}
		}
		come(1500)
		if first := slices.Index(arms, 2); from < 730 || first < from || first > from+100 {
			t.Errorf("the first of the arm is decision %d, its row begins at %d", first, from)
		}
		again()
		settle(t, e, c, time.Hour, 3)
		come(200)
		again()
		settle(t, e, c, time.Hour, 3)
		info := must(e.Get(t.Context(), "shop"))
		counts := make([]int, 4)
		for _, a := range arms[:from] {
			counts[a]++
		}
		for a := 2; a < 4; a++ {
			j := info.Arms[a].Joined
			if j == nil || j.Arms[0].Decisions != counts[0] || j.Arms[1].Decisions != counts[1] || j.Arms[0].Released != counts[0] ||
				len(j.Metrics) != 1 || info.Cells[0].Arms[a].Joined.Arms[0].Released == 0 || info.Arms[a].Released == 0 {
				t.Fatalf("arm %d joined %+v, must have %v before", a, j, counts)
			}
		}
		if got, want := info.Experiment.SharesAfter(2), []float64{0.7 * 0.75 * 0.75, 0.3 * 0.75 * 0.75, 0.25 * 0.75, 0.25}; !slices.EqualFunc(got, want,
			func(x, y float64) bool { return x-y < 1e-12 && y-x < 1e-12 }) {
			t.Errorf("shares %v, must be %v", got, want)
		}
		if r := info.SampleRatio(); r.Alarm || r.Arms[3].Drawn < 100 || r.Arms[0].Drawn+r.Arms[1].Drawn+r.Arms[2].Drawn+r.Arms[3].Drawn != len(arms) {
			t.Errorf("%+v", r)
		}
		unfair := info // as if they had had the shares of now from the start
		unfair.Arms = slices.Clone(info.Arms)
		for a := 2; a < 4; a++ {
			unfair.Arms[a].Joined = joinedTo(make([]ArmInfo, a+1), nil)
		}
		if r := unfair.SampleRatio(); !r.Alarm {
			t.Errorf("coins with other shares are not caught: %+v", r)
		}
		verdict := VerdictOf(&info.Experiment, info.Arms)
		r, err := Replay(strings.NewReader(published(t, e)), catalog.Catalog{})
		if err != nil {
			t.Fatal(err)
		}
		if got := VerdictOf(&r.Experiment, r.Arms); !reflect.DeepEqual(got, verdict) || verdict.Earned != nil || len(verdict.Over) != 3 {
			t.Errorf("the verdict is %+v, replayed %+v", verdict, got)
		}
		if got, want := r.Measured(), info.Measured(); !reflect.DeepEqual(got, want) || want.Each[0].Arms[3].DifferenceInterval == nil {
			t.Errorf("measured %+v, replayed %+v", want, got)
		}
		if got, want := r.ByCell(), info.ByCell(); !reflect.DeepEqual(got, want) {
			t.Errorf("by cell %+v, replayed %+v", want, got)
		}
		if end := stopped(t, e, c, "shop", "red"); end.State != Stopped {
			t.Errorf("%+v", end.Reason)
		}
		if _, err := Replay(strings.NewReader(published(t, e)), catalog.Catalog{}); err != nil {
			t.Error(err)
		}
	}
}
