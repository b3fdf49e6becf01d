package catalog_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Each trust model and noise that is listed can be built, and each that can be built is listed, for
// the budgets that are listed.
func TestMechanismsAreThoseThatCanBeBuilt(t *testing.T) {
	listed := map[string]catalog.Mechanism{}
	for _, m := range catalog.Mechanisms() {
		if m.Trust != "continuous" {
			listed[m.Trust+" "+m.Noise] = m
		}
		if m.Title == "" || m.Guarantee == "" || m.Source == "" || m.Assumes == "" || len(m.Budgets) == 0 {
			t.Errorf("%+v says too little", m)
		}
	}
	budgets := map[string]privacy.Budget{"epsilon": privacy.Pure{Epsilon: 1},
		"rho": privacy.ZCDP{Rho: 0.5}, "epsilon,delta": privacy.Approx{Epsilon: 1, Delta: 1e-6},
		"alpha,epsilon": privacy.Renyi{Alpha: 2, Epsilon: 1}}
	for _, model := range []privacy.Trust{privacy.TrustCentral, privacy.TrustLocal,
		privacy.TrustTwoServer, privacy.TrustShuffle, privacy.TrustSecAgg} {
		for _, n := range []privacy.NoiseName{privacy.NoiseLaplace, privacy.NoisePolya,
			privacy.NoiseSkellam, privacy.NoiseGaussian, privacy.NoiseCount} {
			m, ok := listed[string(model)+" "+string(n)]
			for kind, b := range budgets {
				stated := privacy.Mechanism(privacy.Gaussian{Sigma: 1})
				if kind == "epsilon" {
					stated = privacy.Laplace{Scale: 1}
				}
				c, err := release.Simulated(release.Config{Arms: 1, Mechanism: stated,
					Trust: &release.Trust{Model: model, Noise: n, Like: b, P: 0.01, S: 10}},
					&noise.Key{}.Fast(1)[0])
				if err == nil {
					if err = c.AddSum(0, 100, 40); err != nil {
						t.Fatal(err)
					}
					_, err = c.Release([]int{0})
				}
				want := false
				for _, k := range m.Budgets {
					want = want || k == kind
				}
				if (err == nil) != (ok && want) {
					t.Errorf("trust %s, noise %s, budget %s: listed %v, error %v", model, n, kind,
						ok && want, err)
				}
				if err == nil && c.Ledger().Entries()[0].Mechanism.Kind() != m.Name {
					t.Errorf("trust %s, noise %s: mechanism is %s, listed as %s", model, n,
						c.Ledger().Entries()[0].Mechanism.Kind(), m.Name)
				}
			}
		}
	}
}

// Every mechanism of package privacy is listed, but what is no release on its own, and costs ∞.
func TestMechanismsAreAllListed(t *testing.T) {
	files, err := filepath.Glob("../privacy/*.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") { // one that there is not
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\) Kind\(\) string +\{ return "(.*)" \}`).FindAllSubmatch(source, -1) {
			kinds[string(m[1])] = true
		}
	}
	if len(kinds) < 20 {
		t.Fatalf("%d kinds were found: %v", len(kinds), kinds)
	}
	delete(kinds, "exact")
	delete(kinds, "questions")
	for _, m := range catalog.Mechanisms() {
		delete(kinds, m.Name)
	}
	if len(kinds) > 0 {
		t.Errorf("not listed: %v", kinds)
	}
}
