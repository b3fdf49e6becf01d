package audit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// The targets of a MeanAudit.
const (
	HardTarget    = "hard"    // in each column the rarer value: the point easiest to trace
	EasyTarget    = "easy"    // in each column the more frequent value: the point best hidden
	AverageTarget = "average" // a new point of the data's law in each game
)

// A MeanAudit is of a mean of points in {0,1}^d: a membership game, where the target is one of the
// points or not [Azize 2024, Algorithms 5 and 12].
type MeanAudit struct {
	Rows, Columns int     // points, 2 to 10⁷, and columns of a point, 1 to 10⁵
	Sample        int     // points drawn without replacement and averaged; 0: all
	Noise         float64 // γ: normal noise of variance γ²/k is added to each column of a mean of k
	Clip          float64 // points are clipped to this norm; 0: they are not
	Target        string
	// References is how many points of the data's law attacks know, instead of the law; 0: the law.
	References int
	NoShrink   bool // do not shrink the covariance of the references
	// Misspecified is in how many columns attacks have the target wrong.
	Misspecified int
	Games        int
	Workers      int       // ≤ 0: all processors
	Data, Key    noise.Key // of the data's law and the references, and of the games
}

// A MeanGame is a MeanAudit, ready to be played.
type MeanGame struct {
	Game
	Names []string // of the attacks
	Loss  privacy.Loss
	Mu    float64 // claimed μ of Gaussian DP; +Inf: none
	// Apart is how far two points may be from each other; of it the claim is made.
	Apart float64
	Note  string // on the covariance of the references, if there is something to say
	// Score is the leakage score m* of the target, and Limit the likelihood ratio's power in the
	// limit, where both are known.
	Score float64
	Limit *Limit
}

// check says what is wrong with the numbers.
func (a MeanAudit) check() error {
	n, d := a.Rows, a.Columns
	switch {
	case n < 2 || n > 10_000_000:
		return fmt.Errorf("rows is %d, must be from 2 to 1e7", n)
	case d < 1 || d > 100_000:
		return fmt.Errorf("columns is %d, must be from 1 to 100000", d)
	case a.Sample < 0 || a.Sample > n:
		return fmt.Errorf("sample is %d, must be from 1 to the rows, %d", a.Sample, n)
	case !(a.Noise >= 0) || math.IsInf(a.Noise, 1):
		return fmt.Errorf("noise is %v, must be at least 0 and finite", a.Noise)
	case !(a.Clip >= 0) || math.IsInf(a.Clip, 1):
		return fmt.Errorf("clip is %v, must be at least 0 and finite", a.Clip)
	case a.References == 0 && a.NoShrink:
		return errors.New("to shrink no covariance needs references")
	case a.Misspecified != 0 && a.Target == AverageTarget:
		return errors.New("an average target cannot be misspecified: there is none to mistake")
	case a.Misspecified < 0 || a.Misspecified > d:
		return fmt.Errorf("misspecified is %d, must be from 0 to the columns, %d", a.Misspecified, d)
	case a.References == 0:
		return nil
	case a.References < 2 || a.References > 1_000_000 || a.References > 100_000_000/d:
		return fmt.Errorf("references is %d, must be from 2 to 1e6, and 1e8 numbers in all", a.References)
	case d > 2000:
		return fmt.Errorf("columns is %d, must be at most 2000 with references: their covariance "+
			"is a matrix", d)
	}
	return nil
}

// New makes the data's law, the target and the attacks.
func (a MeanAudit) New() (*MeanGame, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	src := &a.Data.Fast(1)[0]
	data := Bernoulli{P: make([]float64, a.Columns)}
	hard, easy := make([]float64, a.Columns), make([]float64, a.Columns)
	for j := range data.P {
		data.P[j] = 0.1 + 0.8*float64(src.Uint64()>>11)/(1<<53)
		if data.P[j] < 0.5 {
			hard[j] = 1
		} else {
			easy[j] = 1
		}
	}
	g := &MeanGame{Game: Game{Data: data, Mean: Mean{N: a.Rows, Sample: a.Sample, Clip: a.Clip},
		Games: a.Games, Key: a.Key, Workers: a.Workers}}
	if a.Noise > 0 {
		g.Mean.Noise = slices.Repeat([]float64{a.Noise}, a.Columns)
	}
	switch a.Target {
	case HardTarget:
		g.Target = hard
	case EasyTarget:
		g.Target = easy
	case AverageTarget:
	default:
		return nil, fmt.Errorf("target is %q, must be %s, %s or %s", a.Target, HardTarget,
			EasyTarget, AverageTarget)
	}
	if err := g.Mean.Validate(a.Columns); err != nil {
		return nil, err
	}
	if err := a.attack(g, data, src); err != nil {
		return nil, err
	}
	aim, err := a.mistake(g)
	if err != nil {
		return nil, err
	}
	a.claim(g)
	return g, a.limit(g, data, aim)
}

