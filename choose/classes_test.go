package choose_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/choose"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// Classes of random instances: K Bernoulli arms whose means are uniform in a span. What auto picks is held
// there against every policy that is played, in the class and on each instance by itself.

var update = flag.Bool("update", false, "write the tables of classes in docs/grid.md anew")

const (
	classesFile = "testdata/classes.csv"
	classesPage = "../docs/grid.md"
	// with SOTTO_CLASSES=N:R, N instances a class with R runs each where there are two arms; with N:R:T, at
	// horizon T alone
	classesAsk = "SOTTO_CLASSES"
	// a seed that the rule was not fitted on
	classesSeed = 2028
)

// A class is random instances at a budget.
type class struct {
	budget privacy.Budget
	arms   int
	lo, hi float64
}

func (c class) rate() float64 { return (c.lo + c.hi) / 2 }

// classHorizons are rounds at which every run is looked at: all that is played is anytime.
var classHorizons = []int{10_000, 100_000, 1_000_000, 10_000_000}

func classes() (out []class) {
	for _, b := range []privacy.Budget{privacy.ZCDP{Rho: 0.005}, privacy.ZCDP{Rho: 0.05}, privacy.ZCDP{Rho: 0.5},
		privacy.Pure{Epsilon: 0.1}, privacy.Pure{Epsilon: 0.3162}, privacy.Pure{Epsilon: 1}} {
		for _, span := range [][2]float64{{0.01, 0.05}, {0.25, 0.75}} {
			for _, k := range []int{2, 5, 10, 20, 50} {
				out = append(out, class{b, k, span[0], span[1]})
			}
		}
	}
	return out
}

// played are the policies that auto is held against, at their defaults. Left out are those that must know the
// horizon or decide in every round, and dp-klucb-j: on the grid of docs/grid.md none is near.
var played = []string{"zcdp-imed", "dp-imed", "dp-imed-j", "dp-klucb", "dp-ts"}

// A contender plays classes: a policy at its defaults, or as auto picks it.
type contender struct {
	entry  catalog.Entry
	given  catalog.Params
	params catalog.Params // complete
	label  string
}

func contenderOf(name string, given catalog.Params) (contender, error) {
	entry, err := catalog.Find(catalog.BanditArms, name)
	if err != nil {
		return contender{}, err
	}
	params, err := entry.Complete(given)
	return contender{entry, given, params, entry.Content(params)}, err
}

// pick is what auto picks for the class at a horizon.
func (c class) pick(horizon int) (contender, error) {
	p, err := catalog.Auto(catalog.Plan{Arms: c.arms, Budget: c.budget, Horizon: horizon, Rate: c.rate()})
	if err != nil {
		return contender{}, err
	}
	return contenderOf(p.Policy, p.Params)
}

// world has the class's instances under a seed.
func (c class) world(seed uint64) (sim.World, error) {
	source, err := bandit.NewUniformMeans(c.arms, c.lo, c.hi, bandit.BernoulliFamily(), true)
	if err != nil {
		return sim.World{}, err
	}
	return sim.NewWorld(source, 0, 1, seed)
}

// regrets are those of a contender, by horizon, instance and run.
func (c class) regrets(ctx context.Context, of contender, horizons []int, instances, runs int) ([][][]float64, error) {
	world, err := c.world(classesSeed)
	if err != nil {
		return nil, err
	}
	out := make([][][]float64, len(horizons))
	for h := range out {
		out[h] = make([][]float64, instances)
	}
	last := horizons[len(horizons)-1]
	var result sim.Result
	for i := range instances {
		in, err := world.Instance(i)
		if err != nil {
			return nil, err
		}
		for j := range runs {
			run := i<<16 + j
			noise, coins := sim.CellOf(of.label, c.budget).Streams(world.Run(run))
			p, err := of.entry.New(catalog.Setting{Arms: c.arms, Horizon: last, Budget: c.budget,
				Coins: sim.NewCoins(coins)}, of.params)
			if err == nil {
				err = sim.Run(ctx, sim.Config{Policy: p, Instance: in, Horizon: last, Checkpoints: horizons,
					Rewards: world.Rewards(run, c.arms), Noise: noise}, &result)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of.label, err)
			}
			for h, regret := range result.Regret {
				out[h][i] = append(out[h][i], regret)
			}
		}
	}
	return out, nil
}

