package cli_test

import (
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// first plays the first arm for ever.
type first struct{}

func (first) Mechanism() privacy.Mechanism { return privacy.Laplace{} }

func (first) Next(privacy.Released) *policy.Batch {
	return &policy.Batch{Plays: []policy.Play{{Rounds: policy.Forever}}}
}

// A program that has every command of sotto, and a policy of its own in each of them.
// docs/adding-a-policy.md has a complete one.
func ExampleMain() {
	eager := catalog.Entry{Name: "eager", Title: "Always the first arm", Guarantee: "none",
		Regret: "linear", Source: "nobody", Anytime: true,
		New: func(catalog.Setting, catalog.Params) (policy.Policy, error) {
			return first{}, nil
		}}
	cli.Main(cli.Name("mine"), cli.Policies(eager))
}
