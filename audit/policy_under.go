package audit

import (
	"fmt"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Under is the subject with releases that are made under a trust model, by the protocol of
// [Chowdhury and Zhou 2023, Algorithm 1] with simulated noise. The attacker sees what the analyser
// lets out; the claim is the ledger's for the protocol's integers. The policy must state single
// releases, Laplace or Gaussian.
//
// Curators of one worker go on from game to game: what they keep, the number of releases, is
// in the integers τ and m only, so the law of what is released is that of a new one but where
// a sum is misread.
func (s Subject) Under(t release.Trust) (Subject, error) {
	if s.Curator != nil {
		return s, fmt.Errorf("audit: %s has a curator of its own, must have none under trust %s",
			s.Name, t.Model)
	}
	if err := t.Validate(); err != nil {
		return s, fmt.Errorf("audit: %w", err)
	}
	s.Name += fmt.Sprintf(", %s %s", t.Model, t.NoiseOf())
	s.trust = &t
	s.Curator = func(arms int, m privacy.Mechanism, ledger *privacy.Ledger,
		src *noise.Fast) (release.Curator, error) {
		return release.Simulated(release.Config{Arms: arms, Mechanism: m, Ledger: ledger, Trust: &t}, src)
	}
	src := noise.NewFast(1, 2)
	p, err := s.New(&src)
	if err != nil {
		return s, fmt.Errorf("audit: %w", err)
	}
	if _, err := t.Mechanism(p.Mechanism(), s.Horizon); err != nil {
		return s, fmt.Errorf("audit: %w", err)
	}
	return s, nil
}
