package explore

import "github.com/sotto-dp/sotto/catalog"

// An Offer is what there is to choose from.
type Offer struct {
	Policies []Offered `json:"policies"`
	Trusts   []string  `json:"trusts"`
	Default  string    `json:"default"` // the link of the request that a page begins with
	MaxArms  int       `json:"maxArms"`
	Most     int       `json:"most"` // policies at a time
}

// An Offered is a policy.
type Offered struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"`
	Private bool      `json:"private"`
	Budgets []string  `json:"budgets"` // kinds, as epsilon or epsilon,delta
	Source  string    `json:"source"`
	Regret  string    `json:"regret"`
	Newer   string    `json:"newer,omitempty"` // the policy that is recommended in its place
	Params  []Allowed `json:"params"`
}

// An Allowed is a parameter: what it is, and which values it takes.
type Allowed struct {
	Name    string `json:"name"`
	Doc     string `json:"doc"`
	Default string `json:"default"`
	Allowed string `json:"allowed"`
}

// Offers is what a page can offer of a catalog.
func Offers(known catalog.Catalog) Offer {
	r := Default()
	o := Offer{Policies: []Offered{}, Trusts: trusts(), Default: r.Link(), MaxArms: MaxArms, Most: MaxPolicies}
	for _, e := range known.For(catalog.BanditArms) {
		if !e.Plain() { // a link has arms alone
			continue
		}
		p := Offered{Name: e.Name, Title: e.Title, Private: e.Private,
			Budgets: append([]string{}, e.Budgets...),
			Source:  e.Source, Regret: e.Regret, Newer: e.Newer, Params: []Allowed{}}
		for _, q := range e.Params {
			text := q.DefaultDoc
			if text == "" {
				text = q.Text(q.Default)
			}
			p.Params = append(p.Params, Allowed{q.Name, q.Doc, text, q.Allowed()})
		}
		o.Policies = append(o.Policies, p)
	}
	return o
}