// attack adds the attacks.
func (a MeanAudit) attack(g *MeanGame, data Bernoulli, src *noise.Fast) error {
	rows := g.Mean.Rows()
	plain := a.Noise == 0 && a.Clip == 0 && a.Sample == 0
	if a.References == 0 {
		g.Attacks = []Attack{Asymptotic{Mu: data.P, Var: data.Variance(), Noise: g.Mean.Noise,
			Rows: rows}, ScalarProduct{Reference: data.P}}
		g.Names = []string{"likelihood ratio, asymptotic", "scalar product"}
		if plain {
			g.Attacks = append(g.Attacks, BernoulliLR(data))
			g.Names = append(g.Names, "likelihood ratio, exact")
		}
	} else {
		references := make([][]float64, a.References)
		for i := range references {
			references[i] = make([]float64, a.Columns)
			data.Draw(references[i], src)
		}
		covariance, err := NewCovariance(references, rows, !a.NoShrink)
		if err != nil {
			return fmt.Errorf("references is %d: %w", a.References, err)
		}
		g.Note = covariance.Note()
		g.Attacks = []Attack{covariance, ScalarProduct{Reference: references[0]},
			GLiR{Covariance: covariance}}
		g.Names = []string{"covariance", "scalar product", "GLiR"}
		if plain {
			lr, err := NewBernoulliReference(references)
			if err != nil {
				return err
			}
			g.Attacks = append(g.Attacks, lr)
			g.Names = append(g.Names, "likelihood ratio, empirical")
		}
	}
	if g.Target == nil { // a scalar product is for one target
		g.Attacks, g.Names = slices.Delete(g.Attacks, 1, 2), slices.Delete(g.Names, 1, 2)
	}
	return nil
}

// mistake lets attacks have the target wrong, and returns what they take for it.
func (a MeanAudit) mistake(g *MeanGame) ([]float64, error) {
	if a.Misspecified == 0 {
		return g.Target, nil
	}
	aim := slices.Clone(g.Target)
	for j := range a.Misspecified {
		aim[j] = 1 - aim[j]
	}
	for i := range g.Attacks {
		g.Attacks[i] = Misspecified{Attack: g.Attacks[i], Target: aim}
		if _, err := g.Attacks[i].Aim(g.Target); err != nil {
			return nil, err
		}
	}
	return aim, nil
}

// claim is what the noise promises. Points of {0,1}^d are at most √d apart, and clipped ones at
// most 2C: replacing one moves the sum of k by so much, and the noise of the sum has γ√k.
func (a MeanAudit) claim(g *MeanGame) {
	g.Loss, g.Mu, g.Apart = privacy.InfiniteLoss(), math.Inf(1), math.Sqrt(float64(a.Columns))
	if a.Clip > 0 {
		g.Apart = min(g.Apart, 2*a.Clip)
	}
	if a.Noise > 0 {
		sigma := a.Noise * math.Sqrt(float64(g.Mean.Rows())) / g.Apart
		g.Loss, g.Mu = privacy.Gaussian{Sigma: sigma}.Loss(), 1/sigma
	}
}

// limit is the theory of the likelihood ratio, for one target that is not clipped.
func (a MeanAudit) limit(g *MeanGame, data Bernoulli, aim []float64) (err error) {
	if g.Target == nil || a.Clip != 0 {
		return nil
	}
	n, variance, spread := a.Rows, data.Variance(), g.Mean.Noise
	if g.Score, err = Leakage(n, g.Target, data.P, variance, spread); err != nil {
		return err
	}
	limit := Optimal(g.Score)
	if a.Misspecified != 0 {
		scal, err := LeakageBetween(n, g.Target, aim, data.P, variance, spread)
		if err != nil {
			return err
		}
		targ, err := Leakage(n, aim, data.P, variance, spread)
		if err != nil {
			return err
		}
		limit = Missing(scal, targ)
	}
	if a.Sample > 0 && a.Sample < n {
		rate := float64(a.Sample) / float64(n)
		limit = Limit{Shift: limit.Shift / math.Sqrt(rate), Rate: rate}
	}
	g.Limit = &limit
	return nil
}
