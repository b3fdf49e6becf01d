package catalog_test

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
)

var budgets = map[string]privacy.Budget{
	"epsilon":       privacy.Pure{Epsilon: 0.5},
	"rho":           privacy.ZCDP{Rho: 0.1},
	"epsilon,delta": privacy.Approx{Epsilon: 0.5, Delta: 1e-6},
	"alpha,epsilon": privacy.Renyi{Alpha: 8, Epsilon: 0.5},
	"none":          privacy.None{},
}

// coins always fall the same way.
type coins struct{}

func (coins) Float64() float64          { return 0.5 }
func (coins) Normal() float64           { return 0 }
func (coins) Beta(a, b float64) float64 { return a / (a + b) }

// Each policy builds at each budget that it says it takes, at no other, and its mechanism costs
// what the budget allows.
func TestEntriesKeepTheirWord(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range catalog.Policies() {
		if seen[e.Name] || !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(e.Name) {
			t.Errorf("name %q is taken or not plain", e.Name)
		}
		seen[e.Name] = true
		if e.Title == "" || e.Guarantee == "" || e.Regret == "" || e.Source == "" {
			t.Errorf("%s: title, guarantee, regret and source must all be said", e.Name)
		}
		if e.Private == (len(e.Budgets) == 0) {
			t.Errorf("%s: private is %v and its budgets are %v", e.Name, e.Private, e.Budgets)
		}
		params, err := e.Complete(nil)
		if err != nil {
			t.Fatal(err)
		}
		if w := e.Warnings(params); len(w) > 0 {
			t.Errorf("%s: the defaults leave the range of a theorem: %v", e.Name, w)
		}
		for kind, b := range budgets {
			p, err := e.New(catalog.Setting{Arms: 3, Horizon: 1000, Budget: b, Coins: coins{}}, params)
			if e.Meets(b) != nil {
				if !errors.Is(e.Meets(b), catalog.ErrBudget) {
					t.Errorf("%s at %s: %v", e.Name, b, e.Meets(b))
				}
				if e.Private && err == nil {
					t.Errorf("%s says it cannot meet %s, and builds", e.Name, b)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s at %s: %v", e.Name, b, err)
				continue
			}
			loss := p.Mechanism().Loss()
			if infinite := kind == "none"; loss.Infinite() != infinite || !infinite && !loss.Within(b) {
				t.Errorf("%s at %s: its mechanism costs %v", e.Name, b, loss)
			}
		}
	}
}

// DP-UCB on each counter: the budgets that With says, no others, and a mechanism within them. The
// default is what it was.
func TestCountersOfDPUCB(t *testing.T) {
	e, err := catalog.Find(catalog.BanditArms, "dp-ucb")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := e.Param("counter")
	kinds := []string{"tree", "kary", "hybrid", "sqrt", "blt"}
	if strings.Join(p.Choices, " ") != strings.Join(kinds, " ") || p.Default != 0 {
		t.Fatalf("counters %v, %v by default", p.Choices, p.Default)
	}
	for i, kind := range kinds {
		params, err := e.Complete(catalog.Params{"counter": float64(i)})
		if err != nil {
			t.Fatal(err)
		}
		with := e.With(params)
		for name, b := range budgets {
			q, err := with.New(catalog.Setting{Arms: 3, Horizon: 1000, Budget: b}, params)
			if (err == nil) != (with.Meets(b) == nil) {
				t.Errorf("%s at %s: %v, the entry says %v", kind, b, err, with.Meets(b))
			}
			if err != nil {
				continue
			}
			m := q.Mechanism()
			if loss := m.Loss(); m.Kind() != kind || loss.Infinite() != (name == "none") ||
				!loss.Infinite() && !loss.Within(b) {
				t.Errorf("%s at %s: %v costs %v", kind, b, m, loss)
			}
		}
		if (with.Title == e.Title) != (i == 0) {
			t.Errorf("%s: title %q", kind, with.Title)
		}
		_, err = with.New(catalog.Setting{Arms: 3, Horizon: 1 << 21, Budget: privacy.ZCDP{Rho: 1}}, params)
		if (err == nil) != (kind != "sqrt") || err != nil && !strings.Contains(err.Error(), "use blt") {
			t.Errorf("%s at horizon 2²¹: %v", kind, err)
		}
	}
}

// A ratio other than the source's is warned of; the source's own is not.
func TestRatioWarnings(t *testing.T) {
	e, err := catalog.Find(catalog.BanditArms, "adap-klucb")
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[float64]int{2: 0, 1.5: 1, 3: 1} {
		p, err := e.Complete(catalog.Params{"ratio": x})
		if err != nil {
			t.Fatal(err)
		}
		if w := e.Warnings(p); len(w) != want || want == 1 &&
			!strings.Contains(w[0], "[Azize 2024, Theorem 5.4] is for ratio = 2") {
			t.Errorf("ratio %v: %q", x, w)
		}
	}
	if _, err := e.Complete(catalog.Params{"ratio": 1}); err == nil ||
		!strings.Contains(err.Error(), "ratio is 1") {
		t.Errorf("ratio 1: %v", err)
	}
}

// Each parameter of a policy of which something is proved says for which values: a parameter that
// is new cannot be forgotten. Policies of which nothing is proved say so. By default all of a
// policy's theorems hold.
func TestEveryParameterSaysWhereTheTheoremHolds(t *testing.T) {
	for _, e := range catalog.All() {
		none := strings.HasPrefix(e.Regret, "none")
		for _, p := range e.Params {
			if (p.Proof.Theorem == "") != none {
				t.Errorf("%s, %s: theorem %q, and the regret is %q", e.Name, p.Name, p.Proof.Theorem, e.Regret)
			}
		}
		params, err := e.Complete(nil)
		if err != nil {
			t.Fatal(err)
		}
		if why := e.Unproved(params); len(why) > 0 {
			t.Errorf("%s: not proved for the defaults: %q", e.Name, why)
		}
	}
}

// The settings that theorems are not for, one parameter at a time; all others of these
// policies are proved.
func TestUnproved(t *testing.T) {
	choice := func(e catalog.Entry, name, word string) float64 {
		p, ok := e.Param(name)
		if !ok {
			t.Fatalf("%s has no %s", e.Name, name)
		}
		x, err := p.Parse(word)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, test := range []struct {
		policy, name string
		proved, not  []string
	}{
		{"adap-ucb", "ratio", []string{"2"}, []string{"1.5", "200"}},
		{"adap-ucb", "alpha", []string{"3.01", "8"}, []string{"3", "1"}},
		{"adap-ucb", "printed_half", []string{"false"}, []string{"true"}},
		{"adap-klucb", "printed_half", nil, []string{"true"}},
		{"adap-klucb", "ties_fewest", []string{"true"}, nil},
		{"adac-ucb", "beta", []string{"4"}, []string{"3", "0.5"}},
		{"adac-ucb", "printed_half", nil, []string{"true"}}, {"adac-ucb", "ratio", nil, []string{"4"}},
		{"dp-se", "beta", []string{"0.5"}, nil},
		{"dp-se", "unknown_horizon", []string{"false"}, []string{"true"}},
		{"batch-se", "radius", []string{"tail"},
			[]string{"printed-pure", "printed-rdp", "printed-cdp", "printed-local"}},
		{"batch-se", "p", []string{"0.5"}, nil}, {"batch-se", "eta", []string{"1.1", "4"}, nil},
		{"batch-se", "unknown_horizon", nil, []string{"true"}},
		{"dp-se-2", "beta", nil, []string{"0.1"}}, {"dp-ucb", "beta", []string{"0.1"}, nil},
		{"dp-ucb", "counter", []string{"tree"}, []string{"kary", "blt"}},
		{"successive-elimination", "beta", nil, []string{"0.1"}},
		{"explore-then-commit", "rounds", nil, []string{"10"}},
		{"dp-klucb", "alpha", []string{"1.1", "3"}, nil}, {"dp-imed", "first", []string{"1"}, nil},
		{"adac-gope", "corrected", []string{"true"}, nil},
		{"adac-gope", "literal", []string{"true"}, nil}, {"adac-gope", "risk", []string{"0.5"}, nil},
		{"adac-oful", "split", []string{"true", "false"}, nil},
		{"adac-oful", "radius", []string{"eigenvalue"}, []string{"printed"}},
		{"adac-oful", "lambda", []string{"0.1", "10"}, nil}, {"lin-ucb", "c", []string{"0"}, []string{"1"}},
	} {
		all := catalog.All() // of one name the first: that for arms
		i := slices.IndexFunc(all, func(e catalog.Entry) bool { return e.Name == test.policy })
		if i < 0 {
			t.Fatalf("there is no %s", test.policy)
		}
		e := all[i]
		for want, words := range map[int][]string{0: test.proved, 1: test.not} {
			for _, word := range words {
				params, err := e.Complete(catalog.Params{test.name: choice(e, test.name, word)})
				if err != nil {
					t.Fatal(err)
				}
				why := e.Unproved(params)
				if len(why) != want || want == 1 && !strings.HasPrefix(why[0], test.name+" is "+word) {
					t.Errorf("%s with %s = %s: %q", test.policy, test.name, word, why)
				}
				// Of other counters and of guesses something else is proved, and said.
				beside := test.name == "counter" || test.name == "unknown_horizon"
				if warnings := e.Warnings(params); !beside && len(warnings) != want || beside &&
					len(warnings) > 0 {
					t.Errorf("%s with %s = %s: warnings %q", test.policy, test.name, word, warnings)
				}
				if none := strings.HasPrefix(e.With(params).Regret, "none"); none != (want == 1 && !beside) {
					t.Errorf("%s with %s = %s: regret %q", test.policy, test.name, word, e.With(params).Regret)
				}
			}
		}
	}
}

func TestFindNamesTheNearest(t *testing.T) {
	_, err := catalog.Find(catalog.BanditArms, "adap-klubc")
	if err == nil || !strings.Contains(err.Error(), `did you mean "adap-klucb"?`) ||
		!strings.Contains(err.Error(), "dp-se") {
		t.Errorf("got %v", err)
	}
	if _, err = catalog.Find(catalog.BanditArms, "xyzzyplugh"); err == nil ||
		strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}

func TestParametersAreChecked(t *testing.T) {
	e, err := catalog.Find(catalog.BanditArms, "adap-ucb")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), 0, -1} {
		if _, err := e.Complete(catalog.Params{"alpha": x}); err == nil ||
			!strings.Contains(err.Error(), "alpha is") {
			t.Errorf("alpha = %v: %v", x, err)
		}
	}
	if _, err := e.Complete(catalog.Params{"alhpa": 3}); err == nil ||
		!strings.Contains(err.Error(), `did you mean "alpha"?`) {
		t.Errorf("got %v", err)
	}
	if _, err := e.Complete(catalog.Params{"printed_half": 0.5}); err == nil {
		t.Error("a flag of ½")
	}
	etc, err := catalog.Find(catalog.BanditArms, "explore-then-commit")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{0, 2.5, 1 << 60} {
		if _, err := etc.Complete(catalog.Params{"rounds": x}); err == nil {
			t.Errorf("rounds = %v: no error", x)
		}
	}
	p, err := e.Complete(catalog.Params{"alpha": 1})
	if err != nil {
		t.Fatal(err)
	}
	if w := e.Warnings(p); len(w) != 1 || !strings.Contains(w[0], "[Azize 2024, Theorem 5.3]") {
		t.Errorf("warnings %v", w)
	}
	if p["printed_half"] != 0 {
		t.Errorf("printed_half defaults to %v", p["printed_half"])
	}
}

