package serve

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// Time of the simulated visitors: one comes every tenth of a second, so that a round of sim is that
// long, a tick ten rounds and the window 960.
const (
	visitEvery  = 100 * time.Millisecond
	visitTick   = 10
	visitWindow = 960
)

// visitors are simulated people on an engine: who comes when, and what they do.
type visitors struct {
	decl    Experiment
	laws    []bandit.Law
	rewards []noise.Fast
	most    int // visitors
	// wasteful is a broken twin: who comes while a batch waits is given its arm, and not counted
	wasteful bool
}

// A visited is what came of them.
type visited struct {
	plays   []int
	regret  float64
	answer  int // −1 if the experiment did not stop
	batches int // that were released; of an engine those that are shown
	coins   [16]byte
}

// run has the visitors come to an engine of their own, with rewards up to a window late. Those of 0
// report nothing.
func (v visitors) run(t testing.TB, cfg Config) visited {
	t.Helper()
	c := newClock()
	cfg.Clock, cfg.Store = c.Now, store.NewMemory().Open
	e := open(t, cfg)
	ctx, name := context.Background(), v.decl.Name
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(e.Create(ctx, v.decl))
	check(e.Start(ctx, name))
	in, err := bandit.NewInstance(v.laws...)
	check(err)
	gaps, late := in.Gaps(), rand.New(rand.NewPCG(1, 2))
	out := visited{plays: make([]int, len(v.laws)), answer: -1, coins: e.byName[name].rec.Coins}
	due := map[int][]Report{} // by tick
	for now := range v.most {
		if now%visitTick == 0 {
			if reports := due[now/visitTick]; len(reports) > 0 {
				results, err := e.Rewards(ctx, name, reports)
				check(err)
				for _, r := range results {
					if r.Err != nil || r.Status != Accepted {
						t.Fatalf("round %d: %+v", now, r)
					}
				}
				delete(due, now/visitTick)
			}
			check(e.Sync(ctx))
		}
		x, err := e.Get(ctx, name)
		check(err)
		if x.State == Stopping { // its answer is what everybody who comes is given
			out.answer = x.Next
			break
		}
		arm := -1
		if v.wasteful && x.State == Waiting {
			arm = e.byName[name].play.Arm()
		} else {
			d, err := e.Decide(ctx, name, "")
			check(err)
			if d.Token == "" {
				t.Fatalf("round %d: %+v", now, d)
			}
			arm = d.Arm
			if reward := v.laws[arm].Draw(&v.rewards[arm]); reward != 0 {
				at := (now + late.IntN(visitWindow-visitTick-1) + visitTick) / visitTick
				due[at] = append(due[at], Report{d.Token, reward})
			}
		}
		out.plays[arm]++
		c.Add(visitEvery)
	}
	out.regret = regretOf(gaps, out.plays)
	x, err := e.Get(ctx, name)
	check(err)
	out.batches = x.Batches
	return out
}

func regretOf(gaps []float64, plays []int) (sum float64) {
	for a, g := range gaps {
		sum += g * float64(plays[a])
	}
	return sum
}

// admitted are the policies of the catalog that are played live, with a declaration of each.
func admitted(t testing.TB, arms int, floor float64) []Experiment {
	t.Helper()
	var out []Experiment
	for _, bandit := range []string{catalog.BanditArms, catalog.BanditIdentify} {
		for _, entry := range (catalog.Catalog{}).For(bandit) {
			x := Experiment{Name: "visitors", Policy: decl.Policy{Policy: entry.Name},
				Unit: decl.Unit{Of: "visit"}, Window: visitWindow * visitEvery, Free: true, Floor: floor,
				Horizon: 100_000}
			if x.Budget = (privacy.Pure{Epsilon: 1}); entry.Meets(x.Budget) != nil {
				x.Budget = privacy.ZCDP{Rho: 0.5}
			}
			if bandit == catalog.BanditIdentify {
				x.Risk = 0.1
			}
			for a := range arms {
				x.Arms = append(x.Arms, decl.Arm{Name: fmt.Sprint("arm ", a)})
			}
			if x.Check() == nil {
				out = append(out, x)
			}
		}
	}
	if len(out) < 12 {
		t.Fatalf("only %d policies are admitted", len(out))
	}
	return out
}

