package sim_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sotto-dp/sotto/noise"
	liveplay "github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// grid is a world of so many contexts and actions, each pair with a component of its own beside an
// intercept; the best action of context i is i.
func grid(contexts, actions int, low, high float64) *sim.Visits {
	w := &sim.Visits{Dim: 1 + contexts*actions}
	for i := range contexts {
		set, means := make([]float64, actions*w.Dim), make([]float64, actions)
		for a := range actions {
			set[a*w.Dim], set[a*w.Dim+1+i*actions+a] = 0.5, 0.5
			means[a] = low
		}
		means[i%actions] = high
		w.Of, w.Actions, w.Means = append(w.Of, i), append(w.Actions, set), append(w.Means, means)
	}
	return w
}

func visits(t testing.TB, w *sim.Visits, b privacy.Budget, o linear.OFULOptions, horizon, window int,
	floor float64, run int) sim.VisitsConfig {
	t.Helper()
	p, err := linear.NewOFUL(w.Dim, horizon, b, o)
	if err != nil {
		t.Fatal(err)
	}
	s := noise.Key{Seed: 7, Run: run, Role: noise.RoleReward}.Fast(4)
	return sim.VisitsConfig{Policy: p, World: w, Horizon: horizon, Window: window, Floor: floor,
		Checkpoints: []int{horizon / 2, horizon}, Visitors: &s[0], Rewards: &s[1], Coins: &s[2], Noise: &s[3]}
}