func ExampleFind() {
	e, err := catalog.Find(catalog.BanditArms, "dp-se")
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Guarantee)
	fmt.Println(e.Source)
	// Output:
	// ε-DP (Interactive, Table and View), rewards in range
	// [Sajed 2019, Algorithm 9]
}

// Every policy can do without the horizon, those that need it by guessing; but for contexts, whose people come as they do.
func TestUnknownHorizon(t *testing.T) {
	for _, e := range catalog.Policies() {
		q, guesses := e.Param("unknown_horizon")
		if guesses == (e.Anytime || e.Contexts) {
			t.Errorf("%s: anytime is %v, and it can guess: %v", e.Name, e.Anytime, guesses)
		}
		if !guesses {
			continue
		}
		if q.Default != 0 {
			t.Errorf("%s guesses by default", e.Name)
		}
		params, err := e.Complete(catalog.Params{"unknown_horizon": 1})
		if err != nil {
			t.Fatal(err)
		}
		if with := e.With(params); with.Regret == e.Regret {
			t.Errorf("%s: what holds for a known T is said of guesses: %s", e.Name, with.Regret)
		}
		b := privacy.Budget(privacy.None{})
		if e.Private {
			b = budgets[e.Budgets[0]]
		}
		// no horizon is given
		p, err := e.New(catalog.Setting{Arms: 3, Budget: b, Coins: coins{}}, params)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		rounds, fresh := 0, 0
		for rounds < 40 {
			batch := p.Next(privacy.Released{})
			rounds += batch.Rounds()
			if batch.Fresh {
				fresh++
			}
		}
		if fresh == 0 {
			t.Errorf("%s: %d rounds without a new guess", e.Name, rounds)
		}
	}
}

