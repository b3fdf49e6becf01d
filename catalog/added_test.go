package catalog_test

import (
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// mine is a policy that somebody adds: a known one under another name.
func mine() catalog.Entry {
	e, _ := catalog.Find(catalog.BanditArms, "dp-se")
	e.Name, e.Anytime, e.Params = "mine", false, nil
	return e
}

func TestAddedPolicies(t *testing.T) {
	c, err := catalog.Catalog{}.With(mine())
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Find(catalog.BanditArms, "mine")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.Param("unknown_horizon"); !ok {
		t.Error("a policy that needs the horizon cannot do without it")
	}
	p, err := e.New(catalog.Setting{Arms: 2, Horizon: 100, Budget: privacy.Pure{Epsilon: 1}},
		catalog.Params{"unknown_horizon": 1})
	if _, ok := p.(*policy.Doubling); err != nil || !ok {
		t.Errorf("got %T and %v, want a policy that guesses the horizon", p, err)
	}
	for _, old := range []string{"", "arms"} { // old spellings of one word
		e := mine()
		e.Bandit = old
		c, err := catalog.Catalog{}.With(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"", "arms", catalog.BanditArms} {
			if e, err := c.Find(word, "mine"); err != nil || e.Bandit != catalog.BanditArms {
				t.Errorf("%q as %q: %q, %v", old, word, e.Bandit, err)
			}
		}
	}
	if n := len(c.All()); n != len(catalog.Catalog{}.All())+1 ||
		len(c.For(catalog.BanditLinear)) != len(catalog.LinearPolicies()) {
		t.Errorf("%d policies in all", n)
	}
	if _, err := (catalog.Catalog{}).Find(catalog.BanditArms, "mine"); err == nil {
		t.Error("the catalog of Sotto has it too")
	}
	if _, err := c.Find(catalog.BanditLinear, "mine"); err == nil ||
		!strings.Contains(err.Error(), "is for bandits of K arms") {
		t.Errorf("got %v", err)
	}
}

func TestAddedPoliciesAreChecked(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*catalog.Entry)
	}{
		{`policy "": name is "", must be`, func(e *catalog.Entry) { e.Name = "" }},
		{"name is \"a:b\", must be", func(e *catalog.Entry) { e.Name = "a:b" }},
		{"that of another policy, must be a new one", func(e *catalog.Entry) { e.Name = "dp-tt" }},
		{"bandit is \"x\", must be", func(e *catalog.Entry) { e.Bandit = "x" }},
		{"constructor is missing, must be that for bandits of K arms", func(e *catalog.Entry) { e.New = nil }},
		{"constructor is missing, must be that for linear bandits", func(e *catalog.Entry) {
			e.Bandit = catalog.BanditLinear
		}},
		{"guarantee is missing, must", func(e *catalog.Entry) { e.Guarantee = "" }},
		{"budgets is [], must", func(e *catalog.Entry) { e.Budgets = nil }},
		{"budgets is [\"epsilon\" \"rho\"], must", func(e *catalog.Entry) { e.Private = false }},
		{"parameter 1: name is \"budgets\", must", func(e *catalog.Entry) {
			e.Params = []catalog.Param{{Name: "budgets"}}
		}},
		{"parameter \"a\" is there twice, must", func(e *catalog.Entry) {
			e.Params = []catalog.Param{{Name: "a"}, {Name: "a"}}
		}},
	} {
		e := mine()
		test.change(&e)
		if _, err := (catalog.Catalog{}).With(e); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q in it", err, test.want)
		}
	}
	if _, err := (catalog.Catalog{}).With(mine(), mine()); err == nil {
		t.Error("a name twice is no error")
	}
}
