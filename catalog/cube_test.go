package catalog_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
)

const cubePage = "../docs/cube.md"

// The page of the cube says what the catalog says. With -update it is written anew:
//
//	go test ./catalog -run CubePage -update
func TestCubePage(t *testing.T) {
	cells := catalog.Cube()
	var b bytes.Buffer
	fmt.Fprintf(&b, cubeTop, len(cells))
	for _, goal := range catalog.Goals() {
		title := string(goal)
		fmt.Fprintf(&b, "\n## %s\n\n", strings.ToUpper(title[:1])+title[1:])
		line(&b, append([]string{"trust", "actions"}, currencyHeads...)...)
		line(&b, strings.Split(strings.Repeat("---,", 5)+"---", ",")...)
		var open []string
		for _, actions := range catalog.Actions() {
			for _, trust := range catalog.Trusts() {
				row := []string{trust, actions}
				for _, c := range cells {
					if c.Goal == goal && c.Actions == actions && c.Trust == trust {
						row = append(row, cubeText(c))
						if why := c.Why + " (" + c.Verdict + ")"; c.Why != "" && !slices.Contains(open, why) {
							open = append(open, why)
						}
					}
				}
				line(&b, row...)
			}
		}
		b.WriteString("\n")
		for _, why := range open {
			fmt.Fprintf(&b, "- %s\n", why)
		}
	}
	b.WriteString(provedText)
	line(&b, "policy", "theorem", "file")
	line(&b, "---", "---", "---")
	var seen []string
	for _, c := range cells {
		if c.Verdict == catalog.CubeProved && !slices.Contains(seen, c.Policy) {
			seen = append(seen, c.Policy)
			line(&b, "`"+c.Policy+"`", c.Theorem, "`"+c.File+"`")
		}
	}
	fmt.Fprintf(&b, cubeCount, catalog.CountCube(cells))
	if *update {
		if err := os.WriteFile(cubePage, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(cubePage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, b.Bytes()) {
		t.Error("docs/cube.md is not what the catalog says: go test ./catalog -run CubePage -update")
	}
}

var currencyHeads = []string{"ε", "ρ", "(ε,δ)", "(α,ε)-RDP"}

const (
	cubeTop = `# The cube

<!-- Written by ` + "`go test ./catalog -run CubePage -update`" + `: change the catalog, not this page. -->

What is known of private bandits here: six goals, four currencies of privacy, five answers to who is trusted, four
kinds of action, %d cells. ` + "`sotto list cube`" + ` prints the same, with ` + "`--json`" + ` for programs.

- **proved**: a policy whose privacy and whose utility are proved, the utility by a theorem that is finite: it holds at
  the horizon or risk at hand, not as these tend to a limit. The cell names the policy. ` + "`sotto run`" + ` plays it in
  exactly that currency and trust, and ` + "`sotto audit self`" + ` refutes broken copies of it and of its noise.
- **proved ½**: the same, by noise that was made for another currency, at a budget that implies this one.
- **impossible**: by a theorem whose value a command computes.
- **open**: what is missing is said below the table.
- **–**: no question, for the reason below the table.

A cell follows from the catalog: from the policies that take its currency, from what is proved of them, and from
the noises of its trust model ([policies.md](policies.md)). One of a central server that names no noise has the
continuous noise that the policy states. Normal noise has an exact (ε,δ), which discrete normal noise and sums of it
have not: theirs is converted from ρ. A ρ, or an (ε,δ), of Skellam noise is converted from its Rényi divergences.

Contexts are public in every cell but where the policy says joint DP. The policies called ` + "`dp-context-…`" + ` play finitely
many contexts, each a bandit of its own: what they learn in one says nothing of another, and an answer is one of each
context. Policies that share a θ over contexts, and those that protect contexts too (joint DP), are known here only where
a server is believed. Those called ` + "`dp-lin-…`" + ` and ` + "`dp-glm-…`" + ` play a fixed set of actions.
`
	provedText = `
## By what

The theorems that the cells rest on, as the catalog has them.

`
	cubeCount = `
## Count

%s. A cell that is won by conversion counts half.
`
)

func cubeText(c catalog.Cell) string {
	switch c.Verdict {
	case catalog.CubeProved:
		text := "proved"
		if c.Converted {
			text += " ½"
		}
		text += " `" + c.Policy + "`"
		if x, ok := c.Params["corrected"]; ok {
			text += " with `corrected: " + x + "`"
		}
		if c.Noise != "" {
			text += ", " + c.Noise
		}
		return text
	case catalog.CubeNone:
		return "–"
	}
	return c.Verdict
}

// The cube is whole: every cell once, with a verdict and what its verdict needs; at most a quarter is no
// question. What is proved names a file that is there.
func TestCubeIsWhole(t *testing.T) {
	cells, seen := catalog.Cube(), map[string]bool{}
	for _, c := range cells {
		if seen[c.Name()] {
			t.Errorf("%s is there twice", c.Name())
		}
		seen[c.Name()] = true
		proved := c.Verdict == catalog.CubeProved
		if proved != (c.Policy != "" && c.Theorem != "" && c.File != "" && len(c.Audits) > 0) || proved == (c.Why != "") {
			t.Errorf("%s is %s: %+v", c.Name(), c.Verdict, c)
		}
		if proved {
			if _, err := os.Stat("../" + c.File); err != nil {
				t.Errorf("%s: %v", c.Name(), err)
			}
		}
	}
	n := catalog.CountCube(cells)
	if len(cells) != 480 || n.Proved+n.Impossible+n.Open+n.None != 480 || n.None > 120 {
		t.Errorf("%d cells: %v", len(cells), n)
	}
}

// No bound that is called finite says of itself that it is none, or one in a limit.
func TestFiniteSaysWhatItIs(t *testing.T) {
	for _, e := range append(catalog.All(), catalog.StoppingRules()...) {
		given := []catalog.Params{{}}
		for _, p := range e.Params { // each value of what changes what is proved
			for i := range p.Choices {
				given = append(given, catalog.Params{p.Name: float64(i)})
			}
		}
		for _, p := range given {
			params, err := e.Complete(p)
			if err != nil {
				t.Fatal(err)
			}
			with := e.With(params)
			none := strings.HasPrefix(with.Regret, "none") || strings.HasPrefix(with.Regret, "that of")
			for _, limit := range []string{"lim ", "→", "o(log T)", "constants implicit", "without a proof"} {
				none = none || strings.Contains(with.Regret, limit)
			}
			if with.Finite && none {
				t.Errorf("%s with %v is finite: %s", e.Name, p, with.Regret)
			}
		}
	}
}

// Theorems that are finite are told from those that are not: these are the policies that cells rest on, or
// could. A policy is here if its bound holds at a given horizon or risk with constants that are known or of a
// known order.
func TestCubeRestsOnFiniteTheorems(t *testing.T) {
	asymptotic := []string{"dp-imed", "dp-klucb", "zcdp-imed", "adap-klucb", "adap-tt", "adap-tt-star", "dp-tt", "dp-imed-j",
		"dp-klucb-j", "dp-window-klucb", "jdp-instruments", "adac-gope-var", "dp-se-2-modified", "dp-ucb-thesis", "dp-nas",
		"dp-lin-ts", "auto"}
	for _, c := range catalog.Cube() {
		if slices.Contains(asymptotic, c.Policy) {
			t.Errorf("%s rests on %s: %s", c.Name(), c.Policy, c.Theorem)
		}
	}
}

// A policy that plays public contexts says that it does not protect them: a row with its context tells whose sum it is in.
func TestPublicContextsAreSaid(t *testing.T) {
	n := 0
	for _, e := range catalog.All() {
		if !e.Private || !e.Contexts {
			continue
		}
		if n++; !e.PublicContexts || !strings.Contains(e.Guarantee, "contexts are public") {
			t.Errorf("%s: contexts are public: %t, and the guarantee is %s", e.Name, e.PublicContexts, e.Guarantee)
		}
	}
	if n < 3 {
		t.Errorf("%d policies play contexts", n)
	}
}
