package audit

import (
	"context"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/noise"
)

// shard is the number of games that share a stream. Scores depend on it, and on nothing else that
// concerns parallel work.
const shard = 1024

// Play runs independent games of any kind and returns the score of each attack: world runs the
// mechanism once, with the target if in is true, and writes an attack's score into each element of
// scores. Bits are fair coins [Azize 2024, Algorithm 4]. newWorld is called once for each worker,
// so that a world can keep scratch space; nothing that one game leaves there may change the next
// one, or games are not independent and no interval holds.
//
// Streams are named by key, with Run counting shards of 1024 games: the scores, and their order,
// depend on the key and the number of games only. workers ≤ 0 means all processors.
func Play(ctx context.Context, games, attacks, workers int, key noise.Key,
	newWorld func() func(in bool, src *noise.Fast, scores []float64) error) ([]Scores, error) {
	if games < 1 {
		return nil, fmt.Errorf("audit: %w: games is %d, must be at least 1", ErrNoGames, games)
	}
	if attacks < 1 {
		return nil, fmt.Errorf("audit: no attacks, must be at least 1")
	}
	shards := (games + shard - 1) / shard
	all := make([]float64, games*attacks)
	bits := make([]bool, games)
	err := pool.Run(ctx, workers, shards, func() func(context.Context, int) error {
		world := newWorld()
		return func(_ context.Context, s int) error {
			k := key
			k.Run = s
			src := &k.Fast(1)[0]
			for g := s * shard; g < min(games, (s+1)*shard); g++ {
				bits[g] = src.Uint64()>>63 == 1
				if err := world(bits[g], src, all[g*attacks:(g+1)*attacks]); err != nil {
					return fmt.Errorf("audit: game %d: %w", g, err)
				}
			}
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	scores := make([]Scores, attacks)
	for a := range scores {
		for g, in := range bits {
			if v := all[g*attacks+a]; in {
				scores[a].In = append(scores[a].In, v)
			} else {
				scores[a].Out = append(scores[a].Out, v)
			}
		}
	}
	return scores, nil
}

// A Game is a membership inference game against a mean [Azize 2024, Algorithms 5 and 12]. In each
// of its rounds the crafter draws N points from Data, flips a fair coin, puts the target in the
// place of one of the points if it shows 1 (Algorithms 4 and 11), and releases their mean through
// Mean; every attack scores the same release.
type Game struct {
	Data Data
	Mean Mean
	// Target is the fixed target of Algorithm 12. Nil means Algorithm 5: a new target is drawn from
	// Data in every game.
	Target  []float64
	Attacks []Attack
	Games   int
	Key     noise.Key
	Workers int // ≤ 0: all processors
}

// Play returns the scores of each attack.
func (g Game) Play(ctx context.Context) ([]Scores, error) {
	if g.Data == nil {
		return nil, fmt.Errorf("audit: no data law: Data is nil")
	}
	d := g.Data.Dim()
	if err := g.Mean.Validate(d); err != nil {
		return nil, err
	}
	if len(g.Attacks) == 0 {
		return nil, fmt.Errorf("audit: no attacks, must be at least 1")
	}
	fixed := make([]Scorer, len(g.Attacks))
	if g.Target != nil {
		if len(g.Target) != d {
			return nil, fmt.Errorf("audit: %w: the target has %d, the data %d", ErrShape, len(g.Target), d)
		}
		for i, a := range g.Attacks {
			var err error
			if fixed[i], err = a.Aim(g.Target); err != nil {
				return nil, err
			}
		}
	}
	return Play(ctx, g.Games, len(g.Attacks), g.Workers, g.Key,
		func() func(bool, *noise.Fast, []float64) error {
			w := g.Mean.worker(g.Data)
			aimed := make([]Scorer, len(fixed))
			copy(aimed, fixed)
			target := g.Target
			if target == nil {
				target = make([]float64, d)
			}
			return func(in bool, src *noise.Fast, scores []float64) error {
				if g.Target == nil {
					g.Data.Draw(target, src)
					for i, a := range g.Attacks {
						var err error
						if aimed[i], err = a.Aim(target); err != nil {
							return err
						}
					}
				}
				w.release(target, in, src)
				for i, a := range aimed {
					scores[i] = a.Score(w.out)
				}
				return nil
			}
		})
}

// A Reconstruction is a game for the value of one record: it is one of Values equally likely ones,
// a mechanism runs on it, and the adversary guesses which. A policy's transcript can be attacked in
// this way, with the reward at one time step as the record.
type Reconstruction struct {
	Values int
	// Guess runs the mechanism with the record at value v in [0, Values), and returns the
	// adversary's guess. It is called by several workers at a time.
	Guess   func(v int, src *noise.Fast) (int, error)
	Games   int
	Key     noise.Key
	Workers int // ≤ 0: all processors
}

// Guesses are the outcome of a Reconstruction.
type Guesses struct {
	Values, Games, Correct int
}

// Play plays the games.
func (r Reconstruction) Play(ctx context.Context) (Guesses, error) {
	if r.Values < 2 {
		return Guesses{}, fmt.Errorf("audit: %d values to guess among, must be at least 2", r.Values)
	}
	s, err := Play(ctx, r.Games, 1, r.Workers, r.Key, func() func(bool, *noise.Fast, []float64) error {
		return func(_ bool, src *noise.Fast, scores []float64) error {
			v := min(r.Values-1, int(src.Float64()*float64(r.Values)))
			guess, err := r.Guess(v, src)
			if err != nil {
				return err
			}
			if guess == v {
				scores[0] = 1
			}
			return nil
		}
	})
	if err != nil {
		return Guesses{}, err
	}
	g := Guesses{Values: r.Values, Games: r.Games}
	for _, side := range [2][]float64{s[0].In, s[0].Out} {
		for _, v := range side {
			g.Correct += int(v)
		}
	}
	return g, nil
}

// Success is the rate of correct guesses.
func (g Guesses) Success(level float64) (Estimate, error) {
	return proportion(g.Correct, g.Games, level)
}

// Epsilon is the ε below which so many correct guesses refute (ε,δ)-DP, except with probability γ:
// ReconstructionLimit inverted at the Clopper–Pearson lower bound s of the success,
// log((k−1)(s−δ)/(1−s)).
func (g Guesses) Epsilon(gamma, delta float64) (float64, error) {
	if err := checkGamma(gamma); err != nil {
		return 0, err
	}
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	if g.Games < 1 {
		return 0, fmt.Errorf("audit: %w: games is %d, must be at least 1", ErrNoGames, g.Games)
	}
	if g.Correct < 0 || g.Correct > g.Games || g.Values < 2 {
		return 0, fmt.Errorf("audit: %d of %d guesses correct, among %d values: impossible",
			g.Correct, g.Games, g.Values)
	}
	s := 1 - upper(g.Games-g.Correct, g.Games, gamma)
	if s <= delta {
		return 0, nil
	}
	return max(0, math.Log(float64(g.Values-1)*(s-delta)/(1-s))), nil
}
