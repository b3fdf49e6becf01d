package catalog_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

var update = flag.Bool("update", false, "write docs/policies.md anew")

const policiesPage = "../docs/policies.md"

// The page of policies says what the catalog says. With -update it is written anew:
//
//	go test ./catalog -run PoliciesPage -update
func TestPoliciesPage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(pageTop)
	for _, k := range []struct{ title, text, of string }{
		{"K arms", armsText, catalog.BanditArms},
		{"Linear bandits", linearText, catalog.BanditLinear},
		{"Contextual bandits", contextualText, catalog.BanditContextual},
		{"Best-arm identification", identifyText, catalog.BanditIdentify},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s", k.title, k.text)
		policyTable(&b, catalog.For(k.of))
		paramTable(&b, catalog.For(k.of))
	}
	b.WriteString(gatheredText)
	verdictTable(&b)
	b.WriteString(mechanismsText)
	mechanismTable(&b)
	if *update {
		if err := os.WriteFile(policiesPage, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(policiesPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, b.Bytes()) {
		t.Error("docs/policies.md is not what the catalog says: go test ./catalog -run PoliciesPage -update")
	}
	// Whatever the tables forget, every policy and parameter must be on the page.
	for _, e := range catalog.All() {
		if !strings.Contains(string(written), "\n| `"+e.Name+"` | ") {
			t.Errorf("%s is not on the page", e.Name)
		}
		for _, p := range e.Params {
			if !strings.Contains(string(written), "\n| `"+p.Name+"` | ") {
				t.Errorf("parameter %s of %s is not on the page", p.Name, e.Name)
			}
		}
	}
	if left := number.Find(written); left != nil {
		t.Errorf("the page has a source's number: %s", left)
	}
}

// A source's number becomes its name, and a part of another number stays.
func TestCite(t *testing.T) {
	first, third := fmt.Sprintf("%03d", 0), fmt.Sprintf("%03d", 2)
	for text, want := range map[string]string{
		"20 " + first + " at least": "20 000 at least",
		"3 " + third + ".5 rounds":  "3 002.5 rounds",
		first:                       "Azize 2024",
		"[" + first + " §5.1] on " + third + " Algorithm 5":      "[Azize 2024, §5.1] on Sajed 2019, Algorithm 5",
		"(" + third + " (2); " + first + " Theorem 1), " + third: "(Sajed 2019, (2); Azize 2024, Theorem 1), Sajed 2019",
	} {
		if got := cite(text); got != want {
			t.Errorf("cite(%q) = %q, want %q", text, got, want)
		}
	}
}

const pageTop = `# Policies

<!-- Written by ` + "`go test ./catalog -run PoliciesPage -update`" + `: change the catalog, not this page. -->

Every policy, with what is proved of it. ` + "`sotto list policies` and `sotto list mechanisms`" + ` print the same;
the [guide](guide.md#which-policy) says which to take, [sources.md](sources.md) lists the sources and where we part
from their print. T is the horizon, K the number of arms, μ_a the mean of arm a, μ\* the largest, Δ_a = μ\* − μ_a its
gap (sums are over arms with a gap), kl the relative entropy of two Bernoulli laws. Live is how much a policy takes of what was played
while it waited, where rewards come late (package play); a dash is a policy that cannot be played so. ` +
	"`none` is no privacy; a private policy at\nbudget `none`" + ` is the same code without noise. Interactive, Table and View are
definitions of DP for bandits (Azize 2024, Chapter 3), in words in [privacy.md](privacy.md).
`

const (
	armsText = "Rewards are in the declared range. Policies whose horizon must be known take " +
		"`unknown_horizon: true`.\n"
	linearText     = "`kind: linear`: K actions in ℝ^d, rewards in [−1,1] of mean ⟨θ\\*,a⟩.\n"
	contextualText = "`kind: contextual`: new actions in each round, rewards in [−1,1] of mean " +
		"⟨θ\\*,a⟩.\n"
	identifyText = "`kind: identify`, `sotto identify`, `sotto plan trial`: a policy stops by itself and " +
		"names an arm, which is wrong\nwith probability at most the risk δ if one arm alone is best " +
		"(δ-correct). What is private is its whole transcript:\nplays, stopping time and answer.\n"
	gatheredText = `
## Live, where nobody sees the rewards

Under ` + "`trust: two-server`, `local` or `secagg`" + ` of a [live experiment](serve.md#rewards-that-the-service-does-not-see)
a release has another noise than one Laplace noise, or one normal, of a server that is believed: two whole ones, one
of each user, one of each cohort. Privacy is that of the releases in any case. What else is proved of a policy holds
if its proof needs no more of the noise than there is; a live experiment with another policy is refused. With
parameters that have a verdict of their own there is another row.
`
	mechanismsText = `
## How releases are made private

` + "`trust:` and `noise:`" + ` of an experiment choose who has to be believed; the policy is the same. A name without
a trust model is a mechanism that a policy states. [privacy.md](privacy.md#who-is-trusted-with-what) says what
happens where an assumption fails.
`
)

func policyTable(b *bytes.Buffer, entries []catalog.Entry) {
	head := []string{"name", "policy", "privacy", "budgets", "horizon", "live", "regret", "source"}
	trial := entries[0].Bandit == catalog.BanditIdentify
	if trial {
		head = []string{"name", "policy", "privacy", "δ-correct by", "live", "plays, as δ → 0", "source"}
	}
	line(b, head...)
	line(b, strings.Split(strings.Repeat("---,", len(head)-1)+"---", ",")...)
	row := func(name string, e catalog.Entry, given catalog.Params) {
		if e.Newer != "" {
			e.Title += "; use `" + e.Newer + "` instead"
		}
		budgets, horizon := "none", "needed"
		if e.Private {
			budgets = budgetText(e.Budgets)
		}
		if e.Anytime {
			horizon = "–"
		}
		if trial {
			correct := e.Correct
			if correct == "" {
				correct = "nobody"
			}
			line(b, name, e.Title, e.Guarantee, correct, liveText(e, given), e.Regret, e.Source)
			return
		}
		line(b, name, e.Title, e.Guarantee, budgets, horizon, liveText(e, given), e.Regret, e.Source)
	}
	for _, e := range entries {
		given, err := e.Complete(nil)
		if err != nil {
			panic(err)
		}
		row("`"+e.Name+"`", e.With(given), given)
		for _, p := range e.Params {
			for i, word := range p.Choices {
				given[p.Name] = float64(i)
				v := e.With(given)
				if v.Guarantee != e.Guarantee || v.Source != e.Source || v.Correct != e.Correct {
					row(fmt.Sprintf("`%s`, `%s: %s`", e.Name, p.Name, word), v, given)
				}
			}
			delete(given, p.Name)
			given, _ = e.Complete(given)
		}
	}
}

// verdictTable has a row for each policy that can be played live.
func verdictTable(b *bytes.Buffer) {
	line(b, "policy", "of", "live without who sees the rewards", "what its proof needs of the noise")
	line(b, "---", "---", "---", "---")
	row := func(name, of string, v catalog.Verdict) {
		switch {
		case v.Proved != "":
			line(b, name, of, "yes", v.Proved)
		case v.Refused != "":
			line(b, name, of, "refused", v.Refused)
		}
	}
	for _, of := range []struct{ bandit, text string }{{catalog.BanditArms, "K arms"},
		{catalog.BanditIdentify, "the best arm"}} {
		for _, e := range catalog.For(of.bandit) {
			row("`"+e.Name+"`", of.text, e.Gathered)
			all := given(e)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				if v := e.With(all[name]).Gathered; v != e.Gathered {
					row("`"+e.Name+"`, `"+name+"`", of.text, v)
				}
			}
		}
	}
}