// A standing is how a pick does in a class at a horizon.
type standing struct {
	class
	horizon     int
	pick, best  string  // best is the single policy with the lowest mean
	regret, se  float64 // of the pick
	ratio, half float64 // of its mean to that of the best, ± two standard errors over instances
	within      float64 // share of instances where it is within 1.25 of the best for the instance
	beyond      float64 // share of those where it is not, by more than two standard errors over runs
	instances   int
	runs        int // of each
}

// mean and its standard error, without the deviation between.
func mean(x []float64) (m, se float64) {
	m, _, se = stats.Mean(x)
	return m, se
}

// byInstance are the mean regrets of instances.
func byInstance(x [][]float64) (out []float64) {
	for _, runs := range x {
		m, _ := mean(runs)
		out = append(out, m)
	}
	return out
}

// stand holds what is picked at one horizon against the policies at their defaults.
func (c class) stand(horizon int, pick string, own [][]float64, others map[string][][]float64) standing {
	s := standing{class: c, horizon: horizon, pick: pick, instances: len(own), runs: len(own[0])}
	each := float64(len(own))
	ours := byInstance(own)
	least := make([][]float64, len(own)) // the runs of the best for the instance
	best, all := []float64(nil), math.Inf(1)
	for _, label := range slices.Sorted(maps.Keys(others)) {
		theirs := byInstance(others[label])
		if m, _ := mean(theirs); m < all {
			s.best, best, all = label, theirs, m
		}
		for i, x := range theirs {
			if m, _ := mean(least[i]); least[i] == nil || x < m {
				least[i] = others[label][i]
			}
		}
	}
	s.regret, s.se = mean(ours)
	s.ratio = s.regret / all
	rest := make([]float64, len(own)) // of the delta method
	for i, x := range ours {
		rest[i] = (x - s.ratio*best[i]) / all
		over := make([]float64, s.runs)
		for j := range over {
			over[j] = own[i][j] - 1.25*least[i][j]
		}
		switch m, se := mean(over); {
		case m <= 0:
			s.within += 1 / each
		case m > 2*se:
			s.beyond += 1 / each
		}
	}
	_, se := mean(rest)
	s.half = 2 * se
	return s
}

// compete plays all at these horizons, with fewer runs the more arms there are.
func (c class) compete(ctx context.Context, horizons []int, instances, runs int) ([]standing, error) {
	runs = max(6, runs*4/(c.arms+2))
	others := make([]map[string][][]float64, len(horizons))
	for h := range others {
		others[h] = map[string][][]float64{}
	}
	for _, name := range played {
		one, err := contenderOf(name, nil)
		if err != nil {
			return nil, err
		}
		if one.entry.Meets(c.budget) != nil {
			continue
		}
		at, err := c.regrets(ctx, one, horizons, instances, runs)
		if err != nil {
			return nil, err
		}
		for h := range at {
			others[h][one.label] = at[h]
		}
	}
	var out []standing
	for h, horizon := range horizons {
		pick, err := c.pick(horizon)
		if err != nil {
			return nil, err
		}
		own := others[h][pick.label]
		if own == nil {
			at, err := c.regrets(ctx, pick, horizons[h:h+1], instances, runs)
			if err != nil {
				return nil, err
			}
			own = at[0]
		}
		out = append(out, c.stand(horizon, pick.label, own, others[h]))
	}
	return out, nil
}

func (s standing) record() []string {
	f := func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
	return []string{s.budget.String(), strconv.Itoa(s.arms), f(s.lo), f(s.hi), strconv.Itoa(s.horizon), s.pick, s.best,
		f(s.regret), f(s.se), f(s.ratio), f(s.half), f(s.within), strconv.Itoa(s.instances), strconv.Itoa(s.runs),
		f(s.beyond), strconv.Itoa(classesSeed)}
}

