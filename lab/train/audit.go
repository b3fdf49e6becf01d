package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/noise"
)

// An Audit plays a membership game against training runs: in each game the canary is in the
// training set or not, by a fair coin, and every attack scores the iterates.
type Audit struct {
	Training Training
	// Data is what examples come from: Size of them, drawn anew without replacement in each game,
	// or all of them in every game if Size is 0. The claim is about every data set, so both are
	// valid audits of it; fixed data is what an informed adversary knows, new data is the game of
	// [Azize 2024, Algorithm 12].
	Data Dataset
	Size int
	// Start is θ₀, which the adversary knows; nil is Model.Init by the key's own stream.
	Start  []float64
	Canary Canary
	// Neighbour says whether the canary is added, or takes the place of an example: the last one
	// drawn.
	Neighbour Neighbour
	Attacks   []Attack
	Games     int
	Key       noise.Key
	Workers   int // ≤ 0: all processors
}

// Validate reports the first thing that makes the audit impossible.
func (a Audit) Validate() error {
	if err := a.Training.Validate(); err != nil {
		return err
	}
	if err := a.Data.Validate(); err != nil {
		return err
	}
	if a.Size < 0 || a.Size > len(a.Data.X) {
		return fmt.Errorf("train: size = %d of %d examples", a.Size, len(a.Data.X))
	}
	if err := a.Training.fits(a.Data, a.start()); err != nil {
		return err
	}
	if err := a.Canary.validate(a.Training.Model); err != nil {
		return fmt.Errorf("train: canary %w", err)
	}
	if a.Neighbour != AddRemove && a.Neighbour != ReplaceOne {
		return fmt.Errorf("train: neighbour = %d: there is none of this number", a.Neighbour)
	}
	if a.Training.Method == MiniBatch && a.Training.Size > a.n() {
		return fmt.Errorf("train: batch size = %d of %d examples", a.Training.Size, a.n())
	}
	if len(a.Attacks) == 0 {
		return errors.New("train: no attacks, must be at least 1")
	}
	return nil
}

func (a Audit) n() int {
	if a.Size > 0 {
		return a.Size
	}
	return len(a.Data.X)
}

func (a Audit) start() []float64 {
	if a.Start != nil || a.Training.Model == nil {
		return a.Start
	}
	theta := make([]float64, a.Training.Model.Params())
	k := a.Key
	k.Role = noise.RoleInstance
	a.Training.Model.Init(theta, &k.Fast(1)[0])
	return theta
}

// Plans are the attacks, prepared, for what they say of themselves (Plan.Note) and of canaries.
func (a Audit) Plans() ([]*Prepared, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	start := a.start()
	plans := make([]*Prepared, len(a.Attacks))
	for i, at := range a.Attacks {
		var err error
		if plans[i], err = at.Plan(a.Training, start, a.n(), a.Neighbour); err != nil {
			return nil, fmt.Errorf("%v: %w", at, err)
		}
	}
	return plans, nil
}

// Play trains once for each game, and returns each attack's scores.
func (a Audit) Play(ctx context.Context) ([]audit.Scores, error) {
	plans, err := a.Plans()
	if err != nil {
		return nil, err
	}
	start, n := a.start(), a.n()
	return audit.Play(ctx, a.Games, len(plans), a.Workers, a.Key,
		func() func(bool, *noise.Fast, []float64) error {
			r := newRunner(a.Training)
			theta := make([]float64, len(start))
			tracers := make([]*Tracer, len(plans))
			for i, p := range plans {
				tracers[i] = p.Tracer(a.Canary)
			}
			all := make([]int, len(a.Data.X))
			for i := range all {
				all[i] = i
			}
			order := make([]int, len(all))
			canary := []Canary{a.Canary}
			return func(in bool, src *noise.Fast, scores []float64) error {
				if err := ctx.Err(); err != nil {
					return err // a run may be long
				}
				// Each game starts from the same order, so that it depends on its own coins alone.
				copy(order, all)
				if a.Size > 0 {
					for i := range n {
						j := i + below(len(order)-i, src)
						order[i], order[j] = order[j], order[i]
					}
				}
				use, extra := order[:n], canary[:0]
				if in {
					extra = canary
					if a.Neighbour == ReplaceOne {
						use = order[:n-1]
					}
				}
				r.public = n
				copy(theta, start)
				for _, t := range tracers {
					t.Reset()
				}
				err := r.run(a.Data, use, extra, theta, src, func(_ int, before, after []float64) error {
					for _, t := range tracers {
						if err := t.Step(before, after); err != nil {
							return err
						}
					}
					return nil
				})
				for i, t := range tracers {
					scores[i] = t.Score()
				}
				return err
			}
		})
}

