package catalog_test

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// Each identification policy builds at each budget that it says it takes, with every choice and
// flag, and its mechanism costs what the budget allows.
func TestIdentifyEntriesKeepTheirWord(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range catalog.IdentifyPolicies() {
		if seen[e.Name] || !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(e.Name) {
			t.Errorf("name %q is taken or not plain", e.Name)
		}
		seen[e.Name] = true
		if e.Title == "" || e.Guarantee == "" || e.Regret == "" || e.Source == "" ||
			(e.Correct == "") != (e.Seeks() == catalog.GoalBudget) || e.Bandit != catalog.BanditIdentify || !e.Anytime {
			t.Errorf("%s: title, guarantee, samples, source and proof must all be said", e.Name)
		}
		if e.Private == (len(e.Budgets) == 0) {
			t.Errorf("%s: private is %v and its budgets are %v", e.Name, e.Private, e.Budgets)
		}
		all := []catalog.Params{nil}
		for _, p := range e.Params {
			switch {
			case p.Flag:
				given := catalog.Params{p.Name: 1}
				switch p.Name {
				case "reported": // of the program of [Azize et al. 2023]
					given["threshold"], given["sigma"] = 1, 1
				case "centred":
					given["gap"] = 0.5
				}
				all = append(all, given)
			case p.Choices != nil:
				for i, choice := range p.Choices {
					given := catalog.Params{p.Name: float64(i)}
					if p.Name == "threshold" && choice == "published" {
						given["sigma"] = 1
					}
					all = append(all, given)
				}
			case p.Name == "k": // below the number of arms
				all = append(all, catalog.Params{p.Name: 2, "goal": 1})
			case p.Integer:
				all = append(all, catalog.Params{p.Name: 7})
			default:
				x := 1.0
				if p.HiIn || math.IsInf(p.Hi, 1) {
					x = math.Min(p.Hi, 2*math.Max(p.Lo, 1))
				} else {
					x = (p.Lo + p.Hi) / 3
				}
				given := catalog.Params{p.Name: x}
				switch p.Name { // some need another one
				case "best":
					given["gap"] = x
				case "k":
					given["goal"] = 1
				case "level":
					given["goal"] = 2
				}
				all = append(all, given)
			}
		}
		for _, given := range all {
			params, err := e.Complete(given)
			if err != nil {
				t.Fatalf("%s with %v: %v", e.Name, given, err)
			}
			for kind, b := range budgets {
				if e.Meets(b) != nil {
					if !errors.Is(e.Meets(b), catalog.ErrBudget) {
						t.Errorf("%s at %s: %v", e.Name, b, e.Meets(b))
					}
					continue
				}
				p, err := e.NewIdentify(catalog.IdentifySetting{Arms: 3, Risk: 0.05, Budget: b,
					Coins: coins{}}, params)
				if err != nil {
					t.Errorf("%s with %v at %s: %v", e.Name, given, b, err)
					continue
				}
				loss := p.Mechanism().Loss()
				if infinite := kind == "none"; loss.Infinite() != infinite || !infinite && !loss.Within(b) {
					t.Errorf("%s at %s: its mechanism costs %v", e.Name, b, loss)
				}
				if b := p.Next(privacy.Released{}); b == nil || len(b.Plays) != 3 {
					t.Errorf("%s with %v begins with %v", e.Name, given, b)
				}
			}
		}
	}
	if _, err := catalog.Find(catalog.BanditIdentify, "adap-t"); err == nil ||
		!strings.Contains(err.Error(), `did you mean "adap-tt"`) {
		t.Error(err)
	}
}

// The programs of [Azize et al. 2023] have what they have, and coins.
func TestPublishedProgramsRefuse(t *testing.T) {
	for _, c := range []struct {
		name   string
		params catalog.Params
		coins  policy.Coins
		want   string
	}{
		{"adap-tt", catalog.Params{"threshold": 1}, coins{}, "parameter sigma is 0.5, must be 1 " +
			"with threshold: published"},
		{"adap-tt", catalog.Params{"threshold": 1, "sigma": 1, "s": 3}, coins{},
			"parameter s is 3, must be absent"},
		{"adap-tt", catalog.Params{"threshold": 1, "sigma": 1, "leader": 1}, coins{},
			"parameter leader is printed, must be log"},
		{"adap-tt", catalog.Params{"threshold": 1, "sigma": 1}, nil,
			"parameter threshold is published: it is for simulations"},
		{"adap-tt", catalog.Params{"reported": 1}, coins{}, "parameter reported is true, must be false"},
		{"ttucb", catalog.Params{"threshold": 1}, coins{}, "parameter sigma is 0.5, must be 1"},
		{"ttucb", catalog.Params{"threshold": 1, "sigma": 1}, nil, "parameter threshold is " +
			"published: it is for simulations"},
		{"dp-se", catalog.Params{"means": 1}, nil, "parameter means is published: it is for simulations"},
		{"dp-race", catalog.Params{"k": 2}, nil, "parameter k is 2, must be left out except with goal: top"},
		{"dp-lin-race", catalog.Params{"level": 0.3}, nil, "parameter level is 0.3, must be left out except with goal: threshold"},
	} {
		e, err := catalog.Find(catalog.BanditIdentify, c.name)
		if err != nil {
			t.Fatal(err)
		}
		params, err := e.Complete(c.params)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.NewIdentify(catalog.IdentifySetting{Arms: 3, Risk: 0.05,
			Budget: privacy.Pure{Epsilon: 1}, Coins: c.coins}, params)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: %v, want %q", c.name, c.params, err, c.want)
		}
	}
}

// What is not proved is not said to be.
func TestIdentifyProofs(t *testing.T) {
	for _, c := range []struct {
		name   string
		params catalog.Params
		proved bool
	}{
		{"dp-tt", nil, true},
		{"dp-tt", catalog.Params{"threshold": 1}, true},
		{"dp-tt", catalog.Params{"forget": 1}, true},
		{"adap-tt", catalog.Params{"leader": 1, "unclipped": 1, "coin": 1}, true},
		{"adap-tt", catalog.Params{"threshold": 1, "sigma": 1}, false},
		{"adap-tt", catalog.Params{"sigma": 0.4}, false},
		{"dp-se", nil, true},
		{"dp-se", catalog.Params{"means": 1}, false},
		{"adap-tt-star", catalog.Params{"sigma": 1}, true},
		{"ttucb", catalog.Params{"threshold": 1, "sigma": 1}, false},
		{"ttucb", catalog.Params{"sigma": 0.4}, false},
	} {
		e, err := catalog.Find(catalog.BanditIdentify, c.name)
		if err != nil {
			t.Fatal(err)
		}
		params, err := e.Complete(c.params)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.With(params).Correct != ""; got != c.proved {
			t.Errorf("%s with %v: proved is %v", c.name, c.params, got)
		}
	}
}

// T*_KL is the number of samples of the rule that takes rewards for Bernoulli ones.
func TestTrackAndStopProof(t *testing.T) {
	e, err := catalog.Find(catalog.BanditIdentify, "track-and-stop")
	if err != nil {
		t.Fatal(err)
	}
	for family, reasons := range []int{0, 1} {
		params, err := e.Complete(catalog.Params{"family": float64(family)})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Unproved(params); len(got) != reasons || e.With(params).Correct == "" {
			t.Errorf("family %d: %q", family, got)
		}
	}
}
