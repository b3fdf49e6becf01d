package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// Other people's bandits of K arms beside ours, on the same random instances at the same ρ: auto has
// less regret than each of the private ones, by more than five standard errors of the difference; seeds
// are fixed. SOTTO_RUNS=24 prints a table, over so many instances a column.
func TestPeersOfArmsLose(t *testing.T) {
	if testkit.Race {
		t.Skip("one goroutine that simulates round by round, slow under the race detector")
	}
	type class struct {
		arms    int
		lo, hi  float64
		rho     float64
		horizon int
	}
	classes, worlds := []class{{10, 0.25, 0.75, 0.5, 10_000}}, 12
	if n, err := strconv.Atoi(os.Getenv("SOTTO_RUNS")); err == nil {
		worlds = n
		classes = []class{{5, 0.25, 0.75, 0.5, 100_000}, {20, 0.25, 0.75, 0.5, 100_000}, {5, 0.01, 0.05, 0.5, 100_000},
			{20, 0.01, 0.05, 0.5, 100_000}, {20, 0.01, 0.05, 0.05, 100_000}}
	}
	type player struct {
		name string
		peer bool // private, of others
		lose func(c class, in bandit.Instance, world int) float64
	}
	ours := func(name string, of func(rho float64) privacy.Budget) func(class, bandit.Instance, int) float64 {
		return func(c class, in bandit.Instance, world int) float64 {
			params := catalog.Params{}
			if name == "auto" {
				params["rate"] = (c.lo + c.hi) / 2
			}
			cfg := config(t, in, name, of(c.rho), c.horizon, world, params)
			cfg.Checkpoints = []int{c.horizon}
			var out sim.Result
			if err := sim.Run(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			return out.Regret[0]
		}
	}
	by := func(play func(b thompson, rho float64) float64) func(class, bandit.Instance, int) float64 {
		return func(c class, in bandit.Instance, world int) float64 {
			b := thompson{r: rand.New(rand.NewPCG(uint64(world), 7)), horizon: c.horizon}
			for _, law := range in.Arms {
				b.means = append(b.means, law.Mean())
			}
			return play(b, c.rho)
		}
	}
	zcdp := func(rho float64) privacy.Budget { return privacy.ZCDP{Rho: rho} }
	none := func(float64) privacy.Budget { return privacy.None{} }
	players := []player{{"auto", false, ours("auto", zcdp)}}
	for _, name := range []string{"zcdp-imed", "dp-imed"} {
		players = append(players, player{name, false, ours(name, zcdp)})
	}
	players = append(players, player{"thompson", false, ours("thompson", none)}, player{"imed", false, ours("imed", none)})
	for _, name := range []string{"lazy-dp-ts", "adac-ucb", "adap-klucb"} {
		players = append(players, player{name, true, ours(name, zcdp)})
	}
	players = append(players, player{"DP-TS-UCB", true, by(func(b thompson, rho float64) float64 { return b.dpTSUCB(1, rho) })})
	for _, plays := range []int{10, 100, 1000} {
		players = append(players, player{fmt.Sprintf("Thompson sampling itself, b = %d", plays), true,
			by(func(b thompson, rho float64) float64 { return b.drawing(plays, rho) })})
	}
	rows := make([]string, len(players))
	for _, c := range classes {
		lost := make([][]float64, len(players))
		for world := range worlds {
			r := rand.New(rand.NewPCG(uint64(world), 34))
			means := make([]float64, c.arms)
			for a := range means {
				means[a] = c.lo + (c.hi-c.lo)*r.Float64()
			}
			for i, p := range players {
				lost[i] = append(lost[i], p.lose(c, bernoulli(t, means...), world))
			}
		}
		for i, p := range players {
			more := make([]float64, worlds)
			for w := range more {
				more[w] = lost[i][w] - lost[0][w]
			}
			m, _, se := stats.Mean(lost[i])
			d, _, apart := stats.Mean(more)
			rows[i] += fmt.Sprintf(" %.4g ± %.2g |", m, 1.96*se)
			if p.peer && !(d > 5*apart) {
				t.Errorf("%+v: %s has %.4g ± %.2g more than auto", c, p.name, d, apart)
			}
		}
	}
	if len(classes) > 1 {
		for i, p := range players {
			t.Log("| " + p.name + " |" + rows[i])
		}
	}
}