// TestClasses plays the classes anew, and each replaces its rows; a part of them is
// played by name, and at one horizon:
//
//	SOTTO_CLASSES=16:64 go test ./choose -run 'Classes$' -v -timeout 0
//	SOTTO_CLASSES=24:64:10000 go test ./choose -run 'Classes$/rho=0.5_20_0.01' -v
func TestClasses(t *testing.T) {
	var instances, runs, last int
	if n, _ := fmt.Sscanf(os.Getenv(classesAsk), "%d:%d:%d", &instances, &runs, &last); n < 2 {
		t.Skipf("%s is not set", classesAsk)
	}
	horizons := classHorizons
	if last != 0 {
		horizons = []int{last}
	}
	for _, c := range classes() {
		t.Run(fmt.Sprint(c.budget, " ", c.arms, " ", c.lo), func(t *testing.T) {
			found, err := c.compete(t.Context(), horizons, instances, runs)
			if err != nil {
				t.Fatal(err)
			}
			rows := readClasses(t)
			for _, s := range found {
				t.Log(s.record())
				rows[strings.Join(s.record()[:5], " ")] = s.record()
			}
			writeClasses(t, rows)
		})
	}
}

// classesHead are the columns of the file.
var classesHead = []string{"budget", "arms", "low", "high", "horizon", "pick", "best", "regret", "se", "ratio", "half",
	"within", "instances", "runs", "beyond", "seed"}

// readClasses are the rows of the file, by their class and horizon.
func readClasses(t *testing.T) map[string][]string {
	out := map[string][]string{}
	data, err := os.ReadFile(classesFile)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		out[strings.Join(row[:5], " ")] = row
	}
	return out
}

