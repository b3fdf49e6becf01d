package catalog_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// TestEntriesKeepTheirWord for actions in ℝ^d.
func TestLinearEntriesKeepTheirWord(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range catalog.Policies() {
		seen[e.Name] = true
		if e.Bandit != catalog.BanditArms || e.New == nil || e.NewLinear != nil || e.NewContextual != nil {
			t.Errorf("%s: not of bandits of K arms", e.Name)
		}
	}
	actions := [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0.6, 0.8}, {0.5, 0.5, 0.5}}
	for _, e := range append(catalog.LinearPolicies(), catalog.ContextualPolicies()...) {
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
		if e.New != nil || (e.NewLinear == nil) != (e.Bandit != catalog.BanditLinear) ||
			(e.NewContextual == nil) != (e.Bandit != catalog.BanditContextual) {
			t.Errorf("%s: of %q, with the constructors of another", e.Name, e.Bandit)
		}
		if e.Twin != "" {
			if twin, err := catalog.Find(e.Bandit, e.Twin); err != nil || twin.Private ||
				twin.Bandit != e.Bandit {
				t.Errorf("%s: twin %q: %v", e.Name, e.Twin, err)
			}
		}
		if e.Bandit == catalog.BanditContextual && e.Private &&
			e.PublicContexts == strings.Contains(e.Guarantee, "joint") {
			t.Errorf("%s: contexts are public: %t, and the guarantee is %s", e.Name,
				e.PublicContexts, e.Guarantee)
		}
		params, err := e.Complete(nil)
		if err != nil {
			t.Fatal(err)
		}
		if w := e.Warnings(params); len(w) > 0 {
			t.Errorf("%s: the defaults leave the range of a theorem: %v", e.Name, w)
		}
		// Every choice and flag that the entry has builds.
		settings := []catalog.Params{params}
		for _, p := range e.Params {
			for x := range max(len(p.Choices), 2) {
				if p.Choices == nil && !p.Flag {
					continue
				}
				with := catalog.Params{p.Name: float64(x)}
				if with, err = e.Complete(with); err != nil {
					t.Fatal(err)
				}
				settings = append(settings, with)
			}
		}
		for _, params := range settings {
			with := e.With(params)
			for kind, b := range budgets {
				mechanism, err := build(with, actions, b, params)
				if with.Meets(b) != nil {
					if !errors.Is(with.Meets(b), catalog.ErrBudget) {
						t.Errorf("%s at %s: %v", e.Name, b, with.Meets(b))
					}
					if e.Private && err == nil {
						t.Errorf("%s %v says it cannot meet %s, and builds", e.Name, params, b)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s %v at %s: %v", e.Name, params, b, err)
					continue
				}
				loss := mechanism.Loss()
				if infinite := kind == "none"; loss.Infinite() != infinite || !infinite && !loss.Within(b) {
					t.Errorf("%s %v at %s: its mechanism costs %v", e.Name, params, b, loss)
				}
			}
		}
	}
	for _, e := range catalog.All() {
		if !slices.ContainsFunc(catalog.For(e.Bandit), func(f catalog.Entry) bool { return f.Name == e.Name }) {
			t.Errorf("%s is not among those for its kind of bandit", e.Name)
		}
	}
}

// build is the mechanism of the policy's first release.
func build(e catalog.Entry, actions [][]float64, b privacy.Budget,
	p catalog.Params) (privacy.Mechanism, error) {
	if e.Bandit == catalog.BanditContextual {
		q, err := e.NewContextual(catalog.ContextualSetting{Dim: 3, Arms: 4, Horizon: 10_000,
			Budget: b, Coins: coins{}, Rows: []float64{1, 0, 0, 0, 1, 0}}, p)
		if err != nil {
			return nil, err
		}
		return q.Mechanism(), nil
	}
	var q linear.Policy
	q, err := e.NewLinear(catalog.LinearSetting{Actions: actions, Horizon: 1_000_000, Budget: b}, p)
	if err != nil {
		return nil, err
	}
	if batch := q.Next(privacy.ReleasedVector{}); batch == nil {
		return nil, errors.New("plays nothing")
	}
	return q.Mechanism(), nil
}

// A policy for another kind of bandit is no typing mistake: the error says what it is for.
func TestFindFor(t *testing.T) {
	for _, e := range catalog.All() {
		for _, bandit := range []string{catalog.BanditArms, catalog.BanditLinear, catalog.BanditContextual} {
			got, err := catalog.Find(bandit, e.Name)
			if slices.ContainsFunc(catalog.For(bandit), func(f catalog.Entry) bool {
				return f.Name == e.Name
			}) {
				if err != nil || got.Name != e.Name || got.Bandit != bandit {
					t.Errorf("%s for %q: %v", e.Name, bandit, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), "is for ") ||
				strings.Contains(err.Error(), "unknown") {
				t.Errorf("%s for %q: %v", e.Name, bandit, err)
			}
		}
	}
	if _, err := (catalog.Catalog{}).Find(catalog.BanditLinear, "adac-gop"); err == nil ||
		!strings.Contains(err.Error(), `did you mean "adac-gope"?`) ||
		strings.Contains(err.Error(), "dp-se") {
		t.Errorf("%v", err)
	}
}
