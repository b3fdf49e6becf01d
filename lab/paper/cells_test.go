package paper

import (
	"context"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// played are the figures of [Sajed 2019], [Chowdhury and Zhou 2023], [Azize et al. 2023] and
// [Azize 2024, §5.5.3].
func played() []Figure { return slices.Concat(elimination(), distributed(), identification()) }

func TestPlayedSettings(t *testing.T) {
	figures := played()
	if err := check(figures); err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		for _, x := range f.Experiments {
			for _, quick := range []bool{false, true} {
				spec, err := experiment.Reader{}.Read(filepath.Join("settings", x.File))
				if err != nil {
					t.Fatal(err)
				}
				if quick && x.Quick != nil {
					x.Quick(spec)
				}
				if _, err := spec.Resolve(); err != nil {
					t.Errorf("%s, quick %v: %v", x.File, quick, err)
				}
				if !quick && strings.TrimSuffix(x.File, ".yaml") != spec.Name {
					t.Errorf("%s is named %s", x.File, spec.Name)
				}
			}
		}
		for _, c := range f.Claims {
			if c.Text == "" || c.Statistic == "" || c.Decide == nil {
				t.Errorf("%s/%s says too little", f.ID, c.ID)
			}
		}
	}
}

// tiny plays a figure's experiments in three runs of few rounds.
func tiny(t *testing.T, f Figure) *Evidence {
	t.Helper()
	e := &Evidence{Preset: Full, Experiments: map[string]*experiment.Results{}}
	for _, x := range f.Experiments {
		spec, err := experiment.Reader{}.Read(filepath.Join("settings", x.File))
		if err != nil {
			t.Fatal(err)
		}
		spec.Runs, spec.Horizon, spec.Points = 3, min(spec.Horizon, 2000), 12
		spec.Cap = min(spec.Cap, 3000)
		if spec.Horizon == 0 {
			spec.Points = 0
		}
		r, err := experiment.Run(context.Background(), spec,
			experiment.Options{Out: filepath.Join(t.TempDir(), "out"), Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		e.Experiments[x.Name] = r
	}
	return e
}

// TestPlayedClaims plays every figure shortly, asks every claim, draws, and then asks the claims
// again with results made up: each must be able to hold and to fail.
func TestPlayedClaims(t *testing.T) {
	testkit.RacedBefore(t)
	if testing.Short() {
		t.Skip("plays")
	}
	for _, f := range played() {
		t.Run(f.ID, func(t *testing.T) {
			e := tiny(t, f)
			if f.Compute != nil {
				e.Numbers = &Numbers{Values: map[string][]float64{"printed": {0, 1}}}
			}
			for _, c := range f.Claims {
				if got, v := decide(&c, e); v == Errored {
					t.Errorf("%s: %s", c.ID, got.Detail)
				}
			}
			if d, err := draw(&f, e); err != nil || len(d.figures)+len(d.tables) == 0 {
				t.Errorf("%d figures, %d tables, error %v", len(d.figures), len(d.tables), err)
			}
			empty := &Evidence{Preset: Quick}
			for _, c := range f.Claims {
				if got, v := decide(&c, empty); got.Answer != Undecided || v != NotTested && v != OurFinding {
					t.Errorf("%s without results: %s, %s", c.ID, got.Answer, v)
				}
			}
			seen := map[string]map[Answer]bool{}
			random := rand.New(rand.NewPCG(7, 7))
			for left, round := 1, 0; left > 0 && round < 400; round++ {
				makeUp(e, random)
				left = 0
				for _, c := range f.Claims {
					if rare(f, c) {
						continue
					}
					if seen[c.ID] == nil {
						seen[c.ID] = map[Answer]bool{}
					}
					if v := seen[c.ID]; !v[Holds] || !v[Fails] {
						got, verdict := decide(&c, e)
						if verdict == Errored {
							t.Fatalf("%s: %s", c.ID, got.Detail)
						}
						v[got.Answer] = true
						left++
					}
				}
			}
			for _, c := range f.Claims {
				if v := seen[c.ID]; !rare(f, c) && (!v[Holds] || !v[Fails]) {
					t.Errorf("%s came out %v only", c.ID, v)
				}
			}
		})
	}
}

// rare says that a claim is four in one, which made-up results hardly ever bear out together:
// TestClaimsOfAdaPTTStarComeOutEachWay has results for each of its answers.
func rare(f Figure, c Claim) bool { return f.ID == "thesis-5.7" && c.ID == "star" }

// makeUp replaces what runs found: a level of each policy in each experiment, and how it goes with
// ε, are drawn; runs differ by a thousandth.
func makeUp(e *Evidence, random *rand.Rand) {
	const n = 1500
	pick := func(x ...float64) float64 { return x[random.IntN(len(x))] }
	unit := pick(1, 1e9)
	level, slope, wrong, late := map[string]float64{}, map[string]float64{}, map[string]int{}, pick(0.5, 1)
	apart := pick(0.25, 1, 4) // how DP-SE 2 differs under C1
	for _, name := range slices.Sorted(maps.Keys(e.Experiments)) {
		r := e.Experiments[name]
		for i := range r.Cells {
			c := &r.Cells[i]
			key := name + "/" + c.Policy
			if _, ok := level[key]; !ok {
				level[key], slope[key], wrong[key] = pick(0.05, 0.2, 0.9, 1, 1, 1.02, 3, 15),
					pick(-0.5, 0, 0, 0.5), int(pick(0, n))
			}
			v := level[key] * unit
			if x := epsilonOf(place{c.Instance, c.Row()}); x > 0 {
				switch slope[key] {
				case -0.5:
					v /= 1 + x
				case 0.5:
					v *= 1 + x
				}
			}
			if c.Policy == se2 && strings.HasPrefix(c.Instance, "C1") {
				v *= apart
			}
			runs := make([]float64, n)
			best := make([]float64, n)
			for j := range runs {
				runs[j] = v * (1 + 0.001*random.Float64())
				best[j] = float64(r.Manifest.Horizon) - runs[j]
			}
			c.Failures = wrong[key]
			switch {
			case c.FinalStoppingTime != nil:
				c.FinalStoppingTime = runs
			case c.FinalSamples != nil:
				c.FinalSamples = runs
			default:
				c.FinalRegret, c.FinalPlaysBest = runs, best
				for j := range c.Regret.Mean {
					c.Regret.Mean[j] = v * late
				}
				c.Regret.Mean[len(c.Regret.Mean)-1] = v
			}
		}
	}
	if e.Numbers != nil {
		e.Numbers.Values["printed"] = []float64{pick(0, 0.01), 1}
	}
}

// ucbEvidence has regrets of DP-SE, and of DP-UCB under two bases, at ε = 1; 0 is not played.
func ucbEvidence(regret map[string][3]float64) *Evidence {
	e := &Evidence{Preset: Full, Experiments: map[string]*experiment.Results{fast: {}, slow: {}, slow2: {}}}
	for _, instance := range slices.Sorted(maps.Keys(regret)) {
		for i, of := range []struct{ name, policy string }{{fast, se}, {slow, ucb}, {slow2, ucb2}} {
			if v := regret[instance][i]; v > 0 {
				r := e.Experiments[of.name]
				r.Cells = append(r.Cells, experiment.CellResult{
					CellInfo: experiment.CellInfo{Instance: instance, Policy: of.policy,
						Budget: "epsilon=1"},
					FinalRegret: []float64{v, v * 1.001, v * 0.999, v},
				})
			}
		}
	}
	return e
}

// The base of logarithms is the source's to choose: a claim holds if it does under one of them, in
// all settings that there are.
func TestEitherBase(t *testing.T) {
	check := eitherBase(se, above(5), nil)
	for name, c := range map[string]struct {
		regret map[string][3]float64
		want   Answer
	}{
		"natural":            {map[string][3]float64{"C1": {1, 6, 3}, "C2": {1, 7, 3}}, Holds},
		"base 2":             {map[string][3]float64{"C1": {1, 4, 12}, "C2": {1, 7, 20}}, Holds},
		"neither":            {map[string][3]float64{"C1": {1, 4, 12}, "C2": {1, 7, 3}}, Fails},
		"part of base 2":     {map[string][3]float64{"C1": {1, 4, 12}, "C2": {1, 7, 0}}, Undecided},
		"part of both":       {map[string][3]float64{"C1": {1, 6, 12}, "C2": {1, 0, 0}}, Undecided},
		"part, which refute": {map[string][3]float64{"C1": {1, 4, 3}, "C2": {1, 0, 0}}, Fails},
	} {
		if f, err := check.Of(ucbEvidence(c.regret)); err != nil || f.Answer != c.want {
			t.Errorf("%s: %+v, %v, want %s", name, f, err, c.want)
		}
	}
}

// Claims that hold, but each under another base, do not hold together.
func TestNoBase(t *testing.T) {
	on := func(instance string) func(place) bool { return func(p place) bool { return p.instance == instance } }
	check := noBase(ask{se, above(5), on("C1")}, ask{se, below(1), on("C4")})
	for name, c := range map[string]struct {
		regret map[string][3]float64
		want   Answer
	}{
		"each its own":   {map[string][3]float64{"C1": {1, 3, 12}, "C4": {1, 0.5, 2}}, Holds},
		"natural both":   {map[string][3]float64{"C1": {1, 6, 12}, "C4": {1, 0.5, 2}}, Fails},
		"base 2 both":    {map[string][3]float64{"C1": {1, 3, 12}, "C4": {1, 0.5, 0.6}}, Fails},
		"base 2 unknown": {map[string][3]float64{"C1": {1, 3, 12}, "C4": {1, 0.5, 0}}, Undecided},
	} {
		if f, err := check.Of(ucbEvidence(c.regret)); err != nil || f.Answer != c.want {
			t.Errorf("%s: %+v, %v, want %s", name, f, err, c.want)
		}
	}
}

func TestUnpaired(t *testing.T) {
	r, lo, hi := unpaired([]float64{9, 10, 11}, []float64{5, 5, 5, 5}, 1)
	// All of the error is of the numerator: 2 ± t(2 degrees, 99 %)·(1/√3)/5.
	if want := 9.9248 * 0.57735 / 5; r != 2 || lo > 2-want*0.999 || lo < 2-want*1.001 ||
		hi < 2+want*0.999 || hi > 2+want*1.001 {
		t.Errorf("got %g in [%g, %g], want 2 ± %g", r, lo, hi, want)
	}
	if r, lo, hi := unpaired([]float64{6, 6}, []float64{3, 3}, 5); r != 2 || lo != 2 || hi != 2 {
		t.Errorf("without spread: %g in [%g, %g]", r, lo, hi)
	}
}

func TestRatioOfRatios(t *testing.T) {
	a, b := []float64{2, 4, 6}, []float64{1, 2, 3}
	if r, lo, hi := ratioOfRatios(a, b, b, a, 1); r != 4 || hi-lo > 1e-9 {
		t.Errorf("in proportion: %g in [%g, %g], want 4 without spread", r, lo, hi)
	}
}

func TestSampleOfRanking(t *testing.T) {
	shipped, err := os.ReadFile("../../examples/letor-arms.csv")
	if err != nil {
		t.Fatal(err)
	}
	used, err := os.ReadFile("settings/distributed-letor-arms.csv")
	if err != nil || string(used) != string(shipped) {
		t.Errorf("the sample is not that of the examples (error %v)", err)
	}
}