// A guess that cannot be built is told before the first round.
func TestUnknownHorizonIsCheckedAhead(t *testing.T) {
	e, err := catalog.Find(catalog.BanditArms, "dp-ucb")
	if err != nil {
		t.Fatal(err)
	}
	q, _ := e.Param("counter")
	sqrt, err := q.Parse("sqrt")
	if err != nil {
		t.Fatal(err)
	}
	params, err := e.Complete(catalog.Params{"unknown_horizon": 1, "counter": sqrt})
	if err != nil {
		t.Fatal(err)
	}
	for horizon, ok := range map[int]bool{1 << 18: true, 1 << 19: false} {
		if _, err := e.New(catalog.Setting{Arms: 3, Horizon: horizon, Budget: privacy.ZCDP{Rho: 1}},
			params); (err == nil) != ok {
			t.Errorf("T = %d: %v", horizon, err)
		}
	}
}

// A family is named by one of its own without privacy, which has no other family.
func TestFamilies(t *testing.T) {
	private := 0
	for _, e := range catalog.All() {
		if e.Newer != "" {
			newer, err := catalog.Find(e.Bandit, e.Newer)
			if err != nil || !newer.Private || newer.Newer != "" {
				t.Errorf("%s has %s in its place: %v", e.Name, e.Newer, err)
			}
		}
		if e.Family == "" {
			continue
		}
		head, err := catalog.Find(e.Bandit, e.Family)
		if err != nil || head.Private || head.Family != "" || head.Bandit != e.Bandit {
			t.Errorf("%s is of the family of %s: %v", e.Name, e.Family, err)
		}
		if e.Private {
			private++
		}
		if twin, err := catalog.Find(e.Bandit, e.Twin); err == nil && twin.Family != e.Family &&
			twin.Name != e.Family {
			t.Errorf("%s is of the family of %s, its twin %s is not", e.Name, e.Family, e.Twin)
		}
	}
	if private < 20 {
		t.Errorf("%d private policies have a family", private)
	}
}