// simulated is the run that sim predicts of the same people, rewards and noise.
func simulated(t testing.TB, v visitors, coins policy.Coins, privately *noise.Fast, d sim.Delay) visited {
	t.Helper()
	in, err := bandit.NewInstance(v.laws...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.decl.NewPolicy(coins)
	if err != nil {
		t.Fatal(err)
	}
	out := visited{answer: -1}
	if rule, ok := p.(identify.Identifier); ok && v.decl.Risk > 0 {
		var r sim.IdentifyResult
		err = sim.IdentifyDelayed(t.Context(), sim.IdentifyConfig{Policy: rule, Instance: in, Cap: v.most,
			Rewards: v.rewards, Noise: privately}, d, &r)
		out.plays, out.answer = r.Plays, r.Answer
	} else {
		var r sim.Result
		err = sim.RunDelayed(t.Context(), sim.Config{Policy: p, Instance: in, Horizon: v.most,
			Rewards: v.rewards, Noise: privately}, d, &r)
		out.plays, out.batches = r.Plays, r.Releases
	}
	if err != nil {
		t.Fatal(err)
	}
	out.regret = regretOf(in.Gaps(), out.plays)
	return out
}

func bernoullis(t testing.TB, means ...float64) []bandit.Law {
	t.Helper()
	in, err := bandit.BernoulliInstance(means...)
	if err != nil {
		t.Fatal(err)
	}
	return in.Arms
}

// The engine is what is simulated: with the same rewards, the same noise and public ticks, visitors
// whose rewards come up to a window late, or never, are given the arms that sim plays, one by one,
// under every policy that is played live; of an A/B test they are given arms by coins, in the same rows. An
// engine that throws away what is played while a batch
// waits is not, and loses by an order more.
func TestVisitorsAreTheSimulation(t *testing.T) {
	testkit.RacedBefore(t)
	const most = 6_000
	laws := bernoullis(t, 0.3, 0.8, 0.3)
	for _, decl := range admitted(t, len(laws), 0) {
		name := decl.Policy.Policy
		if decl.Risk > 0 {
			name = "to identify: " + name
		}
		t.Run(name, func(t *testing.T) {
			streams := func() visitors {
				return visitors{decl: decl, laws: laws, most: most,
					rewards: noise.Key{Seed: 1, Role: noise.RoleReward}.Fast(len(laws))}
			}
			engine := func(v visitors) visited {
				privately := noise.Key{Seed: 1, Role: noise.RoleNoise}.Fast(1)
				return v.run(t, Config{random: rand.NewChaCha8([32]byte{1}),
					Curator: func(c release.Config) (release.Curator, error) {
						return release.Simulated(c, &privately[0])
					}})
			}
			live := engine(streams())
			privately := noise.Key{Seed: 1, Role: noise.RoleNoise}.Fast(1)
			want := simulated(t, streams(), coinsOf(live.coins), &privately[0],
				sim.Delay{Window: visitWindow, Tick: visitTick})
			if joint, ok := policyOf(t, decl).(play.Joint); ok {
				// Visitors have arms by coins, and sim takes turns: it plays the same rows. Shares are missed by
				// 5.3 standard deviations with probability below 1.2e-7 an arm.
				for a, q := range joint.Shares(0) {
					if n := float64(live.plays[a]); math.Abs(n-q*most) > 5.3*math.Sqrt(q*(1-q)*most) {
						t.Errorf("%v of %d visitors were given arm %d", n, most, a)
					}
				}
				if d := want.batches - live.batches; d < 0 || d > 1 || live.batches < 10 { // one waits for its tick
					t.Errorf("%d rows were released, and sim has %d", live.batches, want.batches)
				}
				return
			}
			if !slices.Equal(live.plays, want.plays) || live.answer != want.answer {
				t.Errorf("visitors were given %v and answered %d, and sim plays %v and answers %d", live.plays,
					live.answer, want.plays, want.answer)
			}
			if decl.Risk > 0 {
				if live.answer != 1 {
					t.Errorf("it answered %d", live.answer)
				}
				return
			}
			twin := streams()
			twin.wasteful = true
			if bad := engine(twin); slices.Equal(bad.plays, want.plays) || bad.regret < want.regret {
				t.Errorf("what is played while a batch waits was thrown away: regret %v, and sim's %v",
					bad.regret, want.regret)
			}
		})
	}
}

func policyOf(t testing.TB, x Experiment) policy.Policy {
	t.Helper()
	p, err := x.NewPolicy(decl.ZeroCoins{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rankZ is the Mann–Whitney statistic of two samples, in standard deviations: above 0 where the
// first is larger. Ties count for the middle. Where both samples have one law all orders of their
// values are equally likely, and with 24 values or more in each the tails are lighter than the
// normal law's: 5.3 is exceeded, on either side, with probability below 1.2e-7.
func rankZ(a, b []float64) float64 {
	above, below, ties := 0.0, 0.0, 0.0
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				above++
			case x < y:
				below++
			default:
				ties++
			}
		}
	}
	n, m := float64(len(a)), float64(len(b))
	d := max(0, math.Abs(above-below)-ties) / 2
	return math.Copysign(d/math.Sqrt(n*m*(n+m+1)/12), above-below)
}

const mostZ = 5.3

// Regret of visitors is that which sim has, with a floor of traffic, each with noise, coins and
// people of its own; of an engine that throws away what is played while a batch waits it is not.
// There are at most 16 comparisons, with false alarms of 1.2e-7 each. SOTTO_VISITORS=60 has so many
// runs of every policy, on exact noise of the operating system's, and prints a table (make visitors).
func TestVisitorsRegret(t *testing.T) {
	testkit.RacedBefore(t)
	runs, most, all := 24, 4_000, false
	if text := os.Getenv("SOTTO_VISITORS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 24 {
			t.Fatalf("SOTTO_VISITORS is %q, must be a number of runs, at least 24", text)
		}
		runs, most, all = n, 20_000, true
	}
	const floor = 0.05
	laws := bernoullis(t, 0.4, 0.6, 0.4)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "policy\tvisitors lose\tsim\tthrown away")
	for _, decl := range admitted(t, len(laws), floor) {
		name := decl.Policy.Policy
		if decl.Risk > 0 {
			name += ", to identify"
		}
		if !all && name != "dp-klucb" && name != "lazy-dp-ts" {
			continue
		}
		people := func(role noise.Role, run int) visitors {
			return visitors{decl: decl, laws: laws, most: most,
				rewards: noise.Key{Seed: 2, Run: run, Cell: name, Role: role}.Fast(len(laws))}
		}
		lost := map[string][]float64{}
		for run := range runs {
			stream := func(role noise.Role) *noise.Fast {
				return &noise.Key{Seed: 3, Run: run, Cell: name, Role: role}.Fast(1)[0]
			}
			cfg := func(twin byte) Config {
				if all {
					return Config{}
				}
				privately := noise.Key{Seed: 4, Run: run, Cell: name, Role: noise.Role(twin)}.Fast(1)
				return Config{random: rand.NewChaCha8([32]byte{twin, byte(run)}),
					Curator: func(c release.Config) (release.Curator, error) {
						return release.Simulated(c, &privately[0])
					}}
			}
			add := func(what string, v visited) { lost[what] = append(lost[what], v.regret) }
			add("visitors", people("visitors", run).run(t, cfg(1)))
			add("sim", simulated(t, people(noise.RoleReward, run), stream(noise.RolePolicy),
				stream(noise.RoleNoise), sim.Delay{Window: visitWindow, Tick: visitTick, Floor: floor,
					Coins: stream(noise.RoleFloor)}))
			twin := people("twin", run)
			twin.wasteful = true
			add("twin", twin.run(t, cfg(2)))
		}
		if z := rankZ(lost["visitors"], lost["sim"]); math.Abs(z) > mostZ {
			t.Errorf("%s: visitors lose %v, and sim %v: z = %.2f", name, lost["visitors"], lost["sim"], z)
		}
		if z := rankZ(lost["twin"], lost["sim"]); name == "dp-klucb" && z < mostZ {
			t.Errorf("%s: what is played while a batch waits was thrown away, and it loses %v, "+
				"sim %v: z = %.2f",
				name, lost["twin"], lost["sim"], z)
		}
		text := func(what string) string {
			mean, half := stats.Half(lost[what], 0.95)
			return fmt.Sprintf("%.1f ± %.1f", mean, half)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", name, text("visitors"), text("sim"), text("twin"))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("mean regret of %d runs of %d visitors, with 95 %% intervals\n%s", runs, most, table.String())
}

// A day of decisions in simulated time, all of which report, in hundreds, up to an hour late: on
// SQLite, with exact noise, and the regret that sim predicts for delayed rewards. SOTTO_DAY=1e7 says
// how many decisions (make day). The regret is compared with 40 runs of sim, whose spread it has if
// it has their law: Student's prediction at 6 standard deviations, exceeded with probability 5e-7.
func BenchmarkDay(b *testing.B) {
	most, err := keyed.ParseCount(os.Getenv("SOTTO_DAY"))
	if err != nil {
		b.Skip("SOTTO_DAY says how many decisions")
	}
	const day, window, predicted = 24 * 60 * 60, 60 * 60, 40
	means := slices.Repeat([]float64{0.1}, 10)
	means[3] = 0.12
	laws := bernoullis(b, means...)
	x := Experiment{Name: "day", Policy: decl.Policy{Policy: "dp-klucb"},
		Budget: privacy.Pure{Epsilon: 1}, Unit: decl.Unit{Of: "visit"},
		Window: window * time.Second, Free: true}
	for a := range means {
		x.Arms = append(x.Arms, decl.Arm{Name: fmt.Sprint("arm ", a)})
	}
	v := visitors{decl: x, laws: laws, most: int(most)}
	var regret float64
	for b.Loop() {
		v.rewards = noise.Key{Seed: 5, Role: noise.RoleReward}.Fast(len(laws))
		regret = v.day(b, day, window)
	}
	b.ReportMetric(float64(b.N)*float64(most)/b.Elapsed().Seconds(), "decisions/s")
	var want []float64
	for run := range predicted {
		key := noise.Key{Seed: 6, Run: run, Role: noise.RoleReward}
		v.rewards = key.Fast(len(laws))
		key.Role = noise.RoleNoise
		rounds := int(int64(v.most) * window / day)
		want = append(want, simulated(b, v, nil, &key.Fast(1)[0],
			sim.Delay{Window: rounds, Tick: max(1, rounds/window)}).regret)
	}
	mean, sd, _ := stats.Mean(want)
	b.ReportMetric(regret, "regret")
	b.ReportMetric(mean, "predicted")
	b.ReportMetric(sd, "sd")
	if z := (regret - mean) / (sd * math.Sqrt(1+1./predicted)); math.Abs(z) > 6 {
		b.Errorf("a day of %d decisions loses %v, and sim predicts %v with a deviation of %v: z = %.2f", v.most,
			regret, mean, sd, z)
	}
}

// day plays a day of so many seconds, and is its regret.
func (v visitors) day(b *testing.B, day, window int) float64 {
	b.Helper()
	c := newClock()
	e := open(b, Config{Clock: c.Now, Store: store.SQLite(b.TempDir())})
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	check(e.Create(ctx, v.decl))
	check(e.Start(ctx, v.decl.Name))
	in, err := bandit.NewInstance(v.laws...)
	check(err)
	due, late := make([][]Report, day+window), rand.New(rand.NewPCG(7, 8))
	plays, made := make([]int, len(v.laws)), 0
	var waiting []Report
	for now := range day {
		check(e.Sync(ctx))
		for ; made < int(int64(v.most)*int64(now+1)/int64(day)); made++ {
			d, err := e.Decide(ctx, v.decl.Name, "")
			check(err)
			plays[d.Arm]++
			at := now + late.IntN(window-window/60)
			due[at] = append(due[at], Report{d.Token, v.laws[d.Arm].Draw(&v.rewards[d.Arm])})
		}
		waiting, due[now] = append(waiting, due[now]...), nil
		for len(waiting) >= 100 {
			results, err := e.Rewards(ctx, v.decl.Name, waiting[:100])
			check(err)
			for _, r := range results {
				if r.Status != Accepted {
					b.Fatalf("second %d: %+v", now, r)
				}
			}
			waiting = slices.Delete(waiting, 0, 100)
		}
		c.Add(time.Second)
	}
	return regretOf(in.Gaps(), plays)
}
