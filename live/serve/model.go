package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
)

// Model is what an experiment with contexts has learnt by what was released, with its map: whoever has it
// decides without a request. It costs nothing, see decl.KeepPolicy.
func (e *Engine) Model(ctx context.Context, name string) (*feature.Model, error) {
	x, err := e.find(name)
	if err != nil {
		return nil, err
	}
	m, err := x.model(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("experiment %q: model: %w", name, err)
	}
	return m, nil
}

func (x *served) model(ctx context.Context, e *Engine) (*feature.Model, error) {
	x.mu.Lock()
	decl, of, coins := x.decl, x.board.queues[0], x.rec.Coins
	var theta []float64
	if decl.Contextual != nil {
		theta = slices.Clone(x.estimate())
	}
	x.mu.Unlock()
	if decl.Contextual == nil {
		return nil, errArms
	}
	if theta == nil && of.Released > 0 { // it is not played here
		var err error
		if theta, err = learnt(&decl, coins, e.lines(ctx, x, 0)); err != nil {
			return nil, err
		}
		x.mu.Lock()
		x.events.estimate = theta // no line follows where nothing is played
		x.mu.Unlock()
	}
	return modelOf(&decl, of.Released, of.Releases, of.Noise, theta)
}

// learnt plays the lines of a transcript again.
func learnt(decl *Experiment, coins [16]byte, lines iter.Seq2[[]byte, error]) ([]float64, error) {
	cfg, _, err := configOf(decl, coinsOf(coins))
	if err != nil {
		return nil, err
	}
	again, err := play.Replay(cfg, played(entries(lines)))
	if err != nil {
		return nil, err
	}
	return again.Estimate, nil
}

var errArms = fmt.Errorf("it has arms, must be contextual to have a model; its report has the arms' means: %w", ErrState)

// modelOf is what was learnt of so many rewards in so many releases of this noise.
func modelOf(decl *Experiment, rewards, releases int, noise privacy.Mechanism, theta []float64) (*feature.Model, error) {
	switch {
	case rewards == 0:
		return nil, fmt.Errorf("nothing was released yet: %w", ErrState)
	case theta == nil:
		return nil, fmt.Errorf("the policy, %s, has none: %w", decl.Policy.Policy, ErrState)
	}
	m := feature.Model{Experiment: decl.Name, Release: releases, Decisions: rewards, Map: decl.Contextual.Features,
		Theta: theta}
	m.Range[0], m.Range[1] = decl.Range()
	var err, wrong error
	m.Guarantee, wrong = decl.Guarantee()
	if m.Noise, err = json.Marshal(noise); err != nil || wrong != nil {
		return nil, errors.Join(err, wrong)
	}
	return feature.NewModel(m)
}
