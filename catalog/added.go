package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Catalog is policies by name: those of Sotto, and those that a program adds to them. The zero
// value has those of Sotto.
type Catalog struct {
	added    []Entry
	programs Programs // nil: none of others
}

// nameForm is how policies and parameters are called: flags and files divide names at other signs.
var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// everyPolicys are keys of a policy in a file that are no parameters of it, and the parameter that
// With adds.
var everyPolicys = []string{"policy", "name", "budgets", "trust", "noise", "precision", "promised",
	"dropout", "per_user", "protocol", "corrupt", "unknown_horizon"}

// With returns the catalog with these policies too. Each needs a name that no other policy of any
// kind of bandit has, a guarantee, budgets if it is private, and the constructor of its Bandit. A
// policy of K arms that needs the horizon can then do without it: parameter unknown_horizon.
func (c Catalog) With(entries ...Entry) (Catalog, error) {
	out := Catalog{added: slices.Clone(c.added), programs: c.programs}
	for _, e := range entries {
		e.Bandit = banditOf(e.Bandit)
		if err := out.check(e); err != nil {
			return c, fmt.Errorf("policy %q: %w", e.Name, err)
		}
		if e.Bandit == BanditArms && !e.Anytime {
			e = horizonFree(e)
		}
		out.added = append(out.added, e)
	}
	return out, nil
}

// banditOf is the kind of bandit of this name: no name, and arms, are old spellings of BanditArms.
func banditOf(name string) string {
	if name == "" || name == "arms" {
		return BanditArms
	}
	return name
}

func (c Catalog) check(e Entry) error {
	made := map[string]bool{BanditArms: e.New != nil, BanditLinear: e.NewLinear != nil,
		BanditContextual: e.NewContextual != nil, BanditIdentify: e.NewIdentify != nil}
	make, known := made[e.Bandit]
	switch {
	case !nameForm.MatchString(e.Name):
		return fmt.Errorf("name is %q, must be of a-z, 0-9, dash and underscore, a letter first", e.Name)
	case slices.Contains(names(c.All()), e.Name):
		return errors.New("name is that of another policy, must be a new one")
	case !known:
		return fmt.Errorf("bandit is %q, must be a kind of bandit of this package", e.Bandit)
	case !make:
		return fmt.Errorf("constructor is missing, must be that for %s", banditText(e.Bandit))
	case e.Guarantee == "":
		return errors.New("guarantee is missing, must say what is private, or none")
	case e.Private != (len(e.Budgets) > 0):
		return fmt.Errorf("budgets is %q, must name some for a private policy, and none for another",
			e.Budgets)
	}
	for i, p := range e.Params {
		switch {
		case !nameForm.MatchString(p.Name) || slices.Contains(everyPolicys, p.Name) ||
			e.Bandit == BanditContextual && p.Name == "floor": // a key of the file, where there are contexts
			return fmt.Errorf("parameter %d: name is %q, must be of a-z, 0-9, dash and underscore, "+
				"and no key of every policy", i+1, p.Name)
		case slices.ContainsFunc(e.Params[:i], func(q Param) bool { return q.Name == p.Name }):
			return fmt.Errorf("parameter %q is there twice, must be once", p.Name)
		}
	}
	return nil
}

// All returns every policy: those of Sotto by kind of bandit, arms first, and those that were added.
func (c Catalog) All() []Entry {
	return append(All(), c.added...)
}

// For returns the policies for one kind of bandit.
func (c Catalog) For(bandit string) []Entry {
	out := For(bandit)
	for _, e := range c.added {
		if e.Bandit == banditOf(bandit) {
			out = append(out, e)
		}
	}
	return out
}

// Find returns the policy of this name for one kind of bandit. The error names the nearest known
// one, or says what another one of that name is for.
func (c Catalog) Find(bandit, name string) (Entry, error) {
	known := c.For(bandit)
	e, err := find(known, name)
	if err == nil {
		return e, nil
	}
	if other, e := find(c.All(), name); e == nil {
		return Entry{}, fmt.Errorf("policy %q is for %s: known for %s are %s", name,
			banditText(other.Bandit), banditText(bandit), strings.Join(names(known), ", "))
	}
	return Entry{}, err
}
