package audit

import (
	"context"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Laplace noise of scale 1 hides one of two values with probability ½e^{−1/2}, and one of three
// with 2e^{−1/4}/3; games are within 5.5 standard errors (false alarm 4e-8 each).
func TestReconstructionOfAReward(t *testing.T) {
	testkit.RacedBefore(t)
	s := mechanism(t, privacy.Laplace{Scale: 1}, 2, 8, 2)
	a := Adversaries(2, s.Horizon, View)[0]
	const games = 20000
	for values, want := range map[int]float64{2: 1 - math.Exp(-0.5)/2, 3: 1 - 2*math.Exp(-0.25)/3} {
		r, err := Reconstruct(s, a, values, games, 1, noise.Key{Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		g, err := r.Play(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if rate := float64(g.Correct) / games; math.Abs(rate-want) > 5.5*math.Sqrt(want*(1-want)/games) {
			t.Errorf("%d values: %v correct, want %v", values, rate, want)
		}
		if eps, err := g.Epsilon(1e-6, 0); err != nil || !(eps > 0.3 && eps <= 1) {
			t.Errorf("%d values: ε ≥ %v, %v", values, eps, err)
		}
	}
	// A curator without clipping gives more away than it claims, and so does one with an
	// eighth of the noise.
	r, err := Reconstruct(s.Broken(EighthScale), a, 2, games, 2, noise.Key{Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	g, err := r.Play(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if eps, err := g.Epsilon(1e-6, 0); err != nil || !(eps > 1) {
		t.Errorf("an eighth of the noise is not refuted: ε ≥ %v, %v", eps, err)
	}
	if _, err := Reconstruct(s, a, 1, games, 1, noise.Key{}); err == nil {
		t.Error("one value can be guessed")
	}
}

// What cannot be audited says so.
func TestSubjectsRefuseBadInput(t *testing.T) {
	s := mechanism(t, privacy.Laplace{Scale: 1}, 2, 8, 2)
	if _, err := s.Under(release.Trust{Model: "nobody", P: 0.1}); err == nil {
		t.Error("an unknown trust model is taken")
	}
	if _, err := s.Real().Under(release.Trust{Model: privacy.TrustCentral, P: 0.1}); err == nil {
		t.Error("a subject has two curators")
	}
	tree := mechanism(t, privacy.Tree{Scale: 5, Horizon: 16}, 1, 1, 16)
	if _, err := tree.Under(release.Trust{Model: privacy.TrustCentral, P: 0.1}); err == nil {
		t.Error("a running sum is made by the protocol")
	}
	under, err := s.Under(release.Trust{Model: privacy.TrustCentral, P: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (PolicyAudit{Subject: under.Broken(Shared), Gamma: 0.05, Games: 200,
		Pilot: 100}).Run(context.Background()); err == nil {
		t.Error("noise is shared under a trust model")
	}
	e, err := catalog.Catalog{}.Find(catalog.BanditLinear, "adac-gope")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VectorSubject(e, 4, privacy.ZCDP{Rho: 1}, nil, false); err == nil {
		t.Error("a horizon of 4 is taken")
	}
	if _, err := VectorSubject(e, 1000, privacy.Pure{Epsilon: 1}, nil, false); err == nil {
		t.Error("a budget that the policy does not meet is taken")
	}
	if _, err := MessageSubject(privacy.Laplace{Scale: 1}, false); err == nil {
		t.Error("laplace is no protocol")
	}
}