// A plain replay of a run, decision by decision, that asks for every choice, keeps every reward and
// sums by hand: at budget None there is no noise, and it must meet the same plays.
func TestRunVisitsByHand(t *testing.T) {
	w := grid(3, 4, -0.2, 0.4)
	w.Of = []int{0, 0, 1, 2}
	// twice another action becomes the best of each context: from decision 901, and from 1801 to the end
	w.Every = 900
	for turn := range 2 {
		means := grid(3, 4, -0.2, -0.2).Means
		for i := range means {
			means[i][(i+turn+1)%4] = 0.4
		}
		w.Later = append(w.Later, means)
	}
	o := linear.OFULOptions{Lambda: 1, C: 0.5, Risk: 0.01}
	const horizon = 3000
	for _, window := range []int{1, 37} {
		cfg := visits(t, w, privacy.None{}, o, horizon, window, 0.2, window)
		visitors, rewards, coins := *cfg.Visitors, *cfg.Rewards, *cfg.Coins
		var releases []int
		cfg.Released = func(n int) { releases = append(releases, n) }
		var out sim.Result
		if err := sim.RunVisits(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		p, err := linear.NewOFUL(w.Dim, horizon, privacy.None{}, o)
		if err != nil {
			t.Fatal(err)
		}
		type cut struct {
			ends int
			sum  []float64
		}
		var cuts []cut
		var seen []int
		chosen := [3]int{-1, -1, -1}
		ledger := privacy.NewLedger()
		sum, plays, regret, best := make([]float64, w.Dim), make([]int, 4), 0.0, 0.0
		for n := 1; n <= horizon; n++ {
			for len(cuts) > 0 && cuts[0].ends+window <= n {
				r, err := ledger.ReleaseVector(len(seen), p.Mechanism(),
					&privacy.Vector{N: 1, Value: cuts[0].sum})
				if err != nil {
					t.Fatal(err)
				}
				p.Learn(r)
				seen, cuts = append(seen, n-1), cuts[1:]
				chosen = [3]int{-1, -1, -1}
			}
			i := w.Of[int(visitors.Float64()*4)]
			from, a := int(visitors.Float64()*4), chosen[i]
			if a < 0 {
				var listed []float64
				for k := range 4 {
					at := (from + k) % 4
					listed = append(listed, w.Actions[i][at*w.Dim:][:w.Dim]...)
				}
				if a = (p.Best(listed) + from) % 4; len(seen) > 0 {
					chosen[i] = a
				}
			}
			if x, y := coins.Float64(), coins.Float64(); x < 0.2 {
				a = int(y * 4)
			}
			top := (i + min((n-1)/900, 2)) % 4
			reward, mean := -1.0, -0.2
			if a == top {
				mean = 0.4
			}
			if rewards.Float64() < (mean+1)/2 {
				reward = 1
			}
			v := w.Actions[i][a*w.Dim:][:w.Dim]
			for j, x := range v {
				sum[j] += x * reward
			}
			if p.Play(v); p.Due() >= 0 {
				p.Cut()
				cuts, sum = append(cuts, cut{n, sum}), make([]float64, w.Dim)
			}
			plays[a]++
			if a == top {
				best++
			} else {
				regret += 0.6
			}
		}
		if !slices.Equal(plays, out.Plays) || !slices.Equal(seen, releases) || len(seen) != out.Releases ||
			len(seen) < 20 || best != out.PlaysBest[1] || math.Abs(regret-out.Regret[1]) > 1e-9*regret {
			t.Errorf("window %d: plays %v, regret %v, best %v, %d releases; by hand %v, %v, %v, %d", window,
				out.Plays, out.Regret, out.PlaysBest, out.Releases, plays, regret, best, len(seen))
		}
	}
}

// A run is what people are played: play.Live with contexts, with its exact sums, meets the same decisions
// and the same releases where there is no noise.
func TestRunVisitsIsLive(t *testing.T) {
	w := grid(2, 3, -0.2, 0.4)
	o := linear.OFULOptions{Lambda: 2, C: 0.5, Risk: 0.01}
	const horizon = 2000
	for _, window := range []int{1, 41} {
		cfg := visits(t, w, privacy.None{}, o, horizon, window, 0.1, window)
		visitors, rewards, coins := *cfg.Visitors, *cfg.Rewards, *cfg.Coins
		var out sim.Result
		if err := sim.RunVisits(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		p, err := linear.NewOFUL(w.Dim, horizon, privacy.None{}, o)
		if err != nil {
			t.Fatal(err)
		}
		live, err := liveplay.New(liveplay.Config{Contexts: p, Lo: -1, Hi: 1, Default: -1,
			Window: int64(window), Epoch: liveplay.Epoch{1}})
		if err != nil {
			t.Fatal(err)
		}
		plays, releases, chosen := make([]int, 3), 0, [2]int{-1, -1}
		for now := range int64(horizon) {
			for {
				c, err := live.Close(now)
				if err != nil {
					t.Fatal(err)
				}
				if c == nil {
					break
				}
				if err := live.Commit(c); err != nil {
					t.Fatal(err)
				}
				releases++
				chosen = [2]int{-1, -1}
			}
			i := w.Of[int(visitors.Float64()*2)]
			from, a := int(visitors.Float64()*3), chosen[i]
			if a < 0 { // of equal scores the first is played, so that it matters when one asks
				set := w.Actions[i]
				if a = (live.Best(slices.Concat(set[from*w.Dim:], set[:from*w.Dim])) + from) % 3; releases > 0 {
					chosen[i] = a
				}
			}
			if x, y := coins.Float64(), coins.Float64(); x < 0.1 {
				a = int(y * 3)
			}
			ticket, err := live.Decide(liveplay.Decision{Vector: w.Actions[i][a*w.Dim:][:w.Dim]}, now)
			if err != nil {
				t.Fatal(err)
			}
			reward := -1.0
			if 2*rewards.Float64()-1 < w.Means[i][a] {
				reward = 1
			}
			if _, err := live.Settle(ticket, reward, now); err != nil {
				t.Fatal(err)
			}
			plays[a]++
		}
		if !slices.Equal(plays, out.Plays) || releases != out.Releases || releases < 20 {
			t.Errorf("window %d: plays %v, %d releases; live %v, %d", window, out.Plays,
				out.Releases, plays, releases)
		}
	}
}

// It learns, with privacy less than without, and the ledger has the price.
func TestRunVisitsLearns(t *testing.T) {
	w := grid(3, 4, -0.5, 0.3)
	best, uniform := w.Earns()
	if math.Abs(best-0.3) > 1e-12 || math.Abs(uniform-(-0.3)) > 1e-12 {
		t.Fatalf("earns %v, %v", best, uniform)
	}
	o := linear.OFULOptions{Lambda: 30, C: 1, Risk: 0.01, Greed: 1}
	const horizon = 20_000
	won := func(b privacy.Budget) (share float64, out sim.Result) {
		for run := range 4 {
			if err := sim.RunVisits(context.Background(), visits(t, w, b, o, horizon, 50, 0.1, run),
				&out); err != nil {
				t.Fatal(err)
			}
			share += (1 - out.Regret[1]/(horizon*(best-uniform))) / 4
		}
		return share, out
	}
	plain, _ := won(privacy.None{})
	one, out := won(privacy.ZCDP{Rho: 1})
	little, _ := won(privacy.ZCDP{Rho: 0.001})
	// a floor of 0.1 leaves 0.9 of what is to be won
	if !(plain > 0.8 && plain < 0.9 && one > 0.7 && little < 0.5) {
		t.Errorf("won %v, at ρ = 1 %v, at ρ = 0.001 %v", plain, one, little)
	}
	if rho := out.Loss.ZCDP(); !(math.Abs(rho-1) < 1e-9) {
		t.Errorf("the ledger has ρ = %v, want 1", rho)
	}
}

func TestRunVisitsErrors(t *testing.T) {
	w := grid(2, 2, 0, 0.5)
	o := linear.OFULOptions{Lambda: 1, C: 1, Risk: 0.01}
	for want, change := range map[string]func(*sim.VisitsConfig){
		"policy or world": func(c *sim.VisitsConfig) { c.World = nil },
		"horizon is 0":    func(c *sim.VisitsConfig) { c.Horizon = 0 },
		"window is 0":     func(c *sim.VisitsConfig) { c.Window = 0 },
		"floor is NaN":    func(c *sim.VisitsConfig) { c.Floor = math.NaN() },
		"floor is 1":      func(c *sim.VisitsConfig) { c.Floor = 1 },
		"stream":          func(c *sim.VisitsConfig) { c.Coins = nil },
		"checkpoint":      func(c *sim.VisitsConfig) { c.Checkpoints = []int{11} },
		"the mean 2":      func(c *sim.VisitsConfig) { c.World.Means[0][1] = 2 },
		"are of context":  func(c *sim.VisitsConfig) { c.World.Of = []int{2} },
		"context 1: action 2 has norm 1.5, must be at most 1": func(c *sim.VisitsConfig) {
			c.World.Actions = [][]float64{make([]float64, 2*c.World.Dim), make([]float64, 2*c.World.Dim)}
			c.World.Actions[1][2*c.World.Dim-1] = 1.5
		},
		"nobody":  func(c *sim.VisitsConfig) { c.World.Of = nil },
		"3 means": func(c *sim.VisitsConfig) { c.World.Means[1] = make([]float64, 3) },
	} {
		own := *w
		own.Means = [][]float64{slices.Clone(w.Means[0]), slices.Clone(w.Means[1])}
		cfg := visits(t, &own, privacy.None{}, o, 10, 1, 0, 0)
		change(&cfg)
		if err := sim.RunVisits(context.Background(), cfg, new(sim.Result)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sim.RunVisits(ctx, visits(t, w, privacy.None{}, o, 10, 1, 0, 0),
		new(sim.Result)); err != ctx.Err() {
		t.Errorf("cancelled: %v", err)
	}
}

// shown is a policy that is shown each set, and told of each decision.
type shown struct {
	sim.LatePolicy
	sampler
}

type sampler interface{ Sample(actions []float64) int }

// A policy that knows all sets, and is told of many decisions at once, plays the same run: of vectors that are whole
// steps, and of others.
func TestRunVisitsOfSets(t *testing.T) {
	const horizon = 5000
	for run, scale := range []float64{1, 0.9} {
		w := grid(3, 4, -0.2, 0.4)
		for _, set := range w.Actions {
			for j := range set {
				set[j] *= scale
			}
		}
		var results [2]sim.Result
		for i := range results {
			coins := noise.NewFast(5, 6)
			p, err := linear.NewLinTS(w.Dim, privacy.ZCDP{Rho: 1}, linear.LinTSOptions{Alpha: 0.6, First: 100,
				Intercept: true, Memory: 1500}, &coins)
			if err != nil {
				t.Fatal(err)
			}
			cfg := visits(t, w, privacy.None{}, linear.OFULOptions{Lambda: 1, C: 1, Risk: 0.01}, horizon, 50, 0.05, run)
			if cfg.Policy = p; i == 1 {
				cfg.Policy = shown{p, p}
			}
			if err := sim.RunVisits(context.Background(), cfg, &results[i]); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(results[1], results[0], cmpopts.IgnoreFields(sim.Result{}, "Loss")); d != "" || results[0].Releases < 8 {
			t.Errorf("scale %v: %d releases; -shown +known\n%s", scale, results[0].Releases, d)
		}
	}
}
