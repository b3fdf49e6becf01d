package explore_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/lab/explore"
)

// last plays a request to its end.
func last(t *testing.T, link string) explore.Picture {
	t.Helper()
	r, err := explore.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	e, err := explore.New(catalog.Catalog{}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out explore.Picture
	if err := e.PlayAll(t.Context(), 0, func(p explore.Picture) error { out = p; return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// run plays the YAML of a picture as sotto run does.
func run(t *testing.T, p explore.Picture) *experiment.Results {
	t.Helper()
	spec, err := experiment.Reader{}.Parse("copied.yaml", []byte(p.YAML))
	if err != nil {
		t.Fatalf("%v\n%s", err, p.YAML)
	}
	plan, err := spec.Resolve()
	if err != nil {
		t.Fatalf("%v\n%s", err, p.YAML)
	}
	r, err := plan.Run(t.Context(), experiment.Options{Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is drawn is what sotto run finds, to the last bit, for budgets of each kind, trust models,
// laws that are no Bernoulli, parameters, and policies with and without coins.
func TestTheNumbersOfRun(t *testing.T) {
	for name, link := range map[string]string{
		"plain":   "horizon=100000&runs=16",
		"rho":     "arms=0.6,0.5,0.4&policies=adac-ucb:beta=4,adap-klucb,adac-ucb&rho=0.05&horizon=20000&runs=8&seed=7",
		"approx":  "arms=0.6,0.5&policies=adac-ucb,batch-se&epsilon=1&delta=1e-6&horizon=20000&runs=8",
		"trust":   "arms=0.9,0.5&policies=dp-se,batch-se:eta=4,kl-ucb&trust=shuffle&epsilon=0.7&horizon=5000&runs=5",
		"secagg":  "arms=0.9,0.5&policies=adap-ucb&trust=secagg&horizon=5000&runs=5",
		"laws":    "arms=beta(2,3),uniform(0.2,0.4),table(0:0.5,1:0.5)&policies=lazy-dp-ts,dp-klucb&horizon=3000&runs=6",
		"range":   "arms=gaussian(2,1),gaussian(1,1)&range=-5,5&policies=dp-imed,thompson&horizon=2000&runs=6",
		"doubles": "arms=0.30000000000000004,.1,1e-3&policies=dp-se:unknown_horizon=true&horizon=3000&runs=4&points=7",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := last(t, link)
			r := run(t, p)
			if len(r.Cells) != len(p.Lines) || !slices.Equal(r.Manifest.Checkpoints, p.At) {
				t.Fatalf("run has %d cells and checkpoints %v, and there are %d lines and %v", len(r.Cells),
					r.Manifest.Checkpoints, len(p.Lines), p.At)
			}
			for i, l := range p.Lines {
				c := r.Cells[i]
				if c.Catalog != l.Policy || c.Budget != l.Budget {
					t.Fatalf("line %d is %s at %s, cell is %s at %s", i, l.Policy, l.Budget,
						c.Catalog, c.Budget)
				}
				if !slices.Equal(l.Mean, c.Regret.Mean) || !slices.Equal(l.Q05, c.Regret.Q05) ||
					!slices.Equal(l.Q95, c.Regret.Q95) {
					t.Errorf("%s: mean %v, of run %v", c.Label(), l.Mean, c.Regret.Mean)
				}
				if c.Twin != l.Twin {
					t.Errorf("%s: twin %d, of run %d", c.Label(), l.Twin, c.Twin)
				}
				if l.Twin >= 0 {
					want := c.Difference.Mean[len(p.At)-1]
					if l.Price.Mean != want {
						t.Errorf("%s: price %v, of run %v", c.Label(), l.Price.Mean, want)
					}
				}
			}
		})
	}
}

// The broken twin of that test: another seed has other numbers.
func TestAnotherSeedIsSeen(t *testing.T) {
	p := last(t, "horizon=10000&runs=4")
	p.YAML = strings.Replace(p.YAML, "seed: 1", "seed: 2", 1)
	if r := run(t, p); slices.Equal(r.Cells[0].Regret.Mean, p.Lines[0].Mean) {
		t.Error("two seeds have the same regrets")
	}
}

// What is wrong is said of a field, with its value and what is allowed.
func TestErrors(t *testing.T) {
	for link, want := range map[string]string{
		"arms=0.5":        "arms is 0.5, must be from 2 to 64 means or laws, divided by commas",
		"arms=0.5,1.5":    `arms: law "1.5": bernoulli: p is 1.5, must be between 0 and 1`,
		"arms=0.5,nan":    `arms: law "nan": bernoulli: p is NaN, must be between 0 and 1`,
		"epsilon=0":       "epsilon is 0, must be a number above 0 and finite",
		"epsilon=nan":     `epsilon is nan, must be a number above 0 and finite`,
		"epsilon=inf":     "epsilon is inf, must be a number above 0 and finite",
		"epsilon=x":       `epsilon is "x", must be a number above 0 and finite`,
		"epsilon=1&rho=1": "budget: ",
		"delta=1e-6":      "budget: ",
		"horizon=0": "horizon is 0, must be a whole number from 1 on, such as " +
			"1000, 10_000_000 or 1e7",
		"horizon=1e30": "horizon is 1e30, must be a whole number from 1 on, such " +
			"as 1000, 10_000_000 or 1e7",
		"horizon=1e15":          "horizon is 1000000000000000, must be a whole number from 1 to ",
		"horizon=3":             "horizon is 3, must be at least the number of arms, 5",
		"runs=1":                "runs is 1, must be a whole number from 4 to 65536",
		"runs=65536&points=400": "runs is 65536, must be at most 13981 with 400 points and 3 policies",
		"arms=0.5,uniform(0,1)&horizon=1e8": "horizon is 100000000, must be at most 10000000 " +
			"where each reward is " +
			"drawn by itself, as those of uniform(0,1)",
		"points=1":                    "points is 1, must be a whole number from 2 to 400",
		"seed=-1":                     "seed is -1, must be a whole number from 0 to 2^64−1",
		"level=1":                     "level is 1, must be a number above 0 and below 1",
		"trust=nobody":                `trust is "nobody", must be continuous, central, local, two-server, shuffle, secagg`,
		"range=1,0":                   `range is "1,0", must be two finite numbers LO,HI, the lower one first, at most 1e+100 in absolute value`,
		"range=1":                     "range is 1, must be two numbers LO,HI, the lower one first",
		"policies=":                   "policies: at least one is needed",
		"policies=dpse":               `policies: policy "dpse" is unknown (did you mean "dp-se"?); known are `,
		"policies=dp-se:beta":         `policies is "dp-se:beta", must be NAME:PARAMETER=VALUE:…`,
		"policies=dp-se,dp-se":        `policies is "dp-se", must be there once`,
		"policies=dp-se:beta=2":       "policies: policy dp-se: beta is 2, must be above 0, below 1",
		"policies=dp-se:beta=x":       `policies: beta is "x", must be above 0, below 1`,
		"policies=dp-ucb&trust=local": "policies: under trust local: ",
		"policies=adac-ucb": "policies: takes rho | epsilon,delta | alpha,epsilon, and " +
			"the budget is epsilon=1",
		"csv=log.csv":   "csv: log.csv is not here: drop the file in again",
		"arm=1":         `link is "arm", must be made of arms, csv, `,
		"seed=1&seed=2": `seed is "1 and 2", must be given once`,
		"%zz":           `link: invalid URL escape "%zz"`,
	} {
		r, err := explore.Parse(link)
		if err == nil {
			_, err = explore.New(catalog.Catalog{}, r, nil)
		}
		var of *explore.Error
		if err == nil || !errors.As(err, &of) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", link, err, want)
		}
	}
}

// A log whose columns have other names is refused without a word of flags, which a page has not.
func TestLogColumns(t *testing.T) {
	r, err := explore.Parse("csv=a.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = explore.New(catalog.Catalog{}, r, strings.NewReader("arm,sent\nred,1\nblue,0\n"))
	if err == nil || !strings.Contains(err.Error(), `no column "reward"`) ||
		strings.Contains(err.Error(), "--") {
		t.Error(err)
	}
}

// Where clipping may turn the arms, a picture says that regret ranks no policy, and else not.
func TestUnranked(t *testing.T) {
	for arms, want := range map[string]bool{"table(0:0.6,10:0.4),table(1:1)": true, "0.4,0.5": false,
		"gaussian(0.9,0.1),0.2": false} {
		if p := last(t, "arms="+arms+"&horizon=500&runs=4"); p.Unranked != want {
			t.Errorf("%s: unranked is %v, must be %v; notes %q", arms, p.Unranked, want, p.Notes)
		}
	}
}

// A policy that cannot meet the budget is left out, with the reason, and the others are played.
func TestLeftOut(t *testing.T) {
	p := last(t, "policies=adac-ucb,dp-se&horizon=1000&runs=4")
	if len(p.Left) != 1 || p.Left[0].Policy != "adac-ucb" || len(p.Lines) != 2 {
		t.Errorf("%+v, %d lines", p.Left, len(p.Lines))
	}
}

// Who gives ties to the first arm is lucky where that is the best, and it is said.
func TestTiesToTheFirst(t *testing.T) {
	for link, want := range map[string]int{"arms=0.9,0.1&policies=adap-klucb&horizon=1000&runs=4": 1,
		"arms=0.1,0.9&policies=adap-klucb&horizon=1000&runs=4":                  0,
		"arms=0.9,0.1&policies=adap-klucb:ties_fewest=true&horizon=1000&runs=4": 0} {
		if p := last(t, link); len(p.Notes) != want {
			t.Errorf("%s: notes %q", link, p.Notes)
		}
	}
}

// A link says all of a request.
func TestLinks(t *testing.T) {
	for _, link := range []string{
		"arms=0.75,0.6&policies=dp-se&epsilon=0.5&horizon=1000",
		"arms=gaussian(0.5,0.1),0.2&range=-1,2&policies=dp-se:beta=0.1,kl-ucb&rho=0.1&trust=local&horizon=1000&runs=8&points=9&seed=18446744073709551615&level=0.1",
		"csv=a%20b.csv&policies=dp-se&epsilon=1&horizon=1000",
		"arms=0.75,0.6&policies=dp-se&epsilon=1&delta=1e-06&horizon=1000",
	} {
		r, err := explore.Parse(link)
		if err != nil || r.Link() != link {
			t.Errorf("%s is %s, %v", link, r.Link(), err)
		}
	}
}

// Play ends with its context, and with who looks.
func TestEnds(t *testing.T) {
	r, err := explore.Parse("policies=dp-ucb&epsilon=1&horizon=1e9&runs=64")
	if err != nil {
		t.Fatal(err)
	}
	e, err := explore.New(catalog.Catalog{}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.PlayAll(ctx, 2, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	enough := errors.New("enough")
	r.Horizon = 1000
	if e, err = explore.New(catalog.Catalog{}, r, nil); err != nil {
		t.Fatal(err)
	}
	if err := e.PlayAll(t.Context(), 2, func(explore.Picture) error { return enough }); err != enough {
		t.Error(err)
	}
}

// Whatever a link says, it is refused or is a request that says the same again.
func FuzzLink(f *testing.F) {
	for _, link := range []string{"", "#arms=0.75,0.6&policies=dp-se:beta=0.1&epsilon=1&horizon=1e3",
		"csv=x&range=0,1&rho=1&trust=local&seed=3",
		"arms=beta(1,2),0.5&epsilon=1&delta=0.1&level=0.5&points=3&runs=4",
		"arms=((,0.5", "policies=a:b=c,:=", "horizon=1_0", "%41rms=0.1,0.2"} {
		f.Add(link)
	}
	f.Fuzz(func(t *testing.T, link string) {
		r, err := explore.Parse(link)
		if err != nil {
			return
		}
		again, err := explore.Parse(r.Link())
		if err != nil || again.Link() != r.Link() {
			t.Fatalf("%q is %q, and that is %q: %v", link, r.Link(), again.Link(), err)
		}
		r.Horizon, r.Points = min(r.Horizon, 2000), 3
		if e, err := explore.New(catalog.Catalog{}, r, nil); err == nil {
			if _, err := (experiment.Reader{}).Parse("copied.yaml", []byte(e.YAML(4))); err != nil {
				t.Fatalf("%v\n%s", err, e.YAML(4))
			}
			_ = e.Command(4)
		}
	})
}

// Whatever the arms are, a picture can be told: JSON has no NaN.
func TestEdgesCanBeTold(t *testing.T) {
	for _, link := range []string{"arms=0.5,0.5", "arms=1,0", "arms=0,0", "arms=1,1", "arms=0.3,0.3000000001",
		"arms=1,0.999999&rho=1e-9&policies=adac-ucb", "arms=0.5,0.4&epsilon=1e-300",
		"arms=0.5,0.4&epsilon=1e300",
		"arms=0.5,0.4&epsilon=1&delta=1e-300&policies=batch-se", "arms=table(1:1),0.2",
		"arms=gaussian(0.5,1),0.2",
		"arms=0.5,0.4&policies=kl-ucb", "arms=0.9,0.1&horizon=2"} {
		if !strings.Contains(link, "horizon") {
			link += "&horizon=500"
		}
		p := last(t, link+"&runs=16")
		if _, err := json.Marshal(p); err != nil {
			t.Errorf("%s: %v", link, err)
		}
	}
}
