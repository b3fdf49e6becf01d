package serve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
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
