package identify

import (
	"fmt"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// An Elimination is successive elimination as an identification rule: it stops with the last
// surviving arm as the answer.
type Elimination struct {
	rule   policy.Policy
	answer int
}

// NewSE returns successive elimination without privacy (Even-Dar, Mannor and Mansour 2002;
// policy.SuccessiveElimination without a horizon) for a number of arms ≥ 2 and a risk δ in (0,1).
// For rewards in [0,1] a mean ever leaves its interval with probability below δ, and only then can
// the best arm be dropped: it is δ-correct.
func NewSE(arms int, risk float64) (*Elimination, error) {
	if err := checkTask(arms, risk); err != nil {
		return nil, fmt.Errorf("se: %w", err)
	}
	rule, err := policy.NewSuccessiveEliminationAnytime(arms, risk)
	if err != nil {
		return nil, err
	}
	return &Elimination{rule: rule, answer: -1}, nil
}

// NewDPSE returns DP-SE ([Sajed 2019, Algorithm 9]; policy.DPSE) as an identification rule, as
// [Azize 2024, §5.4.3] compares with it, for a number of arms ≥ 2, a budget (privacy.Pure, or
// privacy.None for no noise) and a risk δ in (0,1), its β. For rewards in [0,1] it is ε-DP [Sajed
// 2019, Theorem 5.1.1], and δ-correct: in epoch e some mean is off by more than h_e with
// probability at most δ/4e², and some noise by more than c_e with the same, which is less than δ
// for all epochs together. It takes O(Σ Δ_a⁻² + Σ (εΔ_a)⁻¹) samples, up to logarithms.
func NewDPSE(arms int, budget privacy.Budget, risk float64) (*Elimination, error) {
	if err := checkTask(arms, risk); err != nil {
		return nil, fmt.Errorf("dp-se: %w", err)
	}
	epsilon, err := epsilonOf(budget)
	if err != nil {
		return nil, fmt.Errorf("dp-se: %w", err)
	}
	rule, err := policy.NewDPSE(arms, epsilon, risk)
	if err != nil {
		return nil, err
	}
	return &Elimination{rule: rule, answer: -1}, nil
}

// Mechanism implements policy.Policy.
func (p *Elimination) Mechanism() privacy.Mechanism { return p.rule.Mechanism() }

// Answer implements Identifier.
func (p *Elimination) Answer() int { return p.answer }

// Next implements policy.Policy.
func (p *Elimination) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	b := p.rule.Next(released)
	if len(b.Plays) == 1 { // the last survivor, which the rule would play for ever
		p.answer = b.Plays[0].Arm
		return nil
	}
	return b
}
