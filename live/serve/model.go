package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/interval"
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

// Effects are what an experiment with contexts has learnt of single features, by what was released: the model's
// products with the contrasts of its map, in the units of rewards. They are post-processing of releases.
type Effects struct {
	Each []Effect
	All  int     // how many there are, of which Each may have the first
	Norm float64 // that intervals suppose: the model's is at most that
	// Intervals: there is a theorem that says how far the policy's estimates may be off. All intervals hold
	// together, whenever they are looked at, with probability interval.Confidence, if mean rewards are linear in the
	// vectors.
	Intervals bool
}

// An Effect is of a contrast: Mean is the middle of Interval, of which the theorem is, and which is nil without one:
// then it is the model's. The estimate that a policy plays by may be another (dp-lin-ts).
type Effect struct {
	Name, Against string // see feature.Contrast
	Mean          float64
	Interval      *[2]float64
}

// Effects are those of an experiment by name; nil before the first release, and where the policy has no estimate.
func (e *Engine) Effects(ctx context.Context, name string) (*Effects, error) {
	x, err := e.find(name)
	if err != nil {
		return nil, err
	}
	m, within, err := x.learnt(ctx, e, true)
	switch {
	case errors.Is(err, ErrState):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("experiment %q: effects: %w", name, err)
	}
	of, err := feature.New(m.Map)
	if err != nil {
		return nil, err
	}
	contrasts, all := of.Contrasts()
	out := &Effects{All: all, Norm: of.Norm(), Intervals: len(within) == len(contrasts) && all > 0}
	half := (m.Range[1] - m.Range[0]) / 2
	for i, c := range contrasts {
		f := Effect{Name: c.Name, Against: c.Against}
		for j, y := range c.X {
			f.Mean += float64(y * m.Theta[j])
		}
		f.Mean *= half
		if out.Intervals {
			f.Interval = &[2]float64{half * within[i][0], half * within[i][1]}
			f.Mean = f.Interval[0] + (f.Interval[1]-f.Interval[0])/2
		}
		out.Each = append(out.Each, f)
	}
	return out, nil
}

// intervalsOf are a policy's intervals, one for each contrast of the map.
func intervalsOf(m *feature.Mapper, within func(xs [][]float64, risk, norm float64) [][2]float64) [][2]float64 {
	contrasts, _ := m.Contrasts()
	xs := make([][]float64, len(contrasts))
	for i, c := range contrasts {
		xs[i] = c.X
	}
	return within(xs, 1-interval.Confidence, m.Norm())
}

func (x *served) model(ctx context.Context, e *Engine) (*feature.Model, error) {
	m, _, err := x.learnt(ctx, e, false)
	return m, err
}

// learnt is the model, and the intervals of its effects if they are asked for.
func (x *served) learnt(ctx context.Context, e *Engine, effects bool) (*feature.Model, [][2]float64, error) {
	x.mu.Lock()
	decl, of, coins := x.decl, x.board.queues[0], x.rec.Coins
	var theta []float64
	var within [][2]float64
	if decl.Contextual != nil {
		if theta = slices.Clone(x.estimate()); effects {
			within = x.intervals()
		}
	}
	x.mu.Unlock()
	if decl.Contextual == nil {
		return nil, nil, errArms
	}
	if theta == nil && of.Released > 0 { // it is not played here
		var err error
		if theta, within, err = learnt(&decl, coins, e.lines(ctx, x, 0)); err != nil {
			return nil, nil, err
		}
		x.mu.Lock()
		x.events.estimate, x.events.within = theta, within // no line follows where nothing is played
		x.mu.Unlock()
	}
	m, err := modelOf(&decl, of.Released, of.Releases, of.Noise, theta)
	return m, within, err
}

// learnt plays the lines of a transcript again.
func learnt(decl *Experiment, coins [16]byte, lines iter.Seq2[[]byte, error]) ([]float64, [][2]float64, error) {
	cfg, _, err := configOf(decl, coinsOf(coins))
	if err != nil {
		return nil, nil, err
	}
	again, err := play.Replay(cfg, played(entries(lines)))
	if err != nil {
		return nil, nil, err
	}
	mapper, err := decl.Mapper()
	if err != nil {
		return nil, nil, err
	}
	return again.Estimate, intervalsOf(mapper, func(xs [][]float64, risk, norm float64) [][2]float64 {
		return play.Within(cfg.Contexts, xs, risk, norm)
	}), nil
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