func writeClasses(t *testing.T, rows map[string][]string) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	all := [][]string{classesHead}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, rows[key])
	}
	if err := errors.Join(w.WriteAll(all), os.WriteFile(classesFile, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// TestChosen asks which policy to use for the arms of some instances of each class of up to ten arms, and has all
// that were asked about play there again, in other worlds:
//
//	SOTTO_CLASSES=2:256 go test ./choose -run 'Chosen$' -v -timeout 0
func TestChosen(t *testing.T) {
	var instances, runs int
	if _, err := fmt.Sscanf(os.Getenv(classesAsk), "%d:%d", &instances, &runs); err != nil {
		t.Skipf("%s is not set", classesAsk)
	}
	asked, near, beyond := 0, 0, 0
	for _, c := range classes() {
		if c.arms > 10 {
			continue
		}
		world, err := c.world(classesSeed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range instances {
			in, err := world.Instance(1000 + i)
			if err != nil {
				t.Fatal(err)
			}
			q := choose.Question{Source: bandit.Fixed(in), Budget: c.budget, Horizon: classHorizons[i%2],
				Policies: c.candidates(classHorizons[i%2]), MinRuns: runs, MaxRuns: runs, Seed: 1}
			first, err := choose.Rank(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			q.Seed = 2
			again, err := choose.Rank(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			use := slices.IndexFunc(again.Rows, func(r choose.Row) bool { return r.Policy == first.Use().Policy })
			least := slices.MinFunc(again.Rows, func(a, b choose.Row) int { return cmp.Compare(a.Mean, b.Mean) })
			ratio := again.Rows[use].Mean / least.Mean
			asked++
			if se := math.Hypot(again.Rows[use].SD, 1.1*least.SD) / math.Sqrt(float64(runs)); ratio <= 1.1 {
				near++
			} else if again.Rows[use].Mean-1.1*least.Mean > 2*se {
				beyond++
			}
			t.Logf("%v, %d arms from %v, T = %d: %s has %.2f times the least", c.budget, c.arms, c.lo, q.Horizon,
				first.Use().Policy, ratio)
		}
	}
	lo, hi, err := stats.ClopperPearson(near, asked, 0.95)
	t.Logf("within 1.1 of the least: %d of %d, [%.3f, %.3f], %v; beyond by more than two standard errors: %d",
		near, asked, lo, hi, err, beyond)
}

// candidates are those that auto is held against and what it picks.
func (c class) candidates(horizon int) (out []choose.Candidate) {
	for _, name := range played {
		if one, err := contenderOf(name, nil); err == nil && one.entry.Meets(c.budget) == nil {
			out = append(out, choose.Candidate{Policy: name})
		}
	}
	if p, err := c.pick(horizon); err == nil && p.given != nil {
		out = append(out, choose.Candidate{Policy: p.entry.Name, Params: p.given})
	}
	return out
}

// The tables of classes in docs/grid.md say what the file says, and the file is of the rule as it is. With -update
// they are written anew:
//
//	go test ./choose -run ClassesPage -update
func TestClassesPage(t *testing.T) {
	rows := readClasses(t)
	var b strings.Builder
	b.WriteString("\n" + sumUp(t, rows, "rho", "ρ") + sumUp(t, rows, "epsilon", "ε"))
	for i, c := range classes() {
		if i%5 == 0 {
			fmt.Fprintf(&b, "\n%v, means from %v to %v:\n\n| arms | T = 10⁴ | 10⁵ | 10⁶ | 10⁷ |\n|---|---|---|---|---|\n", c.budget, c.lo, c.hi)
		}
		fmt.Fprintf(&b, "| %d |", c.arms)
		for _, horizon := range classHorizons {
			pick, err := c.pick(horizon)
			if err != nil {
				t.Fatal(err)
			}
			row, ok := rows[strings.Join((standing{class: c, horizon: horizon}).record()[:5], " ")]
			if !ok {
				b.WriteString(" – |")
				continue
			}
			if row[5] != pick.label {
				t.Errorf("%v: auto picks %s, and was measured with %s: play it again (TestClasses)", row[:5], pick.label, row[5])
			}
			of, _, _ := strings.Cut(row[5], " ")
			name, half := "", ""
			if of != "dp-ts" {
				name = "`" + of + "` "
			}
			if row[10] != "0" {
				half = " ± " + short(t, row[10], 2)
			}
			fmt.Fprintf(&b, " %s%s%s, %s %% |", name, short(t, row[9], 2), half, short(t, row[11], -2))
		}
		b.WriteString("\n")
	}
	page, err := os.ReadFile(classesPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- classes: go test ./choose -run ClassesPage -update -->\n", "\n<!-- end of classes -->"
	top, rest, ok := strings.Cut(string(page), begin)
	is, bottom, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the tables", classesPage)
	}
	if *update {
		if err := os.WriteFile(classesPage, []byte(top+begin+b.String()+end+bottom), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if is != b.String() {
		t.Error("docs/grid.md is not what testdata/classes.csv says: go test ./choose -run ClassesPage -update")
	}
}

// sumUp says in a sentence how the cells of a kind of budget are.
func sumUp(t *testing.T, rows map[string][]string, kind, name string) string {
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	var cells, near, far, share, within, beyond, seen, instances float64
	for key, row := range rows {
		if !strings.HasPrefix(key, kind) {
			continue
		}
		cells++
		if number(row[9]) <= 1.05 {
			near++
		}
		if number(row[9])-number(row[10]) > 1.05 {
			far++
		}
		within += number(row[11]) * number(row[12])
		instances += number(row[12])
		if number(row[11]) >= 0.9 {
			share++
		}
		if row[14] != "" {
			beyond += number(row[14]) * number(row[12])
			seen += number(row[12])
		}
	}
	return fmt.Sprintf("Budgets in %s: the ratio is at most 1.05 in %.0f of %.0f cells, and above by more than two standard errors in "+
		"%.0f; %.1f %% of the instances are within 1.25 of the best for them, and 90 %% at least in %.0f cells. Of %.0f that were played "+
		"with %d as their seed %.0f are beyond it by more than two standard errors over runs.\n",
		name, near, cells, far, 100*within/instances, share, seen, classesSeed, beyond)
}

// short writes a number with so many digits after the point, or in per cent.
func short(t *testing.T, text string, digits int) string {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	if digits < 0 {
		return strconv.FormatFloat(100*x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}
