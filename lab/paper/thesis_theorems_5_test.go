package paper

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/experiment"
)

func TestPrivacyOfChapter5ComesOutEachWay(t *testing.T) {
	cases := map[string][2]numbersOf{}
	for _, g := range promisedPolicies() {
		cases[g.claim] = [2]numbersOf{{"audit " + g.claim: {0.8, 1.1, 1.2, 1}},
			{"audit " + g.claim: {1.1, 1.2, 1.3, 1}}}
	}
	eachWay(t, privacyOfChapter5(), cases)
}

// Each policy's twin with too little noise is told by the same audit, and the policy itself is not:
// each is a false alarm with probability at most 10⁻⁷.
func TestTwinsOfChapter5AreTold(t *testing.T) {
	testkit.RacedBefore(t)
	if testing.Short() {
		t.Skip("takes games")
	}
	if testkit.Race {
		t.Skip("the goroutines of audits are those of package audit, where they play less")
	}
	for _, g := range promisedPolicies() {
		for _, broken := range []bool{false, true} {
			f, err := g.audited(context.Background(), 21520, testkit.Size(4000, 10_000), 256, 1e-7, broken)
			if err != nil {
				t.Fatalf("%s: %v", g.claim, err)
			}
			t.Logf("%s, broken %v: at least %.3f of %.3f, best attack %.3f", g.claim, broken, f.Low,
				f.Claimed, f.Estimate)
			if f.Refuted != broken {
				t.Errorf("%s, broken %v: at least %v of %v", g.claim, broken, f.Low, f.Claimed)
			}
		}
	}
}

// fiftyRuns are 50 runs near a mean.
func fiftyRuns(mean float64) []float64 {
	var x []float64
	for i := range 50 {
		x = append(x, mean*(1+0.001*float64(i%5-2)))
	}
	return x
}

func TestSamplesOfChapter5ComeOutEachWay(t *testing.T) {
	figure := samplesOfChapter5()
	eachWay(t, figure, map[string][2]numbersOf{
		"adap-tt": {}, "adap-tt-star": {}, // below
		"g1":          {{"g1": {9.9, 1, 0}}, {"g1": {10.1, 1, 0}}},
		"sixteen":     {one("sixteen", 16), one("sixteen", 17)},
		"eight":       {one("eight", 8), one("eight", 9)},
		"forty-eight": {one("48", 40), one("48", 49)},
	})
	of := func(policy string, risk, upper, ratio float64) *experiment.Results {
		c := experiment.CellResult{CellInfo: experiment.CellInfo{Instance: "two", Policy: policy,
			Budget: "epsilon=1"}}
		c.Identify = &experiment.IdentifyCell{Risk: risk, AsymptoticUpper: upper}
		c.FinalStoppingTime = fiftyRuns(ratio * upper)
		return &experiment.Results{Cells: []experiment.CellResult{c}}
	}
	for _, policy := range []string{"adap-tt", "adap-tt-star"} {
		for _, c := range []struct {
			large, small float64
			want         Answer
		}{{2, 0.9, Holds}, {2, 1.5, Undecided}, {1.2, 1.5, Fails}, {2, 1, Undecided}} {
			e := &Evidence{Experiments: map[string]*experiment.Results{"large": of(policy, 1e-4,
				100, c.large), "small": of(policy, 1e-64, 1600, c.small)}}
			claim := claimOf(t, figure, policy)
			if f, err := claim.Decide.Of(e); err != nil || f.Answer != c.want {
				t.Errorf("%s at %v and then %v of the bound: %+v, %v, want %s", policy, c.large,
					c.small, f, err, c.want)
			}
		}
	}
}

func TestRegretOfChapter5ComesOutEachWay(t *testing.T) {
	figure := regretOfChapter5()
	finite := slices.Sorted(maps.Keys(sweep5()))
	for _, c := range []struct {
		claim, experiment, policy, budget string
		instances                         []string
		horizon, early                    int
		// regret at the earlier round and at the horizon
		holds, fails [2]float64
	}{
		{"gap-free", "free", "adap-ucb", "epsilon=1", finite, 1_000_000, 10_000,
			[2]float64{1, 1000}, [2]float64{1, 1e7}},
		{"gap-free-zcdp", "finite", "adac-ucb", "rho=0.01", finite, 1_000_000, 10_000,
			[2]float64{1, 1000}, [2]float64{1, 1e7}},
		{"table-finite", "finite", "adac-ucb", "rho=0.01", finite, 1_000_000, 10_000,
			[2]float64{1000, 1000}, [2]float64{1000, 1e6}},
		{"table-linear", "linear", "adac-gope", "rho=0.01", []string{"sphere"}, 1_000_000, 10_000,
			[2]float64{1000, 1000}, [2]float64{1000, 1e6}},
		{"table-contextual", "contextual", "adac-oful", "rho=0.01", []string{"gaussian"}, 100_000,
			10_000, [2]float64{1000, 1000}, [2]float64{1000, 1e6}},
	} {
		for want, regret := range map[Answer][2]float64{Holds: c.holds, Fails: c.fails} {
			r := &experiment.Results{Manifest: &experiment.Manifest{Horizon: c.horizon, Runs: 50,
				Checkpoints: []int{c.early, c.horizon}}}
			for _, in := range c.instances {
				x := experiment.CellResult{CellInfo: experiment.CellInfo{Instance: in,
					Policy: c.policy, Budget: c.budget}}
				x.FinalRegret = fiftyRuns(regret[1])
				x.Regret = experiment.Curve{Mean: regret[:], SE: []float64{regret[0] / 1000, regret[1] / 1000}}
				r.Cells = append(r.Cells, x)
			}
			claim := claimOf(t, figure, c.claim)
			f, err := claim.Decide.Of(&Evidence{Experiments: map[string]*experiment.Results{c.experiment: r}})
			if err != nil || f.Answer != want {
				t.Errorf("%s: %+v, %v, want %s", c.claim, f, err, want)
			}
		}
	}
}

// The comments on the bounds of [Azize 2024, §5.4], computed.
func TestUpperTimes(t *testing.T) {
	n := &Numbers{Values: numbersOf{}}
	if err := upperTimes(n, 40); err != nil {
		t.Fatal(err)
	}
	figure := samplesOfChapter5()
	for _, id := range []string{"g1", "sixteen", "eight", "forty-eight"} {
		claim := claimOf(t, figure, id)
		f, err := claim.Decide.Of(&Evidence{Numbers: n})
		t.Logf("%s: %s %.6g, %s", id, f.Answer, f.Value, f.Detail)
		if err != nil || f.Answer != Holds {
			t.Errorf("%s: %+v, %v", id, f, err)
		}
	}
}