// A Verdict compares what is claimed with what the games show.
type Verdict struct {
	Claim   Guarantee
	Audited []audit.Bound // of each attack; all hold together
	Best    int           // the attack of the highest one
	Refuted bool
}

// Judge bounds ε from below at δ by each attack's scores, with γ split over the attacks, and
// compares the best with the claim: a sound run is refuted with probability at most γ.
func (a Audit) Judge(scores []audit.Scores, gamma, delta float64) (Verdict, error) {
	if len(scores) == 0 {
		return Verdict{}, fmt.Errorf("train: %w: there are no scores", audit.ErrNoGames)
	}
	var v Verdict
	var err error
	if v.Claim, err = a.Training.Claim(delta, a.Neighbour); err != nil {
		return Verdict{}, err
	}
	for i, s := range scores {
		r, err := s.RegionByRank(gamma / float64(len(scores)))
		if err != nil {
			return Verdict{}, fmt.Errorf("train: attack %d: %w", i, err)
		}
		b, err := r.Epsilon(delta)
		if err != nil {
			return Verdict{}, fmt.Errorf("train: attack %d: %w", i, err)
		}
		v.Audited = append(v.Audited, b)
		if b.Epsilon > v.Audited[v.Best].Epsilon {
			v.Best = i
		}
	}
	v.Refuted = v.Audited[v.Best].Epsilon > v.Claim.Epsilon
	return v, nil
}

// A SingleRun audits one training run by many canaries, each added or not by a coin of its own
// (Steinke, Nasr and Jagielski 2023): audit.Scores.OneRunEpsilon turns the scores into a bound.
// Each canary's score is the attack's for it. Gradients that point in directions of their own, as
// Dirac canaries do, disturb each other least.
type SingleRun struct {
	Training Training
	Data     Dataset
	Start    []float64 // as in Audit
	Canaries []Canary
	Attack   Attack
	Key      noise.Key
}

// Play trains once. In and Out hold the scores of the canaries that were in and out. Canaries are
// added to the data, whose size stays the public n.
func (a SingleRun) Play() (audit.Scores, error) {
	var s audit.Scores
	if len(a.Canaries) == 0 {
		return s, errors.New("train: no canaries")
	}
	one := Audit{Training: a.Training, Data: a.Data, Start: a.Start, Canary: a.Canaries[0],
		Attacks: []Attack{a.Attack}, Key: a.Key}
	plans, err := one.Plans()
	if err != nil {
		return s, err
	}
	src := &a.Key.Fast(1)[0]
	in := make([]bool, len(a.Canaries))
	var extra []Canary
	tracers := make([]*Tracer, len(a.Canaries))
	for i, c := range a.Canaries {
		if err := c.validate(a.Training.Model); err != nil {
			return s, fmt.Errorf("train: canary %d: %w", i, err)
		}
		if in[i] = src.Uint64()>>63 == 1; in[i] {
			extra = append(extra, c)
		}
		tracers[i] = plans[0].Tracer(c)
	}
	err = a.Training.Run(a.Data, extra, slices.Clone(one.start()), src,
		func(_ int, before, after []float64) error {
			for _, t := range tracers {
				if err := t.Step(before, after); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return s, err
	}
	for i, t := range tracers {
		if in[i] {
			s.In = append(s.In, t.Score())
		} else {
			s.Out = append(s.Out, t.Score())
		}
	}
	return s, nil
}