// given are an entry's parameters with each of its words and flags alone, by what is said of it.
func given(e catalog.Entry) map[string]catalog.Params {
	out := map[string]catalog.Params{}
	for _, p := range e.Params {
		words := len(p.Choices)
		if p.Flag {
			words = 2
		}
		for i := range words {
			if all, err := e.Complete(catalog.Params{p.Name: float64(i)}); err == nil {
				out[fmt.Sprintf("%s: %s", p.Name, p.Text(float64(i)))] = all
			}
		}
	}
	return out
}

// A policy that can be played live has a verdict on what is proved of it where nobody sees the
// rewards, and no other has.
func TestEveryLivePolicyHasAVerdict(t *testing.T) {
	live := 0
	for _, bandit := range []string{catalog.BanditArms, catalog.BanditIdentify} {
		for _, e := range catalog.For(bandit) {
			all := given(e)
			all[""] = nil
			var admitted bool
			for name, p := range all {
				p, err := e.Complete(p)
				if err != nil {
					t.Fatal(err)
				}
				v := e.With(p)
				if !v.Private || liveText(v, p) == "–" {
					continue
				}
				admitted = true
				if (v.Gathered.Proved == "") == (v.Gathered.Refused == "") {
					t.Errorf("%s of %s, %s: it can be played live, and its verdict is %+v", e.Name, bandit, name, v.Gathered)
				}
				err = e.Gathers(p)
				if (err == nil) != (v.Gathered.Proved != "") || err != nil && !errors.Is(err, catalog.ErrGathered) {
					t.Errorf("%s of %s, %s: %v", e.Name, bandit, name, err)
				}
			}
			if !admitted && e.Gathered != (catalog.Verdict{}) {
				t.Errorf("%s of %s cannot be played live, and has a verdict", e.Name, bandit)
			} else if admitted {
				live++
			}
		}
	}
	if live < 14 {
		t.Errorf("%d policies can be played live", live)
	}
	// One that a program adds has none as long as nobody says it.
	if err := (catalog.Entry{Name: "mine"}).Gathers(nil); !errors.Is(err, catalog.ErrGathered) {
		t.Errorf("a policy without a verdict: %v", err)
	}
}

// liveText is how a policy takes its queue when it is played live, a dash if it cannot be.
func liveText(e catalog.Entry, given catalog.Params) string {
	if e.Simulated != "" {
		return "not yet: " + e.Simulated
	}
	var p policy.Policy
	err := errors.ErrUnsupported
	src := noise.NewFast(1, 2)
	for _, b := range []privacy.Budget{privacy.Pure{Epsilon: 1}, privacy.ZCDP{Rho: 1}, privacy.None{}} {
		if e.Meets(b) != nil {
			continue
		}
		switch {
		case e.New != nil:
			p, err = e.New(catalog.Setting{Arms: 3, Horizon: 1000, Budget: b, Coins: &src}, given)
		case e.NewIdentify != nil:
			p, err = e.NewIdentify(catalog.IdentifySetting{Arms: 3, Risk: 0.1, Budget: b, Coins: &src}, given)
		}
		break
	}
	if err != nil {
		return "–"
	}
	take, err := play.Admit(p)
	if err != nil {
		return "–"
	}
	return take.String()
}

// paramTable has a row for each parameter, with the policies that take it in the same sense.
func paramTable(b *bytes.Buffer, entries []catalog.Entry) {
	type key struct{ name, value, allowed, doc string }
	var keys []key
	of := map[key][]string{}
	for _, e := range entries {
		for _, p := range e.Params {
			k := key{p.Name, p.DefaultDoc, p.Allowed(), p.Doc}
			if k.value == "" {
				k.value = p.Text(p.Default)
			}
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
			of[k] = append(of[k], "`"+e.Name+"`")
		}
	}
	line(b, "parameter", "default", "allowed", "meaning", "of")
	line(b, "---", "---", "---", "---", "---")
	for _, k := range keys {
		line(b, "`"+k.name+"`", k.value, k.allowed, k.doc, strings.Join(of[k], ", "))
	}
}

func mechanismTable(b *bytes.Buffer) {
	line(b, "`trust`", "`noise`", "mechanism", "guarantee", "budgets", "who is believed", "source")
	line(b, "---", "---", "---", "---", "---", "---", "---")
	for _, m := range catalog.Mechanisms() {
		trust, noise, guarantee := "`"+m.Trust+"`", "`"+m.Noise+"`", m.Guarantee
		if m.Noise == "" {
			trust, noise = "–", "`"+m.Name+"`"
		}
		if m.Continual {
			guarantee += ", of all running sums of a slot"
		}
		if !m.Real {
			guarantee += "; for simulations only"
		}
		line(b, trust, noise, m.Title, guarantee, budgetText(m.Budgets), m.Assumes, m.Source)
	}
}

func budgetText(kinds []string) string {
	return strings.NewReplacer("epsilon,delta", "(ε,δ)", "alpha,epsilon", "(α,ε)", "epsilon", "ε",
		"rho", "ρ").Replace(strings.Join(kinds, " · "))
}

// line writes a row of a table. A table begins after an empty line.
func line(b *bytes.Buffer, cells ...string) {
	if text := b.String(); !strings.HasSuffix(text, " |\n") || strings.HasPrefix(cells[0], "param") {
		b.WriteString("\n")
	}
	for _, c := range cells {
		c = strings.NewReplacer("|", `\|`, "*", `\*`).Replace(cite(c))
		b.WriteString("| " + c + " ")
	}
	b.WriteString("|\n")
}

// The catalog has the five sources by number; the page has them by name, as docs/sources.md does.
var (
	number  = regexp.MustCompile(`(^|[^.\d ]|(?:^|\D) )(00[0-4])\b(?: ([§(]|[A-Z]|chapter))?`)
	sources = []string{"Azize 2024", "Azize and Basu 2024", "Sajed 2019", "Chowdhury and Zhou 2023",
		"Azize et al. 2023"}
)

func cite(text string) string {
	return number.ReplaceAllStringFunc(text, func(s string) string {
		m := number.FindStringSubmatch(s)
		name := m[1] + sources[m[2][2]-'0']
		if m[3] != "" {
			name += ", " + m[3]
		}
		return name
	})
}
